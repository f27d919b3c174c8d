"""A loss whose slopes depend on the other records is refused, also where one of the two is NaN."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from dpledger.mechanisms import Adjacency, PrivateDataset
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.labels import SIGNS, LabelDomain
from dpledger.mechanisms.protocols import FloatArray


@dataclass(frozen=True)
class ScaledByTheBatch:
    """The logistic loss, its exponentials scaled by the largest margin of all records."""

    outputs: int = 1
    label_domain: LabelDomain = SIGNS
    derivative_bound: Fraction = Fraction(1)
    curvature_bound: Fraction = Fraction(1, 4)
    label_gap_bound: None = None

    def value(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        return np.logaddexp(0, -labels * scores)

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        margins = labels * scores
        top = np.abs(margins).max()
        return np.asarray(
            -labels * np.exp(-margins - top) / (np.exp(-top) + np.exp(-margins - top))
        )


def test_a_loss_scaled_by_its_batch_is_refused() -> None:
    rows, labels = np.tile([0.9, 0.0], (10, 1)), np.ones(10)
    data = PrivateDataset(rows, labels, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)
    with pytest.raises(InvalidParameter, match="elementwise"):
        data.mean_gradient(ScaledByTheBatch(), np.zeros((1, 2)))
