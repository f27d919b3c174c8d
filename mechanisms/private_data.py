"""Private data: records behind a handle that answers with `Sensitive` values only.

The public facts (`DataShape`) suffice to plan; the records themselves are needed to run. Rows are
cut to the public norm bound, so every bound on a gradient is enforced, not assumed.

>>> shape = DataShape(parties=("a", "b"), count=4, features=2, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE)
>>> PrivateDataset.planned(shape)
<PrivateDataset: DataShape(parties=('a', 'b'), count=4, features=2, row_bound=1.0, ...)>
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from . import rounding as rounded
from .adjacency import Adjacency
from .argmin import Bounds, Iteration, minimise, planned_iteration
from .clipping import LENGTH_EXPONENT, cut_bound, cut_slopes, largest_entry
from .cluster_records import ClusterRows
from .data_shape import EVERYBODY, DataShape
from .errors import (
    InvalidParameter,
    named,
    require_magnitude,
    require_positive,
)
from .exact_choice import MOST_CANDIDATES
from .handle import PrivateHandle
from .labels import SIGNS, ClassLabels, LabelDomain, SignLabels
from .layout import gather_records
from .loss_trial import require_convex, stated
from .protocols import FloatArray, Loss
from .record_sets import RecordSets
from .records import IntArray, Records, combined, record_slopes
from .row_blocks import RowBlocks
from .sample import Sample
from .sensitive import Sensitive
from .sensitivity import (
    Norm,
    Sensitivity,
    float_up,
    histogram,
    linearly_mapped,
    mean_of_bounded,
    mean_of_nonnegative,
    strongly_convex_argmin,
    sum_of_bounded,
)
from .stated_loss import assuming
from .subsampling import Draw
from .weights import times, weighted, weighted_rounding

if TYPE_CHECKING:
    from scipy import sparse

_FREE = 2**29
"""Sensitivities that a minimiser may be long: its product with a weight, which errs by 2^-53 of its
length, then costs at most 2^-23 of the sensitivity, and its lattice is in reach of noise of 2^-13
sensitivities."""

Rows = Callable[[Records, slice], FloatArray]
"""Computes a row a party from records and the slice of rows that are theirs."""


class PrivateDataset(PrivateHandle[DataShape, Records]):
    """Records of P parties; every function of them is a `Sensitive` of shape (..., P, d).

    Args:
        features: dense or sparse array of shape (n, d), `RowBlocks` or `ClusterRows`, one row a
            record.
        labels: array of shape (n,), each in `label_domain`.
        adjacency: the neighbouring relation.
        row_bound: l2 bound, within 2^-900 and 2^900; longer rows are scaled down to it.
        party_of: array of shape (n,) of indices into `parties`, or None for a single party.
        parties: names of the parties; the record-to-party map must be public and fixed. Without
            them all records pay for every release, also for those of other handles in a run.
        n_min: under add-remove-one, and only there: public lower bound on every party's count.
        label_domain: public; -1 and +1, or classes, or real numbers up to a bound.
        party_counts: in place of `n_min`, and under any relation: public lower bounds on each
            party's own count, for sensitivities of its own.

    Raises:
        InvalidParameter: non-finite entries, labels outside their domain, wrong shapes, an
            empty party, fewer records than the bounds, or two parties with the same records (see
            `record_sets`). Nothing has been spent by then.
    """

    __slots__ = ()

    @np.errstate(all="ignore")  # what a caller made an error would tell of the records
    def __init__(
        self,
        features: FloatArray | sparse.csr_array[Any] | RowBlocks | ClusterRows,
        labels: FloatArray,
        *,
        adjacency: Adjacency | str,
        row_bound: float,
        party_of: np.ndarray[Any, np.dtype[np.integer[Any]]] | None = None,
        parties: tuple[str, ...] = EVERYBODY,
        n_min: int | None = None,
        label_domain: LabelDomain = SIGNS,
        party_counts: tuple[int, ...] = (),
        n_max: int | None = None,
    ) -> None:
        adjacency = named("adjacency", adjacency, Adjacency)
        require_magnitude("row_bound", row_bound, LENGTH_EXPONENT)
        row_bound = float(row_bound)  # one number for price and cut
        for name, array in (("features", features), ("labels", labels)):
            if not hasattr(array, "shape"):
                raise InvalidParameter(name, type(array).__name__, "an array, with a shape")
        if not hasattr(label_domain, "require"):
            raise InvalidParameter("label_domain", label_domain, "a LabelDomain, as SIGNS")
        records = gather_records(
            features,
            labels,
            row_bound,
            party_of,
            len(parties),
            label_domain,
            public_counts=adjacency is not Adjacency.ADD_REMOVE_ONE,
        )
        if len(parties) > 1 and not self._auditable:
            RecordSets(features.shape[1]).add(parties, records)
        smallest = int(records.counts.min())
        if smallest == 0:
            raise InvalidParameter(
                "party", parties[int(records.counts.argmin())], "with at least one record"
            )
        self._shape = DataShape(
            parties,
            _public_count(records.counts, adjacency, n_min, party_counts),
            features.shape[1],
            row_bound,
            adjacency,
            label_domain,
            party_counts,
            0 if n_max is None else n_max,
        )
        largest = int(records.counts.max())
        if largest > self._shape.most:
            if adjacency is Adjacency.ADD_REMOVE_ONE or n_max is not None:
                raise InvalidParameter("n_max", n_max, "a public bound on counts, not below any")
            self._shape = replace(self._shape, n_max=largest)
        self._records = records

    @property
    def rows(self) -> int:
        """The number of parties whose records are here: of rows of values, points and messages.

        All of them; of some parties' data where these are (`LocalDataset`), theirs.
        """
        return len(self.shape.parties)

    def own(self, values: FloatArray) -> FloatArray:
        """Return the entries of the parties whose records are here, of public values (P, ...)."""
        return values

    def mean_gradient(
        self, loss: Loss, w: FloatArray, *, weights: FloatArray | None = None
    ) -> Sensitive:
        """Return each party's mean gradient at the public point w.

        The sum is divided by the party's number of records; under add-remove-one, where that is
        private, the bound allows for it (`sensitivity.mean_of_bounded`).

        Args:
            loss: stated and tried as `loss_trial.stated` does, K outputs.
            w: public, of shape (..., P, d·K) or (d·K,).
            weights: public, of shape (P,): each party's mean is multiplied by its own, and its own
                sensitivity (`DataShape.mean_sensitivities`) is what the weight multiplies.

        Raises `InvalidParameter` for a loss that random scores refute, or for other shapes.
        """
        loss = stated(loss)
        weights = None if weights is None else np.array(weights, dtype=np.float64)
        if weights is None:
            bound = self.shape.gradient_bound(loss)
            sensitivity = mean_of_bounded(bound, self.shape.count, self.shape.adjacency)
            sensitivity = assuming(loss, sensitivity)
        else:
            sensitivity = weighted(self.shape.mean_sensitivities(loss), weights)
        width = self.shape.parameters(loss)
        point = self.shape.point("w", w, width, rows=self.rows)
        own = None if weights is None else self.own(weights)
        rounding = rounded.mean(self.shape.gradient_bound(loss), self.shape.most, width)

        def mean(records: Records, rows: slice) -> FloatArray:
            return times(own, rows, records.mean_gradient(loss, point[..., rows, :]))

        def total(records: Records, rows: slice) -> FloatArray:
            return times(own, rows, records.sum_gradient(loss, point[..., rows, :]))

        return self._sensitive(
            sensitivity, weighted_rounding(rounding, weights), width, mean, total
        )

    def second_moment(self) -> Sensitive:
        """Return each party's mean of a aᵀ over its rows a, row by row: of shape (P, d²).

        A row of norm at most row_bound gives a positive semidefinite matrix of Frobenius norm at
        most row_bound², and no two such matrices point apart: under replace-one the mean moves by
        sqrt(2)·row_bound²/n at most (`mean_of_nonnegative`), which orthogonal rows attain.
        """
        shape = self.shape
        bound = Fraction(float(shape.row_bound))

        def moment(records: Records, rows: slice) -> FloatArray:
            # the gradient of <a, w>²/2 at the j-th unit vector is the j-th column of a aᵀ
            units = np.eye(shape.features)[:, None, :].repeat(len(records.counts), axis=1)
            columns = records.mean_gradient(_HalfSquare(bound), units)
            return columns.swapaxes(0, 1).reshape(len(records.counts), -1)

        sensitivity = mean_of_nonnegative(bound**2, shape.count, shape.adjacency)
        rounding = rounded.mean(bound**2, shape.most, shape.features**2)
        return self._sensitive(sensitivity, rounding, shape.features**2, moment)

    def sum_gradient(self, loss: Loss, w: FloatArray, *, radius: float | None = None) -> Sensitive:
        """Return each party's sum of gradients at the public point w, each cut to `radius`.

        Args:
            loss: stated and tried as `loss_trial.stated` does, K outputs.
            w: public, of shape (..., P, d·K) or (d·K,).
            radius: l2 bound on a record's gradient; None for the loss's own bound.

        Raises `InvalidParameter` for a loss that random scores refute, or a point of another shape.
        """
        loss, radius = stated(loss), None if radius is None else float(radius)
        bound = cut_bound(self.shape.gradient_bound(loss), radius)
        width = self.shape.parameters(loss)
        point = self.shape.point("w", w, width, rows=self.rows)

        def total(records: Records, rows: slice) -> FloatArray:
            if radius is None:  # the records are read once
                return records.sum_gradient(loss, point[..., rows, :])
            slopes = record_slopes(records, loss, point[..., rows, :])
            return combined(records, cut_slopes(slopes, records.norms, radius, width))

        rounding = rounded.total(bound, self.shape.most, width)
        sensitivity = assuming(loss, sum_of_bounded(bound, self.shape.adjacency))
        return self._sensitive(sensitivity, rounding, width, total)

    def histogram(
        self, edges: Sequence[float], *, column: int | None = None, norm: Norm = Norm.L2
    ) -> Sensitive:
        """Return how many of each party's records lie in each of K + 1 cells: of shape (P, K + 1).

        Whole numbers, to which a curator can add discrete noise. No edges: the number of records.

        Args:
            edges: K public numbers, increasing; cell k holds what is in [edges[k-1], edges[k]).
            column: of the features, as cut to the row bound; the labels without it.
            norm: of the sensitivity: l2 for (discrete) Gaussian noise, l1 for (discrete) Laplace.

        Raises `InvalidParameter` for edges out of order, or a column that there is not.
        """
        shape, bounds = self.shape, np.array(edges, dtype=np.float64)
        if bounds.ndim != 1 or not np.all(np.isfinite(bounds)) or np.any(np.diff(bounds) <= 0.0):
            raise InvalidParameter("edges", edges, "finite numbers in increasing order")
        if column is not None and not (
            isinstance(column, int | np.integer)
            and not isinstance(column, bool)
            and 0 <= column < shape.features
        ):
            whole = f"None or a whole number in [0, {shape.features - 1}]"
            raise InvalidParameter("column", column, whole)
        width = len(bounds) + 1

        def counts(records: Records, rows: slice) -> FloatArray:
            parties, values = len(records.counts), records.labels
            if column is not None:
                unit = np.zeros((parties, shape.features))
                unit[:, column] = 1.0
                values = records.scores(unit)
            cells = np.searchsorted(bounds, records.in_order(values), side="right")
            found = np.bincount(records.party_of * width + cells, minlength=parties * width)
            return found.reshape(parties, width).astype(np.float64)

        sensitivity = histogram(shape.adjacency, norm)
        return self._sensitive(sensitivity, rounded.counted(shape.most, width=width), width, counts)

    def wrong_predictions(self, models: Sequence[FloatArray]) -> Sensitive:
        """Return how many records each of K public linear models classifies wrongly: (P, K).

        Costs for the exponential mechanism: a record replaced moves each count by at most 1. Of two
        classes, +1 is predicted where the score is positive; of more, the highest score's.

        A record is wrong for some of the K models, and lies in the cell of a histogram that says
        for which. Where n is public a count is, up to n/2, half of (wrong less right): the K counts
        together are a linear map of the histogram of l1 norm K/2, or K under add-remove-one.

        Args:
            models: K public arrays, each of shape (d,), or (d·C,) for C classes.

        Raises `InvalidParameter` for real labels, no models, and models of another shape.
        """
        shape, domain = self.shape, self.shape.label_domain
        if not isinstance(domain, SignLabels | ClassLabels):
            raise InvalidParameter("label_domain", domain, "SignLabels or ClassLabels")
        outputs = domain.classes if isinstance(domain, ClassLabels) else 1
        found = [np.array(model, dtype=np.float64) for model in models]
        for model in found:
            if model.shape != (shape.features * outputs,) or not np.all(np.isfinite(model)):
                need = f"finite, of shape ({shape.features * outputs},)"
                raise InvalidParameter("models", model.shape, need)
        if not 1 <= len(found) <= MOST_CANDIDATES:
            raise InvalidParameter("models", len(found), f"1 to {MOST_CANDIDATES} of them")

        def counts(records: Records, rows: slice) -> FloatArray:
            parties, labels = len(records.counts), records.in_order(records.labels)
            wrong = np.zeros((parties, len(found)))
            for k, model in enumerate(found):
                # one point at a time: a record's score is then the same wherever it stands
                scores = [
                    records.in_order(records.scores(np.tile(column, (parties, 1))))
                    for column in model.reshape(-1, outputs).T
                ]
                of_two = np.where(scores[0] > 0.0, 1.0, -1.0)
                guess = of_two if outputs == 1 else np.argmax(scores, axis=0)
                missed = records.party_of[guess != labels]
                wrong[:, k] = np.bincount(missed, minlength=parties)
            return wrong

        resized = shape.adjacency is Adjacency.ADD_REMOVE_ONE
        cells = histogram(shape.adjacency, Norm.L1)
        each = linearly_mapped(cells, Fraction(1) if resized else Fraction(1, 2))
        every = linearly_mapped(cells, Fraction(len(found), 1 if resized else 2))
        # the row of K counts, each at most n, is as long as one count of sqrt(K) n
        most = shape.most * (isqrt(len(found) - 1) + 1)
        rounding = rounded.counted(most, width=len(found))
        return self._sensitive(every, rounding, len(found), counts, each=each)

    def answers(self) -> Sensitive:
        """Return each record's label as one of 0, ..., K - 1: of shape (P, n), in order of input.

        For randomised response, in which every record answers for itself.

        Raises `InvalidParameter` unless labels are signs or classes, the relation is replace-one,
        and all parties have as many records.
        """
        shape = self.shape
        domain, n = shape.label_domain, shape.count
        if not isinstance(domain, SignLabels | ClassLabels):
            raise InvalidParameter("label_domain", domain, "SignLabels or ClassLabels")
        if shape.adjacency is not Adjacency.REPLACE_ONE:
            raise InvalidParameter("adjacency", shape.adjacency, "replace-one")
        if set(shape.counts) != {n}:
            raise InvalidParameter("party_counts", shape.counts, "the same for all parties")
        signs = isinstance(domain, SignLabels)
        categories = domain.classes if isinstance(domain, ClassLabels) else 2

        def answered(records: Records, rows: slice) -> FloatArray:
            if np.any(records.counts != n):  # public under replace-one
                raise InvalidParameter("party_counts", records.counts, f"all equal to {n}")
            labels = records.in_order(records.labels)
            labels = labels[np.argsort(records.party_of, kind="stable")].reshape(-1, n)
            return (labels + 1.0) / 2.0 if signs else labels

        # a sum of vectors, one a record: its answer at its own place
        sensitivity = sum_of_bounded(categories - 1, shape.adjacency)
        rounding = rounded.counted(n * (categories - 1), width=n)
        return self._sensitive(sensitivity, rounding, n, answered, categories=categories)

    def strongly_convex_argmin(
        self,
        loss: Loss,
        *,
        modulus: float | FloatArray,
        linear: FloatArray,
        tolerance: float,
        start: FloatArray,
        weights: FloatArray | None = None,
    ) -> Sensitive:
        """Return argmin_v mean loss(v) + (modulus/2)|v|² + <linear, v>, per party.

        The result lies within tolerance/modulus of the minimiser, after a number of steps that
        public constants fix (see `argmin`); the tolerance is declared beforehand and priced
        (2·tolerance/modulus).

        Args:
            loss: convex and smooth, K outputs; tried on random scores.
            modulus: > 0, one number, or one for each party in shape (P,): then the smallest is
                priced, since the differing record may be in any party.
            linear: public, broadcastable to (..., P, d·K).
            tolerance: > 0, of the gradient's norm at the result.
            start: public, broadcastable to (..., P, d·K): where the iteration begins.
            weights: public, of shape (P,): each party's minimiser is multiplied by its own, and its
                own sensitivity (`DataShape.argmin_sensitivities`) is what the weight multiplies.

        Raises `InvalidParameter`, without a look at the records, for a loss without a curvature
        bound and for a tolerance that double precision does not reach.
        """
        loss = stated(loss)
        require_convex(loss)
        moduli = self.shape.moduli(modulus)[:, None]
        require_positive("tolerance", tolerance)
        if loss.curvature_bound is None:
            raise InvalidParameter("loss", loss, "with a curvature bound (smooth)")
        weights = None if weights is None else np.array(weights, dtype=np.float64)
        if weights is None:
            sensitivity = strongly_convex_argmin(
                self.shape.gradient_bound(loss),
                float(moduli.min()),
                tolerance,
                self.shape.count,
                self.shape.adjacency,
            )
            sensitivity = assuming(loss, sensitivity, minimised=True)
        else:
            parts = self.shape.argmin_sensitivities(loss, modulus=moduli[:, 0], tolerance=tolerance)
            sensitivity = weighted(parts, weights)
        width = self.shape.parameters(loss)
        shift, origin = (
            self.shape.point(name, at, width, rows=self.rows)
            for name, at in (("linear", linear), ("start", start))
        )
        own = self.own(moduli)
        factors = None if weights is None else self.own(weights)
        iteration = self._iteration(loss, own, shift, origin, tolerance)

        def minimiser(records: Records, rows: slice) -> FloatArray:
            modulus, pull = own[rows], shift[..., rows, :]

            def gradient(v: FloatArray) -> FloatArray:
                return records.mean_gradient(loss, v) + modulus * v + pull

            first = origin[..., rows, :]
            first = np.broadcast_to(first, np.broadcast_shapes(first.shape, pull.shape))
            return times(factors, rows, minimise(gradient, first, iteration.of(rows)))

        # priced as computed: the tolerance covers rounding
        least = Fraction(float(moduli.min()))
        largest = 1.0 if weights is None else float(np.abs(weights).max())
        room = _FREE * sensitivity.root * least / Fraction(largest) if largest else Fraction(0)
        pull = _counted_pull(self.shape.gradient_bound(loss), shift, room)
        size = (pull + Fraction(tolerance)) / least
        rounding = rounded.exact(size, width=width)
        return self._sensitive(sensitivity, weighted_rounding(rounding, weights), width, minimiser)

    def _iteration(
        self,
        loss: Loss,
        moduli: FloatArray,
        linear: FloatArray,
        start: FloatArray,
        tolerance: float,
    ) -> Iteration:
        """Return how every party's minimiser is found, from public facts only."""
        shape, bound = self.shape, float_up(self.shape.gradient_bound(loss))
        curved = Fraction(loss.curvature_bound or 0) * Fraction(float(shape.row_bound)) ** 2
        pulls, starts = (_longest(points, self.rows) for points in (linear, start))
        operations = rounded.sum_depth(shape.most) + linear.shape[-1]
        steepest = {m: float_up(curved + Fraction(m)) for m in set(moduli.ravel().tolist())}
        bounds = [
            Bounds(m, steepest[m], bound + pull, first, operations)
            for m, pull, first in zip(moduli.ravel().tolist(), pulls, starts, strict=True)
        ]
        return planned_iteration(bounds, tolerance)

    def _sampled(self, draw: Draw) -> Sample:
        """Return a hidden sample; for curators, who draw it."""
        return Sample(self.shape, self._records, draw, rows=self.rows, auditable=self._auditable)

    def _sensitive(
        self,
        sensitivity: Sensitivity,
        rounding: rounded.Rounding,
        width: int,
        compute: Rows,
        total: Rows | None = None,
        *,
        categories: int = 0,
        each: Sensitivity | None = None,
    ) -> Sensitive:
        """Return what `compute` makes of records and the slice of rows that are theirs.

        If it makes the mean over a party's records, `total` makes the sum.
        """
        return self._answer(
            sensitivity,
            rounding,
            parties=self.shape.parties,
            width=width,
            compute=lambda records: self._computed(sensitivity, records, compute, total),
            held=self.rows,
            categories=categories,
            each=each,
        )

    def _computed(
        self, sensitivity: Sensitivity, records: Records, compute: Rows, total: Rows | None
    ) -> FloatArray:
        """Return the value of shape (..., P, width) that `_sensitive` describes."""
        value = compute(records, slice(None))
        # exactly public, without the signs of private zeros
        return value if sensitivity.squared else np.zeros_like(value)


def _public_count(
    counts: IntArray, adjacency: Adjacency, n_min: int | None, party_counts: tuple[int, ...]
) -> int:
    """Return the public lower bound on every party's count.

    Args:
        counts: array of shape (P,), private under add-remove-one.
        adjacency: under it `n_min` is asked for, under others it must not be stated.
        n_min: the caller's bound.
        party_counts: the caller's bounds, one a party.

    Raises `InvalidParameter` where a bound is missing, superfluous, or above a party's count.
    """
    smallest = int(counts.min())
    if party_counts:
        if n_min is not None:
            raise InvalidParameter("n_min", n_min, "None beside party_counts")
        if len(party_counts) != len(counts) or np.any(np.array(party_counts) > counts):
            raise InvalidParameter(
                "party_counts", party_counts, "one a party, not above its number of records"
            )
        return min(party_counts)
    if adjacency is not Adjacency.ADD_REMOVE_ONE:
        if n_min is not None:
            raise InvalidParameter("n_min", n_min, f"None under {adjacency.value}")
        return smallest
    if n_min is None:
        raise InvalidParameter(
            "n_min", n_min, "a public lower bound on counts under add-remove-one"
        )
    if not isinstance(n_min, Real):
        raise InvalidParameter("n_min", n_min, "a whole number")
    if n_min > smallest:
        raise InvalidParameter("n_min", n_min, "not above a party's number of records")
    return n_min


def _longest(points: FloatArray, parties: int) -> list[float]:
    """Return bounds on the norms of each party's public points (..., P, d)."""
    sizes = np.abs(points).max(axis=-1, initial=0.0).reshape(-1, parties).max(axis=0, initial=0.0)
    root = isqrt(points.shape[-1]) + 1
    return [float(size) * root for size in sizes]


def _counted_pull(bound: Fraction, linear: FloatArray, room: Fraction) -> Fraction:
    """Return what G + |linear| counts as: one of 2^8, 2^16, ... times G, the last within `room`.

    A plan does not know what `linear` will be, and still prices what the run will: with little
    noise |linear| stays below 2^8 G, with much of it, in units of a sensitivity that grows with it,
    within the room. Whatever is beyond counts as the next.

    Args:
        bound: G, of a gradient.
        linear: public, of shape (..., P, d·K).
        room: a size of the pull up to which rounding costs next to nothing.
    """
    size, counted = bound + Fraction(largest_entry(linear)) * linear.shape[-1], 2**8 * bound
    while counted < size or 2**8 * counted <= room:
        counted *= 2**8
    return counted


@dataclass(frozen=True, slots=True)
class _HalfSquare:
    """s²/2 of scores within the bound: its gradient at a unit vector is a column of a aᵀ."""

    derivative_bound: Fraction
    curvature_bound: Fraction | None = Fraction(1)
    outputs: int = 1
    label_domain: LabelDomain = SIGNS

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return np.asarray(0.5 * scores**2)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return np.array(scores)
