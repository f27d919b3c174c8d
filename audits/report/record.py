"""The record of a report: everything it says, once, as strict JSON.

HTML and Markdown are renderings of a `Report` and add no facts. A record has no defaults: what is
not known is written down as None and printed as "not stated"; what was not done is a `Skipped` with
its reason. A field that older records lack is the exception: it is left out
where it is None. Numbers are exact binary64; infinity is the word `"infinity"`, which JSON lacks.

Field metadata say how a number is rounded when it is printed: an upper bound up, a lower bound
down, an `Interval` outward.
"""

from enum import Enum
from math import inf, isfinite
from typing import Annotated, Final, Literal

import msgspec

from ...accounting.numbers.grade import Grade
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import DpledgerError

FORMAT: Final = "urn:dpledger:report:1"
"""Of the document; what a field means never changes under it, and new fields may be left out."""

Number = float | Literal["infinity"]
"""A finite number, or the word that stands for infinity."""


class Direction(Enum):
    """How a number is rounded for print."""

    UP = "up"
    DOWN = "down"
    NEAREST = "nearest"


Upper = Annotated[Number, msgspec.Meta(extra={"rounding": Direction.UP})]
"""A number that is an upper bound: printed rounded up."""
Lower = Annotated[Number, msgspec.Meta(extra={"rounding": Direction.DOWN})]
"""A number that is a lower bound: printed rounded down."""
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""In [0, 1], printed to the nearest."""
LargestProbability = Annotated[float, msgspec.Meta(ge=0, le=1, extra={"rounding": Direction.UP})]
"""In [0, 1], an upper bound: printed rounded up."""
Count = Annotated[int, msgspec.Meta(ge=0)]
Code = Annotated[str, msgspec.Meta(extra={"code": True})]
"""Text that is shown as it is, in lines."""


class MalformedReport(DpledgerError, ValueError):
    """A document is not a report of this format; nothing was read from it."""


def finite_or_word(value: float) -> Number:
    """Return `value`, or the word for plus infinity. Raises `ValueError` for other non-numbers."""
    if value == inf:
        return "infinity"
    if not isfinite(value):
        raise ValueError(f"value={value} must be in (-inf, inf].")
    return value


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a report: frozen, strict, and without numbers that JSON does not have."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a number that is not finite."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            # msgspec would write these as null, which reads "not stated"
            if isinstance(value, float) and not isfinite(value):
                raise ValueError(f"{name}={value} must be finite, or the word 'infinity'.")


class Interval(_Part, frozen=True, kw_only=True):
    """Two ends with the truth between them; printed rounded outward."""

    lower: Lower
    upper: Upper


class Range(_Part, frozen=True, kw_only=True):
    """The least and the most of several numbers; printed to the nearest."""

    least: Number
    most: Number


class Skipped(_Part, frozen=True, kw_only=True, tag_field="status", tag="skipped"):
    """Something that was not done, and why."""

    reason: str


class Version(_Part, frozen=True, kw_only=True):
    """A package and its version."""

    package: str
    version: str


class Identity(_Part, frozen=True, kw_only=True):
    """Which run this is. `ledger` names the ledger wherever its file lies.

    Args:
        format: of the document.
        title: of the report.
        date: as the caller gave it; nobody looked at a clock here.
        run: its name in the ledger.
        ledger_head_sha256: the last hash of the ledger's chain when the report was made.
        events_sha256: of the event list; a certificate of the same run has it as its subject.
        configuration_sha256: as in the ledger.
        versions: of the packages that numbers may depend on.
        configuration: as text, without a seed of noise.
    """

    format: Literal["urn:dpledger:report:1"]
    title: str
    date: str | None
    run: str | None
    ledger: str | None
    ledger_head_sha256: str | None
    events_sha256: str
    configuration_sha256: str | None
    versions: tuple[Version, ...]
    configuration: Code | None


class PromiseFacts(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What is promised, to whom. `records`: publicly at least; older records lack it.

    Args:
        notion: in words.
        unit: whom one unit of privacy is, in a word or two.
        adjacency: the relation of neighbours; None where no event speaks of one.
        neighbours: the same in a sentence.
        records: how many there are, a public number.
    """

    notion: str
    unit: str
    adjacency: Adjacency | None
    neighbours: str
    records: Annotated[Count | None, msgspec.Meta(title="Records (public, at least)")] = None


class CurvePoint(_Part, frozen=True, kw_only=True):
    """(epsilon, delta)-differential privacy holds."""

    epsilon: Upper
    delta: LargestProbability


class OdometerPoint(_Part, frozen=True, kw_only=True):
    """What had been spent after a round, at the promise's delta."""

    round: Count
    epsilon: Upper


class PartyEpsilon(_Part, frozen=True, kw_only=True):
    """What a record pays that lives with one of these `count` parties.

    Args:
        parties: their names, the first and the last where there are many.
        count: of these parties.
        epsilon: of a record of one of them, at the promise's delta.
    """

    parties: str
    count: Count
    epsilon: Annotated[Interval, msgspec.Meta(extra={"digits": 10})]


class Conversion(_Part, frozen=True, kw_only=True):
    """Epsilon of the same events at the same delta, by one conversion."""

    method: str
    epsilon: Annotated[Upper, msgspec.Meta(extra={"digits": 8})]
    source: str


class PrivacyFacts(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """The numbers. `epsilon` encloses the tight value at `delta`; its upper end is the bound.

    `not_proved`: why, where a proof was looked for; older records lack it.

    Args:
        delta: that the promise was asked at.
        grade: proved, enclosed, fast or estimate.
        rho: of zCDP, at most; None for mechanisms without one.
        mu: of GDP, at most; None likewise.
        by_party: what records pay that live with different parties.
        conversions: the same events by other accountants.
        curve: at other epsilons, of the grade `curve_grade`.
        odometer: after every round, of the grade `odometer_grade`.
    """

    epsilon: Annotated[Interval, msgspec.Meta(extra={"digits": 13})]
    delta: LargestProbability
    grade: Grade
    rho: Annotated[Upper | None, msgspec.Meta(title="ρ (zCDP)")]
    mu: Annotated[Upper | None, msgspec.Meta(title="μ (GDP)")]
    by_party: tuple[PartyEpsilon, ...]
    conversions: tuple[Conversion, ...] | None
    curve_grade: Grade | None
    curve: Annotated[tuple[CurvePoint, ...] | None, msgspec.Meta(extra={"plot": True})]
    odometer_grade: Grade | None
    odometer: Annotated[tuple[OdometerPoint, ...] | None, msgspec.Meta(extra={"plot": True})]
    not_proved: str | None = None


class AudienceView(_Part, frozen=True, kw_only=True):
    """Messages of one kind that an audience sees.

    Args:
        audience: who sees them.
        release: what was released, in a word.
        protected: whether a mechanism stands behind them.
        messages: how many.
    """

    audience: str
    release: str
    protected: bool
    messages: Count


class ThreatFacts(_Part, frozen=True, kw_only=True):
    """Who is trusted with what.

    Args:
        server: what it sees.
        neighbours: what other parties see of this one's messages.
        outsiders: what everybody sees.
        assumes: the trust that all of it rests on.
    """

    server: str
    neighbours: str
    outsiders: str
    assumes: str | None


class Releases(_Part, frozen=True, kw_only=True):
    """What left."""

    published: str | None
    seen: tuple[AudienceView, ...]


class UnprotectedGroup(_Part, frozen=True, kw_only=True):
    """Messages that left without a mechanism."""

    release: str
    messages: Count
    reason: str


class Access(_Part, frozen=True, kw_only=True):
    """Which accesses to private data the numbers cover, and which they do not.

    Args:
        covered: releases that the bound is of.
        unprotected: releases without a mechanism: where there is one, no epsilon is finite.
        not_covered: reads that no event stands for, as their reader stated them.
    """

    covered: tuple[str, ...]
    unprotected: tuple[UnprotectedGroup, ...]
    not_covered: tuple[str, ...]


_NO_NUMBER = msgspec.Meta(extra={"absent": "has none"})


class MechanismGroup(_Part, frozen=True, kw_only=True):
    """Releases of one kind. Ranges are over the group; the derivation is of the largest bound.

    `sensitivity` and `noise_std` are in units of the released quantity.
    """

    release: str
    mechanism: str
    audience: str
    rounds: str
    messages: Count
    parties: Annotated[Count | None, msgspec.Meta(extra={"absent": "not told apart"})]
    norm: Annotated[str | None, _NO_NUMBER]
    sensitivity: Annotated[Range | None, _NO_NUMBER]
    derivation: Annotated[Code | None, _NO_NUMBER]
    noise_std: Annotated[Range | None, msgspec.Meta(title="noise_std (released units)"), _NO_NUMBER]
    noise_multiplier: Annotated[
        Range | None, msgspec.Meta(title="noise_multiplier (noise_std / sensitivity)"), _NO_NUMBER
    ]
    sampling: str


REPEATABLE = "a recorded seed"
"""In a noise source: whoever knows the seed can draw the noise again, and subtract it."""

SIMULATED = "a simulation: "
"""Begins a noise source: many trials, or noise that only resembles the mechanism's."""


class SamplingFacts(_Part, frozen=True, kw_only=True):
    """How records were sampled, by the claim and by the run; and where noise came from.

    Args:
        claimed: the scheme that an algorithm's authors name.
        executed: the scheme that the events speak of; the bound is for this one.
        noise_source: which sampler drew, and whether its noise can be drawn again.
    """

    claimed: str | None
    executed: str
    noise_source: str | None


class TheoremUsed(_Part, frozen=True, kw_only=True):
    """A theorem that the guarantee rests on."""

    statement: str
    source: str


class PeerAnswer(_Part, frozen=True, kw_only=True):
    """What someone else's code says of the same events; the gap is (theirs - ours) / ours.

    Args:
        peer: another library.
        status: what came of asking it.
        explained: whether the gap is one that is known and named in `explanation`.
    """

    peer: str
    status: str
    epsilon: Annotated[Number | None, msgspec.Meta(extra={"digits": 8})]
    relative_gap: Annotated[Number | None, msgspec.Meta(extra={"digits": 3})]
    explained: bool
    explanation: str


class Crosschecks(_Part, frozen=True, kw_only=True, tag_field="status", tag="done"):
    """All that were made; `agree` when at least one peer answered and every gap is explained."""

    agree: bool
    delta: LargestProbability
    ours: Annotated[Interval, msgspec.Meta(title="ε here", extra={"digits": 10})]
    mapping: Annotated[str, msgspec.Meta(title="How events were passed on")]
    peers: tuple[PeerAnswer, ...]


class Accounting(_Part, frozen=True, kw_only=True):
    """How the numbers were found.

    Args:
        method: how the bound was found.
        theorems: that it rests on, with their sources.
        assumptions: what it takes for granted.
        certificate: file name of the proof, or what was checked, in a word.
        crosschecks: what other libraries say of the same events, or why none was asked.
    """

    method: str
    theorems: tuple[TheoremUsed, ...]
    assumptions: tuple[str, ...]
    certificate: str | None
    crosschecks: Annotated[Crosschecks | Skipped, msgspec.Meta(title="Cross-checks")]


class Preparation(_Part, frozen=True, kw_only=True):
    """What happened before and after the private computation."""

    data: str | None
    preprocessing: str | None
    tuning: str | None
    post_processing: Annotated[str | None, msgspec.Meta(title="Post-processing")]


class StatementFacts(_Part, frozen=True, kw_only=True):
    """What the holder of the data states, and nobody has checked."""

    purpose: str | None
    contact: str | None
    unit: Annotated[str | None, msgspec.Meta(title="Whom one record belongs to")]
    bounds: Annotated[str | None, msgspec.Meta(title="Where bounds and categories come from")]
    preprocessing: str | None
    tuning: str | None
    retention: str | None
    refresh: Annotated[str | None, msgspec.Meta(title="Next use of the same records")]


class RatePoint(_Part, frozen=True, kw_only=True):
    """Rates of false and of true positives at one threshold."""

    false_positive_rate: Probability
    true_positive_rate: Probability


class AttackBound(_Part, frozen=True, kw_only=True):
    """A lower bound on the true epsilon. Zero is no evidence of privacy.

    Args:
        method: how it is counted or fitted.
        epsilon: at the audit's delta and confidence.
        mu: of GDP, where the method gives one.
        valid_when: its conditions, in words.
        applies: whether they are met here.
        theorem: its source.
    """

    method: str
    epsilon: Lower
    mu: Annotated[Lower | None, msgspec.Meta(title="μ", extra={"absent": "not given"})]
    valid_when: str
    applies: bool
    detail: str
    theorem: str


class MeasuredMu(_Part, frozen=True, kw_only=True):
    """μ as the trials show it, with its interval; it holds for normal scores of one variance."""

    estimate: float
    interval: Interval
    confidence: Probability


_MEASURED = msgspec.Meta(title="Measured μ", extra={"absent": "scores are not normal"})


class NullControlFacts(_Part, frozen=True, kw_only=True):
    """The same attack where there is nothing to find (D = D'): it must stay silent."""

    silent: bool
    bounds: tuple[AttackBound, ...]
    measured_mu: Annotated[MeasuredMu | None, _MEASURED]
    area_under_roc: Probability


class TruePositives(_Part, frozen=True, kw_only=True):
    """How many are found at one rate of false alarms, and how many the promise allows."""

    false_positive_rate: Probability
    true_positive_rate: Annotated[Probability, msgspec.Meta(extra={"digits": 3})]
    interval: Annotated[Interval, msgspec.Meta(extra={"digits": 3})]
    allowed: Annotated[LargestProbability, msgspec.Meta(extra={"digits": 3})]


class EmpiricalAudit(_Part, frozen=True, kw_only=True, tag_field="status", tag="done"):
    """An attack on the run: what it showed, and what it could have shown at most.

    Args:
        contradicts_promise: whether the attack refutes it, by tests whose level was split
            beforehand.
        bounds: lower bounds, each with its own conditions.
        expected_epsilon: what counting so many trials shows of a promise that is exactly met.
        ceiling: what it could show of no privacy at all.
        pair_mu: known where the pair's gradients differ by the same everywhere.
        null_control: where it is not silent, no bound above stands.
        roc: one point for each threshold that was looked at.
    """

    attack: str
    neighbour: str | None
    contradicts_promise: bool
    trials: Annotated[int, msgspec.Meta(ge=1, title="Trials in each world")]
    confidence: Annotated[Probability, msgspec.Meta(title="Confidence of each bound")]
    delta: Probability
    threshold: Annotated[Number, msgspec.Meta(title="Threshold, fixed before the trials")]
    bounds: tuple[AttackBound, ...]
    expected_epsilon: Annotated[
        Number, msgspec.Meta(title="Counting bound to expect if the promise is tight (ε)")
    ]
    ceiling: Annotated[
        Upper, msgspec.Meta(title="Largest ε that counting so many trials could show")
    ]
    claimed_epsilon: Annotated[Number, msgspec.Meta(title="Promised ε of one record at this δ")]
    claimed_mu: Annotated[Number, msgspec.Meta(title="Promised μ of one record")]
    pair_mu: Annotated[Number | None, msgspec.Meta(title="μ that this pair must show")]
    measured_mu: Annotated[MeasuredMu | None, _MEASURED]
    null_control: Annotated[NullControlFacts, msgspec.Meta(title="Null control (D = D′)")]
    area_under_roc: Probability
    true_positives: tuple[TruePositives, ...]
    not_meant: Annotated[tuple[str, ...], msgspec.Meta(title="What it does not mean")]
    roc: Annotated[
        tuple[RatePoint, ...],
        msgspec.Meta(title="Receiver operating characteristic", extra={"plot": True}),
    ]


class AccuracyFacts(_Part, frozen=True, kw_only=True):
    """Correct answers of a model on held-out records, with a confidence interval of the rate."""

    model: str
    guarantee: str
    correct: Count
    records: Count
    rate: Annotated[Probability, msgspec.Meta(extra={"digits": 4})]
    interval: Annotated[Interval, msgspec.Meta(extra={"digits": 4})]


class UtilityPoint(_Part, frozen=True, kw_only=True):
    """A model's figure of merit after a round."""

    model: str
    round: Count
    value: float


class Utility(_Part, frozen=True, kw_only=True, tag_field="status", tag="done"):
    """How good the models are.

    Args:
        metric: what is measured.
        confidence: of each interval, two-sided.
        results: of the final models.
        history: after every round.
    """

    metric: str
    confidence: Probability
    interval_method: str
    results: tuple[AccuracyFacts, ...]
    history: Annotated[tuple[UtilityPoint, ...], msgspec.Meta(extra={"plot": True})]


class Report(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a report says, in the order in which it is read.

    `statement`: the holder's; older records lack it.
    """

    promise: PromiseFacts
    privacy: PrivacyFacts
    threat_model: ThreatFacts
    releases: Releases
    access: Annotated[Access, msgspec.Meta(title="Data accesses")]
    mechanisms: tuple[MechanismGroup, ...]
    sampling: SamplingFacts
    accounting: Accounting
    preparation: Annotated[Preparation, msgspec.Meta(title="Preparation and post-processing")]
    audit: Annotated[EmpiricalAudit | Skipped, msgspec.Meta(title="Empirical audit")]
    utility: Utility | Skipped
    numerics: Annotated[
        tuple[str, ...], msgspec.Meta(title="Numerics and side channels not covered")
    ]
    limitations: tuple[str, ...]
    identity: Identity
    statement: Annotated[
        StatementFacts | None, msgspec.Meta(title="Stated by the holder of the data")
    ] = None


def to_json(report: Report) -> bytes:
    """Return the one JSON document of a record, indented, with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def from_json(document: bytes) -> Report:
    """Return the record in a JSON document, or raise `MalformedReport`, for unknown keys too."""
    try:
        return msgspec.json.decode(document, type=Report)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedReport(f"Expected a report ({error}).") from error
