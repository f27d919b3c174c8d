"""The privacy profile of a composition by contour integration, in doubles.

With M(1+z) = Π_i M_i(1+z)^{n_i} the moment function of the composition, on any line Re z = c > 0

    δ(ε) = (1/2πi) ∫ M(1+z) e^{-zε} / (z(z+1)) dz.                                            (1)

(The transform of (1 - e^{ε-L})⁺ over L; Zhu, Dong, Wang 2022, Section 4, for the inversion of
characteristic functions of the privacy loss.) The trapezoid rule of step h on (1) is not an
approximation with an unknown error: by Poisson summation it equals, with Δ = 2π/h,

    Σ_m δ(ε + mΔ) e^{cmΔ}   over all whole m,                                                 (2)

because ε ↦ e^{cε}δ(ε) is continuous, decays exponentially both ways, and its transform, (1)'s
integrand, is O(1/t²). Every term of (2) is >= 0: the rule never falls below δ(ε), and since δ <= 1
and δ(x) <= M(1+λ) e^{-λx} λ^λ/(1+λ)^{1+λ} for every λ > 0, it exceeds δ(ε) by at most

    1/(e^{cΔ} - 1) + M(1+λ) e^{-λε} λ^λ/(1+λ)^{1+λ} / (e^{(λ-c)Δ} - 1)   for any λ > c.         (3)

What is left out beyond |t| = T is at most (1/π) sup_{t>=T} |M(1+c+it)| e^{-cε} / T, with the
bounds on |M| of `decay`. So an upper bound needs (1) by trapezoid, the cut-off bound, and an
allowance for rounding; the number of steps n_i plays no part in the cost.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, isqrt, log, pi
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..numbers.work import spend
from .moments import Moments, log_moments
from .nodes import EPS, largest_total
from .pairs import DominatingPair
from .placement import STRAIN, ContourTarget, Placement, log_modulus, place_contour, strain
from .quadrature import Demand
from .saddle import (
    Counts,
    above_epsilons,
    above_log_deltas,
    chernoff_deltas,
    epsilons_by_moments,
    log_moments_of,
    sketch,
)

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Places = npt.NDArray[np.int64]

_KEPT_NODES = 1 << 13
"""The longest contour whose moments are kept for the next query."""


@lru_cache(maxsize=8192)
def moments_on(pair: DominatingPair, placement: Placement, demand: Demand) -> Moments:
    """Return the moments of one pair at the nodes of a contour; kept for the next query."""
    return log_moments(pair, _points(placement), demand)


def _points(placement: Placement) -> Complexes:
    """Return the nodes c + i k h, k = 0..count."""
    t = placement.step * np.arange(placement.count + 1)
    return np.asarray(placement.order + 1j * t, dtype=np.complex128)


class Sum(NamedTuple):
    """A number, its derivative, and a bound on the error of the number.

    Args:
        value: δ(ε) as the sum has it.
        slope: dδ/dε, for Newton steps; not bounded.
        error: such that δ(ε) <= value + error.
    """

    value: float
    slope: float
    error: float


@dataclass(frozen=True, slots=True)
class Contour:
    """The integrand of (1) on a placed contour, and bounds on its errors, for ε <= highest.

    The terms are kept as a matrix, term k = row · columns + column, relative to exp(log_scale) and
    at ε = highest: two short sets of phases turn all of them to any other ε.

    Args:
        placement: line, step and length.
        highest: the largest ε that is asked for: there the terms e^{-zε} are smallest.
        log_scale: log of the largest term's modulus.
        terms: shape (rows, columns).
        slopes: -z times `terms`.
        allowance: a bound on what rounding takes off the sum, relative to exp(log_scale).
        log_tail: log of the cut-off bound, but for e^{-cε}.
    """

    placement: Placement
    highest: float
    log_scale: float
    terms: Complexes
    slopes: Complexes
    allowance: float
    log_tail: float

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(cls, counts: Counts, placement: Placement, highest: float) -> "Contour":
        """Return the contour of a composition: one moment evaluation for each distinct pair.

        Args:
            counts: pairs and how often each is composed.
            placement: where the contour runs.
            highest: the largest ε that will be asked.
        """
        z = _points(placement)
        total, error = -np.log(z) - np.log1p(z), 4 * EPS * (1 + np.abs(np.log(z)))
        tail = 0.0
        demand = placement.demand(counts)
        for pair, n in counts.items():
            spend(placement.count >> 9)
            kept = placement.count <= _KEPT_NODES
            moments = moments_on(pair, placement, demand) if kept else log_moments(pair, z, demand)
            total, error = total + n * moments.log, error + n * moments.error
            tail += n * log_modulus(pair, placement.grade, placement.reach)
        columns = isqrt(placement.count) + 1
        size = columns * -(-z.size // columns)
        # of the exponents and phases, and of the two sums
        error += EPS * (8 * (2 + np.abs(total) + np.abs(z) * highest) + 4 * columns)
        exponent = total - z * highest
        log_scale = float(exponent[0].real)
        terms = np.zeros(size, dtype=np.complex128)
        terms[: z.size] = np.exp(exponent - log_scale) * (placement.step / pi)
        terms[0] /= 2
        slopes = np.zeros(size, dtype=np.complex128)
        slopes[: z.size] = -z * terms[: z.size]
        return cls(
            placement,
            highest,
            log_scale,
            terms.reshape(-1, columns),
            slopes.reshape(-1, columns),
            float(np.sum(np.abs(terms[: z.size]) * np.expm1(np.minimum(error, 700.0)))),
            tail - log(pi * placement.reach),
        )

    @np.errstate(over="ignore", invalid="ignore")
    def deltas_and_slopes(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return upper bounds on δ(ε), 0 <= ε <= highest, and their derivatives (estimates).

        Args:
            epsilons: shape (n,).
        """
        rows, columns = self.terms.shape
        c, step = self.placement.order, self.placement.step
        fall = self.highest - epsilons
        short = np.exp(1j * step * np.outer(np.arange(columns), fall))
        long = np.exp(1j * step * columns * np.outer(np.arange(rows), fall))
        exponent = self.log_scale + c * fall
        scale = np.exp(np.minimum(exponent, 600.0))
        # not by matrix product: its threads cost more than they save, on a busy machine far more
        value = np.sum(long * np.einsum("rc,cn->rn", self.terms, short), axis=0).real
        slope = np.sum(long * np.einsum("rc,cn->rn", self.slopes, short), axis=0).real
        tail = np.exp(np.minimum(self.log_tail - c * epsilons, 700.0)) * (1 + 1e-9)
        upper = scale * (value + self.allowance) * (1 + 4 * EPS) + tail
        return np.where(exponent <= 600.0, upper, inf), scale * slope - c * tail

    def delta(self, epsilon: float) -> Sum:
        """Return about δ(ε), its derivative and a bound on the error of the former."""
        upper, slope = self.deltas_and_slopes(np.array([epsilon]))
        tail = self.log_tail - self.placement.order * epsilon
        scale = self.log_scale + self.placement.order * (self.highest - epsilon)
        error = np.exp(min(tail, 700.0)) + np.exp(min(scale, 700.0)) * self.allowance
        return Sum(float(upper[0]) - float(error), float(slope[0]), float(error))

    def epsilon(self, delta: float, low: float, high: float) -> float:
        """Return the least ε found up to `high` whose bound is <= δ; `high` if none is."""
        return float(self.roots_above(np.array([delta]), np.zeros(1), np.array([high]))[0])

    def roots_above(self, deltas: Floats, low: Floats, high: Floats) -> Floats:
        """Return the least ε found in [low, high] whose bound is <= δ; `high` if none is.
         Newton's method on log δ, which is nearly linear in ε, inside a bracket that bisection
        keeps. `high` moves to points that meet δ alone, so that what is returned is valid wherever
        the iteration stops.

        Args:
            deltas: shape (n,), in (0, 1).
            low, high: brackets, shape (n,); `high` is known to be an upper bound.
        """
        at_low = self.deltas_and_slopes(low)[0] <= deltas
        low, high = low.copy(), np.where(at_low, low, high)
        epsilons, active = high.copy(), np.nonzero(~at_low)[0]
        for _ in range(100):
            if not active.size:
                break
            here, target = epsilons[active], deltas[active]
            value, slope = self.deltas_and_slopes(here)
            meets = value <= target
            high[active], low[active] = (
                np.where(meets, here, high[active]),
                np.where(meets, low[active], here),
            )
            # Newton on log δ, a hair to the right so that both ends of the bracket move
            with np.errstate(all="ignore"):
                move = np.log(value / target) * value / slope
            settled = meets & (move >= -inf) & (np.abs(move) <= _SETTLED * here)
            new = here - move + 4 * EPS * here
            inside = (low[active] < new) & (new < high[active])
            epsilons[active] = np.where(inside, new, (low[active] + high[active]) / 2)
            active = active[~settled & (high[active] - low[active] > 8 * EPS * high[active])]
        return high


_SMALLEST = 5e-324
"""The least positive double: a bound that underflows is this, never zero."""

_SETTLED = 2.0**-46
"""The relative Newton step at which a root is settled: any ε with bound <= δ is valid.

2^-46 of ε is 64 times what doubles round.
"""


class UpperBounds(NamedTuple):
    """Upper bounds, and for each the share of δ that the cut-off of its contour takes.

    Args:
        values: shape (n,).
        shares: shape (n,); 1 where no contour was found. A large one says that the bound is loose.
    """

    values: Floats
    shares: Floats


def epsilons_upper(
    counts: Counts, deltas: Floats, least: Floats, *, useful: float = inf
) -> UpperBounds:
    """Return upper bounds on the larger of ε(δ) and `least`, for arrays of shape (n,), in doubles.

    The root of the upper bound on δ(ε), from the right, below the bound of one moment and the pure
    bound; where the contour's own errors hide the root, the latter stand. A contour serves as many
    points as it can. It is placed for the best ε known, and again if the root lies far from there.

    Args:
        counts: pairs and how often each is composed.
        deltas: in (0, 1).
        least: below which nobody asks.
        useful: the share of δ that a contour's cut-off may take for it to be worth its making.
    """
    log_deltas = np.log(deltas)
    places, grades = epsilons_by_moments(counts, log_deltas)
    largest = largest_total(counts)
    epsilons = np.minimum(above_epsilons(places, grades, log_deltas), largest)
    places, shares = np.minimum(places, largest), np.zeros(deltas.shape)
    unsettled = np.nonzero((least < epsilons) & (epsilons < inf))[0]
    for attempt in range(4):
        if attempt and unsettled.size:
            places[unsettled] = epsilons[unsettled]
            grades[unsettled] = chernoff_deltas(counts, places[unsettled])[1]
        far: list[int] = []
        for points in _stretches(counts, places, log_deltas, grades, unsettled):
            highest = float(np.max(epsilons[points]))
            contour = _contour_for(counts, places, log_deltas, grades, points, highest, useful)
            if contour is None:
                shares[points] = 1.0
                continue
            roots = contour.roots_above(deltas[points], least[points], epsilons[points])
            # a root a fifth below the point by which the contour was placed has another saddle
            is_far = (roots > least[points]) & (roots <= 0.8 * epsilons[points])
            far += points[is_far].tolist()
            epsilons[points] = roots
            lost = contour.log_tail - contour.placement.order * roots - log_deltas[points]
            shares[points] = np.exp(np.minimum(lost, 700.0))
        unsettled = np.array(far, dtype=np.int64)
    return UpperBounds(np.maximum(epsilons * (1 + 4 * EPS), least), shares)


def deltas_upper(counts: Counts, epsilons: Floats, least: Floats) -> UpperBounds:
    """Return upper bounds on the larger of δ(ε), ε >= 0, and `least`, as `epsilons_upper` does.

    Args:
        counts: pairs and how often each is composed.
        epsilons: >= 0.
        least: below which nobody asks.
    """
    largest = largest_total(counts)
    log_deltas, grades = chernoff_deltas(counts, epsilons)
    bounds = np.minimum(np.exp(above_log_deltas(counts, epsilons)) * (1 + 4 * EPS), 1.0)
    deltas = np.where(epsilons < largest, bounds, 0.0)
    shares = np.zeros(deltas.shape)
    unsettled = np.nonzero(least < deltas)[0]
    for points in _stretches(counts, epsilons, log_deltas, grades, unsettled):
        highest = float(np.max(epsilons[points]))
        contour = _contour_for(counts, epsilons, log_deltas, grades, points, highest)
        if contour is None:
            shares[points] = 1.0
            continue
        found, _ = contour.deltas_and_slopes(epsilons[points])
        deltas[points] = np.fmin(found, deltas[points])
        lost = contour.log_tail - contour.placement.order * epsilons[points]
        with np.errstate(divide="ignore"):
            shares[points] = np.exp(np.minimum(lost - np.log(deltas[points]), 700.0))
    # a bound below the smallest number is not zero
    deltas = np.where(epsilons < largest, np.maximum(deltas, _SMALLEST), deltas)
    return UpperBounds(np.maximum(deltas, least), shares)


def _stretches(
    counts: Counts, epsilons: Floats, log_deltas: Floats, grades: Places, points: Places
) -> list[Places]:
    """Split points of the curve into stretches, each of which the saddle of its middle serves.

    Halved until the bound of one moment exceeds δ by at most e^`STRAIN` at both ends: so many
    digits cancel.
    """
    if not points.size:
        return []
    moment = log_moments_of(sketch(counts))
    found, waiting = [], [points[np.argsort(log_deltas[points], kind="stable")]]
    while waiting:
        stretch = waiting.pop()
        grade = int(grades[stretch[stretch.size // 2]])
        ends = _ends(epsilons, log_deltas, stretch)
        if stretch.size == 1 or all(strain(moment, grade, end) <= STRAIN for end in ends):
            found.append(stretch)
        else:
            waiting += np.array_split(stretch, 2)
    return found


def _ends(epsilons: Floats, log_deltas: Floats, stretch: Places) -> tuple[ContourTarget, ...]:
    """Return the first and the last point of a stretch; errors relative to δ are largest there."""
    places = sorted({int(stretch[0]), int(stretch[-1])})
    return tuple(ContourTarget(float(epsilons[k]), float(log_deltas[k])) for k in places)


def _contour_for(
    counts: Counts,
    epsilons: Floats,
    log_deltas: Floats,
    grades: Places,
    stretch: Places,
    highest: float,
    useful: float = inf,
) -> Contour | None:
    """Return the contour placed for a stretch, at the saddle of its middle; None where none is
    of use.

    Args:
        counts: pairs and how often each is composed.
        epsilons, log_deltas, grades: points near the curve and their saddles, shape (n,).
        stretch: which of them.
        highest: the largest ε that will be asked.
        useful: see `epsilons_upper`.
    """
    grade = int(grades[stretch[stretch.size // 2]])
    ends = _ends(epsilons, log_deltas, stretch)
    placement = place_contour(counts, ends, grade=grade)
    if placement is None or min(placement.share_beyond(counts, end) for end in ends) > useful:
        return None
    return Contour.of(counts, placement, highest)
