"""The contour route in doubles: reference values, and always an upper bound."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from flint import arb

from dpledger.accounting.pld import contour, routes
from dpledger.accounting.pld.contour import deltas_upper, epsilons_upper
from dpledger.accounting.pld.pairs import (
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Sampled,
)
from dpledger.accounting.pld.placement import Placement
from dpledger.accounting.pld.saddle import Counts, above_epsilons, epsilons_by_moments


def sampled(rate: float, multiplier: float, order: Order) -> Sampled:
    return Sampled(GaussianShift(1 / Fraction(multiplier) ** 2), Fraction(rate), order)


def epsilon_upper(counts: Counts, delta: float) -> float:
    return float(epsilons_upper(counts, np.array([delta]), np.zeros(1)).values[0])


def delta_upper(counts: Counts, epsilon: float) -> float:
    return float(deltas_upper(counts, np.array([epsilon]), np.zeros(1)).values[0])


def both(rate: float, multiplier: float, steps: int, delta: float) -> float:
    return max(
        epsilon_upper({sampled(rate, multiplier, order): steps}, delta)
        for order in (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)
    )


# twelve digits, found by an independent contour integration and confirmed on a grid
@pytest.mark.parametrize(
    ("rate", "multiplier", "steps", "delta", "expected"),
    [
        (0.01, 1.0, 1_000, 1e-5, 1.8282366665),
        (0.01, 1.0, 10_000, 1e-5, 6.1877123900),
        (0.01, 1.0, 100_000, 1e-5, 25.5731069865),
        (1e-3, 0.8, 1_000_000, 1e-7, 11.5857325355),
    ],
)
def test_reference_values_of_the_sampled_gaussian(
    rate: float, multiplier: float, steps: int, delta: float, expected: float
) -> None:
    assert both(rate, multiplier, steps, delta) == pytest.approx(expected, rel=1e-10)


def test_the_symmetrised_pair_costs_more_than_one_order_alone() -> None:
    base, rate, steps = GaussianShift(Fraction(1, 4)), Fraction(1, 8000), 20_000
    symmetrised = epsilon_upper({Sampled(base, rate, Order.SYMMETRISED): steps}, 1e-5)
    alone = epsilon_upper({Sampled(base, rate, Order.MIXTURE_FIRST): steps}, 1e-5)
    assert symmetrised == pytest.approx(0.0306, abs=5e-5)
    assert alone == pytest.approx(0.0256, abs=5e-5)


def test_a_snapshot_and_its_sampled_corrections() -> None:
    # 50 full gradients with noise 0.002 over 6838 records, 2450 corrections drawn at rate 0.01
    snapshot = GaussianShift(50 / (6838 * Fraction(2, 1000)) ** 2)
    corrections = Sampled(
        GaussianShift(Fraction(10, 12) ** 2), Fraction(1, 100), Order.MIXTURE_SECOND
    )
    found = epsilon_upper({snapshot: 1, corrections: 2450}, 1e-3)
    assert found == pytest.approx(2.045361657, rel=1e-9)


def test_one_gaussian() -> None:
    assert epsilon_upper({GaussianShift(Fraction(1)): 1}, 1e-5) == pytest.approx(
        4.3771780957, rel=1e-10
    )


@pytest.mark.parametrize(
    "pair",
    [
        sampled(0.5, 0.05, Order.MIXTURE_SECOND),
        sampled(1e-7, 0.05, Order.MIXTURE_FIRST),
        sampled(0.9, 1e6, Order.SYMMETRISED),
        LaplaceShift(Fraction(1, 10)),
        RandomisedAnswers(Fraction(3, 5), 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("steps", [1, 1000, 10**8])
@pytest.mark.parametrize("delta", [1e-2, 1e-30])
def test_extreme_parameters_give_a_number_below_the_bound_of_one_moment(
    pair: DominatingPair, steps: int, delta: float
) -> None:
    epsilon = epsilon_upper({pair: steps}, delta)
    log_deltas = np.array([log(delta)])
    (above,) = above_epsilons(*epsilons_by_moments({pair: steps}, log_deltas), log_deltas)
    assert 0 <= epsilon <= above * (1 + 1e-15)


def test_delta_and_epsilon_are_inverse() -> None:
    counts = {sampled(0.01, 1.0, Order.MIXTURE_FIRST): 500, GaussianShift(Fraction(1, 100)): 3}
    epsilon = epsilon_upper(counts, 1e-6)
    assert delta_upper(counts, epsilon) == pytest.approx(1e-6, rel=1e-9)


def test_a_line_whose_cut_off_takes_all_of_delta_is_not_made_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates, multipliers = np.linspace(0.001, 0.002, 10), np.linspace(0.75, 1.4, 10)
    counts: Counts = {
        sampled(float(q), float(z), Order.MIXTURE_FIRST): 1
        for q, z in zip(rates, multipliers, strict=True)
    }
    made: list[int] = []
    of = contour.Contour.of

    def counted(counts: Counts, placement: Placement, highest: float) -> contour.Contour:
        made.append(placement.count)
        return of(counts, placement, highest)

    monkeypatch.setattr(contour.Contour, "of", counted)
    deltas, least = np.array([1e-6]), np.zeros(1)
    values, shares = epsilons_upper(counts, deltas, least)
    with_all = len(made)
    fewer, doubted = epsilons_upper(counts, deltas, least, useful=1.0)
    assert len(made) - with_all < with_all
    # either is loose, and says so: another route is asked
    assert min(shares[0], doubted[0]) > 0.01
    assert fewer[0] >= values[0]
    enclosure = routes.epsilon(counts, 1e-6, arb(0))
    fast = float(routes.epsilons_upper(counts, deltas, least)[0])
    assert enclosure.lower <= fast <= float(enclosure.upper) * (1 + 1e-6)
