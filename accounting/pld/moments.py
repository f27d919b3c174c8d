"""Moment functions of dominating pairs in doubles: log M(1+z), M(1+z) = E_P[exp(zL)], L the loss.

Each pair is turned into nodes (probability under P, loss) by the quadratures of `quadrature`; then
M(1+z) - 1 = Σ mass · expm1(z · loss) for any number of complex z at once. The subtraction of one
keeps the digits that a count of a hundred million would otherwise eat.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, copysign, erf, exp, expm1, inf, log, log1p, pi, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import roots_legendre

from ..numbers.work import spend
from .pairs import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Revealed,
    Sampled,
)
from .quadrature import (
    Demand,
    Density,
    Line,
    Panel,
    left_reach,
    plan_line,
    plan_panels,
)

__all__ = [
    "Moments",
    "Nodes",
    "line_of",
    "log_mixture",
    "log_moments",
    "log_real_moments",
    "maximal_loss",
    "nodes",
    "nodes_needed",
    "out_of_reach",
    "signed_exponent",
]

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]

EPS = 2.0**-52

_LARGEST_CENTRE = 300.0
"""Moments whose integrand peaks beyond this many standard deviations are taken as infinite."""

_CHUNK = 1 << 20
"""Most entries of one (moment, node) array: 8 MB."""

_REAL_DIGITS = 44.0
"""Natural-log digits of moments of real order, which are kept for every later query."""

_LONG_LINE = 1000
"""With more nodes on a line, panels are tried."""

_HIGH = 30.0
"""A log moment for whose sake no digits are added to those of smaller ones."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """A finite pair: log probabilities under P, losses, and each loss's rounding error in ulps."""

    log_mass: Floats
    loss: Floats
    blur: Floats


@dataclass(frozen=True, slots=True)
class Moments:
    """log M(1 + z) at complex points, with a bound on the absolute error of each from rounding."""

    log: Complexes
    error: Floats


def log_mixture(v: Floats, base_error: float | Floats, rate: float) -> tuple[Floats, Floats]:
    """Return log(1 - q + q e^v) and its absolute error in ulps, `base_error` that of v."""
    with np.errstate(over="ignore"):
        small = np.log1p(rate * np.expm1(np.minimum(v, 30.0)))
        large = v + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(v, 30.0)))
    log_r = np.where(v < 30.0, small, large)
    share = np.exp(np.minimum(np.log(rate) + v - log_r, 0.0))
    return log_r, np.abs(log_r) + share * (base_error + 2.0)


def _symmetrised(
    log_q: Floats, v: Floats, v_error: Floats | float, rate: float, middle: float
) -> Nodes:
    """Return a symmetrised pair from its half v > 0 under Q, and the atom at loss zero."""
    log_r, blur = log_mixture(v, v_error, rate)
    return Nodes(
        np.concatenate([log_q + log_r, log_q, [log(max(middle, 1e-300))]]),
        np.concatenate([log_r, -log_r, [0.0]]),
        np.concatenate([blur, blur, [0.0]]),
    )


def _oriented(log_q: Floats, v: Floats, v_error: Floats | float, pair: Sampled) -> Nodes:
    log_r, blur = log_mixture(v, v_error, float(pair.rate))
    if pair.order is Order.MIXTURE_FIRST:
        return Nodes(log_q + log_r, log_r, blur)
    return Nodes(log_q, -log_r, blur)


def _legendre(panels: tuple[Panel, ...]) -> tuple[Floats, Floats]:
    """Return nodes and weights of a composite Gauss-Legendre rule."""
    parts = []
    for panel in panels:
        x, w = _roots(panel.points)
        half = (panel.high - panel.low) / 2
        parts.append((panel.low + half * (1 + x), half * w))
    return np.concatenate([x for x, _ in parts]), np.concatenate([w for _, w in parts])


@lru_cache(maxsize=256)
def _roots(points: int) -> tuple[Floats, Floats]:
    x, w = roots_legendre(points)
    return x, w


def panels_of(pair: Sampled, demand: Demand) -> tuple[Panel, ...]:
    """Return the panels on which the continuous part of a sampled pair is integrated."""
    q = float(pair.rate)
    if isinstance(pair.base, LaplaceShift):
        e = float(pair.base.epsilon)
        lower = 0.0 if pair.order is Order.SYMMETRISED else -e
        falling = pair.order is Order.MIXTURE_SECOND
        return plan_panels(Density(1.0, lower, e, falling), q, e, demand)
    mu, lower, falling = sqrt(pair.base.mu_squared), 0.0, False
    if pair.order is not Order.SYMMETRISED:
        alpha = signed_exponent(pair, demand.order)
        lower = -left_reach(mu, alpha, q, demand.digits) - mu / 2
        falling = pair.order is Order.MIXTURE_SECOND
    upper = _cut_off(mu, q, demand)
    return plan_panels(Density(mu, lower, falling=falling), q, upper, demand)


def line_of(pair: Sampled, base: GaussianShift, demand: Demand) -> Line | None:
    """Return the trapezoid rule of a sampled Gaussian shift; None where panels are to be used."""
    if pair.order is Order.SYMMETRISED:
        return None
    alpha = signed_exponent(pair, demand.order)
    line = plan_line(sqrt(base.mu_squared), alpha, float(pair.rate), demand)
    length = line.last - line.first + 1
    if length < _LONG_LINE or not demand.reach:
        return line
    return line if 2 * sum(panel.points for panel in panels_of(pair, demand)) > length else None


def signed_exponent(pair: Sampled, order: float) -> float:
    """Return α = Re w of M(1+z) = E_Q[r^w]: w = 1 + z if the mixture stands first, else -z."""
    return 1 + order if pair.order is Order.MIXTURE_FIRST else -order


def tail_cells(mu: float, order: float) -> Floats:
    """Return the ends of cells of s = u - μ/2; beyond the last the tail is geometric."""
    last = (1.5 + order) * mu + 14
    return np.linspace(0.0, last, ceil(last * max(8.0, mu)) + 1)


def _cut_off(mu: float, q: float, demand: Demand) -> float:
    """Return an s beyond which the integrals of φ r^(1+c) and φ r^(-c) may be left out."""
    s = tail_cells(mu, demand.order)
    log_r, _ = log_mixture(mu * s, 0.0, q)
    # a bound on the integral over each cell, from its ends; what is beyond the last is less
    cell = (1 + demand.order) * log_r[1:] - (s[:-1] + mu / 2) ** 2 / 2 + np.log(np.diff(s)) + 1
    needed = np.nonzero(cell >= max(0.0, float(np.max(cell))) - demand.digits - log(s.size))[0]
    return float(s[min(int(needed[-1]) + 1, s.size - 1)]) if needed.size else float(s[-1])


def _sampled_gaussian(pair: Sampled, base: GaussianShift, demand: Demand) -> Nodes:
    mu, q = sqrt(base.mu_squared), float(pair.rate)
    line = line_of(pair, base, demand)
    if line is None:
        s, weight = _legendre(panels_of(pair, demand))
        u = s + mu / 2
        log_q = np.log(weight) - u * u / 2 - log(2 * pi) / 2
        if pair.order is Order.SYMMETRISED:
            return _symmetrised(log_q, mu * s, mu * s, q, (1 - q) * erf(mu / 2 / sqrt(2)))
        return _oriented(log_q, mu * s, mu * np.abs(u) + mu * mu / 2, pair)
    u = line.step * np.arange(line.first, line.last + 1, dtype=np.float64)
    log_q = log(line.step) - u * u / 2 - log(2 * pi) / 2
    return _oriented(log_q, mu * u - mu * mu / 2, mu * np.abs(u) + mu * mu / 2, pair)


def _sampled_laplace(pair: Sampled, base: LaplaceShift, demand: Demand) -> Nodes:
    e, q = float(base.epsilon), float(pair.rate)
    symmetrised = pair.order is Order.SYMMETRISED
    v, weight = _legendre(panels_of(pair, demand))
    log_q = np.log(weight) - (v + e) / 2 - log(4)
    # under Q the loss of the base is e with probability exp(-e)/2 and -e with probability 1/2
    if symmetrised:
        v, log_q = np.append(v, e), np.append(log_q, -e - log(2))
        return _symmetrised(log_q, v, np.abs(v) + 1, q, -(1 - q) * expm1(-e / 2))
    v, log_q = np.append(v, [e, -e]), np.append(log_q, [-e - log(2), -log(2)])
    return _oriented(log_q, v, np.abs(v) + 1, pair)


def _lattice(pair: DiscreteGaussianShift, demand: Demand) -> Nodes:
    s2 = float(pair.sigma_squared)
    spread = sqrt(2 * demand.digits * s2) + 2
    k = np.arange(-ceil(spread), ceil(spread + demand.order + 1) + 1, dtype=np.float64)
    log_mass = -((k - 1) ** 2) / (2 * s2)
    loss = (2 * k - 1) / (2 * s2)
    return Nodes(log_mass - np.log(np.sum(np.exp(log_mass))), loss, np.abs(loss))


def _finite(pair: DiscreteLaplaceShift | RandomisedAnswers) -> Nodes:
    if isinstance(pair, RandomisedAnswers):
        p, o = float(pair.truth), float(pair.other)
        gain = copysign(_gain(pair), p - o)
        loss = np.array([gain, -gain, 0.0])
        mass = np.array([p, o, (pair.categories - 2) * o])
        return Nodes(np.log(np.maximum(mass, 1e-300)), loss, np.abs(loss) + 2)
    b = float(pair.rate)
    k = np.arange(pair.shift + 1, dtype=np.float64)
    # P centred at `shift`: the tails k <= 0 and k >= shift have the extreme losses
    log_mass = -b * (pair.shift - k) + log(-expm1(-b)) - log1p(exp(-b))
    log_mass[0], log_mass[-1] = log_mass[0] - log(-expm1(-b)), -log1p(exp(-b))
    loss = b * (2 * k - pair.shift)
    return Nodes(log_mass, loss, np.abs(loss) + 1)


@lru_cache(maxsize=256)
def nodes(pair: DominatingPair, demand: Demand) -> Nodes:
    """Return nodes that reproduce M(1 + order + it), |t| <= reach, to the demanded digits."""
    match pair:
        case Sampled(base=GaussianShift() as base):
            return _sampled_gaussian(pair, base, demand)
        case Sampled(base=LaplaceShift() as base):
            return _sampled_laplace(pair, base, demand)
        case DiscreteGaussianShift():
            return _lattice(pair, demand)
        case DiscreteLaplaceShift() | RandomisedAnswers():
            return _finite(pair)
        case _:
            raise TypeError(f"Expected a pair without a closed form instead got {pair!r}.")


def _closed_form(pair: GaussianShift | LaplaceShift | Revealed, z: Complexes) -> Moments:
    if isinstance(pair, Revealed):
        return _with_probability(float(pair.rate), _closed_form(pair.base, z))
    if isinstance(pair, GaussianShift):
        value = z * (z + 1) * (float(pair.mu_squared) / 2)
        return Moments(value, 8 * EPS * np.abs(value))
    e = float(pair.epsilon)
    value = z * e + _log1p(z / (1 + 2 * z) * np.expm1(-(1 + 2 * z) * e))
    return Moments(value, 16 * EPS * (np.abs(value) + np.abs(z) * e))


def _with_probability(q: float, base: Moments) -> Moments:
    """Return log(1 - q + q M) for the moments M of `base`."""
    shifted = base.log + log(q)
    large = shifted.real > 30
    few = base.log.real < 1
    near = q * np.expm1(np.where(few, base.log, 0))
    far = np.exp(np.where(large, 0, shifted)) - q
    rest: Complexes = np.asarray((1 - q) * np.exp(-np.where(large, shifted, 30)), np.complex128)
    excess: Complexes = np.asarray(np.where(few, near, far), np.complex128)
    value: Complexes = np.asarray(
        np.where(large, shifted + _log1p(rest), _log1p(excess)), np.complex128
    )
    # how much the error of log M weighs: |q M / (1 - q + q M)|
    share = np.exp(np.minimum(shifted.real - value.real, 700.0))
    return Moments(value, 16 * EPS * (np.abs(value) + share * abs(log(q))) + 2 * share * base.error)


def log_moments(pair: DominatingPair, z: Complexes, demand: Demand) -> Moments:
    """Return log M(1 + z) for complex `z`, shape (N,), all of real part `demand.order` > 0.

    Raises nothing; moments whose integrand lies out of reach are infinite.
    Source: Mironov, Talwar, Zhang 2019 for the sampled Gaussian at real orders.
    """
    if isinstance(pair, GaussianShift | LaplaceShift | Revealed):
        return _closed_form(pair, z)
    if out_of_reach(pair, demand.order):
        return Moments(np.full(z.shape, complex(inf, 0)), np.zeros(z.shape))
    n = nodes(pair, demand)
    tilt = demand.order * n.loss
    # ulps: of the loss (times |z|), of the mass, of the sums
    blur = (n.blur + np.abs(n.loss)) * (4 + np.abs(n.log_mass))
    if float(np.max(tilt)) < 500:
        mass = np.exp(n.log_mass)
        weights = mass * np.exp(tilt)
        moment_less_one = float(mass @ np.expm1(tilt)) + _turned(z.imag, n.loss, weights)
        value, modulus = _log1p(moment_less_one), np.abs(1 + moment_less_one)
        slack = float(np.maximum(mass, weights) @ blur) * np.abs(z)
    else:
        exponent = n.log_mass + tilt
        scale = float(np.max(exponent))
        weights = np.exp(exponent - scale)
        moment = float(np.sum(weights)) + _turned(z.imag, n.loss, weights)
        value, modulus = np.asarray(np.log(moment) + scale, np.complex128), np.abs(moment)
        slack = float(weights @ (4 + blur)) * (1 + np.abs(z))
    return Moments(value, 8 * EPS * (slack / modulus + np.abs(value)))


def log_real_moments(pair: DominatingPair, orders: Floats) -> Floats:
    """Return log M(1 + c) at rising real orders c > 0; infinity where out of reach."""
    if isinstance(pair, GaussianShift | LaplaceShift | Revealed):
        return _closed_form(pair, orders.astype(np.complex128)).log.real
    found = np.full(orders.shape, inf)
    reached = [c for c in orders.tolist() if not out_of_reach(pair, c)]
    while reached:
        demand, first = _demand_of_most(pair, reached)
        found[first : len(reached)] = _real_sums(nodes(pair, demand), np.array(reached[first:]))
        del reached[first:]
    return found


def _demand_of_most(pair: DominatingPair, orders: list[float]) -> tuple[Demand, int]:
    """Return what serves the last of rising orders, and the place of the first that it serves.

    Lines and lattices serve all below; the errors of panels are relative to the largest integrand.
    """
    demand = Demand(orders[-1], 0.0, _REAL_DIGITS)
    on_a_line = isinstance(pair, Sampled) and (
        pair.order is not Order.SYMMETRISED and isinstance(pair.base, GaussianShift)
    )
    if not isinstance(pair, Sampled) or on_a_line:
        return demand, 0
    highest = float(_real_sums(nodes(pair, demand), np.array(orders[-1:]))[0])
    if highest > _HIGH or len(orders) == 1:
        return demand, len(orders) - 1
    return Demand(demand.order, 0.0, demand.digits + highest + log1p(demand.order) + 3), 0


def _real_sums(n: Nodes, orders: Floats) -> Floats:
    """Return log M(1 + c) of a finite pair at real orders c."""
    tilt = np.outer(orders, n.loss)
    exponent = n.log_mass + tilt
    scale = np.max(exponent, axis=1)
    large = scale + np.log(np.sum(np.exp(exponent - scale[:, None]), axis=1))
    small = np.log1p(np.einsum("ij,j->i", np.expm1(np.minimum(tilt, 500.0)), np.exp(n.log_mass)))
    return np.asarray(np.where(np.max(tilt, axis=1) < 500, small, large))


def _turned(t: Floats, loss: Floats, weights: Floats) -> Complexes:
    """Return Σ weights (e^{i t loss} - 1), to the last digits where the angles are small."""
    spend(t.size * loss.size >> 12)
    rows = max(1, _CHUNK // loss.size)
    parts = []
    for i in range(0, t.size, rows):
        half = np.outer(t[i : i + rows] / 2, loss)
        sine, cosine = np.sin(half), np.cos(half)
        # not by matrix product: its threads cost more than they save on a busy machine
        imaginary = np.einsum("ij,ij,j->i", sine, cosine, weights)
        parts.append(2j * imaginary - 2 * np.einsum("ij,ij,j->i", sine, sine, weights))
    return np.concatenate(parts)


def _log1p(x: Complexes) -> Complexes:
    # NumPy's takes log|1 + x| of a rounded 1 + x, and loses a small real part
    small = np.abs(x) < 0.5
    near: Complexes = np.asarray(np.where(small, x, 0), dtype=np.complex128)
    square = 2 * near.real + near.real**2 + near.imag**2
    with np.errstate(divide="ignore"):
        return np.where(small, np.log1p(square) / 2 + 1j * np.angle(1 + x), np.log(1 + x))


def maximal_loss(pair: DominatingPair) -> float:
    """Return an upper bound on the privacy loss: the pure-DP ε, infinite for Gaussian noise."""
    match pair:
        case LaplaceShift():
            exact = float(pair.epsilon)
        case DiscreteLaplaceShift():
            exact = float(pair.rate * pair.shift)
        case RandomisedAnswers():
            exact = _gain(pair)
        case Revealed():
            return maximal_loss(pair.base)
        case Sampled(order=Order.MIXTURE_SECOND):
            exact = -log1p(-float(pair.rate))
            if isinstance(pair.base, LaplaceShift):
                exact = min(exact, -log1p(float(pair.rate) * expm1(-float(pair.base.epsilon))))
        case Sampled(base=LaplaceShift() as base):
            e = float(base.epsilon)
            exact = log1p(float(pair.rate) * expm1(e)) if e < 700 else e
        case _:
            return inf
    return exact * (1 + 16 * EPS)


def _gain(pair: RandomisedAnswers) -> float:
    """Return |log truth/other|, to a few ulps of itself also where the two are nearly equal."""
    low, high = sorted((pair.truth, pair.other))
    return log1p((high - low) / low)


def out_of_reach(pair: DominatingPair, order: float) -> bool:
    """Return whether the moment of this order is taken as infinite, to keep the nodes few."""
    match pair:
        case Sampled(base=GaussianShift() as base):
            return order * sqrt(base.mu_squared) > _LARGEST_CENTRE
        case Sampled(base=LaplaceShift() as base):
            ends = float(base.epsilon) * np.array([-1.0, 1.0])
            losses, _ = log_mixture(ends, 0.0, float(pair.rate))
            return order * float(losses[1] - losses[0]) > _LARGEST_CENTRE
        case DiscreteGaussianShift():
            return order > _LARGEST_CENTRE + 60 * sqrt(pair.sigma_squared)
        case _:
            return False


def nodes_needed(pair: DominatingPair, demand: Demand) -> int:
    """Return about how many nodes `nodes` would hand out."""
    match pair:
        case GaussianShift() | LaplaceShift() | Revealed():
            return 1
        case Sampled(base=GaussianShift() as base) if line := line_of(pair, base, demand):
            return line.last - line.first + 1
        case Sampled():
            return sum(panel.points for panel in panels_of(pair, demand))
        case DiscreteGaussianShift():
            return ceil(2 * sqrt(2 * demand.digits * float(pair.sigma_squared)) + demand.order)
        case DiscreteLaplaceShift():
            return pair.shift + 1
        case RandomisedAnswers():
            return 3
