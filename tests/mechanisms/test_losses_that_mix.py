"""A loss whose slopes depend on the other records is refused, whatever it takes to show it."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from dpledger.mechanisms import Adjacency, ClassLabels, DataShape, PrivateDataset
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.labels import SIGNS, LabelDomain
from dpledger.mechanisms.protocols import FloatArray, Loss

THREE, FIVE, TEN = ClassLabels(3), ClassLabels(5), ClassLabels(10)


@dataclass(frozen=True)
class Sigmoid:
    """The logistic loss."""

    outputs: int = 1
    label_domain: LabelDomain = SIGNS
    derivative_bound: Fraction = Fraction(1)
    curvature_bound: Fraction = Fraction(1, 4)

    def value(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        return np.logaddexp(0, -labels * scores)

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        return np.asarray(-labels / (1 + np.exp(np.clip(labels * scores, -500, 500))))


class ScaledByTheBatch(Sigmoid):
    """Its exponentials are scaled by the largest margin of all records: NaN alone or together."""

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        margins = labels * scores
        top = np.abs(margins).max()
        return np.asarray(
            -labels * np.exp(-margins - top) / (np.exp(-top) + np.exp(-margins - top))
        )


@dataclass(frozen=True)
class WeighedByClass(Sigmoid):
    """Halves the slopes of one class of ten where it is the majority."""

    label_domain: LabelDomain = TEN
    rare: int = 2

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        own = labels == self.rare
        slopes = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
        return np.asarray(np.where(own, slopes * (0.5 if own.mean() > 0.5 else 1.0), slopes))


@dataclass(frozen=True)
class CountsClasses(Sigmoid):
    """Halves all slopes where there are records of more than two classes."""

    label_domain: LabelDomain = FIVE

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        slopes = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
        return np.asarray(slopes * (0.5 if len(np.unique(labels)) > 2 else 1.0))


@dataclass(frozen=True)
class LargestScore(Sigmoid):
    """The multinomial loss with one largest score for the whole batch."""

    outputs: int = 3
    label_domain: LabelDomain = THREE
    derivative_bound: Fraction = Fraction(3, 2)

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        p = np.exp(scores - scores.max())
        return np.asarray(p / p.sum(axis=-1, keepdims=True) - (labels[..., None] == np.arange(3)))


@pytest.mark.parametrize(
    "loss",
    [
        ScaledByTheBatch(),
        WeighedByClass(rare=2),
        WeighedByClass(rare=9),
        CountsClasses(),
        LargestScore(),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_a_loss_of_several_records_is_refused(loss: Loss) -> None:
    shape = DataShape(("a",), 10, 2, 1.0, Adjacency.REPLACE_ONE, loss.label_domain)
    with pytest.raises(InvalidParameter, match="elementwise"):
        PrivateDataset.planned(shape).mean_gradient(loss, np.zeros((1, 2 * loss.outputs)))


def test_a_loss_that_bends_more_for_later_classes_is_refused() -> None:
    @dataclass(frozen=True)
    class Signed(Sigmoid):
        """Reads the labels 0 and 1 as signs, and so 9 as 17."""

        label_domain: LabelDomain = TEN
        derivative_bound: Fraction = Fraction(17)

        def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
            return super().derivative(scores, 2 * labels - 1)

    shape = DataShape(("a",), 10, 2, 1.0, Adjacency.REPLACE_ONE, ClassLabels(10))
    zeros = np.zeros(2)
    with pytest.raises(InvalidParameter, match="curvature_bound"):
        PrivateDataset.planned(shape).strongly_convex_argmin(
            Signed(), modulus=0.1, linear=zeros, tolerance=1e-6, start=zeros
        )


class Tuned(Sigmoid):
    """A subclass of a frozen loss, with a number that no field says."""

    def __init__(self, centre: float) -> None:
        super().__init__()
        object.__setattr__(self, "centre", centre)

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        slopes = super().derivative(scores, labels)
        centre: float = vars(self)["centre"]
        return np.asarray(slopes - centre * slopes.mean())


def test_a_frozen_loss_is_taken_for_tried_only_if_its_fields_say_all_of_it() -> None:
    shape = DataShape(("a",), 10, 2, 1.0, Adjacency.REPLACE_ONE)
    data = PrivateDataset.planned(shape)
    data.mean_gradient(Tuned(0.0), np.zeros(2))
    with pytest.raises(InvalidParameter, match="elementwise"):
        data.mean_gradient(Tuned(-5.0), np.zeros(2))


def test_a_loss_that_raises_or_mistakes_shapes_is_refused_by_its_trial() -> None:
    class Raising(Sigmoid):
        def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
            raise OverflowError("too large")

    class Short(Sigmoid):
        def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
            return scores[:-1]

    data = PrivateDataset.planned(DataShape(("a",), 10, 2, 1.0, Adjacency.REPLACE_ONE))
    for loss, words in ((Raising(), "OverflowError: too large"), (Short(), "slopes of shape")):
        with pytest.raises(InvalidParameter, match=words):
            data.mean_gradient(loss, np.zeros(2))
