"""Private data: records behind a handle that answers with `Sensitive` values only.

The public facts (`DataShape`) suffice to plan; the records themselves are needed to run. Rows are
cut to the public norm bound, so every bound on a gradient is enforced, not assumed.

>>> shape = DataShape(parties=("a", "b"), count=4, features=2, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE)
>>> PrivateDataset.planned(shape)
<PrivateDataset: DataShape(parties=('a', 'b'), count=4, features=2, row_bound=1.0, ...)>
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from .adjacency import Adjacency
from .argmin import Objective, minimise
from .clipping import HEADROOM, largest_entry
from .errors import (
    InvalidParameter,
    UnprotectedIteration,
    UnprotectedSerialisation,
    require_positive,
    require_positive_int,
)
from .labels import SIGNS, LabelDomain
from .protocols import FloatArray, Loss
from .records import Records, combined, gather_records, record_slopes
from .sensitive import Sensitive
from .sensitivity import Sensitivity, mean_of_bounded, strongly_convex_argmin, sum_of_bounded
from .subsampling import Draw, IntArray, SampledPart, Scheme

__all__ = ["DataShape", "PrivateDataset", "Sample"]


@dataclass(frozen=True, slots=True)
class DataShape:
    """What everybody may know about private data.

    Args:
        parties: names of the holders of disjoint records, in order.
        count: public lower bound on the number of records of each party; under replace-one and
            zero-out-one the numbers themselves are public, under add-remove-one only this bound is.
        features: dimension d of a row.
        row_bound: l2 bound that every row is cut to.
        adjacency: the neighbouring relation that sensitivities are derived for.
        label_domain: which labels there may be.
    """

    parties: tuple[str, ...]
    count: int
    features: int
    row_bound: float
    adjacency: Adjacency
    label_domain: LabelDomain = SIGNS

    def __post_init__(self) -> None:
        if not isinstance(self.parties, tuple):
            raise InvalidParameter("parties", self.parties, "a tuple of names")
        if not self.parties or len(set(self.parties)) != len(self.parties):
            raise InvalidParameter("parties", self.parties, "at least one party, each named once")
        require_positive_int("count", self.count)
        require_positive_int("features", self.features)
        require_positive("row_bound", self.row_bound)
        if not isinstance(self.adjacency, Adjacency):
            raise InvalidParameter("adjacency", self.adjacency, "an Adjacency")
        if self.adjacency is Adjacency.REPLACE_FEATURE_COLUMN:
            raise InvalidParameter("adjacency", self.adjacency, "a relation between records")

    def parameters(self, loss: Loss) -> int:
        """Return the number of coordinates of a model for `loss`: d·K."""
        return self.features * loss.outputs

    def gradient_bound(self, loss: Loss) -> Fraction:
        """Return G: no record's gradient of `loss` is longer.

        Raises `InvalidParameter` for a loss that is not defined for all labels of the domain.
        """
        if not loss.label_domain.contains(self.label_domain):
            raise InvalidParameter("loss", loss, f"defined for {self.label_domain}")
        return Fraction(loss.derivative_bound) * Fraction(float(self.row_bound))


class PrivateDataset:
    """Records of P parties; every function of them is a `Sensitive` of shape (..., P, d).

    Args:
        features: dense or sparse array of shape (n, d), one row a record.
        labels: array of shape (n,), each in `label_domain`.
        adjacency: the neighbouring relation.
        row_bound: l2 bound; longer rows are scaled down to it.
        party_of: array of shape (n,) of indices into `parties`, or None for a single party.
        parties: names of the parties; the record-to-party map must be public and fixed.
        n_min: under add-remove-one, and only there: public lower bound on every party's count.
        label_domain: public; -1 and +1, or classes, or real numbers up to a bound.

    Raises:
        InvalidParameter: non-finite entries, labels outside their domain, wrong shapes, an
            empty party, or fewer records than `n_min`. Nothing has been spent by then.
    """

    __slots__ = ("_beside", "_records", "_shape")

    def __init__(
        self,
        features: FloatArray | sparse.csr_array[Any],
        labels: FloatArray,
        *,
        adjacency: Adjacency,
        row_bound: float,
        party_of: np.ndarray[Any, np.dtype[np.integer[Any]]] | None = None,
        parties: tuple[str, ...] = ("all",),
        n_min: int | None = None,
        label_domain: LabelDomain = SIGNS,
    ) -> None:
        if not isinstance(adjacency, Adjacency):
            raise InvalidParameter("adjacency", adjacency, "an Adjacency")
        require_positive("row_bound", row_bound)
        records = gather_records(features, labels, row_bound, party_of, len(parties), label_domain)
        smallest = int(records.counts.min())
        if smallest == 0:
            raise InvalidParameter(
                "party", parties[int(records.counts.argmin())], "with at least one record"
            )
        if adjacency is Adjacency.ADD_REMOVE_ONE:
            if n_min is None:
                raise InvalidParameter(
                    "n_min", n_min, "a public lower bound on counts under add-remove-one"
                )
            if n_min > smallest:
                raise InvalidParameter("n_min", n_min, "not above a party's number of records")
        elif n_min is not None:
            raise InvalidParameter("n_min", n_min, f"None under {adjacency.value}")
        count = smallest if n_min is None else n_min
        self._shape = DataShape(
            parties, count, features.shape[1], row_bound, adjacency, label_domain
        )
        self._records: Records | None = records
        self._beside: tuple[Records, slice] | None = None

    @classmethod
    def planned(cls, shape: DataShape) -> PrivateDataset:
        """Return a handle without records: it answers with sensitivities and no values."""
        handle = cls.__new__(cls)
        handle._shape = shape
        handle._records = None
        handle._beside = None
        return handle

    @property
    def shape(self) -> DataShape:
        """The public facts."""
        return self._shape

    def mean_gradient(self, loss: Loss, w: FloatArray) -> Sensitive:
        """Return each party's mean gradient at the public point w.

        The point has shape (..., P, d·K) or (d·K,), K the loss's number of outputs.
        """
        sensitivity = mean_of_bounded(
            self.shape.gradient_bound(loss), self.shape.count, self.shape.adjacency
        )
        width = self.shape.parameters(loss)
        point = self._point("w", w, width)
        return self._sensitive(
            sensitivity,
            width,
            lambda records, rows: records.mean_gradient(loss, point[..., rows, :]),
        )

    def second_moment(self) -> Sensitive:
        """Return each party's mean of a aᵀ over its rows a, row by row: of shape (P, d²).

        A row of norm at most row_bound gives a matrix of Frobenius norm at most row_bound².
        """
        shape = self.shape
        bound = Fraction(float(shape.row_bound))

        def moment(records: Records, rows: slice) -> FloatArray:
            # the gradient of <a, w>²/2 at the j-th unit vector is the j-th column of a aᵀ
            units = np.eye(shape.features)[:, None, :].repeat(len(records.counts), axis=1)
            columns = records.mean_gradient(_HalfSquare(bound), units)
            return columns.swapaxes(0, 1).reshape(len(records.counts), -1)

        sensitivity = mean_of_bounded(bound**2, shape.count, shape.adjacency)
        return self._sensitive(sensitivity, shape.features**2, moment)

    def sum_gradient(self, loss: Loss, w: FloatArray, *, radius: float | None = None) -> Sensitive:
        """Return each party's sum of gradients at the public point w, each cut to `radius`."""
        bound = _cut_bound(self.shape.gradient_bound(loss), radius)
        width = self.shape.parameters(loss)
        point = self._point("w", w, width)

        def total(records: Records, rows: slice) -> FloatArray:
            slopes = record_slopes(records, loss, point[..., rows, :])
            return combined(records, _cut(slopes, records.norms, radius))

        return self._sensitive(sum_of_bounded(bound, self.shape.adjacency), width, total)

    def strongly_convex_argmin(
        self,
        loss: Loss,
        *,
        modulus: float | FloatArray,
        linear: FloatArray,
        tolerance: float,
        start: FloatArray,
    ) -> Sensitive:
        """Return argmin_v mean loss(v) + (modulus/2)|v|² + <linear, v>, per party.

        The gradient norm at the result is certified to be at most `tolerance`, which is declared
        beforehand and priced (2·tolerance/modulus); `linear` and `start` are public, broadcastable
        to (..., P, d·K). `modulus` is one number, or one for each party in shape (P,): then the
        smallest is priced, since the differing record may be in any party. Raises `InexactArgmin`
        before any release when the certificate fails, and `InvalidParameter` for a loss without a
        curvature bound.
        """
        moduli = self._moduli(modulus)
        require_positive("tolerance", tolerance)
        curvature = loss.curvature_bound
        if curvature is None:
            raise InvalidParameter("loss", loss, "with a curvature bound (smooth)")
        sensitivity = strongly_convex_argmin(
            self.shape.gradient_bound(loss),
            float(moduli.min()),
            tolerance,
            self.shape.count,
            self.shape.adjacency,
        )
        width = self.shape.parameters(loss)
        shift, origin = self._point("linear", linear, width), self._point("start", start, width)
        smoothness = float(curvature) * self.shape.row_bound**2 + moduli

        def minimiser(records: Records, rows: slice) -> FloatArray:
            objective = Objective(
                gradient=lambda v: records.mean_gradient(loss, v),
                modulus=moduli[rows],
                linear=shift[..., rows, :],
                smoothness=smoothness[rows],
                gradient_bound=float(self.shape.gradient_bound(loss)),
                terms=int(records.counts.max()),
            )
            return minimise(objective, origin[..., rows, :], tolerance)

        return self._sensitive(sensitivity, width, minimiser)

    def with_record(
        self, index: int, *, features: FloatArray | None = None, label: float | None = None
    ) -> PrivateDataset:
        """Return the neighbour whose record `index` has other features (d,) and/or another label.

        For audits, by whoever holds the data: the public facts are unchanged.
        """
        if label is not None:
            self.shape.label_domain.require(np.asarray([label], dtype=np.float64))
        other = self.planned(self.shape)
        other._records = self._held().with_record(index, self.shape.row_bound, features, label)
        return other

    def differing(self, other: PrivateDataset) -> IntArray | None:
        """Return the indices of records that `other` has otherwise, in the order of input.

        None where they cannot be told: other counts or another layout. For audits, by whoever holds
        both.
        """
        return self._held().differing(other._held())

    def beside(self, neighbour: PrivateDataset) -> PrivateDataset:
        """Return a handle whose values tell both data sets apart: their shape is (2, ..., P, d).

        For attacks, by whoever holds both: one pass of an algorithm, its messages drawn from the
        first values, also computes what the neighbour would have said. Parties that hold no
        differing record would have said the same, and are computed once. There are no samples.

        Raises `InvalidParameter` when the public facts differ.
        """
        if neighbour.shape != self.shape:
            raise InvalidParameter("neighbour.shape", neighbour.shape, f"equal to {self.shape}")
        records, differing = neighbour._held(), self.differing(neighbour)
        homes = [] if differing is None else np.unique(self.home[differing]).tolist()
        pair = self.planned(self.shape)
        pair._records, pair._beside = self._held(), (records, slice(None))
        if len(homes) == 1:
            party = homes[0]
            pair._beside = (records.of_party(party), slice(party, party + 1))
        return pair

    def sampled(self, scheme: Scheme, draw: Draw) -> Sample:
        """Return a hidden sample; for curators, who draw it."""
        if self._beside is not None:
            raise InvalidParameter("dataset", "two data sets", "one: samples have no neighbours")
        return Sample(self, scheme, draw)

    @property
    def home(self) -> IntArray:
        """The public record-to-party map, of shape (n,)."""
        return self._held().home

    def _held(self) -> Records:
        if self._records is None:
            raise InvalidParameter("dataset", "planned", "with records")
        return self._records

    def _point(self, name: str, point: FloatArray, width: int) -> FloatArray:
        """Return a public point, a row for each party; a `Sensitive` refuses by itself."""
        array = np.asarray(point, dtype=np.float64)
        block = (len(self.shape.parties), width)
        # far below overflow: an infinite or undefined score would show a record's signs
        if not largest_entry(array) <= 1e100:
            raise InvalidParameter(name, "NaN or above 1e100", "with entries of at most 1e100")
        rows = array.shape[-2] if array.ndim > 1 else 1
        if array.shape[-1:] != block[1:] or rows not in (1, block[0]):
            raise InvalidParameter(f"{name}.shape", array.shape, f"broadcastable to {block}")
        return np.broadcast_to(array, array.shape[:-2] + block)

    def _moduli(self, modulus: float | FloatArray) -> FloatArray:
        """Return a modulus for each party, of shape (P, 1)."""
        parties = len(self.shape.parties)
        array = np.asarray(modulus, dtype=np.float64)
        if array.shape not in ((), (parties,)):
            raise InvalidParameter("modulus.shape", array.shape, f"() or ({parties},)")
        require_positive("modulus", float(array.min()))
        require_positive("modulus", float(array.max()))
        return np.broadcast_to(array, (parties,))[:, None]

    def _sensitive(
        self,
        sensitivity: Sensitivity,
        width: int,
        compute: Callable[[Records, slice], FloatArray],
    ) -> Sensitive:
        """Return what `compute` makes of records and the slice of rows that are theirs."""
        value = None if self._records is None else compute(self._records, slice(None))
        if value is not None and self._beside is not None:
            records, rows = self._beside
            # trials have an axis even where there is one for all, behind that of the data sets
            lead = value.shape[:-2] or (1,)
            pair = np.empty((2, *lead, *value.shape[-2:]))
            pair[:] = value
            pair[1, ..., rows, :] = compute(records, rows)
            value = pair
        return Sensitive(sensitivity, parties=self.shape.parties, dimension=width, value=value)

    def __repr__(self) -> str:
        """Show the public facts only."""
        return f"<PrivateDataset: {self.shape}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise UnprotectedSerialisation("pickling would let private records out.")

    def __iter__(self) -> NoReturn:
        raise UnprotectedIteration("iteration lets records out; use mean_gradient etc.")


@dataclass(frozen=True, slots=True)
class _HalfSquare:
    """s²/2, at scores within the bound."""

    derivative_bound: Fraction
    curvature_bound: Fraction | None = Fraction(1)
    outputs: int = 1
    label_domain: LabelDomain = SIGNS

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return np.asarray(0.5 * scores**2)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        return np.array(scores)


class Sample:
    """Records that a curator drew, for one release; nobody learns which.

    Its functions are sums over the drawn records of each party: `Sensitive` values that know how
    they were sampled. Divide them by public numbers only.
    """

    __slots__ = ("_dataset", "_draw", "_scheme")

    def __init__(self, dataset: PrivateDataset, scheme: Scheme, draw: Draw) -> None:
        self._dataset = dataset
        self._scheme = scheme
        self._draw = draw

    def sum_gradient(self, loss: Loss, w: FloatArray, *, radius: float | None = None) -> Sensitive:
        """Return the sum of gradients at the public point w, each cut to `radius`.

        The point has shape (..., P, d·K) or (d·K,).
        """
        dataset, width = self._dataset, self._dataset.shape.parameters(loss)
        bound = _cut_bound(dataset.shape.gradient_bound(loss), radius)
        records, point = dataset._records, dataset._point("w", w, width)
        slopes = None
        if records is not None:
            slopes = _cut(record_slopes(records, loss, point), records.norms, radius)
        return self._summed(bound, width, slopes)

    def sum_correction(
        self, loss: Loss, w: FloatArray, *, anchor: FloatArray, radius: float
    ) -> Sensitive:
        """Return the sum of each record's gradient at w less that at `anchor`, cut to `radius`.

        Both points are public, of shape (..., P, d·K) or (d·K,).
        """
        dataset, width = self._dataset, self._dataset.shape.parameters(loss)
        bound = _cut_bound(2 * dataset.shape.gradient_bound(loss), radius)
        records = dataset._records
        point = dataset._point("w", w, width)
        origin = dataset._point("anchor", anchor, width)
        slopes = None
        if records is not None:
            moved = record_slopes(records, loss, point) - record_slopes(records, loss, origin)
            slopes = _cut(moved, records.norms, radius)
        return self._summed(bound, width, slopes)

    def _summed(self, bound: Fraction, width: int, slopes: FloatArray | None) -> Sensitive:
        """Return the drawn records' sum of row ⊗ slope, a vector of norm <= `bound` each."""
        shape, records = self._dataset.shape, self._dataset._records
        inside = self._draw.inside
        value = None
        if records is not None and slopes is not None and inside is not None:
            value = combined(records, slopes * records.placed(inside)[..., None])
        total = sum_of_bounded(bound, shape.adjacency)
        return Sensitive(
            total,
            parties=shape.parties,
            dimension=width,
            value=value,
            sampled_part=SampledPart(None, total, self._scheme, shape.count, self._draw),
        )

    def __repr__(self) -> str:
        """Show the public facts only."""
        return f"<Sample: {self._scheme} of {self._dataset}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise UnprotectedSerialisation("pickling would let a hidden sample out.")

    def __iter__(self) -> NoReturn:
        raise UnprotectedIteration("iteration lets records out; use sum_gradient etc.")


def _cut_bound(longest: Fraction, radius: float | None) -> Fraction:
    """Return the bound of vectors no longer than `longest` that are cut to `radius`."""
    if radius is None:
        return longest
    require_positive("radius", radius)
    return min(Fraction(float(radius)), longest)


def _cut(slopes: FloatArray, norms: FloatArray, radius: float | None) -> FloatArray:
    """Return slopes (..., K) of row ⊗ slope, those of products longer than `radius` scaled down."""
    if radius is None:
        return slopes
    longest = np.linalg.norm(slopes, axis=-1) * norms
    shrunk = np.minimum(1.0, radius * HEADROOM / np.maximum(longest, 1e-300))
    return np.asarray(slopes * shrunk[..., None])
