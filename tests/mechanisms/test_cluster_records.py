"""Laws of records on a cluster: sums of gradients to the same bits, and nothing else.

Workers are threads of one process here.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    ClusterRows,
    InvalidParameter,
    PrivateDataset,
    blocking,
)
from dpledger.mechanisms.inside import private_value
from dpledger.solvers import (
    ConsensusDpAdmm,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    Logistic,
    OutputPerturbation,
)
from dpledger.solvers.losses import Hinge

from .same_runs import require_same_run

lazy = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

COUNT, WIDTH = 20_000, 30
RNG = np.random.default_rng(8)
ROWS = RNG.normal(size=(COUNT, WIDTH)) / 4.0
LABELS = RNG.choice([-1.0, 1.0], size=COUNT)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def held(client: Any, kind: Any = AuditDataset, rows: Any = ROWS) -> Any:
    features = rows if client is None else ClusterRows(lazy.from_array(rows, chunks=5_000), client)
    return kind(features, LABELS, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)


@pytest.mark.parametrize("scores", [2**17, 2**19])
@pytest.mark.parametrize(
    "query",
    [
        lambda data: data.mean_gradient(Logistic(), np.full(WIDTH, 0.3)),
        lambda data: data.sum_gradient(Logistic(), np.full(WIDTH, -0.3)),
        lambda data: data.sum_gradient(Logistic(), np.ones((50, 1, WIDTH))),
        lambda data: data.second_moment(),
    ],
)
def test_sums_of_gradients_are_those_of_the_records_in_memory(
    client: Any, query: Any, scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # several blocks a partition; and one block, hence one partition, for all records
    monkeypatch.setattr(blocking, "_BLOCK_NUMBERS", scores)
    there, here = (private_value(query(held(each))) for each in (client, None))
    np.testing.assert_array_equal(there, here)


@pytest.mark.filterwarnings("ignore::dpledger.mechanisms.errors.RepeatableNoise")
@pytest.mark.parametrize(
    "solver",
    [
        ConsensusDpAdmm(3, 20.0, 4.0),
        DpAdmm(3, 20.0, ConstantSteps(0.5)),
        DpSgd(3, 20.0, ConstantSteps(0.5)),
        OutputPerturbation(20.0, regularisation=0.5),
    ],
)
def test_a_run_is_that_of_the_records_in_memory(solver: Any, client: Any) -> None:
    require_same_run(solver, held(client, PrivateDataset), held(None, PrivateDataset))


def test_longer_rows_are_cut_and_others_refused(client: Any) -> None:
    found, expected = (
        private_value(held(each, rows=9.0 * ROWS).second_moment()) for each in (client, None)
    )
    np.testing.assert_array_equal(found, expected)
    for bad in (np.where(ROWS > 1.0, np.nan, ROWS), ROWS * 1j):
        with pytest.raises(InvalidParameter, match="features"):
            held(client, rows=bad)


def test_what_a_graph_ends_in_is_refused_without_the_cell(client: Any) -> None:
    """Texts that are converted on the workers: NumPy's error names the one that is no number."""
    texts = np.full((40, 3), "0.25", dtype=object)
    texts[17, 1] = "Ann Smith 1980"
    rows = ClusterRows(lazy.from_array(texts, chunks=(10, 3)).astype(float), client)
    with pytest.raises(InvalidParameter, match="ends in an error") as refused:
        PrivateDataset(rows, np.ones(40), adjacency="replace-one", row_bound=1.0)
    assert refused.value.__context__ is None


def test_a_partition_of_another_shape_than_it_says_is_refused(client: Any) -> None:
    # one row beside thousands of labels would count as often
    rows = lazy.from_array(ROWS, chunks=(5_000, WIDTH))
    for lie in (lambda part: part[:1], lambda part: part[:, :1], lambda part: part[:-1]):
        short = rows.map_blocks(lie, dtype=np.float64, chunks=rows.chunks)
        with pytest.raises(InvalidParameter, match=r"features.shape=.* as the array's chunks say"):
            PrivateDataset(
                ClusterRows(short, client), LABELS, adjacency="replace-one", row_bound=1.0
            )


@pytest.mark.parametrize(
    "query",
    [
        lambda data: data.histogram([0.0]),
        lambda data: data.sum_gradient(Logistic(), np.zeros(WIDTH), radius=0.1),
        lambda data: data.wrong_predictions([np.ones(WIDTH)]),
    ],
)
def test_what_is_no_sum_of_gradients_is_refused(client: Any, query: Any) -> None:
    with pytest.raises(InvalidParameter, match="records='on a cluster' must be in memory, or on"):
        query(held(client))


def test_a_cluster_is_one_partys(client: Any) -> None:
    with pytest.raises(InvalidParameter, match="parties=2 must be 1"):
        PrivateDataset(
            ClusterRows(lazy.from_array(ROWS), client),
            LABELS,
            adjacency="replace-one",
            row_bound=1.0,
            party_of=np.arange(COUNT) % 2,
            parties=("a", "b"),
        )


def test_a_record_is_scored_alike_however_its_partition_lies_in_memory(client: Any) -> None:
    """Partitions of data frames are column-major; a hinge at its corner told the order of sums."""
    width, count = 100, 1311
    row = np.random.default_rng(1).normal(size=width)
    row /= np.linalg.norm(row) * 1.001
    rows = np.zeros((count + 1, width))
    rows[count - 1 :] = row
    found = []
    for many in (count, count + 1):
        parts = lazy.from_array(rows[:many], chunks=(1310, width)).map_blocks(np.asfortranarray)
        data = AuditDataset(
            ClusterRows(parts, client),
            np.ones(many),
            adjacency=Adjacency.ADD_REMOVE_ONE,
            row_bound=1.0,
            n_min=1000,
        )
        points = row / (row @ row) * (1.0 + np.arange(-9.0, 10.0)[:, None] * 2.0**-53)
        found.append([private_value(data.sum_gradient(Hinge(), at)) for at in points])
    moved = np.linalg.norm(np.subtract(*found), axis=-1)
    assert moved.max() <= 1.0 + 1e-9
