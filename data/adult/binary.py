"""UCI Adult as 123 binary features: numbers in quantile bins, categories one-hot.

>>> records = load_adult_binary()
>>> records.features.shape, records.row_bound
((48842, 123), 1.0)

The recipe is the one that LIBSVM's page documents for its a9a (after Platt 1998): "continuous
features are discretized into quantiles, and each quantile is represented by a binary feature; also,
a categorical feature with m categories is converted to m binary features". Five quantiles each:

- a cut point is a fifth of the training file; one that ties with the cut before moves up to the
  next value that occurs (education-num, hours-per-week);
- a number of which one value holds four fifths of the records gets two bins, that value or another
  (capital-gain, capital-loss: zero or not).

That gives 4·5 + 2·2 bins and 99 categories. What differs from LIBSVM's file: its cut points are
not documented, so single records may lie in neighbouring bins; its columns need not stand in this
order within a feature; and its ones are 1 here 1/sqrt(14), so that no row is longer than 1 by a
public constant. As there, a missing value has no 1 in its feature, and no record is left out.

The cut points are read off the training records, here as in a9a: an access to private data that no
epsilon of an experiment on these records prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...mechanisms.data_shape import EVERYBODY
from ..files import Table, read_table
from ..records import LabelledRecords
from ..schema import CategoricalColumn, Schema, read_schema

if TYPE_CHECKING:
    Rows = sparse.csr_array[Any, tuple[int, int]]

TRAINING_RECORDS = 32_561
"""Of the training file; the test file's 16,281 come after them."""

CUTS: Mapping[str, tuple[float, ...]] = {
    "age": (26, 33, 41, 50),
    "fnlwgt": (106_648, 158_662, 196_338, 259_873),
    "education-num": (9, 10, 11, 13),
    "capital-gain": (0,),
    "capital-loss": (0,),
    "hours-per-week": (35, 40, 41, 48),
}
"""The largest value in each bin but the last."""

_FOLDER = Path(__file__).parent
"""Where the shipped files and their schema are."""


def load_adult_binary() -> LabelledRecords:
    """Return all 48,842 records of UCI Adult, training file first, as CSR of shape (48842, 123)."""
    schema = read_schema(_FOLDER / "adult.toml")
    names = _bins(schema)
    files = ("adult.data.xz", "adult.test.xz")
    tables = [read_table(_FOLDER / file, schema) for file in files]
    width = sum(map(len, names.values()))
    blocks = [_ones(table, names, width) / sqrt(len(names)) for table in tables]
    numbers = schema.label.numbers
    income = [str(cell) for table in tables for cell in table.columns[schema.label.name]]
    labels = np.array([numbers[cell] for cell in income])
    return LabelledRecords(
        features=sparse.csr_array(sparse.vstack(blocks)),
        labels=labels,
        feature_names=tuple(name for group in names.values() for name in group),
        row_bound=1.0,
        description="UCI Adult (Becker and Kohavi, 1996) as 123 binary features",
        parties=EVERYBODY,
        party_of=np.zeros(len(labels), dtype=np.intp),
    )


def _bins(schema: Schema) -> dict[str, list[str]]:
    """Return the names of the binary features that each column becomes."""
    names: dict[str, list[str]] = {}
    for column in schema.features:
        if isinstance(column, CategoricalColumn):
            # the schema of complete records has no use for this one
            more = ("Never-worked",) if column.name == "workclass" else ()
            names[column.name] = [f"{column.name}={c}" for c in (*column.categories, *more)]
        else:
            cuts = CUTS[column.name]
            names[column.name] = [f"{column.name}<={cut:g}" for cut in cuts]
            names[column.name].append(f"{column.name}>{cuts[-1]:g}")
    return names


def _ones(table: Table, names: Mapping[str, Sequence[str]], width: int) -> Rows:
    """Return a file's records as 0/1 rows of shape (n, width) in CSR, a 1 for each known value.

    Args:
        table: the file.
        names: of the binary features that each column becomes, in the order of the features.
        width: number of features in all.
    """
    rows: list[NDArray[np.intp]] = []
    columns: list[NDArray[np.intp]] = []
    start = 0
    for column, group in names.items():
        cells = [str(cell) for cell in table.columns[column]]
        if column in CUTS:
            codes = np.searchsorted(CUTS[column], np.array(cells, dtype=np.float64), side="left")
        else:
            position = {name: code for code, name in enumerate(group)}
            codes = np.array([position.get(f"{column}={cell}", -1) for cell in cells])
        known = np.flatnonzero(codes >= 0)
        rows.append(known)
        columns.append(start + codes[known])
        start += len(group)
    place = (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_array((np.ones(len(place[0])), place), shape=(len(table), width))
