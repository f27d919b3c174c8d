"""The order at which the bound of one moment is best, and where the search for ε starts."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parameters import slow

from dpledger.accounting.pld.closed_form import closed_form
from dpledger.accounting.pld.pairs import LaplaceShift
from dpledger.accounting.pld.saddle import LOWEST_GRADE, _lowest

_LAST = 260


@given(
    lowest=st.integers(LOWEST_GRADE, _LAST),
    start=st.integers(LOWEST_GRADE, _LAST),
    flat=st.integers(0, 3),
    reach=st.integers(0, 600),
)
def test_the_lowest_place_of_a_quasi_convex_function_is_found(
    lowest: int, start: int, flat: int, reach: int
) -> None:
    """Falls to `lowest`, is flat for a while, rises, and is infinite from somewhere on."""
    asked: list[int] = []

    def height(place: int) -> float:
        asked.append(place)
        assert LOWEST_GRADE <= place <= _LAST
        if place > lowest + reach:
            return inf
        return float(max(lowest - place, place - lowest - flat, 0))

    assert _lowest(height, start) == lowest
    assert len(set(asked)) <= 45


@pytest.mark.parametrize("delta", [1e-2, 1e-9, *slow(1e-5, 1e-12)])
@pytest.mark.parametrize(("epsilon", "steps"), [(0.1, 50), (2.0, 3), *slow((0.5, 7), (0.01, 200))])
def test_a_bound_above_leads_to_the_same_root_as_a_bracket(
    epsilon: float, steps: int, delta: float
) -> None:
    """From wherever above the root one starts, and however steep one takes the curve for."""
    closed = closed_form({LaplaceShift(epsilon): steps}, delta)
    assert closed is not None
    plain = closed.epsilon(delta)
    for factor in (1.001, 1.2, 3.0):
        for order in (1e-3, 1.0, 5.0, 1e3):
            found = closed.epsilon(delta, factor * plain.upper_float, order)
            assert found.upper_float >= plain.lower_float
            assert found.lower_float <= plain.upper_float
            assert closed.delta(found.upper_float).upper <= delta
            assert closed.delta(found.lower_float).upper >= delta or found.lower_float == 0
            assert found.relative_width < 1e-10
