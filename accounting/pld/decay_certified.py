"""How |M| falls along a vertical line, in ball arithmetic: the bounds of `decay`, proved."""

from itertools import pairwise
from math import sqrt

import numpy as np
from flint import acb, arb

from ..numbers.enclosure import ball_of
from ..numbers.work import spend
from .contour_rounded import Rounded
from .decay import best_shift, exponents, is_walked, median_of, parts_of_loss, walk_heights
from .moments_certified import (
    mixture,
    modulus_at,
    nodes_of,
    normal_density,
    power_of_cos,
    real_moment,
    steepness,
)
from .nodes import signed_exponent
from .pairs import DominatingPair, GaussianShift, Sampled
from .profiles import mu_squared_ball
from .quadrature import Demand, plan_shift

_TURNS_AT_ONCE = 1 << 16
"""Nodes times heights of one array: half a megabyte."""


def modulus_beyond(pair: DominatingPair, order: float, reach: float) -> arb:
    """Return an upper bound on |M(1 + order + it)| for |t| >= reach, as `decay.log_decay`.

    Args:
        pair: any; where nothing is known of its decay, |M| <= M(1 + order) is the answer.
        order: c > 0.
        reach: T >= 0.
    """
    match pair:
        case GaussianShift():
            c, t = arb(order), arb(reach)
            return (mu_squared_ball(pair) / 2 * (c * (c + 1) - t * t)).exp().upper()
        case Sampled() if is_walked(pair):
            return real_moment(pair, order).min(_walked(pair, order, reach)).upper()
        case Sampled(base=GaussianShift() as base):
            return _shifted(pair, base, order, reach).upper()
        case _:
            return real_moment(pair, order).upper()


def _shifted(pair: Sampled, base: GaussianShift, order: float, reach: float) -> arb:
    """Return ∫ |φ(u + iy) r(u + iy)^w| du at w = α + i·reach, for the y that `decay` found.

    Or M(1 + order), if that is less.

    The trapezoidal rule, with the tails and the discretisation error of `quadrature.plan_shift`:
    the modulus of the shifted integrand is itself analytic in u (as a product of powers of analytic
    functions at two heights), so that the same theorem bounds it. Terms beyond both ends fall
    geometrically by `steepness`.

    Args:
        pair: a sampled Gaussian shift, not symmetrised.
        base: its base.
        order: c.
        reach: T.
    """
    alpha_float = signed_exponent(pair, order)
    _, _, shift = best_shift(pair, sqrt(base.mu_squared), order, reach)
    line, _ = plan_shift(sqrt(base.mu_squared), alpha_float, float(pair.rate))
    mu, q, alpha = ball_of(base.mu_squared).sqrt(), ball_of(pair.rate), arb(alpha_float)
    h, y, big_y, t = arb(line.step), arb(line.height), arb(shift), arb(reach)
    lifted = (big_y * big_y / 2).exp()
    rotate = acb(0, mu * big_y).exp() - 1
    total, ends = arb(0), []
    for k in range(line.first, line.last + 1):
        u = h * k
        v = mu * u - mu * mu / 2
        log_r = mixture(v, q)
        turn = (1 + rotate * (q * (v - log_r).exp())).log()
        plain = h * normal_density(u) * (alpha * log_r).exp()
        ends.append(plain)
        total += plain * (alpha * turn.real - t * turn.imag).exp()
    steep_left, steep_right = steepness(h * line.first, h * line.last, alpha, mu, q)
    tails = ends[0] / (h * steep_left).expm1() + ends[-1] / (h * steep_right).expm1()
    growth = modulus_at(alpha, mu * (y + big_y), q)(arb(0))
    rate = 2 * growth * (y * y / 2).exp() / (2 * arb.pi() * y / h).expm1()
    # E[r^α] itself, by the same rule without the shift
    real = (sum(ends, arb(0)) + tails) / (1 - rate)
    # the tails lie on the line itself, not in the strip around it
    beyond = power_of_cos(alpha, mu * big_y) * tails
    if alpha < 0 and mu * big_y < arb.pi() / 2:
        # |r| >= Re r = 1 - q + q e^v cos(μy), which grows with u, and φ falls by itself
        left, right = h * line.first, h * line.last
        least = q * ((mu * right - mu * mu / 2).exp() * (mu * big_y).cos() - 1)
        normal = normal_density(left) / (-h * left).expm1() * (alpha * (-q).log1p()).exp()
        normal += normal_density(right) / (h * right).expm1() * (alpha * least.log1p()).exp()
        beyond = beyond.min(h * normal)
    return real.min(lifted * (total + beyond + rate * real))


def _walked(pair: Sampled, order: float, reach: float) -> arb:
    """Return the bound of `decay._walked_decay` in balls, on the heights found there.

    The modulus of the sum over the nodes is that of Σ w e^{cL} e^{it(L-m)} for every m, which
    changes by Σ w |L-m| e^{cL} a unit of t at most; m is about a median. What finitely many nodes
    leave out of M is added to each modulus (`missed`), and so are nodes whose weight is below 1e-12
    of the largest. Where the walk has no heights, the bound by parts stands alone.
    """
    far, whole = parts_of_loss(pair, order).far(), real_moment(pair, order)
    direct = whole - _by_parts(pair, order, reach).max(arb(0))
    heights = [reach, *(t for t in walk_heights(pair, order, far) if t > reach), far]
    if reach >= far or len(heights) < 3:
        return direct
    limit = whole - _by_parts(pair, order, far)
    nodes = nodes_of(pair, Demand(order, far, 24.0))
    weights = nodes.tilted(arb(order))
    top = max(float(w) for w in weights)
    kept = [(w, x) for w, x in zip(weights, nodes.loss, strict=True) if float(w) > 1e-12 * top]
    dropped = sum((w for w in weights if not float(w) > 1e-12 * top), arb(0))
    middle = arb(
        median_of(np.array([float(x) for _, x in kept]), np.array([float(w) for w, _ in kept]))
    )
    lipschitz = sum((w * abs(x - middle) for w, x in kept), arb(0))
    moduli = _moduli(Rounded.of([w for w, _ in kept], [x for _, x in kept]), heights[:-1])
    for (t, following), value in zip(pairwise(heights), moduli, strict=True):
        here = arb(value) + dropped + nodes.missed(arb(following))
        limit = limit.max(here + (arb(following) - arb(t)) * lipschitz)
    return direct.min(limit)


def _moduli(terms: Rounded, heights: list[float]) -> list[float]:
    """Return upper bounds on |Σ w e^{itx}| at heights t, in doubles: millions of turns.

    In doubles a turn takes a small part of the time that it takes in balls: weights and losses
    are rounded (`Rounded`), and what that may take off the sum is added back.

    Args:
        terms: weights and losses in doubles, with what they lost.
        heights: t, rising.
    """
    t = np.array(heights)
    total = float(np.sum(terms.weights))
    # no unit is taken off here: cosines and sines err by units in the last place, too
    found = terms.lost + terms.turned * t + (terms.losses.size + 16) * 2.0**-50 * total
    rows = max(1, _TURNS_AT_ONCE // terms.losses.size)
    for first in range(0, t.size, rows):
        phase = np.multiply.outer(t[first : first + rows], terms.losses)
        spend(phase.size >> 12)
        # not by matrix product, whose threads cost more than they save on a busy machine
        sums = (np.einsum("tj,j->t", f(phase), terms.weights) for f in (np.cos, np.sin))
        found[first : first + rows] += np.hypot(*sums)
    return [float(bound) for bound in found]


def _by_parts(pair: Sampled, order: float, reach: float) -> arb:
    """Return S - V/t of `decay.PartsOfLoss` at t = reach in balls, beyond the cell found there."""
    parts = parts_of_loss(pair, order)
    _, place = parts.gap(reach)
    q, s = ball_of(pair.rate), [arb(x) for x in parts.cells[place:].tolist()]
    if isinstance(pair.base, GaussianShift):
        mu = ball_of(pair.base.mu_squared).sqrt()
        tails = [((x + mu / 2) / arb(2).sqrt()).erfc() / 2 for x in s]
        density = [normal_density(x + mu / 2) for x in s]
    else:
        # the last cell ends at a double next to ε₀, below it or in the atom
        mu, e = arb(1), ball_of(pair.base.epsilon)
        s[-1] = e
        tails = [(-(x + e) / 2).exp() / 2 for x in s]
        density = [tail / 2 for tail in tails]
    log_r = [mixture(mu * x, q) for x in s]
    total = arb(0)
    for exponent in exponents(pair, order):
        alpha = arb(exponent)
        power = [(alpha * x).exp() for x in log_r]
        total += sum(
            (
                (x - y) * a.min(b)
                for (x, y), (a, b) in zip(pairwise(tails), pairwise(power), strict=True)
            ),
            arb(0),
        )
        g = [
            d * p * (x - mu * v).exp() / (q * mu)
            for d, p, x, v in zip(density, power, log_r, s, strict=True)
        ]
        if not isinstance(pair.base, GaussianShift):
            variation = 2 * (g[0] + g[-1])
        elif exponent < 0:
            variation = 2 * g[0]
        else:
            rises = (
                a * ((alpha + 1) * (y - x)).exp()
                for a, (x, y) in zip(g, pairwise(log_r), strict=False)
            )
            variation = 4 * max(rises, key=lambda ball: float(ball.upper()))
        total -= variation / arb(reach)
    return total
