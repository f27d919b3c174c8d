"""The privacy profile of one dominating pair in balls: P(L > x), Q(L > x) and δ(x) = P - e^x Q.

L = log dP/dQ is the loss. Each formula is a threshold test: the loss of every pair here grows (or
falls) along one real variable.
"""

from bisect import bisect_right
from functools import lru_cache
from math import ceil, sqrt

from flint import arb, ctx

from ..enclosure import ball_of
from .dominating import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Sampled,
)

__all__ = ["delta_of", "mu_squared_ball", "tails_of"]

Tails = tuple[arb, arb]

_ZERO, _ONE = arb(0), arb(1)


def mu_squared_ball(pair: GaussianShift) -> arb:
    """Return a ball that contains every μ² that the pair may stand for."""
    return ball_of(pair.mu_squared).union(ball_of(pair.mu_squared - pair.slack))


def delta_of(pair: DominatingPair, x: arb) -> arb:
    """Return a ball that contains δ(x) = H_{exp(x)}(P‖Q), for any real x."""
    p, q = tails_of(pair, x)
    return p - x.exp() * q


def tails_of(pair: DominatingPair, x: arb) -> Tails:
    """Return balls that contain P(L > x) and Q(L > x).

    Raises `ArithmeticError` where x and an end of the range of L cannot be told apart.
    """
    match pair:
        case GaussianShift() | LaplaceShift():
            return _above(pair, x)
        case Sampled():
            return _sampled(pair, x)
        case _:
            return _discrete(pair, x)


def _sampled(pair: Sampled, x: arb) -> Tails:
    """Return the tails of a mixture: L = log r(v) or -log r(v), r(v) = 1 - q + q e^v."""
    q = ball_of(pair.rate)
    first = pair.order is Order.MIXTURE_FIRST
    if pair.order is Order.GLUED:
        first = not x < 0
    odds = (x if first else -x).expm1() / q
    if odds <= -1:
        return (_ONE, _ONE) if first else (_ZERO, _ZERO)
    if not odds > -1:
        raise ArithmeticError(f"Expected x={x} apart from the end of the range of the loss.")
    p, base = (_above if first else _below)(pair.base, odds.log1p())
    mixed = (1 - q) * base + q * p
    return (mixed, base) if first else (base, mixed)


def _above(base: GaussianShift | LaplaceShift, v: arb) -> Tails:
    """Return the probabilities under P and Q that the loss of the base exceeds v."""
    if isinstance(base, GaussianShift):
        mu, root = mu_squared_ball(base).sqrt(), arb(2).sqrt()
        return ((v / mu - mu / 2) / root).erfc() / 2, ((v / mu + mu / 2) / root).erfc() / 2
    e = ball_of(base.epsilon)
    if v >= e:
        return _ZERO, _ZERO
    if v < -e:
        return _ONE, _ONE
    return 1 - ((v - e) / 2).exp() / 2, (-(v + e) / 2).exp() / 2


def _below(base: GaussianShift | LaplaceShift, v: arb) -> Tails:
    """Return the probabilities under P and Q that the loss of the base is below v, by symmetry."""
    p, q = _above(base, -v)
    return q, p


@lru_cache(maxsize=64)
def _atoms(pair: DominatingPair, bits: int) -> tuple[list[arb], list[arb], list[arb]]:
    """Return the losses in rising order and, for each, P and Q of losses not below it (and zero).

    The tails of a discrete Gaussian beyond the atoms kept are in the radius of its end sums.
    """
    rest = arb(0)
    if isinstance(pair, RandomisedAnswers):
        p, o = ball_of(pair.truth), ball_of(pair.other)
        gain, other = (p / o).log(), (pair.categories - 2) * o
        triples = [(-gain, o, p), (arb(0), other, other), (gain, p, o)]
        if pair.truth < pair.other:
            triples.reverse()
    elif isinstance(pair, DiscreteLaplaceShift):
        b, n = ball_of(pair.rate), pair.shift
        unit, centre = (-b).exp(), (1 - (-b).exp()) / (1 + (-b).exp())
        mass = [centre * (-b * k).exp() for k in range(n + 1)]
        mass[0], mass[n] = 1 / (1 + unit), (-b * n).exp() / (1 + unit)
        triples = [(b * (2 * k - n), mass[n - k], mass[k]) for k in range(n + 1)]
    elif isinstance(pair, DiscreteGaussianShift):
        s2 = ball_of(pair.sigma_squared)
        spread = ceil(sqrt(2 * bits * float(pair.sigma_squared))) + 2
        weight = {k: (-(arb(k) ** 2) / (2 * s2)).exp() for k in range(-spread - 1, spread + 2)}
        # beyond, the terms fall geometrically
        rest = 2 * weight[spread + 1] / (1 - (-(arb(spread) + 1) / s2).exp())
        total = sum(weight.values(), arb(0)) + arb(0).union(rest)
        triples = [
            ((2 * arb(k) - 1) / (2 * s2), weight[k - 1] / total, weight[k] / total)
            for k in range(-spread, spread + 2)
        ]
        rest = rest / total
    else:
        raise TypeError(f"Expected a discrete pair instead got {pair!r}.")
    start = arb(0).union(rest)
    above_p, above_q = [start], [start]
    for _, p, q in reversed(triples):
        above_p.append(above_p[-1] + p)
        above_q.append(above_q[-1] + q)
    return [loss for loss, _, _ in triples], above_p[::-1], above_q[::-1]


def _discrete(pair: DominatingPair, x: arb) -> Tails:
    losses, above_p, above_q = _atoms(pair, ctx.prec)
    place = bisect_right(losses, x)
    return above_p[place], above_q[place]
