"""Gauss-Legendre rules on [-1, 1], as balls and as the doubles next to them.

Roots of Legendre polynomials as balls (Johansson, Mezzarobba 2018). Of SciPy's rules of hundreds of
points the outermost weights have lost up to nine digits, and a tilted integrand has most of its
mass there.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from .enclosure import precision

_DOUBLE = 64
"""Bits of balls whose middles are the doubles next to what they contain, or nearly."""


@lru_cache(maxsize=64)
def balls(points: int, bits: int) -> list[tuple[arb, arb]]:
    """Return nodes, rising, and weights of so many points, as balls of so many bits."""
    with precision(bits):
        # by symmetry half of them are enough; the first are the largest
        right = [arb.legendre_p_root(points, k, weight=True) for k in range((points + 1) // 2)]
        left = [(-x, w) for x, w in right]
        return [*left, *reversed(right[: points // 2])]


@lru_cache(maxsize=256)
def doubles(points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes, rising, and weights, each within an ulp; kept: plans ask for few numbers of
    points.
    """
    rule = balls(points, _DOUBLE)
    x, w = (np.array([float(each[k]) for each in rule]) for k in (0, 1))
    return x, w
