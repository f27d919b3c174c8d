"""`dpledger run`: train, with ledger, certificate and report; `dpledger demo`: on real data.

Asks for a run's configuration, and for nothing that it does not say: noise, rounds and data are the
file's. `demo` asks for nothing at all and runs on UCI Adult, which comes with the package.

Prints the proved epsilon, whom it is promised to, whether the run kept to its plan, other
libraries' answers, the replay attack, and each model's accuracy beside its privacy; files stand in
a new folder. The order is plan, prove, reserve all of it in the ledger, and only then noise.

Exit status 0; 1 if anything is wrong with the run, all of which is printed; 2 before anything was
spent for a configuration, data or a budget that do not allow it. Interrupted: 130, and --resume
goes on at no cost.

The folder of a run:

    configuration.toml         what ran, for readers; configuration.holder.toml has a seed of noise
    ledger.sqlite              every release, unless --ledger names another one
    certificate.json           for `dpledger verify`
    model.npy                  the last public model
    report.html, .md, .json    for the holder; public.html without what no epsilon covers
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..audits.outcome import Outcome
from ..runs import RunOptions, demo_configuration
from ..runs import run as train
from ..runs.outcomes.executed import run_outcome
from .inputs import FOLDER, NEW_FILE, NEW_FOLDER, configuration_argument
from .output import answers, steps

_out_option = click.option(
    "--out",
    type=NEW_FOLDER,
    help="Folder for the run's files; by default a new one under dpledger-runs/.",
)
"""Where a run's files go."""


@click.command()
@configuration_argument
@_out_option
@click.option(
    "--resume",
    type=FOLDER,
    help="Folder of a run that broke off: go on with it, at no further cost.",
)
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

    A run that breaks off goes on with --resume and its folder: it gives back the messages that it
    recorded, draws the others, and pays nothing more.

    Exit status 1 if anything was found: an unprotected release, a refuted claim, a cross-check that
    disagrees.
    """
    with steps() as start:
        # everything that may be a finding is decided by the run's result
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
    # the file that ships with the package, with fewer rounds or trials for a look
    configuration = demo_configuration(rounds=rounds, trials=trials)
    with steps() as start:
        return run_outcome(train(configuration, RunOptions(name="demo", out=out), start))
