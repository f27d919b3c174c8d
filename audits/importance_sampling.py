"""Epsilon of one pair of neighbours between two bounds, from runs with tilted noise.

Epsilon at a small delta is decided by outputs that runs hardly ever give. So the noise is tilted:
every message is moved along the gap between what the two data sets would say, which makes the rare
outputs common, and each run is weighted by how much rarer it truly is. Where the gap does not
depend on the history the weighted terms are bounded, and an empirical-Bernstein inequality encloses

    delta(epsilon) = E_D (1 - e^(epsilon - L))_+,    L = log p(output | D) - log p(output | D'),

hence epsilon, from above too. It speaks of this pair only.

>>> from scipy.special import ndtri
>>> tilt = plan_tilt(gap_squared=1, delta=1e-5)
>>> round(tilt.amount, 2)
4.2
>>> ratios = tilt.amount + 0.5 + ndtri((np.arange(20_000) + 0.5) / 20_000)
>>> runs = TiltedRuns(ratios, tilt.log_constant - tilt.amount * ratios)
>>> found = epsilon_interval(runs, tilt, delta=1e-5, lower_error=0.02, upper_error=0.02)
>>> round(found.lower, 2), round(found.upper, 2)
(4.37, 4.39)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..accounting.gaussian.exact import epsilon_from_delta
from ..mechanisms.curators import Message, Release, SamplingCurator
from ..mechanisms.errors import (
    InvalidParameter,
    require_finite,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ..mechanisms.protocols import EventList, FloatArray
from ..mechanisms.sampling import SimulationSampler
from .curators import ReplayCurator, TranscriptCurator, log_density_of, shown_value
from .datasets import AuditDataset
from .replay import Progress, Solve


@dataclass(frozen=True, slots=True)
class EpsilonInterval:
    """With probability `confidence`, epsilon of this pair at `delta` is in [lower, upper].

    `upper` is infinite where the gap depends on the history (`bounded` is False) or the runs were
    too few; `lower` holds in any case.

    Args:
        lower, upper: ends of the interval, in nats.
        delta: in (0, 1).
        confidence: that both ends hold together.
        trials: number of tilted runs.
        bounded: whether every weighted term was within its bound.
    """

    lower: float
    upper: float
    delta: float
    confidence: float
    trials: int
    bounded: bool


@dataclass(frozen=True, slots=True)
class Tilt:
    """How runs on D are tilted and where epsilon is looked for; fixed before the runs.

    Args:
        amount: the noise is moved by this multiple of the gap.
        gap_squared: sum over messages of (gap / noise_std)², for a gap free of the history.
        least, most: the ends of the epsilons that the runs shall tell apart.
    """

    amount: float
    gap_squared: float
    least: float
    most: float

    def __post_init__(self) -> None:
        require_nonnegative("amount", self.amount)
        require_positive("gap_squared", self.gap_squared)
        require_nonnegative("least", self.least)
        require_finite("most", self.most)
        if not self.least < self.most:
            raise InvalidParameter("most", self.most, f"in ({self.least}, inf)")

    @property
    def log_constant(self) -> float:
        """log weight + amount·L of every run, for a gap free of the history."""
        return (self.amount + self.amount**2) / 2 * self.gap_squared

    def largest_term(self, epsilon: FloatArray) -> FloatArray:
        """Return the largest weight·(1 - e^(epsilon - L))_+ that any run can have.

        Args:
            epsilon: of any shape; the result has the same.

        Only for a gap free of the history; it is the range that the empirical-Bernstein
        inequality needs.
        """
        # x^amount (1 - x), x = e^(epsilon - L), is largest at x = amount/(1 + amount)
        a = self.amount
        peak = (a * log(a) if a > 0 else 0.0) - (1 + a) * log(1 + a)
        return np.exp(self.log_constant - a * epsilon + peak) * (1 + 1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class TiltedRuns:
    """Runs with tilted noise, shape (N,) each.

    `log_ratio` is L; `log_weight` the log of the density without tilt over the density with it.

    L = log p(output | D) - log p(output | D'), in nats. Raises `InvalidParameter` for fewer than
    two runs, unequal shapes, or numbers that are not finite.
    """

    log_ratio: FloatArray
    log_weight: FloatArray

    def __post_init__(self) -> None:
        if self.log_ratio.ndim != 1 or self.log_ratio.size < 2:
            raise InvalidParameter("log_ratio.shape", self.log_ratio.shape, "(N,) with N >= 2")
        if self.log_weight.shape != self.log_ratio.shape:
            raise InvalidParameter(
                "log_weight.shape", self.log_weight.shape, f"equal to {self.log_ratio.shape}"
            )
        if not (np.isfinite(self.log_ratio).all() and np.isfinite(self.log_weight).all()):
            raise InvalidParameter("log_ratio", "NaN or infinity", "with finite numbers only")


def plan_tilt(*, gap_squared: float, delta: float) -> Tilt:
    """Return the tilt with the least variance at the epsilon of a gap free of the history.

    Args:
        gap_squared: sum over messages of (gap / noise_std)²; a pilot run's will do.
        delta: where epsilon will be enclosed, in (0, 1).

    For a Gaussian pair L is normal with mean mu²/2 and variance mu² under D, so that the second
    moment of a weighted term is an integral over one line; it is minimised over the amount. A
    poor minimum costs width of the interval and never its confidence.
    """
    require_positive("gap_squared", gap_squared)
    expected = epsilon_from_delta(mu_squared=gap_squared, delta=delta).upper_float
    mu = sqrt(gap_squared)
    # only runs with L above epsilon contribute; 12 mu beyond reaches where the density is 1e-31
    ratios = np.linspace(expected, max(expected, gap_squared) + 12 * mu, 2_001)
    log_density = -((ratios / mu - mu / 2) ** 2) / 2
    squares = np.expm1(expected - ratios) ** 2

    def log_second_moment(amount: float) -> float:
        constant = (amount + amount**2) / 2 * gap_squared
        return log(np.sum(np.exp(log_density - amount * (ratios - expected)) * squares)) + (
            constant - amount * expected
        )

    largest = expected / gap_squared + 3 / mu
    found: Any = minimize_scalar(log_second_moment, bounds=(0.0, largest), method="bounded")
    return Tilt(
        float(found.x), gap_squared, least=0.75 * expected, most=1.25 * expected + 0.25 * mu
    )


# --- runs --------------------------------------------------------------------------------------


class _TiltedCurator(SamplingCurator):
    """Moves every message along a fixed direction; adds up both log-densities of what it gave.

    Args:
        shifts: for each message in order, of shape (P, d); None for a pilot run, not moved.

    Messages are drawn from N(f(D) + shift, sigma²); log densities under N(f(D), sigma²) and under
    what they were drawn from are added up, and their difference is the run's weight.
    """

    def __init__(
        self, sampler: SimulationSampler, *, trials: int, shifts: list[FloatArray] | None
    ) -> None:
        super().__init__(EventList(), sampler, trials=trials, record=True)
        self._shifts = shifts
        self.values: list[FloatArray] = []
        self.log_density: FloatArray = np.zeros(trials)
        self.log_density_tilted: FloatArray = np.zeros(trials)

    def _deliver(self, release: Release) -> FloatArray:
        """Draw a message, move it along its shift, and add both log-densities of what was drawn."""
        sensitive, noise_std = release.sensitive, release.scale
        public = sensitive.sensitivity.squared == 0
        if (noise_std == 0.0 and not public) or sensitive.sampled_part is not None:
            raise InvalidParameter("event", release.event, "a Gaussian step: only those are tilted")
        number, value = len(self.values), shown_value(release)
        content = super()._deliver(release)
        self.values.append(np.asarray(value))
        if noise_std == 0.0:
            return content
        drawn = log_density_of(content, value, noise_std)
        self.log_density_tilted = self.log_density_tilted + drawn
        if self._shifts is not None:
            # the transcript holds this very array: replays must see the moved message
            content += self._shifts[number]
        self.log_density = self.log_density + log_density_of(content, value, noise_std)
        return content


class _WatchingReplay(TranscriptCurator):
    """Keeps what the data at hand would have said, and the noise it had."""

    def __init__(self, transcript: list[Message]) -> None:
        super().__init__(transcript)
        self.values: list[FloatArray] = []
        self.noise_stds: list[float] = []

    def _notice(self, release: Release, value: FloatArray, content: FloatArray) -> None:
        """Keep a message's value on the data at hand, and its noise."""
        self.values.append(np.asarray(value))
        self.noise_stds.append(release.scale)


def _pilot(
    solve: Solve, dataset: AuditDataset, neighbour: AuditDataset, sampler: SimulationSampler
) -> tuple[list[FloatArray], float]:
    """Return the gap of each message of one run, and the sum of their (gap / noise_std)²."""
    # its own stream of noise, apart from the runs: the tilt is fixed before any of them
    curator = _TiltedCurator(sampler, trials=1, shifts=None)
    solve(dataset, curator)
    replay = _WatchingReplay(curator.transcript)
    solve(neighbour, replay)
    gaps = [
        np.broadcast_to(value - other, message.content.shape)[0]
        for value, other, message in zip(
            curator.values, replay.values, curator.transcript, strict=True
        )
    ]
    total = sum(
        float(np.sum((gap / noise_std) ** 2))
        for gap, noise_std in zip(gaps, replay.noise_stds, strict=True)
        if noise_std > 0.0
    )
    return gaps, total


def tilted_chunks(
    solve: Solve,
    dataset: AuditDataset,
    neighbour: AuditDataset,
    *,
    delta: float,
    trials: int,
    seed: int,
    chunk: int,
) -> Iterator[tuple[Tilt, TiltedRuns]]:
    """Yield tilted runs on `dataset`, a chunk at a time, all with the tilt that a pilot run fixed.

    Args:
        solve: the algorithm; all its releases are Gaussian steps without hidden samples.
        dataset: D.
        neighbour: D', with the same public facts.
        delta: where epsilon will be enclosed, in (0, 1); it fixes the tilt.
        trials: number of runs after the pilot.
        seed: a whole number >= 0.
        chunk: runs at once, at least 2.

    Raises `InvalidParameter` for other releases, data sets that no message tells apart, or numbers
    out of range.
    """
    require_positive_int("trials", trials)
    require_nonnegative("seed", seed)
    if chunk < 2 or trials % chunk == 1:
        raise InvalidParameter("chunk", chunk, "at least 2, and 2 trials in the last chunk")
    if dataset.shape != neighbour.shape:
        raise InvalidParameter("neighbour.shape", neighbour.shape, f"equal to {dataset.shape}")
    gaps, gap_squared = _pilot(solve, dataset, neighbour, SimulationSampler.stream(seed, 0))
    if gap_squared == 0:
        raise InvalidParameter("neighbour", neighbour, "a data set that some message tells apart")
    tilt = plan_tilt(gap_squared=gap_squared, delta=delta)
    shifts = [tilt.amount * gap for gap in gaps]
    for number, start in enumerate(range(0, trials, chunk), start=1):
        size = min(chunk, trials - start)
        curator = _TiltedCurator(SimulationSampler.stream(seed, number), trials=size, shifts=shifts)
        solve(dataset, curator)
        replay = ReplayCurator(curator.transcript)
        solve(neighbour, replay)
        yield (
            tilt,
            TiltedRuns(
                curator.log_density - replay.log_density,
                curator.log_density - curator.log_density_tilted,
            ),
        )


# --- bounds ------------------------------------------------------------------------------------

_CELLS = 4096
# how far log weight + amount·L may stray for rounding alone, relative to its size
_STRAY = 1e-7


def epsilon_interval(
    runs: TiltedRuns, tilt: Tilt, *, delta: float, lower_error: float, upper_error: float
) -> EpsilonInterval:
    """Return the interval of the epsilon at which delta(epsilon), of D against D', is `delta`.

    An end is wrong with probability at most its error: an epsilon is left out only if a test at
    that epsilon rejects it (below `tilt.least` the test at `tilt.least` serves: delta(epsilon)
    falls), and the true one is rejected with at most that probability, however many others are
    tried. Between two edges a cell is rejected as a whole.

    For the lower end weights are cut where a gap free of the history would bound them, which only
    lowers the mean: it needs no condition on the gap.

    Source: Maurer, Pontil 2009, Theorem 4 (empirical Bernstein).
    """
    for name, chance in (
        ("delta", delta),
        ("lower_error", lower_error),
        ("upper_error", upper_error),
    ):
        require_open_unit(name, chance)
    slack = _STRAY * (1 + tilt.log_constant)
    most = tilt.log_constant - tilt.amount * runs.log_ratio
    bounded = bool(np.abs(runs.log_weight - most).max() <= slack)
    weights = np.minimum(runs.log_weight, most + slack)
    edges = np.linspace(tilt.least, tilt.most, _CELLS + 1)
    mean, square = _moments(runs.log_ratio, weights, edges)
    # in a cell the mean, the mean square and the largest term fall from left to right
    count, left, right = runs.log_ratio.size, slice(None, -1), slice(1, None)
    variance = np.maximum(square[left] - mean[right] ** 2, 0.0) * count / (count - 1)
    largest = tilt.largest_term(edges[left]) * exp(slack)

    def reach(error: float) -> FloatArray:
        log_error = log(2 / error)
        deviation = np.sqrt(2 * variance * log_error / count)
        return deviation + 7 * largest * log_error / (3 * (count - 1)) + _ROUNDING * delta

    too_small = np.append(mean[right] - reach(lower_error) > delta, False)
    too_large = np.append((mean[left] + reach(upper_error) < delta)[::-1], False)
    above, below = int(np.argmin(too_small)), int(np.argmin(too_large))
    return EpsilonInterval(
        lower=float(edges[above]) if above > 0 else 0.0,
        upper=float(edges[_CELLS - below]) if below > 0 and bounded else inf,
        delta=delta,
        confidence=1 - lower_error - upper_error,
        trials=count,
        bounded=bounded,
    )


# of the means, which are sums of positive terms less smaller ones, relative to delta
_ROUNDING = 1e-9


def _moments(
    ratios: FloatArray, log_weights: FloatArray, epsilons: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and mean square of weight·(1 - e^(epsilon - L))_+ at each epsilon.

    By sorting the ratios once: the sums over runs with L > epsilon are cumulative sums.

    Args:
        ratios: L of each run, shape (N,).
        log_weights: shape (N,).
        epsilons: rising, shape (n,).
    """
    order = np.argsort(ratios)[::-1]
    ratio, weight = ratios[order], np.exp(log_weights[order])
    # e^(epsilon - L) = e^(epsilon - base)·shrunk, so that no exponential is large
    base = float(epsilons[0])
    shrunk = np.exp(np.minimum(base - ratio, 0.0))
    above = ratio.size - np.searchsorted(ratio[::-1], epsilons, "right")
    factor = np.exp(epsilons - base)

    def total(terms: FloatArray) -> FloatArray:
        return np.append(0.0, np.cumsum(terms))[above]

    mean = total(weight) - factor * total(weight * shrunk)
    square = (
        total(weight**2)
        - 2 * factor * total(weight**2 * shrunk)
        + factor**2 * total((weight * shrunk) ** 2)
    )
    return mean / ratio.size, square / ratio.size


def pair_interval(
    solve: Solve,
    dataset: AuditDataset,
    neighbour: AuditDataset,
    *,
    delta: float,
    confidence: float,
    trials: int,
    seed: int,
    chunk: int,
    progress: Progress | None = None,
) -> EpsilonInterval:
    """Return the two-sided interval of the pair's epsilon: the larger of its two directions'.

    Half of the error probability goes to the upper end, which fails only if that of the larger
    direction does, and a quarter to the lower end of each direction.

    Args as for `tilted_chunks` (`trials` runs in each direction), and:
        confidence: of the interval, in (0, 1).
        progress: called after every chunk with the runs done and all runs.
    """
    require_open_unit("confidence", confidence)
    error, done = 1 - confidence, 0
    found: list[EpsilonInterval] = []
    for first, second in ((dataset, neighbour), (neighbour, dataset)):
        ratios: list[FloatArray] = []
        weights: list[FloatArray] = []
        tilts: list[Tilt] = []
        for tilt, runs in tilted_chunks(
            solve, first, second, delta=delta, trials=trials, seed=seed, chunk=chunk
        ):
            tilts.append(tilt)
            ratios.append(runs.log_ratio)
            weights.append(runs.log_weight)
            done += runs.log_ratio.size
            if progress is not None:
                progress(done, 2 * trials)
        found.append(
            epsilon_interval(
                TiltedRuns(np.concatenate(ratios), np.concatenate(weights)),
                tilts[0],
                delta=delta,
                lower_error=error / 4,
                upper_error=error / 2,
            )
        )
    return EpsilonInterval(
        lower=max(interval.lower for interval in found),
        upper=max(interval.upper for interval in found),
        delta=delta,
        confidence=confidence,
        trials=2 * trials,
        bounded=all(interval.bounded for interval in found),
    )
