"""Enclosures where moments explode, or do not decay: losses cut off above, and a little noise.

A contour needs moments of the order that suits δ. Of sampled steps at tiny rates they explode long
before: losses far beyond any that matters, met once in e^1000 steps, weigh more than all others.
And where the loss has atoms (lattices, symmetrised pairs, steps that hardly ever meet the record),
they do not fall along the line. Both are mended at a price that is known.

*Cut.* Leave out the outcomes by which some step has a loss above its cut, a probability of at most
β = Σ n_i P(L_i > cut_i) in all. The sum L of what is left has a measure of mass at most one, and

    δ_cut(ε) <= δ(ε) <= δ_cut(ε) + β,   δ_cut(ε) = E[(1 - e^{ε-L})⁺; nothing above its cut].

*Noise.* Add an independent Gaussian shift G. Composition only adds to δ; and for κ > 0 and every x

    δ_G(κ + x) <= (1 - e^x)⁺ + δ_G(κ):

for x >= 0 as δ_G falls, else because 1 - ay <= (1 - a) + (1 - y)⁺ for a = e^x <= 1 and y >= 0. With
x = ε - L in the mean over L, whose mass is at most one,

    δ_cut+G(ε + κ) - δ_G(κ) <= δ_cut(ε) <= δ_cut+G(ε).

So ε of the cut composition with G, at δ - β, is an upper end, and at δ + δ_G(κ), less κ, a lower
one. Both hold for the composition of whatever is cut wherever, with whatever noise.
"""

from dataclasses import replace
from fractions import Fraction
from math import inf, log, nextafter, sqrt
from statistics import NormalDist
from typing import NamedTuple

from flint import arb

from ..numbers.enclosure import Enclosure, ball_of, intersection, precision
from .contour_certified import epsilon_ceiling, epsilon_enclosure
from .pairs import DominatingPair, GaussianShift, Order, Sampled
from .placement import Limits
from .profiles import delta_of
from .saddle import Counts, epsilon_by_moments, order_of

_BITS = 160
_NEGLIGIBLE = 1e-7
"""The part of δ that the cuts, and δ_G(κ), may take."""


class _Attempt(NamedTuple):
    """How much noise, and how long a contour, are tried.

    Args:
        tolerance: κ over ε, about: what the noise adds to the enclosure's width.
        limits: of the contour.
    """

    tolerance: float
    limits: Limits


_MOST_BALLS = 1 << 18
"""Nodes of a contour times distinct pairs: a moment in balls at each, some 5 µs, is multiplied."""

_ATTEMPTS = (
    _Attempt(1e-7, Limits(1 << 14, 1 << 20, 1e-7)),
    _Attempt(2e-5, Limits(1 << 17, 1 << 24, 4e-6)),
    _Attempt(1e-4, Limits(1 << 17, 1 << 25, 2e-5)),
    _Attempt(4e-4, Limits(1 << 17, 1 << 25, 2e-5)),
)
"""Noise that costs nothing first; more of it makes the contour shorter where nothing else does."""


def epsilon_by_truncation(counts: Counts, delta: float, found: Enclosure, known: arb) -> Enclosure:
    """Return an enclosure of ε(δ), as narrow as one of a few attempts makes it.

    Args:
        counts: pairs, composed in one order.
        delta: in (0, 1).
        found: what is known of it; noise that widens more than this is not tried.
        known: an ε below which no lower end is asked for.
    """
    kept = _cut(counts, _NEGLIGIBLE * delta)
    about, grade = epsilon_by_moments(kept, log(delta))
    if not 0 < about < inf:
        return found
    shared = max(_MOST_BALLS // len(kept), 1)
    for attempt in _ATTEMPTS:
        limits = attempt.limits._replace(nodes=min(attempt.limits.nodes, shared))
        if found.relative_width <= attempt.tolerance or found.upper <= known:
            break
        noise, kappa = _noise(attempt.tolerance * about, order_of(grade), delta)
        with precision(_BITS):
            lost = sum((n * _mass_cut(pair) for pair, n in kept.items()), arb(0))
            high = ball_of(delta) + delta_of(noise, arb(kappa))
            low = nextafter(float((ball_of(delta) - lost).lower()), 0.0)
            noisy = {**kept, noise: 1}
            ends = epsilon_enclosure(
                noisy,
                low,
                greater=nextafter(float(high.upper()), inf),
                limits=limits,
            )
            lower = (ends.lower - arb(kappa)).max(arb(0)).lower()
            # it was drawn and errs by all of δ: more noise, which makes it shorter, mends nothing
            hopeless = not ends.lower > 0 and ends.upper < epsilon_ceiling(noisy, low)
        found = intersection(found, Enclosure(lower, ends.upper))
        if hopeless:
            break
    return found


def _noise(kappa: float, order: float, delta: float) -> tuple[GaussianShift, float]:
    """Return a Gaussian shift that costs hardly more than κ at this order, and κ.

    δ_G(κ) <= P(N > κ/μ - μ/2) is to be `_NEGLIGIBLE` of δ; and log M grows by c (c + 1) μ²/2, so
    that ε grows by about (c + 1) μ²/2.
    """
    deviations = sqrt(2 * (2 - log(delta) - log(_NEGLIGIBLE)))
    mu_squared = min((kappa / deviations) ** 2, kappa / (5 * (order + 1)))
    return GaussianShift(Fraction(mu_squared)), kappa


def _cut(counts: Counts, share: float) -> dict[DominatingPair, int]:
    """Return a composition whose steps are cut where all that is left out is at most `share`.

    Mixtures that stand second have no large losses, and those of Laplace noise are bounded.
    """
    found: dict[DominatingPair, int] = {}
    for pair, n in counts.items():
        match pair:
            case Sampled(base=GaussianShift() as base) if pair.order is not Order.MIXTURE_SECOND:
                each, q = share / (len(counts) * n), float(pair.rate)
                half = sqrt(base.mu_squared) / 2
                # q P(N > s - μ/2) + (1-q) P(N > s + μ/2), twice the latter if symmetrised
                met = half - _quantile(min(each / (2 * q), 0.5))
                missed = -half - _quantile(each / 4)
                found[replace(pair, cut=max(met, missed, 1.0))] = n
            case _:
                found[pair] = n
    return found


def _quantile(probability: float) -> float:
    """Return about where a standard normal variable lies below with a probability in [0, 1)."""
    return NormalDist().inv_cdf(max(probability, 5e-324))


def _mass_cut(pair: DominatingPair) -> arb:
    """Return a ball that contains the probability, under P, of the outcomes that are left out."""
    match pair:
        case Sampled(base=GaussianShift() as base) if pair.cut < inf:
            half = ball_of(base.mu_squared).sqrt() / 2
            with_record, without = (
                ((arb(pair.cut) + shift) / arb(2).sqrt()).erfc() / 2 for shift in (-half, half)
            )
            mirrored = without if pair.order is Order.SYMMETRISED else arb(0)
            q = ball_of(pair.rate)
            return q * with_record + (1 - q) * without + mirrored
        case _:
            return arb(0)
