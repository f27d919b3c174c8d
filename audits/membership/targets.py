"""Whom to look for: a record at random, the one worst off, or a planted canary."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...mechanisms.errors import InvalidParameter
from ...mechanisms.protocols import FloatArray, Loss
from ..neighbours import random_record


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
    """Return one of the records (n, d), each as likely: what an average person faces.

    Args:
        features, labels: the records, shapes (n, d) and (n,).
        seed: of the choice; fix it before looking.
    """
    index = random_record(len(labels), seed=seed)
    return Target(features[index], labels[index], f"record {index} (at random)", index)


def most_exposed(features: FloatArray, labels: FloatArray, loss: Loss, model: FloatArray) -> int:
    """Return the index of the record whose gradient at `model` (d·K,) is longest.

    K is the loss's number of outputs. Finding it looks at private records; it is for whoever holds
    them.

    Args:
        features, labels: the records, shapes (n, d) and (n,).
        loss: whose gradient in the model is meant.
        model: public weights.
    """
    scores = features @ model.reshape(-1, loss.outputs)
    if loss.outputs == 1:
        slopes = np.abs(loss.derivative(scores[:, 0], labels))
    else:
        slopes = np.linalg.norm(loss.derivative(scores, labels), axis=1)
    return int(np.argmax(slopes * np.linalg.norm(features, axis=1)))


def worst_off(features: FloatArray, labels: FloatArray, loss: Loss, model: FloatArray) -> Target:
    """Return the record whose gradient at `model` (d·K,) is longest.

    Args:
        features, labels: the records, shapes (n, d) and (n,).
        loss: whose gradient in the model is meant.
        model: public weights.
    """
    index = most_exposed(features, labels, loss, model)
    return Target(features[index], labels[index], f"record {index} (worst off)", index)


def canary(model: FloatArray, *, row_bound: float, index: int, outputs: int = 1) -> Target:
    """Return a record made to be remembered, to stand in the place of record `index`.

    It has the longest row there may be, along `model` (d,), and the label -1, of which the model is
    surest that it is wrong. Of a model (d·K,) with K = `outputs` classes, the row is along what
    parts the two classes that differ most, and the label is the one that it speaks against.
    """
    along, label = model, -1.0
    if outputs > 1:
        weights = model.reshape(-1, outputs)
        gaps = weights[:, :, None] - weights[:, None, :]
        wrong, right = divmod(int(np.linalg.norm(gaps, axis=0).argmax()), outputs)
        along, label = gaps[:, right, wrong], float(wrong)
    length = float(np.linalg.norm(along))
    unit = np.eye(len(along))[0] if length == 0 else along / length
    return Target(unit * row_bound, label, f"a canary in the place of record {index}", index)


def hardest(features: FloatArray, labels: Any, log_probabilities: FloatArray) -> Target:
    """Return the record whose label a model finds least likely, from one number a record.

    Args:
        features, labels: the records, shapes (n, d) and (n,).
        log_probabilities: of each record's own label, shape (n,), by a model that was not trained
            on it.
    """
    index = int(np.argmin(log_probabilities))
    return Target(features[index], labels[index], f"record {index} (hardest)", index)


def mislabelled(features: FloatArray, labels: Any, *, seed: int) -> Target:
    """Return a copy of a random record with a wrong label, to stand in that record's place.

    Args:
        features, labels: the records, shapes (n, d) and (n,), of two classes or more.
        seed: of record and label; fix it before looking.
    """
    index = random_record(len(labels), seed=seed)
    wrong = [label for label in np.unique(labels) if label != labels[index]]
    if not wrong:
        raise InvalidParameter("labels", labels[index], "of at least two classes")
    return Target(features[index], wrong[0], f"a mislabelled copy of record {index}", index)
