"""Moment functions of sampled Gaussian pairs as finite sums on a path of complex u, for `ray`.

The derivation stands in `ray`; names and numbers of equations are those there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, erf, exp, inf, log, pi, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..numbers import gauss_legendre
from .moments import log1p_complex
from .pairs import GaussianShift, Order, Sampled

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]

INNER = 24
"""Points of a panel of the inner integral."""

INNER_ELLIPSE = 2.4
"""Parameter of the Bernstein ellipses of inner panels: 24 points keep e^-40. A larger one keeps
more digits than are asked for, and needs shorter panels."""

_ACROSS = (INNER_ELLIPSE - 1 / INNER_ELLIPSE) / 2
"""How many half-widths of a panel its ellipse reaches up."""

MOST_INNER = 160
"""Panels of a path above which a ray is no good: 4 000 terms, each for every outer node."""

_HIGHEST = 3.5
"""The height Y, at most, of most paths above the real axis: boxes around their ramps see |φ| grow
by e^{Y²/2}, at most e^6.2.
"""
NEGLIGIBLE = -75.0
"""Natural logarithm of terms that may join the error: e^-75 is far below what doubles resolve."""
TOGETHER = 1 << 16
"""How many moduli of several sums are evaluated at once: what a cache holds."""

_STEEP = 600.0
"""The largest logarithm of moduli that are added up as they are."""

_HUGE = 1e300
"""What is subtracted where the largest exponent is infinite."""
_PIECES = 12
"""Pieces of a panel on which the integrand is bounded from the corners of a box."""


@dataclass(frozen=True, slots=True)
class ExponentialSum:
    """Terms e^{g + z b}: in doubles those of a sum, or of a bound on moduli (then g is real).

    Args:
        g: shape (n,).
        b: shape (n,).
    """

    g: Complexes
    b: Complexes

    @classmethod
    def real(cls, g: Floats, b: Floats) -> "ExponentialSum":
        """Return terms of real exponents at real z."""
        return cls(g.astype(np.complex128), b.astype(np.complex128))

    def log_sum(self, z: Complexes) -> Floats:
        """Return log Σ |e^{g + z b}| at points z, any shape.

        The largest exponent is taken out, so that nothing overflows; infinite where one is.
        """
        if not self.g.size:
            return np.full(z.shape, -inf)
        exponent = self.log_moduli(z)
        top = np.max(exponent, axis=-1, keepdims=True)
        top = np.minimum(top, _HUGE)
        return np.asarray(np.log(np.sum(np.exp(exponent - top), axis=-1)) + top[..., 0])

    def thinned(self) -> "ExponentialSum":
        """Return every third term, threefold: the sum of moduli is much the same, for planning."""
        rest = self.g.size - self.g.size % 3
        return ExponentialSum(
            np.append(self.g[1:rest:3] + log(3), self.g[rest:]),
            np.append(self.b[1:rest:3], self.b[rest:]),
        )

    def log_moduli(self, z: Complexes) -> Floats:
        """Return the logarithm of each term's modulus at points z, of z's shape and (n,)."""
        found: Floats = np.multiply.outer(z.real, self.b.real)
        found += self.g.real
        found -= np.multiply.outer(z.imag, self.b.imag)
        return found

    @classmethod
    def joined(cls, sums: Sequence["ExponentialSum"]) -> "ExponentialSum":
        """Return the terms of all sums."""
        return cls(
            np.concatenate([each.g for each in sums]), np.concatenate([each.b for each in sums])
        )

    def __add__(self, other: "ExponentialSum") -> "ExponentialSum":
        """Return the terms of both."""
        return self.joined([self, other])


def log_sums(sums: Sequence[ExponentialSum], z: Complexes) -> Floats:
    """Return `log_sum` of each of several sums, shape (sums, *z.shape).

    All at once where they are short and neither over- nor underflow: one by one they would take
    longer to call than to evaluate.
    """
    sizes = [each.g.size for each in sums]
    if len(sums) > 1 and min(sizes) and z.size and z.size * sum(sizes) <= TOGETHER:
        exponent = ExponentialSum.joined(sums).log_moduli(z)
        if np.max(exponent) < _STEEP:
            starts = np.cumsum([0, *sizes[:-1]])
            found = np.add.reduceat(np.exp(exponent), starts, axis=-1)
            if np.min(found) > exp(-_STEEP):
                return np.moveaxis(np.log(found), -1, 0)
    return np.array([each.log_sum(z) for each in sums])


class Path(NamedTuple):
    """Ends of panels of the path of u of a sampled pair, and of those of r^{-z} if symmetrised.

    Args:
        ends: complex, from the real axis to 45 degrees up, in order.
        mirror: real, from μ/2 on; empty unless symmetrised.
    """

    ends: tuple[complex, ...]
    mirror: tuple[float, ...]

    @property
    def real(self) -> int:
        """How many of the panels lie on the real axis."""
        return sum(1 for end in self.ends[1:] if not end.imag)


def scale_and_rate(pair: Sampled) -> tuple[float, float]:
    """Return μ and q of a sampled Gaussian shift.

    Raises:
        TypeError: for any other base.
    """
    if not isinstance(pair.base, GaussianShift):
        raise TypeError(f"Expected a sampled Gaussian shift instead got {pair!r}.")
    return sqrt(pair.base.mu_squared), float(pair.rate)


def log_ratio(u: Complexes, mu: float | Floats, q: float | Floats) -> Complexes:
    """Return log r(u) where Im u < π/μ or q |e^v| > 1 - q, continued from real u.

    Where |(1-q)/q e^{-v}| < 3/4 it is v + log q + log1p of that, else log1p(q (e^v - 1)): both are
    analytic there and agree on real u, so that together they are the continuation.

    Args:
        u: points, any shape.
        mu, q: of the sampled shift, or one of each a point.
    """
    v = mu * u - mu * mu / 2
    far = (1 - q) / q * np.exp(-np.clip(v.real, -700.0, 700.0)) < 0.75
    odds: Complexes = np.asarray(q * np.expm1(np.where(far, 0, v)), np.complex128)
    rest: Complexes = np.asarray((1 - q) / q * np.exp(-np.where(far, v, 700.0)), np.complex128)
    near, beyond = log1p_complex(odds), v + np.log(q) + log1p_complex(rest)
    return np.asarray(np.where(far, beyond, near), np.complex128)


class Shape(NamedTuple):
    """Where a path leaves the real axis: height μY, rise per unit of u, tail of N(0, 1) beyond.

    Args:
        lift: μY < π: how far towards the zeros of r.
        slope: of the ramp.
        met: how many steps' worth of N(0, 1) may lie beyond the point where the ramp starts.
        highest: of Y.
    """

    lift: float
    slope: float
    met: float
    highest: float = _HIGHEST


SHAPES = (
    Shape(1.3, 0.3, 4.0),
    Shape(1.3, 0.3, inf),
    Shape(1.3, 0.15, 4.0),
    Shape(1.3, 0.5, 0.5),
    Shape(1.3, 0.15, inf),
    Shape(1.3, 0.6, inf),
)
"""What is tried in turn: a ramp that serves nearly always, and one that leaves the axis at once (an
infinite `met`), the shorter of which is taken; then gentle ones, and steep ones for rates that are
not small.
"""

TALL = (Shape(1.3, 0.3, inf, inf), Shape(1.3, 0.6, inf, inf), Shape(1.3, 0.15, inf, inf))
"""What is tried where none of `SHAPES` serves: much noise, whose losses are small over a wide range
of u. r^x grows far out there, and only a path as high as the zeros of r allow makes up for it. On
a ramp that is gentler than 45 degrees |φ| falls, however high it ends.
"""


def path_of(pair: Sampled, steps: int, shape: Shape, first: complex) -> Path | None:
    """Return a path in few panels for a ray from `first` on; None where it would be too long.

    Args:
        pair: a sampled Gaussian shift.
        steps: of the whole composition: more of them reach further into the tail.
        shape: of the path.
        first: the z with the least height on which the path is used.
    """
    mu, q = scale_and_rate(pair)
    height = min(shape.lift / mu, shape.highest)
    symmetrised = pair.order is Order.SYMMETRISED
    low = mu / 2 if symmetrised else -9.5
    turn = max(sqrt(2 * log(max((steps + 1) / shape.met, 1.0))), low)
    lifted = turn + height / shape.slope
    # beyond, r is nearly q e^v, and falls along 45 degrees for every z from the first on
    zero = (log((1 - q) / q) + 1.0) / mu + mu / 2
    gain = (1 + first.real - first.imag) * mu + height
    # at the end r'/r is within a fiftieth of its limit μ, which counts where z is large
    for spare in (3.0, 3.0 + mu * abs(1 + first) / 25):
        ramp = max(lifted + 0.2, zero, gain + spare)
        length = max(min(42.0 / (ramp - gain), 14.0), zero + 3.0 / mu - ramp)
        end = complex(ramp + length, height + length)
        if falls(end, mu, q, np.array([first])):
            break
    # ellipses stay away from the zeros at π/μ
    width = 0.85 * min(1.6, pi / mu - height, pi / mu) / _ACROSS
    ends = [complex(low)]
    for corner in (complex(turn), complex(lifted, height), complex(ramp, height), end):
        cuts = ceil(abs(corner - ends[-1]) / (2 * width))
        if len(ends) + cuts > MOST_INNER:
            return None
        here = ends[-1]
        ends += [here + (corner - here) * (k + 1) / cuts for k in range(cuts)]
    if not symmetrised:
        return Path(tuple(ends), ())
    last = max(12.0, mu / 2 + 1)
    # so narrow that r keeps a positive real part on the ellipses
    cuts = ceil((last - mu / 2) / (2 * min(0.8, 0.43 * pi / mu / _ACROSS)))
    return Path(tuple(ends), tuple(np.linspace(mu / 2, last, cuts + 1).tolist()))


class Boxes(NamedTuple):
    """Boxes of u that hold ellipses, or segments, of panels: least and largest real, imaginary."""

    left: Floats
    right: Floats
    low: Floats
    high: Floats

    @classmethod
    def around(cls, ends: Complexes, rho: float) -> "Boxes":
        """Return boxes around the ellipses of parameter `rho` >= 1 of the panels of a path."""
        return cls.between(ends[:-1], ends[1:], rho)

    @classmethod
    def between(cls, starts: Complexes, stops: Complexes, rho: float) -> "Boxes":
        """Return boxes around the ellipses of parameter `rho` >= 1 of panels, shape (n,) each.

        A segment of direction h has an ellipse whose half-axes are h (ρ ± 1/ρ)/2; its box has the
        half-sides hypot(Re along, Im across) and hypot(Im along, Re across).
        """
        middle, half = (stops + starts) / 2, (stops - starts) / 2
        along, across = half * (rho + 1 / rho) / 2, half * (rho - 1 / rho) / 2
        x = np.hypot(along.real, across.imag)
        y = np.hypot(along.imag, across.real)
        return cls(middle.real - x, middle.real + x, middle.imag - y, middle.imag + y)


def rising(boxes: Boxes, mu: float | Floats, q: float | Floats) -> ExponentialSum:
    """Return bounds on |φ r^{1+z}| over boxes, Im z >= 0; infinite where a box is no good.

    Where q |e^v| >= 2 (1-q), r = q e^v (1 + η e^{-v}) has an argument of at least Im v - asin(η
    |e^{-v}|), η = (1-q)/q, at any height; elsewhere heights stay below π/μ and (iii) holds.
    """
    nearest = np.maximum(np.maximum(boxes.left, -boxes.right), 0.0)
    farthest = np.maximum(np.abs(boxes.low), np.abs(boxes.high))
    size = log_ratio(boxes.right.astype(np.complex128), mu, q).real
    ratio = (1 - q) / q * np.exp(np.minimum(mu * mu / 2 - mu * boxes.left, 700.0))
    far = ratio < 0.5
    low = np.where(far, 0.0, boxes.low)
    corner = np.where(low < 0, boxes.right, boxes.left) + 1j * np.abs(low)
    turn = np.sign(low) * log_ratio(corner, mu, q).imag
    turn = np.where(far, mu * boxes.low - np.arcsin(np.where(far, ratio, 0.0)), turn)
    density = (farthest**2 - nearest**2 - log(2 * pi)) / 2
    good = far | (farthest < 0.98 * pi / mu)
    return ExponentialSum(np.where(good, density + size, inf) + 0j, size + 1j * turn)


def falling(boxes: Boxes, mu: float | Floats, q: float | Floats) -> ExponentialSum:
    """Return bounds on |φ r^{-z}| over boxes around real u, μ |Im u| < π/2, Im z >= 0.

    |r^{-z}| = |r|^{-x} e^{y arg r}: |r| >= Re r >= 1 - q + q e^v cos(μ Im u) at the left end, and
    arg r is largest at the upper right corner.
    """
    grown = q * np.exp(np.minimum(mu * boxes.left - mu * mu / 2, 600.0)) * np.cos(mu * boxes.high)
    turn = log_ratio(boxes.right + 1j * boxes.high, mu, q).imag
    nearest = np.maximum(boxes.left, 0.0)
    density = (boxes.high**2 - nearest**2 - log(2 * pi)) / 2
    b = np.asarray(-(np.log(1 - q + np.maximum(grown, 0.0)) + 1j * turn), np.complex128)
    return ExponentialSum(np.where(mu * boxes.high < 0.49 * pi, density, inf) + 0j, b)


def panel_error(half: Floats, rho: float, points: int) -> Floats:
    """Return log of (64/15) w ρ^{2-2n} / (1 - ρ^{-2}) (Trefethen 2013, Theorem 19.3).

    Args:
        half: half the length of each panel, shape (panels,).
        rho: of its ellipse.
        points: n.
    """
    return np.asarray(
        np.log(64 / 15 * half) + (2 - 2 * points) * log(rho) - log(1 - rho**-2), np.float64
    )


def placed(ends: Complexes) -> tuple[Complexes, Complexes]:
    """Return nodes and (complex) weights of panels."""
    x, w = gauss_legendre.doubles(INNER)
    half = np.diff(ends) / 2
    nodes = (ends[1:] + ends[:-1])[:, None] / 2 + half[:, None] * x
    return nodes.ravel(), (half[:, None] * w).ravel()


def pieces(ends: Complexes) -> Complexes:
    """Return the ends of many short pieces of a path."""
    shares = np.arange(_PIECES) / _PIECES
    inner = ends[:-1, None] + np.diff(ends)[:, None] * shares
    return np.append(inner.ravel(), ends[-1])


class Ulps(NamedTuple):
    """Rounding errors of terms e^{g + z b}, in EPS: at most `fixed` + |z| · `turning`.

    Args:
        fixed: for each term what does not depend on z.
        turning: for each term the error of b, which |z| multiplies.
    """

    fixed: Floats
    turning: Floats

    @classmethod
    def of(cls, u: Complexes, g: Complexes, log_r: Complexes, mu: float, q: float) -> "Ulps":
        """Return those of terms with b = ±log r(u) at nodes u.

        v errs by μ, u and the difference: 4 μ|u| + 2 μ² ulps. log r = log(1 + q (e^v - 1)) errs by
        a share p = |q e^v / r| of that, by its own ulps, and by those of q and 1 - q.
        """
        p = np.exp(mu * u.real - mu * mu / 2 + log(q) - log_r.real)
        turning = (4 * np.abs(log_r) + p * (16 + 8 * mu * np.abs(u) + 8 * mu * mu)) / (1 - q)
        fixed = 32 + 4 * np.abs(g) + 8 * np.abs(u) ** 2 + turning
        return cls(np.asarray(fixed), np.asarray(turning))

    @classmethod
    def most(cls, reach: float, sums: ExponentialSum, mu: float, q: float) -> "Ulps":
        """Return bounds for all terms whose boxes lie within twice `reach` of zero.

        p <= 1 / cos(0.49 π) < 32 there.
        """
        u = 2 * reach + 4
        size = np.max(np.abs(sums.b))
        turning = np.array([(4 * size + 32 * (16 + 8 * mu * u + 8 * mu * mu)) / (1 - q)])
        known = np.abs(sums.g[np.isfinite(sums.g)])
        return cls(32 + 4 * np.max(known) + 16 * u * u + turning, turning)

    def __or__(self, other: "Ulps") -> "Ulps":
        """Return those of the terms of two sums put together."""
        return Ulps(np.append(self.fixed, other.fixed), np.append(self.turning, other.turning))


@dataclass(frozen=True, slots=True)
class PairSum:
    """M(1+z) of a sampled pair as a finite sum, a bound on its error, and on M above the end.

    Args:
        terms: m_j e^{z b_j}, in doubles.
        error: bounds what quadrature and the ends of the path miss, at every z.
        above: bounds |M| at the end of the ray and above it.
    """

    terms: ExponentialSum
    error: ExponentialSum
    above: ExponentialSum
    ulps: Ulps
    """Of each of the `terms`."""
    most: Ulps
    """Of every term of the three sums."""

    @classmethod
    def of(cls, pair: Sampled, path: Path) -> "PairSum":
        """Return the sum of a pair on a path.

        Args:
            pair: a sampled Gaussian shift.
            path: of its inner integral.
        """
        mu, q = scale_and_rate(pair)
        ends = np.array(path.ends)
        u, w = placed(ends)
        a = log_ratio(u, mu, q)
        g = np.asarray(np.log(w) - u * u / 2 - log(2 * pi) / 2 + a, np.complex128)
        half = np.abs(np.diff(ends)) / 2
        error = rising(Boxes.around(ends, INNER_ELLIPSE), mu, q)
        error = ExponentialSum(error.g + panel_error(half, INNER_ELLIPSE, INNER), error.b)
        tail, real = beyond(path, mu, q), path.real
        cut = pieces(ends[real:])
        segments = rising(Boxes.around(cut, 1.0), mu, q)
        # at height zero the real part of the path has its own moduli as integrand
        above = ExponentialSum(g[: real * INNER], a[: real * INNER])
        above += ExponentialSum.real(error.g[:real].real, error.b[:real].real)
        above += ExponentialSum(segments.g + np.log(np.abs(np.diff(cut))), segments.b) + tail
        sums, error, ulps = ExponentialSum(g, a), error + tail, Ulps.of(u, g, a, mu, q)
        if pair.order is Order.SYMMETRISED:
            mirrored, missed, more = mirror(path, mu, q)
            sums, error, ulps = sums + mirrored, error + missed, ulps | more
            above += ExponentialSum.real(mirrored.g.real, mirrored.b.real)
            above += ExponentialSum.real(missed.g.real, missed.b.real)
        reach = max(map(abs, path.ends + path.mirror))
        most = Ulps.most(reach, sums + error + above, mu, q)
        return cls(sums, error, above, ulps, most)

    def sizes(self, ends: Complexes) -> Floats:
        """Return each term's largest log modulus on panels with these ends, shape (panels, terms).

        By log-convexity none is larger between the ends.
        """
        size = self.terms.log_moduli(ends)
        return np.asarray(np.maximum(size[1:], size[:-1]))

    def kept(self, ends: Complexes) -> tuple["PairSum", Floats]:
        """Return the sum without terms that are negligible everywhere, which join the error.

        And the logarithms of the moduli of its terms at the ends, shape (panels + 1, terms).
        """
        size = self.terms.log_moduli(ends)
        largest = size.max(axis=0)
        # whoever asks for sizes again may find another last digit: what is close is in both
        drop = largest < NEGLIGIBLE + 2.0**-10
        if not drop.any():
            return self, size
        keep = largest > NEGLIGIBLE
        # no sum is empty
        keep[np.argmax(largest)] = True
        rest = ExponentialSum(self.terms.g[drop].real.astype(np.complex128), self.terms.b[drop])
        found = replace(
            self,
            terms=ExponentialSum(self.terms.g[keep], self.terms.b[keep]),
            error=self.error + rest,
            ulps=Ulps(self.ulps.fixed[keep], self.ulps.turning[keep]),
        )
        return found, size[:, keep]


def beyond(path: Path, mu: float, q: float) -> ExponentialSum:
    """Return bounds on what both ends of the path leave out.

    On the left of the path r <= 1, so that |φ r^{1+z}| <= φ; on the right the modulus falls by e a
    unit of length and the tail is at most its value at the end, √2 for the direction.
    """
    last = np.array([path.ends[-1]])
    r = log_ratio(last, mu, q)
    # along 45 degrees |φ r^{1+z}| falls by a factor of e a unit at least (`falls`)
    square: Complexes = np.asarray(last * last, np.complex128)
    g = -square.real / 2 - log(2 * pi) / 2 + log(2) / 2 + r.real
    tails = ExponentialSum(np.asarray(g, np.complex128), r)
    if path.mirror:
        return tails
    # r <= 1 on the left of μ/2, and a tail of N(0, 1) is at most its density there
    low = path.ends[0].real
    return tails + ExponentialSum(np.array([-low * low / 2 + 0j]), np.zeros(1, np.complex128))


def falls(last: complex, mu: float, q: float, z: Complexes) -> bool:
    """Return whether |φ r^{1+z}| falls along 45 degrees from `last` on, for z between those given.

    The slope of its logarithm is at most Im u - Re u + μ (1+x) (1+2κ) - μ y (1-2κ), as r'/r =
    μ/(1 + η e^{-v}) differs from μ by at most κ μ: linear in z.
    """
    ratio = (1 - q) / q * exp(min(mu * mu / 2 - mu * last.real, 300.0))
    if not ratio < 0.25:
        return False
    kappa = ratio / (1 - ratio)
    slope = last.imag - last.real + mu * (1 + z.real) * (1 + 2 * kappa)
    return bool(np.max(slope - mu * z.imag * (1 - 2 * kappa)) < -1)


def mirror(path: Path, mu: float, q: float) -> tuple[ExponentialSum, ExponentialSum, Ulps]:
    """Return the terms of r^{-z} on u >= μ/2 and of the atom at zero, their errors and ulps.

    The atom holds the mass of N(0, 1) between -μ/2 and μ/2, less q of it. The tail of φ r^{-z}
    beyond the last end is at most that of φ, as r >= 1 there.
    """
    ends = np.array(path.mirror, np.complex128)
    u, w = placed(ends)
    g = np.asarray(np.log(w) - u * u / 2 - log(2 * pi) / 2, np.complex128)
    log_r = log_ratio(u, mu, q)
    atom = ExponentialSum(
        np.array([log((1 - q) * erf(mu / 2 / sqrt(2))) + 0j]), np.zeros(1, np.complex128)
    )
    error = falling(Boxes.around(ends, INNER_ELLIPSE), mu, q)
    half = np.abs(np.diff(ends)) / 2
    missed = ExponentialSum(error.g + panel_error(half, INNER_ELLIPSE, INNER), error.b)
    tail = ExponentialSum(np.array([-(path.mirror[-1] ** 2) / 2 + 0j]), np.zeros(1, np.complex128))
    ulps = Ulps.of(u, g, log_r, mu, q) | Ulps(64 + 4 * np.abs(atom.g) / (1 - q), np.zeros(1))
    return ExponentialSum(g, -log_r) + atom, missed + tail, ulps
