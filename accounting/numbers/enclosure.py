"""Enclosures: two exact numbers with the truth between them.

An `Enclosure` never rounds inward: its ends come from ball arithmetic (Arb; Johansson 2017), its
floats are rounded outward, and a comparison that its width cannot decide raises `TooWide` instead
of answering False.

>>> third = Enclosure.of(Fraction(1, 3))
>>> third.lower_float < Fraction(1, 3) < third.upper_float
True
>>> third < 0.34
True
>>> Enclosure.of(0.25) == Fraction(1, 4)
True
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from math import inf, isnan, nextafter

from flint import arb, fmpq, fmpz

from ...mechanisms.ball_precision import precision as precision
from ...mechanisms.errors import DpledgerError, InvalidParameter, Number

BITS = 128
"""Bits of ball arithmetic for a formula that cancels nothing: a binary64 and room to spare."""


class TooWide(DpledgerError, ArithmeticError):
    """The enclosures are too wide to answer. This does not mean that the answer is no."""


def _float_towards(limit: float, point: arb) -> float:
    """Return the float nearest to an exact point that is not on its other side."""
    # only comparisons here: unlike them, a negation of `point` would round to the current precision
    nearest = float(point)
    while arb(nearest) > point if limit < 0 else arb(nearest) < point:
        nearest = nextafter(nearest, limit)
    return nearest


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Enclosure:
    """The closed interval [lower, upper], known to contain one real number (infinity is allowed).

    Args:
        lower, upper: exact (balls of radius zero), in this order.

    Raises `InvalidParameter` when an end is not exact or NaN, or when they are in the wrong order.
    """

    lower: arb
    upper: arb

    def __post_init__(self) -> None:
        for name, end in (("lower", self.lower), ("upper", self.upper)):
            if not end.is_exact() or end.is_nan():
                raise InvalidParameter(name, end, "an exact real number")
        if self.lower > self.upper:
            raise InvalidParameter("lower", self.lower, f"in (-inf, {self.upper}]")

    @classmethod
    def of(cls, value: "Real") -> "Enclosure":
        """Return the enclosure of an exact number: a point, or 2^-127 wide relatively."""
        if isinstance(value, Enclosure):
            return value
        with precision(BITS):
            return cls.from_ball(ball_of(value))

    @classmethod
    def from_ball(cls, ball: arb) -> "Enclosure":
        """Return the enclosure of the number in `ball`, rounded outward to current precision."""
        # lower() and upper() would round the end of a long exact ball: that is still outward,
        # but a point must stay a point
        return cls(ball, ball) if ball.is_exact() else cls(ball.lower(), ball.upper())

    @classmethod
    def hull(cls, low: "Enclosure", high: "Enclosure") -> "Enclosure":
        """Return the smallest enclosure that contains both."""
        lower = low.lower if low.lower <= high.lower else high.lower
        upper = high.upper if high.upper >= low.upper else low.upper
        return cls(lower, upper)

    @property
    def ball(self) -> arb:
        """A ball that contains the interval, at the current precision."""
        if self.is_point:
            return self.lower
        middle = ((self.lower + self.upper) / 2).mid()
        radius = (self.upper - middle).upper().max((middle - self.lower).upper())
        return arb(middle, radius)

    @property
    def lower_float(self) -> float:
        """The largest float not above `lower`."""
        return _float_towards(-inf, self.lower)

    @property
    def upper_float(self) -> float:
        """The smallest float not below `upper`."""
        return _float_towards(inf, self.upper)

    @property
    def is_point(self) -> bool:
        """Whether the number is known exactly."""
        return bool(self.lower == self.upper)

    @property
    def relative_width(self) -> float:
        """(upper - lower) / |end nearer to zero|, rounded up; 0 for a point, inf across zero."""
        if self.is_point:
            return 0.0
        if self.lower <= 0 <= self.upper:
            return inf
        nearer = self.lower if self.lower > 0 else self.upper
        return _float_towards(inf, abs((self.upper - self.lower) / nearer).upper())

    def contains(self, value: "Real") -> bool:
        """Return whether every number of `value` lies in this interval."""
        other = Enclosure.of(value)
        return bool(self.lower <= other.lower and other.upper <= self.upper)

    def _below(self, other: "Enclosure", *, strictly: bool) -> bool:
        """Return whether all numbers here are below all there; raise `TooWide` if some are."""
        if self.upper < other.lower or (not strictly and self.upper <= other.lower):
            return True
        if self.lower > other.upper or (strictly and self.lower >= other.upper):
            return False
        raise TooWide(f"Expected disjoint enclosures instead got {self} and {other}.")

    def __lt__(self, other: "Real") -> bool:
        return self._below(Enclosure.of(other), strictly=True)

    def __le__(self, other: "Real") -> bool:
        return self._below(Enclosure.of(other), strictly=False)

    def __gt__(self, other: "Real") -> bool:
        return Enclosure.of(other)._below(self, strictly=True)

    def __ge__(self, other: "Real") -> bool:
        return Enclosure.of(other)._below(self, strictly=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Enclosure | int | float | Fraction):
            return NotImplemented
        that = Enclosure.of(other)
        if self.is_point and that.is_point:
            return bool(self.lower == that.lower)
        if self.upper < that.lower or that.upper < self.lower:
            return False
        raise TooWide(f"Expected disjoint enclosures instead got {self} and {that}.")

    # two enclosures of one number need not be equal, so no hash can agree with ==
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("An Enclosure has no truth value; compare it with a number.")

    def __float__(self) -> float:
        raise TypeError("An Enclosure is no single float; read lower_float or upper_float.")

    def __str__(self) -> str:
        low, high = self.lower_float, self.upper_float
        return repr(low) if low == high else f"[{low!r}, {high!r}]"

    def __repr__(self) -> str:
        return f"Enclosure({self})"

    def __reduce__(self) -> tuple[object, tuple["_End", "_End"]]:
        return (_restore, (_end(self.lower), _end(self.upper)))


Real = Number | Enclosure
"""A number that is known exactly, or enclosed."""


def ball_of(value: Real) -> arb:
    """Return a ball that contains `value`, at the current precision; a point for an int or a float.

    Raises `InvalidParameter` for NaN.
    """
    if isinstance(value, Enclosure):
        return value.ball
    if isinstance(value, float):
        if isnan(value):
            raise InvalidParameter("value", value, "a real number")
        return arb(float(value))
    if isinstance(value, int):
        return arb(value)
    return arb(fmpq(value.numerator, value.denominator))


def fraction_of(point: arb) -> Fraction:
    """Return an exact finite ball (an end of an enclosure) as the fraction that it is."""
    exact = point.fmpq()
    return Fraction(int(exact.p), int(exact.q))


def maximum(found: Iterable[Enclosure]) -> Enclosure:
    """Return an enclosure of the largest of at least one number."""
    first, *others = found
    lower, upper = first.lower, first.upper
    for other in others:
        lower = other.lower if other.lower > lower else lower
        upper = other.upper if other.upper > upper else upper
    return Enclosure(lower, upper)


def intersection(first: Enclosure, second: Enclosure) -> Enclosure:
    """Return what two enclosures of one number say together.

    Raises `InvalidParameter` where they do not meet: one of both is wrong.
    """
    return Enclosure(
        first.lower if first.lower >= second.lower else second.lower,
        first.upper if first.upper <= second.upper else second.upper,
    )


# what pickle stores of an end: mantissa and exponent, or an infinity
_End = tuple[str, str] | float


def _end(point: arb) -> _End:
    """Return an end as plain values that pickle can store."""
    if not point.is_finite():
        return float(point)
    mantissa, exponent = point.man_exp()
    return (str(mantissa), str(exponent))


def _restore(lower: _End, upper: _End) -> Enclosure:
    """Return the enclosure of two stored ends, exactly."""

    def point(end: _End) -> arb:
        if isinstance(end, tuple):
            return arb((fmpz(end[0]), fmpz(end[1])))
        return arb(end)

    return Enclosure(point(lower), point(upper))


def shown_up(value: float, *, digits: int = 10) -> str:
    """Return a number as text that is not below its shortest decimal: what is printed must hold.

    Args:
        value: finite or infinite.
        digits: significant ones.
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


def shown_in_full(value: Number) -> str:
    """Return a number's shortest decimal that reads as its double: a delta beside an epsilon, say.

    An epsilon that holds at one delta may not at a smaller one, nor a lower bound at a larger: a
    fraction that is no double is shown by a decimal that is not below it.
    """
    near = float(value)
    if isinstance(value, Fraction) and Fraction(repr(near)) < value != Fraction(near):
        near = nextafter(near, inf)
    return repr(near).removesuffix(".0")


def shown_down(value: float, *, digits: int = 10) -> str:
    """Return a number as text that is not above its shortest decimal: for lower bounds.

    Args:
        value: finite or infinite.
        digits: significant ones.
    """
    return f"{-float(shown_up(-value, digits=digits)) + 0.0:.{digits}g}"
