"""Tasks whose parties hold disjoint records: four of the five papers.

A paper says how its algorithm is built as published and as repaired (`Method`); calibration,
pricing, training and measuring are the same for all.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf, isfinite
from time import process_time
from typing import Any

from ...accounting.guarantees import guarantee
from ...mechanisms import (
    Adjacency,
    DataShape,
    Event,
    EventList,
    GaussianStep,
    PrivateDataset,
    UnprotectedRelease,
)
from ...mechanisms.events import Mechanism
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sampling import Sampler
from ...runs.pipeline import Terms, calibrate, train_on
from ...solvers import ModelSolver
from ...solvers.planning import plan
from .cell import CellKind, CellPrivacy, Trace
from .sources import Source, measured, optimum


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """How a paper's algorithm is built, for a promise.

    Args:
        kind: whose noise.
        epsilon: the paper's parameter.
        delta: the paper's parameter.
    """

    kind: CellKind
    epsilon: float = 1.0
    delta: float = 1e-5

    @property
    def target(self) -> float:
        """The total epsilon that the paper promises; what the repaired twin is calibrated to."""
        return self.epsilon

    @abstractmethod
    def repaired(self, shape: DataShape, noise_multiplier: float) -> ModelSolver:
        """Return the repaired algorithm; without privacy for a noise multiplier of 0.

        Args:
            shape: what is public about the records.
            noise_multiplier: noise over sensitivity, >= 0.
        """

    @abstractmethod
    def published(self, shape: DataShape) -> ModelSolver:
        """Return the algorithm and noise of the paper."""

    def algorithm(self, shape: DataShape) -> ModelSolver:
        """Return the algorithm that is run."""
        if self.kind is CellKind.PUBLISHED:
            return self.published(shape)
        if self.kind is CellKind.NON_PRIVATE:
            return self.repaired(shape, 0.0)
        return self.repaired(shape, _calibrated(self, shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTask:
    """A method on the records of `parties` parties, dealt to them at random.

    Args:
        source: of the records.
        method: of training.
        parties: their number.
        adjacency: of the guarantee.
        history: whether to measure after every round, or after the last one only.
    """

    source: Source
    method: Method
    parties: int
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    history: bool = False

    def shape(self) -> DataShape:
        """Return what is public about the records."""
        names = tuple(f"party {i + 1}" for i in range(self.parties))
        count = self.source.train // self.parties
        return DataShape(names, count, self.source.features, 1.0, self.adjacency)

    def privacy(self) -> CellPrivacy:
        """Return the promise and the truth, from a plan."""
        method, shape = self.method, self.shape()
        nominal = None if method.kind is CellKind.NON_PRIVATE else method.target
        events = plan(method.algorithm(shape), shape)
        return priced(events, delta=method.delta, nominal=nominal)

    def run(self, *, split_seed: int, sampler: Sampler) -> Trace:
        """Train once, and measure the public models.

        Args:
            split_seed: of the division into training and test records, the same for all cells of a
                run.
            sampler: of all noise.
        """
        shape = self.shape()
        train, test = self.source.split(split_seed)
        train = train.divided(shape.parties)
        dataset = PrivateDataset(
            train.features,
            train.labels,
            adjacency=shape.adjacency,
            row_bound=shape.row_bound,
            party_of=train.party_of,
            parties=train.parties,
        )
        algorithm = self.method.algorithm(shape)
        models: list[FloatArray] = []
        last = 0

        def observe(k: int, state: Any) -> None:
            nonlocal last
            last = k
            if self.history:
                models.append(state.model)

        start = process_time()
        final = train_on(partial(algorithm.solve, observe=observe), dataset, EventList(), sampler)
        seconds = process_time() - start
        rounds = tuple(range(1, last + 1)) if self.history else (last,)
        least = optimum(self.source, split_seed)
        found = [
            measured(model, train, test, least=least)
            for model in (models if models else [final.model])
        ]
        values = {name: tuple(of_model[name] for of_model in found) for name in found[0]}
        return Trace(rounds=rounds, values=values, seconds=seconds)


def priced(events: tuple[Event, ...], *, delta: float, nominal: float | None) -> CellPrivacy:
    """Return what events are worth beside what is promised.

    Args:
        events: of a plan.
        delta: at which epsilon is wanted, in (0, 1).
        nominal: the promised epsilon, or None.

    Noise on nothing private, as of a public label, counts as no noise: the epsilon is of what tells
    something.
    """
    noisy = tuple(event for event in events if _tells(event.mechanism))
    found = guarantee(noisy, delta=delta) if noisy else None
    epsilon = inf if found is None else found.epsilon.upper_float
    reasons = (e.mechanism.reason for e in events if isinstance(e.mechanism, UnprotectedRelease))
    unprotected = tuple(dict.fromkeys(reasons))
    first, multiplier = noisy[0].mechanism if noisy else None, None
    if isinstance(first, GaussianStep) and first.noise_std > 0:
        multiplier = first.noise_std / first.sensitivity.value
    finite = epsilon if isfinite(epsilon) else None
    return CellPrivacy(
        delta=delta,
        nominal=nominal,
        certified=None if unprotected else finite,
        noisy_part=finite,
        noise_std=float(getattr(first, "noise_std", 0.0)),
        noise_multiplier=multiplier,
        method="" if found is None else found.method,
        unprotected=unprotected,
    )


def _tells(mechanism: Mechanism) -> bool:
    """Return whether a mechanism is noise on something private: there is noise on nothing, too."""
    if isinstance(mechanism, GaussianStep):
        return mechanism.sensitivity.value > 0
    return not isinstance(mechanism, UnprotectedRelease)


@lru_cache(maxsize=256)
def _calibrated(method: Method, shape: DataShape) -> float:
    """Return the least noise multiplier that certifies the method's target.

    Kept: cells that differ in runs only ask for the same search.
    """

    def events(noise_multiplier: float) -> tuple[Event, ...]:
        return plan(method.repaired(shape, noise_multiplier), shape)

    return calibrate(events, epsilon=method.target, terms=Terms(method.delta)).noise_multiplier
