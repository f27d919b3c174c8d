"""Minimising strongly convex objectives in a number of steps that depends on public constants only.

The price of an approximate minimiser is 2·tau/m, for a tolerance tau that is declared before the
data are seen: the result lies within tau/m of the minimiser v*. How many steps that takes follows
from the modulus m, the smoothness L and bounds on the gradient's rounding error and on |v*|, the
same for every data set. So no stop, no failure and no amount of work depends on private numbers,
and what a party's record does moves that party's row alone; under add-remove-one a record more may
move others by a few units in the last place, where sums are then added up in other blocks.

Both methods shrink a bound D on the distance to v*, for a gradient that errs by at most e:

    gradient descent, step h <= 2/(L + m)         D' = (1 - h m) D + h e
    Nesterov's constant momentum, q = sqrt(m/L)   D' = a D + e (1 + q)/(m a),  a = sqrt(1 - q)

The first is Nesterov (2018), Lectures on Convex Optimization, Theorem 2.1.15. For the second let
V = F(x) - F(v*) + (m/2)|z - v*|² and D² = 2V/m, which bounds |x - v*|, |y - v*| and |z - v*|. The
usual proof (d'Aspremont, Scieur, Taylor 2021, section 4.5) with a gradient g + e in both updates
leaves V' <= (1 - q)V + e(1 + q)D + e²/L, whose root is at most the line above where L >= 2m.

e covers all rounding: the terms' sum, scores and slopes, and the updates, whose errors count as
errors of the gradient (Higham 2002, sections 3.1 and 4.2).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, frexp, inf, isfinite, ldexp, log

import numpy as np

from .errors import InvalidParameter
from .protocols import FloatArray

_UNIT = 2.0**-53 * (1.0 + 2.0**-20)  # n of them bound gamma_n for all n here
_BELOW_ONE = 1.0 - 2.0**-40
_MOST_STEPS = 100_000
_SLOPE_ERRORS = 32
"""Units of 2^-53, of the size of a gradient, by which a slope and one update may err beside the
errors of sums: an assumption on exp and log, named in docs/trusted.md."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Public facts about one party's objective f(v) + (modulus/2)|v|² + <linear, v>.

    Args:
        modulus: m > 0.
        smoothness: Lipschitz constant of the whole gradient, at least m.
        pull: bound on |gradient of f| + |linear|.
        start: bound on the norm of the first point.
        operations: additions and multiplications that a number of the gradient goes through.
    """

    modulus: float
    smoothness: float
    pull: float
    start: float
    operations: int


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """How to minimise: steps, momenta and numbers of steps of shape (P, 1), one a party.

    A party's are functions of its own bounds: they are the same whoever the others are.
    """

    step: FloatArray
    momentum: FloatArray
    counts: FloatArray

    def of(self, parties: slice) -> "Iteration":
        """Return the same for some of the parties."""
        return Iteration(self.step[parties], self.momentum[parties], self.counts[parties])


def planned_iteration(parties: list[Bounds], tolerance: float) -> Iteration:
    """Return what takes every party's point within tolerance/modulus of its minimiser.

    Raises `InvalidParameter` where double precision does not reach the tolerance, or not within
    100,000 steps: a matter of public numbers.
    """
    # rounded up to powers of two, so that rounds with similar messages are planned once
    planned = [
        _method(
            b.modulus, b.smoothness, _power_up(b.pull), _power_up(b.start), b.operations, tolerance
        )
        for b in parties
    ]
    steps, momenta, counts = zip(*planned, strict=True)
    columns = (np.array(column, dtype=np.float64)[:, None] for column in (steps, momenta, counts))
    return Iteration(*columns)


def minimise(
    gradient: Callable[[FloatArray], FloatArray], start: FloatArray, iteration: Iteration
) -> FloatArray:
    """Return v of shape (..., P, d) after each party's planned steps from `start`."""
    v = ahead = start
    fewest, most = int(iteration.counts.min()), int(iteration.counts.max())
    for k in range(most):
        before, v = v, ahead - iteration.step * gradient(ahead)
        if k >= fewest:  # parties that are done stay where they are
            v = np.where(k < iteration.counts, v, before)
        ahead = v + iteration.momentum * (v - before)
    return v


@lru_cache(maxsize=1024)
def _method(
    modulus: float, smoothness: float, pull: float, start: float, operations: int, tolerance: float
) -> tuple[float, float, int]:
    """Return the step size, the momentum and the number of steps of the faster method."""
    far = pull / modulus  # bounds |v*|, where the gradient is 0
    wide = max(smoothness, modulus) / _BELOW_ONE
    unit = (operations + _SLOPE_ERRORS) * _UNIT
    # the gradient errs by unit (pull + L (|v*| + |v - v*|)), updates by L times the points' errors
    fixed, growing = unit * (pull + 4.0 * wide * far), unit * 8.0 * wide
    step = 2.0 / (wide + modulus) * _BELOW_ONE
    descent = _Contraction(1.0 - step * modulus, step, fixed, growing)
    methods = [(descent, start + far, step, 0.0)]
    if wide >= 2.0 * modulus:
        q = (modulus / wide) ** 0.5
        shrink = (1.0 - q * _BELOW_ONE) ** 0.5
        fast = _Contraction(shrink, (1.0 + q) / (modulus * shrink), fixed, growing)
        distance = (start + far) * (wide / modulus + 1.0) ** 0.5
        methods.append((fast, distance, 1.0 / wide, (1.0 - q) / (1.0 + q)))
    goal = tolerance / modulus * _BELOW_ONE
    count, step, momentum = min(
        (method.steps(distance, goal), size, momentum)
        for method, distance, size, momentum in methods
    )
    if count > _MOST_STEPS:
        reach = modulus * min(method.limit for method, *_ in methods)
        raise InvalidParameter(
            "tolerance",
            tolerance,
            f"well above {reach:.2g}, which double precision reaches, and within {_MOST_STEPS} "
            "steps; declare a larger one (it is priced as 2·tolerance/modulus) or a larger modulus",
        )
    return step, momentum, int(count)


@dataclass(frozen=True, slots=True)
class _Contraction:
    """D' = shrink·D + gain·(fixed + growing·D), D a bound on a distance."""

    shrink: float
    gain: float
    fixed: float
    growing: float

    @property
    def rate(self) -> float:
        return (self.shrink + self.gain * self.growing) * (1.0 + 1e-12)

    @property
    def limit(self) -> float:
        """What D tends to."""
        return self.gain * self.fixed / (1.0 - self.rate) if self.rate < 1.0 else inf

    def steps(self, distance: float, goal: float) -> float:
        """Return the number of steps after which D stays at most `goal`, or infinity."""
        limit = self.limit * (1.0 + 1e-9)
        if distance <= limit:
            distance = limit
        if not (isfinite(distance) and limit < goal):
            return inf
        if distance <= goal:
            return 0
        # D_k - limit = rate^k (D_0 - limit)
        return ceil(log((distance - limit) / (goal - limit)) / -log(self.rate) * (1.0 + 1e-9)) + 1


def _power_up(size: float) -> float:
    """Return the least power of two that is not below `size` >= 0, or 0."""
    mantissa, exponent = frexp(size)
    return ldexp(1.0, exponent - (mantissa == 0.5)) if size else 0.0
