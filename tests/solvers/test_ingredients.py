"""Laws of losses, regularisers and step sizes: their constants hold, and are the papers'."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpledger.mechanisms import InvalidParameter, Loss
from dpledger.solvers import (
    L1,
    L2,
    ConstantSteps,
    LinearLoss,
    Logistic,
    NonsmoothSteps,
    Regulariser,
    SmoothSteps,
)

SCORES = np.concatenate([np.linspace(-50, 50, 2001), [-1e4, -745.0, 745.0, 1e4]])
LOSSES: list[Loss] = [Logistic(), LinearLoss()]


@pytest.mark.parametrize("loss", LOSSES, ids=["logistic", "linear"])
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_derivative_is_the_slope_of_the_value_and_within_its_bound(
    loss: Loss, label: float
) -> None:
    labels = np.full(SCORES.shape, label)
    slope = loss.derivative(SCORES, labels)
    step = 1e-5
    numeric = (loss.value(SCORES + step, labels) - loss.value(SCORES - step, labels)) / (2 * step)
    assert np.allclose(slope, numeric, rtol=1e-5, atol=1e-6)
    assert np.abs(slope).max() <= float(loss.derivative_bound)


@pytest.mark.parametrize("loss", LOSSES, ids=["logistic", "linear"])
def test_curvature_stays_within_its_bound_and_attains_it(loss: Loss) -> None:
    scores, labels = np.linspace(-8, 8, 4001), np.ones(4001)
    bends = np.diff(loss.derivative(scores, labels)) / np.diff(scores)
    bound = loss.curvature_bound
    assert bound is not None
    assert bends.max() <= float(bound) + 1e-9
    assert bends.max() >= float(bound) - 1e-4


def test_logistic_derivative_bound_is_approached() -> None:
    assert abs(Logistic().derivative(np.array([-30.0]), np.array([1.0]))[0]) > 1 - 1e-12


@pytest.mark.parametrize("regulariser", [L1(), L2()], ids=["l1", "l2"])
@given(seed=st.integers(0, 2**32 - 1))
def test_gradient_is_a_subgradient(regulariser: Regulariser, seed: int) -> None:
    rng = np.random.default_rng(seed)
    v, w = rng.normal(size=(2, 4))
    v[rng.integers(4)] = 0.0
    below = regulariser.value(v) + regulariser.gradient(v) @ (w - v)
    assert regulariser.value(w) >= below - 1e-12
    bound = regulariser.gradient_bound(4)
    assert bound is None or np.linalg.norm(regulariser.gradient(v)) <= bound


def test_smooth_steps_are_theorem_4() -> None:
    # section VI-B: (0.25 + 1e-6 + 2 sqrt(416 k ln(1.25/δ)) / (89 m ε))^-1
    m, epsilon, delta, k = 400, 0.2, 1e-6, 7
    classical = sqrt(2 * log(1.25 / delta)) / epsilon
    ours = SmoothSteps(0.25 + 1e-6, 89.0).step(
        k, dimension=104, gradient_noise_std=classical * 2 / m
    )
    papers = 1 / (0.25 + 1e-6 + 2 * sqrt(416 * k * log(1.25 / delta)) / (89 * m * epsilon))
    assert ours == pytest.approx(papers, rel=1e-13)


def test_nonsmooth_steps_are_theorem_3() -> None:
    # section VI-A: 23 (2k(1 + 1e-6 sqrt(104)/n)^2 + 1664 k ln(1.25/δ)/(m² ε²))^-1/2, n = 1
    m, epsilon, delta, k = 400, 0.2, 1e-6, 7
    classical = sqrt(2 * log(1.25 / delta)) / epsilon
    bound = 1 + 1e-6 * sqrt(104)
    ours = NonsmoothSteps(bound, 23.0).step(k, dimension=104, gradient_noise_std=classical * 2 / m)
    inside = 2 * k * bound**2 + 1664 * k * log(1.25 / delta) / (m * epsilon) ** 2
    assert ours == pytest.approx(23 / sqrt(inside), rel=1e-13)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_steps_refuse_what_is_not_positive(bad: float) -> None:
    with pytest.raises(InvalidParameter, match="in \\(0, inf\\)"):
        ConstantSteps(bad)
    with pytest.raises(InvalidParameter):
        SmoothSteps(bad, 1.0)
    with pytest.raises(InvalidParameter):
        NonsmoothSteps(1.0, bad)
