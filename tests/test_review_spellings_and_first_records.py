"""One record decides neither how others are spelled in a file, nor the type of a loss's answers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpledger.data import load_table
from dpledger.data.errors import DataError
from dpledger.data.schema import parse_schema
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    DiscreteLaplaceNoise,
    DpledgerError,
    EventList,
    InvalidParameter,
    LaplaceNoise,
    Norm,
    PrivateDataset,
    RealLabels,
    SamplingCurator,
    SeededSampler,
    WeightedLabels,
)
from dpledger.mechanisms.row_blocks import require_untimed
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.solvers import Hinge, SmoothedHinge
from dpledger.solvers.weighted import Weighted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RecordByRecord:
    """A loss of one residual, written for one record: NumPy takes its type from the first."""

    slope: Callable[[float], float]
    outputs = 1
    label_domain = RealLabels(1.0)
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(1)

    def value(self, scores: Floats, labels: Floats) -> Floats:
        """Is not asked for."""
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes."""
        return np.vectorize(self.slope)(scores - labels)


def insensitive(gap: float) -> float:
    """Return the slope of Huber's loss beyond a tube of 0.01."""
    return 0 if abs(gap) <= 0.01 else max(-1.0, min(1.0, gap))


@pytest.mark.parametrize(
    "slope",
    [lambda gap: 0 if gap == 0 else math.tanh(gap), insensitive],
    ids=["nothing at 0", "a tube"],
)
@pytest.mark.parametrize("relation", [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE])
def test_a_loss_of_single_records_moves_them_singly_or_is_refused(
    slope: Callable[[float], float], relation: Adjacency
) -> None:
    """A first record of residual 0 made whole numbers of all others' slopes: 0."""
    rows, told = np.tile([0.9, 0.0], (200, 1)), []
    for first in (0.9, 0.0):
        rows[0] = (first, 0.0)
        data = PrivateDataset(
            rows, np.zeros(200), adjacency=relation, row_bound=1.0, label_domain=RealLabels(1.0)
        )
        sink = EventList()
        try:
            total = data.sum_gradient(RecordByRecord(slope), np.array([1.0, 0.0]))
        except InvalidParameter:
            return
        curator = SamplingCurator(sink, SeededSampler(1))
        told.append(curator.release(total, noise_multiplier=1.0, round=1, release="sum"))
    step: Any = sink.events[0].mechanism
    assert np.linalg.norm(told[0] - told[1]) <= step.sensitivity.value * (1.0 + 1e-9)


class RowByRow:
    """Slopes of three scores, nothing where all are 0: NumPy's type is the first row's."""

    outputs = 3
    label_domain = ClassLabels(3)
    derivative_bound = Fraction(1)
    curvature_bound = None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        """Is not asked for."""
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes."""

        def of_one(row: Floats) -> Any:
            return np.exp(row) / np.exp(row).sum() - 1.0 / 3.0 if row.any() else [0] * 3

        return np.apply_along_axis(of_one, 1, np.clip(scores, -700.0, 700.0))


def test_a_loss_of_single_rows_of_scores_moves_them_singly_or_is_refused() -> None:
    """A blanked record at the first place of a block made whole numbers of 255 others' slopes."""
    rows, told = np.tile([1.0, 0.0], (200, 1)), []
    for first in (1.0, 0.0):
        rows[0, 0] = first
        data = PrivateDataset(
            rows,
            np.zeros(200),
            adjacency=Adjacency.ZERO_OUT_ONE,
            row_bound=1.0,
            label_domain=ClassLabels(3),
        )
        try:
            total = data.sum_gradient(RowByRow(), np.array([2.0, 0.0, -2.0, 0.0, 0.0, 0.0]))
        except InvalidParameter:
            return
        curator = SamplingCurator(EventList(), SeededSampler(1))
        told.append(curator.release(total, noise_multiplier=1.0, round=1, release="sum"))
    assert np.linalg.norm(told[0] - told[1]) <= total.sensitivity.value * (1.0 + 1e-9)


SCHEMA = """row_bound = 1.0
on_outside = "clip"
missing = ["?", "-1"]
drop_missing = true
columns = [
  {kind = "numeric", name = "x", lower = 0, upper = 100},
  {kind = "label", name = "y", positive = ["1"], negative = ["0"]},
]"""


def parquet(path: Path, cells: Sequence[Any]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    written = path.with_suffix(".parquet")
    labels = [k % 2 for k in range(len(cells))]
    pytest.importorskip("pyarrow.parquet").write_table(
        arrow.table({"x": list(cells), "y": labels}), written
    )
    return written


def numpy_file(path: Path, cells: Sequence[Any]) -> Path:
    written = path.with_suffix(".npz")
    np.savez(written, x=np.array(cells), y=np.arange(len(cells)) % 2)
    return written


def text_file(path: Path, cells: Sequence[Any]) -> Path:
    """Write as pandas does: a column of whole numbers and one with a fraction is one of floats."""
    written, kind = path.with_suffix(".csv"), int if {*map(type, cells)} == {int} else float
    lines = [f"{kind(cell)},{k % 2}" for k, cell in enumerate(cells)]
    written.write_text("\n".join(["x,y", *lines, ""]))
    return written


@pytest.mark.parametrize(
    ("write", "cells", "more"),
    [
        (parquet, [Decimal(-1)] * 50 + [Decimal(7)] * 50, Decimal("7.25")),
        (numpy_file, [-1.0] * 50 + [7.5] * 50, "?"),
        (text_file, [-1] * 50 + [7] * 50, 7.25),
    ],
    ids=["Decimals", "a text", "floats as text"],
)
def test_whether_a_cell_is_missing_depends_on_no_other_record(
    write: Callable[[Path, Sequence[Any]], Path], cells: list[Any], more: Any, tmp_path: Path
) -> None:
    """One record more made numbers of all missing cells: 50 more were counted."""
    schema, told = parse_schema(SCHEMA), []
    for name, each in (("a", cells), ("b", [*cells, more])):
        path = write(tmp_path / name, each)
        try:
            table = load_table(
                path, schema=schema, adjacency="add-remove-one", records=10, n_max=200
            )
        except DpledgerError:
            return
        counted = table.count(norm=Norm.L1)
        curator = SamplingCurator(EventList(), SeededSampler(1))
        noise = DiscreteLaplaceNoise(1.0)
        told.append(curator.release(counted, mechanism=noise, round=1, release="count").item())
    assert abs(told[0] - told[1]) <= counted.sensitivity.value


def test_time_spans_in_a_file_are_no_numbers(tmp_path: Path) -> None:
    """One record in months gave all of years another unit."""
    schema, told = parse_schema(SCHEMA), []
    years = [np.timedelta64(3, "Y")] * 100
    for name, cells in (("a", years), ("b", [np.timedelta64(5, "M"), *years[1:]])):
        try:
            table = load_table(
                numpy_file(tmp_path / name, cells),
                schema=schema,
                adjacency="replace-one",
                records=100,
            )
        except DataError:
            return
        total = table.sum("x", norm=Norm.L1)
        curator = SamplingCurator(EventList(), SeededSampler(1))
        noise = LaplaceNoise(100.0)
        told.append(curator.release(total, mechanism=noise, round=1, release="sum").item())
    assert abs(told[0] - told[1]) <= total.sensitivity.value * (1.0 + 1e-9)


def test_one_text_respells_no_other_number() -> None:
    """NumPy writes single precision shortly, where one cell of an array is a text."""
    told = []
    for cell in (np.float32(0.3), "0.3"):
        rows = np.array([[cell], *([[np.float32(0.1)]] * 100)])
        try:
            data = PrivateDataset(
                rows, np.ones(101), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
            )
        except InvalidParameter:
            return
        total = data.sum_gradient(Hinge(), np.array([1.0 / 0.1000000005]))
        curator = SamplingCurator(EventList(), SeededSampler(1))
        told.append(curator.release(total, noise_multiplier=1.0, round=1, release="sum").item())
    assert abs(told[0] - told[1]) <= total.sensitivity.value * (1.0 + 1e-9)


class InThreads:
    """The logistic loss, half of a block in each of two threads."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(1, 4)
    label_gap_bound: Any = None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        """Is not asked for."""
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes."""
        halves = np.array_split(np.arange(len(scores)), 2)
        with ThreadPoolExecutor(2) as pool:
            found = pool.map(
                lambda some: -labels[some] / (1.0 + np.exp(scores[some] * labels[some])), halves
            )
            return np.concatenate(list(found))


def test_warnings_of_a_losss_own_threads_tell_nothing() -> None:
    rows, heard = np.full((40, 1), 0.1), []
    for large in (1.0, 900.0):
        rows[3] = large
        data = PrivateDataset(rows, np.ones(40), adjacency=Adjacency.REPLACE_ONE, row_bound=1000.0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            data.sum_gradient(InThreads(), np.ones(1))
        heard.append(len(said))
    assert heard[0] == heard[1]


def test_a_narrow_hinge_is_refused_in_words() -> None:
    data = PrivateDataset(
        np.full((40, 1), 0.1), np.ones(40), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
    )
    with pytest.raises(InvalidParameter):
        data.strongly_convex_argmin(
            SmoothedHinge(1e-310),
            modulus=1.0,
            linear=np.zeros(1),
            tolerance=1e-3,
            start=np.zeros(1),
        )


def test_a_weighted_loss_needs_no_label_gap() -> None:
    domain = WeightedLabels(SIGNS)
    data = PrivateDataset(
        np.full((40, 1), 0.1),
        domain.joined(np.ones(40), np.ones(40)),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        label_domain=domain,
    )
    data.sum_gradient(Weighted(InThreads()), np.ones(1))  # type: ignore[arg-type]


def test_lazy_arrays_of_times_and_with_masks_are_no_numbers() -> None:
    """Estimators took their numbers: of the finest unit, and from behind the mask."""
    dask = pytest.importorskip("dask.array")
    rows = np.full((20, 2), 3, dtype="m8[ms]")
    with pytest.raises(InvalidParameter, match="times"):
        require_untimed("X", dask.from_array(rows))
    masked = np.ma.masked_array(np.ones((20, 2)), mask=np.eye(20, 2, dtype=bool))
    lazy = dask.from_array(masked, asarray=False)
    with pytest.raises(InvalidParameter, match="masked"):
        PrivateDataset(lazy, np.ones(20), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)


def test_time_spans_of_an_arrow_table_are_no_numbers() -> None:
    """As of a frame of pandas: their unit is the finest of any record's."""
    arrow = pytest.importorskip("pyarrow")
    spans = np.array([np.timedelta64(3, "ms"), *[np.timedelta64(3, "us")] * 39])
    model = PrivateAdmmClassifier(
        epsilon=1, delta=1e-5, adjacency="replace-one", classes=(0, 1), clip=True
    )
    with pytest.raises(InvalidParameter, match="times"):
        model.fit(arrow.table({"stay": spans}), np.resize([0, 1], 40))
