"""The privacy loss of discrete Gaussian noise on integer vectors, bounded from above for all.

Noise K of parameter σ on every coordinate; an integer vector v, |v|² <= s, moves the outputs apart.
At v + K, and with unit = 1/(2σ²), the loss is

    L = (|v|² + 2<v, K>) unit under P, and -L has the same law under Q, as K is symmetric.

*Which vectors.* Order and signs of coordinates change nothing, and a coordinate more that moves by
one only adds to what is released. So the v to look at are the ways to write s as a sum of squares.

*One loss for all.* Of each v the profile h_v(γ) = P_v(L > ln γ) - γ Q_v(L > ln γ) is convex, falls
from one, and lies above (1-γ)⁺: exactly then a function is the profile of a pair (Zhu, Dong, Wang
2022, Section 3, on dominating pairs). So is the maximum over v, and what is linear between the
points γ = e^x, x = unit · (s + 2k), and equal to the maximum at these: chords of a convex function
lie above it. This H belongs to a pair that dominates for every v. Its loss takes the values x:

    Q(L > x) = (H(e^x) - H(e^y)) / (e^y - e^x)    P(L > x) = H(e^x) + e^x Q(L > x)

with the next value y. As h_v(γ) = 1 - γ + γ h_v(1/γ) for every v, its -L has the same law under Q.

*Numbers.* Masses of <v, K> are rounded down, in whole multiples of 2^-w; all that is then missing
from one may lie anywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import isqrt, sqrt

from . import losses
from .intervals import exp_bounds
from .lattices import Lattice
from .losses import Interval
from .normal import exp_work
from .pairs import Below
from .reading import Undecided

MAX_SQUARED = 25
"""The largest s: 19 ways to write it as a sum of squares."""

MAX_SPREAD = 1 << 8
"""The largest σ√s: sums of coordinates have some thirty times as many masses."""


def sums_of_squares(total: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield all falling sequences of whole numbers from 1 to `most` with this sum of squares."""
    if total == 0:
        yield ()
    for first in range(1, min(most, isqrt(total)) + 1):
        for others in sums_of_squares(total - first**2, first):
            yield (first, *others)


@dataclass(frozen=True)
class DiscreteGaussianVectors(Lattice):
    """Noise of mass ∝ e^(-k²/(2σ²)) on each coordinate, moved by integers of squares up to s.

    Args:
        variance: σ² > 0 of the untruncated, continuous law.
        squared: s >= 1.
    """

    variance: Fraction
    squared: int

    @property
    def unit(self) -> Fraction:
        """Losses are (s + 2k)/(2σ²): 1/σ² apart."""
        return 1 / (2 * self.variance)

    def work(self, p: int) -> int:
        """Units of work of the table: exponentials, and a product for each end of each vector."""
        w, one, all_of_them = self._width(p), self._places(p, 1), self._places(p, self.squared)
        vectors = list(sums_of_squares(self.squared, self.squared))
        ends = {vector[i:] for vector in vectors for i in range(len(vector))}
        products = sum(2 * all_of_them + 2 * end[0] * one for end in ends) * (4 + w // 12)
        largest = float(self.unit * (self.squared + 2 * all_of_them))
        return (
            products
            + one * (16 + exp_work(w, w / 3))
            + all_of_them * (16 + exp_work(w, largest) + len(vectors) * (8 + w // 8))
        )

    def highest(self, tail: float) -> float:
        """About μ²/2 + μ √(2 tail) with μ² = s/σ², as of continuous noise."""
        mu_squared = self.squared / float(self.variance)
        return mu_squared / 2 + sqrt(2 * tail * mu_squared)

    def _places(self, p: int, squared: int) -> int:
        """A number beyond which <v, K> has a mass below 2^-(p + 32) if |v|² = `squared`."""
        return isqrt(int(2 * self.variance * squared * (p + 33))) + 2

    def _width(self, p: int) -> int:
        """Bits of masses so that P and Q are right to p: slopes lose some, and e^x Q(L > x)."""
        largest = self.unit * (self.squared + 2 * self._places(p, self.squared))
        return p + 64 + 2 * int(self.variance).bit_length() + 3 * int(largest) // 2

    def table(self, p: int) -> tuple[int, int, list[Below]]:
        """The values of the loss between two that are apart from zero by as much."""
        w, s = self._width(p), self.squared
        # from a loss of zero on or, if s is odd, of minus one unit
        places = range(-((s + 1) // 2), self._places(p, s) + 1)
        grown = [exp_bounds(self.unit * (s + 2 * k), w) for k in places]
        profile = self._profile(places, grown, w)
        beyond: list[Below] = []
        for (h, after), (x, y) in zip(pairwise(profile), pairwise(grown), strict=True):
            if y[0] <= x[1]:
                raise Undecided(f"expected values of a loss apart at {w} bits")
            q = max(h[0] - after[1], 0) // (y[1] - x[0]), -((after[0] - h[1]) // (y[0] - x[1]))
            with_it = (h[0] + x[0] * q[0]) >> w, -(-(h[1] + x[1] * q[1]) >> w)
            beyond.append((_clipped(with_it, w, p), _clipped(q, w, p)))
        one = 1 << p
        above = [((one - a[1], one - a[0]), (one - b[1], one - b[0])) for a, b in beyond]
        # L <= -x under P is L >= x under Q: beyond the value before x
        start = s % 2
        below = [(b, a) for a, b in reversed(beyond[start:-1])]
        last = above[-1]
        above[-1] = (last[0][0], one), (last[1][0], one)
        return -(s + 2 * places[-2]), beyond[-1][0][1], [*below, *above]

    def _profile(self, places: range, grown: list[Interval], w: int) -> list[Interval]:
        """Enclose 2^(2w) H at losses unit · (s + 2k), of which `grown` has the exponentials."""
        noise, s = self._noise(w), self.squared
        known: dict[tuple[int, ...], list[int]] = {(): [1 << w]}
        low, high = [0] * len(places), [0] * len(places)
        for vector in sums_of_squares(s, s):
            masses = _summed(vector, noise, w, known)
            # how much lies at the highest number, at the two highest, ...
            beyond = list(accumulate(reversed(masses), initial=0))
            missing, middle, end = (1 << w) - beyond[-1], len(masses) // 2, len(masses)
            for i, (k, x) in enumerate(zip(places, grown, strict=True)):
                first = beyond[min(max(middle - k, 0), end)]
                second = beyond[min(max(middle - k - s, 0), end)]
                low[i] = max(low[i], (first << w) - x[1] * (second + missing))
                high[i] = max(high[i], (first + missing << w) - x[0] * second)
        return list(zip(low, high, strict=True))

    def _noise(self, w: int) -> list[int]:
        """Lower bounds on the masses of K, times 2^w, around zero in the middle.

        Weights beyond `last` fall from one to the next by e^(-last/σ²) at least: a geometric series
        bounds their sum, which is part of the normalising constant.
        """
        last, one = self._places(w, 1), 1 << w
        weights = [exp_bounds(-(k * k) * self.unit, w) for k in range(last + 1)]
        ratio = exp_bounds(-last / self.variance, w)[1]
        rest = -(-weights[last][1] * one // max(one - ratio, 1))
        total = 2 * sum(high for _, high in weights) - one + 2 * rest
        shares = [(low << w) // total for low, _ in weights]
        return _without_ends([*shares[:0:-1], *shares])


def _clipped(ends: Interval, w: int, p: int) -> Interval:
    """A probability in multiples of 2^-p, from an enclosure in multiples of 2^-w."""
    return max(ends[0] >> w - p, 0), min(-(-ends[1] >> w - p), 1 << p)


def _summed(
    vector: tuple[int, ...], noise: list[int], w: int, known: dict[tuple[int, ...], list[int]]
) -> list[int]:
    """Lower bounds on the masses of <v, K>, times 2^w; `known` keeps those of all ends of v."""
    if vector not in known:
        others = _summed(vector[1:], noise, w, known)
        spaced = [0] * (vector[0] * (len(noise) - 1) + 1)
        spaced[:: vector[0]] = noise
        known[vector] = _without_ends([mass >> w for mass in losses.multiply(others, spaced)])
    return known[vector]


def _without_ends(masses: list[int]) -> list[int]:
    """Masses that are symmetric around the middle, without the zeros at both ends."""
    start = next(i for i, mass in enumerate(masses) if mass)
    return masses[start : len(masses) - start]
