"""`dpledger stats`: counts, sums, means, histograms and quantiles of a file, under one epsilon.

Asks for a TOML file of statistics; bounds, categories and numbers of records are public facts of
its schema. All numbers share one epsilon by their weights: the noise is calibrated, proved and paid
for as a whole before a record is read. --plan prints the price alone.

Prints each number with the half-width of a 95 % interval of its noise, and the epsilon of all with
its grade. Exit status 0; 2 for a column that there is not, records that do not fit the schema, or a
budget that is too small.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.outcome import Outcome
from ..runs.outcomes.statistics import statistics_outcome, statistics_plan_outcome
from ..runs.statistics import plan_statistics, read_statistics, release_statistics
from .inputs import FILE as EXISTING
from .inputs import NEW_FILE, NEW_FOLDER
from .output import answers


@click.command(short_help="Counts, sums, means, histograms, quantiles of a file, with noise.")
@click.argument("asked", metavar="STATISTICS", type=EXISTING)
@click.option("--out", type=NEW_FOLDER, help="Folder for the results; a new one without it.")
@click.option("--ledger", type=NEW_FILE, help="Pay from this ledger, and keep its budget.")
@click.option("--plan", "plan_only", is_flag=True, help="Print the price; read no record.")
@answers
def stats(asked: Path, out: Path | None, ledger: Path | None, plan_only: bool) -> Outcome:
    """Release the statistics that the TOML file STATISTICS asks for, all under one epsilon.

    \b
    [data]
    files = ["people.csv"]
    schema = "people.schema.toml"
    records = 3000
    [privacy]
    adjacency = "replace-one"
    epsilon = 1.0
    [[statistics]]
    kind = "mean"               # or count, sum, histogram, quantile, second-moments
    column = "age"
    """
    # no record is read for a price
    if plan_only:
        made = read_statistics(asked)
        return statistics_plan_outcome(asked.name, made, plan_statistics(made))
    return statistics_outcome(release_statistics(asked, out=out, ledger=ledger))
