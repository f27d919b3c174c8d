"""What a federation costs: rounds a second and bytes a party, by engine and number of parties.

    python benchmarks/federation.py [--parties 4 16]                    in-process and sockets
    mpirun -n 2 python benchmarks/federation.py mpi [--parties 4 16]    two ranks serve all parties

Every party has 10,000 records of 100 dense features and runs 40 rounds of DP-ADMM linearised at the
consensus, through a ledger and a journal on disk, with one thread of BLAS. `one array` is one
process with all records and no ledger: what the arithmetic alone takes. A round is the median of
the times between one and the next, as the first party sees them.

Bytes are of one round: over sockets the frames that the first party sends and gets, its codes
included; with mpi all parties' parts as they come to a rank, which has them once for all its own.
Flower is not in it: what a message costs there is Flower's waits (docs/federation.md).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import argparse
import itertools
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dpledger.accounting.ledger import SqliteLedger
from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    Journal,
    Party,
    Policy,
    SocketLink,
    federated_plan,
    run_in_process,
    serve,
    take_part,
)
from dpledger.federation import channel as channels
from dpledger.federation.mpi import MpiLink, Ranks, world
from dpledger.federation.plan import StepKind
from dpledger.federation.protocol import Ask, Reply, Request
from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    EventList,
    LocalDataset,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
    SystemSampler,
)
from dpledger.solvers import ConsensusDpAdmm

ROUNDS, RECORDS, WIDTH, TOKEN = 40, 10_000, 100, b"t" * 32
"""Rounds, records a party, features, and what keeps strangers out of the sockets."""

SOLVER = ConsensusDpAdmm(ROUNDS, 20.0, 4.0, momentum=0.5)
POLICY = Policy(
    epsilon=100.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, algorithms=("consensus-admm",)
)

Observer = Callable[[int, Any], None]
"""Called once a round."""


def plan_for(parties: int) -> FederatedPlan:
    """Return the plan of so many parties."""
    names = tuple(f"party-{k:02d}" for k in range(parties))
    shape = DataShape(names, RECORDS, WIDTH, 1.0, Adjacency.REPLACE_ONE)
    return federated_plan(
        SOLVER, shape, delta=1e-5, algorithm="consensus-admm", configuration="0" * 64
    )


def records(party: int, count: int) -> tuple[Any, Any]:
    """Return a party's features, of shape (count, WIDTH), and labels."""
    rng = np.random.default_rng(party)
    rows = rng.normal(size=(count, WIDTH))
    rows *= 0.9 / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0)


def party_of(plan: FederatedPlan, number: int, folder: Path) -> Party:
    """Return a party with its records, and new files in a folder of its own."""
    name = plan.parties[number]
    (folder / name).mkdir()
    return Party(
        name,
        LocalDataset(plan.shape, (name,), *records(number, plan.shape.count)),
        SystemSampler(),
        SqliteLedger(folder / name / "ledger.sqlite"),
        Journal(folder / name / "journal.sqlite"),
        POLICY,
    )


def per_round(part: Callable[[Observer], object]) -> float:
    """Return the median seconds of a round of what calls an observer after each."""
    times: list[float] = []
    part(lambda k, state: times.append(time.perf_counter()))
    return statistics.median(later - one for one, later in itertools.pairwise(times))


def one_array(parties: int) -> float:
    """Return the seconds of a round of the arithmetic alone."""
    plan = plan_for(parties)
    parts = [records(k, plan.shape.count) for k in range(parties)]
    whole = PrivateDataset(
        np.concatenate([rows for rows, _ in parts]),
        np.concatenate([labels for _, labels in parts]),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.repeat(np.arange(parties), plan.shape.count),
        parties=plan.parties,
    )
    curator = SamplingCurator(EventList(), SeededSampler(1))
    return per_round(lambda observe: SOLVER.solve(whole, curator, observe=observe))


class Timed(Coordinator):
    """A coordinator that calls an observer each time the first party asks for a mean.

    Args:
        observe: called with the number of the step and None.
    """

    def __init__(self, plan: FederatedPlan, journal: Journal, observe: Observer) -> None:
        super().__init__(plan, journal, patience=60.0)
        self._observe = observe

    def reply(self, request: Request) -> Reply:
        match request:
            case Ask(party=name, step=step) if name == self.plan.parties[0]:
                if self.plan.steps[step].kind is StepKind.MEAN:
                    self._observe(step, None)
            case _:
                pass
        return super().reply(request)


def in_process(parties: int, folder: Path) -> float:
    """Return the seconds of a round of threads."""
    plan = plan_for(parties)
    members = [party_of(plan, number, folder) for number in range(parties)]
    with Journal(folder / "journal.sqlite") as journal:
        return per_round(
            lambda observe: run_in_process(members, plan, Timed(plan, journal, observe))
        )


def over_sockets(parties: int, folder: Path) -> tuple[float, int]:
    """Return the seconds of a round, and the bytes of one that the first party sends and gets."""
    plan = plan_for(parties)
    ready, told = os.pipe()
    processes: list[int] = []
    for number in range(parties):
        process = os.fork()
        if not process:
            as_party(plan, number, folder, ready)
            os._exit(0)
        processes.append(process)
    with Journal(folder / "journal.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=60.0)
        with serve(coordinator, ("127.0.0.1", 0), TOKEN) as (_, port):
            os.write(told, f"{port:05d}".encode() * parties)
            coordinator.wait()
    for process in processes:
        os.waitpid(process, 0)
    took, size = (folder / "found").read_text().split()
    return float(took), int(size)


def as_party(plan: FederatedPlan, number: int, folder: Path, ready: int) -> None:
    """Take part in a process of its own; the first party writes what it found."""
    port = int(os.read(ready, 5))
    sizes = counted()
    link = SocketLink(("127.0.0.1", port), TOKEN, patience=60.0)
    member = party_of(plan, number, folder)
    took = per_round(lambda observe: take_part(member, plan, link, observe=observe))
    if number == 0:
        # of most frames: the greeting, the agreement and the certificate are not of the rounds
        typical = sorted(sizes)[len(sizes) // 2]
        (folder / "found").write_text(f"{took} {2 * typical}")


def counted() -> list[int]:
    """Return a list that grows by the size of each frame that this process sends or receives."""
    sizes: list[int] = []
    send, receive = channels.Channel.send, channels.Channel.receive

    def sent(self: channels.Channel, content: bytes) -> None:
        sizes.append(len(content) + 36)
        send(self, content)

    def received(self: channels.Channel) -> bytes:
        content = receive(self)
        sizes.append(len(content) + 36)
        return content

    channels.Channel.send, channels.Channel.receive = sent, received  # type: ignore[method-assign]
    return sizes


class Weighed:
    """A communicator that notes what each gathering puts in and takes out, in bytes.

    Args:
        communicator: of all ranks.
    """

    def __init__(self, communicator: Any) -> None:
        self._world = communicator
        self.sizes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def allgather(self, mine: object) -> list[object]:
        found: list[object] = self._world.allgather(mine)
        self.sizes.append(len(pickle.dumps(found)))
        return found


def by_ranks(parties: int, folder: Path) -> None:
    """Let all ranks serve the parties; rank 0 says what the first party found."""
    plan, ranks = plan_for(parties), Weighed(world())
    served = Ranks(plan.parties, ranks)
    members = [party_of(plan, plan.parties.index(name), folder) for name in served.served]
    world().Barrier()

    def part(number: int, observe: Observer) -> object:
        member = members[number]
        link = MpiLink(plan, "run", served, member.name, member.journal)
        return take_part(member, plan, link, observe=observe)

    def all_parts(observe: Observer) -> None:
        with ThreadPoolExecutor(len(members)) as pool:
            others = [pool.submit(part, k, lambda *_: None) for k in range(1, len(members))]
            part(0, observe)
            for other in others:
                other.result()

    took = per_round(all_parts)
    if world().Get_rank() == 0:
        typical = statistics.median_low(ranks.sizes)
        say(parties, f"mpi, {world().Get_size()} ranks", took, f"{typical} bytes a rank")


def say(parties: int, engine: str, took: float, more: str = "") -> None:
    """Print a row: milliseconds of a round, rounds a second, and what travels."""
    row = f"{parties:3d} parties {engine:12} {1e3 * took:8.2f} ms a round {1 / took:8.1f} a second"
    print(f"{row}  {more}".rstrip(), flush=True)


def main() -> None:
    """Print what the chosen engines cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", nargs="?", choices=["mpi"])
    parser.add_argument("--parties", type=int, nargs="+", default=[4, 16])
    chosen = parser.parse_args()
    for parties in chosen.parties:
        if chosen.engine == "mpi":
            with tempfile.TemporaryDirectory() as folder:
                by_ranks(parties, Path(folder))
            continue
        say(parties, "one array", one_array(parties))
        with tempfile.TemporaryDirectory() as folder:
            say(parties, "in-process", in_process(parties, Path(folder)))
        with tempfile.TemporaryDirectory() as folder:
            took, size = over_sockets(parties, Path(folder))
            say(parties, "sockets", took, f"{size} bytes a party")


if __name__ == "__main__":
    main()
