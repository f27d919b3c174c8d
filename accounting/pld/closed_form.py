"""Compositions in closed form: losses on a lattice, Laplace noise, and at most one other pair.

Nothing is put on a grid here, so that an enclosure is as narrow as ball arithmetic makes it.

*Lattice.* The loss of a discrete pair takes whole multiples of one unit; n of them have the n-th
power of the polynomial of their masses, and different pairs the sums of all their losses: *knots*.

*Laplace.* With u = z + 1/2 and w = 1/(2u) the moment function of a Laplace shift e is

    E_P[e^(zL)] = (1/2) e^(ze) (1 + w) + (1/2) e^(-e) e^(-ze) (1 - w),

so that N shifts have knots too: sums t of ±e, each with a mass W and the polynomial A(w) =
(1 + w)^J (1 - w)^(N-J), J the number of plus signs. As w^k transforms the k-fold Gamma density of
y = (t - L)/2 > 0, the knot contributes, with h = (t - ε)/2 > 0,

    W · 2 e^(-h) Σ_i h^i/i! Σ A_k    over k < i with i - k odd

to δ(ε). Beyond i = N the inner sums are constant, by parity: half of A(1) ± A(-1).

*One more.* A pair with a known profile, such as the sum of all Gaussian shifts, contributes its own
δ(ε - t) at every knot t, if there is no Laplace shift.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise
from math import ceil, comb, factorial, inf, log, log2, nextafter
from typing import NamedTuple

from flint import arb, arb_poly, fmpz, fmpz_poly

from ..numbers.enclosure import Enclosure, ball_of, precision
from ..numbers.roots import brent
from .lattices import lattice_of
from .pairs import (
    DiscreteGaussianShift,
    DiscreteGaussianVectors,
    DiscreteLaplaceShift,
    DominatingPair,
    LaplaceShift,
    RandomisedAnswers,
)
from .profiles import delta_of

MOST_KNOTS = 1 << 14
"""With more values of the loss a composition has no closed form worth its time."""

_MOST_KNOTS_WITH_MORE = 1 << 11
"""The same for compositions with a pair that is asked at every knot."""

_LONGEST = 1 << 16
"""The longest polynomial of masses."""

_MOST_LAPLACE = 256
"""Laplace shifts of a closed form: its polynomials have as many terms, and bits."""

_GUARD_BITS = 96
"""Beyond what cancels in the polynomials."""

_NEAR = (-inf, -10.0, -7.0, -4.0, -1.0)
"""How far below a known bound a root is looked for, relatively, in powers of two."""

_MOST_SECANTS = 8
"""Until a root is known to the last digits, or is sought otherwise."""

_STEEP, _NONE_LEFT = -64.0, -2e3
"""Logarithms of δ(ε) over the δ asked for: below what helps to find a root; and of δ(ε) = 0."""

_Lattice = (
    DiscreteGaussianShift | DiscreteGaussianVectors | DiscreteLaplaceShift | RandomisedAnswers
)
_Counts = Mapping[DominatingPair, int]


@dataclass(frozen=True, slots=True)
class _Knot:
    """A value of the loss, or the end of a piece of it.

    Args:
        loss: t.
        mass: under P.
        rank: the number J of plus signs among Laplace shifts.
    """

    loss: arb
    mass: arb
    rank: int


class Curve(ABC):
    """A privacy profile that can be enclosed anywhere, and so be inverted."""

    @abstractmethod
    def delta(self, epsilon: float) -> Enclosure:
        """Return an enclosure of δ(ε) for ε >= 0, at most 1."""

    @abstractmethod
    def _highest(self) -> float:
        """Return an ε > 0 at which the search for a small δ may start."""

    def epsilon(self, delta: float, known: float = inf, order: float = 0.0) -> Enclosure:
        """Return an enclosure of ε(δ).

        Args:
            delta: in (0, 1).
            known: an upper bound, below which it is sought.
            order: about by how much the logarithm of δ(ε) falls there with ε; 0 if that is unknown.
        """
        excess = cache(partial(self._excess, delta=delta))
        if (root := _by_secants(excess, known, order)) is not None:
            return Enclosure(arb(self._below(root, delta)), arb(self._above(root, known, delta)))
        if self.delta(0.0).upper <= delta:
            return Enclosure(arb(0), arb(0))
        low, high = 0.0, self._highest()
        while self.delta(high).upper > delta:
            low, high = high, 2 * high
        if excess(low) <= 0:
            return Enclosure(arb(0), arb(high))
        # halved to where the logarithm is smooth: beyond the largest loss there is none
        while excess(high) < _STEEP and high > low * (1 + 2.0**-20):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        root = brent(excess, low, high, rtol=1e-14, maxiter=200)
        return Enclosure(arb(self._below(root, delta)), arb(self._above(root, high, delta)))

    def epsilon_upper(self, delta: float, known: float, order: float = 0.0) -> float:
        """Return an upper bound on ε(δ) next to the least one, in few evaluations.

        Args:
            delta, known, order: as of `epsilon`.
        """
        excess = cache(partial(self._excess, delta=delta))
        if (root := _by_secants(excess, known, order)) is not None:
            return min(self._above(root, known, delta), known)
        tried = [known * (1 - 2.0**power) for power in _NEAR] if 0 < known < inf else []
        low, high = next(((b, a) for a, b in pairwise(tried) if excess(b) > 0), (known, known))
        if not (low < high and excess(high) <= 0):
            return min(self.epsilon(delta).upper_float, known)
        root = brent(excess, low, high, xtol=0.0, rtol=1e-14)
        return min(self._above(root, high, delta), known)

    def _excess(self, epsilon: float, delta: float) -> float:
        """Return about log(δ(ε) / delta), which is nearly a parabola where δ is small."""
        found = self.delta(epsilon)
        middle = float((found.lower + found.upper) / 2)
        return log(middle) - log(delta) if middle > 0 else _NONE_LEFT

    def _below(self, root: float, delta: float) -> float:
        """Return an ε with δ(ε) >= delta, near the root; or zero, which is below every ε."""
        for power in range(-46, 0, 3):
            candidate = root * (1 - 2.0**power)
            if self.delta(candidate).lower >= delta:
                return candidate
        return 0.0

    def _above(self, root: float, high: float, delta: float) -> float:
        """Return an ε near the root with δ(ε) <= delta."""
        for power in range(-46, 0, 3):
            candidate = root * (1 + 2.0**power)
            if self.delta(candidate).upper <= delta:
                return candidate
        return high


def _by_secants(excess: Callable[[float], float], known: float, order: float) -> float | None:
    """Return a root below a point where the function is near and its slope about -order, or None.

    The function is nearly a parabola, whose secants from one side stay there. The error after a
    step is about the product of this one and the one before: the last need not be tried.
    """
    if not (order > 0 and 0 < known < inf):
        return None
    before, f_before = known, excess(known)
    here = known + f_before / order
    for _ in range(_MOST_SECANTS):
        if not (0 < here < known and f_before != 0):
            return None
        f_here = excess(here)
        if f_here == f_before:
            return None
        step = f_here * (here - before) / (f_here - f_before)
        if abs(step) * max(abs(here - before), abs(step)) * order <= 2.0**-48 * here:
            return here - step
        before, here, f_before = here, here - step, f_here
    return None


@dataclass(frozen=True)
class ClosedForm(Curve):
    """The privacy profile of a composition, at `bits` of precision."""

    knots: tuple[_Knot, ...]
    """By rising `tops`."""
    tops: tuple[float, ...]
    """An upper bound on the loss of every knot."""
    shifts: int
    """The number N of Laplace shifts."""
    rest: DominatingPair | None
    missing: arb
    """The mass of losses that were left out: anything from none to this is infinite."""
    bits: int

    def delta(self, epsilon: float) -> Enclosure:
        """Return an enclosure of δ(ε) for ε >= 0, at most 1."""
        with precision(self.bits):
            ball = self._delta(epsilon) + arb(0).union(self.missing)
            return Enclosure(ball.lower().max(arb(0)), ball.upper().max(arb(0)).min(arb(1)))

    def _highest(self) -> float:
        return max(self.tops[-1] * (1 + 2.0**-50), 2.0**-20)

    def _delta(self, epsilon: float) -> arb:
        total, at = arb(0), arb(epsilon)
        if self.rest is not None:
            for knot in self.knots:
                total += knot.mass * delta_of(self.rest, at - knot.loss)
            return total
        for knot in self.knots[bisect_left(self.tops, epsilon) :]:
            gap = (knot.loss - at) / 2
            if gap <= 0:
                continue
            if not gap > 0:  # a contribution starts from zero at a knot
                gap = arb(0).union(gap.upper())
            total += knot.mass * self._piece(knot.rank, gap)
        return total

    def _piece(self, rank: int, h: arb) -> arb:
        """Return 2 e^(-h) Σ_i h^i/i! Σ A_k: the sums beyond N as hyperbolic functions."""
        plus, minus, polynomial = _piece_of(self.shifts, rank, self.bits)
        shrink = (-h).exp()
        # 2 e^(-h) (E sinh h + O (cosh h - 1)), E and O half of plus ± minus
        beyond = (plus + minus * shrink) * (1 - shrink)
        return beyond + 2 * shrink * (polynomial(h) / _factorial(self.shifts))


def closed_form(
    counts: _Counts, delta: float, *, most_knots: int = MOST_KNOTS
) -> ClosedForm | None:
    """Return the closed form of a composition, for questions about δ down to `delta`, or None.

    It exists for lattice pairs and either Laplace shifts or one other pair that occurs once, unless
    the loss takes more than `most_knots` values.
    """
    # rounded, so that the points of a curve share what is built here
    digits = 64 * ceil(-log2(delta) / 64) * log(2)
    return _closed_form(tuple(counts.items()), ceil(digits), most_knots)


@lru_cache(maxsize=64)
def _closed_form(
    counts: tuple[tuple[DominatingPair, int], ...], digits: int, most_knots: int
) -> ClosedForm | None:
    lattices = [(pair, n) for pair, n in counts if isinstance(pair, _Lattice)]
    laplace = [(pair, n) for pair, n in counts if isinstance(pair, LaplaceShift)]
    others = [(pair, n) for pair, n in counts if not isinstance(pair, _Lattice | LaplaceShift)]
    shifts = sum(n for _, n in laplace)
    if shifts > _MOST_LAPLACE or (others and (laplace or sum(n for _, n in others) > 1)):
        return None
    most_knots = min(most_knots, _MOST_KNOTS_WITH_MORE) if others else most_knots
    # the polynomials of Laplace shifts alternate in sign, with terms up to e^h 2^N
    heights = sum(float(pair.epsilon) * n for pair, n in laplace)
    bits = ceil((2 * digits + 2 * heights) / log(2)) + 4 * shifts + _GUARD_BITS
    with precision(bits):
        missing = arb(0)
        knots: list[_Knot] = []
        for pair, n in lattices:
            most = most_knots // max(len(knots), 1)
            found = _lattice_knots(pair, n, digits + 48 + ceil(log(n * len(counts))), most)
            if found is None:
                return None
            knots, missing = _sums(knots, found[0]), missing + found[1]
        for laplace_pair, n in laplace:
            if (n + 1) * max(len(knots), 1) > most_knots:
                return None
            knots = _sums(knots, _laplace_knots(laplace_pair, n))
        rest = others[0][0] if others else None
        knots = sorted(knots or [_Knot(arb(0), arb(1), 0)], key=_top)
        tops = tuple(map(_top, knots))
        return ClosedForm(tuple(knots), tops, shifts, rest, missing.upper(), bits)


def _top(knot: _Knot) -> float:
    """Return an upper bound on the loss of a knot."""
    return nextafter(float(knot.loss.upper()), inf)


def _sums(first: list[_Knot], second: list[_Knot]) -> list[_Knot]:
    """Return the knots of the sum of two independent losses, of which the first may be none."""
    return (
        second
        if not first
        else [
            _Knot(a.loss + b.loss, a.mass * b.mass, a.rank + b.rank) for a in first for b in second
        ]
    )


class _Masses(NamedTuple):
    """Masses of a loss on a lattice, but for what is missing.

    Args:
        polynomial: coefficient k is the mass of place first + k.
        first: the lowest place.
        missing: a bound on the mass of all other places.
    """

    polynomial: arb_poly
    first: int
    missing: arb

    def times(self, other: "_Masses", negligible: arb) -> "_Masses":
        """Return those of the sum of two losses, of which no more is missing than of both."""
        product = (self.polynomial * other.polynomial).coeffs()
        missing = self.missing + other.missing
        return _trimmed(product, self.first + other.first, missing, negligible)


def _trimmed(masses: list[arb], first: int, missing: arb, negligible: arb) -> _Masses:
    """Return masses without tails of less than `negligible`, which are missing then, too.

    Neither a mass nor a mean of masses is negative, whatever a wide ball says.
    """
    masses = [m if m >= 0 else arb(0).union(m.upper().max(arb(0))) for m in masses]
    low, high = 0, len(masses)
    for end in (0, -1):
        lost = arb(0)
        while (
            high - low > 1 and lost + (edge := masses[low if end == 0 else high - 1]) < negligible
        ):
            lost += edge
            low, high = (low + 1, high) if end == 0 else (low, high - 1)
        missing += lost
    return _Masses(arb_poly(masses[low:high]), first + low, missing)


def _lattice_knots(
    pair: _Lattice, times: int, digits: int, most: int
) -> tuple[list[_Knot], arb] | None:
    """Return the losses of `times` copies but for about e^-digits of each, and what is missing.

    By repeated squaring, with tails cut at every product: most of a long power is next to nothing.
    None where these are more than `most`: a power spreads as it grows, so that none is taken of one
    that is too long.
    """
    lattice = lattice_of(pair, digits)
    if len(lattice.masses) * times > _LONGEST:
        return None
    negligible = arb(-digits).exp()
    power = one = _trimmed(list(lattice.masses), 0, lattice.rest, negligible)
    for bit in format(times, "b")[1:]:
        if power.polynomial.length() > most:
            return None
        power = power.times(power, negligible)
        if bit == "1":
            power = power.times(one, negligible)
    if power.polynomial.length() > most:
        return None
    first = lattice.first * times + 2 * power.first
    return [
        _Knot(lattice.unit * (first + 2 * k), mass, 0)
        for k, mass in enumerate(power.polynomial.coeffs())
        if not mass.is_zero()
    ], power.missing


def _laplace_knots(pair: LaplaceShift, times: int) -> list[_Knot]:
    """Return the knots of so many Laplace shifts: sums of ±e, by how many are plus."""
    e = ball_of(pair.epsilon)
    fall, shrunk = (-e).exp(), [arb(0.5) ** times]
    for _ in range(times):
        shrunk.append(shrunk[-1] * fall)
    return [
        _Knot((2 * j - times) * e, comb(times, j) * shrunk[times - j], j) for j in range(times + 1)
    ]


@lru_cache(maxsize=1024)
def _piece_of(shifts: int, rank: int, bits: int) -> tuple[arb, arb, arb_poly]:
    """Return A(1), A(-1) and N! times the polynomial in h of a knot of this rank, at `bits` of
    precision.
    """
    a = fmpz_poly([1, 1]) ** rank * fmpz_poly([1, -1]) ** (shifts - rank)
    # A(1) and A(-1): a factor of them is zero but where all signs are alike
    plus, minus = (fmpz(2) ** shifts * (rank == alike) for alike in (shifts, 0))
    evens, arrangements = _of_shifts(shifts)
    inner = a * evens  # sums of A_k over k <= i of one parity
    halves = ((plus + minus) // 2, (plus - minus) // 2)
    terms = [(inner[i] - halves[i % 2]) * many for i, many in enumerate(arrangements)]
    with precision(bits):
        return arb(plus), arb(minus), arb_poly(fmpz_poly([0, *terms]))


@cache
def _of_shifts(shifts: int) -> tuple[fmpz_poly, list[fmpz]]:
    """Return 1 + w² + w⁴ and so on, up to N terms; and N!/1!, N!/2!, up to N!/N!."""
    found, many = [], fmpz(1)
    for i in range(shifts, 0, -1):
        found.append(many)
        many *= i
    return fmpz_poly([1, 0] * shifts), found[::-1]


@cache
def _factorial(whole: int) -> arb:
    """Return it, exactly."""
    return arb(fmpz(factorial(whole)))
