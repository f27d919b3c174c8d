"""Our mechanisms as Google's `DpEvent`s and back, for the kinds that both know.

A `DpEvent` knows a noise multiplier only: no units, no relation. Ours goes out as noise_std /
sensitivity, and the sensitivity holds the factor of replace-one already. So what goes out is to be
read under *their* add/remove relation, where they add no factor, whatever ours is. (Under their
replace-one, their PLD accountant would double a Gaussian's sensitivity a second time and their RDP
accountant would not.) Kinds that are about replacing a record, randomised response and sampling
without replacement, stay under replace-one.

What a binary64 cannot hold is rounded towards more epsilon, both ways: noise and lies down, truth
and noise parameters (the inverse of a scale) up.

Outside data become a `DpEvent` here by type alone; `DpEvent.from_named_tuple` imports whatever
module the data name, and is never called.
"""

from fractions import Fraction
from numbers import Integral
from typing import Any

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import (
    DpledgerError,
    Number,
    require_positive,
    require_positive_int,
    require_rate,
)
from ..mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    UnprotectedRelease,
)
from ..mechanisms.extras import import_extra
from ..mechanisms.sensitivity import Norm, Sensitivity, declared, float_down, float_up


class Untranslatable(DpledgerError, ValueError):
    """One library has no word for what the other means. This says nothing about privacy."""


def dp_accounting() -> Any:
    """Return the module, or raise `MissingExtra` naming the extra that installs it."""
    return import_extra("dp_accounting", "crosscheck")


def dp_event_of(mechanism: Mechanism) -> Any:
    """Return a mechanism as a `DpEvent`, to be read under their add/remove relation.

    Raises:
        Untranslatable: they have no such event.
        MissingExtra: dp-accounting is not installed.
    """
    peer = dp_accounting()
    match mechanism:
        case Repeated():
            return peer.SelfComposedDpEvent(dp_event_of(mechanism.event), mechanism.times)
        case UnprotectedRelease():
            return peer.NonPrivateDpEvent()
        case PoissonSampled():
            return peer.PoissonSampledDpEvent(mechanism.rate, dp_event_of(mechanism.event))
        case SampledWithoutReplacement():
            return peer.SampledWithoutReplacementDpEvent(
                mechanism.records, mechanism.batch, dp_event_of(mechanism.event)
            )
        case RandomisedResponse():
            return _randomised_response(peer, mechanism)
        case GaussianStep() | LaplaceStep() | DiscreteLaplaceStep():
            return _additive(peer, mechanism)
        case DiscreteGaussianStep() | GaussianMixtureStep() | Parties():
            raise Untranslatable(
                f"Expected a kind that both know instead got {type(mechanism).__name__}."
            )


def _additive(peer: Any, mechanism: GaussianStep | LaplaceStep | DiscreteLaplaceStep) -> Any:
    size = mechanism.sensitivity.root
    if size == 0:
        return peer.NoOpDpEvent()
    noise = mechanism.noise_std if isinstance(mechanism, GaussianStep) else mechanism.scale
    if noise == 0:
        return peer.NonPrivateDpEvent()
    multiplier = float_down(Fraction(noise) / size)
    if isinstance(mechanism, GaussianStep):
        return peer.GaussianDpEvent(multiplier)
    if isinstance(mechanism, LaplaceStep):
        return peer.LaplaceDpEvent(multiplier)
    if size.denominator != 1:
        raise Untranslatable(f"sensitivity={size} must be of integer vectors a whole number.")
    return peer.dp_event.DiscreteLaplaceDpEvent(float_up(1 / Fraction(noise)), int(size))


def _randomised_response(peer: Any, mechanism: RandomisedResponse) -> Any:
    # theirs draws uniformly, the true answer included, with probability p: truth = 1 - p + p/k
    categories, lie = mechanism.categories, 1 - Fraction(mechanism.truth)
    uniform = lie * categories / (categories - 1)
    if uniform > 1:
        raise Untranslatable(
            f"truth={mechanism.truth} must be in [1/{categories}, 1]; theirs never lies more."
        )
    if uniform == 1:
        return peer.NoOpDpEvent()
    return peer.RandomizedResponseDpEvent(float_down(uniform), categories)


def mechanism_of(event: Any, *, adjacency: Adjacency, sensitivity: Number) -> tuple[Mechanism, ...]:
    """Return the mechanisms that a `DpEvent` composes: `Repeated` what runs several times.

    A repeated composition is a composition of repetitions, as the cost does not depend on the
    order; so a document's counts stay numbers.

    Args:
        event: an instance of one of their event classes.
        adjacency: the relation that the mechanisms shall speak of.
        sensitivity: of the released sum under that relation, in units of the bound on one record's
            contribution: 1 under add/remove and zero-out, 2 under replace-one, unless the noise
            multiplier was stated against the whole sensitivity (as `dp_event_of` states it): 1.

    Raises:
        Untranslatable: an event that has no meaning here, or a count that is no whole number.
        InvalidParameter: a number outside its range.
        MissingExtra: dp-accounting is not installed.
    """
    require_positive("sensitivity", sensitivity)
    size = declared(
        sensitivity, "a DpEvent's noise multiplier is stated against this", adjacency=adjacency
    )
    return tuple(_mechanisms(dp_accounting(), event, size))


def _mechanisms(peer: Any, event: Any, size: Sensitivity) -> list[Mechanism]:
    kind = type(event)
    if kind is peer.NoOpDpEvent:
        return []
    if kind is peer.ComposedDpEvent:
        return [found for part in event.events for found in _mechanisms(peer, part, size)]
    if kind is peer.SelfComposedDpEvent:
        inner, count = _mechanisms(peer, event.event, size), _whole("count", event.count)
        return [Repeated(found, count) for found in inner] if count else []
    if kind is peer.NonPrivateDpEvent:
        return [UnprotectedRelease("a NonPrivateDpEvent")]
    if kind is peer.GaussianDpEvent or kind is peer.LaplaceDpEvent:
        return [_noise_step(peer, event, size)]
    if kind is peer.dp_event.DiscreteLaplaceDpEvent:
        require_positive("noise_parameter", event.noise_parameter)
        sensitivity = _l1(size, _whole("sensitivity", event.sensitivity))
        return [DiscreteLaplaceStep(sensitivity, float_down(1 / Fraction(event.noise_parameter)))]
    if kind is peer.RandomizedResponseDpEvent:
        return [_mechanism_of_response(event)]
    if kind is peer.PoissonSampledDpEvent:
        return [PoissonSampled(_noise_step(peer, event.event, size), event.sampling_probability)]
    if kind is peer.SampledWithoutReplacementDpEvent:
        batch, records = (
            _whole(n, getattr(event, n)) for n in ("sample_size", "source_dataset_size")
        )
        return [SampledWithoutReplacement(_noise_step(peer, event.event, size), batch, records)]
    raise Untranslatable(f"Expected a kind that both know instead got {kind.__name__}.")


def _mechanism_of_response(event: Any) -> RandomisedResponse:
    categories, uniform = _whole("num_buckets", event.num_buckets), event.noise_parameter
    require_rate("noise_parameter", uniform)
    require_positive_int("num_buckets", categories)
    # epsilon is ln(truth·(k - 1)/lie): more truth and less lie cost more
    return RandomisedResponse(
        float_up(1 - Fraction(uniform) * (categories - 1) / categories), categories
    )


def _whole(name: str, value: Any) -> int:
    """Return a count as it stands: one cut down to a whole number would cost less than what ran."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise Untranslatable(f"{name}={value!r:.80} must be a whole number in [0, inf).")
    return int(value)


def _noise_step(peer: Any, event: Any, size: Sensitivity) -> GaussianStep | LaplaceStep:
    if type(event) is peer.GaussianDpEvent:
        return GaussianStep(size, event.noise_multiplier)
    if type(event) is peer.LaplaceDpEvent:
        return LaplaceStep(_l1(size, 1), event.noise_multiplier)
    raise Untranslatable(
        f"Expected a Gaussian or Laplace event to be sampled instead got {type(event).__name__}."
    )


def _l1(size: Sensitivity, factor: int) -> Sensitivity:
    reason = size.assumptions[0]
    return declared(size.root * factor, reason, adjacency=size.adjacency, norm=Norm.L1)
