"""The game on two canaries of a run of ours: how they are made, and what is known of their effect.

All stay within the bounds that the promise speaks of. Gradients are the largest all run long, from
a public start that makes them so; or rows are climbed by gradients: through the messages of DP-ADMM
and DP-SGD, or of the score, through whole runs of any algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from ..accounting.numbers.notions import Gdp
from ..audits.adversarial import adversarial_pair
from ..audits.datasets import AuditDataset
from ..audits.membership import Fisher, KnownDirection, MembershipScore, SolverGame, Target
from ..audits.metagradient import TunedPair, metagradient_pair
from ..audits.worst_start import LastModel, last_model, maximal_gradient
from ..data.strict import ConfigurationError
from ..solvers import DpAdmm, DpSgd, ModelSolver
from .attack import with_worst_start
from .configuration import Configuration
from .pipeline import Plan

__all__ = ["CANARY_PAIRS", "CanaryGame", "TargetName", "dense", "game_of_canaries"]


class TargetName(Enum):
    """Which record is looked for.

    Any; the one that a model is most wrong about; one made to be remembered; one whose gradients
    are the largest all run long, from a start that makes them so; one climbed by metagradients,
    through the messages of DP-SGD or DP-ADMM; or one climbed by gradients of the score, through
    whole runs.

    A random record shows what membership inference does to an average person; the others are
    for audits, as a guarantee speaks of the worst.
    """

    RANDOM = "random"
    WORST = "worst"
    CANARY = "canary"
    WORST_START = "worst-start"
    METAGRADIENT = "metagradient"
    ADVERSARIAL = "adversarial"


CANARY_PAIRS = (TargetName.WORST_START, TargetName.METAGRADIENT, TargetName.ADVERSARIAL)
"""Targets of which both worlds' records are made, for a run of ours."""


@dataclass(frozen=True, slots=True)
class CanaryGame:
    """A game on two canaries.

    Args:
        game: trains models with the one or the other.
        scores: that see something of them; those of the label's probability see little, as both
            worlds' canaries are as unlikely.
        reach: mu of the best attack on the last model; None where its law is not known: what a
            search estimates stands in the target's words.
    """

    game: SolverGame
    scores: tuple[MembershipScore, ...]
    reach: float | None


def game_of_canaries(
    configuration: Configuration, planned: Plan, target: TargetName, seed: int
) -> CanaryGame:
    """Return the game on two canaries, in the place of the first party's first record.

    Args:
        configuration: of the run.
        planned: its plan.
        target: one of `CANARY_PAIRS`.
        seed: of a search for canaries.

    Raises `ConfigurationError` or `InvalidParameter` where no such canaries are known.
    """
    train, test = configuration.attacked_records()
    dataset, loss = configuration.audited(train), configuration.solvers.loss
    index = int(np.flatnonzero(train.party_of == 0)[0])
    solver = configuration.solvers.noisy(planned.noise_multiplier)
    known: LastModel | TunedPair | None
    if target is TargetName.WORST_START:
        solver, pair = with_worst_start(solver, dataset, index)
        row, label = maximal_gradient(pair.dataset.shape, loss)
        known, words = last_model(solver, pair), pair.description
    else:
        known = _tuned(solver, dataset, target, index=index, seed=seed)
        pair, row, label = known.pair, known.row, known.label
        words = f"{pair.description} ({_share(known.mu, planned)})"
    game = SolverGame(
        solver.solve,
        pair,
        Target(row, label, words, index),
        loss,
        dense(test.features[:1]),  # of which no score here asks anything
        test.labels[:1],
        "its neighbour",
    )
    return CanaryGame(
        game,
        (Fisher(),) if known is None else (KnownDirection(known.direction), Fisher()),
        known.mu if isinstance(known, LastModel) else None,
    )


def _share(mu: float, planned: Plan) -> str:
    """Return what part of its price a pair pays in the last model, as a search estimates it."""
    words = f"by the search's estimate it shows mu = {mu:.3g} in the last model"
    if isinstance(planned.promise, Gdp) and planned.promise.mu_squared > 0:
        words += f", {mu / float(planned.promise.mu_squared) ** 0.5:.3g} of the promised mu"
    return words


def dense(rows: Any) -> Any:
    """Return rows as a dense array."""
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())


def _tuned(
    solver: ModelSolver, dataset: AuditDataset, target: TargetName, *, index: int, seed: int
) -> TunedPair:
    """Return the pair that a search finds.

    Args:
        solver: of the run.
        dataset: of the attacked parties.
        target: metagradient or adversarial.
        index: of the record in whose place the canary stands.
        seed: of the search.
    """
    if target is TargetName.ADVERSARIAL:
        return adversarial_pair(solver, dataset, index=index, seed=seed)
    if not isinstance(solver, DpSgd | DpAdmm):
        raise ConfigurationError(
            f"solver={type(solver).__name__} must be DpSgd or DpAdmm for metagradients; "
            'choose the target "adversarial".'
        )
    return metagradient_pair(solver, dataset, index=index, seed=seed)
