"""Parameters of PS-ADMM, and its noisy gradients as the planner sees them."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...audits.claims.claim import Claim, ThreatModel
from ...audits.claims.settings import replaced_or_nulled, require_ranges
from ...audits.neighbours import NeighbourPair, turned_record
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.data_shape import DataShape
from ...mechanisms.errors import InvalidParameter
from ...mechanisms.events import Event, GaussianMixtureStep, GaussianStep, Repeated
from ...mechanisms.sensitivity import mean_of_bounded, sum_of_bounded
from ...solvers.losses import LinearLoss
from ...solvers.planning import plan
from ...solvers.stochastic import PublishedPsAdmm, StochasticRounds, theorem_2_noise_std

FEATURES = 2
"""Dimension of the attacks' rows: linear losses need one direction, nearly opposite rows need
two.
"""

_MOST = {"K": 10**9, "S": 10**6, "M": 10**9}
"""The largest counts that a user may set."""


@dataclass(frozen=True, slots=True)
class PsSetting:
    """The paper's parameters; by default those of its experiments, K and S assumed (section 5).

    Args:
        K, S: rounds, and inner steps of each.
        M: records of a provider.
        epsilon, delta: of the whole run.
        c, c1: the constants of Theorem 2, which it does not give.
        G: Lipschitz constant of the loss.
        eta_nu: step size times smoothness, in (0, 1/2).
        first_step: the s at which the inner loop starts; printed: 1.
        logistic: whether the loss is logistic, instead of any convex and smooth one.
        zero_out: whether neighbours replace a record by a null record, instead of by any other.
        q, z, sigma_u: sampling rate, noise multiplier and noise of the snapshot of the repair R-B.
    """

    K: int = 50
    S: int = 50
    M: int = 6838
    epsilon: float = 0.5
    delta: float = 1e-3
    c: float = 1.0
    c1: float = 1.0
    G: float = 1.0
    eta_nu: float = 0.25
    first_step: int = 1
    logistic: bool = False
    zero_out: bool = False
    q: float = 0.01
    z: float = 1.2
    sigma_u: float = 2e-3

    def __post_init__(self) -> None:
        sizes = ("epsilon", "c", "c1", "G", "z", "sigma_u")
        require_ranges(self, counts=_MOST, shares=("delta", "q"), sizes=sizes)
        if self.M < 2:
            raise InvalidParameter("M", self.M, f"in [2, {_MOST['M']}]")
        if not 0 <= self.first_step <= _MOST["S"]:
            raise InvalidParameter("first_step", self.first_step, f"in [0, {_MOST['S']}]")
        if not 0 < self.eta_nu < 0.5:
            raise InvalidParameter("eta_nu", self.eta_nu, "in (0, 1/2)")

    @property
    def relation(self) -> Adjacency:
        """What neighbours are."""
        return replaced_or_nulled(nulled=self.zero_out)

    @property
    def shape(self) -> DataShape:
        """What is public about a provider's records."""
        return DataShape(("provider",), self.M, FEATURES, self.G, self.relation)

    @property
    def steps(self) -> int:
        """How many noisy gradients a provider uses."""
        return self.K * self.S


def stochastic_rounds(s: PsSetting, rounds: int, inner_steps: int) -> StochasticRounds:
    """Return rounds on linear losses with the setting's eta nu.

    Args:
        s: the parameters.
        rounds: K of the run that is made.
        inner_steps: its S.
    """
    # a linear loss has no curvature of its own: the penalty alone makes nu
    return StochasticRounds(rounds, inner_steps, s.eta_nu, penalty=1.0, loss=LinearLoss())


def printed_noise(s: PsSetting) -> float:
    """Return Theorem 2's standard deviation, for c."""
    return theorem_2_noise_std(
        stochastic_rounds(s, s.K, s.S), s.shape, epsilon=s.epsilon, delta=s.delta, constant=s.c
    )


def _planned_step(s: PsSetting) -> tuple[Event, GaussianMixtureStep]:
    """One noisy gradient of the published algorithm, which samples for replace-one."""
    replaced = replace(s, zero_out=False)
    published = PublishedPsAdmm(stochastic_rounds(s, 1, 1), printed_noise(s))
    (event,) = plan(published, replaced.shape, ideal=True)
    assert isinstance(event.mechanism, GaussianMixtureStep)
    return event, event.mechanism


def noisy_gradient(s: PsSetting) -> GaussianMixtureStep:
    """Return one noisy gradient for this relation and loss: a null record has no gradient."""
    _, step = _planned_step(s)
    if not (s.zero_out or s.logistic):
        return step
    # two logistic gradients of one record lie in one half-line: G apart, not 2G
    correction = s.G if s.logistic else 2 * s.G
    return replace(
        step,
        constant=mean_of_bounded(s.G, s.M, s.relation),
        sampled=sum_of_bounded(correction, s.relation),
    )


def whole_run(s: PsSetting, step: GaussianStep) -> list[Event]:
    """Return K S times this step."""
    event, _ = _planned_step(s)
    return [Event(Repeated(step, s.steps), event.context)]


def linear_run(s: PsSetting) -> list[Event]:
    """Return what the run is for linear losses, whose corrections vanish: Gaussian steps."""
    step = noisy_gradient(s)
    return whole_run(s, GaussianStep(step.constant, step.noise_std))


def linear_pair(s: PsSetting, *, null: bool = False) -> NeighbourPair:
    """Return two data sets of M records for linear losses: the last is turned, or made null."""
    pair = turned_record(s.shape.parties, each=s.M, row_bound=s.G, index=s.M - 1)
    if not null:
        return pair
    neighbour = pair.dataset.with_record(s.M - 1, features=np.zeros(FEATURES))
    return NeighbourPair(pair.dataset, neighbour, 0.5, f"record {s.M - 1} at full length, or null")


claim = partial(
    Claim,
    solver="PS-ADMM (Algorithm 2)",
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.ALL_MESSAGES,
)
