"""docs/extending.md is true: its code runs, word for word."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpledger.cli.app import main

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
ROOT = Path(__file__).parents[1]


def test_the_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    room: dict[str, object] = {"__name__": "extending"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/extending.md", "exec"), room)
    epsilon = float(room["verdict"].values[-1])  # type: ignore[attr-defined]
    promised = room["promise"].epsilon.upper_float  # type: ignore[attr-defined]
    assert epsilon == pytest.approx(promised, rel=1e-6)
    command = re.search(r"```sh\ndpledger (.*?)\n```", PAGE)
    assert command is not None
    assert CliRunner().invoke(main, command[1].split()).exit_code == 0


def test_every_place_that_the_page_names_is_there() -> None:
    places = re.findall(r"`((?:mechanisms|accounting|audits|papers|tests|solvers)/[\w./]*)`", PAGE)
    assert len(places) > 8
    assert [place for place in places if not (ROOT / place).exists()] == []
