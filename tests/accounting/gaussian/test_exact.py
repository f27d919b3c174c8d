"""The certified Gaussian curve against many-digit arithmetic, integration, figures and laws."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from dpledger.accounting.gaussian.exact import (
    delta_from_epsilon,
    epsilon_from_delta,
    mu_from_epsilon_delta,
)
from dpledger.accounting.numbers.enclosure import Enclosure, TooWide, precision
from dpledger.mechanisms.errors import InvalidParameter

WIDTH = 1e-12
MU_SQUARED = st.floats(1e-12, 1e6)
EPSILON = st.floats(0, 1e3)
DELTA = st.floats(-300, -0.31).map(lambda exponent: 10**exponent)


def oracle_delta(mu: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    """The curve at 150 digits, of which its cancellation costs less than half."""
    with mp.workdps(150):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        shift, half, root = epsilon / mu, mu / 2, mp.sqrt(2)
        return (
            mp.erfc((shift - half) / root) - mp.exp(epsilon) * mp.erfc((shift + half) / root)
        ) / 2


def encloses(enclosure: Enclosure, value: mp.mpf) -> bool:
    with mp.workdps(150):
        ends = []
        for end in (enclosure.lower, enclosure.upper):
            mantissa, exponent = end.man_exp()
            ends.append(mp.ldexp(mp.mpf(int(mantissa)), int(exponent)))
        return bool(ends[0] <= value <= ends[1])


def enclosed_sqrt_ratio(numerator: Fraction, delta: float) -> Enclosure:
    """mu² = numerator / (2 ln(1.25 / delta)): the classical noise for a nominal epsilon."""
    with precision(128):
        top = arb(numerator.numerator) / arb(numerator.denominator)
        return Enclosure.from_ball(top / (2 * (arb(1.25) / arb(delta)).log()))


def close(enclosure: Enclosure, figure: float, relative: float = 1e-9) -> bool:
    low, high = enclosure.lower_float, enclosure.upper_float
    return abs(low - figure) <= relative * figure and abs(high - figure) <= relative * figure


# --- against independent routes ------------------------------------------------------------------


def random_points(count: int) -> list[tuple[float, float]]:
    rng = np.random.default_rng(20240229)
    return [
        (float(mu) ** 2, float(delta))
        for mu, delta in zip(
            10 ** rng.uniform(-6, 3, count), 10 ** rng.uniform(-300, -0.31, count), strict=True
        )
    ]


@pytest.mark.parametrize("mu_squared", [1e-12, 3e-5, 0.25, 1.0, 30.0, 1e4, 1e6])
@pytest.mark.parametrize("multiple", [0.0, 1e-3, 0.5, 3.0, 20.0, 37.0])
def test_delta_encloses_the_value_in_150_digits(mu_squared: float, multiple: float) -> None:
    epsilon = multiple * math.sqrt(mu_squared) + mu_squared / 2 * (multiple > 0)
    found = delta_from_epsilon(mu_squared=mu_squared, epsilon=epsilon)
    with mp.workdps(150):
        assert encloses(found, oracle_delta(mp.sqrt(mp.mpf(mu_squared)), mp.mpf(epsilon)))
    assert found.relative_width <= 1e-15


@pytest.mark.parametrize(("mu_squared", "delta"), random_points(60))
def test_the_exact_delta_at_both_ends_of_epsilon_straddles_delta(
    mu_squared: float, delta: float
) -> None:
    found = epsilon_from_delta(mu_squared=mu_squared, delta=delta)
    with mp.workdps(150):
        mu = mp.sqrt(mp.mpf(mu_squared))
        if found.upper.is_zero():
            assert oracle_delta(mu, mp.mpf(0)) <= delta
            return
        for end, too_small in ((found.lower, True), (found.upper, False)):
            mantissa, exponent = end.man_exp()
            epsilon = mp.ldexp(mp.mpf(int(mantissa)), int(exponent))
            assert (oracle_delta(mu, epsilon) > delta) is too_small
    assert found.relative_width <= WIDTH


@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 1.0), (0.3, 0.05), (2.5, 6.0)])
def test_delta_is_the_integral_of_the_positive_part(mu: float, epsilon: float) -> None:
    # delta = int max(0, N(mu,1)(x) - e^epsilon N(0,1)(x)) dx, the definition
    def excess(x: mp.mpf) -> mp.mpf:
        return mp.npdf(x, mu, 1) - mp.exp(epsilon) * mp.npdf(x, 0, 1)

    with mp.workdps(30):
        start = mp.mpf(epsilon) / mu + mp.mpf(mu) / 2
        integral = mp.quad(excess, [start, start + 2, start + 6, start + 16])
    assert close(
        delta_from_epsilon(mu_squared=Fraction(mu) ** 2, epsilon=epsilon), float(integral), 1e-14
    )


@given(MU_SQUARED, DELTA)
def test_epsilon_is_narrow_and_delta_at_it_returns(mu_squared: float, delta: float) -> None:
    epsilon = epsilon_from_delta(mu_squared=mu_squared, delta=delta)
    assert epsilon.relative_width <= WIDTH
    back = delta_from_epsilon(mu_squared=mu_squared, epsilon=epsilon)
    if epsilon.upper.is_zero():
        assert back <= delta
    else:
        assert back.contains(delta)


@given(EPSILON, DELTA)
def test_mu_is_narrow_and_delta_at_it_returns(epsilon: float, delta: float) -> None:
    mu = mu_from_epsilon_delta(epsilon=epsilon, delta=delta)
    assert mu.relative_width <= WIDTH
    with precision(256):
        square = Enclosure.from_ball(mu.ball * mu.ball)
    assert delta_from_epsilon(mu_squared=square, epsilon=epsilon).contains(delta)


# --- laws ----------------------------------------------------------------------------------------


@given(MU_SQUARED, st.floats(1, 2), DELTA)
def test_epsilon_never_falls_with_less_noise(
    mu_squared: float, factor: float, delta: float
) -> None:
    less = epsilon_from_delta(mu_squared=mu_squared, delta=delta)
    more = epsilon_from_delta(mu_squared=mu_squared * factor, delta=delta)
    assert less.lower <= more.upper


@given(MU_SQUARED, DELTA, st.floats(1e-3, 1))
def test_epsilon_never_falls_with_smaller_delta(
    mu_squared: float, delta: float, factor: float
) -> None:
    smaller = max(delta * factor, 1e-300)
    at_delta = epsilon_from_delta(mu_squared=mu_squared, delta=delta)
    assert at_delta.lower <= epsilon_from_delta(mu_squared=mu_squared, delta=smaller).upper


@given(MU_SQUARED, st.floats(0, 100), st.floats(0, 1e-3))
def test_an_enclosed_mu_encloses_what_its_ends_give(
    mu_squared: float, epsilon: float, width: float
) -> None:
    wide = Enclosure(arb(mu_squared), arb(mu_squared * (1 + width)))
    inner = delta_from_epsilon(mu_squared=mu_squared, epsilon=epsilon)
    outer = delta_from_epsilon(mu_squared=wide, epsilon=epsilon)
    assert outer.contains(inner)


def test_composition_is_exact_in_fractions() -> None:
    third = Fraction(1, 3)
    at_once = epsilon_from_delta(mu_squared=1, delta=1e-5)
    in_three = epsilon_from_delta(mu_squared=third + third + third, delta=1e-5)
    assert at_once.contains(in_three)


def test_epsilon_is_exactly_zero_from_the_advantage_on() -> None:
    # fractions within 2^-290 of the advantage, which the first precision cannot tell from it
    with precision(300):
        advantage = Enclosure.from_ball((1 / arb(8).sqrt()).erf())
    low, high = (
        Fraction(int(end.p), int(end.q)) for end in (advantage.lower.fmpq(), advantage.upper.fmpq())
    )
    above = epsilon_from_delta(mu_squared=1, delta=high)
    below = epsilon_from_delta(mu_squared=1, delta=low)
    assert above == 0
    assert below > 0
    assert below.upper_float < 1e-85
    assert below.relative_width <= WIDTH


def test_without_noise_there_is_no_privacy_and_without_sensitivity_no_loss() -> None:
    assert epsilon_from_delta(mu_squared=0, delta=1e-5) == 0
    assert epsilon_from_delta(mu_squared=math.inf, delta=1e-5) == math.inf
    assert delta_from_epsilon(mu_squared=0, epsilon=0) == 0
    assert delta_from_epsilon(mu_squared=math.inf, epsilon=3) == 1
    assert delta_from_epsilon(mu_squared=2, epsilon=math.inf) == 0
    assert mu_from_epsilon_delta(epsilon=math.inf, delta=1e-5) == math.inf


@pytest.mark.parametrize(
    ("mu_squared", "delta"),
    [
        (1e12, 1e-300),
        (1e-30, 1e-20),
        (4e10, 1e-30),
        (1, Fraction(1, 10**2000)),
        (1e4, 1 - 2**-53),
        (1e6, 1e-300),
        (1e-12, 1e-300),
        (1e28, 1e-44),
    ],
)
def test_extreme_parameters_are_narrow_too(mu_squared: float, delta: float | Fraction) -> None:
    assert epsilon_from_delta(mu_squared=mu_squared, delta=delta).relative_width <= WIDTH


@pytest.mark.parametrize("epsilon", [0, 1e-300, 1e-12, 1e12, 1e20])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.999])
def test_extreme_targets_are_narrow_too(epsilon: float, delta: float) -> None:
    assert mu_from_epsilon_delta(epsilon=epsilon, delta=delta).relative_width <= WIDTH


def test_what_needs_more_than_the_precision_cap_says_so() -> None:
    with pytest.raises(TooWide, match="4096 bits"):
        delta_from_epsilon(mu_squared=1e-300, epsilon=1e300)


@pytest.mark.parametrize("mu_squared", [-1.0, math.nan, Enclosure(arb(-1), arb(1))])
def test_an_impossible_mu_squared_is_an_error_naming_it(mu_squared: float | Enclosure) -> None:
    with pytest.raises(InvalidParameter, match=r"mu_squared=.* must be in \[0, inf\]\."):
        epsilon_from_delta(mu_squared=mu_squared, delta=1e-5)


@pytest.mark.parametrize("delta", [0, 1, 1.3, -1e-9, math.nan])
def test_a_delta_outside_the_open_unit_interval_is_an_error_naming_it(delta: float) -> None:
    for call in (
        lambda: epsilon_from_delta(mu_squared=1, delta=delta),
        lambda: mu_from_epsilon_delta(epsilon=1, delta=delta),
    ):
        with pytest.raises(InvalidParameter, match=r"delta=.* must be in \(0, 1\)\."):
            call()


def test_doubles_land_on_both_sides_of_the_truth() -> None:
    # this is why there are enclosures: the textbook formula in doubles, 200 random points
    rng = np.random.default_rng(7)
    below = above = 0
    for mu, delta in zip(rng.uniform(0.3, 3, 200), 10 ** rng.uniform(-9, -3, 200), strict=True):

        def excess(epsilon: float, mu: float = mu, delta: float = delta) -> float:
            first, second = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
            return float(norm.cdf(first) - math.exp(epsilon) * norm.cdf(second) - delta)

        naive = brentq(excess, 0, 60, xtol=1e-15, rtol=1e-15) if excess(0) > 0 else 0.0
        truth = epsilon_from_delta(mu_squared=Fraction(float(mu)) ** 2, delta=float(delta))
        below += naive < truth.lower_float
        above += naive > truth.upper_float
    assert below >= 50
    assert above >= 50


# --- published figures ---------------------------------------------------------------------------


def test_one_gaussian_step_of_multiplier_one() -> None:
    # the reference value of accounting libraries' own comparisons, 12 digits
    assert close(epsilon_from_delta(mu_squared=1, delta=1e-5), 4.37717809568122, 1e-14)


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [
        (0.5, 1e-3, 0.2169137192),
        (0.1, 1e-3, 0.05745674761),
        (0.05, 1e-3, 0.03332186086),
    ],
)
def test_largest_mu_of_a_target(epsilon: float, delta: float, mu: float) -> None:
    assert close(mu_from_epsilon_delta(epsilon=epsilon, delta=delta), mu)


@pytest.mark.parametrize(
    ("nominal", "delta", "steps", "epsilon"),
    [
        (Fraction(1, 10), 1e-3, 1, 0.03693844829),
        (Fraction(1, 100), 1e-4, 1, 0.003045266636),
        (Fraction(1, 20), 1e-4, 1, 0.02297326957),
        (Fraction(1, 100), 1e-5, 1, 0.004548884088),
        (Fraction(1, 5), 1e-5, 1, 0.1298202079),
        (Fraction(1, 10), 1e-6, 1, 0.06667625541),
        (Fraction(1, 20), 1e-3, 100, 0.2771640467),
        (Fraction(1, 5), 1e-3, 100, 1.448820472),
        (Fraction(1, 100), 1e-4, 100, 0.05180361542),
        (Fraction(1, 10), 1e-4, 100, 0.7048080914),
        (Fraction(1, 10), 1e-5, 100, 0.7509769569),
    ],
)
def test_exact_epsilon_of_classically_calibrated_steps(
    nominal: Fraction, delta: float, steps: int, epsilon: float
) -> None:
    mu_squared = enclosed_sqrt_ratio(steps * nominal**2, delta)
    assert close(epsilon_from_delta(mu_squared=mu_squared, delta=delta), epsilon)


@pytest.mark.parametrize(
    ("nominal", "delta", "exact"),
    [
        (Fraction(1, 100), 1e-3, 6.718727409e-07),
        (Fraction(1, 20), 1e-3, 4.082480594e-06),
        (Fraction(1, 20), 1e-4, 2.771838222e-07),
        (Fraction(1, 20), 1e-5, 2.039920869e-08),
        (Fraction(1, 10), 1e-5, 5.206707016e-08),
        (Fraction(1, 5), 1e-5, 1.683448029e-07),
        (Fraction(1, 20), 1e-6, 1.582322782e-09),
        (Fraction(1), 1e-5, 2.748185903e-05),
    ],
)
def test_exact_delta_at_the_root_t_formula(nominal: Fraction, delta: float, exact: float) -> None:
    # epsilon = sqrt(t ln(1/delta) / ln(1.25/delta)) nominal, t = 100
    mu_squared = enclosed_sqrt_ratio(100 * nominal**2, delta)
    with precision(128):
        epsilon = Enclosure.from_ball((mu_squared.ball * -2 * arb(delta).log()).sqrt())
    assert close(delta_from_epsilon(mu_squared=mu_squared, epsilon=epsilon), exact)


def test_noise_multiplier_for_a_hundred_steps() -> None:
    mu = mu_from_epsilon_delta(epsilon=0.5, delta=1e-3)
    with precision(128):
        assert close(Enclosure.from_ball(10 / mu.ball), 46.10127951)


@pytest.mark.parametrize(
    ("steps", "nominal", "epsilon"),
    [(20, Fraction(1, 10), 0.2303984939), (20, Fraction(1, 2), 1.45242479)],
)
def test_exact_epsilon_of_steps_with_a_summed_delta(
    steps: int, nominal: Fraction, epsilon: float
) -> None:
    mu_squared = enclosed_sqrt_ratio(steps * nominal**2, 1e-5)
    assert close(epsilon_from_delta(mu_squared=mu_squared, delta=2.1e-4), epsilon)


def test_the_classical_noise_fails_above_epsilon_one() -> None:
    # sigma = sqrt(2 ln(1.25/delta)) / epsilon is false from 8.782091752 on, at delta = 1e-6
    for nominal, holds in (
        (Fraction(8782091750, 10**9), True),
        (Fraction(8782091754, 10**9), False),
    ):
        mu_squared = enclosed_sqrt_ratio(nominal**2, 1e-6)
        assert (delta_from_epsilon(mu_squared=mu_squared, epsilon=nominal) <= 1e-6) is holds


@settings(max_examples=20)
@given(st.integers(1, 10**8), st.floats(0.05, 1e6))
def test_million_step_compositions_are_narrow(steps: int, noise_multiplier: float) -> None:
    mu_squared = steps / Fraction(noise_multiplier) ** 2
    found = epsilon_from_delta(mu_squared=mu_squared, delta=1e-30)
    assert found.relative_width <= WIDTH
