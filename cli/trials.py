"""Trials of a configured attack: where they run, and what they are called in a store."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import click
import msgspec

from ..audits.neighbours import NeighbourPair, flip_label, opposite_gradients, zero_out
from ..audits.trials import (
    Attacked,
    Backend,
    Dask,
    Experiment,
    Loky,
    Ray,
    Serial,
    trials_at_once,
)
from ..audits.trials.code import code_digest
from ..mechanisms import Adjacency
from ..runs.configuration import Configuration
from ..runs.sections import Attack, NeighbourName
from ..runs.study import Plan

__all__ = ["BackendName", "attacked_pair", "backend_of", "experiment_of"]

_ROOMS = ("mechanisms", "accounting", "solvers", "data", "audits", "runs", "cli")
"""Whose code may change scores."""


class BackendName(Enum):
    """Where trials can run."""

    SERIAL = "serial"
    LOKY = "loky"
    DASK = "dask"
    RAY = "ray"


def backend_of(name: BackendName | None, *, jobs: int, address: str | None) -> Backend:
    """Return the backend that options name: processes by loky, unless one job is all.

    Raises `click.UsageError` for options that contradict each other.
    """
    if name is None:
        name = BackendName.SERIAL if jobs == 1 else BackendName.LOKY
    if address is not None and name not in (BackendName.DASK, BackendName.RAY):
        raise click.UsageError("Expected --address with --backend dask or ray only.")
    if name is BackendName.SERIAL and jobs > 1:
        raise click.UsageError(f"Expected --jobs 1 with --backend serial instead got {jobs}.")
    if name is BackendName.SERIAL:
        return Serial()
    if name is BackendName.LOKY:
        return Loky(jobs)
    kind = Dask if name is BackendName.DASK else Ray
    return kind(address=address, jobs=jobs)


@dataclass(frozen=True, slots=True)
class _ConfiguredAttack:
    """Builds what is attacked from a run file; a worker reads the same data files."""

    configuration: Configuration
    noise_multiplier: float

    def __call__(self) -> Attacked:
        pair = attacked_pair(self.configuration)
        solver = self.configuration.solvers.noisy(self.noise_multiplier)
        return Attacked(solver.solve, pair.dataset, pair.neighbour)


def experiment_of(configuration: Configuration, made: Plan) -> Experiment:
    """Return the trials of the replay attack on a planned run."""
    return Experiment(
        _ConfiguredAttack(configuration, made.noise_multiplier),
        _fingerprint(configuration, made.noise_multiplier),
        seed=configuration.attack.seed,
        chunk=trials_at_once(
            parties=configuration.attack.parties,
            width=configuration.shape.parameters(configuration.solvers.loss),
            messages=len(made.events),
        ),
    )


def attacked_pair(configuration: Configuration) -> NeighbourPair:
    """Return the neighbouring data sets that the configuration's audit tells apart."""
    loss = configuration.solvers.loss
    dataset, index = configuration.load_attacked()
    if configuration.privacy.adjacency is Adjacency.ZERO_OUT_ONE:
        return zero_out(dataset, index=index, loss=loss)
    if configuration.attack.neighbour is NeighbourName.LABEL_FLIP:
        return flip_label(dataset, index=index, loss=loss)
    return opposite_gradients(dataset, index=index, loss=loss)


def _fingerprint(configuration: Configuration, noise_multiplier: float) -> str:
    """Return a hash of all that scores depend on besides the seed: files and code by content."""
    settings = configuration.attack
    attack = Attack(parties=settings.parties, neighbour=settings.neighbour)
    same = msgspec.structs.replace(configuration, attack=attack)
    data = configuration.data
    files = [Path(name) for name in (*data.files, *(() if data.schema is None else (data.schema,)))]
    contents = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    parts = (code_digest(_ROOMS), same.sha256, noise_multiplier.hex(), *contents)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
