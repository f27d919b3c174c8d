"""R-ADMM on a network: every other round reuses what was sent (Zhang, Khalili, Liu 2018).

Odd rounds are ADMM's. In an even round an agent takes the linear model of its objective at its last
message x̃, whose gradient follows from the optimality of x̃ without looking at the data:

    grad f_i(x̃) = eta (|V_i| x_i + sum_j x_j) - alpha_i - 2 eta |V_i| x̃    (x, alpha before x̃).

Its new point minimises <grad f_i(x̃), x> + (gamma/2)|x - x̃|² plus the rest as before. With a noisy
x̃ the gradient is noisy too; either way an even round costs nothing. Ding et al. (2020) and Huang et
al. (2020) name the method and print no formula: this form is our reading, in which what is recycled
is the gradient that a message implies.

Two algorithms:
  `RAdmm`           repaired: noise behind the minimisers of odd rounds;
  `PublishedRAdmm`  as published: noise in the penalty, minimisers sent as found (see
                    `penalty_perturbation`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.errors import require_positive
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray
from .decentralised import NetworkState, PrAdmm, agent_duals, first_state
from .penalty_perturbation import PerturbedPenalties, require_no_threshold
from .solver import Observer


@dataclass(frozen=True, slots=True)
class RAdmm:
    """R-ADMM, repaired: odd rounds are PR-ADMM's, with its schedule of noise; even ones are free.

    Args:
        settings: of ADMM on a network; rounds count odd and even ones.
        proximity: gamma > 0; an even round converges for gamma above the objective's curvature.
    """

    settings: PrAdmm
    proximity: float

    def __post_init__(self) -> None:
        require_no_threshold(self.settings)
        require_positive("proximity", self.proximity)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[NetworkState] = None
    ) -> NetworkState:
        """Run all rounds and return the last public state."""

        def send(k: int, state: NetworkState) -> FloatArray:
            local = self.settings.agent_step(dataset, state)
            return self.settings.send(curator, local, k, local.sensitivity.root)

        return self.run(dataset, send, observe)

    def run(
        self,
        dataset: PrivateDataset,
        send: Callable[[int, NetworkState], FloatArray],
        observe: Observer[NetworkState],
    ) -> NetworkState:
        """Run all rounds; `send` returns an odd round's messages, given the state before it."""
        network, penalty = self.settings.network, self.settings.penalty
        before = state = first_state(dataset, network, self.settings.loss)
        for k in range(1, self.settings.rounds + 1):
            messages = send(k, state) if k % 2 else self.recycled(before, state)
            duals = agent_duals(messages, state.duals, network, penalty)
            before, state = state, replace(state, messages=messages, duals=duals)
            if observe is not None:
                observe(k, state)
        return state

    def in_round(self, round: int) -> PrAdmm:
        """Return the settings, which are those of every odd round."""
        return self.settings

    def recycled(self, before: NetworkState, state: NetworkState) -> FloatArray:
        """Return the points of an even round, of shape (..., P, d), from two public states."""
        network, penalty = self.settings.network, self.settings.penalty
        weights = 2.0 * penalty * network.degrees[:, None]

        def pull(public: NetworkState) -> FloatArray:
            near = network.degrees[:, None] * public.messages + network.matrix @ public.messages
            return np.asarray(penalty * near - public.duals)

        gradient = pull(before) - weights * state.messages
        kept = self.proximity * state.messages
        return np.asarray((kept + pull(state) - gradient) / (self.proximity + weights))


class PublishedRAdmm(PerturbedPenalties):
    """R-ADMM as published: noise in the penalties of odd rounds."""

    __slots__ = ()
