"""How |M| falls along a vertical line: upper bounds, in doubles, for what a contour leaves out.

Far up the line of a sampled Gaussian shift |M(1+c+it)| is far below M(1+c), and a contour may stop
where it is. `moments_certified` proves the same bounds in balls, at the places found here.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import erfc, exp, inf, log, log1p, pi, sqrt

import numpy as np

from .moments import Complexes, log_moments
from .nodes import EPS, Floats, log_mixture, nodes, nodes_needed, signed_exponent
from .pairs import DominatingPair, GaussianShift, Order, Sampled
from .quadrature import Demand, plan_shift

# the walk of `_walked_decay`: |M| may rise by this share of its gap to M(1+c) in one step, and
# the steps grow with the square of t, from the t on where t / step is twice this number
_SHARE_OF_GAP = 0.2
_UNEVEN = 1.1
"""By which factor a step may be longer or shorter than that share says."""
_TOGETHER, _IN_CACHE = 32, 1 << 16
"""Most steps of one length that are tried together, and most of their turns."""
_MOST_STEPS = 400
_CELLS, _HIGHEST = 400, 200.0
"""Cells of `PartsOfLoss`; and the largest log moment that is bounded by them."""

_LONGEST_WALK = 20_000
"""Most nodes for which the walk is worth its price."""

_MOST_TURNS = 1 << 23
"""Most turns, of one node at one height, of a walk; `decay_certified` takes each again."""


@lru_cache(maxsize=65536)
def log_decay(pair: DominatingPair, order: float, reach: float) -> float:
    """Return an upper bound on log |M(1 + order + it)| over all |t| >= reach.

    A Gaussian shift has it in closed form. For a sampled one the line of integration is moved to
    Im u = y with arg r of the sign that makes |r^{it}| = exp(-|t| |arg r|) <= exp(-reach |arg r|);
    y is the best of a few, and any is valid. For a symmetrised one, or one that is cut, see
    `_walked_decay`. Pairs with atoms do not decay: the bound is M at the real order.
    """
    match pair:
        case GaussianShift():
            return float(pair.mu_squared) / 2 * (order * (order + 1) - reach * reach)
        case Sampled() if is_walked(pair):
            return _walked_decay(pair, order, reach)
        case Sampled(base=GaussianShift() as base):
            return _shifted_decay(pair, sqrt(base.mu_squared), order, reach)
        case _:
            demand = Demand(order, 0.0, 40.0)
            return float(log_moments(pair, np.array([order + 0j]), demand).log[0].real)


def is_walked(pair: Sampled) -> bool:
    """Return whether no line of integration can be moved: the integral has an end."""
    whole_line = isinstance(pair.base, GaussianShift) and pair.order is not Order.SYMMETRISED
    return pair.cut < inf or not whole_line


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
    line, widest = plan_shift(mu, alpha, q)
    u = line.step * np.arange(line.first, line.last + 1, dtype=np.float64)
    log_r, _ = log_mixture(mu * u - mu * mu / 2, 0.0, q)
    share = np.exp(np.minimum(log(q) + mu * u - mu * mu / 2 - log_r, 0.0))
    weight = alpha * log_r - u * u / 2
    scale = float(np.max(weight))
    tilted = np.exp(weight - scale)
    # the best small shift is reach times the mean slope of the loss over the Fisher information
    total = float(np.sum(tilted))
    slope = mu * float(np.sum(tilted * share)) / total
    information = max(
        1 - alpha * mu * mu * float(np.sum(tilted * share * (1 - share))) / total, 0.05
    )
    y = np.minimum(reach * slope / information * np.array([0.5, 0.75, 1.0, 1.5, 2.5]), widest)
    # r(u + iy) = r(u) (1 + p (e^{iμy} - 1))
    turn = 1 + share * np.expm1(1j * mu * y[:, None])
    change = alpha * np.log(np.abs(turn)) - reach * np.angle(turn) + y[:, None] ** 2 / 2
    gain = np.sum(np.expm1(np.minimum(change, 600.0)) * tilted, axis=1) / total
    best = int(np.argmin(gain))
    base = scale + log(total * line.step / sqrt(2 * pi))
    return max(float(gain[best]), EPS - 1), base, float(y[best])


def _walked_decay(pair: Sampled, order: float, reach: float) -> float:
    """Return log of the least of three bounds on |M| at all t >= reach.

    *M* itself, at the real order. *By parts*: see `PartsOfLoss`. *On a walk*: |M| on steps from
    `reach` up to where the bound by parts is small, and that beyond. |M| changes by at most
    E_P[|L| e^{cL}] a unit of t.
    """
    whole = float(
        log_moments(pair, np.array([complex(order)]), Demand(order, 0.0, 40.0)).log[0].real
    )
    if not whole < _HIGHEST:
        return whole
    parts = parts_of_loss(pair, order)
    least = exp(whole) - parts.gap(reach)[0]
    far = parts.far()
    heights, bounds = _walk(pair, order, far) if reach < far else ([], [])
    place = bisect_right(heights, reach) - 1
    if place >= 0:
        least = min(least, max(bounds[place], exp(whole) - parts.gap(far)[0]))
    return min(whole, log(max(least, 1e-300)) + 1e-9)


@lru_cache(maxsize=256)
def _walk(pair: Sampled, order: float, far: float) -> tuple[list[float], list[float]]:
    """Return heights t_i and, for each, a bound on |M(1 + order + it)| for t_i <= t <= far.

    As |M| is that of E_P[e^{cL} e^{it(L-m)}] for every m, the Lipschitz constant E_P[|L-m| e^{cL}]
    bounds how fast it changes; it is least at a median m. From t a step may be as long as |M| then
    stays below what it was, plus about a fifth of its gap to M(1+c).
    """
    demand = Demand(order, far, 24.0)
    if nodes_needed(pair, demand) > _LONGEST_WALK:
        return [], []
    n = nodes(pair, demand)
    weight = np.exp(n.log_mass + order * n.loss)
    kept = weight > 1e-12 * np.max(weight)
    loss, weight = n.loss[kept], weight[kept]
    whole = float(np.sum(weight))
    lipschitz = float(np.sum(weight * np.abs(loss - median_of(loss, weight))))
    mean = float(np.sum(weight * loss)) / whole
    spread = float(np.sum(weight * (loss - mean) ** 2))
    if not spread > 0:
        # all losses are one number to a double, and no height bounds anything
        return [], []
    # where a step, of a share of the gap spread t²/2, is t / (2 _MOST_STEPS)
    t = lipschitz / (_SHARE_OF_GAP * spread * _MOST_STEPS)
    heights: list[float] = []
    bounds: list[float] = []
    most, together = _MOST_TURNS // loss.size, 1
    while t < far:
        turned = np.exp(1j * t * loss) * weight
        rise = _SHARE_OF_GAP * (whole - abs(complex(np.sum(turned))))
        # no step can be longer than one of a fifth of M(1+c)
        left = (far - t) * lipschitz / (_SHARE_OF_GAP * whole)
        if not rise > 0 or len(heights) + left > most:
            return [], []
        step = rise / lipschitz
        moduli = np.abs(np.einsum("kn,n->k", _powers(np.exp(1j * step * loss), together), turned))
        # as many equal steps as are about as long as they may be
        allowed = _SHARE_OF_GAP * (whole - moduli)
        fits = (rise <= _UNEVEN * allowed) & (allowed <= _UNEVEN * rise)
        count = together if fits.all() else max(int(np.argmin(fits)), 1)
        heights += [t + step * k for k in range(count)]
        bounds += (moduli[:count] + rise).tolist()
        t += step * count
        together = min(2 * count, _TOGETHER, max(_IN_CACHE // loss.size, 1))
    while heights and heights[-1] >= far:
        heights.pop()
        bounds.pop()
    return heights, list(accumulate(reversed(bounds), max))[::-1]


def median_of(loss: Floats, weight: Floats) -> float:
    """Return the loss at which half of the weight is reached; both of shape (n,)."""
    order = np.argsort(loss)
    reached = np.cumsum(weight[order])
    return float(loss[order[np.searchsorted(reached, reached[-1] / 2)]])


def _powers(turn: Complexes, count: int) -> Complexes:
    """Return the powers 0 to count - 1 of numbers of modulus one, shape (count, n)."""
    found = np.ones((count, turn.size), dtype=np.complex128)
    done = 1
    while done < count:
        more = min(done, count - done)
        np.multiply(found[:more], found[done - 1] * turn, out=found[done : done + more])
        done += more
    return found


def walk_heights(pair: Sampled, order: float, far: float) -> list[float]:
    """Return the heights at which `_walked_decay` looks at |M|."""
    return _walk(pair, order, far)[0]


@dataclass(frozen=True, slots=True)
class PartsOfLoss:
    """What integration by parts says of the outcomes beyond each of some s = u - μ/2 >= 0.

    On a stretch of the line the loss log r has the slope μp, so that |∫ φ r^w du| is at most
    V/|t|, V = g at both ends + TV(g), g = φ r^α / (μp) = φ r^{α+1} / (μ q e^v). For α = 1 + c,
    (log g)' = (2+c) μp - μ - u is a logistic curve less a line: at most two local maxima, so V <=
    4 sup g, wherever the stretch ends; and past s = (2+c) μ it falls. For α = -c, the outcomes that
    mirror these in a symmetrised pair, g falls: V = 2 g. Of Laplace noise, where s = v and the
    density is e^{-(v+ε₀)/2}/4 up to ε₀, log g is convex in v, or falls: V <= 2 g at both ends. All
    other outcomes bring |M| at most what they bring M(1+c); so

        |M(1+c+it)| <= M(1+c) - S + V/t,   S = what the outcomes beyond s bring M(1+c).

    Args:
        cells: ends of cells of s, shape (n + 1,).
        mass: S beyond each cell's lower end, from the lower ends of r^α on each; shape (n,).
        variation: V beyond each cell's lower end, shape (n,).
    """

    cells: Floats
    mass: Floats
    variation: Floats

    def gap(self, reach: float) -> tuple[float, int]:
        """Return the largest S - V/t at t = reach, and the place of its cell."""
        gaps = self.mass - self.variation / max(reach, 1e-300)
        place = int(np.argmax(gaps))
        return float(gaps[place]), place

    def far(self) -> float:
        """Return a t from which on a gap hardly grows: where V/t is a fifth of S over all cells."""
        return float(5 * self.variation[0] / self.mass[0])


@lru_cache(maxsize=4096)
def parts_of_loss(pair: Sampled, order: float) -> PartsOfLoss:
    """Return what integration by parts says of a pair whose line cannot be moved."""
    q, base = float(pair.rate), pair.base
    if isinstance(base, GaussianShift):
        mu = sqrt(base.mu_squared)
        s = np.linspace(0.0, min(pair.cut, (2 + order) * mu + 2), _CELLS + 1)
        u = s + mu / 2
        # not by SciPy, which takes longer to load than all else here
        tails = np.array([erfc(x) for x in (u / sqrt(2)).tolist()]) / 2
        density = np.exp(-u * u / 2) / sqrt(2 * pi)
    else:
        mu, s = 1.0, np.linspace(0.0, float(base.epsilon), _CELLS + 1)
        tails = np.exp(-(s + s[-1]) / 2) / 2
        density = tails / 2
    log_r, _ = log_mixture(mu * s, 0.0, q)
    mass, variation = np.zeros(_CELLS), np.zeros(_CELLS)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for alpha in exponents(pair, order):
            # both extremes over each short cell, from its ends
            least = np.minimum(np.exp(alpha * log_r[:-1]), np.exp(alpha * log_r[1:]))
            mass += -np.diff(tails) * least
            g = density * np.exp((alpha + 1) * log_r - mu * s) / (q * mu)
            if not isinstance(base, GaussianShift):
                variation += 2 * (g[:-1] + g[-1])
            elif alpha < 0:
                variation += 2 * g[:-1]
            else:
                rise = np.exp((alpha + 1) * np.diff(log_r))
                variation += 4 * np.maximum.accumulate((g[:-1] * rise)[::-1])[::-1]
    mass = np.cumsum(mass[::-1])[::-1]
    return PartsOfLoss(s, np.maximum(mass, 1e-300), np.nan_to_num(variation, nan=inf))


def exponents(pair: Sampled, order: float) -> tuple[float, ...]:
    """Return the exponents α of r whose moments the outcomes with a loss v >= 0 have."""
    if pair.order is Order.SYMMETRISED:
        return 1 + order, -order
    return (signed_exponent(pair, order),)
