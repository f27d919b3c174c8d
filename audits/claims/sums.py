"""Promises about totals: closed forms against exact sums, one round's rho, and parties' maximum.

Each compares two exact numbers, or an exact number with an enclosure, so that no verdict rests on
rounding; where a closed form is wrong, the smallest parameters at which it is are named.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Generic

from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure, shown_up
from ...mechanisms.errors import Number
from ...mechanisms.events import Event
from .auditor import no_argument, no_figures
from .claim import Case, ClaimVerdict, Counterexample, DerivationEvidence, Finding, S
from .settings import stated_delta

# the plan's noise is a binary64, rounded up; the paper's a real number
_BINARY64 = Fraction(1, 2**44)


@dataclass(frozen=True, slots=True)
class ClosedFormPromise(Generic[S]):
    """A closed form for a sum over rounds, both exact rational numbers.

    Args:
        claimed: the closed form.
        exact: the sum, term by term.
        candidates: parameters to search for the smallest failure, smallest first.
        named: which parameters to tell where it fails.
        counterexample: what a failure means for privacy, at the smallest parameters.
        figures, argument: as in `EpsilonPromise`.
    """

    claimed: Callable[[S], Fraction]
    exact: Callable[[S], Fraction]
    candidates: Callable[[S], Iterable[S]]
    named: tuple[str, ...]
    counterexample: Callable[[S], Counterexample] | None = None
    figures: Callable[[S], Mapping[str, Enclosure]] = no_figures
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Compare at these parameters, then find the smallest ones where the form is too small.

        Exact arithmetic on rational numbers: a closed form that is short by any amount fails.
        """
        setting = case.setting
        promised, truth = self.claimed(setting), self.exact(setting)
        verdict = ClaimVerdict.FAILS if promised < truth else ClaimVerdict.HOLDS
        reason = "the closed form equals the sum" if promised == truth else "it is above the sum"
        smallest, evidence = None, (DerivationEvidence((f"sum {float(truth):.12g}",)),)
        witness: tuple[Counterexample, ...] = ()
        if verdict is ClaimVerdict.FAILS:
            short = truth - promised
            reason = f"the sum is {float(truth):.10g}: the closed form is {float(short):.10g} short"
            smallest = next(s for s in self.candidates(setting) if self.claimed(s) < self.exact(s))
            if self.counterexample is not None:
                witness = (self.counterexample(smallest),)
        return Finding(
            verdict,
            reason,
            claimed=Enclosure.of(promised),
            true=Enclosure.of(truth),
            unit="total rho over the first round's",
            breaks_at=None
            if smallest is None
            else ", ".join(f"{name} = {getattr(smallest, name):g}" for name in self.named),
            figures=self.figures(setting),
            argument=self.argument(setting),
            evidence=(*evidence, *witness),
        )


@dataclass(frozen=True, slots=True)
class RhoPromise(Generic[S]):
    """The zCDP parameter of the planned events, a rational number or infinity.

    Args:
        claimed: rho, as the paper computes it.
        plan: the events that it is of.
        delta: where the composition is asked for; rho does not depend on it.
        argument: in words.
    """

    claimed: Callable[[S], Number]
    plan: Callable[[S], Sequence[Event]]
    delta: Callable[[S], float] = stated_delta
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Compose the planned events and compare."""
        setting = case.setting
        events, promised = tuple(self.plan(setting)), self.claimed(setting)
        truth = guarantee(events, delta=self.delta(setting))
        allowed = promised if promised == inf else Fraction(promised) * (1 + _BINARY64)
        verdict = ClaimVerdict.HOLDS if truth.rho <= allowed else ClaimVerdict.FAILS
        high = truth.rho.upper_float
        return Finding(
            verdict,
            f"enclosed rho {shown_up(high, digits=6)} against {float(promised):.6g}",
            claimed=Enclosure.of(promised),
            true=truth.rho,
            unit="rho",
            argument=self.argument(setting),
            evidence=(
                DerivationEvidence(
                    (f"the planned events compose to rho = {shown_up(high)}",), events
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class PartiesPromise(Generic[S]):
    """The total over agents is the largest of the agents' own totals.

    Args:
        plan: the events of all agents.
        delta: where mu is asked for; it does not depend on it.
        argument: in words.
    """

    plan: Callable[[S], Sequence[Event]]
    delta: Callable[[S], float] = stated_delta
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Price what each agent releases by itself, and all releases together.

        By parallel composition (McSherry 2009, Theorem 4): a record enters one agent's messages
        only.
        """
        events, delta = tuple(self.plan(case.setting)), self.delta(case.setting)
        names = sorted({party for event in events for party in event.context.parties})
        own = [
            guarantee([e for e in events if name in e.context.parties], delta=delta).mu
            for name in names
        ]
        largest = max(own, key=lambda mu: mu.upper_float)
        together = guarantee(events, delta=delta).mu
        agree = together.upper_float <= largest.upper_float
        line = (
            f"{len(names)} agents: the largest mu of their own is {shown_up(largest.upper_float)}"
        )
        return Finding(
            ClaimVerdict.HOLDS if agree else ClaimVerdict.FAILS,
            f"all agents together cost mu = {shown_up(together.upper_float, digits=6)}; {line}",
            claimed=largest,
            true=together,
            unit="mu",
            argument=self.argument(case.setting),
            evidence=(DerivationEvidence((line,), events, delta),),
        )
