"""Laws of PS-ADMM.

1. Plan, run and replay emit the same events, in every variant; a transcript replays to its run.
2. Events are those of claims: a mixture 2G/M + 4G as published, Gaussian and sampled as repaired.
3. The parts of the mixture are nearly attained, and the paper's 3G is exceeded.
4. Printed weights are no convex combination; corrected ones are.
5. Without noise the optimum of an independent solver is found.
"""

from dataclasses import replace
from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest
from scipy.optimize import root
from tests.parameters import slow

from dpledger.accounting.gaussian.exact import epsilon_from_delta, mu_from_epsilon_delta
from dpledger.audits.curators import RecordingCurator, ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    Curator,
    DataShape,
    EventList,
    FixedBatch,
    GaussianMixtureStep,
    GaussianStep,
    InvalidParameter,
    PlanningCurator,
    Poisson,
    PoissonSampled,
    PrivateDataset,
    RealLabels,
    SampledWithoutReplacement,
    SamplingCurator,
    SeededSampler,
    Sensitivity,
)
from dpledger.solvers import (
    L1,
    ConvexWeights,
    Huber,
    ModelSolver,
    PrintedWeights,
    PsAdmm,
    PublishedPsAdmm,
    SampledPsAdmm,
    StochasticRounds,
    theorem_2_noise_std,
)

ZERO, REPLACE, ADD = Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE
PARTIES, RECORDS, FEATURES = ("a", "b", "c"), 30, 3
SETTINGS = StochasticRounds(3, 4, 0.5, penalty=0.5, regularisation=0.1)
ALGORITHMS: dict[str, tuple[ModelSolver, Adjacency]] = {
    "published": (PublishedPsAdmm(SETTINGS, 0.5), REPLACE),
    "published, corrected weights": (
        PublishedPsAdmm(SETTINGS, 0.5, weights=ConvexWeights()),
        REPLACE,
    ),
    "full gradients": (PsAdmm(SETTINGS, 5.0), REPLACE),
    "full gradients, zero-out": (PsAdmm(SETTINGS, 5.0), ZERO),
    "full gradients, l1": (PsAdmm(replace(SETTINGS, regulariser=L1()), 5.0), ADD),
    "poisson, zero-out": (SampledPsAdmm(SETTINGS, Poisson(0.2), 0.5, 5.0, 1.5), ZERO),
    "poisson, add-remove": (SampledPsAdmm(SETTINGS, Poisson(0.2), 0.5, 5.0, 1.5), ADD),
    "batch, replace": (SampledPsAdmm(SETTINGS, FixedBatch(2), 0.5, 5.0, 1.5), REPLACE),
}


def records() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    rows = rng.normal(size=(RECORDS, FEATURES))
    # inside the bound, so that nothing is cut and the oracle sees the same rows
    rows /= np.maximum(1.0, 1.001 * np.linalg.norm(rows, axis=1, keepdims=True))
    return rows, np.where(rows[:, 0] + 0.5 * rng.normal(size=RECORDS) > 0, 1.0, -1.0)


def private(adjacency: Adjacency) -> PrivateDataset:
    rows, labels = records()
    return AuditDataset(
        rows,
        labels,
        adjacency=adjacency,
        row_bound=1.0,
        party_of=np.arange(RECORDS) % 3,
        parties=PARTIES,
        n_min=8 if adjacency is ADD else None,
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_plan_run_and_replay_emit_equal_events(name: str) -> None:
    solver, adjacency = ALGORITHMS[name]
    dataset, plan, ran = private(adjacency), PlanningCurator(), EventList()
    solver.solve(PrivateDataset.planned(dataset.shape), plan)
    run = RecordingCurator(ran, SeededSampler(3), trials=2)
    state = solver.solve(dataset, run)
    replay = ReplayCurator(run.transcript, uniforms=run.uniforms, differing=4)
    replayed = solver.solve(dataset, replay)
    assert plan.events == ran.events == [message.event for message in run.transcript]
    assert replay.log_density.shape == (2,)
    assert np.array_equal(replayed.model, state.model)
    assert np.array_equal(replayed.messages, state.messages)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_trials_are_independent_runs_of_one_algorithm(name: str) -> None:
    solver, adjacency = ALGORITHMS[name]
    run = RecordingCurator(EventList(), SeededSampler(3), trials=3)
    together = solver.solve(private(adjacency), run)
    assert together.model.shape == (3, FEATURES)
    for trial in range(3):
        messages = [m._replace(content=m.content[trial]) for m in run.transcript]
        uniforms = [uniform[trial] for uniform in run.uniforms]
        alone = solver.solve(
            private(adjacency), ReplayCurator(messages, uniforms=uniforms, differing=4)
        )
        assert np.allclose(alone.model, together.model[trial], rtol=1e-12, atol=1e-14)


def before_lattice(sensitivity: Sensitivity) -> Fraction:
    """Return the squared bound of a released value before its rounding, on a lattice too."""
    held = sensitivity.derivation.premises[0]
    assert (sensitivity.derivation.rule, held.rule) == ("lattice", "computed")
    return held.premises[0].squared


def planned(solver: ModelSolver, shape: DataShape) -> list[object]:
    plan = PlanningCurator()
    solver.solve(PrivateDataset.planned(shape), plan)
    return [event.mechanism for event in plan.events]


# M = 6838 of Adult over 5 providers; K = S = 50 are assumed, the paper gives neither
PAPER = DataShape(("provider",), 6838, 4, 1.0, REPLACE)
EXPERIMENT = StochasticRounds(50, 50, 0.5)


def test_published_steps_are_mixtures_of_the_full_and_the_sampled_shift() -> None:
    found = planned(PublishedPsAdmm(SETTINGS, 0.25), PAPER)
    assert len(found) == 3 * 4
    for step in found:
        assert isinstance(step, GaussianMixtureStep)
        assert step.hides_sample
        assert before_lattice(step.constant) == Fraction(2, 6838) ** 2
        assert before_lattice(step.sampled) == 16
        assert step.noise_std == 0.25
        assert 0 <= Fraction(step.rate) - Fraction(1, 6838) < Fraction(1, 2**60)


def test_theorem_2_noise_is_the_papers_figure() -> None:
    found = theorem_2_noise_std(EXPERIMENT, PAPER, epsilon=0.5, delta=1e-3, constant=1.0)
    assert found == pytest.approx(0.03844, rel=1e-3)
    larger = theorem_2_noise_std(EXPERIMENT, PAPER, epsilon=0.5, delta=1e-3, constant=1000.0)
    assert larger == pytest.approx(1.215456, rel=1e-6)


def full_gradient_epsilon(noise_std: float, shape: DataShape) -> float:
    unit = 2 / 6838 if shape.adjacency is REPLACE else 1 / 6838
    found = planned(PsAdmm(EXPERIMENT, noise_std / unit), shape)
    assert all(isinstance(step, GaussianStep) for step in found)
    mu_squared = sum(
        (s.sensitivity.squared / Fraction(s.noise_std) ** 2 for s in found), Fraction(0)
    )
    return epsilon_from_delta(mu_squared=mu_squared, delta=1e-3).upper_float


def test_the_full_gradient_alone_costs_what_linear_losses_show() -> None:
    noise = theorem_2_noise_std(EXPERIMENT, PAPER, epsilon=0.5, delta=1e-3, constant=4.0)
    assert full_gradient_epsilon(noise, PAPER) == pytest.approx(0.4276422127, rel=1e-9)
    needed = mu_from_epsilon_delta(epsilon=0.5, delta=1e-3).lower_float
    smallest = 4 * 0.5**2 / (needed**2 * log(1e3))
    assert smallest == pytest.approx(3.0767, rel=1e-4)


@pytest.mark.parametrize(("adjacency", "noise"), [(REPLACE, 0.0674192), *slow((ZERO, 0.0337096))])
def test_full_gradients_need_the_noise_of_the_repair(adjacency: Adjacency, noise: float) -> None:
    shape = replace(PAPER, adjacency=adjacency)
    assert full_gradient_epsilon(noise, shape) == pytest.approx(0.5, rel=1e-5)


def test_sampled_repair_costs_a_snapshot_and_sampled_corrections_a_round() -> None:
    # claim PS-R: q = 0.01, z = 1.2, sigma_u = 2e-3, 50 snapshots and 2450 corrections
    shape = replace(PAPER, adjacency=ZERO)
    solver = SampledPsAdmm(EXPERIMENT, Poisson(0.01), 0.3, 2e-3 * 6838, 1.2)
    found = planned(solver, shape)
    snapshots = [step for step in found if isinstance(step, GaussianStep)]
    corrections = [step for step in found if isinstance(step, PoissonSampled)]
    assert (len(snapshots), len(corrections), len(found)) == (50, 2450, 2500)
    assert before_lattice(snapshots[0].sensitivity) == Fraction(1, 6838) ** 2
    # of it, rounding costs less than a 1e-8th
    assert snapshots[0].noise_std == pytest.approx(2e-3, rel=1e-8)
    step = corrections[0]
    assert step.rate == 0.01
    assert 1 - 1e-12 <= step.event.sensitivity.value / (0.3 / 68.38) < 1 + 1e-6
    assert isinstance(step.event, GaussianStep)
    assert step.event.noise_std == pytest.approx(1.2 * step.event.sensitivity.value, rel=1e-9)


def test_the_sampled_repair_costs_the_published_example_by_another_accountant() -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    shape = replace(PAPER, adjacency=ZERO)
    found = planned(SampledPsAdmm(EXPERIMENT, Poisson(0.01), 0.3, 2e-3 * 6838, 1.2), shape)
    first, second = found[0], found[1]
    assert isinstance(first, GaussianStep)
    assert isinstance(second, PoissonSampled)
    ratio, sampled_ratio = (
        step.noise_std / step.sensitivity.value for step in (first, second.event)
    )
    grid = {"value_discretization_interval": 1e-3}
    snapshots = pld.from_gaussian_mechanism(ratio, **grid).self_compose(50)
    corrections = pld.from_gaussian_mechanism(
        sampled_ratio, sampling_prob=second.rate, **grid
    ).self_compose(2450)
    total = snapshots.compose(corrections)
    # claim PS-R gives the add order; a guarantee needs the larger of both
    assert total._pmf_add.get_epsilon_for_delta(1e-3) == pytest.approx(2.045361657, rel=1e-3)
    assert total.get_epsilon_for_delta(1e-3) > 2.1


def test_under_replace_one_a_correction_moves_by_twice_its_bound() -> None:
    found = planned(SampledPsAdmm(SETTINGS, FixedBatch(7), 0.3, 5.0, 1.5), PAPER)
    sampled = [step for step in found if isinstance(step, SampledWithoutReplacement)]
    assert len(sampled) == 3 * 3
    assert (sampled[0].batch, sampled[0].records) == (7, 6838)
    assert sampled[0].event.sensitivity.value == pytest.approx(2 * 0.3 / 7, rel=1e-12)


def test_the_parts_of_the_mixture_are_attained_and_exceed_the_papers_3g() -> None:
    count = 50
    rows = np.zeros((count, 2))
    rows[0] = np.array([1.0, 0.05]) / sqrt(1.0025)
    dataset = AuditDataset(
        rows, np.zeros(count), adjacency=REPLACE, row_bound=1.001, label_domain=RealLabels(1.0)
    )
    neighbour = dataset.with_record(0, features=rows[0] * [-1, 1])
    # claim PS-1: a Huber loss with G = 1, saturated at both points
    v, anchor, loss = np.array([0.0, 100.0]), np.array([0.0, -100.0]), Huber(1.0, 1.0)

    def exact(data: PrivateDataset, curator: Curator) -> np.ndarray:
        sample = curator.sample(data, FixedBatch(1))
        correction = sample.sum_gradient(loss, v) - sample.sum_gradient(loss, anchor)
        value = correction + data.mean_gradient(loss, anchor)
        return curator.release(value, round=1, release="gradient", noise_std=0.0)[..., 0, :]

    one, two = (
        exact(data, SamplingCurator(EventList(), SeededSampler(1), trials=400))
        for data in (dataset, neighbour)
    )
    shifts = np.linalg.norm(one - two, axis=-1)
    distance = 2 / sqrt(1.0025)
    drawn = shifts > 1
    assert 0 < drawn.sum() < 40
    assert np.allclose(shifts[drawn], (2 - 1 / count) * distance, rtol=1e-12)
    assert shifts.max() > 3.9
    assert np.allclose(shifts[~drawn], distance / count, rtol=1e-12)
    assert shifts[~drawn].max() > 0.998 * 2 / count
    assert (2 - 1 / 6838) * distance == pytest.approx(3.994717, abs=5e-7)


@pytest.mark.parametrize(
    ("relative_step", "printed", "corrected"),
    [
        (0.05, 2 / 0.9, 1 - 0.4871794872),
        (0.1, 2.5, 0.5263157895),
        (0.25, 4.0, 0.5714285714),
        (0.4, 10.0, 1 - 0.375),
    ],
)
def test_weights_are_the_papers_and_the_corrected_ones(
    relative_step: float, printed: float, corrected: float
) -> None:
    assert PrintedWeights().of_next(relative_step) == pytest.approx(printed, rel=1e-12)
    assert ConvexWeights().of_next(relative_step) == pytest.approx(corrected, rel=1e-9)


def test_printed_weights_extrapolate_for_every_admissible_step_and_convex_ones_never() -> None:
    for relative_step in np.linspace(1e-6, 0.499, 200):
        assert 1 - PrintedWeights().of_next(float(relative_step)) < -1
    for relative_step in np.linspace(1e-6, 1.0, 200):
        assert 0.5 <= ConvexWeights().of_next(float(relative_step)) <= 1


def test_printed_average_is_the_mean_iterate_plus_an_extrapolation() -> None:
    # claim PS-4: x^{k+1} = mean of v^s for s < S, plus (kappa/S)(v^S - v^0)
    visited: list[np.ndarray] = []
    state = PsAdmm(SETTINGS, 1.0).solve(
        private(REPLACE), SamplingCurator(EventList(), SeededSampler(0))
    )

    def gradient(s: int, v: np.ndarray) -> np.ndarray:
        visited.append(v)
        return np.sin(v + s)

    averaged = SETTINGS.provider_steps(state, 4.0, gradient)
    pull = state.duals + SETTINGS.penalty * (visited[-1] - state.model)
    last = visited[-1] - SETTINGS.step_size * (np.sin(visited[-1] + 3) + pull)
    expected = np.mean(visited, axis=0) + 4.0 / 4 * (last - visited[0])
    assert np.allclose(averaged, expected, rtol=1e-12)


def optimum(regularisation: float) -> np.ndarray:
    """The zero of the gradient of sum_i mean loss + regularisation·|w|²/2."""
    rows, labels = records()

    def gradient(w: np.ndarray) -> np.ndarray:
        slopes = -labels / (1 + np.exp(labels * (rows @ w)))
        return 3 * rows.T @ slopes / RECORDS + regularisation * w

    found = root(gradient, np.zeros(FEATURES), tol=1e-14).x
    assert np.linalg.norm(gradient(found)) < 1e-12
    return found


SMALL_STEPS = replace(SETTINGS, rounds=800, step_size=0.2)


@pytest.mark.parametrize(
    ("solver", "adjacency"),
    [
        (PsAdmm(replace(SETTINGS, rounds=300), 0.0), REPLACE),
        *slow(
            (PsAdmm(SMALL_STEPS, 0.0, weights=PrintedWeights()), REPLACE),
            (SampledPsAdmm(replace(SETTINGS, rounds=800), Poisson(0.5), 10.0, 0.0, 0.0), ZERO),
            (PublishedPsAdmm(SMALL_STEPS, 0.0), REPLACE),
        ),
    ],
    ids=["full gradients", "printed weights", "sampled corrections", "published"],
)
def test_without_noise_the_optimum_of_an_independent_solver_is_found(
    solver: ModelSolver, adjacency: Adjacency
) -> None:
    state = solver.solve(private(adjacency), SamplingCurator(EventList(), SeededSampler(0)))
    best = optimum(0.1)
    assert np.linalg.norm(state.model - best) <= 1e-6 * np.linalg.norm(best)
    assert np.linalg.norm(state.messages - best, axis=-1).max() <= 1e-6 * np.linalg.norm(best)


def test_printed_weights_diverge_at_an_admissible_step_where_convex_ones_converge() -> None:
    settings = replace(SETTINGS, rounds=100)
    assert settings.step_size * settings.smoothness(PAPER) == 0.375
    sizes = [
        np.linalg.norm(
            PsAdmm(settings, 0.0, weights=weights)
            .solve(private(REPLACE), SamplingCurator(EventList(), SeededSampler(0)))
            .model
        )
        for weights in (PrintedWeights(), ConvexWeights())
    ]
    assert sizes[0] > 1e6
    assert sizes[1] < 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 0}, "rounds"),
        ({"inner_steps": 0}, "inner_steps"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": float("nan")}, "step_size"),
        ({"penalty": 0.0}, "penalty"),
        ({"regularisation": -1.0}, "regularisation"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        replace(SETTINGS, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("solver", "adjacency", "words"),
    [
        (PublishedPsAdmm(SETTINGS, 1.0), ZERO, "replace-one"),
        (SampledPsAdmm(SETTINGS, Poisson(0.2), 0.5, 5.0, 1.5), REPLACE, "zero-out"),
        (SampledPsAdmm(SETTINGS, FixedBatch(10), 0.5, 5.0, 1.5), REPLACE, "batch"),
        (PublishedPsAdmm(replace(SETTINGS, step_size=0.7), 1.0), REPLACE, "1/2"),
        (PsAdmm(replace(SETTINGS, step_size=1.4), 1.0), REPLACE, "step_size"),
    ],
)
def test_what_has_no_rule_or_no_average_is_refused(
    solver: ModelSolver, adjacency: Adjacency, words: str
) -> None:
    with pytest.raises(InvalidParameter, match=words):
        solver.solve(private(adjacency), SamplingCurator(EventList(), SeededSampler(0)))


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_bad_noise_is_refused(bad: float) -> None:
    for make in (
        lambda: PublishedPsAdmm(SETTINGS, bad),
        lambda: PsAdmm(SETTINGS, bad),
        lambda: SampledPsAdmm(SETTINGS, Poisson(0.2), 1.0, bad, 1.0),
        lambda: SampledPsAdmm(SETTINGS, Poisson(0.2), 1.0, 1.0, bad),
        lambda: SampledPsAdmm(SETTINGS, Poisson(0.2), bad, 1.0, 1.0),
    ):
        with pytest.raises(InvalidParameter):
            make()
