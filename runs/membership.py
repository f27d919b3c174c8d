"""The design of a membership experiment: which record, which neighbours, which scores, whose model.

The attacker sees the last model alone. On a run of ours the neighbours are those of the plan's own
relation; on a model of the user's own, those of the relation that the promise names.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..audits.membership import (
    Fisher,
    Game,
    LiraOffline,
    LiraOnline,
    LossThreshold,
    MembershipCheck,
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
    worst_off,
    worst_replacement,
)
from ..audits.metrics import Promise
from ..audits.neighbours import NeighbourPair
from ..data import LabelledRecords, UnreadableFile
from ..data.files import read_arrays
from ..mechanisms import (
    Adjacency,
    EventList,
    InvalidParameter,
    PrivateDataset,
    SamplingCurator,
    SimulationSampler,
)
from .attack import require_protected
from .canaries import CANARY_PAIRS, CanaryGame, TargetName, dense, game_of_canaries
from .configuration import Configuration
from .planning import plan

__all__ = [
    "MembershipOptions",
    "MembershipRecords",
    "TargetName",
    "membership_of_model",
    "membership_of_run",
]

_BLACK_BOX: tuple[MembershipScore, ...] = (LossThreshold(), LiraOnline(), LiraOffline(), Rmia())
"""Scores that need a model's predictions only; `Fisher` needs its parameters, and so a run of
ours.

Loss thresholds: Yeom, Giacomelli, Fredrikson, Jha 2018; LiRA with and without shadow models that
hold the target: Carlini et al. 2022; RMIA: Zarifzadeh, Liu, Shokri 2024.
"""
_POPULATION = 100
"""Records of the population that RMIA compares the target with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipOptions:
    """How an experiment is made.

    Args:
        target: which record.
        trials: models to judge, with the record and as many without.
        shadows: further models, with it and without, that attacks learn from.
        confidence: of all bounds together, in (0, 1).
        seed: of all that is random; chosen before anybody looks.
        jobs: processes, for a model of the user's own.
    """

    target: TargetName = TargetName.CANARY
    trials: int = 1000
    shadows: int = 200
    confidence: float = 0.95
    seed: int = 1
    jobs: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class MembershipRecords:
    """What a model of the user's own is trained on, and records that it is not.

    Args:
        features: shape (n, d), n >= 2.
        labels: shape (n,).
        population_features: shape (m, d), m >= 2, not trained on.
        population_labels: shape (m,).

    Raises `InvalidParameter` for other shapes.
    """

    features: Any = field(repr=False)
    labels: Any = field(repr=False)
    population_features: Any = field(repr=False)
    population_labels: Any = field(repr=False)

    def __post_init__(self) -> None:
        for name, rows, labels in (
            ("features", self.features, self.labels),
            ("population_features", self.population_features, self.population_labels),
        ):
            if rows.ndim != 2 or labels.shape != rows.shape[:1] or rows.dtype.kind not in "fiu":
                raise InvalidParameter(
                    f"{name}.shape", rows.shape, "(n, d) of numbers, labels (n,)"
                )
            if len(rows) < 2:
                raise InvalidParameter(name, len(rows), "at least 2 records")

    @classmethod
    def read(cls, path: Path) -> MembershipRecords:
        """Return the records in an .npz file of arrays of these four names.

        Raises `UnreadableFile`, and `InvalidParameter` for other shapes.
        """
        arrays = read_arrays(path)
        names = [field.name for field in fields(cls)]
        if missing := [name for name in names if name not in arrays]:
            raise UnreadableFile(f"{path}: Expected arrays {', '.join(missing)}.")
        return cls(*(arrays[name] for name in names))


def membership_of_run(configuration: Configuration, options: MembershipOptions) -> MembershipCheck:
    """Return what membership inference finds on the run that a configuration describes.

    Raises `InvalidParameter` for a plan without protection: there is nothing left to attack.

    Args:
        configuration: of the run; its plan is the promise.
        options: of the experiment.
    """
    planned = plan(configuration)
    require_protected(planned)
    if options.target in CANARY_PAIRS:
        played = game_of_canaries(configuration, planned, options.target, options.seed)
    else:
        game = _game_of_run(configuration, planned.noise_multiplier, options)
        played = CanaryGame(game, (*_BLACK_BOX, Fisher()), None)
    return _check(
        played.game,
        played.scores,
        planned.promise,
        configuration.privacy.adjacency,
        configuration.privacy.delta,
        options,
        reach=played.reach,
    )


def membership_of_model(
    model: object,
    records: MembershipRecords,
    options: MembershipOptions,
    *,
    promise: Promise,
    adjacency: Adjacency,
    delta: float,
) -> MembershipCheck:
    """Return what membership inference finds on a model of the user's own.

    Args:
        model: a scikit-learn classifier, or a function of (features, labels, seed) that returns a
            fitted model with predict_proba and classes_.
        records: to train on, and a population.
        options: of the experiment.
        promise: what is claimed of the model.
        adjacency: the relation that the promise speaks of, add-remove-one or replace-one.
        delta: of the bounds; 0 for pure differential privacy.
    """
    game = _game_of_model(trainer_of(model), records, adjacency, options)
    return _check(game, _BLACK_BOX, promise, adjacency, delta, options)


def _check(
    game: Game,
    scores: tuple[MembershipScore, ...],
    promise: Promise,
    adjacency: Adjacency,
    delta: float,
    options: MembershipOptions,
    reach: float | None = None,
) -> MembershipCheck:
    """Return what the scores find in a game, with this experiment's sizes and seed.

    Args:
        game: trains models with the target and without.
        scores: that the attacker may use.
        promise: what is held against.
        adjacency: the relation of game and promise.
        delta: of the bounds.
        options: sizes, confidence and seed.
        reach: mu of the best attack on the game, where it is known.
    """
    return check_membership(
        game,
        scores,
        promise=promise,
        adjacency=adjacency,
        delta=delta,
        trials=options.trials,
        shadows=options.shadows,
        confidence=options.confidence,
        seed=options.seed,
        reach=reach,
    )


# --- a run of ours -----------------------------------------------------------------------------


def _game_of_run(
    configuration: Configuration, noise_multiplier: float, options: MembershipOptions
) -> SolverGame:
    """Return the game on a run of ours: the attacker sees the last model.

    Under zero-out the neighbour is the null record; under replace-one the worst of several public
    records, chosen on shadow models that no bound counts.

    Args:
        configuration: of the run.
        noise_multiplier: of its plan.
        options: which record, how many shadows, the seed.
    """
    loss = configuration.solvers.loss
    train, test = configuration.attacked_records()
    dataset = configuration.audited(train)
    population = test.take(np.arange(min(_POPULATION, len(test))))
    others = dense(population.features)
    chosen = _target_of_run(configuration, train, dataset, options)
    assert chosen.index is not None
    place, solve = chosen.index, configuration.solvers.noisy(noise_multiplier).solve

    def game_of(other: Target) -> SolverGame:
        pair = NeighbourPair(
            dataset.with_record(place, features=chosen.features, label=chosen.label),
            dataset.with_record(place, features=other.features, label=float(other.label)),
            None,
            chosen.description,
        )
        words = f"{other.description} in its place"
        return SolverGame(solve, pair, chosen, loss, others, population.labels, words)

    if configuration.privacy.adjacency is Adjacency.ZERO_OUT_ONE:
        choices: tuple[Target, ...] = (
            Target(np.zeros_like(others[0]), chosen.label, "a null record"),
        )
    else:
        classes = np.unique(train.labels).tolist()
        choices = replacements(chosen, others, population.labels, classes=classes)
    return game_of(worst_replacement(game_of, choices, models=options.shadows, seed=options.seed))


def _target_of_run(
    configuration: Configuration,
    train: LabelledRecords,
    dataset: PrivateDataset,
    options: MembershipOptions,
) -> Target:
    """Return the record that is looked for.

    The worst is found with a model without noise, which is for choosing only: the trials that judge
    it are others.
    """
    loss = configuration.solvers.loss
    rows, labels = np.asarray(train.features), train.labels
    if options.target is TargetName.RANDOM:
        return random_target(rows, labels, seed=options.seed)
    # what a run without noise finds: for choosing the target only
    curator = SamplingCurator(EventList(), SimulationSampler(options.seed))
    model = configuration.solvers.exact(None).solve(dataset, curator).model
    chosen = worst_off(rows, labels, loss, model)
    if options.target is TargetName.WORST:
        return chosen
    assert chosen.index is not None
    return canary(model, row_bound=train.row_bound, index=chosen.index, outputs=loss.outputs)


# --- a model of the user's own -----------------------------------------------------------------


def _game_of_model(
    train: Train, records: MembershipRecords, adjacency: Adjacency, options: MembershipOptions
) -> ModelGame:
    """Return the game on a model of the user's own, under the relation of its promise.

    Under add-remove-one the other world has one record less. Under replace-one another record
    stands in its place: several public ones are tried on shadow models, and the worst is used.

    Args:
        train: trains a model on rows, labels and a seed.
        records: of the user.
        adjacency: add-remove-one or replace-one.
        options: which record, how many shadows, the seed.
    """
    features, labels = np.asarray(records.features, dtype=np.float64), records.labels
    target = _target_of_model(train, features, labels, options)
    kept = np.arange(len(labels)) != target.index
    rows = np.asarray(records.population_features, dtype=np.float64)[:_POPULATION]
    asked = records.population_labels[:_POPULATION]

    def game_of(other: Target | None) -> ModelGame:
        return ModelGame(
            train, features[kept], labels[kept], target, rows, asked, other, jobs=options.jobs
        )

    if adjacency is Adjacency.ADD_REMOVE_ONE:
        return game_of(None)
    classes = np.unique(np.concatenate([labels, asked])).tolist()
    choices = replacements(target, rows, asked, classes=classes)
    return game_of(worst_replacement(game_of, choices, models=options.shadows, seed=options.seed))


def _target_of_model(
    train: Train, features: Any, labels: Any, options: MembershipOptions
) -> Target:
    """Return the record that is looked for: any, a mislabelled one, or the hardest to fit.

    Args:
        train: trains a model.
        features, labels: the records, shapes (n, d) and (n,).
        options: which record, and the seed.
    """
    if options.target in CANARY_PAIRS:
        allowed = "random, worst or canary: the others need an algorithm of ours"
        raise InvalidParameter("target", options.target.value, allowed)
    if options.target is TargetName.RANDOM:
        return random_target(features, labels, seed=options.seed)
    if options.target is TargetName.CANARY:
        return mislabelled(features, labels, seed=options.seed)
    return hardest(
        features,
        labels,
        log_probabilities(train, features, labels, options.seed, features, labels),
    )
