"""Law: every command's exit statuses, and the keys and types of its `--json`, do not change."""

import json
from pathlib import Path
from typing import Any

import pytest

from .commands import CALLS, called_commands, every_command, found

PINNED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "commands.json").read_bytes()
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What every call answers today."""
    return found(tmp_path_factory.mktemp("golden"))


def test_every_command_is_called_and_every_status_occurs() -> None:
    assert called_commands() == every_command()
    assert {each["status"] for each in PINNED.values()} == {0, 1, 2}
    assert list(PINNED) == list(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_command_answers_as_it_did(name: str, answers: dict[str, dict[str, Any]]) -> None:
    assert answers[name] == PINNED[name]
