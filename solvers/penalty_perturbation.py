"""M-ADMM on a network: penalties that grow, and noise in the penalty (Zhang, Khalili, Liu 2018).

In round k every agent minimises

    f_i(x) + <alpha_i, x> + eta_k sum_j |x - (x_i + x_j)/2|²,    eta_k = eta·growth^(k-1),

and dual variables take steps of the first round's penalty: alpha_i += eta sum_j (x_i - x_j). Noise
xi inside the norm is a linear term 2 eta_k |V_i| <xi, x>: objective perturbation, whose noise grows
with the penalty. A growth of 1 is dual variable perturbation on a network. Ding et al. (2020) and
Huang et al. (2020) name the method and print no formula: this is the reading in which the penalty
is what is perturbed, and larger penalties tell less.

Two algorithms:
  `MAdmm`           repaired: noise behind the minimiser, the same in every round by default;
  `PublishedMAdmm`  as published: noise in the penalty, minimisers sent as found (for why that has
                    no price see `dual_perturbation`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.errors import InvalidParameter, require_nonnegative
from ..mechanisms.events import Audience
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray
from .decentralised import NetworkState, PrAdmm, agent_duals, first_state
from .dual_perturbation import perturbing_noise, send_as_found
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
        """Run all rounds and return the last public state."""
        shape = PrivateDataset.planned(dataset.shape)
        first = self.settings.agent_step(shape, self.first_state(dataset))

        def send(k: int, state: NetworkState) -> FloatArray:
            local = self.in_round(k).agent_step(dataset, state)
            return self.settings.send(curator, local, k, first.sensitivity.root)

        return self.run(dataset, send, observe)

    def run(
        self,
        dataset: PrivateDataset,
        send: Callable[[int, NetworkState], FloatArray],
        observe: Observer[NetworkState],
    ) -> NetworkState:
        """Run all rounds; `send` returns the messages of round k, given the state before it."""
        network, step = self.settings.network, self.settings.penalty
        state = self.first_state(dataset)
        for k in range(1, self.settings.rounds + 1):
            messages = send(k, state)
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


class RoundsOfMinimisers(Protocol):
    """An algorithm on a network in which agents send minimisers, in all rounds or in some."""

    def in_round(self, round: int) -> PrAdmm:
        """Return the settings of round k."""
        ...

    def run(
        self,
        dataset: PrivateDataset,
        send: Callable[[int, NetworkState], FloatArray],
        observe: Observer[NetworkState],
    ) -> NetworkState:
        """Run all rounds; `send` returns the minimisers of round k, given the state before it."""
        ...


@dataclass(frozen=True, slots=True)
class PerturbedPenalties:
    """Noise xi of density ∝ e^(-|xi|/s) in the penalty of each minimiser, which is sent as found.

    The transcript shows xi, which the papers' agents keep.

    Args:
        algorithm: the repaired twin; its own noise is not used.
        noise_scale: s, in units of the model; 0 for no noise.
    """

    algorithm: RoundsOfMinimisers
    noise_scale: float

    def __post_init__(self) -> None:
        require_nonnegative("noise_scale", self.noise_scale)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[NetworkState] = None
    ) -> NetworkState:
        """Run all rounds and return the last public state."""
        audience = Audience.NEIGHBOURS

        def send(k: int, state: NetworkState) -> FloatArray:
            settings = self.algorithm.in_round(k)
            noise = perturbing_noise(
                dataset, curator, settings.loss, scale=self.noise_scale, round=k, audience=audience
            )
            pull = 2.0 * settings.penalty * settings.network.degrees[:, None] * noise
            local = settings.agent_step(dataset, replace(state, duals=state.duals + pull))
            return send_as_found(curator, local, round=k, audience=audience)

        return self.algorithm.run(dataset, send, observe)


class PublishedMAdmm(PerturbedPenalties):
    """M-ADMM as published: noise in the penalties of all rounds."""

    __slots__ = ()


def require_no_threshold(settings: PrAdmm) -> None:
    """Raise `InvalidParameter` where a threshold is set: only PR-ADMM has that test."""
    if settings.threshold < inf:
        raise InvalidParameter("threshold", settings.threshold, "inf: PR-ADMM only has that test")
