"""Parameters of centralised DP-ADMM, and its noisy gradients as the planner sees them."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...audits.claims.attack import ClaimAttack
from ...audits.claims.claim import Claim, ThreatModel
from ...audits.claims.settings import replaced_or_nulled, require_ranges
from ...audits.datasets import AuditDataset
from ...audits.neighbours import NeighbourPair, opposite_gradients, zero_out
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.data_shape import DataShape
from ...mechanisms.events import Event, GaussianStep
from ...mechanisms.protocols import Loss
from ...solvers.centralised import (
    CentralisedDpAdmm,
    PublishedCentralisedDpAdmm,
    theorem_1_noise_multiplier,
)
from ...solvers.constraints import fused_lasso
from ...solvers.losses import LinearLoss
from ...solvers.planning import plan

_FEATURES = 2
"""The smallest fused lasso: two features and one edge."""
_MOST = {"T": 2000, "n": 10**9, "ones": 10**6}
"""The largest counts that a user may set; T is planned round by round."""
DESIGN = fused_lasso(_FEATURES, ((0, 1),))
"""A = [W; I] with one edge: three rows, two columns."""


@dataclass(frozen=True, slots=True)
class CentralisedSetting:
    """The paper's parameters; by default those of its experiments on a9a (section V).

    Args:
        T: rounds.
        epsilon, delta: of the whole run.
        mu: the constant of Theorem 1.
        n: records.
        c: bound on ‖grad f_i‖.
        rho, gamma, eta: penalty, linearisation, step size.
        lambda1: weight of the l1 norm.
        ones: unit entries of a row as it comes (a9a: 14).
        alpha: threshold of the sparse inverse covariance selection.
        zero_out: whether neighbours replace a record by a null record, instead of by any other.
    """

    T: int = 100
    epsilon: float = 0.1
    delta: float = 1e-3
    mu: float = 0.5
    n: int = 32561
    c: float = 1.0
    rho: float = 1.0
    gamma: float = 1.0
    eta: float = 0.05
    lambda1: float = 1e-5
    ones: int = 14
    alpha: float = 0.05
    zero_out: bool = False

    def __post_init__(self) -> None:
        sizes = ("epsilon", "c", "rho", "gamma", "eta", "lambda1", "alpha")
        require_ranges(self, counts=_MOST, shares=("delta", "mu"), sizes=sizes)

    @property
    def relation(self) -> Adjacency:
        """What neighbours are."""
        return replaced_or_nulled(nulled=self.zero_out)

    @property
    def shape(self) -> DataShape:
        """What is public about the records, rows cut to c."""
        return DataShape(("curator",), self.n, _FEATURES, self.c, self.relation)


def null(s: CentralisedSetting) -> CentralisedSetting:
    """Return the setting in which a record is made null."""
    return replace(s, zero_out=True)


def replaced(s: CentralisedSetting) -> CentralisedSetting:
    """Return the setting in which a record is replaced by any other."""
    return replace(s, zero_out=False)


def algorithm_of(
    s: CentralisedSetting, noise_multiplier: float, loss: Loss | None = None
) -> CentralisedDpAdmm:
    """Return Algorithm 2 from u_0 = 0 on the fused lasso of two features.

    Args:
        s: the parameters.
        noise_multiplier: noise over the sensitivity of a mean gradient.
        loss: the linear one by default, whose gradients meet their bound.
    """
    return CentralisedDpAdmm(
        DESIGN,
        s.T,
        noise_multiplier,
        step_size=s.eta,
        penalty=s.rho,
        gamma=s.gamma,
        regularisation=s.lambda1,
        loss=LinearLoss() if loss is None else loss,
    )


def theorem_1(s: CentralisedSetting) -> float:
    """sigma over c/n."""
    return theorem_1_noise_multiplier(s.T, epsilon=s.epsilon, delta=s.delta, mu=s.mu)


def published_run(s: CentralisedSetting) -> tuple[Event, ...]:
    """Return the planned events with Theorem 1's noise and the published first dual variable."""
    return plan(PublishedCentralisedDpAdmm(algorithm_of(s, theorem_1(s))), s.shape, ideal=True)


def gradients(s: CentralisedSetting) -> list[Event]:
    """The noisy gradients alone, of the algorithm as published."""
    return [event for event in published_run(s) if isinstance(event.mechanism, GaussianStep)]


def four_records(s: CentralisedSetting) -> NeighbourPair:
    """Four records, the last of which points either way, or is made null."""
    rows = np.zeros((4, _FEATURES))
    rows[3, 0] = s.c
    dataset = AuditDataset(
        rows, np.ones(4), adjacency=s.relation, row_bound=s.c, parties=s.shape.parties
    )
    turned = zero_out if s.zero_out else opposite_gradients
    return turned(dataset, index=3, loss=LinearLoss())


def attack_on(s: CentralisedSetting, algorithm: CentralisedDpAdmm, epsilon: float) -> ClaimAttack:
    """All noisy gradients of four records."""
    words = f"T = {s.T} noisy gradients of four records, epsilon = {s.epsilon:g}"
    return ClaimAttack(algorithm.solve, four_records(s), epsilon, s.delta, words)


claim = partial(
    Claim,
    solver="DP-ADMM (Algorithm 2)",
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.OUTPUT,
)
"""A claim of this paper: by default of Algorithm 2, of a replaced record, seen through the
output.
"""
