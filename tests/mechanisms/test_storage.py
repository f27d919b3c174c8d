"""Laws of records that are kept on a disk: what is computed of them, and what can go wrong.

1. Every number is that of the records in memory, to the last bit: gradients, minimisers, samples of
   records, and whole runs.
2. The files have no names, so that nobody opens them; the folder is as it was.
3. A folder that is none, or a disk that is full, is refused before anything is kept, in words that
   do not say how many records there are.
4. What stays in memory is a small part of the rows.
"""

import errno
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    FixedBatch,
    InvalidParameter,
    PrivateDataset,
    RowBlocks,
    storage,
)
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.sensitive import Sensitive
from dpledger.solvers import ConsensusDpAdmm, ConstantSteps, DpSgd, Logistic

from .same_runs import require_same_run

COUNT, WIDTH = 30_000, 40
RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(COUNT, WIDTH)) / 5.0
LABELS = RNG.choice([-1.0, 1.0], size=COUNT)
POINTS = RNG.normal(size=(3, 1, WIDTH))


def held(scratch: str | Path | None, *, parties: int = 1, kind: Any = AuditDataset) -> Any:
    return kind(
        RowBlocks(ROWS.shape, lambda some: ROWS[some], scratch),
        LABELS,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.arange(COUNT) % parties,
        parties=tuple(f"p{k}" for k in range(parties)),
    )


@pytest.mark.parametrize("parties", [1, 3])
@pytest.mark.parametrize(
    "query",
    [
        lambda data: data.mean_gradient(Logistic(), np.full(WIDTH, 0.3)),
        lambda data: data.sum_gradient(Logistic(), np.full(WIDTH, -0.3)),
        lambda data: data.second_moment(),
        lambda data: data.sum_gradient(Logistic(), POINTS.repeat(len(data.shape.parties), axis=1)),
    ],
)
def test_a_value_is_that_of_the_records_in_memory(
    parties: int, query: Callable[[Any], Sensitive], tmp_path: Path
) -> None:
    on_disk, in_memory = (
        private_value(query(held(folder, parties=parties))) for folder in (tmp_path, None)
    )
    np.testing.assert_array_equal(on_disk, in_memory)


@pytest.mark.filterwarnings("ignore::dpledger.mechanisms.errors.RepeatableNoise")
@pytest.mark.parametrize(
    "solver",
    [
        ConsensusDpAdmm(3, 20.0, 4.0, momentum=0.5),
        DpSgd(3, 10.0, ConstantSteps(0.5), FixedBatch(100)),
    ],
)
def test_a_run_is_that_of_the_records_in_memory(solver: Any, tmp_path: Path) -> None:
    require_same_run(solver, held(tmp_path, kind=PrivateDataset), held(None, kind=PrivateDataset))


def test_rows_are_asked_for_so_many_at_once() -> None:
    asked: list[int] = []

    def read(some: Any) -> np.ndarray:
        asked.append(len(ROWS[some]))
        return ROWS[some]

    AuditDataset(
        RowBlocks(ROWS.shape, read, at_once=7000), LABELS, adjacency="replace-one", row_bound=1.0
    )
    assert asked == [7000, 7000, 7000, 7000, 2000]
    with pytest.raises(InvalidParameter, match="at_once=0 must be"):
        RowBlocks(ROWS.shape, read, at_once=0)


def test_a_dask_array_is_read_by_its_chunks(tmp_path: Path) -> None:
    lazy = pytest.importorskip("dask.array").from_array(ROWS, chunks=(4000, WIDTH))
    blocks = RowBlocks(lazy.shape, lambda some: lazy[some].compute(), tmp_path, at_once=4000)
    values = [
        private_value(
            AuditDataset(rows, LABELS, adjacency="replace-one", row_bound=1.0).second_moment()
        )
        for rows in (blocks, ROWS)
    ]
    np.testing.assert_array_equal(*values)


def test_files_have_no_names(tmp_path: Path) -> None:
    data = held(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert private_value(data.second_moment()) is not None


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage.os, "posix_fallocate", full)
    with pytest.raises(InvalidParameter, match="No space left on device") as caught:
        held(tmp_path)
    assert str(COUNT) not in str(caught.value)
    assert str(8 * COUNT * WIDTH) not in str(caught.value)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"scratch='.*nowhere'"):
        held(tmp_path / "nowhere")


def test_space_is_taken_where_no_call_reserves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(storage.os, "posix_fallocate")
    monkeypatch.setattr(storage, "_PIECE", 1000)
    found = storage.zeros((7, 90), tmp_path)
    found[:] = 2.0
    assert found.sum() == 1260.0


def test_little_of_the_records_stays_in_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        data = held(tmp_path)
        loaded = tracemalloc.get_traced_memory()
        private_value(data.sum_gradient(Logistic(), np.zeros(WIDTH)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # labels are copied, and parties and places numbered, before they go to the disk too; and blocks
    blocks = 2**21
    assert loaded[0] < 0.01 * ROWS.nbytes
    assert peak < 6 * LABELS.nbytes + blocks < 0.4 * ROWS.nbytes
