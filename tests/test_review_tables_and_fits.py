"""Laws of handles of several kinds in one program, of files and of fits, as they were tried.

Neighbours are given the same noise, so that whatever differs was computed from the records.
"""

from __future__ import annotations

import random
import re
import resource
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import sparse

import dpledger as dp
from dpledger.accounting import Budget, MemoryLedger, SqliteLedger
from dpledger.accounting.ledger import LedgerError
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.data import SchemaError
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    BoundedColumn,
    CategoryColumn,
    ClassLabels,
    EventList,
    LocalProblem,
    PrivateDataset,
    PrivateTable,
    RowBlocks,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    SystemSampler,
    VerticalDataset,
    WeightedLabels,
    concatenate,
    concatenate_disjoint,
    linear_map,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.protocols import Provenance
from dpledger.mechanisms.sampling import ExactSampler
from dpledger.runs import RunOptions, release_statistics
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.runs.starting import column_names
from dpledger.solvers import Hinge, LinearLoss, Logistic, Multinomial, SmoothedHinge
from dpledger.solvers.weighted import Weighted

Floats = NDArray[np.float64]
REPLACE, ZERO, ADD = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE


def said(value: Sensitive, **noise: Any) -> tuple[Floats, Any]:
    """Return what a curator of one seed says of a value, and the mechanism of its event."""
    sink = EventList()
    curator = SamplingCurator(sink, SeededSampler(11))
    message = curator.release(value, round=1, release="x", **noise)
    return message, sink.events[0].mechanism


def share_moved(first: Floats, second: Floats, bound: Fraction) -> float:
    """Return how far messages of one noise are apart, over a bound, less what doubles round."""
    pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
    moved = sqrt(float(sum((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs)))
    room = float(np.abs(first).max()) * first.size * 2.0**-50
    return max(0.0, moved - room) / float(bound) if bound else moved


class World:
    """One data set seen through handles of several kinds: rows, a table and columns."""

    def __init__(self, relation: Adjacency, arrays: dict[str, Any], public: dict[str, Any]) -> None:
        self.relation, self.public = relation, public
        bounded: dict[str, Any] = {"adjacency": relation}
        if relation is ADD:
            bounded |= {"n_min": 1, "n_max": 64}
        rows, labels = arrays["rows"], arrays["labels"]
        self.rows = PrivateDataset(
            public["form"](rows),
            labels,
            row_bound=public["bound"],
            label_domain=public["domain"],
            party_of=arrays["party_of"],
            parties=("north", "south"),
            **bounded,
        )
        self.other = PrivateDataset(
            public["theirs"], np.ones(7), row_bound=public["bound"], parties=("west",), **bounded
        )
        columns: dict[str, Any] = {
            "x": BoundedColumn(-1.5, 2.0),
            "z": CategoryColumn(("p", "q", "r")),
        }
        cells = {"x": arrays["cells"], "z": arrays["words"]}
        self.table = PrivateTable(cells, columns, **bounded)
        self.columns = None
        if relation is not ADD:
            self.columns = VerticalDataset(
                [rows[:, :2], rows[:, 2:]],
                np.where(labels > 0, 1.0, -1.0),
                adjacency=relation,
                parties=("bank", "shop"),
                public_labels=False,
                row_bound=public["bound"],
            )


def of_parties(world: World, draw: random.Random, rng: np.random.Generator) -> Sensitive:
    """Return a function of the rows, a row for each of the two parties."""
    data, public = world.rows, world.public
    loss = draw.choice(public["losses"])
    point = rng.normal(size=data.shape.parameters(loss)) * 10.0 ** draw.uniform(-3, 3)
    weights = np.array([draw.choice([0.0, 1.0, -2.5]), draw.choice([1.0, 1e-3, 40.0])])
    match draw.randrange(7):
        case 0:
            return data.mean_gradient(loss, point)
        case 1:
            return data.mean_gradient(loss, point, weights=weights)
        case 2:
            radius = public["bound"] * 10.0 ** draw.uniform(-3, 0.5)
            return data.sum_gradient(loss, point, radius=radius)
        case 3:
            return data.second_moment()
        case 4:
            return data.histogram([-0.5, 0.0, 0.7], column=draw.choice([None, 0, 2]))
        case 5:
            if loss.curvature_bound is None:
                return data.histogram([])
            return data.strongly_convex_argmin(
                loss,
                modulus=public["bound"] ** 2 * 0.3,
                linear=np.zeros(data.shape.parameters(loss)),
                tolerance=1e-6 * public["bound"],
                start=np.zeros(data.shape.parameters(loss)),
            )
        case _:
            centre = rng.normal(size=3) * public["bound"] * draw.choice([0.0, 0.4, 0.9])
            scale = rng.uniform(0.01, 30.0, size=3)
            centred = CentredRows(data, centre, radius=public["bound"] * 0.5, scale=scale)
            return draw.choice([centred.mean_squares(), centred.mean_gradient(loss, point)])


def of_everybody(world: World, draw: random.Random, rng: np.random.Generator) -> Sensitive:
    """Return a function of the table or of the columns, which names no party."""
    table, columns = world.table, world.columns
    choices = [
        lambda: table.sum("x"),
        lambda: table.mean("x"),
        lambda: table.count(),
        lambda: table.histogram("z"),
        lambda: table.histogram("x", [-1.0, 0.1]),
        lambda: table.second_moments(["x"]),
    ]
    if columns is not None:
        pull = rng.normal(size=columns.shape.count)
        problem = LocalProblem(
            pull, penalty=0.5, modulus=0.2, slope_bound=1.0, radius=2.0, tolerance=1e-3
        )
        party = draw.choice(columns.shape.parties)
        width = columns.shape.features[columns.shape.parties.index(party)]
        smooth: Any = draw.choice([Logistic(), SmoothedHinge(0.3)])
        choices += [
            lambda: columns.predictions(party, problem),
            lambda: columns.minimiser(party, problem),
            lambda: columns.scores(party, rng.normal(size=width)),
            lambda: columns.dual(smooth, 3 * pull, penalty=0.7, tolerance=1e-6),
        ]
    return draw.choice(choices)()


def program(world: World, seed: int) -> Sensitive:
    """Return what a random program makes of handles; one seed, one program."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    source = draw.choice([of_parties, of_everybody])
    value = source(world, draw, rng)
    for _ in range(draw.randrange(5)):
        width = value.dimension
        match draw.randrange(7):
            case 0:
                value = value * draw.choice([-1.0, 0.3, 1e4, 7e-5])
            case 1:
                value = rng.normal(size=width) - value
            case 2:
                value = linear_map(rng.normal(size=(2, width)) * draw.choice([1.0, 1e3]), value)
            case 3:
                value = value.clipped(float(value.sensitivity.root) * draw.choice([0.2, 0.9, 3.0]))
            case 4:
                value = concatenate(value, source(world, draw, rng))
            case 5:
                more = source(world, draw, rng)
                value = value + linear_map(rng.normal(size=(width, more.dimension)), more)
            case _:
                value = value / draw.choice([3.0, -1e-3])
    if source is of_parties and draw.random() < 0.3:
        theirs = world.other.mean_gradient(LinearLoss(), np.zeros(3))
        theirs = linear_map(rng.normal(size=(value.dimension, 3)), theirs)
        value = concatenate_disjoint(value, theirs)
    return value


def neighbours(
    relation: Adjacency, rng: np.random.Generator, draw: random.Random
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return public facts, and the arrays of two data sets that differ in one record."""
    count, bound = int(rng.integers(6, 24)), draw.choice([1.0, 1e-6, 300.0])
    classes = draw.random() < 0.4
    party_of = (np.arange(count) >= int(rng.integers(2, count - 2))).astype(int)
    first = {
        "rows": rng.normal(size=(count, 3)) * bound * draw.choice([0.2, 1.0, 1e9]),
        "labels": rng.integers(0, 3, count).astype(float)
        if classes
        else rng.choice([-1.0, 1.0], count),
        "cells": rng.choice([-1.5, 2.0, 0.3, 1e30, -0.0], count),
        "words": rng.integers(0, 3, count).astype(float),
        "party_of": party_of,
    }
    place = int(rng.integers(count))
    second = {name: array.copy() for name, array in first.items()}
    kept = np.ones(count, dtype=bool)
    if relation is REPLACE:
        second["rows"][place] = -first["rows"][place] if draw.random() < 0.7 else 1e12
        second["labels"][place] = draw.choice([0.0, 2.0] if classes else [-1.0, 1.0])
        second["cells"][place] = draw.choice([-9.0, 9.0])
        second["words"][place] = draw.choice([0.0, 2.0])
    elif relation is ZERO:
        second["rows"][place], second["cells"][place] = 0.0, 0.0
        second["words"][place] = 0.0
    else:
        kept[place] = np.count_nonzero(party_of == party_of[place]) <= 1
        second = {name: array[kept] for name, array in second.items()}
    forms = [np.copy, np.asfortranarray, sparse.csr_array, sparse.coo_array]
    forms.append(lambda rows: RowBlocks(rows.shape, lambda some: rows[some], at_once=4))
    public = {
        "bound": bound,
        "domain": ClassLabels(3) if classes else SIGNS,
        "losses": [Multinomial(3)]
        if classes
        else [Logistic(), LinearLoss(), SmoothedHinge(0.1), Hinge()],
        "form": draw.choice(forms),
        "theirs": rng.normal(size=(7, 3)),
    }
    return public, first, second


@pytest.mark.parametrize("relation", [REPLACE, ZERO, ADD])
def test_no_program_of_several_kinds_of_handles_moves_further_than_its_event_says(
    relation: Adjacency,
) -> None:
    """Tried: rows of two parties, centred rows, minimisers, tables and columns in one program,
    beside a third party's handle; at three sizes, in five forms."""
    rng, draw, shares = np.random.default_rng(3), random.Random(3), list[float]()
    for _ in range(60):
        public, *both = neighbours(relation, rng, draw)
        seed = draw.randrange(2**50)
        found = list[tuple[Floats, Any]]()
        try:
            for arrays in both:
                value = program(World(relation, arrays, public), seed)
                if value.sensitivity.squared == 0:
                    break
                found.append(said(value, noise_multiplier=2.0**-8))
        except InvalidParameter:
            shares += [2.0] * len(found)  # a refusal by public facts alone is the same for both
            continue
        if len(found) < 2:
            continue
        (one, event), (two, same) = found
        assert event == same
        shares.append(share_moved(one, two, event.sensitivity.root))
    assert len(shares) > 30
    assert 0.3 < max(shares) <= 1 + 1e-9


class Told:
    """A solver of one's own that releases functions of records once, and keeps what it hears."""

    def __init__(self, noise: float, heard: list[Any]) -> None:
        self.noise, self.heard = noise, heard

    def solve(self, dataset: Any, curator: Any, *, observe: Any = None) -> Any:
        """Release a gradient, squares of rows and counts of labels."""
        shape, rng = dataset.shape, np.random.default_rng(4)
        weighted = isinstance(shape.label_domain, WeightedLabels)
        plain = shape.label_domain.labels if weighted else shape.label_domain
        loss: Any = Logistic()
        if isinstance(plain, ClassLabels):
            loss = Multinomial(plain.classes)
        loss = Weighted(loss) if weighted else loss
        point = rng.normal(size=shape.parameters(loss))
        for k, value in enumerate(
            [dataset.mean_gradient(loss, point), dataset.second_moment(), dataset.histogram([0.5])],
            1,
        ):
            self.heard.append(
                curator.release(value, round=k, release="x", noise_multiplier=self.noise)
            )
        return Model(point)


@dataclass(frozen=True)
class Model:
    """A public model."""

    model: Floats


FORMS: dict[str, Any] = {
    "array": np.copy,
    "fortran": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "float32": lambda X: X.astype(np.float32),
    "objects": lambda X: X.astype(object),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "arrow": lambda X: pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])}),
    "dask": lambda X: da.from_array(X, chunks=(7, 2)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_no_form_of_a_fit_moves_a_message_further_than_its_event_says(
    form: str, relation: Adjacency
) -> None:
    """Tried: ten forms of rows, labels of two classes as texts and of three, weights, rows beyond
    the bound; a record that turns round, or leaves."""
    rng, shares = np.random.default_rng(6), list[float]()
    for kind in ("two", "three", "weights"):
        count, place = 24, int(rng.integers(24))
        rows = rng.normal(size=(count, 3)) * rng.choice([0.3, 5.0])
        labels: Any = np.array(["no", "yes"])[np.arange(count) % 2]
        if kind == "three":
            labels = np.arange(count) % 3
        weights = rng.uniform(0, 2, count) if kind == "weights" else None
        party_of, kept = np.arange(count) % 2, np.ones(count, dtype=bool)
        other, changed = rows.copy(), labels.copy()
        if relation is REPLACE:
            other[place], changed[place] = -rows[place], labels[place - 1]
        else:
            kept[place] = False
        found = list[tuple[list[Floats], Any]]()
        for x, y, some in ((rows, labels, kept | True), (other, changed, kept)):
            heard = list[Floats]()
            stated: dict[str, Any] = {
                "epsilon": 1e7,
                "delta": 1e-5,
                "adjacency": relation,
                "n_parties": 2,
                "clip": True,
                "random_state": 5,
            }
            stated |= {"n_min": 5} if relation is ADD else {}
            classes = [0, 1, 2] if kind == "three" else ["no", "yes"]
            made = PrivateAdmmClassifier(**stated, classes=classes, weight_bound=1.5)
            made.set_params(algorithm=lambda noise, shape, heard=heard: Told(noise, heard))
            given = {} if weights is None else {"sample_weight": weights[some]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made.fit(FORMS[form](x[some]), y[some], party_of=party_of[some], **given)
            found.append((heard[-3:], made.certificate_.events))
        (first, events), (second, same) = found
        assert events == same
        for one, two, event in zip(first, second, events, strict=True):
            shares.append(share_moved(one, two, event.mechanism.sensitivity.root))
    assert 0.2 < max(shares) <= 1 + 1e-9


SCHEMA = """
row_bound = 1.0
on_outside = "clip"
columns = [
    {kind = "numeric", name = "age", lower = 18, upper = 90},
    {kind = "categorical", name = "town", categories = ["n", "s"]},
    {kind = "label", name = "state", positive = ["h"], negative = ["l"]},
]
"""


def a_table(folder: Path, replaced: int | None = None) -> None:
    """Write a table of 120 records and its schema, perhaps with one record replaced."""
    draw = random.Random(5)
    lines = [f"{draw.randint(18, 90)},{draw.choice('ns')},{draw.choice('hl')}" for _ in range(120)]
    if replaced is not None:
        lines[replaced] = "90,s,h" if lines[replaced] != "90,s,h" else "18,n,l"
    folder.mkdir()
    (folder / "t.csv").write_text("\n".join(["age,town,state", *lines]) + "\n")
    (folder / "s.toml").write_text(SCHEMA)


def run_file(folder: Path, **solver: Any) -> Path:
    """Write a run file beside the table, and return it."""
    stated = {"algorithm": '"dp-admm"', "rounds": 2, **solver}
    (folder / "run.toml").write_text(
        '[data]\nfiles = ["t.csv"]\nschema = "s.toml"\ntrain_records = 90\nparties = 2\n'
        '[privacy]\nadjacency = "replace-one"\nepsilon = 2.0\ndelta = 1e-4\n[solver]\n'
        + "".join(f"{key} = {value}\n" for key, value in stated.items())
        + '[noise]\nsampler = "philox"\nseed = 77\n'
    )
    return folder / "run.toml"


def test_what_is_public_of_a_run_does_not_depend_on_held_out_records(tmp_path: Path) -> None:
    """Tried: the same noise, one held-out record replaced, with baselines and the attack: model and
    public page are the same but for times and the ledger's head, and the holder's report is not."""
    order = np.argsort(np.random.PCG64(0).random_raw(120), kind="stable")
    pages, models, reports = list[str](), list[bytes](), list[str]()
    for name, replaced in (("one", None), ("two", int(order[95]))):
        a_table(tmp_path / name, replaced)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = dp.run(
                run_file(tmp_path / name), RunOptions(out=tmp_path / name / "out", crosscheck=False)
            )
        page = (found.folder / "public.html").read_text()
        page = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.+]*|[0-9a-f]{64}", "", page)
        pages.append(page)
        models.append((found.folder / "model.json").read_bytes())
        reports.append(re.sub(r"\d{4}-\d\d-\d\dT[0-9:.+]*", "", to_json_text(found.folder)))
    assert pages[0] == pages[1]
    assert models[0] == models[1]
    assert reports[0] != reports[1]


def to_json_text(folder: Path) -> str:
    """Return the holder's report."""
    return (folder / "report.json").read_text()


class Failing(ExactSampler):
    """A source of words that fails at its first noise."""

    def __init__(self, kind: type[Exception]) -> None:
        self.kind = kind

    @property
    def provenance(self) -> Provenance:
        """A source of one's own."""
        return Provenance("failing", None)

    def words(self, count: int) -> Any:
        """Show words where they are asked for as a trial, and fail."""
        if count == 512:
            return SystemSampler().words(count)
        raise self.kind("no words")


class Full(EventList):
    """A list of events that takes no event, or no message."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def reserve(self, events: Any, provenance: Provenance) -> int:
        """Fail, or take note."""
        if self.where == "reserve":
            raise RuntimeError("full")
        return super().reserve(events, provenance)

    def commit(self, token: int, message: Any = None, /) -> None:
        """Fail."""
        raise RuntimeError("full")


def numbers_of(held: object) -> list[float]:
    """Return the numbers in a variable of a frame."""
    if isinstance(held, list | tuple):
        return [number for each in held for number in numbers_of(each)]
    if isinstance(held, np.ndarray | float) and np.asarray(held).dtype.kind == "f":
        return np.asarray(held, dtype=np.float64).ravel().tolist()
    return []


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_no_frame_of_a_release_that_fails_names_a_private_number(relation: Adjacency) -> None:
    """Tried: seven kinds of values; samplers that fail in three ways, sinks that fail before and
    after, a budget that is too small: no variable of the program's frames has a record's number."""
    rows = np.random.default_rng(8).uniform(-0.5, 0.5, (30, 3))
    bounded: dict[str, Any] = {"adjacency": relation} | ({"n_min": 5} if relation is ADD else {})
    data = PrivateDataset(rows, np.where(rows[:, 0] > 0, 1.0, -1.0), row_bound=1.0, **bounded)
    table = PrivateTable({"x": rows[:, 0]}, {"x": BoundedColumn(-0.5, 0.5)}, **bounded)
    point = np.array([0.37, -1.21, 0.77])
    values: list[Callable[[], Sensitive]] = [
        lambda: data.mean_gradient(Logistic(), point),
        lambda: data.sum_gradient(Logistic(), point, radius=0.3),
        lambda: data.second_moment(),
        lambda: CentredRows(data, point / 10, radius=0.5).mean_squares(),
        lambda: linear_map(np.ones((2, 3)), data.mean_gradient(Logistic(), point)),
        lambda: table.sum("x"),
        lambda: table.mean("x"),
    ]
    poor = MemoryLedger()
    poor.set_budget(Budget(ApproxDp(1e-3, 1e-5), adjacency=relation))
    failed = 0
    for made in values:
        secret = {*rows.ravel().tolist(), *said(made(), noise_multiplier=1e-8)[0].ravel().tolist()}
        curators = [
            *(SamplingCurator(EventList(), Failing(k)) for k in (ValueError, MemoryError, OSError)),
            *(SamplingCurator(Full(where), SystemSampler()) for where in ("reserve", "commit")),
            SamplingCurator(poor.run(f"r{failed}", configuration_hash="h"), SystemSampler()),
        ]
        for curator in curators:
            try:
                curator.release(made(), round=1, release="x", noise_multiplier=2.0)
            except Exception as error:
                failed += 1
                frame = error.__traceback__.tb_next if error.__traceback__ else None
                while frame is not None:
                    for held in frame.tb_frame.f_locals.values():
                        near = [
                            n for n in numbers_of(held) if min(abs(n - s) for s in secret) < 1e-7
                        ]
                        assert all(number in (0.0, 0.5, -0.5) for number in near)
                    frame = frame.tb_next
    assert failed == len(values) * 6


@pytest.mark.parametrize("relation", [REPLACE, ZERO, ADD])
def test_pure_statistics_of_a_person_cost_what_their_scales_add_up_to(
    relation: Adjacency, tmp_path: Path
) -> None:
    """Tried: sums, counts, histograms and quantiles of unlike weights, of persons of three records:
    three times the sum of sensitivity over scale is the epsilon that was asked for, or below."""
    a_table(tmp_path / "t")
    asked = tmp_path / "t" / "asked.toml"
    kinds = [
        'kind = "sum"\ncolumn = "age"\nweight = 3.0',
        'kind = "count"',
        'kind = "histogram"\ncolumn = "town"\nweight = 1e-3',
        'kind = "quantile"\ncolumn = "age"\nquantile = 0.3\ncandidates = 50',
        'kind = "histogram"\ncolumn = "age"\nedges = [30, 50.5]',
    ]
    asked.write_text(
        f'[data]\nfiles = ["t.csv"]\nschema = "s.toml"\nrecords = 120\nwhole = ["age"]\n[privacy]\n'
        f'adjacency = "{relation.value}"\nepsilon = 1.5\nunit = "person"\nrecords_per_unit = 3\n'
        + "".join(f"[[statistics]]\n{kind}\n" for kind in kinds)
    )
    found = release_statistics(asked, out=tmp_path / "out")
    steps: list[Any] = [event.mechanism for event in found.plan.events]
    total = 3 * sum(step.sensitivity.root / Fraction(step.scale) for step in steps)
    assert len(steps) == (5 if relation is ADD else 4)
    assert Fraction(149, 100) < total <= Fraction(3, 2)


RECORDS = [
    "-0.3,abc",
    "+5,abc",
    "−5,a",
    "NaN,a",
    "$30,a",
    "(5),a",
    "1st,a",
    "½,a",
    '"-0.3","a"',
    "true,a",
]
RECORDS += [
    "NA,a",
    "a,?",
    "a,'5'",
    "a;3",
    "a\t3",
    "male|-3",
    "<5,a",
    ">50K,a",
    "-,a",
    "a,b,",
    "a,a",
]


@pytest.mark.parametrize("line", RECORDS)
def test_a_first_line_that_may_be_a_record_is_no_line_of_names(line: str, tmp_path: Path) -> None:
    """Tried: numbers, dates, amounts, missing values and truth values, other delimiters."""
    (tmp_path / "t.csv").write_text(f"{line}\n1,2\n", encoding="utf-8")
    with pytest.raises(SchemaError) as refused:
        column_names(tmp_path / "t.csv")
    assert line not in str(refused.value)


def test_a_run_goes_on_after_a_ledger_that_could_not_grow(tmp_path: Path) -> None:
    """Tried: files may not grow beyond 60 kB: nothing is released or spent; the same folder goes on
    when they may, and pays once."""
    a_table(tmp_path / "t")
    run, out = run_file(tmp_path / "t", rounds=40), tmp_path / "out"
    quick: dict[str, Any] = {"attack": False, "baselines": False, "crosscheck": False}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
        try:
            with pytest.raises(LedgerError):
                dp.run(run, RunOptions(out=out, **quick))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        with SqliteLedger(out / "ledger.sqlite", read_only=True) as ledger:
            assert not ledger.events()
        dp.run(run, RunOptions(resume=out, **quick))
    with SqliteLedger(out / "ledger.sqlite", read_only=True) as ledger:
        assert len(list(ledger.reservations())) == 1
        assert len(ledger.events()) == len(ledger.messages()) == 40
