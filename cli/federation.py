"""`dpledger federate` and `dpledger party`: runs in which every party keeps its own records.

`federate` asks for run.toml, the same at every party, and starts or waits for the parties; `party
serve` asks for one party's party.toml and takes part until the run is over. What a party's own file
says leaves it never.

`federate` prints what the certificates of all parties prove together, each party's own epsilon and
where files are; `party serve` prints where its certificate, model and ledger are. Exit status 0; 2
where a party refuses the plan, by its policy or its budget, or somebody stays away: then the reason
that all parties got is printed.

Files of `federate`: federation.json and a certificate for each party, which `dpledger verify
--federation` checks, the joint certificate, and model.npy; each party keeps ledger, journal,
certificate and model in its own folder.
"""

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
    connected for each of them; mpi shares them out to the ranks of `mpirun`; flower writes an app
    for `flwr run OUT`.
    """
    # None at ranks that do not coordinate, and with flower, whose run is to come
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
        # a party's answer names no number: what was promised stands in its own certificate
        return participation_outcome(participate(party_path, start("rounds")))
