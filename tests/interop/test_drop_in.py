"""Accountants in place of dp_accounting's: the same calls, upper ends of enclosures.

Its own tests are run against them by `benchmarks/dp_accounting_suite.py`.
"""

from math import exp, inf, isclose

import dp_accounting as peer
import numpy as np
import pytest
from dp_accounting import pld
from scipy.stats import norm

from dpledger.accounting import guarantee
from dpledger.interop.dp_accounting import NeighboringRelation, PldAccountant, RdpAccountant
from dpledger.interop.dp_events import mechanism_of
from dpledger.mechanisms import Adjacency, Audience, Context, Event

BOTH = pytest.mark.parametrize("kind", [PldAccountant, RdpAccountant])
SGD = peer.SelfComposedDpEvent(peer.PoissonSampledDpEvent(0.01, peer.GaussianDpEvent(1.0)), 500)


@BOTH
def test_it_is_an_accountant_of_theirs_and_keeps_their_ledger(kind):
    accountant = kind()
    assert isinstance(accountant, peer.PrivacyAccountant)
    assert accountant.compose(SGD, 2) is accountant
    assert accountant.ledger == peer.SelfComposedDpEvent(SGD.event, 1000)


def test_its_epsilon_is_that_of_a_guarantee_and_no_more_than_theirs():
    found = PldAccountant().compose(SGD, 2).get_epsilon(1e-5)
    events = [
        Event(m, Context((), 1, "SGD", Audience.PUBLIC))
        for m in mechanism_of(SGD, adjacency=Adjacency.ADD_REMOVE_ONE, sensitivity=1)
    ] * 2
    assert found == guarantee(events, delta=1e-5).epsilon.upper_float
    theirs = pld.PLDAccountant().compose(SGD, 2).get_epsilon(1e-5)
    assert theirs * (1 - 1e-4) <= found <= theirs * (1 + 1e-9)


def test_epsilon_and_delta_are_inverse():
    accountant = PldAccountant().compose(SGD)
    epsilon = accountant.get_epsilon(1e-6)
    assert accountant.get_delta(epsilon) <= 1e-6 * (1 + 1e-6)
    assert accountant.get_delta(epsilon * 0.999) > 1e-6


def test_a_record_replaced_moves_two_norms():
    added = PldAccountant().compose(peer.GaussianDpEvent(2.0)).get_epsilon(1e-5)
    replaced = PldAccountant(NeighboringRelation.REPLACE_ONE).compose(peer.GaussianDpEvent(4.0))
    assert isclose(replaced.get_epsilon(1e-5), added, rel_tol=1e-12)


@BOTH
def test_failures_of_stated_deltas_multiply(kind):
    tree = pytest.importorskip("dp_accounting.dp_event")
    if not hasattr(tree, "EpsilonDeltaDpEvent"):
        # the class of a later version: what is asked of it is its name and two numbers
        stated = type("EpsilonDeltaDpEvent", (peer.DpEvent,), {"epsilon": 0.5, "delta": 0.1})
        stated.__module__ = "dp_accounting.dp_event"
        event = stated()
    else:
        event = tree.EpsilonDeltaDpEvent(0.5, 0.1)
    accountant = kind().compose(event, 2)
    assert accountant.get_epsilon(0.0) == inf
    assert accountant.get_epsilon(0.189) == inf
    assert accountant.get_delta(1.0) == pytest.approx(0.19, abs=1e-12)
    assert accountant.get_delta(1.0) >= 1 - 0.9**2
    assert accountant.get_epsilon(0.1900001) <= 1.0


@BOTH
@pytest.mark.parametrize("count", [2.9, -1, float("nan")])
def test_a_count_that_is_no_whole_number_is_unsupported(kind, count):
    event = peer.SelfComposedDpEvent(peer.GaussianDpEvent(1.0), count)
    assert not kind().supports(event)
    with pytest.raises(peer.UnsupportedEventError, match="whole number"):
        kind().compose(event)
    with pytest.raises(ValueError, match="count"):
        kind().compose(peer.GaussianDpEvent(1.0), count)


@BOTH
def test_what_is_unsupported_charges_nothing(kind):
    accountant = kind().compose(peer.GaussianDpEvent(1.0))
    before = accountant.get_epsilon(1e-5)
    with pytest.raises(peer.UnsupportedEventError, match="UnsupportedDpEvent"):
        accountant.compose(peer.ComposedDpEvent([SGD, peer.UnsupportedDpEvent()]))
    assert accountant.get_epsilon(1e-5) == before


def test_renyi_divergences_stand_where_others_read_them():
    accountant = RdpAccountant([2.0, 5.5]).compose(peer.GaussianDpEvent(2.0), 3)
    assert accountant._rdp == pytest.approx([3 * a / 8 for a in (2.0, 5.5)], rel=1e-12)


def test_true_positive_rates_bound_every_test_of_a_gaussian():
    accountant = PldAccountant().compose(peer.GaussianDpEvent(1.0))
    rates = np.array([1e-6, 0.01, 0.3])
    best = norm.cdf(norm.ppf(rates) + 1)
    found = accountant.get_true_positive_rates(rates)
    assert (found >= best * (1 - 1e-9)).all()
    assert (found <= best * 1.01).all()
    assert accountant.get_gdp_parameter_estimate() == pytest.approx(1, abs=2e-3)


def test_true_positive_rates_of_an_answer_are_on_its_two_lines():
    accountant = PldAccountant().compose(peer.dp_event.DiscreteLaplaceDpEvent(1.0, 1))
    assert accountant.get_true_positive_rates(0.1) == pytest.approx(0.1 * exp(1), rel=1e-9)
    assert accountant.get_true_positive_rates(0.0) == 0


KNOWN_BY_DIVERGENCES = [
    peer.ZCDpEvent(0.5),
    peer.ZCDpEvent(0.1, 0.2),
    peer.ComposedDpEvent([peer.ZCDpEvent(0.5), peer.GaussianDpEvent(2.0)]),
    peer.SelfComposedDpEvent(peer.ZCDpEvent(0.01), 7),
    peer.dp_event.RepeatAndSelectDpEvent(peer.GaussianDpEvent(4.0), 20.0, 0.0),
    peer.dp_event.RepeatAndSelectDpEvent(peer.GaussianDpEvent(4.0), 20.0, 0.5),
    peer.dp_event.RepeatAndSelectDpEvent(SGD, 20.0, 1.0),
]


@BOTH
@pytest.mark.parametrize("event", KNOWN_BY_DIVERGENCES, ids=str)
def test_what_is_known_by_divergences_alone_costs_no_more_than_theirs(kind, event):
    """Theirs takes the best of a list of orders, ours of all: a little less, never much less."""
    accountant = kind().compose(event)
    found = accountant.get_epsilon(1e-5)
    theirs = peer.rdp.RdpAccountant().compose(event).get_epsilon(1e-5)
    assert theirs * (1 - 2e-3) <= found <= theirs * (1 + 1e-9)
    assert accountant.get_delta(found) <= 1e-5 * (1 + 1e-4)
    assert accountant.get_epsilon(0.0) == inf
    twice = kind().compose(event, 2)
    assert twice.get_epsilon(1e-5) > found
    assert twice.get_epsilon(1e-5) == kind().compose(event).compose(event).get_epsilon(1e-5)


@BOTH
def test_what_is_known_by_divergences_alone_is_not_known_inside_others(kind):
    zcdp = peer.ZCDpEvent(0.1)
    for event in (
        peer.PoissonSampledDpEvent(0.1, zcdp),
        peer.dp_event.RepeatAndSelectDpEvent(zcdp, 20.0, 1.0),
        peer.dp_event.RepeatAndSelectDpEvent(peer.GaussianDpEvent(1.0), 20.0, inf),
        peer.ZCDpEvent(-0.1),
        peer.ZCDpEvent(float("nan")),
        peer.ZCDpEvent(inf),
        peer.dp_event.RepeatAndSelectDpEvent(peer.GaussianDpEvent(1.0), 0.5, 1.0),
        peer.dp_event.RepeatAndSelectDpEvent(peer.GaussianDpEvent(1.0), 20.0, float("nan")),
    ):
        accountant = kind()
        with pytest.raises((peer.UnsupportedEventError, ValueError)):
            accountant.compose(event)
        assert accountant.get_epsilon(1e-5) == 0.0
