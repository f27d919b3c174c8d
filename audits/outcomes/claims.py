"""Verdicts of the court as outcomes: claims of papers, claims of a user's own, finished runs.

The keys of these data are what scripts read, so that they are pinned by tests/golden. A proof is
looked for only here, when a derivation is shown: it takes seconds where batches are sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...accounting.numbers.enclosure import Enclosure, shown_down, shown_up
from ..claims import ClaimVerdict, DerivationEvidence, Evidence, Finding
from ..claims.claim import Claim
from ..claims.finished_run import JudgedPromise
from ..claims.hearing import JudgedClaim, describe
from ..outcome import Outcome, Row, TextColumns

_AUDITED = ("claim", "verdict", "claimed", "true", "breaks at", "attack", "why")
"""Columns of the table of all claims."""


def finding_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as plain values.

    Args:
        finding: its evidence is a derivation, with what is proved of its events, or a
            counterexample.
    """
    return {
        "verdict": finding.verdict,
        "verdict_text": finding.verdict_text,
        "reason": finding.reason,
        "claimed": finding.claimed,
        "true": finding.true,
        "unit": finding.unit,
        "factor": finding.factor,
        "breaks_at": finding.breaks_at,
        "figures": dict(finding.figures),
        "argument": finding.argument,
        "evidence": [_evidence_data(each) for each in finding.evidence],
    }


def _evidence_data(evidence: Evidence) -> dict[str, Any]:
    """Return evidence as plain values; of a derivation, also what is proved or why nothing is."""
    if isinstance(evidence, DerivationEvidence):
        proof, missing = evidence.proof()
        return {
            "kind": "derivation",
            "lines": evidence.lines,
            "proved_epsilon": None if proof is None else proof.epsilon,
            "delta": None if evidence.delta is None else float(evidence.delta),
            "records_per_unit": evidence.group,
            "not_proved": missing or None,
            "subject": None if proof is None else proof.verdict.subject,
        }
    return {
        "kind": "counterexample",
        "datasets": evidence.datasets,
        "event": evidence.event,
        "probability": evidence.probability,
        "neighbour_probability": evidence.neighbour_probability,
    }


def audit_outcome(judged: Sequence[JudgedClaim]) -> Outcome:
    """Return the verdicts on claims of papers, a row each; a finding if one does not hold.

    Args:
        judged: verdicts, each with the attack that confirms it, or why there is none.
    """
    texts = [
        (
            each.claim.identifier,
            each.finding.verdict_text,
            "" if (claimed := each.finding.claimed) is None else f"{claimed.lower_float:.6g}",
            "" if (true := each.finding.true) is None else shown_up(true.upper_float, digits=6),
            each.finding.breaks_at or "",
            each.attacked,
            each.finding.reason,
        )
        for each in judged
    ]
    rows = [(each.claim.identifier, each.attack_text) for each in judged if each.attack_text]
    if any(each.command is not None for each in judged):
        rows.append(("attacks", "as computed before; --rerun computes them anew"))
    return Outcome(
        title="Audit of claims",
        data={"findings": [_judged_data(each) for each in judged]},
        rows=rows,
        tables=(TextColumns(_AUDITED, texts),),
        finding=any(each.is_finding for each in judged),
    )


def _judged_data(judged: JudgedClaim) -> dict[str, Any]:
    """Return a claim's verdict and the attack on it as plain values."""
    attack: dict[str, Any] | None = None
    if (confirmation := judged.confirmation) is not None:
        attack = {
            **asdict(confirmation.outcome),
            "agrees": confirmation.agrees,
            "cached": judged.command is not None,
            "command": judged.command,
            "sha256": confirmation.sha256,
        }
    return {
        "claim": judged.claim.identifier,
        **finding_data(judged.finding),
        "attack": attack,
        "not_attacked": judged.claim.not_attacked,
    }


def explanation_outcome(claim: Claim[Any], finding: Finding) -> Outcome:
    """Return the verdict on one claim with its argument, its figures and its evidence.

    Args:
        claim: as stated.
        finding: at the parameters that were asked for; never a finding by itself, since it
            explains.
    """
    return Outcome(
        title=f"{claim.identifier}: {claim.title}",
        data={
            "claim": claim.identifier,
            **finding_data(finding),
            "not_attacked": claim.not_attacked,
        },
        rows=(
            ("claim", f"{claim.statement} ({claim.place})"),
            ("verdict", finding.verdict_text),
            ("because", finding.reason),
            ("breaks at", finding.breaks_at),
            *(("argument", text) for text in finding.argument),
            *((name, shown_up(value.upper_float)) for name, value in finding.figures.items()),
            *(("evidence", describe(each)) for each in finding.evidence),
            ("not attacked", claim.not_attacked),
        ),
    )


def promise_outcome(judged: JudgedPromise) -> Outcome:
    """Return the verdict on a promise of a user's own, with what was checked and what is missing.

    A finding if the promise does not hold or too little is stated; undecided where nothing is
    missing and no rule decides.

    Args:
        judged: of a claim file or a ledger.
    """
    finding = judged.finding
    claimed, data = finding.claimed, finding_data(finding)
    reason, readings, evidence = _said_once(finding)
    return Outcome(
        title=f"Claim: {judged.title}",
        data={
            "claim": judged.title,
            **data,
            "missing": [*finding.argument, *judged.missing],
            "checks": judged.checks,
        },
        rows=(
            ("verdict", finding.verdict_text),
            ("because", reason),
            ("claimed", None if claimed is None else f"{claimed.lower_float:.10g} {finding.unit}"),
            *(("reading", text) for text in readings),
            *(("not stated", each.removeprefix("not stated: ")) for each in finding.argument),
            *(("not stated", each.removesuffix(": not stated")) for each in judged.missing),
            *((c.name, f"{'WRONG: ' * (c.passed is False)}{c.text}") for c in judged.checks),
            *(("evidence", text) for text in evidence),
            *_proof_rows(data),
        ),
        finding=finding.is_finding,
        undecided=finding.is_undecided,
    )


def _said_once(finding: Finding) -> tuple[str, list[str], list[str]]:
    """Return why, each reading's price, and the evidence besides, with no text in two of them.

    A finding's reason, its readings and its evidence are made apart, and would repeat each other on
    a screen.
    """
    lines = [
        line
        for each in finding.evidence
        if isinstance(each, DerivationEvidence)
        for line in each.lines
    ]
    readings = [
        next((line for line in lines if line.startswith(f"{name}: ")), f"{name}: {_range(cost)}")
        for name, cost in finding.figures.items()
    ]
    evidence = [
        text
        for each in finding.evidence
        if (text := describe(each)) not in finding.reason
        and not (isinstance(each, DerivationEvidence) and set(each.lines) <= set(readings))
    ]
    told = f" ({'; '.join(line for line in lines if line in readings)})"
    return finding.reason.replace(told, ""), readings, evidence


def _range(cost: Enclosure) -> str:
    """Return an enclosure's ends, rounded outward."""
    return f"[{shown_down(cost.lower_float, digits=6)}, {shown_up(cost.upper_float, digits=6)}]"


def _proof_rows(data: dict[str, Any]) -> list[Row]:
    """Return what is proved of the events that a finding prices, or why nothing is.

    Args:
        data: of `finding_data`, so that a proof is looked for once.
    """
    rows: list[Row] = []
    for found in data["evidence"]:
        if (epsilon := found.get("proved_epsilon")) is not None:
            text = f"epsilon {shown_up(epsilon)} at delta {shown_up(float(found['delta']))}"
            number = found["records_per_unit"]
            together = f", of {number} records together" if number > 1 else ""
            rows.append(("proved", f"{text}{together}"))
        elif missing := found.get("not_proved"):
            rows.append(("not proved", missing))
    return rows


def sensitivity_outcome(finding: Finding) -> Outcome:
    """Return what a search for neighbours found about a claimed sensitivity.

    A finding where it is refuted; undecided otherwise, since a search proves nothing.

    Args:
        finding: of `judged_function`.
    """
    refuted = finding.verdict is ClaimVerdict.FAILS
    return Outcome(
        "Claimed sensitivity",
        finding_data(finding),
        rows=(("verdict", finding.verdict_text), ("because", finding.reason)),
        finding=refuted,
        undecided=not refuted,
    )
