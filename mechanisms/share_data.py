"""One party's part of sums over all parties' records: what only the sum of may be seen.

Where sums over parties alone are seen, all records stand behind one handle as far as a solver can
tell: its shape is `summed_shape`, and a mean over its n records is what the parties' sums, each
divided by the public n, add up to. `ShareOfSum` holds one party's records and answers with that
party's part: sums over its own records, divided by the number of everybody's. Of neighbours one
party's records differ, and so one part, by as much as the mean does: sensitivities and bounds on
rounding are those of the one handle.

>>> import numpy as np
>>> from dpledger.mechanisms import Adjacency
>>> shape = DataShape(("a", "b"), count=4, features=2, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE, party_counts=(4, 6))
>>> summed_shape(shape).count, summed_shape(shape).parties
(10, ('sum of 2 parties (simulation)',))
>>> ShareOfSum(shape, "b", np.zeros((6, 2)), np.ones(6))
<ShareOfSum: DataShape(parties=('sum of 2 parties (simulation)',), count=10, ...)>
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from .adjacency import Adjacency
from .data_shape import DataShape
from .errors import InvalidParameter
from .events import Event, GaussianStep
from .layout import gather_records
from .private_data import PrivateDataset
from .protocols import FloatArray
from .subsampling import Draw

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["OnlySums", "ShareOfSum", "require_sum", "summed_name", "summed_shape"]


def summed_shape(shape: DataShape) -> DataShape:
    """Return the public facts of all parties' records as one party's, whose sums a release shows.

    A mean over n records of that one party is the sum that the protocol would show, divided by the
    public n.
    """
    return replace(
        shape,
        parties=(summed_name(len(shape.parties)),),
        count=sum(shape.counts),
        party_counts=(),
        n_max=shape.n_max * len(shape.parties),
    )


SIMULATION = "(simulation)"
"""In the name of the one party whose messages are sums, while no protocol hides their parts."""


def summed_name(parties: int) -> str:
    """Return the name of the one party whose messages are sums over so many."""
    return f"sum of {parties} parties {SIMULATION}"


def require_sum(event: Event) -> None:
    """Raise `InvalidParameter` unless what is released has Gaussian noise.

    That alone is a sum of the parties' shares: no law here says what Laplace noise, or an answer
    of each record, is a sum of.
    """
    mechanism = event.mechanism
    if not isinstance(mechanism, GaussianStep) or not mechanism.noise_std > 0:
        name = type(mechanism).__name__
        raise InvalidParameter("mechanism", name, "Gaussian noise: only sums are seen")


class OnlySums(PrivateDataset):
    """Records of which sums and means over all are seen, and no minimiser and no sample."""

    __slots__ = ()

    @classmethod
    def planned(cls, shape: DataShape) -> Self:
        """Return a handle without records, which plans as every party does.

        Args:
            shape: of all parties' data as one party's, as `summed_shape` returns it.
        """
        return super().planned(_summable(shape))

    def strongly_convex_argmin(self, *_: object, **__: object) -> NoReturn:
        """Raise `InvalidParameter`: a minimiser is no sum over parties."""
        raise InvalidParameter("release", "a minimiser", "a sum over records: only sums are seen")

    def answers(self) -> NoReturn:
        """Raise `InvalidParameter`: records that answer for themselves are no sum."""
        raise InvalidParameter("release", "each record's answer", "a sum: only sums are seen")

    def _sampled(self, draw: Draw) -> NoReturn:
        """Raise `InvalidParameter`: amplification by sampling has no rule for sums over parties."""
        raise InvalidParameter("sample", draw.scheme, "None: only sums over all records are seen")


class ShareOfSum(OnlySums):
    """The records of one party, whose answers are its part of sums and means over all parties.

    Args:
        shape: the public facts about all parties' data; `counts` are exact.
        party: whose records these are, one of the shape's.
        features: dense or sparse array of shape (n, d), one row a record.
        labels: array of shape (n,), each in the shape's label domain.

    Raises:
        InvalidParameter: as `PrivateDataset`; a party that is none of the shape's; another number
            of records than its public one; add-remove-one, under which a mean is divided by a
            private number that no party knows.
    """

    __slots__ = ("_party",)

    _party: str

    def __init__(
        self,
        shape: DataShape,
        party: str,
        features: FloatArray | sparse.csr_array[Any],
        labels: FloatArray,
    ) -> None:
        if party not in shape.parties:
            raise InvalidParameter("party", party, f"one of {shape.parties}")
        if features.shape[1:] != (shape.features,):
            raise InvalidParameter("features.shape", features.shape, f"(n, {shape.features})")
        self._party = party
        self._shape = _summable(summed_shape(shape))
        own = shape.counts[shape.parties.index(party)]
        if features.shape[0] != own:  # public under these relations
            raise InvalidParameter("records", f"those of {party!r}", f"{own} in number, as stated")
        records = gather_records(
            features, labels, float(shape.row_bound), None, 1, shape.label_domain
        )
        # what sums are divided by: everybody's number
        self._records = replace(records, counts=np.array([self._shape.count]))  # type: ignore[type-var]

    @property
    def parties(self) -> tuple[str, ...]:
        """The name of the party whose records are here."""
        return (self._party,)


def _summable(shape: DataShape) -> DataShape:
    """Return a shape whose means are divided by a public number, or raise `InvalidParameter`."""
    if shape.adjacency is Adjacency.ADD_REMOVE_ONE:
        raise InvalidParameter(
            "adjacency", shape.adjacency, "replace-one or zero-out-one: sums need a public divisor"
        )
    return shape
