"""Runs that pay for their whole plan, in one reservation, before their first release.

A budget that cannot pay for all of a plan pays for nothing, also when several runs ask at once.
What was reserved counts as spent even if the run breaks off.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..mechanisms.errors import InvalidParameter
from ..mechanisms.events import Event
from ..mechanisms.protocols import Provenance

if TYPE_CHECKING:
    from ..accounting.ledger import Run


class PrepaidRun:
    """The sink of a run that has paid: events must be the planned ones, in their order.

    Args:
        run: of a ledger, which pays, unless it is resumed and has paid.
        plan: all of its events.
        provenance: of the one sampler that the run will draw its noise from.
        resumed: whether the run broke off before; its reservation counts as spent, and is used.

    Raises, with nothing recorded and before anything is drawn, what `Run.reserve` raises;
    `InvalidParameter` for a resumed run that has paid for something else.
    """

    def __init__(
        self,
        run: Run,
        plan: Sequence[Event],
        provenance: Provenance,
        *,
        resumed: bool = False,
    ) -> None:
        self._run, self._plan, self._provenance = run, tuple(plan), provenance
        self._released, self._lock = 0, threading.Lock()
        found = tuple(run.ledger.reservations(run.run)) if resumed else ()
        if found and not (
            len(found) == 1 and found[0].events == self._plan and found[0].provenance == provenance
        ):
            raise InvalidParameter("run", run.run, "paid for as planned, in one reservation")
        self._token = found[0].sequence if found else run.reserve(self._plan, provenance)
        self._committed = any(each.committed for each in found)

    @property
    def is_over(self) -> bool:
        """Whether the plan was committed before: all of its messages have left already."""
        return self._committed

    @property
    def released(self) -> tuple[Event, ...]:
        """The events of the plan that have happened."""
        return self._plan[: self._released]

    def reserve(self, events: Sequence[Event], provenance: Provenance) -> int:
        """Return a token.

        Raises `InvalidParameter` for an event that is not the next planned, for noise of another
        source, or of more trials, than was paid for, and for a second sampler: of the same seed it
        would repeat the noise of the first.
        """
        if provenance != self._provenance:
            raise InvalidParameter("provenance", provenance, f"as paid for: {self._provenance}")
        if provenance.source is not self._provenance.source:
            raise InvalidParameter("sampler", provenance, "the one that the plan was paid with")
        with self._lock:
            for event in events:
                planned = self._plan[self._released] if self._released < len(self._plan) else None
                if event != planned:
                    raise InvalidParameter("event", event, f"as planned: {planned}")
                self._released += 1
        return self._token

    def commit(self, token: int) -> None:
        """Do nothing: the reservation of the whole plan is committed at the end."""

    def close(self) -> None:
        """Commit the plan, once its messages have left."""
        if not self._committed:
            self._run.commit(self._token)
