"""Is a claim refuted? A claim of a privacy curve is tested as a curve, by several tests at once.

One bound on epsilon at one delta leaves most of a curve untested: noise ten times too small passes
it for want of trials. Here all tests look at the same trials, and share the error probability by a
split that is fixed here, before any trial: a true claim is refuted by any of them with probability
at most the sum.

>>> told_apart = Scores(np.full(100, 9.0), np.full(100, -9.0))
>>> tests = claim_tests(told_apart, claimed=Gdp(1), delta=1e-5, confidence=0.95)
>>> [test.refuted for test in tests]
[True, True, True]
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt

import numpy as np
from scipy.special import ndtri

from ..accounting.gaussian.exact import epsilon_from_delta
from ..accounting.numbers.enclosure import shown_down, shown_in_full
from ..accounting.numbers.grade import Grade
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..mechanisms.errors import InvalidParameter, require_nonnegative, require_open_unit
from ..mechanisms.sensitivity import float_up
from .bounds import GaussianFamily, Scores, largest_rate, plan_threshold
from .selection import MultiSplit
from .sequential import Bet, Claim, SequentialTest, implied_delta, plan_bet

ERROR_SHARES = {
    "total errors": 0.25,
    "counts": 0.1,
    "betting": 0.15,
    "exact mu of the pair": 0.3,
    "noise": 0.1,
    "null control": 0.1,
}
"""What each test of a replay attack may spend of the error probability 1 - confidence."""

_SCORES_SHARES = {"total errors": 0.6, "counts": 0.4}
"""The same for scores of an unknown law, whose threshold is learned from a third of them."""

_LARGEST_BET = 20.0

# a measured mu and an exact one are computed by different roads
_ROOM = 1e-9


@dataclass(frozen=True, slots=True)
class ClaimTest:
    """One test of a claim: refutes a true one with probability at most `level`.

    Args:
        name: of the test.
        level: its part of the error probability.
        refuted: whether it refutes the claim; if not, that is no evidence for the claim.
        detail: what was seen, in words.
        valid_when: what it rests on besides independent trials.
    """

    name: str
    level: float
    refuted: bool
    detail: str
    valid_when: str


def mu_of_errors(errors: int, trials: int, *, confidence: float) -> float:
    """Return a lower bound on mu from the errors of as many trials on D as on D'.

    A test between two neighbours of a mu-GDP mechanism has FPR + FNR >= 2 Phi(-mu/2). The total of
    errors is a sum of independent indicators of that mean at least, and so at most k with no larger
    probability than a binomial variable is, for k at least one below the mean.

    Args:
        errors: false positives and misses, at a threshold fixed before the trials.
        trials: in both worlds together, half of them each.
        confidence: in (0, 1).

    Source: Nasr et al. 2023, section 4 (counts to mu); Hoeffding 1956, Theorem 4 (totals); Dong,
    Roth, Su 2022, Theorem 2.7.
    """
    return max(0.0, -2.0 * float(ndtri(_error_rate(errors, trials, confidence))))


def _error_rate(errors: int, trials: int, confidence: float) -> float:
    """Return the upper confidence bound on the mean error rate of both worlds, at most 1/2."""
    rate = float(largest_rate(errors, trials, confidence=confidence))
    return min(0.5, max(rate, (errors + 1) / trials))


def claimed_epsilon(claimed: Claim, delta: float) -> float:
    """Return the epsilon that is claimed at `delta`, rounded up.

    Raises `InvalidParameter` where the claim is silent there.
    """
    if isinstance(claimed, ApproxDp):
        if claimed.delta > delta:
            raise InvalidParameter("delta", delta, f"at least the claimed {float(claimed.delta)}")
        return float_up(claimed.epsilon)
    if delta == 0:
        raise InvalidParameter("delta", delta, "in (0, 1): the claim has no finite epsilon at 0")
    if isinstance(claimed, Gdp):
        return epsilon_from_delta(mu_squared=claimed.mu_squared, delta=delta).upper_float
    return claimed.epsilon(delta).upper_float


def claim_grade(claimed: Claim) -> str:
    """Return what stands behind `claimed_epsilon`: "stated" if the claim is one of epsilon itself.

    From any other claim it is computed in ball arithmetic: the grade "enclosed".
    """
    return "stated" if isinstance(claimed, ApproxDp) else Grade.ENCLOSED.value


def claim_tests(
    scores: Scores, *, claimed: Claim, delta: float, confidence: float, pair_mu: float | None = None
) -> tuple[ClaimTest, ...]:
    """Return tests of a claim by log-likelihood ratios; their levels follow `ERROR_SHARES`.

    Args:
        scores: ratios log p(output | D) - log p(output | D'), in the order in which they ran.
        claimed: the guarantee.
        delta: where counting bounds epsilon, for the planned threshold.
        confidence: that a true claim is refuted by none of them, the null control and the test of
            the noise included.
        pair_mu: the pair's exact mu if noise and sensitivity are as stated; None where unknown.
    """
    require_open_unit("confidence", confidence)
    level = {name: share * (1 - confidence) for name, share in ERROR_SHARES.items()}
    tests = [_total_errors(scores, 0.0, claimed, level["total errors"])]
    if isinstance(claimed, Gdp) and 0 < claimed.mu_squared < inf:
        tests.append(_counts(scores, claimed, delta, level["counts"]))
        tests.append(_betting(scores, claimed, level["betting"]))
    if pair_mu is not None:
        tests.append(_exact_mu(scores, pair_mu, level["exact mu of the pair"]))
    return tuple(tests)


def scores_tests(
    scores: Scores, *, claimed: Claim, delta: float, confidence: float, seed: int
) -> tuple[ClaimTest, ...]:
    """Return tests of a claim by scores of any law, larger where a run looks more like D.

    Args:
        scores: at least two a world.
        claimed: the guarantee.
        delta: where counting bounds epsilon: that of an (epsilon, delta) claim.
        confidence: that a true claim is refuted by none of them.
        seed: of the splits into trials to learn from and to test on; fix it before looking.
    """
    require_open_unit("confidence", confidence)
    require_nonnegative("seed", seed)
    level = {name: share * (1 - confidence) for name, share in _SCORES_SHARES.items()}
    learning, testing = _thirds(scores, seed)
    tests = [_total_errors(testing, _learned_threshold(learning), claimed, level["total errors"])]
    promised = claimed_epsilon(claimed, delta)
    bound = MultiSplit(1 - level["counts"], seed).lower_bound(scores, delta=delta)
    tests.append(
        ClaimTest(
            name="counts",
            level=level["counts"],
            refuted=bound.epsilon > promised,
            detail=(
                f"epsilon >= {shown_down(bound.epsilon, digits=4)} at delta "
                f"{shown_in_full(delta)}: {bound.detail}"
            ),
            valid_when=bound.valid_when,
        )
    )
    return tuple(tests)


def _total_errors(scores: Scores, threshold: float, claimed: Claim, level: float) -> ClaimTest:
    """Test the claim's point at epsilon 0, the largest total variation that it allows."""
    each = min(scores.dataset.size, scores.neighbour.size)
    misses = int(np.count_nonzero(scores.dataset[:each] <= threshold))
    false_positives = int(np.count_nonzero(scores.neighbour[:each] > threshold))
    errors, trials = misses + false_positives, 2 * each
    rate = _error_rate(errors, trials, 1 - level)
    least = (1 - implied_delta(claimed, 0.0)) / 2
    shown = mu_of_errors(errors, trials, confidence=1 - level)
    return ClaimTest(
        name="total errors",
        level=level,
        refuted=rate < least,
        detail=(
            f"{errors} errors in {trials} guesses at threshold {threshold:.4g}: a rate of at most "
            f"{rate:.4g}, where the claim needs {least:.4g}; mu >= {shown_down(shown, digits=4)}"
        ),
        valid_when="the threshold was fixed before these trials",
    )


def _counts(scores: Scores, claimed: Gdp, delta: float, level: float) -> ClaimTest:
    """Test the whole curve at the threshold where a tight claim shows most at `delta`."""
    trials = min(scores.dataset.size, scores.neighbour.size)
    plan = plan_threshold(claimed=claimed, trials=trials, delta=delta, confidence=1 - level)
    errors = {
        "false positives": (scores.neighbour > plan.threshold),
        "misses": (scores.dataset <= plan.threshold),
    }
    fpr, fnr = (
        float(largest_rate(int(np.count_nonzero(wrong)), wrong.size, confidence=1 - level / 2))
        for wrong in errors.values()
    )
    # the largest mu whose trade-off function lies above this point
    shown = float(-ndtri(fpr) - ndtri(fnr))
    return ClaimTest(
        name="counts",
        level=level,
        refuted=shown > sqrt(claimed.mu_squared) * (1 + _ROOM),
        detail=(
            f"false positives at most {fpr:.4g}, misses at most {fnr:.4g} at threshold "
            f"{plan.threshold:.4g}: mu >= {shown_down(max(0.0, shown), digits=4)}"
        ),
        valid_when="the threshold was fixed before these trials",
    )


@lru_cache(maxsize=64)
def _bet(claimed: Gdp) -> Bet:
    """Return the bet against a claim; many repetitions of an attack share it."""
    return plan_bet(claimed=claimed)


def _betting(scores: Scores, claimed: Gdp, level: float) -> ClaimTest:
    """Return the sequential test on pairs of runs, in the order in which they came."""
    each = min(scores.dataset.size, scores.neighbour.size)
    # beyond so large a mu the bet's numbers overflow, and counting sees all there is
    if claimed.mu_squared > _LARGEST_BET**2:
        return ClaimTest("betting", level, False, "not tested: mu is too large to bet on", "")
    test = SequentialTest(_bet(claimed), 1 - level)
    found = test.after(Scores(scores.dataset[:each], scores.neighbour[:each]))
    refuted = found.refuted_after is not None
    words = f"after {found.refuted_after} pairs of runs" if refuted else f"{found.pairs} pairs"
    return ClaimTest(
        name="betting",
        level=level,
        refuted=refuted,
        detail=f"{words}; p-value {found.p_value:.3g}",
        valid_when="pairs are independent and the bet was fixed before the first",
    )


def _exact_mu(scores: Scores, pair_mu: float, level: float) -> ClaimTest:
    """Return the test against the exact mu of the attacked pair: scores of Gaussian steps are
    normal, so that the measured mu must not exceed it.
    """
    bound = GaussianFamily(1 - level).lower_bound(scores, delta=0.5)
    assert bound.mu is not None
    least = shown_down(bound.mu, digits=4)
    words = f"mu >= {least} measured, {pair_mu:.4g} exact if the noise is as stated"
    return ClaimTest(
        name="exact mu of the pair",
        level=level,
        refuted=bound.mu > pair_mu * (1 + _ROOM),
        detail=words if bound.conditions_met else f"not tested: {bound.detail}",
        valid_when="scores are normal with one variance, as those of Gaussian steps are",
    )


# --- scores of an unknown law --------------------------------------------------------------------


def _thirds(scores: Scores, seed: int) -> tuple[Scores, Scores]:
    """Return a random third of each world's scores, and the others."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    learning, testing = [], []
    for name, world in (("dataset", scores.dataset), ("neighbour", scores.neighbour)):
        if world.size < 2:
            raise InvalidParameter(f"{name}.size", world.size, "at least 2, to be split")
        mixed, third = generator.permutation(world), max(1, world.size // 3)
        learning.append(mixed[:third])
        testing.append(mixed[third:])
    return Scores(*learning), Scores(*testing)


def _learned_threshold(scores: Scores) -> float:
    """Return the pooled median, or the threshold of fewest errors where that is clearly better.

    The median is the best threshold of a symmetric pair and hardly depends on luck.
    """
    first, second = np.sort(scores.dataset), np.sort(scores.neighbour)
    pooled = np.sort(np.concatenate([first, second]))
    middle = float(pooled[(pooled.size - 1) // 2])
    misses = np.searchsorted(first, pooled, "right") / first.size
    false_positives = 1 - np.searchsorted(second, pooled, "right") / second.size
    total = misses + false_positives
    best = int(np.argmin(total))
    spread = sqrt(1 / (4 * first.size) + 1 / (4 * second.size))
    at_middle = float(total[int(np.searchsorted(pooled, middle, "right")) - 1])
    return float(pooled[best]) if total[best] < at_middle - 2 * spread else middle
