"""Lower bounds on epsilon from the scores of an attack, each with its theorem and its conditions.

A score is one number a trial, larger where the data set looks more likely than its neighbour. Two
bounds: `ClopperPearson` counts errors at a threshold fixed before any trial ran and needs nothing
else; `GaussianFamily` needs normal scores and is far tighter. A bound that cannot tell anything is
0, and 0 proves nothing.

>>> plan = plan_threshold(claimed=Gdp(1), trials=100_000, delta=1e-5, confidence=0.95)
>>> round(plan.threshold, 2), round(plan.expected_epsilon, 2)
(3.06, 2.82)
>>> round(ceiling(trials=100_000, delta=1e-5, confidence=0.95), 2)
10.21
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import copysign, inf, isfinite, isnan, nextafter, sqrt
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, fdtr, fdtrc, nctdtr, ndtr, ndtri
from scipy.stats import binom, normaltest

from ..accounting.gaussian.exact import epsilon_from_delta, mu_from_epsilon_delta
from ..accounting.numbers.enclosure import shown_down
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..mechanisms.errors import (
    InvalidParameter,
    require_delta,
    require_open_unit,
    require_positive_int,
)
from ..mechanisms.protocols import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores of independent trials, one a trial, shape (N,) each; infinite ones are allowed.

    `dataset` holds the scores of runs on the data set, `neighbour` of runs on its neighbour.
    """

    dataset: FloatArray
    neighbour: FloatArray

    def __post_init__(self) -> None:
        for name, scores in (("dataset", self.dataset), ("neighbour", self.neighbour)):
            if scores.ndim != 1 or scores.size == 0:
                raise InvalidParameter(f"{name}.shape", scores.shape, "(N,) with N >= 1")
            if np.isnan(scores).any():
                raise InvalidParameter(name, "NaN", "with numbers only")


@dataclass(frozen=True, slots=True)
class LowerBound:
    """With probability `confidence` over the trials, the mechanism's epsilon at `delta` is more.

    `mu` is the bound on mu where the method gives one. `conditions_met` is False when the method
    does not apply to these scores: then the bound is 0. Zero is no evidence of privacy.
    """

    method: str
    theorem: str
    valid_when: str
    epsilon: float
    mu: float | None
    delta: float
    confidence: float
    conditions_met: bool
    detail: str

    @property
    def positive(self) -> bool:
        """Whether the bound shows any leakage."""
        return self.epsilon > 0 or (self.mu is not None and self.mu > 0)


class Bound(Protocol):
    """A way to bound epsilon from below: its parameters are fixed before the scores are seen."""

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`."""
        ...


# --- counting ----------------------------------------------------------------------------------

# betaincinv errs by a few units in the last place of its argument; this is a thousand times that
_QUANTILE_MARGIN = 1e-9


def largest_rate(count: int | FloatArray, trials: int, *, confidence: float) -> FloatArray:
    """Return the one-sided upper confidence bound on a rate of which `count` of `trials` occurred.

    Source: Clopper, Pearson 1934.

    Args:
        count: how often it occurred, from 0 to `trials`, of any shape.
        trials: independent ones, at least 1.
        confidence: of each bound by itself, in (0, 1).
    """
    counts = np.asarray(count, dtype=np.float64)
    below = np.minimum(counts, trials - 1)
    upper = betaincinv(below + 1, trials - below, confidence) * (1 + _QUANTILE_MARGIN)
    return np.where(counts >= trials, 1.0, np.minimum(upper, 1.0))


@lru_cache(maxsize=64)
def largest_rates(trials: int, *, confidence: float) -> FloatArray:
    """Return `largest_rate` of every count from 0 to `trials`: a table, read-only.

    Args:
        trials: independent ones, at least 1.
        confidence: of each bound by itself, in (0, 1).
    """
    table = largest_rate(np.arange(trials + 1.0), trials, confidence=confidence)
    table.setflags(write=False)
    return table


def epsilon_of_rates(fpr: FloatArray, fnr: FloatArray, delta: float) -> FloatArray:
    """Return the least epsilon that allows these error rates, tried both ways round; at least 0.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 2.1: FPR·e^epsilon + FNR >= 1 - delta, and swapped.

    Args:
        fpr, fnr: upper bounds on the rates of false positives and of misses, in [0, 1], of shapes
            that broadcast.
        delta: in [0, 1).
    """
    with np.errstate(divide="ignore"):
        ways = [
            np.log(np.maximum(1 - delta - missed, 0.0) / false)
            for false, missed in ((fpr, fnr), (fnr, fpr))
        ]
    return np.asarray(np.maximum(np.maximum(*ways), 0.0))


@dataclass(frozen=True, slots=True)
class ClopperPearson:
    """Counts false positives and misses at `threshold`; says nothing about the scores' law.

    The error probability 1 - confidence is split in halves over the two rates (Bonferroni), so that
    both bounds on rates hold together and both orders of (D, D') may be tried for free.

    Args:
        threshold: fixed before the trials ran, as `plan_threshold` does; a score above it votes
            for the data set.
        confidence: of the bound, in (0, 1).
    """

    METHOD: ClassVar[str] = "Clopper-Pearson"

    threshold: float
    confidence: float

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        if isnan(self.threshold):
            raise InvalidParameter("threshold", self.threshold, "a number")

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`, in [0, 1)."""
        return self.of_counts(
            false_positives=int(np.count_nonzero(scores.neighbour > self.threshold)),
            neighbour_trials=scores.neighbour.size,
            misses=int(np.count_nonzero(scores.dataset <= self.threshold)),
            dataset_trials=scores.dataset.size,
            delta=delta,
        )

    def of_counts(
        self,
        *,
        false_positives: int,
        neighbour_trials: int,
        misses: int,
        dataset_trials: int,
        delta: float,
    ) -> LowerBound:
        """Return the bound at `delta`, in [0, 1), from the errors counted at the threshold.

        Args:
            false_positives: runs on the neighbour that were taken for runs on the data set.
            neighbour_trials: runs on the neighbour.
            misses: runs on the data set that were not taken for such.
            dataset_trials: runs on the data set.
            delta: where epsilon is bounded.
        """
        require_delta(delta)
        each = 1 - (1 - self.confidence) / 2
        fpr = largest_rate(false_positives, neighbour_trials, confidence=each)
        fnr = largest_rate(misses, dataset_trials, confidence=each)
        return LowerBound(
            method=self.METHOD,
            theorem="Clopper, Pearson 1934; Kairouz, Oh, Viswanath 2015, Theorem 2.1",
            valid_when="trials are independent and the threshold was fixed before they ran",
            epsilon=float(epsilon_of_rates(fpr, fnr, delta)),
            mu=None,
            delta=delta,
            confidence=self.confidence,
            conditions_met=True,
            detail=(
                f"threshold {self.threshold:.6g}: {false_positives} false positives of "
                f"{neighbour_trials} (rate at most {float(fpr):.3g}), {misses} misses of "
                f"{dataset_trials} (rate at most {float(fnr):.3g})"
            ),
        )


def ceiling(*, trials: int, delta: float, confidence: float) -> float:
    """Return the largest epsilon that counting could have shown: no error in `trials` a world.

    Args:
        trials: in each world, at least 1.
        delta: in [0, 1).
        confidence: of the bound, in (0, 1).
    """
    require_positive_int("trials", trials)
    require_delta(delta)
    require_open_unit("confidence", confidence)
    rate = largest_rate(0, trials, confidence=1 - (1 - confidence) / 2)
    return float(epsilon_of_rates(rate, rate, delta))


@dataclass(frozen=True, slots=True)
class ThresholdPlan:
    """A threshold for log-likelihood ratios and the bound to expect there if the claim is tight."""

    threshold: float
    expected_epsilon: float


@lru_cache(maxsize=64)
def plan_threshold(
    *, claimed: Gdp | ApproxDp, trials: int, delta: float, confidence: float
) -> ThresholdPlan:
    """Return the threshold that maximises the expected Clopper-Pearson bound under the claim.

    Under a tight mu-GDP claim the log-likelihood ratio is N(±mu²/2, mu²) in the two worlds, so the
    counts are binomial with known rates. Nothing here looks at scores: choosing costs no
    confidence. By symmetry only thresholds >= 0 are searched. For (epsilon, delta) it is chosen as
    for the Gaussian pair that meets them.

    Args:
        claimed: the guarantee that is attacked.
        trials: number of trials in each world.
        delta: where epsilon will be bounded, in (0, 1).
        confidence: of the bound to come, in (0, 1).
    """
    top = ceiling(trials=trials, delta=delta, confidence=confidence)
    mu = claimed_mu(claimed)
    if mu == 0 or mu == inf:
        return ThresholdPlan(0.0, 0.0 if mu == 0 else top)

    def expected(score: float) -> float:
        """`score` is the threshold in standard deviations above the neighbour's mean."""
        return _expected_bound(ndtr(-score), ndtr(score - mu), trials, delta, confidence)

    # beyond the last score not even a hundredth false positive is expected
    first, last = mu / 2, max(mu / 2, -float(ndtri(0.01 / trials)))
    best = ThresholdPlan(0.0, 0.0)
    for _ in range(_GRID_ROUNDS):
        grid = np.linspace(first, last, _GRID)
        values = [expected(float(score)) for score in grid]
        place = int(np.argmax(values))
        best = ThresholdPlan(mu * (float(grid[place]) - mu / 2), values[place])
        first, last = float(grid[max(place - 1, 0)]), float(grid[min(place + 1, _GRID - 1)])
    return best


def claimed_mu(claimed: Gdp | ApproxDp) -> float:
    """Return mu of a claim, or of the Gaussian pair that meets a claim of (epsilon, delta)."""
    if isinstance(claimed, Gdp):
        return sqrt(claimed.mu_squared)
    if claimed.epsilon == inf or not 0 < claimed.delta < 1:
        return inf
    return mu_from_epsilon_delta(epsilon=claimed.epsilon, delta=claimed.delta).upper_float


_GRID = 33
_GRID_ROUNDS = 3
_COUNT_NODES = 64
# counts outside this many standard deviations (and as many counts) have negligible probability
_COUNT_REACH = 7.0


def _expected_bound(fpr: float, fnr: float, trials: int, delta: float, confidence: float) -> float:
    """Return the mean of the Clopper-Pearson bound on epsilon over the counts that these rates lead
    to.
    """
    each = 1 - (1 - confidence) / 2
    false, false_weight = _count_nodes(fpr, trials)
    missed, missed_weight = _count_nodes(fnr, trials)
    epsilon = epsilon_of_rates(
        largest_rate(false, trials, confidence=each)[:, None],
        largest_rate(missed, trials, confidence=each)[None, :],
        delta,
    )
    return float(false_weight @ epsilon @ missed_weight)


def _count_nodes(rate: float, trials: int) -> tuple[FloatArray, FloatArray]:
    """Return counts and their binomial weights: every count, or midpoints of equal cells."""
    reach = _COUNT_REACH * (1 + sqrt(trials * rate * (1 - rate)))
    low = max(0, int(trials * rate - reach))
    high = min(trials, int(trials * rate + reach) + 1)
    step = -(-(high - low + 1) // _COUNT_NODES)
    edges = np.arange(low, high + step, step)
    cumulative = binom.cdf(np.concatenate([edges - 1, [edges[-1] + step - 1]]), trials, rate)
    weights = np.diff(cumulative)
    nodes = np.minimum(edges + (step - 1) / 2, trials)
    return nodes, weights / weights.sum()


# --- the Gaussian family -----------------------------------------------------------------------

_FEWEST_TRIALS = 20
_REFUSAL_RATE = 1e-3


@dataclass(frozen=True, slots=True)
class MuInterval:
    """mu as measured, with its two-sided interval; signed: negative when the score points wrongly.

    Valid only when the scores are normal with one variance.
    """

    estimate: float
    lower: float
    upper: float
    confidence: float


@dataclass(frozen=True, slots=True)
class GaussianFamily:
    """Bounds mu = (mean under D - mean under D') / standard deviation. Valid in the family only.

    When scores are normal with one variance in both worlds, telling the worlds apart by them is
    exactly mu-GDP, and by post-processing the mechanism's own curve is no better. The two-sample t
    statistic is then noncentral t with noncentrality mu·sqrt(N N'/(N+N')), which is inverted
    exactly. Replays of Gaussian steps whose shift does not depend on the history are in the family.

    The family is tested (variances: F; shape: D'Agostino, Pearson 1973) and the bound abstains when
    a test fails at the level 0.001 in all; passing does not prove membership. With fewer than some
    500 trials the tests do not see heavy tails.

    Args:
        confidence: of the bound, in (0, 1).
        fewest: trials of a world, below which it abstains; 20 where the family is known otherwise.
    """

    confidence: float
    fewest: int = _FEWEST_TRIALS

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        require_positive_int("fewest", self.fewest)

    def lower_bound(self, scores: Scores, *, delta: float) -> LowerBound:
        """Return the bound at `delta`, in (0, 1)."""
        require_open_unit("delta", delta)
        objection = outside_the_family(scores, fewest=self.fewest)
        mu, epsilon = 0.0, 0.0
        if objection is None:
            mu = max(0.0, nextafter(_mu_at(scores, 1 - self.confidence), -inf))
            epsilon = epsilon_from_delta(mu_squared=Fraction(mu) ** 2, delta=delta).lower_float
        return LowerBound(
            method="Gaussian family",
            theorem="noncentral t (Johnson, Welch 1940); Dong, Roth, Su 2022, Corollary 2.13",
            valid_when="trials are independent and scores are normal with one variance",
            epsilon=epsilon,
            mu=mu,
            delta=delta,
            confidence=self.confidence,
            conditions_met=objection is None,
            detail=objection or f"mu at least {shown_down(mu, digits=6)}",
        )

    def interval(self, scores: Scores) -> MuInterval | None:
        """Return the two-sided interval of mu at this confidence, or None outside the family."""
        if outside_the_family(scores, fewest=self.fewest) is not None:
            return None
        tail = (1 - self.confidence) / 2
        return MuInterval(
            estimate=_effect(scores),
            lower=_mu_at(scores, tail),
            upper=_mu_at(scores, 1 - tail),
            confidence=self.confidence,
        )


def outside_the_family(scores: Scores, *, fewest: int = _FEWEST_TRIALS) -> str | None:
    """Return why scores are not normal with one variance, or None when nothing speaks against it.

    Scores from the family are turned away in about one of a thousand cases.

    Args:
        scores: of at least `fewest` trials in each world; finite.
        fewest: below so many the tests see nothing, and the bound abstains.

    Source: D'Agostino, Pearson 1973, for the shape; the F test for the variances.
    """
    worlds = (scores.dataset, scores.neighbour)
    if min(world.size for world in worlds) < fewest:
        return f"fewer than {fewest} trials in a world"
    if not all(np.isfinite(world).all() for world in worlds):
        return "infinite scores: some outputs are possible in one world only"
    first, second = (float(world.var(ddof=1)) for world in worlds)
    if not (first > 0 and second > 0):
        return "scores without variance"
    ratio, dof = first / second, (scores.dataset.size - 1, scores.neighbour.size - 1)
    tests = {
        "variances differ": 2 * min(float(fdtr(*dof, ratio)), float(fdtrc(*dof, ratio))),
        "scores under the data set are not normal": float(normaltest(worlds[0]).pvalue),
        "scores under the neighbour are not normal": float(normaltest(worlds[1]).pvalue),
    }
    reason, smallest = min(tests.items(), key=lambda test: test[1])
    return f"{reason} (p = {smallest:.1e})" if smallest < _REFUSAL_RATE / len(tests) else None


def _effect(scores: Scores) -> float:
    """Return the difference of both means over the pooled standard deviation: an estimate of mu."""
    first, second = scores.dataset, scores.neighbour
    dof = first.size + second.size - 2
    squares = (first.size - 1) * first.var(ddof=1) + (second.size - 1) * second.var(ddof=1)
    return float((first.mean() - second.mean()) / np.sqrt(squares / dof))


def _mu_at(scores: Scores, tail: float) -> float:
    """Return the mu under which a t statistic as large as the observed one has probability `tail`.

    It grows with `tail`: the lower confidence bound has a small one.
    """
    sizes = (scores.dataset.size, scores.neighbour.size)
    dof, root = sum(sizes) - 2, sqrt(sizes[0] * sizes[1] / sum(sizes))
    statistic = _effect(scores) * root

    def excess(noncentrality: float) -> float:
        # the law is symmetric in the signs of both, and the library is best at positive ones
        if statistic >= 0:
            return 1 - float(nctdtr(dof, noncentrality, statistic)) - tail
        return float(nctdtr(dof, -noncentrality, -statistic)) - tail

    # walk outward from the middle: the library fails far out in the tails; from a step behind it,
    # for the median of the law is not quite the statistic
    step = copysign(sqrt(1 + statistic**2 / (2 * dof)), tail - 0.5)
    near, far = statistic - step, statistic + step
    while excess(far) * step < 0:
        near, far = far, far + step
    if not (isfinite(excess(near)) and isfinite(excess(far))):
        raise InvalidParameter("mu", statistic / root, "within reach of the noncentral t law")
    found: Any = brentq(excess, min(near, far), max(near, far), xtol=1e-12 * abs(step))
    return float(found) / root
