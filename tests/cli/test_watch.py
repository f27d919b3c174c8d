"""`dpledger watch`, as a user meets it: each run once, evidence adds up, faults are found."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.ledger import HISTORY
from dpledger.audits.continuous import audit_run
from dpledger.audits.sequential import Evidence
from dpledger.audits.watching import Look, Memory, Watcher, acknowledge
from dpledger.cli import main
from dpledger.interop import import_into
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
from dpledger.runs import read_configuration
from dpledger.runs.repeats import RepeatedRuns

from .conftest import Call, edited, prepared

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
    ledger, options = folder / "ledger.sqlite", ("--config", path, *OPTIONS)
    once = ("--ledger", ledger, "--no-attack", "--no-baselines", "--no-crosscheck")
    assert call("run", path, "--out", folder / "first", *once).status == 0
    assert call("watch", ledger, *options).data["runs"][0]["pairs"] == 20
    assert call("run", path, "--out", folder / "second", *once).status == 0
    (run,) = call("watch", ledger, *options).data["runs"]
    assert run["pairs"] == 40
    assert run["refuted_after"] is None


def test_noise_of_one_seed_is_not_drawn_twice_on_a_ledger(
    call: Call, folder: Path, ledger: Path
) -> None:
    rows = call("ledger", "verify", ledger, "--json").data["rows"]
    answer = call("run", folder / "run.toml", "--out", folder / "again", "--ledger", ledger)
    assert answer.status == 2
    assert "noise.seed must be new" in answer.err
    assert "5" not in answer.err.partition("must be new")[0]
    assert call("ledger", "verify", ledger, "--json").data["rows"] == rows


def test_the_published_algorithm_is_a_finding(call: Call, folder: Path) -> None:
    path = edited(
        folder, ('"dp-admm"', '"dp-admm-published"'), ("epsilon = 2.0", "noise_multiplier = 9.0")
    )
    call("run", path, "--out", folder / "leaky", "--no-attack", "--no-baselines")
    answer = call("watch", folder / "leaky" / "ledger.sqlite", "--config", path, *OPTIONS)
    assert answer.status == 1
    assert any("pre-training" in text for text in answer.data["runs"][0]["findings"])
    # found is found, however often one looks, until somebody says that it is known
    ledger = folder / "leaky" / "ledger.sqlite"
    again = call("watch", ledger, *OPTIONS)
    assert again.status == 1
    assert again.data["runs"] == []
    assert again.data["alarms"] == answer.data["alarms"] != []
    first, *others = (alarm["identifier"] for alarm in again.data["alarms"])
    assert call("watch", "ack", ledger, "no such").status == 2
    assert call("watch", "ack", ledger, first, "--json").data["open"] == len(others)
    assert call("watch", "ack", ledger).status == 0
    quiet = call("watch", ledger, *OPTIONS)
    assert (quiet.status, quiet.data["alarms"]) == (0, [])


@pytest.fixture(scope="module")
def leak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of the published algorithm: something is wrong with it."""
    folder = prepared(tmp_path_factory.mktemp("leak"))
    path = edited(
        folder, ('"dp-admm"', '"dp-admm-published"'), ("epsilon = 2.0", "noise_multiplier = 9.0")
    )
    options = ("--no-attack", "--no-baselines", "--no-crosscheck")
    CliRunner().invoke(main, ["run", str(path), "--out", str(folder / "bad"), *options])
    return folder / "bad"


@pytest.fixture
def leaky(leak: Path, tmp_path: Path) -> Path:
    """The ledger of a copy of it."""
    return Path(shutil.copytree(leak, tmp_path / "bad")) / "ledger.sqlite"


def test_an_alarm_that_could_not_be_delivered_comes_again(call: Call, leaky: Path) -> None:
    failed = call("watch", leaky, *OPTIONS, "--alarm", "false")
    assert failed.status == 2
    assert not leaky.with_name(leaky.name + ".watch.json").exists()
    received = leaky.with_name("alarm")
    answer = call("watch", leaky, *OPTIONS, "--alarm", f"cp /dev/stdin {received}")
    assert answer.status == 1
    assert json.loads(received.read_bytes())["alarms"] == answer.data["alarms"]


def test_where_memory_cannot_be_written_the_alarm_is_raised_again_and_again(
    call: Call, leaky: Path
) -> None:
    lost = ("--memory", "/proc/nowhere/memory.json")
    for _ in range(2):
        answer = call("watch", leaky, "--trials", 20, *lost)
        assert answer.status == 2
        assert "WRONG" in answer.out


def test_a_watch_goes_on_after_an_alarm(call: Call, leaky: Path) -> None:
    command = [sys.executable, "-m", "dpledger", "watch", leaky, "--every", "0.1"]
    metrics = leaky.with_name("watch.prom")
    with subprocess.Popen([*command, "--metrics", metrics], stdout=subprocess.PIPE) as process:
        beats: set[str] = set()
        lines: list[str] = []
        while len(beats) < 2:
            assert process.poll() is None, "a watcher that ended watches nothing"
            if metrics.exists():
                lines = metrics.read_text().splitlines()
                (beat,) = [x for x in lines if x.startswith("dpledger_watch_last_look_seconds")]
                beats.add(beat)
        process.terminate()
    (alarms,) = [x for x in lines if x.startswith("dpledger_watch_alarms_open")]
    assert float(alarms.split()[1]) >= 1
    assert any(line.startswith('dpledger_watch_epsilon{run="') for line in lines)


def test_an_alarm_that_is_acknowledged_between_two_looks_stays_so(
    leaky: Path, tmp_path: Path
) -> None:
    memory = tmp_path / "memory.json"
    watcher = Watcher(leaky, memory, (), 1e-5, 20)
    looks: list[Look] = []
    assert watcher.step(looks.append).is_finding
    (alarms, left) = acknowledge(memory, ())
    assert (len(alarms), left) == (len(looks[0].new), 0)
    assert not watcher.step(looks.append).is_finding


def test_an_alarm_that_is_acknowledged_during_a_look_stays_so(leaky: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    watcher = Watcher(leaky, memory, (), 1e-5, 20)
    assert watcher.step(lambda look: None).is_finding

    def acknowledging(_: Look) -> None:
        acknowledge(memory, ())

    watcher.step(acknowledging)
    assert not watcher.step(lambda look: None).is_finding


def test_a_look_audits_so_many_runs_and_says_how_many_wait(call: Call, folder: Path) -> None:
    path = edited(folder, ('sampler = "philox"\nseed = 5', 'sampler = "system"'))
    ledger = folder / "ledger.sqlite"
    once = ("--ledger", ledger, "--no-attack", "--no-baselines", "--no-crosscheck")
    for name in ("first", "second"):
        assert call("run", path, "--out", folder / name, *once).status == 0
    answer = call("watch", ledger, *OPTIONS, "--most-runs", 1)
    assert (len(answer.data["runs"]), answer.data["waiting"]) == (1, 1)
    answer = call("watch", ledger, *OPTIONS, "--most-runs", 1)
    assert (len(answer.data["runs"]), answer.data["waiting"]) == (1, 0)


def test_runs_that_differ_in_their_seed_only_add_up(call: Call, folder: Path) -> None:
    ledger = folder / "ledger.sqlite"
    once = ("--ledger", ledger, "--no-attack", "--no-baselines", "--no-crosscheck")
    for seed, rounds in ((6, 6), (7, 6), (8, 7)):
        changes = ("seed = 5", f"seed = {seed}"), ("rounds = 6", f"rounds = {rounds}")
        path = edited(folder, *changes)
        assert call("run", path, "--out", folder / str(seed), *once).status == 0
    answer = call("watch", ledger, "--config", folder / "run.toml", *OPTIONS)
    assert [run["pairs"] for run in answer.data["runs"]] == [20, 40, None]


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

    def more(findings: list[str]) -> Evidence:
        findings.append("noise is not as stated")
        return Evidence(pairs=13, refuted_after=13)

    found = audit_run(ledger, summary, delta=1e-5, evidence=known, more=more)
    wrong = ("noise is not as stated", "guarantee refuted after 13 pairs of runs")
    assert found.findings == wrong
    nothing = audit_run(ledger, summary, delta=1e-5, evidence=known, more=lambda findings: None)
    assert (nothing.findings, nothing.evidence) == ((), known)


def test_a_refuted_guarantee_stays_refuted_and_its_control_is_not_fed_again(folder: Path) -> None:
    """The pairs to come are named by the number of those before them, which grows no more."""
    repeats = RepeatedRuns(read_configuration(folder / "run.toml"), trials=3, confidence=0.95)
    refuted, control = Evidence(pairs=5, refuted_after=5), Evidence(pairs=5)
    memory = Memory(evidence={"a key": refuted}, nulls={"a key": control})
    for _ in range(2):
        assert repeats.more(memory, "a key", []) == refuted
    assert memory.nulls["a key"] == control
    assert memory.noise_tests["a key"] == 2


def test_a_run_that_left_its_plan_is_a_finding() -> None:
    ledger, summary = summary_of([step(2.0)], plan=[step(3.0)])
    assert audit_run(ledger, summary, delta=1e-5).findings == ("the run left its plan",)


def test_noise_of_one_seed_in_two_runs_is_a_finding() -> None:
    ledger, summary = summary_of([step(2.0)], plan=[step(2.0)])
    assert audit_run(ledger, summary, delta=1e-5).findings == ()
    assert audit_run(ledger, summary, delta=1e-5).grade == "enclosed"
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


def test_a_history_of_another_tool_kept_to_no_plan_and_names_its_relation(
    call: Call, tmp_path: Path
) -> None:
    """Its plan was written down when all was over."""
    state = {"history": [[1.1, 0.01, 100]], "mechanism": "rdp"}
    (tmp_path / "state.json").write_text(json.dumps(state))
    ledger = tmp_path / "ledger.sqlite"
    with SqliteLedger(ledger) as opened:
        import_into(opened, "opacus", tmp_path / "state.json", adjacency=Adjacency.ADD_REMOVE_ONE)
    shown = call("ledger", "show", ledger).out
    assert all(words in shown for words in ("imported", "assumed", HISTORY[:20]))
    (run,) = call("watch", ledger, *OPTIONS).data["runs"]
    assert run["adjacency"] == "add-remove-one"
    assert [HISTORY in each for each in run["remarks"]] == [True]


def test_an_unprotected_release_is_a_finding_and_is_not_tested() -> None:
    event = Event(UnprotectedRelease("a test"), Context((), 1, "mean", Audience.SERVER))
    ledger, summary = summary_of([event], plan=[event])

    def never(findings: list[str]) -> Evidence:
        raise AssertionError("nothing is left to test")

    found = audit_run(ledger, summary, delta=1e-5, more=never)
    assert found.findings == ("unprotected: a test",)


def test_a_signed_memory_is_believed_with_its_key_alone(
    call: Call, ledger: Path, tmp_path: Path
) -> None:
    key, other, memory = tmp_path / "key", tmp_path / "other", tmp_path / "memory"
    key.write_text("k" * 32)
    other.write_text("o" * 32)
    options = (ledger, "--memory", memory, "--json")
    assert call("watch", *options, "--key", key).status == 0
    kept = memory.read_bytes()
    again = call("watch", *options, "--key", key)
    assert again.status == 0
    assert again.data["runs"] == []
    for wrong in (("--key", other), ()):
        assert call("watch", *options, *wrong).status == 2
    # whoever can write the file makes an alarm forgotten, or a run new again
    memory.write_bytes(kept.replace(b'"run', b'"ran'))
    refused = call("watch", *options, "--key", key)
    assert refused.status == 2
    assert "not believed" in refused.err
    assert call("watch", "ack", ledger, "--memory", memory, "--key", key).status == 2
    memory.write_bytes(kept.partition(b"\n")[2])
    assert call("watch", *options, "--key", key).status == 2


def test_a_short_key_is_refused(call: Call, ledger: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("short")
    answer = call("watch", ledger, "--key", key, "--json")
    assert answer.status == 2
    assert "32 bytes" in answer.err
