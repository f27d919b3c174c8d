"""`dpledger ledger`: make, read, verify and export a ledger."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ..accounting.ledger import FileAnchor, RolledBack, SqliteLedger, TamperedLedger, exported
from ..accounting.ledger.budget import Budget
from ..accounting.ledger.proofs import certificate_of
from ..accounting.numbers.notions import ApproxDp
from ..mechanisms import Adjacency
from .inputs import FILE, NEW_FILE, RELATION
from .output import Outcome, TextColumns, answers, shown, shown_up

__all__ = ["ledger"]

_path = click.argument("path", metavar="LEDGER", type=FILE)


@click.group()
def ledger() -> None:
    """Make, read, verify and export a ledger."""


@ledger.command()
@click.argument("path", metavar="LEDGER", type=click.Path(exists=False, path_type=Path))
@click.option("--epsilon", type=float, required=True, help="All that may ever be spent.")
@click.option("--delta", type=float, required=True, help="In (0, 1).")
@click.option("--adjacency", type=RELATION, required=True)
def create(path: Path, epsilon: float, delta: float, adjacency: Adjacency) -> None:
    """Make a new LEDGER whose budget refuses every release that would cross it."""
    if path.exists():
        raise click.UsageError(f"{path}: Expected a new file; a ledger is never overwritten.")
    budget = Budget(ApproxDp(epsilon, delta), adjacency=adjacency)
    with SqliteLedger(path) as opened:
        opened.set_budget(budget)
    click.echo(f"{path}: at most epsilon {epsilon} at delta {delta}, {adjacency.value}")


@ledger.command()
@_path
@click.option("--delta", type=float, default=1e-5, help="In (0, 1).")
@answers
def show(path: Path, delta: float) -> Outcome:
    """Show a ledger's runs and what has been spent."""
    with SqliteLedger(path, read_only=True) as opened:
        odometer, runs, head = opened.spent(), opened.runs(), opened.head
        epsilon = odometer.epsilon(delta)
    texts = [
        (
            run.run,
            run.opened,
            str(run.events),
            f"{run.committed}/{run.reservations}",
            "yes" if run.kept_to_plan else "no",
        )
        for run in runs
    ]
    spent = f"epsilon {shown(epsilon)} at delta {shown_up(delta)} ({odometer.grade.value})"
    return Outcome(
        title=f"Ledger {path.name}",
        data={
            "head": head,
            "delta": delta,
            "epsilon": epsilon,
            "grade": odometer.grade,
            "adjacency": odometer.adjacency,
            "unprotected": odometer.unprotected,
            "runs": [
                {
                    "run": run.run,
                    "opened": run.opened,
                    "configuration_sha256": run.configuration_hash,
                    "events": run.events,
                    "reservations": run.reservations,
                    "committed": run.committed,
                    "kept_to_plan": run.kept_to_plan,
                }
                for run in runs
            ],
        },
        rows=(
            ("spent", spent),
            ("head", head),
            *(("UNPROTECTED", reason) for reason in odometer.unprotected),
        ),
        tables=(TextColumns(("run", "opened", "events", "committed", "kept to plan"), texts),),
        finding=odometer.is_finding,
    )


@ledger.command()
@_path
@click.option("--head", help="The head that the last row must have, from somewhere else.")
@answers
def verify(path: Path, head: str | None) -> Outcome:
    """Recompute a ledger's hash chain; exit status 1 if anything was changed."""
    title = f"Ledger {path.name}"
    try:
        with SqliteLedger(path, read_only=True) as opened:
            found = opened.verify(expected_head=head)
    except TamperedLedger as error:
        data = {"intact": False, "difference": str(error)}
        return Outcome(title, data, rows=(("TAMPERED", str(error)),), finding=True)
    return Outcome(
        title,
        {"intact": True, **asdict(found)},
        rows=(
            ("intact", f"{found.rows} rows, {found.reservations} reservations"),
            ("without commit", f"{len(found.open)} (spent all the same)"),
            ("head", found.head),
        ),
    )


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
    with SqliteLedger(path, read_only=True) as opened:
        opened.verify()
        head = opened.last_row
        if anchor_path is None:
            click.echo(head.line)
            return None
        data = {"row": head.row, "hash": head.hash, "anchored": True}
        row, refused = ("anchored", f"{anchor_path}: row {head.row}"), False
        try:
            opened.add_to(FileAnchor(anchor_path))
        except RolledBack as error:
            data["anchored"] = False
            row, refused = ("BEHIND", str(error)), True
    return Outcome(f"Ledger {path.name}", data, rows=(row,), finding=refused)


@ledger.command()
@_path
@click.option(
    "--certificate",
    type=NEW_FILE,
    help="Write a certificate of all events to this file instead of the rows.",
)
@click.option("--run", help="Of this run only.")
@click.option("--delta", type=float, default=1e-5, help="For the certificate.")
def export(path: Path, certificate: Path | None, run: str | None, delta: float) -> None:
    """Write a ledger as JSON lines to standard output, or its certificate to a file."""
    with SqliteLedger(path, read_only=True) as opened:
        if certificate is not None:
            certificate.write_bytes(certificate_of(opened, delta=delta, run=run).to_json_bytes())
            return
        for line in exported(opened):
            click.echo(line)
