"""Encloses roots, exponentials, logarithms and normal tails between whole numbers.

Every function takes an exact number and a precision p, and proves its error bound in a comment.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from .reading import CertificateWrong, Undecided, show

MAX_EXPONENT = 1 << 13
"""The largest x of e^x that is computed: the result has some 11,800 bits."""

MAX_BITS = 1 << 12
"""Bits of precision beyond which a comparison is given up as `Undecided`."""


Interval = tuple[int, int]  # (low, high): low / 2^p <= the number <= high / 2^p


def sqrt_bounds(x: Fraction, p: int) -> Interval:
    """Enclose the root of x >= 0: isqrt(floor(y)) <= sqrt(y) < isqrt(floor(y)) + 1."""
    low = isqrt((x.numerator << 2 * p) // x.denominator)
    return low, low + 1


def exp_bounds(x: Fraction, p: int) -> Interval:
    """Enclose e^x."""
    if x < 0:
        if x < -p:
            return 0, 1  # e^x < e^-p < 2^-p
        low, high = exp_bounds(-x, p)  # >= 1, so an error of 2^-p stays one under 1/y
        return (1 << 2 * p) // high, -(-(1 << 2 * p) // low)
    if x > MAX_EXPONENT:
        raise Undecided(f"expected exponents up to {MAX_EXPONENT} instead got {show(x)}")
    # e^x = (e^r)^(2^k) with r <= 2^-8; a relative error doubles at each squaring, and 2^(1.5 x)
    # covers the size of the result
    k = int(x).bit_length() + 8
    w = p + k + 3 * int(x) // 2 + 24
    r = ((x.numerator << w) // x.denominator) >> k
    total = term = 1 << w
    n = 0
    while term:
        n += 1
        term = (term * r >> w) // n
        total += term
    # Every term is too small by e_n <= e_(n-1)/256 + 1 + 1/n <= 3 units, the terms left out by at
    # most 3 (1 + 1/256 + ...) <= 4, and r, rounded down by < 1 unit, lowers e^r by <= 2.
    low, high = total, total + 3 * n + 6
    for _ in range(k):
        low, high = low * low >> w, (high * high >> w) + 1
    return low >> (w - p), (high >> (w - p)) + 1


def _atanh(numerator: int, denominator: int, w: int) -> Interval:
    """Enclose atanh(z) = z + z³/3 + z^5/5 + ..., for 0 <= z = numerator/denominator <= 1/3."""
    power = (numerator << w) // denominator
    square = (power * power) >> w
    total, n = 0, 0
    while power:
        total += power // (2 * n + 1)
        power = power * square >> w
        n += 1
    # powers are too small by e <= e/9 + 2/3·2 + 1 <= 3 units, each quotient by one more; the
    # powers left out are below 3 (1 + 1/9 + ...) <= 4
    return total, total + 4 * n + 4


@lru_cache(maxsize=64)
def _log_2(w: int) -> Interval:
    """Enclose ln 2 = 2 atanh(1/3), times 2^w."""
    low, high = _atanh(1, 3, w)
    return 2 * low, 2 * high


def log_bounds(x: Fraction, p: int) -> Interval:
    """Enclose ln x, x > 0: with x = m 2^e and 1 <= m < 2, ln x = 2 atanh((m-1)/(m+1)) + e ln 2.

    Raises `Undecided` at zero and below, where the series has no end.
    """
    if x <= 0:
        raise Undecided(f"expected a logarithm of a number above zero instead got {show(x)}")
    e = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** e:
        e -= 1
    m = x / Fraction(2) ** e
    w = p + abs(e).bit_length() + 16
    low, high = _atanh(m.numerator - m.denominator, m.numerator + m.denominator, w)
    twos = _log_2(w)
    low, high = 2 * low + e * twos[e < 0], 2 * high + e * twos[e >= 0]
    return low >> (w - p), (high >> (w - p)) + 1


@lru_cache(maxsize=64)
def root_two_pi(p: int) -> Interval:
    """Enclose √(2π), with Machin's π = 16 atan(1/5) - 4 atan(1/239)."""
    w = p + 32

    def atan(n: int) -> Interval:
        """Enclose atan(1/n) = 1/n - 1/(3n³) + 1/(5n⁵) - ..., n >= 5, times 2^w."""
        power = total = (1 << w) // n
        k = 0
        while power:
            power //= n * n
            k += 1
            total += (-1) ** k * (power // (2 * k + 1))
        # powers are too small by <= 1.05 units, quotients by <= 2.05, and the rest by <= 2
        return total - 3 * k - 4, total + 3 * k + 4

    five, other = atan(5), atan(239)
    low, high = 16 * five[0] - 4 * other[1], 16 * five[1] - 4 * other[0]
    return isqrt(2 * low << w) >> 32, (isqrt(2 * high << w) + 1 >> 32) + 1


def mills_bounds(s: Fraction, p: int) -> Interval:
    """Enclose Mills' ratio R(x) = e^(x²/2) ∫_x^∞ e^(-t²/2) dt at x = √s >= 0."""
    if s > 2 * (p + 32):
        # x R(x) = 1 - 1/s + 3/s² - 15/s³ + ...: alternating and enveloping, so that the error is
        # below the first term left out. Terms fall while 2n - 1 < s, and at n = s/2 they are below
        # √2 e^(-s/2) < 2^-w: hence the loop ends before they rise.
        w = p + 32
        term, total, n = 1 << w, 0, 0
        while term:
            total += (-1) ** n * term
            n += 1
            term = term * (2 * n - 1) * s.denominator // s.numerator
            if 2 * n - 1 > s:
                raise Undecided("expected the asymptotic series to reach its accuracy")
        # term n is too small by <= n units (ratios are <= 1), and so is what is left out
        slack = n * n + n + 1
        low_x, high_x = sqrt_bounds(s, w)
        low, high = ((total - slack) << w) // high_x, -(-((total + slack) << w) // low_x)
        return low >> 32, (high >> 32) + 1
    # R(x) = √(π/2) e^(s/2) - x (1 + s/3 + s²/15 + ...); both are below 2^(s + 2), hence w
    w = p + int(s) + 48
    low_s = (s.numerator << w) // s.denominator
    low_term = high_term = low_sum = high_sum = 1 << w
    n = 0
    while low_term or 2 * n + 1 < 2 * s:
        n += 1
        low_term = (low_term * low_s >> w) // (2 * n + 1)
        high_term = (high_term * (low_s + 1) >> w) // (2 * n + 1) + 1
        low_sum, high_sum = low_sum + low_term, high_sum + high_term
    # from here on each term is at most half of the one before, so the rest is below the last
    high_sum += high_term
    low_x, high_x = sqrt_bounds(s, w)
    root, power = root_two_pi(w), exp_bounds(s / 2, w)
    low = (root[0] * power[0] >> w + 1) - (high_x * high_sum >> w) - 1
    high = (root[1] * power[1] >> w + 1) + 1 - (low_x * low_sum >> w)
    return low >> (w - p), (high >> (w - p)) + 1


def tail_bounds(s: Fraction, t: Fraction, p: int) -> Interval:
    """Enclose e^(-t/2) R(√s) / √(2π); for t = s this is Φ(-√s)."""
    density, mills, root = exp_bounds(-t / 2, p + 4), mills_bounds(s, p + 4), root_two_pi(p + 4)
    low = max(density[0] * mills[0] // root[1], 0)
    return low >> 4, (-(-density[1] * mills[1] // root[0]) >> 4) + 1


def delta_bounds(mu_squared: Fraction, epsilon: Fraction, p: int) -> Interval:
    """Enclose the exact delta at epsilon of mu-GDP, Φ(-a) - e^ε Φ(-b), a, b = ε/μ ∓ μ/2.

    e^ε φ(b) = φ(a), so that with t = a² the two parts are tails at one density.
    """
    a, b = epsilon - mu_squared / 2, epsilon + mu_squared / 2
    t = a * a / mu_squared
    first, second = tail_bounds(t, t, p), tail_bounds(b * b / mu_squared, t, p)
    if a < 0:
        first = (1 << p) - first[1], (1 << p) - first[0]
    return first[0] - second[1], first[1] - second[0]


def require_at_most(
    what: str,
    enclose: Callable[[int], Interval],
    bound: Fraction,
    spend: Callable[[int], None],
    bits: int = 128,
) -> None:
    """Raise unless the enclosed number is at most `bound`; the precision grows until decided."""
    while bits <= MAX_BITS:
        spend(bits * bits)
        low, high = enclose(bits)
        scaled = bound.numerator << bits
        if high * bound.denominator <= scaled:
            return
        if low * bound.denominator > scaled:
            least = show(Fraction(low, 1 << bits))
            raise CertificateWrong(f"expected {what} <= {show(bound)} instead got >= {least}")
        bits *= 2
    raise Undecided(f"expected {what} to differ from {show(bound)} within {MAX_BITS} bits")
