"""`dpledger watch` through hours of faults: is an alarm ever lost?

Usage: python benchmarks/watching.py [--minutes 120] [--seed 1]

A process writes runs into a ledger; about one in four is faulty: it left its plan, released without
noise, or its canaries show ten times what was promised. A watcher with a signed memory looks every
second and hands its alarms to a command. Every ten seconds or so something befalls it:

- killed (SIGKILL) and started again, or stopped for a while (SIGSTOP);
- a disk that is full: no file may grow, the command's included, until it is started again;
- the command fails, or the ledger is locked by another process;
- the place of its metrics is taken by a folder;
- somebody acknowledges an open alarm.

At the end all faults are taken away and the watcher may finish. Lost is a faulty run that the
command has not heard of or memory does not hold, false an alarm about a run that kept its word,
back an acknowledged alarm that is open again. The exit status is 1 if there is any. An alarm heard
twice is no fault: it is delivered before it is remembered.
"""

import argparse
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from dpledger.accounting.ledger import SqliteLedger
from dpledger.audits.watching import Memory, acknowledge
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    UnprotectedRelease,
    declared,
)

MU = 0.5
"""Of an honest run: epsilon of about 2 at delta = 1e-5."""

FULL = 512
"""Bytes that a file may have on the full disk: memory is longer after the first look."""


def step(noise_std: float) -> Event:
    """Return one Gaussian step of a sum of sensitivity 1."""
    moved = declared(1, "a benchmark", adjacency=Adjacency.ADD_REMOVE_ONE)
    return Event(GaussianStep(moved, noise_std), Context((), 1, "sum", Audience.SERVER))


@dataclass(eq=False, slots=True)
class World:
    """A ledger, its watcher, and what was done to them."""

    folder: Path
    generator: np.random.Generator
    planted: dict[str, float] = field(default_factory=dict)
    honest: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    acknowledged: set[str] = field(default_factory=set)
    watcher: subprocess.Popen[bytes] | None = None

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def memory(self) -> Path:
        return self.folder / "memory.json"

    @property
    def key(self) -> bytes:
        return (self.folder / "key").read_bytes()

    def start(self, *, full_disk: bool = False) -> None:
        """Start the watcher, on a disk that is full or not."""
        hear = f"sh -c 'test ! -e {self.folder}/deaf && cat >> {self.folder}/heard.json'"
        options = {
            "--every": "1",
            "--memory": str(self.memory),
            "--key": str(self.folder / "key"),
            "--metrics": str(self.folder / "metrics.prom"),
            "--canaries": str(self.folder / "canaries"),
            "--alarm": hear,
        }
        command = [sys.executable, "-m", "dpledger", "watch", str(self.ledger)]
        with (self.folder / "watch.log").open("ab") as log:
            self.watcher = subprocess.Popen(
                command + [part for option in options.items() for part in option],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL if full_disk else log,
                preexec_fn=_fill_the_disk if full_disk else None,
            )

    def stop(self) -> None:
        """Kill the watcher as it stands."""
        assert self.watcher is not None
        self.watcher.kill()
        self.watcher.wait()

    def run_once(self) -> None:
        """Write one run into the ledger, honest or not."""
        name = f"run-{len(self.planted) + len(self.honest):05d}"
        kind = self.generator.choice(
            ["honest", "canaries", "left its plan", "unprotected", "loud canaries"],
            p=[0.55, 0.2, 0.09, 0.08, 0.08],
        )
        event = step(1 / MU)
        if kind == "unprotected":
            event = Event(UnprotectedRelease("planted"), event.context)
        plan = [step(3 / MU)] if kind == "left its plan" else [event]
        with (
            SqliteLedger(self.ledger) as ledger,
            ledger.run(name, configuration_hash="0" * 64, plan=plan) as run,
        ):
            run.step(event)
        if "canaries" in kind:
            self._plant(name, 10 * MU if kind == "loud canaries" else MU)
        if kind in ("honest", "canaries"):
            self.honest.add(name)
        else:
            self.planted[name] = time.time()
        self.done[f"runs: {kind}"] += 1

    def _plant(self, name: str, mu: float) -> None:
        included = self.generator.random(1000) < 0.5
        scores = self.generator.normal(size=1000) + mu * included
        whole = self.folder / f"{name}.part.npz"
        np.savez(whole, scores=scores, included=included)
        whole.replace(self.folder / "canaries" / f"{name}.npz")

    def kill(self) -> None:
        """The watcher dies and is started again."""
        self.stop()
        time.sleep(self.generator.uniform(0, 3))
        self.start()

    def freeze(self) -> None:
        """The watcher stands still."""
        assert self.watcher is not None
        self.watcher.send_signal(signal.SIGSTOP)
        time.sleep(self.generator.uniform(1, 8))
        self.watcher.send_signal(signal.SIGCONT)

    def fill(self) -> None:
        """No file may grow, from a start on."""
        self.stop()
        self.start(full_disk=True)
        time.sleep(self.generator.uniform(5, 12))
        self.kill()

    def deafen(self) -> None:
        """Nobody takes alarms."""
        (self.folder / "deaf").touch()
        time.sleep(self.generator.uniform(2, 10))
        (self.folder / "deaf").unlink()

    def lock(self) -> None:
        """Another process holds the ledger."""
        connection = sqlite3.connect(self.ledger, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(self.generator.uniform(2, 10))
        connection.execute("ROLLBACK")
        connection.close()

    def obstruct(self) -> None:
        """A folder stands where the metrics belong."""
        metrics = self.folder / "metrics.prom"
        metrics.unlink(missing_ok=True)
        with suppress(FileExistsError):  # the watcher was faster: then there is nothing in its way
            metrics.mkdir()
            time.sleep(self.generator.uniform(2, 6))
            metrics.rmdir()

    def acknowledge(self) -> None:
        """Somebody acknowledges an open alarm."""
        alarms = [alarm.identifier for alarm in self.remembered().open_alarms]
        if alarms:
            chosen = str(self.generator.choice(alarms))
            with suppress(InvalidParameter):
                acknowledge(self.memory, [chosen], key=self.key)
                self.acknowledged.add(chosen)

    def remembered(self) -> Memory:
        """Return the watcher's memory, without a look at its signature."""
        return msgspec.json.decode(self.memory.read_bytes().partition(b"\n")[2], type=Memory)

    def heard(self) -> list[dict[str, str]]:
        """Return the alarms that the command took, in order, those that came again included."""
        text = (self.folder / "heard.json").read_text(encoding="utf-8")
        decoder, place, alarms = json.JSONDecoder(), 0, list[dict[str, str]]()
        while place < len(text):
            document, place = decoder.raw_decode(text, place)
            alarms += document["alarms"]
        return alarms


def _fill_the_disk() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, FULL))


def main(arguments: list[str]) -> int:
    """Print what was done and what was lost."""
    parser = argparse.ArgumentParser(description="A watcher through hours of faults.")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name), np.random.default_rng(asked.seed))
        (world.folder / "key").write_bytes(os.urandom(32))
        (world.folder / "canaries").mkdir()
        world.run_once()
        world.start()
        befall(world, time.time() + 60 * asked.minutes)
        return report(world)


def befall(world: World, end: float) -> None:
    """Write runs and let faults come until the end, then wait until the watcher has seen all."""
    faults: list[Callable[[], None]] = [
        world.kill,
        world.freeze,
        world.fill,
        world.deafen,
        world.lock,
        world.obstruct,
        world.acknowledge,
        world.acknowledge,
    ]
    while time.time() < end:
        for _ in range(int(world.generator.integers(1, 4))):
            world.run_once()
            time.sleep(world.generator.uniform(0, 3))
        fault = faults[int(world.generator.integers(len(faults)))]
        fault()
        world.done[f"faults: {fault.__name__}"] += 1
    names = world.honest | world.planted.keys()
    patience = time.time() + 300
    while time.time() < patience and not names <= world.remembered().audited.keys():
        time.sleep(1)
    time.sleep(10)
    world.stop()


def report(world: World) -> int:
    """Print and judge."""
    heard, memory = world.heard(), world.remembered()
    first: dict[str, str] = {}
    for alarm in heard:
        first.setdefault(alarm["run"], alarm["since"])
    kept = {alarm.run for alarm in memory.alarms}
    lost = [run for run in world.planted if run not in first or run not in kept]
    false = sorted((first.keys() | kept) - world.planted.keys())
    open_again = world.acknowledged & {alarm.identifier for alarm in memory.open_alarms}
    for what, count in sorted(world.done.items()):
        print(f"{what}: {count}")
    again = len(heard) - len({alarm["identifier"] for alarm in heard})
    print(f"alarms heard: {len(heard)}, of which again: {again}")
    print(f"acknowledged: {len(world.acknowledged)}; back: {len(open_again)}")
    print(f"faulty runs: {len(world.planted)}; lost: {len(lost)}; false: {len(false)} {false[:5]}")
    waited = [
        max(0.0, datetime.fromisoformat(since).timestamp() - world.planted[run])
        for run, since in first.items()
        if run in world.planted
    ]
    print(f"seconds from the run to the look that told: {median(waited):.0f}, {max(waited):.0f}")
    return int(bool(lost or false or open_again))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
