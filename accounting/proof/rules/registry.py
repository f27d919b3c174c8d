"""The table of rules: every function that may make a judgement registers here.

The table, with each rule as drawn in its docstring, is the trusted base of a certificate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from types import MappingProxyType
from typing import ParamSpec, TypeVar

__all__ = ["ANY", "TABLE", "Rule", "rule"]

ANY = ""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its name, what it says (drawn), where it comes from and what vouches for it.

    `axioms` are the published theorems that a certificate using the rule rests on, by the notion
    that the rule concludes (`ANY` for all). `theorems` prove the rule in Coq, wholly or for the
    notions that docs/proofs.md says.
    """

    name: str
    drawn: str
    source: str
    theorems: tuple[str, ...]
    axioms: Mapping[str, str]

    @property
    def standing(self) -> str:
        """What vouches for the rule, in a few words."""
        proved = [f"coq:{', '.join(self.theorems)}"] if self.theorems else []
        published = [f"theorem ({kind})" if kind else "theorem" for kind in self.axioms]
        return "; ".join([*proved, *published]) or "elementary"

    def axioms_for(self, notion: str) -> frozenset[str]:
        """Return the published theorems behind a conclusion in this notion."""
        return frozenset(text for kind, text in self.axioms.items() if kind in (ANY, notion))


TABLE: dict[str, Rule] = {}


def rule(
    name: str,
    *,
    source: str,
    coq: tuple[str, ...] = (),
    axioms: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Register the decorated function as the rule of this name."""

    def register(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        TABLE[name] = Rule(name, cleandoc(function.__doc__ or ""), source, coq, axioms)
        return function

    return register
