"""The auditor: promises of an epsilon and of a sensitivity, and how to derive what is true.

It runs the published solver under the planning curator and looks at the events: what left, with
which derived sensitivity and how much noise. An `EpsilonPromise` composes them with the enclosed
engine, a `SensitivityPromise` compares exactly. Comparisons that enclosures cannot decide raise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Generic

from ...accounting.guarantees import Guarantee, guarantee
from ...accounting.numbers.enclosure import Enclosure, shown_down, shown_in_full, shown_up
from ...mechanisms.errors import InvalidParameter
from ...mechanisms.events import Event, GaussianStep
from ...mechanisms.sensitivity import (
    Sensitivity,
    concatenated_disjoint,
    scaled,
    strongly_convex_argmin,
)
from .claim import Case, Claim, ClaimVerdict, Counterexample, DerivationEvidence, Finding, S
from .settings import stated_delta, stated_epsilon
from .sweep import Sweep

# step sizes are binary64 in the solver and real numbers in the paper
_BINARY64 = Fraction(1, 2**44)
"""Relative allowance for a solver's step sizes: 512 times the rounding error of one operation."""


def gaussian_steps(events: Iterable[Event]) -> list[GaussianStep]:
    """Return the Gaussian mechanisms of a plan, in order."""
    return [event.mechanism for event in events if isinstance(event.mechanism, GaussianStep)]


def at_tolerance(sensitivity: Sensitivity, tolerance: Fraction) -> Sensitivity:
    """Return a sensitivity as it were if minimisers were found to another gradient norm.

    A paper speaks of exact minimisers, and a plan of those that an implementation finds: the
    derivation is built again with another tolerance. Weighted blocks are looked through; what is no
    minimiser's stays as it is.

    Args:
        sensitivity: of a release, with its derivation.
        tolerance: gradient norm at which a minimiser is taken for found, >= 0; 0 for exact ones.
    """
    derivation = sensitivity.derivation
    given = dict(derivation.parameters)
    below = [
        at_tolerance(
            Sensitivity(sensitivity.norm, sensitivity.adjacency, premise.squared, premise),
            tolerance,
        )
        for premise in derivation.premises
    ]
    if derivation.rule == "disjoint":
        return concatenated_disjoint(below[0], below[1])
    if derivation.rule == "scaled":
        return scaled(below[0], Fraction(given["factor"]))
    if derivation.rule != "strongly-convex-argmin":
        return sensitivity
    return strongly_convex_argmin(
        Fraction(given["lipschitz"]),
        Fraction(given["modulus"]),
        tolerance,
        int(Fraction(given["count"])),
        sensitivity.adjacency,
    )


def no_figures(_: object) -> Mapping[str, Enclosure]:
    """Return no further numbers."""
    return {}


def no_argument(_: object) -> tuple[str, ...]:
    """Return no words beyond the reason."""
    return ()


def _always(_: object) -> str | None:
    """Return that no condition is violated."""
    return None


def _here(case: Case[S]) -> Sequence[S]:
    """Return the case's own setting as the only one."""
    return (case.setting,)


@dataclass(frozen=True, slots=True)
class Quantifier:
    """A claim "for all `name`", a whole number: searched from 1 to `most` for the first failure.

    `others` gives other parameters the values, within the claim's regime, at which it is most at
    risk; what the user fixed stays. The search takes for granted that what fails at one value fails
    at larger ones: a failure that it reports is derived at the value itself.
    """

    name: str
    most: int
    others: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class EpsilonPromise(Generic[S]):
    """An epsilon at a delta, as a formula of the parameters.

    Args:
        plan: the events of the published algorithm.
        claimed: the formula; by default the epsilon among the parameters.
        delta: at which delta; by default the one among the parameters.
        regime: which of the claim's own conditions the parameters violate; None if none.
        cases: the parameters that the claim names, where it names several.
        quantifier: the parameter that the claim is universal in.
        broken: where the claim starts to fail, if it does, in words.
        counterexample: two data sets and an event, from the parameters and the claimed epsilon;
            None where there is none at these parameters.
        figures: further numbers.
        argument: in words.
    """

    plan: Callable[[S], Sequence[Event]]
    claimed: Callable[[S], Enclosure] = stated_epsilon
    delta: Callable[[S], float] = stated_delta
    regime: Callable[[S], str | None] = _always
    cases: Callable[[Case[S]], Sequence[S]] = _here
    quantifier: Quantifier | None = None
    broken: Callable[[S], str | None] = _always
    counterexample: Callable[[S, Enclosure], Counterexample | None] | None = None
    figures: Callable[[S], Mapping[str, Enclosure]] = no_figures
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Compose the planned events and compare at every case; then search for a failure."""
        judged = [(self._at(setting), setting) for setting in self.cases(case)]
        worst, setting = min(judged, key=lambda pair: _standing(pair[0]))
        if worst.verdict is ClaimVerdict.HOLDS:
            worst = replace(worst, reason=worst.reason + _looseness([f for f, _ in judged]))
        if self.quantifier is not None and worst.verdict is ClaimVerdict.HOLDS:
            worst, setting = self._searched(case, self.quantifier) or (worst, setting)
        elif self.quantifier is not None and worst.verdict is ClaimVerdict.FAILS:
            first = self._searched(Case(setting), replace(self.quantifier, others={}))
            worst = worst if first is None else replace(worst, breaks_at=first[0].breaks_at)
        if worst.verdict is ClaimVerdict.FAILS and worst.breaks_at is None:
            worst = replace(worst, breaks_at=self.broken(setting))
        return replace(worst, figures=self.figures(setting), argument=self.argument(setting))

    def derived(self, setting: S) -> Guarantee:
        """Return the enclosed guarantee of the planned events.

        Args:
            setting: the parameters.
        """
        return guarantee(self.plan(setting), delta=self.delta(setting))

    def _at(self, setting: S) -> Finding:
        """Return the finding at one setting: composed, enclosed, and compared with the claim."""
        events, promised = tuple(self.plan(setting)), self.claimed(setting)
        truth = guarantee(events, delta=self.delta(setting))
        low, high = truth.epsilon.lower_float, truth.epsilon.upper_float
        claimed = promised.upper_float
        verdict, reason = (
            ClaimVerdict.HOLDS,
            f"enclosed epsilon {shown_up(high, digits=6)} <= {shown_up(claimed, digits=6)}",
        )
        outside, witness = self.regime(setting), None
        if truth.unprotected:
            verdict, events = ClaimVerdict.UNACCOUNTED_ACCESS, ()
            reason = f"epsilon is infinite: {'; '.join(truth.unprotected)}"
            witness = self.counterexample and self.counterexample(setting, promised)
            verdict = verdict if witness is None else ClaimVerdict.FAILS
        elif outside is not None:
            verdict = ClaimVerdict.OUTSIDE_ITS_REGIME
            reason = f"{outside}; the true epsilon there is {shown_up(high, digits=6)}"
        elif not truth.epsilon <= promised:
            verdict = ClaimVerdict.FAILS
            reason = f"the true epsilon is {shown_down(low, digits=6)}, above the claimed "
            reason += shown_down(claimed, digits=6)
            witness = self.counterexample and self.counterexample(setting, promised)
        lines = (
            f"the planned events compose to mu = {shown_up(truth.mu.upper_float)} ({truth.method})",
            f"epsilon {shown_up(high)} at delta {shown_in_full(truth.delta)}; "
            f"claimed {promised.upper_float:.10g}",
        )
        derivation = DerivationEvidence(lines, events, truth.delta if events else None)
        return Finding(
            verdict,
            reason,
            claimed=promised,
            true=truth.epsilon,
            unit=f"epsilon at delta {shown_in_full(truth.delta)}",
            evidence=(derivation,) if witness is None else (derivation, witness),
        )

    def _searched(self, case: Case[S], quantifier: Quantifier) -> tuple[Finding, S] | None:
        """The first failure over the claim's own quantifier, where there is one."""
        case = case.at(**quantifier.others)

        def fails(value: int) -> bool:
            setting = case.at(**{quantifier.name: value}).setting
            return not self.derived(setting).epsilon <= self.claimed(setting)

        first = _first(fails, quantifier.most) if case.free(quantifier.name) else 1
        found = None if first is None else case.at(**{quantifier.name: first}).setting
        if found is None:
            return None
        finding = self._at(found)
        if finding.verdict is not ClaimVerdict.FAILS:
            return None
        place = f"{quantifier.name} = {getattr(found, quantifier.name):g}"
        for name in quantifier.others:
            place += f", {name} = {getattr(found, name):g}"
        return replace(finding, breaks_at=place), found


def _first(fails: Callable[[int], bool], most: int) -> int | None:
    """Return the first whole number in [1, most] that fails, by doubling and bisection; None if
    none does.
    """
    holds, broken = 0, 1
    while not fails(broken):
        if broken >= most:
            return None
        holds, broken = broken, min(2 * broken, most)
    while broken - holds > 1:
        middle = (holds + broken) // 2
        holds, broken = (holds, middle) if fails(middle) else (middle, broken)
    return broken


def _standing(finding: Finding) -> tuple[bool, float]:
    """How well a claim stands: failures first, then the tightest."""
    open_above = finding.true is not None and finding.true.upper_float == inf
    factor = 0.0 if open_above else finding.factor
    return finding.verdict is ClaimVerdict.HOLDS, inf if factor is None else factor


def _looseness(judged: Sequence[Finding]) -> str:
    """Return how many times the truth the claims are over several settings, in words."""
    factors = [f.factor for f in judged if f.factor is not None]
    if len(factors) < 2:
        return ""
    return (
        f"; {min(factors):.4g} to {max(factors):.4g} times the truth over {len(factors)} settings"
    )


@dataclass(frozen=True, slots=True)
class SensitivityPromise(Generic[S]):
    """A sensitivity for every release of the published algorithm, in the order of its plan.

    Args:
        claimed: one value for each planned Gaussian step.
        plan: the events.
        tolerance: the gradient norm to which minimisers are found; a paper that says nothing has 0.
        enforced: the events if the assumption named here were enforced; None if nothing is assumed.
        counterexample: two data sets whose releases are farther apart than claimed.
        figures, argument: as in `EpsilonPromise`.
    """

    claimed: Callable[[S], Sequence[Fraction]]
    plan: Callable[[S], Sequence[Event]]
    tolerance: Callable[[S], float] = lambda _: 0.0
    enforced: tuple[str, Callable[[S], Sequence[Event]]] | None = None
    counterexample: Callable[[S], Counterexample] | None = None
    figures: Callable[[S], Mapping[str, Enclosure]] = no_figures
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Compare with what the calculus derives, and with what it would of exact minimisers."""
        setting = case.setting
        tolerance = Fraction(self.tolerance(setting))
        promised, truth = self._least_covered(setting, self.plan, tolerance)
        verdict, witness = ClaimVerdict.HOLDS, None
        moved = shown_up(truth.value, digits=6)
        reason = f"derived sensitivity {moved} <= {float(promised):.6g}"
        if not _covers(promised, truth):
            verdict = ClaimVerdict.UNENFORCED_ASSUMPTION
            if _covers(*self._least_covered(setting, self.plan, Fraction(0))):
                reason = (
                    f"true of exact minimisers only, which no algorithm finds: at gradient norm "
                    f"{float(tolerance):g} the sensitivity is {moved}"
                )
            elif self.enforced is not None and _covers(
                *self._least_covered(setting, self.enforced[1], tolerance)
            ):
                reason = f"{self.enforced[0]}; without it the sensitivity is {moved}"
            else:
                verdict = ClaimVerdict.FAILS
                reason = f"the sensitivity is {moved}, above {float(promised):.6g}"
                witness = self.counterexample and self.counterexample(setting)
        derivation = DerivationEvidence(tuple(truth.derivation.lines()))
        return Finding(
            verdict,
            reason,
            claimed=Enclosure.of(promised),
            true=Enclosure.of(truth.root),
            unit=f"sensitivity ({truth.adjacency.value})",
            figures=self.figures(setting),
            argument=self.argument(setting),
            evidence=(derivation,) if witness is None else (derivation, witness),
        )

    def _least_covered(
        self, setting: S, plan: Callable[[S], Sequence[Event]], tolerance: Fraction
    ) -> tuple[Fraction, Sensitivity]:
        """The claimed and the derived sensitivity of the release that is worst covered."""
        steps = gaussian_steps(plan(setting))
        derived = [at_tolerance(step.sensitivity, tolerance) for step in steps]
        pairs = zip(self.claimed(setting), derived, strict=True)
        return min(pairs, key=lambda pair: pair[0] / pair[1].root)


def _covers(promised: Fraction, truth: Sensitivity) -> bool:
    return truth.root <= promised * (1 + _BINARY64)


def swept(
    claim: Claim[S],
    parameter: str,
    values: Sequence[float],
    *,
    at: Callable[[S, float], S],
    caption: str,
) -> Sweep[S]:
    """Return an epsilon claim over a range: its own formula, beside what its own plan composes to.

    Args:
        claim: of an `EpsilonPromise`.
        parameter: what varies, in words.
        values: of it, growing.
        at: the setting for a value.
        caption: what the plot shows, in a sentence.

    Raises `InvalidParameter` for a claim of another kind, which has no epsilon of its own.
    """
    promise = claim.promise
    if not isinstance(promise, EpsilonPromise):
        raise InvalidParameter("claim", claim.identifier, "one that promises an epsilon")
    return Sweep(
        claim.identifier,
        parameter,
        values,
        at,
        promise.claimed,
        lambda s: promise.derived(s).epsilon,
        caption,
    )
