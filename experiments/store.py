"""Results on disk, one small file each, named by the hash of what made them."""

import hashlib
import os
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import msgspec

from .cell import Cell, Privacy, Trace

__all__ = ["Store"]

_Result = TypeVar("_Result", Privacy, Trace)


class Store:
    """Finished results under a folder; a half-written one is never seen.

    Args:
        folder: made if it is not there.
        seed: of all runs; with another seed, or another version of the program, a cell has another
            result.
    """

    def __init__(self, folder: Path, *, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._seed = seed
        self._version = version("dpledger")

    def privacy(self, cell: Cell) -> Privacy | None:
        """Return the price of a cell, if it is known."""
        return self._read(self._path(cell, "privacy"), Privacy)

    def trace(self, cell: Cell, run: int) -> Trace | None:
        """Return the result of a run, if it is finished."""
        return self._read(self._path(cell, str(run)), Trace)

    def keep(self, cell: Cell, run: int | None, result: Privacy | Trace) -> None:
        """Write a run's result, or (no run) a cell's price: whole or not at all."""
        path = self._path(cell, "privacy" if run is None else str(run))
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode(result))
        unfinished.replace(path)

    def _path(self, cell: Cell, what: str) -> Path:
        name = f"{self._version} {cell.key} {self._seed} {what}"
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"

    def _read(self, path: Path, kind: type[_Result]) -> _Result | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
