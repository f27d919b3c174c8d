"""Grades: what stands behind a printed epsilon."""

from enum import Enum


class Grade(Enum):
    """How far a number can be trusted; every printed epsilon says which one it is."""

    PROVED = "proved"
    """A certificate of this very number, for these events, this relation, delta and group, was
    checked by the independent checker in this process."""

    ENCLOSED = "enclosed"
    """Rigorous: exact parameters, ball or integer arithmetic, both ends rounded outward; checked
    by nobody else."""

    FAST = "fast"
    """Double precision with an outward allowance for its own rounding: still an upper bound."""

    ESTIMATE = "estimate"
    """No guarantee."""

    @classmethod
    def _missing_(cls, value: object) -> "Grade | None":
        # what older reports call certified
        return cls.ENCLOSED if value == "certified" else None
