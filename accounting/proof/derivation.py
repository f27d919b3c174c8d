"""Derivations as the prover writes them down: what each step concludes, and what it rests on.

Nothing here checks anything. The rules are those of `accounting.check`, which derives every step
again and refuses what does not follow; docs/rules.md draws them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.encoding import canonical_json, mechanism_to_json
from ...mechanisms.errors import DpledgerError
from ...mechanisms.events import Event, Mechanism, Parties, unrepeated
from ..numbers.notions import ApproxDp, Gdp, Rdp, Zcdp

PrivacyNotion = Gdp | Zcdp | Rdp | ApproxDp
"""What a step can conclude of its subject."""

Parameter = (
    Mechanism
    | Fraction
    | int
    | str
    | tuple[int, ...]
    | tuple[tuple[Mechanism, int], ...]
    | tuple[tuple[Mechanism, int, int], ...]
    | tuple[tuple[Mechanism, Fraction], ...]
)
"""What a rule is given besides its premises."""

GIVEN = "taken for granted: "
"""How a certificate begins what its maker states and nothing in it derives."""

DISJOINT_RECORDS = (
    "every record belongs to one party, and who holds which record is public and fixed"
)
DISJOINT_COLUMNS = (
    "every column belongs to one party, and who holds which column is public and fixed"
)


def held_apart(adjacency: Adjacency | None) -> str:
    """Return the assumption of parallel composition over parties."""
    columns = adjacency is Adjacency.REPLACE_FEATURE_COLUMN
    return DISJOINT_COLUMNS if columns else DISJOINT_RECORDS


ONE_PARTY = "all records of a unit live with one party"
"""What the price of a unit rests on where parties pay differently and not only by Gaussian steps:
curves of several kinds may cross, and the dearest of one kind need not dominate a mixture."""
STOPPING = (
    "the number of events and the time of stopping do not depend on what was released, or all of "
    "the plan is in the list"
)
"""What every sum of costs rests on that is no filter's budget."""

FILTERED = frozenset(
    {
        "the filter's budget, its notion and its order were fixed before the first release, and "
        "every release that would have crossed it was refused",
        "what a release does was decided before its noise was drawn, by earlier messages and "
        "nothing else that was learnt from the data",
    }
)
"""What a filter's budget rests on instead."""

REPLACED_IN_A_SAMPLE = "docs/rules.md, privacy-loss (a record is replaced in a Poisson sample)"
DRAWN_AGAIN = "docs/rules.md, privacy-loss (a batch drawn with replacement)"
SHIFTS_OF_GROUPS = "Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (mixtures of Gaussian shifts)"

_PURE = "Bun, Steinke 2016, Proposition 1.4 (pure DP is zCDP)"
_PURE_COMPOSITION = "Dwork, Roth 2014, Theorem 3.14 (composition of pure DP)"
_PURE_GROUP = "Dwork, Roth 2014, Theorem 2.2 (pure DP of groups)"
_GDP_COMPOSITION = "Dong, Roth, Su 2022, Corollary 3.3 (composition of GDP)"
_PAIRS = "Zhu, Dong, Wang 2022, Theorems 10 and 11 (dominating pairs)"
_GDP_GROUP = "Dong, Roth, Su 2022, Theorem 2.14 (GDP of groups)"
_PARALLEL = "McSherry 2009, Theorem 4 (parallel composition)"
AXIOMS: dict[tuple[str, type[PrivacyNotion]], str] = {
    ("gaussian-gdp", Gdp): "Dong, Roth, Su 2022, Theorem 2.7 (Gaussian noise is GDP)",
    ("composition", Gdp): _GDP_COMPOSITION,
    ("repeated", Gdp): _GDP_COMPOSITION,
    ("group", Gdp): _GDP_GROUP,
    ("replace-one", Gdp): _GDP_GROUP,
    ("filter", Gdp): "Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023 (filters of GDP)",
    ("filter", Zcdp): "Whitehouse, Ramdas, Rogers, Wu 2023 (filters of zCDP)",
    ("filter", Rdp): "Feldman, Zrnic 2021, Theorem 3.1 (filters of one Rényi order)",
    ("gdp-approx-dp", ApproxDp): "Balle, Wang 2018, Theorem 8 (delta of GDP)",
    ("parties", ApproxDp): _PARALLEL,
    ("events", ApproxDp): _PARALLEL,
    ("laplace-pure", ApproxDp): "Dwork, Roth 2014, Theorem 3.6 (Laplace noise)",
    ("discrete-laplace-pure", ApproxDp): (
        "Ghosh, Roughgarden, Sundararajan 2012 (discrete Laplace noise)"
    ),
    ("poisson-pure", ApproxDp): "Balle, Barthe, Gaboardi 2018, Theorem 8 (Poisson sampling)",
    ("fixed-batch-pure", ApproxDp): (
        "Balle, Barthe, Gaboardi 2018, Theorem 9 (sampling a fixed batch)"
    ),
    ("composition", ApproxDp): _PURE_COMPOSITION,
    ("repeated", ApproxDp): _PURE_COMPOSITION,
    ("group", ApproxDp): _PURE_GROUP,
    ("replace-one", ApproxDp): _PURE_GROUP,
    ("laplace-zcdp", Zcdp): _PURE,
    ("discrete-laplace-zcdp", Zcdp): _PURE,
    ("discrete-gaussian-zcdp", Zcdp): (
        "Canonne, Kamath, Steinke 2020, Theorem 14 (discrete Gaussian)"
    ),
    ("poisson-rdp", Rdp): "Mironov, Talwar, Zhang 2019, Theorems 4 and 5 (Poisson sampling)",
    ("fixed-batch-rdp", Rdp): (
        "Wang, Balle, Kasiviswanathan 2019, Theorem 9 (sampling a fixed batch)"
    ),
    ("privacy-loss", ApproxDp): _PAIRS,
    ("laplace-losses", ApproxDp): _PAIRS,
}
"""The published theorem behind a rule's conclusion in a notion, where Coq proves none."""


class NoRule(DpledgerError, ValueError):
    """No rule leads from these events to a finite cost. Nothing is said about ε."""


def written(mechanism: Mechanism) -> str:
    """Return the canonical text of a mechanism, derivation included."""
    return canonical_json(mechanism_to_json(mechanism)).decode()


@dataclass(frozen=True, slots=True)
class Exposure:
    """What one record meets: mechanisms, by their canonical text, and how often each.

    Args:
        counts: pairs of a text and a positive number, without order: composition does not depend on
            it.
    """

    counts: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Exposure":
        """Return the exposure to the mechanisms of these texts."""
        return cls(frozenset(counts.items()))

    def times(self, factor: int) -> Counter[str]:
        """Return the counts, each `factor` fold."""
        return Counter({text: factor * n for text, n in self.counts})


def exposures(events: Sequence[Event]) -> set[Exposure]:
    """Return what a record can be exposed to by a run, over all parties it could belong to.

    An event names the parties whose records enter it, or its mechanism does, part by part; an event
    without parties concerns everybody.
    """
    common: Counter[str] = Counter()
    own: dict[str, Counter[str]] = {}
    texts: dict[int, str] = {}
    for event in events:
        split, times = unrepeated(event.mechanism)
        if isinstance(split, Parties):
            for party, parts in split.parts:
                counts = own.setdefault(party, Counter())
                counts.update({text: times * n for text, n in Counter(map(written, parts)).items()})
            continue
        # equal mechanisms are mostly one object, and writing one down is the slow part
        text = texts.setdefault(id(event.mechanism), "") or written(event.mechanism)
        texts[id(event.mechanism)] = text
        if not event.context.parties:
            common[text] += 1
        for party in set(event.context.parties):
            own.setdefault(party, Counter())[text] += 1
    distinct = {Exposure.of(counts) for counts in own.values()} or {Exposure.of({})}
    found = {Exposure.of(common + exposure.times(1)) for exposure in distinct}
    # a party that releases nothing costs nothing
    return {exposure for exposure in found if exposure.counts} or found


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """The subject satisfies `notion` towards groups of `group` records, by `rule` from `premises`.

    Args:
        subject: an exposure, or the hash of a whole event list.
        adjacency: the relation of neighbours.
        notion: what is concluded, with its numbers.
        rule: its name in docs/rules.md.
        parameters: what the rule is given besides its premises.
        premises: steps that the conclusion follows from.
        group: how many records the conclusion protects together.
        assumptions: what this step takes on trust, beyond what its rule always does.
        theorems: published theorems that it rests on, likewise.
    """

    subject: Exposure | str
    adjacency: Adjacency
    notion: PrivacyNotion
    rule: str
    parameters: tuple[tuple[str, Parameter], ...] = ()
    premises: tuple["Step", ...] = ()
    group: int = 1
    assumptions: frozenset[str] = frozenset()
    theorems: frozenset[str] = frozenset()

    @property
    def axioms(self) -> frozenset[str]:
        """The published theorems that this step rests on, beyond its premises."""
        published = AXIOMS.get((self.rule, type(self.notion)))
        return self.theorems | ({published} if published else set())

    @property
    def cost(self) -> Fraction:
        """The number that grows when the statement gets weaker."""
        match self.notion:
            case Gdp(mu_squared=cost) | Zcdp(rho=cost):
                return Fraction(cost)
            case Rdp(epsilon=cost) | ApproxDp(epsilon=cost):
                return Fraction(cost)

    def at_cost(self, cost: Fraction) -> PrivacyNotion:
        """Return the same notion, at the same order or delta, with another cost."""
        match self.notion:
            case Gdp():
                return Gdp(cost)
            case Zcdp():
                return Zcdp(cost)
            case Rdp() | ApproxDp():
                return replace(self.notion, epsilon=cost)

    def then(self, rule: str, notion: PrivacyNotion | None = None, **given: Parameter) -> "Step":
        """Return what `rule` concludes of the same subject from this step alone."""
        return Step(
            self.subject,
            self.adjacency,
            self.notion if notion is None else notion,
            rule,
            tuple(given.items()),
            premises=(self,),
            group=self.group,
        )

    def given(self, statement: str) -> "Step":
        """Return the same, taking one more thing for granted."""
        assumed = frozenset({f"{GIVEN}{statement}"})
        return replace(self.then("given", statement=statement), assumptions=assumed)
