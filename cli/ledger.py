"""`dpledger ledger`: make, read, verify and export a ledger.

    create   a new ledger with a budget, which refuses what would cross it
    show     its runs, and what was spent in all, with the grade of that sum
    verify   whether its chain of hashes is as it was written
    anchor   its last row, in a second place that remembers how far it had come
    export   all of it as JSON lines, or a certificate of its events: of what they cost where all of
             a plan happened, else of the budget whose filter let them happen, if there is one

All but `create` open the file for reading only. An epsilon is printed rounded up at --delta; a
ledger whose runs were not all planned beforehand has an estimate, and says so.

Exit status 1 of `show` if a release is unprotected, of `verify` if a row was changed, of `anchor`
if the ledger lacks the row that the file names last. 2 for a broken chain elsewhere, a file that is
no ledger, or that exists already.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting.ledger import SqliteLedger, exported
from ..accounting.ledger.budget import Budget
from ..accounting.numbers.notions import ApproxDp
from ..audits.outcome import Outcome
from ..mechanisms import Adjacency
from ..runs.outcomes.ledgers import (
    anchored_outcome,
    certified_outcome,
    chain_outcome,
    spent_outcome,
)
from .inputs import FILE, NEW_FILE, adjacency_option
from .output import answers

__all__ = ["ledger"]

_path = click.argument("path", metavar="LEDGER", type=FILE)
"""An existing ledger."""


@click.group()
def ledger() -> None:
    """Make, read, verify and export a ledger."""


@ledger.command()
@click.argument("path", metavar="LEDGER", type=click.Path(exists=False, path_type=Path))
@click.option("--epsilon", type=float, required=True, help="All that may ever be spent.")
@click.option("--delta", type=float, required=True, help="In (0, 1).")
@adjacency_option
@answers
def create(path: Path, epsilon: float, delta: float, adjacency: Adjacency) -> Outcome:
    """Make a new LEDGER whose budget refuses every release that would cross it."""
    SqliteLedger.create(path, Budget(ApproxDp(epsilon, delta), adjacency=adjacency))
    return Outcome(
        title=f"{path}: at most epsilon {epsilon} at delta {delta}, {adjacency.value}",
        data={"ledger": path, "epsilon": epsilon, "delta": delta, "adjacency": adjacency},
    )


@ledger.command()
@_path
@click.option("--delta", type=float, default=1e-5, help="In (0, 1).")
@answers
def show(path: Path, delta: float) -> Outcome:
    """Show a ledger's runs and what has been spent."""
    return spent_outcome(path, delta=delta)


@ledger.command()
@_path
@click.option("--head", help="The head that the last row must have, from somewhere else.")
@answers
def verify(path: Path, head: str | None) -> Outcome:
    """Recompute a ledger's hash chain; exit status 1 if anything was changed."""
    return chain_outcome(path, head=head)


@ledger.command()
@_path
@click.option(
    "--to",
    "anchor_path",
    type=NEW_FILE,
    help="Append to this file, after finding its last line in LEDGER; else print the line.",
)
@answers
def anchor(path: Path, anchor_path: Path | None) -> Outcome | None:
    """Note LEDGER's last row and its hash in a second place: older copies will not agree with it.

    Without --to the line goes to standard output, for any command that keeps lines. Exit status 1
    if LEDGER lacks the row that the file names last.
    """
    # without a file the caller keeps the line, for instance in a log that only grows
    if anchor_path is not None:
        return anchored_outcome(path, anchor_path)
    with SqliteLedger(path, read_only=True) as opened:
        opened.verify()
        click.echo(opened.last_row.line)
    return None


@ledger.command()
@_path
@click.option(
    "--certificate",
    type=NEW_FILE,
    help="Write a certificate of all events to this file instead of the rows.",
)
@click.option("--run", help="Of this run only.")
@click.option("--delta", type=float, default=1e-5, help="For the certificate.")
@answers
def export(path: Path, certificate: Path | None, run: str | None, delta: float) -> Outcome | None:
    """Write a ledger, seeds too, as JSON lines to standard output, or a certificate to a file."""
    if certificate is not None:
        return certified_outcome(path, certificate, delta=delta, run=run)
    with SqliteLedger(path, read_only=True) as opened:
        for line in exported(opened):
            click.echo(line)
    return None
