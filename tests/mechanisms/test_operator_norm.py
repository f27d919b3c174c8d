"""The certified operator norm: never below the true one, and close to it."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.operator_norm import operator_norm_up
from dpledger.mechanisms.sensitivity import Norm


def assert_tight(matrix: np.ndarray) -> None:
    """Compare with the largest singular value in 60 digits."""
    upper = operator_norm_up(matrix)
    with mpmath.workdps(60):
        true = max(mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False))
        bound = mpmath.mpf(upper.numerator) / upper.denominator
        # rank one and 1 x 1 are attained exactly: allow for the reference's own rounding
        assert bound >= true * (1 - mpmath.mpf(10) ** -50)
        assert bound <= true * mpmath.mpf("1.001")


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (4, 4), (3, 7), (9, 5)])
def test_never_below_the_true_norm_and_within_a_thousandth(shape: tuple[int, int]) -> None:
    for seed in range(5):
        matrix = np.random.default_rng(seed).standard_normal(shape)
        assert_tight(matrix)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_scale_does_not_matter(scale: float) -> None:
    matrix = np.random.default_rng(1).standard_normal((4, 3))
    assert_tight(matrix * scale)


def test_close_singular_values_and_rank_one() -> None:
    near = np.diag([1.0, 1.0 - 2.0**-50]) @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    one = np.outer(np.arange(1.0, 6.0), np.arange(1.0, 4.0))
    for matrix in (near, one):
        assert_tight(matrix)


@pytest.mark.parametrize(
    ("matrix", "norm"),
    [
        (np.eye(7)[np.random.default_rng(0).permutation(7)], Fraction(1)),
        (np.diag([0.1, -0.3, 0.2]), Fraction(0.3)),
        (np.zeros((3, 2)), Fraction(0)),
        (np.array([[-2.5]]), Fraction(5, 2)),
        (5e-324 * np.eye(2), Fraction(5e-324)),
    ],
    ids=["permutation", "diagonal", "zero", "scalar", "subnormal"],
)
def test_exact_where_rows_and_columns_do_not_overlap(matrix: np.ndarray, norm: Fraction) -> None:
    assert operator_norm_up(matrix) == norm


@settings(max_examples=50)
@given(
    arrays(
        float,
        array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements=st.floats(-1e6, 1e6, allow_subnormal=False),
    )
)
def test_no_vector_is_stretched_further(matrix: np.ndarray) -> None:
    upper = operator_norm_up(matrix)
    exact = [[Fraction(x) for x in row] for row in matrix.tolist()]
    for seed in range(3):
        x = [
            Fraction(v)
            for v in np.random.default_rng(seed).integers(-9, 10, matrix.shape[1]).tolist()
        ]
        image = [sum((a * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in exact]
        assert sum(v * v for v in image) <= upper**2 * sum(v * v for v in x)


def test_l1_norm_is_the_largest_column_sum() -> None:
    matrix = np.array([[0.1, -2.0], [0.2, 0.5]])
    assert operator_norm_up(matrix, Norm.L1) == Fraction(5, 2)
    assert operator_norm_up(matrix.T, Norm.L1) == Fraction(0.1) + 2


@pytest.mark.parametrize(
    "bad",
    [np.ones(3), np.ones((2, 2, 2)), np.ones((0, 3)), np.array([[np.nan]]), np.array([[np.inf]])],
    ids=str,
)
def test_bad_matrices_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(InvalidParameter, match="matrix"):
        operator_norm_up(bad)


def test_the_work_grows_with_the_cube_of_the_size_at_most(calls) -> None:
    small, large = (np.random.default_rng(2).standard_normal((n, n)) for n in (25, 100))
    assert calls(lambda: operator_norm_up(large)) < 4**3 * calls(lambda: operator_norm_up(small))


def test_a_hundred_by_a_hundred_is_within_a_thousandth() -> None:
    matrix = np.random.default_rng(2).standard_normal((100, 100))
    upper = float(operator_norm_up(matrix))
    assert 1.0 - 1e-12 <= upper / np.linalg.norm(matrix, 2) <= 1.001
