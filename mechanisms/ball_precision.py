"""The precision of ball arithmetic: one setting for the whole process, which threads take in turns.

Arb rounds every operation to the bits of `flint.ctx.prec`, whoever set them. A thread that changed
them while another computes would change that one's bits, and two that restore what they found could
leave the wrong number behind for good. Balls stay true at any precision; a radius that is written
down by hand as a multiple of 2^-prec does not.
"""

import os
import threading

from flint import ctx

__all__ = ["precision"]


class _Turn:
    """Whose turn it is: a lock that its thread may take again, and a child process has anew."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # of a process forked in another thread's turn, nobody would ever end that turn
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.lock = threading.RLock()


_TURN = _Turn()


class _Block:
    """A block at a precision of its own, in this thread's turn; entered thousands of times."""

    __slots__ = ("_bits", "_former", "_lock")

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def __enter__(self) -> None:
        # the one that is held, also where a child process has another
        self._lock = _TURN.lock
        self._lock.acquire()
        self._former = ctx.prec
        try:
            ctx.prec = self._bits
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        ctx.prec = self._former
        self._lock.release()


def precision(bits: int) -> _Block:
    """Run a block at `bits` of ball-arithmetic precision and restore the former precision.

    Other threads wait for the end of the block before they begin one of their own: it must not wait
    for them.
    """
    return _Block(bits)
