"""Quadrature of moment functions: where to evaluate, and a proven bound on what is missed.

The moment function of a pair is M(1+z) = E_P[exp(zL)], L the privacy loss. For a sampled Gaussian
shift it is an integral over u ~ N(0, 1) of r(u)^w, where

    r(u) = 1 - q + q exp(v),   v = μu - μ²/2,   w = 1 + z  or  w = -z.

Three facts about r carry all bounds below. For real u and |θ| < π, θ = Im v:
  (i)   |r(u + iy)| <= r(u)                    (triangle inequality)
  (ii)  |r(u + iy)| >= r(u) cos(θ/2)           (|a + b e^{iθ}| >= (a + b) cos(θ/2) for a, b >= 0)
  (iii) arg r(u + iy) lies between 0 and θ and grows with θ.
So for w = α + iτ and 0 < y < π/μ

    |φ(u ± iy) r(u ± iy)^w| <= φ(u) r(u)^α K exp(y²/2 + |τ| μ y),
    K = 1 for α >= 0,  K = cos(μy/2)^α for α < 0.                                          (*)

For α < 0 and θ = μy < π/2 there is besides |r(u ± iy)| >= Re r = (1 - q)(1 + Y) for a Y >= 0, and
|arg r| <= Im r / Re r = tan θ Y / (1 + Y). The modulus of r^w is at most (1 - q)^α times

    exp(α log(1 + Y) + |τ| tan θ Y / (1 + Y)) <= exp(-α (ρ - 1 - log ρ)):

the exponent is largest at 1 + Y = ρ = |τ| tan θ / -α, or at Y = 0 if that is less than one: then ρ
stands for one. This lets α be large where αq is not, and τ with it: there r turns fast only where
r^α has long fallen. E[r^α] is at least one (E[r] = 1, and r^α is convex in r), so that of integrals
over the whole line

    N <= (1 - q)^α exp(y²/2 - α (ρ - 1 - log ρ)) E[r^α].                                    (**)

*Whole line.* The trapezoid rule of step h on an integrand analytic in |Im u| <= y errs by at most
2 N / (exp(2πy/h) - 1), N the larger integral of the modulus along Im u = ±y (Trefethen, Weideman
2014, Theorem 5.1). By (*) N <= K exp(y²/2 + |τ|μy) E[r^α], or (**).
Left out nodes: since d/du log(φ r^α) = -u + αμp(u) with p = q e^v / r in (0, 1) increasing, the
terms beyond U > αμ⁺ fall at least geometrically, so their sum is at most f(U) h / (exp((U - αμ⁺)h)
- 1); likewise on the left, where α⁻ may be multiplied by p at the end: for α < 0 it is far shorter
than α⁻μ if q is small, because r >= 1 - q there, while E[r^α] >= 1.

*Half line u >= μ/2* (symmetrised pairs), interval (Laplace shifts), and whole line where |τ| is so
large that r^{iτ} turns fast where q e^v is not small, but hardly elsewhere. Gauss-Legendre with n
points on a panel of half width w errs by at most (64/15) w X ρ^{2-2n} / (1 - ρ^{-2}), X the maximum
of the modulus on the Bernstein ellipse of parameter ρ (Trefethen 2013, Theorem 19.3). X is bounded
over the box around the ellipse by (i); by (ii) or, where better, (ii') |r| >= Re r = 1 - q + q e^v
cos θ with θ at the box's upper edge, v at its left end or, where cos θ < 0, at its right end; and
by (iii) with the argument at the box's upper right corner, since arg r grows with Re v too.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, cos, exp, inf, log, log1p, pi, sqrt, tan

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

WIDEST_SHIFT = 0.7
"""Largest shift of a line of integration, in units of π/μ, where the zeros of r lie."""

_ELLIPSES = np.array([1.1, 1.2, 1.35, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.5, 8.0])
"""Parameters of Bernstein ellipses, of which the best is taken."""

_FAR_COARSER = 4.0
"""How much coarser a rule is to be for which only small shifts are left."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What an inner quadrature must deliver.

    `order` c and `reach` T: the moments M(1 + c + it) for all |t| <= T; `digits`: the relative
    error allowed is exp(-digits).
    """

    order: float
    reach: float
    digits: float


@dataclass(frozen=True, slots=True)
class Line:
    """The trapezoid rule with nodes k·step, first <= k <= last; `height` is the proof's strip."""

    step: float
    first: int
    last: int
    height: float


@dataclass(frozen=True, slots=True)
class Panel:
    """Gauss-Legendre with `points` nodes on [low, high]; `ellipse` is the proof's parameter ρ."""

    low: float
    high: float
    points: int
    ellipse: float


@dataclass(frozen=True, slots=True)
class Density:
    """The density under Q of x >= lower, where the loss of the base shift is v = slope · x.

    Gaussian shift: x = u - μ/2, slope μ. Laplace shift: x = v, slope 1, density exp(-(v+ε₀)/2)/4.
    `falling`: only r^(-z) is integrated with it, not r^(1+z).
    """

    slope: float
    lower: float
    laplace_epsilon: float | None = None
    falling: bool = False

    def power(self, order: float) -> float:
        """Return the exponent of r in the integrand that is largest beyond r = 1."""
        return -order if self.falling else 1 + order

    def log_bound(self, low: Floats, high: Floats, height: Floats | float) -> Floats:
        """Return bounds on the log modulus over low <= Re x <= high, |Im x| <= height."""
        if self.laplace_epsilon is not None:
            return -(low + self.laplace_epsilon) / 2 - log(4)
        nearest = np.maximum(np.maximum(low + self.slope / 2, -(high + self.slope / 2)), 0.0)
        return np.asarray((height * height - nearest * nearest - log(2 * pi)) / 2)


def _log_k(alpha: float, angle: float) -> float:
    return 0.0 if alpha >= 0 else alpha * log(cos(angle / 2))


def _log_growth(alpha: float, angle: float, rate: float, reach: float) -> float:
    """Return the logarithm of what (*) or (**), the lesser, multiply E[r^α] e^{y²/2} by.

    Args:
        alpha: the exponent of r.
        angle: θ = μy, below π.
        rate: q.
        reach: the largest |τ|.
    """
    growth = _log_k(alpha, angle) + reach * angle
    if alpha >= 0 or angle >= pi / 2:
        return growth
    turn = max(1.0, reach * tan(angle) / -alpha)
    return min(growth, alpha * (log1p(-rate) - turn + 1 + log(turn)))


@lru_cache(maxsize=65536)
def plan_line(mu: float, alpha: float, rate: float, demand: Demand) -> Line:
    """Return the coarsest trapezoid rule that meets the demand for E[r^(alpha ± i reach)]."""
    need = demand.digits + log(2)
    best, height = 0.0, 0.0
    limit = 0.98 * pi / mu
    # 2πy/h >= y²/2 + log growth + need: the widest h over a geometric grid of y
    y = min(limit, sqrt(2 * need) * 2)
    for _ in range(24 if alpha >= 0 else 60):
        h = 2 * pi * y / (y * y / 2 + _log_growth(alpha, mu * y, rate, demand.reach) + need)
        if h > best:
            best, height = h, y
        y *= 0.85
    return _line(best, height, mu, alpha, rate, demand.digits)


def _line(step: float, height: float, mu: float, alpha: float, rate: float, digits: float) -> Line:
    left = left_reach(mu, alpha, rate, digits)
    right = max(alpha, 0.0) * mu + sqrt(2 * digits) + 1
    return Line(step, -ceil(left / step), ceil(right / step), height)


def left_reach(mu: float, alpha: float, rate: float, digits: float) -> float:
    """Return a U such that φ r^α may be left out at u < -U."""
    fall = max(-alpha, 0.0)
    left = fall * mu + sqrt(2 * digits) + 1
    shorter = sqrt(2 * (digits - fall * log1p(-rate))) + 1
    met = rate * exp(-mu * shorter - mu * mu / 2)
    if shorter < left and shorter > 1 + fall * mu * met / (1 - rate + met):
        return shorter
    return left


@lru_cache(maxsize=65536)
def plan_shift(mu: float, alpha: float, rate: float) -> tuple[Line, float]:
    """Return a trapezoid rule for |r(u + iy)^w| (see `decay`), and the largest y that it serves.

    Along Im u = ±height this function of real u continues to r at heights y ± height; by (*) with
    y + height in the place of y, its modulus there is at most φ r^α K exp((y² + height²)/2). Where
    μ (y + height) < π/2 and α < 0, K may be (1 - q)^α as in (**), and has to be if -α is large:
    then only small shifts are of use.
    """
    digits, zeros = 46.0, pi / mu
    height, shift = min((0.96 - WIDEST_SHIFT) * zeros, 8.0), min(WIDEST_SHIFT * zeros, 8.0)
    growth = height * height / 2 + _log_k(alpha, mu * (height + shift))
    step = 2 * pi * height / (growth + digits)
    if alpha < 0:
        low, near = min(0.28 * zeros, 8.0), min(0.2 * zeros, 8.0)
        finer = 2 * pi * low / (low * low / 2 + alpha * log1p(-rate) + digits)
        if finer > _FAR_COARSER * step:
            step, height, shift = finer, low, near
    return _line(step, height, mu, alpha, rate, digits), shift


@lru_cache(maxsize=1024)
def plan_panels(density: Density, rate: float, upper: float, demand: Demand) -> tuple[Panel, ...]:
    """Return Gauss-Legendre panels on [density.lower, upper] for density · (r^(1+z) and r^(-z))."""
    width = upper - density.lower
    peak = max(0.0, _log_peak(density, rate, upper, demand.order))
    found: tuple[Floats, ...] = ()
    least = inf
    for longest in (4.0, 2.0, 1.0, 0.5, 0.25, 0.125):
        count = max(1, ceil(width / longest))
        edges = density.lower + width * np.arange(count + 1) / count
        edges[-1] = upper  # to the last digit: a pair may be cut there
        points, ellipse = _rules(density, rate, edges, demand.digits + log(count) - peak, demand)
        total = float(np.sum(points))
        if total >= least:
            break
        found, least = (edges[:-1], edges[1:], points, ellipse), total
    panels = zip(*(each.tolist() for each in found), strict=True)
    return tuple(Panel(low, high, int(n), rho) for low, high, n, rho in panels)


def _log_peak(density: Density, rate: float, upper: float, order: float) -> float:
    """Return about the largest log of the integrand at the real order; errors are relative."""
    x = density.lower + (upper - density.lower) * np.arange(65) / 64
    log_r = np.log(1 - rate + rate * np.exp(np.minimum(density.slope * x, 700.0)))
    return float(np.max(density.log_bound(x, x, 0.0) + density.power(order) * log_r))


def _rules(
    density: Density, rate: float, edges: Floats, digits: float, demand: Demand
) -> tuple[Floats, Floats]:
    """Return the fewest points that do on each panel between edges, evenly spaced, and its ρ."""
    low, high = edges[:-1], edges[1:]
    half, middle = float(np.max(high - low)) / 2, (high + low) / 2
    rho = _ELLIPSES[density.slope * (_ELLIPSES - 1 / _ELLIPSES) / 2 * half < 0.95 * pi][:, None]
    height, reach = (rho - 1 / rho) / 2 * half, (rho + 1 / rho) / 2 * half
    peak = density.log_bound(middle - reach, middle + reach, height)
    peak += _log_power(density, rate, demand, middle - reach, middle + reach, height)
    excess = digits + peak + log(4.3 * half) - np.log1p(-(rho**-2))
    needed = np.maximum(2, np.ceil(1 + excess / (2 * np.log(rho))))
    # no rule where none of the ellipses fits, or where an integrand's size is not known
    needed = np.vstack([np.nan_to_num(needed, nan=np.inf), np.full(low.shape, 2.0**30)])
    best = np.argmin(needed, axis=0)
    ellipse = np.append(rho, 2.0)[best]
    points = np.take_along_axis(needed, best[None], axis=0)[0]
    # few distinct numbers of points, so that the rules are found again
    grain = np.maximum(4.0, 2.0 ** (np.floor(np.log2(points)) - 2))
    return grain * np.ceil(points / grain), ellipse


def _log_power(
    density: Density, rate: float, demand: Demand, low: Floats, high: Floats, height: Floats
) -> Floats:
    """Return bounds on log (|r^(1+z)| + |r^(-z)|) over boxes, by (i), (ii'), (iii).

    At least log 2, so that they hold for all lower orders too.
    """
    theta = density.slope * height
    top = np.exp(np.minimum(density.slope * high, 700.0)) * rate
    bottom = np.exp(np.minimum(density.slope * low, 700.0)) * rate
    cosine = np.cos(theta)
    turn = np.arctan2(top * np.sin(theta), 1 - rate + top * cosine)
    real = 1 - rate + np.minimum(bottom * cosine, top * cosine)
    least = np.maximum((1 - rate + bottom) * np.cos(theta / 2), real)
    power = np.maximum(-demand.order * np.log(least), 0.0)
    if not density.falling:
        power = np.maximum(power, (1 + demand.order) * np.log(1 - rate + top))
    return np.asarray(power + log(2) + demand.reach * turn)
