"""Regularisers R(w): public functions of public iterates, so they cost no privacy."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..mechanisms.protocols import FloatArray


class Regulariser(Protocol):
    """A convex R with a (sub)gradient; `curvature` is sup ‖R''‖, None where R is not smooth."""

    @property
    def curvature(self) -> float | None: ...

    def value(self, w: FloatArray) -> FloatArray:
        """Return R along the last axis of w, of shape (..., d)."""
        ...

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return a fixed choice of subgradient at w, of shape (..., d)."""
        ...

    def gradient_bound(self, dimension: int) -> float | None:
        """Return sup ‖R'‖ over R^d (None where it is unbounded)."""
        ...


class ProximalTerm(Protocol):
    """A convex R whose proximal map has a closed form."""

    def value(self, w: FloatArray) -> FloatArray:
        """Return R along the last axis of w, of shape (..., d)."""
        ...

    def proximal(self, w: FloatArray, weight: float) -> FloatArray:
        """Return argmin over v of weight·R(v) + |v - w|²/2, of shape (..., d)."""
        ...


@dataclass(frozen=True, slots=True)
class L2:
    """R(w) = |w|²/2."""

    curvature: float | None = 1.0

    def value(self, w: FloatArray) -> FloatArray:
        """Return |w|²/2."""
        return np.asarray(0.5 * np.einsum("...d,...d->...", w, w))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return w."""
        return w

    def gradient_bound(self, dimension: int) -> float | None:
        """Return None: the gradient grows with w."""
        return None

    def proximal(self, w: FloatArray, weight: float) -> FloatArray:
        """Return w/(1 + weight)."""
        return w / (1.0 + weight)


@dataclass(frozen=True, slots=True)
class L1:
    """R(w) = |w|_1; the subgradient at 0 is 0."""

    curvature: float | None = None

    def value(self, w: FloatArray) -> FloatArray:
        """Return the sum of absolute values."""
        return np.asarray(np.abs(w).sum(axis=-1))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the signs of w."""
        return np.sign(w)

    def gradient_bound(self, dimension: int) -> float | None:
        """Return sqrt(d)."""
        return float(np.sqrt(dimension))

    def proximal(self, w: FloatArray, weight: float) -> FloatArray:
        """Return w with every coordinate moved towards 0 by `weight`, at most to 0."""
        return np.sign(w) * np.maximum(np.abs(w) - weight, 0.0)
