"""Burn rates of budgets: shares, rates of the last week, and what a watcher says of them."""

from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

import msgspec
import pytest

from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.audits.burn_rate import Spending, budget_share, burn_rate, noted
from dpledger.audits.outcomes.watching import look_outcome
from dpledger.audits.watching import Look, Memory, Watcher
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    LaplaceStep,
    Provenance,
    declared,
)
from dpledger.mechanisms.sensitivity import Norm

START = datetime(2026, 1, 1, tzinfo=UTC)


def _note(days: float, share: float) -> Spending:
    return Spending((START + timedelta(days=days)).isoformat(), share)


def _step(noise_std: float, *, laplace: bool = False) -> Event:
    norm = Norm.L1 if laplace else Norm.L2
    moved = declared(1, "a test", adjacency=Adjacency.REPLACE_ONE, norm=norm)
    kind = LaplaceStep if laplace else GaussianStep
    return Event(kind(moved, noise_std), Context((), 1, "x", Audience.PUBLIC))


def test_the_rate_is_that_between_the_oldest_and_the_newest_note() -> None:
    found = burn_rate([_note(0, 0.2), _note(1, 0.5), _note(4, 0.6)])
    assert found is not None
    assert found.a_day == pytest.approx(0.1)
    assert found.days_left == pytest.approx(4)
    assert burn_rate([]) is None
    for notes in ([_note(0, 0.5)], [_note(0, 0.5), _note(3, 0.5)]):
        still = burn_rate(notes)
        assert still is not None
        assert (still.a_day, still.days_left) == (0.0, inf)
    gone = burn_rate([_note(0, 0.5), _note(1, 1.0)])
    assert gone is not None
    assert gone.days_left == 0.0


def test_notes_stay_few_and_reach_back_a_week() -> None:
    notes: list[Spending] = []
    for minute in range(14 * 24 * 60 // 10):
        notes = noted(notes, _note(minute / 144, minute / 5000))
    assert len(notes) <= 7 * 24 + 3
    ages = [
        datetime.fromisoformat(notes[-1].time) - datetime.fromisoformat(each.time) for each in notes
    ]
    assert ages[0] >= timedelta(days=7)
    assert ages[1] <= timedelta(days=7)
    found = burn_rate(notes)
    assert found is not None
    assert found.a_day == pytest.approx(144 / 5000)


def test_a_share_is_of_mu_squared_or_of_epsilon() -> None:
    ledger = MemoryLedger()
    assert budget_share(ledger.spent()) is None
    ledger.set_budget(Budget(Gdp(1), adjacency=Adjacency.REPLACE_ONE))
    assert budget_share(ledger.spent()) == 0.0
    run = ledger.run("r", configuration_hash="h")
    run.commit(run.reserve([_step(2.0)], Provenance("test", None)))
    assert budget_share(ledger.spent()) == pytest.approx(0.25)
    # Laplace noise has no mu: half of an epsilon of 1, from a plan that was paid as a whole
    mixed = MemoryLedger()
    mixed.set_budget(Budget(ApproxDp(1, 1e-5), adjacency=Adjacency.REPLACE_ONE))
    plan = [_step(2.0, laplace=True)]
    run = mixed.run("r", configuration_hash="h", plan=plan)
    run.commit(run.reserve(plan, Provenance("test", None)))
    assert budget_share(mixed.spent()) == pytest.approx(0.5, rel=1e-3)


def test_a_watcher_says_how_long_a_budget_lasts(tmp_path: Path) -> None:
    path, memory = tmp_path / "ledger.sqlite", tmp_path / "memory.json"
    with SqliteLedger(path) as ledger:
        ledger.set_budget(Budget(ApproxDp(2, 1e-5), adjacency=Adjacency.REPLACE_ONE))
        ledger.run("r", configuration_hash="h")
    looks: list[Look] = []

    def watcher(days: float | None) -> Watcher:
        return Watcher(path, memory, (), 1e-5, 20, days_left=days)

    watcher(None).step(looks.append)
    before = msgspec.json.decode(memory.read_bytes(), type=Memory)
    before.spending[0].time = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    memory.write_bytes(msgspec.json.encode(before))
    with SqliteLedger(path) as ledger:
        run = ledger.run("r", configuration_hash="h")
        run.commit(run.reserve([_step(4.0)], Provenance("test", None)))
    watcher(None).step(looks.append)
    found = burn_rate(looks[-1].memory.spending)
    assert found is not None
    assert 0.0 < found.days_left < inf
    outcome = look_outcome("ledger", looks[-1])
    assert outcome.data["budget"]["share"] == found.share
    assert not looks[-1].new
    watcher(found.days_left / 2).step(looks.append)
    assert not looks[-1].new
    watcher(found.days_left * 2).step(looks.append)
    (alarm,) = looks[-1].new
    assert "budget" in alarm.text
