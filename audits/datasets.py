"""The auditor's handles: private data made of the raw records by whoever holds them.

They answer as an analyst's do, and besides with neighbours, with what differs between two of them,
and, to `private_value`, with the values themselves: attacks, scores and tests of noise look inside.
Nothing here turns an analyst's handle into one of these: it takes the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..mechanisms.ball_ridge import BallRidge
from ..mechanisms.clipping import project_to_ball
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.inside import records_of
from ..mechanisms.private_data import PrivateDataset, Rows
from ..mechanisms.protocols import FloatArray
from ..mechanisms.records import IntArray, Records
from ..mechanisms.sample import Sample
from ..mechanisms.sensitivity import Sensitivity
from ..mechanisms.subsampling import Draw
from ..mechanisms.vertical_data import VerticalDataset


class AuditDataset(PrivateDataset):
    """Records of P parties as `PrivateDataset`, for audits by whoever holds them."""

    __slots__ = ("_of_records",)  # another layout: no handle of an analyst becomes one of these

    _auditable: ClassVar[bool] = True

    def with_record(
        self, index: int, *, features: FloatArray | None = None, label: float | None = None
    ) -> AuditDataset:
        """Return the neighbour whose record `index` has other features (d,) and/or another label.

        The public facts are unchanged.

        Args:
            index: of the record, in the order of input.
            features: of shape (d,), cut to the public row bound; None to keep them.
            label: in the public label domain; None to keep it.
        """
        if label is not None:
            self.shape.label_domain.require(np.asarray([label], dtype=np.float64))
        return self._with(self._held().with_record(index, self.shape.row_bound, features, label))

    def without_record(self, index: int) -> AuditDataset:
        """Return the neighbour that lacks record `index`; for add-remove-one.

        The public facts, which are bounds on counts then, are unchanged.

        Args:
            index: of the record, in the order of input.
        """
        held = self._held()
        kept = np.ones(int(held.counts.sum()))
        kept[index] = 0.0
        return self._with(held.drawn(kept))

    def differing(self, other: AuditDataset) -> IntArray | None:
        """Return the indices of records that `other` has otherwise, in the order of input.

        None where they cannot be matched: other counts or another layout.
        """
        return records_of(self).differing(records_of(other))

    def differing_party(self, other: AuditDataset) -> str | None:
        """Return the party of all records that differ, None where there is no single one."""
        party = self._differing_row(other)
        return None if party is None else self.shape.parties[party]

    def paired_with(self, neighbour: AuditDataset) -> PairedDataset:
        """Return a handle whose values are those of both data sets: their shape is (2, ..., P, d).

        One pass of an algorithm, its messages drawn from the first values, also computes what the
        neighbour would have said. Parties that hold no differing record would have said the same,
        and are computed once; of means, only the differing records' part is computed anew. There
        are no samples.

        Raises `InvalidParameter` when the public facts differ.
        """
        if neighbour.shape != self.shape:
            raise InvalidParameter("neighbour.shape", neighbour.shape, f"equal to {self.shape}")
        here, there = records_of(self), records_of(neighbour)
        differing, party = here.differing(there), self._differing_row(neighbour)
        if differing is None or party is None:
            return PairedDataset.of(self, _Neighbour(there, slice(None), None))
        moved = (here.taken(differing), there.taken(differing))
        other = _Neighbour(there.of_party(party), slice(party, party + 1), moved)
        return PairedDataset.of(self, other)

    def _differing_row(self, other: AuditDataset) -> int | None:
        """Return the place of the one party whose records differ; None for several, or where none
        differs.
        """
        differing = self.differing(other)
        if differing is None:
            return None
        parties = np.unique(self._held().party_of[differing]).tolist()
        return int(parties[0]) if len(parties) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Neighbour:
    """What a neighbour holds otherwise.

    Args:
        records: of the parties that may differ.
        rows: of those parties among all.
        moved: the differing records of one party, here and there; None where others may differ.
    """

    records: Records
    rows: slice
    moved: tuple[Records, Records] | None


class PairedDataset(AuditDataset):
    """Two neighbours at once, made by `AuditDataset.paired_with`."""

    __slots__ = ("_neighbour",)

    _neighbour: _Neighbour

    @classmethod
    def of(cls, dataset: AuditDataset, neighbour: _Neighbour) -> PairedDataset:
        """Return a data set and what its neighbour holds otherwise."""
        pair = cls.planned(dataset.shape)
        pair._records, pair._neighbour = records_of(dataset), neighbour
        return pair

    def _sampled(self, draw: Draw) -> Sample:
        """Refuse: a hidden sample has no counterpart in the neighbour."""
        raise InvalidParameter("dataset", "two data sets", "one: samples have no neighbours")

    def _computed(
        self, sensitivity: Sensitivity, records: Records, compute: Rows, total: Rows | None
    ) -> FloatArray:
        """Return values of both data sets, shape (2, ..., P, d); the first is what messages are
        drawn from.
        """
        value = super()._computed(sensitivity, records, compute, total)
        other = self._neighbour
        # trials have an axis even where there is one for all, behind that of the data sets
        lead = value.shape[:-2] or (1,)
        pair = np.empty((2, *lead, *value.shape[-2:]))
        pair[:] = value
        if total is None or other.moved is None:
            pair[1, ..., other.rows, :] = compute(other.records, other.rows)
        else:
            before, after = (total(part, other.rows) for part in other.moved)
            pair[1, ..., other.rows, :] += (after - before) / records.counts[other.rows]
        return pair


class VerticalAuditDataset(VerticalDataset):
    """Columns of M parties as `VerticalDataset`, for audits by whoever holds them."""

    __slots__ = ("_of_records",)  # another layout: no handle of an analyst becomes one of these

    _auditable: ClassVar[bool] = True

    def with_record(
        self,
        index: int,
        *,
        features: Sequence[FloatArray] | None = None,
        label: float | None = None,
    ) -> VerticalAuditDataset:
        """Return the neighbour whose record `index` has other features and/or another label.

        `features` has one row of shape (d_m,) for each party; label 0 is the null record's, which
        has no loss.
        """
        shape, held = self.shape, self._held()
        if not 0 <= index < shape.count:
            raise InvalidParameter("index", index, f"in [0, {shape.count - 1}]")
        if label is not None:
            if label not in (-1.0, 0.0, 1.0) or shape.public_labels:
                raise InvalidParameter("label", label, "in {-1, 0, +1}, of private labels")
            labels = held.known_labels().copy()
            labels[index] = label
            labels.setflags(write=False)
            held = replace(held, labels=labels)
        if features is not None:
            changed: list[BallRidge] = []
            for party, row in zip(range(len(held.blocks)), features, strict=True):
                rows = held.of(party).rows.copy()
                rows[index] = project_to_ball(np.asarray(row, dtype=np.float64), shape.row_bound)
                if not np.all(np.isfinite(rows[index])):
                    raise InvalidParameter("features", "NaN or infinity", "with finite entries")
                changed.append(BallRidge(rows, shape.row_bound))
            held = replace(held, blocks=tuple(changed))
        return self._with(held)
