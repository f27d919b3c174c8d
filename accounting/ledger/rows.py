"""Rows: what the ledger keeps, and the hash chain that binds each row to all before it.

A row's hash is the SHA-256 of the canonical JSON of [sequence, kind, run, body, previous hash]; the
body is canonical JSON itself, kept as text, so that every byte of it counts. Mechanisms, lists of
parties and plans are documents: kept once each, under the SHA-256 of their text, which stands in
bodies in their place.

`encoded` and `decoded` are inverse to each other: entries go in as typed values and come back
equal, and a row that `encoded` could not have written is `TamperedLedger`. Ledgers of every earlier
version are read for ever, so a field may be added to a body, and never change its meaning.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from secrets import token_hex
from typing import Any

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.encoding import (
    Json,
    canonical_json,
    from_rational,
    mechanism_from_json,
    mechanism_to_json,
    rational,
    subject_hash,
)
from ...mechanisms.errors import DpledgerError, InvalidParameter
from ...mechanisms.events import SCHEMA_VERSION, Audience, Context, Event, Mechanism
from ...mechanisms.protocols import Provenance
from ..numbers.notions import ApproxDp, Exact, Gdp, Rdp, Zcdp
from .budget import Budget

GENESIS = "0" * 64
"""What the first row names as its previous hash."""


_SALT_BYTES = 16
"""Of random bytes beside a seed: 128 bits, as many as a seed can have."""


class LedgerError(DpledgerError):
    """The ledger could not do as asked; nothing was recorded."""


class TamperedLedger(LedgerError):
    """What the ledger holds is not what was written: two things differ that should be equal.

    Args:
        where: the row, document or part of the file.
        expected: what should stand there.
        found: what does.
    """

    def __init__(self, where: str, expected: object, found: object) -> None:
        super().__init__(f"{where}: expected {expected} instead got {found}.")
        self.where, self.expected, self.found = where, expected, found

    def __reduce__(self) -> tuple[object, tuple[str, object, object]]:
        return (type(self), (self.where, self.expected, self.found))


class RowKind(Enum):
    """What a row says; the texts are part of the format."""

    BUDGET = "budget"
    OPEN_RUN = "open-run"
    RESERVE = "reserve"
    COMMIT = "commit"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it is kept.

    Args:
        sequence: its number, from 1.
        kind: what it says.
        run: whose it is; empty for what concerns the whole ledger.
        body: canonical JSON.
        previous: the hash of the row before, `GENESIS` for the first.
        hash: of all of these, in hexadecimal.
    """

    sequence: int
    kind: RowKind
    run: str
    body: str
    previous: str
    hash: str

    @classmethod
    def following(cls, sequence: int, head: str, *, kind: RowKind, run: str, body: str) -> "Row":
        """Return the row that stands after another one.

        Args:
            sequence: number of the row before, 0 for none.
            head: its hash.
            kind, run, body: of the new row.
        """
        return cls(
            sequence + 1, kind, run, body, head, _row_hash(sequence + 1, kind, run, body, head)
        )

    @classmethod
    def read(cls, *columns: object) -> "Row":
        """Return the row of six columns as a database returns them.

        Raises `TamperedLedger` if they cannot be one: another type, or an unknown kind.
        """
        sequence, kind, run, body, previous, digest = columns
        where = f"Row {sequence}"
        if isinstance(sequence, bool) or not isinstance(sequence, int):
            raise TamperedLedger(where, "a whole number", sequence)
        for text in (kind, run, body, previous, digest):
            if not isinstance(text, str):
                raise TamperedLedger(where, "text", text)
        kinds = {known.value: known for known in RowKind}
        if kind not in kinds:
            raise TamperedLedger(where, f"a kind in {sorted(kinds)}", kind)
        return cls(sequence, kinds[str(kind)], str(run), str(body), str(previous), str(digest))

    def require_after(self, sequence: int, head: str) -> None:
        """Raise `TamperedLedger` unless this is the whole row after number `sequence`, whose hash
        is `head`.
        """
        where = f"Row {self.sequence}"
        if self.sequence != sequence + 1:
            raise TamperedLedger(where, f"row {sequence + 1}", f"row {self.sequence}")
        if self.previous != head:
            raise TamperedLedger(where, f"previous hash {head}", self.previous)
        recomputed = _row_hash(self.sequence, self.kind, self.run, self.body, self.previous)
        if self.hash != recomputed:
            raise TamperedLedger(where, f"hash {recomputed}", self.hash)


def _row_hash(sequence: int, kind: RowKind, run: str, body: str, previous: str) -> str:
    return _digest(canonical_json([sequence, kind.value, run, body, previous]))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class BudgetSet:
    """The ledger got a budget.

    Args:
        budget: what may be spent in all.
        time: in UTC, ISO 8601; of every entry, for people: no decision rests on it.
    """

    budget: Budget
    time: str


@dataclass(frozen=True, slots=True)
class RunOpened:
    """A run began.

    Args:
        configuration_hash: of what determines it.
        plan: what it said beforehand it would emit; None if it said nothing.
        time: as of `BudgetSet`.
    """

    configuration_hash: str
    plan: tuple[Event, ...] | None
    time: str

    def agrees(self, other: "RunOpened") -> bool:
        """Whether both are openings of one run, by hash and derived plan, whatever the times."""
        plans = [None if each.plan is None else subject_hash(each.plan) for each in (self, other)]
        return self.configuration_hash == other.configuration_hash and plans[0] == plans[1]


@dataclass(frozen=True, slots=True)
class Reserved:
    """Events were about to happen; from here on they count as spent.

    Args:
        events: at least one.
        provenance: the sampler that their noise was to come from.
        time: as of `BudgetSet`.
    """

    events: tuple[Event, ...]
    provenance: Provenance
    time: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The messages of a reservation left.

    Args:
        reservation: the number of its row.
        time: as of `BudgetSet`.
    """

    reservation: int
    time: str


@dataclass(frozen=True, slots=True)
class MessageLeft:
    """A message of a reservation left; the last of its events' messages closes it.

    A message is a release's outcome, so that a digest of it is post-processing and costs nothing.
    (Of sums over parties it is a party's own share, which nobody else sees: a ledger stays with the
    holder of the data.) A second message of one event would be fresh noise that nobody paid for.

    Args:
        reservation: the number of its row.
        event: which of its events the message is of, from 0; they leave in order.
        sha256: of the message's bytes (see `message_digest`).
        time: as of `BudgetSet`.
    """

    reservation: int
    event: int
    sha256: str
    time: str


Entry = BudgetSet | RunOpened | Reserved | Committed | MessageLeft
"""What a row can say."""

_KINDS: dict[type[Entry], RowKind] = {
    BudgetSet: RowKind.BUDGET,
    RunOpened: RowKind.OPEN_RUN,
    Reserved: RowKind.RESERVE,
    Committed: RowKind.COMMIT,
    MessageLeft: RowKind.MESSAGE,
}

NewDocuments = dict[str, str]
"""Documents by hash, to be kept before the row that names them."""


def encoded(entry: Entry) -> tuple[RowKind, str, NewDocuments]:
    """Return an entry's kind, its body as canonical JSON, and the documents that the body names.

    Args:
        entry: what the row is to say.

    Raises `InvalidParameter` for a budget that is not finite, or events too deep to be written.
    """
    new: NewDocuments = {}
    body: dict[str, Json]
    match entry:
        case BudgetSet():
            body = _budget_to_json(entry.budget)
        case RunOpened():
            plan = None if entry.plan is None else [_reference(e, new) for e in entry.plan]
            body = {
                "configuration_hash": entry.configuration_hash,
                "plan": None if plan is None else _filed(plan, new),
            }
        case Reserved():
            body = {
                "events": [_reference(event, new) for event in entry.events],
                "sampler": entry.provenance.sampler,
                "seed": entry.provenance.seed,
            }
            if entry.provenance.seed is not None:
                # heads stand in reports: without it a hash could be searched for the seed
                body["salt"] = token_hex(_SALT_BYTES)
            if entry.provenance.trials is not None:
                body["trials"] = entry.provenance.trials
            if entry.provenance.simulation:
                body["simulation"] = True
        case Committed():
            body = {"reservation": entry.reservation}
        case MessageLeft():
            body = {
                "reservation": entry.reservation,
                "event": entry.event,
                "sha256": entry.sha256,
                # a share of a sum is seen by nobody, and few numbers could be searched for
                "salt": token_hex(_SALT_BYTES),
            }
    body["time"] = entry.time
    return _KINDS[type(entry)], canonical_json(body).decode(), new


def _filed(value: Json, new: NewDocuments) -> str:
    """File a value among new documents, and return the hash that stands for it."""
    content = canonical_json(value)
    digest = _digest(content)
    new[digest] = content.decode()
    return digest


def _reference(event: Event, new: NewDocuments) -> Json:
    """Return an event with hashes in place of its mechanism and parties."""
    context = event.context
    return {
        "schema": SCHEMA_VERSION,
        "mechanism": _filed(mechanism_to_json(event.mechanism), new),
        "parties": _filed(list(context.parties), new),
        "round": context.round,
        "release": context.release,
        "audience": context.audience.value,
    }


class Library:
    """Documents by hash, each read, checked and decoded once.

    A mechanism is decoded once however many rows name it, which is what makes a ledger of a million
    events readable.

    Args:
        load: returns the text kept under a hash; what it raises passes through.
    """

    def __init__(self, load: Callable[[str], str]) -> None:
        self._load = load
        self._mechanisms: dict[str, Mechanism] = {}
        self._parties: dict[str, tuple[str, ...]] = {}

    def __contains__(self, digest: str) -> bool:
        return digest in self._mechanisms or digest in self._parties

    def read(self, digest: str) -> Any:
        """Return the content of a document; raises `TamperedLedger` if its hash is another."""
        text = self._load(digest)
        found = _digest(text.encode())
        if found != digest:
            raise TamperedLedger("Document", f"hash {digest}", found)
        return json.loads(text)

    def mechanism(self, digest: str) -> Mechanism:
        """Return the mechanism kept under a hash."""
        if digest not in self._mechanisms:
            self._mechanisms[digest] = mechanism_from_json(self.read(digest))
        return self._mechanisms[digest]

    def parties(self, digest: str) -> tuple[str, ...]:
        """Return the list of parties kept under a hash."""
        if digest not in self._parties:
            self._parties[digest] = tuple(_typed(name, str) for name in self.read(digest))
        return self._parties[digest]


def decoded(row: Row, library: Library) -> Entry:
    """Return what a row says; raises `TamperedLedger` if it is not what `encoded` writes."""
    try:
        return _decoded(row.kind, json.loads(row.body), library)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TamperedLedger(f"Row {row.sequence}", f"a {row.kind.value} entry", error) from error


def _decoded(kind: RowKind, body: Any, library: Library) -> Entry:
    time = _typed(body.pop("time"), str)
    match kind:
        case RowKind.BUDGET:
            return BudgetSet(_budget_from_json(body), time)
        case RowKind.OPEN_RUN:
            digest, plan = _take(body, "configuration_hash", "plan")
            events = None if plan is None else _events(library.read(_typed(plan, str)), library)
            return RunOpened(_typed(digest, str), events, time)
        case RowKind.RESERVE:
            # written of simulations only, so that releases' rows are as they always were
            trials = _typed(body.pop("trials"), int) if "trials" in body else None
            simulation = "simulation" in body and _typed(body.pop("simulation"), bool)
            _typed(body.pop("salt", ""), str)  # of rows with a seed, but in older ledgers
            events, sampler, seed = _take(body, "events", "sampler", "seed")
            provenance = Provenance(
                _typed(sampler, str),
                None if seed is None else _typed(seed, int),
                trials,
                simulation,
            )
            return Reserved(_events(events, library), provenance, time)
        case RowKind.COMMIT:
            (reservation,) = _take(body, "reservation")
            return Committed(_typed(reservation, int), time)
        case RowKind.MESSAGE:
            _typed(body.pop("salt", ""), str)
            token, event, digest = _take(body, "reservation", "event", "sha256")
            return MessageLeft(_typed(token, int), _typed(event, int), _typed(digest, str), time)


def _take(body: dict[str, Any], *names: str) -> tuple[Any, ...]:
    """Return the fields of these names; raise `ValueError` unless they are all that there are."""
    if set(body) != set(names):
        raise ValueError(f"fields {sorted(body)} are not {sorted(names)}")
    return tuple(body[name] for name in names)


def _typed(value: Any, kind: type) -> Any:
    """Return a value of exactly this type; raise `ValueError` for another, True for 1 included."""
    if type(value) is not kind:
        raise ValueError(f"{value!r:.80} is no {kind.__name__}")
    return value


def _events(references: Any, library: Library) -> tuple[Event, ...]:
    return tuple(_event(found, library) for found in _typed(references, list))


def _event(reference: Any, library: Library) -> Event:
    """Return the event of a reference; raise `ValueError` where it is none."""
    schema, mechanism, parties, round, release, audience = _take(
        reference, "schema", "mechanism", "parties", "round", "release", "audience"
    )
    if schema != SCHEMA_VERSION:
        raise ValueError(f"schema {schema!r} is not {SCHEMA_VERSION}")
    context = Context(
        library.parties(parties), round, _typed(release, str), Audience(_typed(audience, str))
    )
    return Event(library.mechanism(mechanism), context)


def _budget_to_json(budget: Budget) -> dict[str, Json]:
    """Return a budget with exact rationals; raise `InvalidParameter` for an infinite one."""
    match budget.notion:
        case Gdp(mu_squared=mu_squared):
            notion: dict[str, Json] = {"mu_squared": _written(mu_squared)}
        case Zcdp(rho=rho):
            notion = {"rho": _written(rho)}
        case ApproxDp(epsilon=epsilon, delta=delta):
            notion = {"epsilon": _written(epsilon), "delta": _written(delta)}
        case Rdp(order=order, epsilon=epsilon):
            notion = {"order": _written(order), "epsilon": _written(epsilon)}
    return {"notion": notion, "adjacency": budget.adjacency.value}


def _budget_from_json(body: dict[str, Any]) -> Budget:
    """Return the budget of a body; raise `ValueError` for unknown numbers."""
    notion, adjacency = _take(body, "notion", "adjacency")
    numbers = {name: from_rational(value) for name, value in notion.items()}
    match sorted(numbers):
        case ["mu_squared"]:
            found: Gdp | Zcdp | ApproxDp | Rdp = Gdp(numbers["mu_squared"])
        case ["rho"]:
            found = Zcdp(numbers["rho"])
        case ["delta", "epsilon"]:
            found = ApproxDp(numbers["epsilon"], numbers["delta"])
        case ["epsilon", "order"]:
            found = Rdp(numbers["order"], numbers["epsilon"])
        case names:
            raise ValueError(f"{names} are no notion")
    return Budget(found, Adjacency(adjacency))


def _written(number: Exact) -> str:
    if not isinstance(number, Fraction):
        raise InvalidParameter("budget", number, "finite")
    return rational(number)
