"""Few steps of small rates: where ε lies, and a vertical line or a ray that is fit for it.

The bound of one moment, from which `contour` starts, may be ten times ε there: losses have heavy
tails, and beyond a cliff the moments explode. But a single step brings nearly all of a large loss,
so that Σ_i n_i δ_i(ε) <= δ tells about where ε begins. From there on guesses grow until a contour
placed at one of them answers with an error that is small next to δ, whatever the guess was worth.
"""

from collections.abc import Iterator
from math import erfc, expm1, inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from .contour import Contour
from .nodes import EPS
from .pairs import Sampled
from .placement import ContourTarget, Placement, place_contour, strain
from .ray import RayIntegral
from .ray_panels import RayPlacement
from .ray_placement import place_ray, reaches
from .ray_sums import scale_and_rate
from .saddle import (
    Counts,
    above_epsilons,
    chernoff_delta,
    epsilons_by_moments,
    log_moments_of,
    order_of,
)

_TIGHT = 3e-6
"""The relative error of δ up to which an answer is good enough; ε errs by a tenth of it or so."""

_USEFUL = 1e-2
"""The relative error of δ up to which an answer is of use, if no better one is found."""

_HOPELESS = 28.0
"""Natural-log digits that cancel at the start of a ray, of which doubles leave less than two."""

_SETTLED = 1e-3
"""The change of log δ below which a ray placed anew is the same."""

NEGLIGIBLE = 1e-7
"""The share of δ that the cut-off of a vertical line may take where it is placed for few steps."""

_LOST = 1e-6
"""The share of δ that it may take where it was placed by moments: ε errs by less than as much of
itself, where δ falls by a factor of e at least over it."""

DOUBTED = 1e-2
"""The share of δ above which such a line is not made before a ray was asked for."""

_MOST_NODES = 1 << 12
"""Nodes of a vertical line above which a ray is shorter."""

_MOST_STEPS = 1 << 17
"""With more steps the roundings of doubles, each as often multiplied, tell."""

_FEW, _NEAR = 128, 1.1
"""Steps that are few, and how far above its least possible value their ε is not doubted."""

_LEAST_DELTA = 1e-300
"""Below it doubles hold no δ."""

_GROWTH, _MOST_GUESSES, _MOST_TRIES = 1.35, 9, 3


class Found(NamedTuple):
    """A bound, and what gave it.

    Args:
        value: ε or δ, an upper bound.
        path: the vertical line, or the ray, of the integral.
        integral: along it.
        tight: whether no better one need be sought.
    """

    value: float
    path: Placement | RayPlacement
    integral: RayIntegral | Contour
    tight: bool


def possible(counts: Counts) -> bool:
    """Return whether there may be a ray: the steps are of a kind that has one, and not many."""
    return reaches(counts) and sum(counts.values()) <= _MOST_STEPS


def doubtful(counts: Counts, delta: float, epsilon: float, share: float) -> bool:
    """Return whether a bound from a line placed by moments may be loose, and another be tight.

    `share` is what the cut-off of that line takes of δ. Of few steps the bound may be loose even
    where this is small: no Newton step leads down from beyond the cliff.
    """
    steps = sum(counts.values())
    if not possible(counts):
        return False
    return share > _LOST or (steps <= _FEW and _about_delta(counts, epsilon / _NEAR) < delta)


def epsilon_upper(counts: Counts, delta: float) -> Found | None:
    """Return a tight upper bound on ε(δ), 0 < δ < 1, in doubles; None where nothing gives one."""
    if not possible(counts):
        return None
    log_deltas = np.array([log(delta)])
    most = float(above_epsilons(*epsilons_by_moments(counts, log_deltas), log_deltas)[0])
    best, least = None, _USEFUL * delta
    for guess in _guesses(counts, delta, most) if most > 0 else ():
        epsilon = guess
        for _ in range(_MOST_TRIES):
            # a root far below all guesses is no root: δ(ε) is nowhere above δ
            far = epsilon < guess * 2.0**-20
            path = None if far else _line_or_ray(counts, epsilon, log(delta))
            if path is None:
                break
            integral = _integral(counts, path, most)
            root = integral.epsilon(delta, epsilon, most)
            error = integral.delta(root).error
            if not error < _USEFUL * delta and isinstance(path, Placement):
                # so far up the line that the moments are lost
                path = _ray(counts, epsilon, log(delta))
                if path is None:
                    break
                integral = _integral(counts, path, most)
                root = integral.epsilon(delta, epsilon, most)
                error = integral.delta(root).error
            epsilon = root
            if error < least:
                tight = error <= _TIGHT * delta
                best, least = Found(epsilon * (1 + 4 * EPS), path, integral, tight), error
            if error <= _TIGHT * delta:
                return best
        if best is not None:
            return best
    return None


def delta_upper(counts: Counts, epsilon: float) -> Found | None:
    """Return a tight upper bound on δ(ε), ε > 0, in doubles; None where nothing gives one."""
    if not (epsilon > 0 and possible(counts)):
        return None
    most = chernoff_delta(counts, epsilon)[0]
    least = min(log(max(_about_delta(counts, epsilon), _LEAST_DELTA)), most)
    best, error = None, inf
    for log_delta in (least, (least + most) / 2, most):
        for _ in range(_MOST_TRIES):
            path = _line_or_ray(counts, epsilon, log_delta)
            if path is None:
                break
            integral = _integral(counts, path, epsilon)
            found = integral.delta(epsilon)
            if not found.error < _USEFUL * found.value and isinstance(path, Placement):
                path = _ray(counts, epsilon, log_delta)
                if path is None:
                    break
                integral = _integral(counts, path, epsilon)
                found = integral.delta(epsilon)
            upper = found.value + found.error
            if found.error < min(error, _USEFUL * found.value):
                tight = found.error <= _TIGHT * found.value
                best, error = Found(upper, path, integral, tight), found.error
            if found.error <= _TIGHT * found.value:
                return best
            if not 0 < found.value < 1:
                break
            before, log_delta = log_delta, log(found.value)
            if best is not None and abs(log_delta - before) < _SETTLED:
                # a path for the very δ that it finds: another errs no less
                return best
    return best


def _line_or_ray(
    counts: Counts, epsilon: float, log_delta: float
) -> Placement | RayPlacement | None:
    """Return a vertical line that is fit for a point of the curve, or a ray, or None."""
    grade = chernoff_delta(counts, epsilon)[1]
    target = ContourTarget(epsilon, log_delta)
    line = place_contour(counts, (target,), grade=grade)
    if (
        line is not None
        and line.count <= _MOST_NODES
        and line.share_beyond(counts, target) < NEGLIGIBLE
    ):
        return line
    return _ray(counts, epsilon, log_delta)


def _ray(counts: Counts, epsilon: float, log_delta: float) -> RayPlacement | None:
    """Return a ray fit for a point of the curve, or None; a little left of the saddle."""
    # a little to the left of the saddle, beyond which there may be a cliff
    grade = chernoff_delta(counts, epsilon)[1] - 1
    if strain(log_moments_of(counts), grade, ContourTarget(epsilon, log_delta)) > _HOPELESS:
        return None
    return place_ray(counts, epsilon, log_delta, order_of(grade))


def _integral(
    counts: Counts, path: Placement | RayPlacement, highest: float
) -> RayIntegral | Contour:
    """Return the integral along a line or a ray."""
    if isinstance(path, Placement):
        return Contour.of(counts, path, highest)
    return RayIntegral.of(counts, path)


def _about_delta(counts: Counts, epsilon: float) -> float:
    """Return about δ(ε) of few steps of small rates, a single one of which brings the loss."""
    total = 0.0
    for pair, n in counts.items():
        if isinstance(pair, Sampled):
            mu, q = scale_and_rate(pair)
            odds = expm1(min(epsilon, 700.0))
            v = log1p(odds / q) / mu
            total += n * (
                q * erfc((v - mu / 2) / sqrt(2)) - (odds + q) * erfc((v + mu / 2) / sqrt(2))
            )
    return total / 2


def _guesses(counts: Counts, delta: float, most: float) -> Iterator[float]:
    """Yield ε to place a contour by, the least first, up to the bound `most` of one moment."""
    low, high = 0.0, most
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _about_delta(counts, middle) > delta else (low, middle)
    here = max(high, most * 2.0**-24)
    for _ in range(_MOST_GUESSES):
        if here >= most:
            break
        yield here
        here *= _GROWTH
    yield most
