"""Python programs of a user's own, named as FILE.py:NAME; to load one runs its file."""

import importlib
import sys
from pathlib import Path
from typing import Any

from ..mechanisms.errors import InvalidParameter

__all__ = ["load_program"]


def load_program(text: str) -> Any:
    """Return what NAME is in the Python file of "FILE.py:NAME".

    The file is imported under its own name, by which worker processes find it again: its folder
    goes to the front of `sys.path`. (The court loads a claim's function without a name, since it
    runs in this process alone; see `audits.claims.own_function`.)

    Raises `InvalidParameter` where there is no such file or name, the file raises, or another
    module of that name is loaded already: what is audited would be that one.

    Args:
        text: path and name; the file runs with all that the caller may do.
    """
    path, _, name = text.rpartition(":")
    if not path.endswith(".py") or not Path(path).is_file():
        raise InvalidParameter("program", text, "as FILE.py:NAME, a file that exists")
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        module = importlib.import_module(Path(path).stem)
    except (Exception, SystemExit) as error:
        allowed = f"in a file that imports; it raised {type(error).__name__}: {error}"
        raise InvalidParameter("program", text, allowed) from error
    loaded = getattr(module, "__file__", None)
    if loaded is None or Path(loaded).resolve() != Path(path).resolve():
        allowed = f"in a file whose name no other module has; {module.__name__} is {loaded}"
        raise InvalidParameter("program", text, allowed)
    if not hasattr(module, name):
        raise InvalidParameter("program", text, f"a name in {path}")
    return getattr(module, name)
