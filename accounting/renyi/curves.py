"""What is known by its Rényi divergences alone: zCDP guarantees, and the best of several runs.

No pair of laws dominates these, so that no accountant of privacy losses prices them; but log
moments K(α) = (α - 1) D_α add up in adaptive compositions, whatever they are moments of (Mironov
2017, Proposition 1), and `CurveAccountant` adds them to those of events.

>>> Selection(mean=20).log_inverse_gamma
2.99573...
>>> zcdp_moment(0.5)(Fraction(3))
3.00000000000000
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf

from flint import arb

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import (
    InvalidParameter,
    Number,
    require_nonnegative,
    require_positive,
)
from ..composition import Account
from ..numbers.enclosure import BITS, Enclosure, ball_of, precision
from .accountant import RdpAccountant

LogMoment = Callable[[Fraction], arb]
"""Of an order above 1: an upper bound on K(order) = (order - 1) D_order, both directions."""
_HALVINGS = 80
"""Of the bracket of ln 1/γ: past the last bit of a double."""


def zcdp_moment(rho: Number, xi: Number = 0) -> LogMoment:
    """Return the log moments of a (ξ, ρ)-zCDP guarantee: (α - 1) (ξ + ρα).

    Args:
        rho: ρ, in [0, inf).
        xi: ξ, in [0, inf).

    Raises `InvalidParameter`. Source: Bun, Steinke 2016, Definition 1.1.
    """
    require_nonnegative("rho", rho)
    require_nonnegative("xi", xi)
    slope, offset = Fraction(rho), Fraction(xi)
    return lambda order: ball_of((order - 1) * (offset + slope * order)).upper()


@dataclass(frozen=True)
class Selection:
    """The best of a random number of runs, drawn anew: truncated negative binomial.

    Nothing of the other runs, and not their number, is published.

    Args:
        mean: expected number of runs, in [1, inf).
        shape: η, in [0, inf): 1 geometric, 0 logarithmic.

    Raises `InvalidParameter`. Source: Papernot, Steinke 2022, Definition 1.
    """

    mean: Number
    shape: Number = 1

    def __post_init__(self) -> None:
        if isinstance(self.mean, bool) or not 1 <= self.mean < inf:
            raise InvalidParameter("mean", self.mean, "in [1, inf): the expected number of runs")
        require_positive("mean", self.mean)
        require_nonnegative("shape", self.shape)

    @cached_property
    def log_inverse_gamma(self) -> float:
        """ln 1/γ, rounded up, of the law's stopping probability γ.

        With t = ln 1/γ the mean is (e^t - 1)/t for η = 0 and η (e^t - 1)/(1 - e^(-ηt)) else
        (Definition 1 there); it increases in t, and so a t whose mean is no less is an upper bound.
        """
        if self.mean == 1:
            return 0.0
        low, high = Fraction(0), Fraction(1)
        while not self._reaches(high):
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._reaches(middle) else (middle, high)
        with precision(BITS):
            return Enclosure.from_ball(ball_of(high)).upper_float

    def _reaches(self, t: Fraction) -> bool:
        """Whether the mean at ln 1/γ = t > 0 is certainly no less than `mean`."""
        with precision(BITS):
            at, shape = ball_of(t), ball_of(self.shape)
            below = -((-shape * at).expm1()) / shape if Fraction(self.shape) else at
            return bool(at.expm1() / below >= ball_of(self.mean))


class SelectionAccountant(RdpAccountant):
    """The best of several runs, each of all the events of a composition.

    D'_λ = D_λ + (1 + η) ((1 - 1/λ') D_λ' + ln(1/γ)/λ') + ln(E K)/(λ - 1) for every λ, λ' > 1; λ' is
    the best that was found. The choice may depend on all that a run releases, and on that alone: a
    score on private records is one of its events. Sources: Papernot, Steinke 2022, Theorem 2.

    Args:
        selection: the law of the number of runs.
        adjacency: the relation of the events; None leaves it to the first.
    """

    name = "best of several runs"
    method = "Rényi divergences of the best of several runs in ball arithmetic: an upper bound"

    def __init__(self, selection: Selection, adjacency: Adjacency | None = None) -> None:
        super().__init__(adjacency)
        self.selection = selection
        self._constants: dict[tuple[object, ...], arb] = {}

    def log_moment(self, account: Account, order: Fraction) -> arb:
        """Return an upper bound on K(order) of the best run, for a record with this account."""
        return self._log_moment(account, order)

    def _log_moment(self, account: Account, order: Fraction) -> arb:
        one = super()._log_moment(account, order)
        with precision(BITS):
            runs = ball_of(self.selection.mean).log()
            return (one + ball_of(order - 1) * self._constant(account) + runs).upper()

    def _constant(self, account: Account) -> arb:
        """Return the least (1 + η) (K(λ') + ln 1/γ) / λ' that was found.

        K is convex, and so the quotient is quasi-convex in λ'.
        """
        if account.key in self._constants:
            return self._constants[account.key]
        log_inverse_gamma = ball_of(self.selection.log_inverse_gamma)
        factor = ball_of(1 + Fraction(self.selection.shape))

        def price(order: Fraction) -> arb:
            one = RdpAccountant._log_moment(self, account, order)
            return (factor * (one + log_inverse_gamma) / ball_of(order)).upper()

        with precision(BITS):
            best = self._best_order(account, lambda order: float(price(order)))
            self._constants[account.key] = price(best)
        return self._constants[account.key]


class CurveAccountant(RdpAccountant):
    """Events, and what is known by log moments alone beside them, for a single account.

    Args:
        curves: (log moments, how often) of what every record pays beside the events.
        integrals: how many distinct sampled mechanisms the curves are of.
    """

    name = "RDP with curves"

    def __init__(self, curves: Sequence[tuple[LogMoment, int]], *, integrals: int = 0) -> None:
        super().__init__()
        self._curves, self._of_curves = tuple(curves), integrals

    def _least_bound(self, account: Account, bound: LogMoment) -> arb:
        # an account without events still pays for the curves
        with precision(BITS):
            least = bound(self._best_order(account, lambda order: float(bound(order).upper())))
            return arb(inf) if least.is_nan() else least.upper()

    def _log_moment(self, account: Account, order: Fraction) -> arb:
        with precision(BITS):
            total = super()._log_moment(account, order)
            for curve, times in self._curves:
                total += times * curve(order)
            return total.upper()

    def _integrals(self, account: Account) -> int:
        return super()._integrals(account) + self._of_curves
