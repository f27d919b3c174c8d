"""The precision of ball arithmetic: one setting for the whole process, which threads take in turns.

Arb rounds every operation to the bits of `flint.ctx.prec`, whoever set them. A thread that changed
them while another computes would change that one's bits, and two that restore what they found could
leave the wrong number behind for good. Balls stay true at any precision; a radius that is written
down by hand as a multiple of 2^-prec does not.
"""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

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


@contextmanager
def precision(bits: int) -> Generator[None]:
    """Run a block at `bits` of ball-arithmetic precision and restore the former precision.

    Other threads wait for the end of the block before they begin one of their own: it must not wait
    for them.
    """
    with _TURN.lock:
        former = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = former
