"""Canaries chosen by gradients through the solver: the pair that the last model tells apart best.

`worst_start` moves the start so far off that every canary's slope is as large as any. From the
run's own start slopes bend, rounds forget, and the data make some directions of the model loud and
others still. So here the rows of the two canaries are climbed by the gradient of what they do to
the last model, taken through all iterations (metagradients: Boglioni et al. 2025,
arXiv 2507.15836; rows made for the audit: Yoon 2024, arXiv 2412.01756).

To first order in a record's weight, a record x with slope c_k in round k moves the last model by
sum over k of A_k c_k x, where A_k = eta_k J_T ... J_(k+1) and J are the Jacobians of the steps
along the run without noise; the noise of round k arrives through the same A_k. In coordinates where
that noise has variance 1, the distance of the two canaries' sums is the pair's mu to this order.
It guides a search and promises nothing: what a run shows of a pair is found by its trials, and for
a solver that keeps its promise no pair can show more than that.
"""

from dataclasses import dataclass
from itertools import product
from math import sqrt

import numpy as np
from scipy.linalg import solve_triangular

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.clipping import project_to_ball
from ..mechanisms.curators import SamplingCurator
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.inside import private_value
from ..mechanisms.protocols import EventList, FloatArray, Loss
from ..mechanisms.sampling import SimulationSampler
from ..solvers.sgd import DpSgd
from ..solvers.solver import starting_model
from .datasets import AuditDataset
from .neighbours import NeighbourPair

__all__ = ["TunedPair", "metagradient_pair"]

_CLIMBS = 60
"""Steps of a search from one start; a step that does not climb is halved."""
_STARTS = 4
"""Random directions to start from, besides the first axis and the loudest direction."""
_NUDGE = 1e-4
"""Of models and scores, for derivatives by central differences: they guide a search only."""


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
        models: w_k along the run without noise, shape (T, d).
        arrivals: whitened A_k, divided by the record's weight, shape (T, d, d).
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
    solver: DpSgd, dataset: AuditDataset, *, index: int, seed: int = 0
) -> TunedPair:
    """Return the pair, of all that a search finds, which the solver's last model shows best.

    The search starts from the longest rows of opposite labels (`opposite_gradients`) too, and keeps
    the best, so that to first order it finds no weaker pair.

    Args:
        solver: with noise, without hidden samples, of a loss with one score.
        dataset: under replace-one, or zero-out-one: then the neighbour has a null record.
        index: of the record in whose place the canary stands.
        seed: of the directions that the search starts from.

    Raises `InvalidParameter` for other solvers and relations.
    """
    if solver.scheme is not None or solver.noise_multiplier == 0.0:
        raise InvalidParameter("solver", solver, "one with noise and without hidden samples")
    if solver.loss.outputs != 1:
        raise InvalidParameter("loss", solver.loss, "one with a single score")
    shape = dataset.shape
    if shape.adjacency not in (Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE):
        raise InvalidParameter("adjacency", shape.adjacency, "replace-one or zero-out-one")
    effects = _effects(solver, dataset)
    nulled = shape.adjacency is Adjacency.ZERO_OUT_ONE
    rows, labels = _search(effects, shape.row_bound, shape.label_domain.extremes, seed, nulled)
    apart = effects.of(rows[0], labels[0]) - effects.of(rows[1], labels[1])
    mu = float(np.linalg.norm(apart))
    if mu == 0.0:
        raise InvalidParameter("solver", solver, "one whose last model depends on a record")
    # models go against gradients
    direction = -solve_triangular(effects.root.T, apart)
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


def _effects(solver: DpSgd, dataset: AuditDataset) -> _Effects:
    """Return what a record's gradients do to the last model, along the run without noise."""
    shape = dataset.shape
    parties, width = len(shape.parties), shape.features
    quiet = SamplingCurator(EventList(), SimulationSampler(0))
    model, nudges = starting_model(solver.start, width), _NUDGE * np.eye(width)
    models, sizes, jacobians, spread = [], [], [], 0.0
    for k in range(1, solver.rounds + 1):
        points = np.concatenate([model[None], model + nudges, model - nudges])
        gradient = solver.party_gradients(dataset, quiet, points)
        spread = solver.noise_multiplier * gradient.sensitivity.value / sqrt(parties)
        size = solver.steps.step(k, dimension=width, gradient_noise_std=spread)
        value = private_value(gradient)
        assert value is not None
        pull = solver.regularisation * solver.regulariser.gradient(points)
        stepped = points - size * (value.mean(axis=-2) + pull)
        models.append(model)
        sizes.append(size)
        jacobians.append((stepped[1 : width + 1] - stepped[width + 1 :]).T / (2 * _NUDGE))
        model = stepped[0]
    onwards, arrivals = np.eye(width), np.empty((solver.rounds, width, width))
    for k in reversed(range(solver.rounds)):
        arrivals[k] = sizes[k] * onwards
        onwards = onwards @ jacobians[k]
    covariance = spread**2 * np.einsum("kij,klj->il", arrivals, arrivals)
    root = np.linalg.cholesky(covariance)
    whitened = np.array([solve_triangular(root, one, lower=True) for one in arrivals])
    return _Effects(
        np.array(models),
        whitened / (shape.count * parties),
        root,
        solver.loss,
        np.inf if solver.clip is None else solver.clip,
    )


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
