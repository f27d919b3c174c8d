"""Packages whose names are loaded when they are asked for: a command pays for what it uses."""

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["names_from"]


def names_from(
    package: str, places: Mapping[str, tuple[str, ...]], *, own: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Return a module's `__getattr__` that takes each name from its module, loaded at first use.

    Args:
        package: its `__name__`.
        places: module inside the package -> names that it has; none is a module's name as well.
        own: names that their module has under another one.
    """
    others = {} if own is None else own
    owner = {name: place for place, names in places.items() for name in names}

    def load(name: str) -> object:
        if name not in owner:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{owner[name]}"), others.get(name, name))

    return load
