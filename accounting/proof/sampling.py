"""Rényi divergences of Gaussian steps on hidden samples, at whole orders: witnesses of rules.

These are the bounds that the rules *poisson-rdp* and *fixed-batch-rdp* name, in ball arithmetic;
`accounting.renyi` has tighter ones for fixed batches.
"""

from fractions import Fraction
from math import comb

from flint import arb

from ..numbers.enclosure import Enclosure, ball_of, precision

MAX_ORDER = 512
"""The largest order that the checker expands."""

_BITS = 192
"""Bits of the balls: sums of up to 513 positive terms lose ten of them at most."""


def poisson_divergence(ratio: Fraction, rate: Fraction, order: int) -> Enclosure:
    """Return the Rényi divergence of the sampled Gaussian, `ratio` = (sensitivity / noise_std)².

    log Σ_k C(α,k) (1-q)^{α-k} q^k e^{k(k-1)μ²/2} / (α-1), whole α >= 2 (Mironov, Talwar, Zhang
    2019, Theorems 4 and 5): all terms are positive, so that nothing cancels.
    """
    with precision(_BITS):
        q, half = ball_of(rate), ball_of(ratio) / 2
        moment = arb(0)
        for k in range(order + 1):
            weight = comb(order, k) * (1 - q) ** (order - k) * q**k
            moment += weight * (half * (k * (k - 1))).exp()
        return _divergence(moment, order)


def fixed_batch_divergence(ratio: Fraction, share: Fraction, order: int) -> Enclosure:
    """Return the published bound for a fixed batch, `share` = batch / records.

    Wang, Balle, Kasiviswanathan 2019, Theorem 9, for noise without a largest loss.
    """
    with precision(_BITS):
        g, half = ball_of(share), ball_of(ratio) / 2
        second = (2 * half).exp()
        pair = min(4 * (second - 1), 2 * second, key=lambda bound: float(bound.mid()))
        moment = 1 + g**2 * comb(order, 2) * pair
        for j in range(3, order + 1):
            moment += 2 * g**j * comb(order, j) * (half * (j * (j - 1))).exp()
        return _divergence(moment, order)


def _divergence(moment: arb, order: int) -> Enclosure:
    """Return log(moment)/(α - 1), cut at zero, below which no divergence lies."""
    found = Enclosure.from_ball(moment.log() / (order - 1))
    return found if found.lower >= 0 else Enclosure(arb(0), found.upper.max(arb(0)))
