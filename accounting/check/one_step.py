"""The privacy loss of one step on a lattice, bounded from above in whole numbers.

A *pair* (P, Q) of output distributions dominates a mechanism; its loss is L = ln dP/dQ. At *dots*,
some points x_0 < x_1 < ... of a lattice, P(L <= x) and Q(L <= x) are enclosed. Between two dots the
masses p and q of the cell (x_i, x_i+1] are shared between its ends,

    low + high = p    low e^-x_i + high e^-x_(i+1) = q

as if every outcome of the cell were told apart further: by convexity (`losses`, 3) the profile only
grows. It is the chord of the true profile as a function of e^ε (connecting the dots: Doroshenko,
Ghazi, Kamath, Kumar, Manurangsi 2022). What lies below x_0 is moved up to it; what lies above the
last dot counts as an infinite loss. p and q enter as enclosures, and low and high as upper bounds.
Dots are the points of the lattice up to `dense` steps from zero, and beyond that lie ever further
apart, in proportion to their distance from zero.

The other order of the two data sets has -L; *symmetrised* is one loss for both orders of a
symmetric relation: that of the first order above zero and that of the second below (which is what
lies above zero of the second, turned round), the rest at zero. Source: Zhu, Dong, Wang 2022,
Theorem 11.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from .losses import Interval, Loss
from .normal import Normal
from .pairs import Pair
from .reading import Undecided

MOST_CELLS = 1 << 21
"""Points of a lattice from zero on, in one step: bounds the length of its list of masses."""

MAX_LOSS = 512
"""The largest loss of one step: the precision grows with it, by three bits a unit."""


class Dot(NamedTuple):
    """A point of the lattice: x = place · step, 2^p e^x, and what lies below it."""

    place: int
    grown: Interval
    first: Interval
    second: Interval


class Dots:
    """Multiples of a step, with e^x at each; masses are in multiples of 1 / unit."""

    def __init__(self, step: Fraction, dense: int, unit: int, normal: Normal) -> None:
        """Begin with no exponential computed.

        Args:
            step: the distance of two points of the lattice.
            dense: points from zero up to which every point is a dot.
            unit: masses are whole multiples of 1 / unit.
            normal: the normal distribution, whose precision p is that of all enclosures here.
        """
        self.step, self.dense, self.unit, self.p = step, dense, unit, normal.p
        self._normal = normal
        self._grown: dict[int, Interval] = {}

    def grown(self, place: int) -> Interval:
        """Enclose 2^p e^x at the lattice's point of this number; computed once."""
        if place not in self._grown:
            self._grown[place] = self._normal.exp(place * self.step)
        return self._grown[place]

    def dots(self, pair: Pair, tail: int) -> list[Dot]:
        """The dots between which all but `tail` units of mass lie, one of them zero."""
        spend = self._normal.spend
        spend(pair.work(self.p))
        least = (tail << self.p) // self.unit

        def places(towards: int, done: Callable[[Dot], bool]) -> Iterator[Dot]:
            """Yield dots from zero on, upwards or downwards, until `done` says that the tail is
            small.

            Raises `Undecided` where more than `MOST_CELLS` points would be needed.
            """
            place = 0
            while True:
                spend(pair.work_a_point(self.p))
                x, grown = place * self.step, self.grown(place)
                dot = Dot(place, grown, *pair.below(x, grown, self._normal))
                yield dot
                if place and done(dot):
                    return
                place += towards * max(1, abs(place) // self.dense)
                if abs(place) > MOST_CELLS:
                    raise Undecided(f"expected losses within {MOST_CELLS} steps of the lattice")

        up = list(places(1, lambda dot: (1 << self.p) - dot.first[0] <= least))
        down = list(places(-1, lambda dot: dot.second[1] <= least))
        return [*down[:0:-1], *up]

    def removed(self, dots: list[Dot]) -> Loss:
        """The loss of (P, Q)."""
        masses: Counter[int] = Counter()
        self._ahead(dots, masses)
        masses[dots[0].place] += dots[0].first[1]
        return self._rounded(masses, (1 << self.p) - dots[-1].first[0])

    def added(self, dots: list[Dot]) -> Loss:
        """The loss of (Q, P)."""
        masses: Counter[int] = Counter()
        self._back(dots, masses)
        masses[-dots[-1].place] += (1 << self.p) - dots[-1].second[0]
        return self._rounded(masses, dots[0].second[1])

    def symmetrised(self, dots: list[Dot]) -> Loss:
        """The loss of (P, Q) above zero and of (Q, P) turned round below; the rest is zero."""
        masses: Counter[int] = Counter()
        middle = next(i for i, dot in enumerate(dots) if dot.place == 0)
        upper = dots[middle:]
        self._ahead(upper, masses)
        self._back(upper, masses)
        first, second = dots[middle].first, dots[middle].second
        masses[0] += max(first[1] + second[1] - (1 << self.p), 0)
        # beyond the last dot: infinite one way round, and moved up to it the other
        masses[-dots[-1].place] += (1 << self.p) - dots[-1].second[0]
        return self._rounded(masses, (1 << self.p) - dots[-1].first[0])

    def _ahead(self, dots: list[Dot], masses: Counter[int]) -> None:
        """Add the masses of (P, Q) in all cells between dots to their ends."""
        for a, b in pairwise(dots):
            p, q = _between(a.first, b.first), _between(a.second, b.second)
            low, high = self._shared(p, q, a.grown, b.grown)
            masses[a.place] += low
            masses[b.place] += high

    def _back(self, dots: list[Dot], masses: Counter[int]) -> None:
        """Add the masses of (Q, P): the loss has the other sign, and cells are turned round."""
        for a, b in pairwise(dots):
            p, q = _between(a.second, b.second), _between(a.first, b.first)
            low, high = self._shared(p, q, self.grown(-b.place), self.grown(-a.place))
            masses[-b.place] += low
            masses[-a.place] += high

    def _shared(self, p: Interval, q: Interval, low: Interval, high: Interval) -> Interval:
        """Upper bounds on (q e^b - p) / (e^(b-a) - 1) and (p - q e^a) / (1 - e^(a-b))."""
        w = self.p
        at_low = -(-q[1] * high[1] >> w) - p[0]
        at_high = p[1] - (q[0] * low[0] >> w)
        return (
            -(-max(at_low, 0) * low[1] // (high[0] - low[1])),
            -(-max(at_high, 0) * high[1] // (high[0] - low[1])),
        )

    def _rounded(self, masses: Counter[int], lost: int) -> Loss:
        """The masses as multiples of 1 / unit, each rounded up, from the lowest point on."""
        first, last = min(masses), max(masses)
        self._normal.spend((last - first) // 4)
        half = (1 << self.p) - 1
        found = [0] * (last - first + 1)
        for place, mass in masses.items():
            found[place - first] = mass * self.unit + half >> self.p
        return Loss(first, found, max(lost, 0) * self.unit + half >> self.p)


def _between(low: Interval, high: Interval) -> Interval:
    """Enclose the mass of a cell from enclosures of what lies below its two ends."""
    return max(high[0] - low[1], 0), max(high[1] - low[0], 0)
