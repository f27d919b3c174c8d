"""Locks that go with a descriptor of their own (`flock`).

SQLite's locks belong to the process (POSIX: `fcntl`), and fall as soon as it closes any descriptor
of the file, one that it read or copied the file with among them. These do not.
"""

import os
import random
import sys
import time
import weakref
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl


LONGEST_WAIT = 0.004
"""Seconds, at most, between two tries for a lock; random, so that writers do not meet again."""


class FileLock:
    """A lock on a file or a folder, by a descriptor that is open as long as this is.

    What an interrupt leaves locked is taken over by the next in turn. A forked child closes its
    copy of the descriptor: a lock that its parent held when it was killed would stay with it.

    Args:
        path: of what is there.
        flags: of `os.open`.

    Raises `OSError` as that does.
    """

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self._descriptor = os.open(path, flags)
        self.shut = weakref.finalize(self, os.close, self._descriptor)
        _OPEN.add(self)

    def taken(self, *, alone: bool) -> bool:
        """Return whether the lock is held now: False where another descriptor's is in the way.

        Where system or file system have no such locks, True: there SQLite's are all there is.

        Args:
            alone: whether no other may hold it meanwhile, or others of this kind may.
        """
        if sys.platform == "win32":
            return True
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def waited_for(self, timeout: float, *, alone: bool) -> bool:
        """Return whether the lock is held in the end: False once so many seconds have passed.

        Args:
            timeout: seconds to wait for others.
            alone: as for `taken`.
        """
        deadline = time.monotonic() + timeout
        while not self.taken(alone=alone):
            if time.monotonic() > deadline:
                return False
            time.sleep(random.uniform(0, LONGEST_WAIT))
        return True

    def release(self) -> None:
        """Give the lock up, also when interrupted; it can be taken again."""
        try:
            self._unlock()
        except BaseException:
            self._unlock()
            raise

    def close(self) -> None:
        """Give the lock up for good: closing is not enough, a child may have the descriptor, too.

        A second time does nothing.
        """
        if self.shut.alive:
            self.release()
            self.shut()

    def is_of(self, path: Path) -> bool:
        """Return whether what is locked still has this name."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), path.stat())
        except OSError:
            return False

    def _unlock(self) -> None:
        if sys.platform != "win32":
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)


_OPEN = weakref.WeakSet[FileLock]()
"""All there are, for a child to close: without unlocking, since the lock is its parent's."""


def _shut_all() -> None:
    for lock in list(_OPEN):
        lock.shut()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shut_all)
