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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isnan
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..mechanisms.errors import (
    InvalidParameter,
    require_delta,
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

_CANDIDATES = 128
"""Thresholds spread over each tail of the scores; more find hardly better ones."""


@dataclass(frozen=True, slots=True)
class Bonferroni:
    """The best of Clopper-Pearson's bounds at several thresholds fixed before the trials ran.

    Each of m thresholds has the error probability (1 - confidence)/m.

    Args:
        thresholds: m numbers.
        confidence: of the best bound, in (0, 1).

    Error controlled: that any of the m bounds exceeds the truth has probability at most 1 -
    confidence, by the union bound. Raises `InvalidParameter` for no threshold, or NaN.
    """

    METHOD: ClassVar[str] = "Clopper-Pearson, Bonferroni"

    thresholds: tuple[float, ...]
    confidence: float

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        if not self.thresholds or any(isnan(threshold) for threshold in self.thresholds):
            raise InvalidParameter("thresholds", self.thresholds, "one number or more")

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`, in [0, 1)."""
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

    Error controlled: the bound exceeds the truth with probability at most 1 - confidence, for
    independent trials: given the half that chose, the other half tests one threshold.
    """

    METHOD: ClassVar[str] = "Clopper-Pearson, split"

    confidence: float
    seed: int

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        require_nonnegative("seed", self.seed)

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`, in [0, 1). It needs two trials in each world.

        Args:
            scores: of the trials in both worlds.
            delta: where epsilon is bounded.
        """
        found = _split_bound(
            scores, seed=self.seed, splits=1, rank=1, confidence=self.confidence, delta=delta
        )
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
        """k, which of the bounds by size is the median; the larger one of two."""
        return -(-self.splits // 2)

    @property
    def _each(self) -> float:
        """The confidence of each split bound."""
        return 1 - (1 - self.confidence) * self._rank / self.splits

    def ceiling(self, *, trials: int, delta: float) -> float:
        """Return the largest epsilon that `trials` >= 2 trials a world could have shown."""
        return ceiling(trials=trials - trials // 2, delta=delta, confidence=self._each)

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`, in [0, 1). It needs two trials in each world.

        Args:
            scores: of the trials in both worlds.
            delta: where epsilon is bounded.
        """
        middle = _split_bound(
            scores,
            seed=self.seed,
            splits=self.splits,
            rank=self._rank,
            confidence=self._each,
            delta=delta,
        )
        return replace(
            middle,
            method=self.METHOD,
            theorem=f"{middle.theorem}; Rüger 1978",
            valid_when="trials are independent and the seed was fixed before they ran",
            confidence=self.confidence,
            detail=f"median of {self.splits} splits: {middle.detail}",
        )


_Whole = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Pool:
    """Trials of both worlds by ascending score.

    Args:
        scores: array of shape (n,), ascending.
        of_dataset: array of shape (n,), which of them are runs on the data set.
    """

    scores: FloatArray
    of_dataset: npt.NDArray[np.bool_]

    def errors(self, thresholds: FloatArray) -> _Whole:
        """Return counts at the thresholds: a row of false positives, a row of misses.

        Args:
            thresholds: of shape (m,); a score above one is taken for a run on the data set.

        Returns an array of shape (2, m).
        """
        misses_among = np.append(0, np.cumsum(self.of_dataset))
        below = np.searchsorted(self.scores, thresholds, "right")
        misses = misses_among[below]
        neighbours = self.scores.size - misses_among[-1]
        return np.stack([neighbours - (below - misses), misses])


def _split_bound(
    scores: Scores, *, seed: int, splits: int, rank: int, confidence: float, delta: float
) -> LowerBound:
    """Return the bound of this rank, 1 being the largest, among those of so many random splits.

    Args:
        scores: of the trials in both worlds, two or more in each.
        seed: of the splits.
        splits: how many.
        rank: in [1, splits].
        confidence: of each split's bound.
        delta: where epsilon is bounded.
    """
    require_delta(delta)
    worlds = (scores.dataset, scores.neighbour)
    for name, world in zip(("dataset", "neighbour"), worlds, strict=True):
        if world.size < 2:
            raise InvalidParameter(f"{name}.size", world.size, "at least 2, to be split")
    # sorted once for all: parts of a sorted pool are sorted
    pooled = np.concatenate(worlds)
    order = np.argsort(pooled)
    pool = _Pool(pooled[order], order < scores.dataset.size)
    thresholds, chosen_on = np.empty(splits), np.empty((2, splits), dtype=np.intp)
    for split, half in enumerate(_halves(order, scores.dataset.size, seed, splits)):
        thresholds[split], chosen_on[:, split] = _best_threshold(
            _Pool(pool.scores[half], pool.of_dataset[half]), delta=delta, confidence=confidence
        )
    false_positives, misses = pool.errors(thresholds) - chosen_on
    dataset_trials, neighbour_trials = (world.size - world.size // 2 for world in worlds)
    epsilon = _epsilon_of_errors(
        false_positives,
        misses,
        trials=(neighbour_trials, dataset_trials),
        delta=delta,
        confidence=confidence,
    )
    found = int(np.argsort(-epsilon, kind="stable")[rank - 1])
    return ClopperPearson(float(thresholds[found]), confidence).of_counts(
        false_positives=int(false_positives[found]),
        neighbour_trials=neighbour_trials,
        misses=int(misses[found]),
        dataset_trials=dataset_trials,
        delta=delta,
    )


def _halves(order: _Whole, of_dataset: int, seed: int, splits: int) -> Iterator[_Whole]:
    """Yield where random halves of both worlds stand in the order of scores, ascending.

    The first `of_dataset` trials are of the data set, the others of its neighbour.
    """
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    generator = np.random.default_rng(seed)
    for _ in range(splits):
        chosen = np.zeros(order.size, dtype=np.bool_)
        for world in np.split(places, [of_dataset]):
            chosen[generator.permutation(world)[: world.size // 2]] = True
        yield np.flatnonzero(chosen)


def _best_threshold(pool: _Pool, *, delta: float, confidence: float) -> tuple[float, _Whole]:
    """Return the threshold at which these very trials give the largest bound, and their errors."""
    known = pool.scores[np.append(True, pool.scores[1:] != pool.scores[:-1])]
    places = _candidate_places(known.size)
    # between two scores, where the law of further ones may have no mass
    lower, upper = known[places], known[np.minimum(places + 1, known.size - 1)]
    candidates = np.where(np.isfinite(lower) & np.isfinite(upper), lower / 2 + upper / 2, lower)
    errors = pool.errors(candidates)
    of_dataset = int(np.count_nonzero(pool.of_dataset))
    epsilon = _epsilon_of_errors(
        *errors,
        trials=(pool.scores.size - of_dataset, of_dataset),
        delta=delta,
        confidence=confidence,
    )
    best = int(np.argmax(epsilon))
    return float(candidates[best]), errors[:, best]


@lru_cache(maxsize=64)
def _candidate_places(scores: int) -> _Whole:
    """Return where candidates stand among so many ascending scores: densest at both ends."""
    depth = np.geomspace(1, scores, _CANDIDATES).astype(np.intp)
    return np.unique(np.concatenate([depth - 1, scores - depth]))


def _epsilon_of_errors(
    false_positives: _Whole,
    misses: _Whole,
    *,
    trials: tuple[int, int],
    delta: float,
    confidence: float,
) -> FloatArray:
    """Return Clopper-Pearson's epsilon of counts among `trials` of the neighbour, the data set."""
    # two rates are bounded, each with half of the error probability
    each = 1 - (1 - confidence) / 2
    return epsilon_of_rates(
        largest_rates(trials[0], confidence=each)[false_positives],
        largest_rates(trials[1], confidence=each)[misses],
        delta,
    )
