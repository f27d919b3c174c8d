"""Losses cut off above, and a little noise: enclosures beside quadrature, sums and a grid."""

from fractions import Fraction
from math import erf, exp, inf, log, sqrt

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats
from dp_accounting.pld import privacy_loss_distribution
from flint import arb
from tests.parameters import slow

from dpledger.accounting.numbers.enclosure import Enclosure, precision
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.contour_certified import epsilon_enclosure
from dpledger.accounting.pld.decay import log_decay
from dpledger.accounting.pld.decay_certified import modulus_beyond
from dpledger.accounting.pld.moments_certified import moments_on_line
from dpledger.accounting.pld.pairs import (
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Sampled,
)
from dpledger.accounting.pld.quadrature import Demand
from dpledger.accounting.pld.truncation import epsilon_by_truncation

CUT = [
    Sampled(GaussianShift(Fraction(mu) ** 2), Fraction(rate), order, cut)
    for mu, rate, cut in [(1.0, 0.01, 5.0), (6.0, 1e-4, 9.0), (0.25, 0.5, 4.0)]
    for order in (Order.MIXTURE_FIRST, Order.SYMMETRISED)
]
LAPLACE = [
    Sampled(LaplaceShift(Fraction(2)), Fraction(1, 50), order)
    for order in (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND, Order.SYMMETRISED)
]
LINE, STEP, COUNT = 1.5, 0.25, 40
Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]


def moment(pair: Sampled, z: complex) -> complex:
    """Return E_P[e^{zL}] from the definition of the pair, by forty thousand nodes of Gauss."""
    q, symmetrised = float(pair.rate), pair.order is Order.SYMMETRISED
    powers = {Order.MIXTURE_FIRST: [1 + z], Order.MIXTURE_SECOND: [-z]}.get(pair.order, [1 + z, -z])

    def powers_of_r(v: Floats) -> Complexes:
        log_r = np.log1p(q * np.expm1(v))
        return np.sum([np.exp(power * log_r) for power in powers], axis=0)

    if isinstance(pair.base, LaplaceShift):
        e = float(pair.base.epsilon)
        v, weight = _gauss(0.0 if symmetrised else -e, e)
        inside = complex(weight * np.exp(-(v + e) / 2) / 4 @ powers_of_r(v))
        ends = powers_of_r(np.array([e, -e])) * np.array([np.exp(-e) / 2, 0.5])
        return inside + ends[0] + ((1 - q) * -np.expm1(-e / 2) if symmetrised else ends[1])
    mu = float(pair.base.mu_squared) ** 0.5
    s, weight = _gauss(0.0 if symmetrised else -14 - mu / 2, pair.cut)
    density = weight * np.exp(-((s + mu / 2) ** 2) / 2) / np.sqrt(2 * np.pi)
    atom = (1 - q) * erf(mu / 2 / sqrt(2)) if symmetrised else 0.0
    return atom + complex(density @ powers_of_r(mu * s))


def _gauss(low: float, high: float) -> tuple[Floats, Floats]:
    x, weight = np.polynomial.legendre.leggauss(40)
    edges = np.linspace(low, high, 1001)
    half = np.diff(edges)[:, None] / 2
    return ((edges[:-1, None] + half) + half * x).ravel(), (half * weight).ravel()


@pytest.mark.parametrize("pair", CUT)
def test_moments_of_a_cut_pair_are_those_of_what_is_left(pair: Sampled) -> None:
    with precision(160):
        found = moments_on_line(pair, STEP, COUNT, Demand(LINE, STEP * COUNT, 30.0))
    for k in (0, 1, 17, COUNT):
        off = moment(pair, complex(LINE, STEP * k)) - complex(found[k])
        assert abs(off) < 1e-11 * abs(complex(found[0]))


@pytest.mark.parametrize("reach", [0.3, 4.0, 60.0, 2000.0])
@pytest.mark.parametrize("pair", [*CUT, *LAPLACE])
def test_no_modulus_beyond_exceeds_its_bound(pair: Sampled, reach: float) -> None:
    with precision(160):
        bound = float(modulus_beyond(pair, LINE, reach).upper())
    least = min(bound, exp(log_decay(pair, LINE, reach)))
    for far in (1.0, 1.03, 1.3, 2.1, 7.7):
        assert abs(moment(pair, complex(LINE, reach * far))) <= least * (1 + 1e-9)


def test_bounds_by_parts_fall_to_the_atoms() -> None:
    # of every hundred thousand steps of this noise about ten meet the record
    pair = Sampled(GaussianShift(Fraction(64)), Fraction(1, 10_000), Order.MIXTURE_FIRST, 20.0)
    steps, (near, far) = 100_000, (log_decay(pair, 0.01, t) for t in (1e-6, 50.0))
    assert steps * (near - far) > 8


@pytest.mark.parametrize(
    ("mu", "rate", "order"), [(13.3, 0.785, 0.15), *slow((16.5, 0.0085, 0.09))]
)
def test_losses_that_crowd_far_from_zero_let_the_modulus_fall(
    mu: float, rate: float, order: float
) -> None:
    # half of the tilted mass lies beyond a loss of 20 to 100, and a walk steps by how it spreads
    shift = GaussianShift(Fraction(mu) ** 2)
    pair = Sampled(shift, Fraction(rate), Order.SYMMETRISED, 30.0)
    whole = abs(moment(pair, complex(order)))
    for reach in (0.05, 0.4, 3.0):
        heights = reach * np.geomspace(1.0, 20.0, 12)
        largest = max(abs(moment(pair, complex(order, t))) for t in heights.tolist())
        with precision(160):
            bound = float(modulus_beyond(pair, order, reach).upper())
        least = min(bound, exp(log_decay(pair, order, reach)))
        assert largest <= least * (1 + 1e-9)
        assert max(bound, exp(log_decay(pair, order, reach))) < 0.9 * whole


NOTHING = Enclosure(arb(0), arb.pos_inf()), arb(0)

HEAVY: dict[DominatingPair, int] = {
    Sampled(GaussianShift(1 / Fraction(0.2) ** 2), Fraction(1e-3), Order.MIXTURE_FIRST): 3000
}


def test_a_composition_of_exploding_moments_is_enclosed() -> None:
    before, found = epsilon_enclosure(HEAVY, 1e-6), PrivacyProfile.of_pairs(HEAVY).epsilon(1e-6)
    assert before.lower_float == 0
    assert found.relative_width < 1e-4
    assert found.upper_float < 0.95 * before.upper_float


def test_the_enclosure_lies_between_the_ends_of_a_grid() -> None:
    # one grid rounds losses down, the other up: 12 apart in all
    found = epsilon_by_truncation(HEAVY, 1e-6, *NOTHING)
    low, high = (
        privacy_loss_distribution.from_gaussian_mechanism(
            0.2,
            value_discretization_interval=4e-3,
            sampling_prob=1e-3,
            pessimistic_estimate=pessimistic,
            use_connect_dots=False,
        )
        ._pmf_remove.self_compose(3000)
        .get_epsilon_for_delta(1e-6)
        for pessimistic in (False, True)
    )
    assert low < found.lower_float < found.upper_float < high


@pytest.mark.parametrize("order", list(Order))
def test_it_agrees_with_a_contour_that_needs_no_cut(order: Order) -> None:
    counts: dict[DominatingPair, int] = {
        Sampled(GaussianShift(Fraction(1)), Fraction(1, 50), order): 2000
    }
    contour, found = epsilon_enclosure(counts, 1e-7), epsilon_by_truncation(counts, 1e-7, *NOTHING)
    assert contour.relative_width < 1e-7
    assert found.relative_width < 1e-6
    assert found.lower_float <= contour.upper_float
    assert contour.lower_float <= found.upper_float


def test_very_many_answers_are_enclosed_as_by_binomial_sums() -> None:
    steps, truth, delta = 20_000, Fraction(11, 20), 1e-9
    counts: dict[DominatingPair, int] = {RandomisedAnswers(truth, 2): steps}
    found = epsilon_by_truncation(counts, delta, *NOTHING)
    k, gain = np.arange(steps + 1), log(float(truth / (1 - truth)))
    # losses gain (2k - n), k answers told truly
    losses, log_mass = gain * (2.0 * k - steps), scipy.stats.binom.logpmf(k, steps, float(truth))

    def exact(epsilon: float) -> float:
        return float(np.exp(log_mass) @ -np.expm1(np.minimum(epsilon - losses, 0.0)))

    assert found.relative_width < 1e-3
    # sums of doubles err by far less than what the noise leaves
    assert exact(found.lower_float) > delta > exact(found.upper_float)


def test_a_pair_that_is_cut_is_another_pair() -> None:
    whole = Sampled(GaussianShift(Fraction(1)), Fraction(1, 2), Order.MIXTURE_FIRST)
    cut = Sampled(whole.base, whole.rate, whole.order, 3.0)
    assert whole.cut == inf
    assert len({whole, cut}) == 2
