"""Published papers: their claims, published settings, experiments and evidence, a folder each.

>>> finding = audit("H-3", ["t=10", "epsilon=1"])
>>> finding.verdict.value
'holds'
>>> audit("H-3", ["t=100", "epsilon=1"]).breaks_at
't = 51'
"""

from collections.abc import Sequence
from typing import Any

from ..audits.claims import Claim, Finding, Paper
from ..audits.claims import find as find_in
from ..mechanisms.errors import InvalidParameter
from . import (
    abadi2016_sgd,
    ding2019_stochastic,
    ding2020_network,
    hu2020_sharing,
    huang2020_star,
    xu2020_centralised,
    zhang2017_dynamic,
)

__all__ = ["PAPERS", "audit", "find", "find_one"]

PAPERS: tuple[Paper[Any], ...] = (
    ding2019_stochastic.PAPER,
    ding2020_network.PAPER,
    xu2020_centralised.PAPER,
    huang2020_star.PAPER,
    hu2020_sharing.PAPER,
    abadi2016_sgd.PAPER,
    zhang2017_dynamic.PAPER,
)
"""All papers, in the order in which they are listed."""


def find(names: Sequence[str]) -> list[tuple[Paper[Any], Claim[Any]]]:
    """Return the claims with these identifiers, or of these papers; all of them without a name.

    Raises `UnknownClaim`.
    """
    return find_in(names, PAPERS)


def find_one(identifier: str) -> tuple[Paper[Any], Claim[Any]]:
    """Return one claim and its paper; raise `InvalidParameter` for a paper of several."""
    found = find([identifier])
    if len(found) != 1:
        raise InvalidParameter("claim", identifier, "a single claim, not a paper")
    return found[0]


def audit(identifier: str, assignments: Sequence[str] = ()) -> Finding:
    """Return what the court finds about one claim, with `name=value` texts in place of defaults.

    Raises `UnknownClaim`, `InvalidParameter`; `TooWide` where enclosures cannot tell.
    """
    paper, claim = find_one(identifier)
    finding: Finding = claim.promise.judge(paper.case(assignments))
    return finding
