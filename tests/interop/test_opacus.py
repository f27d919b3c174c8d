"""Histories of other accountants: read as they are meant, refused where they are not that."""

import json
from fractions import Fraction

import pytest

from dpledger.accounting.accountants import RdpAccountant
from dpledger.interop.fields import MalformedImport
from dpledger.interop.files import read_bytes
from dpledger.interop.opacus import mechanisms_of_opacus
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    InvalidParameter,
    PoissonSampled,
    Repeated,
)

ADD = Adjacency.ADD_REMOVE_ONE
HISTORY: list[tuple[float, float, int]] = [(1.0, 0.01, 1000), (2.0, 0.05, 10)]


def test_a_history_costs_what_the_same_steps_cost_elsewhere() -> None:
    peer = pytest.importorskip("dp_accounting")
    theirs = pytest.importorskip("dp_accounting.rdp").RdpAccountant()
    ours = RdpAccountant()
    for mechanism in mechanisms_of_opacus(HISTORY, adjacency=ADD):
        ours.add(Event(mechanism, Context((), 1, "gradient", Audience.SERVER)))
    for noise_multiplier, rate, steps in HISTORY:
        sampled = peer.PoissonSampledDpEvent(rate, peer.GaussianDpEvent(noise_multiplier))
        theirs.compose(peer.SelfComposedDpEvent(sampled, steps))
    epsilon = theirs.get_epsilon(1e-5)
    assert 0.98 * epsilon < ours.epsilon(1e-5).upper_float <= epsilon * (1 + 1e-6)


def test_entries_keep_their_numbers_and_say_what_they_rest_on() -> None:
    first, second = mechanisms_of_opacus(HISTORY, adjacency=Adjacency.ZERO_OUT_ONE)
    assert isinstance(first.event, PoissonSampled)
    assert (first.times, first.event.rate, first.event.event.noise_std) == (1000, 0.01, 1.0)
    assert first.event.event.sensitivity.adjacency is Adjacency.ZERO_OUT_ONE
    assert "clipped" in first.event.event.sensitivity.assumptions[0]
    assert second != first


def test_a_state_is_its_history_whatever_accountant_it_names() -> None:
    for named in ("rdp", "prv", "os.system"):
        state = json.dumps({"history": HISTORY, "mechanism": named})
        read = read_bytes("opacus", state.encode(), "state", adjacency=ADD)
        assert tuple(e.mechanism for e in read) == mechanisms_of_opacus(HISTORY, adjacency=ADD)
        assert all(isinstance(event.mechanism, Repeated) for event in read)


@pytest.mark.parametrize(
    "document",
    ["", "[]", "{}", '{"history": 3}', '{"history": [1]}', "[" * 100_000, '{"history": ["abc"]}'],
)
def test_other_documents_are_refused(document: str) -> None:
    with pytest.raises(MalformedImport):
        read_bytes("opacus", document.encode(), "state", adjacency=ADD)


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ((1.0, 0.01), MalformedImport),
        (("1", 0.01, 10), MalformedImport),
        ((1.0, 0.01, 10.5), MalformedImport),
        ((1.0, True, 10), MalformedImport),
        ((float("nan"), 0.01, 10), InvalidParameter),
        ((-1.0, 0.01, 10), InvalidParameter),
        ((1.0, 1.01, 10), InvalidParameter),
        ((1.0, 0.01, 0), InvalidParameter),
    ],
)
def test_entries_outside_their_range_are_refused(
    entry: tuple[object, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        mechanisms_of_opacus([entry], adjacency=ADD)


def test_replace_one_has_no_reading() -> None:
    with pytest.raises(InvalidParameter, match="adjacency"):
        mechanisms_of_opacus(HISTORY, adjacency=Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("steps", [2.9, 1000.0, True, "3", None])
def test_steps_that_are_no_whole_number_are_refused_and_not_cut_down(steps: object) -> None:
    with pytest.raises(MalformedImport):
        mechanisms_of_opacus([(1.0, 0.01, steps)], adjacency=ADD)


def test_numbers_of_many_digits_are_rounded_towards_more_epsilon() -> None:
    noise, rate = Fraction(10**30 + 1, 10**30), Fraction(1, 10)
    (found,) = mechanisms_of_opacus([(2**53 + 1, rate, 3)], adjacency=ADD)
    assert isinstance(found.event, PoissonSampled)
    assert Fraction(found.event.rate) >= rate
    assert found.event.event.noise_std == 2**53
    (found,) = mechanisms_of_opacus([(noise, Fraction(3, 10), 3)], adjacency=ADD)
    assert isinstance(found.event, PoissonSampled)
    assert Fraction(found.event.event.noise_std) <= noise
    assert Fraction(found.event.rate) >= Fraction(3, 10)
    with pytest.raises(MalformedImport):
        mechanisms_of_opacus([(10**400, 0.1, 3)], adjacency=ADD)
