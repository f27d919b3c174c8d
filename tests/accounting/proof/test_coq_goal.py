"""Laws of Coq goals: what a certificate proves Coq proves too, and nothing smaller."""

import json
import re
import shutil
from fractions import Fraction

import pytest

from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.proof.coq_goal import CoqMissing, NoCoqGoal, coq_goal, prove

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="coqc is not installed")


def with_epsilon(goal, factor):
    """The same goal about another epsilon."""
    found = re.search(r"epsilon := \((\d+) / (\d+)\)", goal)
    other = Fraction(int(found[1]), int(found[2])) * factor
    return goal.replace(found[0], f"epsilon := ({other.numerator} / {other.denominator})")


@needs_coq
def test_coq_proves_the_conversion_of_renyi_dp_and_nothing_smaller(certificates):
    goal = coq_goal(certificates["every noise"].to_json_bytes())
    assert prove(goal).proved
    assert not prove(with_epsilon(goal, Fraction(999_999_999, 10**9))).proved


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", ["one Gaussian step", "schedule of two parties", "group"])
def test_coq_proves_the_exact_curve_and_nothing_smaller(certificates, name):
    goal = coq_goal(certificates[name].to_json_bytes())
    found = prove(goal)
    assert found.proved, found.output
    assert not prove(with_epsilon(goal, Fraction(999_999, 10**6))).proved


def test_goals_name_the_run_and_its_numbers(certificates):
    certificate = certificates["one Gaussian step"]
    goal = coq_goal(certificate.to_json_bytes())
    assert certificate.subject in goal
    epsilon = Fraction(certificate.guarantee.epsilon)
    assert f"epsilon := ({epsilon.numerator} / {epsilon.denominator})" in goal
    assert "Admitted" not in goal


def test_only_what_is_proved_becomes_a_goal(certificates):
    document = json.loads(certificates["one Gaussian step"].to_json_bytes())
    with pytest.raises(CertificateWrong):
        coq_goal(json.dumps(document | {"subject": "0" * 64}).encode())
    document["nodes"].pop()
    document["axioms"] = [text for text in document["axioms"] if "delta" not in text]
    with pytest.raises(NoCoqGoal):
        coq_goal(json.dumps(document).encode())


def test_without_coq_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(CoqMissing, match="coqc"):
        prove("Theorem one : True.")
