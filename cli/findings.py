"""What the court found, and what attacks confirm, as data for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..audits.claims import DerivationEvidence, Evidence, Finding
from ..audits.claims.hearing import JudgedClaim

__all__ = ["finding_data", "judged_data"]


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
    told = {"attack": attack, "not_attacked": judged.claim.not_attacked}
    return {**finding_data(judged.finding), **told}


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


def _evidence_data(evidence: Evidence) -> dict[str, Any]:
    if isinstance(evidence, DerivationEvidence):
        certified = evidence.certificate()
        return {
            "kind": "derivation",
            "lines": evidence.lines,
            "certified_epsilon": None if certified is None else certified.epsilon,
            "subject": None if certified is None else certified.subject,
        }
    return {
        "kind": "counterexample",
        "datasets": evidence.datasets,
        "event": evidence.event,
        "probability": evidence.probability,
        "neighbour_probability": evidence.neighbour_probability,
    }
