"""The one door to what is private. Everything else knows sensitivities, and no values.

Two kinds of code pass. Curators, which add noise and write events, and what computes for a handle
derive from `Inside`: its methods are protected, for subclasses. Audits call `private_value` and
`party_of`, which answer for handles that their caller made of the raw records
(`dpledger.audits.AuditDataset`), and refuse for an analyst's.

The type checker allows no other file to name a private attribute of another class.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .errors import UnprotectedReleaseError

if TYPE_CHECKING:
    from .private_data import PrivateDataset
    from .protocols import FloatArray
    from .records import IntArray, Records
    from .rounding import Rounding
    from .sample import Sample
    from .sensitive import Sensitive
    from .sensitivity import Sensitivity
    from .subsampling import Draw


def private_value(sensitive: Sensitive) -> FloatArray | None:
    """Return the value itself, for audits; None under planning.

    Raises `UnprotectedReleaseError` for a value computed on an analyst's handle.
    """
    if sensitive._value is not None and not sensitive._auditable:
        raise UnprotectedReleaseError(
            "an audit looks at private values: it needs a handle made of the records by whoever "
            "holds them (dpledger.audits.AuditDataset)."
        )
    return sensitive._value


def records_of(dataset: PrivateDataset) -> Records:
    """Return the records themselves, for audits.

    Raises `UnprotectedReleaseError` for an analyst's handle.
    """
    if not dataset._auditable:
        raise UnprotectedReleaseError(
            "an audit looks at the records: it needs a handle made of them by whoever holds them "
            "(dpledger.audits.AuditDataset)."
        )
    return dataset._held()


def party_of(dataset: PrivateDataset) -> IntArray:
    """Return the party of each record, of shape (N,), for audits; read-only.

    Raises `UnprotectedReleaseError` for an analyst's handle: N may be private.
    """
    return records_of(dataset).party_of


class Inside:
    """What curators and handles share and nobody else: values, records, and who was drawn.

    Protected static methods, so that only a subclass can call them: each is one look through the
    wall, and a reader finds all of them here.
    """

    __slots__ = ()

    @staticmethod
    def _value_of(sensitive: Sensitive) -> FloatArray | None:
        """Return the value of shape (..., P, d); None under planning."""
        return sensitive._value

    @staticmethod
    def _is_auditable(sensitive: Sensitive) -> bool:
        return sensitive._auditable

    @staticmethod
    def _may_repeat(dataset: PrivateDataset) -> bool:
        return dataset._auditable

    @staticmethod
    def _shape_of(sensitive: Sensitive) -> tuple[int, ...]:
        return () if sensitive._value is None else sensitive._value.shape

    @staticmethod
    def _party_of(dataset: PrivateDataset) -> IntArray:
        """Return the party of each record, of shape (N,)."""
        return dataset._held().party_of

    @staticmethod
    def _sample_of(dataset: PrivateDataset, draw: Draw) -> Sample:
        """Return the records that a draw chose, as a handle."""
        return dataset._sampled(draw)

    @staticmethod
    def _drawn_in(draw: Draw) -> FloatArray | None:
        """Return who was drawn, 1 or 0 in shape (..., N); None under planning."""
        return draw._inside

    @staticmethod
    def _probabilities_of(draw: Draw) -> FloatArray | None:
        """Return the weights of the alternatives of a replayed draw; None of any other."""
        return draw._probabilities

    @staticmethod
    def _answer_of(
        dataset: PrivateDataset,
        sensitivity: Sensitivity,
        rounding: Rounding,
        width: int,
        compute: Callable[[Records, slice], FloatArray],
    ) -> Sensitive:
        """Return what `compute` makes of a data set's records, as a `Sensitive`; see
        `PrivateHandle`.
        """
        return dataset._sensitive(sensitivity, rounding, width, compute)
