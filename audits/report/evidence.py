"""What attacks, other libraries and held-out records show, as parts of the record.

The record is a format that outlives this program, so that results are copied into types of its own
instead of being stored as they are: a change in a result's class must not change old reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..assessment import AttackResult
from ..bounds import LowerBound, MuInterval, largest_rate
from ..crosschecks import Crosscheck
from .record import (
    AccuracyFacts,
    AttackBound,
    Crosschecks,
    EmpiricalAudit,
    Interval,
    MeasuredMu,
    NullControlFacts,
    Number,
    PeerAnswer,
    RatePoint,
    Skipped,
    TruePositives,
    Utility,
    UtilityPoint,
    finite_or_word,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackFacts:
    """An attack's result and what was attacked.

    Args:
        attack: which attack, in a phrase.
        result: what it showed.
        neighbour: how the two data sets differ.
        share: the pair's μ as a part of the promised one, where it is known.
    """

    attack: str
    result: AttackResult
    neighbour: str | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScore:
    """A model's correct answers on held-out records.

    Args:
        model: its name.
        guarantee: how private it is, in words.
        correct: how many of the records it classifies rightly.
        records: how many there are.
    """

    model: str
    guarantee: str
    correct: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityFacts:
    """How good the models are.

    Args:
        metric: what `history` and the results measure, for instance "accuracy".
        scores: of the final models.
        history: by model, pairs (round, value).
        confidence: of the intervals.
    """

    metric: str
    scores: tuple[ModelScore, ...]
    history: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    confidence: float = 0.95


def audit_of(attack: AttackFacts | Skipped) -> EmpiricalAudit | Skipped:
    """Return an attack's result in the record's form, or why there is none.

    The pair's mu is a part of the promised one where the gradients' geometry gives it (`share`).

    Args:
        attack: what was attacked and shown, or why nothing was.
    """
    if isinstance(attack, Skipped):
        return attack
    result = attack.result
    null = result.null_control
    return EmpiricalAudit(
        attack=attack.attack,
        neighbour=attack.neighbour,
        contradicts_promise=result.refutes_claim,
        trials=result.trials,
        confidence=result.confidence,
        delta=result.delta,
        threshold=finite_or_word(result.threshold),
        bounds=_bounds(result.bounds),
        expected_epsilon=finite_or_word(result.expected_epsilon),
        ceiling=finite_or_word(result.ceiling),
        claimed_epsilon=finite_or_word(result.claimed_epsilon),
        claimed_mu=finite_or_word(result.claimed_mu),
        pair_mu=None if attack.share is None else finite_or_word(attack.share * result.claimed_mu),
        measured_mu=_measured(result.measured_mu),
        null_control=NullControlFacts(
            silent=not null.positive,
            bounds=_bounds(null.bounds),
            measured_mu=_measured(null.measured_mu),
            area_under_roc=null.auc,
        ),
        area_under_roc=result.auc,
        true_positives=tuple(
            TruePositives(
                false_positive_rate=t.fpr,
                true_positive_rate=t.tpr,
                interval=Interval(lower=t.lower, upper=t.upper),
                allowed=t.claimed,
            )
            for t in result.tpr_at_fpr
        ),
        not_meant=result.not_meant,
        roc=tuple(
            RatePoint(false_positive_rate=p.fpr, true_positive_rate=p.tpr) for p in result.roc
        ),
    )


def _bounds(bounds: Sequence[LowerBound]) -> tuple[AttackBound, ...]:
    """Return bounds with their conditions, and whether these are met."""
    return tuple(
        AttackBound(
            method=bound.method,
            epsilon=finite_or_word(bound.epsilon),
            mu=_stated(bound.mu),
            valid_when=bound.valid_when,
            applies=bound.conditions_met,
            detail=bound.detail,
            theorem=bound.theorem,
        )
        for bound in bounds
    )


def _measured(measured: MuInterval | None) -> MeasuredMu | None:
    """Return the measured mu with its interval; None outside the Gaussian family."""
    if measured is None:
        return None
    return MeasuredMu(
        estimate=measured.estimate,
        interval=Interval(lower=measured.lower, upper=measured.upper),
        confidence=measured.confidence,
    )


def crosschecks_of(found: Crosscheck) -> Crosschecks:
    """Return what other libraries answered, in the record's form."""
    return Crosschecks(
        agree=found.agrees,
        delta=float(found.delta),
        ours=Interval(
            lower=finite_or_word(found.ours.lower_float),
            upper=finite_or_word(found.ours.upper_float),
        ),
        mapping=found.mapping,
        peers=tuple(
            PeerAnswer(
                peer=peer.peer,
                status=peer.status.value,
                epsilon=_stated(peer.theirs),
                relative_gap=_stated(peer.relative_gap),
                explained=peer.explained,
                explanation=peer.explanation,
            )
            for peer in found.peers
        ),
    )


def _stated(value: float | None) -> Number | None:
    """Return a number in the record's form; None where there is none."""
    return None if value is None else finite_or_word(value)


def utility_of(utility: UtilityFacts | Skipped) -> Utility | Skipped:
    """Return the models' scores with two-sided confidence intervals (Clopper, Pearson 1934).

    Args:
        utility: scores of models, or why there are none.
    """
    if isinstance(utility, Skipped):
        return utility
    each = 1 - (1 - utility.confidence) / 2
    return Utility(
        metric=utility.metric,
        confidence=utility.confidence,
        interval_method="Clopper-Pearson",
        results=tuple(_accuracy(score, each) for score in utility.scores),
        history=tuple(
            UtilityPoint(model=model, round=k, value=value)
            for model, points in utility.history.items()
            for k, value in points
        ),
    )


def _accuracy(score: ModelScore, confidence: float) -> AccuracyFacts:
    """Return a model's accuracy with a two-sided interval of twice the one-sided error.

    Args:
        score: of the model.
        confidence: of each end.

    Clopper, Pearson 1934: exact for any number of records, at the price of being conservative.
    """
    wrong = score.records - score.correct
    lower = 1 - float(largest_rate(wrong, score.records, confidence=confidence))
    upper = float(largest_rate(score.correct, score.records, confidence=confidence))
    return AccuracyFacts(
        model=score.model,
        guarantee=score.guarantee,
        correct=score.correct,
        records=score.records,
        rate=score.correct / score.records,
        interval=Interval(lower=lower, upper=upper),
    )
