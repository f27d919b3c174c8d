"""Laws that were tried against losses of one's own, random programs, and files of several runs.

Neighbours are given the same noise, so that whatever differs was computed from the records. A loss
of one's own turns here in the last bit of what it computes: whatever moved that bit would move a
whole slope.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray
from scipy import sparse
from tests.parameters import slow

import dpledger as dp
from dpledger.accounting import MemoryLedger
from dpledger.audits import (
    AuditDataset,
    ReplayCurator,
    TranscriptCurator,
    noise_test_of_run,
    replay_chunks,
    residuals,
)
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    Audience,
    BoundedColumn,
    CategoryColumn,
    ClassLabels,
    Context,
    DataShape,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    EventList,
    FixedBatch,
    GaussianStep,
    LabelDomain,
    LaplaceNoise,
    LocalDataset,
    Norm,
    Poisson,
    PrivateDataset,
    PrivateTable,
    RandomisedResponse,
    RowBlocks,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    VerticalDataset,
    concatenate,
    declared,
    linear_map,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.errors import DpledgerError, InvalidParameter, UnprotectedReleaseError
from dpledger.mechanisms.share_data import ShareOfSum
from dpledger.solvers import (
    ClippedLogistic,
    DpAdmm,
    Huber,
    LinearLoss,
    Logistic,
    Shifted,
    SmoothedHinge,
    SmoothSteps,
    Weighted,
)

Floats = NDArray[np.float64]
Inner = Callable[[Floats], Floats]
REPLACE, ZERO, ADD = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE
RELATIONS = (REPLACE, ZERO, ADD)


# --- losses of one's own that turn in the last bit --------------------------------------------


def split_sigmoid(s: Floats) -> Floats:
    """Return the logistic function, either half by itself: the parts' sizes tell of all scores."""
    found, right = np.empty_like(s), s >= 0
    found[right] = 1.0 / (1.0 + np.exp(-s[right]))
    other = np.exp(s[~right])
    found[~right] = other / (1.0 + other)
    return found


def split_sums(s: Floats) -> Floats:
    """Return sums over outputs, of some records by themselves."""
    found, some = np.zeros(len(s)), s[:, 0] > s[:, -1]
    found[some] = np.exp(s[some]).sum(axis=1)
    found[~some] = np.square(s[~some]).sum(axis=-1)
    return found


ONE: dict[str, Inner] = {
    "itself": lambda s: s,
    "sigmoid": split_sigmoid,
    "sine": lambda s: np.sin(s) + np.cos(3 * s),
    "power": lambda s: np.abs(s) ** 1.7,
    "single": lambda s: np.exp(s.astype(np.float32)).astype(np.float64),
    "erf": lambda s: np.asarray(scipy.special.erf(s)),
}
SEVERAL: dict[str, Inner] = {
    "softmax": lambda s: np.asarray(scipy.special.softmax(s, axis=-1))[..., -1],
    "logsumexp": lambda s: np.asarray(scipy.special.logsumexp(s, axis=-1)),
    "split": split_sums,
    "transposed": lambda s: np.asarray(np.exp(-np.square(s.T)).sum(axis=0)),
    "norm": lambda s: np.asarray(np.linalg.norm(s, axis=-1)),
    "variance": lambda s: s.var(axis=-1),
}


class Turning:
    """Slopes of size 1 whose sign turns at each of many numbers that the loss computes itself."""

    derivative_bound = Fraction(1)
    curvature_bound = None

    def __init__(self, inner: Inner, outputs: int, domain: LabelDomain) -> None:
        self.inner, self.outputs, self.label_domain = inner, outputs, domain
        self.turns: Floats = np.zeros(0)
        self.refused: float | None = None
        self.seen: list[tuple[Floats, Floats]] | None = None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        """Is not asked for."""
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return 1 or -1 for each record; of several outputs the first has it."""
        with np.errstate(all="ignore"):
            found = self.inner(scores)
        first = scores if self.outputs == 1 else scores[:, 0]
        if self.seen is not None:
            self.seen.append((np.array(first), np.array(found)))
        if self.refused is not None and np.any(first == self.refused):
            raise ValueError("no such score")
        signs: Floats = np.where(np.searchsorted(self.turns, found) % 2, -1.0, 1.0)
        if self.outputs == 1:
            return signs
        slopes = np.zeros_like(scores)
        slopes[:, 0] = signs
        return slopes


def turning(
    ask: Callable[[Turning], object], made: Turning, draw: random.Random, *, refuse: bool
) -> Turning:
    """Return a loss that turns just at, or just above, what it computes of the records."""
    made.seen = []
    ask(made)
    # the trial's scores came before; the first of a block is an example
    of_records = [score for score in made.seen[-1][0].tolist() if score != made.seen[-1][0][0]]
    found = np.concatenate([part for _, part in made.seen[-8:]])
    turns = np.unique(found[np.isfinite(found)])
    made.turns, made.seen = (turns if draw.random() < 0.5 else np.nextafter(turns, np.inf)), None
    if refuse:
        made.refused = float(draw.choice(of_records))
    return made


def said(value: Sensitive, seed: int = 9, **noise: Any) -> tuple[Floats, Any]:
    """Return what a curator of one seed says of a value, and the mechanism of its event."""
    sink = EventList()
    curator = SamplingCurator(sink, SeededSampler(seed))
    return curator.release(value, round=1, release="x", **noise), sink.events[0].mechanism


def share_moved(first: Floats, second: Floats, mechanism: Any) -> float:
    """Return by which share of the printed sensitivity two messages of one noise differ."""
    gaps = [Fraction(a) - Fraction(b) for a, b in zip(first.flat, second.flat, strict=True)]
    sensitivity = getattr(mechanism, "event", mechanism).sensitivity
    l1 = sensitivity.norm is Norm.L1
    moved = sum(map(abs, gaps)) ** 2 if l1 else sum(gap * gap for gap in gaps)
    if moved > sensitivity.squared:
        return max(math.nextafter(1.0, 2.0), math.sqrt(moved / sensitivity.squared))
    return math.sqrt(moved / sensitivity.squared) if sensitivity.squared else 0.0


@dataclass(frozen=True)
class Records:
    """Records of parties, as arrays."""

    rows: Floats
    labels: Floats
    party_of: NDArray[np.intp]


def neighbours(
    draw: random.Random, relation: Adjacency, n: int, parties: int, domain: LabelDomain, width: int
) -> tuple[Records, Records]:
    """Return two sets of records that differ in one."""
    rng = np.random.default_rng(draw.randrange(2**40))
    rows = rng.normal(size=(n + 1, width)) * rng.choice([0.3, 1.0, 3.0], size=(n + 1, 1))
    classes = domain.classes if isinstance(domain, ClassLabels) else 0
    labels = rng.integers(0, classes, n + 1) if classes else rng.choice([-1, 1], n + 1)
    both = Records(rows, labels.astype(np.float64), np.arange(n + 1) % parties)
    place = draw.randrange(n)
    order = np.insert(np.arange(n), place, n)
    first = Records(both.rows[:n], both.labels[:n], both.party_of[:n])
    if relation is ADD:
        return first, Records(both.rows[order], both.labels[order], both.party_of[order])
    rows, labels = first.rows.copy(), first.labels.copy()
    rows[place] = both.rows[n] if relation is REPLACE else 0.0
    if relation is REPLACE:
        labels[place] = both.labels[n]
    return first, replace(first, rows=rows, labels=labels)


def handle(
    records: Records, relation: Adjacency, parties: int, domain: LabelDomain, form: str = "dense"
) -> PrivateDataset:
    """Return records behind a handle; `form` is how the rows are handed in."""
    rows = records.rows
    forms: dict[str, Any] = {
        "dense": rows,
        "columns": np.asfortranarray(rows),
        "sparse": sparse.csr_array(rows),
        "blocks": RowBlocks(rows.shape, lambda some: rows[some], at_once=7),
    }
    bounds: dict[str, Any] = {"n_min": 1, "n_max": 2000} if relation is ADD else {}
    return PrivateDataset(
        forms[form],
        records.labels,
        adjacency=relation,
        row_bound=1.0,
        party_of=records.party_of,
        parties=tuple(f"p{k}" for k in range(parties)),
        label_domain=domain,
        **bounds,
    )


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda each: each.value)
@pytest.mark.parametrize("refuse", [False, True], ids=["answers", "raises"])
@pytest.mark.parametrize("count", [1, 2, 40, 256, *slow(255, 257, 513)])
def test_losses_that_turn_in_the_last_bit_move_by_one_record(
    relation: Adjacency, refuse: bool, count: int
) -> None:
    """Neither places, nor blocks of 256, nor a record that raises move what others add."""
    draw = random.Random(f"{relation.value} {refuse} {count}")
    for several in (False, True):
        outputs = draw.choice([2, 3, 8, 9, 17]) if several else 1
        domain: LabelDomain = ClassLabels(outputs) if several and draw.random() < 0.6 else SIGNS
        inner = draw.choice(list((SEVERAL if several else ONE).values()))
        parties = 1 if count < 4 else draw.choice([1, 2, 3])
        pair = neighbours(draw, relation, count, parties, domain, draw.choice([1, 2, 5]))
        form = draw.choice(["dense", "columns", "sparse", "blocks"])
        handles = [handle(each, relation, parties, domain, form) for each in pair]
        w = np.random.default_rng(count).normal(size=handles[0].shape.features * outputs)

        def ask(loss: Any, handles: Any = handles, w: Any = w) -> list[Sensitive]:
            return [each.mean_gradient(loss, w) for each in handles]

        loss = turning(ask, Turning(inner, outputs, domain), draw, refuse=refuse)
        (one, event), (two, same) = (said(value, noise_std=4.0) for value in ask(loss))
        assert event == same
        assert share_moved(one, two, event) <= 1.0, (outputs, form)


@pytest.mark.parametrize("count", [2, 255, 256, 257, 600])
def test_a_record_that_raises_adds_what_a_blank_one_adds(count: int) -> None:
    """Its slope is 0, and all others' slopes are the same bits: messages are equal."""
    draw, rng = random.Random(count), np.random.default_rng(count)
    rows, labels = rng.normal(size=(count, 3)), rng.choice([-1.0, 1.0], size=count)
    place, w = count // 2, rng.normal(size=3)
    blank = rows.copy()
    blank[place] = 0.0
    handles = [
        PrivateDataset(each, labels, adjacency=ZERO, row_bound=1.0) for each in (rows, blank)
    ]
    made = Turning(ONE["sine"], 1, SIGNS)
    loss = turning(lambda each: handles[0].sum_gradient(each, w), made, draw, refuse=False)
    loss.seen = []
    handles[0].sum_gradient(loss, w)
    blocks = loss.seen[-((count + 254) // 255) :]  # the last records' block comes first
    # behind the example that every block begins with
    scores = np.concatenate([part[1:] for part, _ in reversed(blocks)])
    loss.refused, loss.seen = float(scores[place]), None
    messages = [said(each.sum_gradient(loss, w), noise_std=float(count))[0] for each in handles]
    assert np.array_equal(messages[0], messages[1])


@pytest.mark.parametrize("relation", [*slow(REPLACE), ZERO], ids=lambda each: each.value)
def test_losses_that_turn_move_a_hidden_sample_by_a_drawn_record_alone(
    relation: Adjacency,
) -> None:
    """A record that is not drawn moves nothing at all, one that is by its price at most."""
    draw, unmoved, moved = random.Random(relation.value), 0, 0
    for seed in range(10):
        outputs = draw.choice([1, 3, 9])
        domain: LabelDomain = SIGNS if outputs == 1 else ClassLabels(outputs)
        inner = draw.choice(list((ONE if outputs == 1 else SEVERAL).values()))
        pair = neighbours(draw, relation, draw.choice([9, 40]), 1, domain, 2)
        handles = [handle(each, relation, 1, domain) for each in pair]
        w = np.random.default_rng(seed).normal(size=2 * outputs)
        scheme = Poisson(0.5) if relation is ZERO else FixedBatch(5)

        of = (handles, w, seed, scheme)

        def messages(loss: Any, of: Any = of) -> list[tuple[Floats, Any]]:
            handles, w, seed, scheme = of
            found = []
            for each in handles:
                sink = EventList()
                curator = SamplingCurator(sink, SeededSampler(seed))
                value = curator.sample(each, scheme).sum_gradient(loss, w, radius=0.7)
                message = curator.release(value, round=1, release="x", noise_std=20.0)
                found.append((message, sink.events[0].mechanism))
            return found

        made = Turning(inner, outputs, domain)
        loss = turning(messages, made, draw, refuse=seed % 2 == 0)
        (one, event), (two, same) = messages(loss)
        assert event == same
        share = share_moved(one, two, event)
        assert share <= 1.0
        unmoved, moved = unmoved + (share == 0.0), moved + (share > 0.1)
    assert unmoved >= 1
    assert moved >= 1


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda each: each.value)
def test_losses_that_turn_move_centred_rows_by_one_record(relation: Adjacency) -> None:
    """Scores of centred and scaled rows are the same bits wherever a row stands."""
    draw = random.Random(f"centred {relation.value}")
    for seed in range(4):
        outputs = draw.choice([1, 3, 9])
        domain: LabelDomain = SIGNS if outputs == 1 else ClassLabels(outputs)
        inner = draw.choice(list((ONE if outputs == 1 else SEVERAL).values()))
        pair = neighbours(draw, relation, draw.choice([9, 40]), 2, domain, 3)
        rng = np.random.default_rng(seed)
        centre, scale, radius = rng.normal(size=3) * 0.3, rng.uniform(0.2, 4.0, 3), 0.3
        form, w = draw.choice(["dense", "sparse"]), rng.normal(size=3 * outputs)
        views = [
            CentredRows(handle(each, relation, 2, domain, form), centre, radius=radius, scale=scale)
            for each in pair
        ]

        def ask(loss: Any, views: Any = views, w: Any = w) -> list[Sensitive]:
            return [view.mean_gradient(loss, w) for view in views]

        loss = turning(ask, Turning(inner, outputs, domain), draw, refuse=seed % 2 == 0)
        (one, event), (two, same) = (said(value, noise_std=4.0) for value in ask(loss))
        assert event == same
        assert share_moved(one, two, event) <= 1.0


@pytest.mark.parametrize("kind", ["part of a sum", "one party's"])
def test_losses_that_turn_move_a_partys_own_message_by_one_record(kind: str) -> None:
    """A party of a federation evaluates a loss as one holder of all records does."""
    draw = random.Random(kind)
    shape = DataShape(("a", "b"), 20, 2, 1.0, REPLACE, SIGNS, (20, 30))
    for seed in range(4):
        pair = neighbours(draw, REPLACE, 30, 1, SIGNS, 2)
        w, inner = np.random.default_rng(seed).normal(size=2), draw.choice(list(ONE.values()))
        handles: list[PrivateDataset] = [
            ShareOfSum(shape, "b", each.rows, each.labels)
            if kind == "part of a sum"
            else LocalDataset(shape, ("b",), each.rows, each.labels)
            for each in pair
        ]

        def ask(loss: Any, handles: Any = handles, w: Any = w) -> list[Sensitive]:
            return [each.sum_gradient(loss, w) for each in handles]

        loss = turning(ask, Turning(inner, 1, SIGNS), draw, refuse=seed % 2 == 0)
        (one, event), (two, _) = (said(value, noise_std=60.0) for value in ask(loss))
        assert 0.0 < share_moved(one, two, event) <= 1.0


@dataclass(frozen=True)
class OwnHinge:
    """A loss of one's own, the hinge."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = None
    label_gap_bound = Fraction(2)

    def value(self, scores: Floats, labels: Floats) -> Floats:
        """Return max(0, 1 - y s)."""
        return np.maximum(0.0, 1.0 - labels * scores)

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return -y below the kink."""
        return np.where(labels * scores < 1.0, -labels, 0.0)


def test_a_loss_of_ones_own_inside_another_is_named_and_cut_like_itself() -> None:
    """Weights and offsets do not make it one of the program's: the event names both classes."""
    from dpledger.mechanisms import WeightedLabels

    rng = np.random.default_rng(1)
    rows, signs = rng.normal(size=(9, 2)), rng.choice([-1.0, 1.0], size=9)
    weighted = WeightedLabels(SIGNS)
    codes = weighted.joined(signs, rng.uniform(size=9))
    for loss, labels, domain in (
        (Shifted(OwnHinge(), 0.25), signs, SIGNS),
        (Weighted(OwnHinge()), codes, weighted),
        (Weighted(Shifted(OwnHinge(), 0.25)), codes, weighted),
    ):
        data = PrivateDataset(rows, labels, adjacency=REPLACE, row_bound=1.0, label_domain=domain)
        for value in (data.mean_gradient(loss, np.ones(2)), data.sum_gradient(loss, np.ones(2))):
            named = " ".join(value.sensitivity.derivation.assumptions())
            assert "OwnHinge" in named
            assert "tried on random scores, not proved" in named


@pytest.mark.parametrize("word", ["largest", "count", "others"])
def test_losses_that_look_at_other_records_are_refused(word: str) -> None:
    """The largest score of a block, how many it holds, and who stands beside are all found out."""

    class Looking(OwnHinge):
        def derivative(self, scores: Floats, labels: Floats) -> Floats:
            beside = {
                "largest": scores.max(initial=0.0),
                "count": np.unique(scores).size,
                "others": np.sort(scores)[len(scores) // 2],
            }[word]
            return np.asarray(np.tanh(scores + np.tanh(1e-3 * beside)))

    data = PrivateDataset(np.eye(3), np.ones(3), adjacency=REPLACE, row_bound=1.0)
    with pytest.raises(InvalidParameter, match="elementwise"):
        data.mean_gradient(Looking(), np.zeros(3))


# --- random programs ---------------------------------------------------------------------------


Pair = tuple[Any, Any]
Made = tuple[Pair, Callable[[random.Random], Callable[[Any], Sensitive]]]


def tables(draw: random.Random) -> Made:
    """Return neighbouring tables, and how to draw a statistic of either."""
    rng = np.random.default_rng(draw.randrange(2**40))
    relation, n = draw.choice(RELATIONS), draw.choice([1, 2, 7, 40])
    low = draw.uniform(-3, 2) * 2.0 ** draw.choice([0, 0, -20, 20])
    column = BoundedColumn(low, low + abs(low) * draw.uniform(0.1, 5) + 2.0**-30)
    columns: dict[str, Any] = {"x": column, "word": CategoryColumn(("a", "b", "c"))}
    values = rng.uniform(column.lower - 1, column.upper + 1, size=n + 1)
    values[rng.random(n + 1) < 0.4] = column.lower
    values[rng.random(n + 1) < 0.4] = column.upper
    words, place = rng.integers(0, 3, size=n + 1).astype(np.float64), draw.randrange(n)
    first, second = {"x": values[:n], "word": words[:n]}, {"x": values, "word": words}
    if relation is not ADD:
        second = {name: cells.copy() for name, cells in first.items()}
        blank = {"x": float(column.null), "word": 0.0}
        for name, cells in (("x", values), ("word", words)):
            second[name][place] = cells[n] if relation is REPLACE else blank[name]
    bounds: dict[str, int] = {"n_min": 1, "n_max": 100} if relation is ADD else {}
    grid = np.linspace(column.lower, column.upper, 5).tolist()

    def statistic(draw: random.Random) -> Callable[[Any], Sensitive]:
        norm, rank = draw.choice([Norm.L1, Norm.L2]), draw.random()
        asked: list[Callable[[Any], Sensitive]] = [
            lambda table: table.sum("x", norm=norm),
            lambda table: table.mean("x", norm=norm),
            lambda table: table.count(norm=norm),
            lambda table: table.histogram("word", norm=norm),
            lambda table: table.histogram("x", grid, norm=norm),
            lambda table: table.second_moments(["x"], norm=norm),
            lambda table: table.quantile_costs("x", rank, grid),
        ]
        return draw.choice(asked)

    made = [PrivateTable(each, columns, adjacency=relation, **bounds) for each in (first, second)]
    return (made[0], made[1]), statistic


def datasets(draw: random.Random) -> Made:
    """Return neighbouring records, and how to draw a function of either."""
    relation, parties = draw.choice(RELATIONS), draw.choice([1, 2])
    pair = neighbours(draw, relation, draw.choice([3, 20, 300]), parties, SIGNS, 3)
    form = draw.choice(["dense", "columns", "sparse", "blocks"])
    made = [handle(each, relation, parties, SIGNS, form) for each in pair]

    def function(draw: random.Random) -> Callable[[Any], Sensitive]:
        rng = np.random.default_rng(draw.randrange(2**40))
        loss = draw.choice(
            [Logistic(), ClippedLogistic(0.3), LinearLoss(), SmoothedHinge(0.01), Huber(0.7, 1.0)]
        )
        w, pull, radius = rng.normal(size=(parties, 3)), rng.normal(size=3), rng.uniform(0.05, 1)
        norm, edges = draw.choice([Norm.L1, Norm.L2]), sorted(rng.normal(size=3).tolist())
        models = list(rng.normal(size=(2, 3)))
        asked: list[Callable[[Any], Sensitive]] = [
            lambda data: data.mean_gradient(loss, w),
            lambda data: data.mean_gradient(loss, w, weights=rng.normal(size=parties)),
            lambda data: data.sum_gradient(loss, w, radius=radius),
            lambda data: data.second_moment(),
            lambda data: data.histogram(edges, column=1, norm=norm),
            lambda data: data.wrong_predictions(models),
            lambda data: data.strongly_convex_argmin(
                loss, modulus=0.5, linear=pull, tolerance=1e-8, start=pull
            ),
        ]
        chosen = draw.choice(asked)
        seed = draw.randrange(2**30)

        def drawn_alike(data: Any) -> Sensitive:
            nonlocal rng
            rng = np.random.default_rng(seed)  # for both of a pair the same
            return chosen(data)

        return drawn_alike

    return (made[0], made[1]), function


def columns_of_parties(draw: random.Random) -> Made:
    """Return neighbouring vertical data, and how to draw a function of either."""
    relation, public = draw.choice([REPLACE, ZERO]), draw.random() < 0.5
    first, second = neighbours(draw, relation, draw.choice([2, 9, 40]), 1, SIGNS, 3)
    labels = first.labels if public else second.labels
    made = [
        VerticalDataset(
            [each.rows[:, :1], each.rows[:, 1:]],
            own,
            adjacency=relation,
            parties=("m", "n"),
            public_labels=public,
        )
        for each, own in ((first, first.labels), (second, labels))
    ]

    def function(draw: random.Random) -> Callable[[Any], Sensitive]:
        from dpledger.mechanisms import LocalProblem

        rng = np.random.default_rng(draw.randrange(2**40))
        count = made[0].shape.count
        problem = LocalProblem(rng.normal(size=count) * 2, 0.5, 0.7, 1.0, 2.0, 1e-6)
        target, x = rng.normal(size=count), rng.normal(size=2)
        asked: list[Callable[[Any], Sensitive]] = [
            lambda data: data.predictions("m", problem),
            lambda data: data.minimiser("n", problem),
            lambda data: data.scores("n", x),
            lambda data: data.dual(Logistic(), target, penalty=0.3, tolerance=1e-8),
        ]
        if public:
            asked.append(lambda data: data.mean_gradient("n", Huber(0.7, 1.0), x))
        return draw.choice(asked)

    return (made[0], made[1]), function


def worked_on(value: Sensitive, draw: random.Random) -> Sensitive:
    """Return a value after some public operations."""
    for _ in range(draw.choice([0, 1, 2, 4])):
        rng, unit = np.random.default_rng(draw.randrange(2**30)), value.sensitivity.value or 1.0
        number = draw.uniform(-3, 3)
        match draw.randrange(8):
            case 0:
                value = value * number
            case 1:
                value = value / number
            case 2:
                value = unit * rng.normal(size=value.dimension) - value
            case 3:
                value = value + number * unit
            case 4:
                value = linear_map(rng.normal(size=(3, value.dimension)), value)
            case 5:
                value = value.clipped(unit * draw.uniform(0.1, 10))
            case 6:
                value = concatenate(value, value * number)
            case _:
                value = value + value * number
    return value


def released(value: Sensitive) -> tuple[Floats, Any]:
    """Return a value's message and mechanism, with noise of the kind that its norm asks for."""
    std = max(value.sensitivity.value, float(value.rounding.magnitude) / 4) or 1.0
    l1 = value.sensitivity.norm is Norm.L1
    if value.rounding.whole:
        return said(
            value, mechanism=DiscreteLaplaceNoise(8.0) if l1 else DiscreteGaussianNoise(8.0)
        )
    return said(value, **({"mechanism": LaplaceNoise(std)} if l1 else {"noise_std": std}))


@pytest.mark.parametrize(
    "kind", [tables, datasets, columns_of_parties], ids=lambda each: each.__name__
)
def test_random_programs_move_by_their_price_and_tell_nothing_else(
    kind: Callable[[random.Random], Made],
) -> None:
    """Neighbours have one event, one refusal and one repr, and messages within the price."""
    draw, shares = random.Random(kind.__name__), []
    for _ in range(60):
        (first, second), drawn = kind(draw)
        asked, seed = drawn(draw), draw.randrange(2**30)
        found: list[tuple[str, Any, Any]] = []
        for data in (first, second):
            try:
                value = worked_on(asked(data), random.Random(seed))
                found.append((repr(value), *released(value)))
            except DpledgerError as error:
                found.append((f"{type(error).__name__}: {error}", None, None))
        (shown, one, event), (other, two, same) = found
        assert (shown, event) == (other, same)
        if one is not None:
            shares.append(share_moved(one, two, event))
            assert shares[-1] <= 1.0, shown
    assert len(shares) >= 30
    assert max(shares) > 0.9


# --- what an auditor may see, and numbers that doubles do not hold -----------------------------


def test_audits_refuse_an_analysts_handle_in_every_place() -> None:
    """A neighbour, a transcript or noise to look at does not open what an analyst holds."""
    rng = np.random.default_rng(3)
    rows, labels = rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], size=20)

    def made(kind: Any) -> Any:
        return kind(rows, labels, adjacency=REPLACE, row_bound=1.0)

    analysts, auditors = made(PrivateDataset), made(AuditDataset)
    solver = DpAdmm(rounds=2, noise_multiplier=10.0, steps=SmoothSteps(0.25, 10.0))
    curator = SamplingCurator(EventList(), SeededSampler(1), record=True)
    solver.solve(analysts, curator)
    refused: tuple[type[Exception], ...] = (UnprotectedReleaseError, InvalidParameter)
    for look in (
        lambda: residuals(solver.solve, analysts, curator.transcript),
        lambda: noise_test_of_run(solver.solve, analysts, SeededSampler(3), level=0.01),
        lambda: solver.solve(analysts, ReplayCurator(curator.transcript)),
        lambda: solver.solve(analysts, TranscriptCurator(curator.transcript)),
        lambda: list(replay_chunks(solver.solve, auditors, analysts, trials=4, seed=1, chunk=4)),
    ):
        with pytest.raises(refused):
            look()
    both = analysts.mean_gradient(Logistic(), np.zeros(3)) * 1e-9 + auditors.mean_gradient(
        Logistic(), np.zeros(3)
    )
    many = SamplingCurator(EventList(), SeededSampler(1), trials=5)
    for watching in (ReplayCurator(curator.transcript[:1]), many):
        with pytest.raises(UnprotectedReleaseError):
            watching.release(both, round=1, release="x", noise_std=1.0)


def test_noise_that_no_double_holds_is_refused_and_not_rounded_down() -> None:
    """An event of scale 1/3 beside noise of the double below would promise too much."""
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency=REPLACE, row_bound=1.0)
    l1, l2 = data.histogram([0.0], norm=Norm.L1), data.histogram([0.0])
    third = Fraction(1, 3)
    asked: list[tuple[Sensitive, Callable[[], Any]]] = [
        (l1, lambda: LaplaceNoise(third)),  # type: ignore[arg-type]
        (l1, lambda: LaplaceNoise(2**53 + 1)),
        (l1, lambda: DiscreteLaplaceNoise(third)),  # type: ignore[arg-type]
        (l2, lambda: DiscreteGaussianNoise(third)),  # type: ignore[arg-type]
        (data.answers(), lambda: RandomisedResponse(third)),  # type: ignore[arg-type]
    ]
    for value, noise in asked:
        ledger = MemoryLedger()
        curator = SamplingCurator(ledger.run("r", configuration_hash="h"), SeededSampler(1))
        with pytest.raises(InvalidParameter, match="representable as a binary64"):
            curator.release(value, round=1, release="x", mechanism=noise())
        assert ledger.events() == []
    _, step = said(l2, noise_std=third)
    assert Fraction(step.noise_std) <= third


def test_what_names_no_party_is_paid_for_by_every_record() -> None:
    """A table's statistics beside two parties' messages cost each record both."""

    def step(*parties: str) -> Event:
        moved = declared(1.0, "an example", adjacency=REPLACE)
        return Event(GaussianStep(moved, 2.0), Context(parties, 1, "x", Audience.SERVER))

    def epsilon(*events: Event) -> float:
        return float(dp.guarantee(events, delta=1e-5).epsilon.upper_float)

    one, two = epsilon(step("a")), epsilon(step("a"), step("a"))
    assert epsilon(step("a"), step("b")) == one < two
    assert epsilon(step(), step("a"), step("b")) == two
    assert epsilon(step("a", "b"), step("b")) == two
