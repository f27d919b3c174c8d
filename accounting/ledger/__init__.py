"""The ledger: what was released, in an append-only chain of rows, in memory or in SQLite.

`Ledger` is the interface, `MemoryLedger` and `SqliteLedger` keep rows, `exported` and `imported`
carry them from one to the other. A budget set on a ledger refuses what would cross it, before noise
is drawn (`budget`); a `FileAnchor` elsewhere notices an older copy in the ledger's place.
"""

from typing import TYPE_CHECKING

from ...mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .anchor import FileAnchor as FileAnchor
    from .anchor import Head as Head
    from .anchor import RolledBack as RolledBack
    from .interchange import MalformedExport as MalformedExport
    from .interchange import exported as exported
    from .interchange import imported as imported
    from .ledger import Ledger as Ledger
    from .ledger import Reservation as Reservation
    from .ledger import Run as Run
    from .ledger import RunSummary as RunSummary
    from .ledger import Verification as Verification
    from .memory import MemoryLedger as MemoryLedger
    from .rows import LedgerError as LedgerError
    from .rows import Row as Row
    from .rows import RowKind as RowKind
    from .rows import TamperedLedger as TamperedLedger
    from .sqlite import LedgerLocked as LedgerLocked
    from .sqlite import NotALedger as NotALedger
    from .sqlite import SqliteLedger as SqliteLedger
    from .state import Odometer as Odometer

__getattr__, __dir__ = names_from(__name__)
