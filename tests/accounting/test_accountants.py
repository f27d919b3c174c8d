"""Laws of accountants, each run over all of them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpledger.accounting import accountants
from dpledger.accounting.accountants import (
    Accountant,
    GdpAccountant,
    MomentsAccountant,
    RdpAccountant,
    TightAccountant,
    ZcdpAccountant,
    tightest_accountant,
)
from dpledger.accounting.composition import UnpricedMechanism, composed
from dpledger.accounting.conversions import epsilon_from_moments, epsilon_from_zcdp_by_orders
from dpledger.accounting.guarantees import _BY_ACCOUNTANT, _BY_KIND
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.renyi.curves import SelectionAccountant
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    AdjacencyMismatch,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Norm,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    Sensitivity,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    Mechanism,
    Parties,
    RandomisedResponse,
)
from dpledger.mechanisms.sensitivity import mean_of_bounded, sum_of_bounded

REPLACE, ZERO, ADD = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE
DELTA = 1e-5


def l2(size: float = 1, adjacency: Adjacency = ADD) -> Sensitivity:
    return declared(size, "test", adjacency=adjacency)


def l1(size: float = 1, adjacency: Adjacency = ADD) -> Sensitivity:
    return declared(size, "test", adjacency=adjacency, norm=Norm.L1)


def event(mechanism: Mechanism, *parties: str) -> Event:
    return Event(mechanism, Context(parties, 1, "test", Audience.SERVER))


def gaussian(noise_std: float, adjacency: Adjacency = ADD) -> GaussianStep:
    return GaussianStep(l2(1, adjacency), noise_std)


def poisson(noise_std: float, rate: float) -> PoissonSampled:
    return PoissonSampled(gaussian(noise_std), rate)


def batch(noise_std: float, drawn: int, records: int) -> SampledWithoutReplacement:
    return SampledWithoutReplacement(gaussian(noise_std, REPLACE), drawn, records)


KINDS: dict[str, Callable[[float], Mechanism]] = {
    "Gaussian": gaussian,
    "Laplace": lambda noise: LaplaceStep(l1(), noise),
    "discrete Gaussian": lambda noise: DiscreteGaussianStep(l2(), noise),
    "discrete Laplace": lambda noise: DiscreteLaplaceStep(l1(), noise),
    "randomised response": lambda noise: RandomisedResponse(0.5 + 0.25 / noise),
    "Poisson Gaussian": lambda noise: poisson(noise, 0.1),
    "Poisson Laplace": lambda noise: PoissonSampled(LaplaceStep(l1(), noise), 0.1),
    "fixed batch": lambda noise: batch(noise, 1, 10),
    "mixture": lambda noise: GaussianMixtureStep(l2(0.25), l2(), 0.1, noise),
}
"""A mechanism of each kind, by how much noise it has (at least 1)."""

PURE = {"Laplace", "discrete Gaussian", "discrete Laplace", "randomised response"}
PRICES: dict[type[Accountant], set[str]] = {
    GdpAccountant: {"Gaussian"},
    ZcdpAccountant: {"Gaussian", *PURE},
    MomentsAccountant: set(KINDS),
    RdpAccountant: set(KINDS),
    TightAccountant: set(KINDS),
}
EVERY = pytest.mark.parametrize("kind", list(PRICES), ids=lambda kind: kind.name)
PRICED = pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, names in PRICES.items() for name in KINDS if name in names],
    ids=lambda value: value if isinstance(value, str) else value.name,
)


def charged(kind: type[Accountant], *mechanisms: Mechanism) -> Accountant:
    accountant = kind()
    accountant.extend(event(mechanism) for mechanism in mechanisms)
    return accountant


def upper(kind: type[Accountant], *mechanisms: Mechanism, delta: float = DELTA) -> float:
    return charged(kind, *mechanisms).epsilon(delta).upper_float


@EVERY
def test_what_is_not_priced_is_named_and_not_charged(kind: type[Accountant]) -> None:
    for name, make in KINDS.items():
        accountant, asked = kind(), event(Repeated(make(2.0), 3))
        assert accountant.supports(asked) == (name in PRICES[kind])
        if name in PRICES[kind]:
            continue
        with pytest.raises(UnpricedMechanism, match=type(make(2.0)).__name__):
            accountant.add(asked)
        assert accountant.epsilon(DELTA).upper == 0


@PRICED
def test_epsilon_and_delta_undo_each_other(kind: type[Accountant], name: str) -> None:
    accountant = charged(kind, KINDS[name](2.0))
    epsilon = accountant.epsilon(DELTA)
    assert epsilon.lower_float <= epsilon.upper_float < inf
    assert accountant.delta(epsilon.upper_float).upper_float <= DELTA * 1.01


@PRICED
def test_nobody_lies_below_the_tight_accountant(kind: type[Accountant], name: str) -> None:
    one = KINDS[name](2.0)
    assert upper(kind, one) >= charged(TightAccountant, one).epsilon(DELTA).lower_float
    for epsilon in (0.0, 0.1, 1.0):
        truth = charged(TightAccountant, one).delta(epsilon).lower_float
        assert charged(kind, one).delta(epsilon).upper_float >= truth


def slow_where_grids_are_needed(kind: type[Accountant], name: str) -> object:
    """Few steps with atoms go through loss distributions in exact integers: seconds each."""
    slow = kind is TightAccountant and name not in {"Gaussian", "Poisson Gaussian"}
    return pytest.param(kind, name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(
    ("kind", "name"),
    [slow_where_grids_are_needed(k, name) for k, names in PRICES.items() for name in sorted(names)],
)
def test_more_steps_less_noise_and_smaller_delta_cost_no_less(
    kind: type[Accountant], name: str
) -> None:
    make = KINDS[name]
    here = upper(kind, Repeated(make(2.0), 200)) * (1 - 1e-5)
    assert upper(kind, Repeated(make(2.0), 201)) >= here
    assert upper(kind, Repeated(make(1.9), 200)) >= here
    assert upper(kind, Repeated(make(2.0), 200), delta=DELTA / 2) >= here


@pytest.mark.parametrize("kind", [RdpAccountant, MomentsAccountant, TightAccountant])
def test_a_higher_rate_costs_no_less_and_rate_one_is_the_plain_step(
    kind: type[Accountant],
) -> None:
    rates = (0.0, 0.01, 0.1, 0.5, 1.0)
    costs = [upper(kind, poisson(2.0, rate)) for rate in rates]
    assert costs == sorted(costs)
    assert costs[0] == 0
    assert costs[-1] == upper(kind, gaussian(2.0))
    drawn = [upper(kind, batch(2.0, some, 10)) for some in (1, 5, 10)]
    assert drawn == sorted(drawn)
    assert drawn[-1] == upper(kind, gaussian(2.0, REPLACE))


@EVERY
def test_no_noise_and_no_mechanism_cost_everything(kind: type[Accountant]) -> None:
    for mechanism in (UnprotectedRelease("raw"), gaussian(0.0), poisson(0.0, 0.5)):
        accountant = charged(kind, gaussian(2.0), mechanism)
        assert accountant.epsilon(DELTA).lower == inf
        assert accountant.delta(3.0).lower == 1
        assert accountant.curve([DELTA]).epsilon[0] == inf


@EVERY
def test_nothing_costs_nothing(kind: type[Accountant]) -> None:
    free = GaussianStep(l2(0), 0.0)
    for accountant in (kind(), charged(kind, free, poisson(1.0, 0.0))):
        assert accountant.epsilon(DELTA).upper == 0
        assert accountant.delta(0).upper == 0
    assert upper(kind, RandomisedResponse(0.5)) == 0
    assert charged(kind, gaussian(2.0)).delta(inf).upper == 0


@EVERY
def test_records_of_the_dearest_party_count(kind: type[Accountant]) -> None:
    accountant = kind()
    accountant.add(event(gaussian(2.0), "a", "b"))
    accountant.add(event(gaussian(1.0), "b"))
    accountant.add(event(Parties((("c", (gaussian(3.0),)),))))
    found = dict(accountant.epsilon_by_party(DELTA))
    assert found[("b",)].upper_float == upper(kind, gaussian(2.0), gaussian(1.0))
    assert found[("a",)].upper_float == upper(kind, gaussian(2.0))
    assert found[("c",)].upper_float == upper(kind, gaussian(3.0))
    assert found[()].upper == 0
    assert accountant.epsilon(DELTA).upper == found[("b",)].upper


@EVERY
def test_relations_are_not_mixed(kind: type[Accountant]) -> None:
    accountant = charged(kind, gaussian(2.0))
    with pytest.raises(AdjacencyMismatch):
        accountant.add(event(gaussian(2.0, REPLACE)))
    assert accountant.epsilon(DELTA).upper_float == upper(kind, gaussian(2.0))


@EVERY
@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2.0, float("nan"), inf])
def test_delta_is_inside_the_unit_interval(kind: type[Accountant], delta: float) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        kind().epsilon(delta)


@EVERY
@pytest.mark.parametrize("epsilon", [-1.0, float("nan")])
def test_epsilon_is_not_negative(kind: type[Accountant], epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        kind().delta(epsilon)


@EVERY
def test_curves_are_made_of_their_points(kind: type[Accountant]) -> None:
    accountant, deltas = charged(kind, gaussian(2.0), gaussian(5.0)), [1e-3, 1e-6, 1e-9]
    curve = accountant.curve(deltas)
    assert curve.epsilon.tolist() == [accountant.epsilon(d).upper_float for d in deltas]
    assert curve.grade is Grade.ENCLOSED
    fast = accountant.curve(deltas, grade=Grade.FAST)
    assert np.all(fast.epsilon >= curve.epsilon * (1 - 1e-12))
    assert np.all(fast.epsilon <= curve.epsilon * (1 + 1e-6))
    back = accountant.curve_at(curve.epsilon)
    assert np.all(back.delta <= np.array(deltas) * 1.001)


@PRICED
def test_groups_pay_more_and_one_record_is_a_group(kind: type[Accountant], name: str) -> None:
    accountant = charged(kind, KINDS[name](4.0))
    assert accountant.epsilon(DELTA, group=1).upper == accountant.epsilon(DELTA).upper
    if (kind, name) == (TightAccountant, "discrete Gaussian"):
        # integer vectors five apart are too many
        with pytest.raises(UnpricedMechanism, match="DiscreteGaussianStep"):
            accountant.epsilon(DELTA, group=5)
    assert accountant.epsilon(DELTA, group=3).upper > accountant.epsilon(DELTA).upper


@EVERY
def test_a_group_of_k_meets_k_times_the_shift(kind: type[Accountant]) -> None:
    wide = GaussianStep(l2(3), 2.0)
    assert charged(kind, gaussian(2.0)).epsilon(DELTA, group=3).upper_float == pytest.approx(
        upper(kind, wide), rel=1e-9
    )
    with pytest.raises(InvalidParameter, match="size"):
        kind().epsilon(DELTA, group=0)


def test_groups_of_samples_pay_for_all_who_are_drawn() -> None:
    shares = Repeated(AccumulatedPoisson(GaussianStep(l2(1), 3.0), 0.5, 2).share, 2)
    found = charged(RdpAccountant, poisson(3.0, 0.5)).epsilon(DELTA, group=2)
    assert found.upper_float == upper(RdpAccountant, shares)
    both = SampledWithoutReplacement(GaussianStep(l2(2, REPLACE), 3.0), 2, 10)
    found = charged(RdpAccountant, batch(3.0, 1, 10)).epsilon(DELTA, group=2)
    assert found.upper_float == upper(RdpAccountant, both)
    answers = charged(RdpAccountant, RandomisedResponse(0.75)).epsilon(DELTA, group=4)
    assert answers.upper_float == upper(RdpAccountant, Repeated(RandomisedResponse(0.75), 4))


drawn_steps = st.lists(
    st.tuples(st.sampled_from(["Gaussian", "Laplace", "Poisson Gaussian"]), st.integers(1, 3)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("kind", [GdpAccountant, ZcdpAccountant, MomentsAccountant, RdpAccountant])
@settings(max_examples=8)
@given(drawn_steps, st.integers(0, 3))
def test_the_order_and_grouping_of_events_do_not_matter(
    kind: type[Accountant], drawn: list[tuple[str, int]], turn: int
) -> None:
    steps = [KINDS[name](float(noise)) for name, noise in drawn if name in PRICES[kind]]
    found = upper(kind, *steps)
    assert upper(kind, *steps[turn:], *steps[:turn]) == pytest.approx(found, rel=1e-9)
    twice = upper(kind, *steps, *steps)
    assert upper(kind, *(Repeated(step, 2) for step in steps)) == pytest.approx(twice, rel=1e-9)


def test_the_tight_enclosures_of_one_composition_overlap() -> None:
    first, second = Repeated(poisson(1.0, 0.02), 200), Repeated(poisson(2.0, 0.05), 100)
    one = charged(TightAccountant, first, second, gaussian(5.0)).epsilon(DELTA)
    other = charged(TightAccountant, gaussian(5.0), second, first).epsilon(DELTA)
    assert one.lower <= other.upper
    assert other.lower <= one.upper
    assert one.relative_width < 1e-6


def test_one_more_event_asks_one_more_price_and_equal_ones_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dpledger.accounting.renyi import accountant as renyi

    asked: set[Mechanism] = set()
    original = renyi.log_moment

    def noted(mechanism: Mechanism, order: Fraction) -> object:
        asked.add(mechanism)
        return original(mechanism, order)

    monkeypatch.setattr(renyi, "log_moment", noted)
    accountant = charged(RdpAccountant, *[poisson(2.0, 0.01)] * 500)
    accountant.epsilon(DELTA)
    assert asked == {poisson(2.0, 0.01)}


def test_orders_that_cost_integrals_are_asked_only_where_whole_ones_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dpledger.accounting.pld import accountant as tight
    from dpledger.accounting.renyi import accountant as renyi

    monkeypatch.setattr(tight, "_WIDE", 1e-6)
    orders: list[Fraction] = []
    original = renyi.log_moment

    def noted(mechanism: Mechanism, order: Fraction) -> object:
        orders.append(order)
        return original(mechanism, order)

    monkeypatch.setattr(renyi, "log_moment", noted)
    step = PoissonSampled(GaussianStep(sum_of_bounded(1, REPLACE), 0.01), 1e-3)
    found = charged(TightAccountant, Repeated(step, 10)).epsilon(1e-3)
    assert found.relative_width > 1e-6, "only wide enclosures need help"
    assert orders
    assert all(order.denominator == 1 for order in orders)


# what others get wrong, and figures that are known otherwise


def test_ten_steps_under_replace_one_cost_the_doubled_sensitivity() -> None:
    steps = Repeated(GaussianStep(l2(2, REPLACE), 1.0), 10)
    assert charged(GdpAccountant, steps).epsilon(DELTA).upper_float == pytest.approx(
        46.21, abs=5e-3
    )
    assert upper(RdpAccountant, steps) > 46.21


@pytest.mark.parametrize(
    "kind",
    [ZcdpAccountant, RdpAccountant, pytest.param(TightAccountant, marks=pytest.mark.slow)],
)
def test_more_answers_cost_more(kind: type[Accountant]) -> None:
    costs = [upper(kind, Repeated(RandomisedResponse(0.75), n)) for n in (1, 2, 10, 100)]
    assert all(a < b for a, b in pairwise(costs))
    assert costs[0] >= np.log((0.75 - DELTA) / 0.25) * (1 - 1e-12)


@pytest.mark.parametrize("delta", [1e-12, 1e-3, 0.2])
@pytest.mark.parametrize("noise_std", [1e6, 1e3, 30.0])
def test_epsilon_is_zero_only_where_delta_at_zero_says_so(noise_std: float, delta: float) -> None:
    accountant = charged(RdpAccountant, gaussian(noise_std))
    found = accountant.epsilon(delta)
    assert found.upper >= charged(GdpAccountant, gaussian(noise_std)).epsilon(delta).lower
    if found.upper == 0:
        assert accountant.delta(0).upper_float <= delta * (1 + 1e-9)


def test_published_figures_of_a_sampled_gaussian() -> None:
    steps = Repeated(poisson(1.0, 0.01), 1000)
    tight = charged(TightAccountant, steps).epsilon(DELTA)
    assert tight.lower_float <= 1.8282366665 + 1e-10
    assert tight.upper_float >= 1.8282366665 - 1e-10
    assert tight.relative_width < 1e-6
    assert 1.828 < upper(RdpAccountant, steps) < 1.15 * 1.828


def test_zcdp_and_moments_are_the_conversions_of_the_literature() -> None:
    steps = Repeated(gaussian(4.0), 9)
    rho = Fraction(9, 32)
    best = epsilon_from_zcdp_by_orders(rho=rho, delta=DELTA).epsilon.upper_float
    assert upper(ZcdpAccountant, steps) == pytest.approx(best, rel=1e-5)
    assert upper(RdpAccountant, steps) == pytest.approx(best, rel=1e-5)
    moments = epsilon_from_moments(rho=rho, delta=DELTA, max_order=32).epsilon.upper_float
    assert upper(MomentsAccountant, steps) == pytest.approx(moments, rel=1e-12)


def test_dp_accounting_agrees_on_rdp() -> None:
    rdp = pytest.importorskip("dp_accounting.rdp")
    peer = pytest.importorskip("dp_accounting")
    for rate, noise_std, steps in ((0.01, 1.0, 1000), (0.05, 2.0, 200)):
        accountant = rdp.RdpAccountant()
        sampled = peer.PoissonSampledDpEvent(rate, peer.GaussianDpEvent(noise_std))
        accountant.compose(peer.SelfComposedDpEvent(sampled, steps))
        theirs = accountant.get_epsilon(DELTA)
        ours = upper(RdpAccountant, Repeated(poisson(noise_std, rate), steps))
        assert theirs * 0.98 < ours <= theirs * (1 + 1e-6)


@pytest.mark.parametrize(
    ("mechanism", "wanted"),
    [
        (PoissonSampled(gaussian(1.0, REPLACE), 0.1), "add-remove"),
        (SampledWithoutReplacement(gaussian(1.0), 1, 10), "replace"),
        (PoissonSampled(GaussianStep(mean_of_bounded(1, 40, ADD), 1.0), 0.1), "public numbers"),
    ],
)
def test_sampling_outside_its_theorem_is_refused(mechanism: Mechanism, wanted: str) -> None:
    for kind in (RdpAccountant, TightAccountant, MomentsAccountant):
        with pytest.raises(UnpricedMechanism, match=wanted):
            kind().add(event(mechanism))


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (gaussian(1.0), GdpAccountant),
        (poisson(1.0, 0.1), TightAccountant),
        (DiscreteGaussianStep(l2(2), 3.0), TightAccountant),
        (DiscreteGaussianStep(l2(5), 3.0), RdpAccountant),
    ],
)
def test_the_tightest_that_knows_all_answers(
    mechanism: Mechanism, expected: type[Accountant]
) -> None:
    assert type(tightest_accountant(composed([event(mechanism)]))) is expected


def test_an_accountant_that_goes_on_with_a_composition_keeps_its_settings() -> None:
    events = [event(Repeated(poisson(2.0, 0.1), 20))]
    one = MomentsAccountant(max_order=3)
    one.extend(events)
    found = MomentsAccountant(max_order=3).with_composition(composed(events))
    assert found.max_order == 3
    assert found.epsilon(1e-5).upper == one.epsilon(1e-5).upper
    usual = MomentsAccountant.over(composed(events))
    assert usual.epsilon(1e-5).upper < found.epsilon(1e-5).upper


def test_an_accountant_stays_as_it_was_when_another_goes_on() -> None:
    before = charged(RdpAccountant, gaussian(1.0))
    cost = before.epsilon(1e-5).upper
    after = before.with_composition(composed([event(gaussian(0.5))]))
    after.add(event(gaussian(1.0)))
    assert before.epsilon(1e-5).upper == cost < after.epsilon(1e-5).upper


def test_every_accountant_says_what_theorems_it_rests_on() -> None:
    listed = {found for found in vars(accountants).values() if isinstance(found, type)}
    concrete = {found for found in listed if issubclass(found, Accountant)} - {Accountant}
    assert concrete == PRICES.keys()
    # the best of several runs is asked for by name, and not chosen by price
    assert concrete | {SelectionAccountant} == _BY_ACCOUNTANT.keys() == _BY_KIND.keys()
    assert all(_BY_ACCOUNTANT.values())
