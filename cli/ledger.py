"""`dpledger ledger`: make, read, verify and export a ledger."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from ..accounting.ledger import FileAnchor, RolledBack, SqliteLedger, TamperedLedger, exported
from ..accounting.ledger.budget import Budget
from ..accounting.numbers.notions import ApproxDp
from ..accounting.proof.certificate import certify
from ..mechanisms import Adjacency
from .output import Outcome, deliver, json_option, shown, shown_up

__all__ = ["ledger"]

_path = click.argument(
    "path", metavar="LEDGER", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


@click.group()
def ledger() -> None:
    """Make, read, verify and export a ledger."""


@ledger.command()
@click.argument("path", metavar="LEDGER", type=click.Path(exists=False, path_type=Path))
@click.option("--epsilon", type=float, required=True, help="All that may ever be spent.")
@click.option("--delta", type=float, required=True, help="In (0, 1).")
@click.option("--adjacency", type=click.Choice([a.value for a in Adjacency]), required=True)
def create(path: Path, epsilon: float, delta: float, adjacency: str) -> None:
    """Make a new LEDGER whose budget refuses every release that would cross it."""
    if path.exists():
        raise click.UsageError(f"{path}: Expected a new file; a ledger is never overwritten.")
    budget = Budget(ApproxDp(epsilon, delta), adjacency=Adjacency(adjacency))
    with SqliteLedger(path) as opened:
        opened.set_budget(budget)
    click.echo(f"{path}: at most epsilon {epsilon} at delta {delta}, {adjacency}")


@ledger.command()
@_path
@click.option("--delta", type=float, default=1e-5, show_default=True, help="In (0, 1).")
@json_option
def show(path: Path, delta: float, as_json: bool) -> None:
    """Show a ledger's runs and what has been spent."""
    with SqliteLedger(path, read_only=True) as opened:
        odometer = opened.spent()
        epsilon = odometer.epsilon(delta)
        runs = opened.runs()
        head = opened.head
    table = Table("run", "opened", "events", "committed", "kept to plan", box=None)
    for run in runs:
        table.add_row(
            run.run,
            run.opened,
            str(run.events),
            f"{run.committed}/{run.reservations}",
            "yes" if run.kept_to_plan else "no",
        )
    deliver(
        Outcome(
            title=f"Ledger {path.name}",
            data={
                "head": head,
                "delta": delta,
                "epsilon": epsilon,
                "grade": odometer.grade.value,
                "adjacency": None if odometer.adjacency is None else odometer.adjacency.value,
                "unprotected": list(odometer.unprotected),
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
                (
                    "spent",
                    f"epsilon {shown(epsilon)} at delta {shown_up(delta)} ({odometer.grade.value})",
                ),
                ("head", head),
                *(("UNPROTECTED", reason) for reason in odometer.unprotected),
            ),
            tables=(table,),
            finding=bool(odometer.unprotected),
        ),
        as_json=as_json,
    )


@ledger.command()
@_path
@click.option("--head", help="The head that the last row must have, from somewhere else.")
@json_option
def verify(path: Path, head: str | None, as_json: bool) -> None:
    """Recompute a ledger's hash chain; exit status 1 if anything was changed."""
    try:
        with SqliteLedger(path, read_only=True) as opened:
            found = opened.verify(expected_head=head)
    except TamperedLedger as error:
        outcome = Outcome(
            title=f"Ledger {path.name}",
            data={"intact": False, "difference": str(error)},
            rows=(("TAMPERED", str(error)),),
            finding=True,
        )
    else:
        outcome = Outcome(
            title=f"Ledger {path.name}",
            data={
                "intact": True,
                "rows": found.rows,
                "documents": found.documents,
                "reservations": found.reservations,
                "open": list(found.open),
                "head": found.head,
            },
            rows=(
                ("intact", f"{found.rows} rows, {found.reservations} reservations"),
                ("without commit", f"{len(found.open)} (spent all the same)"),
                ("head", found.head),
            ),
        )
    deliver(outcome, as_json=as_json)


@ledger.command()
@_path
@click.option(
    "--to",
    "anchor_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append to this file, after finding its last line in LEDGER; else print the line.",
)
@json_option
def anchor(path: Path, anchor_path: Path | None, as_json: bool) -> None:
    """Note LEDGER's last row and its hash in a second place: older copies will not agree with it.

    Without --to the line goes to standard output, for any command that keeps lines. Exit status 1
    if LEDGER lacks the row that the file names last.
    """
    with SqliteLedger(path, read_only=True) as opened:
        opened.verify()
        head = opened.last_row
        if anchor_path is None:
            click.echo(head.line)
            return
        place = FileAnchor(anchor_path)
        try:
            if (last := place.last()) is not None:
                opened.require_row(last)
            place.append(head)
            refused = None
        except RolledBack as error:
            refused = str(error)
    deliver(
        Outcome(
            title=f"Ledger {path.name}",
            data={"row": head.row, "hash": head.hash, "anchored": refused is None},
            rows=(
                ("anchored", f"{anchor_path}: row {head.row}")
                if refused is None
                else ("BEHIND", refused),
            ),
            finding=refused is not None,
        ),
        as_json=as_json,
    )


@ledger.command()
@_path
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a certificate of all events to this file instead of the rows.",
)
@click.option("--run", "run_name", help="Of this run only.")
@click.option("--delta", type=float, default=1e-5, show_default=True, help="For the certificate.")
def export(path: Path, certificate: Path | None, run_name: str | None, delta: float) -> None:
    """Write a ledger as JSON lines to standard output, or its certificate to a file."""
    with SqliteLedger(path, read_only=True) as opened:
        if certificate is None:
            for line in exported(opened):
                click.echo(line)
        else:
            events = opened.joint_events() if run_name is None else opened.events(run_name)
            proved = certify(events, delta=delta).given(*opened.circumstances(run_name))
            certificate.write_bytes(proved.to_json_bytes())
