"""An interrupt at any line: what a key, a timeout's signal or a lack of memory does to a call."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def interrupted(call: Callable[[], object], *, line: int, among: str) -> bool:
    """Raise `KeyboardInterrupt` at a line that `call` runs, and return whether it came so far.

    Args:
        call: what is interrupted.
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
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
