"""`dpledger watch`: audit a ledger's runs as they come; `dpledger watch ack` answers an alarm.

Asks for a ledger, and with --config for configurations whose data are at hand: their runs are
repeated on neighbouring data, and the evidence of every look adds up in one sequential test, so
that looking often costs no false alarms. With --canaries, canaries that were planted in production
runs are audited, each once. A memory file keeps what was audited and what was found.

Prints each new run with its epsilon, and every open alarm; with --every it goes on, and prints news
only. --metrics writes a file for Prometheus, --alarm hands new alarms to a command.

Exit status 0 if nothing is open, 1 while an alarm is, 2 if the look failed; with --every a failed
look is repeated, and the command ends when it is interrupted. `watch ack` exits with 0, or 2 for an
alarm that is not open.

With --json each look is one object: the runs, the open alarms, whether the ledger is intact, what
was tested and what no look can test.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from ..audits.outcome import Outcome
from ..audits.outcomes.watching import acknowledged_outcome, look_outcome
from ..audits.planted import PlantedCanaries
from ..audits.watching import Look, Watcher, acknowledge, call_alarm, require_pause
from ..federation.channel import read_token
from ..mechanisms.errors import DpledgerError
from ..runs import read_configuration
from ..runs.repeats import RepeatedRuns
from .inputs import FILE, NEW_FILE, Redirected
from .output import answers, json_option, show

_memory_option = click.option(
    "--memory",
    type=NEW_FILE,
    help="File for what was audited and found; LEDGER.watch.json by default. Whoever can rewrite "
    "the ledger should not be able to rewrite this.",
)
"""Where a watcher keeps what it knows; apart from the ledger, or one hand could rewrite both."""

_key_option = click.option(
    "--key",
    type=FILE,
    help="Sign the memory with the key in this file, 32 bytes or more, and believe no other.",
)
"""Of an HMAC: without it whoever writes the memory's file can make alarms forgotten."""


@click.command()
@click.argument("ledger_path", metavar="LEDGER", type=NEW_FILE)
@click.argument("identifiers", metavar="[ALARM]...", nargs=-1)
@_memory_option
@_key_option
@answers
def ack(
    ledger_path: Path, identifiers: Sequence[str], memory: Path | None, key: Path | None
) -> Outcome:
    """Acknowledge open alarms of LEDGER, all of them or those named; they are kept as known."""
    chosen, left = acknowledge(memory or _memory_of(ledger_path), identifiers, key=_key_in(key))
    return acknowledged_outcome(chosen, left)


# a ledger of the name `ack` is `./ack`
@click.command(
    cls=Redirected.to(ack, "ack", first=True),
    short_help="Audit a ledger's runs as they come; alarms stay.",
)
@click.argument("ledger_path", metavar="LEDGER", type=FILE)
@click.option(
    "--config",
    "configurations",
    multiple=True,
    metavar="CONFIG",
    type=FILE,
    help="Repeat and attack the runs of this configuration, whatever their seeds; may be given "
    "several times.",
)
@click.option("--trials", type=click.IntRange(1), default=200, help="A run.")
@click.option("--confidence", type=float, default=0.99)
@click.option("--delta", type=float, default=1e-5, help="In (0, 1).")
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
    help="Audited in one look; the others wait for the next.",
)
@_memory_option
@_key_option
@click.option(
    "--metrics",
    type=NEW_FILE,
    help="Write a Prometheus text file after each look; its time of the last look is a heartbeat.",
)
@click.option(
    "--alarm",
    metavar="COMMAND",
    help="Run this for new alarms, which it reads as JSON from its standard input. If it fails, "
    "they come again.",
)
@click.option(
    "--days-left",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Alarm when the budget is gone within so many days at the rate of the last week.",
)
@click.option(
    "--canaries",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of canaries that were planted in production runs: RUN.npz with scores (larger if "
    "one looks in) and included (by fair coins). Each is audited once, as one run.",
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
    key: Path | None,
    metrics: Path | None,
    alarm: str | None,
    days_left: float | None,
    canaries: Path | None,
    as_json: bool,
) -> None:
    """Audit what is new in LEDGER: chain, epsilon, plan, cross-check, and a sequential test.

    The test repeats runs of the given configurations on neighbouring data, TRIALS pairs for each
    new run, and adds to the evidence of earlier ones. An alarm stays open, and the exit status 1,
    until `dpledger watch ack LEDGER`. Alarms are delivered before they are remembered: what could
    not be delivered comes again.

    \b
    dpledger watch ledger.sqlite --config run.toml --every 60 --alarm "mail -s alarm me"
    dpledger watch ack ledger.sqlite
    """
    require_pause(every)
    repeats = [
        RepeatedRuns(read_configuration(path), trials, confidence) for path in configurations
    ]
    kept_at = memory or _memory_of(ledger_path)
    planted = None if canaries is None else PlantedCanaries(canaries, confidence, delta)
    watcher = Watcher(
        ledger_path, kept_at, repeats, delta, most_runs, metrics, _key_in(key), days_left, planted
    )

    # print first, then call the command: what it could not take is not remembered, and comes again
    def tell(look: Look) -> None:
        # a watcher that runs on is silent while nothing happens
        if every is None or look.is_news:
            show(look_outcome(ledger_path.name, look), as_json=as_json)
            sys.stdout.flush()
        if alarm is not None and look.new:
            call_alarm(alarm, look.new)

    while True:
        try:
            look = watcher.step(tell)
        # a full disk or a locked file passes; whoever asked for one look is told at once
        except (OSError, DpledgerError) as error:
            if every is None:
                raise
            click.echo(f"This look failed and will be repeated: {error}", err=True)
        else:
            if every is None:
                sys.exit(1 if look.is_finding else 0)
        time.sleep(every)


def _memory_of(ledger: Path) -> Path:
    """Return the memory file beside a ledger."""
    return ledger.with_name(ledger.name + ".watch.json")


def _key_in(path: Path | None) -> bytes | None:
    """Return the key in a file, None without one."""
    return None if path is None else read_token(path)
