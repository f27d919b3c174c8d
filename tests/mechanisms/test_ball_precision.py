"""Threads take the precision of ball arithmetic in turns."""

import os
from threading import Event, Thread

import pytest
from flint import ctx

from dpledger.mechanisms.ball_precision import precision


def test_a_thread_waits_until_another_has_restored_the_precision() -> None:
    before, begun, seen = ctx.prec, Event(), list[int]()

    def other() -> None:
        begun.set()
        with precision(before + 200):
            seen.append(ctx.prec)

    with precision(before + 100):
        thread = Thread(target=other)
        thread.start()
        begun.wait()
        thread.join(timeout=0.2)
        assert thread.is_alive()
        assert ctx.prec == before + 100
        with precision(before + 1):  # its own thread may begin another block inside
            assert ctx.prec == before + 1
    thread.join()
    assert seen == [before + 200]
    assert ctx.prec == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_forked_in_another_threads_turn_has_a_turn_of_its_own() -> None:
    begun, end = Event(), Event()

    def other() -> None:
        with precision(300):
            begun.set()
            end.wait()

    thread = Thread(target=other)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        with precision(400):
            os._exit(0 if ctx.prec == 400 else 1)
    end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
