"""What the court found, and what attacks confirm, as data for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..audits.claims import DerivationEvidence, Evidence, Finding
from ..audits.claims.hearing import JudgedClaim
from .output import Row, shown_up

__all__ = ["finding_data", "judged_data", "proof_rows"]


def judged_data(judged: JudgedClaim) -> dict[str, Any]:
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
    attacked = {"attack": attack, "not_attacked": judged.claim.not_attacked}
    return {**finding_data(judged.finding), **attacked}


def finding_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as plain values."""
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


def proof_rows(data: dict[str, Any]) -> list[Row]:
    """Return what is proved of the events that a finding prices, or why nothing is."""
    rows: list[Row] = []
    for found in data["evidence"]:
        if (epsilon := found.get("proved_epsilon")) is not None:
            delta = shown_up(float(found["delta"]))
            rows.append(("proved", f"epsilon {shown_up(epsilon)} at delta {delta}"))
        elif missing := found.get("not_proved"):
            rows.append(("not proved", missing))
    return rows


def _evidence_data(evidence: Evidence) -> dict[str, Any]:
    if isinstance(evidence, DerivationEvidence):
        proof, missing = evidence.proof()
        return {
            "kind": "derivation",
            "lines": evidence.lines,
            "proved_epsilon": None if proof is None else proof.epsilon,
            "delta": None if evidence.delta is None else float(evidence.delta),
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
