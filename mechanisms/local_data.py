"""Private data of some of the parties, where these are: the others' records are elsewhere.

The public facts are those of all parties, and so are the sensitivities and what rounding costs: a
party emits the very events that one process with all records would. Its values, and the public
points and moduli that go into them, have its own rows only.

>>> import numpy as np
>>> from dpledger.mechanisms import Adjacency
>>> shape = DataShape(("north", "south"), count=2, features=1, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE)
>>> held = LocalDataset(shape, ("south",), np.array([[0.1], [0.2]]), np.array([1.0, -1.0]))
>>> held.rows, held.own(np.array([5.0, 7.0])).tolist()
(1, [7.0])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .adjacency import Adjacency
from .cluster_records import ClusterRows
from .data_shape import DataShape
from .errors import InvalidParameter
from .layout import gather_records
from .private_data import PrivateDataset
from .protocols import FloatArray
from .record_sets import RecordSets
from .row_blocks import RowBlocks

if TYPE_CHECKING:
    from scipy import sparse

    from .records import IntArray

__all__ = ["LocalDataset"]


class LocalDataset(PrivateDataset):
    """The records of some neighbouring rows' parties of a data set of known public shape.

    Args:
        shape: the public facts about all parties' data.
        parties: whose records these are, a run of `shape.parties` in its order.
        features: dense or sparse array of shape (n, d), `RowBlocks` or `ClusterRows`, one row a
            record.
        labels: array of shape (n,), each in the shape's label domain.
        party_of: array of shape (n,) of indices into `parties`; None for a single party.

    Raises:
        InvalidParameter: as `PrivateDataset`; parties that are no run of the shape's; a party with
            fewer records than its public count, or, where the counts are exact, with others.
    """

    __slots__ = ("_first", "_parties")

    _first: int
    _parties: int

    def __init__(
        self,
        shape: DataShape,
        parties: tuple[str, ...],
        features: FloatArray | sparse.csr_array[Any] | RowBlocks | ClusterRows,
        labels: FloatArray,
        *,
        party_of: IntArray | None = None,
    ) -> None:
        first = shape.parties.index(parties[0]) if parties and parties[0] in shape.parties else 0
        own = slice(first, first + len(parties))
        if not parties or shape.parties[own] != tuple(parties):
            raise InvalidParameter("parties", parties, f"neighbours among {shape.parties}")
        if features.shape[1:] != (shape.features,):
            raise InvalidParameter("features.shape", features.shape, f"(n, {shape.features})")
        records = gather_records(
            features,
            labels,
            float(shape.row_bound),
            party_of,
            len(parties),
            shape.label_domain,
            public_counts=shape.adjacency is not Adjacency.ADD_REMOVE_ONE,
        )
        if len(parties) > 1:
            RecordSets(shape.features).add(parties, records)
        for name, least, found in zip(parties, shape.counts[own], records.counts, strict=True):
            # the number itself may be private: the message names the public bounds
            if not least <= found <= shape.most:
                raise InvalidParameter(
                    "records", f"those of {name!r}", f"{least} to {shape.most} in number"
                )
        self._shape, self._records = shape, records
        self._first, self._parties = first, len(parties)

    @property
    def parties(self) -> tuple[str, ...]:
        """The names of the parties whose records are here."""
        return self.shape.parties[self._first : self._first + self._parties]

    @property
    def rows(self) -> int:
        """The number of parties whose records are here."""
        return self._parties

    def own(self, values: FloatArray) -> FloatArray:
        """Return the entries of these parties, of public values of shape (P, ...)."""
        return values[self._first : self._first + self._parties]
