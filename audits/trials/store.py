"""Scores on disk: what was computed once is not computed again, after a crash or for more trials.

>>> with ScoreStore(":memory:") as store:
...     key = ChunkKey("example", seed=1, chunk=2, kind="attack", number=0, size=2)
...     store.put(key, Scores(np.array([0.5, 1.5]), np.array([-0.5, -1.5])))
...     print(store.get(key).dataset, store.get(replace(key, seed=2)))
[0.5 1.5] None

A chunk is stored whole or not at all, under everything that its numbers depend on: a store may
serve many experiments, and an experiment whose code or data changed finds nothing of its own in it.
"""

import os
import sqlite3
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from ...mechanisms.errors import DpledgerError
from ..bounds import Scores

_APPLICATION = 0x64704C53
"""The letters "dpLS" in the file's header, by which a store is told from other databases."""
_VERSION = 1
"""Of the table; a file of another version is refused."""
_NUMBERS = np.dtype("<f8")
"""Scores are kept as little-endian binary64 on every machine."""

_SCHEMA = f"""
CREATE TABLE scores (
    experiment TEXT, seed TEXT, chunk INTEGER, kind TEXT, number INTEGER, size INTEGER,
    dataset BLOB NOT NULL, neighbour BLOB NOT NULL,
    PRIMARY KEY (experiment, seed, chunk, kind, number, size)
) STRICT;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
"""


class ScoreStoreError(DpledgerError):
    """A file is no store of scores, or a broken one; nothing in it was changed."""


@dataclass(frozen=True, slots=True)
class ChunkKey:
    """What the scores of a chunk depend on.

    Args:
        experiment: a name for the algorithm and the data sets; a hash of all that they depend on.
        seed: of the noise.
        chunk: trials that run at once, in all chunks but the last.
        kind: which trials.
        number: of the chunk, from 0.
        size: trials in this chunk.
    """

    experiment: str
    seed: int
    chunk: int
    kind: str
    number: int
    size: int


class ScoreStore:
    """An SQLite file of scores by chunk, written by one process; every chunk is one transaction.

    Args:
        path: of the file, which is made if it is missing.

    Raises `ScoreStoreError` for a file of another kind.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = path
        if str(path) != ":memory:":
            # of private records: a new file is its holder's alone
            with suppress(OSError):  # what the file system refuses, SQLite says
                # one that is there is not opened: closing it would drop SQLite's locks
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._connection = sqlite3.connect(path, isolation_level=None)
        try:
            self._open()
        except sqlite3.DatabaseError as broken:
            self._connection.close()
            raise ScoreStoreError(f"{path}: Expected a store of scores ({broken}).") from broken
        except ScoreStoreError:
            self._connection.close()
            raise

    def _open(self) -> None:
        """Make the table in an empty file; raise `ScoreStoreError` for a file of something else."""
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables == application == version == 0:
            self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        elif application != _APPLICATION:
            raise ScoreStoreError(f"{self._path}: Expected a store of scores, instead got another.")
        elif version != _VERSION:
            raise ScoreStoreError(
                f"{self._path}: Expected version {_VERSION} instead got {version}."
            )

    def get(self, key: ChunkKey) -> Scores | None:
        """Return the scores of a chunk, or None; raises `ScoreStoreError` if they are cut short."""
        row = self._connection.execute(
            "SELECT dataset, neighbour FROM scores WHERE experiment = ? AND seed = ? "
            "AND chunk = ? AND kind = ? AND number = ? AND size = ?",
            _columns(key),
        ).fetchone()
        if row is None:
            return None
        if any(len(blob) != key.size * _NUMBERS.itemsize for blob in row):
            raise ScoreStoreError(f"{self._path}: Expected {key.size} scores in {key}.")
        return Scores(*(np.frombuffer(blob, _NUMBERS).astype(np.float64) for blob in row))

    def put(self, key: ChunkKey, scores: Scores) -> None:
        """Keep the scores of a chunk.

        Args:
            key: what the scores depend on.
            scores: of both worlds, shape (key.size,) each.
        """
        blobs = (each.astype(_NUMBERS).tobytes() for each in (scores.dataset, scores.neighbour))
        self._connection.execute(
            "INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*_columns(key), *blobs),
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return the store; its file is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


def _columns(key: ChunkKey) -> tuple[object, ...]:
    # a seed may have 128 bits, an SQLite integer has 64
    """Return a key as a row of the table."""
    return astuple(replace(key, seed=str(key.seed)))  # type: ignore[arg-type]
