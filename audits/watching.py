"""Watching a ledger: what is new is audited, what is found stays found until somebody says so.

An alarm is delivered before it is remembered, so that a full disk or a closed pipe can only make it
come twice; and memory is replaced as a whole, so that no crash leaves half of it. Alarms stay open
until they are acknowledged, whatever is looked at in between.

With a key, memory is signed (HMAC-SHA256, RFC 2104): whoever can write the file but does not hold
the key cannot make a watcher forget an alarm, believe evidence or take another chain for the one
that it saw. What no signature notices is a file that was removed, which is as before the first
look, or replaced by an older one of its own: memory belongs where whoever writes the ledger cannot.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Protocol

import msgspec

from ..accounting.ledger import SqliteLedger, TamperedLedger
from ..accounting.ledger.file_names import require_no_database
from ..accounting.ledger.ledger import Ledger, RunSummary
from ..mechanisms.errors import (
    DpledgerError,
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
)
from .burn_rate import Spending, budget_share, burn_rate, noted
from .continuous import RunAudit, audit_run
from .planted import PlantedCanaries
from .sequential import Evidence

_SIGNED = b"dpledger watch memory 1\n"
"""Stands before what is signed, so that no signature of something else by this key fits."""

_PATIENCE = 60.0
"""Seconds that a command may take over new alarms."""


_LONGEST_PAUSE = 1e6
"""Seconds: twelve days."""


class AlarmFailed(DpledgerError, RuntimeError):
    """The command that takes alarms did not: they are not remembered, and come again."""


class MalformedMemory(DpledgerError, ValueError):
    """A file is not what a watcher remembers; it was left as it is."""


class Alarm(msgspec.Struct):
    """Something wrong.

    Args:
        identifier: a hash of run and text, so that the same thing is one alarm.
        run: where it was found.
        text: what is wrong.
        since: time of the look that found it first.
        acknowledged: whether somebody has seen it.
    """

    identifier: str
    run: str
    text: str
    since: str
    acknowledged: bool = False


class Memory(msgspec.Struct):
    """What a watcher knows from before: run -> number of events; configuration -> evidence.

    Args:
        rows: of the ledger when it was last seen: rows that vanish are noticed.
        head: hash of its last row then.
        audited: number of events of each run that was audited.
        epsilons: upper bounds for these runs, None for infinity.
        evidence: of pairs of runs on neighbouring data, by configuration.
        nulls: of pairs that do not differ.
        noise_tests: how often noise was tested, by configuration; the n-th test's level falls with
            n², so that all tests to come share one error.
        canaries: SHA-256 of the planted canaries that were audited, by run.
        alarms: all that were ever raised.
        spending: shares of the budget at earlier looks; see `burn_rate`.
        last_look: time of the last look, ISO 8601.
    """

    rows: int = 0
    head: str = ""
    audited: dict[str, int] = {}
    epsilons: dict[str, float | None] = {}
    evidence: dict[str, Evidence] = {}
    nulls: dict[str, Evidence] = {}
    noise_tests: dict[str, int] = {}
    canaries: dict[str, str] = {}
    alarms: list[Alarm] = []
    spending: list[Spending] = []
    last_look: str = ""

    @property
    def open_alarms(self) -> list[Alarm]:
        """Those that nobody has acknowledged."""
        return [alarm for alarm in self.alarms if not alarm.acknowledged]


class Repeats(Protocol):
    """Repeats the runs of one configuration on neighbouring data."""

    def key(self, summary: RunSummary, ledger: Ledger) -> str | None:
        """Return what evidence about the run is filed under; None if it is of other runs."""
        ...

    def more(self, memory: Memory, key: str, findings: list[str]) -> Evidence | None:
        """Add to the evidence in `memory` and to `findings`; None if nothing is promised."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What one look found.

    Args:
        audits: of the runs that are new or have grown.
        waiting: runs left for the next look.
        tampered: how the ledger differs from what was seen; None if it is intact.
        new: alarms that no earlier look has raised.
        memory: as it is to be kept once the look has been delivered.
    """

    audits: tuple[RunAudit, ...]
    waiting: int
    tampered: str | None
    new: tuple[Alarm, ...]
    memory: Memory

    @property
    def is_finding(self) -> bool:
        """Whether an alarm is open or the ledger is not what it was."""
        return self.tampered is not None or bool(self.memory.open_alarms)

    @property
    def is_news(self) -> bool:
        """Whether there is something that no earlier look has raised."""
        return bool(self.audits or self.new or self.tampered)


@dataclass(eq=False, slots=True)
class Watcher:
    """Looks at a ledger again and again.

    Args:
        path: the ledger.
        memory_path: where memory is kept.
        repeats: who can repeat runs.
        delta: where epsilon is computed.
        most_runs: audited in one look; the others wait for the next.
        metrics_path: a Prometheus text file to write after each look; None for none.
        key: by which memory is signed; None for memory without a signature.
        days_left: alarm where the budget is gone within so many days at its rate; None for never.
        canaries: that holders plant in production runs; None for none.
    """

    path: Path
    memory_path: Path
    repeats: Sequence[Repeats]
    delta: float
    most_runs: int
    metrics_path: Path | None = None
    key: bytes | None = field(default=None, repr=False)
    days_left: float | None = None
    canaries: PlantedCanaries | None = None

    def __post_init__(self) -> None:
        require_open_unit("delta", self.delta)
        if self.days_left is not None:
            require_nonnegative("days_left", self.days_left)

    def step(self, tell: Callable[[Look], None]) -> Look:
        """Look, tell, then remember: what raises before memory is kept is found again.

        Args:
            tell: delivers a look; alarms that it could not deliver come again.

        Raises what the ledger, `tell` or the file system raises; `MalformedMemory` for another
        file.
        """
        look = self._look(self._remembered())
        tell(look)
        # what was acknowledged while this look was under way stays acknowledged
        now = {alarm.identifier for alarm in self._remembered().alarms if alarm.acknowledged}
        for alarm in look.memory.alarms:
            alarm.acknowledged |= alarm.identifier in now
        _keep(self.memory_path, look.memory, self.key)
        if self.metrics_path is not None:
            _write_whole(self.metrics_path, _metrics(look))
        return look

    def _remembered(self) -> Memory:
        """Return what the memory file says now."""
        return _read_memory(self.memory_path, self.key)

    def _look(self, memory: Memory) -> Look:
        """Return what is new; `memory` stays as it is."""
        after = copy.deepcopy(memory)
        after.last_look = _now()
        audits: list[RunAudit] = []
        planted: list[tuple[str, str]] = []
        waiting, tampered = 0, None
        try:
            with SqliteLedger(self.path, read_only=True) as ledger:
                self._verify(ledger, after)
                share = None if ledger.budget is None else budget_share(ledger.spent())
                if share is not None:
                    after.spending = noted(after.spending, Spending(after.last_look, share))
                new = [
                    summary
                    for summary in ledger.runs()
                    if summary.events and after.audited.get(summary.run) != summary.events
                ]
                waiting = max(0, len(new) - self.most_runs)
                for summary in new[: self.most_runs]:
                    audits.append(self._audit(ledger, summary, after))
                    after.audited[summary.run] = summary.events
                if self.canaries is not None:
                    planted = self.canaries.look(ledger, after.canaries)
        except TamperedLedger as error:
            tampered = str(error)
        found = [(audit.run, text) for audit in audits for text in audit.findings] + planted
        if tampered is not None:
            found.append(("ledger", f"tampered with: {tampered}"))
        rate = burn_rate(after.spending)
        if rate is not None and self.days_left is not None and rate.days_left <= self.days_left:
            found.append(("budget", f"the budget is gone within {self.days_left:g} days"))
        return Look(tuple(audits), waiting, tampered, _alarmed(after, found), after)

    def _audit(self, ledger: Ledger, summary: RunSummary, memory: Memory) -> RunAudit:
        """Audit one run, with the evidence of those who can repeat it."""
        keyed = ((repeats, repeats.key(summary, ledger)) for repeats in self.repeats)
        repeats, key = next(((r, k) for r, k in keyed if k is not None), (None, None))
        before = None if key is None else memory.evidence.get(key)
        more = None if repeats is None or key is None else partial(repeats.more, memory, key)
        found = audit_run(ledger, summary, delta=self.delta, evidence=before, more=more)
        if key is not None and found.evidence is not None:
            memory.evidence[key] = found.evidence
        epsilon = found.epsilon.upper_float
        memory.epsilons[summary.run] = epsilon if isfinite(epsilon) else None
        return found

    def _verify(self, ledger: SqliteLedger, memory: Memory) -> None:
        """Recompute the chain; it must go on from where it was last seen."""
        found = ledger.verify()
        if found.rows < memory.rows:
            raise TamperedLedger("Number of rows", f"at least {memory.rows}", found.rows)
        if memory.rows:
            # a chain that was made anew is consistent in itself, and may be longer
            seen = next(row for row in ledger.rows() if row.sequence == memory.rows)
            if seen.hash != memory.head:
                raise TamperedLedger(f"Hash of row {memory.rows}", memory.head, seen.hash)
        memory.rows, memory.head = found.rows, found.head


def _now() -> str:
    """Return the time in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _alarmed(memory: Memory, found: Sequence[tuple[str, str]]) -> tuple[Alarm, ...]:
    """Add what was found to the alarms, once each; return the new ones."""
    known = {alarm.identifier for alarm in memory.alarms}
    new: list[Alarm] = []
    for run, text in found:
        identifier = hashlib.sha256(f"{run}\n{text}".encode()).hexdigest()[:12]
        if identifier not in known:
            known.add(identifier)
            new.append(Alarm(identifier, run, text, memory.last_look))
    memory.alarms = [*memory.alarms, *new]
    return tuple(new)


def require_pause(seconds: float | None) -> None:
    """Raise `InvalidParameter` for a pause between looks that no clock waits."""
    if seconds is not None and not 0 < seconds <= _LONGEST_PAUSE:
        raise InvalidParameter("every", seconds, f"in (0, {_LONGEST_PAUSE:g}] seconds")


def acknowledge(
    path: Path, identifiers: Sequence[str], *, key: bytes | None = None
) -> tuple[tuple[Alarm, ...], int]:
    """Acknowledge these alarms (all without any) in a watcher's memory file.

    Returns those alarms, and how many are still open. Raises `InvalidParameter` for one that is
    not open, `MalformedMemory` for another file.
    """
    memory = _read_memory(path, key)
    still = {alarm.identifier: alarm for alarm in memory.open_alarms}
    for identifier in identifiers:
        if identifier not in still:
            raise InvalidParameter("alarm", identifier, f"open, as {', '.join(still) or 'none'} is")
    chosen = tuple(still[each] for each in identifiers or still)
    for alarm in chosen:
        alarm.acknowledged = True
    _keep(path, memory, key)
    return chosen, len(memory.open_alarms)


def call_alarm(command: str, alarms: Sequence[Alarm]) -> None:
    """Hand alarms as JSON to a command's standard input.

    Args:
        command: as a shell would divide it; no shell runs.
        alarms: the new ones.

    Raises `AlarmFailed` if it fails or takes longer than a minute.
    """
    document = msgspec.json.encode({"alarms": alarms})
    try:
        subprocess.run(shlex.split(command), input=document, check=True, timeout=_PATIENCE)
    except (subprocess.SubprocessError, ValueError) as error:
        raise AlarmFailed(f"{command!r}: Expected a command that takes alarms; {error}") from error


def _read_memory(path: Path, key: bytes | None) -> Memory:
    """Return what a file remembers; nothing where there is none. Raises `MalformedMemory`."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Memory()
    if key is not None:
        tag, _, content = content.partition(b"\n")
        if not hmac.compare_digest(tag, _tag(content, key)):
            raise MalformedMemory(
                f"{path}: Expected memory signed by this key; it was changed, or is of another key "
                "or of none. What it says is not believed."
            )
    try:
        return msgspec.json.decode(content, type=Memory)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedMemory(f"{path}: Expected what a watcher remembered: {error}") from error


def _keep(path: Path, memory: Memory, key: bytes | None) -> None:
    """Write what is remembered, behind a line with its signature if there is a key."""
    content = msgspec.json.format(msgspec.json.encode(memory))
    _write_whole(path, content if key is None else _tag(content, key) + b"\n" + content)


def _tag(content: bytes, key: bytes) -> bytes:
    """Return the signature of a memory as hexadecimal digits."""
    return hmac.new(key, _SIGNED + content, hashlib.sha256).hexdigest().encode()


def _write_whole(path: Path, content: bytes) -> None:
    """Replace a file as a whole, or leave it as it was and raise `OSError`."""
    require_no_database(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


# --- Prometheus ----------------------------------------------------------------------------------


def _metrics(look: Look) -> bytes:
    """Return a look in the Prometheus text format; its time is the heartbeat."""
    memory = look.memory
    epsilons = {run: inf if e is None else e for run, e in memory.epsilons.items()}
    p_values = {key: found.p_value for key, found in memory.evidence.items()}
    rate = burn_rate(memory.spending)
    budget = {} if rate is None else {"": rate.share}
    days = {} if rate is None else {"": rate.days_left}
    parts: list[tuple[str, str, dict[str, float]]] = [
        ("last_look_seconds", "Time of the last look.", {"": _seconds(memory.last_look)}),
        ("intact", "Whether the chain goes on as last seen.", {"": float(look.tampered is None)}),
        ("alarms_open", "Alarms not acknowledged.", {"": float(len(memory.open_alarms))}),
        ("rows", "Rows of the ledger.", {"": float(memory.rows)}),
        ("runs_audited", "Runs audited so far.", {"": float(len(memory.audited))}),
        ("runs_waiting", "Runs left for the next look.", {"": float(look.waiting)}),
        ("budget_share", "Share of the budget that is spent.", budget),
        ("budget_days_left", "Until the budget is gone at the rate of the last week.", days),
        ("epsilon", "Upper bound on epsilon of a run.", _labelled("run", epsilons)),
        ("p_value", "Of a configuration's guarantee.", _labelled("configuration", p_values)),
    ]
    lines: list[str] = []
    for name, words, values in parts:
        lines += [f"# HELP dpledger_watch_{name} {words}", f"# TYPE dpledger_watch_{name} gauge"]
        lines += [f"dpledger_watch_{name}{label} {_number(v)}" for label, v in values.items()]
    return ("\n".join(lines) + "\n").encode()


def _seconds(time: str) -> float:
    """Return a time in seconds since 1970."""
    return datetime.fromisoformat(time).timestamp()


def _labelled(name: str, values: dict[str, float]) -> dict[str, float]:
    """Return values under Prometheus labels of one name."""

    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return {f'{{{name}="{quoted(key)}"}}': value for key, value in values.items()}


def _number(value: float) -> str:
    """Return a number as Prometheus writes it, infinities included."""
    return "+Inf" if value == inf else repr(value)
