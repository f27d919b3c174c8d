"""M-ADMM on a network: penalties that grow, and noise in the penalty (Zhang, Khalili, Liu 2018).

In round k every agent minimises

    f_i(x) + <alpha_i, x> + eta_k sum_j |x - (x_i + x_j)/2|²,    eta_k = eta·growth^(k-1),

and dual variables take steps of the first round's penalty: alpha_i += eta sum_j (x_i - x_j). Noise
xi inside the norm is a linear term 2 eta_k |V_i| <xi, x>: objective perturbation, whose noise grows
with the penalty. A growth of 1 is dual variable perturbation on a network. Ding et al. (2020) and
Huang et al. (2020) name the method and print no formula: this is the reading in which the penalty
is what is perturbed, and larger penalties tell less.

`MAdmm` is the repaired algorithm, a baseline of Ding et al.'s experiments: noise behind the
minimiser, the same in every round by default. Noise in the penalty, as published, has no price for
the reason that `dual_perturbation` gives.
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.private_data import PrivateDataset
from .decentralised import NetworkState, PrAdmm, agent_duals, first_state
from .solver import Observer


@dataclass(frozen=True, slots=True)
class MAdmm:
    """M-ADMM, repaired: exact minimisers plus noise.

    Under replace-one round k has sensitivity (2V/n + 2 tau)/m_k with m_k = 2 eta_k |V_i| + 2 Λ/N.
    Noise is in units of the first round's: with constant noise round k costs (m_1/m_k)² times what
    the first one costs.

    Args:
        settings: of ADMM on a network; its penalty is that of the first round.
        growth: of the penalty from round to round, at least 1.
    """

    settings: PrAdmm
    growth: float

    def __post_init__(self) -> None:
        require_no_threshold(self.settings)
        if not 1.0 <= self.growth < inf:
            raise InvalidParameter("growth", self.growth, "in [1, inf)")
        self.in_round(self.settings.rounds)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[NetworkState] = None
    ) -> NetworkState:
        """Run all rounds and return the last public state.

        Args:
            dataset: the agents' records, as many parties as the network has agents.
            curator: releases one message an agent and round.
            observe: called with each round and the public state after it.

        Raises `InvalidParameter` for another number of parties, before anything is released.
        """
        network, step = self.settings.network, self.settings.penalty
        state = self.first_state(dataset)
        shape = PrivateDataset.planned(dataset.shape)
        first = self.settings.agent_step(shape, state)
        for k in range(1, self.settings.rounds + 1):
            local = self.in_round(k).agent_step(dataset, state)
            messages = self.settings.send(curator, local, k, first.sensitivity.root)
            duals = agent_duals(messages, state.duals, network, step)
            state = replace(state, messages=messages, duals=duals)
            if observe is not None:
                observe(k, state)
        return state

    def first_state(self, dataset: PrivateDataset) -> NetworkState:
        """Return the state before round 1."""
        return first_state(dataset, self.settings.network, self.settings.loss)

    def in_round(self, round: int) -> PrAdmm:
        """Return the settings with the penalty eta_k."""
        with np.errstate(over="ignore"):
            penalty = self.settings.penalty * float(np.float64(self.growth) ** (round - 1))
        return replace(self.settings, penalty=penalty)


def require_no_threshold(settings: PrAdmm) -> None:
    """Raise `InvalidParameter` where a threshold is set: only PR-ADMM has that test."""
    if settings.threshold < inf:
        raise InvalidParameter("threshold", settings.threshold, "inf: PR-ADMM only has that test")
