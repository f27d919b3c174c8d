"""The dominating pair of a batch drawn with replacement: how often it holds a replaced record."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, log, log1p, sqrt
from typing import NamedTuple

from .intervals import exp_bounds, log_bounds, sqrt_bounds
from .losses import Interval
from .normal import Normal
from .pairs import Below, Pair

MOST_COPIES = 8
"""Copies of a record that a batch holds on average, at most: their numbers are counted one by one.
"""

_LEAST_MU_SQUARED = Fraction(1, 1 << 64)
"""Smaller mu² count as this one, a larger shift, which dominates."""


@dataclass(frozen=True)
class CopiesDrawn(Pair):
    """A replaced record fills M ~ Bin(draws, 1/records) places; each moves a Gaussian by mu.

    The profile is that of `dominating.drawn_with_replacement`, the least over all t_k. The k-th
    term is H_c(N(k mu, 1)‖N(0, 1)) at c = γ + t_k/p_k, whose best test is Y > y_k with c =
    e^(k mu y_k - k² mu²/2); its slope in t_k is -P(N(0, 1) > y_k). So at the least value all y_k
    with t_k > 0 are one number y, and the others are larger: with t = e^(mu y) at the root of

        Σ_{k>0} p_k (t^k e^(-k² mu²/2) - γ)⁺ = (γ-1) p_0,

    whose left side grows with t, mu y_k is the larger of mu y and (ln γ)/k + k mu²/2. The profile
    is convex in γ (a minimum over t of a convex function of both), and its slope is that of the
    tests: -Σ p_k P(N(0, 1) > y_k) with y_0 = y. So at the loss x = ln γ >= 0

        P(L <= x) = Σ p_k Φ(y_k - k mu),    Q(L <= x) = Σ p_k Φ(y_k) + rest

    where P loses infinitely in the rest, numbers of copies that are too unlikely to be counted.
    Below zero nothing is known here: `symmetrised` makes one loss of both orders from what lies
    above.

    `draws` > 1, at most `MOST_COPIES` times as many as `records` > 1.
    """

    mu_squared: Fraction
    draws: int
    records: int

    @property
    def precision(self) -> int:
        """Bits of 1/P(M = 1): the root magnifies the error of γ as much."""
        return 2 + int(max(-next(self.log_chances()), 0) / log(2))

    def highest(self, tail: float) -> float:
        """About the largest loss of k copies that are not less likely than e^-tail.

        There y is about at the root of the k-th term alone.
        """
        mu, top = sqrt(self.mu_squared), 0.0
        none = self.draws * log1p(-1 / self.records)
        for k, chance in enumerate(self.log_chances(), start=1):
            if (left := tail + chance) > 0:
                longest = k * (k * mu * mu / 2 + mu * sqrt(2 * left))
                top = max(top, longest + min(chance - none, 0.0))
            elif k * self.records > self.draws:
                break
        return top

    def log_chances(self) -> Iterator[float]:
        """Yield, in doubles, about the logarithms of P(M = 1), P(M = 2), ..."""
        n, m = self.records, self.draws
        chance = m * log1p(-1 / n)
        for k in range(1, m + 1):
            chance += log((m - k + 1) / k) - log(n - 1)
            yield chance

    def width(self, p: int) -> int:
        """Bits that leave the terms of the sum right to p bits: their ratios fall by e^(-2k mu²/2)
        from one to the next."""
        return p + 64 + int(1.5 * _seen(self, p)[0] * max(self.mu_squared, _LEAST_MU_SQUARED))

    def work(self, p: int) -> int:
        """Units of work of the probabilities and exponentials."""
        w = self.width(p)
        return (_seen(self, p)[0] + 2 * self.draws.bit_length()) * (128 + w // 2 + (w * w >> 8))

    def work_a_point(self, p: int) -> int:
        """Units of work at each point: two tails for each number; the root pays for itself."""
        return (_seen(self, p)[0] + 3) * (64 + p * p // 256)

    def below(self, x: Fraction, grown: Interval, normal: Normal) -> Below:
        """Enclose P(L <= x) and Q(L <= x): every Φ, which grows, at both ends of its argument."""
        if x < 0:
            return (0, 0), (0, 0)
        p = normal.p
        law = _law(self, p)
        w = law.bits
        common = law.half
        if x > 0:
            t = _root(law, _about(self, float(x)), (grown[0] << w - p, grown[1] << w - p), normal)
            common = _log(t, w)
        loss = (x.numerator << w) // x.denominator
        seen = _seen(self, p)[1], _seen(self, p)[1] + int(1.5 * x) + 1  # Q is times e^x in profiles
        first, second = [0, 0], [law.rest[0] >> w - p, -(-law.rest[1] >> w - p)]
        for k, chance in enumerate(law.chances):
            own = common
            if k:
                alone = loss // k + k * law.half[0]
                own = max(common[0], alone), max(common[1], alone + k + 1)
            low = own[0] * law.inverse[own[0] < 0] >> w
            high = (own[1] * law.inverse[own[1] > 0] >> w) + 1
            unlikely = w - chance[1].bit_length()
            moved = _cdf(normal, low - k * law.mu[1], high - k * law.mu[0], w, seen[0] - unlikely)
            still = _cdf(normal, low, high, w, seen[1] - unlikely)
            for side in (0, 1):
                first[side] += (chance[side] * moved[side] >> w) + side
                second[side] += (chance[side] * still[side] >> w) + side
        one = 1 << p
        return (first[0], min(first[1], one)), (second[0], min(second[1], one))


@lru_cache(maxsize=256)
def _seen(pair: CopiesDrawn, p: int) -> tuple[int, int]:
    """The largest number of copies that is counted, and bits up to which tails are computed.

    Both leave out less than the last of all digits of masses for which p bits are taken at the
    most (`pld_checker`). Nothing but widths depends on it.
    """
    digits = 8
    while 7 * digits // 2 + 3 * int(pair.highest(digits * log(10))) + pair.precision < p:
        digits += 1
    least, mean = -digits * log(10), pair.draws / pair.records
    for k, chance in enumerate(pair.log_chances(), start=1):
        if k > 2 * mean + 2 and chance < least:
            return k, 4 * digits + 32
    return pair.draws, 4 * digits + 32


def _cdf(normal: Normal, low: int, high: int, w: int, bits: int) -> Interval:
    """Enclose Φ between two points times 2^w; beyond 2^-bits by Φ(-y) <= e^(-y²/2) alone."""
    p = normal.p
    near = (low if low > 0 else max(-high, 0)) >> w - 16
    # e > 2^(23/16)
    if 0 < bits < near * near * 23 >> 37:
        tail = (1 << p >> bits) + 1
        return ((1 << p) - tail, 1 << p) if low > 0 else (0, tail)
    return normal.between(low >> w - p, (high >> w - p) + 1)


class _Law(NamedTuple):
    """What a number of copies does; all times 2^bits.

    `chances`: p_k of k = 0, 1, ...; `falls`: e^(-(2k - 1) mu²/2), by which e^(-k² mu²/2) falls from
    k - 1 to k; `rest`: of more copies; `half`: mu²/2; `inverse`: 1/mu.
    """

    bits: int
    chances: list[Interval]
    falls: list[Interval]
    rest: Interval
    half: Interval
    mu: Interval
    inverse: Interval

    def sum(self, t: int, gamma: int, side: int) -> tuple[int, int]:
        """Return Σ p_k (t^k e^(-k² mu²/2) - γ)⁺ and about its slope.

        Side 0: from below; 1: from above. Terms first grow with k and then fall, as the logarithm
        is concave in k: once one falls and is below γ, so are all behind it.
        """
        w, one = self.bits, 1 << self.bits
        term, total, slope = one, 0, 0
        for k, fall in enumerate(self.falls, start=1):
            ratio = t * fall[side]
            term = (term * t >> w) + side
            term = (term * fall[side] >> w) + side
            if term > gamma:
                chance = self.chances[k][side]
                total += (chance * (term - gamma) >> w) + side
                slope += chance * k * term >> w
            elif ratio >> w < one:
                break
        return total, (slope << w) // t


@lru_cache(maxsize=16)
def _law(pair: CopiesDrawn, p: int) -> _Law:
    """Return the law of the number of copies, for enclosures of p bits."""
    n, m, w = pair.records, pair.draws, pair.width(p)
    squared = max(pair.mu_squared, _LEAST_MU_SQUARED)
    none = _power(n - 1, n, m, w)
    chances, falls = [none], []
    for k in range(1, _seen(pair, p)[0] + 1):
        low, high = chances[-1]
        ways, over = m - k + 1, k * (n - 1)
        chances.append((low * ways // over, -(-high * ways // over)))
        falls.append(exp_bounds(-(2 * k - 1) * squared / 2, w))
    one = 1 << w
    rest = max(one - sum(c[1] for c in chances), 0), max(one - sum(c[0] for c in chances), 0)
    half = (squared.numerator << w - 1) // squared.denominator
    mu = sqrt_bounds(squared, w)
    inverse = (1 << 2 * w) // mu[1], -(-(1 << 2 * w) // mu[0])
    return _Law(w, chances, falls, rest, (half, half + 1), mu, inverse)


def _power(numerator: int, denominator: int, times: int, w: int) -> Interval:
    """Enclose a fraction below one to a whole power, by squaring; errors add up `times` times."""
    v = w + 2 * times.bit_length() + 8
    low, high = (numerator << v) // denominator, -(-(numerator << v) // denominator)
    found = [1 << v, 1 << v]
    while times:
        if times & 1:
            found = [found[0] * low >> v, (found[1] * high >> v) + 1]
        low, high, times = low * low >> v, (high * high >> v) + 1, times >> 1
    return found[0] >> v - w, (found[1] >> v - w) + 1


def _log(t: Interval, w: int) -> Interval:
    """Enclose the logarithm of t: at the lower end, and ln(a + b) <= ln a + b/a."""
    low, high = log_bounds(Fraction(t[0], 1 << w), w)
    return low, high - (-(t[1] - t[0] << w) // t[0])


def _about(pair: CopiesDrawn, x: float) -> float:
    """About ln t at the root, in doubles: only the number of Newton's steps depends on it.

    At the least s at which a single term is all the sum is too large, by their number at most.
    """
    half, left = float(pair.mu_squared) / 2, -expm1(-x) * exp(pair.draws * log1p(-1 / pair.records))
    terms: list[tuple[int, float]] = []
    s = 0.0
    for k, log_chance in enumerate(pair.log_chances(), start=1):
        alone = (k * k * half + x + log1p(exp(min(log(left) - log_chance, 700)))) / k
        if terms and alone > 2 * s:
            break
        s = min(s, alone) if terms else alone
        terms.append((k, log_chance))
    for _ in range(16):
        above, slope = -left, 0.0
        for k, log_chance in terms:
            exponent = k * s - k * k * half - x
            if exponent > 0:
                grown = exp(exponent + log_chance)
                above, slope = above + grown - exp(log_chance), slope + k * grown
        if slope <= 0 or above <= 1e-13 * left:
            break
        s -= above / slope
    return s


def _root(law: _Law, about: float, gamma: Interval, normal: Normal) -> Interval:
    """Enclose t at the roots for every γ in an interval, and chances and falls in theirs.

    Newton's steps from above stay above, until rounding hides by how much; that point is then moved
    either way until signs are certain.
    """
    w, none = law.bits, law.chances[0]
    one, work = 1 << w, 8 + (w * w >> 15)

    def value(t: int, side: int) -> tuple[int, int]:
        normal.spend(len(law.falls) * work)
        return law.sum(t, gamma[1 - side], side)

    # the root is larger for a larger γ and p_0
    least, most = (gamma[0] - one) * none[0] >> w, ((gamma[1] - one) * none[1] >> w) + 1
    bits = about / log(2) + w
    whole = int(bits)
    t = (int(2 ** (bits - whole + 53)) << whole >> 53) + (1 << whole - 40)
    found, slope = value(t, 0)
    while slope > 0 and (step := (found - most << w) // slope) > 0:
        t -= step
        found, slope = value(t, 0)
    gap = 1 + (max(abs(found - most), most - least) << w) // max(slope, 1)
    high, move = t, gap
    while value(high, 0)[0] < most:
        high, move = high + move, 2 * move
    low, move = t, gap
    while low > one and value(low, 1)[0] > least:
        low, move = low - move, 2 * move
    return max(low, one), high
