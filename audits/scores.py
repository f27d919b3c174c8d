"""Scores of an attack of a user's own: lower bounds on epsilon, and tests of a claim.

In come two arrays of scores, of independent runs with the record and without, and what is
claimed; out goes `JudgedScores`. The attack itself is not seen: its scores may be anything, and a
poor one costs power and never validity.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from ..accounting.numbers.notions import ApproxDp, Gdp
from ..mechanisms.errors import InvalidParameter, require_delta, require_nonnegative
from ..mechanisms.protocols import FloatArray
from .bounds import GaussianFamily, LowerBound, Scores
from .claim_tests import ClaimTest, claim_grade, claimed_epsilon, scores_tests
from .metrics import auc
from .selection import MultiSplit

_SEED = 0
"""Of the splits; fixed here, so that nobody can choose a split that pleases."""
_MOST_MU = 1e100
"""Of a claim: its square, and epsilon, about half of that, are still doubles."""
# below so many trials a world the family's own tests do not see heavy tails: of Laplace scores the
# bound exceeded the truth in 46 % of 50 trials, 19 % of 200, none of 500
_FEWEST_FOR_FAMILY = 500
_OUT_OF_PLACE = 5
"""Scores that are not the commonest one: among twenty, fifteen thousand orders at least, of which
chance takes an ascending or a descending one."""
_NOT_MEANT = (
    "A bound of 0, or one below the claim, is no evidence of privacy: another attack, other data "
    "or more trials may show more.",
    "Scores must be of independent runs. There is no null control: attack runs that do not differ "
    "in the same way, and expect 0.",
    "The verdict is that of the tests, which share the error probability. What holds only for "
    "normal scores is no part of it; it stands under its own heading, from 500 trials a world on.",
)


@dataclass(frozen=True, slots=True)
class ClaimedPrivacy:
    """What is claimed, and where epsilon is bounded.

    Args:
        claim: mu-GDP, or (epsilon, delta).
        delta: in [0, 1); 0 for pure differential privacy.
    """

    claim: Gdp | ApproxDp
    delta: float

    @classmethod
    def of(cls, *, epsilon: float | None, mu: float | None, delta: float) -> "ClaimedPrivacy":
        """Return the claim of epsilon or of mu at delta in [0, 1), which is above 0 for mu.

        Raises `InvalidParameter` unless one of both is stated, in its range.
        """
        require_delta(delta)
        if epsilon is not None and mu is None:
            if epsilon == inf:
                raise InvalidParameter("epsilon", epsilon, "finite: infinity claims nothing")
            return cls(ApproxDp(epsilon, delta), delta)
        if mu is None or epsilon is not None:
            raise InvalidParameter("epsilon", epsilon, "set, or mu, and not both")
        require_nonnegative("mu", mu)
        if mu > _MOST_MU:
            raise InvalidParameter("mu", mu, f"in [0, {_MOST_MU:g}]")
        if delta == 0:
            raise InvalidParameter("delta", delta, "in (0, 1) with mu; 0 is pure epsilon's")
        return cls(Gdp(Fraction(mu) ** 2), delta)

    @property
    def epsilon(self) -> float:
        """The claimed epsilon at `delta`, rounded up."""
        return claimed_epsilon(self.claim, self.delta)

    @property
    def unit(self) -> str:
        """What the claim is a number of: "epsilon" or "mu"."""
        return "mu" if isinstance(self.claim, Gdp) else "epsilon"

    @property
    def grade(self) -> str:
        """What stands behind `epsilon`: "stated", or the grade of a conversion from mu."""
        return claim_grade(self.claim)


@dataclass(frozen=True, slots=True)
class JudgedScores:
    """What scores of independent runs show.

    Args:
        scores: with the record and without.
        claimed: what they are held against.
        bound: the counting bound on epsilon.
        if_normal: bounds that hold for normal scores only, where nothing speaks against that.
        tests: of the claim; they share the error probability.
        ceiling: the largest epsilon that so many trials could have shown.
        auc: area under the receiver operating characteristic.
        not_meant: what must not be read into this.
    """

    scores: Scores
    claimed: ClaimedPrivacy
    bound: LowerBound
    if_normal: tuple[LowerBound, ...]
    tests: tuple[ClaimTest, ...]
    ceiling: float
    auc: float
    not_meant: tuple[str, ...] = _NOT_MEANT

    @property
    def refutes_claim(self) -> bool:
        """Whether a test refutes the claim."""
        return any(test.refuted for test in self.tests)


def judge_scores(scores: Scores, claimed: ClaimedPrivacy, *, confidence: float) -> JudgedScores:
    """Return what scores show of a claim; the bound and all tests together have `confidence`.

    Args:
        scores: of independent runs, two or more in each world, in the order of the runs: by their
            places it is settled which of them a threshold is learned from.
        claimed: what they are held against, stated before they were seen.
        confidence: in (0, 1).

    Raises `InvalidParameter` for twenty scores or more that ascend or descend: they were sorted.

    Error controlled: the bound is too large, or some test refutes a claim that is kept, each with
    probability at most 1 - confidence. Both hold for any law of the scores.
    """
    for name, world in (("dataset", scores.dataset), ("neighbour", scores.neighbour)):
        if _is_sorted(world):
            raise InvalidParameter(name, "sorted", "scores in the order of the runs")
    counting = MultiSplit(confidence, _SEED)
    return JudgedScores(
        scores,
        claimed,
        bound=counting.lower_bound(scores, delta=claimed.delta),
        if_normal=_if_normal(scores, claimed, confidence),
        tests=tuple(
            scores_tests(
                scores,
                claimed=claimed.claim,
                delta=claimed.delta,
                confidence=confidence,
                seed=_SEED,
            )
        ),
        ceiling=counting.ceiling(
            trials=min(scores.dataset.size, scores.neighbour.size), delta=claimed.delta
        ),
        auc=auc(scores),
    )


def _is_sorted(world: FloatArray) -> bool:
    """Return whether these ascend or descend, too many and too unlike to do so by chance."""
    _, times = np.unique(world, return_counts=True)
    if world.size < 20 or world.size - times.max() < _OUT_OF_PLACE:
        return False
    return bool(np.all(world[1:] >= world[:-1]) or np.all(world[1:] <= world[:-1]))


def _if_normal(
    scores: Scores, claimed: ClaimedPrivacy, confidence: float
) -> tuple[LowerBound, ...]:
    """Return what holds for normal scores only, where enough of them say nothing against it."""
    if claimed.delta == 0:
        return ()
    family = GaussianFamily(confidence, fewest=_FEWEST_FOR_FAMILY)
    found = family.lower_bound(scores, delta=claimed.delta)
    return (found,) if found.conditions_met else ()
