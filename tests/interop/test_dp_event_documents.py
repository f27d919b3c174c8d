"""Documents of events are read as the events are, and import nothing that they name."""

import json
import sys
from typing import Any

import pytest

from dpledger.interop import EventTree, document_of_tree, mechanism_of, tree_of_document
from dpledger.interop.dp_events import mechanisms_of_tree, tree_of_mechanism
from dpledger.interop.event_trees import Untranslatable, event_of_tree, tree_of_event
from dpledger.mechanisms import Adjacency, GaussianStep, PoissonSampled, Repeated, declared

peer = pytest.importorskip("dp_accounting")

SAMPLED = peer.PoissonSampledDpEvent(0.01, peer.GaussianDpEvent(1.0))
GAUSSIAN = {
    "module_name": "dp_accounting.dp_event",
    "class_name": "GaussianDpEvent",
    "noise_multiplier": 1.0,
}
EVENTS = [
    SAMPLED,
    peer.SelfComposedDpEvent(SAMPLED, 5),
    peer.ComposedDpEvent([SAMPLED, peer.LaplaceDpEvent(2.0), peer.NonPrivateDpEvent()]),
    peer.SampledWithoutReplacementDpEvent(100, 5, peer.GaussianDpEvent(2.0)),
    peer.RandomizedResponseDpEvent(0.5, 3),
    peer.dp_event.DiscreteLaplaceDpEvent(0.5, 2),
    peer.dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.9, 0.1]),
    peer.SingleEpochTreeAggregationDpEvent(2.0, [7, 3]),
    peer.dp_event.RepeatAndSelectDpEvent(peer.LaplaceDpEvent(2.0), 10.0, 1.0),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_a_document_is_read_as_the_event_is(event: Any) -> None:
    tree = tree_of_document(event.to_named_tuple())
    assert tree == tree_of_event(event)
    assert event_of_tree(tree) == event
    assert tree_of_document(json.loads(json.dumps(document_of_tree(tree)))) == tree


def test_what_goes_out_as_a_document_comes_back() -> None:
    size = declared(
        1, "a DpEvent's noise multiplier is stated against this", adjacency=Adjacency.ADD_REMOVE_ONE
    )
    step = Repeated(PoissonSampled(GaussianStep(size, 1.5), 0.01), 100)
    tree = tree_of_document(document_of_tree(tree_of_mechanism(step)))
    assert mechanisms_of_tree(tree, adjacency=Adjacency.ADD_REMOVE_ONE, sensitivity=1) == (step,)


def test_fields_that_later_versions_added_may_be_missing() -> None:
    document = {"module_name": "dp_accounting.dp_event", "class_name": "ZCDpEvent", "rho": 0.5}
    assert tree_of_document(document) == EventTree("ZCDpEvent", {"rho": 0.5, "xi": 0.0})


@pytest.mark.parametrize(
    "change",
    [
        {"module_name": "antigravity"},
        {"class_name": "__import__"},
        {"class_name": ["GaussianDpEvent"]},
        {"extra": 1},
        {"noise_multiplier": "1.0"},
        {"noise_multiplier": True},
        {"noise_multiplier": None},
    ],
    ids=str,
)
def test_one_wrong_field_is_enough_to_refuse(change: dict[str, Any]) -> None:
    with pytest.raises(Untranslatable):
        tree_of_document(GAUSSIAN | change)
    assert "antigravity" not in sys.modules


def test_what_is_no_event_is_refused() -> None:
    nested: dict[str, Any] = GAUSSIAN
    for _ in range(200):
        nested = {
            "module_name": "dp_accounting.dp_event",
            "class_name": "SelfComposedDpEvent",
            "event": nested,
            "count": 1,
        }
    for document in (nested, 3, "GaussianDpEvent", [GAUSSIAN], {}):
        with pytest.raises(Untranslatable):
            tree_of_document(document)


def test_a_subclass_of_theirs_may_mean_anything() -> None:
    class Odd(peer.GaussianDpEvent):  # type: ignore[misc]
        pass

    with pytest.raises(Untranslatable, match="Odd"):
        mechanism_of(Odd(1.0), adjacency=Adjacency.ADD_REMOVE_ONE, sensitivity=1)
