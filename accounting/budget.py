"""Budgets: how much may be spent, and the filter that refuses what would cross.

A filter lets the noise of every step depend on what was released before; as long as it refuses the
step that would cross the budget, all that left is guaranteed by the budget itself. For Gaussian
steps the filter is a sum of mu²: fully adaptive composition of zCDP (Whitehouse, Ramdas, Rogers, Wu
2023) and of GDP (Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023).

>>> budget = Budget(ApproxDp(1, 1e-5), adjacency=Adjacency.REPLACE_ONE)
>>> round(float(budget.mu_squared), 6)
0.071851
>>> budget.require(spent=Fraction(0), after=Fraction(1, 16))
>>> budget.require(spent=Fraction(1, 16), after=Fraction(1, 8))  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpledger.accounting.budget.BudgetExceeded: Expected mu² <= 0.0718514 in all: ...
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import DpledgerError, InvalidParameter
from .gaussian import mu_from_epsilon_delta
from .notions import ApproxDp, Exact, Gdp, Zcdp

__all__ = ["Budget", "BudgetExceeded"]


class BudgetExceeded(DpledgerError, RuntimeError):
    """A reservation would cross the budget. It was not recorded and nothing was drawn.

    `spent`, `asked` and `remaining` are in mu².
    """

    def __init__(self, *, spent: Exact, asked: Exact, limit: Fraction) -> None:
        self.spent, self.asked, self.limit = spent, asked, limit
        self.remaining = limit - spent if isinstance(spent, Fraction) else Fraction(0)
        super().__init__(
            f"Expected mu² <= {float(limit):.6g} in all: {float(spent):.6g} is spent, "
            f"{float(asked):.6g} was asked for, {float(self.remaining):.6g} remains. "
            "Nothing was released."
        )

    def __reduce__(self) -> tuple[object, tuple[Exact, Exact, Fraction]]:
        return (_exceeded, (self.spent, self.asked, self.limit))


def _exceeded(spent: Exact, asked: Exact, limit: Fraction) -> BudgetExceeded:
    return BudgetExceeded(spent=spent, asked=asked, limit=limit)


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent on one record under `adjacency`, in any notion that Gaussian steps meet."""

    notion: Gdp | Zcdp | ApproxDp
    adjacency: Adjacency

    def __post_init__(self) -> None:
        if not isinstance(self.notion, Gdp | Zcdp | ApproxDp):
            raise InvalidParameter("notion", self.notion, "a Gdp, Zcdp or ApproxDp")
        if not isinstance(self.adjacency, Adjacency):
            raise InvalidParameter("adjacency", self.adjacency, "an Adjacency")
        _ = self.mu_squared

    @property
    def mu_squared(self) -> Fraction:
        """The largest sum of mu² that keeps the notion, rounded down.

        Raises `InvalidParameter` for an infinite budget, or a delta that is not inside (0, 1).
        """
        return _limit(self.notion)

    def require(self, *, spent: Exact, after: Exact) -> None:
        """Raise `BudgetExceeded` if a reservation that leads from `spent` to `after` crosses.

        Both are upper bounds on mu² of the record that pays most.
        """
        limit = self.mu_squared
        if not after <= limit:
            asked = after - spent if isinstance(after, Fraction) else inf
            raise BudgetExceeded(spent=spent, asked=asked, limit=limit)


@lru_cache
def _limit(notion: Gdp | Zcdp | ApproxDp) -> Fraction:
    match notion:
        case Gdp(mu_squared=limit):
            pass
        case Zcdp(rho=rho):
            limit = 2 * rho
        case ApproxDp(epsilon=epsilon, delta=delta):
            limit = epsilon
            if epsilon != inf:
                lower = mu_from_epsilon_delta(epsilon=epsilon, delta=delta).lower
                mantissa, exponent = lower.man_exp()
                limit = (int(mantissa) * Fraction(2) ** int(exponent)) ** 2
    if not isinstance(limit, Fraction):
        raise InvalidParameter("notion", notion, "a finite budget")
    return limit
