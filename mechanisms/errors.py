"""Errors: what was wrong, which value, and what is allowed.

Two families. `InvalidParameter` and its kin: the caller handed in something out of range, and
nothing was spent. `UnprotectedReleaseError` and its kin: the program tried to look at private data
without a mechanism; the message names the protected way to do the same.
"""

import os
from collections.abc import Iterable
from enum import Enum
from fractions import Fraction
from math import isfinite
from numbers import Rational
from typing import SupportsFloat, TypeVar

Number = int | float | Fraction

_LEAST_DOUBLE = 5e-324
"""2^-1074, the least double above 0."""


class DpledgerError(Exception):
    """Base of all errors that this project raises on purpose."""


_MOST_SHOWN = 200
_E = TypeVar("_E", bound=Enum)


def shown_value(value: object) -> str:
    """Return a value as its reader needs to see it: a few lines of it at most, however long."""
    if isinstance(value, int) and value.bit_length() > 4 * _MOST_SHOWN:
        # Python refuses to write whole numbers of thousands of digits
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, Fraction) and value.denominator.bit_length() > 4 * _MOST_SHOWN:
        return f"a fraction whose denominator has {value.denominator.bit_length()} bits"
    shown = repr(value.value if isinstance(value, Enum) else value)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}..."


def must(allowed: str) -> str:
    """Return what a value must be or have, as a predicate: "with records" is "must have records".

    Args:
        allowed: an adjective, a noun, a range, or a phrase with "with" or "to be".
    """
    if allowed.startswith("with "):
        return f"must have {allowed.removeprefix('with ')}"
    return f"must be {allowed.removeprefix('to be ')}"


class InvalidParameter(DpledgerError, ValueError):
    """A parameter is outside its range; nothing was spent."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"{name}={shown_value(value)} {must(allowed)}.")
        self.name = name
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type["InvalidParameter"], tuple[str, object, str]]:
        return (type(self), (self.name, self.value, self.allowed))


class RepeatableNoise(UserWarning):
    """Noise was drawn from a seed: whoever knows it subtracts the noise. An experiment's."""


REPEATABLE_NOISE = "experiment: repeatable noise, which whoever knows the seed can subtract"
"""What is said of such noise, wherever results are shown."""


class ForkedCopy(DpledgerError, RuntimeError):
    """What one process made was used in a fork of it: a copy, of which the other knows nothing."""


def require_own_process(maker: int, what: str) -> None:
    """Raise `ForkedCopy` in another process than that of number `maker`.

    Args:
        maker: `os.getpid()` when it was made.
        what: it is.
    """
    if os.getpid() != maker:
        raise ForkedCopy(
            f"Expected {what} of this process instead got a fork's copy of another's: noise and "
            "events would be there twice. Make one in each process, on one SqliteLedger."
        )


class MalformedEvent(DpledgerError, ValueError):
    """A serialised event is not one of ours; nothing was read from it."""


class AdjacencyMismatch(DpledgerError, ValueError):
    """Two quantities speak of different neighbouring relations; there is no silent conversion."""


class UnprotectedReleaseError(DpledgerError, TypeError):
    """Private data would have left without a mechanism. The data are still private."""


class UnprotectedConversion(UnprotectedReleaseError):
    """A `Sensitive` was to become a plain number or array."""


class UnprotectedComparison(UnprotectedReleaseError):
    """A `Sensitive` was compared or used as a truth value."""


class UnprotectedIteration(UnprotectedReleaseError):
    """A `Sensitive` was iterated over, indexed or measured."""


class UnprotectedFunction(UnprotectedReleaseError):
    """A function without a sensitivity rule was applied to a `Sensitive`."""


class UnprotectedSerialisation(UnprotectedReleaseError):
    """A `Sensitive` or a private data set was to be pickled, copied or hashed."""


def require_number(name: str, value: object, allowed: str) -> None:
    """Raise `InvalidParameter` unless this is a number of Python's own kinds or a NumPy float."""
    # a number of a class of the caller's may be one for the price and another for the value, and
    # NumPy hands it private arrays; its own whole numbers wrap where a product is exact to Python
    kind = type(value)
    if kind in (int, float, Fraction) or (kind.__module__ == "numpy" and isinstance(value, float)):
        return
    if kind.__module__ == "numpy" and isinstance(value, Rational):
        allowed += "; NumPy's whole numbers wrap: pass int(...)"
    raise InvalidParameter(name, value, allowed)


def _of_its_sign(value: Number) -> float:
    """Return a number of the same sign, as finite as `value`, that compares in no time."""
    return value if isinstance(value, float) else value.numerator


def require_finite(name: str, value: Number) -> None:
    """Raise `InvalidParameter` unless `value` is a finite real number."""
    require_number(name, value, "a finite number")
    if isinstance(value, float) and not isfinite(value):
        raise InvalidParameter(name, value, "a finite number")


def finite_double(name: str, value: object) -> float:
    """Return a number as a double; raise `InvalidParameter` unless it is finite and >= 0."""
    if not isinstance(value, SupportsFloat):  # a text is none
        raise InvalidParameter(name, value, "in [0, inf)")
    try:
        found = float(value)
    except (OverflowError, ValueError):
        raise InvalidParameter(name, value, "in [0, inf)") from None
    require_nonnegative(name, found)
    return found


def require_nonnegative(name: str, value: Number) -> None:
    """Raise `InvalidParameter` unless `value` is finite and >= 0."""
    require_number(name, value, "in [0, inf)")
    if not 0 <= _of_its_sign(value) < float("inf"):
        raise InvalidParameter(name, value, "in [0, inf)")


def require_positive(name: str, value: Number) -> None:
    """Raise `InvalidParameter` unless `value` is finite and > 0."""
    require_number(name, value, "in (0, inf)")
    if not 0 < _of_its_sign(value) < float("inf"):
        raise InvalidParameter(name, value, "in (0, inf)")


def require_magnitude(name: str, value: Number, exponent: int) -> None:
    """Raise `InvalidParameter` unless 2^-exponent <= `value` <= 2^exponent.

    What a sensitivity rests on is kept away from both ends of the doubles, where products lose
    digits or overflow.
    """
    require_positive(name, value)
    if not Fraction(1, 2**exponent) <= Fraction(value) <= 2**exponent:
        raise InvalidParameter(name, value, f"in [2^-{exponent}, 2^{exponent}]; scale the columns")


def require_open_unit(name: str, value: Number) -> None:
    """Raise `InvalidParameter` unless 0 < `value` < 1."""
    require_number(name, value, "in (0, 1)")
    if not 0 < value < 1:
        raise InvalidParameter(name, value, "in (0, 1)")


def require_delta(value: Number) -> None:
    """Raise `InvalidParameter` unless 2^-1074 <= `value` < 1 or 0, pure differential privacy.

    A fraction below every double would be printed as 0, and an epsilon at a delta of 0 is another.
    """
    require_number("delta", value, "in [0, 1)")
    if not 0 <= value < 1:
        raise InvalidParameter("delta", value, "in [0, 1), where 0 is pure differential privacy")
    if 0 < value < _LEAST_DOUBLE:
        raise InvalidParameter("delta", value, "at least 5e-324, the least positive double")


def require_rate(name: str, value: Number) -> None:
    """Raise `InvalidParameter` unless 0 <= `value` <= 1."""
    require_number(name, value, "in [0, 1]")
    if not 0 <= value <= 1:
        share = f"; {float(value):g} % is {float(value) / 100:g}" if 1 < value <= 100 else ""
        raise InvalidParameter(name, value, f"in [0, 1]{share}")


def require_positive_int(name: str, value: int) -> None:
    """Raise `InvalidParameter` unless `value` is an integer >= 1."""
    if type(value) is not int or value < 1:  # comparisons of a subclass may say anything
        raise InvalidParameter(name, value, "a whole number in [1, inf)")


def require_bool(name: str, value: bool) -> None:
    """Raise `InvalidParameter` unless `value` is True or False: "no" is a text, and no False."""
    if type(value) is not bool:
        raise InvalidParameter(name, value, "True or False")


def require_group(name: str, size: int) -> None:
    """Raise `InvalidParameter` unless `size` is a number of records: an integer in [1, 10^18]."""
    require_positive_int(name, size)
    if size > 10**18:
        raise InvalidParameter(name, size, "a whole number in [1, 10^18]")


def named(name: str, value: _E | str | None, known: Iterable[_E]) -> _E:
    """Return the member of `known` that a value is, or names by its text.

    Raises `InvalidParameter` with the texts of those that are known.
    """
    members = tuple(known)
    for member in members:
        if value is member or value == member.value:
            return member
    listed = ", ".join(repr(member.value) for member in members)
    raise InvalidParameter(name, value, f"one of {listed}")
