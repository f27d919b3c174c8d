"""`dpledger membership`: can an attack tell who was in the data, and what was promised?

Asks for a run's configuration, or with --model for a model of the user's own, its records and its
promise. It trains many models, half of them with one target record, and tells them apart by
published scores (loss threshold, LiRA, RMIA, and for runs of ours the Fisher score).

Prints a page in plain words: what is promised, how far the best score got at low false-positive
rates, the lower bound on epsilon, and what none of it means. A table has each score's bound beside
its null control.

Every score is learned on shadow models that no bound counts, and the target is chosen before a
model is judged. Bounds of all scores hold together with the stated confidence.

Exit status 1 if an attack shows more than the promise allows or a null control fails, else 0: an
attack that fails proves nothing. 2 for records of other shapes or a model that raises.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..audits.outcome import Outcome
from ..audits.outcomes.attacks import membership_outcome
from ..audits.programs import load_program
from ..audits.scores import ClaimedPrivacy
from ..mechanisms import Adjacency
from ..runs import read_configuration
from ..runs.membership import (
    MembershipOptions,
    MembershipRecords,
    TargetName,
    membership_of_model,
    membership_of_run,
)
from .inputs import FILE, Among, claim_options, confidence_option, refuse
from .output import answers


@click.command(short_help="Membership inference on a run's last model or a model of yours.")
@click.argument("configuration_path", metavar="[CONFIG]", required=False, type=FILE)
@click.option(
    "--target",
    type=Among(TargetName),
    default=TargetName.CANARY.value,
    help="The record: any; the one that a model is most wrong about; one made to be remembered; "
    "of dp-sgd and dp-admm, one of maximal gradients from the worst public start, or one climbed "
    "by gradients through messages; or one climbed by gradients of the score (adversarial).",
)
@click.option(
    "--trials",
    type=click.IntRange(2),
    default=1000,
    help="Models to judge, with the record and as many without.",
)
@click.option(
    "--shadows",
    type=click.IntRange(2),
    default=200,
    help="Further models, with it and without, that attacks learn from.",
)
@confidence_option("Of all bounds together.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    help="Of all that is random; choose it before you look.",
)
@click.option(
    "--model", metavar="FILE.py:NAME", help="A model of your own instead of a run of ours."
)
@click.option(
    "--records",
    type=FILE,
    help="With --model: .npz with features, labels, population_features, population_labels; the "
    "population's records are not trained on.",
)
@click.option(
    "--adjacency",
    type=click.Choice([Adjacency.ADD_REMOVE_ONE.value, Adjacency.REPLACE_ONE.value]),
    help="With --model, which needs it: the relation that the promise speaks of. Most DP-SGD "
    "libraries promise add-remove-one: trained with the record or with one record less. "
    "replace-one: with the record or another in its place, the worst of three public choices.",
)
@claim_options("With --model: the promise.")
@click.option(
    "--delta",
    type=float,
    help="With --model: of the promise and of the bounds; 0 for pure differential privacy.",
)
@click.option("--jobs", type=int, default=1, help="With --model: processes.")
@answers
def membership(
    configuration_path: Path | None,
    model: str | None,
    records: Path | None,
    adjacency: str | None,
    epsilon: float | None,
    mu: float | None,
    delta: float | None,
    **design: Any,
) -> Outcome:
    """Membership inference: was this record in the training data?

    Trains many models with one record and without it, tries to tell them apart by the last model
    alone, and says in plain words how far that got and what the promise allows. The attack on all
    messages of a run, which is stronger, is `dpledger attack CONFIG`.

    CONFIG describes a run of ours. With --model, NAME in FILE.py is trained instead (that runs the
    code in FILE.py): a scikit-learn classifier, or a function of (features, labels, seed) that
    returns a fitted model with predict_proba and classes_. Options then state the promise, with its
    relation: under another one the same number is another promise.

    Exit status 1 if an attack shows more than the promise allows or a null control fails, 2 if the
    model raises.

    \b
    dpledger membership run.toml --target worst
    dpledger membership --model mine.py:model --records mine.npz --adjacency add-remove-one \\
        --epsilon 1 --delta 1e-5
    """
    # a run of ours or a model of one's own: each has options that mean nothing to the other
    if (configuration_path is None) == (model is None):
        raise click.UsageError("Expected either CONFIG or --model.")
    # target, sizes, confidence, seed and processes: the design of the experiment, by the options'
    # own names
    options = MembershipOptions(**design)
    if configuration_path is not None:
        rule = "--records, --adjacency, --epsilon, --mu and --delta only with --model"
        refuse(rule, records, adjacency, epsilon, mu, delta)
        return membership_outcome(
            membership_of_run(read_configuration(configuration_path), options)
        )
    assert model is not None
    if records is None or delta is None or (epsilon is None) == (mu is None):
        raise click.UsageError(
            "Expected --records, --delta and either --epsilon or --mu with --model."
        )
    # a number without its relation is no promise: most tools mean add-remove-one, and say so
    # nowhere
    if adjacency is None:
        raise click.UsageError(
            "Expected --adjacency add-remove-one or replace-one with --model: the relation "
            "that the promise speaks of."
        )
    # loading the model runs its file
    found = membership_of_model(
        load_program(model),
        MembershipRecords.read(records),
        options,
        promise=ClaimedPrivacy.of(epsilon=epsilon, mu=mu, delta=delta).claim,
        adjacency=Adjacency(adjacency),
        delta=delta,
    )
    return membership_outcome(found)
