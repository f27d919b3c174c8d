"""Where a ray runs: its start, angle and panels, and the paths of the inner integrals, in doubles.

A bad choice makes the bounds of `ray` wide, not wrong.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import floor, inf, log, log2, pi

import numpy as np
import numpy.typing as npt

from .pairs import GaussianShift, Order, Sampled
from .quadrature import Demand, Line, plan_line
from .ray_panels import (
    Paths,
    RayPlacement,
    Stretch,
    corners_of,
    log_product,
    product_of,
    quadrature_error,
    sum_of,
    sums_of,
    thinned_of,
)
from .ray_sums import (
    INNER,
    INNER_ELLIPSE,
    MOST_INNER,
    SHAPES,
    TALL,
    Boxes,
    ExponentialSum,
    Path,
    Shape,
    falling,
    falls,
    log_sums,
    panel_error,
    path_of,
    rising,
    scale_and_rate,
)
from .saddle import Counts

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]

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
_SHORT = 16
"""Panels of a ray so few that looking for a shorter one takes longer than it saves."""
_LOW = 1.5
"""How high the vertical part of a ray is at least, in units of its distance from zero."""
_MOST_NODES = 1500
"""Nodes of a trapezoid rule above which a path that leaves the real axis is tried."""
_MOST_CUTS = 7
"""How often a panel is halved at most; lengths are whole multiples of 2^-7 of the first panel's."""


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


def _paths(
    counts: Counts, shape: Shape, first: complex, height: float | None = None
) -> Paths | None:
    """Return the path of each sampled pair; None if one of them would need too many panels.

    Args:
        counts: pairs and how often each.
        shape: of paths that leave the real axis.
        first: the z from which they are used.
        height: up to which they are used, if that is low: then a line may do.
    """
    steps = sum(counts.values())
    found: Paths = {}
    for pair in counts:
        if isinstance(pair, Sampled):
            line = None if height is None else _line(pair, first + 1j * height, 2 * _DIGITS)
            path = line or path_of(pair, steps, shape, first)
            if path is None:
                return None
            found[pair] = path
    return found


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
    line = _vertical(start, epsilon)
    if line is None:
        return None
    first = complex(line.ends[-1])
    best: Stretch | None = None
    angles = _ANGLES
    for k, shape in enumerate(SHAPES + TALL):
        if best is not None and (k > 1 or best.places.size <= _SHORT):
            break
        paths = _paths(counts, shape, first)
        if paths is None:
            continue
        tried = (_whole(counts, paths, first, angle, epsilon, log_delta) for angle in angles)
        k, whole = next(((k, found) for k, found in enumerate(tried, 1) if found), (0, None))
        if whole is None:
            continue
        # steeper rays are longer
        angles = angles[:k]
        if best is None or whole.places.size < best.places.size:
            best = whole
    high = None if best is None else _refined(counts, best, epsilon, log_delta)
    low = None if high is None else _low(counts, line, epsilon, log_delta)
    if best is None or low is None or high is None:
        return None
    return RayPlacement((low, high), best.paths)


def _vertical(start: float, epsilon: float) -> Stretch | None:
    """Return the panels of the vertical part of a ray, without paths; None if they are too many.

    Its ends are exact doubles: the rest of the ray begins at the last one.
    """
    unit = 1j * 2.0 ** floor(log2(min(start, 2 * _WIDTH / epsilon)) - _MOST_CUTS)
    places = [0, 1 << _MOST_CUTS]
    while places[-1] * abs(unit) < _LOW * start:
        if len(places) > _MOST_PANELS:
            return None
        places.append(_next(complex(start), unit, places, epsilon))
    return Stretch(complex(start), unit, np.array(places), {})


def _low(counts: Counts, line: Stretch, epsilon: float, log_delta: float) -> Stretch | None:
    """Return the vertical part of a ray with paths, refined; None where none is good.

    Its moments are trapezoid sums on the real axis where these are short and pairs have them, else
    sums on paths that leave it.
    """
    height = float(line.ends[-1].imag)
    for shape in SHAPES + TALL:
        paths = _paths(counts, shape, line.start, height)
        if paths is None:
            continue
        stretch = Stretch(line.start, line.unit, line.places, paths)
        refined = _refined(counts, stretch, epsilon, log_delta)
        if refined is not None or not any(isinstance(path, Path) for path in paths.values()):
            # lines are the same for all shapes
            return refined
    return None


def _next(start: complex, unit: complex, places: list[int], epsilon: float) -> int:
    """Return where the next panel ends: lengths double while they may.

    The poles at 0 and -1 have to stay outside of the ellipses, and e^{-zε} turns by ten radians at
    most.
    """
    length = places[-1] - places[-2]
    here = start + unit * places[-1]
    longest = min(abs(here), 2 * _WIDTH / epsilon)
    return places[-1] + (2 * length if 2 * length * abs(unit) <= longest else length)


def _whole(
    counts: Counts,
    paths: Paths,
    start: complex,
    angle: float,
    epsilon: float,
    log_delta: float,
) -> Stretch | None:
    """Return panels up to where the rest is negligible; None where that is too far.

    The end is the first panel at which what lies above has fallen below exp(-`_DIGITS`) of δ; up to
    it the integrand may exceed δ by exp(`_MOST_STRAIN`) only.
    """
    # a panel that is too long may be cut in 2^7: so whole units are that small
    sums = sums_of(paths)
    shortest = min(abs(start), 2 * _WIDTH / epsilon)
    unit = complex(np.exp(1j * angle)) * shortest / (1 << _MOST_CUTS)
    places = [0, 1 << _MOST_CUTS]
    while len(places) <= _MOST_PANELS:
        if (start + unit * places[-1]).real * epsilon > _DIGITS + _MOST_STRAIN + 8:
            break
        places.append(_next(start, unit, places, epsilon))
    z = np.asarray(start + unit * np.array(places[1:]), np.complex128)
    # not by `np.unique`, which loads all of numpy.ma
    few = np.array(sorted({int(x) - 1 for x in np.geomspace(1, z.size, 16)}))
    few = few[z.imag[few] > 1.5 * z.real[few]]
    size = log_product(counts, lambda pair: sums[pair].above, z[few])
    size += -z.real[few] * epsilon - np.log(pi * z.imag[few]) - log_delta
    small = np.nonzero(size < -_DIGITS)[0]
    if not small.size or np.max(size[: small[0]], initial=-inf) > _MOST_STRAIN:
        return None
    end = z[few[small[0]] :][:1]
    if not all(_falls(pair, path, end) for pair, path in paths.items()):
        return None
    return Stretch(start, unit, np.array(places[: int(few[small[0]]) + 2]), paths)


def _refined(counts: Counts, stretch: Stretch, epsilon: float, log_delta: float) -> Stretch | None:
    """Return a stretch with panels cut up until their errors are negligible; None if never.

    The inner sums must be accurate next to δ at every end of an outer panel, and next to
    themselves, as they are raised to powers; panels of a path are halved until they are.
    """
    paths = dict(stretch.paths)
    terms = {pair: thinned_of(pair, path) for pair, path in paths.items()}
    places = _cut_outer(counts, stretch, terms, epsilon, log_delta)
    if places.size > _MOST_PANELS + 1:
        return None
    stretch = Stretch(stretch.start, stretch.unit, places, paths)
    z = stretch.ends
    sizes = dict(zip(terms, log_sums(list(terms.values()), z), strict=True))
    bounds = [sum_of(pair, path).error for pair, path in paths.items()]
    errors = dict(zip(terms, log_sums(bounds, z), strict=True))
    whole = product_of(counts, sizes, z)
    whole += -z.real * epsilon - log_delta - np.log(np.abs(z))
    rough: dict[Sampled, tuple[Path, Floats]] = {}
    for pair, path in stretch.paths.items():
        # small next to δ, and to the sum itself: it is raised to a power
        spare = np.minimum(-whole - _DIGITS - log(64 * len(paths)), -6.0) - log(counts[pair])
        allowed = sizes[pair] + spare
        if isinstance(path, Line):
            line = _line(pair, z[-1], -float(np.min(spare)))
            if line is None:
                return None
            paths[pair] = line
        elif not falls(path.ends[-1], *scale_and_rate(pair), z):
            return None
        elif np.any(errors[pair] > allowed):
            rough[pair] = path, allowed
    finer = _as_accurate(rough, z)
    return (
        None if finer is None else Stretch(stretch.start, stretch.unit, places, {**paths, **finer})
    )


def _as_accurate(
    rough: Mapping[Sampled, tuple[Path, Floats]], z: Complexes
) -> dict[Sampled, Path] | None:
    """Return paths whose panels err by e^allowed at most at z; None if one is long.

    Args:
        rough: for each pair a path, and what is allowed at each z, shape (n,).
        z: ends of outer panels, shape (n,).
    """
    allowed = {pair: most for pair, (_, most) in rough.items()}
    along = {pair: np.array(path.ends) for pair, (path, _) in rough.items()}
    back = {pair: np.array(path.mirror, np.complex128) for pair, (path, _) in rough.items()}
    along = _cut(along, rising, z, allowed)
    back = _cut({pair: ends for pair, ends in back.items() if ends.size}, falling, z, allowed)
    found = {
        pair: Path(tuple(ends.tolist()), tuple(back[pair].real.tolist()) if pair in back else ())
        for pair, ends in along.items()
    }
    if any(len(path.ends) + len(path.mirror) > 2 * MOST_INNER for path in found.values()):
        return None
    return found


def _line(pair: Sampled, last: complex, digits: float) -> Line | None:
    """Return a trapezoid rule for a pair up to `last`; None where there is none, or a long one."""
    if pair.order is not Order.MIXTURE_FIRST:
        return None
    mu, q = scale_and_rate(pair)
    line = plan_line(mu, 1 + last.real, q, Demand(last.real, last.imag, digits))
    return line if line.last - line.first < _MOST_NODES else None


def _falls(pair: Sampled, path: Path | Line, end: Complexes) -> bool:
    """Return whether the path of a pair is one that bounds what is above the end of a ray."""
    return isinstance(path, Path) and falls(path.ends[-1], *scale_and_rate(pair), end)


def _cut_outer(
    counts: Counts,
    stretch: Stretch,
    terms: Mapping[Sampled, ExponentialSum],
    epsilon: float,
    log_delta: float,
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
        outer = log_product(counts, terms.__getitem__, corners, near)
        bounds = quadrature_error(corners, outer, halves[new]) - epsilon * corners.real
        sizes[new] = np.max(bounds, axis=1)
        large = np.nonzero(sizes > allowed)[0]
        if not large.size or places.size > _MOST_PANELS:
            break
        places = np.insert(places, large + 1, (places[large] + places[large + 1]) // 2)
        sizes[large] = inf
        sizes = np.insert(sizes, large + 1, inf)
    return places


def _cut(
    paths: Mapping[Sampled, Complexes],
    bound: Callable[[Boxes, Floats, Floats], ExponentialSum],
    z: Complexes,
    allowed: Mapping[Sampled, Floats],
) -> dict[Sampled, Complexes]:
    """Return the ends of inner panels, halved until each one's error at all z is at most what is
    allowed: those of all pairs together, as one by one they take longer to call.

    Args:
        paths: ends of panels in the plane of u, shape (panels + 1,) each.
        bound: of the integrand over boxes.
        z: where the sums are used, shape (n,).
        allowed: log of the error that may remain, at each z.
    """
    found = dict(paths)
    new = {pair: np.arange(ends.size - 1) for pair, ends in paths.items()}
    for _ in range(_MOST_CUTS):
        if not new:
            break
        sizes = [places.size for places in new.values()]
        starts = np.concatenate([found[pair][places] for pair, places in new.items()])
        stops = np.concatenate([found[pair][places + 1] for pair, places in new.items()])
        mu, q = np.repeat(np.array([scale_and_rate(pair) for pair in new]), sizes, axis=0).T
        terms = bound(Boxes.between(starts, stops, INNER_ELLIPSE), mu, q)
        rule = panel_error(np.abs(stops - starts) / 2, INNER_ELLIPSE, INNER)
        error = ExponentialSum(terms.g + rule, terms.b).log_moduli(z)
        most = np.repeat(np.array([allowed[pair] for pair in new]), sizes, axis=0).T
        large = np.split((error > most).any(axis=0), np.cumsum(sizes)[:-1])
        halved = {
            pair: places[among]
            for (pair, places), among in zip(new.items(), large, strict=True)
            if among.any()
        }
        new = {}
        for pair, places in halved.items():
            ends = found[pair]
            if ends.size <= 2 * MOST_INNER:
                found[pair] = np.insert(ends, places + 1, (ends[places] + ends[places + 1]) / 2)
                # both halves of what was cut, after what was cut before it
                new[pair] = ((places + np.arange(places.size))[:, None] + np.arange(2)).ravel()
    return found
