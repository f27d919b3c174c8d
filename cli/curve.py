"""`dpledger curve`: the whole privacy curve, of a plan or of a training run.

Asks for a run's configuration or, with --noise-multiplier, for a training run by its parameters, or
the best of several; no record is read. --from, --to and --points choose deltas, evenly spread in
the logarithm. Prints epsilon, rounded up, for every delta, with the grade: *enclosed* in ball
arithmetic, or *fast* in doubles with an outward allowance. The promised delta's own epsilon is the
proved one. --plot draws the curve as SVG.

Exit status 0; 2 for deltas out of range or a run that has no price.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..accounting import training
from ..accounting.guarantees import Guarantee, epsilons_at
from ..accounting.numbers.grade import Grade
from ..audits.outcome import Outcome
from ..runs import plan, read_configuration
from ..runs.outcomes.plans import curve_outcome, draw_curve
from .inputs import NEW_FILE, Redirected, configuration_argument, options, training_options
from .output import answers
from .training import selection

_LEAST_DELTA = 1e-300
"""The smallest delta that the engines take: below it doubles lose their digits."""

_curve_options = options(
    click.option(
        "--from", "smallest", type=float, default=1e-12, help="Smallest delta, >= 1e-300."
    ),
    click.option("--to", "largest", type=float, default=1e-1, help="Largest delta, < 1."),
    click.option("--points", type=click.IntRange(2, 10_000), default=12, help="Number of deltas."),
    click.option(
        "--grade",
        type=click.Choice([Grade.ENCLOSED.value, Grade.FAST.value]),
        default=Grade.ENCLOSED.value,
        help="Ball arithmetic, or doubles with an outward allowance.",
    ),
    click.option("--plot", type=NEW_FILE, help="Draw it into this file, as SVG."),
)
"""Which deltas, how exact, and where to draw."""


@click.command("curve")
@click.option("--noise-multiplier", type=float, required=True, help="noise_std / clip norm.")
@training_options
@click.option("--delta", type=float, default=1e-5, help="The delta that is promised.")
@_curve_options
@answers
def of_training(noise_multiplier: float, delta: float, **said: Any) -> Outcome:
    """Print epsilon (rounded up) over delta of a training run that is stated by its parameters."""
    form = {name: said.pop(name) for name in ("smallest", "largest", "points", "grade", "plot")}
    said["select"] = selection(said.pop("best_of"))
    run: Any = {"noise_multiplier": noise_multiplier, **said}
    promised = training.epsilon(delta=delta, proved=said["select"] is None, **run).guarantee
    name = "the best of several runs" if said["select"] else "the training run"
    return _outcome(name, partial(training.curve, **run), promised, **form)


@click.command(cls=Redirected.to(of_training, "--noise-multiplier"))
@configuration_argument
@_curve_options
@answers
def curve(configuration_path: Path, **form: Any) -> Outcome:
    """Print epsilon (rounded up) over delta for the run that CONFIG describes, the promised proved.

    Without CONFIG, with --noise-multiplier and the other options of `dpledger epsilon`, the same
    for a training run of any tool.
    """
    made = plan(read_configuration(configuration_path))
    curve_of = partial(epsilons_at, made.events, group=made.guarantee.group)
    return _outcome(configuration_path.name, curve_of, made.guarantee, **form)


def _outcome(
    name: str,
    curve_of: Callable[..., Any],
    promised: Guarantee,
    *,
    smallest: float,
    largest: float,
    points: int,
    grade: str,
    plot: Path | None,
) -> Outcome:
    """Return a curve, of deltas and a grade, as an outcome, after drawing it where asked.

    Raises click's mistake of usage for deltas that are not 1e-300 <= from < to < 1.
    """
    if not _LEAST_DELTA <= smallest < largest < 1:
        raise click.UsageError(
            f"Expected {_LEAST_DELTA} <= --from={smallest} < --to={largest} < 1."
        )
    deltas = np.geomspace(smallest, largest, points)
    found = curve_of(deltas=deltas, grade=Grade(grade))
    if plot is not None:
        draw_curve(plot, found, promised)
    return curve_outcome(name, found, promised, plot)
