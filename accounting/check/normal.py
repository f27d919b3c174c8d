"""The normal distribution function at many points, and e^x, between whole numbers."""

from collections.abc import Callable
from fractions import Fraction

from .intervals import exp_bounds, root_two_pi, tail_bounds
from .losses import Interval

_APART = 5
"""Centres are 1/32 apart: |t| <= 2^-6, and a series to p bits has about p/7 terms."""

_FAR = 24
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
