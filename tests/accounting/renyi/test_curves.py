"""What is known by its Rényi divergences alone: the theorem's price lies above what is exact."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpledger.accounting.accountants import RdpAccountant, tightest_accountant
from dpledger.accounting.composition import composed
from dpledger.accounting.renyi.curves import (
    CurveAccountant,
    Selection,
    SelectionAccountant,
    zcdp_moment,
)
from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
from dpledger.mechanisms.errors import InvalidParameter

SHAPES = [0.0, 0.5, 1.0, 3.0]


def gaussian(mu):
    """Return one Gaussian step of mean shift mu, in standard deviations."""
    unit = declared(1, "example", adjacency=Adjacency.ADD_REMOVE_ONE)
    return composed([Event(GaussianStep(unit, 1 / mu), Context((), 1, "sum", Audience.PUBLIC))])


def slope_of_generating_function(selection, x):
    """Return f'(x), f(x) = E[x^K], of the truncated negative binomial law of K."""
    gamma, eta = exp(-selection.log_inverse_gamma), float(selection.shape)
    rest = 1 - (1 - gamma) * x
    if eta == 0:
        return (1 - gamma) / rest / -log(gamma)
    return eta * (1 - gamma) * rest ** (-eta - 1) / (gamma**-eta - 1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.001, 3.0, 1e4])
def test_the_stopping_probability_has_the_stated_mean(mean, shape):
    found = Selection(mean, shape)
    assert slope_of_generating_function(found, 1.0) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_best_of_gaussian_runs_is_inside_the_theorem(shape):
    """Exact: the largest of K runs, by quadrature of its density in both worlds."""
    mu, selection = 0.5, Selection(10, shape)
    best = SelectionAccountant(selection).with_composition(gaussian(mu))

    def density(y, shift):
        return slope_of_generating_function(selection, norm.cdf(y - shift)) * norm.pdf(y - shift)

    for epsilon in (0.5, 1.0, 1.5):
        bound = best.delta(epsilon).upper_float
        for one, other in ((mu, 0.0), (0.0, mu)):
            excess = lambda y: max(0.0, density(y, one) - exp(epsilon) * density(y, other))  # noqa: B023, E731
            exact, _ = quad(excess, -9, 9 + mu, limit=400)
            assert exact <= bound
    whole, _ = quad(lambda y: density(y, 0.0), -9, 9)
    assert whole == pytest.approx(1, abs=1e-6)


def test_the_best_run_costs_more_than_one_and_more_with_more_runs():
    one = tightest_accountant(gaussian(0.5)).epsilon(1e-5).upper_float
    found = [
        SelectionAccountant(Selection(mean)).with_composition(gaussian(0.5)).epsilon(1e-5)
        for mean in (1, 2, 20, 200)
    ]
    uppers = [epsilon.upper_float for epsilon in found]
    assert one < uppers[0]
    assert np.all(np.diff(uppers) > 0)
    assert all(epsilon.lower_float <= one for epsilon in found)


def test_zcdp_costs_what_a_gaussian_of_the_same_divergences_does():
    """ρ = mu²/2 has a Gaussian's divergences at every order, and its price by them."""
    beside = gaussian(0.3)
    found = CurveAccountant([(zcdp_moment(Fraction(1, 50)), 3)]).with_composition(beside)
    joint = gaussian((0.3**2 + 3 * 0.2**2) ** 0.5)
    expected = RdpAccountant.over(joint).epsilon(1e-6).upper_float
    assert found.epsilon(1e-6).upper_float == pytest.approx(expected, rel=1e-6)
    assert found.epsilon(1e-6).upper_float > tightest_accountant(joint).epsilon(1e-6).upper_float


def test_an_offset_of_zcdp_is_pure_epsilon_added():
    alone, offset = (
        CurveAccountant([(zcdp_moment(0.02, xi), 1)]).with_composition(composed([]))
        for xi in (0, 0.25)
    )
    difference = offset.epsilon(1e-6).upper_float - alone.epsilon(1e-6).upper_float
    assert difference == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize("mean", [0.99, 0, float("nan"), float("inf"), True])
def test_no_selection_runs_less_than_once(mean):
    with pytest.raises(InvalidParameter, match="expected number of runs"):
        Selection(mean)
    with pytest.raises(InvalidParameter):
        Selection(2, -0.5)
