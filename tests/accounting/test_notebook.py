"""Law: what a result shows of itself is never better than the result."""

import re
from fractions import Fraction
from xml.etree import ElementTree

import mpmath
import pytest

import dpledger as dp
from dpledger.accounting.hypothesis_testing import most_true_positives

RUN = {"steps": 100, "sampling": "none", "adjacency": "replace-one"}


@pytest.mark.parametrize("noise", [0.3, 2.0, 7.123456789012345, 37.3, 1e4])
def test_a_printed_epsilon_is_not_below_the_proved_one(noise: float) -> None:
    cost = dp.epsilon(noise_multiplier=noise, delta=1e-5, **RUN)
    for shown in (repr(cost), str(cost), repr(cost.guarantee)):
        printed = re.match(r"ε ≤ (\S+) at δ = (\S+)", shown)
        assert printed is not None
        assert Fraction(printed[1]) >= Fraction(repr(cost.epsilon))
        assert len(shown) < 250
    assert f"noise multiplier {noise!r};" in repr(cost)
    right = re.search(r"right at most (\S+)% of", cost.meaning)
    assert right is not None
    odds = mpmath.exp(cost.epsilon)
    assert mpmath.mpf(right[1]) / 100 >= min(1, (odds + cost.delta) / (odds + 1)) - mpmath.mpf(
        "1e-30"
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 8.0, 800.0])
@pytest.mark.parametrize("rate", [0.0, 1e-3, 0.4, 1.0])
def test_quoted_hits_are_the_most_that_the_theorem_allows(epsilon: float, rate: float) -> None:
    delta = 1e-5
    # at every threshold: TPR <= e^eps FPR + delta, and 1 - FPR <= e^eps (1 - TPR) + delta
    odds = mpmath.exp(epsilon)
    most = min(1, odds * rate + delta, 1 - (1 - delta - rate) / odds)
    assert most <= most_true_positives(rate, epsilon, delta) <= min(1.0, float(most) + 1e-11)


def test_a_notebook_shows_the_number_its_meaning_and_its_curve() -> None:
    cost = dp.epsilon(noise_multiplier=30, delta=1e-5, **RUN)
    page = ElementTree.fromstring(f"<div>{cost._repr_html_().replace('scope=row', '')}</div>")
    words = "".join(page.itertext())
    assert str(cost) in words
    assert cost.meaning in words
    (line,) = page.findall(".//polyline")
    places = [tuple(map(float, each.split(","))) for each in line.get("points", "").split()]
    # epsilon falls as delta grows: the line goes one way
    assert len(places) >= 10
    assert places == sorted(places)
    # an infinite epsilon has no curve, and says so
    none = dp.epsilon(noise_multiplier=0, delta=1e-5, **RUN)
    assert "polyline" not in none._repr_html_()
    assert "no protection" in none._repr_html_()
