"""Conversions per second: enclosed and fast, beside dp-accounting's and a plain double formula.

Usage: python benchmarks/conversions.py

Each row converts the same random (mu, delta) pairs to epsilon; rates are medians over repetitions.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.optimize import brentq
from scipy.stats import norm

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.gaussian.fast import epsilon_upper

PAIRS, REPETITIONS = 200, 5


def rate(job: Callable[[], object], conversions: int) -> float:
    """Return conversions a second: the median over repetitions, after one warm-up."""
    job()
    times: list[float] = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return conversions / statistics.median(times)


def textbook(mu: float, delta: float) -> float:
    """Return epsilon by root finding on double-precision normal tails, as many scripts do."""

    def excess(epsilon: float) -> float:
        tail = norm.cdf(mu / 2 - epsilon / mu)
        return float(tail - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta)

    return float(brentq(excess, 0.0, 200.0))


def main() -> None:
    """Print rates, and ratios to the enclosed one."""
    rng = np.random.default_rng(0)
    mus = rng.uniform(0.2, 3.0, size=PAIRS)
    deltas = 10.0 ** rng.uniform(-10, -4, size=PAIRS)
    pairs = list(zip(mus.tolist(), deltas.tolist(), strict=True))

    def peer() -> None:
        for mu, delta in pairs[:10]:
            distribution = pld.from_gaussian_mechanism(1 / mu)
            distribution.get_epsilon_for_delta(delta)

    enclosed = rate(
        lambda: [epsilon_from_delta(mu_squared=mu * mu, delta=delta) for mu, delta in pairs], PAIRS
    )
    rows = (
        ("enclosed (ball arithmetic)", enclosed),
        ("fast (one array)", rate(lambda: epsilon_upper(mu_squared=mus**2, delta=deltas), PAIRS)),
        ("textbook doubles (scipy root)", rate(lambda: [textbook(m, d) for m, d in pairs], PAIRS)),
        ("dp-accounting PLD", rate(peer, 10)),
    )
    for name, found in rows:
        print(f"{name:32s} {found:12.0f} /s   {found / enclosed:10.3g} x enclosed")


if __name__ == "__main__":
    main()
