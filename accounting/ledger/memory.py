"""A ledger that lives as long as the process: for experiments, tests and trials.

It has the same rows and the same hash chain as a file, so that one can be exported into the other.
"""

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

from .ledger import Ledger
from .rows import LedgerError, Row, TamperedLedger


class MemoryLedger(Ledger):
    """A `Ledger` in memory.

    Nothing survives the process: what it released is then spent, and nobody knows. So a forked copy
    refuses to write, and releases to others belong in a `SqliteLedger`.

    Args:
        rows: those it starts with, read elsewhere; `verify` tells whether they are a ledger's.
        documents: the texts that they name, by hash.
    """

    def __init__(
        self, rows: Iterable[Row] = (), documents: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        # a copy nobody else holds: a row taken away would say less than was spent
        self._rows = dict(enumerate(rows, start=1))
        self._documents = dict(documents or {})
        self._process = os.getpid()

    def close(self) -> None:
        """Do nothing; what is recorded goes with the object."""

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Refuse in a forked process; else nothing: the caller holds the lock."""
        if os.getpid() != self._process:
            raise LedgerError(
                "Expected a ledger in a file (SqliteLedger) for several processes: in a forked one "
                "a ledger in memory would be a second budget. Nothing was recorded."
            )
        # the lock that every writer holds is transaction enough: storing cannot fail half-way
        yield

    def _store(self, row: Row, documents: Mapping[str, str]) -> None:
        """Keep a row and the documents that it names, unless the handler of a signal was faster."""
        self._documents.update(documents)
        if self._rows.setdefault(row.sequence, row) is not row:
            raise LedgerError(
                f"Expected no row {row.sequence} yet instead got one from the handler of a signal. "
                "Nothing was recorded but that row."
            )

    def _rows_after(self, sequence: int, limit: int) -> list[Row]:
        """Return up to `limit` rows after this number; rows are numbered without gaps from 1."""
        last = min(sequence + limit, len(self._rows))
        return [self._rows[number] for number in range(sequence + 1, last + 1)]

    def document(self, digest: str) -> str:
        """Return a document's text; raise `TamperedLedger` where there is none."""
        if digest not in self._documents:
            raise TamperedLedger("Document", f"one of hash {digest}", "none")
        return self._documents[digest]

    def digests(self) -> list[str]:
        """Return the hashes of all documents."""
        return list(self._documents)
