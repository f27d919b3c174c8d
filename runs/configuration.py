"""A run's configuration: strict TOML, from which plans, data sets and solvers are made.

The file is the whole truth about a run: its hash stands in the ledger. `demo.toml` beside this file
is the demo's, and the example of every section; `huang2020.toml` has a paper's setting,
`dp_sgd.toml` hidden batches.
"""

import hashlib
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import structs

from ..audits.datasets import AuditDataset
from ..data import (
    LabelledRecords,
    Schema,
    load_adult,
    load_records,
    read_schema,
    split_by_content,
    split_records,
)
from ..data.adult import adult_schema
from ..data.strict import ConfigurationError, read_toml, toml_value
from ..mechanisms import Adjacency, BitGenerator, DataShape, PrivateDataset
from ..mechanisms.sampling import Sampler, SeededSampler, SystemSampler
from .algorithms import Solvers
from .pipeline import Terms
from .sections import (
    MOST_RELEASES,
    RECORD,
    SECRET_SEED,
    Algorithm,
    Algorithmic,
    Attack,
    Data,
    Noise,
    Privacy,
    Section,
    Statement,
)

_Handle = TypeVar("_Handle", bound=PrivateDataset)

__all__ = ["DEMO", "Configuration", "demo_configuration", "read_configuration"]

DEMO = Path(__file__).with_name("demo.toml")
"""The demo's configuration, an example of every section."""

KEPT_SEED = "kept by the data's holder"
"""What readers are shown of a seed of noise, which they could subtract the noise with."""

_SEEDED = "seeded"
"""What stands in a hash for any seed of noise."""

_ADDED = (
    ("solver", "intercept", False),
    ("solver", "clip", None),
    ("solver", "batch", None),
    ("data", "held_out", None),
    ("data", "records", None),
    ("privacy", "unit", RECORD),
    ("privacy", "records_per_unit", None),
)
"""Keys younger than the hash, with their defaults: a file without them keeps the hash it had."""


class Configuration(Section, frozen=True, kw_only=True, dict=True):
    """A run: one section each.

    Args:
        data: where records come from.
        privacy: what is promised.
        solver: who releases.
        noise: where noise comes from.
        attack: the empirical audit.
        statement: what only the holder of the data knows, for the report.
    """

    data: Data
    privacy: Privacy
    solver: Algorithmic
    noise: Noise
    attack: Attack = Attack()
    statement: Statement = Statement()

    def __post_init__(self) -> None:
        if self.solver.algorithm is Algorithm.CENTRALISED and self.data.parties != 1:
            raise ValueError("Expected data.parties = 1 with centralised")
        if (self.data.held_out is not None) != self.counts_are_private:
            raise ValueError(
                f"data.held_out={self.data.held_out} must be stated under add-remove-one, and only "
                "there: the share of records to hold out. A hash of each record decides; positions "
                "would move with one record more"
            )
        made, least = self.solver, self.data.party_records
        parties = self.data.parties or (len(least) if isinstance(least, tuple) else 1)
        releases = made.rounds * (made.inner_steps or 1) * parties
        if releases > MOST_RELEASES:
            raise ValueError(
                f"rounds={made.rounds}: times inner_steps and parties they must be in "
                f"[1, {MOST_RELEASES}], not {releases}"
            )

    @property
    def counts_are_private(self) -> bool:
        """Whether neighbours differ in their number of records: bounds alone are public."""
        return self.privacy.adjacency is Adjacency.ADD_REMOVE_ONE

    @property
    def sha256(self) -> str:
        """Hash of the canonical JSON of what is run, defaults included but those in `_ADDED`.

        What the holder states besides changes nothing that is run, and is not in it. Of a schema it
        has what the schema says, of files the names: wherever they lie, and whatever comments say.
        Of a seed of noise it has that there is one: reports carry the hash, and whoever can list
        seeds would find the one that makes it.
        """
        values = self._located
        if values["noise"]["seed"] is not None:
            values["noise"]["seed"] = _SEEDED
        return _hashed(values)

    @property
    def known_as(self) -> frozenset[str]:
        """`sha256`, and what it was in older ledgers: with the seed, and before it covered what a
        schema says.

        A run that broke off under an older version goes on only if its ledger's hash is one of
        these.
        """
        return frozenset({self.sha256, _hashed(self._located), _hashed(self._values)})

    @property
    def _located(self) -> dict[str, Any]:
        """What is run, with what its schema says in place of where it lies."""
        values = self._values
        if self.data.schema is not None:
            said = msgspec.json.encode(self.schema, order="deterministic")
            values["data"]["schema"] = hashlib.sha256(said).hexdigest()
            values["data"]["files"] = [Path(file).name for file in self.data.files]
        return values

    @property
    def _values(self) -> dict[str, Any]:
        """What is run, as JSON, without what was added after hashes were and is at its default."""
        values: dict[str, Any] = msgspec.json.decode(
            msgspec.json.encode(self, order="deterministic")
        )
        del values["statement"], values["data"]["folder"]
        for section, key, default in _ADDED:
            if values[section][key] == default:
                del values[section][key]
        return values

    @property
    def toml(self) -> str:
        """The configuration as a file would say it, defaults included."""
        return _as_toml(msgspec.to_builtins(self))

    @property
    def public_toml(self) -> str:
        """The same for readers, who learn no seed of noise; to be run it needs one."""
        sections = msgspec.to_builtins(self)
        if sections["noise"].pop("seed", None) is None:
            return self.toml
        return f"# noise.seed: {KEPT_SEED}\n{_as_toml(sections)}"

    def beside(self, schema: str | None) -> "Configuration":
        """Return the same for the folder of a copy of its schema; it names no other folder.

        Args:
            schema: file name of the copy; None for the shipped data, which have none.
        """
        files = tuple(Path(file).name for file in self.data.files)
        data = structs.replace(self.data, files=files, schema=schema, folder=None)
        return structs.replace(self, data=data)

    @cached_property
    def schema(self) -> Schema:
        """The public schema of the data; read once, so that plan and run cannot differ in it."""
        path = self.data.schema_path
        return adult_schema() if path is None else read_schema(path)

    @cached_property
    def shape(self) -> DataShape:
        """What is public about the training data; no record is read.

        Everything that a plan depends on: parties, counts, dimension, row bound, relation, labels.
        All of it stands in the configuration and its schema, which are public.
        """
        schema = self.schema
        parties, counts = self._parties()
        if self.solver.algorithm is Algorithm.PR_ADMM:
            self._require_network(len(parties))
        return DataShape(
            parties,
            min(counts),
            len(schema.feature_names) + self.solver.intercept,
            schema.row_bound,
            self.privacy.adjacency,
            schema.label.domain,
            counts,
            self._most_records,
        )

    @property
    def _most_records(self) -> int:
        """Public bound on a party's records; 0 for that of `DataShape`.

        Dealt evenly, that is twice an even share; where counts are private it is far above theirs.
        """
        if self.data.party_records is None or self.counts_are_private:
            return 0
        return self.data.train_records

    def _parties(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return who holds records, and how many each has at least.

        Raises `ConfigurationError` where run file and schema do not fit: no party column, numbers
        for other parties, or more records of one than are trained on.
        """
        data, column = self.data, self.schema.party
        if data.parties is not None:
            names = tuple(f"agent-{i + 1:04d}" for i in range(data.parties))
            return names, (data.train_records // data.parties,) * data.parties
        if column is None or data.party_records is None:
            raise ConfigurationError(
                f"{data.schema}: Expected a party column, or data.parties to deal records."
            )
        least, number = data.party_records, len(column.parties)
        counts = (least,) * number if isinstance(least, int) else least
        if len(counts) != number:
            raise ConfigurationError(
                f"Expected data.party_records to be one number, or {number} for the parties of "
                f"{data.schema}, instead got {len(counts)}."
            )
        if not self.counts_are_private and max(counts) > data.train_records:
            raise ConfigurationError(
                f"data.party_records={max(counts)} must be in [1, {data.train_records}], the "
                "records that are trained on."
            )
        return column.parties, counts

    def _require_network(self, agents: int) -> None:
        """Raise `ConfigurationError` for fewer than two agents, or an attack on some of them."""
        if agents < 2:
            raise ConfigurationError(
                f"Expected 2 parties or more with pr-admm instead got {agents}."
            )
        if self.attack.parties != agents:
            raise ConfigurationError(
                f"attack.parties={self.attack.parties} must be {agents} with pr-admm: "
                "a network cannot be cut."
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a promise takes for granted, beside what is written in the events.

        They are added to those of the certificate, and printed with every promise.
        """
        refused = "a file with others is refused aloud"
        if self.data.files and self.data.records is None and not self.counts_are_private:
            refused = "nothing checks that: data.records would"
        counted = (
            f"a party has at least {self.shape.count} complete ones and at most {self.shape.most}, "
            "and at least one is held out"
            if self.counts_are_private
            else "how many are complete is public"
        )
        return (
            f"records fit the schema, and {counted} ({refused})",
            *(
                ("which party holds which record is public, and neighbours agree in it",)
                if self.data.parties is None
                else ()
            ),
            *(
                (f"no {self.privacy.unit} has more than {self.privacy.group} of the records",)
                if self.privacy.unit != RECORD
                else ()
            ),
            *(() if self.noise.seed is None else (SECRET_SEED,)),
        )

    @property
    def terms(self) -> Terms:
        """What the guarantee of the run is stated for."""
        privacy = self.privacy
        return Terms(privacy.delta, privacy.adjacency, self.assumptions, privacy.group)

    @property
    def solvers(self) -> Solvers:
        """The solvers that the configuration describes."""
        return Solvers(self.solver, self.shape, self.privacy)

    def load(self) -> tuple[PrivateDataset, LabelledRecords]:
        """Return the training data behind their handle, and the held-out records.

        Raises `ConfigurationError` when the data are not what the plan assumed; nothing was spent.
        """
        train, test = self.records()
        return self.private(train), test

    def load_attacked(self) -> tuple[AuditDataset, int]:
        """Return the data of the attacked parties, and the index of the longest row of the first.

        Raises as `load` does.
        """
        part, _ = self.attacked_records()
        lengths = np.linalg.norm(np.asarray(part.features), axis=1)
        return self.audited(part), int(np.where(part.party_of == 0, lengths, -1.0).argmax())

    def attacked_records(self) -> tuple[LabelledRecords, LabelledRecords]:
        """Return the attacked parties' records, as a dense array, and the held-out records."""
        train, test = self.records()
        parties = train.parties[: self.attack.parties]
        part = train.take(np.flatnonzero(train.party_of < len(parties)))
        dense = np.asarray(
            part.features if isinstance(part.features, np.ndarray) else part.features.toarray()
        )
        return replace(part, features=dense, parties=parties), test

    def records(self) -> tuple[LabelledRecords, LabelledRecords]:
        """Return training records in their parties, and held-out ones; neither behind a handle.

        Raises as `load` does.
        """
        data, shape = self.data, self.shape
        if data.schema is None:
            records = load_adult()
        else:
            records = load_records(data.paths, schema=self.schema)
        if self.solver.intercept:
            records = records.with_constant()
        train, test = self._split(records)
        counts = np.bincount(train.party_of, minlength=len(train.parties))
        for name, found, least in zip(train.parties, counts, shape.counts, strict=True):
            if found < least:
                # how many there are is private where neighbours differ in it
                instead = "fewer" if self.counts_are_private else found
                raise ConfigurationError(
                    f"Expected at least data.party_records={least} records of party {name!r} "
                    f"instead got {instead}."
                )
        return train, test

    def _split(self, records: LabelledRecords) -> tuple[LabelledRecords, LabelledRecords]:
        """Return training records in their parties, and held-out ones.

        By position; under add-remove-one by each record's own content.

        Raises `ConfigurationError` where no record would be held out, or fewer were left to train
        on than there must be.
        """
        data, parties = self.data, self.shape.parties
        if data.held_out is not None:
            train, test = split_by_content(records, held_out=data.held_out, seed=data.split_seed)
            if not len(test):
                raise ConfigurationError(
                    f"data.held_out={data.held_out} must be larger: no record was held out."
                )
            dealt = data.parties is not None
            return (train.dealt_by_content(parties, seed=data.split_seed) if dealt else train), test
        if data.records not in (None, len(records)):
            raise ConfigurationError(
                f"Expected data.records={data.records} complete records instead got {len(records)}."
            )
        if data.train_records >= len(records):
            raise ConfigurationError(
                f"data.train_records={data.train_records} must be in [1, {len(records) - 1}]: "
                "the rest is held out."
            )
        train, test = split_records(records, train_records=data.train_records, seed=data.split_seed)
        return (train.divided(parties) if data.parties is not None else train), test

    def private(self, train: LabelledRecords) -> PrivateDataset:
        """Return training records behind their handle, some parties' or all.

        Public is what the plan knows of them: their numbers stay within its bounds.
        """
        return self._handle(PrivateDataset, train)

    def audited(self, train: LabelledRecords) -> AuditDataset:
        """Return the same behind an auditor's handle, which has neighbours and replays."""
        return self._handle(AuditDataset, train)

    def _handle(self, kind: type[_Handle], train: LabelledRecords) -> _Handle:
        """Return some parties' records behind a handle of this kind.

        Args:
            kind: an analyst's or an auditor's.
            train: their records; bounds on their numbers are those of the plan.
        """
        shape = self.shape
        least = dict(zip(shape.parties, shape.counts, strict=True))
        return kind(
            train.features,
            train.labels,
            adjacency=shape.adjacency,
            row_bound=train.row_bound,
            party_of=train.party_of,
            parties=train.parties,
            label_domain=shape.label_domain,
            party_counts=tuple(least[name] for name in train.parties),
            n_max=self._most_records or None,
        )

    def build_sampler(self) -> Sampler:
        """Return a fresh sampler of noise: the operating system's, or one of the seed.

        A seed is for experiments: equal seeds are equal noise, and two releases with it can be
        subtracted.
        """
        if self.noise.seed is None:
            return SystemSampler()
        return SeededSampler(self.noise.seed, bits=BitGenerator(self.noise.sampler.value))


def _hashed(values: dict[str, Any]) -> str:
    """Return the SHA-256 of values as JSON, in hexadecimal."""
    return hashlib.sha256(msgspec.json.encode(values)).hexdigest()


def _as_toml(sections: dict[str, dict[str, object]]) -> str:
    lines = {
        name: "".join(
            f"{key} = {toml_value(value)}\n" for key, value in section.items() if value is not None
        )
        for name, section in sections.items()
    }
    return "\n".join(f"[{name}]\n{text}" for name, text in lines.items())


def read_configuration(path: Path) -> Configuration:
    """Return the configuration in a TOML file.

    Paths in it that are not absolute start at its folder.

    Args:
        path: of the file.

    Raises `ConfigurationError` for an unknown key or a value that is not allowed, with its place.
    """
    found = read_toml(path, Configuration)
    if found.data.folder is not None:
        return found
    return structs.replace(found, data=structs.replace(found.data, folder=str(path.parent)))


def demo_configuration(*, rounds: int | None = None, trials: int | None = None) -> Configuration:
    """Return the demo's configuration, with other rounds or trials of the attack.

    Args:
        rounds: of ADMM; the file's by default.
        trials: in each world; the file's by default.
    """
    found = read_configuration(DEMO)
    solver = found.solver if rounds is None else structs.replace(found.solver, rounds=rounds)
    attack = found.attack if trials is None else structs.replace(found.attack, trials=trials)
    return structs.replace(found, solver=solver, attack=attack)
