"""Losses as they state themselves, and how a loss of the caller's is evaluated on private numbers.

Sensitivities rest on one thing about slopes: a record's is a function of its own score and label.
So a loss that does not come with the program is called in one layout only, at its trial and on
data alike: scores of shape (m,), or (m, K) for K outputs, row after row, with labels (m,),
read-only. On data m is always `BLOCK`. The first of a block is a public example, of which the rest
of it, too, are copies where records are missing: what a loss reads off its first record, as NumPy's
`vectorize` does the type of all answers, it then reads off nobody's, and sums and products over
outputs round alike however many records there are, and whichever are left when one of them raises.
What a loss answers is a new array of that shape, of real numbers. A record for
which it answers otherwise, or raises, has slope 0: that too is a function of its own score and
label, so that nothing fails because of the data, and no error or warning carries a private number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction

import numpy as np

from .labels import LabelDomain
from .protocols import FloatArray, Loss
from .quiet import silence
from .sensitivity import Sensitivity, concatenated, declared

BLOCK = 256
"""Scores that a loss of the caller's sees at once."""

ROOM = BLOCK - 1
"""Records among them: the first is an example."""

_PACKAGE = __name__.partition(".")[0]


class WrongSlopes(Exception):
    """A loss answered with something else than one slope for each score."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class StatedLoss:
    """A loss that passed its trial, with what it stated when it was read. Made by `stated`."""

    loss: Loss
    outputs: int
    label_domain: LabelDomain
    derivative_bound: Fraction
    curvature_bound: Fraction | None
    label_gap_bound: Fraction | None

    @property
    def margin_derivative(self) -> Callable[[FloatArray], FloatArray] | None:
        """What a `MarginLoss` that comes with the program has; else None."""
        return None if self.foreign else getattr(self.loss, "margin_derivative", None)

    @property
    def foreign(self) -> bool:
        """Whether it, or a part of it, does not come with the program."""
        return bool(_foreign_kinds(self.loss))

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return l, as the loss computes it."""
        return self.loss.value(scores, labels)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return ∂l/∂score, an array of the scores' shape (..., n) or (..., n, K); never raises."""
        if not self.foreign:
            return self.loss.derivative(scores, labels)
        tail = () if self.outputs == 1 else (self.outputs,)
        flat = scores.reshape(-1, *tail)
        each = np.broadcast_to(labels, scores.shape[: scores.ndim - len(tail)]).reshape(-1)
        found = np.zeros(flat.shape)
        starts = range(0, len(flat), ROOM)
        parts = [slice(start, min(start + ROOM, len(flat))) for start in starts]
        while parts:
            part = parts.pop()
            try:
                with silence(strangers=True):
                    found[part] = self.in_a_block(flat[part], each[part])
            except KeyboardInterrupt:
                raise
            except BaseException:  # an exit, too: which of the records it was is found by halving
                middle = (part.start + part.stop) // 2
                if part.start < middle:
                    parts += [slice(part.start, middle), slice(middle, part.stop)]
        return found.reshape(scores.shape)

    def in_a_block(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the slopes of 1 <= m <= ROOM records, as the loss answers for a whole block.

        Arguments and errors as of `slopes`.
        """
        many = len(scores)
        # an ordinary score, at no edge
        example = 0.371 - 0.93 * np.arange(self.outputs) / self.outputs
        whole = np.empty((BLOCK, *scores.shape[1:]))
        whole[:], whole[1 : many + 1] = example.reshape(scores.shape[1:]), scores
        each = np.full(BLOCK, self.label_domain.extremes[0])
        each[1 : many + 1] = labels
        return self.slopes(whole, each)[1 : many + 1]

    def slopes(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return what the loss itself answers, as a new array.

        Args:
            scores: of shape (m,), or (m, K) for K outputs; the loss sees them read-only.
            labels: of shape (m,), as well.

        Raises `WrongSlopes`, which names no number, and whatever the loss raises.
        """
        scores, labels = scores.view(), labels.view()
        scores.setflags(write=False)
        labels.setflags(write=False)
        found = np.asanyarray(self.loss.derivative(scores, labels))
        if found.shape != scores.shape:
            raise WrongSlopes(f"slopes of shape {found.shape} for scores of shape {scores.shape}")
        # numpy.ma is loaded by a first look at it, which plain arrays do not need
        masked = type(found) is not np.ndarray and np.ma.isMaskedArray(found)
        if found.dtype.kind not in "fiub" or masked:
            raise WrongSlopes(f"an array of {found.dtype} that is none of plain real numbers")
        return np.array(found, dtype=np.float64, subok=False)

    def __repr__(self) -> str:
        """Show the loss itself."""
        return repr(self.loss)


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
    own = _foreign_kinds(loss.loss)
    if not own:
        return sensitivity
    word = "convex, its slope and curvature bounded as it states" if minimised else "elementwise"
    names = " in ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in reversed(own))
    reason = f"the loss {names} is {word}: tried on random scores, not proved"
    return concatenated(sensitivity, declared(0, reason, adjacency=sensitivity.adjacency))


def _foreign_kinds(loss: object) -> list[type]:
    """Return the classes of a loss and its parts that do not come with the program."""
    return [kind for kind in _kinds(loss) if kind.__module__.partition(".")[0] != _PACKAGE]


def _kinds(loss: object) -> list[type]:
    """Return a loss's class, and those of the losses that it is made of."""
    parts = [getattr(loss, field.name) for field in fields(loss)] if is_dataclass(loss) else []
    inner = [part for part in parts if hasattr(part, "derivative_bound")]
    return [type(loss), *(kind for part in inner for kind in _kinds(part))]
