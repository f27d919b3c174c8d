"""Pairs of neighbours with a known mu: a public start far off makes the slopes of a loss constant.

The gradients of a record and of its flipped label differ by the row times a factor that depends on
the score: the bound of the slope where the score is far from 0, up to twice as much elsewhere. An
epsilon holds for every public starting point, so an attack may choose it (worst-case initial
parameters: Annamalai and De Cristofaro 2024, section 3). From far enough off, no score comes near 0
in all rounds, and the gap is the bound times the row, whatever the noise. Centred rows are cut to
one radius; so the transcript is exactly (share · planned mu)-GDP for this pair.
"""

from dataclasses import replace
from math import sqrt

from ..mechanisms.labels import SignLabels
from ..solvers.consensus import ConsensusDpAdmm
from .datasets import AuditDataset
from .neighbours import NeighbourPair, flip_label

__all__ = ["saturated_flip"]

_FAR = 1e9
"""Of a score at the start, in units of 1/row_bound: rounds move scores by thousands."""


def saturated_flip(
    solver: ConsensusDpAdmm, dataset: AuditDataset, *, index: int
) -> tuple[ConsensusDpAdmm, NeighbourPair]:
    """Return the solver with a public start far off, and the pair whose record `index` is flipped.

    The share is half of that of the gradients in the budget; what is bought of the metric has no
    gap, for labels have no part in it. It is an upper bound, and exact but for the chance that a
    noisy centre comes within the radius of the row, which is then not cut. There is none, and the
    solver stays as it is, without a metric, with scaled columns, or with a radius that cuts few.

    Args:
        solver: as planned.
        dataset: of the attacked parties; replace-one, whose rows have the metric's constant.
        index: of a record; far from the mean of the records.
    """
    pair, metric = flip_label(dataset, index=index, loss=solver.loss), solver.metric
    if metric is None or metric.scaling or metric.radius >= metric.constant:
        return solver, replace(pair, share=None if metric is not None else pair.share)
    share = 0.5 * sqrt(1.0 - metric.share)
    if len(set(dataset.shape.counts)) > 1:
        return solver, replace(pair, share=None)
    if isinstance(dataset.shape.label_domain, SignLabels):
        start = [0.0] * dataset.shape.features
        start[metric.column] = _FAR / dataset.shape.row_bound
        solver = replace(solver, start=tuple(start))
    words = f"{pair.description}, from a public starting point far off"
    return solver, replace(pair, share=share, description=words)
