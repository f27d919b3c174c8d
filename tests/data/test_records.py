"""Labelled records: what they refuse, and a split that everybody can repeat."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpledger.data import LabelledRecords, split_records
from dpledger.mechanisms import ClassLabels, InvalidParameter


def numbered(n: int) -> LabelledRecords:
    """Records whose only feature is their own number, divided by n."""
    return LabelledRecords(
        features=(np.arange(n, dtype=np.float64) / n)[:, np.newaxis],
        labels=np.where(np.arange(n) % 3 == 0, 1.0, -1.0),
        feature_names=("x",),
        row_bound=1.0,
        description="numbers",
        parties=("even", "odd"),
        party_of=np.arange(n) % 2,
    )


def test_a_seed_means_the_same_split_for_ever() -> None:
    # pinned: PCG64(7) is a fixed stream, so these positions may never change
    train, test = split_records(numbered(10), train_records=7, seed=7)
    assert np.round(train.features[:, 0] * 10).tolist() == [6, 3, 4, 9, 0, 2, 8]
    assert np.round(test.features[:, 0] * 10).tolist() == [7, 5, 1]


@given(n=st.integers(2, 60), seed=st.integers(0, 2**64), data=st.data())
def test_a_split_is_a_permutation_and_keeps_label_and_party(
    n: int, seed: int, data: st.DataObject
) -> None:
    records = numbered(n)
    size = data.draw(st.integers(1, n - 1))
    train, test = split_records(records, train_records=size, seed=seed)
    assert (len(train), len(test)) == (size, n - size)
    order = np.round(np.concatenate([train.features, test.features])[:, 0] * n).astype(int)
    assert sorted(order.tolist()) == list(range(n))
    assert np.array_equal(np.concatenate([train.labels, test.labels]), records.labels[order])
    assert np.array_equal(np.concatenate([train.party_of, test.party_of]), order % 2)


def test_a_split_depends_on_the_seed() -> None:
    first, _ = split_records(numbered(50), train_records=25, seed=1)
    second, _ = split_records(numbered(50), train_records=25, seed=2)
    assert not np.array_equal(first.features, second.features)


@pytest.mark.parametrize("train_records", [0, 10, -1])
def test_a_split_leaves_a_record_on_each_side(train_records: int) -> None:
    with pytest.raises(
        InvalidParameter, match=rf"train_records={train_records} must be in \[1, 9\]"
    ):
        split_records(numbered(10), train_records=train_records, seed=0)


def test_dealing_gives_parties_equal_shares_and_every_party_one_record() -> None:
    divided = numbered(11).divided(("a", "b", "c"))
    assert np.bincount(divided.party_of).tolist() == [4, 4, 3]
    with pytest.raises(InvalidParameter, match=r"parties=3 must be in \[1, 2\]"):
        numbered(2).divided(("a", "b", "c"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([1.0, 0.0])}, r"label=.* must be in \{-1, \+1\}"),
        ({"label_domain": ClassLabels(3)}, r"label=.* must be a whole number in \[0, 2\]"),
        ({"labels": np.array([1.0])}, r"features.shape=\(2, 1\) must be equal to .* \(1, 1\)"),
        ({"feature_names": ("x", "y")}, r"features.shape=\(2, 1\) must be equal to .* \(2, 2\)"),
        ({"features": np.array([[0.0], [1.5]])}, r"longest row='longer' must be in \[0, 1.0\]"),
        (
            {"features": sparse.csr_array([[0.0], [1.5]])},
            r"longest row='longer' must be in \[0, 1.0\]",
        ),
        ({"features": np.array([[0.0], [np.nan]])}, r"longest row='longer' must be in \[0, 1.0\]"),
        ({"features": np.array([[0.0], [np.inf]])}, r"longest row='longer' must be in \[0, 1.0\]"),
        ({"row_bound": 0.0}, r"row_bound=0.0 must be in \(0, inf\)"),
        ({"party_of": np.array([0, 2])}, r"party_of=\[0, 2\] must be in \[0, 1\]"),
        ({"party_of": np.array([0])}, r"party_of.shape=\(1,\) must be \(2,\)"),
    ],
)
def test_records_refuse_what_is_not_as_declared(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        replace(numbered(2), **change)


def test_a_printed_data_set_shows_no_record() -> None:
    assert "array" not in repr(numbered(3))
