"""The sections of a run's configuration: what a file may say, and which values make sense.

Everything here is public. `demo.toml` beside this file is the example of every section.
"""

from collections.abc import Collection
from enum import Enum
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from ..mechanisms import Adjacency
from ..mechanisms.errors import REPEATABLE_NOISE

_LONGEST_STATEMENT = 1000
MOST_RELEASES = 10**6
"""Rounds of a run, times its parties and inner steps: they are planned one by one."""

_MOST_TRIALS = 10**7

RECORD = "record"
"""The unit of privacy where nothing else is stated."""

_LONGEST_UNIT = 60
_MOST_RECORDS_PER_UNIT = 10**6


def _require_seed(name: str, seed: int) -> None:
    if seed < 0:
        raise ValueError(f"{name}={seed} must be in [0, inf)")


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Known keys only."""


class Data(Section, frozen=True, kw_only=True):
    """Where records come from, and what is public about them.

    Without `files` and `schema` the shipped UCI Adult is read. Parties are either dealt their
    records (`parties`) or those of the schema's party column (`party_records`), who then get noise
    for their own numbers.

    Under add-remove-one numbers of records are private, and nothing may depend on positions:
    `held_out` splits, and `parties` are dealt, by a keyed hash of each record alone.

    Args:
        train_records: records to train on; the others of the file are held out. Under
            add-remove-one a public lower bound on their number, and over `parties` on each one's:
            leave room, since a hash deals unevenly.
        files: your own files, read in order as one; without them the shipped UCI Adult.
        records: how many complete records your files hold, where that is public (it is private
            under add-remove-one): files with others are refused. Without it nothing checks that
            neighbours agree in it, which a missing value changes where those records are dropped.
        schema: the TOML file with everything that is public about those files.
        folder: where paths of files and schema start; at the folder of this file without it.
        held_out: under add-remove-one, and only there: the share of records that is held out.
        split_seed: public seed of the split into training and held-out records.
        parties: number of parties that the training records are dealt to in turn.
        party_records: public lower bound on the records of a party of the schema's party column:
            one number, or one for each party.
    """

    train_records: int
    files: tuple[str, ...] = ()
    records: int | None = None
    schema: str | None = None
    folder: str | None = None
    held_out: float | None = None
    split_seed: int = 0
    parties: int | None = None
    party_records: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if bool(self.files) != (self.schema is not None):
            raise ValueError("Expected files and schema together, or neither for UCI Adult")
        if self.records is not None and (not self.files or self.held_out is not None):
            raise ValueError("Expected records beside files, and not under add-remove-one")
        if (self.parties is None) == (self.party_records is None):
            raise ValueError(
                "Expected either parties (deal the records) or party_records (the schema's column)"
            )
        _require_seed("split_seed", self.split_seed)
        if self.held_out is not None and not 0 < self.held_out < 1:
            raise ValueError(f"held_out={self.held_out} must be in (0, 1)")
        least = self.party_records
        for name, values in (
            ("train_records", (self.train_records,)),
            ("records", (self.records,)),
            ("parties", (self.parties,)),
            ("party_records", least if isinstance(least, tuple) else (least,)),
        ):
            for value in values:
                if value is not None and value < 1:
                    raise ValueError(f"{name}={value} must be in [1, inf)")
        if self.parties is not None and self.parties > self.train_records:
            raise ValueError(f"parties={self.parties} must be in [1, {self.train_records}]")

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the files are."""
        return tuple(Path(self.folder or "", file) for file in self.files)

    @property
    def schema_path(self) -> Path | None:
        """Where the schema is; None for the shipped data."""
        return None if self.schema is None else Path(self.folder or "", self.schema)


class Unit(Section, frozen=True, kw_only=True):
    """Whom a promise is for.

    Args:
        unit: whom epsilon protects: a record, or whoever has several of them, such as a person.
        records_per_unit: how many records a unit has at most, public; 1 for a record. The file is
            not asked.
    """

    unit: str = RECORD
    records_per_unit: int | None = None

    def require_unit(self) -> None:
        """Raise `ValueError` for a unit without a bound on its records, or the reverse."""
        if not (self.unit.strip() == self.unit and 0 < len(self.unit) <= _LONGEST_UNIT):
            raise ValueError(f"unit={self.unit!r} must be 1 to {_LONGEST_UNIT} characters")
        if not self.unit.isprintable():
            raise ValueError("unit must be printable characters on one line")
        most = self.records_per_unit
        if most is not None and not 1 <= most <= _MOST_RECORDS_PER_UNIT:
            raise ValueError(f"records_per_unit={most} must be in [1, {_MOST_RECORDS_PER_UNIT}]")
        if (self.unit == RECORD) and most not in (None, 1):
            raise ValueError(
                f"unit={self.unit!r} must name who has up to records_per_unit={most} records, such "
                "as unit = 'person'"
            )
        if self.unit != RECORD and most is None:
            raise ValueError(
                f"records_per_unit must be stated with unit={self.unit!r}: the most records that "
                "one of them has"
            )

    @property
    def group(self) -> int:
        """How many records a unit has at most."""
        return self.records_per_unit or 1

    @property
    def unit_text(self) -> str:
        """The unit with its bound, in words."""
        if self.unit == RECORD:
            return self.unit
        plural = "s" if self.group > 1 else ""
        return f"{self.unit} with at most {self.group} record{plural}"


class Privacy(Unit, frozen=True, kw_only=True):
    """The promise: adjacency, delta, and either a target epsilon or a noise multiplier.

    Files are split and dealt to parties by position, which is public under replace-one and
    zero-out-one. One record more or less would move all others, so that under add-remove-one each
    record's own content decides, and `data.held_out` must be stated.

    Args:
        adjacency: what neighbouring data sets are.
        delta: probability mass that may escape epsilon; below one over the number of records.
        epsilon: the target: noise is calibrated so that the proved epsilon is at most this.
        noise_multiplier: in place of epsilon: standard deviation of the noise over the sensitivity.
    """

    adjacency: Adjacency
    delta: float
    epsilon: float | None = None
    noise_multiplier: float | None = None

    def __post_init__(self) -> None:
        self.require_unit()
        if self.adjacency is Adjacency.REPLACE_FEATURE_COLUMN:
            raise ValueError(
                f"adjacency={self.adjacency.value!r} must be among 'replace-one', 'zero-out-one', "
                "'add-remove-one'"
            )
        if not 0 < self.delta < 1:
            raise ValueError(
                f"delta={self.delta} must be in (0, 1), below one over the number of records"
            )
        if (self.epsilon is None) == (self.noise_multiplier is None):
            both = "leave one out" if self.epsilon is not None else "write epsilon = 1.0, say"
            raise ValueError(f"Expected either epsilon or noise_multiplier; {both}")
        for name in ("epsilon", "noise_multiplier"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise ValueError(f"{name}={value} must be in (0, inf)")


class Algorithm(Enum):
    """The algorithms: in a star, on a network, with inner steps, of one holder of all records, and
    gradient descent.

    Only those marked so are as published; the others are the repaired ones.
    """

    DP_ADMM = "dp-admm"
    DP_ADMM_PUBLISHED = "dp-admm-published"
    PVP_ADMM = "pvp-admm"
    ADMM = "admm"
    PR_ADMM = "pr-admm"
    PS_ADMM = "ps-admm"
    CENTRALISED = "centralised"
    CONSENSUS = "consensus-admm"
    DP_SGD = "dp-sgd"


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
    """The losses: of labels ±1, and the last one of several classes."""

    LOGISTIC = "logistic"
    LINEAR = "linear"
    MULTINOMIAL = "multinomial"


class StepsName(Enum):
    """The schedules of step sizes: Theorem 4's, Theorem 3's, or a constant."""

    SMOOTH = "smooth"
    NONSMOOTH = "nonsmooth"
    CONSTANT = "constant"


class Algorithmic(Section, frozen=True, kw_only=True):
    """The solver: everything here is public.

    consensus-admm takes its step size, momentum, cut of the slopes and, with an `intercept`, its
    metric from `solvers.defaults`, for a target epsilon.

    Args:
        algorithm: which ADMM, or DP-SGD; only those marked so are as published, the others are
            repaired.
        rounds: number of rounds; every party releases once in each.
        steps: schedule of step sizes: Theorem 4's (smooth), Theorem 3's (nonsmooth), or constant.
        distance: c_w, a public guess of the size of the solution (the published variant finds it by
            pre-training and plans with this one).
        step_size: of constant steps.
        penalty: the augmented Lagrangian's parameter.
        regularisation: weight of the regulariser in the mean over parties.
        regulariser: of the model.
        loss: of one record; multinomial where the schema has a class column.
        tolerance: to which inner problems are solved; what is left of the error is priced.
        pretraining_rounds: rounds without noise by which the published variant finds its distance.
        network: who is whose neighbour; of pr-admm.
        inner_steps: gradient steps a round; of ps-admm.
        accelerated: whether steps have Nesterov's momentum; of centralised.
        clip: l2 norm that every record's gradient is cut to; of dp-sgd, by default its own bound.
        batch: records of a party that a round draws, hidden: exactly so many under replace-one, on
            average under the other relations; of dp-sgd, by default all.
        intercept: whether a public constant is appended to every row: (row, row_bound)/sqrt(2).
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
    clip: float | None = None
    batch: int | None = None
    intercept: bool = False

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
        if made is Algorithm.CONSENSUS and (
            self.regulariser is not RegulariserName.L2 or self.loss is LossName.LINEAR
        ):
            raise ValueError("Expected regulariser = 'l2' and no linear loss with consensus-admm")
        if (self.clip, self.batch) != (None, None) and made is not Algorithm.DP_SGD:
            raise ValueError("Expected clip and batch with dp-sgd only")
        by_steps = made in (Algorithm.PS_ADMM, Algorithm.CENTRALISED, Algorithm.DP_SGD)
        if by_steps and self.steps is not StepsName.CONSTANT:
            raise ValueError(f"Expected steps = 'constant' with {made.value}")
        if (self.step_size is not None) != (self.steps is StepsName.CONSTANT):
            raise ValueError("Expected step_size with constant steps, and only there")
        self._require_ranges()

    def _require_ranges(self) -> None:
        """Raise `ValueError` for a number that no solver can use."""
        for name, count in (
            ("rounds", self.rounds),
            ("inner_steps", self.inner_steps),
            ("pretraining_rounds", self.pretraining_rounds),
            ("batch", self.batch),
        ):
            if count is not None and not 1 <= count <= MOST_RELEASES:
                raise ValueError(f"{name}={count} must be in [1, {MOST_RELEASES}]")
        for name, value in (
            ("distance", self.distance),
            ("step_size", self.step_size),
            ("penalty", self.penalty),
            ("tolerance", self.tolerance),
            ("clip", self.clip),
        ):
            if value is not None and not 0 < value < inf:
                raise ValueError(f"{name}={value} must be in (0, inf)")
        if not 0 <= self.regularisation < inf:
            raise ValueError(f"regularisation={self.regularisation} must be in [0, inf)")

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
            Algorithm.CONSENSUS: "DP-ADMM at the consensus",
            Algorithm.DP_SGD: "DP-SGD",
        }[self.algorithm]


class SamplerName(Enum):
    """Where noise comes from: two reproducible generators, or the operating system."""

    PHILOX = "philox"
    PCG64 = "pcg64"
    SYSTEM = "system"


SECRET_SEED = "noise.seed is secret and served one run only"
"""What a certificate takes for granted of noise from a seed: it is an experiment's."""


def repeatable_noise(assumptions: Collection[str]) -> str | None:
    """Return what is said of results whose noise came from a seed; None for a release's."""
    return REPEATABLE_NOISE if SECRET_SEED in assumptions else None


class Noise(Section, frozen=True, kw_only=True):
    """The sampler: `system` for real releases, a seed for experiments that must be repeatable.

    Args:
        sampler: system for a real release; philox or pcg64 for an experiment that can be repeated.
        seed: of philox and pcg64, secret, of one run only: whoever knows it can subtract the noise.
    """

    sampler: SamplerName
    seed: int | None = None

    def __repr__(self) -> str:
        """Without the seed: a notebook prints the last value of a cell."""
        return f"Noise(sampler={self.sampler.value}{'' if self.seed is None else ', seed=kept'})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """As `__repr__`, for what `rich` prints: msgspec's own would show the seed."""
        kept = [] if self.seed is None else [("seed", "kept")]
        return [("sampler", self.sampler.value), *kept]

    def __post_init__(self) -> None:
        if (self.seed is None) != (self.sampler is SamplerName.SYSTEM):
            raise ValueError("Expected a seed for philox and pcg64, and none for system")
        if self.seed is not None:
            _require_seed("seed", self.seed)


class NeighbourName(Enum):
    """How the attacked neighbour differs: a real record's label flipped, the worst record, or the
    worst record from a public start at which it stays the worst (of dp-sgd and dp-admm).

    Under zero-out-one a real record becomes a null record for the first two.
    """

    LABEL_FLIP = "label-flip"
    OPPOSITE = "opposite"
    WORST_START = "worst-start"


class Statement(Section, frozen=True, kw_only=True):
    """What only the data's holder knows, in a sentence each; the report prints it as theirs.

    What is left out is printed as "not stated". Nothing is computed from it.

    Args:
        purpose: what the model is for.
        contact: who answers for the data.
        unit: whom one record belongs to; whom the promise is for says `privacy.unit`.
        bounds: where the bounds and categories of the schema come from.
        preprocessing: what was done to the records before the files were written.
        tuning: how settings were chosen, and whether these records were looked at for it.
        retention: how long records, ledger and model are kept.
        refresh: when the same records will be used again.
    """

    purpose: str | None = None
    contact: str | None = None
    unit: str | None = None
    bounds: str | None = None
    preprocessing: str | None = None
    tuning: str | None = None
    retention: str | None = None
    refresh: str | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            text = getattr(self, name)
            if text is not None and not (
                0 < len(text) <= _LONGEST_STATEMENT and text.isprintable()
            ):
                raise ValueError(
                    f"{name} must be 1 to {_LONGEST_STATEMENT} printable characters on one line"
                )


class Attack(Section, frozen=True, kw_only=True):
    """The empirical audit: trials in each world, and how sure its lower bounds are.

    It runs among the first `parties` only: a thousand runs of the whole federation would take an
    hour.

    Args:
        trials: runs of the mechanism in each of the two worlds.
        parties: attack among the first so many only: the mechanism of each is that of the whole
            run.
        confidence: of each bound, and of the verdict.
        seed: of the simulated noise.
        neighbour: how the attacked neighbour differs: a real record's label flipped, the worst
            record, or the worst record and start.
    """

    trials: int = 1000
    parties: int = 1
    confidence: float = 0.95
    seed: int = 1
    neighbour: NeighbourName = NeighbourName.LABEL_FLIP

    def __post_init__(self) -> None:
        if not 10 <= self.trials <= _MOST_TRIALS:
            raise ValueError(f"trials={self.trials} must be in [10, {_MOST_TRIALS}]")
        if self.parties < 1:
            raise ValueError(f"parties={self.parties} must be in [1, inf)")
        _require_seed("seed", self.seed)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence={self.confidence} must be in (0, 1)")
