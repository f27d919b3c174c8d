"""Parameters of DP-SGD, and its releases as the planner sees them.

Every claim of this paper is about one run of Algorithm 1. The planned event of a step is taken
from `DpSgd` itself rather than written down here, so that what is priced is what is run.
"""

from dataclasses import dataclass, replace
from functools import partial

from ...audits.claims.claim import Claim, ThreatModel
from ...audits.claims.settings import require_ranges
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.data_shape import DataShape
from ...mechanisms.events import Event
from ...mechanisms.subsampling import Poisson
from ...solvers.losses import LinearLoss
from ...solvers.planning import plan
from ...solvers.sgd import DpSgd
from ...solvers.steps import ConstantSteps

_MOST = {"T": 10**6, "N": 10**9}
"""Greatest values of the counts that a setting accepts: T rounds, N examples."""
_FEATURES = 2
"""Dimension of the attack's rows; a linear loss needs one direction, the other stays noise."""


@dataclass(frozen=True, slots=True)
class SgdSetting:
    """The paper's parameters; by default those of its example (section 3).

    Args:
        q: the sampling ratio L/N.
        sigma: noise over the clipping norm C.
        T: steps.
        epsilon, delta: of the whole run.
        C: the clipping norm.
        N: examples.
        c1, c2: the constants of Theorem 1, which it does not give.
    """

    q: float = 0.01
    sigma: float = 4.0
    T: int = 10_000
    epsilon: float = 1.26
    delta: float = 1e-5
    C: float = 4.0
    N: int = 60_000
    c1: float = 1.0
    c2: float = 1.0

    def __post_init__(self) -> None:
        sizes = ("sigma", "epsilon", "C", "c1", "c2")
        require_ranges(self, counts=_MOST, shares=("q", "delta"), sizes=sizes)

    @property
    def shape(self) -> DataShape:
        """What is public about the examples; one that is left out is a null record.

        The row bound is C, so that a linear loss has gradients that clipping leaves as they are.
        """
        return DataShape(("curator",), self.N, _FEATURES, self.C, Adjacency.ZERO_OUT_ONE)


def algorithm_of(s: SgdSetting) -> DpSgd:
    """Return Algorithm 1 on linear losses, whose gradients meet the clipping norm.

    The step size is 1: the model is post-processing of the noisy gradients, and its scale free. The
    relation is zero-out-one, which the sampled Gaussian mechanism prices like add/remove-one.
    """
    return DpSgd(
        rounds=s.T,
        noise_multiplier=s.sigma,
        steps=ConstantSteps(1.0),
        scheme=Poisson(s.q),
        regularisation=0.0,
        loss=LinearLoss(),
    )


def one_step(s: SgdSetting) -> Event:
    """Return the planned event of one step: Poisson sampling at rate q, noise sigma C."""
    (event,) = plan(algorithm_of(replace(s, T=1)), s.shape, ideal=True)
    return event


claim = partial(
    Claim,
    solver="DP-SGD (Algorithm 1)",
    adjacency=Adjacency.ADD_REMOVE_ONE,
    threat_model=ThreatModel.ALL_MESSAGES,
)
