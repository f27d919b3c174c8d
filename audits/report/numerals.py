"""Numbers as printed text: rounded in the direction that keeps a bound a bound.

>>> printed(0.1234567, rounding=Direction.UP, digits=3), printed(0.1234567, digits=3)
('0.124', '0.123')
>>> printed(1e-5, rounding=Direction.UP), printed("infinity")
('1e-5', '∞')
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from .record import Direction, Interval, Number

DIGITS = 6
"""Significant digits unless a field asks for another number."""

_MODES = {
    Direction.UP: ROUND_CEILING,
    Direction.DOWN: ROUND_FLOOR,
    Direction.NEAREST: ROUND_HALF_EVEN,
}
_PLAIN_EXPONENTS = range(-4, 9)


def printed(value: Number, *, rounding: Direction = Direction.NEAREST, digits: int = DIGITS) -> str:
    """Return `value` with at most `digits` significant digits.

    A number is taken by its shortest decimal name: 1e-5 is printed as 1e-5, although its binary64
    is larger by 8e-22.
    """
    if isinstance(value, str):
        return "∞"
    rounded = Context(prec=digits, rounding=_MODES[rounding]).create_decimal(repr(value))
    if rounded == 0:
        return "0"
    if rounded.adjusted() in _PLAIN_EXPONENTS:
        plain = f"{rounded:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    mantissa = rounded.scaleb(-rounded.adjusted()).normalize()
    return f"{mantissa:f}e{rounded.adjusted()}"


def printed_interval(interval: Interval, *, digits: int = DIGITS) -> str:
    """Return `low to high`, rounded outward; one number where both ends read the same."""
    low = printed(interval.lower, rounding=Direction.DOWN, digits=digits)
    high = printed(interval.upper, rounding=Direction.UP, digits=digits)
    return low if low == high else f"{low} to {high}"


def printed_percent_up(rate: float) -> str:
    """Return a rate in per cent with one decimal, rounded up; 0 <= rate <= 1."""
    tenths = (Decimal(rate) * 1000).to_integral_value(ROUND_CEILING)
    return f"{min(tenths, Decimal(1000)) / 10:.1f} %"


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_of_ten(exponent: int) -> str:
    """Return 10 to a whole power: 10⁻⁵; 1 for the zeroth."""
    return "1" if exponent == 0 else f"10{str(exponent).translate(_SUPERSCRIPTS)}"
