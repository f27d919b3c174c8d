"""Exact oracles: what an adversary who sees only a part of a run can learn, where that is linear.

With a loss whose derivative is linear in the scores (squared, linear) and neighbours that differ in
labels only, everything a solver makes public is an affine function of its noise, with the same
linear part on both data sets. Any view of it is then normal with one covariance S = A Aᵀ and means
that differ by some gap g: telling the worlds apart by the view is exactly mu-GDP with
mu² = gᵀ S⁺ g (Dong, Roth, Su 2022, section 2), and the log-likelihood ratio is linear in the view.
A is found by running the solver once on every unit vector of noise.

These are yardsticks for attacks: on the whole transcript replay is optimal; what the server's last
model or one agent's ears are worth is known exactly only here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np

from dpledger.audits.bounds import Scores
from dpledger.mechanisms.curators import Curator, Message, SamplingCurator
from dpledger.mechanisms.errors import InvalidParameter, require_nonnegative, require_positive_int
from dpledger.mechanisms.private_data import PrivateDataset
from dpledger.mechanisms.protocols import EventList, FloatArray, Provenance
from dpledger.mechanisms.sampling import BitGenerator, Sampler, SimulationSampler

__all__ = [
    "LinearView",
    "ObservedSolver",
    "PublicRun",
    "View",
    "last_model",
    "linear_view",
    "messages_of",
    "models",
    "transcript",
    "view_scores",
]

_AFFINE_TOLERANCE = 1e-7
"""Relative to the largest noise; minimisers should be found to well below. Noise smaller than this
part of the largest counts as none: a gap there is told with certainty."""


class _Observed(Protocol):
    @property
    def model(self) -> FloatArray: ...


class ObservedSolver(Protocol):
    """A solver that shows its public state after every round."""

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Callable[[int, Any], None]
    ) -> object:
        """Run all rounds."""
        ...


@dataclass(frozen=True, slots=True)
class PublicRun:
    """Everything public in B trials of a run: models (B, d) after each round, and all messages."""

    models: Sequence[FloatArray]
    messages: Sequence[Message]


View = Callable[[PublicRun], FloatArray]
"""What an adversary sees of a run: an array of shape (B, m)."""


def transcript(run: PublicRun) -> FloatArray:
    """Return all messages of all parties."""
    return _flat([message.content for message in run.messages])


def models(run: PublicRun) -> FloatArray:
    """Return the sequence of models: what the server broadcasts, or the consensus."""
    return _flat(run.models)


def last_model(run: PublicRun) -> FloatArray:
    """Return the model after the last round: what is published when only the result is."""
    return _flat(run.models[-1:])


def messages_of(*parties: int) -> View:
    """Return the view of one who hears these parties' messages only: a neighbour in a network."""

    def received(run: PublicRun) -> FloatArray:
        return _flat([message.content[..., list(parties), :] for message in run.messages])

    return received


def _flat(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([part.reshape(part.shape[0], -1) for part in parts], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class LinearView:
    """The exact law of a view: normal with one covariance, and means (m,) on D and D'.

    Args:
        dataset_mean, neighbour_mean: the two means.
        mu: telling D from D' by the view is exactly mu-GDP; infinite where no noise covers the gap.
            In double precision: a yardstick, good to about the solver's own precision over the
            smallest noise that counts. Scores of a view are judged by counts, whatever mu says.
        weights: of the view's coordinates in the log-likelihood ratio, shape (m,).
    """

    dataset_mean: FloatArray
    neighbour_mean: FloatArray
    mu: float
    weights: FloatArray

    def scores(self, views: FloatArray) -> FloatArray:
        """Return the log-likelihood ratios of views (B, m): the optimal score for this view."""
        middle = (self.dataset_mean + self.neighbour_mean) / 2
        return np.asarray((views - middle) @ self.weights)


def linear_view(
    solver: ObservedSolver, dataset: PrivateDataset, neighbour: PrivateDataset, view: View
) -> LinearView:
    """Return the exact law of a view on both data sets.

    Memory is the square of the number of noise coordinates, (N + 3)·N numbers for one transcript.

    Raises `InvalidParameter` if the view is not affine in the noise, or if the data sets differ in
    more than the means.
    """
    laws = [_affine(solver, data, view) for data in (dataset, neighbour)]
    (first, factor), (second, other) = laws
    if not np.allclose(factor, other, rtol=0, atol=_AFFINE_TOLERANCE * np.abs(factor).max()):
        raise InvalidParameter(
            "neighbour", "a data set with another covariance", "one that differs in labels only"
        )
    gap = first - second
    left, singular, _ = np.linalg.svd(factor, full_matrices=False)
    kept = singular > singular[0] * _AFFINE_TOLERANCE
    parts = left[:, kept].T @ gap
    weights = left[:, kept] @ (parts / singular[kept] ** 2)
    hidden = np.linalg.norm(gap - left[:, kept] @ parts)
    # a difference that no noise covers is seen with certainty
    words = hidden > _AFFINE_TOLERANCE * np.linalg.norm(gap)
    mu = inf if words else float(np.linalg.norm(parts / singular[kept]))
    return LinearView(first, second, mu, weights)


def view_scores(
    solver: ObservedSolver,
    dataset: PrivateDataset,
    neighbour: PrivateDataset,
    view: View,
    *,
    trials: int,
    seed: int,
    chunk: int = 1000,
) -> Iterator[Scores]:
    """Yield the optimal scores of `trials` runs on each data set, a chunk at a time.

    Raises as `linear_view` does, and `InvalidParameter` for a view without noise.
    """
    require_positive_int("trials", trials)
    require_positive_int("chunk", chunk)
    require_nonnegative("seed", seed)
    law = linear_view(solver, dataset, neighbour, view)
    if law.mu == inf:
        raise InvalidParameter("mu", law.mu, "finite: this view tells the data sets apart")
    for number, start in enumerate(range(0, trials, chunk)):
        size = min(chunk, trials - start)
        views = [
            view(_run(solver, data, _sampler(seed, world, number), size))
            for world, data in enumerate((dataset, neighbour))
        ]
        yield Scores(*(law.scores(seen) for seen in views))


def _sampler(seed: int, world: int, number: int) -> SimulationSampler:
    """Return the stream that the replay attack uses for this world and chunk."""
    return SimulationSampler.stream(seed, world, number, bits=BitGenerator.SFC64)


class _PresetNoise:
    """Noise fixed beforehand, one row a trial; without rows it counts and answers zeros."""

    provenance = Provenance("preset", 0, simulation=True)

    def __init__(self, rows: FloatArray | None = None) -> None:
        self._rows = rows
        self.used = 0

    def gaussian(self, value: FloatArray, noise_std: float) -> FloatArray:
        """Return `value` plus the next coordinates of every row, scaled."""
        return value + noise_std * self._next(value.shape)

    def _next(self, shape: tuple[int, ...]) -> FloatArray:
        size = int(np.prod(shape[1:]))
        place, self.used = self.used, self.used + size
        if self._rows is None:
            return np.zeros(shape)
        return self._rows[:, place : self.used].reshape(shape).copy()

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Refuse: a sampled run is no affine function of its noise."""
        raise InvalidParameter("solver", "one that samples records", "one that does not")


def _run(
    solver: ObservedSolver, dataset: PrivateDataset, sampler: Sampler, trials: int
) -> PublicRun:
    curator = SamplingCurator(EventList(), sampler, trials=trials, record=True)
    seen: list[FloatArray] = []

    def observe(_: int, state: _Observed) -> None:
        seen.append(np.array(state.model))

    solver.solve(dataset, curator, observe=observe)
    return PublicRun(seen, curator.transcript)


def _affine(
    solver: ObservedSolver, dataset: PrivateDataset, view: View
) -> tuple[FloatArray, FloatArray]:
    """Return mean (m,) and factor (m, N) of a view that is mean + factor @ noise."""
    counter = _PresetNoise()
    _run(solver, dataset, counter, 1)
    size = counter.used
    if size == 0:
        raise InvalidParameter("noise", 0, "in at least one message")
    # two more rows, of common size, try whether the parts add up
    trial = np.random.default_rng(size).normal(scale=3.0, size=(2, size))
    rows = np.concatenate([np.zeros((1, size)), np.eye(size), trial])
    views = view(_run(solver, dataset, _PresetNoise(rows), len(rows)))
    mean, factor = views[0], (views[1:-2] - views[0]).T
    expected = mean + trial @ factor.T
    # in units of what the noise does: a bend is no smaller for being in small numbers
    size_of_terms = float(np.abs(trial).max() * np.abs(factor).max())
    if not np.allclose(views[-2:], expected, rtol=0, atol=_AFFINE_TOLERANCE * size_of_terms):
        raise InvalidParameter("solver", solver, "affine in its noise on these data")
    return mean, factor
