"""Something at any line: what an interrupt, or the handler of a signal, does to a call."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def handled(call: Callable[[], object], act: Callable[[], None], *, line: int, among: str) -> bool:
    """Do `act` before a line that `call` runs, as a signal may; return whether it came so far.

    Args:
        call: what is run.
        act: what is done in between; what it raises, `call` raises.
        line: which of the lines it runs, from 1.
        among: those of files with this in their path are counted.
    """
    left = line

    def trace(frame: FrameType, kind: str, _: object) -> Callable[..., Any] | None:
        nonlocal left
        if among not in frame.f_code.co_filename:
            return None
        left -= kind == "line"
        if kind == "line" and left == 0:
            sys.settrace(None)
            act()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return left <= 0


def interrupted(call: Callable[[], object], *, line: int, among: str) -> bool:
    """Raise `KeyboardInterrupt` at a line that `call` runs, and return whether it came so far."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    try:
        handled(call, interrupt, line=line, among=among)
    except KeyboardInterrupt:
        return True
    return False
