"""The way of a run: plan, calibrate, train, look at it from outside.

Each step is a function from the configuration (and what came before) to a plain result; commands
choose steps and print. Nothing here computes privacy: it calls the rooms that do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

import numpy as np

from ..accounting.guarantees import Guarantee, guarantee
from ..accounting.numbers.notions import ApproxDp
from ..accounting.planning import calibrate_noise_multiplier
from ..accounting.proof.certificate import Certificate, certify
from ..audits.metrics import Promise
from ..data import LabelledRecords
from ..mechanisms import (
    ClassLabels,
    Event,
    EventSink,
    LabelDomain,
    PrivateDataset,
    SamplingCurator,
)
from ..mechanisms.protocols import FloatArray
from ..solvers import ModelSolver, PublicModel
from ..solvers.planning import plan as plan_solver
from .configuration import Configuration

__all__ = [
    "Accuracy",
    "Plan",
    "Progress",
    "Training",
    "accuracy",
    "certified",
    "guaranteed",
    "new_folder",
    "plan",
    "planned_events",
    "train",
    "weights",
]

Progress = Callable[[int, int], None]
"""Called with the number of rounds done and of all rounds."""


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """What a run will emit, and what that guarantees."""

    noise_multiplier: float
    events: tuple[Event, ...]
    guarantee: Guarantee

    @property
    def promise(self) -> Promise:
        """What an attack is held against: mu-GDP where that is known, else epsilon at delta."""
        found = self.guarantee
        if isfinite(found.mu.upper_float):
            return found.notion
        return ApproxDp(found.epsilon.upper_float, found.delta)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of held-out records that a model classifies rightly: `right` of `total`."""

    right: int
    total: int

    @property
    def share(self) -> float:
        """right / total."""
        return self.right / self.total


@dataclass(frozen=True, eq=False, slots=True)
class Training:
    """A finished run: the last public state and the accuracy after every round."""

    state: PublicModel
    history: tuple[Accuracy, ...]

    @property
    def accuracy(self) -> Accuracy:
        """The accuracy of the final model."""
        return self.history[-1]


def planned_events(configuration: Configuration, solver: ModelSolver) -> tuple[Event, ...]:
    """Return the events that a solver will emit on data of the configured shape."""
    return plan_solver(solver, configuration.shape)


def plan(configuration: Configuration) -> Plan:
    """Return the plan: at the given noise, or at the least noise that meets the target epsilon.

    Raises `UnattainableTarget` where no noise does (the published variants).
    """
    privacy = configuration.privacy

    def events(noise_multiplier: float) -> tuple[Event, ...]:
        return planned_events(configuration, configuration.solvers.noisy(noise_multiplier))

    if privacy.noise_multiplier is not None:
        multiplier = privacy.noise_multiplier
    else:
        assert privacy.epsilon is not None
        multiplier = calibrate_noise_multiplier(
            events, target_epsilon=privacy.epsilon, delta=privacy.delta
        ).noise_multiplier
    listed = events(multiplier)
    return Plan(multiplier, listed, guaranteed(configuration, listed))


def guaranteed(configuration: Configuration, events: Sequence[Event]) -> Guarantee:
    """Return what the events of a run guarantee, and on which assumptions."""
    privacy = configuration.privacy
    found = guarantee(events, delta=privacy.delta, adjacency=privacy.adjacency)
    return replace(found, assumptions=(*found.assumptions, *configuration.assumptions))


def certified(configuration: Configuration, events: Sequence[Event]) -> Certificate:
    """Return the certificate of the events of a run, with the same assumptions."""
    proved = certify(events, delta=configuration.privacy.delta)
    return proved.given(*configuration.assumptions)


def weights(model: FloatArray, labels: LabelDomain) -> FloatArray:
    """Return what rows are multiplied by: of shape (d,) for labels ±1, (d, K) for K classes."""
    return model.reshape(-1, labels.classes) if isinstance(labels, ClassLabels) else model


def accuracy(model: FloatArray, records: LabelledRecords) -> Accuracy:
    """Return how many records a model classifies rightly; ties count as wrong.

    Of labels ±1 the sign of the score is chosen, of classes the one with the largest score.
    """
    scores = records.features @ weights(model, records.label_domain)
    if scores.ndim == 1:
        right = scores * records.labels > 0
    else:
        own = np.take_along_axis(scores, records.labels.astype(np.intp)[:, None], axis=1)
        right = (scores >= own).sum(axis=1) == 1
    return Accuracy(int(np.count_nonzero(right)), len(records))


def train(
    configuration: Configuration,
    solver: ModelSolver,
    dataset: PrivateDataset,
    test: LabelledRecords,
    sink: EventSink,
    *,
    progress: Progress | None = None,
) -> Training:
    """Run a solver once, every release through `sink`; return the model and its accuracies."""
    rounds = configuration.solver.rounds
    history: list[Accuracy] = []

    def observe(k: int, state: PublicModel) -> None:
        history.append(accuracy(state.model, test))
        if progress is not None:
            progress(k, rounds)

    curator = SamplingCurator(sink, configuration.build_sampler())
    state = solver.solve(dataset, curator, observe=observe)
    return Training(state, tuple(history))


def new_folder(out: Path | None, name: str) -> Path:
    """Return a fresh folder for a run's files: `out`, or `dpledger-runs/<name>-<time>`.

    Raises `FileExistsError` if `out` already holds a ledger: a ledger is never overwritten.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    folder = out or Path("dpledger-runs") / f"{name}-{stamp}-{os.getpid()}"
    if (folder / "ledger.sqlite").exists():
        raise FileExistsError(f"{folder}: Expected a folder without a ledger; choose another.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
