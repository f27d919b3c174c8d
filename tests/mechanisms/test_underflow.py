"""Numbers too small or too large for their squares are priced, and cut, at what they are."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits.datasets import AuditDataset, VerticalAuditDataset
from dpledger.mechanisms import Adjacency
from dpledger.mechanisms.clipping import lengths, longest_up
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.sensitivity import root_up
from dpledger.solvers.losses import LinearLoss

ROW = np.array([[0.6, -0.3, 0.7]])
TINY = (1e-20, 1e-110, 1e-170, 1e-300)


def exact(vector: np.ndarray) -> Fraction:
    return root_up(sum((Fraction(float(x)) ** 2 for x in vector.ravel()), Fraction(0)))


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-170, 1.0, 1e170, 1e308])
def test_lengths_are_right_at_every_size(size: float) -> None:
    vectors = np.array([[0.6, -0.3, 0.7], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) * size
    true = [exact(vector) for vector in vectors]
    # a subnormal number has few digits
    np.testing.assert_allclose(lengths(vectors), [float(t) for t in true], rtol=1e-12, atol=1e-323)
    assert max(true) <= longest_up(vectors) <= max(true) * (1 + Fraction(1, 10**12))
    assert longest_up(0.0 * vectors) == 0


@pytest.mark.parametrize("size", TINY)
def test_scores_at_a_tiny_point_are_priced_or_refused(size: float) -> None:
    data = VerticalAuditDataset(
        [ROW], np.ones(1), adjacency=Adjacency.REPLACE_ONE, parties=("a",), public_labels=True
    )
    point = np.array([1.0, 0.0, 0.0]) * size
    try:
        found = data.scores("a", point)
    except InvalidParameter:
        assert size < 1e-100
        return
    assert found.sensitivity.root >= 2 * Fraction(size)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("size", [*TINY, 1e170, 1e307])
@pytest.mark.parametrize("bound", [1e-180, 1e-100, 1.0, 1e100])
def test_rows_are_cut_at_every_size(layout: Any, size: float, bound: float) -> None:
    data = AuditDataset(
        layout(ROW * size), np.ones(1), adjacency=Adjacency.REPLACE_ONE, row_bound=bound
    )
    held = data._records
    assert held is not None
    row = held.rows[0, 0] if layout is np.asarray else held.blocks.toarray()[0]
    assert exact(row) <= Fraction(bound)
    least = min(float(exact(ROW * size)), bound)
    assert float(exact(row)) == pytest.approx(least, rel=1e-9)
    assert held.norms.ravel()[0] == pytest.approx(float(exact(row)), rel=1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("size", [1e-110, 1e-60, 1e-20])
def test_gradients_are_cut_at_every_size(layout: Any, size: float) -> None:
    data = AuditDataset(
        layout(ROW * size), np.ones(1), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
    )
    radius = size / 16
    found = data.sum_gradient(LinearLoss(), np.zeros(3), radius=radius)._value
    assert found is not None
    assert exact(found) <= Fraction(radius)


def test_repeated_entries_are_cut_together_whatever_the_flags_say() -> None:
    rows = sparse.csr_array((np.full(3, 0.7), np.zeros(3, dtype=int), [0, 3]), shape=(1, 3))
    rows.has_canonical_format = rows.has_sorted_indices = True
    data = AuditDataset(rows, np.ones(1), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)
    found = data.sum_gradient(LinearLoss(), np.zeros(3))._value
    assert found is not None
    assert exact(found) <= 1
