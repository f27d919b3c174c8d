"""The claims court: what published papers promise, and what is true.

The papers themselves stand in `dpledger.papers`; the court takes them as a list.

A `Claim` is stated with its place in the paper, a `Promise` that can be judged at parameters, and
an attack on it; `judge` gives a `Finding` with evidence that can be computed again: a derivation,
or two data sets and an event.
"""

from collections.abc import Sequence
from typing import Any

from ...mechanisms.errors import InvalidParameter
from .claim import (
    Case,
    Claim,
    ClaimVerdict,
    Counterexample,
    DerivationEvidence,
    Evidence,
    Finding,
    Paper,
    Promise,
    ThreatModel,
    UnknownClaim,
    has_parameter,
)

__all__ = [
    "Case",
    "Claim",
    "ClaimVerdict",
    "Counterexample",
    "DerivationEvidence",
    "Evidence",
    "Finding",
    "Paper",
    "Promise",
    "ThreatModel",
    "UnknownClaim",
    "cases",
    "find",
]


def find(names: Sequence[str], papers: Sequence[Paper[Any]]) -> list[tuple[Paper[Any], Claim[Any]]]:
    """Return the claims with these identifiers, or of these papers; all of them without a name.

    Raises `UnknownClaim`.
    """
    chosen: dict[str, tuple[Paper[Any], Claim[Any]]] = {}
    known = {claim.identifier: (paper, claim) for paper in papers for claim in paper.claims}
    for name in names or [paper.name for paper in papers]:
        claims = [c for paper in papers if paper.name == name for c in paper.claims]
        identifiers = [c.identifier for c in claims] or [name.upper()]
        if identifiers[0] not in known:
            listed = ", ".join(paper.name for paper in papers)
            raise UnknownClaim(
                f"Expected a claim such as H-3 or a paper ({listed}) instead got {name[:40]!r}."
            )
        chosen |= {identifier: known[identifier] for identifier in identifiers}
    return list(chosen.values())


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
