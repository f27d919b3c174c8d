"""Laws of runs that broke off: they pay once, repeat what was recorded, and end as if unbroken."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpledger.accounting.ledger import FileAnchor, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.data.strict import ConfigurationError
from dpledger.federation.journal import MESSAGE, Journal, JournalError
from dpledger.federation.prepaid import OtherMessage
from dpledger.mechanisms import Adjacency, InvalidParameter
from dpledger.runs import Configuration, RunOptions, RunResult, read_configuration, run
from dpledger.runs.resuming import RECORD
from dpledger.runs.training import Progress

from ..golden.commands import CONFIGURATION, SCHEMA, write_people

SYSTEM = CONFIGURATION.replace('sampler = "philox"\nseed = 5', 'sampler = "system"')

CHILD = """
import os, signal, sys
from pathlib import Path
from dpledger.accounting.ledger import Run
from dpledger.federation.journal import Journal, RecordedCurator
from dpledger.federation.prepaid import PrepaidRun
from dpledger.runs import RunOptions, run
from dpledger.runs.resuming import RunRecord

folder, point, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
owner, name, when = {
    "nothing is paid": (Run, "reserve", "before"),
    "paid": (Run, "reserve", "after"),
    "its turn": (PrepaidRun, "reserve", "after"),
    "drawn": (RecordedCurator, "_noisy", "after"),
    "recorded": (RecordedCurator, "_keep", "after"),
    "committed": (PrepaidRun, "commit", "after"),
    "sent": (RecordedCurator, "_deliver", "after"),
    "all sent": (RunRecord, "end", "before"),
}[point]
original, passed = getattr(owner, name), [0]

def and_die(*arguments, **named):
    passed[0] += 1
    if when == "after":
        found = original(*arguments, **named)
    if passed[0] > number:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

setattr(owner, name, and_die)
out = folder / "out"
run(folder / "run.toml", RunOptions(
    out=None if out.exists() else out, resume=out if out.exists() else None,
    attack=False, baselines=False, crosscheck=False))
"""


def options(folder: Path, *, resume: bool = False, ledger: Path | None = None) -> RunOptions:
    out = folder / "out"
    return RunOptions(
        out=None if resume else out,
        resume=out if resume else None,
        ledger=ledger,
        attack=False,
        baselines=False,
        crosscheck=False,
    )


def prepared(folder: Path, text: str = CONFIGURATION) -> Path:
    folder.mkdir(exist_ok=True)
    write_people(folder)
    (folder / "run.toml").write_text(text)
    return folder


class Broken(Exception):
    """What breaks a run off."""


def broken_off(
    folder: Path, rounds: int, *, resume: bool = False, ledger: Path | None = None
) -> None:
    """Run until a round is over, and break off."""

    def start(_: str) -> Progress:
        def progress(done: int, total: int) -> None:
            if done == rounds:
                raise Broken

        return progress

    with pytest.raises(Broken):
        run(folder / "run.toml", options(folder, resume=resume, ledger=ledger), start)


def messages(folder: Path, out: str = "out") -> list[bytes]:
    """Return what is recorded of the only run in a folder."""
    with Journal(folder / out / RECORD) as journal:
        name = journal.get("", "name", 0)
        assert name is not None
        found = (journal.get(name.decode(), MESSAGE, k) for k in range(100))
        return [each for each in found if each is not None]


def assert_paid_once(folder: Path, result: RunResult) -> None:
    with SqliteLedger(folder / "out" / "ledger.sqlite", read_only=True) as ledger:
        (reservation,) = ledger.reservations()
        assert reservation.committed
        assert reservation.events == result.plan.events
        assert len(ledger.runs()) == 1
        ledger.verify()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = prepared(tmp_path_factory.mktemp("unbroken"))
    return run(folder / "run.toml", options(folder))


POINTS = ("nothing is paid", "paid", "its turn", "drawn", "recorded", "committed", "sent")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize(
    "points", [("paid", "drawn"), pytest.param(POINTS, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_a_run_killed_at_every_point_pays_once_and_ends_as_if_it_had_not_been(
    tmp_path: Path, unbroken: RunResult, points: tuple[str, ...]
) -> None:
    """One run, killed and resumed at each point in turn, each time a message or two further on."""
    folder = prepared(tmp_path)
    known: dict[tuple[int, int], str] = {}
    for number, point in enumerate(points):
        # what is recorded is drawn and recorded no second time
        passes = {"drawn": 1, "recorded": 1}.get(point, max(0, number - 1))
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(folder), point, str(passes)], check=False
        )
        assert child.returncode == -signal.SIGKILL, point
        with SqliteLedger(folder / "out" / "ledger.sqlite", read_only=True) as ledger:
            found = ledger.messages()
        assert known.items() <= found.items()
        known = found
    child = subprocess.run([sys.executable, "-c", CHILD, str(folder), "all sent", "0"], check=False)
    assert child.returncode == -signal.SIGKILL
    result = run(folder / "run.toml", options(folder, resume=True))
    assert_paid_once(folder, result)
    model, expected = (each.folder / "model.npy" for each in (result, unbroken))
    np.testing.assert_array_equal(np.load(model), np.load(expected))
    assert result.events == unbroken.events
    assert result.guarantee.epsilon.upper_float == unbroken.guarantee.epsilon.upper_float
    assert not (folder / "out" / RECORD).exists()


def test_recorded_messages_are_never_drawn_again(tmp_path: Path) -> None:
    folder = prepared(tmp_path, SYSTEM)  # noise that nobody can draw again
    broken_off(folder, 2)
    first = messages(folder)
    broken_off(folder, 4, resume=True)
    second = messages(folder)
    assert len(first) < len(second)
    assert second[: len(first)] == first
    assert_paid_once(folder, run(folder / "run.toml", options(folder, resume=True)))


def test_a_budget_for_one_run_pays_for_one_that_breaks_off_and_for_no_second(
    tmp_path: Path,
) -> None:
    folder, path = prepared(tmp_path), tmp_path / "team.sqlite"
    with SqliteLedger(path) as ledger:
        limit = ApproxDp(Fraction(2), Fraction(1e-5))
        ledger.set_budget(Budget(limit, Adjacency.REPLACE_ONE))
    broken_off(folder, 3, ledger=path)
    with SqliteLedger(path, read_only=True) as ledger:
        before = ledger.spent().epsilon(1e-5).upper_float
    (folder / "run.toml").write_text(CONFIGURATION.replace("seed = 5", "seed = 6"))
    with pytest.raises(BudgetExceeded):
        run(folder / "run.toml", RunOptions(out=tmp_path / "anew", ledger=path, attack=False))
    (folder / "run.toml").write_text(CONFIGURATION)
    run(folder / "run.toml", options(folder, resume=True))  # it knows its ledger
    with SqliteLedger(path, read_only=True) as ledger:
        assert ledger.spent().epsilon(1e-5).upper_float == before


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = prepared(tmp_path_factory.mktemp("broken"))
    broken_off(folder, 2)
    return folder


def test_another_configuration_schema_data_or_ledger_is_refused(broken: Path) -> None:
    people = (broken / "people.csv").read_text()
    changed = people.replace("low", "high", 1)
    for name, text, match in (
        ("run.toml", CONFIGURATION.replace("rounds = ", "rounds = 1"), "configuration"),
        ("people.toml", SCHEMA.replace("upper = 100", "upper = 120"), "configuration"),
        ("people.csv", changed, "records"),
    ):
        old = (broken / name).read_text()
        (broken / name).write_text(text)
        with pytest.raises(ConfigurationError, match=match):
            run(broken / "run.toml", options(broken, resume=True))
        (broken / name).write_text(old)
    (broken / "run.toml").write_text(CONFIGURATION.replace("seed = 5", "seed = 6"))
    with pytest.raises(InvalidParameter, match="seed included"):
        run(broken / "run.toml", options(broken, resume=True))
    (broken / "run.toml").write_text(CONFIGURATION)
    with pytest.raises(ConfigurationError, match="ledger"):
        run(broken / "run.toml", options(broken, resume=True, ledger=broken / "other.sqlite"))
    assert not (broken / "other.sqlite").exists()
    with Journal(broken / "out" / RECORD), pytest.raises(JournalError, match="another process"):
        run(broken / "run.toml", options(broken, resume=True))
    assert len(messages(broken)) >= 2


def test_a_folder_without_a_broken_run_is_refused(broken: Path, unbroken: RunResult) -> None:
    for folder in (unbroken.folder.parent, broken.parent):
        with pytest.raises(ConfigurationError, match="broke off"):
            run(broken / "run.toml", options(folder, resume=True))
    with pytest.raises(FileExistsError, match="resume"):
        run(broken / "run.toml", options(broken))


def test_a_run_that_goes_on_keeps_its_anchor(tmp_path: Path) -> None:
    """Else an older copy in the ledger's place would be taken, which the anchor was to prevent."""
    folder, ledger, anchor = prepared(tmp_path), tmp_path / "team.sqlite", tmp_path / "far.anchor"
    begun = replace(options(folder, ledger=ledger), anchor=anchor)

    def start(_: str) -> Progress:
        def progress(done: int, total: int) -> None:
            raise Broken

        return progress

    with pytest.raises(Broken):
        run(folder / "run.toml", begun, start)
    other = replace(options(folder, resume=True), anchor=tmp_path / "another.anchor")
    with pytest.raises(ConfigurationError, match="anchor"):
        run(folder / "run.toml", other)
    older = FileAnchor(anchor).last()
    run(folder / "run.toml", options(folder, resume=True))  # it knows its anchor
    with SqliteLedger(ledger, read_only=True) as opened:
        assert FileAnchor(anchor).last() == opened.last_row != older


@pytest.mark.skipif(sys.platform == "win32", reason="no modes of files")
def test_what_is_secret_in_a_folder_is_for_its_owner_alone(broken: Path) -> None:
    """The key of the records' digest, and the seed of the noise."""
    for name in (RECORD, "ledger.sqlite", "configuration.holder.toml"):
        assert (broken / "out" / name).stat().st_mode & 0o077 == 0


def test_the_digest_of_records_tells_nothing_without_its_key(broken: Path, tmp_path: Path) -> None:
    other = prepared(tmp_path)
    broken_off(other, 1)
    digests: list[bytes | None] = []
    for folder in (broken, other):
        with Journal(folder / "out" / RECORD) as journal:
            digests.append(journal.get("", "records", 0))
    assert None not in digests
    assert digests[0] != digests[1]


def test_a_copy_of_a_folder_draws_nothing_once_the_run_is_over(tmp_path: Path) -> None:
    """The ledger was paid once; fresh noise for the same releases would be free."""
    folder, ledger = prepared(tmp_path, SYSTEM), tmp_path / "elsewhere.sqlite"
    broken_off(folder, 2, ledger=ledger)
    shutil.copytree(folder / "out", folder / "copy")
    run(folder / "run.toml", options(folder, resume=True, ledger=ledger))
    again = replace(options(folder, resume=True, ledger=ledger), resume=folder / "copy")
    with pytest.raises(JournalError, match="must hold message"):
        run(folder / "run.toml", again)
    with SqliteLedger(ledger, read_only=True) as kept:
        assert len(tuple(kept.reservations())) == 1


def test_of_two_copies_of_a_folder_that_go_on_one_draws(tmp_path: Path) -> None:
    """Each would draw noise of its own for the same releases, which one payment does not cover."""
    folder, ledger = prepared(tmp_path, SYSTEM), tmp_path / "elsewhere.sqlite"
    broken_off(folder, 2, ledger=ledger)
    shutil.copytree(folder / "out", folder / "copy")
    broken_off(folder, 3, resume=True, ledger=ledger)
    before = messages(folder, "copy")
    again = replace(options(folder, resume=True, ledger=ledger), resume=folder / "copy")
    with pytest.raises(JournalError, match="must hold message"):
        run(folder / "run.toml", again)
    assert messages(folder, "copy") == before  # nothing was drawn
    run(folder / "run.toml", options(folder, resume=True, ledger=ledger))
    with SqliteLedger(ledger, read_only=True) as kept:
        (reservation,) = kept.reservations()
        assert len(kept.messages()) == len(reservation.events)


def test_a_recorded_message_is_the_one_that_left(tmp_path: Path) -> None:
    """A message that was recorded, and overtaken by a copy's, never leaves."""
    folder, ledger = prepared(tmp_path, SYSTEM), tmp_path / "elsewhere.sqlite"
    broken_off(folder, 2, ledger=ledger)
    shutil.copytree(folder / "out", folder / "copy")
    recorded = messages(folder, "copy")
    with Journal(folder / "copy" / RECORD) as journal:
        name = journal.get("", "name", 0)
        assert name is not None
        journal.keep(name.decode(), MESSAGE, len(recorded), recorded[0])
    broken_off(folder, 3, resume=True, ledger=ledger)
    again = replace(options(folder, resume=True, ledger=ledger), resume=folder / "copy")
    with pytest.raises(OtherMessage, match="another copy"):
        run(folder / "run.toml", again)


def test_a_run_that_began_under_a_hash_of_its_seed_goes_on(
    tmp_path: Path, unbroken: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepared(tmp_path)
    configuration = read_configuration(folder / "run.toml")
    older = max(configuration.known_as - {configuration.sha256})
    monkeypatch.setattr(Configuration, "sha256", older)
    broken_off(folder, 2)
    with SqliteLedger(folder / "out" / "ledger.sqlite", read_only=True) as ledger:
        assert [each.configuration_hash for each in ledger.runs()] == [older]
    monkeypatch.undo()
    result = run(folder / "run.toml", options(folder, resume=True))
    np.testing.assert_array_equal(
        np.load(result.folder / "model.npy"), np.load(unbroken.folder / "model.npy")
    )


def test_a_run_of_a_ledger_without_digests_goes_on(tmp_path: Path) -> None:
    """Before, a run's plan was committed once all messages had left, and nothing said which."""
    folder = prepared(tmp_path)
    broken_off(folder, 2)
    ledger = folder / "out" / "ledger.sqlite"
    with sqlite3.connect(ledger) as rows:
        rows.execute("DROP TRIGGER rows_delete")
        rows.execute("DELETE FROM rows WHERE kind = 'message'")
        rows.execute(
            "CREATE TRIGGER rows_delete BEFORE DELETE ON rows\n"
            "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        )
    rows.close()
    result = run(folder / "run.toml", options(folder, resume=True))
    assert_paid_once(folder, result)
    with SqliteLedger(ledger, read_only=True) as opened:
        assert len(opened.messages()) == len(result.events)


@pytest.mark.parametrize("instead", ["nothing", "an empty ledger"])
def test_what_was_paid_from_a_ledger_that_is_gone_does_not_go_on(
    tmp_path: Path, instead: str
) -> None:
    """Else the ledger would be made anew, without a budget and without what was spent."""
    folder, ledger = prepared(tmp_path, SYSTEM), tmp_path / "elsewhere.sqlite"
    broken_off(folder, 2, ledger=ledger)
    ledger.unlink()
    if instead == "an empty ledger":
        SqliteLedger(ledger).close()
    before = messages(folder)
    with pytest.raises(ConfigurationError, match=r"elsewhere\.sqlite must"):
        run(folder / "run.toml", options(folder, resume=True, ledger=ledger))
    assert messages(folder) == before
    assert ledger.exists() == (instead == "an empty ledger")
