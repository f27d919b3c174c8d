"""Exact random decisions: is a uniform real number below a computable one?

A uniform real U in [0, 1) is a sequence of random bits, read as far as a decision needs them. With
its first 32 bits u, U lies in [u, u+1)·2^-32. A double-precision value with a proven error bound
decides nearly always; where it cannot (about once in 2^30), more bits of U are drawn and the bound
is enclosed by decimal arithmetic until the two intervals part. Either way the answer is that of
exact real arithmetic: a coin of probability e^-γ lands on heads with probability e^-γ, and the
answers are the same on every platform.
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
WordSource = Callable[[int], Words]
"""Returns that many fresh words of 64 independent fair bits."""

Interval = tuple[Fraction, Fraction]

EXP_ERROR = 2.0**-34
"""Bound on |exp_minus(γ) - e^-γ|, proved beside `exp_minus`."""

_LARGEST = 24.0
"""Arguments are cut here."""

_COEFFICIENTS = tuple((-1.0) ** n / factorial(n) / 16.0**n for n in range(9, -1, -1))


class UniformReal:
    """A uniform real number in [0, 1) of which only the leading bits are drawn so far."""

    __slots__ = ("bits", "leading")

    def __init__(self, leading: int, bits: int) -> None:
        self.leading = leading
        self.bits = bits

    @property
    def interval(self) -> Interval:
        """What the drawn bits say: the number lies in [low, high)."""
        return Fraction(self.leading, 1 << self.bits), Fraction(self.leading + 1, 1 << self.bits)

    def refine(self, words: WordSource) -> None:
        """Draw 64 more bits."""
        self.leading = self.leading << 64 | int(words(1)[0])
        self.bits += 64

    def is_below(self, enclosure: Callable[[int], Interval], words: WordSource) -> bool:
        """Return whether this number is below the one that `enclosure` encloses.

        Args:
            enclosure: returns an interval around the bound from a number of decimal digits; its
                width must tend to 0.
            words: where further bits come from.
        """
        digits = 40
        while True:
            (own_low, own_high), (low, high) = self.interval, enclosure(digits)
            if own_high <= low:
                return True
            if own_low >= high:
                return False
            self.refine(words)
            digits += 20


class KnownReal(UniformReal):
    """A rational number in [0, 1), all of which is known."""

    __slots__ = ("value",)

    def __init__(self, value: Fraction) -> None:
        super().__init__(0, 0)
        self.value = value

    @property
    def interval(self) -> Interval:
        """The number itself, twice."""
        return self.value, self.value

    def refine(self, words: WordSource) -> None:
        """Draw nothing."""


def exp_minus_bounds(gamma: Interval, digits: int) -> Interval:
    """Enclose e^-γ for all γ in an interval of numbers >= 0.

    `Decimal.exp` is correctly rounded, and so is division: the result is off by at most one unit in
    the last of `digits` places, at either end.
    """
    low, high = gamma
    # of its own: what a caller's context traps would raise for some gaps, which may be private
    own = Context(prec=digits + 2, Emin=-(10**9), Emax=10**9, traps=[])
    with localcontext(own) as context:
        context.rounding = ROUND_CEILING
        least = (-(Decimal(high.numerator) / Decimal(high.denominator))).exp()
        context.rounding = ROUND_FLOOR
        most = (-(Decimal(low.numerator) / Decimal(low.denominator))).exp()
    # one for the exponential's own rounding, which is to nearest
    unit = Fraction(1, 10**digits)
    return Fraction(least) * (1 - unit), Fraction(most) * (1 + unit)


def exp_minus(gamma: Floats) -> Floats:
    """Return e^-γ within `EXP_ERROR`, elementwise for γ >= 0, by sums and products alone.

    With s = γ/16 <= 1.5 the Taylor polynomial T of degree 9 alternates with falling terms, so that
    |T(s) - e^-s| <= s^10/10!, relative to e^-s r <= s^10 e^s/10! <= 2^-13, and T^16 is off by at
    most ((1+r)^16 - 1) e^-γ <= 16.1 r e^-γ. That is largest at γ = 32/3, where it is
    16.1 (2/3)^10/10! e^-10 < 2^-37. Rounding: fewer than 32 roundings of terms that sum to e^s, of
    which each is 2^-53, four squarings, hence at most 16·32·2^-53 e^2s e^-γ < 2^-43. The cut at
    γ = 24 adds at most e^-24 < 2^-34.6. Together below 2^-34. Fused products err less.
    """
    s = np.minimum(gamma, _LARGEST)
    total = s * _COEFFICIENTS[0]
    total += _COEFFICIENTS[1]
    for coefficient in _COEFFICIENTS[2:]:
        total *= s
        total += coefficient
    for _ in range(4):
        total *= total
    return total
