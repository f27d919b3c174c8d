"""Laws of the Bayesian interval.

The posterior is what drawing rates and what an independent quadrature say; the ends are its
quantiles; labels tell that it is no confidence bound. Its coverage is not tested: none is claimed.
"""

import itertools
from math import exp, nan

import numpy as np
import pytest
from scipy import integrate, stats

from dpledger.audits.bayesian import Bayesian, Beta, posterior
from dpledger.audits.bounds import ClopperPearson, Scores
from dpledger.mechanisms.errors import InvalidParameter

DELTA = 1e-5


def counted(false_positives, misses, trials):
    return Scores(
        np.repeat([1.0, 0.0], [trials - misses, misses]),
        np.repeat([1.0, 0.0], [false_positives, trials - false_positives]),
    )


def allowed(fpr, fnr, epsilon, delta):
    """Whether (epsilon, delta)-DP allows both rates: for the test, its swap and complements."""
    grow = exp(epsilon)
    return (
        (grow * fpr + fnr >= 1 - delta)
        & (fpr + grow * fnr >= 1 - delta)
        & (grow * (1 - fpr) + 1 - fnr >= 1 - delta)
        & (1 - fpr + grow * (1 - fnr) >= 1 - delta)
    )


@pytest.mark.parametrize(
    ("first", "second", "epsilon", "delta"),
    [
        ((5.5, 95.5), (10.5, 90.5), 2.5, 1e-5),
        ((2.5, 8.5), (7.5, 3.5), 0.4, 0.05),
        ((8.5, 2.5), (9.5, 1.5), 1.0, 0.1),
    ],
)
def test_the_posterior_is_what_drawing_rates_says(first, second, epsilon, delta):
    # within 4 standard errors of 400,000 draws: false alarm 6e-5 each
    generator, draws = np.random.default_rng(81), 400_000
    share = np.mean(
        allowed(generator.beta(*first, draws), generator.beta(*second, draws), epsilon, delta)
    )
    found = posterior(epsilon, false=Beta(*first), missed=Beta(*second), delta=delta)
    assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / draws)


@pytest.mark.parametrize(
    ("first", "second", "epsilon"),
    [
        ((5.5, 95.5), (10.5, 90.5), 2.5),
        ((0.5, 50.5), (0.5, 50.5), 5.0),
        ((0.5, 1e3), (7.5, 1e3), 5.0),
    ],
)
def test_the_posterior_is_what_adaptive_quadrature_says(first, second, epsilon):
    # over the other rate, split where the lines meet and where they reach 0
    other, given = stats.beta(*first), stats.beta(*second)
    meeting = (1 - DELTA) / (1 + exp(epsilon))

    def inside(missed_share):
        missed = given.ppf(missed_share)
        low = max((1 - DELTA - missed) * exp(-epsilon), 1 - DELTA - exp(epsilon) * missed, 0.0)
        high = min(
            1 - (missed - DELTA) * exp(-epsilon), 1 - (1 - DELTA - exp(epsilon) * (1 - missed))
        )
        return max(0.0, other.cdf(min(high, 1.0)) - other.cdf(low))

    kink = given.cdf(meeting)
    steps = 0.5 ** np.arange(0, 24)
    pieces = np.unique(
        np.concatenate([[0.0, kink, 1.0], kink * (1 - steps), kink + (1 - kink) * steps])
    )
    expected = sum(
        integrate.quad(inside, start, end, epsabs=1e-13)[0]
        for start, end in itertools.pairwise(pieces)
    )
    found = posterior(epsilon, false=Beta(*first), missed=Beta(*second), delta=DELTA)
    assert found == pytest.approx(expected, rel=1e-7)


def test_the_ends_are_quantiles_of_the_posterior():
    found = Bayesian(0.5, credibility=0.9).interval(counted(3, 12, 80), delta=DELTA)
    law = {"false": Beta(3.5, 77.5), "missed": Beta(12.5, 68.5), "delta": DELTA}
    assert posterior(found.lower, **law) == pytest.approx(0.05, abs=1e-8)
    assert posterior(found.upper, **law) == pytest.approx(0.95, abs=1e-8)


def test_swapped_worlds_and_swapped_errors_give_the_same_interval():
    method = Bayesian(0.5, credibility=0.95)
    found = method.interval(counted(3, 12, 80), delta=DELTA)
    swapped = method.interval(counted(12, 3, 80), delta=DELTA)
    mirrored = method.interval(counted(77, 68, 80), delta=DELTA)
    for other in (swapped, mirrored):
        assert (other.lower, other.upper) == pytest.approx((found.lower, found.upper), rel=1e-7)


def test_the_lower_end_is_above_what_counting_proves():
    scores = counted(2, 30, 200)
    counting = ClopperPearson(0.5, 0.95).lower_bound(scores, delta=DELTA)
    believed = Bayesian(0.5, credibility=0.9).interval(scores, delta=DELTA)
    assert counting.epsilon < believed.lower < believed.upper
    assert "not a confidence bound" in believed.note


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("threshold", lambda: Bayesian(nan, 0.9)),
        ("credibility", lambda: Bayesian(0.0, 1.0)),
        ("delta", lambda: Bayesian(0.0, 0.9).interval(counted(1, 1, 4), delta=0.0)),
    ],
)
def test_values_out_of_range_are_refused_by_name(name, call):
    with pytest.raises(InvalidParameter) as refused:
        call()
    assert refused.value.name == name
