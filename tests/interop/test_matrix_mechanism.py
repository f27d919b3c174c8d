"""The sensitivity of a matrix mechanism is that of its worst participation pattern."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from dpledger.interop.matrix_mechanism import banded_toeplitz, participation_sensitivity
from dpledger.mechanisms import InvalidParameter


def patterns(steps, separation, most):
    for size in range(1, most + 1):
        for chosen in combinations(range(steps), size):
            if all(b - a >= separation for a, b in pairwise(chosen)):
                yield list(chosen)


def enumerated(matrix, separation, most):
    """The largest sum over a pattern of |X_ij|: what no signs of scalar inputs exceed."""
    products = np.abs(matrix.T @ matrix)
    steps = matrix.shape[1]
    return max(np.sqrt(products[np.ix_(p, p)].sum()) for p in patterns(steps, separation, most))


@pytest.mark.parametrize("separation", [1, 2, 3])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_it_is_at_least_the_worst_pattern_and_close_to_it(separation, most):
    generator = np.random.default_rng(separation * 10 + most)
    for _ in range(20):
        matrix = np.tril(generator.normal(size=(7, 7)))
        truth = enumerated(matrix, separation, most)
        found = participation_sensitivity(matrix, separation=separation, participations=most)
        assert truth <= found <= truth * 1.5


def test_where_any_number_of_steps_fits_one_pass_counts_them_all():
    """It hung: of 2,048 steps, each a participation, it took a minute and a half."""
    matrix = np.abs(np.random.default_rng(5).normal(size=(9, 9)))
    for separation in (1, 2, 4):
        fit = -(-9 // separation)
        found = participation_sensitivity(matrix, separation=separation)
        # one pass a participation where one fewer than fits is allowed, and no fewer are met
        fewer = participation_sensitivity(matrix, separation=separation, participations=fit - 1)
        truth = enumerated(matrix, separation, 9)
        assert max(truth, fewer) <= found <= truth * 1.2
    bands = banded_toeplitz([1.0, 0.5], 300)
    everywhere = np.linalg.norm(bands.sum(axis=1))
    found = participation_sensitivity(bands, separation=1)
    assert found == pytest.approx(everywhere, rel=1e-9)
    # beyond so many, as many count as fit
    assert participation_sensitivity(bands, separation=1, participations=200) == found


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-170, 1e-160, 1e-155, 1e-100, 1e100])
def test_it_is_of_the_size_of_the_matrix(size):
    """Squares of small numbers underflow; the bound was 10^154 times too small."""
    assert size <= participation_sensitivity([[size]], separation=1) <= size * (1 + 1e-12) + 1e-322
    column = [[size], [size / 2]]
    exact = Fraction(size) ** 2 + Fraction(size / 2) ** 2
    assert Fraction(participation_sensitivity(column, separation=1)) ** 2 >= exact


def test_of_bands_no_wider_than_the_separation_it_is_exact():
    matrix = banded_toeplitz([1.0, 0.6, 0.3], 12)
    for separation in (3, 4):
        truth = enumerated(matrix, separation, 12)
        found = participation_sensitivity(matrix, separation=separation)
        assert truth <= found <= truth * (1 + 1e-12)


def test_of_nonnegative_entries_without_separation_it_is_the_sum_of_columns():
    matrix = np.tril(np.ones((5, 5)))
    truth = np.linalg.norm(matrix.sum(axis=1))
    assert participation_sensitivity(matrix, separation=1) == pytest.approx(truth, rel=1e-12)


def test_one_participation_is_the_largest_column():
    matrix = np.random.default_rng(3).normal(size=(6, 4))
    largest = np.linalg.norm(matrix, axis=0).max()
    found = participation_sensitivity(matrix, separation=1, participations=1)
    assert largest <= found <= largest * (1 + 1e-12)


@pytest.mark.parametrize(
    "matrix", [[], [[]], [[np.nan]], [[np.inf]], [[1e200]], [1.0], np.zeros((1, 3000))]
)
def test_other_matrices_are_refused(matrix):
    with pytest.raises((InvalidParameter, ValueError)):
        participation_sensitivity(matrix, separation=1)
