"""A federation from files whose parties hold columns of the same records.

run.toml    [federation]  parties, the number of records, the schema of all columns, who holds
                          which, who holds the labels, where to meet
            [privacy]     as of a run: the promise is for what all parties release together
            [solver]      opinion-pool, where labels are public, or sharing
party.toml  as of any federation; the party's file has its own columns, and the labels where it
            holds them: a row a record, in the same order at every party
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from ..data import Schema, load_records, load_unlabelled
from ..data.schema import LabelColumn
from ..data.strict import ConfigurationError
from ..federation import FederatedPlan, plan_of_columns
from ..mechanisms import LocalColumns, VerticalShape
from ..mechanisms.protocols import FloatArray
from ..mechanisms.record_sets import RecordSets
from ..solvers import OpinionPool, SharingModels, planning
from ..solvers.defaults import opinion_pool_defaults, sharing_defaults
from .pipeline import Plan, Terms, calibrate_proved, plan_at
from .sections import Privacy, Section

__all__ = ["ColumnsFederation", "ColumnsFile"]

PUBLIC = "public"
"""Who holds the labels, where everybody does."""


class ColumnsMeeting(Section, frozen=True, kw_only=True):
    """Who meets, what is public of their data, and where.

    Args:
        parties: names, in an order that all know.
        records: how many records there are, public; every party has a row of each, in one order.
        schema: path of the schema of all columns; its row bound is of each party's part of a row.
        columns: for each party its columns; every column of features has one holder.
        labels: the party that holds the labels, or "public" where every party's file has them.
        address: "host:port" at which the coordinator listens.
        patience: seconds without a message after which the run ends.
    """

    parties: tuple[str, ...]
    records: int
    schema: str
    columns: dict[str, tuple[str, ...]]
    labels: str
    address: str = "127.0.0.1:7707"
    patience: float = 60.0

    def __post_init__(self) -> None:
        if not self.parties or tuple(self.columns) != self.parties:
            raise ValueError(
                "Expected columns to have an entry for each of parties, in their order"
            )
        if self.labels not in (*self.parties, PUBLIC):
            raise ValueError(f'labels={self.labels!r} must be one of parties, or "{PUBLIC}"')
        if self.records < 1:
            raise ValueError(f"records={self.records} must be in [1, inf)")
        if not self.patience > 0.0:
            raise ValueError(f"patience={self.patience} must be in (0, inf)")


class ColumnsAlgorithm(Enum):
    """How parties train that hold columns."""

    POOL = "opinion-pool"
    SHARING = "sharing"


class ColumnsSolver(Section, frozen=True, kw_only=True):
    """The solver: everything here is public.

    Args:
        algorithm: opinion-pool, every party descending on its own columns and log-odds being added,
            or sharing, ADMM on the sums of all parties' scores.
        rounds: of descent, None for what the defaults say; of sharing exchanges of scores, by
            default 0: then every party fits what the holder of labels tells of them.
        offset: what is added to all scores, such as public log-odds of the labels.
        regularisation: weight of the squared norm, in a mean over records; None for the default.
        penalty, slope_bound, radius: of sharing, as of `PrivateSharingClassifier`.
    """

    algorithm: ColumnsAlgorithm
    rounds: int | None = None
    offset: float = 0.0
    regularisation: float | None = None
    penalty: float = 0.25
    slope_bound: float = 1.0
    radius: float = 3.0

    def __post_init__(self) -> None:
        if not isfinite(self.offset):
            raise ValueError(f"offset={self.offset} must be finite")


class ColumnsFile(Section, frozen=True, kw_only=True):
    """The sections of `run.toml`."""

    federation: ColumnsMeeting
    privacy: Privacy
    solver: ColumnsSolver

    def __post_init__(self) -> None:
        if self.privacy.group > 1:
            raise ValueError("Expected unit and records_per_unit of one record")
        if self.solver.algorithm is ColumnsAlgorithm.POOL and self.federation.labels != PUBLIC:
            raise ValueError('Expected algorithm = "sharing" where labels are one party\'s')
        if self.solver.algorithm is ColumnsAlgorithm.POOL and self.privacy.epsilon is None:
            raise ValueError("Expected privacy.epsilon with opinion-pool: its steps follow from it")


@dataclass(frozen=True, slots=True, eq=False)
class ColumnsFederation:
    """A run file, read: the plan that every party derives from it.

    Args:
        file: the run file's sections.
        schema: of all parties' columns, and the labels.
        sha256: the hash of what both say, without where and how long to wait.
    """

    file: ColumnsFile
    schema: Schema
    sha256: str

    def __post_init__(self) -> None:
        held = [name for own in self.file.federation.columns.values() for name in own]
        if sorted(held) != sorted(column.name for column in self.schema.features):
            raise ConfigurationError("Expected federation.columns to have every feature once.")
        if not isinstance(self.schema.label, LabelColumn):
            raise ConfigurationError("Expected a label column, of two classes.")

    @property
    def rounds(self) -> int:
        """Of the solver, for progress."""
        return self.file.solver.rounds or 0

    @property
    def shape(self) -> VerticalShape:
        """What is public about all parties' records."""
        meeting = self.file.federation
        return VerticalShape(
            meeting.parties,
            meeting.records,
            tuple(len(self.schema_of(name).feature_names) for name in meeting.parties),
            self.schema.row_bound,
            self.file.privacy.adjacency,
            meeting.labels == PUBLIC,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a promise takes for granted, beside what is written in the events."""
        return (
            "records fit the schema, and their number is public (other files are refused aloud)",
        )

    def schema_of(self, party: str) -> Schema:
        """Return the schema of a party's file: its own columns, and the label's."""
        own = self.file.federation.columns[party]
        columns = tuple(
            column
            for column in self.schema.columns
            if column.name in own or isinstance(column, LabelColumn)
        )
        # a record that is left out at one party would move all behind it
        return structs.replace(self.schema, columns=columns, drop_missing=False)

    def plan(self) -> tuple[FederatedPlan, Plan]:
        """Return what parties agree on, and the proved plan; no record is read.

        Raises `InvalidParameter` as `plan_of_columns` does.
        """
        privacy, shape, labels = self.file.privacy, self.shape, self.file.federation.labels
        terms = Terms(privacy.delta, privacy.adjacency, self.assumptions)

        def planned(noise_multiplier: float) -> Any:
            return planning.plan(self._solver(noise_multiplier), shape)

        if privacy.noise_multiplier is not None:
            made = plan_at(planned, privacy.noise_multiplier, terms)
        else:
            assert privacy.epsilon is not None
            made = calibrate_proved(planned, epsilon=privacy.epsilon, terms=terms)
        agreed = plan_of_columns(
            self._solver(made.noise_multiplier),
            shape,
            labels_at=None if labels == PUBLIC else labels,
            delta=privacy.delta,
            algorithm=self.file.solver.algorithm.value,
            configuration=self.sha256,
            assumptions=self.assumptions,
        )
        return agreed, made

    def _solver(self, noise_multiplier: float) -> OpinionPool | SharingModels:
        """Return the solver with its noise."""
        made, privacy = self.file.solver, self.file.privacy
        if made.algorithm is ColumnsAlgorithm.SHARING:
            return SharingModels(
                sharing_defaults(
                    self.shape,
                    noise_multiplier=noise_multiplier,
                    rounds=made.rounds or 0,
                    penalty=made.penalty,
                    slope_bound=made.slope_bound,
                    radius=made.radius,
                    offset=made.offset,
                    regularisation=made.regularisation,
                )
            )
        assert privacy.epsilon is not None
        chosen = opinion_pool_defaults(
            self.shape,
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            offset=made.offset,
            **({} if made.regularisation is None else {"regularisation": made.regularisation}),
        )
        rounds = chosen.rounds if made.rounds is None else made.rounds
        return replace(chosen, noise_multiplier=noise_multiplier, rounds=rounds)

    def record_sets(self) -> RecordSets:
        """Return where records of parties are looked for twice: nowhere, all have the same ones."""
        return RecordSets(1)

    def dataset(self, party: str, paths: Sequence[Path], others: RecordSets | None) -> LocalColumns:
        """Return a party's columns, read from its files.

        Raises `DataError` or `InvalidParameter` for files that are not what the plan assumes.
        """
        schema, labels = self.schema_of(party), self.file.federation.labels
        known: FloatArray | None = None
        if labels in (party, PUBLIC):
            records = load_records(list(paths), schema=schema)
            known = records.labels
        elif len(paths) == 1:
            records = load_unlabelled(paths[0], schema=schema)
        else:
            raise ConfigurationError(f"files={len(paths)} must be one, of a party without labels.")
        rows: Any = records.features
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        return LocalColumns(self.shape, party, rows, known)
