"""Federations of parties that hold columns of the same records.

1. Threads, sockets, ranks and one process with all columns come to the same bits; every ledger has
   all releases, in the plan's order, and every certificate is about all of them.
2. A party releases what rests on its own columns, and asks for nothing but the others' messages.
3. Who is killed at any message goes on with the recorded ones, without noise drawn twice.
4. What is wrong in a plan, a part or a folder is refused.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import SqliteLedger
from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    FederationEnded,
    Journal,
    Party,
    Policy,
    SocketLink,
    plan_of_columns,
    run_in_process,
    serve,
    take_part,
    verify_federation,
    write_federation,
)
from dpledger.federation.in_process import _Direct
from dpledger.federation.plan import StepKind
from dpledger.federation.protocol import HandedIn, fault
from dpledger.mechanisms import (
    Adjacency,
    InvalidParameter,
    LocalColumns,
    SamplingCurator,
    SeededSampler,
    VerticalDataset,
    VerticalShape,
)
from dpledger.mechanisms.curators import Release
from dpledger.mechanisms.encoding import message_digest
from dpledger.mechanisms.protocols import EventList, FloatArray
from dpledger.solvers import OpinionPool, SharingAdmm, SharingModels

from .test_engines import by_ranks

NAMES, RECORDS, WIDTHS = ("bank", "shop", "clinic"), 30, (2, 3, 1)
POLICY = Policy(epsilon=500.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, algorithms=("sharing",))
RNG = np.random.default_rng(4)
BLOCKS = [RNG.uniform(-0.5, 0.5, size=(RECORDS, width)) for width in WIDTHS]
LABELS = np.where(BLOCKS[0][:, 0] + BLOCKS[1][:, 0] > 0, 1.0, -1.0)


def shape(*, public: bool) -> VerticalShape:
    return VerticalShape(NAMES, RECORDS, WIDTHS, 1.0, Adjacency.REPLACE_ONE, public)


def sharing(*, opening: bool = False) -> SharingModels:
    return SharingModels(SharingAdmm(2, 3.0, regularisation=1.0, opening=opening))


def plan_of(solver: Any, *, public: bool = False) -> FederatedPlan:
    return plan_of_columns(
        solver,
        shape(public=public),
        labels_at=None if public else "shop",
        delta=1e-5,
        algorithm="sharing",
        configuration="c" * 64,
    )


def party_in(folder: Path, name: str, *, public: bool = False) -> Party:
    own = folder / name
    own.mkdir(parents=True, exist_ok=True)
    number = NAMES.index(name)
    labels = LABELS if public or name == "shop" else None
    return Party(
        name=name,
        dataset=LocalColumns(shape(public=public), name, BLOCKS[number], labels),
        sampler=SeededSampler.stream(7, number),
        ledger=SqliteLedger(own / "ledger.sqlite"),
        journal=Journal(own / "journal.sqlite"),
        policy=POLICY,
    )


class EachItsOwn(SamplingCurator):
    """One process: the noise of a release is its sender's."""

    def __init__(self, plan: FederatedPlan) -> None:
        self._samplers = [SeededSampler.stream(7, m) for m in range(len(NAMES))]
        super().__init__(EventList(), self._samplers[0], record=True)
        self._senders = iter(plan.senders)

    def _deliver(self, release: Release) -> FloatArray:
        sender = next(self._senders) or NAMES[0]
        self._sampler = self._samplers[NAMES.index(sender)]
        self._provenance = self._sampler.provenance
        return super()._deliver(release)


def one_process(solver: Any, plan: FederatedPlan, *, public: bool) -> tuple[Any, EachItsOwn]:
    whole = VerticalDataset(
        BLOCKS,
        LABELS,
        adjacency=Adjacency.REPLACE_ONE,
        parties=NAMES,
        public_labels=public,
    )
    curator = EachItsOwn(plan)
    return solver.solve(whole, curator), curator


@pytest.mark.parametrize(
    ("solver", "public"),
    [
        (sharing(), False),
        (sharing(opening=True), False),
        (sharing(), True),
        (OpinionPool(3, 2.0, 0.5), True),
    ],
    ids=["private labels", "opening", "public labels", "pool"],
)
def test_columns_apart_come_to_the_bits_of_one_process(
    solver: Any, public: bool, tmp_path: Path
) -> None:
    plan = plan_of(solver, public=public)
    state, one = one_process(solver, plan, public=public)
    coordinator = Coordinator(plan, Journal(tmp_path / "coordinator"), patience=20.0)
    parties = [party_in(tmp_path, name, public=public) for name in NAMES]
    found = run_in_process(parties, plan, coordinator)
    assert [message.event for message in one.transcript] == list(plan.events)
    digests = [message_digest(message.content) for message in one.transcript]
    for party, took in zip(parties, found, strict=True):
        np.testing.assert_array_equal(took.state.model, state.model)
        (run,) = party.ledger.runs()
        assert (run.events, run.kept_to_plan) == (len(plan.events), True)
        assert list(party.ledger.messages(took.run).values()) == digests
    # each ledger alone says what a record paid to all parties together
    write_federation(tmp_path / "out", plan, coordinator.run, coordinator.handed_in())
    verdict = verify_federation(tmp_path / "out")
    sums = guarantee(plan.events, delta=1e-5).epsilon
    assert verdict.same_model
    assert {each.values for each in verdict.parties.values()} == {verdict.joint.values}
    assert float(verdict.joint.values[1]) >= sums.lower_float
    assert any("same record" in text for text in verdict.assumptions)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_any_number_of_ranks_comes_to_the_bits_of_one_process(size: int, tmp_path: Path) -> None:
    plan = plan_of(sharing())
    state, _ = one_process(sharing(), plan, public=False)
    ranks = by_ranks(tmp_path, plan, size, made=lambda folder, k: party_in(folder, NAMES[k]))
    for took in (took for found, _ in ranks for took in found):
        np.testing.assert_array_equal(took.state.model, state.model)


def test_parties_over_sockets_come_to_the_bits_of_one_process(tmp_path: Path) -> None:
    plan = plan_of(sharing())
    state, _ = one_process(sharing(), plan, public=False)
    coordinator = Coordinator(plan, Journal(tmp_path / "coordinator"), patience=20.0)
    with serve(coordinator, ("127.0.0.1", 0), b"t" * 32) as address, ThreadPoolExecutor(3) as pool:

        def part(name: str) -> Any:
            with closing(SocketLink(address, b"t" * 32, patience=20.0)) as link:
                return take_part(party_in(tmp_path, name), plan, link)

        for took in pool.map(part, NAMES):
            np.testing.assert_array_equal(took.state.model, state.model)
        coordinator.wait()


def test_every_release_has_the_sender_that_holds_what_it_rests_on() -> None:
    plan = plan_of(sharing())
    rounds = ["bank", "shop", "clinic", "shop"] * 2
    assert plan.senders == (*rounds, *NAMES)
    shared = [step for step in plan.steps if step.kind is StepKind.SHARE]
    assert [(step.sender, step.width) for step in shared] == [
        *((name, RECORDS) for name in rounds),
        *zip(NAMES, WIDTHS, strict=True),
    ]
    # public labels cost nothing to tell, and nobody has to
    assert plan_of(sharing(), public=True).senders.count("") == 2
    other = plan_of_columns(
        sharing(),
        shape(public=False),
        labels_at="bank",
        delta=1e-5,
        algorithm="sharing",
        configuration="c" * 64,
    )
    assert other.subject != plan.subject


def test_who_is_killed_at_any_message_goes_on_with_the_recorded_ones(tmp_path: Path) -> None:
    solver = sharing()
    plan = plan_of(solver)
    state, _ = one_process(solver, plan, public=False)

    class Killed(Exception):
        pass

    class Dying(_Direct):
        """The way to the coordinator of a party that dies at its n-th request or answer."""

        def __init__(self, coordinator: Coordinator, at: int, *, after: bool) -> None:
            super().__init__(coordinator)
            self.left, self.after = at, after

        def send(self, request: Any, *, brief: bool = False) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Killed
            found = super().send(request, brief=brief)
            if self.left == 0:
                raise Killed
            return found

        def leave(self, bye: Any) -> None:
            pass

    def to_the_end(name: str, coordinator: Coordinator) -> Any:
        """A fresh process after each death: files are read anew, and noise from its beginning."""
        at = 0
        while True:
            at += 3
            party = party_in(tmp_path, name)
            try:
                return take_part(party, plan, Dying(coordinator, at, after=at % 2 == 0))
            except Killed:
                continue
            finally:
                party.journal.close()
                party.ledger.close()

    coordinator = Coordinator(plan, Journal(tmp_path / "coordinator"), patience=20.0)
    with ThreadPoolExecutor(3) as pool:
        others = [
            pool.submit(take_part, party_in(tmp_path, name), plan, _Direct(coordinator))
            for name in ("bank", "clinic")
        ]
        dying = pool.submit(to_the_end, "shop", coordinator)
        found = [each.result() for each in (dying, *others)]
    for took in found:
        np.testing.assert_array_equal(took.state.model, state.model)
    (run,) = party_in(tmp_path, "shop").ledger.runs()
    assert (run.events, run.reservations) == (len(plan.events), 1)


def test_plans_that_no_party_can_keep_are_refused() -> None:
    for public, labels_at in ((False, None), (True, "shop"), (False, "nobody")):
        with pytest.raises(InvalidParameter, match="labels_at"):
            plan_of_columns(
                sharing(),
                shape(public=public),
                labels_at=labels_at,
                delta=1e-5,
                algorithm="sharing",
                configuration="c" * 64,
            )

    def noisy(dataset: VerticalDataset, curator: Any) -> None:
        dual = dataset.dual(
            SharingAdmm(1, 1.0).loss, np.zeros(RECORDS), penalty=1.0, tolerance=1e-4
        )
        curator.release(dual, round=1, release="dual", noise_std=1.0)

    class Noisy:
        solve = staticmethod(noisy)

    with pytest.raises(InvalidParameter, match="of all and without noise"):
        plan_of(Noisy(), public=True)


def test_a_party_sends_its_own_releases_alone() -> None:
    step = next(step for step in plan_of(sharing()).steps if step.kind is StepKind.SHARE)
    numbers = np.zeros(RECORDS).tobytes()
    assert fault(step, numbers, "bank") is None
    assert fault(step, b"", "shop") is None
    assert fault(step, numbers, "shop") == f"sent {8 * RECORDS} bytes where 0 were due"
    assert fault(step, b"", "bank") == f"sent 0 bytes where {8 * RECORDS} were due"
    assert "finite" in str(fault(step, np.full(RECORDS, np.nan).tobytes(), "bank"))


def test_a_budget_that_does_not_pay_for_all_parties_ends_the_run(tmp_path: Path) -> None:
    plan = plan_of(sharing())
    coordinator = Coordinator(plan, Journal(tmp_path / "coordinator"), patience=20.0)
    parties = [party_in(tmp_path, name) for name in NAMES]
    own = guarantee(
        [e for e, s in zip(plan.events, plan.senders, strict=True) if s == "clinic"], delta=1e-5
    ).epsilon.upper_float
    mean = Policy(
        epsilon=2 * own, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, algorithms=("sharing",)
    )
    parties[2] = Party(**{**{k: getattr(parties[2], k) for k in Party.__slots__}, "policy": mean})
    with pytest.raises(FederationEnded, match="clinic"):
        run_in_process(parties, plan, coordinator)
    assert all(not party.ledger.runs() for party in parties)


def test_columns_that_do_not_fit_are_refused() -> None:
    for block, labels, what in (
        (BLOCKS[1], None, "block"),
        (BLOCKS[0][:-1], None, "block"),
        (np.full((RECORDS, 2), np.nan), None, "block"),
        (BLOCKS[0], LABELS[:-1], "labels"),
        (BLOCKS[0], 2 * LABELS, "labels"),
    ):
        with pytest.raises(InvalidParameter, match=what):
            LocalColumns(shape(public=False), "bank", block, labels)
    with pytest.raises(InvalidParameter, match="they are public"):
        LocalColumns(shape(public=True), "bank", BLOCKS[0])
    with pytest.raises(InvalidParameter, match="party"):
        LocalColumns(shape(public=False), "nobody", BLOCKS[0])


def test_a_folder_whose_records_are_named_as_one_partys_is_refused(tmp_path: Path) -> None:
    plan = plan_of(sharing())
    coordinator = Coordinator(plan, Journal(tmp_path / "coordinator"), patience=20.0)
    run_in_process([party_in(tmp_path, name) for name in NAMES], plan, coordinator)
    out = tmp_path / "out"
    write_federation(out, plan, coordinator.run, coordinator.handed_in())
    written = msgspec.json.decode((out / "federation.json").read_bytes())
    for event in written["lists"][0]:
        event["parties"] = ["bank"]
    (out / "federation.json").write_bytes(msgspec.json.encode(written))
    with pytest.raises(InvalidParameter, match="records are everybody's"):
        verify_federation(out)
    assert msgspec.msgpack.decode(coordinator.handed_in()["bank"], type=HandedIn).certificate


def test_every_partys_certificate_rests_on_the_others_noise_too(tmp_path: Path) -> None:
    """All releases are in all certificates; who seeds its noise may sit elsewhere."""
    plan = plan_of(sharing())
    coordinator = Coordinator(plan, Journal(tmp_path / "coordinator"), patience=20.0)
    run_in_process([party_in(tmp_path, name) for name in NAMES], plan, coordinator)
    for part in coordinator.handed_in().values():
        document = msgspec.msgpack.decode(part, type=HandedIn).certificate
        assert "the noise of every party is known to it alone" in document.decode()
