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
"""Half the length of an outer panel, in radians of e^{-zε}."""

_ANGLES = tuple(np.deg2rad(x) for x in (75.0, 80.0, 84.0, 87.0))
_DIGITS = 19.0
"""Natural-log digits of every error relative to δ: 6e-9, some 1e-10 of ε."""

_MOST_STRAIN = 22.0
"""Natural-log digits of cancellation above which a ray is no good."""

_LEAST_RATE, _HIGHEST_RATE = Fraction(1, 2**60), 1 - Fraction(1, 2**20)
"""Rates whose 1 - q, and (1-q)/q, doubles know well."""

_MOST_PANELS = 160
_MOST_CUTS = 7


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a ray: panels between `start` + `unit` · places, and the path of each sampled pair.

    The lengths of panels, in units, are powers of two; start and unit are exact, so that what the
    grade enclosed takes for the ends is exact, too.
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
    """The stretches of a ray, in order, and the paths that bound what is above its end."""

    stretches: tuple[Stretch, ...]
    above: dict[Sampled, Path]


def reaches(counts: Counts) -> bool:
    """Return whether all moment functions are entire, fall along a ray, and are known well."""
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


@lru_cache(maxsize=512)
def _sum_of(pair: Sampled, path: Path) -> PairSum:
    return PairSum.of(pair, path)


def sums_of(paths: dict[Sampled, Path]) -> Sums:
    return {pair: _sum_of(pair, path) for pair, path in paths.items()}


def _paths(counts: Counts, shape: Shape, first: complex) -> dict[Sampled, Path] | None:
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
    """Return log Π bound^n, the bound of a sampled pair being the modulus of its terms."""
    total = np.zeros(z.shape)
    for pair, n in counts.items():
        if isinstance(pair, Sampled):
            total += n * terms(pair).log_sum(z)
        else:
            assert isinstance(pair, GaussianShift)
            total += n * log_gaussian(pair, z, near)
    return total


def log_gaussian(pair: GaussianShift, z: Complexes, near: Floats | None = None) -> Floats:
    """Return log |M(1+z)|, or a bound on it that is log-convex in z and sharp at heights `near`."""
    y, y0 = z.imag, z.imag if near is None else near
    return np.asarray(float(pair.mu_squared) / 2 * (z.real**2 + z.real + y0**2 - 2 * y * y0))


def place_ray(
    counts: Counts, epsilon: float, log_delta: float, start: float
) -> RayPlacement | None:
    """Return the shortest ray found from `start` on that serves a point of the curve, or None."""
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
    """Return panels up to where the rest is negligible; None where that is too far."""
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
    """Return a stretch with panels cut up until their errors are negligible; None if never."""
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
    """Return the places of panels, cut in halves until all are accurate, or too many."""
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
    """Return log of bounds on the errors of outer panels, e^{-zε} apart, from each corner."""
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
    """Return the corners of rectangles around the ellipses of the panels, shape (panels, 4)."""
    along, across = (ELLIPSE + 1 / ELLIPSE) / 2, (ELLIPSE - 1 / ELLIPSE) / 2
    offsets = np.array([s * along + 1j * t * across for s in (-1, 1) for t in (-1, 1)])
    return np.asarray(middles[:, None] + halves[:, None] * offsets, np.complex128)
