"""Numbers of wrong predictions: what they are, and what a record moves them by."""

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
    InvalidParameter,
    PrivateDataset,
    RealLabels,
)
from dpledger.mechanisms.inside import private_value

FEATURES = 3


def held(rows: np.ndarray, labels: np.ndarray, classes: int, layout: Any = np.asarray) -> Any:
    return AuditDataset(
        layout(rows),
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.arange(len(rows)) % 2,
        parties=("a", "b"),
        label_domain=SIGNS if classes == 2 else ClassLabels(classes),
    )


def drawn(classes: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(classes)
    rows = rng.normal(size=(41, FEATURES))
    rows /= np.maximum(1.0, 1.001 * np.linalg.norm(rows, axis=1, keepdims=True))
    labels = rng.integers(0, classes, size=41).astype(float)
    outputs = 1 if classes == 2 else classes
    models = [rng.normal(size=FEATURES * outputs) for _ in range(4)]
    return rows, 2.0 * labels - 1.0 if classes == 2 else labels, models


def counted(data: Any, models: list[np.ndarray]) -> np.ndarray:
    found = private_value(data.wrong_predictions(models))
    assert found is not None
    return found


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_counts_are_those_of_a_loop_over_records(classes: int, layout: Any) -> None:
    rows, labels, models = drawn(classes)
    expected = np.zeros((2, len(models)))
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        for k, model in enumerate(models):
            if classes == 2:
                guess = 1.0 if sum(a * b for a, b in zip(row, model, strict=True)) > 0 else -1.0
            else:
                guess = float(np.argmax(row @ model.reshape(FEATURES, classes)))
            expected[i % 2, k] += guess != label
    assert counted(held(rows, labels, classes, layout), models).tolist() == expected.tolist()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_record_moves_each_count_by_one_at_most_and_some_by_one(classes: int) -> None:
    rows, labels, models = drawn(classes)
    here = held(rows, labels, classes)
    asked, largest = here.wrong_predictions(models), 0.0
    assert asked.each is not None
    assert asked.each.squared == 1
    assert asked.sensitivity.squared == Fraction(len(models)) ** 2
    for index in range(len(rows)):
        other_rows, other_labels = rows.copy(), labels.copy()
        other_rows[index] = -rows[index]
        other_labels[index] = labels[(index + 1) % len(labels)]
        moved = counted(here, models) - counted(held(other_rows, other_labels, classes), models)
        assert not moved[1 - index % 2].any()
        largest = max(largest, float(np.abs(moved).max()))
    assert largest == 1.0


def test_models_that_are_none_are_refused_without_a_look_at_records() -> None:
    data = PrivateDataset.planned(held(*drawn(2)[:2], 2).shape)
    for models in ([], [np.ones(FEATURES + 1)], [np.full(FEATURES, np.nan)]):
        with pytest.raises(InvalidParameter, match="models"):
            data.wrong_predictions(models)
    real = PrivateDataset(
        np.eye(3), np.zeros(3), adjacency="replace-one", row_bound=1.0, label_domain=RealLabels(1.0)
    )
    with pytest.raises(InvalidParameter, match="label_domain"):
        real.wrong_predictions([np.ones(3)])
