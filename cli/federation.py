"""`dpledger federate` and `dpledger party`: runs in which every party keeps its own records."""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.outcome import Outcome
from ..runs.federation import Engine, participate
from ..runs.federation import federate as run_federation
from ..runs.outcomes.federation import federated_outcome, participation_outcome
from .inputs import FILE, NEW_FOLDER, Among, configuration_argument
from .output import answers, steps


@click.command()
@configuration_argument
@click.option("--engine", type=Among(Engine), default=Engine.IN_PROCESS.value)
@click.option("--party", "parties", type=FILE, multiple=True, help="In-process, mpi: its file.")
@click.option("--token", type=FILE, help="Sockets: a file that all parties have.")
@click.option("--out", type=NEW_FOLDER, default=Path("federation"), help="For what comes of it.")
@answers
def federate(
    configuration_path: Path,
    engine: Engine,
    parties: tuple[Path, ...],
    token: Path | None,
    out: Path,
) -> Outcome | None:
    """Run the federation that CONFIG describes, and prove what it cost.

    In-process runs all parties' files as threads; sockets waits until `dpledger party serve` has
    connected for each of them; mpi takes a rank a party; flower writes an app for `flwr run OUT`.
    """
    found = run_federation(configuration_path, engine=engine, out=out, parties=parties, token=token)
    return None if found is None else federated_outcome(found)


@click.group()
def party() -> None:
    """A party's own part in a federation."""


@party.command()
@click.argument("party_path", metavar="PARTY", type=FILE)
@answers
def serve(party_path: Path) -> Outcome:
    """Take part as the party that the file PARTY describes, or go on where that broke off."""
    with steps() as start:
        return participation_outcome(participate(party_path, start("rounds")))
