"""Parameters of PR-ADMM, and its releases as the planner sees them."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf

from ...accounting.guarantees import Guarantee, guarantee
from ...audits.claims.auditor import at_tolerance, gaussian_steps
from ...audits.claims.claim import Claim, ThreatModel
from ...audits.claims.settings import require_ranges
from ...audits.neighbours import NeighbourPair, turned_record
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.data_shape import DataShape
from ...mechanisms.errors import InvalidParameter
from ...mechanisms.events import Event, GaussianStep
from ...mechanisms.sensitivity import declared
from ...solvers.decentralised import PrAdmm, PublishedPrAdmm, published_noise_multiplier
from ...solvers.losses import LinearLoss
from ...solvers.planning import plan
from ...solvers.schedules import PeriodicDecay
from ...solvers.topologies import Network, complete

_FEATURES = 2
"""Dimension of the attacks' rows: linear losses need one direction, the other one is noise."""

_MOST = {"K": 500, "K_p": 500, "D": 10**9, "N": 50, "neighbours": 49}
"""The largest counts that a user may set: plans list every round of every agent."""

_RELATIVE = 1e-11
"""Gradient norm of minimisers in attacks, relative to V and to the noise: below what an attack can
tell.
"""


@dataclass(frozen=True, slots=True)
class PrSetting:
    """The paper's parameters; by default those of its experiments (section V).

    Args:
        K: rounds.
        K_p, R_P: period and rate of the periodic decay.
        R_T: rate of the iteration-based decay.
        epsilon, delta: of the whole run.
        D: records of an agent.
        N, neighbours: agents, and the fewest neighbours that one of them has.
        eta: penalty.
        V: Lipschitz constant of the loss.
        Lambda: weight of the regulariser.
        tau: gradient norm to which an implementation finds minimisers (PR-9 and PR-R); the paper,
            and so every other claim, has 0.
        convex: whether the loss is; Lemma 5 does not ask for it.
    """

    K: int = 50
    K_p: int = 1
    R_P: float = 0.925
    R_T: float = 0.015
    epsilon: float = 10.0
    delta: float = 1e-4
    D: int = 8000
    N: int = 5
    neighbours: int = 2
    eta: float = 0.5
    V: float = 1.0
    Lambda: float = 0.0
    tau: float = 1e-6
    convex: bool = True

    def __post_init__(self) -> None:
        require_ranges(
            self,
            counts=_MOST,
            shares=("delta", "R_P"),
            sizes=("R_T", "epsilon", "eta", "V"),
            nonnegative=("Lambda", "tau"),
        )
        if self.N < 2:
            raise InvalidParameter("N", self.N, f"in [2, {_MOST['N']}]")
        if self.K % self.K_p:
            raise InvalidParameter("K", self.K, f"divisible by K_p={self.K_p}")
        if not self.neighbours < self.N:
            raise InvalidParameter("neighbours", self.neighbours, f"in [1, {self.N - 1}]")

    @property
    def schedule(self) -> PeriodicDecay:
        """The periodic linear decay of equation 14."""
        return PeriodicDecay(self.R_P, self.K_p)

    @property
    def network(self) -> Network:
        """Everybody talks to everybody, but agent 0 to as few as asked."""
        edges = complete(self.N).edges
        return Network(self.N, tuple(e for e in edges if e[0] > 0 or e[1] <= self.neighbours))

    def shape(self, adjacency: Adjacency = Adjacency.REPLACE_ONE, count: int = 0) -> DataShape:
        """Return what is public about the agents' records.

        Args:
            adjacency: of the plan.
            count: records of an agent; D for 0.
        """
        parties = tuple(f"agent {i}" for i in range(self.N))
        return DataShape(parties, count or self.D, _FEATURES, self.V, adjacency)

    @property
    def modulus(self) -> Fraction:
        """m = 2 eta |V_i| + 2 Lambda/N."""
        return 2 * Fraction(self.eta) * self.neighbours + 2 * Fraction(self.Lambda) / self.N


def algorithm_of(s: PrSetting, noise_multiplier: float, *, threshold: float = inf) -> PrAdmm:
    """Return the repaired algorithm on linear losses, which `PublishedPrAdmm` wraps."""
    return PrAdmm(
        network=s.network,
        rounds=s.K,
        noise_multiplier=noise_multiplier,
        schedule=s.schedule,
        penalty=s.eta,
        regularisation=s.Lambda,
        threshold=threshold,
        # where noise is large, so are gradients, and no tiny norm can be certified
        tolerance=_RELATIVE * s.V * max(1.0, noise_multiplier),
        loss=LinearLoss(),
    )


def first_noise(s: PrSetting) -> float:
    """Return sigma_1 over Lemma 5's value, by which Theorem 3 promises (epsilon, delta)."""
    return published_noise_multiplier(s.schedule, s.K, epsilon=s.epsilon, delta=s.delta)


def lemma_5(s: PrSetting) -> Fraction:
    """Return V/(eta |V_i|)."""
    return Fraction(s.V) / (Fraction(s.eta) * s.neighbours)


def published_run(s: PrSetting) -> list[Event]:
    """Return the published algorithm's planned events, with exact minimisers.

    A loss that is not convex has no rule in the calculus: its stationary points lie within V/m of
    the point that the messages alone would give, so two of them are at most 2V/m apart; and a
    record that tips the balance moves the minimiser by all of it.
    """
    events = plan(PublishedPrAdmm(algorithm_of(s, first_noise(s))), s.shape(), ideal=True)
    any_loss = declared(
        2 * Fraction(s.V) / s.modulus,
        "stationary points lie within V/m of a public one",
        adjacency=Adjacency.REPLACE_ONE,
    )
    return [
        replace(
            event,
            mechanism=GaussianStep(
                at_tolerance(step.sensitivity, Fraction(0)) if s.convex else any_loss,
                step.noise_std,
            ),
        )
        for event, step in zip(events, gaussian_steps(events), strict=True)
    ]


def published_guarantee(s: PrSetting) -> Guarantee:
    """Return what they compose to."""
    return guarantee(published_run(s), delta=s.delta)


def two_each(s: PrSetting) -> NeighbourPair:
    """Return two data sets of two records an agent; one of agent 0's is turned.

    The other record keeps the minimiser where it is, as in a larger data set.
    """
    return turned_record(s.shape().parties, each=2, row_bound=s.V)


def one_each(s: PrSetting) -> NeighbourPair:
    """Return two of one record an agent, agent 0's turned: so a convex loss attains Lemma 5."""
    return turned_record(s.shape().parties, each=1, row_bound=s.V)


claim = partial(
    Claim,
    solver="PR-ADMM (Algorithm 1)",
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.ALL_MESSAGES,
)
