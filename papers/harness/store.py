"""Results on disk, one small file each, named by the hash of what made them."""

import hashlib
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from ...audits.trials.code import PACKAGE
from ...audits.trials.code import code_digest as digest_of_rooms
from .cell import Cell, CellPrivacy, Trace

_ROOMS = ("mechanisms", "accounting", "solvers", "data", "runs", "papers")
"""Rooms whose source a result depends on."""
_SHOWING = frozenset(f"papers/harness/{name}.py" for name in ("figures", "report", "tables"))
"""Modules that show results and do not make them."""

_Result = TypeVar("_Result", CellPrivacy, Trace)
"""What one small file holds."""


class Store:
    """Finished results under a folder; a half-written one is never seen.

    Args:
        folder: made if it is not there.
        seed: of all runs; with another seed, or other code, a cell has another result.
    """

    def __init__(self, folder: Path, *, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._seed = seed
        self._code = code_digest()

    def privacy(self, cell: Cell) -> CellPrivacy | None:
        """Return the price of a cell, if it is known."""
        return self._read(self._path(cell, "privacy"), CellPrivacy)

    def trace(self, cell: Cell, run: int) -> Trace | None:
        """Return the result of a run, if it is finished."""
        return self._read(self._path(cell, str(run)), Trace)

    def keep(self, cell: Cell, run: int | None, result: CellPrivacy | Trace) -> None:
        """Write a run's result, or (no run) a cell's price: whole or not at all."""
        path = self._path(cell, "privacy" if run is None else str(run))
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode(result))
        unfinished.replace(path)

    def _path(self, cell: Cell, what: str) -> Path:
        """Return where a result is: a name made of code, cell, seed and what it is."""
        name = f"{self._code} {cell.key} {self._seed} {what}"
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"

    def _read(self, path: Path, kind: type[_Result]) -> _Result | None:
        """Return a result, or None where it is not finished."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None


def code_digest(package: Path = PACKAGE) -> str:
    """Return the SHA-256 of all source that a result depends on, so that no stale one is read.

    What only shows results does not count.
    """
    return digest_of_rooms(_ROOMS, but=_SHOWING, package=package)
