"""Where a ray runs: its start, angle and panels, and the paths of the inner integrals, in doubles.

A bad choice makes the bounds of `ray` wide, not wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, log, pi
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .pairs import GaussianShift, Order, Sampled
from .ray_sums import (
    INNER,
    INNER_ELLIPSE,
    MOST_INNER,
    SHAPES,
    Boxes,
    ExponentialSum,
    PairSum,
    Path,
    Shape,
    falling,
    falls,
    panel_error,
    path_of,
    rising,
    scale_and_rate,
)
from .saddle import Counts

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]

OUTER = 24
"""Points of a panel of the outer integral."""

ELLIPSE = 2.5
"""Parameter of the Bernstein ellipses of outer panels: 24 points keep e^-42."""

_WIDTH = 5.0
"""Half the length of an outer panel, in radians of e^{-zε}: 24 points resolve ten radians with
room.
"""

_ANGLES = tuple(np.deg2rad(x) for x in (75.0, 80.0, 84.0, 87.0))
"""Angles of a ray to the real axis, tried in turn, in radians. Flatter ones meet the growth of M,
steeper ones are a vertical line once more.
"""
_DIGITS = 19.0
"""Natural-log digits of every error relative to δ: 6e-9, some 1e-10 of ε."""

_MOST_STRAIN = 22.0
"""Natural-log digits of cancellation above which a ray is no good.

Doubles hold 36 of them; less these 22 they leave 14, or 1e-6 of δ.
"""

_LEAST_RATE, _HIGHEST_RATE = Fraction(1, 2**60), 1 - Fraction(1, 2**20)
"""Rates whose 1 - q, and (1-q)/q, doubles know well."""

_MOST_PANELS = 160
"""Outer panels above which a vertical line or a grid is cheaper."""
_MOST_CUTS = 7
"""How often a panel is halved at most; lengths are whole multiples of 2^-7 of the first panel's."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a ray: panels between `start` + `unit` · places, and the path of each sampled pair.

    The lengths of panels, in units, are powers of two; start and unit are exact, so that what the
    grade enclosed takes for the ends is exact, too.

    Args:
        start: the point on the real axis, > 0, where the ray begins.
        unit: complex; its direction is the ray's.
        places: ends of the panels in units, rising, shape (panels + 1,).
        paths: for each sampled pair the path of its inner integral.
    """

    start: float
    unit: complex
    places: Places
    paths: dict[Sampled, Path]

    @property
    def ends(self) -> Complexes:
        """The ends of the panels, in order, in doubles."""
        return np.asarray(self.start + self.unit * self.places, np.complex128)


class RayPlacement(NamedTuple):
    """The stretches of a ray, in order, and the paths that bound what is above its end.

    Args:
        stretches: near the real axis paths must bend further right than above; hence two.
        above: paths on which what lies above the last point is bounded.
    """

    stretches: tuple[Stretch, ...]
    above: dict[Sampled, Path]


def reaches(counts: Counts) -> bool:
    """Return whether all moment functions are entire, fall along a ray, and are known well.

    r^{-z} of a pair with the mixture second grows to the right where r < 1, and Laplace or lattice
    losses do not decay: for them the path of `ray` is none.
    """
    return all(
        isinstance(pair, GaussianShift)
        or (
            isinstance(pair, Sampled)
            and isinstance(pair.base, GaussianShift)
            and pair.order is not Order.MIXTURE_SECOND
            and _LEAST_RATE <= pair.rate <= _HIGHEST_RATE
        )
        for pair in counts
    )


Sums = dict[Sampled, PairSum]
"""The finite sum of each sampled pair."""


@lru_cache(maxsize=512)
def _sum_of(pair: Sampled, path: Path) -> PairSum:
    """Return the finite sum of a pair on a path; kept, since trying angles asks for the same
    again.
    """
    return PairSum.of(pair, path)


def sums_of(paths: dict[Sampled, Path]) -> Sums:
    """Return the finite sum of each sampled pair on its path."""
    return {pair: _sum_of(pair, path) for pair, path in paths.items()}


def _paths(counts: Counts, shape: Shape, first: complex) -> dict[Sampled, Path] | None:
    """Return the path of each sampled pair; None if one of them would need too many panels."""
    steps = sum(counts.values())
    sampled = [pair for pair in counts if isinstance(pair, Sampled)]
    paths = {pair: path_of(pair, steps, shape, first) for pair in sampled}
    found = {pair: path for pair, path in paths.items() if path is not None}
    return found if len(found) == len(sampled) else None


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
    total = np.zeros(z.shape)
    for pair, n in counts.items():
        if isinstance(pair, Sampled):
            total += n * terms(pair).log_sum(z)
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


def place_ray(
    counts: Counts, epsilon: float, log_delta: float, start: float
) -> RayPlacement | None:
    """Return the shortest ray found from `start` on that serves a point of the curve, or None.

    Args:
        counts: pairs for which `reaches` holds.
        epsilon: of the point, > 0.
        log_delta: natural logarithm of δ there.
        start: c, about the saddle's order or a little less.
    """
    best: tuple[Shape, Stretch] | None = None
    for shape in SHAPES:
        # for heights above the real parts; what is below them is a small part of every ray
        paths = _paths(counts, shape, complex(start, 2 * start))
        if paths is None:
            continue
        for angle in _ANGLES:
            whole = _whole(counts, paths, start, angle, epsilon, log_delta)
            if whole and (best is None or whole.places.size < best[1].places.size):
                best = shape, whole
    if best is None:
        return None
    shape, whole = best
    low = int(np.searchsorted(whole.ends.imag, 1.5 * start)) + 1
    stretches = []
    for places in (whole.places[:low], whole.places[low - 1 :]):
        if places.size < 2:
            continue
        paths = _paths(counts, shape, start + whole.unit * int(places[0]))
        if paths is None:
            return None
        stretch = Stretch(start, whole.unit, places, paths)
        refined = _refined(counts, stretch, epsilon, log_delta)
        if refined is None:
            return None
        stretches.append(refined)
    return RayPlacement(tuple(stretches), whole.paths)


def _whole(
    counts: Counts,
    paths: dict[Sampled, Path],
    start: float,
    angle: float,
    epsilon: float,
    log_delta: float,
) -> Stretch | None:
    """Return panels up to where the rest is negligible; None where that is too far.

    Panels double in length as long as the poles at 0 and -1 stay outside of their ellipses and
    e^{-zε} turns by no more than ten radians. The end is the first panel at which what lies above
    has fallen below exp(-`_DIGITS`) of δ; up to it the integrand may exceed δ by
    exp(`_MOST_STRAIN`) only.
    """
    # a panel that is too long may be cut in 2^7: so whole units are that small
    sums = sums_of(paths)
    shortest = min(start, 2 * _WIDTH / epsilon)
    unit = complex(np.exp(1j * angle)) * shortest / (1 << _MOST_CUTS)
    places, length = [0], 1 << _MOST_CUTS
    while len(places) <= _MOST_PANELS:
        here = start + unit * places[-1]
        if here.real * epsilon > _DIGITS + _MOST_STRAIN + 8:
            break
        # the poles at 0 and -1 have to stay outside the ellipses
        if 2 * length * abs(unit) <= min(abs(here), 2 * _WIDTH / epsilon):
            length *= 2
        places.append(places[-1] + length)
    if len(places) < 2:
        return None
    z = np.asarray(start + unit * np.array(places[1:]), np.complex128)
    few = np.unique(np.geomspace(1, z.size, 16).astype(np.int64)) - 1
    few = few[z.imag[few] > 1.5 * z.real[few]]
    size = log_product(counts, lambda pair: sums[pair].above, z[few])
    size += -z.real[few] * epsilon - np.log(pi * z.imag[few]) - log_delta
    small = np.nonzero(size < -_DIGITS)[0]
    if not small.size or np.max(size[: small[0]], initial=-inf) > _MOST_STRAIN:
        return None
    end = z[few[small[0]] :][:1]
    if not all(falls(path, *scale_and_rate(pair), end) for pair, path in paths.items()):
        return None
    return Stretch(start, unit, np.array(places[: int(few[small[0]]) + 2]), paths)


def _refined(counts: Counts, stretch: Stretch, epsilon: float, log_delta: float) -> Stretch | None:
    """Return a stretch with panels cut up until their errors are negligible; None if never.

    The inner sums must be accurate next to δ at every end of an outer panel, and next to
    themselves, as they are raised to powers; panels of a path are halved until they are.
    """
    paths, sums = dict(stretch.paths), sums_of(stretch.paths)
    places = _cut_outer(counts, stretch, sums, epsilon, log_delta)
    if places.size > _MOST_PANELS + 1:
        return None
    stretch = Stretch(stretch.start, stretch.unit, places, paths)
    z = stretch.ends
    whole = log_product(counts, lambda pair: sums[pair].terms, z)
    whole += -z.real * epsilon - log_delta - np.log(np.abs(z))
    for pair, path in stretch.paths.items():
        # small next to δ, and to the sum itself: it is raised to a power
        spare = np.minimum(-whole - _DIGITS - log(64 * len(paths)), -6.0) - log(counts[pair])
        allowed = sums[pair].terms.log_sum(z) + spare
        mu, q = scale_and_rate(pair)
        if not falls(path, mu, q, z):
            return None
        along = _cut(np.array(path.ends), rising, mu, q, z, allowed, INNER_ELLIPSE)
        mirror = np.array(path.mirror, np.complex128)
        if mirror.size:
            mirror = _cut(mirror, falling, mu, q, z, allowed, INNER_ELLIPSE)
        if along.size + mirror.size > 2 * MOST_INNER:
            return None
        paths[pair] = Path(tuple(along.tolist()), tuple(mirror.real.tolist()))
    return Stretch(stretch.start, stretch.unit, places, paths)


def _cut_outer(
    counts: Counts, stretch: Stretch, sums: Sums, epsilon: float, log_delta: float
) -> Places:
    """Return the places of panels, cut in halves until all are accurate, or too many.

    The allowance of each panel is exp(-`_DIGITS`) δ over the number of panels; only new panels are
    evaluated again.
    """
    allowed = -_DIGITS - log(_MOST_PANELS) + log_delta
    places = stretch.places
    sizes = np.full(places.size - 1, inf)
    for _ in range(_MOST_CUTS):
        ends = Stretch(stretch.start, stretch.unit, places, {}).ends
        middles = np.asarray((ends[1:] + ends[:-1]) / 2, np.complex128)
        halves = np.asarray(np.diff(ends) / 2, np.complex128)
        new = np.nonzero(sizes == inf)[0]
        corners = corners_of(middles[new], halves[new])
        near = middles.imag[new, None]
        outer = log_product(counts, lambda pair: sums[pair].terms, corners, near)
        bounds = quadrature_error(corners, outer, halves[new]) - epsilon * corners.real
        sizes[new] = np.max(bounds, axis=1)
        large = np.nonzero(sizes > allowed)[0]
        if not large.size or places.size > _MOST_PANELS:
            break
        places = np.insert(places, large + 1, (places[large] + places[large + 1]) // 2)
        sizes[large] = inf
        sizes = np.insert(sizes, large + 1, inf)
    return places


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


def _cut(
    ends: Complexes,
    bound: Callable[[Boxes, float, float], ExponentialSum],
    mu: float,
    q: float,
    z: Complexes,
    allowed: Floats,
    rho: float,
) -> Complexes:
    """Return the ends of inner panels, halved until each one's error at all z is at most what is
    allowed.

    Args:
        ends: of panels in the plane of u, shape (panels + 1,).
        bound: of the integrand over boxes.
        mu, q: of the sampled shift.
        z: where the sum is used, shape (n,).
        allowed: log of the error that may remain, at each z.
        rho: parameter of the Bernstein ellipses.
    """
    for _ in range(_MOST_CUTS):
        half = np.abs(np.diff(ends)) / 2
        terms = bound(Boxes.around(ends, rho), mu, q)
        size = terms.g.real + panel_error(half, rho, INNER)
        size = (
            size + np.multiply.outer(z.real, terms.b.real) - np.multiply.outer(z.imag, terms.b.imag)
        )
        large = np.nonzero((size > allowed[:, None]).any(axis=0))[0]
        if not large.size or ends.size > 2 * MOST_INNER:
            break
        ends = np.insert(ends, large + 1, (ends[large] + ends[large + 1]) / 2)
    return ends


def corners_of(middles: Complexes, halves: Complexes) -> Complexes:
    """Return the corners of rectangles around the ellipses of the panels, shape (panels, 4).

    An ellipse of parameter ρ around [-1, 1] has the half-axes (ρ + 1/ρ)/2 and (ρ - 1/ρ)/2.
    """
    along, across = (ELLIPSE + 1 / ELLIPSE) / 2, (ELLIPSE - 1 / ELLIPSE) / 2
    offsets = np.array([s * along + 1j * t * across for s in (-1, 1) for t in (-1, 1)])
    return np.asarray(middles[:, None] + halves[:, None] * offsets, np.complex128)
