"""Law: every verdict of the court, its factor in words and what its attack found, stand."""

import json
from pathlib import Path

from .court import found

PINNED = json.loads((Path(__file__).parent / "data" / "court.json").read_bytes())


def test_every_verdict_is_what_it_was() -> None:
    assert len(PINNED) >= 50
    assert found() == PINNED
