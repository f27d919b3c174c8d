"""The two halves of a Flower app: what a coordinator's ServerApp and a party's ClientApp run.

The app that Flower carries names them and holds no other code (`write_app`). A party's file comes
from its own SuperNode, `--node-config 'party="/path/of/north.toml"'`, and never from a message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data.strict import ConfigurationError, toml_value
from ..federation import Coordinator, FederationEnded, Journal, take_part, write_federation
from ..federation.flower import client_app, server_app
from ..federation.party import Link, TookPart
from .federation_files import Participant, read_federation
from .training import journal_folder

__all__ = ["client", "server", "write_app"]

_FLWR = "1.41.0"
"""The version whose form of apps is written; the extra installs it."""

_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "federation"
version = "1.0.0"
description = "a federation of dpledger"
license = {{ file = "LICENSE" }}
dependencies = ["flwr>=1.41,<1.42"]

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "dpledger"
fab-format-version = 1
flwr-version-target = "{flwr}"

[tool.flwr.app.components]
serverapp = "federation.server_app:app"
clientapp = "federation.client_app:app"

[tool.flwr.app.config]
run = {run}
out = {out}
"""
"""The app's description; the paths at its end are the coordinator's, which the ServerApp reads from
its run configuration."""


def write_app(folder: Path, run: Path) -> None:
    """Write a Flower app that runs the federation of a file: `flwr run FOLDER`.

    The form is that of Flower 1.41, whose app needs a licence file, a dependency on flwr and both
    format versions, and a package without an underscore in its name.

    Args:
        folder: made if it is missing; what comes of the run is written to its folder "together".
        run: the run file, read where the ServerApp runs, which is the coordinator's machine; every
            party has a copy of its own beside its party file, and the plans' hashes are compared.

    Flower carries bytes between the coordinator and the parties; what a party checks, pays and
    signs is the same as over sockets.
    """
    for name in ("pyproject.toml", "LICENSE"):
        if (folder / name).exists():
            raise ConfigurationError(f"{folder / name} must not be there; choose another folder.")
    package = folder / "federation"  # Flower refuses a name with an underscore
    package.mkdir(parents=True, exist_ok=True)
    paths = {"run": run.resolve(), "out": folder.resolve() / "together"}
    quoted = {name: toml_value(str(path)) for name, path in paths.items()}
    (folder / "pyproject.toml").write_text(_PROJECT.format(flwr=_FLWR, **quoted))
    (folder / "LICENSE").write_text("Apache-2.0\n")
    (package / "__init__.py").write_text("")
    for half in ("server", "client"):
        text = f"from dpledger.runs.flower import {half}\n\napp = {half}()\n"
        (package / f"{half}_app.py").write_text(text)


def client() -> Any:
    """Return a party's ClientApp; raises `MissingExtra` without flwr.

    For each message it reads the party's file and derives the plan anew, as any new process must;
    a stated noise multiplier in the run file saves the calibration. The party's own records, ledger
    and journal are open while one message is dealt with, and closed when it is answered. After the
    last message the certificate and the model are in the party's folder.
    """

    def take(context: Any) -> Any:
        participant = Participant.read(Path(str(context.node_config["party"])))
        plan, _ = participant.federation.plan()

        def part(link: Link) -> TookPart:
            with participant.opened() as party:
                took = take_part(party, plan, link)
                participant.written(took)
            return took

        return part

    return client_app(take)


def server() -> Any:
    """Return a coordinator's ServerApp; raises `MissingExtra` without flwr.

    It writes the federation's folder, and raises `FederationEnded` for a run that ended early. The
    same folder goes on with a run that broke off, as with other engines: its journal has the run's
    name, the results of all steps and what the parties handed in.
    """

    def coordinating(context: Any, run: Any) -> None:
        out = Path(str(context.run_config["out"]))
        federation = read_federation(Path(str(context.run_config["run"])))
        plan, _ = federation.plan()
        with Journal(journal_folder(out)) as journal:
            patience = federation.file.federation.patience
            coordinator = Coordinator(plan, journal, patience=patience)
            run(coordinator)
            if coordinator.ended is not None:
                raise FederationEnded(coordinator.ended)
            write_federation(out, plan, coordinator.run, coordinator.handed_in())

    return server_app(coordinating)
