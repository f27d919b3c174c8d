"""Parameters of laws: a few, cheap and telling, run always, and the rest with the slow tests."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Return these values as parameters for `pytest -m slow`; a tuple is one value per name."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for value in values
    ]


def quick(few: Container[Any], of: Iterable[Any]) -> list[Any]:
    """Return all of these values as parameters, those that are not among the few as slow ones."""
    return [value if value in few else slow(value)[0] for value in of]
