"""Privacy-loss distributions on a lattice, composed in exact integers.

A distribution is a list of masses, whole multiples of 2^-bits, on the losses (start + k) · step +
offset, and a mass at infinity (`discretisation` makes those of single pairs). Composition is the
product of polynomials with these coefficients, computed exactly; only then are coefficients rounded
back to `bits`: up if the distribution is to stay above the truth (pessimistic), down if below
(optimistic). So no rounding can turn the bound around, at any δ.

The step is chosen for the ε that is asked. Losses of small sampling rates have heavy tails: a loss
that matters may be a hundred times ε, and moments tell next to nothing about it. So a coarse
lattice is composed first, ever finer, until its own tail tells how far the losses reach.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from math import ceil, floor, inf, log, log2

from flint import arb, fmpz, fmpz_poly

from ..numbers.enclosure import Enclosure, ball_of, precision
from ..numbers.work import spend
from .discretisation import PRECISION_MARGIN, MassRounding, atoms_of, discretise
from .revealed_sample import revealed
from .saddle import Counts, epsilon_by_moments

_NEGLIGIBLE = 2.0**-27
"""The mass, relative to δ, of losses that are left out."""

_COARSE = 1 << 10
"""Cells of the lattices that tell how far the losses reach."""

_MOST_LOOKS = 8
"""Each takes the reach down by a factor of a hundred or so."""

_CELLS_PER_EPSILON = 1 << 11
"""With more cells below ε, times the root of the number of steps, 1e-6 would be surpassed."""

_DEAR = 1 << 21
"""Cells times squarings from which the single steps, which cost most then, are put on fewer points:
those of the grids that are tried first stay below it.
"""

_DENSE_OF_DEAR = 1 << 12
"""Steps from zero up to which each point counts on such a lattice, at most: twice as far out points
lie a part in so many of their loss apart, which adds its square to δ.
"""

_SHORTER = 1 << 7
"""How much more mass single steps of one kind leave out there, 2^-22 of δ in all: at tiny rates
their lists are ten times as long as those of many steps, and half the bits of a number of steps
multiply by one of them.
"""


@dataclass(frozen=True, slots=True)
class LossDistribution:
    """Masses on a lattice of losses, and a mass at infinity.

    Args:
        masses: whole multiples of 2^-bits, from the lowest loss on.
        start: of the lowest loss, in steps.
        step: distance of two losses, a double that is exact.
        offset: added to every loss, exactly.
        infinite: the mass at infinity, in units of 2^-bits.
        bits: of the masses.
        rounding: whether its profile lies above the true one or below.
    """

    masses: fmpz_poly
    start: int
    step: float
    offset: Fraction
    infinite: int
    bits: int
    rounding: MassRounding

    def compose(
        self, other: "LossDistribution", negligible: int, lowest: Fraction | None = None
    ) -> "LossDistribution":
        """Return the distribution of the sum of both losses, tails of `negligible` mass cut off.

        Args:
            other: on a lattice of the same step, rounded to the same side.
            negligible: in units of 2^-bits; moved up to infinity, or dropped.
            lowest: losses below it are moved up to about there, or dropped, whatever their mass.
        """
        spend(len(self.masses) + len(other.masses) >> 8)
        up = self.rounding is MassRounding.PESSIMISTIC
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
        return composed.trimmed(negligible, lowest)

    def trimmed(self, negligible: int, lowest: Fraction | None = None) -> "LossDistribution":
        """Return the distribution with both tails moved up, or dropped if it is optimistic.

        Every loss moved up is a larger δ at every ε, and every one dropped a smaller one, here and
        after any further composition; so all of this is safe whatever `lowest` is.
        """
        up = self.rounding is MassRounding.PESSIMISTIC
        # one by one from the ends: most of a long list is never looked at
        high = self.masses.degree() + 1
        if not high:
            return self
        lost_above = fmpz(0)
        while high > 1 and (more := lost_above + self.masses[high - 1]) <= negligible:
            high, lost_above = high - 1, more
        low, lost_below = 0, fmpz(0)
        while low < high - 1 and (more := lost_below + self.masses[low]) <= negligible:
            low, lost_below = low + 1, more
        if lowest is not None:
            least = ceil((lowest - self.offset) / Fraction(self.step)) - self.start
            if low < (least := min(least, high - 1)):
                low, lost_below = least, self.masses.truncate(least)(1)
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

    def power(
        self, times: int, negligible: int, lowest: Fraction | None = None
    ) -> "LossDistribution":
        """Return the distribution of `times` independent copies, by repeated squaring."""
        result = self
        for bit in format(times, "b")[1:]:
            result = result.compose(result, negligible, lowest)
            if bit == "1":
                result = result.compose(self, negligible, lowest)
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

    def quantile(self, mass: float) -> float:
        """Return about the loss that is exceeded with this probability; infinity counts."""
        rest, k = int(Fraction(mass) * (1 << self.bits)) - self.infinite, self.masses.degree()
        while k > 0 and (rest := rest - int(self.masses[k])) >= 0:
            k -= 1
        return float((self.start + k) * self.step + float(self.offset))

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
    """Return coefficients divided by 2^bits, each rounded up or down."""
    quotient = product // fmpz(1 << bits)
    if not up:
        return quotient
    length = product.degree() + 1
    return quotient + _ones(length.bit_length()).truncate(length)


@lru_cache(maxsize=32)
def _ones(bits: int) -> fmpz_poly:
    """Return a polynomial of 2^bits coefficients that are one."""
    return fmpz_poly([1] * (1 << bits))


@dataclass(frozen=True, slots=True)
class _Lattice:
    """A lattice of losses.

    Args:
        step: distance of two points.
        cells: how many the composed loss may span.
        dense: up to where, in steps, each point counts.
        left_out: the mass that single steps leave out, in units of a quarter of `_NEGLIGIBLE` δ.
    """

    step: float
    cells: int
    dense: int
    left_out: int


def compose(
    counts: Counts, *, delta: float, cells: int, rounding: MassRounding
) -> LossDistribution:
    """Return the composed distribution on a lattice of about `cells` points, fit for ε(δ).

    Tails far below δ are cut off at every product, always to the side of `rounding`.
    """
    return _composed(counts, _fitted(counts, delta, (cells,))[0], delta, rounding)


def _fitted(counts: Counts, delta: float, sizes: Sequence[int]) -> list[_Lattice]:
    """Return the different lattices of at most about so many cells each that are fit for ε(δ)."""
    known = epsilon_by_moments(revealed(counts), log(delta) + 2 * log(_NEGLIGIBLE))[0]
    reach = about = max(known, 1e-12)
    for _ in range(_MOST_LOOKS):
        coarse = _lattice(counts, reach, reach, _COARSE)
        found = _composed(counts, coarse, delta, MassRounding.PESSIMISTIC)
        with precision(PRECISION_MARGIN):
            about = float(found.epsilon(arb(delta)).upper())
        last, reach = reach, max(found.quantile(4 * delta * _NEGLIGIBLE), coarse.step)
        if reach > last / 4:
            break
    return list(dict.fromkeys(_lattice(counts, reach, about, size) for size in sizes))


def _lattice(counts: Counts, reach: float, about: float, cells: int) -> _Lattice:
    """Return a lattice such that the composed loss spans at most `cells`, but negligible mass.

    Its step divides the distance of atoms of the pair composed most often, if it can, or is a power
    of 2.
    """
    enough = _CELLS_PER_EPSILON << sum(counts.values()).bit_length() // 2
    step = 2.0 ** ceil(log2(max(2 * reach / cells, about / enough)))
    distances = [(n, atoms_of(pair)[1]) for pair, n in counts.items()]
    distance = max(((n, far) for n, far in distances if far >= step), default=(0, 0.0))[1]
    step = distance / floor(distance / step) if distance else step
    dense = max(64, ceil(4 * about / step))
    dear = cells * max(n.bit_length() for n in counts.values()) >= _DEAR
    if dear:
        dense = min(dense, _DENSE_OF_DEAR)
    return _Lattice(step, ceil(2 * reach / step), dense, _SHORTER if dear else 1)


def _composed(
    counts: Counts, lattice: _Lattice, delta: float, rounding: MassRounding
) -> LossDistribution:
    total = sum(counts.values())
    # roundings of all cells of all steps together stay far below δ
    bits = ceil(-log2(delta)) + ceil(log2(lattice.cells)) + ceil(log2(total + 1)) + 36
    scale = delta * _NEGLIGIBLE
    negligible = int(Fraction(scale) * (1 << bits) / (4 * len(counts) + 8))
    # so low that the rest of the composition hardly ever makes up for it
    lowest = -lattice.cells * Fraction(lattice.step)
    parts = []
    for pair, n in counts.items():
        found = discretise(
            pair,
            step=lattice.step,
            bits=bits,
            rounding=rounding,
            negligible=lattice.left_out * scale / (4 * n),
            widest=lattice.cells,
            dense=lattice.dense,
        )
        if found.masses(1) + found.infinite > 2 << bits:
            # balls of points e^x so far apart hide the masses; their powers would fill the memory
            raise ArithmeticError(f"Expected a step={lattice.step} whose masses add up to one.")
        one = LossDistribution(
            found.masses, found.start, lattice.step, found.offset, found.infinite, bits, rounding
        )
        parts.append(one.power(n, negligible // (2 * n.bit_length()), lowest))
    return reduce(lambda a, b: a.compose(b, negligible, lowest), parts)


def epsilon_by_pld(counts: Counts, delta: float, *, cells: int = 1 << 14) -> Enclosure:
    """Return an enclosure of ε(δ): pessimistic above, optimistic below, on about `cells` points."""
    return next(epsilons_by_pld(counts, delta, (cells,)))


def epsilons_by_pld(counts: Counts, delta: float, sizes: Sequence[int]) -> Iterator[Enclosure]:
    """Yield `epsilon_by_pld` of each number of cells in turn, of the same lattice once."""
    for below, above in _bounds(counts, delta, sizes):
        with precision(above.bits + PRECISION_MARGIN):
            target = ball_of(delta)
            ends = below.epsilon(target), above.epsilon(target)
        with precision(PRECISION_MARGIN):
            floor, ceiling = ends[0].lower(), ends[1].upper()
            upper = ceiling if ceiling < inf else arb.pos_inf()
            found = Enclosure(floor.min(ceiling).lower(), upper)
        yield found


def deltas_by_pld(
    counts: Counts, epsilon: float, *, about: float, sizes: Sequence[int]
) -> Iterator[Enclosure]:
    """Yield enclosures of δ(ε) as `epsilons_by_pld`; `about` is the order of magnitude of δ."""
    for below, above in _bounds(counts, about, sizes):
        with precision(above.bits + PRECISION_MARGIN):
            ends = below.delta(arb(epsilon)), above.delta(arb(epsilon))
        with precision(PRECISION_MARGIN):
            floor, ceiling = ends[0].lower().max(arb(0)), ends[1].upper().min(arb(1))
            found = Enclosure(floor.min(ceiling).lower(), ceiling.upper())
        yield found


def _bounds(
    counts: Counts, delta: float, sizes: Sequence[int]
) -> Iterator[tuple[LossDistribution, LossDistribution]]:
    """Yield the optimistic and the pessimistic distribution on each lattice."""
    for lattice in _fitted(counts, delta, sizes):
        yield (
            _composed(counts, lattice, delta, MassRounding.OPTIMISTIC),
            _composed(counts, lattice, delta, MassRounding.PESSIMISTIC),
        )
