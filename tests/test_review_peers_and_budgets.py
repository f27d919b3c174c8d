"""One run of a ledger with a budget before the court, and peers that have no price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger.accounting import Budget, MemoryLedger
from dpledger.accounting.ledger.ledger import HISTORY
from dpledger.accounting.ledger.proofs import certificate_of, graded_verdict
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.derivation import GIVEN
from dpledger.accounting.proof.opinions import opinion_of_coq
from dpledger.accounting.proof.proved import NotProved
from dpledger.audits.black_boxes import audit_black_box
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import PromisedEpsilon
from dpledger.audits.crosschecks import Status, crosscheck
from dpledger.audits.scores import ClaimedPrivacy
from dpledger.audits.violations import query_patterns
from dpledger.interop import import_into
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    Audience,
    Context,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    Repeated,
    UnprotectedRelease,
    declared,
)

ADD, ZERO = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE
ONE = Adjacency.REPLACE_ONE


def event(mechanism: Mechanism, *parties: str) -> Event:
    return Event(mechanism, Context(parties, 1, "x", Audience.PUBLIC))


def noisy(noise_std: float, adjacency: Adjacency = ADD) -> GaussianStep:
    return GaussianStep(declared(1, "x", adjacency=adjacency), noise_std)


def test_the_budget_speaks_for_one_run_whatever_parties_another_names() -> None:
    """It refused to answer about one run, because the parties of two have no common price."""
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(1.0, 1e-5), ADD))
    for name, first, second in (("one", "a", "b"), ("two", "b", "a")):
        with ledger.run(name, configuration_hash=name) as run:
            run.step(event(noisy(20.0), first))
            run.step(event(noisy(40.0), second))
    within = judge_ledger(ledger, PromisedEpsilon(1.2, 1e-5), run="one").finding
    assert within.verdict is ClaimVerdict.HOLDS
    beyond = judge_ledger(ledger, PromisedEpsilon(0.9, 1e-5), run="one").finding
    assert beyond.verdict is not ClaimVerdict.HOLDS


@pytest.mark.parametrize(
    "mechanism",
    [noisy(1e200, ZERO), AccumulatedPoisson(noisy(1.0, ZERO), 0.0, 3)],
    ids=["noise whose square overflows", "samples of nobody"],
)
def test_a_peer_that_fails_has_not_answered(mechanism: Mechanism) -> None:
    """Its error ended `claims check` in a traceback."""
    pytest.importorskip("dp_accounting")
    found = crosscheck([event(mechanism)], delta=1e-5)
    assert not found.is_finding
    assert {peer.status for peer in found.peers} == {Status.SKIPPED}


def test_a_peer_that_would_list_all_whole_numbers_is_not_asked() -> None:
    """Of a sum of amounts in cents it filled the memory, and the court ended in its error."""
    pytest.importorskip("dp_accounting")
    far = 10**9
    step = DiscreteLaplaceStep(declared(far, "cents", adjacency=ADD, norm=Norm.L1), float(far))
    found = crosscheck([event(step)], delta=1e-5)
    assert not found.is_finding
    assert found.peers[1].status is Status.SKIPPED
    near = DiscreteLaplaceStep(declared(20, "counts", adjacency=ADD, norm=Norm.L1), 20.0)
    assert crosscheck([event(near)], delta=1e-5).peers[1].status is Status.AGREE


@pytest.mark.parametrize(
    ("noise_std", "steps", "delta"), [(1.0, 30, 0.99), (0.5, 100, 0.99), (0.5, 100, 0.999)]
)
def test_orders_that_a_peer_leaves_out_refute_nothing(
    noise_std: float, steps: int, delta: float
) -> None:
    """Near delta 1 the best order of Renyi DP lies below 1.01, where theirs ends."""
    pytest.importorskip("dp_accounting")
    found = crosscheck([event(Repeated(noisy(noise_std, ZERO), steps))], delta=delta)
    assert not found.is_finding
    assert found.peers[1].status is Status.AGREE


def test_an_unprotected_release_refutes_whatever_another_run_costs() -> None:
    """A run without a price beside it left the promise undecided."""
    ledger = MemoryLedger()
    unpriced = PoissonSampled(LaplaceStep(declared(1, "y", adjacency=ONE, norm=Norm.L1), 2.0), 0.1)
    for name, mechanism in (("bare", UnprotectedRelease("x")), ("unpriced", unpriced)):
        with ledger.run(name, configuration_hash=name) as run:
            run.step(event(mechanism))
    found = judge_ledger(ledger, PromisedEpsilon(3.0, 1e-5)).finding
    assert found.verdict is ClaimVerdict.FAILS


def test_a_run_that_left_its_plan_within_the_budget_keeps_the_budgets_promise() -> None:
    """The court said *fails* beside the filter's own proof that the promise is kept."""
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(1.0, 1e-5), ADD))
    with ledger.run("r", configuration_hash="0", plan=[event(noisy(50.0))]) as run:
        run.step(event(noisy(50.0)))
        run.step(event(noisy(60.0)))
    judged = judge_ledger(ledger, PromisedEpsilon(1.2, 1e-5))
    assert judged.finding.verdict is ClaimVerdict.HOLDS
    assert "the run left its plan" in {check.text for check in judged.checks}
    assert judge_ledger(ledger, PromisedEpsilon(0.05, 1e-5)).finding.verdict is ClaimVerdict.FAILS


def test_an_imported_history_is_said_to_be_taken_for_planned(tmp_path: Path) -> None:
    """It was called a plan that was kept, and no certificate named what that rests on."""
    path, ledger = tmp_path / "state.json", MemoryLedger()
    path.write_text(json.dumps({"history": [[1.0, 0.01, 100]], "mechanism": "rdp"}))
    import_into(ledger, "opacus", path, adjacency=ADD)
    judged = judge_ledger(ledger, PromisedEpsilon(3.0, 1e-5))
    (plan,) = [check for check in judged.checks if check.name.startswith("plan of")]
    assert plan.passed is None
    assert HISTORY in plan.text
    certificate = certificate_of(ledger, delta=1e-5)
    verdict, grade = graded_verdict(certificate.to_json_bytes(), ledger)
    assert f"{GIVEN}{HISTORY}" in verdict.assumptions
    assert grade is Grade.ENCLOSED
    silent = certify(ledger.joint_events(), delta=1e-5).to_json_bytes()
    with pytest.raises(NotProved, match="assumptions"):
        graded_verdict(silent, ledger)


def boom(answers: Any, trials: int, generator: Any) -> Any:
    raise ValueError("x")


def words(answers: Any, trials: int, generator: Any) -> Any:
    return np.full((trials, 1), "a")


@pytest.mark.parametrize("box", [boom, words])
def test_a_black_box_that_fails_is_a_mistake_and_no_finding(box: Any) -> None:
    """Its traceback ended the command with the exit status of a refuted claim."""
    claimed = ClaimedPrivacy.of(epsilon=1.0, mu=None, delta=0.0)
    with pytest.raises(InvalidParameter, match="one that returns numbers"):
        audit_black_box(box, query_patterns(1), claimed=claimed, runs=2000, confidence=0.95, seed=1)


def test_a_coq_file_is_written_over_no_other_file(tmp_path: Path) -> None:
    """A ledger whose name ended in .v was gone."""
    certificate, other = tmp_path / "tiny.json", tmp_path / "tiny.v"
    certificate.write_bytes(certify([event(noisy(9.0))], delta=1e-5).to_json_bytes())
    other.write_bytes(b"SQLite format 3 and more")
    with pytest.raises(InvalidParameter, match=r"no other file called tiny\.v"):
        opinion_of_coq(certificate)
    assert other.read_bytes().startswith(b"SQLite")
