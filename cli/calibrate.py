"""`dpledger calibrate`: the noise that a target needs, or the rounds that noise allows.

Asks for a target and either the number of rounds or the noise; the other one is found.
Sensitivities do not enter: noise is in their units, so that the answer is for any Gaussian release
of one fixed sensitivity.

Prints noise multiplier and rounds with the epsilon that is proved for them, at most the target.
Exit status 0; 2 for a target that cannot be met.
"""

from __future__ import annotations

import click

from ..accounting.proof.planning import calibrate_gaussian_rounds
from ..audits.outcome import Outcome
from ..mechanisms import Adjacency
from ..runs.outcomes.plans import rounds_outcome
from .inputs import RELATION
from .output import answers


@click.command()
@click.option("--epsilon", type=float, required=True, help="The target, > 0.")
@click.option("--delta", type=float, required=True, help="In (0, 1).")
@click.option("--rounds", type=int, help="Number of Gaussian steps: gives the noise multiplier.")
@click.option("--noise-multiplier", type=float, help="Gives the largest number of rounds.")
@click.option(
    "--adjacency",
    type=RELATION,
    required=True,
    help="The relation that the sensitivity, and so the noise multiplier, speaks of.",
)
@answers
def calibrate(
    epsilon: float,
    delta: float,
    rounds: int | None,
    noise_multiplier: float | None,
    adjacency: Adjacency,
) -> Outcome:
    """Find the least noise for a number of Gaussian rounds, or the most rounds for a noise.

    The answer is checked on the planned events: the proved epsilon does not exceed the target.
    """
    if (rounds is None) == (noise_multiplier is None):
        raise click.UsageError("Expected either --rounds or --noise-multiplier.")
    # raises where no noise, or no round, meets the target
    found = calibrate_gaussian_rounds(
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        rounds=rounds,
        noise_multiplier=noise_multiplier,
    )
    return rounds_outcome(found, epsilon=epsilon, delta=delta, adjacency=adjacency)
