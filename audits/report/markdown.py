"""A record as Markdown (CommonMark with GitHub's tables).

Texts of a record come from configurations, schemas and other people's libraries: whatever could
begin something in Markdown or in HTML is escaped, so that a column's name cannot become a heading
or a link.
"""

import re
from collections.abc import Iterable, Iterator

from ..visible_text import visible
from .headline import headline
from .outline import Block, Bullets, Entry, Group, Item, TextTable, outline, plotted
from .record import Report

_DEEPEST_HEADING = 6
"""Markdown has six levels; what is deeper is set in bold."""


def to_markdown(report: Report) -> str:
    """Return the report as one Markdown text; the same record gives the same text.

    Args:
        report: the record; the numbers behind its plots stand in tables at the end.
    """
    head, items = headline(report), outline(report)
    blocks = [
        f"# {_escaped(report.identity.title)}",
        f"**{head.bound}** at {head.delta}, {_escaped(head.stated_for)} "
        f"({report.privacy.grade.value}).",
        _escaped(head.meaning),
        *(f"- {_escaped(v.label)}: {_escaped(v.text)}" for v in head.verdicts),
    ]
    for item in items:
        blocks.extend(_rendered(item, level=2))
    blocks.append("## Numbers behind the plots")
    for table in plotted(items):
        blocks.extend(_table(table, level=3))
    return _joined(blocks)


def _joined(blocks: Iterable[str]) -> str:
    """Blank lines between blocks, but not between the entries of one list."""
    text, former = "", ""
    for block in blocks:
        listed = former.startswith("- ") and block.startswith("- ")
        text += ("" if not former else "\n" if listed else "\n\n") + block
        former = block
    return text + "\n"


def _rendered(item: Item, *, level: int) -> Iterator[str]:
    """Yield the blocks of an item, headings from this level down.

    Args:
        item: of the outline.
        level: of its heading, from 1.
    """
    match item:
        case Entry():
            yield f"- **{_escaped(item.label)}**: {_escaped(item.text)}"
        case Block():
            yield f"- **{_escaped(item.label)}**:"
            yield _fenced(item.text)
        case Bullets():
            yield _heading(item.label, level)
            yield from (f"- {_escaped(text)}" for text in item.items)
        case TextTable():
            yield from _table(item, level=level)
        case Group():
            yield _heading(item.label, level)
            # what has a heading of its own comes last, or lines would seem to belong to it
            for below in sorted(item.items, key=_has_heading):
                if not (isinstance(below, TextTable) and below.plotted):
                    yield from _rendered(below, level=level + 1)


def _has_heading(item: Item) -> bool:
    """Return whether an item begins with a heading of its own."""
    return not isinstance(item, Entry | Block)


def _heading(label: str, level: int) -> str:
    """Return a heading of this level, in bold where Markdown has none so deep."""
    if level > _DEEPEST_HEADING:
        return f"**{_escaped(label)}**"
    return f"{'#' * level} {_escaped(label)}"


def _table(table: TextTable, *, level: int) -> Iterator[str]:
    """Yield a heading and a table with GitHub's bars."""
    yield _heading(table.label, level)
    rows = [[_escaped(cell) for cell in row] for row in (table.columns, *table.rows)]
    rows.insert(1, ["---"] * len(table.columns))
    yield "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _fenced(text: str) -> str:
    """Return preformatted text in a fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


_ANYWHERE = re.compile(r"([\\`*_\[\]|~$])")
"""Characters that begin something in Markdown wherever they stand."""

_AT_START = re.compile(r"^([-+#=]|[0-9]+(?=[.)](?:\s|$)))")
"""Characters, and numbers, that begin something at the start of a line."""


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line and without HTML."""
    flat = " ".join(visible(text).split())
    flat = _ANYWHERE.sub(r"\\\1", flat)
    flat = _AT_START.sub(lambda m: m[1] + "\\" if m[1].isdigit() else "\\" + m[1], flat)
    # & first, or the entities below would be escaped again
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
