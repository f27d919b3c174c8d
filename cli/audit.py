"""`dpledger audit`: audits of programs and models that are not ours.

    one-run       a lower bound on epsilon from one training run with canaries
    blackbox      bets against a program's claim (see black_boxes)
    sensitivity   a search for neighbours that refute a function's sensitivity (likewise)

`one-run` asks for a claim under add-remove-one and either for scores of canaries with whether each
was in, or for their number alone: then it plans how many to guess. Numbers of guesses come from the
claim and never from the scores, or the bound would not hold (Steinke, Nasr, Jagielski 2023).

Prints the plan, the bounds with their methods and the verdict. Exit status 1 if the claim is
refuted, else 0; 2 for scores that do not belong together.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.one_run import Canaries
from ..audits.one_run_plan import audit_one_run, plan_guesses
from ..audits.outcome import Outcome
from ..audits.outcomes.attacks import one_run_outcome
from ..audits.scores import ClaimedPrivacy
from ..data.files import read_numbers
from . import black_boxes
from .inputs import FILE, claim_options, confidence_option
from .output import answers


@click.group()
def audit() -> None:
    """Audit what is not a run of ours."""


audit.add_command(black_boxes.blackbox)
audit.add_command(black_boxes.foreign)
audit.add_command(black_boxes.sensitivity)


@audit.command("one-run")
@click.option("--scores", type=FILE, help=".npy of one number a canary, larger if it looks in.")
@click.option("--included", type=FILE, help=".npy of whether each was in: 0/1 or booleans.")
@click.option("--canaries", type=click.IntRange(2), help="Only plan, for so many canaries.")
@claim_options("The claim, under add-remove-one.")
@click.option("--delta", type=float, required=True, help="Of the claim and of the bounds.")
@confidence_option()
@click.option(
    "--guesses",
    nargs=2,
    type=click.IntRange(0),
    metavar="IN OUT",
    help="How many are guessed in and out, if you fixed them before the run; planned otherwise.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Of the fair choice among equal scores, drawn before you looked; without it none of "
    "those that the numbers of guesses would divide is guessed.",
)
@answers
def one_run(
    scores: Path | None,
    included: Path | None,
    canaries: int | None,
    epsilon: float | None,
    mu: float | None,
    delta: float,
    confidence: float,
    guesses: tuple[int, int] | None,
    seed: int | None,
) -> Outcome:
    """Bound epsilon from below by one training run with canaries, each in by a fair coin.

    How many canaries are guessed is planned from their number and the claim, never from the
    scores. Plan before you train: --canaries M. Exit status 1 if the claim is refuted.

    \b
    dpledger audit one-run --canaries 1000 --epsilon 1 --delta 1e-5
    dpledger audit one-run --scores s.npy --included c.npy --epsilon 1 --delta 1e-5
    """
    # raises unless exactly one of epsilon and mu is given
    claimed = ClaimedPrivacy.of(epsilon=epsilon, mu=mu, delta=delta)
    if (scores is None) != (included is None) or (scores is None) == (canaries is None):
        raise click.UsageError("Expected --scores with --included, or --canaries alone.")
    # the plan is made before a score is looked at, from their number alone
    found = None
    if scores is not None and included is not None:
        found = Canaries.of(read_numbers(scores), read_numbers(included, kinds="fiub"), seed)
    count = canaries if found is None else found.scores.size
    assert count is not None
    plan = plan_guesses(
        canaries=count, claimed=claimed.claim, delta=delta, confidence=confidence, fixed=guesses
    )
    result = None
    # without scores the plan alone is the answer
    if found is not None:
        result = audit_one_run(
            found, claimed=claimed.claim, delta=delta, confidence=confidence, plan=plan
        )
    return one_run_outcome(claimed, plan, result, canaries=count, planned=guesses is None)
