"""Laws of rows that are read block by block: the same records, and one copy of them in memory.

1. A handle made of blocks answers as one made of the array, dense or too skewed to be.
2. Blocks of another shape than was asked for, or with entries that are not finite, are refused.
3. Nothing is read once the handle stands, and a block never holds all rows.
4. A fit's memory is one copy of the rows beside the caller's, and squares are made piece by piece.
"""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import Adjacency, InvalidParameter, RowBlocks, dense_records
from dpledger.mechanisms.inside import private_value, records_of
from dpledger.solvers import Logistic

COUNT, WIDTH = 5000, 4
RNG = np.random.default_rng(2)
ROWS = RNG.normal(size=(COUNT, WIDTH))
LABELS = RNG.choice([-1.0, 1.0], size=COUNT)
EVEN, SKEWED = np.arange(COUNT) % 7, np.where(np.arange(COUNT) < 20, np.arange(COUNT) % 20, 0)


def held(rows: Any, party_of: np.ndarray) -> AuditDataset:
    return AuditDataset(
        rows,
        LABELS,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=party_of,
        parties=tuple(f"p{i}" for i in range(int(party_of.max()) + 1)),
    )


@pytest.mark.parametrize("party_of", [EVEN, SKEWED], ids=["even", "skewed"])
def test_a_handle_made_of_blocks_is_that_of_the_array(party_of: np.ndarray) -> None:
    asked: list[int] = []

    def read(some: Any) -> np.ndarray:
        asked.append(len(ROWS[some]))
        return ROWS[some]

    blocks, whole = held(RowBlocks(ROWS.shape, read), party_of), held(ROWS, party_of)
    times = len(asked)
    assert blocks.shape == whole.shape
    assert sum(asked) == COUNT
    if party_of is EVEN:
        assert max(asked) < COUNT / 2
    found, expected = (
        private_value(each.mean_gradient(Logistic(), np.ones(WIDTH))) for each in (blocks, whole)
    )
    assert found is not None
    np.testing.assert_array_equal(found, expected)
    assert len(asked) == times  # nothing is read afterwards


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda some: ROWS[:1], "features.shape"),
        (lambda some: ROWS[some, :2], "features.shape"),
        (lambda some: ROWS[some] * np.nan, "finite"),
        (lambda some: ROWS[some] * 1j, "real"),
    ],
)
def test_blocks_that_are_not_what_was_asked_for_are_refused(read: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        held(RowBlocks(ROWS.shape, read), EVEN)


def test_masks_choose_rows() -> None:
    blocks, kept = RowBlocks(ROWS.shape, lambda some: ROWS[some]), ROWS[:, 0] > 0.5
    np.testing.assert_array_equal(blocks[kept], ROWS[kept])


def test_squares_and_norms_in_pieces_are_those_of_all_rows(monkeypatch: Any) -> None:
    records = records_of(held(ROWS, EVEN))
    monkeypatch.setattr(dense_records, "_PIECE", 2 * 715 * WIDTH)  # two parties at a time, of seven
    rows: np.ndarray = records.rows  # type: ignore[attr-defined]
    np.testing.assert_array_equal(records.norms, np.linalg.norm(rows, axis=-1))
    for lead in ((), (3,)):
        w, slopes = RNG.normal(size=(*lead, 7, WIDTH)), RNG.normal(size=(*lead, *rows.shape[:2]))
        scores = np.einsum("pnd,...pd->...pn", rows**2, w)
        sums = np.einsum("...pn,pnd->...pd", slopes, rows**2)
        squares = records.squared()
        np.testing.assert_allclose(squares.scores(w), scores, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(squares.combined(slopes), sums, rtol=1e-11, atol=1e-12)


@pytest.mark.filterwarnings("ignore::dpledger.mechanisms.errors.RepeatableNoise")
def test_a_fit_holds_one_copy_of_the_rows(monkeypatch: Any) -> None:
    pytest.importorskip("sklearn")
    from dpledger.runs.estimators import PrivateAdmmClassifier

    rows = np.random.default_rng(0).uniform(-0.1, 0.1, size=(20_000, 80))  # 13 MB
    monkeypatch.setattr(dense_records, "_PIECE", 2**16)
    model = PrivateAdmmClassifier(
        epsilon=1.0,
        delta=1e-5,
        adjacency=Adjacency.REPLACE_ONE,
        n_parties=10,
        classes=(False, True),
        rounds=1,
        random_state=0,
    )
    tracemalloc.start()
    try:
        model.fit(rows, rows[:, 0] > 0.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # the handle's copy, what is at work of it, and numbers a record; it was three times the rows
    assert rows.nbytes < peak < 1.6 * rows.nbytes
