"""Few steps: rays against exact integrals, against grids, and the laws of a bound."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import erf, exp, log, log1p, pi, sqrt

import numpy as np
import pytest
from flint import acb, arb
from numpy.typing import NDArray
from scipy.special import ndtr
from tests.parameters import quick, slow

from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.pld import PrivacyProfile, few_steps, ray_certified, ray_placement
from dpledger.accounting.pld.distribution import epsilon_by_pld
from dpledger.accounting.pld.pairs import GaussianShift, Order, Sampled
from dpledger.accounting.pld.placement import Placement
from dpledger.accounting.pld.profiles import delta_of
from dpledger.accounting.pld.quadrature import Demand, plan_line
from dpledger.accounting.pld.ray import RayIntegral
from dpledger.accounting.pld.ray_line import line_sum
from dpledger.accounting.pld.ray_panels import RayPlacement, sum_of
from dpledger.accounting.pld.ray_placement import place_ray
from dpledger.accounting.pld.saddle import Counts, chernoff_delta, order_of

FIRST, SYMMETRISED = Order.MIXTURE_FIRST, Order.SYMMETRISED


def drawn(rate: float, multiplier: float, order: Order = FIRST) -> Sampled:
    return Sampled(GaussianShift(1 / Fraction(multiplier) ** 2), Fraction(rate), order)


def ray_for(counts: Counts, epsilon: float, delta: float) -> RayPlacement:
    grade = chernoff_delta(counts, epsilon)[1]
    ray = place_ray(counts, epsilon, log(delta), order_of(grade - 1))
    assert ray is not None
    return ray


def moment(pair: Sampled, z: complex) -> complex:
    """Return M(1+z) by quadrature over real u, where it does not cancel much."""
    assert isinstance(pair.base, GaussianShift)
    mu, q = sqrt(pair.base.mu_squared), float(pair.rate)
    low = mu / 2 if pair.order is SYMMETRISED else -14.0
    ends = np.linspace(low, (1 + z.real) * mu + 14, 400)
    x, w = np.polynomial.legendre.leggauss(16)
    half = np.diff(ends)[:, None] / 2
    u, weight = (ends[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    log_r = np.log1p(q * np.expm1(mu * u - mu * mu / 2))
    density = weight * np.exp(-u * u / 2) / sqrt(2 * pi)
    up = complex(np.sum(density * np.exp((1 + z) * log_r)))
    if pair.order is FIRST:
        return up
    down = complex(np.sum(density * np.exp(-z * log_r)))
    return up + down + (1 - q) * erf(mu / 2 / sqrt(2))


@pytest.mark.parametrize(
    ("pair", "steps", "epsilon", "delta"),
    [
        (drawn(1e-3, 0.8), 3, 0.0902, 1e-6),
        (drawn(0.05, 2.8), 3, 0.1766, 1e-6),
        (drawn(0.05, 1.5, SYMMETRISED), 4, 0.9, 1e-6),
    ],
)
def test_the_finite_sums_are_the_moments_within_their_errors(
    pair: Sampled, steps: int, epsilon: float, delta: float
) -> None:
    for stretch in ray_for({pair: steps}, epsilon, delta).stretches:
        sums = sum_of(pair, stretch.paths[pair])
        for z in stretch.ends[:3]:
            if z.imag > 30:  # there the quadrature cancels too much
                continue
            found = np.sum(np.exp(sums.terms.g + z * sums.terms.b))
            missed = float(np.exp(sums.error.log_sum(np.array([z]))[0]))
            assert missed < 1e-11
            blur = 1e-13 * abs(moment(pair, complex(z.real)))
            if blur < 1e-6:
                assert abs(moment(pair, complex(z)) - found) <= missed + blur


@pytest.mark.parametrize("digits", [2.0, 6.0])
@pytest.mark.parametrize(("rate", "multiplier"), [(1e-3, 0.8), (0.3, 1.5), (0.02, 0.4)])
def test_a_line_errs_by_no_more_than_it_says(rate: float, multiplier: float, digits: float) -> None:
    pair, order, height = drawn(rate, multiplier), 2.0, 6.0
    line = plan_line(1 / multiplier, 1 + order, rate, Demand(order, height, digits))
    sums = line_sum(pair, line)
    for z in (complex(order), complex(order, height / 2), complex(order, height)):
        error = float(np.exp(sums.error.log_sum(np.array([z]))[0]))
        assert 1e-9 < error / abs(moment(pair, complex(order))) < 1.2 * exp(-digits)
        found = np.sum(np.exp(sums.terms.g + z * sums.terms.b))
        assert abs(moment(pair, z) - found) <= error
        assert abs(found) <= np.exp(sums.above.log_sum(np.array([z]))[0])


def two_steps(pair: Sampled, epsilon: float) -> float:
    """Return δ(ε) of two add/remove steps, the profile of one integrated over the loss of one."""
    assert isinstance(pair.base, GaussianShift)
    mu, q = sqrt(pair.base.mu_squared), float(pair.rate)
    # the kink, where one step alone is ε above the least loss of the other
    kink = (log1p((exp(epsilon) / (1 - q) - 1) / q) + mu * mu / 2) / mu
    ends = np.concatenate([np.linspace(-12, kink, 600), np.linspace(kink, kink + 20, 600)[1:]])
    x, w = np.polynomial.legendre.leggauss(16)
    half = np.diff(ends)[:, None] / 2
    u, weight = (ends[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    log_r = np.log1p(q * np.expm1(mu * u - mu * mu / 2))
    odds = np.expm1(epsilon - log_r)
    v = np.log1p(np.maximum(odds / q, -1 + 1e-12))
    inner = q * ndtr(mu / 2 - v / mu) - (odds + q) * ndtr(-mu / 2 - v / mu)
    inner = np.where(odds <= -q, -odds, inner)
    return float(np.sum(weight * np.exp(-u * u / 2) / sqrt(2 * pi) * np.exp(log_r) * inner))


@pytest.mark.parametrize(
    ("rate", "multiplier", "delta"),
    [(1e-3, 0.8, 1e-6), (0.02, 0.3, 1e-5), *slow((1e-5, 0.7, 1e-9), (0.05, 1.0, 1e-12))],
)
def test_two_steps_are_enclosed_as_a_double_integral_has_them(
    rate: float, multiplier: float, delta: float
) -> None:
    pair = drawn(rate, multiplier)
    found = ray_certified.epsilon_enclosure({pair: 2}, delta)
    assert found is not None
    assert found.relative_width < 1e-6
    # the reference is good to some ten digits, and ε moves δ by a tenth of its own error at least
    assert two_steps(pair, found.lower_float * (1 - 1e-9)) > delta
    assert two_steps(pair, found.upper_float * (1 + 1e-9)) < delta


def two_replaced(pair: Sampled, epsilon: float) -> float:
    """Return δ(ε) of two symmetrised steps, as `two_steps`."""
    assert isinstance(pair.base, GaussianShift)
    mu, q = sqrt(pair.base.mu_squared), float(pair.rate)

    def one(eps: NDArray[np.float64]) -> NDArray[np.float64]:
        odds = np.expm1(np.abs(eps))
        v = np.log1p(odds / q)
        found = q * ndtr(mu / 2 - v / mu) - (odds + q) * ndtr(-mu / 2 - v / mu)
        # the pair read backwards is the same pair
        return np.where(eps < 0, -np.expm1(eps) + np.exp(eps) * found, found)

    kink = (log1p(np.expm1(epsilon) / q) + mu * mu / 2) / mu
    ends = np.concatenate([np.linspace(mu / 2, kink, 400), np.linspace(kink, kink + 14, 400)[1:]])
    x, w = np.polynomial.legendre.leggauss(16)
    half = np.diff(ends)[:, None] / 2
    u, weight = (ends[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()
    loss = np.log1p(q * np.expm1(mu * u - mu * mu / 2))
    density = weight * np.exp(-u * u / 2) / sqrt(2 * pi)
    atom = (1 - q) * erf(mu / 2 / sqrt(2)) * float(one(np.array(epsilon)))
    return atom + float(
        np.sum(density * (np.exp(loss) * one(epsilon - loss) + one(epsilon + loss)))
    )


@pytest.mark.parametrize(
    ("rate", "multiplier", "delta"),
    [(1 / 99, 5.0, 1e-5), (1 / 99, 20.0, 1e-7), (1 / 99, 40.0, 1e-5), (1e-3, 20.0, 1e-10)],
)
def test_two_replaced_steps_of_much_noise_have_a_ray(
    rate: float, multiplier: float, delta: float
) -> None:
    pair = drawn(rate, multiplier, SYMMETRISED)
    found = ray_certified.epsilon_enclosure({pair: 2}, delta)
    assert found is not None
    assert found.relative_width < 1e-9
    assert two_replaced(pair, found.lower_float * (1 - 1e-9)) > delta
    assert two_replaced(pair, found.upper_float * (1 + 1e-9)) < delta


LISTS = [
    ({drawn(1e-3, 0.8): 3}, 1e-6),
    ({drawn(1e-3, 0.8): 30}, 1e-6),
    ({drawn(1e-3, 0.8): 100}, 1e-6),
    ({drawn(0.05, 2.8718): 3}, 1e-6),
    pytest.param({drawn(0.01, 0.2): 20}, 1e-5, marks=pytest.mark.slow),
    pytest.param({drawn(1 / 8192, 2.0, SYMMETRISED): 10}, 1e-6, marks=pytest.mark.slow),
    ({drawn(0.01, 0.9): 2, drawn(0.002, 0.7): 3, GaussianShift(Fraction(1, 100)): 1}, 1e-7),
]


def test_a_ray_of_five_digits_is_not_given_up_for_a_wider_grid() -> None:
    counts: Counts = {drawn(256 / 60_000, 0.2091): 235}
    found = PrivacyProfile.of_pairs(counts).epsilon(0.5)
    assert found.relative_width < 1e-4
    grid = epsilon_by_pld(counts, 0.5, cells=1 << 11)
    assert grid.lower <= found.lower
    assert found.upper <= grid.upper


@pytest.mark.parametrize(("counts", "delta"), LISTS)
def test_rays_and_grids_do_not_contradict_each_other(counts: Counts, delta: float) -> None:
    profile = PrivacyProfile.of_pairs(counts)
    found, fast = profile.epsilon(delta), profile.epsilon_upper(delta)
    assert found.relative_width < 1e-6
    assert found.lower_float <= fast <= found.upper_float * (1 + 1e-6)
    grid = epsilon_by_pld(counts, delta, cells=1 << 11)
    assert found.lower <= grid.upper
    assert grid.lower <= found.upper
    above, below = profile.delta(found.upper_float), profile.delta(found.lower_float)
    assert above.lower_float <= delta <= below.upper_float
    assert profile.delta_upper(found.upper_float) == pytest.approx(delta, rel=1e-5)


def test_the_profile_of_one_step_comes_back_from_a_ray() -> None:
    pair, epsilon = drawn(1e-3, 0.8), 0.05
    with precision(128):
        exact = delta_of(pair, acb(epsilon).real)
    ray = ray_for({pair: 1}, epsilon, float(exact))
    value, _, error = RayIntegral.of({pair: 1}, ray).delta(epsilon)
    assert abs(value - float(exact)) <= error < 1e-6 * float(exact)
    with precision(128):
        ball = ray_certified.CertifiedRay.of({pair: 1}, ray).delta(epsilon)
    assert ball.lower < exact < ball.upper


def test_few_steps_cost_less_with_more_noise_and_more_with_rate_steps_and_less_delta() -> None:
    def epsilon(rate: float = 1e-3, multiplier: float = 0.8, steps: int = 10, delta: float = 1e-6):
        return PrivacyProfile.of_pairs({drawn(rate, multiplier): steps}).epsilon_upper(delta)

    noises = [epsilon(multiplier=z) for z in np.linspace(0.7, 0.9, 7)]
    assert all(a > b for a, b in pairwise(noises))
    rates = [epsilon(rate=q) for q in np.linspace(5e-4, 2e-3, 7)]
    assert all(a < b for a, b in pairwise(rates))
    steps = [epsilon(steps=n) for n in (2, 3, 5, 9, 17, 33, 65, 129, 257)]
    assert all(a < b for a, b in pairwise(steps))
    deltas = [epsilon(delta=exp(-x)) for x in np.linspace(10, 20, 7)]
    assert all(a < b for a, b in pairwise(deltas))


def test_a_guess_from_above_the_cliff_does_not_stand() -> None:
    # a line placed by one moment gave 0.232 here, a third too much
    assert PrivacyProfile.of_pairs({drawn(0.05, 2.8718): 3}).epsilon_upper(1e-6) < 0.170255


def test_a_line_so_long_that_its_moments_are_lost_gives_way_to_a_ray() -> None:
    # such a line left 0.2291 between 0.1685 and 0.1588
    found = [
        PrivacyProfile.of_pairs({drawn(0.05, z): 3}).epsilon_upper(1e-6) for z in (2.89, 2.95, 3.0)
    ]
    assert found[0] > found[1] > found[2]
    assert found[1] == pytest.approx(0.16305130, rel=1e-6)


def test_where_the_right_guess_will_do_a_vertical_line_is_taken() -> None:
    found = few_steps.epsilon_upper({drawn(1e-3, 0.8): 300}, 1e-6)
    assert found is not None
    assert isinstance(found.path, Placement)


CORNERS = [
    (1e-5, 0.8, FIRST, 1e-9),
    (1e-3, 0.4, SYMMETRISED, 1e-9),
    (0.3, 2.0, FIRST, 1e-2),
    (0.05, 1.5, SYMMETRISED, 1e-6),
]


@pytest.mark.parametrize("digits", [3.0, *slow(8.0)])
@pytest.mark.parametrize(
    ("rate", "multiplier", "order", "delta"), quick(CORNERS[::2] + CORNERS[3:], CORNERS)
)
def test_coarse_rays_from_anywhere_enclose_the_exact_profile_of_one_step(
    rate: float,
    multiplier: float,
    order: Order,
    delta: float,
    digits: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # so coarse that the bounds on errors are what is tested, not the sums
    monkeypatch.setattr(ray_placement, "_DIGITS", digits)
    pair = drawn(rate, multiplier, order)
    epsilon = epsilon_of_one(pair, delta)
    grade = chernoff_delta({pair: 1}, epsilon)[1]
    rays = [place_ray({pair: 1}, epsilon, log(delta), order_of(grade - k)) for k in (1, 3, 5)]
    found = [ray for ray in rays if ray is not None]
    assert found
    for ray in found:
        value, _, error = RayIntegral.of({pair: 1}, ray).delta(epsilon)
        with precision(128):
            exact = delta_of(pair, arb(epsilon))
            ball = ray_certified.CertifiedRay.of({pair: 1}, ray).delta(epsilon)
            assert ball.lower < exact < ball.upper
            assert abs(value - exact) <= error


def epsilon_of_one(pair: Sampled, delta: float) -> float:
    low, high = 0.0, 100.0
    for _ in range(50):
        middle = (low + high) / 2 if low else high / 8
        with precision(200):
            above = delta_of(pair, arb(middle)) > delta
        low, high = (middle, high) if above else (low, middle)
    return high


@pytest.mark.parametrize("rate", [Fraction(1, 10**307), 1 - Fraction(1, 10**20)])
@pytest.mark.parametrize("order", [FIRST, SYMMETRISED])
def test_rates_that_doubles_do_not_know_have_no_ray(rate: Fraction, order: Order) -> None:
    counts: Counts = {Sampled(GaussianShift(Fraction(1)), rate, order): 3}
    assert few_steps.epsilon_upper(counts, 1e-6) is None
    assert few_steps.delta_upper(counts, 0.1) is None


def test_where_a_bound_is_infinite_nothing_is_enclosed() -> None:
    pair = drawn(1e-3, 0.8)
    ray = ray_for({pair: 3}, 0.0902, 1e-6)
    with precision(128):
        found = ray_certified.CertifiedRay.of({pair: 3}, ray)
        for lost in (np.inf, np.nan, 1e4):
            errors = replace(found.errors, blur=lost)
            hopeless = replace(found, errors=errors).delta(0.0902)
            assert (hopeless.lower, hopeless.upper) == (0, 1)
            assert errors.delta(0.0902).error > 1


UNLIKE: list[tuple[Counts, float]] = [
    ({drawn(10.0 ** (-3 + k / 6), 0.7 + 0.13 * k): 1 for k in range(10)}, 1e-5),
    ({drawn(10.0 ** (-3 + k / 6), 0.7 + 0.13 * k, SYMMETRISED): 1 for k in range(10)}, 1e-5),
    ({drawn(1e-3, 0.8): 3, drawn(0.02, 1.9): 2, GaussianShift(Fraction(1, 10**4)): 1}, 1e-6),
]


@pytest.mark.parametrize(
    ("counts", "delta"),
    [UNLIKE[0], *slow(*UNLIKE[1:])],
    ids=["first", "symmetrised", "with Gaussian"],
)
def test_a_ray_in_doubles_encloses_what_balls_enclose(counts: Counts, delta: float) -> None:
    found = few_steps.epsilon_upper(counts, delta)
    assert found is not None
    assert isinstance(found.path, RayPlacement)
    assert isinstance(found.integral, RayIntegral)
    rounded = ray_certified.RoundedRay.of(counts, found, found.value)
    assert rounded is not None
    with precision(128):
        # without bounds on quadratures, so that roundings alone are compared
        bare = replace(
            found.integral, bounds=replace(found.integral.bounds, g=np.array([-600 + 0j]))
        )
        bare = replace(bare, bounds=replace(bare.bounds, b=np.zeros(1, np.complex128)))
        balls = ray_certified.CertifiedRay.of(counts, found.path, bare)
        for epsilon in (0.9 * found.value, found.value, 1.2 * found.value):
            exact = balls.delta(epsilon)
            assert exact.relative_width < 1e-20
            wide = ray_certified.RoundedRay(bare).delta(epsilon)
            assert wide.lower < exact.lower
            assert exact.upper < wide.upper
            assert rounded.delta(epsilon).lower < exact.lower
            assert exact.upper < rounded.delta(epsilon).upper


def test_doubles_stand_for_no_shift_that_is_not_known_exactly() -> None:
    pair, squared = drawn(1e-3, 0.8), Fraction(1, 10**6)
    for slack, exact in ((Fraction(0), True), (squared / 10**6, False)):
        counts: Counts = {pair: 3, GaussianShift(squared, slack): 1}
        found = few_steps.epsilon_upper(counts, 1e-6)
        assert found is not None
        assert (ray_certified.RoundedRay.of(counts, found, found.value) is not None) == exact


def test_doubles_that_lose_too_much_make_way_for_balls(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, delta = UNLIKE[0]
    rounded = ray_certified.epsilon_enclosure(counts, delta)
    monkeypatch.setattr(ray_certified, "_ROUNDED", 0.0)
    found = few_steps.epsilon_upper(counts, delta)
    assert found is not None
    assert ray_certified.RoundedRay.of(counts, found, found.value) is None
    balls = ray_certified.epsilon_enclosure(counts, delta)
    assert rounded is not None
    assert balls is not None
    assert rounded.lower <= balls.upper
    assert balls.lower <= rounded.upper
    assert rounded.upper_float == pytest.approx(balls.upper_float, rel=1e-7)


@pytest.mark.parametrize("multiplier", [2.89, 2.95, 3.0])
def test_delta_has_a_ray_where_a_line_loses_its_moments(multiplier: float) -> None:
    counts: Counts = {drawn(0.05, multiplier): 3}
    epsilon = PrivacyProfile.of_pairs(counts).epsilon_upper(1e-6)
    found = few_steps.delta_upper(counts, epsilon)
    assert found is not None
    assert found.value == pytest.approx(1e-6, rel=1e-5)
