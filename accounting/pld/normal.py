"""Lower bounds of very many steps: under a tilted law their losses are nearly normal (Esseen).

Let L be the sum of n independent losses under P, K(z) = log E_P[e^{zL}], and P_λ the law of
density e^{λL - K(λ)}. With h(x) = e^{-λx} (1 - e^{-x})⁺

    δ(ε) = E_P[(1 - e^{ε-L})⁺] = e^{K(λ) - λε} E_λ[h(L - ε)].

Under P_λ the steps are independent still, with variances v_i and third absolute central moments
ρ_i; L has mean m and variance s² = Σ v_i. Its distribution function lies within η = 0.56 Σ ρ_i /
s³ of the normal one (Shevtsova 2010). h grows from 0 to H = λ^λ / (1+λ)^{1+λ} and falls to 0
again, so that, integrating by parts,

    |E_λ[h(L - ε)] - E[h(N - ε)]| <= 2 η H,   N ~ N(m, s²).

A Gaussian shift is normal under every P_λ, adds to m and s², and nothing to Σ ρ_i: convolution with
it brings no two distribution functions further apart.

*Moments.* With y = X - x₀ for a step's loss X and any x₀, and C_k(θ) = E_λ[(cosh θy - 1)^k], which
K at λ ± θ and λ ± 2θ tells, comparing Taylor series term by term gives for all real x

    2 (cosh x - 1) - (cosh x - 1)²/3 <= x² <= 2 (cosh x - 1),
    |sinh x - x| <= |x| (cosh x - 1) / 3,    |x|³ <= 3.08 (cosh x - 1),

the last from cosh x - 1 >= x²/2 + x⁴/24 + x⁶/720. The first two, at a small θ, enclose variance and
mean (by Cauchy and Schwarz, E|x| (cosh x - 1) <= √(2 C₁ C₂)); the last bounds ρ at θ near one over
the standard deviation.

Steps of other kinds are left out: what a part of a composition costs is a lower bound of the whole.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite, log, log2, sqrt

from flint import arb

from ..numbers.enclosure import ball_of, precision
from .moments_certified import moments_on_line
from .pairs import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    RandomisedAnswers,
)
from .profiles import mu_squared_ball
from .quadrature import Demand
from .saddle import Counts, epsilon_by_moments, order_of

_BITS = 256
_DIGITS = 120.0
"""Natural-log digits of moments, of which second and fourth differences are taken."""

_LEAST_STEPS = 1 << 12
"""Of fewer steps the normal law says too little."""

_SMALL = 2.0**-20
"""θ times the standard deviation of a step, where variance and mean are enclosed."""

_LONGEST = 256.0
"""The widest discrete Gaussian noise, in lattice steps, whose sums are worth their time."""

_PLACES, _HIGHEST = 44, 256.0
"""Orders are multiples of 2^-44 below 2^8, so that sums of them are doubles."""

_MOST_TRIALS, _NEAR = 24, 1e-2
"""Tilts that are tried until the bound at the mean is this near to log δ."""


@dataclass(frozen=True, slots=True)
class _Tilted:
    """A composition under P_λ: λ, K(λ), mean m, variance s², and η."""

    order: arb
    log_moment: arb
    mean: arb
    variance: arb
    error: arb

    def delta(self, epsilon: arb) -> arb:
        """Return a ball whose lower end is at most δ(ε)."""
        lam, s = self.order, self.variance.sqrt()
        normal = self._beyond(lam, epsilon) - self._beyond(lam + 1, epsilon)
        peak = (lam * lam.log() - (1 + lam) * (1 + lam).log()).exp()
        scale = (self.log_moment - lam * epsilon).exp()
        return scale * (normal - 2 * self.error * peak) if s.is_finite() else arb(0)

    def _beyond(self, order: arb, epsilon: arb) -> arb:
        """Return E[e^{-order (N - ε)}; N > ε] = e^{ay + y²/2} Φ(-a - y), y = s·order."""
        s = self.variance.sqrt()
        a, y = (epsilon - self.mean) / s, s * order
        return (a * y + y * y / 2).exp() * ((a + y) / arb(2).sqrt()).erfc() / 2


def epsilon_floor(counts: Counts, delta: float) -> float:
    """Return a lower bound on ε(δ) of very many steps that are not sampled; 0 where none is found.

    Args:
        counts: pairs, composed in one order.
        delta: in (0, 1).
    """
    kept = _normal_part(counts)
    if not kept:
        return 0.0
    with precision(_BITS):
        target, order = ball_of(delta), order_of(epsilon_by_moments(kept, log(delta))[1])
        found = _at_mean(kept, order, delta)
        if found is None:
            return 0.0
        tilted, epsilon = found
        best, step = 0.0, float(tilted.variance.sqrt())
        # the tilt is good for all ε near the mean; the last digits by bisection
        low, high = epsilon - step, epsilon + step
        for _ in range(40):
            if low > 0 and tilted.delta(arb(low)).lower() >= target:
                best, low = max(best, low), (low + high) / 2
            else:
                low, high = best or low - step, low
                if not best and low < epsilon - 4 * step:
                    break
                low = (low + high) / 2 if best else low
        return best


def _at_mean(counts: Counts, order: float, delta: float) -> tuple[_Tilted, float] | None:
    """Return a tilt λ whose mean m has a bound near δ(m) = δ, and m; None where none is found."""
    low, high = 0.0, inf
    for _ in range(_MOST_TRIALS):
        tilted = _tilted(counts, order)
        if tilted is None:
            return None
        mean = float(tilted.mean)
        bound = tilted.delta(arb(mean)).lower()
        excess = float(bound.log()) - log(delta) if bound > 0 else -inf
        if not isfinite(excess):
            return None
        if abs(excess) < _NEAR:
            return tilted, mean
        low, high = (order, high) if excess > 0 else (low, order)
        # log δ falls by about λ s² dλ
        new = order + excess / (order * float(tilted.variance))
        order = new if low < new < high else (low + high) / 2 if high < inf else 2 * order
    return None


def _normal_part(counts: Counts) -> dict[DominatingPair, int]:
    """Return the steps that are not sampled, if they are very many."""
    kept = {pair: n for pair, n in counts.items() if _is_known(pair)}
    many = sum(n for pair, n in kept.items() if not isinstance(pair, GaussianShift))
    return kept if many >= _LEAST_STEPS else {}


def _is_known(pair: DominatingPair) -> bool:
    """Return whether the moments of a pair are known at negative orders, too, and quickly."""
    if isinstance(pair, DiscreteGaussianShift):
        return float(pair.sigma_squared) <= _LONGEST**2
    known = GaussianShift | LaplaceShift | DiscreteLaplaceShift | RandomisedAnswers
    return isinstance(pair, known)


def _tilted(counts: Counts, order: float) -> _Tilted | None:
    """Return the composition under P_λ, λ = order; None where the moments leave it open."""
    order = round(order * 2.0**_PLACES) / 2.0**_PLACES
    if not 0 < order < _HIGHEST:
        return None
    lam = arb(order)
    total, mean, variance, third, normal = arb(0), arb(0), arb(0), arb(0), arb(0)
    for pair, n in counts.items():
        if isinstance(pair, GaussianShift):
            mu_squared = mu_squared_ball(pair)
            total += n * mu_squared / 2 * lam * (lam + 1)
            mean += n * mu_squared * (lam + arb(0.5))
            normal += n * mu_squared
            continue
        step = _Step.of(pair, order)
        total += n * step.log_moment
        mean += n * step.mean
        variance += n * step.variance
        third += n * step.third
    if not (variance > 0 and mean.is_finite() and total.is_finite()):
        return None
    error = arb("0.56") * third / (variance * variance.sqrt())
    return _Tilted(lam, total, mean, variance + normal, error)


@dataclass(frozen=True, slots=True)
class _Step:
    """The loss of one step under P_λ: log M(1+λ), mean, variance, and a bound on ρ."""

    log_moment: arb
    mean: arb
    variance: arb
    third: arb

    @classmethod
    def of(cls, pair: DominatingPair, order: float) -> "_Step":
        """Return those of a pair."""
        whole = _moment(pair, order)
        centre, deviation = _about(pair, order, whole)
        x0, small = arb(centre), _theta(_SMALL / deviation)
        first, twice = (_cosines(pair, order, whole, x0, k * small) for k in (1, 2))
        # (cosh x - 1)² = (cosh 2x - 4 cosh x + 3) / 2
        squared = ((twice.less_one - 4 * first.less_one) / 2).max(arb(0))
        raw = (2 * first.less_one - squared / 3).union(2 * first.less_one) / arb(small) ** 2
        blur = ((2 * first.less_one * squared).sqrt() / 3 / arb(small)).upper()
        off = first.sinh / arb(small) + arb(0, blur)
        # every θ gives a bound; of skew losses a smaller one does
        bounds = [arb.pos_inf()]
        for theta in {_theta(share / deviation) for share in (1, 0.5, 0.25)}:
            around = _cosines(pair, order, whole, x0, theta).less_one
            bounds.append(arb("3.08") * around.max(arb(0)) / arb(theta) ** 3)
        # Minkowski: around the mean in the place of x₀
        third = (min(bounds, key=float).root(3) + abs(off)) ** 3
        return cls(whole.log(), x0 + off, raw - off * off, third)


@dataclass(frozen=True, slots=True)
class _Cosines:
    """E_λ[cosh θy - 1] and E_λ[sinh θy]."""

    less_one: arb
    sinh: arb


def _cosines(pair: DominatingPair, order: float, whole: arb, x0: arb, theta: float) -> _Cosines:
    up = _moment(pair, order + theta) / whole * (-arb(theta) * x0).exp()
    down = _moment(pair, order - theta) / whole * (arb(theta) * x0).exp()
    return _Cosines((up + down) / 2 - 1, (up - down) / 2)


def _theta(about: float) -> float:
    """Return a power of two near a number, so that orders λ ± θ are exact."""
    return float(2.0 ** max(round(log2(about)), -_PLACES))


def _about(pair: DominatingPair, order: float, whole: arb) -> tuple[float, float]:
    """Return about the mean and the standard deviation of a step's loss under P_λ."""
    gap = 2.0 ** (4 - _PLACES)
    up, down = _moment(pair, order + gap), _moment(pair, order - gap)
    mean = float((up - down) / (2 * arb(gap) * whole))
    second = float((up + down - 2 * whole) / (arb(gap) ** 2 * whole))
    return mean, sqrt(max(second - mean * mean, 1e-300))


@lru_cache(maxsize=1 << 10)
def _moment(pair: DominatingPair, order: float) -> arb:
    """Return M(1 + order) of a pair that is not sampled, for any order > -1."""
    return moments_on_line(pair, 0.0, 0, Demand(order, 0.0, _DIGITS))[0].real
