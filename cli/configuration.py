"""A run's configuration: strict TOML, from which plans, data sets and solvers are made.

The file is the whole truth about a run: its hash stands in the ledger. `demo.toml` beside this file
is the demo's, and the example of every section.
"""

import hashlib
from dataclasses import replace
from enum import Enum
from math import inf
from pathlib import Path

import msgspec
import numpy as np
from scipy.sparse import issparse

from ..data import LabelledRecords, load_adult, load_records, read_schema, split_records
from ..data.adult import adult_schema
from ..mechanisms import Adjacency, BitGenerator, DataShape, Loss, PrivateDataset
from ..mechanisms.sampling import Sampler, SeededSampler, SystemSampler
from ..solvers import (
    L1,
    L2,
    CentralisedDpAdmm,
    ConstantSteps,
    DpAdmm,
    LinearLoss,
    Logistic,
    ModelSolver,
    NonsmoothSteps,
    PrAdmm,
    PsAdmm,
    PublishedDpAdmm,
    PvpAdmm,
    SmoothSteps,
    Steps,
    StochasticRounds,
    complete,
    fused_lasso,
    hub,
    ring,
)
from .strict import ConfigurationError, read_toml

__all__ = ["Algorithm", "Attack", "Configuration", "Data", "Noise", "Privacy", "read_configuration"]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Data(_Section, frozen=True, kw_only=True):
    """Where records come from, and what is public about them.

    `files` and `schema` name the user's own; without them the shipped UCI Adult is read. Of all
    records `train_records` are trained on, the rest are held out. They are dealt to `parties`
    parties in turn, or stay with those of the schema's party column (then `party_records` says the
    public least number of records of a party).
    """

    train_records: int
    files: tuple[str, ...] = ()
    schema: str | None = None
    split_seed: int = 0
    parties: int | None = None
    party_records: int | None = None

    def __post_init__(self) -> None:
        if bool(self.files) != (self.schema is not None):
            raise ValueError("Expected files and schema together, or neither for UCI Adult")
        if (self.parties is None) == (self.party_records is None):
            raise ValueError(
                "Expected either parties (deal the records) or party_records (the schema's column)"
            )
        for name in ("train_records", "parties", "party_records"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"Expected {name}={value} in [1, inf)")
        if self.parties is not None and self.parties > self.train_records:
            raise ValueError(f"Expected parties={self.parties} in [1, {self.train_records}]")


class Privacy(_Section, frozen=True, kw_only=True):
    """The promise: adjacency, delta, and either a target epsilon or a noise multiplier.

    Files are split and dealt to parties by position, which is public under replace-one and
    zero-out-one. One record more or less would move all others, so a run of a file cannot promise
    anything under add-remove-one; the Python interface can, for records assigned one by one.
    """

    adjacency: Adjacency
    delta: float
    epsilon: float | None = None
    noise_multiplier: float | None = None

    def __post_init__(self) -> None:
        if self.adjacency not in (Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE):
            raise ValueError(
                f"Expected adjacency={self.adjacency.value!r} among 'replace-one', 'zero-out-one': "
                "records of a file are assigned by position"
            )
        if not 0 < self.delta < 1:
            raise ValueError(f"Expected delta={self.delta} in (0, 1)")
        if (self.epsilon is None) == (self.noise_multiplier is None):
            raise ValueError("Expected either epsilon or noise_multiplier")
        for name in ("epsilon", "noise_multiplier"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise ValueError(f"Expected {name}={value} in (0, inf)")


class Algorithm(Enum):
    """The algorithms: in a star, on a network, with inner steps, and of one holder of all records.

    Only those marked so are as published; the others are the repaired ones.
    """

    DP_ADMM = "dp-admm"
    DP_ADMM_PUBLISHED = "dp-admm-published"
    PVP_ADMM = "pvp-admm"
    ADMM = "admm"
    PR_ADMM = "pr-admm"
    PS_ADMM = "ps-admm"
    CENTRALISED = "centralised"


class NetworkName(Enum):
    """The networks of PR-ADMM."""

    COMPLETE = "complete"
    RING = "ring"
    HUB = "hub"


class RegulariserName(Enum):
    """The regularisers."""

    L1 = "l1"
    L2 = "l2"


class LossName(Enum):
    """The losses."""

    LOGISTIC = "logistic"
    LINEAR = "linear"


class StepsName(Enum):
    """The schedules of step sizes: Theorem 4's, Theorem 3's, or a constant."""

    SMOOTH = "smooth"
    NONSMOOTH = "nonsmooth"
    CONSTANT = "constant"


class Algorithmic(_Section, frozen=True, kw_only=True):
    """The solver: everything here is public.

    `distance` is c_w, a public guess of the size of the solution (the published variant finds it by
    pre-training and plans with this one); `step_size` is for constant steps, which ps-admm and
    centralised take. `regularisation` weighs R in the mean over parties; pr-admm takes R = l2 and
    needs a `network`, ps-admm `inner_steps`; `accelerated` is for centralised.
    """

    algorithm: Algorithm
    rounds: int
    steps: StepsName = StepsName.SMOOTH
    distance: float = 89.0
    step_size: float | None = None
    penalty: float = 0.1
    regularisation: float = 1e-6
    regulariser: RegulariserName = RegulariserName.L2
    loss: LossName = LossName.LOGISTIC
    tolerance: float = 1e-6
    pretraining_rounds: int = 100
    network: NetworkName | None = None
    inner_steps: int | None = None
    accelerated: bool = False

    def __post_init__(self) -> None:
        made = self.algorithm
        if (self.network is not None) != (made is Algorithm.PR_ADMM):
            raise ValueError("Expected a network with pr-admm, and only there")
        if (self.inner_steps is not None) != (made is Algorithm.PS_ADMM):
            raise ValueError("Expected inner_steps with ps-admm, and only there")
        if self.accelerated and made is not Algorithm.CENTRALISED:
            raise ValueError("Expected accelerated with centralised only")
        if made is Algorithm.PR_ADMM and self.regulariser is not RegulariserName.L2:
            raise ValueError("Expected regulariser = 'l2' with pr-admm")
        by_steps = made in (Algorithm.PS_ADMM, Algorithm.CENTRALISED)
        if by_steps and self.steps is not StepsName.CONSTANT:
            raise ValueError(f"Expected steps = 'constant' with {made.value}")
        if (self.step_size is not None) != (self.steps is StepsName.CONSTANT):
            raise ValueError("Expected step_size with constant steps, and only there")
        if self.rounds < 1:
            raise ValueError(f"Expected rounds={self.rounds} in [1, inf)")

    @property
    def label(self) -> str:
        """The algorithm's name for people."""
        return {
            Algorithm.DP_ADMM: "DP-ADMM (repaired)",
            Algorithm.DP_ADMM_PUBLISHED: "DP-ADMM (published)",
            Algorithm.PVP_ADMM: "ADMM with PVP",
            Algorithm.ADMM: "ADMM without privacy",
            Algorithm.PR_ADMM: "PR-ADMM (repaired)",
            Algorithm.PS_ADMM: "PS-ADMM (repaired, full gradients)",
            Algorithm.CENTRALISED: "Centralised DP-ADMM (repaired)",
        }[self.algorithm]

    def build_loss(self) -> Loss:
        """Return the loss."""
        return Logistic() if self.loss is LossName.LOGISTIC else LinearLoss()

    def build_regulariser(self) -> L1 | L2:
        """Return R."""
        return L2() if self.regulariser is RegulariserName.L2 else L1()


class SamplerName(Enum):
    """Where noise comes from: two reproducible generators, or the operating system."""

    PHILOX = "philox"
    PCG64 = "pcg64"
    SYSTEM = "system"


class Noise(_Section, frozen=True, kw_only=True):
    """The sampler: `system` for real releases, a seed for experiments that must be repeatable."""

    sampler: SamplerName
    seed: int | None = None

    def __post_init__(self) -> None:
        if (self.seed is None) != (self.sampler is SamplerName.SYSTEM):
            raise ValueError("Expected a seed for philox and pcg64, and none for system")


class NeighbourName(Enum):
    """How the attacked neighbour differs: a real record's label flipped, or the worst record.

    Under zero-out-one a real record becomes a null record, whatever this says.
    """

    LABEL_FLIP = "label-flip"
    OPPOSITE = "opposite"


class Attack(_Section, frozen=True, kw_only=True):
    """The empirical audit: trials in each world, and how sure its lower bounds are.

    It runs among the first `parties` parties only: each party's mechanism is the same as in the
    whole federation, and a thousand runs of the whole would take an hour.
    """

    trials: int = 1000
    parties: int = 1
    confidence: float = 0.95
    seed: int = 1
    neighbour: NeighbourName = NeighbourName.LABEL_FLIP

    def __post_init__(self) -> None:
        if self.trials < 10:
            raise ValueError(f"Expected trials={self.trials} in [10, inf)")
        if self.parties < 1:
            raise ValueError(f"Expected parties={self.parties} in [1, inf)")
        if not 0 < self.confidence < 1:
            raise ValueError(f"Expected confidence={self.confidence} in (0, 1)")


class Configuration(_Section, frozen=True, kw_only=True):
    """A run: data, promise, solver, noise, and the audit of it."""

    data: Data
    privacy: Privacy
    solver: Algorithmic
    noise: Noise
    attack: Attack = Attack()

    def __post_init__(self) -> None:
        made, parties = self.solver.algorithm, self.data.parties
        if made is Algorithm.CENTRALISED and parties != 1:
            raise ValueError("Expected data.parties = 1 with centralised")
        if made is Algorithm.PR_ADMM and (parties is None or parties < 2):
            raise ValueError("Expected data.parties in [2, inf) with pr-admm")
        if made is Algorithm.PR_ADMM and self.attack.parties != parties:
            raise ValueError(
                f"Expected attack.parties={parties} with pr-admm: a network cannot be cut"
            )

    @property
    def sha256(self) -> str:
        """Hash of the canonical JSON of all values, defaults included."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def shape(self) -> DataShape:
        """Return what is public about the training data, without reading a record."""
        schema = adult_schema() if self.data.schema is None else read_schema(self.data.schema)
        if self.data.parties is not None:
            parties = tuple(f"agent-{i + 1:04d}" for i in range(self.data.parties))
            count = self.data.train_records // self.data.parties
        else:
            if schema.party is None or self.data.party_records is None:
                raise ConfigurationError(
                    f"{self.data.schema}: Expected a party column, or data.parties to deal records."
                )
            parties, count = schema.party.parties, self.data.party_records
        return DataShape(
            parties, count, len(schema.feature_names), schema.row_bound, self.privacy.adjacency
        )

    def load(self) -> tuple[PrivateDataset, LabelledRecords]:
        """Return the training data behind their handle, and the held-out records.

        Raises `ConfigurationError` when the data are not what the plan assumed; nothing was spent.
        """
        train, test = self._split()
        return self.private(train), test

    def load_attacked(self) -> tuple[PrivateDataset, int]:
        """Return the data of the attacked parties, and the index of the longest row of the first.

        Raises as `load` does.
        """
        part, _ = self.attacked_records()
        lengths = np.linalg.norm(np.asarray(part.features), axis=1)
        return self.private(part), int(np.where(part.party_of == 0, lengths, -1.0).argmax())

    def attacked_records(self) -> tuple[LabelledRecords, LabelledRecords]:
        """Return the attacked parties' records, as a dense array, and the held-out records."""
        train, test = self._split()
        parties = train.parties[: self.attack.parties]
        part = train.take(np.flatnonzero(train.party_of < len(parties)))
        dense = np.asarray(part.features.toarray() if issparse(part.features) else part.features)
        return replace(part, features=dense, parties=parties), test

    def _split(self) -> tuple[LabelledRecords, LabelledRecords]:
        """Return training records in their parties, and held-out ones."""
        data, shape = self.data, self.shape()
        if data.schema is None:
            records = load_adult()
        else:
            records = load_records(data.files, schema=read_schema(data.schema))
        if data.train_records >= len(records):
            raise ConfigurationError(
                f"Expected data.train_records={data.train_records} in [1, {len(records) - 1}]: "
                "the rest is held out."
            )
        train, test = split_records(records, train_records=data.train_records, seed=data.split_seed)
        if data.parties is not None:
            train = train.divided(shape.parties)
        fewest = int(np.bincount(train.party_of, minlength=len(train.parties)).min())
        if fewest < shape.count:
            raise ConfigurationError(
                f"Expected at least data.party_records={shape.count} records a party "
                f"instead got {fewest}."
            )
        return train, test

    def private(self, train: LabelledRecords) -> PrivateDataset:
        """Return training records behind their handle, if they are what the plan assumed."""
        shape = self.shape()
        dataset = PrivateDataset(
            train.features,
            train.labels,
            adjacency=shape.adjacency,
            row_bound=train.row_bound,
            party_of=train.party_of,
            parties=train.parties,
        )
        if dataset.shape.count != shape.count:
            raise ConfigurationError(
                f"Expected the planned data.party_records={shape.count} "
                f"instead got {dataset.shape.count} (public under {shape.adjacency.value})."
            )
        return dataset

    def build_solver(self, noise_multiplier: float) -> ModelSolver:
        """Return the algorithm with a noise multiplier (which `admm` has no use for)."""
        made = self.solver
        if made.network is not None:
            return self._network_solver(made.network, noise_multiplier)
        if made.inner_steps is not None:
            return self._inner_solver(made.inner_steps, noise_multiplier)
        if made.algorithm is Algorithm.CENTRALISED:
            return self._centralised_solver(noise_multiplier)
        if made.algorithm is Algorithm.PVP_ADMM:
            return self.build_exact(noise_multiplier)
        if made.algorithm is Algorithm.ADMM:
            return self.build_exact(None)
        repaired = DpAdmm(
            made.rounds,
            noise_multiplier,
            self._steps(),
            penalty=made.penalty,
            regularisation=made.regularisation,
            regulariser=made.build_regulariser(),
            loss=made.build_loss(),
        )
        if made.algorithm is Algorithm.DP_ADMM:
            return repaired
        return PublishedDpAdmm(repaired, made.pretraining_rounds, made.distance)

    def _network_solver(self, name: NetworkName, noise_multiplier: float) -> PrAdmm:
        made, agents = self.solver, len(self.shape().parties)
        build = {
            NetworkName.COMPLETE: complete,
            NetworkName.RING: ring,
            NetworkName.HUB: hub,
        }[name]
        return PrAdmm(
            build(agents),
            made.rounds,
            noise_multiplier,
            penalty=made.penalty,
            regularisation=made.regularisation * agents / 2,  # of |w|² in the sum over agents
            tolerance=made.tolerance,
            loss=made.build_loss(),
        )

    def _inner_solver(self, inner_steps: int, noise_multiplier: float) -> PsAdmm:
        made = self.solver
        assert made.step_size is not None
        rounds = StochasticRounds(
            made.rounds,
            inner_steps,
            made.step_size,
            penalty=made.penalty,
            regularisation=made.regularisation * len(self.shape().parties),
            regulariser=made.build_regulariser(),
            loss=made.build_loss(),
        )
        return PsAdmm(rounds, noise_multiplier)

    def _centralised_solver(self, noise_multiplier: float) -> CentralisedDpAdmm:
        made = self.solver
        assert made.step_size is not None
        return CentralisedDpAdmm(
            fused_lasso(self.shape().features, ()),
            made.rounds,
            noise_multiplier,
            made.step_size,
            accelerated=made.accelerated,
            penalty=made.penalty,
            regularisation=made.regularisation,
            regulariser=made.build_regulariser(),
            loss=made.build_loss(),
        )

    def build_exact(self, noise_multiplier: float | None) -> PvpAdmm:
        """Return ADMM with exact minimisers: PVP at a noise multiplier, or without privacy."""
        made = self.solver
        return PvpAdmm(
            made.rounds,
            noise_multiplier,
            tolerance=made.tolerance,
            penalty=made.penalty,
            regularisation=made.regularisation,
            loss=made.build_loss(),
        )

    def build_sampler(self) -> Sampler:
        """Return a fresh sampler of noise."""
        if self.noise.seed is None:
            return SystemSampler()
        return SeededSampler(self.noise.seed, bits=BitGenerator(self.noise.sampler.value))

    def _steps(self) -> Steps:
        made, shape = self.solver, self.shape()
        loss, regulariser = made.build_loss(), made.build_regulariser()
        if made.step_size is not None:
            return ConstantSteps(made.step_size)
        if made.steps is StepsName.SMOOTH:
            if loss.curvature_bound is None or regulariser.curvature is None:
                raise ConfigurationError("Expected steps = 'nonsmooth' for a loss or R with kinks.")
            smoothness = float(loss.curvature_bound) * shape.row_bound**2
            return SmoothSteps(
                smoothness + made.regularisation * regulariser.curvature, made.distance
            )
        bound = regulariser.gradient_bound(shape.features)
        if bound is None:
            raise ConfigurationError("Expected regulariser = 'l1' with steps = 'nonsmooth'.")
        return NonsmoothSteps(
            float(shape.gradient_bound(loss)) + made.regularisation * bound, made.distance
        )


def read_configuration(path: Path) -> Configuration:
    """Return the configuration in a TOML file, or raise `ConfigurationError`."""
    return read_toml(path, Configuration)
