"""Statistics of a file: counts, sums, means, histograms, quantiles, released under one epsilon.

In comes a TOML file that says which statistics of which columns are wanted and what epsilon they
may cost together; out go noisy numbers, a ledger and a certificate. The order is that of a run:
plan, prove, reserve the whole plan, and only then read the records and draw noise. `dpledger stats`
prints what `release_statistics` returns.

Noise is shared out by `weight`. At z, the common noise multiplier that is looked for, a statistic
of weight w has Gaussian noise of z/√w sensitivities, its whole numbers rounded afterwards; where
δ = 0 it has Laplace noise of z/w, discrete where the numbers are whole. The exponential mechanism
of a quantile has the epsilon 2√w/z, or w/z. What is public by the relation, as a count may be, is
no release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, exp, inf, log, sqrt
from pathlib import Path
from uuid import uuid4

import msgspec
import numpy as np
from msgspec import structs

from ..accounting.ledger import SqliteLedger
from ..accounting.numbers.enclosure import shown_in_full
from ..accounting.proof.proved import proved
from ..data import Schema, load_table, read_schema
from ..data.encoding import table_columns
from ..data.strict import ConfigurationError, read_toml
from ..mechanisms import (
    Adjacency,
    Audience,
    BoundedColumn,
    Curator,
    DiscreteLaplaceNoise,
    ExponentialMechanism,
    LaplaceNoise,
    Norm,
    PrivateTable,
    Sensitive,
    TableShape,
)
from ..mechanisms.discrete_noise import SMALLEST_SCALE
from ..mechanisms.errors import DpledgerError
from ..mechanisms.events import Event
from ..mechanisms.exact_choice import MOST_CANDIDATES
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sampling import Sampler, SeededSampler, SystemSampler
from ..mechanisms.sensitivity import float_up
from ..solvers.planning import planned_events
from .pipeline import Plan, Terms, calibrate_proved, run_prepaid
from .sections import (
    RECORD,
    SECRET_SEED,
    Noise,
    SamplerName,
    Section,
    Unit,
    repeatable_noise,
)
from .training import new_folder, warn_of_new

_LEAST_WEIGHT = 1e-100
"""Of a statistic; the largest is as far on the other side of 1. No ratio of two overflows."""

_CONFIDENCE = 0.95
"""Of the intervals beside the numbers, which are of the noise alone: what the records leave open
about a population is not in them.
"""


class StatisticName(Enum):
    """What may be asked of columns."""

    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    HISTOGRAM = "histogram"
    QUANTILE = "quantile"
    SECOND_MOMENTS = "second-moments"


_NEEDED = {
    StatisticName.COUNT: (),
    StatisticName.SUM: ("column",),
    StatisticName.MEAN: ("column",),
    StatisticName.HISTOGRAM: ("column",),
    StatisticName.QUANTILE: ("column", "quantile"),
    StatisticName.SECOND_MOMENTS: ("columns",),
}
"""The keys that a statistic must have; `edges` may stand beside a histogram's.

What is not needed must be left out, so that no key is read and then ignored.
"""


class Statistic(Section, frozen=True, kw_only=True):
    """One statistic.

    Args:
        kind: count, sum, mean, histogram, quantile or second-moments.
        column: name of the column; not of a count.
        columns: names of the columns whose products are averaged; of second-moments.
        edges: public, increasing; of a histogram of a numeric column.
        quantile: in [0, 1]; 0.5 is the median.
        candidates: how many evenly spaced numbers of the column's range a quantile may be.
        weight: share of the budget, beside the others' weights.

    A statistic of weight w costs the share of the budget that its noise has: weights are compared
    with each other, so that 2 and 2 are what 1 and 1 are.
    """

    kind: StatisticName
    column: str | None = None
    columns: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    quantile: float | None = None
    candidates: int = 1024
    weight: float = 1.0

    def __post_init__(self) -> None:
        needed = _NEEDED[self.kind]
        for name in ("column", "columns", "quantile"):
            if (getattr(self, name) in (None, ())) == (name in needed):
                word = "stated" if name in needed else "left out"
                raise ValueError(f"{name} must be {word} with kind = {self.kind.value!r}")
        if self.edges and self.kind is not StatisticName.HISTOGRAM:
            raise ValueError(f"edges must be left out with kind = {self.kind.value!r}")
        if not _LEAST_WEIGHT <= self.weight <= 1 / _LEAST_WEIGHT:
            allowed = f"in [{_LEAST_WEIGHT:g}, {1 / _LEAST_WEIGHT:g}]"
            raise ValueError(f"weight={self.weight} must be {allowed}")
        if not 2 <= self.candidates <= MOST_CANDIDATES:
            raise ValueError(f"candidates={self.candidates} must be in [2, {MOST_CANDIDATES}]")

    @property
    def label(self) -> str:
        """What it is, in a word or two."""
        of = self.column or ", ".join(self.columns)
        rank = "" if self.quantile is None else f" {shown_in_full(self.quantile)}"
        return f"{self.kind.value}{rank} of {of}" if of else self.kind.value


class StatisticsData(Section, frozen=True, kw_only=True):
    """Where records come from, and what is public about them.

    Args:
        files: your own files, read in order as one.
        schema: the TOML file with everything that is public about those files; it needs no label.
        records: number of complete records, public; under add-remove-one a lower bound on it.
        most_records: upper bound on the number of records, public; of add-remove-one.
        whole: names of numeric columns that hold whole numbers: their sums get whole noise.
        folder: where paths of files and schema start; at the folder of this file without it.

    Numbers of records are public facts that the holder knows from elsewhere: one that is counted
    from the file is a release.
    """

    files: tuple[str, ...]
    schema: str
    records: int
    most_records: int | None = None
    whole: tuple[str, ...] = ()
    folder: str | None = None

    def __post_init__(self) -> None:
        if self.records < 1:
            raise ValueError(f"records={self.records} must be in [1, inf)")
        if not self.files:
            raise ValueError("files must name one file or more")


class StatisticsPrivacy(Unit, frozen=True, kw_only=True):
    """The promise: all statistics together, to a record or to a unit of several.

    Args:
        adjacency: what neighbouring tables are: replace-one, zero-out-one or add-remove-one.
        epsilon: what the proved epsilon of all statistics together must not exceed.
        delta: 0 for pure differential privacy, with Laplace noise; else Gaussian noise.
    """

    adjacency: Adjacency
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        self.require_unit()
        if not 0 < self.epsilon < inf:
            raise ValueError(f"epsilon={self.epsilon} must be in (0, inf)")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta={self.delta} must be in [0, 1)")
        if self.adjacency is Adjacency.REPLACE_FEATURE_COLUMN:
            raise ValueError("adjacency must be a relation between records")


class StatisticsFile(Section, frozen=True, kw_only=True, dict=True):
    """What is asked of a file, a section each.

    Args:
        data: where records come from.
        privacy: what is promised.
        statistics: what is asked, one table each.
        noise: where noise comes from: the operating system, unless an experiment states a seed.
    """

    data: StatisticsData
    privacy: StatisticsPrivacy
    statistics: tuple[Statistic, ...]
    noise: Noise = Noise(sampler=SamplerName.SYSTEM)

    def __post_init__(self) -> None:
        if not self.statistics:
            raise ValueError("statistics must ask for one or more")

    @cached_property
    def schema(self) -> Schema:
        """The public schema of the files; read once."""
        return read_schema(Path(self.data.folder or "", self.data.schema))

    @cached_property
    def shape(self) -> TableShape:
        """What is public about the table; no record is read."""
        columns = table_columns(self.schema, self.data.whole)
        most = self.data.most_records or 0
        return TableShape(tuple(columns.items()), self.data.records, self.privacy.adjacency, most)

    @property
    def terms(self) -> Terms:
        """What the guarantee is stated for."""
        privacy = self.privacy
        counted = (
            f"at least {self.shape.count} and at most {self.shape.most} of them are complete"
            if self.shape.resized
            else "how many of them are complete is public"
        )
        given = [f"records fit the schema, and {counted} (a file with others is refused aloud)"]
        if privacy.unit != RECORD:
            given.append(f"no {privacy.unit} has more than {privacy.group} of the records")
        if self.noise.seed is not None:
            given.append(SECRET_SEED)
        return Terms(privacy.delta, privacy.adjacency, tuple(given), privacy.group)

    @property
    def sampler(self) -> Sampler:
        """A fresh sampler of noise."""
        return SystemSampler() if self.noise.seed is None else SeededSampler(self.noise.seed)


@dataclass(frozen=True, slots=True)
class Released:
    """A statistic as it was released.

    Args:
        statistic: what was asked.
        values: the noisy numbers; of a quantile the one chosen.
        cells: what each number is of, where there are several.
        within: half the width of a 95 % interval of the noise around each number; None of a
            quantile, whose error depends on the records.
    """

    statistic: Statistic
    values: tuple[float, ...]
    cells: tuple[str, ...]
    within: float | None


@dataclass(frozen=True, eq=False, slots=True)
class StatisticsResult:
    """What came of it.

    Args:
        plan: what was released, and what it guarantees.
        statistics: as released, in the file's order.
        unit: whom the guarantee is for, in words.
        folder: with statistics.json, the certificate and the ledger.
    """

    plan: Plan
    statistics: tuple[Released, ...]
    unit: str
    folder: Path


def read_statistics(path: Path) -> StatisticsFile:
    """Return what a TOML file asks; its paths start at its folder.

    Raises `ConfigurationError` for an unknown key or a value that is not allowed.
    """
    found = read_toml(path, StatisticsFile)
    if found.data.folder is not None:
        return found
    return structs.replace(found, data=structs.replace(found.data, folder=str(path.parent)))


def plan_statistics(asked: StatisticsFile) -> Plan:
    """Return the plan at the least noise whose proved epsilon meets the target; no record is read.

    Raises `InvalidParameter` for a column that there is not, or that has no such statistic,
    `ConfigurationError` where all of them are public already, and as `calibrate_proved`.
    """

    def planned(noise_multiplier: float) -> Sequence[Event]:
        def release(table: PrivateTable, curator: Curator) -> object:
            return _release_all(asked, noise_multiplier, table, curator)

        return planned_events(release, PrivateTable.planned(asked.shape))

    plan = calibrate_proved(planned, epsilon=asked.privacy.epsilon, terms=asked.terms)
    if not plan.events:
        raise ConfigurationError(
            "statistics must ask for one that a record can change: under "
            f"{asked.privacy.adjacency.value} the number of records, "
            f"{asked.data.records}, is public"
        )
    return plan


def release_statistics(
    asked: StatisticsFile | Path | str, *, out: Path | None = None, ledger: Path | None = None
) -> StatisticsResult:
    """Return the statistics that a file asks for, paid for as a whole before the first of them.

    Args:
        asked: or the TOML file that it stands in.
        out: folder for statistics.json, certificate and ledger; a new one without it.
        ledger: that pays, in place of a new one in the folder.

    Raises before anything is spent if the plan, its proof, the records or the budget do not allow
    it.

    The certificate is checked by the independent checker before it is written, and names the
    ledger's last row.
    """
    name = "statistics"
    if not isinstance(asked, StatisticsFile):
        name, asked = Path(asked).stem, read_statistics(Path(asked))
    plan = plan_statistics(asked)
    if plan.proof is None:
        raise ConfigurationError(f"statistics must have a proof: {plan.guarantee.not_proved}")
    files = [Path(asked.data.folder or "", file) for file in asked.data.files]
    table = load_table(
        files,
        schema=asked.schema,
        adjacency=asked.privacy.adjacency,
        records=asked.data.records,
        n_max=asked.data.most_records,
        whole=asked.data.whole,
    )
    if ledger is not None:
        warn_of_new(ledger)
        with SqliteLedger(ledger) as book:
            book.require(plan.events)
    folder = new_folder(out, name, ledger, first="statistics.json")
    run = f"{name} {datetime.now(UTC).isoformat(timespec='seconds')} {uuid4().hex[:8]}"
    with SqliteLedger(ledger or folder / "ledger.sqlite") as book:
        paid = book.run(run, configuration_hash=plan.proof.certificate.subject, plan=plan.events)
        try:
            found = run_prepaid(
                lambda data, curator: _release_all(asked, plan.noise_multiplier, data, curator),
                table,
                paid,
                plan.events,
                asked.sampler,
            )
        except DpledgerError:
            if not paid.events():  # refused, and nothing paid: the folder is free
                (folder / "statistics.json").unlink()
            raise
        certificate = plan.proof.certificate.given(*book.circumstances(run))
    document = certificate.to_json_bytes()
    proved(document, events=plan.events, epsilon=certificate.epsilon, group=asked.privacy.group)
    (folder / "certificate.json").write_bytes(document)
    result = StatisticsResult(plan, found, asked.privacy.unit_text, folder)
    (folder / "statistics.json").write_bytes(msgspec.json.format(_written(result)))
    return result


def _written(result: StatisticsResult) -> bytes:
    """Return statistics.json: what was promised to whom, and the noisy numbers.

    Args:
        result: as released; the file may be published, as every number in it is paid for.
    """
    found = result.plan.guarantee
    noise = repeatable_noise(found.assumptions)
    return msgspec.json.encode(
        {
            "epsilon": found.epsilon.upper_float,
            "delta": float_up(found.delta),
            "grade": found.graded,
            "assumptions": found.assumptions,
            **({} if noise is None else {"noise": noise}),
            "adjacency": None if found.adjacency is None else found.adjacency.value,
            "unit": result.unit,
            "statistics": [
                {
                    "statistic": each.statistic.label,
                    "values": each.values,
                    "cells": each.cells,
                    "within_95_percent": each.within,
                }
                for each in result.statistics
            ],
        }
    )


def _release_all(
    asked: StatisticsFile, noise_multiplier: float, table: PrivateTable, curator: Curator
) -> tuple[Released, ...]:
    """Return all statistics of a table, or plan them; see the head of this file for the noise."""
    release = _Releasing(asked.privacy.delta == 0, noise_multiplier, table, curator)
    return tuple(release(each, k) for k, each in enumerate(asked.statistics, 1))


def _within(scale: float, *, pure: bool, whole: bool) -> float:
    """Return the least w with P(|X| <= w) >= 95 %, of noise X as it is released.

    Args:
        scale: of Laplace noise, or the standard deviation of normal noise.
        pure: whether X is Laplace noise, discrete where it is whole.
        whole: whether X is whole; normal noise is rounded.

    Discrete Laplace noise has P(|X| > w) = 2 p^(w+1) / (1 + p) for p = e^(-1/scale) and whole w.
    """
    if not pure:
        wide = 1.959963984540055 * scale
        return float(max(ceil(wide - 0.5), 0)) if whole else wide
    beyond = 1 - _CONFIDENCE
    if not whole:
        return -log(beyond) * scale
    return float(max(ceil(scale * log(2 / (1 + exp(-1 / scale)) / beyond)) - 1, 0))


@dataclass(frozen=True, slots=True)
class _Releasing:
    """Releases statistics of a table, one after another.

    Args:
        pure: whether noise is Laplace's, else normal.
        noise_multiplier: of a statistic of weight 1.
        table: private, or planned.
        curator: that releases.
    """

    pure: bool
    noise_multiplier: float
    table: PrivateTable
    curator: Curator

    def __call__(self, asked: Statistic, turn: int) -> Released:
        """Return one statistic; `turn` is its place in the file, from 1."""
        if asked.kind is StatisticName.QUANTILE:
            return self._quantile(asked, turn)
        sensitive = self._asked(asked)
        if sensitive.sensitivity.squared == 0:
            return Released(asked, (float(self.table.shape.count),), (), 0.0)
        multiplier = self.noise_multiplier / (asked.weight if self.pure else sqrt(asked.weight))
        message, scale = self._noisy(sensitive, multiplier, turn, asked.label)
        within = _within(scale, pure=self.pure, whole=sensitive.rounding.whole)
        return Released(asked, tuple(message.ravel().tolist()), self._cells(asked), within)

    def _asked(self, asked: Statistic) -> Sensitive:
        """Return the statistic as a private value, in the norm of the noise."""
        norm = Norm.L1 if self.pure else Norm.L2
        column = asked.column or ""
        match asked.kind:
            case StatisticName.COUNT:
                return self.table.count(norm=norm)
            case StatisticName.SUM:
                return self.table.sum(column, norm=norm)
            case StatisticName.MEAN:
                return self.table.mean(column, norm=norm)
            case StatisticName.HISTOGRAM:
                return self.table.histogram(column, asked.edges, norm=norm)
            case _:
                return self.table.second_moments(asked.columns, norm=norm)

    def _noisy(
        self, sensitive: Sensitive, multiplier: float, turn: int, label: str
    ) -> tuple[FloatArray, float]:
        """Return the message, and the scale of its noise.

        Args:
            sensitive: the statistic, with its sensitivity.
            multiplier: of its noise, in sensitivities.
            turn: its place in the file, from 1.
            label: what it is, in a word.
        """
        release: Callable[..., FloatArray] = self.curator.release
        where = {"round": turn, "release": label, "audience": Audience.PUBLIC}
        scale = float_up(sensitive.sensitivity.root * Fraction(multiplier))
        whole = sensitive.rounding.whole
        if not self.pure:
            message = release(sensitive, noise_std=scale, **where)
            return np.rint(message) if whole else message, scale
        if whole:
            scale = max(scale, SMALLEST_SCALE)
            return release(sensitive, mechanism=DiscreteLaplaceNoise(scale), **where), scale
        return release(sensitive, mechanism=LaplaceNoise(scale), **where), scale

    def _quantile(self, asked: Statistic, turn: int) -> Released:
        """Return one of evenly spaced candidates, by the exponential mechanism.

        A candidate costs how far its rank is from the one asked for, and is chosen with a
        probability that falls exponentially with it (McSherry, Talwar 2007): the error depends on
        how the records lie, so that no interval is stated.
        """
        assert asked.column is not None
        assert asked.quantile is not None
        _, column = self.table.shape.numeric(asked.column)
        candidates = np.linspace(column.lower, column.upper, asked.candidates)
        costs = self.table.quantile_costs(asked.column, asked.quantile, candidates.tolist())
        share = asked.weight if self.pure else 2 * sqrt(asked.weight)
        marks = self.curator.release(
            costs,
            mechanism=ExponentialMechanism(share / self.noise_multiplier),
            round=turn,
            release=asked.label,
            audience=Audience.PUBLIC,
        )
        return Released(asked, (float(candidates[int(marks.argmax())]),), (), None)

    def _cells(self, asked: Statistic) -> tuple[str, ...]:
        """Return what each number of a statistic of several is of."""
        if asked.kind is StatisticName.SECOND_MOMENTS:
            names = asked.columns
            return tuple(f"{a} · {b}" for i, a in enumerate(names) for b in names[i:])
        if asked.kind is not StatisticName.HISTOGRAM:
            return ()
        column = dict(self.table.shape.columns).get(asked.column or "")
        if not isinstance(column, BoundedColumn):
            return () if column is None else column.categories
        ends = ("", *(shown_in_full(edge) for edge in asked.edges), "")
        return tuple(
            f"{low} to below {high}" if low and high else f"below {high}" if high else f"{low} up"
            for low, high in pairwise(ends)
        )
