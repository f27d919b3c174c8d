"""Runs that pay for their whole plan first: all of it or nothing, and nothing but the plan."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from threading import Barrier

import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    declared,
)
from dpledger.mechanisms.protocols import Provenance
from dpledger.runs.prepaid import PrepaidRun

NOWHERE = Provenance("test", None)
ADJACENCY = Adjacency.REPLACE_ONE
STEP = GaussianStep(declared(1, "a test", adjacency=ADJACENCY), 10.0)
PLAN = [Event(STEP, Context((), r, "model", Audience.SERVER)) for r in range(1, 6)]


def test_only_the_planned_events_happen_in_their_order() -> None:
    ledger = MemoryLedger()
    paid = PrepaidRun(ledger.run("a", configuration_hash="c", plan=PLAN), PLAN, NOWHERE)
    assert ledger.events() == PLAN
    paid.commit(paid.reserve(PLAN[:2], NOWHERE))
    assert paid.released == tuple(PLAN[:2])
    with pytest.raises(InvalidParameter, match="as planned"):
        paid.reserve(PLAN[3:4], NOWHERE)
    paid.reserve(PLAN[2:], NOWHERE)
    with pytest.raises(InvalidParameter, match="as planned"):
        paid.reserve(PLAN[:1], NOWHERE)
    assert ledger.runs()[0].committed == 0
    paid.close()
    assert ledger.runs()[0].committed == 1


def test_of_runs_that_start_at_once_one_is_paid_and_the_others_spend_nothing(
    tmp_path: Path,
) -> None:
    path, start = tmp_path / "team.sqlite", Barrier(4)
    one = Fraction(guarantee(PLAN, delta=1e-5).epsilon.upper_float)
    with SqliteLedger(path) as ledger:
        ledger.set_budget(Budget(ApproxDp(one * Fraction(6, 5), Fraction(1e-5)), ADJACENCY))

    def run(name: str) -> bool:
        with SqliteLedger(path) as ledger:
            ledger.require(PLAN)  # each alone would fit
            start.wait()
            try:
                opened = ledger.run(name, configuration_hash=name, plan=PLAN)
                PrepaidRun(opened, PLAN, NOWHERE).close()
            except BudgetExceeded:
                return False
            return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(run, "abcd"))
    with SqliteLedger(path, read_only=True) as ledger:
        assert sum(won) == 1
        assert ledger.events() == PLAN
        assert ledger.spent().epsilon(1e-5).upper_float == one
        with pytest.raises(BudgetExceeded):
            ledger.require(PLAN)


def test_no_refusal_shows_the_seed_of_the_noise() -> None:
    first, second = (Provenance("exact-philox", 2**99 + k, source=object()) for k in range(2))
    paid = PrepaidRun(MemoryLedger().run("a", configuration_hash="c"), PLAN, first)
    for other in (second, Provenance("exact-philox", 2**99, source=object())):
        with pytest.raises(InvalidParameter) as refused:
            paid.reserve(PLAN[:1], other)
        assert str(2**99)[:20] not in str(refused.value)
