"""Neighbouring relations: when two data sets count as differing in one unit.

>>> Adjacency.REPLACE_ONE.value
'replace-one'
"""

from enum import Enum

from .errors import AdjacencyMismatch


class Adjacency(Enum):
    """A neighbouring relation between data sets. Never defaulted, never converted silently."""

    ADD_REMOVE_ONE = "add-remove-one"
    """One record is added or removed; the number of records is private, a lower bound is public."""

    ZERO_OUT_ONE = "zero-out-one"
    """One record becomes a null record (zero loss); the number of records is public and fixed."""

    REPLACE_ONE = "replace-one"
    """One record becomes any other record; the number of records is public and fixed."""

    REPLACE_FEATURE_COLUMN = "replace-feature-column"
    """One feature column of vertically held data changes: the vertical paper's own relation."""


def require_same_adjacency(first: Adjacency, second: Adjacency) -> Adjacency:
    """Return the common relation, or raise `AdjacencyMismatch` naming both."""
    if first is not second:
        raise AdjacencyMismatch(
            f"Expected one adjacency instead got {first.value} and {second.value}; "
            "state both quantities under the same relation."
        )
    return first
