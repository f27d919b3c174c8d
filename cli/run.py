"""`dpledger run`: train, with ledger, certificate and report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..runs.configuration import read_configuration
from ..runs.execution import RunOptions, RunResult, TrainedModel, execute_run
from .attack import attack_outcome
from .inputs import configuration_argument
from .output import Outcome, deliver, guarantee_data, json_option, shown, shown_up, steps

__all__ = ["run", "run_outcome"]


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
@click.option(
    "--anchor",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file elsewhere that remembers the ledger's rows: older copies of it are refused.",
)
@click.option("--attack/--no-attack", default=True, help="Attack the run by replay.")
@click.option("--baselines/--no-baselines", default=True, help="Train the baselines beside it.")
@click.option("--crosscheck/--no-crosscheck", default=True, help="Ask dp-accounting as well.")
@json_option
def run(
    configuration_path: Path,
    out: Path | None,
    ledger_path: Path | None,
    anchor: Path | None,
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
    options = RunOptions(
        name=configuration_path.stem,
        text=configuration_path.read_text(encoding="utf-8"),
        out=out,
        ledger=ledger_path,
        anchor=anchor,
        attack=attack,
        baselines=baselines,
        crosscheck=crosscheck,
    )
    with steps() as start:
        result = execute_run(configuration, options, start)
    deliver(run_outcome(result), as_json=as_json)


def run_outcome(result: RunResult) -> Outcome:
    """Return what a run says; a finding if anything is wrong with it."""
    found, agrees = result.guarantee, result.crosschecks_agree
    attacked = None if result.attack is None else attack_outcome(result.attack)
    delta = shown_up(float(found.delta))
    return Outcome(
        title=result.title,
        data={
            "run": result.name,
            "folder": str(result.folder),
            "guarantee": guarantee_data(found),
            "noise_multiplier": result.plan.noise_multiplier,
            "plan_equals_run": result.kept_to_plan,
            "ledger_head": result.ledger_head,
            "models": [_model_data(model) for model in result.models],
            "crosschecks_agree": agrees,
            "attack": None if attacked is None else attacked.data,
        },
        rows=(
            ("epsilon", f"{shown(found.epsilon)} at delta {delta}, {found.grade.value}"),
            ("plan = run", "yes" if result.kept_to_plan else "NO"),
            ("cross-check", "skipped" if agrees is None else "agrees" if agrees else "DISAGREES"),
            *(() if attacked is None else (r for r in attacked.rows if r[0] != "note")),
            ("files", f"{result.folder}/report.html, .md, .json; certificate, ledger, model"),
        ),
        tables=(
            _accuracy_table(result.models),
            *(() if attacked is None else attacked.tables),
        ),
        finding=result.is_finding,
    )


def _model_data(model: TrainedModel) -> dict[str, Any]:
    final = model.training.accuracy
    return {
        "model": model.name,
        "guarantee": model.guarantee,
        "right": final.right,
        "records": final.total,
        "accuracy": final.share,
    }


def _accuracy_table(models: Sequence[TrainedModel]) -> Table:
    table = Table("model", "accuracy", "privacy", box=None)
    for model in models:
        table.add_row(model.name, f"{model.training.accuracy.share:.2%}", model.guarantee)
    return table
