"""Parameters of ADMM sharing, and what its two algorithms release as the planner sees them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...audits.claims.auditor import gaussian_steps
from ...audits.claims.claim import Claim, ThreatModel
from ...audits.claims.settings import replaced_or_nulled, require_ranges
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import InvalidParameter, require_nonnegative
from ...mechanisms.events import Event
from ...mechanisms.vertical_data import VerticalShape
from ...solvers.planning import plan
from ...solvers.sharing import (
    PublishedSharingAdmm,
    SharingAdmm,
    lemma_1_bound,
    published_parameter_noise,
)

_MOST = {"d_m": 10**6, "M": 50, "N": 10**8, "T": 500, "ones": 10**6}
"""The largest counts that a user may set."""
_SIZES = ("rho", "lam", "c1", "b1", "epsilon", "B", "b", "lam_m", "tau", "distance")
"""Parameters that must be positive numbers of a reasonable size."""
_LARGE = 1e6
"""A cut and a radius that no iterate meets: with them the repaired solver runs the published
algorithm.
"""


@dataclass(frozen=True, slots=True)
class SharingSetting:
    """The paper's parameters; by default its a9a experiment, and theirs where it names none.

    Args:
        d_m: features of the party at hand.
        M: parties.
        N: records.
        T: rounds.
        rho: penalty.
        lam: lambda, the weight of R(x) = |x|²/2.
        c1, b1: bounds on R'' and on the norms of the iterates (Assumption 1).
        epsilon, delta: of one release; of the whole run in S-R.
        delta_prime: what Corollary 1 adds to T delta.
        B, b, lam_m, tau: slope bound, radius, modulus and tolerance of the repair.
        u: score plus y/rho at which S-6 shows a dual variable.
        ones: equal entries of a row that are not zero (a9a: 14).
        distance: of neighbouring matrices.
        public_labels: whether everybody knows the labels.
        zero_out: whether neighbours of S-7 and S-R replace a record by a null record.
    """

    d_m: int = 66
    M: int = 2
    N: int = 32561
    T: int = 20
    rho: float = 1.0
    lam: float = 1e-3
    c1: float = 1.0
    b1: float = 1.0
    epsilon: float = 1.0
    delta: float = 1e-5
    delta_prime: float = 1e-5
    B: float = 1.0
    b: float = 1.0
    lam_m: float = 0.1
    tau: float = 1e-9
    u: float = 2.5
    ones: int = 14
    distance: float = 1.0
    public_labels: bool = False
    zero_out: bool = False

    def __post_init__(self) -> None:
        shares = ("delta", "delta_prime")
        require_ranges(self, counts=_MOST, shares=shares, sizes=_SIZES, decades=12)
        require_nonnegative("size of u", abs(self.u))
        if not abs(self.u) <= _LARGE:
            raise InvalidParameter("u", self.u, f"in [-{_LARGE:g}, {_LARGE:g}]")

    @property
    def relation(self) -> Adjacency:
        """The record-level relation of S-7 and S-R."""
        return replaced_or_nulled(nulled=self.zero_out)

    @property
    def parties(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(f"party {m}" for m in range(self.M))

    @property
    def shape(self) -> VerticalShape:
        """What is public about the data."""
        widths = (self.d_m,) * self.M
        return VerticalShape(self.parties, self.N, widths, 1.0, self.relation, self.public_labels)


def known_labels(s: SharingSetting) -> SharingSetting:
    """Return the setting with labels that everybody knows: then the dual variable costs nothing."""
    return replace(s, public_labels=True)


def lemma_1(s: SharingSetting, size: float) -> float:
    """C, for iterates of at most this norm.

    Args:
        s: the parameters.
        size: b_1, the largest norm of an iterate that Assumption 1 has to cover.
    """
    return lemma_1_bound(
        features=s.d_m, parties=s.M, penalty=s.rho, regularisation=s.lam, curvature=s.c1, size=size
    )


def published(s: SharingSetting, rounds: int) -> PublishedSharingAdmm:
    """The paper's algorithm; the repair's ball and cut are too large to matter."""
    algorithm = SharingAdmm(
        rounds,
        0.0,
        penalty=s.rho,
        regularisation=s.lam,
        slope_bound=_LARGE,
        radius=_LARGE,
        tolerance=1e-6,
    )
    noise = published_parameter_noise(lemma_1(s, s.b1), epsilon=s.epsilon, delta=s.delta)
    return PublishedSharingAdmm(algorithm, noise)


def repaired(s: SharingSetting, noise_multiplier: float, rounds: int) -> SharingAdmm:
    """Return the repaired algorithm: cut slopes, bounded parameters, noise on D_m x_m.

    Args:
        s: the parameters; B, b, lam_m and tau are the repair's.
        noise_multiplier: noise over the sensitivity to a record.
        rounds: T.
    """
    return SharingAdmm(
        rounds,
        noise_multiplier,
        penalty=s.rho,
        regularisation=s.lam_m,
        slope_bound=s.B,
        radius=s.b,
        tolerance=s.tau,
    )


def planned_round(s: SharingSetting) -> Sequence[Event]:
    """What a published round lets out or, of x_m, would."""
    return plan(published(s, 1), s.shape, ideal=True)


def costly(events: Sequence[Event]) -> list[Event]:
    """The events that cost something: with public labels the dual variable is free."""
    steps = zip(events, gaussian_steps(events), strict=True)
    return [event for event, step in steps if step.sensitivity.squared > 0]


claim = partial(
    Claim,
    solver="ADMM sharing (Algorithm 1)",
    adjacency=Adjacency.REPLACE_FEATURE_COLUMN,
    threat_model=ThreatModel.ALL_MESSAGES,
)

repaired_claim = partial(claim, solver="ADMM sharing, repaired", adjacency=Adjacency.REPLACE_ONE)
