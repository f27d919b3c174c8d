"""Laws of pure steps: what is known of them is a largest loss, and nothing costs more."""

from itertools import product
from math import comb, exp, inf

import numpy as np
import pytest

from dpledger.accounting import certify, guarantee, verify
from dpledger.accounting.accountants import RdpAccountant, TightAccountant, ZcdpAccountant
from dpledger.accounting.composition import composed
from dpledger.accounting.pure import pure_epsilon
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    LaplaceStep,
    Norm,
    PureStep,
    RandomisedResponse,
    Repeated,
    declared,
)
from dpledger.mechanisms.encoding import mechanism_from_json, mechanism_to_json

CONTEXT = Context((), 1, "a choice", Audience.PUBLIC)


def size(value, norm=Norm.L1, adjacency=Adjacency.ADD_REMOVE_ONE):
    return declared(value, "for the test", adjacency=adjacency, norm=norm)


def pure(epsilon, times=1, adjacency=Adjacency.ADD_REMOVE_ONE):
    step = PureStep(size(epsilon, adjacency=adjacency), 1.0)
    return Event(Repeated(step, times), CONTEXT)


def answered_delta(epsilon, loss, times):
    """Delta of so many answers of a loss of ± `loss`, summed over how many are true."""
    true = 1 / (1 + exp(-loss))
    total = 0.0
    for k in range(times + 1):
        probability = comb(times, k) * true**k * (1 - true) ** (times - k)
        total += probability * max(0.0, 1 - exp(epsilon - (2 * k - times) * loss))
    return total


@pytest.mark.parametrize(("loss", "times"), [(0.5, 1), (0.1, 20), (1.5, 4)])
def test_it_costs_what_so_many_randomised_answers_cost(loss, times):
    for delta in (1e-2, 1e-5):
        found = guarantee([pure(loss, times)], delta=delta).epsilon
        assert answered_delta(found.upper_float, loss, times) <= delta * (1 + 1e-9)
        assert answered_delta(found.lower_float * (1 - 1e-6), loss, times) >= delta * (1 - 1e-9)


def test_it_costs_more_than_laplace_noise_of_the_same_loss():
    laplace = Event(Repeated(LaplaceStep(size(1), 2.0), 10), CONTEXT)
    both = [guarantee([e], delta=1e-5).epsilon for e in (laplace, pure(0.5, 10))]
    assert both[0].upper < both[1].lower


def test_no_exponential_mechanism_costs_more():
    """Every pair of neighbours of a mechanism that draws i with probability ∝ e^(u_i / 2Δ)."""
    seed = np.random.default_rng(7)
    epsilon = 1.2
    for _ in range(200):
        scores = seed.normal(size=6) * 3
        moved = scores + seed.uniform(-1, 1, size=6)
        p, q = (np.exp(epsilon * s / 2) / np.exp(epsilon * s / 2).sum() for s in (scores, moved))
        for promised in (0.0, 0.3, 0.9):
            stood = np.maximum(0, p - np.exp(promised) * q).sum()
            assert stood <= answered_delta(promised, epsilon, 1) + 1e-12


def test_a_group_pays_its_size_times_the_loss():
    three = TightAccountant.over(composed([pure(0.25)])).epsilon(1e-3, group=3)
    one = TightAccountant.over(composed([pure(0.75)])).epsilon(1e-3)
    assert three.upper == one.upper
    assert pure_epsilon([pure(0.25, 4)], group=3).upper_float == pytest.approx(3)


def test_its_divergence_is_that_of_two_answers():
    account = composed([pure(0.7)]).accounts[0][1]
    answers = composed([Event(RandomisedResponse(1 / (1 + exp(-0.7))), CONTEXT)]).accounts[0][1]
    accountant = RdpAccountant()
    both = [accountant.epsilon_of(a, 1e-4).upper_float for a in (account, answers)]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
    assert ZcdpAccountant().rho(account).upper_float == pytest.approx(0.7**2 / 2)


def test_without_loss_it_is_free_and_without_noise_it_has_no_price():
    free = Event(PureStep(size(0), 0.0), CONTEXT)
    bare = Event(PureStep(size(1), 0.0), CONTEXT)
    assert guarantee([free], delta=1e-5).epsilon.upper_float == 0
    assert guarantee([bare], delta=1e-5).epsilon.lower_float == inf


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE])
def test_a_certificate_of_it_verifies(adjacency):
    events = [pure(0.3, 8, adjacency)]
    events.append(Event(GaussianStep(size(1, Norm.L2, adjacency), 5.0), CONTEXT))
    document = certify(events, delta=1e-5)
    verdict = verify(document.to_json_bytes())
    epsilon = guarantee(events, delta=1e-5).epsilon
    assert epsilon.upper_float <= float(verdict.values[1]) * (1 + 1e-12)
    assert float(verdict.values[1]) <= epsilon.upper_float * 1.002


@pytest.mark.parametrize("group", [1, 3])
def test_a_certificate_of_a_group_charges_the_whole_loss(group):
    verdict = verify(certify([pure(0.3)], delta=1e-9, group=group).to_json_bytes())
    # one answer of loss L is (L, 0)-private, and at a small delta hardly less
    assert float(verdict.values[1]) == pytest.approx(0.3 * group, rel=1e-3)


def test_a_certificate_at_delta_zero_adds_up_losses():
    events = [pure(0.25), pure(0.5, 2)]
    verdict = verify(certify(events, delta=0).to_json_bytes())
    assert [float(value) for value in verdict.values][-1] == 1.25


def test_its_written_form_is_read_again():
    step = PureStep(size(0.5), 2.0)
    assert mechanism_from_json(mechanism_to_json(step)) == step


def test_two_losses_add_up_at_delta_zero():
    for first, second in product((0.1, 0.5), (0.25, 2.0)):
        total = pure_epsilon([pure(first), pure(second, 2)])
        assert total.upper_float == pytest.approx(first + 2 * second)
