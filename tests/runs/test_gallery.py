"""docs/gallery.md is what its command prints, and its prices are what others say too."""

from pathlib import Path

import pytest

from dpledger.audits.claims import DerivationEvidence
from dpledger.audits.claims.claim_file import read_claim
from dpledger.audits.crosschecks import crosscheck
from dpledger.runs.claims import judge_claim_file
from dpledger.runs.gallery import gallery_page

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
CLAIMS = sorted(GALLERY.glob("*.toml"))


def test_the_page_is_what_its_command_prints() -> None:
    assert gallery_page(GALLERY) == GALLERY.with_suffix(".md").read_text(encoding="utf-8")


def test_a_dozen_claims_or_more_say_where_they_stand() -> None:
    assert len(CLAIMS) >= 12
    for path in CLAIMS:
        claim = read_claim(path)
        assert claim.source, path.name
        assert claim.note, path.name
        assert path.name.startswith("hypothetical") == claim.source.startswith("hypothetical")


@pytest.mark.parametrize(
    "name", ["bu2020-clt-20", "papernot2017-pate", "hypothetical-classical-gaussian"]
)
def test_a_figure_that_is_not_implied_is_exceeded_by_independent_accountants(name: str) -> None:
    pytest.importorskip("dp_accounting")
    path = GALLERY / f"{name}.toml"
    promise, finding = read_claim(path).promise.made(), judge_claim_file(path).finding
    (events,) = [e.events for e in finding.evidence if isinstance(e, DerivationEvidence)]
    found = crosscheck(events, delta=promise.delta)
    assert not any(peer.failed for peer in found.peers)
    words = [peer.theirs for peer in found.peers if peer.theirs is not None]
    assert all(epsilon > promise.claimed for epsilon in words)
    # the tightest of them agrees with the price, of which the promise is further away
    assert min(words) == pytest.approx(found.ours.upper_float, rel=1e-3)
    assert promise.claimed < found.ours.lower_float * (1 - 1e-2)
