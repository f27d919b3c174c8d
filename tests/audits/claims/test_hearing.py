"""A hearing: what attacks found before is held against the verdict of today."""

from dataclasses import replace
from typing import Any

import pytest

from dpledger.audits.claims import hearing
from dpledger.audits.claims.confirmations import known
from dpledger.papers import PAPERS


def judged_claim(identifier: str) -> hearing.JudgedClaim:
    (judged,) = hearing.judge_claims(
        PAPERS, [identifier], attacks=hearing.Attacks(), progress=lambda _: lambda _done, _all: None
    )
    return judged


def test_kept_evidence_of_another_verdict_does_not_confirm(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not judged_claim("H-2").contradicted

    def before(paper: str, claim: Any, case: Any) -> Any:
        """The evidence as it would be, had the claim been thought to hold."""
        kept = known(paper, claim, case)
        assert kept is not None
        other = "fails" if kept[0].verdict == "holds" else "holds"
        outcome = replace(kept[0].outcome, exceeded=not kept[0].outcome.exceeded)
        return replace(kept[0], verdict=other, outcome=outcome), kept[1]

    monkeypatch.setattr(hearing, "known", before)
    judged = judged_claim("H-2")
    assert judged.contradicted
    assert judged.attacked == "NOT CONFIRMED"
