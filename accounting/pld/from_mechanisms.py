"""From mechanisms to dominating pairs: which mechanism has which, under which adjacency.

| mechanism | add/remove, zero-out | replace-one |
|---|---|---|
| Gaussian, Laplace, discrete Laplace | one symmetric pair | the same |
| discrete Gaussian, squared sensitivity below 4 | at most three shifts by one | the same |
| discrete Gaussian, of 4 to 16 | one pair above all integer vectors | the same |
| randomised response | - | one symmetric pair |
| Poisson-sampled Gaussian | one pair an order | one symmetric pair |
| Poisson-sampled Laplace | one pair an order | no rule |
| accumulated Poisson samples of Gaussian steps, and groups in one | one pair an order | no rule |
| a fixed batch without replacement | no rule | one symmetrised pair |
| Gaussian noise on a batch with replacement | no rule | one symmetrised pair |
| Gaussian mixture step | Gaussian, a pair an order (zero-out: symmetrised, twice) | symmetrised |

What stands nowhere here raises `NoDominatingPair`. Discrete Gaussian noise on integer vectors of
squared sensitivity below 4 moves coordinates by one only, each independently. From 4 on one may
move by two or four by one, and none of these is the worst everywhere: `lattices` has a pair above
all of them where they are few, that is up to a squared sensitivity of 16. Rényi and zCDP
accountants price it for all (Canonne, Kamath, Steinke 2020, Theorem 14), and discrete noise on a
very fine lattice, every value of whose loss would be kept here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from math import floor, log, log2, sqrt

import numpy as np

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import DpledgerError
from ...mechanisms.events import (
    AccumulatedPoisson,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
)
from .pairs import (
    MOST_COPIES,
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
    RevealedSample,
    Sampled,
)

_SHARES = tuple(
    sorted(
        {Fraction(8 + k, 2**j) for k in range(8) for j in range(4, 18)}
        | {1 - Fraction(8 + k, 2**j) for k in range(8) for j in range(5, 11)}
    )
)
"""Of the noise that may hide a constant shift: from little to nearly all, a tenth or less apart."""

_COARSE = 8
"""Every so many shares one is tried by a moment; then nearer ones by their price."""

_MANY = 1 << 6
"""From so many runs on noise is split alike for all up to twice as many."""

_USUAL_DELTA = 1e-5
"""The δ for which noise is split where none is known."""

_LONGEST_LATTICE = 1 << 11
"""The steps of a lattice over which discrete noise spreads, or which its shift spans, at most."""

_LARGEST_SQUARED = 16
"""The squared length of integer vectors all of which are priced: 8 ways to write it as squares."""

_LONGEST_SHIFTED = 1 << 8
"""σ√s of these, at most: what they add up to spreads that far."""

_LEAST_VARIANCE = Fraction(1, 4)
"""σ² s, at least: with less noise losses are in the hundreds, and masses of very many digits."""


_LEAST_SHIFT = Fraction(1, 1 << 1000)
"""A μ² or ε₀ below which doubles have none; a longer shift dominates a shorter one."""


class NoDominatingPair(DpledgerError, ValueError):
    """No dominating pair is known here for this mechanism. This does not mean it is not private."""

    def __init__(self, mechanism: Mechanism, reason: str) -> None:
        super().__init__(f"Expected {reason} instead got {type(mechanism).__name__}: {mechanism}.")
        self.mechanism = mechanism
        self.reason = reason

    def __reduce__(self) -> tuple[type["NoDominatingPair"], tuple[Mechanism, str]]:
        return (type(self), (self.mechanism, self.reason))


class Unprotected(DpledgerError, ValueError):
    """The mechanism releases exactly: its cost is infinite."""


def orders_of(adjacency: Adjacency) -> tuple[Order, ...]:
    """Return the orders in which sampled pairs are composed; the largest ε of them counts."""
    if adjacency is Adjacency.REPLACE_ONE:
        return (Order.SYMMETRISED,)
    return (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)


def pairs_of(
    mechanisms: Mapping[Mechanism, int],
    adjacency: Adjacency,
    order: Order,
    delta: float = _USUAL_DELTA,
    *,
    attained: bool = False,
) -> dict[DominatingPair, int]:
    """Return the pairs that dominate these mechanisms, each with how often it is composed.

    The noise of mixture steps is split so that they cost little at `delta`; what is returned
    dominates whatever δ is asked for. Where `attained`, pairs that stand above what any neighbours
    lose (a share of the noise for each of two shifts) make way for pairs of neighbours: lower
    bounds on ε are theirs.

    Gaussian shifts are summed into one. Raises `NoDominatingPair` for a mechanism without a rule,
    `Unprotected` for one that releases exactly.
    """
    counts: Counter[DominatingPair] = Counter()
    mu_squared = Fraction(0)
    for mechanism, times in mechanisms.items():
        inner, runs = mechanism, times
        while isinstance(inner, Repeated):
            runs *= inner.times
            inner = inner.event
        found = _attained(inner, adjacency, order) if attained else None
        for pair in _pairs(inner, adjacency, order, runs, delta) if found is None else found:
            if isinstance(pair, GaussianShift):
                mu_squared += pair.mu_squared * runs
            else:
                counts[pair] += runs
    if mu_squared:
        counts[GaussianShift(mu_squared)] = 1
    return {_first_of(pair): runs for pair, runs in counts.items()}


@lru_cache(maxsize=1 << 16)
def _first_of(pair: DominatingPair) -> DominatingPair:
    """Return the first pair that equals this one: what is kept of it is found by identity then.

    Moments are looked up by pair thousands of times a query; to compare fractions takes longer.
    """
    return pair


def _attained(
    mechanism: Mechanism, adjacency: Adjacency, order: Order
) -> tuple[DominatingPair, ...] | None:
    """Return pairs of neighbours where those that dominate are of none; None where they are.

    A mixture's sampled part may be nothing in both data sets.
    """
    if not isinstance(mechanism, GaussianMixtureStep):
        return None
    constant, sampled, _ = _shifts(mechanism, adjacency, order)
    alone = adjacency is not Adjacency.ZERO_OUT_ONE and mechanism.hides_sample
    if not sampled or (alone and not constant):
        return None
    return (GaussianShift(constant),) if constant else ()


def _pairs(
    mechanism: Mechanism, adjacency: Adjacency, order: Order, times: int, delta: float
) -> Iterator[DominatingPair]:
    """Yield the pairs of a single mechanism.

    Args:
        mechanism: not repeated.
        adjacency: the relation.
        order: in which sampled pairs stand.
        times: how often it runs, by which a mixture's noise is split, and
        delta: for which it is.

    Raises as `pairs_of` does.
    """
    match mechanism:
        case GaussianStep() | LaplaceStep():
            yield from _shift(mechanism)
        case DiscreteGaussianStep() | DiscreteLaplaceStep():
            yield from _discrete_shift(mechanism)
        case PureStep():
            yield from _pure(mechanism)
        case RandomisedResponse():
            yield from _randomised(mechanism)
        case PoissonSampled(event=GaussianStep() as event) if (
            adjacency is Adjacency.REPLACE_ONE and mechanism.bounds_each_record
        ):
            yield from _replaced(event, Fraction(mechanism.rate))
        case PoissonSampled():
            if adjacency not in (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE):
                needed = "Poisson sampling under add/remove or zero-out, or of a sum of vectors"
                raise NoDominatingPair(mechanism, f"{needed} that a derivation bounds one by one")
            yield from _sampled(mechanism.event, Fraction(mechanism.rate), order)
        case AccumulatedPoisson():
            if adjacency not in (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE):
                raise NoDominatingPair(mechanism, "Poisson sampling under add/remove or zero-out")
            yield from _drawn(mechanism, order)
        case SampledWithoutReplacement():
            if adjacency is not Adjacency.REPLACE_ONE:
                raise NoDominatingPair(mechanism, "a fixed batch under replace-one")
            rate = Fraction(mechanism.batch, mechanism.records)
            yield from _sampled(mechanism.event, rate, Order.SYMMETRISED)
        case SampledWithReplacement():
            yield from _with_replacement(mechanism, adjacency)
        case GaussianMixtureStep():
            share = mixture_share(mechanism, adjacency, order, times, delta)
            yield from mixture_pairs(mechanism, adjacency, order, share)
        case UnprotectedRelease():
            raise Unprotected(mechanism.reason)
        case _:
            raise NoDominatingPair(mechanism, "a mechanism of one record's events")


def _shift(mechanism: GaussianStep | LaplaceStep) -> Iterator[GaussianShift | LaplaceShift]:
    """Yield the shift of additive noise; nothing where nothing moves; raise `Unprotected` without
    noise.
    """
    squared = mechanism.sensitivity.squared
    noise = mechanism.noise_std if isinstance(mechanism, GaussianStep) else mechanism.scale
    if squared == 0:
        return
    if noise == 0:
        raise Unprotected(f"{type(mechanism).__name__} without noise")
    if isinstance(mechanism, GaussianStep):
        yield GaussianShift(max(squared / Fraction(noise) ** 2, _LEAST_SHIFT))
    else:
        yield LaplaceShift(max(mechanism.sensitivity.root / Fraction(noise), _LEAST_SHIFT))


def _discrete_shift(
    mechanism: DiscreteGaussianStep | DiscreteLaplaceStep,
) -> Iterator[DominatingPair]:
    """Yield the shifts of discrete noise, of which only whole ones exist.

    Raises `NoDominatingPair` for a long lattice, and for Gaussian noise where a coordinate may move
    by more than one.
    """
    # integer vectors: a shift shorter than one is no shift
    squared = mechanism.sensitivity.squared
    if squared < 1:
        return
    if isinstance(mechanism, DiscreteLaplaceStep):
        if mechanism.scale == 0:
            raise Unprotected("DiscreteLaplaceStep without noise")
        shift = floor(mechanism.sensitivity.root)
        if shift > _LONGEST_LATTICE:
            raise NoDominatingPair(mechanism, f"an l1 sensitivity of at most {_LONGEST_LATTICE}")
        yield DiscreteLaplaceShift(1 / Fraction(mechanism.scale), shift)
        return
    if mechanism.noise_std == 0:
        raise Unprotected("DiscreteGaussianStep without noise")
    if mechanism.noise_std > _LONGEST_LATTICE:
        raise NoDominatingPair(mechanism, f"noise_std of at most {_LONGEST_LATTICE}")
    if squared >= 4:
        yield _vectors(mechanism, floor(squared))
        return
    # a shift of one by each coordinate that can move; moving fewer is post-processing of this
    for _ in range(floor(squared)):
        yield DiscreteGaussianShift(Fraction(mechanism.noise_std) ** 2)


def _vectors(mechanism: DiscreteGaussianStep, squared: int) -> DiscreteGaussianVectors:
    """Return the pair above integer vectors of a squared length; they must be few and short."""
    if squared > _LARGEST_SQUARED:
        needed = f"an integer vector of squared l2 sensitivity at most {_LARGEST_SQUARED}"
        raise NoDominatingPair(mechanism, needed)
    variance = Fraction(mechanism.noise_std) ** 2
    if not _LEAST_VARIANCE <= variance * squared <= _LONGEST_SHIFTED**2:
        needed = f"noise_std times l2 sensitivity in [{sqrt(_LEAST_VARIANCE)}, {_LONGEST_SHIFTED}]"
        raise NoDominatingPair(mechanism, needed)
    return DiscreteGaussianVectors(variance, squared)


def _pure(mechanism: PureStep) -> Iterator[DiscreteLaplaceShift]:
    # noise of mass ∝ e^(-ε|k|) moved by one has the losses ±ε of randomised response, exactly
    if mechanism.sensitivity.squared == 0:
        return
    if mechanism.scale == 0:
        raise Unprotected("PureStep without noise")
    yield DiscreteLaplaceShift(mechanism.sensitivity.root / Fraction(mechanism.scale), 1)


def _randomised(mechanism: RandomisedResponse) -> Iterator[RandomisedAnswers]:
    """Yield the pair of answers; nothing for a fair guess, `Unprotected` where one is excluded."""
    truth = Fraction(mechanism.truth)
    if truth in (0, 1):
        raise Unprotected("RandomisedResponse that excludes an answer")
    if truth * mechanism.categories != 1:
        yield RandomisedAnswers(truth, mechanism.categories)


def _sampled(
    event: GaussianStep | LaplaceStep, rate: Fraction, order: Order
) -> Iterator[DominatingPair]:
    """Yield the pair of a sampled shift; the shift itself where everybody is drawn."""
    if rate == 0:
        return
    for base in _shift(event):
        yield base if rate == 1 else Sampled(base, rate, order)


def _drawn(mechanism: AccumulatedPoisson, order: Order) -> Iterator[DominatingPair]:
    """Yield the pair of a record that is in each of several samples by itself."""
    rate, batches = Fraction(mechanism.rate), mechanism.batches
    for base in _shift(mechanism.event) if rate else ():
        assert isinstance(base, GaussianShift)
        if rate == 1:
            yield GaussianShift(base.mu_squared * batches**2)
        elif batches == 1:
            yield Sampled(base, rate, order)
        else:
            yield DrawnShifts(base.mu_squared, rate, batches, order)


def _with_replacement(
    mechanism: SampledWithReplacement, adjacency: Adjacency
) -> Iterator[DominatingPair]:
    """Yield what dominates a batch of m draws out of n records, of which one is replaced.

    Fix what each place of the batch holds where it is not the differing record, which it is with
    probability 1/n, independently. With p_k the probability that it is in k places, and P_k, Q_k
    the release given that, P_0 = Q_0, for either record; P_k is a mixture, over the sets of k
    places, of normal laws whose means are at most kΔ from those of Q_k and of P_0. Share out p_0 as
    c_1 + c_2 + ...; by joint convexity

        H_γ(Σ p_k P_k ‖ Σ p_k Q_k) <= Σ_{k>0} H_γ(p_k P_k + c_k P_0 ‖ p_k Q_k + c_k P_0)

    where H_γ of a pair of measures is ∫ (dP - γ dQ)⁺. For γ >= 1 the k-th is, with t_k = (γ-1) c_k,

        p_k ∫ (dP_k - γ dQ_k - t_k/p_k dP_0)⁺ <= p_k H_{γ + t_k/p_k}(a shift by kΔ)

    since γ dQ_k + t_k/p_k dP_0 is (γ + t_k/p_k) times a mixture of Q_k and P_0, either of which is
    a mixture as far from P_k as kΔ (advanced joint convexity: Balle, Barthe, Gaboardi 2018,
    Theorems 2 and 10). The best shares may depend on γ: `CopiesDrawn`. Its profile is convex, as
    the minimum of a convex function of γ and t over a convex set. As all is the same with the two
    records exchanged, it holds for γ < 1. What was fixed is averaged over, by joint convexity.

    Raises `NoDominatingPair` but under replace-one: a record more or less changes n, and with it
    the law of every draw; a null record is no further from another than from its own.
    """
    if adjacency is not Adjacency.REPLACE_ONE:
        raise NoDominatingPair(mechanism, "a batch drawn with replacement under replace-one")
    for base in _shift(mechanism.event):
        assert isinstance(base, GaussianShift)
        if mechanism.records == 1:
            yield GaussianShift(base.mu_squared * mechanism.batch**2)
        elif mechanism.batch == 1:
            yield Sampled(base, Fraction(1, mechanism.records), Order.SYMMETRISED)
        elif mechanism.batch > MOST_COPIES * mechanism.records:
            raise NoDominatingPair(mechanism, f"at most {MOST_COPIES} draws a record")
        else:
            yield CopiesDrawn(base.mu_squared, mechanism.batch, mechanism.records)


def _replaced(step: GaussianStep, rate: Fraction) -> Iterator[DominatingPair]:
    """Yield what dominates a Poisson sample of which a record is replaced.

    In the sample it brings u in one data set and v in the other, both at most C = Δ/2. Given the
    other records, with w = (1-q)(γ-1)/q and γ >= 1, for every event A

        ((1-q)N(0) + qN(u))(A) - γ((1-q)N(0) + qN(v))(A) = q (N(u) - γN(v) - wN(0))(A)
            <= q (λ H_{γ/λ}(N(u)‖N(v)) + (1-λ) H_{w/(1-λ)}(N(u)‖N(0))),    0 < λ < 1.

    A Gaussian profile grows with the distance, which is at most 2C in the first and C in the
    second. Of u = C and v = -C on a line both are attained by the same half-line, the one on which
    φ_C > γφ_{-C} + wφ_0, with λ = γφ_{-C}/φ_C at its end. So (1-q)N(0) + qN(C) against (1-q)N(0) +
    qN(-C) dominates; for γ < 1 exchange both; what holds given the others holds of their mixture,
    by joint convexity. These two are met where the others bring nothing.
    """
    for base in _shift(step):
        if rate and isinstance(base, GaussianShift):
            # (Δ/2)² over σ²
            yield base if rate == 1 else ReplacedInSample(base.mu_squared / 4, rate)


def mixture_share(
    mechanism: GaussianMixtureStep,
    adjacency: Adjacency,
    order: Order,
    times: int,
    delta: float = _USUAL_DELTA,
) -> Fraction:
    """Return the share of the noise that should hide the constant shift; any in (0, 1) is valid."""
    constant, sampled, _ = _shifts(mechanism, adjacency, order)
    if not (constant and sampled):
        return Fraction(1, 2)
    rate, hidden = Fraction(mechanism.rate), mechanism.hides_sample
    # few distinct questions, so that their answers are found again
    about = times if times < _MANY else 1 << times.bit_length()
    return _split(constant, sampled, rate, hidden, about, 2.0 ** round(log2(delta)))


def mixture_pairs(
    mechanism: GaussianMixtureStep, adjacency: Adjacency, order: Order, share: Fraction
) -> Iterator[DominatingPair]:
    """Split the noise: one share hides the constant shift, the other the sampled one.

    c + r_J + N(0, σ²) is a function of c + N(0, tσ²) and r_J + N(0, (1-t)σ²), so composing the two
    bounds the step for every t; see `_split` for the choice. A fixed batch is symmetrised; so is
    zero-out, whose sample may be a fixed batch: another record's message may then stand where the
    record's would, twice as far apart. Where it is not known what a drawn record brings
    (`hides_sample`), the sample is revealed: H_γ is jointly convex.
    """
    constant, sampled, order = _shifts(mechanism, adjacency, order)
    if sampled:
        base = GaussianShift(sampled / (1 - share) if constant else sampled)
        yield _met(base, Fraction(mechanism.rate), order if mechanism.hides_sample else None)
    if constant:
        yield GaussianShift(constant / share if sampled else constant)


def _shifts(
    mechanism: GaussianMixtureStep, adjacency: Adjacency, order: Order
) -> tuple[Fraction, Fraction, Order]:
    """Return the squared shifts in units of the noise, constant and sampled, and their order."""
    constant, sampled = mechanism.constant.squared, mechanism.sampled.squared
    if mechanism.rate == 0:
        sampled = Fraction(0)
    if constant == 0 and sampled == 0:
        return Fraction(0), Fraction(0), order
    if mechanism.noise_std == 0:
        raise Unprotected("GaussianMixtureStep without noise")
    variance = Fraction(mechanism.noise_std) ** 2
    if adjacency is Adjacency.ZERO_OUT_ONE:
        sampled *= 4
    if adjacency is not Adjacency.ADD_REMOVE_ONE:
        order = Order.SYMMETRISED
    return constant / variance, sampled / variance, order


def _met(base: GaussianShift, rate: Fraction, order: Order | None) -> DominatingPair:
    """Return the pair of a shift met with a probability, by a revealed sample without order."""
    if rate == 1:
        return base
    return RevealedSample(base, rate) if order is None else Sampled(base, rate, order)


@lru_cache(maxsize=256)
def _split(
    constant: Fraction, sampled: Fraction, rate: Fraction, hidden: bool, times: int, delta: float
) -> Fraction:
    """Return the share of the noise for the constant part that makes so many runs cheapest at δ.

    Every share is valid. Of a few the cheapest by one moment is taken, and from there steps to
    cheaper ones, by what they cost in doubles: ε has one minimum over the shares. A mixture is
    priced that stands first, which costs most, or about what a symmetrised one does.
    """
    # one function needs the engine, everybody else a table of pairs
    from .revealed_sample import revealed
    from .routes import epsilons_upper
    from .saddle import epsilon_by_moments

    def pairs(place: int) -> dict[DominatingPair, int]:
        share = _SHARES[place]
        met = _met(
            GaussianShift(sampled / (1 - share)), rate, Order.MIXTURE_FIRST if hidden else None
        )
        found: dict[DominatingPair, int] = {met: times}
        shift = GaussianShift(times * constant / share)
        return found | {shift: found.get(shift, 0) + 1}

    @cache
    def cost(place: int) -> float:
        return float(epsilons_upper(pairs(place), np.array([delta]), np.zeros(1))[0])

    here = min(
        range(0, len(_SHARES), _COARSE),
        key=lambda place: epsilon_by_moments(revealed(pairs(place)), log(delta))[0],
    )
    stride = _COARSE
    while stride:
        near = (max(here - stride, 0), here, min(here + stride, len(_SHARES) - 1))
        best = min(near, key=cost)
        stride, here = stride if best != here else stride // 2, best
    return _SHARES[here]
