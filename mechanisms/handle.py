"""What the handles of private data have in common: public facts, and no way to the records.

`PrivateDataset`, `LocalDataset` and `VerticalDataset` derive from it, and the auditor's handles
from these. A handle is not pickled, not iterated over, and prints its public facts only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Generic, NoReturn, Self, TypeVar

from .errors import InvalidParameter, UnprotectedIteration
from .protocols import FloatArray
from .refusals import Closed, refuse_copies
from .rounding import Rounding
from .sensitive import Sensitive
from .sensitivity import Sensitivity

ShapeT = TypeVar("ShapeT")
HeldT = TypeVar("HeldT")


@refuse_copies
class PrivateHandle(Closed, Generic[ShapeT, HeldT]):
    """Private records whose functions are `Sensitive` values; `shape` is all that is public.

    A handle without records, for plans, answers with sensitivities and no values.
    """

    __slots__ = ("_records", "_shape")

    _shape: ShapeT
    _records: HeldT | None

    _auditable: ClassVar[bool] = False
    """Whether audits may look inside: only where their caller made the handle of the records."""

    @classmethod
    def planned(cls, shape: ShapeT) -> Self:
        """Return a handle without records: it answers with sensitivities and no values."""
        handle = cls.__new__(cls)
        handle._shape = shape
        handle._records = None
        return handle

    @property
    def shape(self) -> ShapeT:
        """The public facts."""
        return self._shape

    def _with(self, records: HeldT) -> Self:
        """Return a handle of the same kind and public facts with other records."""
        handle = self.planned(self._shape)
        handle._records = records
        return handle

    def _held(self) -> HeldT:
        """Return the records; raise `InvalidParameter` for a handle that is planned."""
        if self._records is None:
            raise InvalidParameter("dataset", "planned", "with records")
        return self._records

    def _answer(
        self,
        sensitivity: Sensitivity,
        rounding: Rounding,
        *,
        parties: tuple[str, ...],
        width: int,
        compute: Callable[[HeldT], FloatArray],
        held: int | None = None,
        categories: int = 0,
        each: Sensitivity | None = None,
    ) -> Sensitive:
        """Return what `compute` makes of the records, as a `Sensitive`.

        Args:
            sensitivity: of the whole block, between neighbours.
            rounding: public bounds on a row's size and rounding error.
            parties: whose records enter, a row each; empty for a single row that all may enter.
            width: numbers in a row.
            compute: returns an array of shape (..., rows, width); not called under planning.
            held: number of rows that are computed here; None for all of them, 0 for a value that
                rests on records elsewhere: there is none then.
            categories, each: as for `Sensitive`.
        """
        absent = self._records is None or held == 0
        return Sensitive(
            sensitivity,
            rounding,
            parties=parties,
            dimension=width,
            compute=None if absent else lambda: compute(self._held()),
            held=held,
            categories=categories,
            each=each,
            auditable=self._auditable,
        )

    def __repr__(self) -> str:
        """Show the public facts only."""
        return f"<{type(self).__name__}: {self._shape}>"

    def __iter__(self) -> NoReturn:
        raise UnprotectedIteration("iteration lets records out; use mean_gradient etc.")
