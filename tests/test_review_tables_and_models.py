"""Laws that a reviewer tried against tables, models, runs and the forms of what they are given.

Messages are held fixed, or have hardly any noise; epsilons are compared with closed forms.
"""

from __future__ import annotations

import itertools
import random
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, stats
from tests.test_review_calculus import share_moved
from tests.test_review_estimators import RELATIONS, REPLACE

import dpledger as dp
from dpledger.data import load_table, read_schema
from dpledger.federation.journal import RecordedCurator
from dpledger.mechanisms import (
    Adjacency,
    BoundedColumn,
    DataShape,
    DiscreteLaplaceNoise,
    DpledgerError,
    Event,
    EventList,
    ExponentialMechanism,
    FixedBatch,
    GaussianStep,
    Norm,
    PlanningCurator,
    Poisson,
    PrivateDataset,
    PrivateTable,
    PureStep,
    RowBlocks,
    SamplingCurator,
    SeededSampler,
    TableShape,
)
from dpledger.mechanisms.curators import Release
from dpledger.runs import RunOptions
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.solvers import Hinge, LinearLoss

pa = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
parquet = pytest.importorskip("pyarrow.parquet")

Floats = NDArray[np.float64]
ADD = Adjacency.ADD_REMOVE_ONE


def said(value: Any, noise: Any = None) -> Floats:
    """Return what a curator of one seed says of a value, with hardly any noise."""
    curator = SamplingCurator(EventList(), SeededSampler(1))
    given: dict[str, Any] = {"mechanism": noise} if noise else {"noise_std": 1e-6}
    return curator.release(value, round=1, release="value", **given)


# --- what is given -------------------------------------------------------------------------------
def strided(rows: Floats) -> Floats:
    """Return every third column of wider rows."""
    wide = np.full((len(rows), 3 * rows.shape[1]), 77.0)
    wide[:, ::3] = rows
    return wide[:, ::3]


def blocks(rows: Floats) -> RowBlocks:
    """Return rows that are read three at a time."""
    return RowBlocks(rows.shape, lambda some: np.ascontiguousarray(rows[some]), at_once=3)


FORMS: dict[str, Callable[[Floats], Any]] = {
    "plain": np.ascontiguousarray,
    "column by column": np.asfortranarray,
    "strided": strided,
    "half": lambda rows: rows.astype(np.float16),
    "in blocks": blocks,
    "csr": sparse.csr_array,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_record_more_moves_no_other_over_an_edge(form: str) -> None:
    """Tried: rows cut to their bound, edges where they are cut to, a hinge's kink at their scores;
    widths up to 33, blocks' ends."""
    stated: dict[str, Any] = {"adjacency": ADD, "row_bound": 1.0, "n_min": 1}
    rng = np.random.default_rng(0)
    for width, count in itertools.product((2, 9, 16, 33), (1, 1, 1, 2, 5)):
        rows = (rng.normal(size=(count + 1, width)) * 2).astype(np.float16).astype(np.float64)
        last = rows[count - 1] / np.linalg.norm(rows[count - 1])
        both = [
            PrivateDataset(FORMS[form](some), np.ones(len(some)), **stated)
            for some in (rows, rows[np.arange(count + 1) != count % 2 * count])
        ]
        for k in range(2 * width + 26, 2 * width + 39):
            edge, at = last[0] * (1 - k * 2.0**-53), last * (1 + k * 2.0**-53)
            cells = [each.histogram([edge], column=0, norm=Norm.L1) for each in both]
            one, two = (said(each, DiscreteLaplaceNoise(2.0**-8)) for each in cells)
            assert np.abs(one - two).sum() <= 1.0
            one, two = (said(each.sum_gradient(Hinge(), at)) for each in both)
            assert share_moved(one, two, Fraction(1)) <= 1 + 1e-9


TWICE = [datetime(2020, 10, 25, 2, 30, fold=f, tzinfo=ZoneInfo("Europe/Berlin")) for f in (0, 1)]
"""One time of the day when clocks go back, which equals itself."""

CELLS: dict[str, tuple[Any, Sequence[Any]]] = {
    "whole": (pa.int64(), [0, 1, -1, 2**53, 2**53 + 1]),
    "real": (pa.float64(), [0.0, -0.0, 1.0, 1.5, 1e15, 5e-324]),
    "half": (pa.float16(), [0.0, -0.0, 1.0, 1.5]),
    "decimal": (pa.decimal128(9, 2), [Decimal("0.00"), Decimal("1.00"), Decimal("1.50")]),
    "moments": (pa.timestamp("us"), [datetime(2020, 1, 1) + timedelta(k / 8) for k in range(9)]),
    "zone": (pa.timestamp("us", "Europe/Berlin"), TWICE),
    "texts": (pa.string(), ["a", " a", "A", "b", "é"]),
    "words": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "c"]),
}
"""Of Parquet."""


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_of_a_file_is_read_by_itself(kind: str, tmp_path: Path) -> None:
    """Tried: categories of seven types of cells, each first or last in its file."""
    made, pool = CELLS[kind]
    texts = [str(int(c)) if isinstance(c, float) and c.is_integer() else str(c) for c in pool]
    words = sorted({text.strip() for text in texts})
    column = f'{{kind = "categorical", name = "c", categories = {words!r}}}'.replace("'", '"')
    (tmp_path / "schema.toml").write_text(f"row_bound = 1.0\ncolumns = [{column}]\n")
    draw, found = random.Random(1), list[Floats]()
    rest = [draw.choice(pool) for _ in range(20)]
    for first in pool:
        parquet.write_table(
            pa.table({"c": pa.array([first, *rest], type=made)}), tmp_path / "f.parquet"
        )
        table = load_table(
            tmp_path / "f.parquet",
            schema=read_schema(tmp_path / "schema.toml"),
            adjacency=REPLACE,
            records=21,
        )
        found.append(said(table.histogram("c", norm=Norm.L1), DiscreteLaplaceNoise(2.0**-8)))
    assert found[0].sum() == 21
    assert all(np.abs(a - b).sum() <= 2 for a, b in itertools.combinations(found, 2))


# --- what is promised ----------------------------------------------------------------------------


def bins(means: Floats, chances: Floats, edges: Floats, scale: float) -> Floats:
    """Return a normal mixture's probabilities between edges and beyond them."""
    total = np.zeros(len(edges) + 1)
    for mean, chance in zip(means, chances, strict=True):
        below = np.concatenate([[0.0], stats.norm.cdf(edges, mean, scale), [1.0]])
        above = np.concatenate([[1.0], stats.norm.sf(edges, mean, scale), [0.0]])
        left = np.append(edges <= mean, False)
        total += chance * np.where(left, np.diff(below), -np.diff(above))
    return total


def test_a_unit_of_several_in_a_sample_has_no_more_delta_than_is_printed() -> None:
    """Tried: one and two steps on hidden batches, up to four records a unit, all relations."""
    draw, shares = random.Random(3), list[float]()
    for _ in range(6):
        rel, n, group = draw.choice(RELATIONS), draw.choice([10, 50, 200]), draw.randrange(1, 5)
        batch, steps = draw.choice([1, 2, 5, n // 2]), draw.choice([1, 2])
        shape = DataShape(("a",), count=n, features=2, row_bound=1.0, adjacency=rel)
        scheme = FixedBatch(batch) if rel is REPLACE else Poisson(batch / n)
        data, curator = PrivateDataset.planned(shape), PlanningCurator()
        z, delta = draw.choice([0.5, 1.0, 4.0]), draw.choice([1e-2, 1e-6])
        for k in range(steps):
            total = curator.sample(data, scheme).sum_gradient(LinearLoss(), np.zeros(2))
            curator.release(total, round=k + 1, release="sum", noise_multiplier=z)
        promised = dp.guarantee(curator.events, delta=delta, group=group).epsilon.upper_float
        scale = float(curator.events[0].mechanism.event.noise_std)  # type: ignore[union-attr]
        hits = np.arange(min(group, batch) + 1.0 if rel is REPLACE else group + 1.0)
        law = stats.hypergeom(n, group, batch) if rel is REPLACE else stats.binom(group, batch / n)
        reach = hits[-1] + 9 * scale
        edges = np.linspace(-reach, reach, 700)
        one = bins(hits, law.pmf(hits), edges, scale)
        two = bins(-hits if rel is REPLACE else 0 * hits, law.pmf(hits), edges, scale)
        if steps == 2:
            one, two = (np.multiply.outer(each, each) for each in (one, two))
        ways = ((one, two), (two, one))
        shares += [float(np.maximum(p - np.exp(promised) * q, 0).sum()) / delta for p, q in ways]
    assert 0.5 < max(shares) <= 1 + 1e-9


def normal_delta(mu: Any, epsilon: Any) -> Any:
    """Return delta of a Gaussian mechanism at an epsilon of either sign; mu 0 releases nothing."""
    if not mu:
        return max(mpmath.mpf(0), 1 - mpmath.exp(epsilon))
    low, high = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return mpmath.ncdf(low) - mpmath.exp(epsilon) * mpmath.ncdf(high)


def test_choices_beside_normal_noise_have_no_more_delta_than_is_printed() -> None:
    """Tried: quantiles and sums, up to three records a unit: answers of which each is the worst
    that its epsilon allows, all their signs enumerated."""
    draw, shares, column = random.Random(5), list[float](), ("x", BoundedColumn(0, 9, 1.0))
    for _ in range(30):
        table = PrivateTable.planned(TableShape((column,), 50, draw.choice([*RELATIONS]), 50))
        curator, group = PlanningCurator(), draw.randrange(1, 4)
        for k in range(draw.randrange(1, 4)):
            costs, epsilon = table.quantile_costs("x", 0.3, [1.0, 2.0, 5.0]), draw.uniform(0.01, 2)
            choice = ExponentialMechanism(epsilon)
            curator.release(costs, mechanism=choice, round=k, release="quantile")
        for k in range(draw.randrange(3)):
            z = draw.uniform(0.5, 9)
            curator.release(table.sum("x"), noise_multiplier=z, round=k, release="sum")
        delta = draw.choice([1e-12, 1e-3, 0.3])
        promised = dp.guarantee(curator.events, delta=delta, group=group).epsilon.upper_float
        steps = [event.mechanism for event in curator.events]
        pure = [s.sensitivity.root / Fraction(s.scale) for s in steps if isinstance(s, PureStep)]
        normal = [s for s in steps if isinstance(s, GaussianStep)]
        parts = [s.sensitivity.squared / Fraction(s.noise_std) ** 2 for s in normal]
        mu, found = group * mpmath.sqrt(float(sum(parts, Fraction(0)))), mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(pure)):
            losses = [mpmath.mpf(group * float(e)) for e in pure]
            chance = mpmath.fprod(
                1 / (1 + mpmath.exp(-s * e)) for s, e in zip(signs, losses, strict=True)
            )
            lost = mpmath.fsum(s * e for s, e in zip(signs, losses, strict=True))
            found += chance * normal_delta(mu, promised - lost)
        shares.append(float(found / delta) if promised else 0.0)
    assert 0.5 < max(shares) <= 1 + 1e-6


# --- beside the messages -------------------------------------------------------------------------


class Repeating(RecordedCurator):
    """A curator that says again what it said in the run before, whatever it looks at."""

    said: ClassVar[list[Floats]] = []
    seen: ClassVar[list[tuple[Floats, Event]]] = []

    def _noise(self, release: Release) -> Callable[[Floats], Floats]:
        noisy, said, seen = super()._noise(release), self.said, self.seen

        def message(value: Floats) -> Floats:
            seen.append((np.array(value), release.event))
            if len(said) < len(seen):
                said.append(noisy(value))
            return np.array(said[len(seen) - 1])

        return message


SCHEMA = """
row_bound = 0.5
missing = ["?"]
drop_missing = true
on_outside = "clip"
columns = [{kind = "numeric", name = "age", lower = 18, upper = 90},
           {kind = "party", name = "clinic", parties = ["a", "b", "c"]},
           {kind = "categorical", name = "town", categories = ["north", "south"]},
           {kind = "class", name = "state", classes = ["x", "y", "z"]}]
"""
RUN = """
[data]
files = ["t.csv"]
schema = "s.toml"
{data}
[privacy]
adjacency = "{rel}"
delta = 1e-3
{price}
[solver]
loss = "multinomial"
rounds = 2
{solver}
[noise]
sampler = "system"
[attack]
parties = 3
"""
STEPS_OF_ONE = 'steps = "constant"\nstep_size = 0.1\n'
SOLVERS = {
    "pr-admm": 'algorithm = "pr-admm"\nnetwork = "ring"\n',
    "ps-admm": f'algorithm = "ps-admm"\ninner_steps = 2\n{STEPS_OF_ONE}',
    "dp-sgd": f'algorithm = "dp-sgd"\nclip = 0.1\nintercept = true\n{STEPS_OF_ONE}',
    "consensus-admm": 'algorithm = "consensus-admm"\nintercept = true\n',
    "pvp-admm": 'algorithm = "pvp-admm"\n',
}


@pytest.mark.parametrize("solver", SOLVERS)
def test_files_of_a_run_say_nothing_but_its_messages(
    solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried: five algorithms on clinics' records of three classes; a record more, or another."""
    monkeypatch.setattr("dpledger.runs.resuming.RecordedCurator", Repeating)
    rel = ADD if solver in ("pr-admm", "dp-sgd") else REPLACE
    data = "party_records = 3\ntrain_records = " + ("12\nheld_out = 0.3" if rel is ADD else "40")
    price = "epsilon = 3.0" if solver == "consensus-admm" else "noise_multiplier = 3.0"
    draw, written, values = random.Random(6), list[dict[str, str]](), list[Floats]()
    lines = [
        f"{draw.randrange(10, 99)},{'abc'[k % 3]},north,{draw.choice('xyz')}" for k in range(50)
    ]
    folders = iter(range(99))
    Repeating.said.clear()
    trained = [k for k in range(50) if k % 7 == 0]
    for changed in (None, *trained):
        (folder := tmp_path / str(next(folders))).mkdir()
        other = ["?,a,south,z" if rel is ADD else f"90,{'abc'[(changed or 0) % 3]},south,z"]
        some = lines if changed is None else [*lines[:changed], *other, *lines[changed + 1 :]]
        (folder / "s.toml").write_text(SCHEMA)
        (folder / "t.csv").write_text("\n".join(["age,clinic,town,state", *some]) + "\n")
        run = RUN.format(data=data, rel=rel.value, price=price, solver=SOLVERS[solver])
        (folder / "run.toml").write_text(run)
        Repeating.seen.clear()
        off = RunOptions(out=folder / "out", attack=False, crosscheck=False, baselines=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dp.run(folder / "run.toml", off)
        values.append(np.concatenate([value.ravel() for value, _ in Repeating.seen]))
        hidden = r"\d{4}-\d\d-\d\dT[\d:.+]+|[0-9a-f]{64}"
        files = sorted(p for p in (folder / "out").iterdir() if p.suffix not in (".npy", ".sqlite"))
        written.append({p.name: re.sub(hidden, "", p.read_text()) for p in files})
        if len(written) > 1 and not np.array_equal(values[0], values[-1]):
            assert written[0] == written[-1]
            return
    pytest.fail("no record that was changed was trained on")


def test_fits_in_threads_leave_warnings_as_they_were() -> None:
    """Tried: four threads of refused fits, of classes that are named."""
    before, rows = list(warnings.filters), np.full((20, 2), 9.0)

    def work() -> None:
        for _ in range(30):
            model = PrivateAdmmClassifier(
                epsilon=1.0, delta=1e-5, adjacency=REPLACE, classes=(0, 1)
            )
            with pytest.raises(DpledgerError):
                model.fit(rows, np.arange(20) % 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before
