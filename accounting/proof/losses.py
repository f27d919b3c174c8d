"""Witnesses for loss distributions: a grid to compose on, and the ε that the composition gives.

Compositions of dominating pairs on a lattice, bounded from above in whole multiples of
10^-digits: connecting the dots for one step, FLINT's products of polynomials for many, and a step
that doubles as losses spread. Whoever checks the certificate repeats this from the parameters in
`LossGrid` with arithmetic of its own; so the two must choose the same dots and double at the same
levels, but tails may be cut a little differently, for which `MARGIN` leaves room.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, comb, exp, expm1, floor, inf, log, log2, log10, nextafter, prod, sqrt

from flint import arb, arb_poly, ctx, fmpz_poly

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.events import (
    AccumulatedPoisson,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    Repeated,
)
from ...mechanisms.sensitivity import float_up
from ..numbers.enclosure import Enclosure, ball_of, precision
from ..pld.from_mechanisms import mixture_pairs, mixture_share, orders_of, pairs_of
from ..pld.pairs import (
    DiscreteGaussianShift,
    DiscreteGaussianVectors,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
)
from ..pld.profiles import tails_of
from ..renyi.amplification import grouped
from .derivation import REPLACED_IN_A_SAMPLE, SHIFTS_OF_GROUPS

MARGIN = Fraction(1, 10_000)
"""The part of δ that is left free, for tails that the checker cuts differently."""

_CUT = 1e-5
"""The part of δ that may be cut off at each level."""

_EXACT = Fraction(1, 100)
"""Both are as much smaller where losses lie on a lattice of their own, and nothing else is lost."""

_CELLS = 1 << 17
"""Points of one step's lattice, at most; the checker would take more."""
_MOST_LOSS = 384
"""The largest loss of one step that goes on a grid: balls get four more bits for each unit of it.
"""
_STEPS_PER_DEVIATION = 20
"""Points to a standard deviation of one step's loss: its variance grows by 1/(6 · 20²) of
itself.
"""
_STEPS_OF_MANY = 14
"""The same where many mechanisms are composed, each of which is put on the lattice anew."""
_DENSE = 40
"""Steps from zero up to which every point is a dot; beyond, dots lie 1/40 of their place apart."""
_DENSE_OF_MANY = 24
"""The same where many mechanisms are composed."""
_MANY = 10
"""Mechanisms from which these coarser grids are suggested."""
_CHEAP = 6000
"""Points of a lattice that take no time to speak of."""
_FINEST = 1 / 32
"""How much finer than suggested a short lattice may become."""
_DEAR = 85_000
"""Points, at most, that a composed lattice is suggested to have."""
_MOST_KNOTS = 1 << 25
"""Units of work, of the 2^25 that a checker does for any document, half of which are not needed."""
_FEW_DRAWN = 8
"""Shifts of a mixture up to which lattices are as fine as those of one shift."""
_MOST_DRAWN = 64
"""Records of a group times accumulated batches that the checker takes."""
_MOST_SCALES = 64
"""Different Laplace scales of a closed form that the checker takes."""


class TooFine(ArithmeticError):
    """The losses of one step need more points than are worth composing."""


@dataclass(frozen=True, slots=True)
class LossGrid:
    """How to compose: the parameters of a `privacy-loss` node.

    Losses are multiples of `step`, which doubles `doublings[k]` times before level k; dots lie a
    step apart up to `dense` steps from zero. Masses are multiples of 10^-digits, of which `cut`
    may be cut off at each level.

    Args:
        step: the distance of two losses at level 0, exact.
        doublings: how often the step doubles before each level, from level 0 on.
        dense: in steps.
        digits: decimal digits of masses.
        cut: in units of 10^-digits.
    """

    step: Fraction
    doublings: tuple[int, ...]
    dense: int
    digits: int
    cut: int

    def power(self, level: int) -> int:
        """Return how often the step has doubled at a level."""
        return sum(self.doublings[: level + 1])


Parts = tuple[tuple[Mechanism, int, int], ...]
"""Mechanisms, how often each occurs, and the level at which it enters."""


@dataclass(frozen=True, slots=True)
class DrawnShifts:
    """The Gaussian shift of as many records of a group as a Poisson sample draws.

    Or of one record, as often as it is in accumulated samples.

    (Σ_j C(n, j) q^j (1 - q)^(n - j) N(jμ, 1), N(0, 1)), or the same in the other order. Source:
    Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (arXiv 2310.15526).

    Args:
        mu_squared: μ² of one record's shift.
        rate: q.
        size: n, records of the group.
        order: which data set stands first.
    """

    mu_squared: Fraction
    rate: Fraction
    size: int
    order: Order


_Pair = DominatingPair | DrawnShifts
"""What enters a composition as one step."""
_Entering = tuple[tuple[_Pair, int, int], ...]
"""Pairs, how often each occurs, and the level at which it enters."""


def _tails(pair: _Pair, x: arb) -> tuple[arb, arb]:
    """Return balls that contain P(L > x) and Q(L > x)."""
    return _drawn(pair, x) if isinstance(pair, DrawnShifts) else tails_of(pair, x)


def _drawn(pair: DrawnShifts, x: arb) -> tuple[arb, arb]:
    """Return the tails of a mixture of shifts, by one threshold on the noise.

    The likelihood ratio Σ_j w_j e^{jμy - j²μ²/2} is a polynomial in t = e^{μy} with coefficients >=
    0: it grows, so that L > x is y > y(x), at the root of that polynomial.

    Raises:
        ArithmeticError: where x cannot be told from the end of the losses' range.
    """
    n, q, mu_squared = pair.size, ball_of(pair.rate), ball_of(pair.mu_squared)
    first = pair.order is Order.MIXTURE_FIRST
    weights = [comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1)]
    shape = arb_poly([w * (-(j**2) * mu_squared / 2).exp() for j, w in enumerate(weights)])
    grown = (x if first else -x).exp()
    if not grown > weights[0]:
        return (arb(1), arb(1)) if first else (arb(0), arb(0))
    mu, root = mu_squared.sqrt(), arb(2).sqrt()
    y = _inverted(shape, grown).log() / mu
    above = [((y - j * mu) / root).erfc() / 2 for j in range(n + 1)]
    with_it = sum((w * a for w, a in zip(weights, above, strict=True)), arb(0))
    return (with_it, above[0]) if first else (1 - above[0], 1 - with_it)


def _inverted(shape: arb_poly, value: arb) -> arb:
    """Return a ball around the t > 0 at which a polynomial that is convex and grows has `value`.

    Newton's method in exact midpoints, then a radius at whose ends the polynomial lies on either
    side of `value`: so the ball holds the root whatever the iteration was worth.
    """
    slope, t = shape.derivative(), arb(1)
    while not shape(t) > value:
        t *= 2
    for _ in range(500):
        step = ((shape(t) - value) / slope(t)).mid()
        t = (t - step).mid()
        if abs(step) < t * arb(2) ** (12 - ctx.prec):
            break
    radius = t * arb(2) ** (16 - ctx.prec)
    while not (shape(t - radius) < value and shape(t + radius) > value):
        radius *= 4
        if radius > t:
            raise ArithmeticError(f"Expected {value} apart from the least value.")
    return arb(t, radius)


@dataclass(frozen=True, slots=True)
class _Losses:
    """Masses at multiples of the step from `first` on, and an infinite loss; all at most these.

    Masses are whole multiples of 10^-digits, rounded up at every step.
    """

    first: int
    masses: fmpz_poly
    lost: int

    def trimmed(self, cut: int) -> "_Losses":
        """Return the losses without tails of at most `cut`: the upper one becomes infinite, the
        lower one moves up.
        """
        masses = [int(m) for m in self.masses.coeffs()]
        low = bisect_right(_sums(masses), cut)
        high = len(masses) - bisect_right(_sums(masses[::-1]), cut)
        low, high = min(low, len(masses) - 1), max(high, low + 1, 1)
        kept = masses[low:high]
        kept[0] += sum(masses[:low])
        return _Losses(self.first + low, fmpz_poly(kept), self.lost + sum(masses[high:]))

    def times(self, other: "_Losses", unit: int, cut: int) -> "_Losses":
        """Return the sum of two independent losses: a product of polynomials, its masses rounded
        up.

        Args:
            other: on the same lattice.
            unit: 10^digits.
            cut: what either tail may lose.
        """
        exact = (self.masses * other.masses).coeffs()
        lost = self.lost * (_total(other.masses) + other.lost) + other.lost * _total(self.masses)
        rounded = fmpz_poly([-(-int(m) // unit) for m in exact])
        return _Losses(self.first + other.first, rounded, -(-lost // unit)).trimmed(cut)

    def doubled(self, step: Fraction, digits: int) -> "_Losses":
        """Return the same on every second point, each mass between shared by its neighbours.

        The two shares keep the mass under both laws: with a step h a mass m at a loss x becomes
        m/(1 + e^h) at x - h and the rest at x + h, whose means of e^{-L} are the same. So it is
        connecting the dots once more (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022), and an
        upper bound.
        """
        masses = [int(m) for m in self.masses.coeffs()]
        first = self.first - self.first % 2
        masses = [0] * (self.first - first) + masses
        bits = 4 * digits + 64
        with precision(2 * bits):
            below = 1 / (1 + ball_of(step).exp())
            shares = [_up(share * arb(1 << bits)) for share in (below, 1 - below)]
        found = [0] * (len(masses) // 2 + 2)
        found[: (len(masses) + 1) // 2] = masses[::2]
        for i, mass in enumerate(masses[1::2]):
            found[i] -= -mass * shares[0] >> bits
            found[i + 1] -= -mass * shares[1] >> bits
        return _Losses(first // 2, fmpz_poly(found), self.lost)


def _total(polynomial: fmpz_poly) -> int:
    """Return the sum of a polynomial's coefficients."""
    return int(polynomial(1))


def _sums(values: list[int]) -> list[int]:
    """Return partial sums."""
    total, found = 0, []
    for value in values:
        total += value
        found.append(total)
    return found


def _up(value: arb) -> int:
    """Return the least whole number that is not below a ball."""
    mantissa, exponent = value.upper().ceil().man_exp()
    return int(mantissa) << int(exponent)


# --- one step ---------------------------------------------------------------------------------


_Dot = tuple[int, arb, arb]
"""A place, and P(L > x) and Q(L > x) there."""


def _dots(pair: _Pair, step: Fraction, grid: LossGrid, tail: arb) -> list[_Dot]:
    """Return dots between which the loss lies under both laws, but for `tail`.

    Args:
        pair: one step.
        step: of the lattice at the level where it enters.
        grid: dots lie as far apart as it says.
        tail: of what may lie beyond, on either side.

    Raises:
        TooFine: where the lattice would have too many points.
    """

    def places(towards: int, done: Callable[[_Dot], bool]) -> Iterator[_Dot]:
        place = 0
        while True:
            dot = (place, *_tails(pair, ball_of(place * step)))
            yield dot
            if place and done(dot):
                return
            place += towards * max(1, abs(place) // grid.dense)
            if abs(place) > _CELLS or place * step > 2 * _MOST_LOSS:
                raise TooFine(f"Expected the loss to lie within {_CELLS} steps of {step}.")

    up = list(places(1, lambda dot: bool(dot[1] <= tail)))
    down = list(places(-1, lambda dot: bool(1 - dot[2] <= tail)))
    return [*down[:0:-1], *up]


def _one(pair: _Pair, step: Fraction, grid: LossGrid, tail: int) -> _Losses:
    """Return one step's losses: the profile, linear in e^x between dots and exact on them.

    Of neighbouring dots x < y the chord of δ as a function of e^x has the slope -(Q-mass beyond x);
    masses at the dots are the differences of these slopes times e^x.
    """
    bits = ceil(grid.digits * log2(10)) + 48 + 2 * step.denominator.bit_length()
    with precision(64):
        top = _top(pair, exp(-3 * grid.digits))
    with precision(bits + 4 * int(top)):
        unit = arb(10) ** grid.digits
        dots = _dots(pair, step, grid, arb(tail) / unit)
        grown = [ball_of(place * step).exp() for place, _, _ in dots]
        deltas = [p - x * q for x, (_, p, q) in zip(grown, dots, strict=True)]
        slopes = [(1 - deltas[0]) / grown[0]]
        for (x, y), (d, e) in zip(pairwise(grown), pairwise(deltas), strict=True):
            slopes.append((d - e) / (y - x))
        slopes.append(arb(0))
        first, last = dots[0][0], dots[-1][0]
        masses = [0] * (last - first + 1)
        for (place, _, _), x, (before, after) in zip(dots, grown, pairwise(slopes), strict=True):
            masses[place - first] = max(0, _up(x * (before - after) * unit))
        return _Losses(first, fmpz_poly(masses), max(0, _up(deltas[-1] * unit)))


def _top(pair: _Pair, tail: float) -> float:
    """Return a loss beyond which little mass lies; only the precision depends on it."""
    top = 2.0**-20
    while _tails(pair, arb(top))[0] > tail:
        top *= 1.5
        if top > _MOST_LOSS:
            raise TooFine(f"Expected losses up to {_MOST_LOSS} in one step.")
    return top


# --- composition ------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _composed(entering: _Entering, grid: LossGrid) -> tuple[_Losses, Fraction]:
    """Return the losses of all together, and the step of their lattice.

    Binary powers: at every level all numbers of copies are halved, squares taking the place of two,
    and what is left over is multiplied in pairs. Each tail of one step is cut to `grid.cut` over
    the number of steps, those of products at each level to as much over the items of that level.
    """
    unit = 10**grid.digits
    tail = grid.cut // sum(n for _, n, _ in entering)
    level, power, last = 0, 0, max(level for _, _, level in entering)
    items: list[tuple[_Losses, int]] = []
    while True:
        for _ in range(grid.power(level) - power):
            step = grid.step * 2**power
            items = [(losses.doubled(step, grid.digits), n) for losses, n in items]
            power += 1
        step = grid.step * 2**power
        items += [(_one(p, step, grid, tail), n) for p, n, entry in entering if entry == level]
        if level >= last and len(items) == 1 and items[0][1] == 1:
            return items[0][0], step
        cut = grid.cut // max(1, sum(n for _, n in items))
        single = [losses for losses, n in items if n % 2]
        items = [(losses.times(losses, unit, cut), n // 2) for losses, n in items if n > 1]
        pairs = zip(single[::2], single[1::2], strict=False)
        items += [(one.times(two, unit, cut), 1) for one, two in pairs]
        items += [(losses, 1) for losses in single[len(single) - len(single) % 2 :]]
        level += 1


@dataclass(frozen=True, slots=True)
class Composed:
    """What is composed: mechanisms and their levels, shares of mixture steps, and group size."""

    parts: Parts
    adjacency: Adjacency
    shares: tuple[tuple[Mechanism, Fraction], ...] = ()
    group: int = 1

    @property
    def theorems(self) -> frozenset[str]:
        """What the pairs of groups, and of records replaced in a Poisson sample, rest on."""
        first = next(iter(self.orders()), ())
        found = {SHIFTS_OF_GROUPS for pair, _, _ in first if isinstance(pair, DrawnShifts)}
        replaced = self.adjacency is Adjacency.REPLACE_ONE
        if replaced and any(_on_samples(mechanism) for mechanism, _, _ in self.parts):
            found.add(REPLACED_IN_A_SAMPLE)
        return frozenset(found)

    def orders(self) -> list[_Entering]:
        """Return all pairs for each order of the data sets; Gaussian shifts are summed."""
        found: list[_Entering] = []
        shares = dict(self.shares)
        for order in orders_of(self.adjacency):
            counts: dict[tuple[_Pair, int], int] = {}
            mu_squared, last = Fraction(0), 0
            for mechanism, times, level in self.parts:
                share = shares.get(mechanism)
                for pair, n in pairs_in(mechanism, times, self.adjacency, order, self.group, share):
                    if isinstance(pair, GaussianShift):
                        mu_squared, last = mu_squared + n * pair.mu_squared, max(last, level)
                    else:
                        counts[pair, level] = counts.get((pair, level), 0) + n
            entering = tuple((pair, n, level) for (pair, level), n in counts.items())
            if mu_squared:
                entering += ((GaussianShift(mu_squared), 1, last),)
            if entering and entering not in found:
                found.append(entering)
        return found


def _on_samples(mechanism: Mechanism) -> bool:
    """Return whether a mechanism is a Gaussian step on a Poisson sample that moves with a drawn
    record."""
    while isinstance(mechanism, Repeated):
        mechanism = mechanism.event
    if not isinstance(mechanism, PoissonSampled):
        return False
    return bool(mechanism.rate and mechanism.event.sensitivity.squared)


def pairs_in(
    mechanism: Mechanism,
    times: int,
    adjacency: Adjacency,
    order: Order,
    group: int,
    share: Fraction | None,
) -> Iterator[tuple[_Pair, int]]:
    """Yield the pairs of a mechanism for groups of `group` records, each with how often it is.

    Args:
        mechanism: repetitions are looked through.
        times: how often.
        adjacency: the relation.
        order: which data set stands first.
        group: records that differ together.
        share: of the noise's variance that goes to the constant part of a mixture step.
    """
    while isinstance(mechanism, Repeated):
        times, mechanism = times * mechanism.times, mechanism.event
    if isinstance(mechanism, AccumulatedPoisson):
        # a group of so many records, each of which is drawn by itself
        group *= mechanism.batches
        mechanism = PoissonSampled(mechanism.event, mechanism.rate)
        if group > _MOST_DRAWN:
            raise TooFine(f"Expected groups and batches of at most {_MOST_DRAWN} in all.")
    if (
        isinstance(mechanism, PoissonSampled)
        and isinstance(mechanism.event, GaussianStep)
        and group > 1
        and 0 < mechanism.rate < 1
        and adjacency is not Adjacency.REPLACE_ONE
        and mechanism.event.sensitivity.squared
        and mechanism.event.noise_std
    ):
        squared = mechanism.event.sensitivity.squared / Fraction(mechanism.event.noise_std) ** 2
        yield DrawnShifts(squared, Fraction(mechanism.rate), group, order), times
        return
    larger = mechanism if group == 1 else grouped(mechanism, group)
    while isinstance(larger, Repeated):
        times, larger = times * larger.times, larger.event
    if share is not None and isinstance(larger, GaussianMixtureStep):
        for pair in mixture_pairs(larger, adjacency, order, share):
            yield pair, times
    else:
        yield from pairs_of({larger: times}, adjacency, order).items()


def epsilon_upper(composed: Composed, grid: LossGrid, delta: Fraction) -> Fraction:
    """Return a binary64 at which the composition's δ is at most `delta`, less the margin.

    Raises `TooFine` if more than δ is lost beyond the grid.

    Bisection in doubles on δ(ε) = lost + Σ m (1 - e^{ε-x})⁺; 48 halvings leave 2^-48 of the largest
    loss, and the result is moved up by 2^-40 for what doubles round. A mistake is caught by the
    checker, which evaluates the same sum in whole numbers.
    """
    greatest = 0.0
    for entering in composed.orders():
        losses, step = _composed(entering, grid)
        margin = MARGIN if grid.doublings else MARGIN * _EXACT
        scale = delta * (1 - margin) * 10**grid.digits
        n, d = scale.numerator, scale.denominator
        lost = losses.lost * d / n
        width = float(step)
        masses = [
            ((losses.first + i) * width, int(m) * d / n)
            for i, m in enumerate(losses.masses.coeffs())
            if m
        ]
        if lost >= 1:
            raise TooFine("Expected less than delta beyond the grid.")
        low, high = 0.0, max(masses[-1][0], 0.0)
        for _ in range(48):
            middle = (low + high) / 2
            above = sum(m * -expm1(middle - x) for x, m in masses if x > middle)
            low, high = (middle, high) if lost + above > 1 else (low, middle)
        greatest = max(greatest, high)
    return Fraction(nextafter(greatest * (1 + 2.0**-40), inf) if greatest > 2.0**-40 else greatest)


# --- Laplace noise alone ------------------------------------------------------------------------


def laplace_epsilon(
    counts: Mapping[Mechanism, int], adjacency: Adjacency, delta: Fraction, group: int
) -> Enclosure | None:
    """Return the ε of Laplace noise alone, if its closed form is little work to check.

    Args:
        counts: mechanisms and how often each.
        adjacency: the relation.
        delta: in (0, 1).
        group: records that differ together.
    """
    shifts: Counter[DominatingPair] = Counter()
    for mechanism, times in counts.items():
        while isinstance(mechanism, Repeated):
            times, mechanism = times * mechanism.times, mechanism.event
        if not isinstance(mechanism, LaplaceStep):
            return None
        larger = mechanism if group == 1 else grouped(mechanism, group)
        for pair, n in pairs_of({larger: times}, adjacency, _FIRST).items():
            shifts[pair] += n
    number = shifts.total()
    knots = prod(n + 1 for n in shifts.values())
    if knots * number * (16 + number // 16) > _MOST_KNOTS or len(shifts) > _MOST_SCALES:
        return None
    from ..pld.privacy_profile import PrivacyProfile  # the engine, which Gaussian steps never need

    return PrivacyProfile.of_pairs(dict(shifts)).epsilon(-float_up(-delta))


# --- the choice of a grid ---------------------------------------------------------------------


def _deviation(pair: _Pair) -> float:
    """Return about the root mean square of the loss, losses beyond 4 counted as 4.

    By E[L²] = Σ (x²) P(x < |L| <= 4x), the square of the middle of each factor of 4 in x.
    """
    total = 0.0
    with precision(96):
        ends = [4.0**k for k in range(-32, 2)]
        outside = []
        for x in ends:
            try:
                outside.append(float(_tails(pair, arb(x))[0] + 1 - _tails(pair, arb(-x))[0]))
            except ArithmeticError:
                outside.append(outside[-1] if outside else 1.0)
        for a, beyond, further in zip(ends, outside, [*outside[1:], 0.0], strict=True):
            total += 4 * a * a * max(beyond - further, 0.0)
    return sqrt(total)


def suggested(
    counts: Mapping[Mechanism, int],
    adjacency: Adjacency,
    delta: Fraction,
    *,
    group: int = 1,
    fineness: float = 1.0,
) -> tuple[Composed, LossGrid]:
    """Return what is composed, with levels and shares, and a grid for it.

    A lattice of step h adds a variance of about h²/6 to every loss on it. The step doubles every
    third level, where deviations have grown by √8, so that the variance added falls by a half from
    each doubling to the next. Losses that lie on one lattice anyway stay there.

    Args:
        counts: mechanisms and how often each.
        adjacency: the relation.
        delta: in (0, 1).
        group: records that differ together.
        fineness: a factor of the step.
    """
    shares = {
        m: mixture_share(one, adjacency, _FIRST, n, float(delta)) for m, one, n in _mixtures(counts)
    }
    deviations: dict[Mechanism, float] = {}
    steps = Counter[Mechanism]()
    variance, number, drawn = 0.0, 0, 1
    units: set[Fraction | None] = set()
    shifts: set[Fraction] = set()
    highest, tail = 0.0, float(delta) * 1e-6 / sum(counts.values())
    for mechanism, times in counts.items():
        own, often = 0.0, 1
        for order in orders_of(adjacency):
            share = shares.get(mechanism)
            for pair, n in pairs_in(mechanism, 1, adjacency, order, group, share):
                own, often = max(own, _deviation(pair)), max(often, n)
                units.add(_unit(pair))
                drawn = max(drawn, pair.size if isinstance(pair, DrawnShifts) else 1)
                if not isinstance(pair, GaussianShift):
                    with precision(64):
                        highest = max(highest, _top(pair, tail))
                if isinstance(pair, LaplaceShift):
                    shifts.add(pair.epsilon)
        deviations[mechanism] = own
        steps[mechanism] = times * often
        variance += steps[mechanism] * own * own
        number += steps[mechanism]
    common = sqrt(variance / number)
    parts = []
    for mechanism, times in counts.items():
        wide = max(deviations[mechanism] / common, 1.0) if common else 1.0
        # a mechanism of far larger loss enters later, where the step has become as wide as it
        # deserves
        entry = min(3 * int(log2(wide)), 3 * int(log2(number) / 2))
        parts.append((mechanism, times, entry))
    levels = number.bit_length() + max(entry for _, _, entry in parts)
    digits = ceil(log10(number) - log(delta) / log(10)) + 12
    spread = 2 * highest + 12 * common * sqrt(number) / 2 ** (levels // 3)
    steps_each = _STEPS_PER_DEVIATION if len(counts) < _MANY else _STEPS_OF_MANY
    # where nothing costs anything every lattice will do
    width = max(common / steps_each, spread / _DEAR) or 1.0
    # short lists of points are made finer as long as that costs little
    fineness *= min(1.0, max(spread / width / _CHEAP, _FINEST))
    # a point of a mixture of n shifts takes work that grows with n²
    fineness *= min(8.0, max(1.0, (drawn / _FEW_DRAWN) ** 2))
    step = _lattice_step(width * fineness)
    if len(shifts) == 1:  # atoms of Laplace noise stay on the lattice while it is fine
        (shift,) = shifts
        step = shift / (16 * ceil(shift / step / 16))
    grid = LossGrid(
        step=step,
        doublings=tuple(int(k > 0 and k % 3 == 0) for k in range(levels)),
        dense=_dense(len(counts), fineness),
        digits=digits,
        cut=int(Fraction(_CUT) * delta * 10**digits),
    )
    composed = Composed(tuple(parts), adjacency, tuple(shares.items()), group)
    unit = units.pop() if len(units) == 1 else None
    if unit and number * deviations[parts[0][0]] / float(unit) < _CELLS:
        composed = replace(composed, parts=tuple((m, n, 0) for m, n, _ in parts))
        cut = int(grid.cut * _EXACT)
        grid = replace(grid, step=unit, doublings=(), dense=1 << 12, cut=cut)
    return composed, grid


_FIRST = Order.MIXTURE_FIRST
"""The order that stands for both where a question does not depend on it."""


def _dense(kinds: int, fineness: float) -> int:
    """Return up to how many steps from zero every point is a dot, more of them for a finer step."""
    if kinds < _MANY:
        return max(8, ceil(_DENSE / fineness))
    return max(8, ceil(_DENSE_OF_MANY / sqrt(fineness)))


def _mixtures(
    counts: Mapping[Mechanism, int],
) -> Iterator[tuple[Mechanism, GaussianMixtureStep, int]]:
    """Yield mixture steps with what repeats them, and how often they run in all."""
    for mechanism, times in counts.items():
        one = mechanism
        while isinstance(one, Repeated):
            times, one = times * one.times, one.event
        if isinstance(one, GaussianMixtureStep):
            yield mechanism, one, times


def _unit(pair: _Pair) -> Fraction | None:
    """Return a lattice on which a loss lies, or a hair below; None if it has a density."""
    match pair:
        case DiscreteLaplaceShift(rate=rate):
            return rate
        case DiscreteGaussianShift(sigma_squared=squared):
            return 1 / (2 * squared)
        case DiscreteGaussianVectors(sigma_squared=squared):
            return 1 / (2 * squared)
        case RandomisedAnswers(truth=truth, other=other):
            with precision(256):
                gain = abs((ball_of(truth) / ball_of(other)).log()).upper()
                return Fraction(_up(gain * arb(2) ** 192), 1 << 192)
        case _:
            return None


def _lattice_step(width: float) -> Fraction:
    """Return a fraction of few digits, about `width`."""
    return Fraction(round(width * 2.0 ** (24 - floor(log2(width))))) * Fraction(2) ** (
        floor(log2(width)) - 24
    )
