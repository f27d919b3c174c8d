"""`dpledger membership`: can an attack tell who was in the data, and what was promised?"""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from ..accounting.numbers.notions import ApproxDp, Gdp
from ..audits.membership import (
    Check,
    Fisher,
    Game,
    LiraOffline,
    LiraOnline,
    LossThreshold,
    MembershipScore,
    ModelGame,
    Rmia,
    SolverGame,
    Target,
    Train,
    canary,
    check_membership,
    hardest,
    log_probabilities,
    mislabelled,
    random_target,
    replacements,
    trainer_of,
    verdict,
    worst_off,
    worst_replacement,
)
from ..audits.metrics import Promise
from ..audits.neighbours import NeighbourPair
from ..mechanisms import Adjacency, EventList, InvalidParameter, SamplingCurator, SeededSampler
from ..mechanisms.errors import require_nonnegative
from ..runs.configuration import Configuration, read_configuration
from ..runs.study import plan
from .output import Outcome, deliver, json_option, shown_down

__all__ = ["membership"]

_BLACK_BOX: tuple[MembershipScore, ...] = (LossThreshold(), LiraOnline(), LiraOffline(), Rmia())
_TARGETS = ("random", "worst", "canary")
# records of the population that RMIA compares the target with
_POPULATION = 100


@click.command(short_help="Membership inference on a run's last model or a model of yours.")
@click.argument(
    "configuration_path",
    metavar="[CONFIG]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--target",
    type=click.Choice(_TARGETS),
    default="canary",
    show_default=True,
    help="The record: any; the one that a model is most wrong about; or one made to be remembered.",
)
@click.option(
    "--trials",
    type=click.IntRange(2),
    default=1000,
    show_default=True,
    help="Models to judge, with the record and as many without.",
)
@click.option(
    "--shadows",
    type=click.IntRange(2),
    default=200,
    show_default=True,
    help="Further models, with it and without, that attacks learn from.",
)
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Of all bounds together."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Of all that is random; choose it before you look.",
)
@click.option(
    "--model", metavar="FILE.py:NAME", help="A model of your own instead of a run of ours."
)
@click.option(
    "--records",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
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
@click.option("--epsilon", type=float, help="With --model: the promise.")
@click.option("--mu", type=float, help="With --model: the promise.")
@click.option(
    "--delta",
    type=float,
    help="With --model: of the promise and of the bounds; 0 for pure differential privacy.",
)
@click.option("--jobs", type=int, default=1, show_default=True, help="With --model: processes.")
@json_option
def membership(
    configuration_path: Path | None,
    target: str,
    trials: int,
    shadows: int,
    confidence: float,
    seed: int,
    model: str | None,
    records: Path | None,
    adjacency: str | None,
    epsilon: float | None,
    mu: float | None,
    delta: float | None,
    jobs: int,
    as_json: bool,
) -> None:
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
    if (configuration_path is None) == (model is None):
        raise click.UsageError("Expected either CONFIG or --model.")
    own = (records, adjacency, epsilon, mu, delta)
    if configuration_path is not None:
        if any(value is not None for value in own):
            raise click.UsageError(
                "Expected --records, --adjacency, --epsilon, --mu and --delta only with --model."
            )
        setting = _of_run(read_configuration(configuration_path), target, shadows, seed)
    else:
        assert model is not None
        if records is None or delta is None or (epsilon is None) == (mu is None):
            raise click.UsageError(
                "Expected --records, --delta and either --epsilon or --mu with --model."
            )
        if adjacency is None:
            raise click.UsageError(
                "Expected --adjacency add-remove-one or replace-one with --model: the relation "
                "that the promise speaks of."
            )
        setting = _Setting(
            _of_model(
                trainer_of(_named(model)),
                _read(records),
                Adjacency(adjacency),
                _Wanted(target, shadows, seed, jobs),
            ),
            _BLACK_BOX,
            _promised(epsilon, mu, delta),
            Adjacency(adjacency),
            delta,
        )
    found = check_membership(
        setting.game,
        setting.scores,
        promise=setting.promise,
        adjacency=setting.adjacency,
        delta=setting.delta,
        trials=trials,
        shadows=shadows,
        confidence=confidence,
        seed=seed,
    )
    deliver(_outcome(found), as_json=as_json)


@dataclass(frozen=True, eq=False, slots=True)
class _Setting:
    game: Game
    scores: tuple[MembershipScore, ...]
    promise: Promise
    adjacency: Adjacency
    delta: float


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Options of the game on a model of the user's own."""

    target: str
    shadows: int
    seed: int
    jobs: int


def _of_run(configuration: Configuration, target: str, shadows: int, seed: int) -> _Setting:
    """Return the game on a run of ours: the attacker sees the last model."""
    made = plan(configuration)
    if made.guarantee.unprotected:
        raise InvalidParameter("epsilon", "infinity", "finite: what is unprotected needs no attack")
    loss = configuration.solvers.loss
    train, test = configuration.attacked_records()
    dataset = configuration.private(train)
    rows, labels = np.asarray(train.features), train.labels
    population = test.take(np.arange(min(_POPULATION, len(test))))
    others = _dense(population.features)
    # what a run without noise finds: for choosing the target only
    curator = SamplingCurator(EventList(), SeededSampler(seed))
    model = configuration.solvers.exact(None).solve(dataset, curator).model
    if target == "random":
        chosen = random_target(rows, labels, seed=seed)
    else:
        chosen = worst_off(rows, labels, loss, model)
        if target == "canary":
            assert chosen.index is not None
            chosen = canary(
                model, row_bound=train.row_bound, index=chosen.index, outputs=loss.outputs
            )
    assert chosen.index is not None
    place, solve = chosen.index, configuration.solvers.noisy(made.noise_multiplier).solve

    def game_of(other: Target) -> SolverGame:
        pair = NeighbourPair(
            dataset.with_record(place, features=chosen.features, label=chosen.label),
            dataset.with_record(place, features=other.features, label=float(other.label)),
            None,
            chosen.description,
        )
        told = f"{other.description} in its place"
        return SolverGame(solve, pair, chosen, loss, others, population.labels, told)

    adjacency = configuration.privacy.adjacency
    if adjacency is Adjacency.ZERO_OUT_ONE:
        choices: tuple[Target, ...] = (
            Target(np.zeros_like(others[0]), chosen.label, "a null record"),
        )
    else:
        classes = np.unique(labels).tolist()
        choices = replacements(chosen, others, population.labels, classes=classes)
    worst = worst_replacement(game_of, choices, models=shadows, seed=seed)
    scores = (*_BLACK_BOX, Fisher())
    delta = configuration.privacy.delta
    return _Setting(game_of(worst), scores, made.promise, adjacency, delta)


@dataclass(frozen=True, eq=False, slots=True)
class _Records:
    features: Any
    labels: Any
    population_features: Any
    population_labels: Any


def _promised(epsilon: float | None, mu: float | None, delta: float) -> Promise:
    if epsilon is not None:
        return ApproxDp(epsilon, delta)
    assert mu is not None
    require_nonnegative("mu", mu)
    return Gdp(Fraction(mu) ** 2)


def _read(path: Path) -> _Records:
    names = ("features", "labels", "population_features", "population_labels")
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in names if name not in file]
            if missing:
                raise click.BadParameter(f"{path}: Expected arrays {', '.join(missing)}.")
            found = _Records(*(np.asarray(file[name]) for name in names))
    except (ValueError, OSError) as error:
        raise click.BadParameter(f"{path}: Expected an .npz file of arrays: {error}") from error
    for name, rows, labels in (
        ("features", found.features, found.labels),
        ("population_features", found.population_features, found.population_labels),
    ):
        if rows.ndim != 2 or labels.shape != rows.shape[:1] or rows.dtype.kind not in "fiu":
            raise click.BadParameter(f"{path}: Expected {name} (n, d) of numbers, labels (n,).")
        if len(rows) < 2:
            raise click.BadParameter(f"{path}: Expected at least 2 records in {name}.")
    return found


def _named(model: str) -> object:
    """Return what NAME is in the Python file FILE.py of `FILE.py:NAME`."""
    path, _, name = model.rpartition(":")
    if not path.endswith(".py") or not Path(path).is_file():
        raise click.BadParameter(f"Expected model={model!r} as FILE.py:NAME, a file that exists.")
    # under its own name, so that other processes find it
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        module = importlib.import_module(Path(path).stem)
    except Exception as error:
        raise click.BadParameter(
            f"{path}: Expected a file that imports; it raised {type(error).__name__}: {error}"
        ) from error
    if not hasattr(module, name):
        raise click.BadParameter(f"Expected {name!r} among the names in {path}.")
    return getattr(module, name)


def _of_model(train: Train, records: _Records, adjacency: Adjacency, wanted: _Wanted) -> ModelGame:
    """Return the game on a model of the user's own, under the relation of its promise."""
    features, labels = np.asarray(records.features, dtype=np.float64), records.labels
    target = _chosen(train, features, labels, wanted.target, wanted.seed)
    kept = np.arange(len(labels)) != target.index
    rows = np.asarray(records.population_features, dtype=np.float64)[:_POPULATION]
    asked = records.population_labels[:_POPULATION]

    def game_of(other: Target | None) -> ModelGame:
        return ModelGame(
            train, features[kept], labels[kept], target, rows, asked, other, jobs=wanted.jobs
        )

    if adjacency is Adjacency.ADD_REMOVE_ONE:
        return game_of(None)
    classes = np.unique(np.concatenate([labels, asked])).tolist()
    choices = replacements(target, rows, asked, classes=classes)
    return game_of(worst_replacement(game_of, choices, models=wanted.shadows, seed=wanted.seed))


def _chosen(train: Train, features: Any, labels: Any, target: str, seed: int) -> Target:
    if target == "random":
        return random_target(features, labels, seed=seed)
    if target == "canary":
        return mislabelled(features, labels, seed=seed)
    return hardest(
        features, labels, log_probabilities(train, features, labels, seed, features, labels)
    )


def _outcome(found: Check) -> Outcome:
    """Return the verdict, and a row for each score."""
    table = Table("score", "epsilon at least", "null control", "AUC", box=None)
    for result in found.results:
        table.add_row(
            result.name,
            "none" if result.bound is None else shown_down(result.bound.epsilon, digits=4),
            shown_down(result.null.epsilon, digits=4),
            f"{result.auc:.4f}",
        )
    lines = verdict(found)
    data = {**asdict(found), "promise": str(found.promise), "verdict": list(lines)}
    return Outcome(
        title="Membership inference",
        data={**data, "refutes_promise": found.refutes_promise},
        rows=tuple(("", line) for line in lines),
        tables=(table,),
        finding=found.is_finding,
    )


def _dense(rows: Any) -> Any:
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())
