"""Laws of handles, solvers, losses of one's own, files and runs, tried on many neighbours.

Neighbours are given the same noise, so that whatever differs was computed from the records;
minimisers are compared with those of fifty digits, and files of runs with each other.
"""

from __future__ import annotations

import itertools
import random
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import dpledger as dp
from dpledger.accounting import Budget, BudgetExceeded, MemoryLedger
from dpledger.accounting.ledger.rows import LedgerError
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.audits import AuditDataset
from dpledger.data import load_records, load_table, split_records
from dpledger.data.schema import parse_schema
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    Audience,
    BoundedColumn,
    CategoryColumn,
    ClassLabels,
    Context,
    DiscreteGaussianNoise,
    DpledgerError,
    Event,
    EventList,
    ExponentialMechanism,
    GaussianMixtureStep,
    InvalidParameter,
    LaplaceNoise,
    LocalProblem,
    Norm,
    PrivateDataset,
    PrivateTable,
    RandomisedResponse,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    SystemSampler,
    UnprotectedReleaseError,
    VerticalDataset,
    concatenate,
    linear_map,
)
from dpledger.mechanisms.ball_ridge import BallRidge, require_reachable
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.clipping import project_to_ball
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.row_blocks import real_numbers
from dpledger.mechanisms.sensitivity import mean_of_bounded, sum_of_bounded
from dpledger.runs import RunOptions
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.solvers import ClippedLogistic, LinearLoss, Logistic, Multinomial, SmoothedHinge

Floats = NDArray[np.float64]
REPLACE, ZERO, ADD = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE

# --- random programs ------------------------------------------------------------------------------


def message(value: Sensitive, multiplier: float) -> tuple[Floats, Any]:
    """Return what is told of a value, with the noise of one seed, and the event's sensitivity."""
    sink = EventList()
    curator = SamplingCurator(sink, SeededSampler(7))
    if value.sensitivity.norm is Norm.L1:
        noise = LaplaceNoise(float(value.sensitivity.root) * multiplier)
        told = curator.release(value, mechanism=noise, round=1, release="told")
    else:
        told = curator.release(value, noise_multiplier=multiplier, round=1, release="told")
    event: Any = sink.events[0].mechanism
    return told, event.sensitivity


def share(first: Floats, second: Floats, sensitivity: Any) -> float:
    """Return how far two messages are apart, over their bound, less what doubles round."""
    gaps = [
        abs(Fraction(a) - Fraction(b))
        for a, b in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
    ]
    l1 = sensitivity.norm is Norm.L1
    moved = float(sum(gaps)) if l1 else float(sum(gap**2 for gap in gaps)) ** 0.5
    room = float(max(np.abs(first).max(), np.abs(second).max())) * first.size * 2.0**-52
    return max(0.0, moved - room) / float(sensitivity.root)


Columns = tuple[Floats, Floats]


def vertical_program(draw: random.Random, rng: np.random.Generator, relation: Adjacency) -> float:
    """Return the largest share that a record's columns or label move of one party's releases."""
    n, width, bound = (
        draw.choice([2, 3, 8]),
        draw.choice([1, 2, 5]),
        10.0 ** draw.choice([-3, 0, 2]),
    )
    slope, radius = 10.0 ** draw.uniform(-2, 1), 10.0 ** draw.uniform(-2, 1)
    problem = LocalProblem(
        pull=rng.normal(size=n) * 3.0 * slope,
        penalty=10.0 ** draw.uniform(-3, 3),
        modulus=10.0 ** draw.uniform(-4, 2),
        slope_bound=slope,
        radius=radius,
        tolerance=1e-3 * slope * bound,
    )
    other, rows = rng.normal(size=(n, 2)), rng.normal(size=(n, width)) * bound
    labels = rng.choice([-1.0, 1.0], size=n)
    asked = draw.choice(["predictions", "minimiser", "scores", "dual", "both"])

    def value(held: Columns) -> Sensitive:
        data = VerticalDataset(
            [held[0], other],
            held[1],
            adjacency=relation,
            row_bound=bound,
            parties=("a", "b"),
            public_labels=False,
        )
        point = np.linspace(-1.0, 2.0, width)
        match asked:
            case "predictions":
                return data.predictions("a", problem)
            case "minimiser":
                return data.minimiser("a", problem)
            case "scores":
                return 0.3 * data.scores("a", point) - 1.5
            case "dual" if relation is REPLACE:
                return data.dual(Logistic(), problem.pull, penalty=0.7, tolerance=1e-4)
            case _:
                return data.predictions("a", problem) * 2.0 + data.scores("a", point)

    def neighbour() -> Columns:
        moved, told, k = rows.copy(), labels.copy(), int(rng.integers(n))
        moved[k] = 0.0 if relation is ZERO else rng.normal(size=width) * bound * 10.0
        if relation is REPLACE and draw.random() < 0.5:
            told[k] = -told[k]
        return moved, told

    return largest_share(value, (rows, labels), neighbour, draw)


def table_program(draw: random.Random, rng: np.random.Generator, relation: Adjacency) -> float:
    """Return the largest share that a record moves of a table's statistics, in either norm."""
    n, norm = draw.choice([3, 20]), draw.choice([Norm.L1, Norm.L2])
    low, high = draw.choice([(-1e6, 0.2), (-3.7, 1e5), (0.1, 0.2), (2.5, 7.0), (0.0, 1e9)])
    columns = {
        "a": BoundedColumn(low, high, draw.choice([0.0, 2.0**-10])),
        "b": BoundedColumn(-2.5, 1.25),
        "c": CategoryColumn(("x", "y", "z")),
    }
    cells = {
        "a": rng.uniform(low - 1.0, high + 1.0, n),
        "b": rng.normal(size=n) * 2.0,
        "c": rng.integers(0, 3, n).astype(np.float64),
    }
    bounds: dict[str, int] = {"n_min": n - 1, "n_max": n + 5} if relation is ADD else {}
    asked, between = draw.randrange(6), np.linspace(low, high, 17)

    def value(held: Mapping[str, Floats]) -> Sensitive:
        table = PrivateTable(held, columns, adjacency=relation, **bounds)  # type: ignore[arg-type]
        words = np.array([[1.0, -1.0, 0.5], [2.0, 0.0, 1.0]])
        return [
            lambda: table.sum("a", norm=norm) * 0.37,
            lambda: table.mean("a", norm=norm),
            lambda: table.second_moments(["a", "b"], norm=norm),
            lambda: table.histogram("a", between[1:-1].tolist(), norm=norm),
            lambda: table.quantile_costs("a", 0.333, between.tolist()),
            lambda: concatenate(
                linear_map(words, table.histogram("c", norm=norm)), table.sum("b", norm=norm)
            ),
        ][asked]()

    def neighbour() -> Mapping[str, Floats]:
        k = int(rng.integers(n))
        if relation is ADD:
            return {name: np.delete(own, k) for name, own in cells.items()}
        moved = {name: own.copy() for name, own in cells.items()}
        new = (0.0, 0.0, 0.0)
        if relation is REPLACE:
            new = (rng.choice([low, high]), rng.choice([-2.5, 1.25]), float(rng.integers(0, 3)))
        for name, cell in zip("abc", new, strict=True):
            moved[name][k] = cell
        return moved

    return largest_share(value, cells, neighbour, draw)


Rows = tuple[Floats, Floats, NDArray[np.intp]]


def rows_program(draw: random.Random, rng: np.random.Generator, relation: Adjacency) -> float:
    """Return the largest share that a record moves of minimisers and of centred, scaled rows."""
    parties = draw.choice([1, 2, 3])
    n, width, bound = 2 * parties + draw.choice([0, 5, 40]), draw.choice([1, 2, 6]), 10.0
    bound **= draw.choice([-2, 0, 1])
    outputs = draw.choice([1, 3])
    loss: Any = Multinomial(3)
    if outputs == 1:
        loss = draw.choice([Logistic(), ClippedLogistic(0.2), SmoothedHinge(0.3)])
    labels = rng.integers(0, 3, n) if outputs == 3 else rng.choice([-1, 1], size=n)
    held = (
        rng.normal(size=(n, width)) * bound * 10.0 ** rng.uniform(-3, 1, size=(n, 1)),
        labels.astype(np.float64),
        np.arange(n) % parties,
    )
    point = rng.normal(size=(parties, width * outputs)) * 10.0 ** draw.uniform(-2, 2) / bound
    weights = None if draw.random() < 0.5 else rng.choice([0.5, -2.0, 3.0], size=parties)
    centre = rng.normal(size=width)
    centre *= 1.5 * bound * draw.random() / float(np.linalg.norm(centre))
    radius = bound * draw.choice([0.05, 0.5, 2.0])
    scale = np.minimum(rng.uniform(0.1, 8.0, size=width), 60.0 * radius / bound)
    asked, thin = draw.randrange(4), draw.random() < 0.3

    def value(rows: Rows) -> Sensitive:
        data = PrivateDataset(
            sparse.csr_array(rows[0]) if thin else rows[0],
            rows[1],
            adjacency=relation,
            row_bound=bound,
            party_of=rows[2],
            parties=tuple("abc"[:parties]),
            label_domain=ClassLabels(3) if outputs == 3 else SIGNS,
            n_min=n // parties - 1 if relation is ADD else None,
        )
        if asked == 0:
            return data.strongly_convex_argmin(
                loss,
                modulus=0.3 * bound**2,
                linear=point * bound**2 * 0.1,
                tolerance=1e-3 * bound / n,
                start=point * 0.0,
                weights=weights,
            )
        centred = CentredRows(data, centre, radius=radius, scale=scale)
        if asked == 1:
            return centred.mean_gradient(loss, point, weights=weights)
        if asked == 2:
            return centred.mean_squares(weights=weights)
        return concatenate(
            centred.mean_gradient(loss, point) * 0.5, data.mean_gradient(loss, point)
        )

    def neighbour() -> Rows:
        k = int(rng.integers(n))
        if relation is ADD:
            return np.delete(held[0], k, axis=0), np.delete(held[1], k), np.delete(held[2], k)
        rows, told = held[0].copy(), held[1].copy()
        rows[k] = 0.0
        if relation is REPLACE:
            rows[k] = rng.choice([-1.0, 5.0]) * held[0][k] + centre
            told[k] = rng.integers(0, 3) if outputs == 3 else -told[k]
        return rows, told, held[2]

    return largest_share(value, held, neighbour, draw)


def largest_share(
    value: Callable[[Any], Sensitive], held: Any, neighbour: Callable[[], Any], draw: random.Random
) -> float:
    """Return the largest share of the price that six neighbours move by; 0 where it is refused."""
    multiplier = draw.choice([0.01, 1.0, 30.0])
    try:
        first, price = message(value(held), multiplier)
    except DpledgerError:
        return 0.0
    found = 0.0
    for _ in range(6):
        try:
            second, again = message(value(neighbour()), multiplier)
        except DpledgerError:
            continue  # a party without a record, say
        assert again == price  # a matter of public numbers
        found = max(found, share(first, second, price))
    return found


@pytest.mark.parametrize("relation", [REPLACE, ZERO, ADD])
@pytest.mark.parametrize("program", [vertical_program, table_program, rows_program])
def test_no_program_of_columns_tables_or_centred_rows_moves_further_than_its_price(
    program: Callable[[random.Random, np.random.Generator, Adjacency], float], relation: Adjacency
) -> None:
    if program is vertical_program and relation is ADD:
        relation = REPLACE  # their number is a dimension
    shares = [
        program(random.Random(seed), np.random.default_rng(seed), relation) for seed in range(30)
    ]
    assert max(shares) <= 1.0
    assert max(shares) > 0.3  # some neighbours use the price up


# --- minimisers, against fifty digits -------------------------------------------------------------


def on_the_ball(
    rows: Floats, pull: Floats, penalty: float, modulus: float, radius: float
) -> mpmath.matrix:
    """Return the minimiser of a ridge problem on a ball, by halving the boundary's shift."""
    wide = mpmath.matrix(rows.tolist())
    linear = -(wide.T * mpmath.matrix(pull.tolist()))
    gram, one = mpmath.mpf(penalty) * (wide.T * wide), mpmath.eye(rows.shape[1])

    def at(shift: Any) -> mpmath.matrix:
        return mpmath.lu_solve(gram + (mpmath.mpf(modulus) + shift) * one, linear)

    inside = at(mpmath.mpf(0))
    if mpmath.norm(inside) <= radius:
        return inside
    low, high = mpmath.mpf(0), mpmath.norm(linear) / radius
    for _ in range(170):
        middle = (low + high) / 2
        low, high = (middle, high) if mpmath.norm(at(middle)) > radius else (low, middle)
    return at(high)


@pytest.mark.parametrize("kind", ["random", "one direction", "equal values", "all sizes"])
def test_every_ridge_on_a_ball_is_within_the_least_tolerance_that_is_taken(kind: str) -> None:
    worst = 0.0
    for seed in range(6):
        rng, draw = np.random.default_rng(seed), random.Random(f"{kind} {seed}")
        n, width, bound = (
            draw.choice([2, 5, 12]),
            draw.choice([1, 2, 4]),
            10.0 ** draw.uniform(-3, 3),
        )
        rows = rng.normal(size=(n, width))
        match kind:
            case "one direction":
                rows = np.outer(rows[:, 0], rng.normal(size=width)) + 1e-9 * rows
            case "equal values":
                rows = np.eye(max(n, width))[:n, :width] * (1.0 + 1e-14 * rows)
            case "all sizes":
                rows *= 10.0 ** rng.uniform(-12, 0, size=(n, 1))
        rows = project_to_ball(rows * bound, bound)
        slope, radius = 10.0 ** draw.uniform(-3, 3), 10.0 ** draw.uniform(-3, 3)
        penalty, modulus = 10.0 ** draw.uniform(-4, 6), 10.0 ** draw.uniform(-8, 3)
        pull = np.clip(rng.normal(size=n) * 2.0 * slope, -slope, slope)
        with pytest.raises(InvalidParameter) as refused:
            require_reachable(
                0.0,
                count=n,
                width=width,
                row_bound=bound,
                sizes=float(np.abs(pull).sum()) * (1.0 + 1e-9),
                penalty=penalty,
                modulus=modulus,
                radius=radius,
            )
        least = re.search(r"at least ([0-9.e+-]+),", str(refused.value))
        assert least is not None
        tolerance = float(least[1]) * 1.01
        found = BallRidge(rows, bound).minimiser(
            pull, penalty=penalty, modulus=modulus, radius=radius
        )
        with mpmath.workdps(50):
            exact = on_the_ball(rows, pull, penalty, modulus, radius)
            off = mpmath.matrix(found.tolist()) - exact
            near = mpmath.norm(off) * modulus / tolerance
            scores = mpmath.norm(mpmath.matrix(rows.tolist()) * off)
            worst = max(worst, near, 2 * scores * mpmath.sqrt(penalty * modulus) / tolerance)
    assert worst <= 1.0


def slope_of(loss: Any, label: float, score: Any) -> Any:
    """Return a shipped loss's slope in fifty digits."""
    if isinstance(loss, SmoothedHinge):
        short = (1 - label * score) / (2 * mpmath.mpf(loss.width)) + mpmath.mpf(1) / 2
        return -label * max(mpmath.mpf(0), min(mpmath.mpf(1), short))
    plain = -label / (1 + mpmath.exp(label * score))
    bound = loss.bound if isinstance(loss, ClippedLogistic) else 1
    return max(-mpmath.mpf(bound), min(mpmath.mpf(bound), plain))


@pytest.mark.parametrize(
    "loss", [Logistic(), ClippedLogistic(0.3), SmoothedHinge(0.05), SmoothedHinge(4.0)], ids=repr
)
def test_every_minimiser_has_a_gradient_within_its_tolerance(loss: Any) -> None:
    ran = 0
    for seed in range(8):
        rng, draw = np.random.default_rng(seed), random.Random(f"{loss} {seed}")
        n, width, bound = (
            draw.choice([1, 2, 5]),
            draw.choice([1, 2, 3]),
            10.0 ** draw.uniform(-2, 2),
        )
        given = rng.normal(size=(n, width)) * bound * 10.0 ** rng.uniform(-2, 1, size=(n, 1))
        labels = rng.choice([-1.0, 1.0], size=n)
        modulus = 10.0 ** draw.uniform(-2, 2) * bound**2
        linear = rng.normal(size=width) * bound * 10.0 ** draw.uniform(-3, 3)
        start = rng.normal(size=width) * 10.0 ** draw.uniform(-3, 3)
        data = AuditDataset(given, labels, adjacency=REPLACE, row_bound=bound)
        tolerance = 1e-300
        for _ in range(2):
            try:
                asked = data.strongly_convex_argmin(
                    loss, modulus=modulus, linear=linear, tolerance=tolerance, start=start
                )
            except InvalidParameter as refused:
                least = re.search(r"well above ([0-9.e+-]+),", str(refused))
                assert least is not None
                tolerance = float(least[1]) * 1.5
                continue
            found = private_value(asked)
            assert found is not None
            with mpmath.workdps(50):
                rows = mpmath.matrix(project_to_ball(given, bound).tolist())
                point = mpmath.matrix(found[0].tolist())
                scores = rows * point
                slopes = [slope_of(loss, labels[k], scores[k]) / n for k in range(n)]
                gradient = rows.T * mpmath.matrix(slopes) + modulus * point
                gradient += mpmath.matrix(linear.tolist())
                assert mpmath.norm(gradient) <= tolerance
            ran += 1
    assert ran >= 4


def off(value: Sensitive, exact: list[Fraction]) -> float:
    """Return how far a value is from what it stands for, over what is priced."""
    computed = private_value(value)
    assert computed is not None
    pairs = zip(computed[0].tolist(), exact, strict=True)
    gap = float(sum((Fraction(a) - b) ** 2 for a, b in pairs)) ** 0.5
    return gap / float(value.rounding.error) if gap else 0.0


@pytest.mark.parametrize("alike", [False, True])
def test_centred_and_scaled_rows_are_within_the_rounding_error_that_is_priced(alike: bool) -> None:
    """Rows close to their centre lose the digits that they have in common, times the scale."""
    found = []
    for seed in range(12):
        rng, draw = np.random.default_rng(seed), random.Random(seed)
        n, width, bound = (
            draw.choice([2, 7, 40]),
            draw.choice([1, 2, 5]),
            10.0 ** draw.choice([-40, 0]),
        )
        given = rng.normal(size=(n, width)) * bound * (1e-6 if alike else 0.3)
        given += rng.normal(size=width) * bound * 0.2
        rows = [list(map(Fraction, row)) for row in project_to_ball(given, bound).tolist()]
        centre, scale = rows[0], rng.uniform(0.1, 1.0, size=width) * draw.choice([1, 8, 60])
        moved = [
            [Fraction(s) * (a - m) for s, a, m in zip(scale.tolist(), row, centre, strict=True)]
            for row in rows
        ]
        longest = max(float(sum(x**2 for x in row)) ** 0.5 for row in moved)
        radius = max(longest * 1.001, bound * 0.02, float(scale.max()) * bound / 63.9)
        data = AuditDataset(given, np.ones(n), adjacency=REPLACE, row_bound=bound)
        centred = CentredRows(data, np.array(list(map(float, centre))), radius=radius, scale=scale)
        means = [sum((row[j] for row in moved), Fraction(0)) / n for j in range(width)]
        squares = [sum((row[j] ** 2 for row in moved), Fraction(0)) / n for j in range(width)]
        found.append(off(centred.mean_gradient(LinearLoss(), np.zeros(width)), means))
        found.append(off(centred.mean_squares(), squares))
    assert 0.0 < max(found) <= 1.0


# --- losses of one's own --------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseOfItsOwn:
    """The logistic loss with no say for a record without a score: its slope is 0 there alone."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(1, 4)
    label_gap_bound = Fraction(1)

    def value(self, scores: Floats, labels: Floats) -> Floats:
        """Is not asked for."""
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes."""
        slope = -labels / (1.0 + np.exp(np.clip(labels * scores, -700.0, 700.0)))
        return np.where(scores == 0.0, 0.0, slope)


def test_a_loss_that_falls_at_a_score_of_nothing_is_not_minimised() -> None:
    """Rows that no coordinate meets would stay where they are, until one record moves them all."""
    rows = np.tile([0.0, 1.0], (200, 1))
    data = PrivateDataset(rows, np.ones(200), adjacency=REPLACE, row_bound=1.0)
    data.mean_gradient(CaseOfItsOwn(), np.zeros(2))  # whose price needs no convexity
    with pytest.raises(InvalidParameter, match="convex"):
        data.strongly_convex_argmin(
            CaseOfItsOwn(),
            modulus=0.1,
            linear=np.array([0.05, 0.0]),
            tolerance=1e-5,
            start=np.zeros(2),
        )


# --- forms of numbers -----------------------------------------------------------------------------


_MORE: tuple[Any, ...] = (
    *(0.5, "0.5", b"0.5", 2, 2**70, True, Decimal("0.5"), Fraction(1, 2), None, float("nan")),
    *(np.float32(0.5), np.longdouble(0.5), np.float16(0.5), np.int64(-1), np.array(0.5)),
    *(np.ma.masked, np.timedelta64(1, "s"), 1j),
)


@pytest.mark.filterwarnings("ignore:.*masked element")
@pytest.mark.parametrize("form", [list, np.array, lambda cells: np.array(cells, dtype=object)])
@pytest.mark.parametrize(
    "cell",
    [
        *(np.float32(0.1), np.float16(0.1), 2**53 + 1, Decimal("0.1"), True, "0.1", b"0.1"),
        *(Fraction(1, 3), np.int8(100), np.uint64(2**64 - 1)),
    ],
    ids=repr,
)
def test_no_cell_beside_others_changes_what_these_are_read_as(
    cell: Any, form: Callable[[list[Any]], Any]
) -> None:
    read = set()
    for more in (cell, *_MORE):
        try:
            found = real_numbers("cells", form([cell, cell, more]))
        except (InvalidParameter, TypeError, ValueError, OverflowError):
            continue  # by us, or where NumPy makes no array of them
        if found.shape == (3,):
            read.add(tuple(found[:2].tolist()))
    assert len(read) <= 1


@pytest.mark.parametrize("number", [Fraction(1, 3), 3, np.float64(0.3), 2**70 + 1], ids=repr)
def test_noise_is_drawn_at_the_number_that_its_event_names_or_refused(number: Any) -> None:
    """A fraction that no double holds would be rounded for the noise, and not for its price."""
    data = PrivateDataset(np.eye(4), np.ones(4), adjacency=REPLACE, row_bound=1.0)
    counts = PrivateTable({"a": np.arange(5.0)}, {"a": BoundedColumn(0, 4, 1.0)}, adjacency=REPLACE)
    releases: list[tuple[Sensitive, Any]] = []
    for value, make in (
        (counts.sum("a", norm=Norm.L1), LaplaceNoise),
        (counts.sum("a"), DiscreteGaussianNoise),
        (data.answers(), RandomisedResponse),
        (counts.quantile_costs("a", 0.5, [0.0, 1.0, 2.0]), ExponentialMechanism),
    ):
        try:
            releases.append((value, make(number)))
        except InvalidParameter:
            continue
    for value, noise in releases:
        sink = EventList()
        curator = SamplingCurator(sink, SeededSampler(1))
        try:
            curator.release(value, mechanism=noise, round=1, release="told")
        except InvalidParameter:
            assert sink.events == []
            continue
        event: Any = sink.events[0].mechanism
        named: Any = getattr(
            event, "scale", getattr(event, "noise_std", getattr(event, "truth", None))
        )
        assert type(named) in (float, np.float64)
        given = getattr(noise, "scale", getattr(noise, "noise_std", getattr(noise, "truth", None)))
        assert given is None or Fraction(named) == Fraction(given)


# --- what leaves ----------------------------------------------------------------------------------


def test_a_refused_releases_traceback_shows_no_array_even_with_all_variables() -> None:
    book = MemoryLedger()
    book.set_budget(Budget(ApproxDp(0.1, 1e-6), REPLACE))
    data = PrivateDataset(np.full((40, 2), 0.123), np.ones(40), adjacency=REPLACE, row_bound=1.0)
    gradient = data.mean_gradient(Logistic(), np.zeros(2))
    curator = SamplingCurator(book.run("a", configuration_hash="a"), SystemSampler())
    with pytest.raises(BudgetExceeded) as refused:
        curator.release(gradient, noise_multiplier=0.1, round=1, release="gradient")
    frames = list(traceback.walk_tb(refused.value.__traceback__))
    texts = [repr(each) for frame, _ in frames[1:] for each in frame.f_locals.values()]
    assert len(texts) > 10
    assert not [text for text in texts if "array(" in text]


@pytest.mark.parametrize(
    "use",
    [
        *(float, int, complex, bool, len, list, sum, abs, hash, bytes, np.array, np.sum, round),
        lambda value: value < 1.0,
        lambda value: value == value,
        lambda value: f"{value:.3f}",
        lambda value: value @ np.eye(2),
        lambda value: np.add(value, 1.0),
        lambda value: np.add(1.0, value, out=np.zeros((1, 2))),
        lambda value: np.multiply(value, value),
        lambda value: np.ones(2) / value,
        lambda value: value * np.ones(2),
        lambda value: value**2,
        lambda value: np.frompyfunc(float, 1, 1)(value),
        lambda value: {value},
    ],
)
def test_no_use_of_a_private_value_makes_it_a_number(use: Callable[[Any], object]) -> None:
    data = PrivateDataset(np.full((9, 2), 0.123), np.ones(9), adjacency=REPLACE, row_bound=1.0)
    with pytest.raises((UnprotectedReleaseError, InvalidParameter)) as refused:
        use(data.mean_gradient(Logistic(), np.zeros(2)))
    assert "0.06" not in str(refused.value)


_RUN = """[data]
files = ["people.csv"]
schema = "schema.toml"
train_records = 200
parties = 1
split_seed = 3
[privacy]
adjacency = "replace-one"
epsilon = 1.0
delta = 1e-5
[solver]
algorithm = "dp-admm"
rounds = 1
[noise]
sampler = "philox"
seed = 5
"""

_SCHEMA = """row_bound = 1.0
on_outside = "clip"
columns = [
  {kind = "numeric", name = "age", lower = 18, upper = 90},
  {kind = "label", name = "income", positive = ["high"], negative = ["low"]},
]"""


def test_held_out_records_are_in_no_file_that_may_be_published(tmp_path: Path) -> None:
    """Half of them are changed: models and public pages say the same, holders' pages another."""
    draw, count = random.Random(1), 300
    cells = [[draw.randint(18, 90), draw.choice(["high", "low"])] for _ in range(count)]
    order = np.argsort(np.random.PCG64(3).random_raw(count), kind="stable")
    published, pages = [], set()
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        lines = [f"{age},{income}" for age, income in cells]
        (folder / "people.csv").write_text("\n".join(["age,income", *lines, ""]))
        (folder / "schema.toml").write_text(_SCHEMA)
        (folder / "run.toml").write_text(_RUN)
        options = RunOptions(
            out=folder / "out", attack=False, baselines=False, crosscheck=False, name="run"
        )
        dp.run(folder / "run.toml", options)
        page = (folder / "out" / "public.html").read_text()
        page = re.sub(r"20\d\d-\d\d-\d\dT[0-9:.+]*|[0-9a-f]{64}", "", page)
        model = (folder / "out" / "model.npy").read_bytes()
        published.append((page, model, (folder / "out" / "model.json").read_bytes()))
        pages.add(
            re.sub(r"20\d\d-\S*|[0-9a-f]{64}", "", (folder / "out" / "report.md").read_text())
        )
        for k in order[200:250]:
            cells[k] = [18, {"high": "low", "low": "high"}[str(cells[k][1])]]
    assert published[0] == published[1]
    assert len(pages) == 2  # the holder's own page has what was measured on them


@pytest.mark.parametrize("train_records", [200, 1])
def test_who_is_held_out_depends_on_places_alone(train_records: int, tmp_path: Path) -> None:
    schema, found = parse_schema(_SCHEMA), []
    for income in ("high", "low"):
        path = tmp_path / f"{income}.csv"
        lines = [f"{20 + k % 60},{'high' if k % 2 else 'low'}" for k in range(299)]
        path.write_text("\n".join(["age,income", *lines, f"77,{income}", ""]))
        train, test = split_records(
            load_records(path, schema=schema), train_records=train_records, seed=3
        )
        found.append((np.asarray(train.features).tobytes(), np.asarray(test.features).tobytes()))
    assert found[0] == found[1]


# --- files ----------------------------------------------------------------------------------------


_BODIES = (
    "x,t,y\n1,a,1\n2,b,-1\n",
    "x;t;y\n1;a;1\n",
    'x,t,y\n"1",a,1\n 2,b,-1\n',
    "\ufeffx,t,y\n1,a,1\n",
    "x,t,y\r1,a,1\r2,b,-1\r",
    'x,t,y\n1,"a\n",1\n',
    "x,t,y\n1,a,1,\n",
    "x,t,y\n",
    " x , t,y\n1,a,1\n",
    "x,t,y\n\n1,a,1\n,,\n2,b,-1\n",
    "x,t,y\n1e309,a,1\n",
    "x,t,y\nnan,a,1\n",
    "x,t,y\n" + "9" * 200_000 + ",a,1\n",
    'x,t,y\n1,a,"1\n2,b,-1"\n',
    "x,t,y\n1,\x00a,1\n",
)
_SETTINGS = (
    *(("row_bound", text) for text in ("1e-100", "1e300", "nan", "-1.0")),
    *(("missing", text) for text in ("[]", '["nan"]', '["inf"]', '["1e999"]', '["1_0"]')),
    *(
        ("delimiter", text)
        for text in ('"\\n"', '"\\r"', '"\\""', '" "', '"\\u0000"', '"é"', '"0"')
    ),
    *(("comment", text) for text in ('"#"', '"x"', '"\\n"', '"\\""')),
    *(("header", "false"), ("on_outside", '"refuse"'), ("drop_missing", "false")),
)


@pytest.mark.parametrize(("key", "text"), _SETTINGS)
def test_odd_settings_and_odd_texts_end_in_a_sentence(key: str, text: str, tmp_path: Path) -> None:
    given = {"row_bound": "1.0", "on_outside": '"clip"', "missing": '["?"]', key: text}
    lines = "\n".join(f"{name} = {value}" for name, value in given.items())
    try:
        schema = parse_schema(
            f"""{lines}
columns = [{{kind = "numeric", name = "x", lower = 0, upper = 10}},
  {{kind = "categorical", name = "t", categories = ["a", "b"]}},
  {{kind = "label", name = "y", positive = ["1"], negative = ["-1"]}}]"""
        )
    except DpledgerError:
        return
    said = list[str]()
    for number, body in enumerate(_BODIES):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(body.encode())
        for load in (
            lambda path=path: load_records(path, schema=schema),
            lambda path=path: load_table(path, schema=schema, adjacency=ADD, records=1),
        ):
            try:
                load()
            except DpledgerError as refused:
                said.append(str(refused))
    assert all(len(each) > 20 for each in said)


_ODD = (
    '"',
    ",",
    "\r",
    "\x0b",
    "\x1c",
    "\x85",
    "\u2028",
    "\0",
    " ",
    "#",
    "\\",
    ";",
    "\ufeff",
    '""',
    '",',
    ",,",
)


@pytest.mark.parametrize("delimiter", [",", ";", " "])
def test_odd_characters_in_a_line_change_no_other_record(delimiter: str, tmp_path: Path) -> None:
    """What is read of the others is what was read before, or nothing is read."""
    schema = parse_schema(
        f"""row_bound = 10.0
on_outside = "clip"
missing = ["?", ""]
drop_missing = true
delimiter = "{delimiter}"
columns = [
  {{kind = "numeric", name = "x", lower = 0, upper = 100}},
  {{kind = "numeric", name = "z", lower = 0, upper = 9}},
  {{kind = "ignored", name = "note"}},
  {{kind = "label", name = "y", positive = ["1"], negative = ["0"]}},
]"""
    )
    draw, read, path = random.Random(delimiter), 0, tmp_path / "a.csv"

    def records(lines: list[str]) -> list[tuple[float, ...]]:
        path.write_bytes("\n".join([delimiter.join(("x", "z", "note", "y")), *lines, ""]).encode())
        found = load_records(path, schema=schema)
        rows = np.column_stack([np.asarray(found.features), found.labels])
        return [tuple(row) for row in rows.tolist()]

    for _ in range(120):
        lines = [
            delimiter.join((str(3 * k + 1), str(draw.randint(0, 9)), "hi", draw.choice("01")))
            for k in range(8)
        ]
        before, k = records(lines), draw.randrange(8)
        for _ in range(draw.choice([1, 1, 2])):
            at = draw.randrange(len(lines[k]) + 1)
            lines[k] = lines[k][:at] + draw.choice(_ODD) + lines[k][at + draw.randrange(2) :]
        try:
            after = records(lines)
        except DpledgerError:
            continue
        read += 1
        others = before[:k] + before[k + 1 :]
        assert after in (others, [*others[:k], after[min(k, len(after) - 1)], *others[k:]])
    assert read > 10


# --- samples beside what all records enter --------------------------------------------------------


@pytest.mark.parametrize(("always", "drawn", "rate"), [(0.2, 3.0, 0.01), (0.5, 1.0, 0.1)])
def test_no_neighbours_of_a_mixture_are_told_further_apart_than_its_price(
    always: float, drawn: float, rate: float
) -> None:
    """Batches of one in 1/rate records beside a mean of all, one number, by closed forms."""
    delta = 1e-4
    step = GaussianMixtureStep(
        mean_of_bounded(always / 2.0, 1, REPLACE), sum_of_bounded(drawn / 2.0, REPLACE), rate, 1.0
    )
    event = Event(step, Context(("all",), 1, "gradient", Audience.PUBLIC))
    factor = np.exp(dp.guarantee([event], delta=delta).epsilon.upper_float)
    grid = np.linspace(-25.0, 25.0, 20_001)

    def law(other: float, own: float, moved: float) -> Floats:
        """Return the density where a record's part is `own`, another's `other`, all of it moved."""
        parts = ((1.0 - rate, other * drawn + moved), (rate, own * drawn + moved))
        each = [w * np.exp(-0.5 * (grid - m) ** 2) for w, m in parts]
        return np.asarray(np.sum(each, axis=0) / np.sqrt(2.0 * np.pi))

    worst = 0.0
    for other, own, new in itertools.product((-0.5, 0.0, 0.5), repeat=3):
        for moved in (-always, always):
            first, second = law(other, own, 0.0), law(other, new, moved)
            for one, two in ((first, second), (second, first)):
                apart = np.maximum(one - factor * two, 0.0).sum() * (grid[1] - grid[0])
                worst = max(worst, float(apart))
    assert 0.3 * delta < worst <= delta * (1.0 + 1e-5)  # what a sum in place of an integral errs


# --- copies ---------------------------------------------------------------------------------------


def test_a_copy_of_an_estimator_has_its_ledger_and_a_pickle_no_budget_of_its_own() -> None:
    import copy
    import pickle

    book = MemoryLedger()
    book.set_budget(Budget(ApproxDp(1.0, 1e-5), REPLACE))
    model = PrivateAdmmClassifier(
        epsilon=0.9, delta=1e-5, adjacency="replace-one", classes=(0, 1), ledger=book
    )
    assert all(made(model).ledger is book for made in (copy.copy, copy.deepcopy))
    with pytest.raises(LedgerError):
        pickle.dumps(model)


def test_scaled_sums_and_shifts_commute_with_their_price() -> None:
    """Whatever order public numbers come in, the price is the same within what rounding costs."""
    data = PrivateDataset(np.eye(6), np.ones(6), adjacency=REPLACE, row_bound=1.0)
    gradient, prices = data.mean_gradient(Logistic(), np.zeros(6)), []
    steps: tuple[Callable[[Sensitive], Sensitive], ...] = (
        lambda value: value * 3.0,
        lambda value: value - np.arange(6.0),
        lambda value: value / -7.0,
        lambda value: np.eye(6)[::-1] @ value,
    )
    for order in itertools.permutations(steps):
        value = gradient
        for step in order:
            value = step(value)
        prices.append(message(value, 1.0)[1].value)
    assert max(prices) <= min(prices) * (1.0 + 1e-6)
    assert min(prices) >= gradient.sensitivity.value * 3.0 / 7.0
