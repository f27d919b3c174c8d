"""Certified upper bounds on operator norms of public matrices.

A linear map multiplies a sensitivity by the operator norm of its matrix, so an approximation that
is too small would be an epsilon that is too small: the bound is a rational number that interval
arithmetic guarantees. Called by `Sensitive`, once for each matrix.

The l2 norm is the largest singular value: ‖A‖² = ‖AᵀA‖, and for a symmetric positive matrix B of
order n, ‖B‖ = ‖B^k‖^(1/k) <= ‖B^k‖_F^(1/k) <= n^(1/2k) ‖B‖, since the Frobenius norm adds up the
squares of n singular values of which none exceeds ‖B^k‖. Fourteen squarings make k = 2**14.
"""

from fractions import Fraction

import numpy as np
from flint import arb, arb_mat

from .ball_precision import precision
from .errors import InvalidParameter
from .protocols import FloatArray
from .sensitivity import Norm, root_up

_SQUARINGS = 14
"""Too large by a factor of at most d^(1/4k), k = 2**14: 1 + 1e-4 for d = 1,000."""

_BITS = 128
"""Of the balls: each squaring loses a few bits, and more than 53 are to be left."""


def operator_norm_up(matrix: FloatArray, norm: Norm = Norm.L2) -> Fraction:
    """Return a rational upper bound on the operator norm of `matrix`, of shape (m, d).

    l1 norm: the largest absolute column sum, exactly. l2 norm: the smaller of
    sqrt(largest column sum · largest row sum) (exact for permutations and diagonals) and
    ‖(AᵀA)^k‖_F^(1/2k) with k = 2**14, in ball arithmetic: at most d^(1/4k) too large.
    """
    if matrix.ndim != 2 or matrix.size == 0 or not np.all(np.isfinite(matrix)):
        raise InvalidParameter("matrix", matrix.shape, "a finite array of shape (m, d)")
    columns = _largest_row_sum(matrix.T)
    if norm is Norm.L1 or not columns:
        return columns
    return min(root_up(columns * _largest_row_sum(matrix)), _spectral_up(matrix))


def _largest_row_sum(matrix: FloatArray) -> Fraction:
    """Return the largest sum of absolute entries of a row, exactly."""
    return max(
        sum((abs(Fraction(float(x))) for x in row[row != 0.0]), Fraction(0)) for row in matrix
    )


def _spectral_up(matrix: FloatArray) -> Fraction:
    """Return ‖(AᵀA)^k‖_F^(1/2k), or that of AAᵀ where it is smaller, rounded up."""
    with precision(_BITS):
        a = arb_mat([[arb(float(x)) for x in row] for row in matrix])
        power = a.transpose() * a if a.ncols() <= a.nrows() else a * a.transpose()
        # ‖A‖² <= scale · ‖power‖_F^(1/k); renormalised at every squaring, so nothing overflows
        log_scale = arb(0)
        for step in range(_SQUARINGS + 1):
            size = _frobenius(power)
            log_scale += size.log() / arb(2) ** step
            if step < _SQUARINGS:
                power = power / size
                power = power * power
        upper = (log_scale / 2).exp().upper()
        mantissa, exponent = upper.man_exp()
        return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _frobenius(matrix: "arb_mat") -> "arb":
    """Return a ball around the square root of the sum of the squared entries."""
    total = arb(0)
    for entry in matrix.entries():
        total += entry * entry
    return total.sqrt()
