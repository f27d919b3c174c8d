"""A small data set of a user's own, and a way to call the command line as a user does."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger.cli import run as entry_point

SCHEMA = """
row_bound = 1.0
description = "sixty invented people"
on_outside = "clip"
columns = [
    {kind = "numeric", name = "age", lower = 0, upper = 100},
    {kind = "categorical", name = "town", categories = ["north", "south", "west"]},
    {kind = "label", name = "income", positive = ["high"], negative = ["low"]},
]
"""

CONFIGURATION = """
[data]
files = ["{folder}/people.csv"]
schema = "{folder}/people.toml"
train_records = 48
parties = 4

[privacy]
adjacency = "replace-one"
epsilon = 2.0
delta = 1e-5

[solver]
algorithm = "dp-admm"
rounds = 6
distance = 5.0

[noise]
sampler = "philox"
seed = 5

[attack]
trials = 40
seed = 2
"""


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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with people.csv, people.toml and run.toml."""
    rng = np.random.default_rng(0)
    towns = rng.choice(["north", "south", "west"], size=60)
    ages = rng.integers(18, 90, size=60)
    labels = np.where((ages > 50) ^ (rng.random(60) < 0.1), "high", "low")
    rows = [f"{a},{t},{y}" for a, t, y in zip(ages, towns, labels, strict=True)]
    (tmp_path / "people.csv").write_text("age,town,income\n" + "\n".join(rows) + "\n")
    (tmp_path / "people.toml").write_text(SCHEMA)
    (tmp_path / "run.toml").write_text(CONFIGURATION.format(folder=tmp_path))
    return tmp_path


def edited(folder: Path, *changes: tuple[str, str]) -> Path:
    """Return run.toml with texts replaced; each must occur."""
    text = (folder / "run.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "edited.toml"
    path.write_text(text)
    return path
