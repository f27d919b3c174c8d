"""Parties that hold the very same records, which parallel composition would price too low.

A record pays for its own party's releases only, which rests on records belonging to one party each.
Where the same rows stand under two names, as a file that is read twice or ten copies of it do, one
person pays once for what is released of him twice or ten times. So a handle with records of several
parties compares them when the holder of the data makes it, and refuses parties with equal sets of
records, whatever their order. It happens at loading, before anything is planned or paid: the holder
alone sees it, and no release depends on it.

A set is known by a digest under a random key of the comparison, which is forgotten with it: nothing
of it is written anywhere. Over the runs of a ledger nothing needs to be recognised: what records
pay there adds up over runs, whatever their parties are called (`accounting.ledger.state`).

Equal sets only. Single records that two parties share tell nothing, as different people have equal
rows wherever columns are categorical; and parties which remove their duplicates share most of them.
Even for whole sets chance is possible where few different rows are, so that sets with fewer than K
are not compared. If two parties' n records are drawn independently, by whatever laws, their sets
are equal with K or more different rows with probability at most exp(-K)·√(2πn)·exp(1/(12n)): one
party's counts (n_i) have probability at most (n!/nⁿ)·Π n_iⁿⁱ/n_i!, with m! >= e·(m/e)ᵐ for each of
K factors, and Stirling's bound for n!. For K = 32 and n = 10^6 that is 3.2e-11. What is not
recognised (a party whose records are a part of another's, or elsewhere) stays an assumption, which
certificates and reports name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InvalidParameter
from .layout import gather_records

if TYPE_CHECKING:
    from scipy import sparse

    from .data_shape import DataShape
    from .protocols import FloatArray
    from .records import IntArray, Records
    from .row_blocks import RowBlocks

    Features = FloatArray | sparse.csr_array[Any] | RowBlocks

__all__ = ["RecordSets"]

_DISTINCT = 32
"""K above: 1.3e-14·√(2πn) for two parties, and 80,000 times that for four hundred."""


class RecordSets:
    """The parties whose records were seen, by digests of their sets.

    Args:
        features: d, of all the records that will be compared.
    """

    def __init__(self, features: int) -> None:
        self._key = os.urandom(32)
        # equal rows have equal scores at a point, wherever they stand; others do by chance alone
        entropy = np.random.SeedSequence(int.from_bytes(os.urandom(16), "little"))
        self._point = np.random.default_rng(entropy).standard_normal(features)
        self._names: dict[bytes, str] = {}

    def add(self, parties: Sequence[str], records: Records) -> None:
        """Take note of parties' records; raise `InvalidParameter` where a set was seen before.

        Args:
            parties: names, of shape (P,).
            records: theirs.
        """
        counts = records.counts
        point = np.broadcast_to(self._point, (len(counts), len(self._point)))
        scores = records.in_order(records.scores(np.array(point)))
        labels = records.in_order(records.labels)
        order = np.lexsort((labels, scores, records.party_of))
        pairs = np.stack([scores[order], labels[order]], axis=-1) + 0.0  # -0.0 is 0.0
        for name, own in zip(parties, np.split(pairs, np.cumsum(counts)[:-1]), strict=True):
            if 1 + np.count_nonzero(np.any(own[1:] != own[:-1], axis=-1)) < _DISTINCT:
                continue
            digest = hashlib.blake2b(own.tobytes(), key=self._key).digest()
            other = self._names.setdefault(digest, name)
            if other != name:
                raise InvalidParameter(
                    "parties",
                    (other, name),
                    "holders of different records: these two hold the same, each of which would "
                    "pay for one party's releases only; give them one name, or leave one out",
                )

    def add_rows(
        self,
        parties: Sequence[str],
        features: Features,
        labels: FloatArray,
        shape: DataShape,
        *,
        party_of: IntArray | None = None,
    ) -> None:
        """Take note of parties' records, as they were loaded; raises as `add`.

        No handle is taken: what equals a handle's records is not an analyst's to ask.

        Args:
            parties: names, of shape (P,).
            features: their rows, of shape (n, d).
            labels: of shape (n,).
            shape: of all parties' data, whose row bound rows are cut to.
            party_of: of shape (n,), whose each record is; None where there is one party.
        """
        bound, domain = float(shape.row_bound), shape.label_domain
        self.add(parties, gather_records(features, labels, bound, party_of, len(parties), domain))
