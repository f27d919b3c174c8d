"""A loss is tried before it is believed: on random scores, never on data.

Sensitivities take a loss at its word: that a record's slope depends on that record's score and
label alone; of minimisers, that slopes grow with scores, at most as fast as stated; of labels held
apart, how far two labels' slopes lie from each other. A loss that random scores refute is refused
with the counterexample; one that passes may still break its word elsewhere, which is an assumption:
events of a loss that does not come with the program name it (`assuming`). What a loss states is
read once, so that what is priced is what is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .errors import InvalidParameter
from .labels import LabelDomain
from .protocols import FloatArray, Loss
from .sensitivity import Sensitivity, concatenated, declared

_PACKAGE = __name__.partition(".")[0]
_SCORES = 64
_SLACK = 1e-9
_tried: set[tuple[object, ...]] = set()
"""Types and fields of frozen losses that passed, and the trial: they cannot change, so that once is
enough."""


@dataclass(frozen=True, slots=True, eq=False)
class StatedLoss:
    """A loss that passed its trial, with what it stated when it was read. Made by `stated`."""

    loss: Loss
    outputs: int
    label_domain: LabelDomain
    derivative_bound: Fraction
    curvature_bound: Fraction | None
    label_gap_bound: Fraction | None
    margin_derivative: Callable[[FloatArray], FloatArray] | None

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return l, as the loss computes it."""
        return self.loss.value(scores, labels)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return ∂l/∂score, as the loss computes it."""
        return self.loss.derivative(scores, labels)

    def __repr__(self) -> str:
        """Show the loss itself."""
        return repr(self.loss)


def stated(loss: Loss) -> StatedLoss:
    """Return a loss as it states itself now, tried: its slopes are elementwise, on random scores.

    A frozen dataclass is tried once for its type and fields, whatever it says it equals; any other
    loss may have changed since, and is tried every time.

    Raises `InvalidParameter` for a loss that random scores refute.
    """
    if isinstance(loss, StatedLoss):
        return loss
    gap = getattr(loss, "label_gap_bound", None)
    margin = getattr(loss, "margin_derivative", None)
    bend = loss.curvature_bound
    read = StatedLoss(
        loss,
        int(loss.outputs),
        loss.label_domain,
        Fraction(loss.derivative_bound),
        None if bend is None else Fraction(bend),
        None if gap is None else Fraction(gap),
        margin,
    )
    _once("elementwise", read, _try_elementwise)
    return read


def assuming(loss: StatedLoss, sensitivity: Sensitivity, *, minimised: bool = False) -> Sensitivity:
    """Return a sensitivity of the same bound that names what is assumed of a loss of the caller's.

    The losses that come with the program are tested for what they state, and nothing is added; of
    any other loss random scores are tried, and the rest is a declared 0 in the derivation: what
    the loss does beyond its word.

    Args:
        loss: that the sensitivity rests on.
        sensitivity: in the l2 norm.
        minimised: whether it is a minimiser's, which needs convexity and the curvature as well.
    """
    own = [kind for kind in _kinds(loss.loss) if kind.__module__.partition(".")[0] != _PACKAGE]
    if not own:
        return sensitivity
    word = "convex, its slope and curvature bounded as it states" if minimised else "elementwise"
    names = " in ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in reversed(own))
    reason = f"the loss {names} is {word}: tried on random scores, not proved"
    return concatenated(sensitivity, declared(0, reason, adjacency=sensitivity.adjacency))


def _kinds(loss: object) -> list[type]:
    """Return a loss's class, and those of the losses that it is made of."""
    parts = [getattr(loss, field.name) for field in fields(loss)] if is_dataclass(loss) else []
    inner = [part for part in parts if hasattr(part, "derivative_bound")]
    return [type(loss), *(kind for part in inner for kind in _kinds(part))]


def require_convex(loss: StatedLoss) -> None:
    """Raise `InvalidParameter` where slopes fall along a line, or exceed what is stated of them."""
    _once("convex", loss, _try_convex)


def require_label_gap(loss: StatedLoss) -> None:
    """Raise `InvalidParameter` where two labels' slopes are further apart than is stated."""
    _once("label gap", loss, _try_label_gap)


def _once(trial: str, loss: StatedLoss, tried: Callable[[StatedLoss], None]) -> None:
    key = _identity(loss.loss)
    if key is None:
        tried(loss)
    elif (trial, *key) not in _tried:
        tried(loss)
        _tried.add((trial, *key))


def _identity(loss: Loss) -> tuple[object, ...] | None:
    """Return what a frozen dataclass is made of; None for what may change or has no hash."""
    parameters = getattr(type(loss), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or not is_dataclass(loss):
        return None
    key = (type(loss), *(repr(getattr(loss, field.name)) for field in fields(loss)))
    plain = all(isinstance(getattr(loss, f.name), (int, float, str)) for f in fields(loss))
    return key if plain else None


def _drawn(loss: StatedLoss) -> tuple[FloatArray, FloatArray]:
    """Return random scores of all magnitudes, and labels."""
    rng = np.random.default_rng(0)
    tail = () if loss.outputs == 1 else (loss.outputs,)
    sizes = 10.0 ** rng.uniform(-3, 3, size=(_SCORES, *(1 for _ in tail)))
    scores = rng.normal(size=(_SCORES, *tail)) * sizes
    low, high = loss.label_domain.extremes
    return scores, np.where(rng.random(_SCORES) < 0.5, low, high)


def _try_elementwise(loss: StatedLoss) -> None:
    scores, labels = _drawn(loss)
    with np.errstate(all="ignore"):
        _compare(loss, scores, labels, lambda k: _slopes(loss, scores[k], labels[k]))
        if loss.margin_derivative is not None:
            margins = scores * labels
            _compare(loss, margins, labels, lambda k: _margin_slopes(loss, margins[k]))


def _try_convex(loss: StatedLoss) -> None:
    """Compare slopes at two points of random lines, far apart and close together."""
    (start, labels), rng = _drawn(loss), np.random.default_rng(1)
    reach = 10.0 ** rng.uniform(-3, 2, size=(_SCORES, *(1,) * (start.ndim - 1)))
    for centre in (np.zeros_like(start), start):
        end = centre + rng.normal(size=start.shape) * reach
        with np.errstate(all="ignore"):
            first, second = (_slopes(loss, point, labels) for point in (centre, end))
        along = (end - centre).reshape(_SCORES, -1)
        length = np.sqrt(np.square(along).sum(axis=-1))
        moved = (second - first).reshape(_SCORES, -1)
        rise = (moved * along).sum(axis=-1) / length
        far = np.sqrt(np.square(moved).sum(axis=-1))
        slack = _SLACK * float(loss.derivative_bound)
        size = np.sqrt(np.square(second.reshape(_SCORES, -1)).sum(axis=-1))
        steep = f"one whose slopes are at most derivative_bound={loss.derivative_bound}"
        over = size > float(loss.derivative_bound) + slack
        _refuse(loss, over, (centre, end, labels), (first, second), steep)
        _refuse(loss, rise < -slack, (centre, end, labels), (first, second), "convex in the score")
        if loss.curvature_bound is not None:
            most = float(loss.curvature_bound) * length * (1.0 + _SLACK) + slack
            words = (
                f"one whose slopes move by at most curvature_bound={loss.curvature_bound} a unit"
            )
            _refuse(loss, far > most, (centre, end, labels), (first, second), words)


def _try_label_gap(loss: StatedLoss) -> None:
    (scores, _), (low, high) = _drawn(loss), loss.label_domain.extremes
    gap = loss.label_gap_bound
    if gap is None:
        raise InvalidParameter("loss", loss, "with a label_gap_bound")
    below, above = np.full(_SCORES, low), np.full(_SCORES, high)
    with np.errstate(all="ignore"):
        first, second = (_slopes(loss, scores, labels) for labels in (below, above))
    wide = np.abs(first - second) > float(gap) * (1.0 + _SLACK)
    words = f"one whose slopes at two labels differ by at most label_gap_bound={gap}"
    _refuse(loss, wide, (scores, scores, above), (first, second), words)


def _refuse(
    loss: StatedLoss,
    where: Any,
    at: tuple[FloatArray, ...],
    slopes: tuple[FloatArray, ...],
    words: str,
) -> None:
    """Raise `InvalidParameter` with the first counterexample, if there is one."""
    found = np.flatnonzero(where)
    if not found.size:
        return
    k, (start, end, labels), (first, second) = int(found[0]), at, slopes
    raise InvalidParameter(
        "loss",
        loss,
        f"{words}: the slope is {first[k]} at score {start[k]} and {second[k]} at {end[k]}, label "
        f"{labels[k]}",
    )


def _compare(
    loss: StatedLoss,
    scores: FloatArray,
    labels: FloatArray,
    slopes: Callable[[slice], FloatArray],
) -> None:
    together = slopes(slice(None))
    apart = np.concatenate([slopes(slice(k, k + 1)) for k in range(_SCORES)])
    _require_elementwise(loss, scores, labels, together, apart)


def _margin_slopes(loss: StatedLoss, margins: FloatArray) -> FloatArray:
    assert loss.margin_derivative is not None
    found = loss.margin_derivative(margins.copy())
    if np.shape(found) != margins.shape:
        raise InvalidParameter("loss", loss, f"one whose margin_derivative keeps {margins.shape}")
    return np.asarray(found, dtype=np.float64)


def _slopes(loss: StatedLoss, scores: FloatArray, labels: FloatArray) -> FloatArray:
    found = loss.derivative(scores.copy(), labels.copy())
    if np.shape(found) != scores.shape:
        raise InvalidParameter(
            "loss", loss, f"one whose derivative has the scores' shape {scores.shape}"
        )
    return np.asarray(found, dtype=np.float64)


def _require_elementwise(
    loss: StatedLoss,
    scores: FloatArray,
    labels: FloatArray,
    together: FloatArray,
    apart: FloatArray,
) -> None:
    bound = float(loss.derivative_bound)
    # NaN in one of the two alone is a difference; NaN, or one infinity, in both is none
    alike = (together == apart) | (np.isnan(together) & np.isnan(apart))
    gaps = np.where(alike, 0.0, np.nan_to_num(np.abs(together - apart), nan=np.inf))
    gaps = gaps.reshape(_SCORES, -1).max(axis=-1)
    worst = int(np.argmax(gaps))
    if gaps[worst] > _SLACK * bound:
        raise InvalidParameter(
            "loss",
            loss,
            f"elementwise: at score {scores[worst]} and label {labels[worst]} the slope is "
            f"{apart[worst]} alone and {together[worst]} among {_SCORES} records, so that one "
            "record would move what others add; write it as a function of one score and label",
        )
