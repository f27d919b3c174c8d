"""`dpledger watch`: audit a ledger's runs as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from ..accounting.ledger import SqliteLedger, TamperedLedger
from ..audits.continuous import MoreEvidence, RunAudit, audit_run
from ..audits.crosscheck import Crosscheck
from ..audits.sequential import Evidence
from ..data.strict import ConfigurationError
from ..runs.attack import more_evidence
from ..runs.configuration import read_configuration
from .output import Outcome, deliver, json_option, shown, shown_up

__all__ = ["watch"]


class _Memory(msgspec.Struct):
    """What a watcher knows from before: run -> number of events; configuration -> evidence.

    `rows` and `head` are the ledger's as it was last seen: rows that vanish are noticed.
    """

    rows: int = 0
    head: str = ""
    audited: dict[str, int] = {}
    evidence: dict[str, Evidence] = {}


@click.command()
@click.argument(
    "ledger_path",
    metavar="LEDGER",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--config",
    "configurations",
    multiple=True,
    metavar="CONFIG",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Repeat and attack the runs of this configuration; may be given several times.",
)
@click.option("--trials", type=click.IntRange(1), default=200, show_default=True, help="A run.")
@click.option("--confidence", type=float, default=0.99, show_default=True)
@click.option("--delta", type=float, default=1e-5, show_default=True, help="In (0, 1).")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Keep watching; without it, audit what is new and end.",
)
@click.option(
    "--memory",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for what was audited and the evidence so far; LEDGER.watch.json by default.",
)
@json_option
def watch(
    ledger_path: Path,
    configurations: Sequence[Path],
    trials: int,
    confidence: float,
    delta: float,
    every: float | None,
    memory: Path | None,
    as_json: bool,
) -> None:
    """Audit what is new in LEDGER: chain, epsilon, plan, cross-check, and a sequential test.

    The test repeats runs of the given configurations on neighbouring data, TRIALS pairs for each
    new run, and adds to the evidence of earlier ones. Exit status 1 as soon as something is wrong.
    """
    repeated = {
        each.sha256: partial(more_evidence, each, trials=trials, confidence=confidence)
        for each in map(read_configuration, configurations)
    }
    watcher = _Watcher(
        ledger_path,
        memory or ledger_path.with_name(ledger_path.name + ".watch.json"),
        repeated,
        delta,
    )
    while True:
        try:
            outcome = _outcome(ledger_path, watcher.look())
        except TamperedLedger as error:
            outcome = _tampered(ledger_path, error)
        if outcome.rows or every is None:
            deliver(outcome, as_json=as_json)
        if every is None:
            return
        time.sleep(every)


@dataclass(eq=False, slots=True)
class _Watcher:
    path: Path
    memory_path: Path
    repeated: Mapping[str, Callable[[], MoreEvidence | None]]
    delta: float
    memory: _Memory = field(init=False)

    def __post_init__(self) -> None:
        try:
            self.memory = msgspec.json.decode(self.memory_path.read_bytes(), type=_Memory)
        except FileNotFoundError:
            self.memory = _Memory()
        except msgspec.MsgspecError as error:
            raise ConfigurationError(
                f"{self.memory_path}: Expected what a watcher remembered: {error}"
            ) from error

    def look(self) -> list[RunAudit]:
        """Return audits of the runs that are new or have grown."""
        found: list[RunAudit] = []
        with SqliteLedger(self.path, read_only=True) as ledger:
            self._verify(ledger)
            for summary in ledger.runs():
                if self.memory.audited.get(summary.run) == summary.events or not summary.events:
                    continue
                name = summary.configuration_hash
                repeated = self.repeated.get(name)
                audit = audit_run(
                    ledger,
                    summary,
                    delta=self.delta,
                    evidence=self.memory.evidence.get(name),
                    more=None if repeated is None else repeated(),
                )
                if audit.evidence is not None:
                    self.memory.evidence[name] = audit.evidence
                self.memory.audited[summary.run] = summary.events
                found.append(audit)
        self.memory_path.write_bytes(msgspec.json.encode(self.memory))
        return found

    def _verify(self, ledger: SqliteLedger) -> None:
        """Recompute the chain; it must go on from where it was last seen."""
        found, memory = ledger.verify(), self.memory
        if found.rows < memory.rows:
            raise TamperedLedger("Number of rows", f"at least {memory.rows}", found.rows)
        if memory.rows:
            # a chain that was made anew is consistent in itself, and may be longer
            seen = next(row for row in ledger.rows() if row.sequence == memory.rows)
            if seen.hash != memory.head:
                raise TamperedLedger(f"Hash of row {memory.rows}", memory.head, seen.hash)
        memory.rows, memory.head = found.rows, found.head


def _outcome(path: Path, audits: Sequence[RunAudit]) -> Outcome:
    rows: list[tuple[str, str]] = []
    for audit in audits:
        told = (
            f"epsilon {shown(audit.epsilon)} at delta {shown_up(float(audit.delta))}, {audit.grade}"
        )
        rows += [(audit.run, told), ("", _checked(audit)), ("", _tested(audit.evidence))]
        rows += [("WRONG", text) for text in audit.findings]
        rows += [("note", text) for text in audit.remarks]
    return Outcome(
        title=f"Ledger {path.name}: {len(audits) or 'no'} new runs",
        data={"intact": True, "runs": [_data(audit) for audit in audits]},
        rows=tuple(rows),
        finding=any(audit.findings for audit in audits),
    )


def _tampered(path: Path, error: TamperedLedger) -> Outcome:
    return Outcome(
        title=f"Ledger {path.name}",
        data={"intact": False, "difference": str(error), "runs": []},
        rows=(("TAMPERED", str(error)),),
        finding=True,
    )


def _checked(audit: RunAudit) -> str:
    found = audit.crosscheck
    if isinstance(found, str):
        return f"cross-check skipped: {found}"
    return "cross-check agrees" if found.agrees else "cross-check: see findings"


def _tested(evidence: Evidence | None) -> str:
    if evidence is None:
        return "not repeated: no configuration was given for it"
    return f"sequential test: {evidence.pairs} pairs of runs so far, p-value {evidence.p_value:.3g}"


def _data(audit: RunAudit) -> dict[str, Any]:
    checked, evidence = audit.crosscheck, audit.evidence
    return {
        "run": audit.run,
        "epsilon": audit.epsilon,
        "delta": float(audit.delta),
        "grade": audit.grade,
        "crosscheck_agrees": checked.agrees if isinstance(checked, Crosscheck) else None,
        "pairs": None if evidence is None else evidence.pairs,
        "p_value": None if evidence is None else evidence.p_value,
        "refuted_after": None if evidence is None else evidence.refuted_after,
        "findings": list(audit.findings),
        "remarks": list(audit.remarks),
    }
