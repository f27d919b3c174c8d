"""`dpledger experiment`: run the papers' experiments, and say what their epsilons are worth.

Asks for an experiment's name; `list` prints all of them with their place in the paper. The
experiments train on public data sets, so that no ledger is kept: what a cell costs is its plan's
epsilon.

Prints tables: each line at each epsilon, what the paper promises, what is enclosed, accuracy and
loss, and the published noise beside the repaired one. Exit status 0; 2 for a name that there is
not, or without the extra [experiments].

Each experiment's folder gets a figure for each metric (SVG), runs.csv with every number,
summary.csv with means, times.csv with the seconds of this machine, and manifest.json, by which the
same is made again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..audits.outcome import Outcome
from ..papers.experiments import PAPERS, ExperimentPlan, chosen, run_experiment
from ..papers.harness.outcome import experiments_outcome, listed_outcome
from .inputs import NEW_FOLDER
from .output import answers, steps


@click.command()
@click.argument("name")
@click.option(
    "--out",
    type=NEW_FOLDER,
    default=Path("dpledger-runs/experiments"),
    help="Folder for figures, tables and finished runs.",
)
@click.option("--runs", type=click.IntRange(1), help="Runs of each cell; by default the paper's.")
@click.option("--seed", type=click.IntRange(0), default=0)
@click.option("--quick", is_flag=True, help="Fewer cells and two runs, for a look.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Processes.")
@answers
def experiment(name: str, out: Path, **plan: Any) -> Outcome:
    """Run experiment NAME: `list` shows all, `star/delta` is one, `star` means all of a paper's.

    Each leaves SVG figures, tables (CSV) and a manifest in its folder. What is interrupted goes on
    where it stopped: finished runs are kept, and used again.
    """
    # a paper could not have this name: papers are called by author and year
    if name == "list":
        return listed_outcome(PAPERS)
    with steps() as start:
        # one bar an experiment; finished runs are found on disk and count as done
        finished = [
            run_experiment(
                paper, one, ExperimentPlan(**plan), out, progress=start(f"{paper.name}/{one.name}")
            )
            for paper, one in chosen(name, PAPERS)
        ]
    return experiments_outcome(name, finished, out)
