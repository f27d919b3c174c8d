"""Output perturbation: every party solves its own problem once, and sends the minimiser plus noise.

The problem of party i is min mean_j l(<a_ij, w>, b_ij) + (lambda/2)|w|². Its minimiser moves by at
most 2G/(lambda n) when a record is replaced (Chaudhuri, Monteleoni and Sarwate 2011, Lemma 8), and
by 2 tau/lambda more because it is found to a gradient norm of tau. The server averages what it is
sent. One release, no rounds: the baseline that every iterative algorithm has to beat; with one
party it is the central one.

Without a weight of one's own, lambda follows from the noise: averaged over P parties, z times the
sensitivity adds z·2G·R/(lambda n sqrt(P)) to the score of a row of length R, and lambda is what
makes that `SCORE_NOISE`.
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import require_nonnegative, require_positive
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray, Loss
from .losses import ClippedLogistic
from .schedules import noise_weights
from .solver import Observer

SCORE_NOISE = 0.6
"""Standard deviation of the noise in a score; of 0.3, 0.6, 1.2 and 2.4 the best or near it on
development records of Adult, with one party and with 100."""

_RELATIVE_TOLERANCE = 0.01
"""tau of a record's part in the gradient, G/n: the noise is larger by as much."""


@dataclass(frozen=True, slots=True)
class OutputState:
    """What is public after the release.

    Args:
        model: the mean of the messages, of shape (..., d).
        messages: the parties' noisy minimisers, of shape (..., P, d).
    """

    model: FloatArray
    messages: FloatArray


@dataclass(frozen=True, slots=True)
class OutputPerturbation:
    """Regularised minimisers, released once with Gaussian noise.

    Args:
        noise_multiplier: noise_std / sensitivity; 0 is not private.
        regularisation: lambda > 0; None for what the noise asks for.
        loss: l, convex and smooth.
    """

    noise_multiplier: float
    regularisation: float | None = None
    loss: Loss = field(default_factory=ClippedLogistic)

    def __post_init__(self) -> None:
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        if self.regularisation is not None:
            require_positive("regularisation", self.regularisation)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[OutputState] = None
    ) -> OutputState:
        """Release every party's minimiser and return the public state."""
        shape = dataset.shape
        modulus = self.modulus(shape)
        tolerance = _RELATIVE_TOLERANCE * float(shape.gradient_bound(self.loss)) / shape.count
        weights = None
        if len(set(shape.counts)) > 1:
            weights = noise_weights(
                shape.argmin_sensitivities(self.loss, modulus=modulus, tolerance=tolerance)
            )
        origin = np.zeros(shape.parameters(self.loss))
        local = dataset.strongly_convex_argmin(
            self.loss,
            modulus=modulus,
            linear=origin,
            tolerance=tolerance,
            start=origin,
            weights=weights,
        )
        messages = curator.release(
            local, round=1, release="minimiser", noise_multiplier=self.noise_multiplier
        )
        state = OutputState(curator.collectives.mean(messages, weights), messages)
        if observe is not None:
            observe(1, state)
        return state

    def modulus(self, shape: DataShape) -> float:
        """Return lambda."""
        if self.regularisation is not None:
            return self.regularisation
        reach = 2.0 * float(shape.gradient_bound(self.loss)) * shape.row_bound
        noise = max(self.noise_multiplier, 2.0**-10) * reach
        return noise / (shape.count * sqrt(len(shape.parties)) * SCORE_NOISE)
