"""What every algorithm on records is to those who run it: releases in, a public model out."""

from collections.abc import Callable
from math import isfinite
from typing import Any, Protocol, TypeVar

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray

State = TypeVar("State")
Observer = Callable[[int, State], None] | None
"""Called after every round with its number and the public state; for progress and history."""


class PublicModel(Protocol):
    """A public state that holds a model of shape (..., d)."""

    @property
    def model(self) -> FloatArray: ...


class ModelSolver(Protocol):
    """An algorithm that releases through a curator only, and ends in a model."""

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[Any] = None
    ) -> PublicModel:
        """Run all rounds and return the last public state.

        Args:
            dataset: a handle on the records, or a plan of one.
            curator: what stands between the records and everybody else.
            observe: called after every round.
        """
        ...


def require_start(start: tuple[float, ...]) -> None:
    """Raise `InvalidParameter` unless a public starting point is a tuple of finite numbers."""
    if not isinstance(start, tuple) or not all(isfinite(x) for x in start):
        raise InvalidParameter("start", start, "a tuple of finite numbers")


def starting_model(start: tuple[float, ...], width: int) -> FloatArray:
    """Return the public model that a run starts from, of shape (width,).

    Args:
        start: so many numbers, or none for 0.
        width: d·K, features times outputs.

    Raises `InvalidParameter` for another number of them.
    """
    if len(start) not in (0, width):
        raise InvalidParameter("start", len(start), f"of {width} numbers, or none")
    return np.array(start) if start else np.zeros(width)
