"""How commands answer: a result, printed as text or as JSON, and an exit status.

Results go to standard output, progress to standard error and only to a terminal. Status 0 is good,
1 a finding, 2 a mistake of the caller's, 3 undecided.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import wraps
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from ..accounting.guarantees import Guarantee
from ..accounting.numbers.enclosure import Enclosure, shown_down, shown_up
from ..accounting.proof.certificate import Uncertifiable
from ..accounting.proof.proved import Proof
from ..audits.visible_text import visible

if TYPE_CHECKING:
    from ..audits.scores import ClaimedPrivacy

__all__ = [
    "Advance",
    "Outcome",
    "TextColumns",
    "answers",
    "claimed_text",
    "deliver",
    "grade_rows",
    "guarantee_data",
    "json_option",
    "shown",
    "shown_down",
    "shown_up",
    "steps",
    "write_certificate",
]

P = ParamSpec("P")
Advance = Callable[[int, int], None]
Row = tuple[str, str | None]

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@dataclass(frozen=True, slots=True)
class TextColumns:
    """A table for people: the columns' names, rows of as many texts, and a title or none."""

    head: Sequence[str]
    rows: Iterable[Sequence[str]]
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command found: `data` for machines, `rows` (name, text) and `tables` for people.

    Rows without a text are left out. `finding`: exit status 1. `undecided`: exit status 3, no
    finding and no all-clear.
    """

    title: str
    data: dict[str, Any]
    rows: Sequence[Row] = ()
    tables: Sequence[TextColumns] = ()
    finding: bool = False
    undecided: bool = False


def answers(command: Callable[P, Outcome | None]) -> Callable[..., None]:
    """Return a command that prints the outcome of a function, as JSON where `--json` is given."""

    @json_option
    @wraps(command)
    def answer(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.pop("as_json"))
        outcome = command(*args, **kwargs)
        if outcome is not None:
            deliver(outcome, as_json=as_json)

    return answer


def deliver(outcome: Outcome, *, as_json: bool) -> None:
    """Print an outcome; raise the exit status 1 if it is a finding, 3 if it is undecided."""
    if as_json:
        click.echo(json.dumps(_jsonable(outcome.data), indent=2, allow_nan=False))
    else:
        _print(outcome)
    if outcome.undecided:
        raise SystemExit(3)
    if outcome.finding:
        raise SystemExit(1)


def _print(outcome: Outcome) -> None:
    if sys.stdout.isatty():
        _draw(outcome)
        return
    # a file or a pipe has no width: tables keep their columns whole
    lines = [outcome.title, *_lines(_said(outcome))]
    for table in outcome.tables:
        title = [] if table.title is None else [table.title]
        lines += ["", *title, *_lines([table.head, *table.rows])]
    click.echo("\n".join(map(visible, lines)))


def _said(outcome: Outcome) -> list[tuple[str, str]]:
    return [(name, text) for name, text in outcome.rows if text]


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


def _draw(outcome: Outcome) -> None:
    from rich import table as rich
    from rich.console import Console
    from rich.text import Text

    def cell(text: str) -> Text:
        # as it is: no markup is read, nothing steers the terminal
        return Text(visible(text))

    console = Console()
    first = rich.Table(title=cell(outcome.title), title_justify="left", show_header=False, box=None)
    first.add_column(style="bold", no_wrap=True)
    first.add_column(overflow="fold")
    for row in _said(outcome):
        first.add_row(*map(cell, row))
    console.print(first)
    for table in outcome.tables:
        drawn = rich.Table(*table.head, title=table.title, title_justify="left", box=None)
        for texts in table.rows:
            drawn.add_row(*map(cell, texts))
        console.print()
        console.print(drawn)


@contextmanager
def steps() -> Generator[Callable[[str], Advance]]:
    """Give a function that opens a progress bar; silent where standard error is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        def start(description: str) -> Advance:
            task = progress.add_task(description, total=None)

            def advance(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total)

            return advance

        yield start


def shown(value: Enclosure) -> str:
    """Return an enclosure as text: one number where 12 digits cannot tell its ends apart."""
    low, high = value.lower_float, value.upper_float
    if f"{low:.10g}" == f"{high:.10g}":
        return shown_up(high)
    return f"[{shown_down(low, digits=12)}, {shown_up(high, digits=12)}]"


def claimed_text(claimed: ClaimedPrivacy) -> str:
    """Return a claim under attack as text: epsilon rounded up, its delta, what stands behind it."""
    return f"{shown_up(claimed.epsilon, digits=6)} at delta {claimed.delta:g}, {claimed.grade}"


def guarantee_data(found: Guarantee) -> dict[str, Any]:
    """Return a guarantee as plain values."""
    return {
        "adjacency": found.adjacency,
        "epsilon": found.epsilon,
        "delta": float(found.delta),
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
    """Return the grade of a printed epsilon, with why it is not proved, and how it was found."""
    return [("grade", found.graded), ("method", found.method)]


def write_certificate(path: Path, proof: Proof | None, found: Guarantee) -> None:
    """Write the certificate of a guarantee; raise `Uncertifiable` where there is none."""
    if proof is None:
        raise Uncertifiable(f"certificate={path} must have a proof: {found.not_proved}.")
    path.write_bytes(proof.document)


def _jsonable(value: object) -> object:
    """Return plain data; JSON has no infinity, which is the text "infinity"."""
    match value:
        case float() if abs(value) == inf:
            return "infinity" if value > 0 else "-infinity"
        case Enclosure():
            return {"lower": _jsonable(value.lower_float), "upper": _jsonable(value.upper_float)}
        case Enum():
            return value.value
        case dict():
            return {key: _jsonable(each) for key, each in value.items()}
        case list() | tuple():
            return [_jsonable(each) for each in value]
        case _ if is_dataclass(value):
            return {field.name: _jsonable(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value
