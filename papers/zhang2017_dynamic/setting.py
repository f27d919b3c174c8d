"""Parameters of dynamic private ADMM, and its one-round algorithms as an auditor runs them.

Every guarantee of this paper is of one iteration of one node, so that one round is what claims
price and attacks run: all that happened before is public, and shifts the objective by a public
linear term.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import log1p

import numpy as np

from ...audits.claims.auditor import at_tolerance, gaussian_steps
from ...audits.claims.claim import Claim, ThreatModel
from ...audits.claims.settings import require_ranges
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.data_shape import DataShape
from ...mechanisms.errors import InvalidParameter, Number
from ...mechanisms.events import Event, PureStep
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import FloatArray, Loss
from ...mechanisms.sensitivity import Norm, Sensitivity, declared
from ...solvers.decentralised import PrAdmm, first_state
from ...solvers.dual_perturbation import perturbing_noise, send_as_found
from ...solvers.losses import LinearLoss
from ...solvers.planning import plan
from ...solvers.schedules import PeriodicDecay
from ...solvers.topologies import Network, complete

_MOST = {"K": 10**4, "B": 10**9, "N": 50, "neighbours": 49, "d": 10**4}
"""Greatest values of the counts that a setting accepts."""
_CURVATURE = 0.25
"""c4, which bounds the second derivative of the logistic loss, that of the paper's experiments."""
_RELATIVE_TOLERANCE = 1e-11
"""Gradient norm to which runs find minimisers: as good as exact beside noise of the same order."""


@dataclass(frozen=True, slots=True)
class DynamicSetting:
    """The paper's parameters; the default values are ours.

    The loss is logistic, of weight C^R = 1 (another weight rescales rho and eta); rows have norm 1
    at most. None of the paper's own figures is judged.

    Args:
        alpha: of an iteration: alpha-DP with delta = 0.
        K: iterations.
        B: records of a node.
        N, neighbours: nodes, and the fewest neighbours that one of them has.
        eta: penalty.
        rho: weight of the regulariser R = |f|²/2.
        d: dimension of the classifier f.
        tau: gradient norm at which an implementation takes a minimiser for found (ZZ-4 alone).
    """

    alpha: float = 1.0
    K: int = 100
    B: int = 1000
    N: int = 5
    neighbours: int = 2
    eta: float = 0.1
    rho: float = 0.1
    d: int = 2
    tau: float = 1e-6

    def __post_init__(self) -> None:
        sizes = ("alpha", "eta", "rho")
        require_ranges(self, counts=_MOST, shares=(), sizes=sizes, nonnegative=("tau",))
        if self.N < 2:
            raise InvalidParameter("N", self.N, f"in [2, {_MOST['N']}]")
        if not self.neighbours < self.N:
            raise InvalidParameter("neighbours", self.neighbours, f"in [1, {self.N - 1}]")

    @property
    def modulus(self) -> Fraction:
        """m = rho + 2 eta N_p, of strong convexity of a node's augmented Lagrangian."""
        return Fraction(self.rho) + 2 * Fraction(self.eta) * self.neighbours

    @property
    def network(self) -> Network:
        """Everybody talks to everybody, but node 0 to as few as asked."""
        edges = complete(self.N).edges
        return Network(self.N, tuple(e for e in edges if e[0] > 0 or e[1] <= self.neighbours))

    @property
    def shape(self) -> DataShape:
        """What is public about the nodes' records; a neighbour replaces one of them."""
        nodes = tuple(f"node {i}" for i in range(self.N))
        return DataShape(nodes, self.B, self.d, 1.0, Adjacency.REPLACE_ONE)

    @property
    def primal_scale(self) -> float:
        """1/zeta of PVP's noise, zeta = rho B alpha/2: of density ∝ exp(-zeta |e|)."""
        return 2.0 / (self.rho * self.B * self.alpha)

    @property
    def left_for_noise(self) -> float:
        """alpha - 2 ln(1 + c4/(B m)): what DVP's noise may spend, the rest is the determinant's.

        Not positive where the objective bends too much for its modulus: the paper then adds to the
        regulariser, which is not modelled here.
        """
        return self.alpha - 2.0 * log1p(_CURVATURE / (self.B * float(self.modulus)))

    @property
    def dual_scale(self) -> float:
        """Of DVP's noise in the gradient, of density ∝ exp(-|b|/scale).

        Two over B times what is left for the noise. Raises `InvalidParameter` where nothing is.
        """
        if self.left_for_noise <= 0:
            needed = f"above {self.alpha - self.left_for_noise:.6g} for so much curvature"
            raise InvalidParameter("alpha", self.alpha, needed)
        return 2.0 / (self.B * self.left_for_noise)


def settings_of(s: DynamicSetting, loss: Loss | None = None) -> PrAdmm:
    """Return the network's ADMM for one round; its regulariser is |f|²/2 times rho.

    Args:
        s: the parameters.
        loss: l; linear by default, whose minimisers move as far as any convex loss's can.
    """
    return PrAdmm(
        network=s.network,
        rounds=1,
        noise_multiplier=1.0,
        schedule=PeriodicDecay(0.5, 1),
        penalty=s.eta,
        # `PrAdmm` weighs |x|² by its regularisation over the number of agents
        regularisation=s.rho * s.N / 2,
        tolerance=_RELATIVE_TOLERANCE,
        loss=loss or LinearLoss(),
    )


def minimiser(s: DynamicSetting, tolerance: float = 0.0) -> Sensitivity:
    """Return the derived l2 sensitivity of one node's minimiser in one iteration.

    Args:
        s: the parameters.
        tolerance: gradient norm to which it is found; 0 for exact minimisers.
    """
    (step,) = gaussian_steps(one_message(s))
    return at_tolerance(step.sensitivity, Fraction(tolerance))


def one_message(s: DynamicSetting) -> list[Event]:
    """Return the planned message of one node, with normal noise in place of the paper's."""
    return list(plan(settings_of(s), s.shape, ideal=True)[:1])


def pure_message(s: DynamicSetting, sensitivity: Number, scale: float, reason: str) -> Event:
    """Return a node's message as a mechanism of which only its largest privacy loss is known.

    Args:
        s: the parameters.
        sensitivity: how far the log-density moves, times `scale`.
        scale: of the noise.
        reason: why it moves no farther.
    """
    moved = declared(sensitivity, reason, adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)
    return Event(PureStep(moved, scale), one_message(s)[0].context)


@dataclass(frozen=True, slots=True)
class OneRound:
    """One iteration with noise of density ∝ exp(-|b|/scale), behind the minimiser or in front.

    Args:
        settings: the network's ADMM.
        scale: of the noise: in units of the minimiser behind it, of the gradient in front.
        behind: primal perturbation (PVP); else dual perturbation (DVP).
        stop: gradient norm at which DVP's minimiser is found. The search begins at the minimiser of
            the objective without noise, whose gradient is then b: it ends there if |b| <= stop.
    """

    settings: PrAdmm
    scale: float
    behind: bool
    stop: float = 0.0

    def solve(self, dataset: PrivateDataset, curator: Curator) -> FloatArray:
        """Return the nodes' messages, of shape (..., N, d)."""
        loss = self.settings.loss
        state = first_state(dataset, self.settings.network, loss)
        noise = perturbing_noise(dataset, curator, loss, scale=self.scale, round=1)
        if self.behind:
            found = self.settings.agent_step(dataset, state)
            reason = "its noise, which is not normal, is added by the audit"
            return noise + curator.release_unprotected(
                found, reason=reason, round=1, release="primal"
            )
        far = np.linalg.norm(noise, axis=-1, keepdims=True) > self.stop
        moved = replace(state, duals=state.duals + np.where(far, noise, 0.0))
        return send_as_found(curator, self.settings.agent_step(dataset, moved), round=1)


claim = partial(
    Claim,
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.ALL_MESSAGES,
)
