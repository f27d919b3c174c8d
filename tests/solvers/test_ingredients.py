"""Laws of regularisers and step sizes: their constants hold, and are the papers'."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpledger.mechanisms import InvalidParameter
from dpledger.solvers import (
    L1,
    L2,
    ConstantSteps,
    NonsmoothSteps,
    Regulariser,
    SmoothSteps,
)


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
