"""ADMM in a star: agents with private records, one server (Huang, Hu, Guo, Chan-Tin, Gong 2020).

The problem is min sum_i mean_j l(<a_ij, w_i>, b_ij) + regularisation·R(w_i)  subject to w_i = w,
where `regularisation` is the paper's λ/n. A multi-class model is the paper's matrix of shape (d, K)
as one vector, row by row. Every algorithm is one way to take an agent's step; the rounds, the
server's step and the dual step are common. Messages w̃_i go to the server; dual variables are
functions of messages. The model is the server's last w; the paper's losses are those of the agents'
own last w̃_i, and Theorems 3 and 4 and Figures 2 and 5 are about the means of all rounds' w̃_i.

Three algorithms:
  `DpAdmm`       Algorithm 3, repaired: the step's scale c_w is a public constant;
  `PublishedDpAdmm`  Algorithm 3 as published: c_w = ‖w*‖ from non-private pre-training;
  `PvpAdmm`      Algorithm 2: the exact minimiser plus noise; without noise, Algorithm 1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..mechanisms.collectives import Collectives
from ..mechanisms.curators import Curator
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_positive,
    require_positive_int,
)
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray, Loss
from ..mechanisms.sensitive import Sensitive
from .losses import Logistic
from .regularisers import L1, L2, Regulariser
from .schedules import noise_weights
from .solver import Observer, require_start, starting_model
from .steps import NonsmoothSteps, SmoothSteps, Steps


@dataclass(frozen=True, slots=True)
class StarState:
    """What is public after a round.

    Args:
        model: the server's w, of shape (..., d).
        messages: the agents' noisy w̃, of shape (..., P, d).
        duals: gamma, of shape (..., P, d).
    """

    model: FloatArray
    messages: FloatArray
    duals: FloatArray


def server_step(
    collectives: Collectives, messages: FloatArray, duals: FloatArray, penalty: float
) -> FloatArray:
    """Return w of shape (..., d): the mean over agents of w̃_i - gamma_i/rho (equation 10c)."""
    return collectives.mean(messages - duals / penalty)


def agent_duals(
    messages: FloatArray, duals: FloatArray, model: FloatArray, penalty: float
) -> FloatArray:
    """Return gamma_i - rho (w̃_i - w), of shape (..., P, d) (equation 10d)."""
    moved = model[..., None, :] - messages
    moved *= penalty
    moved += duals
    return moved


@dataclass(frozen=True, slots=True)
class _Rounds:
    """What all algorithms in a star share: the start, and what happens around an agent's step.

    Agents' points are multiplied by `weights` (P,) where they are sent; all start at the public
    `start`.
    """

    count: int
    penalty: float
    weights: FloatArray | None = None
    start: tuple[float, ...] = ()

    def run(
        self,
        dataset: PrivateDataset,
        collectives: Collectives,
        loss: Loss,
        agent: Callable[[int, StarState], Sensitive],
        send: Callable[[int, Sensitive], FloatArray],
        observe: Observer[StarState],
    ) -> StarState:
        weights = None if self.weights is None else dataset.own(self.weights)[:, None]
        model = starting_model(self.start, dataset.shape.parameters(loss))
        block = np.tile(model, (dataset.rows, 1))
        state = StarState(model=model, messages=block, duals=np.zeros_like(block))
        for k in range(1, self.count + 1):
            messages = send(k, agent(k, state))
            if weights is not None:
                messages = messages / weights
            model = server_step(collectives, messages, state.duals, self.penalty)
            duals = agent_duals(messages, state.duals, model, self.penalty)
            state = StarState(model, messages, duals)
            if observe is not None:
                observe(k, state)
        return state


@dataclass(frozen=True, slots=True)
class DpAdmm:
    """DP-ADMM, repaired: first-order agents' steps with a public schedule of step sizes.

    w_i = (rho w + w̃_i/eta_k + gamma_i - f_i'(w̃_i)) / (rho + 1/eta_k), plus noise of
    `noise_multiplier` times its sensitivity 2 c₁ / (m (rho + 1/eta_k)) (replace-one; Lemma 1).
    Every round costs 1/noise_multiplier² in mu², whatever the step size.

    Where the data have public `party_counts`, each agent's noise is in units of its own
    sensitivity (see `noise_weights`); steps go by the largest.

    Args:
        rounds: t.
        noise_multiplier: noise_std / sensitivity; 0 is not private and is priced at infinity.
        steps: public step sizes eta_k.
        penalty: rho.
        regularisation: λ/n, the weight of the regulariser in each agent's objective.
        regulariser: R; a public function of public iterates.
        loss: l.
        start: the public model to start from, of d·K numbers; empty for 0.
    """

    rounds: int
    noise_multiplier: float
    steps: Steps
    penalty: float = 0.1
    regularisation: float = 1e-6
    regulariser: Regulariser = field(default_factory=L2)
    loss: Loss = field(default_factory=Logistic)
    start: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_positive_int("rounds", self.rounds)
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_positive("penalty", self.penalty)
        require_nonnegative("regularisation", self.regularisation)
        require_start(self.start)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[StarState] = None
    ) -> StarState:
        """Run all rounds and return the last public state."""
        weights = None
        if len(set(dataset.shape.counts)) > 1:
            weights = noise_weights(dataset.shape.mean_sensitivities(self.loss))

        def send(k: int, local: Sensitive) -> FloatArray:
            return curator.release(
                local, round=k, release="primal", noise_multiplier=self.noise_multiplier
            )

        def agent(k: int, state: StarState) -> Sensitive:
            return self.agent_step(dataset, k, state, weights)

        rounds = _Rounds(self.rounds, self.penalty, weights, self.start)
        return rounds.run(dataset, curator.collectives, self.loss, agent, send, observe)

    def agent_step(
        self, dataset: PrivateDataset, k: int, state: StarState, weights: FloatArray | None = None
    ) -> Sensitive:
        """Return all agents' w_i of round k, of shape (..., P, d) (equations 10a, 39a).

        Each agent's is multiplied by its own of the public `weights` (P,). Raises
        `InvalidParameter`, in a plan as well, for steps at which the regulariser alone drives the
        model away.
        """
        gradient = dataset.mean_gradient(self.loss, state.messages, weights=weights)
        eta = self.steps.step(
            k,
            dimension=gradient.dimension,
            gradient_noise_std=self.noise_multiplier * gradient.sensitivity.value,
        )
        self._require_stable(eta, len(dataset.shape.parties))
        # in place: with hundreds of trials these sums cost as much memory traffic as the gradient
        public = state.messages / eta
        public += state.duals
        public += self.penalty * state.model[..., None, :]
        public -= self.regularisation * self.regulariser.gradient(state.messages)
        if weights is not None:
            public *= dataset.own(weights)[:, None]
        return (public - gradient) * (1.0 / (self.penalty + 1.0 / eta))

    def _require_stable(self, eta: float, parties: int) -> None:
        # without gradients the mean of all points is multiplied by 1 - r/(rho + 1/eta), r the
        # regularisation, and an agent's distance x to it, with its dual y, goes to
        # x' = (x/eta - r x + y)/(rho + 1/eta) and y' = y - rho x', whose roots are within the unit
        # circle where r < rho/2 + 2/eta (Jury's conditions)
        spare = self.regularisation - self.penalty * (2.0 if parties == 1 else 0.5)
        if isinstance(self.regulariser, L2) and spare * eta > 2.0:
            raise InvalidParameter("step size", eta, f"at most {2.0 / spare:.6g}")


@dataclass(frozen=True, slots=True)
class PublishedDpAdmm:
    """DP-ADMM as published: the step's c_w is ‖w*‖, found by non-private pre-training.

    Pre-training minimises the objective without noise and reads the norm of its model, rounded as
    in the paper's experiments (section VI: 23 and 89; how it pre-trained the paper does not say).
    Its messages leave without a mechanism, so epsilon is infinite; and the steps, hence the noise,
    depend on private data, so that a plan has to guess them: `planned_distance`.

    Args:
        algorithm: the repaired twin; the distance in its steps is replaced by the pre-trained one.
        pretraining_rounds: rounds without noise.
        planned_distance: what a plan assumes ‖w*‖ to be.
    """

    algorithm: DpAdmm
    pretraining_rounds: int
    planned_distance: float

    def __post_init__(self) -> None:
        require_positive_int("pretraining_rounds", self.pretraining_rounds)
        require_positive("planned_distance", self.planned_distance)
        if not isinstance(self.algorithm.steps, (SmoothSteps, NonsmoothSteps)):
            raise InvalidParameter("steps", self.algorithm.steps, "SmoothSteps or NonsmoothSteps")

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[StarState] = None
    ) -> StarState:
        """Pre-train without privacy, then run all rounds; return the last public state."""
        distance = self.pretrained_distance(dataset, curator)
        steps = self.algorithm.steps
        if isinstance(steps, (SmoothSteps, NonsmoothSteps)):
            steps = replace(steps, distance=distance)
        return replace(self.algorithm, steps=steps).solve(dataset, curator, observe=observe)

    def pretrained_distance(self, dataset: PrivateDataset, curator: Curator) -> float:
        """Return ‖w*‖ rounded to a whole number, at least 1; all trials must agree on it.

        Of a smooth loss by accelerated steps at the consensus, restarted where they turn back
        (O'Donoghue and Candès 2015), and with the proximal map of a regulariser that is not smooth
        (Beck and Teboulle 2009): Algorithm 3 itself would stop far short of w*. Of others by
        Algorithm 3 without noise.
        """
        loss, regulariser = self.algorithm.loss, self.algorithm.regulariser
        closed = regulariser.curvature is not None or isinstance(regulariser, L1)
        if loss.curvature_bound is None or not closed:
            model = self._unaccelerated(dataset, curator)
        else:
            smoothness = float(loss.curvature_bound) * dataset.shape.row_bound**2
            bent = self.algorithm.regularisation * (regulariser.curvature or 0.0)
            model = self._accelerated(dataset, curator, 1.0 / (smoothness + bent))
        return max(1.0, float(np.round(np.linalg.norm(model, axis=-1)).flat[0]))

    def _accelerated(self, dataset: PrivateDataset, curator: Curator, step: float) -> FloatArray:
        algorithm, width = self.algorithm, dataset.shape.parameters(self.algorithm.loss)
        weight, regulariser = algorithm.regularisation, algorithm.regulariser
        before = here = np.zeros(width)
        since = np.zeros(())
        for k in range(1, self.pretraining_rounds + 1):
            ahead = here + (since / (since + 3.0))[..., None] * (here - before)
            smooth = 0.0 if isinstance(regulariser, L1) else weight * regulariser.gradient(ahead)
            gradient = dataset.mean_gradient(algorithm.loss, ahead[..., None, :])
            local = (ahead - step * smooth)[..., None, :] - step * gradient
            found = curator.collectives.mean(self._unprotected(dataset, curator, k, local))
            if isinstance(regulariser, L1):
                found = regulariser.proximal(found, step * weight)
            before, here = here, found
            turned = np.einsum("...d,...d->...", ahead - here, here - before) > 0.0
            since = np.where(turned, 0.0, since + 1.0)
        return here

    def _unaccelerated(self, dataset: PrivateDataset, curator: Curator) -> FloatArray:
        noiseless = replace(self.algorithm, noise_multiplier=0.0)

        def send(k: int, local: Sensitive) -> FloatArray:
            return self._unprotected(dataset, curator, k, local)

        def agent(k: int, state: StarState) -> Sensitive:
            return noiseless.agent_step(dataset, k, state)

        rounds = _Rounds(self.pretraining_rounds, noiseless.penalty)
        collectives = curator.collectives
        return rounds.run(dataset, collectives, noiseless.loss, agent, send, None).model

    def _unprotected(
        self, dataset: PrivateDataset, curator: Curator, k: int, local: Sensitive
    ) -> FloatArray:
        width = dataset.shape.parameters(self.algorithm.loss)
        guess = np.full((len(dataset.shape.parties), width), self.planned_distance / np.sqrt(width))
        return curator.release_unprotected(
            local,
            reason="pre-training without noise sets c_w = |w*| (section VI)",
            round=0,
            release=f"pre-training {k}",
            stand_in=guess,
        )


@dataclass(frozen=True, slots=True)
class PvpAdmm:
    """ADMM with primal variable perturbation: exact agents' minimisers, plus noise (Algorithm 2).

    The minimiser has sensitivity 2 c₁/((λ/n + rho) m) under replace-one (Lemma 4), and
    2 tau/(λ/n + rho) more because it is found to a gradient norm of `tolerance` only, which the
    paper leaves out. R is ℓ2; rho alone makes the objective strongly convex. Each agent's noise is
    its own where the data have public `party_counts`, as in `DpAdmm`.

    Args:
        rounds: t.
        noise_multiplier: noise_std / sensitivity; None for Algorithm 1, which is not private.
        tolerance: tau, the certified gradient norm.
        penalty: rho.
        regularisation: λ/n.
        loss: l, smooth.
    """

    rounds: int
    noise_multiplier: float | None
    tolerance: float = 1e-6
    penalty: float = 0.1
    regularisation: float = 1e-6
    loss: Loss = field(default_factory=Logistic)

    def __post_init__(self) -> None:
        require_positive_int("rounds", self.rounds)
        if self.noise_multiplier is not None:
            require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_positive("tolerance", self.tolerance)
        require_positive("penalty", self.penalty)
        require_nonnegative("regularisation", self.regularisation)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[StarState] = None
    ) -> StarState:
        """Run all rounds and return the last public state."""
        weights = None
        if len(set(dataset.shape.counts)) > 1 and self.noise_multiplier is not None:
            weights = noise_weights(
                dataset.shape.argmin_sensitivities(
                    self.loss, modulus=self.modulus, tolerance=self.tolerance
                )
            )

        def agent(k: int, state: StarState) -> Sensitive:
            return self.agent_step(dataset, state, weights)

        def send(k: int, local: Sensitive) -> FloatArray:
            if self.noise_multiplier is None:
                return curator.release_unprotected(
                    local, reason="ADMM without privacy (Algorithm 1)", round=k, release="primal"
                )
            return curator.release(
                local, round=k, release="primal", noise_multiplier=self.noise_multiplier
            )

        rounds = _Rounds(self.rounds, self.penalty, weights)
        return rounds.run(dataset, curator.collectives, self.loss, agent, send, observe)

    @property
    def modulus(self) -> float:
        """Of strong convexity of every agent's objective."""
        return self.regularisation + self.penalty

    def agent_step(
        self, dataset: PrivateDataset, state: StarState, weights: FloatArray | None = None
    ) -> Sensitive:
        """Return all agents' minimisers of the augmented Lagrangian, of shape (..., P, d).

        Each agent's is multiplied by its own of the public `weights` (P,).
        """
        return dataset.strongly_convex_argmin(
            self.loss,
            modulus=self.modulus,
            linear=-(state.duals + self.penalty * state.model[..., None, :]),
            tolerance=self.tolerance,
            start=state.messages,
            weights=weights,
        )
