"""From mechanisms to dominating pairs: each rule, its side conditions, and refusals that name."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, prod
from statistics import NormalDist

import mpmath
import pytest
from tests.parameters import slow

from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.from_mechanisms import (
    NoDominatingPair,
    Unprotected,
    mixture_pairs,
    orders_of,
    pairs_of,
)
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
from dpledger.accounting.renyi.rdp import log_moment
from dpledger.mechanisms.adjacency import Adjacency
from dpledger.mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    UnprotectedRelease,
)
from dpledger.mechanisms.sensitivity import (
    Norm,
    Sensitivity,
    added,
    declared,
    scaled,
    sum_of_bounded,
)

ADD, ZERO, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE


def l2(value: float, adjacency: Adjacency = ADD) -> Sensitivity:
    return declared(Fraction(value), "a test", adjacency=adjacency)


def l1(value: float, adjacency: Adjacency = ADD) -> Sensitivity:
    return declared(Fraction(value), "a test", adjacency=adjacency, norm=Norm.L1)


def one(mechanism: Mechanism, adjacency: Adjacency, order: Order) -> object:
    (pair,) = pairs_of({mechanism: 1}, adjacency, order)
    return pair


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (GaussianStep(l2(3), 2.0), GaussianShift(Fraction(9, 4))),
        (LaplaceStep(l1(3), 2.0), LaplaceShift(Fraction(3, 2))),
        (DiscreteGaussianStep(l2(1.25), 2.0), DiscreteGaussianShift(Fraction(4))),
        (DiscreteLaplaceStep(l1(3.5), 2.0), DiscreteLaplaceShift(Fraction(1, 2), 3)),
        (RandomisedResponse(0.75, 3), RandomisedAnswers(Fraction(3, 4), 3)),
        (PoissonSampled(GaussianStep(l2(3), 2.0), 1.0), GaussianShift(Fraction(9, 4))),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_symmetric_pair_for(mechanism: Mechanism, pair: object) -> None:
    adjacency = REPLACE if isinstance(mechanism, RandomisedResponse) else ADD
    assert one(mechanism, adjacency, Order.MIXTURE_FIRST) == pair


def test_a_sampled_step_has_one_pair_for_each_order() -> None:
    step = PoissonSampled(GaussianStep(l2(3), 2.0), 0.25)
    assert orders_of(ADD) == orders_of(ZERO) == (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)
    for order in orders_of(ADD):
        assert one(step, ADD, order) == Sampled(
            GaussianShift(Fraction(9, 4)), Fraction(1, 4), order
        )


def test_a_fixed_batch_is_symmetrised() -> None:
    step = SampledWithoutReplacement(GaussianStep(l2(1, REPLACE), 2.0), 1, 8000)
    assert orders_of(REPLACE) == (Order.SYMMETRISED,)
    assert one(step, REPLACE, Order.SYMMETRISED) == Sampled(
        GaussianShift(Fraction(1, 4)), Fraction(1, 8000), Order.SYMMETRISED
    )


def test_a_fixed_batch_of_everything_is_the_plain_step() -> None:
    step = SampledWithoutReplacement(GaussianStep(l2(1, REPLACE), 2.0), 5, 5)
    assert one(step, REPLACE, Order.SYMMETRISED) == GaussianShift(Fraction(1, 4))


def test_gaussian_steps_add_up_and_repetitions_multiply() -> None:
    events = {Repeated(Repeated(GaussianStep(l2(1), 2.0), 3), 2): 2, GaussianStep(l2(2), 1.0): 1}
    assert pairs_of(events, ADD, Order.MIXTURE_FIRST) == {GaussianShift(Fraction(7)): 1}


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianStep(l2(0), 0.0),
        LaplaceStep(l1(0), 0.0),
        DiscreteGaussianStep(l2(0.5), 0.0),
        PoissonSampled(GaussianStep(l2(1), 0.0), 0.0),
        GaussianMixtureStep(l2(0), l2(1), 0.0, 0.0),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_moves_nothing_costs_nothing(mechanism: Mechanism) -> None:
    assert PrivacyProfile.of({mechanism: 10}, ADD).epsilon_upper(1e-9) == 0.0
    assert PrivacyProfile.of({mechanism: 10}, ADD).epsilon(1e-9) == 0


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianStep(l2(1), 0.0),
        LaplaceStep(l1(1), 0.0),
        DiscreteGaussianStep(l2(1), 0.0),
        DiscreteLaplaceStep(l1(1), 0.0),
        PoissonSampled(GaussianStep(l2(1), 0.0), 0.5),
        GaussianMixtureStep(l2(1), l2(1), 0.5, 0.0),
        UnprotectedRelease("the raw gradient"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_leaves_without_noise_costs_everything(mechanism: Mechanism) -> None:
    with pytest.raises(Unprotected):
        pairs_of({mechanism: 1}, ADD, Order.MIXTURE_FIRST)
    assert PrivacyProfile.of({mechanism: 1}, ADD).epsilon_upper(0.5) == float("inf")


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        (PoissonSampled(GaussianStep(l2(1, REPLACE), 1.0), 0.5), REPLACE),
        (SampledWithoutReplacement(GaussianStep(l2(1), 1.0), 1, 2), ADD),
        (SampledWithoutReplacement(GaussianStep(l2(1, ZERO), 1.0), 1, 2), ZERO),
        (DiscreteGaussianStep(l2(4.2), 1.0), ADD),
        (DiscreteGaussianStep(l2(3), 100.0), ADD),
        (DiscreteGaussianStep(l2(2), 0.2), ADD),
        (DiscreteGaussianStep(l2(1), 1e9), ADD),
        (DiscreteLaplaceStep(l1(10**8), 1e8), ADD),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_mechanism_without_a_rule_is_named(mechanism: Mechanism, adjacency: Adjacency) -> None:
    with pytest.raises(NoDominatingPair, match=type(mechanism).__name__):
        PrivacyProfile.of({mechanism: 1}, adjacency)


@pytest.mark.parametrize(("squared", "coordinates"), [(2, 2), (Fraction(29, 10), 2), (3, 3)])
def test_an_integer_vector_below_four_moves_coordinates_by_one(
    squared: Fraction, coordinates: int
) -> None:
    tree = replace(declared(1, "a test", adjacency=ADD).derivation, squared=Fraction(squared))
    size = Sensitivity(Norm.L2, ADD, Fraction(squared), tree)
    step = DiscreteGaussianStep(size, 1.5)
    profile = PrivacyProfile.of({step: 1}, ADD)
    # by hand: every outcome of all coordinates, shifted by one each
    noise = {k: exp(-k * k / 4.5) for k in range(-14, 16)}
    total, epsilon, true = sum(noise.values()), 0.75, 0.0
    for outcome in product(range(-13, 15), repeat=coordinates):
        p = prod(noise[k - 1] / total for k in outcome)
        q = prod(noise[k] / total for k in outcome)
        true += max(0.0, p - exp(epsilon) * q)
    assert profile.delta(epsilon).upper_float == pytest.approx(true, rel=1e-9)


def test_a_mixture_step_is_split_and_costs_more_than_either_part() -> None:
    drawn_sum = sum_of_bounded(1, REPLACE)
    mixture = GaussianMixtureStep(l2(0.002, REPLACE), drawn_sum, 2.0**-10, 2.0)
    whole = PrivacyProfile.of({mixture: 2000}, REPLACE).epsilon_upper(1e-5)
    constant = PrivacyProfile.of({GaussianStep(l2(0.002, REPLACE), 2.0): 2000}, REPLACE)
    drawn = SampledWithoutReplacement(GaussianStep(l2(2, REPLACE), 2.0), 1, 1024)
    sampled = PrivacyProfile.of({drawn: 2000}, REPLACE)
    parts = constant.epsilon_upper(1e-5), sampled.epsilon_upper(1e-5)
    assert max(parts) < whole < 4 * max(parts)


def shown_apart(rate: float, constant: float, record: float, other: float, epsilon: float) -> float:
    """δ(ε) of N(0, 1) with a record drawn now and then against its neighbour's, by a sum."""
    noise = NormalDist()

    def excess(x: float) -> float:
        first = (1 - rate) * noise.pdf(x) + rate * noise.pdf(x - record)
        second = (1 - rate) * noise.pdf(x - constant) + rate * noise.pdf(x - constant - other)
        return max(0.0, first - exp(epsilon) * second)

    return sum(excess(-12 + k / 400) for k in range(16_000)) / 400


def test_a_mixture_made_by_hand_covers_a_drawn_record_that_is_far_off() -> None:
    # the record brings h in one data set and h + 1 in the other: far off, it shows that it is drawn
    rate, constant, sampled, delta = 0.1, 0.01, 1.0, 1e-5
    stated = GaussianMixtureStep(l2(constant, REPLACE), l2(sampled, REPLACE), rate, 1.0)
    derived = replace(stated, sampled=scaled(sum_of_bounded(2, REPLACE), 0.25))
    literal = PrivacyProfile.of({stated: 1}, REPLACE).epsilon_upper(delta)
    hidden = PrivacyProfile.of({derived: 1}, REPLACE).epsilon_upper(delta)

    def worst(epsilon: float, records: list[float]) -> float:
        pairs = [pair for h in records for pair in ((h, h + sampled), (h + sampled, h))]
        shifts = (constant, -constant)
        return max(shown_apart(rate, c, *pair, epsilon) for pair in pairs for c in shifts)

    far = [0.0, 2.0, 4.0, 8.0]
    assert delta / 2 < worst(literal, far) <= delta
    assert worst(hidden, [-0.5]) <= delta  # a sum of records of norm 1/2 each, as derived
    assert worst(hidden, far) > 100 * delta


def test_only_a_sum_of_bounded_records_hides_its_sample() -> None:
    bounded = sum_of_bounded(1, REPLACE)
    for sampled, hidden in (
        (bounded, True),
        (scaled(bounded, 0.5), True),
        (l2(0, REPLACE), True),
        (l2(1, REPLACE), False),
        (scaled(l2(1, REPLACE), 0.5), False),
        (added(bounded, l2(1, REPLACE)), False),
        (added(bounded, bounded), True),
    ):
        assert GaussianMixtureStep(l2(1, REPLACE), sampled, 0.5, 1.0).hides_sample is hidden
    assert GaussianMixtureStep(l2(1), l2(1), 0.5, 1.0).hides_sample


def test_a_mixture_without_a_constant_part_is_the_sampled_step() -> None:
    mixture = GaussianMixtureStep(l2(0), l2(2), 0.25, 2.0)
    plain = PoissonSampled(GaussianStep(l2(2), 2.0), 0.25)
    for order in orders_of(ADD):
        assert one(mixture, ADD, order) == one(plain, ADD, order)


def test_a_mixture_under_zero_out_covers_a_fixed_batch() -> None:
    # the others' records are -1, the record is 1: drawn it moves a sum by 2, its null record by 1
    rate, epsilon, noise = 0.01, 0.3, NormalDist()
    mixture = GaussianMixtureStep(l2(0, ZERO), l2(1, ZERO), rate, 1.0)

    def excess(x: float) -> float:
        others = (1 - rate) * noise.pdf(x)
        record, null = rate * noise.pdf(x - 2), rate * noise.pdf(x - 1)
        return max(0.0, others + record - exp(epsilon) * (others + null))

    true = sum(excess(-10 + k / 1000) for k in range(25_000)) / 1000
    assert PrivacyProfile.of({mixture: 1}, ZERO).delta(epsilon).upper_float >= true > 5e-4


def test_the_fixed_batch_figure() -> None:
    # 8,000 records, one a batch, noise twice the replace-one sensitivity
    step = SampledWithoutReplacement(GaussianStep(l2(1, REPLACE), 2.0), 1, 8000)
    found = PrivacyProfile.of({step: 20_000}, REPLACE).epsilon(1e-5)
    assert found.relative_width < 1e-6
    assert found.upper_float == pytest.approx(0.0306, abs=5e-5)


@pytest.mark.parametrize("delta", [1e-20, 1e-100, 1e-250])
def test_one_discrete_gaussian_step_is_enclosed_at_tiny_deltas(delta: float) -> None:
    step = DiscreteGaussianStep(declared(1, "a test", adjacency=ADD), 5.0)
    found = PrivacyProfile.of({step: 1}, ADD).epsilon(delta)

    def exact(epsilon: float) -> mpmath.mpf:
        # the loss at k is (1 - 2k) / (2σ²): the probabilities of both laws, term by term
        weight = [mpmath.exp(-mpmath.mpf(k * k) / 50) for k in range(-400, 401)]
        total, grown = mpmath.fsum(weight), mpmath.exp(mpmath.mpf(epsilon))
        both = zip(weight[1:], weight[:-1], strict=True)
        return mpmath.fsum(max(p - grown * q, 0) for p, q in both) / total

    with mpmath.workdps(320):
        assert exact(found.upper_float) <= delta <= exact(found.lower_float)
    assert found.upper_float <= found.lower_float * (1 + 1e-9)


def test_a_step_that_tells_its_sample_is_no_step_that_hides_it_of_equal_numbers() -> None:
    """Counted or remembered as one, the first to come set the price of both."""
    hidden = GaussianMixtureStep(l2(1, REPLACE), sum_of_bounded(1, REPLACE), 0.1, 1.0)
    told = replace(hidden, sampled=l2(2, REPLACE))
    assert hidden.sampled == told.sampled
    assert hidden != told
    assert len({hidden, told, replace(told)}) == 2
    costs = [
        log_moment(step, Fraction(3)).upper() for step in (hidden, told, replace(told), hidden)
    ]
    assert costs[0] == costs[3] < costs[1] == costs[2]


@pytest.mark.parametrize(("rate", "constant"), [(0.3, 0.6), *slow((0.1, 0.1), (0.7, 2.0))])
def test_a_batch_beside_all_records_costs_no_less_than_any_pair_of_its_mixtures(
    rate: float, constant: float
) -> None:
    """A record brings a in one data set and b in the other when drawn, each of norm s/2 at most."""
    step = GaussianMixtureStep(l2(constant, REPLACE), sum_of_bounded(0.5, REPLACE), rate, 1.0)
    reach, delta = float(step.sampled.value) / 2, 1e-2
    epsilon = PrivacyProfile.of({step: 1}, REPLACE).epsilon_upper(delta)
    found = []
    for k, m in product(range(-2, 3), repeat=2):
        a, b = reach * k / 2, reach * m / 2
        found += [shown_apart(rate, c, a, b, epsilon) for c in (constant, -constant)]
    assert delta / 100 < max(found) <= delta * (1 + 1e-4)


@pytest.mark.parametrize(("runs", "delta"), [(1, 1e-5), (20, 1e-9)])
def test_a_mixture_costs_no_more_with_more_noise_nor_than_any_split_of_it(
    runs: int, delta: float
) -> None:
    order, costs = Order.MIXTURE_FIRST, []
    drawn = scaled(sum_of_bounded(1, ADD), 1)

    def price(pairs: dict[DominatingPair, int]) -> float:
        return PrivacyProfile.of_pairs(pairs).epsilon_upper(delta)

    for noise in (2.1, 2.14, 2.18, 2.22, 2.26, 2.3):
        mixture = GaussianMixtureStep(l2(0.3), drawn, 0.01, noise)
        assert mixture.hides_sample
        costs.append(price(pairs_of({mixture: runs}, ADD, order, delta)))
        by_hand = (
            dict.fromkeys(mixture_pairs(mixture, ADD, order, Fraction(k, 16)), runs)
            for k in (4, 9, 10, 11, 12, 13, 14)
        )
        assert costs[-1] <= 1.002 * min(map(price, by_hand))
    assert costs == sorted(costs, reverse=True)
