"""How |M| falls along a vertical line, in ball arithmetic: the bounds of `decay`, proved."""

from itertools import pairwise
from math import sqrt

import numpy as np
from flint import acb, arb

from ..numbers.enclosure import ball_of
from ..numbers.work import spend
from .decay import best_shift, symmetrised_far, walk_heights
from .moments_certified import (
    Rounded,
    mixture,
    nodes_of,
    normal_density,
    power_of_cos,
    real_moment,
    steepness,
)
from .nodes import signed_exponent
from .pairs import DominatingPair, GaussianShift, Order, Sampled
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
        case Sampled(base=GaussianShift() as base) if pair.order is not Order.SYMMETRISED:
            return _shifted(pair, base, order, reach).upper()
        case Sampled(base=GaussianShift() as base):
            return real_moment(pair, order).min(_walked(pair, base, order, reach)).upper()
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
    line = plan_shift(sqrt(base.mu_squared), alpha_float, float(pair.rate))
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
    spread = power_of_cos(alpha, mu * (y + big_y))
    steep_left, steep_right = steepness(h * line.first, h * line.last, alpha, mu, q)
    tails = ends[0] / (h * steep_left).expm1() + ends[-1] / (h * steep_right).expm1()
    rate = 2 * spread * (y * y / 2).exp() / (2 * arb.pi() * y / h).expm1()
    # E[r^α] itself, by the same rule without the shift
    real = (sum(ends, arb(0)) + tails) / (1 - rate)
    # the tails lie on the line itself, not in the strip around it
    return real.min(lifted * (total + power_of_cos(alpha, mu * big_y) * tails + rate * real))


def _walked(pair: Sampled, base: GaussianShift, order: float, reach: float) -> arb:
    """Return the bound of `decay._symmetrised_decay` in balls, on the heights found there.

    The Lipschitz constant E_P[|L| e^{cL}] is at most sqrt(M(c) E_P[L² e^{cL}]), and
    L² <= (2 sinh(ηL/2)/η)², whose mean is a second difference of M.

    What finitely many nodes leave out of M is added to each modulus (`missed`), and so are nodes
    whose weight is below 1e-12 of the largest. Where the walk has no heights the bound is infinite,
    and `modulus_beyond` falls back on M(1 + order).
    """
    mu, q = ball_of(base.mu_squared).sqrt(), ball_of(pair.rate)
    far, _ = symmetrised_far(pair, sqrt(base.mu_squared), order)
    limit = _far_bound(mu, q, order, far)
    heights = [reach, *(t for t in walk_heights(pair, order, far) if t > reach), far]
    if reach >= far:
        return limit
    if len(heights) < 3:
        return arb.pos_inf()
    gap = order / 64
    whole = real_moment(pair, order)
    around = real_moment(pair, order + gap) + real_moment(pair, order - gap)
    lipschitz = (whole * (around - 2 * whole)).sqrt() / arb(gap)
    nodes = nodes_of(pair, Demand(order, far, 24.0))
    weights = nodes.tilted(arb(order))
    top = max(float(w) for w in weights)
    kept = [(w, x) for w, x in zip(weights, nodes.loss, strict=True) if float(w) > 1e-12 * top]
    dropped = sum((w for w in weights if not float(w) > 1e-12 * top), arb(0))
    moduli = _moduli(Rounded.of([w for w, _ in kept], [x for _, x in kept]), heights[:-1])
    for (t, following), value in zip(pairwise(heights), moduli, strict=True):
        here = arb(value) + dropped + nodes.missed(arb(t))
        limit = limit.max(here + (arb(following) - arb(t)) * lipschitz)
    return limit


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
        sums = np.cos(phase) @ terms.weights, np.sin(phase) @ terms.weights
        found[first : first + rows] += np.hypot(*sums)
    return [float(bound) for bound in found]


def _far_bound(mu: arb, q: arb, order: float, far: float) -> arb:
    """Return the bound of `decay.symmetrised_far` on |M| beyond `far`, in balls.

    Integration by parts, as at `decay._symmetrised_decay`: variation / t, and the atom at zero,
    which does not decay.
    """
    c, root = arb(order), (2 * arb.pi()).sqrt()
    cells = 400
    last = (2 + c) * mu + 2
    best = arb(0)
    for k in range(cells):
        a, b = last * k / cells, last * (k + 1) / cells
        log_g = (2 + c) * mixture(mu * b, q) - (a + mu / 2) ** 2 / 2 - mu * a
        best = best.max(log_g.exp())
    # beyond the cells (log g)' <= (2+c) μ - μ - u < 0
    variation = (4 * best + 2 * (-mu * mu / 8).exp()) / (root * q * mu)
    return (1 - q) * (mu / 2 / arb(2).sqrt()).erf() + variation / arb(far)
