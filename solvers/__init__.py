"""Who releases: losses, regularisers, step sizes, the ADMM family and its baselines."""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .centralised import (
        CentralisedDpAdmm,
        PublishedCentralisedDpAdmm,
        SplitState,
        learned_fused_lasso,
        theorem_1_noise_multiplier,
    )
    from .consensus import Centring, ConsensusDpAdmm, ConsensusState, Output
    from .constraints import Constraint, fused_lasso, inverse_covariance_edges
    from .decentralised import NetworkState, PrAdmm, PublishedPrAdmm, published_noise_multiplier
    from .defaults import consensus_defaults
    from .dual_perturbation import PublishedDvpAdmm, exact_minimiser_epsilon
    from .losses import (
        ClippedLogistic,
        Hinge,
        Huber,
        LinearLoss,
        Logistic,
        Multinomial,
        Shifted,
        SmoothedHinge,
        bounded_squared,
    )
    from .optimum import Optimum, logistic_optimum
    from .penalty_perturbation import MAdmm, PublishedMAdmm
    from .planning import plan
    from .recycled import PublishedRAdmm, RAdmm
    from .regularisers import L1, L2, ProximalTerm, Regulariser
    from .schedules import (
        ConstantNoise,
        IterationDecay,
        NoiseSchedule,
        PeriodicDecay,
        TabulatedNoise,
        optimal_noise,
    )
    from .sgd import DpSgd, SgdState
    from .sharing import (
        PublishedSharingAdmm,
        SharingAdmm,
        SharingState,
        lemma_1_bound,
        published_parameter_noise,
    )
    from .solver import ModelSolver, PublicModel
    from .star import DpAdmm, PublishedDpAdmm, PvpAdmm, StarState
    from .steps import ConstantSteps, NonsmoothSteps, SmoothSteps, Steps
    from .stochastic import (
        ConvexWeights,
        InnerWeights,
        PrintedWeights,
        PsAdmm,
        PublishedPsAdmm,
        SampledPsAdmm,
        StochasticRounds,
        theorem_2_noise_std,
    )
    from .threat_model import PER_PARTY, PerParty, Summed, ThreatModel, summed_shape
    from .topologies import Network, complete, five_agents, hub, random_geometric, ring

__all__ = [
    "L1",
    "L2",
    "PER_PARTY",
    "CentralisedDpAdmm",
    "Centring",
    "ClippedLogistic",
    "ConsensusDpAdmm",
    "ConsensusState",
    "ConstantNoise",
    "ConstantSteps",
    "Constraint",
    "ConvexWeights",
    "DpAdmm",
    "DpSgd",
    "Hinge",
    "Huber",
    "InnerWeights",
    "IterationDecay",
    "LinearLoss",
    "Logistic",
    "MAdmm",
    "ModelSolver",
    "Multinomial",
    "Network",
    "NetworkState",
    "NoiseSchedule",
    "NonsmoothSteps",
    "Optimum",
    "Output",
    "PerParty",
    "PeriodicDecay",
    "PrAdmm",
    "PrintedWeights",
    "ProximalTerm",
    "PsAdmm",
    "PublicModel",
    "PublishedCentralisedDpAdmm",
    "PublishedDpAdmm",
    "PublishedDvpAdmm",
    "PublishedMAdmm",
    "PublishedPrAdmm",
    "PublishedPsAdmm",
    "PublishedRAdmm",
    "PublishedSharingAdmm",
    "PvpAdmm",
    "RAdmm",
    "Regulariser",
    "SampledPsAdmm",
    "SgdState",
    "SharingAdmm",
    "SharingState",
    "Shifted",
    "SmoothSteps",
    "SmoothedHinge",
    "SplitState",
    "StarState",
    "Steps",
    "StochasticRounds",
    "Summed",
    "TabulatedNoise",
    "ThreatModel",
    "bounded_squared",
    "complete",
    "consensus_defaults",
    "exact_minimiser_epsilon",
    "five_agents",
    "fused_lasso",
    "hub",
    "inverse_covariance_edges",
    "learned_fused_lasso",
    "lemma_1_bound",
    "logistic_optimum",
    "optimal_noise",
    "plan",
    "published_noise_multiplier",
    "published_parameter_noise",
    "random_geometric",
    "ring",
    "summed_shape",
    "theorem_1_noise_multiplier",
    "theorem_2_noise_std",
]

__getattr__ = names_from(
    __name__,
    {
        "centralised": (
            "CentralisedDpAdmm",
            "PublishedCentralisedDpAdmm",
            "SplitState",
            "learned_fused_lasso",
            "theorem_1_noise_multiplier",
        ),
        "consensus": (
            "Centring",
            "ConsensusDpAdmm",
            "ConsensusState",
            "Output",
        ),
        "decentralised": (
            "NetworkState",
            "PrAdmm",
            "PublishedPrAdmm",
            "published_noise_multiplier",
        ),
        "defaults": ("consensus_defaults",),
        "dual_perturbation": (
            "PublishedDvpAdmm",
            "exact_minimiser_epsilon",
        ),
        "constraints": (
            "Constraint",
            "fused_lasso",
            "inverse_covariance_edges",
        ),
        "losses": (
            "ClippedLogistic",
            "Hinge",
            "Huber",
            "LinearLoss",
            "Logistic",
            "Multinomial",
            "Shifted",
            "SmoothedHinge",
            "bounded_squared",
        ),
        "optimum": (
            "Optimum",
            "logistic_optimum",
        ),
        "penalty_perturbation": (
            "MAdmm",
            "PublishedMAdmm",
        ),
        "planning": ("plan",),
        "recycled": (
            "PublishedRAdmm",
            "RAdmm",
        ),
        "regularisers": (
            "L1",
            "L2",
            "ProximalTerm",
            "Regulariser",
        ),
        "schedules": (
            "ConstantNoise",
            "IterationDecay",
            "NoiseSchedule",
            "PeriodicDecay",
            "TabulatedNoise",
            "optimal_noise",
        ),
        "sgd": (
            "DpSgd",
            "SgdState",
        ),
        "sharing": (
            "PublishedSharingAdmm",
            "SharingAdmm",
            "SharingState",
            "lemma_1_bound",
            "published_parameter_noise",
        ),
        "solver": (
            "ModelSolver",
            "PublicModel",
        ),
        "star": (
            "DpAdmm",
            "PublishedDpAdmm",
            "PvpAdmm",
            "StarState",
        ),
        "steps": (
            "ConstantSteps",
            "NonsmoothSteps",
            "SmoothSteps",
            "Steps",
        ),
        "stochastic": (
            "ConvexWeights",
            "InnerWeights",
            "PrintedWeights",
            "PsAdmm",
            "PublishedPsAdmm",
            "SampledPsAdmm",
            "StochasticRounds",
            "theorem_2_noise_std",
        ),
        "threat_model": (
            "PER_PARTY",
            "PerParty",
            "Summed",
            "ThreatModel",
            "summed_shape",
        ),
        "topologies": (
            "Network",
            "complete",
            "five_agents",
            "hub",
            "random_geometric",
            "ring",
        ),
    },
)
