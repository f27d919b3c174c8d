"""The contour route in balls: rounding alone never makes an enclosure wide."""

from fractions import Fraction
from math import comb, expm1, log

import pytest
from flint import acb, arb

from dpledger.accounting.numbers.enclosure import Enclosure, precision
from dpledger.accounting.pld import contour_certified, moments_certified
from dpledger.accounting.pld.contour_certified import (
    CertifiedContour,
    delta_enclosure,
    epsilon_enclosure,
)
from dpledger.accounting.pld.distribution import epsilon_by_pld
from dpledger.accounting.pld.moments_certified import moments_on_line
from dpledger.accounting.pld.pairs import (
    DominatingPair,
    GaussianShift,
    Order,
    RandomisedAnswers,
    Sampled,
)
from dpledger.accounting.pld.placement import ContourTarget, Placement
from dpledger.accounting.pld.quadrature import Demand
from dpledger.accounting.pld.truncation import epsilon_by_truncation

BITS = 160
MOSTLY_TRUE = RandomisedAnswers(Fraction(3, 4), 2)


def delta_of_answers(steps: int, epsilon: float) -> float:
    """Return δ(ε) of `MOSTLY_TRUE`, `steps` times: a sum over the number of true answers."""
    mass = [comb(steps, k) * 3**k / 4**steps for k in range(steps + 1)]
    losses = [(2 * k - steps) * log(3) for k in range(steps + 1)]
    shares = (-expm1(min(epsilon - x, 0.0)) for x in losses)
    return float(sum(p * share for p, share in zip(mass, shares, strict=True)))


def test_phases_many_times_around_the_circle_stay_narrow() -> None:
    steps, epsilon = 400, 260.0
    near = ContourTarget(epsilon, log(delta_of_answers(steps, epsilon)))
    # each of very many nodes lies far around the circle from the last
    placement = Placement(grade=-8, step=1 / 50, count=1 << 14)
    with precision(BITS):
        found = CertifiedContour.of({MOSTLY_TRUE: steps}, placement, near).delta(epsilon)
    exact = delta_of_answers(steps, epsilon)
    assert found.lower_float <= exact <= found.upper_float
    assert found.relative_width < 1.0


def test_moments_far_up_the_line_stay_narrow() -> None:
    step, count = 0.7, 1 << 14
    with precision(BITS):
        last = moments_on_line(MOSTLY_TRUE, step, count, Demand(1.0, step * count, 40.0))[-1]
        z = acb(1, arb(step) * count)
        loss = z * arb(3).log()
        assert last.overlaps((3 * loss.exp() + (-loss).exp()) / 4)
        assert float(last.real.rad()) < 1e-35


def test_sums_that_nobody_waits_for_leave_the_bound_of_one_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = {Sampled(GaussianShift(Fraction(1)), Fraction(1, 10), Order.MIXTURE_FIRST): 100}
    narrow = epsilon_enclosure(counts, 1e-5), delta_enclosure(counts, 5.0)
    monkeypatch.setattr(moments_certified, "_MOST_TERMS", 1)
    contour_certified._powers.cache_clear()
    wide = epsilon_enclosure(counts, 1e-5), delta_enclosure(counts, 5.0)
    for small, large in zip(narrow, wide, strict=True):
        assert 0 == large.lower_float < small.lower_float
        assert small.relative_width < 1e-6
        assert small.upper_float <= large.upper_float < 10 * small.upper_float


def test_quadratures_are_finer_where_the_bound_of_one_moment_is_far_above_delta() -> None:
    # of losses that are met never or once the best moment's bound is e^28 times δ
    kinds = [(7e-6, 1 / 198, 8449), (0.27, 1 / 16_208, 78), (3e-4, 1 / 33_735, 699)]
    counts: dict[DominatingPair, int] = {
        Sampled(GaussianShift(Fraction(mu_squared)), Fraction(rate), Order.MIXTURE_FIRST): n
        for mu_squared, rate, n in kinds
    }
    found = epsilon_by_truncation(counts, 1e-25, Enclosure(arb(0), arb(1)), arb(0))
    grid = epsilon_by_pld(counts, 1e-25, cells=1 << 12)
    assert found.relative_width < 1e-5
    assert 0 < grid.lower_float <= found.lower_float
    assert found.upper_float <= grid.upper_float
