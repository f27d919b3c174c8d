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
from .refusals import Closed

_Labels = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SignLabels(Closed):
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
class ClassLabels(Closed):
    """0, 1, ..., classes - 1; the number of classes is public."""

    classes: int

    def __post_init__(self) -> None:
        if type(self.classes) is not int or self.classes < 2:
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
class RealLabels(Closed):
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
        if isinstance(other, ClassLabels | WeightedLabels):
            return False
        return self.bound >= (1.0 if isinstance(other, SignLabels) else other.bound)

    def require(self, labels: _Labels) -> None:
        """Raise `InvalidParameter` naming the first record whose label is not allowed."""
        _require(
            np.abs(labels) <= self.bound, f"in [-{float(self.bound):g}, {float(self.bound):g}]"
        )


_STEPS = 2**24
"""Steps from one end of real labels to the other where weights stand beside them: of the 53 bits of
a number, 27 are then left to the weight."""


@dataclass(frozen=True, slots=True)
class WeightedLabels(Closed):
    """A label and a weight in [0, 1] in one number: 2k + weight for the k-th of `labels`, from 0.

    So the weight is a part of the record like its label, and as private; a loss that multiplies a
    record's slope by it (`dpledger.solvers.Weighted`) has the bounds that it had. Real labels are
    rounded to the nearest of 2^24 + 1 within their bound, each record's by itself.

    >>> codes = WeightedLabels(SIGNS).joined(np.array([-1.0, 1.0, 1.0]), np.array([1.0, 0.25, 0.0]))
    >>> codes.tolist()
    [1.0, 2.25, 2.0]
    >>> [part.tolist() for part in WeightedLabels(SIGNS).parts(codes)]
    [[-1.0, 1.0, 1.0], [1.0, 0.25, 0.0]]
    """

    labels: SignLabels | ClassLabels | RealLabels

    def __post_init__(self) -> None:
        if not isinstance(self.labels, SignLabels | ClassLabels | RealLabels):
            raise InvalidParameter("labels", self.labels, "SignLabels, ClassLabels or RealLabels")

    @property
    def filler(self) -> float:
        """The first label, of weight 0."""
        return 0.0

    @property
    def extremes(self) -> tuple[float, float]:
        """Two labels of weight 1: the ends of real ones, the first two of others."""
        return (1.0, 2.0 * _STEPS + 1.0 if isinstance(self.labels, RealLabels) else 3.0)

    @np.errstate(all="ignore")
    def joined(self, labels: _Labels, weights: _Labels) -> _Labels:
        """Return labels with weights, of shape (n,) each.

        Raises `InvalidParameter` for a label outside the domain, or a weight outside [0, 1].
        """
        self.labels.require(labels)
        _require((weights >= 0.0) & (weights <= 1.0), "of a weight in [0, 1]")
        match self.labels:
            case SignLabels():
                whole = (labels + 1.0) / 2.0
            case ClassLabels():
                whole = labels
            case RealLabels(bound):
                whole = np.rint((labels / bound + 1.0) * (_STEPS // 2))
        return 2.0 * whole + weights

    def parts(self, codes: _Labels) -> tuple[_Labels, _Labels]:
        """Return labels and weights, each of the shape of `codes`."""
        whole = np.floor(0.5 * codes)
        weights = codes - 2.0 * whole
        match self.labels:
            case SignLabels():
                return 2.0 * whole - 1.0, weights
            case ClassLabels():
                return whole, weights
            case RealLabels(bound):
                return (whole / (_STEPS // 2) - 1.0) * bound, weights

    def some(self, most: int) -> _Labels:
        """Return labels to try a loss with: each with no weight, some, and all of it."""
        each, shares = self.labels.some(most // 3), np.array([0.0, 0.3, 1.0])
        return self.joined(np.repeat(each, 3), np.tile(shares, len(each)))

    def contains(self, other: "LabelDomain") -> bool:
        """Return whether `other` has the same labels, with weights."""
        return self == other

    def require(self, labels: _Labels) -> None:
        """Raise `InvalidParameter` naming the first record that has no such label or weight."""
        match self.labels:
            case SignLabels():
                last = 1
            case ClassLabels(classes):
                last = classes - 1
            case RealLabels():
                last = _STEPS
        within = (labels >= 0.0) & (labels < 2.0 * (last + 1))
        allowed = within & (self.parts(np.where(within, labels, 0.0))[1] <= 1.0)
        _require(allowed, f"2k + weight, k in [0, {last}] and the weight in [0, 1]")


LabelDomain = SignLabels | ClassLabels | RealLabels | WeightedLabels
"""What a data set or a loss may state of labels."""

SIGNS = SignLabels()
"""The usual two classes."""


def _require(allowed: npt.NDArray[np.bool_], domain: str) -> None:
    """Raise `InvalidParameter` naming the first record that is not allowed, never its label."""
    wrong = np.flatnonzero(~allowed)
    if wrong.size:
        # where it is, for the data's owner; what it is would stay in logs
        raise InvalidParameter("label", f"that of record {wrong[0]}", domain)
