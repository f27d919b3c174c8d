"""Laws of lower bounds on epsilon.

A bound exceeds the truth in at most 1 - confidence of all cases; the threshold maximises the
expected bound; rates are Clopper-Pearson's; mu is the noncentral t's. Scores of the Gaussian
family are drawn directly: log-likelihood ratios of a mu-GDP pair are N(±mu²/2, mu²).
"""

import doctest
from math import exp, inf, log, nan
from statistics import median

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm
from tests.parameters import slow

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.numbers.notions import Gdp
from dpledger.audits import bounds
from dpledger.audits.bounds import (
    ClopperPearson,
    GaussianFamily,
    Scores,
    ceiling,
    largest_rate,
    plan_threshold,
)
from dpledger.mechanisms.errors import InvalidParameter

DELTA = 1e-5
TRUE_EPSILON = epsilon_from_delta(mu_squared=1, delta=DELTA).lower_float


def gaussian_scores(generator, mu, trials):
    half, spread = mu * mu / 2, mu or 1.0
    return Scores(generator.normal(half, spread, trials), generator.normal(-half, spread, trials))


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(bounds).failed == 0


@pytest.mark.parametrize(("count", "trials"), [(0, 1), (0, 50), (3, 50), (49, 50), (120, 3000)])
def test_so_few_occurrences_at_the_largest_rate_have_the_tail_probability(count, trials):
    rate = mpmath.mpf(float(largest_rate(count, trials, confidence=0.975)))

    def tail(p):
        return mpmath.fsum(
            mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(count + 1)
        )

    with mpmath.workdps(40):
        assert tail(rate) <= mpmath.mpf("0.025")
        assert tail(rate * (1 - mpmath.mpf("1e-8"))) > mpmath.mpf("0.025")


def test_all_occurrences_bound_nothing():
    assert largest_rate(7, 7, confidence=0.95) == 1.0


@pytest.mark.parametrize("mu", [1.0, *slow(0.3, 3.0)])
def test_the_planned_threshold_maximises_the_expected_bound(mu):
    # every count of 60 trials, rates from scipy's own exact intervals
    trials, delta, confidence = 60, 1e-3, 0.9
    upper = [
        binomtest(k, trials).proportion_ci(0.9, method="exact").high for k in range(trials + 1)
    ]
    table = np.array(
        [[max(bound(f, m, delta), bound(m, f, delta), 0.0) for m in upper] for f in upper]
    )

    def expected(score):
        false = binom.pmf(np.arange(trials + 1), trials, norm.sf(score))
        missed = binom.pmf(np.arange(trials + 1), trials, norm.cdf(score - mu))
        return false @ table @ missed

    best = max(expected(score) for score in np.linspace(mu / 2, mu / 2 + 5, 1000))
    plan = plan_threshold(claimed=Gdp(mu**2), trials=trials, delta=delta, confidence=confidence)
    assert plan.expected_epsilon == pytest.approx(best, rel=1e-4)
    assert expected(plan.threshold / mu + mu / 2) == pytest.approx(best, rel=1e-4)


def bound(false, missed, delta):
    return log((1 - delta - missed) / false) if missed < 1 - delta else -inf


def test_the_expected_bound_is_the_mean_of_simulated_ones():
    # false alarm: 4 standard errors, 6e-5
    trials, generator = 20_000, np.random.default_rng(11)
    plan = plan_threshold(claimed=Gdp(1), trials=trials, delta=DELTA, confidence=0.95)
    method = ClopperPearson(plan.threshold, 0.95)
    found = [
        method.lower_bound(gaussian_scores(generator, 1.0, trials), delta=DELTA).epsilon
        for _ in range(300)
    ]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - plan.expected_epsilon) < 4 * error


def test_no_claim_and_no_protection_have_trivial_thresholds():
    settings = {"trials": 1000, "delta": DELTA, "confidence": 0.95}
    assert plan_threshold(claimed=Gdp(0), **settings).expected_epsilon == 0.0
    assert plan_threshold(claimed=Gdp(inf), **settings).expected_epsilon == ceiling(**settings)


def test_bounds_reach_their_share_of_the_true_epsilon():
    # 10^5 trials a world at mu = 1: at least 60 % by counting, 95 % in the Gaussian family
    trials, generator = 100_000, np.random.default_rng(12)
    plan = plan_threshold(claimed=Gdp(1), trials=trials, delta=DELTA, confidence=0.95)
    counted, family = [], []
    for _ in range(15):
        scores = gaussian_scores(generator, 1.0, trials)
        counting = ClopperPearson(plan.threshold, 0.95)
        counted.append(counting.lower_bound(scores, delta=DELTA).epsilon)
        family.append(GaussianFamily(0.95).lower_bound(scores, delta=DELTA).epsilon)
    assert 0.60 * TRUE_EPSILON <= median(counted) <= TRUE_EPSILON
    assert 0.95 * TRUE_EPSILON <= median(family) <= TRUE_EPSILON


@pytest.mark.parametrize(("times", "most"), [(250, 23), *slow((1_000, 71))])
def test_nothing_to_find_is_found_in_few_repetitions(times, most):
    # at 95 % confidence the count is at most Binomial(times, 0.05); more has probability 0.2 %
    generator, trials = np.random.default_rng(13), 2_000
    plan = plan_threshold(claimed=Gdp(1), trials=trials, delta=DELTA, confidence=0.95)
    methods = (ClopperPearson(plan.threshold, 0.95), GaussianFamily(0.95))
    positive = np.zeros(2, dtype=int)
    for _ in range(times):
        draws = generator.normal(0.5, 1.0, (2, trials))
        scores = Scores(draws[0], draws[1])
        positive += [m.lower_bound(scores, delta=DELTA).positive for m in methods]
    assert positive.max() <= most


@pytest.mark.parametrize(("times", "least", "most"), [(500, 10, 43), *slow((2_000, 66, 138))])
def test_the_family_bound_exceeds_the_truth_as_often_as_it_may(times, least, most):
    # exact: Binomial(times, 0.05); outside these limits has probability 5e-4 at most
    generator = np.random.default_rng(14)
    scores = (gaussian_scores(generator, 1.0, 60) for _ in range(times))
    # the two-sided interval at 90 % has the one-sided bound at 95 % as its lower end
    intervals = (GaussianFamily(0.90).interval(s) for s in scores)
    above = sum(interval is not None and interval.lower > 1.0 for interval in intervals)
    assert least <= above <= most


def test_counting_exceeds_the_epsilon_of_randomised_response_rarely():
    # Binomial(2000, <= 0.05); above 138 has probability 2e-4
    generator, epsilon = np.random.default_rng(15), 1.0
    truth = exp(epsilon) / (1 + exp(epsilon))
    above = 0
    for _ in range(2_000):
        scores = Scores(
            (generator.random(300) < truth).astype(float),
            (generator.random(300) >= truth).astype(float),
        )
        above += ClopperPearson(0.5, 0.95).lower_bound(scores, delta=1e-6).epsilon > epsilon
    assert 0 < above <= 138


def spread(mean, trials):
    """Scores of a normal law by its quantiles: nothing about them is random."""
    return norm.ppf((np.arange(trials) + 0.5) / trials) + mean


@pytest.mark.parametrize(("gap", "trials"), [(0.8, 30), (1.0, 500), (-0.4, 40)])
def test_the_interval_of_mu_inverts_the_noncentral_t_law(gap, trials):
    scores = Scores(spread(gap, trials), spread(0.0, trials))
    interval = GaussianFamily(0.9).interval(scores)
    freedom, scale = 2 * trials - 2, mpmath.sqrt(mpmath.mpf(trials) / 2)

    def above_observed(mu):
        # T = (Z + mu·scale)/S; integrate P(T > t | S = s) over the law of S² = chi²/freedom
        half = mpmath.mpf(freedom) / 2
        log_constant = half * mpmath.log(half) - mpmath.loggamma(half) + mpmath.log(2)

        def inside(s):
            density = mpmath.exp(log_constant + (freedom - 1) * mpmath.log(s) - half * s * s)
            return density * mpmath.ncdf(mu * scale - interval.estimate * scale * s)

        reach = 12 / mpmath.sqrt(2 * freedom)
        ends = [max(mpmath.mpf("1e-9"), 1 - reach), 1 - reach / 4, 1, 1 + reach / 4, 1 + reach]
        return mpmath.quad(inside, ends)

    with mpmath.workdps(20):
        assert float(above_observed(interval.lower)) == pytest.approx(0.05, rel=1e-6)
        assert float(above_observed(interval.upper)) == pytest.approx(0.95, rel=1e-6)
    assert interval.lower < interval.estimate < interval.upper


def test_scores_that_point_the_wrong_way_bound_nothing_in_the_family():
    found = GaussianFamily(0.95).lower_bound(Scores(spread(-2, 99), spread(0, 99)), delta=DELTA)
    assert (found.mu, found.epsilon, found.conditions_met, found.positive) == (0, 0, True, False)


def test_counting_tries_both_orders():
    ordered = Scores(np.ones(500), np.zeros(500))
    swapped = Scores(np.zeros(500), np.ones(500))
    method = ClopperPearson(0.5, 0.95)
    top = ceiling(trials=500, delta=DELTA, confidence=0.95)
    assert method.lower_bound(ordered, delta=DELTA).epsilon == top
    assert method.lower_bound(swapped, delta=DELTA).epsilon == 0.0


@pytest.mark.parametrize(
    ("fault", "scores"),
    [
        ("infinite", Scores(np.append(spread(1, 99), inf), spread(0, 100))),
        ("variances", Scores(3 * spread(1, 200), spread(0, 200))),
        ("not normal", Scores(spread(1, 400) ** 3, spread(0, 400) ** 3)),
        ("fewer", Scores(spread(1, 19), spread(0, 19))),
        ("without variance", Scores(np.ones(50), np.zeros(50))),
    ],
)
def test_the_family_bound_abstains_outside_the_family(fault, scores):
    found = GaussianFamily(0.95).lower_bound(scores, delta=DELTA)
    assert not found.conditions_met
    assert found.epsilon == found.mu == 0.0
    assert fault in found.detail
    assert GaussianFamily(0.99).interval(scores) is None


@pytest.mark.parametrize(("times", "most"), [(250, 4), *slow((1_000, 7))])
def test_scores_of_the_family_are_rarely_turned_away(times, most):
    # about Binomial(times, 0.001); more has probability 1e-5, the tests' tails are approximate
    generator = np.random.default_rng(16)
    turned = (
        GaussianFamily(0.95).interval(gaussian_scores(generator, 1.0, 300)) for _ in range(times)
    )
    assert sum(interval is None for interval in turned) <= most


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("confidence", lambda: ClopperPearson(0.0, 1.0)),
        ("threshold", lambda: ClopperPearson(nan, 0.95)),
        ("confidence", lambda: GaussianFamily(0.0)),
        ("trials", lambda: ceiling(trials=0, delta=DELTA, confidence=0.95)),
        ("neighbour", lambda: Scores(np.zeros(1), np.array([nan]))),
        ("dataset.shape", lambda: Scores(np.zeros((2, 2)), np.zeros(1))),
        ("delta", lambda: ClopperPearson(0.0, 0.9).lower_bound(Scores(*np.ones((2, 3))), delta=1)),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, call):
    with pytest.raises(InvalidParameter) as refused:
        call()
    assert refused.value.name == name


@pytest.mark.parametrize("seed", range(20))
def test_an_interval_of_little_confidence_has_ends(seed: int) -> None:
    scores = Scores(*np.random.default_rng(seed).normal(0.5, 1.0, (2, 200)))
    found = GaussianFamily(1e-3).interval(scores)
    assert found is not None
    assert found.lower < found.upper
    assert found.lower - 1e-3 < found.estimate < found.upper + 1e-3
    assert GaussianFamily(0.5).lower_bound(scores, delta=1e-5).conditions_met


def test_pure_epsilon_may_be_asked_for() -> None:
    # no error in 1000 trials a world: both rates are at most r, and epsilon >= log((1 - r)/r)
    scores = Scores(np.ones(1000), np.zeros(1000))
    rate = 1 - 0.025 ** (1 / 1000)
    found = ClopperPearson(0.5, 0.95).lower_bound(scores, delta=0.0)
    assert found.epsilon == pytest.approx(np.log((1 - rate) / rate), rel=1e-6)
    assert ceiling(trials=1000, delta=0.0, confidence=0.95) == found.epsilon
