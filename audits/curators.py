"""Curators of audits: they record, give back and score messages, and look at private values.

All work on handles made of the records by whoever holds them (`datasets`), and on no analyst's.

    RecordingCurator     a run, with the uniform numbers behind its hidden samples
    TranscriptCurator    gives back recorded messages, and shows their values to `_notice`
    ReplayCurator        adds up the log-density of a transcript: the Neyman-Pearson attack
    NoiselessCurator     sends private values as they are, and refuses to sample
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from ..mechanisms.curators import Curator, Message, Release, SamplingCurator
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.events import (
    DiscreteLaplaceStep,
    LaplaceStep,
    PureStep,
    RandomisedResponse,
)
from ..mechanisms.inside import party_of, private_value
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import EventSink, FloatArray
from ..mechanisms.sampling import Sampler
from ..mechanisms.subsampling import Draw, Scheme, alternatives, drawn_by, drawn_records


def log_density_of(content: FloatArray, value: FloatArray, scale: float) -> FloatArray:
    """Return the log-density of messages (..., P, d), one a trial, up to a constant of the noise.

    Without noise a message is equal to the value, or infinitely unlikely.

    Args:
        content: what was sent.
        value: what the data at hand would have said without noise.
        scale: standard deviation of normal noise.
    """
    residual = content - value
    if scale == 0.0:
        return np.where(np.all(residual == 0.0, axis=(-2, -1)), 0.0, -np.inf)
    squared = np.einsum("...pd,...pd->...", residual, residual)
    return np.asarray(-squared / (2.0 * scale**2))


def log_density(release: Release, content: FloatArray, value: FloatArray) -> FloatArray:
    """Return the log-density of messages (..., P, d) of a release, had its value been `value`.

    One a trial, up to a constant of the noise. On whole numbers the discrete laws have the same
    density as the others, up to that constant.
    """
    match release.event.mechanism:
        case RandomisedResponse(truth=truth, categories=categories):
            with np.errstate(divide="ignore"):
                true, other = np.log([truth, (1.0 - truth) / (categories - 1)])
            return np.asarray(np.where(content == value, true, other).sum(axis=(-2, -1)))
        case PureStep() if release.scale > 0.0:  # the exponential mechanism: value has costs
            weights = -value / release.scale
            total = logsumexp(weights, axis=-1, keepdims=True)
            return np.asarray((content * (weights - total)).sum(axis=(-2, -1)))
        case LaplaceStep() | DiscreteLaplaceStep() if release.scale > 0.0:
            return np.asarray(-np.abs(content - value).sum(axis=(-2, -1)) / release.scale)
        case _:
            return log_density_of(content, value, release.scale)


def shown_value(release: Release) -> FloatArray:
    """Return the private value of what is being released, for audits.

    Raises `InvalidParameter` under planning, `UnprotectedReleaseError` on an analyst's handle.
    """
    value = private_value(release.sensitive)
    if value is None:
        raise InvalidParameter("sensitive", release.sensitive, "with a value: plans have none")
    return value


class NoiselessCurator(Curator):
    """Sends values without noise; who is drawn is hidden, so it refuses runs with samples."""

    def _draw(self, dataset: PrivateDataset, scheme: Scheme) -> Draw:
        raise InvalidParameter("scheme", scheme, "None: who is drawn is hidden")

    def _deliver(self, release: Release) -> FloatArray:
        return np.array(shown_value(release))


class RecordingCurator(SamplingCurator):
    """A run that keeps its transcript, and the uniform numbers that decided who was drawn.

    Args: as for `SamplingCurator`.
    """

    def __init__(self, sink: EventSink, sampler: Sampler, *, trials: int | None = None) -> None:
        super().__init__(sink, sampler, trials=trials, record=True)
        self.uniforms: list[FloatArray] = []

    def _draw(self, dataset: PrivateDataset, scheme: Scheme) -> Draw:
        """Draw a sample, for handles made by whoever holds the records alone."""
        party_of(dataset)  # refuses an analyst's handle: how many and who was drawn is recorded
        return super()._draw(dataset, scheme)

    def _uniforms(self, records: int) -> FloatArray:
        """Return fresh uniform numbers, one a record, and keep them."""
        found = super()._uniforms(records)
        self.uniforms.append(found)
        return found


class TranscriptCurator(Curator):
    """Gives back recorded messages in order.

    Args:
        transcript: of the run.
        uniforms: of the run; needed where it sampled.
    """

    def __init__(
        self, transcript: Sequence[Message], *, uniforms: Sequence[FloatArray] = ()
    ) -> None:
        self._transcript = transcript
        self._next = 0
        self._left = iter(uniforms)

    def _next_uniforms(self, records: int) -> FloatArray:
        """Return the numbers that decided the next sample."""
        found = next(self._left, None)
        if found is None or found.shape[-1] != records:
            raise InvalidParameter("uniforms", None, f"one of {records} records for each sample")
        return found

    def _draw(self, dataset: PrivateDataset, scheme: Scheme) -> Draw:
        """Draw again who was drawn in the run, by its uniform numbers."""
        parties = party_of(dataset)
        return drawn_by(
            self, scheme, drawn_records(scheme, self._next_uniforms(len(parties)), parties)
        )

    def _deliver(self, release: Release) -> FloatArray:
        """Return the next recorded message.

        Raises `InvalidParameter` where the replay asks for another event than was recorded, or for
        more.
        """
        value = shown_value(release)
        if self._next >= len(self._transcript):
            raise InvalidParameter("transcript", len(self._transcript), "as long as the replay")
        recorded, content = self._transcript[self._next]
        if recorded != release.event:
            raise InvalidParameter(f"event {self._next}", release.event, f"equal to {recorded}")
        self._next += 1
        self._notice(release, value, content)
        return content

    def _notice(self, release: Release, value: FloatArray, content: FloatArray) -> None:
        """Do with a message, and with the value on the data at hand, what the audit is for."""


class ReplayCurator(TranscriptCurator):
    """Adds up the log-density of recorded messages under the data at hand.

    After a replay `log_density` has one entry a trial, up to a constant that the event list fixes:
    the difference of two replays of one transcript is the log-likelihood ratio.

    Where samples are hidden it is the ratio for an adversary who knows the other records' part in
    every sample, and of the record `differing` only the probability to be drawn.

    Args:
        transcript, uniforms: as for `TranscriptCurator`.
        differing: index of the record in which the two data sets differ, in the order of input;
            needed where the run sampled.
    """

    def __init__(
        self,
        transcript: Sequence[Message],
        *,
        uniforms: Sequence[FloatArray] = (),
        differing: int | None = None,
    ) -> None:
        super().__init__(transcript, uniforms=uniforms)
        self._differing = differing
        self._density: FloatArray = np.zeros(())

    @property
    def log_density(self) -> FloatArray:
        """The log-density of the whole transcript.

        Raises `InvalidParameter` while there are messages that the replay did not ask for.
        """
        if self._next < len(self._transcript):
            raise InvalidParameter("transcript", len(self._transcript), f"of length {self._next}")
        return self._density

    def _draw(self, dataset: PrivateDataset, scheme: Scheme) -> Draw:
        """Return both alternatives of the differing record's part in the sample, with their
        probabilities.
        """
        parties = party_of(dataset)
        uniforms = self._next_uniforms(len(parties))
        if self._differing is None or not 0 <= self._differing < len(parties):
            raise InvalidParameter("differing", self._differing, f"in [0, {len(parties) - 1}]")
        return alternatives(self, scheme, uniforms, parties, self._differing)

    def _notice(self, release: Release, value: FloatArray, content: FloatArray) -> None:
        """Add a message's log-density, a mixture's where the differing record may or may not have
        been drawn.
        """
        density = log_density(release, content, value)
        part = release.sensitive.sampled_part
        weights = None if part is None else self._probabilities_of(part.draw)
        if weights is not None:
            weights = weights.reshape(-1, *(1,) * (density.ndim - 1))
            density = np.asarray(logsumexp(density, axis=0, b=weights))
        self._density = self._density + density
