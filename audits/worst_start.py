"""The pair of neighbours that pays the whole price: a canary of maximal gradient, all run long.

An epsilon holds for every record and for every public starting point, so an attack may choose both
(worst-case initial parameters: Annamalai, De Cristofaro 2024). From far enough off along a
direction v the slopes of all records are constant: those of the canary, whose label contradicts
the start, are the largest that the loss has. Two rows R(c v ± s u), u at right angles to v and c
near 0, then have opposite gradients, as long as any may be, in every round. Such a sequence of
gradients, all of one direction, is also what tells most where only the last model is seen (crafted
gradients: Cebere, Bellet, Papernot 2024): noise of all rounds adds up, and so do they.

>>> from dpledger.mechanisms import Adjacency
>>> from dpledger.solvers import ConstantSteps
>>> rows = np.random.default_rng(1).normal(size=(50, 3))
>>> dataset = AuditDataset(rows, np.ones(50), adjacency=Adjacency.REPLACE_ONE, row_bound=2.0)
>>> solver, pair = worst_start(DpSgd(10, 3.0, ConstantSteps(0.5)), dataset, index=0)
>>> pair.share is not None and round(pair.share, 5)
1.0
>>> planned = sqrt(10) / 3
>>> law = last_model(solver, pair)
>>> law is not None and round(law.mu / planned, 4)
1.0
"""

from dataclasses import dataclass, replace
from math import cos, sqrt

import numpy as np

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.curators import Release
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.inside import private_value
from ..mechanisms.protocols import FloatArray, Loss
from ..solvers.sgd import DpSgd
from ..solvers.solver import ModelSolver
from ..solvers.star import DpAdmm
from .curators import NoiselessCurator, shown_value
from .datasets import AuditDataset
from .neighbours import NeighbourPair

__all__ = ["LastModel", "last_model", "maximal_gradient", "worst_start"]

_FAR = 1e9
"""Of a score at the start, for a row along v of length 1: rounds move scores by thousands."""

_ALONG = 1e-3
"""c: the part of the canary's row that points the way of the start; its score there is 1e6."""

_REACH = 8.0
"""Standard deviations of noise over which the last model must be affine to have a known law."""

_AFFINE = 1e-5
"""Relative deviation from an affine function that is rounding, of models as far off as 1e9."""


def worst_start(
    solver: DpSgd | DpAdmm, dataset: AuditDataset, *, index: int
) -> tuple[DpSgd | DpAdmm, NeighbourPair]:
    """Return the solver with a public start far off, and the pair whose record `index` is a canary.

    The pair's share is 1 but for the square of c: its gradients are as far apart as any may be.
    Under zero-out-one the neighbour has a null record in the canary's place. The share is None
    where batches are sampled or parties have noise of their own, as for any pair.

    Args:
        solver: as planned; what its events cost does not depend on the start.
        dataset: under replace-one or zero-out-one, of at least two features.
        index: of the record in whose place the canary stands.

    Raises `InvalidParameter` for other data, and for a loss without a largest slope far off.

    Source: Annamalai, De Cristofaro 2024 (starts); Nasr et al. 2021 (gradients as canaries).
    """
    shape, loss = dataset.shape, solver.loss
    if shape.features < 2:
        raise InvalidParameter("features", shape.features, "at least 2: a canary needs a direction")
    start, _ = _directions(shape.features)
    model = _FAR / shape.row_bound * start[:, None] * _outputs(loss)
    row, label = maximal_gradient(shape, loss)
    first = dataset.with_record(index, features=row, label=label)
    if shape.adjacency is Adjacency.ZERO_OUT_ONE:
        second = dataset.with_record(index, features=np.zeros(shape.features))
        words = f"a canary of maximal gradient in the place of record {index}, or a null record"
    elif shape.adjacency is Adjacency.REPLACE_ONE:
        other, _ = maximal_gradient(shape, loss, sign=-1.0)
        second = dataset.with_record(index, features=other, label=label)
        words = f"two canaries of opposite maximal gradients in the place of record {index}"
    else:
        raise InvalidParameter("adjacency", shape.adjacency, "replace-one or zero-out-one")
    far = replace(solver, start=tuple(model.ravel().tolist()))
    share = _share(far, first, second)
    return far, NeighbourPair(first, second, share, f"{words}, from a public start far off")


def maximal_gradient(
    shape: DataShape, loss: Loss, *, sign: float = 1.0
) -> tuple[FloatArray, float]:
    """Return the row (d,) and the label of a canary whose gradient is as long as any, far off.

    Args:
        shape: of the data.
        loss: of the solver.
        sign: 1, or -1 for the canary with the opposite gradient.
    """
    start, across = _directions(shape.features)
    row = shape.row_bound * (_ALONG * start + sign * sqrt(1 - _ALONG**2) * across)
    return row, _contradicting(shape, loss)


def _directions(features: int) -> tuple[FloatArray, FloatArray]:
    """Return v and u, of shape (d,) and length 1, at right angles to each other.

    No entry of v is 0 and no simple sum of its entries is, so that all records are far from a score
    of 0, indicators of categories too.
    """
    v = np.array([cos(1.0 + j) for j in range(features)])
    v /= np.linalg.norm(v)
    u = np.eye(features)[-1]
    u -= (u @ v) * v
    return v, np.asarray(u / np.linalg.norm(u))


def _outputs(loss: Loss) -> FloatArray:
    """Return the start's part of each of K outputs, from 1 to 0: no two classes are as likely."""
    return 1.0 - np.arange(loss.outputs) / max(1, loss.outputs - 1)


def _contradicting(shape: DataShape, loss: Loss) -> float:
    """Return the label with the largest slope at the canary's scores, far off in one direction."""
    scores = _FAR * _ALONG * _outputs(loss)
    found = scores if loss.outputs == 1 else scores[None]

    def slope(label: float) -> float:
        return float(np.linalg.norm(loss.derivative(found.copy(), np.array([label]))))

    label = max(shape.label_domain.extremes, key=slope)
    if slope(label) < 0.999 * float(loss.derivative_bound):
        raise InvalidParameter("loss", loss, "one with its largest slope far from a score of 0")
    return label


def _share(solver: DpSgd | DpAdmm, first: AuditDataset, second: AuditDataset) -> float | None:
    """Return the gap of what is released over its price; None where events are mixtures."""
    if len(set(first.shape.counts)) > 1 or (isinstance(solver, DpSgd) and solver.scheme):
        return None
    radius, start = solver.clip if isinstance(solver, DpSgd) else None, np.array(solver.start)
    one, other = (
        side.sum_gradient(solver.loss, start, radius=radius) / side.shape.count
        for side in (first, second)
    )
    values = private_value(one), private_value(other)
    assert values[0] is not None
    assert values[1] is not None
    return min(1.0, float(np.linalg.norm(values[0] - values[1])) / one.sensitivity.value)


class _Impulses(NoiselessCurator):
    """Sends values without noise, but for one push in each run at one release of one party.

    Args:
        along: the direction of pushes, of shape (d,).
        scales: noise of each release, to which pushes are relative; none where there are no pushes.
        size: of a push, in standard deviations.
    """

    def __init__(
        self, along: FloatArray | None = None, scales: tuple[float, ...] = (), size: float = 0.0
    ) -> None:
        self._along = along
        self._pushed = scales
        self._size = size
        self.scales: list[float] = []
        self.parties = 0

    def _deliver(self, release: Release) -> FloatArray:
        value, place = shown_value(release), len(self.scales)
        self.scales.append(release.scale)
        self.parties = value.shape[-2]
        if self._along is None:
            return np.array(value)
        runs = len(self._pushed) * self.parties
        sent = np.array(np.broadcast_to(value, (runs, *value.shape[-2:])))
        for party in range(self.parties):
            push = self._size * release.scale * self._along
            sent[place * self.parties + party, party] += push
        return sent


@dataclass(frozen=True, slots=True, eq=False)
class LastModel:
    """What the last model tells of a pair, where its law is known.

    Args:
        mu: telling the two data sets apart by the last model is exactly mu-GDP; in doubles, a
            yardstick for attacks and no guarantee.
        direction: of shape (d·K,) and length 1: the model's coordinate along it decides best.
    """

    mu: float
    direction: FloatArray


def last_model(solver: ModelSolver, pair: NeighbourPair) -> LastModel | None:
    """Return what whoever sees the last model only can tell of a pair; None where it is not known.

    Where slopes are constant the model is an affine function of the noise, the same for both data
    sets, and normal with means that differ by some gap g: no test does better than the coordinate
    along g, and it is mu-GDP with mu = |g| over that coordinate's standard deviation (Dong, Roth,
    Su 2022, section 2). The solver is run once for each message, without noise but for a push of
    that message; where a push does not move the model in proportion, or turns it, there is no law.

    Args:
        solver: of a run without hidden samples.
        pair: two data sets, such as `worst_start` makes.

    Raises `InvalidParameter` for data sets that no last model tells apart, and for hidden samples.
    """
    models: list[FloatArray] = []
    scales: tuple[float, ...] = ()
    for side in (pair.dataset, pair.neighbour):
        plain = _Impulses()
        models.append(solver.solve(side, plain).model)
        scales = tuple(plain.scales)
    gap = models[0] - models[1]
    length = float(np.linalg.norm(gap))
    if length == 0.0:
        raise InvalidParameter("neighbour", pair.neighbour, "one that the last model tells apart")
    along, weights = gap / length, np.zeros(0)
    for size in (_REACH, -_REACH, 1.0):
        pushed = solver.solve(pair.dataset, _Impulses(along, scales, size)).model - models[0]
        if weights.size == 0:
            weights = pushed @ along / size
        off = np.abs(pushed - size * weights[:, None] * along).max()
        if off > _AFFINE * _REACH * np.abs(weights).max():
            return None
    return LastModel(length / float(np.linalg.norm(weights)), along)
