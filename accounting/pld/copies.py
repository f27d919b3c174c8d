"""The profile of a batch drawn with replacement: how many copies of a record, and a shift for each.

With p_k = P(M = k), the profile of `CopiesDrawn` at γ = e^x >= 1 is the least

    Σ_{k>0} p_k G_k(γ + t_k/p_k)    t_k >= 0, Σ t_k = (γ-1) p_0

where G_k(c) = H_c(N(kμ, 1)‖N(0, 1)) is that of the tests y > y_k at which the likelihood ratio
e^{kμy - k²μ²/2} is c, and G_k' = -Q(y > y_k). So at the least value all y_k with t_k > 0 are one y,
and the others are larger: y_k = max(y, (x/k + kμ²/2)/μ), with s = μy at the root of

    Σ_{k>0} p_k (e^{ks - k²μ²/2 - x} - 1)⁺ = (1 - e^{-x}) p_0

whose left side is convex and grows. Then Q(L > x), minus the slope, and P(L > x) = δ + γ Q(L > x)
are those of the tests, y_0 = y:

    P(L > x) = Σ_{k>=0} p_k P(N(kμ, 1) > y_k)    Q(L > x) = Σ_{k>=0} p_k P(N(0, 1) > y_k)

For x < 0 the loss is that of the other order with its sign changed.
"""

from functools import lru_cache
from math import exp, expm1, log1p
from typing import NamedTuple

from flint import arb, ctx

from ..numbers.enclosure import ball_of
from .pairs import CopiesDrawn

_LEAST_BITS = 256
"""Larger numbers of copies than one of chance 2 to minus this count as an infinite loss."""

_FAR = 700.0
"""The exponent at which doubles stop growing here."""


class _Law(NamedTuple):
    """What a number of copies does, in balls.

    Args:
        chances: p_0, p_1, ...
        rest: of larger numbers.
        mu_squared: of one copy.
    """

    chances: list[arb]
    rest: arb
    mu_squared: arb

    def excess(self, s: arb, x: arb) -> tuple[arb, arb]:
        """Return the left side of the equation for s, and its slope."""
        total, slope = arb(0), arb(0)
        for k, chance in enumerate(self.chances[1:], start=1):
            exponent = k * s - k * k * self.mu_squared / 2 - x
            if exponent <= 0:
                continue
            total += chance * exponent.expm1().max(arb(0))
            slope += k * chance * exponent.exp()
        return total, slope


def copies_tails(pair: CopiesDrawn, x: arb) -> tuple[arb, arb]:
    """Return balls that contain P(L > x) and Q(L > x).

    Raises `ArithmeticError` where x and zero cannot be told apart.
    """
    if x < 0:
        p, q = copies_tails(pair, -x)
        return 1 - q, 1 - p
    if not x >= 0:
        raise ArithmeticError(f"x={x} must be apart from zero.")
    law = law_of(pair, ctx.prec)
    mu, root = law.mu_squared.sqrt(), arb(2).sqrt()
    s = law.mu_squared / 2 if x == 0 else _threshold(law, x)
    with_it, without, common = law.rest, arb(0), arb(0)
    for k, chance in enumerate(law.chances):
        own = x / k + k * law.mu_squared / 2 if k else s
        later = not own <= s
        own = own.max(s) if later else s
        with_it += chance * ((own / mu - k * mu) / root).erfc() / 2
        if later:
            without += chance * (own / mu / root).erfc() / 2
        else:
            common += chance
    return with_it, without + common * (s / mu / root).erfc() / 2


@lru_cache(maxsize=64)
def law_of(pair: CopiesDrawn, bits: int) -> _Law:
    """Return the probabilities of 0, 1, ... copies, to so many bits."""
    n, m = pair.records, pair.draws
    least = arb(2) ** -_LEAST_BITS
    chances = [(1 - arb(1) / n) ** m]
    for k in range(1, m + 1):
        chances.append(chances[-1] * (m - k + 1) / (k * (n - 1)))
        # from twice the mean on each is less than half of the last
        if k > 2 * m // n + 2 and chances[-1] < least:
            break
    rest = (1 - sum(chances, arb(0))) if len(chances) <= m else arb(0)
    return _Law(chances, rest, ball_of(pair.mu_squared))


def _threshold(law: _Law, x: arb) -> arb:
    """Return a ball around the root s for x > 0: Newton's method from a double near the root.

    The ball's ends lie on either side of the root, whatever the iteration was worth.
    """
    value = -(-x).expm1() * law.chances[0]
    s = arb(_in_doubles(law, float(x), float(value)))
    for _ in range(64):
        excess, slope = law.excess(s, x)
        if not slope > 0:
            break
        step = ((excess - value) / slope).mid()
        s = (s - step).mid()
        if abs(step) < abs(s) * arb(2) ** (12 - ctx.prec):
            break
    radius = abs(s) * arb(2) ** (16 - ctx.prec)
    while not (law.excess(s - radius, x)[0] < value < law.excess(s + radius, x)[0]):
        radius *= 4
        if radius > 1 + abs(s):
            raise ArithmeticError(f"Expected a threshold for the loss {x}.")
    return arb(s, radius)


def _in_doubles(law: _Law, x: float, value: float) -> float:
    """Return about the root s: bisection while terms are very large, then Newton's method.

    It lies between the least point at which a term is positive and the root of the first alone.
    """
    mu_squared = float(law.mu_squared)
    terms = [(k, float(p), k * k * mu_squared / 2 + x) for k, p in enumerate(law.chances) if k]
    low = min(offset / k for k, _, offset in terms)
    high = terms[0][2] + log1p(value / terms[0][1])
    s = high
    for _ in range(200):
        found, slope = -value, 0.0
        for k, chance, offset in terms:
            if (exponent := k * s - offset) > 0:
                found += chance * expm1(min(exponent, _FAR))
                slope += k * chance * exp(min(exponent, _FAR))
        low, high = (s, high) if found < 0 else (low, s)
        step = found / slope if slope else 0.0
        after = s - step
        if not low < after < high or found > value:
            after = (low + high) / 2
        if abs(after - s) <= 1e-15 * abs(s):
            break
        s = after
    return s
