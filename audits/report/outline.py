"""The outline of a record: what both renderings print, walked field by field.

No field is named here, so none can be forgotten: a field of the record is a line, a list, a table
or a group of these, by its type alone. Metadata of a field (`record.py`) give its label where its
name is not enough, its rounding, its digits, and whether a plot already shows it.

Texts leave this module readable but harmless: control and direction-changing characters are
written as escapes. Escaping for a format is the renderer's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import msgspec

from ..visible_text import visible
from .numerals import DIGITS, printed, printed_interval
from .record import Direction, Interval, Range, Report

NOT_STATED = "not stated"
_NONE = "none"
"""What stands for an empty list."""
_MOST_COLUMNS = 7
"""A table with more columns becomes one group a row: it would not fit a page."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A label and a short text.

    Args:
        label: the field's name in words.
        text: its value.
        missing: whether nobody said, which renderers show.
    """

    label: str
    text: str
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A label and preformatted text, to be shown as it is."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A label and a list of sentences."""

    label: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A label, column names and rows of texts.

    Args:
        label: of the table.
        columns: names in words.
        rows: of as many texts.
        plotted: whether a plot shows the same, so that a page may leave the table to its end.
    """

    label: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    plotted: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A label and what belongs under it."""

    label: str
    items: tuple["Item", ...]


Item = Entry | Block | Bullets | TextTable | Group


def outline(report: Report) -> tuple[Item, ...]:
    """Return all fields of a record in order, one item a field."""
    return _items(report)


def plotted(items: Sequence[Item]) -> tuple[TextTable, ...]:
    """Return the tables below `items` that plots show, in order."""
    found: list[TextTable] = []
    for item in items:
        if isinstance(item, Group):
            found.extend(plotted(item.items))
        elif isinstance(item, TextTable) and item.plotted:
            found.append(item)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Style:
    """What metadata say about a field, gathered from all layers of its annotation."""

    title: str | None = None
    rounding: Direction = Direction.NEAREST
    digits: int = DIGITS
    absent: str = NOT_STATED
    code: bool = False
    plot: bool = False


def _style(annotation: Any) -> _Style:
    """Return what the metadata of a field say, the outer layers of its annotation first.

    `Annotated` types are nested: a field's own metadata are outermost, and win over those of its
    type.
    """
    titles: list[str] = []
    extra: dict[str, Any] = {}

    def gather(layer: Any) -> None:
        arguments = get_args(layer)
        if get_origin(layer) is Annotated:
            for meta in arguments[1:]:
                if isinstance(meta, msgspec.Meta):
                    titles.extend([meta.title] if meta.title else [])
                    # the outer layer is the more particular one
                    for key, value in (meta.extra or {}).items():
                        extra.setdefault(key, value)
            arguments = arguments[:1]
        for argument in arguments:
            gather(argument)

    gather(annotation)
    return _Style(title=titles[0] if titles else None, **extra)


@cache
def _styles(kind: type[msgspec.Struct]) -> dict[str, _Style]:
    """The styles of a part's fields, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _style(hints[name]) for name in kind.__struct_fields__}


def _items(part: msgspec.Struct) -> tuple[Item, ...]:
    """Return a part's fields as items; those that older records lack are left out where empty."""
    return tuple(
        _item(_label(name, style), getattr(part, name), style)
        for name, style in _styles(type(part)).items()
        if not (getattr(part, name) is None and name in _later(type(part)))
    )


def _later(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields that older records lack: they have a default."""
    count = len(kind.__struct_defaults__)
    return kind.__struct_fields__[-count:] if count else ()


def _label(name: str, style: _Style) -> str:
    """Return a field's name in words, or the title that its metadata give."""
    words = " ".join(_SPELLINGS.get(word, word) for word in name.split("_"))
    # Greek letters keep their case: they are symbols
    return style.title or (words[0].upper() + words[1:] if words[0].isascii() else words)


_SPELLINGS = {"epsilon": "ε", "delta": "δ", "mu": "μ", "roc": "ROC", "sha256": "SHA-256"}
"""Words of field names that are symbols or abbreviations."""


def _item(label: str, value: object, style: _Style) -> Item:
    """Return a field as an item, by the type of its value alone."""
    match value:
        case Interval() | Range():
            return Entry(label, _text(value, style))
        case msgspec.Struct():
            return Group(label, _items(value))
        case tuple():
            return _several(label, cast("tuple[object, ...]", value), style)
        case str() if style.code:
            return Block(label, visible(value))
        case _:
            return Entry(label, _text(value, style), missing=value is None)


def _several(label: str, values: tuple[object, ...], style: _Style) -> Item:
    """Return a list: of texts, of rows of a table, or of groups where rows would be too wide.

    Args:
        label: of the list.
        values: texts, or parts of one type.
        style: of the field.
    """
    if not values:
        return Entry(label, _NONE)
    rows = tuple(value for value in values if isinstance(value, msgspec.Struct))
    if not rows:
        return Bullets(label, tuple(_text(value, style) for value in values))
    styles = _styles(type(rows[0]))
    if len(styles) > _MOST_COLUMNS:
        return Group(label, tuple(Group(_name(row), _items(row)) for row in rows))
    return TextTable(
        label,
        tuple(_label(name, found) for name, found in styles.items()),
        tuple(
            tuple(_text(getattr(row, name), found) for name, found in styles.items())
            for row in rows
        ),
        plotted=style.plot,
    )


def _name(row: msgspec.Struct) -> str:
    """Return what a row is called: its first field."""
    return visible(str(getattr(row, row.__struct_fields__[0])))


def _text(value: object, style: _Style) -> str:
    """Return a value as a text, rounded as its metadata say."""
    match value:
        case None:
            return style.absent
        case bool():
            return "yes" if value else "no"
        case Enum():
            return str(value.value)
        case int():
            return f"{value:,}"
        case "infinity":
            return printed("infinity")
        case float():
            return printed(value, rounding=style.rounding, digits=style.digits)
        case Interval():
            return printed_interval(value, digits=style.digits)
        case Range():
            ends = (printed(end, digits=style.digits) for end in (value.least, value.most))
            return " to ".join(dict.fromkeys(ends))
        case _:
            return visible(str(value))
