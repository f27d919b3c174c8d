"""How commands answer: an outcome, printed as text or as JSON, and an exit status.

Results go to standard output, progress to standard error and only to a terminal. Status 0 is good,
1 a finding, 2 a mistake of the caller's, 3 undecided.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import click

from ..accounting.guarantees import Guarantee
from ..accounting.proof.certificate import Uncertifiable
from ..accounting.proof.proved import Proof
from ..audits.outcome import Outcome
from ..audits.visible_text import visible

__all__ = ["Advance", "answers", "json_option", "show", "steps", "write_certificate"]

P = ParamSpec("P")
Advance = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def answers(command: Callable[P, Outcome | None]) -> Callable[..., None]:
    """Return a command that prints a function's outcome, and exits with 1 or 3 as it says.

    A function that returns None has printed what there is to say.
    """

    @json_option
    @wraps(command)
    def answer(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.pop("as_json"))
        outcome = command(*args, **kwargs)
        if outcome is None:
            return
        show(outcome, as_json=as_json)
        if outcome.undecided:
            raise SystemExit(3)
        if outcome.finding:
            raise SystemExit(1)

    return answer


def show(outcome: Outcome, *, as_json: bool) -> None:
    """Print an outcome: JSON, or tables that fit a terminal, or plain text for files and pipes."""
    if as_json:
        click.echo(outcome.json)
    elif sys.stdout.isatty():
        _draw(outcome)
    else:
        click.echo(outcome.text)


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
    for row in outcome.said:
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


def write_certificate(path: Path, proof: Proof | None, found: Guarantee) -> None:
    """Write the certificate of a guarantee; raise `Uncertifiable` where there is none."""
    if proof is None:
        raise Uncertifiable(f"certificate={path} must have a proof: {found.not_proved}.")
    path.write_bytes(proof.document)
