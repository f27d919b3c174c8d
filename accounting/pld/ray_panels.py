"""A ray as `ray` integrates along it: its panels, the finite sums of pairs, bounds on a panel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log, pi
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .pairs import GaussianShift, Sampled
from .quadrature import Line
from .ray_line import line_sum
from .ray_sums import ExponentialSum, PairSum, Path, log_sums, panel_error
from .saddle import Counts

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]

OUTER = 24
"""Points of a panel of the outer integral."""

ELLIPSE = 2.5
"""Parameter of the Bernstein ellipses of outer panels: 24 points keep e^-42."""

Paths = dict[Sampled, Path | Line]
"""Where the inner integral of each sampled pair runs."""

Sums = dict[Sampled, PairSum]
"""The finite sum of each sampled pair."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a ray: panels between `start` + `unit` · places, and the path of each sampled pair.

    The lengths of panels, in units, are powers of two; start and unit are exact, so that what the
    grade enclosed takes for the ends is exact, too.

    Args:
        start: where it begins; the ray does on the real axis, > 0.
        unit: complex; its direction is the stretch's.
        places: ends of the panels in units, rising, shape (panels + 1,).
        paths: for each sampled pair the path of its inner integral.
    """

    start: complex
    unit: complex
    places: Places
    paths: Paths

    @property
    def ends(self) -> Complexes:
        """The ends of the panels, in order, in doubles."""
        return np.asarray(self.start + self.unit * self.places, np.complex128)


class RayPlacement(NamedTuple):
    """The stretches of a ray, in order, and the paths that bound what is above its end.

    Args:
        stretches: a vertical one from the real axis up, then the one at an angle.
        above: paths on which what lies above the last point is bounded.
    """

    stretches: tuple[Stretch, ...]
    above: Paths


@lru_cache(maxsize=512)
def sum_of(pair: Sampled, path: Path | Line) -> PairSum:
    """Return the finite sum of a pair on a path; kept, since trying angles asks for the same
    again.
    """
    return line_sum(pair, path) if isinstance(path, Line) else PairSum.of(pair, path)


@lru_cache(maxsize=512)
def thinned_of(pair: Sampled, path: Path | Line) -> ExponentialSum:
    """Return about the sum of moduli of a pair on a path; kept as `sum_of` is."""
    return sum_of(pair, path).terms.thinned()


def sums_of(paths: Paths) -> Sums:
    """Return the finite sum of each sampled pair on its path."""
    return {pair: sum_of(pair, path) for pair, path in paths.items()}


def log_product(
    counts: Counts,
    terms: Callable[[Sampled], ExponentialSum],
    z: Complexes,
    near: Floats | None = None,
) -> Floats:
    """Return log Π bound^n, the bound of a sampled pair being the modulus of its terms.

    Args:
        counts: pairs and how often each.
        terms: which of a sampled pair's sums bounds it.
        z: points, any shape.
        near: for Gaussian shifts the heights at which a log-convex bound is to be sharp.
    """
    sampled = [pair for pair in counts if isinstance(pair, Sampled)]
    found = log_sums([terms(pair) for pair in sampled], z)
    return product_of(counts, dict(zip(sampled, found, strict=True)), z, near)


def product_of(
    counts: Counts, logs: Mapping[Sampled, Floats], z: Complexes, near: Floats | None = None
) -> Floats:
    """Return `log_product` where the logarithms of the bounds of sampled pairs are known."""
    total = np.zeros(z.shape)
    for pair, n in counts.items():
        if isinstance(pair, Sampled):
            total += n * logs[pair]
        else:
            assert isinstance(pair, GaussianShift)
            total += n * log_gaussian(pair, z, near)
    return total


def log_gaussian(pair: GaussianShift, z: Complexes, near: Floats | None = None) -> Floats:
    """Return log |M(1+z)|, or a bound on it that is log-convex in z and sharp at heights `near`.

    log |M(1+z)| = μ²/2 (x² + x - y²) is concave in y, and a maximum over a polygon must be at a
    corner: so -y² is replaced by its tangent y₀² - 2yy₀ at a height y₀ near by, which lies above
    it.
    """
    y, y0 = z.imag, z.imag if near is None else near
    return np.asarray(float(pair.mu_squared) / 2 * (z.real**2 + z.real + y0**2 - 2 * y * y0))


def quadrature_error(corners: Complexes, outer: Floats, halves: Complexes) -> Floats:
    """Return log of bounds on the errors of outer panels, e^{-zε} apart, from each corner.

    The bound of `quadrature` on Gauss-Legendre, (64/15) w X ρ^{2-2n}/(1 - ρ^{-2}) (Trefethen 2013,
    Theorem 19.3), with X <= |M| / |z (z+1)| over the rectangle. Infinite where that holds a pole.

    Args:
        corners: of the rectangles, shape (panels, 4).
        outer: log-convex bounds on log |M| there, same shape.
        halves: of the panels, complex, shape (panels,).
    """
    left, low = np.min(corners.real, axis=1), np.maximum(np.min(corners.imag, axis=1), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        nearest = np.log(np.hypot(left, low)) + np.log(np.hypot(1 + left, low))
    rule = panel_error(np.abs(halves), ELLIPSE, OUTER) - log(pi)
    return np.asarray(np.where((left > 0)[:, None], outer + (rule - nearest)[:, None], inf))


def corners_of(middles: Complexes, halves: Complexes) -> Complexes:
    """Return the corners of rectangles around the ellipses of the panels, shape (panels, 4).

    An ellipse of parameter ρ around [-1, 1] has the half-axes (ρ + 1/ρ)/2 and (ρ - 1/ρ)/2.
    """
    along, across = (ELLIPSE + 1 / ELLIPSE) / 2, (ELLIPSE - 1 / ELLIPSE) / 2
    offsets = np.array([s * along + 1j * t * across for s in (-1, 1) for t in (-1, 1)])
    return np.asarray(middles[:, None] + halves[:, None] * offsets, np.complex128)
