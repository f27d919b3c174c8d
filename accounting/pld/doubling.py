"""Upper bounds on a composition's losses, on a lattice whose step doubles as the losses spread.

Compositions of dominating pairs, bounded from above in whole multiples of 10^-digits: connecting
the dots for one step, FLINT's products of polynomials for many. A lattice that is fine for one step
is soon finer than a sum of many needs; so a binary power doubles it now and then, which costs a
thousandth of epsilon and leaves lists short. Certificates are found so, and groups of which a
Poisson sample draws a number are priced so.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, exp, expm1, floor, inf, log, log2, log10, nextafter, sqrt

from flint import arb, fmpz_poly

from ...mechanisms.sensitivity import float_up
from ..numbers.enclosure import ball_of, precision
from .pairs import DominatingPair, DrawnShifts, GaussianShift
from .profiles import tails_of

MARGIN = Fraction(1, 10_000)
"""The part of δ that is left free, for tails that the checker cuts differently."""

EXACT = Fraction(1, 100)
"""Both are as much smaller where losses lie on a lattice of their own, and nothing else is lost."""

CELLS = 1 << 17
"""Points of one step's lattice, at most; the checker would take more."""

_MOST_LOSS = 384
"""The largest loss of one step that goes on a grid: balls get four more bits for each unit of it.
"""

_LEAST_TAIL = 2.0**-1024
"""The mass down to which losses of one step are looked for."""

_CUT = 1e-5
"""The part of δ that may be cut off at each level."""

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

_FEW_DRAWN = 8
"""Shifts of a mixture up to which lattices are as fine as those of one shift."""


_MOST_LOOKS = 4
"""Grids that are made for ever smaller δ."""


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


Entering = tuple[tuple[DominatingPair, int, int], ...]
"""Pairs, how often each occurs, and the level at which it enters."""


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
            shares = [whole_up(share * arb(1 << bits)) for share in (below, 1 - below)]
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


def whole_up(value: arb) -> int:
    """Return the least whole number that is not below a ball."""
    mantissa, exponent = value.upper().ceil().man_exp()
    return int(mantissa) << int(exponent)


# --- one step ---------------------------------------------------------------------------------


_Dot = tuple[int, arb, arb]
"""A place, and P(L > x) and Q(L > x) there."""


def _dots(pair: DominatingPair, step: Fraction, grid: LossGrid, tail: arb) -> list[_Dot]:
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
            dot = (place, *tails_of(pair, ball_of(place * step)))
            yield dot
            if place and done(dot):
                return
            place += towards * max(1, abs(place) // grid.dense)
            if abs(place) > CELLS or place * step > 2 * _MOST_LOSS:
                raise TooFine(f"Expected the loss to lie within {CELLS} steps of {step}.")

    up = list(places(1, lambda dot: bool(dot[1] <= tail)))
    down = list(places(-1, lambda dot: bool(1 - dot[2] <= tail)))
    return [*down[:0:-1], *up]


def _one(pair: DominatingPair, step: Fraction, grid: LossGrid, tail: int) -> _Losses:
    """Return one step's losses: the profile, linear in e^x between dots and exact on them.

    Of neighbouring dots x < y the chord of δ as a function of e^x has the slope -(Q-mass beyond x);
    masses at the dots are the differences of these slopes times e^x.
    """
    bits = ceil(grid.digits * log2(10)) + 48 + 2 * step.denominator.bit_length()
    with precision(64):
        top = top_loss(pair, exp(-3 * grid.digits))
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
            masses[place - first] = max(0, whole_up(x * (before - after) * unit))
        return _Losses(first, fmpz_poly(masses), max(0, whole_up(deltas[-1] * unit)))


def top_loss(pair: DominatingPair, tail: float) -> float:
    """Return a loss beyond which little mass lies; only the precision depends on it.

    With bits enough that balls around masses tell `tail` from nothing.
    """
    top = 2.0**-20
    with precision(64 - floor(log2(max(tail, _LEAST_TAIL)))):
        while not tails_of(pair, arb(top))[0] <= tail:
            top *= 1.5
            if top > _MOST_LOSS:
                raise TooFine(f"Expected losses up to {_MOST_LOSS} in one step.")
    return top


# --- the choice of a grid ---------------------------------------------------------------------


def deviation_of(pair: DominatingPair) -> float:
    """Return about the root mean square of the loss, losses beyond 4 counted as 4.

    By E[L²] = Σ (x²) P(x < |L| <= 4x), the square of the middle of each factor of 4 in x.
    """
    total = 0.0
    with precision(96):
        ends = [4.0**k for k in range(-32, 2)]
        outside = []
        for x in ends:
            try:
                outside.append(float(tails_of(pair, arb(x))[0] + 1 - tails_of(pair, arb(-x))[0]))
            except ArithmeticError:
                outside.append(outside[-1] if outside else 1.0)
        for a, beyond, further in zip(ends, outside, [*outside[1:], 0.0], strict=True):
            total += 4 * a * a * max(beyond - further, 0.0)
    return sqrt(total)


def grid_for(
    *,
    deviation: float,
    highest: float,
    number: int,
    levels: int,
    kinds: int,
    drawn: int,
    delta: Fraction,
    fineness: float = 1.0,
    atoms: frozenset[Fraction] = frozenset(),
) -> LossGrid:
    """Return a grid for a composition.

    A lattice of step h adds a variance of about h²/6 to every loss on it. The step doubles every
    third level, where deviations have grown by √8, so that the variance added falls by a half from
    each doubling to the next.

    Args:
        deviation: of one step's loss, a root mean square over all of them.
        highest: the largest loss of one step that counts.
        number: of steps.
        levels: of squarings.
        kinds: of steps.
        drawn: the most records of which a number is drawn.
        delta: in (0, 1).
        fineness: a factor of the step.
        atoms: of Laplace noise, which stay on the lattice while it is fine if they are alike.
    """
    digits = ceil(log10(number) - log(delta) / log(10)) + 10
    spread = 2 * highest + 12 * deviation * sqrt(number) / 2 ** (levels // 3)
    steps_each = _STEPS_PER_DEVIATION if kinds < _MANY else _STEPS_OF_MANY
    # where nothing costs anything every lattice will do
    width = max(deviation / steps_each, spread / _DEAR) or 1.0
    # short lists of points are made finer as long as that costs little
    fineness *= min(1.0, max(spread / width / _CHEAP, _FINEST))
    # a point of a mixture of n shifts takes work that grows with n²
    fineness *= min(8.0, max(1.0, (drawn / _FEW_DRAWN) ** 2))
    step = _lattice_step(width * fineness)
    if len(atoms) == 1:
        (shift,) = atoms
        step = shift / (16 * ceil(shift / step / 16))
    return LossGrid(
        step=step,
        doublings=tuple(int(k > 0 and k % 3 == 0) for k in range(levels)),
        dense=_dense(kinds, fineness),
        digits=digits,
        cut=int(Fraction(_CUT) * delta * 10**digits),
    )


def _dense(kinds: int, fineness: float) -> int:
    """Return up to how many steps from zero every point is a dot, more of them for a finer step."""
    if kinds < _MANY:
        return max(8, ceil(_DENSE / fineness))
    return max(8, ceil(_DENSE_OF_MANY / sqrt(fineness)))


def _lattice_step(width: float) -> Fraction:
    """Return a fraction of few digits, about `width`."""
    return Fraction(round(width * 2.0 ** (24 - floor(log2(width))))) * Fraction(2) ** (
        floor(log2(width)) - 24
    )


# --- composition ------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _composed(entering: Entering, grid: LossGrid) -> tuple[_Losses, Fraction]:
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


def epsilon_upper(entering: Entering, grid: LossGrid, delta: Fraction) -> Fraction:
    """Return a binary64 at which a composition's δ is at most `delta`, less the margin.

    Raises `TooFine` if more than δ is lost beyond the grid.

    Bisection in doubles on δ(ε) = lost + Σ m (1 - e^{ε-x})⁺; 48 halvings leave 2^-48 of the largest
    loss, and the result is moved up by 2^-40. What doubles round, some 1e-11 of δ, is far below the
    margin; a certificate's checker evaluates the same sum in whole numbers.
    """
    losses, step = _composed(entering, grid)
    margin = MARGIN if grid.doublings else MARGIN * EXACT
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
    return Fraction(nextafter(high * (1 + 2.0**-40), inf) if high > 2.0**-40 else high)


def epsilon_by_doubling(counts: Mapping[DominatingPair, int], delta: float, about: float) -> float:
    """Return an upper bound on ε(δ) of pairs composed in one order; infinite where it is too long.

    Gaussian shifts are one, which enters last.

    Args:
        counts: pairs with a density, at least one of them no Gaussian shift.
        delta: in (0, 1).
        about: at most δ: the lattice is made for it.
    """
    try:
        return float_up(epsilon_upper(*_fitted(tuple(counts.items()), about), Fraction(delta)))
    except ArithmeticError:
        return inf


def delta_by_doubling(counts: Mapping[DominatingPair, int], epsilon: float, about: float) -> float:
    """Return an upper bound on δ(ε), ε >= 0; 1 where the composition is too long for a grid.

    Args:
        counts: as for `epsilon_by_doubling`.
        epsilon: where the profile is asked for.
        about: no less than δ: grids are made for it, and anew where δ is far less.
    """
    found = 1.0
    for _ in range(_MOST_LOOKS):
        try:
            fitted = _fitted(tuple(counts.items()), about)
            places, sums, shrunk, step = _beyond(*fitted)
        except ArithmeticError:
            return found
        with precision(_bits_of_sums(fitted[1])):
            k = bisect_right(places, Fraction(epsilon) / step)
            total = sums[k] - arb(epsilon).exp() * shrunk[k]
            upper = float_up(Fraction(whole_up(total)) / 10 ** fitted[1].digits)
        last, found, about = about, min(found, upper), upper
        if not 0 < about < last / 100:
            break
    return found


@lru_cache(maxsize=4)
def _beyond(entering: Entering, grid: LossGrid) -> tuple[list[int], list[arb], list[arb], Fraction]:
    """Return places x of masses m and, from each on, Σ m, an infinite loss too, and Σ m e^-x.

    With the step of the lattice, on which the places lie.
    """
    losses, step = _composed(entering, grid)
    masses = [(losses.first + i, int(m)) for i, m in enumerate(losses.masses.coeffs()) if m]
    with precision(_bits_of_sums(grid)):
        sums, shrunk = [arb(losses.lost)], [arb(0)]
        for place, mass in reversed(masses):
            sums.append(sums[-1] + mass)
            shrunk.append(shrunk[-1] + mass * ball_of(-place * step).exp())
    return [place for place, _ in masses], sums[::-1], shrunk[::-1], step


def _bits_of_sums(grid: LossGrid) -> int:
    """Return bits with which what cancels between two sums leaves all digits of a mass."""
    return 4 * grid.digits + 128


@lru_cache(maxsize=16)
def _fitted(
    counts: tuple[tuple[DominatingPair, int], ...], delta: float
) -> tuple[Entering, LossGrid]:
    """Return what is composed, Gaussian shifts last, and a grid for its ε(δ)."""
    steps = {pair: n for pair, n in counts if not isinstance(pair, GaussianShift)}
    number = sum(steps.values())
    with precision(64):
        highest = max(top_loss(pair, delta * 1e-6 / number) for pair in steps)
    levels = number.bit_length()
    grid = grid_for(
        deviation=sqrt(sum(n * deviation_of(pair) ** 2 for pair, n in steps.items()) / number),
        highest=highest,
        number=number,
        levels=levels,
        kinds=len(steps),
        drawn=max(pair.size if isinstance(pair, DrawnShifts) else 1 for pair in steps),
        delta=Fraction(delta),
    )
    last = tuple((pair, n, levels) for pair, n in counts if pair not in steps)
    return (*((pair, n, 0) for pair, n in steps.items()), *last), grid
