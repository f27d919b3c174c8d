"""Labelled records as plain arrays, with the row-norm bound that their schema made public.

>>> import numpy as np
>>> records = LabelledRecords(
...     features=np.array([[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]]), labels=np.array([1.0, -1.0, 1.0]),
...     feature_names=("x", "y"), row_bound=1.0, description="three points",
...     parties=("all",), party_of=np.array([0, 0, 0]),
... )
>>> train, test = split_records(records, train_records=2, seed=7)
>>> len(train), len(test)
(2, 1)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # whose submodules are loaded at their first use
from numpy.typing import NDArray

from ..mechanisms.errors import InvalidParameter, require_positive
from ..mechanisms.labels import SIGNS, LabelDomain

if TYPE_CHECKING:
    import scipy.sparse

    Features = NDArray[np.float64] | scipy.sparse.csr_array[Any, tuple[int, int]]

_SHORTER = float(np.sqrt(0.5)) * (1.0 - 2.0**-40)
"""sqrt(1/2), rounded down so far that no rounding makes a row longer than its bound."""

_DEAL, _SPLIT = b"party", b"held out"
"""Uses of a record's hash, which must not depend on each other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledRecords:
    """Records that are still private, in plain arrays: wrap them in a private data set before use.

    Args:
        features: array or CSR array of shape (n, d), finite, one record a row.
        labels: array of shape (n,), each in `label_domain`.
        feature_names: d names, public.
        row_bound: public bound on the ℓ2 norm of every row.
        description: what the records are, for reports.
        parties: public names of the parties.
        party_of: array of shape (n,): index into `parties` of the party that holds the record.
        label_domain: which labels there may be, public: ±1, or classes 0, 1, ...
        dropped: how many records of the files were left out for missing values; private.
        contents: array of shape (n, 16), a digest of each record as its file states it, by which
            `dealt_by_content` knows records; None for records that were not read from a file.

    Raises:
        InvalidParameter: shapes disagree, a label is outside its domain, an entry is not finite, or
            a row is longer than the bound.
    """

    features: Features = field(repr=False)
    labels: NDArray[np.float64] = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    row_bound: float
    description: str
    parties: tuple[str, ...]
    party_of: NDArray[np.intp] = field(repr=False)
    label_domain: LabelDomain = SIGNS
    dropped: int = field(default=0, repr=False)
    contents: NDArray[np.uint8] | None = field(default=None, repr=False)

    @np.errstate(all="ignore")  # what a caller made an error would tell of the records
    def __post_init__(self) -> None:
        require_positive("row_bound", self.row_bound)
        expected = (len(self.labels), len(self.feature_names))
        if self.features.shape != expected:
            raise InvalidParameter(
                "features.shape", self.features.shape, f"equal to (labels, names) = {expected}"
            )
        self.label_domain.require(self.labels)
        longest = _longest_row(self.features)
        if not longest <= self.row_bound:  # also refuses NaN
            raise InvalidParameter(
                "longest row", "longer", f"in [0, {self.row_bound}], the row_bound"
            )
        if self.party_of.shape != self.labels.shape:
            raise InvalidParameter("party_of.shape", self.party_of.shape, f"({len(self)},)")
        homes = np.unique(self.party_of).tolist()
        if not set(homes) <= set(range(len(self.parties))):
            shown = homes if self.party_of.dtype.kind in "iu" else str(self.party_of.dtype)
            raise InvalidParameter("party_of", shown, f"in [0, {len(self.parties) - 1}]")

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.intp]) -> LabelledRecords:
        """The records at the positions `rows`, in that order; each stays with its party."""
        return replace(
            self,
            features=self.features[rows],
            labels=self.labels[rows],
            party_of=self.party_of[rows],
            contents=None if self.contents is None else self.contents[rows],
        )

    def divided(self, parties: tuple[str, ...]) -> LabelledRecords:
        """The same records dealt to `parties` in turn, whatever party held them before.

        Who gets a record depends on its position only, which is public. Raises `InvalidParameter`
        unless there is a record for each party.
        """
        if not 1 <= len(parties) <= len(self):
            raise InvalidParameter("parties", len(parties), f"in [1, {len(self)}]")
        return replace(self, parties=parties, party_of=np.arange(len(self)) % len(parties))

    def dealt_by_content(self, parties: tuple[str, ...], *, seed: int) -> LabelledRecords:
        """The same records dealt to `parties` by a keyed hash of each record alone.

        Who gets a record depends on what it says and on the seed, never on the other records: one
        record more or less leaves all others where they are. Equal records go to one party, and
        parties get shares of about the same size only.

        Args:
            parties: public names.
            seed: a whole number >= 0, public: the hash's key.

        Raises `InvalidParameter` for records that were not read from a file.
        """
        places = self.keyed_hashes(seed, _DEAL) % np.uint64(len(parties))
        return replace(self, parties=parties, party_of=places.astype(np.intp))

    def keyed_hashes(self, seed: int, use: bytes) -> NDArray[np.uint64]:
        """Return a number in [0, 2^64) for each record, of its content and a public seed alone.

        Args:
            seed: a whole number >= 0.
            use: what the numbers are for, at most 16 bytes; another use has other numbers.

        Raises `InvalidParameter` for records that were not read from a file.
        """
        if self.contents is None:
            raise InvalidParameter("contents", None, "stated: read the records from a file")
        key = hashlib.sha256(str(seed).encode()).digest()
        found = (
            hashlib.blake2b(row.tobytes(), key=key, person=use, digest_size=8).digest()
            for row in self.contents
        )
        return np.frombuffer(b"".join(found), dtype=">u8").astype(np.uint64)

    @np.errstate(all="ignore")
    def with_constant(self) -> LabelledRecords:
        """The same records as (row, row_bound)/sqrt(2): the last weight is an intercept's.

        Looks at one record at a time, so it costs no privacy. Under zero-out-one
        the null record is 0 in this column too, and adds nothing to a sum: a line of blanks in a
        file, which becomes (0, row_bound)/sqrt(2), is another record and not that one.
        """
        ones = np.full((len(self), 1), self.row_bound)
        joined: Features
        if isinstance(self.features, np.ndarray):
            joined = np.hstack([self.features, ones])
        else:
            columns = [self.features, scipy.sparse.csr_array(ones)]
            joined = scipy.sparse.csr_array(scipy.sparse.hstack(columns, format="csr"))
        return replace(
            self, features=joined * _SHORTER, feature_names=(*self.feature_names, "constant")
        )


def split_records(
    records: LabelledRecords, *, train_records: int, seed: int
) -> tuple[LabelledRecords, LabelledRecords]:
    """Training and test records by a public permutation, which depends on `seed` and n only.

    The permutation sorts raw output of PCG64, a stream that NumPy promises never to change, so a
    seed means the same split on every machine and with every later version.

    Args:
        train_records: number of training records, in [1, n - 1].
        seed: a whole number >= 0.
    """
    n = len(records)
    if not 1 <= train_records < n:
        raise InvalidParameter("train_records", train_records, f"in [1, {n - 1}]")
    order = np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable")
    return records.take(order[:train_records]), records.take(order[train_records:])


def split_by_content(
    records: LabelledRecords, *, held_out: float, seed: int
) -> tuple[LabelledRecords, LabelledRecords]:
    """Training and test records by a keyed hash of each record alone.

    `split_records` deals by position, so that one record more moves others to the other side. Here
    it moves none, which add-remove-one needs; both numbers of records are private then. Equal
    records fall on one side, so that a record of the training set is never tested on its twin.

    Args:
        records: read from files.
        held_out: the share of all possible records that is tested on, in (0, 1), public.
        seed: a whole number >= 0, public: the hash's key.
    """
    if not 0 < held_out < 1:
        raise InvalidParameter("held_out", held_out, "in (0, 1)")
    threshold = np.uint64(int(Fraction(held_out) * 2**64))
    tested = records.keyed_hashes(seed, _SPLIT) < threshold
    return records.take(np.flatnonzero(~tested)), records.take(np.flatnonzero(tested))


def _longest_row(features: Features) -> float:
    squares = (
        features.multiply(features) if scipy.sparse.issparse(features) else features * features
    )
    return float(np.sqrt(np.max(squares.sum(axis=1), initial=0.0)))
