"""A loss is tried before it is believed: on random scores, never on data.

Sensitivities take a loss at its word: that a record's slope depends on that record's score and
label alone; of minimisers, that slopes grow with scores, at most as fast as stated; of labels held
apart, how far two labels' slopes lie from each other. A loss that random scores refute is refused
with the counterexample; one that passes may still break its word elsewhere, which is an assumption:
events of a loss that does not come with the program name it (`assuming`). What a loss states is
read once, so that what is priced is what is cut.

Every label that a loss is stated for is tried, up to 1024 of them, and batches of one record, of
several, of as many as there are outputs, of one label only, and with one label in the majority,
and with many records in turn as the first of them, also such as stand at an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from fractions import Fraction
from typing import Any
from weakref import WeakSet

import numpy as np

from .clipping import SQUARE_EXPONENT, cut_to_bound
from .errors import (
    InvalidParameter,
    require_magnitude,
    require_nonnegative,
    require_positive_int,
)
from .labels import LabelDomain
from .protocols import FloatArray, Loss
from .quiet import silence
from .records import IntArray
from .sensitivity import float_up
from .stated_loss import ROOM, StatedLoss

_LEAST_SCORES, _MOST_LABELS = 64, 1024
_SLACK = 1e-9
"""Relative to the stated bound: what rounding may add to a slope that keeps its word."""

_EDGES, _FIRST = (0.0, 1.0, -1.0), 64
"""Scores at which formulas have cases of their own, beside a label's; and how many records are
tried as the first of a batch."""

_FAR_OUT = (*range(-4, 12), *range(12, 500, 8))
"""Powers of two at which slopes are compared along a line: up to about 1e150."""

_STEEPEST = 2**900
"""The largest curvature that may be stated: products with it overflow soon after."""

_CONVEX = "convex in the score, however large"

_Asked = Callable[[FloatArray, FloatArray], FloatArray]
"""Scores and labels to slopes."""

_tried: set[tuple[object, ...]] = set()
"""Types and fields of the program's frozen losses that passed, and the trial: they cannot change,
so that once is enough."""

_made: WeakSet[StatedLoss] = WeakSet()
"""What `stated` returned, as far as it is still in use."""


def stated(loss: Loss) -> StatedLoss:
    """Return a loss as it states itself now, tried: its slopes are elementwise, on random scores.

    A frozen dataclass of the program's own, of numbers, texts and such dataclasses, is tried once
    for its types and fields, whatever it says it equals; any other loss may have changed since, or
    the constants that it reads, and is tried every time.

    Raises `InvalidParameter` for a loss that random scores refute.
    """
    if type(loss) is StatedLoss:
        if loss in _made:
            return loss
        loss = loss.loss
    read = _read(loss)
    _once("elementwise", read, _try_elementwise)
    _made.add(read)
    return read


def _read(loss: Loss) -> StatedLoss:
    """Return a loss with what it states, of plain numbers: NumPy's whole ones wrap round.

    Raises `InvalidParameter` for what is missing, or is none of its kind.
    """
    names = ("derivative_bound", "outputs", "label_domain", "curvature_bound", "derivative")
    if missing := [name for name in names if not hasattr(loss, name)]:
        raise InvalidParameter("loss", loss, f"a loss, as Logistic(), with {', '.join(missing)}")
    require_magnitude("loss.derivative_bound", loss.derivative_bound, SQUARE_EXPONENT)
    require_positive_int("loss.outputs", loss.outputs)
    if not isinstance(loss.label_domain, LabelDomain):
        raise InvalidParameter("loss.label_domain", loss.label_domain, "a LabelDomain, as SIGNS")
    optional = {name: getattr(loss, name, None) for name in ("curvature_bound", "label_gap_bound")}
    for name, value in optional.items():
        if value is not None:
            require_nonnegative(f"loss.{name}", value)
            if Fraction(value) > _STEEPEST:
                raise InvalidParameter(f"loss.{name}", float_up(value), "at most 2^900")
    bend, gap = (None if value is None else Fraction(value) for value in optional.values())
    bound = Fraction(loss.derivative_bound)
    return StatedLoss(loss, loss.outputs, loss.label_domain, bound, bend, gap)


def require_convex(loss: StatedLoss) -> None:
    """Raise `InvalidParameter` where slopes fall along a line, or exceed what is stated of them.

    Strong convexity of a minimised objective, and so the sensitivity of its minimiser, rests on it.
    The trial compares slopes at the two ends of random segments of scores: convexity is <s(y) -
    s(x), y - x> >= 0, and the curvature bound is |s(y) - s(x)| <= bound · |y - x|.

    Args:
        loss: as `stated` returned it.
    """
    _once("convex", loss, _try_convex)


def require_label_gap(loss: StatedLoss) -> None:
    """Raise `InvalidParameter` where two labels' slopes are further apart than is stated.

    Where labels are held apart from features, a record's label moves the slope by the gap only.

    Args:
        loss: of labels -1 and +1, as `stated` returned it.
    """
    _once("label gap", loss, _try_label_gap)


def _once(trial: str, loss: StatedLoss, tried: Callable[[StatedLoss], None]) -> None:
    """Run a trial; of a loss that cannot change, once only: what a caller's reads may change."""
    key = None if loss.foreign else _identity(loss.loss)
    if key is None:
        tried(loss)
    elif (trial, *key) not in _tried:
        tried(loss)
        _tried.add((trial, *key))


def _identity(loss: object) -> tuple[object, ...] | None:
    """Return what a frozen dataclass is made of; None for what may change or holds more.

    It may be made of numbers, texts, and such dataclasses (a loss of shifted scores holds another).
    A subclass inherits the parameters of the dataclass above it, and may hold what no field says.
    """
    kind: Any = type(loss)
    parameters = vars(kind).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        return None
    names = {field.name for field in fields(kind)}
    slots = [vars(base).get("__slots__", ()) for base in kind.__mro__]
    held = set(getattr(loss, "__dict__", ())).union(
        *((each,) if isinstance(each, str) else each for each in slots)
    )
    values = [getattr(loss, name) for name in sorted(names)]
    plain = (int, float, str, bool, Fraction)
    parts = [repr(each) if type(each) in plain else _identity(each) for each in values]
    return None if None in parts or not held <= names else (kind, *parts)


def _drawn(loss: StatedLoss, *, far: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return random scores of all magnitudes, and labels, each at least twice.

    With `far` some scores are as large as 1e150: there exponentials overflow and differences lose
    all digits. And some are 0, 1 or a label, unless the loss raises there: such a slope is 0.
    """
    rng = np.random.default_rng(0)
    tail = () if loss.outputs == 1 else (loss.outputs,)
    each = loss.label_domain.some(_MOST_LABELS)
    count = max(_LEAST_SCORES, 2 * len(each))
    powers = rng.uniform(-3, 3, size=count)
    if far:
        powers[::8] = rng.uniform(3, 150, size=len(powers[::8]))
    scores = rng.normal(size=(count, *tail)) * 10.0 ** powers.reshape(count, *(1 for _ in tail))
    labels = rng.permutation(np.resize(each, count))
    if not far:
        return scores, labels
    few = each[:: max(1, len(each) // 8)]
    edges = np.array([[*_EDGES, label] for label in few]).reshape(-1, *(1 for _ in tail))
    more, beside = np.broadcast_to(edges, (edges.size, *tail)), np.repeat(few, 4)
    kept = [k for k in range(len(more)) if _answers(loss, more[[k]], beside[[k]])]
    return np.concatenate([scores, more[kept]]), np.concatenate([labels, beside[kept]])


def _answers(loss: StatedLoss, scores: FloatArray, labels: FloatArray) -> bool:
    """Return whether a loss has slopes at scores."""
    try:
        with silence(strangers=True):
            loss.slopes(scores, labels)
    except KeyboardInterrupt:
        raise
    except BaseException:  # an exit, too, as on data
        return False
    return True


def _try_elementwise(loss: StatedLoss) -> None:
    """Compare each record's slope alone with its slope among others, cut as it is used.

    Of a loss of the caller's the two are the same bits, wherever in a block the record stands: one
    with a threshold makes the last of them a whole slope.
    """
    scores, labels = _drawn(loss, far=True)
    bound = loss.derivative_bound

    def cut(found: FloatArray) -> FloatArray:
        return cut_to_bound(found, bound, loss.outputs)

    each = [_slopes(loss, scores[[k]], labels[[k]]) for k in range(len(scores))]
    apart = cut(np.concatenate(each))
    for some, found in _together(loss, scores, labels):
        together = cut(found)
        gaps = np.abs(together - apart[some]).reshape(len(some), -1).max(axis=-1)
        worst = int(np.argmax(gaps))
        if gaps[worst] > _SLACK * bound:
            k = some[worst]
            raise InvalidParameter(
                "loss",
                loss,
                f"elementwise: at score {scores[k]} and label {labels[k]} the slope is "
                f"{apart[k]} alone and {together[worst]} among {len(some)} records, so that one "
                "record would move what others add; write it as a function of one score and label",
            )
    if loss.foreign:
        _try_places(loss, scores, labels)


def _together(
    loss: StatedLoss, scores: FloatArray, labels: FloatArray
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield indices of records with their slopes among each other; on data's layout, too."""
    for some in _batches(labels, loss.outputs):
        yield some, _slopes(loss, scores[some], labels[some])
    if loss.foreign:
        yield np.arange(len(scores)), _in_blocks(loss, scores, labels)


def _try_places(loss: StatedLoss, scores: FloatArray, labels: FloatArray) -> None:
    """Compare a record's bits at all places of a block, beside others and beside itself."""
    rng, count = np.random.default_rng(2), len(scores)
    mixed = [rng.permutation(np.resize(np.arange(count), max(count, ROOM))) for _ in range(8)]
    alike = [np.full(ROOM, k) for k in range(0, count, max(1, count // 8))]
    apart = np.concatenate([_in_blocks(loss, scores[[k]], labels[[k]]) for k in range(count)])
    for some in (*mixed, *alike):
        together = _in_blocks(loss, scores[some], labels[some])
        same = (together == apart[some]) | (np.isnan(together) & np.isnan(apart[some]))
        wrong = np.flatnonzero(~same.reshape(len(some), -1).all(axis=-1))
        if wrong.size:
            k, place = some[wrong[0]], int(wrong[0]) % ROOM
            raise InvalidParameter(
                "loss",
                loss,
                f"elementwise to the last bit: at score {scores[k]}, label {labels[k]} the slope "
                f"is {apart[k]} alone and {together[wrong[0]]} at place {place} of a block; add up "
                "over outputs by a sum over the last axis, in place of a product with a matrix",
            )


def _in_blocks(loss: StatedLoss, scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Return slopes of the trial as they are computed on data; raise as `_slopes`."""
    parts = [slice(start, start + ROOM) for start in range(0, len(scores), ROOM)]
    return np.concatenate(
        [_slopes(loss, scores[part], labels[part], loss.in_a_block) for part in parts]
    )


def _batches(labels: FloatArray, outputs: int) -> Iterator[IntArray]:
    """Yield indices of records to be tried together; some stand in a batch several times."""
    every = np.arange(len(labels))
    yield from (every, every[::-1], every[:2], every[:3], np.resize(every, outputs))
    yield from (np.roll(every, -k) for k in every[:: max(1, len(every) // _FIRST)])
    yield from (np.roll(every, k) for k in range(1, 33))  # the last are those at an edge
    for label in sorted({*labels.tolist()}):
        own, others = (np.flatnonzero(labels == label), np.flatnonzero(labels != label))
        yield own
        yield np.concatenate([own, own, others[:3]])


def _try_convex(loss: StatedLoss) -> None:
    """Compare slopes at two points of random lines, far apart and close together.

    Then at points ever further out: where exponentials overflow, a slope that is no number, or 0,
    falls, and all records beyond follow one another over the edge.
    """
    (start, labels), rng = _drawn(loss), np.random.default_rng(1)
    count = len(labels)
    reach = 10.0 ** rng.uniform(-3, 2, size=(count, *(1,) * (start.ndim - 1)))
    for centre in (np.zeros_like(start), start):
        end = centre + rng.normal(size=start.shape) * reach
        first, second = (_slopes(loss, point, labels) for point in (centre, end))
        along = (end - centre).reshape(count, -1)
        length = np.sqrt(np.square(along).sum(axis=-1))
        moved = (second - first).reshape(count, -1)
        rise = (moved * along).sum(axis=-1) / length
        far = np.sqrt(np.square(moved).sum(axis=-1))
        slack = _SLACK * float(loss.derivative_bound)
        size = np.sqrt(np.square(second.reshape(count, -1)).sum(axis=-1))
        steep = f"one whose slopes are at most derivative_bound={loss.derivative_bound}"
        over = ~(size <= float(loss.derivative_bound) + slack)  # not a number is over, too
        _refuse(loss, over, (centre, end, labels), (first, second), steep)
        _refuse(loss, ~(rise >= -slack), (centre, end, labels), (first, second), _CONVEX)
        if loss.curvature_bound is not None:
            most = float(loss.curvature_bound) * length * (1.0 + _SLACK) + slack
            words = (
                f"one whose slopes move by at most curvature_bound={loss.curvature_bound} a unit"
            )
            _refuse(loss, ~(far <= most), (centre, end, labels), (first, second), words)
    line = start / np.sqrt(np.square(start).reshape(count, -1).sum(axis=-1)).reshape(reach.shape)
    before, reached, last = np.zeros_like(start), -np.inf, _slopes(loss, 0 * start, labels)
    for power in _FAR_OUT:
        point = line * 2.0**power
        found = _slopes(loss, point, labels)
        along = (found * line).reshape(count, -1).sum(axis=-1)
        falls = ~(along >= reached - slack)
        _refuse(loss, falls, (before, point, labels), (last, found), _CONVEX)
        before, reached, last = point, along, found


def _try_label_gap(loss: StatedLoss) -> None:
    scores, gap = _drawn(loss)[0], loss.label_gap_bound
    if gap is None:
        raise InvalidParameter("loss", loss, "with a label_gap_bound")
    above = np.ones(len(scores))
    first, second = (_slopes(loss, scores, labels) for labels in (-above, above))
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


def _slopes(
    loss: StatedLoss,
    scores: FloatArray,
    labels: FloatArray,
    ask: _Asked | None = None,
) -> FloatArray:
    """Return what the loss answers at scores of the trial, or what `ask` does.

    Raises `InvalidParameter` where it raises, or answers with something else than slopes.
    """
    try:
        with silence(strangers=True):
            return (ask or loss.slopes)(scores, labels)
    except Exception as error:
        raise InvalidParameter(
            "loss",
            loss,
            f"one whose derivative returns an array of real numbers of the scores' shape, here "
            f"{scores.shape}, from read-only scores and labels {labels.shape}; it raised "
            f"{type(error).__name__}: {error}",
        ) from error
