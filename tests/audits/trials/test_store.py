"""Laws of the store: what was put comes back bit for bit; other files are refused unharmed."""

import os
import sqlite3
import stat
from dataclasses import replace

import numpy as np
import pytest

from dpledger.audits.bounds import Scores
from dpledger.audits.trials import ChunkKey, ScoreStore, ScoreStoreError

KEY = ChunkKey("e", seed=2**127 + 1, chunk=3, kind="attack", number=4, size=3)
SCORES = Scores(np.array([0.1, -np.inf, 5e-324]), np.array([np.inf, -0.0, 1e308]))


def test_scores_come_back_bit_for_bit_from_the_file(tmp_path):
    with ScoreStore(tmp_path / "s.sqlite") as store:
        store.put(KEY, SCORES)
    with ScoreStore(tmp_path / "s.sqlite") as store:
        found = store.get(KEY)
    assert found.dataset.tobytes() == SCORES.dataset.tobytes()
    assert found.neighbour.tobytes() == SCORES.neighbour.tobytes()


@pytest.mark.parametrize(
    "change",
    [{"experiment": "f"}, {"seed": 1}, {"chunk": 4}, {"kind": "null"}, {"number": 5}, {"size": 2}],
    ids=lambda change: next(iter(change)),
)
def test_every_part_of_the_key_counts(change):
    with ScoreStore(":memory:") as store:
        store.put(KEY, SCORES)
        assert store.get(replace(KEY, **change)) is None


def test_what_is_put_again_replaces():
    with ScoreStore(":memory:") as store:
        store.put(KEY, SCORES)
        store.put(KEY, Scores(np.zeros(3), np.ones(3)))
        assert list(store.get(KEY).neighbour) == [1.0, 1.0, 1.0]


def test_files_of_other_kinds_are_refused_and_left_as_they_were(tmp_path):
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_bytes(b"not a database, but long enough to look at" * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE scores (x)")
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(ScoreStoreError, match="Expected a store of scores"):
            ScoreStore(path)
        assert path.read_bytes() == before


def test_scores_cut_short_are_refused(tmp_path):
    path = tmp_path / "s.sqlite"
    with ScoreStore(path) as store:
        store.put(KEY, SCORES)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE scores SET neighbour = x'00'")
    with ScoreStore(path) as store, pytest.raises(ScoreStoreError, match="Expected 3 scores"):
        store.get(KEY)


def test_another_version_is_refused(tmp_path):
    path = tmp_path / "s.sqlite"
    ScoreStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(ScoreStoreError, match="Expected version 1 instead got 2"):
        ScoreStore(path)


def test_a_new_store_is_for_its_holder_alone(tmp_path):
    """Scores are of private records, as a ledger's and a journal's contents are."""
    path = tmp_path / "s.sqlite"
    before = os.umask(0)
    try:
        ScoreStore(path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
