"""The best event against a Gaussian transcript, with its two probabilities.

Where two data sets move every release by its whole planned sensitivity, the log-likelihood ratio of
the transcript is normal, N(±mu²/2, mu²), and no event beats "the ratio exceeds epsilon":
P = Phi(mu/2 - epsilon/mu) under the one and P' = Phi(-mu/2 - epsilon/mu) under the other, and
P - e^epsilon P' is the exact delta at epsilon (Balle, Wang 2018, Theorem 5).
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import arb

from ...accounting.gaussian.exact import delta_from_epsilon
from ...accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision
from ...mechanisms.curators import Curator
from ...mechanisms.errors import InvalidParameter
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import FloatArray
from ..neighbours import NeighbourPair
from ..replay import ReplayTrials, chunk_sizes
from .claim import Counterexample

_CHUNK = 500
"""Trials of one batch: a compromise of memory and speed."""
# a pair's share of the planned mu is measured in doubles
_MEASURED = Fraction(1, 10**9)


def likelihood_event(
    solve: Callable[[PrivateDataset, Curator], object],
    pair: NeighbourPair,
    *,
    mu: Enclosure,
    epsilon: Enclosure,
    delta: float,
) -> Counterexample:
    """Return the event "the log-likelihood ratio of the messages exceeds epsilon".

    Args:
        solve: the algorithm; its messages are affine in mean gradients.
        pair: two data sets whose gradients differ by the same everywhere.
        mu: what the plan composes to.
        epsilon: the threshold, and with `delta` what the claim allows.

    Raises `InvalidParameter` for a pair whose difference depends on the point.
    """
    if pair.share is None:
        raise InvalidParameter("pair.share", None, "a number: another loss or pair")
    with precision(BITS):
        share = ball_of(Fraction(pair.share)) * arb(1, float(_MEASURED))
        attained, threshold = ball_of(mu) * share, ball_of(epsilon) / (ball_of(mu) * share)
        probability = Enclosure.from_ball(_normal(attained / 2 - threshold))
        neighbour = Enclosure.from_ball(_normal(-attained / 2 - threshold))

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        runs = ReplayTrials(solve, pair.dataset, pair.neighbour, seed)
        scores = [
            runs.attack(number, size) for number, size in enumerate(chunk_sizes(trials, _CHUNK))
        ]
        sides = (
            np.concatenate([s.dataset for s in scores]),
            np.concatenate([s.neighbour for s in scores]),
        )
        first, second = (float(np.mean(side > epsilon.upper_float)) for side in sides)
        return first, second

    return Counterexample(
        pair.description,
        f"the log-likelihood ratio of all messages exceeds {epsilon.upper_float:.6g}",
        probability,
        neighbour,
        rerun,
        (epsilon.upper_float, delta),
    )


def normal_event(mu: Enclosure, *, epsilon: float, delta: float) -> Counterexample:
    """Return the event "the log-likelihood ratio exceeds epsilon" of any mu-GDP sum of releases.

    Args:
        mu: finite and positive: what Gaussian steps compose to where their sensitivities are met.
        epsilon, delta: what the claim allows.
    """
    with precision(BITS):
        size, threshold = ball_of(mu), ball_of(epsilon) / ball_of(mu)
        probability = Enclosure.from_ball(_normal(size / 2 - threshold))
        neighbour = Enclosure.from_ball(_normal(-size / 2 - threshold))

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        spread = mu.upper_float
        noise = np.random.default_rng(seed).standard_normal((2, trials))
        ratios = spread * noise + np.array([[spread**2 / 2], [-(spread**2) / 2]])
        first, second = np.mean(ratios > epsilon, axis=1)
        return float(first), float(second)

    return Counterexample(
        "two data sets that move every release by its whole sensitivity, always the same way",
        f"the log-likelihood ratio of all releases exceeds {epsilon:.6g}",
        probability,
        neighbour,
        rerun,
        (epsilon, delta),
    )


def shift_event(
    first: FloatArray, second: FloatArray, *, noise_std: float, datasets: str
) -> Counterexample:
    """Return the event "the log-likelihood ratio of one noisy release exceeds 1".

    Args:
        first, second: what two data sets would release without noise, of shape (d,).
        noise_std: of every coordinate, > 0; the claim says that it makes the release 1-GDP.
        datasets: the two, in words.
    """
    gap = first - second
    mu = float(np.linalg.norm(gap)) / noise_std
    with precision(BITS):
        shift = ball_of(mu) * arb(1, float(_MEASURED))
        probability = Enclosure.from_ball(_normal(shift / 2 - 1 / shift))
        neighbour = Enclosure.from_ball(_normal(-shift / 2 - 1 / shift))

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        generator = np.random.default_rng(seed)
        rates: list[float] = []
        for centre in (first, second):
            seen = centre + noise_std * generator.standard_normal((trials, len(gap)))
            ratio = (seen - (first + second) / 2) @ gap / noise_std**2
            rates.append(float(np.mean(ratio > 1)))
        return rates[0], rates[1]

    return Counterexample(
        datasets,
        f"with noise {noise_std:.6g} the log-likelihood ratio of the release exceeds 1",
        probability,
        neighbour,
        rerun,
        (1.0, delta_from_epsilon(mu_squared=1, epsilon=1).upper_float),
    )


def _normal(z: arb) -> arb:
    """Return Phi(z), the probability that a standard normal number is at most z."""
    return (-z / arb(2).sqrt()).erfc() / 2
