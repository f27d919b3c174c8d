"""A federation from files: `run.toml`, the same for everybody, and a `party.toml` for each party.

    run.toml    [federation]  parties, how many records each has at least, schema, where to meet
                [privacy]     as of a run
                [solver]      as of a run; dp-admm, pvp-admm, consensus-admm, pr-admm or ps-admm, or
                  of sums dp-admm, consensus-admm, ps-admm or centralised
    party.toml  [party]       which of them, its files, its folder
                [noise]       as of a run
                [policy]      what it takes part in, and its ledger's budget

Paths start at the folder of the file that they stand in. Nothing of `party.toml` leaves the party.
Where `[federation]` has `columns`, parties hold columns of the same records (`federation_columns`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ..accounting.ledger import SqliteLedger
from ..accounting.ledger.budget import Budget
from ..accounting.numbers.notions import ApproxDp
from ..data import Schema, load_records, read_schema
from ..data.strict import ConfigurationError, read_toml
from ..federation import (
    FederatedPlan,
    Journal,
    Party,
    Policy,
    federated_plan,
)
from ..federation.guarantee import require_file_names
from ..federation.party import TookPart
from ..federation.summed import SummedTerms, plan_of_sums
from ..mechanisms import Adjacency, BitGenerator, DataShape, LocalDataset
from ..mechanisms.data_shape import EVERYBODY
from ..mechanisms.record_sets import RecordSets
from ..mechanisms.sampling import Sampler, SeededSampler, SystemSampler
from ..mechanisms.share_data import ShareOfSum, summed_shape
from ..solvers import PER_PARTY, Summed, ThreatModel, planning
from .algorithms import Solvers
from .federation_columns import ColumnsFederation, ColumnsFile
from .pipeline import Plan, Terms, calibrate_proved, plan_at
from .sections import Algorithm, Algorithmic, Noise, Privacy, Section
from .training import journal_folder

__all__ = ["Federation", "Participant", "Participation", "read_federation"]

_OF_SUMS = (
    Algorithm.DP_ADMM,
    Algorithm.CONSENSUS,
    Algorithm.PS_ADMM,
    Algorithm.CENTRALISED,
    Algorithm.DP_SGD,
)
"""Algorithms whose releases are sums over records, as one holder of all of them runs them."""

_FEDERATED = (
    Algorithm.DP_ADMM,
    Algorithm.PVP_ADMM,
    Algorithm.CONSENSUS,
    Algorithm.PR_ADMM,
    Algorithm.PS_ADMM,
    Algorithm.DP_SGD,
)
"""Algorithms that run across parties: their solvers ask for collectives of messages."""


class SeenName(Enum):
    """What an adversary sees of messages: each party's, or sums over all parties alone."""

    PER_PARTY = "per-party"
    SUMMED = "summed"


class Meeting(Section, frozen=True, kw_only=True):
    """Who meets, what is public of their data, and where.

    Sums over all parties are simulated: nothing hides their parts here.

    Args:
        parties: names, in an order that all know.
        records: how many each party has at least, publicly; none may have more than twice the
            largest of these. The exact numbers where the threat model is "summed".
        schema: path of the schema of every party's files.
        address: "host:port" at which the coordinator listens.
        patience: seconds without a message after which the run ends.
        threat_model: "per-party" where every message is seen, "summed" where sums alone are.
        colluders: of how many parties an adversary may know the noise, under "summed".
        dropouts: how many parties may drop out, after which the others go on, under "summed": who
            is not there for a sum within the patience. Their records count as zero from there on.
    """

    parties: tuple[str, ...]
    records: tuple[int, ...]
    schema: str
    address: str = "127.0.0.1:7707"
    patience: float = 60.0
    threat_model: SeenName = SeenName.PER_PARTY
    colluders: int = 0
    dropouts: int = 0

    def __post_init__(self) -> None:
        if (self.colluders or self.dropouts) and self.threat_model is SeenName.PER_PARTY:
            raise ValueError("Expected colluders and dropouts with threat_model = 'summed' only")
        if self.parties == EVERYBODY:
            raise ValueError(f"Expected another name than {EVERYBODY[0]!r}, which names nobody")
        if len(self.records) != len(self.parties) or not self.parties:
            raise ValueError("Expected records to have one number for each of parties")
        if not self.patience > 0.0:
            raise ValueError(f"patience={self.patience} must be in (0, inf)")


class _RunFile(Section, frozen=True, kw_only=True):
    """The sections of `run.toml`; refuses an algorithm that asks for more than collectives of
    messages.
    """

    federation: Meeting
    privacy: Privacy
    solver: Algorithmic

    def __post_init__(self) -> None:
        if self.privacy.adjacency is Adjacency.ADD_REMOVE_ONE:
            raise ValueError(
                "adjacency='add-remove-one' must be 'replace-one' or 'zero-out-one' in a "
                "federation, whose parties agree on numbers of records"
            )
        if self.privacy.group > 1:
            raise ValueError(
                "Expected unit and records_per_unit of one record: parties agree on a promise to a "
                "record; divide epsilon yourself"
            )
        seen = self.federation.threat_model
        allowed = _OF_SUMS if seen is SeenName.SUMMED else _FEDERATED
        if self.solver.algorithm not in allowed:
            names = ", ".join(each.value for each in allowed)
            raise ValueError(
                f"Expected solver.algorithm among {names} in a {seen.value} federation"
            )
        if seen is SeenName.SUMMED and self.solver.batch is not None:
            raise ValueError(
                f"batch={self.solver.batch} must be left out in a summed federation: only sums "
                "over all records are seen"
            )


class _Outline(msgspec.Struct, frozen=True):
    """What says of which kind a run file is."""

    federation: dict[str, Any]


class Holder(Section, frozen=True, kw_only=True):
    """Which party this is, and its files.

    Args:
        name: one of the run's parties.
        run: path of the run file.
        files: the party's records.
        folder: where ledger, journal, certificate and model are.
        token: path of a secret that the coordinator has, too; for sockets only.
        anchor: path of a file elsewhere (another disk, another account) that remembers how far the
            ledger had come: an older copy in its place pays for nothing. None where it is empty.
    """

    name: str
    run: str
    files: tuple[str, ...]
    folder: str
    token: str = ""
    anchor: str = ""


class PartyLimits(Section, frozen=True, kw_only=True):
    """A party's policy: what a run must keep to, or the party takes no part in it.

    Args:
        epsilon, delta: the most that one run may promise a record.
        adjacency: the relation that the promise must be stated in.
        algorithms: those that it takes part in.
        unit: whom the promise is for.
        threat_models: those that it takes part under.
        colluders: the least number that plans of sums must allow for.
        budget: epsilon at `delta` for all runs that its ledger pays for; None for no budget.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    algorithms: tuple[str, ...]
    unit: str = "record"
    threat_models: tuple[str, ...] = ("per-party",)
    colluders: int = 0
    budget: float | None = None


class _PartyFile(Section, frozen=True, kw_only=True):
    """The sections of `party.toml`, none of which any other party sees."""

    party: Holder
    noise: Noise
    policy: PartyLimits


@dataclass(frozen=True, slots=True, eq=False)
class Federation:
    """A run file, read: the plan that every party derives from it.

    Args:
        file: the run file's sections.
        schema: of every party's files, without a party column.
    """

    file: _RunFile
    schema: Schema

    @property
    def sha256(self) -> str:
        """The hash of what the file and its schema say, without where and how long to wait."""
        values = _agreed(self.file, self.schema)
        # as files without these lines have always hashed
        if self.threat_model == PER_PARTY:
            del values["federation"]["threat_model"], values["federation"]["colluders"]
        if not self.file.federation.dropouts:
            del values["federation"]["dropouts"]
        return _digest(values)

    @property
    def rounds(self) -> int:
        """Of the solver, for progress."""
        return self.file.solver.rounds

    @property
    def threat_model(self) -> ThreatModel:
        """What an adversary sees; it stands in every event, and policies decide by it."""
        meeting = self.file.federation
        if meeting.threat_model is SeenName.PER_PARTY:
            return PER_PARTY
        return Summed(meeting.colluders, meeting.dropouts)

    @property
    def shape(self) -> DataShape:
        """What is public about all parties' records.

        `count` is the least of the stated numbers of records; each party's own stands beside it.
        """
        meeting, schema = self.file.federation, self.schema
        return DataShape(
            meeting.parties,
            min(meeting.records),
            len(schema.feature_names) + self.file.solver.intercept,
            schema.row_bound,
            self.file.privacy.adjacency,
            schema.label.domain,
            meeting.records,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a promise takes for granted, beside what is written in the events.

        A party whose records are others than stated does not begin, which all others see.
        """
        public = "within public bounds" if self.threat_model == PER_PARTY else "public"
        return (
            f"records fit the schema, and how many complete ones a party has is {public} "
            "(files with others are refused aloud)",
        )

    def plan(self) -> tuple[FederatedPlan, Plan]:
        """Return what parties agree on, and the proved plan; no record is read.

        Without a stated noise multiplier, one is calibrated whose certificate proves the epsilon.
        Under `Summed` the solver is that of one holder of all records, whose settings it takes.
        Raises `InvalidParameter` for a solver that cannot run across parties.

        The same on every party's machine, from public numbers alone: it is what all of them agree
        on before any record is read.
        """
        privacy, shape, model = self.file.privacy, self.shape, self.threat_model
        sums = SummedTerms.of(model, shape) if isinstance(model, Summed) else None
        seen = shape if sums is None else summed_shape(shape)
        solvers = Solvers(self.file.solver, seen, privacy)
        terms = Terms(privacy.delta, privacy.adjacency, self.assumptions)

        def planned(noise_multiplier: float) -> Any:
            solver = solvers.noisy(noise_multiplier)
            if sums is None:
                return planning.plan(solver, shape)
            return plan_of_sums(solver, shape, sums)[0]

        if privacy.noise_multiplier is not None:
            made = plan_at(planned, privacy.noise_multiplier, terms)
        else:
            assert privacy.epsilon is not None
            made = calibrate_proved(planned, epsilon=privacy.epsilon, terms=terms)
        agreed = federated_plan(
            solvers.noisy(made.noise_multiplier),
            shape,
            delta=privacy.delta,
            algorithm=self.file.solver.algorithm.value,
            configuration=self.sha256,
            threat_model=model,
            assumptions=self.assumptions,
        )
        return agreed, made

    def record_sets(self) -> RecordSets:
        """Return where the records of parties are looked for twice."""
        return RecordSets(self.shape.features)

    def dataset(
        self, party: str, paths: Sequence[Path], others: RecordSets | None
    ) -> LocalDataset | ShareOfSum:
        """Return a party's records, read from its files.

        Raises `DataError` or `InvalidParameter` for data that are not what the plan assumes.
        """
        records = load_records(list(paths), schema=self.schema)
        if self.file.solver.intercept:
            records = records.with_constant()
        if others is not None:
            others.add_rows((party,), records.features, records.labels, self.shape)
        given = (records.features, records.labels)
        if isinstance(self.threat_model, Summed):
            return ShareOfSum(self.shape, party, *given)
        return LocalDataset(self.shape, (party,), *given)


def read_federation(path: Path) -> Federation | ColumnsFederation:
    """Return the federation of records or of columns in a file; raises `ConfigurationError`."""
    file: ColumnsFile | _RunFile
    if "columns" in read_toml(path, _Outline).federation:
        file = read_toml(path, ColumnsFile)
    else:
        file = read_toml(path, _RunFile)
    require_file_names(file.federation.parties)
    schema = read_schema(path.parent / file.federation.schema)
    if schema.party is not None:
        raise ConfigurationError(f"{path}: Expected a schema without a party column.")
    if isinstance(file, ColumnsFile):
        return ColumnsFederation(file, schema, _digest(_agreed(file, schema)))
    return Federation(file, schema)


def _agreed(file: _RunFile | ColumnsFile, schema: Schema) -> dict[str, Any]:
    """Return what a run file and its schema say, but where and how long to wait.

    These change nothing that is released, so that a run may move to another machine.
    """
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(file, order="deterministic"))
    del values["federation"]["address"], values["federation"]["patience"]
    values["federation"]["schema"] = msgspec.to_builtins(schema)
    return values


def _digest(values: dict[str, Any]) -> str:
    """Return the SHA-256 of values as JSON."""
    return hashlib.sha256(msgspec.json.encode(values, order="deterministic")).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Participant:
    """A party file, read, and the federation that it takes part in.

    Args:
        file: the party file's sections.
        here: the folder that its paths start at.
        federation: of the run file that it names.
    """

    file: _PartyFile
    here: Path
    federation: Federation | ColumnsFederation

    @classmethod
    def read(cls, path: Path) -> Participant:
        """Return the party in a file; raises `ConfigurationError`."""
        file = read_toml(path, _PartyFile)
        found = cls(file, path.parent, read_federation(path.parent / file.party.run))
        if file.party.name not in found.federation.file.federation.parties:
            raise ConfigurationError(f"{path}: Expected party.name among those of the run.")
        return found

    @property
    def folder(self) -> Path:
        """Where its ledger, journal, certificate and model are."""
        return self.here / self.file.party.folder

    @property
    def anchors(self) -> tuple[Path, ...]:
        """The file that anchors its ledger, if it has one."""
        anchor = self.file.party.anchor
        return (self.here / anchor,) if anchor else ()

    @contextmanager
    def opened(self, others: RecordSets | None = None) -> Generator[Party]:
        """Give the party with its records, its ledger and its journal, open while the block runs.

        Args:
            others: the records of the parties that one process has loaded so far, where it loads
                those of several: a party with the same ones is refused.

        Raises `DataError`, `ConfigurationError` or `InvalidParameter` for data that are not what
        the plan assumes, and `FileExistsError` where its folder has the files of another run;
        nothing was spent.
        """
        federation, holder, limits = self.federation, self.file.party, self.file.policy
        paths = [self.here / file for file in holder.files]
        dataset = federation.dataset(holder.name, paths, others)
        policy = Policy(
            epsilon=limits.epsilon,
            delta=limits.delta,
            adjacency=limits.adjacency,
            algorithms=limits.algorithms,
            unit=limits.unit,
            threat_models=limits.threat_models,
            colluders=limits.colluders,
        )
        anchor = next(iter(self.anchors), None)
        with (
            Journal(journal_folder(self.folder, *self.anchors)) as journal,
            SqliteLedger(self.folder / "ledger.sqlite", anchor=anchor) as ledger,
        ):
            if limits.budget is not None:
                asked = Budget(ApproxDp(limits.budget, limits.delta), limits.adjacency)
                if (kept := ledger.budget) is None:
                    ledger.set_budget(asked)
                else:
                    _require_no_less(asked, kept)
            yield Party(holder.name, dataset, self._sampler(), ledger, journal, policy)

    def _sampler(self) -> Sampler:
        """Return a source of exact noise, or of the seed's; a seed is for simulations and tests.

        Parties that chose one number, unaware of each other, have different noise all the same:
        equal noise in two messages could be subtracted.
        """
        noise, parties = self.file.noise, self.federation.file.federation.parties
        if noise.seed is None:
            return SystemSampler()
        place, bits = parties.index(self.file.party.name), BitGenerator(noise.sampler.value)
        return SeededSampler.stream(noise.seed, place, bits=bits)

    def written(self, took: TookPart) -> Participation:
        """Write the party's certificate and model to its folder, and return where they are.

        Those of an earlier run stay, as `certificate.1.json` and `model.1.npy`, and so on.
        """
        model = BytesIO()
        np.save(model, took.state.model)
        written = {"certificate.json": took.certificate, "model.npy": model.getvalue()}
        there = {self.folder / file: content for file, content in written.items()}
        if any(path.exists() and path.read_bytes() != new for path, new in there.items()):
            _put_aside(tuple(there))
        for path, content in there.items():
            path.write_bytes(content)
        return Participation(self.file.party.name, took.run, self.folder)


@dataclass(frozen=True, slots=True)
class Participation:
    """A party that took part to the end: its name, its run in its ledger, its files.

    Args:
        party: its name.
        run: the run's name in its ledger.
        folder: with certificate, model, ledger and journal.
    """

    party: str
    run: str
    folder: Path


def _put_aside(files: tuple[Path, ...]) -> None:
    """Rename files, those that are there, to `name.1.ext`, or the first number that is free.

    Args:
        files: of one run, which get one number.
    """

    def aside(path: Path, number: int) -> Path:
        return path.with_name(f"{path.stem}.{number}{path.suffix}")

    free = next(n for n in count(1) if not any(aside(path, n).exists() for path in files))
    for path in files:
        if path.exists():
            path.rename(aside(path, free))


def _require_no_less(asked: Budget, kept: Budget) -> None:
    """Raise `ConfigurationError` for a budget below the one that the ledger keeps for good.

    A file that was edited later cannot raise what was promised before: the smaller one counts.
    Budgets that are counted in different units are not compared, and one of them would count for
    nothing.
    """
    if kept.unit != asked.unit:
        raise ConfigurationError(
            f"policy.budget={asked.notion} must be left out: the ledger keeps {kept.notion}, which "
            f"is counted in another unit ({kept.unit})."
        )
    if asked.limit < kept.limit:
        raise ConfigurationError(
            f"policy.budget={asked.notion} must be at least {kept.notion}: the ledger keeps the "
            "budget that it got at its first run, and would pay for more."
        )
