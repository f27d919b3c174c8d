"""Records from files: one file after another, each row by itself, by the rules of a schema.

A record's features depend on that record and the schema only, never on other records. So the
encoding is 1-stable: changing one record changes one row, and the encoding costs no privacy.

In come the paths of files and a `Schema`; out goes one `LabelledRecords`, which configured runs,
estimators and experiments turn into a private data set. Cells are read by `files`; what they mean
is decided here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # whose submodules are loaded at their first use
from msgspec import structs
from numpy.typing import NDArray

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.clipping import project_to_ball
from ..mechanisms.data_shape import EVERYBODY
from ..mechanisms.errors import InvalidParameter, named
from ..mechanisms.private_table import BoundedColumn, CategoryColumn, Column, PrivateTable
from .errors import BadValue, DataError, EmptyParty, NoRecords, SchemaError
from .files import Cells, Table, read_table
from .hints import among
from .records import LabelledRecords
from .schema import (
    CategoricalColumn,
    ClassColumn,
    IgnoredColumn,
    LabelColumn,
    NumericColumn,
    OnOutside,
    PartyColumn,
    Schema,
)
from .spelling import number_of, numbers_said, stripped, word_of

if TYPE_CHECKING:
    import scipy.sparse


@np.errstate(all="ignore")  # what a caller made an error would tell of a cell
def load_records(paths: str | Path | Sequence[str | Path], *, schema: Schema) -> LabelledRecords:
    """The records of one file, or of several in turn, encoded by `schema`.

    Numbers are mapped from their public bounds onto [0, 1], a category becomes one 1 among 0s, and
    a row longer than `schema.row_bound` is scaled down to it. The features are a CSR array when
    there is a categorical column, else a dense array.

    Args:
        paths: one file or several, all of them with the columns of the schema; records keep the
            order of the files and of their lines.
        schema: what is public about the columns.

    Raises:
        DataError: in one of its kinds, naming file, row, column, value and what is allowed; and
            for a file that is listed twice.
        MissingExtra: a file is Parquet and pyarrow is not installed.
    """
    listed = _listed(paths)
    tables = [read_table(path, schema) for path in listed]
    parts = [_encode(table, schema) for table in tables]
    entries = np.concatenate([part.entries for part in parts])
    party_of = np.concatenate([part.party_of for part in parts])
    files = ", ".join(Path(path).name for path in listed)
    if not len(entries):
        raise NoRecords(f"{files}: Expected a record without missing values instead got none.")
    parties = EVERYBODY if schema.party is None else schema.party.parties
    for party, name in enumerate(parties):
        if not (party_of == party).any():
            raise EmptyParty(f"{files}: Expected party {name!r} to hold a record instead got none.")
    positions = np.concatenate([part.positions for part in parts])
    rows = project_to_ball(entries, schema.row_bound)
    return LabelledRecords(
        features=_features(rows, positions, schema),
        labels=np.concatenate([part.labels for part in parts]),
        label_domain=schema.label.domain,
        feature_names=schema.feature_names,
        row_bound=schema.row_bound,
        description=schema.description or files,
        parties=parties,
        party_of=party_of,
        dropped=sum(map(len, tables)) - len(entries),
        contents=np.concatenate([part.contents for part in parts]),
    )


@np.errstate(all="ignore")  # what a caller made an error would tell of a cell
def load_unlabelled(path: str | Path, *, schema: Schema) -> LabelledRecords:
    """The records of one file whose labels and parties nobody asks for, encoded as for training.

    Every record is kept, in order; its label is a filler. The columns of labels and parties may be
    missing, and are not read.

    Args:
        path: of the file.
        schema: with which a model was trained.

    Raises `DataError` as `load_records` does; a missing value is a `BadValue`.
    """
    without = tuple(
        c if isinstance(c, NumericColumn | CategoricalColumn) else IgnoredColumn(name=c.name)
        for c in schema.columns
    )
    asked = structs.replace(schema, columns=without, drop_missing=False)
    table = _complete(read_table(path, asked, lacking=True), asked)
    entries, positions = _entries(table, asked)
    domain = schema.label.domain
    return LabelledRecords(
        features=_features(project_to_ball(entries, schema.row_bound), positions, schema),
        labels=np.full(len(entries), domain.filler),
        label_domain=domain,
        feature_names=schema.feature_names,
        row_bound=schema.row_bound,
        description=Path(path).name,
        parties=EVERYBODY,
        party_of=np.zeros(len(entries), dtype=np.intp),
    )


@np.errstate(all="ignore")  # what a caller made an error would tell of a cell
def load_table(
    paths: str | Path | Sequence[str | Path],
    *,
    schema: Schema,
    adjacency: Adjacency | str,
    records: int,
    n_max: int | None = None,
    whole: Sequence[str] = (),
) -> PrivateTable:
    """The columns of files as a private table, for statistics; no row is scaled.

    Numeric columns keep their bounds, columns of categories, labels, classes and parties their
    words, in the schema's order.

    Args:
        paths: one file or several, as for `load_records`.
        schema: what is public about the columns.
        adjacency: the neighbouring relation.
        records: number of complete records, public; under add-remove-one a lower bound on it.
        n_max: upper bound on it, public; see `TableShape`.
        whole: names of numeric columns that hold whole numbers, whose sums take discrete noise.

    Raises `DataError` as `load_records` does, and `InvalidParameter` where the number of complete
    records is not as stated.
    """
    tables = [_complete(read_table(path, schema), schema) for path in _listed(paths)]
    columns = table_columns(schema, whole)
    cells = {
        name: np.concatenate([_column_cells(table, schema, name, made) for table in tables])
        for name, made in columns.items()
    }
    resized = named("adjacency", adjacency, Adjacency) is Adjacency.ADD_REMOVE_ONE
    if not resized and any(len(each) != records for each in cells.values()):
        raise InvalidParameter("records", records, "the number of complete records of the files")
    bound = records if resized else None
    return PrivateTable(cells, columns, adjacency=adjacency, n_min=bound, n_max=n_max)


def _listed(paths: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """Return one file or several as a list; raise `DataError` for none, and for one that is listed
    twice: each of its records would be two.
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    if not listed:
        raise NoRecords("Expected at least one file instead got none.")
    for number, path in enumerate(listed):
        if any(_same_file(path, other) for other in listed[:number]):
            raise DataError(f"{path} must be listed once: each of its records would count twice")
    return listed


def _same_file(first: str | Path, second: str | Path) -> bool:
    """Return whether two names are of one file, by links of either kind too."""
    first, second = Path(first), Path(second)
    known = first.exists() and second.exists()
    return first.samefile(second) if known else first.resolve() == second.resolve()


def table_columns(schema: Schema, whole: Sequence[str] = ()) -> dict[str, Column]:
    """What a schema makes public about the columns of a table.

    Args:
        schema: of the file.
        whole: names of numeric columns that hold whole numbers.

    Raises `SchemaError` for a name in `whole` that is no numeric column.
    """
    numeric = {c.name: c for c in schema.columns if isinstance(c, NumericColumn)}
    for name in whole:
        if name not in numeric:
            raise SchemaError(f"whole={name!r} must be {among(name, sorted(numeric))}")
    found: dict[str, Column] = {}
    for column in schema.columns:
        match column:
            case NumericColumn(name=name, lower=lower, upper=upper):
                found[name] = BoundedColumn(lower, upper, 1.0 if name in whole else 0.0)
            case CategoricalColumn(name=name, categories=words):
                found[name] = CategoryColumn(words)
            case LabelColumn() | ClassColumn():
                found[column.name] = CategoryColumn(tuple(column.numbers))
            case PartyColumn(name=name, parties=words):
                found[name] = CategoryColumn(words)
            case _:
                pass
    return found


def _column_cells(table: Table, schema: Schema, name: str, made: Column) -> NDArray[np.float64]:
    """The numbers of a column, in its own unit and of shape (n,), or the places of its words."""
    if isinstance(made, CategoryColumn):
        return _codes(table, name, made.categories).astype(np.float64)
    column = next(c for c in schema.features if c.name == name)
    assert isinstance(column, NumericColumn)
    return _inside(table, column, column.on_outside or schema.on_outside)


@dataclass(frozen=True, repr=False)
class _Encoded:
    """The complete records of one file; k = number of feature columns, one entry in each.

    Args:
        entries: array of shape (n, k), the entry that a column of the file contributes.
        positions: array of shape (n, k), the feature at which that entry stands.
        labels: array of shape (n,), each +1 or -1, or the number of a class.
        party_of: array of shape (n,), index of the party; zero without a party column.
    """

    entries: NDArray[np.float64]
    positions: NDArray[np.intp]
    labels: NDArray[np.float64]
    party_of: NDArray[np.intp]

    @property
    def contents(self) -> NDArray[np.uint8]:
        """A digest of each record by itself, of shape (n, 16).

        Taken before rows are cut to their bound: a norm is a sum, and sums over an array may round
        otherwise where a row stands elsewhere in it. What is hashed here was computed number by
        number.
        """
        whole = [self.positions, self.party_of[:, None]]
        cells = np.hstack([self.entries, self.labels[:, None], *whole]).astype("<f8")
        found = (hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in cells)
        return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, 16)


def _encode(table: Table, schema: Schema) -> _Encoded:
    """Return a file's complete records with one number and one feature index a column.

    A numeric column stands at its own feature; a categorical one at the feature of the record's
    category, where its entry is 1. That is CSR's layout, made without a dense block of 0s.
    """
    table = _complete(table, schema)
    entries, positions = _entries(table, schema)
    numbers, party = schema.label.numbers, schema.party
    return _Encoded(
        entries=entries,
        positions=positions,
        labels=np.array([*numbers.values()])[_codes(table, schema.label.name, tuple(numbers))],
        party_of=(
            np.zeros(len(table), dtype=np.intp)
            if party is None
            else _codes(table, party.name, party.parties)
        ),
    )


def _entries(table: Table, schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the entries of complete records and their positions, both as `_Encoded` has them."""
    n, k = len(table), len(schema.features)
    entries, positions = np.ones((n, k)), np.zeros((n, k), dtype=np.intp)
    start = 0
    for j, column in enumerate(schema.features):
        positions[:, j] = start
        if isinstance(column, NumericColumn):
            entries[:, j] = _unit_interval(table, column, column.on_outside or schema.on_outside)
            start += 1
        else:
            positions[:, j] += _codes(table, column.name, column.categories)
            start += len(column.categories)
    return entries, positions


def _complete(table: Table, schema: Schema) -> Table:
    """The records of `table` without a missing value, in the same order.

    Whether a record is left out depends on that record alone. Raises `BadValue` for the first gap
    where the schema does not allow to skip.
    """
    incomplete = np.zeros(len(table), dtype=np.bool_)
    for name, cells in table.columns.items():
        gaps = _gaps(cells, schema.missing)
        if gaps.any() and not schema.drop_missing:
            record = int(np.argmax(gaps))
            raise BadValue(
                table.place(record),
                name,
                _scalars(cells)[record],
                "to be there (drop_missing = true skips records with missing values)",
            )
        incomplete |= gaps
    if not incomplete.any():
        return table
    kept = np.flatnonzero(~incomplete).tolist()
    columns: dict[str, Cells] = {
        name: cells[kept] if isinstance(cells, np.ndarray) else [cells[i] for i in kept]
        for name, cells in table.columns.items()
    }
    return Table(table.file, columns, [table.numbers[i] for i in kept], table.unit)


def _gaps(cells: Cells, missing: Sequence[str]) -> NDArray[np.bool_]:
    """Which cells are missing: no value at all, or what one of `missing` says; numbers by value."""
    marks = {number for mark in missing for number in numbers_said(mark)}
    without = any(map(isnan, marks))
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiu":
        numbers = cells.astype(np.float64)
        absent: NDArray[np.bool_] = np.isin(numbers, list(marks))
        return absent | np.isnan(numbers) if without else absent
    words = set(map(word_of, missing))
    # what is no number and no day is spelled in one way
    varied = bool(marks) or any(any(map(str.isdigit, mark)) for mark in missing)
    spelled = word_of if varied else stripped

    def is_missing(cell: object) -> bool:
        if cell is None or spelled(cell) in words:
            return True
        # True is a word: beside a text in its column NumPy would have it so
        number = number_of(cell) if marks and not isinstance(cell, bool) else None
        return number is not None and (number in marks or (without and isnan(number)))

    return np.fromiter(map(is_missing, _scalars(cells)), np.bool_, len(cells))


def _unit_interval(table: Table, column: NumericColumn, rule: OnOutside) -> NDArray[np.float64]:
    """The numbers of a column, mapped affinely from [lower, upper] onto [0, 1], of shape (n,).

    The clip catches what rounding of the quotient adds to an end.
    """
    inside = _inside(table, column, rule)
    return np.clip((inside - column.lower) / (column.upper - column.lower), 0.0, 1.0)


def _inside(table: Table, column: NumericColumn, rule: OnOutside) -> NDArray[np.float64]:
    """The numbers of a column within its bounds, of shape (n,).

    A cell that is no finite number is refused under either rule: there is no place to clip it to.
    """
    cells = table.columns[column.name]
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiu":
        numbers = cells.astype(np.float64)
    else:
        # what is no number becomes NaN, which is refused below
        numbers = np.array([number_of(cell) for cell in cells], dtype=np.float64)
    refused = ~np.isfinite(numbers)
    if rule is OnOutside.REFUSE:
        refused |= (numbers < column.lower) | (numbers > column.upper)
    if refused.any():
        record = int(np.argmax(refused))
        raise BadValue(
            table.place(record),
            column.name,
            _scalars(cells)[record],
            f"to be a finite number in [{column.lower:g}, {column.upper:g}]",
        )
    return np.clip(numbers, column.lower, column.upper)


def _codes(table: Table, name: str, words: Sequence[str]) -> NDArray[np.intp]:
    """For each cell of a column, the position in `words` of the word it holds, of shape (n,).

    Each cell is looked up by its own text: equal cells may have different ones (the hour that comes
    twice when clocks go back), and one record's text must not be another's. Raises `BadValue` for
    the first cell that is none of the words.
    """
    cells = _scalars(table.columns[name])
    position = {word_of(word): code for code, word in enumerate(words)}
    if len(position) < len(words):
        raise SchemaError(f"{name}: words={list(words)} must differ, as numbers too")
    exact = {word: position[word_of(word)] for word in words}
    # most cells are spelled as the schema spells them
    found = (
        exact[cell] if isinstance(cell, str) and cell in exact else position.get(word_of(cell), -1)
        for cell in cells
    )
    codes = np.fromiter(found, np.intp, len(cells))
    if (codes < 0).any():
        record = int(np.argmax(codes < 0))
        cell = cells[record]
        raise BadValue(table.place(record), name, cell, among(word_of(cell), words))
    return codes


def _scalars(cells: Cells) -> Sequence[object]:
    """The cells as Python's own numbers and words, which are fast to look up and to print."""
    if isinstance(cells, np.ndarray):
        values: list[object] = cells.tolist()
        return values
    return cells


def _features(
    rows: NDArray[np.float64], positions: NDArray[np.intp], schema: Schema
) -> NDArray[np.float64] | scipy.sparse.csr_array[Any, tuple[int, int]]:
    """Return rows as they are where all columns are numeric, else as CSR of shape (n, features).

    Args:
        rows: the entries, of shape (n, k), cut to the row bound.
        positions: their features, of shape (n, k).
        schema: whose feature names say how many features there are.
    """
    if all(isinstance(column, NumericColumn) for column in schema.features):
        return rows
    n, k = rows.shape
    index = np.int32 if n * k < 2**31 else np.int64
    starts = np.arange(0, n * k + 1, k, dtype=index)
    features: scipy.sparse.csr_array[Any, tuple[int, int]] = scipy.sparse.csr_array(
        (rows.ravel(), positions.astype(index).ravel(), starts),
        shape=(n, len(schema.feature_names)),
    )
    features.eliminate_zeros()
    return features
