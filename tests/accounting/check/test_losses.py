"""Laws of bounded losses: products are exact, and no step of a composition lowers a profile."""

import random
from fractions import Fraction

import pytest

from dpledger.accounting.check.intervals import exp_bounds
from dpledger.accounting.check.losses import (
    Loss,
    Plan,
    composed,
    doubled,
    multiply_by_decimal,
    multiply_by_flint,
    product,
    trimmed,
)
from dpledger.accounting.check.pld_checker import delta_upper

UNIT = 10**20
STEP = Fraction(1, 16)


def free(work):
    """Spend nothing."""


def random_loss(seed, length=30):
    rng = random.Random(seed)
    weights = [rng.random() ** 4 for _ in range(length)]
    masses = [int(UNIT * w / (sum(weights) * 1.001)) for w in weights]
    return Loss(rng.randint(-20, 0), masses, UNIT - sum(masses))


def profile(loss, step):
    """Exact to 1e-25: (e^x, mass) by which every delta is found."""
    return [
        (Fraction(exp_bounds((loss.first + i) * step, 96)[1], 1 << 96), mass)
        for i, mass in enumerate(loss.masses)
    ]


def delta_at(gamma, loss, step):
    """The profile at e^epsilon = gamma, straight from its definition."""
    return loss.lost + sum(m * (1 - gamma / x) for x, m in profile(loss, step) if x > gamma)


GAMMAS = [Fraction(k, 8) for k in range(1, 24)]


@pytest.mark.parametrize("multiply", [multiply_by_decimal, multiply_by_flint])
def test_products_are_exact(multiply):
    rng = random.Random("products")
    for _ in range(50):
        first, second = (
            [rng.getrandbits(rng.randint(1, 200)) for _ in range(rng.randint(1, 30))]
            for _ in range(2)
        )
        expected = [0] * (len(first) + len(second) - 1)
        for i, a in enumerate(first):
            for j, b in enumerate(second):
                expected[i + j] += a * b
        assert multiply(first, second) == expected
        assert multiply([0, *first, 0], second) == [0, *expected, 0]


@pytest.mark.parametrize("seed", range(8))
def test_doubling_the_step_keeps_two_means_and_lowers_no_profile(seed):
    loss = random_loss(seed)
    wider = doubled(loss, exp_bounds(STEP, 160), 160)
    tiny = len(loss.masses)
    assert 0 <= sum(wider.masses) - sum(loss.masses) <= tiny
    for power in (0, -1):
        before = sum(m * x**power for x, m in profile(loss, STEP))
        after = sum(m * x**power for x, m in profile(wider, 2 * STEP))
        assert before - 1 <= after <= before + 10 * tiny
    for gamma in GAMMAS:
        assert delta_at(gamma, wider, 2 * STEP) >= delta_at(gamma, loss, STEP) - 1


@pytest.mark.parametrize("seed", range(8))
def test_trimming_moves_mass_up_only(seed):
    loss = random_loss(seed)
    shorter = trimmed(loss, UNIT // 20)
    if seed == 1:
        assert len(shorter.masses) < len(loss.masses)
    assert sum(shorter.masses) + shorter.lost == UNIT
    assert shorter.lost - loss.lost <= UNIT // 20
    for gamma in GAMMAS:
        assert delta_at(gamma, shorter, STEP) >= delta_at(gamma, loss, STEP)


def test_products_are_sums_of_losses():
    first, second = random_loss(1), random_loss(2)
    both = product(first, second, UNIT)
    assert both.first == first.first + second.first
    assert 0 <= sum(both.masses) + both.lost - UNIT <= len(both.masses) + 1
    mean = sum((Fraction(a * b, UNIT) for a in first.masses for b in second.masses), Fraction())
    assert 0 <= sum(both.masses) - mean <= len(both.masses)


@pytest.mark.parametrize("times", [1, 2, 3, 7, 12, 100])
def test_levels_compose_as_one_after_the_other(times):
    one = random_loss(3, 6)
    plan = Plan((), UNIT, 0)
    found, power = composed([(0, one, times)], plan, lambda k: (1, 2), 96, free)
    expected = one
    for _ in range(times - 1):
        expected = product(expected, one, UNIT)
    assert power == 0
    assert found.first == expected.first
    # in another order roundings differ by a unit for each product
    assert abs(sum(found.masses) - sum(expected.masses)) <= 4 * times * len(expected.masses)
    for gamma in GAMMAS[::4]:
        apart = delta_at(gamma, found, STEP) - delta_at(gamma, expected, STEP)
        assert abs(apart) <= 4 * times * len(expected.masses)


def test_losses_may_enter_at_a_later_level_on_its_lattice():
    fine, coarse = random_loss(4, 8), Loss(-1, [UNIT // 2, 0, UNIT // 2], 0)
    exp_step = {k: exp_bounds(STEP * 2**k, 96) for k in range(3)}.__getitem__
    found, power = composed(
        [(0, fine, 5), (2, coarse, 1)], Plan((0, 1, 0), UNIT, 0), exp_step, 96, free
    )
    assert power == 1
    alone, _ = composed([(0, fine, 5)], Plan((0, 1, 0), UNIT, 0), exp_step, 96, free)
    expected = product(alone, coarse, UNIT)
    for gamma in GAMMAS[::4]:
        apart = delta_at(gamma, found, 2 * STEP) - delta_at(gamma, expected, 2 * STEP)
        assert abs(apart) <= 200


def test_delta_is_that_of_the_definition_or_a_hair_more():
    loss = random_loss(5)
    for epsilon in (Fraction(0), Fraction(1, 10), Fraction(3, 4), Fraction(1), Fraction(9)):
        gamma = Fraction(exp_bounds(epsilon, 128)[0], 1 << 128)
        exact = delta_at(gamma, loss, STEP) / UNIT
        found = delta_upper(loss, STEP, epsilon, UNIT)
        assert exact <= found + Fraction(1, 10**24) <= exact + Fraction(1, 10**15)
