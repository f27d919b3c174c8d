"""Mechanisms whose epsilon is known, as pairs of laws of a score: for lower_bounds.py."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.stats import norm

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.audits.bounds import Scores
from dpledger.audits.one_run import Canaries
from dpledger.mechanisms.protocols import FloatArray

DELTA = 1e-5
_GRID = 2.0**30


@dataclass(frozen=True)
class Mechanism:
    """A pair of laws of one number; scores are log-likelihood ratios of it."""

    name: str
    epsilon: float
    threshold: float
    dataset: Callable[[Generator, int], FloatArray]
    neighbour: Callable[[Generator, int], FloatArray]
    gaussian_mu: float | None = None
    pure_epsilon: float = inf
    """At delta = 0, which some peers' bounds are of."""

    def scores(self, generator: Generator, trials: int) -> Scores:
        """Return scores of runs in both worlds."""
        return Scores(self.dataset(generator, trials), self.neighbour(generator, trials))

    def canaries(self, generator: Generator, number: int) -> Canaries:
        """Return one run of independent canaries, each in where the first law drew it."""
        included = generator.random(number) < 0.5
        scores = self.scores(generator, number)
        seed = int(generator.integers(2**32))
        return Canaries(np.where(included, scores.dataset, scores.neighbour), included, seed)


def gaussian(mu: float) -> Mechanism:
    """Return the exactly mu-GDP pair; mu = 0 scores by noise."""
    half, spread = mu * mu / 2, mu or 1.0
    epsilon = epsilon_from_delta(mu_squared=mu * mu, delta=DELTA).upper_float if mu else 0.0
    return Mechanism(
        f"Gaussian mu = {mu:g}" if mu else "null",
        epsilon,
        epsilon / 2 if mu else 0.5,
        lambda generator, trials: generator.normal(half, spread, trials),
        lambda generator, trials: generator.normal(-half, spread, trials),
        mu,
        0.0 if mu == 0 else inf,
    )


def randomised_response(epsilon: float) -> Mechanism:
    """Return randomised response, whose epsilon at delta is that of the binary mechanism."""
    true = 1 / (1 + exp(-epsilon))

    def world(sign: float) -> Callable[[Generator, int], FloatArray]:
        return lambda generator, trials: np.where(
            generator.random(trials) < true, sign * epsilon, -sign * epsilon
        )

    truth = log((true - DELTA) / (1 - true))
    return Mechanism(
        "randomised response", truth, 0.0, world(1.0), world(-1.0), pure_epsilon=epsilon
    )


def laplace(epsilon: float) -> Mechanism:
    """Return Laplace noise of scale 1/epsilon on a sum of sensitivity 1."""

    def world(centre: float) -> Callable[[Generator, int], FloatArray]:
        def ratios(generator: Generator, trials: int) -> FloatArray:
            # on one grid in both worlds: the last bits of a sum show what noise was added to
            # (Mironov 2012), and thresholds chosen on the scores do find that
            drawn = np.round(generator.laplace(centre, 1 / epsilon, trials) * _GRID) / _GRID
            return np.asarray(epsilon * (np.abs(drawn) - np.abs(drawn - 1)))

        return ratios

    # delta(eps') = 1 - e^((eps' - epsilon)/2)
    truth = epsilon + 2 * log(1 - DELTA)
    return Mechanism("Laplace", truth, epsilon / 2, world(1.0), world(0.0), pure_epsilon=epsilon)


def sampled_gaussian(rate: float, mu: float) -> Mechanism:
    """Return one Poisson-sampled Gaussian step under add/remove: a mixture against its part."""

    def ratio(drawn: FloatArray) -> FloatArray:
        return np.log1p(rate * np.expm1(mu * drawn - mu * mu / 2))

    def mixture(generator: Generator, trials: int) -> FloatArray:
        return ratio(generator.normal(mu * (generator.random(trials) < rate)))

    def excess(epsilon: float) -> float:
        start = (log((exp(epsilon) - 1 + rate) / rate) + mu * mu / 2) / mu
        present = rate * norm.sf(start - mu) + (1 - rate) * norm.sf(start)
        forward = present - exp(epsilon) * norm.sf(start)
        backward = 0.0
        if exp(-epsilon) > 1 - rate:
            end = (log((exp(-epsilon) - 1 + rate) / rate) + mu * mu / 2) / mu
            other = rate * norm.cdf(end - mu) + (1 - rate) * norm.cdf(end)
            backward = norm.cdf(end) - exp(epsilon) * other
        return float(max(forward, backward) - DELTA)

    truth = float(brentq(excess, 1e-6, 20.0))
    return Mechanism(
        "Poisson-sampled Gaussian",
        truth,
        truth / 2,
        mixture,
        lambda generator, trials: ratio(generator.normal(size=trials)),
    )


MECHANISMS = (
    gaussian(0.0),
    gaussian(0.5),
    gaussian(1.0),
    gaussian(2.0),
    randomised_response(1.0),
    laplace(1.0),
    sampled_gaussian(0.1, 1.0),
)

Experiment = Callable[[Generator], float]
"""Draws anew and returns a bound on epsilon; infinity for a true claim that was refuted."""
