"""Lower ends by the event that every loss lies by its largest value: never above the truth."""

from fractions import Fraction
from math import comb, expm1, log

import pytest
from flint import arb

from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.distribution import epsilon_by_pld
from dpledger.accounting.pld.pairs import (
    DominatingPair,
    GaussianShift,
    Order,
    RandomisedAnswers,
    Sampled,
)
from dpledger.accounting.pld.product_events import epsilon_floor
from dpledger.accounting.pld.profiles import delta_of


def missing(rate: float, mu_squared: float) -> Sampled:
    """A record that may be missing: its loss is at most -log(1 - rate)."""
    return Sampled(GaussianShift(Fraction(mu_squared)), Fraction(rate), Order.MIXTURE_SECOND)


@pytest.mark.parametrize("delta", [1e-30, 1e-6, 0.01, 0.2])
@pytest.mark.parametrize("pair", [missing(0.3, 4.0), missing(1e-6, 200.0), missing(0.01, 25.0)])
def test_of_one_step_it_lies_below_the_root_of_the_profile(pair: Sampled, delta: float) -> None:
    floor = epsilon_floor({pair: 1}, delta)
    with precision(300):
        # δ falls in ε: it is above δ at every lower end
        assert not floor > 0 or delta_of(pair, floor) > arb(delta) * (1 - arb(2) ** -60)


@pytest.mark.parametrize("steps", [1, 3, 40])
@pytest.mark.parametrize("delta", [1e-12, 1e-3, 0.3])
def test_of_binary_answers_it_lies_below_the_binomial_sum(steps: int, delta: float) -> None:
    truth = Fraction(3, 4)
    floor = float(epsilon_floor({RandomisedAnswers(truth, 2): steps}, delta))
    gain = log(float(truth / (1 - truth)))
    losses = [(2 * k - steps) * gain for k in range(steps + 1)]
    masses = [comb(steps, k) * 0.75**k * 0.25 ** (steps - k) for k in range(steps + 1)]
    exact = sum(m * -expm1(min(floor - x, 0.0)) for x, m in zip(losses, masses, strict=True))
    assert floor == 0 or exact >= delta * (1 - 1e-12)
    assert floor > 0 or steps > 1


def test_it_tells_what_neither_a_contour_nor_a_grid_can() -> None:
    counts: dict[DominatingPair, int] = {missing(2.0**-17, 220.0): 138}
    found = PrivacyProfile.of_pairs(counts).epsilon(2.5e-30)
    assert 0 < found.relative_width < 1e-9
    grid = epsilon_by_pld(counts, 2.5e-30, cells=1 << 9)
    assert grid.lower < found.lower
    assert found.lower <= grid.upper


def test_it_says_nothing_of_unbounded_losses() -> None:
    shift: DominatingPair = GaussianShift(Fraction(1))
    assert (
        epsilon_floor({shift: 1}, 1e-5) == epsilon_floor({missing(0.1, 1): 1, shift: 1}, 1e-5) == 0
    )
