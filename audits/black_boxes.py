"""Is a black box's claim false? A sequential test of outputs, by a score that is learned first.

The first runs choose the pair that looks worst and teach a score to tell its two worlds apart; all
later ones are bet upon, a pair at a time, until wealth refutes the claim or runs are spent. Or all
runs of the pair are bet upon, by kernel witnesses that learn meanwhile (`kernel_tests`). Score and
bet are fixed before the runs that they are tried on, so that the false-alarm rate holds whenever
the test stops (see `sequential`).

>>> def laplace(answers, trials, generator):
...     return answers + generator.laplace(scale=1.0, size=(trials, answers.size))
>>> promised = ClaimedPrivacy.of(epsilon=1.0, mu=None, delta=0.0)
>>> found = audit_black_box(
...     laplace, query_patterns(3), claimed=promised, runs=20_000, confidence=0.99, seed=1)
>>> found.refuted  # the claim forgets that there are three answers
True
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..accounting.numbers.enclosure import shown_down
from ..accounting.numbers.notions import ApproxDp
from ..data.files import read_arrays
from ..mechanisms.errors import InvalidParameter, require_nonnegative, require_open_unit
from ..mechanisms.protocols import FloatArray
from .bounds import LowerBound, Scores
from .kernel_tests import KernelEvidence, KernelTest
from .replay import Progress
from .scores import ClaimedPrivacy
from .sequential import Claim, Evidence, SequentialTest, plan_bet
from .violations import (
    FEWEST_RUNS,
    PURE_DELTA,
    AnswerPair,
    BlackBox,
    LearnedScore,
    explored_pair,
    find_violation,
    outputs_of,
    query_patterns,
)

_TEACHING = 0.25
"""The share of the runs, after the pair is chosen, on which the score is learned; the rest are
bet on.
"""
_CHUNK = 500
"""Runs of one batch, after each of which the test may stop."""


@dataclass(frozen=True, slots=True)
class BlackBoxAudit:
    """What runs of a black box show of a claim; one that is not refuted is not proved.

    Args:
        pair: the neighbours that it was tested on, in words.
        runs: how many runs were made in all; fewer than allowed where a test refuted the claim.
        refuted: whether the claim is; a true one with probability at most 1 - `confidence`.
        claimed_epsilon, delta: the claim, as an epsilon rounded up.
        confidence: of the verdict.
        p_value: of the sequential test, whenever one looks; None where a bound was asked for.
        bound: on epsilon at `delta`, from below; None where a test was asked for.
    """

    pair: str
    runs: int
    refuted: bool
    claimed_epsilon: float
    delta: float
    confidence: float
    p_value: float | None = None
    bound: LowerBound | None = None

    @property
    def evidence(self) -> str:
        """What was found, in a sentence."""
        if self.bound is not None:
            shown = shown_down(self.bound.epsilon, digits=4)
            return f"epsilon >= {shown} after {self.runs} runs: {self.bound.detail}"
        return f"p-value {self.p_value:.3g}, whenever one looks, after {self.runs} runs"


def audit_black_box(
    mechanism: BlackBox,
    pairs: Sequence[AnswerPair],
    *,
    claimed: ClaimedPrivacy,
    runs: int,
    confidence: float,
    seed: int,
    bound: bool = False,
    kernel: bool = False,
    progress: Progress | None = None,
) -> BlackBoxAudit:
    """Return what betting against a claim shows, after `runs` runs in all at most.

    Args:
        mechanism: the black box.
        pairs: what it answers on neighbouring data sets, at least one pair.
        claimed: (epsilon, delta)-DP, pure where delta is 0, or mu-GDP.
        runs: over all pairs and both worlds.
        confidence: in (0, 1).
        seed: of the runs and of every choice; fix it before looking.
        bound: whether to spend all runs on a lower bound on epsilon instead; see `find_violation`.
        kernel: whether to bet on kernel witnesses that learn while betting, in place of a score
            that a quarter of the runs teaches; see `kernel_tests`.
        progress: called with the runs done and all runs.

    Raises `InvalidParameter` as `find_violation` and `plan_bet` do.
    """
    if bound:
        found = find_violation(
            mechanism,
            pairs,
            epsilon=claimed.epsilon,
            delta=claimed.delta,
            trials=runs,
            confidence=confidence,
            seed=seed,
        )
        return BlackBoxAudit(
            found.pair.description,
            runs,
            found.refuted,
            claimed.epsilon,
            claimed.delta,
            confidence,
            bound=found.bound,
        )
    require_nonnegative("seed", seed)
    require_open_unit("confidence", confidence)
    generator = np.random.default_rng(seed)
    at = claimed.delta or PURE_DELTA
    pair, spent = explored_pair(mechanism, pairs, trials=runs, delta=at, generator=generator)
    if kernel:
        return _by_kernels(mechanism, pair, claimed, runs, spent, confidence, generator, progress)
    taught = int(_TEACHING * (runs - spent)) // 2
    tested = (runs - spent) // 2 - taught
    if min(taught, tested) < FEWEST_RUNS:
        raise InvalidParameter("runs", runs, f"enough for {FEWEST_RUNS} runs a pair and world")
    worlds = (pair.dataset, pair.neighbour)
    score = LearnedScore(*(outputs_of(mechanism, side, taught, generator) for side in worlds))
    test = SequentialTest(plan_bet(claimed=_testable(claimed)), confidence)
    made = spent + 2 * taught

    def chunks() -> Iterator[Scores]:
        nonlocal made
        for start in range(0, tested, _CHUNK):
            size = min(_CHUNK, tested - start)
            made += 2 * size
            yield Scores(*(score(outputs_of(mechanism, side, size, generator)) for side in worlds))
            if progress is not None:
                progress(made, runs)

    evidence = test.run(chunks())
    return _bet_upon(pair, made, evidence, claimed, confidence)


def _by_kernels(
    mechanism: BlackBox,
    pair: AnswerPair,
    claimed: ClaimedPrivacy,
    runs: int,
    spent: int,
    confidence: float,
    generator: np.random.Generator,
    progress: Progress | None,
) -> BlackBoxAudit:
    """Return what betting on kernel witnesses shows of one pair, with all runs that are left."""
    each = (runs - spent) // 2
    if each < 2 * FEWEST_RUNS:
        raise InvalidParameter("runs", runs, f"enough for {2 * FEWEST_RUNS} runs a world")
    made = spent

    def chunks() -> Iterator[tuple[FloatArray, FloatArray]]:
        nonlocal made
        for start in range(0, each, FEWEST_RUNS):
            size = min(FEWEST_RUNS, each - start)
            made += 2 * size
            worlds = (pair.dataset, pair.neighbour)
            first, second = (outputs_of(mechanism, side, size, generator) for side in worlds)
            yield first, second
            if progress is not None:
                progress(made, runs)

    seed = int(generator.integers(2**31))
    evidence = KernelTest(_testable(claimed), confidence, seed).run(chunks())
    return _bet_upon(pair, made, evidence, claimed, confidence)


def _bet_upon(
    pair: AnswerPair,
    made: int,
    evidence: Evidence | KernelEvidence,
    claimed: ClaimedPrivacy,
    confidence: float,
) -> BlackBoxAudit:
    """Return what a sequential test says of a claim, after `made` runs."""
    return BlackBoxAudit(
        pair.description,
        made,
        evidence.refuted_after is not None,
        claimed.epsilon,
        claimed.delta,
        confidence,
        p_value=evidence.p_value,
    )


def _testable(claimed: ClaimedPrivacy) -> Claim:
    """Return the claim to bet against: a pure one is true at every delta, so at a tiny one.

    An epsilon that holds at delta 0 holds at every delta, so that refuting (epsilon, `PURE_DELTA`)
    refutes it.
    """
    if isinstance(claimed.claim, ApproxDp) and claimed.claim.delta == 0:
        return ApproxDp(claimed.claim.epsilon, PURE_DELTA)
    return claimed.claim


def pairs_of(path: Path | None, queries: int | None) -> tuple[AnswerPair, ...]:
    """Return the pairs of an .npz file's `dataset` and `neighbour`, or the usual patterns.

    Args:
        path: of two arrays of shape (pairs, k), a row for each pair.
        queries: without a file, the number of queries of sensitivity 1.

    Raises `InvalidParameter` unless one of both is given, and for other arrays.
    """
    if path is None:
        if queries is None:
            raise InvalidParameter("queries", queries, "stated, or pairs in a file")
        return query_patterns(queries)
    if queries is not None:
        raise InvalidParameter("queries", queries, "left out where a file has pairs")
    arrays = read_arrays(path)
    first, second = (arrays.get(name) for name in ("dataset", "neighbour"))
    if first is None or second is None or first.ndim != 2 or first.shape != second.shape:
        raise InvalidParameter("pairs", path.name, "of arrays dataset, neighbour, (pairs, k) each")
    worlds = (np.asarray(each, dtype=np.float64) for each in (first, second))
    return tuple(
        AnswerPair(one, other, f"row {row} of {path.name}")
        for row, (one, other) in enumerate(zip(*worlds, strict=True))
    )
