"""Rows within a public bound: every step looks at one record only, so it costs no privacy."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ...mechanisms.errors import InvalidParameter, require_positive
from ...mechanisms.protocols import FloatArray

Rows = FloatArray | sparse.csr_array[Any]

_ROUNDING = 1.0 + 1e-9
"""Rows normalised in floating point may be a little longer; the data's handle cuts them."""


def unit_rows(rows: Rows, *, row_bound: float, clip: bool) -> Rows:
    """Return rows divided by `row_bound`; longer ones are scaled down to norm 1, or refused.

    Args:
        rows: finite, of shape (n, d), dense or sparse.
        row_bound: l2 bound.
        clip: whether to cut; else longer rows raise `InvalidParameter`, which tells about them.
    """
    require_positive("row_bound", row_bound)
    norms = np.asarray(row_norms(rows), dtype=np.float64)
    if not clip and not np.all(norms <= row_bound * _ROUNDING):
        raise InvalidParameter(
            "row norms", "above the bound", f"at most row_bound={row_bound}; clip=True cuts longer"
        )
    factors = 1.0 / np.maximum(norms, row_bound)
    if isinstance(rows, np.ndarray):
        return rows * factors[:, None]
    return sparse.csr_array(sparse.csr_array(rows).multiply(factors[:, None]))


def with_constant(rows: Rows) -> Rows:
    """Return (row, 1)/sqrt(2) for rows of norm at most 1: the last weight is the intercept's."""
    ones = np.ones((rows.shape[0], 1))
    if isinstance(rows, np.ndarray):
        return np.asarray(np.hstack([rows, ones]) * np.sqrt(0.5))
    joined = sparse.hstack([rows, sparse.csr_array(ones)], format="csr")
    return sparse.csr_array(joined * np.sqrt(0.5))
