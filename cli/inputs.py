"""Arguments that several commands share, and the Gaussian plans that need no configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
from ..mechanisms.curators import noise_std_for

__all__ = ["adjacency_option", "configuration_argument", "delta_option", "gaussian_rounds"]

configuration_argument = click.argument(
    "configuration_path",
    metavar="CONFIG",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)

adjacency_option = click.option(
    "--adjacency",
    type=click.Choice([a.value for a in Adjacency]),
    help="The neighbouring relation that the sensitivity speaks of.",
)

delta_option = click.option("--delta", type=float, help="In (0, 1).")

_REASON = "noise multipliers are noise_std over the sensitivity under the stated relation"


def gaussian_rounds(adjacency: Adjacency, noise_multiplier: float, rounds: int) -> Sequence[Event]:
    """Return `rounds` Gaussian steps of one noise multiplier."""
    unit = declared(1, _REASON, adjacency=adjacency)
    step = GaussianStep(unit, noise_std_for(unit, noise_multiplier))
    return [Event(step, Context((), k, "release", Audience.PUBLIC)) for k in range(1, rounds + 1)]
