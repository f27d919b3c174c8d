"""Laws of the algorithms that the papers compare with: DVP, M-ADMM, R-ADMM and DP-SGD.

1. Plan, run and replay emit the same events; a transcript replays to its run.
2. Sensitivities have a closed form under every relation, and totals are certified.
3. Published perturbed minimisers are unprotected events; without them the algorithm raises.
4. Without noise the optimum of an independent solver is found.
5. Noise in front of a minimiser has the published density, and for linear losses it is noise behind
   it; the bound for exact minimisers holds for their densities.
6. Bad input is refused before anything is spent.
"""

from dataclasses import replace
from fractions import Fraction
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq, root
from tests.parameters import slow

from dpledger.accounting.accountants import RdpAccountant
from dpledger.accounting.composition import composed
from dpledger.accounting.guarantees import guarantee
from dpledger.audits.curators import RecordingCurator, ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    ClassLabels,
    DataShape,
    EventList,
    FixedBatch,
    GaussianStep,
    InvalidParameter,
    PlanningCurator,
    Poisson,
    PoissonSampled,
    PrivateDataset,
    SampledWithoutReplacement,
    SamplingCurator,
    SeededSampler,
    UnprotectedRelease,
    UnprotectedReleaseError,
)
from dpledger.solvers import (
    ConstantSteps,
    DpSgd,
    IterationDecay,
    LinearLoss,
    Logistic,
    MAdmm,
    Multinomial,
    NonsmoothSteps,
    PrAdmm,
    PublishedDvpAdmm,
    PvpAdmm,
    RAdmm,
    complete,
    exact_minimiser_epsilon,
    five_agents,
    hub,
    ring,
)
from dpledger.solvers.decentralised import agent_duals, first_state
from dpledger.solvers.dual_perturbation import perturbing_noise

ZERO, REPLACE, ADD = Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE
EVERY = (ZERO, REPLACE, ADD)
PARTIES, RECORDS, FEATURES = ("a", "b", "c", "d", "e"), 60, 3
COUNT = RECORDS // len(PARTIES)
NETWORK = PrAdmm(five_agents(), 5, 5.0)
M_ADMM, R_ADMM = MAdmm(NETWORK, 1.2), RAdmm(NETWORK, 1.0)
ALGORITHMS: dict[str, tuple[Any, tuple[Adjacency, ...]]] = {
    "dvp, published": (PublishedDvpAdmm(PvpAdmm(4, None), 0.1), EVERY),
    "dvp, repaired": (PvpAdmm(4, 5.0), EVERY),
    "m-admm": (M_ADMM, EVERY),
    "r-admm": (R_ADMM, EVERY),
    "sgd": (DpSgd(4, 5.0, ConstantSteps(0.5)), EVERY),
    "sgd, cut": (DpSgd(4, 5.0, NonsmoothSteps(1.0, 3.0), clip=0.3), EVERY),
    "sgd, poisson": (DpSgd(4, 5.0, ConstantSteps(0.5), Poisson(0.3), clip=0.3), (ZERO, ADD)),
    "sgd, batch": (DpSgd(4, 5.0, ConstantSteps(0.5), FixedBatch(3)), (REPLACE,)),
}
CASES = [(name, adjacency) for name in ALGORITHMS for adjacency in ALGORITHMS[name][1]]
PUBLISHED = [name for name in ALGORITHMS if "published" in name]


def records() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(RECORDS, FEATURES))
    # inside the bound, so that nothing is cut and the oracle sees the same rows
    rows /= np.maximum(1.0, 1.001 * np.linalg.norm(rows, axis=1, keepdims=True))
    labels = np.where(rows[:, 0] + 0.5 * rng.normal(size=RECORDS) > 0, 1.0, -1.0)
    return rows, labels, np.arange(RECORDS) % len(PARTIES)


def private(adjacency: Adjacency = REPLACE) -> PrivateDataset:
    rows, labels, party_of = records()
    return AuditDataset(
        rows,
        labels,
        adjacency=adjacency,
        row_bound=1.0,
        party_of=party_of,
        parties=PARTIES,
        n_min=COUNT if adjacency is ADD else None,
    )


def quiet() -> SamplingCurator:
    return SamplingCurator(EventList(), SeededSampler(0))


def planned(solver: Any, shape: DataShape) -> list[Any]:
    plan = PlanningCurator()
    solver.solve(PrivateDataset.planned(shape), plan)
    return [event.mechanism for event in plan.events]


@pytest.mark.parametrize(("name", "adjacency"), CASES)
def test_plan_run_and_replay_emit_equal_events(name: str, adjacency: Adjacency) -> None:
    solver, dataset = ALGORITHMS[name][0], private(adjacency)
    plan, ran = PlanningCurator(), EventList()
    solver.solve(PrivateDataset.planned(dataset.shape), plan)
    run = RecordingCurator(ran, SeededSampler(3), trials=2)
    state = solver.solve(dataset, run)
    replay = ReplayCurator(run.transcript, uniforms=run.uniforms, differing=4)
    replayed = solver.solve(dataset, replay)
    assert plan.events == ran.events == [message.event for message in run.transcript]
    assert replay.log_density.shape == (2,)
    assert np.all(np.isfinite(replay.log_density))
    assert np.array_equal(replayed.model, state.model)
    assert np.array_equal(replayed.messages, state.messages)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in PUBLISHED])
def test_trials_are_independent_runs_of_one_algorithm(name: str) -> None:
    solver, (adjacency, *_) = ALGORITHMS[name]
    run = RecordingCurator(EventList(), SeededSampler(3), trials=3)
    together = solver.solve(private(adjacency), run)
    assert len({row.tobytes() for row in together.model}) == 3
    for trial in range(3):
        messages = [m._replace(content=m.content[trial]) for m in run.transcript]
        uniforms = [uniform[trial] for uniform in run.uniforms]
        alone = solver.solve(
            private(adjacency), ReplayCurator(messages, uniforms=uniforms, differing=4)
        )
        assert np.allclose(alone.model, together.model[trial], rtol=1e-12, atol=1e-14)


# --- sensitivities and totals -------------------------------------------------------------------

SHAPE = DataShape(PARTIES, 400, FEATURES, 1.0, REPLACE)


@pytest.mark.parametrize(("adjacency", "share"), [(REPLACE, 2.0), (ZERO, 1.0), (ADD, 2.0)])
def test_m_admm_sensitivities_fall_as_penalties_grow(adjacency: Adjacency, share: float) -> None:
    settings = replace(NETWORK, regularisation=0.05, tolerance=1e-5)
    steps = planned(MAdmm(settings, 1.2), replace(SHAPE, adjacency=adjacency))
    for k, step in enumerate(steps):
        modulus = 2 * 0.5 * 1.2**k * 2 + 2 * 0.05 / 5
        derived = share / (400 * modulus) + 2e-5 / modulus
        assert step.sensitivity.value == pytest.approx(derived, rel=1e-12)
        assert step.noise_std == steps[0].noise_std
    assert steps[0].noise_std == pytest.approx(5.0 * steps[0].sensitivity.value, rel=1e-12)


@pytest.mark.parametrize(("adjacency", "share"), [(REPLACE, 2.0), (ZERO, 1.0), (ADD, 2.0)])
def test_r_admm_pays_for_odd_rounds_only(adjacency: Adjacency, share: float) -> None:
    plan = PlanningCurator()
    shape = replace(SHAPE, adjacency=adjacency)
    R_ADMM.solve(PrivateDataset.planned(shape), plan)
    assert [event.context.round for event in plan.events] == [1, 3, 5]
    for event in plan.events:
        assert isinstance(event.mechanism, GaussianStep)
        derived = share / (400 * 2) + 2e-6 / 2
        assert event.mechanism.sensitivity.value == pytest.approx(derived, rel=1e-12)


@pytest.mark.parametrize(("adjacency", "share"), [(REPLACE, 2), (ZERO, 1), (ADD, 1)])
@pytest.mark.parametrize(("clip", "bound"), [(None, 1.0), (0.3, 0.3), (7.0, 1.0)])
def test_sgd_sums_move_by_one_cut_gradient(
    adjacency: Adjacency, share: int, clip: float | None, bound: float
) -> None:
    shape = replace(SHAPE, adjacency=adjacency)
    # rounding costs less than a 1e-6th
    full = planned(DpSgd(1, 5.0, ConstantSteps(0.5), clip=clip), shape)[0]
    assert full.sensitivity.value == pytest.approx(share * bound / 400, rel=1e-6)
    scheme = FixedBatch(20) if adjacency is REPLACE else Poisson(0.05)
    step = planned(DpSgd(1, 5.0, ConstantSteps(0.5), scheme, clip=clip), shape)[0]
    assert isinstance(step, SampledWithoutReplacement | PoissonSampled)
    assert step.event.sensitivity.value == pytest.approx(share * bound / 20, rel=1e-6)
    assert isinstance(step.event, GaussianStep)
    assert step.event.noise_std == pytest.approx(5.0 * share * bound / 20, rel=1e-6)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The zero of the hockey-stick curve of a mu-GDP mechanism, in doubles."""

    def excess(epsilon: float) -> float:
        lost = stats.norm.cdf(-epsilon / mu + mu / 2)
        return float(lost - exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2) - delta)

    return float(brentq(excess, 0.0, 50.0, xtol=1e-13))


@pytest.mark.parametrize("adjacency", EVERY)
@pytest.mark.parametrize(
    ("solver", "mu"),
    [
        (MAdmm(NETWORK, 1.2), sqrt(sum(1.44**-k for k in range(5))) / 5),
        (RAdmm(NETWORK, 1.0), sqrt(3) / 5),
        (
            RAdmm(replace(NETWORK, schedule=IterationDecay(Fraction(1, 2))), 1.0),
            sqrt(1 + 2 * 3 / 2 + 4 * 5 / 2) / 5,
        ),
        (PvpAdmm(4, 5.0), sqrt(4) / 5),
        (DpSgd(9, 5.0, ConstantSteps(0.5), clip=0.3), sqrt(9) / 5),
    ],
    ids=["m-admm", "r-admm", "r-admm with a schedule", "dvp, repaired", "sgd"],
)
def test_totals_are_certified_under_every_relation(
    solver: Any, mu: float, adjacency: Adjacency
) -> None:
    plan = PlanningCurator()
    solver.solve(PrivateDataset.planned(replace(SHAPE, adjacency=adjacency)), plan)
    found = guarantee(plan.events, delta=1e-5, adjacency=adjacency)
    assert found.grade.value == "enclosed"
    assert found.epsilon.upper_float == pytest.approx(gaussian_epsilon(mu, 1e-5), rel=1e-9)


@pytest.mark.parametrize(
    ("scheme", "adjacency"),
    [(Poisson(0.05), ZERO), (Poisson(0.05), ADD), (FixedBatch(20), REPLACE)],
)
def test_a_hidden_sample_costs_less_than_all_records(scheme: Any, adjacency: Adjacency) -> None:
    epsilons = []
    for sampled in (scheme, None):
        plan = PlanningCurator()
        solver = DpSgd(8, 1.0, ConstantSteps(0.5), sampled)
        solver.solve(PrivateDataset.planned(replace(SHAPE, adjacency=adjacency)), plan)
        accountant = RdpAccountant.over(composed(plan.events))
        epsilons.append(accountant.epsilon(1e-5).upper_float)
        assert accountant.grade.value == "enclosed"
    assert 0 < epsilons[0] < 0.5 * epsilons[1] < inf


@pytest.mark.slow
def test_poisson_sgd_costs_what_another_accountant_says() -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    plan = PlanningCurator()
    solver = DpSgd(8, 1.0, ConstantSteps(0.5), Poisson(0.05), clip=0.3)
    solver.solve(PrivateDataset.planned(replace(SHAPE, adjacency=ADD)), plan)
    found = guarantee(plan.events, delta=1e-5).epsilon.upper_float
    step = pld.from_gaussian_mechanism(1.0, sampling_prob=0.05, value_discretization_interval=1e-3)
    peer = step.self_compose(8).get_epsilon_for_delta(1e-5)
    assert found == pytest.approx(peer, rel=5e-3)


@pytest.mark.parametrize("scheme", [None, Poisson(0.5)])
def test_gradients_are_cut_record_by_record(scheme: Poisson | None) -> None:
    rows, labels, party_of = records()
    model = np.array([0.5, -1.0, 2.0])
    curator = RecordingCurator(EventList(), SeededSampler(5))
    solver = DpSgd(1, 0.0, ConstantSteps(1.0), scheme, clip=0.2)
    sensitive = solver.party_gradients(private(ZERO), curator, model)
    found = curator.release(sensitive, round=1, release="gradient", noise_std=0.0)
    drawn = np.ones(RECORDS) if scheme is None else curator.uniforms[0] <= 0.5
    expected, longest = np.zeros((5, FEATURES)), 0.0
    for row, label, party, inside in zip(rows, labels, party_of, drawn, strict=True):
        gradient = -label * row / (1 + np.exp(label * (row @ model)))
        size = float(np.linalg.norm(gradient))
        longest = max(longest, size)
        expected[party] += inside * gradient * min(1.0, 0.2 / size)
    assert longest > 0.5
    share = 1.0 if scheme is None else 0.5
    # rows are cut a millionth below the norm
    assert np.allclose(found, expected / (share * COUNT), rtol=0, atol=5e-6)


# --- what was published ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLISHED)
def test_perturbed_minimisers_are_unprotected_and_their_noise_is_free(name: str) -> None:
    mechanisms = planned(ALGORITHMS[name][0], SHAPE)
    assert {type(m) for m in mechanisms[0::2]} == {GaussianStep}
    assert {m.sensitivity.squared for m in mechanisms[0::2]} == {0}
    assert {type(m) for m in mechanisms[1::2]} == {UnprotectedRelease}
    plan = PlanningCurator()
    ALGORITHMS[name][0].solve(PrivateDataset.planned(SHAPE), plan)
    assert guarantee(plan.events, delta=1e-5).epsilon.upper_float == inf
    free = [event for event in plan.events if isinstance(event.mechanism, GaussianStep)]
    assert guarantee(free, delta=1e-5).epsilon.upper_float == 0.0


def test_without_their_unprotected_release_perturbed_minimisers_cannot_be_used() -> None:
    start = first_state(private(), five_agents(), Logistic())
    local: Any = NETWORK.agent_step(private(), start)
    with pytest.raises(UnprotectedReleaseError):
        agent_duals(local, start.duals, five_agents(), 0.5)
    with pytest.raises(UnprotectedReleaseError):
        np.mean(local - start.duals / 0.1, axis=-2)


def test_perturbing_noise_has_the_published_density() -> None:
    # Kolmogorov-Smirnov at a false-alarm rate of 1e-3 for each of two, with a fixed seed
    curator = SamplingCurator(EventList(), SeededSampler(8), trials=1000)
    noise = perturbing_noise(private(), curator, Logistic(), scale=0.2, round=1)
    assert noise.shape == (1000, 5, FEATURES)
    lengths = np.linalg.norm(noise, axis=-1).ravel()
    assert stats.kstest(lengths, stats.gamma(FEATURES, scale=0.2).cdf).pvalue > 1e-3
    # Archimedes: a coordinate of a uniform direction in space is uniform
    heights = (noise[..., 0].ravel() / lengths + 1) / 2
    assert stats.kstest(heights, stats.uniform.cdf).pvalue > 1e-3


def test_for_linear_losses_noise_in_front_is_noise_behind() -> None:
    twin = PvpAdmm(1, None, tolerance=1e-10, loss=LinearLoss())
    run = RecordingCurator(EventList(), SeededSampler(2))
    perturbed = PublishedDvpAdmm(twin, 0.3).solve(private(), run).messages
    again = ReplayCurator(run.transcript)
    noise = perturbing_noise(private(), again, LinearLoss(), scale=0.3, round=1)
    plain = twin.solve(private(), quiet()).messages
    modulus = twin.penalty + twin.regularisation
    assert np.linalg.norm(noise) > 0.1
    assert np.allclose(perturbed, plain + noise / modulus, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("adjacency", "share"), [(REPLACE, 2.0), (ZERO, 1.0)])
def test_the_bound_for_exact_minimisers_has_its_closed_form(
    adjacency: Adjacency, share: float
) -> None:
    shape = replace(SHAPE, adjacency=adjacency)
    found = exact_minimiser_epsilon(shape, Logistic(), modulus=0.1, noise_scale=0.05)
    assert found == pytest.approx(share / (400 * 0.05) + log(1 + 0.25 / (400 * 0.1)), rel=1e-12)


def log_density(points: np.ndarray, rows: np.ndarray, labels: np.ndarray, scale: float) -> Any:
    """Of the exact minimiser in the plane, up to a constant, by change of variables."""
    modulus, slopes = 0.05, -labels / (1 + np.exp(labels * (points @ rows.T)))
    noise = -(slopes @ rows) / len(rows) - modulus * points
    bends = np.abs(slopes) * (1 - np.abs(slopes))
    hessian = np.einsum("pn,ni,nj->pij", bends, rows, rows) / len(rows) + modulus * np.eye(2)
    return np.log(np.linalg.det(hessian)) - np.linalg.norm(noise, axis=-1) / scale


@pytest.mark.parametrize("adjacency", [REPLACE, ZERO])
def test_densities_of_exact_minimisers_stay_within_the_bound(adjacency: Adjacency) -> None:
    shape = DataShape(("one",), 3, 2, 1.0, adjacency)
    bound = exact_minimiser_epsilon(shape, Logistic(), modulus=0.05, noise_scale=0.4)
    grid = np.linspace(-30, 30, 121)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    rng, worst = np.random.default_rng(4), 0.0
    for _ in range(20):
        rows = rng.normal(size=(3, 2))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        labels, other = rng.choice([-1.0, 1.0], 3), rows.copy()
        angle = rng.uniform(0, 2 * np.pi)
        other[0] = 0.0 if adjacency is ZERO else (np.cos(angle), np.sin(angle))
        one, two = (log_density(points, data, labels, 0.4) for data in (rows, other))
        worst = max(worst, float(np.abs(one - two).max()))
    assert 0.4 * bound < worst <= bound


@pytest.mark.parametrize("classes", [2, 4, 10])
@pytest.mark.parametrize("modulus", [1e-3, 1.0, 30.0])
def test_a_record_of_several_classes_bends_the_density_in_several_directions(
    classes: int, modulus: float
) -> None:
    shape = DataShape(("one",), 1, 1, 1.0, ZERO, ClassLabels(classes))
    loss = Multinomial(classes)
    bound = exact_minimiser_epsilon(shape, loss, modulus=modulus, noise_scale=1e9)
    # the density of the minimiser 0 with the only record, and with it nulled; noise hides nothing
    share = np.full(classes, 1 / classes)
    hessian = np.diag(share) - np.outer(share, share) + modulus * np.eye(classes)
    ratio = np.linalg.slogdet(hessian)[1] - classes * log(modulus)
    assert ratio - 1e-8 <= bound


def test_an_even_round_of_r_admm_linearises_at_the_true_gradient() -> None:
    settings = replace(NETWORK, rounds=2, noise_multiplier=0.0, tolerance=1e-12, regularisation=0.3)
    history: list[Any] = []
    solver = RAdmm(settings, 0.7)
    state = solver.solve(private(), quiet(), observe=lambda _, public: history.append(public))
    x, duals = history[0].messages, history[0].duals
    gradient = private().mean_gradient(Logistic(), x)
    words = quiet().release(gradient, round=1, release="check", noise_std=0.0) + 2 * 0.3 / 5 * x
    network, weights = settings.network, 2 * 0.5 * settings.network.degrees[:, None]
    near = network.degrees[:, None] * x + network.adjacency.toarray() @ x
    expected = (0.7 * x + 0.5 * near - duals - words) / (0.7 + weights)
    assert np.allclose(state.messages, expected, rtol=0, atol=1e-9)


# --- limits ---------------------------------------------------------------------------------------


def optimum(regularisation: float) -> np.ndarray:
    """The zero of the gradient of mean loss + regularisation·|w|²/2, by an independent solver."""
    rows, labels, _ = records()

    def gradient(w: np.ndarray) -> np.ndarray:
        slopes = -labels / (1 + np.exp(labels * (rows @ w)))
        return np.asarray(rows.T @ slopes / RECORDS + regularisation * w)

    found: np.ndarray = root(gradient, np.zeros(FEATURES), tol=1e-14).x
    assert np.linalg.norm(gradient(found)) < 1e-12
    return found


STAR = PvpAdmm(300, None, tolerance=1e-9, regularisation=0.05)
LONG = PrAdmm(five_agents(), 100, 0.0, penalty=0.05, regularisation=0.125, tolerance=1e-8)


@pytest.mark.parametrize(
    "solver",
    [
        *slow(PublishedDvpAdmm(STAR, 0.0)),
        MAdmm(LONG, 1.001),
        MAdmm(replace(LONG, network=ring(5)), 1.001),
        RAdmm(LONG, 0.3),
        RAdmm(replace(LONG, network=hub(5)), 0.3),
        RAdmm(replace(LONG, network=complete(5)), 0.3),
        DpSgd(600, 0.0, ConstantSteps(2.0), regularisation=0.05),
        DpSgd(600, 0.0, ConstantSteps(2.0), regularisation=0.05, clip=2.0),
    ],
    ids=[
        "dvp",
        "m-admm",
        "m-admm, ring",
        "r-admm",
        "r-admm, star",
        "r-admm, complete",
        "sgd",
        "sgd, nothing cut",
    ],
)
def test_without_noise_the_optimum_of_an_independent_solver_is_found(solver: Any) -> None:
    state = solver.solve(private(), quiet())
    best = optimum(0.05)
    assert np.linalg.norm(state.model - best) <= 1e-6 * np.linalg.norm(best)


def test_decreasing_steps_keep_the_theorem_s_bound_on_average() -> None:
    # Huang et al. 2020, Theorem 3's steps: mean regret <= sqrt(2)·distance·gradient bound/sqrt(t)
    rows, labels, _ = records()
    best = optimum(0.0)
    distance, rounds = 1.2 * float(np.linalg.norm(best)), 400
    seen: list[np.ndarray] = [np.zeros(FEATURES)]
    solver = DpSgd(rounds, 0.0, NonsmoothSteps(1.0, distance), regularisation=0.0)
    solver.solve(private(), quiet(), observe=lambda _, state: seen.append(state.model))

    def objective(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -labels * (rows @ w)).mean())

    average = np.mean(seen[:-1], axis=0)
    assert objective(average) - objective(best) <= sqrt(2) * distance / sqrt(rounds)
    assert objective(average) < objective(seen[0]) - 0.05


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MAdmm(NETWORK, 0.9), "growth"),
        (lambda: MAdmm(NETWORK, float("nan")), "growth"),
        (lambda: MAdmm(NETWORK, inf), "growth"),
        (lambda: MAdmm(replace(NETWORK, rounds=500), 10.0), "penalty"),
        (lambda: MAdmm(replace(NETWORK, threshold=1.0), 1.0), "threshold"),
        (lambda: RAdmm(replace(NETWORK, threshold=1.0), 1.0), "threshold"),
        (lambda: RAdmm(NETWORK, 0.0), "proximity"),
        (lambda: PublishedDvpAdmm(STAR, -1.0), "noise_scale"),
        (lambda: DpSgd(0, 1.0, ConstantSteps(1.0)), "rounds"),
        (lambda: DpSgd(1, -1.0, ConstantSteps(1.0)), "noise_multiplier"),
        (lambda: DpSgd(1, 1.0, ConstantSteps(1.0), clip=0.0), "clip"),
        (lambda: DpSgd(1, 1.0, ConstantSteps(1.0), regularisation=-1.0), "regularisation"),
    ],
)
def test_bad_settings_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        make()


@pytest.mark.parametrize(
    ("solver", "adjacency", "words"),
    [
        (MAdmm(replace(NETWORK, network=ring(4)), 1.0), REPLACE, "number of parties, 5"),
        (RAdmm(replace(NETWORK, network=ring(4)), 1.0), REPLACE, "number of parties, 5"),
        (DpSgd(1, 1.0, ConstantSteps(1.0), Poisson(0.1)), REPLACE, "zero-out"),
        (DpSgd(1, 1.0, ConstantSteps(1.0), FixedBatch(3)), ZERO, "replace-one"),
        (DpSgd(1, 1.0, ConstantSteps(1.0), FixedBatch(12)), REPLACE, "batch"),
    ],
)
def test_what_does_not_fit_the_data_is_refused_before_anything_is_spent(
    solver: Any, adjacency: Adjacency, words: str
) -> None:
    events = EventList()
    with pytest.raises(InvalidParameter, match=words):
        solver.solve(private(adjacency), SamplingCurator(events, SeededSampler(0)))
    assert events.events == []


def test_the_bound_for_exact_minimisers_refuses_what_it_does_not_cover() -> None:
    with pytest.raises(InvalidParameter, match="adjacency"):
        exact_minimiser_epsilon(
            replace(SHAPE, adjacency=ADD), Logistic(), modulus=1.0, noise_scale=1.0
        )
    for wrong in ({"modulus": 0.0, "noise_scale": 1.0}, {"modulus": 1.0, "noise_scale": 0.0}):
        with pytest.raises(InvalidParameter):
            exact_minimiser_epsilon(SHAPE, Logistic(), **wrong)
