"""Documents of events: read by a closed list of names, and nothing is imported for them."""

import sys
from typing import Any

import pytest

from dpledger.interop.dp_event_documents import dp_event_of_document
from dpledger.interop.dp_events import Untranslatable, mechanism_of
from dpledger.mechanisms import Adjacency, Repeated

peer = pytest.importorskip("dp_accounting")

SAMPLED = peer.PoissonSampledDpEvent(0.01, peer.GaussianDpEvent(1.0))
GAUSSIAN = {
    "module_name": "dp_accounting.dp_event",
    "class_name": "GaussianDpEvent",
    "noise_multiplier": 1.0,
}


@pytest.mark.parametrize(
    "event",
    [
        SAMPLED,
        peer.SelfComposedDpEvent(SAMPLED, 5),
        peer.ComposedDpEvent([SAMPLED, peer.LaplaceDpEvent(2.0), peer.NonPrivateDpEvent()]),
        peer.SampledWithoutReplacementDpEvent(100, 5, peer.GaussianDpEvent(2.0)),
        peer.RandomizedResponseDpEvent(0.5, 3),
        peer.dp_event.DiscreteLaplaceDpEvent(0.5, 2),
    ],
)
def test_what_is_written_is_read_back(event: Any) -> None:
    assert dp_event_of_document(event.to_named_tuple()) == event


def test_mappings_are_read_alike_and_become_mechanisms() -> None:
    document = {
        "module_name": "dp_accounting.dp_event",
        "class_name": "SelfComposedDpEvent",
        "event": GAUSSIAN,
        "count": 3,
    }
    event = dp_event_of_document(document)
    (found,) = mechanism_of(event, adjacency=Adjacency.ADD_REMOVE_ONE, sensitivity=1)
    assert isinstance(found, Repeated)
    assert found.times == 3


@pytest.mark.parametrize(
    "change",
    [
        {"module_name": "antigravity"},
        {"class_name": "UnsupportedDpEvent"},
        {"class_name": "__import__"},
        {"extra": 1},
        {"noise_multiplier": "1.0"},
        {"noise_multiplier": True},
    ],
    ids=str,
)
def test_one_wrong_field_is_enough_to_refuse(change: dict[str, Any]) -> None:
    with pytest.raises(Untranslatable):
        dp_event_of_document(GAUSSIAN | change)
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
            dp_event_of_document(document)
