"""What every algorithm on records is to those who run it: releases in, a public model out."""

from collections.abc import Callable
from typing import Any, Protocol

from ..mechanisms.curators import Curator
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray


class PublicModel(Protocol):
    """A public state that holds a model of shape (..., d)."""

    @property
    def model(self) -> FloatArray: ...


class ModelSolver(Protocol):
    """An algorithm that releases through a curator only, and ends in a model."""

    def solve(
        self,
        dataset: PrivateDataset,
        curator: Curator,
        *,
        observe: Callable[[int, Any], None] | None = None,
    ) -> PublicModel:
        """Run all rounds and return the last public state."""
        ...
