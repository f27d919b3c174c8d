"""What a stranger's events cost, within a limit of work.

Numbers that nobody would use may make a price take hours. Work is counted, and no clock is looked
at: the same events get the same answer on a busy machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ...accounting.accountants import RdpAccountant
from ...accounting.composition import composed
from ...accounting.guarantees import Guarantee, guarantee
from ...accounting.numbers.enclosure import Enclosure
from ...accounting.numbers.work import WorkExhausted, limited
from ...mechanisms.errors import DpledgerError
from ...mechanisms.events import Event, GaussianStep, Mechanism, Repeated, UnprotectedRelease

UNITS_OF_WORK = 1_000_000
"""For each list of events: about a minute of one core. See `accounting.numbers.work`."""


@dataclass(frozen=True, eq=False, slots=True)
class ClaimPrice:
    """What events cost; where that is not known, [0, infinity] or an upper bound, and why.

    `gave_up` says that more work might find it.
    """

    cost: Enclosure
    refusal: str = ""
    gave_up: bool = False


def priced(
    events: Sequence[Event], *, unit: str, delta: float, units_of_work: int = UNITS_OF_WORK
) -> ClaimPrice:
    """Return what events cost whose parameters were fixed in advance.

    Args:
        events: none cost nothing.
        unit: epsilon (at `delta`), rho or mu.
        delta: in (0, 1).
        units_of_work: after so many the exact price is given up, and Rényi divergences may bound
            epsilon with as many again.
    """
    if not events:
        return ClaimPrice(Enclosure.of(0))
    try:
        with limited(units_of_work):
            return ClaimPrice(_in_unit(guarantee(events, delta=delta), unit))
    except WorkExhausted as exhausted:
        highest = Enclosure.of(inf)
        if unit == "epsilon":
            highest = _by_divergences(events, delta, units_of_work)
        return ClaimPrice(Enclosure.hull(Enclosure.of(0), highest), str(exhausted), gave_up=True)
    except (DpledgerError, ArithmeticError) as refused:
        return ClaimPrice(Enclosure.hull(Enclosure.of(0), Enclosure.of(inf)), str(refused))


def has_closed_form(events: Sequence[Event]) -> bool:
    """Return whether all events are Gaussian steps, or without a finite price."""
    closed = (GaussianStep, UnprotectedRelease)
    return all(isinstance(_innermost(event.mechanism), closed) for event in events)


def _innermost(mechanism: Mechanism) -> Mechanism:
    while isinstance(mechanism, Repeated):
        mechanism = mechanism.event
    return mechanism


def _in_unit(found: Guarantee, unit: str) -> Enclosure:
    return {"epsilon": found.epsilon, "rho": found.rho, "mu": found.mu}[unit]


def _by_divergences(events: Sequence[Event], delta: float, units_of_work: int) -> Enclosure:
    """Return an upper bound on epsilon, infinite where that too is too much work."""
    try:
        with limited(units_of_work):
            return RdpAccountant.over(composed(events)).epsilon(delta)
    except (DpledgerError, ArithmeticError):
        return Enclosure.of(inf)
