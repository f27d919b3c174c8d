"""Conversions to (epsilon, delta) that the literature uses, beside the exact curve of `gaussian`.

On Gaussian steps none lies below the exact curve; the papers that are audited state their claims in
them. Each result is an `Enclosure` of the formula's value. Where the formula holds at every order,
the order used is returned as the witness: the bound at that order is a proof by itself, whether or
not another order would be better.

>>> epsilon_from_zcdp(rho=0.5, delta=1e-5)
Enclosure([5.29852591218808, 5.298525912188081])
>>> bound = epsilon_from_zcdp_by_orders(rho=0.5, delta=1e-5)
>>> round(bound.epsilon.upper_float, 9), round(float(bound.order), 6)
(4.728386985, 5.43185)
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, isinf, log, log1p, sqrt

from flint import arb

from ..mechanisms.errors import InvalidParameter, Number, require_open_unit, require_positive_int
from .numbers.enclosure import BITS, Enclosure, Real, ball_of, precision
from .numbers.notions import exact_nonnegative
from .numbers.roots import brent

_LAST_ORDER = 1e100
"""Cap of the search: what the conversion adds there, ln(1/delta)/order, is next to nothing."""


@dataclass(frozen=True, slots=True)
class OrderBound:
    """An epsilon and its witness: the order at which the formula gives it.

    Args:
        epsilon: of the formula at that order.
        order: Rényi order, or lambda of log moments; infinity is pure differential privacy.
    """

    epsilon: Enclosure
    order: Number


@dataclass(frozen=True, slots=True)
class ComposedBound:
    """An (epsilon, delta) guarantee of a composition; delta is exact."""

    epsilon: Enclosure
    delta: Fraction


def _evaluated(formula: Callable[[], arb]) -> Enclosure:
    """The value of a formula, as an epsilon: a negative value proves 0."""
    with precision(BITS):
        found = Enclosure.from_ball(formula())
        return found if found.lower >= 0 else Enclosure(arb(0), found.upper.max(arb(0)))


def _edge(name: str, value: Real) -> Enclosure | None:
    """0 for no dependence on the data and infinity for no noise; None if the formula applies."""
    if not isinstance(value, Enclosure):
        exact_nonnegative(name, value)
        value = Enclosure.of(value)
    if not value.lower >= 0:
        raise InvalidParameter(name, value, "in [0, inf]")
    if value.upper.is_zero():
        return Enclosure.of(0)
    return None if value.upper.is_finite() else Enclosure.of(inf)


def epsilon_from_zcdp(*, rho: Real, delta: Number) -> Enclosure:
    """Return rho + 2 sqrt(rho ln(1/delta)).

    Args:
        rho: the zCDP parameter, in [0, inf].
        delta: in (0, 1).

    Raises `InvalidParameter` outside these ranges. Source: Bun, Steinke 2016, Proposition 1.3.
    """
    require_open_unit("delta", delta)
    edge = _edge("rho", rho)
    if edge is not None:
        return edge
    return _evaluated(lambda: ball_of(rho) + 2 * (ball_of(rho) * -ball_of(delta).log()).sqrt())


def rho_from_epsilon(*, epsilon: Real, delta: Number) -> Enclosure:
    """Return the rho at which `epsilon_from_zcdp` gives `epsilon`; the lower end is safe.

    Args:
        epsilon: in [0, inf].
        delta: in (0, 1).

    Raises `InvalidParameter` outside these ranges. Source: Bun, Steinke 2016, Proposition 1.3.
    """
    require_open_unit("delta", delta)
    edge = _edge("epsilon", epsilon)
    if edge is not None:
        return edge

    def formula() -> arb:
        # (sqrt(L + epsilon) - sqrt(L))² without its cancellation
        log_inverse, target = -ball_of(delta).log(), ball_of(epsilon)
        return (target / ((log_inverse + target).sqrt() + log_inverse.sqrt())) ** 2

    return _evaluated(formula)


def epsilon_from_rdp_mironov(*, order: Number, rdp: Real, delta: Number) -> Enclosure:
    """Return rdp + ln(1/delta) / (order - 1).

    Args:
        order: the Rényi order, in (1, inf].
        rdp: the Rényi divergence at that order, in [0, inf].
        delta: in (0, 1).

    Raises `InvalidParameter` outside these ranges. Source: Mironov 2017, Proposition 3.
    """
    _require_order(order)
    require_open_unit("delta", delta)
    edge = _edge("rdp", rdp)
    if edge is not None:
        return edge
    if isinf(order):
        return Enclosure.of(rdp)
    return _evaluated(lambda: ball_of(rdp) - ball_of(delta).log() / ball_of(Fraction(order) - 1))


def epsilon_from_rdp(*, order: Number, rdp: Real, delta: Number) -> Enclosure:
    """Return rdp + ln((order - 1) / order) - (ln delta + ln order) / (order - 1), at least 0.

    Args:
        order: the Rényi order, in (1, inf].
        rdp: the Rényi divergence at that order, in [0, inf].
        delta: in (0, 1).

    Raises `InvalidParameter` outside these ranges.
    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    _require_order(order)
    require_open_unit("delta", delta)
    edge = _edge("rdp", rdp)
    if edge is not None:
        return edge
    if isinf(order):
        return Enclosure.of(rdp)

    def formula() -> arb:
        excess = ball_of(Fraction(order) - 1)
        log_order = excess.log1p()
        spread = (ball_of(delta).log() + log_order) / excess
        return ball_of(rdp) + excess.log() - log_order - spread

    return _evaluated(formula)


def epsilon_from_zcdp_by_orders(*, rho: Real, delta: Number) -> OrderBound:
    """Return the least `epsilon_from_rdp` of rho-zCDP over all real orders, and that order.

    The order is found in doubles; the bound at it is exact all the same.

    Args:
        rho: the zCDP parameter, in [0, inf].
        delta: in (0, 1).

    Raises `InvalidParameter` outside these ranges.
    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    require_open_unit("delta", delta)
    edge = _edge("rho", rho)
    if edge is not None:
        return OrderBound(edge, inf)
    rho_float = Enclosure.of(rho).upper_float
    log_inverse = _log_inverse(delta)

    def slope(log_excess: float) -> float:
        # the derivative in x = order - 1, up to a positive factor; it vanishes once
        x = exp(log_excess)
        return rho_float * x * x + log1p(x) - log_inverse

    # at `first` both terms are at most a third of ln(1/delta), at `last` one is all of it
    last = min(sqrt(log_inverse / rho_float), _LAST_ORDER)
    first = min(last / 2, log_inverse / 3)
    last_slope = slope(log(last))
    log_excess = log(last) if last_slope <= 0 else brent(slope, log(first), log(last))
    order = 1 + Fraction(exp(log_excess))
    with precision(BITS):
        rdp = Enclosure.from_ball(ball_of(rho) * ball_of(order))
    return OrderBound(epsilon_from_rdp(order=order, rdp=rdp, delta=delta), order)


def epsilon_from_moments(*, rho: Real, delta: Number, max_order: int) -> OrderBound:
    """Return the moments accountant's epsilon for rho-zCDP: min over whole lambda <= max_order.

    The log moment at lambda is at most lambda (lambda + 1) rho, with equality for Gaussian steps;
    the bound at lambda is (lambda + 1) rho + ln(1/delta) / lambda.

    Args:
        rho: the zCDP parameter, in [0, inf]; half the sum of (sensitivity / noise_std)².
        delta: in (0, 1).
        max_order: the largest lambda that the accountant looks at.

    Raises `InvalidParameter` outside these ranges.
    Source: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang 2016, Theorem 2.
    """
    require_open_unit("delta", delta)
    require_positive_int("max_order", max_order)
    edge = _edge("rho", rho)
    if edge is not None:
        return OrderBound(edge, max_order)

    def at(order: int) -> OrderBound:
        epsilon = _evaluated(lambda: ball_of(rho) * (order + 1) - ball_of(delta).log() / order)
        return OrderBound(epsilon, order)

    # convex in lambda, least at the real number sqrt(ln(1/delta) / rho)
    nearest = min(sqrt(_log_inverse(delta) / Enclosure.of(rho).upper_float), float(max_order))
    below = max(1, int(nearest))
    candidates = (at(below), at(min(below + 1, max_order)))
    return min(candidates, key=lambda bound: bound.epsilon.upper_float)


def classical_noise_multiplier(*, epsilon: Number, delta: Number) -> Enclosure:
    """Return sqrt(2 ln(1.25/delta)) / epsilon; the upper end is safe.

    Args:
        epsilon: in (0, 1]; the theorem says nothing above 1, and is false for large epsilon.
        delta: in (0, 1).

    Raises `InvalidParameter` outside these ranges.
    Source: Dwork, Roth 2014, Theorem A.1 (epsilon < 1; at 1 by continuity of the exact curve).
    """
    require_open_unit("delta", delta)
    if not 0 < epsilon <= 1:
        raise InvalidParameter("epsilon", epsilon, "in (0, 1]")
    return _evaluated(lambda: _classical_product(delta) / ball_of(epsilon))


def advanced_composition(
    *, epsilon: Real, delta: Number, steps: int, delta_slack: Number
) -> ComposedBound:
    """Return epsilon' = sqrt(2 k ln(1/d)) epsilon + k epsilon (e^epsilon - 1) and k delta + d.

    Args:
        epsilon: of one step, in [0, inf].
        delta: of one step, in [0, 1].
        steps: k, how many steps are composed.
        delta_slack: d, what the composition adds to delta, in (0, 1).

    Raises `InvalidParameter` outside these ranges.
    Source: Dwork, Rothblum, Vadhan 2010; Dwork, Roth 2014, Theorem 3.20.
    """
    require_open_unit("delta_slack", delta_slack)
    require_positive_int("steps", steps)
    if not 0 <= delta <= 1:
        raise InvalidParameter("delta", delta, "in [0, 1]")
    total = steps * Fraction(delta) + Fraction(delta_slack)
    edge = _edge("epsilon", epsilon)
    if edge is not None:
        return ComposedBound(edge, total)

    def formula() -> arb:
        step = ball_of(epsilon)
        spread = (-2 * steps * ball_of(delta_slack).log()).sqrt()
        return spread * step + steps * step * step.expm1()

    return ComposedBound(_evaluated(formula), total)


def _classical_product(delta: Number) -> arb:
    """Return sqrt(2 ln(1.25/delta)): noise times epsilon over sensitivity."""
    return (2 * (arb(1.25) / ball_of(delta)).log()).sqrt()


def _log_inverse(delta: Number) -> float:
    """Return ln(1/delta) as a double, for searches only."""
    with precision(BITS):
        return float(-ball_of(delta).log())


def _require_order(order: Number) -> None:
    if not order > 1:
        raise InvalidParameter("order", order, "in (1, inf]")
