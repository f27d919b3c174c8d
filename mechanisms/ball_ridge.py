"""Ridge problems on a ball, solved to a certified tolerance.

One party of vertically held data minimises, over |x| <= b,

    F(x) = <c, D x> + (rho/2)|D x|² + (m/2)|x|².

A point x̂ of the ball *meets the tolerance tau* if for some nu >= 0

    |grad F(x̂) + nu x̂|² + 4 m nu |x̂| (b - |x̂|) <= tau².

Then |D(x̂ - x*)| <= tau/(2 sqrt(rho m)) and |x̂ - x*| <= tau/m for the minimiser x*: with e = x̂ - x*
and g = grad F(x̂) + nu x̂, optimality of x* and strong convexity give
m|e|² + rho|De|² <= <grad F(x̂), e> <= |g||e| + nu(|x̂|b - |x̂|²), and tau bounds what that allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .clipping import HEADROOM
from .errors import InexactArgmin
from .protocols import FloatArray

__all__ = ["BallRidge"]

_EPS = 2.0**-52
_NEWTON_STEPS = 100


@dataclass(frozen=True, slots=True, eq=False)
class BallRidge:
    """The problem's private part: rows D of shape (N, d), each of norm at most `row_bound`."""

    rows: FloatArray
    row_bound: float
    _gram: FloatArray = field(init=False, repr=False)
    _values: FloatArray = field(init=False, repr=False)
    _vectors: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        gram = self.rows.T @ self.rows
        values, vectors = np.linalg.eigh(gram)
        object.__setattr__(self, "_gram", gram)
        object.__setattr__(self, "_values", np.maximum(values, 0.0))
        object.__setattr__(self, "_vectors", vectors)

    def minimiser(
        self, pull: FloatArray, *, penalty: float, modulus: float, radius: float, tolerance: float
    ) -> FloatArray:
        """Return x̂ of shape (..., d) that meets the tolerance, c = `pull` of shape (..., N).

        Raises `InexactArgmin` when double precision does not reach the tolerance.
        """
        ball = radius * HEADROOM
        # computed norms err by less than (d + 4) units in the last place
        width = self.rows.shape[1]
        inside = ball * (1.0 - 2.0 * (width + 4) * _EPS)
        curvatures = penalty * self._values + modulus
        linear = pull @ self.rows  # the one sweep over the rows
        turned = -linear @ self._vectors
        shift = _boundary_shift(turned, curvatures, inside)
        x = (turned / (curvatures + shift)) @ self._vectors.T
        lengths = np.linalg.norm(x, axis=-1, keepdims=True)
        x = x * np.minimum(1.0, inside / np.maximum(lengths, inside))
        size = np.abs(pull).sum(axis=-1)
        worst = self._tolerance_up(x, linear, size, penalty, modulus, ball)
        if not float(worst.max(initial=0.0)) <= tolerance:
            # what was reached is a function of private data: it stays out of the message
            raise InexactArgmin(
                f"Expected to certify a tolerance <= {tolerance:g}; nothing was released. "
                "Declare a larger tolerance (it is priced)."
            )
        return np.asarray(x)

    def _tolerance_up(
        self,
        x: FloatArray,
        linear: FloatArray,
        size: FloatArray,
        penalty: float,
        modulus: float,
        ball: float,
    ) -> FloatArray:
        """Return upper bounds (...) on the tolerance that x meets, with nu = 0 or the best nu.

        `linear` is the computed Dᵀc of shape (..., d), and `size` |c|_1.
        """
        bent = x @ self._gram
        gradient = linear + penalty * bent + modulus * x
        count, width = self.rows.shape
        # A sum of n terms errs by at most (n + 8) eps times the sum of the terms' sizes: Dᵀc by
        # that of row_bound |c|_1, and the Gram matrix, as |D|ᵀ|D| has at most the norm of N rows'
        # squares, by that of N row_bound², which is also its own size in the product with x.
        sizes = self.row_bound * (size + 2.0 * count * penalty * self.row_bound * ball)
        terms = np.linalg.norm(linear, axis=-1) + penalty * np.linalg.norm(bent, axis=-1)
        rounding = _EPS * (
            (count + width + 16) * sizes + (width + 16) * 4.0 * (terms + modulus * ball)
        )
        lengths = np.linalg.norm(x, axis=-1)
        squared = np.maximum(lengths**2, np.finfo(np.float64).tiny)
        shift = np.maximum(0.0, -np.einsum("...d,...d->...", gradient, x) / squared)
        gap = np.maximum(0.0, ball - lengths) + _EPS * (width + 4) * ball
        free = np.linalg.norm(gradient, axis=-1) + rounding
        held = np.linalg.norm(gradient + shift[..., None] * x, axis=-1) + rounding
        held = held + _EPS * (width + 16) * shift * lengths
        bound = np.sqrt(held**2 + 4.0 * modulus * shift * lengths * gap)
        return np.asarray(np.minimum(free, bound) * (1.0 + 1e-9))


def _boundary_shift(turned: FloatArray, curvatures: FloatArray, radius: float) -> FloatArray:
    """Return nu >= 0 of shape (..., 1) for which |turned/(curvatures + nu)| is at most `radius`.

    Newton's method on 1/|x(nu)|, which is concave: it climbs from 0 without passing the root
    (Conn, Gould, Toint 2000, section 7.3).
    """
    shift = np.zeros((*turned.shape[:-1], 1))
    for _ in range(_NEWTON_STEPS):
        x = turned / (curvatures + shift)
        lengths = np.linalg.norm(x, axis=-1, keepdims=True)
        excess = lengths / radius - 1.0
        if float(excess.max(initial=0.0)) <= 4.0 * _EPS:
            break
        slope = (x**2 / (curvatures + shift)).sum(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            step = excess * lengths**2 / slope
        shift = shift + np.where(excess > 0.0, step, 0.0)
    return shift
