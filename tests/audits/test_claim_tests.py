"""Laws of the tests of a claim: a curve is tested as a curve, and a true one is rarely accused.

Yardstick: log-likelihood ratios of a pair that is exactly mu-GDP, N(±mu²/2, mu²).
"""

from fractions import Fraction
from math import inf, log

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.audits.bounds import Scores
from dpledger.audits.claim_tests import (
    ERROR_SHARES,
    claim_tests,
    claimed_epsilon,
    mu_of_errors,
    scores_tests,
)
from dpledger.mechanisms.errors import InvalidParameter

DELTA = 1e-5


def ratios(generator: np.random.Generator, mu: float, trials: int) -> Scores:
    return Scores(*(generator.normal(side * mu * mu / 2, mu, trials) for side in (1, -1)))


def gdp(mu: float) -> Gdp:
    return Gdp(Fraction(mu) ** 2)


def refuted(scores: Scores, claim: float, pair_mu: float | None = None) -> bool:
    found = claim_tests(scores, claimed=gdp(claim), delta=DELTA, confidence=0.95, pair_mu=pair_mu)
    return any(test.refuted for test in found)


def accusations(seeds: int) -> int:
    """Return how often a tight claim is accused, the pair's exact mu known."""
    total = 0
    for seed in range(seeds):
        generator = np.random.default_rng([1, seed])
        mu = (0.3, 1.0, 3.0)[seed % 3]
        total += refuted(ratios(generator, mu, 200), mu, mu)
    return total


def test_the_error_is_split_beforehand_and_adds_up() -> None:
    assert sum(ERROR_SHARES.values()) == pytest.approx(1.0)
    tests = claim_tests(
        Scores(np.ones(50), np.zeros(50)), claimed=Gdp(1), delta=DELTA, confidence=0.9, pair_mu=1.0
    )
    assert [t.level for t in tests] == [pytest.approx(0.1 * ERROR_SHARES[t.name]) for t in tests]


def test_a_true_claim_is_rarely_accused() -> None:
    """Four tests share 0.8 of 5 %: 150 seeds, P(more than 15 at that rate) = 5e-4."""
    assert accusations(150) <= 15


@pytest.mark.slow
def test_a_true_claim_is_accused_at_the_stated_level_at_most() -> None:
    """2,000 seeds at 5 %; P(more than 133 at that rate) = 5e-4."""
    assert accusations(2000) <= 133


@pytest.mark.parametrize(("claim", "trials"), [(0.27, 1000), (1.0, 200), (2.0, 100)])
def test_half_the_noise_is_found(claim: float, trials: int) -> None:
    """In 95 % of 200 seeds; here 40, of which 38 shall find it (power above 0.99)."""
    found = sum(
        refuted(ratios(np.random.default_rng([2, seed]), 2 * claim, trials), claim)
        for seed in range(40)
    )
    assert found >= 38


def test_four_standard_errors_above_the_planned_mu_are_found() -> None:
    """A pair that pays half of its price, its claim never met: only its exact mu tells.

    The power at 4 standard errors of sqrt(2/1000) is 0.96; P(fewer than 50 of 60) below 1e-4.
    """
    planned, trials = 0.134, 1000
    truth = planned + 4 * (2 / trials) ** 0.5
    found = sum(
        refuted(ratios(np.random.default_rng([3, seed]), truth, trials), 0.268, planned)
        for seed in range(60)
    )
    assert found >= 50


@pytest.mark.parametrize("trials", [2, 20, 400])
@pytest.mark.parametrize("rate", [0.02, 0.2, 0.45])
def test_counted_mu_is_a_confidence_bound(trials: int, rate: float) -> None:
    """By the binomial law itself: P(bound > truth) is at most the error, for equal error rates."""
    counts = np.arange(trials + 1)
    truth = -2 * norm.ppf(rate)
    above = [mu_of_errors(int(k), trials, confidence=0.95) > truth for k in counts]
    assert binom.pmf(counts, trials, rate) @ above <= 0.05


def test_counted_mu_holds_for_unequal_rates_too() -> None:
    """FPR 0.01 and FNR at the curve: exact by convolution of the two binomial laws."""
    mu, each = 1.0, 60
    fpr = 0.01
    fnr = norm.cdf(norm.ppf(1 - fpr) - mu)
    laws = [binom.pmf(np.arange(each + 1), each, rate) for rate in (fpr, fnr)]
    total = np.convolve(*laws)
    above = [mu_of_errors(k, 2 * each, confidence=0.9) > mu for k in range(2 * each + 1)]
    assert total @ above <= 0.1


def test_claims_of_every_kind_have_their_point() -> None:
    apart, level = Scores(np.ones(100), -np.ones(100)), Scores(np.ones(100), np.ones(100))
    for claim in (Gdp(0), Gdp(1), ApproxDp(1, 1e-5), ApproxDp(0.5, 0)):
        for scores, answer in ((apart, True), (level, False)):
            found = claim_tests(scores, claimed=claim, delta=0.1, confidence=0.95)
            assert found[0].refuted is answer
    for claim in (Gdp(inf), ApproxDp(1000, 0)):
        assert not any(
            test.refuted for test in claim_tests(apart, claimed=claim, delta=0.1, confidence=0.95)
        )


def test_the_claimed_epsilon_is_that_of_its_delta() -> None:
    assert claimed_epsilon(ApproxDp(1, 1e-6), 1e-5) == 1.0
    assert claimed_epsilon(ApproxDp(1, 0), 0.0) == 1.0
    for claim, delta in ((ApproxDp(1, 1e-4), 1e-5), (Gdp(1), 0.0)):
        with pytest.raises(InvalidParameter, match="delta"):
            claimed_epsilon(claim, delta)


def test_scores_of_any_law_keep_the_level() -> None:
    """Randomised response at its claim, two levels only. P(more than 16 of 150) < 1e-3."""
    accused = 0
    for seed in range(150):
        generator = np.random.default_rng([4, seed])
        honest = generator.random((2, 120)) < 1 / (1 + np.exp(-1.0))
        scores = Scores(honest[0].astype(float), 1.0 - honest[1])
        tests = scores_tests(scores, claimed=ApproxDp(1, 0), delta=0.0, confidence=0.95, seed=seed)
        accused += any(test.refuted for test in tests)
    assert accused <= 16


def test_scores_of_any_law_refute_a_false_claim() -> None:
    truth = 2.0
    honest = np.arange(400) < 400 / (1 + np.exp(-truth))
    scores = Scores(honest.astype(float), 1.0 - honest)
    for claim, answer in ((1.0, True), (truth, False)):
        tests = scores_tests(scores, claimed=ApproxDp(claim, 0), delta=0.0, confidence=0.95, seed=0)
        assert tests[0].refuted is answer
    assert log(2) < truth
