"""One party's columns of vertically held data: the others' of the same records are elsewhere.

The public facts are those of all parties, and so are the sensitivities and what rounding costs: a
party emits the very events that one process with all columns would. What rests on others' columns
has no value here; whoever holds them releases it.

>>> import numpy as np
>>> from dpledger.mechanisms import Adjacency
>>> shape = VerticalShape(("bank", "shop"), count=2, features=(1, 3), row_bound=1.0,
...                       adjacency=Adjacency.REPLACE_ONE, public_labels=False)
>>> held = LocalColumns(shape, "bank", np.array([[0.1], [0.2]]))
>>> [held.scores(name, np.zeros(d)).planned for name, d in zip(shape.parties, shape.features)]
[False, True]
"""

from typing import Self

import numpy as np

from .ball_ridge import BallRidge
from .clipping import project_to_ball
from .errors import InvalidParameter
from .protocols import FloatArray
from .row_blocks import real_numbers
from .vertical_data import Columns, VerticalDataset, VerticalShape, labels_of

__all__ = ["LocalColumns"]


class LocalColumns(VerticalDataset):
    """The columns of one party, and the labels where it knows them.

    Args:
        shape: the public facts about all parties' data.
        party: whose columns these are.
        block: array of shape (N, d_m); longer rows are cut to the row bound.
        labels: array of shape (N,), each -1 or +1; None for a party that does not know them, which
            nobody is where they are public.

    Raises `InvalidParameter` as `VerticalDataset`, and for shapes other than the public ones.
    """

    __slots__ = ("_labelled", "_own")

    _own: int
    _labelled: bool

    @np.errstate(all="ignore")  # what a caller made an error would tell of the records
    def __init__(
        self,
        shape: VerticalShape,
        party: str,
        block: FloatArray,
        labels: FloatArray | None = None,
    ) -> None:
        self._shape = shape
        self._own, self._labelled = self._index(party), labels is not None
        if labels is None and shape.public_labels:
            raise InvalidParameter("labels", None, "given: they are public")
        rows, due = real_numbers("block", block).copy(), (shape.count, shape.features[self._own])
        if rows.shape != due or not np.all(np.isfinite(rows)):
            raise InvalidParameter("block.shape", rows.shape, f"finite, {due}")
        known = None if labels is None else labels_of(labels)
        if known is not None and len(known) != shape.count:
            raise InvalidParameter("labels.shape", known.shape, f"({shape.count},)")
        bound = float(shape.row_bound)
        own = BallRidge(project_to_ball(rows, bound), bound)
        self._records = Columns(
            tuple(own if m == self._own else None for m in range(len(shape.parties))), known
        )

    @classmethod
    def planned_at(cls, shape: VerticalShape, party: str, *, labelled: bool) -> Self:
        """Return a party's handle without records, for plans: it knows what is released where."""
        handle = cls.planned(shape)
        handle._own, handle._labelled = handle._index(party), labelled
        return handle

    @property
    def parties(self) -> tuple[str, ...]:
        """The party whose columns are here."""
        return (self.shape.parties[self._own],)

    def _is_here(self, index: int | None) -> bool:
        return self._labelled if index is None else index == self._own
