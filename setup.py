"""Refuse to build a hollow package from a checkout without symbolic links."""

from pathlib import Path

from setuptools import setup

ROOMS = (
    "mechanisms",
    "accounting",
    "interop",
    "solvers",
    "federation",
    "audits",
    "runs",
    "papers",
    "cli",
    "data",
)
PACKAGE = Path(__file__).parent / "src" / "dpledger"
missing = [room for room in ROOMS if not (PACKAGE / room / "__init__.py").is_file()]
if missing:
    raise SystemExit(
        f"src/dpledger/{missing[0]} is not a package. Expected {', '.join(missing)} under "
        "src/dpledger/ as symbolic links to the folders at the root (on Windows: "
        "`git config core.symlinks true`, then check out again)."
    )

setup()
