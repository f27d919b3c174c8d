"""`dpledger claims check`: the court for a claim of the user's own, or anyone's finished run.

Three things can be asked about. A claim file (TOML) states releases, a sensitivity of one's own
function, or a run's configuration; --ledger names a finished run and --promise what was promised of
it; --kind reads another tool's file of releases. What is not stated is read in every way that it
could mean.

Prints the verdict with its reason, the cost of each reading, what is missing, what was checked, and
a proof where one is found. Code that a claim names is run with --run-code alone, with all that the
caller may do.

Exit status 0 holds, 1 does not hold or too little is stated, 2 no claim, 3 undecided.

A claim in a file:

    title = "our model"
    adjacency = "add-remove-one"
    [promise]
    epsilon = 3.0
    delta = 1e-5
    [[releases]]
    mechanism = "gaussian"
    clip_norm = 1.0
    noise_std = 1.1
    rounds = 14063
    sampling = "poisson"
    batch = 256
    records = 60000
"""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.claims.claim_file import promise_from_text
from ..audits.outcome import Outcome
from ..audits.outcomes.claims import promise_outcome
from ..interop import KINDS
from ..mechanisms.adjacency import Adjacency
from ..runs.claims import judge_claim_file, judge_finished_run, judge_foreign_file
from .inputs import FILE, RELATION, refuse
from .output import answers, steps


@click.command()
@click.argument("claim_path", metavar="[CLAIM]", required=False, type=FILE)
@click.option("--run-code", is_flag=True, help="Run the Python file that CLAIM names, unprotected.")
@click.option("--ledger", type=FILE, help="Check a finished run instead of CLAIM.")
@click.option("--run", help="With --ledger: of this run only.")
@click.option("--promise", help='With --ledger: such as "epsilon=1, delta=1e-5", or rho, or mu.')
@click.option(
    "--config",
    "configuration",
    type=FILE,
    help="With --ledger: the run's configuration, whose data are at hand: attack it.",
)
@click.option("--kind", type=click.Choice(KINDS), help="CLAIM is another tool's file; --promise.")
@click.option("--adjacency", type=RELATION, help="With --kind: its numbers are read under this.")
@answers
def check(
    claim_path: Path | None,
    run_code: bool,
    ledger: Path | None,
    run: str | None,
    promise: str | None,
    configuration: Path | None,
    kind: str | None,
    adjacency: Adjacency | None,
) -> Outcome:
    """Judge the claim in the TOML file CLAIM, or a finished run: --ledger FILE --promise TEXT.

    With --kind, CLAIM is a file that `dpledger import` reads, and the promise is of its releases.

    Exit status 0 if the promise holds, 1 if it does not or too little is stated, 2 for a file that
    is no claim, 3 where nothing is missing and it cannot be decided: no rule applies, or it takes
    too much work. What is not stated is named.
    """
    # one of three forms, each with options of its own
    if (claim_path is None) == (ledger is None):
        raise click.UsageError("Expected either CLAIM or --ledger.")
    if claim_path is not None and kind is not None:
        refuse("--run and --config with --ledger only", run, configuration)
        if promise is None or adjacency is None:
            raise click.UsageError("Expected --promise and --adjacency with --kind.")
        # another tool's file: its releases as it lists them, under the relation that is given
        return promise_outcome(
            judge_foreign_file(kind, claim_path, promise_from_text(promise), adjacency=adjacency)
        )
    if claim_path is not None:
        # a claim file states its own promise
        rule = "--promise, --run and --config with --ledger only"
        refuse(rule, promise, run, configuration)
        return promise_outcome(judge_claim_file(claim_path, run_code=run_code))
    if promise is None or run_code:
        raise click.UsageError("Expected --promise, and no --run-code, with --ledger.")
    assert ledger is not None
    # read before the ledger is opened, so that a wrong text costs nothing
    promised = promise_from_text(promise)
    with steps() as start:
        return promise_outcome(
            judge_finished_run(ledger, promised, run=run, configuration=configuration, start=start)
        )
