"""Membership games on canaries that are made for the audit of a run of ours, not found in its data.

One has the largest gradients all run long, from a public start that makes them so (`worst_start`);
the other is tuned through the iterations, from the run's own start (`metagradient`). Both come with
the direction in which the last model shows them best.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..accounting.numbers.notions import Gdp
from ..audits.membership import SolverGame, Target
from ..audits.metagradient import metagradient_pair
from ..audits.neighbours import NeighbourPair
from ..audits.worst_start import LastModel, last_model, maximal_gradient
from ..data import LabelledRecords
from ..data.strict import ConfigurationError
from ..mechanisms import Adjacency
from ..mechanisms.protocols import FloatArray, Loss
from ..solvers import DpSgd
from ..solvers.solver import ModelSolver
from .attack import with_worst_start
from .configuration import Configuration
from .pipeline import Plan

__all__ = ["POPULATION", "dense", "tuned_game", "worst_start_game"]

POPULATION = 100
"""Records of the population that RMIA compares the target with."""


def dense(rows: Any) -> Any:
    """Return rows as a dense array."""
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())


def worst_start_game(
    configuration: Configuration, noise_multiplier: float
) -> tuple[SolverGame, LastModel | None]:
    """Return the game on canaries of maximal gradients, and the last model's law where it is known.

    Scores of the label's probability see little of it: both worlds' canaries are as unlikely.

    Args:
        configuration: of the run.
        noise_multiplier: of its plan.
    """
    train, test = configuration.attacked_records()
    index = _first_record(train)
    solver, pair = with_worst_start(
        configuration.solvers.noisy(noise_multiplier), configuration.audited(train), index
    )
    loss = configuration.solvers.loss
    row, label = maximal_gradient(pair.dataset.shape, loss)
    target = Target(row, label, pair.description, index)
    game = _game_of_pair(solver, pair, target, loss, test.take(np.arange(1)))
    return game, last_model(solver, pair)


def tuned_game(
    configuration: Configuration, planned: Plan, seed: int
) -> tuple[SolverGame, FloatArray]:
    """Return the game on canaries tuned through the iterations, and the direction that tells most.

    Args:
        configuration: of the run.
        planned: its plan.
        seed: of the search, whose rows no bound counts.

    Raises `ConfigurationError` for an algorithm whose iterations are not differentiated.
    """
    solver = configuration.solvers.noisy(planned.noise_multiplier)
    if not isinstance(solver, DpSgd):
        raise ConfigurationError(
            f"solver={type(solver).__name__} must be DpSgd for a canary tuned through its "
            'iterations; choose the target "canary", or "worst-start".'
        )
    train, test = configuration.attacked_records()
    index = _first_record(train)
    tuned = metagradient_pair(solver, configuration.audited(train), index=index, seed=seed)
    assert isinstance(planned.promise, Gdp)  # the search refuses hidden samples
    share = tuned.mu / float(planned.promise.mu_squared) ** 0.5
    words = f"a canary tuned through the iterations in the place of record {index}"
    words += f" (to first order the last model shows {share:.2g} of the promised mu)"
    target = Target(tuned.row, tuned.label, words, index)
    population = test.take(np.arange(min(POPULATION, len(test))))
    loss = configuration.solvers.loss
    nulled = configuration.privacy.adjacency is Adjacency.ZERO_OUT_ONE
    absent = "a null record in its place" if nulled else "another such canary in its place"
    return _game_of_pair(solver, tuned.pair, target, loss, population, absent), tuned.direction


def _first_record(train: LabelledRecords) -> int:
    """Return the place of the first party's first record: canaries stand there."""
    return int(np.flatnonzero(train.party_of == 0)[0])


def _game_of_pair(
    solver: ModelSolver,
    pair: NeighbourPair,
    target: Target,
    loss: Loss,
    population: LabelledRecords,
    absent: str = "its neighbour",
) -> SolverGame:
    """Return the game on a pair of canaries made for the audit."""
    rows, labels = dense(population.features), population.labels
    return SolverGame(solver.solve, pair, target, loss, rows, labels, absent)
