"""Optional libraries, which extras of the package install."""

from importlib import import_module
from typing import Any

from .errors import DpledgerError


class MissingExtra(DpledgerError, ImportError):
    """An optional library is not installed; nothing was computed or spent."""


def import_extra(module: str, extra: str) -> Any:
    """Return a module of an optional library.

    Args:
        module: its full name.
        extra: of this package, which installs it.

    Raises:
        MissingExtra: it is not installed; the message names the extra.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        library = module.partition(".")[0].replace("_", "-")
        raise MissingExtra(
            f"{library} must be installed: pip install 'dpledger[{extra}]'."
        ) from missing
