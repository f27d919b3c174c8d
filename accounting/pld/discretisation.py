"""Privacy losses of one pair on a lattice, above or below the truth, in whole multiples of 2^-bits.

The lattice is cut into cells between some of its points: every one near zero, ever fewer beyond.
Each cell holds a mass p under P and q under Q, whose loss lies between those of its ends.

*Pessimistic* (connect the dots: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, Theorem 3): the
masses whose profile is linear in e^x between the points and exact on them. The profile is convex
in e^x, so this one lies above it. It is as if both masses of a cell were shared between its ends.

*Optimistic*: all outcomes in a cell are told apart no more, and cells are handed out to the points:
the share s_k of the k-th, [x_k, x_{k+1}], to its left end, the rest to the right one. This is
post-processing. The loss of what the point x_k is handed is at least x_k if

    s_k (p_k - e^{x_k} q_k) >= (1 - s_{k-1}) (e^{x_k} q_{k-1} - p_{k-1}),                        (*)

and then it may be lowered to x_k. Where (*) is an equality, and that is nearly everywhere, nothing
is lowered: the mean of e^-L is kept as above, and the two distributions differ in the second order
of the step only.

*Atoms* of the loss would be smeared over two points, unless they lie on one: so the step divides
the distance between atoms of the pair that is composed most often, and every pair has an offset
that puts one of its atoms on the lattice, or a hair above if the distribution is to stay below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from math import expm1, log, log1p, remainder

from flint import arb, fmpz_poly

from ..numbers.enclosure import ball_of, precision
from ..numbers.roots import brent
from .pairs import (
    CopiesDrawn,
    DiscreteGaussianShift,
    DiscreteGaussianVectors,
    DiscreteLaplaceShift,
    DominatingPair,
    DrawnShifts,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    ReplacedInSample,
    Sampled,
)
from .profiles import tails_at, tails_of

PRECISION_MARGIN = 64
"""Bits of the balls beyond those of the masses: second differences of a profile cancel."""

_NORMAL_DIGITS = 384
"""Bits of the balls of masses of normal noise, at most."""

_LONGEST_INTEGER = 1 << 20
"""Bits of a mass beyond which something overflowed."""

_WINDOW = 48
"""Points on either side of the median loss by which the lattice is placed."""

_LOW_SHARES = (2.0**-4, 2.0**-12, 2.0**-24)
"""Probabilities of a loss above that point to which a lattice may be moved: low quantiles."""

_HAIR = 2.0**-30
"""Steps between an optimistic lattice and the atom above it: more than what doubles blur."""


class MassRounding(Enum):
    """On which side of the truth a distribution stays."""

    PESSIMISTIC = "pessimistic"
    OPTIMISTIC = "optimistic"


@dataclass(frozen=True, slots=True)
class Points:
    """The losses place · step + offset."""

    step: float
    offset: Fraction
    places: tuple[int, ...]

    def losses(self) -> list[arb]:
        """Return the losses in rising order."""
        step, offset = arb(self.step), ball_of(self.offset)
        return [k * step + offset for k in self.places]


@dataclass(frozen=True, slots=True)
class Masses:
    """Masses / 2^bits under P at the points from `start` on, and at infinity."""

    masses: fmpz_poly
    start: int
    infinite: int
    offset: Fraction


def discretise(
    pair: DominatingPair,
    *,
    step: float,
    bits: int,
    rounding: MassRounding,
    negligible: float,
    widest: int,
    dense: int,
) -> Masses:
    """Return the pair's loss distribution on a lattice of this step.

    Tails of `negligible` mass are cut off, and what lies below -widest · step. Of the points beyond
    `dense` steps from zero fewer and fewer are used, if the pair has a density.
    """
    with precision(bits + PRECISION_MARGIN):
        # losses so low that no other can make up for them may all be moved to one point
        low = -_reach(lambda k: 1 - tails_of(pair, arb(-k * step))[0], negligible, most=widest)
        high = _reach(lambda k: tails_of(pair, arb(k * step))[0], negligible)
    # an offset may be a whole step
    low, high = low - 1, max(high, low + 1)
    with precision(min(bits + PRECISION_MARGIN, _most_digits(pair))):
        atom, distance = atoms_of(pair)
        below, hair = rounding is MassRounding.OPTIMISTIC, Fraction(step * _HAIR)
        smooth = isinstance(pair, DrawnShifts | ReplacedInSample) or (
            isinstance(pair, Sampled) and not distance and pair.order is not Order.SYMMETRISED
        )
        offset = Fraction(remainder(atom, step))
        if below:
            offset = Fraction(_kept_offset(pair, step)) if smooth else offset - hair
        places = tuple(_places(low, high, high - low if distance else dense))
        points = Points(step, offset, places)
        handed = (_handed_out if below else _dots)(pair, points)
        whole = arb(1 << bits)
        rounded = _integer_down if below else _integer_up
        masses = [0] * (places[-1] - low + 1)
        for place, mass in zip(places, handed, strict=False):
            masses[place - low] = max(0, rounded(mass * whole))
        infinite = 0 if below else max(0, rounded(handed[-1] * whole))
        return Masses(fmpz_poly(masses), low, infinite, offset)


def _most_digits(pair: DominatingPair) -> int:
    """Return the bits of balls that are enough for the masses of a pair, whatever those of δ.

    Tails of normal noise have errors relative to themselves, and a mass that errs by so small a
    share of the tail multiplies δ by one and as little. Lattices are cut off at the last bit.
    """
    base = pair.base if isinstance(pair, Sampled) else pair
    normal = isinstance(base, GaussianShift | DrawnShifts | ReplacedInSample | CopiesDrawn)
    return _NORMAL_DIGITS if normal else _LONGEST_INTEGER


def atoms_of(pair: DominatingPair) -> tuple[float, float]:
    """Return about where the loss has an atom, and the distance between atoms (zero if it is one).

    Wherever the lattice lies, its masses bound the truth; so doubles are good enough.
    """
    match pair:
        case LaplaceShift():
            return float(pair.epsilon), 2 * float(pair.epsilon)
        case DiscreteLaplaceShift():
            return float(pair.rate * pair.shift), 2 * float(pair.rate)
        case DiscreteGaussianShift():
            return float(1 / (2 * pair.sigma_squared)), float(1 / pair.sigma_squared)
        case DiscreteGaussianVectors():
            return float(pair.squared / (2 * pair.sigma_squared)), float(1 / pair.sigma_squared)
        case RandomisedAnswers():
            gain = abs(log(pair.truth / pair.other))
            return gain, gain if pair.categories > 2 else 2 * gain
        case Sampled(base=LaplaceShift() as base):
            e, q = float(base.epsilon), float(pair.rate)
            top, bottom = log1p(q * expm1(e)) if e < 700 else e + log(q), log1p(q * expm1(-e))
            if pair.order is Order.SYMMETRISED:
                return 0.0, top
            return top if pair.order is Order.MIXTURE_FIRST else -top, top - bottom
        case _:
            return 0.0, 0.0


def _reach(tail: Callable[[int], arb], negligible: float, most: int = 1 << 25) -> int:
    """Return a k <= most with tail(k) <= negligible, within a factor of 1.25; `most` if none is."""
    k = 1
    while not tail(k) <= negligible:
        if k >= most:
            return most
        k = min(max(k + 1, k * 5 // 4), most)
        if k > 1 << 24:
            raise ArithmeticError("Expected a step that the loss spans in at most 2^24 points.")
    return k


def _places(low: int, high: int, dense: int) -> list[int]:
    """Return whole numbers from low to high: all up to `dense`, beyond 1/dense apart relatively."""

    def beyond(end: int) -> list[int]:
        found, place = [], dense
        while place < end:
            place += max(1, 1 << (place // dense).bit_length() - 1)
            found.append(min(place, end))
        return found

    below = [-k for k in reversed(beyond(-low))]
    return [*below, *range(max(low, -dense), min(high, dense) + 1), *beyond(high)]


def _dots(pair: DominatingPair, points: Points) -> list[arb]:
    """Return the pessimistic masses at the points and, last, at infinity."""
    losses = points.losses()
    grown = [loss.exp() for loss in losses]
    deltas = [p - x * q for x, (p, q) in zip(grown, map(tails_at(pair), losses), strict=True)]
    # slopes of the chords: Q-masses beyond each point
    beyond = [(1 - deltas[0]) / grown[0]]
    beyond += [
        (d0 - d1) / (x1 - x0)
        for (d0, d1), (x0, x1) in zip(pairwise(deltas), pairwise(grown), strict=True)
    ]
    beyond.append(arb(0))
    masses = [x * (b0 - b1) for x, (b0, b1) in zip(grown, pairwise(beyond), strict=True)]
    return [*masses, deltas[-1]]


@dataclass(frozen=True, slots=True)
class _Cells:
    """Masses (p, q) of the cells between points, the last one above all, and the two sides of (*).

    Of each cell the excess p - e^x q over its left end, and what is missing to its right end.
    """

    masses: list[tuple[arb, arb]]
    excess: list[arb]
    missing: list[arb]

    @classmethod
    def of(cls, pair: DominatingPair, points: Points) -> "_Cells":
        losses = points.losses()
        grown = [loss.exp() for loss in losses]
        tails = [*map(tails_at(pair), losses), (arb(0), arb(0))]
        cells = [(p0 - p1, q0 - q1) for (p0, q0), (p1, q1) in pairwise(tails)]
        excess = [(p - x * q).lower() for (p, q), x in zip(cells, grown, strict=True)]
        missing = [(x * q - p).upper() for (p, q), x in zip(cells, grown[1:], strict=False)]
        return cls(cells, excess, missing)

    def from_below(self, middle: int) -> list[arb]:
        """Return shares of the cells below a point, from the lowest: (*) holds below that point."""
        shares = [arb(0)] * middle
        for k in range(1, middle):
            owed = (1 - shares[k - 1]) * self.missing[k - 1].max(arb(0))
            enough = (owed / self.excess[k]).upper() if self.excess[k] > 0 else arb(2)
            shares[k] = enough if enough <= 1 else arb(1)
            if not enough <= 1:
                shares[k - 1] = shares[k - 1].max(self.least_below(k, arb(1)))
        return shares

    def from_above(self, middle: int, highest: arb) -> list[arb]:
        """Return shares of the cells above a point, from the highest: (*) holds above it."""
        shares = [highest]
        for k in range(len(self.missing), middle, -1):
            shares.append(self.least_below(k, shares[-1]))
        return shares[::-1]

    def least_below(self, k: int, share: arb) -> arb:
        """Return the least share of the cell below point k by (*), given that of the one above."""
        if not self.missing[k - 1] > 0:
            return arb(0)
        return (1 - share * self.excess[k].max(arb(0)) / self.missing[k - 1]).upper().max(arb(0))


def _handed_out(pair: DominatingPair, points: Points) -> list[arb]:
    """Return the optimistic masses at the points; what lies below all of them is left out.

    A deviation from smooth shares alternates, and where masses fall it grows relatively to them. So
    shares are found from both ends, up to where the mass is largest.
    """
    cells = _Cells.of(pair, points)
    middle = max(1, max(range(len(cells.missing)), key=lambda k: cells.masses[k][0]))
    below = cells.from_below(middle)
    # all above the highest point is lowered to it
    above = cells.from_above(middle, arb(1))
    below[-1] = below[-1].max(cells.least_below(middle, above[0]))
    shares = [arb(1), *below, *above]
    masses = [(arb(0), arb(0)), *cells.masses]
    return [
        s1 * p1 + (1 - s0) * p0
        for ((p0, _), s0), ((p1, _), s1) in pairwise(zip(masses, shares, strict=True))
    ]


def _kept_offset(pair: DominatingPair, step: float) -> float:
    """Return an offset with which an optimistic lattice near the median keeps most of the mean.

    A loss that begins abruptly, within a step or so, would else be lowered by a part of a step: all
    steps of a composition add up. Tried are no offset, the one with which the shares from below and
    from above meet, and points a hair below low quantiles of the loss: where nearly all of it lies
    within a step, as of a record that is hardly ever drawn, it stays in one place.
    """
    first = round(_quantile(pair, 0.5, step / 4) / step) - _WINDOW
    places = tuple(range(first, first + 2 * _WINDOW))

    def kept(offset: float) -> float:
        points = Points(step, Fraction(offset), places)
        masses = _handed_out(pair, points)
        return float(sum((m * x for m, x in zip(masses, points.losses(), strict=True)), arb(0)))

    low = [_quantile(pair, 1 - share, step * _HAIR) for share in _LOW_SHARES]
    tried = [0.0, _balanced_offset(pair, step, places), *(remainder(x, step) for x in low)]
    return max(tried, key=kept)


def _quantile(pair: DominatingPair, above: float, width: float) -> float:
    """Return a loss, up to `width` below the one that is exceeded with probability `above`."""
    low, high = -1.0, 1.0
    while tails_of(pair, arb(low))[0] < above:
        low *= 2
    while not tails_of(pair, arb(high))[0] < above:
        high *= 2
    while high - low > width:
        centre = (low + high) / 2
        if not low < centre < high:
            break
        low, high = (low, centre) if tails_of(pair, arb(centre))[0] < above else (centre, high)
    return low


def _balanced_offset(pair: DominatingPair, step: float, places: tuple[int, ...]) -> float:
    """Return an offset with which the shares from below and from above meet, or none.

    As the points move by one step, what is left in the middle changes its sign.
    """

    def left_over(offset: float) -> float:
        cells = _Cells.of(pair, Points(step, Fraction(offset), places))
        below = cells.from_below(_WINDOW)[-1]
        above = cells.from_above(_WINDOW, arb(0.5))[0]
        return float(above * cells.excess[_WINDOW] - (1 - below) * cells.missing[_WINDOW - 1])

    ends = left_over(0.0), left_over(step)
    if not ends[0] * ends[1] < 0:
        return 0.0
    return brent(left_over, 0.0, step, xtol=step * 2.0**-24, maxiter=60)


def _integer_up(value: arb) -> int:
    return _whole(value.upper().ceil())


def _integer_down(value: arb) -> int:
    return _whole(value.lower().floor())


def _whole(value: arb) -> int:
    """Return the whole number that an exact ball is."""
    mantissa, exponent = value.man_exp()
    if exponent > _LONGEST_INTEGER:
        raise ArithmeticError("Expected a mass of fewer bits.")
    return int(mantissa) << int(exponent) if exponent >= 0 else int(mantissa) >> -int(exponent)
