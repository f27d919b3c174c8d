"""The page of all papers: complete, self-contained, escaped, and its plots say what is true."""

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from dpledger.audits.claims import ClaimVerdict, cases
from dpledger.audits.claims.auditor import EpsilonPromise, swept
from dpledger.audits.claims.hearing import Attacks, JudgedClaim, judge_claims
from dpledger.audits.claims.page import claims_page
from dpledger.audits.claims.sweep import Sweep
from dpledger.mechanisms import InvalidParameter
from dpledger.papers import PAPERS, find
from dpledger.papers.ding2019_stochastic.constant import linear_epsilon

HOSTILE = '<script>alert("x")</script><img src=http://evil>\x1b[2J\u202e{{ 7*7 }}'
QUICK = ["H-1", "H-3", "DPA-1", "S-4"]


class Tags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= set(attrs)


def sweep_of(identifier: str) -> tuple[Sweep[Any], Any]:
    ((paper, _),) = find([identifier])
    return next(s for s in paper.sweeps if s.claim == identifier), paper.setting


@pytest.fixture(scope="module")
def judged() -> list[JudgedClaim]:
    return judge_claims(
        PAPERS, QUICK, attacks=Attacks(), progress=lambda _: lambda done, total: None
    )


def test_the_page_names_every_claim_and_needs_nothing_else(judged: list[JudgedClaim]) -> None:
    page = claims_page(judged, cases(PAPERS, []))
    found = Tags(page)
    for each in judged:
        assert ("id", each.claim.identifier) in found.attributes
        assert each.finding.verdict_text in page
    assert "as computed before by" in page
    assert found.tags.isdisjoint({"script", "img", "link", "iframe", "object"})
    assert all(
        name not in ("src", "style") and not name.startswith("on") for name, _ in found.attributes
    )
    targets = {value for name, value in found.attributes if name == "href"}
    assert targets
    assert all(value is not None and value.startswith("#") for value in targets)


def test_every_text_is_escaped(judged: list[JudgedClaim]) -> None:
    first = judged[0]
    assert first.confirmation is not None
    outcome = replace(first.confirmation.outcome, at=HOSTILE)
    hostile = JudgedClaim(
        replace(first.paper, title=HOSTILE),
        replace(first.claim, title=HOSTILE, statement=HOSTILE, place=HOSTILE),
        replace(
            first.finding,
            reason=HOSTILE,
            unit=HOSTILE,
            breaks_at=HOSTILE,
            argument=(HOSTILE,),
            figures={HOSTILE: first.finding.true},
        ),
        replace(first.confirmation, outcome=outcome),
        HOSTILE,
    )
    page = claims_page([hostile], cases(PAPERS, []))
    assert Tags(page).tags.isdisjoint({"script", "img"})
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "{{ 7*7 }}" in page


def test_theorem_2_of_the_star_paper_breaks_where_its_critical_mu_says() -> None:
    # claims.md: at epsilon = 1 and delta = 1e-3 the formula is a guarantee up to t = 50
    sweep, setting = sweep_of("H-3")
    broken = {point.value for point in sweep.points(setting) if point.broken}
    assert min(broken) == 51
    assert {75, 100, 500} <= broken


def test_two_rounds_of_the_periodic_decay_are_above_what_is_claimed() -> None:
    sweep, setting = sweep_of("PR-3")
    points = {point.value: point for point in sweep.points(setting)}
    assert points[2].true == pytest.approx(1.02568, abs=5e-6)
    assert points[3].true == pytest.approx(0.8717916446, rel=1e-9)
    assert [value for value, point in points.items() if point.broken] == [2]


def test_the_gaussian_mechanism_breaks_above_7_463() -> None:
    sweep, setting = sweep_of("PS-7")
    assert min(p.value for p in sweep.points(setting) if p.broken) == 7.5


def test_a_lower_bound_is_called_so() -> None:
    paper, setting = next((p, p.setting) for p in PAPERS if p.name == "ding2019_stochastic")
    (sweep,) = [each for each in paper.sweeps if each.claim == "PS-3"]
    page = claims_page(
        judge_claims(PAPERS, ["PS-3"], attacks=Attacks(), progress=lambda _: lambda _d, _a: None),
        cases(PAPERS, []),
    )
    assert "at least, linear losses" in page
    assert "Broken by linear losses up to 3." in page
    assert "The worst pair of steps breaks it up to c = 2056.86." in page
    assert "enclosed" not in page.split("sweep-PS-3")[1].split("</figure>")[0]
    # exactly mu-GDP: both ends of its epsilon are the bound's
    for point in sweep.points(setting)[:2]:
        assert point.true == linear_epsilon(sweep.at(setting, point.value), 1.0).lower_float


def test_every_sweep_belongs_to_a_claim_of_its_paper() -> None:
    for paper in PAPERS:
        names = {claim.identifier for claim in paper.claims}
        assert paper.sweeps
        assert {sweep.claim for sweep in paper.sweeps} <= names


def test_every_claim_over_a_range_has_its_plot() -> None:
    for paper in PAPERS:
        plotted = {sweep.claim for sweep in paper.sweeps}
        for claim in paper.claims:
            promise = claim.promise
            if not isinstance(promise, EpsilonPromise):
                continue
            named = len(promise.cases(paper.case())) > 1 or promise.quantifier is not None
            assert claim.identifier in plotted or not named, claim.identifier


def test_a_swept_promise_is_judged_at_every_value() -> None:
    for identifier, value in (("H-2", 0.5), ("DPA-12", 8), ("PR-11", 0.99)):
        sweep, setting = sweep_of(identifier)
        (point,) = [each for each in sweep.points(setting) if each.value == value]
        # the verdict is of the worst of several settings, the point of one
        ((paper, claim),) = find([identifier])
        alone = replace(claim.promise, cases=lambda case: (case.setting,))
        finding = alone.judge(paper.case([f"epsilon={value}"]))
        assert point.broken is (finding.verdict is ClaimVerdict.FAILS)
        assert finding.claimed.lower_float == point.claimed


def test_only_promises_of_an_epsilon_are_swept() -> None:
    ((_, claim),) = find(["H-1"])
    with pytest.raises(InvalidParameter, match="H-1"):
        swept(claim, "t", (1, 2), at=lambda s, _: s, caption="")
