"""Attacks as outcomes: replay, scores of a user's own, one run with canaries, black boxes,
membership inference, and the cross-check with another library.

Every lower bound is rounded down and every claim up, so that no printed number shows more leakage,
or promises more privacy, than was computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ...accounting.numbers.enclosure import shown_down, shown_in_full, shown_up
from ...accounting.numbers.grade import Grade
from ..assessment import AttackResult
from ..black_boxes import BlackBoxAudit
from ..bounds import ClopperPearson, LowerBound
from ..claim_tests import ClaimTest
from ..crosschecks import Crosscheck
from ..membership import MembershipCheck, verdict
from ..neighbours import NeighbourPair
from ..one_run_plan import GuessPlan, OneRunAudit
from ..outcome import Outcome, Row, TextColumns, claimed_text, shown
from ..scores import ClaimedPrivacy, JudgedScores

_ASSUMED = "if scores are normal, an assumption"
"""Heading of bounds that rest on normal scores, apart from those that rest on counting."""

_ONE_RUN_NOTES = (
    "A bound of 0, or one below the claim, is no evidence of privacy: other canaries or more of "
    "them may show more.",
    "It holds for independent fair coins, canaries that share nothing, a claim about adding or "
    "removing one of them, and numbers of guesses fixed before the scores were seen.",
)
"""What must not be read into a one-run audit; part of every answer."""


def attack_outcome(pair: NeighbourPair, result: AttackResult) -> Outcome:
    """Return what a replay attack says; a finding if it refutes the claim or its control fails.

    Args:
        pair: the neighbouring data sets that were told apart.
        result: the bounds, tests and null control.
    """
    rows = [
        ("neighbours", pair.description),
        ("trials", f"{result.trials} in each world, confidence {result.confidence:g} a bound"),
        (
            "claimed epsilon",
            # the pair differs in one record, whoever the promise is to
            f"{shown_up(result.claimed_epsilon, digits=6)} at delta {shown_in_full(result.delta)} "
            f"of one record, {Grade.ENCLOSED.value}",
        ),
        ("largest provable", f"{result.ceiling:.4g} with so many trials"),
    ]
    if (measured := result.measured_mu) is not None:
        ends = shown_down(measured.lower, digits=4), shown_up(measured.upper, digits=4)
        rows.append(("measured mu", f"[{', '.join(ends)}] (99 %)"))
        if pair.share is not None:
            expected = f"{pair.share * result.claimed_mu:.4f} ({pair.share:.3f} x planned)"
            rows.append(("exact mu of pair", expected))
    rows.append(("verdict", result.verdict))
    found = {b.method: shown_down(b.epsilon, digits=4) for b in result.bounds}
    texts = [
        (null.method, found.get(null.method, "none"), shown_down(null.epsilon, digits=4))
        for null in result.null_control.bounds
    ]
    proved = [row for row in texts if row[0] == ClopperPearson.METHOD]
    assumed = [row for row in texts if row[0] != ClopperPearson.METHOD]
    head = ("attack", "null control")
    return Outcome(
        title="Replay attack",
        data={
            "neighbours": pair.description,
            "share": pair.share,
            **asdict(result),
            "verdict": result.verdict,
            "refutes_claim": result.refutes_claim,
            "null_control_failed": result.null_control.positive,
        },
        rows=(*rows, *(("note", text) for text in result.not_meant)),
        tables=(
            TextColumns(("lower bound on epsilon", *head), proved),
            TextColumns((_ASSUMED, *head), assumed),
            _tests_table(result.tests),
        ),
        finding=result.is_finding,
    )


def scores_outcome(found: JudgedScores, *, confidence: float) -> Outcome:
    """Return what scores of a user's own show; a finding if they refute the claim.

    Args:
        found: the bounds and tests.
        confidence: of each bound, in (0, 1).
    """
    scores, refuted = found.scores, found.refutes_claim
    trials = {"in": scores.dataset.size, "out": scores.neighbour.size}
    tables = [_bounds_table("lower bound on epsilon", [found.bound])]
    if found.if_normal:
        tables.append(_bounds_table(_ASSUMED, found.if_normal))
    return Outcome(
        title="Attack by scores",
        data={
            "claimed_epsilon": found.claimed.epsilon,
            "delta": found.claimed.delta,
            "confidence": confidence,
            "trials": trials,
            "bounds": [found.bound],
            "if_normal": found.if_normal,
            "tests": found.tests,
            "ceiling": found.ceiling,
            "auc": found.auc,
            "refutes_claim": refuted,
            "not_meant": found.not_meant,
        },
        rows=(
            ("trials", f"{trials['in']} in, {trials['out']} out"),
            ("claimed epsilon", claimed_text(found.claimed)),
            ("largest provable", f"{found.ceiling:.4g} with so many trials"),
            ("AUC", f"{found.auc:.4f}"),
            ("verdict", "claim REFUTED" if refuted else "claim not refuted"),
            *(("note", text) for text in found.not_meant),
        ),
        tables=(*tables, _tests_table(found.tests)),
        finding=refuted,
    )


def _tests_table(tests: Sequence[ClaimTest]) -> TextColumns:
    """Return the tests of a claim as a table: what each may err, and what it saw.

    Levels add up to at most 1 - confidence, so that a true claim is refuted no more often than
    that.
    """
    texts = [(t.name, f"{t.level:.3g}", "YES" if t.refuted else "no", t.detail) for t in tests]
    return TextColumns(("test of the claim", "level", "refuted", "what it saw"), texts)


def _bounds_table(heading: str, bounds: Sequence[LowerBound]) -> TextColumns:
    """Return bounds as a table, each rounded down.

    Args:
        heading: of the first column.
        bounds: each with its method and how it was counted.
    """
    texts = [(b.method, shown_down(b.epsilon, digits=4), b.detail) for b in bounds]
    return TextColumns((heading, "epsilon", "how"), texts)


def one_run_outcome(
    claimed: ClaimedPrivacy,
    plan: GuessPlan,
    result: OneRunAudit | None,
    *,
    canaries: int,
    planned: bool = True,
) -> Outcome:
    """Return the plan of a one-run audit, or what the audit shows: a finding if it refutes.

    Args:
        claimed: the claim under audit.
        plan: how many canaries are guessed in and out.
        result: of the audit; None for a plan alone.
        canaries: how many there are.
        planned: whether the numbers of guesses follow from the claim, rather than from the caller.
    """
    words = f"{plan.guessed_in} in, {plan.guessed_out} out of {canaries} canaries"
    rows: list[Row] = [
        ("claimed epsilon", claimed_text(claimed)),
        ("guesses", f"{words}, fixed {'from the claim' if planned else 'by you'}"),
    ]
    if result is None:
        expected = f"{claimed.unit} >= {plan.expected:.4g}"
        rows.append(("to expect", f"{expected} if mu is truly {plan.suspected_mu:.4g}"))
        return Outcome("Plan of a one-run audit", asdict(plan), rows)
    by = ", ".join(result.refuted_by)
    texts = [
        (
            bound.method,
            shown_down(bound.epsilon, digits=4),
            "" if bound.mu is None else shown_down(bound.mu, digits=4),
            bound.detail,
        )
        for bound in result.bounds
    ]
    return Outcome(
        title="One-run audit",
        data={**asdict(result), "refutes_claim": result.is_finding, "not_meant": _ONE_RUN_NOTES},
        rows=(
            *rows,
            ("verdict", f"claim REFUTED by: {by}" if by else "claim not refuted"),
            *(("note", text) for text in _ONE_RUN_NOTES),
        ),
        tables=(TextColumns(("lower bound", "epsilon", "mu", "how"), texts),),
        finding=result.is_finding,
    )


def black_box_outcome(claimed: ClaimedPrivacy, found: BlackBoxAudit) -> Outcome:
    """Return what bets against a black box's claim show; a finding if it is refuted.

    Args:
        claimed: the claim.
        found: what the runs showed of it.

    A p-value is of the sequential test, and may be looked at after every run.
    """
    return Outcome(
        "Audit of a black box",
        {**asdict(found), "refutes_claim": found.refuted},
        rows=(
            ("claimed epsilon", claimed_text(claimed)),
            ("verdict", f"claim {'REFUTED' if found.refuted else 'not refuted'}"),
            ("evidence", found.evidence),
            ("pair", found.pair),
        ),
        finding=found.refuted,
    )


def foreign_outcome(claimed: ClaimedPrivacy, found: Sequence[ClaimTest]) -> Outcome:
    """Return what recorded and replayed runs of a program show; a finding if a test refutes.

    Args:
        claimed: of the whole run.
        found: a test for each question.
    """
    refuted = [test.name for test in found if test.refuted]
    words = f"REFUTED: {', '.join(refuted)}" if refuted else "nothing found, which proves nothing"
    return Outcome(
        "Audit of foreign code",
        {
            "claimed_epsilon": claimed.epsilon,
            "delta": claimed.delta,
            "refuted": refuted,
            "tests": [asdict(test) for test in found],
        },
        rows=(("claimed epsilon", claimed_text(claimed)), ("verdict", words)),
        tables=(
            TextColumns(
                ("question", "answer", "what was seen"),
                [
                    (test.name, "REFUTED" if test.refuted else "not refuted", test.detail)
                    for test in found
                ],
            ),
        ),
        finding=bool(refuted),
    )


def membership_outcome(found: MembershipCheck) -> Outcome:
    """Return the verdict of membership inference in words, and a row for each score.

    Args:
        found: bounds, null controls and rates of all scores; a finding where one exceeds the
            promise or a control failed.
    """
    texts = [
        (
            result.name,
            "none" if result.bound is None else shown_down(result.bound.epsilon, digits=4),
            shown_down(result.null.epsilon, digits=4),
            f"{result.auc:.4f}",
        )
        for result in found.results
    ]
    lines = verdict(found)
    return Outcome(
        title="Membership inference",
        data={
            **asdict(found),
            "promise": str(found.promise),
            "verdict": lines,
            "refutes_promise": found.refutes_promise,
        },
        rows=[("", line) for line in lines],
        tables=(TextColumns(("score", "epsilon at least", "null control", "AUC"), texts),),
        finding=found.is_finding,
    )


def crosscheck_outcome(found: Crosscheck) -> Outcome:
    """Return another library's epsilons beside ours; a finding if a gap stands unexplained.

    Args:
        found: with an explanation for every gap that is known, such as another discretisation.
    """
    texts = [
        (
            peer.peer,
            peer.status.value,
            "" if peer.theirs is None else f"{peer.theirs:.8g}",
            "" if peer.relative_gap is None else f"{peer.relative_gap:+.2e}",
            peer.explanation,
        )
        for peer in found.peers
    ]
    return Outcome(
        title="Cross-check",
        data={
            "delta": float(found.delta),
            "ours": found.ours,
            "mapping": found.mapping,
            "agrees": found.agrees,
            "peers": [
                {
                    "peer": peer.peer,
                    "status": peer.status,
                    "epsilon": peer.theirs,
                    "relative_gap": peer.relative_gap,
                    "explained": peer.explained,
                    "explanation": peer.explanation,
                }
                for peer in found.peers
            ],
        },
        rows=(
            ("ours", f"{shown(found.ours)} of one record, {Grade.ENCLOSED.value}"),
            ("mapping", found.mapping),
        ),
        tables=(TextColumns(("peer", "status", "epsilon", "gap", "explanation"), texts),),
        finding=found.is_finding,
    )
