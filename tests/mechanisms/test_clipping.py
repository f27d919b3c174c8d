"""Projection on a ball: inside, 1-Lipschitz, and safe from under- and overflow."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpledger.mechanisms.clipping import HEADROOM, project_to_ball

vectors = st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3).map(np.array)


def exact_square(vector: np.ndarray) -> Fraction:
    return sum((Fraction(x) ** 2 for x in vector.tolist()), Fraction(0))


@given(vectors, st.floats(1e-9, 1e9))
def test_the_projection_lies_inside_the_exact_ball(vector: np.ndarray, radius: float) -> None:
    assert exact_square(project_to_ball(vector, radius)) <= Fraction(radius) ** 2


@given(vectors, vectors)
def test_the_projection_brings_nothing_further_apart(first: np.ndarray, second: np.ndarray) -> None:
    before = np.linalg.norm(first - second)
    after = np.linalg.norm(project_to_ball(first, 2.0) - project_to_ball(second, 2.0))
    assert after <= before * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("size", [1e-290, 1e-170, 1.0, 1e160, 1e308])
def test_extreme_sizes_are_cut_too(size: float) -> None:
    vector = np.array([size, size, -size])
    radius = min(size / 16, 1.0)
    cut = project_to_ball(vector, radius)
    assert exact_square(cut) <= Fraction(radius) ** 2
    np.testing.assert_allclose(cut, radius * HEADROOM / np.sqrt(3) * np.sign(vector), rtol=1e-12)


def test_what_is_inside_stays_bit_for_bit() -> None:
    inside = np.array([[0.0, 0.0], [0.3, -0.4], [-0.0, 1e-300]])
    np.testing.assert_array_equal(project_to_ball(inside, 1.0), inside)


def test_radius_zero_leaves_nothing() -> None:
    np.testing.assert_array_equal(project_to_ball(np.array([1e-200, 3.0]), 0.0), [0.0, 0.0])
