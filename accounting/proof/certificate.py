"""Certificates: a derivation of (ε, δ) from the events of a run, written down for a stranger.

`certify` is not trusted: it searches for a derivation and its witnesses in fast arithmetic, and
`accounting.check`, which shares no code with it, derives every step again. The document is
canonical JSON: a table of mechanisms, the events as references to it, the steps with premises
first, and what is taken for granted. Its format is a URI with a version; the checker refuses any
other.

>>> from dpledger.mechanisms import Adjacency, Audience, Context, GaussianStep, declared
>>> step = GaussianStep(declared(1, "example", adjacency=Adjacency.ZERO_OUT_ONE), noise_std=2.0)
>>> events = [Event(step, Context((), k, "model", Audience.PUBLIC)) for k in range(1, 5)]
>>> certificate = certify(events, delta=1e-5)
>>> round(certificate.epsilon, 6), len(certificate.steps)
(4.377178, 4)
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import groupby
from math import inf

from ...mechanisms.encoding import Json, canonical_json, event_to_json, rational
from ...mechanisms.errors import (
    DpledgerError,
    InvalidParameter,
    Number,
    require_delta,
    require_group,
)
from ...mechanisms.events import Event, Mechanism, Parties, Repeated
from ..composition import UnpricedMechanism
from ..numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from .derivation import STOPPING, NoRule, Parameter, Step, written
from .prover import Search

FORMAT = "urn:dpledger:certificate:1"
"""Of the document; what it means never changes, a new meaning gets a new number."""

ALWAYS_ASSUMED = (
    "the event list is complete and says what happened",
    "the noise is ideal, independent and drawn afresh for every release",
    "sensitivities, noise and sampling rates do not depend on the data",
)
"""What no derivation can show, and every certificate takes for granted."""


class Uncertifiable(DpledgerError, ValueError):
    """No rule leads from these events to a finite ε. It may still be finite."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A derivation of (ε, δ) for a whole event list. Made by `certify`.

    Args:
        events: that the subject is the hash of.
        root: the last step, whose premises are all others.
    """

    events: tuple[Event, ...]
    root: Step

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

    def given(self, *statements: str) -> "Certificate":
        """Return the same certificate with more assumptions: what its issuer takes for granted."""
        return replace(self, root=reduce(Step.given, statements, self.root))

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step, premises first, each once."""
        seen: dict[int, Step] = {}

        def visit(node: Step) -> None:
            for premise in node.premises:
                if id(premise) not in seen:
                    visit(premise)
            seen[id(node)] = node

        visit(self.root)
        return tuple(seen.values())

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the conclusion takes on trust, sorted."""
        stopping = set() if any(s.rule == "filter" for s in self.steps) else {STOPPING}
        return tuple(sorted(stopping.union(ALWAYS_ASSUMED, *(s.assumptions for s in self.steps))))

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
    """Return an event that is repeated in a row, its mechanism by its number."""
    found = event_to_json(event)
    del found["schema"]
    found["mechanism"] = _place(event.mechanism, places)
    found["times"] = times
    return found


def _parameter_to_json(value: Parameter, places: dict[str, int]) -> Json:
    """Return a rule's parameter; mechanisms by their numbers, fractions exactly."""
    match value:
        case Fraction():
            return rational(value)
        case tuple():
            return [
                item
                if isinstance(item, int)
                else [_place(item[0], places), *map(_number_to_json, item[1:])]
                for item in value
            ]
        case int() | str():
            return value
        case _:
            return _place(value, places)


def _number_to_json(value: int | Fraction) -> Json:
    return value if isinstance(value, int) else rational(value)


def _node_to_json(step: Step, numbers: dict[int, int], places: dict[str, int]) -> Json:
    """Return a step: rule, parameters, the numbers of its premises, and its conclusion."""
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
            conclusion |= {"notion": "approx-dp" if delta else "pure-dp"}
            conclusion |= {"delta": rational(Fraction(delta))} if delta else {}
            conclusion["epsilon"] = rational(step.cost)
    return {
        "rule": step.rule,
        "parameters": {name: _parameter_to_json(v, places) for name, v in step.parameters},
        "premises": [numbers[id(premise)] for premise in step.premises],
        "conclusion": conclusion,
    }


def certify(
    events: Sequence[Event],
    *,
    delta: Number,
    group: int = 1,
    tight: bool = True,
    budget: Gdp | Zcdp | Rdp | None = None,
) -> Certificate:
    """Return a certificate of the smallest ε found at `delta` for a run or a plan.

    Gaussian steps alone go by GDP, without loss; whatever else has a dominating pair by the
    distribution of its privacy loss, about 0.1 % above the exact ε; the rest by zCDP, pure DP or,
    sampled, by Rényi DP at the best whole order. At delta 0 pure DP is proved.

    Nothing is checked here. What exceeds the checker's limits (losses above 512 in one step, much
    work) it leaves undecided; `tight=False` is then worth a try, and `prove` goes on to it.

    Args:
        events: what was, or will be, released; at least one.
        delta: in [0, 1).
        group: how many records neighbours differ in.
        tight: False: by GDP, zCDP, pure DP or Rényi DP, whatever is sampled or not; quick to find
            and to check, by `checker` alone, and up to three times the exact ε.
        budget: of a filter, fixed before the first release, that let these events happen. Its ε is
            proved then, which does not rest on what was released or on when the run stopped.

    Raises:
        InvalidParameter: `delta` or `group` out of range, or no events.
        Uncertifiable: an unprotected release, no noise, a mechanism without a rule, or events that
            cost more than the budget.
    """
    require_delta(delta)
    require_group("group", group)
    events = tuple(events)
    if not events:
        raise InvalidParameter("events", [], "with at least one event")
    if budget is not None and inf in astuple(budget):
        raise InvalidParameter("budget", budget, "finite")
    try:
        search = Search(events, Fraction(delta), group)
        if budget is not None:
            return Certificate(events, search.within(budget))
        return Certificate(events, search.tightest() if tight else search.best())
    except (NoRule, UnpricedMechanism) as error:
        raise Uncertifiable(f"Expected events that a rule applies to: {error}") from error
