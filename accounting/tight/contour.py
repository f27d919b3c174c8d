"""The privacy profile of a composition by contour integration, in doubles.

With M(1+z) = Π_i M_i(1+z)^{n_i} the moment function of the composition, on any line Re z = c > 0

    δ(ε) = (1/2πi) ∫ M(1+z) e^{-zε} / (z(z+1)) dz.                                            (1)

(The transform of (1 - e^{ε-L})⁺ over L; Zhu, Dong, Wang 2022, Section 4, for the inversion of
characteristic functions of the privacy loss.) The trapezoid rule of step h on (1) is not an
approximation with an unknown error: by Poisson summation it equals, with Δ = 2π/h,

    Σ_m δ(ε + mΔ) e^{cmΔ}   over all whole m,                                                 (2)

because ε ↦ e^{cε}δ(ε) is continuous, decays exponentially both ways, and its transform, (1)'s
integrand, is O(1/t²). Every term of (2) is >= 0: the rule never falls below δ(ε), and since δ <= 1
and δ(x) <= M(1+λ) e^{-λx} λ^λ/(1+λ)^{1+λ} for every λ > 0, it exceeds δ(ε) by at most

    1/(e^{cΔ} - 1) + M(1+λ) e^{-λε} λ^λ/(1+λ)^{1+λ} / (e^{(λ-c)Δ} - 1)   for any λ > c.         (3)

What is left out beyond |t| = T is at most (1/π) sup_{t>=T} |M(1+c+it)| e^{-cε} / T, with the
bounds on |M| of `moments`. So an upper bound needs (1) by trapezoid, the cut-off bound, and an
allowance for rounding; the number of steps n_i plays no part in the cost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, exp, floor, inf, log, log1p, log2, pi, sqrt

import numpy as np
import numpy.typing as npt

from .dominating import DominatingPair
from .moments import EPS, Moments, log_decay, log_moments, maximal_loss, nodes_needed, out_of_reach
from .quadrature import Demand

__all__ = [
    "Contour",
    "Counts",
    "chernoff_delta",
    "delta_upper",
    "epsilon_by_moments",
    "epsilon_upper",
    "epsilon_upper_and_share",
    "place_contour",
]

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Counts = Mapping[DominatingPair, int]
Weights = Mapping[DominatingPair, int] | Mapping[DominatingPair, float]

_SKETCH = 48
"""Most pairs by which a contour is placed."""

_LOWEST, _HIGHEST = -160, 260
"""Orders are c = 2^(g/4) for whole g in this range, so that moments can be kept and found again."""

_MOST_NODES = 1 << 13
_MOST_WORK = 1 << 19

# how far beyond the line, in places of the grid, the orders λ of (3) are looked for
_AHEAD = (2, 4, 6, 8, 12, 16, 24)
DIGITS = 26.0
"""Natural-log digits of the aliasing and cut-off errors relative to δ: 5e-12."""


def order_of(grade: int) -> float:
    """Return the order c of a place on the geometric grid."""
    return float(2.0 ** (grade / 4))


@lru_cache(maxsize=65536)
def _real_moment(pair: DominatingPair, grade: int) -> float:
    c = order_of(grade)
    if out_of_reach(pair, c):
        return inf
    return float(log_moments(pair, np.array([complex(c)]), Demand(c, 0.0, 44.0)).log[0].real)


def _sketch(counts: Counts) -> Weights:
    """Return a few of very many pairs, weighted to stand for all: enough to place a contour by."""
    if len(counts) <= _SKETCH:
        return counts
    by_cost = sorted(counts.items(), key=lambda item: item[1] * _real_moment(item[0], 0))
    stride = len(by_cost) / _SKETCH
    picked = [by_cost[int((k + 0.5) * stride)] for k in range(_SKETCH)]
    return {pair: n * stride for pair, n in picked}


def _log_moment(counts: Weights, grade: int) -> float:
    return sum(n * _real_moment(pair, grade) for pair, n in counts.items())


def _entropy(c: float) -> float:
    """Return c log c - (1+c) log(1+c): the loss-to-δ factor of Canonne, Kamath, Steinke 2020."""
    return -c * log1p(1 / c) - log1p(c)


def _minimise(objective: Callable[[int], float]) -> int:
    """Return the place of the minimum of a quasi-convex function on the grid of orders."""
    low, high = _LOWEST, _HIGHEST
    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        if objective(left) <= objective(right):
            high = right
        else:
            low = left
    return min(range(low, high + 1), key=objective)


def epsilon_by_moments(counts: Counts, log_delta: float) -> tuple[float, int]:
    """Return an upper bound on ε(δ) from one moment, and the place of the best order.

    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """

    def objective(counts: Weights, grade: int) -> float:
        c = order_of(grade)
        return (_log_moment(counts, grade) + _entropy(c) - log_delta) / c

    best = _minimise(partial(objective, _sketch(counts)))
    return max(objective(counts, best), 0.0), best


def chernoff_delta(counts: Counts, epsilon: float) -> tuple[float, int]:
    """Return an upper bound on log δ(ε) from one moment, and the place of the best order."""

    def objective(counts: Weights, grade: int) -> float:
        c = order_of(grade)
        return _log_moment(counts, grade) + _entropy(c) - c * epsilon

    best = _minimise(partial(objective, _sketch(counts)))
    return min(objective(counts, best), 0.0), best


@dataclass(frozen=True, slots=True)
class Placement:
    """A contour: the line Re z = order, the step along it, the number of nodes with t > 0."""

    grade: int
    step: float
    count: int

    @property
    def order(self) -> float:
        return order_of(self.grade)

    @property
    def reach(self) -> float:
        """The height T of the last node."""
        return self.step * self.count

    def demand(self, counts: Weights, digits: float = DIGITS) -> Demand:
        """Return what the inner quadratures must deliver for a composition of so many steps."""
        steps = sum(counts.values())
        return Demand(self.order, self.reach, digits + 4 + ceil(log2(steps + 1)))

    def order_beyond(self, counts: Counts, epsilon: float) -> float:
        """Return the λ > c that makes the second term of (3) small near `epsilon`."""
        period = 2 * pi / self.step
        candidates = [self.grade + ahead for ahead in _AHEAD]
        sketch = _sketch(counts)

        def log_alias(grade: int) -> float:
            lam = order_of(grade)
            value = _log_moment(sketch, grade) + _entropy(lam) - lam * epsilon
            return value - (lam - self.order) * period

        return order_of(min(candidates, key=log_alias))


def _period(counts: Weights, grade: int, epsilon: float, need: float) -> float:
    """Return a Δ for which the aliasing (3) at this order is below exp(-need)."""
    c = order_of(grade)
    above = inf
    for ahead in _AHEAD:
        beyond = order_of(grade + ahead)
        value = _log_moment(counts, grade + ahead) + _entropy(beyond) - beyond * epsilon
        if value < inf:
            above = min(above, (value + need) / (beyond - c))
    return max(need / c, above) if above < inf else 4 * need / c


def place_contour(
    counts: Counts, *, epsilon: float, log_delta: float, grade: int, digits: float = DIGITS
) -> Placement:
    """Return a step and length for which aliasing and cut-off are exp(-digits) of δ near `epsilon`.

    `grade` is the place of the saddle; a line a little to its left can have the wider step, at the
    price of a few digits of cancellation. The length is capped by the work that it makes; the
    cut-off bound, which stays valid, then tells what is lost.
    """
    need, sketch = digits - log_delta, _sketch(counts)

    def height(place: int) -> float:
        c = order_of(place)
        return _log_moment(sketch, place) + _entropy(c) - c * epsilon

    periods = {
        g: _period(sketch, g, epsilon, need)
        for g in range(grade, max(grade - 12, _LOWEST), -1)
        if g == grade or height(g) - height(grade) < 6
    }
    grade = min(periods, key=lambda g: periods[g])
    # a step from a coarse grid, so that a near query finds the moments of this one
    step = 2.0 ** (floor(log2(2 * pi / periods[grade]) * 8) / 8)
    base = _log_moment(sketch, grade)
    count = 16
    while count < _MOST_NODES and _work(sketch, Placement(grade, step, count)) < _MOST_WORK:
        reach = step * count
        decay = sum(n * _decay(pair, grade, reach) for pair, n in sketch.items())
        excess = decay - order_of(grade) * epsilon - log(pi * reach) - log_delta + digits
        if excess <= 0:
            break
        done = base - decay
        grow = 1.05 * sqrt(1 + excess / done) if done > 0 else 8.0
        count = _length(count * min(max(grow, 1.19), 4.0))
    return Placement(grade, step, count)


def _work(counts: Weights, placement: Placement) -> int:
    """Return the mean number of (moment, node) pairs of one dominating pair."""
    demand = placement.demand(counts)
    return placement.count * sum(nodes_needed(pair, demand) for pair in counts) // len(counts)


def _length(count: float) -> int:
    """Return the next length on a geometric grid."""
    return round(2 ** (ceil(log2(count) * 4) / 4))


def _decay(pair: DominatingPair, grade: int, reach: float) -> float:
    return min(_real_moment(pair, grade), log_decay(pair, order_of(grade), reach))


@lru_cache(maxsize=8192)
def _moments_on(pair: DominatingPair, placement: Placement, demand: Demand) -> Moments:
    return log_moments(pair, _points(placement), demand)


def _points(placement: Placement) -> Complexes:
    t = placement.step * np.arange(placement.count + 1)
    return np.asarray(placement.order + 1j * t, dtype=np.complex128)


@dataclass(frozen=True, slots=True)
class Contour:
    """The integrand of (1) without e^{-zε} on a placed contour, and bounds on its errors."""

    placement: Placement
    z: Complexes
    log: Complexes
    error: Floats
    log_tail: float

    @classmethod
    def of(cls, counts: Counts, placement: Placement) -> "Contour":
        """Return the contour of a composition: one moment evaluation for each distinct pair."""
        z = _points(placement)
        total, error = -np.log(z) - np.log1p(z), 4 * EPS * (1 + np.abs(np.log(z)))
        tail = 0.0
        demand = placement.demand(counts)
        for pair, n in counts.items():
            moments = _moments_on(pair, placement, demand)
            total, error = total + n * moments.log, error + n * moments.error
            tail += n * _decay(pair, placement.grade, placement.reach)
        return cls(
            placement, z, total, error + EPS * np.abs(total), tail - log(pi * placement.reach)
        )

    def delta_and_slope(self, epsilon: float) -> tuple[float, float]:
        """Return an upper bound on δ(ε), and the derivative dδ/dε (an estimate)."""
        exponent = self.log - self.z * epsilon
        if float(exponent[0].real) > 600:
            return inf, -inf
        terms = np.exp(exponent) * (self.placement.step / pi)
        terms[0] /= 2
        rounding = self.error + 4 * EPS * (2 + np.abs(exponent))
        allowance = float(np.abs(terms) @ np.expm1(np.minimum(rounding, 1.0)))
        tail = exp(min(self.log_tail - self.placement.order * epsilon, 700.0)) * (1 + 1e-9)
        value = float(np.sum(terms.real)) + allowance + tail
        return value, -float(np.sum((terms * self.z).real))


def epsilon_upper(counts: Counts, delta: float) -> float:
    """Return an upper bound on ε(δ) of the composition, in doubles."""
    return epsilon_upper_and_share(counts, delta)[0]


def epsilon_upper_and_share(counts: Counts, delta: float) -> tuple[float, float]:
    """Return an upper bound on ε(δ), and the share of δ that the cut-off of the contour takes.

    The root of the upper bound on δ(ε), from the right, below the bound of one moment and the pure
    bound; where the contour's own errors hide the root, the latter stand. The contour is placed for
    the best ε known, and again if the root lies far from there.
    """
    log_delta = log(delta)
    epsilon, grade = epsilon_by_moments(counts, log_delta)
    epsilon = min(epsilon, sum(n * maximal_loss(pair) for pair, n in counts.items()))
    share = 0.0
    for _ in range(4):
        if not 0 < epsilon < inf:
            break
        placement = place_contour(counts, epsilon=epsilon, log_delta=log_delta, grade=grade)
        contour = Contour.of(counts, placement)
        root = _root_above(contour, delta, epsilon)
        near, epsilon = root > 0.8 * epsilon, root
        share = exp(min(contour.log_tail - placement.order * root - log_delta, 700.0))
        if near:
            break
        _, grade = chernoff_delta(counts, epsilon)
    return epsilon * (1 + 4 * EPS), share


_SETTLED = 2.0**-46
"""The relative Newton step at which a root is settled: any ε with bound <= δ is valid."""


def _root_above(contour: Contour, delta: float, high: float) -> float:
    """Return the least ε found in [0, high] whose bound on δ is <= delta; `high` if none is."""
    low, epsilon = 0.0, high
    if contour.delta_and_slope(0.0)[0] <= delta:
        return 0.0
    for _ in range(100):
        value, slope = contour.delta_and_slope(epsilon)
        if value <= delta:
            high = epsilon
        else:
            low = epsilon
        if high - low <= 8 * EPS * high:
            break
        # Newton on log δ, a hair to the right so that both ends of the bracket move
        known = 0 < value < inf and slope < 0
        new = epsilon - (log(value / delta) * value / slope if known else inf)
        if value <= delta and epsilon - new <= _SETTLED * epsilon:
            break
        new += 4 * EPS * epsilon
        epsilon = new if low < new < high else (low + high) / 2
    return high


def delta_upper(counts: Counts, epsilon: float) -> float:
    """Return an upper bound on δ(ε) of the composition, ε >= 0, in doubles."""
    if epsilon >= sum(n * maximal_loss(pair) for pair, n in counts.items()):
        return 0.0
    by_moments, grade = chernoff_delta(counts, epsilon)
    placement = place_contour(counts, epsilon=epsilon, log_delta=by_moments, grade=grade)
    value, _ = Contour.of(counts, placement).delta_and_slope(epsilon)
    return min(value, exp(by_moments) * (1 + 1e-9), 1.0)
