"""Every verdict of the court, at the parameters of the papers' experiments, by claim."""

from typing import Any

from dpledger.audits.claims.hearing import Attacks, judge_claims
from dpledger.papers import PAPERS

__all__ = ["found"]


def found() -> dict[str, dict[str, Any]]:
    """Return each claim's verdict, its factor in words and in digits, and what its attack did.

    Attacks are not run anew: what they found before is read, and held against today's verdict.
    """
    judged = judge_claims(
        PAPERS, (), (), attacks=Attacks(), progress=lambda _: lambda _done, _all: None
    )
    assert len(judged) == sum(len(paper.claims) for paper in PAPERS)
    return {
        each.claim.identifier: {
            "verdict": each.finding.verdict.value,
            "text": each.finding.verdict_text,
            "factor": None if (f := each.finding.factor) is None else f"{f:.4g}",
            "breaks_at": each.finding.breaks_at,
            "is_finding": each.finding.is_finding,
            "attacked": each.attacked,
        }
        for each in judged
    }
