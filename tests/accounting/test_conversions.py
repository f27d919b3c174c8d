"""Textbook conversions: figures, independent routes, and none below the exact Gaussian curve."""

import math
from fractions import Fraction

import dp_accounting
import mpmath as mp
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dpledger.accounting.conversions import (
    advanced_composition,
    classical_noise_multiplier,
    epsilon_from_moments,
    epsilon_from_rdp,
    epsilon_from_rdp_mironov,
    epsilon_from_zcdp,
    epsilon_from_zcdp_by_orders,
    rho_from_epsilon,
)
from dpledger.accounting.gaussian.exact import epsilon_from_delta, mu_from_epsilon_delta
from dpledger.accounting.numbers.enclosure import Enclosure, precision
from dpledger.mechanisms.errors import InvalidParameter

RHO = st.floats(-12, 6).map(lambda exponent: 10**exponent)
DELTA = st.floats(-300, -0.31).map(lambda exponent: 10**exponent)


def close(enclosure: Enclosure, figure: float, relative: float = 1e-9) -> bool:
    low, high = enclosure.lower_float, enclosure.upper_float
    return abs(low - figure) <= relative * figure and abs(high - figure) <= relative * figure


def enclosed(value: arb) -> Enclosure:
    return Enclosure.from_ball(value)


# --- laws ----------------------------------------------------------------------------------------


@given(RHO, DELTA)
def test_no_conversion_falls_below_the_exact_gaussian_curve(rho: float, delta: float) -> None:
    exact = epsilon_from_delta(mu_squared=2 * Fraction(rho), delta=delta)
    by_orders = epsilon_from_zcdp_by_orders(rho=rho, delta=delta).epsilon
    moments = epsilon_from_moments(rho=rho, delta=delta, max_order=2000).epsilon
    simple = epsilon_from_zcdp(rho=rho, delta=delta)
    assert exact.lower <= by_orders.upper
    assert by_orders.lower <= simple.upper
    assert simple.lower <= moments.upper


@given(RHO, DELTA, st.floats(0.3, 3))
def test_the_order_found_is_the_best(rho: float, delta: float, factor: float) -> None:
    best = epsilon_from_zcdp_by_orders(rho=rho, delta=delta)
    other = 1 + (Fraction(best.order) - 1) * Fraction(factor)
    with precision(128):
        rdp = Enclosure.of(Fraction(rho) * other)
    rival = epsilon_from_rdp(order=other, rdp=rdp, delta=delta)
    assert best.epsilon.lower_float <= rival.upper_float * (1 + 1e-12)


@given(RHO, DELTA, st.floats(1.0001, 1e4))
def test_the_tighter_rdp_conversion_never_exceeds_mironovs(
    rdp: float, delta: float, order: float
) -> None:
    tight = epsilon_from_rdp(order=order, rdp=rdp, delta=delta)
    assert tight.lower <= epsilon_from_rdp_mironov(order=order, rdp=rdp, delta=delta).upper


@given(RHO, DELTA)
def test_rho_and_epsilon_convert_back_and_forth(rho: float, delta: float) -> None:
    epsilon = epsilon_from_zcdp(rho=rho, delta=delta)
    assert rho_from_epsilon(epsilon=epsilon, delta=delta).contains(rho)


@given(st.floats(1e-4, 100), DELTA, st.integers(1, 60))
def test_the_moments_order_is_the_best_below_its_cap(rho: float, delta: float, cap: int) -> None:
    best = epsilon_from_moments(rho=rho, delta=delta, max_order=cap)
    assert 1 <= best.order <= cap
    by_hand = min((k + 1) * rho - math.log(delta) / k for k in range(1, cap + 1))
    assert close(best.epsilon, by_hand, 1e-12)


@given(st.floats(1e-3, 1), DELTA)
def test_the_classical_noise_is_enough_up_to_epsilon_one(epsilon: float, delta: float) -> None:
    multiplier = classical_noise_multiplier(epsilon=epsilon, delta=delta)
    with precision(128):
        mu_squared = enclosed(1 / (multiplier.ball * multiplier.ball))
    assert epsilon_from_delta(mu_squared=mu_squared, delta=delta) < epsilon


def test_mironovs_best_order_is_the_zcdp_conversion() -> None:
    rho, delta = Fraction(1, 2), 1e-5
    order = 1 + Fraction(math.sqrt(-math.log(delta) / rho))
    mironov = epsilon_from_rdp_mironov(order=order, rdp=rho * order, delta=delta)
    assert close(mironov, epsilon_from_zcdp(rho=rho, delta=delta).upper_float, 1e-14)


# --- independent routes --------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 7.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-12])
def test_rdp_conversion_agrees_with_dp_accounting_at_the_same_order(
    rho: float, delta: float
) -> None:
    bound = epsilon_from_zcdp_by_orders(rho=rho, delta=delta)
    accountant = dp_accounting.rdp.RdpAccountant(orders=[float(bound.order)])
    accountant.compose(dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * rho)))
    assert close(bound.epsilon, accountant.get_epsilon(delta), 1e-9)


@pytest.mark.parametrize(("rho", "delta"), [(1e-3, 1e-6), (0.5, 1e-5), (20.0, 1e-9)])
def test_the_best_real_order_agrees_with_a_direct_minimisation(rho: float, delta: float) -> None:
    def bound(log_excess: mp.mpf) -> mp.mpf:
        alpha = 1 + mp.exp(log_excess)
        spread = (mp.log(delta) + mp.log(alpha)) / (alpha - 1)
        return alpha * rho + mp.log((alpha - 1) / alpha) - spread

    with mp.workdps(40):
        grid = [bound(mp.mpf(k) / 50) for k in range(-400, 600)]
        best = min(range(len(grid)), key=grid.__getitem__)
        start = mp.mpf(best - 400) / 50
        least = bound(mp.findroot(lambda y: mp.diff(bound, y), start))
    assert close(epsilon_from_zcdp_by_orders(rho=rho, delta=delta).epsilon, float(least), 1e-14)


# --- published figures ---------------------------------------------------------------------------


def classical_rho(nominal: Fraction, delta: float, steps: int) -> Enclosure:
    """rho of `steps` Gaussian steps with the classical noise for `nominal`."""
    with precision(128):
        product = 4 * (arb(1.25) / arb(delta)).log()
        return enclosed(steps * arb(nominal.numerator) ** 2 / nominal.denominator**2 / product)


@pytest.mark.parametrize(
    ("nominal", "delta", "epsilon"),
    [
        (Fraction(1, 100), 1e-4, 0.09907547176),
        (Fraction(1, 100), 1e-5, 0.09925799285),
        (Fraction(1, 10), 1e-5, 1.011806414),
        (Fraction(1, 100), 1e-6, 0.09938028871),
        (Fraction(1, 10), 1e-6, 1.009842363),
        (Fraction(1, 5), 1e-6, 2.055300677),
    ],
)
def test_moments_accountant_over_a_hundred_classical_steps(
    nominal: Fraction, delta: float, epsilon: float
) -> None:
    rho = classical_rho(nominal, delta, 100)
    assert close(epsilon_from_moments(rho=rho, delta=delta, max_order=1999).epsilon, epsilon)


def test_classical_noise_over_exact_noise() -> None:
    classical = classical_noise_multiplier(epsilon=1, delta=1e-5)
    with precision(128):
        ratio = enclosed(classical.ball * mu_from_epsilon_delta(epsilon=1, delta=1e-5).ball)
    assert close(ratio, 1.298655492)


def test_rho_of_a_nominal_epsilon() -> None:
    assert close(rho_from_epsilon(epsilon=10, delta=1e-4), 1.817389708)


@pytest.mark.parametrize(
    ("nominal", "epsilon"),
    [(Fraction(1, 2), 0.5004256947), (1, 1.000861942), (5, 5.004655457), (10, 10.00993115)],
)
def test_a_total_that_leaves_out_one_step(nominal: Fraction, epsilon: float) -> None:
    # rho_k grows by 1/0.925 a step, 50 steps; the published total forgets rho_1
    total = sum(Fraction(1000, 925) ** k for k in range(50))
    with precision(128):
        published = rho_from_epsilon(epsilon=nominal, delta=1e-4).ball
        factor = Enclosure.of(total / (total - 1)).ball
        rho = enclosed(published * factor)
        mu_squared = enclosed(2 * published * factor)
    assert close(epsilon_from_zcdp(rho=rho, delta=1e-4), epsilon)
    if nominal == 1:
        assert close(epsilon_from_delta(mu_squared=mu_squared, delta=1e-4), 0.6943376951)


@pytest.mark.parametrize(
    ("nominal", "rho", "exact"),
    [
        (Fraction(1, 100), 3.61650297e-06, 0.0001493050987),
        (Fraction(1, 20), 9.015174701e-05, None),
        (Fraction(2, 25), 0.0002302902068, None),
        (Fraction(1, 10), 0.0003593112864, None),
        (1, None, 0.6197111812),
        (5, None, 3.745042452),
    ],
)
def test_rdp_calibration_with_half_the_budget_for_the_conversion(
    nominal: Fraction, rho: float | None, exact: float | None
) -> None:
    # alpha = 1 + ln(1/delta) / (epsilon/2), rho alpha = epsilon/2
    with precision(128):
        half = Enclosure.of(Fraction(nominal) / 2).ball
        found = enclosed(half / (1 - arb(1e-3).log() / half))
        mu_squared = enclosed(2 * found.ball)
    assert rho is None or close(found, rho)
    assert exact is None or close(epsilon_from_delta(mu_squared=mu_squared, delta=1e-3), exact)


@pytest.mark.parametrize(
    ("nominal", "ratio"),
    [(Fraction(1, 100), 1.000000065), (Fraction(1, 20), 1.000001625), (Fraction(1, 2), 1.00015257)],
)
def test_half_the_budget_against_the_best_order(nominal: Fraction, ratio: float) -> None:
    with precision(128):
        half = Enclosure.of(nominal / 2).ball
        spent = half / (1 - arb(1e-3).log() / half)
        best = rho_from_epsilon(epsilon=nominal, delta=1e-3).ball
        assert close(enclosed((best / spent).sqrt()), ratio)


@pytest.mark.parametrize(
    ("nominal", "epsilon"),
    [
        (Fraction(1, 100), 0.216606636),
        (Fraction(1, 10), 2.356307862),
        (Fraction(1, 2), 17.21704284),
    ],
)
def test_advanced_composition_of_twenty_steps(nominal: Fraction, epsilon: float) -> None:
    delta = Fraction(1, 10**5)
    composed = advanced_composition(epsilon=nominal, delta=delta, steps=20, delta_slack=delta)
    assert close(composed.epsilon, epsilon)
    assert composed.delta == Fraction(21, 10**5)


@pytest.mark.parametrize(
    ("nominal", "epsilon"),
    [(Fraction(1, 20), 0.1910085916), (Fraction(1, 2), 2.005944248), (1, 4.224907012)],
)
def test_zcdp_of_twenty_classical_steps(nominal: Fraction, epsilon: float) -> None:
    rho = classical_rho(Fraction(nominal), 1e-5, 20)
    assert close(epsilon_from_zcdp(rho=rho, delta=Fraction(21, 10**5)), epsilon)


# --- edges ---------------------------------------------------------------------------------------


def test_no_sensitivity_costs_nothing_and_no_noise_everything() -> None:
    for value, expected in ((0, 0), (math.inf, math.inf)):
        assert epsilon_from_zcdp(rho=value, delta=1e-5) == expected
        assert epsilon_from_zcdp_by_orders(rho=value, delta=1e-5).epsilon == expected
        assert epsilon_from_moments(rho=value, delta=1e-5, max_order=9).epsilon == expected
        assert epsilon_from_rdp(order=2, rdp=value, delta=1e-5) == expected
        assert epsilon_from_rdp_mironov(order=2, rdp=value, delta=1e-5) == expected
        assert rho_from_epsilon(epsilon=value, delta=1e-5) == expected
        composed = advanced_composition(epsilon=value, delta=0, steps=3, delta_slack=1e-5)
        assert composed.epsilon == expected


def test_infinite_order_is_pure_privacy() -> None:
    assert epsilon_from_rdp(order=math.inf, rdp=3, delta=1e-5) == 3
    assert epsilon_from_rdp_mironov(order=math.inf, rdp=3, delta=1e-5) == 3


def test_a_negative_value_of_the_formula_proves_zero() -> None:
    assert epsilon_from_rdp(order=2, rdp=1e-6, delta=0.9) == 0


def test_the_classical_theorem_is_silent_above_one() -> None:
    with pytest.raises(InvalidParameter, match=r"epsilon=1\.01 must be in \(0, 1\]\."):
        classical_noise_multiplier(epsilon=1.01, delta=1e-5)


@pytest.mark.parametrize("bad", [-1, math.nan])
def test_a_negative_or_missing_rho_is_an_error_naming_it(bad: float) -> None:
    for call in (
        lambda: epsilon_from_zcdp(rho=bad, delta=1e-5),
        lambda: epsilon_from_zcdp_by_orders(rho=bad, delta=1e-5),
        lambda: epsilon_from_moments(rho=bad, delta=1e-5, max_order=5),
    ):
        with pytest.raises(InvalidParameter, match=r"rho=.* must be in \[0, inf\]\."):
            call()


@pytest.mark.parametrize("bad", [0, 1, math.nan, -0.1])
def test_a_delta_outside_the_open_unit_interval_is_an_error(bad: float) -> None:
    for call in (
        lambda: epsilon_from_zcdp(rho=1, delta=bad),
        lambda: epsilon_from_rdp(order=2, rdp=1, delta=bad),
        lambda: classical_noise_multiplier(epsilon=1, delta=bad),
        lambda: advanced_composition(epsilon=1, delta=0, steps=2, delta_slack=bad),
    ):
        with pytest.raises(InvalidParameter, match=r"delta\w*=.* must be in \(0, 1\)\."):
            call()


def test_an_order_is_above_one_and_a_cap_is_a_whole_number() -> None:
    for order in (1, 0.5, math.nan):
        with pytest.raises(InvalidParameter, match="order="):
            epsilon_from_rdp(order=order, rdp=1, delta=1e-5)
    with pytest.raises(InvalidParameter, match="max_order=0"):
        epsilon_from_moments(rho=1, delta=1e-5, max_order=0)
