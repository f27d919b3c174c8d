"""Laws of ADMM sharing over features.

1. Plan, run and replay of one algorithm emit the same events; a seed reproduces every message.
2. What all parties and the centre release adds up, to the claimed figures.
3. Without noise and without active cuts, the pooled optimum of an independent solver is found.
4. What the published algorithm lets out lies where the private features put it, and tells labels:
   neighbours are told apart with probability 1; without unprotected releases it raises.
"""

from dataclasses import replace
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.parameters import slow

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.planning import calibrate_noise_multiplier
from dpledger.audits.curators import ReplayCurator
from dpledger.audits.datasets import VerticalAuditDataset
from dpledger.mechanisms import (
    Adjacency,
    Event,
    EventList,
    GaussianStep,
    InvalidParameter,
    PlanningCurator,
    SamplingCurator,
    SeededSampler,
    UnprotectedRelease,
    UnprotectedReleaseError,
    VerticalDataset,
    VerticalShape,
)
from dpledger.solvers import (
    PublishedSharingAdmm,
    SharingAdmm,
    SharingState,
    lemma_1_bound,
    published_parameter_noise,
)

PARTIES = ("bank", "shop", "town")
BASE = SharingAdmm(4, 5.0)
ALGORITHMS: dict[str, SharingAdmm | PublishedSharingAdmm] = {
    "repaired": BASE,
    "repaired, without noise": replace(BASE, noise_multiplier=0.0),
    "repaired, the centre first": replace(BASE, opening=True),
    "published": PublishedSharingAdmm(BASE, 3.0),
}


def records(n: int = 30) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    blocks = []
    for width in (3, 2, 1):
        rows = rng.normal(size=(n, width))
        # below the bound 1, so that no row is cut
        blocks.append(rows / np.maximum(1.01, 1.01 * np.linalg.norm(rows, axis=1, keepdims=True)))
    noise = 0.5 * rng.normal(size=n)
    return blocks, np.where(blocks[0][:, 0] + blocks[1][:, 0] + noise > 0, 1.0, -1.0)


def private(
    adjacency: Adjacency = Adjacency.REPLACE_ONE, *, public_labels: bool = True
) -> VerticalDataset:
    blocks, labels = records()
    return VerticalAuditDataset(
        blocks, labels, adjacency=adjacency, parties=PARTIES, public_labels=public_labels
    )


def planned(solver: SharingAdmm | PublishedSharingAdmm, shape: VerticalShape) -> list[Event]:
    plan = PlanningCurator()
    solver.solve(VerticalDataset.planned(shape), plan)
    return plan.events


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("public_labels", [True, False])
@pytest.mark.parametrize("adjacency", [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE])
def test_plan_run_and_replay_emit_equal_events(
    name: str, adjacency: Adjacency, public_labels: bool
) -> None:
    solver, dataset = ALGORITHMS[name], private(adjacency, public_labels=public_labels)
    ran = EventList()
    run = SamplingCurator(ran, SeededSampler(3), trials=2, record=True)
    solver.solve(dataset, run)
    replay = ReplayCurator(run.transcript)
    solver.solve(dataset, replay)
    assert planned(solver, dataset.shape) == ran.events == [m.event for m in run.transcript]
    assert replay.log_density.shape == (2,)
    assert np.all(np.isfinite(replay.log_density))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_seed_reproduces_every_message_bit_for_bit(name: str) -> None:
    transcripts = []
    for _ in range(2):
        curator = SamplingCurator(EventList(), SeededSampler(11), record=True)
        ALGORITHMS[name].solve(private(), curator)
        transcripts.append(b"".join(m.content.tobytes() for m in curator.transcript))
    assert transcripts[0] == transcripts[1]


def test_trials_are_independent_runs_of_one_algorithm() -> None:
    dataset, curator = private(), SamplingCurator(EventList(), SeededSampler(1), trials=4)
    state = BASE.solve(dataset, curator)
    assert state.parts.shape == (4, 3, 30)
    assert state.split.shape == state.dual.shape == state.scores.shape == (4, 30)
    assert len({row.tobytes() for row in state.scores}) == 4
    models = BASE.publish_models(dataset, curator, state)
    assert [model.shape for model in models] == [(4, 3), (4, 2), (4, 1)]


def test_the_observer_sees_every_public_state() -> None:
    seen: list[tuple[int, SharingState]] = []
    curator = SamplingCurator(EventList(), SeededSampler(1))
    last = BASE.solve(private(), curator, observe=lambda t, state: seen.append((t, state)))
    assert [t for t, _ in seen] == [1, 2, 3, 4]
    assert seen[-1][1] is last


# claim S-R: M = 2, T = 20, B = b = rho = 1, lambda m_R = 0.1, at (1, 1e-5)
A9A = VerticalShape(("first", "second"), 32561, (66, 57), 1.0, Adjacency.REPLACE_ONE, True)


def test_the_noise_of_the_repair_is_the_claimed_figure() -> None:
    small = replace(A9A, count=50)

    def plan(multiplier: float) -> list[Event]:
        return planned(SharingAdmm(20, multiplier, tolerance=1e-8), small)

    found = calibrate_noise_multiplier(plan, target_epsilon=1, delta=1e-5)
    steps = [e.mechanism for e in plan(found.noise_multiplier) if e.context.release != "dual"]
    assert len(steps) == 40
    for step in steps:
        assert isinstance(step, GaussianStep)
        assert step.sensitivity.value == pytest.approx(sqrt(44), rel=1e-7)
        assert step.noise_std == pytest.approx(156.5, abs=0.05)
    assert found.guarantee.assumptions == ("labels are public",)


@pytest.mark.parametrize(("public_labels", "releases"), [(True, 3 * 4), (False, 3 * 4 + 4)])
def test_what_all_parties_and_the_centre_release_adds_up(
    public_labels: bool, releases: int
) -> None:
    events = planned(BASE, private(public_labels=public_labels).shape)
    assert all(event.context.parties == () for event in events)
    found = guarantee(events, delta=1e-5)
    assert found.mu.upper_float == pytest.approx(sqrt(releases) / 5, rel=1e-12)


@pytest.mark.parametrize(("public_labels", "releases"), [(True, 0), (False, 1)])
def test_an_opening_costs_what_labels_cost(public_labels: bool, releases: int) -> None:
    solver = replace(BASE, rounds=0, opening=True)
    (opening,) = planned(solver, private(public_labels=public_labels).shape)
    assert (opening.context.round, opening.context.release) == (0, "dual")
    found = guarantee([opening], delta=1e-5)
    assert found.mu.upper_float == pytest.approx(releases / 5, rel=1e-12)


def test_models_after_an_opening_alone_are_each_partys_ridge_regression_on_labels() -> None:
    solver = SharingAdmm(
        0, 0.0, 0.3, 0.5, slope_bound=9.0, radius=90.0, tolerance=1e-9, opening=True
    )
    dataset, curator = private(), SamplingCurator(EventList(), SeededSampler(1))
    models = solver.publish_models(dataset, curator, solver.solve(dataset, curator))
    blocks, labels = records()
    for rows, model in zip(blocks, models, strict=True):
        gram = 0.3 * rows.T @ rows + 0.5 * np.eye(rows.shape[1])
        expected = np.linalg.solve(gram, rows.T @ (labels / 2))
        assert model == pytest.approx(expected, abs=1e-7)


def test_no_rounds_want_an_opening() -> None:
    with pytest.raises(InvalidParameter, match="rounds=0"):
        SharingAdmm(0, 1.0)


@pytest.mark.parametrize("rounds", [None, False, 0.0, "", -1])
def test_an_opening_is_no_leave_for_other_rounds_than_whole_numbers(rounds: Any) -> None:
    with pytest.raises(InvalidParameter, match="rounds="):
        SharingAdmm(rounds, 1.0, opening=True)


def test_the_published_algorithm_has_no_opening_to_leave_out() -> None:
    with pytest.raises(InvalidParameter, match="opening"):
        PublishedSharingAdmm(replace(BASE, opening=True), 3.0)


def pooled_optimum(weight: float) -> np.ndarray:
    blocks, labels = records()
    rows = np.hstack(blocks)

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        margins = -labels * (rows @ x)
        slopes = -labels / (1 + np.exp(-margins))
        value = np.logaddexp(0, margins).sum() + weight / 2 * float(x @ x)
        return float(value), rows.T @ slopes + weight * x

    return minimize(
        objective, np.zeros(rows.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}
    ).x


@pytest.mark.parametrize("public_labels", [*slow(True), False])
def test_without_noise_the_pooled_optimum_is_found(public_labels: bool) -> None:
    solver = SharingAdmm(250, 0.0, 0.1, 0.5, slope_bound=50.0, radius=50.0, tolerance=1e-8)
    dataset = private(public_labels=public_labels)
    curator = SamplingCurator(EventList(), SeededSampler(0))
    state = solver.solve(dataset, curator)
    best = pooled_optimum(0.5)
    scores = np.hstack(records()[0]) @ best
    assert np.linalg.norm(scores) > 1
    assert np.linalg.norm(state.scores - scores) <= 1e-6 * np.linalg.norm(scores)
    assert np.linalg.norm(state.split - scores) <= 1e-6 * np.linalg.norm(scores)
    models = np.concatenate(solver.publish_models(dataset, curator, state))
    assert np.linalg.norm(models - best) <= 1e-6 * np.linalg.norm(best)


def test_a_tolerance_out_of_reach_is_refused_before_the_step_that_needs_it() -> None:
    ledger = EventList()
    hopeless = replace(BASE, tolerance=1e-16)
    with pytest.raises(InvalidParameter, match="tolerance"):
        hopeless.solve(private(), SamplingCurator(ledger, SeededSampler(0)))
    # a step that starts from 0 ends there, which every tolerance allows
    assert {event.context.round for event in ledger.events} <= {0, 1}
    assert len(ledger.events) < len(planned(hopeless, private().shape))


def test_replay_of_the_repaired_algorithm_stays_within_the_planned_mu() -> None:
    """False alarm below 1e-6: a mean of 2000 ratios of known variance, five standard errors."""
    there = private(public_labels=False)
    opposite = [-block[0] for block in records()[0]]
    label = -float(records()[1][0])
    here = there.with_record(0, features=opposite, label=label)
    curator = SamplingCurator(EventList(), SeededSampler(4), trials=2000, record=True)
    solver = replace(BASE, rounds=2)
    solver.solve(there, curator)
    densities = []
    for dataset in (there, here):
        replay = ReplayCurator(curator.transcript)
        solver.solve(dataset, replay)
        densities.append(replay.log_density)
    ratio = densities[0] - densities[1]
    planned_mu = guarantee([m.event for m in curator.transcript], delta=1e-5).mu.upper_float
    # of a Gaussian shift mu, the ratio's mean is mu²/2
    assert 0 < ratio.mean() <= planned_mu**2 / 2 + 5 * planned_mu / sqrt(2000)
    assert sqrt(2 * ratio.mean()) > planned_mu / 10


# claim S-1, S-3: two equal records; the neighbour's first one has one sign flipped
SINE = sqrt(3) / 2
EQUAL = np.array([[SINE, 0.5, 0.0], [SINE, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
FLIPPED = np.array([SINE, -0.5, 0.0])


def published_scores(dataset: VerticalDataset) -> tuple[np.ndarray, SamplingCurator]:
    curator = SamplingCurator(EventList(), SeededSampler(7), trials=50, record=True)
    solver = PublishedSharingAdmm(replace(BASE, rounds=1), 1e3)
    return solver.solve(dataset, curator).parts[:, 0, :], curator


def test_published_scores_lie_in_the_private_column_space_whatever_the_noise() -> None:
    there = VerticalAuditDataset(
        [EQUAL],
        np.ones(4),
        adjacency=Adjacency.REPLACE_ONE,
        parties=("one",),
        public_labels=True,
        row_bound=1.5,
    )
    here = there.with_record(0, features=[FLIPPED])
    first, curator = published_scores(there)
    second, _ = published_scores(here)
    # v_1 = v_2 with probability 1, and with probability 0
    assert np.allclose(first[:, 0], first[:, 1], rtol=1e-12)
    assert np.abs(second[:, 0] - second[:, 1]).min() > 1e-3
    assert np.linalg.matrix_rank(first, tol=1e-6) <= 3
    replay = ReplayCurator(curator.transcript)
    PublishedSharingAdmm(replace(BASE, rounds=1), 1e3).solve(here, replay)
    assert np.all(replay.log_density == -np.inf)


def test_repaired_scores_fill_the_space_of_records() -> None:
    curator = SamplingCurator(EventList(), SeededSampler(7), trials=50)
    parts = BASE.solve(private(), curator).parts
    assert np.linalg.matrix_rank(parts[:, 2, :]) == 30


def test_published_duals_tell_every_label_in_the_first_round() -> None:
    _, labels = records()
    state = PublishedSharingAdmm(replace(BASE, rounds=1, tolerance=1e-9), 1.0).solve(
        private(public_labels=False), SamplingCurator(EventList(), SeededSampler(3), trials=20)
    )
    assert np.all(np.sign(state.dual) == -labels)


@pytest.mark.parametrize(("public_labels", "unprotected"), [(True, 12), (False, 16)])
def test_published_releases_are_unprotected_events(public_labels: bool, unprotected: int) -> None:
    events = planned(ALGORITHMS["published"], private(public_labels=public_labels).shape)
    kinds = [type(event.mechanism) for event in events]
    assert kinds.count(UnprotectedRelease) == unprotected
    found = guarantee(events, delta=1e-5)
    assert found.epsilon.upper_float == np.inf
    assert len(found.unprotected) == (1 if public_labels else 2)


def test_without_its_unprotected_release_the_published_algorithm_raises() -> None:
    dataset = private()
    curator = SamplingCurator(EventList(), SeededSampler(0))
    state = BASE.solve(dataset, curator)
    local = dataset.minimiser("shop", BASE.local_problem(state, 1))
    noise = np.ones(2)
    with pytest.raises(UnprotectedReleaseError):
        dataset.scores("shop", local + noise)  # type: ignore[arg-type]
    scores = dataset.scores("shop", noise)
    with pytest.raises(UnprotectedReleaseError):
        BASE.run(
            dataset,
            lambda t, party, problem: scores,  # type: ignore[arg-type, return-value]
            lambda t, target: target,
            None,
        )


# claim S-1: d_m = 7, M = 1, rho = 1000, lambda = 1e-6, b_1 = 1.99999999
def test_lemma_1_and_theorem_1_are_the_papers() -> None:
    bound = lemma_1_bound(
        features=7,
        parties=1,
        penalty=1000.0,
        regularisation=1e-6,
        curvature=1.0,
        size=1.99999999,
    )
    assert bound == pytest.approx(0.8579999961, rel=1e-9)
    sigma = published_parameter_noise(bound, epsilon=0.5, delta=1e-5)
    assert sigma * 0.5 / bound == pytest.approx(sqrt(2 * log(125000)), rel=1e-14)


def test_lemma_1_is_no_bound() -> None:
    """claim S-1, d = 66: rows of norm 1 whose minimiser moves D x by 0.88998 against C."""
    rows = np.zeros((67, 66))
    rows[:3, :2] = EQUAL[:3, :2]
    rows[np.arange(3, 67), np.arange(2, 66)] = 1.0
    there = VerticalAuditDataset(
        [rows],
        np.ones(67),
        adjacency=Adjacency.REPLACE_ONE,
        parties=("one",),
        public_labels=True,
        row_bound=1.5,
    )
    flipped = rows[0].copy()
    flipped[1] *= -1
    z = np.zeros(67)
    z[:2] = 1.0
    solver = SharingAdmm(1, 0.0, 1.0, 1e-3, slope_bound=10.0, radius=10.0, tolerance=1e-6)
    problem = solver.local_problem(SharingState(np.zeros((1, 67)), z, np.zeros(67)), 0)
    curator = SamplingCurator(EventList(), SeededSampler(0))
    scores, models = [], []
    for dataset in (there, there.with_record(0, features=[flipped])):
        for found, read in ((scores, dataset.predictions), (models, dataset.minimiser)):
            release = curator.release(read("one", problem), round=1, release="test", noise_std=0.0)
            found.append(release[0])
    change = float(np.linalg.norm(scores[0] - scores[1]))
    size = max(sqrt(2), *(float(np.linalg.norm(model)) for model in models))
    bound = lemma_1_bound(
        features=66, parties=2, penalty=1.0, regularisation=1e-3, curvature=1.0, size=size
    )
    assert change == pytest.approx(0.889980, abs=1e-5)
    assert bound == pytest.approx(0.2714170907, rel=1e-9)
    assert change > 3 * bound
