"""Pure differential privacy: the epsilon of events at delta 0.

>>> from dpledger.mechanisms import Adjacency, Audience, Context, Event, LaplaceStep, Norm, declared
>>> size = declared(1, "example", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)
>>> event = Event(LaplaceStep(size, 4.0), Context((), 1, "mean", Audience.SERVER))
>>> pure_epsilon([event, event])
Enclosure(0.5)

Epsilons add up, and nothing better is true of the pairs that dominate these mechanisms: the largest
loss of a composition is the sum of the largest losses. Gaussian noise has no finite one.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import inf

from flint import arb

from ..mechanisms.errors import require_positive_int
from ..mechanisms.events import (
    DiscreteLaplaceStep,
    Event,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    RandomisedResponse,
    SampledWithoutReplacement,
)
from .composition import Account, composed
from .numbers.enclosure import BITS, Enclosure, ball_of, precision
from .renyi.amplification import in_groups, require_amplification
from .renyi.rdp import is_sampled


def pure_epsilon(events: Iterable[Event], *, group: int = 1) -> Enclosure:
    """Return the least epsilon for which events are (epsilon, 0)-DP, infinite where none is.

    Args:
        events: fixed in advance; none cost nothing.
        group: how many records neighbours differ in, all there or all not.

    Raises as `guarantee` does.
    Source: Dwork, Roth 2014, Theorem 3.14 (composition); Balle, Barthe, Gaboardi 2018, Theorems 8
    and 9 (sampling).
    """
    require_positive_int("group", group)
    accounts = composed(events).accounts
    found = [_of_account(in_groups(account, group), group) for _, account in accounts]
    return Enclosure(max(e.lower for e in found), max(e.upper for e in found))


def _of_account(account: Account, group: int) -> Enclosure:
    for mechanism in account.others:
        require_amplification(mechanism)
    if account.reasons or account.most > 0:
        return Enclosure.of(inf)
    with precision(BITS):
        total = arb(0)
        for mechanism, times in account.others.items():
            total += times * _largest_loss(mechanism)
        found = Enclosure.from_ball(total)
    # the rule for groups counts every drawn group as all drawn: no lower end
    drawn = group > 1 and any(map(is_sampled, account.others))
    return Enclosure(arb(0), found.upper) if drawn else found


def _largest_loss(mechanism: Mechanism) -> arb:
    match mechanism:
        case (
            LaplaceStep(sensitivity=sensitivity, scale=scale)
            | DiscreteLaplaceStep(sensitivity=sensitivity, scale=scale)
        ):
            return ball_of(sensitivity.squared).sqrt() / ball_of(scale)
        case RandomisedResponse(truth=truth, categories=categories):
            odds = Fraction(truth) * (categories - 1) / (1 - Fraction(truth))
            return abs(ball_of(odds).log())
        case PoissonSampled(event=LaplaceStep() as event, rate=rate):
            return (ball_of(rate) * _largest_loss(event).expm1()).log1p()
        case SampledWithoutReplacement(event=LaplaceStep() as event, batch=batch, records=records):
            return (ball_of(Fraction(batch, records)) * _largest_loss(event).expm1()).log1p()
        case _:
            return arb(inf)
