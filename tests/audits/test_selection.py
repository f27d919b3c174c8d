"""Laws of chosen thresholds.

Choosing is paid for: where nothing leaks nothing is found more often than the confidence allows,
and the naive choice, tested on its own trials, fails the same test. The halves that choose and test
share no trial. The reported rank of many splits is the one that Markov's inequality allows. Sorting
once for all splits changes no bound. What the choice finds in naive Laplace noise is there.
"""

from math import exp, nan
from statistics import median

import numpy as np
import pytest
from scipy.stats import beta

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.numbers.notions import Gdp
from dpledger.audits.bounds import ClopperPearson, Scores, plan_threshold
from dpledger.audits.selection import Bonferroni, MultiSplit, Split
from dpledger.mechanisms.errors import InvalidParameter

DELTA = 1e-5


def gaussian_scores(generator, mu, trials):
    half, spread = mu * mu / 2, mu or 1.0
    return Scores(generator.normal(half, spread, trials), generator.normal(-half, spread, trials))


def naive_bound(scores, *, confidence):
    """The largest of all Clopper-Pearson bounds: what nobody should report."""
    candidates = np.quantile(np.concatenate([scores.dataset, scores.neighbour]), np.arange(60) / 60)
    return max(
        ClopperPearson(threshold, confidence).lower_bound(scores, delta=DELTA).epsilon
        for threshold in candidates
    )


def test_bonferroni_is_the_best_exact_interval_at_its_share_of_the_error():
    # each of two thresholds has 0.1/2, halved again over the two rates; quantiles from scipy.stats
    scores = Scores(
        np.repeat([0.0, 1.0, 2.0], [10, 30, 60]), np.repeat([0.0, 1.0, 2.0], [70, 29, 1])
    )
    found = Bonferroni((0.5, 1.5), 0.9).lower_bound(scores, delta=1e-3)

    def epsilon(false, missed):
        fpr, fnr = (beta.ppf(1 - 0.1 / 4, count + 1, 100 - count) for count in (false, missed))
        return max(np.log((1 - 1e-3 - fnr) / fpr), np.log((1 - 1e-3 - fpr) / fnr))

    assert found.epsilon == pytest.approx(max(epsilon(30, 10), epsilon(1, 40)), rel=1e-7)
    assert found.confidence == 0.9


def test_one_threshold_costs_nothing():
    scores = gaussian_scores(np.random.default_rng(1), 2.0, 400)
    alone = ClopperPearson(1.0, 0.95).lower_bound(scores, delta=DELTA)
    assert Bonferroni((1.0,), 0.95).lower_bound(scores, delta=DELTA).epsilon == alone.epsilon


METHODS = {
    "bonferroni": Bonferroni(tuple(np.linspace(-1.0, 3.0, 9)), 0.9),
    "split": Split(0.9, seed=3),
    "multi-split": MultiSplit(0.9, seed=3, splits=7),
}


@pytest.mark.parametrize("name", METHODS)
def test_nothing_to_find_is_found_in_few_repetitions(name):
    # at most Binomial(200, 0.1); above 34 has probability 8e-4, the seed is fixed
    generator, method = np.random.default_rng(4), METHODS[name]
    positive = sum(
        method.lower_bound(Scores(*generator.normal(size=(2, 200))), delta=DELTA).positive
        for _ in range(200)
    )
    assert positive <= 34


def test_the_naive_choice_fails_where_paid_choices_hold():
    # at confidence 0.5 at most Binomial(200, 0.5); above 122 has probability 7e-4
    generator = np.random.default_rng(4)
    draws = [Scores(*generator.normal(size=(2, 200))) for _ in range(200)]
    paid = Split(0.5, seed=3)
    assert sum(paid.lower_bound(scores, delta=DELTA).positive for scores in draws) <= 122
    assert sum(naive_bound(scores, confidence=0.5) > 0 for scores in draws) > 122


@pytest.mark.parametrize("name", METHODS)
def test_the_epsilon_of_randomised_response_is_exceeded_rarely(name):
    # at most Binomial(200, 0.1); above 34 has probability 8e-4, the seed is fixed
    generator, method, epsilon = np.random.default_rng(5), METHODS[name], 1.0
    truth = exp(epsilon) / (1 + exp(epsilon))
    above = 0
    for _ in range(200):
        scores = Scores(
            (generator.random(300) < truth).astype(float),
            (generator.random(300) >= truth).astype(float),
        )
        above += method.lower_bound(scores, delta=1e-6).epsilon > epsilon
    assert above <= 34


def test_chosen_thresholds_come_near_the_planned_one():
    # mu = 2, 10^4 trials a world; half of the trials choose, so the split knows less
    generator, trials = np.random.default_rng(6), 10_000
    plan = plan_threshold(claimed=Gdp(4), trials=trials, delta=DELTA, confidence=0.95)
    true = epsilon_from_delta(mu_squared=4, delta=DELTA).lower_float
    found = {"split": [], "multi-split": []}
    for _ in range(9):
        scores = gaussian_scores(generator, 2.0, trials)
        found["split"].append(Split(0.95, seed=7).lower_bound(scores, delta=DELTA).epsilon)
        found["multi-split"].append(
            MultiSplit(0.95, seed=7).lower_bound(scores, delta=DELTA).epsilon
        )
    for name in found:
        assert 0.75 * plan.expected_epsilon < median(found[name]) < true


def test_no_trial_both_chooses_and_tests():
    # one extreme trial: whichever half it falls into, 0 or 1 false positives are counted of half
    scores = Scores(np.arange(100.0) + 1000, np.arange(60.0))
    found = Split(0.95, seed=8).lower_bound(scores, delta=DELTA)
    assert "0 false positives of 30" in found.detail
    assert "misses of 50" in found.detail


def test_a_sorted_array_splits_like_any_other():
    # the null with sorted worlds; halves by position would choose on low scores, test on high ones
    generator = np.random.default_rng(9)
    positive = sum(
        Split(0.9, seed=seed)
        .lower_bound(Scores(*np.sort(generator.normal(size=(2, 200)))), delta=DELTA)
        .positive
        for seed in range(200)
    )
    assert positive <= 34


def test_the_median_of_splits_is_one_of_them():
    scores = gaussian_scores(np.random.default_rng(10), 2.0, 300)
    # one split at the full error probability is the plain split
    one = MultiSplit(0.95, seed=11, splits=1).lower_bound(scores, delta=DELTA)
    assert one.epsilon == Split(0.95, seed=11).lower_bound(scores, delta=DELTA).epsilon
    many = MultiSplit(0.95, seed=11, splits=25)
    assert many.lower_bound(scores, delta=DELTA) == many.lower_bound(scores, delta=DELTA)


def split_bounds(scores, *, seed, splits, confidence):
    """The bounds of the splits, largest first; every half is sorted and counted anew."""
    generator, found = np.random.default_rng(seed), []
    for _ in range(splits):
        halves = [np.split(generator.permutation(world), [world.size // 2]) for world in scores]
        choosing, testing = (Scores(*half) for half in zip(*halves, strict=True))
        known = np.unique(np.concatenate([choosing.dataset, choosing.neighbour]))
        methods = [
            ClopperPearson(threshold, confidence)
            for threshold in np.append(known[:-1] / 2 + known[1:] / 2, known[-1])
        ]
        known_bounds = [method.lower_bound(choosing, delta=DELTA).epsilon for method in methods]
        method = methods[int(np.argmax(known_bounds))]
        found.append(method.lower_bound(testing, delta=DELTA).epsilon)
    return sorted(found, reverse=True)


@pytest.mark.parametrize("seed", range(12))
def test_sorting_once_finds_what_sorting_every_half_finds(seed):
    # worlds of two sizes, with ties; so few scores that every gap is a candidate
    generator = np.random.default_rng(seed)
    worlds = [
        generator.integers(low, 9, size).astype(float)
        for low, size in zip((5, 0), generator.integers(20, 60, 2), strict=True)
    ]
    method = MultiSplit(0.6, seed=seed, splits=5)
    expected = split_bounds(worlds, seed=seed, splits=5, confidence=1 - 0.4 * 3 / 5)
    assert expected[2] > 0
    assert method.lower_bound(Scores(*worlds), delta=DELTA).epsilon == expected[2]


def laplace_scores(generator, trials, *, step):
    """Log-likelihood ratios of 1 + noise and of 0 + noise, epsilon = 1, on a grid where `step`."""

    def world(centre):
        drawn = generator.laplace(centre, 1.0, trials)
        words = np.round(drawn / step) * step if step else drawn
        return np.abs(words) - np.abs(words - 1)

    return Scores(world(1.0), world(0.0))


@pytest.mark.parametrize(("step", "leaks"), [(0.0, True), (2.0**-30, False)])
def test_laplace_noise_in_floating_point_leaks_by_its_last_bits(step, leaks):
    # Mironov 2012: not every float can be 1 + noise. Left of 0 the ratio is -1; rounded, it is
    # less for some outputs that only 0 + noise has. Were epsilon 1, more than 6 of 24 bounds above
    # it would have probability 1e-4; on one grid there are none
    generator, method = np.random.default_rng(13), Split(0.95, seed=1)
    above = sum(
        method.lower_bound(laplace_scores(generator, 10_000, step=step), delta=DELTA).epsilon > 1
        for _ in range(24)
    )
    assert above > 6 if leaks else above == 0


def test_scores_without_error_reach_the_ceiling_of_many_splits():
    method = MultiSplit(0.95, seed=11)
    for trials in (200, 201):
        found = method.lower_bound(Scores(np.ones(trials), np.zeros(trials)), delta=DELTA)
        assert found.epsilon == method.ceiling(trials=trials, delta=DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_coverage_on_gaussian_pairs(name):
    # at most Binomial(10000, 0.1) above the truth; above 1093 has probability 1e-3
    generator, method = np.random.default_rng(12), METHODS[name]
    true = epsilon_from_delta(mu_squared=1, delta=0.05).upper_float
    above = sum(
        method.lower_bound(gaussian_scores(generator, 1.0, 400), delta=0.05).epsilon > true
        for _ in range(10_000)
    )
    assert above <= 1093


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("thresholds", lambda: Bonferroni((), 0.95)),
        ("thresholds", lambda: Bonferroni((nan,), 0.95)),
        ("confidence", lambda: Split(1.0, seed=1)),
        ("seed", lambda: Split(0.9, seed=-1)),
        ("splits", lambda: MultiSplit(0.9, seed=1, splits=0)),
        (
            "neighbour.size",
            lambda: Split(0.9, seed=1).lower_bound(Scores(np.ones(9), np.ones(1)), delta=DELTA),
        ),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, call):
    with pytest.raises(InvalidParameter) as refused:
        call()
    assert refused.value.name == name
