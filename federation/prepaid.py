"""Runs that pay for their whole plan, in one reservation, before their first release.

A budget that cannot pay for all of a plan pays for nothing, also when several runs ask at once.
What was reserved counts as spent even if the run breaks off.

Each message enters the ledger by its digest before it leaves. So whoever goes on with a run that
broke off, from one copy of its messages or from several, repeats the messages that left, and a
second draw of noise for one of them is refused. A fork of the process is refused by the ledger.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from ..mechanisms.encoding import message_digest, subject_hash
from ..mechanisms.errors import DpledgerError, InvalidParameter, shown_value
from ..mechanisms.events import Event
from ..mechanisms.protocols import FloatArray, Provenance

if TYPE_CHECKING:
    from ..accounting.ledger import Run

__all__ = ["OtherMessage", "PrepaidRun"]


class OtherMessage(DpledgerError):
    """A release has another message already; this one did not leave."""


class PrepaidRun:
    """The sink of a run that has paid: events must be the planned ones, in their order.

    Args:
        run: of a ledger, which pays, unless it is resumed and has paid.
        plan: all of its events.
        provenance: of the one sampler that the run will draw its noise from.
        resumed: whether the run broke off before; what it reserved counts as spent, and is used.

    Raises, with nothing recorded and before anything is drawn, what `Run.reserve` raises;
    `InvalidParameter` for a resumed run that has paid for something else, other derivations
    included: what is proved of a run rests on them.
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
        self._fresh = set[int]()
        found = tuple(run.ledger.reservations(run.run)) if resumed else ()
        self._digests = run.ledger.messages(run.run) if found else {}
        if found:
            paid = tuple(chain.from_iterable(each.events for each in found))
            if subject_hash(paid) != subject_hash(self._plan):
                raise InvalidParameter("run", run.run, "paid for as planned")
            # another sampler would draw other noise than the messages that left
            for each in found:
                if each.provenance != provenance:
                    wanted = f"as paid, seed included: {each.provenance}"
                    raise InvalidParameter("sampler", provenance, wanted)
            # parties once paid in a reservation for each event
            reserved = [(each.sequence, len(each.events)) for each in found]
        else:
            reserved = [(run.reserve(self._plan, provenance), len(self._plan))]
        self._places = [(token, k) for token, events in reserved for k in range(events)]

    @property
    def released(self) -> tuple[Event, ...]:
        """The events of the plan that have happened."""
        return self._plan[: self._released]

    @property
    def left(self) -> int:
        """How many messages are known to have left, in this process or any before it."""
        return sum(map(self.has_left, range(len(self._plan))))

    def has_left(self, number: int) -> bool:
        """Return whether the ledger knows, by now, that a release's message left.

        Args:
            number: of the release in the plan, from 0.
        """
        return self._run.ledger.has_left(*self._places[number])

    def reserve(self, events: Sequence[Event], provenance: Provenance) -> int:
        """Return a token of the release that is next.

        Raises `InvalidParameter` unless `events` are the next planned one, derivation included; for
        noise of another source, or of more trials, than was paid for; and for a second sampler: of
        the same seed it would repeat the noise of the first. `OtherMessage` where a message has
        left for this release: fresh noise would be a second one, paid for by nobody.
        """
        token = self.repeat(events, provenance)
        if self.has_left(token):
            raise OtherMessage(
                f"message={token + 1} of {self._run.run!r} must be given back as it was recorded: "
                "it left by the ledger. Nothing was drawn."
            )
        self._fresh.add(token)
        return token

    def repeat(self, events: Sequence[Event], provenance: Provenance) -> int:
        """Return a token of the next release whose message was recorded, and is given back.

        Raises `InvalidParameter` as `reserve`.
        """
        if provenance != self._provenance:
            raise InvalidParameter("provenance", provenance, f"as paid for: {self._provenance}")
        if provenance.source is not self._provenance.source:
            raise InvalidParameter("sampler", provenance, "the one that the plan was paid with")
        with self._lock:
            planned = self._plan[self._released : self._released + 1]
            if tuple(events) != planned or subject_hash(events) != subject_hash(planned):
                number, wanted = self._released + 1, shown_value(planned)
                raise InvalidParameter(f"event {number}", events, f"as planned: {wanted}")
            self._released += 1
            return self._released - 1

    def commit(self, token: int, message: FloatArray, /) -> None:
        """Record that a release's message leaves; once, however often it is said.

        Raises `OtherMessage` where another one has left for it.

        Args:
            token: from `reserve`.
            message: as it leaves, noise included.
        """
        place = self._places[token]
        if place not in self._digests:
            if not self.has_left(token):
                try:
                    self._run.commit(place[0], message, event=place[1])
                    return
                except InvalidParameter:
                    if not self.has_left(token):
                        raise
            # from elsewhere since this run was opened
            self._digests = self._run.ledger.messages(self._run.run)
        # ledgers of before know of none: what was recorded is then taken at its word
        known = self._digests.get(place)
        if known != message_digest(message) and (known is not None or token in self._fresh):
            raise OtherMessage(
                f"message={token + 1} of {self._run.run!r} must be the one that left by the "
                "ledger: another copy of the run's folder went on, with noise of its own; go on "
                "there. Nothing left from here."
            )
