"""Parameters of the star paper, and its algorithm's messages as the planner sees them."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import sqrt

from ...accounting.conversions import classical_noise_multiplier
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.auditor import gaussian_steps
from ...audits.claims.claim import Claim, ThreatModel
from ...audits.claims.settings import require_ranges
from ...audits.neighbours import NeighbourPair, turned_record
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.data_shape import DataShape
from ...mechanisms.events import Event, Repeated
from ...mechanisms.sensitivity import float_up
from ...solvers.losses import LinearLoss
from ...solvers.planning import plan
from ...solvers.star import DpAdmm, PvpAdmm
from ...solvers.steps import NonsmoothSteps, SmoothSteps

PLANNED_ROUNDS = 128
"""Rounds that are planned one by one; beyond, the costliest of them stands for all, which costs no
less.
"""
MOST_ROUNDS = 10**7
"""The largest t that a user may set."""
_MOST = {"t": MOST_ROUNDS, "m": 10**6, "d": 10**5}
"""The largest counts that a user may set."""


@dataclass(frozen=True, slots=True)
class StarSetting:
    """The paper's parameters; by default an experiment with the l2 regulariser (section VI).

    Args:
        t: rounds.
        epsilon, delta: of one round (Theorem 1); of the whole run in H-R.
        m: records of an agent.
        d: dimension.
        rho: penalty.
        c1: bound on ‖l'‖.
        lambda_over_n: weight of the regulariser.
        c_w: ‖w*‖, from pre-training (89 with l2, 23 with l1).
        smooth: whether steps are Theorem 4's (l2) or Theorem 3's (l1).
        tau: gradient norm to which Algorithm 2's minimiser is found; the paper has 0.
        outlier: the entry of a record that column-maximum normalisation meets.
    """

    t: int = 100
    epsilon: float = 0.05
    delta: float = 1e-3
    m: int = 400
    d: int = 104
    rho: float = 0.1
    c1: float = 1.0
    lambda_over_n: float = 1e-6
    c_w: float = 89.0
    smooth: bool = True
    tau: float = 0.0
    outlier: float = 1000.0

    def __post_init__(self) -> None:
        sizes = ("epsilon", "rho", "c1", "c_w", "outlier")
        require_ranges(self, counts=_MOST, sizes=sizes, nonnegative=("lambda_over_n", "tau"))

    @property
    def shape(self) -> DataShape:
        """What is public about one agent's records."""
        return DataShape(("agent",), self.m, self.d, self.c1, Adjacency.REPLACE_ONE)


def noise_multiplier(s: StarSetting) -> float:
    """Theorem 1's sigma over its sensitivity, sqrt(2 ln(1.25/delta))/epsilon, rounded up."""
    at_one = classical_noise_multiplier(epsilon=1, delta=s.delta).upper_float
    return float_up(Fraction(at_one) / Fraction(s.epsilon))


def algorithm_of(s: StarSetting, rounds: int, multiplier: float) -> DpAdmm:
    """Return Algorithm 3 on linear losses, whose gradients meet their bound.

    Args:
        s: the parameters; steps are Theorem 4's where `s.smooth`, else Theorem 3's.
        rounds: t.
        multiplier: noise over the sensitivity of a round.
    """
    weight = s.lambda_over_n
    steps = (
        SmoothSteps(0.25 + weight, s.c_w)
        if s.smooth
        else NonsmoothSteps(s.c1 + weight * sqrt(s.d), s.c_w)
    )
    return DpAdmm(rounds, multiplier, steps, s.rho, weight, loss=LinearLoss())


def published_run(s: StarSetting) -> list[Event]:
    """The planned events with Theorem 1's noise."""
    return planned_run(s, noise_multiplier(s))


def planned_run(s: StarSetting, multiplier: float) -> list[Event]:
    """The planned events; the costliest of the first rounds, repeated, where there are many.

    Args:
        s: the parameters.
        multiplier: noise over the sensitivity of a round.
    """
    # all rounds have one noise multiplier, so their costs differ by rounding only
    first = _first_rounds(replace(s, t=PLANNED_ROUNDS), multiplier)
    if s.t <= PLANNED_ROUNDS:
        return list(first[: s.t])
    steps = gaussian_steps(first)
    costs = [step.sensitivity.root / Fraction(step.noise_std) for step in steps]
    costliest = first[costs.index(max(costs))]
    return [Event(Repeated(costliest.mechanism, s.t), costliest.context)]


@lru_cache(maxsize=64)
def _first_rounds(s: StarSetting, multiplier: float) -> tuple[Event, ...]:
    """Return the planned events of the first rounds; kept, as every figure asks for them."""
    return plan(algorithm_of(s, s.t, multiplier), s.shape, ideal=True)


def small(s: StarSetting) -> StarSetting:
    """Ten records in two dimensions: the noise follows the sensitivity, so epsilon is the same."""
    return replace(s, d=2, m=10)


def turned(s: StarSetting) -> NeighbourPair:
    """Two data sets of m records in two dimensions: the last one points either way."""
    return turned_record(s.shape.parties, each=s.m, row_bound=s.c1, index=s.m - 1)


def attack_on(s: StarSetting, algorithm: DpAdmm | PvpAdmm, epsilon: float, at: str) -> ClaimAttack:
    """Return the attack on all messages of the pair whose last record turns.

    Args:
        s: the parameters.
        algorithm: what is run.
        epsilon: what is promised of it, at `s.delta`.
        at: the parameters, in words.
    """
    return ClaimAttack(algorithm.solve, turned(s), epsilon, s.delta, at)


claim = partial(
    Claim,
    solver="DP-ADMM (Algorithm 3)",
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.ALL_MESSAGES,
)
