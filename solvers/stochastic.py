"""PS-ADMM: stochastic ADMM with noisy gradients in a star.

Source: Ding, Errapotu, Zhang, Gong, Pan, Han 2019.

The problem is min sum_i mean_j l(<a_ij, x_i>, b_ij) + regularisation·R(z)  subject to x_i = z. In
each round every provider takes S gradient steps on its part of the augmented Lagrangian and sends
an average x_i of its iterates. Here every noisy gradient is a message: the x_i that really travel
are functions of them, and so are z and the dual variables.

Three algorithms, which differ in the noisy gradient only:
  `PublishedPsAdmm`  as published: full gradient at x^k plus the correction of one random record;
  `PsAdmm`           repaired (R-A): the full gradient at every step, without a sample;
  `SampledPsAdmm`    repaired (R-B): one noisy full gradient a round, then clipped corrections of a
                     hidden sample, which amplification rules cover.
And two averages of iterates: `PrintedWeights`, which is no convex combination, and `ConvexWeights`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log, sqrt
from typing import Protocol

import numpy as np

from ..mechanisms.collectives import Collectives
from ..mechanisms.curators import Curator
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray, Loss
from ..mechanisms.subsampling import FixedBatch, Scheme
from .losses import Logistic
from .regularisers import L2, ProximalTerm
from .solver import Observer
from .star import StarState


class InnerWeights(Protocol):
    """How an inner step's two ends enter the average that is sent."""

    def of_next(self, relative_step: float) -> float:
        """Return the weight of v^{s+1}; v^s has the rest, to make one.

        `relative_step` is eta·nu, the step size times the smoothness of the inner objective.
        """
        ...


@dataclass(frozen=True, slots=True)
class PrintedWeights:
    """xi/(2 eta) = 2/(1 - 2 eta nu), as printed: above 2, so v^s has a weight below -1."""

    def of_next(self, relative_step: float) -> float:
        """Return 2/(1 - 2 eta nu), for eta nu in (0, 1/2)."""
        if not 0 < relative_step < 0.5:
            raise InvalidParameter("step_size * smoothness", relative_step, "in (0, 1/2)")
        return 2.0 / (1.0 - 2.0 * relative_step)


@dataclass(frozen=True, slots=True)
class ConvexWeights:
    """xi/(2 eta) = 1/(2 - eta nu), corrected: a convex combination for eta nu <= 1.

    One inner step lowers the objective by eta(1 - eta nu/2)|grad|², less the noise's part; that
    gives xi = 2 eta/(2 - eta nu) where the paper's Lemma 2 loses a factor.
    """

    def of_next(self, relative_step: float) -> float:
        """Return 1/(2 - eta nu), for eta nu in (0, 1]."""
        if not 0 < relative_step <= 1:
            raise InvalidParameter("step_size * smoothness", relative_step, "in (0, 1]")
        return 1.0 / (2.0 - relative_step)


NoisyGradient = Callable[[int, FloatArray], FloatArray]
"""Returns a noisy gradient of the data term at v, of shape (..., P, d), for inner step s."""


@dataclass(frozen=True, slots=True)
class StochasticRounds:
    """What all variants share: S steps of each provider, the server's step and the dual step.

    What differs from the paper's Algorithm 2: the inner loop runs over s = 0, ..., S-1, since the
    printed s = 1, ..., S-1 starts at a v^1 that nothing defines, and so averages S steps; x, z and
    the dual variables start at 0, where nothing is printed; the regulariser `L2` is half the
    squared norm, so that `regularisation` is twice the weight that section 5 prints; and of the
    printed outputs, the last x_i and z, the model is z.

    Args:
        rounds: K.
        inner_steps: S.
        step_size: eta.
        penalty: rho.
        regularisation: the weight of R in the sum over providers.
        regulariser: R, with a closed proximal map.
        loss: l, smooth.
    """

    rounds: int
    inner_steps: int
    step_size: float
    penalty: float = 0.1
    regularisation: float = 1e-6
    regulariser: ProximalTerm = field(default_factory=L2)
    loss: Loss = field(default_factory=Logistic)

    def __post_init__(self) -> None:
        require_positive_int("rounds", self.rounds)
        require_positive_int("inner_steps", self.inner_steps)
        require_positive("step_size", self.step_size)
        require_positive("penalty", self.penalty)
        require_nonnegative("regularisation", self.regularisation)

    def run(
        self,
        dataset: PrivateDataset,
        collectives: Collectives,
        weights: InnerWeights,
        gradient_of: Callable[[int, FloatArray], NoisyGradient],
        observe: Observer[StarState],
    ) -> StarState:
        """Run all rounds; `gradient_of(k, x)` prepares round k, which starts at x.

        Args:
            dataset: whose providers are here; x has a row for each of them.
            collectives: that take the mean over all providers.
            weights: of iterates in the average.
            gradient_of: called with k and x, in order.
            observe: called after every round.
        """
        shape = dataset.shape
        weight = weights.of_next(self.step_size * self.smoothness(shape))
        block = np.zeros((dataset.rows, shape.parameters(self.loss)))
        state = StarState(model=block[0], messages=block, duals=block)
        for k in range(1, self.rounds + 1):
            x = self.provider_steps(state, weight, gradient_of(k, state.messages))
            centre = collectives.mean(x + state.duals / self.penalty)
            z = self.server_step(centre, len(shape.parties))
            duals = state.duals + self.penalty * (x - z[..., None, :])
            state = StarState(z, x, duals)
            if observe is not None:
                observe(k, state)
        return state

    def smoothness(self, shape: DataShape) -> float:
        """Return nu, a bound on the curvature of a provider's augmented Lagrangian."""
        curvature = self.loss.curvature_bound
        if curvature is None:
            raise InvalidParameter("loss", self.loss, "with a curvature bound (smooth)")
        return float(curvature) * shape.row_bound**2 + self.penalty

    def provider_steps(
        self, state: StarState, weight: float, gradient: NoisyGradient
    ) -> FloatArray:
        """Return all providers' averages, of shape (..., P, d) (Algorithm 2, lines 7 to 14)."""
        v, total = state.messages, np.zeros_like(state.messages)
        for s in range(self.inner_steps):
            pull = state.duals + self.penalty * (v - state.model[..., None, :])
            following = v - self.step_size * (gradient(s, v) + pull)
            total = total + (1.0 - weight) * v + weight * following
            v = following
        return total / self.inner_steps

    def server_step(self, centre: FloatArray, providers: int) -> FloatArray:
        """Return z of shape (..., d): the proximal map at the mean of x_i + lambda_i/rho."""
        weight = self.regularisation / (self.penalty * providers)
        return self.regulariser.proximal(centre, weight)


@dataclass(frozen=True, slots=True)
class PublishedPsAdmm:
    """PS-ADMM as published: SVRG steps on one record, under replace-one.

    The full gradient in every step is not sampled: between neighbours it always moves by up to
    2G/M, and by up to 4G more when the differing record is drawn. In a round's first step the
    correction is zero; it is priced like the others.

    Args:
        settings: the rounds.
        noise_std: of every noisy gradient; see `theorem_2_noise_std`.
        weights: of iterates in the average.
    """

    settings: StochasticRounds
    noise_std: float
    weights: InnerWeights = field(default_factory=PrintedWeights)

    def __post_init__(self) -> None:
        require_nonnegative("noise_std", self.noise_std)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[StarState] = None
    ) -> StarState:
        """Run all rounds and return the last public state."""
        loss = self.settings.loss

        def prepare(k: int, anchor: FloatArray) -> NoisyGradient:
            full = dataset.mean_gradient(loss, anchor)

            def gradient(s: int, v: FloatArray) -> FloatArray:
                sample = curator.sample(dataset, FixedBatch(1))
                correction = sample.sum_gradient(loss, v) - sample.sum_gradient(loss, anchor)
                return curator.release(
                    correction + full, round=k, release=f"gradient {s}", noise_std=self.noise_std
                )

            return gradient

        return self.settings.run(dataset, curator.collectives, self.weights, prepare, observe)


@dataclass(frozen=True, slots=True)
class PsAdmm:
    """PS-ADMM with full gradients (R-A): K·S Gaussian steps of sensitivity 2G/M (replace-one).

    Args:
        settings: the rounds.
        noise_multiplier: noise_std / sensitivity of every noisy gradient; 0 is not private.
        weights: of iterates in the average.
    """

    settings: StochasticRounds
    noise_multiplier: float
    weights: InnerWeights = field(default_factory=ConvexWeights)

    def __post_init__(self) -> None:
        require_nonnegative("noise_multiplier", self.noise_multiplier)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[StarState] = None
    ) -> StarState:
        """Run all rounds and return the last public state."""

        def prepare(k: int, anchor: FloatArray) -> NoisyGradient:
            def gradient(s: int, v: FloatArray) -> FloatArray:
                return curator.release(
                    dataset.mean_gradient(self.settings.loss, v),
                    round=k,
                    release=f"gradient {s}",
                    noise_multiplier=self.noise_multiplier,
                )

            return gradient

        return self.settings.run(dataset, curator.collectives, self.weights, prepare, observe)


@dataclass(frozen=True, slots=True)
class SampledPsAdmm:
    """PS-ADMM with a noisy snapshot and clipped corrections of a hidden sample (R-B).

    A round costs one Gaussian step for the full gradient at x^k, which serves all its steps, and
    S - 1 sampled ones. Corrections are divided by the expected sample of a party with as many
    records as the data's public count: give providers about equally many.

    Args:
        settings: the rounds.
        scheme: `Poisson` for add-remove-one and zero-out-one, `FixedBatch` for replace-one.
        correction_bound: C; a record's correction is cut to this norm.
        snapshot_noise_multiplier: noise_std / sensitivity of the full gradients.
        correction_noise_multiplier: noise_std / sensitivity of the corrections.
        weights: of iterates in the average.
    """

    settings: StochasticRounds
    scheme: Scheme
    correction_bound: float
    snapshot_noise_multiplier: float
    correction_noise_multiplier: float
    weights: InnerWeights = field(default_factory=ConvexWeights)

    def __post_init__(self) -> None:
        require_positive("correction_bound", self.correction_bound)
        require_nonnegative("snapshot_noise_multiplier", self.snapshot_noise_multiplier)
        require_nonnegative("correction_noise_multiplier", self.correction_noise_multiplier)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[StarState] = None
    ) -> StarState:
        """Run all rounds and return the last public state."""
        loss, count = self.settings.loss, dataset.shape.count
        expected = float(self.scheme.rate(count) * count)

        def prepare(k: int, anchor: FloatArray) -> NoisyGradient:
            snapshot = curator.release(
                dataset.mean_gradient(loss, anchor),
                round=k,
                release="snapshot",
                noise_multiplier=self.snapshot_noise_multiplier,
            )

            def gradient(s: int, v: FloatArray) -> FloatArray:
                if s == 0:
                    return snapshot
                correction = curator.sample(dataset, self.scheme).sum_correction(
                    loss, v, anchor=anchor, radius=self.correction_bound
                )
                return snapshot + curator.release(
                    correction / expected,
                    round=k,
                    release=f"correction {s}",
                    noise_multiplier=self.correction_noise_multiplier,
                )

            return gradient

        return self.settings.run(dataset, curator.collectives, self.weights, prepare, observe)


def theorem_2_noise_std(
    settings: StochasticRounds, shape: DataShape, *, epsilon: float, delta: float, constant: float
) -> float:
    """Return sqrt(c K S ln(1/delta))·G/(M epsilon), said to give (epsilon, delta) for "some" c."""
    require_positive("epsilon", epsilon)
    require_open_unit("delta", delta)
    require_positive("constant", constant)
    steps = settings.rounds * settings.inner_steps
    bound = float(shape.gradient_bound(settings.loss))
    return sqrt(constant * steps * -log(delta)) * bound / (shape.count * epsilon)
