"""A plan paid for event by event in one transaction: all rows or none, and each commits alone."""

from pathlib import Path

import pytest

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.ledger.memory import MemoryLedger
from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    PoissonSampled,
    Provenance,
    declared,
)

ENTROPY = Provenance("exact-system-entropy", None)
STEP = GaussianStep(declared(1, "example", adjacency=Adjacency.ZERO_OUT_ONE), noise_std=2.0)


def events(times: int) -> list[Event]:
    return [Event(STEP, Context(("a",), k, "x", Audience.SERVER)) for k in range(1, times + 1)]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_each_event_has_a_row_that_commits_alone(kind: str, tmp_path: Path) -> None:
    ledger = MemoryLedger() if kind == "memory" else SqliteLedger(tmp_path / "l.sqlite")
    run = ledger.run("run", configuration_hash="0", plan=events(3))
    tokens = run.reserve_each(events(3), ENTROPY)
    run.commit(tokens[0])
    found = list(ledger.reservations())
    assert [each.events for each in found] == [(event,) for event in events(3)]
    assert [each.committed for each in found] == [True, False, False]
    assert tuple(each.sequence for each in found) == tokens
    assert ledger.verify().open == tokens[1:]
    assert [each.kept_to_plan for each in ledger.runs()] == [True]
    ledger.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_budget_that_does_not_pay_for_all_pays_for_none(kind: str, tmp_path: Path) -> None:
    ledger = MemoryLedger() if kind == "memory" else SqliteLedger(tmp_path / "l.sqlite")
    ledger.set_budget(Budget(Gdp(0.5), Adjacency.ZERO_OUT_ONE))  # two steps of 1/4
    run = ledger.run("run", configuration_hash="0", plan=events(3))
    with pytest.raises(BudgetExceeded):
        run.reserve_each(events(3), ENTROPY)
    assert ledger.events() == []
    assert len(run.reserve_each(events(2), ENTROPY)) == 2
    ledger.verify()
    ledger.close()


def test_a_plan_that_no_filter_adds_up_is_paid_for_as_a_whole(tmp_path: Path) -> None:
    sampled = [Event(PoissonSampled(STEP, 0.01), each.context) for each in events(4)]
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        ledger.set_budget(Budget(ApproxDp(1, 1e-5), Adjacency.ZERO_OUT_ONE))
        run = ledger.run("run", configuration_hash="0", plan=sampled)
        run.reserve_each(sampled, ENTROPY)
        assert ledger.verify().reservations == 4
        assert ledger.events() == sampled


def test_an_old_seed_is_refused_for_all(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        seeded = Provenance("exact-philox", 7, source=object())
        ledger.run("one", configuration_hash="0").reserve_each(events(2), seeded)
        other = ledger.run("two", configuration_hash="0")
        with pytest.raises(Exception, match="fresh seed"):
            other.reserve_each(events(2), Provenance("exact-philox", 7, source=object()))
        assert len(ledger.events()) == 2
