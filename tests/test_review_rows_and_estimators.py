"""Laws that a reviewer tried against rows, counts, solvers, files and fits, on random settings.

Neighbours are run under one transcript and one noise; sums and prices are found by another route.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.test_review_estimators import RELATIONS, REPLACE, Tape, Taped, odd_rows, shares_moved

from dpledger import mechanisms, solvers
from dpledger.data import DataError, LabelledRecords, load_records, read_schema
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    EventList,
    LabelDomain,
    PrivateDataset,
    RealLabels,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    WeightedLabels,
)
from dpledger.mechanisms.curators import Release
from dpledger.runs.statistics import plan_statistics, read_statistics
from dpledger.solvers import ClippedLogistic, Logistic, Shifted, SmoothedHinge

Floats = NDArray[np.float64]
ADD = Adjacency.ADD_REMOVE_ONE
ZERO = Adjacency.ZERO_OUT_ONE
REAL = RealLabels(2.5)
SAMPLED = mechanisms.PoissonSampled | mechanisms.SampledWithoutReplacement
DOMAINS: tuple[LabelDomain, ...] = (
    *(SIGNS, ClassLabels(3), REAL, WeightedLabels(SIGNS), WeightedLabels(REAL)),
)


class InStep(Taped):
    """A taped curator that draws its noise in every run: samples of both runs are then alike."""

    def _noise(self, release: Release) -> Callable[[Floats], Floats]:
        noisy = SamplingCurator._noise(self, release)
        tape, given = self._tape, self._tape.given or []

        def said(value: Floats) -> Floats:
            tape.values.append(np.array(value))
            tape.events.append(release.event)
            own, place = noisy(value), len(tape.messages)
            tape.messages.append(np.array(given[place] if place < len(given) else own))
            return np.array(tape.messages[-1])

        return said


def taped(run: Callable[[Any, SamplingCurator], object], handles: Iterator[Any]) -> list[Tape]:
    """Return tapes of a run on two handles, the second under the first's messages."""
    tapes = [Tape()]
    for handle in handles:
        run(handle, InStep(tapes[-1], EventList(), SeededSampler(3)))
        tapes.append(Tape(tapes[-1].messages))
    assert tapes[0].events == tapes[1].events
    return tapes[:2]


def sampled_shares(one: Tape, two: Tape) -> Iterator[float]:
    """Yield how far sums over one draw moved, over what a drawn record moves."""
    for first, second, event in zip(one.values, two.values, one.events, strict=True):
        if isinstance(event.mechanism, SAMPLED):
            inner = event.mechanism.event
            assert isinstance(inner, mechanisms.GaussianStep)
            gap = float(np.linalg.norm(first - second))
            yield gap / float(inner.sensitivity.root)


def neighbours(
    rng: np.random.Generator, rel: Adjacency, domain: LabelDomain, rows: Floats, parties: int
) -> Iterator[PrivateDataset]:
    """Yield handles of records and of neighbours, in one of four layouts."""
    count, labels = len(rows), rng.choice(domain.some(9), size=len(rows))
    others, changed, kept = rows.copy(), labels.copy(), np.ones(count, dtype=bool)
    i, form = int(rng.integers(count)), int(rng.integers(4))
    others[i] = rng.choice([-rows[i], odd_rows(rng, (1, rows.shape[1]))[0]])
    others[i] *= rel is not ZERO
    changed[i], kept[i] = rng.choice(domain.some(9)), rel is not ADD
    forms: list[Callable[[Floats], Any]] = [np.copy, np.asfortranarray, sparse.csr_array]
    forms.append(lambda some: mechanisms.RowBlocks(some.shape, lambda k: some[k], at_once=2))
    limits: dict[str, Any] = {"n_min": 1, "n_max": 2 * count} if rel is ADD else {}
    for x, y, some in ((rows, labels, kept | True), (others, changed, kept)):
        yield PrivateDataset(
            forms[form](x[some]),
            y[some],
            adjacency=rel,
            row_bound=1.0,
            parties=tuple("abc"[:parties]),
            party_of=np.arange(count)[some] % parties,
            label_domain=domain,
            **limits,
        )


def loss_for(domain: LabelDomain, draw: random.Random) -> Any:
    """Return a smooth loss of a domain's labels."""
    match domain:
        case ClassLabels(classes):
            return solvers.Multinomial(classes)
        case RealLabels(bound):
            return draw.choice(
                [solvers.Huber(0.2, bound), solvers.SmoothedQuantile(0.3, 0.1, bound)]
            )
        case WeightedLabels(labels):
            return solvers.Weighted(loss_for(labels, draw))
        case _:
            return draw.choice([Logistic(), ClippedLogistic(0.3), SmoothedHinge(0.1)])


def solver_for(shape: mechanisms.DataShape, name: str, draw: random.Random) -> Any:
    """Return a solver of that name with random settings."""
    loss, z = loss_for(shape.label_domain, draw), draw.choice([0.5, 9.0])
    scheme = mechanisms.FixedBatch(2) if shape.adjacency is REPLACE else mechanisms.Poisson(0.4)
    noise: dict[str, Any] = {"noise_multiplier": z, "loss": loss}
    match name:
        case "consensus":
            share, scaling = draw.choice([0.1, 0.3]), draw.random() < 0.5
            metric = solvers.Centring(0, share, 0.45, scaling=scaling, stretching=not scaling)
            given: dict[str, Any] = {"metric": draw.choice([None, metric]), "momentum": 0.5}
            given["output"] = draw.choice([*solvers.Output])
            return solvers.ConsensusDpAdmm(3, step_size=2.0, **given, **noise)
        case "star":
            return solvers.DpAdmm(2, steps=solvers.ConstantSteps(0.3), **noise)
        case "descent":
            given = {"scheme": draw.choice([None, scheme]), "clip": draw.choice([None, 0.1, 9.0])}
            return solvers.DpSgd(2, steps=solvers.ConstantSteps(0.3), **given, **noise)
        case "output":
            return solvers.OutputPerturbation(**noise)
        case "pvp":
            return solvers.PvpAdmm(rounds=2, **noise)
        case "network":
            own = solvers.PrAdmm(solvers.ring(3), 2, **noise)
            others = [solvers.MAdmm(own, growth=1.2), solvers.RAdmm(own, proximity=0.5)]
            return draw.choice([replace(own, threshold=0.5), *others])
        case _:
            rounds = solvers.StochasticRounds(2, 2, step_size=0.1, loss=loss)
            bounds: dict[str, Any] = {"correction_bound": 0.3, "correction_noise_multiplier": z}
            sampled = solvers.SampledPsAdmm(rounds, scheme, snapshot_noise_multiplier=z, **bounds)
            return draw.choice([solvers.PsAdmm(rounds, z), sampled])


SOLVERS = ("consensus", "star", "descent", "output", "pvp", "network", "stochastic")


@pytest.mark.parametrize("name", SOLVERS)
def test_no_round_of_a_solver_moves_further_than_its_event_says(name: str) -> None:
    """Tried: 1,050 pairs, with odd rows, five kinds of labels, four layouts, metrics that stretch
    and scale, hidden batches, points far out, momentum; 60 runs of files beside."""
    draw, rng, shares = random.Random(4), np.random.default_rng(4), list[float]()
    for _ in range(9):
        rel, domain, width = draw.choice(RELATIONS), draw.choice(DOMAINS), draw.choice([2, 3])
        parties = 3 if name == "network" else draw.choice([1, 2])
        rows = odd_rows(rng, (4 * parties + draw.randrange(5), width))
        seed = draw.random()

        def run(data: PrivateDataset, curator: SamplingCurator, seed: float = seed) -> object:
            return solver_for(data.shape, name, random.Random(seed)).solve(data, curator)

        one, two = taped(run, neighbours(rng, rel, domain, rows, parties))
        assert all(np.all(np.isfinite(value)) for value in (*one.values, *two.values))
        shares += [*shares_moved(one, two), *(sampled_shares(one, two) if rel is not ADD else ())]
    assert 0.05 < max(shares) <= 1 + 1e-9


def test_no_answer_of_parties_with_columns_moves_further_than_its_event_says() -> None:
    """Tried: 400 pairs, one record and twelve, penalties and radii over six magnitudes."""
    draw, rng, shares = random.Random(8), np.random.default_rng(8), list[float]()
    for _ in range(40):
        rel, count, widths = draw.choice([REPLACE, ZERO]), draw.choice([1, 2, 9]), (1, 2)
        public = rel is ZERO or draw.random() < 0.5
        blocks, labels = [odd_rows(rng, (count, d)) for d in widths], rng.choice([-1.0, 1.0], count)
        others, i = [block.copy() for block in blocks], draw.randrange(count)
        changed = labels * np.where((np.arange(count) == i) & (not public), -1.0, 1.0)
        for block in others:
            block[i] = odd_rows(rng, (1, block.shape[1]))[0] * (rel is REPLACE)
        loss: Any = draw.choice([Logistic(), ClippedLogistic(0.3), Shifted(Logistic(), 0.5)])
        size = {key: 10.0 ** draw.uniform(-2, 2) for key in ("penalty", "regularisation", "radius")}
        size |= {"tolerance": 1e-2}
        exchange = solvers.SharingAdmm(2, 3.0, loss=loss, opening=count == 2, **size)
        pool = solvers.OpinionPool(2, 3.0, step_size=2.0, momentum=0.3, loss=loss)
        solver = pool if public and draw.random() < 0.5 else solvers.SharingModels(exchange)
        stated: dict[str, Any] = {"adjacency": rel, "parties": ("a", "b"), "public_labels": public}
        handles = (
            mechanisms.VerticalDataset(x, y, **stated)
            for x, y in ((blocks, labels), (others, changed))
        )
        shares += shares_moved(*taped(solver.solve, handles))
    assert 0.5 < max(shares) <= 1 + 1e-9


def counted(handle: PrivateDataset, curator: SamplingCurator, draw: random.Random) -> None:
    """Release one of a handle's counts, by the noise that it takes."""
    shape = handle.shape
    where: dict[str, Any] = {"round": 1, "release": "counts"}
    outputs = shape.label_domain.classes if isinstance(shape.label_domain, ClassLabels) else 1
    size = (3, shape.features * outputs)
    models = np.random.default_rng(draw.randrange(99)).integers(-2, 3, size=size) * 1e-300
    edges = sorted({draw.choice([-1.0, -0.5, 0.0, 5e-324, 0.5, 1.0]) for _ in range(3)})
    value: Sensitive
    match draw.randrange(4):
        case 0 if not isinstance(shape.label_domain, RealLabels | WeightedLabels):
            value = handle.wrong_predictions(list(models.astype(np.float64)))
            curator.release(value, mechanism=mechanisms.ExponentialMechanism(1.0), **where)
        case 1:
            value = handle.histogram(edges, column=0, norm=mechanisms.Norm.L1)
            curator.release(value, mechanism=mechanisms.DiscreteLaplaceNoise(2.0), **where)
        case 2:
            value = handle.histogram(edges)
            curator.release(value, mechanism=mechanisms.DiscreteGaussianNoise(2.0), **where)
        case _:
            curator.release(handle.second_moment(), noise_multiplier=1.0, **where)


def test_no_count_or_cost_of_records_moves_further_than_its_event_says() -> None:
    """Tried: 3,000 pairs, with models so small that scores underflow, edges on cells; 1,500 means
    and minimisers with parties' own counts and weights beside."""
    draw, rng, shares = random.Random(9), np.random.default_rng(9), list[float]()
    for _ in range(150):
        rel, domain, parties = draw.choice(RELATIONS), draw.choice(DOMAINS), draw.choice([1, 3])
        rows = odd_rows(rng, (parties * draw.choice([2, 4]), 2))
        seed = draw.random()

        def run(data: PrivateDataset, curator: SamplingCurator, seed: float = seed) -> None:
            counted(data, curator, random.Random(seed))

        shares += shares_moved(*taped(run, neighbours(rng, rel, domain, rows, parties)))
    assert 0.9 < max(shares) <= 1 + 1e-12


def exactly(value: Sensitive) -> Floats:
    """Return a value of synthetic records, released without noise."""
    curator = SamplingCurator(EventList(), mechanisms.SystemSampler())
    return curator.release(value, noise_std=0.0, round=1, release="value")


@pytest.mark.parametrize("count", [1000, 1025, 33 * 1024 + 1, 70000])
def test_no_sum_is_further_off_than_the_rounding_that_is_priced(count: int) -> None:
    """Tried: up to 200,000 rows, alike, alternating, sorted, of falling sizes; both layouts."""
    rng, loss = np.random.default_rng(count), solvers.LinearLoss()
    signs = np.where(np.arange(count) % 2, 1.0, -1.0)
    falling = 10.0 ** -np.linspace(0, 20, count)
    for factor in (np.ones(count) / 3, signs, falling, np.sort(rng.uniform(-1, 1, count))):
        rows = 0.9 * np.outer(factor, [0.6, 0.8]) * (1 + 1e-15 * rng.uniform(-1, 1, (count, 2)))
        for form in (rows, sparse.csr_array(rows)):
            stated: dict[str, Any] = {"adjacency": REPLACE, "row_bound": 1.0}
            data, at = PrivateDataset(form, np.ones(count), **stated), np.zeros(2)
            slope = float(loss.derivative(np.zeros(1), np.ones(1))[0])
            exact = np.array([fsum((slope * column).tolist()) for column in rows.T])
            values = data.sum_gradient(loss, at), data.mean_gradient(loss, at)
            for value, due in zip(values, (exact, exact / count), strict=True):
                off = float(np.linalg.norm(exactly(value)[0] - due))
                assert off <= float(value.rounding.error) + 2.0**-52 * float(np.linalg.norm(due))


def cells_of(records: LabelledRecords) -> Counter[tuple[float, ...]]:
    """Return how often each row with its label is there."""
    given = records.features
    rows = given if isinstance(given, np.ndarray) else given.toarray()
    return Counter(map(tuple, np.column_stack([rows, records.labels]).tolist()))


MARKS = ['"', ",", ";", "\t", " ", "#", "\\", "\x0b", "\x85", "\u2028", "\0", "\ufeff", "inf", "?"]


def test_a_line_of_a_text_file_changes_no_other_record(tmp_path: Path) -> None:
    """Tried: 5,000 files, of four delimiters and three ends of lines, comments that are quotes."""
    draw, seen = random.Random(5), Counter[str]()
    columns = (
        '[{kind = "numeric", name = "n", lower = 0, upper = 9}, '
        '{kind = "categorical", name = "c", categories = ["a", "b"]}, '
        '{kind = "label", name = "y", positive = ["1"], negative = ["0"]}]'
    )
    for _ in range(250):
        mark, end = draw.choice([",", ";", "|"]), draw.choice(["\n", "\r\n"])
        said = f"delimiter = '{mark}'\ncomment = '{draw.choice(['#', chr(34), 'x'])}'\n"
        rest = 'row_bound = 1.0\non_outside = "clip"\nmissing = ["?"]\ndrop_missing = true\n'
        (tmp_path / "s.toml").write_text(f"{rest}{said}columns = {columns}\n")
        schema = read_schema(tmp_path / "s.toml")
        fields = [(str(draw.randrange(10)), draw.choice("ab"), draw.choice("01")) for _ in range(6)]
        lines = [mark.join(record) for record in fields]
        place, other = draw.randrange(6), lines[0]
        for _ in range(draw.randrange(1, 4)):
            k = draw.randrange(len(other) + 1)
            other = other[:k] + draw.choice(MARKS) + other[k:]
        found = list[Counter[tuple[float, ...]]]()
        for some in (lines, [*lines[:place], other, *lines[place + 1 :]]):
            text = end.join([mark.join("ncy"), *some]) + end
            (tmp_path / "t.csv").write_bytes(text.encode())
            try:
                found.append(cells_of(load_records(tmp_path / "t.csv", schema=schema)))
            except DataError as refused:
                seen[type(refused).__name__] += 1
        if len(found) == 2:
            seen["read"] += 1
            assert max((found[0] - found[1]).total(), (found[1] - found[0]).total()) <= 1
    assert seen["read"] > 20
    assert len(seen) > 2


PURE = mechanisms.PureStep | mechanisms.LaplaceStep | mechanisms.DiscreteLaplaceStep
ASKED = {
    "count": "",
    "sum": 'column = "a"\n',
    "histogram": 'column = "t"\n',
    "quantile": 'column = "b"\nquantile = 0.3\ncandidates = 9\n',
}


def test_statistics_cost_no_less_than_all_their_noise(tmp_path: Path) -> None:
    """Tried: 33 files of up to five statistics, weights from 0.01 to 30, five records a person."""
    draw = random.Random(6)
    columns = '[{kind = "numeric", name = "a", lower = -3, upper = 9}, {kind = "categorical", '
    columns += 'name = "t", categories = ["x", "y"]}, {kind = "numeric", name = "b", lower = 0, '
    (tmp_path / "s.toml").write_text(f"row_bound = 1.0\ncolumns = {columns}upper = 1e-3}}]\n")
    for _ in range(8):
        rel, unit, target = draw.choice(RELATIONS), draw.choice([2, 5]), draw.choice([0.1, 4.0])
        text = '[data]\nfiles = ["t.csv"]\nschema = "s.toml"\nrecords = 90\n'
        text += f'[privacy]\nadjacency = "{rel.value}"\nepsilon = {target}\ndelta = 0.0\n'
        text += f'unit = "person"\nrecords_per_unit = {unit}\n'
        for kind in draw.choices([*ASKED], k=3):
            weight = draw.choice([0.01, 1.0, 30.0])
            text += f'[[statistics]]\nkind = "{kind}"\nweight = {weight}\n{ASKED[kind]}'
        (tmp_path / "asked.toml").write_text(text)
        plan, spent = plan_statistics(read_statistics(tmp_path / "asked.toml")), Fraction(0)
        for event in plan.events:
            step = event.mechanism
            assert isinstance(step, PURE)
            spent += unit * step.sensitivity.root / Fraction(step.scale)
        assert spent <= Fraction(plan.guarantee.epsilon.upper_float) <= target
        assert spent > Fraction(target) * 9 / 10 or not spent
