"""A hearing: claims, their verdicts, and the attacks that confirm them.

Verdicts are computed at the parameters that are asked for; attacks are long, so that what they
found before is shown where parameters are the same, with the command that computes it anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..replay import Progress
from . import cases, find
from .claim import Claim, DerivationEvidence, Evidence, Finding, Paper
from .confirmations import SEED, Confirmation, confirm, known, written


@dataclass(frozen=True, slots=True)
class Attacks:
    """Whether attacks run anew, and how; otherwise what they found before is shown.

    Args:
        anew: whether to run them.
        trials: of each; its own number without it.
        seed: of the noise.
    """

    anew: bool = False
    trials: int | None = None
    seed: int = SEED


@dataclass(frozen=True, eq=False, slots=True)
class JudgedClaim:
    """A claim, its verdict, and the attack on it.

    Args:
        paper: that the claim is of.
        claim: as stated.
        finding: the verdict with its evidence.
        confirmation: what the attack found; None where there is none.
        command: what computed that before; None where it ran just now.
    """

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
    def is_finding(self) -> bool:
        """Whether the claim does not hold, or the attack contradicts the verdict."""
        return self.finding.is_finding or self.contradicted

    @property
    def attacked(self) -> str:
        """What became of the attack, in a word."""
        if self.confirmation is None:
            return ""
        if self.contradicted:
            return "NOT CONFIRMED"
        return "exceeded" if self.confirmation.outcome.exceeded else "survived"

    @property
    def attack_text(self) -> str:
        """What became of the attack, or why there is none, in a sentence."""
        if self.confirmation is not None:
            return self.confirmation.text
        return self.claim.not_attacked and f"not attacked: {self.claim.not_attacked}"


def judge_claims(
    papers: Sequence[Paper[Any]],
    names: Sequence[str],
    assignments: Sequence[str] = (),
    *,
    attacks: Attacks,
    progress: Callable[[str], Progress],
) -> list[JudgedClaim]:
    """Return the claims of these names (all without any), judged and attacked.

    Args:
        papers: those at hand.
        names: of papers or claims.
        assignments: as for `cases`.
        attacks: anew, or as found before.
        progress: opens a report of progress with this description.
    """
    found = find(names, papers)
    fixed = cases(list({paper.name: paper for paper, _ in found}.values()), assignments)
    advance = progress("claims")
    judged: list[JudgedClaim] = []
    for done, (paper, claim) in enumerate(found, start=1):
        case = fixed[paper.name]
        finding: Finding = claim.promise.judge(case)
        confirmation, command = None, None
        if attacks.anew:
            confirmation = confirm(claim, case, finding, trials=attacks.trials, seed=attacks.seed)
        elif (kept := known(paper, claim, case)) is not None:
            # the verdict may be another by now: what was found before has to confirm today's
            confirmation, command = replace(kept[0], verdict=finding.verdict.value), kept[1]
        judged.append(JudgedClaim(paper, claim, finding, confirmation, command))
        advance(done, len(found))
    return judged


def save_evidence(judged: Sequence[JudgedClaim], folder: Path) -> None:
    """Write what attacks found to a folder, PAPER/evidence.json each.

    Args:
        judged: claims with confirmations; others are left out.
        folder: with a folder for each paper.
    """
    for paper in dict.fromkeys(each.paper.name for each in judged if each.confirmation):
        found = [each.confirmation for each in judged if each.paper.name == paper]
        path = folder / paper / "evidence.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(written(paper, [each for each in found if each is not None]))


def describe(evidence: Evidence) -> str:
    """Return evidence in a sentence."""
    if isinstance(evidence, DerivationEvidence):
        return "; ".join(line.strip() for line in evidence.lines)
    return (
        f"{evidence.datasets}; {evidence.event}: probability "
        f"{evidence.probability.lower_float:.6g} against "
        f"{evidence.neighbour_probability.upper_float:.6g}"
    )
