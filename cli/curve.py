"""`dpledger curve`: the whole privacy curve of a plan."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from ..accounting.guarantees import epsilons_at
from ..accounting.numbers.grade import Grade
from ..audits.outcome import Outcome
from ..runs import plan, read_configuration
from ..runs.outcomes.plans import curve_outcome
from .inputs import configuration_argument
from .output import answers


@click.command()
@configuration_argument
@click.option("--from", "smallest", type=float, default=1e-12, help="Smallest delta, >= 1e-300.")
@click.option("--to", "largest", type=float, default=1e-1, help="Largest delta, < 1.")
@click.option("--points", type=click.IntRange(2, 10_000), default=12, help="Number of deltas.")
@click.option(
    "--grade",
    type=click.Choice([Grade.ENCLOSED.value, Grade.FAST.value]),
    default=Grade.ENCLOSED.value,
    help="Ball arithmetic, or doubles with an outward allowance.",
)
@answers
def curve(
    configuration_path: Path, smallest: float, largest: float, points: int, grade: str
) -> Outcome:
    """Print epsilon (rounded up) over delta for the run that CONFIG describes.

    At the delta that the run promises, the proved one.
    """
    if not 0 < smallest < largest < 1:
        raise click.UsageError(f"Expected 0 < --from={smallest} < --to={largest} < 1.")
    deltas = np.geomspace(smallest, largest, points)
    made = plan(read_configuration(configuration_path))
    found = epsilons_at(made.events, deltas=deltas, grade=Grade(grade))
    return curve_outcome(configuration_path.name, found, made.guarantee)
