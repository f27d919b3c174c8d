"""A loss times each record's own weight, which is a part of its label (`WeightedLabels`).

>>> import numpy as np
>>> from ..mechanisms.labels import SIGNS, WeightedLabels
>>> from .losses import Logistic
>>> codes = WeightedLabels(SIGNS).joined(np.array([1.0, 1.0]), np.array([1.0, 0.25]))
>>> Weighted(Logistic()).derivative(np.zeros(2), codes)
array([-0.5  , -0.125])
"""

from dataclasses import dataclass
from fractions import Fraction

from ..mechanisms.errors import InvalidParameter
from ..mechanisms.labels import (
    ClassLabels,
    LabelDomain,
    RealLabels,
    SignLabels,
    WeightedLabels,
)
from ..mechanisms.protocols import FloatArray
from ..mechanisms.vertical_data import LabelLoss


@dataclass(frozen=True, slots=True)
class Weighted:
    """weight · l(s, y) of a loss l, the weight in [0, 1].

    A slope times at most 1 is within l's bound, so that mean gradients, which divide by the number
    of records and not by their weights, have l's sensitivity whether weights are public or private:
    a record of weight 1 attains it. A weight of at most 1 bends no loss the other way, or more.

    Args:
        loss: l.
    """

    loss: LabelLoss

    def __post_init__(self) -> None:
        if isinstance(self.loss.label_domain, WeightedLabels):
            raise InvalidParameter("loss", self.loss, "one without weights")

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    @property
    def label_domain(self) -> LabelDomain:
        return self._labels

    @property
    def derivative_bound(self) -> Fraction:
        return self.loss.derivative_bound

    @property
    def curvature_bound(self) -> Fraction | None:
        return self.loss.curvature_bound

    @property
    def label_gap_bound(self) -> Fraction:
        """That of l, or of a slope of l from the 0 of a record without weight."""
        bound = self.loss.derivative_bound
        stated: Fraction | None = self.loss.label_gap_bound
        # two slopes within the bound are no further apart than twice it
        return 2 * bound if stated is None else max(stated, bound)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return weight · l(s, y), elementwise."""
        own, weights = self._labels.parts(labels)
        return weights * self.loss.value(scores, own)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return weight · l'(s, y), of the scores' shape."""
        own, weights = self._labels.parts(labels)
        slopes = self.loss.derivative(scores, own)
        return slopes * (weights if self.outputs == 1 else weights[..., None])

    @property
    def _labels(self) -> WeightedLabels:
        domain = self.loss.label_domain
        assert isinstance(domain, SignLabels | ClassLabels | RealLabels)  # checked when it was made
        return WeightedLabels(domain)
