"""Moment functions of dominating pairs in ball arithmetic, with every error bounded.

The counterpart of `moments`: the same plans (chosen in doubles, they only decide how wide the balls
become), evaluated in balls, plus the bounds of `quadrature` on discretisation and cut-off.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, isqrt, sqrt

from flint import acb, arb, arb_mat, ctx

from ..numbers import gauss_legendre
from ..numbers.enclosure import ball_of
from ..numbers.work import spend
from .lattices import lattice_of
from .nodes import digits_of_vectors, line_of, nodes_needed, panels_of, tail_cells
from .pairs import (
    DiscreteGaussianShift,
    DiscreteGaussianVectors,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    RevealedSample,
    Sampled,
)
from .profiles import mu_squared_ball
from .quadrature import Demand, Line, Panel

_REAL_DIGITS = 60.0
"""Natural-log digits of a moment at a real order: 26 decimal ones.
"""

_AT_ONCE = 1 << 13
"""Nodes whose powers are held at once: with a hundred columns some 300 MB."""

_MOST_TERMS, _PHASES = 9 << 23, 1 << 9
"""Terms of sums of balls on one line, at most: some ten seconds. One ball of a node costs as much
as so many terms."""

_LONG = 1 << 10
"""Heights from which it is asked beforehand whether there are too many terms."""


class TooLong(ArithmeticError):
    """Moments on a line would take far longer than anybody waits."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """A finite pair (masses under P, losses) and a bound on |M - its M| for all |Im z| <= t.

    Args:
        mass: balls > 0.
        loss: balls, one for each mass.
        missed: of a height t, a bound that holds for all |Im z| <= t at the demanded order.
    """

    mass: list[arb]
    loss: list[arb]
    missed: Callable[[arb], arb]

    def tilted(self, order: arb) -> list[arb]:
        """Return the masses times exp(order · loss)."""
        return [p * (order * x).exp() for p, x in zip(self.mass, self.loss, strict=True)]


def mixture(v: arb, q: arb) -> arb:
    """Return log(1 - q + q e^v).

    By expm1 and log1p, so that the ball of a small q does not lose its digits to the one.
    """
    return (q * v.expm1()).log1p()


def normal_density(u: arb) -> arb:
    """Return the density of N(0, 1)."""
    return (-u * u / 2).exp() / (2 * arb.pi()).sqrt()


def power_of_cos(alpha: arb, angle: arb) -> arb:
    """Return the K of (*) in `quadrature`.

    Args:
        alpha: the exponent α of r.
        angle: μy, the argument of e^v on the shifted line.

    Raises:
        ArithmeticError: for an angle beyond the zeros of r.
    """
    if not 0 <= angle < arb.pi():
        raise ArithmeticError(f"angle={angle} must be in [0, pi).")
    return arb(1) if alpha >= 0 else (alpha * (angle / 2).cos().log()).exp()


def _whole_line(pair: Sampled, base: GaussianShift, line: Line, demand: Demand) -> _Nodes:
    """Return the trapezoidal rule on a line, with what it misses.

    *Discretisation*: 2N / (e^{2πy/h} - 1) (Trefethen, Weideman 2014, Theorem 5.1) with N by (*) or
    (**) of `quadrature`, a multiple of E[r^α]. This itself is computed: it is at most (sum + tails)
    / (1 - rate), rate being that error at t = 0. *Left out*: beyond both ends terms fall by
    e^{-steepness · h} each.

    Args:
        pair: a sampled Gaussian shift.
        base: its base.
        line: where the nodes are.
        demand: of order c.
    """
    mu, q, c = ball_of(base.mu_squared).sqrt(), ball_of(pair.rate), arb(demand.order)
    first = pair.order is Order.MIXTURE_FIRST
    alpha = 1 + c if first else -c
    h, y = arb(line.step), arb(line.height)
    mass, loss = [], []
    for k in range(line.first, line.last + 1):
        u = h * k
        log_r = mixture(mu * u - mu * mu / 2, q)
        density = h * normal_density(u)
        mass.append(density * log_r.exp() if first else density)
        loss.append(log_r if first else -log_r)
    left = mass[0] * (c * loss[0]).exp()
    right = mass[-1] * (c * loss[-1]).exp()
    steep_left, steep_right = steepness(h * line.first, h * line.last, alpha, mu, q)
    tails = left / (h * steep_left).expm1() + right / (h * steep_right).expm1()
    growth = modulus_at(alpha, mu * y, q)
    each = 2 * (y * y / 2).exp() / (2 * arb.pi() * y / h).expm1()
    nodes = _Nodes(mass, loss, lambda t: tails)
    real = sum(nodes.tilted(c), arb(0)) + tails
    real = real / (1 - each * growth(arb(0)))
    return _Nodes(mass, loss, lambda t: tails + each * growth(t) * real)


def modulus_at(alpha: arb, angle: arb, q: arb) -> Callable[[arb], arb]:
    """Return t -> the lesser of what (*) and (**) of `quadrature` multiply E[r^α] e^{y²/2} by.

    Args:
        alpha: the exponent α of r.
        angle: θ = μy.
        q: the rate.

    Raises:
        ArithmeticError: for an angle beyond the zeros of r.
    """
    k = power_of_cos(alpha, angle)
    if alpha >= 0 or not angle < arb.pi() / 2:
        return lambda t: k * (t * angle).exp()
    slope, at_rest = angle.tan() / -alpha, alpha * (-q).log1p()

    def lesser(t: arb) -> arb:
        turn = (t * slope).max(arb(1))
        return (k * (t * angle).exp()).min((at_rest - alpha * (turn - 1 - turn.log())).exp())

    return lesser


def steepness(first: arb, last: arb, alpha: arb, mu: arb, q: arb) -> tuple[arb, arb]:
    """Return how fast log(φ r^α) falls, at least, to the left of `first` and the right of `last`.

    p = q e^v / r grows with u, so that it is largest at the end on the left.

    d/du log(φ r^α) = -u + α μ p.

    Args:
        first, last: the outermost nodes.
        alpha: the exponent of r.
        mu, q: of the sampled shift.

    Raises:
        ArithmeticError: where a node does not lie beyond the peak, so that nothing falls.
    """
    met = q * (mu * first - mu * mu / 2).exp()
    left = -first - (-alpha).max(arb(0)) * mu * met / (1 - q + met)
    right = last - alpha.max(arb(0)) * mu
    if not (left > 0 and right > 0):
        raise ArithmeticError("Expected nodes beyond the peak of the integrand.")
    return left, right


def _on_panels(
    pair: Sampled, panels: tuple[Panel, ...], slope: arb, order: arb, lap: arb | None
) -> tuple[list[arb], list[arb], Callable[[arb], arb]]:
    """Return weights times density under Q, the base's losses, and the error bound for |Im z| <= t.

    The error bound covers r^(1+z) and r^(-z) together, or the latter alone where the pair has no
    other.

    Args:
        pair: a sampled shift.
        panels: where it is integrated.
        slope: of v in the variable s.
        order: c.
        lap: ε₀ of Laplace noise, None for Gaussian.
    """
    density, losses, bounds = [], [], []
    for panel in panels:
        low, high, rho = arb(panel.low), arb(panel.high), arb(panel.ellipse)
        half, middle = (high - low) / 2, (high + low) / 2
        for x, w in gauss_legendre.balls(panel.points, ctx.prec):
            s = middle + half * x
            density.append(half * w * _base_density(s, slope, lap))
            losses.append(slope * s)
        height, reach = (rho - 1 / rho) / 2 * half, (rho + 1 / rho) / 2 * half
        peak = _peak_density(middle - reach, middle + reach, height, slope, lap)
        power, turn = _peak_power(pair, order, slope, middle - reach, middle + reach, height)
        # Trefethen 2013, Theorem 19.3
        factor = arb(64) / 15 * half * rho ** (2 - 2 * panel.points) / (1 - rho**-2)
        bounds.append((factor * peak * power, turn))
    return density, losses, lambda t: sum((k * (t * turn).exp() for k, turn in bounds), arb(0))


def _base_density(s: arb, slope: arb, lap: arb | None) -> arb:
    """Return the density under Q: of s = u - μ/2 for Gaussian noise, of v for Laplace noise."""
    if lap is not None:
        return (-(s + lap) / 2).exp() / 4
    return normal_density(s + slope / 2)


def _peak_density(low: arb, high: arb, height: arb, slope: arb, lap: arb | None) -> arb:
    """Return a bound on |density| over a box: |φ(u + iy)| = φ(u) e^{y²/2} grows with y, falls with
    |u|.
    """
    if lap is not None:
        return (-(low + lap) / 2).exp() / 4
    nearest = (low + slope / 2).max(-(high + slope / 2)).max(arb(0))
    return ((height * height - nearest * nearest) / 2).exp() / (2 * arb.pi()).sqrt()


def _peak_power(
    pair: Sampled, order: arb, slope: arb, low: arb, high: arb, height: arb
) -> tuple[arb, arb]:
    """Return bounds on the powers of r that the pair integrates and on arg r over a box.

    |r^(-c)|, and |r^(1+c)| unless the mixture stands second (see `quadrature`).

    Args:
        pair: a sampled shift.
        order: c.
        slope: of v in s.
        low, high: real parts of the box.
        height: its half-height.

    Raises:
        ArithmeticError: where the box reaches the zeros of r.
    """
    q = ball_of(pair.rate)
    theta = slope * height
    if not theta < arb.pi():
        raise ArithmeticError(f"angle={theta} must be in [0, pi).")
    top, bottom = q * (slope * high).exp(), q * (slope * low).exp()
    turn = acb(1 - q + top * theta.cos(), top * theta.sin()).arg()
    real = 1 - q + (bottom * theta.cos()).min(top * theta.cos())
    # (ii) or (ii'), whichever is more
    least = ((1 - q + bottom) * (theta / 2).cos()).max(real)
    falling = (-order * least.log()).exp()
    if pair.order is Order.MIXTURE_SECOND:
        return falling, turn
    return falling + ((1 + order) * (1 - q + top).log()).exp(), turn


def _symmetrised_nodes(
    q_mass: list[arb], v: list[arb], q: arb, middle: arb
) -> tuple[list[arb], list[arb]]:
    """Return the masses and losses of a symmetrised pair from its half: log r, -log r, and zero."""
    log_r = [mixture(x, q) for x in v]
    upper = [p * x.exp() for p, x in zip(q_mass, log_r, strict=True)]
    return [*upper, *q_mass, middle], [*log_r, *(-x for x in log_r), arb(0)]


def _half_line(pair: Sampled, base: GaussianShift, demand: Demand) -> _Nodes:
    """Return a symmetrised Gaussian pair: panels on u >= μ/2, mirrored, and the atom between."""
    mu, q, c = ball_of(base.mu_squared).sqrt(), ball_of(pair.rate), arb(demand.order)
    panels = panels_of(pair, demand)
    q_mass, v, missed = _on_panels(pair, panels, mu, c, None)
    middle = (1 - q) * (mu / 2 / arb(2).sqrt()).erf()
    mass, loss = _symmetrised_nodes(q_mass, v, q, middle)
    # beyond the panels r >= 1, so φ r^(-c) <= φ r^(1+c)
    tail = _rising_tail(mu, q, demand.order, panels[-1].high) if pair.cut == inf else arb(0)
    return _Nodes(mass, loss, lambda t: 2 * tail + missed(t))


def _line_in_panels(pair: Sampled, base: GaussianShift, demand: Demand) -> _Nodes:
    """Return a sampled Gaussian shift in panels on a stretch of the line, both tails bounded.

    On the left φ r^α falls by `steepness` at least, so that its integral is at most its value over
    that; on the right likewise, in cells where it may still rise, unless the pair is cut there.
    """
    mu, q, c = ball_of(base.mu_squared).sqrt(), ball_of(pair.rate), arb(demand.order)
    panels = panels_of(pair, demand)
    q_mass, v, missed = _on_panels(pair, panels, mu, c, None)
    low, high = panels[0].low + mu / 2, panels[-1].high + mu / 2
    first = pair.order is Order.MIXTURE_FIRST
    alpha = 1 + c if first else -c

    def falling(u: arb) -> arb:
        return normal_density(u) * (alpha * mixture(mu * u - mu * mu / 2, q)).exp()

    steep, _ = steepness(low, (alpha.max(arb(0)) + 1) * mu, alpha, mu, q)
    tails = falling(low) / steep
    # for α < 0 the logarithm falls by u at least
    if not first:
        tails += falling(high) / high
    elif pair.cut == inf:
        tails += _rising_tail(mu, q, demand.order, panels[-1].high)
    log_r = [mixture(x, q) for x in v]
    if first:
        mass = [p * x.exp() for p, x in zip(q_mass, log_r, strict=True)]
        return _Nodes(mass, log_r, lambda t: missed(t) + tails)
    return _Nodes(q_mass, [-x for x in log_r], lambda t: missed(t) + tails)


def _rising_tail(mu: arb, q: arb, order: float, cut: float) -> arb:
    """Return a bound on the integral of φ r^(1+c) over s = u - μ/2 beyond `cut` >= 0.

    Cells are bounded from their ends.

    φ falls and r grows on a cell, so that the product of both extremes bounds it; beyond the last
    cell the slope is at most (1+c) μ - u < 0, and the integral is the value there over that slope.
    """
    c = arb(order)
    ends = [arb(cut), *(arb(float(s)) for s in tail_cells(float(mu), order))]
    ends = [s for s in ends if s >= cut]
    tail = arb(0)
    for a, b in pairwise(ends):
        tail += (b - a) * normal_density(a + mu / 2) * ((1 + c) * mixture(mu * b, q)).exp()
    last = ends[-1] + mu / 2
    steep = last - (1 + c) * mu
    if not steep > 0:
        raise ArithmeticError("Expected cells beyond the peak of the integrand.")
    return tail + normal_density(last) * ((1 + c) * mixture(mu * ends[-1], q)).exp() / steep


def _interval(pair: Sampled, base: LaplaceShift, demand: Demand) -> _Nodes:
    """Return a sampled Laplace shift: panels on (-ε₀, ε₀), atoms at both ends."""
    e, q, c = ball_of(base.epsilon), ball_of(pair.rate), arb(demand.order)
    panels = panels_of(pair, demand)
    q_mass, v, missed = _on_panels(pair, panels, arb(1), c, e)
    # the panels end at doubles next to ±ε₀ (at 0 if symmetrised): the slivers are part of the error
    start = arb(0) if pair.order is Order.SYMMETRISED else -e
    sliver = abs(e - arb(panels[-1].high)) + abs(start - arb(panels[0].low))
    power, _ = _peak_power(pair, c, arb(1), -e - sliver, e + sliver, arb(0))
    lost = sliver * power
    q_mass, v = [*q_mass, (-e).exp() / 2], [*v, e]
    if pair.order is Order.SYMMETRISED:
        mass, loss = _symmetrised_nodes(q_mass, v, q, -(1 - q) * (-e / 2).expm1())
        return _Nodes(mass, loss, lambda t: missed(t) + lost)
    q_mass, v = [*q_mass, arb(0.5)], [*v, -e]
    log_r = [mixture(x, q) for x in v]
    if pair.order is Order.MIXTURE_FIRST:
        mass = [p * x.exp() for p, x in zip(q_mass, log_r, strict=True)]
        return _Nodes(mass, log_r, lambda t: missed(t) + lost)
    return _Nodes(q_mass, [-x for x in log_r], lambda t: missed(t) + lost)


def _lattice(pair: DiscreteGaussianShift, demand: Demand) -> _Nodes:
    """Return a discrete Gaussian shift by one: masses on a stretch of whole numbers, tails bounded.

    The sum of e^{-k²/2σ²} over all k is enclosed by the finite one and the geometric tails, so that
    the normalisation is exact to the balls' radii (Canonne, Kamath, Steinke 2020, Definition 1).
    """
    s2, c = ball_of(pair.sigma_squared), arb(demand.order)
    spread = ceil(sqrt(2 * demand.digits * pair.sigma_squared)) + 2
    low, high = -spread, spread + ceil(demand.order) + 1
    weight = [(-((arb(k) - 1) ** 2) / (2 * s2)).exp() for k in range(low, high + 1)]
    loss = [(2 * arb(k) - 1) / (2 * s2) for k in range(low, high + 1)]

    # Gaussian tails, centred at 1 for the mass and at 1 + c for the moment, fall geometrically
    def beyond(centre: arb) -> arb:
        up = (-((high - centre) ** 2) / (2 * s2)).exp() / ((high - centre) / s2).expm1()
        down = (-((low - centre) ** 2) / (2 * s2)).exp() / ((centre - low) / s2).expm1()
        return up + down

    total = sum(weight, arb(0))
    total = total.union(total + beyond(arb(1)))
    tilt = (c * (c + 1) / (2 * s2)).exp()
    missed = tilt * beyond(1 + c) / total
    return _Nodes([w / total for w in weight], loss, lambda t: missed)


def _vectors(pair: DiscreteGaussianVectors, demand: Demand) -> _Nodes:
    """Return the loss above those of all integer vectors; its tails are bounded (`lattices`).

    With d = 2 unit, μ² = s/σ² and g(x) = e^(-(x - μ²/2)²/(2μ²)) beyond the highest loss kept, X:

        E[e^(cL); L > X] <= Σ_i P(L > X + id) e^(c (X + (i+1) d)),   P(L > x) <= g(x) / (1 - e^-d),

    of which each term is at most e^(d (c - (X - μ²/2)/μ²)) times the one before. Below -X lies less
    mass, where e^(cL) is less than one.
    """
    s2, c = ball_of(pair.sigma_squared), arb(demand.order)
    lattice = lattice_of(pair, digits_of_vectors(pair, demand))
    mu_squared, gap = pair.squared / s2, 1 / s2
    top = -lattice.first * lattice.unit
    centred = top - mu_squared / 2
    ratio = (gap * (c - centred / mu_squared)).exp()
    if not ratio < 1:
        raise ArithmeticError("Expected losses beyond the peak of the integrand.")
    tail = (c * (top + gap) - centred**2 / (2 * mu_squared)).exp()
    missed = 2 * tail / ((1 - (-gap).exp()) * (1 - ratio))
    losses = [lattice.unit * (lattice.first + 2 * k) for k in range(len(lattice.masses))]
    return _Nodes(list(lattice.masses), losses, lambda t: missed)


def _finite(pair: DiscreteLaplaceShift | RandomisedAnswers) -> _Nodes:
    """Return a pair of finitely many outcomes; nothing is missed."""
    if isinstance(pair, RandomisedAnswers):
        p, o = ball_of(pair.truth), ball_of(pair.other)
        gain = (p / o).log()
        return _Nodes([p, o, (pair.categories - 2) * o], [gain, -gain, arb(0)], lambda t: arb(0))
    b, n = ball_of(pair.rate), pair.shift
    inner = (1 - (-b).exp()) / (1 + (-b).exp())
    mass = [inner * (-b * (n - k)).exp() for k in range(n + 1)]
    mass[0], mass[n] = (-b * n).exp() / (1 + (-b).exp()), 1 / (1 + (-b).exp())
    return _Nodes(mass, [b * (2 * k - n) for k in range(n + 1)], lambda t: arb(0))


def nodes_of(pair: DominatingPair, demand: Demand) -> _Nodes:
    """Return the pair as finitely many masses and losses, and a bound on what that misses.

    Args:
        pair: one without a closed form.
        demand: of order c, up to height T.

    Raises:
        TypeError: for a pair with a closed form.
    """
    match pair:
        case Sampled(base=GaussianShift() as base) if pair.order is Order.SYMMETRISED:
            return _half_line(pair, base, demand)
        case Sampled(base=GaussianShift() as base) if line := line_of(pair, base, demand):
            return _whole_line(pair, base, line, demand)
        case Sampled(base=GaussianShift() as base):
            return _line_in_panels(pair, base, demand)
        case Sampled(base=LaplaceShift() as base):
            return _interval(pair, base, demand)
        case DiscreteGaussianShift():
            return _lattice(pair, demand)
        case DiscreteGaussianVectors():
            return _vectors(pair, demand)
        case DiscreteLaplaceShift() | RandomisedAnswers():
            return _finite(pair)
        case _:
            raise TypeError(f"Expected a pair without a closed form instead got {pair!r}.")


def closed_form(pair: GaussianShift | LaplaceShift | RevealedSample) -> Callable[[acb], acb]:
    """Return z ↦ M(1 + z) of a pair with a formula; see `moments._closed_form`."""
    if isinstance(pair, RevealedSample):
        q, base = ball_of(pair.rate), closed_form(pair.base)
        return lambda z: 1 + q * (base(z) - 1)
    if isinstance(pair, GaussianShift):
        mu_squared = mu_squared_ball(pair)
        return lambda z: (z * (z + 1) * mu_squared / 2).exp()
    e = ball_of(pair.epsilon)
    return lambda z: ((1 + z) * (z * e).exp() + z * (-(1 + z) * e).exp()) / (1 + 2 * z)


def real_moment(pair: DominatingPair, order: float) -> arb:
    """Return a ball that contains M(1 + order), order > 0.

    Args:
        pair: any pair.
        order: c.
    """
    return moments_on_line(pair, 0.0, 0, Demand(order, 0.0, _REAL_DIGITS))[0].real


def moments_on_line(pair: DominatingPair, step: float, count: int, demand: Demand) -> list[acb]:
    """Return balls that contain M(1 + demand.order + i k step), k = 0..count.

    Args:
        pair: any pair.
        step: distance of two heights.
        count: of the last height.
        demand: its order is the line's.

    Raises:
        TooLong: where sums of balls would have too many terms.
    """
    c = arb(demand.order)
    if isinstance(pair, GaussianShift | LaplaceShift | RevealedSample):
        moment = closed_form(pair)
        return [moment(acb(c, arb(step) * k)) for k in range(count + 1)]
    if isinstance(pair, Sampled) and count >= _LONG:
        # known of so many panels before they are filled
        mirrored = pair.order is Order.SYMMETRISED
        _require_short(nodes_needed(pair, demand) << mirrored, count)
    nodes = nodes_of(pair, demand)
    tilted = nodes.tilted(c)
    _require_short(len(tilted), count)
    sums = _turned(tilted, [arb(step) * loss for loss in nodes.loss], count)
    balls = []
    for k, value in enumerate(sums):
        radius = nodes.missed(arb(step) * k).upper()
        blur = arb(0, radius)
        balls.append(value + (acb(blur, blur) if k else acb(blur)))
    return balls


def _require_short(terms: int, count: int) -> None:
    """Raise `TooLong` for sums of so many terms, at least, at so many heights beside zero."""
    if count and (count + _PHASES) * terms > _MOST_TERMS:
        raise TooLong(f"{terms} nodes at {count} heights are too many.")


def _turned(weights: list[arb], angles: list[arb], count: int) -> list[acb]:
    """Return Σ_j weights_j exp(i k angles_j), k = 0..count.

    With k = row · columns ± column, 2 column < columns, and e^{i(a ± b)} = e^{ia} (cos b ± i sin b)
    it is one product of real matrices of few powers, which Arb multiplies many times faster than
    term by term.

    Args:
        weights: balls > 0.
        angles: step times loss, one for each weight.
        count: of the last k.
    """
    spend(4 * len(weights))
    half = isqrt(count // 2)
    columns = 2 * half + 1
    rows = (count + half) // columns + 1
    total = arb_mat(2 * rows, columns + 1)
    for first in range(0, len(weights), _AT_ONCE):
        left: list[list[arb]] = [[] for _ in range(2 * rows)]
        right: list[list[arb]] = []
        some = slice(first, first + _AT_ONCE)
        for weight, angle in zip(weights[some], angles[some], strict=True):
            *short, longest = _powers(acb(0, angle).exp(), half + 2)
            steps = _powers(short[-1] * longest, rows)
            short = [weight * turn for turn in short]
            right.append([*(turn.real for turn in short), *(turn.imag for turn in short)])
            parts = (*(turn.real for turn in steps), *(turn.imag for turn in steps))
            for row, part in zip(left, parts, strict=True):
                row.append(part)
        total += arb_mat(left) * arb_mat(right)
    sums: list[acb] = []
    for k in range(count + 1):
        at, column = divmod(k + half, columns)
        here, there = abs(column - half), abs(column - half) + half + 1
        even = acb(total[at, here], total[rows + at, here])
        odd = acb(-total[rows + at, there], total[at, there])
        sums.append(even + odd if column >= half else even - odd)
    return sums


def _powers(turn: acb, count: int) -> list[acb]:
    """Return turn^0, ..., turn^(count - 1).

    From halves: one factor after the other, on the unit circle the radii of the balls would double
    every other power.
    """
    powers = [acb(1), turn]
    while len(powers) < count:
        half = len(powers) // 2
        powers.append(powers[half] * powers[len(powers) - half])
    return powers[:count]
