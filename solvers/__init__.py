"""Who releases: losses, regularisers, step sizes, the ADMM family and its baselines."""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .centralised import CentralisedDpAdmm as CentralisedDpAdmm
    from .centralised import PublishedCentralisedDpAdmm as PublishedCentralisedDpAdmm
    from .centralised import SplitState as SplitState
    from .centralised import learned_fused_lasso as learned_fused_lasso
    from .centralised import theorem_1_noise_multiplier as theorem_1_noise_multiplier
    from .consensus import Centring as Centring
    from .consensus import ConsensusDpAdmm as ConsensusDpAdmm
    from .consensus import ConsensusState as ConsensusState
    from .consensus import Output as Output
    from .constraints import Constraint as Constraint
    from .constraints import fused_lasso as fused_lasso
    from .constraints import inverse_covariance_edges as inverse_covariance_edges
    from .decentralised import NetworkState as NetworkState
    from .decentralised import PrAdmm as PrAdmm
    from .decentralised import PublishedPrAdmm as PublishedPrAdmm
    from .decentralised import published_noise_multiplier as published_noise_multiplier
    from .defaults import consensus_defaults as consensus_defaults
    from .defaults import opinion_pool_defaults as opinion_pool_defaults
    from .defaults import regression_defaults as regression_defaults
    from .dual_perturbation import PublishedDvpAdmm as PublishedDvpAdmm
    from .dual_perturbation import exact_minimiser_epsilon as exact_minimiser_epsilon
    from .losses import ClippedLogistic as ClippedLogistic
    from .losses import Hinge as Hinge
    from .losses import Huber as Huber
    from .losses import LinearLoss as LinearLoss
    from .losses import Logistic as Logistic
    from .losses import Multinomial as Multinomial
    from .losses import Shifted as Shifted
    from .losses import SmoothedHinge as SmoothedHinge
    from .losses import SmoothedQuantile as SmoothedQuantile
    from .losses import bounded_squared as bounded_squared
    from .majority import ClassShares as ClassShares
    from .majority import SharesState as SharesState
    from .majority import classifier_defaults as classifier_defaults
    from .objective_perturbation import (
        PublishedObjectivePerturbation as PublishedObjectivePerturbation,
    )
    from .objective_perturbation import gaussian_objective_delta as gaussian_objective_delta
    from .objective_perturbation import objective_noise_std as objective_noise_std
    from .opinion_pool import OpinionPool as OpinionPool
    from .opinion_pool import PoolState as PoolState
    from .optimum import Optimum as Optimum
    from .optimum import logistic_optimum as logistic_optimum
    from .output_perturbation import OutputPerturbation as OutputPerturbation
    from .output_perturbation import OutputState as OutputState
    from .penalty_perturbation import MAdmm as MAdmm
    from .planning import plan as plan
    from .recycled import RAdmm as RAdmm
    from .regularisers import L1 as L1
    from .regularisers import L2 as L2
    from .regularisers import ProximalTerm as ProximalTerm
    from .regularisers import Regulariser as Regulariser
    from .schedules import ConstantNoise as ConstantNoise
    from .schedules import IterationDecay as IterationDecay
    from .schedules import NoiseSchedule as NoiseSchedule
    from .schedules import PeriodicDecay as PeriodicDecay
    from .schedules import TabulatedNoise as TabulatedNoise
    from .schedules import optimal_noise as optimal_noise
    from .sgd import DpSgd as DpSgd
    from .sgd import SgdState as SgdState
    from .sharing import PublishedSharingAdmm as PublishedSharingAdmm
    from .sharing import SharingAdmm as SharingAdmm
    from .sharing import SharingModels as SharingModels
    from .sharing import SharingState as SharingState
    from .sharing import lemma_1_bound as lemma_1_bound
    from .sharing import published_parameter_noise as published_parameter_noise
    from .solver import ModelSolver as ModelSolver
    from .solver import PublicModel as PublicModel
    from .star import DpAdmm as DpAdmm
    from .star import PublishedDpAdmm as PublishedDpAdmm
    from .star import PvpAdmm as PvpAdmm
    from .star import StarState as StarState
    from .steps import ConstantSteps as ConstantSteps
    from .steps import NonsmoothSteps as NonsmoothSteps
    from .steps import SmoothSteps as SmoothSteps
    from .steps import Steps as Steps
    from .stochastic import ConvexWeights as ConvexWeights
    from .stochastic import InnerWeights as InnerWeights
    from .stochastic import PrintedWeights as PrintedWeights
    from .stochastic import PsAdmm as PsAdmm
    from .stochastic import PublishedPsAdmm as PublishedPsAdmm
    from .stochastic import SampledPsAdmm as SampledPsAdmm
    from .stochastic import StochasticRounds as StochasticRounds
    from .stochastic import theorem_2_noise_std as theorem_2_noise_std
    from .threat_model import PER_PARTY as PER_PARTY
    from .threat_model import PerParty as PerParty
    from .threat_model import Summed as Summed
    from .threat_model import ThreatModel as ThreatModel
    from .threat_model import summed_shape as summed_shape
    from .topologies import Network as Network
    from .topologies import complete as complete
    from .topologies import five_agents as five_agents
    from .topologies import hub as hub
    from .topologies import random_geometric as random_geometric
    from .topologies import ring as ring
    from .weighted import Weighted as Weighted

__getattr__, __dir__ = names_from(__name__)
