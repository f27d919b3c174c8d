"""Laws that a reviewer tried against handles, solvers, files, settings and federations.

Neighbours are given the same noise, or the same messages, so that whatever differs was computed
from the records; what differs is compared with prices in exact fractions.
"""

from __future__ import annotations

import copy
import pickle
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError

import dpledger as dp
from dpledger.accounting import MemoryLedger
from dpledger.accounting.ledger.rows import LedgerError
from dpledger.data import DataError, load_records, read_schema
from dpledger.federation import FederationEnded
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    BoundedColumn,
    CategoryColumn,
    ClassLabels,
    DpledgerError,
    EventList,
    ExactSampler,
    FixedBatch,
    GaussianMixtureStep,
    InvalidParameter,
    LaplaceNoise,
    LaplaceStep,
    LocalProblem,
    Norm,
    Poisson,
    PrivateDataset,
    PrivateTable,
    Provenance,
    RealLabels,
    RowBlocks,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    VerticalDataset,
    WeightedLabels,
    concatenate,
    linear_map,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.runs.estimators import PrivateAdmmClassifier, PrivateAdmmRegressor
from dpledger.runs.estimators.algorithms import AdmmAlgorithm, Recipe
from dpledger.runs.federation import Engine, federate
from dpledger.solvers import (
    ClippedLogistic,
    Hinge,
    Huber,
    Logistic,
    Multinomial,
    SmoothedHinge,
    SmoothedQuantile,
    regression_defaults,
)
from dpledger.solvers.defaults import opinion_pool_defaults, sharing_defaults
from dpledger.solvers.weighted import Weighted

Floats = NDArray[np.float64]
REPLACE, ZERO, ADD = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE
RELATIONS = (REPLACE, ZERO, ADD)
DOMAINS = (SIGNS, ClassLabels(3), RealLabels(2.5), WeightedLabels(SIGNS))
Pair = tuple[Any, Any]


def bare(value: Sensitive) -> Floats:
    """Return a value as it is, to the last bit."""
    curator = SamplingCurator(EventList(), SeededSampler(1))
    return curator.release_unprotected(value, reason="compared", round=1, release="x")


def price(value: Sensitive, multiplier: float) -> Any:
    """Return what a noisy release of a value is priced by."""
    sink = EventList()
    scale = multiplier * value.sensitivity.value
    l1 = value.sensitivity.norm is Norm.L1
    noise: dict[str, Any] = {"mechanism": LaplaceNoise(scale)} if l1 else {"noise_std": scale}
    SamplingCurator(sink, SeededSampler(1)).release(value, round=1, release="x", **noise)
    mechanism: Any = sink.events[0].mechanism
    return mechanism.sensitivity


def moved(first: Floats, second: Floats, *, l1: bool) -> Fraction:
    """Return the square of how far two arrays are apart, exactly."""
    pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
    gaps = [Fraction(a) - Fraction(b) for a, b in pairs]
    return sum(map(abs, gaps), Fraction(0)) ** 2 if l1 else sum((g * g for g in gaps), Fraction(0))


def share(values: Pair, multiplier: float) -> float:
    """Return how far neighbours' values are apart, over their price; at most 1, exactly."""
    first, second = values
    bound, other = (price(value, multiplier) for value in values)
    assert bound == other
    far = moved(bare(first), bare(second), l1=bound.norm is Norm.L1)
    assert far <= bound.squared
    return float(far / bound.squared) ** 0.5 if bound.squared else 0.0


def loss_for(domain: Any, draw: random.Random) -> Any:
    """Return a loss that is defined for a domain of labels."""
    match domain:
        case ClassLabels(classes):
            return Multinomial(classes)
        case RealLabels(bound):
            return draw.choice([Huber(0.2, bound), SmoothedQuantile(0.3, 0.1, bound)])
        case WeightedLabels(labels):
            return Weighted(loss_for(labels, draw))
        case _:
            return draw.choice([Logistic(), ClippedLogistic(0.3), Hinge(), SmoothedHinge(0.1)])


def some_labels(domain: Any, rng: np.random.Generator, count: int) -> Floats:
    """Return labels of a domain, those at its ends among them."""
    match domain:
        case ClassLabels(classes):
            return rng.integers(0, classes, count).astype(float)
        case RealLabels(bound):
            return rng.choice([-bound, bound, 0.0, 1e-300], count)
        case WeightedLabels(labels):
            weights = rng.choice([0.0, 1.0, 0.3, 5e-324, 1.0 - 2.0**-53], count)
            return domain.joined(some_labels(labels, rng, count), weights)
        case _:
            return rng.choice([-1.0, 1.0], count)


FORMS: tuple[Callable[[Floats], Any], ...] = (
    np.copy,
    np.asfortranarray,
    sparse.csr_array,
    sparse.coo_array,
    lambda rows: RowBlocks(rows.shape, rows.__getitem__, at_once=3),
    lambda rows: np.repeat(rows, 2, axis=0)[::2],
)


def neighbours(draw: random.Random, rng: np.random.Generator, relation: Adjacency) -> Pair:
    """Return handles of neighbours: rows alike, or of all sizes, beyond and within the bound."""
    parties, width, domain = draw.choice([1, 2, 3]), draw.choice([1, 2, 4]), draw.choice(DOMAINS)
    count, bound = draw.choice([2, 5, 30]) * parties, draw.choice([1.0, 0.37, 1e-30, 1e20])
    rows = rng.normal(size=(count, width)) * bound * 10.0 ** rng.uniform(-3, 3, size=(count, 1))
    if draw.random() < 0.5:
        rows[:] = rows[0] / max(float(np.linalg.norm(rows[0])), 1e-100) * bound * 2.0
    labels, held = some_labels(domain, rng, count), np.arange(count) % parties
    other, changed, kept = rows.copy(), labels.copy(), np.ones(count, dtype=bool)
    last = count - 1
    other[last] = -9.0 * rows[last] if relation is REPLACE else 0.0
    changed[last] = some_labels(domain, rng, 1)[0] if relation is REPLACE else labels[last]
    if relation is ADD:
        kept[last], other, changed = False, rows, labels
    given: dict[str, Any] = {"adjacency": relation, "row_bound": bound, "label_domain": domain}
    given["parties"] = ("a", "b", "c")[:parties]
    if relation is ADD:
        given["n_min"] = count // parties - 1
    form, every = draw.choice(FORMS), np.ones(count, dtype=bool)
    first, second = (
        PrivateDataset(form(x[some]), y[some], party_of=held[some], **given)
        for x, y, some in ((rows, labels, every), (other, changed, kept))
    )
    return first, second


def answer(handle: PrivateDataset, draw: random.Random, rng: np.random.Generator) -> Sensitive:
    """Return one of a handle's functions at random public arguments."""
    shape, parties = handle.shape, len(handle.shape.parties)
    loss, bound = loss_for(shape.label_domain, draw), shape.row_bound
    point = rng.normal(size=(parties, shape.parameters(loss))) * draw.choice([0.0, 1.0, 1e8])
    weights = draw.choice([None, rng.choice([0.0, 1.0, -2.0, 1 / 3], size=parties)])
    centre = rng.normal(size=shape.features)
    centre *= bound * draw.choice([0.0, 1.9]) / float(np.linalg.norm(centre))
    rows = CentredRows(handle, centre, radius=bound * draw.choice([1 / 64, 0.3, 2.0]))
    match draw.randrange(6):
        case 0:
            return handle.sum_gradient(loss, point, radius=draw.choice([None, bound * 1e-3]))
        case 1:
            return handle.mean_gradient(loss, point, weights=weights)
        case 2:
            return handle.second_moment()
        case 3:
            return handle.histogram([-bound, 0.0, 0.3 * bound], column=draw.choice([None, 0]))
        case 4:
            return rows.mean_squares(weights=weights)
        case _:
            return rows.mean_gradient(loss, point, weights=weights)


def program(handle: PrivateDataset, seed: int) -> Sensitive:
    """Return what a random program of public operations makes of a handle."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    value = answer(handle, draw, rng)
    for _ in range(draw.randrange(4)):
        width, size = value.dimension, value.sensitivity.value or 1.0
        match draw.randrange(6):
            case 0:
                value = value * draw.choice([0.3, -7.0, 1e5, 1 / 3])
            case 1:
                value = rng.normal(size=(value.rows, width)) * size * 1e3 - value / 3.0
            case 2:
                value = linear_map(rng.normal(size=(draw.randrange(1, 4), width)), value)
            case 3:
                value = value.clipped(size * draw.choice([0.3, 1.0, 3.0]))
            case 4:
                value = concatenate(value, answer(handle, draw, rng))
            case _:
                other = answer(handle, draw, rng)
                factor = size / (other.sensitivity.value or 1.0)
                mix = rng.normal(size=(width, other.dimension)) * factor
                value = value - linear_map(mix, other)
    return value


def program_or_refusal(handle: PrivateDataset, seed: int) -> Sensitive | str:
    """Return what a program makes of a handle, or why that is refused."""
    try:
        return program(handle, seed)
    except InvalidParameter as error:
        return str(error)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_program_moves_further_than_its_price_in_exact_numbers(relation: Adjacency) -> None:
    """Tried: seven forms of rows, bounds from 1e-30 to 1e20, up to three parties, four kinds of
    labels, centred rows, cuts, joins and sums of several answers, without noise and to the bit."""
    shares = []
    for seed in range(45):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        pair = neighbours(draw, rng, relation)
        answers = [program_or_refusal(handle, seed) for handle in pair]
        if isinstance(answers[0], str):  # the same for both: public numbers decide
            assert answers[0] == answers[1]
            continue
        shares.append(share((answers[0], answers[1]), draw.choice([2.0**-8, 1.0, 100.0])))
    assert len(shares) > 35
    assert 0.95 < max(shares) <= 1.0


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_is_computed_on_a_hidden_sample_moves_by_its_two_prices(relation: Adjacency) -> None:
    """Tried: sums over a drawn sample, corrections, and values computed on all beside them."""
    shares = []
    for seed in range(40):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        pair, found = neighbours(draw, rng, relation), list[Any]()
        scheme = FixedBatch(1) if relation is REPLACE else Poisson(draw.choice([0.05, 0.5, 0.95]))
        joined = draw.random() < 0.5
        for handle in pair:
            inner, at = random.Random(seed), np.random.default_rng(seed)
            sink, shape = EventList(), handle.shape
            curator = SamplingCurator(sink, SeededSampler(seed))
            sample, loss = curator.sample(handle, scheme), loss_for(shape.label_domain, inner)
            size = (len(shape.parties), shape.parameters(loss))
            point, cut = at.normal(size=size), shape.row_bound * inner.choice([0.3, 2.0])
            value = sample.sum_gradient(loss, point, radius=cut)
            value = value - 0.5 * sample.sum_correction(loss, point, anchor=-point, radius=cut)
            value = value + 0.25 * handle.sum_gradient(loss, point) if joined else value
            noise = value.sensitivity.value * 2.0**-6
            message = curator.release(value, noise_std=noise, round=1, release="x")
            found.append((message, sink.events[0].mechanism, noise))
        (first, event, noise), (second, other, _) = found
        assert event == other
        assert isinstance(event, GaussianMixtureStep) is joined
        constant = event.constant.root if joined else Fraction(0)
        drawn = event.sampled.root if joined else event.event.sensitivity.root
        far = float(moved(first, second, l1=False)) ** 0.5
        room = 2.0**-45 * (float(np.abs(first).max()) + noise)
        assert far <= float(constant + drawn) * (1.0 + 1e-12) + room
        # a record that is not drawn moves the other part alone: there is nothing in between
        shares.append((far - room) / float(constant + drawn))
    assert max(shares) > 0.5
    assert min(shares) < 0.1


COLUMNS: dict[str, Any] = {
    "a": BoundedColumn(-1.5, 2.0),
    "b": BoundedColumn(0, 100, 1.0),
    "c": BoundedColumn(-9, -2, 0.5),
    "d": CategoryColumn(("x", "y", "z")),
}


def statistic(table: PrivateTable, draw: random.Random, norm: Norm) -> Sensitive:
    """Return one of a table's statistics at random public arguments."""
    name = draw.choice("abc")
    column = COLUMNS[name]
    edges = sorted({column.lower, float(column.null), column.upper, column.lower + column.step})
    match draw.randrange(5):
        case 0:
            return table.sum(name, norm=norm)
        case 1:
            return table.histogram(name, edges, norm=norm)
        case 2:
            return table.histogram("d", norm=norm)
        case 3 if norm is Norm.L1:
            return table.quantile_costs(name, draw.choice([0.0, 0.5, 1 / 3, 1.0]), edges)
        case _ if norm is Norm.L2:
            return draw.choice([table.mean(name), table.second_moments(draw.sample("abc", 2))])
        case _:
            return table.count(norm=norm)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_statistic_moves_further_than_its_price_in_exact_numbers(relation: Adjacency) -> None:
    """Tried: cells at, beyond and between bounds; null records; joined and mapped statistics."""
    shares = []
    for seed in range(60):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        count, norm = draw.choice([2, 9, 60]), draw.choice([Norm.L1, Norm.L2])

        def cells(column: Any, many: int, rng: np.random.Generator = rng) -> Floats:
            if isinstance(column, CategoryColumn):
                return rng.integers(0, 3, many).astype(float)
            ends = [column.lower, column.upper, -1e300, 1e300, 0.0, column.lower + column.step / 2]
            return rng.choice(ends, many)

        first = {name: cells(column, count) for name, column in COLUMNS.items()}
        second, bounds = {name: each.copy() for name, each in first.items()}, dict[str, int]()
        for name, column in COLUMNS.items():
            null = 0.0 if isinstance(column, CategoryColumn) else float(column.null)
            second[name][0] = cells(column, 1)[0] if relation is REPLACE else null
        if relation is ADD:
            second, bounds = {n: each[1:] for n, each in first.items()}, {"n_min": count - 1}
        values = []
        for held in (first, second):
            table = PrivateTable(held, COLUMNS, adjacency=relation, **bounds)
            inner = random.Random(seed)
            value = statistic(table, inner, norm)
            other = statistic(table, inner, norm)
            value = inner.choice([concatenate(value, other), value * -0.3, value])
            mix = np.random.default_rng(seed).normal(size=(2, value.dimension))
            values.append(inner.choice([value, linear_map(mix, value)]))
        shares.append(share((values[0], values[1]), 1.0))
    assert 0.95 < max(shares) <= 1.0


@np.errstate(all="raise")
def test_columns_of_any_size_move_within_their_price_and_nothing_is_heard() -> None:
    """Tried: bounds, penalties, moduli and radii from 2^-230 to 2^230, rows that under- and
    overflow, while warnings and NumPy's own reports are errors."""
    sizes, shares = (2.0**-230, 2.0**-100, 1e-10, 1.0, 3.0, 1e10, 2.0**100, 2.0**230), list[float]()
    for seed in range(200):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        relation, count, width = draw.choice([REPLACE, ZERO]), draw.choice([1, 2, 7]), 3
        with np.errstate(all="ignore"):
            bound = draw.choice(sizes)
            rows = np.clip(rng.normal(size=(count, width)) * bound * 3.0, -1e308, 1e308)
            rows = rng.choice([5e-324, 1e308, 0.0], rows.shape) if draw.random() < 0.3 else rows
            other = rows.copy()
            other[0] = 0.0 if relation is ZERO else -rows[0]
        pull, labels = rng.choice([-1.0, 1.0, 1e300], count), np.ones(count)
        numbers = [draw.choice(sizes) for _ in range(4)]
        kind, tolerance, values = draw.randrange(3), draw.choice(sizes), []
        try:
            problem = LocalProblem(
                pull, numbers[0], numbers[1], numbers[2], radius=numbers[3], tolerance=tolerance
            )
            for block in (rows, other):
                held = VerticalDataset(
                    [block],
                    labels,
                    adjacency=relation,
                    parties=("a",),
                    public_labels=False,
                    row_bound=bound,
                )
                point = np.full(width, problem.radius)
                if kind == 0:
                    values.append(held.scores("a", point))
                else:
                    asked = held.predictions if kind == 1 else held.minimiser
                    values.append(asked("a", problem))
            shares.append(share((values[0], values[1]), 0.1))
        except InvalidParameter:
            continue  # what doubles do not reach is refused, by public numbers
    assert len(shares) > 50
    assert 0.9 < max(shares) <= 1.0


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Multinomial(9)])
def test_a_partys_row_knows_nothing_of_how_many_records_others_have(loss: Any) -> None:
    """Tried: one to forty records of another party, widths around those at which NumPy changes
    its loops, up to the last bit of a sum of one record's slope times its row."""
    domain = ClassLabels(9) if loss.outputs > 1 else SIGNS
    for width in (1, 2, 7, 16, 33, 4097 if loss.outputs == 1 else 40):
        rng, seen = np.random.default_rng(width), set[bytes]()
        rows = rng.normal(size=(41, width)) / width
        labels = some_labels(domain, rng, 41)
        point = rng.normal(size=(2, width * loss.outputs))
        for others in (1, 2, 3, 7, 8, 9, 40):
            party_of = np.array([0] + [1] * others)
            held = PrivateDataset(
                rows[: others + 1],
                labels[: others + 1],
                adjacency=ADD,
                row_bound=1.0,
                parties=("one", "others"),
                party_of=party_of,
                n_min=1,
                n_max=64,
                label_domain=domain,
            )
            own = bare(held.sum_gradient(loss, point))[0]
            seen.add(own.tobytes())
        assert len(seen) == 1


class Forced(ExactSampler):
    """Answers with messages that no value decides, and notes the values."""

    def __init__(self, seed: int, size: float) -> None:
        self._rng, self._size = np.random.default_rng(seed), size
        self._bits = SeededSampler(seed)
        self.seen: list[Floats] = []

    @property
    def provenance(self) -> Provenance:
        return Provenance("exact-forced", 1)

    def words(self, count: int) -> Any:
        return self._bits.words(count)

    def gaussian(self, value: Floats, noise_std: float) -> Floats:
        self.seen.append(np.array(value))
        return self._rng.normal(size=value.shape) * self._size

    def laplace(self, value: Floats, scale: float) -> Floats:
        return self.gaussian(value, scale)

    def uniform(self, shape: tuple[int, ...]) -> Floats:
        return (np.floor(self._rng.random(256) * 2.0**53) + 1.0)[: shape[-1]].reshape(shape) / 2**53


def same_messages(pair: Pair, run: Callable[[Any, SamplingCurator], object], seed: int) -> float:
    """Return the largest share of its price by which a value moves where all messages are alike."""
    found = []
    for handle in pair:
        sampler, sink = Forced(seed, [0.1, 3.0, 100.0][seed % 3]), EventList()
        run(handle, SamplingCurator(sink, sampler))
        found.append((tuple(sink.events), sampler.seen))
    (events, first), (others, second) = found
    assert events == others
    noisy = [event.mechanism for event in events if getattr(event.mechanism, "noise_std", 1.0) > 0]
    assert len(noisy) == len(first) == len(second)
    largest, priced = 0.0, list[Any](noisy)
    for step, one, two in zip(priced, first, second, strict=True):
        inner = getattr(step, "event", step)
        bound = (
            step.constant.root + step.sampled.root
            if isinstance(step, GaussianMixtureStep)
            else inner.sensitivity.root
        )
        far = float(moved(one, two, l1=isinstance(step, LaplaceStep))) ** 0.5
        largest = max(largest, far / float(bound))
    return largest


@pytest.mark.parametrize("algorithm", list(AdmmAlgorithm))
def test_every_algorithm_moves_within_its_events_given_its_messages(algorithm: Any) -> None:
    """Tried: three relations, classes and weights, one to three parties, little and much noise."""
    shares = []
    for seed in range(6):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        relation, parties = RELATIONS[seed % 3], draw.choice([2, 3])
        parties = 1 if algorithm is AdmmAlgorithm.CENTRALISED else parties
        kinds: tuple[Any, ...] = (SIGNS, ClassLabels(3), WeightedLabels(SIGNS))
        domain = draw.choice(kinds)
        count = 6 * parties
        rows = np.tile(rng.normal(size=3), (count, 1)) if seed % 2 else rng.normal(size=(count, 3))
        labels, held = some_labels(domain, rng, count), np.arange(count) % parties
        other, changed, kept = rows.copy(), labels.copy(), slice(None)
        other[-1] = -rows[-1] if relation is REPLACE else 0.0
        if relation is REPLACE:
            changed[-1] = some_labels(domain, rng, 1)[0]
        if relation is ADD:
            other, changed, kept = rows, labels, slice(-1)
        given: dict[str, Any] = {"n_min": 5} if relation is ADD else {}
        pair = [
            PrivateDataset(
                x[some],
                y[some],
                adjacency=relation,
                row_bound=1.0,
                party_of=held[some],
                parties=("a", "b", "c")[:parties],
                label_domain=domain,
                **given,
            )
            for x, y, some in ((rows, labels, slice(None)), (other, changed, kept))
        ]
        recipe = Recipe(2, draw.choice([None, 1e-3]), draw.choice([0.05, 1.0, 20.0]), 1e-5, 2)
        solver = algorithm.factory(recipe)(draw.choice([0.05, 1.0, 30.0]), pair[0].shape)
        shares.append(same_messages((pair[0], pair[1]), solver.solve, seed))
    assert 0.05 < max(shares) <= 1.0 + 1e-12


@pytest.mark.parametrize("kind", ["exchange", "pool", "regression"])
def test_columns_and_regressions_move_within_their_events_given_their_messages(kind: str) -> None:
    """Tried: private and public labels, one to three holders of columns, three losses, starts."""
    shares = []
    for seed in range(30):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        relation, count, noise = draw.choice([REPLACE, ZERO]), 12, draw.choice([0.05, 1.0, 20.0])
        rows, labels = rng.normal(size=(count, 3)), rng.choice([-1.0, 1.0], count)
        if seed % 2:
            rows[:] = rows[0]
        other, changed = rows.copy(), labels.copy()
        other[0] = -4.0 * rows[0] if relation is REPLACE else 0.0
        public = kind == "pool" or draw.random() < 0.5
        if relation is REPLACE and not public:
            changed[0] = -labels[0]
        run: Callable[[Any, SamplingCurator], object]
        if kind == "regression":
            bent = SmoothedQuantile(0.3, 0.02, 1.0)
            losses: tuple[Any, ...] = (Huber(0.2, 1.0), Huber(2.0, 1.0), bent)
            loss = draw.choice(losses)
            pair: list[Any] = [
                PrivateDataset(
                    x, y, adjacency=relation, row_bound=1.0, label_domain=RealLabels(1.0)
                )
                for x, y in ((rows, labels), (other, changed))
            ]
            chosen = regression_defaults(
                pair[0].shape, loss=loss, epsilon=draw.choice([0.05, 1.0, 20.0]), delta=1e-5
            )
            start = draw.choice([(), (0.5, -2.0, 1.0)])
            run = replace(chosen, noise_multiplier=noise, start=start).solve
        else:
            names = ("a", "b", "c")[: draw.choice([1, 2, 3])]
            pair = [
                VerticalDataset(
                    np.array_split(x, len(names), axis=1),
                    y,
                    adjacency=relation,
                    parties=names,
                    public_labels=public,
                )
                for x, y in ((rows, labels), (other, changed))
            ]
            if kind == "pool":
                pool = opinion_pool_defaults(
                    pair[0].shape, epsilon=1.0, delta=1e-5, offset=0.7, regularisation=1e-3
                )
                run = replace(pool, noise_multiplier=noise).solve
            else:
                exchange = sharing_defaults(
                    pair[0].shape,
                    noise_multiplier=noise,
                    rounds=draw.choice([0, 2]),
                    penalty=0.25,
                    slope_bound=draw.choice([1.0, 0.3]),
                    radius=3.0,
                    offset=0.3 if public else 0.0,
                    regularisation=1e-2,
                )

                def run(data: Any, curator: SamplingCurator, solver: Any = exchange) -> object:
                    return solver.publish_models(data, curator, solver.solve(data, curator))

        shares.append(same_messages((pair[0], pair[1]), run, seed))
    assert 0.5 < max(shares) <= 1.0 + 1e-12


@pytest.mark.parametrize("loss", [Logistic(), ClippedLogistic(0.3), SmoothedHinge(0.05)])
def test_a_minimiser_is_as_near_as_its_tolerance_says(loss: Any) -> None:
    """Tried: far starts and pulls; the optimum is found once more by plain descent."""
    for seed in range(6):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        rows, labels = rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], 20)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        pull, tolerance = rng.normal(size=3) * draw.choice([0.0, 5.0]), draw.choice([1e-2, 1e-7])
        held = PrivateDataset(rows, labels, adjacency=REPLACE, row_bound=1.0)
        value = held.strongly_convex_argmin(
            loss, modulus=0.3, linear=pull, tolerance=tolerance, start=rng.normal(size=3) * 100.0
        )
        found = bare(value)[0]
        best = found.copy()
        for _ in range(2000):
            slopes = loss.derivative(rows @ best, labels)
            best -= (rows.T @ slopes / 20 + 0.3 * best + pull) / (float(loss.curvature_bound) + 0.3)
        assert np.linalg.norm(found - best) <= tolerance / 0.3 * (1.0 + 1e-6) + 1e-13


SCHEMA = """row_bound = 1.0
on_outside = "clip"
missing = ["", "?"]
drop_missing = {drop}
columns = [
    {{kind = "numeric", name = "age", lower = 0.0, upper = 100.0}},
    {{kind = "categorical", name = "ward", categories = ["surgery", "medicine", "1", "a,b"]}},
    {{kind = "party", name = "house", parties = ["n", "s"]}},
    {{kind = "label", name = "back", positive = ["yes"], negative = ["no"]}},
]
"""
ODD_CELLS = (
    *('"', "'", "\r", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\x00", "\ufeff"),
    *(",", ";", "\t", "#", "?", "", "nan", "inf", "1e999", "1_0", "\u0663", "+5", '"a,b"', "1.0"),
)


@pytest.mark.parametrize("drop", ["true", "false"])
def test_one_line_of_a_file_never_moves_the_other_records(drop: str, tmp_path: Path) -> None:
    """Tried: quotes, ends of lines of all kinds, blanks, bytes of no text, and numbers of other
    scripts in one line's cells; the others' rows, labels and parties stay what they were."""
    (tmp_path / "schema.toml").write_text(SCHEMA.format(drop=drop), encoding="utf-8")
    schema, kept = read_schema(tmp_path / "schema.toml"), 0

    def rows(lines: Sequence[str]) -> list[list[float]]:
        path = tmp_path / "people.csv"
        path.write_bytes("\n".join(["age,ward,house,back", *lines]).encode())
        found = load_records(path, schema=schema)
        dense = found.features.toarray()  # type: ignore[union-attr]
        joined: list[list[float]] = np.column_stack([dense, found.labels, found.party_of]).tolist()
        return joined

    others = ["1,surgery,n,yes", "20.5,1,s,no", '7,"a,b",n,no']
    before = rows(others)
    for seed in range(400):
        draw = random.Random(seed)
        cells = ["44", draw.choice(["surgery", "1"]), "s", "yes"]
        for _ in range(draw.randrange(1, 3)):
            place, odd = draw.randrange(4), draw.choice(ODD_CELLS)
            cells[place] = draw.choice([odd, cells[place] + odd, f'"{cells[place]}{odd}"'])
        place = draw.randrange(4)
        try:
            after = rows([*others[:place], ",".join(cells), *others[place:]])
        except DataError:
            continue
        kept += 1
        if len(after) == len(before) + 1:
            del after[place]
        else:
            assert drop == "true"
        assert after == before
    assert kept > 40


WRONG: tuple[Any, ...] = (
    *(None, float("nan"), float("inf"), 0, -1, 1.5, "x", b"1", 10**400, 2j, (), {}, object()),
    *(np.array([0.5, 1.0]), Fraction(1, 3), 1e-320, [None, 1], [{"rounds": "x"}] * 2),
)


def test_a_fit_that_is_refused_has_spent_nothing_and_changed_nothing() -> None:
    """Tried: a dozen settings, each with values of every kind; whatever is refused leaves the
    ledger empty and the model unfitted."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, size=(20, 2))
    settings = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one", "rounds": 1}
    names = "epsilon delta n_parties threat_model row_bound regularisation"
    more = "n_min candidates records_per_unit random_state"
    refused = 0
    kinds: tuple[tuple[Any, dict[str, Any], str, Floats], ...] = (
        (PrivateAdmmClassifier, {"classes": (-1.0, 1.0)}, more, np.sign(rows[:, 0])),
        (
            PrivateAdmmRegressor,
            {"target_bounds": (-1, 1)},
            "target_bounds loss quantile",
            rows[:, 0],
        ),
    )
    for kind, own, others, labels in kinds:
        for name in f"{names} {others}".split():
            for wrong in WRONG:
                ledger = MemoryLedger()
                model = kind(**{**settings, **own, name: wrong}, ledger=ledger)
                try:
                    with warnings.catch_warnings(action="ignore"):
                        model.fit(rows, labels)
                except Exception:  # bare ones of wrong types too
                    refused += 1
                    assert not list(ledger.reservations()), (name, wrong)
                    with pytest.raises((NotFittedError, AttributeError, DpledgerError)):
                        model.predict(rows)
    assert refused > 150


NUMBERS = ("1e-320", "1e-30", "1e-3", "0.999", "1.0", "3", "50", "65", "1e9", "1e30", "1e308", "-1")


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_no_number_in_a_run_file_ends_in_an_error_of_others(tmp_path: Path) -> None:
    """Tried: two settings at a time, from the least double to the largest; a plan or a refusal."""
    kinds = {"dp-admm": "", "pvp-admm": "", "consensus-admm": "", "pr-admm": 'network = "complete"'}
    keys = "epsilon delta noise_multiplier rounds distance penalty regularisation tolerance"
    planned = refused = 0
    for seed in range(90):
        draw = random.Random(seed)
        algorithm = draw.choice(sorted(kinds))
        found = {"delta": "1e-5", "epsilon": "1.0", "rounds": "2"}
        for _ in range(2):
            found[draw.choice(keys.split())] = draw.choice(NUMBERS)
        if "noise_multiplier" in found:
            del found["epsilon"]
        of_promise = ("epsilon", "delta", "noise_multiplier")
        promise = "\n".join(f"{k} = {v}" for k, v in found.items() if k in of_promise)
        solver = "\n".join(f"{k} = {v}" for k, v in found.items() if k not in of_promise)
        (tmp_path / "run.toml").write_text(
            "[data]\ntrain_records = 200\nparties = 2\n"
            f'[privacy]\nadjacency = "replace-one"\n{promise}\n'
            f'[solver]\nalgorithm = "{algorithm}"\n{kinds[algorithm]}\n{solver}\n'
            '[noise]\nsampler = "system"\n'
        )
        try:
            dp.plan(str(tmp_path / "run.toml"))
            planned += 1
        except DpledgerError:
            refused += 1
    assert planned > 5
    assert refused > 20


def test_a_ledger_in_memory_is_one_ledger_however_it_is_copied() -> None:
    """Tried: copies that scikit-learn makes share it; copies that processes make are refused."""
    ledger = MemoryLedger()
    assert copy.deepcopy(ledger) is ledger
    for copied in (pickle.dumps, copy.copy):
        with pytest.raises(LedgerError, match="second budget"):
            copied(ledger)


def test_a_federation_does_not_draw_one_seed_twice_for_two_plans(tmp_path: Path) -> None:
    """Tried: parties with seeds run a second plan, whose noise could be subtracted from the
    first's: the ledger refuses, and nothing is sent."""
    (tmp_path / "schema.toml").write_text(
        'row_bound = 1.0\n[[columns]]\nkind = "numeric"\nname = "x"\nlower = 0\nupper = 1\n'
        '[[columns]]\nkind = "label"\nname = "y"\npositive = ["p"]\nnegative = ["n"]\n'
    )
    parties: list[Path] = []
    for name in ("north", "south"):
        lines = [f"{(k * 7 % 40) / 40},{'pn'[k % 2]}" for k in range(40 + len(parties))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["x,y", *lines]))
        (tmp_path / f"{name}.toml").write_text(
            f'[party]\nname = "{name}"\nrun = "run.toml"\nfiles = ["{name}.csv"]\n'
            f'folder = "{name}"\n'
            '[noise]\nsampler = "philox"\nseed = 7\n[policy]\nepsilon = 2.0\ndelta = 1e-5\n'
            'adjacency = "replace-one"\nalgorithms = ["consensus-admm"]\n'
        )
        parties.append(tmp_path / f"{name}.toml")
    run, messages = tmp_path / "run.toml", list[Any]()
    for epsilon in (1.0, 0.5):
        run.write_text(
            '[federation]\nparties = ["north", "south"]\nrecords = [40, 41]\n'
            'schema = "schema.toml"\n'
            f'[privacy]\nadjacency = "replace-one"\nepsilon = {epsilon}\ndelta = 1e-5\n'
            '[solver]\nalgorithm = "consensus-admm"\nrounds = 2\n'
        )
        out = tmp_path / f"together{epsilon}"
        if not messages:
            federate(run, engine=Engine.IN_PROCESS, out=out, parties=tuple(parties))
            messages.append(np.load(tmp_path / "north" / "model.npy"))
            continue
        with pytest.raises((FederationEnded, LedgerError)):
            federate(run, engine=Engine.IN_PROCESS, out=out, parties=tuple(parties))
        assert not (out / "model.npy").exists()
        assert np.array_equal(np.load(tmp_path / "north" / "model.npy"), messages[0])
