"""Claims of papers as data, and what a court can find about them.

A claim says what a paper promises, where, under which relation and against whom; its `promise` is a
function of the paper's parameters. `judge` derives what is true at these parameters and answers
with a `Finding`: a verdict, both numbers, and evidence. Nothing here knows the answer beforehand.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ...accounting.check.reading import Undecided
from ...accounting.numbers.enclosure import Enclosure
from ...accounting.proof.certificate import Uncertifiable
from ...accounting.proof.proved import Proof, prove
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import DpledgerError, InvalidParameter, Number
from ...mechanisms.events import Event
from .attack import ClaimAttack
from .sweep import Sweep

_EXACTLY = 1e-9
_EXACT = "exactly"
_IN_PERCENT = 1.2
_MOST = 1e9
_LONGEST = 40
_ALIASES = {"eps": "epsilon"}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class UnknownClaim(DpledgerError, ValueError):
    """No claim, paper or parameter has this name."""


class ClaimVerdict(Enum):
    """What the court says of a claim at some parameters."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_IMPLIED = "not implied by what is stated"
    UNSPECIFIED = "unspecified"
    UNDECIDED = "undecided"
    OUTSIDE_ITS_REGIME = "outside its regime"
    UNENFORCED_ASSUMPTION = "unenforced assumption"
    UNACCOUNTED_ACCESS = "unaccounted access"


class ThreatModel(Enum):
    """Who looks, and at what."""

    ALL_MESSAGES = "whoever sees every message"
    OUTPUT = "whoever sees the published output"
    NONE = "nobody: no statement about privacy"


class Setting(Protocol):
    """A frozen dataclass of a paper's parameters, named by the paper's symbols."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


S = TypeVar("S", bound=Setting)


@dataclass(frozen=True, eq=False, slots=True)
class DerivationEvidence:
    """Evidence by proof: the lines of an argument, and the events that it prices.

    Args:
        lines: of the argument.
        events: that it prices.
        delta: at which a certificate of them is asked for; None for none.
        group: records of a unit, whose epsilon that is.
        unproved: why no certificate is asked for; empty for an argument that needs none.
    """

    lines: tuple[str, ...]
    events: tuple[Event, ...] = ()
    delta: Number | None = None
    group: int = 1
    unproved: str = ""

    def proof(self) -> tuple[Proof | None, str]:
        """Return the checked proof of the events' epsilon, or None and why there is none."""
        if self.delta is None:
            return None, self.unproved
        try:
            return prove(self.events, delta=self.delta, group=self.group), ""
        except (Uncertifiable, Undecided) as why:
            return None, str(why)


@dataclass(frozen=True, eq=False, slots=True)
class Counterexample:
    """Evidence by two neighbouring data sets and an event with its two probabilities.

    Args:
        datasets: the two, in words that suffice to build them.
        event: what an observer looks for.
        probability: of the event under the first, known at least from below.
        neighbour_probability: under the second, known at least from above.
        rerun: runs the published algorithm `trials` times on each, from `seed`, and returns how
            often the event happened.
        allowed: the epsilon and delta that the claim comes to for this event; None where the second
            probability is 0, which no epsilon allows.
        exact: whether nothing random decides the event, so that `rerun` computes it.
    """

    datasets: str
    event: str
    probability: Enclosure
    neighbour_probability: Enclosure
    rerun: Callable[[int, int], tuple[float, float]] = field(repr=False)
    allowed: tuple[float, float] | None = None
    exact: bool = False


Evidence = DerivationEvidence | Counterexample


@dataclass(frozen=True, eq=False, slots=True)
class Finding:
    """What the court found.

    Args:
        verdict: the answer.
        reason: in a sentence.
        claimed: what the paper promises; None where it promises no number.
        true: what is derived, in the same unit.
        unit: of both, in a word.
        breaks_at: the smallest parameters at which the claim fails, where one was found.
        figures: further numbers of the argument, by name.
        argument: the argument in words, with the numbers of these parameters.
        evidence: what proves it.
    """

    verdict: ClaimVerdict
    reason: str
    claimed: Enclosure | None = None
    true: Enclosure | None = None
    unit: str = ""
    breaks_at: str | None = None
    figures: Mapping[str, Enclosure] = field(default_factory=dict[str, Enclosure])
    argument: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def factor(self) -> float | None:
        """claimed / true: above 1 the promise is more than need be, below 1 too small.

        None where there is no number, or no upper end of what is true.
        """
        if self.claimed is None or self.true is None:
            return None
        if self.true.lower_float < inf == self.true.upper_float:
            return None
        if self.true.upper_float == 0.0 or self.claimed.upper_float == inf:
            return inf
        return self.claimed.lower_float / self.true.upper_float

    @property
    def how_far(self) -> str:
        """How far the promise is from what was found, in words; "" where that says nothing."""
        return "" if self.factor is None else _how_far(self.verdict, self.factor)

    @property
    def verdict_text(self) -> str:
        """The verdict in words, with how far the promise is from what was found."""
        far = self.how_far
        if far == _EXACT:
            return f"{self.verdict.value} {far}"
        return f"{self.verdict.value} ({far})" if far else self.verdict.value

    @property
    def is_finding(self) -> bool:
        """Whether there is something to report: anything but a claim that holds."""
        return self.verdict is not ClaimVerdict.HOLDS

    @property
    def is_undecided(self) -> bool:
        """Whether nothing is missing and it cannot be told: neither a finding nor an all-clear."""
        return self.verdict is ClaimVerdict.UNDECIDED


def _how_far(verdict: ClaimVerdict, factor: float) -> str:
    """Return how far a promise is from the truth, in words; "" where that says nothing.

    Args:
        verdict: on the promise.
        factor: promised / true; 0 where the truth is infinite.
    """
    if verdict is ClaimVerdict.HOLDS:
        if abs(factor - 1) <= _EXACTLY:
            return _EXACT
        if factor == inf or factor < 1:
            return ""
        if factor < 2:
            return f"{_percent(factor)} above the truth"
        return f"{_times(factor)} times the truth"
    # where the factor is 1 or more, something else than the number failed
    if verdict not in (ClaimVerdict.FAILS, ClaimVerdict.NOT_IMPLIED) or factor >= 1:
        return ""
    by_that = "" if verdict is ClaimVerdict.FAILS else "by that, "
    if factor == 0:
        return f"{by_that}the truth is infinite"
    # 80 % too small might be read as a fifth of the truth
    short = 1 / factor
    amount = _percent(short) if short < _IN_PERCENT else f"{_times(short)} times"
    return f"{by_that}the promise is {amount} too small"


def _times(ratio: float) -> str:
    """Return a ratio in two digits."""
    return "more than a billion" if ratio > _MOST else f"{float(f'{ratio:.2g}'):,.10g}"


def _percent(ratio: float) -> str:
    """Return what a ratio is above 1, in percent and two digits."""
    percent = 100 * (ratio - 1)
    return "less than 0.01 %" if percent < 0.01 else f"{percent:.2g} %"


@dataclass(frozen=True, slots=True)
class Case(Generic[S]):
    """Parameters to judge at, and which of them the user fixed: a claim "for all t" does not get to
    vary what was fixed."""

    setting: S
    fixed: frozenset[str] = frozenset()

    def free(self, name: str) -> bool:
        """Whether the claim's own quantifier still runs over `name`."""
        return name not in self.fixed

    def at(self, **values: object) -> "Case[S]":
        """Return the case with other values for those of these parameters that are free."""
        return replace(
            self, setting=replace(self.setting, **{n: v for n, v in values.items() if self.free(n)})
        )


class Promise(Protocol[S]):
    """What a paper promises, in a form that can be judged."""

    def judge(self, case: Case[S]) -> Finding:
        """Derive what is true and compare."""
        ...


@dataclass(frozen=True, slots=True)
class Claim(Generic[S]):
    """One claim of one paper.

    Args:
        identifier: as H-3.
        title: in a few words.
        statement: in the paper's symbols.
        place: where it stands.
        promise: what is promised.
        solver: the published algorithm that it speaks of.
        adjacency: the relation that the paper names; None where it names none.
        threat_model: against whom.
        attack: what shows that it fails, or fails to show it, in runs of this algorithm: all its
            messages, or one event to count; a claim for all values of a free parameter may be
            attacked at others than the case's. Without one, or where it is None at these
            parameters, the event of the finding is counted.
        not_attacked: why no run could bear on it, in a sentence; empty where an attack does.
    """

    identifier: str
    title: str
    statement: str
    place: str
    promise: Promise[S]
    solver: str = field(kw_only=True)
    adjacency: Adjacency | None = field(kw_only=True)
    threat_model: ThreatModel = field(kw_only=True)
    attack: Callable[[Case[S]], ClaimAttack | Counterexample | None] | None = field(
        default=None, kw_only=True
    )
    not_attacked: str = field(default="", kw_only=True)

    @property
    def described(self) -> dict[str, str]:
        """The claim in words, by what each says."""
        return {
            "identifier": self.identifier,
            "title": self.title,
            "statement": self.statement,
            "place": self.place,
            "adjacency": "none named" if self.adjacency is None else self.adjacency.value,
            "threat_model": self.threat_model.value,
            "solver": self.solver,
            "not_attacked": self.not_attacked,
        }


@dataclass(frozen=True, slots=True)
class Paper(Generic[S]):
    """A paper: its parameters (by default those of its experiments), its claims, and ranges of
    parameters over which their numbers are worth a look.

    `evidence` is the file of what attacks found before, which need not exist.
    """

    name: str
    title: str
    setting: S
    claims: tuple[Claim[S], ...]
    evidence: Path
    sweeps: tuple[Sweep[S], ...] = ()

    def case(self, assignments: Sequence[str] = ()) -> Case[S]:
        """Return the paper's parameters with the user's `name=value` texts in place."""
        values = assigned(self.setting, assignments)
        return Case(replace(self.setting, **values), frozenset(values))


def has_parameter(setting: Setting, name: str) -> bool:
    """Return whether a paper has a parameter of this name."""
    return _ALIASES.get(name, name) in {f.name for f in fields(setting)}


def assigned(setting: Setting, assignments: Sequence[str]) -> dict[str, int | float | bool]:
    """Return the values that `name=value` texts give to parameters; nothing is evaluated.

    Raises `UnknownClaim` for a name that is no parameter, `InvalidParameter` for a text that is no
    number of the parameter's kind.
    """
    kinds = {f.name: type(getattr(setting, f.name)) for f in fields(setting)}
    values: dict[str, int | float | bool] = {}
    for text in assignments:
        name, equals, written = (part.strip() for part in text.partition("="))
        if not equals:
            raise InvalidParameter("set", text[:_LONGEST], "of the form name=value")
        if not _NAME.fullmatch(name) or len(name) > _LONGEST:
            raise UnknownClaim(f"Expected the name of a parameter instead got {name[:_LONGEST]!r}.")
        name = _ALIASES.get(name, name)
        if name not in kinds:
            near = get_close_matches(name, kinds, n=1)
            known = f"{near[0]!r}?" if near else ", ".join(kinds)
            raise UnknownClaim(f"Expected a parameter of the paper ({known}) instead got {name!r}.")
        if name in values:
            raise InvalidParameter("set", text, "one that sets no parameter twice")
        values[name] = _read(name, written, kinds[name])
    return values


def _read(name: str, written: str, kind: type) -> int | float | bool:
    if kind is bool:
        if written not in ("true", "false"):
            raise InvalidParameter(name, written[:_LONGEST], "true or false")
        return written == "true"
    allowed = "a whole number" if kind is int else "a number"
    if len(written) > _LONGEST or not _NUMBER.fullmatch(written):
        raise InvalidParameter(name, written[:_LONGEST], allowed)
    if kind is float:
        return float(written)
    # an exponent of at most four digits keeps this small enough to look at
    exact = Fraction(written)
    if exact.denominator != 1:
        raise InvalidParameter(name, written, allowed)
    return int(exact)
