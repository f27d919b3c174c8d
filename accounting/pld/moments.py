"""Moment functions of dominating pairs in doubles: log M(1+z), M(1+z) = E_P[exp(zL)], L the loss.

Each pair is turned into `nodes` (probability under P, loss); then M(1+z) - 1 = Σ mass · expm1(z ·
loss) for any number of complex z at once. The subtraction of one keeps the digits that a count of a
hundred million would otherwise eat.
"""

from dataclasses import dataclass
from math import inf, isqrt, log, log1p

import numpy as np
import numpy.typing as npt

from ..numbers.work import spend
from .nodes import EPS, Nodes, nodes, out_of_reach
from .pairs import DominatingPair, GaussianShift, LaplaceShift, Order, RevealedSample, Sampled
from .quadrature import Demand

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]

_FEW_POINTS = 64
"""With fewer points a line is not worth splitting into two short sets of phases."""
BLOCK = 32
"""Terms that are summed one after the other."""

_TILE = (64, 96)
"""Rows and columns of a tile of a product: times `BLOCK` no more than the 2^18 multiplications up
to which OpenBLAS takes one thread."""

_IN_CACHE = 1 << 10
"""Losses whose phases are held at once: they stay in the caches until they are used."""

_CHUNK = 1 << 20
"""Most entries of one (moment, node) array: 8 MB."""

_REAL_DIGITS = 44.0
"""Natural-log digits of moments of real order, which are kept for every later query."""

_HIGH = 30.0
"""A log moment for whose sake no digits are added to those of smaller ones."""


@dataclass(frozen=True, slots=True)
class Moments:
    """log M(1 + z) at complex points, with a bound on what rounding may take off each.

    Args:
        log: log M, shape (N,).
        error: such that M is off by at most |M| (e^error - 1), from rounding alone; the nodes' own
            error is below what was demanded.
    """

    log: Complexes
    error: Floats


def _closed_form(pair: GaussianShift | LaplaceShift | RevealedSample, z: Complexes) -> Moments:
    """Return log M of pairs whose moments have a formula, at z of any shape.

    A Gaussian shift: μ² z(z+1)/2 (Mironov 2017, Table II). A Laplace shift e: E_P[e^{zL}] =
    ((1+z) e^{ze} + z e^{-(1+z)e}) / (1 + 2z) (the same), with ze taken out, so
    that nothing overflows. A revealed sample: 1 - q + q M.
    """
    if isinstance(pair, RevealedSample):
        return _with_probability(float(pair.rate), _closed_form(pair.base, z))
    if isinstance(pair, GaussianShift):
        value = z * (z + 1) * (float(pair.mu_squared) / 2)
        return Moments(value, 8 * EPS * np.abs(value))
    e = float(pair.epsilon)
    value = z * e + log1p_complex(z / (1 + 2 * z) * np.expm1(-(1 + 2 * z) * e))
    return Moments(value, 16 * EPS * (np.abs(value) + np.abs(z) * e))


def _with_probability(q: float, base: Moments) -> Moments:
    """Return log(1 - q + q M) for the moments M of `base`.

    Where log(q M) > 30 it is that plus log1p((1-q)/(q M)), which does not overflow; elsewhere
    log1p(q (M - 1)), by expm1 where M is near one, so that a small q keeps its digits.

    Args:
        q: in (0, 1].
        base: of M.
    """
    shifted = base.log + log(q)
    large = shifted.real > 30
    few = base.log.real < 1
    near = q * np.expm1(np.where(few, base.log, 0))
    far = np.exp(np.where(large, 0, shifted)) - q
    rest: Complexes = np.asarray((1 - q) * np.exp(-np.where(large, shifted, 30)), np.complex128)
    excess: Complexes = np.asarray(np.where(few, near, far), np.complex128)
    value: Complexes = np.asarray(
        np.where(large, shifted + log1p_complex(rest), log1p_complex(excess)), np.complex128
    )
    # how much the error of log M weighs: |q M / (1 - q + q M)|
    share = np.exp(np.minimum(shifted.real - value.real, 700.0))
    return Moments(value, 16 * EPS * (np.abs(value) + share * abs(log(q))) + 2 * share * base.error)


def log_moments(pair: DominatingPair, z: Complexes, demand: Demand) -> Moments:
    """Return log M(1 + z) for complex `z`, shape (N,), all of real part `demand.order` > 0.

    Raises nothing; moments whose integrand lies out of reach are infinite.
    Source: Mironov, Talwar, Zhang 2019 for the sampled Gaussian at real orders.

    Args:
        pair: any pair.
        z: on a vertical line.
        demand: its order c is the real part of every z; its reach is at least |Im z|.
    """
    if isinstance(pair, GaussianShift | LaplaceShift | RevealedSample):
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
        moment_less_one = float(np.sum(mass * np.expm1(tilt))) + _turned(z.imag, n.loss, weights)
        value, modulus = log1p_complex(moment_less_one), np.abs(1 + moment_less_one)
        slack = float(np.sum(np.maximum(mass, weights) * blur)) * np.abs(z)
    else:
        exponent = n.log_mass + tilt
        scale = float(np.max(exponent))
        weights = np.exp(exponent - scale)
        moment = float(np.sum(weights)) + _turned(z.imag, n.loss, weights)
        value, modulus = np.asarray(np.log(moment) + scale, np.complex128), np.abs(moment)
        slack = float(np.sum(weights * (4 + blur))) * (1 + np.abs(z))
    with np.errstate(divide="ignore"):  # a moment of zero has a logarithm that nobody knows
        # M off by up to a share r is within a factor of 1 + r, also where r, of an M that is next
        # to nothing, is large; what rounds the logarithm adds to it
        return Moments(value, np.log1p(8 * EPS * slack / modulus) + 8 * EPS * np.abs(value))


def log_real_moments(pair: DominatingPair, orders: Floats) -> Floats:
    """Return log M(1 + c) at rising real orders c > 0; infinity where out of reach.

    Args:
        pair: any pair.
        orders: shape (N,), rising.
    """
    if isinstance(pair, GaussianShift | LaplaceShift | RevealedSample):
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

    An error relative to the largest moment is one of M(1+c) itself for small c only if as many
    digits more are asked for as the largest has; beyond e^30 that is dearer than a second set of
    nodes.

    Args:
        pair: a pair without a closed form.
        orders: rising.
    """
    demand = Demand(orders[-1], 0.0, _REAL_DIGITS)
    on_a_line = isinstance(pair, Sampled) and (
        pair.order is not Order.SYMMETRISED
        and isinstance(pair.base, GaussianShift)
        and pair.cut == inf
    )
    if not isinstance(pair, Sampled) or on_a_line:
        return demand, 0
    highest = float(_real_sums(nodes(pair, demand), np.array(orders[-1:]))[0])
    if highest > _HIGH or len(orders) == 1:
        return demand, len(orders) - 1
    return Demand(demand.order, 0.0, demand.digits + highest + log1p(demand.order) + 3), 0


def _real_sums(n: Nodes, orders: Floats) -> Floats:
    """Return log M(1 + c) of a finite pair at real orders c.

    Where no exponent is beyond 500: log1p(Σ mass · expm1(c · loss)), which keeps the digits of
    moments near one; else with the largest exponent taken out.

    Args:
        n: its nodes.
        orders: shape (N,).
    """
    tilt = np.outer(orders, n.loss)
    exponent = n.log_mass + tilt
    scale = np.max(exponent, axis=1)
    large = scale + np.log(np.sum(np.exp(exponent - scale[:, None]), axis=1))
    small = np.log1p(np.einsum("ij,j->i", np.expm1(np.minimum(tilt, 500.0)), np.exp(n.log_mass)))
    return np.asarray(np.where(np.max(tilt, axis=1) < 500, small, large))


def _turned(t: Floats, loss: Floats, weights: Floats) -> Complexes:
    """Return Σ weights (e^{i t loss} - 1), to the last digits where the angles are small.

    Args:
        t: heights, shape (N,).
        loss: shape (n,).
        weights: masses times e^{c · loss}, > 0, shape (n,).
    """
    if t.size > _FEW_POINTS and np.array_equal(t, t[1] * np.arange(t.size)):
        return turned_on_line(float(t[1]), t.size, loss, weights)
    rows = max(1, _CHUNK // loss.size)
    parts = []
    for i in range(0, t.size, rows):
        turn = _turn_less_one(np.outer(t[i : i + rows], loss))
        parts.append(np.einsum("ij,j->i", turn, weights))
    spend(t.size * loss.size >> 12)
    return np.concatenate(parts)


def turned_on_line(step: float, count: int, loss: Floats, weights: Floats) -> Complexes:
    """Return `_turned` at t = k step, k < count, of few phases.

    With A = e^{ia} - 1 and B = e^{ib} - 1, e^{i(a+b)} - 1 = AB + A + B, of which no digits are lost
    where a and b are small and of one sign.

    k = row · columns + column, so that about 2 √count phases of each loss stand for all count of
    them. Losses that turn by less than 2^-60 t Σ w |x| together are left out: far less than what is
    rounded.

    Args:
        step: distance of two heights.
        count: of heights, > 0.
        loss: shape (n,).
        weights: shape (n,).
    """
    moved = weights * np.abs(loss)
    kept = moved > 2.0**-60 / loss.size * float(np.sum(moved))
    loss, weights = loss[kept], weights[kept]
    columns = isqrt(count - 1) + 1
    rows = -(-count // columns)
    far, near = step * columns * np.arange(rows), step * np.arange(columns)
    spend(count * loss.size >> 15)
    sums = np.zeros((rows, columns), dtype=np.complex128)
    for first in range(0, loss.size, _IN_CACHE):
        some = slice(first, first + _IN_CACHE)
        long = _turn_less_one(np.outer(far, loss[some])) * weights[some]
        short = _turn_less_one(np.outer(loss[some], near))
        # in blocks, whose sums err by far less than one of all terms
        for k in range(0, len(short), BLOCK):
            sums += _product(long[:, k : k + BLOCK], short[k : k + BLOCK])
        sums += np.sum(long, axis=1)[:, None]
        sums += np.sum((weights[some, None] * short).T.copy(), axis=1)
    return np.asarray(sums.ravel()[:count], dtype=np.complex128)


def _product(left: Complexes, right: Complexes) -> Complexes:
    """Return the product of two matrices, by real ones in tiles for which BLAS takes no threads.

    On a busy machine these cost more than they save.

    Args:
        left: shape (rows, n), n <= `BLOCK`.
        right: shape (n, columns).
    """
    rows, columns = left.shape[0], right.shape[1]
    parts = np.concatenate([left.real, left.imag])
    others = np.concatenate([right.real, right.imag], axis=1)
    found = np.empty((2 * rows, 2 * columns))
    for i in range(0, 2 * rows, _TILE[0]):
        for j in range(0, 2 * columns, _TILE[1]):
            some, these = slice(i, i + _TILE[0]), slice(j, j + _TILE[1])
            found[some, these] = parts[some] @ others[:, these]
    real = found[:rows, :columns] - found[rows:, columns:]
    return np.asarray(real + 1j * (found[:rows, columns:] + found[rows:, :columns]), np.complex128)


def _turn_less_one(angle: Floats) -> Complexes:
    """Return e^{i angle} - 1 = 2i sin(angle/2) e^{i angle/2}."""
    sine = np.sin(angle / 2)
    return np.asarray(2j * sine * (np.cos(angle / 2) + 1j * sine), dtype=np.complex128)


def log1p_complex(x: Complexes) -> Complexes:
    """Return log(1 + x), to a few ulps of itself also where x is small.

    log|1 + x| = log1p(2 Re x + |x|²)/2, of which no digit cancels unless |1 + x| is near one by
    accident.
    """
    # NumPy's takes log|1 + x| of a rounded 1 + x, and loses a small real part
    small = np.abs(x) < 0.5
    near: Complexes = np.asarray(np.where(small, x, 0), dtype=np.complex128)
    square = 2 * near.real + near.real**2 + near.imag**2
    with np.errstate(divide="ignore"):
        return np.where(small, np.log1p(square) / 2 + 1j * np.angle(1 + x), np.log(1 + x))
