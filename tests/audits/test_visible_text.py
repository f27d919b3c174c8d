"""Mistakes are told in a line that names the value and the remedy."""

from pathlib import Path

import pytest

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
