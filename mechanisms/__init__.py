"""What a release is: neighbouring relations, sensitive values, private data, events, curators."""

from .adjacency import Adjacency
from .cluster_records import ClusterRows
from .collectives import Collectives
from .curators import Curator, Message, PlanningCurator, SamplingCurator
from .data_shape import DataShape
from .errors import (
    AdjacencyMismatch,
    DpledgerError,
    InvalidParameter,
    MalformedEvent,
    UnprotectedReleaseError,
)
from .events import (
    AccumulatedPoisson,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
)
from .labels import SIGNS, ClassLabels, LabelDomain, RealLabels, SignLabels, WeightedLabels
from .local_columns import LocalColumns
from .local_data import LocalDataset
from .noise import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    ExponentialMechanism,
    LaplaceNoise,
)
from .private_data import PrivateDataset
from .private_table import BoundedColumn, CategoryColumn, PrivateTable, TableShape
from .protocols import EventList, EventSink, Loss, MarginLoss, Provenance
from .row_blocks import RowBlocks
from .sample import Sample
from .sampling import (
    BitGenerator,
    ExactSampler,
    Sampler,
    SeededSampler,
    SimulationSampler,
    SystemSampler,
)
from .sensitive import Sensitive, concatenate, concatenate_disjoint, linear_map
from .sensitivity import Derivation, Norm, Sensitivity, declared
from .subsampling import FixedBatch, Poisson, Scheme
from .vertical_data import LabelLoss, LocalProblem, VerticalDataset, VerticalShape

__all__ = [
    "SIGNS",
    "AccumulatedPoisson",
    "Adjacency",
    "AdjacencyMismatch",
    "Audience",
    "BitGenerator",
    "BoundedColumn",
    "CategoryColumn",
    "ClassLabels",
    "ClusterRows",
    "Collectives",
    "Context",
    "Curator",
    "DataShape",
    "Derivation",
    "DiscreteGaussianNoise",
    "DiscreteGaussianStep",
    "DiscreteLaplaceNoise",
    "DiscreteLaplaceStep",
    "DpledgerError",
    "Event",
    "EventList",
    "EventSink",
    "ExactSampler",
    "ExponentialMechanism",
    "FixedBatch",
    "GaussianMixtureStep",
    "GaussianStep",
    "InvalidParameter",
    "LabelDomain",
    "LabelLoss",
    "LaplaceNoise",
    "LaplaceStep",
    "LocalColumns",
    "LocalDataset",
    "LocalProblem",
    "Loss",
    "MalformedEvent",
    "MarginLoss",
    "Mechanism",
    "Message",
    "Norm",
    "Parties",
    "PlanningCurator",
    "Poisson",
    "PoissonSampled",
    "PrivateDataset",
    "PrivateTable",
    "Provenance",
    "PureStep",
    "RandomisedResponse",
    "RealLabels",
    "Repeated",
    "RowBlocks",
    "Sample",
    "SampledWithReplacement",
    "SampledWithoutReplacement",
    "Sampler",
    "SamplingCurator",
    "Scheme",
    "SeededSampler",
    "Sensitive",
    "Sensitivity",
    "SignLabels",
    "SimulationSampler",
    "SystemSampler",
    "TableShape",
    "UnprotectedRelease",
    "UnprotectedReleaseError",
    "VerticalDataset",
    "VerticalShape",
    "WeightedLabels",
    "concatenate",
    "concatenate_disjoint",
    "declared",
    "linear_map",
]
