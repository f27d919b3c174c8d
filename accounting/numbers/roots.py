"""Brent's root finder, for routines that must not wait for scipy.optimize to load (0.2 s).

Bracketing with inverse quadratic interpolation (Brent 1973, chapter 4; van Wijngaarden, Dekker,
Brent). The sequence of points is that of `scipy.optimize.brentq`, to the last bit.
"""

from collections.abc import Callable
from math import copysign


def brent(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = 2e-12,
    rtol: float = 2.0**-50,
    maxiter: int = 100,
) -> float:
    """Return a root of a continuous function between two points where its signs differ.

    Args:
        function: of one number.
        low, high: the bracket, in either order.
        xtol, rtol: the root is within xtol + rtol * |root|.
        maxiter: evaluations after the first two.

    Raises `ValueError` where the signs are equal, `RuntimeError` where evaluations run out.
    """
    before, here = low, high
    f_before, f_here = function(before), function(here)
    if f_before == 0.0:
        return before
    if f_here == 0.0:
        return here
    if copysign(1.0, f_before) == copysign(1.0, f_here):
        raise ValueError(f"f({low})={f_before} and f({high})={f_here} must have different signs")
    opposite, f_opposite = before, f_before
    last_step = step = here - before
    for _ in range(maxiter):
        if f_before != 0.0 and copysign(1.0, f_before) != copysign(1.0, f_here):
            opposite, f_opposite = before, f_before
            last_step = step = here - before
        if abs(f_opposite) < abs(f_here):
            # the best point so far is always `here`
            before, here, opposite = here, opposite, here
            f_before, f_here, f_opposite = f_here, f_opposite, f_here
        least = (xtol + rtol * abs(here)) / 2
        bisection = (opposite - here) / 2
        if f_here == 0.0 or abs(bisection) < least:
            return here
        interpolated = None
        if abs(last_step) > least and abs(f_here) < abs(f_before):
            interpolated = _interpolated(before, here, opposite, f_before, f_here, f_opposite)
        if interpolated is not None and 2 * abs(interpolated) < min(
            abs(last_step), 3 * abs(bisection) - least
        ):
            last_step, step = step, interpolated
        else:
            last_step = step = bisection
        before, f_before = here, f_here
        here += step if abs(step) > least else copysign(least, bisection)
        f_here = function(here)
    raise RuntimeError(f"no root within {maxiter} evaluations; the last point was {here}")


def _interpolated(
    before: float, here: float, opposite: float, f_before: float, f_here: float, f_opposite: float
) -> float:
    """Return the step to the root of the secant, or of the inverse parabola."""
    if before == opposite:
        return -f_here * (here - before) / (f_here - f_before)
    slope_before = (f_before - f_here) / (before - here)
    slope_opposite = (f_opposite - f_here) / (opposite - here)
    return (
        -f_here
        * (f_opposite * slope_opposite - f_before * slope_before)
        / (slope_opposite * slope_before * (f_opposite - f_before))
    )
