"""Thresholds chosen among several or on the data, and what the choice costs.

A threshold picked on the trials that it is then tested on breaks the confidence of the bound. Three
ways to pay for the choice: `Bonferroni` divides the error probability among thresholds fixed
beforehand, `Split` chooses on some trials and tests on the others, `MultiSplit` does so many times
and depends less on luck. Where a claim fixes the threshold, `plan_threshold` costs nothing.

>>> scores = Scores(np.full(500, 1.0), np.full(500, 0.0))
>>> round(ClopperPearson(0.5, 0.95).lower_bound(scores, delta=1e-5).epsilon, 2)
4.91
>>> round(Bonferroni((0.0, 0.5, 1.0), 0.95).lower_bound(scores, delta=1e-5).epsilon, 2)
4.64
>>> round(Split(0.95, seed=1).lower_bound(scores, delta=1e-5).epsilon, 2)
4.21
"""

from dataclasses import dataclass, replace
from math import isnan
from typing import ClassVar

import numpy as np

from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive_int,
)
from ..mechanisms.protocols import FloatArray
from .bounds import (
    ClopperPearson,
    LowerBound,
    Scores,
    ceiling,
    epsilon_of_rates,
    largest_rates,
)

__all__ = ["Bonferroni", "MultiSplit", "Split"]

# candidates spread over each tail of the scores; more find hardly better thresholds
_CANDIDATES = 128


@dataclass(frozen=True, slots=True)
class Bonferroni:
    """The best of Clopper-Pearson's bounds at several thresholds fixed before the trials ran.

    Each of m thresholds has the error probability (1 - confidence)/m.
    """

    METHOD: ClassVar[str] = "Clopper-Pearson, Bonferroni"

    thresholds: tuple[float, ...]
    confidence: float

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        if not self.thresholds or any(isnan(threshold) for threshold in self.thresholds):
            raise InvalidParameter("thresholds", self.thresholds, "one number or more")

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`, in (0, 1)."""
        each = 1 - (1 - self.confidence) / len(self.thresholds)
        found = [
            ClopperPearson(threshold, each).lower_bound(scores, delta=delta)
            for threshold in self.thresholds
        ]
        best = max(found, key=lambda bound: bound.epsilon)
        return replace(
            best,
            method=self.METHOD,
            theorem=f"{best.theorem}; the union bound",
            valid_when="trials are independent and the thresholds were fixed before they ran",
            confidence=self.confidence,
            detail=f"best of {len(self.thresholds)} thresholds: {best.detail}",
        )


@dataclass(frozen=True, slots=True)
class Split:
    """Chooses the threshold on half of the trials of each world and tests it on the other half.

    Trials are halved at random, so that arrays may come in any order.

    Args:
        confidence: of the bound, in (0, 1).
        seed: of the split; fix it before looking, a split that pleases is a choice too.
    """

    METHOD: ClassVar[str] = "Clopper-Pearson, split"

    confidence: float
    seed: int

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        require_nonnegative("seed", self.seed)

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`, in (0, 1). It needs two trials in each world."""
        generator = np.random.default_rng(self.seed)
        found = _split_bound(scores, generator, delta=delta, confidence=self.confidence)
        return replace(
            found,
            method=self.METHOD,
            valid_when="trials are independent and the seed was fixed before they ran",
        )


@dataclass(frozen=True, slots=True)
class MultiSplit:
    """The median of `splits` split bounds, each at half of the error probability.

    If the k-th largest of K bounds exceeds the truth, so do k of them; each does so with
    probability at most a, hence by Markov's inequality that happens with probability at most
    a·K/k, whatever their dependence. Here k = ceil(K/2) and a = (1 - confidence)·k/K.

    Args as for `Split`, and:
        splits: how many.
    """

    METHOD: ClassVar[str] = "Clopper-Pearson, multi-split"

    confidence: float
    seed: int
    splits: int = 25

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        require_nonnegative("seed", self.seed)
        require_positive_int("splits", self.splits)

    @property
    def _rank(self) -> int:
        return -(-self.splits // 2)

    @property
    def _each(self) -> float:
        """The confidence of each split bound."""
        return 1 - (1 - self.confidence) * self._rank / self.splits

    def ceiling(self, *, trials: int, delta: float) -> float:
        """Return the largest epsilon that `trials` >= 2 trials a world could have shown."""
        return ceiling(trials=trials - trials // 2, delta=delta, confidence=self._each)

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`, in (0, 1). It needs two trials in each world."""
        generator = np.random.default_rng(self.seed)
        found = sorted(
            (
                _split_bound(scores, generator, delta=delta, confidence=self._each)
                for _ in range(self.splits)
            ),
            key=lambda bound: bound.epsilon,
            reverse=True,
        )
        middle = found[self._rank - 1]
        return replace(
            middle,
            method=self.METHOD,
            theorem=f"{middle.theorem}; Rüger 1978",
            valid_when="trials are independent and the seed was fixed before they ran",
            confidence=self.confidence,
            detail=f"median of {self.splits} splits: {middle.detail}",
        )


def _split_bound(
    scores: Scores, generator: np.random.Generator, *, delta: float, confidence: float
) -> LowerBound:
    require_open_unit("delta", delta)
    parts: list[tuple[FloatArray, FloatArray]] = []
    for name, world in (("dataset", scores.dataset), ("neighbour", scores.neighbour)):
        if world.size < 2:
            raise InvalidParameter(f"{name}.size", world.size, "at least 2, to be split")
        shuffled = generator.permutation(world)
        parts.append((shuffled[: world.size // 2], shuffled[world.size // 2 :]))
    (choose_for, test_for), (choose_against, test_against) = parts
    threshold = _best_threshold(
        Scores(choose_for, choose_against), delta=delta, confidence=confidence
    )
    return ClopperPearson(threshold, confidence).lower_bound(
        Scores(test_for, test_against), delta=delta
    )


def _best_threshold(scores: Scores, *, delta: float, confidence: float) -> float:
    """Return the threshold at which these very scores give the largest bound."""
    favour, against = np.sort(scores.dataset), np.sort(scores.neighbour)
    pooled = np.unique(np.concatenate([favour, against]))
    depth = np.geomspace(1, pooled.size, _CANDIDATES).astype(int)
    places = np.unique(np.concatenate([depth - 1, pooled.size - depth]))
    # between two scores, where the law of further ones may have no mass
    lower, upper = pooled[places], pooled[np.minimum(places + 1, pooled.size - 1)]
    candidates = np.where(np.isfinite(lower) & np.isfinite(upper), lower / 2 + upper / 2, lower)
    false_positives = against.size - np.searchsorted(against, candidates, "right")
    misses = np.searchsorted(favour, candidates, "right")
    each = 1 - (1 - confidence) / 2
    epsilon = epsilon_of_rates(
        largest_rates(against.size, confidence=each)[false_positives],
        largest_rates(favour.size, confidence=each)[misses],
        delta,
    )
    return float(candidates[int(np.argmax(epsilon))])
