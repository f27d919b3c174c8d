"""Curators: the one way out for private data, read in several ways.

A solver calls `release`; what happens depends on who is reading. The sampling curator reserves the
event, draws noise and commits; the planning curator only notes the event; those of audits
(`dpledger.audits.curators`) give back recorded messages and score them. So plan, run and replay are
one algorithm, and their events are equal by construction: tests compare them.

In comes a `Sensitive` and the noise that the solver asks for; out goes a read-only array that
anybody may see. What a release is priced at is computed before the noise is drawn, from public
numbers only.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from .collectives import ONE_PROCESS, Collectives
from .data_shape import EVERYBODY
from .errors import (
    InvalidParameter,
    UnprotectedReleaseError,
    finite_double,
    require_nonnegative,
    require_own_process,
    require_positive_int,
)
from .events import (
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    LaplaceStep,
    PureStep,
    RandomisedResponse,
    UnprotectedRelease,
)
from .inside import Inside
from .lattice import noise_std_on_lattice, on_lattice, require_within_reach
from .noise import Noise, noisy_step
from .private_data import PrivateDataset
from .protocols import EventSink, FloatArray
from .quiet import quietly
from .refusals import refuse_seconds, require_itself
from .sample import Sample
from .sampling import ExactSampler, Sampler, require_fair
from .sensitive import Sensitive
from .sensitivity import Sensitivity, float_up
from .subsampling import (
    Draw,
    Poisson,
    Scheme,
    are_tied,
    drawn_by,
    drawn_records,
    require_scheme,
)


class Message(NamedTuple):
    """A recorded message: its event and its content, of shape (..., P, d)."""

    event: Event
    content: FloatArray


def noise_std_for(sensitivity: Sensitivity, noise_multiplier: float) -> float:
    """Return the smallest binary64 noise_std with noise_std / sensitivity >= `noise_multiplier`."""
    require_nonnegative("noise_multiplier", noise_multiplier)
    return float_up(Fraction(noise_multiplier) * sensitivity.root)


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What a curator is about to deliver.

    Args:
        sensitive: the value, of shape (..., P, d).
        event: that will stand in the ledger.
        scale: of noise that is added: its standard deviation, or the scale of Laplace noise; 0
            where none is.
        stand_in: what a plan assumes an unprotected message to be.
    """

    sensitive: Sensitive
    event: Event
    scale: float
    stand_in: FloatArray | None = None


def _payers(sensitive: Sensitive) -> tuple[str, ...]:
    """Return the parties whose records pay for a release; none where everybody's do."""
    return () if sensitive.parties == EVERYBODY else sensitive.parties


class Curator(Inside, ABC):
    """What stands between private data and the world, and between a party and the others."""

    collectives: Collectives = ONE_PROCESS

    def sample(self, dataset: PrivateDataset, scheme: Scheme) -> Sample:
        """Return a hidden sample of the records, for one release by this curator.

        Raises `InvalidParameter` where no amplification rule covers the data's relation.
        """
        require_itself("dataset", dataset, PrivateDataset)
        require_scheme(scheme, dataset.shape.adjacency, dataset.shape.count)
        return self._sample_of(dataset, self._draw(dataset, scheme))

    def release(
        self,
        sensitive: Sensitive,
        *,
        round: int,
        release: str,
        audience: Audience = Audience.SERVER,
        noise_std: float | None = None,
        noise_multiplier: float | None = None,
        mechanism: Noise | None = None,
    ) -> FloatArray:
        """Return the message of shape (..., P, d): `sensitive` plus independent noise.

        The noise is normal, or that of `mechanism`.

        Exact samplers round the value to a lattice 2^-50 as fine as the noise and add an exactly
        rounded normal deviate: the Gaussian mechanism itself, see `lattice`. The event's
        sensitivity contains the rounding, in every reading and for every sampler.

        Messages are read-only: a transcript that a solver could edit would not replay.

        Args:
            sensitive: what to release; one message a party.
            round: of the algorithm, from 1; 0 for what happens before the first.
            release: what this is, in a word.
            audience: who sees it.
            noise_std: in units of the released quantity; or else
            noise_multiplier: noise_std / the event's sensitivity; or else
            mechanism: another mechanism (exactly one of the three). Laplace noise asks for an l1
                sensitivity, discrete noise for whole numbers, which it keeps whole, and
                randomised response for one answer a record, the exponential mechanism for costs of
                candidates (see `noise`).

        Raises:
            InvalidParameter: noise out of range; a sample that was released before; a value that is
                not what its mechanism asks for.
            BudgetExceeded: from the ledger, before any noise is drawn.
        """
        require_itself("sensitive", sensitive, Sensitive)
        given = (noise_std, noise_multiplier, mechanism)
        if sum(one is not None for one in given) != 1:
            raise InvalidParameter(
                "noise", given, "one of noise_std, noise_multiplier and mechanism"
            )
        if mechanism is None:
            return self._release_gaussian(
                sensitive, noise_std, noise_multiplier, (round, release, audience)
            )
        context = Context(_payers(sensitive), round, release, audience)
        step, scale = noisy_step(sensitive, mechanism, partial(self._price, sensitive))
        message = self._deliver(Release(sensitive, Event(step, context), scale))
        message.setflags(write=False)
        return message

    def release_unprotected(
        self,
        sensitive: Sensitive,
        *,
        reason: str,
        round: int,
        release: str,
        audience: Audience = Audience.SERVER,
        stand_in: FloatArray | None = None,
    ) -> FloatArray:
        """Return `sensitive` as it is: the event says why, and epsilon becomes infinite.

        What follows may depend on the released numbers, which a plan cannot know.

        Args:
            sensitive: what to release; one message a party.
            reason: why it is released so, in a sentence for the ledger and the report.
            round: as for `release`.
            release: as for `release`.
            audience: as for `release`.
            stand_in: of shape (P, d): what a plan assumes the numbers to be; zeros without it.
        """
        require_itself("sensitive", sensitive, Sensitive)
        if sensitive.sampled_part is not None:
            sensitive.sampled_part.draw.use(self)
        context = Context(_payers(sensitive), round, release, audience)
        event = Event(UnprotectedRelease(reason), context)
        message = self._deliver(Release(sensitive, event, 0.0, stand_in))
        message.setflags(write=False)
        return message

    def _release_gaussian(
        self,
        sensitive: Sensitive,
        noise_std: float | None,
        noise_multiplier: float | None,
        where: tuple[int, str, Audience],
    ) -> FloatArray:
        if noise_std is None:
            assert noise_multiplier is not None
            noise_std = self._noise_std(sensitive, noise_multiplier)
        noise_std, part = finite_double("noise_std", noise_std), sensitive.sampled_part
        price = self._price(sensitive, noise_std)
        mechanism = (
            GaussianStep(price(sensitive.sensitivity), noise_std)
            if part is None
            else part.mapped(price).mechanism(noise_std)
        )
        context = Context(_payers(sensitive), *where)
        if part is not None:
            part.draw.use(self)
        message = self._deliver(Release(sensitive, Event(mechanism, context), noise_std))
        message.setflags(write=False)
        return message

    def _noise_std(self, sensitive: Sensitive, noise_multiplier: float) -> float:
        """Return the noise_std that is this multiple of the event's sensitivity."""
        require_nonnegative("noise_multiplier", noise_multiplier)
        return noise_std_on_lattice(
            sensitive.sensitivity, sensitive.rounding, noise_multiplier, rows=sensitive.rows
        )

    def _price(
        self, sensitive: Sensitive, noise_std: float
    ) -> Callable[[Sensitivity], Sensitivity]:
        """Return what the release makes of a sensitivity: that of the value on its lattice."""
        require_within_reach(sensitive.rounding.magnitude, scale=noise_std)
        rounding, rows = sensitive.rounding, sensitive.rows
        return partial(on_lattice, rounding=rounding, scale=noise_std, rows=rows)

    @abstractmethod
    def _draw(self, dataset: PrivateDataset, scheme: Scheme) -> Draw:
        """Return a fresh sample of the data set's records."""

    @abstractmethod
    def _deliver(self, release: Release) -> FloatArray:
        """Return the message of shape (..., P, d); what a curator is differs here and in `_draw`
        only.
        """


@refuse_seconds
class SamplingCurator(Curator):
    """Draws noise and writes events to a sink: a real run, or many trials of one at once.

    Args:
        sink: where events are reserved and committed: a ledger.
        sampler: where noise comes from.
        trials: leading axis of every message for B independent trials; None for a single run.
            B trials release B times what the events price once, so a real release has none.
        record: whether to keep the transcript.

    Raises:
        InvalidParameter: trials of noise that nobody can draw again, which only a release needs;
            a sampler of one's own whose words are not of 64 bits that change.

    `release` raises `UnprotectedReleaseError` for trials on an analyst's handle, and `ForkedCopy`
    in another process than that which made the curator.
    """

    def __init__(
        self, sink: EventSink, sampler: Sampler, *, trials: int | None = None, record: bool = False
    ) -> None:
        if trials is not None:
            require_positive_int("trials", trials)
            if sampler.provenance.seed is None:
                raise InvalidParameter("trials", trials, "None unless the sampler is seeded")
        require_fair(sampler)
        self._sink = sink
        self._sampler = sampler
        self._provenance = replace(sampler.provenance, trials=trials)
        self._lead = () if trials is None else (trials,)
        self._record = record
        self.transcript: list[Message] = []
        self._process = os.getpid()

    def _draw(self, dataset: PrivateDataset, scheme: Scheme) -> Draw:
        require_own_process(self._process, "a curator")
        if self._lead and not self._may_repeat(dataset):
            raise self._many_answers()
        party_of = self._party_of(dataset)
        while True:
            uniforms = self._uniforms(len(party_of))
            drawn = drawn_records(scheme, uniforms, party_of)
            if isinstance(scheme, Poisson) or not are_tied(uniforms, drawn, party_of):
                return drawn_by(self, scheme, drawn)

    def _uniforms(self, records: int) -> FloatArray:
        """Return a uniform number for each record, which decide who is drawn."""
        return self._sampler.uniform((*self._lead, records))

    def _deliver(self, release: Release) -> FloatArray:
        require_own_process(self._process, "a curator")
        sensitive, event = release.sensitive, release.event
        if sensitive.planned:
            raise InvalidParameter("sensitive", sensitive, "with a value: plans have none")
        lead = self._shape_of(sensitive)[:-2]
        if lead not in ((), self._lead):
            raise InvalidParameter("trials of the value", lead, f"() or {self._lead}")
        if self._lead and not self._is_auditable(sensitive):
            raise self._many_answers()
        noisy = self._noise(release)
        token = self._sink.reserve((event,), self._provenance)
        content = self._noisy(release, noisy)
        message = Message(event, content)
        self._keep(message)
        self._sink.commit(token, content)
        if self._record:
            # now, and not before: a message that the sink refuses has not left
            self.transcript.append(message)
        return content

    def _many_answers(self) -> UnprotectedReleaseError:
        """Return the refusal of trials on an analyst's handle."""
        return UnprotectedReleaseError(
            f"trials={self._provenance.trials} would answer as often at the price of one release: "
            "they are for handles made of the records by whoever holds them (audits.AuditDataset)."
        )

    def _noise(self, release: Release) -> Callable[[FloatArray], FloatArray]:
        """Return what makes a message of a value; raise `InvalidParameter` if the sampler cannot.

        It draws as many bits whatever the value is.
        """
        mechanism, scale, sampler = release.event.mechanism, release.scale, self._sampler
        discrete = DiscreteLaplaceStep | DiscreteGaussianStep | RandomisedResponse | PureStep
        if not isinstance(mechanism, discrete):
            if scale == 0.0:
                # adding zero makes -0.0 the same as 0.0: its sign can be a private bit
                return lambda value: value + 0.0
            if not isinstance(mechanism, LaplaceStep):
                return lambda value: sampler.gaussian(value, scale)
        if not isinstance(sampler, ExactSampler):
            raise InvalidParameter("sampler", type(sampler).__name__, "an ExactSampler")
        match mechanism:
            case RandomisedResponse(truth=truth, categories=categories):
                return lambda value: sampler.randomised_response(value, truth, categories)
            case PureStep():
                return lambda value: sampler.choice(value, scale)
            case DiscreteLaplaceStep():
                return lambda value: sampler.discrete_laplace(value, scale)
            case DiscreteGaussianStep():
                return lambda value: sampler.discrete_gaussian(value, scale)
            case _:
                return lambda value: sampler.laplace(value, scale)

    def _noisy(self, release: Release, noisy: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the message, once it is paid for.

        Here alone the private value has a name: a traceback of what the sink or the sampler raises,
        printed with the frames' variables, does not show it.
        """

        def drawn() -> FloatArray:
            value = self._value_of(release.sensitive)
            assert value is not None
            return noisy(np.broadcast_to(value, (*self._lead, *value.shape[-2:])))

        return quietly(drawn, "sampler", "a source of noise that answers")

    def _keep(self, message: Message) -> None:
        """Take note of a message whose noise is drawn, before it leaves; here of none."""


class PlanningCurator(Curator):
    """Notes events; has no data, and answers with zeros of the message's shape (P, d).

    Args:
        ideal: whether to note the mechanism of a paper, with real numbers and real noise, in place
            of the one that runs here, which pays for its arithmetic. A promise is judged by it; no
            run's ledger agrees with it.
    """

    def __init__(self, *, ideal: bool = False) -> None:
        self.events: list[Event] = []
        self._ideal = ideal

    def _noise_std(self, sensitive: Sensitive, noise_multiplier: float) -> float:
        if self._ideal:
            return noise_std_for(sensitive.sensitivity, noise_multiplier)
        return super()._noise_std(sensitive, noise_multiplier)

    def _price(
        self, sensitive: Sensitive, noise_std: float
    ) -> Callable[[Sensitivity], Sensitivity]:
        return (lambda same: same) if self._ideal else super()._price(sensitive, noise_std)

    def _draw(self, dataset: PrivateDataset, scheme: Scheme) -> Draw:
        return drawn_by(self, scheme)

    def _deliver(self, release: Release) -> FloatArray:
        sensitive = release.sensitive
        if not sensitive.planned:
            raise InvalidParameter("sensitive", sensitive, "planned: a plan must not touch data")
        self.events.append(release.event)
        shape = (sensitive.rows, sensitive.dimension)
        if release.stand_in is None:
            return np.zeros(shape)
        return np.broadcast_to(release.stand_in, shape).copy()
