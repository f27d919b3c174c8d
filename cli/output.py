"""How commands answer: an outcome, printed as text or as JSON, and an exit status.

Results go to standard output, progress to standard error and only to a terminal. No file that is a
database, as a ledger is, is written over. Status 0 is good, 1 a finding, 2 a mistake of the
caller's, 3 undecided.

An `Outcome` has one set of data for machines, whose keys are pinned by tests/golden, and rows and
tables for people. On a terminal they are drawn to its width; in a file or a pipe they are plain
text with whole columns. Texts of strangers (names in files, messages of other libraries) are shown
with control characters escaped, so that none of them steers a terminal.
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
from ..accounting.ledger.file_names import write_over
from ..accounting.proof.certificate import Uncertifiable
from ..accounting.proof.proved import Proof
from ..audits.outcome import Outcome
from ..audits.visible_text import visible

__all__ = ["Advance", "answers", "json_option", "show", "steps", "write_certificate"]

P = ParamSpec("P")
"""The options of a command, which its decorator hands on."""
Advance = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def answers(command: Callable[P, Outcome | None]) -> Callable[..., None]:
    """Return a command that prints a function's outcome, and exits with 1 or 3 as it says.

    A function that returns None has printed what there is to say.

    Args:
        command: returns an outcome, or None if it printed by itself.

    The command itself is a plain function of its options, so that a test calls it without a
    terminal.
    """

    @json_option
    @wraps(command)
    def answer(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.pop("as_json"))
        outcome = command(*args, **kwargs)
        if outcome is None:
            return
        show(outcome, as_json=as_json)
        # undecided is said before a finding: a promise that no rule decides is neither broken nor
        # kept
        if outcome.undecided:
            raise SystemExit(3)
        if outcome.finding:
            raise SystemExit(1)

    return answer


def show(outcome: Outcome, *, as_json: bool) -> None:
    """Print an outcome: JSON, or tables that fit a terminal, or plain text for files and pipes.

    Args:
        outcome: what a command found.
        as_json: whether --json was given.
    """
    if as_json:
        click.echo(outcome.json)
    elif sys.stdout.isatty():
        _draw(outcome)
    else:
        click.echo(outcome.text)


def _draw(outcome: Outcome) -> None:
    """Draw an outcome on a terminal with rich; no markup in its texts is read."""
    from rich import table as rich
    from rich.console import Console
    from rich.text import Text

    def cell(text: str) -> Text:
        # as it is: no markup is read, nothing steers the terminal
        return Text(visible(text))

    console = Console()
    first = rich.Table(title=cell(outcome.head), title_justify="left", show_header=False, box=None)
    first.add_column(style="bold", no_wrap=True)
    first.add_column(overflow="fold")
    for row in outcome.said:
        first.add_row(*map(cell, row))
    console.print(first)
    for table in outcome.tables:
        drawn = rich.Table(*table.head, title=table.title, title_justify="left", box=None)
        for texts in table.cells:
            drawn.add_row(*map(cell, texts))
        console.print()
        console.print(drawn)


@contextmanager
def steps() -> Generator[Callable[[str], Advance]]:
    """Give a function that opens a progress bar; silent where standard error is no terminal.

    Attacks, training and proofs may take minutes: each opens a bar of its own, with the time that
    is left.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    # standard output stays the answer's alone
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
    """Write the certificate of a guarantee; raise `Uncertifiable` where there is none.

    Args:
        path: of the new file; one that exists is replaced, unless it is a database: a ledger.
        proof: as found; None where there is none.
        found: the guarantee, which says why nothing was proved.
    """
    if proof is None:
        raise Uncertifiable(f"certificate={path} must have a proof: {found.not_proved}.")
    write_over(path, proof.document)
