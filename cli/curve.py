"""`dpledger curve`: the whole privacy curve of a plan."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from ..accounting.guarantees import epsilons_at
from ..accounting.numbers.grade import Grade
from ..runs import plan, read_configuration
from .inputs import configuration_argument
from .output import Outcome, TextColumns, answers, grade_rows, guarantee_data, shown, shown_up


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
    found, promised = epsilons_at(made.events, deltas=deltas, grade=Grade(grade)), made.guarantee
    delta, epsilon = found.delta.tolist(), found.epsilon.tolist()
    texts = [(shown_up(d, digits=3), shown_up(e)) for d, e in zip(delta, epsilon, strict=True)]
    return Outcome(
        title=f"Privacy curve of {configuration_path.name} ({found.grade.value})",
        data={
            "grade": found.grade,
            "delta": delta,
            "epsilon": epsilon,
            "promised": guarantee_data(promised),
        },
        rows=(
            ("epsilon", f"{shown(promised.epsilon)} at delta {shown_up(float(promised.delta))}"),
            *grade_rows(promised),
        ),
        tables=(TextColumns(("delta", "epsilon"), texts),),
    )
