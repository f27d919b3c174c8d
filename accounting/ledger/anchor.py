"""Anchors: a second place that remembers how far a ledger had come.

A hash chain binds rows to those before them; it cannot tell that the last rows are missing, or that
the file is an older copy of itself, whose budget is whole again. An anchor can: a list of heads,
kept where whoever can replace the ledger cannot (another disk, another account). With an anchor,
every reservation and every message first finds the anchor's last head in the ledger, and afterwards
adds its own; from the one to the other the anchor is locked, so that of two copies which reserve at
one moment the later finds the head of the first.

>>> head = Head(7, 64 * "a")
>>> Head.read(head.line) == head, head in Head.stated([f"taken for granted: {head.statement}"])
(True, True)
"""

import os
import re
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .file_lock import FileLock
from .file_names import require_own_name
from .rows import LedgerError

_LINE = re.compile(r"([1-9][0-9]{0,17}) ([0-9a-f]{64})")
_STATEMENT = "row {row} of its ledger has the hash {hash}"
_STATED = re.compile(
    r"taken for granted: row ([1-9][0-9]{0,17}) of its ledger has the hash ([0-9a-f]{64})"
)
"""The whole of an assumption: other words before it would be an assumption of their own."""
_TAIL = 1 << 16
"""Bytes at the end of an anchor that are read: 700 heads, more than writers overtake each other."""


class RolledBack(LedgerError):
    """The ledger lacks rows that it had, or has others in their place. Nothing was recorded."""


@dataclass(frozen=True, slots=True, order=True)
class Head:
    """The number of a row and its hash, which binds all rows up to it.

    Args:
        row: its number, from 1.
        hash: 64 hexadecimal digits.
    """

    row: int
    hash: str

    @property
    def line(self) -> str:
        """The head as a line of an anchor, without its line break."""
        return f"{self.row} {self.hash}"

    @property
    def statement(self) -> str:
        """What a certificate of a ledger's events takes for granted."""
        return _STATEMENT.format(row=self.row, hash=self.hash)

    @classmethod
    def read(cls, line: str) -> "Head":
        """Return the head of a line; raises `LedgerError` if it is none."""
        found = _LINE.fullmatch(line)
        if found is None:
            raise LedgerError(f"Expected a row number and a hash in an anchor, got {line:.80}.")
        return cls(int(found[1]), found[2])

    @classmethod
    def stated(cls, assumptions: Iterable[str]) -> tuple["Head", ...]:
        """Return the heads that a certificate's assumptions name."""
        found = (_STATED.fullmatch(text) for text in assumptions)
        return tuple(cls(int(match[1]), match[2]) for match in found if match is not None)


class FileAnchor:
    """An anchor in a text file that is only ever appended to.

    Args:
        path: the file. It must be there, unless the ledger is new.

    Raises `LedgerError` for a name that SQLite takes for another's, and for what is no file: of a
    pipe heads cannot be read again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        require_own_name(self.path)
        self._require_file()

    def last(self) -> Head | None:
        """Return the head that is farthest, None where there is no file.

        Nor where it is empty. Lines cut short by a crash are passed over. Raises `LedgerError` for
        a file without heads.
        """
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _TAIL))
                tail = file.read().decode("ascii", errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(f"Expected to read the anchor {self.path}: {error}.") from error
        if size == 0:
            return None
        found = [Head.read(line) for line in tail.split("\n")[:-1] if _LINE.fullmatch(line)]
        if not found:
            raise LedgerError(f"Expected lines of a row number and a hash in {self.path}.")
        return max(found)

    @contextmanager
    def locked(self, timeout: float) -> Generator[None]:
        """Keep all others from it, where the system has such locks; make the file if it is new.

        Args:
            timeout: seconds to wait for others.

        Raises `LedgerError` after them, or where the file cannot be opened.
        """
        self._require_file()
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            lock = FileLock(self.path)
        except OSError as error:
            raise LedgerError(f"Expected to open the anchor {self.path}: {error}.") from error
        try:
            if not lock.waited_for(timeout, alone=True):
                raise LedgerError(
                    f"Expected the lock (flock) of the anchor {self.path} to be free: another "
                    "ledger holds it, or another program. Nothing was recorded."
                )
            yield
        finally:
            lock.close()

    def _require_file(self) -> None:
        """Raise `LedgerError` for what is there and is no file; opening a pipe would not end."""
        try:
            is_file = stat.S_ISREG(os.stat(self.path).st_mode)
        except OSError:  # not there, or not to be seen: whoever opens it says why
            return
        if not is_file:
            raise LedgerError(f"Expected the anchor {self.path} to be a file.")

    def append(self, head: Head) -> None:
        """Add a head, and return once it is on the disk.

        Raises `LedgerError` where the file cannot be written: then nothing may be released.
        """
        try:
            with self.path.open("a+b") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    cut_short = file.read() != b"\n"
                    file.write(b"\n" if cut_short else b"")
                file.write(f"{head.line}\n".encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise LedgerError(f"Expected to write the anchor {self.path}: {error}.") from error
