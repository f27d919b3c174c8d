"""`dpledger import`: the releases that another tool's file lists, priced, and into a ledger.

Asks for the kind of file (see `interop.KINDS`), the file, and the relation that its numbers are
read under: no such format states one. What has no rule here is refused by name, and then nothing is
recorded.

Prints how many releases are listed and what they cost together, with the grade, and under which run
they were recorded. Exit status 0; 1 if a release is unprotected; 2 for a file that cannot be read,
or a ledger whose budget it would cross.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.outcome import Outcome
from ..interop import KINDS
from ..mechanisms.adjacency import Adjacency
from ..runs.outcomes.imports import import_outcome
from .inputs import FILE, NEW_FILE, adjacency_option
from .output import answers


@click.command("import")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("file", type=FILE)
@adjacency_option
@click.option("--ledger", type=NEW_FILE, help="Record them here, all or nothing; new or not.")
@click.option("--run", help="With --ledger: the run's name; by default made of the file's hash.")
@click.option("--delta", type=float, default=1e-5, help="In (0, 1), where epsilon is shown.")
@answers
def import_(
    kind: str,
    file: Path,
    adjacency: Adjacency,
    ledger: Path | None,
    run: str | None,
    delta: float,
) -> Outcome:
    """Price the releases that FILE of another tool lists, and record them with --ledger.

    Nothing in FILE is executed; what it lists without a rule here is refused by name.
    """
    return import_outcome(kind, file, adjacency=adjacency, ledger=ledger, run=run, delta=delta)
