"""Prices of noise on whole numbers, of answers and of samples, against sums over all outcomes.

No price is below what a direct sum over two neighbours' outcomes shows to be lost; of what has a
closed form at delta 0, none is below that. Nothing of the accountants is used to find these.
"""

import math
from functools import reduce

import numpy as np
import numpy.typing as npt
import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    Mechanism,
    PoissonSampled,
    RandomisedResponse,
    SampledWithoutReplacement,
    Sensitivity,
    declared,
)
from dpledger.mechanisms.events import DiscreteGaussianStep, DiscreteLaplaceStep, LaplaceStep
from dpledger.mechanisms.sensitivity import Norm

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE

Law = npt.NDArray[np.float64]
"""Probabilities of outcomes, of shape (outcomes,)."""


def size(value: float, adjacency: Adjacency, norm: Norm = Norm.L1) -> Sensitivity:
    return declared(value, "a bound", adjacency=adjacency, norm=norm)


def price(mechanism: Mechanism, times: int, delta: float) -> float:
    """Return the upper end of epsilon of a mechanism that runs so often."""
    context = Context((), 1, "x", Audience.PUBLIC)
    return guarantee([Event(mechanism, context)] * times, delta=delta).epsilon.upper_float


def least_epsilon(left: Law, right: Law, delta: float) -> float:
    """Return the least epsilon of two laws, in both directions, by bisection of the definition."""

    def one(first: Law, second: Law) -> float:
        low, high = 0.0, 800.0
        for _ in range(100):
            middle = (low + high) / 2
            lost = np.maximum(0.0, first - np.exp(middle) * second).sum()
            low, high = (low, middle) if lost <= delta else (middle, high)
        return high

    return max(one(left, right), one(right, left))


@pytest.mark.parametrize("sigma", [0.3, 0.8])
@pytest.mark.parametrize("shift", [(1,), (1, 1), (2,), (1, 1, 1, 1), (2, 1), (2, 2), (3,)])
@pytest.mark.parametrize("delta", [1e-1, 1e-5])
def test_discrete_gaussian_noise_costs_what_its_outcomes_lose(
    sigma: float, shift: tuple[int, ...], delta: float
) -> None:
    numbers = np.arange(-12, 16)

    def law(centres: tuple[int, ...]) -> Law:
        weights = [np.exp(-((numbers - centre) ** 2) / (2 * sigma**2)) for centre in centres]
        return reduce(lambda a, b: np.outer(a, b).ravel(), [w / w.sum() for w in weights])

    length = math.nextafter(math.hypot(*shift), 4.0)  # not below
    step = DiscreteGaussianStep(size(length, REPLACE, Norm.L2), sigma)
    lost = least_epsilon(law((0,) * len(shift)), law(shift), delta)
    assert price(step, 1, delta) >= lost - 1e-6  # what a bisection of doubles can miss


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("times", [1, 3])
def test_sampled_laplace_noise_costs_its_largest_loss_at_delta_zero(
    rate: float, times: int
) -> None:
    """log(1 + q(exp(ε) - 1)), which an outcome beyond both means attains."""
    poisson = PoissonSampled(LaplaceStep(size(1, ADD), 1.0), rate)
    fixed = SampledWithoutReplacement(LaplaceStep(size(2, REPLACE), 1.0), round(rate * 100), 100)
    for step, loss in ((poisson, 1.0), (fixed, 2.0)):
        assert price(step, times, 0.0) >= times * math.log1p(rate * math.expm1(loss)) - 1e-9


def test_answers_and_discrete_laplace_noise_cost_their_largest_loss_at_delta_zero() -> None:
    for categories in (2, 3, 10):
        answer = RandomisedResponse(0.6, categories)
        loss = abs(math.log(0.6 * (categories - 1) / 0.4))
        assert price(answer, 2, 0.0) >= 2 * loss - 1e-12
    assert price(DiscreteLaplaceStep(size(3, REPLACE), 0.5), 1, 0.0) >= 3 / 0.5 - 1e-12
