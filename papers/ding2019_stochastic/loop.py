"""PS-4 and PS-5: the inner loop and its average, as printed.

Neither is about privacy: both are misprints or slips that decide whether the algorithm runs as its
convergence proof says. The court judges them because an implementation has to choose a reading.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.claim import Case, ClaimVerdict, DerivationEvidence, Finding, ThreatModel
from ...solvers.stochastic import InnerWeights, PrintedWeights
from .setting import PsSetting, claim


@dataclass(frozen=True, slots=True)
class WeightsPromise:
    """v̂^{s+1} is a convex combination of v^s and v^{s+1}.

    Args:
        weights: the weight of v^{s+1}, as a function of eta nu.
    """

    weights: InnerWeights

    def judge(self, case: Case[PsSetting]) -> Finding:
        """Look at both weights.

        A convex combination has both weights in [0, 1].
        """
        following = self.weights.of_next(case.setting.eta_nu)
        convex = 0 <= following <= 1
        reason = f"the weights are {1 - following:.6g} of v^s and {following:.6g} of v^(s+1)"
        return Finding(
            ClaimVerdict.HOLDS if convex else ClaimVerdict.FAILS,
            reason + ("" if convex else ": an extrapolation; nothing that privacy leans on"),
            figures={
                "weight of v^s": Enclosure.of(1 - following),
                "weight of v^(s+1)": Enclosure.of(following),
            },
            argument=(
                "x^{k+1} = mean of v^s + (kappa/S)(v^S - v^0), kappa = xi/(2 eta): the average "
                "runs, but Jensen's inequality in Lemma 7 has a negative weight.",
                "Repair: xi = 2 eta/(2 - eta nu), zeta = 2 eta - xi, which eta nu <= 1 allows.",
            ),
            evidence=(DerivationEvidence((reason, _square_of_the_average(following))),),
        )


def _square_of_the_average(weight: float) -> str:
    """What Jensen's inequality would say of f(v) = v² at v^s = 1, v^(s+1) = 1/2."""
    square, mean = (1 - weight / 2) ** 2, 1 - 0.75 * weight
    word = "at most" if square <= mean else "above"
    return f"v̂² = {square:.6g} for v = 1, 1/2 is {word} the average {mean:.6g} of 1, 1/4"


@dataclass(frozen=True, slots=True)
class LoopPromise:
    """The inner loop computes all that the average uses.

    Args:
        used: the indices s + 1 of v̂ in the average.
        computed: those that the loop sets.
    """

    used: Callable[[PsSetting], range]
    computed: Callable[[PsSetting], range]

    def judge(self, case: Case[PsSetting]) -> Finding:
        """Compare the indices.

        Only the first and the last indices can be missing: both ranges are without gaps.
        """
        used, computed = self.used(case.setting), self.computed(case.setting)
        missing = [index for index in used[:2] if index not in computed]
        missing += [index for index in used[-2:] if index not in computed]
        reason = f"the loop sets v̂^s for s = {computed.start}, ..., {computed.stop - 1}"
        if missing:
            reason += f", the average also uses v̂^{missing[0]}"
        draws = f"{len(computed)} noises a round; Theorem 2 counts {case.setting.S}"
        return Finding(
            ClaimVerdict.FAILS if missing else ClaimVerdict.HOLDS,
            reason,
            argument=(draws, "Least change: s = 0, ..., S - 1; the first correction is zero."),
            evidence=(DerivationEvidence((reason, draws)),),
        )


AVERAGE = claim(
    "PS-4",
    "the average of iterates",
    "v̂^{s+1} = (zeta v^s + xi v^{s+1})/(2 eta), xi = 4 eta/(1 - 2 eta nu), zeta = 2 eta - "
    "xi, is a convex combination",
    "Algorithm 2, line 12; Lemma 7",
    WeightsPromise(PrintedWeights()),
    adjacency=None,
    threat_model=ThreatModel.NONE,
    not_attacked="it promises nothing about privacy: whatever its weights, the average is "
    "computed from noisy gradients that are priced one by one",
)
"""Fails: xi/(2 eta) = 2/(1 - 2 eta nu) exceeds 1, so that v^s has a negative weight.

The paper: Algorithm 2, line 12, with the weights that Lemma 3's lossy split of a variance leads to.
Evidence: the two weights, and f(v) = v², for which Jensen's inequality in Lemma 7 then fails.
"""


LOOP = claim(
    "PS-5",
    "the inner loop",
    "for s = 1, ..., S - 1 the loop sets v̂^{s+1}; x^{k+1} is the mean of v̂^1, ..., v̂^S",
    "Algorithm 2, lines 7 to 14",
    LoopPromise(lambda s: range(1, s.S + 1), lambda s: range(s.first_step + 1, s.S + 1)),
    adjacency=None,
    threat_model=ThreatModel.NONE,
    not_attacked="as printed it averages what it never computes, so that nothing runs; "
    "read from s = 0 it is the algorithm that PS-3 and PS-6 run",
)
"""Fails: the average uses v̂^1, and a loop from s = 1 sets v̂^2 first.

The paper: lines 7 to 14. The least change that makes it run, s = 0, ..., S - 1, draws the S noises
that Theorem 2 counts.
"""
