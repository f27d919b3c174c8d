"""Random faults in real processes: `python fault_schedules.py FOLDER SEED...`, a JSON line each.

`every-point` in place of a seed kills a party and the coordinator at every point of a round.

A schedule is a federation of four parties, a coordinator and a network between them, each a process
of its own, and what goes wrong: processes that are killed (SIGKILL) at named points and started
again, and frames that the network drops, repeats, swaps, cuts short, changes, or never delivers.
Whatever a party hands to the network is logged before; the line says what the logs, journals and
ledgers show when all is over. Even seeds draw seeded noise, so that the outcome has to be that of
one process, bit for bit; odd ones draw from the operating system, so that noise drawn twice shows.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.federation.federations import NAMES, one_process, party_in, plan_of

from dpledger.accounting.ledger import Run as LedgerRun
from dpledger.accounting.ledger import SqliteLedger
from dpledger.federation import Coordinator, FederationEnded, Journal, SocketLink, serve, take_part
from dpledger.federation import coordinator as coordinating
from dpledger.federation import party as taking_part
from dpledger.federation.channel import Channel, ChannelBroken
from dpledger.federation.journal import RecordedCurator
from dpledger.federation.plan import StepKind
from dpledger.federation.prepaid import PrepaidRun
from dpledger.federation.protocol import Ask, Request
from dpledger.mechanisms import EventList, SamplingCurator, SystemSampler
from dpledger.mechanisms.protocols import FloatArray
from dpledger.solvers import ConsensusDpAdmm

TOKEN, ROUNDS, PATIENCE, RESEND = b"t" * 32, 20, 60.0, 0.25
SOLVER = ConsensusDpAdmm(ROUNDS, 2.0, 4.0, momentum=0.5)
PARTY_POINTS = ("paid", "drawn", "recorded", "committed", "sent", "answered", "noted")
COORDINATOR_POINTS = ("asked", "before the result is kept", "result kept")
NETWORK_FAULTS = ("drop", "repeat", "swap", "cut", "change", "close")


@dataclass
class Schedule:
    """What goes wrong: (process, point, how many times it passes before) and frames by number."""

    seed: int
    kills: list[tuple[str, str, int]] = field(default_factory=list)
    frames: dict[int, str] = field(default_factory=dict)

    @classmethod
    def every_point(cls) -> Schedule:
        """Return the one in which a party and the coordinator die at every point, in turn."""
        party = [("north", point, point != "paid") for point in PARTY_POINTS]
        return cls(1, [*party, *(("coordinator", point, 1) for point in COORDINATOR_POINTS)])

    @classmethod
    def drawn(cls, seed: int) -> Schedule:
        rng, made = random.Random(seed), cls(seed)
        for _ in range(rng.randint(1, 4)):
            who = rng.choice([*NAMES, "coordinator"])
            points = COORDINATOR_POINTS if who == "coordinator" else PARTY_POINTS
            point = rng.choice(points)
            passes = 0 if point == "paid" else rng.randrange(ROUNDS)
            made.kills.append((who, point, passes))
        for _ in range(rng.randint(0, 5)):
            made.frames[rng.randrange(4 * 2 * ROUNDS)] = rng.choice(NETWORK_FAULTS)
        return made


# --- processes ---------------------------------------------------------------------------------


class Death:
    """Kills this process at the points of its schedule, each once in all of its lives."""

    def __init__(self, folder: Path, who: str, kills: list[tuple[str, str, int]]) -> None:
        self.left = {
            (point, n): folder / f"killed {who} {point} {n}"
            for name, point, n in kills
            if name == who
        }
        self.passed: dict[str, int] = {}

    def at(self, point: str) -> None:
        n = self.passed.get(point, 0)
        self.passed[point] = n + 1
        mark = self.left.get((point, n))
        if mark is not None and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def around(
    owner: Any, name: str, *, before: Callable[..., None] | None = None,
    after: Callable[..., None] | None = None,
) -> None:  # fmt: skip
    """Call something before and after each call of a function of the production code."""
    original = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before(*args, **kwargs)
        result = original(*args, **kwargs)
        if after is not None:
            after(*args, **kwargs)
        return result

    setattr(owner, name, wrapped)


def as_party(folder: Path, number: int, port: int, schedule: Schedule) -> None:
    name = NAMES[number]
    death = Death(folder, name, schedule.kills)
    if seen_short(folder, name):
        (folder / f"under {name}").touch()
    log = os.open(folder / f"left {name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def leaves(channel: Channel, content: bytes) -> None:
        with suppress(msgspec.MsgspecError):
            request: Any = msgspec.msgpack.decode(content, type=Request)
            if isinstance(request, Ask):
                os.write(log, f"{request.step} {request.part.hex()}\n".encode())

    def kept(journal: Journal, run: str, kind: str, *_: object) -> None:
        death.at({"message": "recorded", "result": "noted"}.get(kind, kind))

    if os.environ.get("MUTANT") == "redraws":
        redraw_after_a_crash()
    around(LedgerRun, "reserve", after=lambda *_: death.at("paid"))
    around(LedgerRun, "commit", after=lambda *_, **__: death.at("committed"))
    around(taking_part.PartyCurator, "_keep", before=lambda *_: death.at("drawn"))
    around(Journal, "keep", after=kept)
    around(Channel, "send", before=leaves, after=lambda *_: death.at("sent"))
    around(SocketLink, "send", after=lambda *_, **__: noted(folder, name, "answered"))
    around(SocketLink, "send", after=lambda *_, **__: death.at("answered"))
    sampler = SystemSampler() if schedule.seed % 2 else None
    link = SocketLink(("127.0.0.1", port), TOKEN, patience=PATIENCE, resend=RESEND)
    try:
        found = take_part(party_in(folder, number, sampler=sampler), plan_of(SOLVER), link)
        outcome = {"model": found.state.model.tobytes().hex()}
    except FederationEnded as error:
        outcome = {"ended": str(error)}
    (folder / f"outcome {name}").write_text(json.dumps(outcome))


def redraw_after_a_crash() -> None:
    """Make this party what none may be: one that draws fresh noise for a message that had left."""
    get = Journal.get

    def forgetful(journal: Journal, run: str, kind: str, number: int) -> bytes | None:
        return None if kind == "message" else get(journal, run, kind, number)

    def anew(journal: Journal, run: str, kind: str, number: int, content: bytes) -> None:
        journal._connection.execute(
            "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", (run, kind, number, content)
        )

    commit = PrepaidRun.commit

    def unheard(paid: PrepaidRun, token: int, message: FloatArray, /) -> None:
        if not paid.has_left(token):
            commit(paid, token, message)

    Journal.get, Journal.keep = forgetful, anew  # type: ignore[method-assign]
    PrepaidRun.reserve = PrepaidRun.repeat  # type: ignore[method-assign]
    PrepaidRun.commit = unheard  # type: ignore[method-assign]
    RecordedCurator._deliver = SamplingCurator._deliver  # type: ignore[method-assign]


def noted(folder: Path, name: str, what: str) -> None:
    with (folder / f"times {name}").open("a") as file:
        file.write(f"{what} {time.time()}\n")


def longest_recovery(folder: Path) -> float:
    """Return the most seconds from a party's death to the first answer that it got again."""
    longest = 0.0
    for name in NAMES:
        killed: float | None = None
        for line in (folder / f"times {name}").read_text().splitlines():
            what, at = line.split()
            if what == "killed":
                killed = float(at)
            elif killed is not None:
                longest, killed = max(longest, float(at) - killed), None
    return round(longest, 2)


def seen_short(folder: Path, name: str) -> bool:
    """Return whether a party's ledger says less than what has left it."""
    log, ledger = folder / f"left {name}", folder / name / "ledger.sqlite"
    if not log.exists():
        return False
    steps = {int(line.partition(" ")[0]) for line in log.read_text().splitlines()}
    sent = sum(plan_of(SOLVER).steps[k].kind is StepKind.MEAN for k in steps)
    if not ledger.exists():
        return sent > 0
    with SqliteLedger(ledger, read_only=True) as opened:
        opened.verify()
        return len(opened.messages()) < sent


def as_coordinator(folder: Path, port: int, schedule: Schedule) -> None:
    death = Death(folder, "coordinator", schedule.kills)

    def kept(before: bool) -> Callable[..., None]:
        def point(journal: Journal, run: str, kind: str, *_: object) -> None:
            if kind == "result":
                death.at("before the result is kept" if before else "result kept")

        return point

    around(coordinating.Coordinator, "reply", before=lambda *_: death.at("asked"))
    around(Journal, "keep", before=kept(True), after=kept(False))
    with Journal(folder / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan_of(SOLVER), journal, patience=PATIENCE)
        with serve(coordinator, ("127.0.0.1", port), TOKEN):
            coordinator.wait()
        (folder / "outcome coordinator").write_text(json.dumps({"ended": coordinator.ended}))


def as_network(listening: socket.socket, port: int, schedule: Schedule) -> None:
    """Pass on what comes, frame by frame, with the schedule's faults; ends when it is killed."""
    pipes: dict[socket.socket, Pipe] = {}
    counter = [0]
    while True:
        for ready in select.select([listening, *pipes], [], [])[0]:
            if ready is listening:
                near, _ = listening.accept()
                with suppress(OSError):
                    far = socket.create_connection(("127.0.0.1", port), timeout=5)
                    pipes[near], pipes[far] = (
                        Pipe(near, far, schedule, counter),
                        Pipe(far, near, schedule, counter),
                    )
                    continue
                near.close()
            elif ready in pipes and not pipes[ready].passed_on():
                ends = (ready, pipes[ready].to)
                for end in ends:
                    pipes.pop(end, None)
                    end.close()


class Pipe:
    """One direction of a connection: 32 bytes of greeting, then frames."""

    def __init__(
        self, here: socket.socket, to: socket.socket, schedule: Schedule, counter: list[int]
    ) -> None:
        self.here, self.to, self.schedule, self.counter = here, to, schedule, counter
        self.pending, self.held, self.greeted = b"", b"", False

    def passed_on(self) -> bool:
        """Pass on what can be read; return whether the connection goes on."""
        try:
            content = self.here.recv(1 << 16)
            self.pending += content
            while unit := self._unit():
                self._send(unit)
        except OSError:
            return False
        return bool(content)

    def _unit(self) -> bytes:
        length = 32
        if self.greeted:
            if len(self.pending) < 4:
                return b""
            length = 4 + 32 + struct.unpack(">I", self.pending[:4])[0]
        if len(self.pending) < length:
            return b""
        unit, self.pending = self.pending[:length], self.pending[length:]
        return unit

    def _send(self, unit: bytes) -> None:
        if not self.greeted:
            self.greeted = True
            self.to.sendall(unit)
            return
        fault = self.schedule.frames.get(self.counter[0])
        self.counter[0] += 1
        if fault == "drop":
            return
        if fault == "swap":
            self.held = unit
            return
        if fault == "cut":
            self.to.sendall(unit[: len(unit) // 2])
        if fault in ("cut", "close"):
            raise ChannelBroken(fault)
        if fault == "change":
            unit = unit[:-1] + bytes([unit[-1] ^ 1])
        self.to.sendall(unit * (2 if fault == "repeat" else 1) + self.held)
        self.held = b""


# --- one schedule ------------------------------------------------------------------------------


def started(target: Callable[..., None], *args: Any) -> int:
    """Return the id of a new process that runs a function and nothing else."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        target(*args)
        status = 0
    except BaseException as error:
        print(f"{target.__name__}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def run(folder: Path, schedule: Schedule) -> dict[str, Any]:
    """Run a schedule to its end and return what is found."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listening = socket.create_server(("127.0.0.1", 0))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    outside = listening.getsockname()[1]
    begin: dict[str, Callable[[], int]] = {
        name: lambda i=i: started(as_party, folder, i, outside, schedule)  # type: ignore[misc]
        for i, name in enumerate(NAMES)
    }
    begin["coordinator"] = lambda: started(as_coordinator, folder, port, schedule)
    network = started(as_network, listening, port, schedule)
    listening.close()
    alive = {start(): name for name, start in begin.items()}
    kills, failures = 0, []
    while alive:
        process, status = os.wait()
        name = alive.pop(process)
        if os.WIFSIGNALED(status):
            kills += 1
            noted(folder, name, "killed")
            alive[begin[name]()] = name
        elif os.WEXITSTATUS(status):
            failures.append(name)
    os.kill(network, signal.SIGKILL)
    os.waitpid(network, 0)
    return {"seed": schedule.seed, "kills": kills, "failures": failures, **found_in(folder)}


def found_in(folder: Path) -> dict[str, Any]:
    """Return what logs, journals and ledgers show."""
    plan = plan_of(SOLVER)
    means = [k for k, step in enumerate(plan.steps) if step.kind is StepKind.MEAN]
    doubled = lost = under = 0
    for name in NAMES:
        sent: dict[int, set[str]] = {}
        for line in (folder / f"left {name}").read_text().splitlines():
            step, _, part = line.partition(" ")
            sent.setdefault(int(step), set()).add(part)
        doubled += sum(len(sent.get(k, ())) > 1 for k in means)
        lost += sum(k not in sent for k in means)
        with SqliteLedger(folder / name / "ledger.sqlite", read_only=True) as ledger:
            under += tuple(ledger.events()) != plan.events
        under += seen_short(folder, name) or (folder / f"under {name}").exists()
    outcomes = {
        name: json.loads((folder / f"outcome {name}").read_text())
        for name in (*NAMES, "coordinator")
        if (folder / f"outcome {name}").exists()
    }
    return {
        "doubled": doubled,
        "lost": lost,
        "under": under,
        "recovery": longest_recovery(folder),
        "outcomes": outcomes,
    }


if __name__ == "__main__":
    alone = one_process(SOLVER, EventList()).model.tobytes().hex()
    for word in sys.argv[2:]:
        begun = time.time()
        schedule = Schedule.every_point() if word == "every-point" else Schedule.drawn(int(word))
        line, seed = run(Path(sys.argv[1]) / word, schedule), schedule.seed
        models = {line["outcomes"].get(name, {}).get("model") for name in NAMES}
        agreed = len(models) == 1 and None not in models
        for outcome in line["outcomes"].values():
            outcome.pop("model", None)
        line["right"] = agreed and (seed % 2 == 1 or models == {alone})
        line["seconds"] = round(time.time() - begun, 2)
        print(json.dumps(line), flush=True)
