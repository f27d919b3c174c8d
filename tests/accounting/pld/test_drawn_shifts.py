"""Laws of groups of which a Poisson sample draws a number, and of sums of several samples.

1. One event's profile is the integral of the mixture's density above γ times the noise's.
2. Compositions lie at or above another library's loss distributions, and hardly above.
3. A group of n pays what one record in n accumulated samples does, more than n - 1 do, and less
   than the same group drawn as a whole; δ(ε) and ε(δ) are each other's inverse.
"""

from fractions import Fraction
from math import comb, exp, inf
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy.stats import binom, norm
from tests.parameters import slow

import dpledger
from dpledger.accounting.guarantees import deltas_at, epsilons_at, guarantee
from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.planning import calibrate_noise_multiplier
from dpledger.accounting.pld import PrivacyProfile, routes
from dpledger.accounting.pld.pairs import (
    DrawnShifts,
    GaussianShift,
    Order,
    ReplacedInSample,
    Sampled,
)
from dpledger.accounting.pld.profiles import delta_of
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    Mechanism,
    PoissonSampled,
    Repeated,
)
from dpledger.mechanisms.sensitivity import sum_of_bounded

ORDERS = (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)
STEP = GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), 2.0)


def events(mechanism: Mechanism, times: int = 1) -> list[Event]:
    return [Event(Repeated(mechanism, times), Context((), 1, "sum", Audience.PUBLIC))]


def integrated(pair: DrawnShifts, gamma: float) -> float:
    """H_γ on a fine grid of outcomes, in doubles: the trapezoidal rule of densities."""
    mu, q, n = float(pair.mu_squared) ** 0.5, float(pair.rate), pair.size
    grid = np.linspace(-12, 12 + n * mu, 1_000_001)
    drawn = binom.pmf(np.arange(n + 1), n, q)
    mixed = sum(w * norm.pdf(grid, j * mu) for j, w in enumerate(drawn))
    orders = (mixed, norm.pdf(grid))
    first, second = orders if pair.order is Order.MIXTURE_FIRST else orders[::-1]
    return float(np.maximum(first - gamma * second, 0.0).sum() * (grid[1] - grid[0]))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("mu_squared", "rate", "size"), [("1/4", "1/10", 2), *slow(("1", "1/100", 5)), ("9", "1/2", 3)]
)
def test_one_event_has_the_profile_of_its_densities(
    order: Order, mu_squared: str, rate: str, size: int
) -> None:
    pair = DrawnShifts(Fraction(mu_squared), Fraction(rate), size, order)
    for x in (-0.05, 0.0, 0.02, 0.3):
        with precision(128):
            found = delta_of(pair, arb(x))
        assert float(found.mid()) == pytest.approx(integrated(pair, exp(x)), abs=1e-9)
        assert float(found.rad()) < 1e-20


def test_compositions_lie_hardly_above_another_librarys() -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    size, rate, noise, times = 2, 0.1, 3.0, 20
    weights = [comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)]

    def theirs(*, pessimistic: bool) -> float:
        one = pld.from_mixture_gaussian_mechanism(
            noise,
            sensitivities=list(range(size + 1)),
            sampling_probs=weights,
            value_discretization_interval=2e-3,
            pessimistic_estimate=pessimistic,
        )
        return one.self_compose(times).get_epsilon_for_delta(1e-5)

    step = GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), noise)
    found = guarantee(events(PoissonSampled(step, rate), times), delta=1e-5, group=size).epsilon
    upper = theirs(pessimistic=True)
    # a grid of theirs twice as fine moves their upper bound by 4e-5 of it
    assert theirs(pessimistic=False) <= upper * (1 - 1e-4) <= found.upper_float <= 1.003 * upper


def test_a_group_pays_as_often_as_it_may_be_drawn() -> None:
    def paid(mechanism: Mechanism, group: int) -> float:
        return guarantee(events(mechanism, 50), delta=1e-6, group=group).epsilon.upper_float

    one, two, four = (paid(PoissonSampled(STEP, 1 / 32), n) for n in (1, 2, 4))
    assert one < two < four
    assert four == paid(AccumulatedPoisson(STEP, 1 / 32, 4), 1)
    assert four == paid(AccumulatedPoisson(STEP, 1 / 32, 2), 2)
    whole = GaussianStep(sum_of_bounded(4, Adjacency.ADD_REMOVE_ONE), 2.0)
    assert four < paid(PoissonSampled(whole, 1 - (1 - 1 / 32) ** 4), 1)
    # two shifts of half the noise's variance are no better for being summed
    assert four < 4 * one * 2


@pytest.mark.parametrize(
    "delta", [1e-6, *(pytest.param(each, marks=pytest.mark.slow) for each in (1e-3, 1e-12))]
)
def test_delta_and_epsilon_are_inverse_and_the_fast_grade_is_no_less(delta: float) -> None:
    listed = events(PoissonSampled(STEP, 1 / 32), 50)
    epsilon = guarantee(listed, delta=delta, group=3).epsilon.upper_float
    fast = epsilons_at(listed, deltas=[delta], grade=Grade.FAST, group=3).epsilon[0]
    assert epsilon <= fast <= epsilon * (1 + 1e-9)
    back = deltas_at(listed, epsilons=[epsilon], group=3).delta[0]
    assert delta * 0.99 <= back <= delta * 1.02


def test_one_record_of_a_group_is_a_lower_end() -> None:
    pair = DrawnShifts(Fraction(1, 4), Fraction(1, 32), 3, Order.MIXTURE_FIRST)
    one = Sampled(GaussianShift(Fraction(1, 4)), Fraction(1, 32), Order.MIXTURE_FIRST)
    found, least = routes.epsilon({pair: 50}, 1e-6), routes.epsilon({one: 50}, 1e-6)
    assert found.lower == least.lower
    assert found.upper > least.upper


def test_units_of_several_records_need_less_noise_than_all_drawn_at_once() -> None:
    def plan(multiplier: float) -> list[Event]:
        step = GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), multiplier)
        return events(PoissonSampled(step, 1 / 64), 100)

    def whole(multiplier: float) -> list[Event]:
        step = GaussianStep(sum_of_bounded(4, Adjacency.ADD_REMOVE_ONE), multiplier)
        return events(PoissonSampled(step, 1 - (1 - 1 / 64) ** 4), 100)

    coarse = calibrate_noise_multiplier(whole, target_epsilon=1.0, delta=1e-5)
    less = plan(0.7 * coarse.noise_multiplier)
    assert guarantee(less, delta=1e-5, group=4).epsilon.upper_float < 1.0


@pytest.mark.parametrize("order", ORDERS)
def test_rates_next_to_nothing_are_priced(order: Order) -> None:
    # one record of three is drawn, if any: the total variation of one shift
    pair = DrawnShifts(Fraction(1), Fraction(1e-300), 3, order)
    truth = 3e-300 * (2 * norm.cdf(0.5) - 1)
    found = PrivacyProfile.of_pairs({pair: 1})
    assert truth * (1 - 1e-9) <= found.delta(0.0).upper_float < 1e-40
    assert found.epsilon(1e-9).upper_float == 0
    assert truth <= PrivacyProfile.of_pairs({pair: 1000}).delta(0.0).upper_float < 1e-40


def test_rates_below_what_doubles_hold_are_refused_with_their_value() -> None:
    for make in (
        lambda q: DrawnShifts(Fraction(1), q, 3, Order.MIXTURE_FIRST),
        lambda q: Sampled(GaussianShift(Fraction(1)), q, Order.SYMMETRISED),
        lambda q: ReplacedInSample(Fraction(1), q),
    ):
        with pytest.raises(InvalidParameter, match=r"^rate=1e-320 must be in \[2\^-1022, 1\)"):
            make(Fraction(1e-320))


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(1), Fraction(-1, 2)])
def test_rates_outside_the_open_interval_are_refused(bad: Fraction) -> None:
    with pytest.raises(InvalidParameter, match=r"^rate"):
        DrawnShifts(Fraction(1), bad, 2, Order.MIXTURE_FIRST)


@pytest.mark.parametrize(("rate", "epsilon"), [(0.0, 0.0), (1.0, inf)])
def test_samples_of_nobody_and_of_everybody(rate: float, epsilon: float) -> None:
    sure = GaussianStep(sum_of_bounded(3, Adjacency.ADD_REMOVE_ONE), 2.0)
    found = guarantee(events(AccumulatedPoisson(STEP, rate, 3)), delta=1e-5)
    expected = guarantee(events(sure), delta=1e-5).epsilon if epsilon else None
    assert found.epsilon.upper_float == (0.0 if expected is None else expected.upper_float)


@pytest.mark.parametrize("mu_squared", [10**6, 10**20, 2**98])
def test_shifts_that_everybody_sees_cost_the_chance_of_being_drawn(mu_squared: int) -> None:
    rate, size = Fraction(1, 1000), 4
    missed = (1 - rate) ** size
    with precision(160):
        first, second = (
            delta_of(DrawnShifts(Fraction(mu_squared), rate, size, order), arb(0.001))
            for order in ORDERS
        )
        assert abs(first - (1 - arb(missed.numerator) / missed.denominator)) < 1e-25
        held = arb(0.001).exp() * missed.numerator / missed.denominator
        assert abs(second - (1 - held)) < 1e-25


@pytest.mark.parametrize("adjacency", ["add-remove-one", "replace-one"])
@pytest.mark.parametrize("size", [2, 4])
def test_next_to_no_noise_is_enough_for_units_that_are_hardly_ever_drawn(
    adjacency: str, size: int
) -> None:
    run: dict[str, Any] = {
        "sampling": "poisson",
        "adjacency": adjacency,
        "rate": 0.001,
        "steps": 3,
        "records_per_unit": size,
        "delta": 0.1,
    }
    assert 1 - 0.999 ** (3 * 2 * size) < 0.1  # the chance that any record of either unit is drawn
    found = dpledger.noise_multiplier(epsilon=1, **run)
    assert found.noise_multiplier < 1e-6
    assert dpledger.epsilon(noise_multiplier=found.noise_multiplier, **run).epsilon == 0
    # without any noise the messages themselves are out
    assert dpledger.epsilon(noise_multiplier=0, **run).epsilon == inf
