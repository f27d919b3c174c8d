"""Laws of weighted records: a weight is a part of its record, and no release moves by more for it.

1. A number that stands for a label and a weight is read as both, exactly to rounding.
2. What is outside the domain is refused by its place, and a loss of other labels before a run.
3. A weighted mean gradient is that of a loop over records, over their number.
4. No neighbour moves a release by more than its printed sensitivity, searched by brute force over
   rows, labels and weights; the search comes within 1 % of it, so that it could have found more.
5. In the units of weights the sensitivity grows with the largest weight.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    InvalidParameter,
    RealLabels,
    Sensitive,
    WeightedLabels,
)
from dpledger.mechanisms.inside import private_value
from dpledger.solvers import ClippedLogistic, Huber, Logistic, Multinomial, Weighted

REPLACE, ZERO, ADD = (
    Adjacency.REPLACE_ONE,
    Adjacency.ZERO_OUT_ONE,
    Adjacency.ADD_REMOVE_ONE,
)
SIGNED, CLASSES = WeightedLabels(SIGNS), WeightedLabels(ClassLabels(3))
TARGETS = WeightedLabels(RealLabels(2.0))
RECORDS, WIDTH, TRIES = 4, 2, 40


def value_of(found: Sensitive) -> np.ndarray:
    value = private_value(found)
    assert value is not None
    return value


def held(rows: Any, codes: np.ndarray, domain: WeightedLabels, adjacency: Adjacency) -> Any:
    return AuditDataset(
        rows,
        codes,
        adjacency=adjacency,
        row_bound=1.0,
        label_domain=domain,
        n_min=3 if adjacency is ADD else None,
    )


@given(label=st.integers(0, 2), weight=st.floats(0.0, 1.0))
def test_a_label_and_its_weight_are_read_back(label: int, weight: float) -> None:
    code = CLASSES.joined(np.array([float(label)]), np.array([weight]))
    CLASSES.require(code)
    labels, weights = CLASSES.parts(code)
    assert labels == label
    assert 0.0 <= weights[0] <= 1.0
    assert abs(weights[0] - weight) <= 2.0**-50


@given(label=st.floats(-2.0, 2.0), weight=st.floats(0.0, 1.0))
def test_a_target_and_its_weight_are_read_back_within_a_step(label: float, weight: float) -> None:
    code = TARGETS.joined(np.array([label]), np.array([weight]))
    TARGETS.require(code)
    labels, weights = TARGETS.parts(code)
    assert abs(labels[0]) <= 2.0
    assert abs(labels[0] - label) <= 2.0**-23 * (1 + 1e-6)  # half a step, and roundings
    assert 0.0 <= weights[0] <= 1.0
    assert abs(weights[0] - weight) <= 2.0**-27


@pytest.mark.parametrize("code", [-0.5, 1.5, 3.25, 4.0, float("nan"), float("inf")])
def test_a_number_that_is_no_label_with_a_weight_is_refused_by_its_place(code: float) -> None:
    with pytest.raises(InvalidParameter, match=r"'that of record 1' must be 2k \+ weight"):
        SIGNED.require(np.array([1.0, code]))


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_weight_outside_the_unit_interval_is_refused(weight: float) -> None:
    with pytest.raises(InvalidParameter, match="'that of record 1' must be of a weight"):
        SIGNED.joined(np.ones(2), np.array([1.0, weight]))


def test_labels_with_weights_and_without_do_not_mean_the_same() -> None:
    others = (SIGNS, ClassLabels(3), RealLabels(10.0))
    for domain in (SIGNED, CLASSES):
        assert domain.contains(domain)
        assert not any(domain.contains(each) or each.contains(domain) for each in others)
        domain.require(np.array([domain.filler, *domain.extremes, *domain.some(1024)]))
    with pytest.raises(InvalidParameter, match="one without weights"):
        Weighted(Weighted(Logistic()))
    data = held(np.eye(RECORDS, WIDTH), np.array([1.0, 3.0, 2.5, 0.0]), SIGNED, REPLACE)
    with pytest.raises(InvalidParameter, match="defined for"):
        data.mean_gradient(Logistic(), np.zeros(WIDTH))
    with pytest.raises(InvalidParameter, match="SignLabels or ClassLabels"):
        data.wrong_predictions([np.ones(WIDTH)])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("domain", "loss"), [(SIGNED, Logistic()), (CLASSES, Multinomial(3))])
def test_a_weighted_mean_is_that_of_a_loop_over_records(
    domain: WeightedLabels, loss: Logistic | Multinomial, layout: Any
) -> None:
    rng, outputs = np.random.default_rng(3), loss.outputs
    rows = rng.uniform(-0.5, 0.5, size=(RECORDS, WIDTH))
    labels = np.array([1.0, -1.0, 1.0, -1.0]) if outputs == 1 else np.array([0.0, 2.0, 1.0, 2.0])
    weights, w = np.array([0.0, 0.3, 1.0, 0.7]), rng.normal(size=WIDTH * outputs)
    expected = np.zeros(WIDTH * outputs)
    for row, label, weight in zip(rows, labels, weights, strict=True):
        scores = row @ w.reshape(WIDTH, outputs)
        slope = loss.derivative(scores if outputs == 1 else scores[None], np.array([label]))
        expected += weight * np.outer(row, slope).ravel() / RECORDS
    data = held(layout(rows), domain.joined(labels, weights), domain, REPLACE)
    found = value_of(data.mean_gradient(Weighted(loss), w))
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-15)


def drawn_code(rng: np.random.Generator, domain: WeightedLabels) -> float:
    """A label, mostly with the largest weight, which is what the worst case has."""
    weight = rng.choice([0.0, 0.3, 1.0, 1.0, 1.0, 1.0], size=1)
    return float(domain.joined(rng.choice(domain.labels.some(3), size=1), weight)[0])


def released(data: Any, loss: Weighted, w: np.ndarray, *, argmin: bool) -> Sensitive:
    if not argmin:
        return data.mean_gradient(loss, w)
    return data.strongly_convex_argmin(
        loss, modulus=50.0, linear=w, tolerance=1e-6, start=np.zeros_like(w)
    )


@pytest.mark.parametrize("argmin", [False, True], ids=["mean gradient", "minimiser"])
@pytest.mark.parametrize("adjacency", [REPLACE, ZERO, ADD], ids=str)
@pytest.mark.parametrize(
    ("domain", "loss"),
    [
        (SIGNED, Weighted(ClippedLogistic(0.5))),
        (CLASSES, Weighted(Multinomial(3))),
        (TARGETS, Weighted(Huber(1.0, 2.0))),
    ],
    ids=["signs", "classes", "targets"],
)
def test_no_neighbour_moves_a_release_by_more_than_its_sensitivity(
    domain: WeightedLabels, loss: Weighted, adjacency: Adjacency, argmin: bool
) -> None:
    rng, worst = np.random.default_rng(1), Fraction(0)
    # scores far along the first axis saturate slopes, and the second turns gradients around
    corners = np.array([[0.05, 0.998], [0.05, -0.998], [-0.05, 0.998], [-1.0, 0.0]])
    for turn in range(TRIES):
        rows = corners[rng.integers(len(corners), size=RECORDS + 1)]
        codes = np.array([drawn_code(rng, domain) for _ in range(RECORDS)])
        new = drawn_code(rng, domain)
        if turn % 2:  # the others' gradients, and the new record's, away from the first one's
            rows[1:], codes[1:], new = rows[0] * [1.0, -1.0], codes[0], codes[0]
        # minimisers go where `linear` pulls them, gradients are taken where scores saturate
        w = rng.choice([-1.0, 0.0, 1.0], size=WIDTH * loss.outputs) * (5e3 if argmin else 100.0)
        w[loss.outputs :] = 0.0
        data = held(rows[:RECORDS], codes, domain, adjacency)
        if adjacency is REPLACE:
            other = data.with_record(0, features=rows[-1], label=new)
        elif adjacency is ZERO:
            other = data.with_record(0, features=np.zeros(WIDTH))
        else:
            other = data.without_record(0)
        here, there = (released(each, loss, w, argmin=argmin) for each in (data, other))
        moved = Fraction(float(np.linalg.norm(value_of(here) - value_of(there))))
        # a minimiser is within tolerance/modulus of its place, which the sensitivity prices
        assert moved <= here.sensitivity.root
        worst = max(worst, moved / here.sensitivity.root)
    # a mean of 4 that loses one moves by G/2 at most, and a count of 3 is priced, with 2G/3
    assert worst >= (Fraction(74, 100) if adjacency is ADD else Fraction(99, 100))


def test_in_the_units_of_weights_sensitivity_grows_with_the_largest_weight() -> None:
    # sums of weight · gradient over n, for weights up to W: W times those of weights over W
    rows, w = np.tile([1.0, 0.0], (RECORDS, 1)), np.array([0.0, 0.0])
    weights = np.array([1.0, 1.0, 2.0, 0.5])
    moves = {}
    for largest in (2.0, 8.0):
        codes = SIGNED.joined(np.ones(RECORDS), weights / largest)
        data = held(rows, codes, SIGNED, REPLACE)
        other = data.with_record(0, label=float(SIGNED.joined(-np.ones(1), np.ones(1))[0]))
        here, there = (each.mean_gradient(Weighted(Logistic()), w) for each in (data, other))
        moves[largest] = largest * float(np.linalg.norm(value_of(here) - value_of(there)))
        assert moves[largest] <= largest * float(here.sensitivity.root)
        # the same weighted sum whatever the bound, of which noise is a share W times as large
        expected = -0.5 * weights.sum() / RECORDS
        np.testing.assert_allclose(largest * value_of(here)[0], [expected, 0.0], rtol=1e-12)
    assert moves[8.0] == pytest.approx((1.0 + 8.0) / RECORDS / 2)
    assert moves[2.0] == pytest.approx((1.0 + 2.0) / RECORDS / 2)
