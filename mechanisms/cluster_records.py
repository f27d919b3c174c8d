"""Records of one party on its own Dask cluster, where its gradients are summed.

For an owner whose records outgrow a machine: partitions stay with the workers, and what comes back
of a partition are the sums of its blocks of records, which are added up here. Blocks are those of
records in memory, and are added in their order, so that machines of one kind give the same bits;
the price of rounding covers any. The cluster is inside the owner's wall: whoever reaches its
scheduler reaches the records.

Gradients are all that is summed there; whatever else is asked for is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

import numpy as np

from .blocking import BlockSum, block_sums, rows_at_once
from .dense_records import checked_rows, gradient_blocks
from .errors import DpledgerError, InvalidParameter
from .protocols import FloatArray, Loss
from .records import IntArray
from .refusals import Closed, refuse_copies
from .row_blocks import real_numbers

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClusterRows(Closed):
    """Rows of one party on a cluster.

    Args:
        rows: dask array of shape (n, d), one row a record.
        client: the cluster's `distributed.Client`.
    """

    rows: Any
    client: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""
        return tuple(self.rows.shape)


@refuse_copies
class ClusterRecords:
    """Checked records of one party in partitions on a cluster; sums of their gradients.

    Args:
        given: the rows.
        labels: array of shape (n,), checked.
        row_bound: l2 bound; longer rows are scaled down.

    Raises `InvalidParameter` for rows with entries that are not finite.
    """

    __slots__ = ("_client", "_parts", "_shape")

    def __init__(self, given: ClusterRows, labels: FloatArray, row_bound: float) -> None:
        self._client, self._shape = given.client, given.shape
        count, width = self._shape
        block = rows_at_once(count, width)
        length = block * max(1, given.rows.chunksize[0] // block)
        chunks = given.rows.rechunk((length, width)).to_delayed().ravel()
        self._parts = [
            self._client.submit(
                _checked,
                self._client.compute(chunk),
                labels[k : k + length],
                width,
                row_bound,
                pure=False,
            )
            for k, chunk in zip(range(0, count, length), chunks, strict=True)
        ]
        # raises what a worker found wrong, before anything is asked
        sizes = [self._client.submit(len, part, pure=False) for part in self._parts]
        _computed(partial(self._client.gather, sizes))

    @property
    def counts(self) -> IntArray:
        """The number of records, of shape (1,)."""
        return np.array([self._shape[0]])

    def sum_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        """Return the sum of gradients at w of shape (..., 1, d), in the same shape.

        Raises `InvalidParameter` for a loss of several outputs.
        """
        if loss.outputs > 1:
            raise InvalidParameter("loss.outputs", loss.outputs, "1, of records on a cluster")
        count, width = self._shape
        found = np.zeros(w.shape)
        into = found.reshape(-1, *w.shape[-2:]).swapaxes(0, 1)
        sums = BlockSum(into, count, block_sums(count, width))
        waiting = [
            self._client.submit(_gradients, part, loss, w, count, pure=False)
            for part in self._parts
        ]
        for part in waiting:
            # a lost worker's rows are computed once more
            for block, place in _computed(part.result):
                sums.add(block, place)
        sums.close()
        return found

    def mean_gradient(self, loss: Loss, w: FloatArray) -> FloatArray:
        """Return the mean of gradients at w, as `sum_gradient`."""
        return self.sum_gradient(loss, w) / self._shape[0]

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what is no sum of gradients."""
        if name.startswith("__"):
            raise AttributeError(name)
        need = "in memory, or on a disk, for anything but sums and means of gradients"
        raise InvalidParameter("records", "on a cluster", need)


def _computed(ask: Callable[[], T]) -> T:
    """Return what workers computed; of what their graph ends in nothing is said: it shows cells.

    Raises `InvalidParameter` in its place; what is ours or the cluster's own stays as it is.
    """
    try:
        return ask()
    except DpledgerError:
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "distributed":
            raise
    # out here, so that the refusal does not carry the error that it stands for
    raise InvalidParameter("features", "an array that ends in an error", "rows of real numbers")


def _checked(
    given: Any, labels: FloatArray, width: int, row_bound: float
) -> tuple[FloatArray, FloatArray]:
    """Return a partition, on its worker; raise `InvalidParameter` unless each label has a row."""
    rows, due = real_numbers("features", given), (len(labels), width)
    if rows.shape != due:
        raise InvalidParameter("features.shape", rows.shape, f"{due}, as the array's chunks say")
    return checked_rows(rows, row_bound)[None], labels[None]


def _gradients(
    part: tuple[FloatArray, FloatArray], loss: Loss, w: FloatArray, whole: int
) -> list[tuple[FloatArray, tuple[slice, slice]]]:
    """Return the sums over a partition's blocks, on its worker."""
    with np.errstate(all="ignore"):
        return list(gradient_blocks(*part, loss, w, whole=whole))
