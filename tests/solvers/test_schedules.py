"""Laws of noise schedules: totals are exact, published ones differ as told, optima are least."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpledger.mechanisms import InvalidParameter
from dpledger.solvers import (
    ConstantNoise,
    IterationDecay,
    NoiseSchedule,
    PeriodicDecay,
    TabulatedNoise,
    optimal_noise,
)
from dpledger.solvers.schedules import cost, noise_level

RATE = Fraction(37, 40)  # R_P = 0.925 of the experiments


@pytest.mark.parametrize(
    ("period", "total"), [(2, 148.5410141), (5, 72.80573032)], ids=["Kp=2", "Kp=5"]
)
def test_periodic_decay_costs_the_geometric_sum(period: int, total: float) -> None:
    assert float(cost(PeriodicDecay(RATE, period), 50)) == pytest.approx(total, rel=1e-9)


@given(
    rate=st.fractions(Fraction(1, 10), Fraction(9, 10), max_denominator=50),
    period=st.integers(1, 6),
    periods=st.integers(1, 6),
)
def test_theorem_3_understates_by_exactly_one_first_round(
    rate: Fraction, period: int, periods: int
) -> None:
    schedule = PeriodicDecay(rate, period)
    assert schedule.published_cost(period * periods) == cost(schedule, period * periods) - 1


def test_theorem_3_understates_by_two_percent_in_the_experiments() -> None:
    schedule = PeriodicDecay(RATE, 25)
    missing = cost(schedule, 50) / schedule.published_cost(50) - 1
    assert float(missing) == pytest.approx(0.01959745763, rel=1e-9)


def test_theorem_3_prices_a_single_round_at_nothing() -> None:
    assert PeriodicDecay(RATE, 1).published_cost(1) == 0


@given(rate=st.fractions(Fraction(1, 100), 3, max_denominator=100), rounds=st.integers(1, 40))
def test_theorem_4_holds_with_sigma_1_in_the_first_round(rate: Fraction, rounds: int) -> None:
    schedule = IterationDecay(rate)
    assert schedule.published_cost(rounds) == cost(schedule, rounds)


def test_theorem_4_is_the_papers_figure() -> None:
    assert cost(IterationDecay(Fraction(15, 1000)), 50) == Fraction(62575, 100)


def test_iteration_decay_first_rises() -> None:
    variances = [IterationDecay(Fraction(15, 1000)).variance(k) for k in range(1, 10)]
    assert variances[1] == Fraction(100, 3)
    assert [v > 1 for v in variances[1:]] == [True] * 7 + [False]


@pytest.mark.parametrize(
    "schedule", [ConstantNoise(), PeriodicDecay(0.9, 2), IterationDecay(0.3)], ids=repr
)
def test_levels_are_rounded_up_and_the_first_is_exact(schedule: NoiseSchedule) -> None:
    assert noise_level(schedule, 0.3, 1) == 0.3
    for k in range(1, 30):
        exact = Fraction(0.3) ** 2 * schedule.variance(k)
        assert (
            exact <= Fraction(noise_level(schedule, 0.3, k)) ** 2 <= exact * (1 + Fraction(2**-50))
        )


WEIGHTS = st.lists(st.floats(0.05, 20.0), min_size=2, max_size=6)


@given(weights=WEIGHTS, seed=st.integers(0, 2**32 - 1))
def test_no_schedule_of_the_same_privacy_has_a_smaller_error_bound(
    weights: list[float], seed: int
) -> None:
    w = np.array(weights)
    best = np.array([float(v) for v in optimal_noise(weights).variances])
    least = (w @ best) * (1 / best).sum()
    assert least == pytest.approx(np.sqrt(w).sum() ** 2, rel=1e-12)
    other = best * np.exp(np.random.default_rng(seed).normal(size=len(w)))
    assert (w @ other) * (1 / other).sum() >= least * (1 - 1e-12)


def test_for_equal_weights_constant_noise_is_best() -> None:
    assert optimal_noise([3.0] * 5).variances == (Fraction(1),) * 5


def test_a_table_is_a_schedule_for_as_many_rounds_as_it_has() -> None:
    table = TabulatedNoise((Fraction(1), Fraction(1, 4)))
    assert cost(table, 2) == 5
    with pytest.raises(InvalidParameter, match=r"round=3 must be in \[1, 2\]"):
        cost(table, 3)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_rates_outside_the_unit_interval_are_refused(bad: float) -> None:
    with pytest.raises(InvalidParameter, match="rate"):
        PeriodicDecay(bad)


def test_bad_schedules_are_refused() -> None:
    for make in (
        lambda: PeriodicDecay(0.5, 0),
        lambda: IterationDecay(0.0),
        lambda: IterationDecay(float("inf")),
        lambda: TabulatedNoise(()),
        lambda: TabulatedNoise((Fraction(2),)),
        lambda: TabulatedNoise((Fraction(1), Fraction(0))),
        lambda: optimal_noise([1.0, -1.0]),
        lambda: PeriodicDecay(0.5, 3).published_cost(10),
        lambda: cost(ConstantNoise(), 0),
    ):
        with pytest.raises(InvalidParameter):
            make()
