"""The same rows under two names: refused where a handle is made, in whatever order and layout."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpledger.mechanisms import Adjacency, InvalidParameter, LocalDataset, PrivateDataset
from dpledger.mechanisms.protocols import FloatArray

Rows = tuple[FloatArray, FloatArray]


def drawn(records: int, seed: int, *, width: int = 5) -> Rows:
    """Return rows of norm below 1, and labels."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-0.4, 0.4, size=(records, width))
    return rows, np.where(rng.random(records) < 0.5, 1.0, -1.0)


def handle(parts: list[Rows], layout: Any = np.asarray) -> PrivateDataset:
    """Return a handle of parties "0", "1", ..., of dense or sparse rows."""
    return PrivateDataset(
        layout(np.concatenate([rows for rows, _ in parts])),
        np.concatenate([labels for _, labels in parts]),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.repeat(np.arange(len(parts)), [len(labels) for _, labels in parts]),
        parties=tuple(map(str, range(len(parts)))),
    )


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_file_under_ten_names_is_refused_in_any_order(layout: Any) -> None:
    rows, labels = drawn(200, 0)
    order = np.random.default_rng(1).permutation(200)
    for parts in (
        [(rows, labels)] * 10,
        [drawn(100, 2), (rows, labels), drawn(300, 3), (rows[order], labels[order])],
    ):
        with pytest.raises(InvalidParameter, match="the same") as refused:
            handle(parts, layout)
        assert "0." not in str(refused.value)  # no entry of a row
    # folds of a file are different records
    folds = [(rows[k::10][:20], labels[k::10][:20]) for k in range(10)]
    assert handle(folds, layout).shape.parties == tuple("0123456789")


def test_negative_zeros_and_rows_that_are_cut_are_the_same_rows() -> None:
    rows, labels = drawn(100, 0)
    rows[:, 0] = 0.0
    longer = rows.copy()
    rows[0], longer[0] = (5.0, 0, 0, 0, 0), (9.0, -0.0, 0, 0, 0)  # both are cut to length 1
    longer[:, 0] *= -1.0
    longer[0, 0] = 9.0
    with pytest.raises(InvalidParameter, match="the same"):
        handle([(rows, labels), (longer, labels)])


def test_another_label_row_or_number_of_times_makes_other_records() -> None:
    rows, labels = drawn(100, 0)
    flipped, moved = labels.copy(), rows.copy()
    flipped[7] *= -1.0
    moved[7, 2] += 1e-9
    twice = (np.concatenate([rows, rows[:1]]), np.concatenate([labels, labels[:1]]))
    handle([(rows, labels), (rows, flipped), (moved, labels), twice])


def test_few_different_rows_can_be_equal_by_chance() -> None:
    """Different people have equal rows where columns are categorical: 16 kinds tell nothing."""
    kinds = np.array([*product((0.0, 0.4), repeat=4)])
    labels = np.ones(len(kinds))
    handle([(kinds, labels)] * 3)
    more = np.array([*product((0.0, 0.4), repeat=5)])
    with pytest.raises(InvalidParameter, match="the same"):
        handle([(more, np.ones(len(more)))] * 3)


def test_the_stated_probability_of_chance_is_an_upper_bound() -> None:
    """exp(-K)·√(2πn)·exp(1/(12n)), against every law of n = 2 to 6 records on n kinds at its worst.

    The most probable counts of a law, over laws: those of the law of the counts themselves.
    """
    for n in range(2, 7):
        for counts in product(range(n + 1), repeat=n):
            if sum(counts) != n:
                continue
            worst = float(math.factorial(n))
            for each in counts:
                worst *= (each / n) ** each / math.factorial(each)
            kinds = sum(each > 0 for each in counts)
            bound = math.exp(-kinds + 1 / (12 * n)) * math.sqrt(2 * math.pi * n)
            assert worst <= bound


def test_a_party_of_several_in_one_process_is_compared() -> None:
    rows, labels = drawn(50, 0)
    shape = handle([drawn(50, 1, width=5), drawn(50, 2), drawn(50, 3)]).shape
    with pytest.raises(InvalidParameter, match="the same"):
        LocalDataset(
            shape,
            ("0", "1"),
            np.concatenate([rows, rows]),
            np.concatenate([labels, labels]),
            party_of=np.repeat([0, 1], 50),
        )
