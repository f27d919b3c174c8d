"""What the first message x^1 alone shows: the Huber instance."""

from dataclasses import replace
from math import sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from ....mechanisms.protocols import FloatArray
from ....solvers.stochastic import PrintedWeights
from .constant import bracket
from .setting import PsSetting, printed_noise

__all__ = ["effective_steps", "first_message", "first_message_c"]


def message_weights(s: PsSetting) -> FloatArray:
    """How much x^{k+1} holds of every inner noise, in units of eta: (S - 1 - s + kappa)/S."""
    kappa = PrintedWeights().of_next(s.eta_nu)
    return np.asarray((s.S - 1 - np.arange(s.S) + kappa) / s.S)


def effective_steps(s: PsSetting) -> float:
    weights = message_weights(s)
    return float(weights.sum() ** 2 / (weights**2).sum())


def first_message(s: PsSetting, c: float) -> tuple[float, float, float]:
    """Return the best event "x^1 <= t" on the Huber instance: P, P' and the epsilon it shows.

    One dimension, G = 1, rho -> 0: everybody has l(x) = -x, but one record has the Huber loss with
    slope clip((x - h)/h, -1, 1), or -x as well. v moves by eta = eta_nu h a step; once v >= 2h the
    drawn record pulls back by 2. Draws earlier than that are counted as if they did not exist.
    """
    weights, noise, steps = message_weights(s), printed_noise(replace(s, c=c)) / s.G, np.arange(s.S)
    spread, rate = noise * sqrt(float((weights**2).sum())), 1 / s.M
    reached = steps - 2 / s.eta_nu
    late = steps[reached > 0]
    missed = norm.sf(reached[late] / (noise * np.sqrt(late)))
    t = np.linspace(-8 * spread - 3, 2.0, 6001)[:, None]
    drawn = norm.cdf((t + 2 * weights[late]) / spread) - missed
    once = rate * (1 - rate) ** (s.S - 1) * np.maximum(drawn, 0).sum(axis=1)
    first = once + (1 - rate) ** s.S * norm.cdf(t[:, 0] / spread)
    second = norm.logcdf(t[:, 0] / spread)
    shown = np.log(np.maximum(first - s.delta, 1e-300)) - second
    best = int(shown.argmax())
    return float(first[best]), float(np.exp(second[best])), float(max(0.0, shown[best]))


def first_message_c(s: PsSetting) -> float:
    """Below this c the first message alone refutes (epsilon, delta); 0 if the instance cannot."""

    def refutes(c: float) -> bool:
        return first_message(s, c)[2] > s.epsilon

    low, high = bracket(s, refutes)
    if not refutes(low):
        return 0.0
    return float(brentq(lambda c: first_message(s, c)[2] - s.epsilon, low, high))
