"""The front door: few names, each loaded on demand, all of them named in the README."""

import re
import subprocess
import sys
from pathlib import Path

import dpledger

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NAMES = {name for name in dpledger.__all__ if name != "__version__"}


def test_it_has_about_fifteen_names_and_the_readme_lists_them() -> None:
    assert 10 <= len(NAMES) <= 18
    assert set(re.findall(r"`dp\.(\w+)", README)) == NAMES
    assert all(callable(getattr(dpledger, name)) for name in NAMES)


def test_to_open_it_loads_no_library_of_numbers() -> None:
    probe = "import dpledger, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "dpledger" in loaded
    assert not {"numpy", "scipy", "flint", "msgspec", "rich"} & set(loaded)
