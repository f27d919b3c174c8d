"""`dpledger curve`: the whole privacy curve of a plan."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.table import Table

from ..accounting.guarantees import epsilons_at
from ..accounting.numbers.grade import Grade
from ..runs.configuration import read_configuration
from ..runs.planning import plan as make_plan
from .inputs import configuration_argument
from .output import Outcome, deliver, json_option, number, shown_up

__all__ = ["curve"]


@click.command()
@configuration_argument
@click.option("--from", "smallest", type=float, default=1e-12, help="Smallest delta, >= 1e-300.")
@click.option("--to", "largest", type=float, default=1e-1, help="Largest delta, < 1.")
@click.option("--points", type=click.IntRange(2, 10_000), default=12, help="Number of deltas.")
@click.option(
    "--grade",
    type=click.Choice([Grade.CERTIFIED.value, Grade.FAST.value]),
    default=Grade.CERTIFIED.value,
    help="Ball arithmetic, or doubles with an outward allowance.",
)
@json_option
def curve(
    configuration_path: Path,
    smallest: float,
    largest: float,
    points: int,
    grade: str,
    as_json: bool,
) -> None:
    """Print epsilon (rounded up) over delta for the run that CONFIG describes."""
    if not 0 < smallest < largest < 1:
        raise click.UsageError(f"Expected 0 < --from={smallest} < --to={largest} < 1.")
    made = make_plan(read_configuration(configuration_path))
    found = epsilons_at(
        made.events, deltas=np.geomspace(smallest, largest, points), grade=Grade(grade)
    )
    table = Table("delta", "epsilon", box=None)
    for delta, epsilon in zip(found.delta, found.epsilon, strict=True):
        table.add_row(shown_up(delta, digits=3), shown_up(epsilon))
    deliver(
        Outcome(
            title=f"Privacy curve of {configuration_path.name} ({found.grade.value})",
            data={
                "grade": found.grade.value,
                "delta": found.delta.tolist(),
                "epsilon": [number(epsilon) for epsilon in found.epsilon.tolist()],
            },
            tables=(table,),
        ),
        as_json=as_json,
    )
