"""`dpledger watch`, as a user meets it: each run once, evidence adds up, faults are found."""

import sqlite3
from pathlib import Path

import pytest

from dpledger.accounting.ledger import MemoryLedger
from dpledger.audits.continuous import audit_run
from dpledger.audits.sequential import Evidence
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    Provenance,
    UnprotectedRelease,
    declared,
)

from .conftest import Call, edited

OPTIONS = ("--trials", 20, "--json")


@pytest.fixture
def ledger(call: Call, folder: Path) -> Path:
    """The ledger of one run."""
    options = ("--out", folder / "out", "--no-attack", "--no-baselines")
    assert call("run", folder / "run.toml", *options).status == 0
    return folder / "out" / "ledger.sqlite"


def test_a_new_run_is_audited_once(call: Call, ledger: Path) -> None:
    first = call("watch", ledger, *OPTIONS)
    assert first.status == 0
    (run,) = first.data["runs"]
    assert 1.99 < run["epsilon"]["upper"] <= 2.0
    assert run["crosscheck_agrees"] is True
    assert run["pairs"] is None
    assert call("watch", ledger, *OPTIONS).data["runs"] == []


def test_evidence_adds_up_from_run_to_run(call: Call, folder: Path) -> None:
    path = edited(folder, ('sampler = "philox"\nseed = 5', 'sampler = "system"'))
    ledger, told = folder / "ledger.sqlite", ("--config", path, *OPTIONS)
    once = ("--ledger", ledger, "--no-attack", "--no-baselines", "--no-crosscheck")
    assert call("run", path, "--out", folder / "first", *once).status == 0
    assert call("watch", ledger, *told).data["runs"][0]["pairs"] == 20
    assert call("run", path, "--out", folder / "second", *once).status == 0
    (run,) = call("watch", ledger, *told).data["runs"]
    assert run["pairs"] == 40
    assert run["refuted_after"] is None


def test_noise_of_one_seed_is_not_drawn_twice_on_a_ledger(
    call: Call, folder: Path, ledger: Path
) -> None:
    rows = call("ledger", "verify", ledger, "--json").data["rows"]
    answer = call("run", folder / "run.toml", "--out", folder / "again", "--ledger", ledger)
    assert answer.status == 2
    assert "noise.seed=5" in answer.err
    assert call("ledger", "verify", ledger, "--json").data["rows"] == rows


def test_the_published_algorithm_is_a_finding(call: Call, folder: Path) -> None:
    path = edited(
        folder, ('"dp-admm"', '"dp-admm-published"'), ("epsilon = 2.0", "noise_multiplier = 9.0")
    )
    call("run", path, "--out", folder / "leaky", "--no-attack", "--no-baselines")
    answer = call("watch", folder / "leaky" / "ledger.sqlite", "--config", path, *OPTIONS)
    assert answer.status == 1
    assert any("pre-training" in text for text in answer.data["runs"][0]["findings"])


def test_a_changed_ledger_is_a_finding(call: Call, ledger: Path) -> None:
    assert call("watch", ledger, *OPTIONS).status == 0
    with sqlite3.connect(ledger) as connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type='table' AND sql LIKE '%previous%'"
        ).fetchone()
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type='trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(f"DELETE FROM {table} WHERE sequence > 5")
    answer = call("watch", ledger, *OPTIONS)
    assert answer.status == 1
    assert answer.data["intact"] is False


@pytest.mark.parametrize("rounds", [6, 7])
def test_a_ledger_made_anew_is_a_finding_however_long(
    call: Call, folder: Path, ledger: Path, rounds: int
) -> None:
    assert call("watch", ledger, *OPTIONS).status == 0
    ledger.unlink()
    path = edited(folder, ("rounds = 6", f"rounds = {rounds}"))
    options = ("--out", folder / "anew", "--ledger", ledger, "--no-attack", "--no-baselines")
    assert call("run", path, *options).status == 0
    answer = call("watch", ledger, *OPTIONS)
    assert answer.status == 1
    assert answer.data["intact"] is False


def test_a_memory_of_another_kind_is_refused(call: Call, ledger: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    memory.write_text('{"audited": [1]}')
    answer = call("watch", ledger, "--memory", memory)
    assert answer.status == 2
    assert "memory.json" in answer.err


# --- the audit itself ----------------------------------------------------------------------------


def summary_of(events: list[Event], *, plan: list[Event] | None, commit: bool = True):
    ledger = MemoryLedger()
    run = ledger.run("run", configuration_hash="0" * 64, plan=plan)
    for event in events:
        token = run.reserve((event,), Provenance("test", 1))
        if commit:
            run.commit(token)
    (summary,) = ledger.runs()
    return ledger, summary


def step(noise_std: float) -> Event:
    unit = declared(1, "a test", adjacency=Adjacency.REPLACE_ONE)
    return Event(GaussianStep(unit, noise_std), Context((), 1, "mean", Audience.SERVER))


def test_a_refuted_guarantee_is_a_finding() -> None:
    ledger, summary = summary_of([step(2.0)], plan=[step(2.0)])
    known = Evidence(pairs=10)

    def more(evidence: Evidence) -> Evidence:
        assert evidence is known
        return Evidence(pairs=13, refuted_after=13)

    found = audit_run(ledger, summary, delta=1e-5, evidence=known, more=more)
    assert found.findings == ("guarantee refuted after 13 pairs of runs",)


def test_a_run_that_left_its_plan_is_a_finding() -> None:
    ledger, summary = summary_of([step(2.0)], plan=[step(3.0)])
    assert audit_run(ledger, summary, delta=1e-5).findings == ("the run left its plan",)


def test_noise_of_one_seed_in_two_runs_is_a_finding() -> None:
    ledger, summary = summary_of([step(2.0)], plan=[step(2.0)])
    assert audit_run(ledger, summary, delta=1e-5).findings == ()
    assert audit_run(ledger, summary, delta=1e-5).grade == "certified"
    another = ledger.run("another", configuration_hash="0" * 64)
    another.reserve((step(9.0),), Provenance("test", 2))
    assert audit_run(ledger, summary, delta=1e-5).findings == ()
    another.reserve((step(5.0),), Provenance("test", 1))
    (finding,) = audit_run(ledger, summary, delta=1e-5).findings
    assert finding == "noise of one seed with another: it can be subtracted"


def test_what_is_no_fault_is_a_remark() -> None:
    ledger, summary = summary_of([step(2.0)], plan=None, commit=False)
    found = audit_run(ledger, summary, delta=1e-5)
    assert found.findings == ()
    assert found.grade == "estimate"
    assert "no plan" in found.remarks[0]
    assert "without a commit" in found.remarks[1]


def test_an_unprotected_release_is_a_finding_and_is_not_tested() -> None:
    event = Event(UnprotectedRelease("a test"), Context((), 1, "mean", Audience.SERVER))
    ledger, summary = summary_of([event], plan=[event])

    def never(evidence: Evidence) -> Evidence:
        raise AssertionError("nothing is left to test")

    found = audit_run(ledger, summary, delta=1e-5, more=never)
    assert found.findings == ("unprotected: a test",)
