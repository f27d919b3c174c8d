"""Is a black box as private as it says: an event that its claimed (epsilon, delta) forbids.

The mechanism is only run. Some runs choose the pair of neighbours that looks worst, others teach a
score to tell the two worlds apart; the bound comes from runs that had no part in either, so that
nothing that was chosen on data is tested on the same data.

>>> pairs = query_patterns(3)
>>> def laplace(answers, trials, generator):
...     return answers + generator.laplace(scale=1.0, size=(trials, answers.size))
>>> found = find_violation(laplace, pairs, epsilon=1.0, trials=40_000, confidence=0.99, seed=1)
>>> found.refuted  # the claim forgets that there are three answers
True
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive_int,
)
from ..mechanisms.protocols import FloatArray
from .bounds import LowerBound, Scores
from .selection import Split

_EXPLORATION = 0.2
"""The part of all runs that chooses the pair."""
_TEACHING = 0.25
"""The part of a pair's runs that the score is learned from."""
_BINS = 32
"""Cells of a continuous coordinate: enough for both tails, few enough that a cell holds many
runs."""
_FEWEST_A_CELL = 16
"""Runs for each cell of the joint table, on average; with fewer, coordinates are taken one by
one."""
_COMMON = 1e-4
"""A value that makes up this part of the runs is a symbol with a cell of its own."""
PURE_DELTA = 1e-12
"""(epsilon, 0)-DP is (epsilon, delta)-DP at every delta; so small a one costs no power."""

FEWEST_RUNS = 100
"""Of a pair in each world, for a score to be learned from."""


class BlackBox(Protocol):
    """A mechanism that can be run many times at once.

    Args:
        answers: of shape (k,), what the queries answer on the data.
        trials: how many independent outputs to return.
        generator: where all randomness is from, so that a seed repeats an audit.
    """

    def __call__(
        self, answers: FloatArray, trials: int, generator: np.random.Generator
    ) -> FloatArray:
        """Return independent outputs on `answers` (k,): an array of shape (trials, m).

        Symbols are coded as numbers; an output that stops early is filled up with one symbol.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class AnswerPair:
    """What the same queries answer, shape (k,), on a data set and on its neighbour.

    Args:
        dataset: answers on D.
        neighbour: answers on D'.
        description: what differs, in words.
    """

    dataset: FloatArray
    neighbour: FloatArray
    description: str


@dataclass(frozen=True, slots=True)
class Violation:
    """The largest lower bound that was found, and whether it refutes the claim.

    `refuted` is wrong with probability at most 1 - `bound.confidence`. A claim that was not refuted
    is not proved.
    """

    pair: AnswerPair
    bound: LowerBound
    claimed_epsilon: float
    claimed_delta: float

    @property
    def refuted(self) -> bool:
        """Whether epsilon at the claimed delta is above the claimed one."""
        return self.bound.epsilon > self.claimed_epsilon


_MOST_QUERIES = 10**6
"""Of which a dozen patterns fit into memory."""


def query_patterns(queries: int) -> tuple[AnswerPair, ...]:
    """Return pairs of answers to `queries` queries of sensitivity 1 each, in the usual patterns.

    Source: the categories of Ding, Wang, Wang, Zhang, Kifer 2018, section 5.1.

    Args:
        queries: k in [1, 10^6].

    Every pattern moves each answer by at most 1, as one record may.
    """
    require_positive_int("queries", queries)
    if queries > _MOST_QUERIES:
        raise InvalidParameter("queries", queries, f"a whole number in [1, {_MOST_QUERIES}]")
    ones, places = np.ones(queries), np.arange(queries)
    first, last = 1.0 * (places == 0), 1.0 * (places == queries - 1)
    half = np.where(places < queries // 2, 1.0, -1.0)
    steps = {
        "one answer higher": first,
        "one answer lower": -first,
        "one higher, the others lower": 2 * first - ones,
        "one lower, the others higher": ones - 2 * first,
        "the last higher, the others lower": 2 * last - ones,
        "the last lower, the others higher": ones - 2 * last,
        "one half higher, the other lower": half,
        "all answers lower": -ones,
        "all answers higher": ones,
    }
    pairs = [AnswerPair(ones, ones + step, name) for name, step in steps.items()]
    return tuple(pairs[: 2 if queries == 1 else None])


class LearnedScore:
    """A score that estimates log p(output | D) - log p(output | D') from counts.

    Each coordinate is cut into cells: one for each common value, quantiles of the others. Where
    the runs can fill a table of all combinations of cells, their counts are compared, otherwise
    the coordinates' ratios are added as if they were independent. A poor estimate costs power and
    never validity: the bound does not trust the score.

    Args:
        dataset: outputs on D to learn from, shape (trials, m).
        neighbour: outputs on D', as many columns.
    """

    def __init__(self, dataset: FloatArray, neighbour: FloatArray) -> None:
        pooled = np.concatenate([dataset, neighbour])
        self._edges = [_cell_edges(column) for column in pooled.T]
        sizes = [edges.size + 1 for edges in self._edges]
        joint = np.prod(sizes, dtype=float) * _FEWEST_A_CELL <= pooled.shape[0]
        groups = [range(len(sizes))] if joint else [range(i, i + 1) for i in range(len(sizes))]
        self._groups = [(group, tuple(sizes[i] for i in group)) for group in groups]
        self._ratios = [
            # one more in every cell (Laplace's rule), so that an empty cell has a finite ratio
            np.log(in_dataset + 1) - np.log(in_neighbour + 1)
            for in_dataset, in_neighbour in zip(
                self._counts(dataset), self._counts(neighbour), strict=True
            )
        ]

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Return one score an output; outputs have shape (trials, m)."""
        parts = [
            ratio[cells] for ratio, cells in zip(self._ratios, self._cells(outputs), strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))

    def _cells(self, outputs: FloatArray) -> Iterator[NDArray[np.intp]]:
        """Yield the cell of each output in each table."""
        for group, sizes in self._groups:
            places = tuple(
                np.searchsorted(self._edges[i], outputs[:, i], side="right") for i in group
            )
            yield np.ravel_multi_index(places, sizes)

    def _counts(self, outputs: FloatArray) -> list[NDArray[Any]]:
        """Return the number of outputs in each cell, an array for each table."""
        return [
            np.bincount(cells, minlength=int(np.prod(sizes)))
            for cells, (_, sizes) in zip(self._cells(outputs), self._groups, strict=True)
        ]


def _cell_edges(column: FloatArray) -> FloatArray:
    """Return inner edges, ascending: cell j holds what is at least edge j-1 and below edge j."""
    values, counts = np.unique(column, return_counts=True)
    symbols = values[counts > max(1.0, _COMMON * column.size)]
    others = column[~np.isin(column, symbols)]
    # quantiles that reach into both tails, where mechanisms betray themselves
    places = expit(np.linspace(-7, 7, _BINS - 1))
    quantiles = np.quantile(others, places) if others.size else others
    return np.unique(np.concatenate([symbols, np.nextafter(symbols, np.inf), quantiles]))


def find_violation(
    mechanism: BlackBox,
    pairs: Sequence[AnswerPair],
    *,
    epsilon: float,
    delta: float = 0.0,
    trials: int,
    confidence: float,
    seed: int,
) -> Violation:
    """Return the strongest evidence against (epsilon, delta)-DP that so many runs give.

    Args:
        mechanism: the black box.
        pairs: answers on neighbouring data sets, at least one pair.
        epsilon, delta: the claim; epsilon >= 0, delta in [0, 1).
        trials: runs in all, over all pairs and both worlds.
        confidence: of the bound, in (0, 1).
        seed: of the runs and of every choice; fix it before looking.

    Raises `InvalidParameter` for a value out of range, for too few trials to explore every pair
    and for outputs that are not finite or of another shape.

    Error controlled: the probability to refute a true claim is at most 1 - confidence, for
    independent runs. Choosing the pair and learning the score use runs that the bound never sees
    (sample splitting), so that neither inflates it.
    """
    require_nonnegative("epsilon", epsilon)
    require_nonnegative("seed", seed)
    require_open_unit("confidence", confidence)
    if delta != 0:
        require_open_unit("delta", delta)
    generator = np.random.default_rng(seed)
    at = delta or PURE_DELTA
    pair, spent = explored_pair(mechanism, pairs, trials=trials, delta=at, generator=generator)
    tested = (trials - spent) // 2
    if tested < FEWEST_RUNS:
        raise InvalidParameter("trials", trials, f"enough for {FEWEST_RUNS} runs a pair and world")
    bound = _bound_of(mechanism, pair, tested, confidence, at, generator)
    return Violation(pair, bound, epsilon, delta)


def explored_pair(
    mechanism: BlackBox,
    pairs: Sequence[AnswerPair],
    *,
    trials: int,
    delta: float,
    generator: np.random.Generator,
) -> tuple[AnswerPair, int]:
    """Return the pair that looks worst, and how many runs it took to choose it: of one pair, none.

    A fifth of `trials` is spent, alike on all pairs; a coin-flip's confidence ranks them by what
    they promise, and proves nothing.

    Raises `InvalidParameter` for no pair, or too few trials to explore every one.
    """
    if not pairs:
        raise InvalidParameter("pairs", pairs, "at least one pair")
    if len(pairs) == 1:
        return pairs[0], 0
    explored = int(_EXPLORATION * trials) // (2 * len(pairs))
    if explored < FEWEST_RUNS:
        raise InvalidParameter("trials", trials, f"enough for {FEWEST_RUNS} runs a pair and world")
    chosen = max(
        pairs, key=lambda p: _bound_of(mechanism, p, explored, 0.5, delta, generator).epsilon
    )
    return chosen, 2 * explored * len(pairs)


def _bound_of(
    mechanism: BlackBox,
    pair: AnswerPair,
    runs: int,
    level: float,
    delta: float,
    generator: np.random.Generator,
) -> LowerBound:
    """Return a lower bound on epsilon of one pair, from `runs` fresh runs in each world."""
    scores = _learned_scores(mechanism, pair, runs, generator)
    return Split(level, int(generator.integers(2**31))).lower_bound(scores, delta=delta)


def _learned_scores(
    mechanism: BlackBox, pair: AnswerPair, runs: int, generator: np.random.Generator
) -> Scores:
    """Return scores of fresh runs by a score learned on others; `runs` of each world in all."""
    worlds = [
        outputs_of(mechanism, side, runs, generator) for side in (pair.dataset, pair.neighbour)
    ]
    if worlds[0].shape != worlds[1].shape:
        raise InvalidParameter("outputs.shape", worlds[1].shape, f"equal to {worlds[0].shape}")
    taught = int(_TEACHING * runs)
    score = LearnedScore(*(world[:taught] for world in worlds))
    return Scores(*(score(world[taught:]) for world in worlds))


def outputs_of(
    mechanism: BlackBox, answers: FloatArray, trials: int, generator: np.random.Generator
) -> FloatArray:
    """Return outputs of `trials` runs, shape (trials, m), or raise `InvalidParameter`."""
    try:
        outputs = np.asarray(mechanism(answers, trials, generator), dtype=np.float64)
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error!s:.80}"
        raise InvalidParameter(
            "mechanism", mechanism, f"one that returns numbers of shape ({trials}, m); {what}"
        ) from error
    if outputs.ndim != 2 or outputs.shape[0] != trials:
        raise InvalidParameter("outputs.shape", outputs.shape, f"({trials}, m)")
    if not np.isfinite(outputs).all():
        raise InvalidParameter("outputs", "NaN or infinite", "finite numbers")
    return outputs
