"""Private records of several parties, as arithmetic sees them, whatever their layout in memory.

Nothing here knows about privacy; `PrivateDataset` wraps it. Layouts are `DenseRecords` and
`SparseRecords`; `layout` chooses. Gradients of a loss l of K scores are products row ⊗ slope of a
record's row with its slope ∂l/∂score, so a layout only has to know two products: rows times weights
(`scores`) and slopes times rows (`combined`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .clipping import cut_to_bound
from .errors import InvalidParameter
from .protocols import FloatArray, Loss

IntArray = np.ndarray[Any, np.dtype[np.integer[Any]]]
"""Indices, counts and places."""


class Products(Protocol):
    """What scores and sums of products need of rows."""

    def scores(self, w: FloatArray) -> FloatArray: ...

    def combined(self, slopes: FloatArray) -> FloatArray: ...


class Records(Protocol):
    """Records of P parties; `counts` has shape (P,)."""

    @property
    def counts(self) -> IntArray: ...

    @property
    def party_of(self) -> IntArray:
        """The party of each record, of shape (N,), in the order of input."""
        ...

    @property
    def norms(self) -> FloatArray:
        """The rows' l2 norms, in this layout's shape."""
        ...

    @property
    def labels(self) -> FloatArray:
        """The labels, in this layout's shape."""
        ...

    def of_party(self, party: int) -> Records:
        """Return one party's records, in the order of input, as the only party's."""
        ...

    def taken(self, indices: IntArray) -> Records:
        """Return some records, all of them one party's, as the only party's only records."""
        ...

    def drawn(self, inside: FloatArray) -> Records:
        """Return the records where `inside`, of shape (N,), is not 0, each with its own party.

        What is computed on them is a function of the drawn records alone: those that are not drawn
        have no part even in the order of a sum.
        """
        ...

    def differing(self, other: Records) -> IntArray | None:
        """Return the indices of records that differ, or None where they cannot be matched."""
        ...

    def squared(self) -> Products:
        """Return these rows with their entries squared, for products."""
        ...

    def spread(self, values: FloatArray) -> FloatArray:
        """Return one value a party, of shape (..., P), as one a record, in this layout."""
        ...

    def gathered(self, values: FloatArray) -> FloatArray:
        """Return the sum of values in this layout over each party's records, of shape (..., P)."""
        ...

    def placed(self, values: FloatArray) -> FloatArray:
        """Return one value a record, of shape (..., N) in the order of input, in this layout."""
        ...

    def in_order(self, values: FloatArray) -> FloatArray:
        """Return values in this layout as (..., N), in the order of input."""
        ...

    def scores(self, w: FloatArray) -> FloatArray:
        """Return <row, w> for each record, w of shape (..., P, d), in this layout.

        At one point, of shape (P, d), a record's score is the same number wherever it stands.
        """
        ...

    def combined(self, slopes: FloatArray) -> FloatArray:
        """Return each party's sum of slope times row, of shape (..., P, d)."""
        ...

    def sum_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        """Return sums of gradients at w of shape (..., P, d·K), in the same shape."""
        ...

    def mean_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        """Return means of gradients at w of shape (..., P, d·K), in the same shape."""
        ...

    def with_record(
        self, index: int, row_bound: float, features: FloatArray | None, label: float | None
    ) -> Records:
        """Return a copy with record `index` (in the order of input) changed."""
        ...


def record_slopes(records: Records, loss: Loss, w: FloatArray) -> FloatArray:
    """Return each record's ∂l/∂score, cut to the loss's bound, in the layout, with K last.

    Args:
        records: of P parties.
        loss: with K outputs.
        w: points of shape (..., P, d·K), one for each party.
    """
    width, outputs = w.shape[-1] // loss.outputs, loss.outputs
    # the K columns of the matrices w are so many more trials for the layout
    columns = np.moveaxis(w.reshape(*w.shape[:-1], width, outputs), -1, 0)
    if outputs == 1:
        return slopes_of(loss, records.scores(columns[0]), records.labels)[..., None]
    # at one point a column at a time, as `scores` promises more of one than of many
    scores = (
        np.stack([records.scores(one) for one in columns])
        if w.ndim == 2
        else records.scores(columns)
    )
    return slopes_of(loss, np.moveaxis(scores, 0, -1), records.labels)


def combined(records: Records, slopes: FloatArray) -> FloatArray:
    """Return each party's sum of row ⊗ slope, of shape (..., P, d·K).

    Args:
        records: of P parties.
        slopes: in the layout, with K last, as `record_slopes` returns them.
    """
    sums = np.moveaxis(records.combined(np.moveaxis(slopes, -1, 0)), 0, -1)
    return sums.reshape(*sums.shape[:-2], -1)


def slopes_at(records: Records, loss: Loss, w: FloatArray) -> FloatArray:
    """Return each record's ∂l/∂score at w of shape (..., P, d), of a loss with one output."""
    return slopes_of(loss, records.scores(w), records.labels)


def slopes_of(loss: Loss, scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Return ∂l/∂score per record, cut to the loss's own bound: the sensitivity rests on it.

    Args:
        loss: its `derivative` is called, which may be a user's own code.
        scores: in the layout, with K last where K > 1.
        labels: in the layout.
    """
    return cut_to_bound(loss.derivative(scores, labels), loss.derivative_bound, loss.outputs)


def protect(*arrays: FloatArray) -> None:
    """Make arrays read-only: a loss of one's own is handed views of them."""
    for array in arrays:
        array.setflags(write=False)


def places_of(party_of: IntArray, counts: IntArray) -> IntArray:
    """Return each record's place among its party's, in the order of input."""
    if len(counts) == 1:
        return np.arange(len(party_of))
    order = np.argsort(party_of, kind="stable")
    place = np.empty(len(party_of), dtype=np.intp)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place[order] = np.arange(len(party_of)) - np.repeat(starts, counts)
    return place


def place_of(places: IntArray, index: int) -> int:
    """Return a record's entry of `places`; raise `InvalidParameter` for an index that is none."""
    if not 0 <= index < len(places):
        raise InvalidParameter("index", index, f"in [0, {len(places) - 1}]")
    return int(places[index])


def checked_row(features: FloatArray, width: int) -> FloatArray:
    """Return a row as binary64; raise `InvalidParameter` unless it is finite, of shape (width,)."""
    row = np.asarray(features, dtype=np.float64)
    if row.shape != (width,) or not np.all(np.isfinite(row)):
        raise InvalidParameter("features", row.shape, f"a finite row of shape ({width},)")
    return row
