"""`dpledger attack` at scale: the same answer from any backend and from a store."""

import sqlite3
from pathlib import Path

import pytest

from dpledger.audits.trials.code import code_digest
from dpledger.runs import attack

from .conftest import Call

SETTINGS = ("--trials", 60, "--null-trials", 20, "--json")


def test_the_answer_is_the_same_from_other_processes_and_from_a_store(
    call: Call, folder: Path
) -> None:
    here = call("attack", folder / "run.toml", *SETTINGS)
    assert (here.status, here.data["trials"]) == (0, 60)
    store = folder / "scores.sqlite"
    there = call("attack", folder / "run.toml", *SETTINGS, "--jobs", 2, "--store", store)
    assert there.data == here.data
    with sqlite3.connect(store) as connection:
        rows = connection.execute("SELECT kind, size, rowid FROM scores").fetchall()
        assert sorted(row[:2] for row in rows) == [("attack", 60), ("null", 20)]
        connection.execute("UPDATE scores SET dataset = neighbour WHERE kind = 'attack'")
    # what the store says is believed: no trial ran again
    kept = call("attack", folder / "run.toml", *SETTINGS, "--store", store)
    assert kept.data["measured_mu"]["estimate"] == 0.0


def test_a_store_knows_another_data_file_from_the_one_it_saw(call: Call, folder: Path) -> None:
    store = folder / "scores.sqlite"
    options = (*SETTINGS, "--store", store)
    first = call("attack", folder / "run.toml", *options)
    people = (folder / "people.csv").read_text()
    (folder / "people.csv").write_text(people.replace("north", "south"))
    second = call("attack", folder / "run.toml", *options)
    assert first.data != second.data
    with sqlite3.connect(store) as connection:
        assert len(connection.execute("SELECT DISTINCT experiment FROM scores").fetchall()) == 2


def test_a_store_does_not_answer_for_other_code(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = folder / "scores.sqlite"
    options = (*SETTINGS, "--store", store)
    first = call("attack", folder / "run.toml", *options)
    monkeypatch.setattr(attack, "code_digest", lambda rooms: "other code")
    assert call("attack", folder / "run.toml", *options).data == first.data
    with sqlite3.connect(store) as connection:
        assert len(connection.execute("SELECT DISTINCT experiment FROM scores").fetchall()) == 2


@pytest.mark.parametrize("changed", [*attack.ROOMS_OF_SCORES, "experiments"])
def test_the_code_of_scores_is_all_that_they_depend_on(tmp_path: Path, changed: str) -> None:
    (tmp_path / changed / "deeper").mkdir(parents=True)
    module = tmp_path / changed / "deeper" / "module.py"
    module.write_text("A = 1\n")
    rooms = attack.ROOMS_OF_SCORES
    before = code_digest(rooms, package=tmp_path)
    module.write_text("A = 2\n")
    code_digest.cache_clear()
    assert (code_digest(rooms, package=tmp_path) != before) == (changed != "experiments")
    # a package without rooms would have this digest, whatever its code
    assert code_digest(attack.ROOMS_OF_SCORES) != code_digest(
        attack.ROOMS_OF_SCORES, package=tmp_path / "nowhere"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--address", "tcp://x:1"), "unless the backend is dask or ray"),
        (("--backend", "loky", "--address", "tcp://x:1"), "unless the backend is dask or ray"),
        (("--backend", "serial", "--jobs", 2), "1 where the backend is serial"),
        (("--backend", "slurm"), "'slurm' is not one of"),
        (("--jobs", 0), "0 is not in the range"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    call: Call, folder: Path, options: tuple[object, ...], words: str
) -> None:
    answer = call("attack", folder / "run.toml", *options)
    assert answer.status == 2
    assert words in " ".join(answer.err.split())


def test_a_store_that_is_something_else_is_refused(call: Call, folder: Path) -> None:
    answer = call("attack", folder / "run.toml", *SETTINGS, "--store", folder / "people.csv")
    assert answer.status == 2
    assert "Expected a store of scores" in answer.err
