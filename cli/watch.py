"""`dpledger watch`: audit a ledger's runs as they come; `dpledger watch ack` answers an alarm."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from ..audits.continuous import RunAudit
from ..audits.crosschecks import Crosscheck
from ..audits.sequential import Evidence
from ..audits.watching import (
    Alarm,
    Look,
    Memory,
    Watcher,
    acknowledged,
    metrics,
    read_memory,
    write_whole,
)
from ..mechanisms.errors import DpledgerError
from ..runs.configuration import read_configuration
from ..runs.repeats import RepeatedRuns
from .output import Outcome, deliver, json_option, shown, shown_up

__all__ = ["watch"]

_PATIENCE = 60.0
_TESTS = (
    "the ledger's chain, each run's epsilon, plan and seeds, other libraries' answers; with "
    "--config, the installed code: runs repeated on neighbouring data, and their noise against "
    "what their events state"
)
_TESTS_NOT = (
    "the production run itself: its data, its machine, what its noise was; nor what left it "
    "without an entry in the ledger"
)


class _Watch(click.Command):
    """`watch`, whose `ack` is a command of its own; a ledger of that name is `./ack`."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context of the command that will answer."""
        if args[:1] == ["ack"]:
            return ack.make_context(f"{info_name} ack", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


_memory_option = click.option(
    "--memory",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for what was audited and found; LEDGER.watch.json by default. Whoever can rewrite "
    "the ledger should not be able to rewrite this.",
)


@click.command(cls=_Watch, short_help="Audit a ledger's runs as they come; alarms stay.")
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
    help="Repeat and attack the runs of this configuration, whatever their seeds; may be given "
    "several times.",
)
@click.option("--trials", type=click.IntRange(1), default=200, show_default=True, help="A run.")
@click.option("--confidence", type=float, default=0.99, show_default=True)
@click.option("--delta", type=float, default=1e-5, show_default=True, help="In (0, 1).")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Keep watching, whatever is found; without it, audit what is new and end.",
)
@click.option(
    "--most-runs",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Audited in one look; the others wait for the next.",
)
@_memory_option
@click.option(
    "--metrics",
    "metrics_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a Prometheus text file after each look; its time of the last look is a heartbeat.",
)
@click.option(
    "--alarm",
    metavar="COMMAND",
    help="Run this for new alarms, which it reads as JSON from its standard input. If it fails, "
    "they come again.",
)
@json_option
def watch(
    ledger_path: Path,
    configurations: Sequence[Path],
    trials: int,
    confidence: float,
    delta: float,
    every: float | None,
    most_runs: int,
    memory: Path | None,
    metrics_path: Path | None,
    alarm: str | None,
    as_json: bool,
) -> None:
    """Audit what is new in LEDGER: chain, epsilon, plan, cross-check, and a sequential test.

    The test repeats runs of the given configurations on neighbouring data, TRIALS pairs for each
    new run, and adds to the evidence of earlier ones. An alarm stays open, and the exit status 1,
    until `dpledger watch ack LEDGER`. Alarms are told before they are remembered: what could not be
    told comes again.

    \b
    dpledger watch ledger.sqlite --config run.toml --every 60 --alarm "mail -s alarm me"
    dpledger watch ack ledger.sqlite
    """
    repeats = [
        RepeatedRuns(read_configuration(path), trials, confidence) for path in configurations
    ]
    kept_at = _memory_path(ledger_path, memory)
    watcher = _Watching(
        Watcher(ledger_path, kept_at, repeats, delta, most_runs),
        read_memory(kept_at),
        metrics_path,
        alarm,
        as_json,
    )
    while True:
        try:
            look = watcher.step(quiet=every is not None)
        except (OSError, DpledgerError) as error:
            if every is None:
                raise
            click.echo(f"This look failed and will be repeated: {error}", err=True)
        else:
            if every is None:
                sys.exit(1 if look.is_finding else 0)
        time.sleep(every)


@click.command()
@click.argument(
    "ledger_path",
    metavar="LEDGER",
    type=click.Path(dir_okay=False, path_type=Path),
)
@click.argument("identifiers", metavar="[ALARM]...", nargs=-1)
@_memory_option
@json_option
def ack(ledger_path: Path, identifiers: Sequence[str], memory: Path | None, as_json: bool) -> None:
    """Acknowledge open alarms of LEDGER, all of them or those named; they are kept as known."""
    path = _memory_path(ledger_path, memory)
    after, chosen = acknowledged(read_memory(path), identifiers)
    write_whole(path, msgspec.json.format(msgspec.json.encode(after)))
    left = len(after.open_alarms)
    deliver(
        Outcome(
            f"{len(chosen)} alarms acknowledged, {left} open",
            {"acknowledged": [msgspec.to_builtins(each) for each in chosen], "open": left},
            tuple((each.identifier, f"{each.run}: {each.text}") for each in chosen),
        ),
        as_json=as_json,
    )


def _memory_path(ledger: Path, memory: Path | None) -> Path:
    return memory or ledger.with_name(ledger.name + ".watch.json")


class AlarmFailed(DpledgerError, RuntimeError):
    """The command that takes alarms did not: they are not remembered, and come again."""


@dataclass(eq=False, slots=True)
class _Watching:
    """One look after the other: tell, then remember."""

    watcher: Watcher
    memory: Memory
    metrics_path: Path | None
    alarm: str | None
    as_json: bool

    def step(self, *, quiet: bool) -> Look:
        """Look once. What raises before memory is kept is found again by the next look."""
        look = self.watcher.look(self.memory)
        if look.audits or look.told or look.tampered or not quiet:
            outcome = _outcome(self.watcher.path, look)
            deliver(replace(outcome, finding=False), as_json=self.as_json)
            sys.stdout.flush()
        if self.alarm is not None and look.told:
            _call(self.alarm, look.told)
        self.memory = look.memory
        self.watcher.keep(look)
        if self.metrics_path is not None:
            write_whole(self.metrics_path, metrics(look))
        return look


def _call(command: str, alarms: Sequence[Alarm]) -> None:
    """Hand alarms to a command; raise `AlarmFailed` if it fails."""
    document = json.dumps({"alarms": [msgspec.to_builtins(alarm) for alarm in alarms]})
    try:
        subprocess.run(shlex.split(command), input=document.encode(), check=True, timeout=_PATIENCE)
    except (subprocess.SubprocessError, ValueError) as error:
        raise AlarmFailed(f"{command!r}: Expected a command that takes alarms; {error}") from error


# --- what is printed -----------------------------------------------------------------------------


def _outcome(path: Path, look: Look) -> Outcome:
    rows: list[tuple[str, str]] = []
    for audit in look.audits:
        told = (
            f"epsilon {shown(audit.epsilon)} at delta {shown_up(float(audit.delta))}, {audit.grade}"
        )
        rows += [(audit.run, told), ("", _checked(audit)), ("", _tested(audit.evidence))]
        rows += [("note", text) for text in audit.remarks]
    if look.tampered is not None:
        rows.append(("TAMPERED", look.tampered))
    rows += [
        (f"WRONG {a.identifier}", f"{a.run}: {a.text} (since {a.since})")
        for a in look.memory.open_alarms
    ]
    if look.waiting:
        rows.append(("waiting", f"{look.waiting} runs, for the next look"))
    rows += [("tested", _TESTS), ("not tested", _TESTS_NOT)]
    alarms = look.memory.open_alarms
    return Outcome(
        title=f"Ledger {path.name}: {len(look.audits) or 'no'} new runs, {len(alarms)} open alarms",
        data={
            "intact": look.tampered is None,
            "difference": look.tampered,
            "runs": [_data(audit) for audit in look.audits],
            "waiting": look.waiting,
            "alarms": [msgspec.to_builtins(alarm) for alarm in alarms],
            "tested": _TESTS,
            "not_tested": _TESTS_NOT,
        },
        rows=tuple(rows),
        finding=look.is_finding,
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
