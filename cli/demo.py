"""`dpledger demo`: the main job, on real data."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ..data.strict import parse_toml
from ..runs.configuration import DEMO, Configuration
from ..runs.execution import RunOptions, execute_run
from .output import deliver, json_option, steps
from .run import run_outcome

__all__ = ["demo"]


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the run's files; by default a new one under dpledger-runs/.",
)
@click.option("--rounds", type=click.IntRange(1), help="Instead of the demo's 36.")
@click.option("--trials", type=click.IntRange(10), help="Of the attack, in each world.")
@json_option
def demo(out: Path | None, rounds: int | None, trials: int | None, as_json: bool) -> None:
    """Train a private ADMM on UCI Adult: plan, run, certified epsilon, cross-check, attack, report.

    100 agents, 36 rounds, epsilon 1 and delta 1e-5 per record; under a minute on two cores.
    """
    text = DEMO.read_text(encoding="utf-8")
    configuration = parse_toml(text, Configuration, source=DEMO.name)
    if rounds is not None:
        configuration = msgspec.structs.replace(
            configuration, solver=msgspec.structs.replace(configuration.solver, rounds=rounds)
        )
    if trials is not None:
        configuration = msgspec.structs.replace(
            configuration, attack=msgspec.structs.replace(configuration.attack, trials=trials)
        )
    with steps() as start:
        result = execute_run(configuration, RunOptions(name="demo", text=text, out=out), start)
    deliver(run_outcome(result), as_json=as_json)
