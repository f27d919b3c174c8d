"""Who releases: losses, regularisers, step sizes, the ADMM family and its baselines."""

from .decentralised import NetworkState, PrAdmm, PublishedPrAdmm, published_noise_multiplier
from .losses import LinearLoss, Logistic
from .regularisers import L1, L2, Regulariser
from .schedules import (
    ConstantNoise,
    IterationDecay,
    NoiseSchedule,
    PeriodicDecay,
    TabulatedNoise,
    optimal_noise,
)
from .star import DpAdmm, PublishedDpAdmm, PvpAdmm, Solver, StarState
from .steps import ConstantSteps, NonsmoothSteps, SmoothSteps, Steps
from .topologies import Network, complete, five_agents, hub, random_geometric, ring

__all__ = [
    "L1",
    "L2",
    "ConstantNoise",
    "ConstantSteps",
    "DpAdmm",
    "IterationDecay",
    "LinearLoss",
    "Logistic",
    "Network",
    "NetworkState",
    "NoiseSchedule",
    "NonsmoothSteps",
    "PeriodicDecay",
    "PrAdmm",
    "PublishedDpAdmm",
    "PublishedPrAdmm",
    "PvpAdmm",
    "Regulariser",
    "SmoothSteps",
    "Solver",
    "StarState",
    "Steps",
    "TabulatedNoise",
    "complete",
    "five_agents",
    "hub",
    "optimal_noise",
    "published_noise_multiplier",
    "random_geometric",
    "ring",
]
