"""Planning on what is proved: the noise, or the rounds, at which a proof meets the target.

Gaussian steps are proved at what is enclosed; of other mechanisms the proved epsilon lies up to
0.1 % above it, so that the target for the enclosed one is lowered until the proof meets its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import noise_std_for
from ...mechanisms.errors import InvalidParameter, Number, require_positive
from ...mechanisms.events import MOST_TIMES, Audience, Context, Event, GaussianStep, Repeated
from ...mechanisms.sensitivity import declared
from ..guarantees import Guarantee
from ..numbers.enclosure import shown_up
from ..planning import (
    Calibration,
    RoundsWithin,
    UnattainableTarget,
    calibrate_noise_multiplier,
    require_target,
    rounds_within,
)
from .proved import Proof, proved_guarantee

_ATTEMPTS = 8
"""Targets that are tried before no proof is believed to meet one; two or three are usual."""

_FAR_ABOVE = 2
"""A certificate so many times above the enclosed epsilon is no guide to the noise that it needs."""

_Found = TypeVar("_Found", Calibration, RoundsWithin)


def proved_noise_multiplier(
    plan: Callable[[float], Sequence[Event]],
    *,
    target_epsilon: Number,
    delta: Number,
    adjacency: Adjacency | None = None,
    group: int = 1,
    given: Sequence[str] = (),
) -> tuple[Calibration, Proof | None]:
    """Return about the least noise multiplier whose proved epsilon meets the target, and the proof.

    Where there is no proof, the enclosed epsilon meets the target, and the guarantee says why it is
    not proved.

    Args:
        plan: from a noise multiplier to events; more noise must not cost more.
        target_epsilon: > 0.
        delta: in (0, 1).
        adjacency: the relation that the events are expected to speak of.
        group: records that a unit has at most, whose epsilon it is.
        given: what the certificate takes for granted besides.

    Raises as `calibrate_noise_multiplier` and `proved_guarantee` do.
    """

    def attempt(target: Fraction) -> tuple[Calibration, Proof | None]:
        found = calibrate_noise_multiplier(plan, target_epsilon=target, delta=delta, group=group)
        events = plan(found.noise_multiplier)
        proved = proved_guarantee(
            events, delta=delta, adjacency=adjacency, group=group, given=given
        )
        return _at_best(found, *proved)

    return _meeting(target_epsilon, attempt)


def proved_rounds_within(
    plan: Callable[[int], Sequence[Event]],
    *,
    target_epsilon: Number,
    delta: Number,
    most: int = 1 << 20,
) -> tuple[RoundsWithin, Proof | None]:
    """Return about the most rounds whose proved epsilon meets the target, and the proof.

    Args:
        plan: from a number of rounds to events; more rounds must not cost less.
        target_epsilon: > 0.
        delta: in (0, 1).

    Raises as `rounds_within` does; without a proof as `proved_noise_multiplier`.
    """

    def attempt(target: Fraction) -> tuple[RoundsWithin, Proof | None]:
        found = rounds_within(plan, target_epsilon=target, delta=delta, most=most)
        return _at_best(found, *proved_guarantee(plan(found.rounds), delta=delta))

    return _meeting(target_epsilon, attempt)


def _at_best(
    found: _Found, guaranteed: Guarantee, proof: Proof | None
) -> tuple[_Found, Proof | None]:
    """Return what was found with what is proved of it, or without a proof that says too little."""
    enclosed = found.guarantee
    if proof is None or guaranteed.epsilon.upper <= _FAR_ABOVE * enclosed.epsilon.upper:
        return replace(found, guarantee=guaranteed), proof
    least = shown_up(proof.epsilon, digits=4)
    why = f"the certificate that was found proves no less than epsilon={least}"
    kept = replace(enclosed, assumptions=guaranteed.assumptions, not_proved=why)
    return replace(found, guarantee=kept), None


def _meeting(
    epsilon: Number, attempt: Callable[[Fraction], tuple[_Found, Proof | None]]
) -> tuple[_Found, Proof | None]:
    """Return what an attempt finds at a target at which the proved epsilon is at most `epsilon`.

    Args:
        epsilon: what the proved epsilon must not exceed.
        attempt: from a target of the enclosed epsilon to what meets it, and its proof.
    """
    require_target("target_epsilon", epsilon)
    target = Fraction(epsilon)
    for failed in range(_ATTEMPTS):
        found, proof = attempt(target)
        if proof is None or proof.epsilon <= epsilon:
            return found, proof
        share = Fraction(epsilon) / Fraction(proof.epsilon)
        target *= share * max(share, 1 - Fraction(2**failed, 1000))
    raise UnattainableTarget(f"epsilon={epsilon!r} must be at least what a certificate proves.")


@dataclass(frozen=True, eq=False, slots=True)
class GaussianRounds:
    """So many Gaussian steps of one noise multiplier, and what is proved of them.

    Args:
        rounds: their number.
        noise_multiplier: noise_std over the sensitivity.
        guarantee: at the delta that was asked for.
    """

    rounds: int
    noise_multiplier: float
    guarantee: Guarantee


def calibrate_gaussian_rounds(
    *,
    epsilon: Number,
    delta: Number,
    adjacency: Adjacency,
    rounds: int | None = None,
    noise_multiplier: float | None = None,
) -> GaussianRounds:
    """Return the least noise of so many Gaussian steps, or the most steps of so much noise.

    Args:
        epsilon: the target, > 0.
        delta: in (0, 1).
        adjacency: the relation that the sensitivity speaks of.
        rounds: number of steps; None asks for it.
        noise_multiplier: noise_std / sensitivity; None asks for it.

    Raises `InvalidParameter` unless one of the last two is asked for, and `UnattainableTarget`.
    """

    require_target("epsilon", epsilon)
    if noise_multiplier is not None:
        require_positive("noise_multiplier", noise_multiplier)

    def steps(number: int, multiplier: float) -> list[Event]:
        reason = "noise multipliers are noise_std over the sensitivity under the stated relation"
        unit = declared(1, reason, adjacency=adjacency)
        step = GaussianStep(unit, noise_std_for(unit, multiplier))
        return [Event(Repeated(step, number), Context((), 1, "release", Audience.PUBLIC))]

    if rounds is not None and noise_multiplier is None:
        if not 1 <= rounds <= MOST_TIMES:
            raise InvalidParameter("rounds", rounds, "a whole number in [1, 10**18]")
        least, _ = proved_noise_multiplier(
            lambda z: steps(rounds, z), target_epsilon=epsilon, delta=delta
        )
        return GaussianRounds(rounds, least.noise_multiplier, least.guarantee)
    if rounds is not None or noise_multiplier is None:
        raise InvalidParameter("rounds", rounds, "stated, or noise_multiplier, and not both")
    most, _ = proved_rounds_within(
        lambda number: steps(number, noise_multiplier),
        target_epsilon=epsilon,
        delta=delta,
        most=MOST_TIMES,
    )
    return GaussianRounds(most.rounds, noise_multiplier, most.guarantee)
