"""A loss is tried before it is believed: on random scores, never on data.

Sensitivities take a loss at its word that a record's slope depends on that record's score and label
alone: a slope that also depends on other records moves with each of them. A loss that random scores
refute is refused with the counterexample; one that passes may still break its word elsewhere, which
is an assumption, named in docs/trusted.md.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass

import numpy as np

from .errors import InvalidParameter
from .protocols import FloatArray, Loss, MarginLoss

_SCORES = 64
_SLACK = 1e-9
_tried: set[tuple[object, ...]] = set()
"""Types and fields of frozen losses that passed: they cannot change, so that once is enough."""


def require_elementwise(loss: Loss) -> None:
    """Raise `InvalidParameter` for a loss that random scores refute.

    A frozen dataclass is tried once for its type and fields, whatever it says it equals; any other
    loss may have changed since, and is tried every time.
    """
    key = _identity(loss)
    if key is None:
        _try(loss)
    elif key not in _tried:
        _try(loss)
        _tried.add(key)


def _identity(loss: Loss) -> tuple[object, ...] | None:
    """Return what a frozen dataclass is made of; None for what may change or has no hash."""
    parameters = getattr(type(loss), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or not is_dataclass(loss):
        return None
    key = (type(loss), *(repr(getattr(loss, field.name)) for field in fields(loss)))
    plain = all(isinstance(getattr(loss, f.name), (int, float, str)) for f in fields(loss))
    return key if plain else None


def _try(loss: Loss) -> None:
    rng = np.random.default_rng(0)
    tail = () if loss.outputs == 1 else (loss.outputs,)
    sizes = 10.0 ** rng.uniform(-3, 3, size=(_SCORES, *(1 for _ in tail)))
    scores = rng.normal(size=(_SCORES, *tail)) * sizes
    low, high = loss.label_domain.extremes
    labels = np.where(rng.random(_SCORES) < 0.5, low, high)
    with np.errstate(all="ignore"):
        _compare(loss, scores, labels, lambda k: _slopes(loss, scores[k], labels[k]))
        if isinstance(loss, MarginLoss):
            margins = scores * labels
            _compare(loss, margins, labels, lambda k: _margin_slopes(loss, margins[k]))


def _compare(
    loss: Loss, scores: FloatArray, labels: FloatArray, slopes: Callable[[slice], FloatArray]
) -> None:
    together = slopes(slice(None))
    apart = np.concatenate([slopes(slice(k, k + 1)) for k in range(_SCORES)])
    _require_elementwise(loss, scores, labels, together, apart)


def _margin_slopes(loss: MarginLoss, margins: FloatArray) -> FloatArray:
    found = loss.margin_derivative(margins.copy())
    if np.shape(found) != margins.shape:
        raise InvalidParameter("loss", loss, f"one whose margin_derivative keeps {margins.shape}")
    return np.asarray(found, dtype=np.float64)


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
