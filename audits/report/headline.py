"""The first lines of a report: the bound, what it means in one sentence, and what was checked.

Most readers read no further, so these lines decide what is believed. The rule is that nothing is
shown as good of a promise that protects nobody, of noise that others may know, or of an attack
whose null control failed; and what was not checked is said beside what was.
"""

from dataclasses import dataclass, replace
from enum import Enum

from ...accounting.gaussian.fast import advantage_upper
from ...accounting.guarantees import weaknesses
from ...accounting.hypothesis_testing import best_guess
from ...accounting.numbers.grade import Grade
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import REPEATABLE_NOISE
from ..visible_text import visible
from .numerals import printed, printed_percent_up
from .record import (
    REPEATABLE,
    SIMULATED,
    Direction,
    EmpiricalAudit,
    PrivacyFacts,
    PromiseFacts,
    Report,
    Skipped,
)

_DIGITS = 5
"""Of the printed epsilon and delta, rounded up."""


class Tone(Enum):
    """How a verdict should be read."""

    GOOD = "good"
    NEUTRAL = "neutral"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class HeadlineCheck:
    """One thing that was checked, or was not.

    Args:
        label: what it is about, in a word or two.
        text: what was found.
        tone: how it should be read.
    """

    label: str
    text: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Headline:
    """The first lines.

    Args:
        bound: the statement, such as "ε ≤ 1".
        delta: at which delta.
        stated_for: unit and neighbouring relation, such as "per record, replace-one".
        meaning: one plain sentence about a guess at somebody's record.
        tone: how the bound should be read: bad where it is none to rely on (uncertain, infinite, or
            weak by itself), neutral where the noise is one that others may know.
        verdicts: what was checked, bad news first.
    """

    bound: str
    delta: str
    stated_for: str
    meaning: str
    tone: Tone
    verdicts: tuple[HeadlineCheck, ...]


def headline(report: Report) -> Headline:
    """Return the first lines of a report.

    Args:
        report: the record; every number shown is rounded so that a bound stays one.
    """
    privacy = report.privacy
    epsilon = privacy.epsilon.upper
    weak, noise = _weaknesses(report), _noise(report)
    certain = epsilon != "infinity" and privacy.grade is not Grade.ESTIMATE
    relation = "≈" if privacy.grade is Grade.ESTIMATE else "=" if epsilon == "infinity" else "≤"
    return Headline(
        bound=f"ε {relation} {printed(epsilon, rounding=Direction.UP, digits=_DIGITS)}",
        delta=f"δ = {printed(privacy.delta, rounding=Direction.UP, digits=_DIGITS)}",
        stated_for=_stated_for(report.promise),
        meaning=_meaning(report),
        tone=Tone.BAD if weak or not certain else Tone.NEUTRAL if noise else Tone.GOOD,
        verdicts=_verdicts(report, weak, noise),
    )


def _verdicts(
    report: Report, weak: tuple[HeadlineCheck, ...], noise: tuple[HeadlineCheck, ...]
) -> tuple[HeadlineCheck, ...]:
    """Return what was checked; where the promise or the noise is weak, nothing in the tone of good
    news.

    Bad news of the promise and the noise come first; green is for what is true of this very run.
    """
    found = (
        *weak,
        _grade(report.privacy),
        *_parties(report.privacy),
        _accesses(report),
        _crosschecks(report),
        *_attack(report.audit, report.privacy),
    )
    if not noise and not weak:
        return found
    # nothing is shown in green of a promise that protects nobody, or of noise that others may know
    muted = (replace(v, tone=Tone.NEUTRAL) if v.tone is Tone.GOOD else v for v in found)
    return (*noise, *muted)


def _stated_for(promise: PromiseFacts) -> str:
    """Return whose promise it is, and under which relation."""
    relation = "" if promise.adjacency is None else f", {promise.adjacency.value}"
    return f"per {visible(promise.unit)}{relation}"


def _meaning(report: Report) -> str:
    """Return what the bound says of a guess between two neighbours, by their relation."""
    privacy = report.privacy
    if privacy.epsilon.upper == "infinity":
        return (
            "There is no promise: data left without protection, and what left may show "
            "with certainty whether a person's record was there."
        )
    unit = visible(report.promise.unit)
    question = {
        Adjacency.REPLACE_ONE: f"which of two candidates for one {unit} was in the data",
        Adjacency.ZERO_OUT_ONE: f"whether one given {unit} was in the data",
        Adjacency.ADD_REMOVE_ONE: f"whether one given {unit} was in the data",
        Adjacency.REPLACE_FEATURE_COLUMN: "which of two versions of one feature column was used",
        None: f"anything about one {unit}",
    }[report.promise.adjacency]
    rate = printed_percent_up(_best_guess(privacy))
    said = (
        f"Someone who sees every message, knows everything else and guesses {question} is right "
        f"at most {rate} of the time, where a coin is right 50 %."
    )
    return said if privacy.grade is not Grade.ESTIMATE else f"An estimate, no guarantee: {said}"


def _best_guess(privacy: PrivacyFacts) -> float:
    """The largest accuracy of a guess at even odds, rounded up: by (ε, δ) alone, or by μ.

    Of equally likely neighbours: (ε, δ) allows (e^ε + δ)/(1 + e^ε) (Kairouz, Oh, Viswanath 2015);
    μ-GDP allows Φ(μ/2), which is never more than what its own (ε, δ) allow.
    """
    epsilon, mu = privacy.epsilon.upper, privacy.mu
    rates = [1.0]
    if isinstance(epsilon, float):
        rates.append(best_guess(epsilon, privacy.delta))
    if isinstance(mu, float):
        rates.append(0.5 + float(advantage_upper(mu_squared=mu * mu * (1 + 1e-15))) / 2 + 1e-15)
    return min(rates)


def _noise(report: Report) -> tuple[HeadlineCheck, ...]:
    """Return what is wrong with the run's noise for a release, if anything.

    A seed that is recorded makes an experiment, whatever the proof says of ideal noise.
    """
    source = report.sampling.noise_source or ""
    if source.startswith(SIMULATED):
        text = "simulation: the bound is about one ideal release of each event, not about this run"
        return (HeadlineCheck("Noise", text, Tone.BAD),)
    if source.endswith(REPEATABLE):
        return (HeadlineCheck("Noise", REPEATABLE_NOISE, Tone.BAD),)
    return ()


def _weaknesses(report: Report) -> tuple[HeadlineCheck, ...]:
    """Return what is weak about the promise itself, however well it is proved.

    For instance a very large epsilon, or a delta that allows some records to be published.
    """
    privacy = report.privacy
    if not isinstance(privacy.epsilon.upper, float):
        return ()
    found = weaknesses(privacy.epsilon.upper, privacy.delta, report.promise.records)
    return tuple(HeadlineCheck("Promise", text, Tone.BAD) for text in found)


def _grade(privacy: PrivacyFacts) -> HeadlineCheck:
    """Return what stands behind the bound, and why it is not proved where it is not.

    No finite epsilon is said before any grade: a proof of infinity protects nobody.
    """
    if privacy.epsilon.upper == "infinity":
        return HeadlineCheck("Bound", "no finite ε", Tone.BAD)
    texts = {
        Grade.PROVED: ("proved: a certificate that the independent checker accepts", Tone.GOOD),
        Grade.ENCLOSED: ("enclosed: exact parameters, rounded outward", Tone.GOOD),
        Grade.FAST: ("fast: an upper bound in double precision", Tone.NEUTRAL),
        Grade.ESTIMATE: ("estimate: no guarantee", Tone.BAD),
    }
    text, tone = texts[privacy.grade]
    missing = "" if privacy.not_proved is None else f"; not proved: {visible(privacy.not_proved)}"
    return HeadlineCheck("Bound", text + missing, tone)


def _parties(privacy: PrivacyFacts) -> tuple[HeadlineCheck, ...]:
    """Return what a bound for several parties assumes, as nobody can see that it is so."""
    if sum(row.count for row in privacy.by_party) < 2 or privacy.epsilon.upper == "infinity":
        return ()
    text = "every record belongs to one party: of one that stands under two names, costs add up"
    return (HeadlineCheck("Assumed", text, Tone.NEUTRAL),)


def _accesses(report: Report) -> HeadlineCheck:
    """Return whether all that was read of private data is covered by the bound."""
    unprotected = sum(group.messages for group in report.access.unprotected)
    if unprotected:
        return HeadlineCheck(
            "Data accesses", f"{unprotected:,} messages without protection", Tone.BAD
        )
    others = len(report.access.not_covered)
    text = "all covered" if not others else f"{others} not covered, listed below"
    return HeadlineCheck("Data accesses", text, Tone.NEUTRAL if others else Tone.GOOD)


def _crosschecks(report: Report) -> HeadlineCheck:
    """Return what other libraries said of the same events."""
    found = report.accounting.crosschecks
    if isinstance(found, Skipped):
        return HeadlineCheck("Cross-check", f"skipped: {visible(found.reason)}", Tone.NEUTRAL)
    said = "; ".join(visible(f"{peer.peer}: {peer.status}") for peer in found.peers)
    return HeadlineCheck("Cross-check", said, Tone.GOOD if found.agree else Tone.BAD)


def _attack(audit: EmpiricalAudit | Skipped, privacy: PrivacyFacts) -> tuple[HeadlineCheck, ...]:
    """Return what the attack showed, and its null control: where that failed no bound stands."""
    if isinstance(audit, Skipped):
        return (HeadlineCheck("Attack", f"skipped: {visible(audit.reason)}", Tone.NEUTRAL),)
    null = HeadlineCheck("Null control", "silent, as it must be", Tone.GOOD)
    if not audit.null_control.silent:
        null = HeadlineCheck("Null control", "not silent: the attack proves nothing", Tone.BAD)
        return (HeadlineCheck("Attack", "no bound of it stands", Tone.BAD), null)
    return (HeadlineCheck("Attack", *_shown(audit, privacy)), null)


def _shown(audit: EmpiricalAudit, privacy: PrivacyFacts) -> tuple[str, Tone]:
    """Return the largest bound of the attack whose conditions hold, beside the promise.

    Args:
        audit: whose null control was silent.
        privacy: the promise.
    """
    bounds = [b.epsilon for b in audit.bounds if b.applies]
    shown = max((b for b in bounds if isinstance(b, float)), default=0.0)
    level = printed(audit.confidence * 100, digits=4)
    text = f"shows ε ≥ {printed(shown, rounding=Direction.DOWN, digits=3)} at {level} % confidence"
    if audit.contradicts_promise:
        return f"{text}: the promise is broken", Tone.BAD
    if shown == 0:
        return "shows no leakage, which proves nothing", Tone.NEUTRAL
    if privacy.epsilon.upper == "infinity" or audit.claimed_epsilon == "infinity":
        return text, Tone.NEUTRAL
    if shown > float(audit.claimed_epsilon):
        return f"{text}, above the promise, but counting does not confirm it", Tone.NEUTRAL
    return f"{text}, within the promise", Tone.GOOD
