"""Judgements: what has been derived about a sensitivity or about privacy, and how.

Only the functions of `rules` make judgements; each carries the step that made it, so that a
judgement is its own proof, and `certificate` writes it down for others to check.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.encoding import canonical_json, mechanism_to_json
from ...mechanisms.errors import DpledgerError
from ...mechanisms.events import Mechanism
from ...mechanisms.sensitivity import Norm
from ..numbers.notions import ApproxDp, Gdp, Rdp, Zcdp

__all__ = [
    "Exposure",
    "Parameter",
    "Priv",
    "PrivacyNotion",
    "RuleViolation",
    "Sens",
    "Subject",
    "written",
]

PrivacyNotion = Gdp | Zcdp | Rdp | ApproxDp

Parameter = (
    Mechanism
    | Fraction
    | int
    | str
    | tuple[int, ...]
    | tuple[tuple[Mechanism, int, int], ...]
    | tuple[tuple[Mechanism, Fraction], ...]
)
"""What a rule was given besides its premises."""


class RuleViolation(DpledgerError, ValueError):
    """A side condition does not hold, so the rule concludes nothing. Nothing is said about ε."""


class _Key:
    """Held by the rules; without it no judgement can be made."""


_RULES_ONLY = _Key()


def _require_key(key: object) -> None:
    if key is not _RULES_ONLY:
        raise TypeError("Judgements are made by the rules of dpledger.accounting.proof.rules only.")


def written(mechanism: Mechanism) -> str:
    """Return the canonical text of a mechanism, derivation included."""
    return canonical_json(mechanism_to_json(mechanism)).decode()


@dataclass(frozen=True, slots=True)
class Exposure:
    """What one record meets: mechanisms, by their canonical text, and how often each."""

    counts: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Exposure":
        """Return the exposure to the mechanisms of these texts."""
        return cls(frozenset(counts.items()))

    def times(self, factor: int) -> Counter[str]:
        """Return the counts, each `factor` fold."""
        return Counter({text: factor * n for text, n in self.counts})


Subject = Exposure | str
"""An exposure, or the hash of a whole event list."""


@dataclass(frozen=True, slots=True)
class Sens:
    """A quantity moves by at most the root of `squared` between neighbours."""

    norm: Norm
    adjacency: Adjacency
    squared: Fraction
    rules: frozenset[str]
    """Names of the rules of its derivation."""
    reasons: frozenset[str]
    """Reasons of what was declared, not derived."""
    key: _Key = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        _require_key(self.key)


@dataclass(frozen=True, slots=True)
class Priv:
    """The subject satisfies `notion` towards groups of `group` records under `adjacency`."""

    subject: Subject
    adjacency: Adjacency
    group: int
    notion: PrivacyNotion
    rule: str = field(compare=False)
    parameters: tuple[tuple[str, Parameter], ...] = field(compare=False, repr=False)
    premises: tuple["Priv", ...] = field(compare=False, repr=False)
    assumptions: frozenset[str] = field(compare=False, repr=False)
    """What this step takes on trust, beyond its premises."""
    axioms: frozenset[str] = field(compare=False, repr=False)
    """The published theorems that this step rests on, beyond its premises."""
    key: _Key = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        _require_key(self.key)

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
            case Rdp():
                return replace(self.notion, epsilon=cost)
            case ApproxDp():
                return replace(self.notion, epsilon=cost)
