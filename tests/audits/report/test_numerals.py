"""Laws of printed numbers: a printed bound is a bound."""

import doctest
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpledger.audits.report import numerals
from dpledger.audits.report.numerals import (
    power_of_ten,
    printed,
    printed_interval,
    printed_percent_up,
)
from dpledger.audits.report.record import Direction, Interval

FINITE = st.floats(allow_nan=False, allow_infinity=False)
DIGITS = st.integers(1, 17)


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(numerals).failed == 0


@given(FINITE, DIGITS)
def test_printing_rounds_in_the_direction_asked_for(value, digits):
    exact = Decimal(repr(value))
    assert Decimal(printed(value, rounding=Direction.UP, digits=digits)) >= exact
    assert Decimal(printed(value, rounding=Direction.DOWN, digits=digits)) <= exact


@given(FINITE)
def test_seventeen_digits_name_the_number(value):
    assert float(printed(value, digits=17)) == value


@given(FINITE, FINITE, DIGITS)
def test_a_printed_interval_holds_the_interval(first, second, digits):
    low, high = sorted((first, second))
    ends = printed_interval(Interval(lower=low, upper=high), digits=digits).split(" to ")
    assert Decimal(ends[0]) <= Decimal(repr(low))
    assert Decimal(ends[-1]) >= Decimal(repr(high))


@given(st.floats(0, 1))
def test_a_rate_in_per_cent_is_rounded_up(rate):
    text = printed_percent_up(rate)
    assert text.endswith(" %")
    assert Decimal(rate) <= Decimal(text[:-2]) / 100 <= Decimal(rate) + Decimal("0.001")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-300, "1e-300"), (2.5e20, "2.5e20"), (123456.0, "123456"), (-0.5, "-0.5")],
)
def test_plain_and_scientific(value, text):
    assert printed(value) == text


def test_powers_of_ten():
    assert [power_of_ten(k) for k in (-10, 0, 3)] == ["10⁻¹⁰", "1", "10³"]
