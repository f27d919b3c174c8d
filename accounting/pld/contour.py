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
bounds on |M| of `decay`. So an upper bound needs (1) by trapezoid, the cut-off bound, and an
allowance for rounding; the number of steps n_i plays no part in the cost.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, floor, inf, isqrt, log, log2, pi, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .decay import log_decay
from .moments import EPS, Moments, log_moments, maximal_loss, nodes_needed
from .pairs import DominatingPair
from .quadrature import Demand
from .saddle import (
    LOWEST_GRADE,
    Counts,
    Weights,
    chernoff_deltas,
    entropy,
    epsilons_by_moments,
    log_moment,
    order_of,
    real_moment,
    sketch,
)

__all__ = [
    "Contour",
    "ContourTarget",
    "Limits",
    "Placement",
    "UpperBounds",
    "deltas_upper",
    "epsilons_upper",
    "moments_on",
    "place_contour",
]

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Places = npt.NDArray[np.int64]

_KEPT_NODES = 1 << 13
"""The longest contour whose moments are kept for the next query."""

_LEAST_WORK = 1 << 19
"""The (moment, node) pairs of a dominating pair that are always granted."""

# how far beyond the line, in places of the grid, the orders λ of (3) are looked for
_AHEAD = (1, 2, 4, 6, 8, 12, 16, 24)
DIGITS = 26.0
"""Natural-log digits of the aliasing and cut-off errors relative to δ: 5e-12."""

_STRAIN = 6.0
"""Natural-log digits that may cancel where a contour lies off the saddle of a point it serves."""

_USELESS, _FEW = 0.2, 8
"""The share of δ beyond the last node at which so few distinct pairs are left to a grid."""

_WEIGHT = 0.5
"""Each digit that cancels beyond these counts as so much of the logarithm of the length."""


class Limits(NamedTuple):
    """The most nodes of a contour, and the most (moment, node) pairs of all dominating pairs."""

    nodes: int
    work: int


_FAST = Limits(1 << 14, 1 << 20)


class ContourTarget(NamedTuple):
    """A point of the curve, more or less, which a contour is to serve."""

    epsilon: float
    log_delta: float


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

    def share_beyond(self, counts: Weights, target: ContourTarget) -> float:
        """Return a bound on the share of δ that lies beyond the last node."""
        decay = sum(n * _decay(pair, self.grade, self.reach) for pair, n in counts.items())
        log_tail = decay - log(pi * self.reach) - self.order * target.epsilon
        return exp(min(log_tail - target.log_delta, 700.0))

    def order_beyond(self, counts: Counts, epsilon: float) -> float:
        """Return the λ > c that makes the second term of (3) small near `epsilon`."""
        period = 2 * pi / self.step
        candidates = [self.grade + ahead for ahead in _AHEAD]
        weights = sketch(counts)

        def log_alias(grade: int) -> float:
            lam = order_of(grade)
            value = log_moment(weights, grade) + entropy(lam) - lam * epsilon
            return value - (lam - self.order) * period

        return order_of(min(candidates, key=log_alias))


def _period(counts: Weights, grade: int, target: ContourTarget, digits: float) -> float:
    """Return a Δ for which the aliasing (3) at this order is below exp(-digits) of δ."""
    c, need = order_of(grade), digits - target.log_delta
    above = inf
    for ahead in _AHEAD:
        beyond = order_of(grade + ahead)
        value = log_moment(counts, grade + ahead) + entropy(beyond) - beyond * target.epsilon
        if value < inf:
            above = min(above, (value + need) / (beyond - c))
    return max(need / c, above) if above < inf else 4 * need / c


def place_contour(
    counts: Counts,
    targets: tuple[ContourTarget, ...],
    *,
    grade: int,
    digits: float = DIGITS,
    limits: Limits = _FAST,
) -> Placement | None:
    """Return a step and length for which aliasing and cut-off are exp(-digits) of δ at `targets`.

    `grade` is the place of the saddle; a line to its left can have the wider step, at the price of
    digits of cancellation. Where losses have heavy tails (small rates) the saddle lies by a cliff,
    beyond which the moments explode, and only lines well to its left have a step of use. The length
    is capped by the work that it makes; the cut-off bound, which stays valid, then tells what is
    lost. Errors relative to δ are largest at the ends of a stretch of the curve: two targets stand
    for all between. None where more than `_USELESS` of δ would be lost, of so few pairs that loss
    distributions on a grid are composed faster.
    """
    weights = sketch(counts)

    def height(place: int) -> float:
        return max(_strain(weights, place, target) for target in targets)

    free = max(height(grade), _STRAIN)
    periods = {
        g: max(_period(weights, g, target, digits) for target in targets)
        for g in range(grade, max(grade - 12, LOWEST_GRADE - 1), -1)
    }
    grade = min(periods, key=lambda g: log(periods[g]) + _WEIGHT * max(height(g) - free, 0.0))
    # a step from a coarse grid, so that a near query finds the moments of this one
    step = 2.0 ** (floor(log2(2 * pi / periods[grade]) * 8) / 8)
    base, c = log_moment(weights, grade), order_of(grade)
    worst = max(-c * target.epsilon - target.log_delta for target in targets)
    count, most_work = 16, max(limits.work, _LEAST_WORK * len(weights))
    while count < limits.nodes and _work(weights, Placement(grade, step, count)) < most_work:
        reach = step * count
        decay = sum(n * _decay(pair, grade, reach) for pair, n in weights.items())
        excess = decay + worst - log(pi * reach) + digits
        if excess <= 0:
            break
        done = base - decay
        grow = 1.05 * sqrt(1 + excess / done) if done > 0 else 8.0
        count = _length(count * min(max(grow, 1.19), 4.0))
    found = Placement(grade, step, count)
    lost = max(found.share_beyond(weights, target) for target in targets)
    return None if lost > _USELESS and len(counts) <= _FEW else found


def _strain(counts: Weights, grade: int, target: ContourTarget) -> float:
    """Return the log of the bound by one moment over δ: the digits that cancel in the sum."""
    c = order_of(grade)
    return log_moment(counts, grade) + entropy(c) - c * target.epsilon - target.log_delta


def _work(counts: Weights, placement: Placement) -> int:
    """Return the number of (moment, node) pairs."""
    demand = placement.demand(counts)
    return placement.count * sum(nodes_needed(pair, demand) for pair in counts)


def _length(count: float) -> int:
    """Return the next length on a geometric grid."""
    return round(2 ** (ceil(log2(count) * 4) / 4))


def _decay(pair: DominatingPair, grade: int, reach: float) -> float:
    return min(real_moment(pair, grade), log_decay(pair, order_of(grade), reach))


@lru_cache(maxsize=8192)
def moments_on(pair: DominatingPair, placement: Placement, demand: Demand) -> Moments:
    """Return the moments of one pair at the nodes of a contour; kept for the next query."""
    return log_moments(pair, _points(placement), demand)


def _points(placement: Placement) -> Complexes:
    t = placement.step * np.arange(placement.count + 1)
    return np.asarray(placement.order + 1j * t, dtype=np.complex128)


@dataclass(frozen=True, slots=True)
class Contour:
    """The integrand of (1) on a placed contour, and bounds on its errors, for ε <= highest.

    The terms are kept as a matrix, term k = row · columns + column, relative to exp(log_scale) and
    at ε = highest: two short sets of phases turn all of them to any other ε.
    """

    placement: Placement
    highest: float
    log_scale: float
    terms: Complexes
    slopes: Complexes
    allowance: float
    log_tail: float

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(cls, counts: Counts, placement: Placement, highest: float) -> "Contour":
        """Return the contour of a composition: one moment evaluation for each distinct pair."""
        z = _points(placement)
        total, error = -np.log(z) - np.log1p(z), 4 * EPS * (1 + np.abs(np.log(z)))
        tail = 0.0
        demand = placement.demand(counts)
        for pair, n in counts.items():
            kept = placement.count <= _KEPT_NODES
            moments = moments_on(pair, placement, demand) if kept else log_moments(pair, z, demand)
            total, error = total + n * moments.log, error + n * moments.error
            tail += n * _decay(pair, placement.grade, placement.reach)
        columns = isqrt(placement.count) + 1
        size = columns * -(-z.size // columns)
        # of the exponents and phases, and of the two sums
        error += EPS * (8 * (2 + np.abs(total) + np.abs(z) * highest) + 4 * columns)
        exponent = total - z * highest
        log_scale = float(exponent[0].real)
        terms = np.zeros(size, dtype=np.complex128)
        terms[: z.size] = np.exp(exponent - log_scale) * (placement.step / pi)
        terms[0] /= 2
        slopes = np.zeros(size, dtype=np.complex128)
        slopes[: z.size] = -z * terms[: z.size]
        return cls(
            placement,
            highest,
            log_scale,
            terms.reshape(-1, columns),
            slopes.reshape(-1, columns),
            float(np.abs(terms[: z.size]) @ np.expm1(np.minimum(error, 700.0))),
            tail - log(pi * placement.reach),
        )

    @np.errstate(over="ignore", invalid="ignore")
    def deltas_and_slopes(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return upper bounds on δ(ε), 0 <= ε <= highest, and the derivatives dδ/dε (estimates)."""
        rows, columns = self.terms.shape
        c, step = self.placement.order, self.placement.step
        fall = self.highest - epsilons
        short = np.exp(1j * step * np.outer(np.arange(columns), fall))
        long = np.exp(1j * step * columns * np.outer(np.arange(rows), fall))
        exponent = self.log_scale + c * fall
        scale = np.exp(np.minimum(exponent, 600.0))
        # not by matrix product: its threads cost more than they save, on a busy machine far more
        value = np.sum(long * np.einsum("rc,cn->rn", self.terms, short), axis=0).real
        slope = np.sum(long * np.einsum("rc,cn->rn", self.slopes, short), axis=0).real
        tail = np.exp(np.minimum(self.log_tail - c * epsilons, 700.0)) * (1 + 1e-9)
        upper = scale * (value + self.allowance) * (1 + 4 * EPS) + tail
        return np.where(exponent <= 600.0, upper, inf), scale * slope

    def roots_above(self, deltas: Floats, low: Floats, high: Floats) -> Floats:
        """Return the least ε found in [low, high] whose bound is <= δ; `high` if none is."""
        at_low = self.deltas_and_slopes(low)[0] <= deltas
        low, high = low.copy(), np.where(at_low, low, high)
        epsilons, active = high.copy(), np.nonzero(~at_low)[0]
        for _ in range(100):
            if not active.size:
                break
            here, target = epsilons[active], deltas[active]
            value, slope = self.deltas_and_slopes(here)
            meets = value <= target
            high[active], low[active] = (
                np.where(meets, here, high[active]),
                np.where(meets, low[active], here),
            )
            # Newton on log δ, a hair to the right so that both ends of the bracket move
            with np.errstate(all="ignore"):
                move = np.log(value / target) * value / slope
            settled = meets & (move >= -inf) & (np.abs(move) <= _SETTLED * here)
            new = here - move + 4 * EPS * here
            inside = (low[active] < new) & (new < high[active])
            epsilons[active] = np.where(inside, new, (low[active] + high[active]) / 2)
            active = active[~settled & (high[active] - low[active] > 8 * EPS * high[active])]
        return high


_SMALLEST = 5e-324

_SETTLED = 2.0**-46
"""The relative Newton step at which a root is settled: any ε with bound <= δ is valid."""


class UpperBounds(NamedTuple):
    """Upper bounds, and for each the share of δ that the cut-off of its contour takes."""

    values: Floats
    shares: Floats


def epsilons_upper(counts: Counts, deltas: Floats, least: Floats) -> UpperBounds:
    """Return upper bounds on the larger of ε(δ) and `least`, for arrays of shape (n,), in doubles.

    The root of the upper bound on δ(ε), from the right, below the bound of one moment and the pure
    bound; where the contour's own errors hide the root, the latter stand. A contour serves as many
    points as it can. It is placed for the best ε known, and again if the root lies far from there.
    """
    log_deltas = np.log(deltas)
    epsilons, grades = epsilons_by_moments(counts, log_deltas)
    largest = sum(n * maximal_loss(pair) for pair, n in counts.items())
    epsilons, shares = np.minimum(epsilons, largest), np.zeros(deltas.shape)
    unsettled = np.nonzero((least < epsilons) & (epsilons < inf))[0]
    for attempt in range(4):
        if attempt and unsettled.size:
            grades[unsettled] = chernoff_deltas(counts, epsilons[unsettled])[1]
        far: list[int] = []
        for points in _stretches(counts, epsilons, log_deltas, grades, unsettled):
            contour = _contour_for(counts, epsilons, log_deltas, grades, points)
            if contour is None:
                shares[points] = 1.0
                continue
            roots = contour.roots_above(deltas[points], least[points], epsilons[points])
            is_far = (roots > least[points]) & (roots <= 0.8 * epsilons[points])
            far += points[is_far].tolist()
            epsilons[points] = roots
            lost = contour.log_tail - contour.placement.order * roots - log_deltas[points]
            shares[points] = np.exp(np.minimum(lost, 700.0))
        unsettled = np.array(far, dtype=np.int64)
    return UpperBounds(np.maximum(epsilons * (1 + 4 * EPS), least), shares)


def deltas_upper(counts: Counts, epsilons: Floats, least: Floats) -> UpperBounds:
    """Return upper bounds on the larger of δ(ε), ε >= 0, and `least`, as `epsilons_upper` does."""
    largest = sum(n * maximal_loss(pair) for pair, n in counts.items())
    log_deltas, grades = chernoff_deltas(counts, epsilons)
    deltas = np.where(epsilons < largest, np.minimum(np.exp(log_deltas) * (1 + 1e-9), 1.0), 0.0)
    shares = np.zeros(deltas.shape)
    unsettled = np.nonzero(least < deltas)[0]
    for points in _stretches(counts, epsilons, log_deltas, grades, unsettled):
        contour = _contour_for(counts, epsilons, log_deltas, grades, points)
        if contour is None:
            shares[points] = 1.0
            continue
        found, _ = contour.deltas_and_slopes(epsilons[points])
        deltas[points] = np.fmin(found, deltas[points])
        lost = contour.log_tail - contour.placement.order * epsilons[points]
        with np.errstate(divide="ignore"):
            shares[points] = np.exp(np.minimum(lost - np.log(deltas[points]), 700.0))
    # a bound below the smallest number is not zero
    deltas = np.where(epsilons < largest, np.maximum(deltas, _SMALLEST), deltas)
    return UpperBounds(np.maximum(deltas, least), shares)


def _stretches(
    counts: Counts, epsilons: Floats, log_deltas: Floats, grades: Places, points: Places
) -> list[Places]:
    """Split points of the curve into stretches, each of which the saddle of its middle serves."""
    if not points.size:
        return []
    weights = sketch(counts)
    found, waiting = [], [points[np.argsort(log_deltas[points], kind="stable")]]
    while waiting:
        stretch = waiting.pop()
        grade = int(grades[stretch[stretch.size // 2]])
        ends = _ends(epsilons, log_deltas, stretch)
        if stretch.size == 1 or all(_strain(weights, grade, end) <= _STRAIN for end in ends):
            found.append(stretch)
        else:
            waiting += np.array_split(stretch, 2)
    return found


def _ends(epsilons: Floats, log_deltas: Floats, stretch: Places) -> tuple[ContourTarget, ...]:
    places = sorted({int(stretch[0]), int(stretch[-1])})
    return tuple(ContourTarget(float(epsilons[k]), float(log_deltas[k])) for k in places)


def _contour_for(
    counts: Counts, epsilons: Floats, log_deltas: Floats, grades: Places, stretch: Places
) -> Contour | None:
    grade = int(grades[stretch[stretch.size // 2]])
    placement = place_contour(counts, _ends(epsilons, log_deltas, stretch), grade=grade)
    if placement is None:
        return None
    return Contour.of(counts, placement, float(np.max(epsilons[stretch])))
