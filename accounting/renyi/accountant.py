"""Accountants of log moments K(α) = (α - 1) D_α, which add up: RDP, zCDP and moments.

The order is looked for anew for every question: ln δ = K(α) - (α-1) ε + h(α-1), with
h(c) = c ln c - (1+c) ln(1+c), is convex in α, and so ε at given δ is quasi-convex (Canonne, Kamath,
Steinke 2020, Proposition 12). Whatever order the search ends at, the bound at it holds.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, inf, log, sqrt

from flint import arb

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import Number, require_positive_int
from ...mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    LaplaceStep,
    Mechanism,
    PureStep,
    RandomisedResponse,
)
from ..accountant import Accountant
from ..composition import Account
from ..gaussian.exact import delta_from_epsilon, epsilon_from_delta
from ..numbers.enclosure import BITS, Enclosure, ball_of, precision
from .rdp import LARGEST_WHOLE_ORDER, is_sampled, log_moment

_RATIO = 8.0
"""Factor between tries of α - 1 in the search for a bracket."""

_SPREAD = 3e-3
"""The search stops when the logarithm of α - 1 is known to this: ε moves by its square."""
_LEAST_EXCESS, _LARGEST_EXCESS = 2.0**-40, 2.0**80
_LARGEST_FRACTION = 16
"""Above it whole orders of sampled mechanisms are close enough to each other."""
_MOST_INTEGRALS = 24
"""With more distinct sampled mechanisms only whole orders are looked at."""


class _LogMomentAccountant(Accountant):
    """Prices by log moments; the lower end is what the Gaussian steps alone cost."""

    @abstractmethod
    def _log_moment(self, account: Account, order: Fraction) -> arb:
        """Return an upper bound on K(order) of one record, exact."""

    @abstractmethod
    def _best_order(self, account: Account, objective: Callable[[Fraction], float]) -> Fraction:
        """Return the order with the least objective, as far as it was looked for."""

    def epsilon_of(self, account: Account, delta: Number) -> Enclosure:
        def bound(order: Fraction) -> arb:
            return (self._log_delta(account, order) - ball_of(delta).log()) / ball_of(order - 1)

        if account.reasons:
            return Enclosure.of(inf)
        lower = epsilon_from_delta(mu_squared=account.gaussian_mu_squared, delta=delta)
        return _from(lower, self._least_bound(account, bound))

    def delta_of(self, account: Account, epsilon: Number) -> Enclosure:
        def log_bound(order: Fraction) -> arb:
            return self._log_delta(account, order) - ball_of(order - 1) * ball_of(epsilon)

        if account.reasons or epsilon == inf:
            return Enclosure.of(1 if account.reasons else 0)
        lower = delta_from_epsilon(mu_squared=account.gaussian_mu_squared, epsilon=epsilon)
        upper = self._least_bound(account, log_bound)
        with precision(BITS):
            return _from(lower, upper.exp().min(arb(1)))

    def _least_bound(self, account: Account, bound: Callable[[Fraction], arb]) -> arb:
        """Return the bound at the best order; minus infinity where nothing depends on the data."""
        if not account.others and account.gaussian_mu_squared.upper.is_zero():
            return arb(-inf)
        with precision(BITS):
            return _upper(bound(self._best_order(account, lambda a: float(_upper(bound(a))))))

    def _log_delta(self, account: Account, order: Fraction) -> arb:
        """Return ln δ at ε = 0: K(α) + h(α - 1)."""
        excess = ball_of(order - 1)
        entropy = excess * excess.log() - (1 + excess) * excess.log1p()
        return self._log_moment(account, order) + entropy


def _upper(ball: arb) -> arb:
    """Return a ball's upper end; infinity where nothing is known."""
    return arb(inf) if ball.is_nan() else ball.upper()


def _from(lower: Enclosure, bound: arb) -> Enclosure:
    """Return the enclosure from a lower end to a bound; one below zero proves zero."""
    return Enclosure(lower.lower, bound.max(lower.lower).upper())


class RdpAccountant(_LogMomentAccountant):
    """Rényi divergences of any order, of every mechanism; converted at the best order.

    Sampled mechanisms: fractional orders up to 16, closed forms at whole orders above.
    """

    name = "RDP"
    method = "Rényi divergences in ball arithmetic at the best order found: an upper bound"
    prices = "mechanisms with noise"
    _fractions = True
    """Whether sampled mechanisms are looked at between whole orders, an integral for each."""

    def _knows(self, mechanism: Mechanism) -> bool:
        return True

    def _log_moment(self, account: Account, order: Fraction) -> arb:
        total = account.gaussian_mu_squared.upper * ball_of(order * (order - 1)) / 2
        for mechanism, times in account.others.items():
            total += times * log_moment(mechanism, order)
        return total.upper()

    def _integrals(self, account: Account) -> int:
        """Return how many distinct mechanisms need an integral at fractional orders."""
        return sum(is_sampled(mechanism) for mechanism in account.others)

    def _best_order(self, account: Account, objective: Callable[[Fraction], float]) -> Fraction:
        sampled = self._integrals(account)
        if not sampled:
            return _least(objective, Fraction)
        whole = _least(objective, _whole, excesses=(1.0, LARGEST_WHOLE_ORDER - 1.0))
        if whole > _LARGEST_FRACTION or sampled > _MOST_INTEGRALS or not self._fractions:
            return whole
        return min(_golden(objective, Fraction, _around(whole)), whole, key=objective)


def _whole(order: float) -> Fraction:
    """Return the nearest whole order, at least 2."""
    return Fraction(max(2, round(order)))


def _around(whole: Fraction) -> tuple[float, float]:
    """Return the logarithms of α - 1 between which the best order lies if `whole` is near it."""
    return log(float(whole - 2) or _LEAST_EXCESS), log(float(whole))


class WholeOrders(RdpAccountant):
    """The same by closed forms alone: a quick bound that is never below that of all orders."""

    _fractions = False


class WorstOfRuns(RdpAccountant):
    """Prices the most that a record pays which may be any party's in each run.

    At every order K adds up over runs, and of each run it is at most the largest of its accounts'.
    """

    def __init__(self, runs: Sequence[Sequence[Account]]) -> None:
        """Keep the accounts of each run; raise `UnpricedMechanism` as `require_accounts` does."""
        super().__init__()
        self._runs = runs
        self._all = sum((account for run in runs for account in run), Account())
        self.require_accounts([self._all])

    def epsilon_upper(self, delta: Number) -> arb:
        """Return an upper bound on epsilon at `delta`, in (0, 1)."""

        def bound(order: Fraction) -> arb:
            return (self._log_delta(self._all, order) - ball_of(delta).log()) / ball_of(order - 1)

        if self._all.reasons:
            return arb(inf)
        return self._least_bound(self._all, bound).max(arb(0)).upper()

    def _log_moment(self, account: Account, order: Fraction) -> arb:
        total = arb(0)
        for run in self._runs:
            largest = arb(0)
            for each in run:
                largest = largest.max(super()._log_moment(each, order))
            total += largest
        return total.upper()


class ZcdpAccountant(_LogMomentAccountant):
    """rho adds up (Bun, Steinke 2016); converted at the best order.

    A pure mechanism of epsilon is epsilon²/2-zCDP (Proposition 1.4). Samples have no price here.
    """

    name = "zCDP"
    method = "zCDP composition, converted at the best order in ball arithmetic"
    prices = "Gaussian or discrete Gaussian noise, or pure mechanisms,"

    def _knows(self, mechanism: Mechanism) -> bool:
        return isinstance(mechanism, _ZCDP)

    def rho(self, account: Account) -> Enclosure:
        """Return an enclosure of rho of one record; infinite without protection."""
        if account.reasons:
            return Enclosure.of(inf)
        with precision(BITS):
            total = account.gaussian_mu_squared.ball / 2
            for mechanism, times in account.others.items():
                total += times * _rho(mechanism)
            return Enclosure.from_ball(total)

    def _log_moment(self, account: Account, order: Fraction) -> arb:
        return (self.rho(account).upper * ball_of(order * (order - 1))).upper()

    def _best_order(self, account: Account, objective: Callable[[Fraction], float]) -> Fraction:
        return _least(objective, Fraction)


_ZCDP = DiscreteGaussianStep | LaplaceStep | DiscreteLaplaceStep | PureStep | RandomisedResponse
"""Mechanisms that have a rho, beside Gaussian steps."""


def _rho(mechanism: Mechanism) -> arb:
    """Return rho of one run of a mechanism; raise `TypeError` for one that has none."""
    match mechanism:
        case DiscreteGaussianStep(sensitivity=sensitivity, noise_std=scale) | (
            LaplaceStep(sensitivity=sensitivity, scale=scale)
            | DiscreteLaplaceStep(sensitivity=sensitivity, scale=scale)
            | PureStep(sensitivity=sensitivity, scale=scale)
        ):
            return ball_of(sensitivity.squared / Fraction(scale) ** 2) / 2
        case RandomisedResponse(truth=truth, categories=categories):
            odds = Fraction(truth) * (categories - 1) / (1 - Fraction(truth))
            return ball_of(odds).log() ** 2 / 2
        case _:
            raise TypeError(f"Expected a mechanism with a rho instead got {mechanism}.")


class MomentsAccountant(RdpAccountant):
    """Whole λ = α - 1 up to `max_order`, converted as its authors do; for comparison.

    ε = min_λ (K(λ+1) + ln 1/δ) / λ. Source: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang
    2016, Theorem 2.

    Args:
        adjacency: the relation of the events; None leaves it to the first.
        max_order: the largest λ, at least 1.
    """

    name = "moments"
    method = "log moments of whole orders in ball arithmetic, Markov's inequality"

    def __init__(self, adjacency: Adjacency | None = None, *, max_order: int = 32) -> None:
        super().__init__(adjacency)
        require_positive_int("max_order", max_order)
        self.max_order = max_order

    def _log_delta(self, account: Account, order: Fraction) -> arb:
        return self._log_moment(account, order)

    def _best_order(self, account: Account, objective: Callable[[Fraction], float]) -> Fraction:
        orders = (Fraction(2 + k) for k in range(self.max_order))
        return min(orders, key=objective)


_Objective = Callable[[Fraction], float]


def _least(
    objective: _Objective,
    order: Callable[[float], Fraction],
    *,
    excesses: tuple[float, float] = (_LEAST_EXCESS, _LARGEST_EXCESS),
) -> Fraction:
    """Return the order of the least value of a quasi-convex function that was found.

    Steps of a fixed factor in α - 1 walk down to a bracket, which a golden-section search narrows.

    Args:
        objective: of an order.
        order: makes an order of a number above 1.
        excesses: the ends of α - 1.
    """

    def value(log_excess: float) -> float:
        return objective(order(1 + exp(log_excess)))

    step, first, last = log(_RATIO), log(excesses[0]), log(excesses[1])
    middle = step
    while middle > first and value(max(middle - step, first)) <= value(middle):
        middle -= step
    while middle < last and value(min(middle + step, last)) < value(middle):
        middle += step
    return _golden(objective, order, (max(middle - step, first), min(middle + step, last)))


def _golden(
    objective: _Objective, order: Callable[[float], Fraction], bracket: tuple[float, float]
) -> Fraction:
    """Return the order of the least value that a golden-section search in log(α - 1) met."""
    values: dict[Fraction, float] = {}

    def value(log_excess: float) -> float:
        alpha = order(1 + exp(log_excess))
        if alpha not in values:
            values[alpha] = objective(alpha)
        return values[alpha]

    low, high = bracket
    golden = (sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    while high - low > _SPREAD:
        if value(left) <= value(right):
            high, right = right, left
            left = high - golden * (high - low)
        else:
            low, left = left, right
            right = low + golden * (high - low)
    return min(values, key=lambda alpha: values[alpha])
