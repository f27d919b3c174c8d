"""A ledger in one SQLite file: any number of writers, in any number of processes.

A rollback journal with full synchronisation: what `reserve` returned for is in the file itself, and
survives a crash of the process and of the machine, a move and a copy. Not a write-ahead log: that
goes by the file's name, and is lost where the process opens and closes the file for itself, to read
or to copy it, and so drops SQLite's locks (POSIX: `fcntl`). A journal's locks are taken anew for
every row; and should a thread drop them in the middle of one, the folder's lock (`flock`), which
goes with no descriptor but its own, still keeps others out. Triggers refuse to change or remove a
row or a document; the hash chain finds the work of whoever goes around them.
"""

import os
import random
import sqlite3
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .anchor import FileAnchor
from .budget import Budget
from .file_lock import LONGEST_WAIT, FileLock
from .file_names import is_mounted, require_nothing_left, require_own_name
from .ledger import Ledger, Verification
from .rows import LedgerError, Row, TamperedLedger

_APPLICATION_ID = 0x64706C67  # "dplg"
"""The letters "dplg", in the file's header: they tell a ledger from other databases.
"""
_SCHEMA_VERSION = 1
"""Of the tables and triggers; a file of another version is refused."""

_SCHEMA = (
    """CREATE TABLE documents (
    hash TEXT PRIMARY KEY NOT NULL CHECK (typeof(hash) = 'text'),
    content TEXT NOT NULL CHECK (typeof(content) = 'text')
) WITHOUT ROWID""",
    """CREATE TABLE rows (
    sequence INTEGER PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL CHECK (typeof(kind) = 'text'),
    run TEXT NOT NULL CHECK (typeof(run) = 'text'),
    body TEXT NOT NULL CHECK (typeof(body) = 'text'),
    previous TEXT NOT NULL CHECK (typeof(previous) = 'text'),
    hash TEXT NOT NULL CHECK (typeof(hash) = 'text')
)""",
    # REPLACE removes rows without asking the triggers on DELETE, so inserting has triggers as well
    """CREATE TRIGGER documents_new BEFORE INSERT ON documents
WHEN EXISTS (SELECT 1 FROM documents WHERE hash = NEW.hash)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    """CREATE TRIGGER rows_next BEFORE INSERT ON rows
WHEN NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM rows)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END""",
    *(
        f"""CREATE TRIGGER {table}_{action.lower()} BEFORE {action} ON {table}
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"""
        for table in ("documents", "rows")
        for action in ("UPDATE", "DELETE")
    ),
)
"""Two tables, and triggers that refuse whatever is not an append.

They guard against mistakes, not against an owner of the file, who can drop them: for that there are
the hash chain, and an anchor elsewhere.
"""


class NotALedger(LedgerError, ValueError):
    """The file is something else, or a ledger of another version. It was left as it is."""


class LedgerLocked(LedgerError, TimeoutError):
    """Another process held the file for too long. Nothing was recorded."""


class SqliteLedger(Ledger):
    """A `Ledger` in the SQLite file at `path`, which is made if there is none.

    Args:
        path: the file; a `-journal` stands beside it while a row is written.
        read_only: open an existing file for reading; nothing can be appended.
        timeout: seconds to wait for other writers.
        anchor: a file elsewhere that remembers how far this ledger had come; with it an older copy
            in the ledger's place is refused (see `anchor`).

    Raises `NotALedger`, `LedgerLocked`, or `LedgerError` for what else the file system refuses.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        timeout: float = 30.0,
        anchor: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open the file, make its tables if it is new, and check that it is a ledger of this
        version.

        Autocommit, with explicit transactions; SQLite's own waiting is off, see `_execute`.
        """
        super().__init__(None if anchor is None else FileAnchor(anchor))
        # wherever the process goes; by links, as SQLite: its journal stands beside the file itself
        try:
            self.path = Path(path).resolve()
            self.path.exists()  # raises for a name that is too long
            uri = self.path.as_uri()
        except (OSError, RuntimeError, ValueError) as error:  # links in a circle, NUL
            raise LedgerError(f"Expected the name of a file, got {os.fspath(path)!a}.") from error
        require_own_name(self.path)
        self._read_only = read_only
        self._timeout = timeout
        self._process = os.getpid()
        self._folder_lock: FileLock | None = None
        with suppress(OSError):  # what is not to be read has SQLite's locks alone
            self._folder_lock = FileLock(self.path.parent)
        mode = "rw" if read_only else "rwc"  # a reader, too, takes back what a killed writer left
        if not read_only:
            # a seed in it would show the noise: its files are its holder's alone
            require_nothing_left(self.path)
            with suppress(OSError):  # what the file system refuses, SQLite says
                # one that is there is not opened: closing it would drop the locks of this process
                if self.path.exists() and self.path.stat().st_size == 0:
                    self.path.chmod(0o600)
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with self._explained():
            self._connection = sqlite3.connect(
                f"{uri}?mode={mode}",
                uri=True,
                timeout=0,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._opened = _identity(self.path)
                self._open(read_only)
            except BaseException:
                self.close()
                raise

    @classmethod
    def create(cls, path: str | os.PathLike[str], budget: Budget) -> None:
        """Make a file whose first row is a budget; a kill leaves the whole of it or none.

        Args:
            path: of a file that is not there: a second budget would be one more epsilon.
            budget: of all that is ever charged to it.

        Raises `LedgerError` where there is something already, or the folder cannot be written to.
        """
        path = Path(path)
        require_own_name(path)
        try:
            with TemporaryDirectory(prefix=".", dir=path.parent) as beside:
                made = Path(beside) / "ledger"
                with cls(made) as ledger:
                    ledger.set_budget(budget)
                require_nothing_left(path)
                os.link(made, path)
                made.unlink()  # at once: a ledger with two names takes nothing
        except OSError as error:
            why = f"{path} must be a new file: a ledger is never overwritten ({error.strerror})"
            raise LedgerError(why) from error

    def __reduce__(self) -> tuple[object, ...]:
        """Return how another process opens the same file, with the same budget."""
        anchor = None if self._anchor is None else self._anchor.path
        opened = partial(_reopened, read_only=self._read_only, timeout=self._timeout, anchor=anchor)
        return (opened, (self.path,))

    def close(self) -> None:
        """Close the file; in a forked process, which may not, do nothing."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._connection.close()
            lock, self._folder_lock = self._folder_lock, None
            if lock is not None:
                lock.close()

    def verify(self, *, expected_head: str | None = None) -> Verification:
        """As `Ledger.verify`; also finds tables and triggers that are not the ledger's own.

        Args:
            expected_head: the hash that the last row must have.

        Raises:
            TamperedLedger: naming the first thing that is not as it was written.
        """
        found = self._query("SELECT sql FROM sqlite_master WHERE sql NOT NULL")
        kept = {str(sql) for (sql,) in found}
        for sql in sorted(kept.symmetric_difference(_SCHEMA)):
            missing = sql in _SCHEMA
            raise TamperedLedger(
                "Schema", sql if missing else "nothing", "none" if missing else sql
            )
        return super().verify(expected_head=expected_head)

    def _open(self, read_only: bool) -> None:
        """Make the tables in an empty file, and check that the file is a ledger of this version.

        Full synchronisation, of the folder too: a reservation that was returned is on the disk,
        whatever fails next.
        """
        if read_only:
            self._set("query_only", "ON")
        else:
            if is_mounted(self.path):
                raise LedgerError(
                    f"{self.path} must not be mounted as a file, which has another name elsewhere, "
                    "and its journal beside that; mount the folder that it is in. "
                    "Nothing was recorded."
                )
            self._set("synchronous", "EXTRA")
            with self._writing():
                empty = not self._query("SELECT 1 FROM sqlite_master LIMIT 1")
                if empty and self._pragma("application_id") == 0:
                    for statement in _SCHEMA:
                        self._connection.execute(statement)
                    self._connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                    self._connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        if self._pragma("application_id") != _APPLICATION_ID:
            raise NotALedger(f"{self.path} must be a ledger, and is another database")
        version = self._pragma("user_version")
        if version != _SCHEMA_VERSION:
            raise NotALedger(
                f"{self.path}: version={version} of the ledger must be {_SCHEMA_VERSION}; a later "
                "release of dpledger wrote it, which can read it"
            )
        if not read_only:
            self._set("journal_mode", "DELETE")  # of earlier releases' files, too

    def _set(self, name: str, value: str) -> None:
        """Set a pragma, with no writer beside: even this takes back what looks left by a crash."""
        with self._explained(), self._folder(writing=True):
            self._execute(f"PRAGMA {name} = {value}")

    def _execute(self, sql: str, parameters: tuple[object, ...] = ()) -> sqlite3.Cursor:
        """Run a statement; while other writers are in the way, try again and again.

        SQLite's own waiting grows to a tenth of a second a try, and does not cover every statement.

        Raises `sqlite3.OperationalError` once `timeout` seconds have passed.
        """
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return self._connection.execute(sql, parameters)
            except sqlite3.OperationalError as error:
                if time.monotonic() > deadline or _code(error) != sqlite3.SQLITE_BUSY:
                    raise
            time.sleep(random.uniform(0, LONGEST_WAIT))

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Hold the file's write lock; roll back what was written if the body raises."""
        with self._explained(), self._folder(writing=True):
            if self._connection.in_transaction:  # whose end is not ours to decide
                raise LedgerError(
                    f"Expected {self.path} to be at rest instead got the handler of a signal that "
                    "came while a row was written. Nothing was recorded."
                )
            try:
                self._execute("BEGIN IMMEDIATE")
                self._require_name()
                yield
                self._execute("COMMIT")  # waits for readers
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _folder(self, *, writing: bool) -> Generator[None]:
        """Hold the folder's lock, alone or with other readers, where the system has such locks.

        Raises `LedgerLocked` once `timeout` seconds have passed.
        """
        with self._lock:
            # inside `_writing` it is held, and where the folder is not to be read there is none
            lock = None if self._connection.in_transaction else self._folder_lock
            if lock is None:
                yield
                return
            try:
                if not lock.waited_for(self._timeout, alone=writing):
                    raise LedgerLocked(
                        f"Expected the lock (flock) of the folder {self.path.parent} to be free"
                        ": another writer holds it, or another program."
                    )
                yield
            finally:
                lock.release()

    def _require_name(self) -> None:
        """Raise `LedgerError` unless the open file still has the ledger's name, and no other.

        SQLite keeps the journal beside a name: after a crash, who comes by another one would not
        find it. And what is written to a file without a name is lost.
        """
        found = _identity(self.path)
        there = self._folder_lock is None or self._folder_lock.is_of(self.path.parent)
        if found != self._opened or not there:
            raise LedgerError(
                f"{self.path} must be the file that was opened: it was moved, removed or replaced. "
                "Nothing was recorded; open the ledger again."
            )
        for _ in range(5):  # a ledger that is made this very moment has two
            if self.path.stat().st_nlink == 1:
                return
            time.sleep(0.01)
        raise LedgerError(
            f"{self.path} must be the file's only name, and there is another (a hard link). "
            "Nothing was recorded; copy the file, and remove the links."
        )

    def _store(self, row: Row, documents: Mapping[str, str]) -> None:
        """Insert a row after the documents that it names; those known already are there.

        Raises `LedgerError` where another program has brought a write-ahead log back: rows in one
        are lost with it.
        """
        if (mode := self._pragma("journal_mode")) != "delete":
            raise LedgerError(
                f"Expected a rollback journal at {self.path} instead got journal_mode={mode}, as "
                "another program set it (an earlier release does). Nothing was recorded; end that "
                "program and open the ledger again."
            )
        for digest, content in documents.items():
            if digest not in self._state.library:
                self._execute(
                    "INSERT INTO documents SELECT ?1, ?2 "
                    "WHERE NOT EXISTS (SELECT 1 FROM documents WHERE hash = ?1)",
                    (digest, content),
                )
        self._execute(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)",
            (row.sequence, row.kind.value, row.run, row.body, row.previous, row.hash),
        )

    def _rows_after(self, sequence: int, limit: int) -> list[Row]:
        """Return up to `limit` rows after this number, in order."""
        found = self._query(
            "SELECT sequence, kind, run, body, previous, hash FROM rows "
            "WHERE sequence > ? ORDER BY sequence LIMIT ?",
            (sequence, limit),
        )
        return [Row.read(*columns) for columns in found]

    def document(self, digest: str) -> str:
        """Return a document's text; raise `TamperedLedger` where there is none."""
        found = self._query("SELECT content FROM documents WHERE hash = ?", (digest,))
        if not found or not isinstance(found[0][0], str):
            raise TamperedLedger("Document", f"one of hash {digest}", "none")
        return found[0][0]

    def digests(self) -> list[str]:
        """Return the hashes of all documents."""
        return [str(digest) for (digest,) in self._query("SELECT hash FROM documents")]

    def _query(self, sql: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Return all rows of a statement that reads."""
        with (
            self._explained(),
            self._folder(writing=False),
            closing(self._execute(sql, parameters)) as cursor,
        ):
            return cursor.fetchall()

    def _pragma(self, name: str) -> object:
        """Return a number of the file's header."""
        return self._query(f"PRAGMA {name}")[0][0]

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Turn SQLite's complaints into the ledger's.

        Raises:
            LedgerLocked: where others held the file for longer than the timeout.
            NotALedger: for a file that is no database.
            TamperedLedger: for a damaged one.
            LedgerError: for what else the file system refuses, and in a forked process, whose
                connection SQLite forbids to share.
        """
        if os.getpid() != self._process:
            raise LedgerError(f"Expected {self.path} to be opened again in a forked process.")
        try:
            yield
        except UnicodeDecodeError as error:
            # SQLite quotes a damaged schema in its complaint, which Python then cannot read
            raise TamperedLedger(str(self.path), "text in UTF-8", error) from error
        except sqlite3.Error as error:
            code = _code(error)
            words = f"at {self.path} instead got: {error}."
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise LedgerLocked(f"Expected the file to be free {words}") from error
            if code == sqlite3.SQLITE_NOTADB:
                raise NotALedger(f"Expected a ledger {words}") from error
            if code == sqlite3.SQLITE_CORRUPT:
                raise TamperedLedger(str(self.path), "a sound database", error) from error
            raise LedgerError(f"Expected to read and write {words}") from error


def _reopened(path: Path, **settings: Any) -> SqliteLedger:
    """Return the ledger of an unpickled reference; a new one would be a second budget."""
    if not path.exists():
        raise LedgerError(
            f"Expected the ledger {path} that this object was paid from instead got no file."
        )
    return SqliteLedger(path, **settings)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file has this name; None for no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _code(error: sqlite3.Error) -> int:
    """The primary result code: the low byte of what SQLite reports."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
