"""A ledger that lives as long as the process: for experiments, tests and trials."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from .ledger import Ledger
from .rows import LedgerError, Row, TamperedLedger


class MemoryLedger(Ledger):
    """A `Ledger` in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []
        self._documents: dict[str, str] = {}
        self._process = os.getpid()

    def close(self) -> None:
        """Do nothing; what is recorded goes with the object."""

    @contextmanager
    def _writing(self) -> Generator[None]:
        if os.getpid() != self._process:
            raise LedgerError(
                "Expected a ledger in a file (SqliteLedger) for several processes: in a forked one "
                "a ledger in memory would be a second budget. Nothing was recorded."
            )
        # the lock that every writer holds is transaction enough: storing cannot fail half-way
        yield

    def _store(self, row: Row, documents: Mapping[str, str]) -> None:
        self._documents.update(documents)
        self._rows.append(row)

    def _rows_after(self, sequence: int, limit: int) -> list[Row]:
        return self._rows[sequence : sequence + limit]

    def _document(self, digest: str) -> str:
        if digest not in self._documents:
            raise TamperedLedger("Document", f"one of hash {digest}", "none")
        return self._documents[digest]

    def _digests(self) -> list[str]:
        return list(self._documents)
