"""What the court found, as text for people and as data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..accounting.certificate import Certificate, Uncertifiable
from ..audits.claims import Counterexample, Derivation, Evidence, Finding
from .output import number

__all__ = ["finding_data", "told", "witnesses"]


def witnesses(finding: Finding) -> Sequence[Counterexample]:
    """Return the counterexamples among the evidence."""
    return [each for each in finding.evidence if isinstance(each, Counterexample)]


def told(evidence: Evidence, rerun: int | None = None, seed: int = 0) -> str:
    """Return evidence in a sentence; a counterexample is run `rerun` times from `seed`."""
    if isinstance(evidence, Derivation):
        return "; ".join(line.strip() for line in evidence.lines)
    text = (
        f"{evidence.datasets}; {evidence.event}: probability "
        f"{evidence.probability.lower_float:.6g} against "
        f"{evidence.neighbour_probability.upper_float:.6g}"
    )
    if rerun is None:
        return text
    first, second = evidence.rerun(rerun, seed)
    return f"{text}; in {rerun} runs of each: {first:.4g} against {second:.4g}"


def finding_data(finding: Finding, rerun: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Return a finding as plain values; counterexamples as in `told`."""
    return {
        "verdict": finding.verdict.value,
        "verdict_text": finding.verdict_text,
        "reason": finding.reason,
        "claimed": finding.claimed,
        "true": finding.true,
        "unit": finding.unit,
        "factor": None if finding.factor is None else number(finding.factor),
        "breaks_at": finding.breaks_at,
        "figures": dict(finding.figures),
        "argument": list(finding.argument),
        "evidence": [_evidence_data(each, rerun, seed) for each in finding.evidence],
    }


def _evidence_data(evidence: Evidence, rerun: int | None, seed: int) -> dict[str, Any]:
    if isinstance(evidence, Derivation):
        certified = _certificate(evidence)
        return {
            "kind": "derivation",
            "lines": list(evidence.lines),
            "certified_epsilon": None if certified is None else certified.epsilon,
            "subject": None if certified is None else certified.subject,
        }
    frequencies = None if rerun is None else list(evidence.rerun(rerun, seed))
    return {
        "kind": "counterexample",
        "datasets": evidence.datasets,
        "event": evidence.event,
        "probability": evidence.probability,
        "neighbour_probability": evidence.neighbour_probability,
        "trials": rerun,
        "frequencies": frequencies,
    }


def _certificate(evidence: Derivation) -> Certificate | None:
    try:
        return evidence.certificate()
    except Uncertifiable:
        return None
