"""`dpledger attack`: is the bound true in practice, and how tight is it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ..accounting.numbers.grade import Grade
from ..audits.bounds import ClopperPearson, LowerBound, Scores
from ..audits.claim_tests import ClaimTest
from ..audits.scores import ClaimedPrivacy, JudgedScores, judge_scores
from ..audits.trials import BackendName, backend_of
from ..data.files import read_numbers
from ..runs import RunAttack, read_configuration, run_attack
from .inputs import FILE, NEW_FILE, Among, Redirected, refuse
from .membership import membership
from .output import Outcome, TextColumns, answers, claimed_text, shown_down, shown_up, steps


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
    if (configuration_path is None) == (score_paths is None):
        raise click.UsageError("Expected one of CONFIG, --scores and --model.")
    if score_paths is not None:
        refuse("options of trials only with CONFIG", trials, null_trials, backend, address, store)
        refuse("options of trials only with CONFIG", None if jobs == 1 else jobs)
        if delta is None or (epsilon is None) == (mu is None):
            raise click.UsageError("Expected --delta and either --epsilon or --mu with --scores.")
        claim = ClaimedPrivacy.of(epsilon=epsilon, mu=mu, delta=delta)
        scores = Scores(*(read_numbers(path).astype(float) for path in score_paths))
        found = judge_scores(scores, claim, confidence=confidence)
        return _scores_outcome(found, confidence=confidence)
    refuse("--epsilon, --mu and --delta only with --scores", epsilon, mu, delta)
    assert configuration_path is not None
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
    return attack_outcome(attacked)


def attack_outcome(attacked: RunAttack) -> Outcome:
    """Return what an attack says: a finding if it refutes the claim or its null control fails."""
    pair, result = attacked.pair, attacked.result
    rows = [
        ("neighbours", pair.description),
        ("trials", f"{result.trials} in each world, confidence {result.confidence:g} a bound"),
        (
            "claimed epsilon",
            f"{shown_up(result.claimed_epsilon, digits=6)} at delta {result.delta:g}, "
            f"{Grade.ENCLOSED.value}",
        ),
        ("largest provable", f"{result.ceiling:.4g} with so many trials"),
    ]
    if (measured := result.measured_mu) is not None:
        rows.append(("measured mu", f"[{measured.lower:.4f}, {measured.upper:.4f}] (99 %)"))
        if pair.share is not None:
            expected = f"{pair.share * result.claimed_mu:.4f} ({pair.share:.3f} x planned)"
            rows.append(("exact mu of pair", expected))
    rows.append(("verdict", result.verdict))
    found = {b.method: shown_down(b.epsilon, digits=4) for b in result.bounds}
    texts = [
        (null.method, found.get(null.method, "none"), shown_down(null.epsilon, digits=4))
        for null in result.null_control.bounds
    ]
    proved = [row for row in texts if row[0] == ClopperPearson.METHOD]
    assumed = [row for row in texts if row[0] != ClopperPearson.METHOD]
    head = ("attack", "null control")
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
        tables=(
            TextColumns(("lower bound on epsilon", *head), proved),
            TextColumns(("if scores are normal, an assumption", *head), assumed),
            _tests_table(result.tests),
        ),
        finding=result.is_finding,
    )


def _tests_table(tests: Sequence[ClaimTest]) -> TextColumns:
    """Return the tests of a claim as a table: what each may err, and what it saw."""
    texts = [(t.name, f"{t.level:.3g}", "YES" if t.refuted else "no", t.detail) for t in tests]
    return TextColumns(("test of the claim", "level", "refuted", "what it saw"), texts)


def _scores_outcome(found: JudgedScores, *, confidence: float) -> Outcome:
    """Return what scores show; a finding if they refute the claim."""
    scores, refuted, delta = found.scores, found.refutes_claim, found.claimed.delta
    trials = {"in": scores.dataset.size, "out": scores.neighbour.size}
    tables = [_bounds_table("lower bound on epsilon", [found.bound])]
    if found.if_normal:
        tables.append(_bounds_table("if scores are normal, an assumption", found.if_normal))
    return Outcome(
        title="Attack by scores",
        data={
            "claimed_epsilon": found.claimed.epsilon,
            "delta": delta,
            "confidence": confidence,
            "trials": trials,
            "bounds": [found.bound],
            "if_normal": found.if_normal,
            "tests": found.tests,
            "ceiling": found.ceiling,
            "auc": found.auc,
            "refutes_claim": refuted,
            "not_meant": found.not_meant,
        },
        rows=(
            ("trials", f"{trials['in']} in, {trials['out']} out"),
            ("claimed epsilon", claimed_text(found.claimed)),
            ("largest provable", f"{found.ceiling:.4g} with so many trials"),
            ("AUC", f"{found.auc:.4f}"),
            ("verdict", "claim REFUTED" if refuted else "claim not refuted"),
            *(("note", text) for text in found.not_meant),
        ),
        tables=(*tables, _tests_table(found.tests)),
        finding=refuted,
    )


def _bounds_table(heading: str, bounds: Sequence[LowerBound]) -> TextColumns:
    texts = [(b.method, shown_down(b.epsilon, digits=4), b.detail) for b in bounds]
    return TextColumns((heading, "epsilon", "how"), texts)
