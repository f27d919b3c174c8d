"""What the court found and what attacks confirm, as text for people and as data for machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..accounting.certificate import Certificate, Uncertifiable
from ..audits.claims import Claim, Derivation, Evidence, Finding, Paper, cases, find
from ..audits.claims.confirmations import Confirmation, confirm, known
from .output import Advance, number

__all__ = ["Attacks", "Judged", "finding_data", "judge_all", "told"]


@dataclass(frozen=True, slots=True)
class Attacks:
    """Whether attacks run anew, and how; otherwise what they found before is shown."""

    anew: bool
    trials: int | None
    seed: int


@dataclass(frozen=True, eq=False, slots=True)
class Judged:
    """A claim, its verdict, and the attack on it; `command` is what computed that before."""

    paper: Paper[Any]
    claim: Claim[Any]
    finding: Finding
    confirmation: Confirmation | None
    command: str | None

    @property
    def contradicted(self) -> bool:
        """Whether the attack says something else than the verdict."""
        return self.confirmation is not None and not self.confirmation.agrees

    @property
    def attacked(self) -> str:
        """In a word."""
        if self.confirmation is None:
            return ""
        if self.contradicted:
            return "NOT CONFIRMED"
        return "exceeded" if self.confirmation.outcome.exceeded else "survived"

    @property
    def told(self) -> str:
        """In a sentence."""
        return "" if self.confirmation is None else self.confirmation.text

    @property
    def data(self) -> dict[str, Any]:
        """As plain values."""
        attack: dict[str, Any] | None = None
        if self.confirmation is not None:
            attack = asdict(self.confirmation.outcome)
            attack["kind"] = self.confirmation.outcome.kind.value
            attack["agrees"] = self.confirmation.agrees
            attack["cached"] = self.command is not None
            attack["command"] = self.command
            attack["sha256"] = self.confirmation.sha256
        return {**finding_data(self.finding), "attack": attack}


def judge_all(
    names: Sequence[str],
    assignments: Sequence[str],
    attacks: Attacks,
    start: Callable[[str], Advance],
) -> list[Judged]:
    """Return the claims of these names, judged, with what attacks find or found."""
    found = find(names)
    fixed = cases(list({paper.name: paper for paper, _ in found}.values()), assignments)
    advance = start("claims")
    judged: list[Judged] = []
    for done, (paper, claim) in enumerate(found, start=1):
        case = fixed[paper.name]
        finding: Finding = claim.promise.judge(case)
        confirmation, command = None, None
        if attacks.anew:
            confirmation = confirm(claim, case, finding, trials=attacks.trials, seed=attacks.seed)
        elif (kept := known(paper.name, claim, case)) is not None:
            confirmation, command = kept
        judged.append(Judged(paper, claim, finding, confirmation, command))
        advance(done, len(found))
    return judged


def told(evidence: Evidence) -> str:
    """Return evidence in a sentence."""
    if isinstance(evidence, Derivation):
        return "; ".join(line.strip() for line in evidence.lines)
    return (
        f"{evidence.datasets}; {evidence.event}: probability "
        f"{evidence.probability.lower_float:.6g} against "
        f"{evidence.neighbour_probability.upper_float:.6g}"
    )


def finding_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as plain values."""
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
        "evidence": [_evidence_data(each) for each in finding.evidence],
    }


def _evidence_data(evidence: Evidence) -> dict[str, Any]:
    if isinstance(evidence, Derivation):
        certified = _certificate(evidence)
        return {
            "kind": "derivation",
            "lines": list(evidence.lines),
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


def _certificate(evidence: Derivation) -> Certificate | None:
    try:
        return evidence.certificate()
    except Uncertifiable:
        return None
