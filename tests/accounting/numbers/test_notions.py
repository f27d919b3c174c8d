"""Notions hold exact numbers in range."""

import math
from fractions import Fraction
from functools import partial

import pytest

from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from dpledger.mechanisms.errors import InvalidParameter


@pytest.mark.parametrize(
    "build", [Zcdp, Gdp, partial(Rdp, 2), partial(ApproxDp, delta=0.1)], ids=lambda b: str(b)
)
@pytest.mark.parametrize("value", [math.nan, -1, -1e-300, True, "1", None])
def test_what_is_no_number_in_range_is_an_error_naming_it(build, value) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidParameter, match=r"\w+=.* must be in \[0, inf\]\.") as caught:
        build(value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("order", [1, 0.5, -2, math.nan, 1.0])
def test_an_order_is_above_one(order: float) -> None:
    with pytest.raises(InvalidParameter, match=r"order=.* must be in \(1, inf\]\."):
        Rdp(order, 1)


@pytest.mark.parametrize("delta", [-1e-9, 1.5, math.nan, math.inf])
def test_delta_is_a_probability(delta: float) -> None:
    with pytest.raises(InvalidParameter, match=r"delta=.* must be in \[0, 1\]\."):
        ApproxDp(1, delta)


def test_a_float_is_its_exact_dyadic_rational() -> None:
    assert Zcdp(0.1).rho == Fraction(3602879701896397, 2**55)
    assert Zcdp(0.1) != Zcdp(Fraction(1, 10))
    assert hash(Gdp(0.5)) == hash(Gdp(Fraction(1, 2)))


def test_infinity_is_no_protection_and_zero_is_no_dependence() -> None:
    assert Gdp(math.inf).mu_squared == math.inf
    assert Zcdp(0).rho == 0
    assert ApproxDp(math.inf, 0).epsilon == math.inf


def test_notions_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Zcdp(1).rho = Fraction(2)  # type: ignore[misc]
