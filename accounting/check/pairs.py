"""Dominating pairs of noise with a density: Gaussian and Laplace shifts, and samples of them.

A *pair* (P, Q) of output distributions dominates a mechanism; its loss is L = ln dP/dQ, known here
by enclosures of P(L <= x) and Q(L <= x).

For a sampled step L = ln(1 - q + q e^V) grows in the loss V of the base, so that L <= x is V <= v
with e^v = 1 + (e^x - 1) / q. Source: Zhu, Dong, Wang 2022, Theorem 11.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, exp, isqrt, log, log1p, sqrt

from .intervals import exp_bounds, log_bounds, sqrt_bounds
from .losses import Interval
from .normal import Normal, exp_work
from .reading import Undecided

Below = tuple[Interval, Interval]  # enclosures of P(L <= x) and Q(L <= x), times 2^p


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
class ReplacedInSample(Pair):
    """With probability `rate` a shift, by mu under P and by -mu under Q: L(-y) = -L(y).

    With z = e^(mu y), k = e^(-mu²/2) and b = (1-q)(γ-1) the ratio (1 - q + qkz) / (1 - q + qk/z),
    which grows, is γ where qk z² - b z = γqk: for s = √(b² + 4γ(qk)²) at

        z = (s + b) / 2qk = 2γqk / (s - b).
    """

    mu_squared: Fraction
    rate: Fraction

    @property
    def precision(self) -> int:
        """Bits of 1/qk: near b = 0 the root magnifies the error of γ as much."""
        return int(1 / self.rate).bit_length() + int(0.75 * self.mu_squared) + 1

    def work(self, p: int) -> int:
        """Units of work of k."""
        return exp_work(p, 0.0)

    def work_a_point(self, p: int) -> int:
        """Units of work at each point: twice as many tails as of a shift, and a root."""
        return 2 * super().work_a_point(p)

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose P and Q of Y <= y with mu y = ln z; by symmetry y = 0 at x = 0."""
        n, d = self.rate.numerator, self.rate.denominator
        root = _root_and_inverse(self.mu_squared, normal.p)[0]
        y = self._threshold(x > 0, grown, normal.p) if x else (0, 0)
        none = normal.between(*y)
        near = normal.between(y[0] - root[1], y[1] - root[0])
        far = normal.between(y[0] + root[0], y[1] + root[1])
        first, second = (
            ((none[0] * (d - n) + met[0] * n) // d, -(-(none[1] * (d - n) + met[1] * n) // d))
            for met in (near, far)
        )
        return first, second

    def _threshold(self, above: bool, grown: Interval, p: int) -> Interval:
        """Enclose y, times 2^p; `above`: γ > 1. Of the two forms of z the one is taken in which
        nothing cancels: there s and b, or -b, grow together; and ln(a + c) <= ln a + c/a.
        """
        n, d, one = self.rate.numerator, self.rate.denominator, 1 << p
        met = _met(self, p)
        if min(met[0], grown[0]) <= 0:
            raise Undecided("expected a rate, a shift and a loss that are seen at this precision")
        b = (grown[0] - one) * (d - n) // d, -(-(grown[1] - one) * (d - n) // d)
        size = (b[0], b[1]) if above else (-b[1], -b[0])
        size = max(size[0], 0), max(size[1], 0)
        s = (
            isqrt(size[0] ** 2 + (4 * grown[0] * met[0] ** 2 >> p)),
            isqrt(size[1] ** 2 - (-4 * grown[1] * met[1] ** 2 >> p)) + 1,
        )
        sums = s[0] + size[0], s[1] + size[1]
        if above:
            low, high = (sums[0] << p) // (2 * met[1]), -(-(sums[1] << p) // (2 * met[0]))
        else:
            low, high = 2 * grown[0] * met[0] // sums[1], -(-2 * grown[1] * met[1] // sums[0])
        if low <= 0:
            raise Undecided("expected a loss that is seen at this precision")
        inverse = _root_and_inverse(self.mu_squared, p)[1]
        least, most = log_bounds(Fraction(low, one), p)
        most -= -(high - low << p) // low
        return least * inverse[least < 0] >> p, (most * inverse[most > 0] >> p) + 1

    def highest(self, tail: float) -> float:
        """About the loss of the shift, and of what the other side falls short: -ln(1 - q) at most,
        and no more than the loss of the shift the other way.
        """
        mu_squared = float(self.mu_squared)
        alone = mu_squared / 2 + sqrt(2 * tail * mu_squared)
        missed = -log1p(-float(self.rate)) if self.rate < 1 - 2.0**-50 else alone + mu_squared
        return alone + min(missed, alone + mu_squared)


@lru_cache(maxsize=64)
def _met(pair: ReplacedInSample, p: int) -> Interval:
    """Enclose qk, times 2^p."""
    low, high = exp_bounds(-max(pair.mu_squared, _LEAST_MU_SQUARED) / 2, p)
    n, d = pair.rate.numerator, pair.rate.denominator
    return low * n // d, -(-high * n // d)


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
