"""Projection on a ball, with headroom for rounding."""

import numpy as np

from .protocols import FloatArray

__all__ = ["HEADROOM", "project_to_ball"]

HEADROOM = 1.0 - 2.0**-30
"""Norms are cut at this fraction of the bound: rounding errors of later sums (relative 1e-13 or so)
stay far inside the sensitivity that the exact bound prices."""


def project_to_ball(vectors: FloatArray, radius: float) -> FloatArray:
    """Return vectors of shape (..., d), those longer than `radius`·HEADROOM scaled down to it."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    limit = radius * HEADROOM
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(norms > limit, limit / norms, 1.0)
    return vectors * factors
