"""Runs that pay for their whole plan first: all of it or nothing, and nothing but the plan."""

import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import LedgerError, MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.federation.prepaid import OtherMessage, PrepaidRun
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

NOWHERE = Provenance("test", None)
MESSAGE = np.zeros((1, 1))
ADJACENCY = Adjacency.REPLACE_ONE
STEP = GaussianStep(declared(1, "a test", adjacency=ADJACENCY), 10.0)
PLAN = [Event(STEP, Context((), r, "model", Audience.SERVER)) for r in range(1, 6)]


def test_only_the_planned_events_happen_in_their_order() -> None:
    ledger = MemoryLedger()
    paid = PrepaidRun(ledger.run("a", configuration_hash="c", plan=PLAN), PLAN, NOWHERE)
    assert ledger.events() == PLAN
    paid.commit(paid.reserve(PLAN[:1], NOWHERE), MESSAGE)
    assert paid.released == tuple(PLAN[:1])
    for others in (PLAN[3:4], PLAN[1:3], [], [declared_otherwise(PLAN[1])]):
        with pytest.raises(InvalidParameter, match="as planned"):
            paid.reserve(others, NOWHERE)
    for event in PLAN[1:]:
        assert ledger.runs()[0].committed == 0
        paid.commit(paid.reserve([event], NOWHERE), MESSAGE)
    with pytest.raises(InvalidParameter, match="as planned"):
        paid.reserve(PLAN[:1], NOWHERE)
    assert ledger.runs()[0].committed == 1


def declared_otherwise(event: Event) -> Event:
    """Return an equal event, whose sensitivity rests on something else."""
    step = GaussianStep(declared(1, "a guess", adjacency=ADJACENCY), 10.0)
    other = Event(step, event.context)
    assert other == event
    return other


def test_a_plan_that_rests_on_something_else_is_another_plan() -> None:
    ledger = MemoryLedger()
    run = ledger.run("a", configuration_hash="c", plan=PLAN)
    PrepaidRun(run, PLAN, NOWHERE)
    PrepaidRun(run, PLAN, NOWHERE, resumed=True)
    others = [*PLAN[:-1], declared_otherwise(PLAN[-1])]
    with pytest.raises(InvalidParameter, match="paid for as planned"):
        PrepaidRun(run, others, NOWHERE, resumed=True)
    with pytest.raises(InvalidParameter, match="opened with"):
        ledger.run("a", configuration_hash="c", plan=others)


def released(paid: PrepaidRun, content: float) -> None:
    """Release what is next as a message of one number, recorded before or not."""
    k = len(paid.released)
    paid.commit(paid.repeat(PLAN[k : k + 1], NOWHERE), np.array([[content]]))


@pytest.mark.parametrize("rows", ["a row for all", "a row for each, as parties once paid"])
def test_of_two_that_go_on_with_a_run_one_draws(rows: str, tmp_path: Path) -> None:
    """Two messages for one release cost twice what was paid; the first is the one."""
    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path) as one, SqliteLedger(path) as other:
        sinks = [each.run("a", configuration_hash="c", plan=PLAN) for each in (one, other)]
        if rows == "a row for all":
            PrepaidRun(sinks[0], PLAN, NOWHERE)
        else:
            for event in PLAN:
                sinks[0].reserve([event], NOWHERE)
        first, second = (PrepaidRun(sink, PLAN, NOWHERE, resumed=True) for sink in sinks)
        released(first, 1.0)
        released(second, 1.0)  # a repetition
        released(second, 2.0)
        with pytest.raises(OtherMessage, match="another copy"):
            released(first, 3.0)
        third = PrepaidRun(sinks[0], PLAN, NOWHERE, resumed=True)
        assert third.left == 2
        released(third, 1.0)
        with pytest.raises(OtherMessage, match="another copy"):
            released(third, 3.0)
        assert len(one.messages()) == 2
        one.verify()


def test_threads_and_processes_that_share_a_ledger_agree_in_one_message(tmp_path: Path) -> None:
    path, start = tmp_path / "ledger.sqlite", Barrier(4)
    with SqliteLedger(path) as ledger:
        PrepaidRun(ledger.run("a", configuration_hash="c", plan=PLAN), PLAN, NOWHERE)

    def go_on(content: float) -> int:
        with SqliteLedger(path) as ledger:
            run = ledger.run("a", configuration_hash="c", plan=PLAN)
            paid = PrepaidRun(run, PLAN, NOWHERE, resumed=True)
            start.wait()
            try:
                for _ in PLAN:
                    released(paid, content)
            except OtherMessage:
                return len(paid.released) - 1
            return len(paid.released)

    with ThreadPoolExecutor(4) as pool:
        left = list(pool.map(go_on, (1.0, 2.0, 3.0, 4.0)))
    assert sorted(left) == [0, 0, 0, len(PLAN)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_fork_of_a_run_draws_nothing(kind: str, tmp_path: Path) -> None:
    """The copy of a process has the copy of its plan, and would draw noise of its own."""
    ledger = MemoryLedger() if kind == "memory" else SqliteLedger(tmp_path / "ledger.sqlite")
    paid = PrepaidRun(ledger.run("a", configuration_hash="c", plan=PLAN), PLAN, NOWHERE)
    child = os.fork()
    if not child:
        try:
            released(paid, 2.0)
            os._exit(0)
        except LedgerError:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    released(paid, 1.0)
    assert len(ledger.messages()) == 1
    ledger.close()


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
                PrepaidRun(opened, PLAN, NOWHERE)
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
