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
from math import inf, isqrt

from flint import arb

from ..mechanisms.errors import require_group
from ..mechanisms.events import (
    DiscreteLaplaceStep,
    Event,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    SampledWithoutReplacement,
)
from .composition import Account, Composition, composed
from .numbers.enclosure import BITS, Enclosure, ball_of, maximum, precision
from .renyi.amplification import require_amplification


def pure_epsilon(events: Iterable[Event], *, group: int = 1) -> Enclosure:
    """Return the least epsilon for which events are (epsilon, 0)-DP, infinite where none is.

    Args:
        events: fixed in advance; none cost nothing.
        group: how many records neighbours differ in, all there or all not.

    Raises as `guarantee` does.
    Source: Dwork, Roth 2014, Theorems 2.2 (groups) and 3.14 (composition); Balle, Barthe, Gaboardi
    2018, Theorems 8 and 9 (sampling).
    """
    require_group("group", group)
    return maximum([found for _, found in pure_by_party(composed(events), group=group)])


def pure_by_party(
    composition: Composition, *, group: int = 1
) -> tuple[tuple[tuple[str, ...], Enclosure], ...]:
    """Return `pure_epsilon` for each set of parties that pay alike; () is a record of none."""
    return tuple((names, _of_account(account, group)) for names, account in composition.accounts)


def _of_account(account: Account, group: int) -> Enclosure:
    """Return the pure epsilon of one account: `group` times the sum of largest losses (Dwork, Roth
    2014, Theorems 2.2 and 3.14).
    """
    for mechanism in account.others:
        require_amplification(mechanism)
    if account.reasons or account.most > 0:
        return Enclosure.of(inf)
    exact = Fraction(0)
    with precision(BITS):
        total = arb(0)
        for mechanism, times in account.others.items():
            match largest_loss(mechanism):
                case Fraction() as loss:
                    exact += times * loss
                case loss:
                    total += times * loss
        found = Enclosure.from_ball(group * (total + ball_of(exact)))
    # of a fixed batch not all of a group may be drawn
    few = group > 1 and any(isinstance(m, SampledWithoutReplacement) for m in account.others)
    return Enclosure(arb(0), found.upper) if few else found


def largest_loss(mechanism: Mechanism) -> Fraction | arb:
    """Return the pure epsilon of one mechanism, infinite where it has none.

    Exact where it is rational, else a ball at the precision in force.
    """
    match mechanism:
        case (
            LaplaceStep(sensitivity=sensitivity)
            | PureStep(sensitivity=sensitivity)
            | DiscreteLaplaceStep(sensitivity=sensitivity)
        ) if sensitivity.squared == 0:
            return Fraction(0)  # whatever the noise
        case (
            LaplaceStep(sensitivity=sensitivity, scale=scale)
            | PureStep(sensitivity=sensitivity, scale=scale)
        ):
            squared = sensitivity.squared / Fraction(scale) ** 2
            root = Fraction(isqrt(squared.numerator), isqrt(squared.denominator))
            return root if root**2 == squared else ball_of(squared).sqrt()
        case DiscreteLaplaceStep(sensitivity=sensitivity, scale=scale):
            return isqrt(int(sensitivity.squared)) / Fraction(scale)
        case RandomisedResponse(truth=truth, categories=categories):
            odds = Fraction(truth) * (categories - 1) / (1 - Fraction(truth))
            return abs(ball_of(odds).log())
        case PoissonSampled(event=LaplaceStep() as event, rate=rate):
            return _amplified(event, Fraction(rate))
        case SampledWithoutReplacement(event=LaplaceStep() as event, batch=batch, records=records):
            return _amplified(event, Fraction(batch, records))
        case _:
            return arb(inf)


def _amplified(event: LaplaceStep, rate: Fraction) -> Fraction | arb:
    """Return log(1 + q (e^ε - 1)), the largest loss of a step that a record is in with probability
    q.

    Balle, Barthe, Gaboardi 2018, Theorems 8 (Poisson) and 9 (fixed batch).
    """
    loss = largest_loss(event)
    if rate == 1:
        return loss
    grown = (ball_of(loss) if isinstance(loss, Fraction) else loss).expm1()
    return (ball_of(rate) * grown).log1p()
