"""How fast a ledger's budget is spent, and when it will be gone at that rate.

A share of the budget is noted at each look. The rate is that of the last week: what was spent
between the oldest note kept and the newest, by the time between them. It extrapolates and promises
nothing: the ledger itself refuses what would cross the budget, whenever that is.

>>> notes = [Spending("2026-01-01T00:00:00+00:00", 0.1), Spending("2026-01-03T00:00:00+00:00", 0.3)]
>>> rate = burn_rate(notes)
>>> round(rate.a_day, 9), round(rate.days_left, 9)
(0.1, 7.0)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf, isfinite

import msgspec

from ..accounting.composition import UnpricedMechanism
from ..accounting.ledger.state import Odometer
from ..accounting.numbers.notions import ApproxDp, Rdp

_WINDOW = timedelta(days=7)
"""Notes older than this are dropped, but for the newest of them."""
_APART = timedelta(hours=1)
"""Between two notes that are both kept: a week is then 170 of them, however often one looks."""


class Spending(msgspec.Struct):
    """What was spent at a look.

    Args:
        time: of the look, ISO 8601.
        share: of the budget; above 1 only where something was released without a mechanism.
    """

    time: str
    share: float


@dataclass(frozen=True, slots=True)
class BurnRate:
    """What is spent, and how fast.

    Args:
        share: of the budget, at the last look.
        a_day: share that is spent in a day; 0 before there are two notes.
        days_left: until nothing is left at that rate; infinity where nothing is being spent.
    """

    share: float
    a_day: float
    days_left: float

    @property
    def text(self) -> str:
        """In a sentence."""
        words = f"{self.share:.1%} spent"
        if self.a_day == 0.0:
            return f"{words}, nothing since"
        return f"{words}, {self.a_day:.2%} a day: gone in {self.days_left:.3g} days at that rate"


def budget_share(odometer: Odometer) -> float | None:
    """Return the share of its budget that a ledger has spent; None without one that it can tell.

    In mu² where only Gaussian steps ran, so that equal rounds are equal shares; else in epsilon
    where the budget is one of epsilon.

    Args:
        odometer: of all runs.
    """
    budget = odometer.budget
    if budget is None:
        return None
    if odometer.unprotected:
        return inf
    notion, mu_squared = budget.notion, odometer.mu_squared.upper_float
    if isfinite(mu_squared) and not isinstance(notion, Rdp):
        return mu_squared / float(budget.limit) if budget.limit else inf
    if not isinstance(notion, ApproxDp) or not notion.epsilon:
        return None
    try:
        return odometer.epsilon(notion.delta).upper_float / float(notion.epsilon)
    except UnpricedMechanism:
        return None


def noted(notes: Sequence[Spending], new: Spending) -> list[Spending]:
    """Return the notes with a new one: the last of an hour replaces it, old ones are dropped."""
    kept, now = [*notes], datetime.fromisoformat(new.time)
    if len(kept) > 1 and _between(kept[-2].time, kept[-1].time) < _APART:
        kept.pop()
    while len(kept) > 1 and now - datetime.fromisoformat(kept[1].time) > _WINDOW:
        kept.pop(0)
    return [*kept, new]


def burn_rate(notes: Sequence[Spending]) -> BurnRate | None:
    """Return how fast the budget is spent; None without notes.

    Args:
        notes: in the order of their times.
    """
    if not notes:
        return None
    first, last = notes[0], notes[-1]
    days = _between(first.time, last.time) / timedelta(days=1)
    spent = last.share - first.share
    a_day = spent / days if days > 0 and spent > 0 and isfinite(spent) else 0.0
    left = max(0.0, 1.0 - last.share)
    if left == 0.0:
        return BurnRate(last.share, a_day, 0.0)
    return BurnRate(last.share, a_day, left / a_day if a_day > 0 else inf)


def _between(earlier: str, later: str) -> timedelta:
    """Return the time between two looks."""
    return datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
