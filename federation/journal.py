"""A journal: what was sent and received, kept until the run is over, to be said again.

A party that comes back after a crash must repeat its messages, not make new ones: two messages with
fresh noise for one release cost twice what the ledger says. So a message is written here before it
leaves. One process at a time holds a journal.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> with Journal(Path(folder.name) / "journal.sqlite") as journal:
...     journal.keep("run 1", "message", 0, b"noisy")
...     journal.get("run 1", "message", 0), journal.get("run 2", "message", 0)
(b'noisy', None)
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Self

from ..mechanisms.errors import DpledgerError

__all__ = ["Journal", "JournalError"]

_SCHEMA = """CREATE TABLE IF NOT EXISTS kept (
    run TEXT NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (run, kind, number)
) WITHOUT ROWID"""


class JournalError(DpledgerError):
    """A journal cannot be used, or does not hold what it must; nothing was sent."""


class Journal:
    """Contents by run, kind and number, in one SQLite file; each is written once.

    Raises `JournalError` where another process holds the file, or it is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        self._connection = sqlite3.connect(
            path, timeout=0.5, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(_SCHEMA)
            self._connection.execute("BEGIN IMMEDIATE")  # takes the lock that is kept
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._connection.close()
            raise JournalError(
                f"journal={str(path)!r} must be free and a journal; does another process take "
                f"part with it? ({error})"
            ) from error

    def get(self, run: str, kind: str, number: int) -> bytes | None:
        """Return what is kept, or None."""
        with self._lock:
            found = self._connection.execute(
                "SELECT content FROM kept WHERE run = ? AND kind = ? AND number = ?",
                (run, kind, number),
            ).fetchone()
        return None if found is None else bytes(found[0])

    def count(self, run: str, kind: str) -> int:
        """Return how many there are of a kind, 0, 1, 2, ...; raises `JournalError` for a gap."""
        with self._lock:
            number, last = self._connection.execute(
                "SELECT count(*), max(number) FROM kept WHERE run = ? AND kind = ?", (run, kind)
            ).fetchone()
        if number and last != number - 1:
            raise JournalError(
                f"journal={str(self.path)!r} must be without gaps: {kind}s of {run}."
            )
        return int(number)

    def keep(self, run: str, kind: str, number: int, content: bytes) -> None:
        """Write something down for good; raises `JournalError` if that was done before."""
        try:
            with self._lock:
                self._connection.execute(
                    "INSERT INTO kept VALUES (?, ?, ?, ?)", (run, kind, number, content)
                )
        except sqlite3.Error as error:
            raise JournalError(
                f"{kind} {number} must be new and fit on the disk ({error}); nothing was sent."
            ) from error

    def close(self) -> None:
        """Let go of the file; what is kept stays."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
