"""Label domains: which labels records may carry, publicly; others are refused before anything runs.

A loss states the domain that its bounds hold for, and a data set the domain of its labels; the
first must contain the second. Otherwise a label out of range would have a gradient longer than the
sensitivity says.

>>> RealLabels(2.0).contains(SignLabels())
True
>>> ClassLabels(3).contains(SignLabels())
False
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .errors import InvalidParameter, require_positive

_Labels = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SignLabels:
    """-1 and +1."""

    @property
    def filler(self) -> float:
        """A label for the null records that pad a block."""
        return 1.0

    @property
    def extremes(self) -> tuple[float, float]:
        """Two labels, as far from each other as any two."""
        return (-1.0, 1.0)

    def some(self, most: int) -> _Labels:
        """Return labels to try a loss with, at most `most` of them: both."""
        return np.array([-1.0, 1.0])

    def contains(self, other: "LabelDomain") -> bool:
        """Return whether every label of `other` is one of these, with the same meaning."""
        return isinstance(other, SignLabels)

    def require(self, labels: _Labels) -> None:
        """Raise `InvalidParameter` naming the first record whose label is not allowed."""
        _require(np.abs(labels) == 1.0, "in {-1, +1}")


@dataclass(frozen=True, slots=True)
class ClassLabels:
    """0, 1, ..., classes - 1; the number of classes is public."""

    classes: int

    def __post_init__(self) -> None:
        if isinstance(self.classes, bool) or not isinstance(self.classes, int) or self.classes < 2:
            raise InvalidParameter("classes", self.classes, "a whole number in [2, inf)")

    @property
    def filler(self) -> float:
        """A label for the null records that pad a block."""
        return 0.0

    @property
    def extremes(self) -> tuple[float, float]:
        """Two labels, as far from each other as any two."""
        return (0.0, 1.0)

    def some(self, most: int) -> _Labels:
        """Return labels to try a loss with: all, or at most `most` from the first to the last."""
        last = self.classes - 1
        return np.unique(np.round(np.linspace(0.0, last, min(most, self.classes))))

    def contains(self, other: "LabelDomain") -> bool:
        """Return whether `other` has the same classes."""
        return self == other

    def require(self, labels: _Labels) -> None:
        """Raise `InvalidParameter` naming the first record whose label is not allowed."""
        allowed = (labels >= 0) & (labels < self.classes) & (labels == np.floor(labels))
        _require(allowed, f"a whole number in [0, {self.classes - 1}]")


@dataclass(frozen=True, slots=True)
class RealLabels:
    """Real numbers of size at most the public `bound`."""

    bound: float

    def __post_init__(self) -> None:
        require_positive("bound", self.bound)

    @property
    def filler(self) -> float:
        """A label for the null records that pad a block."""
        return 0.0

    @property
    def extremes(self) -> tuple[float, float]:
        """Two labels, as far from each other as any two."""
        return (-self.bound, self.bound)

    def some(self, most: int) -> _Labels:
        """Return labels to try a loss with: the largest, 0, some between, and whole numbers."""
        shares = np.array([-1.0, -0.7, -0.1, 0.0, 0.3, 1.0]) * self.bound
        whole = np.array([-2.0, -1.0, 1.0, 2.0, 3.0])
        return np.unique(np.concatenate([shares, whole[np.abs(whole) <= self.bound]]))

    def contains(self, other: "LabelDomain") -> bool:
        """Return whether every label of `other` is one of these; classes are no numbers."""
        if isinstance(other, ClassLabels):
            return False
        return self.bound >= (1.0 if isinstance(other, SignLabels) else other.bound)

    def require(self, labels: _Labels) -> None:
        """Raise `InvalidParameter` naming the first record whose label is not allowed."""
        _require(np.abs(labels) <= self.bound, f"in [-{self.bound:g}, {self.bound:g}]")


LabelDomain = SignLabels | ClassLabels | RealLabels
"""What a data set or a loss may state of labels."""

SIGNS = SignLabels()
"""The usual two classes."""


def _require(allowed: npt.NDArray[np.bool_], domain: str) -> None:
    """Raise `InvalidParameter` naming the first record that is not allowed, never its label."""
    wrong = np.flatnonzero(~allowed)
    if wrong.size:
        # where it is, for the data's owner; what it is would stay in logs
        raise InvalidParameter("label", f"that of record {wrong[0]}", domain)
