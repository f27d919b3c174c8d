"""All engines run the same federation: equal bits, equal events, ledgers and certificates right."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any

import numpy as np
import pytest

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.proofs import proved_of_ledger
from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    FederationEnded,
    Journal,
    MpiLink,
    Party,
    Policy,
    SocketLink,
    run_in_process,
    serve,
    take_part,
    verify_federation,
    write_federation,
)
from dpledger.federation.journal import JournalError
from dpledger.federation.mpi import Ranks, begun, run_by_ranks
from dpledger.federation.party import TookPart, _to_the_end
from dpledger.federation.protocol import Answer, Ask, Reply, Request
from dpledger.mechanisms import (
    Adjacency,
    EventList,
    FixedBatch,
)
from dpledger.mechanisms.errors import DpledgerError, InvalidParameter
from dpledger.solvers import ConstantSteps, DpSgd, PrAdmm, PsAdmm, StochasticRounds, ring

from .federations import (
    NAMES,
    POLICY,
    one_process,
    party_in,
    plan_of,
    solver,
)

TOKEN = b"t" * 32


def in_process(folder: Path, plan: FederatedPlan) -> tuple[TookPart, ...]:
    parties = [party_in(folder, number) for number in range(len(NAMES))]
    with Journal(folder / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        found = run_in_process(parties, plan, coordinator)
        write_federation(folder / "out", plan, found[0].run, coordinator.handed_in())
    closed(parties)
    return found


def over_sockets(folder: Path, plan: FederatedPlan) -> tuple[TookPart, ...]:
    parties = [party_in(folder, number) for number in range(len(NAMES))]
    found: dict[str, TookPart] = {}

    def part(number: int, address: tuple[str, int]) -> None:
        link = SocketLink(address, TOKEN, patience=20.0)
        found[NAMES[number]] = take_part(parties[number], plan, link)
        link.close()

    with Journal(folder / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        with serve(coordinator, ("127.0.0.1", 0), TOKEN) as address:
            threads = [threading.Thread(target=part, args=(k, address)) for k in range(len(NAMES))]
            for thread in threads:
                thread.start()
            coordinator.wait()
            for thread in threads:
                thread.join()
        write_federation(folder / "out", plan, found[NAMES[0]].run, coordinator.handed_in())
    closed(parties)
    return tuple(found[name] for name in NAMES)


def closed(parties: list) -> None:  # type: ignore[type-arg]
    for party in parties:
        party.ledger.close()
        party.journal.close()


ENGINES = {"in-process": in_process, "sockets": over_sockets}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_comes_to_the_bits_of_one_process(engine: str, tmp_path: Path) -> None:
    plan = plan_of()
    alone = one_process(solver(), EventList())
    parts = ENGINES[engine](tmp_path, plan)
    for number, part in enumerate(parts):
        assert part.state.model.tobytes() == alone.model.tobytes()
        own = part.state.messages  # type: ignore[attr-defined]
        assert own.tobytes() == alone.messages[number : number + 1].tobytes()


OTHERS = {
    "inner steps": PsAdmm(StochasticRounds(2, 2, 0.5), 2.0),
    "hidden batches": DpSgd(3, 2.0, ConstantSteps(0.5), scheme=FixedBatch(7)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_inner_steps_and_hidden_batches_come_to_the_bits_of_one_process(
    name: str, tmp_path: Path
) -> None:
    plan, alone = plan_of(OTHERS[name]), one_process(OTHERS[name], EventList())
    for times in range(2):  # the second time from the journals
        for part in in_process(tmp_path, plan):
            assert part.state.model.tobytes() == alone.model.tobytes(), times
    with SqliteLedger(tmp_path / "west" / "ledger.sqlite", read_only=True) as ledger:
        assert tuple(ledger.events()) == plan.events


@pytest.mark.parametrize("engine", ENGINES)
def test_every_ledger_holds_the_plan_and_every_certificate_verifies(
    engine: str, tmp_path: Path
) -> None:
    plan = plan_of()
    parts = ENGINES[engine](tmp_path, plan)
    verdicts = []
    for name, part in zip(NAMES, parts, strict=True):
        with SqliteLedger(tmp_path / name / "ledger.sqlite", read_only=True) as ledger:
            assert tuple(ledger.events()) == plan.events
            assert ledger.verify().open == ()
            assert [run.kept_to_plan for run in ledger.runs()] == [True]
            verdicts.append(proved_of_ledger(part.certificate, ledger, part.run))
    found = verify_federation(tmp_path / "out")
    assert set(found.parties) == set(NAMES)
    # records live with one party each: all of them together cost what one does
    assert found.joint.values == verdicts[-1].values == found.parties["west"].values
    assert found.same_model
    assert np.load(tmp_path / "out" / "model.npy").tobytes() == parts[0].state.model.tobytes()


def test_a_run_that_is_over_is_answered_from_the_journals(tmp_path: Path) -> None:
    plan = plan_of()
    first = in_process(tmp_path, plan)
    again = in_process(tmp_path, plan)
    for one, two in zip(first, again, strict=True):
        assert (one.run, one.certificate) == (two.run, two.certificate)
        assert one.state.model.tobytes() == two.state.model.tobytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_neighbours_exchange_messages_and_end_with_models_of_their_own(
    engine: str, tmp_path: Path
) -> None:
    network = PrAdmm(ring(4), 3, 2.0, regularisation=0.01)
    plan = plan_of(network)
    alone = one_process(network, EventList())
    for number, part in enumerate(ENGINES[engine](tmp_path, plan)):
        assert part.state.model.tobytes() == alone.messages[number].tobytes()
    assert plan.neighbours == ((1, 3), (0, 2), (1, 3), (0, 2))
    assert not verify_federation(tmp_path / "out").same_model
    assert not (tmp_path / "out" / "model.npy").exists()


class World:
    """A communicator of threads."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier = size, threading.Barrier(size)
        self.slots: list[object] = [None] * size

    def rank(self, me: int) -> "Rank":
        return Rank(self, me)


class Rank:
    """One rank's end of it, with the methods of mpi4py that the engine calls."""

    def __init__(self, world: World, me: int) -> None:
        self.world, self.me = world, me

    def Get_size(self) -> int:  # noqa: N802
        return self.world.size

    def Get_rank(self) -> int:  # noqa: N802
        return self.me

    def allgather(self, mine: object) -> list[object]:
        # as MPI does: what comes is a copy
        self.world.slots[self.me] = pickle.loads(pickle.dumps(mine))
        self.world.barrier.wait(30)
        found = list(self.world.slots)
        self.world.barrier.wait(30)
        return found

    def bcast(self, mine: object) -> object:
        return self.allgather(mine)[0]


@contextmanager
def given(party: Party) -> Generator[Party]:
    try:
        yield party
    finally:
        closed([party])


def by_ranks(
    folder: Path,
    plan: FederatedPlan,
    size: int,
    *,
    made: Callable[[Path, int], Party] = party_in,
    wrong: Callable[[Party], None] = lambda party: None,
) -> list[Any]:
    """Return what came of every rank: its parties' parts and what all handed in, or its error.

    Args:
        folder: of the parties' files.
        plan: of the parties.
        size: number of ranks.
        made: gives a party by the folder and its number.
        wrong: called with each party before it takes part.
    """
    world = World(size)

    def rank(me: int) -> Any:
        ranks = Ranks(plan.parties, world.rank(me))
        parties = [made(folder, plan.parties.index(name)) for name in ranks.served]
        for party in parties:
            wrong(party)
        try:
            return run_by_ranks([given(party) for party in parties], plan, "run", ranks)
        except (DpledgerError, OSError) as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(rank, range(size)))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("graph", [False, True], ids=["star", "graph"])
def test_any_number_of_ranks_comes_to_the_bits_of_one_process(
    size: int, graph: bool, tmp_path: Path
) -> None:
    chosen = PrAdmm(ring(4), 3, 2.0, regularisation=0.01) if graph else solver(2)
    plan, alone = plan_of(chosen), one_process(chosen, EventList())
    ranks = by_ranks(tmp_path, plan, size)
    parts = [part for found, _ in ranks for part in found]
    for me, part in enumerate(parts):
        expected = alone.messages[me] if graph else alone.model
        assert part.state.model.tobytes() == expected.tobytes()
    handed_in = ranks[0][1]
    assert tuple(handed_in) == NAMES
    write_federation(tmp_path / "out", plan, "federation run", handed_in)
    assert set(verify_federation(tmp_path / "out").parties) == set(NAMES)
    for name in NAMES:
        with SqliteLedger(tmp_path / name / "ledger.sqlite", read_only=True) as ledger:
            assert tuple(ledger.events()) == plan.events


def test_more_ranks_than_parties_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"ranks=5 must be at most 4"):
        Ranks(NAMES, World(5).rank(0))


def test_ranks_have_the_run_of_rank_0_or_end_with_it() -> None:
    for named, expected in ((lambda: "one", ["one"] * 3), (refused, ["locked", *["Rank 0"] * 2])):
        world = World(3)

        def part(me: int, world: World = world, named: Callable[[], str] = named) -> str:
            try:
                return begun(world.rank(me), named)
            except (JournalError, FederationEnded) as error:
                return str(error)

        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(part, range(3)))
        assert [each[: len(start)] for each, start in zip(found, expected, strict=True)] == expected


def refused() -> str:
    """Give no name, as where another process holds the folder."""
    raise JournalError("locked")


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_party_that_stops_ends_the_run_for_all_ranks_by_name(size: int, tmp_path: Path) -> None:
    """The disk of one party is full at its second message: its rank says so, the others its
    name."""

    def full(party: Party) -> None:
        keep = party.journal.keep

        def failing(run: str, kind: str, number: int, content: bytes) -> None:
            if (party.name, kind, number) == ("south", "message", 1):
                raise OSError("No space left on device")
            keep(run, kind, number, content)

        party.journal.keep = failing  # type: ignore[method-assign]

    plan = plan_of(solver(2))
    found = by_ranks(tmp_path, plan, size, wrong=full)
    at = NAMES.index("south") * size // 4
    for rank, error in enumerate(found):
        if rank == at:
            assert "No space left" in str(error)
        else:
            assert str(error) == "Party 'south' stopped: OSError."
    # started again, if by another number of ranks, it goes on with what was recorded
    alone = one_process(solver(2), EventList())
    for parts, _ in by_ranks(tmp_path, plan, 5 - size):
        assert {part.state.model.tobytes() for part in parts} == {alone.model.tobytes()}


class Killed:
    """The end of a rank that outlives another one, as ULFM has it."""

    def __init__(self, size: int, gone: list[int], *, tolerant: bool = True) -> None:
        self.size, self.gone, self.tolerant, self.revoked = size, gone, tolerant, False

    def Get_size(self) -> int:  # noqa: N802
        return self.size

    def Get_rank(self) -> int:  # noqa: N802
        return 0

    def allgather(self, mine: object) -> list[object]:
        raise RuntimeError("MPI_ERR_PROC_FAILED: Process Failure")

    def Revoke(self) -> None:  # noqa: N802
        if not self.tolerant:
            raise NotImplementedError
        self.revoked = True

    def Get_failed(self) -> "Killed":  # noqa: N802
        return Killed(len(self.gone), self.gone)

    def Get_group(self) -> "Killed":  # noqa: N802
        return self

    def Translate_ranks(self, ranks: list[int], group: "Killed") -> list[int]:  # noqa: N802
        assert group.size >= len(ranks)
        return [self.gone[rank] for rank in ranks]


@pytest.mark.parametrize(
    ("gone", "lost"),
    [([1], "'east'"), ([2], "'south', 'west'"), ([2, 1], "'east', 'south', 'west'")],
)
def test_survivors_name_the_parties_of_a_killed_rank(gone: list[int], lost: str) -> None:
    communicator = Killed(3, gone)
    with pytest.raises(FederationEnded) as ended:
        Ranks(NAMES, communicator).gather("north", 1, list)
    names = ", ".join(map(str, sorted(gone)))
    assert str(ended.value).startswith(f"Rank {names} is gone, and with it {lost};")
    # or who had all parts would wait at the next gathering for those who had not
    assert communicator.revoked


def test_without_fault_tolerance_a_broken_gathering_says_what_mpi_raised() -> None:
    with pytest.raises(FederationEnded, match=r"could not gather \(RuntimeError\)"):
        Ranks(NAMES, Killed(3, [2], tolerant=False)).gather("north", 1, list)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="needs dpledger[mpi]")
def test_a_killed_rank_ends_the_job_in_a_sentence_and_the_command_again_goes_on(
    tmp_path: Path,
) -> None:
    again = ranks_of_mpi(tmp_path, "none")
    assert again.returncode == 0, again.stderr
    folder = tmp_path / "killed"
    folder.mkdir()
    killed = ranks_of_mpi(folder, "south")
    assert killed.returncode != 0
    assert "Rank 2 is gone, and with it 'south';" in killed.stdout
    again = ranks_of_mpi(folder, "none")
    assert again.returncode == 0, again.stderr
    alone = one_process(solver(), EventList()).model.tobytes().hex()
    assert again.stdout.split() == [alone] * 4


RANK = """
import os, signal, sys, time
from contextlib import nullcontext
from pathlib import Path
from dpledger.federation import FederationEnded
from dpledger.federation.mpi import Ranks, run_by_ranks, world
from tests.federation.federations import NAMES, party_in, plan_of
folder, victim = Path(sys.argv[1]), sys.argv[2]
plan, ranks = plan_of(), Ranks(plan_of().parties, world())
party = party_in(folder, NAMES.index(ranks.served[0]))
if party.name == victim:
    keep = party.journal.keep
    def failing(run, kind, number, content):
        if (kind, number) == ("message", 1):
            (folder / "when").write_text(repr(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        keep(run, kind, number, content)
    party.journal.keep = failing
try:
    found, _ = run_by_ranks([nullcontext(party)], plan, "run", ranks)
    print(found[0].state.model.tobytes().hex(), flush=True)
except FederationEnded as ended:
    later = 1e3 * (time.time() - float((folder / "when").read_text()))
    print(f"{ended} [{later:.0f} ms]", flush=True)
    sys.exit(1)
"""


def ranks_of_mpi(folder: Path, victim: str) -> subprocess.CompletedProcess[str]:
    """Run four real ranks, a party each, of which one may kill itself at its second message."""
    (folder / "rank.py").write_text(RANK)
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")]),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    program = Path(sys.executable).parent / "mpirun"
    tolerant = ["--with-ft", "ulfm", "--oversubscribe", "-n", "4"]
    return subprocess.run(
        [program, *tolerant, sys.executable, folder / "rank.py", folder, victim],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def mpi_link(plan: FederatedPlan, world: World, party: Party) -> MpiLink:
    """Return the link of the one party that its rank serves."""
    ranks = Ranks(plan.parties, world.rank(NAMES.index(party.name)))
    return MpiLink(plan, "run", ranks, party.name, party.journal)


KILLED = [
    ("message", 1), ("result", 0), ("result", 1), ("result", 3), ("result", 5), ("whole", 3),
    ("finish", 0),
]  # fmt: skip


@pytest.mark.parametrize("graph", [False, True], ids=["star", "graph"])
@pytest.mark.parametrize(("kind", "number"), KILLED)
def test_a_job_whose_rank_was_killed_goes_on_with_its_run(
    kind: str, number: int, graph: bool, tmp_path: Path
) -> None:
    """One rank dies before it writes an entry, the others where they next wait for it."""
    chosen = PrAdmm(ring(4), 3, 2.0, regularisation=0.01) if graph else solver(2)
    plan, alone = plan_of(chosen), one_process(chosen, EventList())
    died = [isinstance(each, Exception) for each in job(tmp_path, plan, (kind, number))]
    assert any(died) == (kind != "whole" or graph)
    again = job(tmp_path, plan, None)
    assert not any(isinstance(each, BaseException) for each in again)
    for me, part in enumerate(again):
        expected = alone.messages[me] if graph else alone.model
        assert part.state.model.tobytes() == expected.tobytes()
    with SqliteLedger(tmp_path / "south" / "ledger.sqlite", read_only=True) as ledger:
        assert [run.kept_to_plan for run in ledger.runs()] == [True]
        assert tuple(ledger.events()) == plan.events


def job(folder: Path, plan: FederatedPlan, killed: tuple[str, int] | None) -> list[Any]:
    """Return what came of every rank of a job, of which one may die before it keeps an entry."""
    world = World(len(NAMES))
    parties = [party_in(folder, number) for number in range(len(NAMES))]
    keep = parties[2].journal.keep

    def failing(run: str, kind: str, number: int, content: bytes) -> None:
        if (kind, number) == killed:
            world.barrier.abort()
            raise BrokenBarrierError
        keep(run, kind, number, content)

    parties[2].journal.keep = failing  # type: ignore[method-assign]

    def part(number: int) -> Any:
        link = mpi_link(plan, world, parties[number])
        try:
            took = take_part(parties[number], plan, link)
            assert set(link.handed_in()) == set(NAMES)
            return took
        except (BrokenBarrierError, FederationEnded) as error:
            return error

    with ThreadPoolExecutor(len(NAMES)) as pool:
        found = list(pool.map(part, range(len(NAMES))))
    closed(parties)
    return found


def test_ranks_with_other_plans_end_in_the_same_sentence(tmp_path: Path) -> None:
    world = World(len(NAMES))
    parties = [party_in(tmp_path, number) for number in range(len(NAMES))]

    def part(number: int) -> str:
        plan = plan_of(configuration="de"[number == 2] * 64)
        link = mpi_link(plan, world, parties[number])
        try:
            take_part(parties[number], plan, link)
        except FederationEnded as ended:
            return str(ended)
        return "went on"

    with ThreadPoolExecutor(len(NAMES)) as pool:
        found = list(pool.map(part, range(len(NAMES))))
    assert all("has another plan" in each for each in found)
    assert all(party.ledger.events() == [] for party in parties)
    closed(parties)


REFUSALS = {
    "epsilon": (Policy(epsilon=0.5, delta=1e-5, adjacency=Adjacency.REPLACE_ONE,
                       algorithms=("consensus-admm",)), "more than the 0.5 of its policy"),
    "adjacency": (Policy(epsilon=9.0, delta=1e-5, adjacency=Adjacency.ZERO_OUT_ONE,
                         algorithms=("consensus-admm",)), "the plan speaks of replace-one"),
    "algorithm": (Policy(epsilon=9.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE,
                         algorithms=("dp-admm",)), "not among those that it runs"),
    "unit": (Policy(epsilon=9.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE,
                    algorithms=("consensus-admm",), unit="person"), "its unit of privacy"),
    "threat model": (Policy(epsilon=9.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE,
                            algorithms=("consensus-admm",), threat_models=("summed",)),
                     "the threat model per-party"),
}  # fmt: skip


@pytest.mark.parametrize("limit", REFUSALS)
def test_a_party_says_no_by_its_own_policy_and_nobody_pays(limit: str, tmp_path: Path) -> None:
    plan = plan_of()
    policy, words = REFUSALS[limit]
    parties = [
        party_in(tmp_path, number, policy=policy if NAMES[number] == "south" else POLICY)
        for number in range(len(NAMES))
    ]
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        with pytest.raises(FederationEnded, match=f"'south' does not take part: .*{words}"):
            run_in_process(parties, plan, coordinator)
    assert [party.ledger.events() for party in parties] == [[]] * 4
    closed(parties)


def test_who_stopped_before_it_paid_is_asked_by_its_policy_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Agreeing:
        """A coordinator whose parties all say yes."""

        def send(self, request: Request, *, brief: bool = False) -> Reply:
            assert isinstance(request, Ask)
            return Answer(request.step, b"")

        def leave(self, bye: object) -> None:
            """Expect nothing more."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    plan = plan_of()

    party = party_in(tmp_path, 0)
    with monkeypatch.context() as patched:
        patched.setattr("dpledger.federation.party.PrepaidRun", stopped)
        with pytest.raises(KeyboardInterrupt):
            _to_the_end(party, plan, "one", Agreeing(), None)
    assert [(run.run, run.reservations) for run in party.ledger.runs()] == [("federation one", 0)]
    strict = replace(party, policy=REFUSALS["epsilon"][0])
    with pytest.raises(FederationEnded, match=REFUSALS["epsilon"][1]):
        _to_the_end(strict, plan, "one", Agreeing(), None)
    closed([party])


def test_a_budget_that_runs_out_at_one_party_stops_all_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    plan = plan_of()
    parties = [
        party_in(tmp_path, number, mu_squared=0.25 if NAMES[number] == "east" else None)
        for number in range(len(NAMES))
    ]
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        with pytest.raises(FederationEnded, match="'east' does not take part: its budget"):
            run_in_process(parties, plan, coordinator)
    assert all(party.ledger.events() == [] for party in parties)
    closed(parties)


def test_a_party_with_another_plan_is_named(tmp_path: Path) -> None:
    plan, other = plan_of(), plan_of(configuration="d" * 64)
    parties = [party_in(tmp_path, number) for number in range(len(NAMES))]
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        with (
            serve(coordinator, ("127.0.0.1", 0), TOKEN) as address,
            pytest.raises(FederationEnded, match="Party 'east' has another plan"),
        ):
            take_part(parties[1], other, SocketLink(address, TOKEN, patience=5.0))
        assert coordinator.ended is not None
    closed(parties)


def test_a_wrong_token_is_turned_away_and_ends_nothing(tmp_path: Path) -> None:
    plan = plan_of()
    party = party_in(tmp_path, 0)
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        with (
            serve(coordinator, ("127.0.0.1", 0), TOKEN) as address,
            pytest.raises(FederationEnded, match="another token"),
        ):
            take_part(party, plan, SocketLink(address, b"s" * 32, patience=5.0))
        assert coordinator.ended is None
    closed([party])
