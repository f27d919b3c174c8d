"""Canaries chosen by gradients through the solver: the pair that the last model tells apart best.

`worst_start` moves the start so far off that every canary's slope is as large as any. From the
run's own start slopes bend, rounds forget, and the data make some directions of the model loud and
others still. So here the rows of the two canaries are climbed by the gradient of what they do to
the last model, taken through all iterations (metagradients: Boglioni et al. 2025,
arXiv 2507.15836; rows made for the audit: Yoon 2024, arXiv 2412.01756).

To first order in a record's weight, a record x with slope c_k in round k moves the last model by
sum over k of A_k c_k x, where A_k is the derivative of the last model by the gradient of round k
along the run without noise: each coordinate of each message is pushed a little. In coordinates
where the last model's noise has variance 1, the distance of the two canaries' sums is the pair's mu
to this order. It guides a search and promises nothing: what a run shows of a pair is found by its
trials, and for a solver that keeps its promise no pair can show more than that.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import solve_triangular

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.clipping import project_to_ball
from ..mechanisms.curators import Release, SamplingCurator
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.protocols import EventList, FloatArray, Loss
from ..mechanisms.sampling import SimulationSampler
from ..solvers.sgd import DpSgd, SgdState
from ..solvers.solver import ModelSolver, starting_model
from ..solvers.star import DpAdmm, StarState
from .curators import NoiselessCurator, shown_value
from .datasets import AuditDataset
from .neighbours import NeighbourPair

__all__ = ["TunedPair", "last_models", "metagradient_pair", "noise_root"]

_CLIMBS = 60
"""Steps of a search from one start; a step that does not climb is halved."""
_STARTS = 4
"""Random directions to start from, besides the first axis and the loudest direction."""
_NUDGE = 1e-4
"""Of messages and scores, for derivatives by central differences: they guide a search only."""
_NOISY_RUNS = (1000, 50)
"""Runs for a covariance: at least so many, and so many a parameter."""
_CHUNK = 100
"""Runs at once: each holds a score of every record."""
_ROUNDING = 1e-12
"""Of a model's parameter, relative: noise is more."""


@dataclass(frozen=True, slots=True, eq=False)
class TunedPair:
    """Two canaries, and how the last model tells them apart best to first order.

    Args:
        pair: the two data sets; its share is None, as gaps depend on the model.
        mu: of the last model for this pair, to first order: a yardstick for attacks, no bound.
        direction: of shape (d,) and length 1: the model's coordinate along it is the score.
        row, label: of the canary in `pair.dataset`, shape (d,).
    """

    pair: NeighbourPair
    mu: float
    direction: FloatArray
    row: FloatArray
    label: float


@dataclass(frozen=True, slots=True, eq=False)
class _Effects:
    """What a record's gradients do to the last model, in units of its noise.

    Args:
        models: where the gradients of each round are taken, without noise, shape (T, d).
        arrivals: whitened A_k, times the record's weight, shape (T, d, d).
        root: L, lower triangular, of the last model's covariance L Lᵀ.
        loss: of the solver.
        cut: norm that gradients are cut to; infinity for none.
    """

    models: FloatArray
    arrivals: FloatArray
    root: FloatArray
    loss: Loss
    cut: float

    def slopes(self, row: FloatArray, label: float) -> tuple[FloatArray, FloatArray]:
        """Return c_k, cut as the solver cuts, of shape (T,), and its gradient by the row (T, d)."""
        scores = self.models @ row
        plain, bend = self._derivative(scores, label), np.zeros_like(scores)
        for sign in (1.0, -1.0):
            bend += sign * self._derivative(scores + sign * _NUDGE, label) / (2 * _NUDGE)
        bends = bend[:, None] * self.models
        length = float(np.linalg.norm(row))
        if length * np.abs(plain).max() <= self.cut:
            return plain, bends
        over, cut = np.abs(plain) * length > self.cut, np.sign(plain) * self.cut / length
        shrinking = -np.outer(cut, row) / length**2
        return np.where(over, cut, plain), np.where(over[:, None], shrinking, bends)

    def _derivative(self, scores: FloatArray, label: float) -> FloatArray:
        return self.loss.derivative(scores.copy(), np.full(scores.size, label))

    def of(self, row: FloatArray, label: float) -> FloatArray:
        """Return the whitened effect on the last model, shape (d,)."""
        slopes, _ = self.slopes(row, label)
        return np.asarray(np.tensordot(slopes, self.arrivals, axes=1) @ row)

    def climb(self, row: FloatArray, label: float, apart: FloatArray) -> FloatArray:
        """Return the gradient by the row of <apart, of(row, label)>, shape (d,)."""
        slopes, bends = self.slopes(row, label)
        pulls = np.einsum("kij,i->kj", self.arrivals, apart)
        return np.asarray(slopes @ pulls + (pulls @ row) @ bends)


def metagradient_pair(
    solver: DpSgd | DpAdmm, dataset: AuditDataset, *, index: int, seed: int = 0
) -> TunedPair:
    """Return the pair, of all that a search finds, which the solver's last model shows best.

    The search starts from the longest rows of opposite labels (`opposite_gradients`) too, and keeps
    the best, so that to first order it finds no weaker pair.

    Args:
        solver: with noise, without hidden samples, of a loss with one score.
        dataset: under replace-one, or zero-out-one: then the neighbour has a null record.
        index: of the record in whose place the canary stands.
        seed: of noise, and of the directions that the search starts from; not that of the trials
            that judge.

    Raises `InvalidParameter` for other solvers and relations, and where parties' noise differs.
    """
    if isinstance(solver, DpSgd) and solver.scheme is not None:
        raise InvalidParameter("solver", solver, "one without hidden samples")
    if solver.loss.outputs != 1:
        raise InvalidParameter("loss", solver.loss, "one with a single score")
    shape = dataset.shape
    if shape.adjacency not in (Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE):
        raise InvalidParameter("adjacency", shape.adjacency, "replace-one or zero-out-one")
    if len(set(shape.counts)) > 1:
        raise InvalidParameter("counts", shape.counts, "equal: parties with noise of their own")
    effects = _effects(solver, dataset, index=index, seed=seed)
    nulled = shape.adjacency is Adjacency.ZERO_OUT_ONE
    rows, labels = _search(effects, shape.row_bound, shape.label_domain.extremes, seed, nulled)
    apart = effects.of(rows[0], labels[0]) - effects.of(rows[1], labels[1])
    mu = float(np.linalg.norm(apart))
    if mu == 0.0:
        raise InvalidParameter("solver", solver, "one whose last model depends on a record")
    direction = solve_triangular(effects.root.T, apart)
    words = "a null record" if nulled else "another"
    return TunedPair(
        NeighbourPair(
            dataset.with_record(index, features=rows[0], label=labels[0]),
            dataset.with_record(index, features=rows[1], label=None if nulled else labels[1]),
            None,
            f"a canary tuned through the iterations in the place of record {index}, or {words}",
        ),
        mu,
        direction / np.linalg.norm(direction),
        rows[0],
        labels[0],
    )


class _Pushes(NoiselessCurator):
    """Sends values without noise, but for one push in each run: of one coordinate of one message.

    Args:
        party: whose messages are pushed.
        rounds: T, with one message each; run k·d + j has coordinate j of message k pushed.
        size: of a push, in units of the message's sensitivity; 0 for one run without any.
    """

    def __init__(self, party: int, rounds: int, size: float) -> None:
        self._party = party
        self._rounds = rounds
        self._size = size
        self.sensitivities: list[float] = []

    def _deliver(self, release: Release) -> FloatArray:
        value, place = shown_value(release), len(self.sensitivities)
        self.sensitivities.append(release.sensitive.sensitivity.value)
        if self._size == 0.0:
            return np.array(value)
        width = value.shape[-1]
        sent = np.array(np.broadcast_to(value, (self._rounds * width, *value.shape[-2:])))
        push = self._size * self.sensitivities[-1] * np.eye(width)
        sent[place * width : (place + 1) * width, self._party] += push
        return sent


def _effects(solver: DpSgd | DpAdmm, dataset: AuditDataset, *, index: int, seed: int) -> _Effects:
    """Return what gradients of record `index` do to the last model, along the run without noise."""
    shape = dataset.shape
    clip, towards = (solver.clip, 1.0) if isinstance(solver, DpSgd) else (None, -1.0)
    party = shape.parties.index(_party_of(dataset, index))
    points = [starting_model(solver.start, shape.features)]

    def observe(_: int, state: SgdState | StarState) -> None:
        # where the party's next gradient is taken
        own = state.messages[party] if isinstance(state, StarState) else state.model
        points.append(own.copy())

    plain = _Pushes(party, solver.rounds, 0.0)
    solver.solve(dataset, plain, observe=observe)
    pushed = [
        solver.solve(dataset, _Pushes(party, solver.rounds, size)).model
        for size in (_NUDGE, -_NUDGE)
    ]
    moved = ((pushed[0] - pushed[1]) / (2 * _NUDGE)).reshape(solver.rounds, shape.features, -1)
    gradient = dataset.sum_gradient(solver.loss, points[0], radius=clip).sensitivity.value
    root = noise_root(solver, dataset, seed=seed)
    # a push of a sensitivity is what a gradient as long as the sum's sensitivity does
    return _Effects(
        np.array(points[:-1]),
        towards * np.array([_whitened(one.T, root) for one in moved]) / gradient,
        root,
        solver.loss,
        np.inf if clip is None else clip,
    )


def _party_of(dataset: AuditDataset, index: int) -> str:
    """Return who holds a record."""
    row = np.eye(dataset.shape.features)[0] * dataset.shape.row_bound
    one, other = (dataset.with_record(index, features=sign * row) for sign in (1.0, -1.0))
    party = one.differing_party(other)
    assert party is not None
    return party


def noise_root(solver: ModelSolver, dataset: AuditDataset, *, seed: int) -> FloatArray:
    """Return the lower triangular root of the last model's covariance, shape (p, p).

    Args:
        solver: with noise in every parameter of its model; `InvalidParameter` without.
        dataset: that the runs are on.
        seed: of the runs.
    """
    width = last_models(solver, dataset, seed=seed, runs=1).shape[-1]
    least, each = _NOISY_RUNS
    models = last_models(solver, dataset, seed=seed, runs=max(least, each * width))
    covariance = np.cov(models, rowvar=False).reshape(width, width)
    spread = np.diag(covariance)
    # what is left of equal models is rounding
    if np.any(np.sqrt(spread) <= _ROUNDING * np.abs(models).max(axis=0)):
        raise InvalidParameter("solver", solver, "one with noise in every parameter")
    # exact dependence among parameters leaves a covariance singular
    return np.linalg.cholesky(covariance + 1e-9 * np.diag(spread)).astype(np.float64)


def last_models(solver: ModelSolver, dataset: AuditDataset, *, seed: int, runs: int) -> FloatArray:
    """Return last models of so many runs, shape (runs, p), with noise of the seed."""
    models: list[FloatArray] = []
    for number, start in enumerate(range(0, runs, _CHUNK)):
        sampler = SimulationSampler.stream(seed, number)
        curator = SamplingCurator(EventList(), sampler, trials=min(_CHUNK, runs - start))
        models.append(solver.solve(dataset, curator).model)
    return np.concatenate(models)


def _whitened(models: FloatArray, root: FloatArray) -> FloatArray:
    """Return differences of models (p, ...) in units of noise that has this root."""
    return np.asarray(solve_triangular(root, models, lower=True))


_Rows = tuple[FloatArray, FloatArray]
_Labels = tuple[float, float]


def _search(
    effects: _Effects, bound: float, extremes: tuple[float, ...], seed: int, nulled: bool
) -> tuple[_Rows, _Labels]:
    """Return the two rows, shape (d,), and labels that are furthest apart of all searches.

    Args:
        effects: of records on the last model.
        bound: of rows' lengths.
        extremes: labels with the largest slopes.
        seed: of random directions.
        nulled: whether the second row is 0, always.
    """
    width = effects.models.shape[1]
    random = np.random.default_rng(seed).normal(size=(_STARTS, width))
    loudest = np.linalg.svd(effects.arrivals.sum(axis=0))[2][:1]
    starts = [*np.eye(width)[:1], *loudest, *random]
    found: list[tuple[float, _Rows, _Labels]] = []
    for start, labels in product(starts, product(extremes, extremes)):
        row = bound * start / np.linalg.norm(start)
        for other in (row, -row):
            rows = (row, np.zeros(width) if nulled else other)
            distance, rows = _climbed(effects, rows, labels, bound, nulled)
            found.append((distance, rows, labels))
    _, rows, labels = max(found, key=lambda one: one[0])
    return rows, labels


def _climbed(
    effects: _Effects, rows: _Rows, labels: _Labels, bound: float, nulled: bool
) -> tuple[float, _Rows]:
    """Return the distance of effects that steps uphill from the rows reach, and the rows there."""

    def apart(of: _Rows) -> FloatArray:
        return effects.of(of[0], labels[0]) - effects.of(of[1], labels[1])

    gap, reach = apart(rows), bound
    for _ in range(_CLIMBS):
        uphill = [effects.climb(rows[0], labels[0], gap), -effects.climb(rows[1], labels[1], gap)]
        if nulled:
            uphill[1][:] = 0.0
        length = float(np.linalg.norm(uphill))
        if length == 0.0:
            break
        one, two = (
            project_to_ball(row + reach * slope / length, bound)
            for row, slope in zip(rows, uphill, strict=True)
        )
        tried = apart((one, two))
        if np.linalg.norm(tried) > np.linalg.norm(gap):
            rows, gap = (one, two), tried
        else:
            reach /= 2
    return float(np.linalg.norm(gap)), rows
