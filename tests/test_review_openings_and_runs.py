"""Laws of openings in the wall, and of runs and their files, as they were tried.

Neighbours' values are compared in exact fractions with what their sensitivity says, rounding
included and without the lattice's room; minimisers with bisection in forty digits; hidden samples
with integrals of their densities; what a run writes for everybody with that of a neighbour's run.
"""

from __future__ import annotations

import math
import random
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import norm as normal

import dpledger as dp
from dpledger.accounting import Budget, BudgetExceeded, MemoryLedger, SqliteLedger
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.audits import AuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    Audience,
    BoundedColumn,
    CategoryColumn,
    ClassLabels,
    Context,
    DataShape,
    DpledgerError,
    Event,
    EventList,
    ExactSampler,
    FixedBatch,
    GaussianMixtureStep,
    GaussianStep,
    LabelDomain,
    LaplaceNoise,
    LocalDataset,
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
    SystemSampler,
    VerticalDataset,
    WeightedLabels,
    concatenate,
    declared,
    linear_map,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.operator_norm import operator_norm_up
from dpledger.mechanisms.sensitivity import computed
from dpledger.runs import RunOptions
from dpledger.runs.estimators import AdmmAlgorithm, PrivateAdmmClassifier
from dpledger.runs.federation import Engine, federate
from dpledger.solvers import (
    ClippedLogistic,
    Hinge,
    Huber,
    LinearLoss,
    Logistic,
    Multinomial,
    SmoothedHinge,
    SmoothedQuantile,
)
from dpledger.solvers.weighted import Weighted

Floats = NDArray[np.float64]
REPLACE, ZERO, ADD = (
    Adjacency.REPLACE_ONE,
    Adjacency.ZERO_OUT_ONE,
    Adjacency.ADD_REMOVE_ONE,
)
DOMAINS: tuple[LabelDomain, ...] = (
    SIGNS,
    ClassLabels(3),
    RealLabels(2.5),
    WeightedLabels(SIGNS),
    WeightedLabels(ClassLabels(3)),
)


@dataclass(frozen=True)
class Perceptron:
    """max(0, -y s): a loss of one's own, whose slope jumps at 0."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        return np.maximum(0.0, -labels * scores)

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        return np.where(labels * scores <= 0.0, -labels, 0.0)


@dataclass(frozen=True)
class Winner:
    """max_j s_j - s_y of three classes: a loss of one's own, whose slope jumps where two tie."""

    outputs = 3
    label_domain = ClassLabels(3)
    derivative_bound = Fraction(3, 2)
    curvature_bound = None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        return np.asarray(scores.max(axis=-1))

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        best = np.argmax(scores, axis=-1)[..., None] == np.arange(3)
        return np.asarray(best * 1.0 - (labels[..., None] == np.arange(3)))


def loss_for(domain: LabelDomain, draw: random.Random) -> Any:
    """Return a loss for a domain of labels, the program's or one's own."""
    match domain:
        case ClassLabels():
            return draw.choice([Multinomial(3), Winner()])
        case RealLabels(bound):
            return draw.choice([Huber(0.2, bound), SmoothedQuantile(0.3, 0.01, bound)])
        case WeightedLabels(labels):
            return Weighted(Multinomial(3) if isinstance(labels, ClassLabels) else Hinge())
        case _:
            few = [Logistic(), Hinge(), LinearLoss(), ClippedLogistic(0.3), Perceptron()]
            return draw.choice(few)


def some_labels(domain: LabelDomain, rng: np.random.Generator, count: int) -> Floats:
    """Return random labels of a domain."""
    match domain:
        case ClassLabels():
            return rng.integers(0, 3, count).astype(np.float64)
        case RealLabels(bound):
            return rng.uniform(-bound, bound, count)
        case WeightedLabels(labels):
            weights = rng.choice([0.0, 1.0, 0.3, 1 - 2.0**-53], count)
            return domain.joined(some_labels(labels, rng, count), weights)
        case _:
            return rng.choice([-1.0, 1.0], count)


def some_rows(rng: np.random.Generator, shape: tuple[int, int], bound: float) -> Floats:
    """Return rows of odd numbers, unit vectors, rows of all sizes, or one row again and again."""
    match int(rng.integers(4)):
        case 0:
            odd = [0.0, 5e-324, 1e-200, -1e300, 1.0, -1.0, 1 / 3, 1e-17]
            return rng.choice(odd, size=shape)
        case 1:
            turned = rng.choice([1.0, -1.0, 5.0], size=(shape[0], 1))
            units = np.eye(shape[1])[rng.integers(0, shape[1], shape[0])]
            return np.asarray(units * bound * turned)
        case 2:
            return rng.normal(size=shape) * 10.0 ** rng.uniform(-12, 12, size=(shape[0], 1))
        case _:
            one = rng.normal(size=(1, shape[1]))
            return np.repeat(2.0 * bound * one / np.linalg.norm(one), shape[0], axis=0)


FORMS: dict[str, Callable[[Floats], Any]] = {
    "plain": np.copy,
    "column by column": np.asfortranarray,
    "csr": sparse.csr_array,
    "coo": sparse.coo_array,
    "blocks": lambda rows: RowBlocks(rows.shape, lambda some: rows[some], at_once=7),
}


def leaf(held: PrivateDataset, draw: random.Random, rng: np.random.Generator) -> Sensitive:
    """Return one of a handle's functions at random public arguments, near and very far ones."""
    shape, parties = held.shape, len(held.shape.parties)
    loss, bound = loss_for(shape.label_domain, draw), shape.row_bound
    point = rng.normal(size=(parties, shape.parameters(loss)))
    point *= 10.0 ** draw.choice([-300, -3, 0, 2, 60])
    weights = draw.choice([None, rng.choice([0.0, 1.0, -2.0, 1 / 3], size=parties)])
    radius = bound * draw.choice([0.3, 1.0, 2.0, 1 / 50])
    centre = rng.normal(size=shape.features)
    centre *= bound * draw.choice([0.0, 0.5, 1.9]) / float(np.linalg.norm(centre))
    factors = np.exp(rng.uniform(-3, 0, shape.features)) * 60 * radius / bound
    rows = CentredRows(held, centre, radius=radius, scale=draw.choice([None, factors]))
    match draw.randrange(8):
        case 0:
            cut = draw.choice([None, bound * 1e-9, bound * 0.3])
            return held.sum_gradient(loss, point, radius=cut)
        case 1:
            return held.second_moment()
        case 2:
            return held.histogram([-0.5, 0.0, 0.5], column=draw.choice([None, 0]))
        case 3:
            return rows.mean_squares(weights=weights)
        case 4:
            near = point if float(np.abs(point).max()) < 1e50 else 0.0 * point
            return rows.mean_gradient(loss, near, weights=weights)
        case 5 if isinstance(shape.label_domain, ClassLabels):
            models = [rng.normal(size=3 * shape.features) for _ in range(3)]
            return held.wrong_predictions(models)
        case 6 if loss.curvature_bound is not None:
            return held.strongly_convex_argmin(
                loss,
                modulus=draw.choice([0.5, 2.0]) * bound**2,
                linear=0.1 * bound * rng.normal(size=point.shape),
                tolerance=1e-3 * bound,
                start=np.zeros_like(point),
                weights=weights,
            )
        case _:
            return held.mean_gradient(loss, point, weights=weights)


def program(held: PrivateDataset, seed: int) -> Sensitive:
    """Return what a random program of public operations makes of a handle: one a seed."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    value = leaf(held, draw, rng)
    for _ in range(draw.randrange(4)):
        width, size = value.dimension, float(value.sensitivity.root)
        match draw.randrange(7):
            case 0:
                value = np.full(width, size) - value * draw.choice([0.3, -7.0, 1e3])
            case 1:
                far = 10.0 ** rng.uniform(-3, 3, size=(2, 1))
                value = linear_map(rng.normal(size=(2, width)) * far, value)
            case 2:
                value = concatenate(value, leaf(held, draw, rng))
            case 3:
                value = value.clipped(size * draw.choice([0.1, 1.0, 50.0]))
            case 4:
                other = leaf(held, draw, rng)
                value = value - linear_map(rng.normal(size=(width, other.dimension)), other)
            case 5:
                value = value / draw.choice([3.0, -1e-3, 7e5])
            case _:
                value = value + value
    return value


def squared_distance(first: Floats, second: Floats) -> Fraction:
    """Return the squared distance of two arrays, exactly."""
    pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
    return sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction(0))


def exactly(value: Sensitive) -> Floats:
    """Return the value of an auditor's handle."""
    found = private_value(value)
    assert found is not None
    return found


@pytest.mark.parametrize("relation", [REPLACE, ZERO, ADD])
def test_values_move_no_further_than_exact_sensitivities_and_their_rounding_say(
    relation: Adjacency,
) -> None:
    """Tried: five domains, losses of one's own that jump, five forms of rows, three parties."""
    shares = list[float]()
    for seed in range(18):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        count, width = draw.choice([4, 8, 30, 257]), draw.choice([1, 2, 3, 17])
        parties, bound = draw.choice([1, 2, 3]), draw.choice([1.0, 1e-3, 1e3, 0.7])
        domain = draw.choice(DOMAINS)
        rows, labels = some_rows(rng, (count, width), bound), some_labels(domain, rng, count)
        party_of = np.minimum(np.arange(count), parties - 1)
        place, kept = count - 1, np.ones(count, dtype=bool)
        turned, changed = rows.copy(), labels.copy()
        limits = dict[str, Any](adjacency=relation, row_bound=bound, label_domain=domain)
        limits["parties"] = tuple("abc"[:parties])
        if relation is ADD:
            kept[place], limits["n_min"] = False, 1
        elif relation is ZERO:
            turned[place] = 0.0
        else:
            turned[place] = -rows[place] if draw.random() < 0.5 else some_rows(rng, (1, width), 1.0)
            changed[place] = some_labels(domain, rng, 1)[0]
        form = FORMS[draw.choice([*FORMS])]
        pair = list[Sensitive]()
        try:
            for x, y, some in ((rows, labels, kept | True), (turned, changed, kept)):
                held = AuditDataset(form(x[some]), y[some], party_of=party_of[some], **limits)
                pair.append(program(held, seed))
        except DpledgerError:  # a public number out of range, whatever the records
            continue
        first, second = pair
        assert (first.sensitivity, first.rounding) == (second.sensitivity, second.rounding)
        moved = squared_distance(exactly(first), exactly(second))
        if not first.sensitivity.squared:
            assert moved == 0
            continue
        rounding = first.rounding
        priced = computed(first.sensitivity, rounding.error, first.rows, rounding.derivation)
        assert moved <= priced.squared, seed
        shares.append(math.sqrt(float(moved / priced.squared)))
    assert len(shares) > 10
    assert max(shares) > 0.1


def said(value: Sensitive) -> tuple[Floats, Any]:
    """Return what one seed's little noise makes of a value, and the sensitivity of its event."""
    size = float(value.sensitivity.root) * 2.0**-7 if value.sensitivity.squared else 1.0
    scale = max(size, float(value.rounding.magnitude) * 2.0**-41)
    how: dict[str, Any] = {"noise_std": scale}
    if value.sensitivity.norm is Norm.L1:
        how = {"mechanism": LaplaceNoise(scale)}
    sink = EventList()
    message = SamplingCurator(sink, SeededSampler(9)).release(value, round=1, release="x", **how)
    mechanism: Any = sink.events[0].mechanism
    return message, mechanism.sensitivity


def require_within(first: Sensitive, second: Sensitive) -> float:
    """Return how far two messages of one noise are apart over what their event says; at most 1."""
    (one, moves), (two, same) = said(first), said(second)
    assert moves == same
    gaps = np.abs(one - two)
    room = float(np.abs(one).max()) * one.size * 2.0**-51
    apart = float(gaps.sum()) if moves.norm is Norm.L1 else float(np.sqrt(np.square(gaps).sum()))
    if not moves.squared:
        assert apart <= room
        return 0.0
    share = max(0.0, apart - room) / float(moves.value)
    assert share <= 1 + 1e-9
    return share


def statistic(table: PrivateTable, draw: random.Random, norm: Norm) -> Sensitive:
    """Return one of a table's statistics."""
    column: Any = dict(table.shape.columns)["x"]
    edges = sorted({column.lower, *(draw.uniform(column.lower, column.upper) for _ in range(3))})
    match draw.randrange(6):
        case 0:
            return table.count(norm=norm)
        case 1:
            return table.sum("x", norm=norm)
        case 2:
            return table.mean("x", norm=norm)
        case 3:
            few = draw.choice([("x", "z"), ("x",), ("z", "x")])
            return table.second_moments(few, norm=norm)
        case 4:
            return table.histogram("x", edges, norm=norm)
        case _:
            return table.histogram("c", norm=norm)


@pytest.mark.parametrize("relation", [REPLACE, ZERO, ADD])
def test_statistics_of_columns_with_odd_bounds_move_no_further_than_printed(
    relation: Adjacency,
) -> None:
    """Tried: bounds of 1e30 and of a thousandth, steps of 2^-30 to 2, cells beyond both ends."""
    shares = list[float]()
    for seed in range(150):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        count, place = draw.choice([2, 3, 9, 300]), 0
        lower = draw.choice([-1e30, -1.5, 0.0, 1.0, 1e15, -7.0, 0.1])
        upper = lower + draw.choice([1e-3, 1.0, 2.0**20, 1e30, 3.0])
        norm = draw.choice([Norm.L1, Norm.L2])
        limits: dict[str, Any] = {"n_min": max(1, count - 1)} if relation is ADD else {}
        try:
            columns: dict[str, BoundedColumn | CategoryColumn] = {
                "x": BoundedColumn(lower, upper, draw.choice([0.0, 1.0, 0.125, 2.0**-30])),
                "z": BoundedColumn(-2.0, 5.0, draw.choice([0.0, 1.0])),
                "c": CategoryColumn(("a", "b", "d")),
            }
            pair = list[Sensitive]()
            odd = [lower, upper, 0.0, -0.0, 1e300, -1e300, (lower + upper) / 2]
            cells = {"x": rng.choice(odd, count), "z": rng.choice(odd, count)}
            cells["c"] = rng.integers(0, 3, count).astype(np.float64)
            other = {name: each.copy() for name, each in cells.items()}
            for name in other:
                if relation is ADD:
                    other[name] = np.delete(other[name], place)
                elif relation is ZERO:
                    other[name][place] = 0.0
                else:
                    other[name][place] = rng.integers(0, 3) if name == "c" else rng.choice(odd)
            for each in (cells, other):
                held = PrivateTable(each, columns, adjacency=relation, **limits)
                again = random.Random(seed)
                value = statistic(held, again, norm)
                for _ in range(again.randrange(3)):
                    value = concatenate(value * again.choice([0.3, -7.0]), value)
                pair.append(value)
            shares.append(require_within(*pair))
        except DpledgerError:
            continue
    assert len(shares) > 50
    assert max(shares) > 0.9


def of_columns(
    held: VerticalDataset,
    kind: int,
    problem: LocalProblem,
    point: Floats,
    target: Floats,
    loss: Any,
) -> Sensitive:
    """Return one of the functions of a party's columns, or of the labels."""
    match kind:
        case 0:
            return held.predictions("a", problem)
        case 1:
            return held.minimiser("a", problem)
        case 2:
            return held.scores("a", point)
        case 3:
            return held.dual(loss, target, penalty=1.0, tolerance=1e-3)
        case _:
            return held.mean_gradient("a", loss, point)


@pytest.mark.parametrize("relation", [REPLACE, ZERO])
def test_functions_of_columns_move_no_further_than_printed(relation: Adjacency) -> None:
    """Tried: penalties, moduli and radii of all sizes, one record alone, equal and opposite."""
    shares = list[float]()
    for seed in range(150):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        count, width, public = draw.choice([1, 2, 5, 40]), draw.choice([1, 2, 5]), seed % 3 == 0
        bound, radius = draw.choice([1.0, 0.1, 10.0]), draw.choice([1.0, 0.1, 20.0])
        rows = rng.normal(size=(count, width)) * draw.choice([1e-3, 1.0, 100.0])
        labels, turned = rng.choice([-1.0, 1.0], count), rows.copy()
        turned[0] = 0.0 if relation is ZERO else -10.0 * rows[0]
        changed = labels.copy()
        if not public and relation is REPLACE:
            changed[0] = -labels[0]
        problem = LocalProblem(
            pull=rng.choice([-2.0, 2.0], count),
            penalty=draw.choice([0.25, 1.0, 30.0]),
            modulus=draw.choice([1e-3, 0.1, 5.0]),
            slope_bound=draw.choice([1.0, 0.1]),
            radius=radius,
            tolerance=draw.choice([1e-3, 0.1]),
        )
        point, target = rng.normal(size=width) * 1e3, 10.0 * rng.normal(size=count)
        loss = draw.choice([Logistic(), SmoothedHinge(0.1), ClippedLogistic(0.3)])
        kind, pair = draw.randrange(5), list[Sensitive]()
        try:
            for x, y in ((rows, labels), (turned, changed)):
                held = VerticalDataset(
                    [x],
                    y,
                    adjacency=relation,
                    parties=("a",),
                    public_labels=public,
                    row_bound=bound,
                )
                pair.append(of_columns(held, kind, problem, point, target, loss))
            shares.append(require_within(*pair))
        except DpledgerError:
            continue
    assert len(shares) > 80
    assert max(shares) > 0.9


def hockey_stick(
    first: list[tuple[float, float]], second: list[tuple[float, float]], epsilon: float, std: float
) -> float:
    """Return delta at an epsilon of two mixtures of normal laws: (probability, mean) pairs."""
    grid = np.linspace(-30 * std, 30 * std, 20001)
    one, two = (
        sum(share * normal.pdf(grid, mean, std) for share, mean in each) for each in (first, second)
    )
    return float(np.trapezoid(np.maximum(one - np.exp(epsilon) * two, 0.0), grid))


@pytest.mark.parametrize(("count", "batch", "factor"), [(10, 3, 5.0), (10, 3, 1.0), (4, 2, 0.5)])
def test_a_hidden_batch_beside_all_records_costs_what_integrals_of_neighbours_say(
    count: int, batch: int, factor: float
) -> None:
    """A record replaced in a batch of fixed size, and in a mean of all beside it, in one number."""
    held = PrivateDataset(np.ones((count, 1)), np.ones(count), adjacency=REPLACE, row_bound=1.0)
    sink, std, worst = EventList(), 2.0, 0.0
    curator = SamplingCurator(sink, SystemSampler())
    drawn = curator.sample(held, FixedBatch(batch)).sum_gradient(LinearLoss(), np.zeros(1))
    value = drawn + factor * held.mean_gradient(LinearLoss(), np.zeros(1))
    curator.release(value, round=1, release="x", noise_std=std)
    assert isinstance(sink.events[0].mechanism, GaussianMixtureStep)
    rate, delta = batch / count, 1e-2
    epsilon = dp.guarantee(sink.events, delta=delta).epsilon.upper_float
    for own, new, other in product([-1.0, 0.0, 1.0], [-1.0, 1.0], [-1.0, 0.5, 1.0]):
        moved = (new - own) * factor / count
        before = [(1 - rate, 0.0), (rate, own - other)]
        after = [(1 - rate, moved), (rate, moved + new - other)]
        for pair in ((before, after), (after, before)):
            worst = max(worst, hockey_stick(*pair, epsilon, std))
    assert 0.9 * delta < worst <= delta * (1 + 1e-6)


def test_minimisers_are_as_near_as_their_tolerance_says() -> None:
    """Bisection in forty digits, of one coordinate; moduli from 0.01 on, and far starts."""
    worst = 0.0
    with mpmath.workdps(40):
        for seed in range(10):
            draw, rng = random.Random(seed), np.random.default_rng(seed)
            count, modulus = draw.choice([1, 3, 10]), 10.0 ** draw.uniform(-2, 1)
            rows, labels = rng.normal(size=(count, 1)), rng.choice([-1.0, 1.0], count)
            held = AuditDataset(rows, labels, adjacency=REPLACE, row_bound=4.0)
            linear, start = rng.normal(size=1), 10.0 * rng.normal(size=1)
            tolerance, found = 1e-13, None
            while found is None:
                try:
                    value = held.strongly_convex_argmin(
                        Logistic(),
                        modulus=modulus,
                        linear=linear,
                        tolerance=tolerance,
                        start=start,
                    )
                    found = float(exactly(value)[0, 0])
                except DpledgerError:
                    tolerance *= 2.0
            signed = [mpmath.mpf(a * y) for a, y in zip(rows[:, 0], labels, strict=True)]
            low, high = mpmath.mpf(-1e6), mpmath.mpf(1e6)
            for _ in range(110):
                at = (low + high) / 2
                slope = -sum(a / (1 + mpmath.exp(a * at)) for a in signed) / count
                slope += modulus * at + mpmath.mpf(float(linear[0]))
                low, high = (low, at) if slope > 0 else (at, high)
            worst = max(worst, float(abs(found - low) * modulus / tolerance))
    assert 0 < worst <= 1


def test_operator_norms_are_bounds_for_entries_of_all_sizes() -> None:
    """Against singular values in sixty digits: entries of all sizes, and matrices of rank 1."""
    rng, shares = np.random.default_rng(3), list[float]()
    with mpmath.workdps(60):
        for k in range(80):
            height, width = (int(n) for n in rng.integers(1, 5, 2))
            match k % 3:
                case 0:
                    matrix = rng.normal(size=(height, width)) * 10.0 ** rng.uniform(-300, 300)
                case 1:
                    odd = [0.0, 1.0, -1.0, 5e-324, 1e-308, 1e300, 1 / 3]
                    matrix = rng.choice(odd, size=(height, width))
                case _:
                    matrix = rng.normal(size=(height, 1)) @ rng.normal(size=(1, width))
            bound = operator_norm_up(matrix)
            if not np.any(matrix):
                assert bound == 0
                continue
            values = mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False)
            share = mpmath.mpf(bound.numerator) / bound.denominator / max(values)
            assert share >= 1 - mpmath.mpf(10) ** -40
            shares.append(float(share))
    assert max(shares) < 1.001


# --- what refusals show --------------------------------------------------------------------------

COUNT, CELL = 37, 0.4321098765
SECRETS = ("4321098765", "43.21098", "15.988", "(37,", "37)", " 37,")


def handles() -> tuple[PrivateDataset, PrivateTable]:
    """Return handles whose cells, sums and number of records are private, and known by sight."""
    rows, labels = np.full((COUNT, 2), CELL), np.where(np.arange(COUNT) % 2, 1.0, -1.0)
    held = PrivateDataset(rows, labels, adjacency=ADD, row_bound=1.0, n_min=20)
    cells, columns = {"a": np.full(COUNT, 100 * CELL)}, {"a": BoundedColumn(0, 100)}
    return held, PrivateTable(cells, columns, adjacency=ADD, n_min=20)


@dataclass(frozen=True)
class Talkative:
    """A loss that raises with the score that it does not like."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        return scores

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        if np.any(np.abs(scores - CELL) < 1e-6):
            raise ValueError(f"private: {scores}")
        return 0.5 * labels


class RunsDry(ExactSampler):
    """A source of words that ends after its trial."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def provenance(self) -> Provenance:
        return Provenance("exact-own", None)

    def words(self, count: int) -> Any:
        self.asked += 1
        if self.asked > 1:
            raise RuntimeError("no more words")
        return np.random.PCG64(1).random_raw(count)


class FullDisk:
    """A ledger that cannot write any more."""

    def reserve(self, *_: Any) -> int:
        return 0

    def commit(self, *_: Any) -> None:
        raise OSError("disk full")


def refusals() -> dict[str, Callable[[PrivateDataset, PrivateTable], object]]:
    """Return calls that are refused, or that fail, by name."""
    origin, many = np.zeros(2), np.zeros((3, 1, 2))

    def curator(sink: Any = None, sampler: Any = None) -> SamplingCurator:
        return SamplingCurator(sink or EventList(), sampler or SystemSampler())

    def release(value: Sensitive, by: SamplingCurator | None = None, **how: Any) -> object:
        how = how or {"noise_multiplier": 1.0}
        return (by or curator()).release(value, round=1, release="x", **how)

    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(0.1, 1e-5), adjacency=ADD))
    huge = np.broadcast_to(0.0, (10**6, 10**6, 1, 2))
    return {
        "many points": lambda held, _: release(held.mean_gradient(Logistic(), many)),
        "memory": lambda held, _: held.mean_gradient(Logistic(), huge),
        "points": lambda held, _: (
            held.mean_gradient(Logistic(), many) + held.mean_gradient(Logistic(), many[:2])
        ),
        "rounding": lambda held, _: held.mean_gradient(Logistic(), origin) + 1e30,
        "budget": lambda held, _: release(
            held.mean_gradient(Logistic(), origin),
            curator(ledger.run("a", configuration_hash="x")),
        ),
        "sampler": lambda held, _: release(
            held.mean_gradient(Logistic(), origin), curator(None, RunsDry())
        ),
        "reach": lambda held, _: release(held.sum_gradient(LinearLoss(), origin), noise_std=1e-20),
        "tolerance": lambda held, _: held.strongly_convex_argmin(
            Logistic(), modulus=1e-9, linear=origin, tolerance=1e-30, start=origin
        ),
        "centres": lambda held, _: CentredRows(held, np.zeros((5, 2)), radius=0.5).mean_gradient(
            Logistic(), many
        ),
        "disk": lambda held, _: release(
            held.mean_gradient(Logistic(), origin), curator(FullDisk()), noise_std=1e9
        ),
        "another's sample": lambda held, _: release(
            curator().sample(held, Poisson(0.5)).sum_gradient(Logistic(), origin)
        ),
        "no rule in l1": lambda _, table: table.mean("a", norm=Norm.L1),
        "edges": lambda _, table: table.quantile_costs("a", 0.5, [1.0, math.nan]),
        "float": lambda held, _: float(held.mean_gradient(Logistic(), origin)),
    }


def shown(value: object, depth: int = 0) -> Iterator[str]:
    """Yield what a debugger would print of a variable, and of what it is made of."""
    yield repr(value)[:5000]
    if depth < 2 and isinstance(value, tuple | list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from shown(each, depth + 1)


@pytest.mark.parametrize("name", [*refusals()])
def test_no_variable_of_a_refusal_shows_a_cell_or_how_many_records_there_are(name: str) -> None:
    held, table = handles()
    with pytest.raises((DpledgerError, MemoryError, OSError)) as caught:
        refusals()[name](held, table)
    assert not any(secret in str(caught.value) for secret in SECRETS)
    error: BaseException | None = caught.value
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename != __file__:
                for variable, content in trace.tb_frame.f_locals.items():
                    for text in shown(content):
                        assert not any(secret in text for secret in SECRETS), variable
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def test_a_loss_that_raises_with_a_record_s_score_is_not_heard() -> None:
    held, _ = handles()
    gradient = held.mean_gradient(Talkative(), np.array([1.0, 0.0]))
    message = SamplingCurator(EventList(), SystemSampler()).release(
        gradient, round=1, release="x", noise_std=1e-3
    )
    assert float(np.abs(message).max()) < 0.05  # all slopes are 0


CELLS = [31.41592, 44.27182, 67.14142, 12.34567]


def containers() -> dict[str, Any]:
    """Return private numbers in containers of all kinds, of which most are taken nowhere."""
    rows = np.array([CELLS, CELLS[::-1]]).T
    pairs = [(a, b) for a, b in rows]
    return {
        "numbers": np.array(CELLS),
        "rows": rows,
        "list": CELLS,
        "rows in lists": rows.tolist(),
        "tuple": tuple(CELLS),
        "dict": {"a": CELLS, "b": CELLS},
        "keys": dict.fromkeys(CELLS, 1.0),
        "set": set(CELLS),
        "fields": np.array(pairs, dtype=[("a", "f8"), ("b", "f8")]),
        "objects": np.array([["31.41592 of Smith", 44.27182]] * 4, dtype=object),
        "texts": np.array(["31.41592", "x", "44.27182", "1"]),
        "complex": rows + 1j,
        "ragged": [[31.41592], [1.0, 2.0], [3.0], [4.0]],
        "csr": sparse.csr_array(rows),
        "lil": sparse.lil_array(rows),
        "text": "31.41592 of Smith",
        "number": 31.41592,
        "masked": np.ma.masked_array(rows, rows > 40),
        "huge": [10**400] * 4,
        "no number": np.array([math.nan, 31.41592, 1.0, 2.0]),
        "errors": [ValueError("31.41592 of Smith")] * 4,
        "matrix": np.asmatrix(rows),
        "none": None,
    }


def takers() -> dict[str, Callable[[Any], object]]:
    """Return calls that are handed private arrays, one of which is anything else."""
    rows, labels = np.eye(4)[:, :2], np.array([1.0, -1.0, 1.0, -1.0])
    shape = DataShape(("a", "b"), 4, 2, 1.0, REPLACE)
    bound: dict[str, Any] = {"adjacency": REPLACE, "row_bound": 1.0}
    vertical: dict[str, Any] = {"adjacency": REPLACE, "parties": ("a",), "public_labels": True}
    fit: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-3, "adjacency": REPLACE, "clip": True}
    fit |= {"classes": (-1, 1), "rounds": 1}
    model = PrivateAdmmClassifier(**fit).fit(rows, labels)
    columns = {"a": BoundedColumn(0, 90), "b": BoundedColumn(0, 90)}
    return {
        "rows": lambda given: PrivateDataset(given, labels, **bound),
        "labels": lambda given: PrivateDataset(rows, given, **bound),
        "classes": lambda given: PrivateDataset(rows, given, label_domain=ClassLabels(3), **bound),
        "parties": lambda given: PrivateDataset(
            rows, labels, parties=("a", "b"), party_of=given, **bound
        ),
        "blocks": lambda given: PrivateDataset(RowBlocks((4, 2), lambda _: given), labels, **bound),
        "a party's": lambda given: LocalDataset(shape, ("a",), given, labels),
        "a column": lambda given: PrivateTable(
            {"a": given, "b": labels}, columns, adjacency=REPLACE
        ),
        "words": lambda given: PrivateTable(
            {"a": given}, {"a": CategoryColumn(("u", "v"))}, adjacency=REPLACE
        ),
        "columns": lambda given: VerticalDataset([given], labels, **vertical),
        "all columns": lambda given: VerticalDataset(given, labels, **vertical),
        "labels of columns": lambda given: VerticalDataset([rows], given, **vertical),
        "weights": lambda given: WeightedLabels(SIGNS).joined(labels, given),
        "X": lambda given: PrivateAdmmClassifier(**fit).fit(given, labels),
        "y": lambda given: PrivateAdmmClassifier(**fit).fit(rows, given),
        "sample_weight": lambda given: PrivateAdmmClassifier(**fit).fit(rows, labels, given),
        "scored": lambda given: model.score(rows, given),
        "predicted": lambda given: model.predict(given),
    }


@pytest.mark.parametrize("name", [*takers()])
def test_what_is_handed_in_the_wrong_container_is_refused_without_its_cells(name: str) -> None:
    """Neither the sentence nor anything that an error carries shows a number or a word of them."""
    take, refused = takers()[name], 0
    for given in containers().values():
        try:
            take(given)
        except Exception as error:
            refused += 1
            shown = f"{error} {error.args!r} {vars(error)!r} {error.__cause__!r}"
            assert not any(str(cell)[:5] in shown for cell in CELLS)
            assert "Smith" not in shown
    assert refused > 5


@pytest.mark.parametrize(
    "algorithm", [AdmmAlgorithm.CONSENSUS, AdmmAlgorithm.PVP_ADMM, AdmmAlgorithm.DP_SGD]
)
def test_nothing_that_a_fit_says_beside_its_messages_tells_how_many_records_there_are(
    algorithm: AdmmAlgorithm,
) -> None:
    """Under add-remove-one: a record less, and the same noise, rounds, promise and certificate."""
    rng, facts = np.random.default_rng(0), list[tuple[Any, ...]]()
    rows = rng.uniform(-0.5, 0.5, (300, 2))
    labels = np.where(rows[:, 0] > 0, 1, -1)
    for count in (300, 299):
        model = PrivateAdmmClassifier(
            epsilon=5.0,
            delta=1e-3,
            adjacency=ADD,
            algorithm=algorithm,
            rounds=2,
            n_min=100,
            n_parties=2,
            classes=(-1, 1),
        ).fit(rows[:count], labels[:count], party_of=np.arange(count) % 2)
        document = model.certificate_.to_json_bytes().decode()
        promised = (model.privacy_.epsilon.upper_float, model.privacy_.assumptions)
        facts.append((model.noise_multiplier_, model.n_iter_, *promised))
        facts[-1] += (re.sub(r"\b[0-9a-f]{64}\b", "a hash", document),)
    assert facts[0] == facts[1]


# --- ledgers -------------------------------------------------------------------------------------

RUNS = [
    [[""]],
    [[""], ["x"]],
    [["x"], [""]],
    [["x"], ["y"]],
    [["x", "y"], ["x"]],
    [["", "x"], ["y"]],
    [["x", "x", "y"], ["y", "y", "x"]],
]


def spend(ledger: MemoryLedger, runs: list[list[str]]) -> None:
    """Release one gradient a name, of the same records; an empty name is of a handle without."""
    rows, labels = np.tile([[0.6, 0.8]], (40, 1)), np.where(np.arange(40) % 3 > 0, 1.0, -1.0)
    for number, names in enumerate(runs):
        sink = ledger.run(str(number), configuration_hash="x")
        for at, name in enumerate(names, 1):
            named: dict[str, Any] = {"parties": (name,)} if name else {}
            held = PrivateDataset(rows, labels, adjacency=REPLACE, row_bound=1.0, **named)
            SamplingCurator(sink, SystemSampler()).release(
                held.mean_gradient(LinearLoss(), np.zeros(2)),
                round=at,
                release="g",
                noise_multiplier=2.0,
            )


@pytest.mark.parametrize("runs", RUNS)
def test_a_budget_adds_up_runs_whatever_names_their_parties_have(runs: list[list[str]]) -> None:
    """Within a run the dearest name pays, beside what names nobody; over runs all of it."""

    def price(names: list[str]) -> int:
        named = [names.count(name) for name in {*names} - {""}]
        return names.count("") + max(named, default=0)

    step = GaussianStep(declared(1, "one", adjacency=REPLACE), 2.0)
    event = Event(step, Context((), 1, "g", Audience.SERVER))
    whole = dp.guarantee([event] * sum(map(price, runs)), delta=1e-5).epsilon.upper_float
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(whole * (1 + 1e-9), 1e-5), adjacency=REPLACE))
    spend(ledger, runs)
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(whole * 0.999, 1e-5), adjacency=REPLACE))
    with pytest.raises(BudgetExceeded):
        spend(ledger, runs)


# --- runs and their files ------------------------------------------------------------------------

SCHEMA = """
row_bound = 1.0
on_outside = "clip"
drop_missing = true
columns = [
    {kind = "numeric", name = "age", lower = 18, upper = 90},
    {kind = "categorical", name = "town", categories = ["north", "south"]},
    {kind = "label", name = "income", positive = ["high"], negative = ["low"]},
]
"""
RUN = """
[data]
files = ["people.csv"]
schema = "people.schema.toml"
train_records = 100
held_out = 0.2
parties = 2
[privacy]
adjacency = "add-remove-one"
epsilon = 1.0
delta = 1e-4
[solver]
algorithm = "consensus-admm"
rounds = 1
intercept = true
[noise]
sampler = "philox"
seed = 5
"""


def people(count: int, *, without: int | None = None, seed: int = 1) -> str:
    """Return a table of made-up people, one of them left out where asked."""
    rng = random.Random(seed)
    lines = [
        f"{rng.randint(18, 90)},{rng.choice(['north', 'south'])},{rng.choice(['high', 'low'])}"
        for _ in range(count)
    ]
    return "\n".join(["age,town,income", *(x for k, x in enumerate(lines) if k != without)]) + "\n"


def test_what_a_run_writes_for_everybody_tells_nothing_of_how_many_records_there_are(
    tmp_path: Path,
) -> None:
    """A record less: page, configuration and certificate differ in times and hashes alone."""
    texts = list[list[str]]()
    for name, without in (("all", None), ("less", 17)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "people.csv").write_text(people(400, without=without))
        (folder / "people.schema.toml").write_text(SCHEMA)
        (folder / "run.toml").write_text(RUN)
        out = folder / "out"
        options = RunOptions(out=out, attack=False, baselines=False, crosscheck=False)
        dp.run(folder / "run.toml", options)
        found = list[str]()
        for file in ("public.html", "configuration.toml", "certificate.json", "schema.toml"):
            text = re.sub(r"\b[0-9a-f]{64}\b", "a hash", (out / file).read_text())
            found += re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]*", "a time", text).splitlines()
        texts.append(found)
        for file in ("ledger.sqlite", "report.json", "report.html", "configuration.holder.toml"):
            assert not stat.S_IMODE((out / file).stat().st_mode) & 0o077
        assert not (out / "messages.sqlite").exists()
    assert len(texts[0]) > 100
    assert texts[0] == texts[1]


FEDERATION = """
[federation]
parties = ["north", "south"]
records = [90, 60]
schema = "people.schema.toml"
[privacy]
adjacency = "replace-one"
epsilon = 1.0
delta = 1e-3
[solver]
algorithm = "consensus-admm"
rounds = ROUNDS
"""
PARTY = """
[party]
name = "NAME"
run = "run.toml"
files = ["NAME.csv"]
folder = "FOLDER"
[noise]
sampler = "philox"
seed = 7
[policy]
epsilon = 1.5
delta = 1e-3
adjacency = "replace-one"
algorithms = ["consensus-admm"]
"""


def federation(folder: Path, *, rounds: int, shared: bool = False) -> list[Path]:
    """Write a federation of two parties into a folder; return the parties' files."""
    (folder / "people.schema.toml").write_text(SCHEMA)
    (folder / "run.toml").write_text(FEDERATION.replace("ROUNDS", str(rounds)))
    for seed, (name, count) in enumerate((("north", 90), ("south", 60))):
        (folder / f"{name}.csv").write_text(people(count, seed=seed))
        home = "both" if shared else name
        text = PARTY.replace("NAME", name).replace("FOLDER", home)
        (folder / f"{name}.toml").write_text(text)
    return [folder / "north.toml", folder / "south.toml"]


def test_a_party_s_seed_serves_one_federation_only(tmp_path: Path) -> None:
    """Another plan with the same seed is refused by the ledger, and pays for nothing."""
    for rounds, out in ((2, "first"), (1, "second")):
        files = federation(tmp_path, rounds=rounds)
        refused = pytest.raises(DpledgerError, match="did not pay")
        with refused if out == "second" else nullcontext():
            federate(
                tmp_path / "run.toml",
                engine=Engine.IN_PROCESS,
                out=tmp_path / out,
                parties=(*files,),
            )
    with SqliteLedger(tmp_path / "north" / "ledger.sqlite") as ledger:
        assert len([*ledger.reservations()]) == 1


def test_two_parties_that_name_one_folder_are_refused_before_anything_is_paid(
    tmp_path: Path,
) -> None:
    files = federation(tmp_path, rounds=1, shared=True)
    with pytest.raises(DpledgerError, match="another process holds it"):
        federate(
            tmp_path / "run.toml",
            engine=Engine.IN_PROCESS,
            out=tmp_path / "out",
            parties=(*files,),
        )
    with SqliteLedger(tmp_path / "both" / "ledger.sqlite") as ledger:
        assert not [*ledger.reservations()]
