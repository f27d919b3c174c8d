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

For a sampled step L = ln(1 - q + q e^V) grows in the loss V of the base, so that L <= x is V <= v
with e^v = 1 + (e^x - 1) / q. The other order of the two data sets has -L; *glued* is one loss for
both orders of a symmetric relation: that of the first order above zero and that of the second below
(which is what lies above zero of the second, turned round), the rest at zero. Source: Zhu, Dong,
Wang 2022, Theorem 11.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

try:
    from .checker import exp_bounds, log_bounds, root_two_pi, sqrt_bounds, tail_bounds
    from .losses import Interval, Loss
except ImportError:  # run as a file, with the others beside it
    from checker import (  # type: ignore[import-not-found, no-redef]
        exp_bounds,
        log_bounds,
        root_two_pi,
        sqrt_bounds,
        tail_bounds,
    )
    from losses import Interval, Loss  # type: ignore[import-not-found, no-redef]

Below = tuple[Interval, Interval]  # enclosures of P(L <= x) and Q(L <= x), times 2^p


# --- the normal distribution at many points ---------------------------------------------------

_APART = 5  # centres of Taylor series are 2^-5 apart
_FAR = 16  # beyond, one point at a time


@lru_cache(maxsize=1 << 12)
def _series(centre: int, p: int) -> tuple[Interval, list[int]]:
    """Φ at c = centre / 32, and 2^(p+16) a_n / (n + 1) up to two units; φ(c + t) = Σ a_n t^n.

    From φ' = -x φ: a_0 = φ(c) and (n + 1) a_(n+1) = -(c a_n + a_(n-1)). Errors of two units of
    2^-(p+64) in each of N steps grow to at most 2 N e^(|c| + 1/2) < 2^48 units.
    """
    w = p + 64
    c = Fraction(centre, 1 << _APART)
    low, high = tail_bounds(c * c, c * c, p)
    if centre > 0:
        low, high = (1 << p) - high, (1 << p) - low
    before, now = 0, (exp_bounds(-c * c / 2, w)[0] << w) // root_two_pi(w)[0]
    found = []
    for n in range(p // 7 + 8):
        found.append(now // (n + 1) >> 48)
        before, now = now, -((centre * now >> _APART) + before) // (n + 1)
    return (low, high), found


def normal_cdf(x: int, p: int) -> Interval:
    """Enclose 2^p Φ(x / 2^p).

    With |t| <= 2^-6 from the nearest centre the series is cut after N = p/7 + 8 terms: by Cauchy's
    estimate on a circle of radius 4, where |φ| <= e^8 / √(2π) < 2^11, what is left out is below
    2^6 (2^-8)^N < 2^-p. Horner's rule errs by three units of 2^-(p+16) a step, each shrunk by |t|.
    """
    if abs(x) > _FAR << p:
        if x * x >> 2 * p > 2 * p:  # Φ(-x) < e^(-x²/2) < 2^-p
            return (0, 1) if x < 0 else ((1 << p) - 1, 1 << p)
        square = Fraction(x, 1 << p) ** 2
        low, high = tail_bounds(square, square, p)
        return (low, high) if x < 0 else ((1 << p) - high, (1 << p) - low)
    centre = (x + (1 << p - _APART - 1)) >> p - _APART
    t = x - (centre << p - _APART)
    (low, high), series = _series(centre, p)
    total = 0
    for a in reversed(series):
        total = a + (total * t >> p)
    moved = total * t >> p + 16
    return max(low + moved - 4, 0), min(high + moved + 4, 1 << p)


def _cdf_between(low: int, high: int, p: int) -> Interval:
    """Enclose 2^p Φ over a short interval; the density is below 1/2."""
    below, above = normal_cdf(low, p)
    return below, min(above + (high - low + 1 >> 1) + 1, 1 << p)


# --- pairs ------------------------------------------------------------------------------------


class Pair(ABC):
    """Two output distributions by the distribution functions of their loss."""

    @property
    def symmetric(self) -> bool:
        """Whether (Q, P) has the same loss as (P, Q)."""
        return True

    @property
    def precision(self) -> int:
        """Bits that enclosures of the distribution functions lose."""
        return 0

    @abstractmethod
    def below(self, x: Fraction, grown: Interval, p: int) -> Below:
        """Enclose P(L <= x) and Q(L <= x), where `grown` encloses 2^p e^x."""

    @abstractmethod
    def highest(self, tail: float) -> float:
        """About where P(L > x) falls below e^-tail; only the precision depends on it."""


class Base(Pair):
    """A pair that a sampled mechanism meets; its loss V has no gaps."""

    @abstractmethod
    def below_grown(self, grown: Interval, p: int) -> Below:
        """Enclose P(V <= v) and Q(V <= v) for all v with 2^p e^v in `grown`, above zero."""

    def below(self, x: Fraction, grown: Interval, p: int) -> Below:
        return self.below_grown(grown, p)


_LEAST_MU_SQUARED = Fraction(1, 1 << 64)


@lru_cache(maxsize=1 << 12)
def _root_and_inverse(square: Fraction, p: int) -> tuple[Interval, Interval]:
    low, high = sqrt_bounds(max(square, _LEAST_MU_SQUARED), p)
    return (low, high), ((1 << 2 * p) // high, -(-(1 << 2 * p) // low))


@dataclass(frozen=True)
class GaussianShift(Base):
    """N(mu, 1) and N(0, 1): V is N(±mu²/2, mu²). A larger mu dominates; tiny ones are rounded."""

    mu_squared: Fraction

    def below_grown(self, grown: Interval, p: int) -> Below:
        root, inverse = _root_and_inverse(self.mu_squared, p)
        low, high = log_bounds(Fraction(grown[0], 1 << p), p)
        high += -(-(grown[1] - grown[0] << p) // grown[0])  # ln(a + b) <= ln a + b/a
        low, high = low * inverse[low < 0] >> p, (high * inverse[high > 0] >> p) + 1
        half = root[0] >> 1, (root[1] >> 1) + 1
        return (
            _cdf_between(low - half[1], high - half[0], p),
            _cdf_between(low + half[0], high + half[1], p),
        )

    def highest(self, tail: float) -> float:
        mu_squared = float(self.mu_squared)
        return mu_squared / 2 + sqrt(2 * tail * mu_squared)


def _clipped(ends: Interval, one: int) -> Interval:
    return max(ends[0], 0), min(ends[1], one)


@dataclass(frozen=True)
class LaplaceShift(Base):
    """Laplace noise of scale 1 shifted by `epsilon`: V lies in [-epsilon, epsilon].

    For -epsilon <= v < epsilon: P(V <= v) = e^((v - epsilon)/2) / 2 and Q(V > v) =
    e^(-(v + epsilon)/2) / 2. It dominates vectors of this l1 length.
    """

    epsilon: Fraction

    def below(self, x: Fraction, grown: Interval, p: int) -> Below:
        one, end = 1 << p, exp_bounds(self.epsilon, p)
        if x >= self.epsilon:
            return (one, one), (one, one)
        return self._inside(grown, end, p) if x >= -self.epsilon else ((0, 0), (0, 0))

    def below_grown(self, grown: Interval, p: int) -> Below:
        one, end = 1 << p, exp_bounds(self.epsilon, p)
        if grown[0] >= end[1]:
            return (one, one), (one, one)
        if grown[1] * end[1] < one << p:
            return (0, 0), (0, 0)
        first, second = self._inside(grown, end, p)
        # near an end of the range only one side is known
        if grown[1] >= end[0]:
            first, second = (first[0], one), (second[0], one)
        if grown[0] * end[0] < one << p:
            first, second = (0, first[1]), (0, second[1])
        return first, second

    def _inside(self, grown: Interval, end: Interval, p: int) -> Below:
        one = 1 << p  # v and e: roots of e^v and of e^epsilon
        v = sqrt_bounds(Fraction(grown[0], one), p)[0], sqrt_bounds(Fraction(grown[1], one), p)[1]
        e = sqrt_bounds(Fraction(end[0], one), p)[0], sqrt_bounds(Fraction(end[1], one), p)[1]
        first = (v[0] << p - 1) // e[1], -(-(v[1] << p - 1) // e[0])
        second = one + -(1 << 3 * p - 1) // (v[0] * e[0]), one - (1 << 3 * p - 1) // (v[1] * e[1])
        return _clipped(first, one), _clipped(second, one)

    def highest(self, tail: float) -> float:
        return float(self.epsilon)


@dataclass(frozen=True)
class Sampled(Pair):
    """A base met with probability `rate`: (1 - q) Q + q P against Q, and L = ln(1 - q + q e^V)."""

    base: Base
    rate: Fraction

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def precision(self) -> int:
        return int(1 / self.rate).bit_length()

    def below(self, x: Fraction, grown: Interval, p: int) -> Below:
        n, d, one = self.rate.numerator, self.rate.denominator, 1 << p
        low, high = (grown[0] - one) * d // n + one, -(-(grown[1] - one) * d // n) + one
        if high <= 0:
            return (0, 0), (0, 0)
        # close to the least loss of all only an upper end is known
        known = 2 * low >= high
        with_it, without = self.base.below_grown((low if known else high, high), p)
        if not known:
            with_it, without = (0, with_it[1]), (0, without[1])
        mixed = [(d - n) * b + n * a for a, b in zip(with_it, without, strict=True)]
        return (mixed[0] // d, -(-mixed[1] // d)), without

    def highest(self, tail: float) -> float:
        return self.base.highest(tail)


# --- on the lattice ---------------------------------------------------------------------------


class Dot(NamedTuple):
    """A point of the lattice: x = place · step, 2^p e^x, and what lies below it."""

    place: int
    grown: Interval
    first: Interval
    second: Interval


class Lattice:
    """Multiples of a step, with e^x at each; masses are in multiples of 1 / unit."""

    def __init__(self, step: Fraction, dense: int, unit: int, p: int) -> None:
        self.step, self.dense, self.unit, self.p = step, dense, unit, p
        self._grown: dict[int, Interval] = {}

    def grown(self, place: int) -> Interval:
        if place not in self._grown:
            self._grown[place] = exp_bounds(place * self.step, self.p)
        return self._grown[place]

    def dots(self, pair: Pair, tail: int, spend: Callable[[int], None]) -> list[Dot]:
        """The dots between which all but `tail` units of mass lie, one of them zero."""
        least = (tail << self.p) // self.unit

        def walk(towards: int, done: Callable[[Dot], bool]) -> Iterator[Dot]:
            place = 0
            while True:
                spend(16 + self.p // 4)
                x, grown = place * self.step, self.grown(place)
                dot = Dot(place, grown, *pair.below(x, grown, self.p))
                yield dot
                if place and done(dot):
                    return
                place += towards * max(1, abs(place) // self.dense)

        up = list(walk(1, lambda dot: (1 << self.p) - dot.first[0] <= least))
        down = list(walk(-1, lambda dot: dot.second[1] <= least))
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

    def glued(self, dots: list[Dot]) -> Loss:
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
        for a, b in pairwise(dots):
            p, q = _between(a.first, b.first), _between(a.second, b.second)
            low, high = self._shared(p, q, a.grown, b.grown)
            masses[a.place] += low
            masses[b.place] += high

    def _back(self, dots: list[Dot], masses: Counter[int]) -> None:
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
        first, last = min(masses), max(masses)
        half = (1 << self.p) - 1
        found = [0] * (last - first + 1)
        for place, mass in masses.items():
            found[place - first] = mass * self.unit + half >> self.p
        return Loss(first, found, max(lost, 0) * self.unit + half >> self.p)


def _between(low: Interval, high: Interval) -> Interval:
    return max(high[0] - low[1], 0), max(high[1] - low[0], 0)
