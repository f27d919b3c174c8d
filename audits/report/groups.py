"""Events by kind: what a report says about releases, read off the event list alone.

A run of a thousand agents and a hundred rounds has a hundred thousand events; a report has a line
for each kind of them, with the ranges of their numbers. Nothing here trusts the narrative: names,
sensitivities, noise and sampling are those that the accountant priced.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, inf, sqrt

from ...mechanisms.events import (
    AccumulatedPoisson,
    Audience,
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
)
from ...mechanisms.sensitivity import Derivation, Sensitivity, added, float_up
from .record import AudienceView, MechanismGroup, Range, UnprotectedGroup, finite_or_word

_EVERY_RECORD = "none: every record enters"
"""The sampling scheme of a mechanism that samples nothing."""


@dataclass(frozen=True, slots=True)
class MessageKind:
    """A mechanism of an event without its wrappers, in a report's words.

    Args:
        event: that it is part of.
        parties: who sent it.
        times: how many messages.
        sampling: the scheme, in words.
        mechanism: its name.
        sensitivity: of the release; None where the mechanism has none.
        noise_std: standard deviation of the noise, in units of the release.
        reason: why there was no mechanism; None where there was one.
    """

    event: Event
    parties: tuple[str, ...]
    times: int
    sampling: str = _EVERY_RECORD
    mechanism: str = "none"
    sensitivity: Sensitivity | None = None
    noise_std: float | None = None
    reason: str | None = None

    @property
    def release(self) -> str:
        """What was released, in a word."""
        return self.event.context.release

    @property
    def audience(self) -> Audience:
        """Who sees it."""
        return self.event.context.audience

    @property
    def noise_multiplier(self) -> float | None:
        """noise_std / sensitivity; infinite for what does not depend on the data."""
        if self.sensitivity is None or self.noise_std is None:
            return None
        return self.noise_std / self.sensitivity.value if self.sensitivity.squared else inf


def message_kinds(events: Iterable[Event]) -> Iterator[MessageKind]:
    """Yield every mechanism of every event, parties and repetitions counted.

    Args:
        events: of a run or a plan, in order.
    """
    for event in events:
        parties = event.context.parties
        kind = MessageKind(event, parties, max(1, len(parties)))
        yield from _unwrapped(kind, event.mechanism)


def mechanism_groups(kinds: Iterable[MessageKind]) -> tuple[MechanismGroup, ...]:
    """Return protected releases grouped by name, audience, mechanism, sampling and derivation.

    Args:
        kinds: of all events.

    A group's derivation is that of its largest sensitivity.
    """
    protected = (kind for kind in kinds if kind.reason is None)
    return tuple(_mechanism_group(group) for group in _grouped(protected, _likeness))


def unprotected_groups(kinds: Iterable[MessageKind]) -> tuple[UnprotectedGroup, ...]:
    """Return releases without a mechanism, grouped by their reason."""
    unprotected = (kind for kind in kinds if kind.reason is not None)
    return tuple(
        UnprotectedGroup(
            release=names_between([kind.release for kind in group]),
            messages=sum(kind.times for kind in group),
            reason=str(group[0].reason),
        )
        for group in _grouped(unprotected, lambda kind: kind.reason)
    )


def audience_views(kinds: Iterable[MessageKind]) -> tuple[AudienceView, ...]:
    """Return how many messages of which kind each audience sees.

    Args:
        kinds: of all events; protected ones are grouped by release, others by their reason.
    """
    return tuple(
        AudienceView(
            audience=group[0].audience.value,
            release=names_between([kind.release for kind in group]),
            protected=group[0].reason is None,
            messages=sum(kind.times for kind in group),
        )
        for group in _grouped(kinds, lambda kind: (kind.audience, kind.reason or kind.release))
    )


def seen_by(views: Sequence[AudienceView], audience: Audience) -> str:
    """Return in a sentence which messages are addressed to an audience.

    Args:
        views: of all audiences.
        audience: whose messages.
    """
    own = [view for view in views if view.audience == audience.value]
    if not own:
        return "no message is addressed to them; they see what is published"
    names = names_between(list(dict.fromkeys(view.release for view in own)))
    return f"every message addressed to them: {sum(view.messages for view in own):,} ({names})"


def sampling_executed(kinds: Iterable[MessageKind]) -> str:
    """Return the sampling schemes that the events speak of."""
    return "; ".join(dict.fromkeys(kind.sampling for kind in kinds)) or "no release"


def _unwrapped(kind: MessageKind, mechanism: Mechanism) -> Iterator[MessageKind]:
    """Yield what a mechanism is made of, each with how often and by whom it was sent.

    Args:
        kind: what is known of the event so far.
        mechanism: repeated, sampled or divided by parties; looked through until one adds noise.
    """
    match mechanism:
        case Repeated():
            times = kind.times * mechanism.times
            yield from _unwrapped(replace(kind, times=times), mechanism.event)
        case Parties():
            for name, parts in mechanism.parts:
                for part in parts:
                    yield from _unwrapped(replace(kind, parties=(name,)), part)
        case PoissonSampled():
            scheme = f"Poisson, rate {mechanism.rate:.6g}"
            yield from _unwrapped(replace(kind, sampling=scheme), mechanism.event)
        case AccumulatedPoisson():
            scheme = f"{mechanism.batches:,} Poisson samples summed, rate {mechanism.rate:.6g}"
            yield from _unwrapped(replace(kind, sampling=scheme), mechanism.event)
        case SampledWithoutReplacement():
            scheme = f"{mechanism.batch:,} of {mechanism.records:,} records without replacement"
            yield from _unwrapped(replace(kind, sampling=scheme), mechanism.event)
        case SampledWithReplacement():
            scheme = f"{mechanism.batch:,} of {mechanism.records:,} records with replacement"
            yield from _unwrapped(replace(kind, sampling=scheme), mechanism.event)
        case UnprotectedRelease():
            yield replace(kind, reason=mechanism.reason)
        case PureStep(sensitivity=sensitivity, scale=scale):
            bare = scale == 0 and sensitivity.squared > 0
            loss = inf if bare else float_up(sensitivity.root / (Fraction(scale) or 1))
            yield replace(
                kind,
                mechanism=f"privacy loss of at most {loss:.6g}",
                sensitivity=sensitivity,
                reason="a pure mechanism without noise" if bare else None,
            )
        case RandomisedResponse():
            words = f"randomised response, {mechanism.categories} answers, "
            yield replace(kind, mechanism=f"{words}truth with probability {mechanism.truth:.6g}")
        case GaussianMixtureStep():
            yield replace(
                kind,
                mechanism="Gaussian mixture",
                sampling=f"part of the shift has probability {mechanism.rate:.6g}",
                sensitivity=added(mechanism.constant, mechanism.sampled),
                noise_std=mechanism.noise_std,
            )
        case _:
            name, noise_std = _noise(mechanism)
            sensitivity = mechanism.sensitivity
            # what does not depend on the data needs no noise; what does and has none is
            # unprotected
            bare = noise_std == 0 and sensitivity.squared > 0
            yield replace(
                kind,
                mechanism=name,
                sensitivity=sensitivity,
                noise_std=noise_std,
                reason=f"{name} mechanism without noise" if bare else None,
            )


def _noise(
    step: GaussianStep | DiscreteGaussianStep | LaplaceStep | DiscreteLaplaceStep,
) -> tuple[str, float]:
    """Return a mechanism's name and the standard deviation of its noise.

    A Laplace scale b is sqrt(2) b; discrete Laplace noise with decay a = e^{-1/b} has variance
    2a/(1 - a)².
    """
    match step:
        case GaussianStep():
            return "Gaussian", step.noise_std
        case DiscreteGaussianStep():
            return "discrete Gaussian", step.noise_std
        case LaplaceStep():
            return "Laplace", sqrt(2) * step.scale
        case DiscreteLaplaceStep():
            decay = exp(-1 / step.scale) if step.scale else 0.0
            return "discrete Laplace", sqrt(2 * decay) / (1 - decay)


def _grouped(
    kinds: Iterable[MessageKind], key: Callable[[MessageKind], Hashable]
) -> list[list[MessageKind]]:
    """Return kinds of equal keys together, groups and members in order of appearance."""
    groups: dict[Hashable, list[MessageKind]] = {}
    for kind in kinds:
        groups.setdefault(key(kind), []).append(kind)
    return list(groups.values())


def _likeness(kind: MessageKind) -> Hashable:
    """Return what releases of one line have in common: all but their numbers."""
    rules = None if kind.sensitivity is None else _rules(kind.sensitivity.derivation)
    return (kind.release, kind.audience, kind.mechanism, kind.sampling, rules)


def _rules(node: Derivation) -> tuple[Hashable, ...]:
    """Return the rules of a derivation without its numbers."""
    return (node.rule, *(_rules(premise) for premise in node.premises))


def _mechanism_group(group: list[MessageKind]) -> MechanismGroup:
    """Return a line about releases that are alike: ranges of numbers, and one derivation."""
    first = group[0]
    known = [kind.sensitivity for kind in group if kind.sensitivity is not None]
    largest = max(known, key=lambda s: s.squared, default=None)
    named = {party for kind in group for party in kind.parties}
    return MechanismGroup(
        release=first.release,
        mechanism=first.mechanism,
        audience=first.audience.value,
        rounds=_span(sorted({kind.event.context.round for kind in group})),
        messages=sum(kind.times for kind in group),
        parties=len(named) or None,
        norm=None if largest is None else largest.norm.value,
        sensitivity=_range(s.value for s in known),
        derivation=None if largest is None else "\n".join(largest.derivation.lines()),
        noise_std=_range(kind.noise_std for kind in group),
        noise_multiplier=_range(kind.noise_multiplier for kind in group),
        sampling=first.sampling,
    )


def _range(values: Iterable[float | None]) -> Range | None:
    """Return the least and the largest of the values that are stated; None where none is."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Range(least=finite_or_word(min(known)), most=finite_or_word(max(known)))


def _span(rounds: Sequence[int]) -> str:
    """Return rounds as a text: one, from first to last, and how many where some are missing."""
    whole = rounds[-1] - rounds[0] + 1 == len(rounds)
    if len(rounds) == 1:
        return str(rounds[0])
    return f"{rounds[0]} to {rounds[-1]}" + ("" if whole else f", {len(rounds)} of them")


def names_between(names: Sequence[str]) -> str:
    """Return names without repetition, the first and the last where there are many."""
    unique = list(dict.fromkeys(names))
    return ", ".join(unique) if len(unique) <= 3 else f"{unique[0]}, …, {unique[-1]}"
