"""The fast Gaussian curve errs outward only, and by little, next to the certified one."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from flint import arb
from scipy.special import ndtri

from dpledger.accounting.gaussian import fast as gaussian_fast
from dpledger.accounting.gaussian.exact import delta_from_epsilon, epsilon_from_delta
from dpledger.accounting.gaussian.fast import (
    advantage_upper,
    beta_lower,
    delta_upper,
    epsilon_upper,
    tpr_upper,
)
from dpledger.accounting.numbers.enclosure import Enclosure, precision
from dpledger.mechanisms.errors import InvalidParameter

LOOSENESS = 1e-9
COUNT = 3000


def points(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random mu² and delta, a third of them at everyday values, a third with delta near its top."""
    rng = np.random.default_rng(seed)
    third = COUNT // 3
    mu = np.concatenate(
        [
            10 ** rng.uniform(-6, 3, third),
            10 ** rng.uniform(-2.2, 1, third),
            10 ** rng.uniform(-6, 3, third),
        ]
    )
    delta = np.concatenate(
        [
            10 ** rng.uniform(-300, -0.31, third),
            10 ** rng.uniform(-12, -1, third),
            advantage_upper(mu_squared=mu[-third:] ** 2) * rng.uniform(0.01, 0.99, third),
        ]
    )
    return mu * mu, delta


def test_epsilon_is_above_the_certified_one_and_close() -> None:
    mu_squared, delta = points(1)
    fast = epsilon_upper(mu_squared=mu_squared, delta=delta)
    for m, d, e in zip(mu_squared, delta, fast, strict=True):
        truth = epsilon_from_delta(mu_squared=float(m), delta=float(d))
        assert truth <= float(e) <= truth.upper_float * (1 + LOOSENESS)


def test_far_outside_the_usual_range_it_is_still_an_upper_bound() -> None:
    rng = np.random.default_rng(8)
    mu_squared, delta = 10 ** rng.uniform(-60, 16, 500), 10 ** rng.uniform(-300, -0.01, 500)
    fast = epsilon_upper(mu_squared=mu_squared, delta=delta)
    for m, d, e in zip(mu_squared, delta, fast, strict=True):
        assert epsilon_from_delta(mu_squared=float(m), delta=float(d)) <= float(e)


@pytest.mark.slow
def test_fifty_thousand_points_are_above_the_certified_ones() -> None:
    rng = np.random.default_rng(9)
    mu_squared = 10 ** rng.uniform(-12, 6, 50_000)
    delta = 10 ** rng.uniform(-300, -0.31, 50_000)
    epsilon = epsilon_upper(mu_squared=mu_squared, delta=delta)
    again = delta_upper(mu_squared=mu_squared, epsilon=epsilon)
    for m, d, e, a in zip(mu_squared, delta, epsilon, again, strict=True):
        assert epsilon_from_delta(mu_squared=float(m), delta=float(d)) <= float(e)
        assert delta_from_epsilon(mu_squared=float(m), epsilon=float(e)) <= float(a)


def test_delta_is_above_the_certified_one_and_close() -> None:
    mu_squared, delta = points(2)
    epsilon = epsilon_upper(mu_squared=mu_squared, delta=delta)
    epsilon[::10] = 0.0
    fast = delta_upper(mu_squared=mu_squared, epsilon=epsilon)
    for m, e, d in zip(mu_squared, epsilon, fast, strict=True):
        truth = delta_from_epsilon(mu_squared=float(m), epsilon=float(e))
        assert truth <= float(d) <= truth.upper_float * (1 + LOOSENESS)


def test_delta_below_the_float_range_is_still_an_upper_bound() -> None:
    # with mu = 1 delta falls from 1e-301 to 0 here, through the subnormal numbers
    for epsilon in [*np.linspace(37.5, 39.5, 400), 100.0, 1e6]:
        truth = delta_from_epsilon(mu_squared=1, epsilon=float(epsilon))
        # an array of squares: of one number the exact curve would be asked
        fast = float(delta_upper(mu_squared=np.ones(1), epsilon=epsilon)[0])
        assert truth <= fast <= truth.upper_float * (1 + LOOSENESS) + 1e-321
    assert delta_upper(mu_squared=1, epsilon=1e300) < 1e-300


def test_delta_at_the_returned_epsilon_is_proved() -> None:
    mu_squared, delta = points(3)
    epsilon = epsilon_upper(mu_squared=mu_squared, delta=delta)
    assert np.all(delta_upper(mu_squared=mu_squared, epsilon=epsilon) <= delta)


def test_few_points_are_those_of_the_exact_curve_in_their_shape() -> None:
    given = np.array([[1e-5, 1e-300], [0.5, 0.3]])
    for mu_squared in (1, Fraction(1, 7), 1e-30, Enclosure.of(1e12), 0, math.inf):
        found = epsilon_upper(mu_squared=mu_squared, delta=given)
        truth = [epsilon_from_delta(mu_squared=mu_squared, delta=x) for x in given.flat]
        assert found.tolist() == np.reshape([e.upper_float for e in truth], (2, 2)).tolist()
        found = delta_upper(mu_squared=mu_squared, epsilon=given)
        truth = [delta_from_epsilon(mu_squared=mu_squared, epsilon=x) for x in given.flat]
        assert found.tolist() == np.reshape([d.upper_float for d in truth], (2, 2)).tolist()


def test_the_branches_meet_without_a_gap() -> None:
    # either side of mu = 1/100 and of a = epsilon/mu - mu/2 = 0
    for mu in (0.0099999, 0.01, 0.0100001, 0.5):
        for epsilon in (mu * mu / 2 * (1 - 1e-9), mu * mu / 2, mu * mu / 2 * (1 + 1e-9)):
            truth = delta_from_epsilon(mu_squared=mu * mu, epsilon=epsilon)
            fast = float(delta_upper(mu_squared=np.array([mu * mu]), epsilon=epsilon)[0])
            assert truth <= fast <= truth.upper_float * (1 + 1e-11)


def test_the_assumed_accuracy_of_mills_ratio_holds_with_room() -> None:
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(0, 4, 4000), rng.uniform(0, 60, 4000), [0.0, 1e-300, 1e3]])
    worst = 0.0
    with precision(200):
        for point, value in zip(x, gaussian_fast._mills(x), strict=True):
            scaled = arb(float(point)) / arb(2).sqrt()
            exact = (scaled * scaled).exp() * scaled.erfc() * (arb.pi() / 2).sqrt()
            worst = max(worst, abs(float((arb(float(value)) - exact) / exact)))
    assert worst <= gaussian_fast._MILLS_ERROR / 3


def test_the_assumed_accuracy_of_the_normal_quantile_holds_with_room() -> None:
    rng = np.random.default_rng(5)
    p = np.concatenate(
        [10 ** rng.uniform(-300, -0.01, 4000), 1 - 10 ** rng.uniform(-15, -0.3, 2000)]
    )
    worst = 0.0
    with precision(200):
        for probability, value in zip(p, ndtri(p), strict=True):
            exact = -arb(2).sqrt() * (2 * arb(float(probability))).erfcinv()
            error = abs(float(arb(float(value)) - exact)) / (1 + abs(float(exact)))
            worst = max(worst, error)
    assert worst <= gaussian_fast._QUANTILE_ERROR / 10


def test_an_attackers_rates_are_bounded_outward_and_closely() -> None:
    rng = np.random.default_rng(6)
    level = np.concatenate([10 ** rng.uniform(-290, -1, 60), rng.uniform(0, 1, 120)])
    mu = 10 ** rng.uniform(-6, 1, 180)
    squares = mu * mu
    tpr = tpr_upper(mu_squared=squares, fpr=level)
    beta = beta_lower(mu_squared=squares, alpha=level)
    with mp.workdps(60):
        for s, p, upper, lower in zip(squares, level, tpr, beta, strict=True):
            quantile = -mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(float(p))) if p > 1e-9 else None
            if quantile is None:
                quantile = mp.findroot(
                    lambda z, p=p: mp.log(mp.ncdf(z)) - mp.log(mp.mpf(float(p))),
                    float(ndtri(p)),
                )
            score = quantile + mp.sqrt(mp.mpf(float(s)))
            true_tpr, true_beta = mp.ncdf(score), mp.ncdf(-score)
            assert true_tpr <= upper <= min(1, true_tpr * (1 + LOOSENESS) + mp.mpf(10) ** -300)
            assert true_beta * (1 - LOOSENESS) - mp.mpf(10) ** -300 <= lower <= true_beta


def test_the_advantage_is_delta_at_zero() -> None:
    for mu_squared in (1e-10, 0.01, 1.0, 50.0):
        truth = delta_from_epsilon(mu_squared=mu_squared, epsilon=0)
        fast = float(advantage_upper(mu_squared=mu_squared))
        assert truth <= fast <= truth.upper_float * (1 + LOOSENESS)


def test_the_edges_are_exact() -> None:
    rates = np.array([0.0, 0.25, 1.0])
    assert np.all(tpr_upper(mu_squared=0, fpr=rates) == rates)
    assert tpr_upper(mu_squared=1, fpr=rates)[[0, 2]].tolist() == [0.0, 1.0]
    assert np.all(tpr_upper(mu_squared=math.inf, fpr=0.1) == 1)
    assert beta_lower(mu_squared=1, alpha=rates)[[0, 2]].tolist() == [1.0, 0.0]
    assert float(beta_lower(mu_squared=math.inf, alpha=0.1)) == 0
    assert epsilon_upper(mu_squared=[0.0, math.inf], delta=1e-5).tolist() == [0.0, math.inf]
    assert delta_upper(mu_squared=[0.0, math.inf], epsilon=1.0).tolist() == [0.0, 1.0]
    assert float(delta_upper(mu_squared=1, epsilon=math.inf)) == 0
    assert float(epsilon_upper(mu_squared=1, delta=0.5)) == 0


def test_an_exact_mu_squared_is_rounded_up() -> None:
    third = Fraction(1, 3)
    from_fraction = epsilon_upper(mu_squared=third, delta=1e-5)
    assert epsilon_from_delta(mu_squared=third, delta=1e-5) <= float(from_fraction)
    assert from_fraction == epsilon_upper(mu_squared=Enclosure.of(third), delta=1e-5)


def test_shapes_broadcast() -> None:
    grid = epsilon_upper(mu_squared=np.array([[0.5], [2.0]]), delta=[1e-5, 1e-6, 1e-7])
    assert grid.shape == (2, 3)
    assert np.all(np.diff(grid, axis=0) > 0)
    assert np.all(np.diff(grid, axis=1) > 0)


@pytest.mark.parametrize("mu_squared", [-1.0, math.nan, [1.0, -2.0]])
def test_an_impossible_mu_squared_is_an_error(mu_squared: float | list[float]) -> None:
    with pytest.raises(InvalidParameter, match=r"mu_squared=.* must be in \[0"):
        delta_upper(mu_squared=mu_squared, epsilon=1.0)


@pytest.mark.parametrize("delta", [0.0, 1.0, 1e-301, math.nan, [0.1, 2.0]])
def test_a_delta_out_of_range_is_an_error(delta: float | list[float]) -> None:
    with pytest.raises(InvalidParameter, match="delta="):
        epsilon_upper(mu_squared=1, delta=delta)


def test_what_would_be_rounded_silently_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="an array of floats"):
        epsilon_upper(mu_squared=1, delta=np.array([Fraction(1, 3)]))
