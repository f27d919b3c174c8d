"""Laws of the neighbours for tightness tests: the share is the gradients' gap over its price."""

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits.datasets import AuditDataset
from dpledger.audits.neighbours import (
    flip_label,
    longest_row,
    opposite_gradients,
    random_record,
    turned_record,
    zero_out,
)
from dpledger.mechanisms import Adjacency, InvalidParameter
from dpledger.solvers.losses import LinearLoss, Logistic

BOUND = 2.0


def rows():
    generator = np.random.default_rng(31)
    features = generator.normal(size=(24, 5))
    features *= generator.uniform(0.2, BOUND, (24, 1)) / np.linalg.norm(
        features, axis=1, keepdims=True
    )
    return features, np.where(generator.random(24) < 0.5, -1.0, 1.0)


def dataset(adjacency=Adjacency.REPLACE_ONE, layout=np.asarray):
    features, labels = rows()
    return AuditDataset(
        layout(features),
        labels,
        adjacency=adjacency,
        row_bound=BOUND,
        party_of=np.repeat([0, 1], 12),
        parties=("a", "b"),
    )


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("index", [0, 13, 23])
def test_a_flipped_label_pays_half_of_its_rows_length(layout, index):
    pair = flip_label(dataset(layout=layout), index=index, loss=Logistic())
    length = np.linalg.norm(rows()[0][index])
    assert pair.share == pytest.approx(length / (2 * BOUND), rel=1e-8)


def test_a_flipped_label_moves_a_logistic_gradient_by_the_row_everywhere():
    pair = flip_label(dataset(), index=13, loss=Logistic())
    for point in np.random.default_rng(32).normal(size=(5, 5)) * 4:
        first, second = (
            side.mean_gradient(Logistic(), point)._value for side in (pair.dataset, pair.neighbour)
        )
        gap = 12 * (second - first)
        np.testing.assert_allclose(gap[0], 0.0, atol=1e-12)
        np.testing.assert_allclose(np.abs(gap[1]), np.abs(rows()[0][13]), atol=1e-12)


def test_opposite_gradients_pay_the_whole_price_under_a_linear_loss():
    assert opposite_gradients(dataset(), index=3, loss=LinearLoss()).share == pytest.approx(1)
    assert opposite_gradients(dataset(), index=3, loss=Logistic()).share == pytest.approx(0.5)


def test_a_turned_record_is_the_only_one_with_a_gradient():
    pair = turned_record(("a", "b"), each=3, row_bound=BOUND, index=4)
    assert pair.share == pytest.approx(1)
    assert pair.dataset.differing(pair.neighbour).tolist() == [4]
    gradients = [
        side.mean_gradient(LinearLoss(), np.ones(2))._value
        for side in (pair.dataset, pair.neighbour)
    ]
    np.testing.assert_allclose(gradients[0], [[0, 0], [BOUND / 3, 0]], rtol=1e-5)
    np.testing.assert_allclose(gradients[1], [[0, 0], [-BOUND / 3, 0]], rtol=1e-5)


def test_a_null_record_has_a_fixed_share_under_a_linear_loss_only():
    data = dataset(Adjacency.ZERO_OUT_ONE)
    length = np.linalg.norm(rows()[0][5])
    share = zero_out(data, index=5, loss=LinearLoss()).share
    assert share == pytest.approx(length / BOUND, rel=1e-8)
    assert zero_out(data, index=5, loss=Logistic()).share is None


def test_pairs_of_another_relation_are_refused():
    with pytest.raises(InvalidParameter, match="adjacency"):
        flip_label(dataset(Adjacency.ZERO_OUT_ONE), index=0, loss=Logistic())
    with pytest.raises(InvalidParameter, match="adjacency"):
        zero_out(dataset(), index=0, loss=Logistic())


def test_a_record_without_features_has_no_label_to_flip():
    data = dataset().with_record(4, features=np.zeros(5))
    with pytest.raises(InvalidParameter, match="index=4"):
        flip_label(data, index=4, loss=Logistic())


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_the_longest_row_is_found(layout):
    features = rows()[0]
    assert longest_row(layout(features)) == np.linalg.norm(features, axis=1).argmax()


def test_a_random_record_is_any_record_and_the_same_for_a_seed():
    drawn = {random_record(3, seed=seed) for seed in range(40)}
    assert drawn == {0, 1, 2}
    assert random_record(1000, seed=7) == random_record(1000, seed=7)
