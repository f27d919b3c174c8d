"""Tables from delimited text, Parquet and NumPy files, with the columns that a schema names.

What a file is, its name says: `.parquet`, `.npy`, `.npz`; every other name is delimited text, which
may be compressed (`.gz`, `.bz2`, `.xz`). Cells come back as written; encoding gives them meaning.
"""

import bz2
import csv
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ..mechanisms.extras import import_extra
from .errors import NoRecords, UnreadableFile, WrongColumns
from .hints import among
from .schema import IgnoredColumn, NumericColumn, Schema

Cells = Sequence[object] | NDArray[Any]
"""The cells of a column: texts of a text file, Python values of Parquet, or an array of shape (n,).
"""


@dataclass(frozen=True)
class Table:
    """Columns of equal length, and where in the file each record stands.

    Args:
        file: the file's name, for messages.
        columns: cells by column name, as written in the file.
        numbers: one number a record, counted from 1: of the line in a text file, else of the row.
        unit: "line" or "row".
    """

    file: str
    columns: Mapping[str, Cells] = field(repr=False)
    numbers: Sequence[int]
    unit: str

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, record: int) -> str:
        """File and row of the record at position `record`, for messages."""
        return f"{self.file}, {self.unit} {self.numbers[record]}"


def read_table(path: str | Path, schema: Schema, *, lacking: bool = False) -> Table:
    """The columns of the file `path` that `schema` uses.

    Args:
        path: its suffix chooses the reader.
        schema: names the columns, says which are ignored, and how a text file is written.
        lacking: whether ignored columns may be missing from the file.

    Raises:
        UnreadableFile: the file is missing, damaged or of another kind than its name says.
        WrongColumns: a column is missing, unknown to the schema, or there twice; a line is ragged.
        NoRecords: the file holds no record.
        MissingExtra: the file is Parquet and pyarrow is not installed.
    """
    path = Path(path)
    if lacking:
        schema = _as_it_is(path, schema)
    reader = _READERS.get(path.suffix.lower(), _read_text)
    try:
        table = reader(path, schema)
    except UnicodeDecodeError as error:
        remedy = (
            "save the sheet as CSV"
            if path.suffix.lower() in _SPREADSHEETS
            else "`iconv -f latin1 -t utf-8` converts a file of an older program"
        )
        raise UnreadableFile(
            f"{path} must be text in UTF-8 ({error.reason} at byte {error.start}); {remedy}"
        ) from error
    except UNREADABLE as error:
        raise UnreadableFile(f"{path}: Expected a readable file ({error}).") from error
    if not len(table):
        raise NoRecords(
            f"{path}: Expected at least one record instead got none; is it the whole file?"
        )
    return table


def _as_it_is(path: Path, schema: Schema) -> Schema:
    """Return a schema without the ignored columns that a text file's header does not name."""
    if path.suffix.lower() in _READERS or not schema.header:
        return schema
    try:
        with opener(path)(path, mode="rt", encoding="utf-8-sig", newline="") as stream:
            lines = _without_comments(stream, schema.comment)
            rows = csv.reader(lines, delimiter=schema.delimiter, skipinitialspace=True)
            there = {name.strip() for name in next(filter(None, rows), ())}
    except UNREADABLE:
        return schema  # whatever is wrong is said when the file is read
    columns = tuple(
        c for c in schema.columns if c.name in there or not isinstance(c, IgnoredColumn)
    )
    return structs.replace(schema, columns=columns)


DELIMITERS = (";", "\t", "|", ",")
"""What a header of one name is searched for, to say what a schema could be missing."""

_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
"""Suffixes of files that are taken for tables and are no text."""

_DECOMPRESSORS: dict[str, Callable[..., IO[Any]]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
"""Suffix of a compressed text file -> what opens it as text."""

UNREADABLE = (OSError, EOFError, UnicodeError, csv.Error, lzma.LZMAError, zlib.error)
"""What reading a text file raises where it is damaged, or none."""


def opener(path: Path) -> Callable[..., IO[Any]]:
    """Return what opens a text file, compressed or not, as its name says."""
    return _DECOMPRESSORS.get(path.suffix.lower(), open)


def _read_text(path: Path, schema: Schema) -> Table:
    """Return the table in a delimited text file, compressed or not.

    Without a header the columns are the schema's in order. A byte-order mark is skipped, and blanks
    after a delimiter. A record is one line: stray quotes in two of them, or a comment's sign inside
    a quoted cell, would join all lines between silently, and one record take others away.
    """
    with opener(path)(path, mode="rt", encoding="utf-8-sig", newline="") as stream:
        comments = set[int]()
        reader = csv.reader(
            _without_comments(stream, schema.comment, comments),
            delimiter=schema.delimiter,
            skipinitialspace=True,
            strict=True,
        )
        numbered, before, blank = list[tuple[int, list[str]]](), 0, 0
        for row in reader:
            if reader.line_num != before + 1:
                raise UnreadableFile(
                    f"{path}, line {before + 1}: Expected a record on one line instead got a "
                    "quoted cell that goes on: close its quote, or take line breaks out of cells."
                )
            before = reader.line_num
            if row:
                numbered.append((before, row))
            elif before not in comments and numbered:
                blank = before
    names = [column.name for column in schema.columns]
    if schema.header:
        if not numbered:
            raise NoRecords(f"{path}: Expected a line of column names instead got an empty file.")
        names = [name.strip() for name in numbered.pop(0)[1]]
    if blank and len(names) == 1:
        raise UnreadableFile(
            f"{path}, line {blank}: Expected no blank line in a file of one column, which might be "
            'a missing value: write that as "", or remove the line.'
        )
    for number, row in numbered:
        if len(row) != len(names):
            raise WrongColumns(
                f"{path}, line {number}: Expected {len(names)} values instead got {len(row)}."
            )
    cells = list(zip(*(row for _, row in numbered), strict=True)) or [()] * len(names)
    columns = _used(path, names, cells, schema)
    return Table(str(path), columns, [number for number, _ in numbered], "line")


def _without_comments(
    lines: Iterator[str] | IO[str], comment: str | None, numbers: set[int] | None = None
) -> Iterator[str]:
    """Yield a file's lines, comments as blank ones: line numbers stay; theirs go to `numbers`."""
    for number, line in enumerate(lines, 1):
        if comment is not None and line.startswith(comment):
            if numbers is not None:
                numbers.add(number)
            yield "\n"
        else:
            yield line


def _read_parquet(path: Path, schema: Schema) -> Table:
    """Return the table in a Parquet file; every cell becomes Python's own number, text or None.

    Of one file: what type the names of a partitioned folder have, one record decides for all.
    """
    parquet = import_extra("pyarrow.parquet", "parquet")
    arrow = import_extra("pyarrow", "parquet")
    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except arrow.ArrowException as error:
        raise UnreadableFile(f"{path}: Expected a Parquet file ({error}).") from error
    # columns that the schema ignores are not looked into
    used = _used(path, table.column_names, table.columns, schema)
    columns = {name: _cells(path, name, column) for name, column in used.items()}
    return Table(str(path), columns, range(1, table.num_rows + 1), "row")


def parquet_names(path: Path) -> tuple[str, ...]:
    """Return the names of a Parquet file's columns; of its records nothing is read."""
    parquet = import_extra("pyarrow.parquet", "parquet")
    arrow = import_extra("pyarrow", "parquet")
    try:
        return tuple(parquet.read_schema(path).names)
    except arrow.ArrowException as error:
        raise UnreadableFile(f"{path}: Expected a Parquet file ({error}).") from error


def _cells(path: Path, name: str, column: Any) -> Cells:
    """Return a Parquet column's cells; raise `UnreadableFile` for what Python has no values for.

    Args:
        path: of the file, for messages.
        name: of the column.
        column: pyarrow's.
    """
    if not column.type.num_fields:
        # pyarrow's own sentence shows a cell, and is no context of this one
        with suppress(Exception):
            return list(column.to_pylist())
    raise UnreadableFile(
        f"{path}: Expected a number or a text in every cell of column {name!r} instead got "
        f"{column.type}."
    )


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file by their names; of an .npy file its one array, named "".

    Raises `UnreadableFile`.
    """
    try:
        # object arrays are pickles, which run code when they are read
        loaded = np.load(path, allow_pickle=False)
        arrays = dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else {"": loaded}
    except OSError:
        raise
    except Exception as error:  # a forged header makes NumPy raise almost anything
        # NumPy advises to load what it takes for a pickle all the same, which runs its code
        why = "numpy.save writes one" if "pickle" in str(error) else error
        raise UnreadableFile(f"{path}: Expected a NumPy file of plain arrays ({why}).") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # another file in the archive
            raise UnreadableFile(f"{path}: Expected arrays alone instead got a file {name!r}.")
    return arrays


def read_numbers(path: Path, *, kinds: str = "fiu") -> NDArray[Any]:
    """Return the one array of an .npy file; raise `UnreadableFile` unless it is of real numbers.

    Args:
        path: the file.
        kinds: NumPy's letters of the kinds of numbers that are allowed; "b" is booleans.
    """
    found = read_arrays(path).get("")
    if found is None or found.dtype.kind not in kinds:
        raise UnreadableFile(f"{path}: Expected a .npy file with one array of real numbers.")
    return found


_KINDS = {"c": "complex", "m": "times", "M": "times", "U": "texts", "S": "texts"}
"""Kinds of NumPy's arrays that are no real numbers, by their letters."""


def _read_numpy(path: Path, schema: Schema) -> Table:
    """Return the table in an .npy or .npz file.

    An array with named fields and an .npz name their columns; a plain array of shape (n, k) has the
    schema's columns in order. Raises `WrongColumns` where lengths or numbers of columns disagree.
    """
    members = read_arrays(path)
    array = members.get("")
    if array is None:
        columns = _npz_columns(path, members)
    elif array.dtype.names:
        columns = {name: array[name] for name in array.dtype.names}
    elif array.ndim == 2 and array.shape[1] == len(schema.columns):
        columns = dict(zip((c.name for c in schema.columns), array.T, strict=True))
    else:
        raise WrongColumns(
            f"{path}: Expected an array of shape (n, {len(schema.columns)}), one column per entry "
            f"of the schema, instead got {array.shape}."
        )
    numeric = {column.name for column in schema.columns if isinstance(column, NumericColumn)}
    for name, cells in columns.items():
        # one record's text makes texts of all numbers beside it, and its time times of its unit
        refused = "cmMUS" if name in numeric else "cmM"
        if cells.dtype.kind in refused or cells.ndim != 1:
            got = f"an array of {cells.ndim} axes" if cells.ndim != 1 else _KINDS[cells.dtype.kind]
            raise UnreadableFile(f"{path}: Expected real numbers in {name!r} instead got {got}.")
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        raise WrongColumns(f"{path}: Expected columns of one length instead got {lengths}.")
    used = _used(path, list(columns), list(columns.values()), schema)
    return Table(str(path), used, range(1, max(lengths.values(), default=0) + 1), "row")


def _npz_columns(path: Path, members: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the columns of an .npz file: an array of shape (n,) is one, of shape (n, k) is k of
    them.

    Column j of the array `name` is called `name[j]`. Raises `WrongColumns` for other shapes.
    """
    columns: dict[str, NDArray[Any]] = {}
    for name, array in members.items():
        if array.ndim == 1:
            columns[name] = array
        elif array.ndim == 2:
            columns |= {f"{name}[{j}]": array[:, j] for j in range(array.shape[1])}
        else:
            raise WrongColumns(
                f"{path}: Expected {name} to have 1 or 2 axes instead got {array.ndim}."
            )
    return columns


_READERS: dict[str, Callable[[Path, Schema], Table]] = {
    ".parquet": _read_parquet,
    ".npy": _read_numpy,
    ".npz": _read_numpy,
}
"""Suffix of a file that is no text -> its reader; every other file is delimited text."""


def _used(
    path: Path, names: Sequence[str], cells: Sequence[Cells], schema: Schema
) -> dict[str, Cells]:
    """The columns that the schema uses, after a check that file and schema name the same ones.

    Args:
        path: for messages.
        names: the columns of the file, in its order.
        cells: their cells, in the same order.
        schema: names the columns that must be there, and those to be skipped.

    Raises `WrongColumns` for a column that is missing, unknown or there twice.
    """
    known = [column.name for column in schema.columns]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise WrongColumns(f"{path}: Expected column {name!r} once instead got it twice.")
        if name not in known:
            other = next((d for d in DELIMITERS if len(names) == 1 and d in name), None)
            remedy = (
                'kind = "ignored" in the schema skips a column'
                if other is None
                else f"the file seems to be divided by {other!r}: say delimiter in the schema"
            )
            raise WrongColumns(f"{path}: column {name!r} must be {among(name, known)}; {remedy}")
    for name in known:
        if name not in names:
            raise WrongColumns(
                f"{path}: column {name!r} of the schema must be {among(name, names)} of the file"
            )
    skipped = {column.name for column in schema.columns if isinstance(column, IgnoredColumn)}
    return {n: c for n, c in zip(names, cells, strict=True) if n not in skipped}
