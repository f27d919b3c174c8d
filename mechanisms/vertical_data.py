"""Vertically held private data: every party holds some columns of the same N records.

N is public and so is the order of the records: a release has one coordinate a record. Every party
holds a part of every record, so its releases name no parties, and the costs of all parties add up.

>>> shape = VerticalShape(parties=("bank", "shop"), count=1000, features=(4, 7), row_bound=1.0,
...                       adjacency=Adjacency.ZERO_OUT_ONE, public_labels=True)
>>> problem = LocalProblem(pull=np.zeros(1000), penalty=1.0, modulus=0.01, slope_bound=1.0,
...                        radius=1.0, tolerance=0.0)
>>> round(VerticalDataset.planned(shape).predictions("bank", problem).sensitivity.value, 8)
10.04987562
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, log2
from typing import Protocol

import numpy as np

from . import rounding as rounded
from .adjacency import Adjacency
from .ball_ridge import BallRidge, require_reachable
from .clipping import SQUARE_EXPONENT, cut_to_bound, largest_entry, longest_up, project_to_ball
from .dense_records import DenseRecords
from .errors import (
    InvalidParameter,
    named,
    require_bool,
    require_magnitude,
    require_nonnegative,
    require_positive,
    require_positive_int,
)
from .handle import PrivateHandle
from .labels import SIGNS
from .loss_trial import require_convex, require_label_gap, stated
from .protocols import FloatArray, Loss
from .refusals import Closed, refuse_copies, require_itself
from .row_blocks import real_numbers
from .sensitive import Sensitive
from .sensitivity import (
    Sensitivity,
    concatenated,
    declared,
    float_down,
    label_dual,
    mean_of_bounded,
    strongly_convex_argmin,
    sum_of_bounded,
    vertical_predictions,
)
from .stated_loss import StatedLoss, assuming

__all__ = ["LabelLoss", "LocalProblem", "VerticalDataset", "VerticalShape", "require_dual"]

_EPS = 2.0**-52
"""The spacing of doubles at 1."""

_BLOCK_NUMBERS = 2**15
"""Numbers of a block that stays in the caches for all steps of the centre's minimiser."""


class LabelLoss(Loss, Protocol):
    """A loss that states how far two labels' slopes lie apart: sup over scores of |l'(s, 1) - l'(s,
    -1)|.

    Where labels are private and features are other parties', that gap is all that a label moves.
    """

    @property
    def label_gap_bound(self) -> Fraction: ...


def require_dual(loss: Loss) -> StatedLoss:
    """Return a loss as stated, tried for what the centre's step needs: smooth, for labels ±1.

    Raises `InvalidParameter` for another loss, or one that random scores refute.
    """
    read = stated(loss)
    if read.curvature_bound is None:
        raise InvalidParameter("loss", loss, "with a curvature bound (smooth)")
    if not read.label_domain.contains(SIGNS):
        raise InvalidParameter("loss", loss, f"defined for {SIGNS}")
    require_convex(read)
    return read


@dataclass(frozen=True, slots=True)
class VerticalShape(Closed):
    """What everybody may know about vertically held data.

    Args:
        parties: names of the holders of columns, in order.
        count: the number of records N, public.
        features: the number of columns of each party.
        row_bound: l2 bound that every party's part of a record is cut to, within 2^-230 and 2^230
            as all positive parameters here.
        adjacency: replace-one or zero-out-one; N is a dimension, so it cannot change.
        public_labels: whether labels are public; then it is an assumption of every guarantee.
    """

    parties: tuple[str, ...]
    count: int
    features: tuple[int, ...]
    row_bound: float
    adjacency: Adjacency
    public_labels: bool

    def __post_init__(self) -> None:
        if not self.parties or len(set(self.parties)) != len(self.parties):
            raise InvalidParameter("parties", self.parties, "at least one party, each named once")
        require_positive_int("count", self.count)
        if len(self.features) != len(self.parties):
            raise InvalidParameter("features", self.features, "one number for each party")
        for width in self.features:
            require_positive_int("features", width)
        require_magnitude("row_bound", self.row_bound, SQUARE_EXPONENT)
        require_bool("public_labels", self.public_labels)
        if self.adjacency not in (Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE):
            raise InvalidParameter(
                "adjacency", self.adjacency, "REPLACE_ONE or ZERO_OUT_ONE: N is public"
            )


@dataclass(frozen=True, slots=True, eq=False)
class LocalProblem(Closed):
    """One party's step: min <c, D x> + (penalty/2)|D x|² + (modulus/2)|x|² over |x| <= radius.

    Args:
        pull: public c of shape (..., N), finite; here its entries are cut to ±slope_bound.
        penalty: rho > 0.
        modulus: lambda > 0.
        slope_bound: B.
        radius: b.
        tolerance: tau >= 0, declared here and priced; see `ball_ridge` for what it certifies.
    """

    pull: FloatArray
    penalty: float
    modulus: float
    slope_bound: float
    radius: float
    tolerance: float

    def __post_init__(self) -> None:
        if not isinstance(self.pull, np.ndarray) or not np.all(np.isfinite(self.pull)):
            raise InvalidParameter("pull", type(self.pull).__name__, "a finite public array")
        for name in ("penalty", "modulus", "slope_bound", "radius"):
            require_magnitude(name, getattr(self, name), SQUARE_EXPONENT)
            object.__setattr__(self, name, float(getattr(self, name)))
        require_nonnegative("tolerance", self.tolerance)
        # a copy, and plain numbers: what is priced is what is computed with
        pull = np.array(self.pull, dtype=np.float64)
        np.clip(pull, -self.slope_bound, self.slope_bound, out=pull)
        pull.setflags(write=False)
        object.__setattr__(self, "pull", pull)


@refuse_copies
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Columns:
    """A block of columns for each party, and the labels, of the same N records.

    Args:
        blocks: rows of shape (N, d_m) each, cut to the row bound, with what their minimisers need;
            None for columns that are elsewhere.
        labels: array of shape (N,), each -1 or +1; None where they are elsewhere.
    """

    blocks: tuple[BallRidge | None, ...]
    labels: FloatArray | None

    def of(self, index: int) -> BallRidge:
        """Return the block of the party with this index, which is here."""
        block = self.blocks[index]
        assert block is not None  # who asks has looked: `VerticalDataset._is_here`
        return block

    def known_labels(self) -> FloatArray:
        """Return the labels, which are here."""
        assert self.labels is not None
        return self.labels


class VerticalDataset(PrivateHandle[VerticalShape, Columns]):
    """Columns of M parties; every function of them is a `Sensitive` of shape (..., 1, N or d_m).

    Args:
        blocks: one array of shape (N, d_m) for each party; longer rows are cut to `row_bound`.
        labels: array of shape (N,), each -1 or +1.
        adjacency: replace-one or zero-out-one.
        row_bound: l2 bound of each party's part of a record.
        parties: names of the parties.
        public_labels: whether everybody knows the labels; else the centre alone does.

    Raises:
        InvalidParameter: non-finite entries, labels outside ±1, shapes that do not fit.
    """

    __slots__ = ()

    @np.errstate(all="ignore")  # what a caller made an error would tell of the records
    def __init__(
        self,
        blocks: Sequence[FloatArray],
        labels: FloatArray,
        *,
        adjacency: Adjacency | str,
        parties: tuple[str, ...],
        public_labels: bool,
        row_bound: float = 1.0,
    ) -> None:
        adjacency = named("adjacency", adjacency, Adjacency)
        require_magnitude("row_bound", row_bound, SQUARE_EXPONENT)
        row_bound = float(row_bound)  # one number for price and cut
        y = labels_of(labels)
        held: list[BallRidge] = []
        for block in blocks:
            rows = real_numbers("block", block).copy()
            if rows.ndim != 2 or len(rows) != len(y) or not np.all(np.isfinite(rows)):
                raise InvalidParameter("block.shape", rows.shape, f"finite, ({len(y)}, d)")
            held.append(BallRidge(project_to_ball(rows, row_bound), row_bound))
        widths = tuple(block.rows.shape[1] for block in held)
        self._shape = VerticalShape(parties, len(y), widths, row_bound, adjacency, public_labels)
        self._records = Columns(tuple(held), y)

    def predictions(self, party: str, problem: LocalProblem) -> Sensitive:
        """Return D x of shape (..., 1, N), x the party's minimiser of `problem`.

        A record moves its own coordinate by its row, and all others through x;
        `vertical_predictions` derives the bound on both.

        Args:
            party: whose columns D are.
            problem: what x minimises, with a public pull of shape (..., N).

        Raises `InvalidParameter`, without a look at the rows, for a tolerance out of reach.
        """
        require_itself("problem", problem, LocalProblem)
        sensitivity = vertical_predictions(
            row_bound=self.shape.row_bound,
            slope_bound=problem.slope_bound,
            radius=problem.radius,
            penalty=problem.penalty,
            modulus=problem.modulus,
            tolerance=problem.tolerance,
            adjacency=self.shape.adjacency,
        )
        self._require_reachable(party, problem)
        rounding = self._scores_rounding(party, Fraction(problem.radius))
        return self._of_party(
            party,
            sensitivity,
            rounding,
            self.shape.count,
            lambda block: self._minimiser(block, problem) @ block.rows.T,
        )

    def mean_gradient(self, party: str, loss: Loss, x: FloatArray) -> Sensitive:
        """Return the mean over records of the loss's gradient at the party's x: (..., 1, d_m).

        Each record counts with the party's own columns and the label, so a party needs the labels;
        it needs nobody else's columns. A record moves the mean by as much as a record that one
        party has the whole of.

        Args:
            party: whose columns D_m are.
            loss: l, of one output, for labels of -1 and +1; tried as `loss_trial.stated` does.
            x: public, of shape (..., d_m), finite.

        Raises `InvalidParameter` for private labels, another loss, or another shape.
        """
        shape, read = self.shape, stated(loss)
        if not shape.public_labels:
            raise InvalidParameter("public_labels", False, "True: every party reads the labels")
        if read.outputs != 1 or not read.label_domain.contains(SIGNS):
            raise InvalidParameter("loss", loss, f"of one output, defined for {SIGNS}")
        width = shape.features[self._index(party)]
        point = np.array(x, dtype=np.float64)
        if point.shape[-1:] != (width,) or not np.all(np.isfinite(point)):
            raise InvalidParameter("x.shape", point.shape, f"finite, (..., {width})")
        bound = Fraction(float(shape.row_bound)) * read.derivative_bound
        sensitivity = assuming(read, mean_of_bounded(bound, shape.count, shape.adjacency))
        known = declared(0, "labels are public", adjacency=shape.adjacency)
        index, rounding = self._index(party), rounded.mean(bound, shape.count, width)

        def mean(held: Columns) -> FloatArray:
            return _one_party(held, index).mean_gradient(read, point[..., None, :])

        return self._answer(
            concatenated(sensitivity, known),
            rounding,
            parties=(),
            width=width,
            compute=mean,
            held=int(self._is_here(index)),
        )

    def minimiser(self, party: str, problem: LocalProblem) -> Sensitive:
        """Return x of shape (..., 1, d_m), the party's minimiser of `problem`.

        On the ball a record's term <c_i, D_i x> + (penalty/2)(D_i x)² has gradients of norm at most
        row_bound (slope_bound + penalty row_bound radius).

        Args:
            party: whose columns D are.
            problem: what x minimises, with a public pull of shape (..., N).

        Raises `InvalidParameter` as `predictions` does.
        """
        require_itself("problem", problem, LocalProblem)
        shape = self.shape
        rows, penalty = Fraction(float(shape.row_bound)), Fraction(problem.penalty)
        slope = Fraction(problem.slope_bound) + penalty * rows * Fraction(problem.radius)
        sensitivity = strongly_convex_argmin(
            shape.count * rows * slope,
            problem.modulus,
            problem.tolerance,
            shape.count,
            shape.adjacency,
        )
        self._require_reachable(party, problem)
        width = shape.features[self._index(party)]
        # the tolerance covers rounding
        rounding = rounded.exact(Fraction(problem.radius), width=width)
        return self._of_party(
            party, sensitivity, rounding, width, lambda block: self._minimiser(block, problem)
        )

    def scores(self, party: str, x: FloatArray) -> Sensitive:
        """Return D x of shape (..., 1, N).

        A record's own coordinate is all that it moves, by row_bound·|x|.

        Args:
            party: whose columns D are.
            x: public, of shape (..., d_m), finite.

        Raises `InvalidParameter` for another shape.
        """
        width = self.shape.features[self._index(party)]
        point = np.array(x, dtype=np.float64)
        if point.shape[-1:] != (width,) or not np.all(np.isfinite(point)):
            raise InvalidParameter("x.shape", point.shape, f"finite, (..., {width})")
        longest = longest_up(point)
        sensitivity = sum_of_bounded(
            Fraction(float(self.shape.row_bound)) * longest, self.shape.adjacency
        )
        rounding = self._scores_rounding(party, longest)

        def scores(held: BallRidge) -> FloatArray:
            # at the origin they are public: private numbers times 0 would show their signs
            return point @ (held.rows.T if longest else np.zeros_like(held.rows.T))

        return self._of_party(party, sensitivity, rounding, self.shape.count, scores)

    def dual(
        self, loss: LabelLoss, target: FloatArray, *, penalty: float, tolerance: float
    ) -> Sensitive:
        """Return y of shape (..., 1, N) with y_i = l'(z_i, label_i) and y_i + penalty·z_i = a_i.

        That is the centre's step: z minimises sum_i l(z_i) - <a, z> + (penalty/2)|z|².

        Args:
            loss: l, smooth.
            target: public a of shape (..., N).
            penalty: rho > 0.
            tolerance: bound on the error of every y_i; declared, certified and priced.

        Raises:
            InvalidParameter: double precision does not reach the tolerance, for these targets.
        """
        require_magnitude("penalty", penalty, SQUARE_EXPONENT)
        require_positive("tolerance", tolerance)
        goal = np.array(target, dtype=np.float64)
        if goal.shape[-1:] != (self.shape.count,) or not np.all(np.isfinite(goal)):
            raise InvalidParameter("target.shape", goal.shape, f"finite, (..., {self.shape.count})")
        read = require_dual(loss)
        if self.shape.public_labels:
            sensitivity = declared(0, "labels are public", adjacency=self.shape.adjacency)
        else:
            require_label_gap(read)
            assert read.label_gap_bound is not None
            sensitivity = label_dual(
                derivative_bound=read.derivative_bound,
                label_gap=read.label_gap_bound,
                tolerance=tolerance,
                adjacency=self.shape.adjacency,
            )
            sensitivity = assuming(read, sensitivity, minimised=True)
        # the tolerance covers rounding
        size = read.derivative_bound * _root_up(self.shape.count)
        rounding = rounded.exact(size, width=self.shape.count)
        if self._records is not None:
            _require_dual_reachable(read, goal, penalty, tolerance)
        return self._answer(
            sensitivity,
            rounding,
            parties=(),
            width=self.shape.count,
            compute=lambda held: _dual(read, held.known_labels(), goal, penalty, tolerance)[
                ..., None, :
            ],
            held=int(self._is_here(None)),
        )

    def _is_here(self, index: int | None) -> bool:
        """Return whether the columns of the party with this index, or (None) the labels, are."""
        return True

    def _index(self, party: str) -> int:
        if party not in self.shape.parties:
            raise InvalidParameter("party", party, f"in {self.shape.parties}")
        return self.shape.parties.index(party)

    def _require_reachable(self, party: str, problem: LocalProblem) -> None:
        """Raise unless the tolerance is in reach; a plan may ask for any."""
        shape = self.shape
        if self._records is None:
            return
        require_reachable(
            problem.tolerance,
            count=shape.count,
            width=shape.features[self._index(party)],
            row_bound=shape.row_bound,
            sizes=float(np.abs(problem.pull).sum(axis=-1).max(initial=0.0)) * (1.0 + 1e-9),
            penalty=problem.penalty,
            modulus=problem.modulus,
            radius=problem.radius,
        )

    def _minimiser(self, block: BallRidge, problem: LocalProblem) -> FloatArray:
        if problem.pull.shape[-1:] != (self.shape.count,):
            raise InvalidParameter("pull.shape", problem.pull.shape, f"(..., {self.shape.count})")
        return block.minimiser(
            problem.pull,
            penalty=problem.penalty,
            modulus=problem.modulus,
            radius=problem.radius,
        )

    def _scores_rounding(self, party: str, longest: Fraction) -> rounded.Rounding:
        """Return the bounds of N scores of a party's rows at a point of norm at most `longest`."""
        bound = Fraction(float(self.shape.row_bound)) * longest
        return rounded.scores(bound, self.shape.features[self._index(party)], self.shape.count)

    def _of_party(
        self,
        party: str,
        sensitivity: Sensitivity,
        rounding: rounded.Rounding,
        width: int,
        compute: Callable[[BallRidge], FloatArray],
    ) -> Sensitive:
        """Return what `compute` makes of a party's rows: an array of shape (..., width)."""
        index = self._index(party)
        return self._answer(
            sensitivity,
            rounding,
            parties=(),
            width=width,
            compute=lambda held: compute(held.of(index))[..., None, :],
            held=int(self._is_here(index)),
        )


def labels_of(labels: FloatArray) -> FloatArray:
    """Return a read-only copy of labels; raise `InvalidParameter` unless each is -1 or +1."""
    y = real_numbers("labels", labels).copy()
    y.setflags(write=False)
    if y.ndim != 1 or not np.all(np.abs(y) == 1.0):
        raise InvalidParameter("labels", y.shape, "a vector of -1 and +1")
    return y


def _one_party(held: Columns, index: int) -> DenseRecords:
    """Return the records as the party with this index sees them."""
    rows, labels = held.of(index).rows, held.known_labels()
    places = np.arange(len(labels))
    slot = (np.zeros_like(places), places)
    return DenseRecords(rows[None], labels[None], np.array([len(labels)]), slot, 1.0)


def _root_up(count: int) -> int:
    """Return the least whole number that is at least sqrt(count)."""
    return isqrt(count - 1) + 1


def _dual(
    loss: StatedLoss, labels: FloatArray, target: FloatArray, penalty: float, tolerance: float
) -> FloatArray:
    """Return y of shape (..., N), one block of records after another.

    Each block stays in the caches for all its steps. See `_dual_block`.
    """
    y = np.empty(target.shape)
    records = target.shape[-1]
    some = max(1, _BLOCK_NUMBERS * records // max(1, target.size))
    for start in range(0, records, some):
        part = slice(start, start + some)
        y[..., part] = _dual_block(loss, labels[part], target[..., part], penalty, tolerance)
    return y


def _dual_block(
    loss: StatedLoss, labels: FloatArray, target: FloatArray, penalty: float, tolerance: float
) -> FloatArray:
    """Return y by enclosing z, with a number of steps that depends on nothing private.

    So a coordinate is a function of its own target and label only. As l'(z) + penalty·z grows at
    least by the penalty and at most by the loss's curvature c more, its excess over the target at
    the middle of an interval of width w leaves one of at most w·min(1/2, c/(2 penalty)).
    """
    slope, curvature = float_down(loss.derivative_bound), float(loss.curvature_bound or 0)
    known = np.abs(labels)  # 0 for a null record, which has no loss
    low, high = (target - slope) / penalty, (target + slope) / penalty
    bits = 4.0 + max(0.0, log2(slope / tolerance) + log2(1.0 + curvature / penalty))
    for _ in range(ceil(bits / log2(max(2.0, 2.0 * penalty / max(curvature, _EPS * penalty))))):
        z = 0.5 * (low + high)
        excess = (
            cut_to_bound(loss.derivative(z, labels), loss.derivative_bound) * known
            + penalty * z
            - target
        )
        least, most = z - excess / penalty, z - excess / (penalty + curvature)
        low = np.maximum(low, np.minimum(least, most))
        high = np.minimum(high, np.maximum(least, most))
    return np.clip(target - penalty * 0.5 * (low + high), -slope, slope)


def _require_dual_reachable(
    loss: StatedLoss, target: FloatArray, penalty: float, tolerance: float
) -> None:
    """Raise `InvalidParameter` unless doubles reach the tolerance for every data set.

    At a point, l'(z) + penalty·z - a is computed to E = 8 units in the last place of the sizes of
    its terms, |z| <= (|a| + slope)/penalty. So either end of the interval is wrong by E/penalty at
    most, halving it leaves twice that, and y = a - penalty·z is within 4 E of the exact one beside
    the sixteenth of the tolerance that the last interval leaves.
    """
    slope, curvature = float(loss.derivative_bound), float(loss.curvature_bound or 0)
    largest = largest_entry(target)
    size = largest + slope + (penalty + curvature) * (largest + slope) / penalty
    reach = 5.0 * 8.0 * _EPS * size
    if not reach <= tolerance:
        raise InvalidParameter(
            "tolerance",
            tolerance,
            f"at least {reach:.3g}, which double precision reaches; declare more (it is priced)",
        )
