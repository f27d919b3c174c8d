"""Lower bounds from a single run: many canaries, each in or out by the flip of a fair coin.

The attacker guesses the coins of the canaries it is surest of and abstains from the others. Two
theorems say how many guesses can be right: `OneRun` under (epsilon, delta)-DP, `OneRunTradeOff`
under any trade-off function.

The claim must be about adding or removing one canary, and the coins independent and fair: canaries
that are in by choice, or that replace each other, are another experiment. Scores that tie are
guessed by a fair choice, or not at all; see `Canaries`.

>>> included = np.repeat([True, False], 500)
>>> surest = Canaries(np.linspace(1.0, -1.0, 1_000), included)
>>> round(OneRun(0.95, guessed_in=100, guessed_out=100).lower_bound(surest, delta=1e-5).epsilon, 2)
4.17
>>> method = OneRunTradeOff(0.95, guessed_in=100, guessed_out=100)
>>> round(method.lower_bound(surest, delta=1e-5).mu, 2)
1.54
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, nan
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, expit, ndtr, ndtri

from ..mechanisms.errors import InvalidParameter, require_open_unit
from ..mechanisms.protocols import FloatArray
from .bounds import LowerBound


@dataclass(frozen=True, slots=True, eq=False)
class Canaries:
    """Canaries of one run, shape (m,) each.

    `scores` are larger where the canary looks more likely to be in; `included` says which were, by
    independent fair coins. Equal scores say nothing, but their places may: who puts those that were
    in behind the others shows the coins. So no guess follows the order of the arrays.

    Args:
        scores: array of shape (m,).
        included: array of shape (m,), bool.
        seed: of the fair choice among equal scores of which some are guessed and others are not;
            it must be drawn without a look at the coins, for this audit. None: none of them is
            guessed, which finds less and depends on nothing but the scores.
    """

    scores: FloatArray
    included: npt.NDArray[np.bool_]
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.scores.ndim != 1 or self.scores.size == 0:
            raise InvalidParameter("scores.shape", self.scores.shape, "(m,) with m >= 1")
        if self.included.shape != self.scores.shape:
            raise InvalidParameter(
                "included.shape", self.included.shape, f"equal to {self.scores.shape}"
            )
        if self.included.dtype != np.bool_:
            raise InvalidParameter("included.dtype", self.included.dtype, "bool")
        if np.isnan(self.scores).any():
            raise InvalidParameter("scores", "NaN", "with numbers only")
        if self.seed is not None and (isinstance(self.seed, bool) or self.seed < 0):
            raise InvalidParameter("seed", self.seed, "None or a whole number in [0, inf)")

    @classmethod
    def of(
        cls, scores: npt.NDArray[Any], included: npt.NDArray[Any], seed: int | None = None
    ) -> "Canaries":
        """Return canaries from arrays of any numbers; `included` holds 0 or 1, or booleans."""
        if not np.isin(included, (0, 1)).all():
            raise InvalidParameter("included", "other numbers", "0 or 1, or a boolean, for each")
        return cls(scores.astype(np.float64), included.astype(np.bool_), seed)

    def right_guesses(self, *, guessed_in: int, guessed_out: int) -> int:
        """Return how many guesses are right if the ends of the scores are guessed.

        Without a seed, equal scores that the number of guesses would divide are not guessed. Those
        guesses count as wrong, so that both theorems hold: made by fair choice, they would leave no
        fewer right ones, and a theorem bounds the chance of so many or more.
        """
        if guessed_in + guessed_out > self.scores.size:
            raise InvalidParameter(
                "guesses", guessed_in + guessed_out, f"in [1, {self.scores.size}]"
            )
        first = self.scores.size - guessed_in
        order = self._in_order()
        top, bottom = order[first:], order[:guessed_out]
        if self.seed is None:
            top = top[self.scores[top] != self._score_at(order, first - 1)]
            bottom = bottom[self.scores[bottom] != self._score_at(order, guessed_out)]
        return int(self.included[top].sum() + np.count_nonzero(~self.included[bottom]))

    def _in_order(self) -> npt.NDArray[np.intp]:
        """Return the places by growing score, equal ones in an order that the seed chooses."""
        chosen = np.random.default_rng(self.seed or 0).permutation(self.scores.size)
        return np.lexsort((chosen, self.scores))

    def _score_at(self, order: npt.NDArray[np.intp], place: int) -> float:
        """Return the score next to the ends that are guessed; NaN, equal to none, past all."""
        return float(self.scores[order[place]]) if 0 <= place < order.size else nan


_VALID_WHEN = (
    "one canary more or less is what the claim is about, coins are independent and fair, and the "
    "numbers of guesses were fixed before the run"
)


@dataclass(frozen=True, slots=True)
class _Guesses(ABC):
    """Bounds by the number of right guesses among the ends of the scores; see `OneRun`."""

    METHOD: ClassVar[str]
    THEOREM: ClassVar[str]

    confidence: float
    guessed_in: int
    guessed_out: int

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        counts = {"guessed_in": self.guessed_in, "guessed_out": self.guessed_out}
        for name, count in counts.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise InvalidParameter(name, count, "a whole number in [0, inf)")
        if not any(counts.values()):
            raise InvalidParameter("guesses", 0, "at least 1")

    def lower_bound(self, canaries: Canaries, *, delta: float) -> LowerBound:
        """Return the bound on epsilon at `delta`, in (0, 1), and on mu where the method has one."""
        require_open_unit("delta", delta)
        guesses, total = self.guessed_in + self.guessed_out, canaries.scores.size
        right = canaries.right_guesses(guessed_in=self.guessed_in, guessed_out=self.guessed_out)
        epsilon, mu = self._bounds(right, guesses, total, delta)
        return LowerBound(
            method=self.METHOD,
            theorem=self.THEOREM,
            valid_when=_VALID_WHEN,
            epsilon=epsilon,
            mu=mu,
            delta=delta,
            confidence=self.confidence,
            conditions_met=True,
            detail=f"{right} of {guesses} guesses right, {total - guesses} abstentions",
        )

    @abstractmethod
    def _bounds(
        self, right: int, guesses: int, total: int, delta: float
    ) -> tuple[float, float | None]:
        """Return the bounds on epsilon and mu from so many right guesses among `total` canaries."""


@dataclass(frozen=True, slots=True)
class OneRun(_Guesses):
    """Bounds epsilon by the number of right guesses, which randomised response hardly beats.

    Under (epsilon, delta)-DP, of r guesses among m canaries at least v are right with probability
    at most P(B >= v) + 2mδ·max_i P(v - i <= B < v)/i, B binomial with r trials and success
    probability e^epsilon/(1 + e^epsilon).

    Source: Steinke, Nasr, Jagielski 2023 (arXiv 2305.08846).

    Args:
        confidence: of the bound, in (0, 1).
        guessed_in: so many of the highest scores are guessed to be in.
        guessed_out: so many of the lowest are guessed to be out. Both fixed before the run.
    """

    METHOD: ClassVar[str] = "one run"
    THEOREM: ClassVar[str] = "Steinke, Nasr, Jagielski 2023"

    def _bounds(
        self, right: int, guesses: int, total: int, delta: float
    ) -> tuple[float, float | None]:
        return _by_chance(right, guesses, total, self.confidence, delta), None


@dataclass(frozen=True, slots=True)
class OneRunTradeOff(_Guesses):
    """Bounds epsilon and mu by the number of right guesses, by way of trade-off functions.

    Let p_i be the probability of i right guesses of c among m canaries, and f the trade-off
    function. Flip the coin of a canary picked at random: for every set T of counts

        sum over i in T of i/m·p_i <= 1 - f(sum over i in T of (c - i + 1)/m·p_(i-1)).

    If at least v right guesses had probability 1 - confidence, these inequalities, taken downward
    from v, would force all p_i to add up to more than 1 for every f that is refuted.

    `epsilon` is from the trade-off function of (epsilon, delta)-DP and supposes nothing else; `mu`
    says that the mechanism is not mu'-GDP for any mu' below, and gives no epsilon by itself.

    Source: Mahloujifar, Melis, Chaudhuri 2024 (auditing f-differential privacy in one run).

    Args as for `OneRun`.
    """

    METHOD: ClassVar[str] = "one run, trade-off function"
    THEOREM: ClassVar[str] = "Mahloujifar, Melis, Chaudhuri 2024"

    def _bounds(
        self, right: int, guesses: int, total: int, delta: float
    ) -> tuple[float, float | None]:
        return _by_trade_off(right, guesses, total, self.confidence, delta)


# relative, for the rounding of probabilities
_MARGIN = 1e-9
_STEP = 0.05
_MOST = 40.0
_HALVINGS = 24


def largest_refuted(refuted: Callable[[float], bool]) -> float:
    """Return a parameter below which all are refuted, as far as steps from 0 show; 0 if none is.

    Inverting a test, everything below the first parameter that passes is left out.
    """
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, _STEP
    while high < _MOST and refuted(high):
        low, high = high, high + _STEP
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if refuted(middle):
            low = middle
        else:
            high = middle
    return low


# audits are repeated, and counts repeat with them
@lru_cache(maxsize=4096)
def _by_chance(right: int, guesses: int, total: int, confidence: float, delta: float) -> float:
    """Return the bound on epsilon by the chance of so many right guesses."""

    def refuted(epsilon: float) -> bool:
        chance = _chance_of_right_guesses(right, guesses, total, epsilon, delta)
        return chance * (1 + _MARGIN) < 1 - confidence

    return largest_refuted(refuted)


@lru_cache(maxsize=4096)
def _by_trade_off(
    right: int, guesses: int, total: int, confidence: float, delta: float
) -> tuple[float, float]:
    """Return the bounds on epsilon and on mu by trade-off functions."""

    def refuted(least_false: _LeastFalse) -> bool:
        return _impossible(right, guesses, total, 1 - confidence, least_false)

    return (
        largest_refuted(lambda epsilon: refuted(_approximate(epsilon, delta))),
        largest_refuted(lambda mu: refuted(_gaussian(mu))),
    )


def _chance_of_right_guesses(
    right: int, guesses: int, canaries: int, epsilon: float, delta: float
) -> float:
    """Return the largest probability of so many right guesses under (epsilon, delta)-DP."""
    if right == 0:
        return 1.0
    success = float(expit(epsilon))
    fewer = np.arange(right, -1, -1)  # v, v - 1, ..., 0
    at_least = np.where(fewer == 0, 1.0, bdtrc(np.maximum(fewer - 1, 0), guesses, success))
    gained = np.maximum(at_least[1:] - at_least[0], 0.0) / np.arange(1, right + 1)
    return min(1.0, float(at_least[0] + 2 * canaries * delta * gained.max()))


_LeastFalse = Callable[[float], float]
"""The least probability under one coin of an event that has the given one under the other."""


def _approximate(epsilon: float, delta: float) -> _LeastFalse:
    """Return the least probability under the other coin by (epsilon, delta)-DP, of rates p: both
    directions of the definition (Kairouz, Oh, Viswanath 2015).
    """
    grow, shrink = exp(epsilon), exp(-epsilon)
    return lambda p: max(0.0, (p - delta) * shrink, 1 - delta - (1 - p) * grow)


def _gaussian(mu: float) -> _LeastFalse:
    """Return the same by mu-GDP: Phi(Phi^-1(p) - mu), the trade-off function (Dong, Roth, Su
    2022).
    """
    return lambda p: float(ndtr(ndtri(p) - mu))


def _impossible(
    right: int, guesses: int, canaries: int, chance: float, least_false: _LeastFalse
) -> bool:
    """Return whether `right` or more right guesses cannot have probability `chance`.

    Args:
        right: guesses that were right.
        guesses: in all.
        canaries: that could be guessed.
        chance: the probability that is asked about.
        least_false: of the claim.
    """
    # sums over all counts from i on, of i/m·p_i and of (c - i)/m·p_i
    hits, misses = chance * right / canaries, chance * (guesses - right) / canaries
    for count in range(right - 1, -1, -1):
        needed = max(misses, least_false(min(hits, 1.0)))
        hits += count / (guesses - count) * (needed - misses)
        misses = needed
        if hits + misses > guesses / canaries * (1 + _MARGIN):
            return True
    return False
