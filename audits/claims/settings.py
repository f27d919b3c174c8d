"""What the settings of papers share: limits that keep the court quick, and a whole run's noise."""

from collections.abc import Mapping
from typing import Any

from ...accounting.gaussian.exact import mu_from_epsilon_delta
from ...accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision
from ...mechanisms.errors import InvalidParameter, Number, require_positive, require_positive_int
from .claim import Setting


def stated_epsilon(setting: Any) -> Enclosure:
    """Return the epsilon among a paper's parameters: what most claims promise."""
    return Enclosure.of(setting.epsilon)


def stated_delta(setting: Any) -> float:
    """Return the delta among a paper's parameters: at which most claims promise it."""
    return float(setting.delta)


def require_counts(setting: Setting, most: Mapping[str, int]) -> None:
    """Raise `InvalidParameter` unless each of these parameters is a whole number in [1, most].

    Args:
        setting: a paper's parameters.
        most: by name, the largest number that the court looks at.
    """
    for name, limit in most.items():
        value = getattr(setting, name)
        require_positive_int(name, value)
        if value > limit:
            raise InvalidParameter(name, value, f"in [1, {limit}]")


def require_sizes(setting: Setting, *names: str, decades: int = 9) -> None:
    """Raise `InvalidParameter` unless these are positive and within so many decades of 1.

    Args:
        setting: a paper's parameters.
        names: of those that are sizes.
        decades: how many powers of ten they may lie from 1.
    """
    for name in names:
        value = getattr(setting, name)
        require_positive(name, value)
        if not 10.0**-decades <= value <= 10.0**decades:
            raise InvalidParameter(name, value, f"in [1e-{decades}, 1e{decades}]")


def multiplier_of(cost: Number, *, epsilon: float, delta: float) -> float:
    """Return sqrt(cost)/mu for the mu that is just (epsilon, delta)-DP, rounded up.

    Args:
        cost: sum over releases of (noise of the first / noise of this one)²: their number, where
            all have the same noise in units of their sensitivity.
        epsilon, delta: of the whole run.
    """
    mu = mu_from_epsilon_delta(epsilon=epsilon, delta=delta)
    with precision(BITS):
        return Enclosure.from_ball(ball_of(cost).sqrt() / ball_of(mu)).upper_float
