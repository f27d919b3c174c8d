"""A loss is tried before it is believed: on random scores, never on data.

Sensitivities take a loss at its word that a record's slope depends on that record's score and label
alone: a slope that also depends on other records moves with each of them. A loss that random scores
refute is refused with the counterexample; one that passes may still break its word elsewhere, which
is an assumption, named in docs/trusted.md.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import cast

import numpy as np

from .errors import InvalidParameter
from .protocols import FloatArray, Loss

__all__ = ["require_elementwise"]

_SCORES = 64
_SLACK = 1e-9


def require_elementwise(loss: Loss) -> None:
    """Raise `InvalidParameter` for a loss that random scores refute; equal ones are tried once."""
    try:
        _tried(cast("Hashable", loss))
    except TypeError:  # not hashable: tried every time
        _try(loss)


@lru_cache(maxsize=256)
def _tried(loss: Hashable) -> None:
    _try(cast("Loss", loss))


def _try(loss: Loss) -> None:
    rng = np.random.default_rng(0)
    tail = () if loss.outputs == 1 else (loss.outputs,)
    sizes = 10.0 ** rng.uniform(-3, 3, size=(_SCORES, *(1 for _ in tail)))
    scores = rng.normal(size=(_SCORES, *tail)) * sizes
    low, high = loss.label_domain.extremes
    labels = np.where(rng.random(_SCORES) < 0.5, low, high)
    with np.errstate(all="ignore"):
        together = _slopes(loss, scores, labels)
        apart = np.concatenate(
            [_slopes(loss, scores[k : k + 1], labels[k : k + 1]) for k in range(_SCORES)]
        )
        _require_elementwise(loss, scores, labels, together, apart)


def _slopes(loss: Loss, scores: FloatArray, labels: FloatArray) -> FloatArray:
    found = loss.derivative(scores.copy(), labels.copy())
    if np.shape(found) != scores.shape:
        raise InvalidParameter(
            "loss", loss, f"one whose derivative has the scores' shape {scores.shape}"
        )
    return np.asarray(found, dtype=np.float64)


def _require_elementwise(
    loss: Loss, scores: FloatArray, labels: FloatArray, together: FloatArray, apart: FloatArray
) -> None:
    bound = float(loss.derivative_bound)
    gaps = np.abs(together - apart).reshape(_SCORES, -1).max(axis=-1)
    worst = int(np.argmax(np.where(np.isnan(gaps), -1.0, gaps)))
    if gaps[worst] > _SLACK * bound:
        raise InvalidParameter(
            "loss",
            loss,
            f"elementwise: at score {scores[worst]} and label {labels[worst]} the slope is "
            f"{apart[worst]} alone and {together[worst]} among {_SCORES} records, so that one "
            "record would move what others add; write it as a function of one score and label",
        )
