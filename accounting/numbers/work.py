"""Work, counted: a limit that does not depend on how busy or how fast the machine is.

A unit is about one evaluation of a privacy profile or a few hundred cells of a product of loss
distributions, some 50 µs. What is in a cache costs nothing, so that who asked before can only get
an answer where there was none.

>>> from dpledger.accounting.numbers.work import WorkExhausted, limited, spend
>>> with limited(10):
...     spend(7)
...     spend(7)
Traceback (most recent call last):
dpledger.accounting.numbers.work.WorkExhausted: Gave up after 10 units of work.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ...mechanisms.errors import DpledgerError, require_positive_int


class WorkExhausted(DpledgerError, RuntimeError):
    """More work than was allowed. This says nothing about the answer."""


@dataclass(slots=True)
class _Limit:
    units: int
    left: int


_limit: ContextVar[_Limit | None] = ContextVar("limit of work", default=None)


@contextmanager
def limited(units: int) -> Generator[None]:
    """Raise `WorkExhausted` where the engine takes more than `units`, at least 1, in this block."""
    require_positive_int("units", units)
    before = _limit.set(_Limit(units, units))
    try:
        yield
    finally:
        _limit.reset(before)


def spend(units: int) -> None:
    """Count work that is about to be done."""
    limit = _limit.get()
    if limit is None:
        return
    limit.left -= units
    if limit.left < 0:
        raise WorkExhausted(f"Gave up after {limit.units} units of work.")
