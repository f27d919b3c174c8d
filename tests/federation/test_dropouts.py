"""Parties that drop out of sums: the others go on, within the noise that the plan has for it."""

import itertools
import json
import os
import signal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    FederationEnded,
    Journal,
    Party,
    SocketLink,
    federated_plan,
    run_in_process,
    serve,
    take_part,
    verify_federation,
    write_federation,
)
from dpledger.federation.aggregation import PublicMasks, SumOf, added, as_integers, as_words, masked
from dpledger.federation.plan import PROTOCOL
from dpledger.federation.protocol import Answer, Ask, Ended, Hello
from dpledger.mechanisms import InvalidParameter
from dpledger.mechanisms.summed_lattice import SummedLattice
from dpledger.runs.outcomes.federation import verified_federation_outcome
from dpledger.solvers import ConsensusDpAdmm, Summed

from .federations import NAMES, SHAPE, records, seeded
from .test_faults import asked
from .test_summed import summing_party

SOLVER = ConsensusDpAdmm(3, 2.0, 4.0)
TOKEN = b"t" * 32


def plan_with(dropouts: int, colluders: int = 0) -> FederatedPlan:
    return federated_plan(
        SOLVER,
        SHAPE,
        delta=1e-5,
        algorithm="consensus-admm",
        configuration="c" * 64,
        threat_model=Summed(colluders, dropouts),
    )


class Stops(Exception):
    """The party's process ends here."""


def stopping(party: Party, before: int) -> Party:
    """Return the party, which ends before it records its message of this number."""
    keep = party.journal.keep

    def kept(run: str, kind: str, number: int, content: bytes) -> None:
        if kind == "message" and number == before:
            raise Stops
        keep(run, kind, number, content)

    party.journal.keep = kept  # type: ignore[method-assign]
    return party


def closed(parties: list[Party]) -> None:
    for party in parties:
        party.ledger.close()
        party.journal.close()


def by_hand(gone: dict[int, int]) -> Any:
    """Return the model of `SOLVER` where party i has no part in sums from number gone[i] on."""
    lattice = SummedLattice(len(NAMES), len(gone) or 1)
    samplers = [seeded(number) for number in range(len(NAMES))]
    model = np.zeros(SHAPE.features)
    for k, event in enumerate(plan_with(len(gone) or 1).events):
        noise_std = event.mechanism.noise_std  # type: ignore[union-attr]
        total = np.zeros(SHAPE.features, dtype=np.int64)
        for number, sampler in enumerate(samplers):
            if k >= gone.get(number, k + 1):
                continue
            rows, labels = records(number)
            slopes = SOLVER.loss.derivative(rows @ model, labels)
            part = slopes @ rows / sum(SHAPE.counts)
            total += lattice.integers(part, noise_std, sampler.words)
        model = model - 4.0 * (total * lattice.step(noise_std) + 1e-6 * model)
    return model


@pytest.mark.parametrize(
    "missing", [m for n in range(4) for m in itertools.combinations(range(4), n)]
)
def test_masks_of_the_missing_are_taken_off(missing: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    numbers = rng.integers(-(2**20), 2**20, size=(4, 5))
    sent = [
        masked(as_words(row, 40), me, NAMES, "run", 7, 40)
        for me, row in enumerate(numbers)
        if me not in missing
    ]
    total = PublicMasks().completed(added(sent, 40), missing, NAMES, SumOf("run", 7, 40))
    there = [number for number in range(4) if number not in missing]
    assert as_integers(total, 40).tolist() == numbers[there].sum(axis=0).tolist()


@pytest.mark.parametrize(("colluders", "dropouts"), [(0, 1), (1, 1), (2, 1), (0, 3)])
def test_what_is_left_of_the_noise_is_what_is_priced(colluders: int, dropouts: int) -> None:
    plan = plan_with(dropouts, colluders)
    assert plan.summed is not None
    for event in plan.events:
        noise_std = event.mechanism.noise_std  # type: ignore[union-attr]
        share = Fraction(plan.summed.lattice.share(noise_std))
        assert (len(NAMES) - colluders - dropouts) * share**2 >= Fraction(noise_std) ** 2
        assert (len(NAMES) - colluders - dropouts) * share**2 < Fraction(noise_std) ** 2 * (
            1 + Fraction(1, 10**9)
        )


def test_all_parties_cannot_drop_out() -> None:
    with pytest.raises(InvalidParameter, match="colluders"):
        plan_with(3, 1)
    for wrong in (-1, 1.0, True):
        with pytest.raises(InvalidParameter, match="dropouts"):
            Summed(0, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [0, 1, 2])
def test_the_others_go_on_without_one_that_stopped(before: int, tmp_path: Path) -> None:
    plan = plan_with(1)
    parties = [summing_party(tmp_path, number) for number in range(len(NAMES))]
    stopping(parties[2], before)
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=1.0)
        found = run_in_process(parties, plan, coordinator)
        write_federation(tmp_path / "out", plan, coordinator.run, coordinator.handed_in())
    assert coordinator.dropped == ("south",)
    assert len(found) == 3
    assert len({part.state.model.tobytes() for part in found}) == 1
    # the noise of 2^24 steps hides how doubles are added up, but for the rounding of values
    assert found[0].state.model == pytest.approx(by_hand({2: before}), abs=1e-9)
    # it has paid for the whole plan, and sent no more than that
    assert tuple(parties[2].ledger.events()) == plan.events
    assert parties[2].journal.count(coordinator.run, "message") == before
    closed(parties)
    verdict = verify_federation(tmp_path / "out")
    assert verdict.dropped == ("south",)
    assert set(verdict.parties) == {"north", "east", "west"}
    assert any("at most 1 that dropped out" in text for text in verdict.joint.assumptions)
    outcome = verified_federation_outcome(tmp_path / "out")
    assert outcome.data["dropped"] == ("south",)
    assert any(row[0] == "dropped out" and "south" in row[1] for row in outcome.rows)
    manifest = json.loads((tmp_path / "out" / "federation.json").read_text())
    del manifest["parties"]["east"], manifest["models"]["east"]
    manifest["dropped"].append("east")
    (tmp_path / "out" / "federation.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidParameter, match="a sum over 4 parties, 2 of which may drop out"):
        verify_federation(tmp_path / "out")


def test_one_more_than_the_noise_has_room_for_ends_the_run_for_all(tmp_path: Path) -> None:
    plan = plan_with(1)
    parties = [summing_party(tmp_path, number) for number in range(len(NAMES))]
    for number in (0, 2):
        stopping(parties[number], 1)
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=4.0)
        with pytest.raises((FederationEnded, Stops)):
            run_in_process(parties, plan, coordinator)
        assert "'north', 'south' sent nothing" in str(coordinator.ended)
        assert coordinator.dropped == ()
        with pytest.raises(InvalidParameter, match="handed_in"):
            write_federation(tmp_path / "out", plan, coordinator.run, coordinator.handed_in())
    closed(parties)


def test_without_dropouts_in_the_plan_nobody_drops_out(tmp_path: Path) -> None:
    plan = plan_with(0)
    parties = [summing_party(tmp_path, number) for number in range(len(NAMES))]
    stopping(parties[3], 1)
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=1.0)
        with pytest.raises((FederationEnded, Stops)):
            run_in_process(parties, plan, coordinator)
        assert "'west' sent nothing" in str(coordinator.ended)
    closed(parties)


def test_who_dropped_out_stays_out_also_after_the_coordinator_began_anew(tmp_path: Path) -> None:
    plan = plan_with(1)
    parties = [summing_party(tmp_path / "first", number) for number in range(len(NAMES))]
    stopping(parties[1], 0)
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        run_in_process(parties, plan, Coordinator(plan, journal, patience=1.0))
    closed(parties)
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=1.0)
        assert coordinator.dropped == ("east",)
        hello = coordinator.reply(Hello(PROTOCOL, "east", plan.subject))
        assert isinstance(hello, Ended)
        assert "dropped out" in hello.reason
        # nor is it told a sum that it had no part in
        for step in range(len(plan.steps)):
            assert isinstance(coordinator.reply(Ask(coordinator.run, "east", step, b"")), Ended)
            assert isinstance(coordinator.reply(Ask(coordinator.run, "west", step, b"")), Answer)
        again = summing_party(tmp_path / "first", 1)

        class Link:
            def send(self, request: Any, *, brief: bool = False) -> Any:
                return coordinator.reply(request)

            def leave(self, bye: Any) -> None:
                coordinator.reply(bye)

        with pytest.raises(FederationEnded, match="dropped out"):
            take_part(again, plan, Link())
        closed([again])


def test_a_part_that_comes_too_late_is_in_no_sum(tmp_path: Path) -> None:
    plan = plan_with(1)
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=0.3)
        zero = bytes(8 * plan.steps[2].width)

        def all_but(step: int, part: bytes, *names: str) -> dict[str, Any]:
            return asked(coordinator, step, {n: part for n in NAMES if n not in names})

        for step in (0, 1):
            all_but(step, b"")
        first = all_but(2, zero, "north")
        (sum_of_three,) = {reply.result for reply in first.values()}
        late = coordinator.reply(Ask(coordinator.run, "north", 2, zero))
        assert isinstance(late, Ended)
        later = all_but(3, zero)
        assert isinstance(later.pop("north"), Ended)
        assert all(isinstance(reply, Answer) for reply in later.values())
        # the same release has one sum, whoever asks
        assert {r.result for r in all_but(2, zero, "north").values()} == {sum_of_three}


def test_a_killed_process_drops_out_and_the_others_finish(tmp_path: Path) -> None:
    plan = plan_with(1)
    ready, told = os.pipe()
    children = [_child(plan, number, tmp_path, ready) for number in range(4)]
    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=5.0)
        with serve(coordinator, ("127.0.0.1", 0), TOKEN) as (_, port):
            os.write(told, f"{port:05d}".encode() * 4)
            coordinator.wait()
        write_federation(tmp_path / "out", plan, coordinator.run, coordinator.handed_in())
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert ended == [-signal.SIGKILL, 0, 0, 0]
    assert coordinator.dropped == ("north",)
    verdict = verify_federation(tmp_path / "out")
    assert verdict.dropped == ("north",)
    assert verdict.same_model
    model = np.load(tmp_path / "out" / "model.npy")
    assert model == pytest.approx(by_hand({0: 1}), abs=1e-9)


def _child(plan: FederatedPlan, number: int, folder: Path, ready: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        port = int(os.read(ready, 5))
        party = summing_party(folder, number)
        if number == 0:
            keep = party.journal.keep

            def kept(run: str, kind: str, k: int, content: bytes) -> None:
                if kind == "message" and k == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                keep(run, kind, k, content)

            party.journal.keep = kept  # type: ignore[method-assign]
        take_part(party, plan, SocketLink(("127.0.0.1", port), TOKEN, patience=20.0))
        os._exit(0)
    except BaseException:
        os._exit(1)
