"""Sparse rows (one-hot data): all parties' in one block-diagonal matrix of shape (N, P·d).

So all parties' scores are one product, and a row costs the numbers that it holds. The transpose is
kept too: a sum of gradients is a product with it, and CSR is fast from the left only. The methods
are those of `Records`, where they are described; made by `sparse_records`, for `layout`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from .blocking import BlockSum
from .clipping import inner_radius, project_to_ball
from .errors import InvalidParameter
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
    slopes_at,
)
from .refusals import refuse_copies
from .rounding import BLOCK_RECORDS


@refuse_copies
@dataclass(frozen=True, slots=True, repr=False)
class SparseRecords:
    """All parties' rows in one block-diagonal CSR matrix, and its transpose in CSR.

    Args:
        blocks: of shape (N, P·d): record i stands in row i and in its party's d columns.
        transposed: one part for each block of `BLOCK_RECORDS` records of every party, with the
            indices of these records: sums are priced for blocks of that size
            (`rounding.sum_depth`).
        labels: array of shape (N,), in the order of input.
        counts: array of shape (P,), records of each party.
        party_of: array of shape (N,), the party of each record.
        filler: a label that every loss for these labels allows, for a null record.
    """

    blocks: sparse.csr_array[Any]
    transposed: tuple[tuple[IntArray | slice, sparse.csr_array[Any]], ...]
    labels: FloatArray
    counts: IntArray
    party_of: IntArray
    filler: float

    def __post_init__(self) -> None:
        protect(self.blocks.data, self.labels)

    @property
    def norms(self) -> FloatArray:
        largest, units = _row_units(self.blocks)
        return largest * units

    def of_party(self, party: int) -> SparseRecords:
        return self.taken(np.flatnonzero(self.party_of == party))

    def taken(self, indices: IntArray) -> SparseRecords:
        party, width = int(self.party_of[indices[0]]), self.blocks.shape[1] // len(self.counts)
        columns = slice(party * width, (party + 1) * width)
        blocks = sparse.csr_array(self.blocks[indices][:, columns])
        party_of, counts = np.zeros(len(indices), dtype=np.intp), np.array([len(indices)])
        labels = self.labels[indices]
        return SparseRecords(
            blocks, _transposed(blocks, party_of), labels, counts, party_of, self.filler
        )

    def drawn(self, inside: FloatArray) -> SparseRecords:
        some = np.flatnonzero(inside)
        counts = np.bincount(self.party_of[some], minlength=len(self.counts))
        if len(some):
            blocks = sparse.csr_array(self.blocks[some])
            labels, parties = self.labels[some], self.party_of[some]
        else:  # a null record, so that no loss is asked about none
            blocks = sparse.csr_array((1, self.blocks.shape[1]))
            labels, parties = np.array([self.filler]), np.zeros(1, dtype=np.intp)
        transposed = _transposed(blocks, parties)
        return SparseRecords(blocks, transposed, labels, counts, parties, self.filler)

    def differing(self, other: Records) -> IntArray | None:
        if not isinstance(other, SparseRecords) or not np.array_equal(
            self.party_of, other.party_of
        ):
            return None
        gap: Any = self.blocks - other.blocks
        moved = np.asarray(abs(gap).sum(axis=1)).ravel() > 0
        return np.flatnonzero(moved | (self.labels != other.labels))

    def squared(self) -> SparseRecords:
        blocks = self.blocks.power(2)
        return replace(self, blocks=blocks, transposed=_transposed(blocks, self.party_of))

    def spread(self, values: FloatArray) -> FloatArray:
        return np.asarray(values[..., self.party_of])

    def gathered(self, values: FloatArray) -> FloatArray:
        order = np.argsort(self.party_of, kind="stable")
        ends = np.cumsum(self.counts)[:-1]
        parts = np.split(np.take(values, order, axis=-1), ends, axis=-1)
        # sums along a contiguous axis are pairwise: no number enters more additions than a block's
        return np.stack([np.ascontiguousarray(part).sum(axis=-1) for part in parts], axis=-1)

    def placed(self, values: FloatArray) -> FloatArray:
        return values

    def in_order(self, values: FloatArray) -> FloatArray:
        return values

    def scores(self, w: FloatArray) -> FloatArray:
        flat = w.reshape(-1, w.shape[-2] * w.shape[-1])
        # a product with one vector needs half the time of one with a matrix of one column
        scores = self.blocks @ flat[0] if len(flat) == 1 else np.asarray(self.blocks @ flat.T).T
        return scores.reshape(*w.shape[:-2], len(self.labels))

    def combined(self, slopes: FloatArray) -> FloatArray:
        flat = slopes.reshape(-1, slopes.shape[-1])
        found = np.zeros((len(flat), self.blocks.shape[1]))
        sums = BlockSum(found.T, int(self.counts.max()))
        for some, part in self.transposed:
            # a product with one vector needs half the time of one with a matrix of one column
            sums.add((part @ flat[0, some])[:, None] if len(flat) == 1 else part @ flat[:, some].T)
        sums.close()
        return found.reshape(*slopes.shape[:-1], len(self.counts), -1)

    def sum_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        if loss.outputs > 1:
            return combined(self, record_slopes(self, loss, w))
        return self.combined(slopes_at(self, loss, w))

    def mean_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        means = self.sum_gradient(loss, w)
        means /= self.counts[:, None]
        return means

    def with_record(
        self, index: int, row_bound: float, features: FloatArray | None, label: float | None
    ) -> SparseRecords:
        labels = self.labels
        place_of(self.party_of, index)
        if label is not None:
            labels = labels.copy()
            labels[index] = label
        if features is None:
            return replace(self, labels=labels)
        width = self.blocks.shape[1] // len(self.counts)
        row = project_to_ball(checked_row(features, width), row_bound)
        changed = self.blocks.tolil()
        party = int(self.party_of[index])
        changed[index, :] = 0.0
        changed[index, party * width : (party + 1) * width] = row
        blocks = sparse.csr_array(changed)
        return replace(
            self, blocks=blocks, transposed=_transposed(blocks, self.party_of), labels=labels
        )


def sparse_records(
    features: sparse.csr_array[Any],
    labels: FloatArray,
    row_bound: float,
    party_of: IntArray,
    counts: IntArray,
    filler: float,
) -> SparseRecords:
    """Return sparse records with rows cut to the bound, in the parties' columns.

    Args:
        features: CSR array of shape (N, d), finite.
        labels: array of shape (N,), checked by the caller.
        row_bound: l2 bound; a longer row is scaled down to it.
        party_of: array of shape (N,), the party of each record.
        counts: array of shape (P,), records of each party.
        filler: as for `SparseRecords`.

    Raises `InvalidParameter` for entries that are not finite.
    """
    if not np.all(np.isfinite(features.data)):
        raise InvalidParameter("features", "NaN or infinity", "with finite entries")
    records, width = features.shape
    largest, units = _row_units(features)
    limit, per_row = inner_radius(row_bound, width), np.diff(features.indptr)
    with np.errstate(all="ignore"):
        long = largest * units > limit
        shrunk = (features.data / np.repeat(largest, per_row)) * np.repeat(limit / units, per_row)
    data = np.where(np.repeat(long, per_row), shrunk, features.data)
    columns = features.indices + np.repeat(party_of * width, per_row)
    # half the index traffic of the default: products here are bound by memory bandwidth
    narrow = np.int32 if max(width * len(counts), len(data)) < 2**31 else np.int64
    blocks = sparse.csr_array(
        (data, columns.astype(narrow), features.indptr.astype(narrow)),
        shape=(records, width * len(counts)),
    )
    return SparseRecords(blocks, _transposed(blocks, party_of), labels, counts, party_of, filler)


def _row_units(rows: sparse.csr_array[Any]) -> tuple[FloatArray, FloatArray]:
    """Return each row's largest entry, and its length in units of it: no square underflows."""
    per_row = np.diff(rows.indptr)
    row = np.repeat(np.arange(len(per_row)), per_row)
    largest, sizes = np.zeros(len(per_row)), np.abs(rows.data)
    np.maximum.at(largest, row, sizes)
    with np.errstate(all="ignore"):
        units = np.where(sizes > 0.0, sizes / largest[row], 0.0)
        return largest, np.sqrt(np.bincount(row, units**2, minlength=len(per_row)))


def _transposed(
    blocks: sparse.csr_array[Any], party_of: IntArray
) -> tuple[tuple[IntArray | slice, sparse.csr_array[Any]], ...]:
    """Return the transposes of blocks of records, each of as many of every party at most."""
    counts = np.bincount(party_of)
    if int(counts.max()) <= BLOCK_RECORDS:
        return ((slice(None), sparse.csr_array(blocks.T)),)
    block = places_of(party_of, counts) // BLOCK_RECORDS
    some = [np.flatnonzero(block == k) for k in range(int(block.max()) + 1)]
    return tuple((indices, sparse.csr_array(blocks[indices].T)) for indices in some)
