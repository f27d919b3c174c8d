"""Laws of the converged optimum.

1. It is the zero of the gradient at 40 digits, and that of an independent solver.
2. Its gradient norm is the objective's there, and bounds what is left to gain.
3. Separable records have an optimum too; bad input is refused.
"""

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from dpledger.mechanisms import InvalidParameter
from dpledger.solvers import logistic_optimum

WEIGHT = 1e-3


def records() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(80, 3))
    return rows, np.where(rows[:, 0] + rng.normal(size=80) > 0, 1.0, -1.0)


def test_its_gradient_is_zero_at_40_digits_and_as_long_as_it_says() -> None:
    rows, labels = records()
    found = logistic_optimum(rows, labels, regularisation=WEIGHT)
    with mpmath.workdps(40):
        w = [mpmath.mpf(x) for x in found.model]
        gradient = [mpmath.mpf(WEIGHT) * x for x in w]
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            margin = label * mpmath.fsum(mpmath.mpf(a) * x for a, x in zip(row, w, strict=True))
            slope = -label / (1 + mpmath.exp(margin)) / len(rows)
            gradient = [g + slope * mpmath.mpf(a) for g, a in zip(gradient, row, strict=True)]
        norm = float(mpmath.norm(gradient))
    assert norm < 1e-8
    assert found.gradient_norm == pytest.approx(norm, abs=1e-14)


def test_an_independent_solver_finds_no_better() -> None:
    rows, labels = records()

    def objective(w: np.ndarray) -> float:
        return float(np.log1p(np.exp(-labels * (rows @ w))).mean() + WEIGHT / 2 * (w @ w))

    found = logistic_optimum(rows, labels, regularisation=WEIGHT)
    other = minimize(objective, np.zeros(3), method="Nelder-Mead", options={"fatol": 1e-14})
    assert found.value == pytest.approx(objective(found.model), abs=1e-14)
    assert found.value <= other.fun + 1e-13
    assert other.fun - found.value < 1e-8


def test_separable_records_have_an_optimum() -> None:
    rows = np.array([[1.0, 0.2], [-1.0, 0.1]])
    found = logistic_optimum(rows, np.array([1.0, -1.0]), regularisation=1e-8)
    assert found.gradient_norm < 1e-8
    assert np.linalg.norm(found.model) > 10


def test_bad_input_is_refused() -> None:
    rows, labels = records()
    with pytest.raises(InvalidParameter, match="regularisation"):
        logistic_optimum(rows, labels, regularisation=0.0)
    with pytest.raises(InvalidParameter, match=r"labels\.shape"):
        logistic_optimum(rows, labels[1:], regularisation=1.0)
