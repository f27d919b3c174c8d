"""Neighbouring data sets for tightness tests, where the true mu of a transcript is known.

A release of a mean gradient under replace-one is priced at twice the gradient bound. How much of
that price a pair of neighbours really pays is its *share*: where the gradients' gap does not depend
on the point, the transcript of Gaussian steps is exactly (share · planned mu)-GDP for this pair.

Logistic loss and a flipped label leave a gap of exactly one row, half of the price for the longest
row there may be; a linear loss pays all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

import numpy as np
from scipy import sparse

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import InvalidParameter, require_positive_int
from ..mechanisms.inside import private_value
from ..mechanisms.protocols import FloatArray, Loss
from ..solvers.losses import LinearLoss
from .datasets import AuditDataset


@dataclass(frozen=True, slots=True)
class NeighbourPair:
    """Two neighbouring data sets.

    `share` is the pair's mu as a part of the planned one, for releases that are public affine maps
    of mean (or sum) gradients plus Gaussian noise; None when the gap depends on the point.
    """

    dataset: AuditDataset
    neighbour: AuditDataset
    share: float | None
    description: str


def longest_row(features: FloatArray | sparse.csr_array[Any]) -> int:
    """Return the index of the longest row of an array of shape (n, d)."""
    squares = features**2 if isinstance(features, np.ndarray) else features.multiply(features)
    return int(np.asarray(squares.sum(axis=1)).ravel().argmax())


def random_record(records: int, *, seed: int) -> int:
    """Return the index of one of `records` records, each as likely."""
    require_positive_int("records", records)
    return int(np.random.default_rng(seed).integers(records))


def flip_label(dataset: AuditDataset, *, index: int, loss: Loss) -> NeighbourPair:
    """Return the pair whose record `index` has another label; replace-one only.

    Logistic loss: the gap is l'(s, 1) - l'(s, -1) = -1 times the row at every score, so the share
    is ‖row‖/(2·row_bound) in a party of the smallest size. Multinomial loss: the gap is
    row ⊗ (e_y - e_y') at all scores, of norm sqrt(2)·‖row‖, and the share is the same.

    Raises `InvalidParameter` for another relation or a record without features.

    Args:
        dataset: under replace-one.
        index: of the record, from 0.
        loss: with which the solver trains; it fixes what the other label is worth.

    Raises:
        InvalidParameter: another relation, or no record of this index.
    """
    _require(dataset, Adjacency.REPLACE_ONE)
    origin = np.zeros(dataset.shape.parameters(loss))
    for label in dataset.shape.label_domain.extremes:
        neighbour = dataset.with_record(index, label=label)
        if np.any(_gap(dataset, neighbour, loss, origin)):
            share = _share(dataset, neighbour, loss)
            return NeighbourPair(dataset, neighbour, share, f"label of record {index} flipped")
    raise InvalidParameter("index", index, "a record whose label the loss can see")


def opposite_gradients(dataset: AuditDataset, *, index: int, loss: Loss) -> NeighbourPair:
    """Return the worst pair: record `index` at full length along the first axis, opposite labels.

    With a linear loss the two gradients are ±G·u and the pair attains the full planned mu.

    Args:
        dataset: under replace-one.
        index: of the record, from 0.
        loss: with which the solver trains.

    Raises:
        InvalidParameter: another relation, or no record of this index.
    """
    _require(dataset, Adjacency.REPLACE_ONE)
    row = np.zeros(dataset.shape.features)
    row[0] = dataset.shape.row_bound
    other, own = dataset.shape.label_domain.extremes
    first = dataset.with_record(index, features=row, label=own)
    second = dataset.with_record(index, features=row, label=other)
    share = _share(first, second, loss)
    words = f"record {index} at full length, label {own:g} or {other:g}"
    return NeighbourPair(first, second, share, words)


def turned_record(
    parties: Sequence[str], *, each: int, row_bound: float, index: int = 0
) -> NeighbourPair:
    """Return the worst pair for a linear loss in two dimensions: all records are null but one.

    Args:
        parties: who holds the records, in order.
        each: records of a party.
        row_bound: length of the row of record `index`, which points either way.
    """
    count = each * len(parties)
    dataset = AuditDataset(
        np.zeros((count, 2)),
        np.ones(count),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=row_bound,
        party_of=np.repeat(np.arange(len(parties)), each),
        parties=tuple(parties),
    )
    return opposite_gradients(dataset, index=index, loss=LinearLoss())


def zero_out(dataset: AuditDataset, *, index: int, loss: Loss) -> NeighbourPair:
    """Return the pair whose record `index` becomes a null record; zero-out-one only.

    Args:
        dataset: under zero-out-one.
        index: of the record, from 0.
        loss: with which the solver trains.

    Raises:
        InvalidParameter: another relation, or no record of this index.
    """
    _require(dataset, Adjacency.ZERO_OUT_ONE)
    neighbour = dataset.with_record(index, features=np.zeros(dataset.shape.features))
    share = _share(dataset, neighbour, loss)
    return NeighbourPair(dataset, neighbour, share, f"record {index} made null")


def removed(dataset: AuditDataset, *, index: int) -> NeighbourPair:
    """Return the pair whose second data set lacks record `index`; add-remove-one only.

    Its share is not known: a mean is divided by a number that the record changes.

    Args:
        dataset: under add-remove-one.
        index: of the record, from 0.

    Raises:
        InvalidParameter: another relation.
    """
    _require(dataset, Adjacency.ADD_REMOVE_ONE)
    return NeighbourPair(dataset, dataset.without_record(index), None, f"record {index} removed")


def _require(dataset: AuditDataset, adjacency: Adjacency) -> None:
    if dataset.shape.adjacency is not adjacency:
        raise InvalidParameter("adjacency", dataset.shape.adjacency, f"equal to {adjacency}")


def _gap(
    dataset: AuditDataset, neighbour: AuditDataset, loss: Loss, point: FloatArray
) -> FloatArray:
    """Return the difference of the mean gradients at a point (d·K,), of shape (P, d·K)."""
    first, second = (
        private_value(side.mean_gradient(loss, point)) for side in (dataset, neighbour)
    )
    if first is None or second is None:
        raise InvalidParameter("dataset", "planned", "with records")
    return second - first


def _share(dataset: AuditDataset, neighbour: AuditDataset, loss: Loss) -> float | None:
    """Return ‖gap‖ / sensitivity, or None when the gap at two points differs.

    Nor is there a share where parties have noise for their own numbers of records: the sensitivity
    of a whole block is that of its smallest party, and the pair's party may be another.
    """
    if len(set(dataset.shape.counts)) > 1:
        return None
    origin = np.zeros(dataset.shape.parameters(loss))
    # large enough to bend any loss that bends, small enough not to saturate it
    elsewhere = np.linspace(-2.0, 3.0, origin.size) / dataset.shape.row_bound
    first, second = (
        float(np.linalg.norm(_gap(dataset, neighbour, loss, point)))
        for point in (origin, elsewhere)
    )
    if not isclose(first, second, rel_tol=1e-9):
        return None
    return first / dataset.mean_gradient(loss, origin).sensitivity.value
