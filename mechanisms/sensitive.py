"""Sensitive values: private numbers that know how far they can move between neighbours.

A `Sensitive` stands for an array of shape (..., P, d): trials first, then one row for each of P
parties with disjoint records, then d coordinates. Arithmetic with public numbers and arrays derives
the new sensitivity; everything else raises. The one way out is a curator's `release`.

>>> from fractions import Fraction
>>> import numpy as np
>>> from dpledger.mechanisms.adjacency import Adjacency
>>> from dpledger.mechanisms.rounding import exact
>>> from dpledger.mechanisms.sensitivity import declared
>>> s = declared(1.0, "example", adjacency=Adjacency.REPLACE_ONE)
>>> x = Sensitive(s, exact(Fraction(1), width=3), parties=("only",), dimension=3)
>>> (np.ones(3) - 2.0 * x).sensitivity.value
2.0
>>> float(x)
Traceback (most recent call last):
...
dpledger.mechanisms.errors.UnprotectedConversion: float() would let a sensitive value out ...
"""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any, NoReturn, cast

import numpy as np

from . import rounding as rounded
from .clipping import largest_entry, longest_up, project_to_ball
from .data_shape import EVERYBODY
from .errors import DpledgerError, InvalidParameter, UnprotectedFunction, require_nonnegative
from .operator_norm import operator_norm_up
from .protocols import FloatArray
from .quiet import quietly
from .refusals import ADVICE, Closed, refuse_ways_out, require_itself
from .rounding import Rounding
from .row_blocks import real_numbers
from .sensitivity import (
    Norm,
    Sensitivity,
    added,
    clipped,
    concatenated,
    concatenated_disjoint,
    linearly_mapped,
    rounded_up,
    scaled,
)
from .subsampling import SampledPart

__all__ = ["Sensitive", "concatenate", "concatenate_disjoint", "linear_map"]


_LARGEST_ERROR = Fraction(1, 2**11)
"""A rounding error may be this fraction of the sensitivity: it moves the value by twice as much."""

_LARGEST_VALUE = Fraction(2**1000)
"""Beyond, doubles overflow: an infinity would show its record through any noise."""

_PUBLIC_STEP, _PUBLIC_FLOOR = 2**8, 2**24
"""Public operands count as the next of 2^24, 2^32, ... sensitivities: so a plan, which does not
know them yet, and a run agree on what rounding costs."""

Public = float | int | np.floating[Any] | np.integer[Any] | FloatArray
"""What a `Sensitive` may be combined with: numbers and arrays that anybody may know."""


@refuse_ways_out
class Sensitive(Closed):
    """A private array of shape (..., P, d) with the l2 sensitivity that its making derived.

    Made by `PrivateDataset` and by arithmetic, not by hand. Without a value it stands for one: the
    planner's, which knows shapes and counts only.

    Args:
        sensitivity: bound on the change of the whole (P, d) block of one trial between neighbours,
            for exact arithmetic. A value of sensitivity 0 is public.
        rounding: public bounds on the size and the rounding error of each row.
        parties: names of the P holders of disjoint records; none where every record may enter
            everything, as in vertically held data: then there is one row.
        dimension: d.
        value: array of shape (..., P, d), or None under planning.
        held: number of rows of `value`, and of public operands: P, or fewer where only some of the
            parties' data are (`LocalDataset`).
        sampled_part: how the value moves if it was computed on a hidden sample; `sensitivity` then
            bounds its move for whoever knows the sample.
        categories: where coordinate i of a row is the answer of its party's record i alone, one of
            0, ..., categories - 1: how many these are. No rule keeps it.
        each: what any single number of the value moves by, in l1, where they are costs of
            candidates. No rule keeps it.
        auditable: whether audits may look at the value (see `inside`): its records are those of
            whoever audits.

    Raises:
        InvalidParameter: rounding errors above a thousandth of the sensitivity, or values that may
            overflow. Both follow from public numbers.
    """

    __slots__ = (
        "_auditable",
        "_value",
        "categories",
        "dimension",
        "each",
        "held",
        "parties",
        "rounding",
        "sampled_part",
        "sensitivity",
    )

    sensitivity: Sensitivity
    rounding: Rounding
    parties: tuple[str, ...]
    dimension: int
    held: int
    sampled_part: SampledPart | None
    categories: int
    each: Sensitivity | None
    _value: FloatArray | None
    _auditable: bool

    def __init__(
        self,
        sensitivity: Sensitivity,
        rounding: Rounding,
        *,
        parties: tuple[str, ...],
        dimension: int,
        compute: Callable[[], FloatArray] | None = None,
        held: int | None = None,
        sampled_part: SampledPart | None = None,
        categories: int = 0,
        each: Sensitivity | None = None,
        auditable: bool = False,
    ) -> None:
        if hasattr(self, "sensitivity"):
            raise AttributeError(
                "Expected no second __init__: a Sensitive is made once, by a rule."
            )
        require_itself("sensitivity", sensitivity, Sensitivity)
        require_itself("rounding", rounding, Rounding)
        held = max(1, len(parties)) if held is None else held
        if sensitivity.squared == 0 and rounding.error:
            # public: it is what was computed
            rounding = rounded.exact(rounding.magnitude, width=dimension)
        if rounding.width != dimension:
            raise InvalidParameter("rounding.width", rounding.width, f"the dimension {dimension}")
        _require_precise(rounding, _least(sensitivity, sampled_part))
        fields = (("sensitivity", sensitivity), ("parties", parties), ("dimension", dimension))
        more = (("rounding", rounding), ("sampled_part", sampled_part), ("each", each))
        last = (("held", held), ("categories", categories), ("_auditable", auditable))
        for name, content in (*fields, *more, *last):
            object.__setattr__(self, name, content)
        # last: what refuses a value by public facts finds none yet, nor does its traceback
        block = (held, dimension)
        value = None if compute is None else quietly(lambda: _fitting(compute(), block))
        if value is not None and not sensitivity.squared:
            _require_within(value, rounding.magnitude)
        object.__setattr__(self, "_value", value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Expected no change of {name}: a Sensitive is made once, by a rule.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Expected no change of {name}: a Sensitive is made once, by a rule.")

    @property
    def rows(self) -> int:
        """The number of rows of one trial's block, wherever they are: what is priced."""
        return max(1, len(self.parties))

    @property
    def planned(self) -> bool:
        """Whether this stands for a value that nobody has computed."""
        return self._value is None

    def __repr__(self) -> str:
        """Show shape and sensitivity, never the value."""
        if not hasattr(self, "_auditable"):
            return "<Sensitive: refused>"
        return (
            f"<Sensitive: {self.rows} x {self.dimension}, "
            f"{self.sensitivity.norm.value} sensitivity {rounded_up(self.sensitivity.root)} "
            f"({self.sensitivity.adjacency.value})>"
        )

    def __add__(self, other: "Sensitive | Public") -> "Sensitive":
        """Return the sum: of two private values, or with public numbers, which move nothing."""
        if issubclass(type(other), Sensitive):
            return self._plus(cast("Sensitive", other))
        public, size = self._public(other)
        return self._derived(
            lambda sensitivity: sensitivity,
            rounded.shifted(self.rounding, size),
            lambda value: value + public,
        )

    def __radd__(self, other: Public) -> "Sensitive":
        return self + other

    def __sub__(self, other: "Sensitive | Public") -> "Sensitive":
        return self + (-other)

    def __rsub__(self, other: Public) -> "Sensitive":
        # -self + other, in one sweep over the numbers
        public, size = self._public(other)
        return self._derived(
            lambda sensitivity: scaled(sensitivity, -1.0),
            rounded.shifted(self.rounding, size),
            lambda value: public - value,
        )

    def __neg__(self) -> "Sensitive":
        return self * -1.0

    def __pos__(self) -> "Sensitive":
        return self

    def __mul__(self, factor: float) -> "Sensitive":
        """Return the product with a public number, which scales the sensitivity by its size."""
        number = _public_number(factor)
        return self._derived(
            lambda sensitivity: scaled(sensitivity, number),
            rounded.scaled(self.rounding, Fraction(number)),
            lambda value: value * number,
        )

    def __rmul__(self, factor: float) -> "Sensitive":
        return self * factor

    def __truediv__(self, divisor: float) -> "Sensitive":
        """Return the quotient by a public number other than 0."""
        number = _public_number(divisor)
        if number == 0:
            raise InvalidParameter("divisor", divisor, "a finite number other than 0")
        # the rounded reciprocal is a public number like any other: sensitivity and value use it
        return self * (1.0 / number)

    def __rmatmul__(self, matrix: FloatArray) -> "Sensitive":
        """Return A·x for each row x; see `linear_map`."""
        public = np.array(real_numbers("matrix", matrix))  # what is priced is what is used
        if public.ndim != 2 or public.shape[1] != self.dimension:
            raise InvalidParameter("matrix.shape", public.shape, f"(m, {self.dimension})")
        bound = operator_norm_up(public, self.sensitivity.norm)
        return self._derived(
            lambda sensitivity: linearly_mapped(sensitivity, bound),
            rounded.mapped(self.rounding, bound, height=len(public)),
            lambda value: value @ public.T,
            dimension=len(public),
        )

    def concatenated(self, second: "Sensitive") -> "Sensitive":
        """Return (f, g) along the last axis, both functions of the same parties' records."""
        require_itself("second", second, Sensitive)
        if self.parties != second.parties or self.planned is not second.planned:
            raise InvalidParameter(
                "second", second, "of the same parties; see concatenate_disjoint"
            )
        self._require_points("second", second)
        return Sensitive(
            concatenated(self.sensitivity, second.sensitivity),
            rounded.paired(self.rounding, second.rounding),
            parties=self.parties,
            dimension=self.dimension + second.dimension,
            compute=None if self.planned else lambda: self._stacked(second, axis=-1),
            held=self.held,
            sampled_part=_joint_part(self, second, concatenated),
            auditable=self._auditable and second._auditable,
        )

    def concatenated_disjoint(self, second: "Sensitive") -> "Sensitive":
        """Return the rows of two blocks of disjoint parties, one under the other."""
        require_itself("second", second, Sensitive)
        # without names, any record may enter both
        named = all(each.parties not in ((), EVERYBODY) for each in (self, second))
        shared = set(self.parties) & set(second.parties)
        if not named or shared or self.dimension != second.dimension:
            raise InvalidParameter(
                "second", second, f"of other parties, dimension {self.dimension}"
            )
        if self.planned is not second.planned:
            raise InvalidParameter("second", second, "planned like the first")
        if (self.held, second.held) != (self.rows, second.rows):
            raise InvalidParameter("second", second, "held, as the first, with all parties' rows")
        self._require_points("second", second)
        if self.sampled_part is not None or second.sampled_part is not None:
            raise UnprotectedFunction("a sample of some parties' records is released on its own.")
        return Sensitive(
            concatenated_disjoint(self.sensitivity, second.sensitivity),
            rounded.widest(self.rounding, second.rounding),
            parties=self.parties + second.parties,
            dimension=self.dimension,
            compute=None if self.planned else lambda: self._stacked(second, axis=-2),
            auditable=self._auditable and second._auditable,
        )

    def _known(self) -> FloatArray:
        """Return the value of one that is not planned. No other frame gives it a name."""
        if self._value is None:
            raise InvalidParameter("sensitive", "planned", "with a value")
        return self._value

    def _stacked(self, second: "Sensitive", *, axis: int) -> FloatArray:
        """Return both values along an axis."""
        a, b = self._known(), second._known()
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        blocks = [np.broadcast_to(v, lead + v.shape[-2:]) for v in (a, b)]
        return np.concatenate(blocks, axis=axis)

    def clipped(self, radius: float) -> "Sensitive":
        """Return each party's row projected on the l2 ball of the given radius around 0.

        A projection on a convex set brings no two points further apart, and all rows within twice
        the radius: the sensitivity is the smaller of both bounds.

        Args:
            radius: > 0, in units of the value.

        Raises `UnprotectedFunction` for what was computed on a hidden sample.
        """
        require_nonnegative("radius", radius)
        radius = float(radius)  # one number for price and cut
        if self.sampled_part is not None:
            raise UnprotectedFunction(
                "clipping what was computed on a sample has no rule here; clip record by record."
            )
        return self._derived(
            lambda sensitivity: clipped(sensitivity, radius),
            rounded.clipped(self.rounding, Fraction(radius)),
            lambda value: project_to_ball(value, radius),
        )

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: object
    ) -> "Sensitive":
        """Let `array + sensitive` and its kin defer to the rules; refuse every other function."""
        rule = _DEFERRED.get(ufunc)
        if rule is None or method != "__call__" or options or inputs[1] is not self:
            raise UnprotectedFunction(
                f"numpy.{ufunc.__name__} has no sensitivity rule here; {ADVICE}, or use + - * / "
                "with public numbers, linear_map or clipped."
            )
        return rule(self, inputs[0])

    def __array_function__(self, func: Callable[..., Any], *_: object) -> NoReturn:
        raise UnprotectedFunction(
            f"numpy.{func.__name__} has no sensitivity rule; {ADVICE}, or use concatenate, "
            "linear_map or clipped of dpledger.mechanisms."
        )

    def _derived(
        self,
        rule: Callable[[Sensitivity], Sensitivity],
        rounding: Rounding,
        compute: Callable[[FloatArray], FloatArray],
        *,
        dimension: int | None = None,
    ) -> "Sensitive":
        """Return what `compute` makes of the value; `rule` is that of a linear map or a clip."""
        sensitivity, width = rule(self.sensitivity), dimension or self.dimension
        # exactly public: private numbers times 0 would still show their signs
        emptied = bool(self.sensitivity.squared) and not sensitivity.squared
        part = self.sampled_part

        def derived() -> FloatArray:
            value = self._known()
            return np.zeros((*value.shape[:-1], width)) if emptied else compute(value)

        return Sensitive(
            sensitivity,
            rounding,
            parties=self.parties,
            dimension=width,
            compute=None if self.planned else derived,
            held=self.held,
            sampled_part=None if part is None else part.mapped(rule),
            auditable=self._auditable,
        )

    def _plus(self, other: "Sensitive") -> "Sensitive":
        """Return the sum of two private values of the same parties; l2 sensitivities add up.

        A record may move both in one direction, so no more is known. Where one of both is public,
        its size counts as a public operand's does, in the bounds on rounding.
        """
        self._require_aligned(other)
        part = _joint_part(self, other, added)
        if self.sensitivity.squared and not other.sensitivity.squared:
            size = self._counted(other.rounding.magnitude)
            rounding = rounded.shifted(self.rounding, size)
        elif other.sensitivity.squared and not self.sensitivity.squared:
            size = other._counted(self.rounding.magnitude)
            rounding = rounded.shifted(other.rounding, size)
        else:
            rounding = rounded.joined(self.rounding, other.rounding)
        return Sensitive(
            added(self.sensitivity, other.sensitivity),
            rounding,
            parties=self.parties,
            dimension=self.dimension,
            compute=None if self.planned else lambda: self._known() + other._known(),
            held=self.held,
            sampled_part=part,
            auditable=self._auditable and other._auditable,
        )

    def _public(self, other: object) -> tuple[FloatArray, Fraction]:
        """Return a public array that fits the rows, finite, and what a row of it counts as."""
        try:
            array = np.array(other, dtype=np.float64)  # what is priced is what is used
        except DpledgerError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameter("public operand", other, "a number or an array") from None
        size = largest_entry(array)
        if not np.isfinite(size):
            raise InvalidParameter("public operand", "NaN or infinity", "with finite entries")
        block = (self.held, self.dimension)
        try:
            fits = np.broadcast_shapes(array.shape[-2:], block) == block
        except ValueError:
            fits = False
        if not fits:
            raise InvalidParameter("public operand shape", array.shape, f"broadcastable to {block}")
        wide = self.dimension if self.sensitivity.norm is Norm.L1 else isqrt(self.dimension - 1) + 1
        return array, self._counted(Fraction(size) * wide)

    def _counted(self, size: Fraction) -> Fraction:
        """Return what a public operand with rows of norm at most `size` counts as."""
        least = _least(self.sensitivity, self.sampled_part)
        step = _PUBLIC_FLOOR * least
        while least and step < size:
            step *= _PUBLIC_STEP
        return step if least else size

    def _require_aligned(self, other: "Sensitive") -> None:
        """Raise `InvalidParameter` unless the other value has the same parties, dimension and rows,
        and is planned where this one is.
        """
        if other.parties != self.parties or other.dimension != self.dimension:
            raise InvalidParameter(
                "operand", other, f"with the same parties and dimension {self.dimension}"
            )
        if other.planned is not self.planned or other.held != self.held:
            raise InvalidParameter("operand", other, "planned, or held, like the other one")
        self._require_points("operand", other)

    def _require_points(self, name: str, other: "Sensitive") -> None:
        """Raise `InvalidParameter` for the value at another number of public points."""
        if self._value is not None and other._value is not None:
            mine, its = self._value.shape[:-2], other._value.shape[:-2]
            try:
                np.broadcast_shapes(mine, its)
            except ValueError:
                raise InvalidParameter(name, f"at {its} points", f"at {mine}, or at one") from None


_DEFERRED: dict[np.ufunc, Callable[[Sensitive, Any], Sensitive]] = {
    np.add: Sensitive.__radd__,
    np.subtract: Sensitive.__rsub__,
    np.multiply: Sensitive.__rmul__,
    np.matmul: Sensitive.__rmatmul__,
}
"""What `public <op> sensitive` becomes when NumPy owns the left operand."""


def linear_map(matrix: FloatArray, sensitive: Sensitive) -> Sensitive:
    """Return A·x for each row x of a sensitive value, of shape (..., P, m).

    The sensitivity is multiplied by a certified upper bound on A's operator norm (`operator_norm`).

    Args:
        matrix: A, public, of shape (m, d), finite.
        sensitive: of dimension d.

    Raises `InvalidParameter` when the matrix is not a finite (m, d) array.
    """
    return sensitive.__rmatmul__(matrix)


def concatenate(first: Sensitive, second: Sensitive) -> Sensitive:
    """Return (f, g) along the last axis, both functions of the same parties' records.

    A record may move both, so that squared l2 sensitivities add up.

    Args:
        first: f, of dimension d.
        second: g, of dimension d', of the same parties in the same order.

    Raises `InvalidParameter` for other parties, or where one is planned and the other is not.
    """
    return first.concatenated(second)


def concatenate_disjoint(first: Sensitive, second: Sensitive) -> Sensitive:
    """Return the rows of two blocks of disjoint parties, one under the other.

    A record is in one of both, so that the larger sensitivity is that of all rows.

    Args:
        first: of some parties.
        second: of others, of the same dimension.

    Raises `InvalidParameter` for a shared party or another dimension, `UnprotectedFunction` for
    values computed on hidden samples.
    """
    return first.concatenated_disjoint(second)


def _fitting(value: FloatArray, block: tuple[int, int]) -> FloatArray:
    """Return a computed value as a plain array: of a subclass, its own functions would be handed
    what it is added to. Raise `InvalidParameter` unless it has the rows and numbers of `block`.
    """
    found = np.asarray(value, dtype=np.float64)
    if found.shape[-2:] != block:
        raise InvalidParameter("value.shape", found.shape, f"(..., {block[0]}, {block[1]})")
    return found


def _require_within(value: FloatArray, magnitude: Fraction) -> None:
    """Raise `InvalidParameter` for a public value with rows longer than is said of it: what is
    added to private ones rounds by their size.
    """
    finite = np.isfinite(largest_entry(value))
    longest = longest_up(value) if finite else None
    if longest is None or longest > magnitude * (1 + _LARGEST_ERROR):
        size = "no numbers" if longest is None else f"as long as {float(longest):.3g}"
        raise InvalidParameter(
            "public value", size, f"within the magnitude {float(magnitude):.3g} of its rounding"
        )


def _least(sensitivity: Sensitivity, part: SampledPart | None) -> Fraction:
    """Return the least of the sensitivities that a release is priced by, 0 where all are 0."""
    sampled = () if part is None else (part.sampled, part.constant)
    priced = (sensitivity, *(one for one in sampled if one is not None))
    return min((one.root for one in priced if one.squared), default=Fraction(0))


def _require_precise(rounding: Rounding, least: Fraction) -> None:
    """Raise `InvalidParameter` where rounding could move a value by as much as a record does.

    Args:
        rounding: public bounds on the size and the rounding error of each row.
        least: the least of the sensitivities that a release is priced by; 0 for a public value.
    """
    if rounding.magnitude > _LARGEST_VALUE:
        raise InvalidParameter("bound on the value", "above 2**1000", "in [0, 2**1000]")
    if rounding.error > least * _LARGEST_ERROR:
        raise InvalidParameter(
            "rounding error",
            f"{float(rounding.error):.3g}",
            f"at most a thousandth of the sensitivity={float(least):.3g}; add smaller public "
            "numbers, or add them to the message",
        )


def _joint_part(
    first: Sensitive, second: Sensitive, rule: Callable[[Sensitivity, Sensitivity], Sensitivity]
) -> SampledPart | None:
    """Return what moves in a joint value; what was computed on all records always moves."""
    one, two = first.sampled_part, second.sampled_part
    if one is None:
        return None if two is None else two.with_constant(first.sensitivity, rule)
    return one.with_constant(second.sensitivity, rule) if two is None else one.joined(two, rule)


def _public_number(value: object) -> float:
    """Return a scalar operand as binary64.

    Raises `UnprotectedFunction` for an array or another private value, whose product has no rule,
    `InvalidParameter` for NaN and infinity.
    """
    array = np.asarray(None if isinstance(value, Sensitive) else value)
    if array.ndim != 0 or array.dtype.kind not in "iuf":
        raise UnprotectedFunction(
            "a product of a sensitive value and anything but one public number has no rule here; "
            "use linear_map for public matrices."
        )
    number = float(array)
    if not np.isfinite(number):
        raise InvalidParameter("factor", number, "a finite number")
    return number
