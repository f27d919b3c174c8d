"""Packages whose names are loaded when they are asked for: a command pays for what it uses.

`dpledger --version` would otherwise import numpy, and a plan the statistics of audits; what it
costs, benchmarks/startup.py measures. Every room's `__init__.py` ends with a call of `names_from`.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.abc import InspectLoader


def names_from(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`, which load each public name at its first use.

    A package writes where its public names stand once, as imports under `if TYPE_CHECKING:`, in the
    form of re-exports, `from .module import name as name`. Type checkers read them there, and so
    does this (SPEC 1 of scientific Python reads a stub in the same way); `__all__` lists them.

    Args:
        package: its `__name__`.
    """
    places = _places(package)

    def load(name: str) -> object:
        if name == "__all__":
            return sorted(places)
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, its_name = places[name]
        return getattr(import_module(module, package), its_name)

    return load, lambda: sorted(places)


def _places(package: str) -> dict[str, tuple[str, str]]:
    """Return the module of each public name, and the name that it has there."""
    spec = sys.modules[package].__spec__
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    blocks = [
        b for b in ast.parse(spec.loader.get_source(package) or "").body if isinstance(b, ast.If)
    ]
    return {
        alias.asname or alias.name: ("." * line.level + (line.module or ""), alias.name)
        for block in blocks
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
