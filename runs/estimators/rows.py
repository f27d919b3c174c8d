"""Rows within a public bound: every step looks at one record only, so it costs no privacy."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_array

from ...mechanisms.clipping import LENGTH_EXPONENT, lengths
from ...mechanisms.errors import DpledgerError, InvalidParameter, require_magnitude
from ...mechanisms.protocols import FloatArray
from ...mechanisms.row_blocks import RowBlocks, real_numbers

T = TypeVar("T")

Rows = FloatArray | sparse.csr_array[Any]

_ROUNDING = 1.0 + 1e-9
"""Rows normalised in floating point may be a little longer; the data's handle cuts them."""


_Y_IS_MISSING = "requires y to be passed, but the target y is None."
"""How scikit-learn's sentence ends that begins with an estimator's name; a cell ends in a quote."""

_OF_SHAPES_AND_NAMES = (
    "Expected a 2-dimensional container",
    "Feature names are only supported",
    "Expected 2D input",
    "Found array with",
    "Found input variables",
    "Input X contains",
    "Input contains",
    "Input sample_weight contains",
    "Input y contains",
    "Input y_pred contains",
    "Input y_true contains",
    "Negative values in data",
    "Only sparse matrices",
    "Sparse data was passed",
    "The feature names",
    "Unknown label type: continuous",
    "Unknown label type: multi",
    "Unknown label type: unknown",
    "X has ",
    "y should be a 1d array",
)
"""How scikit-learn's sentences begin that name shapes, columns, and that some cell is refused."""


def without_cells(name: str, checked: Callable[[], T]) -> T:
    """Return what a check returns; of what it refuses nothing is said but shapes and names.

    What scikit-learn and NumPy say of arrays that they cannot convert shows cells.

    Args:
        name: of what is converted.
        checked: converts it.

    Raises `TypeError` in place of theirs, `InvalidParameter` in place of anything else that is
    neither ours nor known to be of shapes and names.
    """
    try:
        return checked()
    except (DpledgerError, MemoryError, NotFittedError):
        raise
    except Exception as error:
        said = str(error)
        if said.startswith(_OF_SHAPES_AND_NAMES) or said.endswith(_Y_IS_MISSING):
            raise
        is_type = isinstance(error, TypeError)
    # out here, so that the refusal does not carry the error that it stands for
    if is_type:
        cell = "a cell as float()'s argument must be a string of a number or a real number"
        raise TypeError(f"{name}: {cell}, labels all of one type.")
    raise InvalidParameter(
        name,
        "others",
        "real numbers (y: of regressors), X in 2D arrays of shape (n, d). Reshape your data: "
        "array.reshape(-1, 1) is one column, (1, -1) one record. Complex data not supported",
    )


def unit_rows(rows: Rows, *, row_bound: float, clip: bool) -> Rows:
    """Return rows divided by `row_bound`; longer ones are scaled down to norm 1, or refused.

    Args:
        rows: finite, of shape (n, d), dense or sparse.
        row_bound: l2 bound.
        clip: whether to cut; else longer rows raise `InvalidParameter`, which tells about them.
    """
    require_magnitude("row_bound", row_bound, LENGTH_EXPONENT)
    norms = lengths(rows) if isinstance(rows, np.ndarray) else np.asarray(row_norms(rows))
    if not clip and not np.all(norms <= row_bound * _ROUNDING):
        raise InvalidParameter(
            "row norms", "above the bound", f"at most row_bound={row_bound}; clip=True cuts longer"
        )
    factors = 1.0 / np.maximum(norms, row_bound)
    if isinstance(rows, np.ndarray):
        return rows * factors[:, None]
    return sparse.csr_array(sparse.csr_array(rows).multiply(factors[:, None]))


def bounded_rows(
    features: Rows, *, row_bound: float, clip: bool, constant: bool
) -> Rows | RowBlocks:
    """Return rows as `unit_rows` does, with a constant where asked for: dense ones block by block.

    Args:
        features: finite, of shape (n, d), dense or sparse; not written to before blocks are read.
        row_bound, clip: as for `unit_rows`; of dense rows the refusal comes with their block.
        constant: whether to add one, as `with_constant` does.
    """
    require_magnitude("row_bound", row_bound, LENGTH_EXPONENT)

    def bounded(some: Rows) -> Rows:
        rows = unit_rows(some, row_bound=row_bound, clip=clip)
        return with_constant(rows) if constant else rows

    if not isinstance(features, np.ndarray):
        return bounded(features)
    dense, (count, width) = features, features.shape
    return RowBlocks((count, width + constant), lambda some: np.asarray(bounded(dense[some])))


def shares(
    sample_weight: Any, rows: Rows | RowBlocks, *, weight_bound: float, clip: bool
) -> FloatArray:
    """Return weights of shape (n,), divided by `weight_bound`; larger ones are cut, or refused.

    Args:
        sample_weight: one number for all, or of shape (n,); >= 0 and not all 0.
        rows: whose weights they are, of shape (n, d).
        weight_bound: the largest weight there may be.
        clip: whether to cut; else larger ones raise `InvalidParameter`, which tells about them.
    """
    require_magnitude("weight_bound", weight_bound, LENGTH_EXPONENT)
    many = np.full(rows.shape[0], sample_weight) if np.isscalar(sample_weight) else sample_weight
    # numbers at once: of time spans NumPy would make one unit first, the smallest of any record's
    many = real_numbers("sample_weight", many)
    given: Any = without_cells(
        "sample_weight",
        lambda: check_array(
            many, ensure_2d=False, ensure_non_negative=True, input_name="sample_weight"
        ),
    )
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (rows.shape[0],):
        raise InvalidParameter("sample_weight.shape", weights.shape, f"({rows.shape[0]},)")
    if not np.all(np.isfinite(weights)):  # scikit-learn's assume_finite looks away
        raise InvalidParameter("sample_weight", "NaN or infinity", "finite")
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if not clip and not np.all(weights <= weight_bound):
        raise InvalidParameter(
            "sample_weight",
            "above the bound",
            f"at most weight_bound={weight_bound}; clip=True cuts larger",
        )
    return np.minimum(weights, weight_bound) / weight_bound


def with_constant(rows: Rows) -> Rows:
    """Return (row, 1)/sqrt(2) for rows of norm at most 1: the last weight is the intercept's."""
    ones = np.ones((rows.shape[0], 1))
    if isinstance(rows, np.ndarray):
        return np.asarray(np.hstack([rows, ones]) * np.sqrt(0.5))
    joined = sparse.hstack([rows, sparse.csr_array(ones)], format="csr")
    return sparse.csr_array(joined * np.sqrt(0.5))
