"""How well scores tell two worlds apart: ROC, true-positive rate at a false-positive rate, AUC.

These describe the trials; the bounds of `bounds` are what holds beyond them.

>>> auc(Scores(np.array([2.0, 3.0]), np.array([0.0, 1.0])))
1.0
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv
from scipy.stats import rankdata

from ..accounting.gaussian.fast import tpr_upper
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..mechanisms.errors import require_open_unit, require_positive_int
from .bounds import Scores

Promise = Gdp | ApproxDp
"""A guarantee to hold against an attack."""


def allowed_tpr(promise: Promise, fpr: float) -> float:
    """Return the largest true-positive rate that a promise allows at `fpr`, in (0, 1), rounded up.

    Source: Dong, Roth, Su 2022, equation (6); Kairouz, Oh, Viswanath 2015, Theorem 2.1.

    Args:
        promise: mu-GDP, or (epsilon, delta).
        fpr: false-positive rate.
    """
    require_open_unit("fpr", fpr)
    if isinstance(promise, Gdp):
        return float(tpr_upper(mu_squared=promise.mu_squared, fpr=fpr))
    epsilon, delta = float(promise.epsilon), float(promise.delta)
    missed = np.exp(-epsilon) * (1 - delta - fpr)
    with np.errstate(over="ignore"):
        best = min(float(np.exp(epsilon)) * fpr + delta, 1 - max(0.0, float(missed)))
    return min(1.0, best * (1 + 1e-12))


@dataclass(frozen=True, slots=True)
class RocPoint:
    """False- and true-positive rate of the trials at one threshold."""

    fpr: float
    tpr: float


@dataclass(frozen=True, slots=True)
class TprAtFpr:
    """The true-positive rate at the lowest threshold whose empirical false-positive rate is `fpr`.

    The interval holds for that threshold, which depends on the neighbour's trials only; its own
    false-positive rate is an estimate. `claimed` is the most that the claim allows at `fpr`.
    """

    fpr: float
    tpr: float
    lower: float
    upper: float
    confidence: float
    claimed: float


def roc(scores: Scores, *, points: int = 200) -> tuple[RocPoint, ...]:
    """Return at most `points` + 1 points of the ROC curve, evenly spread over log FPR.

    Args:
        scores: of the trials in both worlds.
        points: at most so many thresholds besides the one that no score exceeds.
    """
    require_positive_int("points", points)
    count = scores.neighbour.size
    allowed = np.unique(np.concatenate([[0], np.geomspace(1, count, points).round()]).astype(int))
    curve: dict[RocPoint, None] = {}
    for fpr, tpr in _rates(scores, allowed):
        curve[RocPoint(float(fpr), float(tpr))] = None
    return tuple(curve)


def tpr_at_fpr(scores: Scores, fpr: float, *, claimed: Promise, confidence: float) -> TprAtFpr:
    """Return the true-positive rate at `fpr`, in (0, 1), with its two-sided interval.

    Source of the interval: Clopper, Pearson 1934.

    Args:
        scores: of the trials in both worlds.
        fpr: false-positive rate; thresholds are those of the neighbour's trials.
        claimed: what the guarantee allows at `fpr` is set beside what was found.
        confidence: of the interval, in (0, 1).
    """
    require_open_unit("fpr", fpr)
    require_open_unit("confidence", confidence)
    allowed = int(np.floor(fpr * scores.neighbour.size))
    tpr = float(_rates(scores, np.array([allowed]))[0, 1])
    trials = scores.dataset.size
    hits, tail = round(tpr * trials), (1 - confidence) / 2
    return TprAtFpr(
        fpr=fpr,
        tpr=tpr,
        lower=float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0,
        upper=float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0,
        confidence=confidence,
        claimed=allowed_tpr(claimed, fpr),
    )


def auc(scores: Scores) -> float:
    """Return P(score under D > score under D') + P(equal)/2 over the trials.

    Source: Mann, Whitney 1947.
    """
    first, second = scores.dataset.size, scores.neighbour.size
    ranks = rankdata(np.concatenate([scores.dataset, scores.neighbour]))
    return float((ranks[:first].sum() - first * (first + 1) / 2) / (first * second))


def _rates(
    scores: Scores, false_positives: np.ndarray[tuple[int], np.dtype[np.int_]]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return rows (FPR, TPR) at the lowest thresholds with at most these many false positives."""
    against, favour = np.sort(scores.neighbour), np.sort(scores.dataset)
    place = against.size - 1 - false_positives
    thresholds = np.where(place >= 0, against[np.maximum(place, 0)], -np.inf)
    above = [
        np.where(place < 0, world.size, world.size - np.searchsorted(world, thresholds, "right"))
        for world in (against, favour)
    ]
    return np.stack([above[0] / against.size, above[1] / favour.size], axis=1)
