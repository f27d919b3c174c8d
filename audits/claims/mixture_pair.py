"""A sampled shift on top of a constant one, between two given data sets, composed many times.

One step is P = (1-q) N(d, s²) + q N(d + a, s²) against Q = N(0, s²): the mean always moves by d,
and by a more if the differing record is drawn. d and a may have opposite signs. What two data sets
really give is a lower bound on what any accountant may say.

>>> pair = MixturePair(constant=0.0, sampled=2.0, rate=1e-3, noise_std=1.0)
>>> pair.delta(0.5, times=100) < pair.delta(0.5, times=200)
True

delta(epsilon) = (1/2πi) ∫ M(1+z) e^{-z epsilon}/(z(z+1)) dz, M the moment function of the loss
(Zhu, Dong, Wang 2022, section 4), in doubles, by the trapezoid rule on a line Re z = c and, for M,
on the real line: both rules converge geometrically.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, exp, log, log1p, pi, sqrt

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ...accounting.numbers.enclosure import TooWide
from ...mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ...mechanisms.protocols import FloatArray

_STANDARD_DEVIATIONS = 14.0
_SPACING = 0.004
_PERIOD = 40.0
_NEGLIGIBLE = 1e-8
_FRESH = 64
_KEPT = 50.0
_WIDEST = 20.0
_LEAST_ORDER, _GREATEST_ORDER = 0.05, 20.0
_MOST_NODES = 100_000
_MOST_POINTS = 50_000


@dataclass(frozen=True, slots=True)
class MixturePair:
    """P and Q of one step.

    Args:
        constant: d.
        sampled: a.
        rate: q, in (0, 1).
        noise_std: s > 0.
    """

    constant: float
    sampled: float
    rate: float
    noise_std: float

    def __post_init__(self) -> None:
        require_open_unit("rate", self.rate)
        require_positive("noise_std", self.noise_std)
        shift = max(abs(self.constant), abs(self.constant + self.sampled))
        if not shift <= _WIDEST * self.noise_std:
            raise InvalidParameter("noise_std", self.noise_std, f">= {shift / _WIDEST:g}")

    def delta(self, epsilon: float, *, times: int) -> float:
        """Return delta at epsilon >= 0 of `times` steps, to about eight digits.

        Args:
            epsilon: where delta is wanted.
            times: how many steps are composed, at least 1.
        """
        require_nonnegative("epsilon", epsilon)
        require_positive_int("times", times)
        c = self._order(epsilon, times)
        spacing = 2 * pi / (_PERIOD * (1 + 1 / c) + 2 * epsilon)
        total = 0.0
        for t, log_moment in self._log_moments(c, spacing):
            z = complex(c, t)
            value = np.exp(times * log_moment - z * epsilon) / (z * (z + 1))
            total += value.real / (2 if t == 0 else 1)
            # what is left oscillates with frequency epsilon or so, and falls like 1/t²
            if abs(value) < _NEGLIGIBLE * spacing * max(1.0, epsilon) * abs(total):
                return float(total * spacing / pi)
        raise TooWide(f"Expected to integrate {self} within {_MOST_POINTS} points.")

    def epsilon(self, delta: float, *, times: int) -> float:
        """Return the epsilon at which `delta` is reached, 0 where epsilon 0 needs no more.

        Args:
            delta: in (0, 1).
            times: how many steps are composed, at least 1.
        """
        require_open_unit("delta", delta)
        if self.delta(0.0, times=times) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high, times=times) > delta:
            high *= 2
        low = high / 2 if high > 1 else 0.0

        def excess(epsilon: float) -> float:
            return log(max(self.delta(epsilon, times=times), 1e-300) / delta)

        return float(brentq(excess, low, high, xtol=1e-12, rtol=1e-12))

    def _nodes(self, c: float) -> tuple[FloatArray, FloatArray]:
        """Points x of the real line in units of s, and the loss there."""
        always = self.constant / self.noise_std
        drawn = (self.constant + self.sampled) / self.noise_std
        reach = _STANDARD_DEVIATIONS + (1 + c) * max(abs(always), abs(drawn))
        x = np.linspace(-reach, reach, 2 * min(ceil(reach / _SPACING), _MOST_NODES) + 1)
        out = log1p(-self.rate) + always * x - always**2 / 2
        inside = log(self.rate) + drawn * x - drawn**2 / 2
        return x, np.logaddexp(out, inside)

    def _weights(self, c: float) -> tuple[FloatArray, FloatArray]:
        """The loss at the nodes, and logs of the weights whose sum is E_Q[(P/Q)^(1 + c)]."""
        x, loss = self._nodes(c)
        return loss, (1 + c) * loss - x**2 / 2 + log((x[1] - x[0]) / sqrt(2 * pi))

    def _order(self, epsilon: float, times: int) -> float:
        """The c at which the integrand is smallest: a saddle point."""

        def height(log_c: float) -> float:
            c = exp(log_c)
            log_moment = float(np.logaddexp.reduce(self._weights(c)[1]))
            return times * log_moment - c * epsilon - log(c * (c + 1))

        bounds = (log(_LEAST_ORDER), log(_GREATEST_ORDER))
        found = minimize_scalar(height, bounds=bounds, method="bounded", options={"xatol": 0.05})
        return exp(float(found.x))

    def _log_moments(self, c: float, spacing: float) -> Iterator[tuple[float, complex]]:
        """Yield t and log E_Q[(P/Q)^(1 + c + it)] for t = 0, spacing, 2 spacing, ..."""
        loss, logs = self._weights(c)
        kept = logs > logs.max() - _KEPT
        loss, largest = loss[kept], float(logs.max())
        weights = np.exp(logs[kept] - largest)
        turn, phase = np.exp(1j * spacing * loss), np.ones(len(loss), dtype=np.complex128)
        for k in range(_MOST_POINTS):
            # repeated turning loses a unit in the last place each time
            phase = phase * turn if k % _FRESH else np.exp(1j * k * spacing * loss)
            yield k * spacing, largest + complex(np.log(phase @ weights))
