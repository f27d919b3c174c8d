"""Private tables: sums, means, counts, histograms and quantiles of bounded columns.

A table is a handle of named columns. A numeric column has public bounds and a public step, a power
of two; its cells are cut to the bounds and rounded to multiples of the step, one record at a time.
So sums are exact: what is computed in doubles is the number that the sensitivity is about.

What a statistic moves by between neighbours, for a column in [a, b] (a null record has in every
column what lies nearest to 0: c in a numeric one, the first category in others):

    statistic       replace-one    zero-out-one             add-remove-one
    count           public         public                   1
    sum             b - a          max(b - c, c - a)        max(|a|, |b|)
    mean            (b - a)/n      max(b - c, c - a)/n      (b - a)/n_min
    histogram       √2, in l1 2    √2, in l1 2              1
    quantile rank   1              1                        max(q, 1 - q)

In l1 a sum is a linear map of the histogram of its values, which moves by 2 (or 1) in l1; under
zero-out-one that is b - a. Statistics of a table are released as those of records are: through a
curator, with Gaussian, Laplace or discrete noise, or by the exponential mechanism.

>>> from dpledger.mechanisms import EventList, SamplingCurator, SeededSampler
>>> table = PrivateTable({"age": np.array([31.0, 44.0, 67.0, 52.0])},
...                      {"age": BoundedColumn(18, 90)}, adjacency="replace-one")
>>> table.mean("age").sensitivity.value
18.0
>>> sink = EventList()
>>> curator = SamplingCurator(sink, SeededSampler(1))
>>> noisy = curator.release(table.mean("age"), noise_multiplier=2.0, round=1, release="mean age")
>>> noisy.shape, sink.events[0].mechanism.noise_std
((1, 1), 36.0...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, fsum, isfinite, isqrt

import numpy as np

from . import rounding as rounded
from .adjacency import Adjacency
from .errors import (
    InvalidParameter,
    named,
    require_finite,
    require_nonnegative,
    require_positive_int,
    require_rate,
)
from .exact_choice import MOST_CANDIDATES
from .handle import PrivateHandle
from .protocols import FloatArray
from .refusals import Closed
from .rounding import Rounding
from .row_blocks import real_numbers
from .sensitive import Sensitive
from .sensitivity import (
    Norm,
    Sensitivity,
    concatenated,
    histogram,
    linearly_mapped,
    mean_of_bounded,
    scaled,
    sum_of_bounded,
)

_STEP_BITS = 20
"""Without a stated step a column is rounded to 2^-20 of its width, or half of that."""

_RANK_PARTS = 10_000
"""Quantiles are asked for in whole parts of 1/10,000 or of a smaller number."""

_LARGEST_BOUND = 2.0**100


@dataclass(frozen=True, slots=True)
class BoundedColumn(Closed):
    """A column of numbers with public bounds.

    Args:
        lower: cells below are raised to it.
        upper: cells above are cut to it.
        step: a power of two that cells are rounded to multiples of; 1 for whole numbers, whose sums
            then take discrete noise. Without it at most 2^-20 of the width.

    Raises `InvalidParameter` for bounds that are not finite and in order, and a step that is no
    power of two or wider than the column.
    """

    lower: float
    upper: float
    step: float = 0.0

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            require_finite(name, bound)
            if not abs(bound) <= _LARGEST_BOUND:
                raise InvalidParameter(name, bound, "in [-2^100, 2^100]")
            object.__setattr__(self, name, float(bound))
        if not self.lower < self.upper:
            raise InvalidParameter("lower", self.lower, f"below upper={self.upper}")
        width = self.upper - self.lower
        require_nonnegative("step", self.step)
        step = self.step or 2.0 ** (frexp(width)[1] - 1 - _STEP_BITS)
        if not (isfinite(step) and step > 0 and frexp(step)[0] == 0.5):
            raise InvalidParameter("step", self.step, "a power of two, such as 1.0 or 0.125")
        object.__setattr__(self, "step", step)
        if not self.first < self.last:
            raise InvalidParameter("step", step, "so small that two multiples lie in the bounds")

    @property
    def first(self) -> Fraction:
        """The smallest multiple of the step within the bounds."""
        step = Fraction(self.step)
        return -(-Fraction(self.lower) // step) * step

    @property
    def last(self) -> Fraction:
        """The largest multiple of the step within the bounds."""
        step = Fraction(self.step)
        return Fraction(self.upper) // step * step

    @property
    def null(self) -> Fraction:
        """What a null record has here: the multiple nearest to 0."""
        return min(max(Fraction(0), self.first), self.last)

    @property
    def largest(self) -> Fraction:
        """The largest size of a cell."""
        return max(abs(self.first), abs(self.last))

    def rounded(self, cells: FloatArray) -> FloatArray:
        """Return cells cut to the bounds and rounded to multiples of the step; shape (n,)."""
        multiples = np.rint(np.clip(cells, self.lower, self.upper) / self.step)
        low, high = float(self.first / Fraction(self.step)), float(self.last / Fraction(self.step))
        return np.asarray(np.clip(multiples, low, high) * self.step)


@dataclass(frozen=True, slots=True)
class CategoryColumn(Closed):
    """A column of words, of which all that may occur are public.

    Args:
        categories: different words; a null record has the first.
    """

    categories: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.categories or len(set(self.categories)) != len(self.categories):
            raise InvalidParameter("categories", self.categories, "different words, at least one")


Column = BoundedColumn | CategoryColumn


@dataclass(frozen=True, slots=True)
class TableShape(Closed):
    """What everybody may know about a private table.

    Args:
        columns: (name, column) pairs.
        count: the number of records; under add-remove-one a public lower bound on it.
        adjacency: the neighbouring relation, between records.
        n_max: public upper bound on the number of records; without it `count`, under
            add-remove-one 1024 times it.
    """

    columns: tuple[tuple[str, Column], ...]
    count: int
    adjacency: Adjacency
    n_max: int = 0

    def __post_init__(self) -> None:
        require_positive_int("count", self.count)
        names = [name for name, _ in self.columns]
        if not names or len(set(names)) != len(names):
            raise InvalidParameter("columns", names, "at least one, each named once")
        if self.adjacency is Adjacency.REPLACE_FEATURE_COLUMN:
            raise InvalidParameter("adjacency", self.adjacency, "a relation between records")
        if self.n_max and self.n_max < self.count:
            raise InvalidParameter("n_max", self.n_max, f"{self.count} or more")

    @property
    def resized(self) -> bool:
        """Whether neighbours differ in their number of records."""
        return self.adjacency is Adjacency.ADD_REMOVE_ONE

    @property
    def most(self) -> int:
        """The public upper bound on the number of records."""
        return self.n_max or (2**10 * self.count if self.resized else self.count)

    def found(self, name: str) -> tuple[str, Column | None]:
        """Return a column with its name as it stands here: a caller's may be another next time."""
        return next(((own, made) for own, made in self.columns if own == name), ("", None))

    def numeric(self, name: str) -> tuple[str, BoundedColumn]:
        """Return a column of numbers with its name, as `found`.

        Raises `InvalidParameter` where there is none so called.
        """
        own, column = self.found(name)
        if not isinstance(column, BoundedColumn):
            known = [n for n, c in self.columns if isinstance(c, BoundedColumn)]
            raise InvalidParameter("column", name, f"a numeric column, one of {known}")
        return own, column

    def cells(self, name: str, edges: Sequence[float]) -> tuple[str, FloatArray, int]:
        """Return a column's name, the public edges of its histogram, and its number of cells.

        Raises `InvalidParameter` for edges out of order, of a column of categories, or missing.
        """
        own, column = self.found(name)
        bounds = np.array(edges, dtype=np.float64)
        if isinstance(column, CategoryColumn):
            if len(bounds):
                raise InvalidParameter("edges", edges, f"empty: {name!r} has categories")
            return own, np.arange(1.0, len(column.categories)), len(column.categories)
        self.numeric(own)
        if bounds.ndim != 1 or not len(bounds) or not np.all(np.isfinite(bounds)):
            raise InvalidParameter("edges", edges, "one finite number or more")
        if np.any(np.diff(bounds) <= 0.0):
            raise InvalidParameter("edges", edges, "in increasing order")
        return own, bounds, len(bounds) + 1


def _names_of(cells: object) -> list[object]:
    """Return the names of a mapping's, or a frame's, columns; raise `InvalidParameter` for what has
    none, of which nothing is looked at: of a column by itself they would be its private cells.
    """
    if isinstance(cells, Mapping):
        return [*cells]
    # a frame may have columns that are called so
    own = next((each for each in ("column_names", "columns") if hasattr(type(cells), each)), None)
    if own is None:
        kind = type(cells).__name__
        raise InvalidParameter("cells", kind, "a mapping or a frame, of names to columns")
    return [*getattr(cells, own)]


class PrivateTable(PrivateHandle[TableShape, Mapping[str, FloatArray]]):
    """A table of private records; every statistic of it is a `Sensitive` of shape (1, d).

    Args:
        cells: an array of shape (n,) for each column: finite numbers, or the places of words among
            the column's categories.
        columns: what is public about each.
        adjacency: the neighbouring relation.
        n_min: under add-remove-one, and only there: public lower bound on n.
        n_max: public upper bound on n; see `TableShape`.

    Raises `InvalidParameter` for columns without cells, cells that are no numbers or places, other
    lengths, and fewer or more records than the bounds. Nothing has been spent by then.
    """

    __slots__ = ()

    @np.errstate(all="ignore")  # what a caller made an error would tell of the records
    def __init__(
        self,
        cells: Mapping[str, FloatArray],
        columns: Mapping[str, Column],
        *,
        adjacency: Adjacency | str,
        n_min: int | None = None,
        n_max: int | None = None,
    ) -> None:
        relation = named("adjacency", adjacency, Adjacency)
        names = _names_of(cells)
        if set(names) != set(columns):
            raise InvalidParameter("cells", sorted(map(str, names)), f"those of {sorted(columns)}")
        # read once: what is priced is what is cut, and as long as what is summed
        columns = {name: columns[name] for name in columns}
        held = {name: real_numbers(f"cells of {name!r}", cells[name]) for name in columns}
        counts = {each.shape for each in held.values()}
        if len(counts) != 1 or len(found := next(iter(counts))) != 1 or found[0] < 1:
            raise InvalidParameter("cells", counts, "arrays of one shape (n,), n >= 1")
        if (n_min is None) == (relation is Adjacency.ADD_REMOVE_ONE):
            raise InvalidParameter("n_min", n_min, "stated under add-remove-one, and only there")
        for name, bound in (("n_min", n_min), ("n_max", n_max)):
            if bound is not None:  # 0 is no "not stated": in its place stood the private number
                require_positive_int(name, bound)
        least = found[0] if n_min is None else n_min
        self._shape = TableShape(tuple(columns.items()), least, relation, n_max or 0)
        if not self._shape.count <= found[0] <= self._shape.most:
            # the number itself may be private
            raise InvalidParameter("n_min, n_max", (n_min, n_max), "bounds on the records held")
        self._records = {name: _prepared(name, held[name], columns[name]) for name in columns}

    # --- statistics ---------------------------------------------------------------------------

    def count(self, *, norm: Norm = Norm.L2) -> Sensitive:
        """Return the number of records, whole, of shape (1, 1).

        Under replace-one and zero-out-one it is public, and moves by nothing.

        Args:
            norm: of the sensitivity; both are the same.
        """
        moves = histogram(self.shape.adjacency, norm)
        if not self.shape.resized:
            moves = scaled(moves, 0)
        first = self.shape.columns[0][0]
        return self._one(
            moves, rounded.counted(self.shape.most, width=1), lambda held: float(len(held[first]))
        )

    def sum(self, column: str, *, norm: Norm = Norm.L2) -> Sensitive:
        """Return the sum of a numeric column, of shape (1, 1); whole where its step is 1.

        Args:
            column: its name.
            norm: of the sensitivity: l1 for (discrete) Laplace noise.

        Raises `InvalidParameter` for a step so small that doubles do not hold the sum.
        """
        column, made = self.shape.numeric(column)
        rounding = self._exact_sum(made)
        if self.shape.adjacency is Adjacency.ZERO_OUT_ONE and norm is Norm.L2:
            moves = sum_of_bounded(_from_null(made), self.shape.adjacency)
        elif self.shape.resized:
            moves = _total(made.largest, self.shape.adjacency, norm)
        else:
            moves = _total((made.last - made.first) / 2, self.shape.adjacency, norm)
        return self._one(moves, rounding, lambda held: float(np.sum(held[column])))

    def mean(self, column: str, *, norm: Norm = Norm.L2) -> Sensitive:
        """Return the mean of a numeric column, of shape (1, 1).

        Args: as for `sum`. Under add-remove-one there is no rule in l1: release sum and count, and
        divide what was released.

        Raises as `sum`, and `InvalidParameter` for l1 under add-remove-one.
        """
        column, made = self.shape.numeric(column)
        total = self._exact_sum(made)
        moves = self._mean_moves(made.first, made.last, made.null, norm, f"{column!r}")
        rounding = self._mean_rounding(made.largest, norm, total)
        return self._one(
            moves, rounding, lambda held: float(np.sum(held[column])) / len(held[column])
        )

    def second_moments(self, columns: Sequence[str], *, norm: Norm = Norm.L2) -> Sensitive:
        """Return the means of all products of two of the columns, of shape (1, k(k+1)/2).

        In the order (1, 1), (1, 2), ..., (1, k), (2, 2), ...; the first of each pair stands first.

        Args:
            columns: names of k numeric columns.
            norm: as for `mean`.
        """
        found = [self.shape.numeric(name) for name in columns]
        columns, made = [name for name, _ in found], [column for _, column in found]
        if not made or len(set(columns)) != len(columns):
            raise InvalidParameter("columns", columns, "different names, at least one")
        pairs = [(i, j) for i in range(len(made)) for j in range(i, len(made))]
        moves: Sensitivity | None = None
        rounding: Rounding | None = None
        for i, j in pairs:
            low, high = _products(made[i], made[j], squares=i == j)
            null = made[i].null * made[j].null
            own = self._mean_moves(low, high, null, norm, f"{columns[i]!r}, {columns[j]!r}")
            moves = own if moves is None else concatenated(moves, own)
            size = max(abs(low), abs(high))
            one = self._mean_rounding(size, norm, rounded.total(size, self.shape.most, 1))
            rounding = one if rounding is None else rounded.paired(rounding, one)
        assert moves is not None
        assert rounding is not None

        def means(held: Mapping[str, FloatArray]) -> FloatArray:
            values = [held[name] for name in columns]
            of_pairs = [fsum((values[i] * values[j]).tolist()) / len(values[i]) for i, j in pairs]
            return np.array([of_pairs])

        return self._answer(moves, rounding, parties=(), width=len(pairs), compute=means)

    def histogram(
        self, column: str, edges: Sequence[float] = (), *, norm: Norm = Norm.L2
    ) -> Sensitive:
        """Return how many records lie in each cell, whole, of shape (1, K).

        Args:
            column: its name; one of categories has a cell for each.
            edges: of a numeric column, K - 1 increasing public numbers; cell k holds what is in
                [edges[k-1], edges[k]).
            norm: of the sensitivity: l2 for (discrete) Gaussian noise, l1 for (discrete) Laplace.
        """
        column, bounds, width = self.shape.cells(column, edges)

        def counts(held: Mapping[str, FloatArray]) -> FloatArray:
            cells = np.searchsorted(bounds, held[column], side="right")
            return np.bincount(cells, minlength=width)[None].astype(np.float64)

        return self._answer(
            histogram(self.shape.adjacency, norm),
            rounded.counted(self.shape.most, width=width),
            parties=(),
            width=width,
            compute=counts,
        )

    def quantile_costs(
        self, column: str, quantile: float, candidates: Sequence[float]
    ) -> Sensitive:
        """Return how far each candidate is from being a quantile, in ranks, of shape (1, K).

        Of n records, b of them below candidate t, it is |d·b - p·n| for the quantile p/d: whole
        numbers. `ExponentialMechanism` releases one of the candidates, marked by 1 among zeros:
        each with probability ∝ e^-(cost ε/2Δ), where Δ is what one cost moves by (Smith 2011, with
        public candidates in place of the records' own values, whose distances doubles would show).

        Args:
            column: a numeric one.
            quantile: in [0, 1], rounded to a fraction whose denominator is at most 10,000.
            candidates: 2 to 2^14 increasing public numbers.

        Raises `InvalidParameter`.
        """
        column, _ = self.shape.numeric(column)
        require_rate("quantile", quantile)
        _, bounds, _ = self.shape.cells(column, candidates)
        if not 2 <= len(bounds) <= MOST_CANDIDATES:
            raise InvalidParameter("candidates", len(bounds), f"2 to {MOST_CANDIDATES} numbers")
        share = Fraction(quantile).limit_denominator(_RANK_PARTS)
        p, d = share.numerator, share.denominator
        # below and above are the cells of a histogram; where n is public, d·below - p·n is
        # (d/2)(below - above) up to a public number; sizes of both move no further apart
        weight = Fraction(max(p, d - p)) if self.shape.resized else Fraction(d, 2)
        one = linearly_mapped(histogram(self.shape.adjacency, Norm.L1), weight)
        # all K of them together, for noise that is added to each
        every = linearly_mapped(histogram(self.shape.adjacency, Norm.L1), weight * len(bounds))

        def costs(held: Mapping[str, FloatArray]) -> FloatArray:
            values = np.sort(held[column])
            below = np.searchsorted(values, bounds, side="left")
            return np.abs(d * below - p * len(values))[None].astype(np.float64)

        return self._answer(
            every,
            rounded.counted(d * self.shape.most * (isqrt(len(bounds) - 1) + 1), width=len(bounds)),
            parties=(),
            width=len(bounds),
            compute=costs,
            each=one,
        )

    # --- what statistics move by --------------------------------------------------------------

    def _mean_moves(
        self, low: Fraction, high: Fraction, null: Fraction, norm: Norm, of: str
    ) -> Sensitivity:
        """Return what a mean of numbers in [low, high] moves by, `null` those of null records."""
        count, adjacency = self.shape.count, self.shape.adjacency
        if norm is Norm.L1:
            if self.shape.resized:
                raise InvalidParameter(
                    "norm",
                    norm,
                    f"l2 for a mean of {of} under add-remove-one: there is no rule "
                    "in l1; release sum and count",
                )
            return scaled(_total((high - low) / 2, adjacency, norm), Fraction(1, count))
        if adjacency is Adjacency.ZERO_OUT_ONE:
            return mean_of_bounded(max(high - null, null - low), count, adjacency)
        # means of numbers less the middle of their interval; the middle is public
        return mean_of_bounded((high - low) / 2, count, adjacency)

    def _exact_sum(self, column: BoundedColumn) -> Rounding:
        """Return the bounds of a sum of multiples of the column's step: it is exact."""
        most = self.shape.most * column.largest
        if most > rounded.MOST_COUNTED * Fraction(column.step):
            raise InvalidParameter(
                "step", column.step, "a larger power of two: doubles do not hold the sum exactly"
            )
        if column.step >= 1.0 and most <= rounded.MOST_COUNTED:
            return rounded.counted(int(most), width=1)
        return rounded.multiples(most, Fraction(column.step), width=1)

    def _mean_rounding(self, size: Fraction, norm: Norm, total: Rounding) -> Rounding:
        """Return the bounds of a mean of numbers of that size, whose sum has these bounds."""
        if norm is Norm.L1:
            return rounded.multiplied(total, Fraction(1, self.shape.count), width=1)
        # twice the size: of a number less one in the same interval
        return rounded.mean(2 * size, self.shape.most, 1)

    def _one(
        self,
        moves: Sensitivity,
        rounding: Rounding,
        compute: Callable[[Mapping[str, FloatArray]], float],
    ) -> Sensitive:
        """Return one number of the table, of shape (1, 1)."""
        return self._answer(
            moves,
            rounding,
            parties=(),
            width=1,
            compute=lambda held: np.array([[compute(held)]]),
        )


def _total(bound: Fraction, adjacency: Adjacency, norm: Norm) -> Sensitivity:
    """Return what a sum of numbers of size at most `bound`, one a record, moves by."""
    if norm is Norm.L2:
        return sum_of_bounded(bound, adjacency)
    # a row of weights, none larger than the bound, times the histogram of the values
    return linearly_mapped(histogram(adjacency, norm), bound)


def _from_null(column: BoundedColumn) -> Fraction:
    """Return how far a cell may be from a null record's."""
    return max(column.last - column.null, column.null - column.first)


def _products(
    first: BoundedColumn, second: BoundedColumn, *, squares: bool
) -> tuple[Fraction, Fraction]:
    """Return the least and the largest product of a cell of each, which may be the same cell."""
    corners = [x * y for x in (first.first, first.last) for y in (second.first, second.last)]
    if squares and first.first < 0 < first.last:
        return Fraction(0), max(corners)
    return min(corners), max(corners)


def _prepared(name: str, cells: FloatArray, column: Column) -> FloatArray:
    """Return a column's cells as statistics read them; raise `InvalidParameter` for others."""
    # a copy: a later change of the caller's array must not slip past the checks
    numbers = cells.copy()
    if isinstance(column, BoundedColumn):
        if not np.all(np.isfinite(numbers)):
            raise InvalidParameter(f"cells of {name!r}", "NaN or infinite", "finite numbers")
        return column.rounded(numbers)
    places = len(column.categories)
    if not np.all((numbers == np.rint(numbers)) & (numbers >= 0) & (numbers < places)):
        raise InvalidParameter(f"cells of {name!r}", "others", f"whole numbers in [0, {places})")
    return numbers
