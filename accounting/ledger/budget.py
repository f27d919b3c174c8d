"""Budgets: how much may be spent, and the filter that refuses what would cross.

A filter lets the noise of every step depend on what was released before; as long as it refuses the
step that would cross the budget, all that left is guaranteed by the budget itself. For Gaussian
steps the filter is a sum of mu²: fully adaptive composition of zCDP (Whitehouse, Ramdas, Rogers, Wu
2023) and of GDP (Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023). An `Rdp` budget pays for
every mechanism by Rényi divergences of that order; `renyi_budget` makes one of (epsilon, delta).

A plan that stands before anything is released needs no filter: what all of it costs together bounds
every prefix of it, whatever order its events come in and whenever it stops, because a prefix is
post-processing of the whole. So a plan of any mechanisms can be paid for by (epsilon, delta), one
of zCDP mechanisms by rho; mu² pays for Gaussian steps only, as sampled ones have no finite mu.

>>> budget = Budget(ApproxDp(1, 1e-5), adjacency=Adjacency.REPLACE_ONE)
>>> round(float(budget.limit), 6)
0.071851
>>> budget.require(spent=Fraction(0), after=Fraction(1, 16))
>>> budget.require(spent=Fraction(1, 16), after=Fraction(1, 8))  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpledger.accounting.ledger.budget.BudgetExceeded: Expected mu² <= 0.0718514 in all: ...
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import inf

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import DpledgerError, InvalidParameter, named
from ...mechanisms.events import Event
from ...mechanisms.sensitivity import float_up
from ..accountants import ZcdpAccountant, tightest_accountant
from ..composition import Composition, UnpricedMechanism, composed
from ..gaussian.exact import epsilon_from_delta, mu_from_epsilon_delta
from ..numbers.enclosure import Enclosure, ball_of, fraction_of, shown_down, shown_in_full, shown_up
from ..numbers.notions import ApproxDp, Exact, Gdp, Rdp, Zcdp
from .renyi_filter import renyi_price


class BudgetExceeded(DpledgerError, RuntimeError):
    """A reservation would cross the budget. It was not recorded and nothing was drawn.

    `spent`, `asked` and `remaining` are in `unit`, which is the budget's own: what is asked for in
    epsilon is what it adds to the epsilon of all that is spent.
    """

    def __init__(self, *, spent: Exact, asked: Exact, limit: Fraction, unit: str = "mu²") -> None:
        self.spent, self.asked, self.limit, self.unit = spent, asked, limit, unit
        self.remaining = limit - spent if isinstance(spent, Fraction) else Fraction(0)
        super().__init__(
            f"Expected {unit} <= {_rounded(limit, shown_down)} in all: {_rounded(spent)} is spent, "
            f"{_rounded(asked)} was asked for, {_rounded(self.remaining, shown_down)} remains. "
            "Nothing of it was released."
        )

    def __reduce__(self) -> tuple[object, tuple[Exact, Exact, Fraction, str]]:
        return (_exceeded, (self.spent, self.asked, self.limit, self.unit))


def _exceeded(spent: Exact, asked: Exact, limit: Fraction, unit: str) -> BudgetExceeded:
    return BudgetExceeded(spent=spent, asked=asked, limit=limit, unit=unit)


def _rounded(cost: Exact, shown: Callable[..., str] = shown_up) -> str:
    # what is asked for may be larger than any float
    return shown(float_up(cost) if isinstance(cost, Fraction) else cost, digits=6)


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent on one record under `adjacency`.

    Gaussian steps are paid for in every notion; other mechanisms by an `Rdp` budget, or as a plan.
    """

    notion: Gdp | Zcdp | ApproxDp | Rdp
    adjacency: Adjacency

    def __post_init__(self) -> None:
        if not isinstance(self.notion, Gdp | Zcdp | ApproxDp | Rdp):
            raise InvalidParameter("notion", self.notion, "a Gdp, Zcdp, ApproxDp or Rdp")
        # spelt as the commands spell it, for instance "replace-one"
        object.__setattr__(self, "adjacency", named("adjacency", self.adjacency, Adjacency))
        _ = self.limit

    @property
    def limit(self) -> Fraction:
        """The largest sum of costs that keeps the notion, rounded down.

        Costs are mu², or under an `Rdp` budget Rényi divergences at its order.

        Raises `InvalidParameter` for an infinite budget or order, or a delta that is not inside
        (0, 1).
        """
        return _limit(self.notion)

    @property
    def kept(self) -> Gdp | Rdp:
        """What a filter with this budget keeps, in the notion in which it adds up costs."""
        if isinstance(self.notion, Rdp):
            return self.notion
        return Gdp(self.limit)

    @property
    def unit(self) -> str:
        """What costs are counted in, in words."""
        if isinstance(self.notion, Rdp):
            return f"Rényi divergence of order {float(self.notion.order):g}"
        return "mu²"

    def meter(self) -> Composition:
        """Return an empty composition that adds up costs as this budget counts them."""
        if isinstance(self.notion, Rdp):
            price = partial(renyi_price, order=Fraction(self.notion.order))
            return Composition(self.adjacency, price=price)
        return Composition(self.adjacency)

    def require(self, *, spent: Exact, after: Exact) -> None:
        """Raise `BudgetExceeded` if a reservation that leads from `spent` to `after` crosses.

        Both are upper bounds on the cost to the record that pays most.
        """
        if after <= self.limit:
            return
        limit, spent, after = (self._in_own_unit(cost) for cost in (self.limit, spent, after))
        finite = isinstance(after, Fraction) and isinstance(spent, Fraction)
        asked = after - spent if finite else inf
        raise BudgetExceeded(spent=spent, asked=asked, limit=Fraction(limit), unit=self.own_unit)

    @property
    def own_unit(self) -> str:
        """What the budget was set in, in words."""
        match self.notion:
            case ApproxDp(delta=delta):
                return f"epsilon at delta {shown_in_full(delta)}"
            case Zcdp():
                return "rho"
            case _:
                return self.unit

    def _in_own_unit(self, cost: Exact) -> Exact:
        """Return a cost as whoever set the budget counts it, for messages: rounded up."""
        match self.notion:
            case ApproxDp(epsilon=epsilon, delta=delta):
                if cost == self.limit:
                    return epsilon
                return _upper(epsilon_from_delta(mu_squared=Enclosure.of(cost), delta=delta))
            case Zcdp():
                return cost / 2
            case _:
                return cost

    def adds_up(self, plan: Sequence[Event]) -> bool:
        """Return whether the costs of these events have a sum that a filter can keep."""
        try:
            self.meter().spent_after(plan)
        except UnpricedMechanism:
            return False
        return True

    def require_plan(self, plan: Sequence[Event]) -> None:
        """Raise unless all events of a plan together keep the notion.

        The plan stands before anything is released. Raises `BudgetExceeded` if they do not keep it,
        `UnpricedMechanism` for a mechanism without a cost in this notion, `AdjacencyMismatch`.
        """
        composition = composed(plan, adjacency=self.adjacency)
        match self.notion:
            case ApproxDp(epsilon=limit, delta=delta):
                unit, cost = "epsilon", tightest_accountant(composition).epsilon(delta)
            case Zcdp(rho=limit):
                accountant = ZcdpAccountant.over(composition)
                rhos = [accountant.rho(account) for _, account in composition.accounts]
                unit, cost = "rho", max(rhos, key=lambda rho: rho.upper)
            case _:
                self.require(spent=Fraction(0), after=self.meter().spent_after(plan))
                return
        if not cost.upper <= ball_of(limit):
            raise BudgetExceeded(
                spent=Fraction(0), asked=_upper(cost), limit=Fraction(limit), unit=unit
            )


def _upper(cost: Enclosure) -> Exact:
    upper = cost.upper_float
    return Fraction(upper) if upper < inf else inf


@lru_cache
def _limit(notion: Gdp | Zcdp | ApproxDp | Rdp) -> Fraction:
    match notion:
        case Gdp(mu_squared=limit):
            pass
        case Zcdp(rho=rho):
            limit = 2 * rho
        case Rdp(order=order, epsilon=limit):
            if order == inf:
                raise InvalidParameter("notion", notion, "of finite order")
        case ApproxDp(epsilon=epsilon, delta=delta):
            limit = epsilon
            if epsilon != inf:
                lower = mu_from_epsilon_delta(epsilon=epsilon, delta=delta).lower
                limit = fraction_of(lower) ** 2
    if not isinstance(limit, Fraction):
        raise InvalidParameter("notion", notion, "a finite budget")
    return limit
