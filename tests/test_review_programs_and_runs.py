"""Laws of programs of handles, parties with columns, noise and runs, as a reviewer tried them.

Neighbours are given the same noise, so that whatever differs was computed from the records; moves
are compared with the sensitivity that the event states, in exact arithmetic on the doubles.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, stats

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.rows import LedgerError
from dpledger.cli.app import run as command
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    DiscreteLaplaceNoise,
    EventList,
    FixedBatch,
    LabelDomain,
    Poisson,
    PrivateDataset,
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
from dpledger.mechanisms.errors import DpledgerError, InvalidParameter
from dpledger.mechanisms.vertical_data import LocalProblem
from dpledger.runs import release_statistics
from dpledger.solvers import Hinge, Huber, LinearLoss, Logistic, Multinomial
from dpledger.solvers.losses import ClippedLogistic, Shifted, SmoothedHinge, SmoothedQuantile
from dpledger.solvers.weighted import Weighted

Floats = NDArray[np.float64]
Rng = np.random.Generator
REPLACE, ZERO, ADD = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE
DOUBLES = 1 + Fraction(1, 2**40)
"""By how much messages, rounded to doubles once their noise is added, may seem to move."""

DOMAINS: tuple[LabelDomain, ...] = (
    SIGNS,
    SIGNS,
    ClassLabels(3),
    RealLabels(2.5),
    WeightedLabels(SIGNS),
)


def said(value: Sensitive, noise_std: float, seed: int = 5) -> tuple[Floats, Any]:
    """Return what a curator of one seed says of a value, and the mechanism of its event."""
    sink = EventList()
    curator = SamplingCurator(sink, SeededSampler(seed))
    message = curator.release(value, round=1, release="x", noise_std=noise_std)
    return message, sink.events[0].mechanism


def moved(first: Floats, second: Floats) -> Fraction:
    """Return the squared distance of two messages, exactly."""
    pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
    return sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction(0))


# --- programs of handles -----------------------------------------------------------------------


def some_labels(domain: LabelDomain, count: int, rng: Rng) -> Floats:
    """Return labels of a domain, many of them at its ends."""
    if isinstance(domain, ClassLabels):
        return rng.integers(0, 3, count).astype(np.float64)
    if isinstance(domain, RealLabels):
        return rng.choice([-2.5, 2.5, 0.3], count)
    signs = rng.choice([-1.0, 1.0], count)
    if isinstance(domain, WeightedLabels):
        return domain.joined(signs, rng.choice([0.0, 1.0, 0.37], count))
    return signs


def some_loss(domain: LabelDomain, rng: Rng, *, smooth: bool = False) -> Any:
    """Return one of the losses for a domain's labels."""
    if isinstance(domain, ClassLabels):
        return Multinomial(3)
    if isinstance(domain, RealLabels):
        real = (Huber(0.7, 2.5), SmoothedQuantile(0.3, 0.1, 2.5), Huber(5.0, 2.5))
        return real[rng.integers(3)]
    of_signs: list[Any] = [
        Logistic(),
        ClippedLogistic(0.5),
        ClippedLogistic(0.01),
        LinearLoss(),
        SmoothedHinge(0.3),
        Shifted(Logistic(), 2.0),
        *(() if smooth else (Hinge(),)),
    ]
    loss = of_signs[rng.integers(len(of_signs))]
    return Weighted(loss) if isinstance(domain, WeightedLabels) else loss


class Pair:
    """Two neighbouring data sets, with rows of all sizes, in a form of arrays."""

    def __init__(self, relation: Adjacency, rng: Rng) -> None:
        self.relation, self.form = relation, int(rng.integers(4))
        self.count, self.width = int(rng.choice([2, 3, 8, 30])), int(rng.choice([1, 2, 3, 8]))
        self.bound = float(rng.choice([1.0, 2.0**-200, 2.0**200, 3.7]))
        self.parties = min(self.count, int(rng.choice([1, 2, 3])))
        self.domain = DOMAINS[rng.integers(len(DOMAINS))]
        rows = rng.normal(size=(self.count, self.width))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= self.bound * rng.choice([1.0, 1.0, 1e10, 1e-12, 0.0], (self.count, 1))
        extra = rng.integers(0, self.parties, self.count - self.parties)
        self.holders = np.concatenate([np.arange(self.parties), extra])
        self.place = int(rng.integers(self.count))
        labels = some_labels(self.domain, self.count, rng)
        other, changed = rows.copy(), labels.copy()
        if relation is REPLACE:
            other[self.place] = rng.choice([-1.0, -1e5]) * rows[self.place]
            changed[self.place] = some_labels(self.domain, 1, rng)[0]
        elif relation is ZERO:
            other[self.place] = 0.0
        self.sides = ((rows, labels), (other, changed))

    def handles(self) -> tuple[PrivateDataset, PrivateDataset] | None:
        """Return both, or None where a party would have no record left."""
        kept = np.ones(self.count, dtype=bool)
        limits: dict[str, Any] = {}
        if self.relation is ADD:
            kept[self.place] = False
            limits = {"n_min": 1, "n_max": 1000}
            if len(np.unique(self.holders[kept])) < self.parties:
                return None
        first = self._handle(self.sides[0], kept | True, limits)
        return first, self._handle(self.sides[1], kept, limits)

    def _handle(
        self, side: tuple[Floats, Floats], kept: NDArray[np.bool_], limits: dict[str, Any]
    ) -> PrivateDataset:
        plain, labels = side[0][kept], side[1][kept]
        forms: tuple[Callable[[Floats], Any], ...] = (
            np.copy,
            sparse.csr_array,
            lambda rows: RowBlocks(rows.shape, lambda some: rows[some], at_once=2),
            np.asfortranarray,
        )
        return PrivateDataset(
            forms[self.form](plain),
            labels,
            adjacency=self.relation,
            row_bound=self.bound,
            party_of=self.holders[kept],
            parties=tuple("abc"[: self.parties]),
            label_domain=self.domain,
            **limits,
        )


def leaf(pair: Pair, rng: Rng) -> Callable[[PrivateDataset], Sensitive]:
    """Return a function of a handle at random public arguments."""
    bound, domain = pair.bound, pair.domain
    loss = some_loss(domain, rng)
    width = pair.width * loss.outputs
    point = rng.normal(size=(pair.parties, width)) / bound * 10.0 ** rng.integers(-3, 4)
    weights = rng.uniform(0.1, 3.0, pair.parties) if rng.random() < 0.4 else None
    match rng.integers(8):
        case 0:
            return lambda data: data.mean_gradient(loss, point, weights=weights)
        case 1:
            radius = float(rng.choice([1e-3, 0.3, 1.0])) * bound
            return lambda data: data.sum_gradient(loss, point, radius=radius)
        case 2:
            return lambda data: data.second_moment()
        case 3:
            edges = sorted(set((rng.normal(size=3) * bound).tolist()))
            column = None if rng.random() < 0.5 else int(rng.integers(pair.width))
            return lambda data: data.histogram(edges, column=column)
        case 4:
            smooth = some_loss(domain, rng, smooth=True)
            linear = rng.normal(size=(pair.parties, width)) * bound
            modulus = float(10.0 ** rng.integers(-1, 2)) * max(bound**2, 1e-3)
            return lambda data: data.strongly_convex_argmin(
                smooth,
                modulus=modulus,
                linear=linear,
                tolerance=1e-4 * bound,
                start=np.zeros(width),
                weights=weights,
            )
    centre = rng.normal(size=pair.width)
    centre *= rng.choice([0.0, 0.3, 1.9]) * bound / max(float(np.linalg.norm(centre)), 1e-9)
    radius = float(rng.choice([1 / 32, 0.2, 1.0, 3.0])) * bound
    most = 64.0 * radius / bound * (1.0 - 1e-9)
    scale = None if rng.random() < 0.4 else rng.uniform(1e-3, 1.0, pair.width) * most
    if rng.random() < 0.3:
        return lambda data: CentredRows(data, centre, radius=radius, scale=scale).mean_squares(
            weights=weights
        )
    return lambda data: CentredRows(data, centre, radius=radius, scale=scale).mean_gradient(
        loss, point, weights=weights
    )


def program(pair: Pair, rng: Rng) -> Callable[[PrivateDataset], Sensitive]:
    """Return a random program of public operations on functions of a handle."""
    steps: list[tuple[int, Callable[[PrivateDataset], Sensitive], int]] = [
        (int(rng.integers(6)), leaf(pair, rng), int(rng.integers(2**40)))
        for _ in range(rng.integers(4))
    ]
    begun = leaf(pair, rng)

    def run(data: PrivateDataset) -> Sensitive:
        value = begun(data)
        for kind, other, seed in steps:
            own, size = np.random.default_rng(seed), value.sensitivity.value
            match kind:
                case 0:
                    value = value * float(own.choice([-1.0, 0.3, 1e3]))
                case 1:
                    value = value + own.normal(size=value.dimension) * size * 1e5
                case 2:
                    value = linear_map(own.normal(size=(2, value.dimension)), value)
                case 3:
                    value = value.clipped(size * float(own.choice([0.1, 0.6, 3.0])))
                case 4:
                    value = concatenate(value, other(data))
                case _:
                    second = other(data)
                    shape = (value.dimension, second.dimension)
                    value = value - linear_map(own.normal(size=shape), second)
        return value

    return run


@pytest.mark.parametrize("relation", [REPLACE, ZERO, ADD])
def test_no_program_on_any_form_of_rows_moves_further_than_its_event_says(
    relation: Adjacency,
) -> None:
    """Tried: gradients, minimisers, counts, moments, centred and scaled rows, of one to three
    parties with weights; rows in four forms, far beyond their bound, tiny and null; five kinds of
    labels, eleven losses; sums, maps, cuts and pairs of these."""
    shares, tried = list[float](), 0
    for seed in range(160):
        rng = np.random.default_rng(seed)
        pair = Pair(relation, rng)
        try:
            both, run = pair.handles(), program(pair, rng)
            if both is None:
                continue
            first, second = (run(data) for data in both)
            size = first.sensitivity.value
            noise_std = max(size * 2.0**-10, float(first.rounding.magnitude) * 2.0**-41)
            (one, event), (two, same) = said(first, noise_std), said(second, noise_std)
        except InvalidParameter:  # numbers out of range, which are public
            continue
        assert event == same
        limit = event.sensitivity.root * DOUBLES
        assert moved(one, two) <= limit**2, (relation, seed)
        shares.append(float(moved(one, two) / limit**2) ** 0.5)
        tried += 1
    assert tried > 60
    assert max(shares) > 0.9


@pytest.mark.parametrize("relation", [REPLACE, ZERO])
def test_no_sum_over_a_draw_moves_further_than_its_event_says(relation: Adjacency) -> None:
    """Tried: the same draw of neighbours, gradients and corrections cut to small radii."""
    shares = list[float]()
    for seed in range(80):
        rng = np.random.default_rng(seed)
        pair = Pair(relation, rng)
        smallest = int(np.bincount(pair.holders).min())
        both = pair.handles()
        if both is None or (relation is REPLACE and smallest < 2):
            continue
        scheme: Any = FixedBatch(1) if relation is REPLACE else Poisson(0.6)
        loss = some_loss(pair.domain, rng)
        width = pair.width * loss.outputs
        point, anchor = rng.normal(size=(2, pair.parties, width)) / pair.bound
        radius = float(rng.choice([1e-3, 0.3, 50.0])) * pair.bound
        found = list[tuple[Floats, Sensitive]]()
        for data in both:
            curator = SamplingCurator(EventList(), SeededSampler(99))
            sample = curator.sample(data, scheme)
            value = (
                sample.sum_gradient(loss, point, radius=radius)
                if seed % 2
                else sample.sum_correction(loss, point, anchor=anchor, radius=radius)
            )
            message = curator.release(
                value, round=1, release="x", noise_std=value.sensitivity.value
            )
            found.append((message, value))
        (one, value), (two, _) = found
        limit = value.sensitivity.root * (1 + Fraction(1, 2**30))  # what a lattice adds
        assert moved(one, two) <= limit**2, seed
        shares.append(float(moved(one, two) / limit**2) ** 0.5)
    assert max(shares) > 0.9


def columns_asked(
    handle: VerticalDataset, rng: Rng, scale: float, kind: int, goal: float
) -> Sensitive:
    """Return a function of a party's columns, or of labels, to a tolerance."""
    count = handle.shape.count
    size = float(10.0 ** rng.integers(-3, 4))
    if kind == 2:
        target = rng.normal(size=count) * size
        loss: Any = (Logistic(), ClippedLogistic(0.3), SmoothedHinge(2.0))[rng.integers(3)]
        return handle.dual(loss, target, penalty=size, tolerance=goal)
    problem = LocalProblem(
        pull=np.sign(rng.normal(size=count)) * size,
        penalty=float(10.0 ** rng.integers(-4, 5)) / scale**2,
        modulus=float(10.0 ** rng.integers(-6, 3)),
        slope_bound=size,
        radius=float(10.0 ** rng.integers(-3, 4)) / scale,
        tolerance=goal,
    )
    return handle.minimiser("p", problem) if kind else handle.predictions("p", problem)


@pytest.mark.parametrize("kind", [0, 1, 2], ids=["predictions", "minimiser", "slopes of labels"])
@pytest.mark.parametrize("relation", [REPLACE, ZERO])
def test_no_answer_about_columns_moves_further_at_the_least_tolerance(
    relation: Adjacency, kind: int
) -> None:
    """Tried: equal rows, one row far longer than all others, penalties and moduli over ten orders,
    and of every one the least tolerance that is not refused."""
    if kind == 2 and relation is ZERO:
        pytest.skip("a null label is no label that a handle takes")
    shares = list[float]()
    for seed in range(120):
        rng = np.random.default_rng(seed)
        count, width = int(rng.choice([1, 2, 10, 60])), int(rng.choice([1, 2, 5]))
        scale = float(rng.choice([1.0, 2.0**-100, 2.0**100]))
        rows = np.tile(rng.normal(size=width), (count, 1))
        if seed % 2:
            rows = rng.normal(size=(count, width)) * rng.choice([1e-9, 1.0], (count, 1))
        rows *= scale / np.linalg.norm(rows, axis=1, keepdims=True)
        labels = rng.choice([-1.0, 1.0], count)
        other, changed, place = rows.copy(), labels.copy(), int(rng.integers(count))
        other[place] *= -1e3 if relation is REPLACE else 0.0
        changed[place] *= -1.0 if kind == 2 else 1.0
        handles = [
            VerticalDataset(
                [a], y, adjacency=relation, parties=("p",), public_labels=False, row_bound=scale
            )
            for a, y in ((rows, labels), (other, changed))
        ]

        def both(goal: float, turn: int = seed, given: Any = (handles, scale)) -> list[Sensitive]:
            return [
                columns_asked(handle, np.random.default_rng(turn), given[1], kind, goal)
                for handle in given[0]
            ]

        try:
            first, second = both(1e-300)
        except InvalidParameter as refused:
            least = re.search(r"at least ([0-9.e+-]+),", str(refused))
            if least is None:  # a sensitivity out of range, which is public
                continue
            first, second = both(1.01 * float(least[1]))
        noise_std = max(
            first.sensitivity.value * 2.0**-10, float(first.rounding.magnitude) * 2.0**-41
        )
        (one, event), (two, same) = said(first, noise_std), said(second, noise_std)
        assert event == same
        assert moved(one, two) <= event.sensitivity.squared * DOUBLES, seed
        shares.append(float(moved(one, two) / event.sensitivity.squared) ** 0.5)
    assert max(shares) > 0.3


@pytest.mark.parametrize("form", ["rows", "columns", "sparse", "blocks"])
def test_equal_records_have_one_score_wherever_they_stand(form: str) -> None:
    """Tried: rows whose score is 0 but for rounding, so that another order of additions would
    divide equal records into two classes; up to 64 of them, at one to three parties."""
    rng = np.random.default_rng(2)
    forms: dict[str, Callable[[Floats], Any]] = {
        "rows": np.copy,
        "columns": np.asfortranarray,
        "sparse": sparse.csr_array,
        "blocks": lambda rows: RowBlocks(rows.shape, lambda some: rows[some], at_once=3),
    }
    for width in (2, 3, 7, 17, 33, 129, 1000, 4097, 8193, 10_000):
        row = rng.normal(size=width) * 10.0 ** rng.integers(-3, 4, size=width)
        row /= 2.0 * np.linalg.norm(row)
        model = rng.normal(size=width)
        model[-1] -= float(row @ model) / row[-1]
        classes = set[bool]()
        for count, parties in ((1, 1), (2, 1), (3, 2), (8, 3), (33, 1), (64, 2)):
            holders = np.concatenate([np.arange(parties), np.zeros(count - parties, int)])
            if parties > 1:
                holders[-1] = 0
            data = PrivateDataset(
                forms[form](np.tile(row, (count, 1))),
                np.ones(count),
                adjacency=ADD,
                row_bound=1.0,
                party_of=holders,
                parties=tuple("abc"[:parties]),
                n_min=1,
                n_max=5000,
            )
            curator = SamplingCurator(EventList(), SeededSampler(1))
            wrong = curator.release(
                data.wrong_predictions([model]),
                mechanism=DiscreteLaplaceNoise(2.0**-8),
                round=1,
                release="x",
            )
            assert wrong.sum() in (0.0, count), (width, count)
            classes.add(bool(wrong.sum()))
        assert len(classes) == 1, width


# --- laws of noise -----------------------------------------------------------------------------


def test_choices_and_answers_have_the_law_of_their_event() -> None:
    """Tried: costs whose gaps are many scales and few, answers of few and of many categories."""
    sampler, often = SeededSampler(20), 600
    costs = np.array([[0.0, 1.0, 2.0, 5.0, 9.0, 1.0]])
    for scale in (0.7, 3.0):
        chosen = [int(sampler.choice(costs, scale).argmax()) for _ in range(often)]
        law = np.exp(-costs[0] / scale)
        expected = law / law.sum() * often
        told = np.bincount(chosen, minlength=6).astype(np.float64)
        few = expected < 5
        told = np.append(told[~few], told[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
        kept = expected > 0
        assert stats.chisquare(told[kept], expected[kept]).pvalue > 1e-4
    for truth, categories in ((1 / 3, 3), (0.9, 5), (1e-9, 4)):
        answers = sampler.randomised_response(np.ones(100_000), truth, categories)
        law = np.full(categories, (1.0 - truth) / (categories - 1))
        law[1] = truth
        likely = law > 1e-6
        told = np.bincount(answers.astype(int), minlength=categories)[likely].astype(np.float64)
        expected = law[likely] / law[likely].sum() * told.sum()
        assert stats.chisquare(told, expected).pvalue > 1e-4


# --- files of runs -----------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Give a folder with a table of 413 records, its schema and a run of add-remove-one."""
    rng = random.Random(7)
    lines = ["a,c,y"]
    for _ in range(413):
        a = rng.random()
        lines.append(f"{a:.4f},{rng.choice('uvw')},{'yes' if a > rng.random() else 'no'}")
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "s.toml").write_text(
        'row_bound = 1.0\ncolumns = [{kind = "numeric", name = "a", lower = 0, upper = 1},\n'
        '{kind = "categorical", name = "c", categories = ["u", "v", "w"]},\n'
        '{kind = "label", name = "y", positive = ["yes"], negative = ["no"]}]\n'
    )
    (tmp_path / "run.toml").write_text(
        'data = {files = ["p.csv"], schema = "s.toml", train_records = 250, held_out = 0.2, '
        'parties = 1}\nprivacy = {adjacency = "add-remove-one", epsilon = 2.0, delta = 1e-5}\n'
        'solver = {algorithm = "consensus-admm", rounds = 2, intercept = true}\n'
        'noise = {sampler = "system"}\n'
    )
    return tmp_path


def called(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """Return the status of a command."""
    monkeypatch.setattr(sys, "argv", ["dpledger", *map(str, words)])
    try:
        command()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_a_seed_serves_statistics_of_one_ledger_once(table: Path) -> None:
    """Tried: the same mean at two epsilons, whose noise of one seed would be subtracted."""
    asked = table / "asked.toml"
    for turn, epsilon in enumerate((0.5, 1.0)):
        asked.write_text(
            'data = {files = ["p.csv"], schema = "s.toml", records = 413}\n'
            f'privacy = {{adjacency = "replace-one", epsilon = {epsilon}, delta = 1e-5}}\n'
            'noise = {sampler = "philox", seed = 98765432109876543210}\n'
            'statistics = [{kind = "mean", column = "a"}]\n'
        )
        given = {"out": table / f"out{turn}", "ledger": table / "ledger"}
        if not turn:
            with pytest.warns(UserWarning, match="new"):
                release_statistics(asked, **given)
            continue
        with pytest.raises(LedgerError, match="fresh seed"):
            release_statistics(asked, **given)
    assert not (table / "out1" / "statistics.json").exists()
    with SqliteLedger(table / "ledger") as ledger:
        assert len(ledger.events()) == 1


def test_no_file_for_others_says_how_many_records_there_are(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried under add-remove-one, where their number is private: page, model, certificate."""
    out = table / "out"
    skipped = ("--no-attack", "--no-baselines", "--no-crosscheck")
    assert called(monkeypatch, "run", table / "run.toml", "--out", out, *skipped) == 0
    report = (out / "report.json").read_text()
    test = re.search(r'on held-out records",.*?"records": (\d+)', report, re.DOTALL)
    assert test is not None
    numbers = {413, int(test[1]), 413 - int(test[1])}
    for name in ("public.html", "model.json", "certificate.json", "configuration.toml"):
        text = re.sub(r"[0-9a-f]{16,}", "", (out / name).read_text())
        for number in numbers:
            assert not re.search(rf"(?<![\d.]){number}(?![\d.])", text), (name, number)


@pytest.mark.parametrize("name", ["p.csv", "s.toml"])
def test_a_file_that_is_no_anchor_is_not_written_to(
    table: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    """Tried: the records and the schema in an anchor's place; nothing is released either."""
    before, out = (table / name).read_bytes(), table / "out"
    words = ("--out", out, "--anchor", table / name, "--no-attack", "--no-baselines")
    assert called(monkeypatch, "run", table / "run.toml", *words) == 2
    assert (table / name).read_bytes() == before
    assert not (out / "model.json").exists()
    capfd.readouterr()


def test_mutated_plans_end_in_a_line_or_a_plan(
    table: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tried: values of other kinds and sizes in every place of a run file."""
    odd = ["0", "-1", "1e-300", "1e300", "inf", "nan", "true", '""', '"a"', "[]", "{}", "5e-324"]
    text, rng = (table / "run.toml").read_text(), random.Random(3)
    places = [m.span(1) for m in re.finditer(r"= (\"[^\"]*\"|[\d.e-]+|true)", text)]
    for _ in range(60):
        (begin, end), value = rng.choice(places), rng.choice(odd)
        (table / "mutated.toml").write_text(text[:begin] + value + text[end:])
        status = called(monkeypatch, "plan", table / "mutated.toml")
        assert status in (0, 1, 2, 3)
        found = capfd.readouterr()
        assert status != 2 or found.err.strip(), value
        assert "Traceback" not in found.err, value


def test_a_refused_argument_draws_and_lists_nothing() -> None:
    """Tried: noise out of range, of other kinds, and a point that is too large."""
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency=REPLACE, row_bound=1.0)
    value, sink = data.mean_gradient(Logistic(), np.zeros(3)), EventList()
    curator = SamplingCurator(sink, SeededSampler(1))
    for noise in (
        {},
        {"noise_std": -1.0},
        {"noise_std": float("nan")},
        {"noise_multiplier": 1e300},
    ):
        given: dict[str, Any] = noise
        with pytest.raises(DpledgerError):
            curator.release(value, round=1, release="x", **given)
    with pytest.raises(InvalidParameter):
        data.mean_gradient(Logistic(), np.full(3, 1e101))
    assert not sink.events
    told = curator.release(value, round=1, release="x", noise_std=1.0)
    assert np.array_equal(told, said(value, 1.0, seed=1)[0])  # no noise was drawn meanwhile


# --- what is said of neighbours ----------------------------------------------------------------


Call = Callable[[], object]


def calls_with(data: PrivateDataset, odd: Any) -> list[Call]:
    """Return calls in which one public argument is odd in kind, shape or size."""
    loss, plain, later = Logistic(), np.zeros(3), np.zeros((3, 1, 3))
    argmin = data.strongly_convex_argmin
    return [
        lambda: data.mean_gradient(loss, odd),
        lambda: data.mean_gradient(loss, plain, weights=odd),
        lambda: data.sum_gradient(loss, odd, radius=0.5),
        lambda: data.wrong_predictions([odd]),
        lambda: data.histogram(odd),
        lambda: CentredRows(data, odd, radius=0.5).mean_squares(),
        lambda: CentredRows(data, plain, radius=0.5, scale=odd).mean_squares(),
        lambda: linear_map(odd, data.second_moment()),
        lambda: data.mean_gradient(loss, plain) + odd,
        lambda: argmin(loss, modulus=1.0, linear=odd, tolerance=1e-3, start=later),
        lambda: argmin(loss, modulus=odd, linear=plain, tolerance=1e-3, start=plain),
    ]


def release_with(data: PrivateDataset, noise: dict[str, Any]) -> Call:
    """Return a call that releases a gradient with noise of an odd size; of which the shape."""
    value = data.mean_gradient(Logistic(), np.zeros(3))
    curator = SamplingCurator(EventList(), SeededSampler(1))
    return lambda: curator.release(value, round=1, release="x", **noise).shape


def odd_calls(data: PrivateDataset) -> list[Call]:
    """Return calls whose public arguments are odd."""
    odd: tuple[Any, ...] = (
        np.zeros((2, 1, 3)),
        np.zeros((3, 2, 1, 3)),
        np.zeros(4),
        np.full(3, 1e101),
        np.zeros((2, 3)),
        float("nan"),
        None,
    )
    sizes: list[dict[str, Any]] = [
        {"noise_std": 0.0},
        {"noise_std": 1e-300},
        {"noise_multiplier": 1e300},
        {},
    ]
    others: list[Call] = [
        data.answers,
        lambda: data.histogram([0.0], column=7),
        lambda: data.mean_gradient(Multinomial(3), np.zeros(3)),
    ]
    several = [call for one in odd for call in calls_with(data, one)]
    return [*several, *others, *(release_with(data, noise) for noise in sizes)]


def told(data: PrivateDataset) -> list[tuple[str, str, list[str]]]:
    """Return the kind and the words of every answer, and of warnings on the way."""
    found = list[tuple[str, str, list[str]]]()
    for call in odd_calls(data):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                said_of_it = ("answer", repr(call()))
            except Exception as error:
                said_of_it = (type(error).__name__, str(error))
        found.append((*said_of_it, [str(each.message) for each in warned]))
    return found


@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("form", [np.copy, sparse.csr_array], ids=["dense", "sparse"])
def test_neighbours_are_told_apart_by_no_refusal_and_no_warning(
    relation: Adjacency, form: Callable[[Floats], Any]
) -> None:
    """Tried: points, weights, moduli, centres, scales and public operands of odd kinds, shapes and
    sizes; a record more, or one that is far away, changes no kind, word or number of what is
    said."""
    rng = np.random.default_rng(4)
    rows, labels = rng.normal(size=(41, 3)), rng.choice([-1.0, 1.0], 41)
    other, changed = rows.copy(), labels.copy()
    other[7], changed[7] = rows[7] * -1e9, -labels[7]
    resized = relation is ADD
    sides = (
        ((rows[:40], labels[:40]), (rows, labels))
        if resized
        else (
            (rows, labels),
            (other, changed),
        )
    )
    limits: dict[str, Any] = {"n_min": 20, "n_max": 100} if resized else {}
    first, second = (
        told(PrivateDataset(form(a), y, adjacency=relation, row_bound=1.0, **limits))
        for a, y in sides
    )
    assert first == second
    assert sum(kind == "answer" for kind, *_ in first) > 10
    assert len({words for _, words, _ in first}) > 30
