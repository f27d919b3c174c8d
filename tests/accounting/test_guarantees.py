"""A guarantee states what the events cost, and what that rests on."""

from fractions import Fraction
from math import inf

import mpmath
import numpy as np
import pytest

from dpledger.accounting.guarantees import (
    compare_conversions,
    deltas_at,
    epsilons_at,
    guarantee,
)
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.numbers.notions import Gdp
from dpledger.mechanisms import (
    Adjacency,
    AdjacencyMismatch,
    Audience,
    Context,
    DiscreteGaussianStep,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    Repeated,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.errors import Number
from dpledger.mechanisms.events import MOST_TIMES
from dpledger.mechanisms.sensitivity import mean_of_bounded

ADD = Adjacency.ADD_REMOVE_ONE


def event(mechanism: Mechanism, *parties: str, round: int = 1) -> Event:
    return Event(mechanism, Context(parties, round, "test", Audience.SERVER))


def step(noise_std: float, reason: str = "unit") -> GaussianStep:
    return GaussianStep(declared(1, reason, adjacency=Adjacency.REPLACE_ONE), noise_std)


def reference_delta(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    below = mpmath.ncdf(-epsilon / mu + mu / 2)
    return below - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)


def test_the_numbers_are_those_of_the_composed_gaussian() -> None:
    found = guarantee([event(step(s), round=i) for i, s in enumerate((2.0, 3.0, 5.0))], delta=1e-6)
    exact = Fraction(1, 4) + Fraction(1, 9) + Fraction(1, 25)
    with mpmath.workdps(50):
        mu = mpmath.sqrt(mpmath.mpf(exact.numerator) / exact.denominator)
        at_lower = reference_delta(mu, mpmath.mpf(found.epsilon.lower_float))
        at_upper = reference_delta(mu, mpmath.mpf(found.epsilon.upper_float))
        assert at_lower >= mpmath.mpf(1e-6) >= at_upper
        assert found.mu.lower_float <= mu <= found.mu.upper_float
    assert found.epsilon.relative_width < 1e-12
    assert found.rho.contains(exact / 2)
    assert isinstance(found.notion, Gdp)
    assert 0 <= found.notion.mu_squared - exact < Fraction(1, 2**500)
    assert found.grade is Grade.ENCLOSED


def test_each_party_has_its_own_cost() -> None:
    found = guarantee(
        [event(step(2.0), "a", "b"), event(step(2.0), "b"), event(step(4.0))], delta=1e-6
    )
    costs = {cost.parties: cost for cost in found.by_party}
    assert costs[()].mu_squared == Fraction(1, 16)
    assert costs[("a",)].mu_squared == Fraction(5, 16)
    assert costs[("b",)].mu_squared == Fraction(9, 16)
    assert found.epsilon.upper == costs[("b",)].epsilon.upper
    assert costs[("a",)].epsilon < found.epsilon
    assert any("McSherry" in theorem.source for theorem in found.theorems)


def test_declared_sensitivities_are_listed_and_derived_ones_are_not() -> None:
    derived = GaussianStep(mean_of_bounded(1, 100, Adjacency.REPLACE_ONE), 1.0)
    events = [event(step(2.0, "by the data sheet")), event(step(2.0, "by the data sheet"))]
    assert guarantee([*events, event(derived)], delta=1e-6).assumptions == ("by the data sheet",)
    assert guarantee([event(derived)], delta=1e-6).assumptions == ()


def test_an_unprotected_release_costs_infinity_and_says_why() -> None:
    found = guarantee(
        [event(step(1.0)), event(UnprotectedRelease("dual from the raw gradient"), "a")], delta=0.01
    )
    assert found.epsilon == inf
    assert found.unprotected == ("dual from the raw gradient",)
    assert found.notion == Gdp(inf)


def test_no_events_cost_nothing() -> None:
    found = guarantee([], delta=1e-6)
    assert found.epsilon == 0
    assert found.adjacency is None


def test_the_expected_relation_is_checked() -> None:
    with pytest.raises(AdjacencyMismatch):
        guarantee([event(step(1.0))], delta=1e-6, adjacency=Adjacency.ADD_REMOVE_ONE)
    found = guarantee([], delta=1e-6, adjacency=Adjacency.ADD_REMOVE_ONE)
    assert found.adjacency is Adjacency.ADD_REMOVE_ONE


@pytest.mark.parametrize("delta", [1.0, -1.0, float("nan")])
def test_delta_lies_between_zero_and_one(delta: float) -> None:
    with pytest.raises(InvalidParameter):
        guarantee([event(step(1.0))], delta=delta)


def test_every_point_of_the_curve_holds_and_none_is_loose() -> None:
    events = [event(step(3.0))] * 4
    deltas = np.geomspace(1e-20, 0.4, 9)
    certified = epsilons_at(events, deltas=deltas)
    fast = epsilons_at(events, deltas=deltas, grade=Grade.FAST)
    assert (certified.grade, fast.grade) == (Grade.ENCLOSED, Grade.FAST)
    assert np.all(fast.epsilon >= certified.epsilon * (1 - 1e-15))
    np.testing.assert_allclose(fast.epsilon, certified.epsilon, rtol=1e-8, atol=1e-12)
    with mpmath.workdps(50):
        mu = mpmath.mpf(2) / 3
        for epsilon, delta in zip(certified.epsilon, certified.delta, strict=True):
            assert reference_delta(mu, mpmath.mpf(float(epsilon))) <= mpmath.mpf(float(delta))
    back = deltas_at(events, epsilons=certified.epsilon[certified.epsilon > 0])
    positive = certified.epsilon > 0
    np.testing.assert_allclose(back.delta, deltas[positive], rtol=1e-9)
    assert np.all(back.delta <= deltas[positive] * (1 + 1e-15))
    fast_back = deltas_at(events, epsilons=back.epsilon, grade=Grade.FAST)
    np.testing.assert_allclose(fast_back.delta, back.delta, rtol=1e-8)


def test_the_exact_conversion_is_the_smallest() -> None:
    # rho = 1/8, ln(1/delta) = ln 1e5: Bun-Steinke by hand; Abadi et al. by trying every order
    found = compare_conversions([event(step(2.0))], delta=1e-5)
    log_inverse = np.log(1e5)
    assert found.zcdp.upper_float == pytest.approx(0.125 + 2 * np.sqrt(0.125 * log_inverse))
    orders = np.arange(1, 33)
    assert found.moments.upper_float == pytest.approx(
        np.min((orders + 1) * 0.125 + log_inverse / orders)
    )
    assert found.exact < found.rdp < found.zcdp < found.moments


@pytest.mark.parametrize("kind", ["sampled", "pure", "unprotected"])
def test_conversions_are_compared_for_any_events(kind: str) -> None:
    size = declared(1, "clipped", adjacency=Adjacency.ADD_REMOVE_ONE)
    pure = declared(1, "count", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1)
    mechanism: Mechanism = {
        "sampled": Repeated(PoissonSampled(GaussianStep(size, 2.0), 0.1), 100),
        "pure": Repeated(LaplaceStep(pure, 20.0), 40),
        "unprotected": UnprotectedRelease("raw"),
    }[kind]
    plan = [event(mechanism), event(GaussianStep(size, 10.0))]
    found = compare_conversions(plan, delta=1e-5)
    assert found.exact.upper == guarantee(plan, delta=1e-5).epsilon.upper
    if kind == "unprotected":
        assert found.exact == found.rdp == found.zcdp == found.moments == inf
        return
    assert found.exact < found.rdp < found.moments < inf
    assert (found.zcdp.upper_float == inf) == (kind == "sampled")
    if kind == "pure":
        rho = 40 / 800 + 1 / 200
        expected = rho + 2 * np.sqrt(rho * np.log(1e5))
        assert found.zcdp.upper_float == pytest.approx(expected)


def test_sampled_steps_have_an_epsilon_no_mu_and_say_what_they_rest_on() -> None:
    size = declared(1, "clipped", adjacency=Adjacency.ADD_REMOVE_ONE)
    plan = [event(Repeated(PoissonSampled(GaussianStep(size, 1.0), 0.01), 1000))]
    found = guarantee(plan, delta=1e-5)
    assert found.epsilon.upper_float == pytest.approx(1.8282366665, abs=1e-9)
    assert found.epsilon.relative_width < 1e-6
    assert (found.notion, found.mu.upper, found.rho.upper) == (Gdp(inf), inf, inf)
    assert found.by_party[0].epsilon.upper == found.epsilon.upper
    assert any("hidden" in text for text in found.assumptions)
    assert any("Poisson" in theorem.statement for theorem in found.theorems)
    fast = epsilons_at(plan, deltas=[1e-5], grade=Grade.FAST)
    assert found.epsilon.lower_float <= fast.epsilon[0] <= found.epsilon.upper_float * (1 + 1e-6)
    assert deltas_at(plan, epsilons=[found.epsilon.upper_float]).delta[0] <= 1e-5 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("delta", "by_renyi"),
    [(1e-5, False), (Fraction(1, 10**310), True)],  # doubles end there, and so do profiles
)
def test_divergences_are_cited_where_they_were_asked(delta: Number, by_renyi: bool) -> None:
    size = declared(1, "clipped", adjacency=Adjacency.ADD_REMOVE_ONE)
    plan = [event(Repeated(PoissonSampled(GaussianStep(size, 1.0), 0.01), 100))]
    sources = {theorem.source for theorem in guarantee(plan, delta=delta).theorems}
    assert any("Zhu" in source for source in sources)
    assert any("Mironov, Talwar, Zhang" in source for source in sources) == by_renyi
    assert any("Proposition 12" in source for source in sources) == by_renyi


@pytest.mark.parametrize(
    ("root", "method", "cited", "not_cited"),
    [
        (1, "privacy profile", "Definition 1", "Theorem 4"),
        (2, "privacy profile", "Definition 1", "Theorem 4"),
        (5, "Rényi", "Theorem 4", "Definition 1"),
    ],
)
def test_a_discrete_gaussian_cites_what_priced_it(
    root: int, method: str, cited: str, not_cited: str
) -> None:
    size = declared(root, "counts", adjacency=Adjacency.REPLACE_ONE)
    found = guarantee([event(DiscreteGaussianStep(size, 9.5))], delta=1e-6)
    sources = [t.source for t in found.theorems if "Canonne" in t.source]
    assert method in found.method
    assert any(source.endswith(cited) for source in sources)
    assert not any(source.endswith(not_cited) for source in sources)


def test_pure_steps_have_a_rho() -> None:
    size = declared(1, "count", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)
    found = guarantee([event(LaplaceStep(size, 4.0))], delta=1e-5)
    assert found.rho.upper_float == 1 / 32
    assert found.mu.upper == inf


@pytest.mark.parametrize("noise_std", [2e4, 1e9])
def test_discrete_noise_on_a_very_fine_lattice_costs_what_gaussian_noise_does(
    noise_std: float,
) -> None:
    unit = declared(1, "counts", adjacency=Adjacency.REPLACE_ONE)
    times = round(noise_std**2)
    fine = guarantee([event(Repeated(DiscreteGaussianStep(unit, noise_std), times))], delta=1e-6)
    plain = guarantee([event(Repeated(GaussianStep(unit, noise_std), times))], delta=1e-6)
    assert fine.method.startswith("Rényi")
    assert plain.epsilon.upper_float < fine.epsilon.upper_float < 1.1 * plain.epsilon.upper_float


def test_the_most_runs_are_priced_and_one_more_is_refused() -> None:
    # by the central limit theorem the steps together are (rate·sqrt(times)/noise = 1)-GDP
    sampled = PoissonSampled(GaussianStep(declared(1, "unit", adjacency=ADD), 1e7), 0.01)
    most = Repeated(Repeated(sampled, 10**9), 10**9)
    plain = GaussianStep(declared(1, "unit", adjacency=ADD), 1.0)
    found = guarantee([event(most)], delta=1e-6).epsilon
    limit = guarantee([event(plain)], delta=1e-6).epsilon.upper_float
    assert 0.9 * limit < found.lower_float <= limit * (1 + 1e-6)
    assert limit * (1 - 1e-6) <= found.upper_float < 1.1 * limit
    for times, inner in (
        (MOST_TIMES + 1, sampled),
        (10**9 + 1, Repeated(sampled, 10**9)),
        (10**5000, sampled),
    ):
        with pytest.raises(InvalidParameter, match="times=") as refused:
            Repeated(inner, times)
        assert len(str(refused.value)) < 200
