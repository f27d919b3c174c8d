"""The one writing of a private run: plan, calibrate, pay, train, certify, compare.

An algorithm whose noise is not chosen yet is a function from the noise multiplier to its planned
events. Of it:

    plan_at, calibrate_proved the events at a noise, or at the least noise that meets a target, and
                              what is proved of them
    calibrate                 the same without a proof, for experiments that plan many runs
    run_prepaid, train_on     the algorithm on records, every release through a sink of events;
                              paid for as a whole before any noise is drawn, or as it goes

Configured runs, scikit-learn estimators and the papers' experiments are built of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

from ..accounting.guarantees import Guarantee, guarantee
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..accounting.planning import calibrate_noise_multiplier
from ..accounting.proof.planning import proved_noise_multiplier
from ..accounting.proof.proved import Proof, proved_guarantee
from ..federation.prepaid import PrepaidRun
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.curators import Curator, SamplingCurator
from ..mechanisms.errors import Number
from ..mechanisms.events import Event
from ..mechanisms.protocols import EventSink
from ..mechanisms.sampling import Sampler

if TYPE_CHECKING:
    from ..accounting.ledger import Run

__all__ = [
    "Plan",
    "PlannedEvents",
    "Terms",
    "calibrate",
    "calibrate_proved",
    "plan_at",
    "run_prepaid",
    "train_on",
]

D = TypeVar("D")
T = TypeVar("T")

PlannedEvents = Callable[[float], Sequence[Event]]
"""From a noise multiplier (noise_std / sensitivity) to planned events; more must not cost more."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a guarantee is stated for.

    Args:
        delta: in (0, 1).
        adjacency: the relation that the events are expected to speak of; any without it.
        assumptions: what is taken for granted beside what is written in the events.
        records_per_unit: how many records a unit of privacy (a person) has at most.
    """

    delta: Number
    adjacency: Adjacency | None = None
    assumptions: tuple[str, ...] = ()
    records_per_unit: int = 1

    def guarantee(self, events: Sequence[Event]) -> Guarantee:
        """Return what events guarantee, with these assumptions; raises as `guarantee` does."""
        found = guarantee(
            events, delta=self.delta, adjacency=self.adjacency, group=self.records_per_unit
        )
        return replace(found, assumptions=(*found.assumptions, *self.assumptions))


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """What a run will emit, what that guarantees, and its proof, where one was found."""

    noise_multiplier: float
    events: tuple[Event, ...]
    guarantee: Guarantee
    proof: Proof | None = None

    @property
    def is_finding(self) -> bool:
        """Whether something would be released without a mechanism."""
        return bool(self.guarantee.unprotected)

    @property
    def per_record(self) -> Guarantee:
        """What the plan guarantees to one record, whatever a unit is.

        Attacks tell data sets apart that differ in one record, and are held against this.
        """
        found = self.guarantee
        return found if found.group == 1 else guarantee(self.events, delta=found.delta)

    @property
    def promise(self) -> Gdp | ApproxDp:
        """What an attack is held against: mu-GDP where that is known, else epsilon at delta."""
        found = self.per_record
        if isfinite(found.mu.upper_float):
            return found.notion
        return ApproxDp(found.epsilon.upper_float, found.delta)


def plan_at(planned: PlannedEvents, noise_multiplier: float, terms: Terms) -> Plan:
    """Return the plan at a noise multiplier, proved where it can be.

    Raises as `proved_guarantee` does.
    """
    events = tuple(planned(noise_multiplier))
    found, proof = proved_guarantee(
        events,
        delta=terms.delta,
        adjacency=terms.adjacency,
        group=terms.records_per_unit,
        given=terms.assumptions,
    )
    return Plan(noise_multiplier, events, found, proof)


def calibrate(planned: PlannedEvents, *, epsilon: Number, terms: Terms) -> Plan:
    """Return the plan at the least noise whose enclosed guarantee is at most `epsilon`, > 0.

    Raises as `calibrate_noise_multiplier` does: `UnattainableTarget` where no noise meets it.
    """
    found = calibrate_noise_multiplier(
        planned, target_epsilon=epsilon, delta=terms.delta, group=terms.records_per_unit
    )
    events = tuple(planned(found.noise_multiplier))
    return Plan(found.noise_multiplier, events, terms.guarantee(events))


def calibrate_proved(planned: PlannedEvents, *, epsilon: Number, terms: Terms) -> Plan:
    """Return the plan at about the least noise whose proved guarantee is at most `epsilon`, > 0.

    Where there is no proof the enclosed guarantee meets it, and says why it is not proved.

    Raises `UnattainableTarget` where no noise meets the target, and as `proved_guarantee` does.
    """
    found, proof = proved_noise_multiplier(
        planned,
        target_epsilon=epsilon,
        delta=terms.delta,
        adjacency=terms.adjacency,
        group=terms.records_per_unit,
        given=terms.assumptions,
    )
    # what was proved is what will run, even if a plan should not be the same each time
    events = tuple(planned(found.noise_multiplier)) if proof is None else proof.certificate.events
    return Plan(found.noise_multiplier, events, found.guarantee, proof)


def train_on(solve: Callable[[D, Curator], T], private: D, sink: EventSink, sampler: Sampler) -> T:
    """Return what an algorithm makes of private data, every release reserved in `sink` first."""
    return solve(private, SamplingCurator(sink, sampler))


def run_prepaid(
    solve: Callable[[D, Curator], T],
    private: D,
    run: Run,
    events: Sequence[Event],
    sampler: Sampler,
) -> T:
    """Return what an algorithm makes of private data, all of its plan paid for beforehand.

    Args:
        solve: the planned algorithm.
        private: the data.
        run: of a ledger, which pays.
        events: the plan; the algorithm must release as planned, in order.
        sampler: of noise, fresh.

    Raises `BudgetExceeded` before any noise is drawn, with nothing spent.
    """
    return train_on(solve, private, PrepaidRun(run, events, sampler.provenance), sampler)
