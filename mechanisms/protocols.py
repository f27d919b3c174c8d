"""The small protocols that other rooms fulfil: where events go, and what a loss must state."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from .errors import InvalidParameter, require_own_process, require_positive_int
from .events import Event
from .labels import LabelDomain
from .refusals import refuse_seconds

FloatArray = npt.NDArray[np.float64]

IMPORTED = "imported-"
"""How the sampler's name begins where a history of another tool was recorded."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the noise of a reservation comes from; it belongs to the ledger's row, not the event.

    `seed` is None for noise that nobody can draw again; `trials` counts the independent messages
    that left for each event, None where it is one; `simulation` is True where the noise only
    resembles the mechanism's. A release has neither. `source` tells samplers of this process apart
    and is written nowhere: two samplers of one seed draw the same noise, one sampler does not.
    """

    sampler: str
    seed: int | None = field(repr=False)
    trials: int | None = None
    simulation: bool = False
    source: object = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.sampler, str):
            raise InvalidParameter("sampler", self.sampler, "a name")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | None):
            raise InvalidParameter("seed", self.seed, "a whole number or None")
        if self.trials is not None:
            require_positive_int("trials", self.trials)
        if not isinstance(self.simulation, bool):
            raise InvalidParameter("simulation", self.simulation, "True or False")

    @property
    def is_history(self) -> bool:
        """Whether another tool drew the noise, and all was recorded afterwards."""
        return self.sampler.startswith(IMPORTED)

    @property
    def stream(self) -> tuple[str, int] | None:
        """The bits that the noise is made of, None for those that nobody can draw again.

        Exact and floating-point noise from one generator and seed are made of the same bits.
        """
        return None if self.seed is None else (self.sampler.rpartition("-")[2], self.seed)

    @property
    def is_release(self) -> bool:
        """Whether the mechanisms' noise was drawn, exactly and once for each event."""
        return self.trials is None and not self.simulation


class EventSink(Protocol):
    """Where a curator writes events: reserve before the noise is drawn, commit after.

    A reservation without a commit counts as spent. `reserve` raises when a budget would be crossed;
    then nothing was drawn and nothing was spent.
    """

    def reserve(self, events: Sequence[Event], provenance: Provenance) -> int:
        """Record that `events` are about to happen and return a token."""
        ...

    def commit(self, token: int, message: FloatArray, /) -> None:
        """Record that the reservation's message leaves now; where it raises, none does.

        Args:
            token: of the reservation.
            message: as it leaves, noise included.
        """
        ...


@refuse_seconds
class EventList:
    """The simplest sink: events in order, without budget or disk."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._process = os.getpid()

    def reserve(self, events: Sequence[Event], provenance: Provenance) -> int:
        """Append `events`; the token is their number so far. A forked copy raises `ForkedCopy`."""
        require_own_process(self._process, "a list of events")
        self.events.extend(events)
        return len(self.events)

    def commit(self, token: int, message: FloatArray, /) -> None:
        """Do nothing: a list keeps what was reserved."""


class Loss(Protocol):
    """A loss of a generalised linear model: l(score, label), score = <row, w>.

    With K = `outputs` > 1 there are K scores Wᵀ row, and w is the matrix W of shape (d, K), row by
    row. Then arrays of scores have one more axis, the last, of length K.

    `derivative_bound` is sup ‖∂l/∂score‖ over all scores and allowed labels, so that a record's
    gradient, row ⊗ ∂l/∂score, has norm at most derivative_bound·‖row‖; `curvature_bound` is
    sup ‖∂²l/∂score²‖ (None where there is none); `label_domain` says which labels are allowed.
    A null record (row 0) must have zero gradient, which any such loss has.

    Slopes are cut to `derivative_bound`, so that no sensitivity rests on its being true. Taken at
    its word is that a record's slope depends on its own score and label only, and that l is convex
    in the score, on which sensitivities of minimisers rest. `stated` tries both on random scores.

    A loss that does not come with the program is called with all records in a row: read-only scores
    of shape (m,), or (m, K), and labels (m,). Where it raises, or answers in another shape, slopes
    are 0 (see `StatedLoss`).
    """

    @property
    def outputs(self) -> int: ...

    @property
    def label_domain(self) -> LabelDomain: ...

    @property
    def derivative_bound(self) -> Fraction: ...

    @property
    def curvature_bound(self) -> Fraction | None: ...

    def value(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        """Return l, elementwise over scores (..., n) or (..., n, K), and labels (n,)."""
        ...

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        """Return ∂l/∂score in a new array of the scores' shape."""
        ...


@runtime_checkable
class MarginLoss(Protocol):
    """What a loss l(score, label) = phi(label·score) of labels ±1 may have for speed.

    Where many trials share the rows, these are multiplied by their labels once, and slopes are
    functions of one array, written over it. `derivative` is label·phi'(label·score) all the same,
    and all that is asked of a loss that does not come with the program.
    """

    def margin_derivative(self, margins: FloatArray) -> FloatArray:
        """Return phi', elementwise, written over `margins`."""
        ...
