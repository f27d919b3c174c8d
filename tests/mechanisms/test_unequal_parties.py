"""Laws of unequal parties: they cost what their records cost, and the layout is a public choice."""

import numpy as np
import pytest
from scipy import sparse

from dpledger.mechanisms import Adjacency, PrivateDataset
from dpledger.mechanisms.dense_records import DenseRecords
from dpledger.mechanisms.sparse_records import SparseRecords
from dpledger.solvers import Logistic

PARTIES, LARGE = 50, 400


def unequal(adjacency: Adjacency, *, as_sparse: bool = False) -> PrivateDataset:
    """One party of 400 records, 49 of one."""
    rng = np.random.default_rng(8)
    party_of = np.concatenate([np.zeros(LARGE, dtype=int), np.arange(1, PARTIES)])
    rows = rng.normal(size=(len(party_of), 5))
    return PrivateDataset(
        sparse.csr_array(rows) if as_sparse else rows,
        rng.choice([-1.0, 1.0], len(party_of)),
        adjacency=adjacency,
        row_bound=1.0,
        party_of=party_of,
        parties=tuple(f"p{i}" for i in range(PARTIES)),
        n_min=1 if adjacency is Adjacency.ADD_REMOVE_ONE else None,
        n_max=1000 if adjacency is Adjacency.ADD_REMOVE_ONE else None,
    )


@pytest.mark.parametrize("adjacency", [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE])
def test_unequal_parties_are_not_padded_and_count_alike(adjacency: Adjacency) -> None:
    data = unequal(adjacency)
    assert isinstance(data._records, SparseRecords)
    assert data._records.blocks.nnz == 5 * (LARGE + PARTIES - 1)
    w = np.linspace(-1.0, 1.0, 5)
    found, other = (
        each.mean_gradient(Logistic(), w)._value
        for each in (data, unequal(adjacency, as_sparse=True))
    )
    assert found is not None
    np.testing.assert_array_equal(found, other)


def test_private_numbers_of_records_choose_no_layout() -> None:
    assert isinstance(unequal(Adjacency.ADD_REMOVE_ONE)._records, DenseRecords)


def test_large_parties_are_cut_like_small_ones() -> None:
    """Records are cut some thousands at a time."""
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(5000, 3))
    labels = np.ones(5000)
    given = {"adjacency": Adjacency.REPLACE_ONE, "row_bound": 1.0}
    whole = PrivateDataset(rows, labels, **given)._records
    assert isinstance(whole, DenseRecords)
    for index in (0, 2047, 2048, 4999):
        alone = PrivateDataset(rows[[index]], labels[[index]], **given)._records
        assert isinstance(alone, DenseRecords)
        np.testing.assert_array_equal(whole.rows[0, index], alone.rows[0, 0])
    rows[4999, 1] = np.nan
    with pytest.raises(Exception, match="features"):
        PrivateDataset(rows, labels, **given)
