"""Hidden samples: under which relations a sampled mechanism has a rule, and what groups pay.

Sampling amplifies only where leaving a record out of the sample leaves nothing of it behind, and
only under the relation for which that is proved.
"""

from fractions import Fraction
from functools import partial

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import require_group
from ...mechanisms.events import (
    AccumulatedPoisson,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    unrepeated,
)
from ...mechanisms.hiding import counts_drawn, largest_mean
from ...mechanisms.sensitivity import Sensitivity, float_up, scaled
from ..composition import MOST_DRAWN, Account, UnpricedMechanism
from ..numbers.enclosure import BITS, Enclosure, ball_of, precision
from ..pld.pairs import MOST_COPIES

HIDDEN_SAMPLE = "samples are drawn afresh, as stated, and stay hidden"
"""What every theorem on amplification by sampling assumes."""

UNTOLD = "what is declared does not tell who was drawn"
"""Assumed of Poisson samples where neighbours have as many records: what moves by nothing between
them may still be the number of records drawn, and so move with the sample."""

DIVIDED = "means of a Poisson sample divide by the number in their derivation"
"""Whoever is drawn, as if all others were null records."""

_WITHOUT = (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE)


def require_amplification(mechanism: Mechanism) -> None:
    """Raise `UnpricedMechanism` unless the theorem on this kind of sampling covers `mechanism`.

    Poisson sampling: add/remove or zero-out, and of a Gaussian step replace-one where its
    derivation bounds what one record brings; a fixed batch: replace-one, and a mean is over what is
    drawn; a Gaussian mixture step: any of these. Under add/remove a sampled sum must not be divided
    by the number of records, which is not public. Other mechanisms pass.
    """
    match mechanism:
        case PoissonSampled(event=GaussianStep() as event) if mechanism.bounds_each_record:
            _require_relation(mechanism, event.sensitivity, (*_WITHOUT, Adjacency.REPLACE_ONE))
        case PoissonSampled(event=event) | AccumulatedPoisson(event=event):
            _require_relation(mechanism, event.sensitivity, _WITHOUT)
        case SampledWithoutReplacement() | SampledWithReplacement():
            drawn = mechanism.event.sensitivity
            _require_relation(mechanism, drawn, (Adjacency.REPLACE_ONE,))
            if largest_mean(drawn.derivation) > mechanism.batch:
                where = f"over no more than the {mechanism.batch} records drawn"
                raise UnpricedMechanism(mechanism, where, "a mean")
        case GaussianMixtureStep():
            allowed = (*_WITHOUT, Adjacency.REPLACE_ONE)
            _require_relation(mechanism, mechanism.sampled, allowed)
        case _:
            pass


def _require_relation(
    mechanism: Mechanism, sensitivity: Sensitivity, allowed: tuple[Adjacency, ...]
) -> None:
    if sensitivity.adjacency not in allowed:
        names = " or ".join(relation.value for relation in allowed)
        raise UnpricedMechanism(mechanism, f"under {names}", "this kind of sampling")
    if sensitivity.adjacency is Adjacency.ADD_REMOVE_ONE and largest_mean(sensitivity.derivation):
        raise UnpricedMechanism(
            mechanism, "divided by public numbers under add/remove", "a sampled sum"
        )
    if sensitivity.adjacency is Adjacency.ZERO_OUT_ONE and counts_drawn(sensitivity.derivation):
        raise UnpricedMechanism(
            mechanism, "of terms that null records add nothing to", "a sampled sum"
        )


def assumed_of_sample(mechanism: Mechanism) -> tuple[str, ...]:
    """Return what hiding the sample of a mechanism rests on: nothing where it draws none."""
    match mechanism:
        case SampledWithoutReplacement() | SampledWithReplacement():
            return (HIDDEN_SAMPLE,)
        case PoissonSampled(event=event) | AccumulatedPoisson(event=event):
            drawn = event.sensitivity
        case GaussianMixtureStep():
            drawn = mechanism.sampled
        case _:
            return ()
    told = drawn.adjacency is not Adjacency.ADD_REMOVE_ONE and bool(drawn.assumptions)
    divided = bool(largest_mean(drawn.derivation))
    return (HIDDEN_SAMPLE, *((UNTOLD,) if told else ()), *((DIVIDED,) if divided else ()))


def in_groups(account: Account, size: int, *, counted: bool = True) -> Account:
    """Return what `size` records pay together that are all there or all not, as one person's are.

    All of them are added, all removed, all zeroed or all replaced. Data sets that differ by adding
    some records and removing others are not covered where a Poisson sample is drawn.

    Additive noise meets `size` times the shift, a pure step so many times the loss, randomised
    response as many answers. Of a Poisson sample under Gaussian noise as many are part as are drawn
    (`DrawnShifts`). Of others, and of very large groups, some of the group is part with probability
    p = 1 - (1-q)^size. Given the part of all others, the release without the group is Q, the noise
    alone, and with it (1-p) Q + p R, where R is a mixture of the noise shifted by vectors v of
    length <= `size` Δ. Then

        H_γ((1-p)Q + pR ‖ Q) = p H_c(R ‖ Q)    c = 1 + (γ-1)/p    (1 - γ where c < 0)
        H_γ(Q ‖ (1-p)Q + pR) = g H_(γp/g)(Q ‖ R)    g = 1 - γ(1-p)    (0 where g <= 0)

    and both are convex in R, so at most those of one shift v, which grow with its length: the pair
    of rate p and shift `size` Δ dominates in each order. What is true given the others' part is
    true of the mixture over it, by joint convexity. A larger p, as rounding gives it, dominates by
    post-processing: replace the output by fresh noise Q now and then. That step is also why p =
    `size` q will do where draws are not independent (fixed batch, mixture step).

    Of a fixed batch drawn from n records under replace-one, both neighbours' batches avoid the
    group with equal probability and then release alike; otherwise members can be exchanged one by
    one for a uniform choice of others, which moves the release by at most `size` Δ and makes the
    batch one that avoids the group. So the symmetrised pair of that shift dominates (advanced joint
    convexity: Balle, Barthe, Gaboardi 2018, Theorems 2 and 11). Of Gaussian noise it counts how
    many are exchanged. Decide the members one by one: given those before, the next is in the batch
    of m with a probability of m / (n - `size` + 1) at most, and of 1/n' for the whole number n'
    below its inverse. So there are `size` independent draws of that probability such that no more
    members are in the batch than draws hit; and the price is that of one record in `size` draws
    with replacement out of n' (`pld.from_mechanisms`, where nothing else is used of them).

    With replacement each place holds one of the group with probability `size` / n, and is then
    filled otherwise: it is one record of n / `size`, rounded down. Both is of records that are
    drawn into one batch (`together_in_batches`): at several parties each has a batch to fill.

    Raises `InvalidParameter` unless `size` is a whole number >= 1.
    """
    require_group("size", size)
    larger = partial(grouped, size=size, counted=counted)
    return account if size == 1 else account.in_groups(size, larger)


def together_in_batches(account: Account, size: int) -> bool:
    """Return whether what a group pays holds only of records that live with one party."""
    return any(in_one_batch(mechanism, size) for mechanism in account.others)


def in_one_batch(mechanism: Mechanism, size: int) -> bool:
    """Return whether a group's price is of records that are drawn into one batch."""
    mechanism, _ = unrepeated(mechanism)
    if not isinstance(mechanism, SampledWithoutReplacement | SampledWithReplacement):
        return False
    drawn = mechanism.event.sensitivity.squared > 0
    return drawn and isinstance(grouped(mechanism, size), SampledWithReplacement)


def grouped(mechanism: Mechanism, size: int, *, counted: bool = True) -> Mechanism:
    """Return a mechanism that costs one record at least what `mechanism` costs `size` records.

    Args:
        mechanism: of one record.
        size: of the group.
        counted: whether numbers of members in a batch are told apart, or all count as drawn: for
            who prices no numbers, the probability that any is drawn is then a little less.
    """
    match mechanism:
        case GaussianStep() | LaplaceStep():
            return _shifted(mechanism, size)
        case DiscreteGaussianStep(sensitivity=one, noise_std=noise_std):
            return DiscreteGaussianStep(scaled(one, size), noise_std)
        case DiscreteLaplaceStep(sensitivity=one, scale=scale):
            return DiscreteLaplaceStep(scaled(one, size), scale)
        case PureStep(sensitivity=one, scale=scale):
            return PureStep(scaled(one, size), scale)
        case RandomisedResponse():
            return Repeated(mechanism, size)
        case PoissonSampled(event=GaussianStep() as event, rate=rate) if (
            size <= MOST_DRAWN and event.sensitivity.adjacency is not Adjacency.REPLACE_ONE
        ):
            return AccumulatedPoisson(event, rate, size)
        case AccumulatedPoisson(event=event, rate=rate, batches=batches):
            return AccumulatedPoisson(event, rate, batches * size)
        case PoissonSampled(event=event, rate=rate):
            return PoissonSampled(_shifted(event, size), _any_drawn(rate, size))
        case SampledWithoutReplacement(event=event, batch=batch, records=records):
            fewer = (records - size + 1) // batch
            few = fewer > 1 and size <= MOST_COPIES * fewer
            if counted and few and isinstance(event, GaussianStep):
                return SampledWithReplacement(event, size, fewer)
            larger = min(batch * size, records)
            return SampledWithoutReplacement(_shifted(event, size), larger, records)
        case SampledWithReplacement(event=event, batch=batch, records=records):
            return SampledWithReplacement(event, batch, max(1, records // size))
        case GaussianMixtureStep(constant=constant, sampled=sampled):
            rate = min(1.0, float_up(Fraction(mechanism.rate) * size))
            constant, sampled = scaled(constant, size), scaled(sampled, size)
            return GaussianMixtureStep(constant, sampled, rate, mechanism.noise_std)
        case _:
            raise UnpricedMechanism(mechanism, "for a group", "a single mechanism")


def _any_drawn(rate: float, size: int) -> float:
    """Return 1 - (1 - q)^size, rounded up: a fraction of it has as many digits as `size`."""
    with precision(BITS):
        some = -((-ball_of(rate)).log1p() * size).expm1()
        return min(1.0, Enclosure.from_ball(some).upper_float) if rate < 1 else 1.0


def _shifted(step: GaussianStep | LaplaceStep, size: int) -> GaussianStep | LaplaceStep:
    if isinstance(step, GaussianStep):
        return GaussianStep(scaled(step.sensitivity, size), step.noise_std)
    return LaplaceStep(scaled(step.sensitivity, size), step.scale)
