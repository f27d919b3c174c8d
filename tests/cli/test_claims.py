"""`dpledger claims` as a user meets it."""

import json
from pathlib import Path

import pytest

from .conftest import Call


def test_audit_reports_findings_and_status_1(call: Call) -> None:
    answer = call("claims", "audit", "H-3", "H-R", "--json")
    assert answer.status == 1
    verdicts = {f["claim"]: f["verdict"] for f in answer.data["findings"]}
    assert verdicts == {"H-3": "fails", "H-R": "holds"}


def test_audit_of_what_holds_has_status_0(call: Call) -> None:
    answer = call("claims", "audit", "h-3", "--set", "t=10", "--set", "eps=1", "--json")
    assert answer.status == 0
    (finding,) = answer.data["findings"]
    assert finding["true"]["upper"] <= finding["claimed"]["lower"]
    assert finding["evidence"][0]["proved_epsilon"] >= finding["true"]["lower"]


def test_an_attack_is_shown_as_computed_before_or_run_anew(call: Call) -> None:
    shown = call("claims", "audit", "DPA-1", "--json").data["findings"][0]["attack"]
    assert shown["cached"]
    assert shown["command"].startswith("dpledger claims audit")
    answer = call("claims", "audit", "DPA-1", "--rerun", "--trials", 400, "--json")
    assert answer.status == 1
    anew = answer.data["findings"][0]["attack"]
    assert not anew["cached"]
    assert anew["exceeded"]
    assert anew["agrees"]
    assert anew["lower"] > anew["epsilon"]


def test_attacks_are_shown_at_their_own_parameters_only(call: Call) -> None:
    answer = call("claims", "audit", "DPA-1", "--set", "epsilon=0.2", "--json")
    assert answer.data["findings"][0]["attack"] is None


def test_what_attacks_find_is_saved_for_later(call: Call, tmp_path: Path) -> None:
    call("claims", "audit", "H-1", "H-6", "--rerun", "--trials", 50, "--save", tmp_path)
    kept = json.loads((tmp_path / "huang2020_star" / "evidence.json").read_text())
    assert [each["claim"] for each in kept["confirmations"]] == ["H-1", "H-6"]
    answer = call("claims", "audit", "H-1", "--save", tmp_path)
    assert answer.status == 2


def test_a_claim_that_no_run_can_bear_on_says_why(call: Call) -> None:
    for command in ("show", "explain"):
        assert "privacy" in call("claims", command, "PS-4", "--json").data["not_attacked"]
        assert "not attacked" in call("claims", command, "PS-4").out
        assert "not attacked" not in call("claims", command, "H-9").out
    (finding,) = call("claims", "audit", "PS-4", "--json").data["findings"]
    assert finding["attack"] is None
    assert "privacy" in finding["not_attacked"]


def test_explain_uses_the_users_numbers(call: Call) -> None:
    answer = call("claims", "explain", "H-3", "--set", "t=100", "--set", "epsilon=1", "--json")
    assert answer.status == 0
    assert answer.data["breaks_at"] == "t = 51"
    assert any("t = 100 rounds" in line for line in answer.data["argument"])


def test_list_and_show(call: Call) -> None:
    listed = call("claims", "list", "huang2020_star", "--json")
    assert next(c["identifier"] for c in listed.data["claims"]) == "H-1"
    shown = call("claims", "show", "H-9", "--set", "tau=0.5", "--json")
    assert shown.data["parameters"]["tau"] == 0.5
    assert "Lemma 4" in shown.data["place"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delta=-1", "delta=-1.0 must be in (0, 1)."),
        ("delta=nan", "delta='nan' must be a number."),
        ("delta=1e-9999", "delta=0.0 must be in (0, 1)."),
        ("t=1e30", "in [1, 10000000]"),
        ("t=0.5", "a whole number"),
        ("t=10**9", "a whole number"),
        ('t=__import__("os").system("true")', "a whole number"),
        ("__class__=1", "Expected the name of a parameter"),
        ("shape=1", "Expected a parameter of the paper"),
        ("zeta=1", "Expected a parameter of the paper"),
        ("smooth=1", "true or false"),
        ("delta", "of the form name=value"),
        ("m=" + "9" * 100_000, "a whole number"),
    ],
)
def test_what_is_no_parameter_is_refused_unevaluated(call: Call, text: str, message: str) -> None:
    answer = call("claims", "audit", "H-3", "--set", text)
    assert answer.status == 2
    assert message in answer.err


def test_unknown_claims_are_refused(call: Call) -> None:
    answer = call("claims", "audit", "H-99; rm")
    assert answer.status == 2
    assert "Expected a claim such as H-3" in answer.err


def test_a_parameter_of_several_papers_wants_the_papers_name(call: Call) -> None:
    answer = call("claims", "audit", "H-4", "PR-3", "--set", "epsilon=1")
    assert answer.status == 2
    assert "huang2020_star.epsilon or ding2020_network.epsilon" in answer.err
    named = call("claims", "audit", "H-2", "PR-4", "--set", "huang2020_star.eps=2", "--json")
    verdicts = {f["claim"]: f["verdict"] for f in named.data["findings"]}
    assert verdicts == {"H-2": "outside its regime", "PR-4": "holds"}
    only = call("claims", "audit", "H-2", "PR-4", "--set", "K=2", "--json")
    assert only.data["findings"][1]["true"]["upper"] == pytest.approx(1 + 2 * 0.015)
    unknown = call("claims", "audit", "H-2", "--set", "ding2020_network.K=2")
    assert unknown.status == 2
    assert "Expected a paper at hand (huang2020_star)" in unknown.err


def test_the_page_is_written(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "claims.html"
    answer = call("claims", "page", "ding2020_network", "H-2", "--set", "K=5", "--out", path)
    assert answer.status == 0
    text = path.read_text(encoding="utf-8")
    assert "K = 5" in text
    assert 'id="H-2"' in text
    assert text.count("<svg") > 1
