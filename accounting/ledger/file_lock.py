"""Locks that go with a descriptor of their own (`flock`).

SQLite's locks belong to the process (POSIX: `fcntl`), and fall as soon as it closes any descriptor
of the file, one that it read or copied the file with among them. These do not.
"""

import os
import sys
from contextlib import suppress

if sys.platform != "win32":
    import fcntl


def taken(descriptor: int, *, alone: bool) -> bool:
    """Return whether the lock is held now: False where another descriptor's is in the way.

    Where system or file system have no such locks, True: there SQLite's are all there is.

    Args:
        descriptor: of a file or a folder, open.
        alone: whether no other may hold it meanwhile, or others of this kind may.
    """
    if sys.platform == "win32":
        return True
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def released(descriptor: int) -> None:
    """Give the lock up; the descriptor stays open, and can take it again."""
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def let_go(descriptor: int) -> None:
    """Give the lock up and close the descriptor: closing is not enough, a fork may have it, too."""
    released(descriptor)
    os.close(descriptor)
