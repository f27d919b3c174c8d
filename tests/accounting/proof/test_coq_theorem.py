"""Laws of theorems about runs: Coq's kernel checks what the checker accepts, and nothing wrong."""

import json
import re
import shutil
from fractions import Fraction

import pytest

from dpledger.accounting.check.checker import CertificateWrong
from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.coq_goal import compiled_proofs, prove
from dpledger.accounting.proof.coq_theorem import BeyondTheorem, coq_theorem
from dpledger.accounting.proof.extracted import agrees, extracted_checker, run_extracted
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    PoissonSampled,
    Repeated,
)
from dpledger.mechanisms.sensitivity import sum_of_bounded

needs_proofs = pytest.mark.skipif(
    shutil.which("coqc") is None or compiled_proofs() is None,
    reason="coqc or the compiled proofs are not here (make -C proofs)",
)
COVERED = ("one Gaussian step", "schedule of two parties", "repeated", "group", "by hand")
BEYOND = {
    "parties inside": "kind=parties",
    "vertical": "rule=vertical-predictions",
    "every noise": "kind=laplace",
    "Poisson samples": "rule=poisson-rdp",
    "fixed batches": "kind=sampled-without-replacement",
}


def sampled_run(step: Fraction, dense: int, epsilon: Fraction) -> bytes:
    """Ten steps on Poisson samples, on a coarse grid: a larger epsilon, but soon computed."""
    gaussian = GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), 2.0)
    steps = Event(
        Repeated(PoissonSampled(gaussian, 1 / 8), 10), Context((), 1, "model", Audience.SERVER)
    )
    document = json.loads(certify([steps], delta=1e-5).to_json_bytes())
    loss, events = document["nodes"]
    loss["parameters"] |= {"step": str(step), "dense": dense, "doublings": [0, 0, 1]}
    for stated in (loss["parameters"], loss["conclusion"], events["conclusion"]):
        stated["epsilon"] = str(epsilon)
    return json.dumps(document).encode()


def test_a_sampled_run_becomes_a_term():
    goal = coq_theorem(sampled_run(Fraction(1, 32), 8, Fraction(3)))
    assert "SampledStep (1 # 8) AddRemoveOne (1 # 1)" in goal
    assert "(PrivacyLoss 2 1 (1 # 32) [0; 0; 1]%nat 8 " in goal
    assert "dp (one_part add_remove_one)" in goal


@needs_proofs
@pytest.mark.slow
def test_the_kernel_proves_a_sampled_run_private_and_no_smaller_epsilon():
    goal = coq_theorem(sampled_run(Fraction(1, 32), 8, Fraction(3)))
    assert prove(goal, proofs=compiled_proofs(), timeout=1200).proved
    small = goal.replace("(3 # 1)", "(1 # 2)")
    assert not prove(small, proofs=compiled_proofs(), timeout=1200).proved


@pytest.mark.slow
@pytest.mark.skipif(extracted_checker() is None, reason="make -C proofs checker")
def test_the_extracted_checker_proves_a_sampled_run_and_no_smaller_epsilon(tmp_path):
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, epsilon in zip(paths, (Fraction(3), Fraction(1, 2)), strict=True):
        path.write_bytes(sampled_run(Fraction(1, 32), 8, epsilon))
    enough, too_small = run_extracted(paths)
    assert agrees(enough, check(paths[0].read_bytes())), enough.line
    assert too_small.word == "undecided"
    with pytest.raises(CertificateWrong):
        check(paths[1].read_bytes())


@needs_proofs
def test_the_kernel_proves_a_run_private(certificates):
    found = prove(coq_theorem(certificates["repeated"].to_json_bytes()), proofs=compiled_proofs())
    assert found.proved, found.output
    # the axioms of the classical reals, and no other
    axioms = re.findall(r"^(\w+(?:\.\w+)+)\s*$|^(\w+(?:\.\w+)+) :", found.output, re.MULTILINE)
    assert {"".join(pair).split(".")[-1] for pair in axioms} == {
        *("sig_not_dec", "sig_forall_dec", "functional_extensionality_dep", "classic")
    }


@needs_proofs
@pytest.mark.slow
@pytest.mark.parametrize("name", COVERED)
def test_the_kernel_proves_what_the_checker_accepts(certificates, name):
    found = prove(coq_theorem(certificates[name].to_json_bytes()), proofs=compiled_proofs())
    assert found.proved, found.output


@needs_proofs
@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        ("(MeanOfBounded (1 # 1) 400)", "(MeanOfBounded (2 # 1) 400)"),
        ("(MeanOfBounded (1 # 1) 400)", "(MeanOfBounded (1 # 1) 399)"),
        ("Event 1 [] 1", "Event 1 [] 2"),
        ("Event 1 [] 1", "Event 1 [1%positive] 1;\n  Event 2 [2%positive] 1"),
        ("Repeated 1 7", "Repeated 1 8"),
        ("Composition [1; 1]", "Composition [1; 2]"),
    ],
)
def test_the_kernel_refuses_planted_faults(certificates, fault):
    old, new = fault
    goal = coq_theorem(certificates["repeated"].to_json_bytes())
    assert goal.count(old) == 1
    assert not prove(goal.replace(old, new), proofs=compiled_proofs()).proved


@pytest.mark.parametrize("name", COVERED)
def test_the_theorem_names_the_run_and_its_numbers(certificates, name):
    certificate = certificates[name]
    goal = coq_theorem(certificate.to_json_bytes())
    document = json.loads(certificate.to_json_bytes())
    assert certificate.subject in goal
    assert len(re.findall(r"\bEvent \d+", goal)) == len(document["events"])
    assert len(re.findall(r"\bNode ", goal)) == len(document["nodes"])
    conclusion = document["nodes"][-1]["conclusion"]
    statement = goal[goal.index("Theorem this_run_is_private") :]
    for number in (conclusion["epsilon"], conclusion["delta"]):
        numerator, _, denominator = number.partition("/")
        assert f"Q2R ({numerator} # {denominator or 1})" in statement
    assert "Admitted" not in goal


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_not_covered_is_named(certificates, name):
    with pytest.raises(BeyondTheorem, match=BEYOND[name]):
        coq_theorem(certificates[name].to_json_bytes())


def test_only_what_is_proved_becomes_a_theorem(certificates):
    document = json.loads(certificates["one Gaussian step"].to_json_bytes())
    with pytest.raises(CertificateWrong):
        coq_theorem(json.dumps(document | {"subject": "0" * 64}).encode())
