"""How commands answer: a result, printed as text or as JSON, and an exit status.

Results go to standard output, progress to standard error and only to a terminal. Status 0 is good,
1 a finding, 2 a mistake of the caller's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..accounting.guarantees import Guarantee
from ..accounting.numbers.enclosure import Enclosure, shown_down, shown_up
from ..audits.visible_text import visible

__all__ = [
    "Advance",
    "Outcome",
    "deliver",
    "guarantee_data",
    "json_option",
    "number",
    "plain",
    "shown",
    "shown_down",
    "shown_up",
    "steps",
]

_WIDTH_OF_FILES = 160

Advance = Callable[[int, int], None]

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command found: `data` for machines, `rows` (name, text) and `tables` for people.

    `finding`: exit status 1. `undecided`: exit status 3, no finding and no all-clear.
    """

    title: str
    data: dict[str, Any]
    rows: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = field(default=())
    finding: bool = False
    undecided: bool = False


def deliver(outcome: Outcome, *, as_json: bool) -> None:
    """Print an outcome; raise the exit status 1 if it is a finding, 3 if it is undecided."""
    if as_json:
        click.echo(json.dumps(outcome.data, indent=2, allow_nan=False, default=_plain))
    else:
        console = Console()
        if not console.is_terminal:
            # a file or a pipe has no width: tables keep their columns whole
            console.width = max(console.width, _WIDTH_OF_FILES)
        table = Table(title=plain(outcome.title), title_justify="left", show_header=False, box=None)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in outcome.rows:
            table.add_row(plain(name), plain(text))
        console.print(table)
        for each in outcome.tables:
            console.print()
            console.print(each)
    if outcome.undecided:
        raise SystemExit(3)
    if outcome.finding:
        raise SystemExit(1)


def plain(text: str) -> Text:
    """Return a text for a table as it is: no markup is read, nothing steers the terminal."""
    return Text(visible(text))


@contextmanager
def steps() -> Generator[Callable[[str], Advance]]:
    """Give a function that opens a progress bar; silent where standard error is no terminal."""
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


def guarantee_data(found: Guarantee) -> dict[str, Any]:
    """Return a guarantee as plain values; an infinite epsilon is the text "infinity"."""
    return {
        "adjacency": None if found.adjacency is None else found.adjacency.value,
        "epsilon": {
            "lower": number(found.epsilon.lower_float),
            "upper": number(found.epsilon.upper_float),
        },
        "delta": float(found.delta),
        "mu": {"lower": number(found.mu.lower_float), "upper": number(found.mu.upper_float)},
        "rho": {"lower": number(found.rho.lower_float), "upper": number(found.rho.upper_float)},
        "grade": found.grade.value,
        "method": found.method,
        "theorems": [f"{t.statement} ({t.source})" for t in found.theorems],
        "assumptions": list(found.assumptions),
        "unprotected": list(found.unprotected),
    }


def number(value: float) -> float | str:
    """Return a finite float as it is, an infinite one as text: JSON has none."""
    return value if isfinite(value) else "infinity"


def _plain(value: object) -> object:
    if isinstance(value, Enclosure):
        return {"lower": number(value.lower_float), "upper": number(value.upper_float)}
    raise TypeError(f"Expected plain data instead got {type(value).__name__}.")
