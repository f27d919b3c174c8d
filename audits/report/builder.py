"""From the components of a run to the record of its report: a pure function.

What the events tell, the report takes from the events: releases, sensitivities, noise, sampling,
the privacy curve and the odometer. What only people know (`Narrative`) is theirs to state, and
printed as "not stated" when they do not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

import numpy as np

from ...accounting.composition import Composition, UnpricedMechanism
from ...accounting.gaussian.fast import epsilon_upper
from ...accounting.guarantees import Guarantee, compare_conversions, deltas_at, epsilons_at
from ...accounting.numbers.enclosure import Enclosure
from ...accounting.numbers.grade import Grade
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.encoding import subject_hash
from ...mechanisms.events import Audience, Event
from ...mechanisms.protocols import Provenance
from ...mechanisms.sensitivity import float_up
from .evidence import AttackFacts, UtilityFacts, audit_of, utility_of
from .groups import (
    audience_views,
    mechanism_groups,
    message_kinds,
    names_between,
    sampling_executed,
    seen_by,
    unprotected_groups,
)
from .record import (
    FORMAT,
    REPEATABLE,
    SIMULATED,
    Access,
    Accounting,
    AudienceView,
    Conversion,
    Crosschecks,
    CurvePoint,
    Identity,
    Interval,
    OdometerPoint,
    PartyEpsilon,
    Preparation,
    PrivacyFacts,
    PromiseFacts,
    Releases,
    Report,
    SamplingFacts,
    Skipped,
    StatementFacts,
    TheoremUsed,
    ThreatFacts,
    UnprotectedGroup,
    Version,
    finite_or_word,
)

_CURVE_POINTS = 49
"""Of the privacy curve: enough for a smooth line, few enough for a table."""

_CURVE_DELTA = 1e-10
"""The curve reaches down to it, or to a thousandth of the promise's delta."""

_LEAST_DELTA = 1e-300
"""The smallest that the fast grade takes."""

_MOMENT_ORDERS = 32
"""Of the moments accountant in the comparison, as in Abadi et al. 2016."""

_ODOMETER_POINTS = 200
"""Rounds of the odometer that are kept; more are thinned evenly."""

_NEIGHBOURS = {
    Adjacency.REPLACE_ONE: "one record becomes any other; the number of records is public",
    Adjacency.ZERO_OUT_ONE: "one record becomes a null record; the number of records is public",
    Adjacency.ADD_REMOVE_ONE: (
        "one record is added or removed; a lower bound on the number of records is public"
    ),
    Adjacency.REPLACE_FEATURE_COLUMN: "one party's feature column changes for every record",
}

_HELD_OUT = "Utility ({metric}) is computed from records without noise."
"""An access that no event covers, whenever a report states utility."""

_NUMERICS = (
    "A release's noise is exact on a lattice, whose rounding is priced in the event. Noise of a "
    "simulation is drawn in floating point, where gaps between numbers can tell more than real "
    "numbers would (Mironov 2012).",
    "Sums and products are rounded: every value carries a bound on its rounding error, which the "
    "event prices. That NumPy rounds as its operations are documented to is taken on trust.",
    "Running time, memory access, message sizes, early aborts and logs are not covered.",
    "Random numbers are assumed to be independent and uniform, as an ideal sampler's.",
    "The record of events is taken as faithful to what the program sent.",
)
"""What the promise does not say about the machine it ran on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Which run a report is about.

    Args:
        configuration: text of the configuration, as the user wrote it.
        configuration_sha256: as the ledger has it.
        ledger: a name of the ledger that does not depend on where its file lies.
        ledger_head_sha256: the last hash of its chain.
        run: the run's name in the ledger.
        date: given by the caller, for instance ISO 8601; a report does not look at the clock.
        provenance: where the noise came from.
        certificate: file name of the certificate, or in a word what was checked.
        versions: (package, version) pairs.
    """

    configuration: str | None = None
    configuration_sha256: str | None = None
    ledger: str | None = None
    ledger_head_sha256: str | None = None
    run: str | None = None
    date: str | None = None
    provenance: Provenance | None = None
    certificate: str | None = None
    versions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrative:
    """What events cannot tell; None where nobody said.

    Args:
        assumes: the trust that the threat model rests on (for instance who does not collude).
        published: what leaves besides the messages (all iterates, the final model).
        sampling_claimed: the sampling scheme that the algorithm's authors claim.
        data: what the records are.
        preprocessing, tuning, post_processing: in a sentence each.
        not_covered: accesses to private data outside the events.
        limitations: further ones.
    """

    assumes: str | None = None
    published: str | None = None
    sampling_claimed: str | None = None
    data: str | None = None
    preprocessing: str | None = None
    tuning: str | None = None
    post_processing: str | None = None
    not_covered: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()


def build_report(
    *,
    title: str,
    events: Iterable[Event],
    guarantee: Guarantee,
    crosschecks: Crosschecks | Skipped,
    attack: AttackFacts | Skipped,
    utility: UtilityFacts | Skipped,
    unit: str = "record",
    records: int | None = None,
    run: RunFacts = RunFacts(),
    narrative: Narrative = Narrative(),
    statement: StatementFacts | None = None,
) -> Report:
    """Return the record of a report.

    Args:
        title: of the report.
        events: of the run (or of the plan, for a planned one).
        guarantee: of these events.
        crosschecks: by other libraries, or why there are none.
        attack: on the run, or why there is none.
        utility: of the models, or why there is none.
        unit: of privacy, in a word or two: "record", "user with at most 5 records".
        records: public number of them, at least; None if it is not known.
        run: which run.
        narrative: what events cannot tell.
        statement: what the holder of the data states; None where nobody was asked.
    """
    listed = tuple(events)
    kinds = tuple(message_kinds(listed))
    views = audience_views(kinds)
    unprotected = unprotected_groups(kinds)
    return Report(
        promise=_promise(guarantee, unit, records),
        privacy=_privacy(listed, guarantee),
        threat_model=ThreatFacts(
            server=seen_by(views, Audience.SERVER),
            neighbours=seen_by(views, Audience.NEIGHBOURS),
            outsiders=seen_by(views, Audience.PUBLIC),
            assumes=narrative.assumes,
        ),
        releases=Releases(published=narrative.published, seen=views),
        access=_access(views, unprotected, narrative, utility),
        mechanisms=mechanism_groups(kinds),
        sampling=SamplingFacts(
            claimed=narrative.sampling_claimed,
            executed=sampling_executed(kinds),
            noise_source=_noise_source(run.provenance),
        ),
        accounting=Accounting(
            method=guarantee.method,
            theorems=tuple(
                TheoremUsed(statement=t.statement, source=t.source) for t in guarantee.theorems
            ),
            assumptions=guarantee.assumptions,
            certificate=run.certificate,
            crosschecks=crosschecks,
        ),
        preparation=Preparation(
            data=narrative.data,
            preprocessing=narrative.preprocessing,
            tuning=narrative.tuning,
            post_processing=narrative.post_processing,
        ),
        audit=audit_of(attack),
        utility=utility_of(utility),
        numerics=_NUMERICS,
        limitations=_limitations(unprotected, narrative, run),
        identity=Identity(
            format=FORMAT,
            title=title,
            date=run.date,
            run=run.run,
            ledger=run.ledger,
            ledger_head_sha256=run.ledger_head_sha256,
            events_sha256=subject_hash(listed),
            configuration_sha256=run.configuration_sha256,
            versions=tuple(Version(package=p, version=v) for p, v in run.versions),
            configuration=run.configuration,
        ),
        statement=statement,
    )


def _promise(guarantee: Guarantee, unit: str, records: int | None) -> PromiseFacts:
    """Return what is promised of whom, in the words of the relation.

    Args:
        guarantee: whose relation it is.
        unit: whom one unit of privacy is.
        records: how many there are, publicly; None if nobody said.
    """
    adjacency = guarantee.adjacency
    neighbours = "no event speaks of neighbours" if adjacency is None else _NEIGHBOURS[adjacency]
    return PromiseFacts(
        notion="(ε, δ)-differential privacy",
        unit=unit,
        adjacency=adjacency,
        neighbours=neighbours,
        records=records,
    )


def _privacy(events: Sequence[Event], guarantee: Guarantee) -> PrivacyFacts:
    """Return the bound, its grade, and what other conversions would make of the events.

    The promise's epsilon is enclosed or proved; curve and odometer are of the fast grade, and say
    so.
    """
    curve = _curve(events, guarantee)
    odometer = _odometer(events, guarantee)
    return PrivacyFacts(
        epsilon=_interval(guarantee.epsilon),
        delta=float_up(guarantee.delta),
        grade=guarantee.grade,
        rho=finite_or_word(guarantee.rho.upper_float),
        mu=finite_or_word(guarantee.mu.upper_float),
        by_party=_by_party(guarantee),
        conversions=_conversions(events, guarantee),
        curve_grade=None if curve is None else Grade.FAST,
        curve=curve,
        odometer_grade=None if odometer is None else Grade.FAST,
        odometer=odometer,
        not_proved=guarantee.not_proved or None,
    )


def _by_party(guarantee: Guarantee) -> tuple[PartyEpsilon, ...]:
    """Parties of equal cost share a row; records of no party only where they pay.

    Equal costs are recognised by both ends of their enclosures.
    """
    rows: dict[tuple[float, float], list[str]] = {}
    for cost in guarantee.by_party:
        low, high = cost.epsilon.lower_float, cost.epsilon.upper_float
        if cost.parties or high > 0:
            rows.setdefault((low, high), []).extend(cost.parties or ("no named party",))
    return tuple(
        PartyEpsilon(
            parties=names_between(sorted(names)),
            count=len(names),
            epsilon=Interval(lower=finite_or_word(low), upper=finite_or_word(high)),
        )
        for (low, high), names in rows.items()
    )


def _conversions(events: Sequence[Event], guarantee: Guarantee) -> tuple[Conversion, ...] | None:
    """Return epsilon by other conversions; None where not only Gaussian steps ran.

    All at the promise's delta, rounded up; they are shown for comparison and none is the promise.
    """
    try:
        found = compare_conversions(
            events,
            delta=guarantee.delta,
            max_order=_MOMENT_ORDERS,
            group=guarantee.group,
        )
    except UnpricedMechanism:
        return None
    return (
        _conversion("exact", found.exact, guarantee.method),
        _conversion("RDP, best order", found.rdp, "Canonne, Kamath, Steinke 2020"),
        _conversion("zCDP", found.zcdp, "Bun, Steinke 2016: ρ + 2√(ρ ln 1/δ)"),
        _conversion(
            f"moments accountant, orders up to {_MOMENT_ORDERS}",
            found.moments,
            "Abadi et al. 2016, Theorem 2",
        ),
    )


def _conversion(method: str, epsilon: Enclosure, source: str) -> Conversion:
    """Return one of them, rounded up.

    Args:
        method: its name.
        epsilon: encloses it; the upper end is shown.
        source: of the method.
    """
    return Conversion(method=method, epsilon=finite_or_word(epsilon.upper_float), source=source)


def _curve(events: Sequence[Event], guarantee: Guarantee) -> tuple[CurvePoint, ...] | None:
    """Points evenly spread over epsilon, from 0 to well below the promise's delta.

    Of grade *fast*: doubles with an outward allowance. None where epsilon is 0 or infinite, and
    for a mechanism without a price.
    """
    least = min(_CURVE_DELTA, float(guarantee.delta) / 1000)
    try:
        ends = [max(least, _LEAST_DELTA)]
        group = guarantee.group
        last = epsilons_at(events, deltas=ends, grade=Grade.FAST, group=group).epsilon[0]
        if last == inf or last == 0:
            return None
        spread = np.linspace(0, last, _CURVE_POINTS)
        curve = deltas_at(events, epsilons=spread, grade=Grade.FAST, group=group)
    except UnpricedMechanism:
        return None
    return tuple(
        CurvePoint(epsilon=float(epsilon), delta=float(delta))
        for epsilon, delta in zip(curve.epsilon, curve.delta, strict=True)
    )


def _odometer(events: Sequence[Event], guarantee: Guarantee) -> tuple[OdometerPoint, ...] | None:
    """What was spent after every round; evenly thinned where there are many.

    Releases of one round are added together. None where a mechanism has no price here, or delta is
    below what the fast grade takes.
    """
    delta = float_up(guarantee.delta)
    if delta < _LEAST_DELTA:
        return None
    spent, rounds, costs = Composition(), list[int](), list[float]()
    in_order = sorted(events, key=_round_of)
    try:
        for number, together in groupby(in_order, key=_round_of):
            spent.extend(together)
            rounds.append(number)
            total = spent.spent * guarantee.group**2
            costs.append(inf if total == inf else float_up(total))
    except UnpricedMechanism:
        return None
    if not rounds:
        return ()
    kept = np.unique(np.linspace(0, len(rounds) - 1, _ODOMETER_POINTS).round().astype(int))
    epsilons = epsilon_upper(mu_squared=np.array(costs)[kept], delta=delta)
    return tuple(
        OdometerPoint(round=rounds[i], epsilon=finite_or_word(float(epsilon)))
        for i, epsilon in zip(kept, epsilons, strict=True)
    )


def _round_of(event: Event) -> int:
    """Return an event's round, by which the odometer adds up."""
    return event.context.round


def _access(
    views: Sequence[AudienceView],
    unprotected: tuple[UnprotectedGroup, ...],
    narrative: Narrative,
    utility: UtilityFacts | Skipped,
) -> Access:
    """Return what was read of private data, with a mechanism and without.

    Args:
        views: what each audience sees.
        unprotected: releases without a mechanism.
        narrative: accesses that its author knows of.
        utility: held-out scores, which are an access of their own.
    """
    covered = tuple(
        f"{view.release}: {view.messages:,} noisy messages" for view in views if view.protected
    )
    held_out = () if isinstance(utility, Skipped) else (_HELD_OUT.format(metric=utility.metric),)
    return Access(
        covered=covered, unprotected=unprotected, not_covered=(*held_out, *narrative.not_covered)
    )


def _noise_source(provenance: Provenance | None) -> str | None:
    """Return where noise came from, and whether somebody could draw it again."""
    if provenance is None:
        return None
    seeded = provenance.seed is not None
    kind = "" if provenance.is_release else SIMULATED
    return f"{kind}{provenance.sampler}, {REPEATABLE if seeded else 'not repeatable'}"


def _limitations(
    unprotected: Sequence[UnprotectedGroup], narrative: Narrative, run: RunFacts
) -> tuple[str, ...]:
    """Return what a reader might wrongly conclude, and what a narrative adds.

    Only what this run's facts make true is said: a list that is always the same is not read.
    """
    found = [
        "The promise is about this run. Further runs on the same records add to what is spent.",
        "Facts that hold for a population can be learned about a person whether or not the "
        "person's record was used; the promise does not prevent that.",
    ]
    if unprotected:
        found.append("Data left without protection: there is no promise while this is so.")
    if run.provenance is not None and not run.provenance.is_release:
        found.append(
            "This was a simulation: many trials, or noise that only resembles the mechanism's. "
            "The promise speaks of one ideal release of each event."
        )
    if run.provenance is not None and run.provenance.seed is not None:
        found.append(
            "The noise is repeatable from a seed: whoever knows the seed can subtract it. Such a "
            "run is an experiment, not a release."
        )
    if narrative.tuning is None:
        found.append(
            "How hyper-parameters were chosen is not stated; choosing them on the same records "
            "spends more."
        )
    return (*found, *narrative.limitations)


def _interval(enclosure: Enclosure) -> Interval:
    """Return an enclosure's ends in the record's form."""
    return Interval(
        lower=finite_or_word(enclosure.lower_float), upper=finite_or_word(enclosure.upper_float)
    )
