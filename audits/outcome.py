"""What a check, a run or an experiment found, in a form that any front end can show.

An `Outcome` is made by pure functions of a result (`audits.outcomes`, `runs.outcomes`,
`papers.harness.outcome`), and is shown as plain text, as JSON, or drawn by the command line.
Numbers are rounded to the side that claims less: upper bounds up, lower bounds down.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..accounting.numbers.enclosure import Enclosure, shown_down, shown_in_full, shown_up
from ..mechanisms.sensitivity import float_up
from .visible_text import in_a_line, visible

if TYPE_CHECKING:
    from ..accounting.guarantees import Guarantee
    from .scores import ClaimedPrivacy

Row = tuple[str, str | None]
"""A name and a text; a row without a text is left out."""


@dataclass(frozen=True, slots=True)
class TextColumns:
    """A table for people: the columns' names, rows of as many texts, and a title or none.

    Args:
        head: names of the columns.
        rows: as many texts each; a text may have several lines.
        title: above the table.
    """

    head: Sequence[str]
    rows: Iterable[Sequence[str]]
    title: str | None = None

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The rows, as they are shown: a line break in somebody's name begins none."""
        return [(in_a_line(first), *others) for first, *others in self.rows]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found: `data` for machines, `rows` and `tables` for people.

    Args:
        title: what was looked at, in one line.
        data: by names; dataclasses, enums and enclosures become plain values in `json`.
        rows: (name, text), in the order of reading.
        tables: below the rows.
        finding: whether there is something to report; exit status 1 of a command.
        undecided: whether there is neither a finding nor an all-clear; exit status 3.
    """

    title: str
    data: dict[str, Any]
    rows: Sequence[Row] = ()
    tables: Sequence[TextColumns] = ()
    finding: bool = False
    undecided: bool = False

    @property
    def head(self) -> str:
        """The title, in one line whatever names stand in it."""
        return in_a_line(self.title)

    @property
    def said(self) -> list[tuple[str, str]]:
        """The rows that have a text."""
        return [(in_a_line(name), text) for name, text in self.rows if text]

    @property
    def text(self) -> str:
        """The outcome as plain text: no width is assumed, so that columns stay whole in a file.

        Characters that could steer a terminal are written as escapes.
        """
        lines = [self.head, *_lines(self.said)]
        for table in self.tables:
            title = [] if table.title is None else [table.title]
            lines += ["", *title, *_lines([table.head, *table.cells])]
        return "\n".join(map(visible, lines))

    @property
    def json(self) -> str:
        """The data as indented JSON; an infinity, which JSON lacks, is the text "infinity".

        Keys and their meaning are pinned by tests/golden: scripts rely on them.
        """
        return json.dumps(_jsonable(self.data), indent=2, allow_nan=False)


def _lines(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, whose cells may have several."""
    cells = [[text.split("\n") for text in row] for row in rows]
    widths = [
        max(len(line) for cell in column for line in cell) for column in zip(*cells, strict=True)
    ]
    return [
        "  ".join(map(str.ljust, each, widths)).rstrip()
        for row in cells
        for each in zip_longest(*row, fillvalue="")
    ]


def _jsonable(value: object) -> object:
    """Return a value as JSON knows it: enclosures by both ends, infinities as words, dataclasses by
    fields.
    """
    match value:
        case float() if abs(value) == inf:
            return "infinity" if value > 0 else "-infinity"
        case Enclosure():
            return {"lower": _jsonable(value.lower_float), "upper": _jsonable(value.upper_float)}
        case Enum():
            return value.value
        case Path():
            return str(value)
        case dict():
            return {key: _jsonable(each) for key, each in value.items()}
        case list() | tuple():
            return [_jsonable(each) for each in value]
        case _ if is_dataclass(value):
            return {field.name: _jsonable(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


# --- numbers and guarantees as texts -----------------------------------------------------------


def shown(value: Enclosure) -> str:
    """Return an enclosure as text: one number where 10 digits cannot tell its ends apart.

    Both ends are rounded outward at the last digit shown.
    """
    low, high = value.lower_float, value.upper_float
    if f"{low:.10g}" == f"{high:.10g}":
        return shown_up(high)
    return f"[{shown_down(low, digits=12)}, {shown_up(high, digits=12)}]"


def claimed_text(claimed: ClaimedPrivacy) -> str:
    """Return a claim under attack as text: epsilon rounded up, its delta, what stands behind it."""
    epsilon, delta = shown_up(claimed.epsilon, digits=6), shown_in_full(claimed.delta)
    return f"{epsilon} at delta {delta}, {claimed.grade}"


def guarantee_data(found: Guarantee) -> dict[str, Any]:
    """Return a guarantee as plain values, by the names that every command's JSON uses.

    Args:
        found: an enclosure's two ends are both given, under `lower` and `upper`.
    """
    return {
        "adjacency": found.adjacency,
        "epsilon": found.epsilon,
        "delta": float_up(found.delta),
        "records_per_unit": found.group,
        "mu": found.mu,
        "rho": found.rho,
        "grade": found.grade,
        "method": found.method,
        "theorems": [f"{t.statement} ({t.source})" for t in found.theorems],
        "assumptions": found.assumptions,
        "unprotected": found.unprotected,
        "not_proved": found.not_proved or None,
    }


def grade_rows(found: Guarantee) -> list[Row]:
    """Return the grade of an epsilon, with why it is not proved, and how it was found."""
    return [("grade", found.graded), ("method", found.method)]
