"""Mean gradients of centred, scaled rows: a public centre is taken off, and what is left is cut.

Rows that are not centred share one long direction, their mean, and so does every gradient. With a
public centre near the mean, rows are shorter: cut to a smaller public radius, their gradients have
a smaller sensitivity in every direction. Columns may be scaled before the cut, by public numbers.
All this looks at one record only. Centre and scale may be functions of released messages; the
radius is fixed beforehand.

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

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from . import rounding as rounded
from .clipping import SQUARE_EXPONENT, inner_radius, largest_entry
from .errors import InvalidParameter, require_magnitude
from .inside import Inside
from .loss_trial import stated
from .private_data import PrivateDataset
from .protocols import FloatArray, Loss
from .records import Records, combined, record_slopes
from .refusals import refuse_copies, require_itself
from .sensitive import Sensitive
from .sensitivity import Sensitivity, mean_of_bounded
from .stated_loss import assuming
from .weights import times, weighted, weighted_rounding

__all__ = ["LARGEST_SCALE", "CentredRows"]

LARGEST_SCALE = 64.0
"""Of radius/row_bound: a column is not scaled up by more, so that rounding has a bound that a plan
knows."""

_LEAST_RADIUS = 2.0**-6
"""Of the row bound."""

_SIZES = 2.0**16
"""Squared lengths of centred rows are found from numbers a up to 64 and m up to 128 radii long, in
3d + 10 roundings of at most (64 + 128)² squared radii each: half of that, (3d + 10)·18432 u, is by
how much a length that is near the radius may be off relatively."""


def _fixed(array: FloatArray) -> FloatArray:
    """Return a read-only copy."""
    copied = np.array(array, dtype=np.float64)
    copied.setflags(write=False)
    return copied


@refuse_copies
class CentredRows(Inside):
    """A data set's rows less a public centre, scaled, cut to a radius; answers as `Sensitive`.

    Args:
        dataset: the records; their row bound is within 2^-230 and 2^230.
        centre: public, of shape (..., d), no longer than twice the row bound.
        radius: l2 bound on a centred row, at least a 64th of the row bound.
        scale: public factors of the columns, of shape (..., d), in (0, 64·radius/row_bound].
    """

    __slots__ = ("_centre", "_dataset", "_radius", "_scale", "_views")

    def __init__(
        self,
        dataset: PrivateDataset,
        centre: FloatArray,
        *,
        radius: float,
        scale: FloatArray | None = None,
    ) -> None:
        require_itself("dataset", dataset, PrivateDataset)
        # copies, and a plain number: what is checked and priced now is what is used later
        radius, centre = float(radius), _fixed(centre)
        scale = None if scale is None else _fixed(scale)
        bound, features = dataset.shape.row_bound, dataset.shape.features
        require_magnitude("row_bound", bound, SQUARE_EXPONENT)
        require_magnitude("radius", radius, SQUARE_EXPONENT)
        if radius < bound * _LEAST_RADIUS:
            raise InvalidParameter("radius", radius, f"at least row_bound/64={bound / 64}")
        if centre.shape[-1:] != (features,):
            raise InvalidParameter("centre.shape", centre.shape, f"(..., {features})")
        with np.errstate(all="ignore"):
            longest = largest_entry(np.linalg.norm(centre, axis=-1))
        if not longest <= 2.0 * bound:
            raise InvalidParameter("|centre|", longest, f"at most 2·row_bound={2.0 * bound}")
        if scale is not None:
            if scale.shape[-1:] != (features,):
                raise InvalidParameter("scale.shape", scale.shape, f"(..., {features})")
            least, most = float(scale.min()), float(scale.max())
            if not 0.0 < least <= most < np.inf or (
                Fraction(most) * Fraction(bound) > Fraction(LARGEST_SCALE) * Fraction(radius)
            ):
                allowed = f"in (0, 64·radius/row_bound={LARGEST_SCALE * radius / bound}]"
                raise InvalidParameter("scale", (least, most), allowed)
        self._dataset, self._radius = dataset, radius
        self._centre, self._scale = centre, scale
        self._views: dict[tuple[int, int | None], tuple[Records, _Centred]] = {}

    def gradient_bound(self, loss: Loss) -> Fraction:
        """Return G, exactly: no centred record's gradient of `loss` is longer in l2.

        A gradient is a slope times a row, so G is the loss's slope bound times the radius.

        Raises `InvalidParameter` for a loss of other labels than the data's.
        """
        loss = stated(loss)
        self._dataset.shape.gradient_bound(loss)  # refuses a loss for other labels
        return loss.derivative_bound * Fraction(float(self._radius))

    def mean_sensitivities(self, loss: Loss) -> tuple[Sensitivity, ...]:
        """Return each party's own sensitivity of `mean_gradient`."""
        loss, shape = stated(loss), self._dataset.shape
        bound = self.gradient_bound(loss)
        derived = {
            n: assuming(loss, mean_of_bounded(bound, n, shape.adjacency)) for n in set(shape.counts)
        }
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
        loss, shape = stated(loss), self._dataset.shape
        weights = None if weights is None else _fixed(weights)
        width = shape.parameters(loss)
        point = shape.point("w", w, width, rows=self._dataset.rows)
        if weights is None:
            sensitivity = mean_of_bounded(self.gradient_bound(loss), shape.count, shape.adjacency)
            sensitivity = assuming(loss, sensitivity)
        else:
            sensitivity = weighted(self.mean_sensitivities(loss), weights)

        own = None if weights is None else self._dataset.own(weights)

        def mean(records: Records, rows: slice) -> FloatArray:
            # scores and sums of products are all that gradients ask of records
            view = cast("Records", self._view(records, rows))
            found = combined(view, record_slopes(view, loss, point[..., rows, :]))
            found /= records.counts[:, None]
            return times(own, rows, found)

        # a record's slope, cut and shrunk as computed, is what the exact mean is about
        slope, length = loss.derivative_bound, self._length()
        shift = rounded.multiplied(
            rounded.mean(slope, shape.most, loss.outputs), 2 * length, width=width
        )
        rounding = rounded.joined(rounded.mean(slope * length, shape.most, width), shift)
        return self._sensitive(sensitivity, rounding, weights, width, mean)

    def mean_squares(self, *, weights: FloatArray | None = None) -> Sensitive:
        """Return each party's mean of squared entries of centred rows, of shape (P, d).

        A row's squares are a vector no longer than the radius squared. Scales of columns are found
        by it.

        Args:
            weights: public, of shape (P,): each party's mean is multiplied by its own.
        """
        shape, bound = self._dataset.shape, Fraction(float(self._radius)) ** 2
        weights = None if weights is None else _fixed(weights)
        derived = {n: mean_of_bounded(bound, n, shape.adjacency) for n in set(shape.counts)}
        if weights is None:
            sensitivity = derived[shape.count]
        else:
            sensitivity = weighted(tuple(derived[n] for n in shape.counts), weights)

        own = None if weights is None else self._dataset.own(weights)

        def mean(records: Records, rows: slice) -> FloatArray:
            found = self._view(records, rows).squares() / records.counts[:, None]
            return times(own, rows, found)

        # (a - m)² = a² - 2 a m + m², term by term
        length, width = self._length(), shape.features
        one = rounded.mean(Fraction(1), shape.most, 1)
        linear = rounded.mean(length, shape.most, width)
        linear = rounded.multiplied(linear, 4 * length, width=width)
        constant = rounded.multiplied(one, 4 * length**2, width=width)
        quadratic = rounded.mean(length**2, shape.most, width)
        rounding = rounded.joined(rounded.joined(quadratic, linear), constant)
        return self._sensitive(sensitivity, rounding, weights, width, mean)

    def _length(self) -> Fraction:
        """Return a bound on a scaled row as it was, whatever the scale will be."""
        radius = Fraction(float(self._radius))
        if self._scale is None:  # never below what a centred row may be: the operations recorded
            return max(Fraction(float(self._dataset.shape.row_bound)), radius)
        return Fraction(LARGEST_SCALE) * radius

    def _sensitive(
        self,
        sensitivity: Sensitivity,
        rounding: rounded.Rounding,
        weights: FloatArray | None,
        width: int,
        mean: Callable[[Records, slice], FloatArray],
    ) -> Sensitive:
        """Return the answer, its bounds those of rows times weights."""
        bounds = weighted_rounding(rounding, weights)
        return self._answer_of(self._dataset, sensitivity, bounds, width, mean)

    def _view(self, records: Records, rows: slice) -> _Centred:
        """Return the records as centred, which is found once for all points."""
        key = (id(records), rows.start)
        if key not in self._views:
            shape = self._dataset.shape
            own, width = self._dataset.rows, shape.features
            centre = shape.point("centre", self._centre[..., None, :], width, rows=own)
            scale = np.ones(shape.features) if self._scale is None else self._scale
            spread = shape.point("scale", scale[..., None, :], width, rows=own)
            view = _centred(records, centre[..., rows, :], spread[..., rows, :], self._radius)
            self._views[key] = (records, view)
        return self._views[key][1]


@refuse_copies
@dataclass(frozen=True, slots=True, repr=False)
class _Centred:
    """Records whose row a is shrink·scale·(a - centre): what scores and sums of products need.

    Args:
        records: as held.
        centre: of shape (..., P, d).
        scale: of shape (..., P, d).
        shrink: a factor a record, 0 for null records, of shape (..., *layout).
    """

    records: Records
    centre: FloatArray
    scale: FloatArray
    shrink: FloatArray

    @property
    def labels(self) -> FloatArray:
        return self.records.labels

    def scores(self, w: FloatArray) -> FloatArray:
        """Return <row, w> for each record, w of shape (..., P, d), in the layout."""
        scaled = self.scale * w
        shift = np.einsum("...pd,...pd->...p", self.centre, scaled)
        found = self.records.scores(scaled) - self.records.spread(shift)
        found *= self.shrink
        return found

    def combined(self, slopes: FloatArray) -> FloatArray:
        """Return each party's sum of slope times row, of shape (..., P, d)."""
        shrunk = slopes * self.shrink
        sums = self.records.combined(shrunk)
        sums = sums - self.records.gathered(shrunk)[..., None] * self.centre
        return np.asarray(sums * self.scale)

    def squares(self) -> FloatArray:
        """Return each party's sum of squared entries, of shape (..., P, d)."""
        weight = self.shrink**2
        found = self.records.squared().combined(weight)
        found = found - 2.0 * self.centre * self.records.combined(weight)
        found = found + self.centre**2 * self.records.gathered(weight)[..., None]
        return np.asarray(self.scale**2 * found)


def _centred(records: Records, centre: FloatArray, scale: FloatArray, radius: float) -> _Centred:
    """Return records as seen from a centre, each shrunk to the radius where it is longer.

    The squared length of scale·(a - m) is <s², a²> - 2 <s² m, a> + <s² m, m>: three products that a
    layout has, so that no centred row is ever written out.

    Args:
        records: as held.
        centre: m, of shape (..., P, d).
        scale: s, of shape (..., P, d).
        radius: l2 bound.
    """
    squared = scale**2
    own = records.squared().scores(np.broadcast_to(squared, centre.shape))
    inner = records.scores(squared * centre)
    size = np.einsum("...pd,...pd->...p", squared * centre, centre)
    lengths = np.sqrt(np.maximum(own - 2.0 * inner + records.spread(size), 0.0))
    limit = inner_radius(radius, centre.shape[-1], sizes=_SIZES)
    shrink = (records.norms > 0.0) * (limit / np.maximum(lengths, limit))
    return _Centred(records, centre, scale, shrink)
