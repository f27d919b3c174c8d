"""Certificates: a derivation of (ε, δ) from the events of a run, written down for a stranger.

`certify` is not trusted: it searches for a derivation and its witnesses in fast arithmetic, the
rules admit the result, and `checker` admits it again, sharing no code with either.

>>> from dpledger.mechanisms import Adjacency, Audience, Context, GaussianStep, declared
>>> step = GaussianStep(declared(1, "example", adjacency=Adjacency.ZERO_OUT_ONE), noise_std=2.0)
>>> events = [Event(step, Context((), k, "model", Audience.PUBLIC)) for k in range(1, 5)]
>>> certificate = certify(events, delta=1e-5)
>>> round(certificate.epsilon, 6), len(certificate.steps)
(4.377178, 4)
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import ceil, inf, nextafter

from ..mechanisms.encoding import Json, canonical_json, event_to_json, rational
from ..mechanisms.errors import (
    DpledgerError,
    InvalidParameter,
    Number,
    require_open_unit,
    require_positive_int,
)
from ..mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)
from .conversions import epsilon_from_rdp, epsilon_from_zcdp_by_orders
from .enclosure import Enclosure, Undecided
from .gaussian import epsilon_from_delta
from .judgement import Exposure, Parameter, Priv, RuleViolation, written
from .notions import ApproxDp, Gdp, Rdp, Zcdp
from .rules import conversion, privacy, sampling

__all__ = ["FORMAT", "Certificate", "Uncertifiable", "certify"]

FORMAT = "urn:dpledger:certificate:1"

ALWAYS_ASSUMED = (
    "the event list is complete and says what happened",
    "the noise is ideal, independent and drawn afresh for every release",
    "sensitivities, noise and sampling rates do not depend on the data",
)

_COST_BITS = 128
_FEW = 8
"""Sums of more terms than this are of dyadic costs, rounded up: the digits would not end."""


class Uncertifiable(DpledgerError, ValueError):
    """No rule leads from these events to a finite ε. It may still be finite."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A derivation of (ε, δ) for a whole event list. Made by `certify`."""

    events: tuple[Event, ...]
    root: Priv

    @property
    def subject(self) -> str:
        """The hash of the event list."""
        assert isinstance(self.root.subject, str)
        return self.root.subject

    @property
    def guarantee(self) -> ApproxDp:
        """What is proved."""
        assert isinstance(self.root.notion, ApproxDp)
        return self.root.notion

    @property
    def epsilon(self) -> float:
        """The proved ε; exact, because `certify` chooses a binary64."""
        return float(self.guarantee.epsilon)

    @property
    def steps(self) -> tuple[Priv, ...]:
        """Every judgement, premises first, each once."""
        seen: dict[int, Priv] = {}

        def visit(node: Priv) -> None:
            for premise in node.premises:
                if id(premise) not in seen:
                    visit(premise)
            seen[id(node)] = node

        visit(self.root)
        return tuple(seen.values())

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the conclusion takes on trust, sorted."""
        return tuple(sorted(set(ALWAYS_ASSUMED).union(*(s.assumptions for s in self.steps))))

    @property
    def axioms(self) -> tuple[str, ...]:
        """The published theorems that it rests on, sorted."""
        return tuple(sorted(frozenset[str]().union(*(step.axioms for step in self.steps))))

    def to_json_bytes(self) -> bytes:
        """Return the document that `checker.check` reads."""
        places: dict[str, int] = {}
        events = [_run_to_json(event, n, places) for event, n in _runs(self.events)]
        numbers = {id(step): i for i, step in enumerate(self.steps)}
        nodes = [_node_to_json(step, numbers, places) for step in self.steps]
        document: dict[str, Json] = {
            "format": FORMAT,
            "subject": self.subject,
            "mechanisms": [json.loads(text) for text in places],
            "events": [*events],
            "nodes": [*nodes],
            "assumptions": [*self.assumptions],
            "axioms": [*self.axioms],
        }
        return canonical_json(document) + b"\n"


def _runs(events: Sequence[Event]) -> Iterator[tuple[Event, int]]:
    """Yield each event and how often it is repeated in a row."""
    keyed = groupby(events, key=lambda event: (event.context, id(event.mechanism)))
    for _, group in keyed:
        same = list(group)
        yield same[0], len(same)


def _place(mechanism: Mechanism, places: dict[str, int]) -> int:
    """Return the number of a mechanism in the certificate's table; those inside it get one too."""
    match mechanism:
        case Repeated():
            _place(mechanism.event, places)
        case Parties():
            for _, listed in mechanism.parts:
                for part in listed:
                    _place(part, places)
        case _:
            pass
    return places.setdefault(written(mechanism), len(places))


def _run_to_json(event: Event, times: int, places: dict[str, int]) -> Json:
    found = event_to_json(event)
    del found["schema"]
    found["mechanism"] = _place(event.mechanism, places)
    found["times"] = times
    return found


def _parameter_to_json(value: Parameter, places: dict[str, int]) -> Json:
    match value:
        case Fraction():
            return rational(value)
        case tuple():
            return [*value]
        case int() | str():
            return value
        case _:
            return _place(value, places)


def _node_to_json(step: Priv, numbers: dict[int, int], places: dict[str, int]) -> Json:
    conclusion: dict[str, Json] = {"adjacency": step.adjacency.value, "group": step.group}
    match step.notion:
        case Gdp(mu_squared=mu_squared):
            conclusion |= {"notion": "gdp", "mu_squared": rational(Fraction(mu_squared))}
        case Zcdp(rho=rho):
            conclusion |= {"notion": "zcdp", "rho": rational(Fraction(rho))}
        case Rdp(order=order):
            conclusion |= {"notion": "rdp", "order": rational(Fraction(order))}
            conclusion["epsilon"] = rational(step.cost)
        case ApproxDp(delta=delta):
            conclusion |= {"notion": "approx-dp", "delta": rational(Fraction(delta))}
            conclusion["epsilon"] = rational(step.cost)
    return {
        "rule": step.rule,
        "parameters": {name: _parameter_to_json(v, places) for name, v in step.parameters},
        "premises": [numbers[id(premise)] for premise in step.premises],
        "conclusion": conclusion,
    }


# --- the search: nothing below is trusted ------------------------------------------------------


def certify(events: Sequence[Event], *, delta: Number, group: int = 1) -> Certificate:
    """Return a certificate of the smallest ε found at `delta` for a run or a plan.

    Gaussian steps alone go by GDP, without loss; with Laplace or discrete noise by zCDP; as soon as
    something is sampled, by Rényi DP at the best whole order.

    Args:
        events: what was, or will be, released; at least one.
        delta: in (0, 1).
        group: how many records neighbours differ in.

    Raises:
        InvalidParameter: `delta` or `group` out of range, or no events.
        Uncertifiable: an unprotected release, no noise, or a mechanism without a rule.
    """
    require_open_unit("delta", delta)
    require_positive_int("group", group)
    if not events:
        raise InvalidParameter("events", [], "with at least one event")
    try:
        return Certificate(tuple(events), _Search(events, Fraction(delta), group).best())
    except RuleViolation as error:
        raise Uncertifiable(f"Expected events that a rule applies to: {error}") from error


class _Search:
    """Derivations for one event list; every judgement is made once."""

    def __init__(self, events: Sequence[Event], delta: Fraction, group: int) -> None:
        self._events = events
        self._delta = delta
        self._group = group
        self._mechanisms = {written(m): m for e in events for m in _inside(e.mechanism)}
        self._leaves = [
            m for m in self._mechanisms.values() if not isinstance(m, Repeated | Parties)
        ]
        self._exposures = privacy.exposures(events)
        self._made: dict[tuple[str, Gdp | Zcdp | Rdp], Priv] = {}
        self._short: dict[int, Priv] = {}

    def best(self) -> Priv:
        if all(isinstance(m, GaussianStep) for m in self._leaves):
            return self._by_gdp()
        if any(isinstance(m, PoissonSampled | SampledWithoutReplacement) for m in self._leaves):
            return self._by_rdp()
        return self._by_zcdp()

    def _by_gdp(self) -> Priv:
        whole = self._whole(Gdp(0))
        found = epsilon_from_delta(mu_squared=whole.cost, delta=self._delta)
        return _admitted(
            found, lambda e: conversion.gdp_approx_dp(whole, delta=self._delta, epsilon=e)
        )

    def _by_zcdp(self) -> Priv:
        whole = self._whole(Zcdp(0))
        bound = epsilon_from_zcdp_by_orders(rho=whole.cost, delta=self._delta)
        order = Fraction(2) if bound.order == inf else Fraction(bound.order)
        return self._from_rdp(conversion.zcdp_rdp(whole, order))

    def _by_rdp(self) -> Priv:
        if self._group != 1:
            raise RuleViolation("Expected group=1: no rule enlarges groups under Rényi DP.")
        found = {
            order: self._from_rdp(self._whole(Rdp(order, 0)))
            for order in (2, 4, 8, 16, 32, 64, 128, 256, 512)
        }
        order = min(found, key=lambda a: found[a].cost)
        step = order // 2
        while step > 0:
            for near in (order - step, order + step):
                if 2 <= near <= sampling.MAX_ORDER and near not in found:
                    found[near] = self._from_rdp(self._whole(Rdp(near, 0)))
            order = min(found, key=lambda a: found[a].cost)
            step //= 2
        return found[order]

    def _from_rdp(self, whole: Priv) -> Priv:
        assert isinstance(whole.notion, Rdp)
        found = epsilon_from_rdp(order=whole.notion.order, rdp=whole.cost, delta=self._delta)
        return _admitted(
            found, lambda e: conversion.rdp_approx_dp(whole, delta=self._delta, epsilon=e)
        )

    def _whole(self, family: Gdp | Zcdp | Rdp) -> Priv:
        views = [self._composed(exposure, family) for exposure in self._exposures]
        whole = privacy.events(self._events, views)
        return whole if self._group == 1 else privacy.group(whole, self._group)

    def _composed(self, exposure: Exposure, family: Gdp | Zcdp | Rdp) -> Priv:
        counts = sorted(exposure.counts)
        parts = [self._one(self._mechanisms[text], family) for text, _ in counts]
        if len(counts) == 1 and counts[0][1] == 1:
            return parts[0]
        if len(counts) > _FEW:
            parts = [self._shortened(part) for part in parts]
        return privacy.composition(parts, [n for _, n in counts])

    def _one(self, mechanism: Mechanism, family: Gdp | Zcdp | Rdp) -> Priv:
        key = (written(mechanism), family)
        if key not in self._made:
            self._made[key] = self._derived(mechanism, family)
        return self._made[key]

    def _shortened(self, part: Priv) -> Priv:
        """Return the part with a short cost; once, however many parties it concerns."""
        if id(part) not in self._short:
            self._short[id(part)] = _shortened(part)
        return self._short[id(part)]

    def _derived(self, mechanism: Mechanism, family: Gdp | Zcdp | Rdp) -> Priv:
        match mechanism:
            case Repeated():
                return privacy.repeated(mechanism, self._one(mechanism.event, family))
            case Parties():
                parts = [
                    self._composed(Exposure.of(Counter(map(written, listed))), family)
                    for _, listed in mechanism.parts
                    if listed
                ]
                return privacy.parties(mechanism, parts)
            case PoissonSampled() | SampledWithoutReplacement() if isinstance(family, Rdp):
                return _sampled(mechanism, int(family.order))
            case _:
                return _plain(mechanism, family)


def _inside(mechanism: Mechanism) -> Iterator[Mechanism]:
    """Yield a mechanism and those that it is made of, as far as rules look into it."""
    yield mechanism
    match mechanism:
        case Repeated():
            yield from _inside(mechanism.event)
        case Parties():
            for _, listed in mechanism.parts:
                for part in listed:
                    yield from _inside(part)
        case _:
            pass


def _plain(mechanism: Mechanism, family: Gdp | Zcdp | Rdp) -> Priv:
    if isinstance(family, Rdp):
        return conversion.zcdp_rdp(_plain(mechanism, Zcdp(0)), Fraction(family.order))
    match mechanism:
        case GaussianStep():
            return (privacy.gaussian_gdp if isinstance(family, Gdp) else privacy.gaussian_zcdp)(
                mechanism
            )
        case DiscreteGaussianStep():
            return privacy.discrete_gaussian_zcdp(mechanism)
        case LaplaceStep():
            return privacy.laplace_zcdp(mechanism)
        case DiscreteLaplaceStep():
            return privacy.discrete_laplace_zcdp(mechanism)
        case _:
            raise RuleViolation(f"no rule prices {mechanism}.")


def _sampled(mechanism: PoissonSampled | SampledWithoutReplacement, order: int) -> Priv:
    step = mechanism.event
    if not isinstance(step, GaussianStep):
        raise RuleViolation(f"no rule prices {mechanism}.")
    _, ratio, _ = privacy.ratio_squared(step.sensitivity, step.noise_std, step.sensitivity.norm)
    if isinstance(mechanism, PoissonSampled):
        found = sampling.poisson_divergence(ratio, Fraction(mechanism.rate), order)
        return _admitted(found, lambda e: sampling.poisson_rdp(mechanism, order=order, epsilon=e))
    share = Fraction(mechanism.batch, mechanism.records)
    found = sampling.fixed_batch_divergence(ratio, share, order)
    return _admitted(found, lambda e: sampling.fixed_batch_rdp(mechanism, order=order, epsilon=e))


def _admitted(found: Enclosure, rule: Callable[[Fraction], Priv]) -> Priv:
    """Return what `rule` concludes at the smallest binary64 above `found` that it can decide on."""
    witness = found.upper_float
    while True:
        if witness == inf:
            raise RuleViolation("Expected a finite cost.")
        try:
            return rule(Fraction(witness))
        except Undecided:
            witness = nextafter(witness, inf)


def _shortened(judgement: Priv) -> Priv:
    """Return the judgement with its cost rounded up to a dyadic rational of 128 bits."""
    cost = judgement.cost
    numerator, denominator = cost.numerator, cost.denominator
    if denominator & (denominator - 1) == 0 and numerator.bit_length() <= _COST_BITS:
        return judgement
    scale = Fraction(2) ** (_COST_BITS - numerator.bit_length() + denominator.bit_length())
    return privacy.weaken(judgement, Fraction(ceil(cost * scale)) / scale)
