"""The tight accountant: what a composition of dominating pairs costs, at every ε and δ.

>>> from fractions import Fraction
>>> from dpledger.accounting.pld.pairs import GaussianShift
>>> curve = PrivacyProfile.of_pairs({GaussianShift(Fraction(1)): 1})
>>> round(curve.epsilon(1e-5).upper_float, 10), round(curve.epsilon_upper(1e-5), 10)
(4.3771780957, 4.3771780957)

Each order of a sampled pair is composed alone; the largest value counts. For one order, the first
of these routes that applies: a closed form for Gaussian shifts alone, for a single event and for
losses with few values (`closed_form`; the fast grade asks it only where the next is loose); contour
integration; loss distributions in exact integers where the contour leaves too much open. Upper
bounds of very long sampled shifts are those of samples that are told (`revealed`).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from math import inf, log
from typing import Protocol

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import require_nonnegative, require_open_unit
from ...mechanisms.events import Mechanism
from ..composition import Account
from ..gaussian import exact as gaussian
from ..gaussian import fast as gaussian_fast
from ..numbers.enclosure import Enclosure, ball_of, precision
from . import contour, contour_certified
from .closed_form import MOST_KNOTS, Curve, closed_form
from .distribution import LossDistribution, MassRounding, compose, delta_by_pld, epsilon_by_pld
from .from_mechanisms import Unprotected, orders_of, pairs_of
from .moments import maximal_loss
from .pairs import DominatingPair, GaussianShift
from .profiles import delta_of, total_variation
from .revealed_sample import revealed, revealed_form
from .saddle import epsilon_by_moments

__all__ = ["PrivacyProfile"]

_WIDEST = 1e-6
"""The relative width of an enclosure at which no further route is tried."""

_FINEST = 1 << 17
"""The points of the finest grid, of very few steps: many multiply longer."""

_GRIDS = (1 << 13, _FINEST)
_FAST_GRID = 1 << 12
_LOOSE = 1e-4
"""The share of δ that the cut-off of a fast contour may take before the grid is tried."""

_FEW_KNOTS = 1 << 10
"""The most knots of a closed form, times deltas asked for, in the fast grade."""

_SMALLEST = (1e-30, 1e-300)
"""The δ down to which a closed form is built before its own δ is known."""

_LEAST_DELTA = 1e-300
"""The smallest δ for which loss distributions are composed."""

_ZERO = arb(0)

Counts = dict[DominatingPair, int]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PrivacyProfile:
    """The privacy profile of a composition; infinite where something left without protection.

    `orders` holds one composition of pairs for each order of neighbours.
    """

    orders: tuple[Counts, ...]
    unprotected: bool = False

    @classmethod
    def of_pairs(cls, *orders: Mapping[DominatingPair, int]) -> "PrivacyProfile":
        """Return the profile of pairs and how often each is composed, one mapping an order."""
        return cls(tuple(dict(counts) for counts in orders))

    @classmethod
    def of(cls, mechanisms: Mapping[Mechanism, int], adjacency: Adjacency) -> "PrivacyProfile":
        """Return the profile of mechanisms and how often each runs.

        Raises `NoDominatingPair` for a mechanism without a rule under this adjacency.
        """
        try:
            orders = [pairs_of(mechanisms, adjacency, order) for order in orders_of(adjacency)]
        except Unprotected:
            return cls((), unprotected=True)
        # without a sampled pair both orders are one
        return cls(tuple(counts for i, counts in enumerate(orders) if counts not in orders[:i]))

    @classmethod
    def of_account(cls, account: Account, adjacency: Adjacency) -> "PrivacyProfile":
        """Return the profile of what one record pays.

        Raises as `of` does.
        """
        if account.reasons:
            return cls((), unprotected=True)
        profile = cls.of(account.others, adjacency)
        gaussian_part = account.gaussian_mu_squared
        if profile.unprotected or gaussian_part.upper == 0:
            return profile
        return profile.with_shift(_exact(gaussian_part.upper), _exact(gaussian_part.lower))

    def with_shift(self, mu_squared: Fraction, least: Fraction | None = None) -> "PrivacyProfile":
        """Return the profile with Gaussian steps of this total μ² (at least `least`) added."""
        added = [_with_shift(counts, mu_squared, least) for counts in self.orders or ({},)]
        return PrivacyProfile(tuple(added), self.unprotected)

    def with_pairs(self, *orders: Mapping[DominatingPair, int]) -> "PrivacyProfile":
        """Return the profile with more pairs composed, one mapping for each order.

        The moments of the pairs already there are kept: the next query evaluates new pairs only.
        """
        mine = self.orders or ({},)
        if len(mine) == 1:
            mine = mine * len(orders)
        added = [dict(Counter(old) + Counter(new)) for old, new in zip(mine, orders, strict=True)]
        return PrivacyProfile(tuple(added), self.unprotected)

    def epsilon(self, delta: float) -> Enclosure:
        """Return a certified enclosure of ε(δ), 0 < δ < 1."""
        require_open_unit("delta", delta)
        if self.unprotected:
            return Enclosure.of(inf)
        largest = Enclosure.of(0)
        for counts in self.orders:
            if not _below(counts, delta, largest.lower):
                largest = _larger(largest, _epsilon(counts, delta, known=largest.lower))
        return largest

    def epsilon_upper(self, delta: float) -> float:
        """Return a fast upper bound on ε(δ), 0 < δ < 1."""
        return float(self.epsilons_upper(delta))

    def delta(self, epsilon: float) -> Enclosure:
        """Return a certified enclosure of δ(ε), ε >= 0."""
        require_nonnegative("epsilon", epsilon)
        if self.unprotected:
            return Enclosure.of(1)
        found = (_delta(counts, epsilon) for counts in self.orders)
        return reduce(_larger, found, Enclosure.of(0))

    def delta_upper(self, epsilon: float) -> float:
        """Return a fast upper bound on δ(ε), ε >= 0."""
        return float(self.deltas_upper(epsilon))

    def epsilons_upper(self, deltas: ArrayLike) -> Floats:
        """Return `epsilon_upper` of every δ of an array, in its shape."""
        values = np.asarray(deltas, dtype=np.float64)
        for value in values.flat:
            require_open_unit("delta", float(value))
        return self._largest_fast(values, inf, _epsilons_fast)

    def deltas_upper(self, epsilons: ArrayLike) -> Floats:
        """Return `delta_upper` of every ε of an array, in its shape."""
        values = np.asarray(epsilons, dtype=np.float64)
        for value in values.flat:
            require_nonnegative("epsilon", float(value))
        return self._largest_fast(values, 1.0, _deltas_fast)

    def _largest_fast(
        self, values: Floats, worst: float, answer: Callable[[Counts, Floats, Floats], Floats]
    ) -> Floats:
        """Return the largest `answer` of all orders; each is asked to go above the last only."""
        if self.unprotected:
            return np.full(values.shape, worst)
        largest = np.zeros(values.size)
        for counts in self.orders:
            largest = answer(counts, values.ravel(), largest)
        return largest.reshape(values.shape)

    def advantage_upper(self) -> float:
        """Return a bound on TPR - FPR of every attack: δ(0) (Kairouz, Oh, Viswanath 2015)."""
        return self.delta_upper(0.0)

    def beta_lower(self, alpha: ArrayLike) -> Floats:
        """Return a lower bound on the false negative rate of every test of false positive rate α.

        The largest of 1 - δ - e^ε α and e^{-ε}(1 - δ - α) over a grid of points of the curve; every
        point is valid, so the grid costs only tightness. Source: Wasserman, Zhou 2010, Theorem 2.4;
        Dong, Roth, Su 2022, Proposition 2.12.
        """
        rates = np.asarray(alpha, dtype=np.float64)[..., None]
        epsilons, deltas = self._points
        with np.errstate(over="ignore"):
            straight = 1 - deltas - np.exp(epsilons) * rates
        mirrored = np.exp(-epsilons) * (1 - deltas - rates)
        # a few ulps down, for the arithmetic of these two lines
        best = np.max(np.maximum(straight, mirrored), axis=-1)
        return np.asarray(np.maximum(best - 2.0**-48, 0.0), dtype=np.float64)

    def tpr_upper(self, fpr: ArrayLike) -> Floats:
        """Return an upper bound on the true positive rate of every attack at these FPRs."""
        return 1 - self.beta_lower(fpr)

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """Points of the curve from ε = 0 to δ = 1e-12, evenly in ε."""
        if self.unprotected:
            return np.zeros(1), np.ones(1)
        epsilons = np.linspace(0.0, self.epsilon_upper(1e-12), 513)
        return epsilons, self.deltas_upper(epsilons)


def _exact(point: arb) -> Fraction:
    exact = point.fmpq()
    return Fraction(int(exact.p), int(exact.q))


def _with_shift(counts: Counts, mu_squared: Fraction, least: Fraction | None) -> Counts:
    """Return the composition with one more Gaussian shift, joined to the shifts already there."""
    slack = mu_squared - (mu_squared if least is None else least)
    rest: Counts = {}
    for pair, n in counts.items():
        if isinstance(pair, GaussianShift):
            mu_squared, slack = mu_squared + n * pair.mu_squared, slack + n * pair.slack
        else:
            rest[pair] = n
    rest[GaussianShift(mu_squared, slack)] = 1
    return rest


def _larger(first: Enclosure, second: Enclosure) -> Enclosure:
    """Return an enclosure of the maximum."""
    return Enclosure(
        first.lower if first.lower >= second.lower else second.lower,
        first.upper if first.upper >= second.upper else second.upper,
    )


def _below(counts: Counts, delta: float, known: arb) -> bool:
    """Return whether one moment shows that ε(δ) <= known > 0, so that no more need be asked."""
    counts = revealed(counts)
    if not (counts and known > 0 and epsilon_by_moments(counts, log(delta))[0] < float(known)):
        return False
    return bool(contour_certified.epsilon_ceiling(counts, delta) <= known)


def _mu_squared(counts: Counts) -> Enclosure | None:
    """Return μ² of a composition of nothing but Gaussian shifts, else None."""
    if not all(isinstance(pair, GaussianShift) for pair in counts):
        return None
    shifts = [(pair, n) for pair, n in counts.items() if isinstance(pair, GaussianShift)]
    upper = sum(pair.mu_squared * n for pair, n in shifts)
    lower = sum((pair.mu_squared - pair.slack) * n for pair, n in shifts)
    return Enclosure.hull(Enclosure.of(lower), Enclosure.of(upper))


def _single(counts: Counts) -> DominatingPair | None:
    return next(iter(counts)) if sum(counts.values()) == 1 else None


def _closed(counts: Counts, delta: float, *, most_terms: int = MOST_KNOTS) -> Curve | None:
    """Return a closed form of the composition for questions about δ down to `delta`, or None."""
    return closed_form(counts, delta, most_knots=most_terms) or revealed_form(
        counts, delta, most_terms=min(most_terms, _FEW_KNOTS)
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """What lies above and below a composition with very long shifts, and its largest loss."""

    above: Counts
    below: Counts
    largest: float


def _told(counts: Counts) -> _Told | None:
    """Return what stands for a composition with very long shifts; None for any other.

    A single event has a closed form, however long its shift.
    """
    above = revealed(counts)
    if sum(counts.values()) == 1 or above == counts:
        return None
    below = {pair: n for pair, n in counts.items() if pair in above}
    largest = sum(n * maximal_loss(pair) for pair, n in counts.items())
    return _Told(above, below, largest * (1 + 2.0**-40))


def _advantage(counts: Counts) -> float:
    """Return an upper bound on δ(0), the total variation, which adds up at most."""
    return sum(n * total_variation(pair) for pair, n in counts.items()) * (1 + 2.0**-40)


def _epsilon(counts: Counts, delta: float, known: arb = _ZERO) -> Enclosure:
    """Return an enclosure of ε(δ); where it lies below `known` its upper end alone may be so."""
    if _advantage(counts) <= delta:
        return Enclosure.of(0)
    told = _told(counts)
    if told is not None:
        upper = _epsilon(told.above, delta).upper.min(arb(told.largest)).upper()
        lower = _epsilon(told.below, delta).lower if told.below else arb(0)
        return _narrowed(Enclosure(lower.min(upper).lower(), upper), counts, delta, known)
    mu_squared = _mu_squared(counts)
    if mu_squared is not None:
        return gaussian.epsilon_from_delta(mu_squared=mu_squared, delta=delta)
    single = _single(counts)
    if single is not None:
        return _epsilon_of_one(single, delta)
    closed = _closed(counts, delta)
    if closed is not None:
        return closed.epsilon(delta)
    return _narrowed(contour_certified.epsilon_enclosure(counts, delta), counts, delta, known)


def _narrowed(found: Enclosure, counts: Counts, delta: float, known: arb) -> Enclosure:
    """Return an enclosure of ε(δ), by loss distributions on a grid where it is wide."""
    for cells in _grids(counts):
        if found.relative_width <= _WIDEST or found.upper <= known:
            break
        try:
            found = _meet(found, epsilon_by_pld(counts, delta, cells=cells))
        except ArithmeticError:
            break
    return found


def _grids(counts: Counts) -> tuple[int, ...]:
    """Return the sizes of grids that take about a second each, whatever the number of steps."""
    coarser = min(sum(counts.values()).bit_length() // 4, 4)
    return tuple(cells >> coarser if cells == _FINEST else cells for cells in _GRIDS)


def _meet(first: Enclosure, second: Enclosure) -> Enclosure:
    return Enclosure(
        first.lower if first.lower >= second.lower else second.lower,
        first.upper if first.upper <= second.upper else second.upper,
    )


def _epsilons_fast(counts: Counts, deltas: Floats, least: Floats) -> Floats:
    """Return upper bounds on the larger of ε(δ) and `least`."""
    if not (counts and deltas.size):
        return least
    told = _told(counts)
    if told is not None:
        bounds = np.minimum(_epsilons_fast(told.above, deltas, least), told.largest)
        return np.maximum(bounds, least)
    mu_squared = _mu_squared(counts)
    if mu_squared is not None:
        return np.maximum(gaussian_fast.epsilon_upper(mu_squared=mu_squared, delta=deltas), least)
    single = _single(counts)
    if single is not None:
        return np.maximum([_epsilon_of_one(single, float(x)).upper_float for x in deltas], least)
    free = deltas >= _advantage(counts)
    if free.any():
        found = least.copy()
        found[~free] = _epsilons_fast(counts, deltas[~free], least[~free])
        return found
    found, shares = contour.epsilons_upper(counts, deltas, least)
    loose = np.nonzero(shares > _LOOSE)[0]
    if loose.size:
        route = _route_for(counts, float(np.min(deltas[loose])), loose.size)
        if route is not None:
            exact = [route.epsilon(float(deltas[k])).upper_float for k in loose]
            found[loose] = np.clip(exact, least[loose], found[loose])
    return found


class _Route(Protocol):
    """What answers for both ends of the curve."""

    def epsilon(self, delta: float) -> Enclosure: ...
    def delta(self, epsilon: float) -> Enclosure: ...


def _route_for(counts: Counts, smallest: float, queries: int) -> _Route | None:
    """Return what may do better than a contour down to δ = smallest, in a fast query's time."""
    closed = _closed(counts, smallest, most_terms=_FEW_KNOTS // queries)
    if closed is not None:
        return closed
    try:
        return _Above(
            compose(counts, delta=smallest, cells=_FAST_GRID, rounding=MassRounding.PESSIMISTIC)
        )
    except ArithmeticError:
        return None


@dataclass(frozen=True, slots=True)
class _Above:
    """A pessimistic distribution on a grid: its enclosures hold its own curve, above the true."""

    grid: LossDistribution

    def epsilon(self, delta: float) -> Enclosure:
        with precision(self.grid.bits):
            return Enclosure.from_ball(self.grid.epsilon(ball_of(delta)))

    def delta(self, epsilon: float) -> Enclosure:
        with precision(self.grid.bits):
            return Enclosure.from_ball(self.grid.delta(arb(epsilon)))


def _epsilon_of_one(pair: DominatingPair, delta: float) -> Enclosure:
    """Return ε(δ) of one event, by bisection on its profile in balls."""
    bits = 160
    with precision(bits):
        target = ball_of(delta)
        if delta_of(pair, arb(0)) <= target:
            return Enclosure.of(0)
        low, high = 0.0, min(maximal_loss(pair), 1.0)
        while not delta_of(pair, arb(high)) <= target:
            low, high = high, min(2 * high, maximal_loss(pair))
            if high in (low, inf):
                return Enclosure(arb(low), arb(high))
        for _ in range(1100):
            middle = (low + high) / 2 if low else high / 2
            if not low < middle < high or (low and high - low < 1e-15 * high):
                break
            value = delta_of(pair, arb(middle))
            if value <= target:
                high = middle
            elif value > target:
                low = middle
            else:
                break
        return Enclosure(arb(low), arb(high))


def _delta(counts: Counts, epsilon: float) -> Enclosure:
    told = _told(counts)
    if told is not None:
        upper = _delta(told.above, epsilon).upper if epsilon < told.largest else arb(0)
        lower = _delta(told.below, epsilon).lower if told.below else arb(0)
        return _delta_narrowed(Enclosure(lower.min(upper).lower(), upper), counts, epsilon)
    mu_squared = _mu_squared(counts)
    if mu_squared is not None:
        return gaussian.delta_from_epsilon(mu_squared=mu_squared, epsilon=epsilon)
    single = _single(counts)
    if single is not None:
        with precision(160):
            ball = delta_of(single, arb(epsilon))
            return Enclosure(ball.lower().max(arb(0)).lower(), ball.upper().max(arb(0)).upper())
    for smallest in _SMALLEST:
        closed = _closed(counts, smallest)
        if closed is not None and closed.delta(epsilon).relative_width <= _WIDEST:
            return closed.delta(epsilon)
    return _delta_narrowed(contour_certified.delta_enclosure(counts, epsilon), counts, epsilon)


def _delta_narrowed(found: Enclosure, counts: Counts, epsilon: float) -> Enclosure:
    """Return an enclosure of δ(ε), by loss distributions on a grid where it is wide."""
    if found.relative_width <= _WIDEST:
        return found
    about = min(float(_deltas_fast(counts, np.array([epsilon]), np.zeros(1))[0]), 0.5)
    for cells in _grids(counts):
        if found.relative_width <= _WIDEST or about < _LEAST_DELTA:
            break
        try:
            found = _meet(found, delta_by_pld(counts, epsilon, about=about, cells=cells))
        except ArithmeticError:
            break
    return found


def _deltas_fast(counts: Counts, epsilons: Floats, least: Floats) -> Floats:
    """Return upper bounds on the larger of δ(ε) and `least`."""
    if not (counts and epsilons.size):
        return least
    told = _told(counts)
    if told is not None:
        bounds = np.where(epsilons < told.largest, _deltas_fast(told.above, epsilons, least), least)
        return np.maximum(bounds, least)
    if _mu_squared(counts) is not None or _single(counts) is not None:
        return np.maximum([_delta(counts, float(x)).upper_float for x in epsilons], least)
    found, shares = contour.deltas_upper(counts, epsilons, least)
    loose = np.nonzero(shares > _LOOSE)[0]
    smallest = float(np.min(found[loose], initial=0.5))
    if loose.size and smallest >= _LEAST_DELTA:
        route = _route_for(counts, smallest, loose.size)
        if route is not None:
            exact = [route.delta(float(epsilons[k])).upper_float for k in loose]
            found[loose] = np.clip(exact, least[loose], found[loose])
    return found
