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

from ..accounting.notions import ApproxDp, Gdp
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
    trainer_of,
    verdict,
    worst_off,
)
from ..audits.metrics import Promise
from ..audits.neighbours import NeighbourPair
from ..mechanisms import Adjacency, EventList, InvalidParameter, SamplingCurator, SeededSampler
from ..mechanisms.errors import require_nonnegative
from .configuration import Configuration, read_configuration
from .output import Outcome, deliver, json_option, shown_down
from .study import plan

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
@click.option("--epsilon", type=float, help="With --model: the promise.")
@click.option("--mu", type=float, help="With --model: the promise.")
@click.option("--delta", type=float, help="With --model: of the promise and of the bounds.")
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
    returns a fitted model with predict_proba and classes_. Options then state the promise.

    Exit status 1 if an attack shows more than the promise allows.

    \b
    dpledger membership run.toml --target worst
    dpledger membership --model mine.py:model --records mine.npz --epsilon 1 --delta 1e-5
    """
    if (configuration_path is None) == (model is None):
        raise click.UsageError("Expected either CONFIG or --model.")
    own = (records, epsilon, mu, delta)
    if configuration_path is not None:
        if any(value is not None for value in own):
            raise click.UsageError(
                "Expected --records, --epsilon, --mu and --delta only with --model."
            )
        setting = _of_run(read_configuration(configuration_path), target, seed)
    else:
        assert model is not None
        if records is None or delta is None or (epsilon is None) == (mu is None):
            raise click.UsageError(
                "Expected --records, --delta and either --epsilon or --mu with --model."
            )
        promise = _promised(epsilon, mu, delta)
        setting = _of_model(_named(model), _read(records), target, seed, jobs, promise, delta)
    found = check_membership(
        setting.game,
        setting.scores,
        promise=setting.promise,
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
    delta: float


def _of_run(configuration: Configuration, target: str, seed: int) -> _Setting:
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
    null = configuration.privacy.adjacency is Adjacency.ZERO_OUT_ONE
    other = np.zeros_like(others[0]) if null else others[0]
    pair = NeighbourPair(
        dataset.with_record(chosen.index, features=chosen.features, label=chosen.label),
        dataset.with_record(chosen.index, features=other, label=float(population.labels[0])),
        None,
        chosen.description,
    )
    return _Setting(
        SolverGame(
            configuration.solvers.noisy(made.noise_multiplier).solve,
            pair,
            chosen,
            loss,
            others[1:],
            population.labels[1:],
        ),
        (*_BLACK_BOX, Fisher()),
        made.promise,
        configuration.privacy.delta,
    )


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
    module = importlib.import_module(Path(path).stem)
    if not hasattr(module, name):
        raise click.BadParameter(f"Expected {name!r} among the names in {path}.")
    return getattr(module, name)


def _of_model(
    model: object,
    records: _Records,
    target: str,
    seed: int,
    jobs: int,
    promise: Promise,
    delta: float,
) -> _Setting:
    train = trainer_of(model)
    features, labels = np.asarray(records.features, dtype=np.float64), records.labels
    chosen = _chosen(train, features, labels, target, seed)
    kept = np.arange(len(labels)) != chosen.index
    game = ModelGame(
        train,
        features[kept],
        labels[kept],
        chosen,
        np.asarray(records.population_features, dtype=np.float64)[:_POPULATION],
        records.population_labels[:_POPULATION],
        replace=True,
        jobs=jobs,
    )
    return _Setting(game, _BLACK_BOX, promise, delta)


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
