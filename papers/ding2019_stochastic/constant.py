"""How large the constant c of Theorem 2 has to be: for given data sets, and for any.

Theorem 2's noise has variance c G² K S ln(1/delta)/(M² epsilon²), and c is not given. Three routes
bound what it would have to be:

    linear losses    every step is a Gaussian mechanism with shift 2G/M: the run is mu-GDP, and the
                     least c is closed form (`full_gradient_c`, `breaks_at`)
    worst pair       one step, where the record is drawn with probability 1/M and its correction
                     is opposite to the full gradient's shift: a necessary c (`necessary_c`)
    split noise      any data, by pricing the full gradient and the drawn record with a share of
                     the noise each: a sufficient c (`sufficient_c`, `upper_bound`)

The worst pair's numbers come from doubles; they refute only with the room that `measured` leaves.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import exp, log

from flint import arb
from scipy.optimize import brentq

from ...accounting.gaussian.exact import epsilon_from_delta, mu_from_epsilon_delta
from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import BITS, Enclosure, TooWide, ball_of, precision
from ...accounting.pld import PrivacyProfile
from ...accounting.pld.pairs import GaussianShift, Order, Sampled
from ...audits.claims.critical import critical_epsilon
from ...audits.claims.mixture_pair import MixturePair
from .setting import PsSetting, linear_run, noisy_gradient, printed_noise

_MEASURED = 1e-8
"""Relative half-width given to numbers that a root finder found in doubles."""
_LEAST_C = 1e-3
"""Where the search for a bracket of c, from large c down, gives up."""
_SHARES = tuple(Fraction(k, 400) for k in (2, 4, 6, 8, 10, 14))
"""Shares of the noise's variance that are tried for the full gradient: every one gives a valid
bound, so that the choice costs tightness only.
"""


def worst_shifts(s: PsSetting) -> tuple[float, float]:
    """Return how far the worst data sets' gradients are apart: always, and more if drawn.

    Not drawn: 2G/M (null record: G/M). Drawn, for convex losses: a further 4G (2G) in the opposite
    direction, so that the mean shift is still 2G/M; this is PS-1's pair. Logistic: 0, and 2G (G).
    """
    moved = (1 if s.zero_out else 2) * s.G
    if s.logistic:
        # the slope at the anchor is 0, at v it is 1: nothing moves unless the record is drawn
        return 0.0, moved
    # the anchor's full gradient moves back while the drawn record goes far ahead
    return -moved / s.M, 2 * moved


def worst_pair(s: PsSetting, c: float) -> MixturePair:
    """Return the noisy gradients of these two data sets.

    Args:
        s: the parameters.
        c: Theorem 2's constant, in place of the setting's.

    A mixture: N(constant, noise²) with probability 1 - 1/M, and shifted by `sampled` else, against
    N(0, noise²). The common history and the other drawn indices are conditioned on; joint convexity
    of the hockey-stick divergence allows it.
    """
    constant, sampled = worst_shifts(s)
    noise = printed_noise(replace(s, c=c))
    return MixturePair(constant=constant, sampled=sampled, rate=1 / s.M, noise_std=noise)


def measured(value: float) -> Enclosure:
    """Return a number that was found in doubles, with room for what doubles do."""
    with precision(BITS):
        return Enclosure.from_ball(ball_of(value) * arb(1, _MEASURED))


def upper_bound(s: PsSetting) -> float:
    """Return a bound on the run's epsilon for any data, by the best split of the noise.

    Valid for every convex G-Lipschitz loss of the setting's kind; the grid of shares decides how
    tight it is.
    """
    return _split_bound(s, _best_share(s))


def _split_bound(s: PsSetting, share: Fraction) -> float:
    """That bound where the full gradient has this share of the noise's variance.

    c + r_J + noise is a function of c + one share of the noise and r_J + the rest of it.
    """
    step = noisy_gradient(s)
    variance = Fraction(step.noise_std) ** 2
    # the sample of a null record's neighbour may hold another record instead: twice as far
    sampled = step.sampled.squared * (4 if s.zero_out else 1)
    profile = PrivacyProfile.of_pairs(
        {
            GaussianShift(s.steps * step.constant.squared / (variance * share)): 1,
            Sampled(
                GaussianShift(sampled / (variance * (1 - share))),
                Fraction(1, s.M),
                Order.SYMMETRISED,
            ): s.steps,
        }
    )
    return profile.epsilon_upper(s.delta)


def _best_share(s: PsSetting) -> Fraction:
    """Return the share of the noise for which the split bound is least."""
    return min(_SHARES, key=lambda share: _split_bound(s, share))


def sufficient_c(s: PsSetting, necessary: float) -> float:
    """Return a c that is enough for any data, from one that is `necessary`.

    Args:
        s: the parameters.
        necessary: a smaller c, at which the search for a bracket starts.

    Found by Brent's method in ln c to 2e-4, in doubles: a figure to show, not a certificate.
    """
    share = _best_share(replace(s, c=necessary))

    def excess(log_c: float) -> float:
        return log(_split_bound(replace(s, c=exp(log_c)), share) / s.epsilon)

    low, high = log(necessary), log(necessary * (5 if s.zero_out else 1.25))
    while excess(high) > 0:
        low, high = high, high + 1
    return exp(float(brentq(excess, low, high, xtol=2e-4)))


def necessary_c(s: PsSetting) -> float:
    """Return the c at which the worst pair has just epsilon at delta.

    A smaller c is refuted for one step's pair composed K S times; no data sets are known that meet
    that pair in every step at once, hence "worst pair" beside "linear losses" in the figures.
    """

    def excess(c: float) -> float:
        return log(max(worst_pair(s, c).delta(s.epsilon, times=s.steps), 1e-300) / s.delta)

    def short(c: float) -> bool:
        try:
            return excess(c) > 0
        except TooWide:
            # few steps with much noise: the loss hardly varies, and its transform hardly falls
            return False

    return float(brentq(excess, *bracket(s, short), rtol=1e-10))


def bracket(s: PsSetting, short: Callable[[float], bool]) -> tuple[float, float]:
    """Return a c that is short and its double, which is not; searched from large c down.

    It starts where the noise is 3G.
    """
    high = regime_constants(s)["c"].upper_float
    while short(high):
        high *= 2
    while high > _LEAST_C and not short(high / 2):
        high /= 2
    return high / 2, high


def regime_constants(s: PsSetting) -> dict[str, Enclosure]:
    """Return what the regime needs, and the lemma behind Theorem 1: noise of 3G.

    c1: epsilon <= c1 K S/M² asks for at least epsilon M²/(K S). c: the moments lemma (Abadi et al.
    2016, Lemma 3) is for noise of at least one sensitivity, which the paper has at 3G.
    """
    return {
        "c1": Enclosure.of(Fraction(s.epsilon) * s.M**2 / s.steps),
        "c": Enclosure.of((3 * s.M * s.epsilon) ** 2 / (s.steps * -log(s.delta))),
    }


def full_gradient_c(s: PsSetting, steps: float) -> Enclosure:
    """Return the least c for linear losses, if `steps` of the K S noises are seen whole.

    The run is mu-GDP with mu = 2 epsilon sqrt(steps/(K S))/sqrt(c ln(1/delta)), half of it for a
    null record; solved for c at the greatest mu that is (epsilon, delta)-DP.

    Args:
        s: the parameters.
        steps: how many of the noises an observer sees one by one.
    """
    shift = 1 if s.zero_out else 2
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(BITS):
        share = ball_of(Fraction(steps) / s.steps)
        ratio = shift * ball_of(s.epsilon) / ball_of(mu)
        return Enclosure.from_ball(share * ratio**2 / -ball_of(s.delta).log())


def linear_epsilon(s: PsSetting, share: float) -> Enclosure:
    """Return the exact epsilon for linear losses, if a share of what K S steps tell is seen.

    Args:
        s: the parameters.
        share: of what the steps tell, > 0; 1 for all of it.
    """
    mu_squared = guarantee(linear_run(s), delta=s.delta).notion.mu_squared
    with precision(BITS):
        seen = Enclosure.from_ball(ball_of(mu_squared) * ball_of(share))
    return epsilon_from_delta(mu_squared=seen, delta=s.delta)


def breaks_at(s: PsSetting) -> Enclosure:
    """Return the epsilon above which c is too small for linear losses, whatever K, S and M.

    There mu = epsilon/slope with slope = sqrt(c ln(1/delta))/2: the cost grows like mu²/2, faster
    than the epsilon that is promised.
    """
    with precision(BITS):
        slope = (ball_of(s.c) * -ball_of(s.delta).log()).sqrt() / (1 if s.zero_out else 2)
        bounded = Enclosure.from_ball(slope)
    return critical_epsilon(bounded, s.delta)
