"""Releases as people state them: mechanism, sensitivity or clip norm, noise, rounds, sampling.

`None` is "not stated". A clip norm says what a sensitivity is of, and so what a record moves under
each relation; a sensitivity by itself is taken as stated.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import ceil, exp

from ...accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision
from ...accounting.training_runs import Sampling, epochs_begun, fewest_epochs_begun
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import InvalidParameter, require_nonnegative, require_positive
from ...mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
)
from ...mechanisms.sensitivity import (
    Norm,
    Sensitivity,
    declared,
    float_up,
    mean_of_bounded,
    root_up,
    scaled,
    sum_of_bounded,
)

ROOM = 1 + Fraction(1, 2**44)
"""A promised decimal and a computed root of it are the same number."""

_REASON = "the sensitivity that the claim states"
"""The reason of every sensitivity that a claim states: nobody has derived it."""

_ROUNDED = f"{_REASON}, rounded up as for whole numbers, which alone discrete noise hides"
_STATED_LOSS = "the epsilon of a step that the claim states"
EPSILON_OF_STEP = "epsilon of a step"
"""What is missing of an exponential mechanism."""
NUMBER_OF_ANSWERS = "number of answers"
"""What is missing of randomised response: the more there are, the rarer is each false one."""

_OWN_SAMPLE = "the mean of a sample of unknown size moves by a clip norm where it holds one record"
"""Why a mean of a hidden sample of unknown size has no smaller sensitivity."""

# beyond this the false answer's probability is too coarse in a double
_MOST_EPSILON = 30.0
"""The largest epsilon of a step: the false answer has probability near e^-30 = 1e-13, of which a
double near 1 keeps three digits."""


class MechanismKind(Enum):
    """The mechanisms that a claim can name, by the texts of claim files."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    DISCRETE_LAPLACE = "discrete-laplace"
    RANDOMISED_RESPONSE = "randomised-response"
    L2_EXPONENTIAL = "l2-exponential"
    """Noise of density ∝ exp(-‖v‖₂ / scale) on a vector (Zhang, Zhu 2017): pure, with loss l2
    sensitivity / scale, and of no other loss known here."""

    EXPONENTIAL = "exponential"
    """The exponential mechanism of a stated epsilon (McSherry, Talwar 2007)."""

    PRIVATE = "private"
    """Any mechanism that is (epsilon, delta)-DP, of which nothing else is stated."""

    UNPROTECTED = "unprotected"


class Averaging(Enum):
    """What a sum of clipped vectors is divided by before noise is added.

    A sum is divided after clipping and before noise: by a number that is public, or by the size of
    the batch itself, which a record left out changes.
    """

    SUM = "nothing"
    PUBLIC = "a public number"
    OWN = "their own number"


_GAUSSIAN = (MechanismKind.GAUSSIAN, MechanismKind.DISCRETE_GAUSSIAN)
"""Kinds whose sensitivity is in the l2 norm."""
_ADDITIVE = (MechanismKind.GAUSSIAN, MechanismKind.LAPLACE)
"""Kinds of real noise on real vectors: those for which clip norms and sampling have a meaning
here."""
_WITHOUT_SENSITIVITY = (
    MechanismKind.RANDOMISED_RESPONSE,
    MechanismKind.EXPONENTIAL,
    MechanismKind.PRIVATE,
)
"""Kinds that are stated by a probability or an epsilon alone."""


@dataclass(frozen=True, slots=True)
class StatedRelease:
    """Releases of one kind, as a claim states them; None is "not stated".

    Args:
        kind: the mechanism.
        sensitivity: l2 for Gaussian and l2-exponential noise, l1 for Laplace noise; of discrete
            noise, which hides whole numbers alone, rounded up to a length that whole numbers can
            have.
        noise: its standard deviation, Laplace and l2-exponential noise's scale; for randomised
            response the probability of the true answer. A tuple has one for each round.
        rounds: how often; of shuffled epochs, the number of steps.
        sampling: how records are chosen; must be stated where `rate` or `batch` is.
        rate: of Poisson sampling, or the part of the records that a shuffled batch has.
        batch, records: of a fixed or a shuffled batch.
        party: whose records; None where a record may be anywhere.
        name: what was released.
        clip_norm: in place of `sensitivity`: of each record's vector, whose sum is released, in the
            norm of the mechanism.
        averaging: what the sum is divided by.
        divisor: that number; of `Averaging.OWN`, the least it may be.
        step_epsilon: of a `MechanismKind.PRIVATE` or `MechanismKind.EXPONENTIAL`.
        step_delta: of a `MechanismKind.PRIVATE`.
        multiplied: whether `noise` is a multiplier of something that is not stated: of the
            sensitivity, then 1, or of a clip norm, of which a replaced record moves two.
        categories: of randomised response, how many answers there are.
    """

    kind: MechanismKind
    sensitivity: float | None = None
    noise: float | tuple[float, ...] | None = None
    rounds: int | None = None
    sampling: Sampling | None = None
    rate: float | None = None
    batch: int | None = None
    records: int | None = None
    party: str | None = None
    name: str = "release"
    clip_norm: float | None = None
    averaging: Averaging = Averaging.SUM
    divisor: int | None = None
    step_epsilon: float | None = None
    step_delta: float | None = None
    multiplied: bool = False
    categories: int | None = 2

    def __post_init__(self) -> None:
        if self.sampling is Sampling.NONE and (self.rate is not None or self.batch is not None):
            raise InvalidParameter("sampling", "none", "another scheme where rate or batch stands")
        if self.sampling not in (None, Sampling.NONE) and self.kind not in _ADDITIVE:
            raise InvalidParameter("sampling", self.sampling.value, "with gaussian or laplace only")
        if self.sampling in (Sampling.TRUNCATED_POISSON, Sampling.CYCLIC_POISSON):
            allowed = "another scheme: a claim states neither a largest batch nor a cycle"
            raise InvalidParameter("sampling", self.sampling.value, allowed)
        if self.sampling is Sampling.WITH_REPLACEMENT and self.kind is not MechanismKind.GAUSSIAN:
            raise InvalidParameter("sampling", self.sampling.value, "with gaussian only")
        if self.clip_norm is not None:
            require_positive("clip_norm", self.clip_norm)
            if self.sensitivity is not None or self.kind not in _ADDITIVE:
                allowed = "in place of sensitivity, with gaussian or laplace noise"
                raise InvalidParameter("clip_norm", self.clip_norm, allowed)
        if (self.averaging is Averaging.SUM) != (self.divisor is None):
            raise InvalidParameter("divisor", self.divisor, "stated with averaging, and only there")
        if self.averaging is not Averaging.SUM and self.clip_norm is None:
            raise InvalidParameter("averaging", self.averaging.value, "with clip_norm only")
        own = self.batch or self.records
        if self.averaging is Averaging.OWN and own and self.divisor and self.divisor > own:
            raise InvalidParameter("divisor", self.divisor, f"at most {own}, their own number")
        if isinstance(self.noise, tuple) and self.rounds != len(self.noise):
            raise InvalidParameter("rounds", self.rounds, f"{len(self.noise)}: as many as noises")
        if self.step_epsilon is not None and not 0 <= self.step_epsilon <= _MOST_EPSILON:
            raise InvalidParameter("epsilon", self.step_epsilon, f"in [0, {_MOST_EPSILON:g}]")
        if self.step_delta is not None and not 0 <= self.step_delta < 1:
            raise InvalidParameter("delta", self.step_delta, "in [0, 1)")
        if self.kind is MechanismKind.PRIVATE and self.party is not None:
            raise InvalidParameter("party", self.party, "left out where steps are of any mechanism")

    @property
    def missing(self) -> Iterator[str]:
        """What is not stated and matters."""
        if self.kind is MechanismKind.UNPROTECTED:
            return
        if self.kind is MechanismKind.PRIVATE:
            if self.step_epsilon is None or self.step_delta is None:
                yield "epsilon and delta of a step"
        elif self.kind is MechanismKind.EXPONENTIAL:
            if self.step_epsilon is None:
                yield EPSILON_OF_STEP
        elif self.noise is None:
            yield "noise"
        if self.kind is MechanismKind.RANDOMISED_RESPONSE and self.categories is None:
            yield NUMBER_OF_ANSWERS
        measured = self.sensitivity is not None or self.clip_norm is not None
        if not measured and self.kind not in _WITHOUT_SENSITIVITY:
            yield "sensitivity"
        if self.rounds is None:
            yield "number of rounds"
        if self.sampling is None and self.sampled:
            yield "sampling scheme"
        if self.sampled and self.share is None:
            yield "sampling rate"

    @property
    def sampled(self) -> bool:
        """Whether the claim speaks of a sample at all, as a mean over "their own number" does."""
        stated = self.rate is not None or self.batch is not None
        if self.sampling is None:
            return stated or self.averaging is Averaging.OWN
        return self.sampling is not Sampling.NONE

    @property
    def taken_whole(self) -> bool:
        """Whether all records are taken to be in each release, as nothing is said of a sample."""
        return self.sampling is None and not self.sampled and self.kind in _ADDITIVE

    @property
    def share(self) -> Fraction | None:
        """The rate, or batch over records."""
        if self.rate is not None:
            return Fraction(self.rate)
        if self.batch is None or self.records is None:
            return None
        return Fraction(self.batch, self.records)

    def delta_of_step(self, *, doubled: bool) -> float:
        """Return the delta of a step, (1 + e^epsilon) times it where two such steps are one.

        Source: Dwork, Roth 2014, Theorem 2.2, for deltas as in its proof.
        """
        delta = self.step_delta or 0.0
        if not (doubled and delta):
            return delta
        assert self.step_epsilon is not None
        grown = Fraction(exp(self.step_epsilon)) * (1 + Fraction(1, 1 << 50))
        return min(float_up(Fraction(delta) * (1 + grown)), 1.0)

    @property
    def priced_sensitivity(self) -> Fraction | None:
        """The sensitivity; of discrete noise, the least >= it of a vector of whole numbers."""
        if self.sensitivity is None:
            return None
        require_nonnegative("sensitivity", self.sensitivity)
        stated = Fraction(self.sensitivity)
        if self.kind is MechanismKind.DISCRETE_LAPLACE:
            return max(stated, Fraction(ceil(stated / ROOM)))
        if self.kind is MechanismKind.DISCRETE_GAUSSIAN:
            return max(stated, root_up(Fraction(ceil(stated**2 / ROOM))))
        return stated

    @property
    def is_rounded(self) -> bool:
        """Whether what is priced is more than what is stated."""
        priced = self.priced_sensitivity
        return priced is not None and self.sensitivity is not None and priced > self.sensitivity

    def mechanisms(
        self,
        adjacency: Adjacency,
        scheme: Sampling,
        *,
        doubled: bool,
        least: bool,
        amplified: bool = True,
    ) -> tuple[tuple[Mechanism, int], ...]:
        """Return the mechanisms and how often each ran; nothing that they need may be missing.

        Args:
            adjacency: the relation promised.
            scheme: how records are chosen.
            amplified: whether it makes a release cheaper; False where the rate is not stated.
            doubled: whether a stated sensitivity, or a step's epsilon, is of a record left out, and
                one is replaced.
            least: whether what must be rounded is rounded to cost less, or more.

        Shuffled epochs give a record one release an epoch (`accounting.training_runs`), whatever
        the noise of that release: the smallest one is the dearest.
        """
        if self.kind is MechanismKind.UNPROTECTED:
            reason = f"{self.name}: without a mechanism, says the claim"
            return ((UnprotectedRelease(reason), self.rounds or 1),)
        if self.kind in (MechanismKind.PRIVATE, MechanismKind.EXPONENTIAL):
            assert self.step_epsilon is not None
            epsilon = self.step_epsilon * (2 if doubled else 1)
            loss = declared(epsilon, _STATED_LOSS, adjacency=adjacency, norm=Norm.L1)
            return ((PureStep(loss, 1.0), self.rounds or 1),)
        assert self.noise is not None
        if self.kind is MechanismKind.RANDOMISED_RESPONSE:
            answers = self.categories or 2
            schedule = self._schedule(scheme)
            return tuple((RandomisedResponse(p, answers), times) for p, times in schedule)
        # a mean over a sample's own number moves by the scheme, at whatever rate
        size = self._sensitivity(adjacency, scheme, least=least)
        scheme = scheme if amplified else Sampling.NONE
        if doubled and self.clip_norm is None:
            size = scaled(size, 2)
        made: Mapping[MechanismKind, Callable[[Sensitivity, float], Mechanism]] = {
            MechanismKind.GAUSSIAN: GaussianStep,
            MechanismKind.LAPLACE: LaplaceStep,
            MechanismKind.DISCRETE_GAUSSIAN: DiscreteGaussianStep,
            MechanismKind.DISCRETE_LAPLACE: DiscreteLaplaceStep,
            # a norm moves by no more than its vector: the log-density by sensitivity / scale
            MechanismKind.L2_EXPONENTIAL: PureStep,
        }
        return tuple(
            (self._sampled(made[self.kind](size, noise), scheme), times)
            for noise, times in self._schedule(scheme, least=least)
        )

    def _schedule(self, scheme: Sampling, *, least: bool = False) -> Iterator[tuple[float, int]]:
        """Yield each noise and in how many releases of it a record may be."""
        noises = self.noise if isinstance(self.noise, tuple) else (self.noise or 0.0,)
        if scheme is Sampling.SHUFFLED and self.share:
            # in one batch of an epoch (see `accounting.training_runs`), of whatever noise that has
            begun = fewest_epochs_begun if least else epochs_begun
            yield max(noises) if least else min(noises), begun(self.rounds or 1, self.share)
        elif isinstance(self.noise, tuple):
            yield from Counter(noises).items()
        else:
            yield noises[0], self.rounds or 1

    @property
    def _last_batch(self) -> int:
        """How few records the last batch of a shuffled epoch may have, if it is kept."""
        if self.batch is not None and self.records is not None:
            return self.records % self.batch or self.batch
        whole = self.rate is not None and 1.0 / max(1, round(1.0 / self.rate)) == self.rate
        return (self.divisor or 1) if whole else 1

    def _sensitivity(self, adjacency: Adjacency, scheme: Sampling, *, least: bool) -> Sensitivity:
        """Return the sensitivity of one release, by the relation promised.

        Of a clip norm: a sum of clipped vectors moves by it where a record is left out, and by
        twice as much where it is replaced; a mean is divided by the number that the claim names, or
        by that of a shuffled epoch's last batch, if it is smaller and not `least`.
        """
        norm = Norm.L2 if self.kind in _GAUSSIAN else Norm.L1
        if self.clip_norm is None:
            assert self.priced_sensitivity is not None
            reason = _ROUNDED if self.is_rounded else _REASON
            return declared(self.priced_sensitivity, reason, adjacency=adjacency, norm=norm)
        if self.averaging is Averaging.OWN and scheme is Sampling.POISSON:
            # a Poisson sample may hold one record: its mean moves by the whole clip norm
            one = declared(self.clip_norm, _OWN_SAMPLE, adjacency=adjacency, norm=norm)
            return scaled(one, 2) if adjacency is Adjacency.REPLACE_ONE else one
        if self.averaging is Averaging.OWN:
            assert self.divisor is not None
            kept = scheme is Sampling.SHUFFLED and not least
            divisor = min(self.divisor, self._last_batch) if kept else self.divisor
            size = mean_of_bounded(self.clip_norm, divisor, adjacency)
        else:
            size = sum_of_bounded(self.clip_norm, adjacency)
            if self.divisor is not None:
                size = scaled(size, Fraction(1, self.divisor))
        if norm is Norm.L2:
            return size
        # the same bound by the triangle inequality, in the norm of the clipping
        return declared(size.root, "a sum of clipped vectors", adjacency=adjacency, norm=norm)

    def _sampled(self, step: Mechanism, scheme: Sampling) -> Mechanism:
        """Return the step on a sample by this scheme; the step itself where all records enter.

        A rate is rounded up, since more sampling costs more.
        """
        if not isinstance(step, GaussianStep | LaplaceStep):
            return step
        if scheme is Sampling.POISSON:
            assert self.share is not None
            return PoissonSampled(step, float_up(self.share))
        if scheme in (Sampling.FIXED_BATCH, Sampling.WITH_REPLACEMENT):
            assert self.batch is not None
            assert self.records is not None
            if scheme is Sampling.FIXED_BATCH:
                return SampledWithoutReplacement(step, self.batch, self.records)
            if not isinstance(step, GaussianStep):
                return step  # a reading that is refused before it is priced
            return SampledWithReplacement(step, self.batch, self.records)
        return step


def worst_private(epsilon: float, *, least: bool) -> RandomisedResponse:
    """Return the mechanism that dominates all that are epsilon-DP, its probability rounded.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3: randomised response of probability
    1 / (1 + e^-epsilon).

    Args:
        epsilon: in [0, 30].
        least: whether the probability of the truth is rounded down, to cost less; otherwise up.
    """
    with precision(BITS):
        truth = Enclosure.from_ball(1 / (1 + (-ball_of(epsilon)).exp()))
    return RandomisedResponse(truth.lower_float if least else truth.upper_float)
