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
with e^v = 1 + (e^x - 1) / q. The other order of the two data sets has -L; *symmetrised* is one loss
for both orders of a symmetric relation: that of the first order above zero and that of the second
below (which is what lies above zero of the second, turned round), the rest at zero. Source: Zhu,
Dong, Wang 2022, Theorem 11.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb, exp, isqrt, log, sqrt
from typing import NamedTuple

from .intervals import exp_bounds, log_bounds, root_two_pi, sqrt_bounds, tail_bounds
from .losses import Interval, Loss
from .reading import Undecided

MOST_CELLS = 1 << 21
"""Points of a lattice from zero on, in one step: bounds the length of its list of masses."""

Below = tuple[Interval, Interval]  # enclosures of P(L <= x) and Q(L <= x), times 2^p


# --- the normal distribution at many points ---------------------------------------------------

_APART = 5
"""Centres are 1/32 apart: |t| <= 2^-6, and a series to p bits has about p/7 terms."""

_FAR = 16
"""Standard deviations beyond which each point is computed by itself."""


def exp_work(p: int, x: float) -> int:
    """Units of work of e^x: about w/8 terms of w bits."""
    w = p + int(max(1.5 * x, 0)) + 32
    return 32 + w // 4 + (w * w >> 11)


def _tail_work(p: int, square: int) -> int:
    """Units of work of Φ(-√square): Mills' series has about p + 3 square terms of w bits."""
    w = p + min(square, 2 * p)
    return 2 * (p + 3 * min(square, 2 * p)) * (4 + (w * w >> 17)) + exp_work(p, square / 2)


class Normal:
    """The normal distribution function at a precision of p bits, and e^x; both pay for their work.

    Series around the centres in use are kept for all points of a document.
    """

    def __init__(self, p: int, spend: Callable[[int], None]) -> None:
        """Begin without any series.

        Args:
            p: bits after the binary point of every number given and returned.
            spend: counts units of work; raises beyond what is allowed.
        """
        self.p, self.spend = p, spend
        self._known: dict[int, tuple[Interval, list[int]]] = {}

    def exp(self, x: Fraction) -> Interval:
        """Enclose 2^p e^x."""
        self.spend(exp_work(self.p, float(x)))
        return exp_bounds(x, self.p)

    def _series(self, centre: int) -> tuple[Interval, list[int]]:
        """Φ at c = centre / 32, and 2^(p+16) a_n / (n + 1) up to two units; φ(c + t) = Σ a_n t^n.

        From φ' = -x φ: a_0 = φ(c) and (n + 1) a_(n+1) = -(c a_n + a_(n-1)). Errors of two units of
        2^-(p+64) in each of N steps grow to at most 2 N e^(|c| + 1/2) < 2^48 units.
        """
        p = self.p
        w = p + 64
        c = Fraction(centre, 1 << _APART)
        self.spend(_tail_work(p, int(c * c)))
        low, high = tail_bounds(c * c, c * c, p)
        if centre > 0:
            low, high = (1 << p) - high, (1 << p) - low
        before, now = 0, (exp_bounds(-c * c / 2, w)[0] << w) // root_two_pi(w)[0]
        found = []
        for n in range(p // 7 + 8):
            found.append(now // (n + 1) >> 48)
            before, now = now, -((centre * now >> _APART) + before) // (n + 1)
        return (low, high), found

    def cdf(self, x: int) -> Interval:
        """Enclose 2^p Φ(x / 2^p).

        With |t| <= 2^-6 from the nearest centre the series is cut after N = p/7 + 8 terms: by
        Cauchy's estimate on a circle of radius 4, where |φ| <= e^8 / √(2π) < 2^11, what is left out
        is below 2^6 (2^-8)^N < 2^-p. Horner's rule errs by three units of 2^-(p+16) a step, each
        shrunk by |t|.
        """
        p = self.p
        if x * x >> 2 * p > 2 * p:  # Φ(-x) < e^(-x²/2) < 2^-p
            return (0, 1) if x < 0 else ((1 << p) - 1, 1 << p)
        if abs(x) > _FAR << p:
            return self._far(x)
        centre = (x + (1 << p - _APART - 1)) >> p - _APART
        t = x - (centre << p - _APART)
        if centre not in self._known:
            self._known[centre] = self._series(centre)
        (low, high), series = self._known[centre]
        total = 0
        for a in reversed(series):
            total = a + (total * t >> p)
        moved = total * t >> p + 16
        return max(low + moved - 4, 0), min(high + moved + 4, 1 << p)

    def _far(self, x: int) -> Interval:
        """Enclose 2^p Φ(x / 2^p) by Mills' ratio, without a series: for |x| above `_FAR`."""
        square = Fraction(x, 1 << self.p) ** 2
        self.spend(_tail_work(self.p, int(square)))
        low, high = tail_bounds(square, square, self.p)
        return (low, high) if x < 0 else ((1 << self.p) - high, (1 << self.p) - low)

    def between(self, low: int, high: int) -> Interval:
        """Enclose 2^p Φ over a short interval; the density is below 1/2."""
        below, above = self.cdf(low)
        return below, min(above + (high - low + 1 >> 1) + 1, 1 << self.p)


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

    def work(self, p: int) -> int:
        """Units of work that the pair takes once, whatever the number of points."""
        return 0

    def work_a_point(self, p: int) -> int:
        """Units of work at each point, beside what `Normal` pays for."""
        return 64 + p * p // 256

    @abstractmethod
    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose P(L <= x) and Q(L <= x), where `grown` encloses 2^p e^x."""

    @abstractmethod
    def highest(self, tail: float) -> float:
        """About where P(L > x) falls below e^-tail; only the precision depends on it."""


class Base(Pair):
    """A pair that a sampled mechanism meets; its loss V has no gaps."""

    @abstractmethod
    def below_grown(self, grown: Interval, normal: Normal) -> Below:
        """Enclose P(V <= v) and Q(V <= v) for all v with 2^p e^v in `grown`, above zero."""

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose P(V <= x) and Q(V <= x); a base whose loss has atoms overrides it."""
        return self.below_grown(grown, normal)


_LEAST_MU_SQUARED = Fraction(1, 1 << 64)
"""Smaller mu² count as this one, a larger shift: 1/mu is at most 2^32."""


@lru_cache(maxsize=1 << 12)
def _root_and_inverse(square: Fraction, p: int) -> tuple[Interval, Interval]:
    """Enclose 2^p mu and 2^p / mu, for mu² of at least `_LEAST_MU_SQUARED`.

    Rounding mu² up is safe: the shift by the larger mu dominates.
    """
    low, high = sqrt_bounds(max(square, _LEAST_MU_SQUARED), p)
    return (low, high), ((1 << 2 * p) // high, -(-(1 << 2 * p) // low))


@dataclass(frozen=True)
class GaussianShift(Base):
    """N(mu, 1) and N(0, 1): V is N(±mu²/2, mu²). A larger mu dominates; tiny ones are rounded."""

    mu_squared: Fraction

    def below_grown(self, grown: Interval, normal: Normal) -> Below:
        """Enclose Φ(v/mu - mu/2) under P and Φ(v/mu + mu/2) under Q.

        V is N(mu²/2, mu²) under P and N(-mu²/2, mu²) under Q. v is known by an enclosure of e^v:
        its logarithm is taken at the lower end, and ln(a + b) <= ln a + b/a reaches the upper. Of
        an e^v below 2^-p, which has no lower end, only the upper ends are of use.
        """
        if grown[0] <= 0:
            with_it, without = self.below_grown((grown[1], grown[1]), normal)
            return (0, with_it[1]), (0, without[1])
        p = normal.p
        root, inverse = _root_and_inverse(self.mu_squared, p)
        low, high = log_bounds(Fraction(grown[0], 1 << p), p)
        high += -(-(grown[1] - grown[0] << p) // grown[0])  # ln(a + b) <= ln a + b/a
        low, high = low * inverse[low < 0] >> p, (high * inverse[high > 0] >> p) + 1
        half = root[0] >> 1, (root[1] >> 1) + 1
        return (
            normal.between(low - half[1], high - half[0]),
            normal.between(low + half[0], high + half[1]),
        )

    def highest(self, tail: float) -> float:
        """About mu²/2 + mu √(2 tail): P(N(0, 1) > t) falls below e^-tail at √(2 tail)."""
        mu_squared = float(self.mu_squared)
        return mu_squared / 2 + sqrt(2 * tail * mu_squared)


def _clipped(ends: Interval, one: int) -> Interval:
    """What of an enclosure lies in [0, one]: a probability, times 2^p."""
    return max(ends[0], 0), min(ends[1], one)


@dataclass(frozen=True)
class LaplaceShift(Base):
    """Laplace noise of scale 1 shifted by `epsilon`: V lies in [-epsilon, epsilon].

    For -epsilon <= v < epsilon: P(V <= v) = e^((v - epsilon)/2) / 2 and Q(V > v) =
    e^(-(v + epsilon)/2) / 2. It dominates vectors of this l1 length.
    """

    epsilon: Fraction

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose both by comparing x, which is exact, with the ends ±epsilon of the range of V."""
        p = normal.p
        one, end = 1 << p, exp_bounds(self.epsilon, p)
        if x >= self.epsilon:
            return (one, one), (one, one)
        return self._inside(grown, end, p) if x >= -self.epsilon else ((0, 0), (0, 0))

    def below_grown(self, grown: Interval, normal: Normal) -> Below:
        """Enclose both by comparing e^v with e^±epsilon, of which only enclosures are known.

        Where they overlap v may lie on either side of the end: then one end of each enclosure is 0
        or 1.
        """
        p = normal.p
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

    def work_a_point(self, p: int) -> int:
        """Units of work at each point: e^epsilon is computed again at every one."""
        return super().work_a_point(p) + exp_work(p, float(self.epsilon))

    def _inside(self, grown: Interval, end: Interval, p: int) -> Below:
        """Enclose e^((v - epsilon)/2) / 2 and 1 - e^(-(v + epsilon)/2) / 2 by roots of e^v,
        e^epsilon.

        Both grow with v; the first falls and the second grows with epsilon.
        """
        one = 1 << p  # v and e: roots of e^v and of e^epsilon
        v = sqrt_bounds(Fraction(grown[0], one), p)[0], sqrt_bounds(Fraction(grown[1], one), p)[1]
        e = sqrt_bounds(Fraction(end[0], one), p)[0], sqrt_bounds(Fraction(end[1], one), p)[1]
        first = (v[0] << p - 1) // e[1], -(-(v[1] << p - 1) // e[0])
        second = one + -(1 << 3 * p - 1) // (v[0] * e[0]), one - (1 << 3 * p - 1) // (v[1] * e[1])
        return _clipped(first, one), _clipped(second, one)

    def highest(self, tail: float) -> float:
        """The end of the range: there is no loss above epsilon."""
        return float(self.epsilon)


@dataclass(frozen=True)
class Sampled(Pair):
    """A base met with probability `rate`: (1 - q) Q + q P against Q, and L = ln(1 - q + q e^V)."""

    base: Base
    rate: Fraction

    def work_a_point(self, p: int) -> int:
        """Units of work at each point: those of the base."""
        return self.base.work_a_point(p)

    @property
    def symmetric(self) -> bool:
        """No: the two orders of the data sets have different losses."""
        return False

    @property
    def precision(self) -> int:
        """Bits of 1/q: e^v = 1 + (e^x - 1)/q magnifies the error of e^x as much."""
        return int(1 / self.rate).bit_length()

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose P and Q of V <= v with e^v = 1 + (e^x - 1)/q; the first law is (1 - q) Q + q P.

        Below the least loss ln(1 - q) there is nothing: e^v would be negative. Just above it,
        where e^v is not known within a factor of two, only the upper ends are of use.
        """
        n, d, one = self.rate.numerator, self.rate.denominator, 1 << normal.p
        low, high = (grown[0] - one) * d // n + one, -(-(grown[1] - one) * d // n) + one
        if high <= 0:
            return (0, 0), (0, 0)
        # close to the least loss of all only an upper end is known
        known = 2 * low >= high
        with_it, without = self.base.below_grown((low if known else high, high), normal)
        if not known:
            with_it, without = (0, with_it[1]), (0, without[1])
        mixed = [(d - n) * b + n * a for a, b in zip(with_it, without, strict=True)]
        return (mixed[0] // d, -(-mixed[1] // d)), without

    def highest(self, tail: float) -> float:
        """That of the base: ln(1 - q + q e^V) <= max(V, 0)."""
        return self.base.highest(tail)


@dataclass(frozen=True)
class Revealed(Pair):
    """A base met with probability `rate`, and one is told whether it was."""

    base: Base
    rate: Fraction

    def work_a_point(self, p: int) -> int:
        """Units of work at each point: those of the base."""
        return self.base.work_a_point(p)

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose both: with probability 1 - q the loss is zero, else it is that of the base."""
        n, d = self.rate.numerator, self.rate.denominator
        missed = (d - n << normal.p) if x >= 0 else 0
        first, second = (
            ((n * low + missed) // d, -(-(n * high + missed) // d))
            for low, high in self.base.below(x, grown, normal)
        )
        return first, second

    def highest(self, tail: float) -> float:
        """That of the base."""
        return self.base.highest(tail)


@dataclass(frozen=True)
class DrawnShifts(Pair):
    """Of `size` records each is drawn with probability q, and moves a Gaussian by mu.

    P is the mixture of N(j mu, 1) with the weights C(size, j) q^j (1 - q)^(size - j), Q is N(0, 1):
    L(y) = ln F(e^(mu y)) with the polynomial F(t) of the coefficients weight_j e^(-j² mu² / 2) >
    0, so that L <= x is t <= F^-1(e^x). Vectors of these lengths are dominated by such a mixture on
    a line: Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (arXiv 2310.15526).
    """

    mu_squared: Fraction
    rate: Fraction
    size: int

    @property
    def symmetric(self) -> bool:
        """No: the two orders of the data sets have different losses."""
        return False

    @property
    def precision(self) -> int:
        """Bits of 1/q, as of a sampled pair."""
        return int(1 / self.rate).bit_length()

    def width(self, p: int) -> int:
        """Bits that leave the inverse of F right to p bits."""
        return p + 64 + 2 * int(self.highest(p)) + self.size * self.precision

    def work_a_point(self, p: int) -> int:
        """Units of work at each point: a tail for each number drawn; the inverse pays itself."""
        return (self.size + 3) * (64 + p * p // 256)

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose the probabilities of y <= ln(F^-1(e^x)) / mu under the mixture and under N(0, 1).

        y is known by an enclosure: each normal distribution function, which grows, is taken at both
        ends.
        """
        p = normal.p
        weights, coefficients, w = _drawn(self, p)
        root, inverse = _root_and_inverse(self.mu_squared, w)
        ends = _inverted(coefficients, (grown[0] << w - p, grown[1] << w - p), w, normal.spend)
        if ends[1] <= 0:
            return (0, 0), (0, 0)
        high = log_bounds(Fraction(ends[1], 1 << w), w)[1]
        high = (high * inverse[high > 0] >> w) + 1
        low = -(w << w)
        if ends[0] > 0:
            low = log_bounds(Fraction(ends[0], 1 << w), w)[0]
            low = low * inverse[low < 0] >> w
        first = [0, 0]
        for j, weight in enumerate(weights):
            below = normal.cdf(low - j * root[1] >> w - p)[0]
            above = normal.cdf((high - j * root[0] >> w - p) + 1)[1]
            first[0] += int(weight * below)
            first[1] -= int(-weight * above // 1)
        without = normal.cdf(low >> w - p)[0], normal.cdf((high >> w - p) + 1)[1]
        return (first[0], min(first[1], 1 << p)), without

    def highest(self, tail: float) -> float:
        """About the loss at `size` mu + √(2 tail), as if all records of the group were drawn."""
        shift = self.size * sqrt(self.mu_squared)
        return shift * shift / 2 + sqrt(2 * tail) * shift


@lru_cache(maxsize=16)
def _drawn(pair: DrawnShifts, p: int) -> tuple[list[Fraction], list[Interval], int]:
    """The weights, the coefficients of F, and the precision that these need."""
    n, q = pair.size, pair.rate
    weights = [comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1)]
    w = pair.width(p)
    found = []
    for j, weight in enumerate(weights):
        low, high = exp_bounds(-j * j * pair.mu_squared / 2, w)
        found.append((int(weight * low), -int(-weight * high // 1)))
    return weights, found, w


def _about(coefficients: list[Interval], end: int, w: int) -> int:
    """About the t with F(t) = `end`, times 2^w: only the number of Newton's steps depends on it.

    In doubles, of s = ln t: ln F is convex in s, and at the least s at which one term is `end`
    alone it is too large by ln(n + 1) at most.
    """
    logs, x = [log(max(c[1], 1)) for c in coefficients], log(end)
    s = min((x - a) / j for j, a in enumerate(logs) if j)
    for _ in range(16):
        largest = max(a + j * s for j, a in enumerate(logs))
        terms = [exp(a + j * s - largest) for j, a in enumerate(logs)]
        total = sum(terms)
        above = largest + log(total) - x
        slope = sum(j * term for j, term in enumerate(terms)) / total
        if above <= 1e-13 * abs(x) or slope <= 1e-13:
            break
        s -= above / slope
    bits = s / log(2) + w
    whole = int(bits) if bits > 0 else 0
    return int(2 ** (max(bits, 0) - whole + 53)) << whole >> 53


def _inverted(
    coefficients: list[Interval], ends: Interval, w: int, spend: Callable[[int], None]
) -> Interval:
    """Enclose the t >= 0 with F(t) in `ends`, all times 2^w; an end at or below zero if none is.

    F is convex and grows: Newton's steps from above stay above, until rounding hides by how much.
    That point is then moved either way until signs are certain. Each evaluation is paid for.
    """
    work = len(coefficients) * (4 + (w * w >> 16))

    def value(t: int, side: int) -> int:
        """F(t) times 2^w; `side` 0: rounded down from lower ends, 1: up from upper ends."""
        spend(work)
        total = 0
        for c in reversed(coefficients):
            total = c[side] + (total * t >> w) + side
        return total

    if ends[1] <= coefficients[0][0]:
        return 0, 0
    t = _about(coefficients, ends[1], w) + 1
    move = 1 + (t >> 40)
    while value(t, 0) < ends[1]:
        t, move = t + move, 2 * move
    gap, step = 1, 1
    while step and (excess := value(t, 0) - ends[1]) > 0:
        spend(work)
        slope = 0
        for j, c in reversed(list(enumerate(coefficients))[1:]):
            slope = j * c[1] + (slope * t >> w) + 1
        step = (excess << w) // slope
        t -= step
        gap = 1 + (ends[1] - ends[0] << w) // slope  # about how far apart the two ends are
    low, high, move = t, t, gap
    while high and value(high, 0) < ends[1]:
        high, move = high + move, 2 * move
    move = gap
    while low > 0 and value(low, 1) > ends[0]:
        low, move = low - move, 2 * move
    return low, high


class Lattice(Pair):
    """A discrete pair: its loss takes the values unit · first, unit · (first + 2), ... ."""

    @property
    @abstractmethod
    def unit(self) -> Fraction:
        """Half the distance between two values of the loss."""

    @abstractmethod
    def table(self, p: int) -> tuple[int, int, list[Below]]:
        """`first`, a bound on what lies below it, and P(L <= x), Q(L <= x) at each value."""

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose both at the largest value of the loss that is <= x.

        Below the first value lies only what the table leaves out.
        """
        first, missing, known = _table(self, normal.p)
        place = (x // self.unit - first) // 2
        if place < 0:
            return (0, missing), (0, missing)
        return known[min(place, len(known) - 1)]


@lru_cache(maxsize=64)
def _table(pair: Lattice, p: int) -> tuple[int, int, list[Below]]:
    """The table of a pair at p bits, computed once for all points of a document."""
    return pair.table(p)


def _running(masses: list[Interval], missing: int, p: int) -> list[Interval]:
    """Enclose the sums of the first masses; up to `missing` may lie below the first or beyond."""
    low, high, found = 0, missing, []
    for below, above in masses:
        low, high = low + below, high + above
        found.append((min(low, 1 << p), min(high, 1 << p)))
    found[-1] = (max(found[-1][0], (1 << p) - 2 * missing), 1 << p)
    return found


@dataclass(frozen=True)
class DiscreteLaplaceShift(Lattice):
    """Noise of mass (1 - u)/(1 + u) u^|k|, u = e^-rate, shifted by the whole number `shift`.

    Between the two, k = 1 ... shift - 1, L = rate (shift - 2k); beyond an end it stays as there.
    """

    rate: Fraction
    shift: int

    @property
    def unit(self) -> Fraction:
        """Losses are rate (shift - 2k): 2 rate apart."""
        return self.rate

    def work(self, p: int) -> int:
        """Units of work of the table: an exponential for each of shift + 1 values."""
        return (self.shift + 1) * (16 + exp_work(p, self.highest(0)))

    def table(self, p: int) -> tuple[int, int, list[Below]]:
        """The table of shift + 1 values, from -shift units on; nothing is left out.

        The tails k <= 0 and k >= shift have the two extreme losses: masses 1/(1 + u) and u^shift/(1
        + u), as sums of geometric series. Q is the mirror image of P.
        """
        one, n = 1 << p, self.shift
        powers = [exp_bounds(-self.rate * k, p) for k in range(n + 1)]
        u = powers[1]
        ends = (one << p) // (one + u[1]), -(-(one << p) // (one + u[0]))  # 1 / (1 + u)
        centre = (one - u[1]) * ends[0] >> p, ((one - u[0]) * ends[1] >> p) + 1
        masses = [(a * centre[0] >> p, (b * centre[1] >> p) + 1) for a, b in powers]
        masses[0] = ends
        masses[n] = powers[n][0] * ends[0] >> p, (powers[n][1] * ends[1] >> p) + 1
        with_it, without = _running(masses[::-1], 0, p), _running(masses, 0, p)
        return -n, 0, list(zip(with_it, without, strict=True))

    def highest(self, tail: float) -> float:
        """The end of the range: there is no loss above rate · shift."""
        return float(self.rate * self.shift)


@dataclass(frozen=True)
class DiscreteGaussianShift(Lattice):
    """Noise of mass ∝ e^(-k²/(2s)) against the same shifted by one: L = (1 - 2k)/(2s) at k."""

    squared: Fraction  # s

    @property
    def unit(self) -> Fraction:
        """Losses are (1 - 2k)/(2s): 1/s apart."""
        return 1 / (2 * self.squared)

    def work(self, p: int) -> int:
        """Units of work of the table: an exponential for each place."""
        return self._spread(p) * (16 + exp_work(p, p / 3))  # e^-x is below 2^-p from x = p on

    def _spread(self, p: int) -> int:
        """A k whose weight is below 2^-(p + 32)."""
        return isqrt(int(2 * self.squared * (p + 33))) + 2

    def table(self, p: int) -> tuple[int, int, list[Below]]:
        """The table of the values at -last < k <= last = `_spread`, and a bound on the rest.

        Weights e^(-k²/(2s)) beyond `last` fall from one to the next by e^(-last/s) at least, so
        that a geometric series bounds their sum; it joins the upper end of the normalising
        constant. Under Q, shifted by one, place k has the mass that k - 1 has under P.
        """
        one, last = 1 << p, self._spread(p)
        weights = [exp_bounds(-(k * k) / (2 * self.squared), p) for k in range(last + 1)]
        # beyond `last` weights fall at least as a geometric series of ratio e^(-last / s)
        ratio = exp_bounds(-last / self.squared, p)[1]
        rest = -(-weights[last][1] * one // max(one - ratio, 1))
        total = 2 * sum(w[0] for w in weights) - one, 2 * sum(w[1] for w in weights) - one
        total = total[0], total[1] + 2 * rest
        share = [((a << p) // total[1], -(-(b << p) // total[0])) for a, b in weights]
        missing = -(-(rest << p) // total[0]) + 1
        places = range(last, -last, -1)
        with_it = _running([share[abs(k)] for k in places], missing, p)
        without = _running([share[abs(k - 1)] for k in places], missing, p)
        return 1 - 2 * last, missing, list(zip(with_it, without, strict=True))

    def highest(self, tail: float) -> float:
        """About the loss at the place -√(2 s tail), beyond which less than e^-tail lies."""
        return float(1 / self.squared) * (sqrt(2 * tail * float(self.squared)) + 1)


@dataclass(frozen=True)
class RandomisedAnswers(Pair):
    """The true answer with probability `truth`, each of the others alike: L is ±ln(t/o) or 0."""

    truth: Fraction
    categories: int

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose sums of the masses of up to three losses, -ln r, 0 and ln r with r = most /
        least.

        e^x is known by an enclosure: a ratio that may lie on either side of it counts towards the
        upper end only. At x = 0, where e^x is exactly one, the two lower losses count.
        """
        other = (1 - self.truth) / (self.categories - 1)
        least, most = sorted((self.truth, other))
        one = 1 << normal.p
        ratios = (least / most, Fraction(1), most / least)
        sure = sum(r * one <= grown[0] for r in ratios) if x else 2
        maybe = sum(r * one <= grown[1] for r in ratios) if x else 2
        middle = 1 - least - most
        first = [Fraction(0), least, least + middle, Fraction(1)]
        second = [Fraction(0), most, most + middle, Fraction(1)]
        return (
            (int(first[sure] * one), -int(-first[maybe] * one // 1)),
            (int(second[sure] * one), -int(-second[maybe] * one // 1)),
        )

    def highest(self, tail: float) -> float:
        """The largest loss, |ln(truth / other)|: there is none above."""
        other = (1 - self.truth) / (self.categories - 1)
        return abs(log(self.truth / other))


# --- on the lattice ---------------------------------------------------------------------------


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
