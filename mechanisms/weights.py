"""Public weights, one a party, that rows of a private block are multiplied by."""

from fractions import Fraction

import numpy as np

from . import rounding as rounded
from .errors import InvalidParameter
from .protocols import FloatArray
from .rounding import Rounding
from .sensitivity import Sensitivity, concatenated_disjoint, scaled


def weighted(own: tuple[Sensitivity, ...], weights: FloatArray) -> Sensitivity:
    """Return the sensitivity of a block whose rows, one a party, are multiplied by weights."""
    if weights.shape != (len(own),):
        raise InvalidParameter("weights.shape", weights.shape, f"({len(own)},)")
    rows = [s if w == 1.0 else scaled(s, w) for s, w in zip(own, weights.tolist(), strict=True)]
    # parties with equal bounds are one leaf; pairs keep the derivation shallow
    parts = list({row.squared: row for row in rows}.values())
    while len(parts) > 1:
        pairs = [concatenated_disjoint(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def weighted_rounding(rounding: Rounding, weights: FloatArray | None, width: int) -> Rounding:
    """Return the bounds of rows times weights, or of the rows themselves."""
    if weights is None:
        return rounding
    return rounded.scaled(rounding, Fraction(float(np.abs(weights).max())), width=width)


def times(weights: FloatArray | None, rows: slice, found: FloatArray) -> FloatArray:
    """Return each party's row times its weight; the row of one without weight is exactly 0."""
    if weights is None:
        return found
    own = weights[rows, None]
    return np.where(own == 0.0, 0.0, found * own)
