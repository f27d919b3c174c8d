"""An enclosure contains its number, rounds outward, and decides only what its width allows."""

import math
import operator
import pickle
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dpledger.accounting.numbers.enclosure import (
    Enclosure,
    TooWide,
    ball_of,
    precision,
    shown_in_full,
)
from dpledger.mechanisms.errors import InvalidParameter

NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.fractions(),
)
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def interval(low: Fraction | int, high: Fraction | int) -> Enclosure:
    return Enclosure(Enclosure.of(low).lower, Enclosure.of(high).upper)


@given(NUMBERS)
def test_the_float_ends_surround_the_exact_number(number: int | float | Fraction) -> None:
    enclosure = Enclosure.of(number)
    assert Fraction(enclosure.lower_float) <= Fraction(number) <= Fraction(enclosure.upper_float)
    assert enclosure.contains(number) or not enclosure.is_point


@given(st.fractions(Fraction(-(10**20)), Fraction(10**20)))
def test_the_float_ends_are_neighbours(number: Fraction) -> None:
    enclosure = Enclosure.of(number)
    assert enclosure.upper_float in (
        enclosure.lower_float,
        math.nextafter(enclosure.lower_float, math.inf),
    )


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        (Fraction(1, 10**400), 0.0, 5e-324),
        (Fraction(-1, 10**400), -5e-324, 0.0),
        (Fraction(10**400), 1.7976931348623157e308, math.inf),
        (Fraction(3, 2**1075), 5e-324, 1e-323),
        (math.inf, math.inf, math.inf),
        (2**53 + 1, 2.0**53, 2.0**53 + 2),
    ],
)
def test_rounding_is_outward_at_the_edges_of_the_float_range(
    number: int | float | Fraction, low: float, high: float
) -> None:
    enclosure = Enclosure.of(number)
    assert (enclosure.lower_float, enclosure.upper_float) == (low, high)


@example(2**200 + 1)
@given(NUMBERS)
def test_a_dyadic_number_is_a_point_whatever_the_precision(number: int | float | Fraction) -> None:
    dyadic = Fraction(number).denominator.bit_count() == 1
    with precision(2):
        enclosure = Enclosure.of(number)
        assert enclosure.is_point or not isinstance(number, int | float)
        assert not enclosure.is_point or dyadic
        assert enclosure.relative_width < 2.0**-120


@given(NUMBERS, NUMBERS)
def test_points_compare_as_their_numbers(
    left: int | float | Fraction, right: int | float | Fraction
) -> None:
    for compare in COMPARISONS:
        try:
            answer = compare(Enclosure.of(left), right)
        except TooWide:
            assert not (Enclosure.of(left).is_point and Enclosure.of(right).is_point)
        else:
            assert answer is compare(Fraction(left), Fraction(right))


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("other", [interval(1, 2), interval(2, 3), interval(0, 5), 1.5])
def test_overlapping_enclosures_are_undecided_never_false(
    compare: Callable[[object, object], bool], other: object
) -> None:
    if compare is operator.le and isinstance(other, Enclosure) and other.lower == 2:
        assert interval(1, 2) <= other
    elif compare is operator.gt and isinstance(other, Enclosure) and other.lower == 2:
        assert not interval(1, 2) > other
    else:
        with pytest.raises(TooWide):
            compare(interval(1, 2), other)


def test_an_enclosure_is_neither_a_truth_value_nor_a_float_nor_a_key() -> None:
    enclosure = Enclosure.of(1)
    for misuse in (bool, float, hash):
        with pytest.raises(TypeError):
            misuse(enclosure)


def test_an_enclosure_differs_from_what_is_no_number() -> None:
    assert Enclosure.of(1) != "1"


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(arb(2), arb(1)), (arb(0), arb("nan")), (arb("nan"), arb(0)), (arb(1, 0.5), arb(3))],
)
def test_ends_are_exact_and_in_order(lower: arb, upper: arb) -> None:
    with pytest.raises(InvalidParameter):
        Enclosure(lower, upper)


def test_nan_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="nan"):
        Enclosure.of(math.nan)


@given(st.fractions(), st.integers(2, 300))
def test_balls_and_enclosures_contain_each_other_at_any_precision(
    number: Fraction, bits: int
) -> None:
    enclosure = Enclosure.of(number)
    with precision(bits):
        ball = ball_of(enclosure)
        assert ball.contains(enclosure.lower)
        assert ball.contains(enclosure.upper)
        assert Enclosure.from_ball(ball).contains(enclosure)


def test_the_hull_contains_both() -> None:
    hull = Enclosure.hull(interval(3, 4), interval(-1, 2))
    assert (hull.lower_float, hull.upper_float) == (-1.0, 4.0)


def test_relative_width_is_measured_at_the_end_nearer_to_zero() -> None:
    assert interval(2, 3).relative_width == 0.5
    assert interval(-3, -2).relative_width == 0.5
    assert interval(-1, 1).relative_width == math.inf
    assert interval(0, 0).relative_width == 0.0


@pytest.mark.parametrize("number", [Fraction(1, 3), 0, -2.5, math.inf, Fraction(7, 10**500)])
def test_pickling_keeps_both_ends(number: int | float | Fraction) -> None:
    enclosure = Enclosure.of(number)
    restored = pickle.loads(pickle.dumps(enclosure))
    assert restored.lower == enclosure.lower
    assert restored.upper == enclosure.upper


def test_precision_is_restored_after_an_error() -> None:
    before = ctx.prec
    with pytest.raises(ZeroDivisionError), precision(999):
        1 / (ctx.prec - 999)
    assert ctx.prec == before
    with precision(before + 1):
        assert ctx.prec == before + 1


def test_printing_shows_floats_rounded_outward() -> None:
    assert str(Enclosure.of(0.1)) == "0.1"
    assert str(Enclosure.of(Fraction(1, 10))) == "[0.09999999999999999, 0.1]"
    assert repr(interval(1, 2)) == "Enclosure([1.0, 2.0])"


@given(st.floats(min_value=0, max_value=1, allow_nan=False))
@example(1.0000004e-5)
@example(5e-324)
def test_a_delta_is_read_back_as_it_was_shown(delta: float) -> None:
    assert float(shown_in_full(delta)) == delta


def test_a_short_delta_is_shown_short() -> None:
    assert [shown_in_full(each) for each in (0, 1e-5, Fraction(1, 2))] == ["0", "1e-05", "0.5"]


@given(st.fractions(min_value=0, max_value=1, max_denominator=10**30))
@example(Fraction(1, 3))
@example(Fraction(1, 10**6))
def test_a_delta_that_is_no_double_is_shown_by_a_decimal_not_below_it(delta: Fraction) -> None:
    assume(Fraction(float(delta)) != delta)  # a double is shown as what is read as it
    shown = shown_in_full(delta)
    assert delta <= Fraction(shown) <= delta * (1 + Fraction(1, 2**51))
    assert len(shown) <= len(repr(float(shown)))


def test_a_delta_that_is_a_short_decimal_is_shown_as_that() -> None:
    # their doubles are above the one and below the other
    assert [shown_in_full(Fraction(1, 10**n)) for n in (5, 6)] == ["1e-05", "1e-06"]
    assert shown_in_full(Fraction(1e-5)) == "1e-05"  # a double: the exact one is above its decimal
