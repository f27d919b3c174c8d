"""The classical Gaussian mechanism: noise of sqrt(2 ln(1.25/delta))/epsilon sensitivities.

It is a theorem for epsilon below 1 (Dwork, Roth 2014, Theorem A.1); papers state it for all.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...accounting.conversions import classical_noise_multiplier
from ...accounting.numbers.enclosure import Enclosure
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.events import Event, GaussianStep
from ...mechanisms.sensitivity import declared
from .critical import critical_epsilon


def classical_multiplier(*, epsilon: float, delta: float) -> float:
    """Return the noise over the sensitivity, at any epsilon."""
    return _slope(delta).upper_float / epsilon


def classical_release(
    events: Sequence[Event], adjacency: Adjacency, *, epsilon: float, delta: float
) -> list[Event]:
    """Return the first of planned events with this noise, in units of its sensitivity."""
    unit = declared(1, "the unit of noise", adjacency=adjacency)
    step = GaussianStep(unit, classical_multiplier(epsilon=epsilon, delta=delta))
    return [replace(events[0], mechanism=step)]


def breaks_beyond(delta: float) -> Enclosure:
    """Return the epsilon beyond which the noise is too little."""
    return critical_epsilon(_slope(delta), delta)


def _slope(delta: float) -> Enclosure:
    return classical_noise_multiplier(epsilon=1, delta=delta)
