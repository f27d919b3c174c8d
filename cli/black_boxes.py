"""`dpledger audit blackbox`, `audit foreign`, `audit sensitivity`: programs that are only run.

All import a Python file and call a function of it: what it does is done with all that the caller
may do.

`blackbox` asks for a claim and for outputs on pairs of answers; it prints the pair that looked
worst, the p-value of a sequential test that may be stopped at any time, or with --bound a lower
bound on epsilon. Exit status 1 if the claim is refuted, else 0: not refuted is not proved.

`foreign` asks for a claim about a whole run of another library's code, which calls its mechanism
through a recorder; it prints how far releases, sensitivities, result, noise and total are as
stated. Exit status 1 if one is not.

`sensitivity` asks for a claimed l2 sensitivity; it prints the worst pair found. Exit status 1 if
the pair exceeds the claim, 3 otherwise: a search proves nothing.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.black_boxes import audit_black_box, pairs_of
from ..audits.claims.own_function import judged_function
from ..audits.falsifier import ReplacedRecord
from ..audits.foreign_code import audit_foreign
from ..audits.outcome import Outcome
from ..audits.outcomes.attacks import black_box_outcome, foreign_outcome
from ..audits.outcomes.claims import sensitivity_outcome
from ..audits.programs import load_program
from ..audits.scores import ClaimedPrivacy
from ..mechanisms.adjacency import Adjacency
from .inputs import FILE, adjacency_option, claim_options, confidence_option, refuse
from .output import answers, steps

__all__ = ["blackbox", "foreign", "sensitivity"]

_program = click.argument("program", metavar="FILE.py:NAME")
"""A file and a name in it."""


@click.command()
@_program
@click.option("--pairs", type=FILE, help=".npz of `dataset` and `neighbour`, a row a pair.")
@click.option("--queries", type=click.IntRange(1), help="So many queries of sensitivity 1.")
@claim_options("The claim: either of both.")
@click.option("--delta", type=float, default=0.0, help="0 is pure epsilon-DP.")
@click.option("--runs", type=click.IntRange(1), default=20_000)
@confidence_option()
@click.option("--seed", type=click.IntRange(0), required=True, help="Fix it before you look.")
@click.option("--bound", is_flag=True, help="Spend all runs on a lower bound on epsilon.")
@click.option("--kernel", is_flag=True, help="Learn while betting: fewer runs for few numbers.")
@answers
def blackbox(
    program: str,
    pairs: Path | None,
    queries: int | None,
    epsilon: float | None,
    mu: float | None,
    delta: float,
    runs: int,
    confidence: float,
    seed: int,
    bound: bool,
    kernel: bool,
) -> Outcome:
    """Bet against the claim of a program until it is refuted or its runs are spent.

    NAME(answers, trials, generator) returns `trials` outputs on the answers of one data set, shape
    (trials, m); the file is imported. Exit status 1 if the claim is refuted.
    """
    if bound:
        refuse("--bound without --kernel, which tests a claim", kernel or None)
    claimed = ClaimedPrivacy.of(epsilon=epsilon, mu=mu, delta=delta)
    # the pairs are read before somebody's code runs
    known, box = pairs_of(pairs, queries), load_program(program)
    with steps() as start:
        found = audit_black_box(
            box,
            known,
            claimed=claimed,
            runs=runs,
            confidence=confidence,
            seed=seed,
            bound=bound,
            kernel=kernel,
            progress=start("runs"),
        )
    return black_box_outcome(claimed, found)


@click.command()
@_program
@click.option("--claimed", type=float, required=True, help="The l2 sensitivity.")
@adjacency_option
@click.option("--records", type=click.IntRange(1), required=True)
@click.option("--features", type=click.IntRange(1), required=True)
@answers
def sensitivity(
    program: str, claimed: float, adjacency: Adjacency, records: int, features: int
) -> Outcome:
    """Search for neighbours that refute a claimed sensitivity of NAME(rows, labels, public).

    Rows have norm 1 at most; the file is imported. Exit status 1 if it is refuted, 3 if it is not,
    for a search proves nothing. A claim file says more: see `claims check`.
    """
    # rows of norm 1, labels of ±1: a claim file can say more
    domain = ReplacedRecord(records, features, adjacency)
    return sensitivity_outcome(judged_function(load_program(program), domain, claimed))


@click.command()
@_program
@claim_options("The claim of the whole run: either of both.")
@click.option("--delta", type=float, required=True, help="0 is pure epsilon-DP.")
@adjacency_option
@click.option("--records", type=click.IntRange(1), required=True)
@click.option("--features", type=click.IntRange(1), required=True)
@click.option("--row-bound", type=float, default=10.0, help="Longest row that may come in.")
@confidence_option("Of the noise's test; the others are exact.")
@click.option("--seed", type=click.IntRange(0), required=True, help="Fix it before you look.")
@answers
def foreign(
    program: str,
    epsilon: float | None,
    mu: float | None,
    delta: float,
    adjacency: Adjacency,
    records: int,
    features: int,
    row_bound: float,
    confidence: float,
    seed: int,
) -> Outcome:
    """Record what NAME(rows, labels, recorder) gives its mechanism, and replay it on neighbours.

    The recorder stands around the mechanism of another library; the file is imported. Exit status 1
    if releases, their sensitivity, the result, the noise or the total are not as stated.
    """
    claimed = ClaimedPrivacy.of(epsilon=epsilon, mu=mu, delta=delta)
    domain = ReplacedRecord(records, features, adjacency, row_bound=row_bound)
    loaded = load_program(program)
    return foreign_outcome(
        claimed, audit_foreign(loaded, domain, claimed=claimed, level=1 - confidence, seed=seed)
    )
