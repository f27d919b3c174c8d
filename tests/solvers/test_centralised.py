"""Laws of centralised DP-ADMM and DP-AccADMM.

1. Plan, run and replay of one algorithm emit the same events; a seed reproduces every message.
2. Each round releases one mean gradient: 2c/n, c/n or 2c/n_min; totals are the claimed figures.
3. Without noise, the optimum of an independent solver is found, for both terms, any A, B and c.
4. The published initial dual variable is an unprotected release: what follows from it separates
   neighbours with probability 1, and without the release the algorithm raises.
"""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import minimize

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.planning import calibrate_noise_multiplier
from dpledger.audits.curators import ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    Event,
    EventList,
    GaussianStep,
    InvalidParameter,
    PlanningCurator,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
    UnprotectedRelease,
    UnprotectedReleaseError,
    linear_map,
)
from dpledger.solvers import (
    L2,
    CentralisedDpAdmm,
    Constraint,
    PublishedCentralisedDpAdmm,
    SplitState,
    fused_lasso,
    inverse_covariance_edges,
    learned_fused_lasso,
    theorem_1_noise_multiplier,
)

LASSO = fused_lasso(4, [(0, 1), (1, 2)], [1.0, -1.0])
BASE = CentralisedDpAdmm(LASSO, 6, 5.0, 4.0, regularisation=0.05)
ALGORITHMS: dict[str, CentralisedDpAdmm | PublishedCentralisedDpAdmm] = {
    "repaired": BASE,
    "repaired, accelerated": replace(BASE, accelerated=True),
    "repaired, without noise": replace(BASE, noise_multiplier=0.0),
    "published": PublishedCentralisedDpAdmm(BASE),
    "published, learned graph": PublishedCentralisedDpAdmm(BASE, graph_penalty=0.02),
    "published, accelerated": PublishedCentralisedDpAdmm(replace(BASE, accelerated=True)),
}


def records(n: int = 60, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, d))
    # below the bound 1, so that no row is cut
    rows /= np.maximum(1.01, 1.01 * np.linalg.norm(rows, axis=1, keepdims=True))
    labels = np.where(rows[:, 0] + rows[:, 1] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    return rows, labels


def private(adjacency: Adjacency = Adjacency.REPLACE_ONE) -> PrivateDataset:
    rows, labels = records()
    n_min = 50 if adjacency is Adjacency.ADD_REMOVE_ONE else None
    return AuditDataset(rows, labels, adjacency=adjacency, row_bound=1.0, n_min=n_min)


def planned(
    solver: CentralisedDpAdmm | PublishedCentralisedDpAdmm, shape: DataShape
) -> list[Event]:
    plan = PlanningCurator()
    solver.solve(PrivateDataset.planned(shape), plan)
    return plan.events


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    "adjacency", [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE]
)
def test_plan_run_and_replay_emit_equal_events(name: str, adjacency: Adjacency) -> None:
    solver, dataset = ALGORITHMS[name], private(adjacency)
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
    solver = replace(BASE, accelerated=True)
    state = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(1), trials=3))
    assert state.model.shape == (3, 4)
    assert state.y.shape == state.u.shape == (3, 6)
    assert len({row.tobytes() for row in state.model}) == 3


def test_the_observer_sees_every_public_state() -> None:
    seen: list[tuple[int, SplitState]] = []
    curator = SamplingCurator(EventList(), SeededSampler(1))
    last = BASE.solve(private(), curator, observe=lambda t, state: seen.append((t, state)))
    assert [t for t, _ in seen] == list(range(1, 7))
    assert seen[-1][1] is last


@pytest.mark.parametrize(
    ("adjacency", "expected"),
    [
        (Adjacency.REPLACE_ONE, 2 / 60),
        (Adjacency.ZERO_OUT_ONE, 1 / 60),
        (Adjacency.ADD_REMOVE_ONE, 2 / 50),
    ],
)
def test_each_round_releases_one_mean_gradient(adjacency: Adjacency, expected: float) -> None:
    for name, own_unit in (("repaired", expected), ("published", None)):
        events = planned(ALGORITHMS[name], private(adjacency).shape)
        steps = [e.mechanism for e in events if isinstance(e.mechanism, GaussianStep)]
        assert len(steps) == 6
        # the published noise is in units of c/n, whatever the relation
        noise = 5 * (own_unit or 1 / private(adjacency).shape.count)
        for step in steps:
            assert step.sensitivity.value == pytest.approx(expected, rel=1e-15)
            assert step.noise_std == pytest.approx(noise, rel=1e-15)


# claim DPA-1 and DPA-2: mu = 1/2, delta = 1e-3, any T and n
@pytest.mark.parametrize(
    ("adjacency", "nominal", "true"),
    [
        (Adjacency.ZERO_OUT_ONE, 0.01, 0.0001493050987),
        (Adjacency.ZERO_OUT_ONE, 1.0, 0.6197111812),
        (Adjacency.ZERO_OUT_ONE, 5.0, 3.745042452),
        (Adjacency.REPLACE_ONE, 0.02, 0.01015574404),
        (Adjacency.REPLACE_ONE, 5.0, 9.152477943),
    ],
)
def test_theorem_1_noise_is_worth_the_claimed_figures(
    adjacency: Adjacency, nominal: float, true: float
) -> None:
    multiplier = theorem_1_noise_multiplier(20, epsilon=nominal, delta=1e-3)
    solver = PublishedCentralisedDpAdmm(replace(BASE, rounds=20, noise_multiplier=multiplier))
    events = planned(solver, DataShape(("all",), 1000, 4, 1.0, adjacency))
    gradients = [event for event in events if isinstance(event.mechanism, GaussianStep)]
    found = guarantee(gradients, delta=1e-3)
    # rounding costs less than a 1e-7th
    assert found.epsilon.upper_float == pytest.approx(true, rel=1e-7)
    assert guarantee(events, delta=1e-3).epsilon.upper_float == np.inf


@pytest.mark.parametrize(
    ("nominal", "rho"), [(0.01, 3.61650297e-06), (0.05, 9.015174701e-05), (0.1, 0.0003593112864)]
)
def test_theorem_1_allows_the_claimed_rho(nominal: float, rho: float) -> None:
    multiplier = theorem_1_noise_multiplier(7, epsilon=nominal, delta=1e-3)
    assert 7 / (2 * multiplier**2) == pytest.approx(rho, rel=1e-9)


# claim DPA-R: sigma n/(c sqrt T) = 7.46126327 under replace-one
def test_repaired_noise_for_1_at_1e_5_is_the_claimed_figure() -> None:
    shape = DataShape(("all",), 500, 4, 1.0, Adjacency.REPLACE_ONE)

    def plan(multiplier: float) -> list[Event]:
        return planned(replace(BASE, rounds=25, noise_multiplier=multiplier), shape)

    found = calibrate_noise_multiplier(plan, target_epsilon=1, delta=1e-5)
    step = plan(found.noise_multiplier)[0].mechanism
    assert isinstance(step, GaussianStep)
    assert step.noise_std * 500 / sqrt(25) == pytest.approx(7.46126327, rel=1e-6)


def loss_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
    rows, labels = records()
    margins = -labels * (rows @ x)
    slopes = -labels / (1 + np.exp(-margins))
    return float(np.logaddexp(0, margins).mean()), rows.T @ slopes / len(labels)


def lasso_optimum(a: np.ndarray, weight: float) -> np.ndarray:
    """min f(x) + weight·|A x|_1: quadratic programming finds which rows vanish, BFGS the rest."""
    m, d = a.shape

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss_and_gradient(v[:d])
        return value + weight * v[d:].sum(), np.concatenate([gradient, np.full(m, weight)])

    both = np.block([[a, np.eye(m)], [-a, np.eye(m)]])
    near = minimize(
        objective,
        np.concatenate([np.zeros(d), np.ones(m)]),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: both @ v, "jac": lambda _: both},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert near.success
    x = near.x[:d]
    vanish = np.abs(a @ x) < 1e-4
    basis = null_space(a[vanish]) if vanish.any() else np.eye(d)
    slope = weight * np.sign(a[~vanish] @ x) @ a[~vanish]

    def reduced(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss_and_gradient(basis @ z)
        return value + slope @ basis @ z, basis.T @ (gradient + slope)

    found = minimize(reduced, basis.T @ x, jac=True, method="BFGS", options={"gtol": 1e-11})
    assert found.fun <= near.fun + 1e-12
    return basis @ found.x


WIDE = np.array([[1.0, 2.0, 0.0, -1.0], [0.5, 0.0, 1.0, 1.0]])
DEFICIENT = np.array([[1.0, 1.0, 0.0, 0.0], [2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    ("constraint", "weight"),
    [(LASSO, 0.02), (LASSO, 0.05), (Constraint(WIDE), 0.05), (Constraint(DEFICIENT), 0.03)],
    ids=["fused lasso", "fused lasso, sparser", "full row rank", "rank-deficient"],
)
def test_without_noise_the_lasso_optimum_is_found(constraint: Constraint, weight: float) -> None:
    solver = CentralisedDpAdmm(constraint, 800, 0.0, 4.0, penalty=0.05, regularisation=weight)
    state = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(0)))
    best = lasso_optimum(constraint.a, weight)
    assert np.linalg.norm(best) > 0.1
    assert np.linalg.norm(state.model - best) <= 1e-6 * np.linalg.norm(best)


def algorithm_3(a: np.ndarray, rounds: int, *, accelerated: bool) -> np.ndarray:
    """Algorithms 2 and 3 without noise, line by line, with G and a linear system for x."""
    eta, rho, weight = 4.0, 0.3, 0.05
    d = a.shape[1]
    gamma = eta * rho * np.linalg.eigvalsh(a.T @ a)[-1] + 1
    g = gamma * np.eye(d) - eta * rho * a.T @ a
    x, u, theta = np.zeros(d), np.zeros(len(a)), 1.0
    x_hat, u_hat = x, u
    for _ in range(rounds):
        target = a @ x_hat + u_hat
        y = np.array([t - np.clip(t, -weight / rho, weight / rho) for t in target])
        gradient = loss_and_gradient(x_hat)[1]
        right = g @ x_hat / eta - gradient + rho * a.T @ (y - u_hat)
        x_new = np.linalg.solve(rho * a.T @ a + g / eta, right)
        u_new = u_hat + a @ x_new - y
        theta_new = (1 + sqrt(1 + 4 * theta**2)) / 2
        beta = (theta - 1) / theta_new if accelerated else 0.0
        x_hat, u_hat = x_new + beta * (x_new - x), u_new + beta * (u_new - u)
        x, u, theta = x_new, u_new, theta_new
    return x


@pytest.mark.parametrize("accelerated", [False, True])
def test_rounds_are_those_of_algorithms_2_and_3(accelerated: bool) -> None:
    solver = CentralisedDpAdmm(LASSO, 25, 0.0, 4.0, accelerated, penalty=0.3, regularisation=0.05)
    state = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(0)))
    expected = algorithm_3(LASSO.a, 25, accelerated=accelerated)
    assert np.linalg.norm(expected) > 0.1
    assert np.allclose(state.model, expected, rtol=1e-10, atol=0)


def test_extrapolation_is_faster_at_first() -> None:
    def gap(accelerated: bool) -> float:
        solver = CentralisedDpAdmm(LASSO, 40, 0.0, 4.0, accelerated, regularisation=0.05)
        x = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(0))).model
        best = lasso_optimum(LASSO.a, 0.05)
        return float(np.linalg.norm(x - best))

    assert gap(True) < gap(False) / 2


@pytest.mark.parametrize("weight", [0.3, 30.0])
def test_an_extrapolated_dual_that_runs_away_is_refused_in_a_plan(weight: float) -> None:
    """A fit paid for all of its rounds, and had a model of 1e9 or none."""
    ridge = fused_lasso(4, [])
    away = CentralisedDpAdmm(ridge, 100, 5.0, 4.0, True, 0.01, None, weight, L2())
    calm = replace(away, accelerated=False)
    assert calm.drift() <= 1.0
    assert len(planned(calm, DataShape(("all",), 60, 4, 1.0, Adjacency.REPLACE_ONE))) == 100
    with pytest.raises(InvalidParameter, match=r"regularisation.*accelerated=False"):
        planned(away, DataShape(("all",), 60, 4, 1.0, Adjacency.REPLACE_ONE))


def test_without_noise_the_ridge_optimum_is_found_for_any_b_and_c() -> None:
    rng = np.random.default_rng(5)
    a, b, c = np.eye(4) + 0.2 * rng.normal(size=(4, 4)), np.diag([1.0, 2.0, 0.5, 1.5]), np.ones(4)
    b[0, 1] = 0.5
    solver = CentralisedDpAdmm(
        Constraint(a, b, c), 3000, 0.0, 4.0, penalty=0.1, regularisation=0.1, regulariser=L2()
    )
    state = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(0)))

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        y = np.linalg.solve(b, c - a @ x)
        value, gradient = loss_and_gradient(x)
        return value + 0.05 * float(y @ y), gradient - 0.1 * a.T @ np.linalg.solve(b.T, y)

    best = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    assert np.linalg.norm(state.model - best) <= 1e-6 * np.linalg.norm(best)
    assert np.allclose(a @ state.x + b @ state.y, c, atol=1e-6)


# claim DPA-3. Rows lie below the bound 2, so that none is cut.
A3 = Constraint(np.array([[1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]))
PUBLISHED = PublishedCentralisedDpAdmm(CentralisedDpAdmm(A3, 1, 0.0, 0.05, gamma=1.0))


def small(rows: list[list[float]], labels: list[float]) -> PrivateDataset:
    return AuditDataset(
        np.array(rows), np.array(labels), adjacency=Adjacency.REPLACE_ONE, row_bound=2.0
    )


FOUR = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.6, 0.8]]
THREE = small([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1.0, 1.0, 1.0])
THREE_OTHER = small([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 1.0, 1.0])


def final(
    solver: PublishedCentralisedDpAdmm, dataset: PrivateDataset, trials: int | None = None
) -> SplitState:
    return solver.solve(dataset, SamplingCurator(EventList(), SeededSampler(2), trials=trials))


def test_the_published_y_1_is_a_deterministic_function_of_the_data() -> None:
    noisy = replace(PUBLISHED, algorithm=replace(PUBLISHED.algorithm, noise_multiplier=1e3))
    there = final(noisy, small(FOUR, [1.0, 1.0, 1.0, 1.0]), trials=5).y
    here = final(noisy, small(FOUR, [1.0, 1.0, 1.0, -1.0]), trials=5).y
    assert np.allclose(there, [-0.04999, 0.24999, 0.29999], rtol=1e-12, atol=0)
    assert np.allclose(here, [-0.1 / 3 + 1e-5, 0.25 / 3 - 1e-5, 0.35 / 3 - 1e-5], rtol=1e-12)


@pytest.mark.parametrize(("weight", "there", "here"), [(1e-5, 1e-5, -1e-5), (0.1, 1 / 18, -1 / 18)])
def test_two_published_rounds_release_a_noiseless_statistic(
    weight: float, there: float, here: float
) -> None:
    dual = np.array([1.0, -1.0, 1.0])
    # noise of standard deviation 1 on a mean gradient of three records below norm 2
    algorithm = replace(PUBLISHED.algorithm, rounds=2, regularisation=weight, noise_multiplier=1.5)
    for dataset, expected in ((THREE, there), (THREE_OTHER, here)):
        y = final(PublishedCentralisedDpAdmm(algorithm), dataset, trials=2000).y
        seen = y[np.all(y != 0, axis=1)]
        statistic = (seen + weight * np.sign(seen)) @ dual
        # the remaining event needs no zero coordinate; at the paper's lambda it is almost sure
        assert len(seen) >= (1990 if weight == 1e-5 else 200)
        assert np.allclose(statistic, expected, rtol=0, atol=1e-12 + 1e-15 * np.abs(y).max())
        assert np.abs(statistic + expected).min() > 1e-6


def test_the_published_first_step_moves_as_claimed() -> None:
    for weight, shift in ((1e-5, 0.2356739761), (1.0, 0.0)):
        algorithm = replace(PUBLISHED.algorithm, regularisation=weight)
        solver = PublishedCentralisedDpAdmm(algorithm)
        moved = final(solver, THREE).x - final(solver, THREE_OTHER).x
        assert np.linalg.norm(moved) / 0.05 == pytest.approx(shift, rel=1e-9, abs=1e-12)


def test_published_replay_under_a_neighbour_is_infinitely_far() -> None:
    curator = SamplingCurator(EventList(), SeededSampler(4), trials=3, record=True)
    solver = PublishedCentralisedDpAdmm(replace(PUBLISHED.algorithm, noise_multiplier=1e3))
    solver.solve(THREE, curator)
    replay = ReplayCurator(curator.transcript)
    solver.solve(THREE_OTHER, replay)
    assert np.all(replay.log_density == -np.inf)


def test_repaired_replay_measures_the_planned_mu() -> None:
    """False alarm below 1e-6: a mean of 4000 ratios of known variance, five standard errors."""
    solver = CentralisedDpAdmm(A3, 1, 2.0, 0.05)
    there, here = THREE, THREE.with_record(2, features=np.array([0.0, 1.0]), label=1.0)
    curator = SamplingCurator(EventList(), SeededSampler(4), trials=4000, record=True)
    solver.solve(there, curator)
    densities = []
    for dataset in (there, here):
        replay = ReplayCurator(curator.transcript)
        solver.solve(dataset, replay)
        densities.append(replay.log_density)
    # |difference of gradients| = |(1,0)-(0,1)|/6, noise 2·(2·2/3)
    mu = sqrt(2) / 6 / (2 * 4 / 3)
    ratio = densities[0] - densities[1]
    assert ratio.mean() == pytest.approx(mu**2 / 2, abs=5 * mu / sqrt(4000))
    assert ratio.std() == pytest.approx(mu, rel=0.1)


def test_the_published_initial_dual_is_an_unprotected_event() -> None:
    kinds = [type(e.mechanism) for e in planned(ALGORITHMS["published"], private().shape)]
    assert kinds == [UnprotectedRelease] + [GaussianStep] * 6


def test_without_its_unprotected_release_the_initial_dual_raises() -> None:
    gradient = private().mean_gradient(BASE.loss, np.zeros(4))
    dual = linear_map(-np.linalg.pinv(LASSO.a).T, gradient)
    curator = SamplingCurator(EventList(), SeededSampler(0))
    with pytest.raises(UnprotectedReleaseError):
        BASE.run(private(), curator, dual, lambda g: g.sensitivity.root, None)  # type: ignore[arg-type]


# claim DPA-5: the second moment of the first two features is 0.12, or 0
def test_the_dimension_of_a_published_y_tells_neighbours_apart() -> None:
    labels = [1.0, 1.0, 1.0, 1.0]
    there = small(FOUR, labels)
    here = there.with_record(3, features=np.array([0.6, 0.0]))
    solver = replace(PUBLISHED, graph_penalty=0.05)
    assert final(solver, there).y.shape == (3,)
    assert final(solver, here).y.shape == (2,)
    events = planned(solver, there.shape)
    assert [type(e.mechanism) for e in events[:2]] == [UnprotectedRelease] * 2


def test_a_graph_from_a_noisy_second_moment_is_paid_for() -> None:
    dataset, curator = private(), SamplingCurator(EventList(), SeededSampler(2), record=True)
    learned = learned_fused_lasso(dataset, curator, penalty=0.02, noise_multiplier=0.5)
    assert learned.a.shape[1] == 4
    replace(BASE, constraint=learned).solve(dataset, curator)
    events = [message.event for message in curator.transcript]
    found = guarantee(events, delta=1e-5)
    assert found.mu.upper_float == pytest.approx(sqrt(1 / 0.5**2 + 6 / 5**2), rel=1e-12)
    trials = SamplingCurator(EventList(), SeededSampler(2), trials=2)
    with pytest.raises(InvalidParameter):
        learned_fused_lasso(dataset, trials, penalty=0.02, noise_multiplier=0.5)


@pytest.mark.parametrize("penalty", [0.01, 0.05, 0.1])
def test_learned_edges_are_those_of_the_optimal_inverse_covariance(penalty: float) -> None:
    """The optimum, by its conditions: with C = inverse of Θ, S_ij - C_ij = -penalty·sign(Θ_ij)."""
    rows = np.vstack([records(d=6)[0], np.eye(6)])
    rows[:, 1] += rows[:, 0]
    s = rows.T @ rows / len(rows)
    edges = inverse_covariance_edges(s, penalty=penalty)
    upper = [(i, j) for i in range(6) for j in range(i, 6)]

    def matrix(v: np.ndarray) -> np.ndarray:
        theta = np.zeros((6, 6))
        for (i, j), positive, negative in zip(upper, v[:21], v[21:], strict=True):
            theta[i, j] = theta[j, i] = positive - negative
        return theta

    weights = np.array([1.0 if i == j else 2.0 for i, j in upper])

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        sign, logdet = np.linalg.slogdet(matrix(v))
        if sign <= 0:
            return 1e9, np.zeros(42)
        slope = s - np.linalg.inv(matrix(v))
        smooth = weights * np.array([slope[i, j] for i, j in upper])
        value = float(np.sum(s * matrix(v))) - logdet + penalty * float(np.tile(weights, 2) @ v)
        return value, np.concatenate([smooth, -smooth]) + penalty * np.tile(weights, 2)

    start = np.array([float(i == j) for i, j in upper] + [0.0] * 21)
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * 42,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )
    theta = matrix(found.x)
    expected = [(i, j) for i, j in upper if i < j and abs(theta[i, j]) > 1e-6]
    assert edges == expected
    assert 0 < len(edges) < 15


def test_theorem_1_is_equation_8() -> None:
    alpha = log(1e3) / (0.7 * 0.2) + 1
    sigma_squared = 3.0**2 * alpha * 40 / (2 * 250**2 * 0.2 * 0.3)
    found = theorem_1_noise_multiplier(40, epsilon=0.2, delta=1e-3, mu=0.3)
    assert found * 3.0 / 250 == pytest.approx(sqrt(sigma_squared), rel=1e-14)


def test_bad_constraints_and_data_are_refused_before_anything_is_spent() -> None:
    for a, b, c in (
        (np.ones(3), None, None),
        (np.array([[1.0, np.nan]]), None, None),
        (np.ones((2, 2)), np.ones((3, 2)), None),
        (np.ones((2, 2)), np.zeros((2, 2)), None),
        (np.ones((2, 2)), None, np.ones(3)),
    ):
        with pytest.raises(InvalidParameter):
            Constraint(a, b, c)
    for edges, signs in (([(0, 2)], None), ([(0, 0)], None), ([(0, 1)], [0.5]), ([(0, 1)], [])):
        with pytest.raises(InvalidParameter):
            fused_lasso(2, edges, signs)
    ledger = EventList()
    rows, labels = records()
    two = AuditDataset(
        rows,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.arange(60) % 2,
        parties=("a", "b"),
    )
    for algorithm, dataset in ((BASE, two), (CentralisedDpAdmm(A3, 1, 1.0, 1.0), private())):
        for solver in (algorithm, PublishedCentralisedDpAdmm(algorithm)):
            with pytest.raises(InvalidParameter):
                solver.solve(dataset, SamplingCurator(ledger, SeededSampler(0)))
    with pytest.raises(InvalidParameter):
        learned_fused_lasso(
            two, SamplingCurator(ledger, SeededSampler(0)), penalty=0.1, noise_multiplier=None
        )
    assert not ledger.events
