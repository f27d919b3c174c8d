"""`dpledger attack`: is the bound true in practice, and how tight is it?

Three things can be attacked: the plan of a run's configuration, by replay of whole transcripts;
scores that the user's own attack gave (--scores); a model of the user's own (--model, which hands
over to `membership`).

Prints the neighbours, the claim with its grade, what so many trials could prove at most, lower
bounds on epsilon with the null control beside them, and tests of the claim. A bound of 0 is no
evidence of privacy.

Tests share one error probability, so that a true claim is refuted with probability at most 1 -
confidence. Scores are kept with --store under a hash of all that they depend on, so that more
trials later cost only the new ones.

Exit status 1 if a test refutes the claim or the null control fails, else 0.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.bounds import Scores
from ..audits.outcome import Outcome
from ..audits.outcomes.attacks import attack_outcome, scores_outcome
from ..audits.scores import ClaimedPrivacy, judge_scores
from ..audits.trials import BackendName, backend_of
from ..data.files import read_numbers
from ..runs import read_configuration, run_attack
from .inputs import (
    FILE,
    NEW_FILE,
    Among,
    Redirected,
    claim_options,
    confidence_option,
    refuse,
)
from .membership import membership
from .output import answers, steps


@click.command(
    cls=Redirected.to(membership, "--model"),
    short_help="Bound epsilon from below: replay a run, or judge your scores.",
)
@click.argument("configuration_path", metavar="[CONFIG]", required=False, type=FILE)
@click.option("--trials", type=click.IntRange(10), help="Overrides attack.trials.")
@click.option("--null-trials", type=click.IntRange(10), help="Of the null control; as many.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Processes to run trials in.")
@click.option(
    "--backend",
    type=Among(BackendName),
    help="Where trials run; the numbers are the same. By default loky for several jobs.",
)
@click.option("--address", help="With --backend dask or ray: of the cluster.")
@click.option(
    "--store",
    type=NEW_FILE,
    help="A file that keeps scores: an attack that was stopped goes on where it stopped.",
)
@click.option(
    "--scores",
    "score_paths",
    nargs=2,
    metavar="IN OUT",
    type=FILE,
    help="Judge scores of your own (.npy, one number a run, in their order), not a run of ours.",
)
@click.option(
    "--model",
    metavar="FILE.py:NAME",
    expose_value=False,
    help="Attack a model of your own: see `dpledger membership`, which has the other options.",
)
@claim_options("With --scores: the claim under attack.")
@click.option("--delta", type=float, help="With --scores: of the claim and the bounds; may be 0.")
@confidence_option("With --scores: of each bound.")
@answers
def attack(
    configuration_path: Path | None,
    trials: int | None,
    null_trials: int | None,
    jobs: int,
    backend: BackendName | None,
    address: str | None,
    store: Path | None,
    score_paths: tuple[Path, Path] | None,
    epsilon: float | None,
    mu: float | None,
    delta: float | None,
    confidence: float,
) -> Outcome:
    """Bound epsilon from below: attack the run that CONFIG describes by replay.

    The replay attack reads every message of the run and weighs how likely each is under two
    neighbouring data sets; no attack on the transcript is stronger. What can be told from the last
    model alone, `dpledger membership CONFIG` tries.

    With --scores, bound epsilon from scores of an attack of your own: larger where a run looks more
    like one with the record (IN) than one without (OUT). With --model, train and attack a
    classifier of your own, as `dpledger membership --model` does.

    The claim is tested as a curve, by counting, by betting, against the pair's exact mu where that
    is known, and by the noise of a run of its own, which is compared with what its events state.
    Exit status 1 if a test refutes the claim or the null control fails.

    \b
    dpledger attack run.toml --trials 5000 --jobs 2
    dpledger attack --scores in.npy out.npy --epsilon 1 --delta 1e-5
    dpledger attack --model mine.py:model --records mine.npz --adjacency add-remove-one \\
        --epsilon 1 --delta 1e-5
    """
    # CONFIG and --scores have options of their own; --model never gets here
    if (configuration_path is None) == (score_paths is None):
        raise click.UsageError("Expected one of CONFIG, --scores and --model.")
    if score_paths is not None:
        # scores are there already: nothing would be run
        refuse("options of trials only with CONFIG", trials, null_trials, backend, address, store)
        refuse("options of trials only with CONFIG", None if jobs == 1 else jobs)
        if delta is None or (epsilon is None) == (mu is None):
            raise click.UsageError("Expected --delta and either --epsilon or --mu with --scores.")
        # raises unless exactly one of epsilon and mu is given
        claim = ClaimedPrivacy.of(epsilon=epsilon, mu=mu, delta=delta)
        scores = Scores(*(read_numbers(path).astype(float) for path in score_paths))
        found = judge_scores(scores, claim, confidence=confidence)
        return scores_outcome(found, confidence=confidence)
    refuse("--epsilon, --mu and --delta only with --scores", epsilon, mu, delta)
    assert configuration_path is not None
    # chunks of trials are seeded by number, so that the backend changes nothing but the time
    where = backend_of(backend, jobs=jobs, address=address)
    with steps() as start:
        attacked = run_attack(
            read_configuration(configuration_path),
            trials=trials,
            null_trials=null_trials,
            backend=where,
            store=store,
            progress=start("attack"),
        )
    return attack_outcome(attacked.pair, attacked.result)
