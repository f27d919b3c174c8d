"""What every algorithm on records is to those who run it: releases in, a public model out."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ..mechanisms.curators import Curator
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
