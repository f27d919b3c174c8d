"""Promises of a sensitivity that the falsifier may refute: two data sets, found by searching.

A pair beyond the bound refutes it for good, and becomes an event that a release with that much
noise would forbid. No pair found proves nothing: then only a derivation can, and without one the
verdict is `UNSPECIFIED`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, inf
from typing import Generic

import numpy as np

from ...accounting.gaussian.exact import delta_from_epsilon
from ...accounting.numbers.enclosure import Enclosure, shown_up
from ...mechanisms.sensitivity import float_up
from ..falsifier import Falsification, SensitivityLemma, falsify
from .auditor import no_argument
from .claim import Case, ClaimVerdict, Counterexample, DerivationEvidence, Finding, S
from .gaussian_event import shift_event

_BINARY64 = Fraction(1, 2**44)
"""Room between a claimed real number and the doubles that a derivation is in."""


@dataclass(frozen=True, slots=True)
class LemmaPromise(Generic[S]):
    """A sensitivity lemma, its domain and its claimed bound.

    Args:
        lemma: at these parameters.
        described: a pair of the domain, in words that suffice to build it.
        proved: a bound that is derived, with the derivation's lines; infinity where none is known.
        samples: how many random pairs the search starts from.
        figures: further numbers, also of the pair that was found.
        argument: in words.
    """

    lemma: Callable[[S], SensitivityLemma]
    described: Callable[[S, Falsification], str]
    proved: Callable[[S], tuple[Fraction | float, tuple[str, ...]]] = lambda _: (inf, ())
    samples: int = 1000
    figures: Callable[[S, Falsification], Mapping[str, Enclosure]] = lambda _s, _f: {}
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Search for a pair beyond the bound; without one, ask whether a proof is at hand.

        The search is a lower bound on the sensitivity and the derivation, if there is one, an upper
        bound: the finding's `true` reaches from the one to the other.
        """
        setting = case.setting
        lemma = self.lemma(setting)
        found = falsify(lemma, samples=self.samples)
        proved, lines = self.proved(setting)
        claimed = Fraction(found.claimed)
        true = Enclosure.of(found.change)
        if proved < inf:
            true = Enclosure.hull(true, Enclosure.of(proved))
        searched = f"{found.change:.6g} against {found.claimed:.6g}, by {found.method}, of "
        searched += f"{found.evaluations} pairs"
        evidence: tuple[DerivationEvidence | Counterexample, ...] = (
            DerivationEvidence((*lines, searched)),
        )
        if found.refuted:
            verdict = ClaimVerdict.FAILS
            reason = f"two neighbours are {found.change:.6g} apart, above {found.claimed:.6g}"
            evidence = (*evidence, self._event(setting, lemma, found))
        elif proved <= claimed * (1 + _BINARY64):
            verdict = ClaimVerdict.HOLDS
            reason = (
                f"derived sensitivity {shown_up(float_up(proved), digits=6)} <= {found.claimed:.6g}"
            )
        else:
            verdict = ClaimVerdict.UNSPECIFIED
            reason = f"neither proved nor refuted: the worst pair found has {searched}"
        return Finding(
            verdict,
            reason,
            claimed=Enclosure.of(claimed),
            true=true,
            unit=f"sensitivity ({lemma.domain.adjacency.value})",
            figures=self.figures(setting, found),
            argument=self.argument(setting),
            evidence=evidence,
        )

    def _event(self, setting: S, lemma: SensitivityLemma, found: Falsification) -> Counterexample:
        """One release whose noise equals the claimed bound: 1-GDP, if the lemma were true."""
        pair = found.pair
        first, second = (
            np.ravel(lemma.released(side, pair.public)) for side in (pair.dataset, pair.neighbour)
        )
        allowed = delta_from_epsilon(mu_squared=1, epsilon=1).upper_float
        event = shift_event(
            first, second, noise_std=found.claimed, datasets=self.described(setting, found)
        )
        gap = event.probability.lower_float - exp(1) * event.neighbour_probability.upper_float
        words = f"{event.event}: P - e P' = {gap:.6g}, where 1-GDP allows {allowed:.6g}"
        return replace(event, event=words)
