"""The tight accountant: the two routes against each other, closed forms and other code."""

import random
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from math import comb, exp, inf, log

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parameters import slow

from dpledger.accounting.composition import composed
from dpledger.accounting.gaussian import exact as gaussian
from dpledger.accounting.gaussian import fast as gaussian_fast
from dpledger.accounting.pld import PrivacyProfile, contour, contour_certified, routes
from dpledger.accounting.pld.accountant import TightAccountant
from dpledger.accounting.pld.distribution import epsilon_by_pld
from dpledger.accounting.pld.pairs import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Sampled,
)
from dpledger.mechanisms.adjacency import Adjacency
from dpledger.mechanisms.events import (
    Audience,
    Context,
    Event,
    GaussianStep,
    PoissonSampled,
)
from dpledger.mechanisms.sensitivity import declared

BOTH = (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)


def sampled(rate: float, multiplier: float, order: Order) -> Sampled:
    return Sampled(GaussianShift(1 / Fraction(multiplier) ** 2), Fraction(rate), order)


def add_remove(steps: Mapping[tuple[float, float], int]) -> PrivacyProfile:
    """Return the profile of Poisson-sampled Gaussian steps, given by (rate, multiplier)."""
    return PrivacyProfile.of_pairs(
        *({sampled(*key, order): n for key, n in steps.items()} for order in BOTH)
    )


@pytest.mark.parametrize(
    ("rate", "multiplier", "steps", "delta", "expected"),
    [
        (0.01, 1.0, 1_000, 1e-5, 1.8282366665),
        (0.01, 1.0, 100_000, 1e-5, 25.5731069865),
        (1e-3, 0.8, 1_000_000, 1e-7, 11.5857325355),
    ],
)
def test_certified_enclosures_are_narrow_and_hold_the_reference_values(
    rate: float, multiplier: float, steps: int, delta: float, expected: float
) -> None:
    found = add_remove({(rate, multiplier): steps}).epsilon(delta)
    assert found.relative_width < 1e-6
    assert found.lower_float <= expected * (1 + 1e-10)
    assert found.upper_float >= expected * (1 - 1e-10)


def test_clt_values_are_below_the_truth_and_ours_are_not() -> None:
    # mu-GDP by the central limit theorem: mu = rate sqrt(steps (e - 1)) at multiplier one
    clt = 1e-4 * 1000 * (exp(1) - 1)
    too_small = gaussian_fast.epsilon_upper(mu_squared=clt, delta=1e-5)
    assert float(too_small) < add_remove({(0.01, 1.0): 1000}).epsilon(1e-5).lower_float


def test_replace_one_doubles_the_shift() -> None:
    ten_steps = PrivacyProfile.of_pairs({GaussianShift(Fraction(4)): 10})
    assert ten_steps.epsilon(1e-5).upper_float == pytest.approx(46.21, abs=5e-3)


COMPOSITIONS: list[dict[DominatingPair, int]] = [
    {sampled(0.01, 1.0, Order.MIXTURE_FIRST): 200},
    {sampled(0.01, 1.0, Order.MIXTURE_SECOND): 200},
    {sampled(0.3, 0.6, Order.SYMMETRISED): 40},
    {sampled(0.01, 1.0, Order.MIXTURE_FIRST): 100, GaussianShift(Fraction(1, 50)): 1},
    {
        Sampled(LaplaceShift(Fraction(1)), Fraction(1, 20), Order.SYMMETRISED): 60,
        LaplaceShift(Fraction(1, 9)): 9,
        GaussianShift(Fraction(1, 9)): 1,
    },
    {RandomisedAnswers(Fraction(11, 20), 3): 50, GaussianShift(Fraction(1, 50)): 1},
    {DiscreteLaplaceShift(Fraction(1, 20), 2): 40, GaussianShift(Fraction(1, 50)): 1},
    {DiscreteGaussianShift(Fraction(400)): 60, GaussianShift(Fraction(1, 50)): 1},
]


@pytest.mark.parametrize("counts", COMPOSITIONS, ids=range(len(COMPOSITIONS)))
@pytest.mark.parametrize("delta", [*slow(1e-3), 1e-9])
def test_contour_and_grid_enclose_the_same_number(
    counts: dict[DominatingPair, int], delta: float
) -> None:
    by_contour = contour_certified.epsilon_enclosure(counts, delta)
    by_grid = epsilon_by_pld(counts, delta, cells=1 << 12)
    assert by_contour.lower <= by_grid.upper
    assert by_grid.lower <= by_contour.upper
    assert by_grid.relative_width < 0.3
    fast = PrivacyProfile.of_pairs(counts).epsilon_upper(delta)
    assert fast >= by_contour.lower_float
    assert fast >= by_grid.lower_float


@pytest.mark.parametrize("delta", [1e-10, 1e-12, 1e-14])
def test_exact_integers_stay_above_the_truth_where_fast_fourier_transforms_fall_below(
    delta: float,
) -> None:
    exact = gaussian.epsilon_from_delta(mu_squared=1, delta=delta)
    found = epsilon_by_pld({GaussianShift(Fraction(1, 10_000)): 10_000}, delta, cells=1 << 15)
    assert exact < found.upper_float * (1 + 1e-15)
    assert found.lower_float < exact
    assert found.upper_float < 1.02 * exact.upper_float


@pytest.mark.parametrize("count", [1, 2, 10, 100])
def test_randomised_response_is_a_binomial_sum(count: int) -> None:
    # delta(eps) by the number k of truthful answers: P = C p^k (1-p)^(n-k), Q mirrored
    p = mpmath.mpf(3) / 5

    def delta_at(epsilon: mpmath.mpf) -> mpmath.mpf:
        terms = (
            comb(count, k)
            * (
                p**k * (1 - p) ** (count - k)
                - mpmath.exp(epsilon) * (1 - p) ** k * p ** (count - k)
            )
            for k in range(count + 1)
        )
        return mpmath.fsum(max(term, 0) for term in terms)

    profile = PrivacyProfile.of_pairs({RandomisedAnswers(Fraction(3, 5), 2): count})
    found = profile.epsilon(1e-5)
    with mpmath.workdps(40):
        assert delta_at(mpmath.mpf(found.upper_float)) <= 1e-5 * (1 + 1e-12)
        assert delta_at(mpmath.mpf(found.lower_float)) >= 1e-5 * (1 - 1e-12)
        assert delta_at(mpmath.mpf(profile.epsilon_upper(1e-5))) <= 1e-5 * (1 + 1e-12)


LAPLACE = LaplaceShift(Fraction(1, 2))
FEW_WITH_ATOMS: list[tuple[dict[DominatingPair, int], float]] = [
    ({RandomisedAnswers(Fraction(3, 4), 5): 100}, 1e-6),
    ({RandomisedAnswers(Fraction(3, 4), 2): 30, RandomisedAnswers(Fraction(1, 3), 2): 30}, 1e-6),
    ({LAPLACE: 10}, 1e-6),
    ({LAPLACE: 7, RandomisedAnswers(Fraction(3, 5), 2): 20}, 1e-6),
    ({DiscreteGaussianShift(Fraction(16)): 20, GaussianShift(Fraction(1, 4)): 1}, 1e-6),
    ({Sampled(LAPLACE, Fraction(1, 10), Order.MIXTURE_FIRST): 4, LAPLACE: 2}, 1e-3),
]


@pytest.mark.parametrize(
    ("counts", "width"),
    [*FEW_WITH_ATOMS[:-1], *slow(FEW_WITH_ATOMS[-1])],
    ids=range(len(FEW_WITH_ATOMS)),
)
@pytest.mark.parametrize("delta", [1e-3, pytest.param(1e-8, marks=pytest.mark.slow)])
def test_few_steps_with_atoms_have_narrow_enclosures(
    counts: dict[DominatingPair, int], width: float, delta: float
) -> None:
    profile = PrivacyProfile.of_pairs(counts)
    found = profile.epsilon(delta)
    assert found.relative_width <= width
    assert profile.epsilon_upper(delta) >= found.lower_float
    assert profile.delta(found.upper_float).lower_float <= delta
    assert profile.delta(found.lower_float).upper_float >= delta


def test_agrees_with_dp_accounting() -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    accountant = pld.from_gaussian_mechanism(
        1.0, value_discretization_interval=1e-3, sampling_prob=0.02
    )
    theirs = accountant.self_compose(300).get_epsilon_for_delta(1e-4)
    ours = add_remove({(0.02, 1.0): 300}).epsilon(1e-4)
    assert ours.lower_float <= theirs <= ours.upper_float * 1.01


def test_the_largest_order_counts() -> None:
    both = add_remove({(0.05, 1.0): 100})
    alone = [PrivacyProfile.of_pairs(counts).epsilon(1e-6) for counts in both.orders]
    assert both.epsilon(1e-6).upper_float == max(e.upper_float for e in alone)
    assert alone[0].lower_float > alone[1].upper_float


@pytest.mark.parametrize(("epsilon", "skipped"), [(0.0, False), (1.83, True)])
def test_an_order_that_cannot_be_the_worse_one_is_not_asked(epsilon: float, skipped: bool) -> None:
    profile = add_remove({(0.01, 1.0): 1_000})
    both = [routes.delta(counts, epsilon) for counts in profile.orders]
    found = profile.delta(epsilon)
    assert found.upper == max(each.upper for each in both)
    assert found.lower == max(each.lower for each in both)
    assert routes.delta_at_most(profile.orders[1], epsilon, both[0].lower) == skipped
    assert not routes.delta_at_most(profile.orders[0], epsilon, both[0].lower)
    # losses of the second order are at most 1000 · log(1/0.99), about 10.05
    assert routes.delta_at_most(profile.orders[1], 10.06, arb(0))
    assert not routes.delta_at_most(profile.orders[1], 10.05, arb(0))


def test_one_event_of_each_kind_by_its_own_profile() -> None:
    # pure mechanisms: delta = 0 at the largest loss, Laplace in closed form
    laplace = PrivacyProfile.of_pairs({LaplaceShift(Fraction(1)): 1})
    assert laplace.delta(0.5).contains(1 - exp(-0.25)) or laplace.delta_upper(0.5) == (
        pytest.approx(1 - exp(-0.25), rel=1e-15)
    )
    assert laplace.epsilon(1e-30).upper_float == pytest.approx(1.0, rel=1e-12)
    one = PrivacyProfile.of_pairs({sampled(0.01, 1.0, Order.MIXTURE_FIRST): 1})
    # by hand: P(v > x) q + (1-q) Q - e^eps Q at the threshold x of the mixture
    threshold = log((exp(0.1) - 0.99) / 0.01)
    q = float(mpmath.erfc((threshold + 0.5) / mpmath.sqrt(2)) / 2)
    p = float(mpmath.erfc((threshold - 0.5) / mpmath.sqrt(2)) / 2)
    assert one.delta_upper(0.1) == pytest.approx(0.99 * q + 0.01 * p - exp(0.1) * q, rel=1e-9)


def test_the_curve_of_gaussian_steps_is_the_gaussian_curve() -> None:
    profile = PrivacyProfile.of_pairs({GaussianShift(Fraction(1, 4)): 4})
    deltas = np.array([[1e-3, 1e-5], [1e-7, 1e-9]])
    expected = gaussian_fast.epsilon_upper(mu_squared=1, delta=deltas)
    assert profile.epsilons_upper(deltas) == pytest.approx(expected, rel=1e-12)


def test_trade_off_bounds_lie_below_the_exact_curve_and_near_it() -> None:
    nearly = PrivacyProfile.of_pairs(
        {GaussianShift(Fraction(1)): 1, sampled(0.001, 4.0, Order.MIXTURE_FIRST): 2}
    )
    alpha = np.array([1e-3, 0.01, 0.1, 0.5, 0.9])
    exact = gaussian_fast.beta_lower(mu_squared=1, alpha=alpha)
    found = nearly.beta_lower(alpha)
    assert (found <= exact + 1e-12).all()
    assert found == pytest.approx(exact, abs=1e-4)
    assert nearly.tpr_upper(alpha) == pytest.approx(1 - found)
    assert nearly.advantage_upper() == pytest.approx(0.3829249, abs=1e-4)


def test_a_whole_curve_is_the_answers_one_by_one() -> None:
    profile = add_remove({(0.01, 1.0): 2000, (0.03, 2.0): 50})
    deltas = np.geomspace(1e-14, 1e-1, 40).reshape(2, 20)
    epsilons = profile.epsilons_upper(deltas)
    alone = [profile.epsilon_upper(delta) for delta in deltas.flat]
    assert epsilons.ravel() == pytest.approx(alone, rel=1e-9)
    assert profile.deltas_upper(epsilons) == pytest.approx(deltas, rel=1e-7)
    for k in (0, 25, 39):
        assert epsilons.flat[k] >= profile.epsilon(float(deltas.flat[k])).lower_float


@pytest.mark.parametrize(
    ("grids", "width"),
    [
        ((1 << 12,), 1e-3),
        pytest.param((1 << 13, 1 << 15), 1e-4, marks=pytest.mark.slow),
    ],
)
def test_delta_and_epsilon_are_inverse_where_no_contour_decides(
    grids: tuple[int, ...], width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_GRIDS", grids)
    # so few steps that the contour's cut-off hides everything
    profile = add_remove({(0.01, 1.0): 3})
    epsilon = profile.epsilon(1e-5)
    assert epsilon.relative_width < width
    above, below = profile.delta(epsilon.upper_float), profile.delta(epsilon.lower_float)
    assert above.lower_float <= 1e-5 <= below.upper_float
    assert above.relative_width < 10 * width
    assert profile.delta_upper(epsilon.upper_float) == pytest.approx(1e-5, rel=10 * width)


def test_one_event_more_costs_one_moment_evaluation_an_order() -> None:
    events = {(0.01 + k / 1000, 1.0 + k / 20): 3 for k in range(40)}
    profile = add_remove(events)
    profile.epsilon_upper(1e-5)
    before = contour.moments_on.cache_info().misses
    larger = add_remove({**events, (0.02, 1.3): 1})
    assert larger.epsilon_upper(1e-5) > profile.epsilon_upper(1e-5)
    assert 1 <= contour.moments_on.cache_info().misses - before <= 2


def test_without_protection_everything_is_infinite() -> None:
    nothing = PrivacyProfile((), unprotected=True)
    assert nothing.epsilon_upper(1e-5) == inf
    assert nothing.delta_upper(3.0) == 1.0
    assert nothing.beta_lower([0.0, 0.5]) == pytest.approx(0.0)


def test_the_account_of_a_composition_has_the_profile_of_its_mechanisms() -> None:
    sensitivity = declared(1, "a test", adjacency=Adjacency.ADD_REMOVE_ONE)
    drawn = PoissonSampled(GaussianStep(sensitivity, 1.0), 0.02)
    steps = [drawn] * 100 + [GaussianStep(sensitivity, 10.3)] * 3
    context = Context((), 1, "a mean", Audience.SERVER)
    ((_, account),) = composed(Event(step, context) for step in steps).accounts
    by_account = TightAccountant().epsilon_of(account, 1e-5)
    directly = PrivacyProfile.of(Counter(steps), Adjacency.ADD_REMOVE_ONE).epsilon(1e-5)
    assert by_account.lower <= directly.upper
    assert directly.lower <= by_account.upper
    assert by_account.relative_width < 1e-6


rates = st.floats(1e-2, 0.3)
multipliers = st.floats(0.5, 20.0)


@settings(max_examples=8)
@given(rates, multipliers, st.integers(400, 5000), st.sampled_from([1e-3, 1e-6, 1e-12]))
def test_more_steps_less_noise_or_a_smaller_delta_never_cost_less(
    rate: float, multiplier: float, steps: int, delta: float
) -> None:
    base = add_remove({(rate, multiplier): steps}).epsilon(delta).lower_float
    dearer = [
        add_remove({(rate, multiplier): 2 * steps}).epsilon_upper(delta),
        add_remove({(rate, multiplier * 0.9): steps}).epsilon_upper(delta),
        add_remove({(min(1.1 * rate, 0.9), multiplier): steps}).epsilon_upper(delta),
        add_remove({(rate, multiplier): steps}).epsilon_upper(delta / 2),
        add_remove({(rate, multiplier): steps, (0.01, 2.0): 10}).epsilon_upper(delta),
    ]
    assert min(dearer) >= base


@settings(max_examples=5)
@given(rates, multipliers, st.integers(400, 2000))
def test_order_of_composition_does_not_matter(rate: float, multiplier: float, steps: int) -> None:
    first, second = {(rate, multiplier): steps}, {(0.02, 1.5): 50}
    one = add_remove({**first, **second}).epsilon(1e-6)
    other = add_remove({**second, **first}).epsilon(1e-6)
    assert one.lower <= other.upper
    assert other.lower <= one.upper


def test_very_many_steps_of_much_loss_fill_no_memory() -> None:
    # on a lattice as coarse as the sum of a million losses allows, one step's masses are hidden
    drawn = Sampled(GaussianShift(Fraction(1, 2**18)), Fraction(1, 16), Order.SYMMETRISED)
    counts: dict[DominatingPair, int] = {DiscreteGaussianShift(Fraction(1064)): 1264384, drawn: 1}
    delta = 6.8e-17
    profile = PrivacyProfile.of_pairs(counts)
    with pytest.raises(ArithmeticError, match="masses add up to one"):
        epsilon_by_pld(counts, delta, cells=1 << 9)
    found = profile.epsilon(delta)
    # losses that are cut off are enclosed more narrowly than the fast route's grid is fine
    assert found.lower_float <= profile.epsilon_upper(delta) <= found.upper_float * (1 + 1e-3)
    assert found.relative_width < 1e-3


def _soundness(seed: int) -> None:
    """Assert on one random composition: fast >= certified lower, certified holds the grid's end."""
    rng = random.Random(seed)
    pairs = rng.randint(1, 3)
    steps = {
        (10 ** rng.uniform(-6, -0.05), 10 ** rng.uniform(-1.3, 6)): round(10 ** rng.uniform(0, 8))
        for _ in range(pairs)
    }
    delta = 10 ** rng.uniform(-30, -2)
    order = rng.choice(list(Order))
    counts = {sampled(*key, order): n for key, n in steps.items()}
    profile = PrivacyProfile.of_pairs(counts)
    fast, certified = profile.epsilon_upper(delta), profile.epsilon(delta)
    assert 0 <= fast < inf
    assert fast >= certified.lower_float
    try:
        grid = epsilon_by_pld(counts, delta, cells=1 << 9)
    except ArithmeticError:
        return
    assert certified.upper >= grid.lower
    assert certified.lower <= grid.upper


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6, 7])
def test_soundness_on_random_compositions(seed: int) -> None:
    _soundness(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, *range(8, 500)])
def test_soundness_on_very_many_random_compositions(seed: int) -> None:
    _soundness(seed)


@pytest.mark.parametrize("truth", [0.2 + 2.0**-54, 0.2 + 2.0**-53, 0.2 - 2.0**-52])
@pytest.mark.parametrize("times", [1, 3])
def test_nearly_uniform_answers_are_not_cheaper_than_they_are(truth: float, times: int) -> None:
    pair = RandomisedAnswers(Fraction(truth), 5)
    profile = PrivacyProfile.of_pairs({pair: times})
    with mpmath.workdps(60):
        gain = mpmath.mpf((pair.truth - pair.other).numerator) / (
            (pair.truth - pair.other).denominator
        )
        true = times * abs(mpmath.log1p(gain / mpmath.mpf(float(pair.other))))
    delta = 1e-40
    assert float(true) * (1 - 1e-9) <= profile.epsilon_upper(delta) <= float(true) * 1.01
    assert profile.epsilon(delta).upper_float >= float(true) * (1 - 1e-9)


def test_a_bound_below_the_smallest_number_is_not_zero() -> None:
    profile = add_remove({(0.01, 1.0): 3})
    assert 0.0 < profile.delta_upper(1e6) <= profile.delta(1e6).upper_float


@pytest.mark.parametrize(
    "counts",
    [{LaplaceShift(Fraction(800)): 2}, {sampled(0.01, 5.0, Order.MIXTURE_FIRST): 10**9}],
)
def test_what_hardly_hides_anything_has_a_delta(counts: dict[DominatingPair, int]) -> None:
    profile = PrivacyProfile.of_pairs(counts)
    for epsilon in (0.0, 50.0):
        assert profile.delta_upper(epsilon) >= profile.delta(epsilon).lower_float
        assert profile.delta_upper(epsilon) > 0.99
