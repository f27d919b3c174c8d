"""The ledger: one interface, wherever the rows are kept.

Reserve before the noise is drawn, commit after the message left; a reservation without a commit
counts as spent. Checking and appending are one transaction, so that writers together cannot cross a
budget that each alone would keep.

In come events, from curators through a `Run`; out come an odometer, a guarantee and events for a
certificate. `MemoryLedger` keeps rows in this process, `SqliteLedger` in a file; both only store
and fetch, and everything that is decided is decided here and in `state`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from threading import RLock
from typing import Self, TypeVar

from ...mechanisms.encoding import message_digest
from ...mechanisms.errors import AdjacencyMismatch, InvalidParameter, Number
from ...mechanisms.events import Event
from ...mechanisms.protocols import FloatArray, Provenance
from ..composition import composed
from ..guarantees import Guarantee, guarantee
from ..numbers.grade import Grade
from .anchor import FileAnchor, Head, RolledBack
from .budget import Budget
from .rows import (
    BudgetSet,
    Committed,
    Entry,
    LedgerError,
    Library,
    MessageLeft,
    Reserved,
    Row,
    RowKind,
    RunOpened,
    TamperedLedger,
    decoded,
    encoded,
)
from .state import LedgerState, Odometer

T = TypeVar("T")

_ANCHOR_TIMEOUT = 30.0
"""Seconds to wait for other ledgers that an anchor is shared with: copies, by mistake."""

_PAGE = 1000
"""Rows fetched at once, so that a long ledger need not fit in memory."""

HISTORY = "what an imported history lists, and when it ended, was fixed beforehand"
"""What its price takes for granted: it was recorded when all of it was over."""

__all__ = ["HISTORY", "Ledger", "Reservation", "Run", "RunSummary", "Verification"]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Events that a run reserved together.

    Args:
        sequence: the row's number, which is the token for `Run.commit`.
        run: its name.
        events: at least one.
        provenance: the sampler that their noise was to come from.
        time: in UTC, ISO 8601.
        committed: whether their messages are known to have left; spent they are in any case.
    """

    sequence: int
    run: str
    events: tuple[Event, ...]
    provenance: Provenance
    time: str
    committed: bool


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in numbers.

    Args:
        run: its name.
        configuration_hash: of what determines it.
        opened: when, in UTC, ISO 8601.
        planned: whether it said beforehand what it would emit.
        kept_to_plan: whether every event so far was planned; False also where there was no plan.
        imported: whether something of it happened elsewhere: its plan was written down afterwards.
        events, reservations, committed: how many of each.
    """

    run: str
    configuration_hash: str
    opened: str
    planned: bool
    kept_to_plan: bool
    imported: bool
    events: int
    reservations: int
    committed: int


@dataclass(frozen=True, slots=True)
class Verification:
    """What was recomputed and found right.

    Args:
        rows, documents, reservations: how many of each.
        open: rows of reservations without a commit, all of them spent.
        head: hash of the last row.
    """

    rows: int
    documents: int
    reservations: int
    open: tuple[int, ...]
    head: str


class Run:
    """The sink of one run: an `EventSink` for its curator.

    Args:
        ledger: that the run was opened in.
        run: its name.
    """

    def __init__(self, ledger: "Ledger", run: str) -> None:
        self.ledger = ledger
        self.run = run
        self._open: int | None = None

    def reserve(self, events: Sequence[Event], provenance: Provenance) -> int:
        """Record that `events` are about to happen and return a token.

        Raises, with nothing recorded: `BudgetExceeded`; `UnpricedMechanism` for what a budget
        cannot pay; `LedgerError` for what is left out of a plan that took all of the budget, for a
        seed that was used before, other than by this very sampler, and for a simulation under a
        budget; `RolledBack` if the ledger is behind its anchor; `AdjacencyMismatch`;
        `InvalidParameter` for no events or a party named twice.
        """
        entry = Reserved(tuple(events), provenance, _now())
        return self.ledger.append_entry(self.run, entry).sequence

    def commit(self, token: int, message: FloatArray | None = None, *, event: int = 0) -> None:
        """Record that a message leaves, by its digest; or that all of a reservation's have left.

        Args:
            token: of the reservation.
            message: that leaves, of any shape; None for all of the reservation's, without digests.
            event: of the reservation's events the one that it is of, from 0, in order.

        Raises `InvalidParameter`, with nothing recorded, unless `token` is an open reservation of
        this run, whose next message is this event's.
        """
        if message is None:
            self.ledger.append_entry(self.run, Committed(token, _now()))
        else:
            left = MessageLeft(token, event, message_digest(message), _now())
            self.ledger.append_entry(self.run, left)

    def step(self, *events: Event, sampler: str = "elsewhere") -> None:
        """Reserve events that something else is about to do; the step before has left by now.

            with ledger.run("training", configuration_hash=digest) as run:
                for batch in batches:
                    run.step(event)  # raises where the budget does not allow it
                    optimiser.step()

        Args:
            events: of the next step, at least one.
            sampler: who draws the noise, for the ledger's row; nothing here saw it.

        Raises as `reserve` does; then nothing of the step may happen.
        """
        self._left()
        self._open = self.reserve(events, Provenance(sampler, None))

    def _left(self) -> None:
        if self._open is not None:
            self.commit(self._open)
            self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # a step that raised may have left or not: it stays open, and counts as spent
        if kind is None:
            self._left()

    def events(self) -> list[Event]:
        """Return the run's events, all that were reserved."""
        return self.ledger.events(self.run)

    def spent(self) -> Odometer:
        """Return what the run has spent so far."""
        return self.ledger.spent(self.run)

    def guarantee(self, *, delta: Number) -> Guarantee:
        """Return what the run guarantees at `delta`, in (0, 1); see `Ledger.guarantee`."""
        return self.ledger.guarantee(self.run, delta=delta)


@contextmanager
def _naming_runs() -> Generator[None]:
    """Say what to do where runs of a ledger are under several relations, and so have no sum."""
    try:
        yield
    except AdjacencyMismatch as error:
        raise AdjacencyMismatch(f"{error} Of a ledger's runs, ask about one (--run).") from error


class Ledger(ABC):
    """An append-only, hash-chained record of events. Safe to share between threads."""

    def __init__(self, anchor: FileAnchor | None = None) -> None:
        self._lock = RLock()
        self._state = LedgerState(Library(self.document))
        self._still = False
        """Whether the state is to stay as it is, for `steady`."""
        self._anchor = anchor
        self._seeded: dict[tuple[str, int], object] = {}
        """Which sampler of this process draws from which seed."""

    def set_budget(self, budget: Budget) -> None:
        """Refuse from now on what would cross `budget`, all runs together.

        Raises `LedgerError` if there is a budget already, or anything was reserved.
        """
        self.append_entry("", BudgetSet(budget, _now()))

    def run(self, run: str, *, configuration_hash: str, plan: Sequence[Event] | None = None) -> Run:
        """Open a run, or join it where it is open under the same configuration and plan.

        Args:
            run: its name; party names mean the same records within a run.
            configuration_hash: of what determines the run.
            plan: the events it says it will emit; its odometer is an estimate until all happened.

        Raises `InvalidParameter` for an empty name or hash, one that is no text in UTF-8, or a run
        that is open otherwise.
        """
        # what is no text would be read back as another name, and the file as changed
        if not isinstance(run, str) or any("\ud800" <= letter <= "\udfff" for letter in run):
            raise InvalidParameter("run", ascii(run), "a text in UTF-8")
        if not isinstance(configuration_hash, str) or not configuration_hash:
            raise InvalidParameter("configuration_hash", configuration_hash, "a hash")
        opening = RunOpened(configuration_hash, None if plan is None else tuple(plan), _now())
        with self._lock:
            with self._appending():
                known = self._state.runs.get(run)
                row = self._put(run, opening) if known is None else None
            if row is not None:
                self._state.take(row, opening)
            elif known is not None and not known.opening.agrees(opening):
                raise InvalidParameter(
                    "run", run, "new, or with the configuration it was opened with"
                )
        return Run(self, run)

    def require(self, plan: Sequence[Event]) -> None:
        """Raise what a new run would be refused with that reserved all of `plan` now.

        Nothing is recorded, and nothing kept free: the reservation is what decides.
        """
        with self._lock:
            self._current().check_new_run(plan)

    @property
    def budget(self) -> Budget | None:
        """What may be spent in all."""
        return self._current().budget

    @property
    def filtered(self) -> Budget | None:
        """The budget whose filter every reservation has passed; None where there is none, or where
        one plan took all of it.
        """
        return self._current().filtered

    @property
    def head(self) -> str:
        """The hash of the last row, which binds all rows."""
        return self._current().head

    @property
    def last_row(self) -> Head:
        """The last row's number and hash; raises `LedgerError` where there are no rows."""
        with self._lock:
            state = self._current()
            if not state.sequence:
                raise LedgerError("Expected at least one row instead got none.")
            return Head(state.sequence, state.head)

    def require_row(self, head: Head) -> None:
        """Raise `RolledBack` unless this ledger holds the row of that number with that hash."""
        found = self._rows_after(head.row - 1, 1)
        if not found:
            raise RolledBack(
                f"Expected row {head.row} instead got {self._current().sequence} rows: the ledger "
                "is an older copy, or lost rows. Nothing was released."
            )
        if found[0].hash != head.hash:
            raise RolledBack(
                f"Expected row {head.row} to have the hash {head.hash} instead got "
                f"{found[0].hash}: this is another ledger. Nothing was released."
            )

    def add_to(self, anchor: FileAnchor) -> Head:
        """Add the last row's head to an anchor, after finding its last head here; return it.

        Raises `RolledBack`, with nothing added, where this ledger lacks the row.
        """
        while True:
            last, head = anchor.last(), self.last_row
            if last is not None:
                self.require_row(last)
            with anchor.locked(_ANCHOR_TIMEOUT):  # rows are not read meanwhile: writers wait for it
                if anchor.last() == last:
                    anchor.append(head)
                    return head

    def circumstances(self, run: str | None = None) -> tuple[str, ...]:
        """Return what a certificate of the events, of one run or of all, takes for granted."""
        return (self.last_row.statement, *self.noise_circumstances(run))

    def noise_circumstances(self, run: str | None = None) -> tuple[str, ...]:
        """Return of it what the noise's sources make so: seeds, trials in place of one release, and
        histories of other tools.
        """
        sources, found = [each.provenance for each in self.reservations(run)], list[str]()
        if any(source.seed is not None for source in sources):
            found.append("the seeds of its noise are secret")
        if not all(source.is_release for source in sources):
            found.append("this was a simulation, which prices one ideal release for each event")
        if any(source.is_history for source in sources):
            found.append(HISTORY)
        return tuple(found)

    def rows(self) -> Iterator[Row]:
        """Yield the rows in order, as they are kept; in `steady` those of its state."""
        sequence, last = 0, self._state.sequence if self._still else inf
        while page := self._rows_after(sequence, _PAGE):
            yield from (row for row in page if row.sequence <= last)
            sequence = page[-1].sequence
            if sequence >= last:
                return

    def runs(self) -> tuple[RunSummary, ...]:
        """Return every run in numbers, in the order they were opened."""
        return tuple(
            RunSummary(
                run=state.run,
                configuration_hash=state.opening.configuration_hash,
                opened=state.opening.time,
                planned=state.opening.plan is not None,
                kept_to_plan=state.kept_to_plan,
                imported=state.imported,
                events=state.events,
                reservations=state.reservations,
                committed=state.committed,
            )
            for state in self._current().runs.values()
        )

    def reservations(self, run: str | None = None) -> Iterator[Reservation]:
        """Yield the reservations there are now, of one run or of all, in order."""
        state = self._current()
        last, open_now = state.sequence, frozenset(state.open)
        for row in self.rows():
            if row.sequence > last:  # whether it is committed is known of those that were there
                return
            if run is not None and row.run != run:
                continue
            entry = decoded(row, self._state.library)
            if isinstance(entry, Reserved):
                yield Reservation(
                    sequence=row.sequence,
                    run=row.run,
                    events=entry.events,
                    provenance=entry.provenance,
                    time=entry.time,
                    committed=row.sequence not in open_now,
                )

    def messages(self, run: str | None = None) -> dict[tuple[int, int], str]:
        """Return the digests of messages that left, by (reservation, event) as in `Run.commit`."""
        found = (
            decoded(row, self._state.library)
            for row in self.rows()
            if row.kind is RowKind.MESSAGE and run in (None, row.run)
        )
        return {
            (left.reservation, left.event): left.sha256
            for left in found
            if isinstance(left, MessageLeft)
        }

    def has_left(self, token: int, event: int = 0) -> bool:
        """Return whether an event's message is known to have left; see `Run.commit`.

        Args:
            token: of its reservation.
            event: which of its events, from 0.
        """
        found = self._current().open.get(token)
        return found is None or event < found.left

    def events(self, run: str | None = None) -> list[Event]:
        """Return all events that were reserved, of one run or of all.

        Party names belong to a run: to price the events of several together, `joint_events`.
        """
        return [event for found in self.reservations(run) for event in found.events]

    def joint_events(self, run: str | None = None) -> list[Event]:
        """Return the events of one run, or of all, to be priced together, party by party.

        Party names belong to a run. Raises `LedgerError` where a record that bears one name in one
        run and another in the next can have paid more than any name says; `spent` counts it.
        """
        events = self.events(run)
        if run is not None:
            return events
        with self._lock, _naming_runs():
            covered = self._current().covered_by(composed(events))
        if not covered:
            raise LedgerError(
                "Expected one run, or runs in which the same parties pay most instead got runs "
                "whose party names, priced together, would cost too little."
            )
        return events

    def sharing_noise(self, run: str | None = None) -> tuple[str, ...]:
        """Return the runs, `run` among them, that drew noise from one seed: it can be subtracted.

        What their events cost holds for fresh noise only.
        """
        runs_of: dict[tuple[str, int], dict[str, None]] = {}
        for found in self.reservations():
            if found.provenance.stream is not None:
                runs_of.setdefault(found.provenance.stream, {})[found.run] = None
        shared = (runs for runs in runs_of.values() if len(runs) > 1 and run in (None, *runs))
        return tuple(dict.fromkeys(name for runs in shared for name in runs))

    def spent(self, run: str | None = None) -> Odometer:
        """Return the odometer of one run or of all; see `LedgerState.odometer`."""
        with self._lock, _naming_runs() if run is None else nullcontext():
            return self._current().odometer(run)

    def guarantee(self, run: str | None = None, *, delta: Number) -> Guarantee:
        """Return what the events of one run, or of all, guarantee at `delta`, in (0, 1).

        An estimate where the odometer is one: the number of events, or the time of stopping, may
        depend on what was released.

        Raises as `accounting.guarantees.guarantee` and `joint_events` do.
        """
        events, grade = self.steady(lambda: (self.joint_events(run), self.spent(run).grade))
        found = guarantee(events, delta=delta)
        return found if grade is Grade.ENCLOSED else replace(found, grade=Grade.ESTIMATE)

    def steady(self, read: Callable[[], T]) -> T:
        """Return what is read of one state: rows that come meanwhile are not looked at.

        Args:
            read: reads this ledger. What takes long belongs after it: other threads wait for it.
        """
        with self._lock:
            self._catch_up()
            before, self._still = self._still, True
            try:
                return read()
            finally:
                self._still = before

    def verify(self, *, expected_head: str | None = None) -> Verification:
        """Recompute everything from the rows and documents as they are kept.

        Without the head from somewhere else, rows missing at the end cannot be noticed.

        Raises `TamperedLedger` that names the first row or document at fault and what differs.
        """
        library = Library(self.document)
        state = LedgerState(library)
        for row in self.rows():
            state.apply(row)
        digests = self.digests()
        for digest in digests:
            library.read(digest)
        if expected_head is not None and state.head != expected_head:
            raise TamperedLedger("Head", expected_head, state.head)
        return Verification(
            rows=state.sequence,
            documents=len(digests),
            reservations=sum(found.reservations for found in state.runs.values()),
            open=tuple(state.open),
            head=state.head,
        )

    @abstractmethod
    def close(self) -> None:
        """Let go of what the ledger holds; what is recorded stays."""

    def __deepcopy__(self, memo: object) -> Self:
        """Return the ledger itself: a copy would be a second budget."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Raise `LedgerError`; a ledger in a file is opened again instead."""
        raise LedgerError(
            f"Expected a ledger in a file instead got a {type(self).__name__}: "
            "pickling would make a second budget."
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append_entry(self, run: str, entry: Entry) -> Row:
        with self._lock, ExitStack() as held:
            with self._appending():
                # an older copy would take a reservation, or another message for one, a second time
                releases = isinstance(entry, Reserved | MessageLeft)
                if releases:
                    self._require_anchored(held)
                if isinstance(entry, Reserved):
                    self._require_fresh(entry.provenance)
                row = self._put(run, entry)
            self._state.take(row, entry)
            if isinstance(entry, Reserved) and entry.provenance.stream is not None:
                self._seeded[entry.provenance.stream] = entry.provenance.source
            if releases and self._anchor is not None:
                self._anchor.append(Head(row.sequence, row.hash))
            return row

    @contextmanager
    def _appending(self) -> Generator[None]:
        """Be the only writer, with all rows taken in; the caller holds the lock.

        A row that was read before it was undone, by the handler of a signal, is forgotten.
        """
        self._catch_up()  # most of it before others have to wait
        before = self._state.sequence
        try:
            with self._writing():
                self._catch_up()
                before = self._state.sequence
                yield
        except BaseException:
            self._state.whole &= self._state.sequence == before
            raise

    def _require_anchored(self, held: ExitStack) -> None:
        """Raise `RolledBack` if the ledger is behind its anchor.

        Args:
            held: keeps the anchor locked until this ledger's own head is in it.
        """
        if self._anchor is None:
            return
        reserved = any(state.reservations for state in self._state.runs.values())
        there = os.path.exists(self._anchor.path)  # False where it is not to be read
        if there or not reserved:  # of a new ledger it is made
            held.enter_context(self._anchor.locked(_ANCHOR_TIMEOUT))
            there = (last := self._anchor.last()) is not None
            if last is not None:
                self.require_row(last)
        if reserved and not there:
            raise RolledBack(
                f"Expected the anchor {self._anchor.path} of a ledger with reservations instead "
                "got no file, or an empty one; find it, or make it by `dpledger ledger anchor`."
            )

    def _require_fresh(self, provenance: Provenance) -> None:
        """Raise `LedgerError` for noise that was drawn before: differences would be without any."""
        key = provenance.stream
        if key not in self._state.seeds or key is None:
            return
        if key not in self._seeded or self._seeded[key] is not provenance.source:
            raise LedgerError(
                f"Expected a fresh seed instead got one of {provenance.sampler} whose noise was "
                "drawn before: messages with equal noise can be subtracted. "
                "Nothing was released."
            )

    def _put(self, run: str, entry: Entry) -> Row:
        """Check and store an entry inside a transaction; the state takes it in after that.

        Raises `LedgerError` inside `steady`, whose state may be behind.
        """
        if self._still:
            raise LedgerError("Expected no more rows while the ledger is read as of one moment.")
        self._state.check(run, entry)
        kind, body, documents = encoded(entry)
        row = Row.following(self._state.sequence, self._state.head, kind=kind, run=run, body=body)
        self._store(row, documents)
        return row

    def adopt(self, rows: Sequence[Row], documents: Mapping[str, str]) -> None:
        """Keep verified rows of another ledger, all or none; this one must be empty."""
        with self._lock:
            with self._writing():
                self._catch_up()
                if self._state.sequence:
                    raise LedgerError(f"Expected no rows yet instead got {self._state.sequence}.")
                for row in rows:
                    self._store(row, documents if row is rows[0] else {})
            self._catch_up()

    def _current(self) -> LedgerState:
        with self._lock:
            self._catch_up()
            return self._state

    def _catch_up(self) -> None:
        """Take in the rows that other writers appended; all rows, where one was left by half."""
        if self._still:
            return
        if not self._state.whole:
            self._state = LedgerState(Library(self.document))
        # the handler of a signal may put another in its place, and go on with this one until then
        state = self._state
        while page := self._rows_after(state.sequence, _PAGE):
            for row in page:
                before = state.sequence
                try:
                    if row.sequence > before:
                        state.apply(row)
                except TamperedLedger:
                    # else the handler of a signal has taken it in meanwhile
                    if state.sequence == before:
                        raise

    @abstractmethod
    def _writing(self) -> AbstractContextManager[None]:
        """Return a transaction that keeps other writers out; undone if the block raises."""

    @abstractmethod
    def _store(self, row: Row, documents: Mapping[str, str]) -> None:
        """Keep a row and those documents that are not kept yet, inside a transaction."""

    @abstractmethod
    def _rows_after(self, sequence: int, limit: int) -> list[Row]:
        """Return the next rows after number `sequence`, at most `limit`."""

    @abstractmethod
    def document(self, digest: str) -> str:
        """Return the text kept under a hash; raises `TamperedLedger` if there is none."""

    @abstractmethod
    def digests(self) -> list[str]:
        """Return the hash of every document."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
