"""Laws of pooled models of vertically held columns.

1. Plan, run and replay emit the same events; a seed reproduces every message.
2. What all parties release adds up; a record attains the planned mu where its slopes saturate.
3. Without noise every party finds its own optimum, by an independent solver.
4. Settings are a function of public facts, and meet their target.
"""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from dpledger.accounting.gaussian.exact import mu_from_epsilon_delta
from dpledger.accounting.guarantees import guarantee
from dpledger.audits.curators import ReplayCurator
from dpledger.audits.datasets import VerticalAuditDataset
from dpledger.mechanisms import (
    Adjacency,
    Event,
    EventList,
    InvalidParameter,
    PlanningCurator,
    SamplingCurator,
    SeededSampler,
    VerticalDataset,
    VerticalShape,
)
from dpledger.solvers import (
    LinearLoss,
    Logistic,
    Multinomial,
    OpinionPool,
    PoolState,
    Shifted,
    opinion_pool_defaults,
)

PARTIES = ("bank", "shop", "town")
SOLVER = OpinionPool(3, 5.0, step_size=2.0, momentum=0.5)
BOTH = [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE]


def records(n: int = 40) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    blocks = []
    for width in (3, 2, 1):
        rows = rng.normal(size=(n, width))
        blocks.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return blocks, np.where(blocks[0][:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def private(
    adjacency: Adjacency = Adjacency.REPLACE_ONE, *, public_labels: bool = True
) -> VerticalAuditDataset:
    blocks, labels = records()
    return VerticalAuditDataset(
        blocks, labels, adjacency=adjacency, parties=PARTIES, public_labels=public_labels
    )


def planned(solver: OpinionPool, shape: VerticalShape) -> list[Event]:
    curator = PlanningCurator()
    solver.solve(VerticalDataset.planned(shape), curator)
    return curator.events


@pytest.mark.parametrize("adjacency", BOTH)
def test_plan_run_and_replay_emit_equal_events(adjacency: Adjacency) -> None:
    dataset, ran = private(adjacency), EventList()
    run = SamplingCurator(ran, SeededSampler(3), trials=2, record=True)
    SOLVER.solve(dataset, run)
    replay = ReplayCurator(run.transcript)
    SOLVER.solve(dataset, replay)
    assert planned(SOLVER, dataset.shape) == ran.events == [m.event for m in run.transcript]
    assert replay.log_density.shape == (2,)


def test_a_seed_reproduces_every_model_and_the_observer_sees_every_round() -> None:
    seen: list[PoolState] = []
    first, second = (
        SOLVER.solve(
            private(),
            SamplingCurator(EventList(), SeededSampler(11)),
            observe=lambda k, state: seen.append(state),
        ).model
        for _ in range(2)
    )
    assert first.tobytes() == second.tobytes()
    assert first.shape == (6,)
    assert len(seen) == 6
    assert np.array_equal(seen[-1].model, second)


@pytest.mark.parametrize(("adjacency", "each"), [(BOTH[0], 2.0), (BOTH[1], 1.0)])
def test_gradients_of_all_parties_add_up(adjacency: Adjacency, each: float) -> None:
    events = planned(SOLVER, private(adjacency).shape)
    assert len(events) == 3 * 3
    assert all(event.context.parties == () for event in events)
    # slopes cut at 1/2, rows of norm 1, 40 records
    for event in events:
        assert event.mechanism.sensitivity.value == pytest.approx(each * 0.5 / 40, rel=1e-9)
        assert "labels are public" in event.mechanism.sensitivity.assumptions
    found = guarantee(events, delta=1e-5)
    assert found.mu.upper_float == pytest.approx(sqrt(9) / 5.0, rel=1e-9)


@pytest.mark.parametrize("party", range(3))
def test_a_record_attains_the_planned_mu(party: int) -> None:
    # one round of a linear loss, whose slopes are ±1: only the turned row of one party moves
    solver = OpinionPool(1, 2.0, step_size=1.0, loss=LinearLoss())
    there, blocks = private(), records()[0]
    turned = [-block[0] if m == party else block[0] for m, block in enumerate(blocks)]
    here = there.with_record(0, features=turned)
    curator = SamplingCurator(EventList(), SeededSampler(4), trials=4_000, record=True)
    solver.solve(there, curator)
    densities = []
    for dataset in (there, here):
        replay = ReplayCurator(curator.transcript)
        solver.solve(dataset, replay)
        densities.append(replay.log_density)
    ratio = densities[0] - densities[1]
    # N(mu²/2, mu²) with mu = 1/2; five standard deviations: false alarm below 1e-5
    assert abs(ratio.mean() - 1 / 8) < 5 * 0.5 / sqrt(4_000)
    assert abs(ratio.var() * 4 - 1) < 5 * sqrt(2 / 4_000)


def test_without_noise_every_party_finds_its_own_optimum() -> None:
    blocks, labels = records()
    solver = OpinionPool(
        400, 0.0, step_size=4.0, momentum=0.8, regularisation=0.02, loss=Shifted(Logistic(), -0.3)
    )
    state = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(0)))
    for block, model in zip(blocks, state.models, strict=True):

        def objective(x: np.ndarray, rows: np.ndarray = block) -> float:
            losses = np.logaddexp(0.0, -labels * (rows @ x - 0.3))
            return float(losses.mean() + 0.01 * x @ x)

        assert model == pytest.approx(minimize(objective, np.zeros(block.shape[1])).x, abs=1e-4)


def test_many_records_have_the_gradient_of_plain_sums() -> None:
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(9_000, 4)) / 4.0, rng.choice([-1.0, 1.0], 9_000)
    rows /= np.maximum(1.0, 1.01 * np.linalg.norm(rows, axis=1, keepdims=True))
    data = VerticalAuditDataset(
        [rows], labels, adjacency=BOTH[0], parties=("all",), public_labels=True
    )
    x = rng.normal(size=(2, 4))
    solver = OpinionPool(1, 0.0, step_size=1.0, regularisation=0.0, loss=Logistic())
    slopes = -labels / (1.0 + np.exp(labels * (x @ rows.T)))
    held = data.mean_gradient("all", solver.loss, x)
    seen = SamplingCurator(EventList(), SeededSampler(0), trials=2).release(
        held, round=1, release="gradient", noise_multiplier=0.0
    )
    assert seen[:, 0] == pytest.approx(slopes @ rows / 9_000, abs=1e-14)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_settings_of_the_defaults_cost_what_they_are_for(
    adjacency: Adjacency, epsilon: float
) -> None:
    shape = VerticalShape(PARTIES, 30_000, (3, 2, 1), 1.0, adjacency, True)
    solver = opinion_pool_defaults(shape, epsilon=epsilon, delta=1e-5, offset=-1.0)
    mu = mu_from_epsilon_delta(epsilon=epsilon, delta=1e-5).lower_float
    assert sqrt(3 * solver.rounds) / solver.noise_multiplier == pytest.approx(mu, rel=1e-9)
    assert guarantee(planned(solver, shape), delta=1e-5).epsilon.upper_float == pytest.approx(
        epsilon, rel=1e-4
    )
    # safe steps: at most one over the curvature
    assert solver.step_size <= 1.0 / (solver.loss.curvature_bound or 0)


def test_a_smaller_epsilon_takes_fewer_rounds_and_never_none() -> None:
    shape = VerticalShape(PARTIES, 30_000, (3, 2, 1), 1.0, BOTH[0], True)
    rounds = [
        opinion_pool_defaults(shape, epsilon=epsilon, delta=1e-5).rounds
        for epsilon in (1e-3, 0.1, 1.0)
    ]
    assert rounds == sorted(rounds)
    assert rounds[0] >= 1
    assert rounds[-1] > rounds[0]


def test_what_the_parties_cannot_do_is_refused() -> None:
    curator = PlanningCurator()
    with pytest.raises(InvalidParameter, match="public_labels=False must be True"):
        SOLVER.solve(private(public_labels=False), curator)
    with pytest.raises(InvalidParameter, match="loss"):
        replace(SOLVER, loss=Multinomial(3)).solve(private(), curator)
    with pytest.raises(InvalidParameter, match="party"):
        private().mean_gradient("nobody", Logistic(), np.zeros(3))
    with pytest.raises(InvalidParameter, match=r"x\.shape"):
        private().mean_gradient("bank", Logistic(), np.zeros(2))
    with pytest.raises(InvalidParameter, match="momentum"):
        replace(SOLVER, momentum=1.0)
    assert curator.events == []
