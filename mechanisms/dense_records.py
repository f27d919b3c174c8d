"""Dense rows: a block of P parties, padded with null rows to (P, n, d).

Null rows have zero gradient under every loss, so that a padded party's sums are those of its own
records. Products run over all parties at once, in blocks that fit in the caches (`blocking`). The
methods are those of `Records`, where they are described; made by `dense_records`, for `layout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from .blocking import BlockSum, block_sums, blocks, records_at_once
from .blocking import parts as parts_of
from .clipping import cut_to_bound, lengths, project_to_ball
from .errors import InvalidParameter
from .labels import SIGNS
from .protocols import FloatArray, Loss
from .records import (
    IntArray,
    Records,
    checked_row,
    combined,
    place_of,
    places_of,
    protect,
    record_slopes,
)
from .refusals import refuse_copies
from .rounding import BLOCK_RECORDS
from .row_blocks import BoolArray, RowBlocks
from .storage import copied, zeros


@refuse_copies
@dataclass(frozen=True, slots=True, repr=False)
class DenseRecords:
    """Rows of P parties in one padded block.

    Args:
        rows: array of shape (P, n, d), n the largest party's number of records; null where padded.
        labels: array of shape (P, n); `filler` where padded.
        counts: array of shape (P,), records of each party.
        slot: the party and the place within it of each record, two arrays of shape (N,) in the
            order of input.
        filler: a label that every loss for these labels allows.
    """

    rows: FloatArray
    labels: FloatArray
    counts: IntArray
    slot: tuple[IntArray, IntArray]
    filler: float

    def __post_init__(self) -> None:
        protect(self.rows, self.labels)

    @property
    def party_of(self) -> IntArray:
        return self.slot[0]

    @property
    def norms(self) -> FloatArray:
        found = np.empty(self.labels.shape)
        for some in _pieces(self.rows.shape):
            found[some] = lengths(self.rows[some])
        return found

    def of_party(self, party: int) -> DenseRecords:
        count, one = int(self.counts[party]), slice(party, party + 1)
        slot = (np.zeros(count, dtype=np.intp), self.slot[1][self.party_of == party])
        return DenseRecords(self.rows[one], self.labels[one], self.counts[one], slot, self.filler)

    def taken(self, indices: IntArray) -> DenseRecords:
        party, place = self.slot[0][indices], self.slot[1][indices]
        slot = (np.zeros(len(indices), dtype=np.intp), np.arange(len(indices)))
        rows, labels = self.rows[party, place], self.labels[party, place]
        return DenseRecords(rows[None], labels[None], np.array([len(indices)]), slot, self.filler)

    def drawn(self, inside: FloatArray) -> DenseRecords:
        some = np.flatnonzero(inside)
        party_of, own = self.slot[0][some], self.slot[1][some]
        counts = np.bincount(party_of, minlength=len(self.counts))
        rows, labels = self.rows[party_of, own], self.labels[party_of, own]
        blocks = RowBlocks(rows.shape, rows.__getitem__)
        return _in_blocks(blocks, labels, party_of, counts, self.filler)

    def differing(self, other: Records) -> IntArray | None:
        if not isinstance(other, DenseRecords) or not np.array_equal(self.party_of, other.party_of):
            return None
        moved = np.any(self.rows[self.slot] != other.rows[other.slot], axis=-1)
        return np.flatnonzero(moved | (self.labels[self.slot] != other.labels[other.slot]))

    def squared(self) -> _Squares:
        return _Squares(self.rows)

    def spread(self, values: FloatArray) -> FloatArray:
        return values[..., None]

    def gathered(self, values: FloatArray) -> FloatArray:
        # sums along a contiguous axis are pairwise: no number enters more additions than a block's
        return np.asarray(np.ascontiguousarray(values).sum(axis=-1))

    def placed(self, values: FloatArray) -> FloatArray:
        blocks = np.zeros((*values.shape[:-1], *self.labels.shape))
        blocks[(..., *self.slot)] = values
        return blocks

    def in_order(self, values: FloatArray) -> FloatArray:
        return np.asarray(values[(..., *self.slot)])

    def scores(self, w: FloatArray) -> FloatArray:
        if w.ndim == 2:
            return _one_by_one(self.rows, w)
        trials = w.reshape(-1, *w.shape[-2:])
        # matmul over parties: (P, n, d) @ (P, d, B), trials last so that BLAS sees wide matrices
        scores = self.rows @ trials.transpose(1, 2, 0)
        return scores.transpose(2, 0, 1).reshape(*w.shape[:-2], *self.labels.shape)

    def combined(self, slopes: FloatArray) -> FloatArray:
        trials = slopes.reshape(-1, *slopes.shape[-2:]).transpose(1, 0, 2)
        found = np.zeros((*slopes.shape[:-1], self.rows.shape[-1]))
        sums = BlockSum(found.reshape(-1, *found.shape[-2:]).transpose(1, 0, 2), trials.shape[-1])
        for some in records_at_once(trials.shape[-1]):
            sums.add(trials[..., some] @ self.rows[:, some])
        sums.close()
        return found

    def sum_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        if loss.outputs > 1:
            return combined(self, record_slopes(self, loss, w))
        count, width = self.rows.shape[1:]
        found = np.zeros(w.shape)
        into = found.reshape(-1, *w.shape[-2:]).swapaxes(0, 1)
        sums = BlockSum(into, count, block_sums(count, width))
        for block, place in gradient_blocks(self.rows, self.labels, loss, w, whole=count):
            sums.add(block, place)
        sums.close()
        return found

    def mean_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        means = np.ascontiguousarray(self.sum_gradient(loss, w))
        # as many counts as numbers: divided in one sweep, not in one of every short row
        by_trial = means.reshape(-1, means.shape[-2] * means.shape[-1])
        by_trial /= self.counts.repeat(means.shape[-1])
        return means

    def with_record(
        self, index: int, row_bound: float, features: FloatArray | None, label: float | None
    ) -> DenseRecords:
        place = (place_of(self.slot[0], index), place_of(self.slot[1], index))
        rows, labels = self.rows, self.labels
        if features is not None:
            rows = rows.copy()
            rows[place] = project_to_ball(checked_row(features, rows.shape[-1]), row_bound)
        if label is not None:
            labels = labels.copy()
            labels[place] = label
        return replace(self, rows=rows, labels=labels)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Squares:
    """Squared rows, squared anew a few at a time for every product: never as large as the rows.

    Args:
        rows: array of shape (P, n, d).
    """

    rows: FloatArray

    def scores(self, w: FloatArray) -> FloatArray:
        found = np.empty((*w.shape[:-2], *self.rows.shape[:2]))
        trials = w.reshape(-1, *w.shape[-2:]).transpose(1, 2, 0)
        flat = found.reshape(-1, *self.rows.shape[:2])
        for parties, some in _pieces(self.rows.shape):
            squares = np.square(self.rows[parties, some])
            if w.ndim == 2:
                found[parties, some] = _one_by_one(squares, w[parties])
            else:
                flat[:, parties, some] = (squares @ trials[parties]).transpose(2, 0, 1)
        return found

    def combined(self, slopes: FloatArray) -> FloatArray:
        trials = slopes.reshape(-1, *slopes.shape[-2:]).transpose(1, 0, 2)
        found = np.zeros((*slopes.shape[:-1], self.rows.shape[-1]))
        sums = BlockSum(found.reshape(-1, *found.shape[-2:]).transpose(1, 0, 2), trials.shape[-1])
        for parties, some in _pieces(self.rows.shape):
            sums.add(trials[parties, :, some] @ np.square(self.rows[parties, some]), parties)
        sums.close()
        return found


def dense_records(
    features: RowBlocks,
    labels: FloatArray,
    row_bound: float,
    party_of: IntArray,
    counts: IntArray,
    filler: float,
) -> DenseRecords:
    """Return checked records in blocks, their rows cut to `row_bound`: one copy of them."""

    def read(some: slice | BoolArray) -> FloatArray:
        return checked_rows(features[some], row_bound)

    return _in_blocks(replace(features, read=read), labels, party_of, counts, filler)


def checked_rows(rows: FloatArray, row_bound: float) -> FloatArray:
    """Return rows cut to `row_bound`; raise `InvalidParameter` unless all entries are finite."""
    if not np.all(np.isfinite(rows)):
        raise InvalidParameter("features", "NaN or infinity", "with finite entries")
    return project_to_ball(rows, row_bound)


def gradient_blocks(
    rows: FloatArray, labels: FloatArray, loss: Loss, w: FloatArray, *, whole: int
) -> Iterator[tuple[FloatArray, tuple[slice, slice]]]:
    """Yield sums of gradients over blocks of records, each with its place in the whole sum.

    Args:
        rows: of shape (P, n, d).
        labels: of shape (P, n).
        loss: of one output.
        w: points of shape (..., P, d); places are parties and points, all leading axes as one.
        whole: how many records a party has at most, of which these may be a part.
    """
    bound, width = loss.derivative_bound, w.shape[-1]
    points = w.reshape(-1, *w.shape[-2:]).swapaxes(0, 1)
    by_margin: Callable[[FloatArray], FloatArray] | None = None
    # rows times other labels could be longer than the bound on rows
    if loss.label_domain == SIGNS:
        # of a `MarginLoss`, whose isinstance takes as long as a block
        by_margin = getattr(loss, "margin_derivative", None)
    for parties, some, trials in blocks(points.shape[1], rows.shape, whole):
        block, own = rows[parties, some], labels[parties, some]
        here = points[parties, trials]
        # rows times labels, where that is less work than scores times labels
        signed = by_margin if here.shape[1] >= width else None
        if signed is not None:
            block = block * own[..., None]
        scores = np.empty((*here.shape[:-1], block.shape[1]))
        parts = parts_of(scores.shape, width)
        for part in parts:
            if w.ndim == 2:
                scores[:, 0] = _one_by_one(block, here[:, 0])
            else:
                np.matmul(here[:, part], block.swapaxes(1, 2), out=scores[:, part])
        slopes = signed(scores) if signed is not None else loss.derivative(scores, own[:, None])
        slopes = cut_to_bound(slopes, bound)
        for part in parts:
            # the last part may end past the block: not past its trials, into the next block
            begin = trials.start + part.start
            place = (parties, slice(begin, begin + slopes[:, part].shape[1]))
            for few in records_at_once(block.shape[1]):
                yield slopes[:, part, few] @ block[:, few], place


_PIECE = 2**20
"""Numbers of rows that a temporary array is as large as: 8 MB, whatever the records take."""


def _pieces(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Yield parties and records that make up rows of shape (P, n, d), in blocks as sums have."""
    parties, records, width = shape
    several = max(1, _PIECE // (min(records, BLOCK_RECORDS) * width))
    for party, some in product(range(0, parties, several), records_at_once(records)):
        yield slice(party, party + several), some


def _in_blocks(
    features: RowBlocks, labels: FloatArray, party_of: IntArray, counts: IntArray, filler: float
) -> DenseRecords:
    scratch, at_once = features.scratch, features.at_once
    rows = zeros((len(counts), max(1, int(counts.max())), features.shape[1]), scratch)
    padded = zeros(rows.shape[:2], scratch)
    padded[...] = filler
    places = places_of(party_of, counts)
    slot = (party_of, places if scratch is None else copied(places, scratch, np.intp))
    for first in range(0, len(party_of), at_once):
        some = slice(first, first + at_once)
        here = (slot[0][some], slot[1][some])
        rows[here], padded[here] = features[some], labels[some]
    return DenseRecords(rows, padded, counts, slot, filler)


def _one_by_one(rows: FloatArray, w: FloatArray) -> FloatArray:
    """Return <row, w> of shape (P, n) for rows (P, n, d) and w (P, d), every row by the same sums.

    BLAS adds up rows at the edge of a block in another order. Under add-remove-one a record moves
    others to other places, and no score may depend on that: a slope that jumps there (a hinge's)
    would move by more than any bound on rounding says. A row that is all there is would be added up
    in pieces of NumPy's buffer: it gets company.
    """
    count = rows.shape[1]
    if rows.shape[0] * count == 1:
        rows = np.repeat(rows, 2, axis=1)
    return np.asarray(np.einsum("pnd,pd->pn", rows, np.ascontiguousarray(w))[:, :count])
