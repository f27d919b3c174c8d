"""Laws of output and objective perturbation: their price, their optimum, the theorem's delta."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit
from tests.parameters import slow

from dpledger.accounting.guarantees import guarantee
from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    InvalidParameter,
    PlanningCurator,
    PrivateDataset,
    SamplingCurator,
)
from dpledger.mechanisms.events import GaussianStep
from dpledger.mechanisms.protocols import EventList, FloatArray
from dpledger.mechanisms.sampling import SimulationSampler
from dpledger.solvers import (
    ClippedLogistic,
    Logistic,
    OutputPerturbation,
    PublishedObjectivePerturbation,
    gaussian_objective_delta,
    logistic_optimum,
    objective_noise_std,
    plan,
)

REPLACE, ZERO = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE


def data(
    adjacency: Adjacency, *, parties: int = 1
) -> tuple[FloatArray, FloatArray, PrivateDataset]:
    """Return 300 rows of norm 1, labels, and their handle."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(rng.random(300) < expit(3.0 * rows[:, 0]), 1.0, -1.0)
    handle = PrivateDataset(
        rows,
        labels,
        adjacency=adjacency,
        row_bound=1.0,
        party_of=np.arange(300) % parties,
        parties=tuple(f"p{i}" for i in range(parties)),
    )
    return rows, labels, handle


@pytest.mark.parametrize("adjacency", [REPLACE, ZERO])
def test_output_perturbation_runs_as_planned_and_costs_one_gaussian_step(
    adjacency: Adjacency,
) -> None:
    _, _, handle = data(adjacency, parties=3)
    solver = OutputPerturbation(4.0)
    released = EventList()
    solver.solve(handle, SamplingCurator(released, SimulationSampler(1)))
    events = plan(solver, handle.shape)
    assert tuple(released.events) == events
    found = guarantee(events, delta=1e-5)
    assert float(found.mu.upper_float) == pytest.approx(0.25, rel=1e-6)


def test_output_perturbation_without_noise_is_the_optimum() -> None:
    rows, labels, handle = data(REPLACE)
    solver = OutputPerturbation(0.0, regularisation=1e-2, loss=Logistic())
    state = solver.solve(handle, SamplingCurator(EventList(), SimulationSampler(1)))
    best = logistic_optimum(rows, labels, regularisation=1e-2)
    # the tolerance is a hundredth of a record's part in the gradient
    assert np.linalg.norm(state.model - best.model) <= 0.01 / 300 / 1e-2 + 1e-4


def test_the_weight_makes_the_noise_of_a_score_what_it_is_said_to_be() -> None:
    shape = DataShape(("a", "b", "c", "d"), 500, 3, 1.0, REPLACE)
    solver = OutputPerturbation(3.0)
    assert _noise_std(solver, shape) / 2.0 == pytest.approx(0.6, rel=0.02)  # of the mean of four


def _noise_std(solver: OutputPerturbation, shape: DataShape) -> float:
    (event,) = plan(solver, shape)
    assert isinstance(event.mechanism, GaussianStep)
    return event.mechanism.noise_std


def test_objective_perturbation_has_no_certificate() -> None:
    planned = PlanningCurator()
    shape = DataShape(("a",), 500, 3, 1.0, REPLACE)
    PublishedObjectivePerturbation(0.01, 1e-2).solve(PrivateDataset.planned(shape), planned)
    assert guarantee(planned.events, delta=1e-5).unprotected


def _delta_in_one_dimension(
    first: FloatArray, second: FloatArray, *, modulus: float, noise_std: float, epsilon: float
) -> float:
    """Return delta between minimisers of two data sets of z = y a, by quadrature.

    The density of v is that of the noise it needs, times the derivative.
    """

    def needed(z: FloatArray, v: float) -> float:
        return float((expit(-z * v) * z).mean() - modulus * v)

    def density(z: FloatArray, v: float) -> float:
        slopes = expit(-z * v) * expit(z * v)
        bend = float((slopes * z**2).mean()) + modulus
        b = needed(z, v)
        return bend * np.exp(-0.5 * (b / noise_std) ** 2) / (noise_std * np.sqrt(2 * np.pi))

    wide = (9.0 * noise_std + 1.0) / modulus
    left, right = (
        brentq(lambda v: needed(first, v) - end, -wide, wide)  # noqa: B023
        for end in (9.0 * noise_std, -9.0 * noise_std)
    )
    grid = np.linspace(left, right, 40).tolist()
    parts = [
        quad(lambda v: max(0.0, density(first, v) - np.exp(epsilon) * density(second, v)), a, b)[0]
        for a, b in pairwise(grid)
    ]
    return float(sum(parts))


@pytest.mark.parametrize(
    ("adjacency", "modulus"),
    [(REPLACE, 0.05), (ZERO, 0.5), *slow((REPLACE, 0.5), (ZERO, 0.05))],
)
def test_no_pair_in_one_dimension_exceeds_the_theorem(adjacency: Adjacency, modulus: float) -> None:
    """An independent route: densities by change of variables, integrated."""
    shape = DataShape(("a",), 4, 1, 1.0, adjacency)
    ratios = []
    for noise_std in (0.15, 0.4):
        for epsilon in (1.5, 3.0, 6.0):
            bound = gaussian_objective_delta(
                shape, Logistic(), modulus=modulus, noise_std=noise_std, epsilon=epsilon
            )
            for own in (1.0, -1.0):
                others = np.array([0.7, -0.4, 1.0])
                first = np.append(others, own)
                second = np.append(others, -own if adjacency is REPLACE else 0.0)
                for pair in ((first, second), (second, first)):
                    exact = _delta_in_one_dimension(
                        *pair, modulus=modulus, noise_std=noise_std, epsilon=epsilon
                    )
                    assert exact <= bound * (1 + 1e-6) + 1e-12
                    ratios.append(exact / bound)
    assert max(ratios) > 1e-4  # the pairs leak


def test_the_least_noise_meets_its_target_and_less_does_not() -> None:
    shape = DataShape(("a",), 1000, 5, 1.0, REPLACE)
    given = {"modulus": 1e-3, "epsilon": 1.0}
    noise_std = objective_noise_std(shape, Logistic(), delta=1e-5, **given)
    assert gaussian_objective_delta(shape, Logistic(), noise_std=noise_std, **given) <= 1e-5
    less = 0.999 * noise_std
    assert gaussian_objective_delta(shape, Logistic(), noise_std=less, **given) > 1e-5
    # a weight so small that determinants alone exceed epsilon
    assert objective_noise_std(shape, Logistic(), modulus=1e-5, epsilon=1.0, delta=1e-5) == np.inf


def test_the_theorem_is_refused_where_it_does_not_hold() -> None:
    shape = DataShape(("a",), 1000, 5, 1.0, Adjacency.ADD_REMOVE_ONE)
    with pytest.raises(InvalidParameter, match="adjacency"):
        gaussian_objective_delta(shape, Logistic(), modulus=1.0, noise_std=1.0, epsilon=1.0)


def test_a_clipped_loss_halves_the_noise() -> None:
    shape = DataShape(("a",), 500, 3, 1.0, REPLACE)
    own, half = (
        _noise_std(OutputPerturbation(3.0, 1e-2, loss), shape)
        for loss in (Logistic(), ClippedLogistic())
    )
    assert half == pytest.approx(own / 2.0, rel=0.01)
