"""A solver that every party runs on its own rows alone is the solver of one process, bit for bit.

Here every party is a thread with its own handle, sampler and events; the collectives wait for all.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    EventList,
    FixedBatch,
    InvalidParameter,
    LocalDataset,
    Poisson,
    PrivateDataset,
    Provenance,
    SamplingCurator,
    SeededSampler,
    concatenate_disjoint,
)
from dpledger.mechanisms.collectives import Ends, mean_of, sum_in_order
from dpledger.mechanisms.protocols import FloatArray
from dpledger.solvers import (
    Centring,
    ClippedLogistic,
    ConsensusDpAdmm,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    OutputPerturbation,
    PrAdmm,
    PsAdmm,
    PvpAdmm,
    SampledPsAdmm,
    SmoothSteps,
    StochasticRounds,
    ring,
)
from dpledger.solvers.planning import plan

NAMES = ("north", "east", "south", "west")
WIDTH = 5
LOSS = ClippedLogistic()
SOLVERS = {
    "consensus": ConsensusDpAdmm(6, 2.0, 4.0, momentum=0.5),
    "centred": ConsensusDpAdmm(6, 2.0, 4.0, metric=Centring(column=WIDTH - 1, scaling=True)),
    "dp-admm": DpAdmm(6, 2.0, SmoothSteps(0.25, 5.0)),
    "pvp": PvpAdmm(4, 2.0),
    "dp-sgd": DpSgd(5, 2.0, ConstantSteps(0.5)),
    "pr-admm": PrAdmm(ring(4), 4, 2.0, regularisation=0.01),
    "pr-admm with a threshold": PrAdmm(ring(4), 4, 2.0, regularisation=0.01, threshold=0.5),
    "output": OutputPerturbation(2.0, regularisation=0.05),
    "ps-admm": PsAdmm(StochasticRounds(3, 2, 0.5), 2.0),
    "dp-sgd on batches": DpSgd(5, 2.0, ConstantSteps(0.5), scheme=FixedBatch(9), clip=0.3),
    "ps-admm on batches": SampledPsAdmm(StochasticRounds(2, 3, 0.5), FixedBatch(9), 0.5, 2.0, 2.0),
}


class Meeting:
    """All parties' collectives: each call waits until every party has come."""

    def __init__(self, parties: int) -> None:
        self.rows: list[Any] = [None] * parties
        self.barrier = threading.Barrier(parties)

    def of(self, me: int) -> "Seat":
        return Seat(self, me)


class Seat:
    """One party's place in the meeting."""

    def __init__(self, meeting: Meeting, me: int) -> None:
        self.meeting, self.me = meeting, me

    def mean(self, messages: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        self.meeting.rows[self.me] = messages.copy()
        self.meeting.barrier.wait(600)
        total = sum_in_order(np.concatenate(self.meeting.rows, axis=-2))
        self.meeting.barrier.wait(600)
        return mean_of(total, len(self.meeting.rows), weights)

    def exchange(self, messages: FloatArray, ends: Ends) -> FloatArray:
        self.meeting.rows[self.me] = messages.copy()
        self.meeting.barrier.wait(30)
        known = np.zeros((len(self.meeting.rows), messages.shape[-1]))
        for i, j in zip(*ends, strict=True):
            if self.me in (i, j):
                known[i], known[j] = self.meeting.rows[i][0], self.meeting.rows[j][0]
        self.meeting.barrier.wait(30)
        return known


class RowByRow:
    """The noise of one process: every party's row, and its records' numbers, from its own sampler.

    Args:
        samplers: one a party.
        counts: of records, which stand party by party; needed where something is sampled.
    """

    def __init__(self, samplers: list[SeededSampler], counts: tuple[int, ...] = ()) -> None:
        self.samplers, self.counts = samplers, counts

    @property
    def provenance(self) -> Provenance:
        return self.samplers[0].provenance

    def gaussian(self, value: FloatArray, noise_std: float) -> FloatArray:
        rows = zip(self.samplers, value, strict=True)
        return np.concatenate([each.gaussian(row[None], noise_std) for each, row in rows])

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        assert shape == (sum(self.counts),)
        own = zip(self.samplers, self.counts, strict=True)
        return np.concatenate([each.uniform((count,)) for each, count in own])


def samplers() -> list[SeededSampler]:
    return [SeededSampler.stream(11, party) for party in range(len(NAMES))]


def records(counts: tuple[int, ...]) -> tuple[FloatArray, FloatArray, Any]:
    rng = np.random.default_rng(3)
    party_of = np.repeat(np.arange(len(counts)), counts)
    rows = rng.normal(size=(len(party_of), WIDTH)) * (rng.random((len(party_of), WIDTH)) < 0.7)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0) * 1.5
    rows[:, -1] = 0.7
    labels = np.where(rows[:, 0] + rows[:, 1] > 0, 1.0, -1.0)
    return rows, labels, party_of


def one_process(
    solver: Any,
    counts: tuple[int, ...],
    layout: Callable[..., Any],
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> tuple[Any, EventList, DataShape]:
    rows, labels, party_of = records(counts)
    whole = PrivateDataset(
        layout(rows),
        labels,
        adjacency=adjacency,
        row_bound=1.0,
        party_of=party_of,
        parties=NAMES,
        party_counts=counts,
    )
    events = EventList()
    state = solver.solve(whole, SamplingCurator(events, RowByRow(samplers(), counts)))
    return state, events, whole.shape


def every_party(
    solver: Any, counts: tuple[int, ...], layout: Callable[..., Any], shape: DataShape
) -> list[tuple[Any, EventList]]:
    rows, labels, party_of = records(counts)
    meeting = Meeting(len(NAMES))
    noise = samplers()

    def take_part(me: int) -> tuple[Any, EventList]:
        mine, events = party_of == me, EventList()
        held = LocalDataset(shape, (NAMES[me],), layout(rows[mine]), labels[mine])
        curator = SamplingCurator(events, noise[me])
        curator.collectives = meeting.of(me)
        try:
            return solver.solve(held, curator), events
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(len(NAMES)) as pool:
        return list(pool.map(take_part, range(len(NAMES))))


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    ("counts", "layout"),
    [
        ((60, 60, 60, 60), np.asarray),
        ((60, 45, 80, 51), sparse.csr_array),
    ],
    ids=["dense, equal counts", "sparse, unequal counts"],
)
def test_each_party_alone_computes_what_one_process_does(
    name: str, counts: tuple[int, ...], layout: Callable[..., Any]
) -> None:
    solver = SOLVERS[name]
    state, events, shape = one_process(solver, counts, layout)
    for me, (own, emitted) in enumerate(every_party(solver, counts, layout, shape)):
        assert emitted.events == events.events == list(plan(solver, shape))
        assert own.messages.tobytes() == state.messages[me : me + 1].tobytes()
        # without a server every agent has a model of its own
        model = state.messages[me] if isinstance(solver, PrAdmm) else state.model
        assert own.model.tobytes() == model.tobytes()


def test_poisson_samples_of_each_party_alone_are_those_of_one_process() -> None:
    """As many records as are drawn stand in a block, so that sums are equal up to rounding."""
    solver = DpSgd(5, 2.0, ConstantSteps(0.5), scheme=Poisson(0.2))
    counts, layout = (60, 60, 60, 60), np.asarray
    state, events, shape = one_process(solver, counts, layout, Adjacency.ZERO_OUT_ONE)
    for me, (own, emitted) in enumerate(every_party(solver, counts, layout, shape)):
        assert emitted.events == events.events == list(plan(solver, shape))
        assert own.messages == pytest.approx(state.messages[me : me + 1], abs=1e-12)
        assert own.model == pytest.approx(state.model, abs=1e-12)


def test_a_party_sends_its_own_row_only() -> None:
    state, _, shape = one_process(SOLVERS["dp-admm"], (60,) * 4, np.asarray)
    (first, _), *_ = every_party(SOLVERS["dp-admm"], (60,) * 4, np.asarray, shape)
    assert first.messages.shape == (1, WIDTH)
    assert state.messages.shape == (4, WIDTH)


def test_sums_over_parties_are_taken_in_their_order() -> None:
    for width in (1, 2, 7):
        rows = np.random.default_rng(width).normal(size=(3, 501, width))
        total = np.zeros((3, width))
        for party in range(rows.shape[1]):
            total = total + rows[:, party]
        assert sum_in_order(rows).tobytes() == total.tobytes()


SHAPE = DataShape(NAMES, 2, 1, 1.0, Adjacency.REPLACE_ONE)


@pytest.mark.parametrize(
    ("parties", "rows", "fault"),
    [
        (("nowhere",), [[0.1], [0.2]], "parties"),
        ((), [[0.1], [0.2]], "parties"),
        (("north", "south"), [[0.1], [0.2]], "parties"),
        (("north",), [[0.1, 0.0], [0.2, 0.0]], "features.shape"),
        (("north",), [[0.1]], "records"),
        (("north",), [[0.1]] * 5, "records"),
    ],
)
def test_a_local_data_set_fits_the_public_shape(
    parties: tuple[str, ...], rows: list[list[float]], fault: str
) -> None:
    with pytest.raises(InvalidParameter, match=fault):
        LocalDataset(SHAPE, parties, np.array(rows), np.ones(len(rows)))


def test_points_and_operands_have_the_own_rows() -> None:
    held = LocalDataset(
        SHAPE, ("east", "south"), np.full((4, 1), 0.1), np.ones(4), party_of=np.arange(4) % 2
    )
    assert (held.rows, held.own(np.arange(4.0)).tolist()) == (2, [1.0, 2.0])
    gradient = held.mean_gradient(LOSS, np.zeros((2, 1)))
    assert (gradient.rows, gradient.held) == (4, 2)
    with pytest.raises(InvalidParameter, match=r"w\.shape"):
        held.mean_gradient(LOSS, np.zeros((4, 1)))
    with pytest.raises(InvalidParameter, match="public operand shape"):
        _ = gradient + np.zeros((4, 1))
    with pytest.raises(InvalidParameter, match="held"):
        concatenate_disjoint(gradient, replaced_names(held).mean_gradient(LOSS, np.zeros((2, 1))))


def replaced_names(held: LocalDataset) -> LocalDataset:
    shape = replace(held.shape, parties=("a", "b", "c", "d"))
    return LocalDataset(
        shape, ("b", "c"), np.full((4, 1), 0.1), np.ones(4), party_of=np.arange(4) % 2
    )
