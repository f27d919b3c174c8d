"""The replay attack: the optimal distinguisher for a whole transcript, from the solver itself.

Run the solver on D, then replay the recorded messages on D and on D': the difference of the two
log-densities is the log-likelihood ratio, and by Neyman and Pearson no attack on the transcript is
better. Trials run in chunks: one call of the solver is `chunk` independent trials.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..accounting.notions import Gdp
from ..mechanisms.curators import Curator, ReplayCurator, SamplingCurator, log_density_of
from ..mechanisms.errors import InvalidParameter, require_nonnegative, require_positive_int
from ..mechanisms.events import Event
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import EventList, FloatArray
from ..mechanisms.sampling import SeededSampler
from ..mechanisms.sensitive import Sensitive
from .assessment import AttackResult, assess
from .bounds import Scores

__all__ = ["Progress", "ReplayScores", "Solve", "replay_attack", "replay_chunks"]

Solve = Callable[[PrivateDataset, Curator], object]
"""Runs an algorithm on a data set through a curator; a solver's `solve` is one."""

Progress = Callable[[int, int], None]
"""Called with the numbers of finished and of all trials (of one world) after every chunk."""


class _World(Enum):
    """Which runs; the values number independent streams of noise."""

    DATASET = 0
    NEIGHBOUR = 1
    NULL_FIRST = 2
    NULL_SECOND = 3


@dataclass(frozen=True, slots=True)
class ReplayScores:
    """Log-likelihood ratios of the attack and of its null control."""

    attack: Scores
    null: Scores


class _ScoringCurator(SamplingCurator):
    """Samples, records, and adds up the log-density that a replay on the same data would find."""

    def __init__(self, sampler: SeededSampler, *, trials: int) -> None:
        super().__init__(EventList(), sampler, trials=trials, record=True)
        self.log_density: FloatArray = np.zeros(trials)

    def _deliver(
        self,
        sensitive: Sensitive,
        event: Event,
        noise_std: float,
        stand_in: FloatArray | None = None,
    ) -> FloatArray:
        content = super()._deliver(sensitive, event, noise_std, stand_in)
        value = sensitive._value
        if value is not None:
            self.log_density = self.log_density + log_density_of(content, value, noise_std)
        return content


def replay_chunks(
    solve: Solve,
    dataset: PrivateDataset,
    neighbour: PrivateDataset,
    *,
    trials: int,
    seed: int,
    chunk: int,
) -> Iterator[ReplayScores]:
    """Yield the scores of `trials` trials a world, a chunk at a time.

    A caller who stops early keeps what was yielded. Memory holds one transcript: chunk · rounds · P
    · d numbers. Noise comes from one Philox stream for each world and chunk, so the same seed and
    chunk give the same scores.

    Args:
        solve: the algorithm.
        dataset: D.
        neighbour: D', with the same public facts.
        trials: number of trials in each of the four worlds (two of the attack, two of the null).
        seed: a whole number >= 0.
        chunk: trials that run at once; about a hundred is fastest, as larger ones leave the cache
            and wake the threads of BLAS.

    Raises `InvalidParameter` when the public facts differ or a number is out of range.
    """
    require_positive_int("trials", trials)
    require_positive_int("chunk", chunk)
    require_nonnegative("seed", seed)
    if dataset.shape != neighbour.shape:
        raise InvalidParameter("neighbour.shape", neighbour.shape, f"equal to {dataset.shape}")

    def ratios(world: _World, number: int, size: int) -> FloatArray:
        ran, other = (neighbour, dataset) if world is _World.NEIGHBOUR else (dataset, neighbour)
        curator = _ScoringCurator(SeededSampler.stream(seed, world.value, number), trials=size)
        solve(ran, curator)
        replay = ReplayCurator(curator.transcript)
        solve(other, replay)
        ratio = curator.log_density - replay.log_density
        return -ratio if world is _World.NEIGHBOUR else ratio

    for number, start in enumerate(range(0, trials, chunk)):
        size = min(chunk, trials - start)
        scored = {world: ratios(world, number, size) for world in _World}
        yield ReplayScores(
            attack=Scores(scored[_World.DATASET], scored[_World.NEIGHBOUR]),
            null=Scores(scored[_World.NULL_FIRST], scored[_World.NULL_SECOND]),
        )


def replay_attack(
    solve: Solve,
    dataset: PrivateDataset,
    neighbour: PrivateDataset,
    *,
    trials: int,
    seed: int,
    chunk: int,
    claimed: Gdp,
    delta: float,
    confidence: float,
    progress: Progress | None = None,
) -> AttackResult:
    """Return what replaying the solver on two neighbouring data sets shows about its guarantee.

    Args as for `replay_chunks`, and:
        claimed: the guarantee that the plan promises; it fixes the threshold beforehand.
        delta: where epsilon is bounded, in (0, 1).
        confidence: of each bound, in (0, 1).
        progress: called after every chunk; what it raises ends the attack.
    """
    chunks: list[ReplayScores] = []
    done = 0
    for scores in replay_chunks(solve, dataset, neighbour, trials=trials, seed=seed, chunk=chunk):
        chunks.append(scores)
        done += scores.attack.dataset.size
        if progress is not None:
            progress(done, trials)
    return assess(
        _joined([c.attack for c in chunks]),
        _joined([c.null for c in chunks]),
        claimed=claimed,
        delta=delta,
        confidence=confidence,
    )


def _joined(parts: list[Scores]) -> Scores:
    return Scores(
        np.concatenate([part.dataset for part in parts]),
        np.concatenate([part.neighbour for part in parts]),
    )
