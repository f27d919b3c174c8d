"""The tutorials are true: their commands and their Python run in order, and print what they say."""

import ast
import json
import re
import shlex
from math import exp
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpledger.cli.app import main

DOCS = Path(__file__).parents[1] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
FINDINGS = {"claims check paper.toml", "claims check other.toml"}
"""Commands whose exit status is 1: they find something."""


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    room: dict[str, object] = {"__name__": page.stem}
    printed, checked = "", 0
    blocks = re.findall(r"```(\w+)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for language, text in blocks:
        if language == "python":
            exec(compile(text, str(page), "exec"), room)
        elif language == "sh":
            printed = ""
            for line in text.splitlines():
                words = shlex.split(line)
                assert words[0] == "dpledger", line
                answer = CliRunner().invoke(main, words[1:])
                printed += answer.output + str(answer.exception or "")
                expected = 1 if " ".join(words[1:]) in FINDINGS else 0
                refused = "AmbiguousRun" in repr(answer.exception)
                assert refused or answer.exit_code == expected, (line, printed)
        else:
            assert language == "text"
            for line in text.splitlines():
                assert line in printed, (line, printed)
                checked += 1
    assert checked > 0


@pytest.mark.parametrize(
    "notebook", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda n: n.stem
)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path) -> None:
    cells = json.loads(notebook.read_bytes())["cells"]
    room: dict[str, object] = {"__name__": notebook.stem}
    shown: list[object] = []
    for cell in cells:
        # committed without outputs: what it shows is what it computes
        assert not cell.get("outputs")
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop()
            assert isinstance(last, ast.Expr), "the last line of a cell shows something"
            exec(compile(tree, notebook.name, "exec"), room)
            shown.append(eval(compile(ast.Expression(last.value), notebook.name, "eval"), room))
    if notebook.stem == "attack_a_solver":
        measured, mu = shown[1]  # type: ignore[misc]
        assert 0 < measured.lower < mu
        assert shown[2] == (False, True)
    else:
        assert 2.3816 < shown[0].epsilon < 2.3829  # type: ignore[attr-defined]


def test_the_table_of_guesses_is_that_of_the_theorem() -> None:
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) % \|", (DOCS / "meaning.md").read_text(), re.M)
    assert len(rows) == 6
    for epsilon, percent in rows:
        odds = exp(float(epsilon))
        rate = 100 * (odds + 1e-5) / (odds + 1)
        # rounded up
        digits = len(percent.partition(".")[2])
        assert rate <= float(percent) < rate + 10**-digits


def test_every_page_stands_in_the_contents_of_the_site() -> None:
    contents = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert [page for page in pages if f": {page}\n" not in contents] == []
