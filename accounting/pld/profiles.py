"""The privacy profile of one dominating pair in balls: P(L > x), Q(L > x) and δ(x) = P - e^x Q.

L = log dP/dQ is the loss. Each formula is a threshold test: the loss of every pair here grows (or
falls) along one real variable.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache, partial
from math import comb, inf, nextafter
from typing import NamedTuple

from flint import arb, arb_poly, ctx

from ..numbers.enclosure import ball_of, precision
from ..numbers.work import spend
from .copies import copies_tails
from .lattices import lattice_of
from .pairs import (
    CopiesDrawn,
    DominatingPair,
    DrawnShifts,
    GaussianShift,
    LaplaceShift,
    Order,
    ReplacedInSample,
    RevealedSample,
    Sampled,
)

_MOST_POWERS = 1 << 256
"""Powers of two that a root is sought among: a shift is at most 2^48 standard deviations long."""

Tails = tuple[arb, arb]
"""P(L > x) and Q(L > x)."""

_ZERO, _ONE = arb(0), arb(1)
_EITHER = _ZERO.union(_ONE)
"""A probability that is 0 or 1, where x cannot be told from an end of the losses' range."""


def mu_squared_ball(pair: GaussianShift) -> arb:
    """Return a ball that contains every μ² that the pair may stand for."""
    if not pair.slack:
        return ball_of(pair.mu_squared)
    return ball_of(pair.mu_squared).union(ball_of(pair.mu_squared - pair.slack))


def delta_of(pair: DominatingPair, x: arb) -> arb:
    """Return a ball that contains δ(x) = H_{exp(x)}(P‖Q), for any real x."""
    p, q = tails_of(pair, x)
    return p - x.exp() * q


@lru_cache(maxsize=1 << 14)
def total_variation(pair: DominatingPair) -> float:
    """Return an upper bound on δ(0), the total variation of the pair."""
    with precision(96):
        upper = delta_of(pair, arb(0)).upper()
    return nextafter(float(upper), inf)


def tails_of(pair: DominatingPair, x: arb) -> Tails:
    """Return balls that contain P(L > x) and Q(L > x).

    Raises `ArithmeticError` where x and an end of the range of L cannot be told apart.
    """
    return tails_at(pair)(x)


def tails_at(pair: DominatingPair) -> Callable[[arb], Tails]:
    """Return `tails_of` a pair as a function of x, to be called at the precision of now.

    What does not depend on x is computed once.
    """
    match pair:
        case GaussianShift() | LaplaceShift():
            found = _above(pair)
        case Sampled():
            found = _sampled(pair)
        case RevealedSample():
            found = partial(_revealed, pair)
        case DrawnShifts():
            found = partial(_drawn, pair)
        case ReplacedInSample():
            found = partial(_replaced, pair)
        case CopiesDrawn():
            found = partial(copies_tails, pair)
        case _:
            found = partial(_discrete, pair)

    def tails(x: arb) -> Tails:
        spend(1)
        return found(x)

    return tails


def _revealed(pair: RevealedSample, x: arb) -> Tails:
    """Return the tails of a base that is met with probability q, and else tells nothing."""
    p, q = _above(pair.base)(x)
    met, missed = ball_of(pair.rate), _ONE if x < 0 else _ZERO if x >= 0 else _EITHER
    return met * p + (1 - met) * missed, met * q + (1 - met) * missed


def _sampled(pair: Sampled) -> Callable[[arb], Tails]:
    """Return the tails of a mixture: L = log r(v) or -log r(v), r(v) = 1 - q + q e^v."""
    q = ball_of(pair.rate)
    rest, above = 1 - q, _above(pair.base)
    symmetrised, mixture_first = pair.order is Order.SYMMETRISED, pair.order is Order.MIXTURE_FIRST

    def tails(x: arb) -> Tails:
        first = not x < 0 if symmetrised else mixture_first
        odds = (x if first else -x).expm1() / q
        if odds <= -1:
            return (_ONE, _ONE) if first else (_ZERO, _ZERO)
        if not odds > -1:
            raise ArithmeticError(f"x={x} must be apart from the end of the range of the loss.")
        v = odds.log1p()
        if first:
            p, base = above(v)
            return rest * base + q * p, base
        # below v, by symmetry
        base, p = above(-v)
        return base, rest * base + q * p

    return tails


def _above(base: GaussianShift | LaplaceShift) -> Callable[[arb], Tails]:
    """Return the probabilities under P and Q that the loss of the base exceeds v."""
    if isinstance(base, GaussianShift):
        mu, root = mu_squared_ball(base).sqrt(), arb(2).sqrt()
        half = mu / 2

        def normal(v: arb) -> Tails:
            u = v / mu
            return ((u - half) / root).erfc() / 2, ((u + half) / root).erfc() / 2

        return normal
    e = ball_of(base.epsilon)

    def laplace(v: arb) -> Tails:
        if v >= e:
            return _ZERO, _ZERO
        if v < -e:
            return _ONE, _ONE
        return 1 - ((v - e) / 2).exp() / 2, (-(v + e) / 2).exp() / 2

    return laplace


def _replaced(pair: ReplacedInSample, x: arb) -> Tails:
    """Return the tails of +C against -C, each met with probability q, by one threshold.

    With z = e^(μy) and k = e^(-μ²/2) the likelihood ratio is (1 - q + qkz) / (1 - q + qk/z), which
    grows; it is γ = e^x at the root of qk z² - b z = γqk, b = (1-q)(γ-1). Of its two forms the one
    is taken in which nothing cancels.
    """
    # the exponent of k loses as many bits as it has
    with precision(ctx.prec + int(pair.mu_squared).bit_length()):
        q, mu = ball_of(pair.rate), ball_of(pair.mu_squared).sqrt()
        grown, met = x.exp(), q * (-mu * mu / 2).exp()
        b = (1 - q) * x.expm1()
        root = (b * b + 4 * grown * met * met).sqrt()
        z = 2 * grown * met / (root - b) if b < 0 else (b + root) / (2 * met)
        y, two = z.log() / mu, arb(2).sqrt()
        none, near, far = (((y - moved) / two).erfc() / 2 for moved in (0, mu, -mu))
        return (1 - q) * none + q * near, (1 - q) * none + q * far


def _drawn(pair: DrawnShifts, x: arb) -> tuple[arb, arb]:
    """Return the tails of a mixture of shifts, by one threshold on the noise.

    The likelihood ratio Σ_j w_j e^{jμy - j²μ²/2} is a polynomial in t = e^{μy} with coefficients >=
    0: it grows, so that L > x is y > y(x), at the root of that polynomial.

    Raises:
        ArithmeticError: where x cannot be told from the end of the losses' range.
    """
    mixture = _mixture(pair, ctx.prec)
    with precision(mixture.bits):
        first = pair.order is Order.MIXTURE_FIRST
        grown = (x if first else -x).exp()
        if grown <= mixture.weights[0]:
            return (_ONE, _ONE) if first else (_ZERO, _ZERO)
        if not grown > mixture.weights[0]:
            raise ArithmeticError(f"x={x} must be apart from the end of the range of the loss.")
        mu, root = mixture.mu, arb(2).sqrt()
        y = _inverted(mixture.shape, mixture.slope, grown).log() / mu
        above = [((y - j * mu) / root).erfc() / 2 for j in range(pair.size + 1)]
        with_it = sum((w * a for w, a in zip(mixture.weights, above, strict=True)), arb(0))
        return (with_it, above[0]) if first else (1 - above[0], 1 - with_it)


class _Mixture(NamedTuple):
    """What the tails of a mixture of shifts need at every threshold.

    Args:
        bits: of its balls.
        mu: of one shift.
        weights: w_j of j shifts.
        shape: the polynomial in t.
        slope: its derivative.
    """

    bits: int
    mu: arb
    weights: list[arb]
    shape: arb_poly
    slope: arb_poly


@lru_cache(maxsize=64)
def _mixture(pair: DrawnShifts, bits: int) -> _Mixture:
    """Return the weights and the polynomial of a mixture, with as many bits as are asked for."""
    # exponents as large as (nμ)² lose so many digits, and 1 - q is as near to one as q is to zero
    bits += int(pair.size**2 * pair.mu_squared).bit_length() + int(1 / pair.rate).bit_length()
    with precision(bits):
        n, q, mu_squared = pair.size, ball_of(pair.rate), ball_of(pair.mu_squared)
        weights = [comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1)]
        shape = arb_poly([w * (-(j**2) * mu_squared / 2).exp() for j, w in enumerate(weights)])
        return _Mixture(bits, mu_squared.sqrt(), weights, shape, shape.derivative())


def _inverted(shape: arb_poly, slope: arb_poly, value: arb) -> arb:
    """Return a ball around the t > 0 at which a polynomial that is convex and grows has `value`.

    Newton's method in exact midpoints, from the power of two above the root, then a radius at whose
    ends the polynomial lies on either side of `value`: so the ball holds the root whatever the
    iteration was worth.
    """
    t = arb(2) ** _power_above(shape, value)
    for _ in range(500):
        step = ((shape(t) - value) / slope(t)).mid()
        t = (t - step).mid()
        if abs(step) < t * arb(2) ** (12 - ctx.prec):
            break
    radius = t * arb(2) ** (16 - ctx.prec)
    while not (shape(t - radius) < value and shape(t + radius) > value):
        radius *= 4
        if radius > t:
            raise ArithmeticError(f"Expected {value} apart from the least value.")
    return arb(t, radius)


def _power_above(shape: arb_poly, value: arb) -> int:
    """Return the least k, by bisection, at which a growing polynomial is seen above `value` at 2^k.

    k may be many thousands: a shift of μ standard deviations has roots up to e^(μ²).
    """

    def is_above(k: int) -> bool:
        return bool(shape(arb(2) ** k) > value)

    far = 1
    if is_above(0):
        while is_above(-far):
            far *= 2
        low, high = -far, -(far // 2)
    else:
        while not is_above(far):
            far *= 2
            if far > _MOST_POWERS:
                raise ArithmeticError(f"Expected a polynomial that is seen to reach {value}.")
        low, high = far // 2, far
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return high


@lru_cache(maxsize=64)
def _atoms(pair: DominatingPair, bits: int) -> tuple[list[arb], list[arb], list[arb]]:
    """Return the losses in rising order and, for each, P and Q of losses not below it (and zero).

    What lies beyond the atoms kept is in the radius of the sums.
    """
    lattice = lattice_of(pair, bits)
    places = range(lattice.first, lattice.first + 2 * len(lattice.masses), 2)
    mass = dict(zip(places, lattice.masses, strict=True))
    kept = sorted({*mass, *(-place for place in mass)})
    start = _ZERO.union(lattice.rest)
    above_p, above_q = [start], [start]
    for place in reversed(kept):
        above_p.append(above_p[-1] + mass.get(place, _ZERO))
        above_q.append(above_q[-1] + mass.get(-place, _ZERO))
    return [lattice.unit * place for place in kept], above_p[::-1], above_q[::-1]


def _discrete(pair: DominatingPair, x: arb) -> Tails:
    """Return the tails of a discrete pair, by its atoms."""
    losses, above_p, above_q = _atoms(pair, ctx.prec)
    place = bisect_right(losses, x)
    return above_p[place], above_q[place]
