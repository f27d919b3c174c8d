"""First files for a table of one's own: a schema and a run, commented, from a header and answers.

Of the table only its first line is read, and refused where it may be a record. Bounds, categories
and counts are public facts that its holder must know from elsewhere: they are asked for, never
taken from the records.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..data import Schema
from ..data.errors import SchemaError
from ..data.files import DELIMITERS, UNREADABLE, opener, parquet_names
from ..data.strict import ConfigurationError, converted, toml_value
from .configuration import Configuration
from .documents import documented

UNSAID = "?"
"""A column's kind in a template: refused until it is filled in, with the kinds that there are."""

_LONGEST_HEADER = 1 << 17
"""Bytes: thousands of columns; a file without line breaks is not read to its end."""

_NUMBER = re.compile(
    r"[\W_]*(\d|[\u00bc-\u00be\u2150-\u218b]|(nan|na|null|none|inf|infinity|true|false)\Z)|[\W_]+\Z",
    re.IGNORECASE,
)
"""What names no column and is common in a record: a number, a date, an amount, a missing value."""

_NAME = re.compile(r"[%#]? ?[^\W\d][\w \-./%&#$€£°+*?!'’,()\[\]]*")
"""What a header's cell is: it begins with a letter, and holds none of the quotes, colons, braces
and equality signs by which records of other kinds are told (JSON, XML, YAML, logs, SQL)."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""What no text has in a line; a tab may divide cells."""

_LATER_NUMBER = re.compile(r"\s[\W_]*\d")
"""A word of a cell that begins with a number: of a record that blanks divide, or of an address."""

_DIVIDED = re.compile(r"[;\t|]")
"""What divides a cell that was not divided where it should be."""

_TEXT_COLUMN = 30
"""Where comments begin, in characters: most keys and values are shorter."""


def column_names(path: Path, *, delimiter: str = ",") -> tuple[str, ...]:
    """Return the names in the first line of a text file, or those that a Parquet file gives its
    columns; nothing else is read.

    Names go into files that are no secret. A first line that could be a record is refused, in words
    that quote none of it: with a cell that is empty, there twice, or has a word that begins with a
    number, or signs that lines of JSON, XML or logs have. A record of different words alone cannot
    be told from a header.

    Args:
        path: of the file: UTF-8, compressed or not, or Parquet.
        delimiter: one character, of a text file.

    Raises `SchemaError` for a NumPy file, and if the line is not text, is empty, is 128 KiB long,
    or may be a record; `DataError` for what is no Parquet file.
    """
    kind = path.suffix.lower()
    if kind in (".npy", ".npz"):
        raise SchemaError(f"{path}: must be a text or a Parquet file; NumPy's begin with no header")
    names = parquet_names(path) if kind == ".parquet" else _header(path, delimiter)
    for number, name in enumerate(names, 1):
        numbers = any(map(_NUMBER.match, _DIVIDED.split(name))) or _LATER_NUMBER.search(name)
        if not name or numbers or name in names[: number - 1]:
            raise SchemaError(
                f"{path}: the first line must name the columns, and may be a record: cell {number} "
                "is empty, has a word that begins with a number, or is there twice. Put a line of "
                "names above it, of words alone"
            )
        if kind != ".parquet" and _NAME.fullmatch(name) is None:
            raise SchemaError(
                f"{path}: the first line must name the columns, and may be a record of another "
                f"kind of file: cell {number} must begin with a letter, and hold no quotes, "
                "colons, braces, or signs of equality"
            )
    return names


def _header(path: Path, delimiter: str) -> tuple[str, ...]:
    """Return the cells of a text file's first line, without outer blanks.

    It is read as bytes: decoding a file looks further ahead, at records.

    Args:
        path: of the file.
        delimiter: between cells, one character.

    Raises `SchemaError` as `column_names` does, but for what may be a record.
    """
    if len(delimiter) != 1:
        raise SchemaError(f"delimiter={delimiter!r} must be one character")
    try:
        with opener(path)(path, mode="rb") as file:
            line: bytes = file.readline(_LONGEST_HEADER)
    except UNREADABLE as error:
        raise SchemaError(f"{path}: must be a readable file ({type(error).__name__})") from error
    try:
        text = line.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path}: the header must be UTF-8 text ({error.reason})") from error
    names: tuple[str, ...] = ()
    if len(line) < _LONGEST_HEADER:
        try:
            found = next(csv.reader([text], delimiter=delimiter, strict=True), [])
        except csv.Error as error:
            raise SchemaError(f"{path}: the first line must be a whole header ({error})") from error
        names = tuple(name.strip() for name in found)
    if not any(names):
        raise SchemaError(f"{path}: the first line must name the columns, divided by {delimiter!r}")
    if any(map(_CONTROL.search, names)):
        # a file of another kind than its name says: its first bytes may be those of a record
        raise SchemaError(f"{path}: the first line must be text, without control characters")
    other = next((d for d in DELIMITERS if len(names) == 1 and d in names[0]), None)
    if other is not None:
        raise SchemaError(
            f"{path}: the first line must name the columns, divided by {delimiter!r}: it is one "
            f"cell, which {other!r} seems to divide"
        )
    return names


def schema_text(columns: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> str:
    """Return a schema as a commented TOML file.

    Args:
        columns: what each column's table says; of kind `UNSAID` where nobody has said.
        values: what the file says besides.

    Raises `ConfigurationError` if it is no schema; templates are not looked at.
    """
    if all(column["kind"] != UNSAID for column in columns):
        converted({**values, "columns": [*columns]}, Schema, source="schema")
    kinds = "numeric (lower, upper), categorical (categories), label (positive, negative),"
    return "\n\n".join(
        [
            "# What is public about the table. Write bounds and categories from the documentation\n"
            "# of the data, never from the records: one read off the records is a release.\n"
            f"# A column is one of: {kinds}\n"
            "# class (classes), party (parties), ignored. One is a label or a class.",
            _commented(Schema, values),
            *("[[columns]]\n" + _lines(column) for column in columns),
        ]
    )


def run_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a run's configuration as a commented TOML file, from what its sections say.

    Keys that are left out stand as comments, with their defaults. Raises `ConfigurationError` if a
    value is not allowed.
    """
    converted(
        {name: dict(values) for name, values in sections.items()}, Configuration, source="run"
    )
    kinds = {field.name: field.type for field in msgspec.structs.fields(Configuration)}
    return "\n\n".join(
        [
            "# A run. `dpledger plan` prices it before any record is read, `dpledger run` trains.",
            *(
                f"[{name}]\n{_commented(kind, sections.get(name, {}))}"
                for name, kind in kinds.items()
            ),
        ]
    )


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet; raise `ConfigurationError` if it does.

    Args:
        path: of the file.
        text: all of it.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigurationError(f"{path} must not exist: nothing is written over") from error


def _commented(kind: type[msgspec.Struct], values: Mapping[str, Any]) -> str:
    """Return the lines of a section: what is said, and in comments what could be.

    Args:
        kind: the section's type, whose docstring gives each key's meaning.
        values: what is said; other keys stand as comments, with their defaults.
    """
    meaning = documented(kind)[1]
    lines: list[str] = []
    for field in msgspec.structs.fields(kind):
        said = field.name in values
        default = None if field.required else field.default
        shown = values[field.name] if said else msgspec.to_builtins(default)
        if isinstance(shown, Sequence) and not isinstance(shown, str) and field.name == "columns":
            continue
        text = f"{field.name} = {'' if shown is None else toml_value(shown)}"
        lines.append(f"{'' if said else '# '}{text:<{_TEXT_COLUMN}} # {meaning[field.name]}")
    return "\n".join(lines) + "\n"


def _lines(values: Mapping[str, Any]) -> str:
    """Return keys and values as lines of TOML."""
    return "".join(f"{key} = {toml_value(value)}\n" for key, value in values.items())
