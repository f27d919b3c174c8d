"""Very long sampled shifts: bounded work, and bounds that lie where they must.

Laws: the profile of a revealed sample lies above that of a hidden one, in every order and at every
ε; the closed form is the mean of Gaussian profiles over the numbers of meetings; a fast bound is
never below the certified lower end; less noise never costs less, also where revealed samples take
over.
"""

import tracemalloc
from fractions import Fraction
from math import exp, inf, log, sqrt

import mpmath
import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray
from scipy.stats import binom
from tests.parameters import slow

from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.distribution import epsilon_by_pld
from dpledger.accounting.pld.from_mechanisms import pairs_of
from dpledger.accounting.pld.moments import log_moments, log_real_moments
from dpledger.accounting.pld.moments_certified import moments_on_line
from dpledger.accounting.pld.pairs import (
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RevealedSample,
    Sampled,
)
from dpledger.accounting.pld.profiles import delta_of
from dpledger.accounting.pld.quadrature import Demand
from dpledger.accounting.pld.revealed_sample import revealed, revealed_form
from dpledger.mechanisms.adjacency import Adjacency
from dpledger.mechanisms.events import GaussianMixtureStep, GaussianStep, SampledWithoutReplacement
from dpledger.mechanisms.sensitivity import declared, sum_of_bounded

REPLACE = Adjacency.REPLACE_ONE
RECORDS, STEPS = 6838, 2500


def sampled(mu: float, rate: float, order: Order = Order.SYMMETRISED) -> Sampled:
    return Sampled(GaussianShift(Fraction(mu) ** 2), Fraction(rate), order)


def mixture(noise_std: float) -> GaussianMixtureStep:
    """One noisy gradient of PS-ADMM as published: all records, corrected by one of 6,838."""
    constant = declared(Fraction(2, RECORDS), "a test", adjacency=REPLACE)
    return GaussianMixtureStep(constant, sum_of_bounded(2, REPLACE), 1 / RECORDS, noise_std)


def theorem_2(constant: float) -> float:
    return sqrt(constant * STEPS * -log(1e-3)) / (RECORDS * 0.5)


def gaussian_delta(mu_squared: float, epsilon: float) -> float:
    mu = mpmath.sqrt(mu_squared)
    if not mu:
        return 0.0
    below = mpmath.ncdf(mu / 2 - epsilon / mu)
    return float(below - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("base", [GaussianShift(Fraction(9, 4)), LaplaceShift(Fraction(2))])
def test_a_told_sample_lies_above_a_hidden_one(
    base: GaussianShift | LaplaceShift, order: Order
) -> None:
    hidden, known = Sampled(base, Fraction(1, 5), order), RevealedSample(base, Fraction(1, 5))
    with precision(128):
        for x in np.linspace(-3.1, 3.1, 63):
            above, below = delta_of(known, arb(float(x))), delta_of(hidden, arb(float(x)))
            assert above.upper() >= below.lower()
        assert delta_of(known, arb(0.5)) > delta_of(hidden, arb(0.5))


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.9])
@pytest.mark.parametrize("mu", [0.01, 3.0, 40.0])
def test_moments_of_a_told_sample_are_a_mean(rate: float, mu: float) -> None:
    pair = RevealedSample(GaussianShift(Fraction(mu) ** 2), Fraction(rate))
    step, order = 0.25, 0.75
    z: NDArray[np.complex128] = np.asarray(order + 1j * step * np.arange(40), np.complex128)
    demand = Demand(order, 12.0, 40.0)
    found = log_moments(pair, z, demand)
    with mpmath.workdps(60), precision(192):
        balls = moments_on_line(pair, step, 39, demand)
        for point, value, error, ball in zip(z, found.log, found.error, balls, strict=True):
            x = mpmath.mpc(complex(point))
            true = 1 + mpmath.mpf(rate) * mpmath.expm1(x * (x + 1) * mpmath.mpf(mu) ** 2 / 2)
            # a logarithm is meant up to whole turns
            assert abs(mpmath.expm1(mpmath.mpc(complex(value)) - mpmath.log(true))) <= error + 1e-18
            assert error < 1e-9
            if abs(true) < 1e300:
                assert abs(complex(ball) - complex(true)) <= 1e-14 * abs(complex(true))
    real = log_real_moments(pair, np.array([order]))[0]
    assert real == pytest.approx(found.log[0].real, rel=1e-12)


def test_the_closed_form_is_a_mean_over_the_numbers_of_meetings() -> None:
    counts: dict[DominatingPair, int] = {
        RevealedSample(GaussianShift(Fraction(4)), Fraction(1, 10)): 6,
        RevealedSample(GaussianShift(Fraction(1)), Fraction(1, 4)): 3,
        GaussianShift(Fraction(1, 2)): 2,
    }
    form = revealed_form(counts, 1e-6, most_terms=1000)
    assert form is not None
    for epsilon in (0.0, 1.0, 7.5):
        true = sum(
            binom.pmf(i, 6, 0.1) * binom.pmf(j, 3, 0.25) * gaussian_delta(1 + 4 * i + j, epsilon)
            for i in range(7)
            for j in range(4)
        )
        assert form.delta(epsilon).upper_float == pytest.approx(true, rel=1e-11)
        assert form.delta(epsilon).relative_width < 1e-12
    grid = epsilon_by_pld(counts, 1e-6, cells=1 << 11)
    closed = form.epsilon(1e-6)
    assert closed.relative_width < 1e-9
    assert grid.lower <= closed.upper
    assert closed.lower <= grid.upper


def test_the_numbers_of_meetings_left_out_are_accounted_for() -> None:
    counts: dict[DominatingPair, int] = {
        RevealedSample(GaussianShift(Fraction(900)), Fraction(1, 10)): 4000
    }
    form = revealed_form(counts, 1e-3, most_terms=1000)
    assert form is not None
    assert len(form.shifts) < 1000
    assert form.missing < 1e-20
    assert revealed_form(counts, 1e-3, most_terms=100) is None


def test_short_shifts_stay_as_they_are() -> None:
    counts: dict[DominatingPair, int] = {sampled(20.0, 0.05): 3, GaussianShift(Fraction(10**6)): 1}
    assert revealed(counts) == counts
    assert revealed({sampled(30.0, 0.05): 3}) == {
        RevealedSample(GaussianShift(Fraction(900)), Fraction(0.05)): 3
    }


@pytest.mark.parametrize("constant", [4.0, *slow(0.1)])
def test_small_noise_against_large_shifts_has_an_answer_in_little_memory(constant: float) -> None:
    step = mixture(theorem_2(constant))
    tracemalloc.start()
    try:
        profile = PrivacyProfile.of({step: STEPS}, REPLACE)
        fast, certified = profile.epsilon_upper(1e-3), profile.epsilon(1e-3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100e6
    assert certified.lower_float <= fast < inf
    assert 0 < certified.lower <= certified.upper
    assert fast <= 1.04 * certified.lower_float
    # one record is met at most four times, but for a probability below 1e-3: no more than that,
    # on the whole noise, and no less than three on all of it
    squared = (4 / step.noise_std) ** 2
    assert fast > squared * 3 / 2
    assert fast < squared * 4 * 0.7 + 10 * sqrt(squared * 4) + 0.02 * squared


def test_small_noise_has_a_curve() -> None:
    profile = PrivacyProfile.of({mixture(theorem_2(4.0)): STEPS}, REPLACE)
    deltas = np.geomspace(1e-12, 0.3, 9)
    epsilons = profile.epsilons_upper(deltas)
    assert np.all(np.diff(epsilons) < 0)
    assert np.all(profile.deltas_upper(epsilons) <= deltas * (1 + 1e-9))
    enclosed = profile.delta(float(epsilons[4]))
    assert enclosed.lower_float <= profile.delta_upper(float(epsilons[4])) <= deltas[4] * (1 + 1e-9)


@pytest.mark.parametrize("order", Order)
def test_less_noise_never_costs_less_where_told_samples_take_over(order: Order) -> None:
    shorter: dict[DominatingPair, int] = {sampled(24.4, 1e-3, order): 50}
    below = PrivacyProfile.of_pairs(shorter).epsilon_upper(1e-3)
    above = PrivacyProfile.of_pairs({sampled(24.6, 1e-3, order): 50}).epsilon_upper(1e-3)
    assert above >= float(epsilon_by_pld(shorter, 1e-3, cells=1 << 10).lower)
    assert above <= max(1.1 * below, 0.06)


def test_seeing_that_a_record_is_absent_is_bounded() -> None:
    profile = PrivacyProfile.of_pairs({sampled(1e3, 1e-4, Order.MIXTURE_SECOND): STEPS})
    most = -STEPS * log(1 - 1e-4)
    assert profile.epsilon_upper(1e-9) == pytest.approx(most, rel=1e-6)
    assert profile.epsilon(1e-9).upper_float == pytest.approx(most, rel=1e-6)
    assert profile.delta_upper(0.3) == 0.0 < profile.delta_upper(0.2)


@pytest.mark.parametrize(
    "counts",
    [
        {sampled(100.0, 0.01): 100, LaplaceShift(Fraction(1, 2)): 3, sampled(1.0, 0.01): 10},
        {Sampled(LaplaceShift(Fraction(10**9)), Fraction(1, 1000), Order.MIXTURE_FIRST): 100},
        {sampled(30.0, 0.3): 10**8},
    ],
    ids=["with others", "Laplace", "very often"],
)
def test_every_long_shift_has_bounds(counts: dict[DominatingPair, int]) -> None:
    profile = PrivacyProfile.of_pairs(counts)
    fast = profile.epsilon_upper(1e-6)
    grid = epsilon_by_pld(counts, 1e-6, cells=1 << 9)
    assert float(grid.lower) <= fast < inf
    assert 0 < profile.delta_upper(fast / 2) <= 1


def test_an_enormous_shift_costs_what_the_meetings_cost() -> None:
    counts: dict[DominatingPair, int] = {sampled(1e30, 1e-3): 1000, GaussianShift(Fraction(1)): 1}
    profile = PrivacyProfile.of_pairs(counts)
    # as many meetings as are exceeded with a probability below δ, each of a loss of μ²/2
    meetings = float(binom.isf(1e-6, 1000, 1e-3))
    assert profile.epsilon_upper(1e-6) == pytest.approx(meetings * 5e59, rel=1e-6)
    assert profile.epsilon(1e-6).upper_float == pytest.approx(meetings * 5e59, rel=1e-6)


def test_a_fixed_batch_with_hardly_any_noise_costs_no_more_than_without_a_sample() -> None:
    plain = GaussianStep(declared(1, "a test", adjacency=REPLACE), 1e-3)
    drawn = SampledWithoutReplacement(plain, 1, 1000)
    by_sample = PrivacyProfile.of({drawn: 20}, REPLACE)
    assert by_sample.epsilon_upper(1e-5) < PrivacyProfile.of({plain: 20}, REPLACE).epsilon_upper(
        1e-5
    )
    assert by_sample.epsilon(1e-5).lower_float > 0.9 * 0.5e6
    # a probability above δ of a meeting, whose loss is 500,000 and hardly random
    assert 1 - (1 - 1e-3) ** 20 > 1e-5 > exp(-20)


def test_the_split_is_found_without_a_panel() -> None:
    (pair, _) = pairs_of({mixture(theorem_2(64.0)): STEPS}, REPLACE, Order.SYMMETRISED)
    assert isinstance(pair, Sampled)
    assert isinstance(pair.base, GaussianShift)
    assert pair.order is Order.SYMMETRISED
    assert pair.base.mu_squared >= Fraction(4) ** 2 / Fraction(theorem_2(64.0)) ** 2


def test_more_steps_than_doubles_count_are_left_to_other_routes() -> None:
    """The binomial's mass lay between two neighbouring doubles: no number of meetings was found."""
    counts: dict[DominatingPair, int] = {
        RevealedSample(GaussianShift(Fraction(10**6)), Fraction(1, 2)): 10**36
    }
    assert revealed_form(counts, 1e-5, most_terms=2000) is None
    assert PrivacyProfile.of_pairs(counts).epsilon(1e-5).upper >= 10**36 // 4 * 10**6
