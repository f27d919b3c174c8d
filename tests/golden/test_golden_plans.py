"""Law: a plan's canonical bytes, and so the subject of its certificate, never change."""

import json
import zlib
from base64 import b85decode
from pathlib import Path
from typing import Any

import pytest

from dpledger.mechanisms.encoding import event_from_json

from .plans import PLANS, canonical_bytes, found

DATA = Path(__file__).parent / "data"
PINNED: dict[str, dict[str, Any]] = json.loads((DATA / "plans.json").read_bytes())
WHOLE: dict[str, str] = json.loads((DATA / "plans_whole.json").read_bytes())


def test_fifty_plans_are_what_they_were() -> None:
    assert len(PINNED) >= 50
    assert found() == PINNED


@pytest.mark.parametrize("name", WHOLE)
def test_bytes_written_before_read_as_the_events_of_today(name: str) -> None:
    before = zlib.decompress(b85decode(WHOLE[name]))
    events = list(PLANS[name]())
    assert canonical_bytes(events) == before
    assert [event_from_json(each) for each in json.loads(before)] == events
