"""Laws of networks: they are connected, undirected, and what their names say."""

import numpy as np
import pytest

from dpledger.mechanisms import InvalidParameter
from dpledger.solvers import Network, complete, five_agents, hub, random_geometric, ring


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
    assert network.matrix.sum(axis=0).tolist() == degrees
    assert np.array_equal(network.matrix, network.matrix.T)
    assert not network.matrix.diagonal().any()


def test_the_order_of_edges_and_of_their_ends_means_nothing() -> None:
    assert Network(3, ((0, 1), (1, 2))) == Network(3, ((2, 1), (1, 0)))


def test_random_geometric_joins_exactly_the_near_points_and_is_seeded() -> None:
    network = random_geometric(40, 0.4, seed=7)
    points = np.random.default_rng(7).random((40, 2))
    distances = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    assert np.array_equal(network.matrix == 1, (distances <= 0.4) & ~np.eye(40, dtype=bool))
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
