"""What the settings of papers share: limits that keep the court quick, and a whole run's noise."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...accounting.gaussian.exact import mu_from_epsilon_delta
from ...accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import (
    InvalidParameter,
    Number,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from .claim import Setting


def stated_epsilon(setting: Any) -> Enclosure:
    """Return the epsilon among a paper's parameters: what most claims promise."""
    return Enclosure.of(setting.epsilon)


def stated_delta(setting: Any) -> float:
    """Return the delta among a paper's parameters: at which most claims promise it."""
    return float(setting.delta)


def require_ranges(
    setting: Setting,
    *,
    counts: Mapping[str, int],
    sizes: Sequence[str] = (),
    nonnegative: Sequence[str] = (),
    shares: Sequence[str] = ("delta",),
    decades: int = 9,
) -> None:
    """Raise `InvalidParameter` for the first of a paper's parameters that is out of range.

    Args:
        setting: the parameters.
        counts: names of whole numbers, with the largest that the court looks at; each at least 1.
        sizes: names of positive numbers.
        nonnegative: names of numbers that may also be 0.
        shares: names of numbers strictly between 0 and 1.
        decades: how many powers of ten sizes may lie from 1.
    """
    for name, limit in counts.items():
        value = getattr(setting, name)
        require_positive_int(name, value)
        if value > limit:
            raise InvalidParameter(name, value, f"in [1, {limit}]")
    for name in shares:
        require_open_unit(name, getattr(setting, name))
    for name in sizes:
        value = getattr(setting, name)
        require_positive(name, value)
        if not 10.0**-decades <= value <= 10.0**decades:
            raise InvalidParameter(name, value, f"in [1e-{decades}, 1e{decades}]")
    for name in nonnegative:
        require_nonnegative(name, getattr(setting, name))


def replaced_or_nulled(*, nulled: bool) -> Adjacency:
    """Return the relation of a paper whose neighbours replace a record by any other, or by null."""
    return Adjacency.ZERO_OUT_ONE if nulled else Adjacency.REPLACE_ONE


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
