"""Laws of networks: they are connected, undirected, and what their names say."""

import tracemalloc

import numpy as np
import pytest

from dpledger.mechanisms import InvalidParameter
from dpledger.mechanisms.protocols import FloatArray
from dpledger.solvers import Network, complete, five_agents, hub, random_geometric, ring


def dense(network: Network) -> FloatArray:
    return np.asarray(network.adjacency.toarray())


@pytest.mark.parametrize(
    ("network", "degrees"),
    [
        (ring(6), [2] * 6),
        (ring(3), [2] * 3),
        (ring(2), [1, 1]),
        (complete(5), [4] * 5),
        (hub(5), [4, 1, 1, 1, 1]),
        (five_agents(), [4, 2, 3, 3, 2]),
        (Network(4, ((3, 2), (0, 1), (2, 1))), [1, 2, 2, 1]),
    ],
)
def test_every_agent_has_the_neighbours_its_network_gives(
    network: Network, degrees: list[int]
) -> None:
    assert network.degrees.tolist() == degrees
    assert dense(network).sum(axis=0).tolist() == degrees
    assert np.array_equal(dense(network), dense(network).T)
    assert not dense(network).diagonal().any()


@pytest.mark.parametrize("lead", [(), (3,)])
def test_sums_over_neighbours_are_those_of_the_dense_matrix(lead: tuple[int, ...]) -> None:
    network, rng = random_geometric(30, 0.4, seed=7), np.random.default_rng(1)
    rows = rng.normal(size=(*lead, 30, 4))
    assert network.neighbour_sums(rows) == pytest.approx(dense(network) @ rows, abs=1e-12)
    weights = rng.random(size=(*lead, len(network.edges)))
    matrix = np.zeros((*lead, 30, 30))
    i, j = network.ends
    matrix[..., i, j] = matrix[..., j, i] = weights
    assert network.sums_over(weights, rows) == pytest.approx(matrix @ rows, abs=1e-12)


def test_every_trial_has_the_sums_that_it_has_alone() -> None:
    network, rows = ring(7), np.random.default_rng(1).normal(size=(5, 7, 3))
    together = network.neighbour_sums(rows)
    for trial, alone in zip(together, rows, strict=True):
        assert trial.tobytes() == network.neighbour_sums(alone).tobytes()


def test_memory_grows_with_the_edges() -> None:
    """20,000 agents: the square would be 3 GB."""
    tracemalloc.start()
    try:
        network = ring(20_000)
        network.neighbour_sums(np.ones((20_000, 3)))
        network.sums_over(np.ones(20_000), np.ones((20_000, 3)))
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


def test_the_order_of_edges_and_of_their_ends_means_nothing() -> None:
    assert Network(3, ((0, 1), (1, 2))) == Network(3, ((2, 1), (1, 0)))


def test_random_geometric_joins_exactly_the_near_points_and_is_seeded() -> None:
    network = random_geometric(40, 0.4, seed=7)
    points = np.random.default_rng(7).random((40, 2))
    distances = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    assert np.array_equal(dense(network) == 1, (distances <= 0.4) & ~np.eye(40, dtype=bool))
    assert network == random_geometric(40, 0.4, seed=7) != random_geometric(40, 0.4, seed=8)


@pytest.mark.parametrize(
    ("agents", "edges", "words"),
    [
        (1, (), "agents=1"),
        (2, (), "connected"),
        (4, ((0, 1), (2, 3)), "4 agents in 2 parts"),
        (5, ((0, 1), (1, 2), (2, 0), (3, 4)), "connected"),
        (3, ((0, 1), (1, 2), (1, 0)), "once"),
        (3, ((0, 0), (0, 1), (1, 2)), "two agents"),
        (3, ((0, 1), (1, 3)), "two agents"),
        (3, ((0, 1), (1, -1)), "two agents"),
    ],
)
def test_what_is_no_connected_graph_is_refused(
    agents: int, edges: tuple[tuple[int, int], ...], words: str
) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Network(agents, edges)


def test_a_radius_that_leaves_agents_alone_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="connected"):
        random_geometric(40, 0.01, seed=7)
