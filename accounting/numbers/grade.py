"""Grades: what stands behind a printed epsilon."""

from enum import Enum


class Grade(Enum):
    """How far a number can be trusted; every printed epsilon says which one it is."""

    PROVED = "proved"
    """A certificate of this very number was checked by the independent checker in this process."""

    CERTIFIED = "certified"
    """Rigorous: exact parameters, ball or integer arithmetic, rounded outward."""

    FAST = "fast"
    """Double precision with an outward allowance for its own rounding: still an upper bound."""

    ESTIMATE = "estimate"
    """No guarantee."""
