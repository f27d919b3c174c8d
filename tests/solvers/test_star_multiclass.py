"""Laws of the star algorithms with the paper's multi-class loss: models are matrices of (d, K).

1. Plan, run and replay emit the same events, under every relation and for both layouts.
2. Sensitivities are Lemma 1's and Lemma 4's with c_1 = sqrt(2)·R, and neighbours attain them. The
   paper's c_1 = 1 of its binary experiments does not carry over.
3. Without noise the algorithms find the optimum of scikit-learn; with l1 and Theorem 3's steps they
   stay within that theorem's bound.
4. Noise on the flattened model is the matrix normal law whose entries have variance sigma².
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import matrix_normal
from tests.parameters import slow

from dpledger.audits.curators import ReplayCurator, log_density_of
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    ClassLabels,
    EventList,
    GaussianStep,
    PlanningCurator,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
)
from dpledger.solvers import (
    L1,
    ConstantSteps,
    DpAdmm,
    ModelSolver,
    Multinomial,
    NonsmoothSteps,
    PublishedDpAdmm,
    PvpAdmm,
    SmoothSteps,
    StarState,
)

RELATIONS = [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE]
PARTIES = ("a", "b", "c", "d")
CLASSES, WIDTH, RECORDS = 3, 4, 80
LOSS = Multinomial(CLASSES)
SMOOTH = SmoothSteps(0.5 + 1e-6, 3.0)
ALGORITHMS: dict[str, ModelSolver] = {
    "dp-admm l2": DpAdmm(5, 5.0, SMOOTH, loss=LOSS),
    "dp-admm l1": DpAdmm(5, 5.0, NonsmoothSteps(sqrt(2), 3.0), regulariser=L1(), loss=LOSS),
    "pvp": PvpAdmm(3, 5.0, loss=LOSS),
    "admm without privacy": PvpAdmm(3, None, loss=LOSS),
    "published": PublishedDpAdmm(DpAdmm(3, 5.0, SMOOTH, loss=LOSS), 20, 1.0),
}


def records() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(RECORDS, WIDTH))
    rows /= 1.001 * np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    pull = rows @ rng.normal(size=(WIDTH, CLASSES)) + 0.5 * rng.gumbel(size=(RECORDS, CLASSES))
    return rows, pull.argmax(axis=1).astype(np.float64)


def private(
    adjacency: Adjacency = Adjacency.REPLACE_ONE, layout: Callable[[np.ndarray], Any] = np.asarray
) -> PrivateDataset:
    rows, labels = records()
    return AuditDataset(
        layout(rows),
        labels,
        adjacency=adjacency,
        row_bound=1.0,
        party_of=np.arange(RECORDS) % len(PARTIES),
        parties=PARTIES,
        n_min=18 if adjacency is Adjacency.ADD_REMOVE_ONE else None,
        label_domain=ClassLabels(CLASSES),
    )


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "published"])
@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_plan_run_and_replay_emit_equal_events(
    name: str, adjacency: Adjacency, layout: Callable[[np.ndarray], Any]
) -> None:
    solver, dataset = ALGORITHMS[name], private(adjacency, layout)
    plan, ran = PlanningCurator(), EventList()
    solver.solve(PrivateDataset.planned(dataset.shape), plan)
    run = SamplingCurator(ran, SeededSampler(3), trials=2, record=True)
    state = solver.solve(dataset, run)
    replay = ReplayCurator(run.transcript)
    solver.solve(dataset, replay)
    assert plan.events == ran.events == [message.event for message in run.transcript]
    assert replay.log_density.shape == (2,)
    assert state.model.shape == (2, WIDTH * CLASSES)


def test_the_published_variant_plans_with_a_guess_of_the_whole_matrix() -> None:
    plan = PlanningCurator()
    ALGORITHMS["published"].solve(PrivateDataset.planned(private().shape), plan)
    kinds = [type(event.mechanism).__name__ for event in plan.events]
    assert kinds == ["UnprotectedRelease"] * 20 + ["GaussianStep"] * 3


@pytest.mark.parametrize(("adjacency", "factor"), list(zip(RELATIONS, (2, 1, 2), strict=True)))
@pytest.mark.parametrize("solver", [ALGORITHMS["dp-admm l2"], ALGORITHMS["pvp"]], ids=["dp", "pvp"])
def test_sensitivities_are_lemma_1_and_4_with_the_multi_class_gradient_bound(
    solver: DpAdmm | PvpAdmm, adjacency: Adjacency, factor: int
) -> None:
    shape, plan = private(adjacency).shape, PlanningCurator()
    solver.solve(PrivateDataset.planned(shape), plan)
    step = plan.events[0].mechanism
    assert isinstance(step, GaussianStep)
    change = factor * sqrt(2) / shape.count
    if isinstance(solver, DpAdmm):
        noise = sqrt(2.0 * WIDTH * CLASSES) * solver.noise_multiplier * change
        expected = change / (solver.penalty + 0.5 + 1e-6 + noise / 3.0)
    else:
        modulus = solver.penalty + solver.regularisation
        expected = change / modulus + 2 * solver.tolerance / modulus
    # rounding and the lattice are priced: less than a millionth part
    assert 1 - 1e-12 <= step.sensitivity.value / expected < 1 + 1e-6


def crowd(rows: np.ndarray, adjacency: Adjacency) -> PrivateDataset:
    return AuditDataset(
        rows,
        np.zeros(len(rows)),
        adjacency=adjacency,
        row_bound=1.0,
        n_min=400 if adjacency is Adjacency.ADD_REMOVE_ONE else None,
        label_domain=ClassLabels(CLASSES),
    )


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_neighbours_attain_the_sensitivity_within_a_percent(adjacency: Adjacency) -> None:
    # two rows, nearly opposite, that a far-off model puts into class 1; their label is 0
    one, other = np.array([0.9999, sqrt(1 - 0.9999**2)]), np.array([-0.9999, sqrt(1 - 0.9999**2)])
    model = np.zeros((2, CLASSES))
    model[1, 1] = 1e4
    rows = np.tile(other, (400, 1))
    here = crowd(rows, adjacency)
    match adjacency:
        case Adjacency.REPLACE_ONE:
            there = here.with_record(0, features=one)
        case Adjacency.ZERO_OUT_ONE:
            there = here.with_record(0, features=np.zeros(2))
        case _:
            there = crowd(np.vstack([rows, one]), adjacency)
    solver = DpAdmm(1, 1.0, ConstantSteps(1.0), loss=LOSS)
    state = StarState(model.ravel(), model.reshape(1, -1), np.zeros((1, 2 * CLASSES)))
    local = [solver.agent_step(data, 1, state) for data in (here, there)]
    first, second = (step._value for step in local)
    assert first is not None
    assert second is not None
    ratio = np.linalg.norm(first - second) / local[0].sensitivity.value
    assert 0.99 <= ratio <= 1.0


def test_the_binary_gradient_bound_understates_the_multi_class_one_by_the_root_of_two() -> None:
    rng = np.random.default_rng(0)
    scores, labels = 10 * rng.normal(size=(1000, CLASSES)), rng.integers(0, CLASSES, 1000)
    lengths = np.linalg.norm(LOSS.derivative(scores, labels.astype(np.float64)), axis=-1)
    assert 1.41 < lengths.max() <= sqrt(2)


def mean_loss(model: np.ndarray, own: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean loss of some records and its gradient (equation 3), written once more."""
    rows, labels = (array[own] for array in records())
    matrix = model.reshape(WIDTH, CLASSES)
    weights = np.exp(rows @ matrix)
    one_hot = np.eye(CLASSES)[labels.astype(int)]
    shares = weights / weights.sum(axis=1, keepdims=True)
    value = -np.mean(np.log((shares * one_hot).sum(axis=1)))
    return float(value), (rows.T @ (shares - one_hot) / len(rows)).ravel()


def l1_optimum(weight: float) -> np.ndarray:
    """The minimiser of mean loss + weight·|w|_1, positive and negative parts apart."""

    def split(parts: np.ndarray) -> tuple[float, np.ndarray]:
        positive, negative = np.split(parts, 2)
        value, gradient = mean_loss(positive - negative, np.arange(RECORDS))
        total = value + weight * parts.sum()
        return total, np.concatenate([gradient, -gradient]) + weight

    found = minimize(
        split, np.zeros(2 * WIDTH * CLASSES), jac=True, method="L-BFGS-B",
        bounds=[(0, None)] * (2 * WIDTH * CLASSES),
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
    )  # fmt: skip
    positive, negative = np.split(found.x, 2)
    return positive - negative


REGULARISATION = 0.02


@pytest.mark.parametrize(
    "solver",
    [
        *slow(PvpAdmm(300, None, tolerance=1e-11, regularisation=REGULARISATION, loss=LOSS)),
        DpAdmm(1500, 0.0, ConstantSteps(1.9), regularisation=REGULARISATION, loss=LOSS),
    ],
    ids=["exact minimisers", "first-order steps"],
)
def test_without_noise_scikit_learns_optimum_is_found(solver: ModelSolver) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rows, labels = records()
    best = linear_model.LogisticRegression(
        C=1 / (RECORDS * REGULARISATION), fit_intercept=False, tol=1e-12, solver="newton-cg"
    ).fit(rows, labels)
    state = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(0)))
    matrix = best.coef_.T
    assert np.linalg.norm(state.model.reshape(WIDTH, CLASSES) - matrix) <= 1e-6 * np.linalg.norm(
        matrix
    )


def test_with_l1_and_theorem_3s_steps_the_averages_stay_within_its_bound() -> None:
    weight, agents, best = 0.01, len(PARTIES), l1_optimum(0.01)
    bound, distance = sqrt(2) + weight * sqrt(WIDTH * CLASSES), float(np.linalg.norm(best))
    steps = NonsmoothSteps(bound, distance)
    solver = DpAdmm(400, 0.0, steps, regularisation=weight, regulariser=L1(), loss=LOSS)
    before = [np.zeros((agents, WIDTH * CLASSES))]
    solver.solve(
        private(),
        SamplingCurator(EventList(), SeededSampler(0)),
        observe=lambda k, state: before.append(state.messages),
    )

    def gap(rounds: int) -> float:
        total = 0.0
        for i, average in enumerate(np.mean(before[:rounds], axis=0)):
            own = np.arange(i, RECORDS, agents)
            here, there = mean_loss(average, own)[0], mean_loss(best, own)[0]
            total += here - there + weight * float(np.abs(average).sum() - np.abs(best).sum())
        return total

    for rounds in (25, 100, 400):
        theorem = agents * distance * sqrt(2 / rounds) * bound
        theorem += agents * solver.penalty * distance**2 / 2 / rounds
        assert gap(rounds) <= theorem
    assert 0 < gap(400) < gap(100) / 2


def test_h7_messages_follow_the_matrix_normal_law_with_variance_sigma_squared() -> None:
    rng, sigma = np.random.default_rng(6), 0.3
    mean = rng.normal(size=(WIDTH, CLASSES))
    contents = mean + sigma * rng.normal(size=(5, WIDTH, CLASSES))
    ours = log_density_of(contents.reshape(5, 1, -1), mean.reshape(1, -1), sigma)
    literal = log_density_of(contents.reshape(5, 1, -1), mean.reshape(1, -1), sigma**2)

    def law(variance: float) -> np.ndarray:
        frozen = matrix_normal(
            mean=mean, rowcov=variance * np.eye(WIDTH), colcov=variance * np.eye(CLASSES)
        )
        return np.array([frozen.logpdf(content) for content in contents])

    # MN(0, s I, s I) has entries of variance s²: sigma² needs s = sigma, as printed it is sigma⁴
    assert np.allclose(ours - ours[0], law(sigma) - law(sigma)[0], rtol=1e-10)
    assert np.allclose(literal - literal[0], law(sigma**2) - law(sigma**2)[0], rtol=1e-10)
