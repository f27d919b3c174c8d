"""Discrete noise: its probabilities are exactly those of its law, whatever the scale.

Statistical tests have fixed seeds and a false-alarm rate of 1e-6 each, should a seed change.
"""

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats
from tests.parameters import slow

from dpledger.mechanisms import InvalidParameter, discrete_noise, exact_noise
from dpledger.mechanisms.discrete_noise import (
    discrete_gaussian,
    discrete_laplace,
    randomised_response,
)
from dpledger.mechanisms.exact_bernoulli import Words, WordSource
from dpledger.mechanisms.exact_noise import Integers

FALSE_ALARM = 1e-6
FAST, SLOW = 2 * 10**5, 2 * 10**7
SCALES = pytest.mark.parametrize("scale", [0.3, 0.75, 1.0, 1.7, 4.0, *slow(10.1)])
Draw = Callable[[float, int, WordSource], Integers]
LAWS = pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])


def words_of(seed: int) -> WordSource:
    return np.random.PCG64(seed).random_raw


def masses(draw: Draw, scale: float, reach: int) -> list[float]:
    """Return the exact probabilities of -reach, ..., reach, and of all others, to 30 digits."""
    with mpmath.workdps(30):
        b = mpmath.mpf(scale)

        def weight(j: int) -> Any:
            return mpmath.exp(-abs(j) / b if draw is discrete_laplace else -(j**2) / (2 * b**2))

        far = reach + int(100 * scale) + 10
        total = mpmath.fsum(weight(j) for j in range(-far, far + 1))
        inside = [weight(j) / total for j in range(-reach, reach + 1)]
        return [float(one) for one in (*inside, 1 - mpmath.fsum(inside))]


def assert_drawn_by_law(draw: Draw, scale: float, count: int) -> None:
    reach = 1
    while len(found := masses(draw, scale, reach)) and count * min(found[0], found[-1]) > 50:
        reach += 1
    probabilities = np.array(masses(draw, scale, reach - 1))
    drawn = draw(scale, count, words_of(17))
    inside = np.clip(drawn + reach - 1, -1, 2 * reach - 1)
    counts = np.bincount(np.where(inside < 0, 2 * reach - 1, inside), minlength=2 * reach)
    expected = probabilities * count
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    assert stats.chi2(len(counts) - 1).sf(statistic) > FALSE_ALARM


@LAWS
@SCALES
def test_integers_have_exactly_the_probabilities_of_their_law(draw: Draw, scale: float) -> None:
    assert_drawn_by_law(draw, scale, FAST)


@pytest.mark.slow
@LAWS
@SCALES
def test_many_integers_have_the_probabilities_of_their_law(draw: Draw, scale: float) -> None:
    assert_drawn_by_law(draw, scale, SLOW)


@LAWS
@pytest.mark.parametrize("scale", [2.0**30, 1e12 + 0.3])
def test_wide_noise_has_a_smooth_law_and_fair_low_bits(draw: Draw, scale: float) -> None:
    drawn = draw(scale, FAST, words_of(3))
    law = "laplace" if draw is discrete_laplace else "norm"
    assert stats.kstest(drawn / scale, law).pvalue > FALSE_ALARM
    low = np.bincount(drawn & 7, minlength=8)
    assert stats.chisquare(low).pvalue > FALSE_ALARM


@LAWS
@pytest.mark.parametrize("scale", [0.3, 1.7, 1000.1])
def test_doubles_decide_as_exact_arithmetic_does(
    draw: Draw, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_doubles = draw(scale, 300, words_of(5))
    for module in (discrete_noise, exact_noise):
        monkeypatch.setattr(module, "_DOUBT", 2.0)
    np.testing.assert_array_equal(draw(scale, 300, words_of(5)), by_doubles)


@LAWS
def test_a_seed_gives_the_same_integers_on_every_platform(draw: Draw) -> None:
    drawn = [draw(scale, 50_000, words_of(11)) for scale in (0.7, 3.25, 2.0**20)]
    digest = hashlib.sha256(np.concatenate(drawn).astype("<i8").tobytes()).hexdigest()
    laplace, gaussian = "946c5c79311b89b9", "32f09d6f4e3bf4cc"
    assert digest[:16] == (laplace if draw is discrete_laplace else gaussian)


@LAWS
@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**-9, 2.0**41, np.nan, np.inf])
def test_scales_without_exact_noise_are_refused(draw: Draw, scale: float) -> None:
    with pytest.raises(InvalidParameter, match="2\\*\\*-8"):
        draw(scale, 1, words_of(1))


@pytest.mark.parametrize(("truth", "categories"), [(0.75, 2), (0.1, 3), (0.3, 7), (1.0, 4), (0, 2)])
def test_answers_are_true_and_false_with_the_stated_probabilities(
    truth: float, categories: int
) -> None:
    answers = np.arange(FAST) % categories
    drawn = randomised_response(answers, truth, categories, words_of(8))
    assert drawn.min() >= 0
    assert drawn.max() < categories
    for answer in range(categories):
        counts = np.bincount(drawn[answers == answer], minlength=categories)
        expected = np.full(categories, (1 - truth) / (categories - 1)) * counts.sum()
        expected[answer] = truth * counts.sum()
        if truth in (0, 1):
            np.testing.assert_array_equal(counts[expected == 0.0], 0)
        else:
            assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize("truth", [0.25, 0.3, 1 / 3, 2.0**-70, 1.0 - 2.0**-53, 1.0])
def test_an_answer_is_true_exactly_below_the_stated_probability(truth: float) -> None:
    # the uniform number's first 128 bits just below, and at, 2^128·truth
    at = -(-(Fraction(truth) * 2**128).numerator // (Fraction(truth) * 2**128).denominator)
    for leading, true in ((at - 1, True), (at, False)):
        if leading == 2**128:
            continue
        parts = [leading >> 64, leading & (2**64 - 1)]
        # what comes after decides nothing: a false answer takes one more word, for which one
        left = iter([*parts, 0, 0, 0])
        first = parts[0]

        def draw(count: int, left: object = left, first: int = first) -> Words:
            found = [next(left) for _ in range(count)]  # type: ignore[call-overload]
            return np.array(found, dtype=np.uint64)

        answer = randomised_response(np.array([0]), truth, 2, lambda n, d=draw: d(min(n, 1)))
        assert bool(answer[0] == 0) is true


def test_as_many_words_are_drawn_whatever_the_answers_are() -> None:
    used = []
    for answers in (np.zeros(1000, dtype=np.int64), np.ones(1000, dtype=np.int64)):
        generator = words_of(4)
        count = 0

        def draw(n: int, generator: WordSource = generator) -> Words:
            nonlocal count
            count += n
            return generator(n)

        randomised_response(answers, 0.6, 3, draw)
        used.append(count)
    assert used[0] == used[1]
