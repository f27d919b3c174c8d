"""`dpledger epsilon` and `dpledger noise`: epsilon of anybody's training run, and its noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..accounting import training
from .inputs import NEW_FILE
from .output import Outcome, answers, grade_rows, guarantee_data, shown, write_certificate

_OPTIONS = (
    click.option("--sampling", help="How batches are drawn: none, poisson, fixed-batch, shuffled."),
    click.option("--adjacency", help="add-remove-one, zero-out-one or replace-one."),
    click.option("--records", type=int, help="Number of records, public."),
    click.option("--batch", type=int, help="(Expected) records of a batch."),
    click.option("--rate", type=float, help="In place of --batch / --records."),
    click.option("--steps", type=int, help="Optimiser steps, exact."),
    click.option("--epochs", type=float, help="In place of --steps; rounded up to whole steps."),
    click.option("--accumulation", type=int, default=1, help="Parts a batch is computed in."),
    click.option("--delta", type=float, required=True, help="In (0, 1), below 1 / records."),
    click.option(
        "--certificate",
        type=NEW_FILE,
        help="Write a certificate to this file: `dpledger verify` checks it.",
    ),
)


def _answers(command: Callable[..., Outcome]) -> Callable[..., None]:
    answer = answers(command)
    for option in reversed(_OPTIONS):
        answer = option(answer)
    return answer


@click.command(short_help="Epsilon of a training run: records, batch, epochs, noise multiplier.")
@click.option("--noise-multiplier", type=float, required=True, help="noise_std / clip norm.")
@_answers
def epsilon(certificate: Path | None, **stated: Any) -> Outcome:
    """Print epsilon of a run of clipped, noised steps, of any tool: DP-SGD and the like.

    Sampling and relation are never guessed: where one is missing, every reading is shown.

    \b
    dpledger epsilon --noise-multiplier 1.1 --records 60000 --batch 256 --epochs 60 \\
        --delta 1e-5 --sampling poisson --adjacency add-remove-one
    """
    return _outcome(training.epsilon(proved=True, **stated), certificate)


@click.command(short_help="The least noise multiplier of a training run for a target epsilon.")
@click.option("--epsilon", type=float, required=True, help="The target, > 0.")
@_answers
def noise(certificate: Path | None, **stated: Any) -> Outcome:
    """Print the least noise multiplier for a target epsilon, checked on the very events.

    \b
    dpledger noise --epsilon 2 --records 60000 --batch 256 --epochs 60 \\
        --delta 1e-5 --sampling poisson --adjacency add-remove-one
    """
    return _outcome(training.noise_multiplier(proved=True, **stated), certificate)


def _outcome(found: training.TrainingCost, certificate: Path | None) -> Outcome:
    run, guarantee = found.run, found.guarantee
    if certificate is not None:
        write_certificate(certificate, found.proof, guarantee)
    return Outcome(
        title="Training run",
        data={
            "guarantee": guarantee_data(guarantee),
            "noise_multiplier": found.noise_multiplier,
            "sampling": run.sampling,
            "rate": run.rate,
            "steps": run.steps,
            "releases": run.releases,
            "meaning": found.meaning,
            "warnings": found.warnings,
            "certificate": None if certificate is None else str(certificate),
        },
        rows=(
            ("epsilon", f"{shown(guarantee.epsilon)} at delta {found.delta:g}"),
            *grade_rows(guarantee),
            ("noise multiplier", f"{found.noise_multiplier:.10g} (noise_std / clip norm)"),
            ("relation", run.adjacency.value),
            (
                "sampling",
                run.sampling.value if run.rate is None else f"poisson, rate {run.rate:.10g}",
            ),
            ("releases", f"{run.releases} that a given record may be in"),
            ("meaning", found.meaning),
            *(("WARNING", text) for text in found.warnings),
            *(("assumption", text) for text in guarantee.assumptions),
        ),
    )
