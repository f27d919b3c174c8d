"""Projection on a ball: inside, 1-Lipschitz, and safe from under- and overflow."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.parameters import slow

from dpledger.mechanisms import EventList, PrivateDataset, SamplingCurator, SeededSampler
from dpledger.mechanisms.clipping import cut_slopes, cut_to_bound, lengths, project_to_ball
from dpledger.mechanisms.sparse_records import sparse_records
from dpledger.runs.estimators.rows import unit_rows
from dpledger.solvers.losses import Hinge

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
    np.testing.assert_allclose(cut, radius / np.sqrt(3) * np.sign(vector), rtol=1e-12)


def test_what_is_inside_stays_bit_for_bit() -> None:
    inside = np.array([[0.0, 0.0], [0.3, -0.4], [-0.0, 1e-300]])
    np.testing.assert_array_equal(project_to_ball(inside, 1.0), inside)


def test_radius_zero_leaves_nothing() -> None:
    np.testing.assert_array_equal(project_to_ball(np.array([1e-200, 3.0]), 0.0), [0.0, 0.0])


def rows_near(radius: float, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows whose lengths lie at, a few units around, and far beyond a radius."""
    directions = rng.normal(size=(40, width)) * 10.0 ** rng.uniform(-8, 0, size=(40, width))
    directions[:3] = np.ones(width)
    units = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    near = 1.0 + rng.integers(-4 * width - 64, 4 * width + 64, size=(40, 1)) * 2.0**-53
    near[-5:] = 10.0 ** rng.uniform(0, 30, size=(5, 1))
    return np.asarray(units * (radius * near))


@pytest.mark.parametrize("width", [1, 2, 3, 10, 105, *slow(1000)])
@pytest.mark.parametrize("radius", [1.5 * 2.0**-890, 1e-100, 0.3, 1.0, 7e60, 2.0**890])
def test_no_kept_vector_is_longer_than_its_bound_in_exact_arithmetic(
    radius: float, width: int
) -> None:
    rng = np.random.default_rng(width)
    rows = rows_near(radius, width, rng)
    held = sparse_records(
        sparse.csr_array(rows),
        np.ones(len(rows)),
        radius,
        np.zeros(len(rows), dtype=np.intp),
        np.array([len(rows)]),
        1.0,
    )
    bound = Fraction(radius) ** 2
    least = bound * (1 - Fraction(width + 16, 2**49))
    longest = Fraction(0)
    for kept in (project_to_ball(rows, radius), held.blocks.toarray()):
        squares = [exact_square(row) for row in kept]
        assert max(squares) <= bound
        longest = max(longest, *squares)
        # and no more than roundings' room is lost
        assert all(
            new >= min(exact_square(old), least) for old, new in zip(rows, squares, strict=True)
        )
    assert longest >= least


@pytest.mark.parametrize("outputs", [1, 2, 7, 100])
@pytest.mark.parametrize("bound", [Fraction(1, 3), Fraction(1), Fraction(10**9, 7)])
def test_no_cut_slope_is_longer_than_its_bound_in_exact_arithmetic(
    outputs: int, bound: Fraction
) -> None:
    rng = np.random.default_rng(outputs)
    slopes = rows_near(float(bound), outputs, rng)
    cut = cut_to_bound(slopes[:, 0] if outputs == 1 else slopes, bound, outputs)
    assert max(exact_square(np.atleast_1d(row)) for row in cut) <= bound**2


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("width", [1, 20, 300])
@pytest.mark.parametrize("radius", [1e-60, 0.7, 1e40])
def test_no_cut_product_is_longer_than_its_radius_in_exact_arithmetic(
    outputs: int, width: int, radius: float
) -> None:
    rng = np.random.default_rng(width)
    rows = rows_near(radius, width, rng)
    slopes = rows_near(1.0, outputs, rng)[rng.permutation(40)]
    cut = cut_slopes(slopes, lengths(rows), radius, width * outputs)
    for row, slope in zip(rows, cut, strict=True):
        assert exact_square(row) * exact_square(slope) <= Fraction(radius) ** 2


def test_a_projection_does_not_depend_on_who_stands_beside_or_on_the_order_in_memory() -> None:
    """A column-major block was summed by columns, but a row alone in its block along the row."""
    rng = np.random.default_rng(0)
    for width in (2, 3, 7, 8, 9, 16, 17, 64, 127, 129, 300):
        rows = 3.0 * rng.normal(size=(50, width))
        alone = np.concatenate([project_to_ball(row[None], 1.0) for row in rows])
        for stored in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2]):
            for count in (1, 2, 50):
                found = project_to_ball(stored[:count], 1.0)
                np.testing.assert_array_equal(found, alone[:count])


def test_a_record_more_moves_a_hinge_by_one_slope_in_column_major_rows() -> None:
    """The first row lies at the hinge's corner: a unit in the last place moves its slope by 1."""
    for seed in range(10):
        row = 2.0 * np.random.default_rng(seed).normal(size=16)
        both = np.asfortranarray([row, 2.0 * row])
        point = row / np.linalg.norm(row)
        for k in range(0, 100, 5):
            at = point * (1.0 + k * 2.0**-53)
            one, two = (hinge_gradient(some, at) for some in (both[:1], both))
            assert np.linalg.norm(one - two) <= 1.0 + 1e-4


def test_a_record_more_moves_a_hinge_by_one_slope_in_wide_rows() -> None:
    """Of rows of this width 14 are read at once: the 43rd stands alone in its block."""
    width, many = 9001, 43
    for seed in range(3):
        row = np.random.default_rng(seed).normal(size=width)
        row /= np.linalg.norm(row) * 1.001
        rows = np.zeros((many + 1, width))
        rows[-2:] = row
        point = row / (row @ row)
        for k in range(-9, 10, 3):
            at = point * (1.0 + k * 2.0**-53)
            few, more = (hinge_gradient(some, at) for some in (rows[:many], rows))
            assert np.linalg.norm(few - more) <= 1.0 + 1e-3


def hinge_gradient(rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the released sum of gradients under add-remove-one, with next to no noise."""
    data = PrivateDataset(
        rows, np.ones(len(rows)), adjacency="add-remove-one", row_bound=1.0, n_min=1
    )
    curator = SamplingCurator(EventList(), SeededSampler(1))
    value = data.sum_gradient(Hinge(), at)
    assert value.sensitivity.value == 1.0
    return curator.release(value, noise_std=1e-6, round=1, release="g")


@pytest.mark.parametrize("width", [3, 9, 129, 8193, 20_011])
def test_a_vector_is_as_long_alone_as_among_others(width: int) -> None:
    """Nor does it matter how vectors lie in memory, by which NumPy chooses its order of sums."""
    among = np.random.default_rng(width).normal(size=(5, width))
    for rows in (among, np.asfortranarray(among), np.repeat(among, 2, axis=1)[:, ::2]):
        found, cut = lengths(rows), unit_rows(rows, row_bound=1.0, clip=True)
        assert isinstance(cut, np.ndarray)
        for i in range(5):
            assert lengths(rows[i : i + 1])[0] == lengths(rows[i]) == found[i]
            alone = unit_rows(rows[i : i + 1], row_bound=1.0, clip=True)
            assert isinstance(alone, np.ndarray)
            assert np.array_equal(alone[0], cut[i])
    assert np.allclose(found, np.sqrt(np.sum(among**2, axis=1)), rtol=1e-14)
