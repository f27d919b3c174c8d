"""`dpledger calibrate`: the noise that a target needs, or the rounds that noise allows."""

from __future__ import annotations

import click

from ..accounting.planning import calibrate_noise_multiplier, rounds_within
from ..mechanisms import Adjacency
from .inputs import gaussian_rounds
from .output import Outcome, deliver, guarantee_data, json_option, shown

__all__ = ["calibrate"]


@click.command()
@click.option("--epsilon", type=float, required=True, help="The target, > 0.")
@click.option("--delta", type=float, required=True, help="In (0, 1).")
@click.option("--rounds", type=int, help="Number of Gaussian steps: gives the noise multiplier.")
@click.option("--noise-multiplier", type=float, help="Gives the largest number of rounds.")
@click.option(
    "--adjacency",
    type=click.Choice([a.value for a in Adjacency]),
    required=True,
    help="The relation that the sensitivity, and so the noise multiplier, speaks of.",
)
@json_option
def calibrate(
    epsilon: float,
    delta: float,
    rounds: int | None,
    noise_multiplier: float | None,
    adjacency: str,
    as_json: bool,
) -> None:
    """Find the least noise for a number of Gaussian rounds, or the most rounds for a noise.

    The answer is checked on the planned events: the certified epsilon does not exceed the target.
    """
    if (rounds is None) == (noise_multiplier is None):
        raise click.UsageError("Expected either --rounds or --noise-multiplier.")
    relation = Adjacency(adjacency)
    if rounds is not None:
        number = rounds
        noise = calibrate_noise_multiplier(
            lambda z: gaussian_rounds(relation, z, number), target_epsilon=epsilon, delta=delta
        )
        multiplier, found = noise.noise_multiplier, noise.guarantee
    else:
        assert noise_multiplier is not None
        multiplier = noise_multiplier
        most = rounds_within(
            lambda t: gaussian_rounds(relation, multiplier, t), target_epsilon=epsilon, delta=delta
        )
        number, found = most.rounds, most.guarantee
    deliver(
        Outcome(
            title=f"Gaussian steps for epsilon {epsilon:g}, delta {delta:g}, {adjacency}",
            data={
                "noise_multiplier": multiplier,
                "rounds": number,
                "guarantee": guarantee_data(found),
            },
            rows=(
                ("noise multiplier", f"{multiplier:.17g} (noise_std / sensitivity)"),
                ("rounds", str(number)),
                ("epsilon", f"{shown(found.epsilon)} ({found.grade.value})"),
            ),
        ),
        as_json=as_json,
    )
