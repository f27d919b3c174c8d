"""Ledgers as JSON lines: a header, the documents, the rows in order, the end.

    {"format": "urn:dpledger:ledger:1"}
    {"document": text}
    {"row": [sequence, kind, run, body, previous hash, hash]}
    {"head": hash of the last row, "rows": how many}

Reading is strict: what is unknown, out of order, missing or does not verify is refused, and then
nothing is kept.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...mechanisms.encoding import canonical_json
from .ledger import Ledger, Verification
from .memory import MemoryLedger
from .rows import LedgerError, Row

FORMAT = "urn:dpledger:ledger:1"
"""Of the first line; what it means never changes."""


class MalformedExport(LedgerError, ValueError):
    """These lines are no exported ledger; nothing was kept."""


def exported(ledger: Ledger) -> Iterator[str]:
    """Yield the lines of a ledger, each without its line break.

    Equal ledgers give equal lines.

    Args:
        ledger: any; only rows that were there at the start are written.
    """
    # rows first: a row that others append meanwhile may name a document that was not there yet
    rows = list(ledger.rows())
    yield _line({"format": FORMAT})
    for digest in sorted(ledger.digests()):
        yield _line({"document": ledger.document(digest)})
    for row in rows:
        columns = [row.sequence, row.kind.value, row.run, row.body, row.previous, row.hash]
        yield _line({"row": columns})
    yield _line({"head": ledger.head if not rows else rows[-1].hash, "rows": len(rows)})


def imported(lines: Iterable[str], ledger: Ledger) -> Verification:
    """Put exported lines into an empty ledger, all or nothing, and return what was verified.

    Raises `MalformedExport` that names the line, `TamperedLedger` if the chain does not hold,
    `LedgerError` if `ledger` is not empty.

    Args:
        lines: as `exported` writes them, without line breaks.
        ledger: to be filled.
    """
    rows: list[Row] = []
    documents: dict[str, str] = {}
    last = None
    for number, line in enumerate(lines, start=1):
        if last is not None:
            raise MalformedExport(f"Line {number}: expected nothing after the end.")
        last = _read_line(line, number, rows, documents)
    if last is None:
        raise MalformedExport("Expected a line with the head at the end instead got none.")
    found = MemoryLedger(rows, documents).verify(expected_head=last)
    ledger.adopt(rows, documents)
    return found


def _line(value: Any) -> str:
    """Return a value as one line of canonical JSON."""
    return canonical_json(value).decode()


def _read_line(line: str, number: int, rows: list[Row], documents: dict[str, str]) -> str | None:
    """Add what one line says to rows and documents; return the head it ends with, if it does."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedExport(f"Line {number}: expected JSON: {error}.") from error
    if line != _line(found):
        raise MalformedExport(f"Line {number}: expected canonical JSON instead got {line:.80}.")
    begun = number > 1
    match found:
        case {"format": str(form), **rest} if not rest and not begun:
            if form != FORMAT:
                raise MalformedExport(f"Line {number}: expected {FORMAT} instead got {form!r:.80}.")
        case {"document": str(text), **rest} if not rest and begun and not rows:
            documents[hashlib.sha256(text.encode()).hexdigest()] = text
        case {"row": [*columns], **rest} if not rest and begun and len(columns) == 6:
            rows.append(Row.read(*columns))
        case {"head": str(head), "rows": int(count), **rest} if not rest and begun:
            if count != len(rows):
                raise MalformedExport(
                    f"Line {number}: expected {len(rows)} rows instead got {count}."
                )
            return head
        case _:
            raise MalformedExport(f"Line {number}: expected a next part instead got {line:.80}.")
    return None
