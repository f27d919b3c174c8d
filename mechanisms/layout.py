"""Private records from arrays: checked, copied, cut to the norm bound, in the layout that suits."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .cluster_records import ClusterRecords, ClusterRows
from .dense_records import dense_records
from .errors import InvalidParameter
from .labels import LabelDomain
from .protocols import FloatArray
from .records import IntArray, Records
from .row_blocks import RowBlocks, real_numbers
from .storage import copied

if TYPE_CHECKING:
    from scipy import sparse

_KINDS = ("csr", "csc", "bsr", "coo")
"""Sparse arrays whose indices can be looked at before anything is done with them."""

_MOST_PADDING = 4
"""Times the records: sparse rows take three times the memory and the time of dense ones."""


@np.errstate(all="ignore")  # what a caller made an error would tell of the records
def gather_records(
    features: FloatArray | sparse.csr_array[Any] | RowBlocks | ClusterRows,
    labels: FloatArray,
    row_bound: float,
    party_of: IntArray | None,
    parties: int,
    domain: LabelDomain,
    *,
    public_counts: bool = False,
) -> Records:
    """Return checked records, rows cut to `row_bound`, in the layout that suits them.

    A block of dense rows is as long as the largest party. Where parties are so unequal that most of
    it would be padding, dense rows are kept as sparse ones, which cost what the records cost. That
    is a choice by the parties' numbers of records, and the layouts round differently: it is made
    with `public_counts` only.

    Args:
        features: dense or CSR array of shape (n, d), or blocks of rows, copied; or rows of one
            party on a cluster.
        labels: array of shape (n,); copied.
        row_bound: l2 bound; longer rows are scaled down.
        party_of: array of shape (n,) of indices below `parties`; None for a single party.
        parties: their number P.
        domain: of the labels.
        public_counts: whether the parties' numbers of records are public.

    Raises `InvalidParameter` for shapes that do not fit, entries that are not finite, labels
    outside the domain, and indices of no party.
    """
    import scipy  # whose submodules are loaded at their first use

    if len(features.shape) != 2 or features.shape[0] == 0:
        raise InvalidParameter("features.shape", features.shape, "(n, d) with n >= 1")
    scratch = features.scratch if isinstance(features, RowBlocks) else None
    # copies: a later change to the caller's arrays must not slip past the checks
    y = copied(real_numbers("labels", labels), scratch)
    if y.shape != (features.shape[0],):
        raise InvalidParameter("labels.shape", y.shape, f"({features.shape[0]},)")
    domain.require(y)
    party = np.zeros(len(y), np.uint8) if party_of is None else np.asarray(party_of)
    if party.shape != y.shape or party.dtype.kind not in "iu":
        raise InvalidParameter("party_of", party.shape, f"whole numbers of shape {y.shape}")
    if party.min() < 0 or party.max() >= parties:
        raise InvalidParameter("party_of", (party.min(), party.max()), f"in [0, {parties - 1}]")
    # narrow integers would wrap around in index arithmetic and in squared norms
    party = copied(party, scratch, np.intp)
    party.setflags(write=False)
    counts = np.bincount(party, minlength=parties)
    if isinstance(features, ClusterRows):
        if parties != 1:
            raise InvalidParameter("parties", parties, "1, whose cluster it is")
        # what it does not answer it refuses by name
        return cast(Records, ClusterRecords(features, y, row_bound))
    if scipy.sparse.issparse(features):
        from .sparse_records import sparse_records

        require_places(features)
        held = copy(features)
        held.data = real_numbers("features", features.data)
        rows = scipy.sparse.csr_array(held, copy=True)
        # entries of one place count together, whatever the caller's flags say of them
        rows.has_sorted_indices = rows.has_canonical_format = False
        rows.sum_duplicates()
        return sparse_records(rows, y, row_bound, party, counts, domain.filler)
    dense = features
    if not isinstance(dense, RowBlocks):
        array = real_numbers("features", dense)
        dense = RowBlocks(array.shape, array.__getitem__)
    if scratch is None and public_counts and parties * int(counts.max()) > _MOST_PADDING * len(y):
        from .sparse_records import sparse_records

        rows = scipy.sparse.csr_array(dense[:])
        return sparse_records(rows, y, row_bound, party, counts, domain.filler)
    return dense_records(dense, y, row_bound, party, counts, domain.filler)


def require_places(features: Any) -> None:
    """Refuse a sparse array that has entries beyond its shape, or of a kind that cannot be asked.

    SciPy's conversions and products would read and write beyond its arrays elsewhere, and a column
    beyond the last one is the first of another party's. Of lists of rows, of keys and of diagonals
    a conversion may give one record's numbers to others, or another's memory.

    Raises `InvalidParameter` for such.
    """
    import scipy

    if not scipy.sparse.issparse(features):
        return
    given: Any = features  # the stubs know a sparse array without a shape
    inside = given.format in _KINDS
    if not inside:
        need = f"one of {', '.join(_KINDS)}: pass features.tocsr()"
        raise InvalidParameter("features", f"a sparse array of kind {given.format}", need)
    try:
        getattr(given, "check_format", lambda: None)()
        if given.format == "coo":
            inside = all(
                len(places) == len(given.data)
                and np.all((np.asarray(places) >= 0) & (np.asarray(places) < size))
                for places, size in zip(given.coords, given.shape, strict=True)
            )
    except (TypeError, ValueError):
        inside = False
    if not inside:
        need = f"with indices of an array of shape {given.shape}"
        raise InvalidParameter("features", "a sparse array", need)
