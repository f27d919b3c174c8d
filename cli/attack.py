"""`dpledger attack`: is the bound true in practice, and how tight is it?"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..audits.bounds import ClopperPearson
from ..audits.scores import ClaimedPrivacy, judge_scores
from ..audits.trials import BackendName, ScoreStore, backend_of
from ..runs.attack import RunAttack, run_attack
from ..runs.configuration import read_configuration
from ..runs.planning import plan
from .membership import membership
from .output import Outcome, deliver, json_option, shown_down, shown_up, steps
from .scores import read_scores, scores_outcome, tests_table

__all__ = ["attack", "attack_outcome"]


class _Attack(click.Command):
    """`attack`, which hands a model of the user's own to `membership`, with all its options."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context of the command that will answer."""
        if any(arg.partition("=")[0] == "--model" for arg in args):
            return membership.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(
    cls=_Attack, short_help="Bound epsilon from below: replay a run, or judge your scores."
)
@click.argument(
    "configuration_path",
    metavar="[CONFIG]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--trials", type=click.IntRange(10), help="Overrides attack.trials.")
@click.option("--null-trials", type=click.IntRange(10), help="Of the null control; as many.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Processes to run trials in.")
@click.option(
    "--backend",
    type=click.Choice([name.value for name in BackendName]),
    help="Where trials run; the numbers are the same. By default loky for several jobs.",
)
@click.option("--address", help="With --backend dask or ray: of the cluster.")
@click.option(
    "--store",
    "store_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that keeps scores: an attack that was stopped goes on where it stopped.",
)
@click.option(
    "--scores",
    "score_paths",
    nargs=2,
    metavar="IN OUT",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Judge scores of your own (.npy, one number a run) instead of a run of ours.",
)
@click.option(
    "--model",
    metavar="FILE.py:NAME",
    expose_value=False,
    help="Attack a model of your own: see `dpledger membership`, which has the other options.",
)
@click.option("--epsilon", type=float, help="With --scores: the claim under attack.")
@click.option("--mu", type=float, help="With --scores: the claim under attack.")
@click.option(
    "--delta", type=float, help="With --scores: of the claim and of the bounds; may be 0."
)
@click.option("--confidence", type=float, default=0.95, help="With --scores: of each bound.")
@json_option
def attack(
    configuration_path: Path | None,
    trials: int | None,
    null_trials: int | None,
    jobs: int,
    backend: str | None,
    address: str | None,
    store_path: Path | None,
    score_paths: tuple[Path, Path] | None,
    epsilon: float | None,
    mu: float | None,
    delta: float | None,
    confidence: float,
    as_json: bool,
) -> None:
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
    if (configuration_path is None) == (score_paths is None):
        raise click.UsageError("Expected one of CONFIG, --scores and --model.")
    ours = (trials, null_trials, backend, address, store_path)
    if score_paths is not None:
        if jobs > 1 or any(option is not None for option in ours):
            raise click.UsageError("Expected options of trials only with CONFIG.")
        if delta is None or (epsilon is None) == (mu is None):
            raise click.UsageError("Expected --delta and either --epsilon or --mu with --scores.")
        claim = ClaimedPrivacy.of(epsilon=epsilon, mu=mu, delta=delta)
        found = judge_scores(read_scores(*score_paths), claim, confidence=confidence)
        deliver(scores_outcome(found, confidence=confidence), as_json=as_json)
        return
    if not (epsilon is mu is delta is None):
        raise click.UsageError("Expected --epsilon, --mu and --delta only with --scores.")
    assert configuration_path is not None
    configuration = read_configuration(configuration_path)
    name = None if backend is None else BackendName(backend)
    where = backend_of(name, jobs=jobs, address=address)
    planned = plan(configuration)
    with (
        nullcontext() if store_path is None else ScoreStore(store_path) as store,
        steps() as start,
    ):
        attacked = run_attack(
            configuration,
            planned,
            trials=trials,
            null_trials=null_trials,
            backend=where,
            store=store,
            progress=start("attack"),
        )
    deliver(attack_outcome(attacked), as_json=as_json)


def attack_outcome(attacked: RunAttack) -> Outcome:
    """Return what an attack says: a finding if it refutes the claim or its null control fails."""
    pair, result = attacked.pair, attacked.result
    measured = result.measured_mu
    rows = [
        ("neighbours", pair.description),
        ("trials", f"{result.trials} in each world, confidence {result.confidence:g} a bound"),
        (
            "claimed epsilon",
            f"{shown_up(result.claimed_epsilon, digits=6)} at delta {result.delta:g}",
        ),
        ("largest provable", f"{result.ceiling:.4g} with so many trials"),
    ]
    if measured is not None:
        rows.append(("measured mu", f"[{measured.lower:.4f}, {measured.upper:.4f}] (99 %)"))
        expected = None if pair.share is None else pair.share * result.claimed_mu
        if expected is not None:
            rows.append(("exact mu of pair", f"{expected:.4f} ({pair.share:.3f} x planned)"))
    rows.append(("verdict", result.verdict))
    found = {b.method: shown_down(b.epsilon, digits=4) for b in result.bounds}
    proved, assumed = (
        Table(heading, "attack", "null control", box=None)
        for heading in ("lower bound on epsilon", "if scores are normal, an assumption")
    )
    for null in result.null_control.bounds:
        table = proved if null.method == ClopperPearson.METHOD else assumed
        silent = shown_down(null.epsilon, digits=4)
        table.add_row(null.method, found.get(null.method, "none"), silent)
    return Outcome(
        title="Replay attack",
        data={
            "neighbours": pair.description,
            "share": pair.share,
            **asdict(result),
            "verdict": result.verdict,
            "refutes_claim": result.refutes_claim,
            "null_control_failed": result.null_control.positive,
        },
        rows=(*rows, *(("note", text) for text in result.not_meant)),
        tables=(proved, assumed, tests_table(result.tests)),
        finding=result.is_finding,
    )
