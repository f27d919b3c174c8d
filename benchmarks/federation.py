"""What a federation costs: rounds a second and bytes a party, by engine and number of parties.

    python benchmarks/federation.py                            in-process and sockets
    mpirun --oversubscribe -n 16 python benchmarks/federation.py mpi

Every party has 10,000 records of 100 dense features / P and runs 40 rounds of DP-ADMM linearised at
the consensus, through a ledger and a journal on disk. `one array` is one process with all records
and no ledger: what the arithmetic alone takes. Rounds are timed from the first to the last, as the
first party sees them.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpledger.accounting.ledger import SqliteLedger
from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    Journal,
    MpiLink,
    Party,
    Policy,
    SocketLink,
    federated_plan,
    run_in_process,
    serve,
    take_part,
)
from dpledger.federation import channel as channels
from dpledger.federation.mpi import world
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
SOLVER = ConsensusDpAdmm(ROUNDS, 20.0, 4.0, momentum=0.5)
POLICY = Policy(
    epsilon=100.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, algorithms=("consensus-admm",)
)


def plan_for(parties: int) -> FederatedPlan:
    names = tuple(f"party-{k:02d}" for k in range(parties))
    shape = DataShape(names, RECORDS // parties, WIDTH, 1.0, Adjacency.REPLACE_ONE)
    return federated_plan(
        SOLVER, shape, delta=1e-5, algorithm="consensus-admm", configuration="0" * 64
    )


def records(party: int, count: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(party)
    rows = rng.normal(size=(count, WIDTH))
    rows *= 0.9 / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0)


def party_of(plan: FederatedPlan, number: int, folder: Path) -> Party:
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


def per_round(part: Callable[[Callable[[int, Any], None]], object]) -> float:
    """Return the seconds of a round of what calls an observer after each."""
    times: list[float] = []
    part(lambda k, state: times.append(time.perf_counter()))
    return (times[-1] - times[0]) / (len(times) - 1)


def one_array(parties: int) -> float:
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


def in_process(parties: int, folder: Path) -> float:
    plan = plan_for(parties)
    members = [party_of(plan, number, folder) for number in range(parties)]
    with Journal(folder / "journal.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=60.0)
        begun = time.perf_counter()
        run_in_process(members, plan, coordinator)
        return (time.perf_counter() - begun) / ROUNDS


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


def by_ranks() -> None:
    ranks = world()
    plan = plan_for(ranks.Get_size())
    with tempfile.TemporaryDirectory() as folder:
        member = party_of(plan, ranks.Get_rank(), Path(folder))
        link = MpiLink(plan, "run", ranks, member.journal)
        took = per_round(lambda observe: take_part(member, plan, link, observe=observe))
    if ranks.Get_rank() == 0:
        say(ranks.Get_size(), "mpi", took)


def say(parties: int, engine: str, took: float, more: str = "") -> None:
    print(f"{parties:3d} parties {engine:10} {1e3 * took:8.2f} ms a round  {more}".rstrip())


def main() -> None:
    for parties in (4, 16):
        say(parties, "one array", one_array(parties))
        with tempfile.TemporaryDirectory() as folder:
            say(parties, "in-process", in_process(parties, Path(folder)), "start and end in it")
        with tempfile.TemporaryDirectory() as folder:
            took, size = over_sockets(parties, Path(folder))
            say(parties, "sockets", took, f"{size} bytes a party")


if __name__ == "__main__":
    by_ranks() if sys.argv[1:] == ["mpi"] else main()
