"""Privacy-loss distributions on a grid, composed in exact integers.

A distribution is a list of masses, whole multiples of 2^-bits, on the losses (start + k) · step +
offset, and a mass at infinity. Composition is the product of polynomials with these coefficients,
computed exactly; only then are coefficients rounded back to `bits`: up if the distribution is to
stay above the truth (pessimistic), down if below (optimistic). So no rounding can turn the bound
around, at any δ.

*Pessimistic* (connect the dots: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, Theorem 3): the
masses whose profile is linear in e^x between grid points and exact on them. The profile is convex
in e^x, so this one lies above it.

*Optimistic*: merge all outcomes with losses in one cell, which is post-processing and so lies
below, then lower each cell's loss log(P/Q) to the grid. The merged loss differs from the middle of
its cell in the second order of the step only; the offset takes up this difference, so that almost
no cell falls by a whole step.

*Atoms* of the loss would fall far in either way, unless they lie on the grid: so the step divides
the distance between atoms of the pair that is composed most often, and every pair has an offset
that puts one of its atoms on the grid.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, expm1, floor, inf, log, log1p, log2, remainder

from flint import arb, fmpz, fmpz_poly

from ..enclosure import Enclosure, ball_of, precision
from .dominating import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Sampled,
)
from .profiles import delta_of, tails_of
from .revealed import revealed
from .saddle import Counts, epsilon_by_moments

__all__ = [
    "LossDistribution",
    "Rounding",
    "compose",
    "delta_by_pld",
    "discretise",
    "epsilon_by_pld",
]

_PRECISION_MARGIN = 64
_LONGEST_INTEGER = 1 << 20
"""Bits of a mass beyond which something overflowed."""


class Rounding(Enum):
    """On which side of the truth a distribution stays."""

    PESSIMISTIC = "pessimistic"
    OPTIMISTIC = "optimistic"


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """Masses / 2^bits on the losses (start + k) step + offset; `infinite` / 2^bits at infinity."""

    masses: fmpz_poly
    start: int
    step: float
    offset: Fraction
    infinite: int
    bits: int
    rounding: Rounding

    def compose(self, other: "LossDistribution", negligible: int) -> "LossDistribution":
        """Return the distribution of the sum of both losses, tails of `negligible` mass cut off."""
        up = self.rounding is Rounding.PESSIMISTIC
        product = self.masses * other.masses
        whole = 1 << self.bits
        infinite = self.infinite * (int(other.masses(1)) + other.infinite)
        infinite += int(self.masses(1)) * other.infinite
        masses = _rescaled(product, self.bits, up)
        composed = LossDistribution(
            masses,
            self.start + other.start,
            self.step,
            self.offset + other.offset,
            -(-infinite // whole) if up else infinite // whole,
            self.bits,
            self.rounding,
        )
        return composed.trimmed(negligible)

    def trimmed(self, negligible: int) -> "LossDistribution":
        """Return the distribution with both tails moved up, or dropped if it is optimistic."""
        up = self.rounding is Rounding.PESSIMISTIC
        coefficients = self.masses.coeffs()
        high = len(coefficients)
        lost_above = fmpz(0)
        while high > 1 and lost_above + coefficients[high - 1] <= negligible:
            high -= 1
            lost_above += coefficients[high]
        low, lost_below = 0, fmpz(0)
        while low < high - 1 and lost_below + coefficients[low] <= negligible:
            lost_below += coefficients[low]
            low += 1
        masses = self.masses.truncate(high).right_shift(low)
        infinite = self.infinite
        if up:
            masses += fmpz_poly([lost_below])
            infinite += int(lost_above)
        else:
            # falling to the highest loss kept is lower still
            masses += fmpz_poly([lost_above]).left_shift(high - 1 - low)
        return LossDistribution(
            masses, self.start + low, self.step, self.offset, infinite, self.bits, self.rounding
        )

    def power(self, times: int, negligible: int) -> "LossDistribution":
        """Return the distribution of `times` independent copies, by repeated squaring."""
        result = self
        for bit in format(times, "b")[1:]:
            result = result.compose(result, negligible)
            if bit == "1":
                result = result.compose(self, negligible)
        return result

    def epsilon(self, delta: arb) -> arb:
        """Return a ball around the ε at which the profile of this distribution meets δ (>= 0)."""
        whole, step = arb(1 << self.bits), arb(self.step)
        coefficients = self.masses.coeffs()
        first = step * self.start + ball_of(self.offset)
        # at ε below loss k: δ = infinite + S_k - e^ε R_k, sums over the losses from k on
        tail, weighted = arb(self.infinite) / whole, arb(0)
        shrink, factor = (-step).exp(), (-(first + step * (len(coefficients) - 1))).exp()
        grow = 1 / shrink
        if tail >= delta:
            return arb.pos_inf()
        for k in range(len(coefficients) - 1, -1, -1):
            mass = arb(coefficients[k]) / whole
            tail += mass
            weighted += mass * factor
            factor *= grow
            lower = first + step * (k - 1)
            if k == 0 or tail - lower.exp() * weighted > delta or lower <= -step:
                if not tail > delta:
                    return arb(0)
                return ((tail - delta) / weighted).log().max(arb(0))
        return arb(0)

    def delta(self, epsilon: arb) -> arb:
        """Return a ball around the profile of this distribution at ε >= 0."""
        whole, step = arb(1 << self.bits), arb(self.step)
        coefficients = self.masses.coeffs()
        last = step * (self.start + len(coefficients) - 1) + ball_of(self.offset)
        total = arb(self.infinite)
        for k, mass in enumerate(reversed(coefficients)):
            share = -(epsilon - last + step * k).expm1()
            if share <= 0:
                break
            total += mass * share.max(arb(0))
        return total / whole


def _rescaled(product: fmpz_poly, bits: int, up: bool) -> fmpz_poly:
    quotient = product // fmpz(1 << bits)
    if not up:
        return quotient
    return quotient + fmpz_poly([1] * (product.degree() + 1))


@dataclass(frozen=True, slots=True)
class _Grid:
    """The losses k · step + offset, low <= k <= high, with masses of 2^-bits."""

    step: float
    offset: Fraction
    low: int
    high: int
    bits: int

    def losses(self, shift: float = 0.0) -> list[arb]:
        """Return the losses, moved by so many steps."""
        step, offset = arb(self.step), ball_of(self.offset)
        return [(arb(k) + shift) * step + offset for k in range(self.low, self.high + 1)]


def discretise(
    pair: DominatingPair,
    *,
    step: float,
    bits: int,
    rounding: Rounding,
    negligible: float,
    widest: int,
) -> LossDistribution:
    """Return the pair's loss distribution on a grid of this step.

    Tails of `negligible` mass are cut off, and what lies below -widest · step.
    """
    with precision(bits + _PRECISION_MARGIN):
        # losses so low that no other can make up for them may all be moved to one point
        low = -_reach(lambda k: 1 - tails_of(pair, arb(-k * step))[0], negligible, most=widest)
        high = _reach(lambda k: tails_of(pair, arb(k * step))[0], negligible)
        low, high = min(low, high - 1), max(high, low + 1)
        offset = Fraction(remainder(_atoms(pair)[0], step))
        make = _dots if rounding is Rounding.PESSIMISTIC else _cells
        return make(pair, _Grid(step, offset, low, high, bits))


def _atoms(pair: DominatingPair) -> tuple[float, float]:
    """Return about where the loss has an atom, and the distance between atoms (zero if it is one).

    Wherever the grid lies, its masses bound the truth; so doubles are good enough.
    """
    match pair:
        case LaplaceShift():
            return float(pair.epsilon), 2 * float(pair.epsilon)
        case DiscreteLaplaceShift():
            return float(pair.rate * pair.shift), 2 * float(pair.rate)
        case DiscreteGaussianShift():
            return float(1 / (2 * pair.sigma_squared)), float(1 / pair.sigma_squared)
        case RandomisedAnswers():
            gain = abs(log(pair.truth / pair.other))
            return gain, gain if pair.categories > 2 else 2 * gain
        case Sampled(base=LaplaceShift() as base):
            e, q = float(base.epsilon), float(pair.rate)
            top, bottom = log1p(q * expm1(e)) if e < 700 else e + log(q), log1p(q * expm1(-e))
            if pair.order is Order.GLUED:
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


def _dots(pair: DominatingPair, grid: _Grid) -> LossDistribution:
    losses = grid.losses()
    deltas = [delta_of(pair, loss) for loss in losses]
    points = [loss.exp() for loss in losses]
    # slopes of the chords: Q-masses beyond each point
    beyond = [(1 - deltas[0]) / points[0]]
    beyond += [
        (d0 - d1) / (x1 - x0)
        for (d0, d1), (x0, x1) in zip(pairwise(deltas), pairwise(points), strict=True)
    ]
    beyond.append(arb(0))
    whole = arb(1 << grid.bits)
    masses = [
        max(0, _integer_up(x * (b0 - b1) * whole))
        for x, (b0, b1) in zip(points, pairwise(beyond), strict=True)
    ]
    infinite = max(0, _integer_up(deltas[-1] * whole))
    return _distribution(grid, masses, grid.low, grid.offset, infinite, Rounding.PESSIMISTIC)


def _cells(pair: DominatingPair, grid: _Grid) -> LossDistribution:
    edges = [*(tails_of(pair, loss) for loss in grid.losses(-0.5)), (arb(0), arb(0))]
    cells: list[tuple[int, int, arb]] = []
    whole, offset = arb(1 << grid.bits), ball_of(grid.offset)
    for k, ((p0, q0), (p1, q1)) in enumerate(pairwise(edges), start=grid.low):
        p, q = p0 - p1, q0 - q1
        mass = _integer_down(p * whole)
        if mass > 0:
            # Q may be zero in a cell: then its loss is infinite, and any finite one is below
            loss = (p.lower() / q.upper()).log() - offset if q.upper() > 0 else k * arb(grid.step)
            cells.append((k, mass, loss / grid.step))
    shift = _least_fall(cells, (1 << grid.bits) >> 30)
    placed: dict[int, int] = {}
    for k, mass, loss in cells:
        place = min(k, _integer_down(loss + shift))
        placed[place] = placed.get(place, 0) + mass
    start, stop = min(placed), max(placed)
    masses = [placed.get(k, 0) for k in range(start, stop + 1)]
    offset_down = grid.offset - Fraction(shift) * Fraction(grid.step)
    return _distribution(grid, masses, start, offset_down, 0, Rounding.OPTIMISTIC)


def _least_fall(cells: list[tuple[int, int, arb]], heavy: int) -> float:
    """Return the shift, in steps, by which losses fall least in the mean.

    All fall by the shift, and those by one step more that lie further than that below their cell.
    """
    gaps = sorted((float(k - loss), mass) for k, mass, loss in cells if mass > heavy)
    beyond = sum(mass for _, mass in gaps)
    total, best, least = beyond, 0.0, float(beyond)
    for gap, mass in gaps:
        beyond -= mass
        shift = min(max(gap, 0.0) + 2.0**-40, 1.0)
        if shift * total + beyond < least:
            best, least = shift, shift * total + beyond
    return best


def _distribution(
    grid: _Grid, masses: list[int], start: int, offset: Fraction, infinite: int, rounding: Rounding
) -> LossDistribution:
    return LossDistribution(
        fmpz_poly(masses), start, grid.step, offset, infinite, grid.bits, rounding
    )


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


def compose(counts: Counts, *, delta: float, cells: int, rounding: Rounding) -> LossDistribution:
    """Return the composed distribution on a grid of about `cells` points, fit for ε(δ).

    Tails far below δ are cut off at every product, always to the side of `rounding`.
    """
    total = sum(counts.values())
    bits = ceil(-log2(delta)) + ceil(log2(cells)) + 2 * ceil(log2(total + 1)) + 40
    step = _grid_step(counts, delta, cells)
    scale = delta * 2.0**-32
    negligible = int(Fraction(scale) * (1 << bits) / (4 * len(counts) + 8))
    parts = [
        discretise(
            pair, step=step, bits=bits, rounding=rounding, negligible=scale / (4 * n), widest=cells
        ).power(n, negligible // (2 * n.bit_length()))
        for pair, n in counts.items()
    ]
    return reduce(lambda a, b: a.compose(b, negligible), parts)


def _grid_step(counts: Counts, delta: float, cells: int) -> float:
    """Return a step such that the composed loss spans the cells, but negligible mass.

    It divides the distance of atoms of the pair composed most often, if it can, or is a power of 2.
    """
    reach = max(epsilon_by_moments(revealed(counts), log(delta) - 24)[0], 1e-12)
    step = 2.0 ** ceil(log2(2 * reach / cells))
    distances = [(n, _atoms(pair)[1]) for pair, n in counts.items()]
    distance = max(((n, far) for n, far in distances if far >= step), default=(0, 0.0))[1]
    return distance / floor(distance / step) if distance else step


def epsilon_by_pld(counts: Counts, delta: float, *, cells: int = 1 << 14) -> Enclosure:
    """Return an enclosure of ε(δ): pessimistic above, optimistic below, on a grid of `cells`."""
    ends = []
    for rounding in (Rounding.OPTIMISTIC, Rounding.PESSIMISTIC):
        composed = compose(counts, delta=delta, cells=cells, rounding=rounding)
        with precision(composed.bits + _PRECISION_MARGIN):
            ends.append(composed.epsilon(ball_of(delta)))
    with precision(_PRECISION_MARGIN):
        floor, ceiling = ends[0].lower(), ends[1].upper()
        return Enclosure(floor.min(ceiling).lower(), ceiling if ceiling < inf else arb.pos_inf())


def delta_by_pld(
    counts: Counts, epsilon: float, *, about: float, cells: int = 1 << 14
) -> Enclosure:
    """Return an enclosure of δ(ε) as `epsilon_by_pld`; `about` is the order of magnitude of δ."""
    ends = []
    for rounding in (Rounding.OPTIMISTIC, Rounding.PESSIMISTIC):
        composed = compose(counts, delta=about, cells=cells, rounding=rounding)
        with precision(composed.bits + _PRECISION_MARGIN):
            ends.append(composed.delta(arb(epsilon)))
    with precision(_PRECISION_MARGIN):
        floor, ceiling = ends[0].lower().max(arb(0)), ends[1].upper().min(arb(1))
        return Enclosure(floor.min(ceiling).lower(), ceiling.upper())
