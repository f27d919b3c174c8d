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

from ..accounting.check.checker import CertificateWrong
from ..accounting.check.pld_checker import check
from ..accounting.guarantees import Guarantee, guarantee
from ..accounting.ledger.ledger import Run
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..accounting.planning import UnattainableTarget, calibrate_noise_multiplier
from ..accounting.proof.certificate import Certificate, certify
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.curators import Curator, SamplingCurator
from ..mechanisms.encoding import subject_hash
from ..mechanisms.errors import InvalidParameter, Number, require_positive
from ..mechanisms.events import Event
from ..mechanisms.protocols import EventSink, Provenance
from ..mechanisms.sampling import Sampler

__all__ = [
    "Plan",
    "PlannedEvents",
    "Terms",
    "calibrate",
    "calibrate_certified",
    "certify_events",
    "plan_at",
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

    Raises `Uncertifiable` where no rule leads from the events to a finite epsilon, and
    `CertificateWrong` if the checker refuses the certificate or proves something else by it.
    """
    certificate = certify(events, delta=terms.delta).given(*terms.assumptions)
    return _checked(certificate, events, terms)


def _checked(certificate: Certificate, events: Sequence[Event], terms: Terms) -> Certificate:
    """Return a certificate that the checker accepts for these very events, delta and epsilon."""
    verdict = check(certificate.to_json_bytes())
    expected = (subject_hash(events), 1, (Fraction(terms.delta), Fraction(certificate.epsilon)))
    found = (verdict.subject, verdict.group, verdict.values)
    if found != expected:
        raise CertificateWrong(f"expected a certificate of {expected} instead got {found}")
    if terms.adjacency is not None and verdict.adjacency != terms.adjacency.value:
        raise CertificateWrong(f"expected {terms.adjacency.value} instead got {verdict.adjacency}")
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

    The plan is one reservation: a budget that cannot pay for all of it pays for nothing, also when
    several runs ask at once; and what was reserved counts as spent even if the run breaks off.

    Args:
        solve: the planned algorithm.
        private: the data.
        run: of a ledger, which pays.
        events: the plan; the algorithm must release as planned, in order.
        sampler: of noise, fresh.

    Raises `BudgetExceeded` before any noise is drawn, with nothing spent.
    """
    token = run.reserve(events, sampler.provenance)
    result = train_on(solve, private, _Prepaid(events), sampler)
    run.commit(token)
    return result


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
