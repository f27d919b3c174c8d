"""How private records are held in memory: dense blocks, or a block-diagonal sparse matrix.

Nothing here knows about privacy; `PrivateDataset` wraps it. A dense block of P parties is padded
with null rows to (P, n, d): they have zero gradient under every loss. Sparse rows (one-hot data)
become one block-diagonal CSR matrix of shape (N, P·d), so that all parties' scores are one product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from .clipping import HEADROOM, cut_to_bound, lengths, project_to_ball
from .errors import InvalidParameter
from .labels import SIGNS, LabelDomain
from .protocols import FloatArray, Loss
from .rounding import BLOCK_RECORDS

__all__ = ["Records", "combined", "gather_records", "real_numbers", "record_slopes"]

IntArray = np.ndarray[Any, np.dtype[np.integer[Any]]]


class Records(Protocol):
    """Records of P parties; `counts` has shape (P,)."""

    @property
    def counts(self) -> IntArray: ...

    @property
    def home(self) -> IntArray:
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

    def placed(self, values: FloatArray) -> FloatArray:
        """Return one value a record, of shape (..., N) in the order of input, in this layout."""
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


def gather_records(
    features: FloatArray | sparse.csr_array[Any],
    labels: FloatArray,
    row_bound: float,
    party_of: IntArray | None,
    parties: int,
    domain: LabelDomain,
) -> Records:
    """Return checked records, rows cut to `row_bound`, in the layout that suits them."""
    if len(features.shape) != 2 or features.shape[0] == 0:
        raise InvalidParameter("features.shape", features.shape, "(n, d) with n >= 1")
    # copies: a later change to the caller's arrays must not slip past the checks
    y = real_numbers("labels", labels).copy()
    if y.shape != (features.shape[0],):
        raise InvalidParameter("labels.shape", y.shape, f"({features.shape[0]},)")
    domain.require(y)
    home = np.zeros(len(y), dtype=np.intp) if party_of is None else np.asarray(party_of)
    if home.shape != y.shape or home.dtype.kind not in "iu":
        raise InvalidParameter("party_of", home.shape, f"whole numbers of shape {y.shape}")
    if home.min() < 0 or home.max() >= parties:
        raise InvalidParameter("party_of", (home.min(), home.max()), f"in [0, {parties - 1}]")
    # narrow integers would wrap around in index arithmetic and in squared norms
    home = home.astype(np.intp)
    home.setflags(write=False)
    counts = np.bincount(home, minlength=parties)
    if sparse.issparse(features):
        real_numbers("features", features.data)
        rows = sparse.csr_array(features).astype(np.float64, copy=True)
        # entries of one place count together, whatever the caller's flags say of them
        rows.has_sorted_indices = rows.has_canonical_format = False
        rows.sum_duplicates()
        return _sparse_records(rows, y, row_bound, home, counts, domain.filler)
    dense = real_numbers("features", features)
    return _dense_records(dense, y, row_bound, home, counts, domain.filler)


def real_numbers(name: str, values: Any) -> FloatArray:
    """Return an array of binary64, or raise `InvalidParameter` for what would lose a part of it."""
    if np.ma.isMaskedArray(values):
        raise InvalidParameter(
            name, "a masked array", "without a mask: fill or drop what is masked"
        )
    if np.iscomplexobj(values):
        raise InvalidParameter(name, "complex numbers", "real: pass both parts as columns")
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Dense:
    """Rows as (P, n, d), labels as (P, n); `slot` maps a record's input index to its place.

    Padded rows are null and carry a label that every loss for these labels allows.
    """

    rows: FloatArray
    labels: FloatArray
    counts: IntArray
    slot: tuple[IntArray, IntArray]
    filler: float

    def __post_init__(self) -> None:
        _protect(self.rows, self.labels)

    @property
    def home(self) -> IntArray:
        return self.slot[0]

    @property
    def norms(self) -> FloatArray:
        return lengths(self.rows)

    def of_party(self, party: int) -> _Dense:
        count, one = int(self.counts[party]), slice(party, party + 1)
        slot = (np.zeros(count, dtype=np.intp), self.slot[1][self.home == party])
        return _Dense(self.rows[one], self.labels[one], self.counts[one], slot, self.filler)

    def taken(self, indices: IntArray) -> _Dense:
        party, place = self.slot[0][indices], self.slot[1][indices]
        slot = (np.zeros(len(indices), dtype=np.intp), np.arange(len(indices)))
        rows, labels = self.rows[party, place], self.labels[party, place]
        return _Dense(rows[None], labels[None], np.array([len(indices)]), slot, self.filler)

    def drawn(self, inside: FloatArray) -> _Dense:
        some = np.flatnonzero(inside)
        home, own = self.slot[0][some], self.slot[1][some]
        counts = np.bincount(home, minlength=len(self.counts))
        return _in_blocks(self.rows[home, own], self.labels[home, own], home, counts, self.filler)

    def differing(self, other: Records) -> IntArray | None:
        if not isinstance(other, _Dense) or not np.array_equal(self.home, other.home):
            return None
        moved = np.any(self.rows[self.slot] != other.rows[other.slot], axis=-1)
        return np.flatnonzero(moved | (self.labels[self.slot] != other.labels[other.slot]))

    def placed(self, values: FloatArray) -> FloatArray:
        blocks = np.zeros((*values.shape[:-1], *self.labels.shape))
        blocks[(..., *self.slot)] = values
        return blocks

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
        sums = _Sum(found.reshape(-1, *found.shape[-2:]).transpose(1, 0, 2), trials.shape[-1])
        for some in _records_at_once(trials.shape[-1]):
            sums.add(trials[..., some] @ self.rows[:, some])
        sums.close()
        return found

    def sum_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        if loss.outputs > 1:
            return combined(self, record_slopes(self, loss, w))
        bound, width = float(loss.derivative_bound), w.shape[-1]
        points = w.reshape(-1, *w.shape[-2:]).swapaxes(0, 1)
        found = np.zeros(w.shape)
        sums = _Sum(found.reshape(-1, *w.shape[-2:]).swapaxes(0, 1), self.rows.shape[1])
        by_margin: Callable[[FloatArray], FloatArray] | None = None
        # rows times other labels could be longer than the bound on rows
        if loss.label_domain == SIGNS:
            # of a `MarginLoss`, whose isinstance takes as long as a block
            by_margin = getattr(loss, "margin_derivative", None)
        for parties, some, trials in _blocks(points.shape[1], self.rows.shape):
            rows, labels = self.rows[parties, some], self.labels[parties, some]
            here = points[parties, trials]
            # rows times labels, where that is less work than scores times labels
            signed = by_margin if here.shape[1] >= width else None
            if signed is not None:
                rows = rows * labels[..., None]
            scores = np.empty((*here.shape[:-1], rows.shape[1]))
            parts = _parts(scores.shape, width)
            for part in parts:
                if w.ndim == 2:
                    scores[:, 0] = _one_by_one(rows, here[:, 0])
                else:
                    np.matmul(here[:, part], rows.swapaxes(1, 2), out=scores[:, part])
            if signed is not None:
                slopes = signed(scores)
            else:
                slopes = loss.derivative(scores, labels[:, None])
            slopes = cut_to_bound(slopes, bound)
            for part in parts:
                # the last part may end past the block: not past its trials, into the next block
                begin = trials.start + part.start
                place = (parties, slice(begin, begin + slopes[:, part].shape[1]))
                for few in _records_at_once(rows.shape[1]):
                    sums.add(slopes[:, part, few] @ rows[:, few], place)
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
    ) -> _Dense:
        place = (_slot(self.slot[0], index), _slot(self.slot[1], index))
        rows, labels = self.rows, self.labels
        if features is not None:
            rows = rows.copy()
            rows[place] = project_to_ball(_checked_row(features, rows.shape[-1]), row_bound)
        if label is not None:
            labels = labels.copy()
            labels[place] = label
        return replace(self, rows=rows, labels=labels)


def _protect(*arrays: FloatArray) -> None:
    """Make arrays read-only: a loss of one's own is handed views of them."""
    for array in arrays:
        array.setflags(write=False)


class _Sum:
    """A sum of blocks' sums: plain where there are few blocks, else compensated.

    The rounding errors of the additions are added up beside the sum (Ogita, Rump, Oishi 2005).
    """

    def __init__(self, into: FloatArray, records: int) -> None:
        self._sum = into
        self._lost = np.zeros_like(into) if records > _PLAIN_BLOCKS * BLOCK_RECORDS else None

    def add(self, block: FloatArray, place: Any = ...) -> None:
        """Add one block's sum, at one place of the whole."""
        if self._lost is None:
            self._sum[place] += block
            return
        before = self._sum[place]
        after = before + block
        counted = after - before
        self._lost[place] += (before - (after - counted)) + (block - counted)
        self._sum[place] = after

    def close(self) -> None:
        """Add what was lost on the way."""
        if self._lost is not None:
            self._sum += self._lost


_PLAIN_BLOCKS = 32


def _records_at_once(records: int) -> list[slice]:
    return [slice(k, k + BLOCK_RECORDS) for k in range(0, records, BLOCK_RECORDS)]


_BLOCK_SCORES, _BLOCK_NUMBERS, _PART_PRODUCTS = 2**17, 2**17, 2**18
"""Scores of a block stay in the caches; so do its rows until they are read the second time. Up to
so many products BLAS does on one thread, which is faster here and gives the same numbers on any
machine's number of threads."""


def _blocks(trials: int, shape: tuple[int, ...]) -> Iterator[tuple[slice, slice, slice]]:
    """Yield blocks of parties, records and trials for rows of shape (P, n, d)."""
    parties, records, width = shape
    some = records if records * width <= 2 * _BLOCK_NUMBERS else max(1, _BLOCK_NUMBERS // width)
    pairs = max(1, _BLOCK_SCORES // some)
    at_once = _evenly(trials, pairs)
    several = max(1, min(pairs // at_once, 2 * _BLOCK_NUMBERS // (some * width)))
    for party, trial in product(range(0, parties, several), range(0, trials, at_once)):
        for record in range(0, records, some):
            yield (
                slice(party, party + several),
                slice(record, record + some),
                slice(trial, trial + at_once),
            )


def _parts(shape: tuple[int, ...], width: int) -> list[slice]:
    """Return parts of a block's trials for products with rows of that width."""
    _, trials, records = shape
    some = _evenly(trials, max(1, _PART_PRODUCTS // (records * width)))
    return [slice(trial, trial + some) for trial in range(0, trials, some)]


def _evenly(count: int, most: int) -> int:
    """Return the size of parts of at most `most`, as few and as equal as can be."""
    return -(-count // -(-count // most)) if count else 1


def _dense_records(
    features: FloatArray,
    labels: FloatArray,
    row_bound: float,
    home: IntArray,
    counts: IntArray,
    filler: float,
) -> _Dense:
    if not np.all(np.isfinite(features)):
        raise InvalidParameter("features", "NaN or infinity", "with finite entries")
    return _in_blocks(project_to_ball(features, row_bound), labels, home, counts, filler)


def _in_blocks(
    features: FloatArray, labels: FloatArray, home: IntArray, counts: IntArray, filler: float
) -> _Dense:
    place = _places(home, counts)
    rows = np.zeros((len(counts), max(1, int(counts.max())), features.shape[1]))
    padded = np.full(rows.shape[:2], filler)
    rows[home, place] = features
    padded[home, place] = labels
    return _Dense(rows, padded, counts, (home, place), filler)


def _one_by_one(rows: FloatArray, w: FloatArray) -> FloatArray:
    """Return <row, w> of shape (P, n) for rows (P, n, d) and w (P, d), every row by the same sums.

    BLAS adds up rows at the edge of a block in another order. Under add-remove-one a record moves
    others to other places, and no score may depend on that: a slope that jumps there (a hinge's)
    would move by more than any bound on rounding says.
    """
    return np.asarray(np.einsum("pnd,pd->pn", rows, np.ascontiguousarray(w)))


@dataclass(frozen=True, slots=True)
class _Sparse:
    """All parties' rows in one block-diagonal CSR matrix (N, P·d), and its transpose in CSR.

    `transposed` has one part for each block of records of every party, and says which these are.
    `filler` is a label that every loss for these labels allows.
    """

    blocks: sparse.csr_array[Any]
    transposed: tuple[tuple[IntArray | slice, sparse.csr_array[Any]], ...]
    labels: FloatArray
    counts: IntArray
    home: IntArray
    filler: float

    def __post_init__(self) -> None:
        _protect(self.blocks.data, self.labels)

    @property
    def norms(self) -> FloatArray:
        largest, units = _row_units(self.blocks)
        return largest * units

    def of_party(self, party: int) -> _Sparse:
        return self.taken(np.flatnonzero(self.home == party))

    def taken(self, indices: IntArray) -> _Sparse:
        party, width = int(self.home[indices[0]]), self.blocks.shape[1] // len(self.counts)
        columns = slice(party * width, (party + 1) * width)
        blocks = sparse.csr_array(self.blocks[indices][:, columns])
        home, counts = np.zeros(len(indices), dtype=np.intp), np.array([len(indices)])
        labels = self.labels[indices]
        return _Sparse(blocks, _transposed(blocks, home), labels, counts, home, self.filler)

    def drawn(self, inside: FloatArray) -> _Sparse:
        some = np.flatnonzero(inside)
        counts = np.bincount(self.home[some], minlength=len(self.counts))
        if len(some):
            blocks = sparse.csr_array(self.blocks[some])
            labels, home = self.labels[some], self.home[some]
        else:  # a null record, so that no loss is asked about none
            blocks = sparse.csr_array((1, self.blocks.shape[1]))
            labels, home = np.array([self.filler]), np.zeros(1, dtype=np.intp)
        return _Sparse(blocks, _transposed(blocks, home), labels, counts, home, self.filler)

    def differing(self, other: Records) -> IntArray | None:
        if not isinstance(other, _Sparse) or not np.array_equal(self.home, other.home):
            return None
        gap: Any = self.blocks - other.blocks
        moved = np.asarray(abs(gap).sum(axis=1)).ravel() > 0
        return np.flatnonzero(moved | (self.labels != other.labels))

    def placed(self, values: FloatArray) -> FloatArray:
        return values

    def scores(self, w: FloatArray) -> FloatArray:
        flat = w.reshape(-1, w.shape[-2] * w.shape[-1])
        # a product with one vector needs half the time of one with a matrix of one column
        scores = self.blocks @ flat[0] if len(flat) == 1 else np.asarray(self.blocks @ flat.T).T
        return scores.reshape(*w.shape[:-2], len(self.labels))

    def combined(self, slopes: FloatArray) -> FloatArray:
        flat = slopes.reshape(-1, slopes.shape[-1])
        found = np.zeros((len(flat), self.blocks.shape[1]))
        sums = _Sum(found.T, int(self.counts.max()))
        for some, part in self.transposed:
            # a product with one vector needs half the time of one with a matrix of one column
            sums.add((part @ flat[0, some])[:, None] if len(flat) == 1 else part @ flat[:, some].T)
        sums.close()
        return found.reshape(*slopes.shape[:-1], len(self.counts), -1)

    def sum_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        if loss.outputs > 1:
            return combined(self, record_slopes(self, loss, w))
        return self.combined(_slopes_at(self, loss, w))

    def mean_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        means = self.sum_gradient(loss, w)
        means /= self.counts[:, None]
        return means

    def with_record(
        self, index: int, row_bound: float, features: FloatArray | None, label: float | None
    ) -> _Sparse:
        labels = self.labels
        _slot(self.home, index)
        if label is not None:
            labels = labels.copy()
            labels[index] = label
        if features is None:
            return replace(self, labels=labels)
        width = self.blocks.shape[1] // len(self.counts)
        row = project_to_ball(_checked_row(features, width), row_bound)
        changed = self.blocks.tolil()
        party = int(self.home[index])
        changed[index, :] = 0.0
        changed[index, party * width : (party + 1) * width] = row
        blocks = sparse.csr_array(changed)
        return replace(
            self, blocks=blocks, transposed=_transposed(blocks, self.home), labels=labels
        )


def _sparse_records(
    features: sparse.csr_array[Any],
    labels: FloatArray,
    row_bound: float,
    home: IntArray,
    counts: IntArray,
    filler: float,
) -> _Sparse:
    if not np.all(np.isfinite(features.data)):
        raise InvalidParameter("features", "NaN or infinity", "with finite entries")
    records, width = features.shape
    largest, units = _row_units(features)
    limit, per_row = row_bound * HEADROOM, np.diff(features.indptr)
    with np.errstate(all="ignore"):
        long = largest * units > limit
        shrunk = (features.data / np.repeat(largest, per_row)) * np.repeat(limit / units, per_row)
    data = np.where(np.repeat(long, per_row), shrunk, features.data)
    columns = features.indices + np.repeat(home * width, per_row)
    # half the index traffic of the default: products here are bound by memory bandwidth
    narrow = np.int32 if max(width * len(counts), len(data)) < 2**31 else np.int64
    blocks = sparse.csr_array(
        (data, columns.astype(narrow), features.indptr.astype(narrow)),
        shape=(records, width * len(counts)),
    )
    return _Sparse(blocks, _transposed(blocks, home), labels, counts, home, filler)


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
    blocks: sparse.csr_array[Any], home: IntArray
) -> tuple[tuple[IntArray | slice, sparse.csr_array[Any]], ...]:
    """Return the transposes of blocks of records, each of as many of every party at most."""
    counts = np.bincount(home)
    if int(counts.max()) <= BLOCK_RECORDS:
        return ((slice(None), sparse.csr_array(blocks.T)),)
    block = _places(home, counts) // BLOCK_RECORDS
    some = [np.flatnonzero(block == k) for k in range(int(block.max()) + 1)]
    return tuple((indices, sparse.csr_array(blocks[indices].T)) for indices in some)


def _places(home: IntArray, counts: IntArray) -> IntArray:
    """Return each record's place among its party's, in the order of input."""
    order = np.argsort(home, kind="stable")
    place = np.empty(len(home), dtype=np.intp)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place[order] = np.arange(len(home)) - np.repeat(starts, counts)
    return place


def record_slopes(records: Records, loss: Loss, w: FloatArray) -> FloatArray:
    """Return each record's ∂l/∂score at w of shape (..., P, d·K), in the layout, with K last."""
    width, outputs = w.shape[-1] // loss.outputs, loss.outputs
    # the K columns of the matrices w are so many more trials for the layout
    columns = np.moveaxis(w.reshape(*w.shape[:-1], width, outputs), -1, 0)
    if outputs == 1:
        return _slopes(loss, records.scores(columns[0]), records.labels)[..., None]
    # at one point a column at a time, as `scores` promises more of one than of many
    scores = (
        np.stack([records.scores(one) for one in columns])
        if w.ndim == 2
        else records.scores(columns)
    )
    return _slopes(loss, np.moveaxis(scores, 0, -1), records.labels)


def combined(records: Records, slopes: FloatArray) -> FloatArray:
    """Return each party's sum of row ⊗ slope, of shape (..., P, d·K), K slopes a record, last."""
    sums = np.moveaxis(records.combined(np.moveaxis(slopes, -1, 0)), 0, -1)
    return sums.reshape(*sums.shape[:-2], -1)


def _slopes_at(records: Records, loss: Loss, w: FloatArray) -> FloatArray:
    """Return each record's ∂l/∂score at w of shape (..., P, d), of a loss with one output."""
    return _slopes(loss, records.scores(w), records.labels)


def _slopes(loss: Loss, scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Return ∂l/∂score per record, cut to the loss's own bound: the sensitivity rests on it."""
    return cut_to_bound(loss.derivative(scores, labels), float(loss.derivative_bound), loss.outputs)


def _slot(places: IntArray, index: int) -> int:
    if not 0 <= index < len(places):
        raise InvalidParameter("index", index, f"in [0, {len(places) - 1}]")
    return int(places[index])


def _checked_row(features: FloatArray, width: int) -> FloatArray:
    row = np.asarray(features, dtype=np.float64)
    if row.shape != (width,) or not np.all(np.isfinite(row)):
        raise InvalidParameter("features", row.shape, f"a finite row of shape ({width},)")
    return row
