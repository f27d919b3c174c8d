"""Replay trials by the million: on any backend, resumable, in memory of 8 bytes a score.

>>> from dpledger.audits import AuditDataset
>>> from dpledger.audits.neighbours import opposite_gradients
>>> from dpledger.mechanisms import Adjacency
>>> from dpledger.solvers import ConstantSteps, DpAdmm, LinearLoss
>>> def build() -> Attacked:
...     data = AuditDataset(
...         np.eye(4), np.ones(4), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
...     )
...     pair = opposite_gradients(data, index=0, loss=LinearLoss())
...     solver = DpAdmm(5, 5**0.5, ConstantSteps(1.0), loss=LinearLoss())
...     return Attacked(solver.solve, pair.dataset, pair.neighbour)
>>> found = trial_scores(TrialExperiment(build, "example", seed=1, chunk=500), trials=2_000)
>>> round(float(np.mean(found.attack.dataset)), 1)
0.5
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from ...mechanisms.errors import InvalidParameter, require_nonnegative, require_positive_int
from ..assessment import AttackResult, assess
from ..bounds import Scores
from ..claim_tests import ClaimTest
from ..datasets import AuditDataset
from ..metrics import Promise
from ..replay import Progress, ReplayScores, ReplayTrials, Solve, chunk_sizes
from .backends import Backend, Serial
from .store import ChunkKey, ScoreStore


@dataclass(frozen=True, slots=True, eq=False)
class Attacked:
    """An algorithm and the two neighbouring data sets that it shall not tell apart."""

    solve: Solve
    dataset: AuditDataset
    neighbour: AuditDataset


@dataclass(frozen=True, slots=True, eq=False)
class TrialExperiment:
    """Trials that any process can compute; what they score is fixed by all four fields.

    Args:
        build: makes what is attacked. Every process calls it once: records stay out of the queues
            between processes, which only see how to get at them.
        name: of the experiment in a store: a hash of all that `build` depends on.
        seed: of the noise, a whole number >= 0.
        chunk: trials that run at once; see `trials_at_once`.
    """

    build: Callable[[], Attacked]
    name: str
    seed: int
    chunk: int

    def __post_init__(self) -> None:
        require_nonnegative("seed", self.seed)
        require_positive_int("chunk", self.chunk)


_MOST_AT_ONCE = 1000
_NUMBERS_AT_ONCE, _NUMBERS_KEPT = 2**20, 2**26


def trials_at_once(*, parties: int, width: int, messages: int = 1) -> int:
    """Return how many trials to run at once: a thousand, or fewer of wide and many messages.

    More do not run faster. The arrays of a round take up to 8 MB each; a transcript, which only
    algorithms that sample need, up to 512 MB.

    Args:
        parties: that send messages in a round.
        width: numbers in a message.
        messages: that a party sends in all rounds.
    """
    numbers = parties * width
    return max(
        1, min(_MOST_AT_ONCE, _NUMBERS_AT_ONCE // numbers, _NUMBERS_KEPT // (numbers * messages))
    )


@dataclass(frozen=True, slots=True)
class _Task:
    """One chunk: of the attack, or of its null control."""

    null: bool
    number: int
    size: int


class _Scorer:
    """Computes chunks. What is pickled is how to build what is attacked; see `TrialExperiment`."""

    def __init__(self, build: Callable[[], Attacked], seed: int, token: str) -> None:
        self._settings = (build, seed, token)
        self._trials: ReplayTrials | None = None

    def __call__(self, task: _Task) -> Scores:
        if self._trials is None:
            build, seed, _ = self._settings
            found = build()
            self._trials = ReplayTrials(found.solve, found.dataset, found.neighbour, seed)
        scores = self._trials.null if task.null else self._trials.attack
        return scores(task.number, task.size)

    def __reduce__(self) -> tuple[Any, ...]:
        return _known_scorer, self._settings


_known: list[tuple[str, _Scorer]] = []


def _known_scorer(build: Callable[[], Attacked], seed: int, token: str) -> _Scorer:
    """Return this process's scorer of a token, so that it builds once for all its tasks."""
    if not _known or _known[0][0] != token:
        _known[:] = [(token, _Scorer(build, seed, token))]
    return _known[0][1]


def trial_scores(
    experiment: TrialExperiment,
    *,
    trials: int,
    null_trials: int | None = None,
    backend: Backend | None = None,
    store: ScoreStore | None = None,
    progress: Progress | None = None,
) -> ReplayScores:
    """Return the scores of all trials, the same on every backend.

    Args:
        experiment: what to try.
        trials: of the attack, in each of its two worlds.
        null_trials: of the null control, in each of its two worlds; as many by default.
        backend: where they run; in this process by default.
        store: where finished chunks are kept and looked for; an interrupted call goes on from them.
        progress: called after every chunk with the numbers of finished and of all runs.
    """
    sizes = {False: trials, True: trials if null_trials is None else null_trials}
    tasks = [
        _Task(null, number, size)
        for null, count in sizes.items()
        for number, size in enumerate(chunk_sizes(count, experiment.chunk))
    ]
    found = {null: np.empty((2, count)) for null, count in sizes.items()}
    done, every = 0, 2 * sum(sizes.values())
    for task, scores in _computed(experiment, tasks, backend or Serial(), store):
        start = task.number * experiment.chunk
        found[task.null][:, start : start + task.size] = scores.dataset, scores.neighbour
        done += 2 * task.size
        if progress is not None:
            progress(done, every)
    return ReplayScores(attack=Scores(*found[False]), null=Scores(*found[True]))


def _computed(
    experiment: TrialExperiment, tasks: list[_Task], backend: Backend, store: ScoreStore | None
) -> Iterator[tuple[_Task, Scores]]:
    """Yield every chunk with its scores: first those in the store, then new ones, to keep."""

    def key(task: _Task) -> ChunkKey:
        kind = "null" if task.null else "attack"
        return ChunkKey(
            experiment.name, experiment.seed, experiment.chunk, kind, task.number, task.size
        )

    missing = list[_Task]()
    for task in tasks:
        kept = None if store is None else store.get(key(task))
        if kept is None:
            missing.append(task)
        else:
            yield task, kept
    scorer = _Scorer(experiment.build, experiment.seed, uuid4().hex)
    for task, scores in zip(missing, backend.map(scorer, missing), strict=True):
        if scores.dataset.size != task.size:
            raise InvalidParameter("scores", scores.dataset.size, f"{task.size} of {task}")
        if store is not None:
            store.put(key(task), scores)
        yield task, scores


def attack_trials(
    experiment: TrialExperiment,
    *,
    trials: int,
    claimed: Promise,
    delta: float,
    confidence: float,
    null_trials: int | None = None,
    backend: Backend | None = None,
    store: ScoreStore | None = None,
    progress: Progress | None = None,
    pair_mu: float | None = None,
    noise: ClaimTest | None = None,
) -> AttackResult:
    """Return what the trials show about a guarantee.

    Args as for `trial_scores`, and:
        claimed: the guarantee that the plan promises; it fixes the threshold beforehand.
        delta: where epsilon is bounded, in (0, 1).
        confidence: of each bound, in (0, 1).
        pair_mu, noise: as for `assess`.
    """
    scores = trial_scores(
        experiment,
        trials=trials,
        null_trials=null_trials,
        backend=backend,
        store=store,
        progress=progress,
    )
    return assess(
        scores.attack,
        scores.null,
        claimed=claimed,
        delta=delta,
        confidence=confidence,
        pair_mu=pair_mu,
        noise=noise,
    )
