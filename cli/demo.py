"""`dpledger demo`: the main job, on real data."""

from __future__ import annotations

from pathlib import Path

import click

from ..runs import RunOptions, demo_configuration
from ..runs import run as train
from .output import Outcome, answers, steps
from .run import out_option, run_outcome


@click.command()
@out_option
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
