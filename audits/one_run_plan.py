"""A one-run audit with its numbers of guesses fixed beforehand, and its verdict on a claim.

Whoever tries many numbers of guesses on the same scores and keeps the best bound is wrong far more
often than stated: 14 % to 20 % instead of 5 %. So the numbers are planned from what is known before
the run: how many canaries, which claim, and how bad it might be. A bound beside them looks at all
numbers at once, by a law of its own.

>>> plan = plan_guesses(canaries=1000, claimed=Gdp(1), delta=1e-5, confidence=0.95)
>>> plan.guessed_in == plan.guessed_out
True
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binomtest

from ..accounting.gaussian.exact import mu_from_epsilon_delta
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..mechanisms.errors import InvalidParameter, require_open_unit, require_positive_int
from .bounds import LowerBound
from .claim_tests import claimed_epsilon
from .one_run import Canaries, OneRun, OneRunTradeOff
from .one_run_counts import OneRunAnyCount

# numbers of guesses that a plan weighs, from a few to all canaries
_GRID = 16
_FEWEST = 10
_MOST_CANARIES = 10**6
_MOST_SUSPECTED = 64.0
"""Scores so many standard deviations apart are never confused: a larger mu plans the same."""
# coins that are fair are refused once in a million audits
_UNFAIR = 1e-6


@dataclass(frozen=True, slots=True)
class GuessPlan:
    """How many of the surest canaries are guessed, and the bound to expect if it is that bad.

    Args:
        guessed_in, guessed_out: of the highest and of the lowest scores.
        suspected_mu: what the numbers are best for; a wrong suspicion costs power only.
        expected: the lower bound to expect then: on mu for a claim of mu, else on epsilon.
    """

    guessed_in: int
    guessed_out: int
    suspected_mu: float
    expected: float


@dataclass(frozen=True, slots=True)
class OneRunAudit:
    """What one run with canaries shows of a claim.

    Args:
        plan: the numbers of guesses.
        bounds: each holds with `confidence`.
        refuted_by: methods that refute the claim, which share 1 - confidence in equal parts.
        claimed_epsilon: at delta.
        confidence: of each bound, and of the verdict.
    """

    plan: GuessPlan
    bounds: tuple[LowerBound, ...]
    refuted_by: tuple[str, ...]
    claimed_epsilon: float
    confidence: float

    @property
    def is_finding(self) -> bool:
        """Whether the claim is refuted."""
        return bool(self.refuted_by)


@lru_cache(maxsize=64)
def plan_guesses(
    *,
    canaries: int,
    claimed: Gdp | ApproxDp,
    delta: float,
    confidence: float,
    suspected: Gdp | None = None,
    fixed: tuple[int, int] | None = None,
) -> GuessPlan:
    """Return the numbers of guesses with the largest bound to expect under the suspicion.

    Scores are supposed normal with one variance, `mu` apart; nothing here looks at scores.

    Args:
        canaries: m, of which each is in by a fair coin.
        claimed: the guarantee under test.
        delta: where epsilon is bounded, in (0, 1).
        confidence: of the bound to come, in (0, 1).
        suspected: by default that the noise is half of what was claimed.
        fixed: numbers of guesses, in and out, that were fixed before the run instead.

    Raises `InvalidParameter` for what is out of range: canaries in [1, 10^6], no more guesses.
    """
    require_positive_int("canaries", canaries)
    if canaries > _MOST_CANARIES:
        raise InvalidParameter("canaries", canaries, f"in [1, {_MOST_CANARIES}]")
    if fixed is not None and not 1 <= sum(fixed) <= canaries:
        raise InvalidParameter("guesses", fixed, f"in [1, canaries={canaries}] in all")
    require_open_unit("delta", delta)
    require_open_unit("confidence", confidence)
    mu = sqrt(suspected.mu_squared) if suspected is not None else 2 * _mu_of(claimed, delta)
    if not 0 < mu < inf:
        raise InvalidParameter("suspected", suspected, "some leakage, but finite")
    mu = min(mu, _MOST_SUSPECTED)
    most = max(1, canaries // 2)
    each = np.unique(np.geomspace(min(_FEWEST, most), most, _GRID).astype(int))
    values = [_expected(int(k), canaries, mu, claimed, delta, confidence) for k in each]
    best = int(np.argmax(values))
    guessed = fixed or (int(each[best]), int(each[best]))
    return GuessPlan(*guessed, mu, values[best])


def _mu_of(claimed: Gdp | ApproxDp, delta: float) -> float:
    if isinstance(claimed, Gdp):
        return sqrt(claimed.mu_squared)
    at = max(float(claimed.delta), delta)
    return mu_from_epsilon_delta(epsilon=claimed.epsilon, delta=at).upper_float


def _expected(
    each: int, canaries: int, mu: float, claimed: Gdp | ApproxDp, delta: float, confidence: float
) -> float:
    """Return the bound at the mean number of right guesses, each end guessed `each` times."""
    share = each / canaries

    def excess(threshold: float) -> float:
        return float(ndtr(mu - threshold) + ndtr(-threshold)) / 2 - share

    threshold = brentq(excess, -40.0, mu + 40.0)
    right = float(ndtr(mu - threshold)) / (2 * share)
    # of an infinite threshold nothing is left to divide
    known = Canaries(
        np.repeat([1.0, 0.0, -1.0], [each, canaries - 2 * each, each]),
        _rightly(each, canaries, int(2 * each * min(1.0, right))),
        seed=0,
    )
    if isinstance(claimed, Gdp):
        found = OneRunTradeOff(confidence, each, each).lower_bound(known, delta=delta)
        assert found.mu is not None
        return found.mu
    return OneRun(confidence, each, each).lower_bound(known, delta=delta).epsilon


def _rightly(each: int, canaries: int, right: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return coins of which so many of the 2·`each` guesses at both ends are right."""
    included = np.zeros(canaries, dtype=np.bool_)
    included[: min(right, each)] = True
    # of the guesses "out", all are right but these
    wrong = each - max(0, right - each)
    included[canaries - wrong :] = wrong > 0
    return included


def audit_one_run(
    canaries: Canaries, *, claimed: Gdp | ApproxDp, delta: float, confidence: float, plan: GuessPlan
) -> OneRunAudit:
    """Return what canaries of one run show of a claim about adding or removing one of them.

    Args:
        canaries: scores and coins.
        claimed: the guarantee, under add-remove-one.
        delta: where epsilon is bounded, in (0, 1).
        confidence: of each bound, and that a true claim is refuted by none.
        plan: made before the run.

    Raises `InvalidParameter` for fewer than two canaries, and for coins that are not fair: there
    the theorems say nothing.

    A claim of a curve is tested as a curve, at the planned numbers of guesses. A claim of epsilon
    is tested by its own trade-off function there, and over all numbers of guesses at once.
    """
    heads, count = int(canaries.included.sum()), canaries.included.size
    if float(binomtest(heads, count, 0.5).pvalue) < _UNFAIR:
        raise InvalidParameter(
            "included", f"{heads} of {count}", "drawn by fair coins, each in with probability 1/2"
        )
    counts = (plan.guessed_in, plan.guessed_out)

    def tradeoff(level: float) -> LowerBound:
        return OneRunTradeOff(level, *counts).lower_bound(canaries, delta=delta)

    def any_count(level: float) -> LowerBound:
        return OneRunAnyCount(level).lower_bound(canaries, delta=delta)

    methods = (tradeoff,) if isinstance(claimed, Gdp) else (any_count, tradeoff)
    each = 1 - (1 - confidence) / len(methods)
    promised = claimed_epsilon(claimed, delta)

    def refuted(bound: LowerBound) -> bool:
        if isinstance(claimed, Gdp):
            # the trade-off function of the claim itself is refuted, not a point of it
            return bound.mu is not None and Fraction(bound.mu) ** 2 > claimed.mu_squared
        return bound.epsilon > promised

    planned = OneRun(confidence, *counts).lower_bound(canaries, delta=delta)
    return OneRunAudit(
        plan=plan,
        bounds=(planned, tradeoff(confidence), any_count(confidence)),
        refuted_by=tuple(
            bound.method for bound in (test(each) for test in methods) if refuted(bound)
        ),
        claimed_epsilon=promised,
        confidence=confidence,
    )
