"""What a stranger's events cost, within a limit of work.

Numbers that nobody would use may make a price take hours. Work is counted, and no clock is looked
at: the same events get the same answer on a busy machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import repeat
from math import inf
from operator import add

from flint import arb

from ...accounting.accountants import (
    RdpAccountant,
    tightest_accountant,
    tightest_pricing,
)
from ...accounting.composition import Account, composed
from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure, ball_of, precision
from ...accounting.numbers.work import WorkExhausted, limited
from ...accounting.pure import pure_epsilon
from ...accounting.renyi.amplification import in_groups, together_in_batches
from ...mechanisms.errors import AdjacencyMismatch, DpledgerError
from ...mechanisms.events import (
    AccumulatedPoisson,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
    unrepeated,
)

_BITS = 256
"""Bits of the balls in which a claim's number and a price are compared."""

UNITS_OF_WORK = 250_000
"""For each list of events: about fifteen seconds of one core. See `accounting.numbers.work`."""


@dataclass(frozen=True, eq=False, slots=True)
class ClaimPrice:
    """What events cost; where that is not known, [0, infinity] or an upper bound, and why.

    `gave_up` says that more work might find it.

    Args:
        cost: in the unit asked for.
        refusal: why there is no more to say; empty where the price is exact.
        gave_up: True after too much work; False where no rule exists.
    """

    cost: Enclosure
    refusal: str = ""
    gave_up: bool = False


def priced(
    events: Sequence[Event],
    *,
    unit: str,
    delta: float | None,
    group: int = 1,
    spread: bool = False,
    units_of_work: int = UNITS_OF_WORK,
) -> ClaimPrice:
    """Return what events cost whose parameters were fixed in advance.

    Args:
        events: none cost nothing.
        unit: epsilon (at `delta`), rho or mu.
        delta: in [0, 1); None where nothing is left of it, and the price is infinite.
        group: how many records pay together, all there or all not.
        spread: whether these may live with several parties: what all parties' events cost them
            bounds that from above, what one party's do from below.
        units_of_work: after so many the exact price is given up, and Rényi divergences may bound
            epsilon with as many again.
    """
    if delta is None:
        reason = "the deltas of the steps come to more than is promised"
        return ClaimPrice(Enclosure.of(inf), reason)
    if not events:
        return ClaimPrice(Enclosure.of(0))
    try:
        with limited(units_of_work):
            found = _in_unit(events, unit, delta, group)
            if found.lower == inf and not any(_tells_all(e.mechanism, delta) for e in events):
                # little noise, or none on a sample, is priced as none: so much nobody need lose
                found = Enclosure(arb(0), found.upper)
            if spread:
                most = _of_all_parties(events, delta, group)
                found = Enclosure(found.lower, most.upper.max(found.upper))
            return ClaimPrice(found)
    except WorkExhausted as exhausted:
        highest = Enclosure.of(inf)
        if unit == "epsilon":
            highest = _by_divergences(events, delta, group, units_of_work)
        return ClaimPrice(Enclosure.hull(Enclosure.of(0), highest), str(exhausted), gave_up=True)
    except (DpledgerError, ArithmeticError) as refused:
        if any(isinstance(unrepeated(e.mechanism)[0], UnprotectedRelease) for e in events):
            return ClaimPrice(Enclosure.of(inf))  # whatever the others cost
        return ClaimPrice(Enclosure.hull(Enclosure.of(0), Enclosure.of(inf)), str(refused))


def _tells_all(mechanism: Mechanism, delta: float) -> bool:
    """Return whether some data lose everything: what moves has no noise, on a sample that a record
    is in more often than delta.

    At delta 0 normal noise of any size is none. An answer that is never given tells all where there
    are two, or the chance of it is above delta.
    """
    match mechanism:
        case Repeated(event):
            return _tells_all(event, delta)
        case Parties(parts):
            return any(_tells_all(part, delta) for _, own in parts for part in own)
        case LaplaceStep() | DiscreteLaplaceStep() | PureStep():
            return mechanism.scale == 0 and mechanism.sensitivity.squared > 0
        case GaussianStep() | DiscreteGaussianStep():
            found = mechanism.noise_std == 0 or delta == 0
            return found and mechanism.sensitivity.squared > 0
        case RandomisedResponse(truth, categories):
            return truth == 1 or (truth == 0 and 1 / Fraction(categories - 1) > delta)
        case UnprotectedRelease():
            return True
        case GaussianMixtureStep():
            drawn = mechanism.rate > delta and mechanism.sampled.squared > 0
            bare = mechanism.noise_std == 0 or delta == 0
            return bare and (drawn or mechanism.constant.squared > 0)
        case PoissonSampled() | AccumulatedPoisson():
            return mechanism.rate > delta and _tells_all(mechanism.event, delta)
        case SampledWithoutReplacement(event, batch, records):
            return Fraction(batch, records) > delta and _tells_all(event, delta)
        case SampledWithReplacement(event, _, records):
            return Fraction(1, records) > delta and _tells_all(event, delta)


def delta_left(
    delta: float, steps: Sequence[tuple[float, int]], *, kept: bool = True
) -> float | None:
    """Return the delta that is left for the pure parts of (epsilon, delta)-DP steps, rounded down.

    Each of the steps, `times` of `step_delta`, is dominated by one that tells all with probability
    `step_delta` and is pure otherwise, so 1 - delta = (1 - left) prod (1 - step_delta)^times. None
    where that is negative.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.

    Args:
        delta: of the promise.
        steps: the delta of each, and how often it ran.
        kept: whether the promise has a delta, of which steps may take a part. One in rho or mu has
            none: what tells all with any probability is of no rho and no mu.
    """
    steps = [(each, times) for each, times in steps if each > 0]
    if not steps:
        return delta
    if not kept:
        return None
    if len(steps) == 1 and steps[0][1] == 1 and steps[0][0] == delta:
        return 0.0
    with precision(_BITS):
        spared = sum(times * (-ball_of(each)).log1p() for each, times in steps)
        left = -((-ball_of(delta)).log1p() - spared).expm1()
        lower = Enclosure.from_ball(left).lower_float
    return lower if lower >= 0 else None


def has_closed_form(events: Sequence[Event]) -> bool:
    """Return whether all events are Gaussian steps, or without a finite price."""
    closed = (GaussianStep, UnprotectedRelease)
    return all(isinstance(unrepeated(event.mechanism)[0], closed) for event in events)


def _in_unit(events: Sequence[Event], unit: str, delta: float, group: int) -> Enclosure:
    """Return what events cost in a unit; raise what the accountants raise."""
    if unit == "epsilon" and delta == 0:
        return pure_epsilon(events, group=group)
    if unit == "epsilon" and group > 1:
        return tightest_accountant(composed(events)).epsilon(delta, group=group)
    found = guarantee(events, delta=delta)
    # Dong, Roth, Su 2022, Theorem 2.14; Bun, Steinke 2016, Proposition 1.9
    value, factor = {
        "epsilon": (found.epsilon, 1),
        "rho": (found.rho, group**2),
        "mu": (found.mu, group),
    }[unit]
    return times(value, factor)


def may_be_spread(events: Sequence[Event], unit: str, delta: float | None, group: int) -> bool:
    """Return whether a unit with records at several parties might pay more than one at one party.

    Arguments as for `priced`. By mu, rho and pure epsilon it pays no more.
    """
    if group == 1 or unit != "epsilon" or not delta:
        return False
    try:
        accounts = composed(events).accounts
    except AdjacencyMismatch:  # randomised response beside a record left out: no rule prices both
        return False
    apart = len(accounts) > 2 and any(account.others for _, account in accounts)
    drawn = (len(names) > 1 and together_in_batches(account, group) for names, account in accounts)
    return apart or any(drawn)


def _of_all_parties(events: Sequence[Event], delta: float, group: int) -> Enclosure:
    """Return the epsilon of a group that pays what it would at each of the parties."""
    total = Account()
    for parties, account in composed(events).accounts:
        # where all share one mechanism but for whose batch it is, each party's is met
        met = min(max(len(parties), 1), group) if together_in_batches(account, group) else 1
        total = reduce(add, repeat(in_groups(account, group), met), total)
    return tightest_pricing([total]).epsilon_of(total, delta)


def times(value: Enclosure, factor: int) -> Enclosure:
    """Return an enclosure of a whole multiple."""
    with precision(_BITS):
        ends = Enclosure.from_ball(value.lower * factor), Enclosure.from_ball(value.upper * factor)
    return value if factor == 1 else Enclosure.hull(*ends)


def _by_divergences(
    events: Sequence[Event], delta: float, group: int, units_of_work: int
) -> Enclosure:
    """Return an upper bound on epsilon, infinite where that too is too much work."""
    try:
        with limited(units_of_work):
            return RdpAccountant.over(composed(events)).epsilon(delta, group=group)
    except (DpledgerError, ArithmeticError):
        return Enclosure.of(inf)
