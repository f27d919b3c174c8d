"""`dpledger run`: train, with ledger, certificate and report; `dpledger demo`: on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..runs import RunOptions, RunResult, demo_configuration
from ..runs import run as train
from .attack import attack_outcome
from .inputs import NEW_FILE, NEW_FOLDER, configuration_argument
from .output import Outcome, TextColumns, answers, guarantee_data, shown, shown_up, steps

_out_option = click.option(
    "--out",
    type=NEW_FOLDER,
    help="Folder for the run's files; by default a new one under dpledger-runs/.",
)


@click.command()
@configuration_argument
@_out_option
@click.option(
    "--ledger",
    type=NEW_FILE,
    help="Write to this ledger, and keep its budget; by default a new one in the folder.",
)
@click.option(
    "--anchor",
    type=NEW_FILE,
    help="A file elsewhere that remembers the ledger's rows: older copies of it are refused.",
)
@click.option("--attack/--no-attack", default=True, help="Attack the run by replay.")
@click.option("--baselines/--no-baselines", default=True, help="Train the baselines beside it.")
@click.option("--crosscheck/--no-crosscheck", default=True, help="Ask dp-accounting as well.")
@answers
def run(configuration_path: Path, **options: Any) -> Outcome:
    """Train what CONFIG describes; every release is reserved in the ledger before its noise.

    Exit status 1 if anything was found: an unprotected release, a refuted claim, a cross-check that
    disagrees.
    """
    with steps() as start:
        return run_outcome(train(configuration_path, RunOptions(**options), start))


@click.command()
@_out_option
@click.option("--rounds", type=click.IntRange(1), help="Instead of the demo's 36.")
@click.option("--trials", type=click.IntRange(10), help="Of the attack, in each world.")
@answers
def demo(out: Path | None, rounds: int | None, trials: int | None) -> Outcome:
    """Train a private ADMM on UCI Adult: plan, run, proved epsilon, cross-check, attack, report.

    100 agents, 36 rounds, epsilon 1 and delta 1e-5 per record; under a minute on two cores.
    """
    configuration = demo_configuration(rounds=rounds, trials=trials)
    with steps() as start:
        return run_outcome(train(configuration, RunOptions(name="demo", out=out), start))


def run_outcome(result: RunResult) -> Outcome:
    """Return what a run says; a finding if anything is wrong with it."""
    found, agrees = result.guarantee, result.crosschecks_agree
    attacked = None if result.attack is None else attack_outcome(result.attack)
    delta = shown_up(float(found.delta))
    models = [(m.name, f"{m.training.accuracy.share:.2%}", m.guarantee) for m in result.models]
    return Outcome(
        title=result.title,
        data={
            "run": result.name,
            "folder": str(result.folder),
            "guarantee": guarantee_data(found),
            "noise_multiplier": result.plan.noise_multiplier,
            "plan_equals_run": result.kept_to_plan,
            "ledger_head": result.ledger_head,
            "models": [
                {
                    "model": model.name,
                    "guarantee": model.guarantee,
                    "right": model.training.accuracy.right,
                    "records": model.training.accuracy.total,
                    "accuracy": model.training.accuracy.share,
                }
                for model in result.models
            ],
            "crosschecks_agree": agrees,
            "attack": None if attacked is None else attacked.data,
        },
        rows=(
            ("epsilon", f"{shown(found.epsilon)} at delta {delta}, {found.graded}"),
            ("plan = run", "yes" if result.kept_to_plan else "NO"),
            ("cross-check", "skipped" if agrees is None else "agrees" if agrees else "DISAGREES"),
            *(() if attacked is None else (r for r in attacked.rows if r[0] != "note")),
            ("files", f"{result.folder}/report.html, .md, .json; certificate, ledger, model"),
        ),
        tables=(
            TextColumns(("model", "accuracy", "privacy"), models),
            *(() if attacked is None else attacked.tables),
        ),
        finding=result.is_finding,
    )
