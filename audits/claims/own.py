"""The user's own claims: a promise, and the releases that somebody says there were.

What is not said is read in every way that it could mean. A promise that all readings keep holds,
and one that none keeps is not implied: sensitivities are upper bounds, and nobody has shown data
that meet them, so it fails only where something left unprotected, or where an attack or a search
finds such data. Any other is unspecified, with what each reading comes to.

>>> release = StatedRelease(MechanismKind.GAUSSIAN, sensitivity=1.0, noise=10.0, rounds=100)
>>> judged([release], PromisedEpsilon(5.0, 1e-5), adjacency=Adjacency.ZERO_OUT_ONE).verdict.value
'holds'
>>> judged([release], PromisedEpsilon(5.0, 1e-5), adjacency=None).verdict.value
'unspecified'
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from itertools import product
from math import ceil, inf

from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure, shown_down, shown_up
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
)
from ...mechanisms.events import (
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    UnprotectedRelease,
)
from ...mechanisms.sensitivity import (
    Norm,
    Sensitivity,
    declared,
    float_up,
    root_up,
    scaled,
)
from .claim import ClaimVerdict, Counterexample, DerivationEvidence, Finding
from .gaussian_event import normal_event
from .pricing import ClaimPrice, has_closed_form, priced

__all__ = [
    "MechanismKind",
    "OwnPromise",
    "PromisedEpsilon",
    "PromisedMu",
    "PromisedRho",
    "Sampling",
    "StatedRelease",
    "judged",
    "judged_events",
]

# rho and mu do not depend on it
_SOME_DELTA = 1e-6
# a promised decimal and a computed root of it are the same number
_ROOM = 1 + Fraction(1, 2**44)
_REASON = "the sensitivity that the claim states"
_ROUNDED = f"{_REASON}, rounded up as for whole numbers, which alone discrete noise hides"


class MechanismKind(Enum):
    """The mechanisms that a claim can name."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    DISCRETE_LAPLACE = "discrete-laplace"
    RANDOMISED_RESPONSE = "randomised-response"
    UNPROTECTED = "unprotected"


class Sampling(Enum):
    """How records are chosen for a release, hidden from whoever looks."""

    NONE = "none"
    POISSON = "poisson"
    FIXED_BATCH = "fixed-batch"


@dataclass(frozen=True, slots=True)
class PromisedEpsilon:
    """(epsilon, delta)-DP."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_nonnegative("epsilon", self.epsilon)
        require_open_unit("delta", self.delta)

    @property
    def claimed(self) -> float:
        """epsilon."""
        return self.epsilon

    @property
    def unit(self) -> str:
        """Of what is claimed."""
        return f"epsilon at delta {self.delta:g}"

    @property
    def quantity(self) -> str:
        """What is priced."""
        return "epsilon"


@dataclass(frozen=True, slots=True)
class PromisedRho:
    """rho-zCDP."""

    rho: float
    delta: float = _SOME_DELTA

    def __post_init__(self) -> None:
        require_positive("rho", self.rho)

    @property
    def claimed(self) -> float:
        """rho."""
        return self.rho

    @property
    def unit(self) -> str:
        """Of what is claimed."""
        return "rho"

    @property
    def quantity(self) -> str:
        """What is priced."""
        return "rho"


@dataclass(frozen=True, slots=True)
class PromisedMu:
    """mu-GDP."""

    mu: float
    delta: float = _SOME_DELTA

    def __post_init__(self) -> None:
        require_positive("mu", self.mu)

    @property
    def claimed(self) -> float:
        """mu."""
        return self.mu

    @property
    def unit(self) -> str:
        """Of what is claimed."""
        return "mu"

    @property
    def quantity(self) -> str:
        """What is priced."""
        return "mu"


OwnPromise = PromisedEpsilon | PromisedRho | PromisedMu


@dataclass(frozen=True, slots=True)
class StatedRelease:
    """Releases of one kind, as a claim states them; None is "not stated".

    Args:
        kind: the mechanism.
        sensitivity: l2 for Gaussian noise, l1 for Laplace noise; of discrete noise, which hides
            whole numbers alone, rounded up to a length that whole numbers can have.
        noise: its standard deviation, Laplace noise's scale; for randomised response, between two
            answers, the probability of the true one.
        rounds: how often.
        sampling: how records are chosen; must be stated where `rate` or `batch` is.
        rate: of Poisson sampling.
        batch, records: of a fixed batch.
        party: whose records; None where a record may be anywhere.
        name: what was released.
    """

    kind: MechanismKind
    sensitivity: float | None = None
    noise: float | None = None
    rounds: int | None = None
    sampling: Sampling | None = None
    rate: float | None = None
    batch: int | None = None
    records: int | None = None
    party: str | None = None
    name: str = "release"

    def __post_init__(self) -> None:
        if self.sampling is Sampling.NONE and (self.rate is not None or self.batch is not None):
            raise InvalidParameter("sampling", "none", "another scheme where rate or batch stands")
        if self.sampling is not None and self.kind not in (
            MechanismKind.GAUSSIAN,
            MechanismKind.LAPLACE,
        ):
            raise InvalidParameter("sampling", self.sampling.value, "with gaussian or laplace only")

    @property
    def missing(self) -> Iterator[str]:
        """What is not stated and matters."""
        if self.kind is MechanismKind.UNPROTECTED:
            return
        if self.noise is None:
            yield "noise"
        if self.sensitivity is None and self.kind is not MechanismKind.RANDOMISED_RESPONSE:
            yield "sensitivity"
        if self.rounds is None:
            yield "number of rounds"
        if self.sampling is None and self.sampled:
            yield "sampling scheme"
        if self.sampled and self.share is None:
            yield "sampling rate"

    @property
    def sampled(self) -> bool:
        """Whether the claim speaks of a sample at all."""
        stated = self.rate is not None or self.batch is not None
        return stated or self.sampling not in (None, Sampling.NONE)

    @property
    def share(self) -> float | None:
        """The rate, or batch over records."""
        if self.rate is not None:
            return self.rate
        if self.batch is None or self.records is None:
            return None
        return float_up(Fraction(self.batch, self.records))

    @property
    def priced_sensitivity(self) -> Fraction | None:
        """The sensitivity; of discrete noise, the least >= it of a vector of whole numbers."""
        if self.sensitivity is None:
            return None
        require_nonnegative("sensitivity", self.sensitivity)
        stated = Fraction(self.sensitivity)
        if self.kind is MechanismKind.DISCRETE_LAPLACE:
            return max(stated, Fraction(ceil(stated / _ROOM)))
        if self.kind is MechanismKind.DISCRETE_GAUSSIAN:
            return max(stated, root_up(Fraction(ceil(stated**2 / _ROOM))))
        return stated

    @property
    def is_rounded(self) -> bool:
        """Whether what is priced is more than what is stated."""
        priced = self.priced_sensitivity
        return priced is not None and self.sensitivity is not None and priced > self.sensitivity


@dataclass(frozen=True, slots=True)
class _Reading:
    """One meaning of what is not stated."""

    adjacency: Adjacency
    doubled: bool
    sampling: Sampling

    def described(self, releases: Sequence[StatedRelease], stated: bool) -> str:
        parts: list[str] = []
        if not stated:
            parts.append(
                "a record is replaced and the sensitivity is of a record left out"
                if self.doubled
                else "the sensitivity is of the relation promised"
            )
        if any(r.sampled and r.sampling is None for r in releases):
            parts.append(f"sampling is {self.sampling.value}")
        return ", ".join(parts) or "as stated"

    def event(self, release: StatedRelease, *, least: bool) -> Event | None:
        """The release at the least or the most that it may cost; None where that is nothing.

        Without noise or sensitivity the most is a release without protection.
        """
        missing = set(release.missing)
        parties = () if release.party is None else (release.party,)
        context = Context(parties, 1, release.name, Audience.PUBLIC)
        unknown = missing & {"noise", "sensitivity"}
        # an unstated scheme is what this reading says
        scheme = release.sampling or (self.sampling if release.sampled else Sampling.NONE)
        unsampled = scheme is not Sampling.NONE and self._rate_of(release, scheme) is None
        if unknown or ("number of rounds" in missing and not least):
            words = ", ".join(sorted(missing))
            return None if least else Event(UnprotectedRelease(f"not stated: {words}"), context)
        if unsampled and least:
            return None
        mechanism = self._unsampled(release)
        if not unsampled and isinstance(mechanism, GaussianStep | LaplaceStep):
            mechanism = self._sampled(mechanism, release, scheme)
        return Event(Repeated(mechanism, release.rounds or 1), context)

    def _rate_of(self, release: StatedRelease, scheme: Sampling) -> float | None:
        if scheme is Sampling.POISSON:
            return release.share
        return release.share if release.batch is not None and release.records is not None else None

    def _unsampled(self, release: StatedRelease) -> Mechanism:
        if release.kind is MechanismKind.UNPROTECTED:
            return UnprotectedRelease(f"{release.name}: without a mechanism, says the claim")
        assert release.noise is not None
        if release.kind is MechanismKind.RANDOMISED_RESPONSE:
            return RandomisedResponse(release.noise)
        assert release.priced_sensitivity is not None
        gaussian = release.kind in (MechanismKind.GAUSSIAN, MechanismKind.DISCRETE_GAUSSIAN)
        size = declared(
            release.priced_sensitivity,
            _ROUNDED if release.is_rounded else _REASON,
            adjacency=self.adjacency,
            norm=Norm.L2 if gaussian else Norm.L1,
        )
        made: Mapping[MechanismKind, Callable[[Sensitivity, float], Mechanism]] = {
            MechanismKind.GAUSSIAN: GaussianStep,
            MechanismKind.LAPLACE: LaplaceStep,
            MechanismKind.DISCRETE_GAUSSIAN: DiscreteGaussianStep,
            MechanismKind.DISCRETE_LAPLACE: DiscreteLaplaceStep,
        }
        return made[release.kind](scaled(size, 2) if self.doubled else size, release.noise)

    def _sampled(
        self, step: GaussianStep | LaplaceStep, release: StatedRelease, scheme: Sampling
    ) -> Mechanism:
        if scheme is Sampling.POISSON:
            assert release.share is not None
            return PoissonSampled(step, release.share)
        if scheme is Sampling.FIXED_BATCH:
            assert release.batch is not None
            assert release.records is not None
            return SampledWithoutReplacement(step, release.batch, release.records)
        return step


def _readings(releases: Sequence[StatedRelease], adjacency: Adjacency | None) -> Iterator[_Reading]:
    unsaid = [r for r in releases if r.sampled and r.sampling is None]
    schemes = [Sampling.NONE]
    if unsaid:
        schemes.append(Sampling.POISSON)
    if unsaid and all(r.batch is not None for r in unsaid):
        schemes.append(Sampling.FIXED_BATCH)
    relations = [(Adjacency.ZERO_OUT_ONE, False), (Adjacency.REPLACE_ONE, True)]
    if adjacency is not None:
        relations = [(adjacency, False)]
    for (relation, doubled), scheme in product(relations, schemes):
        replacing = scheme is Sampling.FIXED_BATCH or any(
            r.sampling is Sampling.FIXED_BATCH or r.kind is MechanismKind.RANDOMISED_RESPONSE
            for r in releases
        )
        if replacing and adjacency is None:
            relation = Adjacency.REPLACE_ONE
        yield _Reading(relation, doubled, scheme)


def judged(
    releases: Sequence[StatedRelease],
    promise: OwnPromise,
    *,
    adjacency: Adjacency | None,
) -> Finding:
    """Return what the court finds about a promise for releases as somebody states them.

    Args:
        releases: at least one.
        promise: for all of them together.
        adjacency: the relation that promise and sensitivities speak of; None where not stated.
    """
    if not releases:
        raise InvalidParameter("releases", [], "at least one")
    missing = [what for release in releases for what in release.missing]
    if adjacency is None:
        missing.insert(0, "adjacency")
    readings = list(_readings(releases, adjacency))
    lists = [
        tuple(e for r in releases if (e := reading.event(r, least=least)) is not None)
        for reading in readings
        for least in (True, False)
    ]
    # most often the least and the most that a reading costs are the same
    apart = list(dict.fromkeys(lists))
    found = {each: priced(each, unit=promise.quantity, delta=promise.delta) for each in apart}
    costs = {
        reading.described(releases, adjacency is not None): _between(found[low], found[high])
        for reading, low, high in zip(readings, lists[::2], lists[1::2], strict=True)
    }
    events = lists[-1]
    finding = _finding(costs, promise, () if missing else events, tuple(dict.fromkeys(missing)))
    return replace(finding, argument=(*finding.argument, *_assumed(releases)))


def _assumed(releases: Sequence[StatedRelease]) -> Iterator[str]:
    """Yield what is taken for granted of discrete noise with a sensitivity that is not whole."""
    for release in releases:
        priced = release.priced_sensitivity
        if priced is not None and release.is_rounded:
            most = shown_up(float_up(priced), digits=6)
            yield (
                f"not stated: whether {release.name} is of whole numbers, as discrete noise hides "
                f"no others; assumed, and sensitivity {release.sensitivity!r} rounded up to {most}"
            )


def judged_events(events: Sequence[Event], promise: OwnPromise) -> Finding:
    """Return what the court finds about a promise for events that a plan or a ledger lists."""
    listed = tuple(events)
    cost = priced(listed, unit=promise.quantity, delta=promise.delta)
    return _finding({"as listed": cost}, promise, listed, ())


def _between(least: ClaimPrice, most: ClaimPrice) -> ClaimPrice:
    """Return the price of a reading that costs something between both."""
    cost = Enclosure(least.cost.lower, most.cost.upper)
    return ClaimPrice(cost, most.refusal or least.refusal, least.gave_up or most.gave_up)


def _finding(
    prices: Mapping[str, ClaimPrice],
    promise: OwnPromise,
    events: tuple[Event, ...],
    missing: tuple[str, ...],
) -> Finding:
    claimed = Enclosure.of(promise.claimed)
    costs = {name: price.cost for name, price in prices.items()}
    room = 1 if isinstance(promise, PromisedEpsilon) else _ROOM
    limit = Enclosure.of(Fraction(promise.claimed) * room).upper
    kept = [cost for cost in costs.values() if cost.upper <= limit]
    broken = [cost for cost in costs.values() if cost.lower > limit]
    told = "; ".join(f"{name}: {_priced_text(price)}" for name, price in prices.items())
    least = min(costs.values(), key=lambda cost: cost.lower_float)
    worst = max(costs.values(), key=lambda cost: cost.upper_float)
    if len(broken) == len(costs):
        # what is stated are upper bounds: more may be charged than any data cost
        # (an answer by randomised response costs what it says)
        certain = least.lower == inf or (bool(events) and all(map(_is_answer, events)))
        verdict, true = ClaimVerdict.FAILS if certain else ClaimVerdict.NOT_IMPLIED, least
        limit_text = shown_down(promise.claimed, digits=6)
        reason = f"{promise.unit} is {_told(true)}, above the promised {limit_text}"
    elif len(kept) == len(costs):
        verdict, true = ClaimVerdict.HOLDS, worst
        most, limit_text = (shown_up(x, digits=6) for x in (true.upper_float, promise.claimed))
        reason = f"{promise.unit} is at most {most} <= {limit_text}"
    else:
        # what is not stated may be the only open question; what was given up never is
        open_work = not missing or any(price.gave_up for price in prices.values())
        verdict = ClaimVerdict.UNDECIDED if open_work else ClaimVerdict.UNSPECIFIED
        true = Enclosure(least.lower, worst.upper)
        what = f"not stated: {', '.join(missing)}" if missing else "it cannot be decided"
        reason = f"{what} ({told})"
    if missing and verdict in (ClaimVerdict.HOLDS, ClaimVerdict.FAILS, ClaimVerdict.NOT_IMPLIED):
        reason += f"; so whatever was not stated: {', '.join(missing)}"
    # what costs infinity has no certificate
    protected = events if true.upper < inf else ()
    delta = promise.delta if protected else None
    witness = _violation(protected, promise) if verdict is ClaimVerdict.NOT_IMPLIED else ()
    finding = Finding(
        verdict,
        reason,
        claimed=claimed,
        true=true,
        unit=promise.unit,
        figures=costs if len(costs) > 1 else {},
        evidence=(DerivationEvidence((told,), protected, delta), *witness),
    )
    return replace(finding, argument=tuple(f"not stated: {what}" for what in missing))


def _is_answer(event: Event) -> bool:
    mechanism = event.mechanism
    while isinstance(mechanism, Repeated):
        mechanism = mechanism.event
    return isinstance(mechanism, RandomisedResponse)


def _violation(events: tuple[Event, ...], promise: OwnPromise) -> tuple[Counterexample, ...]:
    """The exact event that would break the promise, if data met the sensitivities of all steps."""
    if not events or not isinstance(promise, PromisedEpsilon) or not has_closed_form(events):
        return ()
    mu = guarantee(events, delta=promise.delta).mu
    return (normal_event(mu, epsilon=promise.epsilon, delta=promise.delta),)


def _priced_text(price: ClaimPrice) -> str:
    if price.refusal and not price.cost.upper.is_finite():
        return price.refusal.rstrip(".")
    return (
        f"{_told(price.cost)}, {price.refusal.rstrip('.')}" if price.refusal else _told(price.cost)
    )


def _told(cost: Enclosure) -> str:
    low, high = shown_down(cost.lower_float, digits=6), shown_up(cost.upper_float, digits=6)
    return high if low == high else f"in [{low}, {high}]"
