"""Reference lines of experiments: what no noise, and no cooperation, would reach.

"Without noise" after some rounds is an algorithm that was stopped; "converged" is the optimum of
the objective, with the norm of its gradient in the record. A party that does not cooperate trains
on its own columns at the same enclosed epsilon.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from time import process_time

import numpy as np
from scipy.sparse import issparse

from ...accounting.planning import calibrate_noise_multiplier
from ...data import LabelledRecords
from ...mechanisms import Adjacency, DataShape, Event, EventList, PrivateDataset, SamplingCurator
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sampling import Sampler
from ...solvers import (
    ConsensusDpAdmm,
    ConstantSteps,
    DpSgd,
    Logistic,
    SgdState,
    consensus_defaults,
    logistic_optimum,
)
from ...solvers.planning import plan
from .cell import Cell, CellKind, CellPrivacy, Trace
from .sources import Source, measured, optimum
from .training import priced

_RIDGE = 1e-6
"""Weight of |w|²/2: enough for an optimum to exist on separable records, too little to move
accuracy.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converged:
    """Logistic regression without privacy, at its optimum.

    Args:
        source: of the records.
        columns: the number of first columns that it sees; None for all.
    """

    source: Source
    columns: int | None = None

    def privacy(self) -> CellPrivacy:
        """Return that there is none."""
        return _unprotected("the optimum itself")

    def run(self, *, split_seed: int, sampler: Sampler) -> Trace:
        """Find the optimum, which has no noise, and measure it.

        The gradient's norm stands beside the numbers: it certifies how far the optimum may still
        be.
        """
        train, test = self.source.split(split_seed)
        start = process_time()
        rows = _with_constant(train, self.columns)
        found = logistic_optimum(rows, train.labels, regularisation=_RIDGE)
        seconds = process_time() - start
        least = optimum(self.source, split_seed)
        model, offset = _for_all_columns(found.model, self.source.features)
        values = measured(model, train, test, least=least, offset=offset)
        values["gradient_norm"] = found.gradient_norm
        return Trace(rounds=(0,), values={k: (v,) for k, v in values.items()}, seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Gradient descent on the mean logistic loss of all columns, without noise, from 0.

    With split columns a round is one exchange: parties send their parts of the scores, and learn
    the slopes. The step is 1/L for the records' own L, a quarter of the largest eigenvalue of their
    second moment.

    Args:
        source: of the records.
        rounds: T.
    """

    source: Source
    rounds: int

    def privacy(self) -> CellPrivacy:
        """Return that there is none."""
        return _unprotected("every gradient")

    def run(self, *, split_seed: int, sampler: Sampler) -> Trace:
        """Descend, and measure the training loss after every round; there is no noise."""
        train, _ = self.source.split(split_seed)
        least, start = optimum(self.source, split_seed), process_time()
        rows, labels, losses = _columns(train, None), train.labels, list[float]()
        step = 4.0 * len(rows) / float(np.linalg.eigvalsh(rows.T @ rows)[-1])
        model = np.zeros(rows.shape[1])
        for _ in range(self.rounds):
            slopes = Logistic().derivative(rows @ model, labels)
            model -= step * (slopes @ rows) / len(rows)
            losses.append(float(Logistic().value(rows @ model, labels).mean()))
        return _history(losses, least, process_time() - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyDescent:
    """Gradient descent on the mean logistic loss of all columns, by noisy gradients, from 0.

    What a descent over split columns reaches at an epsilon if the exchange of scores shows nothing
    and costs nothing: only every round's gradient leaves, a number a column and not one a record.
    The step is 4, 1/L for rows of norm at most 1: the records' own L is private.

    Args:
        source: of the records.
        rounds: T.
        epsilon: enclosed.
        delta: of the guarantee.
    """

    source: Source
    rounds: int
    epsilon: float
    delta: float

    def solver(self, noise_multiplier: float) -> DpSgd:
        """Return the descent at a noise."""
        return DpSgd(self.rounds, noise_multiplier, ConstantSteps(4.0), regularisation=0.0)

    def shape(self) -> DataShape:
        """Return what is public about the records."""
        relation = Adjacency.REPLACE_ONE
        return DataShape(("all columns",), self.source.train, self.source.features, 1.0, relation)

    def privacy(self) -> CellPrivacy:
        """Return the promise and the truth, from a plan."""
        events = plan(self.solver(_noise_of(self)), self.shape())
        return priced(events, delta=self.delta, nominal=self.epsilon)

    def run(self, *, split_seed: int, sampler: Sampler) -> Trace:
        """Descend, and measure the training loss after every round."""
        train, _ = self.source.split(split_seed)
        least, start = optimum(self.source, split_seed), process_time()
        shape, rows, losses = self.shape(), _columns(train, None), list[float]()
        dataset = PrivateDataset(
            rows,
            train.labels,
            adjacency=shape.adjacency,
            row_bound=shape.row_bound,
            parties=shape.parties,
        )

        def observe(_: int, state: SgdState) -> None:
            losses.append(float(Logistic().value(rows @ state.model, train.labels).mean()))

        curator = SamplingCurator(EventList(), sampler)
        self.solver(_noise_of(self)).solve(dataset, curator, observe=observe)
        return _history(losses, least, process_time() - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalParty:
    """A party that trains on its own columns alone: ADMM at the consensus of one.

    Args:
        source: of the records.
        columns: the number of first columns, which are its own.
        epsilon: enclosed.
        delta: of the guarantee.
    """

    source: Source
    columns: int
    epsilon: float
    delta: float

    def shape(self) -> DataShape:
        """Return what is public about its records; the last column is constant."""
        relation = Adjacency.REPLACE_ONE
        return DataShape(("local party",), self.source.train, self.columns + 1, 1.0, relation)

    def privacy(self) -> CellPrivacy:
        """Return the promise and the truth, from a plan."""
        events = plan(_calibrated(self), self.shape())
        return priced(events, delta=self.delta, nominal=self.epsilon)

    def run(self, *, split_seed: int, sampler: Sampler) -> Trace:
        """Train once, and measure the model.

        Args:
            split_seed: of the division into training and test records.
            sampler: of all noise.
        """
        train, test = self.source.split(split_seed)
        shape = self.shape()
        dataset = PrivateDataset(
            _with_constant(train, self.columns),
            train.labels,
            adjacency=shape.adjacency,
            row_bound=shape.row_bound,
            parties=shape.parties,
        )
        solver = _calibrated(self)
        start = process_time()
        state = solver.solve(dataset, SamplingCurator(EventList(), sampler))
        seconds = process_time() - start
        model, offset = _for_all_columns(state.model, self.source.features)
        least = optimum(self.source, split_seed)
        found = measured(model, train, test, least=least, offset=offset)
        values = {name: (value,) for name, value in found.items()}
        return Trace(rounds=(solver.rounds,), values=values, seconds=seconds)


def converged(source: Source, *, columns: int | None = None, line: str = "converged") -> Cell:
    """Return the cell of an optimum.

    Args:
        source: of the records.
        columns: the number of first columns that it sees; None for all.
        line: its name in the legend.
    """
    task = Converged(source=source, columns=columns)
    return Cell(line=line, kind=CellKind.NON_PRIVATE, task=task)


def _history(losses: list[float], least: float, seconds: float) -> Trace:
    """Return the training losses after every round, also above the least."""
    values = {"train_loss": tuple(losses), "excess_loss": tuple(loss - least for loss in losses)}
    return Trace(rounds=tuple(range(1, len(losses) + 1)), values=values, seconds=seconds)


def _unprotected(what: str) -> CellPrivacy:
    """Return that there is no privacy, as `what` leaves."""
    return CellPrivacy(
        delta=1e-5,
        nominal=None,
        certified=None,
        noisy_part=None,
        noise_std=0.0,
        noise_multiplier=None,
        method="",
        unprotected=(what,),
    )


def _columns(records: LabelledRecords, columns: int | None) -> FloatArray:
    """Return rows of the first columns; None for all."""
    features = records.features
    return np.asarray(features.toarray() if issparse(features) else features)[:, :columns]


def _with_constant(records: LabelledRecords, columns: int | None) -> FloatArray:
    """Return rows of some columns and a constant 1, divided by sqrt(2)."""
    rows = _columns(records, columns)
    return np.asarray(np.hstack([rows, np.ones((len(rows), 1))]) * np.sqrt(0.5))


def _for_all_columns(model: FloatArray, features: int) -> tuple[FloatArray, float]:
    """Return weights of all columns as they are, and the offset of scores."""
    weights = np.zeros(features)
    weights[: len(model) - 1] = model[:-1] * np.sqrt(0.5)
    return weights, float(model[-1] * np.sqrt(0.5))


@lru_cache(maxsize=64)
def _calibrated(task: LocalParty) -> ConsensusDpAdmm:
    """Return the solver with the least noise that certifies the task's target."""
    shape = task.shape()
    solver = consensus_defaults(
        shape, epsilon=task.epsilon, delta=task.delta, column=shape.features - 1
    )

    def planned(noise_multiplier: float) -> tuple[Event, ...]:
        return plan(replace(solver, noise_multiplier=noise_multiplier), shape)

    found = calibrate_noise_multiplier(planned, target_epsilon=task.epsilon, delta=task.delta)
    return replace(solver, noise_multiplier=found.noise_multiplier)


@lru_cache(maxsize=64)
def _noise_of(task: NoisyDescent) -> float:
    """Return the least noise multiplier that certifies the task's target."""
    found = calibrate_noise_multiplier(
        lambda z: plan(task.solver(z), task.shape()),
        target_epsilon=task.epsilon,
        delta=task.delta,
    )
    return found.noise_multiplier
