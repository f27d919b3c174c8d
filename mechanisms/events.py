"""Events: what was released through which mechanism, as an accountant needs to know it.

A *mechanism* says how much a release can tell (sensitivity and noise); a *context* says where it
happened. Together they are an event. Mechanisms are frozen, compare by value and coalesce whatever
their context. The meaning of a mechanism never changes once released; a new meaning gets a new
name, and `SCHEMA_VERSION` changes when the written form does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import nextafter, sqrt
from sys import float_info

from .adjacency import Adjacency, require_same_adjacency
from .errors import InvalidParameter, require_nonnegative, require_positive_int, require_rate
from .hiding import HALVED, asked_of, sums_records
from .refusals import Closed
from .sensitivity import Norm, Sensitivity, is_whole

SCHEMA_VERSION = 1
"""Of the written form (`encoding`); a reader refuses any other."""

MOST_TIMES = 10**18
"""The most runs of one `Repeated`, nested ones multiplied; accountants answer at once up to it."""


def _require_norm(sensitivity: Sensitivity, norm: Norm) -> None:
    if not isinstance(sensitivity, Sensitivity):
        raise InvalidParameter("sensitivity", sensitivity, "a Sensitivity; `declared` makes one")
    if sensitivity.norm is not norm:
        raise InvalidParameter("sensitivity.norm", sensitivity.norm, f"equal to {norm}")


def _store_exact(mechanism: object, name: str) -> None:
    """Make a checked number the binary64 that its written form can hold, or refuse it."""
    value = getattr(mechanism, name)
    if value > float_info.max or float(value) != value:
        raise InvalidParameter(name, value, "exactly representable as a binary64")
    object.__setattr__(mechanism, name, float(value))


@dataclass(frozen=True, slots=True)
class GaussianStep:
    """A quantity of known l2 sensitivity plus independent normal noise on every coordinate.

    Zero noise is an exact release and costs infinity, unless the sensitivity is zero. For
    sensitivity Δ and noise σ the step is (Δ/σ)-GDP (Dong, Roth, Su 2022, Theorem 2.7).

    Args:
        sensitivity: of the whole released block, in l2.
        noise_std: standard deviation σ >= 0 of each coordinate's noise, in units of the quantity.

    Raises `InvalidParameter` for a sensitivity in another norm, or a number that no binary64 holds.
    """

    sensitivity: Sensitivity
    noise_std: float

    def __post_init__(self) -> None:
        _require_norm(self.sensitivity, Norm.L2)
        require_nonnegative("noise_std", self.noise_std)
        _store_exact(self, "noise_std")


@dataclass(frozen=True, slots=True)
class LaplaceStep:
    """A quantity of known l1 sensitivity plus independent Laplace noise on every coordinate.

    For sensitivity Δ and scale b the step is (Δ/b)-DP (Dwork, McSherry, Nissim, Smith 2006).

    Args:
        sensitivity: of the whole released block, in l1.
        scale: b >= 0, the mean absolute value of the noise, in units of the quantity.

    Raises `InvalidParameter` as `GaussianStep` does.
    """

    sensitivity: Sensitivity
    scale: float

    def __post_init__(self) -> None:
        _require_norm(self.sensitivity, Norm.L1)
        require_nonnegative("scale", self.scale)
        _store_exact(self, "scale")


@dataclass(frozen=True, slots=True)
class DiscreteGaussianStep:
    """An integer vector of known l2 sensitivity plus discrete Gaussian noise.

    Source: Canonne, Kamath, Steinke 2020.

    Args:
        sensitivity: of the vector, in l2.
        noise_std: the parameter σ >= 0 of the mass function proportional to exp(-k²/(2 σ²)); the
            standard deviation is slightly less.

    Raises `InvalidParameter` as `GaussianStep` does, and for a quantity that is no vector of whole
    numbers by its derivation.
    """

    sensitivity: Sensitivity
    noise_std: float

    def __post_init__(self) -> None:
        _require_norm(self.sensitivity, Norm.L2)
        is_whole(self.sensitivity.derivation)
        require_nonnegative("noise_std", self.noise_std)
        _store_exact(self, "noise_std")


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceStep:
    """An integer vector of known l1 sensitivity plus noise of mass ∝ exp(-|k|/scale).

    Args:
        sensitivity: of the vector, in l1.
        scale: >= 0, in the vector's whole units.

    Raises `InvalidParameter` as `DiscreteGaussianStep` does.
    """

    sensitivity: Sensitivity
    scale: float

    def __post_init__(self) -> None:
        _require_norm(self.sensitivity, Norm.L1)
        is_whole(self.sensitivity.derivation)
        require_nonnegative("scale", self.scale)
        _store_exact(self, "scale")


WHOLE_NUMBERS = "what discrete noise is added to is whole numbers"
"""Assumed where a sensitivity's derivation does not show it."""


def whole_numbers_assumed(mechanism: object) -> tuple[str, ...]:
    """Return the assumption that a mechanism with discrete noise makes of its quantity, if any."""
    if not isinstance(mechanism, DiscreteGaussianStep | DiscreteLaplaceStep):
        return ()
    return () if is_whole(mechanism.sensitivity.derivation) else (WHOLE_NUMBERS,)


@dataclass(frozen=True, slots=True)
class PureStep:
    """A mechanism of which only its largest privacy loss is known: sensitivity / scale.

    Whatever the output, its log-density moves by at most sensitivity / scale between neighbours, so
    that it is (sensitivity / scale, 0)-differentially private. Among these are the exponential
    mechanism (McSherry, Talwar 2007), permute-and-flip (McKenna, Sheldon 2020), noise of density
    ∝ exp(-‖v‖₂ / scale) on a vector of that l2 sensitivity (Chaudhuri, Monteleoni, Sarwate 2011;
    Zhang, Zhu 2017), and any mechanism whose epsilon is stated and no more. What dominates all of
    them is randomised response between two answers (Kairouz, Oh, Viswanath 2015, Theorem 3.3).

    The sensitivity is of a log-density, a number, so that its norm is l1.
    """

    sensitivity: Sensitivity
    scale: float

    def __post_init__(self) -> None:
        _require_norm(self.sensitivity, Norm.L1)
        require_nonnegative("scale", self.scale)
        _store_exact(self, "scale")


@dataclass(frozen=True, slots=True)
class RandomisedResponse(Closed):
    """One of `categories` answers: the true one with probability `truth`, else any other alike.

    A record is one person's answer, so the relation is `REPLACE_ONE`.

    Args:
        truth: 0 or in [2^-1000, 1]: of less, no double holds the loss.
        categories: at least 2.
    """

    truth: float
    categories: int = 2

    def __post_init__(self) -> None:
        require_rate("truth", self.truth)
        _store_exact(self, "truth")
        if 0 < self.truth < 2.0**-1000:
            raise InvalidParameter("truth", self.truth, "0 or in [2^-1000, 1]")
        require_positive_int("categories", self.categories)
        if self.categories < 2:
            raise InvalidParameter("categories", self.categories, "a whole number in [2, inf)")


class _OnASample:
    """Compares numbers, and what hiding the sample rests on: equal mechanisms cost the same."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        if self._numbers != other._numbers:
            return False
        mine, its = self._drawn.derivation, other._drawn.derivation
        return mine == its or asked_of(mine) == asked_of(its)

    def __hash__(self) -> int:
        return hash(self._numbers)

    @property
    def _numbers(self) -> tuple[object, ...]:
        """Every field, in order."""
        return tuple(getattr(self, name) for name in self.__slots__)

    @property
    def _drawn(self) -> Sensitivity:
        """What a drawn record moves."""
        found: Sensitivity = self.event.sensitivity  # type: ignore[attr-defined]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMixtureStep(_OnASample):
    """A Gaussian step whose shift has an always-present part and a part of a sampled record.

    Between neighbours the released mean moves by `constant` always and by `sampled` more when the
    differing record is drawn; the sample stays hidden.

    Hiding the sample helps under replace-one only if a drawn record moves the mean by at most
    `sampled`, whatever the others' messages; a record in both data sets that brings more would show
    whether it was drawn. What says so is the derivation: a sum of bounded vectors, one a drawn
    record, scaled and mapped by public numbers. An event made by hand, whose `sampled` is declared,
    does not say so, and costs what it costs if the sample is shown.

    Args:
        constant: the part that always moves, in l2, in units of the release.
        sampled: what a drawn record adds, likewise.
        rate: probability that the differing record is drawn; batch/records for a fixed batch.
        noise_std: standard deviation of each coordinate's noise.

    Raises `InvalidParameter` as `GaussianStep` does, `AdjacencyMismatch` for parts that speak of
    different relations.
    """

    constant: Sensitivity
    sampled: Sensitivity
    rate: float
    noise_std: float

    def __post_init__(self) -> None:
        _require_norm(self.constant, Norm.L2)
        _require_norm(self.sampled, Norm.L2)
        require_same_adjacency(self.constant.adjacency, self.sampled.adjacency)
        require_rate("rate", self.rate)
        _store_exact(self, "rate")
        require_nonnegative("noise_std", self.noise_std)
        _store_exact(self, "noise_std")

    @property
    def _drawn(self) -> Sensitivity:
        return self.sampled

    @property
    def hides_sample(self) -> bool:
        """Whether a drawn record is known to move the mean by at most `sampled`."""
        if self.sampled.adjacency is not Adjacency.REPLACE_ONE:
            return (
                True  # null and absent records bring nothing: what moves the mean is all there is
            )
        return self.sampled.squared == 0 or sums_records(self.sampled.derivation)


@dataclass(frozen=True, slots=True, eq=False)
class PoissonSampled(_OnASample):
    """A mechanism on a hidden sample: each record independently with probability `rate`.

    Args:
        event: the mechanism, with its sensitivity to a record that was drawn.
        rate: in [0, 1].
    """

    event: GaussianStep | LaplaceStep
    rate: float

    def __post_init__(self) -> None:
        _require_kind("event", self.event, (GaussianStep, LaplaceStep))
        require_rate("rate", self.rate)
        _store_exact(self, "rate")

    @property
    def bounds_each_record(self) -> bool:
        """Whether a drawn record is known to move the mean by at most half of the sensitivity.

        So a sum of bounded vectors, scaled and mapped by public numbers, says where a record is
        replaced: its sensitivity is twice the bound. On a lattice a record moves by more.
        """
        return sums_records(self.event.sensitivity.derivation, HALVED)


@dataclass(frozen=True, slots=True, eq=False)
class AccumulatedPoisson(_OnASample):
    """Gaussian noise, once, on the sum of several Poisson samples: gradients that accumulate.

    Each of `batches` samples is drawn from all records and by itself, so that a record is in M ~
    Bin(batches, rate) of them and moves the sum by up to M sensitivities. Parts in which one sample
    is computed are disjoint: no record is in two of them, and the step is `PoissonSampled`.

    Args:
        event: the mechanism, with its sensitivity to a record that was drawn once.
        rate: of each sample, in [0, 1].
        batches: samples that are summed, at least 1.
    """

    event: GaussianStep
    rate: float
    batches: int

    def __post_init__(self) -> None:
        _require_kind("event", self.event, (GaussianStep,))
        require_rate("rate", self.rate)
        _store_exact(self, "rate")
        require_positive_int("batches", self.batches)
        if self.batches > MOST_TIMES:
            raise InvalidParameter("batches", self.batches, "at most 10^18")

    @property
    def share(self) -> PoissonSampled:
        """One sample's sum with its share of the variance, its noise rounded down.

        The step is the sum of so many of these, hence costs no more than all of them together.
        """
        whole = self.event.noise_std
        noise = whole / sqrt(self.batches)
        while Fraction(noise) ** 2 * self.batches > Fraction(whole) ** 2:
            noise = nextafter(noise, 0.0)
        return PoissonSampled(GaussianStep(self.event.sensitivity, noise), self.rate)


@dataclass(frozen=True, slots=True, eq=False)
class SampledWithoutReplacement(_OnASample):
    """A mechanism on a hidden uniform subset of exactly `batch` of `records` records.

    Args:
        event: the mechanism, with its sensitivity to a record that was drawn.
        batch: in [1, records].
        records: of the whole data set, public.
    """

    event: GaussianStep | LaplaceStep
    batch: int
    records: int

    def __post_init__(self) -> None:
        _require_kind("event", self.event, (GaussianStep, LaplaceStep))
        require_positive_int("batch", self.batch)
        require_positive_int("records", self.records)
        if self.batch > self.records:
            raise InvalidParameter("batch", self.batch, f"in [1, records={self.records}]")


@dataclass(frozen=True, slots=True, eq=False)
class SampledWithReplacement(_OnASample):
    """Gaussian noise on a hidden batch of `batch` draws, each one of all `records` uniformly.

    A record may stand in several places of the batch, and fills M ~ Bin(batch, 1 / records) of
    them.

    Args:
        event: the mechanism, with its sensitivity to one place of the batch that is filled
            otherwise.
        batch: draws, at least 1; there may be more of them than records.
        records: of the whole data set, public.
    """

    event: GaussianStep
    batch: int
    records: int

    def __post_init__(self) -> None:
        _require_kind("event", self.event, (GaussianStep,))
        require_positive_int("batch", self.batch)
        require_positive_int("records", self.records)


@dataclass(frozen=True, slots=True)
class UnprotectedRelease:
    """A function of private data released without a mechanism: the cost is infinite.

    Args:
        reason: a sentence that says what was released, for the ledger and the report.
    """

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise InvalidParameter("reason", self.reason, "a sentence that says what was released")


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same mechanism, with fresh randomness, `times` times; at most `MOST_TIMES` in all.

    Args:
        event: the mechanism. Another `Repeated` is multiplied out: what it repeats stands here.
        times: at least 1.
    """

    event: "Mechanism"
    times: int

    def __post_init__(self) -> None:
        require_positive_int("times", self.times)
        inner, times = (
            (self.event.event, self.times * self.event.times)
            if isinstance(self.event, Repeated)
            else (self.event, self.times)
        )
        if times > MOST_TIMES:
            raise InvalidParameter("times", self.times, "in [1, 10**18], nested ones multiplied")
        object.__setattr__(self, "event", inner)
        object.__setattr__(self, "times", times)


@dataclass(frozen=True, slots=True)
class Parties:
    """Mechanisms of data holders with disjoint records: a record pays for its own party's only.

    Parallel composition (McSherry 2009, Theorem 4): the cost of all is that of the costliest party.

    Args:
        parts: a party's name and its mechanisms, each party once.
    """

    parts: tuple[tuple[str, tuple["Mechanism", ...]], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.parts]
        # another kind of name is written as a text, and is read back as none of the parts
        if not all(isinstance(name, str) for name in names):
            raise InvalidParameter("parts", names, "parties named by texts")
        if not names or len(set(names)) != len(names):
            raise InvalidParameter("parts", names, "at least one party, each named once")


Mechanism = (
    GaussianStep
    | LaplaceStep
    | DiscreteGaussianStep
    | DiscreteLaplaceStep
    | PureStep
    | RandomisedResponse
    | GaussianMixtureStep
    | PoissonSampled
    | AccumulatedPoisson
    | SampledWithoutReplacement
    | SampledWithReplacement
    | UnprotectedRelease
    | Repeated
    | Parties
)
"""Every mechanism that an accountant can be asked about."""


def unrepeated(mechanism: Mechanism) -> tuple[Mechanism, int]:
    """Return what a mechanism repeats, and how often; itself, once, where it repeats nothing."""
    if isinstance(mechanism, Repeated):
        return mechanism.event, mechanism.times
    return mechanism, 1


def _require_kind(name: str, value: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        raise InvalidParameter(name, type(value).__name__, f"one of {[k.__name__ for k in kinds]}")


class Audience(Enum):
    """Who sees a message."""

    SERVER = "server"
    NEIGHBOURS = "neighbours"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Context:
    """Where a release happened; it costs nothing and changes no price, but parties decide who pays.

    Args:
        parties: names of the holders of disjoint records whose data entered, one message each; the
            empty tuple means that any record may have entered.
        round: of the algorithm, from 1; 0 for what happens before the first.
        release: what was released, in a word.
        audience: who saw it.
    """

    parties: tuple[str, ...]
    round: int
    release: str
    audience: Audience

    def __post_init__(self) -> None:
        # a bare name would pass for the names of its letters
        if not isinstance(self.parties, tuple) or not all(isinstance(p, str) for p in self.parties):
            raise InvalidParameter("parties", self.parties, "a tuple of names")
        if isinstance(self.round, bool) or not isinstance(self.round, int) or self.round < 0:
            raise InvalidParameter("round", self.round, "a whole number in [0, inf)")
        if not isinstance(self.release, str) or not self.release:
            raise InvalidParameter("release", self.release, "a word for what was released")
        _require_kind("audience", self.audience, (Audience,))


@dataclass(frozen=True, slots=True)
class Event:
    """A mechanism and where it ran."""

    mechanism: Mechanism
    context: Context


def adjacencies(mechanism: Mechanism) -> Iterator[Adjacency]:
    """Yield every neighbouring relation that a mechanism speaks of; unprotected ones have none.

    Composition requires that all events of a list yield one and the same.
    """
    match mechanism:
        case GaussianMixtureStep():
            yield mechanism.constant.adjacency
        case RandomisedResponse():
            yield Adjacency.REPLACE_ONE
        case UnprotectedRelease():
            return
        case PoissonSampled() | AccumulatedPoisson() | Repeated():
            yield from adjacencies(mechanism.event)
        case SampledWithoutReplacement() | SampledWithReplacement():
            yield from adjacencies(mechanism.event)
        case Parties():
            for _, parts in mechanism.parts:
                for part in parts:
                    yield from adjacencies(part)
        case _:
            yield mechanism.sensitivity.adjacency
