"""Public weights, one a party, that rows of a private block are multiplied by.

Parties of unequal size are weighted by their public numbers of records: a row's sensitivity then is
its party's own, times its weight. Called by `PrivateDataset` for means and minimisers.
"""

from fractions import Fraction

import numpy as np

from . import rounding as rounded
from .errors import InvalidParameter
from .protocols import FloatArray
from .rounding import Rounding
from .sensitivity import Sensitivity, concatenated_disjoint, scaled


def weighted(own: tuple[Sensitivity, ...], weights: FloatArray) -> Sensitivity:
    """Return the sensitivity of a block whose rows, one a party, are multiplied by weights.

    A record belongs to one party, so the block's bound is the largest of the rows'.

    Args:
        own: each party's own sensitivity.
        weights: array of shape (P,), public.

    Raises `InvalidParameter` for another number of weights.
    """
    if weights.shape != (len(own),):
        raise InvalidParameter("weights.shape", weights.shape, f"({len(own)},)")
    rows = [s if w == 1.0 else scaled(s, w) for s, w in zip(own, weights.tolist(), strict=True)]
    # parties with equal bounds are one leaf; pairs keep the derivation shallow
    parts = list({row.squared: row for row in rows}.values())
    while len(parts) > 1:
        pairs = [concatenated_disjoint(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def weighted_rounding(rounding: Rounding, weights: FloatArray | None) -> Rounding:
    """Return the bounds of rows times weights, or of the rows themselves.

    Args:
        rounding: of the rows.
        weights: array of shape (P,), or None for rows as they are.
    """
    if weights is None:
        return rounding
    largest = Fraction(float(np.abs(weights).max()))
    return rounded.multiplied(rounding, largest, width=rounding.width)


def times(weights: FloatArray | None, rows: slice, found: FloatArray) -> FloatArray:
    """Return each party's row times its weight; the row of one without weight is exactly 0.

    Args:
        weights: of the parties whose records are here, or None.
        rows: which of these parties the rows are of.
        found: array of shape (..., rows, width).
    """
    if weights is None:
        return found
    own = weights[rows, None]
    return np.where(own == 0.0, 0.0, found * own)
