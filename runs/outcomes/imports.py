"""Files of other tools as outcomes: what they list, what it costs, where it was recorded.

A file's numbers are read under the relation that the caller states, as no format of these says one.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ...accounting.accountants import RdpAccountant
from ...accounting.guarantees import Guarantee, guarantee
from ...accounting.ledger import SqliteLedger
from ...accounting.ledger.ledger import HISTORY
from ...accounting.numbers.enclosure import shown_up
from ...accounting.numbers.work import WorkExhausted, limited
from ...audits.claims.pricing import UNITS_OF_WORK
from ...audits.outcome import Outcome, grade_rows, guarantee_data, shown
from ...interop import import_into, read
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.events import Event, unrepeated


def import_outcome(
    kind: str,
    file: Path,
    *,
    adjacency: Adjacency,
    ledger: Path | None = None,
    run: str | None = None,
    delta: float = 1e-5,
) -> Outcome:
    """Return what a file of another tool lists and costs; a finding if a release is unprotected.

    Args:
        kind: one of `interop.KINDS`.
        file: its path.
        adjacency: the relation that its numbers are read under.
        ledger: where the events are recorded, if anywhere; made if there is none.
        run: the run's name there.
        delta: in (0, 1), where epsilon is shown.

    Raises as `interop.read` and `interop.import_into` do; then nothing is recorded.
    """
    events = read(kind, file, adjacency=adjacency)
    found = _guaranteed(events, delta)
    recorded = None
    if ledger is not None:
        with SqliteLedger(ledger) as opened:
            recorded = import_into(opened, kind, file, adjacency=adjacency, run=run)[0].run
    releases = sum(unrepeated(event.mechanism)[1] for event in events)
    return Outcome(
        title=f"{kind}: {file.name}",
        data={
            "kind": kind,
            "releases": releases,
            "recorded_as": recorded,
            "guarantee": guarantee_data(found),
        },
        rows=(
            ("releases", f"{releases}, in {len(events)} entries"),
            (
                "epsilon",
                f"{shown(found.epsilon)} at delta {shown_up(delta)} per record, {adjacency.value}",
            ),
            *grade_rows(found),
            *(("assumed", each) for each in (*found.assumptions, HISTORY)),
            *(("UNPROTECTED", reason) for reason in found.unprotected),
            ("recorded as", None if recorded is None else f"run {recorded!r} of {ledger}"),
        ),
        finding=bool(found.unprotected),
    )


def _guaranteed(events: list[Event], delta: float) -> Guarantee:
    """Return the tightest guarantee, or by Rényi divergences where that is too much work.

    A file may list a thousand different steps. Raises `WorkExhausted` where both are too much.
    """
    with limited(UNITS_OF_WORK), suppress(WorkExhausted):
        return guarantee(events, delta=delta)
    with limited(UNITS_OF_WORK):
        return guarantee(events, delta=delta, accountant=RdpAccountant)
