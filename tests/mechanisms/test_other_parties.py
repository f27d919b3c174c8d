"""A record moves its own party's row and no other row by a bit, whatever is computed.

Disjoint parties are priced by their maximum; that is true of doubles only if a row is computed
from its party's records alone. And nothing else, not even a failure, depends on the records.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    EventList,
    FixedBatch,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
    Sensitive,
)
from dpledger.solvers.losses import Hinge, Logistic, Multinomial, SmoothedHinge

PARTIES = ("a", "b", "c", "d")
LINEAR = np.array([0.3, -2.0, 0.1, 1.0, 0.0])


class Undefined:
    """A loss whose slopes are no numbers where the label is -1."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(1)

    def value(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.zeros_like(scores)

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.where(labels + 0.0 * scores > 0.0, 0.5, np.nan)


def points(outputs: int = 1, trials: int = 0) -> np.ndarray:
    shape = (trials, 4, 5 * outputs) if trials else (4, 5 * outputs)
    return np.random.default_rng(1).normal(size=shape)


PRIMITIVES: dict[str, Callable[[PrivateDataset], Sensitive]] = {
    "mean": lambda d: d.mean_gradient(Logistic(), points()),
    "mean, many trials": lambda d: d.mean_gradient(Logistic(), points(trials=9)),
    "mean, weighted": lambda d: d.mean_gradient(Hinge(), points(), weights=np.arange(4.0)),
    "mean of undefined slopes": lambda d: d.mean_gradient(Undefined(), points()),
    "sum": lambda d: d.sum_gradient(SmoothedHinge(0.5), points()),
    "sum, cut": lambda d: d.sum_gradient(Logistic(), points(), radius=0.2),
    "second moment": lambda d: d.second_moment(),
    "wrong predictions": lambda d: d.wrong_predictions(points()),
    "minimiser": lambda d: d.strongly_convex_argmin(
        Logistic(), modulus=0.01, linear=LINEAR, tolerance=1e-5, start=np.zeros(5)
    ),
    "minimiser, loose": lambda d: d.strongly_convex_argmin(
        Logistic(), modulus=0.01, linear=LINEAR, tolerance=0.1, start=np.full(5, 50.0)
    ),
    "minimiser, own moduli and weights": lambda d: d.strongly_convex_argmin(
        SmoothedHinge(0.5),
        modulus=np.array([1e-3, 0.1, 1.0, 9.0]),
        linear=LINEAR,
        tolerance=1e-3,
        start=np.zeros(5),
        weights=np.array([0.0, 1.0, 3.0, 0.5]),
    ),
    "sample": lambda d: (
        SamplingCurator(EventList(), SeededSampler(7))
        .sample(d, FixedBatch(3))
        .sum_gradient(Logistic(), points())
    ),
}


def rows_and_labels(classes: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    holder = rng.permutation(np.repeat(np.arange(4), [7, 40, 9, 1100]))
    features = rng.normal(size=(len(holder), 5)) * 10.0 ** rng.integers(
        -6, 2, size=(len(holder), 1)
    )
    if classes:
        return features, rng.integers(0, classes, size=len(holder)).astype(float), holder
    return features, rng.choice([-1.0, 1.0], size=len(holder)), holder


def dataset(
    features: Any, labels: np.ndarray, holder: np.ndarray, **options: Any
) -> PrivateDataset:
    return AuditDataset(
        features,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=holder,
        parties=PARTIES,
        **options,
    )


def moved(here: Sensitive, there: Sensitive) -> list[int]:
    one, other = here._value, there._value
    assert one is not None
    assert other is not None
    return [p for p in range(4) if one[..., p, :].tobytes() != other[..., p, :].tobytes()]


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("primitive", PRIMITIVES)
@pytest.mark.parametrize("party", [0, 3])
def test_a_record_moves_no_other_partys_row(
    layout: Callable[[np.ndarray], Any], primitive: str, party: int
) -> None:
    features, labels, holder = rows_and_labels()
    compute = PRIMITIVES[primitive]
    here = compute(dataset(layout(features), labels, holder))
    index = int(np.flatnonzero(holder == party)[3])
    for row in (np.zeros(5), np.full(5, 1e300), np.eye(5)[2] * 1e-300, -features[index]):
        changed, flipped = features.copy(), labels.copy()
        changed[index], flipped[index] = row, -labels[index]
        assert set(moved(here, compute(dataset(layout(changed), flipped, holder)))) <= {party}


def test_a_record_moves_no_other_partys_row_of_a_multinomial_gradient() -> None:
    features, labels, holder = rows_and_labels(classes=3)
    loss, w = Multinomial(3), points(outputs=3)
    options = {"label_domain": ClassLabels(3)}
    here = dataset(features, labels, holder, **options).mean_gradient(loss, w)
    index = int(np.flatnonzero(holder == 1)[0])
    changed = features.copy()
    changed[index] = 1e200
    assert moved(here, dataset(changed, labels, holder, **options).mean_gradient(loss, w)) == [1]


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), SmoothedHinge(0.5), Undefined()])
def test_no_floating_point_error_tells_of_a_record(loss: Any) -> None:
    features, labels, holder = rows_and_labels()
    features[3] = [0.9, 0.0, 0.0, 0.0, 0.0]
    data = dataset(features, labels, holder)
    with np.errstate(all="raise"):
        for size in (1e-300, 1.0, 1e5, 1e99):
            w = np.array([size, 0.0, -size, 0.0, 0.0])
            data.mean_gradient(loss, w) * 1e-100
            data.sum_gradient(loss, w, radius=0.5)
            SamplingCurator(EventList(), SeededSampler(7)).sample(
                data, FixedBatch(3)
            ).sum_correction(loss, w, anchor=-w, radius=0.5)
