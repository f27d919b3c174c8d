"""Centralised DP-ADMM and DP-AccADMM, for one holder of all records (Xu, Shang, Liu et al. 2020).

The problem is min over x, y of mean_i l(<a_i, x>, b_i) + lambda·g(y)  subject to  A x + B y = c.
In each round one noisy gradient leaves; x, y and the scaled dual variable u are functions of it.

Two algorithms:
  `CentralisedDpAdmm`           repaired: u_0 = 0, noise in units of the derived sensitivity;
  `PublishedCentralisedDpAdmm`  as published: u_0 from the raw gradient, noise in units of c/n.
Both are Algorithm 3 (DP-AccADMM) with `accelerated`, else Algorithm 2. The paper's experiments
learn A = [W; I] from the same records: `learned_fused_lasso` does so with noise or, unprotected,
without.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, log, sqrt

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ..mechanisms.events import Audience
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray, Loss
from ..mechanisms.sensitive import Sensitive
from ..mechanisms.sensitivity import float_up
from .constraints import Constraint, fused_lasso, inverse_covariance_edges
from .losses import Logistic
from .regularisers import L1, ProximalTerm
from .solver import Observer


@dataclass(frozen=True, slots=True)
class SplitState:
    """What is public after a round.

    Args:
        x: the model, of shape (..., d).
        y: what the regulariser sees, of shape (..., q).
        u: the scaled dual variable, of shape (..., m).
    """

    x: FloatArray
    y: FloatArray
    u: FloatArray

    @property
    def model(self) -> FloatArray:
        """The model x, of shape (..., d)."""
        return self.x


_MOST_DRIFT = 1e6
"""A model that grows so much without data will not come back."""


@dataclass(frozen=True, slots=True)
class CentralisedDpAdmm:
    """DP-ADMM or DP-AccADMM, repaired: nothing but one noisy gradient leaves in each round.

    x_t = x - (eta/gamma)(noisy gradient at x + rho Aᵀ(A x + B y_t - c + u)), where x and u are the
    last ones, or extrapolated ones in the accelerated algorithm. The step for y is exact when
    BᵀB is a multiple of I, and linearised in the same way as x's otherwise.

    Args:
        constraint: A, B and c, public.
        rounds: T.
        noise_multiplier: noise_std / sensitivity of the mean gradient; 0 is not private.
        step_size: eta, at most 1/smoothness of the mean loss.
        accelerated: whether to extrapolate by Nesterov's weights (Algorithm 3). It is faster at
            first, but the paper proves nothing of it, and for the lasso it need not settle.
        penalty: rho.
        gamma: gamma; None for the least allowed, eta rho ‖AᵀA‖ + 1 (the experiments use 1).
        regularisation: lambda.
        regulariser: g.
        loss: l.
    """

    constraint: Constraint
    rounds: int
    noise_multiplier: float
    step_size: float
    accelerated: bool = False
    penalty: float = 1.0
    gamma: float | None = None
    regularisation: float = 1e-5
    regulariser: ProximalTerm = field(default_factory=L1)
    loss: Loss = field(default_factory=Logistic)

    def __post_init__(self) -> None:
        require_positive_int("rounds", self.rounds)
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_positive("step_size", self.step_size)
        require_positive("penalty", self.penalty)
        if self.gamma is not None:
            require_positive("gamma", self.gamma)
        require_nonnegative("regularisation", self.regularisation)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[SplitState] = None
    ) -> SplitState:
        """Run all rounds from x = 0, u = 0 and return the last public state.

        Raises `InvalidParameter`, in a plan as well, where the model would run away (see `drift`).
        """
        dual = np.zeros(self.constraint.a.shape[0])
        return self.run(dataset, curator, dual, lambda g: g.sensitivity.root, observe)

    def run(
        self,
        dataset: PrivateDataset,
        curator: Curator,
        dual: FloatArray,
        unit: Callable[[Sensitive], Fraction],
        observe: Observer[SplitState],
    ) -> SplitState:
        """Run all rounds from u_0 = `dual`, with noise in multiples of `unit` of the gradient."""
        self.require_fits(dataset)
        self._require_settled()
        start = np.zeros(dataset.shape.parameters(self.loss))
        state = SplitState(start, np.zeros(self.constraint.split_dimension), dual)
        ahead, theta = state, 1.0
        for t in range(1, self.rounds + 1):
            gradient = dataset.mean_gradient(self.loss, ahead.x[..., None, :])
            noisy = curator.release(
                gradient,
                round=t,
                release="gradient",
                audience=Audience.PUBLIC,
                noise_std=float_up(Fraction(self.noise_multiplier) * unit(gradient)),
            )
            before, state = state, self.step(ahead, noisy[..., 0, :])
            ahead, theta = self._ahead(before, state, theta)
            if observe is not None:
                observe(t, state)
        return state

    def drift(self) -> float:
        """Return how far the regulariser and the constraint alone take a model of ones, in all
        rounds: its largest number, which is public. Beside an l2 term the extrapolated dual may run
        away (infinity where it overflows).
        """
        dual = np.zeros(self.constraint.a.shape[0])
        none = np.zeros(self.constraint.a.shape[1])
        state = SplitState(none + 1.0, np.zeros(self.constraint.split_dimension), dual)
        ahead, theta, most = state, 1.0, 1.0
        for _ in range(self.rounds):
            before, state = state, self.step(ahead, none)
            ahead, theta = self._ahead(before, state, theta)
            most = max(most, float(np.abs(state.x).max(initial=0.0)))
            if not most < _MOST_DRIFT:
                return inf
        return most

    def _require_settled(self) -> None:
        if self.drift() == inf:
            raise InvalidParameter(
                "regularisation",
                self.regularisation,
                f"smaller beside penalty={self.penalty:g} (with these steps the model runs away "
                "whatever the data), or accelerated=False",
            )

    def _ahead(
        self, before: SplitState, state: SplitState, theta: float
    ) -> tuple[SplitState, float]:
        """Return where the next round starts, and theta_{t+1}."""
        theta, weight = self._extrapolation(theta)
        x = state.x + weight * (state.x - before.x)
        return SplitState(x, state.y, state.u + weight * (state.u - before.u)), theta

    def step(self, at: SplitState, noisy_gradient: FloatArray) -> SplitState:
        """Return the state after one round, a public function (Algorithm 2, lines 2 to 4)."""
        constraint = self.constraint
        size = constraint.split_norm_squared
        pull = constraint.split_adjoint(constraint.residual(at.x, at.y) + at.u)
        y = self.regulariser.proximal(
            at.y - pull / size, self.regularisation / (self.penalty * size)
        )
        push = (constraint.residual(at.x, y) + at.u) @ constraint.a
        x = at.x - self._step_over_gamma() * (noisy_gradient + self.penalty * push)
        return SplitState(x, y, at.u + constraint.residual(x, y))

    def _step_over_gamma(self) -> float:
        least = self.step_size * self.penalty * self.constraint.norm_squared + 1.0
        return self.step_size / (least if self.gamma is None else self.gamma)

    def _extrapolation(self, theta: float) -> tuple[float, float]:
        """Return theta_{t+1} and the weight (theta_t - 1)/theta_{t+1} (lines 5 to 7)."""
        if not self.accelerated:
            return 1.0, 0.0
        after = (1.0 + sqrt(1.0 + 4.0 * theta**2)) / 2.0
        return after, (theta - 1.0) / after

    def require_fits(self, dataset: PrivateDataset) -> None:
        """Raise `InvalidParameter` for several parties, or a model of another width than A's."""
        _require_one_party(dataset)
        a, width = self.constraint.a, dataset.shape.parameters(self.loss)
        if a.shape[1] != width:
            raise InvalidParameter("constraint.a.shape", a.shape, f"(m, {width})")


@dataclass(frozen=True, slots=True)
class PublishedCentralisedDpAdmm:
    """DP-ADMM or DP-AccADMM as published: u_0 = -(1/rho)(Aᵀ)⁺ ∇f(x_0), from the raw gradient.

    y_1 is a function of u_0 and of nothing random, so epsilon is infinite. The noise is in units of
    c/n, the sensitivity that the proof of Theorem 1 states, which is half the one under
    replace-one; events carry the derived one.

    Args:
        algorithm: the repaired twin; its noise_multiplier is relative to c/n here.
        graph_penalty: of the sparse inverse covariance that gives W, learned from the records
            themselves (section V-A); None to keep the algorithm's public constraint.
    """

    algorithm: CentralisedDpAdmm
    graph_penalty: float | None = None

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[SplitState] = None
    ) -> SplitState:
        """Run all rounds from x = 0 and the published u_0; return the last public state."""
        _require_one_party(dataset)
        shape, algorithm = dataset.shape, self.algorithm
        unit = shape.gradient_bound(algorithm.loss) / shape.count
        if self.graph_penalty is not None:
            constraint = learned_fused_lasso(
                dataset, curator, penalty=self.graph_penalty, noise_multiplier=None
            )
            algorithm = replace(algorithm, constraint=constraint)
        algorithm.require_fits(dataset)
        dual = self.initial_dual(dataset, curator, algorithm.constraint)
        return algorithm.run(dataset, curator, dual, lambda _: unit, observe)

    def initial_dual(
        self, dataset: PrivateDataset, curator: Curator, constraint: Constraint
    ) -> FloatArray:
        """Return u_0 of shape (..., m)."""
        loss = self.algorithm.loss
        gradient = curator.release_unprotected(
            dataset.mean_gradient(loss, np.zeros(dataset.shape.parameters(loss))),
            reason="the initial dual variable is made of the raw gradient (Algorithms 2 and 3)",
            round=0,
            release="initial dual",
            audience=Audience.PUBLIC,
        )[..., 0, :]
        inverse = np.linalg.pinv(constraint.a)
        return -(gradient @ inverse) / self.algorithm.penalty


def learned_fused_lasso(
    dataset: PrivateDataset, curator: Curator, *, penalty: float, noise_multiplier: float | None
) -> Constraint:
    """Return y = [W; I] x, W the graph of a sparse inverse covariance of the records.

    Args:
        dataset: of one party.
        curator: of a single run; trials with noise would have a graph each.
        penalty: of the sparse inverse covariance, in units of the rows squared.
        noise_multiplier: noise_std / sensitivity of the second moment; None for no protection.
    """
    _require_one_party(dataset)
    moment, d = dataset.second_moment(), dataset.shape.features
    if noise_multiplier is None:
        message = curator.release_unprotected(
            moment,
            reason="the graph is learned from the records (section V-A)",
            round=0,
            release="second moment",
            audience=Audience.PUBLIC,
        )
    else:
        message = curator.release(
            moment,
            round=0,
            release="second moment",
            audience=Audience.PUBLIC,
            noise_multiplier=noise_multiplier,
        )
    trials = message.reshape(-1, d, d)
    if np.any(trials != trials[0]):
        raise InvalidParameter("trials", len(trials), "None to learn a graph with noise")
    return fused_lasso(d, inverse_covariance_edges(trials[0], penalty=penalty))


def _require_one_party(dataset: PrivateDataset) -> None:
    if len(dataset.shape.parties) != 1:
        raise InvalidParameter("parties", dataset.shape.parties, "a single one")


def theorem_1_noise_multiplier(
    rounds: int, *, epsilon: float, delta: float, mu: float = 0.5
) -> float:
    """Return sigma/(c/n) by which Theorem 1 promises (epsilon, delta).

    Equation 8: sqrt(alpha T/(2 epsilon mu)) with alpha = ln(1/delta)/((1 - mu) epsilon) + 1; the
    experiments use mu = 1/2 (section V-B).
    """
    require_positive_int("rounds", rounds)
    require_positive("epsilon", epsilon)
    require_open_unit("delta", delta)
    require_open_unit("mu", mu)
    alpha = -log(delta) / ((1.0 - mu) * epsilon) + 1.0
    return sqrt(alpha * rounds / (2.0 * epsilon * mu))
