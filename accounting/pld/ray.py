"""Few steps: the inversion integral on a ray that leaves a line at an angle, in doubles.

On a vertical line the integrand of (1) in `contour` falls as slowly as the loss has fine structure:
losses of small rates are piled up on a scale of q, so that few of them need heights of thousands.
But δ(ε) is asked far above that pile, and e^{-zε} falls to the right. M is entire, so (1) may run
from c up a little, to z_0, and on along z = z_0 + s e^{iθ}, s >= 0, instead, and its mirror image:
δ(ε) = (1/π) Im ∫ f dz, f(z) = Π_i M_i(1+z)^{n_i} e^{-zε} / (z(z+1)). Along it e^{-zε} falls
exponentially, and some hundred nodes suffice whatever n and q. Where that fails (ε within the pile)
there is no ray.

*Inner integral.* M(1+z) = ∫ φ(u) r(u)^{1+z} du, r as in `quadrature`. On real u the modulus
explodes as z moves to the right, so u moves, too: on real u at first; gently up to u + iY, μY < π,
where |r^{iy}| = exp(-y arg r) beats the growth; right past the zeros of r, at Im u = π/μ; and on at
45 degrees, where r is nearly q e^v and the modulus falls exponentially if y > x or so. (Up to z_0
a pair whose mixture comes first is summed on the real axis, see `ray_line`, and the last corner of
a symmetrised one lies further right.) Gauss-Legendre panels on this path, of points u_j, make it a
finite sum

    M(1+z) ≈ Σ_j m_j e^{z b_j},   b_j = log r(u_j),   modulus at most B(z) = Σ_j |m_j| e^{Re z b_j}.

B is log-convex in z, as a sum of exponentials of linear functions: on a polygon it is largest at a
corner. The error of a panel is bounded on a box around its ellipse by |φ| and |r|^{1+x} e^{-y arg
r}, each at the worst corner of that box: log-convex as well, E(z) say, together with what the path
leaves out at its ends. A symmetrised pair starts at u = μ/2 and has, besides, its mirror image
r^{-z} on real u and an atom at zero. A Gaussian shift has M in closed form, with |M| bounded by
-y² <= y₀² - 2 y y₀ near height y₀.

*Outer integral.* Gauss-Legendre panels of the ray. Of the finite sums they err by what stands in
`quadrature`, the modulus at the corners of a rectangle around the ellipse. Taking the sums for M
errs by Σ_i n_i E_i/(B_i+E_i) · Π_i (B_i+E_i)^{n_i} at most, at the ends of each panel. From the
last point z_S on the path is vertical, where ∫ |φ r^{1+z}| |du| falls with height: what is beyond
is at most its value at z_S (from boxes around short pieces of the path) times 1/(π Im z_S).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, isfinite, log, pi

import numpy as np
import numpy.typing as npt

from ..numbers import gauss_legendre
from ..numbers.work import spend
from .contour import Sum
from .nodes import EPS
from .pairs import GaussianShift, Sampled
from .ray_panels import (
    OUTER,
    RayPlacement,
    Stretch,
    corners_of,
    log_product,
    product_of,
    quadrature_error,
    sum_of,
    sums_of,
)
from .ray_sums import NEGLIGIBLE, TOGETHER, ExponentialSum, PairSum, Ulps, log_sums
from .saddle import Counts

Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]

_SETTLED = 2.0**-40
"""The relative Newton step at which a root is settled, and how far to the right of it one aims: any
ε with bound <= δ is valid, and sums of cancelling terms round by as much.
"""

_UNDERFLOW = 2.0**-1040
"""More than what some thousand terms lose that are smaller than the least double."""

_STEEP = 300.0
"""The rise of a term over some panels above which factors of it might over- and underflow."""

_ASIDE = 4
"""So many panels side by side have one exponential of a term, and powers of another."""


@dataclass(frozen=True, slots=True)
class RayIntegral:
    """The integrand on a ray and bounds on its errors, all but e^{-zε}.

    Args:
        z: nodes, shape (n,).
        rounding: bounds on the errors of `values`, absolute, shape (n,).
        bounds: of quadrature, of inner sums and of what is beyond, as terms of e^{-ε b}.
    """

    z: Complexes
    values: Complexes
    """Logarithms of weight · f e^{zε} / π at the nodes z."""
    rounding: Floats
    bounds: ExponentialSum
    """Terms e^{g - ε b} of a bound on the error, of any ε."""
    blur: float
    """How much the roundings of doubles may have taken off the exponents g of `bounds`."""

    @classmethod
    def of(cls, counts: Counts, ray: RayPlacement) -> "RayIntegral":
        """Return the integral of a composition.

        Above the last point the path is vertical: |∫| <= |M| / (π Im z), with |M| from the `above`
        sums there.
        """
        parts = [cls.of_stretch(counts, stretch) for stretch in ray.stretches]
        last, sums = ray.stretches[-1].ends[-1:], sums_of(ray.above)
        blur = _blur(counts, lambda pair: sums[pair].most, float(np.abs(last[0])))
        above = log_product(counts, lambda pair: sums[pair].above, last) - np.log(pi * last.imag)
        bounds = ExponentialSum.real(above, last.real)
        for part in parts:
            bounds += part.bounds
        return cls(
            np.concatenate([part.z for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.rounding for part in parts]),
            bounds,
            max(blur, *(part.blur for part in parts)),
        )

    @classmethod
    @np.errstate(divide="ignore")
    def of_stretch(cls, counts: Counts, stretch: Stretch) -> "RayIntegral":
        """Return the integral along a part of a ray.

        The error of taking sums for moments is, at each end of a panel, Σ n E/(B+E) · Π (B+E)^n
        times the length over |z (z+1)|; log-convexity carries it from the ends to the whole panel.
        A Gaussian factor is not log-convex along the ray: -y² over a panel of height 2a lies a² at
        most above its chord (`bend`).
        """
        ends = stretch.ends
        middles, halves = (ends[1:] + ends[:-1]) / 2, stretch.unit * np.diff(stretch.places) / 2
        x, w = gauss_legendre.doubles(OUTER)
        z = middles[:, None] + halves[:, None] * x
        corners = corners_of(middles, halves)
        # log of the integrand without e^{-zε}, and a bound on its absolute error
        total = -np.log(z) - np.log1p(z)
        error = 4 * EPS * (1 + np.abs(total))
        kept = {pair: sum_of(pair, path).kept(ends) for pair, path in stretch.paths.items()}
        share = np.full(ends.size, -inf)
        bend = np.zeros(halves.size)
        whole: dict[Sampled, Floats] = {}
        for pairs in _batches(kept):
            sums, sizes = zip(*(kept[pair] for pair in pairs), strict=True)
            found = _sampled_values(sums, np.concatenate(sizes, axis=1), z, ends, halves)
            for drawn, value, blur, bound, missed in zip(pairs, *found, strict=True):
                n, whole[drawn] = counts[drawn], bound
                total, error = total + n * value, error + n * blur
                share = np.logaddexp(share, log(n) + missed - bound)
        for pair, n in counts.items():
            if isinstance(pair, GaussianShift):
                value = z * (z + 1) * (float(pair.mu_squared) / 2)
                total, error = total + n * value, error + n * 8 * EPS * np.abs(value)
                # log |M| is not convex along the ray; at most this above the larger of its ends
                bend += n * float(pair.mu_squared) / 2 * halves.imag**2
        outer = log_product(
            counts, lambda pair: kept[pair][0].terms, corners, middles.imag[:, None]
        )
        # |z| grows along the ray; the integrand is largest at one of both ends of each panel
        length = np.log(2 * np.abs(halves) / pi) - np.log(np.abs(ends * (ends + 1)))[:-1]
        inner = product_of(counts, whole, ends) + share
        g = [
            quadrature_error(corners, outer, halves).ravel(),
            inner[:-1] + bend + length,
            inner[1:] + bend + length,
        ]
        b = [corners.real.ravel(), ends.real[:-1], ends.real[1:]]
        return cls(
            z.ravel(),
            (total + np.log(halves[:, None] * w / pi)).ravel(),
            np.minimum(error + 4 * EPS * np.abs(total), 300.0).ravel(),
            ExponentialSum.real(np.concatenate(g), np.concatenate(b)),
            _blur(counts, lambda pair: kept[pair][0].most, float(np.max(np.abs(corners)))),
        )

    def log_rest(self, epsilon: float) -> float:
        """Return the logarithm of a bound on the error of the sum at ε, up to doubles' last digits.

        Infinite where a bound is. Terms e^{g - ε b} that underflow are smaller than the largest by
        e^700; their sum rounds by less than their number, some thousands, times 2^-52.
        """
        g, b = self.bounds.g.real, self.bounds.b.real
        if not np.all(g < inf):
            return inf
        size = np.max(np.abs(g[g > -inf]), initial=0.0) + epsilon * np.max(np.abs(b))
        found = float(self.bounds.log_sum(np.array([-epsilon + 0j]))[0])
        return found + self.blur + float(8 * EPS * size) + 2.0**-30

    @np.errstate(over="ignore", invalid="ignore")
    def delta(self, epsilon: float) -> Sum:
        """Return δ(ε), its derivative and a bound on the error of the former.

        Terms are taken relative to the largest, so that nothing overflows; where even the scale is
        beyond doubles the error is infinite.

        Args:
            epsilon: where δ is asked, > 0.
        """
        exponent = self.values - epsilon * self.z
        top = float(np.max(exponent.real))
        terms: Complexes = np.asarray(np.exp(exponent - top), np.complex128)
        blur = self.rounding + EPS * (16 + np.abs(exponent) + 4 * epsilon * np.abs(self.z))
        scale = exp(min(top, 600.0))
        value, slope = float(np.sum(terms.imag)), -float(np.sum((self.z * terms).imag))
        # a relative error of b in an exponent is one of e^b - 1 in the term
        lost = float(np.sum(np.abs(terms) * np.expm1(blur)))
        error = exp(min(top + log(lost), 600.0)) + exp(min(self.log_rest(epsilon), 600.0))
        error += 4 * EPS * scale * abs(value) + _UNDERFLOW
        if not (top < 600.0 and isfinite(error) and isfinite(value)):
            return Sum(0.0, 0.0, inf)
        return Sum(scale * value, scale * slope, error)

    def epsilon(self, delta: float, low: float, high: float) -> float:
        """Return the least ε found in [low, high] whose bound is <= δ; `high` if none is.

        Args:
            delta: in (0, 1).
            low, high: a bracket; `high` must be an upper bound on ε(δ) already.
        """
        here, low = low, 0.0
        for _ in range(80):
            found = self.delta(here)
            upper = found.value + found.error
            if upper <= delta:
                high = here
            else:
                low = here
            # Newton on log δ, a hair to the right so that both ends of the bracket move
            usable = 0 < upper < inf and found.slope < 0
            step = log(upper / delta) * upper / found.slope if usable else inf
            if upper <= delta and abs(step) <= 2 * _SETTLED * here:
                break
            new = here - step + _SETTLED * here
            here = new if low < new < high else (low + high) / 2
            if not low < here < high or high - low <= 8 * EPS * high:
                break
        return high


def _blur(counts: Counts, most: Callable[[Sampled], Ulps], size: float) -> float:
    """Return how much logarithms of bounds on Π |M|^n may err by rounding where |z| <= size.

    Args:
        counts: pairs and how often each.
        most: the largest roundings of any term of a sampled pair.
        size: of z.
    """
    total = 16 * EPS
    for pair, n in counts.items():
        if isinstance(pair, Sampled):
            ulps = most(pair)
            total += n * EPS * float(ulps.fixed[0] + size * ulps.turning[0])
        else:
            assert isinstance(pair, GaussianShift)
            loose = 16 * EPS * float(pair.mu_squared) + float(pair.slack)
            total += n * loose * (4 * size * size + size)
    return total


def _batches(kept: Mapping[Sampled, tuple[PairSum, Floats]]) -> Iterator[list[Sampled]]:
    """Yield pairs in groups whose moduli fit into a cache: one by one takes longer to call."""
    batch: list[Sampled] = []
    size = 0
    for pair, (_, moduli) in kept.items():
        if batch and size + moduli.size > TOGETHER:
            yield batch
            batch, size = [], 0
        batch.append(pair)
        size += moduli.size
    if batch:
        yield batch


def _sampled_values(
    sums: Sequence[PairSum], size: Floats, z: Complexes, ends: Complexes, halves: Complexes
) -> tuple[Complexes, Floats, Floats, Floats]:
    """Return log M of some pairs at z, shape (pairs, panels, points), its rounding errors, and
    log (B + E) and log E at the ends, shape (pairs, panels + 1).

    Terms that are negligible at both ends of a panel are so between them (log-convexity).

    Args:
        sums: of the pairs on their paths.
        size: logarithms of their terms' moduli at the ends, shape (panels + 1, terms of all).
        z: nodes of outer panels, shape (panels, points).
        ends: of the panels, shape (panels + 1,).
        halves: of the panels, exact, shape (panels,).
    """
    terms = ExponentialSum.joined([each.terms for each in sums])
    counts = np.array([each.terms.g.size for each in sums])
    starts = np.cumsum(counts) - counts
    # log-convex: largest at one of both ends
    kept = np.maximum(size[1:], size[:-1]) > NEGLIGIBLE
    found = np.zeros((len(sums), *z.shape), np.complex128)
    for half in dict.fromkeys(halves.tolist()):
        alike = np.nonzero(halves == half)[0]
        some = np.nonzero(kept[alike].any(axis=0))[0]
        parts = pairwise([*np.searchsorted(some, starts).tolist(), some.size])
        few = ExponentialSum(terms.g[some], terms.b[some])
        factors = _factors(few, (ends[alike + 1] + ends[alike]) / 2, half, alike)
        for k, part in enumerate(slice(*part) for part in parts):
            if factors is None:
                for panel in alike:
                    exponent = few.g[part] + np.multiply.outer(z[panel], few.b[part])
                    found[k, panel] = np.sum(np.exp(exponent), axis=1)
            else:
                # not by matrix product: its threads cost more than they save on a busy machine
                at_middle, turns = factors
                found[k, alike] = np.einsum("pj,kj->pk", at_middle[:, part], turns[:, part])
    missed = log_sums([each.error for each in sums], ends)
    # a sum of terms rounds by ulps of their moduli, more where they turn: log-convex as well
    top = np.maximum.reduceat(size, starts, axis=1)
    moduli = np.exp(size - np.repeat(top, counts, axis=1))
    at_ends = (np.log(np.add.reduceat(moduli, starts, axis=1)) + top).T
    fixed = np.concatenate([each.ulps.fixed + each.terms.g.size / 2 for each in sums])
    turning = np.concatenate([each.ulps.turning for each in sums])
    fixed = np.add.reduceat(moduli * fixed, starts, axis=1)
    turning = np.add.reduceat(moduli * turning, starts, axis=1)
    # |z| is largest at the later end of a panel
    late = np.abs(ends[1:, None])
    lost = np.maximum(
        np.log(fixed[1:] + late * turning[1:]) + top[1:],
        np.log(fixed[:-1] + late * turning[:-1]) + top[:-1],
    )
    value: Complexes = np.asarray(np.log(found), np.complex128)
    dropped = exp(NEGLIGIBLE) * counts[:, None, None] * np.exp(np.minimum(-value.real, 300.0))
    blur = EPS * np.exp(np.minimum(lost.T[:, :, None] - value.real, 300.0)) + dropped
    return value, blur, np.logaddexp(at_ends, missed), missed


def _factors(
    terms: ExponentialSum, middles: Complexes, half: complex, alike: Places
) -> tuple[Complexes, Complexes] | None:
    """Return the factors of terms on panels of one length, shapes (alike, terms), (points, terms).

    Exponentials take longest: few are taken. e^{g+zb} = e^{g + middle b} e^{half x b}; the second
    factor is the same for all these panels, and for -x its inverse. Of panels side by side every
    fourth has its own first factor, the next three a multiple of it. Each value is so a product of
    three exponentials, an inverse among them, which rounds by 20 ulps at most. None where b is so
    large that the factors alone over- or underflow. As `half` is exact, exponents err by no more
    ulps of |z b| than those of single terms do.

    Args:
        terms: that count on these panels.
        middles: of the panels, shape (alike,).
        half: of each of them, exact.
        alike: their numbers.
    """
    x, _ = gauss_legendre.doubles(OUTER)
    g, b = terms.g, terms.b
    spend((alike.size * x.size * b.size) >> 14)
    stride = _ASIDE if alike.size > _ASIDE and np.ptp(alike) == alike.size - 1 else 1
    if (2 * stride - 1) * np.max(np.abs((half * b).real), initial=0.0) >= _STEEP:
        return None
    right: Complexes = np.asarray(np.multiply.outer(half * x[OUTER // 2 :], b), np.complex128)
    inverse = np.exp(-2 * right.real)
    right = np.exp(right)
    turns = np.concatenate([(right.conj() * inverse)[::-1], right])
    at_middle = np.empty((alike.size, b.size), np.complex128)
    first = at_middle[::stride]
    np.exp(g + np.multiply.outer(middles[::stride], b), out=first)
    for k in range(1, stride):
        later = at_middle[k::stride]
        np.multiply(first[: len(later)], np.exp(2 * k * half * b), out=later)
    return at_middle, turns
