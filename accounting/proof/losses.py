"""Witnesses for loss distributions: a grid to compose on, and the ε that the composition gives.

Compositions of dominating pairs on a lattice, bounded from above in whole multiples of
10^-digits: connecting the dots for one step, FLINT's products of polynomials for many, and a step
that doubles as losses spread. Whoever checks the certificate repeats this from the parameters in
`LossGrid` with arithmetic of its own; so the two must choose the same dots and double at the same
levels, but tails may be cut a little differently, for which `MARGIN` leaves room.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, log2, prod, sqrt

from flint import arb

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.events import (
    DiscreteGaussianStep,
    GaussianMixtureStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    unrepeated,
)
from ...mechanisms.sensitivity import float_up
from ..numbers.enclosure import Enclosure, ball_of, precision
from ..pld import doubling
from ..pld.doubling import (
    CELLS,
    EXACT,
    Entering,
    LossGrid,
    deviation_of,
    grid_for,
    top_loss,
    whole_up,
)
from ..pld.from_mechanisms import mixture_pairs, mixture_share, orders_of, pairs_of
from ..pld.pairs import (
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
)
from ..renyi.amplification import grouped
from .derivation import DRAWN_AGAIN, REPLACED_IN_A_SAMPLE, SHIFTS_OF_GROUPS

_MOST_KNOTS = 1 << 25
"""Units of work, of the 2^25 that a checker does for any document, half of which are not needed."""
_MOST_SCALES = 64
"""Different Laplace scales of a closed form that the checker takes."""

_LONGEST_SQUARED = 25
"""The squared length of integer vectors for all of which the checker has one pair."""

_SPREADS = 0.5, 256.0
"""σ times the length of these: with less noise losses are in the hundreds."""

_MOST_WORK = 1024
"""σ times the squared length of these: three quarters of what a checker does."""


Parts = tuple[tuple[Mechanism, int, int], ...]
"""Mechanisms, how often each occurs, and the level at which it enters."""

Counts = Sequence[tuple[Mechanism, int]]
"""Mechanisms and how often each; equal ones that were derived otherwise stand apart."""


# --- composition ------------------------------------------------------------------------------


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
        if any(isinstance(pair, CopiesDrawn) for pair, _, _ in first):
            found.add(DRAWN_AGAIN)
        return frozenset(found)

    def orders(self) -> list[Entering]:
        """Return all pairs for each order of the data sets; Gaussian shifts are summed."""
        found: list[Entering] = []
        shares = dict(self.shares)
        for order in orders_of(self.adjacency):
            counts: dict[tuple[DominatingPair, int], int] = {}
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
    mechanism, _ = unrepeated(mechanism)
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
) -> Iterator[tuple[DominatingPair, int]]:
    """Yield the pairs of a mechanism for groups of `group` records, each with how often it is.

    Args:
        mechanism: repetitions are looked through.
        times: how often.
        adjacency: the relation.
        order: which data set stands first.
        group: records that differ together.
        share: of the noise's variance that goes to the constant part of a mixture step.
    """
    mechanism, often = unrepeated(mechanism)
    larger, again = unrepeated(mechanism if group == 1 else grouped(mechanism, group))
    times *= often * again
    if share is not None and isinstance(larger, GaussianMixtureStep):
        for pair in mixture_pairs(larger, adjacency, order, share):
            yield pair, times
    elif isinstance(larger, DiscreteGaussianStep) and _takes_all_vectors(larger):
        squared = floor(larger.sensitivity.squared)
        yield DiscreteGaussianVectors(Fraction(larger.noise_std) ** 2, squared), times
    else:
        yield from pairs_of({larger: times}, adjacency, order).items()


def _takes_all_vectors(step: DiscreteGaussianStep) -> bool:
    """Return whether the checker has one pair above all integer vectors of a step.

    It takes longer ones than the accountants do, which are more work as there are more of them.
    Below a squared length of 4 coordinates move by one only, which is a pair each.
    """
    squared, noise = floor(step.sensitivity.squared), step.noise_std
    if not 4 <= squared <= _LONGEST_SQUARED:
        return False
    least, most = _SPREADS
    return least <= noise * sqrt(squared) <= most and noise * squared <= _MOST_WORK


def epsilon_upper(composed: Composed, grid: LossGrid, delta: Fraction) -> Fraction:
    """Return a binary64 at which the composition's δ is at most `delta` in every order.

    Raises `TooFine` if more than δ is lost beyond the grid.
    """
    found = (doubling.epsilon_upper(entering, grid, delta) for entering in composed.orders())
    return max(found, default=Fraction(0))


# --- Laplace noise alone ------------------------------------------------------------------------


def laplace_epsilon(
    counts: Counts, adjacency: Adjacency, delta: Fraction, group: int
) -> Enclosure | None:
    """Return the ε of Laplace noise alone, if its closed form is little work to check.

    Args:
        counts: what is composed.
        adjacency: the relation.
        delta: in (0, 1).
        group: records that differ together.
    """
    shifts: Counter[DominatingPair] = Counter()
    for mechanism, times in counts:
        step, often = unrepeated(mechanism)
        if not isinstance(step, LaplaceStep):
            return None
        larger = step if group == 1 else grouped(step, group)
        for pair, n in pairs_of({larger: times * often}, adjacency, _FIRST).items():
            shifts[pair] += n
    number = shifts.total()
    knots = prod(n + 1 for n in shifts.values())
    if knots * number * (16 + number // 16) > _MOST_KNOTS or len(shifts) > _MOST_SCALES:
        return None
    from ..pld.privacy_profile import PrivacyProfile  # the engine, which Gaussian steps never need

    return PrivacyProfile.of_pairs(dict(shifts)).epsilon(-float_up(-delta))


# --- the choice of a grid ---------------------------------------------------------------------


def suggested(
    counts: Counts,
    adjacency: Adjacency,
    delta: Fraction,
    *,
    group: int = 1,
    fineness: float = 1.0,
) -> tuple[Composed, LossGrid]:
    """Return what is composed, with levels and shares, and a grid for it.

    Losses that lie on one lattice anyway stay there.

    Args:
        counts: what is composed.
        adjacency: the relation.
        delta: in (0, 1).
        group: records that differ together.
        fineness: a factor of the step.
    """
    shares = {
        m: mixture_share(one, adjacency, _FIRST, n, float(delta)) for m, one, n in _mixtures(counts)
    }
    tail = float(delta) * 1e-6 / sum(n for _, n in counts)
    losses = {
        mechanism: _spread(
            [
                found
                for order in orders_of(adjacency)
                for found in pairs_in(mechanism, 1, adjacency, order, group, shares.get(mechanism))
            ],
            tail,
        )
        for mechanism, _ in counts
    }
    number = sum(n * losses[m].often for m, n in counts)
    variance = sum(
        n * losses[m].often * losses[m].deviation * losses[m].deviation for m, n in counts
    )
    common = sqrt(variance / number)
    parts = []
    for mechanism, times in counts:
        wide = max(losses[mechanism].deviation / common, 1.0) if common else 1.0
        # a mechanism of far larger loss enters later, where the step has become as wide as it
        # deserves
        entry = min(3 * int(log2(wide)), 3 * int(log2(number) / 2))
        parts.append((mechanism, times, entry))
    grid = grid_for(
        deviation=common,
        highest=max(each.highest for each in losses.values()),
        number=number,
        levels=number.bit_length() + max(entry for _, _, entry in parts),
        kinds=len(counts),
        drawn=max(each.drawn for each in losses.values()),
        delta=delta,
        fineness=fineness,
        atoms=frozenset().union(*(each.atoms for each in losses.values())),
    )
    split = tuple((m, shares[m]) for m, _, _ in _mixtures(counts))
    composed = Composed(tuple(parts), adjacency, split, group)
    units = frozenset().union(*(each.units for each in losses.values()))
    unit = next(iter(units)) if len(units) == 1 else None
    if unit and number * losses[parts[0][0]].deviation / float(unit) < CELLS:
        composed = replace(composed, parts=tuple((m, n, 0) for m, n, _ in parts))
        cut = int(grid.cut * EXACT)
        grid = replace(grid, step=unit, doublings=(), dense=1 << 12, cut=cut)
    return composed, grid


@dataclass(frozen=True, slots=True)
class _Spread:
    """What a grid must know of one mechanism's losses, over both orders.

    Args:
        deviation: the largest standard deviation of a pair's loss.
        often: how often the mechanism's pairs are taken at the most.
        highest: loss that is exceeded with the tail's probability; 0 for Gaussian shifts.
        drawn: most records that a sample draws of a group.
        atoms: scales at which Laplace losses have an atom.
        units: lattices on which the losses lie, None for a density.
    """

    deviation: float
    often: int
    highest: float
    drawn: int
    atoms: frozenset[Fraction]
    units: frozenset[Fraction | None]


def _spread(pairs: Sequence[tuple[DominatingPair, int]], tail: float) -> _Spread:
    """Return what a grid must know of the losses of a mechanism.

    Args:
        pairs: with how often each is taken, for every order.
        tail: probability that `highest` leaves out.
    """
    with precision(64):
        tops = [top_loss(pair, tail) for pair, _ in pairs if not isinstance(pair, GaussianShift)]
    return _Spread(
        deviation=max((deviation_of(pair) for pair, _ in pairs), default=0.0),
        often=max((n for _, n in pairs), default=1),
        highest=max([0.0, *tops]),
        drawn=max((pair.size for pair, _ in pairs if isinstance(pair, DrawnShifts)), default=1),
        atoms=frozenset(pair.epsilon for pair, _ in pairs if isinstance(pair, LaplaceShift)),
        units=frozenset(_unit(pair) for pair, _ in pairs),
    )


_FIRST = Order.MIXTURE_FIRST
"""The order that stands for both where a question does not depend on it."""


def _mixtures(counts: Counts) -> Iterator[tuple[Mechanism, GaussianMixtureStep, int]]:
    """Yield mixture steps with what repeats them, and how often they run in all."""
    for mechanism, times in counts:
        one, often = unrepeated(mechanism)
        if isinstance(one, GaussianMixtureStep):
            yield mechanism, one, times * often


def _unit(pair: DominatingPair) -> Fraction | None:
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
                return Fraction(whole_up(gain * arb(2) ** 192), 1 << 192)
        case _:
            return None
