"""The claims court: what published papers promise, and what is true.

>>> finding = audit("H-3", ["t=10", "epsilon=1"])
>>> finding.verdict.value
'holds'
>>> audit("H-3", ["t=100", "epsilon=1"]).breaks_at
't = 51'
"""

from collections.abc import Sequence
from typing import Any

from . import admm_sharing, dp_admm_centralized, pr_admm, ps_admm, star
from .claim import (
    Case,
    Claim,
    Counterexample,
    Derivation,
    Evidence,
    Finding,
    Paper,
    Promise,
    ThreatModel,
    UnknownClaim,
    Verdict,
)

__all__ = [
    "PAPERS",
    "Case",
    "Claim",
    "Counterexample",
    "Derivation",
    "Evidence",
    "Finding",
    "Paper",
    "Promise",
    "ThreatModel",
    "UnknownClaim",
    "Verdict",
    "audit",
    "find",
]

PAPERS: tuple[Paper[Any], ...] = (
    ps_admm.PAPER,
    pr_admm.PAPER,
    dp_admm_centralized.PAPER,
    star.PAPER,
    admm_sharing.PAPER,
)


def find(names: Sequence[str]) -> list[tuple[Paper[Any], Claim[Any]]]:
    """Return the claims with these identifiers, or of these papers; all of them without a name.

    Raises `UnknownClaim`.
    """
    chosen: dict[str, tuple[Paper[Any], Claim[Any]]] = {}
    known = {claim.identifier: (paper, claim) for paper in PAPERS for claim in paper.claims}
    for name in names or [paper.name for paper in PAPERS]:
        claims = [c for paper in PAPERS if paper.name == name for c in paper.claims]
        identifiers = [c.identifier for c in claims] or [name.upper()]
        if identifiers[0] not in known:
            papers = ", ".join(paper.name for paper in PAPERS)
            raise UnknownClaim(
                f"Expected a claim such as H-3 or a paper ({papers}) instead got {name[:40]!r}."
            )
        chosen |= {identifier: known[identifier] for identifier in identifiers}
    return list(chosen.values())


def audit(identifier: str, assignments: Sequence[str] = ()) -> Finding:
    """Return what the court finds about one claim, with `name=value` texts in place of defaults.

    Raises `UnknownClaim`, `InvalidParameter`; `Undecided` where enclosures cannot tell.
    """
    ((paper, claim),) = find([identifier])
    finding: Finding = claim.promise.judge(paper.case(assignments))
    return finding
