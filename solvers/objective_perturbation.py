"""Objective perturbation with Gaussian noise: a random linear term; the exact minimiser is sent.

    v* = argmin mean_j l(<a_j, v>, y_j) + (m/2)|v|² + <b, v>,   b ~ N(0, s² I)

What is proved about it needs the *exact* minimiser, as of dual variable perturbation
(`dual_perturbation`): a point found to a tolerance is sent unprotected, and has no certificate.
`gaussian_objective_delta` says what the exact one would be worth.

Theorem (Kifer, Smith and Thakurta 2012, Theorem 2; with the tail of the noise in one direction in
place of its length: Redberg, Koskela and Wang 2023, Theorem 3.1). Let l be convex in its score and
twice differentiable, one output, |l'| <= G/R, l'' <= kappa, rows no longer than R, and
t = ln(1 + kappa R²/(n m)). Then for epsilon >= t + mu²/2 the minimiser has

    zero-out     delta <= 2·D(epsilon - t, mu),  mu = G/(n s)
    replace-one  delta <= 4·D(epsilon - t, mu),  mu = 2G/(n s)

where D(e, mu) = Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu) is delta of the Gaussian mechanism.

Proof. v says b = -(mean gradient at v) - m v, whose derivative by v has a determinant that one
record multiplies by 1 + u, 0 <= u <= kappa R²/(n m): two records' ratio lies within exp(±t). The
neighbour's b differs by g, the difference of two gradients at v over n, so the logarithms of the
noise's densities differ by (2<b, g> + |g|²)/(2 s²). Zero-out: g is along one row, so |<b, g>| is at
most (G/n)|N|, N normal with deviation s, and |g| <= G/n. So the privacy loss is at most
t + mu|N|/s + mu²/2, which grows with |N|; its two tails give 2·D. Replace-one: |<b, g>| is at most
G/n times the sum of the absolute values of b's projections on two unit vectors p and q, which is
the larger of |<b, p + q>| and |<b, p - q>|: each a normal number of deviation 2 s or less. With
|g| <= 2G/n the larger of two such losses adds at most both deltas: 4·D.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, inf, log1p

import numpy as np
from scipy.special import log_ndtr, ndtr

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.curators import Curator
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
)
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import Loss
from ..mechanisms.sensitive import linear_map
from .dual_perturbation import send_as_found
from .losses import Logistic
from .output_perturbation import OutputState
from .solver import Observer


@dataclass(frozen=True, slots=True)
class PublishedObjectivePerturbation:
    """Every party's minimiser of its perturbed objective, sent once, without a mechanism.

    Args:
        noise_std: s, of each number of the linear term of a party's mean objective.
        regularisation: m > 0.
        tolerance: gradient norm to which minimisers are found, > 0.
        loss: l, twice differentiable.
    """

    noise_std: float
    regularisation: float
    tolerance: float = 1e-8
    loss: Loss = field(default_factory=Logistic)

    def __post_init__(self) -> None:
        require_nonnegative("noise_std", self.noise_std)
        require_positive("regularisation", self.regularisation)
        require_positive("tolerance", self.tolerance)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[OutputState] = None
    ) -> OutputState:
        """Send every party's minimiser and return their mean."""
        origin = np.zeros(dataset.shape.parameters(self.loss))
        nothing = linear_map(
            np.zeros((origin.size, origin.size)), dataset.mean_gradient(self.loss, origin)
        )
        # noise comes from curators only: here as messages about nothing, which cost nothing
        noise = self.noise_std * curator.release(
            nothing, round=1, release="perturbation", noise_std=1.0
        )
        local = dataset.strongly_convex_argmin(
            self.loss,
            modulus=self.regularisation,
            linear=noise,
            tolerance=self.tolerance,
            start=origin,
        )
        messages = send_as_found(curator, local, round=1)
        state = OutputState(curator.collectives.mean(messages), messages)
        if observe is not None:
            observe(1, state)
        return state


def gaussian_objective_delta(
    shape: DataShape, loss: Loss, *, modulus: float, noise_std: float, epsilon: float
) -> float:
    """Return delta of exact minimisers at epsilon, by the theorem above; 1 where it says nothing.

    A double-precision figure for comparisons, no certificate.

    Args:
        shape: of the data; zero-out-one or replace-one.
        loss: with one output and a curvature bound, twice differentiable.
        modulus: m > 0.
        noise_std: s > 0.
        epsilon: >= 0.
    """
    require_positive("modulus", modulus)
    require_positive("noise_std", noise_std)
    require_nonnegative("epsilon", epsilon)
    if shape.adjacency is Adjacency.ADD_REMOVE_ONE:
        raise InvalidParameter("adjacency", shape.adjacency, "replace-one or zero-out-one")
    if loss.curvature_bound is None or loss.outputs != 1:
        raise InvalidParameter("loss", loss, "with one output and a curvature bound (smooth)")
    pairs = 2.0 if shape.adjacency is Adjacency.REPLACE_ONE else 1.0
    mu = pairs * float(shape.gradient_bound(loss)) / (shape.count * noise_std)
    bent = float(loss.curvature_bound) * shape.row_bound**2 / (shape.count * modulus)
    left = epsilon - log1p(bent)
    if left < mu**2 / 2.0:
        return 1.0
    tail = float(ndtr(mu / 2.0 - left / mu))
    return min(1.0, 2.0 * pairs * (tail - exp(left + float(log_ndtr(-mu / 2.0 - left / mu)))))


def objective_noise_std(
    shape: DataShape, loss: Loss, *, modulus: float, epsilon: float, delta: float
) -> float:
    """Return about the least s at which exact minimisers have delta at epsilon; infinite if none.

    Args as for `gaussian_objective_delta`; delta in (0, 1).
    """
    require_open_unit("delta", delta)

    def found(noise_std: float) -> float:
        return gaussian_objective_delta(
            shape, loss, modulus=modulus, noise_std=noise_std, epsilon=epsilon
        )

    low, high = 1e-12, 1e12
    if found(high) > delta:
        return inf
    while high > low * (1.0 + 1e-9):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if found(middle) <= delta else (middle, high)
    return high
