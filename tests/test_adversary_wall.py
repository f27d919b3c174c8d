"""Laws that attacks from outside on the wall, the calculus and the ledger were tried against."""

from __future__ import annotations

import copy
import decimal
import io
import json
import math
import pickle
import stat
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, special
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpledger as dp
from dpledger.accounting.guarantees import deltas_at, guarantee
from dpledger.accounting.ledger import LedgerError, MemoryLedger, SqliteLedger
from dpledger.audits import AuditDataset
from dpledger.audits.curators import RecordingCurator
from dpledger.audits.datasets import VerticalAuditDataset
from dpledger.data.errors import BadValue
from dpledger.data.strict import ConfigurationError
from dpledger.federation.flower import client_app
from dpledger.federation.prepaid import OtherMessage, PrepaidRun
from dpledger.mechanisms import (
    Adjacency,
    BoundedColumn,
    Curator,
    DataShape,
    EventList,
    ExponentialMechanism,
    FixedBatch,
    InvalidParameter,
    LaplaceNoise,
    LocalProblem,
    Norm,
    PlanningCurator,
    Poisson,
    PrivateDataset,
    PrivateTable,
    RealLabels,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    Sensitivity,
    SystemSampler,
    VerticalDataset,
    concatenate,
    linear_map,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.errors import UnprotectedSerialisation
from dpledger.mechanisms.inside import party_of, private_value
from dpledger.mechanisms.labels import SIGNS, ClassLabels, WeightedLabels
from dpledger.mechanisms.record_sets import RecordSets
from dpledger.mechanisms.sensitivity import computed
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.runs.federation_files import read_federation
from dpledger.solvers import Logistic
from dpledger.solvers.losses import ClippedLogistic, Multinomial, SmoothedQuantile

Floats = NDArray[np.float64]


def test_a_table_without_a_lower_bound_keeps_its_number_of_records() -> None:
    shapes: list[str] = []
    for n in (5, 6):
        try:
            table = PrivateTable(
                {"age": np.linspace(20.0, 80.0, n)},
                {"age": BoundedColumn(18, 90)},
                adjacency="add-remove-one",
                n_min=0,
            )
        except InvalidParameter:
            shapes.append("refused")
        else:
            shapes.append(repr(table))
    assert shapes[0] == shapes[1]


@dataclass(frozen=True)
class Steep:
    """Slopes near the largest double, cut to a small bound."""

    outputs = 2
    label_domain = ClassLabels(2)
    derivative_bound = Fraction(4.3e-16)
    curvature_bound = None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        return np.asarray(scores[..., 0])

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        found = np.zeros(scores.shape)
        found[..., 0] = np.where(labels > 0, 1.7e308, -1.7e308)
        return found


def test_slopes_of_several_outputs_are_cut_to_their_bound_however_long() -> None:
    moved = []
    for labels in ([0.0, 0.0], [1.0, 0.0]):
        data = AuditDataset(
            np.eye(2)[[0, 0]],
            np.array(labels),
            adjacency="replace-one",
            row_bound=1.0,
            label_domain=ClassLabels(2),
        )
        gradient = data.mean_gradient(Steep(), np.zeros(4))
        moved.append(private_value(gradient))
    first, second = moved
    assert first is not None
    assert second is not None
    assert np.linalg.norm(first - second) <= gradient.sensitivity.value * (1 + 1e-9)


def test_who_was_drawn_is_not_pickled() -> None:
    data = PrivateDataset(np.eye(12), np.ones(12), adjacency="zero-out-one", row_bound=1.0)
    curator = SamplingCurator(EventList(), SystemSampler())
    drawn = curator.sample(data, Poisson(0.25)).sum_gradient(Logistic(), np.zeros(12))
    part = drawn.sampled_part
    assert part is not None
    for hidden in (part.draw, part):
        with pytest.raises(UnprotectedSerialisation):
            pickle.dumps(hidden)


def test_no_public_function_compares_an_analysts_handle_with_a_guess() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3))
    rows /= 1.01 * np.linalg.norm(rows, axis=1, keepdims=True)

    def handle(label: float) -> PrivateDataset:
        labels = np.ones(40)
        labels[7] = label
        return PrivateDataset(rows, labels, adjacency="replace-one", row_bound=1.0)

    private, answers = handle(-1.0), []
    for guess in (-1.0, 1.0):
        seen = RecordSets(3)
        try:
            seen.add_rows(("given",), private, private, private.shape)  # type: ignore[arg-type]
            seen.add_rows(("guess",), handle(guess), handle(guess), private.shape)  # type: ignore[arg-type]
        except Exception:
            answers.append("refused")
        else:
            answers.append("accepted")
    assert answers[0] == answers[1]


def test_public_bounds_on_counts_cannot_be_rewritten_after_the_handle_was_made() -> None:
    counts = [5, 5]
    try:
        data = PrivateDataset(
            np.eye(2)[np.arange(10) % 2],
            np.ones(10),
            adjacency="replace-one",
            row_bound=1.0,
            parties=("a", "b"),
            party_of=np.arange(10) % 2,
            party_counts=counts,  # type: ignore[arg-type]
        )
    except InvalidParameter:
        return
    before = data.mean_gradient(Logistic(), np.zeros(2), weights=np.ones(2)).sensitivity
    counts[:] = [10**6, 10**6]
    after = data.mean_gradient(Logistic(), np.zeros(2), weights=np.ones(2)).sensitivity
    assert before == after


def test_a_ledger_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        ledger.run("run", configuration_hash="hash")
        modes = [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()]
    assert modes
    assert all(mode & 0o077 == 0 for mode in modes)


def test_no_handle_becomes_an_auditors() -> None:
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)
    with pytest.raises((TypeError, AttributeError)):
        data.__class__ = AuditDataset


def test_a_federation_keeps_the_promise_to_a_person_or_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(
        "row_bound = 1.0\ncolumns = [\n"
        '{kind = "numeric", name = "age", lower = 0.0, upper = 100.0},\n'
        '{kind = "label", name = "back", positive = ["yes"], negative = ["no"]},\n]\n'
    )
    (tmp_path / "run.toml").write_text(
        '[federation]\nparties = ["a", "b"]\nrecords = [120, 100]\nschema = "schema.toml"\n'
        '[privacy]\nadjacency = "replace-one"\nepsilon = 1.0\ndelta = 1e-5\n'
        'unit = "person"\nrecords_per_unit = 3\n'
        '[solver]\nalgorithm = "consensus-admm"\nrounds = 2\n'
    )
    try:
        agreed, _ = read_federation(tmp_path / "run.toml").plan()
    except (ConfigurationError, InvalidParameter):
        return
    assert guarantee(agreed.events, delta=1e-5, group=3).epsilon.upper_float <= 1.0


def test_no_error_names_a_seed_of_noise() -> None:
    seed, ledger = 987654321987, MemoryLedger()
    run = ledger.run("run", configuration_hash="hash")
    SamplingCurator(run, SeededSampler(seed)).release(
        some_value(), noise_std=1.0, round=1, release="x"
    )
    with pytest.raises(LedgerError) as raised:
        SamplingCurator(run, SeededSampler(seed)).release(
            some_value(), noise_std=1.0, round=2, release="x"
        )
    assert str(seed) not in str(raised.value)


def test_a_pipeline_shows_no_seed_of_its_estimator() -> None:
    model = PrivateAdmmClassifier(
        epsilon=1.0, delta=1e-5, adjacency="replace-one", random_state=987654321
    )
    assert "987654321" not in repr(model)
    assert "987654321" not in repr(make_pipeline(FunctionTransformer(), model))


def test_a_message_that_may_not_leave_is_nowhere_to_be_read() -> None:
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)

    def ask(curator: Curator, handle: PrivateDataset) -> Floats:
        value = handle.mean_gradient(Logistic(), np.zeros(3))
        return curator.release(value, noise_multiplier=30.0, round=1, release="gradient")

    planner, sampler = PlanningCurator(), SystemSampler()
    ask(planner, PrivateDataset.planned(data.shape))
    run = MemoryLedger().run("run", configuration_hash="hash", plan=planner.events)
    sent = ask(SamplingCurator(PrepaidRun(run, planner.events, sampler.provenance), sampler), data)
    again = PrepaidRun(run, planner.events, sampler.provenance, resumed=True)
    curator = SamplingCurator(again, sampler, record=True)
    with pytest.raises((OtherMessage, InvalidParameter)):
        ask(curator, data)
    assert all(np.array_equal(message.content, sent) for message in curator.transcript)


def test_nothing_that_holds_records_is_pickled_whatever_handles_pickle_as() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 2)) / 10.0
    data = PrivateDataset(rows, np.ones(6), adjacency="replace-one", row_bound=1.0)
    centred = CentredRows(data, np.zeros(2), radius=0.5)
    centred.mean_gradient(Logistic(), np.zeros(2))
    written = io.BytesIO()
    pickler = pickle.Pickler(written)
    pickler.dispatch_table = {PrivateDataset: lambda _: (str, ("",))}
    with suppress(UnprotectedSerialisation):
        pickler.dump(centred)
    assert rows.tobytes() not in written.getvalue()


@pytest.mark.parametrize("moved_cell", [10.0, 45.0])
def test_no_setting_of_decimal_makes_an_error_of_private_numbers(moved_cell: float) -> None:
    cells = np.array([moved_cell, *[10.0] * 9, *[80.0] * 10])
    table = PrivateTable(
        {"age": cells}, {"age": BoundedColumn(0, 100, 1.0)}, adjacency="replace-one"
    )
    curator = SamplingCurator(EventList(), SystemSampler())
    with decimal.localcontext() as context:
        context.traps[decimal.Inexact] = True
        curator.release(
            table.quantile_costs("age", 0.5, [30.0, 60.0]),
            mechanism=ExponentialMechanism(0.01),
            round=1,
            release="median",
        )


def test_a_reservation_pays_for_one_message_of_each_event() -> None:
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)

    def ask(curator: Curator, handle: PrivateDataset) -> Floats:
        value = handle.mean_gradient(Logistic(), np.zeros(3))
        return curator.release(value, noise_multiplier=30.0, round=1, release="gradient")

    planner, sampler = PlanningCurator(), SystemSampler()
    ask(planner, PrivateDataset.planned(data.shape))
    run = MemoryLedger().run("run", configuration_hash="hash", plan=planner.events)
    run.commit(run.reserve(planner.events, sampler.provenance))
    sent: list[Floats] = []
    for _ in range(2):
        with suppress(OtherMessage, InvalidParameter):
            paid = PrepaidRun(run, planner.events, sampler.provenance, resumed=True)
            sent.append(ask(SamplingCurator(paid, sampler), data))
    assert len(sent) <= 1


def test_what_a_party_tells_flower_of_its_failure_names_no_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class App:
        """Flower's ClientApp, as far as it is used."""

        def __init__(self) -> None:
            self.told: Callable[[Any, Any], Any] | None = None

        def train(self) -> Callable[[Any], Any]:
            def keep(function: Callable[[Any, Any], Any]) -> Any:
                self.told = function
                return function

            return keep

    whatever = SimpleNamespace(ConfigRecord=dict, RecordDict=dict, Message=lambda *_, **__: None)
    monkeypatch.setitem(sys.modules, "flwr", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "flwr.app", whatever)
    monkeypatch.setitem(sys.modules, "flwr.clientapp", SimpleNamespace(ClientApp=App))

    def part(_: Any) -> object:
        raise BadValue("north.csv, line 5", "ward", "Jane Doe", "among 'surgery', 'medicine'")

    app = client_app(lambda _: part)
    message, sent = SimpleNamespace(content={"dpledger": {"dpledger": b""}}), ""
    try:
        app.told(message, None)
    except Exception as error:
        sent = f"{type(error)}:<'{error}'>"  # what Flower makes of it, and sends
    assert "Jane Doe" not in sent


# --- what held -----------------------------------------------------------------------------------


def moved(first: Sensitive, second: Sensitive) -> Fraction:
    """Return the squared change between two values, in the norm of the first, exactly."""
    here, there = private_value(first), private_value(second)
    assert here is not None
    assert there is not None
    gaps = [
        Fraction(float(a)) - Fraction(float(b))
        for a, b in zip(here.ravel(), there.ravel(), strict=True)
    ]
    if first.sensitivity.norm is Norm.L1:
        return Fraction(sum(abs(gap) for gap in gaps) ** 2)
    return Fraction(sum(gap**2 for gap in gaps))


def allowed(value: Sensitive, bound: Sensitivity | None = None) -> Fraction:
    """Return the square of what a value may move by, as computed."""
    bound = value.sensitivity if bound is None else bound
    priced = computed(bound, value.rounding.error, value.rows, value.rounding.derivation)
    return priced.squared


def answered(program: Callable[[Any], Sensitive], data: Any) -> Sensitive | str:
    with np.errstate(all="ignore"):
        try:
            return program(data)
        except InvalidParameter as error:
            return str(error)


def records(rng: np.random.Generator, adjacency: str, classes: int) -> tuple[Any, Any, int]:
    """Return two neighbours of several parties, and the index of the differing record."""
    parties, width = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    count = parties * int(rng.integers(3, 7))
    bound = float(rng.choice([1.0, 10.0 ** rng.uniform(-60, 60)]))
    rows = rng.normal(size=(count, width)) * bound * 10.0 ** rng.uniform(-3, 1, size=(count, 1))
    rows[rng.random(count) < 0.1] = 1e300
    rows[rng.random(count) < 0.1] = 1e-310
    domain: Any = ClassLabels(classes) if classes else RealLabels(1.0)
    labels = (
        rng.integers(0, classes, size=count).astype(float)
        if classes
        else rng.choice([-1.0, 1.0, -0.0, 5e-324, 0.3], size=count)
    )
    holder, index = np.arange(count) % parties, int(rng.integers(count))
    others, changed, other_holder = rows.copy(), labels.copy(), holder
    if adjacency == "add-remove-one":
        others, changed, other_holder = (
            np.delete(array, index, axis=0) for array in (rows, labels, holder)
        )
    else:
        others[index] = 0.0 if adjacency == "zero-out-one" else -rows[index]
        changed[index] = labels[0]
    least = int(np.bincount(other_holder, minlength=parties).min())
    layout: Any = sparse.csr_array if rng.random() < 0.4 else np.array

    def made(table: Floats, marks: Floats, of: Any) -> AuditDataset:
        return AuditDataset(
            layout(table),
            marks,
            adjacency=adjacency,
            row_bound=bound,
            parties=tuple("abc"[:parties]),
            party_of=of,
            label_domain=domain,
            n_min=least if adjacency == "add-remove-one" else None,
        )

    return made(rows, labels, holder), made(others, changed, other_holder), index


def program_of(rng: np.random.Generator, shape: DataShape, loss: Any) -> Callable[[Any], Sensitive]:
    """Return a random program of public operations."""
    width, bound = shape.parameters(loss), shape.row_bound
    point = rng.normal(size=(len(shape.parties), width)) * 10.0 ** rng.uniform(-3, 3) / bound
    kind, radius = int(rng.integers(6)), float(bound * rng.choice([1 / 64, 0.4, 3.0]))
    weights = rng.normal(size=len(shape.parties)) if rng.random() < 0.3 else None
    edges = np.unique(rng.choice([-1.0, -0.0, 0.5, bound, 1e300, 5e-324], size=3)).tolist()
    centre = np.full(shape.features, 0.3 * bound / shape.features)
    ops = [(int(rng.integers(6)), int(rng.integers(2**31))) for _ in range(rng.integers(0, 5))]

    def start(data: Any) -> Sensitive:
        if kind == 0:
            return cast("Sensitive", data.mean_gradient(loss, point, weights=weights))
        if kind == 1:
            return cast("Sensitive", data.sum_gradient(loss, point, radius=radius))
        if kind == 2:
            return cast("Sensitive", data.second_moment())
        if kind == 3:
            norm = Norm.L1 if len(edges) % 2 else Norm.L2
            return cast("Sensitive", data.histogram(edges, column=0, norm=norm))
        if kind == 4:
            return CentredRows(data, centre, radius=radius).mean_squares(weights=weights)
        return cast(
            "Sensitive",
            data.strongly_convex_argmin(
                loss,
                modulus=max(1.0, bound) ** 2,
                linear=point * bound,
                tolerance=1e-4 * bound,
                start=np.zeros(width),
            ),
        )

    def run(data: Any) -> Sensitive:
        first = value = start(data)
        for op, seed in ops:
            own = np.random.default_rng(seed)
            size = value.sensitivity.value
            if op == 0:
                value = value * float(own.choice([-1.0, 0.1, 3.0, 0.0, 1e20, 1e-20]))
            elif op == 1:
                value = own.normal(size=(1, value.dimension)) * size * 1e6 - value
            elif op == 2:
                spread = 10.0 ** own.integers(-60, 4, size=(2, value.dimension))
                value = linear_map(own.normal(size=(2, value.dimension)) * spread, value)
            elif op == 3:
                value = value.clipped(size * float(own.choice([0.1, 1.0, 1e3])) or 1.0)
            elif op == 4:
                value = concatenate(value, first)
            else:
                value = value / 7.0 + value
        return value

    return run


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out-one", "add-remove-one"])
@pytest.mark.parametrize("classes", [0, 3])
def test_no_program_moves_by_more_than_it_states(adjacency: str, classes: int) -> None:
    loss: Any = Multinomial(classes) if classes else SmoothedQuantile(0.3, 0.02, 1.0)
    done = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, classes])
        here, there, _ = records(rng, adjacency, classes)
        run = program_of(rng, here.shape, loss)
        first, second = answered(run, here), answered(run, there)
        if isinstance(first, str) or isinstance(second, str):
            assert first == second, seed
            continue
        assert first.sensitivity == second.sensitivity, seed
        if first.sensitivity.squared == 0:
            assert moved(first, second) == 0, seed
        else:
            assert moved(first, second) <= allowed(first), seed
        done += 1
    assert done > 30


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out-one"])
def test_who_is_not_drawn_moves_nothing_of_a_sampled_sum(adjacency: str) -> None:
    loss = Multinomial(3)
    scheme = FixedBatch(2) if adjacency == "replace-one" else Poisson(0.4)
    seen = {True: 0, False: 0}
    for seed in range(80):
        rng = np.random.default_rng(seed)
        here, there, index = records(rng, adjacency, 3)
        shape = here.shape
        width = shape.parameters(loss)
        point = rng.normal(size=(len(shape.parties), width)) / shape.row_bound
        matrix, beside = rng.normal(size=(2, width)), bool(rng.random() < 0.5)
        values, drawn = [], False
        for data in (here, there):
            curator = RecordingCurator(EventList(), SeededSampler(seed))
            value = linear_map(matrix, curator.sample(data, scheme).sum_gradient(loss, point))
            if beside:
                value = value - linear_map(matrix, data.mean_gradient(loss, 2.0 * point))
            values.append(value)
            numbers = curator.uniforms[0]
            if isinstance(scheme, Poisson):
                drawn = bool(numbers[index] <= scheme.sampling_rate)
            else:
                own = party_of(data) == party_of(data)[index]
                drawn = bool(np.count_nonzero(numbers[own] < numbers[index]) < scheme.batch)
        first, second = values
        part = first.sampled_part
        assert part is not None
        seen[drawn] += 1
        if drawn:
            assert moved(first, second) <= allowed(first)
        elif part.constant is None:
            assert moved(first, second) == 0
        else:
            assert moved(first, second) <= allowed(first, part.constant)
    assert min(seen.values()) > 10


def test_no_answer_of_columns_moves_by_more_than_it_states() -> None:
    done = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        count, width = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        bound = float(10.0 ** rng.uniform(-20, 20))
        rows = rng.normal(size=(count, width)) * bound * rng.choice([1e-3, 1.0, 1e200])
        here = VerticalAuditDataset(
            [rows],
            rng.choice([-1.0, 1.0], size=count),
            adjacency=Adjacency.REPLACE_ONE,
            parties=("a",),
            public_labels=False,
            row_bound=bound,
        )
        there = here.with_record(0, features=[-rows[0]])
        kind, target = int(rng.integers(3)), rng.normal(size=count)
        problem = LocalProblem(
            pull=target,
            penalty=float(10.0 ** rng.uniform(-3, 3)) / bound**2,
            modulus=float(10.0 ** rng.uniform(-3, 3)),
            slope_bound=1.0,
            radius=1.0 / bound,
            tolerance=1e-6 * bound,
        )
        tries: list[Callable[[Any], Sensitive]] = [
            lambda data: data.predictions("a", problem),  # noqa: B023
            lambda data: data.minimiser("a", problem),  # noqa: B023
            lambda data: data.dual(Logistic(), target, penalty=0.3, tolerance=1e-9),  # noqa: B023
        ]
        first, second = answered(tries[kind], here), answered(tries[kind], there)
        if isinstance(first, str) or isinstance(second, str):
            assert first == second
            continue
        assert moved(first, second) <= allowed(first), seed
        done += 1
    assert done > 70


def test_no_statistic_of_a_table_moves_by_more_than_it_states() -> None:
    """What leaves: two messages with equal noise."""
    for seed in range(250):
        rng = np.random.default_rng(seed)
        adjacency = str(rng.choice(["replace-one", "zero-out-one", "add-remove-one"]))
        low, high = np.sort(rng.normal(size=2) * 10.0 ** rng.uniform(-20, 20)).tolist()
        columns = {"x": BoundedColumn(low, high), "y": BoundedColumn(-1.0, 2.0, 0.5)}
        ends = [low, high, low - 1e300, 1e308, np.nextafter(high, np.inf), -0.0, 5e-324]
        cells = {"x": rng.choice(ends, size=9), "y": rng.choice([-9.0, 0.3, 9.0], size=9)}
        other = {name: held.copy() for name, held in cells.items()}
        for name, column in columns.items():
            if adjacency == "add-remove-one":
                other[name] = np.append(other[name], rng.choice([column.lower, column.upper]))
            else:
                null = adjacency == "zero-out-one"
                other[name][3] = float(column.null) if null else rng.choice([-1e308, 1e308])
        least = 9 if adjacency == "add-remove-one" else None
        tables = [
            PrivateTable(held, columns, adjacency=adjacency, n_min=least) for held in (cells, other)
        ]
        kind = int(rng.integers(5))
        norm = Norm.L1 if kind < 2 and rng.random() < 0.5 else Norm.L2
        asked: list[Callable[[PrivateTable], Sensitive]] = [
            lambda table: table.sum("x", norm=norm),  # noqa: B023
            lambda table: table.histogram("y", [-0.5, 0.0, 1.5], norm=norm),  # noqa: B023
            lambda table: table.mean("x"),
            lambda table: table.second_moments(["x", "y"]),
            lambda table: table.quantile_costs("y", 0.3, [-1.0, 0.0, 1.0]),
        ]
        made = [answered(asked[kind], table) for table in tables]
        values = [value for value in made if not isinstance(value, str)]
        if len(values) < 2:
            assert made[0] == made[1]
            continue
        bound = values[0].sensitivity
        assert values[0].sensitivity == values[1].sensitivity
        scale = max(bound.value * 2.0**-10, float(values[0].rounding.magnitude) * 2.0**-41)
        messages = []
        for value in values:
            curator = SamplingCurator(EventList(), SeededSampler(3))
            laplace = bound.norm is Norm.L1
            messages.append(
                curator.release(value, mechanism=LaplaceNoise(scale), round=1, release="x")
                if laplace
                else curator.release(value, noise_std=scale, round=1, release="x")
            )
        gap = messages[0] - messages[1]
        change = np.abs(gap).sum() if bound.norm is Norm.L1 else np.linalg.norm(gap)
        assert change <= bound.value * (1 + 2e-3), (seed, kind)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out-one", "add-remove-one"])
@pytest.mark.parametrize("factor", [-0.5, 0.1])
def test_a_sampled_sum_beside_a_whole_one_costs_what_any_records_tell(
    adjacency: str, factor: float
) -> None:
    """One record in [-1, 1] beside a public rest: divergences by integration."""
    count, rate, std = 20, 0.25, 1.5
    shape = DataShape(("a",), count, 1, 1.0, Adjacency(adjacency))
    data, curator = PrivateDataset.planned(shape), PlanningCurator()
    scheme = FixedBatch(5) if adjacency == "replace-one" else Poisson(rate)
    drawn = curator.sample(data, scheme).sum_gradient(Logistic(), np.zeros(1))
    whole = factor * data.sum_gradient(Logistic(), np.zeros(1))
    curator.release(drawn + whole, noise_std=std, round=1, release="x")
    epsilons = np.array([0.1, 0.5, 1.0, 2.0])
    stated = deltas_at(curator.events, epsilons=epsilons).delta
    line = np.linspace(-20.0, 20.0, 20001)

    def density(out: float, inside: float) -> Floats:
        both = [np.exp(-(((line - m) / std) ** 2) / 2) for m in (out, inside)]
        return np.asarray(((1 - rate) * both[0] + rate * both[1]) / (std * np.sqrt(2 * np.pi)))

    values = np.linspace(-1.0, 1.0, 5)
    pairs = (
        [
            (u, v, u + factor * (w - v), w + factor * (w - v))
            for u, v, w in product(values, repeat=3)
        ]
        if adjacency == "replace-one"
        else [(0.0, 0.0, factor * v, v + factor * v) for v in values]
    )
    for a, b, c, d in pairs:
        first, second = density(a, b), density(c, d)
        for epsilon, delta in zip(epsilons, stated, strict=True):
            for p, q in ((first, second), (second, first)):
                excess = np.maximum(p - np.exp(epsilon) * q, 0.0).sum() * (line[1] - line[0])
                assert excess <= delta * (1 + 1e-6) + 1e-9


def some_value() -> Sensitive:
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)
    return data.sum_gradient(Logistic(), np.zeros(3))


WAYS: dict[str, Callable[[Any], object]] = {
    "in-place sum": lambda s: np.add(np.ones((1, 3)), s, out=np.zeros((1, 3))),
    "sparse product": lambda s: sparse.eye(3) @ s,
    "dot": lambda s: np.eye(3).dot(cast("Any", s)),
    "cells": lambda s: np.zeros((1, 3)).__setitem__(0, s),
    "an object array": lambda s: np.array([s], dtype=object),
    "fsum": lambda s: math.fsum([cast("Any", s)]),
    "percent": lambda s: "%f" % s,  # noqa: UP031
    "max": lambda s: max([s, s + 1.0]),
    "where": lambda s: np.where(np.ones((1, 3)) > 0, cast("Any", s), 0.0),
    "random": lambda s: np.random.default_rng(0).normal(cast("Any", s)),
    "a range": lambda s: range(cast("Any", s)),
    "msgpack": msgspec.msgpack.encode,
    "json": json.dumps,
    "asdict": lambda s: asdict(cast("Any", s)),
    "vars": vars,
    "reduce": lambda s: np.add.reduce(cast("Any", s)),
    "a masked array": lambda s: np.ma.array(cast("Any", s)),
    "a comparison by numpy": lambda s: np.float64(2) < cast("Any", s),
    "array2string": lambda s: np.array2string(cast("Any", s)),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_private_value_goes_no_way_round_its_curator(way: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        WAYS[way](some_value())


def test_no_public_parameter_takes_a_private_value() -> None:
    private: Any = some_value()
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)
    curator = SamplingCurator(EventList(), SystemSampler())
    tries: list[Callable[[], object]] = [
        lambda: data.sum_gradient(Logistic(), private),
        lambda: data.sum_gradient(Logistic(), np.zeros(3), radius=private),
        lambda: data.mean_gradient(Logistic(), np.zeros(3), weights=private),
        lambda: data.histogram(private),
        lambda: data.histogram([private]),
        lambda: linear_map(private, private),
        lambda: private.clipped(private),
        lambda: private * private,
        lambda: curator.release(private, noise_std=private, round=1, release="x"),
        lambda: curator.release(private, noise_multiplier=private, round=1, release="x"),
        lambda: curator.release(private, noise_std=1.0, round=private, release="x"),
        lambda: curator.release(private, noise_std=1.0, round=1, release=private),
        lambda: LaplaceNoise(private),
        lambda: Poisson(private),
        lambda: FixedBatch(private),
    ]
    for attempt in tries:
        with pytest.raises((TypeError, ValueError)):
            attempt()


def test_no_setting_of_numpy_or_scipy_makes_an_error_of_private_numbers() -> None:
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    data = PrivateDataset(
        rows,
        np.array([0.0, 1.0]),
        adjacency="replace-one",
        row_bound=2.0,
        label_domain=ClassLabels(2),
    )
    signs = PrivateDataset(rows, np.array([-1.0, 1.0]), adjacency="replace-one", row_bound=2.0)
    with np.errstate(all="raise"), special.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        data.mean_gradient(Multinomial(2), np.full(4, 1e99))
        for loss in (Logistic(), ClippedLogistic(0.3)):
            signs.mean_gradient(loss, np.full(2, 1e99))
            signs.sum_gradient(loss, np.full(2, -1e99), radius=0.1)


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-200, np.longdouble("1e-4000")])
def test_no_setting_of_numpy_refuses_a_handle_for_a_tiny_cell(tiny: Any) -> None:
    """A quotient or a square that underflowed told the cell apart from 0."""
    cells = np.array([tiny, 1.0])
    labels = np.array([-1.0, 1.0])
    weighted = WeightedLabels(SIGNS)
    with np.errstate(all="raise"):
        PrivateTable({"x": cells}, {"x": BoundedColumn(0, 2**20, 1024)}, adjacency="replace-one")
        rows = np.stack([cells, cells], axis=1)
        PrivateDataset(rows, labels, adjacency="replace-one", row_bound=2.0)
        blocks: list[Any] = [rows, rows]
        VerticalDataset(
            blocks,
            labels,
            adjacency=Adjacency.REPLACE_ONE,
            parties=("a", "b"),
            row_bound=2.0,
            public_labels=False,
        )
        if isinstance(tiny, float):
            both = weighted.joined(labels, cells)
            PrivateDataset(
                rows, both, adjacency="replace-one", row_bound=2.0, label_domain=weighted
            )


def test_a_second_sampler_of_a_seed_draws_no_noise_twice() -> None:
    run = MemoryLedger().run("run", configuration_hash="hash")
    first, second = (SamplingCurator(run, SeededSampler(1)) for _ in range(2))
    first.release(some_value(), noise_std=1.0, round=1, release="x")
    with pytest.raises(LedgerError):
        second.release(some_value(), noise_std=1.0, round=2, release="x")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_nothing_that_draws_or_lists_is_copied(copied: Callable[[Any], Any]) -> None:
    """What a copy released stood in its own list, and an epsilon of the first one's said less."""
    events = EventList()
    for each in (events, SeededSampler(1), SamplingCurator(events, SystemSampler())):
        with pytest.raises(UnprotectedSerialisation, match="second"):
            copied(each)


@pytest.mark.parametrize("whole", [np.int64(2), np.int8(2), np.uint64(2)])
def test_whole_numbers_that_wrap_are_no_parameters(whole: Any) -> None:
    """Products of NumPy's whole numbers wrap to smaller ones, where Python's are exact."""
    stated: dict[str, Any] = {
        "records": 60_000, "batch": 256, "delta": 1e-5, "sampling": "poisson",
        "adjacency": "add-remove-one",
    }  # fmt: skip
    refused: tuple[Callable[[], object], ...] = (
        lambda: dp.noise_multiplier(epsilon=whole, steps=100, **stated),
        lambda: dp.epsilon(noise_multiplier=1.0, epochs=whole, **stated),
        lambda: dp.Selection(whole, 1),
        lambda: DataShape(
            ("all",), count=4, features=2, row_bound=whole, adjacency=Adjacency.REPLACE_ONE
        ),
        lambda: LaplaceNoise(whole),
    )
    for asked in refused:
        with pytest.raises(InvalidParameter, match=r"pass int\(\.\.\.\)"):
            asked()
