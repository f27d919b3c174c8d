"""Planning: the noise that a target needs, and the rounds that a budget allows.

A plan is a function from what is to be chosen to the events that a solver would emit; what is
returned has been checked on these very events, so that rounding in between cannot break the target.

>>> from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
>>> unit = declared(1, "example", adjacency=Adjacency.REPLACE_ONE)
>>> def rounds(noise_multiplier):
...     step = GaussianStep(unit, noise_multiplier)
...     return [Event(step, Context((), t, "mean", Audience.SERVER)) for t in range(1, 101)]
>>> found = calibrate_noise_multiplier(rounds, target_epsilon=1, delta=1e-5)
>>> round(found.noise_multiplier, 4)
37.3063
>>> found.guarantee.epsilon <= 1
True
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

from ..mechanisms.errors import (
    DpledgerError,
    Number,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ..mechanisms.events import Event
from .composition import UnpricedMechanism, composed
from .enclosure import ball_of
from .gaussian import mu_from_epsilon_delta
from .guarantee import Guarantee, guarantee

__all__ = [
    "Calibration",
    "RoundsWithin",
    "UnattainableTarget",
    "calibrate_noise_multiplier",
    "rounds_within",
]

_TOLERANCE = 1e-7
_LEAST, _GREATEST = 2.0**-64, 2.0**64


class UnattainableTarget(DpledgerError, ValueError):
    """No choice within reach meets the target."""


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """A noise multiplier, and the guarantee of the events that were planned with it."""

    noise_multiplier: float
    guarantee: Guarantee


@dataclass(frozen=True, eq=False, slots=True)
class RoundsWithin:
    """A number of rounds, and the guarantee of the events of that many."""

    rounds: int
    guarantee: Guarantee


def calibrate_noise_multiplier(
    plan: Callable[[float], Sequence[Event]], *, target_epsilon: Number, delta: Number
) -> Calibration:
    """Return the smallest noise multiplier whose planned events meet the target.

    It lies at most 1e-6 (relative) above the smallest; usually it is the smallest to a few units in
    the last place.

    Args:
        plan: from noise multiplier (noise_std / sensitivity) to events; more must not cost more.
        target_epsilon: which the upper end of the certified epsilon does not exceed, > 0.
        delta: in (0, 1).

    Raises:
        UnattainableTarget: no multiplier in [2^-64, 2^64] does it, for instance where the plan lets
            data out without a mechanism.
        UnpricedMechanism: the plan holds a mechanism that cannot be priced.
    """
    require_positive("target_epsilon", target_epsilon)
    require_open_unit("delta", delta)

    target = ball_of(target_epsilon)

    def attempt(multiplier: float) -> Calibration | None:
        found = guarantee(plan(multiplier), delta=delta)
        return Calibration(multiplier, found) if found.epsilon.upper <= target else None

    start = _start(plan, target_epsilon, delta)
    above, below = attempt(start), _LEAST
    if above is None:
        below = start
        for multiplier in _outward(start, towards=_GREATEST):
            above = attempt(multiplier)
            if above is not None:
                break
            below = multiplier
    else:
        for multiplier in _outward(start, towards=_LEAST):
            found = attempt(multiplier)
            if found is None:
                below = multiplier
                break
            above = found
    if above is None:
        raise UnattainableTarget(
            f"Expected a plan that meets epsilon={target_epsilon!r} at delta={delta!r} with a "
            f"noise multiplier in [{_LEAST}, {_GREATEST}] "
            f"instead got {_told(plan(_GREATEST), delta)}."
        )
    while above.noise_multiplier > below * (1 + _TOLERANCE):
        middle = sqrt(below) * sqrt(above.noise_multiplier)
        found = attempt(middle)
        if found is None:
            below = middle
        else:
            above = found
    return above


def _start(plan: Callable[[float], Sequence[Event]], target: Number, delta: Number) -> float:
    """Where to look first: the answer, if every noise_std grows in proportion to the multiplier."""
    try:
        at_one = composed(plan(1.0)).mu_squared.upper_float
    except UnpricedMechanism:
        return 1.0
    start = sqrt(at_one) / mu_from_epsilon_delta(epsilon=target, delta=delta).lower_float
    return min(max(start, _LEAST), _GREATEST)


def _outward(start: float, *, towards: float) -> Iterator[float]:
    """Numbers ever farther from `start` up to `towards`: first by units in the last place."""
    step, here = 2.0**-52, start
    while here != towards:
        up = towards > start
        here = min(start * (1 + step), towards) if up else max(start / (1 + step), towards)
        yield here
        step *= 8


def _told(events: Sequence[Event], delta: Number) -> str:
    found = guarantee(events, delta=delta)
    reasons = "; ".join(found.unprotected)
    return f"epsilon={found.epsilon}" + (f" ({reasons})" if reasons else "")


def rounds_within(
    plan: Callable[[int], Sequence[Event]],
    *,
    target_epsilon: Number,
    delta: Number,
    most: int = 1 << 20,
) -> RoundsWithin:
    """Return the largest number of rounds, up to `most`, whose certified epsilon meets the target.

    Args:
        plan: from number of rounds (from 1) to events; more rounds must not cost less.
        target_epsilon: which the upper end of the certified epsilon does not exceed, > 0.
        delta: in (0, 1).
        most: where to stop looking.

    Raises:
        UnattainableTarget: one round is too much already.
        UnpricedMechanism: the plan holds a mechanism that cannot be priced.
    """
    require_positive("target_epsilon", target_epsilon)
    require_open_unit("delta", delta)
    require_positive_int("most", most)

    target = ball_of(target_epsilon)

    def attempt(rounds: int) -> RoundsWithin | None:
        found = guarantee(plan(rounds), delta=delta)
        return RoundsWithin(rounds, found) if found.epsilon.upper <= target else None

    best = attempt(1)
    if best is None:
        raise UnattainableTarget(
            f"Expected a round that meets epsilon={target_epsilon!r} at delta={delta!r} "
            f"instead got {_told(plan(1), delta)}."
        )
    too_many = 2
    while too_many <= most and (found := attempt(too_many)) is not None:
        best, too_many = found, 2 * too_many
    too_many = min(too_many, most + 1)
    while best.rounds + 1 < too_many:
        middle = (best.rounds + too_many) // 2
        found = attempt(middle)
        if found is None:
            too_many = middle
        else:
            best = found
    return best
