"""What the accountant that a claim names says of the events that it states, for comparison.

A verdict is by the exact price. But who computed an epsilon by strong composition is not wrong if
the exact one is smaller, and it helps to see how far the own accountant was from the truth.
"""

from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from math import inf

from ...accounting.accountants import (
    MomentsAccountant,
    RdpAccountant,
    ZcdpAccountant,
    tightest_accountant,
)
from ...accounting.composition import composed
from ...accounting.conversions import advanced_composition, epsilon_from_zcdp
from ...accounting.numbers.enclosure import BITS, Enclosure, precision
from ...accounting.numbers.work import limited
from ...mechanisms.errors import DpledgerError
from ...mechanisms.events import Event, Repeated
from ...mechanisms.sensitivity import float_down
from .pricing import times


class ClaimedAccountant(Enum):
    """How a claim says that its epsilon was computed."""

    EXACT = "exact privacy loss distributions"
    RDP = "Rényi divergences"
    MOMENTS = "moments accountant"
    ZCDP = "zCDP"
    STRONG = "strong composition"
    BASIC = "basic composition"


_UNITS_OF_WORK = 1_000_000
"""Steps of arithmetic that a claim from a stranger may cost; beyond, nothing is said."""


def by_accountant(
    events: Sequence[Event], accountant: ClaimedAccountant, *, delta: float, group: int = 1
) -> Enclosure | None:
    """Return the epsilon that an accountant says at `delta`; None where it says nothing.

    Strong and basic composition are of (epsilon, delta)-DP steps: each step is priced exactly, at
    an equal share of `delta`; strong composition keeps half of it for its slack.

    Args:
        events: as they are stated.
        accountant: what is asked.
        delta: in [0, 1).
        group: how many records pay together.

    Source: Dwork, Roth 2014, Theorems 3.16 (basic) and 3.20 (strong).
    """
    try:
        with limited(_UNITS_OF_WORK):
            found = _asked(events, accountant, delta, group)
    except (DpledgerError, ArithmeticError):
        return None
    return None if found.upper_float == inf else Enclosure(found.upper, found.upper)


def _asked(
    events: Sequence[Event], accountant: ClaimedAccountant, delta: float, group: int
) -> Enclosure:
    """Return what one accountant says; raise as it does.

    zCDP has group privacy by the square of the size (Bun, Steinke 2016, Proposition 1.9); its
    conversion is their Proposition 1.3, as whoever claims it will have used it.
    """
    composition = composed(events)
    match accountant:
        case ClaimedAccountant.EXACT:
            return tightest_accountant(composition).epsilon(delta, group=group)
        case ClaimedAccountant.RDP:
            return RdpAccountant.over(composition).epsilon(delta, group=group)
        case ClaimedAccountant.MOMENTS:
            return MomentsAccountant.over(composition).epsilon(delta, group=group)
        case ClaimedAccountant.ZCDP:
            zcdp = ZcdpAccountant.over(composition)
            rho = max(zcdp.rho(account).upper for _, account in composition.accounts)
            return epsilon_from_zcdp(rho=times(Enclosure(rho, rho), group**2), delta=delta)
        case _:
            return _by_steps(events, accountant, delta, group)


def _by_steps(
    events: Sequence[Event], accountant: ClaimedAccountant, delta: float, group: int
) -> Enclosure:
    """Compose steps of one kind each that are (epsilon, delta)-DP; parties are not told apart.

    Args:
        events: each of one kind of step, perhaps repeated.
        accountant: strong or basic composition.
        delta: of the claim; in strong composition half of it is slack.
        group: records that pay together.
    """
    counts = [e.mechanism.times if isinstance(e.mechanism, Repeated) else 1 for e in events]
    steps = sum(counts)
    strong = accountant is ClaimedAccountant.STRONG
    share = float_down(Fraction(delta) / (2 * steps if strong else steps))
    ones = [
        tightest_accountant(
            composed(
                [Event(e.mechanism.event, e.context) if isinstance(e.mechanism, Repeated) else e]
            )
        ).epsilon(share, group=group)
        for e in events
    ]
    if strong:
        # one theorem for steps of the same epsilon: the largest
        largest = max(one.upper for one in ones)
        slack = Fraction(delta) / 2
        return advanced_composition(
            epsilon=Enclosure(largest, largest), delta=share, steps=steps, delta_slack=slack
        ).epsilon
    total = Enclosure.of(0)
    with precision(BITS):
        for repeated, one in zip(counts, ones, strict=True):
            total = Enclosure.from_ball(total.upper + repeated * one.upper)
    return Enclosure(total.upper, total.upper)
