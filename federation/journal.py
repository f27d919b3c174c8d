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

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Self

import numpy as np

from ..accounting.ledger.file_lock import FileLock
from ..mechanisms.curators import Message, Release, SamplingCurator
from ..mechanisms.encoding import message_bytes
from ..mechanisms.errors import DpledgerError
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sampling import Sampler
from .prepaid import PrepaidRun

__all__ = ["MESSAGE", "Journal", "JournalError", "RecordedCurator"]

MESSAGE = "message"
"""The kind of a run's messages in its journal."""

RESULT, FINISH = "result", "finish"
"""Kinds of entry: what each step came to, by number; what a party handed in."""

_SCHEMA = """CREATE TABLE IF NOT EXISTS kept (
    run TEXT NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (run, kind, number)
) WITHOUT ROWID"""
"""One row an entry; the primary key makes writing an entry twice an error, and not an overwrite."""


class JournalError(DpledgerError):
    """A journal cannot be used, or does not hold what it must; nothing was sent."""


class Journal:
    """Contents by run, kind and number, in one SQLite file; each is written once.

    Raises `JournalError` where another process holds the file, or it is none.

    Args:
        path: of the file, made if it is missing; on a local disk, as the lock is the file
            system's.

    Every `keep` is on the disk when it returns (synchronous FULL). A thread lock serialises the
    threads of a coordinator.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        # messages that have not left, and what a run's messages are of: for the holder alone
        if not path.exists():
            path.touch(mode=0o600)
        self._connection = sqlite3.connect(
            path, timeout=0.5, isolation_level=None, check_same_thread=False
        )
        self._file = FileLock(path, os.O_RDWR)
        try:
            # for good: a second process would write its messages over those that had left
            if not self._file.taken(alone=True):
                raise sqlite3.OperationalError("another process holds it")
            tables = {
                name for (name,) in self._connection.execute("SELECT name FROM sqlite_schema")
            }
            if tables and "kept" not in tables:
                raise sqlite3.OperationalError(f"it holds {', '.join(sorted(tables))}")
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")  # one fsync a commit, not three
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(_SCHEMA)
            self._connection.execute("BEGIN IMMEDIATE")  # takes the lock that is kept
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.close()
            raise JournalError(
                f"journal={str(path)!r} must be free and a journal; does another process take "
                f"part with it? ({error})"
            ) from error

    def get(self, run: str, kind: str, number: int) -> bytes | None:
        """Return what is kept, or None.

        Args:
            run: a run's name, or a plan's subject.
            kind: of entry, such as `MESSAGE`.
            number: from 0.
        """
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
        # a missing entry would shift the messages after it to other releases
        if number and last != number - 1:
            raise JournalError(
                f"journal={str(self.path)!r} must be without gaps: {kind}s of {run}."
            )
        return int(number)

    def runs(self, kind: str) -> set[str]:
        """Return the runs, or plans' subjects, of which there is an entry of a kind.

        Args:
            kind: as for `get`; of a coordinator's runs the subjects of their plans.

        Empty where there is none.
        """
        with self._lock:
            rows = self._connection.execute("SELECT DISTINCT run FROM kept WHERE kind = ?", (kind,))
            return {run for (run,) in rows}

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
        """Let go of the file; what is kept stays.

        A second time does nothing.
        """
        with suppress(sqlite3.Error):
            self._connection.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RecordedCurator(SamplingCurator):
    """Releases messages that are recorded before they leave, and gives recorded ones back.

    A message that was recorded is given back as it was, without new noise. A seeded sampler draws
    the old noise once more and drops it, so that the next release has the noise it would have had.

    Args:
        paid: where the run has paid for its plan: the recorded messages are told to it, too.
        sampler: where noise comes from.
        journal: of messages.
        run: name of the run in it.
    """

    def __init__(self, paid: PrepaidRun, sampler: Sampler, journal: Journal, run: str) -> None:
        super().__init__(paid, sampler)
        self._paid, self._journal, self._name, self._count = paid, journal, run, 0

    def _deliver(self, release: Release) -> FloatArray:
        """Return a release's message: the recorded one, or a new one with fresh noise.

        Raises `JournalError` where the recorded one has another shape: it is of another plan. And
        where the ledger knows a message that this journal lacks: another copy of the journal has
        it, and fresh noise for one release would be paid for by nobody. `OtherMessage` where the
        ledger knows another message than the one recorded here.
        """
        recorded = self._journal.get(self._name, MESSAGE, self._count)
        if recorded is None and self._paid.has_left(self._count):
            raise JournalError(
                f"journal={str(self._journal.path)!r} must hold message {self._count + 1} of "
                f"{self._name}, which left by the ledger: another copy of the journal went on. "
                "Nothing was drawn."
            )
        if recorded is None:
            return super()._deliver(release)
        self._count += 1
        sensitive = release.sensitive
        shape = (sensitive.held, sensitive.dimension)
        if len(recorded) != 8 * shape[0] * shape[1]:
            raise JournalError(f"Message {self._count} of {self._name} must be of shape {shape}.")
        # the same order as of a new release, so that the sink sees the same run again
        token = self._paid.repeat((release.event,), self._provenance)
        if self._provenance.seed is not None:
            self._noise(release)(np.zeros(shape))
        content = np.frombuffer(recorded, dtype="<f8").astype(np.float64).reshape(shape)
        self._sink.commit(token, content)
        return content

    def _keep(self, message: Message) -> None:
        """Write a new message down; `SamplingCurator` calls this before it commits and returns
        the message.
        """
        self._journal.keep(self._name, MESSAGE, self._count, message_bytes(message.content))
        self._count += 1
