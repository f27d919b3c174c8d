"""Losses of generalised linear models, with the constants that sensitivities and steps rest on.

>>> import numpy as np
>>> Logistic().derivative(np.array([0.0]), np.array([1.0]))
array([-0.5])
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import expit

from ..mechanisms.protocols import FloatArray

__all__ = ["LinearLoss", "Logistic"]


@dataclass(frozen=True, slots=True)
class Logistic:
    """l(s, y) = ln(1 + exp(-y s)), y = ±1: |l'| <= 1, 0 <= l'' <= 1/4."""

    derivative_bound: Fraction = Fraction(1)
    curvature_bound: Fraction | None = Fraction(1, 4)
    label_gap_bound: Fraction = Fraction(1)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss, elementwise; never overflows."""
        return np.logaddexp(0.0, -labels * scores)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return -y/(1 + exp(y s)), elementwise."""
        slope = expit(np.multiply(scores, -labels))
        slope *= -labels
        return slope


@dataclass(frozen=True, slots=True)
class LinearLoss:
    """l(s, y) = y s: the calculus' worst case, whose gradient y·row always has the full norm.

    Flipping one label moves a mean gradient by exactly 2·‖row‖/n: an attack on it measures the
    whole of what replace-one sensitivities price.
    """

    derivative_bound: Fraction = Fraction(1)
    curvature_bound: Fraction | None = Fraction(0)
    label_gap_bound: Fraction = Fraction(2)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return y·s, elementwise."""
        return labels * scores

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return y, elementwise."""
        return np.broadcast_to(labels, np.broadcast_shapes(scores.shape, labels.shape)).copy()
