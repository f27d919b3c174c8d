"""A verdict says in plain words how far the promise is from what was found."""

from math import inf

import pytest

from dpledger.accounting.numbers.enclosure import Enclosure
from dpledger.audits.claims import ClaimVerdict, Finding

HOLDS, FAILS, NOT_IMPLIED = ClaimVerdict.HOLDS, ClaimVerdict.FAILS, ClaimVerdict.NOT_IMPLIED
SHORT = "not implied by what is stated (by that, "


@pytest.mark.parametrize(
    ("verdict", "claimed", "true", "words"),
    [
        (FAILS, 1.0, 60.5, "fails (the promise is 60 times too small)"),
        (FAILS, 1.0, 1.83, "fails (the promise is 1.8 times too small)"),
        (FAILS, 1.0, 1.0022, "fails (the promise is 0.22 % too small)"),
        (FAILS, 1.0, 1 + 1e-7, "fails (the promise is less than 0.01 % too small)"),
        (FAILS, 1.0, 1e300, "fails (the promise is more than a billion times too small)"),
        (FAILS, 1.0, inf, "fails (the truth is infinite)"),
        (FAILS, 2.0, 1.0, "fails"),
        (NOT_IMPLIED, 8.68, 9.477, SHORT + "the promise is 9.2 % too small)"),
        (NOT_IMPLIED, 1.0, 100.0, SHORT + "the promise is 100 times too small)"),
        (NOT_IMPLIED, 1.0, inf, SHORT + "the truth is infinite)"),
        (HOLDS, 1.18, 1.0, "holds (18 % above the truth)"),
        (HOLDS, 17.06, 1.0, "holds (17 times the truth)"),
        (HOLDS, 8000.0, 1.0, "holds (8,000 times the truth)"),
        (HOLDS, 1.0, 1.0, "holds exactly"),
        (HOLDS, 1.0, 0.0, "holds"),
        (ClaimVerdict.UNSPECIFIED, 1.0, 2.0, "unspecified"),
    ],
)
def test_a_verdict_says_how_far_the_promise_is_from_the_truth(
    verdict: ClaimVerdict, claimed: float, true: float, words: str
) -> None:
    finding = Finding(verdict, "", claimed=Enclosure.of(claimed), true=Enclosure.of(true))
    assert finding.verdict_text == words
