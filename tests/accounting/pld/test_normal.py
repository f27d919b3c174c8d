"""The normal law as a lower bound of very many steps, beside sums that know better."""

from fractions import Fraction
from math import exp, lgamma, log

import mpmath
import pytest

from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.normal import _Step, epsilon_floor
from dpledger.accounting.pld.pairs import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    RandomisedAnswers,
)

KINDS: list[DominatingPair] = [
    RandomisedAnswers(Fraction(3, 4), 2),
    RandomisedAnswers(Fraction(1, 5), 3),
    DiscreteLaplaceShift(Fraction(1, 3), 2),
    DiscreteGaussianShift(Fraction(3, 2)),
]


@pytest.mark.parametrize("pair", KINDS)
def test_the_floor_lies_below_the_enclosure_and_near_it(pair: DominatingPair) -> None:
    counts, delta = {pair: 5000}, 1e-9
    upper = PrivacyProfile.of_pairs(counts).epsilon(delta).upper_float
    assert 0.98 * upper < epsilon_floor(counts, delta) <= upper


def test_the_floor_lies_below_binomial_sums() -> None:
    # losses ±1 of answers told truly with probability e/(1+e): n - 2k with k lies
    n, delta = 1 << 14, 1e-9
    truth = Fraction(exp(1) / (1 + exp(1)))
    pair = RandomisedAnswers(truth, 2)
    gain = log(truth / (1 - truth))
    floor = epsilon_floor({pair: n}, delta)

    def term(k: int) -> float:
        loss = (n - 2 * k) * gain
        mass = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        mass += (n - k) * log(truth) + k * log(1 - truth)
        return exp(mass) * -float(mpmath.expm1(floor - loss)) if loss > floor else 0.0

    # sums of doubles err by far less than what the floor leaves
    assert delta < sum(map(term, range(n))) < 2 * delta


def test_the_floor_of_laplace_and_gaussian_steps_lies_below_the_enclosure() -> None:
    counts: dict[DominatingPair, int] = {
        LaplaceShift(Fraction(1, 10)): 20_000,
        GaussianShift(Fraction(4)): 1,
    }
    enclosed = PrivacyProfile.of_pairs(counts).epsilon(1e-8)
    assert enclosed.relative_width < 1e-5
    floor = epsilon_floor(counts, 1e-8)
    assert 0.98 * enclosed.lower_float < floor <= enclosed.upper_float


@pytest.mark.parametrize("pair", [*KINDS, LaplaceShift(Fraction(2, 3))])
@pytest.mark.parametrize("order", [2.0**-9, 3.0])
def test_moments_of_a_tilted_step_hold_those_of_its_density(
    pair: DominatingPair, order: float
) -> None:
    masses, losses = _law(pair)
    tilted = [p * mpmath.exp(order * x) for p, x in zip(masses, losses, strict=True)]
    whole = mpmath.fsum(tilted)
    mean = mpmath.fsum(w * x for w, x in zip(tilted, losses, strict=True)) / whole

    def central(power: int) -> float:
        terms = (w * abs(x - mean) ** power for w, x in zip(tilted, losses, strict=True))
        return float(mpmath.fsum(terms) / whole)

    with precision(256):
        step = _Step.of(pair, order)
    # a density is cut into cells here, whose sums err by less than a millionth
    loose = 1e-6 if isinstance(pair, LaplaceShift) else 1e-12
    assert float(step.mean) == pytest.approx(float(mean), rel=loose)
    assert float(step.variance) == pytest.approx(central(2), rel=max(loose, 1e-9))
    assert central(3) * (1 - loose) <= float(step.third.upper()) < 40 * central(3)


def _law(pair: DominatingPair) -> tuple[list[mpmath.mpf], list[mpmath.mpf]]:
    """Return the loss of a pair as masses and values, from its definition."""
    match pair:
        case RandomisedAnswers():
            p, o = mpmath.mpf(float(pair.truth)), mpmath.mpf(float(pair.other))
            gain = mpmath.log(p / o)
            return [p, o, (pair.categories - 2) * o], [gain, -gain, mpmath.mpf(0)]
        case DiscreteLaplaceShift():
            b, n = float(pair.rate), pair.shift
            places = range(-300, 300)
            masses = [mpmath.exp(-b * abs(k - n)) for k in places]
            losses = [mpmath.mpf(b * (abs(k) - abs(k - n))) for k in places]
        case DiscreteGaussianShift():
            s2 = float(pair.sigma_squared)
            places = range(-60, 60)
            masses = [mpmath.exp(-((k - 1) ** 2) / (2 * s2)) for k in places]
            losses = [mpmath.mpf((2 * k - 1) / (2 * s2)) for k in places]
        case LaplaceShift():
            e, cells = float(pair.epsilon), 4000
            losses = [mpmath.mpf(-e + 2 * e * (k + 0.5) / cells) for k in range(cells)]
            masses = [2 * e / cells * mpmath.exp((x - e) / 2) / 4 for x in losses]
            # by P the loss is e with probability one half, and -e with half of e^-e
            losses += [mpmath.mpf(e), mpmath.mpf(-e)]
            masses += [mpmath.mpf(0.5), mpmath.exp(-e) / 2]
        case _:
            raise TypeError(pair)
    whole = mpmath.fsum(masses)
    return [p / whole for p in masses], losses
