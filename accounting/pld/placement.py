"""Where a contour runs: its line, the step along it, and its length, in doubles.

Equations are those of `contour`. Nothing here is trusted by an enclosure: a bad place makes it
wide, not wrong.
"""

from collections.abc import Callable
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
    log_moments_of,
    order_of,
    real_moment,
    sketch,
)

_LEAST_WORK = 1 << 19
"""The (moment, node) pairs of a dominating pair that are always granted.

With more than two distinct pairs it is this that counts: a share of the whole would leave each of
them too few nodes for any digits.
"""

_AHEAD = (1, 2, 4, 6, 8, 12, 16, 24)
"""How far beyond the line, in places of the grid of orders, the λ of (3) are looked for: from the
next place up to a factor of 64 in the order.
"""
_DIGITS = 26.0
"""Natural-log digits of the aliasing and cut-off errors relative to δ: 5e-12."""

STRAIN = 6.0
"""Natural-log digits that may cancel where a contour lies off the saddle of a point it serves."""

_USELESS, _FEW = 0.2, 8
"""The share of δ beyond the last node at which so few distinct pairs are left to a grid."""

_WEIGHT = 0.5
"""Each digit that cancels beyond these counts as so much of the logarithm of the length: two digits
lost must make a contour shorter by a factor of e.
"""


class Limits(NamedTuple):
    """The most nodes of a contour, and the most (moment, node) pairs of all dominating pairs.

    Args:
        nodes: of one contour.
        work: granted whatever the number of distinct pairs.
        lost: the relative error of ε that sums in doubles may make, where they are bounded.
    """

    nodes: int
    work: int
    lost: float = 1e-7


_FAST = Limits(1 << 14, 1 << 20)
"""Of a query in doubles: 16 384 nodes and a million moment terms."""


class ContourTarget(NamedTuple):
    """A point of the curve, more or less, which a contour is to serve.

    Args:
        epsilon: ε there.
        log_delta: natural logarithm of δ there.
    """

    epsilon: float
    log_delta: float


@dataclass(frozen=True, slots=True)
class Placement:
    """A contour: the line Re z = order, the step along it, the number of nodes with t > 0.

    Args:
        grade: the line's place on the geometric grid of orders (see `saddle.order_of`).
        step: h, the distance of two nodes, a power of 2^{1/8}.
        count: nodes at t = h, 2h, ..., beside the one at t = 0.
    """

    grade: int
    step: float
    count: int

    @property
    def order(self) -> float:
        """The c > 0 of the line Re z = c."""
        return order_of(self.grade)

    @property
    def reach(self) -> float:
        """The height T of the last node."""
        return self.step * self.count

    def demand(self, counts: Weights, digits: float = _DIGITS) -> Demand:
        """Return what the inner quadratures must deliver for a composition of so many steps.

        Errors of one moment are multiplied by the number of steps: so many more digits are asked
        for, and four more to stay below the contour's own errors.
        """
        steps = sum(counts.values())
        return Demand(self.order, self.reach, digits + 4 + ceil(log2(steps + 1)))

    def share_beyond(self, counts: Weights, target: ContourTarget) -> float:
        """Return a bound on the share of δ that lies beyond the last node.

        (1/π) sup |M| e^{-cε}/T over δ, as in `contour`; in logarithms, because each factor alone
        overflows.
        """
        decay = sum(n * log_modulus(pair, self.grade, self.reach) for pair, n in counts.items())
        log_tail = decay - log(pi * self.reach) - self.order * target.epsilon
        return exp(min(log_tail - target.log_delta, 700.0))

    def order_beyond(self, counts: Counts, epsilon: float) -> float:
        """Return the λ > c that makes the second term of (3) small near `epsilon`.

        Any λ > c gives a valid bound (3); of a few the one with the least aliasing term is taken.
        """
        period = 2 * pi / self.step
        candidates = [self.grade + ahead for ahead in _AHEAD]
        weights = sketch(counts)

        def log_alias(grade: int) -> float:
            lam = order_of(grade)
            value = log_moment(weights, grade) + entropy(lam) - lam * epsilon
            return value - (lam - self.order) * period

        return order_of(min(candidates, key=log_alias))


def _period(
    moment: Callable[[int], float], grade: int, target: ContourTarget, digits: float
) -> float:
    """Return a Δ for which the aliasing (3) at this order is below exp(-digits) of δ.

    (3) has two terms. The first asks for cΔ >= digits - log δ. The second asks, for some λ > c, for
    (λ-c) Δ >= log M(1+λ) + entropy - λε + digits - log δ. Where moments beyond the line are
    infinite, four times the first is taken, and what the second then costs is seen in the
    enclosure.

    Args:
        moment: log M(1+c) of the composition at every place of the grid.
        grade: of the line.
        target: a point that the contour serves.
        digits: natural-log digits wanted relative to δ.
    """
    c, need = order_of(grade), digits - target.log_delta
    above = inf
    for ahead in _AHEAD:
        beyond = order_of(grade + ahead)
        value = moment(grade + ahead) + entropy(beyond) - beyond * target.epsilon
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

    Args:
        counts: pairs and how often each is composed.
        targets: one point of the curve, or the two ends of a stretch.
        grade: the place of the saddle on the grid of orders.
        digits: natural-log digits of aliasing and cut-off, relative to δ.
        limits: the most nodes and moment terms.
    """
    weights = sketch(counts)
    moment = log_moments_of(weights)

    def height(place: int) -> float:
        return max(strain(moment, place, target) for target in targets)

    free = max(height(grade), STRAIN)
    periods = {
        g: max(_period(moment, g, target, digits) for target in targets)
        for g in range(grade, max(grade - 12, LOWEST_GRADE - 1), -1)
    }
    grade = min(periods, key=lambda g: log(periods[g]) + _WEIGHT * max(height(g) - free, 0.0))
    # a step from a coarse grid, so that a near query finds the moments of this one
    step = 2.0 ** (floor(log2(2 * pi / periods[grade]) * 8) / 8)
    # |M| e^{-cε}/(πT) against δ, at the point where it is the largest share
    base, c = moment(grade), order_of(grade)
    worst = max(-c * target.epsilon - target.log_delta for target in targets)
    count, most_work = 16, max(limits.work, _LEAST_WORK * len(weights))
    while count < limits.nodes and work_of(weights, Placement(grade, step, count)) < most_work:
        reach = step * count
        decay = sum(n * log_modulus(pair, grade, reach) for pair, n in weights.items())
        excess = decay + worst - log(pi * reach) + digits
        if excess <= 0:
            break
        # log |M| falls about like T² so far up; the factor is kept between 1.19 and 4
        done = base - decay
        grow = 1.05 * sqrt(1 + excess / done) if done > 0 else 8.0
        count = _length(count * min(max(grow, 1.19), 4.0))
    found = Placement(grade, step, count)
    lost = max(found.share_beyond(weights, target) for target in targets)
    return None if lost > _USELESS and len(counts) <= _FEW else found


def strain(moment: Callable[[int], float], grade: int, target: ContourTarget) -> float:
    """Return the log of the bound by one moment over δ: the digits that cancel in the sum.

    Args:
        moment: log M(1+c) of the composition at every place of the grid.
        grade: the place of the line.
        target: a point of the curve.
    """
    c = order_of(grade)
    return moment(grade) + entropy(c) - c * target.epsilon - target.log_delta


def work_of(counts: Weights, placement: Placement) -> int:
    """Return the number of (moment, node) pairs."""
    demand = placement.demand(counts)
    return placement.count * sum(nodes_needed(pair, demand) for pair in counts)


def _length(count: float) -> int:
    """Return the next length on a geometric grid."""
    return round(2 ** (ceil(log2(count) * 4) / 4))


def log_modulus(pair: DominatingPair, grade: int, reach: float) -> float:
    """Return a bound on log |M(1+c+it)| for all |t| >= reach, c the order of this grade.

    The lesser of two bounds: |M(1+c+it)| <= M(1+c), as M is a mean of e^{zL}, and `decay`.
    """
    return min(real_moment(pair, grade), log_decay(pair, order_of(grade), reach))
