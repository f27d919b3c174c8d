"""The converged optimum of logistic regression: what "without privacy" is measured by.

Found by Newton's method on all records at once. It is no release and has no epsilon: a yardstick,
with the norm of its gradient as a certificate that it is one. An algorithm without noise that is
stopped after t rounds is another thing, and worse.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..mechanisms.errors import DpledgerError, InvalidParameter, require_positive
from ..mechanisms.protocols import FloatArray

_NEWTON_STEPS = 100
_DECREMENT = 1e-13
"""Of the loss, at which steps end: far below what any figure shows."""


@dataclass(frozen=True, eq=False, slots=True)
class Optimum:
    """A minimiser of mean logistic loss plus (regularisation/2)|w|².

    Args:
        model: w, of shape (d,).
        value: the least objective.
        gradient_norm: of the objective at w. The objective is at most gradient_norm²/(2
            regularisation) above its least, since it is strongly convex.
    """

    model: FloatArray
    value: float
    gradient_norm: float


def logistic_optimum(rows: FloatArray, labels: FloatArray, *, regularisation: float) -> Optimum:
    """Return the optimum over public or non-private records.

    Args:
        rows: of shape (n, d), dense.
        labels: of shape (n,), ±1.
        regularisation: lambda > 0.

    Raises `DpledgerError` if Newton's method has not ended within its steps.
    """
    require_positive("regularisation", regularisation)
    if rows.ndim != 2 or labels.shape != rows.shape[:1]:
        raise InvalidParameter("labels.shape", labels.shape, f"({rows.shape[0]},)")
    signed, w = labels[:, None] * rows, np.zeros(rows.shape[1])
    value, gradient, hessian = _at(signed, w, regularisation)
    for _ in range(_NEWTON_STEPS):
        step = np.linalg.solve(hessian, gradient)
        decrement = float(gradient @ step)
        if decrement <= _DECREMENT:
            return Optimum(w, value, float(np.linalg.norm(gradient)))
        length = 1.0
        # steps are halved until they gain a quarter of what they promise (Armijo's rule)
        while _value(signed, w - length * step, regularisation) > value - length * decrement / 4:
            length /= 2.0
        w = w - length * step
        value, gradient, hessian = _at(signed, w, regularisation)
    raise DpledgerError(f"Expected Newton's method to end within {_NEWTON_STEPS} steps.")


def _value(signed: FloatArray, w: FloatArray, weight: float) -> float:
    return float(np.logaddexp(0.0, -(signed @ w)).mean()) + 0.5 * weight * float(w @ w)


def _at(signed: FloatArray, w: FloatArray, weight: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the objective's value, gradient and Hessian."""
    slopes = expit(-(signed @ w))
    gradient = weight * w - slopes @ signed / len(signed)
    bends = slopes * (1.0 - slopes) / len(signed)
    hessian = (signed * bends[:, None]).T @ signed + weight * np.eye(len(w))
    return _value(signed, w, weight), gradient, hessian
