"""Law: every command's exit statuses, and the keys and types of its `--json`, do not change."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .commands import CALLS, called_commands, every_command, found

PINNED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "commands.json").read_bytes()
)


def test_every_command_is_called_and_every_status_occurs() -> None:
    assert called_commands() == every_command()
    assert {each["status"] for each in PINNED.values()} == {0, 1, 2}
    assert list(PINNED) == list(CALLS)


ALONE = ("experiment",)
"""Calls that take seconds and leave nothing to others; cli/test_experiment.py makes tiny ones."""


# one test: later calls read what earlier ones wrote, and two processes would make them all twice
@pytest.mark.parametrize(
    "names",
    [
        [name for name in CALLS if name not in ALONE],
        pytest.param(ALONE, marks=pytest.mark.slow),
    ],
    ids=["most", "alone"],
)
def test_every_command_answers_as_it_did(tmp_path: Path, names: Sequence[str]) -> None:
    answers = found(tmp_path, names)
    assert {name: answers[name] for name in names if answers[name] != PINNED[name]} == {}
