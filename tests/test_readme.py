"""The README tells the truth: its Python runs, its commands exist, its links lead somewhere."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dpledger.cli.app import main

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = sorted(set(re.findall(r"`dpledger ([^`]+)`", TEXT)))


def test_the_plan_in_the_readme_has_the_epsilon_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(BLOCKS[0], {})
    lower, upper = (float(end) for end in capsys.readouterr().out.strip(" []\n").split(","))
    assert 0.99999 < lower <= upper <= 1.0


def test_the_estimator_in_the_readme_meets_its_promise_and_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    room: dict[str, object] = {}
    exec(BLOCKS[1], room)
    accuracy = float(capsys.readouterr().out.split()[0])
    assert accuracy > 0.78  # three quarters of the records have one label
    model, train = room["model"], room["train"]
    from dpledger.accounting.ledger.budget import BudgetExceeded

    with pytest.raises(BudgetExceeded):
        model.fit(train.features, train.labels)  # type: ignore[attr-defined]


ASKED = re.findall(r"```sh\n(dpledger [^\n]+)\n```\n\n```text\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(*each, id=each[0].split()[1], marks=[pytest.mark.slow] * ("attack" in each[0]))
        for each in ASKED
    ],
)
def test_the_three_questions_are_answered_as_the_readme_says(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(README.parent)
    answer = CliRunner().invoke(main, shlex.split(line)[1:])
    assert len(ASKED) == 3
    for text in said.splitlines():
        assert text in answer.output


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_in_the_readme_exists(line: str) -> None:
    words = shlex.split(line.replace("\\|", "|"))
    for first in words[0].split("|"):
        command = main.get_command(click.Context(main), first)
        for word in words[1:]:
            if isinstance(command, click.Group):
                for name in word.split("|"):
                    assert name in command.commands, f"dpledger {first} {name}"
                command = command.commands[word.split("|")[0]]
            elif word.startswith(("--", "[--")):
                parameters = command.params
                options = {o for each in parameters for o in (*each.opts, *each.secondary_opts)}
                assert word.strip("[]") in options, f"dpledger {line}"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", TEXT))))
def test_every_link_in_the_readme_leads_somewhere(target: str) -> None:
    assert (README.parent / target).exists()
