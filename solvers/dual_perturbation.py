"""Dual variable perturbation, DVP (Zhang and Zhu 2017): noise in front of the minimiser.

An agent adds noise b to its dual variable, minimises its part of the augmented Lagrangian and sends
the minimiser. That is objective perturbation. What is proved about it needs the *exact* minimiser
of a twice differentiable objective: then the noise can be read off the message, and a neighbour's
message changes its density by a bounded factor (Chaudhuri, Monteleoni, Sarwate 2011, Theorem 9;
Kifer, Smith, Thakurta 2012): `exact_minimiser_epsilon`. A point that a solver found to a tolerance
is another function of the data, and no such theorem speaks of it; nor does the sensitivity of a
minimiser, which prices noise *behind* it. So the published algorithm sends an unprotected release.

The repair moves the noise: noise b/m behind a minimiser of modulus m instead of b in front of it.
For linear losses that is the same message, and for convex ones b in front moves the minimiser by at
most |b|/m. Repaired so, DVP is `PvpAdmm` in a star and `PrAdmm` on a network.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log1p

import numpy as np

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.curators import Curator
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import InvalidParameter, require_nonnegative, require_positive
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray, Loss
from ..mechanisms.sensitive import Sensitive, linear_map
from ..mechanisms.sensitivity import sum_of_bounded
from .solver import Observer
from .star import PvpAdmm, StarState, agent_duals, server_step


@dataclass(frozen=True, slots=True)
class PublishedDvpAdmm:
    """ADMM in a star with dual variable perturbation as published: noise b of density ∝ e^(-|b|/s).

    The transcript shows b, which the paper's agents keep: a replay is a stronger adversary than
    theirs.

    Args:
        algorithm: the repaired twin; its own noise is not used.
        noise_scale: s, in units of the dual variable; 0 for no noise.
    """

    algorithm: PvpAdmm
    noise_scale: float

    def __post_init__(self) -> None:
        require_nonnegative("noise_scale", self.noise_scale)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[StarState] = None
    ) -> StarState:
        """Run all rounds and return the last public state."""
        twin = self.algorithm
        block = np.zeros((len(dataset.shape.parties), dataset.shape.parameters(twin.loss)))
        state = StarState(model=block[0], messages=block, duals=block)
        for k in range(1, twin.rounds + 1):
            noise = perturbing_noise(dataset, curator, twin.loss, scale=self.noise_scale, round=k)
            local = twin.agent_step(dataset, replace(state, duals=state.duals + noise))
            messages = send_as_found(curator, local, round=k)
            model = server_step(curator.collectives, messages, state.duals, twin.penalty)
            duals = agent_duals(messages, state.duals, model, twin.penalty)
            state = StarState(model, messages, duals)
            if observe is not None:
                observe(k, state)
        return state


def perturbing_noise(
    dataset: PrivateDataset,
    curator: Curator,
    loss: Loss,
    *,
    scale: float,
    round: int,
) -> FloatArray:
    """Return one vector a party of density ∝ exp(-|b|/scale), of shape (..., P, d).

    Its length is scale times half a chi-squared number with 2d degrees of freedom, its direction
    uniform. Noise comes from curators only: here as messages about nothing, which cost nothing.
    """
    width = dataset.shape.parameters(loss)
    nothing = linear_map(np.zeros((3 * width, width)), dataset.mean_gradient(loss, np.zeros(width)))
    normal = curator.release(nothing, round=round, release="perturbation", noise_std=1.0)
    lengths = 0.5 * scale * (normal[..., : 2 * width] ** 2).sum(axis=-1, keepdims=True)
    direction = normal[..., 2 * width :]
    sizes = np.linalg.norm(direction, axis=-1, keepdims=True)
    return np.asarray(lengths * direction / np.where(sizes > 0.0, sizes, 1.0))


def send_as_found(curator: Curator, local: Sensitive, *, round: int) -> FloatArray:
    """Return minimisers of perturbed objectives, of shape (..., P, d), sent without a mechanism."""
    return curator.release_unprotected(
        local,
        reason="objective perturbation is proved for exact minimisers, not for what a solver found",
        round=round,
        release="primal",
    )


def exact_minimiser_epsilon(
    shape: DataShape, loss: Loss, *, modulus: float, noise_scale: float
) -> float:
    """Return the epsilon of one message if agents sent exact minimisers of perturbed objectives.

    mean loss + (m/2)|v|² + <c + b, v>,  b of density ∝ e^(-|b|/s),  gradients <= G, l'' <= kappa,
    rows <= R, K outputs:
        replace-one 2G/(n s) + K ln(1 + kappa R²/(n m))    zero-out G/(n s) + the same

    The message v says b = -(mean gradient at v) - m v - c, which moves by 2G/n or G/n between
    neighbours. The determinant of its derivative is that of a matrix >= m to which one record adds
    at most kappa R²/n in K directions: a factor in [1, (1 + kappa R²/(n m))^K]. A renormalised
    mean, under add-remove-one, changes every direction: no bound is given.
    """
    require_positive("modulus", modulus)
    require_positive("noise_scale", noise_scale)
    if shape.adjacency is Adjacency.ADD_REMOVE_ONE:
        raise InvalidParameter("adjacency", shape.adjacency, "replace-one or zero-out-one")
    if loss.curvature_bound is None:
        raise InvalidParameter("loss", loss, "with a curvature bound (smooth)")
    moved = sum_of_bounded(shape.gradient_bound(loss), shape.adjacency).root / shape.count
    curvature = Fraction(loss.curvature_bound) * Fraction(float(shape.row_bound)) ** 2
    bent = curvature / (shape.count * Fraction(modulus))
    return float(moved / Fraction(noise_scale)) + loss.outputs * log1p(float(bent))
