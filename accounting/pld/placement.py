"""Where a contour runs: its line, the step along it, and its length, in doubles.

Equations are those of `contour`. Nothing here is trusted by an enclosure: a bad place makes it
wide, not wrong.
"""

from dataclasses import dataclass
from math import ceil, exp, floor, inf, log, log2, pi, sqrt
from typing import NamedTuple

from .decay import log_decay
from .nodes import nodes_needed
from .pairs import DominatingPair
from .quadrature import Demand
from .saddle import (
    LOWEST_GRADE,
    Counts,
    Weights,
    entropy,
    log_moment,
    order_of,
    real_moment,
    sketch,
)

_LEAST_WORK = 1 << 19
"""The (moment, node) pairs of a dominating pair that are always granted."""

# how far beyond the line, in places of the grid, the orders λ of (3) are looked for
_AHEAD = (1, 2, 4, 6, 8, 12, 16, 24)
_DIGITS = 26.0
"""Natural-log digits of the aliasing and cut-off errors relative to δ: 5e-12."""

STRAIN = 6.0
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

    def demand(self, counts: Weights, digits: float = _DIGITS) -> Demand:
        """Return what the inner quadratures must deliver for a composition of so many steps."""
        steps = sum(counts.values())
        return Demand(self.order, self.reach, digits + 4 + ceil(log2(steps + 1)))

    def share_beyond(self, counts: Weights, target: ContourTarget) -> float:
        """Return a bound on the share of δ that lies beyond the last node."""
        decay = sum(n * log_modulus(pair, self.grade, self.reach) for pair, n in counts.items())
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
    digits: float = _DIGITS,
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
        return max(strain(weights, place, target) for target in targets)

    free = max(height(grade), STRAIN)
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
        decay = sum(n * log_modulus(pair, grade, reach) for pair, n in weights.items())
        excess = decay + worst - log(pi * reach) + digits
        if excess <= 0:
            break
        done = base - decay
        grow = 1.05 * sqrt(1 + excess / done) if done > 0 else 8.0
        count = _length(count * min(max(grow, 1.19), 4.0))
    found = Placement(grade, step, count)
    lost = max(found.share_beyond(weights, target) for target in targets)
    return None if lost > _USELESS and len(counts) <= _FEW else found


def strain(counts: Weights, grade: int, target: ContourTarget) -> float:
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


def log_modulus(pair: DominatingPair, grade: int, reach: float) -> float:
    """Return a bound on log |M(1+c+it)| for all |t| >= reach, c the order of this grade."""
    return min(real_moment(pair, grade), log_decay(pair, order_of(grade), reach))
