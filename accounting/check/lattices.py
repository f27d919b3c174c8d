"""Dominating pairs whose loss has atoms: discrete noise, randomised response."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt, log, sqrt

from .intervals import exp_bounds
from .losses import Interval
from .normal import Normal, exp_work
from .pairs import Below, Pair


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
