"""PR-ADMM on a network without a server (Ding, Zhang, Chen, Xue, Zhang, Pan 2020).

The problem is min over w of sum_i mean_j l(<a_ij, w>, b_ij) + regularisation·|w|². In each round
every agent minimises its part of the augmented Lagrangian, adds noise and sends x̃_i to its
neighbours; dual variables and the threshold test are functions of what was sent.

Two algorithms:
  `PrAdmm`           repaired: noise in units of the derived sensitivity of each agent,
                     2V/(|D_i| m_i) + 2 tau/m_i;
  `PublishedPrAdmm`  as published: noise in units of Lemma 5's V/(eta |V_i|), which has no 1/|D_i|.
The total over rounds is the ledger's business in both; `published_noise_multiplier` is the noise
that Theorems 3 and 4 take to be enough.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, log, sqrt

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import (
    InvalidParameter,
    Number,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ..mechanisms.events import Audience
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray, Loss
from ..mechanisms.sensitive import Sensitive
from ..mechanisms.sensitivity import float_up
from .losses import Logistic
from .schedules import (
    ConstantNoise,
    IterationDecay,
    NoiseSchedule,
    PeriodicDecay,
    noise_level,
    noise_weights,
)
from .solver import Observer
from .topologies import Network


@dataclass(frozen=True, slots=True)
class NetworkState:
    """What is public after a round.

    Args:
        messages: the agents' noisy x̃, of shape (..., P, d).
        duals: alpha, of shape (..., P, d).
        deviations: sum over rounds of |x̃_i - x̃_j| for every edge, of shape (..., E).
    """

    messages: FloatArray
    duals: FloatArray
    deviations: FloatArray

    def of(self, dataset: PrivateDataset) -> "NetworkState":
        """Return what is right here: of some agents' data alone, their own rows.

        An agent's sums have its neighbours' messages in them, and only 0 for the others'.
        """
        if dataset.rows == len(dataset.shape.parties):
            return self
        return NetworkState(dataset.own(self.messages), dataset.own(self.duals), self.deviations)

    @property
    def model(self) -> FloatArray:
        """The mean of the agents' models, of shape (..., d)."""
        return np.asarray(self.messages.mean(axis=-2))


@dataclass(frozen=True, slots=True)
class PrAdmm:
    """PR-ADMM, repaired: exact minimisers on a network, with noise on a public schedule.

    The subproblem of an agent with |V_i| neighbours has modulus m_i = 2 eta |V_i| + 2 Λ/N. Every
    agent's noise is in units of its own sensitivity, which is smaller the more neighbours it has,
    and the more records by the data's public `party_counts` (see `noise_weights`).

    Args:
        network: who talks to whom; its agents are the data set's parties, in order.
        rounds: K.
        noise_multiplier: noise_std / sensitivity in round 1; 0 is not private.
        schedule: how the noise of later rounds compares with round 1.
        penalty: eta.
        regularisation: Λ; 0 for none.
        threshold: U: an agent uses its own x̃ in place of a neighbour's once they have been further
            apart than U, added up over rounds; infinity for no test.
        tolerance: tau, the certified gradient norm of every minimiser.
        loss: l, smooth.
    """

    network: Network
    rounds: int
    noise_multiplier: float
    schedule: NoiseSchedule = field(default_factory=ConstantNoise)
    penalty: float = 0.5
    regularisation: float = 0.0
    threshold: float = inf
    tolerance: float = 1e-6
    loss: Loss = field(default_factory=Logistic)

    def __post_init__(self) -> None:
        require_positive_int("rounds", self.rounds)
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_positive("penalty", self.penalty)
        require_nonnegative("regularisation", self.regularisation)
        require_positive("tolerance", self.tolerance)
        if not self.threshold > 0:
            raise InvalidParameter("threshold", self.threshold, "in (0, inf]")
        for k in range(1, self.rounds + 1):
            require_positive(f"variance of round {k}", self.schedule.variance(k))

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[NetworkState] = None
    ) -> NetworkState:
        """Run all rounds and return the last public state."""
        return self.run(dataset, curator, None, observe)

    def run(
        self,
        dataset: PrivateDataset,
        curator: Curator,
        unit: Fraction | None,
        observe: Observer[NetworkState],
    ) -> NetworkState:
        """Run all rounds, with noise in multiples of `unit`; None for each agent's sensitivity.

        A `unit` is that of the agents with the fewest neighbours; an agent with more of them has as
        much less of it.
        """
        state = first_state(dataset, self.network, self.loss)
        weights = self.network.degrees / self.network.degrees.min()
        if unit is None:
            weights = self.noise_weights(dataset.shape)
        for k in range(1, self.rounds + 1):
            local = self.agent_step(dataset, state, weights)
            sent = self.send(curator, local, k, local.sensitivity.root if unit is None else unit)
            own = sent / dataset.own(weights)[:, None]
            messages = curator.collectives.exchange(own, self.network.ends)
            duals = agent_duals(messages, state.duals, self.network, self.penalty)
            deviations = state.deviations
            if self.threshold < inf:
                deviations = deviations + edge_lengths(messages, self.network)
            state = NetworkState(messages, duals, deviations)
            if observe is not None:
                observe(k, state.of(dataset))
        return state.of(dataset)

    def send(self, curator: Curator, local: Sensitive, round: int, unit: Fraction) -> FloatArray:
        """Return the messages of a round, with the schedule's noise in multiples of `unit`."""
        level = noise_level(self.schedule, self.noise_multiplier, round)
        return curator.release(
            local,
            round=round,
            release="primal",
            audience=Audience.NEIGHBOURS,
            noise_std=float_up(Fraction(level) * unit),
        )

    def noise_weights(self, shape: DataShape) -> FloatArray:
        """Return the largest of all agents' sensitivities over each one's own, of shape (P,)."""
        return noise_weights(
            shape.argmin_sensitivities(self.loss, modulus=self.moduli, tolerance=self.tolerance)
        )

    @property
    def moduli(self) -> FloatArray:
        """m_i of every agent, of shape (P,)."""
        degrees = self.network.degrees.astype(np.float64)
        return 2.0 * self.penalty * degrees + 2.0 * self.regularisation / len(degrees)

    def agent_step(
        self, dataset: PrivateDataset, state: NetworkState, weights: FloatArray | None = None
    ) -> Sensitive:
        """Return all agents' minimisers, of shape (..., P, d) (equation 12), times `weights`."""
        degrees = self.network.degrees.astype(np.float64)
        near = trusted_sums(state, self.network, self.threshold)
        return dataset.strongly_convex_argmin(
            self.loss,
            modulus=self.moduli,
            linear=dataset.own(
                state.duals - self.penalty * (degrees[:, None] * state.messages + near)
            ),
            tolerance=self.tolerance,
            start=dataset.own(state.messages),
            weights=weights,
        )


def first_state(dataset: PrivateDataset, network: Network, loss: Loss) -> NetworkState:
    """Return the state before round 1, or raise: the network's agents are not the parties."""
    parties = len(dataset.shape.parties)
    if network.agents != parties:
        raise InvalidParameter(
            "network.agents", network.agents, f"equal to the number of parties, {parties}"
        )
    block = np.zeros((parties, dataset.shape.parameters(loss)))
    return NetworkState(block, block, np.zeros(len(network.edges)))


def edge_lengths(messages: FloatArray, network: Network) -> FloatArray:
    """Return |x̃_i - x̃_j| for every edge, of shape (..., E)."""
    i, j = network.ends
    return np.asarray(np.linalg.norm(messages[..., i, :] - messages[..., j, :], axis=-1))


def trusted_sums(state: NetworkState, network: Network, threshold: float) -> FloatArray:
    """Return each agent's sum of its neighbours' x̃, its own in place of those too far (line 11)."""
    if threshold == inf:
        return network.neighbour_sums(state.messages)
    trusted = (state.deviations <= threshold).astype(np.float64)
    refused = network.sums_over(1.0 - trusted, np.ones((network.agents, 1)))
    return network.sums_over(trusted, state.messages) + refused * state.messages


def agent_duals(
    messages: FloatArray, duals: FloatArray, network: Network, penalty: float
) -> FloatArray:
    """Return alpha_i + eta (|V_i| x̃_i - sum of neighbours' x̃_j), of shape (..., P, d) (eq. 13)."""
    near = network.neighbour_sums(messages)
    return duals + penalty * (network.degrees[:, None] * messages - near)


@dataclass(frozen=True, slots=True)
class PublishedPrAdmm:
    """PR-ADMM as published: each agent's noise in units of its Lemma 5's V/(eta |V_i|).

    For convex losses that is |D_i| times the sensitivity or more; events carry the derived one, so
    a plan shows what the noise is worth.

    What differs from the paper: every x_i starts at 0, where the paper starts at random; and the
    model is the mean over agents (`NetworkState.model`), where each of the paper's agents keeps its
    own x_i, which are the rows of `NetworkState.messages`. Neither looks at the records.

    Args:
        algorithm: the repaired twin; its noise_multiplier is relative to Lemma 5's value here.
    """

    algorithm: PrAdmm

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[NetworkState] = None
    ) -> NetworkState:
        """Run all rounds and return the last public state."""
        return self.algorithm.run(dataset, curator, self.lemma_5(dataset), observe)

    def lemma_5(self, dataset: PrivateDataset) -> Fraction:
        """Return V/(eta |V_i|) for the agent with the fewest neighbours: of all, the largest."""
        fewest = int(self.algorithm.network.degrees.min())
        bound = dataset.shape.gradient_bound(self.algorithm.loss)
        return bound / (Fraction(self.algorithm.penalty) * fewest)


_MOST_COST = 2**1000
"""Of a schedule, over that of its first round: beyond, no double holds it."""


def published_noise_multiplier(
    schedule: PeriodicDecay | IterationDecay, rounds: int, *, epsilon: float, delta: Number
) -> float:
    """Return sigma_1 over Lemma 5's sensitivity by which Theorems 3 and 4 promise (epsilon, delta).

    From epsilon = rho + 2 sqrt(rho ln(1/delta)) (Lemma 3) and the theorems' totals; 0 where the
    total of Theorem 3 is zero: one round on its own would need no noise.
    """
    require_positive("epsilon", epsilon)
    require_open_unit("delta", delta)
    logarithm = -log(delta)
    total = (epsilon / (sqrt(logarithm + epsilon) + sqrt(logarithm))) ** 2
    cost = schedule.published_cost(rounds)
    if cost > _MOST_COST:
        raise InvalidParameter("schedule", schedule, f"of a cost below 2^1000 in {rounds} rounds")
    return sqrt(cost / (2.0 * total))
