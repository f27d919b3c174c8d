"""Attacks of a user's own: what bounds and tests make of two arrays of scores."""

from __future__ import annotations

from collections.abc import Sequence

from ..audits.bounds import LowerBound
from ..audits.claim_tests import ClaimTest
from ..audits.scores import JudgedScores
from .output import Outcome, TextColumns, shown_down, shown_up


def tests_table(tests: Sequence[ClaimTest]) -> TextColumns:
    """Return the tests of a claim as a table: what each may err, and what it saw."""
    texts = [(t.name, f"{t.level:.3g}", "YES" if t.refuted else "no", t.detail) for t in tests]
    return TextColumns(("test of the claim", "level", "refuted", "what it saw"), texts)


def scores_outcome(found: JudgedScores, *, confidence: float) -> Outcome:
    """Return what scores show; a finding if they refute the claim."""
    scores, refuted, delta = found.scores, found.refutes_claim, found.claimed.delta
    trials = {"in": scores.dataset.size, "out": scores.neighbour.size}
    tables = [_bounds_table("lower bound on epsilon", [found.bound])]
    if found.if_normal:
        tables.append(_bounds_table("if scores are normal, an assumption", found.if_normal))
    return Outcome(
        title="Attack by scores",
        data={
            "claimed_epsilon": found.claimed.epsilon,
            "delta": delta,
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
            ("claimed epsilon", f"{shown_up(found.claimed.epsilon, digits=6)} at delta {delta:g}"),
            ("largest provable", f"{found.ceiling:.4g} with so many trials"),
            ("AUC", f"{found.auc:.4f}"),
            ("verdict", "claim REFUTED" if refuted else "claim not refuted"),
            *(("note", text) for text in found.not_meant),
        ),
        tables=(*tables, tests_table(found.tests)),
        finding=refuted,
    )


def _bounds_table(heading: str, bounds: Sequence[LowerBound]) -> TextColumns:
    texts = [(b.method, shown_down(b.epsilon, digits=4), b.detail) for b in bounds]
    return TextColumns((heading, "epsilon", "how"), texts)
