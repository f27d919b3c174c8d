"""Mean gradients of centred rows: a public centre is taken off every row, and what is left is cut.

Rows that are not centred share one long direction, their mean, and so does every gradient. With a
public centre near the mean, rows are shorter: cut to a smaller public radius, their gradients have
a smaller sensitivity in every direction. Both steps look at one record only. The centre may be a
released message; the radius is fixed beforehand.

A row of zeros is nobody's: it is a null record, as everywhere, and adds nothing.

>>> import numpy as np
>>> from dpledger.mechanisms import Adjacency, DataShape
>>> from dpledger.solvers import Logistic
>>> shape = DataShape(("a",), count=10, features=2, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE)
>>> rows = CentredRows(PrivateDataset.planned(shape), np.array([0.8, 0.0]), radius=0.5)
>>> rows.mean_gradient(Logistic(), np.zeros(2)).sensitivity.value
0.1
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from . import rounding as rounded
from .clipping import HEADROOM, largest_entry
from .errors import InvalidParameter, require_positive
from .private_data import PrivateDataset, _times, _weighted, _weighted_rounding
from .protocols import FloatArray, Loss
from .records import Records, combined, record_slopes
from .sensitive import Sensitive
from .sensitivity import Sensitivity, mean_of_bounded

__all__ = ["CentredRows"]

_LEAST_RADIUS = 2.0**-6
"""Of the row bound. Lengths of centred rows are roots of differences of squares, whose rounding is
below a 1e-8th of such a radius: far inside the headroom of cut rows."""


class CentredRows:
    """A data set's rows less a public centre, cut to a radius; answers with `Sensitive` values.

    Args:
        dataset: the records.
        centre: public, of shape (..., d), no longer than twice the row bound.
        radius: l2 bound on a centred row, at least a 64th of the row bound.
    """

    __slots__ = ("_centre", "_dataset", "_radius")

    def __init__(self, dataset: PrivateDataset, centre: FloatArray, *, radius: float) -> None:
        bound, features = dataset.shape.row_bound, dataset.shape.features
        require_positive("radius", radius)
        if radius < bound * _LEAST_RADIUS:
            raise InvalidParameter("radius", radius, f"at least row_bound/64={bound / 64}")
        if centre.shape[-1:] != (features,):
            raise InvalidParameter("centre.shape", centre.shape, f"(..., {features})")
        longest = largest_entry(np.linalg.norm(centre, axis=-1))
        if not longest <= 2.0 * bound:
            raise InvalidParameter("|centre|", longest, f"at most 2·row_bound={2.0 * bound}")
        self._dataset, self._centre, self._radius = dataset, centre, radius

    def gradient_bound(self, loss: Loss) -> Fraction:
        """Return G: no centred record's gradient of `loss` is longer."""
        self._dataset.shape.gradient_bound(loss)  # refuses a loss for other labels
        return Fraction(loss.derivative_bound) * Fraction(float(self._radius))

    def mean_sensitivities(self, loss: Loss) -> tuple[Sensitivity, ...]:
        """Return each party's own sensitivity of `mean_gradient`."""
        shape, bound = self._dataset.shape, self.gradient_bound(loss)
        derived = {n: mean_of_bounded(bound, n, shape.adjacency) for n in set(shape.counts)}
        return tuple(derived[n] for n in shape.counts)

    def mean_gradient(
        self, loss: Loss, w: FloatArray, *, weights: FloatArray | None = None
    ) -> Sensitive:
        """Return each party's mean gradient over centred rows at the public point w.

        Args:
            loss: with K outputs.
            w: of shape (..., P, d·K) or (d·K,), as of `PrivateDataset.mean_gradient`.
            weights: public, of shape (P,): each party's mean is multiplied by its own.
        """
        shape = self._dataset.shape
        width = shape.parameters(loss)
        point = shape.point("w", w, width)
        centre = shape.point("centre", self._centre[..., None, :], shape.features)
        if weights is None:
            sensitivity = mean_of_bounded(self.gradient_bound(loss), shape.count, shape.adjacency)
        else:
            sensitivity = _weighted(self.mean_sensitivities(loss), weights)

        def mean(records: Records, rows: slice) -> FloatArray:
            # scores and sums of products are all that gradients ask of records
            view = cast("Records", _centred(records, centre[..., rows, :], self._radius))
            found = combined(view, record_slopes(view, loss, point[..., rows, :]))
            found /= records.counts[:, None]
            return _times(weights, rows, found)

        rounding = _weighted_rounding(self._rounding(loss, width), weights, width)
        return self._dataset._sensitive(sensitivity, rounding, width, mean)

    def _rounding(self, loss: Loss, width: int) -> rounded.Rounding:
        """Return the bounds of a mean of rows times slopes, less that of slopes times the centre.

        A record's slope, cut and shrunk as computed, is what the exact mean is about.
        """
        slope, length = (
            Fraction(loss.derivative_bound),
            Fraction(float(self._dataset.shape.row_bound)),
        )
        slopes = rounded.mean(slope, loss.outputs)
        shift = rounded.scaled(slopes, 2 * length, width=width)
        return rounded.joined(rounded.mean(slope * length, width), shift)


@dataclass(frozen=True, slots=True)
class _Centred:
    """Records whose row a is shrink·(a - centre): what scores and sums of products need.

    Args:
        records: as held.
        centre: of shape (..., P, d).
        shrink: a factor a record, 0 for null records, of shape (..., *layout).
    """

    records: Records
    centre: FloatArray
    shrink: FloatArray

    @property
    def labels(self) -> FloatArray:
        return self.records.labels

    def scores(self, w: FloatArray) -> FloatArray:
        """Return <row, w> for each record, w of shape (..., P, d), in the layout."""
        shift = np.einsum("...pd,...pd->...p", self.centre, w)
        found = self.records.scores(w) - _spread(self.records, shift)
        found *= self.shrink
        return found

    def combined(self, slopes: FloatArray) -> FloatArray:
        """Return each party's sum of slope times row, of shape (..., P, d)."""
        shrunk = slopes * self.shrink
        sums = self.records.combined(shrunk)
        sums -= _gathered(self.records, shrunk)[..., None] * self.centre
        return sums


def _centred(records: Records, centre: FloatArray, radius: float) -> _Centred:
    own, size = records.norms**2, np.einsum("...pd,...pd->...p", centre, centre)
    inner = records.scores(centre)
    squares = own - 2.0 * inner + _spread(records, size)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    limit = radius * HEADROOM
    return _Centred(records, centre, (own > 0.0) * (limit / np.maximum(lengths, limit)))


def _spread(records: Records, values: FloatArray) -> FloatArray:
    """Return a value a party (..., P) as one a record, in the layout."""
    dense = records.labels.ndim == 2
    return values[..., None] if dense else values[..., records.home]


def _gathered(records: Records, values: FloatArray) -> FloatArray:
    """Return the sum of values in the layout over each party's records, of shape (..., P)."""
    # sums along a contiguous axis are pairwise: no number enters more additions than a block's
    if records.labels.ndim == 2:
        return np.asarray(np.ascontiguousarray(values).sum(axis=-1))
    order = np.argsort(records.home, kind="stable")
    ends = np.cumsum(records.counts)[:-1]
    parts = np.split(np.take(values, order, axis=-1), ends, axis=-1)
    return np.stack([np.ascontiguousarray(part).sum(axis=-1) for part in parts], axis=-1)
