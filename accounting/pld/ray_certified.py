"""The inversion integral on a ray, enclosed: the counterpart of `ray`, with a proof.

Where the bound of `ray` on all that doubles round is small next to δ, its sum is taken as it is,
and that bound on both sides, twice (`RoundedRay`). Elsewhere the finite sums, their powers, weights
and phases are balls, which cost far more.

The bounds on other errors are those of `ray`: sums of positive terms e^x, in which nothing cancels
and of which one digit would do. They are evaluated in doubles, in logarithms, so that none under-
or overflows. The roundings of every exponent x are bounded (`RayIntegral.blur`: ulps of the losses
times |z|, times the steps) and added to it; those of the sums, of some thousand terms, are below
1e-11 of them, and doubling the whole covers them.
"""

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, isfinite, log

import numpy as np
import numpy.typing as npt
from flint import acb, acb_mat, arb

from ..numbers import gauss_legendre
from ..numbers.enclosure import Enclosure, ball_of, precision
from ..numbers.work import spend
from .contour_certified import CertifiedContour, certified_end, power
from .few_steps import Found, delta_upper, epsilon_upper
from .moments_certified import TooLong
from .pairs import GaussianShift, Sampled
from .placement import ContourTarget, Placement
from .profiles import mu_squared_ball
from .quadrature import Line
from .ray import RayIntegral
from .ray_panels import OUTER, RayPlacement, Stretch, sum_of
from .ray_sums import INNER, NEGLIGIBLE, Path
from .saddle import Counts

Floats = npt.NDArray[np.float64]

_BITS = 128
"""Bits of the balls: 38 decimal digits, of which ten may cancel in a sum of terms up to e^22 δ."""

_ROUNDED = 2.0**-25
"""The share of δ(ε), and of ε, that roundings of doubles may take: not the seventh digit."""


def _exact(z: complex) -> acb:
    """Return a ball without radius around a complex double: places of panels are exact."""
    return acb(arb(z.real), arb(z.imag))


def _log_ratio(u: acb, mu: arb, q: arb) -> acb:
    """Return log r(u), continued as `ray_sums.log_ratio`.

    Which of both forms is taken is a matter of digits alone: they are the same analytic function
    where the path of `ray` runs.
    """
    v = mu * u - mu * mu / 2
    rest = (1 - q) / q * (-v).exp()
    if abs(rest) < 0.75:
        return v + q.log() + (1 + rest).log()
    return (1 + q * (v.exp() - 1)).log()


def _terms(pair: Sampled, path: Path | Line, kept: list[int]) -> tuple[list[acb], list[acb]]:
    """Return the kept terms m e^{z b} of the sum for a pair, in the order of `ray_sums`.

    Args:
        pair: a sampled Gaussian shift.
        path: its panels; along it first, then the mirror image, then the atom at zero. Or nodes.
        kept: numbers of the terms that are not negligible.
    """
    assert isinstance(pair.base, GaussianShift)
    mu, q = ball_of(pair.base.mu_squared).sqrt(), ball_of(pair.rate)
    density = 1 / (2 * arb.pi()).sqrt()
    if isinstance(path, Line):
        step = arb(path.step)
        nodes = [acb(step * (path.first + k)) for k in kept]
        losses = [_log_ratio(u, mu, q) for u in nodes]
        density *= step
        return [density * (b - u * u / 2).exp() for u, b in zip(nodes, losses, strict=True)], losses
    along = (len(path.ends) - 1) * INNER
    mirrored = (len(path.mirror) - 1) * INNER if path.mirror else 0
    masses, losses = [], []
    for k in kept:
        if k == along + mirrored:
            masses.append(acb((1 - q) * (mu / 2 / arb(2).sqrt()).erf()))
            losses.append(acb(0))
            continue
        ends, place = (path.ends, k) if k < along else (path.mirror, k - along)
        x, w = gauss_legendre.balls(INNER, _BITS)[place % INNER]
        low, high = _exact(ends[place // INNER]), _exact(ends[place // INNER + 1])
        half = (high - low) / 2
        u = (high + low) / 2 + half * x
        b = _log_ratio(u, mu, q)
        m = half * w * density * (-u * u / 2).exp()
        masses.append(m * b.exp() if k < along else m)
        losses.append(b if k < along else -b)
    return masses, losses


def _middles(stretch: Stretch) -> tuple[list[acb], list[acb]]:
    """Return the middles and halves of the panels, exactly.

    With them e^{zb} = e^{middle b} e^{half x b}: the second factor is the same for all panels of
    one length.
    """
    unit, start, places = _exact(stretch.unit), _exact(stretch.start), stretch.places.tolist()
    ends = list(pairwise(places))
    return [start + unit * (a + b) / 2 for a, b in ends], [unit * (b - a) / 2 for a, b in ends]


def _values(stretch: Stretch, masses: list[acb], losses: list[acb], sizes: Floats) -> list[acb]:
    """Return the sums at all nodes of a stretch: two factors a term, a product of matrices.

    Lengths of panels are powers of two times the shortest, so that the factors of the next length
    are the squares of the last ones: no exponential is taken twice. Nodes lie symmetrically, and
    those of the left half have the inverse factors. Terms that are negligible on all panels of a
    length join its radius.

    Args:
        stretch: with the panels.
        masses, losses: m_j and b_j of the sum.
        sizes: log of the largest modulus of each term on each panel, shape (panels, terms).
    """
    middles, halves = _middles(stretch)
    lengths = np.diff(stretch.places)
    found: dict[int, list[acb]] = {}
    nodes = [x for x, _ in gauss_legendre.balls(OUTER, _BITS)]
    length = int(np.min(lengths))
    first = halves[int(np.argmin(lengths))]
    # a term's size is known to far better than a factor of e
    rest = arb(0, len(losses)) * arb(NEGLIGIBLE + 1).exp()
    turns: dict[int, list[acb]] = {}
    for j, b in enumerate(losses):
        right = [(first * x * b).exp() for x in nodes[OUTER // 2 :]]
        # nodes are symmetric
        turns[j] = [*(1 / t for t in reversed(right)), *right]
    while length <= int(np.max(lengths)):
        alike = np.nonzero(lengths == length)[0].tolist()
        used = np.nonzero(np.any(sizes[alike] > NEGLIGIBLE, axis=0))[0].tolist()
        if used:
            spend(len(alike) * len(used) >> 4)
            left = [[masses[j] * (middles[k] * losses[j]).exp() for j in used] for k in alike]
            product = acb_mat(left) * acb_mat([turns[j] for j in used])
            values = [[value + acb(rest, rest) for value in row] for row in product.tolist()]
            found.update(zip(alike, values, strict=True))
        later = np.any(sizes[lengths > length] > NEGLIGIBLE, axis=0).tolist()
        turns = {j: [t * t for t in row] for j, row in turns.items() if later[j]}
        length *= 2
    nothing = [acb(rest, rest)] * OUTER
    return [value for k in range(len(middles)) for value in found.get(k, nothing)]


@dataclass(frozen=True, slots=True)
class CertifiedRay:
    """Weight · f e^{zε} / π at the nodes z of a ray, and bounds on what that misses.

    Args:
        z: the nodes, as balls.
        values: at each its share of the integral, without e^{-zε}.
        errors: the same in doubles.
    """

    z: list[acb]
    values: list[acb]
    errors: RayIntegral
    """Its counterpart in doubles, for the bounds on what finite sums and the cut-off miss."""

    @classmethod
    def of(
        cls, counts: Counts, ray: RayPlacement, errors: RayIntegral | None = None
    ) -> "CertifiedRay":
        """Return the integral of a composition; `errors` is its counterpart in doubles if known."""
        z: list[acb] = []
        values: list[acb] = []
        for stretch in ray.stretches:
            here, weighted = _nodes(stretch)
            for pair, n in counts.items():
                if isinstance(pair, Sampled):
                    path = stretch.paths[pair]
                    sizes = sum_of(pair, path).sizes(stretch.ends)
                    kept = np.nonzero(np.any(sizes > NEGLIGIBLE, axis=0))[0].tolist()
                    moments = _values(stretch, *_terms(pair, path, kept), sizes[:, kept])
                else:
                    assert isinstance(pair, GaussianShift)
                    mu_squared = mu_squared_ball(pair)
                    moments = [(x * (x + 1) * mu_squared / 2).exp() for x in here]
                weighted = [f * power(m, n) for f, m in zip(weighted, moments, strict=True)]
            z, values = z + here, values + weighted
        return cls(z, values, errors or RayIntegral.of(counts, ray))

    def delta(self, epsilon: float) -> Enclosure:
        """Return an enclosure of δ(ε), ε > 0.

        Im of the sum, as the mirror image of the ray has the conjugate integrand; `rest` is twice
        the bound in doubles, which covers what that sum itself rounds (see the top).
        """
        point = arb(epsilon)
        total = acb(0)
        for x, value in zip(self.z, self.values, strict=True):
            total += value * (-x * point).exp()
        # infinite or not a number where a bound is: then nothing is finite below
        return _between(total.imag, 2 * arb(self.errors.log_rest(epsilon)).exp())


@dataclass(frozen=True, slots=True)
class RoundedRay:
    """The same in doubles, with a bound on all that they round.

    A node z, M(1+z) by its finite sum, and the terms of the outer sum err by ulps: of each loss,
    times |z|, and of each exponent (`ray_sums.Ulps`), of the logarithm of M, times the steps, and
    of phases, times ε (`RayIntegral.delta`). |Σ a - Σ b| <= Σ |b| (e^x - 1) for terms a that differ
    from b by e^x at most, so that the bound holds on both sides; it is doubled here.
    """

    integral: RayIntegral

    @classmethod
    def of(cls, counts: Counts, found: Found, epsilon: float) -> "RoundedRay | None":
        """Return what was found in doubles, if roundings take little of δ(ε) and of ε, else None.

        The doubles stand for one μ² each, so that none is returned where a shift has a slack.
        """
        if not isinstance(found.integral, RayIntegral) or any(
            isinstance(pair, GaussianShift) and pair.slack for pair in counts
        ):
            return None
        near, rest = found.integral.delta(epsilon), exp(min(found.integral.log_rest(epsilon), 0.0))
        allowed = _ROUNDED * min(near.value, -near.slope * epsilon)
        return cls(found.integral) if near.error <= rest + allowed else None

    def delta(self, epsilon: float) -> Enclosure:
        """Return an enclosure of δ(ε), ε > 0."""
        found = self.integral.delta(epsilon)
        return _between(arb(found.value), 2 * arb(found.error))


_Curve = CertifiedContour | CertifiedRay | RoundedRay


def _between(middle: arb, error: arb) -> Enclosure:
    """Return the part of [0, 1] that is at most `error` away; all of it where that is no number."""
    lower, upper = (middle - error).lower(), (middle + error).upper()
    if not (lower.is_finite() and upper.is_finite()):
        return Enclosure(arb(0), arb(1))
    return Enclosure(lower.max(arb(0)).lower(), upper.max(arb(0)).min(arb(1)).upper())


def _nodes(stretch: Stretch) -> tuple[list[acb], list[acb]]:
    """Return the nodes z of a stretch and weight / (π z (z + 1))."""
    z, weighted = [], []
    for middle, half in zip(*_middles(stretch), strict=True):
        for x, w in gauss_legendre.balls(OUTER, _BITS):
            point = middle + half * x
            z.append(point)
            weighted.append(half * w / (arb.pi() * point * (point + 1)))
    return z, weighted


def epsilon_enclosure(counts: Counts, delta: float) -> Enclosure | None:
    """Return an enclosure of ε(δ) of few steps, 0 < δ < 1; None where `few_steps` has none.

    `few_steps` finds in doubles the path and about the root; two evaluations in balls prove the
    ends.
    """
    found = epsilon_upper(counts, delta)
    if found is None:
        return None
    with precision(_BITS), suppress(TooLong):
        rounded = RoundedRay.of(counts, found, found.value)
        between = None if rounded is None else _ends(rounded, delta, found.value)
        if between is not None:
            return between
        near = ContourTarget(found.value, log(delta))
        return _ends(_certified(counts, found, near), delta, found.value)
    return None


def _ends(curve: _Curve, delta: float, guess: float) -> Enclosure | None:
    """Return proved ends about ε(δ), or None."""
    target, root = ball_of(delta), _settled(curve, delta, guess)
    upper, lower = certified_end(curve, target, root, 1), certified_end(curve, target, root, -1)
    return None if upper is None or lower is None else Enclosure(arb(lower), arb(upper))


def _settled(curve: _Curve, delta: float, guess: float) -> float:
    """Return ε after a few secant steps on log δ: doubles err more where digits cancel.

    Each step multiplies the number of digits by about 1.6; one that is longer than 1/64 of ε is no
    correction any more.
    """
    before, slope = guess * (1 - 2.0**-12), 0.0
    values = [_log_middle(curve, x) for x in (before, guess)]
    for _ in range(3):
        if guess == before or values[0] == values[1] or not isfinite(sum(values)):
            break
        slope = (values[1] - values[0]) / (guess - before)
        step = (log(delta) - values[1]) / slope
        if not abs(step) < guess / 64:
            break
        before, guess = guess, guess + step
        values = [values[1], _log_middle(curve, guess)]
    return guess


def _log_middle(curve: _Curve, epsilon: float) -> float:
    """Return about log δ(ε); minus infinity where the enclosure's middle is not positive."""
    found = curve.delta(epsilon)
    middle = (found.lower + found.upper) / 2
    return float(middle.log()) if middle > 0 else -inf


def delta_enclosure(counts: Counts, epsilon: float) -> Enclosure | None:
    """Return an enclosure of δ(ε) of few steps; None where `few_steps` has none."""
    found = delta_upper(counts, epsilon)
    if found is None:
        return None
    with precision(_BITS), suppress(TooLong):
        if (rounded := RoundedRay.of(counts, found, epsilon)) is not None:
            return rounded.delta(epsilon)
        near = ContourTarget(epsilon, log(found.value))
        return _certified(counts, found, near).delta(epsilon)
    return None


def _certified(
    counts: Counts, found: Found, near: ContourTarget
) -> CertifiedContour | CertifiedRay:
    """Return the integral in balls along what was found in doubles: a vertical line or a ray."""
    if isinstance(found.path, Placement):
        return CertifiedContour.of(counts, found.path, near)
    assert isinstance(found.integral, RayIntegral)
    return CertifiedRay.of(counts, found.path, found.integral)
