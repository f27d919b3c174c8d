"""What the file of a ledger may be called, and beside what: SQLite finds journals by names.

What it finds it rolls back into the file of that name, whichever wrote it, or removes.
"""

import os
import re
from pathlib import Path

from .rows import LedgerError

_ENDINGS = ("-journal", "-wal", "-shm")
"""Of files that SQLite makes beside a database, and removes."""

_SQLITE = b"SQLite format 3\0"
"""How every file of SQLite begins."""

_MOUNTS = Path("/proc/self/mountinfo")
"""What this process has mounted where, on Linux; the fifth word of a line is the place."""


def require_own_name(path: Path) -> None:
    """Raise `LedgerError` for a name of which SQLite thinks that the file belongs to another.

    And for none at all: "." is a folder.
    """
    if not path.name:
        raise LedgerError(f"{path} must be the name of a file. Nothing was recorded.")
    if path.name.endswith(_ENDINGS):
        raise LedgerError(
            f"{path} must have another name: SQLite takes a file whose name ends so for what "
            "belongs to another, and removes it. Nothing was recorded."
        )


def require_nothing_left(path: Path) -> None:
    """Raise `LedgerError` for a new file beside the journal of another, which it would be given."""
    beside = [path.with_name(path.name + ending) for ending in _ENDINGS]
    left = [each for each in beside if each.exists()]
    if left and not path.exists():  # looked for last: who makes one has it before its journal
        raise LedgerError(
            f"{left[0]} must go first: it is what another ledger of this name had not finished. "
            "Move it to where that ledger is now, and open that once. Nothing was made."
        )


def require_no_database(path: Path) -> None:
    """Raise `LedgerError` for a database in the place of what is to be written: a ledger's rows."""
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                raise LedgerError(
                    f"{path} must be another file: a database, a ledger perhaps, would be written "
                    "over. Nothing was written."
                )


def write_over(path: Path, content: bytes) -> None:
    """Write a file, over the one that is there; raise as `require_no_database`."""
    require_no_database(path)
    path.write_bytes(content)


def is_mounted(path: Path) -> bool:
    """Return whether a file is a mount point of its own; False where the system does not tell."""
    try:
        mounts = _MOUNTS.read_bytes()
    except OSError:
        return False
    points = (mount.split()[4] for mount in mounts.splitlines())
    octal = re.compile(rb"\\([0-7]{3})")  # of spaces, line ends and backslashes
    named = (octal.sub(lambda found: bytes([int(found[1], 8)]), point) for point in points)
    return os.fsencode(path) in named
