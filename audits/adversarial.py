"""Adversarial canaries: rows climbed through whole runs, for any solver that ends in a model.

`metagradient` follows a record's gradients through the messages of DP-SGD and DP-ADMM. Here nothing
is known of the algorithm: it is run on data that hold the canary, with the same noise for every
canary, and the score of a pair, the distance of its mean last models in standard deviations of
their noise, is climbed along its gradient with respect to the rows (adversarial samples as
canaries: Nasr, Song, Thakurta, Papernot, Carlini 2021, arXiv 2101.04535). A row stays within its
bound, and labels are those with the largest slopes. It costs 48 data sets a feature, a hundred runs
of each: seconds for ten features, minutes for a hundred.

The score is a yardstick and no bound: the search learned on the very noise that it is measured in,
and last models need not be normal. What a run shows of a pair is found by trials of their own.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import solve_triangular

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.clipping import project_to_ball
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.protocols import FloatArray
from ..solvers.solver import ModelSolver
from .datasets import AuditDataset
from .metagradient import TunedPair, last_models, noise_root
from .neighbours import NeighbourPair

__all__ = ["adversarial_pair"]

_CLIMBS = 12
"""Steps uphill; one that does not climb is halved. Each looks at four data sets a feature."""
_STARTS = 6
"""Random directions to start from, besides the model and the direction with the least noise."""
_NUDGE = 1e-4
"""Of a row, in units of its bound, for gradients by central differences."""
_SAME_NOISE = 100
"""Runs for a mean last model, whose noise is that of all other means."""

_Canary = tuple[FloatArray, float]


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Last models of runs whose record `index` is a canary, in units of their noise.

    Args:
        solver: of the runs.
        dataset: with the record that is replaced.
        index: of the record.
        root: L, lower triangular, of the last model's covariance L Lᵀ, shape (p, p).
        seed: of all runs.
    """

    solver: ModelSolver
    dataset: AuditDataset
    index: int
    root: FloatArray
    seed: int

    def model(self, row: FloatArray, label: float) -> FloatArray:
        """Return the whitened mean of last models, shape (p,); the noise is the same each time."""
        dataset = self.dataset.with_record(self.index, features=row, label=label)
        models = last_models(self.solver, dataset, seed=self.seed, runs=_SAME_NOISE)
        return np.asarray(solve_triangular(self.root, models.mean(axis=0), lower=True))

    def gradient(self, row: FloatArray, label: float, apart: FloatArray) -> FloatArray:
        """Return the gradient by the row of <apart, model(row, label)>, shape (d,)."""
        bound = self.dataset.shape.row_bound
        inner = project_to_ball(row, bound * (1 - 2 * _NUDGE))  # nudged rows stay in the bound
        step = _NUDGE * bound
        return np.array(
            [
                (self.model(inner + nudge, label) - self.model(inner - nudge, label)) @ apart
                for nudge in step * np.eye(row.size)
            ]
        ) / (2 * step)


def adversarial_pair(
    solver: ModelSolver, dataset: AuditDataset, *, index: int, seed: int = 0
) -> TunedPair:
    """Return the pair, of all that a search finds, whose last models are furthest apart.

    Args:
        solver: with noise.
        dataset: under replace-one, or zero-out-one: then the neighbour has a null record.
        index: of the record in whose place the canary stands.
        seed: of noise and of directions to start from; not that of the trials that judge.

    Raises `InvalidParameter` for other solvers and relations.
    """
    shape = dataset.shape
    if shape.adjacency not in (Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE):
        raise InvalidParameter("adjacency", shape.adjacency, "replace-one or zero-out-one")
    plain = last_models(solver, dataset, seed=seed, runs=_SAME_NOISE).mean(axis=0)
    runs = _Runs(solver, dataset, index, noise_root(solver, dataset, seed=seed), seed)
    nulled = shape.adjacency is Adjacency.ZERO_OUT_ONE
    pair = _climbed(runs, _furthest(runs, plain, seed, nulled), nulled)
    (row, label), (other, contrary) = pair
    apart = runs.model(row, label) - runs.model(other, contrary)
    mu = float(np.linalg.norm(apart))
    if mu == 0.0:
        raise InvalidParameter("solver", solver, "one whose last model depends on a record")
    direction = solve_triangular(runs.root.T, apart)
    words = "a null record" if nulled else "another"
    return TunedPair(
        NeighbourPair(
            dataset.with_record(index, features=row, label=label),
            dataset.with_record(index, features=other, label=None if nulled else contrary),
            None,
            f"a canary climbed through whole runs in the place of record {index}, or {words}",
        ),
        mu,
        direction / np.linalg.norm(direction),
        row,
        label,
    )


def _furthest(runs: _Runs, plain: FloatArray, seed: int, nulled: bool) -> tuple[_Canary, _Canary]:
    """Return the two of all starts, longest rows with extreme labels, that are furthest apart.

    Args:
        runs: of canaries.
        plain: the mean last model, shape (d·K,).
        seed: of random directions.
        nulled: whether the second canary has a null row.
    """
    shape = runs.dataset.shape
    width = shape.features
    along = np.linalg.svd(plain.reshape(width, -1))[0][:, 0]
    quietest = np.linalg.eigh(runs.root @ runs.root.T)[1][:, 0].reshape(width, -1)
    random = np.random.default_rng(seed).normal(size=(_STARTS, width))
    starts = [along, np.linalg.svd(quietest)[0][:, 0], *random]
    units = [np.asarray(start / np.linalg.norm(start), dtype=np.float64) for start in starts]
    rows = [sign * shape.row_bound * unit for unit in units for sign in (1.0, -1.0)]
    canaries: list[_Canary] = list(product(rows, shape.label_domain.extremes))
    others: list[_Canary] = (
        [(np.zeros(width), shape.label_domain.extremes[0])] if nulled else canaries
    )
    models, ends = (np.array([runs.model(*one) for one in each]) for each in (canaries, others))
    apart = np.linalg.norm(models[:, None] - ends[None], axis=2)
    first, second = np.unravel_index(int(apart.argmax()), apart.shape)
    return canaries[first], others[second]


def _climbed(runs: _Runs, pair: tuple[_Canary, _Canary], nulled: bool) -> tuple[_Canary, _Canary]:
    """Return the pair that steps uphill from this one reach.

    Args:
        runs: of canaries.
        pair: to start from.
        nulled: whether the second canary stays as it is.
    """
    bound = runs.dataset.shape.row_bound
    (row, label), (other, contrary) = pair
    ends = [runs.model(row, label), runs.model(other, contrary)]
    reach, slopes = bound, None
    for _ in range(_CLIMBS):
        apart = ends[0] - ends[1]
        if slopes is None:
            slopes = [
                runs.gradient(row, label, apart),
                np.zeros_like(other) if nulled else -runs.gradient(other, contrary, apart),
            ]
        length = float(np.linalg.norm(slopes))
        if length == 0.0:
            break
        one, two = (
            project_to_ball(at + reach * slope / length, bound)
            for at, slope in zip((row, other), slopes, strict=True)
        )
        tried = [runs.model(one, label), runs.model(two, contrary)]
        if np.linalg.norm(tried[0] - tried[1]) > np.linalg.norm(apart):
            row, other, ends, slopes = one, two, tried, None
        else:
            reach /= 2
    return (row, label), (other, contrary)
