"""The noise for a target and the rounds for a budget, checked on the events themselves."""

from collections.abc import Callable
from fractions import Fraction
from math import nextafter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpledger.accounting import planning
from dpledger.accounting.guarantees import Guarantee, guarantee
from dpledger.accounting.planning import (
    UnattainableTarget,
    calibrate_noise_multiplier,
    calibrate_sampling_rate,
    fast_noise_multiplier,
    rounds_within,
)
from dpledger.accounting.training_runs import TrainingRun
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    Repeated,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.curators import noise_std_for

UNIT = declared(1, "unit", adjacency=Adjacency.REPLACE_ONE)


def at(mechanism: Mechanism, round: int) -> Event:
    return Event(mechanism, Context((), round, "test", Audience.SERVER))


def equal_rounds(rounds: int) -> Callable[[float], list[Event]]:
    """Rounds whose sensitivities differ and whose noise multipliers do not."""
    sensitivities = [
        declared(Fraction(1, t + 2), "schedule", adjacency=Adjacency.REPLACE_ONE)
        for t in range(rounds)
    ]
    return lambda z: [
        at(GaussianStep(s, noise_std_for(s, z)), t) for t, s in enumerate(sensitivities)
    ]


@pytest.mark.parametrize(
    ("epsilon", "delta", "published", "tolerance"),
    [(1.0, 1e-5, 37.3063, 5e-5), (0.5, 1e-3, 46.10127951, 46.1 * 1e-9)],
)
def test_public_figures_for_a_hundred_rounds(
    epsilon: float, delta: float, published: float, tolerance: float
) -> None:
    found = calibrate_noise_multiplier(equal_rounds(100), target_epsilon=epsilon, delta=delta)
    assert abs(found.noise_multiplier - published) <= tolerance


@settings(max_examples=25)
@given(st.floats(0.01, 20), st.floats(1e-12, 0.3), st.integers(1, 12))
def test_the_target_holds_and_a_little_less_noise_breaks_it(
    epsilon: float, delta: float, rounds: int
) -> None:
    plan = equal_rounds(rounds)
    found = calibrate_noise_multiplier(plan, target_epsilon=epsilon, delta=delta)
    again = guarantee(plan(found.noise_multiplier), delta=delta)
    assert again.epsilon.upper == found.guarantee.epsilon.upper
    assert found.guarantee.epsilon <= epsilon
    less = found.noise_multiplier * (1 - 1e-6)
    assert guarantee(plan(less), delta=delta).epsilon > epsilon


def test_bounds_that_jump_a_little_cost_few_attempts() -> None:
    unit = declared(1, "unit", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)
    attempts: list[float] = []

    def plan(z: float) -> list[Event]:
        attempts.append(z)
        return [at(Repeated(LaplaceStep(unit, z), 100), 0)]

    found = calibrate_noise_multiplier(plan, target_epsilon=8, delta=1e-6)
    # the search by the fast grade, and then certified answers, each a good part of a second
    assert len(attempts) <= 17
    assert found.guarantee.epsilon <= 8
    assert found.guarantee.epsilon.upper_float > 8 * (1 - 1e-5)


def test_noise_that_does_not_scale_with_the_multiplier_is_found_by_search() -> None:
    def plan(z: float) -> list[Event]:
        return [at(GaussianStep(UNIT, 50.0), 0), at(GaussianStep(UNIT, 1 + z * z), 1)]

    found = calibrate_noise_multiplier(plan, target_epsilon=1, delta=1e-6)
    assert guarantee(plan(found.noise_multiplier), delta=1e-6).epsilon <= 1
    assert guarantee(plan(found.noise_multiplier * (1 - 1e-6)), delta=1e-6).epsilon > 1


def test_a_plan_that_leaks_cannot_be_calibrated() -> None:
    def plan(z: float) -> list[Event]:
        return [at(GaussianStep(UNIT, z), 1), at(UnprotectedRelease("pre-training"), 0)]

    with pytest.raises(UnattainableTarget, match="pre-training"):
        calibrate_noise_multiplier(plan, target_epsilon=1, delta=1e-6)


def test_a_plan_with_a_fixed_part_beyond_the_target_cannot_be_calibrated() -> None:
    with pytest.raises(UnattainableTarget):
        calibrate_noise_multiplier(
            lambda z: [at(GaussianStep(UNIT, 0.1), 0), at(GaussianStep(UNIT, z), 1)],
            target_epsilon=1,
            delta=1e-6,
        )


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (-1, 0.1), (1, -1), (1, 1)])
def test_targets_out_of_range_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter):
        calibrate_noise_multiplier(equal_rounds(1), target_epsilon=epsilon, delta=delta)
    with pytest.raises(InvalidParameter):
        rounds_within(lambda t: equal_rounds(t)(1.0), target_epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("most", [1, 7, 99, 100, 1000])
def test_one_round_more_would_break_the_target(most: int) -> None:
    def plan(rounds: int) -> list[Event]:
        return [at(GaussianStep(UNIT, 37.31), t) for t in range(rounds)]

    found = rounds_within(plan, target_epsilon=1, delta=1e-5, most=most)
    # 37.31 is just above the multiplier 37.3063 for a hundred rounds
    assert found.rounds == min(most, 100)
    assert found.guarantee.epsilon <= 1


def test_calibrated_rounds_are_the_rounds_calibrated_for() -> None:
    noise = calibrate_noise_multiplier(equal_rounds(37), target_epsilon=2, delta=1e-7)
    for multiplier, expected in (
        (noise.noise_multiplier, 37),
        (nextafter(noise.noise_multiplier * (1 - 1e-6), 0), 36),
    ):
        found = rounds_within(
            lambda t, z=multiplier: equal_rounds(t)(z), target_epsilon=2, delta=1e-7
        )
        assert found.rounds == expected


def test_a_round_too_many_is_said_to_be_one() -> None:
    with pytest.raises(UnattainableTarget):
        rounds_within(lambda t: equal_rounds(t)(0.1), target_epsilon=1, delta=1e-6)


ADDED = declared(1, "unit", adjacency=Adjacency.ADD_REMOVE_ONE)


def sampled(noise_multiplier: float, rate: float, rounds: int) -> list[Event]:
    step = PoissonSampled(GaussianStep(ADDED, noise_multiplier), rate)
    return [at(Repeated(step, rounds), 1)]


def test_noise_of_a_sampled_plan_meets_its_target_and_hardly_less_does_not() -> None:
    found = calibrate_noise_multiplier(
        lambda z: sampled(z, 0.01, 1000), target_epsilon=1, delta=1e-5
    )
    assert found.guarantee.epsilon <= 1
    less = sampled(found.noise_multiplier * (1 - 1e-6), 0.01, 1000)
    assert guarantee(less, delta=1e-5).epsilon > 1


def test_the_sampling_rate_is_the_largest_that_meets_the_target() -> None:
    found = calibrate_sampling_rate(lambda q: sampled(1.0, q, 1000), target_epsilon=2, delta=1e-5)
    assert found.guarantee.epsilon <= 2
    more = sampled(1.0, found.sampling_rate * (1 + 1e-6), 1000)
    assert guarantee(more, delta=1e-5).epsilon > 2


def test_a_rate_that_may_be_one_is_one_and_none_at_all_is_an_error() -> None:
    found = calibrate_sampling_rate(lambda q: sampled(50.0, q, 10), target_epsilon=5, delta=1e-5)
    assert found.sampling_rate == 1
    with pytest.raises(UnattainableTarget, match="sampling rate"):
        calibrate_sampling_rate(
            lambda q: [*sampled(50.0, q, 10), at(GaussianStep(ADDED, 0.1), 2)],
            target_epsilon=1,
            delta=1e-5,
        )


def test_rounds_of_a_sampled_plan() -> None:
    found = rounds_within(lambda n: sampled(1.0, 0.01, n), target_epsilon=1.83, delta=1e-5)
    assert 1000 <= found.rounds < 1010
    over = sampled(1.0, 0.01, found.rounds + 1)
    assert guarantee(over, delta=1e-5).epsilon > 1.83


@pytest.mark.parametrize(("rate", "rounds", "target"), [(0.01, 1000, 1.0), (0.2, 7, 0.01)])
def test_fast_noise_meets_its_target_next_to_the_certified_noise(
    rate: float, rounds: int, target: float
) -> None:
    def plan(z: float) -> list[Event]:
        return sampled(z, rate, rounds)

    fast = fast_noise_multiplier(plan, target_epsilon=target, delta=1e-5)
    assert guarantee(plan(fast * (1 + 1e-6)), delta=1e-5).epsilon <= target
    assert guarantee(plan(fast * (1 - 1e-6)), delta=1e-5).epsilon > target


def test_fast_noise_of_a_plan_that_leaks_is_an_error() -> None:
    def plan(z: float) -> list[Event]:
        return [*sampled(z, 0.1, 5), at(GaussianStep(ADDED, 0.1), 2)]

    with pytest.raises(UnattainableTarget):
        fast_noise_multiplier(plan, target_epsilon=1, delta=1e-5)


def test_where_epsilon_is_known_to_four_digits_no_more_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = TrainingRun.of(
        sampling="poisson", adjacency="replace-one", records=1000, batch=20, steps=20
    )
    asked: list[Guarantee] = []

    def noted(*args: Any, **options: Any) -> Guarantee:
        asked.append(guarantee(*args, **options))
        return asked[-1]

    monkeypatch.setattr(planning, "guarantee", noted)
    found = calibrate_noise_multiplier(run.events, target_epsilon=2, delta=1e-5)
    # upper ends jump by a part in thousands from one lattice to the next
    assert len(asked) <= 2
    width = found.guarantee.epsilon.relative_width
    assert 1e-6 < width < 1e-3
    assert 2 * (1 - 2 * width) < found.guarantee.epsilon.upper_float <= 2
    # and no multiplier that is a little less meets the target, whatever the bound
    less = guarantee(run.events(found.noise_multiplier * 0.998), delta=1e-5)
    assert less.epsilon.lower_float > 2
