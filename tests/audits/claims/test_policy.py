"""Law: what other checks make of a verdict is one policy; only `holds` can be lost to it.

Law: a library that judges a ledger answers as `claims check --ledger` does.
"""

import pytest

from dpledger.accounting.ledger import MemoryLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.audits.claims.claim import ClaimVerdict, Finding
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import PromisedEpsilon, judged_events
from dpledger.audits.claims.policy import Check, final_verdict
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    Event,
    GaussianStep,
    Provenance,
    declared,
)

BAD = (Check("noise", "two runs share a seed", passed=False),)


@pytest.mark.parametrize(
    "verdict", [v for v in ClaimVerdict if v not in (ClaimVerdict.HOLDS, ClaimVerdict.NOT_IMPLIED)]
)
def test_what_does_not_hold_stays_as_it_is(verdict: ClaimVerdict) -> None:
    finding = Finding(verdict, "because")
    assert final_verdict(finding, BAD, fixed_in_advance=False, accounted_tuning=False) is finding


def test_each_way_to_lose_a_verdict() -> None:
    finding = Finding(ClaimVerdict.HOLDS, "because")
    unknown = Check("attack", "not done")
    passed = Check("ledger", "intact", passed=True)
    assert final_verdict(finding, [unknown, passed]) is finding
    assert final_verdict(finding, BAD).verdict is ClaimVerdict.FAILS
    assert final_verdict(finding, fixed_in_advance=False).verdict is ClaimVerdict.UNSPECIFIED
    assert final_verdict(finding, accounted_tuning=False).verdict is ClaimVerdict.UNACCOUNTED_ACCESS
    assert final_verdict(finding, BAD).reason == "noise did not pass: because"


def test_shared_noise_fails_in_the_library_too() -> None:
    ledger = MemoryLedger()
    sensitivity = declared(1.0, reason="a test", adjacency=Adjacency.ZERO_OUT_ONE)
    event = Event(GaussianStep(sensitivity, 100.0), Context(("a",), 1, "x", Audience.SERVER))
    for name in ("first", "second"):
        run = ledger.run(name, configuration_hash="0" * 64, plan=[event])
        run.commit(run.reserve((event,), Provenance("numpy-philox", 5)))
    promise = PromisedEpsilon(1.0, 1e-5)
    assert judged_events(ledger.joint_events(), promise).verdict is ClaimVerdict.HOLDS
    found = judge_ledger(ledger, promise)
    assert found.finding.verdict is ClaimVerdict.FAILS
    assert [check.name for check in found.checks if check.passed is False] == ["noise"]
    assert judge_ledger(ledger, promise, run="first").finding.verdict is ClaimVerdict.FAILS


def test_a_promise_of_the_budget_holds_however_runs_were_chosen() -> None:
    """It was not specified, though the ledger's own certificate proves it."""
    sensitivity = declared(1, reason="a test", adjacency=Adjacency.ADD_REMOVE_ONE)
    event = Event(GaussianStep(sensitivity, 20.0), Context((), 1, "x", Audience.PUBLIC))
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(1.0, 1e-5), Adjacency.ADD_REMOVE_ONE))
    with ledger.run("unplanned", configuration_hash="0" * 64) as run:
        for _ in range(4):
            run.step(event)
    judged = judge_ledger(ledger, PromisedEpsilon(1.2, 1e-5))
    assert judged.finding.verdict is ClaimVerdict.HOLDS
    assert "of the ledger's budget, proved by its filter" in judged.finding.reason
    # below the budget it depends on what may still be chosen
    assert judge_ledger(ledger, PromisedEpsilon(0.99, 1e-5)).finding.verdict is (
        ClaimVerdict.UNSPECIFIED
    )


def test_a_check_that_nobody_could_make_has_not_passed() -> None:
    """No peer knows discrete Gaussian noise; the cross-check was called passed all the same."""
    ledger = MemoryLedger()
    sensitivity = declared(1, reason="a test", adjacency=Adjacency.ADD_REMOVE_ONE)
    event = Event(DiscreteGaussianStep(sensitivity, 5.0), Context((), 1, "x", Audience.PUBLIC))
    run = ledger.run("counted", configuration_hash="0" * 64, plan=[event])
    run.commit(run.reserve((event,), Provenance("system", None)))
    passed = {
        each.name: each.passed for each in judge_ledger(ledger, PromisedEpsilon(3.0, 1e-5)).checks
    }
    assert passed["cross-check"] is None
    assert passed["certificate"] is True
