"""The falsifier: looks for neighbours that refute a sensitivity lemma.

A lemma says that a released quantity moves by at most so much between neighbours of a domain. The
search tries the domain's extreme pairs first (rows at the norm bound, opposite and null rows, other
labels), then improves the best ones and random ones. What it finds is a proof: two data sets. That
it finds nothing proves nothing.

>>> def mean(table: SearchTable, public: FloatArray) -> FloatArray:
...     return table.rows.mean(axis=0)
>>> records = ReplacedRecord(count=5, features=2, adjacency=Adjacency.REPLACE_ONE)
>>> falsify(SensitivityLemma(mean, records, claimed=1 / 5)).refuted
True
>>> falsify(SensitivityLemma(mean, records, claimed=2 / 5)).refuted
False
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import inf, isfinite
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.clipping import project_to_ball
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_positive,
    require_positive_int,
)
from ..mechanisms.protocols import FloatArray

_ROUNDING = 1e-7
"""Relative excess over the claim that counts as rounding of the query, and refutes nothing."""
_LEAST_CHANGE = 1e-12
"""Absolute excess that counts as rounding, for claims of zero."""
_REPEATABLE = 1e-9
"""Of a change: what two evaluations of one data set may differ by."""
_MOST_SIGNS = 6
_NEARLY = 0.05
_EACH = 1000
"""Evaluations that improving one start may take, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchTable:
    """Records: `rows` of shape (n, d), `labels` of shape (n,). A null record is zero in both."""

    rows: FloatArray
    labels: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Two neighbouring data sets, and public input of shape (p,) at which both are looked at."""

    dataset: SearchTable
    neighbour: SearchTable
    public: FloatArray


Query = Callable[[SearchTable, FloatArray], FloatArray]
"""The released quantity, from records and public input, before any noise."""


class Domain(Protocol):
    """All pairs of neighbours that a lemma speaks of, as the image of the box [-1, 1]^dimension."""

    @property
    def adjacency(self) -> Adjacency: ...

    @property
    def dimension(self) -> int:
        """How many numbers describe a pair."""
        ...

    def extremes(self) -> Iterator[FloatArray]:
        """Yield the points of the box that stand for extreme pairs."""
        ...

    def pair(self, point: FloatArray) -> Neighbours:
        """Return the pair of any point of the box, of shape (dimension,)."""
        ...


@dataclass(frozen=True, slots=True)
class SensitivityLemma:
    """A released quantity moves by at most `claimed` (l2) between neighbours of the domain.

    Args:
        released: the quantity; deterministic.
        domain: which pairs.
        claimed: the bound, or a function of the pair where the bound depends on it.
    """

    released: Query
    domain: Domain
    claimed: float | Callable[[Neighbours], float]

    def __post_init__(self) -> None:
        if not callable(self.claimed):
            require_nonnegative("claimed", self.claimed)

    def bound(self, pair: Neighbours) -> float:
        """Return what the lemma claims of this pair."""
        return self.claimed(pair) if callable(self.claimed) else self.claimed

    def change(self, pair: Neighbours) -> float:
        """Return how far the quantity really moves.

        Raises `InvalidParameter` when it is not finite or changes its shape.

        Args:
            pair: of the domain.

        Returns the l2 distance between the two results; both are evaluated at the same public
        input.
        """
        first, second = (
            np.asarray(self.released(table, pair.public), dtype=np.float64)
            for table in (pair.dataset, pair.neighbour)
        )
        if first.shape != second.shape:
            raise InvalidParameter("released", second.shape, f"of shape {first.shape} throughout")
        moved = float(np.linalg.norm(first - second))
        if not isfinite(moved):
            raise InvalidParameter("released", moved, "finite")
        return moved


@dataclass(frozen=True, slots=True, eq=False)
class Falsification:
    """The worst pair that the search has found.

    Args:
        claimed: what the lemma says of it.
        change: how far the quantity moves.
        pair: the two data sets.
        evaluations: how many pairs were tried.
        method: what found it.
    """

    claimed: float
    change: float
    pair: Neighbours
    evaluations: int
    method: str

    @property
    def refuted(self) -> bool:
        """Whether the pair moves by more than claimed, beyond rounding. False proves nothing."""
        return self.change > self.claimed * (1 + _ROUNDING) + _LEAST_CHANGE

    @property
    def factor(self) -> float:
        """change / claimed: above 1 the lemma is refuted."""
        if self.claimed == 0.0:
            return inf if self.change > 0.0 else 0.0
        return self.change / self.claimed


def falsify(
    lemma: SensitivityLemma, *, restarts: int = 6, samples: int = 1000, seed: int = 0
) -> Falsification:
    """Return the pair that comes closest to refuting the lemma, or refutes it most.

    Args:
        lemma: what is claimed.
        restarts: how many of the best starts are improved.
        samples: how many random pairs are tried besides the extreme ones.
        seed: of the random pairs.

    Raises `InvalidParameter` as `SensitivityLemma.change` does, and where one data set gives two
    results: their difference is no distance of neighbours.
    """
    require_nonnegative("restarts", restarts)
    require_nonnegative("samples", samples)
    search = _Search(lemma)
    starts = [(search.excess(point), point) for point in lemma.domain.extremes()]
    search.method = "random pairs"
    points = np.random.default_rng(seed).uniform(-1, 1, (samples, lemma.domain.dimension))
    starts += [(search.excess(point), point) for point in points]
    search.method = "optimisation"
    box = [(-1.0, 1.0)] * lemma.domain.dimension
    for _, point in sorted(starts, key=lambda start: start[0])[:restarts]:
        minimize(search.excess, point, method="Powell", bounds=box, options={"maxfev": _EACH})
    if search.result is None:
        raise InvalidParameter("samples", samples, "at least 1 where there are no extreme pairs")
    worst = search.result.pair
    same = Neighbours(worst.dataset, worst.dataset, worst.public)
    if SensitivityLemma.change(lemma, same) > _REPEATABLE * search.result.change:
        needed = "a function of rows, labels and public alone: one data set gives two results"
        raise InvalidParameter("released", lemma.released, needed)
    return search.result


@dataclass(slots=True)
class _Search:
    lemma: SensitivityLemma
    method: str = "extreme pairs"
    evaluations: int = 0
    least: float = inf
    worst: tuple[float, float, Neighbours, str] | None = None

    def excess(self, point: FloatArray) -> float:
        """Return -change/claimed at a point, and remember the worst pair."""
        pair = self.lemma.domain.pair(np.clip(point, -1.0, 1.0))
        change, claimed = self.lemma.change(pair), self.lemma.bound(pair)
        self.evaluations += 1
        # a bound of zero leaves nothing to divide by
        excess = -change / claimed if claimed > 0 else -change
        if excess < self.least:
            self.least, self.worst = excess, (claimed, change, pair, self.method)
        return excess

    @property
    def result(self) -> Falsification | None:
        """The worst pair so far."""
        if self.worst is None:
            return None
        claimed, change, pair, method = self.worst
        return Falsification(claimed, change, pair, self.evaluations, method)


@dataclass(frozen=True, slots=True)
class ReplacedRecord:
    """Data sets of `count` records, one of which is replaced, made null or removed.

    The records that do not differ are copies of one: their number dilutes what one record does, and
    where they matter at all, they matter most together.

    Args:
        count: n, of the larger data set.
        features: d.
        adjacency: replace-one, zero-out-one or add-remove-one.
        row_bound: l2 bound on rows.
        labels: what a label may be.
        public: dimension p of the public input.
        public_bound: bound on each of its entries.
    """

    count: int
    features: int
    adjacency: Adjacency
    row_bound: float = 1.0
    labels: tuple[float, ...] = (-1.0, 1.0)
    public: int = 0
    public_bound: float = 1.0

    def __post_init__(self) -> None:
        require_positive_int("count", self.count)
        require_positive_int("features", self.features)
        require_positive("row_bound", self.row_bound)
        require_nonnegative("public", self.public)
        require_positive("public_bound", self.public_bound)
        if self.adjacency is Adjacency.REPLACE_FEATURE_COLUMN:
            raise InvalidParameter("adjacency", self.adjacency, "a relation between records")
        if not self.labels:
            raise InvalidParameter("labels", self.labels, "at least one")

    @property
    def dimension(self) -> int:
        """Three records (differing, its replacement, any other), then the public input."""
        return 3 * (self.features + 1) + self.public

    def extremes(self) -> Iterator[FloatArray]:
        """Yield pairs of extreme records, with every extreme public input."""
        axis = np.eye(self.features)
        labels = np.linspace(-1, 1, max(2, len(self.labels)))[[0, -1]]
        own = [axis[0], np.ones(self.features) / np.sqrt(self.features)]
        other = [axis[0], -axis[0], axis[-1], 0 * axis[0], _NEARLY * axis[-1] - axis[0]]
        rest = [axis[0], 0 * axis[0]]
        for rows in product(own, other, rest):
            for signs in product(labels, repeat=2):
                marks = (signs[0], signs[1], signs[0])
                records = [np.append(row, mark) for row, mark in zip(rows, marks, strict=True)]
                for public in _directions(self.public):
                    yield np.concatenate([*records, public])

    def pair(self, point: FloatArray) -> Neighbours:
        """Return the pair of a point; rows are cut to the bound, and no rounding goes beyond."""
        width = self.features + 1
        records = point[: 3 * width].reshape(3, width)
        rows = project_to_ball(records[:, :-1] * self.row_bound, self.row_bound)
        place = np.rint((records[:, -1] + 1) / 2 * (len(self.labels) - 1)).astype(int)
        marks = np.asarray(self.labels, dtype=np.float64)[place]
        dataset = SearchTable(
            *(np.repeat(x[[0, 2]], (1, self.count - 1), axis=0) for x in (rows, marks))
        )
        public = point[3 * width :] * self.public_bound
        if self.adjacency is Adjacency.ADD_REMOVE_ONE:
            return Neighbours(dataset, SearchTable(dataset.rows[1:], dataset.labels[1:]), public)
        null = self.adjacency is Adjacency.ZERO_OUT_ONE
        replacement = SearchTable(dataset.rows.copy(), dataset.labels.copy())
        replacement.rows[0], replacement.labels[0] = (0.0, 0.0) if null else (rows[1], marks[1])
        return Neighbours(dataset, replacement, public)


@dataclass(frozen=True, slots=True)
class FlippedColumn:
    """Matrices with unit rows that differ in one column, by at most `distance` (Frobenius norm).

    Unit rows leave only signs free: entries of the second column change theirs. A few rows lie in
    the plane of the first two columns; the others are the unit vectors of the other columns, one
    each, which keeps every matrix of full column rank.

    Args:
        features: d >= 2.
        moving: how many rows lie in the plane, at least 2.
        public: how many public vectors of shape (n,) there are; they are zero outside the plane.
        public_bound: bound on their entries.
        distance: of neighbours.
    """

    features: int
    moving: int = 3
    public: int = 1
    public_bound: float = 1.0
    distance: float = 1.0
    adjacency: Adjacency = field(default=Adjacency.REPLACE_FEATURE_COLUMN, init=False)

    def __post_init__(self) -> None:
        for name in ("features", "moving"):
            value = getattr(self, name)
            require_positive_int(name, value)
            if value < 2:
                raise InvalidParameter(name, value, "in [2, inf)")
        require_nonnegative("public", self.public)
        require_positive("public_bound", self.public_bound)
        require_positive("distance", self.distance)

    @property
    def dimension(self) -> int:
        """Angle and sign of every moving row, and its entry of every public vector."""
        return self.moving * (2 + self.public)

    def extremes(self) -> Iterator[FloatArray]:
        """Yield pairs that spend the whole distance on equally large entries."""
        for flips in range(1, self.moving):
            angle = np.arcsin(min(1.0, self.distance / (2 * np.sqrt(flips)))) / np.pi
            for copies in range(flips, self.moving + 1):
                angles = np.where(np.arange(self.moving) < copies, angle, 0.0)
                signs = np.where(np.arange(self.moving) < flips, 1.0, -1.0)
                for public in _directions(self.moving * self.public):
                    yield np.concatenate([angles, signs, public])

    def pair(self, point: FloatArray) -> Neighbours:
        """Return the pair of a point; flipped entries shrink to meet the distance."""
        k = self.moving
        across = np.sin(np.pi * point[:k])
        along = np.cos(np.pi * point[:k])
        flipped = point[k : 2 * k] > 0
        moved = 2 * float(np.linalg.norm(across[flipped]))
        if moved > self.distance:
            across = np.where(flipped, across * self.distance / moved, across)
            along = np.copysign(np.sqrt(1 - across**2), along)
        rows = np.zeros((k + self.features - 2, self.features))
        rows[:k, 0], rows[:k, 1] = along, across
        rows[k:, 2:] = np.eye(self.features - 2)
        neighbour = rows.copy()
        neighbour[:k, 1] = np.where(flipped, -across, across)
        labels = np.ones(len(rows))
        public = np.zeros((self.public, len(rows)))
        public[:, :k] = self.public_bound * point[2 * k :].reshape(self.public, k)
        return Neighbours(SearchTable(rows, labels), SearchTable(neighbour, labels), public.ravel())


def _directions(dimension: int) -> Iterator[FloatArray]:
    """Yield the extreme points of [-1, 1]^dimension, or those of its faces' middles where many."""
    if dimension <= _MOST_SIGNS:
        yield from (
            np.array(signs, dtype=np.float64) for signs in product((-1, 1), repeat=dimension)
        )
        return
    for sign in (-1.0, 1.0):
        yield np.full(dimension, sign)
        yield from sign * np.eye(dimension)
