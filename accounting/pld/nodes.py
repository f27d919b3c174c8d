"""Nodes: each dominating pair as finitely many (probability under P, loss), in doubles.

The places are those that `quadrature` plans; sums over them are `moments`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, copysign, erf, erfc, exp, expm1, fsum, inf, log, log1p, pi, sqrt

import numpy as np
import numpy.typing as npt

from ..numbers import gauss_legendre
from ..numbers.enclosure import precision
from .lattices import lattice_of
from .pairs import (
    CopiesDrawn,
    DiscreteGaussianShift,
    DiscreteGaussianVectors,
    DiscreteLaplaceShift,
    DominatingPair,
    DrawnShifts,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    ReplacedInSample,
    RevealedSample,
    Sampled,
)
from .quadrature import Demand, Density, Line, Panel, left_reach, plan_line, plan_panels

Floats = npt.NDArray[np.float64]

EPS = 2.0**-52
"""The spacing of doubles at 1: one operation errs by half of it, relatively, so that an *ulp* below
is a unit that a single rounding never exceeds.
"""

_LARGEST_CENTRE = 300.0
"""Moments whose integrand peaks beyond this many standard deviations are taken as infinite.

The integrand φ r^α of order α has its peak at about αμ, and the nodes grow with that distance: a
moment there is about e^45000, of no use to the bounds of `saddle`. Infinity is an upper bound.
"""

_LARGEST_CENTRE_OF_VECTORS = 30.0
"""The same of discrete Gaussian noise on integer vectors, whose masses are computed in balls."""

_VECTOR_BITS = 160
"""The precision of these masses before they are rounded to doubles: that of enclosures, too."""

_OUT_OF_REACH_DIGITS, _LONGEST_REACH = 44.0, 64.0
"""Of a mixture that stands second: digits to which its integrand is looked at, and how many
standard deviations it may span, or how finely a standard deviation be cut."""

_LONG_LINE = 1000
"""With more nodes on a line, panels are tried.

The trapezoidal rule is the shorter one but for long reaches, where r^{iτ} turns fast on a small
part of the line only; with a thousand nodes the time of planning panels as well is not seen.
"""


_PLACES = 512
"""Places at which an end of an integral is sought."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """A finite pair: log probabilities under P, losses, and each loss's rounding error in ulps.

    Args:
        log_mass: log of the probability, or of weight times density under P, shape (n,).
        loss: the privacy loss there, shape (n,).
        blur: a bound on the absolute error of each loss, in units of `EPS`, shape (n,).
    """

    log_mass: Floats
    loss: Floats
    blur: Floats


def log_mixture(v: Floats, base_error: float | Floats, rate: float) -> tuple[Floats, Floats]:
    """Return log(1 - q + q e^v) and its absolute error in ulps, `base_error` that of v.

    For v < 30 it is log1p(q expm1(v)), which keeps the digits of a result that is far below one;
    beyond, where e^v would overflow at last, v + log q + log1p((1-q)/q e^{-v}), the same number
    rearranged. The derivative by v is p = q e^v / r, a probability, so that an error of v passes on
    by that share; two more ulps are of the elementary functions and one, relative, of the result.

    Args:
        v: loss of the base pair, any shape.
        base_error: absolute error of `v`, in ulps.
        rate: q, in (0, 1).
    """
    with np.errstate(over="ignore"):
        small = np.log1p(rate * np.expm1(np.minimum(v, 30.0)))
        large = v + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(v, 30.0)))
    log_r = np.where(v < 30.0, small, large)
    share = np.exp(np.minimum(np.log(rate) + v - log_r, 0.0))
    return log_r, np.abs(log_r) + share * (base_error + 2.0)


def _symmetrised(
    log_q: Floats, v: Floats, v_error: Floats | float, rate: float, middle: float
) -> Nodes:
    """Return a symmetrised pair from its half v > 0 under Q, and the atom at loss zero.

    Each outcome u of the half has the loss log r under its own density and, mirrored, -log r: so
    its masses under P are φ r and φ. All that lies between the two halves has the loss zero.

    Args:
        log_q: log of the mass under Q of each node, shape (n,).
        v: loss of the base there, > 0, shape (n,).
        v_error: its absolute error, in ulps.
        rate: q.
        middle: the mass of the atom; 1e-300 stands for one that underflows, as log 0 would not do.
    """
    log_r, blur = log_mixture(v, v_error, rate)
    return Nodes(
        np.concatenate([log_q + log_r, log_q, [log(max(middle, 1e-300))]]),
        np.concatenate([log_r, -log_r, [0.0]]),
        np.concatenate([blur, blur, [0.0]]),
    )


def _oriented(log_q: Floats, v: Floats, v_error: Floats | float, pair: Sampled) -> Nodes:
    """Return a sampled pair from nodes under Q, the law without the record, in the pair's own
    order.

    With the mixture first P has the density ratio r over Q, and the loss log r; with it second P
    is Q itself, and the loss is -log r.
    """
    log_r, blur = log_mixture(v, v_error, float(pair.rate))
    if pair.order is Order.MIXTURE_FIRST:
        return Nodes(log_q + log_r, log_r, blur)
    return Nodes(log_q, -log_r, blur)


def _legendre(panels: tuple[Panel, ...]) -> tuple[Floats, Floats]:
    """Return nodes and weights of a composite Gauss-Legendre rule.

    Each panel's rule on [-1, 1] is moved to [low, high] and its weights are scaled by half the
    width.
    """
    parts = []
    for panel in panels:
        x, w = gauss_legendre.doubles(panel.points)
        half = (panel.high - panel.low) / 2
        parts.append((panel.low + half * (1 + x), half * w))
    return np.concatenate([x for x, _ in parts]), np.concatenate([w for _, w in parts])


@lru_cache(maxsize=4096)
def panels_of(pair: Sampled, demand: Demand) -> tuple[Panel, ...]:
    """Return the panels on which the continuous part of a sampled pair is integrated.

    Laplace shifts have a density on (-ε₀, ε₀) alone, so that nothing is cut off. Gaussian ones are
    cut off on the left by `left_reach`, where r^α is nearly constant, and on the right by
    `_cut_off`; both tails are bounded in balls by `moments_certified`, whatever is chosen here.
    """
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
    if falling:
        upper = _end_of_falling(mu, q, demand) - mu / 2
    else:
        upper = pair.cut if pair.cut < inf else _cut_off(mu, q, demand)
    return plan_panels(Density(mu, lower, falling=falling), q, upper, demand)


def line_of(pair: Sampled, base: GaussianShift, demand: Demand) -> Line | None:
    """Return the trapezoid rule of a sampled Gaussian shift; None where panels are to be used.

    A symmetrised pair has a corner at u = μ/2, and a cut one ends, where the trapezoidal rule would
    lose its exponential accuracy. For any other pair it is the rule of choice (Trefethen, Weideman
    2014, section 5) unless panels need fewer than half as many nodes.
    """
    if pair.order is Order.SYMMETRISED or pair.cut < inf:
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
    """Return the ends of cells of s = u - μ/2; beyond the last the tail is geometric.

    log r <= μs, so that beyond s = (1.5 + c) μ + 14 the slope of log(φ r^{1+c}) is below -14 there.
    Cells are shorter than 1/μ, so that r changes by a factor of e at most from one end to the
    other.

    Args:
        mu: of the Gaussian shift.
        order: c.
    """
    last = (1.5 + order) * mu + 14
    return np.linspace(0.0, last, ceil(last * max(8.0, mu)) + 1)


def _end_of_falling(mu: float, q: float, demand: Demand) -> float:
    """Return a u > 0 beyond which the integral of φ r^(-c) may be left out.

    It is at most φ r^(-c) / u there, whose logarithm falls by u at least; the mean of r^(-c) is at
    least one, and at least half of its value at zero, as r grows. The added 1 is more than what
    doubles lose. The mass beyond may be larger by far.
    """
    u = np.linspace(1.0, sqrt(2 * demand.digits) + 1 + mu, _PLACES)
    log_r, _ = log_mixture(mu * np.append(u, 0.0) - mu * mu / 2, 0.0, q)
    power = -demand.order * log_r
    least = max(0.0, float(power[-1]) - log(2))
    fallen = power[:-1] - u * u / 2 + 1 <= least - demand.digits
    return float(u[int(np.argmax(fallen))]) if fallen.any() else float(u[-1])


def _cut_off(mu: float, q: float, demand: Demand) -> float:
    """Return an s beyond which the integrals of φ r^(1+c) and φ r^(-c) may be left out.

    log r grows with s and φ falls for s >= 0, so that the larger value of the one and of the other,
    each taken at its own end, bound the integrand on a cell; the added 1 is more than what doubles
    lose.
    """
    s = tail_cells(mu, demand.order)
    log_r, _ = log_mixture(mu * s, 0.0, q)
    # a bound on the integral over each cell, from its ends; what is beyond the last is less
    cell = (1 + demand.order) * log_r[1:] - (s[:-1] + mu / 2) ** 2 / 2 + np.log(np.diff(s)) + 1
    needed = np.nonzero(cell >= max(0.0, float(np.max(cell))) - demand.digits - log(s.size))[0]
    return float(s[min(int(needed[-1]) + 1, s.size - 1)]) if needed.size else float(s[-1])


def _sampled_gaussian(pair: Sampled, base: GaussianShift, demand: Demand) -> Nodes:
    """Return a sampled Gaussian shift on the line or the panels planned for it.

    On a line u is the variable of N(0, 1) itself; on panels it is s = u - μ/2, so that the loss of
    the base, v = μs, is zero at zero: the symmetrised pair's half begins there.
    """
    mu, q = sqrt(base.mu_squared), float(pair.rate)
    line = line_of(pair, base, demand)
    if line is None:
        panels = panels_of(pair, demand)
        s, weight = _legendre(panels)
        u = s + mu / 2
        log_q = np.log(weight) - u * u / 2 - log(2 * pi) / 2
        if pair.order is Order.SYMMETRISED:
            return _symmetrised(log_q, mu * s, mu * s, q, (1 - q) * erf(mu / 2 / sqrt(2)))
        if pair.order is Order.MIXTURE_SECOND:
            # of what is beyond nothing but the mass counts
            s, u = np.append(s, panels[-1].high), np.append(u, panels[-1].high + mu / 2)
            log_q = np.append(log_q, log(max(erfc(u[-1] / sqrt(2)) / 2, 1e-300)))
        return _oriented(log_q, mu * s, mu * np.abs(u) + mu * mu / 2, pair)
    u = line.step * np.arange(line.first, line.last + 1, dtype=np.float64)
    log_q = log(line.step) - u * u / 2 - log(2 * pi) / 2
    return _oriented(log_q, mu * u - mu * mu / 2, mu * np.abs(u) + mu * mu / 2, pair)


def _sampled_laplace(pair: Sampled, base: LaplaceShift, demand: Demand) -> Nodes:
    """Return a sampled Laplace shift: panels for the density of v on (-ε₀, ε₀), and its atoms.

    With u the noise, v = |u| - |u - ε₀| is constant outside of (0, ε₀), whence two atoms; inside it
    has under Q the density e^{-(v+ε₀)/2}/4.
    """
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
    """Return a discrete Gaussian shift by one: P at k has mass ∝ e^{-(k-1)²/2σ²}, and the loss
    (2k-1)/2σ².

    A moment of order c is a sum of the same shape centred at 1 + c, so that the lattice reaches
    that far to the right, with as many standard deviations on both sides as the digits ask for.
    """
    s2 = float(pair.sigma_squared)
    spread = sqrt(2 * demand.digits * s2) + 2
    k = np.arange(-ceil(spread), ceil(spread + demand.order + 1) + 1, dtype=np.float64)
    log_mass = -((k - 1) ** 2) / (2 * s2)
    loss = (2 * k - 1) / (2 * s2)
    return Nodes(log_mass - np.log(np.sum(np.exp(log_mass))), loss, np.abs(loss))


def digits_of_vectors(pair: DiscreteGaussianVectors, demand: Demand) -> int:
    """Return to how many digits (of e) the masses of a pair reach where a moment needs them.

    A loss is about normal, of mean and variance μ² = s/σ²; a moment of order c lies c μ² higher, so
    that for d digits of it masses down to e^-(c μ + √(2d))²/2 count. Rounded up to a power of
    two, so that questions of nearby orders share what is computed.
    """
    mu = sqrt(pair.squared / pair.sigma_squared)
    return 1 << ceil((demand.order * mu + sqrt(2 * demand.digits)) ** 2 / 2).bit_length()


def _vectors(pair: DiscreteGaussianVectors, demand: Demand) -> Nodes:
    """Return the loss above those of all integer vectors, its masses rounded to doubles."""
    with precision(_VECTOR_BITS):
        lattice = lattice_of(pair, digits_of_vectors(pair, demand))
        kept = [(k, mass) for k, mass in enumerate(lattice.masses) if mass > 0]
        log_mass = np.array([float(mass.log()) for _, mass in kept])
        loss = np.array([float(lattice.unit * (lattice.first + 2 * k)) for k, _ in kept])
    return Nodes(log_mass, loss, np.abs(loss))


def _finite(pair: DiscreteLaplaceShift | RandomisedAnswers) -> Nodes:
    """Return a pair of finitely many outcomes: all of them, exactly up to the rounding of
    doubles.
    """
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
    """Return nodes that reproduce M(1 + order + it), |t| <= reach, to the demanded digits.

    Args:
        pair: one whose moments have no closed form.
        demand: digits, order c and reach T of the moments.

    Raises:
        TypeError: for a pair with a closed form, which `moments` never asks for.
    """
    match pair:
        case Sampled(base=GaussianShift() as base):
            return _sampled_gaussian(pair, base, demand)
        case Sampled(base=LaplaceShift() as base):
            return _sampled_laplace(pair, base, demand)
        case DiscreteGaussianShift():
            return _lattice(pair, demand)
        case DiscreteGaussianVectors():
            return _vectors(pair, demand)
        case DiscreteLaplaceShift() | RandomisedAnswers():
            return _finite(pair)
        case _:
            raise TypeError(f"Expected a pair without a closed form instead got {pair!r}.")


def out_of_reach(pair: DominatingPair, order: float) -> bool:
    """Return whether the moment of this order is taken as infinite, to keep the nodes few.

    For Laplace noise the loss spans [log r(-ε₀), log r(ε₀)]: times the order that is how much the
    largest integrand exceeds the smallest, in natural-log digits. A discrete Gaussian moment of
    order c needs some c + 18σ lattice points.
    """
    match pair:
        case Sampled(base=GaussianShift() as base, order=Order.MIXTURE_SECOND):
            mu, q = sqrt(base.mu_squared), float(pair.rate)
            if order * mu <= _LARGEST_CENTRE:
                return False
            # r^(-c) <= (1-q)^(-c) holds the integrand near the centre
            left = left_reach(mu, -order, q, _OUT_OF_REACH_DIGITS)
            return max(left, min(mu * sqrt(order), mu * (order * q / 40 + 1))) > _LONGEST_REACH
        case Sampled(base=GaussianShift() as base) if pair.cut == inf:
            return order * sqrt(base.mu_squared) > _LARGEST_CENTRE
        case Sampled(base=GaussianShift() as base):
            largest, _ = log_mixture(
                np.array([pair.cut * sqrt(base.mu_squared)]), 0.0, float(pair.rate)
            )
            return order * float(largest[0]) > _LARGEST_CENTRE
        case Sampled(base=LaplaceShift() as base):
            ends = float(base.epsilon) * np.array([-1.0, 1.0])
            losses, _ = log_mixture(ends, 0.0, float(pair.rate))
            return order * float(losses[1] - losses[0]) > _LARGEST_CENTRE
        case DiscreteGaussianShift():
            return order > _LARGEST_CENTRE + 60 * sqrt(pair.sigma_squared)
        case DiscreteGaussianVectors():
            return order * sqrt(pair.squared / pair.sigma_squared) > _LARGEST_CENTRE_OF_VECTORS
        case _:
            return False


def nodes_needed(pair: DominatingPair, demand: Demand) -> int:
    """Return about how many nodes `nodes` would hand out.

    What placing a contour multiplies by the number of its nodes, before anything is evaluated.
    """
    match pair:
        case DrawnShifts() | ReplacedInSample() | CopiesDrawn():
            raise TypeError(f"Expected a pair whose moments are integrated instead got {pair!r}.")
        case GaussianShift() | LaplaceShift() | RevealedSample():
            return 1
        case Sampled(base=GaussianShift() as base) if line := line_of(pair, base, demand):
            return line.last - line.first + 1
        case Sampled():
            return sum(panel.points for panel in panels_of(pair, demand))
        case DiscreteGaussianShift():
            return ceil(2 * sqrt(2 * demand.digits * float(pair.sigma_squared)) + demand.order)
        case DiscreteGaussianVectors():
            variance = pair.squared * float(pair.sigma_squared)
            return ceil(2 * sqrt(2 * digits_of_vectors(pair, demand) * variance)) + pair.squared
        case DiscreteLaplaceShift():
            return pair.shift + 1
        case RandomisedAnswers():
            return 3


def maximal_loss(pair: DominatingPair) -> float:
    """Return an upper bound on the privacy loss: the pure-DP ε, infinite for Gaussian noise.

    A mixture (1-q)Q + qP with r <= 1 - q + q e^{ε₀} has the loss log r at most; with Q first it is
    -log r(-ε₀) <= -log(1 - q), also for Gaussian noise. A composition's ε never exceeds the sum of
    these.
    """
    match pair:
        case LaplaceShift():
            exact = float(pair.epsilon)
        case DiscreteLaplaceShift():
            exact = float(pair.rate * pair.shift)
        case RandomisedAnswers():
            exact = _gain(pair)
        case RevealedSample():
            return maximal_loss(pair.base)
        # r >= 1 - q whatever the base; Laplace noise never takes v below -ε₀
        case DrawnShifts(order=Order.MIXTURE_SECOND):
            exact = -pair.size * log1p(-float(pair.rate))
        case Sampled(order=Order.MIXTURE_SECOND):
            exact = -log1p(-float(pair.rate))
            if isinstance(pair.base, LaplaceShift):
                exact = min(exact, -log1p(float(pair.rate) * expm1(-float(pair.base.epsilon))))
        case Sampled(base=LaplaceShift() as base):
            # e^ε₀ overflows beyond 709, where ε₀ itself bounds the logarithm
            e = float(base.epsilon)
            exact = log1p(float(pair.rate) * expm1(e)) if e < 700 else e
        case _:
            return inf
    return exact * (1 + 16 * EPS)


def largest_total(counts: Mapping[DominatingPair, int]) -> float:
    """Return an upper bound on the privacy loss of a composition; it may be infinite.

    Args:
        counts: pairs and how often each is composed.
    """
    return added(n * maximal_loss(pair) for pair, n in counts.items()) * (1 + 16 * EPS)


def added(terms: Iterable[float]) -> float:
    """Return the sum of terms >= 0, rounded once; infinity beyond what doubles hold."""
    try:
        return fsum(terms)
    except OverflowError:
        return inf


def _gain(pair: RandomisedAnswers) -> float:
    """Return |log truth/other|, to a few ulps of itself also where the two are nearly equal."""
    low, high = sorted((pair.truth, pair.other))
    return log1p((high - low) / low)
