"""Lattices above and below single losses, and what they give for few steps and small rates.

The oracle for two steps shares nothing with the code: one step's closed profile in doubles,
integrated over the other step's outcome by Gauss-Legendre on panels that crowd where it bends.
"""

from fractions import Fraction
from itertools import pairwise
from math import exp, expm1, inf, log1p, pi, sqrt
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpz_poly
from scipy.special import ndtr
from tests.parameters import quick

from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.pld import PrivacyProfile, distribution
from dpledger.accounting.pld.discretisation import Masses, MassRounding
from dpledger.accounting.pld.distribution import (
    LossDistribution,
    compose,
    epsilon_by_pld,
    epsilons_by_pld,
)
from dpledger.accounting.pld.pairs import (
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Sampled,
)
from dpledger.accounting.pld.profiles import delta_of

GAUSSIAN, LAPLACE = GaussianShift(Fraction(4)), LaplaceShift(Fraction(3, 2))
PAIRS: list[DominatingPair] = [
    GAUSSIAN,
    LAPLACE,
    *(Sampled(GAUSSIAN, Fraction(1, k), order) for k in (10, 10_000) for order in Order),
    *(Sampled(LAPLACE, Fraction(1, 10), order) for order in Order),
    *(Sampled(GaussianShift(Fraction(256)), Fraction(1, 10**6), order) for order in Order),
    RandomisedAnswers(Fraction(1, 2), 4),
    DiscreteLaplaceShift(Fraction(1, 3), 3),
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("delta", [1e-2, 1e-7])
def test_the_truth_lies_between_the_two_lattices_at_every_epsilon(
    pair: DominatingPair, delta: float
) -> None:
    above, below = (
        compose({pair: 1}, delta=delta, cells=1 << 9, rounding=rounding)
        for rounding in (MassRounding.PESSIMISTIC, MassRounding.OPTIMISTIC)
    )
    with precision(160):
        for k in range(0, 60, 3):
            epsilon = arb(above.step * k * 4)
            true = delta_of(pair, epsilon)
            assert below.delta(epsilon).lower() <= true.upper()
            assert true.lower() <= above.delta(epsilon).upper()
            if delta < true < 10 * delta:
                assert below.delta(epsilon) > 0.97 * true
                assert above.delta(epsilon) < 1.03 * true


def one_step(x: float, rate: float, mu: float, order: Order) -> float:
    """Return the profile of one sampled Gaussian step at x, of either sign."""
    first = order is Order.MIXTURE_FIRST
    odds = expm1(x if first else -x) / rate
    if odds <= -1:
        return -expm1(x) if first else 0.0
    v = log1p(odds)
    if first:
        without = float(ndtr(-(v / mu + mu / 2)))
        return float((1 - rate) * without + rate * ndtr(-(v / mu - mu / 2)) - exp(x) * without)
    without = float(ndtr(v / mu + mu / 2))
    return float(without - exp(x) * ((1 - rate) * without + rate * ndtr(v / mu - mu / 2)))


def two_steps(epsilon: float, rate: float, mu: float, order: Order) -> float:
    """Return δ(ε) of two sampled Gaussian steps, to about 1e-10 relatively."""
    first = order is Order.MIXTURE_FIRST

    def term(u: float) -> float:
        density = exp(-u * u / 2)
        loss = log1p(rate * expm1(mu * u - mu * mu / 2))
        if first:
            density = (1 - rate) * density + rate * exp(-((u - mu) ** 2) / 2)
        rest = one_step(epsilon - (loss if first else -loss), rate, mu, order)
        return density / sqrt(2 * pi) * rest

    cuts = set(np.linspace(-14, 14 + mu, 60).tolist())
    for bend in rate * np.concatenate([-np.geomspace(1e-3, 1e3, 40), [0], np.geomspace(1e-3, 1e3)]):
        odds = expm1((epsilon + bend) if first else -(epsilon + bend)) / rate
        if odds > -1 and -14 < (u := (log1p(odds) + mu * mu / 2) / mu) < 14 + mu:
            cuts.add(u)
    x, w = np.polynomial.legendre.leggauss(12)
    parts = [
        (b - a) / 2 * float(w @ [term((a + b) / 2 + (b - a) / 2 * t) for t in x])
        for a, b in pairwise(sorted(cuts))
    ]
    return float(sum(parts))


@pytest.mark.parametrize(
    ("rate", "mu", "delta", "width"),
    [
        (1e-2, 1.0, 1e-4, 2e-4),
        (1e-4, 1.0, 1e-6, 1e-3),
        pytest.param(1e-6, 0.25, 1e-8, 1e-4, marks=pytest.mark.slow),
        pytest.param(1e-6, 2.0, 1e-8, 0.3, marks=pytest.mark.slow),
        pytest.param(0.3, 2.0, 1e-6, 1e-4, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("order", [Order.MIXTURE_FIRST, Order.MIXTURE_SECOND])
def test_two_sampled_steps_are_enclosed_narrowly(
    rate: float, mu: float, delta: float, width: float, order: Order
) -> None:
    counts: dict[DominatingPair, int] = {
        Sampled(GaussianShift(Fraction(mu) ** 2), Fraction(rate), order): 2
    }
    found = epsilon_by_pld(counts, delta, cells=1 << 13)
    assert found.relative_width < width
    assert two_steps(found.lower_float, rate, mu, order) >= delta * (1 - 1e-8)
    assert two_steps(found.upper_float, rate, mu, order) <= delta * (1 + 1e-8)


def test_a_lattice_is_composed_once_however_many_cells_it_may_have() -> None:
    step = Sampled(GaussianShift(Fraction(1, 100)), Fraction(1, 10), Order.MIXTURE_FIRST)
    once, *others = epsilons_by_pld({step: 2}, 1e-30, (1 << 14, 1 << 17))
    assert not others
    assert once.relative_width < 1e-3


def test_steps_that_hardly_ever_meet_the_record_lose_next_to_nothing() -> None:
    # all of the loss but a part in 10^5 lies in one cell: lowered by a hair, 1,600 hairs add up
    seldom = Sampled(GaussianShift(Fraction(254)), Fraction(1, 500_000), Order.MIXTURE_FIRST)
    found = epsilon_by_pld({seldom: 1608}, 1e-10, cells=1 << 14)
    assert found.relative_width < 1e-3


def both(rate: float, multiplier: float, steps: int) -> PrivacyProfile:
    base = GaussianShift(1 / Fraction(multiplier) ** 2)
    orders: list[dict[DominatingPair, int]] = [
        {Sampled(base, Fraction(rate), order): steps}
        for order in (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)
    ]
    return PrivacyProfile.of_pairs(*orders)


@pytest.mark.parametrize("delta", [1e-5, 1e-8])
def test_small_rates_over_many_steps_are_enclosed_narrowly(delta: float) -> None:
    # the saddle lies beside orders at which the moments explode
    profile = both(1e-4, 1.0, 100_000)
    found = profile.epsilon(delta)
    assert found.relative_width < 1e-6
    assert found.lower_float <= profile.epsilon_upper(delta) <= found.upper_float * (1 + 1e-6)
    assert profile.delta(found.upper_float).lower_float <= delta
    assert profile.delta(found.lower_float).upper_float >= delta


@pytest.mark.parametrize("order", list(Order))
def test_the_least_delta_needs_no_more_digits_than_its_tails_have(order: Order) -> None:
    pair, delta = Sampled(GaussianShift(Fraction(1)), Fraction(1, 10), order), 1e-300
    found = epsilon_by_pld({pair: 1}, delta, cells=1 << 9)
    if order is not Order.MIXTURE_SECOND:
        assert found.relative_width < 0.01
    with precision(2500):
        # the closed profile of one step, where the balls of its tails have all of their digits
        assert delta_of(pair, found.lower) >= delta
        assert delta_of(pair, found.upper) <= delta


def test_few_steps_of_a_tiny_rate_have_an_epsilon_of_its_size() -> None:
    # about four times what one step costs: its profile at δ / 4 and ε is δ / 4 at least
    found = both(1e-6, 1.0, 4).epsilon(1e-8)
    one = both(1e-6, 1.0, 1)
    assert found.relative_width < 1e-3
    assert one.epsilon(1e-8).upper_float < found.lower_float < one.epsilon(1e-9).lower_float


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_above_the_total_variation_there_is_no_cost_at_all(steps: int) -> None:
    profile = both(1e-7, 0.5, steps)
    above = float(steps * 1e-7 * 0.6827)
    found = profile.epsilon(above)
    assert found.upper_float == found.lower_float == profile.epsilon_upper(above) == 0.0
    below, none = profile.epsilons_upper([above / 2, above])
    assert below > none == 0.0


def test_losses_that_reach_far_down_make_no_endless_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    # losses of -17 of the noise beside gains that are hardly above zero: ten times the cells
    pair = Sampled(LaplaceShift(Fraction(17)), Fraction(2.5e-8), Order.MIXTURE_SECOND)
    cells, delta = 1 << 11, 1e-29
    short = epsilon_by_pld({pair: 800}, delta, cells=cells)
    lists = [compose({pair: 800}, delta=delta, cells=cells, rounding=r) for r in MassRounding]
    assert all(len(each.masses) < 2 * cells for each in lists)
    trimmed = LossDistribution.trimmed
    monkeypatch.setattr(
        LossDistribution, "trimmed", lambda self, negligible, _: trimmed(self, negligible)
    )
    long = epsilon_by_pld({pair: 800}, delta, cells=cells)
    assert len(
        compose({pair: 800}, delta=delta, cells=cells, rounding=lists[0].rounding).masses
    ) > (4 * cells)
    # whatever is left out below, neither end moves
    assert short.upper_float == pytest.approx(long.upper_float, rel=1e-9)
    assert short.lower_float == pytest.approx(long.lower_float, rel=1e-9)


@pytest.mark.parametrize("rounding", MassRounding)
def test_low_losses_are_moved_up_or_left_out_and_never_the_other_way(
    rounding: MassRounding,
) -> None:
    masses = fmpz_poly([1 << 20, 3 << 18, 5 << 15, 1 << 14, 7 << 10, 3 << 8])
    whole = LossDistribution(masses, -3, 0.5, Fraction(1, 7), 9, 24, rounding)
    for lowest in [Fraction(-9), Fraction(-1, 2), Fraction(1, 4), Fraction(1, 2), Fraction(40)]:
        cut = whole.trimmed(0, lowest)
        # with another loss on top, so that low ones count again
        twice, half = whole.compose(whole, 0), cut.compose(whole, 0, lowest)
        for old, new in [(whole, cut), (twice, half)]:
            for epsilon in [0.0, 0.25, 1.0, 2.5]:
                before, after = old.delta(arb(epsilon)), new.delta(arb(epsilon))
                if rounding is MassRounding.PESSIMISTIC:
                    assert after >= before or after.overlaps(before)
                else:
                    assert after <= before or after.overlaps(before)


def test_where_nothing_is_left_nothing_is_cut_off() -> None:
    none = LossDistribution(fmpz_poly([]), -7, 0.5, Fraction(0), 0, 24, MassRounding.OPTIMISTIC)
    assert none.trimmed(0, Fraction(40)).masses == fmpz_poly([])
    assert none.compose(none, 0, Fraction(40)).delta(arb(0)) == 0


@pytest.mark.parametrize("order", quick((Order.MIXTURE_FIRST,), Order))
def test_single_steps_of_dear_lattices_have_fewer_points_and_say_the_same(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    rare = Sampled(GaussianShift(Fraction(2)), Fraction(1, 10**7), order)
    points: list[int] = []
    one = distribution.discretise

    def counted(*args: Any, **kwargs: Any) -> Masses:
        found = one(*args, **kwargs)
        points.append(sum(mass > 0 for mass in found.masses.coeffs()))
        return found

    monkeypatch.setattr(distribution, "discretise", counted)
    ends, most = [], []
    for dear in (inf, 0):
        monkeypatch.setattr(distribution, "_DEAR", dear)
        found = epsilon_by_pld({rare: 1 << 13}, 1e-9, cells=1 << 14)
        ends.append((found.lower_float, found.upper_float))
        most.append(max(points[-2:]))
    assert ends[1] == pytest.approx(ends[0], rel=1e-7)
    assert 0 < ends[1][0] <= ends[0][1]
    assert ends[0][0] <= ends[1][1]
    assert most[1] < 0.9 * most[0]
