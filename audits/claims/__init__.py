"""The claims court: what published papers promise, and what is true.

>>> finding = audit("H-3", ["t=10", "epsilon=1"])
>>> finding.verdict.value
'holds'
>>> audit("H-3", ["t=100", "epsilon=1"]).breaks_at
't = 51'
"""

from collections.abc import Sequence
from typing import Any

from ...mechanisms.errors import InvalidParameter
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
    has_parameter,
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
    "cases",
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


def cases(papers: Sequence[Paper[Any]], assignments: Sequence[str]) -> dict[str, Case[Any]]:
    """Return each paper's parameters, by its name, with the user's texts in place.

    A text is `name=value`, for the one paper that has such a parameter, or `paper.name=value`.

    Raises `UnknownClaim` for what no paper has, `InvalidParameter` for what several have, and as
    `Paper.case` does.
    """
    known = {paper.name: paper for paper in papers}
    texts: dict[str, list[str]] = {name: [] for name in known}
    for text in assignments:
        left, equals, right = text.partition("=")
        prefix, dot, name = left.strip().rpartition(".")
        if dot:
            if prefix not in known:
                raise UnknownClaim(
                    f"Expected a paper at hand ({', '.join(known)}) instead got {prefix[:40]!r}."
                )
            texts[prefix].append(name + equals + right)
            continue
        having = [p.name for p in papers if has_parameter(p.setting, name)]
        if len(having) > 1:
            forms = " or ".join(f"{paper}.{name[:40]}" for paper in having)
            raise InvalidParameter("set", text[:40], f"of one paper: several have it; {forms}")
        # where none has it, the first paper says what it has
        texts[having[0] if having else next(iter(known))].append(text)
    return {name: paper.case(texts[name]) for name, paper in known.items()}
