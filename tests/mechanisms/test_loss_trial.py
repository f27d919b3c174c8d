"""Losses that are not what sensitivities take them for are refused on random scores."""

import numpy as np
import pytest

from dpledger.mechanisms import Adjacency, DataShape, InvalidParameter, Loss, PrivateDataset
from dpledger.mechanisms.loss_trial import require_elementwise
from dpledger.solvers.losses import (
    Hinge,
    Huber,
    LinearLoss,
    Logistic,
    Multinomial,
    Shifted,
    SmoothedHinge,
)

SHIPPED: list[Loss] = [
    Logistic(),
    Hinge(),
    SmoothedHinge(0.3),
    Huber(0.5, 2.0),
    LinearLoss(),
    Multinomial(4),
    Shifted(Logistic(), 0.7),
]


class Majority(Logistic):
    """Every slope is minus the sign of the labels' sum: one record may turn them all."""

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return -np.sign(labels.sum()) * np.ones_like(scores)


class Centred(Logistic):
    """Slopes less their mean over the batch."""

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        slopes = super().derivative(scores, labels)
        return np.asarray(slopes - slopes.mean(axis=-1, keepdims=True))


@pytest.mark.parametrize("loss", SHIPPED, ids=lambda loss: type(loss).__name__)
def test_losses_that_come_with_the_program_pass(loss: Loss) -> None:
    require_elementwise(loss)


@pytest.mark.parametrize("loss", [Majority(), Centred()], ids=["majority", "centred"])
def test_a_loss_of_several_records_is_refused_when_a_plan_is_made(loss: Loss) -> None:
    shape = DataShape(("a",), 9, 2, 1.0, Adjacency.REPLACE_ONE)
    with pytest.raises(InvalidParameter, match=r"alone and .* among 64 records"):
        PrivateDataset.planned(shape).mean_gradient(loss, np.zeros(2))
