"""The privacy profile of a composition by contour integration, in balls: an enclosure with a proof.

The sum of `contour`, with the line, step and length chosen there in doubles, and every error
bounded here: rounding by the balls; the inner quadratures by `quadrature`; aliasing by (3) of
`contour`, which only ever adds to δ, so that it is taken off the lower end alone; the cut-off by
(1/π) Π_i sup_{t>=T} |M_i(1+c+it)|^{n_i} e^{-cε} / T on both. No choice made in doubles is trusted.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, isqrt, log
from typing import Protocol

import numpy as np
from flint import acb, acb_mat, arb, ctx

from ..numbers.enclosure import Enclosure, ball_of, precision
from ..numbers.work import spend
from .contour import deltas_upper, epsilons_upper
from .contour_rounded import RoundedTerms
from .decay_certified import modulus_beyond
from .moments_certified import TooLong, moments_on_line, real_moment
from .nodes import largest_total
from .pairs import DominatingPair
from .placement import ContourTarget, Limits, Placement, place_contour, work_of
from .quadrature import Demand
from .saddle import (
    Counts,
    chernoff_delta,
    epsilon_by_moments,
    order_of,
)

_BITS = 160
"""Bits of the balls: powers of a hundred million steps take 27 of them, cancellation a few."""
_LIMITS = Limits(1 << 14, 1 << 20, 1e-7)
"""The most nodes and moment terms of a contour in balls, and what of ε doubles may lose.

A moment at a node costs about a microsecond. Six digits are asked for.
"""

_HOPELESS = 0.5
"""The share of δ beyond the last node at which a contour would enclose next to nothing."""

_MOST_SECANTS, _SETTLED = 8, 1e-6
"""Secants on log δ before the ends of an enclosure are sought, and how near is near enough."""

_LONG, _MUCH = 1 << 10, 1 << 17
"""Nodes times distinct pairs, and terms of the sums of all of them, from which the terms of a
contour are doubles, if these do."""

_DIGITS = 20.0
"""Natural-log digits of aliasing and cut-off relative to δ: 2e-9, for 1e-6 of ε with room."""

_MORE, _TOO_MUCH = 16.0, 1e26
"""Digits beyond those that cancel, and what a contour may miss, in units of δ, for quadratures to
mend it: balls have no more bits."""


_DIGITS_APART = 2.0
"""Natural-log digits by which quadratures that mend a contour differ at least."""


def power(base: acb, exponent: int) -> acb:
    """Return a whole power of a ball.

    Args:
        base: any ball.
        exponent: >= 0.
    """
    # exp(n log x) keeps the ball of a high power from growing with every multiplication
    return base**exponent if exponent < 64 or base.contains(0) else (exponent * base.log()).exp()


def _square(values: list[acb]) -> acb_mat:
    """Return the values row by row in a matrix, nearly square, filled up with zeros."""
    columns = isqrt(len(values) - 1) + 1
    values = values + [acb(0)] * (-len(values) % columns)
    return acb_mat(len(values) // columns, columns, values)


def _real_power(base: arb, exponent: int) -> arb:
    """Return a whole power of a real ball, as `power` does."""
    return base**exponent if exponent < 64 or not base > 0 else (exponent * base.log()).exp()


def _log_bound(counts: Counts, order: float) -> arb:
    """Return log M(1+c) + c log c - (1+c) log(1+c): the bound of one moment without e^{-cε}.

    Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    c = arb(order)
    moment = sum((n * real_moment(pair, order).log() for pair, n in counts.items()), arb(0))
    return moment + c * c.log() - (1 + c) * (1 + c).log()


@lru_cache(maxsize=8)
def _powers(
    pair: DominatingPair, n: int, placement: Placement, demand: Demand, bits: int
) -> list[acb]:
    """Return the powers of one pair's moments; kept, as the same pair is tried with other noise.

    Args:
        pair: any.
        n: how often it is composed.
        placement: of the contour.
        demand: what quadratures must deliver.
        bits: of balls, as set.
    """
    moments = moments_on_line(pair, placement.step, placement.count, demand)
    return [power(m, n) for m in moments]


@dataclass(frozen=True, slots=True)
class CertifiedTerms:
    """The integrand without e^{-zε} at the nodes of a contour, the first one halved, in balls.

    They are a matrix, node k = row · columns + column: two short sets of phases then turn all of
    them, where e^{-itε} as a power of the last phase would double the radius of its ball every
    other node.

    Args:
        step: of the contour.
        values: shape (rows, columns).
    """

    step: float
    values: acb_mat

    @classmethod
    def of(cls, counts: Counts, placement: Placement, demand: Demand) -> "CertifiedTerms":
        """Return the terms of a composition on a placed contour; raises `TooLong`."""
        c, step, count = placement.order, placement.step, placement.count
        z = [acb(arb(c), arb(step) * k) for k in range(count + 1)]
        values = [1 / (x * (x + 1)) for x in z]
        for pair, n in counts.items():
            spend(count >> 3)
            powers = _powers(pair, n, placement, demand, ctx.prec)
            values = [f * m for f, m in zip(values, powers, strict=True)]
        values[0] /= 2
        return cls(step, _square(values))

    def turned_by(self, epsilon: float) -> arb:
        """Return a ball around the real part of the sum of terms times e^{-itε}."""
        angle = arb(self.step) * arb(epsilon)
        rows, columns = self.values.nrows(), self.values.ncols()
        short = acb_mat([[acb(0, -angle * k).exp()] for k in range(columns)])
        long = acb_mat([[acb(0, -angle * (k * columns)).exp() for k in range(rows)]])
        return (long * (self.values * short))[0, 0].real


def _allowed(placement: Placement, epsilon: float, limits: Limits) -> float:
    """Return the share of δ(ε) that terms may miss: it falls by about order · ε as ε doubles."""
    return limits.lost * max(placement.order * epsilon, 0.1)


def _terms(
    counts: Counts, placement: Placement, near: ContourTarget, limits: Limits, digits: float
) -> CertifiedTerms | RoundedTerms:
    """Return the terms of a contour: long ones in doubles, if ε loses no more than is allowed."""
    demand = placement.demand(counts, digits)
    if placement.count * len(counts) > _LONG or work_of(counts, placement) > _MUCH:
        terms = RoundedTerms.of(counts, placement, demand)
        scale = terms.log_first - placement.order * near.epsilon - near.log_delta
        lost = scale.exp() * arb(placement.step * terms.error(near.epsilon))
        if lost <= _allowed(placement, near.epsilon, limits):
            return terms
    return CertifiedTerms.of(counts, placement, demand)


@dataclass(frozen=True, slots=True)
class CertifiedContour:
    """The terms of the sum at the nodes of a contour, and what bounds the rest.

    Args:
        placement: line, step and length.
        terms: the integrand without e^{-zε}, in balls or doubles.
        cut_off: bounds the rest beyond T, but for e^{-cε}.
        beyond: the λ of (3).
        log_beyond: log M(1+λ) and its entropy, for the aliasing term.
    """

    placement: Placement
    terms: CertifiedTerms | RoundedTerms
    cut_off: arb
    beyond: float
    log_beyond: arb

    @classmethod
    def of(
        cls,
        counts: Counts,
        placement: Placement,
        near: ContourTarget,
        limits: Limits = _LIMITS,
        digits: float = _DIGITS,
    ) -> "CertifiedContour":
        """Return the contour of a composition.

        Args:
            counts: pairs and how often each is composed.
            placement: where it runs.
            near: about where it will be asked.
            limits: what sums in doubles may lose.
            digits: natural-log digits of the inner quadratures, relative to the bound of a moment.
        """
        cut_off = 1 / (arb.pi() * arb(placement.reach))
        for pair, n in counts.items():
            cut_off *= _real_power(modulus_beyond(pair, placement.order, placement.reach), n)
        beyond = placement.order_beyond(counts, near.epsilon)
        terms = _terms(counts, placement, near, limits, digits)
        return cls(placement, terms, cut_off, beyond, _log_bound(counts, beyond))

    def mended(self, counts: Counts, near: ContourTarget, limits: Limits) -> "CertifiedContour":
        """Return the same line with finer quadratures, if these are what hides δ, else itself.

        What they miss is a share of the bound of one moment, which may be far above δ.

        Args:
            counts: pairs and how often each is composed.
            near: a point of the curve.
            limits: of the contour.
        """
        scale = (-arb(self.placement.order) * arb(near.epsilon) - near.log_delta).exp()
        missed = self.terms.turned_by(near.epsilon).rad() * scale * self.placement.step / arb.pi()
        share = float(missed)
        if not 4 * _allowed(self.placement, near.epsilon, limits) < share < _TOO_MUCH:
            return self
        digits = max(_DIGITS, _DIGITS + log(share) + _MORE)
        # rounded up, so that questions about nearly the same point share their moments
        digits = _DIGITS_APART * ceil(digits / _DIGITS_APART)
        with suppress(TooLong):
            return CertifiedContour.of(counts, self.placement, near, limits, digits)
        return self

    def delta(self, epsilon: float) -> Enclosure:
        """Return an enclosure of δ(ε).

        The exact sum (2) lies above δ(ε) by the aliasing (3), which is >= 0: it is taken off the
        lower end alone. What lies beyond T may have either sign.
        """
        c, h = arb(self.placement.order), arb(self.placement.step)
        point, lam = arb(epsilon), arb(self.beyond)
        scale = (-c * point).exp()
        total = self.terms.turned_by(epsilon) * scale * h / arb.pi()
        period = 2 * arb.pi() / h
        alias = 1 / (c * period).expm1()
        alias += (self.log_beyond - lam * point).exp() / ((lam - c) * period).expm1()
        rest = self.cut_off * scale
        lower, upper = (total - alias - rest).lower(), (total + rest).upper()
        if not (lower.is_finite() and upper.is_finite()):
            return Enclosure(arb(0), arb(1))
        # δ lies in [0, 1] whatever the errors
        return Enclosure(lower.max(arb(0)).lower(), upper.min(arb(1)).max(arb(0)).upper())


def delta_enclosure(counts: Counts, epsilon: float) -> Enclosure:
    """Return an enclosure of δ(ε) of the composition, ε >= 0.

    Where no contour is of use: from zero up to the bound of one moment.
    """
    with precision(_BITS):
        by_moments, grade = chernoff_delta(counts, epsilon)
        target = ContourTarget(epsilon, by_moments)
        placement = place_contour(
            counts, (target,), grade=grade, digits=_DIGITS + 4, limits=_LIMITS
        )
        if placement is not None:
            about = float(deltas_upper(counts, np.array([epsilon]), np.zeros(1)).values[0])
            near = ContourTarget(epsilon, log(about) if about > 0 else by_moments)
            with suppress(TooLong):
                contour = CertifiedContour.of(counts, placement, near)
                return contour.mended(counts, near, _LIMITS).delta(epsilon)
        return Enclosure(arb(0), delta_ceiling(counts, epsilon))


def epsilon_enclosure(
    counts: Counts, delta: float, *, greater: float | None = None, limits: Limits = _LIMITS
) -> Enclosure:
    """Return an enclosure of ε(δ) of the composition, 0 < δ < 1.

    The ends are proved by two evaluations of δ(ε): at most δ above, more than δ below. Where the
    contour's own errors are too wide for either, the bound of one moment, the largest possible loss
    and zero stand in.

    Args:
        counts: pairs and how often each is composed.
        delta: an exact double.
        greater: a δ hardly greater, of which the lower end is taken instead.
        limits: of the contour.
    """
    with precision(_BITS):
        target, lower_target = ball_of(delta), ball_of(greater or delta)
        guess = float(epsilons_upper(counts, np.array([delta]), np.zeros(1)).values[0])
        _, grade = chernoff_delta(counts, guess)
        near = ContourTarget(guess, log(delta))
        placement = place_contour(counts, (near,), grade=grade, digits=_DIGITS, limits=limits)
        if placement is None or placement.share_beyond(counts, near) > _HOPELESS:
            return Enclosure(arb(0), epsilon_ceiling(counts, delta))
        try:
            contour = CertifiedContour.of(counts, placement, near, limits)
        except TooLong:
            return Enclosure(arb(0), epsilon_ceiling(counts, delta))
        if contour.delta(0.0).upper <= target:
            return Enclosure.of(0)
        guess = _root(contour, delta, guess)
        mended = contour.mended(counts, ContourTarget(guess, log(delta)), limits)
        if mended is not contour:
            contour, guess = mended, _root(mended, delta, guess)
        upper = certified_end(contour, target, guess, 1)
        lower = certified_end(contour, lower_target, guess, -1)
        ceiling = epsilon_ceiling(counts, delta) if upper is None else arb(upper)
        return Enclosure(arb(0) if lower is None else arb(lower), ceiling)


def _root(contour: CertifiedContour, delta: float, guess: float) -> float:
    """Return about ε(δ): a few secants on log δ, and the guess where they lead nowhere.

    The guess is good to all digits unless doubles could not afford a contour.
    """
    here, best, slope = guess, (inf, guess), -contour.placement.order
    former: tuple[float, float] | None = None
    for _ in range(_MOST_SECANTS):
        found = contour.delta(here)
        middle = float(found.lower + found.upper) / 2
        if not middle > 0:
            break
        off = log(middle / delta)
        best = min(best, (abs(off), here))
        if abs(off) < _SETTLED:
            break
        if former is not None and here != former[0]:
            slope = min((off - former[1]) / (here - former[0]), slope / 16)
        former, here = (here, off), max(here - off / slope, here / 2)
    return best[1]


class _Profile(Protocol):
    """What encloses δ(ε)."""

    def delta(self, epsilon: float) -> Enclosure: ...


def certified_end(curve: _Profile, target: arb, guess: float, sign: int) -> float | None:
    """Return the first ε, ever further from `guess`, that δ(ε) proves to be an end, or None.

    The distance from the guess doubles from 2^-38 of it up to half of it: a guess good to eleven
    digits gives an enclosure as narrow.

    Args:
        curve: what encloses δ(ε).
        target: δ, a ball.
        guess: about ε(δ).
        sign: 1 for an upper end, where δ(ε) <= target is proved; -1 for a lower one.
    """
    for doubling in range(38):
        epsilon = guess * (1 + sign * 2.0 ** (doubling - 38))
        found = curve.delta(epsilon)
        if found.upper <= target if sign > 0 else found.lower > target:
            return epsilon
    return None


def epsilon_ceiling(counts: Counts, delta: float) -> arb:
    """Return an upper bound on ε(δ) from one moment, or from the largest possible loss.

    (log M(1+c) + entropy - log δ) / c (Canonne, Kamath, Steinke 2020, Proposition 12): valid at
    every order; zero where it is negative, infinite where nothing is known.
    """
    with precision(_BITS):
        order = order_of(epsilon_by_moments(counts, log(delta))[1])
        bound = (_log_bound(counts, order) - ball_of(delta).log()) / arb(order)
        loss = largest_total(counts)
        if loss < inf:
            bound = bound.min(ball_of(loss))
        return arb.pos_inf() if bound.is_nan() else bound.max(arb(0)).upper()


def delta_ceiling(counts: Counts, epsilon: float) -> arb:
    """Return an upper bound on δ(ε), ε >= 0, from one moment: valid at every order."""
    with precision(_BITS):
        order = order_of(chernoff_delta(counts, epsilon)[1])
        bound = (_log_bound(counts, order) - arb(order) * arb(epsilon)).exp()
        return arb(1) if bound.is_nan() else bound.upper().min(arb(1))
