"""The replay attack: the optimal distinguisher for a whole transcript, from the solver itself.

Run the solver on D, then replay the recorded messages on D and on D': the difference of the two
log-densities is the log-likelihood ratio, and by Neyman and Pearson no attack on the transcript is
better. Trials run in chunks: one call of the solver is `chunk` independent trials.

Where nothing is sampled, one pass of the solver over both data sets is the run and both replays
at once: the neighbour's state is a function of the same messages.

The log-likelihood ratio of a transcript is the sum over its messages, since each message's density
is known given what went before: for Gaussian noise -(|y - f(D)|² - |y - f(D')|²)/(2 sigma²).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from ..mechanisms.curators import Curator, Release, SamplingCurator
from ..mechanisms.errors import InvalidParameter, require_nonnegative, require_positive_int
from ..mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    LaplaceStep,
    PoissonSampled,
    RandomisedResponse,
    SampledWithoutReplacement,
)
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import EventList, FloatArray
from ..mechanisms.sampling import BitGenerator, Sampler, SeededSampler, SimulationSampler
from ..mechanisms.sensitive import Sensitive
from ..solvers.planning import plan
from .assessment import AttackResult, assess
from .bounds import Scores
from .curators import RecordingCurator, ReplayCurator, log_density, shown_value
from .datasets import AuditDataset
from .metrics import Promise

__all__ = [
    "Progress",
    "ReplayScores",
    "ReplayTrials",
    "Solve",
    "chunk_sizes",
    "replay_attack",
    "replay_chunks",
]

Solve = Callable[[PrivateDataset, Curator], object]
"""Runs an algorithm on a data set through a curator; a solver's `solve` is one."""

Progress = Callable[[int, int], None]
"""Called with the numbers of finished and of all trials (of one world) after every chunk."""


_SAMPLED = (GaussianMixtureStep, PoissonSampled, SampledWithoutReplacement)
"""Mechanisms with a hidden sample or component, whose likelihood depends on what was drawn."""


class _World(Enum):
    """Which runs; the values number independent streams of noise."""

    DATASET = 0
    NEIGHBOUR = 1
    NULL_FIRST = 2
    NULL_SECOND = 3


@dataclass(frozen=True, slots=True)
class ReplayScores:
    """Log-likelihood ratios of the attack and of its null control.

    Args:
        attack: of runs on D and on D'.
        null: of two sets of runs on D, scored as if the second were D': any advantage here is an
            error.
    """

    attack: Scores
    null: Scores


class _ScoringCurator(SamplingCurator):
    """Runs on the first of two paired data sets, and adds up the log-ratio.

    Args:
        sampler: where noise comes from.
        trials: that run at once.
        party: whose records differ; None where they may be anybody's.
    """

    def __init__(self, sampler: Sampler, *, trials: int, party: str | None) -> None:
        super().__init__(EventList(), sampler, trials=trials)
        self._party = party
        self.log_ratio: FloatArray = np.zeros(trials)

    def _deliver(self, release: Release) -> FloatArray:
        """Draw a message around the first data set's value, and add its log-ratio against the
        second's.

        Values come paired, shape (2, ..., P, d): one pass of the solver computes both.
        """
        sensitive, pair = release.sensitive, shown_value(release)
        # paired values have a leading axis of length 2 before that of the trials: (2, ..., P, d)
        if pair.shape[0] != 2 or pair.ndim < 4:
            raise InvalidParameter("sensitive", sensitive, "computed on two data sets at once")
        ran = Sensitive(
            sensitive.sensitivity,
            sensitive.rounding,
            parties=sensitive.parties,
            dimension=sensitive.dimension,
            compute=lambda: np.broadcast_to(pair[0], (*self._lead, *pair.shape[-2:])),
            auditable=True,
        )
        content = super()._deliver(replace(release, sensitive=ran))
        rows = self._moving_rows(sensitive)
        # rows of other parties are equal on both sides, and cancel in the ratio
        densities = [
            log_density(release, content[..., rows, :], value[..., rows, :]) for value in pair
        ]
        self.log_ratio = self.log_ratio + (densities[0] - densities[1])
        return content

    def _moving_rows(self, sensitive: Sensitive) -> slice:
        """Return the rows of a block that may differ: a row is its party's alone."""
        if self._party is None or self._party not in sensitive.parties:
            return slice(None)
        row = sensitive.parties.index(self._party)
        return slice(row, row + 1)


@dataclass(frozen=True, slots=True, eq=False)
class ReplayTrials:
    """The trials of a replay attack; any chunk of them can be computed anywhere, in any order.

    Noise comes from one stream of the seed for each world and chunk, so that the same seed and
    sizes give the same scores.

    Args:
        solve: the algorithm.
        dataset: D.
        neighbour: D', with the same public facts. Where the algorithm samples, it differs in one
            record, and the ratio is that of `ReplayCurator`, for an adversary who knows the others'
            part in the samples.
        seed: a whole number >= 0.

    Raises `InvalidParameter` when the public facts differ or the seed is out of range.
    """

    solve: Solve
    dataset: AuditDataset
    neighbour: AuditDataset
    seed: int
    _samples: bool = field(init=False)
    _gaussian: bool = field(init=False)

    def __post_init__(self) -> None:
        require_nonnegative("seed", self.seed)
        for side in (self.dataset, self.neighbour):
            if not isinstance(side, AuditDataset):
                raise InvalidParameter(
                    "dataset", side, "an AuditDataset, made of the records by whoever holds them"
                )
        if self.dataset.shape != self.neighbour.shape:
            raise InvalidParameter(
                "neighbour.shape", self.neighbour.shape, f"equal to {self.dataset.shape}"
            )
        planned = plan(self.solve, self.dataset.shape)
        samples = any(isinstance(event.mechanism, _SAMPLED) for event in planned)
        object.__setattr__(self, "_samples", samples)
        others = (LaplaceStep, DiscreteLaplaceStep, DiscreteGaussianStep, RandomisedResponse)
        gaussian = not any(isinstance(event.mechanism, others) for event in planned)
        object.__setattr__(self, "_gaussian", gaussian)

    def attack(self, number: int, size: int) -> Scores:
        """Return the scores of chunk `number`: `size` runs on D and as many on D'.

        Args:
            number: of the chunk, from 0.
            size: trials in it.
        """
        return self._scores(_World.DATASET, _World.NEIGHBOUR, number, size)

    def null(self, number: int, size: int) -> Scores:
        """Return what the null control makes of chunk `number`: twice `size` runs, all on D.

        Args:
            number: of the chunk, from 0.
            size: trials in each of the two sets.
        """
        return self._scores(_World.NULL_FIRST, _World.NULL_SECOND, number, size)

    def _scores(self, first: _World, second: _World, number: int, size: int) -> Scores:
        """Return scores of two worlds' runs, shape (size,) each; larger speaks for D."""
        return Scores(*(self._ratios(world, number, size) for world in (first, second)))

    def _ratios(self, world: _World, number: int, size: int) -> FloatArray:
        """Return log p(transcript | D) - log p(transcript | D') of a world's runs."""
        ran, other = self.dataset, self.neighbour
        if world is _World.NEIGHBOUR:
            ran, other = other, ran
        bits = BitGenerator.SFC64  # the fastest: noise is a fifth of a small trial's time
        # only normal noise has a fast stand-in
        kind = SimulationSampler if self._gaussian else SeededSampler
        sampler = kind.stream(self.seed, world.value, number, bits=bits)
        ratio = self._replayed if self._samples else self._paired
        found = ratio(ran, other, sampler, size)
        # the ratio is of what ran over the other; a score is of D over D' in every world
        return -found if world is _World.NEIGHBOUR else found

    def _paired(
        self, ran: AuditDataset, other: AuditDataset, sampler: Sampler, size: int
    ) -> FloatArray:
        """Return the log-ratio by one pass over both data sets."""
        curator = _ScoringCurator(sampler, trials=size, party=ran.differing_party(other))
        # glibc hands freed arrays back to the system, and faults the next ones in page by page,
        # until it has seen a large one freed: a fifth of a run's time
        np.empty(2**21)
        self.solve(ran.paired_with(other), curator)
        return curator.log_ratio

    def _replayed(
        self, ran: AuditDataset, other: AuditDataset, sampler: Sampler, size: int
    ) -> FloatArray:
        """Return the log-ratio by a run and a replay on each data set; holds the transcript."""
        curator = RecordingCurator(EventList(), sampler, trials=size)
        self.solve(ran, curator)
        differing = ran.differing(other)
        if differing is None or len(differing) > 1:
            raise InvalidParameter("neighbour", "several records", "with one record changed")

        def density(side: AuditDataset) -> FloatArray:
            replay = ReplayCurator(
                curator.transcript,
                uniforms=curator.uniforms,
                differing=int(differing[0]) if len(differing) else 0,
            )
            self.solve(side, replay)
            return replay.log_density

        return density(ran) - density(other)


def replay_chunks(
    solve: Solve,
    dataset: AuditDataset,
    neighbour: AuditDataset,
    *,
    trials: int,
    seed: int,
    chunk: int,
) -> Iterator[ReplayScores]:
    """Yield the scores of `trials` trials a world, a chunk at a time.

    A caller who stops early keeps what was yielded.

    Args:
        solve, dataset, neighbour, seed: as for `ReplayTrials`.
        trials: number of trials in each of the four worlds (two of the attack, two of the null).
        chunk: trials that run at once; see `trials_at_once`.

    Raises `InvalidParameter` when the public facts differ or a number is out of range.
    """
    found = ReplayTrials(solve, dataset, neighbour, seed)
    for number, size in enumerate(chunk_sizes(trials, chunk)):
        yield ReplayScores(attack=found.attack(number, size), null=found.null(number, size))


def chunk_sizes(trials: int, chunk: int) -> list[int]:
    """Return the sizes of the chunks that make up `trials` trials.

    Args:
        trials: in all.
        chunk: at once; the last one may be smaller.
    """
    require_positive_int("trials", trials)
    require_positive_int("chunk", chunk)
    return [min(chunk, trials - start) for start in range(0, trials, chunk)]


def replay_attack(
    solve: Solve,
    dataset: AuditDataset,
    neighbour: AuditDataset,
    *,
    trials: int,
    seed: int,
    chunk: int,
    claimed: Promise,
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

    The claim fixes the threshold before any score is seen, so that no threshold is chosen on the
    runs that it is tested on.

    Source: Neyman, Pearson 1933, for the optimal test; `assess` for bounds and null control.
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
    """Return the scores of all chunks as one sample, in order."""
    return Scores(
        np.concatenate([part.dataset for part in parts]),
        np.concatenate([part.neighbour for part in parts]),
    )
