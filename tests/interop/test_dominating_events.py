"""Events of theirs without a step of ours: what stands for them costs at least what they do.

Independent routes: dp_accounting's own PLD accountant and RDP accountant, exact enumeration.
"""

from itertools import pairwise, product
from math import exp, inf, isclose, log

import numpy as np
import pytest

from dpledger.accounting import guarantee
from dpledger.accounting.pure import pure_epsilon
from dpledger.interop import EventTree, mechanism_of
from dpledger.interop.dp_events import Untranslatable, dp_event_of, mechanisms_of_tree
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    PureStep,
    RandomisedResponse,
    UnprotectedRelease,
)

peer = pytest.importorskip("dp_accounting")
pld = pytest.importorskip("dp_accounting.pld")

ADD = Adjacency.ADD_REMOVE_ONE
ZERO = Adjacency.ZERO_OUT_ONE
CONTEXT = Context((), 1, "theirs", Audience.PUBLIC)


def events(event, adjacency=ADD, sensitivity=1):
    found = mechanism_of(event, adjacency=adjacency, sensitivity=sensitivity)
    return [Event(mechanism, CONTEXT) for mechanism in found]


def ours(event, delta=1e-5, adjacency=ADD):
    return guarantee(events(event, adjacency), delta=delta).epsilon.upper_float


def theirs(event, delta=1e-5):
    accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
    return accountant.compose(event).get_epsilon(delta)


def mixture(shifts, chances, noise=1.0):
    return peer.dp_event.MixtureOfGaussiansDpEvent(noise, shifts, chances)


def test_a_mixture_of_two_gaussians_is_a_sampled_gaussian():
    event = peer.SelfComposedDpEvent(mixture([0.0, 2.0], [0.9, 0.1], 6.0), 50)
    sampled = peer.PoissonSampledDpEvent(0.1, peer.GaussianDpEvent(3.0))
    assert isclose(ours(event), ours(peer.SelfComposedDpEvent(sampled, 50)), rel_tol=1e-9)
    assert isclose(ours(event), theirs(event), rel_tol=1e-3)


@pytest.mark.parametrize(
    "event",
    [
        peer.RandomizedResponseDpEvent(0.5, 2),
        peer.ComposedDpEvent([peer.LaplaceDpEvent(1.0), peer.LaplaceDpEvent(2.0)]),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_pure_mechanism_that_null_records_are_drawn_for_too_is_not_amplified(event):
    # drawn with probability 1/100, a person answers 3 : 1, and a null record 1 : 3
    sampled = peer.PoissonSampledDpEvent(0.01, event)
    assert ours(sampled, 1e-6, ZERO) >= ours(event, 1e-6, ZERO)
    if not isinstance(event, peer.RandomizedResponseDpEvent):
        assert ours(sampled, 1e-6, ADD) < ours(event, 1e-6, ADD) / 10


def test_a_larger_mixture_costs_at_least_what_they_say():
    event = mixture([0.0, 1.0, 2.0], [0.7, 0.2, 0.1], 3.0)
    assert theirs(event) * (1 - 1e-6) <= ours(event) <= 2 * theirs(event)


def test_chances_that_miss_the_last_digit_count_as_drawn():
    (event,) = events(mixture([0.0, 1.0], [0.7, 0.3 - 1e-12]))
    assert event.mechanism.rate >= 0.3


def test_gaussians_on_one_sample_are_one_gaussian():
    both = peer.ComposedDpEvent([peer.GaussianDpEvent(3.0), peer.GaussianDpEvent(4.0)])
    # 1/9 + 1/16 = (5/12)²
    one = peer.GaussianDpEvent(2.4)
    for outer in (both, peer.SelfComposedDpEvent(both, 4)):
        halved = 1 if outer is both else 2
        sampled = peer.PoissonSampledDpEvent(0.1, outer)
        single = peer.PoissonSampledDpEvent(0.1, peer.GaussianDpEvent(2.4 / halved))
        assert isclose(ours(sampled), ours(single), rel_tol=1e-9)
    assert events(peer.PoissonSampledDpEvent(0.1, one))[0].mechanism.rate == 0.1


def test_a_sample_of_a_sample_is_a_sample_of_the_product():
    inner = peer.PoissonSampledDpEvent(0.5, peer.GaussianDpEvent(1.0))
    (event,) = events(peer.PoissonSampledDpEvent(0.25, inner))
    assert event.mechanism.rate == 0.125


def test_a_pure_mechanism_on_a_sample_loses_log_of_the_mixed_ratio():
    event = peer.PoissonSampledDpEvent(0.2, peer.dp_event.DiscreteLaplaceDpEvent(1.5, 1))
    epsilon = pure_epsilon(events(event)).upper_float
    assert isclose(epsilon, log(1 + 0.2 * (exp(1.5) - 1)), rel_tol=1e-12)
    # two answers, one of which is met with probability 0.2: enumerated
    true = 1 / (1 + exp(-1.5))
    p, q = np.array([true, 1 - true]), np.array([1 - true, true])
    mixed = 0.2 * p + 0.8 * q
    assert max(np.abs(np.log(mixed / q))) <= epsilon + 1e-12


def test_a_tree_costs_what_the_nodes_above_a_leaf_cost():
    # a record's leaf in a tree of n steps is below as many nodes as n has binary digits
    costs = []
    for steps, nodes in [(1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11)]:
        tree = peer.SingleEpochTreeAggregationDpEvent(8.0, steps)
        alone = peer.SelfComposedDpEvent(peer.GaussianDpEvent(8.0), nodes)
        assert isclose(ours(tree, adjacency=ZERO), ours(alone, adjacency=ZERO), rel_tol=1e-9)
        costs.append(ours(tree, adjacency=ZERO))
    assert all(a <= b for a, b in pairwise(costs))


def test_the_longest_of_several_trees_counts_and_no_steps_cost_nothing():
    several = peer.SingleEpochTreeAggregationDpEvent(8.0, [3, 9, 0])
    assert ours(several, adjacency=ZERO) == ours(
        peer.SingleEpochTreeAggregationDpEvent(8.0, 9), adjacency=ZERO
    )
    assert events(peer.SingleEpochTreeAggregationDpEvent(8.0, 0), ZERO) == []


def test_a_tree_has_no_rule_where_a_record_moves_others():
    with pytest.raises(Untranslatable, match="zero-out"):
        events(peer.SingleEpochTreeAggregationDpEvent(8.0, 9))


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0])
def test_the_best_of_a_random_number_of_answers_is_inside_the_rule(shape):
    """Exact: the chance that the best of K runs is good, K geometric, logarithmic or between."""
    epsilon, mean = 0.8, 5.0
    event = peer.dp_event.RepeatAndSelectDpEvent(peer.LaplaceDpEvent(1 / epsilon), mean, shape)
    bound = pure_epsilon(events(event)).upper_float
    assert bound == pytest.approx((2 + shape) * epsilon)
    true = 1 / (1 + exp(-epsilon))
    for gamma in (0.01, 0.2):

        def missed(chance, gamma=gamma):
            """E[chance^K] of the truncated negative binomial of this shape."""
            rest = 1 - (1 - gamma) * chance
            if shape == 0:
                return log(rest) / log(gamma)
            return (rest**-shape - 1) / (gamma**-shape - 1)

        good = 1 - missed(1 - true), 1 - missed(true)
        assert abs(log(good[0] / good[1])) <= bound + 1e-12
        assert abs(log(missed(1 - true) / missed(true))) <= bound + 1e-12


@pytest.mark.parametrize("name", ["ExponentialMechanismDpEvent", "PermuteAndFlipDpEvent"])
def test_selections_are_pure_steps(name):
    tree = EventTree(name, {"epsilon": 0.75})
    (step,) = mechanisms_of_tree(tree, adjacency=ADD, sensitivity=1)
    assert isinstance(step, PureStep)
    assert step.sensitivity.root == 0.75


def test_a_stated_epsilon_is_a_pure_step_and_a_stated_delta_is_refused_with_advice():
    pure = EventTree("EpsilonDeltaDpEvent", {"epsilon": 0.5, "delta": 0.0})
    (step,) = mechanisms_of_tree(pure, adjacency=ADD, sensitivity=1)
    assert isinstance(step, PureStep)
    boundless = EventTree("EpsilonDeltaDpEvent", {"epsilon": inf, "delta": 0.0})
    (bare,) = mechanisms_of_tree(boundless, adjacency=ADD, sensitivity=1)
    assert isinstance(bare, UnprotectedRelease)
    mixed = EventTree("EpsilonDeltaDpEvent", {"epsilon": 0.5, "delta": 1e-6})
    with pytest.raises(Untranslatable, match="claims check"):
        mechanisms_of_tree(mixed, adjacency=ADD, sensitivity=1)


def test_an_answer_of_a_null_record_costs_at_most_that_of_another():
    event = peer.RandomizedResponseDpEvent(0.5, 3)
    (zeroed,) = mechanism_of(event, adjacency=ZERO, sensitivity=1)
    (replaced,) = mechanism_of(event, adjacency=Adjacency.REPLACE_ONE, sensitivity=2)
    assert isinstance(zeroed, PureStep)
    assert isinstance(replaced, RandomisedResponse)
    pure = pure_epsilon([Event(replaced, CONTEXT)]).upper_float
    assert isclose(zeroed.sensitivity.value, pure, rel_tol=1e-12)
    with pytest.raises(Untranslatable, match="replace-one"):
        events(event)


def test_a_discrete_gaussian_keeps_its_own_step():
    fields = {"sigma": 4.0, "sensitivity": 1.0, "dimension": None}
    tree = EventTree("DiscreteGaussianDpEvent", fields)
    (step,) = mechanisms_of_tree(tree, adjacency=ADD, sensitivity=1)
    assert guarantee([Event(step, CONTEXT)], delta=1e-5).epsilon.upper_float == pytest.approx(
        guarantee(
            [Event(GaussianStep(step.sensitivity, 4.0), CONTEXT)], delta=1e-5
        ).epsilon.upper_float,
        rel=0.2,
    )


def test_nothing_on_a_sample_is_nothing_and_a_bare_release_on_one_is_bare():
    nothing = peer.PoissonSampledDpEvent(0.5, peer.NoOpDpEvent())
    assert events(nothing) == []
    bare = peer.PoissonSampledDpEvent(0.5, peer.NonPrivateDpEvent())
    assert isinstance(events(bare)[0].mechanism, UnprotectedRelease)
    assert events(peer.PoissonSampledDpEvent(0.0, peer.NonPrivateDpEvent())) == []
    assert events(peer.SampledWithoutReplacementDpEvent(9, 0, peer.GaussianDpEvent(1.0))) == []


def test_one_answer_of_one_kind_says_nothing():
    assert events(peer.RandomizedResponseDpEvent(0.0, 1)) == []


def largest_loss_with_replacement(records, draws, step):
    """Return the exact largest loss of a clamped geometric count of 1s, over all neighbours.

    The count of 1s in a batch is hidden by geometric noise of ratio e^-step, clamped to
    [0, draws]; batches are all of the records^draws sequences, data sets all of 0s and 1s.
    """
    answers = np.arange(draws + 1)
    ratio = exp(-step)
    geometric = ratio ** np.abs(answers[:, None] - answers[None, :]) / (1 + ratio)
    geometric[:, 1:-1] *= 1 - ratio
    assert np.allclose(geometric.sum(axis=1), 1)
    laws = {}
    for data in product((0, 1), repeat=records):
        batches = product(range(records), repeat=draws)
        counts = [sum(data[place] for place in batch) for batch in batches]
        laws[data] = geometric[counts].mean(axis=0)
    pairs = [(a, b) for a, b in product(laws, laws) if sum(np.array(a) != np.array(b)) == 1]
    return max(float(np.log(laws[a] / laws[b]).max()) for a, b in pairs)


@pytest.mark.parametrize(
    ("records", "draws"), [(1, 1), (1, 3), (2, 1), (2, 4), (4, 2), (5, 1), (6, 3)]
)
@pytest.mark.parametrize("step", [0.1, 1.0, 3.0])
def test_batches_with_replacement_cost_no_less_than_enumeration_says(records, draws, step):
    inner = EventTree("EpsilonDeltaDpEvent", {"epsilon": step, "delta": 0.0})
    fields = {"source_dataset_size": records, "sample_size": draws, "event": inner}
    tree = EventTree("SampledWithReplacementDpEvent", fields)
    (found,) = mechanisms_of_tree(tree, adjacency=Adjacency.REPLACE_ONE, sensitivity=2)
    loss = pure_epsilon([Event(found, CONTEXT)]).upper_float
    exact = largest_loss_with_replacement(records, draws, step)
    assert exact <= loss * (1 + 1e-12)
    assert loss <= step * draws * (1 + 1e-12)
    amplified = draws * log(1 + (exp(step) - 1) / records)
    if amplified <= step:  # attained: all other records are 0, and the answer is `draws`
        assert isclose(loss, exact, rel_tol=1e-9)


def test_of_one_record_every_draw_is_that_record():
    inner = EventTree("EpsilonDeltaDpEvent", {"epsilon": 1000.0, "delta": 0.0})
    fields = {"source_dataset_size": 1, "sample_size": 3, "event": inner}
    tree = EventTree("SampledWithReplacementDpEvent", fields)
    (found,) = mechanisms_of_tree(tree, adjacency=Adjacency.REPLACE_ONE, sensitivity=2)
    assert pure_epsilon([Event(found, CONTEXT)]).upper_float == 3000.0


@pytest.mark.parametrize("adjacency", [ADD, ZERO])
def test_batches_with_replacement_have_a_rule_under_replace_one_alone(adjacency):
    event = peer.SampledWithReplacementDpEvent(100, 5, peer.LaplaceDpEvent(1.0))
    with pytest.raises(Untranslatable, match="under replace-one"):
        mechanism_of(event, adjacency=adjacency, sensitivity=1)


def test_what_has_no_rule_is_refused_with_what_is_nearest():
    replaced = Adjacency.REPLACE_ONE
    inner = EventTree("DiscreteGaussianDpEvent", {"sensitivity": 1, "sigma": 4.0})
    fields = {"source_dataset_size": 100, "sample_size": 5, "event": inner}
    tree = EventTree("SampledWithReplacementDpEvent", fields)
    with pytest.raises(Untranslatable, match="Gaussian or pure"):
        mechanisms_of_tree(tree, adjacency=replaced, sensitivity=2)
    with pytest.raises(Untranslatable, match="noise multiplier 1/sqrt"):
        mechanism_of(peer.ZCDpEvent(0.1), adjacency=replaced, sensitivity=2)


def test_gaussian_releases_of_a_batch_with_replacement_are_one_and_go_out_again():
    noise = peer.GaussianDpEvent(4.0)
    twice = peer.SelfComposedDpEvent(noise, 4)
    event = peer.SampledWithReplacementDpEvent(100, 5, twice)
    (found,) = mechanism_of(event, adjacency=Adjacency.REPLACE_ONE, sensitivity=2)
    assert (found.batch, found.records) == (5, 100)
    assert found.event.noise_std == 2.0
    out = dp_event_of(found)  # noise over the whole sensitivity
    assert out == peer.SampledWithReplacementDpEvent(100, 5, peer.GaussianDpEvent(1.0))
    bare = peer.SampledWithReplacementDpEvent(100, 5, peer.GaussianDpEvent(0.0))
    (found,) = mechanism_of(bare, adjacency=Adjacency.REPLACE_ONE, sensitivity=2)
    assert isinstance(found, UnprotectedRelease)
