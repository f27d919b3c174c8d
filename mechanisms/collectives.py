"""What crosses parties: public messages, by named collectives, and nothing else.

A solver is written once for all parties. What it does within a party is array arithmetic on that
party's rows; what it does across parties it asks of its curator's `collectives`. In one process,
where all rows are at hand, that is arithmetic too; in a federation every party holds its own rows
alone, and messages travel (`dpledger.federation`). Sums are taken in the order of the parties,
wherever they are taken, so that all give the same bits.

Only what was released, or is a function of it, is an array here: a `Sensitive` is none.

>>> OneProcess().mean(np.array([[1.0, 2.0], [3.0, 6.0]])).tolist()
[2.0, 4.0]
"""

from typing import Protocol

import numpy as np

from .protocols import FloatArray
from .records import IntArray

Ends = tuple[IntArray, IntArray]


class Collectives(Protocol):
    """The collective operations that solvers ask for."""

    def mean(self, messages: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Return the mean over all parties, of shape (..., d), the same at every party.

        Args:
            messages: the own parties' rows, of shape (..., own, d), public.
            weights: public, of shape (P,), of all parties, by which the rows were multiplied: then
                the sum is divided by their sum.
        """
        ...

    def exchange(self, messages: FloatArray, ends: Ends) -> FloatArray:
        """Return the rows of all parties, of shape (..., P, d): the own ones and the neighbours'.

        Rows of parties that are neither are 0: they have not come here.

        Args:
            messages: the own parties' rows, of shape (..., own, d), public.
            ends: the two parties of every edge, by index, as two arrays of shape (E,); the same in
                every exchange of a run.
        """
        ...


class OneProcess:
    """All parties' rows are at hand."""

    def mean(self, messages: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Return the mean over the axis of parties; see `Collectives.mean`."""
        return mean_of(sum_in_order(messages), messages.shape[-2], weights)

    def exchange(self, messages: FloatArray, ends: Ends) -> FloatArray:
        """Return the messages themselves; see `Collectives.exchange`."""
        return messages


class Noted(OneProcess):
    """Those of a plan: notes what is asked for.

    `calls` has the name of each and how many numbers a party sends to it, `ends` the edges that
    messages are exchanged over.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.ends: Ends | None = None

    def mean(self, messages: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Return the mean of what a plan knows; see `Collectives.mean`."""
        self.calls.append(("mean", messages.shape[-1]))
        return super().mean(messages, weights)

    def exchange(self, messages: FloatArray, ends: Ends) -> FloatArray:
        """Return the messages; see `Collectives.exchange`."""
        self.calls.append(("exchange", messages.shape[-1]))
        self.ends = ends
        return super().exchange(messages, ends)


ONE_PROCESS = OneProcess()


def sum_in_order(rows: FloatArray) -> FloatArray:
    """Return ((row 0 + row 1) + row 2) + ... of rows (..., P, d): the same bits everywhere."""
    if rows.shape[-1] == 1:  # NumPy would add up a contiguous axis in pairs
        return np.cumsum(rows, axis=-2)[..., -1, :]
    # as `sum`, which needs thrice the time for few and short rows
    return np.asarray(np.einsum("...pd->...d", rows))


def mean_of(total: FloatArray, parties: int, weights: FloatArray | None) -> FloatArray:
    """Return a sum over parties divided by their number, or by the sum of their weights."""
    return np.asarray(total / (parties if weights is None else float(weights.sum())))
