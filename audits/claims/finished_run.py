"""A finished run before the court: its ledger, against a promise that somebody made for it."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from ...accounting.check.reading import CertificateWrong, Undecided
from ...accounting.composition import UnpricedMechanism
from ...accounting.guarantees import assumptions_of
from ...accounting.ledger import Ledger, TamperedLedger
from ...accounting.ledger.ledger import HISTORY, RunSummary
from ...accounting.ledger.proofs import graded_certificate, graded_verdict
from ...accounting.numbers.enclosure import shown_down, shown_in_full, shown_up
from ...accounting.numbers.grade import Grade
from ...accounting.proof.certificate import Uncertifiable, certify
from ...accounting.proof.proved import NotProved, delta_and_epsilon, proved
from ...mechanisms import Event
from ...mechanisms.errors import AdjacencyMismatch, InvalidParameter, Number
from ...mechanisms.extras import MissingExtra
from ...mechanisms.protocols import Provenance
from ...mechanisms.sensitivity import float_up
from ..assessment import AttackResult
from ..bounds import ClopperPearson
from ..crosschecks import crosscheck
from ..visible_text import in_a_line
from .claim import ClaimVerdict, DerivationEvidence, Finding
from .own import OwnPromise, PromisedEpsilon, judged_events
from .policy import Check, final_verdict

NOT_ATTACKED = "not done: the data are not at hand"
"""A ledger holds no records, so that an attack needs the configuration and the data beside it."""


def unstated(where: str) -> tuple[str, ...]:
    """Return what a promise needs and no list of releases states: named in every verdict.

    Args:
        where: they stand, in words: "a ledger".
    """
    return (
        f"unit of privacy: not stated in {where}",
        f"preprocessing: not stated in {where}",
        f"tuning of settings: not stated in {where}, and not accounted unless it is among the runs",
        f"that nothing else was released: {where} cannot say",
    )


@dataclass(frozen=True, eq=False, slots=True)
class JudgedPromise:
    """What the court finds of a promise of the user's own.

    Args:
        title: of what was promised something.
        finding: the verdict, after all checks.
        checks: what was looked at besides the promise.
        missing: what is not stated.
    """

    title: str
    finding: Finding
    checks: tuple[Check, ...] = ()
    missing: tuple[str, ...] = ()


def judge_ledger(
    ledger: Ledger,
    promise: OwnPromise,
    *,
    title: str = "a finished run",
    run: str | None = None,
    attack: Callable[[set[str]], Check] | None = None,
) -> JudgedPromise:
    """Return what a ledger says of a promise: chain, plan, noise, certificate, cross-check, attack.

    Args:
        ledger: whose runs were promised to be private.
        promise: of all of them together, or of `run`.
        title: of what was promised something, in words.
        run: one run's name; all runs without it.
        attack: attacks the run, given the hashes of the runs' configurations; see `attack_check`.

    Raises `InvalidParameter` where there are no events.

    A chain that was changed ends the hearing: nothing else in the ledger can be relied on. A
    ledger whose events were not all planned beforehand has an adaptive sum, which `final_verdict`
    weighs.
    """
    try:
        verified = ledger.verify()
    except TamperedLedger as error:
        tampered = Finding(ClaimVerdict.FAILS, f"the ledger was tampered with: {error}")
        return JudgedPromise(title, tampered)
    runs, events, sources, sharing, spent, circumstances = ledger.steady(
        lambda: (
            [summary for summary in ledger.runs() if run in (None, summary.run)],
            ledger.joint_events(run),
            {each.provenance for each in ledger.reservations(run)},
            ledger.sharing_noise(run),
            ledger.spent(run),
            ledger.noise_circumstances(run),
        )
    )
    fixed = spent.grade is Grade.ENCLOSED
    if not events:
        raise InvalidParameter("run", run, "of the ledger, with events")
    proof = _proved(events, promise, fixed_in_advance=fixed)
    kept = None if fixed else _kept_by_filter(ledger, promise, run)
    if kept is not None:
        proof, fixed = kept, True
    hashes = {summary.configuration_hash for summary in runs}
    checks = (
        Check("ledger", f"{verified.rows} rows, chain intact; head {verified.head}", passed=True),
        *(check for summary in runs for check in _kept(summary, filtered=kept is not None)),
        *(() if spent.adjacency is None else (Check("relation", spent.adjacency.value),)),
        _noise(sources, sharing),
        proof,
        _crosschecked(events, promise),
        Check("attack", NOT_ATTACKED) if attack is None else attack(hashes),
        *granted([*circumstances, *assumed_of(events, promise.delta)]),
    )
    finding = final_verdict(judged_events(events, promise), checks, fixed_in_advance=fixed)
    if kept is not None and finding.verdict is ClaimVerdict.HOLDS:
        finding = replace(finding, reason=f"{kept.text}: {finding.reason}")
    if not fixed or kept is not None:  # a proof of these events is none of what the run spent
        evidence = (
            replace(each, delta=None) if isinstance(each, DerivationEvidence) else each
            for each in finding.evidence
        )
        finding = replace(finding, evidence=tuple(evidence))
    return JudgedPromise(title, finding, checks, unstated("a ledger"))


def granted(assumed: Iterable[str]) -> tuple[Check, ...]:
    """Return what is taken for granted, each once, as checks that decide nothing."""
    return tuple(Check("assumed", text) for text in dict.fromkeys(assumed))


def assumed_of(events: Sequence[Event], delta: Number | None, group: int = 1) -> tuple[str, ...]:
    """Return what the price of events rests on; nothing where they have none.

    Args:
        events: that are judged, as a certificate would be of them.
        delta: of the promise; None where there is no certificate.
        group: records of a unit.
    """
    if delta is None or not events:
        return ()
    several = (f"no unit has more than {group} records",) if group > 1 else ()
    with suppress(AdjacencyMismatch):
        return (*assumptions_of(events, delta=delta, group=group), *several)
    return several


def attack_check(result: AttackResult, promise: OwnPromise) -> Check:
    """Return what an attack on the run says of a promise.

    It fails where the attack is a finding, its null control included, or its bound exceeds the
    promise.

    Args:
        result: of the attack.
        promise: compared only where it is an epsilon at the attack's delta.
    """
    if result.is_finding:
        return Check("attack", result.verdict, passed=False)
    bound = max(b.epsilon for b in result.bounds if b.method == ClopperPearson.METHOD)
    text = (
        f"replay, {result.trials} trials: epsilon >= {shown_down(bound, digits=4)} at delta "
        f"{shown_in_full(result.delta)} with confidence {result.confidence:g}"
    )
    if not isinstance(promise, PromisedEpsilon):
        return Check("attack", f"{text}; the promise is in another unit")
    if result.delta != promise.delta:
        return Check("attack", f"{text}; the promise is at delta {shown_in_full(promise.delta)}")
    return Check("attack", text, passed=bound <= promise.epsilon)


def _kept(summary: RunSummary, *, filtered: bool) -> tuple[Check, ...]:
    """Return whether a run kept to its plan, and what it reserved without a commit.

    A reservation without a commit is a release that may or may not have left: it counts as spent.

    Args:
        summary: of the run.
        filtered: whether the ledger's filter is the proof, whatever the plan.
    """
    name = f"plan of {summary.run}"
    if summary.imported:
        plan = Check(name, f"imported: taken for granted that {HISTORY}")
    elif summary.planned:
        kept = summary.kept_to_plan
        words = "the run kept to its plan" if kept else "the run left its plan"
        plan = Check(name, words, True if kept else None if filtered else False)
    else:
        plan = Check(name, "none: noise may have been adaptive")
    left = summary.reservations - summary.committed
    if not left:
        return (plan,)
    words = f"{left} reservations without a commit, spent all the same"
    return plan, Check(summary.run, words)


def _noise(sources: set[Provenance], sharing: tuple[str, ...]) -> Check:
    """Return where a ledger's noise came from; it fails where runs share a seed, or simulate.

    Two runs of one seed have equal noise, and their difference has none: no epsilon covers that.
    A simulation's messages are many for one event, or their noise is not the mechanism's.
    """
    text = f"drawn by {', '.join(sorted({in_a_line(each.sampler) for each in sources}))}"
    if not all(each.is_release for each in sources):
        return Check("noise", f"{text}; a simulation, and no release", passed=False)
    if sharing:
        return Check("noise", f"{text}; {len(sharing)} runs share a seed", passed=False)
    return Check("noise", text)


def _proved(events: list[Event], promise: OwnPromise, *, fixed_in_advance: bool) -> Check:
    """Return whether a certificate of the events is found and accepted at the promise's delta.

    Where what ran may depend on what was released, that is an estimate of what it spent.
    """
    try:
        document = certify(events, delta=promise.delta).to_json_bytes()
        verdict = proved(document, events=events, delta=promise.delta, group=1)
    except (Uncertifiable, Undecided) as error:
        return Check("certificate", f"none: {error}")
    except (CertificateWrong, NotProved) as error:
        return Check("certificate", f"refused: {error}", passed=False)
    delta, epsilon = (shown_up(float_up(n)) for n in delta_and_epsilon(verdict) or ())
    text = f"epsilon {epsilon} at delta {delta}"
    if not fixed_in_advance:
        return Check("certificate", f"an estimate, {text}, as if these events had been planned")
    text += f", proved in {verdict.steps} steps"
    return Check("certificate", text, passed=True)


def _kept_by_filter(ledger: Ledger, promise: OwnPromise, run: str | None) -> Check | None:
    """Return the proof that the ledger's budget, whose filter let all of it happen, is within a
    promise of an epsilon; None where it is not, or cannot be proved.

    It holds however runs were chosen, and whenever they ended.
    """
    if ledger.filtered is None or not isinstance(promise, PromisedEpsilon) or not promise.delta:
        return None
    try:
        certificate, grade = graded_certificate(ledger, delta=promise.delta, run=run)
        verdict, proved_grade = graded_verdict(certificate.to_json_bytes(), ledger, run=run)
    except (Uncertifiable, Undecided, NotProved, CertificateWrong, UnpricedMechanism):
        return None
    _, epsilon = delta_and_epsilon(verdict) or (None, Fraction(0))
    if {grade, proved_grade} != {Grade.ENCLOSED} or epsilon > promise.epsilon:
        return None
    shown = f"epsilon {shown_up(float_up(epsilon))} at delta {shown_in_full(promise.delta)}"
    return Check(
        "certificate", f"{shown} of the ledger's budget, proved by its filter", passed=True
    )


def _crosschecked(events: list[Event], promise: OwnPromise) -> Check:
    """Return what other libraries say of the events; it fails where a gap stands unexplained."""
    if promise.delta == 0:
        return Check("cross-check", "not done: no peer answers at delta 0")
    try:
        found = crosscheck(events, delta=promise.delta)
    except (MissingExtra, UnpricedMechanism) as why:
        return Check("cross-check", f"not done: {why}")
    words = "; ".join(
        f"{peer.peer}: {peer.status.value} ({peer.explanation})" for peer in found.peers
    )
    passed = False if found.is_finding else True if found.agrees else None
    return Check("cross-check", words, passed=passed)
