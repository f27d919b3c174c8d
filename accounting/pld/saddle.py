"""Bounds from one moment, in doubles, and the order at which they are best: the saddle point.

For every order c > 0, δ(ε) <= M(1+c) e^{-cε} c^c / (1+c)^{1+c} (Canonne, Kamath, Steinke 2020,
Proposition 12). Orders are c = 2^(g/4) for whole g, so that the moments which one query took are
found again by the next.
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from math import log1p, log2, sqrt
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from .moments import log_real_moments
from .nodes import added
from .pairs import DominatingPair

Floats = npt.NDArray[np.float64]
Grades = npt.NDArray[np.int64]
Counts = Mapping[DominatingPair, int]
T = TypeVar("T", float, Floats)

Weights = Mapping[DominatingPair, int] | Mapping[DominatingPair, float]

# orders from 2^-40 to 2^65: between them lies the best one of every ε that doubles hold
LOWEST_GRADE, _HIGHEST_GRADE = -160, 260
_BLOCK = 8
"""Places of the grid whose moments are evaluated together: the nodes of the last serve all."""
_ROUNDED = 2.0**-40
"""What a moment of a composition is off by at most, relative to it: those of its pairs are known to
a thousand ulps, and added without error."""
_SKETCH = 48
"""Most pairs by which a contour is placed.

Only where the line runs depends on it; every bound is evaluated on all pairs.
"""


def order_of(grade: int) -> float:
    """Return the order c of a place on the geometric grid.""" ""
    return float(2.0 ** (grade / 4))


def _grade_of(order: float) -> int:
    """Return the place nearest to an order, within the grid."""
    grade = round(4 * log2(min(max(order, 2.0**-8), 2.0**60)))
    return min(max(grade, LOWEST_GRADE), _HIGHEST_GRADE)


@lru_cache(maxsize=65536)
def _block_of_moments(pair: DominatingPair, block: int) -> tuple[float, ...]:
    """Return log M(1+c) at all orders of a block; kept, as every query walks the same grid."""
    grades = range(block * _BLOCK, (block + 1) * _BLOCK)
    found = log_real_moments(pair, np.array([order_of(g) for g in grades]))
    return tuple(float(x) for x in found)


def real_moment(pair: DominatingPair, grade: int) -> float:
    """Return log M(1+c) of a pair at the order of this place; infinity where out of reach.

    Args:
        pair: any pair.
        grade: place on the grid.
    """
    block, place = divmod(grade, _BLOCK)
    return _block_of_moments(pair, block)[place]


def sketch(counts: Counts) -> Weights:
    """Return a few of very many pairs, weighted to stand for all: enough to place a contour by.

    Sorted by what each contributes to log M(2), then thinned evenly, each standing for its
    neighbours.
    """
    if len(counts) <= _SKETCH:
        return counts
    by_cost = sorted(counts.items(), key=lambda item: item[1] * real_moment(item[0], 0))
    stride = len(by_cost) / _SKETCH
    picked = [by_cost[int((k + 0.5) * stride)] for k in range(_SKETCH)]
    return {pair: n * stride for pair, n in picked}


def log_moment(counts: Weights, grade: int) -> float:
    """Return log M(1+c) of a composition."""
    return added(n * real_moment(pair, grade) for pair, n in counts.items())


def log_moments_of(counts: Weights) -> Callable[[int], float]:
    """Return `log_moment` of these counts to a few ulps, for searches: a block of places at once,
    and each once.
    """
    times = np.array([float(n) for n in counts.values()])

    @cache
    def of_block(block: int) -> list[float]:
        table = np.array([_block_of_moments(pair, block) for pair in counts])
        with np.errstate(over="ignore"):
            found: list[float] = np.sum(times[:, None] * table, axis=0).tolist()
        return found

    def moment(grade: int) -> float:
        block, place = divmod(grade, _BLOCK)
        return of_block(block)[place]

    return moment


def entropy(c: float) -> float:
    """Return c log c - (1+c) log(1+c), the last factor of the bound."""
    return -c * log1p(1 / c) - log1p(c)


def _lowest(objective: Callable[[int], float], start: int) -> int:
    """Return the place of the minimum of a quasi-convex function on the grid, sought from start.

    Infinite values are taken to lie to the right of the minimum, which is the first place after
    which the function does not fall: steps double until it is between two places, and halves of
    what is between them close in on it.

    Args:
        objective: of a place.
        start: a place near the minimum, if that is known.
    """

    def falls(place: int) -> bool:
        return place < _HIGHEST_GRADE and objective(place) > objective(place + 1)

    low, high, step = LOWEST_GRADE - 1, _HIGHEST_GRADE, 1
    here = start
    while low < here < high:
        low, high = (here, high) if falls(here) else (low, here)
        here, step = (here + step if here == low else here - step), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if falls(middle) else (low, middle)
    return high


class _Bound(Protocol):
    """A bound from log M(1+c) + entropy(c), c, and a log δ or ε; numbers or arrays alike."""

    def __call__(self, height: T, order: T, value: T, /) -> T: ...


def _best(
    counts: Counts, values: Floats, bound: _Bound, guess: Callable[[float], float]
) -> tuple[Floats, Grades]:
    """Return the least `bound` over all orders for each of `values`, and the place of that order.

    It is quasi-convex in the order, and the best order monotone in the value, so that those of the
    extreme values bracket all.

    Args:
        counts: pairs and how often each.
        values: log δ or ε, shape (n,).
        bound: of `_epsilon_bound` and `_log_delta_bound`.
        guess: about the best order of a value.
    """
    moment = log_moments_of(sketch(counts))

    def height(grade: int) -> float:
        return moment(grade) + entropy(order_of(grade))

    def lowest(value: float) -> int:
        return _lowest(lambda g: bound(height(g), order_of(g), value), _grade_of(guess(value)))

    ends = sorted({lowest(float(x)) for x in {np.min(values), np.max(values)}})
    grades = np.arange(ends[0], ends[-1] + 1)
    orders = np.array([order_of(int(g)) for g in grades])
    heights = np.array([height(int(g)) for g in grades])
    table = bound(heights[:, None], orders[:, None], values)
    places = np.argmin(table, axis=0)
    for place in set(places.tolist()):
        grade = int(grades[place])
        heights[place] = log_moment(counts, grade) + entropy(order_of(grade))
    return bound(heights[places], orders[places], values), grades[places]


def _like_gaussian(counts: Counts) -> float:
    """Return the μ² of the Gaussian shift with the same M(2): where to start the search."""
    return max(log_moment(sketch(counts), 0), 1e-300)


def _epsilon_bound(height: T, order: T, log_delta: T) -> T:
    """Return the ε at which the bound of one moment equals δ: (log M + entropy - log δ) / c."""
    return (height - log_delta) / order


def _log_delta_bound(height: T, order: T, epsilon: T) -> T:
    """Return log of the bound of one moment on δ: log M + entropy - cε."""
    return height - order * epsilon


def _above_log_delta_bound(height: T, order: T, epsilon: T) -> T:
    """Return a number above that, however little of the difference is left in doubles."""
    return height - order * epsilon + _ROUNDED * (abs(height) + order * epsilon)


def epsilons_by_moments(counts: Counts, log_deltas: Floats) -> tuple[Floats, Grades]:
    """Return about the upper bounds on ε(δ) from one moment each, and the places of best orders.

    `above_epsilons` are above them. A Gaussian shift of the same M(2) has its best order near
    sqrt(2 (1 - log δ)/μ²): there the search starts.
    """
    mu_squared = _like_gaussian(counts)
    found, grades = _best(
        counts, log_deltas, _epsilon_bound, lambda log_delta: sqrt(2 * (1 - log_delta) / mu_squared)
    )
    return np.maximum(found, 0.0), grades


def above_epsilons(found: Floats, grades: Grades, log_deltas: Floats) -> Floats:
    """Return upper bounds on ε(δ), from what `epsilons_by_moments` found.

    The height of a bound is εc + log δ: so much of it is a difference of rounded numbers.
    """
    orders = np.array([order_of(int(grade)) for grade in grades])
    return np.asarray(found + _ROUNDED * (found + 2 * np.abs(log_deltas) / orders))


def epsilon_by_moments(counts: Counts, log_delta: float) -> tuple[float, int]:
    """Return about an upper bound on ε(δ) from one moment, and the place of the best order."""
    found, grades = epsilons_by_moments(counts, np.array([log_delta]))
    return float(found[0]), int(grades[0])


def _best_deltas(counts: Counts, epsilons: Floats, bound: _Bound) -> tuple[Floats, Grades]:
    """Return the least log δ <= 0 by a bound, and the places of the best orders.

    A Gaussian shift of the same M(2) has its best order near ε/μ² - 1/2, the saddle of its own
    curve.
    """
    mu_squared = _like_gaussian(counts)
    found, grades = _best(counts, epsilons, bound, lambda epsilon: epsilon / mu_squared - 0.5)
    return np.minimum(found, 0.0), grades


def chernoff_deltas(counts: Counts, epsilons: Floats) -> tuple[Floats, Grades]:
    """Return about the upper bounds on log δ(ε) from one moment each, and places of best orders."""
    return _best_deltas(counts, epsilons, _log_delta_bound)


def above_log_deltas(counts: Counts, epsilons: Floats) -> Floats:
    """Return upper bounds on log δ(ε) from one moment each, at orders that leave digits."""
    return _best_deltas(counts, epsilons, _above_log_delta_bound)[0]


def chernoff_delta(counts: Counts, epsilon: float) -> tuple[float, int]:
    """Return about an upper bound on log δ(ε) from one moment, and the place of the best order."""
    found, grades = chernoff_deltas(counts, np.array([epsilon]))
    return float(found[0]), int(grades[0])
