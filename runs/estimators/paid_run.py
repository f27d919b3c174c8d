"""A run that is priced by its plan, paid for in one piece before any noise is drawn, and certified.

The whole plan is one reservation: a budget that cannot pay for all of it pays for nothing, also
when several fits ask at once; and what was reserved counts as spent even if the run breaks off.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from typing import Generic, TypeVar
from uuid import uuid4

import numpy as np

from ...accounting.guarantees import Guarantee
from ...accounting.ledger import Ledger, MemoryLedger
from ...accounting.planning import Calibration, UnattainableTarget, calibrate_noise_multiplier
from ...accounting.proof.certificate import Certificate, certify
from ...mechanisms.curators import Curator, SamplingCurator
from ...mechanisms.errors import InvalidParameter, Number, require_positive
from ...mechanisms.events import Event
from ...mechanisms.protocols import FloatArray, Provenance
from ...mechanisms.sampling import Sampler
from ...solvers.planning import planned_events

__all__ = ["History", "NoiseStream", "PaidRun", "PublicRound", "paid_run"]

D = TypeVar("D")
T = TypeVar("T")

_ATTEMPTS = 8

NoiseStream = Callable[[int, int], Sampler]
"""From two whole numbers to the sampler of the stream that they name."""


@dataclass(frozen=True, eq=False, slots=True)
class PublicRound:
    """What a round made public.

    Args:
        round: from 1.
        point: the model of shape (d,), in the solver's units; of a vertical run, the scores (N,).
        change: distance from the point of the round before (at first, from 0).
    """

    round: int
    point: FloatArray
    change: float


class History:
    """Collects the public rounds of one run."""

    def __init__(self) -> None:
        self.rounds: list[PublicRound] = []

    def add(self, round: int, point: FloatArray) -> None:
        """Note the point of the next round."""
        before = self.rounds[-1].point if self.rounds else np.zeros_like(point)
        change = float(np.linalg.norm(point - before))
        self.rounds.append(PublicRound(round, point, change))


@dataclass(frozen=True, eq=False, slots=True)
class PaidRun(Generic[T]):
    """What came of a run, what it guarantees, and where that is written down.

    `guarantee` is of the planned events, which are those of the run: any other was refused.
    """

    result: T
    noise_multiplier: float
    guarantee: Guarantee
    certificate: Certificate
    ledger: Ledger


class _Prepaid:
    """The sink of a run that has paid for its plan: events must be the planned ones, in order."""

    def __init__(self, plan: Sequence[Event]) -> None:
        self._left = list(reversed(plan))

    def reserve(self, events: Sequence[Event], provenance: Provenance) -> int:
        for event in events:
            planned = self._left.pop() if self._left else None
            if event != planned:
                raise InvalidParameter("event", event, f"as planned: {planned}")
        return 0

    def commit(self, token: int) -> None:
        """Do nothing: the reservation of the whole plan is committed at the end."""


def paid_run(
    work: Callable[[float, D, Curator], T],
    *,
    planned: D,
    private: D,
    name: str,
    epsilon: Number,
    delta: Number,
    ledger: Ledger | None,
    noise: NoiseStream,
) -> PaidRun[T]:
    """Return `work` on private data, at the least noise that meets (epsilon, delta).

    Args:
        work: from noise multiplier, data and curator to a result; planned and run alike.
        planned: the data's handle without records; noise is calibrated on it.
        private: the records.
        name: of what runs, for the ledger.
        epsilon: what neither the certified epsilon of the plan nor that of its certificate must
            exceed, > 0.
        delta: in (0, 1).
        ledger: where the run is written and paid for; None for a fresh one in memory.
        noise: where noise comes from. It is asked for the stream of this plan in this place of the
            ledger: two fits with one noise would tell more than both pay for.

    Raises before any noise is drawn, with nothing spent:
        UnattainableTarget: no noise meets the target.
        Uncertifiable: no certificate of the plan can be written.
        BudgetExceeded: what remains of the ledger's budget does not pay for the plan.
        UnpricedMechanism: its budget is of a kind that cannot pay for a planned mechanism.
        AdjacencyMismatch: its budget is for another relation.
    """

    def plan(noise_multiplier: float) -> tuple[Event, ...]:
        return planned_events(partial(work, noise_multiplier), planned)

    found, certificate = _certified(plan, epsilon, delta)
    events = certificate.events
    book = MemoryLedger() if ledger is None else ledger
    run = book.run(
        f"{name} {datetime.now(UTC).isoformat(timespec='seconds')} {uuid4().hex[:8]}",
        configuration_hash=certificate.subject,
        plan=events,
    )
    place = [summary.run for summary in book.runs()].index(run.run)
    sampler = noise(int(certificate.subject, 16), place)
    token = run.reserve(events, sampler.provenance)
    result = work(found.noise_multiplier, private, SamplingCurator(_Prepaid(events), sampler))
    run.commit(token)
    return PaidRun(result, found.noise_multiplier, found.guarantee, certificate, book)


def _certified(
    plan: Callable[[float], Sequence[Event]], epsilon: Number, delta: Number
) -> tuple[Calibration, Certificate]:
    """Return about the least noise whose guarantee and whose certificate both meet the target.

    Gaussian steps have both alike; a certificate of other mechanisms may be a little dearer.
    """
    require_positive("epsilon", epsilon)
    target = Fraction(epsilon)
    for _ in range(_ATTEMPTS):
        found = calibrate_noise_multiplier(plan, target_epsilon=target, delta=delta)
        certificate = certify(plan(found.noise_multiplier), delta=delta)
        if certificate.epsilon <= epsilon:
            return found, certificate
        target *= (Fraction(epsilon) / Fraction(certificate.epsilon)) ** 2
    raise UnattainableTarget(
        f"Expected a certificate of epsilon={epsilon!r} or less instead got none."
    )
