"""One record's text must not change what the cells of others say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger.data import load_records
from dpledger.data.errors import BadValue
from dpledger.data.schema import parse_schema
from dpledger.mechanisms import PrivateDataset
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.row_blocks import real_numbers, require_unspelled
from dpledger.runs.estimators import PrivateAdmmClassifier, PrivateAdmmRegressor

_SCHEMA = """
row_bound = 1.0
on_outside = "clip"
missing = ["?", "0", "-9.9"]
drop_missing = true
columns = [
  {kind = "numeric", name = "x", lower = 0, upper = 100},
  {kind = "categorical", name = "smoker", categories = ["True", "False"]},
  {kind = "label", name = "y", positive = ["1"], negative = ["2"]},
]
"""


def _complete(folder: Path, x: Any, smoker: Any) -> int:
    """How many records of an .npz file are complete."""
    path = folder / "table.npz"
    np.savez(path, x=np.asarray(x), smoker=np.asarray(smoker), y=np.ones(len(smoker), dtype=int))
    return len(load_records(path, schema=parse_schema(_SCHEMA)))


def test_false_is_no_spelling_of_the_mark_0(tmp_path: Path) -> None:
    """Beside one text NumPy writes False as a word: the other records must not come or go."""
    smoker: list[bool | str] = [True] * 5 + [False] * 5
    assert _complete(tmp_path, [7.0] * 10, smoker) == 10
    assert _complete(tmp_path, [7.0] * 11, [*smoker, "?"]) == 10


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_a_mark_is_the_same_number_in_every_type(tmp_path: Path, kind: str) -> None:
    """A mark of -9.9 is no exact binary32, and stands for what prints so; zero is zero in all."""
    cells = np.array([-9.9, 0.0, 1e-30, -9.8, 9.9], dtype=kind)
    smoker = [True, False, True, True, True]
    least = 2 if kind == "float16" else 3  # 1e-30 is 0 in half precision
    assert _complete(tmp_path, cells, smoker) == least


def test_a_mark_stays_one_in_a_column_that_was_widened(tmp_path: Path) -> None:
    """A double in one record makes doubles of a column of floats, which are then spelled out."""
    smoker = [True] * 6
    short = np.array([-9.9] * 3 + [5.0] * 3, dtype=np.float32)
    assert _complete(tmp_path, short, smoker) == 3
    assert _complete(tmp_path, short.astype(np.float64), smoker) == 3
    path = tmp_path / "table.csv"
    lines = [f"{float(x)!r},True,1" for x in short]
    path.write_text("\n".join(["x,smoker,y", *lines]), encoding="utf-8")
    assert lines[0].startswith("-9.899999618530273")
    assert len(load_records(path, schema=parse_schema(_SCHEMA))) == 3


def test_a_mark_beyond_a_type_marks_nothing_of_it(tmp_path: Path) -> None:
    """1e300 rounds to infinity in binary32, and 1e-300 to 0, which are other numbers."""
    schema = parse_schema(_SCHEMA.replace('"0", "-9.9"', '"1e300", "1e-300"'))
    path = tmp_path / "table.npz"
    smoker, y = np.array([True, True]), np.array([1, 2])
    np.savez(path, x=np.array([0.0, 1.0], dtype=np.float32), smoker=smoker, y=y)
    assert len(load_records(path, schema=schema)) == 2


@pytest.mark.parametrize(
    ("estimator", "bounds"),
    [(PrivateAdmmClassifier, {}), (PrivateAdmmRegressor, {"target_bounds": (0.0, 1.0)})],
)
@pytest.mark.parametrize("kind", ["U", "S"])
def test_rows_of_texts_are_refused(estimator: type[Any], bounds: dict[str, Any], kind: str) -> None:
    """One text among half-precision numbers would give all others the digits they print."""
    rows = np.array([[np.float16(0.7)], ["0.3"]]).astype(kind)
    model = estimator(epsilon=1.0, delta=1e-5, adjacency="replace-one", **bounds)
    with pytest.raises(InvalidParameter, match="texts"):
        model.fit(rows, np.array([0, 1]))


class _Behind:
    """Another library's array: NumPy asks it for one of its own."""

    def __init__(self, cells: Any) -> None:
        self._cells = np.asarray(cells)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._cells if dtype is None else self._cells.astype(dtype)


_TEXTS = np.array([[np.float16(0.7)], ["0.3"]])


@pytest.mark.parametrize(
    "rows",
    [
        _TEXTS,
        _TEXTS.astype("S"),
        _Behind(_TEXTS),
        list(_TEXTS),
    ],
)
def test_a_handle_takes_no_array_of_texts(rows: Any) -> None:
    """Whatever holds it: a list of its rows, or another library's array."""
    with pytest.raises(InvalidParameter):  # of lists it asks for a shape before
        PrivateDataset(rows, np.ones(2), adjacency="replace-one", row_bound=1.0)
    with pytest.raises(InvalidParameter, match="texts"):
        real_numbers("rows", rows)


@pytest.mark.parametrize("rows", [[[0.7], ["0.3"]], np.array([[0.7], ["0.3"]], dtype=object)])
def test_texts_among_objects_are_read_each_by_itself(rows: Any) -> None:
    """They have no type in common that one of them decides."""
    assert np.array_equal(real_numbers("rows", rows), [[0.7], [0.3]])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_handle_takes_no_frame_of_texts(library: str) -> None:
    """Frames say of what types their columns are."""
    frames = pytest.importorskip(library)
    made = frames.table if library == "pyarrow" else frames.DataFrame
    with pytest.raises(InvalidParameter, match="texts"):
        require_unspelled("X", made({"x": ["0.7", "0.3"]}))
    require_unspelled("X", made({"x": [0.7, 0.3]}))


def test_a_category_that_a_double_rounds_to_is_no_ones_word(tmp_path: Path) -> None:
    """One blank cell makes doubles of whole numbers, and of 2^53 + 1 another one."""
    schema = _SCHEMA.replace('"True", "False"', '"9007199254740992", "9007199254740993"')
    path = tmp_path / "table.csv"
    path.write_text("x,smoker,y\n1,9007199254740993,1\n2,9007199254740992,2\n", encoding="utf-8")
    assert len(load_records(path, schema=parse_schema(schema))) == 2
    path.write_text("x,smoker,y\n1,9007199254740992.0,1\n", encoding="utf-8")
    with pytest.raises(BadValue, match="smoker"):
        load_records(path, schema=parse_schema(schema))
