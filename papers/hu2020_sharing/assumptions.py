"""S-5 and S-8: bounds that the analysis assumes, and constants that the experiments leave out.

Lemma 1's C contains a bound b_1 on the iterates. Nothing enforces it, and the noise that is added
to them exceeds it with a probability that the chi-squared distribution gives.
"""

from scipy.stats import chi2

from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.auditor import gaussian_steps
from ...audits.claims.structure import AssumptionPromise, ConstantsPromise
from .setting import SharingSetting, claim, lemma_1, planned_round


def _noise(s: SharingSetting) -> float:
    """Of every coordinate of x, from the planned events of a published round."""
    kept = [e for e in planned_round(s) if e.context.release.endswith("kept")]
    (step, *_) = gaussian_steps(kept)
    return step.noise_std


def _unbounded(s: SharingSetting) -> float:
    """P(|x + xi| > b_1): least where x = 0 (Anderson's inequality)."""
    noise = _noise(s)
    return float(chi2.sf((s.b1 / noise) ** 2, s.d_m)) if noise else 0.0


def _assumed_bound(s: SharingSetting) -> dict[str, Enclosure]:
    """Return C at the bounds that the analysis assumes."""
    return {"C at this b1 and c1": Enclosure.of(lemma_1(s, s.b1))}


BOUNDED_ITERATES = claim(
    "S-5",
    "bounded iterates",
    "x, y and z have norms of at most b1",
    "Assumption 1.1",
    AssumptionPromise(
        "|x_m + xi| <= b1",
        _unbounded,
        figures=lambda s: {"noise of a coordinate": Enclosure.of(_noise(s))},
    ),
    not_attacked="it promises nothing about privacy by itself: the bound it leads to is that of "
    "S-1, which is attacked",
)
"""Unenforced assumption: noise alone takes an iterate beyond b_1.

The paper: Assumption 1.1; C of Lemma 1 grows with b_1. Evidence: the chi-squared probability that
|x + xi| exceeds b_1, least at x = 0 (Anderson's inequality), so that it is a lower bound for every
run.
"""

EXPERIMENTS = claim(
    "S-8",
    "the experiments",
    "noise levels are shown, without C and without an epsilon",
    "section 5, figure 3",
    ConstantsPromise(("b1", "c1"), needed=lambda _: {}, figures=_assumed_bound),
    not_attacked="no epsilon is stated that a run could exceed",
)
"""Unspecified: noise levels without C say nothing of an epsilon.

The paper: Figure 3 has sigma and no epsilon, and section 5 neither b_1 nor c_1.
"""
