"""A lower bound from a single run that leaves open how many canaries are guessed.

How many guesses show most depends on how much leaks, which is what an audit asks. `OneRun` needs
the number beforehand, and a bad one costs most of its power; the best of many numbers without a
correction is wrong far more often than stated. Here all numbers of a grid are looked at together,
at one error, by a law that holds for the whole sequence of guesses.

Let m coins be independent and fair, Y the output of a mechanism that is (epsilon, delta)-DP in each
of them, and let Y alone say in which order canaries are guessed and what is guessed of each. Let
X_k say whether the k-th guess is right, let Z_k be independent, 1 with probability p = 1/(1 +
e^-epsilon), and let A be an increasing set: more right guesses never lead out of it. Then

    P(X in A) <= P(Z in A) + m·delta/(1 + e^epsilon).

Proof. Take canaries by their index i. Write b for the coins and P_c for the law of Y given the
coins before i and b_i = c; as a mixture over later coins, P_0 and P_1 are (epsilon, delta)-close.
Given Y and the earlier coins, the guess "1" is right with probability q = dP_1/(dP_0 + dP_1), and

    (q - p)·(dP_0 + dP_1)/2 = (1 - p)·(dP_1 - e^epsilon·dP_0)/2,

whose positive part integrates to at most (1 - p)·delta/2 over the outputs where "1" is guessed; the
same holds for "0". There are uniform U_i, each independent of Y, of earlier coins and of earlier U,
such that guess i is right if and only if U_i < q_i. Let Z_i say that U_i < p: the Z_i are
independent of Y and of each other, in any order that Y chooses. Unless p <= U_i < q_i for some i, X
is at most Z in every place. That happens with probability at most the sum of E(q_i - p)^+, which is
at most m·(1 - p)·delta.

The step from one coin to the next is that of Steinke, Nasr, Jagielski 2023 (arXiv 2305.08846), who
bound one number of guesses. Order statistics of the privacy loss, which say how right the r surest
of m guesses can be (Xiang et al. 2025, arXiv 2509.08704), are no bound for every mechanism with a
given trade-off function: one that with probability delta publishes all coins is (0, delta)-DP and
has all guesses right with probability delta, while of m independent reveals hardly more than
m·delta succeed. They bound mechanisms that treat canaries independently, and are not used here.

>>> included = np.repeat([True, False], 500)
>>> surest = Canaries(np.linspace(1.0, -1.0, 1_000), included)
>>> round(OneRunAnyCount(0.95).lower_bound(surest, delta=1e-5).epsilon, 2)
5.8
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, log, sqrt
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.signal import fftconvolve
from scipy.special import bdtr, bdtrc, expit

from ..mechanisms.errors import InvalidParameter, require_open_unit
from ..mechanisms.protocols import FloatArray
from .bounds import LowerBound
from .one_run import Canaries

__all__ = ["OneRunAnyCount"]

# numbers of guesses at each end that are looked at, from few to all
_GRID = 12
_FEWEST = 5
# of a block of guesses: rarer counts are taken for a crossing, which errs towards a smaller bound
_RARE = 1e-13
# of epsilon, and up to 40
_POINTS_A_UNIT = 128
_POINTS = 40 * _POINTS_A_UNIT
# products above which a transform folds two laws faster
_DIRECT = 10**6
# for the rounding of probabilities, in their own units
_MARGIN = 1e-9

_Counts = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class OneRunAnyCount:
    """Bounds epsilon by the least likely number of right guesses over a grid of guess counts.

    For a grid of n, the n highest scores are guessed to be in and the n lowest to be out. The
    p-value of each n is binomial, and their minimum is judged by its own law under the Z of this
    module's theorem, which is computed exactly: a walk that must stay below a boundary.

    Args:
        confidence: of the bound, in (0, 1).
    """

    METHOD: ClassVar[str] = "one run, any number of guesses"
    THEOREM: ClassVar[str] = "binomial domination of guesses in sequence (proof in the module)"

    confidence: float

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)

    def lower_bound(self, canaries: Canaries, *, delta: float) -> LowerBound:
        """Return the bound on epsilon at `delta`, in (0, 1).

        Raises `InvalidParameter` for a single canary, of which no two ends can be guessed.
        """
        require_open_unit("delta", delta)
        total = canaries.scores.size
        if total < 2:
            raise InvalidParameter("canaries", total, "at least 2")
        each = _counts(total)
        right = tuple(canaries.right_guesses(guessed_in=n, guessed_out=n) for n in each)
        epsilon, best = _by_walk(right, each, total, self.confidence, delta)
        return LowerBound(
            method=self.METHOD,
            theorem=self.THEOREM,
            valid_when=(
                "one canary more or less is what the claim is about, and coins are independent and "
                "fair; numbers of guesses need not be fixed"
            ),
            epsilon=epsilon,
            mu=None,
            delta=delta,
            confidence=self.confidence,
            conditions_met=True,
            detail=(
                f"{right[best]} of {2 * each[best]} guesses right, the least likely of "
                f"{len(each)} numbers of guesses among {total} canaries"
            ),
        )


def _counts(total: int) -> tuple[int, ...]:
    """Return the numbers of guesses at each end; of m = `total` canaries and nothing else."""
    most = total // 2
    grid = np.geomspace(min(_FEWEST, most), most, _GRID)
    return tuple(np.unique(np.rint(grid).astype(int)).tolist())


# audits are repeated, and counts repeat with them
@lru_cache(maxsize=1024)
def _by_walk(
    right: tuple[int, ...], each: tuple[int, ...], total: int, confidence: float, delta: float
) -> tuple[float, int]:
    """Return the bound on epsilon, and the place of the least likely count at that epsilon."""
    seen, guesses = np.array(right), 2 * np.array(each)

    def refuted(epsilon: float) -> bool:
        success = float(expit(epsilon))
        least = float(_chances(seen, guesses, success).min())
        left = 1 - confidence - total * delta * float(expit(-epsilon)) - _MARGIN
        # a crossing is no rarer than its rarest part, and no likelier than all parts together
        if least >= left or least * guesses.size < left:
            return least < left
        return _crossing(least, guesses, success) < left

    epsilon = _up_to(refuted)
    return epsilon, int(_chances(seen, guesses, float(expit(epsilon))).argmin())


def _up_to(refuted: Callable[[float], bool]) -> float:
    """Return the largest point of a fixed grid up to which all are refuted; 0 if none is.

    The chance of a crossing is not monotone in epsilon: a search would find some point or other
    that is refuted. Here no more is asked than the theorem gives: a mechanism whose epsilon lies
    between two points of the grid keeps the promise of the upper one, and a bound above its epsilon
    says that this one point was refuted.
    """
    point = -1
    while point < _POINTS and refuted((point + 1) / _POINTS_A_UNIT):
        point += 1
    return max(point, 0) / _POINTS_A_UNIT


def _chances(right: _Counts, guesses: _Counts, success: float) -> FloatArray:
    """Return P(B >= v) for each count v of right ones among so many guesses, B binomial."""
    tail = bdtrc(np.maximum(right - 1, 0), guesses, success)
    return np.where(right == 0, 1.0, tail)


def _crossing(least: float, guesses: _Counts, success: float) -> float:
    """Return the probability that some count is as unlikely as `least`, of independent guesses.

    Args:
        least: a p-value, in [0, 1].
        guesses: growing numbers of guesses, of shape (g,).
        success: probability p of a right guess.
    """
    alive, lowest, done = np.ones(1), 0, 0
    for count in guesses.astype(int).tolist():
        new = count - done
        # beyond, by Hoeffding's inequality, is too little to matter
        width = sqrt(-new * log(_RARE) / 2)
        low = max(0, floor(new * success - width))
        ends = np.arange(low - 1, min(new, ceil(new * success + width)) + 1)
        block = np.diff(np.where(ends < 0, 0.0, bdtr(np.maximum(ends, 0), new, success)))
        few = alive.size * block.size < _DIRECT
        alive = np.convolve(alive, block) if few else np.maximum(fftconvolve(alive, block), 0.0)
        lowest, done = lowest + low, count
        reached = lowest + np.arange(alive.size)
        alive = alive[_chances(reached, np.array(count), success) > least]
        if alive.size == 0:
            return 1.0
    return 1.0 - float(alive.sum())
