"""Any loss in any solver.

1. Without noise every solver finds the optimum of an independent one, to 1e-6 relative, for every
   smooth loss: margins, real labels, classes.
2. Plan, run and replay emit the same events, whatever the loss.
3. Exact minimisers meet the tolerance that they declare, at 40 digits.
4. A solver that needs what a loss lacks says so before anything is spent.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit, softmax
from tests.parameters import quick

from dpledger.audits.curators import ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    Curator,
    EventList,
    InvalidParameter,
    LabelDomain,
    LabelLoss,
    PlanningCurator,
    PrivateDataset,
    RealLabels,
    SamplingCurator,
    SeededSampler,
)
from dpledger.solvers import (
    L1,
    L2,
    CentralisedDpAdmm,
    Centring,
    ClippedLogistic,
    ConsensusDpAdmm,
    ConstantSteps,
    ConvexWeights,
    DpAdmm,
    Hinge,
    Huber,
    Multinomial,
    PrAdmm,
    PsAdmm,
    PvpAdmm,
    SharingAdmm,
    SmoothedHinge,
    StochasticRounds,
    bounded_squared,
    fused_lasso,
    ring,
)

WIDTH, RECORDS, AGENTS = 3, 60, 4
WEIGHT = 0.05
"""The problem is min mean loss + WEIGHT·|w|²/2 (or ·|w|_1) over all records."""


Slopes = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Problem:
    """A loss with labels, and its slopes at scores of shape (n, K), written once more."""

    loss: LabelLoss
    domain: LabelDomain
    slopes: Slopes


def smoothed_hinge(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The hinge's slope averaged over a uniform shift of its kink in [0.6, 1.4]."""
    low, high = (np.maximum(0.0, kink - labels * scores[:, 0]) for kink in (0.6, 1.4))
    return (-labels * (high - low) / 0.8)[:, None]


def clipped_logistic(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return -(labels * np.minimum(0.4, expit(-labels * scores[:, 0])))[:, None]


def huber(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    residual = scores - labels[:, None]
    return np.sign(residual) * np.minimum(np.abs(residual), 0.3)


def squared(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return scores - labels[:, None]


def multinomial(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return softmax(scores, axis=1) - np.eye(3)[labels.astype(int)]


PROBLEMS: dict[str, Problem] = {
    "smoothed hinge": Problem(SmoothedHinge(0.4), SIGNS, smoothed_hinge),
    "clipped logistic": Problem(ClippedLogistic(0.4), SIGNS, clipped_logistic),
    "huber": Problem(Huber(0.3, 2.0), RealLabels(2.0), huber),
    "bounded squared": Problem(
        bounded_squared(score_bound=4.0, label_bound=2.0), RealLabels(2.0), squared
    ),
    "multinomial": Problem(Multinomial(3), ClassLabels(3), multinomial),
}
EACH = pytest.mark.parametrize("name", PROBLEMS)
ONE = pytest.mark.parametrize("name", quick(("clipped logistic",), PROBLEMS))
FEW = pytest.mark.parametrize("name", quick(("clipped logistic", "huber"), PROBLEMS))
"""For what takes a second each: two that differ in labels and in form."""


def records(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(21)
    rows = rng.normal(size=(RECORDS, WIDTH))
    rows /= 1.001 * np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    pull = rows @ np.array([1.5, -1.0, 0.5]) + 0.4 * rng.normal(size=RECORDS)
    if isinstance(problem.domain, ClassLabels):
        return rows, np.digitize(pull, [-0.4, 0.4]).astype(np.float64)
    labels = np.clip(pull, -2, 2) if isinstance(problem.domain, RealLabels) else np.sign(pull)
    return rows, labels


def private(problem: Problem, agents: int = AGENTS) -> PrivateDataset:
    rows, labels = records(problem)
    return AuditDataset(
        rows,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.arange(RECORDS) % agents,
        parties=tuple(f"agent {i}" for i in range(agents)),
        label_domain=problem.domain,
    )


def data_gradient(problem: Problem, w: np.ndarray) -> np.ndarray:
    rows, labels = records(problem)
    slopes = problem.slopes(rows @ w.reshape(WIDTH, -1), labels)
    return (rows.T @ slopes / RECORDS).ravel()


def ridge_optimum(problem: Problem) -> np.ndarray:
    """The zero of the gradient, by a root finder."""

    def gradient(w: np.ndarray) -> np.ndarray:
        return data_gradient(problem, w) + WEIGHT * w

    found = root(gradient, np.zeros(WIDTH * problem.loss.outputs), tol=1e-14).x
    assert np.linalg.norm(gradient(found)) < 1e-12
    return found


def lasso_optimum(problem: Problem) -> np.ndarray:
    """The fixed point of proximal gradient steps, by many of them; its optimality is checked."""
    w = np.zeros(WIDTH * problem.loss.outputs)
    for _ in range(20_000):
        before, ahead = w, w - 0.5 * data_gradient(problem, w)
        w = np.sign(ahead) * np.maximum(np.abs(ahead) - 0.5 * WEIGHT, 0.0)
        if np.abs(w - before).max() < 1e-15:
            break
    gradient = data_gradient(problem, w)
    assert np.abs(gradient).max() <= WEIGHT + 1e-12
    assert np.abs(gradient * w + WEIGHT * np.abs(w)).max() < 1e-12
    return w


def inner(problem: Problem, regulariser: L1 | L2, rounds: int = 200) -> StochasticRounds:
    curvature = problem.loss.curvature_bound
    assert curvature is not None
    return StochasticRounds(
        rounds,
        5,
        1.0 / (float(curvature) + 0.2),
        penalty=0.2,
        regularisation=AGENTS * WEIGHT,
        regulariser=regulariser,
        loss=problem.loss,
    )


def centralised(
    problem: Problem, regulariser: L1 | L2, rounds: int = 1000, noise_multiplier: float = 0.0
) -> CentralisedDpAdmm:
    return CentralisedDpAdmm(
        fused_lasso(WIDTH * problem.loss.outputs, ()),
        rounds,
        noise_multiplier,
        step_size=1.0 / float(problem.loss.curvature_bound or 1),
        penalty=0.2,
        regularisation=WEIGHT,
        regulariser=regulariser,
        loss=problem.loss,
    )


def find(problem: Problem, solver: Any, agents: int = AGENTS) -> np.ndarray:
    curator = SamplingCurator(EventList(), SeededSampler(0))
    return np.asarray(solver.solve(private(problem, agents), curator).model)


def require_close(found: np.ndarray, best: np.ndarray) -> None:
    assert np.linalg.norm(found - best) <= 1e-6 * np.linalg.norm(best)


@ONE
def test_star_admm_with_exact_minimisers_finds_the_optimum(name: str) -> None:
    problem = PROBLEMS[name]
    solver = PvpAdmm(300, None, tolerance=1e-11, regularisation=WEIGHT, loss=problem.loss)
    require_close(find(problem, solver), ridge_optimum(problem))


@FEW
def test_star_admm_with_first_order_steps_finds_the_optimum(name: str) -> None:
    problem = PROBLEMS[name]
    steps = ConstantSteps(1.0 / (float(problem.loss.curvature_bound or 0) + WEIGHT))
    solver = DpAdmm(1000, 0.0, steps, regularisation=WEIGHT, loss=problem.loss)
    require_close(find(problem, solver), ridge_optimum(problem))


@EACH
def test_admm_at_the_consensus_finds_the_optimum(name: str) -> None:
    problem = PROBLEMS[name]
    step = 1.0 / (float(problem.loss.curvature_bound or 0) + WEIGHT)
    solver = ConsensusDpAdmm(300, 0.0, step, momentum=0.6, regularisation=WEIGHT, loss=problem.loss)
    require_close(find(problem, solver), ridge_optimum(problem))


@ONE
def test_decentralised_admm_finds_the_optimum(name: str) -> None:
    problem = PROBLEMS[name]
    weight = AGENTS * WEIGHT / 2
    solver = PrAdmm(
        ring(AGENTS), 400, 0.0, penalty=0.05, regularisation=weight, tolerance=1e-11,
        loss=problem.loss,
    )  # fmt: skip
    require_close(find(problem, solver), ridge_optimum(problem))


@FEW
@pytest.mark.parametrize("regulariser", [L1(), L2()], ids=["l1", "l2"])
def test_stochastic_and_centralised_admm_find_the_optimum(name: str, regulariser: L1 | L2) -> None:
    problem = PROBLEMS[name]
    of = lasso_optimum if isinstance(regulariser, L1) else ridge_optimum
    best = of(problem)
    stochastic = PsAdmm(inner(problem, regulariser), 0.0, ConvexWeights())
    require_close(find(problem, stochastic), best)
    require_close(find(problem, centralised(problem, regulariser), agents=1), best)


def exact_slopes(name: str, scores: list[mpmath.mpf], label: float) -> list[mpmath.mpf]:
    """The slopes of a loss at a record, in mpmath's precision."""
    match name:
        case "smoothed hinge":
            cut = (1 - label * scores[0]) / (2 * mpmath.mpf(0.4)) + mpmath.mpf(0.5)
            return [-label * min(mpmath.mpf(1), max(mpmath.mpf(0), cut))]
        case "clipped logistic":
            free = 1 / (1 + mpmath.exp(label * scores[0]))
            return [-label * min(mpmath.mpf(0.4), free)]
        case "huber" | "bounded squared":
            width = mpmath.mpf(0.3 if name == "huber" else 6.0)
            return [min(width, max(-width, scores[0] - mpmath.mpf(label)))]
        case _:
            weights = [mpmath.exp(s) for s in scores]
            total = mpmath.fsum(weights)
            return [w / total - (j == label) for j, w in enumerate(weights)]


@EACH
def test_minimisers_meet_their_declared_tolerance_at_40_digits(name: str) -> None:
    problem, modulus = PROBLEMS[name], 0.1
    # a few times the rounding that the certificate allows for, which is below 100 units of 2^-52
    tolerance = 1e-10 * float(problem.loss.derivative_bound)
    dataset, k = private(problem, agents=1), problem.loss.outputs
    found = dataset.strongly_convex_argmin(
        problem.loss,
        modulus=modulus,
        linear=np.full(WIDTH * k, 0.01),
        tolerance=tolerance,
        start=np.zeros(WIDTH * k),
    )._value
    assert found is not None
    rows, labels = records(problem)
    with mpmath.workdps(40):
        v = [[mpmath.mpf(x) for x in row] for row in found.reshape(WIDTH, k)]
        total = [[mpmath.mpf(0)] * k for _ in range(WIDTH)]
        for row, label in zip(rows, labels, strict=True):
            scores = [mpmath.fsum(row[i] * v[i][j] for i in range(WIDTH)) for j in range(k)]
            slopes = exact_slopes(name, scores, label)
            for i, j in product(range(WIDTH), range(k)):
                total[i][j] += mpmath.mpf(row[i]) * slopes[j]
        gradient = [
            total[i][j] / RECORDS + mpmath.mpf(modulus) * v[i][j] + mpmath.mpf(0.01)
            for i, j in product(range(WIDTH), range(k))
        ]
        assert mpmath.norm(gradient) <= tolerance


def noisy(problem: Problem) -> dict[str, Any]:
    """Short runs of every solver for horizontal data, with noise."""
    loss = problem.loss
    return {
        "star": DpAdmm(3, 2.0, ConstantSteps(0.5), loss=loss),
        "star, exact": PvpAdmm(3, 2.0, loss=loss),
        "consensus": ConsensusDpAdmm(3, 2.0, 0.5, momentum=0.9, loss=loss),
        "consensus, centred": ConsensusDpAdmm(3, 2.0, 0.5, metric=Centring(0), loss=loss),
        "network": PrAdmm(ring(AGENTS), 3, 2.0, loss=loss),
        "stochastic": PsAdmm(inner(problem, L1(), rounds=2), 2.0),
        "centralised": centralised(problem, L1(), rounds=3, noise_multiplier=2.0),
    }


@EACH
def test_plan_run_and_replay_emit_equal_events(name: str) -> None:
    problem = PROBLEMS[name]
    for solver_name, solver in noisy(problem).items():
        dataset = private(problem, 1 if solver_name == "centralised" else AGENTS)
        plan, ran = PlanningCurator(), EventList()
        solver.solve(PrivateDataset.planned(dataset.shape), plan)
        run = SamplingCurator(ran, SeededSampler(3), record=True)
        solver.solve(dataset, run)
        solver.solve(dataset, ReplayCurator(run.transcript))
        assert plan.events == ran.events == [message.event for message in run.transcript]


def refused(solve: Callable[[Curator], object], words: str) -> None:
    """Running and planning raise, and nothing was spent."""
    ran = EventList()
    with pytest.raises(InvalidParameter, match=words):
        solve(SamplingCurator(ran, SeededSampler(0)))
    assert ran.events == []


def test_solvers_that_need_a_smooth_loss_refuse_the_hinge() -> None:
    problem = PROBLEMS["smoothed hinge"]
    kinked = replace(problem, loss=Hinge())
    dataset = private(kinked)
    for solver in (
        PvpAdmm(3, 2.0, loss=Hinge()),
        PrAdmm(ring(AGENTS), 3, 2.0, loss=Hinge()),
        PsAdmm(replace(inner(problem, L1()), loss=Hinge()), 2.0),
    ):
        refused(lambda curator, s=solver: s.solve(dataset, curator), "smooth")
    with pytest.raises(InvalidParameter, match="smooth"):
        SharingAdmm(3, 2.0, loss=Hinge())


def test_first_order_solvers_take_the_hinge() -> None:
    problem = replace(PROBLEMS["smoothed hinge"], loss=Hinge())
    solvers: list[tuple[Any, int]] = [
        (DpAdmm(3, 2.0, ConstantSteps(0.5), loss=Hinge()), AGENTS),
        (centralised(problem, L1(), 3, 2.0), 1),
    ]
    for solver, agents in solvers:
        curator = SamplingCurator(EventList(), SeededSampler(0))
        assert np.isfinite(solver.solve(private(problem, agents), curator).model).all()


@EACH
def test_every_solver_refuses_labels_of_another_kind(name: str) -> None:
    problem = PROBLEMS[name]
    others = [other for other in PROBLEMS.values() if other.domain != problem.domain]
    for other in others:
        for solver_name, solver in noisy(problem).items():
            dataset = private(other, 1 if solver_name == "centralised" else AGENTS)
            if problem.loss.label_domain.contains(other.domain):
                solver.solve(dataset, SamplingCurator(EventList(), SeededSampler(0)))
            else:
                refused(lambda curator, s=solver, d=dataset: s.solve(d, curator), "defined for")


def test_vertical_sharing_takes_losses_for_signs_only() -> None:
    SharingAdmm(3, 2.0, loss=SmoothedHinge())
    SharingAdmm(3, 2.0, loss=Huber(1.0, 1.0))
    for loss in (Multinomial(2), Huber(1.0, 0.5)):
        with pytest.raises(InvalidParameter, match="defined for"):
            SharingAdmm(3, 2.0, loss=loss)
