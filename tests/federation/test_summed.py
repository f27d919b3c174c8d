"""Runs of which sums alone are seen: the same bits on every engine, and what the sums tell."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.numbers.notions import Gdp
from dpledger.audits.assessment import AttackResult, assess
from dpledger.audits.bounds import Scores
from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    FederationEnded,
    Journal,
    Party,
    Policy,
    federated_plan,
    run_in_process,
    take_part,
    verify_federation,
)
from dpledger.federation.aggregation import as_integers, as_words, masked
from dpledger.federation.party import TookPart
from dpledger.federation.plan import StepKind
from dpledger.federation.protocol import Ask, Reply, Request
from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    InvalidParameter,
    Poisson,
    SeededSampler,
)
from dpledger.mechanisms.share_data import ShareOfSum
from dpledger.mechanisms.summed_lattice import SummedLattice
from dpledger.solvers import (
    CentralisedDpAdmm,
    ConsensusDpAdmm,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    OutputPerturbation,
    PrAdmm,
    PsAdmm,
    SmoothSteps,
    StochasticRounds,
    Summed,
    fused_lasso,
    ring,
    summed_shape,
)
from dpledger.solvers.planning import plan as planned
from dpledger.solvers.solver import ModelSolver

from .federations import NAMES, POLICY, SHAPE, party_in, plan_of, records, seeded, solver
from .test_engines import ENGINES, by_ranks, closed

ACCEPTS = replace(POLICY, threat_models=("summed",))


def summed_plan(
    chosen: ModelSolver | None = None, *, colluders: int = 1, shape: DataShape = SHAPE
) -> FederatedPlan:
    return federated_plan(
        solver() if chosen is None else chosen,
        shape,
        delta=1e-5,
        algorithm="consensus-admm",
        configuration="c" * 64,
        threat_model=Summed(colluders),
    )


def share_of(party: int) -> ShareOfSum:
    return ShareOfSum(SHAPE, NAMES[party], *records(party))


def summing_party(folder: Path, number: int, policy: Policy = ACCEPTS) -> Party:
    return replace(party_in(folder, number, policy=policy), dataset=share_of(number))


@pytest.fixture
def summing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engines' tests make parties of sums."""
    monkeypatch.setattr("tests.federation.test_engines.party_in", summing_party)


def by_hand(rounds: int) -> Any:
    """Return the model of `ConsensusDpAdmm(rounds, 2.0, 4.0)`, every step written out."""
    chosen = ConsensusDpAdmm(rounds, 2.0, 4.0)
    plan, lattice = summed_plan(chosen), SummedLattice(len(NAMES), 1)
    samplers = [seeded(number) for number in range(len(NAMES))]
    model, everybody = np.zeros(SHAPE.features), 4 * 40
    for event in plan.events:
        noise_std = event.mechanism.noise_std  # type: ignore[union-attr]
        total = np.zeros(SHAPE.features, dtype=np.int64)
        for number, sampler in enumerate(samplers):
            rows, labels = records(number)
            slopes = chosen.loss.derivative(rows @ model, labels)
            total += lattice.integers(slopes @ rows / everybody, noise_std, sampler.words)
        slope = total * lattice.step(noise_std)
        model = model - 4.0 * (slope + 1e-6 * model)
    return model


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("summing")
def test_every_engine_comes_to_the_same_sums(engine: str, tmp_path: Path) -> None:
    found = ENGINES[engine](tmp_path, summed_plan(ConsensusDpAdmm(3, 2.0, 4.0)))
    models = {part.state.model.tobytes() for part in found}
    assert len(models) == 1
    # the noise of 2^24 steps hides how doubles are added up, but for the rounding of values
    assert found[0].state.model == pytest.approx(by_hand(3), abs=1e-9)


OF_SUMS = {
    "ps-admm": PsAdmm(StochasticRounds(2, 2, 0.5), 2.0),
    "centralised": CentralisedDpAdmm(fused_lasso(4, [(0, 1)]), 3, 2.0, 0.5, accelerated=True),
    "dp-admm": DpAdmm(3, 2.0, SmoothSteps(0.25, 5.0)),
    "dp-sgd": DpSgd(3, 2.0, ConstantSteps(0.5), clip=0.3),
}


@pytest.mark.parametrize("name", OF_SUMS)
def test_algorithms_of_one_holder_run_on_sums_over_parties(name: str, tmp_path: Path) -> None:
    """As one process with all records runs them: the same priced noise, to a part in a million."""
    plan = summed_plan(OF_SUMS[name])
    assert len({part.state.model.tobytes() for part in in_process(tmp_path, plan)}) == 1
    alone = planned(OF_SUMS[name], summed_shape(SHAPE))
    assert [event.context for event in plan.events] == [event.context for event in alone]
    for one, other in zip(plan.events, alone, strict=True):
        ratio = one.mechanism.noise_std / other.mechanism.noise_std  # type: ignore[union-attr]
        assert ratio == pytest.approx(1.0, rel=1e-6)


def test_ranks_come_to_the_sums_of_threads(tmp_path: Path) -> None:
    plan = summed_plan()
    ranks = by_ranks(tmp_path / "ranks", plan, 2, made=summing_party)
    (model,) = {part.state.model.tobytes() for part in in_process(tmp_path / "threads", plan)}
    assert [part.state.model.tobytes() for found, _ in ranks for part in found] == 4 * [model]


def in_process(folder: Path, plan: FederatedPlan) -> tuple[TookPart, ...]:
    parties = [summing_party(folder, number) for number in range(len(NAMES))]
    with Journal(folder / "coordinator.sqlite") as journal:
        found = run_in_process(parties, plan, Coordinator(plan, journal, patience=20.0))
    closed(parties)
    return found


@pytest.mark.usefixtures("summing")
def test_events_certificates_and_verdicts_say_simulation_and_what_is_assumed(
    tmp_path: Path,
) -> None:
    plan = summed_plan()
    ENGINES["in-process"](tmp_path, plan)
    verdict = verify_federation(tmp_path / "out")
    assert verdict.simulation
    assert verdict.same_model
    for one in (verdict.joint, *verdict.parties.values()):
        assert any(
            "only sums over all parties are seen" in each
            and "at most 1 of them collude" in each
            and "simulation" in each
            for each in one.assumptions
        )
        assert one.values == verdict.joint.values
    with SqliteLedger(tmp_path / "east" / "ledger.sqlite", read_only=True) as ledger:
        assert tuple(ledger.events()) == plan.events
        assert all("(simulation)" in event.context.parties[0] for event in ledger.events())


@pytest.mark.usefixtures("summing")
def test_a_run_that_is_over_is_answered_from_the_journals(tmp_path: Path) -> None:
    plan = summed_plan()
    first, again = in_process(tmp_path, plan), in_process(tmp_path, plan)
    for one, two in zip(first, again, strict=True):
        assert (one.run, one.certificate) == (two.run, two.certificate)
        assert one.state.model.tobytes() == two.state.model.tobytes()


class Interrupted(Exception):
    """The party's process ended here."""


def test_a_party_that_comes_back_sends_its_recorded_numbers_again(tmp_path: Path) -> None:
    """Whatever point its process ends at: two messages of one step are the same bytes."""
    plan = summed_plan(ConsensusDpAdmm(2, 2.0, 4.0))
    parties = [summing_party(tmp_path, number) for number in range(len(NAMES))]
    sent: dict[tuple[str, int], set[bytes]] = {}
    asked = 0

    class Failing:
        def __init__(self, coordinator: Coordinator) -> None:
            self.coordinator = coordinator

        def send(self, request: Request, *, brief: bool = False) -> Reply:
            nonlocal asked
            if isinstance(request, Ask):
                sent.setdefault((request.party, request.step), set()).add(request.part)
                kind = plan.steps[request.step].kind
                if request.party == "east" and kind is StepKind.SUM:
                    asked += 1
                    if asked % 2:
                        raise Interrupted
            return self.coordinator.reply(request)

        def leave(self, bye: object) -> None:
            """Nobody is told: the process is gone."""

    with Journal(tmp_path / "coordinator.sqlite") as journal:
        coordinator = Coordinator(plan, journal, patience=20.0)
        link = Failing(coordinator)

        def part(number: int) -> TookPart:
            while True:
                fresh = replace(parties[number], sampler=seeded(number))
                try:
                    return take_part(fresh, plan, link)
                except Interrupted:
                    continue

        with ThreadPoolExecutor(len(NAMES)) as pool:
            found = list(pool.map(part, range(len(NAMES))))
    assert asked == 4
    assert all(len(parts) == 1 for parts in sent.values())
    alone = in_process(tmp_path / "alone", plan)
    assert found[1].state.model.tobytes() == alone[1].state.model.tobytes()
    closed(parties)


def test_the_sum_has_the_noise_of_one_party_and_so_the_model_has_less() -> None:
    chosen = ConsensusDpAdmm(3, 2.0, 4.0)
    alone, together = plan_of(chosen).events[0], summed_plan(chosen, colluders=0).events[0]
    # in a mean over all records a record weighs a quarter of what it does in one party's mean
    assert alone.mechanism.noise_std / together.mechanism.noise_std == pytest.approx(4, rel=1e-4)  # type: ignore[union-attr]


def test_what_leaves_a_party_is_masked_and_the_masks_cancel() -> None:
    numbers = [np.array([7, -3]), np.array([1, 1]), np.array([-9, 0])]
    sent = [
        masked(as_words(row, 40), me, ("a", "b", "c"), "run", 5, 40)
        for me, row in enumerate(numbers)
    ]
    for row, words in zip(numbers, sent, strict=True):
        assert np.all(as_integers(words, 40) != row)
    again = [
        masked(as_words(row, 40), me, ("a", "b", "c"), "run", 6, 40)
        for me, row in enumerate(numbers)
    ]
    assert not np.array_equal(sent[0], again[0])
    total = (sent[0] + sent[1] + sent[2]) & np.uint64(2**40 - 1)
    assert as_integers(total, 40).tolist() == [-1, -2]


def test_a_party_that_sends_no_words_of_the_modulus_is_named(tmp_path: Path) -> None:
    plan = summed_plan()
    parties = [summing_party(tmp_path, number) for number in range(len(NAMES))]

    class Lying:
        def __init__(self, coordinator: Coordinator) -> None:
            self.coordinator = coordinator

        def send(self, request: Request, *, brief: bool = False) -> Reply:
            if isinstance(request, Ask) and request.party == "south":
                step = plan.steps[request.step]
                if step.kind is StepKind.SUM:
                    request = Ask(request.run, "south", request.step, b"\xff" * 8 * step.width)
            return self.coordinator.reply(request)

        def leave(self, bye: Any) -> None:
            self.coordinator.reply(bye)

    with Journal(tmp_path / "coordinator.sqlite") as journal:
        link = Lying(Coordinator(plan, journal, patience=20.0))

        def part(number: int) -> str:
            with pytest.raises(FederationEnded, match=r"'south' sent .* no .* words") as ended:
                take_part(parties[number], plan, link)
            return str(ended.value)

        with ThreadPoolExecutor(len(NAMES)) as pool:
            assert len(set(pool.map(part, range(len(NAMES))))) == 1
    closed(parties)


REFUSED: dict[str, tuple[Policy, str]] = {
    "by default": (POLICY, "the threat model summed is not among those"),
    "with few colluders": (replace(ACCEPTS, colluders=2), "fewer than 2 colluders"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_sums_are_taken_part_in_by_policy_alone(why: str) -> None:
    policy, words = REFUSED[why]
    assert words in (policy.objection(summed_plan()) or "")
    assert ACCEPTS.objection(summed_plan()) is None


UNSUMMABLE: dict[str, Callable[[], object]] = {
    "minimisers": lambda: summed_plan(OutputPerturbation(2.0, 0.1)),
    "messages to neighbours": lambda: summed_plan(PrAdmm(ring(4), 2, 2.0)),
    "hidden samples": lambda: summed_plan(
        DpSgd(2, 2.0, ConstantSteps(1.0), scheme=Poisson(0.1)),
        shape=replace(SHAPE, adjacency=Adjacency.ZERO_OUT_ONE),
    ),
    "private divisors": lambda: summed_plan(
        shape=replace(SHAPE, adjacency=Adjacency.ADD_REMOVE_ONE)
    ),
    "no noise": lambda: summed_plan(ConsensusDpAdmm(2, 0.0, 4.0)),
    "only colluders": lambda: summed_plan(colluders=4),
}


@pytest.mark.parametrize("what", UNSUMMABLE)
def test_what_is_no_sum_with_noise_is_refused_at_the_plan(what: str) -> None:
    with pytest.raises(InvalidParameter):
        UNSUMMABLE[what]()


def test_a_party_with_another_number_of_records_than_is_public_is_refused() -> None:
    rows, labels = records(0)
    with pytest.raises(InvalidParameter, match="40 in number"):
        ShareOfSum(SHAPE, "north", rows[:-1], labels[:-1])


def test_public_upper_bounds_on_counts_add_up() -> None:
    assert summed_shape(replace(SHAPE, n_max=50)).most == 4 * 50


# --- what the aggregator sees, and what colluders add to it ------------------------------------

TRIALS, WIDTH, LATTICE = 6000, 3, SummedLattice(4, 1)


def aggregators_view(part: Any, seed: int, *, colluding: int, noise_std: float) -> Any:
    """Return sums over four parties in many trials, less what some of the others told.

    The first party has `part`, the others public values; each draws its own share of noise.
    """
    total = np.zeros((TRIALS, WIDTH), dtype=np.int64)
    for number in range(LATTICE.parties):
        value = np.broadcast_to(part if number == 0 else np.full(WIDTH, 0.1 * number), total.shape)
        sampler = SeededSampler.stream(seed, number)
        numbers = LATTICE.integers(value, noise_std, sampler.words)
        if number < LATTICE.parties - colluding:  # what a colluder sent is known and taken off
            total += numbers
    return LATTICE.decoded(total, noise_std)


def attacked(colluding: int) -> AttackResult:
    """Return what the likelihood ratio of sums shows about the price at 1-GDP."""
    gap = np.array([0.02, -0.01, 0.02])
    size = float(np.linalg.norm(gap))
    here, there = np.zeros(WIDTH), gap

    def scores(first: Any, second: Any, seed: int) -> Scores:
        views = [
            aggregators_view(part, seed + k, colluding=colluding, noise_std=size)
            for k, part in enumerate((first, second))
        ]
        known = sum(0.1 * number for number in range(LATTICE.parties - colluding))
        middle = known + gap / 2
        return Scores(*(-(view - middle) @ gap / size**2 for view in views))

    return assess(
        scores(here, there, 10),
        scores(here, here, 20),
        claimed=Gdp(1.0),
        delta=1e-3,
        confidence=0.999,
    )


@pytest.mark.parametrize("colluding", [0, 1])
def test_up_to_t_colluders_find_no_more_than_is_priced(colluding: int) -> None:
    """A false alarm has probability 0.001; the seeds are fixed."""
    found = attacked(colluding)
    assert not found.null_control.positive
    assert not found.refutes_claim
    assert found.measured_mu is not None
    assert found.measured_mu.lower <= np.sqrt(3 / (4 - colluding)) <= found.measured_mu.upper


def test_one_more_colluder_than_t_finds_more_than_is_priced() -> None:
    """Two of three priced shares are left: mu is sqrt(3/2) of the price, and that is found."""
    found = attacked(2)
    assert not found.null_control.positive
    assert found.refutes_claim
    assert found.measured_mu is not None
    assert found.measured_mu.lower <= np.sqrt(1.5) <= found.measured_mu.upper
