"""What to believe of epsilon after counting errors: a Bayesian interval, not a confidence bound.

The rates of false positives and misses get independent priors Beta(1/2, 1/2); the posterior
probability that both rates are allowed at epsilon is the posterior's distribution function of
epsilon. The interval is shorter than what counting proves. Its credibility is the prior's:
repetitions of the experiment need not contain the truth that often.

>>> scores = Scores(np.repeat([1.0, 0.0], [90, 10]), np.repeat([1.0, 0.0], [5, 95]))
>>> found = Bayesian(0.5, credibility=0.95).interval(scores, delta=1e-5)
>>> round(found.lower, 2), round(found.upper, 2)
(2.2, 3.84)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, isnan
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv

from ..mechanisms.errors import InvalidParameter, require_open_unit
from ..mechanisms.protocols import FloatArray
from .bounds import Scores


@dataclass(frozen=True, slots=True)
class CredibleInterval:
    """An equal-tailed posterior interval of epsilon at `delta`; no confidence is claimed."""

    lower: float
    upper: float
    delta: float
    credibility: float
    note: str = (
        "Bayesian: a belief under independent Beta(1/2, 1/2) priors of the two error rates of this "
        "attack; not a confidence bound, and its upper end bounds the attack, not the mechanism."
    )


@dataclass(frozen=True, slots=True)
class Bayesian:
    """The posterior of epsilon from the error counts at a threshold.

    Source: Zanella-Béguelin, Wutschitz, Tople, Salem, Rühle, Paverd, Naseri, Köpf, Jones 2023.

    Args:
        threshold: fixed before the trials ran; a score above it votes for the data set.
        credibility: posterior probability of the interval, in (0, 1).
    """

    threshold: float
    credibility: float

    def __post_init__(self) -> None:
        require_open_unit("credibility", self.credibility)
        if isnan(self.threshold):
            raise InvalidParameter("threshold", self.threshold, "a number")

    def interval(self, scores: Scores, *, delta: float) -> CredibleInterval:
        """Return the interval at `delta`, in (0, 1)."""
        require_open_unit("delta", delta)
        false_positives = int(np.count_nonzero(scores.neighbour > self.threshold))
        misses = int(np.count_nonzero(scores.dataset <= self.threshold))
        false = Beta(false_positives + 0.5, scores.neighbour.size - false_positives + 0.5)
        missed = Beta(misses + 0.5, scores.dataset.size - misses + 0.5)
        lower, upper = _interval(false, missed, delta, self.credibility)
        return CredibleInterval(lower, upper, delta, self.credibility)


@dataclass(frozen=True, slots=True)
class Beta:
    """The Beta law of a rate, with the densities' exponents plus 1."""

    first: float
    second: float

    @property
    def complement(self) -> "Beta":
        """The law of 1 minus the rate."""
        return Beta(self.second, self.first)

    def below(self, x: FloatArray) -> FloatArray:
        return np.asarray(betainc(self.first, self.second, np.clip(x, 0.0, 1.0)))

    def quantile(self, probability: FloatArray) -> FloatArray:
        return np.asarray(betaincinv(self.first, self.second, probability))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# pieces shrink towards both ends, where quantiles bend, and towards kinks of the integrand
_SHRINKING = 0.25 ** np.arange(1, 23)
_ENDS = np.concatenate([[0.0, 1.0], _SHRINKING, 1 - _SHRINKING])


def posterior(epsilon: float, *, false: Beta, missed: Beta, delta: float) -> float:
    """Return the posterior probability that both rates are allowed under (epsilon, delta)-DP.

    They are allowed where no test and no complement of one is too good:
    e^epsilon·FPR + FNR >= 1 - delta, the same with the rates swapped, and both again for 1 - FPR
    and 1 - FNR. One rate is integrated by quadrature over its quantiles, the other in closed form.

    Args:
        epsilon: >= 0.
        false, missed: posteriors of the rates of false positives and of misses.
        delta: in [0, 1).
    """
    grow, shrink = exp(epsilon), exp(-epsilon)
    # where the two straight lines that bound the other rate meet, below and above
    meeting = (1 - delta) / (1 + grow)
    kinks = false.below(np.array([meeting, 1 - meeting]))[:, None]
    near = np.concatenate([kinks, kinks - _SHRINKING, kinks + _SHRINKING], axis=1)
    breaks = np.unique(np.concatenate([_ENDS, np.clip(near, 0.0, 1.0).ravel()]))
    widths = np.diff(breaks)[:, None]
    rate = false.quantile(breaks[:-1, None] + widths * (_NODES + 1) / 2)
    low = np.maximum(1 - delta - grow * rate, (1 - delta - rate) * shrink)
    # of the complement of the other rate
    low_complement = np.maximum(1 - delta - grow * (1 - rate), (rate - delta) * shrink)
    outside = missed.below(low) + missed.complement.below(low_complement)
    inside = np.maximum(1 - outside, 0.0)
    return float(np.clip(np.sum(widths / 2 * _WEIGHTS * inside), 0.0, 1.0))


# audits are repeated, and counts repeat with them
@lru_cache(maxsize=4096)
def _interval(false: Beta, missed: Beta, delta: float, credibility: float) -> tuple[float, float]:
    tail = (1 - credibility) / 2

    def believed(epsilon: float) -> float:
        return posterior(epsilon, false=false, missed=missed, delta=delta)

    return _place(believed, tail), _place(believed, 1 - tail)


def _place(believed: Callable[[float], float], probability: float) -> float:
    """Return the epsilon at which `believed` reaches `probability`."""
    if believed(0.0) >= probability:
        return 0.0
    low, high = 0.0, 1.0
    while believed(high) < probability:
        low, high = high, 2 * high
    found: Any = brentq(lambda epsilon: believed(epsilon) - probability, low, high, xtol=1e-10)
    return float(found)
