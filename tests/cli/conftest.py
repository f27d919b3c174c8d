"""A small data set of a user's own, and a way to call the command line as a user does."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpledger.cli import run as entry_point

from ..golden.commands import CONFIGURATION, write_people


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Answer]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call `dpledger` with arguments, as the installed command does."""

    def answer(*arguments: object) -> Answer:
        monkeypatch.setattr("sys.argv", ["dpledger", *map(str, arguments)])
        try:
            entry_point()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        printed = capsys.readouterr()
        return Answer(status, printed.out, printed.err)

    return answer


def prepared(folder: Path) -> Path:
    """Return the folder with people.csv, people.toml and run.toml in it."""
    write_people(folder)
    text = CONFIGURATION.replace('"people.', f'"{folder}/people.')
    # noise that is right is accused with probability 1e-6, so that no seed is chosen: at 0.95 it
    # was for 37 of 1,800 seeds, where 90 are allowed
    text = text.replace("trials = 20", "trials = 40\nconfidence = 0.999999")
    (folder / "run.toml").write_text(text)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with people.csv, people.toml and run.toml."""
    return prepared(tmp_path)


def edited(folder: Path, *changes: tuple[str, str]) -> Path:
    """Return run.toml with texts replaced; each must occur."""
    text = (folder / "run.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "edited.toml"
    path.write_text(text)
    return path
