"""Rows that are read a block at a time, and numbers that are what they are taken for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import InvalidParameter, require_positive_int
from .protocols import FloatArray
from .refusals import Closed
from .storage import Folder

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
"""A mask."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowBlocks(Closed):
    """Dense rows that are read or computed a block at a time, and are never in memory twice.

    For rows in a file that is larger than what memory has room for, once or twice, or computed from
    others.

    Args:
        shape: (n, d).
        read: from a slice, or a mask of shape (n,), to these rows as an array of shape (m, d).
        scratch: folder on a disk with room for 8·n·(d + 3) bytes, which the checked copy of the
            records takes there instead of in memory (see `storage`); None for memory. With several
            parties n is their number times the records of the largest.
        at_once: how many rows are asked for at once, >= 1: those of a partition, where a file is
            read or computed by partitions.

    >>> rows = RowBlocks((3, 2), lambda some: np.arange(6.0).reshape(3, 2)[some] / 8.0)
    >>> rows[1:].tolist()
    [[0.25, 0.375], [0.5, 0.625]]
    """

    shape: tuple[int, int]
    read: Callable[[slice | BoolArray], FloatArray]
    scratch: Folder = None
    at_once: int = 2**11

    def __post_init__(self) -> None:
        require_positive_int("at_once", self.at_once)

    def __getitem__(self, some: slice | BoolArray) -> FloatArray:
        """Return some rows; raise `InvalidParameter` where `read` returns others than asked for."""
        rows, (count, width) = real_numbers("features", self.read(some)), self.shape
        asked = len(range(count)[some]) if isinstance(some, slice) else np.count_nonzero(some)
        if rows.shape != (asked, width):
            raise InvalidParameter("features.shape", rows.shape, f"({asked}, {width})")
        return rows


def require_unmasked(name: str, values: Any) -> None:
    """Raise `InvalidParameter` for a masked array, or a list with one: conversions drop masks."""
    several = values if isinstance(values, list | tuple) else (values,)
    # a dask array says by an empty one of what kind its chunks are
    chunks = (getattr(each, "_meta", None) for each in several)
    if any(map(np.ma.isMaskedArray, (*several, *chunks))):
        raise InvalidParameter(
            name, "a masked array", "without a mask: fill or drop what is masked"
        )


_TIMES = ("time", "date", "duration", "interval", "month_day_nano")
"""How the names of all types of times begin: NumPy's, pandas', polars' and pyarrow's."""


_TEXTS = ("<u", ">u", "|s", "str", "utf8", "large_string", "binary", "large_binary")
"""How the names of all types of texts begin."""


def require_untimed(name: str, values: Any) -> None:
    """Raise `InvalidParameter` for times: NumPy gives all the unit of the finest among them.

    Args:
        name: what they are called.
        values: an array, a list, or a frame, whose columns' types are looked at.
    """
    if any(each.startswith(_TIMES) for each in _types(values)):
        raise InvalidParameter(name, "times", "real numbers: divide them by their unit")


def require_unspelled(name: str, values: Any) -> None:
    """Raise `InvalidParameter` for arrays of texts: one decides how NumPy spells the numbers beside
    it. Texts in lists and among objects are read each by itself.

    Args:
        name: what they are called.
        values: an array, a list, or a frame, whose columns' types are looked at.
    """
    if isinstance(values, list | tuple):
        types = [each.dtype.str for each in values if isinstance(each, np.ndarray)]
    else:
        types = _types(values)
    if any(each.lower().startswith(_TEXTS) for each in types):
        raise InvalidParameter(name, "an array of texts", "real numbers")


def _types(values: Any) -> list[str]:
    """Return the names of the types of an array, a list, or a frame's columns, in small letters."""
    if hasattr(values, "columns"):
        # of pandas, dask and polars, or of pyarrow
        frame = getattr(values, "dtypes", None)
        types = list(values.schema.types if frame is None else frame)
    elif hasattr(values, "dtype"):
        types = [values.dtype]
    else:
        types = []
        with suppress(TypeError, ValueError, OverflowError):
            types = [np.asarray(values).dtype]
    return [str(each).lower() for each in types]


@np.errstate(all="ignore")  # what a caller made an error would tell of a number
def real_numbers(name: str, values: Any) -> FloatArray:
    """Return an array of binary64, or raise `InvalidParameter` for what would lose a part of it."""
    require_unmasked(name, values)
    require_unspelled(name, values)
    kind = ""
    with suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(values)
        kind = array.dtype.kind
        kinds = {array.dtype.type}
        if kind == "O":
            kinds = set(map(type, array.flat)) | _kinds_inside(array)
        if any(map(_is_cut, kinds)):
            kind = "c"
        if kind != "c":
            # at once: without a dtype NumPy makes texts of all numbers where there is one
            return np.asarray(values, dtype=np.float64)
    if kind == "c":
        raise InvalidParameter(
            name,
            "complex or masked numbers, times, or arrays in cells",
            "real numbers (pass both parts as columns). Complex data not supported",
        )
    # NumPy's own sentence shows the cell, and is no context of this one
    raise InvalidParameter(name, "others", "numbers that a binary64 holds")


def _is_cut(kind: type) -> bool:
    """Return whether NumPy makes other numbers of cells of this kind.

    Without an imaginary part, or a mask; of no time at all the least whole number, and of all times
    beside each other numbers in the unit of the finest.
    """
    lossy = np.complexfloating | np.ma.MaskedArray | np.datetime64 | np.timedelta64
    return issubclass(kind, lossy)


def _kinds_inside(array: np.ndarray[Any, Any]) -> set[type]:
    """Return what kinds of numbers arrays in cells hold; of several, or of objects, a cut one."""
    inside = (cell for cell in array.flat if isinstance(cell, np.ndarray))
    return {
        np.complexfloating if cell.shape or cell.dtype == object else cell.dtype.type
        for cell in inside
    }
