"""What a cell of a file says: a number, or a word in one spelling."""

import re
from functools import lru_cache
from math import isfinite

import numpy as np

_NUMERAL = re.compile(
    r"[+-]?(?:(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?|\d+e[+-]?\d+|nan|inf(?:inity)?)",
    re.ASCII | re.IGNORECASE,
)
"""A number that its column's type may have spelled."""

_EXACT = 2.0**53 - 1
"""The largest whole number that no other one rounds to."""

_MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\d 00:00:00", re.ASCII)
"""A day that its column's type may have given an hour."""


def number_of(cell: object) -> float | None:
    """The number that a cell holds, or None; digits grouped by underscores are no number."""
    if isinstance(cell, str) and "_" in cell:
        return None
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def numbers_said(mark: str) -> set[float]:
    """The numbers that a mark of missing values stands for: its own, and what shorter types make of
    it where they print it so.

    -9.9 in binary32 is another number than in binary64, and says -9.9 all the same, also where its
    column was widened before it was written.
    """
    value = number_of(mark)
    if value is None:
        return set()
    with np.errstate(over="ignore"):
        shorter = [kind(value) for kind in (np.float32, np.float16)]
    return {value, *(float(each) for each in shorter if float(str(each)) == value)}


def word_of(cell: object) -> str:
    """A cell as a word of the schema: outer blanks removed, numbers and days in one spelling.

    How many decimals a number is written with, whether with a point at all, and a day with its
    hour, may be a matter of the whole column's type, which one record decides.
    """
    return _spelled(stripped(cell))


def stripped(cell: object) -> str:
    """A cell's text without outer blanks."""
    return str(cell).strip()


@lru_cache(maxsize=1 << 12)
def _spelled(word: str) -> str:
    """A number with a point or an exponent as the shortest that a binary64 has, without a point
    where it is whole; a day without its hour; anything else as it is."""
    if _MIDNIGHT.fullmatch(word):
        return word[:10]
    if _NUMERAL.fullmatch(word) is None:
        return word
    value = float(word)
    if isfinite(value) and abs(value) > _EXACT and value.is_integer():
        return word  # another whole number may have become this one
    return str(int(value)) if isfinite(value) and value.is_integer() else repr(value)
