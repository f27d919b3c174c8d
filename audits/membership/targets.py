"""Whom to look for: a record at random, the one worst off, or a planted canary."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...mechanisms.errors import InvalidParameter
from ...mechanisms.protocols import FloatArray, Loss
from ..neighbours import random_record

__all__ = [
    "Target",
    "canary",
    "hardest",
    "mislabelled",
    "most_exposed",
    "random_target",
    "worst_off",
]


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The record in question.

    Args:
        features: its row, shape (d,).
        label: its label.
        description: why this one, in words.
        index: its place in the training data; None for one that is not among them.
    """

    features: FloatArray
    label: Any
    description: str
    index: int | None = None


def random_target(features: FloatArray, labels: Any, *, seed: int) -> Target:
    """Return one of the records (n, d), each as likely: what an average person faces."""
    index = random_record(len(labels), seed=seed)
    return Target(features[index], labels[index], f"record {index} (at random)", index)


def most_exposed(features: FloatArray, labels: FloatArray, loss: Loss, model: FloatArray) -> int:
    """Return the index of the record whose gradient at `model` (d,) is longest.

    Finding it looks at private records; it is for whoever holds them.
    """
    slopes = np.abs(loss.derivative(features @ model, labels))
    return int(np.argmax(slopes * np.linalg.norm(features, axis=1)))


def worst_off(features: FloatArray, labels: FloatArray, loss: Loss, model: FloatArray) -> Target:
    """Return the record whose gradient at `model` (d,) is longest."""
    index = most_exposed(features, labels, loss, model)
    return Target(features[index], labels[index], f"record {index} (worst off)", index)


def canary(model: FloatArray, *, row_bound: float, index: int) -> Target:
    """Return a record made to be remembered, to stand in the place of record `index`.

    It has the longest row there may be, along `model` (d,), and the label that the model is surest
    to be wrong.
    """
    length = float(np.linalg.norm(model))
    along = np.eye(len(model))[0] if length == 0 else model / length
    return Target(along * row_bound, -1.0, f"a canary in the place of record {index}", index)


def hardest(features: FloatArray, labels: Any, log_probabilities: FloatArray) -> Target:
    """Return the record whose label a model finds least likely, from one number a record."""
    index = int(np.argmin(log_probabilities))
    return Target(features[index], labels[index], f"record {index} (hardest)", index)


def mislabelled(features: FloatArray, labels: Any, *, seed: int) -> Target:
    """Return a copy of a random record with a wrong label, to stand in that record's place."""
    index = random_record(len(labels), seed=seed)
    wrong = [label for label in np.unique(labels) if label != labels[index]]
    if not wrong:
        raise InvalidParameter("labels", labels[index], "of at least two classes")
    return Target(features[index], wrong[0], f"a mislabelled copy of record {index}", index)
