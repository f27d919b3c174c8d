"""`dpledger run`: train, with ledger, certificate and report."""

from __future__ import annotations

from pathlib import Path

import click

from ..runs.configuration import read_configuration
from .inputs import configuration_argument
from .output import deliver, json_option, steps
from .pipeline import Wishes, carry_out

__all__ = ["run"]


@click.command()
@configuration_argument
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the run's files; by default a new one under dpledger-runs/.",
)
@click.option(
    "--ledger",
    "ledger_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this ledger, and keep its budget; by default a new one in the folder.",
)
@click.option("--attack/--no-attack", default=True, help="Attack the run by replay.")
@click.option("--baselines/--no-baselines", default=True, help="Train the baselines beside it.")
@click.option("--crosscheck/--no-crosscheck", default=True, help="Ask dp-accounting as well.")
@json_option
def run(
    configuration_path: Path,
    out: Path | None,
    ledger_path: Path | None,
    attack: bool,
    baselines: bool,
    crosscheck: bool,
    as_json: bool,
) -> None:
    """Train what CONFIG describes; every release is reserved in the ledger before its noise.

    Exit status 1 if anything was found: an unprotected release, a refuted claim, a cross-check that
    disagrees.
    """
    configuration = read_configuration(configuration_path)
    wishes = Wishes(
        name=configuration_path.stem,
        text=configuration_path.read_text(encoding="utf-8"),
        out=out,
        ledger=ledger_path,
        attack=attack,
        baselines=baselines,
        crosscheck=crosscheck,
    )
    with steps() as start:
        outcome = carry_out(configuration, wishes, start)
    deliver(outcome, as_json=as_json)
