"""Limits of parameters, and the least noise for a whole run."""

from dataclasses import dataclass

import pytest

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.audits.claims.settings import multiplier_of, require_ranges
from dpledger.mechanisms import InvalidParameter


@dataclass(frozen=True)
class Given:
    rounds: int = 3
    penalty: float = 0.5
    delta: float = 0.1
    weight: float = 0.0


def required(given: Given) -> None:
    require_ranges(
        given, counts={"rounds": 3}, sizes=("penalty",), nonnegative=("weight",), decades=1
    )


def test_what_is_in_range_passes() -> None:
    required(Given())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Given(rounds=0), "rounds=0"),
        (Given(rounds=4), r"rounds=4 must be in \[1, 3\]"),
        (Given(penalty=0.0), "penalty"),
        (Given(penalty=20.0), r"penalty=20.0 must be in \[1e-1, 1e1\]"),
        (Given(penalty=float("inf")), "penalty"),
        (Given(delta=0.0), "delta"),
        (Given(delta=1.0), "delta"),
        (Given(weight=-1.0), "weight"),
    ],
)
def test_what_is_not_is_refused_by_name(given: Given, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        required(given)


@pytest.mark.parametrize(("epsilon", "delta", "cost"), [(0.5, 1e-3, 2500), (8.0, 1e-6, 3.7)])
def test_a_run_with_this_noise_costs_just_epsilon(
    epsilon: float, delta: float, cost: float
) -> None:
    multiplier = multiplier_of(cost, epsilon=epsilon, delta=delta)
    found = epsilon_from_delta(mu_squared=cost / multiplier**2, delta=delta).upper_float
    assert found == pytest.approx(epsilon, rel=1e-12)
    less = epsilon_from_delta(mu_squared=cost / (0.999 * multiplier) ** 2, delta=delta)
    assert less.lower_float > epsilon
