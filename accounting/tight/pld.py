"""Privacy-loss distributions on a grid, composed in exact integers.

A distribution is a list of masses, whole multiples of 2^-bits, on the losses (start + k) · step -
shift, and a mass at infinity. Composition is the product of polynomials with these coefficients,
computed exactly; only then are coefficients rounded back to `bits`: up if the distribution is to
stay above the truth (pessimistic), down if below (optimistic). So no rounding can turn the bound
around, at any δ.

*Pessimistic* (connect the dots: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, Theorem 3): the
masses whose profile is linear in e^x between grid points and exact on them. The profile is convex
in e^x, so this one lies above it.

*Optimistic*: merge all outcomes with losses in one cell, which is post-processing and so lies
below, then lower each cell's loss log(P/Q) to the grid. The merged loss differs from the middle of
its cell in the second order of the step only; a common `shift` takes up this difference, so that
almost no cell falls by a whole step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, inf, log, log2

from flint import arb, fmpz, fmpz_poly

from ..enclosure import Enclosure, ball_of, precision
from .contour import Counts, chernoff_delta
from .dominating import DominatingPair
from .profiles import delta_of, tails_of

__all__ = ["LossDistribution", "Rounding", "compose", "discretise", "epsilon_by_pld"]

_PRECISION_MARGIN = 64


class Rounding(Enum):
    """On which side of the truth a distribution stays."""

    PESSIMISTIC = "pessimistic"
    OPTIMISTIC = "optimistic"


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """Masses / 2^bits on the losses (start + k) step - shift; `infinite` / 2^bits at infinity."""

    masses: fmpz_poly
    start: int
    step: float
    shift: float
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
            self.shift + other.shift,
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
            masses, self.start + low, self.step, self.shift, infinite, self.bits, self.rounding
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
        first = step * self.start - arb(self.shift)
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


def _rescaled(product: fmpz_poly, bits: int, up: bool) -> fmpz_poly:
    quotient = product // fmpz(1 << bits)
    if not up:
        return quotient
    return quotient + fmpz_poly([1] * (product.degree() + 1))


def discretise(
    pair: DominatingPair,
    *,
    step: float,
    bits: int,
    rounding: Rounding,
    negligible: float,
    widest: int,
) -> LossDistribution:
    """Return the pair's loss distribution on multiples of `step`.

    Tails of `negligible` mass are cut off, and what lies below -widest · step.

    `step` must be a power of two, so that the grid is exact.
    """
    with precision(bits + _PRECISION_MARGIN):
        # losses so low that no other can make up for them may all be moved to one point
        low = -_reach(lambda k: 1 - tails_of(pair, arb(-k * step))[0], negligible, most=widest)
        high = _reach(lambda k: tails_of(pair, arb(k * step))[0], negligible)
        low, high = min(low, high - 1), max(high, low + 1)
        make = _dots if rounding is Rounding.PESSIMISTIC else _cells
        return make(pair, low, high, step, bits)


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


def _dots(pair: DominatingPair, low: int, high: int, step: float, bits: int) -> LossDistribution:
    deltas = [delta_of(pair, arb(k * step)) for k in range(low, high + 1)]
    points = [arb(k * step).exp() for k in range(low, high + 1)]
    # slopes of the chords: Q-masses beyond each point
    beyond = [(1 - deltas[0]) / points[0]]
    beyond += [
        (d0 - d1) / (x1 - x0)
        for (d0, d1), (x0, x1) in zip(pairwise(deltas), pairwise(points), strict=True)
    ]
    beyond.append(arb(0))
    whole = arb(1 << bits)
    masses = [
        max(0, _integer_up(x * (b0 - b1) * whole))
        for x, (b0, b1) in zip(points, pairwise(beyond), strict=True)
    ]
    infinite = max(0, _integer_up(deltas[-1] * whole))
    return LossDistribution(fmpz_poly(masses), low, step, 0.0, infinite, bits, Rounding.PESSIMISTIC)


def _cells(pair: DominatingPair, low: int, high: int, step: float, bits: int) -> LossDistribution:
    edges = [tails_of(pair, arb((k - 0.5) * step)) for k in range(low, high + 1)]
    edges.append((arb(0), arb(0)))
    cells: list[tuple[int, int, arb]] = []
    whole = arb(1 << bits)
    for k, ((p0, q0), (p1, q1)) in enumerate(pairwise(edges)):
        p, q = p0 - p1, q0 - q1
        mass = _integer_down(p * whole)
        if mass > 0:
            # Q may be zero in a cell: then its loss is infinite, and any finite one is below
            loss = (p.lower() / q.upper()).log() / step if q.upper() > 0 else arb(low + k)
            cells.append((low + k, mass, loss))
    heavy = (1 << bits) >> 30
    shift = max((float(k - loss) for k, mass, loss in cells if mass > heavy), default=0.0)
    shift = min(max(shift, 0.0) + 2.0**-40, 1.0)
    placed: dict[int, int] = {}
    for k, mass, loss in cells:
        place = min(k, _integer_down(loss + shift))
        placed[place] = placed.get(place, 0) + mass
    start, stop = min(placed), max(placed)
    masses = [placed.get(k, 0) for k in range(start, stop + 1)]
    return LossDistribution(
        fmpz_poly(masses), start, step, shift * step, 0, bits, Rounding.OPTIMISTIC
    )


def _integer_up(value: arb) -> int:
    return _whole(value.upper().ceil())


def _integer_down(value: arb) -> int:
    return _whole(value.lower().floor())


def _whole(value: arb) -> int:
    """Return the whole number that an exact ball is."""
    mantissa, exponent = value.man_exp()
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
    """Return a power of two such that the composed loss spans the cells, but negligible mass."""
    reach, goal = 1e-12, log(delta) - 24
    while chernoff_delta(counts, reach)[0] > goal:
        reach *= 1.5
    return 2.0 ** ceil(log2(2 * reach / cells))


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
