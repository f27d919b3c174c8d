"""Projection on a ball, whatever is rounded on the way, and cut gradients.

What is cut lies within its bound exactly, in real numbers: sensitivities rest on the norms of the
vectors that are kept, and what is computed from these is priced by `rounding`.
"""

from fractions import Fraction

import numpy as np

from .errors import require_magnitude
from .protocols import FloatArray
from .sensitivity import float_down

LENGTH_EXPONENT = 900
"""Norms are cut to bounds within 2^-900 and 2^900: nearer to the smallest double what underflows is
larger than the roundings that `inner_radius` leaves room for."""

SQUARE_EXPONENT = 230
"""Bounds that are squared, and multiplied by squares of scales, lie within 2^-230 and 2^230."""

_LEAST_FACTOR = 2.0**-960
"""A smaller slope, or factor of one, counts as 0: rounded up it could be twice as large."""

_SQUARES_FIT = (1e-140, 1e140)
"""Lengths whose squares neither overflow nor lose digits."""


def inner_radius(radius: float, width: int, *, sizes: float = 1.0) -> float:
    """Return what computed norms are cut to, so that the exact ones are within `radius`.

    The norm of d numbers errs relatively by at most (d/2 + 2)u, u = 2^-53: d squares, their sum in
    any order, the root of it (Higham 2002, section 3.1). With the division by the largest entry and
    the product that shrinks, an exact norm is at most (1 + (d/2 + 6)u) times what it was cut to.
    The room that is left is 2(d + 16)u, more than twice as much.

    Args:
        radius: l2 bound, positive.
        width: d, how many numbers a vector has.
        sizes: how many times rounding errors are larger, where a norm is computed from larger
            numbers.
    """
    return radius * (1.0 - sizes * (width + 16) * 2.0**-52)


def largest_entry(array: FloatArray) -> float:
    """Return the largest absolute value, NaN if there is one, 0 for an empty array."""
    # two reductions, without a copy as large as the array
    return max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))


def lengths(vectors: FloatArray) -> FloatArray:
    """Return l2 norms of vectors of shape (..., d), without under- or overflow of squares.

    Each is added up alike, whatever vectors stand beside it and however they lie in memory.
    """
    vectors = np.ascontiguousarray(vectors)
    if vectors.shape[-1] == 1:
        return np.abs(vectors[..., 0])
    with np.errstate(all="ignore"):
        found = np.asarray(np.linalg.norm(vectors, axis=-1))
        odd = ~((found > _SQUARES_FIT[0]) & (found < _SQUARES_FIT[1]))
        if np.any(odd):
            few = vectors[odd]
            largest = np.max(np.abs(few), axis=-1, keepdims=True, initial=0.0)
            units = few / np.where(largest > 0.0, largest, 1.0)
            found[odd] = np.linalg.norm(units, axis=-1) * largest[..., 0]
    return found


def longest_up(vectors: FloatArray) -> Fraction:
    """Return an upper bound on the l2 norms of finite vectors of shape (..., d), 0 for zeros.

    The sum of d squares and the root err relatively by at most (d + 8) units in the last place.
    """
    largest = largest_entry(vectors)
    if largest == 0.0:
        return Fraction(0)
    # of units, squares that underflow are far below the rounding errors that are added
    units = np.linalg.norm(vectors / largest, axis=-1).max(initial=0.0)
    return Fraction(largest) * Fraction(float(units) * (1.0 + (vectors.shape[-1] + 8) * 2.0**-52))


def project_to_ball(vectors: FloatArray, radius: float) -> FloatArray:
    """Return vectors of shape (..., d), those longer than `radius` scaled down to it.

    The l2 projection on a ball around 0, one vector at a time: no vector depends on another's, nor
    on how many there are or how they lie in memory, by which NumPy would choose the order in which
    it adds up. The ball is that of `inner_radius`, so that no exact norm is above `radius`.
    """
    vectors = np.ascontiguousarray(vectors)
    limit = inner_radius(radius, vectors.shape[-1])
    with np.errstate(all="ignore"):  # a warning would tell of the rows
        # measured in units of the largest entry, so that no square under- or overflows
        largest = np.max(np.abs(vectors), axis=-1, keepdims=True, initial=0.0)
        units = vectors / np.where(largest > 0.0, largest, 1.0)
        lengths = np.linalg.norm(units, axis=-1, keepdims=True)
        long = lengths * largest > limit
        return np.where(long, units * (limit / np.maximum(lengths, 1.0)), vectors)


def cut_bound(longest: Fraction, radius: float | None) -> Fraction:
    """Return the bound of vectors no longer than `longest` that are cut to `radius`, exactly.

    Raises `InvalidParameter` for a radius that is not positive, or out of range.
    """
    if radius is None:
        return longest
    require_magnitude("radius", radius, LENGTH_EXPONENT)
    return min(Fraction(float(radius)), longest)


def cut_slopes(
    slopes: FloatArray, norms: FloatArray, radius: float | None, width: int
) -> FloatArray:
    """Return slopes (..., K) of row ⊗ slope, those of products longer than `radius` scaled down.

    |row ⊗ slope| = |row|·|slope|, so that a gradient is cut without being written out: per-example
    clipping as in DP-SGD (Abadi et al. 2016).

    Args:
        slopes: of shape (..., K), a record's last.
        norms: the rows' l2 norms, of shape (...).
        radius: l2 bound; None for slopes as they are.
        width: of the product, d·K.
    """
    if radius is None:
        return slopes
    longest = lengths(slopes) * norms
    shrunk = np.minimum(1.0, inner_radius(radius, width) / np.maximum(longest, 1e-300))
    found = slopes * np.where(shrunk < _LEAST_FACTOR, 0.0, shrunk)[..., None]
    found[np.abs(found) < _LEAST_FACTOR] = 0.0
    return found


def cut_to_bound(slopes: FloatArray, bound: Fraction, outputs: int = 1) -> FloatArray:
    """Return slopes no longer than the bound, in float64 whatever they were computed in.

    NaNs are clipped too: a NaN would reveal the record whatever the noise.

    Args:
        slopes: of shape (...), or (..., K) for K > 1 outputs.
        bound: on their absolute value, or their l2 norm; kept exactly.
        outputs: K.
    """
    slopes, most = np.asarray(slopes, dtype=np.float64), float_down(bound)
    if outputs == 1:
        np.fmax(slopes, -most, out=slopes)
        return np.fmin(slopes, most, out=slopes)
    most = inner_radius(most, outputs)
    with np.errstate(all="ignore"):
        shrunk = most / np.maximum(lengths(slopes), most)
        slopes = slopes * np.where(shrunk < _LEAST_FACTOR, 0.0, shrunk)[..., None]
    return np.nan_to_num(slopes, copy=False)
