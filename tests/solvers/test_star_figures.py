"""The star paper's public figures (claims H-1 to H-R), computed from planned events.

Every figure is obtained from the parameters that stand beside it: the algorithm is planned, its
events are priced.
"""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest

from dpledger.accounting.conversions import epsilon_from_moments
from dpledger.accounting.gaussian.exact import delta_from_epsilon
from dpledger.accounting.guarantees import Guarantee, guarantee
from dpledger.accounting.planning import calibrate_noise_multiplier
from dpledger.mechanisms import Adjacency, DataShape, Event, GaussianStep, PlanningCurator
from dpledger.mechanisms.private_data import PrivateDataset
from dpledger.solvers import DpAdmm, LinearLoss, ModelSolver, PvpAdmm, SmoothSteps

SHAPE = DataShape(("agent",), 400, 104, 1.0, Adjacency.REPLACE_ONE)
STEPS = SmoothSteps(0.250001, 89.0)


def planned(solver: ModelSolver) -> list[Event]:
    curator = PlanningCurator()
    solver.solve(PrivateDataset.planned(SHAPE), curator)
    return curator.events


def classical(epsilon: float, delta: float) -> float:
    """The noise multiplier of Theorem 1: sqrt(2 ln(1.25/δ))/ε."""
    return sqrt(2 * log(1.25 / delta)) / epsilon


def published(epsilon: float, delta: float, rounds: int = 100) -> Guarantee:
    """The guarantee of Algorithm 3 with Theorem 1's noise in every round, c_w public."""
    return guarantee(planned(DpAdmm(rounds, classical(epsilon, delta), STEPS)), delta=delta)


def formula(epsilon: float, delta: float, rounds: int = 100) -> float:
    """Theorem 2's ε̄, as derived in its proof."""
    return sqrt(rounds * log(1 / delta) / log(1.25 / delta)) * epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "exact"),
    [
        (0.1, 1e-3, 0.03693844829),
        (0.01, 1e-4, 0.003045266636),
        (0.2, 1e-5, 0.1298202079),
        (0.1, 1e-6, 0.06667625541),
    ],
)
def test_h2_one_round_is_looser_than_it_need_be(epsilon: float, delta: float, exact: float) -> None:
    found = published(epsilon, delta, rounds=1)
    assert found.epsilon.upper_float == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "exact", "claimed", "delta_there"),
    [
        (0.01, 1e-3, 0.03693844829, 0.09842294011, 6.718727409e-07),
        (0.05, 1e-3, 0.2771640467, 0.4921147006, 4.082480594e-06),
        (0.1, 1e-5, 0.7509769569, None, 5.206707016e-08),
        (0.05, 1e-5, None, 0.4952238173, 2.039920869e-08),
        (0.2, 1e-3, 1.448820472, None, None),
    ],
)
def test_h4_the_formula_is_sound_and_loose_at_the_papers_settings(
    epsilon: float, delta: float, exact: float | None, claimed: float | None,
    delta_there: float | None,
) -> None:  # fmt: skip
    found, bound = published(epsilon, delta), formula(epsilon, delta)
    assert found.epsilon < bound
    if exact is not None:
        assert found.epsilon.upper_float == pytest.approx(exact, rel=1e-9)
    if claimed is not None:
        assert bound == pytest.approx(claimed, rel=1e-9)
    if delta_there is not None:
        truth = delta_from_epsilon(mu_squared=found.notion.mu_squared, epsilon=bound)
        assert truth.upper_float == pytest.approx(delta_there, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "moments"),
    [
        (0.01, 1e-4, 0.09907547176),
        (0.1, 1e-5, 1.011806414),
        (0.2, 1e-6, 2.055300677),
    ],
)
def test_h4_moments_accountant(epsilon: float, delta: float, moments: float) -> None:
    rho = published(epsilon, delta).rho
    found = epsilon_from_moments(rho=rho, delta=delta, max_order=1999)
    assert found.epsilon.upper_float == pytest.approx(moments, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds", "claimed"),
    [
        (1.0, 1e-3, 100, 9.842294011),
        (1.0, 1e-5, 100, 9.904476345),
        (0.5, 1e-5, 1000, 15.66035214),
    ],
)
def test_h3_the_formula_fails_when_mu_is_large(
    epsilon: float, delta: float, rounds: int, claimed: float
) -> None:
    bound = formula(epsilon, delta, rounds)
    assert bound == pytest.approx(claimed, rel=1e-9)
    assert published(epsilon, delta, rounds).epsilon > bound


def test_h3_true_delta_at_the_formula() -> None:
    found = published(1.0, 1e-5)
    truth = delta_from_epsilon(mu_squared=found.notion.mu_squared, epsilon=formula(1.0, 1e-5))
    assert truth.upper_float == pytest.approx(2.748185903e-05, rel=1e-9)
    assert published(1.0, 1e-3).epsilon.upper_float == pytest.approx(11.0312, abs=5e-5)


def noise(distance: float) -> np.ndarray:
    steps = replace(STEPS, distance=distance)
    events = planned(DpAdmm(100, classical(0.05, 1e-3), steps))
    mechanisms = [event.mechanism for event in events]
    return np.array([m.noise_std for m in mechanisms if isinstance(m, GaussianStep)])


def test_h5_a_private_step_size_shows_in_the_noise() -> None:
    ratio = (noise(89.0) / noise(90.0)) ** 2
    divergence = 104 / 2 * np.sum(ratio - 1 - np.log(ratio))
    assert divergence == pytest.approx(0.3633376806, rel=1e-9)
    accounted = published(0.05, 1e-3).rho.upper_float
    assert accounted == pytest.approx(0.00876, abs=5e-6)


def test_h6_column_maxima_let_one_record_move_every_row() -> None:
    rows, labels = np.ones((400, 1)), np.ones(400)
    outlier = rows.copy()
    outlier[-1] = 1000.0

    def mean_gradient(data: np.ndarray) -> float:
        normalised = data / data.max(axis=0)
        return float((-labels / 2 * normalised[:, 0]).mean())

    moved = abs(mean_gradient(rows) - mean_gradient(outlier))
    gradient = PrivateDataset.planned(SHAPE).mean_gradient(LinearLoss(), np.zeros(104))
    assert gradient.sensitivity.value == 0.005
    assert moved == pytest.approx(0.498251, abs=5e-7)
    assert moved / gradient.sensitivity.value == pytest.approx(99.65, abs=5e-3)


def test_h7_the_literal_matrix_normal_under_noises() -> None:
    events = planned(DpAdmm(100, classical(0.05, 1e-3), STEPS))
    literal = [
        replace(e, mechanism=replace(e.mechanism, noise_std=e.mechanism.noise_std**2))
        for e in events
        if isinstance(e.mechanism, GaussianStep)
    ]
    found = guarantee(literal, delta=1e-3)
    # the noise is stated as a multiple of what floats move by: a 1e-7th above the paper's
    assert found.epsilon.upper_float == pytest.approx(0.6527401399, rel=1e-6)


def test_h9_pvp_sensitivity_is_lemma_4_but_for_the_tolerance() -> None:
    step = planned(PvpAdmm(1, 1.0, tolerance=1e-9))[0].mechanism
    assert isinstance(step, GaussianStep)
    assert step.sensitivity.value == pytest.approx(
        2 / ((1e-6 + 0.1) * 400) + 2 * 1e-9 / (1e-6 + 0.1), rel=1e-6
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier", "tolerance"),
    [(1.0, 1e-5, 37.3063, 5e-5), (0.5, 1e-3, 46.10127951, 5e-8)],
)
def test_repair_needs_the_noise_multiplier_of_the_exact_bound(
    epsilon: float, delta: float, multiplier: float, tolerance: float
) -> None:
    found = calibrate_noise_multiplier(
        lambda z: planned(DpAdmm(100, z, STEPS)), target_epsilon=epsilon, delta=delta
    )
    assert found.noise_multiplier == pytest.approx(multiplier, abs=tolerance)
    assert found.guarantee.epsilon <= epsilon
