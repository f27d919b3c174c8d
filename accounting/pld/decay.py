"""How |M| falls along a vertical line: upper bounds, in doubles, for what a contour leaves out.

Far up the line of a sampled Gaussian shift |M(1+c+it)| is far below M(1+c), and a contour may stop
where it is. `moments_certified` proves the same bounds in balls, at the places found here.
"""

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from math import erf, exp, log, log1p, pi, sqrt

import numpy as np

from .moments import log_moments
from .nodes import EPS, Nodes, log_mixture, nodes, nodes_needed, signed_exponent
from .pairs import DominatingPair, GaussianShift, Order, Sampled
from .quadrature import WIDEST_SHIFT, Demand, plan_shift

# the walk of `_symmetrised_decay`: |M| may rise by this share of its gap to M(1+c) in one step, and
# the steps grow with the square of t, so that t / step bounds their number
_SHARE_OF_GAP = 0.2
_MOST_STEPS = 400
_LONGEST_WALK = 20_000
"""Most nodes for which the walk is worth its price."""

_MOST_TURNS = 1 << 23
"""Most turns, of one node at one height, of a walk; `decay_certified` takes each again."""


@lru_cache(maxsize=65536)
def log_decay(pair: DominatingPair, order: float, reach: float) -> float:
    """Return an upper bound on log |M(1 + order + it)| over all |t| >= reach.

    A Gaussian shift has it in closed form. For a sampled one the line of integration is moved to
    Im u = y with arg r of the sign that makes |r^{it}| = exp(-|t| |arg r|) <= exp(-reach |arg r|);
    y is the best of a few, and any is valid. For a symmetrised one see `_symmetrised_decay`. Pairs
    with atoms do not decay: the bound is M at the real order.
    """
    match pair:
        case GaussianShift():
            return float(pair.mu_squared) / 2 * (order * (order + 1) - reach * reach)
        case Sampled(base=GaussianShift() as base) if pair.order is not Order.SYMMETRISED:
            return _shifted_decay(pair, sqrt(base.mu_squared), order, reach)
        case Sampled(base=GaussianShift() as base):
            return _symmetrised_decay(pair, sqrt(base.mu_squared), order, reach)
        case _:
            demand = Demand(order, 0.0, 40.0)
            return float(log_moments(pair, np.array([order + 0j]), demand).log[0].real)


def _shifted_decay(pair: Sampled, mu: float, order: float, reach: float) -> float:
    """Return the bound with the best shift: log M, and by how much the shifted integral exceeds
    M.
    """
    gain, base, _ = best_shift(pair, mu, order, reach)
    return base + log1p(gain)


def best_shift(pair: Sampled, mu: float, order: float, reach: float) -> tuple[float, float, float]:
    """Return (B/M - 1, log M, y) of the best shift y tried for `log_decay`, M the real moment.

    Under the tilted law ∝ φ r^α the shift y changes the log modulus at u by α log|turn| - T arg
    turn + y²/2, about -T y E[μp] + y²/2 · (1 - α μ² E[p(1-p)]) for small y: the best y is T times
    the mean slope over the information. Five multiples of it are tried, as the expansion holds for
    small y only. The change is kept as a difference from one (expm1), because far down the line |M|
    is nearly M.

    Args:
        pair: a sampled Gaussian shift, not symmetrised.
        mu: μ.
        order: c.
        reach: T.
    """
    q = float(pair.rate)
    alpha = signed_exponent(pair, order)
    line = plan_shift(mu, alpha, q)
    u = line.step * np.arange(line.first, line.last + 1, dtype=np.float64)
    log_r, _ = log_mixture(mu * u - mu * mu / 2, 0.0, q)
    share = np.exp(np.minimum(log(q) + mu * u - mu * mu / 2 - log_r, 0.0))
    weight = alpha * log_r - u * u / 2
    scale = float(np.max(weight))
    tilted = np.exp(weight - scale)
    # the best small shift is reach times the mean slope of the loss over the Fisher information
    total = float(np.sum(tilted))
    slope = mu * float(tilted @ share) / total
    information = max(1 - alpha * mu * mu * float(tilted @ (share * (1 - share))) / total, 0.05)
    y = np.minimum(
        reach * slope / information * np.array([0.5, 0.75, 1.0, 1.5, 2.5]), WIDEST_SHIFT * pi / mu
    )
    # r(u + iy) = r(u) (1 + p (e^{iμy} - 1))
    turn = 1 + share * np.expm1(1j * mu * y[:, None])
    change = alpha * np.log(np.abs(turn)) - reach * np.angle(turn) + y[:, None] ** 2 / 2
    gain = np.expm1(np.minimum(change, 600.0)) @ tilted / total
    best = int(np.argmin(gain))
    base = scale + log(total * line.step / sqrt(2 * pi))
    return max(float(gain[best]), EPS - 1), base, float(y[best])


def _symmetrised_decay(pair: Sampled, mu: float, order: float, reach: float) -> float:
    """Return log of the larger of: |M| at all t >= far, and |M| on steps from `reach` to far.

    Far: on s = u - μ/2 >= 0 the loss log r has the slope μp, so |∫ φ r^w du| is at most
    (g(0) + TV(g)) / |t| with g = φ r^α / (μp), by parts. For α = -c, g falls: 2 g(0). For α = 1 +
    c, (log g)' = (2+c) μ p - μ - u is a logistic curve less a line: at most two local maxima, so
    4 sup g. Near: |M| changes by at most
    E_P[|L| e^{cL}] <= sqrt(M(c) E_P[L² e^{cL}]) a unit of t.
    """
    far, limit = symmetrised_far(pair, mu, order)
    if reach >= far:
        return log(limit)
    heights, bounds = _walk(pair, order, far)
    place = bisect_right(heights, reach) - 1
    whole = float(
        log_moments(pair, np.array([complex(order)]), Demand(order, 0.0, 40.0)).log[0].real
    )
    return min(whole, log(max(bounds[place], limit)) + 1e-9) if place >= 0 else whole


@lru_cache(maxsize=256)
def _walk(pair: Sampled, order: float, far: float) -> tuple[list[float], list[float]]:
    """Return heights t_i and, for each, a bound on |M(1 + order + it)| for t_i <= t <= far.

    The Lipschitz constant sqrt(M(c) E_P[L² e^{cL}]) bounds how fast |M| changes, by Cauchy and
    Schwarz. From t a step may be as long as |M| then stays below what it was, plus a fifth of its
    gap to M(1+c).
    """
    demand = Demand(order, far, 24.0)
    if nodes_needed(pair, demand) > _LONGEST_WALK:
        return [], []
    n = nodes(pair, demand)
    weight = np.exp(n.log_mass + order * n.loss)
    n = Nodes(*(x[weight > 1e-12 * np.max(weight)] for x in (n.log_mass, n.loss, n.blur)))
    weight = np.exp(n.log_mass + order * n.loss)
    whole = float(np.sum(weight))
    # not E|L|, which is less, but what balls can bound: sqrt(M E[L² e^{cL}])
    lipschitz = sqrt(whole * float(weight @ n.loss**2))
    # where the least step is longer at last than the rise allows, nothing would end up bounded
    last_rise = (
        _SHARE_OF_GAP / (1 - _SHARE_OF_GAP) * (whole - abs(np.exp(1j * far * n.loss) @ weight))
    )
    if far > (2 * _MOST_STEPS + 1) * last_rise / lipschitz:
        return [], []
    mean = float(weight @ n.loss) / whole
    spread = float(weight @ (n.loss - mean) ** 2)
    t = 2 * lipschitz / (_SHARE_OF_GAP * spread * _MOST_STEPS)
    heights: list[float] = []
    bounds: list[float] = []
    while t < far:
        if len(heights) * n.loss.size > _MOST_TURNS:
            return [], []
        here = abs(complex(np.exp(1j * t * n.loss) @ weight))
        rise = _SHARE_OF_GAP * (whole - here)
        heights.append(t)
        bounds.append(here + rise)
        t += max(rise / lipschitz, t / (2 * _MOST_STEPS))
        # too small a step would leave a gap unbounded
        if rise / lipschitz < t / (2 * _MOST_STEPS):
            heights.clear()
            bounds.clear()
    return heights, list(accumulate(reversed(bounds), max))[::-1]


def walk_heights(pair: Sampled, order: float, far: float) -> list[float]:
    """Return the heights at which `_symmetrised_decay` looks at |M|."""
    return _walk(pair, order, far)[0]


def symmetrised_far(pair: Sampled, mu: float, order: float) -> tuple[float, float]:
    """Return (far, a bound on |M| for all |t| >= far), the first part of `_symmetrised_decay`.

    Past (2+c) μ the logarithm of g falls, so that 400 cells up to there hold its supremum. `far` is
    where atom + variation/t has come down to atom + 0.8 (1 - atom).
    """
    q = float(pair.rate)
    s = np.linspace(0.0, (2 + order) * mu + 2, 400)
    log_r, _ = log_mixture(mu * s, 0.0, q)
    # the supremum over each short cell, from its ends
    log_g = (2 + order) * log_r[1:] - (s[:-1] + mu / 2) ** 2 / 2 - mu * s[:-1]
    edge = exp(-mu * mu / 8)
    variation = (4 * exp(min(float(np.max(log_g)), 600.0)) + 2 * edge) / (sqrt(2 * pi) * q * mu)
    atom = (1 - q) * erf(mu / 2 / sqrt(2))
    far = 1.25 * variation / (1 - atom)
    return far, atom + variation / far
