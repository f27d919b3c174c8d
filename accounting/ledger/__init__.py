"""The ledger: what was released, in an append-only chain of rows, in memory or in SQLite."""

from .anchor import FileAnchor, Head, RolledBack
from .interchange import MalformedExport, exported, imported
from .ledger import Ledger, Reservation, Run, RunSummary, Verification
from .memory import MemoryLedger
from .rows import LedgerError, Row, RowKind, TamperedLedger
from .sqlite import LedgerLocked, NotALedger, SqliteLedger
from .state import Odometer

__all__ = [
    "FileAnchor",
    "Head",
    "Ledger",
    "LedgerError",
    "LedgerLocked",
    "MalformedExport",
    "MemoryLedger",
    "NotALedger",
    "Odometer",
    "Reservation",
    "RolledBack",
    "Row",
    "RowKind",
    "Run",
    "RunSummary",
    "SqliteLedger",
    "TamperedLedger",
    "Verification",
    "exported",
    "imported",
]
