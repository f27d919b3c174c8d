"""Terms of a contour in doubles: within their own bounds of the same terms in balls."""

from fractions import Fraction
from math import isfinite, log

import numpy as np
import pytest
from flint import arb

from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.pld import contour_certified
from dpledger.accounting.pld.contour_certified import (
    CertifiedContour,
    CertifiedTerms,
    epsilon_enclosure,
)
from dpledger.accounting.pld.contour_rounded import Powers, RoundedTerms
from dpledger.accounting.pld.pairs import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    RevealedSample,
    Sampled,
)
from dpledger.accounting.pld.placement import ContourTarget, Limits, Placement

GAUSSIAN, LAPLACE = GaussianShift(Fraction(1)), LaplaceShift(Fraction(1, 2))
RATE, FEW = Fraction(1, 100), 300
PAIRS: list[tuple[DominatingPair, int]] = [
    *((Sampled(base, RATE, order), FEW) for base in (GAUSSIAN, LAPLACE) for order in Order),
    (Sampled(GAUSSIAN, RATE, Order.MIXTURE_FIRST, 4.0), FEW),
    (Sampled(GaussianShift(Fraction(1, 10**6)), Fraction(1, 10), Order.MIXTURE_FIRST), 10**8),
    (GaussianShift(Fraction(1, 50)), 7),
    (LAPLACE, 3),
    (RevealedSample(GaussianShift(Fraction(9)), RATE), 5),
    (RandomisedAnswers(Fraction(11, 20), 3), 40),
    (DiscreteGaussianShift(Fraction(30)), 9),
    (DiscreteLaplaceShift(Fraction(1, 3), 2), 4),
]
PLACEMENT = Placement(grade=0, step=1 / 8, count=400)
EPSILONS = (0.0, 0.7, 9.0)


@pytest.mark.parametrize(("pair", "times"), PAIRS, ids=str)
def test_sums_of_doubles_are_those_of_balls(pair: DominatingPair, times: int) -> None:
    # with noise, so that terms fall
    counts = {pair: times, GaussianShift(Fraction(1, 100)): 1}
    with precision(160):
        demand = PLACEMENT.demand(counts, 20.0)
        doubles = RoundedTerms.of(counts, PLACEMENT, demand)
        balls = CertifiedTerms.of(counts, PLACEMENT, demand)
        scale = doubles.log_first.exp()
        for epsilon in EPSILONS:
            near, exact = doubles.turned_by(epsilon), balls.turned_by(epsilon)
            assert near.overlaps(exact)
            assert float(near.rad() / scale) < 1e-9 + 1e-14 * times
            off = abs(near.mid() - exact.mid()) / scale
            assert float(off.upper()) <= doubles.error(epsilon) + float(exact.rad() / scale)


def test_an_error_of_one_moment_counts_once_for_each_step() -> None:
    times = 10**6
    powers = Powers.near_one(times, arb(1), np.array([1e-7j]), np.array([1e-9]))
    moved = Powers.near_one(times, arb(1), np.array([1e-7j + 1e-9]), np.array([0.0]))
    difference = abs(complex(moved.modulus[0] - powers.modulus[0], moved.angle[0] - 0.1))
    assert difference == pytest.approx(1e-3, rel=1e-3)
    assert powers.off[0] == pytest.approx(1e-3, rel=1e-3)


def test_a_moment_that_vanishes_is_as_large_as_its_error() -> None:
    powers = Powers.near_one(3, arb(1), np.array([-1.0 + 0j]), np.array([1e-3]))
    assert np.exp(powers.highest[0]) == pytest.approx(1e-9)
    assert powers.off[0] == pytest.approx(3.0)
    exact = Powers.near_one(3, arb(1), np.array([-1.0 + 0j]), np.zeros(1))
    assert 0 < np.exp(exact.highest[0]) < 1e-39
    assert isfinite(exact.modulus[0])


def test_terms_that_are_no_numbers_have_an_infinite_bound() -> None:
    counts: dict[DominatingPair, int] = {Sampled(GAUSSIAN, RATE, Order.MIXTURE_FIRST): 10**25}
    with precision(160):
        found = RoundedTerms.of(counts, PLACEMENT, PLACEMENT.demand(counts, 20.0))
        assert not isfinite(float(found.turned_by(1.0).rad()))


def test_doubles_enclose_what_balls_do(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: dict[DominatingPair, int] = {
        Sampled(GaussianShift(Fraction(1, k)), RATE, Order.MIXTURE_FIRST): 500 for k in (1, 2)
    }
    found = []
    for longest in (0, 1 << 20):
        monkeypatch.setattr(contour_certified, "_LONG", longest)
        found.append(epsilon_enclosure(counts, 1e-6))
    doubles, balls = found
    assert doubles.lower <= balls.lower <= balls.upper <= doubles.upper
    assert balls.relative_width < doubles.relative_width < 1e-8


def test_doubles_that_lose_too_much_make_way_for_balls() -> None:
    counts: dict[DominatingPair, int] = {Sampled(GAUSSIAN, RATE, Order.MIXTURE_FIRST): FEW}
    placement, near = Placement(grade=0, step=1 / 8, count=2000), ContourTarget(1.0, log(1e-5))
    limits = Limits(1 << 14, 1 << 20, 1e-7)
    for lost in (1e-7, 1e-30):
        with precision(160):
            found = CertifiedContour.of(counts, placement, near, limits._replace(lost=lost))
        assert isinstance(found.terms, RoundedTerms) == (lost == 1e-7)
