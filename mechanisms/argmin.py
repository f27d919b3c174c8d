"""Minimising strongly convex objectives to a certified gradient norm.

The price of an approximate minimiser is 2·tau/m for a tolerance tau that is declared before the
data are seen. So the solver either proves |gradient| <= tau, rounding included, or raises.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .errors import InexactArgmin
from .protocols import FloatArray

__all__ = ["Objective", "minimise"]

_EPS = 2.0**-52
_MAX_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Objective:
    """f(v) + (modulus/2)|v|² + <linear, v>, f convex, a mean of `terms` smooth functions.

    Args:
        gradient: gradient of f at v of shape (..., P, d), in the same shape.
        modulus: m > 0, a number or one for each party in shape (P, 1).
        linear: public array of shape (..., P, d).
        smoothness: Lipschitz constant of the whole gradient, a number or of shape (P, 1).
        gradient_bound: no term's gradient is longer.
        terms: number of terms of the mean.
    """

    gradient: Callable[[FloatArray], FloatArray]
    modulus: float | FloatArray
    linear: FloatArray
    smoothness: float | FloatArray
    gradient_bound: float
    terms: int

    def full_gradient(self, v: FloatArray) -> FloatArray:
        """Return the gradient of the whole objective."""
        return self.gradient(v) + self.modulus * v + self.linear

    def gradient_norm_up(self, v: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return upper bounds (..., P) on the true gradient norms, given the computed gradient.

        A sum of n terms in doubles errs by at most (n + d + 8)·2^-52 times the sum of the terms'
        sizes (Higham 2002, section 4.2). A score errs by at most d·2^-52·‖row‖·|v|, which moves the
        gradient by at most the smoothness times d·2^-52·|v|; the slope's own error is in the 8.
        """
        size = (
            self.gradient_bound
            + np.linalg.norm(self.smoothness * v, axis=-1)
            + np.linalg.norm(self.linear, axis=-1)
        )
        rounding = (self.terms + v.shape[-1] + 8) * _EPS * size
        measured = np.linalg.norm(gradient, axis=-1)
        return np.asarray(measured * (1.0 + 1e-12) + rounding)


def minimise(objective: Objective, start: FloatArray, tolerance: float) -> FloatArray:
    """Return v with certified gradient norm <= `tolerance` in every trial and party.

    Nesterov's constant-momentum method for strongly convex functions (2004, section 2.2.1); raises
    `InexactArgmin` when double precision or the step limit does not reach the tolerance.
    """
    root = (objective.modulus / objective.smoothness) ** 0.5
    momentum = (1.0 - root) / (1.0 + root)
    v = ahead = np.broadcast_to(
        start, np.broadcast_shapes(start.shape, objective.linear.shape)
    ).copy()
    nowhere = np.zeros_like(v)
    if float(objective.gradient_norm_up(nowhere, nowhere).max()) > tolerance:
        raise _refusal(tolerance)
    for _ in range(_MAX_STEPS):
        gradient = objective.full_gradient(ahead)
        worst = float(objective.gradient_norm_up(ahead, gradient).max())
        if worst <= tolerance:
            return ahead
        before, v = v, ahead - gradient / objective.smoothness
        ahead = v + momentum * (v - before)
        if not np.isfinite(worst):
            break
    raise _refusal(tolerance)


def _refusal(tolerance: float) -> InexactArgmin:
    # the norm that was reached is a function of private data: it stays out of the message
    return InexactArgmin(
        f"Expected to certify a gradient norm <= {tolerance:g}; nothing was released. "
        "Declare a larger tolerance (it is priced as 2·tolerance/modulus)."
    )
