"""What one route leaves wide is divided: the cheapest kind of steps has a part of δ for itself."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest
from tests.parameters import slow

from dpledger.accounting.pld import PrivacyProfile, routes
from dpledger.accounting.pld.pairs import DominatingPair, GaussianShift, Order, Sampled

MANY = Sampled(GaussianShift(Fraction(1, 10**9)), Fraction(9, 10), Order.MIXTURE_FIRST)
SELDOM = Sampled(GaussianShift(Fraction(150)), Fraction(1, 10**8), Order.MIXTURE_FIRST)


@pytest.mark.parametrize("delta", [1e-4, *slow(2e-5)])
def test_steps_that_cost_less_than_delta_do_not_hide_what_the_others_cost(delta: float) -> None:
    counts: dict[DominatingPair, int] = {MANY: 4_000_000, SELDOM: 6}
    found = routes.epsilon(counts, delta)
    assert found.relative_width < 1e-3
    # without the few steps; and with them where every one of them is seen, six in a hundred million
    least = routes.epsilon({MANY: 4_000_000}, delta)
    most = routes.epsilon({MANY: 4_000_000}, delta - 6e-8)
    assert least.lower_float <= found.upper_float
    assert found.lower_float <= most.upper_float


def test_parts_never_answer_below_the_whole() -> None:
    # both are enclosed by a contour: narrow, and found otherwise
    mild = Sampled(GaussianShift(Fraction(1, 4)), Fraction(1, 100), Order.MIXTURE_FIRST)
    loud = Sampled(GaussianShift(Fraction(1)), Fraction(1, 10), Order.MIXTURE_FIRST)
    counts: dict[DominatingPair, int] = {mild: 10, loud: 100}
    whole = routes.epsilon(counts, 1e-6)
    nothing = routes.Enclosure(routes.arb(0), routes.arb(100))
    parts = routes._in_parts(nothing, counts, 1e-6, routes.arb(0))
    assert whole.relative_width < 1e-6
    assert 0 < parts.lower_float <= whole.lower_float
    assert whole.upper_float <= parts.upper_float < 1.1 * whole.upper_float


def test_a_wide_enclosure_is_worth_one_fine_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[float] = []
    narrowed = routes._narrowed

    def noted(found: routes.Enclosure, *rest: Any) -> routes.Enclosure:
        found = narrowed(found, *rest)
        widths.append(found.relative_width)
        return found

    monkeypatch.setattr(routes, "_narrowed", noted)
    monkeypatch.setattr(routes, "_LAST_RESORT", 1 << 16)
    # rare steps whose moments explode: contours, and grids that take a second, leave much open
    rare = Sampled(GaussianShift(Fraction(1)), Fraction(1, 10**6), Order.MIXTURE_FIRST)
    found = routes.epsilon({rare: 300}, 1e-10)
    assert [found.relative_width] == widths[1:]
    assert found.relative_width < widths[0] / 2
    assert widths[0] > 1e-3


@pytest.mark.parametrize(("width", "asked"), [(0.01, 2), (0.2, 1)])
def test_no_grid_follows_one_that_leaves_far_more_open_than_is_known(
    width: float, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four times the points sixteen times less is left open, at most."""
    sizes: list[int] = []

    def grids(counts: object, delta: float, waiting: Sequence[int]) -> Iterator[routes.Enclosure]:
        for size in waiting:
            sizes.append(size)
            yield routes.Enclosure(routes.arb(1), routes.arb(1 + width))

    monkeypatch.setattr(routes, "epsilons_by_pld", grids)
    known = routes.Enclosure(routes.arb(1), routes.arb(1.001))
    found = routes._narrowed(known, {MANY: 2}, 1e-5, routes.arb(0), (1 << 13, 1 << 15))
    assert found.relative_width == known.relative_width
    assert sizes == [1 << 13, 1 << 15][:asked]


@pytest.mark.parametrize("epsilon", [1e100, 1e154, 1e300, 1.7e308])
@pytest.mark.parametrize("times", [1, 1000])
def test_epsilons_beyond_all_reason_have_next_to_no_delta(times: int, epsilon: float) -> None:
    shift = GaussianShift(Fraction(1))
    for pair in (shift, *(Sampled(shift, Fraction(1, 100), order) for order in Order)):
        found = PrivacyProfile.of_pairs({pair: times})
        enclosed = found.delta(epsilon)
        assert 0 <= enclosed.lower_float <= found.delta_upper(epsilon) <= 1e-300
        assert enclosed.upper_float <= 1e-300
    # with next to no noise next to all of δ is left there
    found = PrivacyProfile.of_pairs({GaussianShift(Fraction(10) ** 200): times})
    assert found.delta(1e100).upper_float == found.delta_upper(1e100) == 1


@pytest.mark.parametrize("times", [(1, 1), (2, 3)])
def test_moments_that_are_next_to_nothing_cost_the_fast_grade_nothing(
    times: tuple[int, int],
) -> None:
    # at the last nodes of the contour rounding errs by more than the moments that are left
    shift = GaussianShift(Fraction(1, 12_800))
    orders = (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)
    counts: dict[DominatingPair, int] = {
        Sampled(shift, Fraction(0.1), o): n for o, n in zip(orders, times, strict=True)
    }
    found = PrivacyProfile.of_pairs(counts)
    enclosed = found.epsilon(1e-7)
    assert enclosed.lower_float <= found.epsilon_upper(1e-7) <= enclosed.upper_float * (1 + 1e-6)
