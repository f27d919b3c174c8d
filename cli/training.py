"""`dpledger epsilon` and `dpledger noise`: epsilon of anybody's training run, and its noise.

Both ask for what people know of a run: records, batch, epochs or steps, how batches are drawn, and
the relation. `epsilon` asks for the noise multiplier and prints epsilon; `noise` asks for epsilon
and prints the least noise multiplier, to within 1e-6, whose events meet it. Both numbers are proved
where a rule exists, and a certificate can be written.

With --best-of, both speak of the best of a geometric number of such runs, of which nothing else is
published: a search over settings (Papernot, Steinke 2022). No certificate has a rule for it.

Exit status 0; 2 for what is missing or has no rule. Where sampling or relation is missing the
message lists every reading with its epsilon.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..accounting import training
from ..accounting.renyi.curves import Selection
from ..audits.outcome import Outcome
from ..runs.outcomes.plans import training_outcome
from .inputs import certificate_option, options, refuse, training_options
from .output import answers, write_certificate

_run_options = options(
    training_options,
    click.option("--delta", type=float, required=True, help="In (0, 1), below 1 / records."),
    certificate_option,
)
"""What both commands ask for: the run, its delta, and where a certificate goes."""


@click.command(short_help="Epsilon of a training run: records, batch, epochs, noise multiplier.")
@click.option("--noise-multiplier", type=float, required=True, help="noise_std / clip norm.")
@_run_options
@answers
def epsilon(certificate: Path | None, best_of: float | None, **stated: Any) -> Outcome:
    """Print epsilon of a run of clipped, noised steps, of any tool: DP-SGD and the like.

    Sampling and relation are never guessed: where one is missing, every reading is shown.

    \b
    dpledger epsilon --noise-multiplier 1.1 --records 60000 --batch 256 --epochs 60 \\
        --delta 1e-5 --sampling poisson --adjacency add-remove-one
    """
    select = selection(best_of, certificate)
    found = training.epsilon(proved=select is None, select=select, **stated)
    return _outcome(found, certificate)


@click.command(short_help="The least noise multiplier of a training run for a target epsilon.")
@click.option("--epsilon", type=float, required=True, help="The target, > 0.")
@_run_options
@answers
def noise(certificate: Path | None, best_of: float | None, **stated: Any) -> Outcome:
    """Print the least noise multiplier for a target epsilon, checked on the very events.

    \b
    dpledger noise --epsilon 2 --records 60000 --batch 256 --epochs 60 \\
        --delta 1e-5 --sampling poisson --adjacency add-remove-one
    """
    select = selection(best_of, certificate)
    found = training.noise_multiplier(proved=select is None, select=select, **stated)
    return _outcome(found, certificate)


def selection(best_of: float | None, certificate: Path | None = None) -> Selection | None:
    """Return the law of the number of runs, geometric, if the best of several is published."""
    refuse("--certificate without --best-of: no rule proves it", certificate and best_of)
    return None if best_of is None else Selection(best_of)


def _outcome(found: training.TrainingCost, certificate: Path | None) -> Outcome:
    """Return the cost as an outcome, after writing its certificate where asked."""
    if certificate is not None:
        write_certificate(certificate, found.proof, found.guarantee)
    return training_outcome(found, certificate)
