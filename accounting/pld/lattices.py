"""Losses that lie on a lattice: discrete noise and randomised response, in balls.

Discrete Gaussian noise on integer vectors has one such loss above all of its own. Let the noise K
have parameter σ on every coordinate, and let an integer vector v, |v|² <= s, move the outputs
apart. With L = ln dP/dQ at v + K and unit = 1/(2σ²)

    L = (|v|² + 2<v, K>) unit under P, and -L has the same law under Q, as K is symmetric.

*Which vectors.* The order of the coordinates and their signs change nothing. Leaving out a
coordinate is post-processing, so that v costs no more than v with one more coordinate moved by one.
What remains are the ways to write s, a whole number, as a sum of squares: 2² and 1 + 1 + 1 + 1 for
s = 4. None of these is the worst at every ε.

*One pair.* h_v(γ) = H_γ(P_v‖Q_v) is a privacy profile: convex, falling from one, and nowhere
below (1-γ)⁺; and every such function is the profile of some pair (Zhu, Dong, Wang 2022, Section
3, on dominating pairs): Q has the differences of its slopes at each γ, P has γ times as much, and
what either lacks is where the other has nothing. So is the pointwise maximum over v; so is the
function H that agrees with this maximum at all γ = e^x, x in unit · (s + 2Z), and is linear
between them: a chord of a convex function lies above it. A pair of the profile H therefore
dominates the mechanism for every v, and composes (Theorem 10). Its loss lies on unit · (s + 2Z).
Its masses under Q are the differences of the slopes of H, those under P e^x times as large. And
h_v(γ) = 1 - γ + γ h_v(1/γ), so that -L has the same law under Q here, too.

*Tails.* E e^(tK) <= e^(t²σ²/2), because the sum of e^(-(k-a)²/2σ²) over all k is largest at a = 0
(Canonne, Kamath, Steinke 2020, Section 2.2). So P(<v, K> >= j) <= e^(-j²/(2sσ²)), and with
μ² = s/σ² and x >= μ²/2

    H(e^x) <= max_v P(L_v > x) <= e^(-(x - μ²/2)²/(2μ²)).

The pair's own P(L > x) at a point x of the lattice is H(e^x) and e^x times the slope beyond it,
which is at most H(e^x)/(e^(x + 2 unit) - e^x): together at most H(e^x)/(1 - e^(-2 unit)).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil, isqrt, log, sqrt

from flint import arb, ctx, fmpz_poly

from ..numbers.enclosure import ball_of, precision
from .pairs import (
    DiscreteGaussianShift,
    DiscreteGaussianVectors,
    DiscreteLaplaceShift,
    DominatingPair,
    RandomisedAnswers,
)

_GUARD_DIGITS, _GUARD_BITS = 40, 128
"""Digits (of e) and bits beyond those asked for, as masses are differences of differences."""

_ZERO = arb(0)


@dataclass(frozen=True, slots=True)
class Lattice:
    """The loss of a discrete pair: P(L = (first + 2k) unit) is masses[k], and Q the mirror image.

    Args:
        unit: half the distance of two losses.
        first: of the lowest loss, in units.
        masses: under P, from the lowest loss on.
        rest: bound on the mass of losses that are left out.
    """

    unit: arb
    first: int
    masses: tuple[arb, ...]
    rest: arb


def lattice_of(pair: DominatingPair, digits: int) -> Lattice:
    """Return the loss of a discrete pair, but for a mass of about e^-digits."""
    return _lattice(pair, digits, ctx.prec)


@lru_cache(maxsize=64)
def _lattice(pair: DominatingPair, digits: int, bits: int) -> Lattice:
    # `bits` is the precision of the balls, and so part of the key
    match pair:
        case RandomisedAnswers():
            p, o = ball_of(pair.truth), ball_of(pair.other)
            ends = (o, p) if pair.truth > pair.other else (p, o)
            masses = (ends[0], (pair.categories - 2) * o, ends[1])
            return Lattice((ends[1] / ends[0]).log() / 2, -2, masses, _ZERO)
        case DiscreteLaplaceShift():
            return _discrete_laplace(pair)
        case DiscreteGaussianShift():
            return _discrete_gaussian(pair, digits)
        case DiscreteGaussianVectors():
            return _integer_vectors(pair, digits)
        case _:
            raise TypeError(f"Expected a discrete pair instead got {pair!r}.")


def _discrete_laplace(pair: DiscreteLaplaceShift) -> Lattice:
    """Return the loss of a shift by n: n + 1 values, whose ends hold the tails."""
    b, n = ball_of(pair.rate), pair.shift
    unit = (-b).exp()
    centre = (1 - unit) / (1 + unit)
    mass = [centre * (-b * k).exp() for k in range(n + 1)]
    mass[0], mass[n] = 1 / (1 + unit), (-b * n).exp() / (1 + unit)
    return Lattice(b, -n, tuple(reversed(mass)), _ZERO)


def _discrete_gaussian(pair: DiscreteGaussianShift, digits: int) -> Lattice:
    """Return the loss of a shift by one: it grows with the place, without bound."""
    masses, rest = _noise(pair.sigma_squared, digits)
    spread = len(masses) // 2
    return Lattice(1 / (2 * ball_of(pair.sigma_squared)), 1 - 2 * spread, masses, rest)


def _noise(sigma_squared: Fraction, digits: int) -> tuple[tuple[arb, ...], arb]:
    """Return the masses of discrete Gaussian noise at -n, ..., n, and a bound on what is left out.

    Args:
        sigma_squared: σ².
        digits: about e^-digits is left out.
    """
    s2 = ball_of(sigma_squared)
    spread = ceil(sqrt(2 * digits * float(sigma_squared))) + 2
    weight = [(-(arb(k) ** 2) / (2 * s2)).exp() for k in range(spread + 1)]
    # beyond, the terms fall geometrically
    beyond = (-(arb(spread + 1) ** 2) / (2 * s2)).exp()
    rest = 2 * beyond / (1 - (-(arb(spread) + 1) / s2).exp())
    total = 2 * sum(weight[1:], _ZERO) + weight[0] + _ZERO.union(rest)
    masses = tuple(weight[abs(k)] / total for k in range(-spread, spread + 1))
    return masses, (rest / total).upper()


def sums_of_squares(total: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a whole number as a sum of squares of falling numbers >= 1."""

    def of_at_most(rest: int, most: int) -> Iterator[tuple[int, ...]]:
        if not rest:
            yield ()
        for first in range(min(most, isqrt(rest)), 0, -1):
            for others in of_at_most(rest - first * first, first):
                yield (first, *others)

    return of_at_most(total, isqrt(total))


def _integer_vectors(pair: DiscreteGaussianVectors, digits: int) -> Lattice:
    """Return the loss above those of all integer vectors; its places are 1/σ² apart."""
    s, deviation = pair.squared, sqrt(pair.squared * float(pair.sigma_squared))
    # slopes over cells (k, k + 1), the loss being unit · (s + 2k): from below a loss of zero on
    first, last = -(s // 2) - 1, ceil(sqrt(2 * digits) * deviation)
    # P(L > x) and e^x Q(L > x) agree in many of their digits
    known = digits + _GUARD_DIGITS + ceil((s + 2 * last) / (2 * pair.sigma_squared))
    with precision(ctx.prec + ceil(1.5 * known + 6 * log(1 + deviation)) + _GUARD_BITS):
        unit = 1 / (2 * ball_of(pair.sigma_squared))
        places = range(first, last + 1)
        grown = [(unit * (s + 2 * k)).exp() for k in places]
        profile = _profile(pair, places, grown, known)
        slopes = [
            (h - lower) / (x - y)
            for (h, lower), (y, x) in zip(pairwise(profile), pairwise(grown), strict=True)
        ]
        q = [(before - after).max(_ZERO) for before, after in pairwise(slopes)]
        p = [mass * x for mass, x in zip(q, grown[1:], strict=False)]
        rest = 2 * (profile[-2] + grown[-2] * slopes[-1])
    # the first of these masses has a loss of zero or, of an odd s, of one unit
    mirrored = q[:0:-1] if s % 2 == 0 else q[::-1]
    return Lattice(unit, -(s + 2 * (last - 1)), (*mirrored, *p), rest.upper())


def _profile(
    pair: DiscreteGaussianVectors, places: range, grown: list[arb], digits: int
) -> list[arb]:
    """Return the largest δ of any integer vector at each of some losses.

    Args:
        pair: s and σ².
        places: k, in a row, of the losses unit · (s + 2k).
        grown: e^loss at each.
        digits: about e^-digits of every vector's mass is left out.
    """
    bits, s = ctx.prec, pair.squared
    masses, _ = _noise(pair.sigma_squared, digits)
    noise = _without_ends([max(_ends(mass, bits)[0], 0) for mass in masses])
    sums: dict[tuple[int, ...], list[int]] = {(): [1 << bits]}
    factors = [_ends(x, bits) for x in grown]
    least, most = [0] * len(places), [0] * len(places)
    for vector in sums_of_squares(s):
        spread = _sum_of_noise(vector, noise, bits, sums)
        # of <v, K> at and beyond each number from the highest down; what is missing lies anywhere
        beyond = list(accumulate(reversed(spread), initial=0))
        missing, highest, last = (1 << bits) - beyond[-1], len(spread) // 2, len(spread)
        for i, (k, (low, high)) in enumerate(zip(places, factors, strict=True)):
            p, q = (beyond[min(max(highest - j, 0), last)] for j in (k, k + s))
            least[i] = max(least[i], (p << bits) - high * (q + missing))
            most[i] = max(most[i], (p + missing << bits) - low * q)
    whole = arb(1 << 2 * bits)
    return [arb(a).union(arb(b)) / whole for a, b in zip(least, most, strict=True)]


def _ends(ball: arb, bits: int) -> tuple[int, int]:
    """Return whole numbers that enclose 2^bits times a ball."""
    scaled = ball * arb(1 << bits)
    return int(scaled.lower().floor().fmpz()), int(scaled.upper().ceil().fmpz())


def _sum_of_noise(
    vector: tuple[int, ...], noise: list[int], bits: int, known: dict[tuple[int, ...], list[int]]
) -> list[int]:
    """Return lower bounds on the masses of <v, K>, in multiples of 2^-bits, the middle being 0.

    Args:
        vector: v > 0.
        noise: lower bounds on the masses of one coordinate of K, likewise.
        bits: of all masses.
        known: sums of shorter vectors, to which this one and all its ends are added.
    """
    if vector not in known:
        others = _sum_of_noise(vector[1:], noise, bits, known)
        spaced = [0] * (vector[0] * (len(noise) - 1) + 1)
        spaced[:: vector[0]] = noise
        product = (fmpz_poly(others) * fmpz_poly(spaced)).coeffs()
        known[vector] = _without_ends([int(mass) >> bits for mass in product])
    return known[vector]


def _without_ends(masses: list[int]) -> list[int]:
    """Return symmetric masses without the zeros at both ends, which a polynomial would not keep."""
    start = next(k for k, mass in enumerate(masses) if mass)
    return masses[start : len(masses) - start]
