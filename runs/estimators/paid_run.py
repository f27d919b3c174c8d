"""The run of a fit: the least noise that meets a target, paid for in one piece, and proved."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Generic, TypeVar
from uuid import uuid4

import numpy as np

from ...accounting.guarantees import Guarantee
from ...accounting.ledger import Ledger, MemoryLedger
from ...accounting.proof.certificate import Certificate, Uncertifiable
from ...mechanisms.curators import Curator
from ...mechanisms.errors import Number, require_positive_int
from ...mechanisms.events import Event
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sampling import Sampler
from ...solvers.planning import planned_events
from ..pipeline import Terms, calibrate_proved, run_prepaid

D = TypeVar("D")
T = TypeVar("T")

NoiseStream = Callable[[int, int], Sampler]
"""From two whole numbers to the sampler of the stream that they name."""


@dataclass(frozen=True, eq=False, slots=True)
class PublicRound:
    """What a round made public.

    Args:
        round: from 1.
        point: the model of shape (d,), in the solver's units; of exchanges of scores, those (N,).
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


def paid_run(
    work: Callable[[float, D, Curator], T],
    *,
    planned: D,
    private: D,
    name: str,
    epsilon: Number,
    delta: Number,
    records_per_unit: int = 1,
    ledger: Ledger | None,
    noise: NoiseStream,
) -> PaidRun[T]:
    """Return `work` on private data, at the least noise that meets (epsilon, delta).

    Args:
        work: from noise multiplier, data and curator to a result; planned and run alike.
        planned: the data's handle without records; noise is calibrated on it.
        private: the records.
        name: of what runs, for the ledger.
        epsilon: what the proved epsilon of the plan must not exceed, > 0.
        delta: in (0, 1).
        records_per_unit: how many records a unit of privacy (a person) has at most.
        ledger: where the run is written and paid for; None for a fresh one in memory.
        noise: where noise comes from. It is asked for the stream of this plan in this place of the
            ledger: two fits with one noise would tell more than both pay for.

    Raises before any noise is drawn, with nothing spent:
        UnattainableTarget: no noise meets the target.
        Uncertifiable: no proof of the plan is found, or it is more work than the checker allows.
        NotProved, CertificateWrong: the checker refuses what was found.
        BudgetExceeded: what remains of the ledger's budget does not pay for the plan.
        UnpricedMechanism: its budget is of a kind that cannot pay for a planned mechanism.
        AdjacencyMismatch: its budget is for another relation.
        InvalidParameter: other noise than Gaussian, where only sums are seen: no party has a
            share of it.
    """

    require_positive_int("records_per_unit", records_per_unit)

    def events(noise_multiplier: float) -> tuple[Event, ...]:
        return planned_events(partial(work, noise_multiplier), planned)

    given = (f"no unit has more than {records_per_unit} records",) if records_per_unit > 1 else ()
    terms = Terms(delta, None, given, records_per_unit)
    plan = calibrate_proved(events, epsilon=epsilon, terms=terms)
    if plan.proof is None:
        raise Uncertifiable(f"the plan must have a proof: {plan.guarantee.not_proved}")
    certificate = plan.proof.certificate
    book = MemoryLedger() if ledger is None else ledger
    book.require(plan.events)
    run = book.run(
        f"{name} {datetime.now(UTC).isoformat(timespec='seconds')} {uuid4().hex[:8]}",
        configuration_hash=certificate.subject,
        plan=plan.events,
    )
    place = [summary.run for summary in book.runs()].index(run.run)
    sampler = noise(int(certificate.subject, 16), place)
    solve = partial(work, plan.noise_multiplier)
    result = run_prepaid(solve, private, run, plan.events, sampler)
    certificate = certificate.given(*book.circumstances(run.run))
    return PaidRun(result, plan.noise_multiplier, plan.guarantee, certificate, book)
