"""Computations on private numbers, of which nothing is heard but their result."""

import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import Any

import numpy as np

from .errors import DpledgerError, InvalidParameter
from .protocols import FloatArray

_quiet = ContextVar("quiet", default=False)


class _Strangers:
    """How many computations run now that may have threads of their own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.number = 0

    def add(self, more: int) -> None:
        """Count one that begins, or -1 for one that ends."""
        with self._lock:
            self.number += more


_strangers = _Strangers()


class _WhereQuiet:
    """Stands in a filter of warnings where a regular expression of their text does.

    Who copies filters, as scikit-learn does for its processes, copies one that matches nothing.
    """

    pattern = "(?!)"

    def match(self, _text: str) -> bool:
        """Return whether this thread computes on private numbers now, or a stranger in any."""
        return _quiet.get() or _strangers.number > 0


_IGNORED: Any = ("ignore", _WhereQuiet(), Warning, None, 0)
"""A filter of the whole process that concerns what is computed in silence alone: one that is put
there and taken away again would be in the way of other threads' filters."""


@contextmanager
def silence(*, strangers: bool = False) -> Generator[None]:
    """Let nothing be heard of floating-point errors, and of warnings of what is called inside.

    Args:
        strangers: whether what is called may have threads of its own; then no thread is heard.
    """
    filters: Any = warnings.filters
    if not filters or filters[0] is not _IGNORED:
        with suppress(ValueError):  # behind filters that were put before it
            filters.remove(_IGNORED)
        filters.insert(0, _IGNORED)
    token = _quiet.set(True)
    _strangers.add(int(strangers))
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _strangers.add(-int(strangers))
        _quiet.reset(token)


def quietly(
    compute: Callable[[], FloatArray],
    name: str = "arguments",
    allowed: str = "of kinds and shapes with which the records can be computed",
) -> FloatArray:
    """Return what a computation on private numbers makes, without warnings or words of others.

    What NumPy says of arrays that do not fit, or into memory, names their shapes, and so the number
    of records; a traceback that starts in the computation holds the records themselves.

    Args:
        compute: reads private arrays and public arguments.
        name: of what is refused where it fails.
        allowed: what that must be.

    Raises `InvalidParameter` in place of all that is not ours, `MemoryError` without its sizes; of
    ours without what led to it.
    """
    ours: DpledgerError | None = None
    kind: type[Exception] = Exception
    try:
        with silence():
            return compute()
    except DpledgerError as error:
        ours = error.with_traceback(None)
    except Exception as error:
        kind = type(error)
    # out here, so that the refusal does not carry the error that it stands for
    if ours is not None:
        ours.__context__ = ours.__cause__ = None
        raise ours
    if issubclass(kind, MemoryError):
        raise MemoryError("The records and the arguments do not fit into memory; ask for less.")
    raise InvalidParameter(name, kind.__name__, allowed)
