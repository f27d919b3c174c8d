"""Laws of vertically held data.

1. A party's minimiser is that of an independent solver, and what a point meets of the tolerance
   bounds how far off it is.
2. No neighbour moves a release by more than its sensitivity; some neighbours move it by nearly all.
3. A release names no parties: what all parties release adds up, and no rule treats it as disjoint.
4. Nothing else gets out, and bad input is refused.
"""

import pickle
from fractions import Fraction
from math import sqrt
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.special import expit
from tests.parameters import quick

from dpledger.accounting.guarantees import guarantee
from dpledger.audits.datasets import VerticalAuditDataset
from dpledger.mechanisms import (
    Adjacency,
    EventList,
    InvalidParameter,
    PlanningCurator,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    UnprotectedReleaseError,
    concatenate_disjoint,
    declared,
)
from dpledger.mechanisms.ball_ridge import BallRidge, require_reachable
from dpledger.mechanisms.clipping import inner_radius
from dpledger.mechanisms.rounding import exact
from dpledger.mechanisms.sensitivity import label_dual, vertical_predictions
from dpledger.mechanisms.vertical_data import LocalProblem, VerticalDataset, VerticalShape
from dpledger.solvers import LinearLoss, Logistic

RECORDS = [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE]


def unit_rows(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    rows = rng.normal(size=(n, d))
    return rows / np.maximum(1.01, 1.01 * np.linalg.norm(rows, axis=1, keepdims=True))


def dataset(
    blocks: list[np.ndarray],
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    *,
    labels: np.ndarray | None = None,
    public_labels: bool = False,
) -> VerticalDataset:
    return VerticalAuditDataset(
        blocks,
        np.ones(len(blocks[0])) if labels is None else labels,
        adjacency=adjacency,
        parties=tuple(f"party {m}" for m in range(len(blocks))),
        public_labels=public_labels,
    )


def problem(pull: np.ndarray, **changed: float) -> LocalProblem:
    given = {
        "penalty": 1.0,
        "modulus": 0.1,
        "slope_bound": 1.0,
        "radius": 1.0,
        "tolerance": 1e-6,
        **changed,
    }
    return LocalProblem(pull=pull, **given)


def seen(sensitive: Sensitive, trials: int | None = None) -> np.ndarray:
    """What a release without noise shows."""
    return SamplingCurator(EventList(), SeededSampler(0), trials=trials).release(
        sensitive, round=1, release="test", noise_std=0.0
    )[..., 0, :]


def held_minimiser(
    rows: np.ndarray, pull: np.ndarray, rho: float, m: float, b: float
) -> np.ndarray:
    """The minimiser on the ball by its optimality conditions, nu found by Brent's method."""

    def at(nu: float) -> np.ndarray:
        matrix = rho * rows.T @ rows + (m + nu) * np.eye(rows.shape[1])
        return -np.linalg.solve(matrix, rows.T @ pull)

    if np.linalg.norm(at(0.0)) <= b:
        return at(0.0)
    top = np.linalg.norm(rows.T @ pull) / b + 1.0
    return at(brentq(lambda nu: np.linalg.norm(at(nu)) - b, 0.0, top, xtol=1e-14, rtol=1e-15))


@pytest.mark.parametrize("radius", [0.05, 0.7, 50.0])
@pytest.mark.parametrize("width", [1, 4, 30])
def test_minimisers_are_those_of_an_independent_solver(radius: float, width: int) -> None:
    rng = np.random.default_rng(width)
    rows, pulls = unit_rows(rng, 20, width), rng.uniform(-1, 1, size=(3, 20))
    data = dataset([rows])
    found = seen(data.minimiser("party 0", problem(pulls[0], radius=radius)))
    assert found.shape == (width,)
    block = BallRidge(rows, 1.0)
    many = block.minimiser(pulls, penalty=1.0, modulus=0.1, radius=radius)
    for x, pull in zip(many, pulls, strict=True):
        expected = held_minimiser(rows, pull, 1.0, 0.1, radius)
        # the ball is 1e-6 of itself smaller, to leave room for rounding
        assert np.linalg.norm(x - expected) <= 2e-6 * np.linalg.norm(expected)
        assert np.linalg.norm(x) <= radius
    assert np.allclose(found, many[0], rtol=1e-12)
    scores = seen(data.predictions("party 0", problem(pulls[0], radius=radius)))
    assert np.allclose(scores, rows @ found, rtol=1e-12, atol=1e-14)


def test_minimiser_agrees_with_constrained_programming() -> None:
    rng = np.random.default_rng(8)
    rows, pull = unit_rows(rng, 15, 3), rng.uniform(-1, 1, size=15)
    found = minimize(
        lambda x: pull @ rows @ x + (rows @ x) @ (rows @ x) + 0.05 * x @ x,
        np.zeros(3),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: 0.0225 - x @ x},
        options={"ftol": 1e-14},
    )
    assert np.linalg.norm(found.x) == pytest.approx(0.15, rel=1e-6)
    x = seen(dataset([rows]).minimiser("party 0", problem(pull, penalty=2.0, radius=0.15)))
    assert np.allclose(x, found.x, atol=3e-6)


def true_minimiser(
    rows: np.ndarray, pull: np.ndarray, rho: float, m: float, ball: float
) -> mpmath.matrix:
    """Return the minimiser over the ball in 60 digits, by bisection over the multiplier."""
    table = mpmath.matrix(rows)
    inner, linear = table.T * table, table.T * mpmath.matrix(pull)

    def at(nu: mpmath.mpf) -> mpmath.matrix:
        bent = rho * inner + (m + nu) * mpmath.eye(rows.shape[1])
        return mpmath.lu_solve(bent, -linear)

    low, high = mpmath.mpf(0), mpmath.norm(linear) / ball
    if mpmath.norm(at(low)) <= ball:
        return at(low)
    for _ in range(170):
        middle = (low + high) / 2
        low, high = (middle, high) if mpmath.norm(at(middle)) > ball else (low, middle)
    return at(high)


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1, 4, 60]),
    st.floats(-3, 3),
    st.floats(-4, 2),
    st.floats(-3, 3),
)
def test_every_minimiser_meets_the_tolerance_that_is_accepted(
    seed: int, width: int, count: int, rho: float, m: float, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    rows, pull = unit_rows(rng, count, width), rng.uniform(-1, 1, size=count)
    if seed % 2:  # nearly dependent rows: eigenvalues of very different size
        rows = unit_rows(rng, 1, width) + 1e-6 * rng.normal(size=(count, width))
    numbers = {"penalty": 10**rho, "modulus": 10**m, "radius": 10**radius}
    data = BallRidge(rows, 1.1)
    x = data.minimiser(pull, **numbers)
    least = least_accepted(count=count, width=width, row_bound=1.1, sizes=float(count), **numbers)
    assert np.linalg.norm(x) <= numbers["radius"]
    rho, m = numbers["penalty"], numbers["modulus"]
    with mpmath.workdps(60):
        exact = true_minimiser(rows, pull, rho, m, inner_radius(numbers["radius"], width))
        off = mpmath.matrix(x) - exact
        assert mpmath.norm(off) <= least / m
        assert mpmath.norm(mpmath.matrix(rows) * off) <= least / (2 * sqrt(rho * m))


def least_accepted(**shape: Any) -> float:
    """Return a tolerance that is accepted where a hundredth less is not."""
    low, high = -40.0, 40.0
    while high - low > 0.004:
        middle = (low + high) / 2
        try:
            require_reachable(10**middle, **shape)
        except InvalidParameter:
            low = middle
        else:
            high = middle
    return float(10**high)


def test_a_tolerance_below_the_rounding_allowance_is_refused() -> None:
    rows = unit_rows(np.random.default_rng(0), 50, 3)
    hopeless = problem(np.ones(50), tolerance=1e-16)
    data = dataset([rows])
    with pytest.raises(InvalidParameter, match="tolerance"):
        data.predictions("party 0", hopeless)
    with pytest.raises(InvalidParameter, match="tolerance"):
        data.dual(Logistic(), np.zeros(50), penalty=1.0, tolerance=1e-16)


# claim S-7: B = b = rho = 1, lambda = 0.01
def test_the_sensitivity_of_predictions_is_the_claimed_figure() -> None:
    given = {"row_bound": 1, "slope_bound": 1, "radius": 1, "penalty": 1}
    exact = {
        adjacency: vertical_predictions(
            **given, modulus=Fraction(1, 100), tolerance=0, adjacency=adjacency
        )
        for adjacency in RECORDS
    }
    assert exact[Adjacency.ZERO_OUT_ONE].value == pytest.approx(10.04987562, rel=1e-9)
    assert exact[Adjacency.REPLACE_ONE].value == pytest.approx(sqrt(404), rel=1e-15)
    for adjacency, value in exact.items():
        loose = vertical_predictions(
            **given, modulus=Fraction(1, 100), tolerance=Fraction(1, 7), adjacency=adjacency
        )
        assert loose.value == pytest.approx(value.value + 10 / 7, rel=1e-15)
        assert loose.root >= value.root + Fraction(10, 7)


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_FEATURE_COLUMN])
def test_a_changing_number_of_records_has_no_rule(adjacency: Adjacency) -> None:
    with pytest.raises(InvalidParameter):
        vertical_predictions(
            row_bound=1,
            slope_bound=1,
            radius=1,
            penalty=1,
            modulus=1,
            tolerance=0,
            adjacency=adjacency,
        )
    with pytest.raises(InvalidParameter):
        label_dual(derivative_bound=1, label_gap=1, tolerance=0, adjacency=adjacency)
    with pytest.raises(InvalidParameter):
        dataset([np.ones((2, 1))], adjacency)


def moved(data: VerticalDataset, row: np.ndarray, given: LocalProblem) -> tuple[float, float]:
    """How far record 0 moves predictions and minimiser, over their sensitivities."""
    other = data.with_record(0, features=[row])
    ratios = []
    for read in (VerticalDataset.predictions, VerticalDataset.minimiser):
        here = read(data, "party 0", given)
        there = seen(read(other, "party 0", given))
        ratios.append(np.linalg.norm(seen(here) - there) / here.sensitivity.value)
    return float(ratios[0]), float(ratios[1])


@pytest.mark.parametrize("adjacency", quick((Adjacency.ZERO_OUT_ONE,), RECORDS))
def test_random_neighbours_never_exceed_the_sensitivity(adjacency: Adjacency) -> None:
    rng = np.random.default_rng(1)
    worst = np.zeros(2)
    for _ in range(400):
        n, d = rng.integers(2, 30), rng.integers(1, 4)
        rows = unit_rows(rng, int(n), int(d)) * 10.0 ** rng.uniform(-1.5, 0)
        rows[0] /= np.linalg.norm(rows[0])
        penalty = 10.0 ** rng.uniform(-3, 1)
        pull = rng.uniform(-1, 1, size=int(n))
        pull[0] = 1.0
        given = problem(
            pull,
            penalty=penalty,
            modulus=penalty * float(np.sum(rows[1:] ** 2)) * 10.0 ** rng.uniform(-1, 1),
            radius=10.0 ** rng.uniform(-1, 2),
            tolerance=1e-6,
        )
        other = 0.0 * rows[0] if adjacency is Adjacency.ZERO_OUT_ONE else -rows[0]
        worst = np.maximum(worst, moved(dataset([rows], adjacency), other, given))
    assert np.all(worst <= 1.0)
    assert np.all(worst > 0.6)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", RECORDS)
def test_neighbours_found_by_climbing_never_exceed_the_sensitivity(adjacency: Adjacency) -> None:
    rng = np.random.default_rng(4)
    n, d = 12, 2

    def ratio(v: np.ndarray) -> float:
        rows, other = v[: n * d].reshape(n, d), v[n * d : n * d + d]
        scales = 10.0 ** np.clip(v[-3:], -4, 3)
        given = problem(v[n * d + d : -3], penalty=scales[0], modulus=scales[1], radius=scales[2])
        if adjacency is Adjacency.ZERO_OUT_ONE:
            other = np.zeros(d)
        return moved(dataset([rows], adjacency), other, given)[0]

    best = 0.0
    for _ in range(4):
        point, value = rng.normal(size=n * d + d + n + 3), 0.0
        for step in range(1500):
            size = 0.5 * 0.998**step
            trial = point + size * rng.normal(size=point.size)
            found = ratio(trial)
            if found > value:
                point, value = trial, found
        best = max(best, value)
    assert 0.75 < best <= 1.0


@pytest.mark.parametrize("adjacency", RECORDS)
def test_the_sensitivity_of_predictions_is_nearly_attained(adjacency: Adjacency) -> None:
    # one column, sum of the others' squares = modulus/penalty, penalty << modulus
    rows = np.ones((101, 1))
    pull = np.zeros(101)
    pull[0] = 1.0
    if adjacency is Adjacency.ZERO_OUT_ONE:
        pull[1:] = -0.005
    given = problem(pull, penalty=0.01, modulus=1.0, radius=0.5)
    row = np.zeros(1) if adjacency is Adjacency.ZERO_OUT_ONE else -np.ones(1)
    predictions, _ = moved(dataset([rows], adjacency), row, given)
    assert 0.97 < predictions <= 1.0


def test_slopes_are_cut_to_their_bound() -> None:
    rows, pull = unit_rows(np.random.default_rng(3), 20, 2), np.linspace(-9, 9, 20)
    data = dataset([rows])
    wide = seen(data.predictions("party 0", problem(pull)))
    cut = seen(data.predictions("party 0", problem(np.clip(pull, -1, 1))))
    assert np.array_equal(wide, cut)


def test_scores_of_a_public_model_move_in_one_coordinate_by_its_length() -> None:
    rng = np.random.default_rng(5)
    data = dataset([unit_rows(rng, 6, 3)])
    x = np.array([0.0, 3.0, 4.0])
    other = data.with_record(2, features=[-x / 5])
    data = data.with_record(2, features=[x / 5])
    here = data.scores("party 0", x)
    change = seen(here) - seen(other.scores("party 0", x))
    assert np.flatnonzero(change).tolist() == [2]
    assert 0.999 < np.linalg.norm(change) / here.sensitivity.value <= 1.0
    assert here.sensitivity.value >= 10.0


# claim S-6: rho = 1, a = 2.5
@pytest.mark.parametrize(("label", "expected"), [(1.0, -0.07102654124), (-1.0, 0.8402098334)])
def test_the_dual_is_the_claimed_figure(label: float, expected: float) -> None:
    data = dataset([np.ones((2, 1))], labels=np.array([label, 1.0]))
    y = seen(data.dual(Logistic(), np.array([2.5, 0.0]), penalty=1.0, tolerance=1e-10))
    assert y[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
def test_the_dual_is_that_of_an_independent_root_finder(penalty: float) -> None:
    rng = np.random.default_rng(6)
    labels, targets = np.sign(rng.normal(size=30)), 20 * rng.normal(size=(2, 30))
    data = dataset([np.ones((30, 1))], labels=labels)
    found = seen(data.dual(Logistic(), targets, penalty=penalty, tolerance=1e-9), trials=2)
    for ys, row in zip(found, targets, strict=True):
        for y, a, label in zip(ys, row, labels, strict=True):

            def gradient(z: float, a: float = a, label: float = label) -> float:
                return -label * float(expit(-label * z)) - a + penalty * z

            z = brentq(gradient, (a - 2) / penalty, (a + 2) / penalty, xtol=1e-13, rtol=1e-14)
            assert y == pytest.approx(a - penalty * z, abs=2e-9)


def test_a_coordinate_of_the_dual_is_the_same_among_few_records_and_among_many() -> None:
    rng = np.random.default_rng(7)
    labels, targets = np.sign(rng.normal(size=20_000)), rng.normal(size=(3, 20_000))
    places = np.array([0, 2_730, 2_731, 8_192, 19_999])  # both sides of blocks' ends

    def dual(rows: np.ndarray) -> np.ndarray:
        data = dataset([np.ones((len(rows), 1))], labels=labels[rows])
        return seen(data.dual(Logistic(), targets[:, rows], penalty=0.3, tolerance=1e-9), trials=3)

    assert np.array_equal(dual(np.arange(20_000))[:, places], dual(places))


@pytest.mark.parametrize(("loss", "gap"), [(Logistic(), 1.0), (LinearLoss(), 2.0)])
def test_labels_move_one_coordinate_of_the_dual_by_at_most_the_gap(
    loss: Logistic, gap: float
) -> None:
    targets = np.concatenate([np.linspace(-60, 60, 400), [0.0]])
    worst = {Adjacency.REPLACE_ONE: 0.0, Adjacency.ZERO_OUT_ONE: 0.0}
    for adjacency, label in ((Adjacency.REPLACE_ONE, -1.0), (Adjacency.ZERO_OUT_ONE, 0.0)):
        data = dataset([np.ones((401, 1))], adjacency)
        for index in (0, 100, 190, 200, 210, 399):
            there = data.with_record(index, label=label)
            for penalty in (0.01, 0.3, 10.0):
                here = data.dual(loss, targets, penalty=penalty, tolerance=1e-8)
                bound = gap if adjacency is Adjacency.REPLACE_ONE else 1.0
                assert here.sensitivity.value == pytest.approx(bound + 2e-8, rel=1e-14)
                other = there.dual(loss, targets, penalty=penalty, tolerance=1e-8)
                change = seen(here) - seen(other)
                assert set(np.flatnonzero(change)) <= {index}
                assert np.abs(change).max() <= here.sensitivity.value
                worst[adjacency] = max(worst[adjacency], float(np.abs(change).max()) / bound)
    assert min(worst.values()) > 0.9


def test_public_labels_are_free_and_named_as_an_assumption() -> None:
    data = dataset([np.ones((3, 1))], public_labels=True)
    dual = data.dual(Logistic(), np.zeros(3), penalty=1.0, tolerance=1e-6)
    assert dual.sensitivity.value == 0.0
    assert dual.sensitivity.assumptions == ("labels are public",)
    with pytest.raises(InvalidParameter):
        data.with_record(0, label=-1.0)


def test_releases_name_no_parties_so_that_all_parties_add_up() -> None:
    shape = VerticalShape(("a", "b", "c"), 9, (1, 2, 3), 1.0, Adjacency.REPLACE_ONE, False)
    plan = PlanningCurator()
    for party in shape.parties:
        held = VerticalDataset.planned(shape).predictions(party, problem(np.zeros(9)))
        message = plan.release(held, round=1, release="scores", noise_multiplier=2.0)
        assert message.shape == (1, 9)
    assert all(event.context.parties == () for event in plan.events)
    mu = guarantee(plan.events, delta=1e-5).mu
    assert mu.upper_float == pytest.approx(sqrt(3) / 2, rel=1e-12)


def test_no_rule_takes_releases_without_parties_for_disjoint_ones() -> None:
    data = dataset([np.ones((4, 2)), np.ones((4, 2))])
    first, second = (data.predictions(p, problem(np.zeros(4))) for p in data.shape.parties)
    named = Sensitive(
        declared(1, "test", adjacency=Adjacency.REPLACE_ONE),
        exact(Fraction(1), width=4),
        parties=("a",),
        dimension=4,
    )
    for other in (second, named):
        with pytest.raises(InvalidParameter):
            concatenate_disjoint(first, other)
    total = (first + second).sensitivity.value
    assert total == pytest.approx(2 * first.sensitivity.value, rel=1e-12)


def test_there_is_no_other_way_out() -> None:
    data = dataset([np.ones((4, 2))])
    with pytest.raises(UnprotectedReleaseError):
        pickle.dumps(data)
    with pytest.raises(UnprotectedReleaseError):
        iter(data)
    assert "1." not in repr(data).replace("row_bound=1.0", "")
    with pytest.raises(UnprotectedReleaseError):
        np.asarray(data.predictions("party 0", problem(np.zeros(4))))
    with pytest.raises(InvalidParameter):
        problem(data.predictions("party 0", problem(np.zeros(4))))  # type: ignore[arg-type]


def test_bad_input_is_refused() -> None:
    good = np.ones((4, 2))
    for blocks, labels in (
        ([good, np.ones((3, 2))], np.ones(4)),
        ([good * np.nan], np.ones(4)),
        ([good], np.array([1.0, -1.0, 0.0, 1.0])),
        ([np.ones(4)], np.ones(4)),
        ([], np.ones(4)),
    ):
        with pytest.raises(InvalidParameter):
            dataset(blocks, labels=labels)
    data = dataset([good])
    for bad in (
        lambda: data.predictions("nobody", problem(np.zeros(4))),
        lambda: data.predictions("party 0", problem(np.zeros(3))),
        lambda: problem(np.array([np.inf])),
        lambda: problem(np.zeros(4), radius=0.0),
        lambda: data.scores("party 0", np.zeros(3)),
        lambda: data.dual(Logistic(), np.zeros(3), penalty=1.0, tolerance=1e-6),
        lambda: data.dual(Logistic(), np.zeros(4), penalty=0.0, tolerance=1e-6),
        lambda: data.with_record(4, label=-1.0),
        lambda: data.with_record(0, label=2.0),
        lambda: data.with_record(0, features=[np.array([np.nan, 0.0])]),
    ):
        with pytest.raises(InvalidParameter):
            bad()


def test_rows_are_cut_to_their_bound() -> None:
    long = dataset([1e3 * np.ones((4, 2))])
    shown = seen(long.scores("party 0", np.array([1.0, 1.0]) / sqrt(2)))
    assert np.all(shown <= 1.0)
    assert np.all(shown >= 1 - 1e-6)


def test_a_pull_of_subnormal_numbers_has_a_minimiser() -> None:
    """The quotient by a modulus underflowed to 0, of which there is no logarithm."""
    found = BallRidge(np.eye(2), 1.0).minimiser(
        np.full(2, 5e-324), penalty=1.0, modulus=100.0, radius=3.0
    )
    assert np.abs(found).max() <= 5e-324


def test_a_relation_may_be_its_word() -> None:
    blocks, parties = [np.eye(3), np.eye(3)], ("a", "b")
    held = VerticalDataset(
        blocks, np.ones(3), adjacency="replace-one", parties=parties, public_labels=True
    )
    assert held.shape.adjacency is Adjacency.REPLACE_ONE
