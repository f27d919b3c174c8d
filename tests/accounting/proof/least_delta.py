"""What two neighbours' outputs are seen to lose: lower bounds on δ(ε) from the definition alone.

Two neighbouring data sets are played for each mechanism: the laws of its outputs under them are put
into cells, which is post-processing and can only lose less; the privacy losses of the cells are
rounded down to a lattice and added up by FFT. Nothing of the accountants or of the checkers is
used. What is claimed below this is false.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr
from scipy.stats import binom, hypergeom

from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    DiscreteGaussianStep,
    GaussianMixtureStep,
    GaussianStep,
    Mechanism,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
)
from dpledger.mechanisms.events import DiscreteLaplaceStep, LaplaceStep

Law = npt.NDArray[np.float64]
"""Masses of outcomes, of shape (outcomes,)."""

CELLS = 20_000
"""Of the outputs of one step."""

SPACING = 2.0**-13
"""Of the lattice of losses: n steps lose at most n times as much of ε."""

MOST_STEPS = 40
"""Steps that are looked at; what is released besides can only lose more."""

FARTHEST = 40.0
"""Larger losses count as this; smaller ones than its negative are left out."""

ROUNDED = 1e-11
"""What sums and transforms of doubles may be off."""

SUMS = {"sum-of-bounded", "scaled", "linear-map", "sum", "concatenation"}
LINEAR = SUMS | {"disjoint", "computed", "lattice"}
"""Rules that make sums of vectors, one a record: a record that is drawn brings no more than Δ."""

Ratio = Callable[[object], Fraction]
"""From a step to (sensitivity / noise)², as whoever judges derives it."""


def gaussian(means: npt.NDArray[np.float64], weights: Law, edges: Law) -> Law:
    """Masses of cells under a mixture of normal laws of variance 1, to many digits in tails."""
    low, high = edges[:-1, None] - means, edges[1:, None] - means
    flipped = low > 0  # the upper tail by its mirror image
    low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
    return ((ndtr(high) - ndtr(low)) * weights).sum(axis=1)


def laplace(means: npt.NDArray[np.float64], weights: Law, edges: Law) -> Law:
    """The same for Laplace noise of scale 1."""
    x = edges[:, None] - means
    below, above = np.exp(np.minimum(x, 0)) / 2, np.exp(-np.maximum(x, 0)) / 2
    masses = np.where(x[1:] <= 0, np.diff(below, axis=0), -np.diff(above, axis=0))
    across = (x[:-1] < 0) & (x[1:] > 0)
    masses = np.where(across, 1 - below[:-1] - above[1:], masses)
    return (masses * weights).sum(axis=1)


def shifted(step: object, first: dict[float, float], second: dict[float, float]) -> tuple[Law, Law]:
    """Laws of a step's output whose mean is drawn from these, {mean: weight} in units of noise."""
    tail = 40.0 if isinstance(step, LaplaceStep) else 11.0
    ends = [*first, *second]
    # a cell's edges at all means: where Laplace noise has its kinks
    edges = np.union1d(np.linspace(min(ends) - tail, max(ends) + tail, CELLS), np.array(ends))
    law = laplace if isinstance(step, LaplaceStep) else gaussian
    found = [law(np.array([*m]), np.array([*m.values()]), edges) for m in (first, second)]
    return found[0], found[1]


def counted(chances: Law) -> dict[int, float]:
    return {j: float(chance) for j, chance in enumerate(chances) if chance > 0}


def means_of(drawn: dict[int, float], by: float, besides: float = 0.0) -> dict[float, float]:
    """Where the output lies for each number of records drawn; all in one place if by nothing."""
    found: dict[float, float] = {}
    for j, chance in drawn.items():
        found[besides + j * by] = found.get(besides + j * by, 0.0) + chance
    return found


def relation(mechanism: Mechanism) -> Adjacency:
    match mechanism:
        case (
            PoissonSampled(event=step)
            | AccumulatedPoisson(event=step)
            | SampledWithoutReplacement(event=step)
            | SampledWithReplacement(event=step)
        ):
            return step.sensitivity.adjacency
        case GaussianMixtureStep():
            return mechanism.sampled.adjacency
        case RandomisedResponse():
            return Adjacency.REPLACE_ONE
        case _:
            return mechanism.sensitivity.adjacency


def rules(derivation) -> set[str]:
    # what `computed` has besides its first premise bounds rounding
    premises = derivation.premises[: 1 if derivation.rule == "computed" else None]
    return {derivation.rule}.union(*map(rules, premises))


def told(first: Law, second: Law, rate: float) -> tuple[Law, Law]:
    """Laws where one is told whether the record was drawn; if not, nothing is lost."""
    return (
        np.append(rate * first, 1 - rate),
        np.append(rate * second, 1 - rate),
    )


def laws(mechanism: Mechanism, size: int, ratio: Ratio) -> Iterator[tuple[Law, Law]]:
    """Yield laws of outputs with and without `size` records, or before and after replacing them.

    Args:
        mechanism: not repeated.
        size: records that differ.
        ratio: (sensitivity / noise)².
    """
    replaced = relation(mechanism) is Adjacency.REPLACE_ONE
    match mechanism:
        case GaussianStep() | LaplaceStep():
            if r := float(ratio(mechanism)) ** 0.5:
                yield shifted(mechanism, {size * r: 1.0}, {0.0: 1.0})
        case PureStep():
            epsilon = size * float(ratio(mechanism)) ** 0.5
            true = 1 / (1 + np.exp(-epsilon))
            yield np.array([true, 1 - true]), np.array([1 - true, true])
        case RandomisedResponse(truth=truth, categories=k):
            other = (1 - truth) / (k - 1)
            law = np.array([truth, other, *[other] * (min(k, 1000) - 2)])
            for _ in range(size):
                yield law, np.array([law[1], law[0], *law[2:]])
        case DiscreteGaussianStep():
            moved = ratio(mechanism) * Fraction(mechanism.noise_std) ** 2
            yield from discrete(mechanism, int(moved), size)
        case DiscreteLaplaceStep():
            moved = float(ratio(mechanism) * Fraction(mechanism.scale) ** 2) ** 0.5
            yield from discrete(mechanism, 1, size * int(moved * (1 + 1e-15))) if moved >= 1 else ()
        case PoissonSampled(event=step, rate=rate):
            mu = float(ratio(step)) ** 0.5
            drawn = counted(binom.pmf(np.arange(size + 1), size, rate))
            if not replaced:
                yield shifted(step, means_of(drawn, mu), {0.0: 1.0})
                return
            if not rules(step.sensitivity.derivation) <= SUMS:
                raise ValueError("a record may bring anything")
            sides = [means_of(drawn, side * mu / 2) for side in (1, -1)]
            yield shifted(step, *sides)
        case AccumulatedPoisson(event=step, rate=rate, batches=batches):
            if replaced:
                raise ValueError("a record brings something in either data set")
            yield from laws(PoissonSampled(step, rate), size * batches, ratio)
        case SampledWithoutReplacement(event=step, batch=batch, records=records):
            mu, size = float(ratio(step)) ** 0.5, min(size, records)
            drawn = counted(hypergeom.pmf(np.arange(size + 1), records, size, batch))
            yield shifted(step, means_of(drawn, mu), {0.0: 1.0})
        case SampledWithReplacement(event=step, batch=batch, records=records):
            mu, share = float(ratio(step)) ** 0.5, min(size / records, 1.0)
            drawn = counted(binom.pmf(np.arange(batch + 1), batch, share))
            yield shifted(step, means_of(drawn, mu), {0.0: 1.0})
        case GaussianMixtureStep(noise_std=noise):
            parts = (GaussianStep(part, noise) for part in (mechanism.constant, mechanism.sampled))
            always, mu = (float(ratio(part)) ** 0.5 for part in parts)
            if replaced and not rules(mechanism.sampled.derivation) <= LINEAR:
                first, second = shifted(mechanism, {always + mu: 1.0}, {0.0: 1.0})
                yield told(first, second, mechanism.rate)
                return
            drawn = counted(binom.pmf(np.arange(size + 1), size, mechanism.rate))
            yield shifted(mechanism, means_of(drawn, mu, size * always), {0.0: 1.0})
        case _:
            raise ValueError(f"nothing is known of {mechanism}")


def discrete(mechanism: Mechanism, coordinates: int, by: int) -> Iterator[tuple[Law, Law]]:
    """Laws of as many coordinates with noise on whole numbers, each moved by so many."""
    if isinstance(mechanism, DiscreteLaplaceStep):
        reach, decay = int(50 * mechanism.scale), lambda k: np.abs(k) / mechanism.scale
    else:
        reach = int(10 * mechanism.noise_std)
        decay = lambda k: k**2 / (2 * mechanism.noise_std**2)  # noqa: E731
    k = np.arange(-reach - by - 2, reach + by + 3)
    total = np.exp(-decay(np.arange(-4 * reach - 200, 4 * reach + 201))).sum()
    for _ in range(coordinates):
        yield np.exp(-decay(k - by)) / total, np.exp(-decay(k)) / total


def losses(first: Law, second: Law) -> tuple[int, Law]:
    """The loss ln(first / second) under `first`, rounded down to the lattice: its first place and
    its masses."""
    known = (first > 1e-300) & (second > 0)
    masses = first[known]
    places = np.floor(np.log(masses / second[known]) / SPACING - 1e-6)
    kept = places > -FARTHEST / SPACING
    places = np.minimum(places[kept], FARTHEST / SPACING).astype(int)
    endless = first[(first > 1e-300) & (second <= 0)].sum()
    start = int(places.min()) if places.size else 0
    found = np.bincount(places - start, weights=masses[kept])
    if endless:
        found = np.append(found, np.zeros(max(0, int(FARTHEST / SPACING) - start + 1 - found.size)))
        found[-1] += endless
    return start, found


def together(one: tuple[int, Law], other: tuple[int, Law]) -> tuple[int, Law]:
    """The losses of two steps; what lies above the lattice's end is moved down to it."""
    length = one[1].size + other[1].size - 1
    padded = 1 << (length - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(one[1], padded) * np.fft.rfft(other[1], padded), padded)[
        :length
    ].clip(0)
    start, end = one[0] + other[0], int(FARTHEST / SPACING)
    low = max(0, -end - start)
    product, start = product[low:], start + low
    if start + product.size > end + 1 and end >= start:
        product[end - start] += product[end - start + 1 :].sum()
        product = product[: end - start + 1]
    return start, product


def least_losses(
    listed: list[tuple[Mechanism, int]], size: int, ratio: Ratio
) -> list[tuple[int, Law]]:
    """Return the losses of all steps together, for each of the two orders of the data sets.

    Args:
        listed: mechanisms and how often each runs.
        size: records that differ together.
        ratio: from a step to (sensitivity / noise)².
    """
    found = []
    for order in (1, -1):
        whole, left = (0, np.ones(1)), MOST_STEPS
        for mechanism, times in listed:
            while isinstance(mechanism, Repeated):
                times, mechanism = times * mechanism.times, mechanism.event
            often, left = min(times, left), left - min(times, left)
            for pair in laws(mechanism, size, ratio) if often else ():
                one = losses(*pair[::order])
                for _ in range(often):
                    whole = together(whole, one)
        found.append(whole)
    return found


def least_delta(found: list[tuple[int, Law]], epsilon: float) -> float:
    """Return what is lost at least beyond ε, in the worse order."""

    def beyond(start: int, masses: Law) -> float:
        x = (start + np.arange(masses.size)) * SPACING
        over = x > epsilon
        return float((masses[over] * -np.expm1(epsilon - x[over])).sum())

    return max(beyond(*one) for one in found) - ROUNDED
