"""Networks of agents that talk to their neighbours only: connected, undirected, public.

>>> ring(5).degrees.tolist()
[2, 2, 2, 2, 2]
>>> Network(4, ((0, 1), (2, 3)))
Traceback (most recent call last):
...
dpledger.mechanisms.errors.InvalidParameter: Expected network='4 agents in 2 parts' connected.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from ..mechanisms.errors import InvalidParameter, require_positive, require_positive_int
from ..mechanisms.protocols import FloatArray

IntArray = np.ndarray[Any, np.dtype[np.integer[Any]]]


@dataclass(frozen=True, slots=True)
class Network:
    """A connected undirected graph of agents 0, 1, ..., agents - 1.

    Args:
        agents: their number N, at least 2: an agent without a neighbour has no penalty term.
        edges: pairs of agents that talk to each other, in any order; each once.

    Attributes:
        ends: the two agents of every edge, as two arrays of shape (E,).
        adjacency: the adjacency matrix of shape (N, N), sparse: 1 for neighbours. Memory and time
            grow with the edges, not with the square of the agents.
        degrees: the number of neighbours of every agent, of shape (N,).

    Raises:
        InvalidParameter: an edge to nowhere, from an agent to itself, or given twice; a graph that
            is not connected.
    """

    agents: int
    edges: tuple[tuple[int, int], ...]
    ends: tuple[IntArray, IntArray] = field(init=False, repr=False, compare=False)
    adjacency: sparse.csr_array[Any] = field(init=False, repr=False, compare=False)
    degrees: IntArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_positive_int("agents", self.agents)
        if self.agents < 2:
            raise InvalidParameter("agents", self.agents, "a whole number in [2, inf)")
        seen: set[tuple[int, int]] = set()
        for i, j in self.edges:
            if not (0 <= i < self.agents and 0 <= j < self.agents) or i == j:
                raise InvalidParameter("edge", (i, j), f"of two agents in [0, {self.agents - 1}]")
            edge = (i, j) if i < j else (j, i)
            if edge in seen:
                raise InvalidParameter("edge", (i, j), "given once")
            seen.add(edge)
        edges = tuple(sorted(seen))
        pairs = np.array(edges, dtype=np.intp).reshape(-1, 2)
        first, second = pairs[:, 0], pairs[:, 1]
        rows, columns = np.concatenate([first, second]), np.concatenate([second, first])
        places = (rows, columns)
        adjacency = sparse.csr_array((np.ones(len(rows)), places), shape=(self.agents, self.agents))
        # loading it takes longer than most plans
        from scipy.sparse.csgraph import connected_components

        parts, _ = connected_components(adjacency, directed=False)
        if parts > 1:
            raise InvalidParameter("network", f"{self.agents} agents in {parts} parts", "connected")
        degrees = np.bincount(pairs.ravel(), minlength=self.agents)
        for array in (first, second, adjacency.data, degrees):
            array.setflags(write=False)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "ends", (first, second))
        object.__setattr__(self, "adjacency", adjacency)
        object.__setattr__(self, "degrees", degrees)

    def neighbour_sums(self, rows: FloatArray) -> FloatArray:
        """Return each agent's sum of its neighbours' rows, in their order, of shape (..., N, d).

        Args:
            rows: of shape (..., N, d). Every trial's sums have the same bits as they have alone.
        """
        first = np.moveaxis(rows, -2, 0)
        sums = self.adjacency @ first.reshape(self.agents, -1)
        return np.asarray(np.moveaxis(sums.reshape(first.shape), 0, -2))

    def sums_over(self, edges: FloatArray, rows: FloatArray) -> FloatArray:
        """Return each agent's sum over its edges of weights times neighbours' rows, (..., N, d).

        Args:
            edges: a weight for each edge, of shape (..., E), the same in both directions.
            rows: of shape (..., N, d).
        """
        first, second = self.ends
        order = np.argsort(np.concatenate([first, second]), kind="stable")
        sources = np.concatenate([second, first])[order]
        weights = np.concatenate([edges, edges], axis=-1)[..., order, None]
        starts = np.concatenate([[0], np.cumsum(self.degrees)[:-1]])  # nobody is without neighbour
        return np.asarray(np.add.reduceat(weights * rows[..., sources, :], starts, axis=-2))


def ring(agents: int) -> Network:
    """Return a cycle; two agents share one edge."""
    require_positive_int("agents", agents)
    edges = {(min(i, (i + 1) % agents), max(i, (i + 1) % agents)) for i in range(agents)}
    return Network(agents, tuple(edges))


def complete(agents: int) -> Network:
    """Return the network in which everybody talks to everybody."""
    require_positive_int("agents", agents)
    return Network(agents, tuple(combinations(range(agents), 2)))


def hub(agents: int) -> Network:
    """Return the star: agent 0 talks to everybody, the others to agent 0 only."""
    require_positive_int("agents", agents)
    return Network(agents, tuple((0, i) for i in range(1, agents)))


def five_agents() -> Network:
    """Return five agents with 4, 2, 3, 3 and 2 neighbours: a ring and two chords.

    Ding et al. (2020) use "a network with five agents" whose edges are drawn in Figure 1 and
    written nowhere; this one has the numbers of neighbours 2, 3 and 4.
    """
    return Network(5, (*ring(5).edges, (0, 2), (0, 3)))


def random_geometric(agents: int, radius: float, *, seed: int) -> Network:
    """Return agents at seeded uniform points of the unit square, neighbours within `radius`.

    Raises `InvalidParameter` when the graph is not connected: choose a larger radius (for N agents,
    sqrt(2 ln N / (pi N)) is usually enough).
    """
    require_positive_int("agents", agents)
    require_positive("radius", radius)
    points = np.random.default_rng(seed).random((agents, 2))
    return Network(agents, tuple(_within(points, radius)))


def _within(points: FloatArray, radius: float) -> Iterable[tuple[int, int]]:
    for i, point in enumerate(points):
        near = np.flatnonzero(np.linalg.norm(points[i + 1 :] - point, axis=-1) <= radius)
        yield from ((i, i + 1 + int(j)) for j in near)
