"""DP-SGD for parties in a star: noisy sums of cut gradients (Abadi et al. 2016).

The problem is min (1/P) sum_i (1/n) sum_j l(<a_ij, w>, b_ij) + regularisation·R(w). In each round
every party sums the gradients of a hidden sample, or of all its records, each cut to a public norm,
divides by the expected number n·rate, adds noise and sends it; the server takes one step. One party
is the centralised algorithm. Sums are divided by a public number, so a record that comes or goes
moves them by one gradient only. The papers' comparison (Huang et al. 2020) has sampling ratio 1.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

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
from ..mechanisms.subsampling import Scheme
from .losses import Logistic
from .regularisers import L2, Regulariser
from .solver import Observer, require_start, starting_model
from .steps import Steps


@dataclass(frozen=True, slots=True)
class SgdState:
    """What is public after a round.

    Args:
        model: the server's w, of shape (..., d).
        messages: the parties' noisy gradients, of shape (..., P, d).
    """

    model: FloatArray
    messages: FloatArray


@dataclass(frozen=True, slots=True)
class DpSgd:
    """DP-SGD; every round is a Gaussian step, sampled where there is a scheme.

    Args:
        rounds: number of steps.
        noise_multiplier: noise_std / sensitivity of what a party sends; 0 is not private.
        steps: public step sizes.
        scheme: `Poisson` for add-remove-one and zero-out-one, `FixedBatch` for replace-one; None
            for all records in every round.
        clip: l2 norm that every record's gradient is cut to; None for the loss's own bound.
        regularisation: the weight of R.
        regulariser: R; a public function of public iterates.
        loss: l.
        start: the public model to start from, of d·K numbers; empty for 0.
    """

    rounds: int
    noise_multiplier: float
    steps: Steps
    scheme: Scheme | None = None
    clip: float | None = None
    regularisation: float = 1e-6
    regulariser: Regulariser = field(default_factory=L2)
    loss: Loss = field(default_factory=Logistic)
    start: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_positive_int("rounds", self.rounds)
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_nonnegative("regularisation", self.regularisation)
        if self.clip is not None:
            require_positive("clip", self.clip)
        require_start(self.start)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[SgdState] = None
    ) -> SgdState:
        """Run all rounds and return the last public state.

        Raises `InvalidParameter`, in a plan as well, for steps longer than 2/regularisation.
        """
        parties, width = len(dataset.shape.parties), dataset.shape.parameters(self.loss)
        state = SgdState(starting_model(self.start, width), np.zeros((dataset.rows, width)))
        for k in range(1, self.rounds + 1):
            gradient = self.party_gradients(dataset, curator, state.model)
            noise_std = self.noise_multiplier * gradient.sensitivity.value / sqrt(parties)
            size = self.steps.step(k, dimension=width, gradient_noise_std=noise_std)
            self._require_stable(size)
            messages = curator.release(
                gradient, round=k, release="gradient", noise_multiplier=self.noise_multiplier
            )
            pull = self.regularisation * self.regulariser.gradient(state.model)
            slope = curator.collectives.mean(messages) + pull
            state = SgdState(state.model - size * slope, messages)
            if observe is not None:
                observe(k, state)
        return state

    def _require_stable(self, size: float) -> None:
        """Raise, a plan too, for steps at which the regulariser alone drives the model away."""
        if isinstance(self.regulariser, L2) and size * self.regularisation > 2.0:
            raise InvalidParameter("step size", size, f"at most 2/{self.regularisation:.6g}")

    def party_gradients(
        self, dataset: PrivateDataset, curator: Curator, model: FloatArray
    ) -> Sensitive:
        """Return all parties' gradients at the model, of shape (..., P, d)."""
        point, count = model[..., None, :], dataset.shape.count
        if self.scheme is None:
            return dataset.sum_gradient(self.loss, point, radius=self.clip) / count
        sample = curator.sample(dataset, self.scheme)
        expected = float(self.scheme.rate(count) * count)
        return sample.sum_gradient(self.loss, point, radius=self.clip) / expected
