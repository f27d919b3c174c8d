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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf

from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure, shown_down, shown_up
from ...accounting.training_runs import Sampling, require_rule
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import InvalidParameter, require_positive_int
from ...mechanisms.events import (
    Audience,
    Context,
    Event,
    RandomisedResponse,
    Repeated,
    UnprotectedRelease,
    unrepeated,
)
from ...mechanisms.sensitivity import float_up
from .claim import ClaimVerdict, Counterexample, DerivationEvidence, Finding
from .claimed_accountant import ClaimedAccountant, by_accountant
from .gaussian_event import normal_event
from .pricing import ClaimPrice, delta_left, has_closed_form, may_be_spread, priced, times
from .promises import OwnPromise, PromisedEpsilon, PromisedMu, PromisedRho
from .releases import (
    EPSILON_OF_STEP,
    NUMBER_OF_ANSWERS,
    ROOM,
    Averaging,
    MechanismKind,
    StatedRelease,
)

__all__ = [
    "Averaging",
    "ClaimedAccountant",
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


_TAKEN = " (taken to be replace-one, under which alone such steps have a price)"
"""What is said of a relation that nobody states, where it can be one only."""

_SPREAD = "a unit's records with several parties"
_ONE_PARTY = "whether all records of a unit live with one party"
"""Asked where parties pay differently, and not only by Gaussian steps."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """One meaning of what is not stated.

    Args:
        adjacency: the relation that sensitivities and promise speak of.
        doubled: whether a stated sensitivity is of a record left out, while one is replaced.
        sampling: how records are chosen where nobody says.
        clipped: whether noise multipliers, where nothing else says so, are over a clip norm, of
            which a replaced record moves two.
    """

    adjacency: Adjacency
    doubled: bool
    sampling: Sampling
    clipped: bool = False

    def described(self, releases: Sequence[StatedRelease], stated: bool) -> str:
        """Return the reading in words.

        Args:
            releases: of which some leave the sampling open.
            stated: whether the relation is stated.
        """
        parts: list[str] = []
        if not stated:
            parts.append(
                "a record is replaced and the sensitivity is of a record left out"
                if self.doubled
                else "a record is added or left out"
                if self.adjacency is Adjacency.ADD_REMOVE_ONE
                else "the sensitivity is of the relation promised"
            )
        if stated and _is_of_two_readings(releases, self.adjacency):
            over = "a clip norm" if self.clipped else "the sensitivity"
            parts.append(f"noise multipliers are over {over}")
        if any(r.sampled and r.sampling is None for r in releases):
            parts.append(f"sampling is {self.sampling.value}")
        return ", ".join(parts) or "as stated"

    def events(self, release: StatedRelease, *, least: bool, fits: int) -> tuple[Event, ...]:
        """The release at the least or the most that it may cost; nothing where that is nothing.

        Without noise or sensitivity the most is a release without protection.
        """
        missing = set(release.missing)
        parties = () if release.party is None else (release.party,)
        context = Context(parties, 1, release.name, Audience.PUBLIC)
        unmeasured = {"noise", "sensitivity", "epsilon and delta of a step", EPSILON_OF_STEP}
        unknown = missing & {*unmeasured, NUMBER_OF_ANSWERS}
        # an unstated scheme is what this reading says
        scheme = release.sampling or (self.sampling if release.sampled else Sampling.NONE)
        unsampled = scheme is not Sampling.NONE and self._rate_of(release, scheme) is None
        if unknown or ("number of rounds" in missing and not least):
            words = ", ".join(sorted(missing))
            unsaid = Event(UnprotectedRelease(f"not stated: {words}"), context)
            return () if least else (unsaid,)
        if least and (unsampled or not self._is_priced_on(release.kind, scheme)):
            return ()
        mechanisms = release.mechanisms(
            self.adjacency,
            scheme,
            doubled=self.doubled or (self.clipped and release.multiplied),
            least=least,
            amplified=not unsampled,
        )
        return tuple(Event(Repeated(m, times * fits), context) for m, times in mechanisms)

    @staticmethod
    def _is_priced_on(kind: MechanismKind, scheme: Sampling) -> bool:
        """Return whether a sample's release is priced as such, and not as one of all records."""
        if kind in (MechanismKind.GAUSSIAN, MechanismKind.LAPLACE) or scheme is Sampling.NONE:
            return True
        once = kind not in (MechanismKind.PRIVATE, MechanismKind.EXPONENTIAL)
        return once and scheme is Sampling.SHUFFLED

    def _rate_of(self, release: StatedRelease, scheme: Sampling) -> Fraction | None:
        """Return the sampling rate under a scheme; None where it is not stated.

        Args:
            release: as stated.
            scheme: under which a rate is asked for; a fixed batch needs both of its numbers.
        """
        if scheme not in (Sampling.FIXED_BATCH, Sampling.WITH_REPLACEMENT):
            return release.share
        return release.share if release.batch is not None and release.records is not None else None

    def refusal(self, releases: Sequence[StatedRelease]) -> ClaimPrice | None:
        """Return why no theorem prices the releases by this reading; None where one may."""
        why = self._unpriced(releases)
        if why is None:
            return None
        return ClaimPrice(Enclosure.hull(Enclosure.of(0), Enclosure.of(inf)), why)

    def _unpriced(self, releases: Sequence[StatedRelease]) -> str | None:
        answers = any(r.kind is MechanismKind.RANDOMISED_RESPONSE for r in releases)
        if answers and self.adjacency not in (Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE):
            return "randomised response is priced for a record whose answer is replaced"
        schemes = {r.sampling or self.sampling for r in releases if r.sampled}
        try:
            for scheme in (Sampling.SHUFFLED, Sampling.WITH_REPLACEMENT):
                if scheme in schemes:
                    require_rule(scheme, self.adjacency)
        except InvalidParameter as none:
            return str(none)
        for release in releases:
            scheme = release.sampling or self.sampling
            if not release.sampled or scheme is not Sampling.WITH_REPLACEMENT:
                continue
            # a record may stand in all places of a batch, and nothing says how many these are
            if release.kind is not MechanismKind.GAUSSIAN:
                return "batches drawn with replacement are priced for Gaussian noise only"
            if self._rate_of(release, scheme) is None:
                return "batches drawn with replacement need batch and records"
        return None


def _readings(releases: Sequence[StatedRelease], adjacency: Adjacency | None) -> Iterator[_Reading]:
    """Yield every meaning of what is not stated, the cheapest schemes among them.

    A fixed batch and randomised response exist under replace-one only, so that an unstated relation
    is that one where they occur.
    """
    unsaid = [r for r in releases if r.sampled and r.sampling is None]
    schemes = [Sampling.NONE]
    if unsaid:
        # with replacement is the one that may cost more than no sampling at all
        schemes += [Sampling.POISSON, Sampling.SHUFFLED, Sampling.WITH_REPLACEMENT]
    if unsaid and all(r.batch is not None for r in unsaid):
        schemes.append(Sampling.FIXED_BATCH)
    relations = [(Adjacency.ZERO_OUT_ONE, False), (Adjacency.REPLACE_ONE, True)]
    meanings = [False]
    if adjacency is not None:
        relations = [(adjacency, False)]
    if _is_of_two_readings(releases, adjacency):
        meanings = [False, True]
    shuffled = any(r.sampling is Sampling.SHUFFLED for r in releases)
    for (relation, doubled), clipped, scheme in product(relations, meanings, schemes):
        unsaid_relation = adjacency is None and relation is Adjacency.ZERO_OUT_ONE
        if unsaid_relation and (shuffled or scheme is Sampling.SHUFFLED):
            # a record more moves all that stand behind it to other batches
            yield _Reading(Adjacency.ADD_REMOVE_ONE, False, scheme)
        replacing = scheme in (Sampling.FIXED_BATCH, Sampling.WITH_REPLACEMENT) or any(
            r.sampling in (Sampling.FIXED_BATCH, Sampling.WITH_REPLACEMENT)
            or r.kind is MechanismKind.RANDOMISED_RESPONSE
            for r in releases
        )
        if replacing and adjacency is None:
            relation = Adjacency.REPLACE_ONE
        yield _Reading(relation, doubled, scheme, clipped)


def _is_of_two_readings(releases: Sequence[StatedRelease], adjacency: Adjacency | None) -> bool:
    """Return whether a noise multiplier may be over a clip norm, of which what is replaced moves
    two."""
    replaced = adjacency in (Adjacency.REPLACE_ONE, Adjacency.REPLACE_FEATURE_COLUMN)
    return replaced and any(r.multiplied for r in releases)


def judged(
    releases: Sequence[StatedRelease],
    promise: OwnPromise,
    *,
    adjacency: Adjacency | None,
    group: int = 1,
    fits: int = 1,
    accountant: ClaimedAccountant | None = None,
) -> Finding:
    """Return what the court finds about a promise for releases as somebody states them.

    Args:
        releases: at least one.
        promise: for all of them together.
        adjacency: the relation that promise and sensitivities speak of; None where not stated.
        group: how many records, of which the sensitivities are, the promised unit has at most.
        fits: how often all of it ran, as settings were chosen among so many fits.
        accountant: what the claim says that it was computed by, for comparison.

    Costs are enclosures: a reading keeps the promise where its upper end does, and breaks it
    where its lower end does.

    Returns verdict, reason, the enclosure of what is true, and the cost of each reading. Raises
    `InvalidParameter` for no release, and for a group of steps that are stated by (epsilon,
    delta).
    """
    if not releases:
        raise InvalidParameter("releases", [], "at least one")
    require_positive_int("group", group)
    require_positive_int("fits", fits)
    private = [r for r in releases if r.kind is MechanismKind.PRIVATE]
    if private and group > 1:
        raise InvalidParameter("group", group, "1 where steps are of any mechanism")
    missing = [what for release in releases for what in release.missing]
    if _is_of_two_readings(releases, adjacency):
        missing.append("what noise multipliers are over")

    at_least = [_lost_at_least(r) for r in releases] if promise.delta > 0 else releases

    def listed(reading: _Reading, *, least: bool) -> tuple[Event, ...]:
        stated = at_least if least else releases
        return tuple(e for r in stated for e in reading.events(r, least=least, fits=fits))

    readings = {
        reading: (listed(reading, least=True), listed(reading, least=False))
        for reading in _readings(releases, adjacency)
    }
    if adjacency is None:
        only = {reading.adjacency for reading in readings} == {Adjacency.REPLACE_ONE}
        missing.insert(0, f"adjacency{_TAKEN if only else ''}")
    *_, (_, most) = readings.values()
    deltas = {
        doubled: delta_left(
            promise.delta,
            [(r.delta_of_step(doubled=doubled), (r.rounds or 1) * fits) for r in private],
            kept=isinstance(promise, PromisedEpsilon),
        )
        for doubled in (False, True)
    }
    related = adjacency is not None
    costs = _costs_of_readings(releases, readings, promise, deltas, group=group, related=related)
    if any(name.endswith(_SPREAD) for name in costs):
        missing.append(_ONE_PARTY)
    plain = not missing and deltas[False] == promise.delta
    finding = _finding(
        costs,
        promise,
        most if plain else (),
        tuple(dict.fromkeys(missing)),
        # what a blank answers is nowhere stated
        met=adjacency not in (None, Adjacency.ZERO_OUT_ONE)
        and all(r.kind is MechanismKind.RANDOMISED_RESPONSE for r in releases),
        rounded=bool(private),
        group=group,
    )
    assumed = (*_assumed(releases), *_unsaid_sensitivities(releases, adjacency))
    if adjacency is Adjacency.REPLACE_FEATURE_COLUMN and any(r.party for r in releases):
        assumed += ("not stated: whether every column belongs to one party; taken to be",)
    finding = replace(finding, argument=(*finding.argument, *assumed))
    refused = any(reading.refusal(releases) for reading in readings)
    comparable = isinstance(promise, PromisedEpsilon) and not (missing or private or refused)
    if accountant is None or not comparable:
        return finding
    said = by_accountant(most, accountant, delta=promise.delta, group=group)
    return _with_accountant(finding, accountant, said)


def _lost_at_least(release: StatedRelease) -> StatedRelease:
    """Return what some data lose by an exponential mechanism of epsilon; other releases as they
    are.

    Of two candidates one is chosen with odds of e^(-epsilon/2), or e^(epsilon/2): that is
    randomised response of epsilon/2. All of epsilon is lost with ever more candidates, and chances
    that fall below any delta.
    """
    if release.kind is not MechanismKind.EXPONENTIAL or release.step_epsilon is None:
        return release
    return replace(release, step_epsilon=release.step_epsilon / 2)


def _costs_of_readings(
    releases: Sequence[StatedRelease],
    readings: Mapping[_Reading, tuple[tuple[Event, ...], tuple[Event, ...]]],
    promise: OwnPromise,
    deltas: Mapping[bool, float | None],
    *,
    group: int,
    related: bool,
) -> dict[str, ClaimPrice]:
    """Return what each reading of the releases costs, by its name.

    Args:
        releases: as stated.
        readings: the events of each, at the least and at the most that is stated.
        promise: whose unit the costs are in.
        deltas: what is left for the events, by whether the steps' deltas are doubled.
        group: records of a unit.
        related: whether the claim states an adjacency, which names then need not.
    """

    @cache  # most often the least and the most that a reading costs are the same
    def price(listed: tuple[Event, ...], doubled: bool, spread: bool) -> ClaimPrice:
        unit, delta = promise.quantity, deltas[doubled]
        return priced(listed, unit=unit, delta=delta, group=group, spread=spread)

    costs: dict[str, ClaimPrice] = {}
    for reading, (low, high) in readings.items():
        name = reading.described(releases, related)
        refusal = reading.refusal(releases)
        for spread in (False, True):
            if spread and not may_be_spread(high, promise.quantity, deltas[reading.doubled], group):
                break
            ends = (price(each, reading.doubled, spread) for each in (low, high))
            costs[f"{name}, {_SPREAD}" if spread else name] = refusal or _between(*ends)
    return costs


def _with_accountant(
    finding: Finding, accountant: ClaimedAccountant, said: Enclosure | None
) -> Finding:
    """Return the finding with what the claimed accountant says; the verdict is by the exact one.

    Args:
        finding: by the exact composition.
        accountant: that the claim names.
        said: its epsilon; None where it has no rule for the events.
    """
    name = accountant.value
    if said is None:
        return replace(finding, reason=f"{finding.reason}; by {name} nothing is known of it")
    figures = {**finding.figures, f"by {name}": said}
    assert finding.claimed is not None
    if said <= finding.claimed:
        return replace(finding, figures=figures)
    most = shown_up(said.upper_float, digits=6)
    return replace(
        finding, figures=figures, reason=f"{finding.reason}; by {name} it would be {most}"
    )


def _assumed(releases: Sequence[StatedRelease]) -> Iterator[str]:
    """Yield what is taken for granted: all records, the norm that Laplace noise asks for, and whole
    numbers under discrete noise.
    """
    for release in releases:
        if release.clip_norm is not None and release.kind is MechanismKind.LAPLACE:
            yield (
                f"not stated: in which norm {release.name} is clipped; taken to be l1, as a clip "
                "in l2 leaves sqrt(d) times as much of d numbers"
            )
        if release.taken_whole:
            yield f"not stated: whether {release.name} is of a sample; taken to be of all records"
        priced = release.priced_sensitivity
        if priced is not None and release.is_rounded:
            most = shown_up(float_up(priced), digits=6)
            yield (
                f"not stated: whether {release.name} is of whole numbers, as discrete noise hides "
                f"no others; assumed, and sensitivity {release.sensitivity!r} rounded up to {most}"
            )


def _unsaid_sensitivities(
    releases: Sequence[StatedRelease], adjacency: Adjacency | None
) -> Iterator[str]:
    """Yield the sensitivities, and the epsilons of steps, that may be of a record left out where
    one is replaced.
    """
    if adjacency is not Adjacency.REPLACE_ONE:
        return
    for release in releases:
        if release.sensitivity and not release.multiplied:
            yield (
                f"not stated: whether the sensitivity of {release.name} is of a record replaced, "
                "twice that of one left out; taken to be, as no clip_norm says what it is of"
            )
        if release.step_epsilon:
            yield (
                f"not stated: whether the epsilon of {release.name} is of a record replaced, twice "
                "that of one left out; taken to be"
            )


def judged_events(
    events: Sequence[Event], promise: OwnPromise, *, group: int = 1, bounded: bool = False
) -> Finding:
    """Return what the court finds about a promise for events that a plan or a ledger lists.

    Args:
        events: of which nothing is left unstated.
        promise: for all of them together.
        group: how many records the promised unit has at most.
        bounded: whether events stand for steps that cost less: what these cost at least is not
            known.
    """
    listed = tuple(events)
    unit, delta = promise.quantity, promise.delta
    costs = {"as listed": priced(listed, unit=unit, delta=delta, group=group)}
    missing: tuple[str, ...] = ()
    if may_be_spread(listed, unit, delta, group):
        found = priced(listed, unit=unit, delta=delta, group=group, spread=True)
        costs[f"as listed, {_SPREAD}"], missing = found, (_ONE_PARTY,)
    if bounded:
        nothing = Enclosure.of(0)
        costs = {n: replace(p, cost=Enclosure.hull(nothing, p.cost)) for n, p in costs.items()}
    met = all(map(_is_answer, listed))
    return _finding(costs, promise, listed, missing, met=met, group=group)


def _between(least: ClaimPrice, most: ClaimPrice) -> ClaimPrice:
    """Return the price of a reading that costs something between both.

    Args:
        least, most: what it costs at the least and at the most that is stated.
    """
    cost = Enclosure(least.cost.lower, most.cost.upper)
    return ClaimPrice(cost, most.refusal or least.refusal, least.gave_up or most.gave_up)


def _finding(
    prices: Mapping[str, ClaimPrice],
    promise: OwnPromise,
    events: tuple[Event, ...],
    missing: tuple[str, ...],
    *,
    met: bool,
    rounded: bool = False,
    group: int = 1,
) -> Finding:
    """Return the verdict on prices by reading.

    Args:
        prices: of each reading.
        promise: what they are held against.
        events: those that a certificate would be of; empty where there is none.
        missing: what is not stated.
        met: whether data are known that cost the price, which is of upper bounds otherwise.
        rounded: whether steps of any mechanism were priced, of a probability that was rounded.
        group: records of the promised unit.
    """
    costs = {name: price.cost for name, price in prices.items()}
    lines = tuple(f"{name}: {_priced_text(price)}" for name, price in prices.items())
    verdict, true, reason = _verdict(prices, promise, missing, met=met, rounded=rounded)
    if missing and verdict in (ClaimVerdict.HOLDS, ClaimVerdict.FAILS, ClaimVerdict.NOT_IMPLIED):
        reason += f"; so whatever was not stated: {', '.join(missing)}"
    # what costs infinity has no certificate
    protected = events if true.upper < inf else ()
    delta = promise.delta if protected else None
    witness = _violation(protected, promise, group) if verdict is ClaimVerdict.NOT_IMPLIED else ()
    unproved = "" if protected else _unproved(events, missing)
    finding = Finding(
        verdict,
        reason,
        claimed=Enclosure.of(promise.claimed),
        true=true,
        unit=promise.unit,
        figures=costs if len(costs) > 1 else {},
        evidence=(DerivationEvidence(lines, protected, delta, group, unproved), *witness),
    )
    return replace(finding, argument=tuple(f"not stated: {what}" for what in missing))


def _unproved(events: tuple[Event, ...], missing: tuple[str, ...]) -> str:
    """Return why nothing is proved where nothing protected was priced; as `_finding` has them."""
    if missing:
        return "not all is stated"
    return "epsilon is infinite" if events else "steps of any mechanism have no certificate"


def _verdict(
    prices: Mapping[str, ClaimPrice],
    promise: OwnPromise,
    missing: tuple[str, ...],
    *,
    met: bool,
    rounded: bool,
) -> tuple[ClaimVerdict, Enclosure, str]:
    """Return the verdict on prices by reading, what is true, and why; see `_finding`."""
    costs = [price.cost for price in prices.values()]
    exact = isinstance(promise, PromisedEpsilon) and promise.delta > 0 and not rounded
    limit = Enclosure.of(Fraction(promise.claimed) * (1 if exact else ROOM)).upper
    least = min(costs, key=lambda cost: cost.lower_float)
    worst = max(costs, key=lambda cost: cost.upper_float)
    if all(cost.lower > limit for cost in costs):
        # what is stated are upper bounds: more may be charged than any data cost
        # (an answer by randomised response costs what it says)
        certain = met or (least.lower == inf and not rounded)
        verdict = ClaimVerdict.FAILS if certain else ClaimVerdict.NOT_IMPLIED
        limit_text = shown_down(promise.claimed, digits=6)
        return (
            verdict,
            least,
            f"{promise.unit} is {_cost_text(least)}, above the promised {limit_text}",
        )
    if all(cost.upper <= limit for cost in costs):
        # within the room of a decimal they are the same number
        shown = (min(worst.upper_float, promise.claimed), promise.claimed)
        most, limit_text = (shown_up(x, digits=6) for x in shown)
        return ClaimVerdict.HOLDS, worst, f"{promise.unit} is at most {most} <= {limit_text}"
    # what is not stated may be the only open question; what was given up never is
    open_work = not missing or any(price.gave_up for price in prices.values())
    # more digits could decide the one; only the author of the claim can decide the other
    verdict = ClaimVerdict.UNDECIDED if open_work else ClaimVerdict.UNSPECIFIED
    what = f"not stated: {', '.join(missing)}" if missing else "it cannot be decided"
    lines = "; ".join(f"{name}: {_priced_text(price)}" for name, price in prices.items())
    return verdict, Enclosure(least.lower, worst.upper), f"{what} ({lines})"


def _is_answer(event: Event) -> bool:
    """Return whether an event is randomised response, whose price data are known to meet."""
    mechanism = event.mechanism
    return isinstance(unrepeated(mechanism)[0], RandomisedResponse)


def _violation(
    events: tuple[Event, ...], promise: OwnPromise, group: int
) -> tuple[Counterexample, ...]:
    """The exact event that would break the promise, if data met the sensitivities of all steps.

    Only Gaussian compositions have one in closed form: an event {x > t} of two unit normals mu
    apart.

    Args:
        events: that the promise is of.
        promise: an epsilon and a delta; other promises have no event.
        group: records of a unit, which may all move everything.
    """
    if not events or not isinstance(promise, PromisedEpsilon) or not has_closed_form(events):
        return ()
    mu = times(guarantee(events, delta=promise.delta).mu, group)
    return (normal_event(mu, epsilon=promise.epsilon, delta=promise.delta),)


def _priced_text(price: ClaimPrice) -> str:
    """Return what a reading costs, or why it has no price."""
    reason = price.refusal.rstrip(".")
    if reason and not price.cost.upper.is_finite():
        return reason
    return f"{_cost_text(price.cost)}, {reason}" if reason else _cost_text(price.cost)


def _cost_text(cost: Enclosure) -> str:
    """Return a cost rounded outward; one number where six digits cannot tell its ends apart."""
    low, high = shown_down(cost.lower_float, digits=6), shown_up(cost.upper_float, digits=6)
    return high if low == high else f"in [{low}, {high}]"
