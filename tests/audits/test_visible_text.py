"""Mistakes are told in a line that names the value and the remedy."""

from pathlib import Path

import pytest

from dpledger.audits.outcome import Outcome, TextColumns
from dpledger.audits.visible_text import mistake
from dpledger.mechanisms.errors import InvalidParameter


def test_what_the_file_system_refuses_is_told_with_its_name_and_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "certificate.json"
    with pytest.raises(FileNotFoundError) as caught:
        path.write_text("{}")
    assert mistake(caught.value) == (
        f"FileNotFoundError: {path} must be readable or writable (No such file or directory); "
        "choose another"
    )


def test_a_mistake_with_words_of_its_own_keeps_them_and_shows_no_escapes() -> None:
    assert mistake(FileExistsError("out=x must be new")) == "FileExistsError: out=x must be new"
    told = mistake(InvalidParameter("adjacency", "add\x1b[2J", "known"))
    assert "\x1b" not in told
    assert told.startswith("InvalidParameter: adjacency=")


def test_a_line_break_in_a_name_begins_no_row() -> None:
    """A run's name could stand as a row of its own, at the margin below the true one."""
    name = "a\nepsilon 0.001 proved"
    table = TextColumns(("run", "events"), [(name, "1\n2")])
    lines = Outcome(name, {}, rows=((name, "first\nsecond"),), tables=(table,)).text.split("\n")
    row = "a\\nepsilon 0.001 proved"
    begun = [line[: len(row)].strip() for line in lines]
    assert begun == [row, row, "", "", "run", row, ""]
    ends = [line.split()[-1] for line in lines if line]
    assert ends == ["proved", "first", "second", "events", "1", "2"]
