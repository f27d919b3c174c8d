"""Matrix mechanisms: C G + noise, rows of G being clipped gradients of the steps of a training.

A record takes part in several steps; how far they move C G together is the sensitivity of C under a
participation pattern: at most k steps, any two at least b apart. With unit vectors u_i in the steps
i of a pattern π,

    ‖Σ_i C e_i u_iᵀ‖² = Σ_{i,j in π} X_ij <u_i, u_j> <= Σ_{i,j in π} |X_ij|,    X = CᵀC,

and the largest sum is at most max_π Σ_i w_i with w_i = max_π' Σ_j |X_ij|, two searches over
patterns of one kind (exact where X_ij = 0 for |i - j| >= b, as for b bands: X_ii alone is left).

Source: Choquette-Choo, McMahan, Rush, Thakurta 2023, arXiv:2211.06530, Theorem 3.1 and section 2;
Choquette-Choo et al. 2023, arXiv:2306.08153, Theorem 2 (bands).

>>> round(participation_sensitivity([[1.0, 0.0], [0.5, 1.0]], separation=2), 6)
1.118034
"""

from collections.abc import Sequence
from math import frexp, inf, ldexp, nextafter, sqrt

import numpy as np
import numpy.typing as npt

from ..mechanisms.errors import InvalidParameter, require_positive_int

MOST_STEPS = 2048
"""The most rows or columns: a matrix of products takes steps² doubles, 32 MiB at this size."""
_MOST_PASSES = 128
"""Participations that are counted one by one, where fewer are allowed than fit."""
_UNIT = 2.0**-52
"""The spacing of doubles at 1, twice the largest relative error of one operation."""

FloatArray = npt.NDArray[np.float64]


def participation_sensitivity(
    matrix: Sequence[Sequence[float]] | FloatArray,
    *,
    separation: int,
    participations: int | None = None,
) -> float:
    """Return an upper bound on how far a record of norm 1 in each of its steps moves C G.

    Under zero-out; twice that where a record is replaced.

    Args:
        matrix: C, shape (m, n), one column a step; n at most `MOST_STEPS`.
        separation: the least distance b of two steps of one record; 1 allows all.
        participations: the most steps k of one record; as many as fit by default.

    Raises `InvalidParameter` for another shape, or numbers that are not finite.
    """
    require_positive_int("separation", separation)
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape or max(array.shape) > MOST_STEPS:
        raise InvalidParameter("matrix", array.shape, f"of shape (m, n), at most {MOST_STEPS}")
    if not np.isfinite(array).all() or np.abs(array).max() > 1e100:
        raise InvalidParameter("matrix", "not finite", "of finite numbers up to 1e100")
    steps = array.shape[1]
    most = -(-steps // separation)
    if participations is not None:
        require_positive_int("participations", participations)
        most = min(most, participations)
    # squares of small numbers would underflow: the largest is between a half and one
    exponent = frexp(float(np.abs(array).max()))[1]
    array = np.ldexp(array, -exponent)
    products = np.abs(array.T @ array)
    # each dot product of m terms is off by at most m units of the sum of magnitudes
    magnitudes = np.abs(array)
    products += (len(array) + 2) * _UNIT * (magnitudes.T @ magnitudes)
    weights = _heaviest(products, separation, most)
    total = float(_heaviest(weights[None, :], separation, most)[0])
    # two sums of at most `steps` terms, and a root
    root = nextafter(sqrt(total * (1 + (4 * steps + 8) * _UNIT)), inf)
    return nextafter(ldexp(root, exponent), inf)


def _heaviest(weights: FloatArray, separation: int, most: int) -> FloatArray:
    """Return, row by row of nonnegative weights, the largest sum over a pattern.

    best[i], over patterns in the first i steps, is the larger of best[i - 1] and weight_i + the
    best of patterns that end `separation` steps earlier. Where fewer steps than fit may be taken,
    that is one pass a participation; beyond `_MOST_PASSES` as many count as fit, which is no less.
    `weights` is of shape (rows, steps), the result of shape (rows,).
    """
    rows, steps = weights.shape
    fits = most * separation >= steps or most > _MOST_PASSES
    best = np.zeros((steps + 1, rows))
    for _ in range(1 if fits else most):
        following = best if fits else np.zeros_like(best)
        for i in range(1, steps + 1):
            taken = weights[:, i - 1] + best[max(0, i - separation)]
            np.maximum(following[i - 1], taken, out=following[i])
        best = following
    return np.asarray(best[steps])


def banded_toeplitz(coefficients: Sequence[float], steps: int) -> FloatArray:
    """Return the lower-triangular matrix of shape (steps, steps) with these diagonals.

    Args:
        coefficients: of the diagonals, the main one first; as many as there are bands.
        steps: n, at most `MOST_STEPS`.
    """
    require_positive_int("steps", steps)
    if not 0 < len(coefficients) <= steps <= MOST_STEPS:
        raise InvalidParameter("coefficients", len(coefficients), f"1 to {steps} numbers")
    matrix = np.zeros((steps, steps))
    for offset, coefficient in enumerate(coefficients):
        index = np.arange(offset, steps)
        matrix[index, index - offset] = coefficient
    return matrix
