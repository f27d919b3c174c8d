"""Is the noise of a run what its events say? Recorded messages minus what the data give.

Whoever holds the data can recompute what each message was before its noise, from the messages
before it. What is left over, divided by the stated standard deviation, must be independent standard
normal numbers. A handful of exact tests sees noise that is too small, reused, drawn from a seed
that starts again, correlated between rounds, parties or coordinates, or of another law; one run is
enough. No attack on the output is asked: noise may be wrong where no attack shows it yet.

>>> generator = np.random.default_rng([7, 11])
>>> drawn = [Residual(generator.normal(size=(2, 50)), "x") for _ in range(9)]
>>> noise_tests([drawn], level=0.01).refuted
False
>>> noise_tests([[drawn[0]] * 9], level=0.01).refuted
True
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, lgamma, log, sqrt

import numpy as np
from scipy.special import chdtr, chdtrc, ndtr, stdtr
from scipy.stats import kstest

from ..mechanisms.curators import Message, Release
from ..mechanisms.errors import require_open_unit
from ..mechanisms.events import (
    GaussianMixtureStep,
    GaussianStep,
    Mechanism,
    PoissonSampled,
    SampledWithoutReplacement,
)
from ..mechanisms.protocols import EventList, FloatArray
from ..mechanisms.sampling import Sampler
from .claim_tests import ClaimTest
from .curators import RecordingCurator, TranscriptCurator
from .datasets import AuditDataset
from .replay import Solve


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """(recorded - recomputed) / stated noise_std of one message, shape (P, d), and its name.

    Under the null hypothesis its entries are independent standard normal, of all messages
    together, but for what their number format rounds: `rounding`, in the same unit.
    """

    values: FloatArray
    name: str
    rounding: float = 0.0


def format_rounding(content: FloatArray) -> float:
    """Return what a few operations may have rounded off a message's numbers, in their own unit.

    Four units in the last place of the largest, in the shortest format that holds all of them.
    """
    top = float(np.max(np.abs(content), initial=0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        single = content.astype(np.float32)
        if not np.array_equal(single, content):
            return 4.0 * float(np.spacing(top))
        if np.array_equal(content.astype(np.float16), content):
            return 4.0 * float(np.spacing(np.float16(top)))
    brain = not np.any(single.view(np.uint32) & 0xFFFF)
    return 4.0 * float(np.spacing(np.float32(top))) * (2.0**16 if brain else 1.0)


def has_normal_noise(mechanism: Mechanism) -> bool:
    """Return whether a mechanism's residuals are held to the normal law; Laplace's are not."""
    if isinstance(mechanism, PoissonSampled | SampledWithoutReplacement):
        return isinstance(mechanism.event, GaussianStep)
    return isinstance(mechanism, GaussianStep | GaussianMixtureStep)


class _ResidualCurator(TranscriptCurator):
    """Gives back recorded messages, and notes what is left of them without their values."""

    def __init__(self, transcript: Sequence[Message], uniforms: Sequence[FloatArray]) -> None:
        super().__init__(transcript, uniforms=uniforms)
        self.residuals: list[Residual] = []

    def _notice(self, release: Release, value: FloatArray, content: FloatArray) -> None:
        # other noise has another law, which is not tested here
        """Note (message - value) / noise_std of a release with normal noise, a standard normal
        number if the noise is as its event states.
        """
        if release.scale > 0.0 and has_normal_noise(release.event.mechanism):
            context = release.event.context
            name = f"{context.release}, round {context.round}"
            rounding = format_rounding(content) / release.scale
            self.residuals.append(Residual((content - value) / release.scale, name, rounding))


def residuals(
    solve: Solve,
    dataset: AuditDataset,
    transcript: Sequence[Message],
    *,
    uniforms: Sequence[FloatArray] = (),
) -> list[Residual]:
    """Return what is left of a run's recorded messages when the values on its data are taken away.

    Args:
        solve: the algorithm that ran.
        dataset: on which it ran.
        transcript: its messages, of one run; the events state the law of the noise.
        uniforms: that decided its samples, where it sampled.

    Raises `InvalidParameter` where the algorithm asks for other releases than were recorded.
    """
    curator = _ResidualCurator(transcript, uniforms)
    solve(dataset, curator)
    return curator.residuals


def noise_test_of_run(
    solve: Solve, dataset: AuditDataset, sampler: Sampler, *, level: float
) -> ClaimTest:
    """Return what a fresh run's noise shows, drawn by `sampler` on the data at hand.

    Nothing of the run is released or kept.

    Args:
        solve: the algorithm.
        dataset: on which it runs here.
        sampler: under test.
        level: the largest probability to refute a sampler that is right, in (0, 1).
    """
    curator = RecordingCurator(EventList(), sampler)
    solve(dataset, curator)
    left = residuals(solve, dataset, curator.transcript, uniforms=curator.uniforms)
    return noise_tests([left], level=level)


def noise_tests(runs: Sequence[Sequence[Residual]], *, level: float) -> ClaimTest:
    """Return whether residuals of one run or several speak against the stated law of the noise.

    Each p-value is exact or an upper bound; the smallest is held to `level` divided by their
    number (Bonferroni).

    Args:
        runs: the residuals of each, in order.
        level: the largest probability to refute noise that is as stated, in (0, 1).

    Error controlled: family-wise, at `level`, however the tests depend on each other, as
    Bonferroni's correction asks for no independence. Not tested here: noise of other laws than
    the normal one.
    """
    require_open_unit("level", level)
    found = [p for run in runs for p in _of_run(run)]
    everything = [message.values.ravel() for run in runs for message in run]
    count = sum(values.size for values in everything)
    if count == 0:
        return ClaimTest("noise", level, False, "not tested: nothing was released with noise", "")
    pooled = np.concatenate(everything)
    rounding = max(message.rounding for run in runs for message in run)
    found.append(_closest(everything, rounding))
    found += _known_streams(runs, rounding)
    if len(runs) > 1:
        # a few numbers a run tell little of the scale that all of them tell together
        found.append(_scale("scale of all runs", pooled))
    # a seed that starts again gives two runs the same noise: correlation 1 between messages
    for first, second in pairwise(runs):
        pairs = list(zip(first, second, strict=False))
        found += _correlated(
            "between runs",
            [a.values for a, b in pairs if a.values.shape == b.values.shape],
            [b.values for a, b in pairs if a.values.shape == b.values.shape],
        )
    found.append(_P("mean", _two_sided(float(pooled.sum()) / sqrt(count))))
    found.append(_P("law", float(kstest(pooled, "norm").pvalue)))
    worst = min(found, key=lambda each: each.value)
    smallest = min(1.0, worst.value * len(found))
    refuted = smallest <= level
    scale = sqrt(float(pooled @ pooled) / count)
    words = f"{count} numbers, {scale:.4g} of the stated noise; {len(found)} tests"
    return ClaimTest(
        name="noise",
        level=level,
        refuted=refuted,
        detail=f"{words}, the worst {worst.name}, p = {smallest:.3g} together",
        valid_when="the values are recomputed on the data and from the messages of the run itself",
    )


@dataclass(frozen=True, slots=True)
class _P:
    """A test's name and its p-value."""

    name: str
    value: float


def _two_sided(normal: float) -> float:
    """Return the p-value of a standard normal number, in both directions."""
    return 2.0 * float(ndtr(-abs(normal)))


def _of_run(run: Sequence[Residual]) -> Iterator[_P]:
    """Yield the tests of one run: scale of all and of each part, and neighbours in each way."""
    if not run:
        return
    yield _scale("scale", np.concatenate([message.values.ravel() for message in run]))
    if len(run) > 1:
        yield _smallest([_scale(f"scale of {m.name}", m.values.ravel()) for m in run])
    most = max(len(message.values) for message in run)
    if most > 1:
        by_party = [
            np.concatenate([m.values[party] for m in run if len(m.values) > party])
            for party in range(most)
        ]
        yield _smallest([_scale(f"scale of party {k}", v) for k, v in enumerate(by_party)])
    for start in (0, 1):
        ahead = [
            (a.values, b.values)
            for a, b in zip(run[start::2], run[start + 1 :: 2], strict=False)
            if a.values.shape == b.values.shape
        ]
        yield from _correlated("between rounds", [a for a, _ in ahead], [b for _, b in ahead])
        yield from _correlated(
            "between parties",
            [m.values[start : start + 2 * ((len(m.values) - start) // 2) : 2] for m in run],
            [m.values[start + 1 :: 2] for m in run],
        )
        yield from _correlated(
            "between coordinates",
            [m.values[:, start : start + 2 * ((m.values.shape[1] - start) // 2) : 2] for m in run],
            [m.values[:, start + 1 :: 2] for m in run],
        )


def _smallest(tests: Sequence[_P]) -> _P:
    """Return the smallest p-value of several, corrected for their number (Bonferroni)."""
    worst = min(tests, key=lambda each: each.value)
    return _P(worst.name, min(1.0, worst.value * len(tests)))


def _scale(name: str, values: FloatArray) -> _P:
    """Test the sum of squares, chi-squared with as many degrees of freedom, on both sides."""
    squares, freedom = float(values @ values), values.size
    tails = float(chdtr(freedom, squares)), float(chdtrc(freedom, squares))
    return _P(name, min(1.0, 2.0 * min(tails)))


def _correlated(name: str, first: Sequence[FloatArray], second: Sequence[FloatArray]) -> list[_P]:
    """Test the correlation of two vectors of n numbers: r sqrt((n-1)/(1-r²)) is t with n - 1.

    No mean is taken off: it is known to be 0. The vectors share no number, so under the stated law
    they are independent and the distribution is exact.
    """
    one, other = (
        np.concatenate([part.ravel() for part in parts]) if parts else np.zeros(0)
        for parts in (first, second)
    )
    freedom = one.size - 1
    norms = float(one @ one) * float(other @ other)
    if freedom < 1 or norms == 0.0:
        return []
    r = float(one @ other) / sqrt(norms)
    statistic = abs(r) * sqrt(freedom / max(1.0 - r * r, 1e-300))
    return [_P(f"correlation {name}", 2.0 * float(stdtr(freedom, -statistic)))]


# more numbers would not be told apart within the rounding of a residual
_MOST_COMPARED = 5_000
# residuals are differences: their last digits are rounding, and noise may lie on a lattice
_RESOLUTION = 1e-12


def _closest(vectors: Sequence[FloatArray], rounding: float) -> _P:
    """Test gaps between absolute values: reused noise, its sign turned or not.

    Two of n normal numbers are within g, up to sign, with probability at most 2g/sqrt(pi): their
    difference and their sum have a density of at most 1/(2 sqrt(pi)). So k disjoint pairs are with
    probability at most λ^k/k!, λ = n(n-1)/2 · 2g/sqrt(pi): asked of the closest pair, and of all
    that are the same but for what is rounded.
    """
    each = max(1, _MOST_COMPARED // len(vectors))
    compared = np.sort(np.abs(np.concatenate([vector[:each] for vector in vectors])))
    count, resolution = compared.size, max(rounding, _RESOLUTION)
    if count < 2:
        return _P("repeats", 1.0)
    gaps = np.diff(compared)
    pairs = count * (count - 1) / sqrt(np.pi)
    closest = pairs * (float(gaps.min()) + resolution)
    same = np.flatnonzero(gaps <= resolution)
    # of numbers side by side every second gap is of a pair of its own
    stretches = np.split(same, np.flatnonzero(np.diff(same) > 1) + 1)
    disjoint = sum((stretch.size + 1) // 2 for stretch in stretches)
    together = disjoint * log(2 * resolution * pairs) - lgamma(disjoint + 1)
    return _P("repeats", min(1.0, 2 * min(closest, exp(min(together, 0.0)))))


_SEEDS = 1024


def _known_streams(runs: Sequence[Sequence[Residual]], rounding: float) -> list[_P]:
    """Test whether a message begins as numpy's generators do from a small seed.

    Among n messages and s streams, k numbers agree within g with probability at most
    n s (2g · 0.4)^k.
    """
    starts = [message.values.ravel()[:3] for run in runs for message in run][:_MOST_COMPARED]
    starts = [start for start in starts if start.size == 3]
    if not starts:
        return []
    from scipy.spatial import cKDTree

    gaps, _ = cKDTree(_streams()).query(np.stack(starts), p=np.inf)
    gap = float(np.min(gaps)) + max(rounding, _RESOLUTION)
    chance = len(starts) * len(_streams()) * (0.8 * gap) ** 3
    return [_P("a stream of a known seed", min(1.0, chance))]


def _streams() -> FloatArray:
    """Return how numpy's generators begin from the seeds that people choose, shape (S, 3)."""
    if not _begun:
        for seed in (*range(_SEEDS), 1234, 12345, 2020, 2021, 2022, 2023, 2024, 2025):
            _begun.append(np.random.default_rng(seed).standard_normal(3))
            _begun.append(np.random.RandomState(seed).standard_normal(3))
    return np.stack(_begun)


_begun: list[FloatArray] = []
