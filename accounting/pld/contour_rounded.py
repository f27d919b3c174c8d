"""The terms of a contour in doubles, with a proved bound on what they miss: for long contours.

Of a node z = c + it, with moments M_i relative to those at t = 0 and a bound e_i on the error of
each, the product of powers errs by no more than

    |Π a_i^n_i - Π b_i^n_i| <= Π B_i^n_i · Σ n_i e_i / B_i,   B_i = |b_i| + e_i,               (*)

since both a_i and b_i lie within B_i. Powers are sums of logarithms, whose errors are relative to
themselves: x = M_i - 1 is computed without the one, and log(1 + x) to a few units in the last place
of x (`moments.log1p_complex`), which counts as an error of x. What the rest rounds, with the unit
u = 2^-53:

- exponents n log(1 + x): each product and each of the m - 1 sums errs by u of it at most; a phase
  tε and its turn by 2^-50 tε; cosines, exponentials, the weight 1/(z (z + 1)) by a few units;
- the sum over k = row · columns + column: (rows + columns) u of the sum of all moduli, three times.

Everything is about twice what it has to be. All bounds are sums of positive terms in doubles, and
are doubled in the end, which covers what they round themselves.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite, isqrt
from typing import NamedTuple

import numpy as np
from flint import acb, arb, ctx
from numpy.typing import NDArray

from ..numbers.work import spend
from .moments import BLOCK, log1p_complex, turned_on_line
from .moments_certified import closed_form, nodes_of
from .pairs import DominatingPair, GaussianShift, LaplaceShift, RevealedSample
from .placement import Placement
from .profiles import mu_squared_ball
from .quadrature import Demand
from .saddle import Counts

_LOG_UNITS = 2.0**-45
"""What `log1p_complex` and the division by M(1 + c) err by, relative to x."""

_PRODUCT = 2.0**-52
"""What each product and sum of exponents errs by, relative to all of them."""

_TERM = 2.0**-47
"""What the factors of one term err by, relative to it."""

_PHASE = 2.0**-50
"""What a phase errs by, relative to itself."""

_FEW_HEIGHTS = 64
"""Heights up to which what quadratures miss is asked; each bound holds up to the next of them."""

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]


class Rounded(NamedTuple):
    """Weights w > 0 and losses x as doubles, and what Σ w (e^{itx} - 1) in doubles may be off by.

    That is at most t `turned` + `lost`. With the unit roundoff u = 2^-53, a phase t x errs by
    3u |t x| and by t times what x loses as a double, the sine of its half and the products by a few
    units in the last place, and a sum of m blocks of n terms by (m + n) u Σ w |t x| (Higham 2002,
    section 4.2), three times in `turned_on_line`. About twice that is allowed.
    """

    weights: Floats
    losses: Floats
    turned: float
    lost: float

    @classmethod
    def of(cls, weights: list[arb], losses: list[arb]) -> "Rounded":
        """Return the doubles next to balls.

        Args:
            weights: balls > 0.
            losses: balls, as many.
        """
        w, x = (np.array([float(ball) for ball in balls]) for balls in (weights, losses))
        off_w, off_x = (
            np.array([float(abs(ball - float(ball)).upper()) for ball in balls])
            for balls in (weights, losses)
        )
        summed = BLOCK + w.size // BLOCK + 32
        turned = summed * 2.0**-50 * float(np.sum(w * np.abs(x))) + 2 * float(np.sum(w * off_x))
        return cls(w, x, turned, 4 * float(np.sum(off_w)))


@dataclass(frozen=True, slots=True)
class Powers:
    """The n-th powers of b = M(1 + c + it) / M(1 + c) at the nodes of a line, t = k step.

    Args:
        log_first: n log M(1 + c), a ball.
        modulus, angle: n log |b| and n arg b, shape (nodes,).
        highest: n log B of (*), shape (nodes,).
        off: n e / B of (*), shape (nodes,).
    """

    log_first: arb
    modulus: Floats
    angle: Floats
    highest: Floats
    off: Floats

    @classmethod
    def near_one(cls, n: int, first: arb, x: Complexes, error: Floats) -> "Powers":
        """Return the powers of 1 + x, where M(1 + c) is within `first` and x errs by `error`."""
        logs = log1p_complex(x)
        # where x is near -1, what a vanishing |b| is raised by is part of the error of x
        fall = np.maximum(logs.real, -_VANISHED)
        error = error + _LOG_UNITS * np.abs(x)
        # log(|b| + e), whose digits are lost nowhere
        tops = fall + np.log1p(error * np.exp(-fall))
        off = error * np.exp(-tops)
        return cls(n * first.log(), n * fall, n * logs.imag, n * tops, n * off)


_VANISHED = 40.0
"""The fall of log |M| that ends there: e^-40 is far below what x errs by near -1."""


@lru_cache(maxsize=16)
def _powers(
    pair: DominatingPair, n: int, placement: Placement, demand: Demand, bits: int
) -> Powers:
    """Return the powers of one pair's moments; kept, as the same pair is tried with other noise.

    Args:
        pair: any.
        n: how often it is composed.
        placement: of the contour.
        demand: what quadratures must deliver.
        bits: of balls, as set.
    """
    t: Floats = placement.step * np.arange(placement.count + 1, dtype=np.float64)
    match pair:
        case GaussianShift():
            return _of_gaussian(pair, n, placement.order, t)
        case LaplaceShift() | RevealedSample():
            return _of_formula(pair, n, placement, t.size)
        case _:
            return _of_nodes(pair, n, placement, demand)


def _of_gaussian(pair: GaussianShift, n: int, order: float, t: Floats) -> Powers:
    """Return the powers of e^(μ² z (z + 1) / 2): to the exponent's digits and those of μ²."""
    ball, c = mu_squared_ball(pair), arb(order)
    half = n * float(ball) / 2
    modulus, angle = -half * t * t, half * t * (2 * order + 1)
    width = 2 * float(abs(ball / float(ball) - 1).upper()) + 2.0**-48
    off = np.expm1(np.minimum(width * (np.abs(modulus) + np.abs(angle)), 700.0))
    return Powers(n * ball * c * (c + 1) / 2, modulus, angle, modulus + np.log1p(off), off)


def _of_formula(
    pair: LaplaceShift | RevealedSample, n: int, placement: Placement, size: int
) -> Powers:
    """Return the powers of a pair whose moments have a formula, which balls evaluate."""
    moment, c, h = closed_form(pair), arb(placement.order), arb(placement.step)
    spend(size >> 3)
    first = moment(acb(c)).real
    balls = [moment(acb(c, h * k)) / first - 1 for k in range(size)]
    x = np.array([complex(ball) for ball in balls])
    error = [float(abs(b - acb(v.real, v.imag)).upper()) for b, v in zip(balls, x, strict=True)]
    return Powers.near_one(n, first, x, np.array(error) * (1 + _PHASE))


def _of_nodes(pair: DominatingPair, n: int, placement: Placement, demand: Demand) -> Powers:
    """Return the powers of finite sums, and what these miss of the moments."""
    step, count = placement.step, placement.count
    nodes = nodes_of(pair, demand)
    tilted = nodes.tilted(arb(placement.order))
    first, sums = sum(tilted, arb(0)), Rounded.of(tilted, nodes.loss)
    turns = turned_on_line(step, count + 1, sums.losses, sums.weights)
    # what is missed up to one height is missed below it at most
    each = -(-(count + 1) // _FEW_HEIGHTS)
    far = [arb(step) * min(k + each, count) for k in range(0, count + 1, each)]
    missed = np.repeat([float(nodes.missed(t).upper()) for t in far], each)[: count + 1]
    error = missed * (1 + _PHASE) + sums.lost + sums.turned * step * np.arange(count + 1)
    whole = float(first)
    width = 2 * float(abs(first / whole - 1).upper())
    error += width * (error + np.abs(turns))
    return Powers.near_one(n, first, turns / whole, error / whole * (1 + _PHASE))


@dataclass(frozen=True, slots=True)
class RoundedTerms:
    """The integrand without e^{-zε} at the nodes of a contour, in doubles, over that at t = 0.

    Args:
        step: of the contour.
        log_first: log of the moments' product at t = 0, a ball.
        values: Π b_i^n_i / (z (z + 1)), the first one halved, shape (rows, columns).
        off: a bound on what all of them together miss.
        turned: what phases miss, over ε.
    """

    step: float
    log_first: arb
    values: Complexes
    off: float
    turned: float

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(cls, counts: Counts, placement: Placement, demand: Demand) -> "RoundedTerms":
        """Return the terms of a composition on a placed contour."""
        size = placement.count + 1
        t = placement.step * np.arange(size)
        z = placement.order + 1j * t
        weight = 1 / (z * (z + 1))
        weight[0] /= 2
        log_first = arb(0)
        modulus, angle, highest, off, exponents = (np.zeros(size) for _ in range(5))
        for pair, n in counts.items():
            spend(size >> 7)
            found = _powers(pair, n, placement, demand, ctx.prec)
            log_first += found.log_first
            modulus, angle = modulus + found.modulus, angle + found.angle
            highest, off = highest + found.highest, off + found.off
            exponents += np.abs(found.modulus) + np.abs(found.angle) + np.abs(found.highest)
        lost = _TERM + _PRODUCT * (len(counts) + 4) * exponents
        bounds = np.exp(highest + lost) * (off + np.expm1(np.minimum(lost, 700.0)))
        # nothing is left of such a term, and nothing may be known of its angle
        angle = np.where(modulus > -_NOTHING, angle, 0.0)
        values = weight * np.exp(modulus) * (np.cos(angle) + 1j * np.sin(angle))
        columns = isqrt(size - 1) + 1
        rows = -(-size // columns)
        moduli = np.abs(values)
        missed = float(np.sum(np.abs(weight) * bounds)) + (rows + columns) * _PHASE * float(
            np.sum(moduli)
        )
        square = np.zeros(rows * columns, dtype=np.complex128)
        square[:size] = values
        return cls(
            placement.step,
            log_first,
            square.reshape(rows, columns),
            2 * missed if isfinite(missed) else inf,
            2 * _PHASE * float(np.sum(moduli * t)),
        )

    def error(self, epsilon: float) -> float:
        """Return a bound on what the sum misses, relative to e^(log_first - cε)."""
        return self.off + self.turned * epsilon

    def turned_by(self, epsilon: float) -> arb:
        """Return a ball around the real part of the sum of terms times e^{-itε}, over e^log_first.

        Infinitely wide where the terms are no numbers.
        """
        rows, columns = self.values.shape
        short = np.exp(-1j * (self.step * epsilon) * np.arange(columns))
        long = np.exp(-1j * (self.step * columns * epsilon) * np.arange(rows))
        # not by matrix product, whose threads cost more than they save on a busy machine
        total = complex(np.sum(long * np.einsum("rc,c->r", self.values, short))).real
        return arb(total, self.error(epsilon)) * self.log_first.exp()


_NOTHING = 800.0
"""The fall of a term's logarithm below which it is zero in doubles."""
