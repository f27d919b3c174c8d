"""Is a claim false? A test that looks after every pair of runs and stops as soon as it knows.

Wealth starts at 1 and bets on the score of one run on D and one on D' at a time. Under the claim no
bet gains on average, so by Ville's inequality wealth ever reaches 1/a with probability at most a:
one may look at any time, stop at any time and go on later. Wealth that does not grow proves
nothing.

>>> bet = plan_bet(claimed=Gdp(1))
>>> test = SequentialTest(bet, confidence=0.95)
>>> told_apart = Scores(np.full(10, 9.0), np.full(10, -9.0))
>>> test.after(told_apart).refuted_after
10
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, inf, isinf, log, sqrt
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from ..accounting.gaussian.exact import delta_from_epsilon, mu_from_epsilon_delta
from ..accounting.hypothesis_testing import LARGEST_EXPONENT
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..accounting.pld import PrivacyProfile
from ..mechanisms.errors import (
    InvalidParameter,
    require_finite,
    require_nonnegative,
    require_open_unit,
)
from ..mechanisms.protocols import FloatArray
from .bounds import Scores

Claim = Gdp | ApproxDp | PrivacyProfile
"""What may be tested: mu-GDP, one point of a privacy curve, or all of it."""

# the planned stake gets most of the initial wealth, each half of the stake before a part of the
# rest: whoever leaks less than suspected is found too, only later
_STAKES = 0.5 ** np.arange(8)
_SHARES = np.append(0.75 * 0.25 ** np.arange(7), 0.25**7)
# what rounding can add to the logarithm of wealth in one pair, with much to spare
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Bet:
    """What is staked on a pair of runs; it cannot gain on average if the claim is true.

    A score above `threshold` votes for D, one below -`threshold` for D', others abstain. By the
    definition of (epsilon, delta)-DP, for the event of a vote and for both orders of (D, D'),

        P(right vote) - e^epsilon P(wrong vote) <= delta,

    so the payoff (right votes - e^epsilon · wrong votes)/2 - delta of a pair has mean at most 0.

    Args:
        epsilon, delta: a point that the claim implies; delta rounded up.
        threshold: for the scores, >= 0.
        stake: the part of wealth that is bet, in (0, 1/(e^epsilon + delta)).
    """

    epsilon: float
    delta: float
    threshold: float
    stake: float

    def __post_init__(self) -> None:
        require_nonnegative("epsilon", self.epsilon)
        require_nonnegative("threshold", self.threshold)
        require_finite("delta", self.delta)
        if not 0 <= self.delta <= 1:
            raise InvalidParameter("delta", self.delta, "in [0, 1]")
        most = 1 / (exp(self.epsilon) + self.delta)
        if not 0 < self.stake < most:
            raise InvalidParameter("stake", self.stake, f"in (0, {most:.6g})")

    def payoffs(self, scores: Scores) -> FloatArray:
        """Return the payoff of each pair of runs, shape (N,), for as many runs in each world."""
        if scores.dataset.size != scores.neighbour.size:
            raise InvalidParameter(
                "neighbour.size", scores.neighbour.size, f"equal to {scores.dataset.size}"
            )
        toward = (scores.dataset > self.threshold, scores.neighbour < -self.threshold)
        away = (scores.dataset < -self.threshold, scores.neighbour > self.threshold)
        right, wrong = (sum(side.astype(np.float64) for side in votes) for votes in (toward, away))
        return np.asarray((right - exp(self.epsilon) * wrong) / 2 - self.delta)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the pairs so far say against the claim.

    Args:
        pairs: of runs that were looked at.
        log_wealth: of each stake, relative to its share of the initial wealth.
        largest: the largest logarithm of total wealth ever held, at least 0.
        refuted_after: the number of pairs after which the claim was refuted; None if it was not,
            which is no evidence for the claim.
    """

    pairs: int = 0
    log_wealth: tuple[float, ...] = (0.0,) * len(_STAKES)
    largest: float = 0.0
    refuted_after: int | None = None

    @property
    def p_value(self) -> float:
        """At most this probability of so much wealth, at any time, if the claim is true."""
        return min(1.0, exp(-self.largest))


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """Tests a claim by betting; refutes a true one with probability at most 1 - confidence, ever.

    Valid when each pair of runs is independent of the pairs before and the bet was fixed before the
    first; runs on D and D' of one pair may depend on each other.

    Source: Ville 1939 (the inequality); Shafer 2021 (testing by betting).
    """

    bet: Bet
    confidence: float

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)

    def after(self, scores: Scores, evidence: Evidence | None = None) -> Evidence:
        """Return the evidence after further pairs: the i-th score of each world is the i-th pair.

        Pairs after a refutation change nothing.
        """
        before = Evidence() if evidence is None else evidence
        payoffs = self.bet.payoffs(scores)
        if before.refuted_after is not None:
            return before
        growth = np.log1p(np.outer(payoffs, self.bet.stake * _STAKES)) - _ROUNDING
        paths = np.array(before.log_wealth) + np.cumsum(growth, axis=0)
        top = paths.max(axis=1)
        total = top + np.log(np.exp(paths - top[:, None]) @ _SHARES) - _ROUNDING
        reached = total >= -log(1 - self.confidence)
        last = int(np.argmax(reached)) if reached.any() else payoffs.size - 1
        pairs = before.pairs + last + 1
        return Evidence(
            pairs=pairs,
            log_wealth=tuple(float(wealth) for wealth in paths[last]),
            largest=max(before.largest, float(total[: last + 1].max())),
            refuted_after=pairs if reached.any() else None,
        )

    def run(self, chunks: Iterable[Scores]) -> Evidence:
        """Return the evidence after the chunks, taking no more of them once the claim is refuted.

        A generator of runs, as `replay_chunks` is, therefore stops running.
        """
        evidence = Evidence()
        for chunk in chunks:
            evidence = self.after(chunk, evidence)
            if evidence.refuted_after is not None:
                break
        return evidence


def plan_bet(*, claimed: Claim, suspected: Gdp | None = None) -> Bet:
    """Return the bet under which wealth grows fastest if the mechanism is as bad as suspected.

    The scores shall be log-likelihood ratios, N(±mu²/2, mu²) under the suspicion. Any bet keeps the
    false-alarm rate, whatever the scores; a bad plan costs only power. A mu-GDP claim implies a
    point (epsilon', delta') at every epsilon', a privacy profile too, an (epsilon, delta)-DP one at
    every epsilon' <= epsilon (Kairouz, Oh, Viswanath 2015): small epsilon' need far fewer runs.

    Args:
        claimed: the guarantee under test, 0 < mu < infinity.
        suspected: what it might be instead; by default the noise is half of what was claimed.

    Raises `InvalidParameter` for a claim that nothing or everything meets, or a suspicion that the
    claim allows.
    """
    mu = mu_of_claim(claimed)
    if not 0 < mu < inf:
        raise InvalidParameter("claimed", claimed, "some protection, but not all")
    truth = 2 * mu if suspected is None else sqrt(suspected.mu_squared)
    if not mu < truth < inf:
        raise InvalidParameter("suspected", suspected, f"in (mu = {mu:.6g}, inf)")
    best, growth = None, 0.0
    for epsilon in _epsilons(claimed, mu):
        delta = implied_delta(claimed, epsilon)
        for threshold in np.unique(np.append(epsilon, truth * np.linspace(0, 2, 17))):
            stake, rate = _best_stake(epsilon, delta, float(threshold), truth)
            if rate > growth:
                best, growth = Bet(epsilon, delta, float(threshold), stake), rate
    if best is None:
        raise InvalidParameter("suspected", suspected, "worse than the claim by what bets can see")
    return best


_EPSILONS = 9
# a stake that could lose everything would end the test
_LARGEST_STAKE = 0.99


def mu_of_claim(claimed: Claim) -> float:
    """Return the mu of a claim; of a profile, the one with the same delta at epsilon 0."""
    if isinstance(claimed, Gdp):
        return sqrt(claimed.mu_squared)
    if isinstance(claimed, PrivacyProfile):
        return 2 * float(ndtri((1 + claimed.delta(0.0).upper_float) / 2))
    if isinf(claimed.epsilon):
        return inf
    if not 0 < claimed.delta < 1:
        raise InvalidParameter("claimed", claimed, "with delta in (0, 1)")
    return mu_from_epsilon_delta(epsilon=claimed.epsilon, delta=claimed.delta).upper_float


def _epsilons(claimed: Claim, mu: float) -> list[float]:
    largest = float(claimed.epsilon) if isinstance(claimed, ApproxDp) else mu
    return [float(epsilon) for epsilon in np.linspace(0, largest, _EPSILONS)]


def implied_delta(claimed: Claim, epsilon: float) -> float:
    """Return the delta that the claim implies at `epsilon` >= 0, rounded up.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.1, for an (epsilon, delta)-DP claim.

    Args:
        claimed: mu-GDP, or (epsilon, delta).
        epsilon: at which.
    """
    if isinstance(claimed, PrivacyProfile):
        return claimed.delta(epsilon).upper_float
    if isinstance(claimed, Gdp):
        if claimed.mu_squared == inf:
            return 1.0
        return delta_from_epsilon(mu_squared=claimed.mu_squared, epsilon=epsilon).upper_float
    # the trade-off function of (epsilon, delta)-DP is that of a randomised response
    if claimed.epsilon > LARGEST_EXPONENT:
        return 1.0
    shrink = (1 + exp(epsilon)) / (1 + exp(float(claimed.epsilon)))
    return min(1.0, 1 - (1 - float(claimed.delta)) * shrink + 1e-12)


def _best_stake(epsilon: float, delta: float, threshold: float, mu: float) -> tuple[float, float]:
    """Return the stake that makes wealth grow fastest under `mu`, and the growth for each pair."""
    right = float(ndtr((mu * mu / 2 - threshold) / mu))
    wrong = float(ndtr((-mu * mu / 2 - threshold) / mu))
    votes = np.array([1.0, 0.0, -exp(epsilon)])
    chances = np.array([right, 1 - right - wrong, wrong])
    payoffs = ((votes[:, None] + votes[None, :]) / 2 - delta).ravel()
    weights = np.outer(chances, chances).ravel()
    if weights @ payoffs <= 0:
        return 0.0, 0.0
    most = _LARGEST_STAKE / (exp(epsilon) + delta)

    def loss(stake: float) -> float:
        return -float(weights @ np.log1p(stake * payoffs))

    found: Any = minimize_scalar(loss, bounds=(0.0, most), method="bounded")
    return float(found.x), -float(found.fun)
