"""A process that writes to a ledger until it is done, killed, or refused.

Usage: ledger_writer.py LEDGER RUN COUNT RELEASED

Reserves events of rounds 1 to COUNT that the run has not reserved yet. After each reservation,
where a real run would let its message out, it appends the round to the file RELEASED and waits
until that is on disk; then it commits. Exits with 0 when done and with 3 when a budget refuses.
"""

import os
import sys

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.budget import BudgetExceeded
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    Provenance,
    declared,
)

STEP = GaussianStep(declared(1, "unit", adjacency=Adjacency.REPLACE_ONE), 4.0)


def main(path: str, run: str, count: str, released: str) -> int:
    # on a busy machine others may hold the file for long
    with SqliteLedger(path, timeout=600) as ledger, open(released, "a") as left:
        sink = ledger.run(run, configuration_hash="same")
        done = {event.context.round for event in sink.events()}
        for round in sorted(set(range(1, int(count) + 1)) - done):
            event = Event(STEP, Context((), round, "message", Audience.SERVER))
            try:
                token = sink.reserve((event,), Provenance("none", None))
            except BudgetExceeded:
                return 3
            left.write(f"{round}\n")
            left.flush()
            os.fsync(left.fileno())
            sink.commit(token)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
