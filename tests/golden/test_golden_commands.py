"""Law: every command's exit statuses, and the keys and types of its `--json`, do not change."""

import json
from pathlib import Path
from typing import Any

from .commands import CALLS, called_commands, every_command, found

PINNED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "commands.json").read_bytes()
)


def test_every_command_is_called_and_every_status_occurs() -> None:
    assert called_commands() == every_command()
    assert {each["status"] for each in PINNED.values()} == {0, 1, 2}
    assert list(PINNED) == list(CALLS)


# one test: later calls read what earlier ones wrote, and two processes would make them all twice
def test_every_command_answers_as_it_did(tmp_path: Path) -> None:
    answers = found(tmp_path)
    assert {name: answers[name] for name in CALLS if answers[name] != PINNED[name]} == {}
