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
        self.stored_rows: list[Row] = []
        self.stored_documents: dict[str, str] = {}
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
        self.stored_documents.update(documents)
        self.stored_rows.append(row)

    def _rows_after(self, sequence: int, limit: int) -> list[Row]:
        return self.stored_rows[sequence : sequence + limit]

    def document(self, digest: str) -> str:
        if digest not in self.stored_documents:
            raise TamperedLedger("Document", f"one of hash {digest}", "none")
        return self.stored_documents[digest]

    def digests(self) -> list[str]:
        return list(self.stored_documents)
