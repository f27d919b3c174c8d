"""How numbers are printed: a text that says less than what was proved would be a false claim."""

from math import inf

import pytest
from flint import arb

from dpledger.accounting.numbers.enclosure import Enclosure
from dpledger.audits.outcome import shown, shown_up


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.00000000001, 1.00000000001, "1.000000001"),
        (0.1, 0.1, "0.1"),
        (1.0, 1.0, "1"),
        (1.0, 1.5000000000001, "[1, 1.50000000001]"),
        (0.66666666666666, 0.7, "[0.666666666666, 0.7]"),
        (0.0, inf, "[0, inf]"),
        (inf, inf, "inf"),
    ],
)
def test_an_enclosure_is_printed_outward(low: float, high: float, text: str) -> None:
    assert shown(Enclosure(arb(low), arb(high))) == text


def test_a_delta_is_printed_as_it_was_given_or_larger() -> None:
    assert shown_up(1e-5) == "1e-05"
    assert shown_up(1.00001e-5, digits=3) == "1.01e-05"
