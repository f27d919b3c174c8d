"""The one writing of a private run: plan, calibrate, pay, train, certify, compare.

An algorithm whose noise is not chosen yet is a function from the noise multiplier to its planned
events. Of it:

    plan_at, calibrate        the events at a noise, or at the least noise that meets a target, and
                              what they guarantee
    calibrate_certified       the same, where a certificate must meet the target as well
    run_prepaid, train_on     the algorithm on records, every release through a sink of events;
                              paid for as a whole before any noise is drawn, or as it goes
    certify_events            a certificate of what was released, checked and compared

Configured runs, scikit-learn estimators and the papers' experiments are built of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from typing import TypeVar

from ..accounting.guarantees import Guarantee, guarantee
from ..accounting.ledger.ledger import Run
from ..accounting.numbers.enclosure import Enclosure
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..accounting.planning import UnattainableTarget, calibrate_noise_multiplier
from ..accounting.proof.certificate import Certificate, certify
from ..accounting.proof.proved import proved
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.curators import Curator, SamplingCurator
from ..mechanisms.errors import Number, require_positive
from ..mechanisms.events import Event
from ..mechanisms.protocols import EventSink
from ..mechanisms.sampling import Sampler
from .prepaid import PrepaidRun

__all__ = [
    "Plan",
    "PlannedEvents",
    "Terms",
    "calibrate",
    "calibrate_certified",
    "certify_events",
    "plan_at",
    "prove_plan",
    "run_prepaid",
    "train_on",
]

D = TypeVar("D")
T = TypeVar("T")

PlannedEvents = Callable[[float], Sequence[Event]]
"""From a noise multiplier (noise_std / sensitivity) to planned events; more must not cost more."""

_ATTEMPTS = 8
"""Targets that are tried before no certificate is believed to meet one; two or three are usual."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a guarantee is stated for.

    Args:
        delta: in (0, 1).
        adjacency: the relation that the events are expected to speak of; any without it.
        assumptions: what is taken for granted beside what is written in the events.
    """

    delta: Number
    adjacency: Adjacency | None = None
    assumptions: tuple[str, ...] = ()

    def guarantee(self, events: Sequence[Event]) -> Guarantee:
        """Return what events guarantee, with these assumptions; raises as `guarantee` does."""
        found = guarantee(events, delta=self.delta, adjacency=self.adjacency)
        return replace(found, assumptions=(*found.assumptions, *self.assumptions))


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """What a run will emit, and what that guarantees."""

    noise_multiplier: float
    events: tuple[Event, ...]
    guarantee: Guarantee

    @property
    def is_finding(self) -> bool:
        """Whether something would be released without a mechanism."""
        return bool(self.guarantee.unprotected)

    @property
    def promise(self) -> Gdp | ApproxDp:
        """What an attack is held against: mu-GDP where that is known, else epsilon at delta."""
        found = self.guarantee
        if isfinite(found.mu.upper_float):
            return found.notion
        return ApproxDp(found.epsilon.upper_float, found.delta)


def plan_at(planned: PlannedEvents, noise_multiplier: float, terms: Terms) -> Plan:
    """Return the plan at a noise multiplier."""
    events = tuple(planned(noise_multiplier))
    return Plan(noise_multiplier, events, terms.guarantee(events))


def calibrate(planned: PlannedEvents, *, epsilon: Number, terms: Terms) -> Plan:
    """Return the plan at the least noise whose guarantee is at most `epsilon`, > 0.

    Raises as `calibrate_noise_multiplier` does: `UnattainableTarget` where no noise meets it.
    """
    found = calibrate_noise_multiplier(planned, target_epsilon=epsilon, delta=terms.delta)
    return plan_at(planned, found.noise_multiplier, terms)


def calibrate_certified(
    planned: PlannedEvents, *, epsilon: Number, terms: Terms
) -> tuple[Plan, Certificate]:
    """Return the plan at about the least noise whose guarantee and certificate are at most epsilon.

    Gaussian steps have both alike; a certificate of other mechanisms may be a little dearer.

    Raises `UnattainableTarget` where no noise meets the target, `Uncertifiable` where no rule leads
    to a certificate.
    """
    require_positive("epsilon", epsilon)
    target = Fraction(epsilon)
    for _ in range(_ATTEMPTS):
        found = calibrate(planned, epsilon=target, terms=terms)
        certificate = certify(found.events, delta=terms.delta)
        if certificate.epsilon <= epsilon:
            return found, _checked(certificate.given(*terms.assumptions), found.events, terms)
        target *= (Fraction(epsilon) / Fraction(certificate.epsilon)) ** 2
    raise UnattainableTarget(
        f"Expected a certificate of epsilon={epsilon!r} or less instead got none."
    )


def certify_events(events: Sequence[Event], terms: Terms) -> Certificate:
    """Return a certificate of a run's events, which the independent checker accepts as such.

    Raises `Uncertifiable` where no rule leads from the events to a finite epsilon,
    `CertificateWrong` if the checker refuses the certificate, and `NotProved` if it proves
    something else.
    """
    certificate = certify(events, delta=terms.delta).given(*terms.assumptions)
    return _checked(certificate, events, terms)


def prove_plan(plan: Plan, terms: Terms) -> tuple[Plan, Certificate | None]:
    """Return a plan and its certificate, checked: what the plan prints is what is proved.

    Where the certificate is of a little more epsilon than the engine finds, the plan says that. A
    plan with an unprotected release has no certificate.

    Raises as `certify_events` does.
    """
    if plan.guarantee.unprotected:
        return plan, None
    certificate = certify_events(plan.events, terms)
    engine, stated = plan.guarantee.epsilon, Enclosure.of(certificate.epsilon)
    printed = Enclosure(engine.lower, max(engine.upper, stated.upper))
    return replace(plan, guarantee=replace(plan.guarantee, epsilon=printed)), certificate


def _checked(certificate: Certificate, events: Sequence[Event], terms: Terms) -> Certificate:
    """Return a certificate that the checker accepts for these very events, delta and epsilon."""
    proved(
        certificate.to_json_bytes(),
        events=events,
        delta=terms.delta,
        epsilon=certificate.epsilon,
        adjacency=terms.adjacency,
        group=1,
    )
    return certificate


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
    paid = PrepaidRun(run, events, sampler.provenance)
    result = train_on(solve, private, paid, sampler)
    paid.close()
    return result
