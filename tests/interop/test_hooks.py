"""Each step of somebody else's training is in the ledger before it happens."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from dpledger.accounting import guarantee
from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp, Rdp
from dpledger.interop.fields import MalformedImport
from dpledger.interop.opacus import LedgerAccountant
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    declared,
)

ADD = Adjacency.ADD_REMOVE_ONE
STEP = Event(
    GaussianStep(declared(1, "clipped", adjacency=ADD), 10.0),
    Context((), 1, "gradient", Audience.PUBLIC),
)


def poor(epsilon=0.5):
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(epsilon, 1e-5), adjacency=ADD))
    return ledger


def test_a_loop_stops_before_the_step_that_the_budget_does_not_allow():
    ledger, taken = poor(), list[int]()

    def train():
        with ledger.run("loop", configuration_hash="x") as run:
            for number in range(1000):
                run.step(STEP)
                taken.append(number)

    with pytest.raises(BudgetExceeded):
        train()
    run = ledger.run("loop", configuration_hash="x")
    assert len(run.events()) == len(taken) > 0
    assert guarantee(run.events(), delta=1e-5).epsilon.upper_float <= 0.5
    assert guarantee([*run.events(), STEP], delta=1e-5).epsilon.lower_float > 0.5


def test_a_step_is_reserved_while_it_happens_and_committed_after():
    ledger = MemoryLedger()
    with ledger.run("loop", configuration_hash="x") as run:
        for taken in range(3):
            run.step(STEP)
            committed = [found.committed for found in ledger.reservations("loop")]
            assert committed == [True] * taken + [False]
    assert all(found.committed for found in ledger.reservations("loop"))


def test_a_step_that_broke_stays_open_and_counts_as_spent():
    ledger = MemoryLedger()

    def train():
        with ledger.run("loop", configuration_hash="x") as run:
            run.step(STEP)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert [found.committed for found in ledger.reservations("loop")] == [False]
    assert ledger.events("loop") == [STEP]


def test_the_row_says_that_others_drew_the_noise():
    ledger = MemoryLedger()
    with ledger.run("loop", configuration_hash="x") as run:
        run.step(STEP, sampler="torch")
    assert [found.provenance.sampler for found in ledger.reservations()] == ["torch"]


def engine(accountant, sample_rate=0.01, noise_multiplier=1.0, accumulated=1):
    """What Opacus makes of an accountant: the hook of an optimiser."""
    hook = accountant.get_optimizer_hook_fn(sample_rate)
    optimiser = SimpleNamespace(
        noise_multiplier=noise_multiplier, accumulated_iterations=accumulated
    )
    return lambda: hook(optimiser)


def test_opacus_reserves_each_step_and_its_epsilon_is_the_ledgers(tmp_path: Path):
    with SqliteLedger(tmp_path / "team.sqlite") as ledger:
        accountant = LedgerAccountant.of(ledger, run="mnist", adjacency=ADD)()
        step = engine(accountant)
        assert accountant.get_epsilon(1e-5) == 0
        for _ in range(5):
            step()
        assert len(accountant) == 5
        assert accountant.history == [(1.0, 0.01, 5)]
        theirs = accountant.get_epsilon(delta=1e-5, alphas=[2.0])
        ours = ledger.run("mnist", configuration_hash="opacus:mnist").events()
        assert guarantee(ours, delta=1e-5).epsilon.upper_float == pytest.approx(theirs, rel=1e-9)


def test_accumulated_batches_are_one_step_of_their_joint_rate():
    accountant = LedgerAccountant.of(MemoryLedger(), run="r", adjacency=ADD)()
    engine(accountant, sample_rate=0.01, accumulated=4)()
    assert accountant.history == [(1.0, 0.04, 1)]


def test_a_step_beyond_the_budget_raises_and_is_not_in_the_history():
    ledger = MemoryLedger()
    ledger.set_budget(Budget(Rdp(8, 0.1), adjacency=ADD))
    accountant = LedgerAccountant.of(ledger, run="r", adjacency=ADD)()
    step = engine(accountant, noise_multiplier=0.5, sample_rate=0.5)
    with pytest.raises(BudgetExceeded):
        step()
    assert accountant.history == []
    assert accountant.run.events() == []


def test_a_state_is_loaded_where_the_ledger_has_its_steps():
    ledger = MemoryLedger()
    make = LedgerAccountant.of(ledger, run="r", adjacency=ADD)
    first = make()
    for _ in range(3):
        first.step(noise_multiplier=1.0, sample_rate=0.01)
    again = make()
    again.load_state_dict(first.state_dict())
    assert again.history == first.history
    assert again.mechanism() == "dpledger"
    stranger = LedgerAccountant.of(MemoryLedger(), run="r", adjacency=ADD)()
    with pytest.raises(MalformedImport, match="3 steps"):
        stranger.load_state_dict(first.state_dict())
    milder = {"history": [(9.0, 0.01, 3)], "mechanism": "dpledger"}
    with pytest.raises(MalformedImport, match="of these"):
        again.load_state_dict(milder)
    with pytest.raises(MalformedImport, match="named dpledger"):
        again.load_state_dict({"history": [], "mechanism": "rdp"})


def test_numbers_out_of_range_reserve_nothing():
    accountant = LedgerAccountant.of(MemoryLedger(), run="r", adjacency=ADD)()
    with pytest.raises(InvalidParameter):
        accountant.step(noise_multiplier=-1.0, sample_rate=0.01)
    assert accountant.run.events() == []
