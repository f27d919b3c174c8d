"""Laws of the one-run bound over all numbers of guesses.

Its theorem holds for every mechanism that a search comes up with; the law of its statistic is what
an enumeration says; the bound exceeds the truth in at most 1 - confidence of all runs, ties and
rare disclosures included; and no number of guesses that is fixed beforehand does better everywhere.
"""

from itertools import combinations, product
from math import exp
from statistics import median

import numpy as np
import pytest
from scipy.stats import binom
from tests.audits.test_one_run import (
    DELTA,
    PLACED,
    TIED,
    gaussian_canaries,
    response_canaries,
)
from tests.parameters import slow

from dpledger.audits.one_run import Canaries, OneRun
from dpledger.audits.one_run_counts import OneRunAnyCount, _chances, _crossing, _up_to
from dpledger.mechanisms.errors import InvalidParameter

COINS = np.array(list(product((0, 1), repeat=3)))
FLIPPED = [
    (low, low + 2 ** (2 - bit)) for bit in range(3) for low in range(8) if not COINS[low, bit]
]


def increasing_sets():
    """All sets of outcomes of three guesses that more right guesses never lead out of."""
    for size in range(1, 9):
        for members in combinations(range(8), size):
            inside = set(members)
            if all(high in inside for low, high in FLIPPED if low in inside):
                yield list(members)


def least_delta(laws, epsilon):
    """The least delta of a mechanism on three coins, laws of shape (8, outputs), by definition."""
    return max(
        float(np.maximum(laws[one] - exp(epsilon) * laws[other], 0).sum())
        for pair in FLIPPED
        for one, other in (pair, pair[::-1])
    )


def mechanisms(generator, success):
    """Random laws; randomised response; disclosure of all coins; a disclosure of the last wrong."""
    for sharpness in (0.2, 1.0, 5.0):
        for _ in range(20):
            yield generator.dirichlet(np.full(5, sharpness), size=8)
    wrong = (COINS[:, None, :] != COINS[None, :, :]).sum(axis=2)
    response = success ** (3 - wrong) * (1 - success) ** wrong
    yield response
    for chance in (0.01, 0.2):
        yield (1 - chance) * response + chance * np.eye(8)
        nearly = np.where(wrong == 1, 0.0, response)
        nearly[np.arange(8), np.arange(8)] += np.where(wrong == 1, response, 0.0).sum(axis=1)
        yield (1 - chance) * response + chance * nearly


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_no_mechanism_guesses_right_more_often_than_the_theorem_says(epsilon):
    generator, sets, tight = np.random.default_rng(80), list(increasing_sets()), 0.0
    assert len(sets) == 19  # of the 20 monotone functions of three variables, all but "never"
    success = 1 / (1 + exp(-epsilon))
    independent = success ** COINS.sum(axis=1) * (1 - success) ** (3 - COINS.sum(axis=1))
    for laws in mechanisms(generator, success):
        delta = least_delta(laws, epsilon)
        likely = (laws.T @ COINS) / laws.sum(axis=0)[:, None] > 0.5
        random = generator.random(likely.shape) < 0.5
        for guesses in (likely, random):
            orders = generator.permuted(np.tile(np.arange(3), (len(guesses), 1)), axis=1)
            happens = np.zeros(8)
            for output, (guess, order) in enumerate(zip(guesses, orders, strict=True)):
                right = (guess == COINS)[:, order] @ [4, 2, 1]
                np.add.at(happens, right, laws[:, output] / 8)
            for members in sets:
                most = independent[members].sum() + 3 * delta / (1 + exp(epsilon))
                assert happens[members].sum() <= most + 1e-12
                if len(members) < 8:
                    tight = max(tight, happens[members].sum() / most)
    assert tight == pytest.approx(1)  # by randomised response


@pytest.mark.parametrize("success", [0.5, 0.6, 0.9])
def test_the_law_of_the_least_p_value_is_that_of_an_enumeration(success):
    guesses = np.array([2, 6, 12])
    walks = np.array(list(product((0, 1), repeat=12)))
    weight = success ** walks.sum(axis=1) * (1 - success) ** (12 - walks.sum(axis=1))
    right = walks.cumsum(axis=1)[:, guesses - 1]
    least = binom.sf(right - 1, guesses, success).min(axis=1)
    assert _chances(right, guesses, success).min(axis=1) == pytest.approx(least, rel=1e-10)
    for level in (0.003, 0.05, 0.4):
        found = _crossing(level, guesses, success)
        assert found == pytest.approx(weight[least <= level].sum(), abs=1e-11)


def test_many_guesses_follow_the_same_law_as_a_simulation():
    # 20 000 walks; four standard errors of a share near 0.1 are 0.009; the seed is fixed
    generator, guesses = np.random.default_rng(81), np.array([10, 40, 200, 1000])
    right = np.cumsum(generator.binomial(np.diff(guesses, prepend=0), 0.8, (20_000, 4)), axis=1)
    least = _chances(right, guesses, 0.8).min(axis=1)
    assert _crossing(0.04, guesses, 0.8) == pytest.approx(np.mean(least <= 0.04), abs=0.009)


def test_the_epsilon_of_randomised_response_is_exceeded_as_often_as_it_may():
    # at most Binomial(100, 0.1); above 20 has probability 8e-4
    generator, bound = np.random.default_rng(82), OneRunAnyCount(0.9)
    above = sum(
        bound.lower_bound(response_canaries(generator, 1.0, 100), delta=1e-9).epsilon > 1.0
        for _ in range(100)
    )
    assert 0 < above <= 20


@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_the_epsilon_of_gaussian_canaries_is_hardly_ever_exceeded(mu):
    # the truth is epsilon = 4.377 at delta = 1e-5 for mu = 1; above 20 of 100 has probability 8e-4
    generator, bound = np.random.default_rng(83), OneRunAnyCount(0.9)
    truth = 4.377 if mu else 0.0
    above = sum(
        bound.lower_bound(gaussian_canaries(generator, mu, 200), delta=DELTA).epsilon > truth
        for _ in range(100)
    )
    assert above <= 20


@pytest.mark.parametrize("placed", PLACED)
@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize(("times", "most"), [(60, 15), *slow((200, 36))])
def test_scores_that_tie_and_say_nothing_are_no_finding_however_they_are_placed(
    times, most, seeded, tied, placed
):
    # at most Binomial(times, 0.1); more has probability 2e-4
    generator, bound, positive = np.random.default_rng(84), OneRunAnyCount(0.9), 0
    for _ in range(times):
        included = generator.random(200) < 0.5
        order = PLACED[placed](included)
        seed = int(generator.integers(2**32)) if seeded else None
        canaries = Canaries(TIED[tied](generator, 200), included[order], seed)
        positive += bound.lower_bound(canaries, delta=DELTA).positive
    assert positive <= most


def test_a_mechanism_that_discloses_all_with_probability_delta_is_no_finding():
    # (0, 0.02)-DP; at most Binomial(300, 0.1); above 46 has probability 1e-3
    generator, bound, positive = np.random.default_rng(85), OneRunAnyCount(0.9), 0
    for _ in range(300):
        included = generator.random(10) < 0.5
        words = included if generator.random() < 0.02 else generator.random(10) < 0.5
        seed = int(generator.integers(2**32))
        canaries = Canaries(np.where(words, 1.0, -1.0), included, seed)
        positive += bound.lower_bound(canaries, delta=0.02).positive
    assert positive <= 46


def test_no_fixed_number_of_guesses_is_as_good_at_every_leakage():
    generator = np.random.default_rng(86)
    shares = {each: [] for each in (10, 100, 500)}
    for mu in (1.0, 4.0):
        runs = [gaussian_canaries(generator, mu, 1_000) for _ in range(9)]

        def found(method, runs=runs):
            return median(method.lower_bound(run, delta=DELTA).epsilon for run in runs)

        free = found(OneRunAnyCount(0.95))
        for each, share in shares.items():
            share.append(found(OneRun(0.95, each, each)) / free)
    assert all(max(share) < 1.05 for share in shares.values())
    assert all(min(share) < 0.85 for share in shares.values())


def test_one_canary_alone_is_refused():
    with pytest.raises(InvalidParameter, match="canaries"):
        OneRunAnyCount(0.9).lower_bound(Canaries(np.zeros(1), np.array([True])), delta=DELTA)


def test_a_bound_lies_below_the_first_epsilon_that_is_not_refuted() -> None:
    """The chance of a crossing is not monotone; past a point that passes nothing is shown."""
    assert _up_to(lambda e: e < 1 or 1.2 < e < 2) == 1 - 1 / 128
    assert _up_to(lambda e: False) == _up_to(lambda e: e == 0) == 0
    asked: list[float] = []
    _up_to(lambda e: asked.append(e) or e < 1)
    assert asked == [k / 128 for k in range(129)]  # fixed beforehand
