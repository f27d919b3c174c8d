"""Ridge problems on a ball, solved to a tolerance that public constants determine.

One party of vertically held data minimises, over |x| <= b,

    F(x) = <c, D x> + (rho/2)|D x|² + (m/2)|x|².

A point x̂ of the ball *meets the tolerance tau* if, x* the minimiser,

    |D(x̂ - x*)| <= tau/(2 sqrt(rho m))   and   |x̂ - x*| <= tau/m.

With A = rho DᵀD + m, the points x(nu) = -(A + nu)⁻¹Dᵀc, nu >= 0, grow shorter, and x* is the first
in the ball. With DᵀD = V diag(λ) Vᵀ they cost little, and nu is found by halving an interval a
number of times that public constants fix. What x̂ misses is rounding:

- A residual r of (A + nu)x̂ = -Dᵀc leaves e = x̂ - x(nu) with m|e|² + rho|De|² <= |r||e|, so that
  |e| <= |r|/m and |De| <= |r|/(2 sqrt(rho m)).
- A gap g between the lengths of x(nu) and x*: along x(nu), d|x|²/2 = -xᵀ(A + nu)⁻¹x dnu, while
  m|dx|² + rho|D dx|² <= xᵀ(A + nu)⁻¹x dnu², and xᵀ(A + nu)⁻¹x >= |x|²/|A + nu|. So the energy norm
  of x(nu) - x* is at most g sqrt(|A| + nu).

Both are bounded by sizes of public things: nothing stops, fails or takes longer because of the
data. That rests on LAPACK's eigenvalues being backward stable: |V diag(λ) Vᵀ - DᵀD| and |VᵀV - 1|
at most `_STABLE` (d + 16) units in the last place (Anderson et al. 1999, section 4.7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log2, sqrt

import numpy as np

from .clipping import inner_radius, largest_entry, lengths
from .errors import InvalidParameter
from .protocols import FloatArray
from .refusals import refuse_copies

_EPS = 2.0**-52
_UNIT = 2.0**-53
_STABLE = 16
_PARTS = 32
_SHARES = np.arange(_PARTS + 1) / _PARTS
"""Where an interval is divided, its own ends included."""


def require_reachable(
    tolerance: float,
    *,
    count: int,
    width: int,
    row_bound: float,
    sizes: float,
    penalty: float,
    modulus: float,
    radius: float,
) -> None:
    """Raise `InvalidParameter` unless every data set's minimiser meets the tolerance in doubles.

    For `count` rows of `width` numbers and of norm at most `row_bound`, and a public c with |c_i|
    that add up to at most `sizes`.
    """
    pull = row_bound * sizes
    gram = count * row_bound**2
    shift = pull / inner_radius(radius, width)  # bounds nu where x* is on the sphere
    radius = min(radius, pull / modulus)  # no minimiser is longer
    # sums over records err by their number, products with V and DᵀD by the number of columns
    size = pull + penalty * gram * radius
    units = count + 2 * width + 16 + 2 * _STABLE * (width + 16)
    # beside them, every product may underflow
    residual = _UNIT * units * (size + modulus * radius) + count * width * 2.0**-1074
    gap = 4.0 * _UNIT * (width + 8) * radius + residual / modulus
    reach = residual + 2.0 * gap * sqrt(modulus * (penalty * gram + modulus + shift))
    reach *= 1.0 + 1e-9
    if not reach <= tolerance:
        raise InvalidParameter(
            "tolerance",
            tolerance,
            f"at least {reach:.3g}, which double precision reaches; declare more (it is priced)",
        )


@refuse_copies
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BallRidge:
    """The problem's private part: rows D of shape (N, d), each of norm at most `row_bound`."""

    rows: FloatArray
    row_bound: float
    _gram: FloatArray = field(init=False)
    _values: FloatArray = field(init=False)
    _vectors: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        with np.errstate(all="ignore"):  # a warning would tell of the rows
            gram = self.rows.T @ self.rows
            values, vectors = np.linalg.eigh(gram)
        object.__setattr__(self, "_gram", gram)
        object.__setattr__(self, "_values", np.maximum(values, 0.0))
        object.__setattr__(self, "_vectors", vectors)

    def minimiser(
        self, pull: FloatArray, *, penalty: float, modulus: float, radius: float
    ) -> FloatArray:
        """Return x̂ of shape (..., d), c = `pull` of shape (..., N).

        It meets every tolerance that `require_reachable` accepts for |c_i| up to the entries here.
        """
        count, width = self.rows.shape
        inside = inner_radius(radius, width)
        curvatures = penalty * self._values + modulus
        linear = pull @ self.rows  # the one sweep over the rows
        turned = -linear @ self._vectors
        largest = largest_entry(pull) * count * self.row_bound / inside
        x = turned / (curvatures + _boundary_shift(turned, curvatures, inside, largest, modulus))
        x = x @ self._vectors.T
        longest = np.maximum(lengths(x), inside)[..., None]
        return np.asarray(x * (inside / longest))


def _boundary_shift(
    turned: FloatArray, curvatures: FloatArray, radius: float, largest: float, modulus: float
) -> FloatArray:
    """Return nu of shape (..., 1) in [0, `largest`] with |turned/(curvatures + nu)| = `radius`.

    Or 0 where that length is below the radius there. An error of nu moves the length by at most its
    share of the modulus, so that the divisions of the interval, of a public number, end at the last
    place. They are into `_PARTS`, whose lengths one operation finds, in place of halves.
    """
    low = np.zeros((*turned.shape[:-1], 1))
    high = np.full_like(low, largest)
    bits = 52 + max(0.0, log2(largest) - log2(modulus) if largest else 0.0)
    for _ in range(ceil(bits / log2(_PARTS))):
        wide = high - low
        ends = low + wide * _SHARES[1:]
        long = lengths(turned[..., None, :] / (curvatures + ends[..., None])) > radius
        long[..., -1] = False  # the interval's own end, where lengths were within the radius
        # the first end that is not long, and the one before: between them lies nu
        first = np.argmin(long, axis=-1)[..., None]
        low, high = (
            low + wide * _SHARES[first],
            np.where(first + 1 == _PARTS, high, low + wide * _SHARES[first + 1]),
        )
    return np.where(lengths(turned / curvatures)[..., None] > radius, high, 0.0)
