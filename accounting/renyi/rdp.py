"""Rényi divergences: what one run of a mechanism costs at an order, as a rigorous upper bound.

Everything is said of the log moment K(α) = (α - 1) D_α, the larger of both directions, which adds
up in compositions and is convex in α. Whole orders of sampled mechanisms are closed forms;
fractional ones are integrals that Arb encloses (Johansson 2018). In the formulas Q is the noise,
P the shifted noise, v = log dP/dQ, q the sampling rate and r = 1 - q + q e^v.

>>> from dpledger.mechanisms import Adjacency, GaussianStep, declared
>>> unit = declared(1, "example", adjacency=Adjacency.REPLACE_ONE)
>>> log_moment(GaussianStep(unit, 1.0), Fraction(3))
3.00000000000000
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import comb, inf, isqrt

from flint import acb, arb

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import InvalidParameter
from ...mechanisms.events import (
    AccumulatedPoisson,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    SampledWithoutReplacement,
    SampledWithReplacement,
)
from ...mechanisms.sensitivity import Sensitivity, float_up
from ..numbers.enclosure import ball_of, fraction_of, precision
from ..numbers.work import spend
from ..pld.pairs import any_copy

LARGEST_WHOLE_ORDER = 4096
"""Beyond it a sampled mechanism's moments are not evaluated: infinity is the bound."""

_BITS, _INTEGRAL_BITS = 192, 96

_STEEP, _FARTHEST = 4.0, 400.0
"""μ² above which integrands are too steep for `_EVALUATIONS`, and the highest peak, in standard
deviations, up to which the trapezoid rule has few nodes."""

_TAIL = 16
"""How many standard deviations beyond the integrand's peak an integral is cut off."""
_EVALUATIONS = 3_000
_TAYLOR = 8


def is_sampled(mechanism: Mechanism) -> bool:
    """Return whether moments of fractional order need an integral."""
    batches = SampledWithoutReplacement | SampledWithReplacement
    kinds = PoissonSampled | AccumulatedPoisson | batches | GaussianMixtureStep
    return isinstance(mechanism, kinds)


@lru_cache(maxsize=1 << 16)
def log_moment(mechanism: Mechanism, order: Fraction) -> arb:
    """Return an upper bound on (order - 1) D_order of one run, in both directions: an exact number.

    Args:
        mechanism: with noise, a sensitivity above zero, and a sampling rate inside (0, 1).
        order: above 1.

    Raises `InvalidParameter` for an order that is not, and for a mechanism that only composes
    others or has no mechanism.

    Sources: Gaussian and Laplace: Mironov 2017, Table II; discrete Gaussian: Canonne, Kamath,
    Steinke 2020, Theorem 4; Poisson sampling: Mironov, Talwar, Zhang 2019, Theorems 4 and 5, which
    ask of the noise no more than a reflection that swaps P and Q; fixed batches: Zhu, Dong, Wang
    2022, Theorem 11. A Gaussian mixture step is split, see `_mixture_step`.
    """
    if isinstance(order, bool) or not 1 < order < inf:
        raise InvalidParameter("order", order, "in (1, inf)")
    if isinstance(mechanism, AccumulatedPoisson):
        # a function of its samples, each with its share of the noise
        return (mechanism.batches * log_moment(mechanism.share, order)).upper()
    closed = order.denominator == 1 or not is_sampled(mechanism)
    spend(1 if closed else 100)
    with precision(_BITS if closed else _INTEGRAL_BITS):
        found = _bounded(_log_moment(mechanism, order))
        if closed:
            return found
        # where an integral comes out wide, the chord of a convex function lies above it
        below = order.numerator // order.denominator
        left = log_moment(mechanism, Fraction(below)) if below > 1 else arb(0)
        right = log_moment(mechanism, Fraction(below + 1))
        share = ball_of(order - below)
        return found.min(_bounded(left * (1 - share) + right * share))


def _bounded(ball: arb) -> arb:
    # a wide ball may reach below zero, which no moment does; NaN is no bound
    return arb(inf) if ball.is_nan() else ball.max(arb(0)).upper()


def _log_moment(mechanism: Mechanism, order: Fraction) -> arb:
    match mechanism:
        case GaussianStep() | DiscreteGaussianStep():
            ratio = _squared_ratio(mechanism.sensitivity, mechanism.noise_std)
            return ball_of(order * (order - 1)) * ratio / 2
        case LaplaceStep():
            return _Laplace(_ratio(mechanism.sensitivity, mechanism.scale)).excess(order).log1p()
        case DiscreteLaplaceStep():
            shift = isqrt(int(mechanism.sensitivity.squared))
            return _discrete_laplace(1 / ball_of(mechanism.scale), shift, ball_of(order))
        case PureStep():
            # randomised response between two answers: discrete Laplace noise moved by one
            return _discrete_laplace(
                _ratio(mechanism.sensitivity, mechanism.scale), 1, ball_of(order)
            )
        case RandomisedResponse():
            return _randomised_response(mechanism, ball_of(order))
        case PoissonSampled(event=GaussianStep(sensitivity, noise_std)) if (
            sensitivity.adjacency is Adjacency.REPLACE_ONE
        ):
            # two releases of half the variance, one an order (`pld.revealed_sample`); this order
            # costs no less than the other
            noise = _Gaussian(_squared_ratio(sensitivity, noise_std) / 2)
            return 2 * _poisson(noise, Fraction(mechanism.rate), order)
        case PoissonSampled():
            return _poisson(_noise_of(mechanism.event), Fraction(mechanism.rate), order)
        case SampledWithoutReplacement():
            rate = Fraction(mechanism.batch, mechanism.records)
            return _fixed_batch(_noise_of(mechanism.event), rate, order)
        case SampledWithReplacement(event=GaussianStep(sensitivity, noise_std)):
            # what all copies bring, wherever there is one (`pld.from_mechanisms`, equal shares)
            n, m = mechanism.records, mechanism.batch
            noise = _Gaussian(m * m * _squared_ratio(sensitivity, noise_std))
            return _fixed_batch(noise, any_copy(m, n), order)
        case GaussianMixtureStep():
            return _mixture_step(mechanism, order)
        case _:
            raise InvalidParameter("mechanism", mechanism, "a single mechanism with noise")


def _squared_ratio(sensitivity: Sensitivity, noise_std: float) -> arb:
    return ball_of(sensitivity.squared / Fraction(noise_std) ** 2)


def _ratio(sensitivity: Sensitivity, scale: float) -> arb:
    return ball_of(sensitivity.squared).sqrt() / ball_of(scale)


def _discrete_laplace(b: arb, shift: int, order: arb) -> arb:
    """K of mass ∝ e^(-b|k|) moved by s, with y = e^(b(2α-1)).

    e^K = c (A e^((α-1)bs) + B e^(-αbs)), c = tanh(b/2), A = 1/(1-e^(-b)) + 1/(y-1) and
    B = 1/(1-e^(-b)) - y/(y-1) >= 0: log-convex in s and 1 at s = 0, so that among integer vectors
    of the same l1 length a single moved coordinate is the worst.
    """
    if shift == 0:
        return arb(0)
    tail, y = -1 / (-b).expm1(), (b * (2 * order - 1)).expm1()
    grow = (tail + 1 / y) * ((order - 1) * b * shift).exp()
    shrink = (tail - 1 - 1 / y) * (-order * b * shift).exp()
    return ((b / 2).tanh() * (grow + shrink)).log()


def _randomised_response(mechanism: RandomisedResponse, order: arb) -> arb:
    truth = Fraction(mechanism.truth)
    other = (1 - truth) / (mechanism.categories - 1)
    p, o, ratio = ball_of(truth), ball_of(other), ball_of(truth / other).log()
    excess = p * ((order - 1) * ratio).expm1() + o * (-(order - 1) * ratio).expm1()
    return excess.log1p()


class _Noise(ABC):
    """A pair (P, Q) of noises of one shape; a reflection swaps them and the sign of v."""

    @abstractmethod
    def excess(self, order: Fraction | int) -> arb:
        """Return E_Q[e^(order v)] - 1, order >= 1."""

    @abstractmethod
    def upper_half(self, order: int) -> arb:
        """Return E_Q[e^(order v); v > 0], order >= 0."""

    @abstractmethod
    def integral(self, of: "_Integrand", order: arb, *, half: bool) -> arb:
        """Return a ball around, or above, E_Q[of(v)], of v > 0 alone if `half`."""


_Integrand = Callable[[acb, bool], acb]
"""An analytic function of v; the flag asks for NaN where a branch cut comes near."""


@dataclass(frozen=True, slots=True)
class _Gaussian(_Noise):
    """N(μ, 1) and N(0, 1); v = μu - μ²/2 at u."""

    mu_squared: arb

    def is_little(self, order: Fraction) -> bool:
        """Return whether r^order is too steep for an integral, and not for a trapezoid rule."""
        peak = float(order) * float(self.mu_squared) ** 0.5
        return bool(self.mu_squared > _STEEP) and peak < _FARTHEST

    def excess(self, order: Fraction | int) -> arb:
        return (ball_of(Fraction(order) * (order - 1)) * self.mu_squared / 2).expm1()

    def upper_half(self, order: int) -> arb:
        beyond = (order - arb(0.5)) * self.mu_squared.sqrt()
        return (order * (order - 1) * self.mu_squared / 2).exp() * _normal_cdf(beyond)

    def integral(self, of: _Integrand, order: arb, *, half: bool) -> arb:
        mu = self.mu_squared.sqrt()
        low = (mu / 2 if half else arb(-_TAIL)).mid()
        high = (order * mu + _TAIL).mid()

        def at(u: acb, analytic: bool) -> acb:
            return (-u * u / 2).exp() * of(mu * u - self.mu_squared / 2, analytic)

        inside = acb.integral(at, low, high, eval_limit=_EVALUATIONS).real
        # beyond `high` r^α <= e^(αv), r^(1-α) <= 1; below `low` the integrands are at most 1
        peak = (order * (order - 1) * self.mu_squared / 2).exp()
        beyond = peak * _normal_cdf(order * mu - high) + _normal_cdf(-high) + _normal_cdf(low)
        return inside / (2 * arb.pi()).sqrt() + (beyond - (_normal_cdf(low) if half else 0))


def _normal_cdf(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


@dataclass(frozen=True, slots=True)
class _Laplace(_Noise):
    """Laplace noise of scale 1 at e and at 0; v = 2x - e for x in (0, e), and ±e outside."""

    epsilon: arb

    def excess(self, order: Fraction | int) -> arb:
        n, e = ball_of(Fraction(order)), self.epsilon
        return (n * ((n - 1) * e).expm1() + (n - 1) * (-n * e).expm1()) / (2 * n - 1)

    def upper_half(self, order: int) -> arb:
        top = ((order - 1) * self.epsilon).exp()
        return (top + (top - (-self.epsilon / 2).exp()) / (2 * order - 1)) / 2

    def integral(self, of: _Integrand, order: arb, *, half: bool) -> arb:
        e = self.epsilon
        low, high = (e / 2 if half else arb(0)), e

        def at(x: acb, analytic: bool) -> acb:
            return (-x).exp() * of(2 * x - e, analytic)

        inside = acb.integral(at, acb(low), acb(high), eval_limit=_EVALUATIONS).real
        ends = (-e).exp() * of(acb(e), False).real + (0 if half else of(acb(-e), False).real)
        return (inside + ends) / 2


def _noise_of(step: GaussianStep | LaplaceStep) -> _Noise:
    if isinstance(step, GaussianStep):
        return _Gaussian(_squared_ratio(step.sensitivity, step.noise_std))
    return _Laplace(_ratio(step.sensitivity, step.scale))


def _poisson(noise: _Noise, rate: Fraction, order: Fraction) -> arb:
    """K of (1-q)Q + qP towards Q, which is not below that of the other direction.

    e^K - 1 = Σ_(k>=2) C(α,k) q^k (1-q)^(α-k) (E_Q[e^(kv)] - 1) for whole α.
    """
    if order.denominator == 1:
        return _binomial(rate, int(order), lambda k: noise.excess(k) if k > 1 else arb(0)).log1p()
    if isinstance(noise, _Gaussian) and noise.is_little(order) and 0 < rate < 1:
        return _on_a_line(noise, rate, order)
    alpha, q = ball_of(order), ball_of(rate)

    def integrand(v: acb, analytic: bool) -> acb:
        return (alpha * (1 + q * v.expm1()).log(analytic=analytic)).expm1()

    return noise.integral(integrand, alpha, half=False).log1p()


def _on_a_line(noise: _Gaussian, rate: Fraction, order: Fraction) -> arb:
    """The same K of little Gaussian noise, from above, by the trapezoid rule of `pld.quadrature`.

    An order that is no double, and μ², are rounded up: K grows with both.
    """
    # that room imports this one, and few orders need it
    from ..pld.moments_certified import real_moment
    from ..pld.pairs import GaussianShift, Order, Sampled

    shift = GaussianShift(fraction_of(noise.mu_squared.upper()))
    return real_moment(Sampled(shift, rate, Order.MIXTURE_FIRST), float_up(order - 1)).log()


def _told(noise: _Noise, rate: Fraction, order: Fraction) -> arb:
    """K of a shift met with probability q, where it is told whether: e^K - 1 = q E_Q[e^(αv) - 1].

    Above every pair of a hidden sample: Rényi moments are jointly convex.
    """
    return (ball_of(rate) * noise.excess(order)).log1p()


def _fixed_batch(noise: _Noise, rate: Fraction, order: Fraction) -> arb:
    """K of the symmetrised pair, e^K - 1 = E_Q[r^α - r + r^(1-α) - 1; v > 0].

    For whole α the first power expands in G_k = E_Q[e^(kv); v > 0]. The other has derivatives of
    alternating signs, so that for r >= 1 its Taylor sums of even degree in r - 1 lie above it.
    """
    alpha, q = ball_of(order), ball_of(rate)
    if order.denominator == 1:
        n = int(order)
        if n > LARGEST_WHOLE_ORDER:
            return arb(inf)
        half = [noise.upper_half(k) for k in range(_TAYLOR + 1)]
        powers = _binomial(rate, n, noise.upper_half) - (1 - q) * half[0] - q * half[1]
        sums = list(accumulate(_taylor_term(n, q, half[: j + 1]) for j in range(1, _TAYLOR + 1)))
        return (powers + min(sums[1::2], key=lambda bound: float(bound.upper()))).log1p()

    def integrand(v: acb, analytic: bool) -> acb:
        log_r = (1 + q * v.expm1()).log(analytic=analytic)
        return ((alpha - 1) * log_r).expm1() * (log_r.exp() - (-(alpha - 1) * log_r).exp())

    return noise.integral(integrand, alpha, half=True).log1p()


def _taylor_term(order: int, q: arb, half: list[arb]) -> arb:
    """Return C(1-α, j) q^j E_Q[(e^v - 1)^j; v > 0] with the G_0 .. G_j in `half`."""
    j = len(half) - 1
    centred = sum(((-1) ** (j - i) * comb(j, i) * g for i, g in enumerate(half)), arb(0))
    return (-1) ** j * comb(order - 2 + j, j) * q**j * centred


def _binomial(rate: Fraction, order: int, value: Callable[[int], arb]) -> arb:
    """Return Σ_k C(order,k) q^k (1-q)^(order-k) value(k), infinity beyond the largest order."""
    if order > LARGEST_WHOLE_ORDER:
        return arb(inf)
    q, odds = ball_of(rate), ball_of(rate / (1 - rate))
    weight, total = (1 - q) ** order, arb(0)
    for k in range(order + 1):
        total += weight * value(k)
        weight *= odds * (order - k) / (k + 1)
    return total


def _mixture_step(mechanism: GaussianMixtureStep, order: Fraction) -> arb:
    """K of a constant and a sampled shift: release both apart, with shares of the noise's variance.

    With noise θ = θ1 + θ2, of variances tσ² and (1-t)σ², the release is post-processing of
    (constant part + θ1, sampled part + θ2), whatever t in (0, 1); the t is the best of a few. The
    sampled part is a Poisson pair under add/remove and a symmetrised one under replace-one. Under
    zero-out the batch may be fixed, so that another record's message may stand where the record's
    would: symmetrised, and twice as far apart. Where it is not known what a drawn record brings,
    the sample is told.
    """
    variance, rate = Fraction(mechanism.noise_std) ** 2, Fraction(mechanism.rate)
    constant, sampled = mechanism.constant.squared / variance, mechanism.sampled.squared / variance
    adjacency = mechanism.constant.adjacency
    pair = _poisson if adjacency is Adjacency.ADD_REMOVE_ONE else _fixed_batch
    if not mechanism.hides_sample:
        pair = _told
    if adjacency is Adjacency.ZERO_OUT_ONE:
        sampled *= 4

    def at(share: Fraction, order: Fraction) -> arb:
        always = ball_of(constant * order * (order - 1) / share) / 2
        return always + pair(_Gaussian(ball_of(sampled / (1 - share))), rate, order)

    if constant == 0:
        return pair(_Gaussian(ball_of(sampled)), rate, order)
    near = Fraction(max(2, round(order)))
    share = min(_SHARES, key=lambda t: float(at(t, near).upper()))
    return at(share, order)


_SHARES = tuple(Fraction(k, 16) for k in range(1, 16)) + tuple(
    edge for k in (6, 9, 12) for edge in (Fraction(1, 1 << k), 1 - Fraction(1, 1 << k))
)
