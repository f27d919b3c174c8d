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
from functools import lru_cache
from math import exp, inf, isfinite, log, sqrt
from typing import NamedTuple

from ..mechanisms.errors import (
    DpledgerError,
    InvalidParameter,
    Number,
    require_delta,
    require_group,
    require_positive,
    require_positive_int,
)
from ..mechanisms.events import Event
from ..mechanisms.sensitivity import float_up
from .composition import UnpricedMechanism, composed
from .gaussian.exact import mu_from_epsilon_delta
from .guarantees import Guarantee, epsilons_at, guarantee
from .numbers.enclosure import ball_of
from .numbers.grade import Grade
from .numbers.roots import brent
from .renyi.curves import Selection

_TOLERANCE = 1e-7
_FAST_TOLERANCE = 1e-8
_WIDEST = 5e-4
"""The relative width of an enclosure of epsilon that counts as how well it is known, at most."""
_LEAST, _GREATEST = 2.0**-47, 2.0**32
"""Noise multipliers that are tried: smaller ones count as none (see `composition`); of larger ones,
the lattice of exact noise has a share."""
_LEAST_TARGET, _GREATEST_TARGET = 2.0**-30, 2.0**94
"""Epsilons that may be asked for: below, digits of 1 - e^-epsilon are lost; above, no noise counts.
"""
_LEAST_FAST_DELTA = 1e-300
_FAR = 700.0
"""Epsilons farther from the target than this factor's exponential count alike."""


class UnattainableTarget(DpledgerError, ValueError):
    """No choice within reach meets the target."""


@dataclass(frozen=True, eq=False, slots=True)
class Calibration:
    """A noise multiplier, and the guarantee of the events that were planned with it."""

    noise_multiplier: float
    guarantee: Guarantee


@dataclass(frozen=True, eq=False, slots=True)
class RateCalibration:
    """A sampling rate, and the guarantee of the events that were planned with it."""

    sampling_rate: float
    guarantee: Guarantee


@dataclass(frozen=True, eq=False, slots=True)
class RoundsWithin:
    """A number of rounds, and the guarantee of the events of that many."""

    rounds: int
    guarantee: Guarantee


def require_target(name: str, epsilon: Number) -> None:
    """Raise `InvalidParameter` unless an epsilon can be aimed at: in [2^-30, 2^94]."""
    require_positive(name, epsilon)
    if not _LEAST_TARGET <= epsilon <= _GREATEST_TARGET:
        raise InvalidParameter(name, epsilon, "in [2^-30, 2^94] as a target")


def calibrate_noise_multiplier(
    plan: Callable[[float], Sequence[Event]],
    *,
    target_epsilon: Number,
    delta: Number,
    group: int = 1,
    selection: Selection | None = None,
) -> Calibration:
    """Return the smallest noise multiplier whose planned events meet the target.

    It lies at most 1e-6 (relative) above the smallest; of Gaussian steps alone it is the smallest
    to a few units in the last place. Where the enclosure of its epsilon is wider than 1e-6, that
    may end below the target by twice its width, up to 1e-3.

    Args:
        plan: from noise multiplier (noise_std / sensitivity) to events; more must not cost more.
        target_epsilon: which the upper end of the enclosed epsilon does not exceed, in
            [2^-30, 2^94].
        delta: in [0, 1).
        group: records that a unit has at most, whose epsilon it is.
        selection: where the events are of one of several runs, of which the best is published.

    Raises:
        UnattainableTarget: no multiplier in [2^-47, 2^32] does it, for instance where the plan lets
            data out without a mechanism.
        UnpricedMechanism: the plan holds a mechanism that cannot be priced.
    """
    require_target("target_epsilon", target_epsilon)
    require_delta(delta)
    require_group("group", group)
    aim = _Aim(plan, target_epsilon, delta, group, selection)
    found = _smallest(aim, least=_LEAST)
    if found is None:
        raise UnattainableTarget(
            f"Expected a plan that meets epsilon={target_epsilon!r} at delta={delta!r} with a "
            f"noise multiplier in [{_LEAST}, {_GREATEST}] "
            f"instead got {_told(aim.guarantee(_GREATEST))}."
        )
    return Calibration(found.at, found.guarantee)


def fast_noise_multiplier(
    plan: Callable[[float], Sequence[Event]], *, target_epsilon: Number, delta: Number
) -> float:
    """Return a noise multiplier that meets the target by the fast grade, near the smallest.

    It lies at most 1e-6 (relative) above the smallest. Arguments and errors as for
    `calibrate_noise_multiplier`, which encloses what it returns; this is for sweeps and plots.
    """
    require_target("target_epsilon", target_epsilon)
    require_delta(delta)
    aim = _Aim(plan, target_epsilon, delta)
    found, step = _fast_start(aim, _LEAST), _FAST_TOLERANCE
    while aim.quick_epsilon(found) > target_epsilon:
        if found >= _GREATEST:
            raise UnattainableTarget(
                f"Expected a plan that meets epsilon={target_epsilon!r} at delta={delta!r} with a "
                f"noise multiplier in [{_LEAST}, {_GREATEST}]."
            )
        found, step = min(found * (1 + step), _GREATEST), 4 * step
    return found


def calibrate_sampling_rate(
    plan: Callable[[float], Sequence[Event]], *, target_epsilon: Number, delta: Number
) -> RateCalibration:
    """Return the largest sampling rate whose planned events meet the target.

    It lies at most 1e-6 (relative) below the largest, or as `calibrate_noise_multiplier` says.

    Args:
        plan: from sampling rate, in [2^-64, 1], to events; less must not cost more.
        target_epsilon: which the upper end of the enclosed epsilon does not exceed, in
            [2^-30, 2^94].
        delta: in [0, 1).

    Raises:
        UnattainableTarget: no rate in [2^-32, 1] does it.
        UnpricedMechanism: the plan holds a mechanism that cannot be priced.
    """
    require_target("target_epsilon", target_epsilon)
    require_delta(delta)
    aim = _Aim(lambda x: plan(1 / x), target_epsilon, delta)
    found = _smallest(aim, least=1.0)
    if found is None:
        raise UnattainableTarget(
            f"Expected a plan that meets epsilon={target_epsilon!r} at delta={delta!r} with a "
            f"sampling rate in [{1 / _GREATEST}, 1] "
            f"instead got {_told(aim.guarantee(_GREATEST))}."
        )
    return RateCalibration(1 / found.at, found.guarantee)


@dataclass(frozen=True, eq=False, slots=True)
class _Aim:
    """What is looked for: the smallest number whose events meet a target.

    Args:
        plan: from a number to events; more must not cost more.
        target: for the upper end of epsilon.
        delta: in [0, 1).
        group: records of a unit.
        selection: of the best of several runs.
    """

    plan: Callable[[float], Sequence[Event]]
    target: Number
    delta: Number
    group: int = 1
    selection: Selection | None = None

    def guarantee(self, x: float) -> Guarantee:
        """Return what the events at `x` guarantee."""
        events, selection = self.plan(x), self.selection
        return guarantee(events, delta=self.delta, group=self.group, selection=selection)

    def quick_epsilon(self, x: float) -> float:
        """Return an upper bound on epsilon at `x`."""
        return _quick_epsilon(self.plan(x), self.delta, self.group, self.selection)


class _Found(NamedTuple):
    """What a number that was tried costs, and log(ε / target) of the upper end."""

    at: float
    guarantee: Guarantee
    excess: float
    meets: bool

    @property
    def near(self) -> bool:
        """Whether the target is met, and hardly farther away than epsilon is known.

        Upper ends of wide enclosures jump as the number grows, by about as much.
        """
        width = self.guarantee.epsilon.relative_width
        return self.meets and width > 10 * _TOLERANCE and self.excess > -2 * min(width, _WIDEST)


def _smallest(aim: _Aim, *, least: float) -> _Found | None:
    """Return the smallest number in [least, 2^64] whose events meet the target, if there is one."""
    limit = ball_of(aim.target)

    def attempt(x: float) -> _Found:
        found = aim.guarantee(x)
        upper = found.epsilon.upper
        excess = float((upper / limit).log()) if upper > 0 else -inf
        return _Found(x, found, excess, bool(upper <= limit))

    start, step = _start(aim, least)
    first = attempt(start)
    if first.near:
        return first
    # epsilon falls about as fast as the number grows, or some times as fast
    if abs(first.excess) > 4 * step:
        step = min(2 * abs(first.excess), 1.0)
    below, above = (None, first) if first.meets else (first, None)
    for x in _outward(start, step, towards=least if first.meets else _GREATEST):
        found = attempt(x)
        below, above = (below, found) if found.meets else (found, above)
        if found.meets is not first.meets:
            break
    tried = 0
    while below and above and above.at > below.at * (1 + _TOLERANCE) and not above.near:
        tried += 1
        # where the bounds jump, a straight line between them is no guide: every third is halfway
        found = attempt(_middle(below, above) if tried % 3 == 0 else _crossing(below, above))
        below, above = (below, found) if found.meets else (found, above)
    return above


def _middle(below: _Found, above: _Found) -> float:
    return sqrt(below.at) * sqrt(above.at)


def _crossing(below: _Found, above: _Found) -> float:
    """Return about where epsilon crosses the target, a little off both ends."""
    if not (isfinite(below.excess) and isfinite(above.excess)):
        return _middle(below, above)
    share = below.excess / (below.excess - above.excess)
    guess = below.at * exp(share * log(above.at / below.at))
    apart = 1 + 0.9 * _TOLERANCE
    return min(max(guess, below.at * apart), above.at / apart)


def _start(aim: _Aim, least: float) -> tuple[float, float]:
    """Return where to look first, and how far from there (relatively) to look next."""
    if aim.delta == 0:
        return _fast_start(aim, least), 2.0**-52
    if aim.selection is not None:
        return _fast_start(aim, least), _FAST_TOLERANCE
    try:
        at_one = aim.group**2 * composed(aim.plan(1.0)).mu_squared.upper_float
    except UnpricedMechanism:
        # a little above, where the upper end of an enclosure meets the target, too
        start = _fast_start(aim, least) * (1 + 2 * _FAST_TOLERANCE)
        return min(start, _GREATEST), 0.9 * _TOLERANCE
    # the answer, if every noise_std grows in proportion
    start = sqrt(at_one) / mu_from_epsilon_delta(epsilon=aim.target, delta=aim.delta).lower_float
    return min(max(start, least), _GREATEST), 2.0**-52


def _fast_start(aim: _Aim, least: float) -> float:
    """Return about the smallest number that meets the target, by the fast grade."""

    @lru_cache(maxsize=256)
    def excess(log_x: float) -> float:
        ratio = aim.quick_epsilon(exp(log_x)) / float(aim.target)
        far = min(max(log(ratio), -_FAR), _FAR) if ratio > 0 else -_FAR
        # near enough is a root: the two steps that a root finder would add tell nothing new
        return far if abs(far) > _FAST_TOLERANCE else 0.0

    # epsilon falls about as fast as the number grows: so far at first, then as it fell
    first, last = log(least), log(_GREATEST)
    here = max(first, 0.0)
    too_little = excess(here) > 0
    far = min(max(abs(excess(here)), 2.0**-10), log(4)) * 1.1
    while excess(here):
        there = min(here + far, last) if too_little else max(here - far, first)
        if there == here:
            return _GREATEST if too_little else least
        if not excess(there) or (excess(there) > 0) is not too_little:
            return exp(brent(excess, here, there, xtol=_FAST_TOLERANCE))
        fell = abs(excess(here) - excess(there))
        reach = 1.1 * far * abs(excess(there)) / fell if fell else inf
        here, far = there, min(reach, 3 * far, log(16))
    return exp(here)


def _outward(start: float, step: float, *, towards: float) -> Iterator[float]:
    """Numbers ever farther from `start` up to `towards`, first by `step` relatively."""
    here = start
    while here != towards:
        up = towards > start
        here = min(start * (1 + step), towards) if up else max(start / (1 + step), towards)
        yield here
        step *= 8


def _told(found: Guarantee) -> str:
    reasons = "; ".join(found.unprotected)
    return f"epsilon={found.epsilon}" + (f" ({reasons})" if reasons else "")


def rounds_within(
    plan: Callable[[int], Sequence[Event]],
    *,
    target_epsilon: Number,
    delta: Number,
    most: int = 1 << 20,
    group: int = 1,
    selection: Selection | None = None,
) -> RoundsWithin:
    """Return the largest number of rounds, up to `most`, whose enclosed epsilon meets the target.

    Args:
        plan: from number of rounds (from 1) to events; more rounds must not cost less.
        target_epsilon: which the upper end of the enclosed epsilon does not exceed, in
            [2^-30, 2^94].
        delta: in [0, 1).
        most: where to stop looking.
        group: records that a unit has at most, whose epsilon it is.
        selection: where the events are of one of several runs, of which the best is published.

    Raises:
        UnattainableTarget: one round is too much already.
        UnpricedMechanism: the plan holds a mechanism that cannot be priced.
    """
    require_target("target_epsilon", target_epsilon)
    require_delta(delta)
    require_positive_int("most", most)

    target = ball_of(target_epsilon)
    # near enough by the fast grade, and the last steps enclosed
    near = _last(lambda r: _quick_epsilon(plan(r), delta, group, selection) <= target_epsilon, most)
    found: dict[int, RoundsWithin] = {}

    def priced(rounds: int) -> Guarantee:
        return guarantee(plan(rounds), delta=delta, group=group, selection=selection)

    def meets(rounds: int) -> bool:
        found[rounds] = made = RoundsWithin(rounds, priced(rounds))
        return bool(made.guarantee.epsilon.upper <= target)

    last = _last(meets, most, start=near)
    if not last:
        raise UnattainableTarget(
            f"Expected a round that meets epsilon={float(target_epsilon)!r} at delta={delta!r} "
            f"instead got {_told(priced(1))}."
        )
    return found[last]


def _last(meets: Callable[[int], bool], most: int, *, start: int = 1) -> int:
    """Return the last whole number up to `most` before one that does not meet; 0 if none.

    It is sought from `start`, ever farther, and then by bisection.
    """
    good, bad, step = 0, most + 1, 1
    here = min(max(start, 1), most)
    upward = meets(here)
    good, bad = (here, bad) if upward else (good, here)
    while good < (there := min(here + step, most) if upward else max(here - step, 1)) < bad:
        met = meets(there)
        good, bad = (there, bad) if met else (good, there)
        if met is not upward:
            break
        here, step = there, 2 * step
    while good + 1 < bad:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good


def _quick_epsilon(
    events: Sequence[Event], delta: Number, group: int, selection: Selection | None = None
) -> float:
    """Return an upper bound on epsilon, from the fast grade where it reaches that far."""
    if delta < _LEAST_FAST_DELTA or selection is not None:
        found = guarantee(events, delta=delta, group=group, selection=selection)
        return found.epsilon.upper_float
    below = -float_up(-delta)
    curve = epsilons_at(events, deltas=[below], grade=Grade.FAST, group=group)
    return float(curve.epsilon[0])
