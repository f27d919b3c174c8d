"""Routes: which method answers for a composition of one order, written once as a table.

The first route of `ROUTES` that applies gives the answer, to each of four questions: ε(δ) or δ(ε),
as an enclosure or as an upper bound in doubles (fast, on arrays). What a route cannot answer it
passes on by None; the last one answers everything.

All answers are of one order of the data sets and one set of pairs; `PrivacyProfile` takes the
larger of two orders. An enclosure may be as wide as [0, bound], but never wrong, whatever route
gave it.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, frexp, inf, log, log2, nextafter
from typing import ClassVar, Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

from ..gaussian import exact as gaussian
from ..gaussian import fast as gaussian_fast
from ..numbers.enclosure import Enclosure, ball_of, intersection, precision
from . import contour, contour_certified, few_steps, ray_certified
from .closed_form import MOST_KNOTS, Curve, closed_form
from .copies_floor import copies_floor
from .discretisation import MassRounding
from .distribution import LossDistribution, compose, deltas_by_pld, epsilons_by_pld
from .doubling import delta_by_doubling, epsilon_by_doubling
from .nodes import largest_total, maximal_loss
from .pairs import (
    CopiesDrawn,
    DominatingPair,
    DrawnShifts,
    GaussianShift,
    Order,
    ReplacedInSample,
    Sampled,
)
from .product_events import epsilon_floor
from .profiles import delta_of, tails_of, total_variation
from .revealed_sample import revealed, revealed_form
from .saddle import (
    above_epsilons,
    chernoff_delta,
    epsilon_by_moments,
    epsilons_by_moments,
    order_of,
)
from .truncation import epsilon_by_truncation

_WIDEST = 1e-6
"""Relative width of an enclosure at which no further route is tried: six digits."""

_NARROW = 1e-4
"""The relative width up to which an enclosure by a ray, or of losses cut off, is good enough: grids
are seldom narrower, and take longer."""

_WIDE = 1e-3
"""The relative width from which δ is divided between kinds of steps: it costs another search."""

_SPARED = 2.0**-10
"""The part of δ that the cheapest kind of steps has for itself, unless it needs less."""

_FINEST = 1 << 17
"""The points of the finest grid, of very few steps: many multiply longer."""

_LAST_RESORT = 1 << 18
"""The points of a grid that takes some ten seconds, where an enclosure is wide without it; half of
them below the next δ, where masses have more bits."""

_TINY = 1e-20
"""The δ below which the last grid is coarser."""

_GRIDS = (1 << 13, _FINEST)
"""Points of the grids that are tried in turn where an enclosure is wide."""

_MOST_CUT = 0.1
"""The δ up to which losses are cut off: of larger ones a grid tells as much in less time."""

_LEAST_CUT = 1e-30
"""The δ from which losses are cut off before a grid is tried: of smaller ones it helps seldom."""

_SHORT_GRID = 1 << 11
"""Points of a grid that is tried for a lower end alone."""

_FAST_GRID = 1 << 12
"""Points of a grid in the fast grade."""

_MOST_STEPS_ON_GRIDS = 1 << 40
"""Of more steps the roundings on a grid add up to more than a contour leaves open."""

_MOST_ON_GRIDS = 2.0**24
"""Above this ε masses e^-ε apart leave a grid without digits, and nobody without a doubt."""

_LOOSE = 1e-4
"""The share of δ that the cut-off of a fast contour may take before the grid is tried."""

_MOST_POINTS = 64
"""Points of a fast curve, at most, that are worth a ray of their own."""

_FEW_POINTS = 4
"""Points of a fast curve, at most, each of which has a lattice of its own."""

_FEW_KNOTS = 1 << 10
"""The most knots of a closed form, times deltas asked for, in the fast grade."""

_VERY_FEW_KNOTS = 1 << 7
"""The same where it is asked before anything else."""

_SMALLEST = (1e-30, 1e-300)
"""The δ down to which a closed form is built before its own δ is known."""

_LEAST_DELTA = 1e-300
"""The smallest δ for which loss distributions are composed."""

_ZERO = arb(0)
"""Nothing is known from below."""

_NOTHING = arb(1e-12)
"""An ε below which no width matters: likelihoods differ by a part in 10^12 at most."""

Counts = dict[DominatingPair, int]
"""How often each pair is composed."""

Floats = NDArray[np.float64]


def epsilon(counts: Counts, delta: float, known: arb = _ZERO) -> Enclosure:
    """Return an enclosure of ε(δ); where it lies below `known` its upper end alone may be so.

    Args:
        counts: pairs, composed in one order.
        delta: in (0, 1).
        known: an ε below which nobody asks for a lower end.
    """
    return _found(ROUTES, counts, delta, known)


def _found(routes: Sequence["Route"], counts: Counts, delta: float, known: arb) -> Enclosure:
    """Return the first answer of some routes to `epsilon`."""
    found = (route.epsilon(counts, delta, known) for route in routes)
    return next(e for e in found if e is not None)


def delta(counts: Counts, epsilon: float) -> Enclosure:
    """Return an enclosure of δ(ε), ε >= 0."""
    return next(d for route in ROUTES if (d := route.delta(counts, epsilon)) is not None)


def epsilons_upper(counts: Counts, deltas: Floats, least: Floats) -> Floats:
    """Return upper bounds on the larger of ε(δ) and `least`, arrays of shape (n,), in doubles."""
    found = (route.epsilons_upper(counts, deltas, least) for route in ROUTES)
    return next(e for e in found if e is not None)


def deltas_upper(counts: Counts, epsilons: Floats, least: Floats) -> Floats:
    """Return upper bounds on the larger of δ(ε) and `least`, arrays of shape (n,), in doubles."""
    found = (route.deltas_upper(counts, epsilons, least) for route in ROUTES)
    return next(d for d in found if d is not None)


def at_most(counts: Counts, delta: float, known: arb) -> bool:
    """Return whether one moment shows that ε(δ) <= known > 0, so that no more need be asked.

    Args:
        counts: pairs, composed in one order.
        delta: in (0, 1).
        known: the ε of another order, or of another account.
    """
    counts = revealed(counts)
    if not (counts and known > 0 and epsilon_by_moments(counts, log(delta))[0] < float(known)):
        return False
    return bool(contour_certified.epsilon_ceiling(counts, delta) <= known)


def delta_at_most(counts: Counts, epsilon: float, known: arb) -> bool:
    """Return whether δ(ε) <= known: no loss is as large, or one moment shows it.

    Args:
        counts: pairs, composed in one order.
        epsilon: >= 0.
        known: the δ of another order, >= 0.
    """
    counts = revealed(counts)
    if not counts or epsilon >= largest_total(counts):
        return True
    if not (known > 0 and chernoff_delta(counts, epsilon)[0] < float(known.log())):
        return False
    return bool(contour_certified.delta_ceiling(counts, epsilon) <= known)


class Route:
    """A method and when it applies (None where not); fast answers default to enclosures' ends."""

    name: ClassVar[str]

    def epsilon(self, counts: Counts, delta: float, known: arb) -> Enclosure | None:
        """Return `epsilon` of the module, or None."""

    def delta(self, counts: Counts, epsilon: float) -> Enclosure | None:
        """Return `delta` of the module, or None."""

    def epsilons_upper(self, counts: Counts, deltas: Floats, least: Floats) -> Floats | None:
        """Return `epsilons_upper` of the module, or None."""
        found = [self.epsilon(counts, float(x), _ZERO) for x in deltas]
        uppers = [e.upper_float for e in found if e is not None]
        return np.maximum(uppers, least) if len(uppers) == deltas.size else None

    def deltas_upper(self, counts: Counts, epsilons: Floats, least: Floats) -> Floats | None:
        """Return `deltas_upper` of the module, or None."""
        found = [self.delta(counts, float(x)) for x in epsilons]
        uppers = [d.upper_float for d in found if d is not None]
        return np.maximum(uppers, least) if len(uppers) == epsilons.size else None


class _Free(Route):
    """δ is at least the sum of the total variations: ε is zero, and nothing is composed."""

    name = "advantage"

    def epsilon(self, counts: Counts, delta: float, known: arb) -> Enclosure | None:
        """Return zero where the advantage alone is at most δ; else nothing."""
        return Enclosure.of(0) if _advantage(counts) <= delta else None

    def epsilons_upper(self, counts: Counts, deltas: Floats, least: Floats) -> Floats | None:
        """Return `least` for every δ that is free, and what the other routes say of the rest."""
        free = deltas >= _advantage(counts)
        if not (free.any() or not deltas.size):
            return None
        found = least.copy()
        if not free.all():
            found[~free] = epsilons_upper(counts, deltas[~free], least[~free])
        return found

    def deltas_upper(self, counts: Counts, epsilons: Floats, least: Floats) -> Floats | None:
        """Return `least` where nothing is composed, or nothing is asked."""
        return None if counts and epsilons.size else least


def _advantage(counts: Counts) -> float:
    """Return an upper bound on δ(0), the total variation, which adds up at most."""
    return sum(n * total_variation(pair) for pair, n in counts.items()) * (1 + 2.0**-40)


class _Gaussian(Route):
    """Nothing but Gaussian shifts: μ² adds up, and the curve of μ is exact."""

    name = "Gaussian"

    def epsilon(self, counts: Counts, delta: float, known: arb) -> Enclosure | None:
        mu_squared = _mu_squared(counts)
        if mu_squared is None:
            return None
        return gaussian.epsilon_from_delta(mu_squared=mu_squared, delta=delta)

    def delta(self, counts: Counts, epsilon: float) -> Enclosure | None:
        mu_squared = _mu_squared(counts)
        if mu_squared is None:
            return None
        return gaussian.delta_from_epsilon(mu_squared=mu_squared, epsilon=epsilon)

    def epsilons_upper(self, counts: Counts, deltas: Floats, least: Floats) -> Floats | None:
        """Return the exact curve's roots in doubles, rounded up."""
        mu_squared = _mu_squared(counts)
        if mu_squared is None:
            return None
        return np.maximum(gaussian_fast.epsilon_upper(mu_squared=mu_squared, delta=deltas), least)


def _mu_squared(counts: Counts) -> Enclosure | None:
    """Return μ² of a composition of nothing but Gaussian shifts, else None."""
    shifts = [(pair, n) for pair, n in counts.items() if isinstance(pair, GaussianShift)]
    if len(shifts) < len(counts):
        return None
    upper = sum(pair.mu_squared * n for pair, n in shifts)
    lower = sum((pair.mu_squared - pair.slack) * n for pair, n in shifts)
    return Enclosure.hull(Enclosure.of(lower), Enclosure.of(upper))


class _OneEvent(Route):
    """A single event of any kind: its own profile is known, and bisected for ε."""

    name = "one event"

    def epsilon(self, counts: Counts, delta: float, known: arb) -> Enclosure | None:
        pair = _single(counts)
        return None if pair is None else _epsilon_of_one(pair, delta)

    def delta(self, counts: Counts, epsilon: float) -> Enclosure | None:
        pair = _single(counts)
        if pair is None:
            return None
        # e^ε loses as many bits as ε has
        with precision(160 + max(frexp(epsilon)[1], 0)):
            p, q = tails_of(pair, arb(epsilon))
            ball = p - arb(epsilon).exp() * q
            # δ <= P(L > ε), which is known where e^ε hides the difference
            upper = ball.upper().min(p.upper()).max(arb(0)).upper()
            return Enclosure(ball.lower().max(arb(0)).min(upper).lower(), upper)


def _single(counts: Counts) -> DominatingPair | None:
    """Return the pair of a composition of one step, else None."""
    return next(iter(counts)) if sum(counts.values()) == 1 else None


def _epsilon_of_one(pair: DominatingPair, delta: float) -> Enclosure:
    """Return ε(δ) of one event, by bisection on its profile in balls.

    Bits grow with -log2 δ, since P and e^x Q agree in all but so many of their digits. The upper
    end starts at the pure bound or 1 and doubles; 1100 halvings reach the smallest doubles.
    """
    with precision(160 + 2 * ceil(-log2(delta))):
        target = ball_of(delta)
        if delta_of(pair, arb(0)) <= target:
            return Enclosure.of(0)
        low, high = 0.0, min(maximal_loss(pair), 1.0)
        while not (value := delta_of(pair, arb(high))) <= target:
            # what cannot be decided is no lower end
            low = high if value > target else low
            tried, high = high, min(2 * high, maximal_loss(pair))
            if high in (tried, inf):
                return Enclosure(arb(low), arb(high))
        for _ in range(1100):
            middle = (low + high) / 2 if low else high / 2
            if not low < middle < high or (low and high - low < 1e-15 * high):
                break
            value = delta_of(pair, arb(middle))
            if value <= target:
                high = middle
            elif value > target:
                low = middle
            else:
                break
        return Enclosure(arb(low), arb(high))


class _Revealed(Route):
    """Pairs whose moments nobody integrates: a composition above them, and one below.

    These are sampled shifts so long that one sees them, and groups of which a number is drawn,
    which lists of losses bound more closely. A single event has a closed form, however long its
    shift.
    """

    name = "revealed sample"

    def epsilon(self, counts: Counts, delta: float, known: arb) -> Enclosure | None:
        above = _above(counts)
        if above is None:
            return None
        drawn = _drawn(counts)
        upper = arb(epsilon_by_doubling(counts, delta, delta) if drawn else inf)
        if not upper.is_finite():
            upper = epsilon(above, delta).upper
        upper = upper.min(arb(largest_total(counts))).upper()
        below = _below(counts, above)
        lower = epsilon(below, delta).lower if below else _ZERO
        found = Enclosure(lower.min(upper).lower(), upper)
        if drawn and not _met(counts):
            for pair, n in counts.items() if found.relative_width > _WIDE else ():
                if isinstance(pair, CopiesDrawn):
                    lower = lower.max(copies_floor(pair, n, delta))
            return Enclosure(lower.min(upper).lower(), upper)
        sizes = _grids(counts, delta)
        if drawn:  # the upper end is near, and the lower one has a shape of its own to be computed
            return _narrowed(found, counts, delta, known, (_SHORT_GRID, *sizes), _WIDE)
        return _narrowed(found, counts, delta, known, sizes)

    def delta(self, counts: Counts, epsilon: float) -> Enclosure | None:
        above = _above(counts)
        if above is None:
            return None
        drawn = _drawn(counts)
        if drawn:
            upper = arb(float(deltas_upper(counts, np.array([epsilon]), np.zeros(1))[0]))
        else:
            upper = delta(above, epsilon).upper if epsilon < largest_total(counts) else _ZERO
        below = _below(counts, above)
        lower = delta(below, epsilon).lower if below else _ZERO
        found = Enclosure(lower.min(upper).lower(), upper)
        return found if drawn else _delta_narrowed(found, counts, epsilon)

    def epsilons_upper(self, counts: Counts, deltas: Floats, least: Floats) -> Floats | None:
        above = _above(counts)
        if above is None:
            return None
        bounds: Floats = np.full(deltas.shape, inf)
        if _drawn(counts):
            points = zip(deltas.tolist(), _rungs(deltas), strict=True)
            bounds = np.array([epsilon_by_doubling(counts, *point) for point in points])
        if not np.isfinite(bounds).all():
            bounds = np.minimum(bounds, epsilons_upper(above, deltas, least))
        bounds = np.minimum(bounds, largest_total(counts))
        return np.maximum(bounds, least)

    def deltas_upper(self, counts: Counts, epsilons: Floats, least: Floats) -> Floats | None:
        above = _above(counts)
        if above is None:
            return None
        bounds = np.where(
            epsilons < largest_total(counts), deltas_upper(above, epsilons, least), least
        )
        if _drawn(counts):
            points = zip(epsilons.tolist(), _rungs(bounds), strict=True)
            lists = [delta_by_doubling(counts, x, _guess(about)) for x, about in points]
            bounds = np.minimum(bounds, lists)
        return np.maximum(bounds, least)


def _drawn(counts: Counts) -> bool:
    """Return whether of some group, or of one record's copies, a number is drawn."""
    kinds = DrawnShifts | ReplacedInSample | CopiesDrawn
    return any(isinstance(pair, kinds) for pair in counts)


def _met(counts: Counts) -> bool:
    """Return whether records are replaced in samples, and nothing else is drawn: a pair of few
    shifts, that neighbours lose, so that a grid's lower end is theirs.
    """
    return not any(isinstance(pair, DrawnShifts | CopiesDrawn) for pair in counts)


def _rungs(deltas: Floats) -> list[float]:
    """Return the δ for which lattices are made: a power of 2^6 below where many share a few."""
    if deltas.size <= _FEW_POINTS:
        return [float(delta) for delta in deltas]
    return [0.5 ** (6 * ceil(-log2(delta) / 6)) if delta else 0.0 for delta in deltas]


def _guess(delta: float) -> float:
    """Return a δ that a grid can be made for."""
    return min(max(delta, _LEAST_DELTA), 0.5)


def _above(counts: Counts) -> Counts | None:
    """Return what lies above a composition with very long shifts; None for any other.

    A single step has its own profile, and needs no such bound.
    """
    above = revealed(counts)
    return None if sum(counts.values()) == 1 or above == counts else above


def _below(counts: Counts, above: Counts) -> Counts:
    """Return what lies below a composition: it without revealed samples, one record of a group.

    Of a record that a batch may hold several times one copy, where all others are like the record
    that takes its place: that is met, and costs no more than the pair. A record that is replaced
    may bring nothing in one data set.
    """
    found: Counts = {}
    for pair, n in counts.items():
        if isinstance(pair, DrawnShifts | ReplacedInSample | CopiesDrawn):
            # others of the group may bring nothing
            order = pair.order if isinstance(pair, DrawnShifts) else Order.MIXTURE_FIRST
            one = Sampled(GaussianShift(pair.mu_squared), pair.rate, order)
            if revealed({one: n}) == {one: n}:
                found[one] = found.get(one, 0) + n
        elif pair in above:
            found[pair] = found.get(pair, 0) + n
    return found


class _ClosedForm(Route):
    """Losses with few values, Laplace noise, revealed samples: sums without a grid or an integral.

    The fast grade asks for it where there are very few values, or where the contour is loose
    (`_Contour`).
    """

    name = "closed form"

    def epsilon(self, counts: Counts, delta: float, known: arb) -> Enclosure | None:
        closed = closed_form(counts, delta)
        if closed is None:
            revealed = revealed_form(counts, delta, most_terms=_FEW_KNOTS)
            return None if revealed is None else revealed.epsilon(delta)
        near, order = _near(counts, np.array([delta]))
        return closed.epsilon(delta, float(near[0]), float(order[0]))

    def delta(self, counts: Counts, epsilon: float) -> Enclosure | None:
        for smallest in _SMALLEST:
            closed = _closed(counts, smallest)
            if closed is not None and closed.delta(epsilon).relative_width <= _WIDEST:
                return closed.delta(epsilon)
        return None

    def epsilons_upper(self, counts: Counts, deltas: Floats, least: Floats) -> Floats | None:
        """Return the exact curve's upper ends, where that takes less than a contour."""
        closed = closed_form(counts, float(deltas.min()), most_knots=_VERY_FEW_KNOTS // deltas.size)
        if closed is None:
            return None
        points = zip(deltas.tolist(), *(x.tolist() for x in _near(counts, deltas)), strict=True)
        found = [closed.epsilon_upper(*point) for point in points]
        return np.maximum(found, least)

    def deltas_upper(self, counts: Counts, epsilons: Floats, least: Floats) -> Floats | None:
        """As `epsilons_upper`."""
        for smallest in _SMALLEST:
            most = _VERY_FEW_KNOTS // epsilons.size
            if (closed := closed_form(counts, smallest, most_knots=most)) is None:
                return None
            found = [closed.delta(float(x)) for x in epsilons]
            if all(each.relative_width <= _WIDEST for each in found):
                return np.maximum([each.upper_float for each in found], least)
        return None


def _near(counts: Counts, deltas: Floats) -> tuple[Floats, Floats]:
    """Return upper bounds on ε(δ) from one moment each, and the orders of these."""
    log_deltas = np.log(deltas)
    near, grades = epsilons_by_moments(counts, log_deltas)
    orders = np.array([order_of(int(grade)) for grade in grades])
    return above_epsilons(near, grades, log_deltas), orders


def _closed(counts: Counts, delta: float, *, most_terms: int = MOST_KNOTS) -> Curve | None:
    """Return a closed form of the composition for questions about δ down to `delta`, or None."""
    return closed_form(counts, delta, most_knots=most_terms) or revealed_form(
        counts, delta, most_terms=min(most_terms, _FEW_KNOTS)
    )


class _FewSteps(Route):
    """Sampled Gaussian steps for which a contour placed by moments is no good: a ray.

    In the fast grade points of `_Contour` that are loose are asked for one by one.
    """

    name = "few steps"

    def epsilon(self, counts: Counts, delta: float, known: arb) -> Enclosure | None:
        """Return a ray's answer where a contour would lose more than `few_steps.NEGLIGIBLE` of
        δ.
        """
        most = few_steps.DOUBTED
        _, shares = contour.epsilons_upper(counts, np.array([delta]), np.zeros(1), useful=most)
        return _ray_epsilon(counts, delta) if shares[0] > few_steps.NEGLIGIBLE else None

    def delta(self, counts: Counts, epsilon: float) -> Enclosure | None:
        """As `epsilon`."""
        _, shares = contour.deltas_upper(counts, np.array([epsilon]), np.zeros(1))
        return _ray_delta(counts, epsilon) if shares[0] > few_steps.NEGLIGIBLE else None

    def epsilons_upper(self, counts: Counts, deltas: Floats, least: Floats) -> Floats | None:
        return None

    def deltas_upper(self, counts: Counts, epsilons: Floats, least: Floats) -> Floats | None:
        return None


def _ray_epsilon(counts: Counts, delta: float) -> Enclosure | None:
    """Return a ray's enclosure of ε(δ) where it is narrow, else None."""
    found = ray_certified.epsilon_enclosure(counts, delta)
    return found if found is not None and found.relative_width <= _NARROW else None


def _ray_delta(counts: Counts, epsilon: float) -> Enclosure | None:
    """Return a ray's enclosure of δ(ε) where it is narrow, else None."""
    found = ray_certified.delta_enclosure(counts, epsilon)
    return found if found is not None and found.relative_width <= _NARROW else None


@dataclass(frozen=True, slots=True)
class _Contour(Route):
    """Anything: moments multiplied on a contour; where it leaves much open, exact integer grids.

    Args:
        last_resort: whether a wide enclosure is worth a grid of `_LAST_RESORT` points.
    """

    name = "contour"
    last_resort: bool

    def epsilon(self, counts: Counts, delta: float, known: arb) -> Enclosure:
        found = contour_certified.epsilon_enclosure(counts, delta)
        if found.relative_width <= _WIDEST or found.upper <= known.max(_NOTHING):
            return found
        if (ray := _ray_epsilon(counts, delta)) is not None:
            return ray
        found = intersection(found, Enclosure(epsilon_floor(counts, delta), arb.pos_inf()))
        known = known.max(_NOTHING)
        if _LEAST_CUT <= delta <= _MOST_CUT:
            found = epsilon_by_truncation(counts, delta, found, known)
            if found.relative_width <= _NARROW:
                return found
        found = _narrowed(found, counts, delta, known, _grids(counts, delta))
        if delta < _LEAST_CUT and found.relative_width > _WIDEST and found.upper > known:
            found = epsilon_by_truncation(counts, delta, found, known)
        if found.relative_width > _WIDE and found.upper > known and len(counts) > 1:
            found = _in_parts(found, counts, delta, known)
        if self.last_resort and found.relative_width > _WIDE:
            finest = _LAST_RESORT >> (delta < _TINY)
            found = _narrowed(found, counts, delta, known, (finest,))
        return found

    def delta(self, counts: Counts, epsilon: float) -> Enclosure:
        found = contour_certified.delta_enclosure(counts, epsilon)
        if found.relative_width > _WIDEST and (ray := _ray_delta(counts, epsilon)) is not None:
            return ray
        return _delta_narrowed(found, counts, epsilon)

    def epsilons_upper(self, counts: Counts, deltas: Floats, least: Floats) -> Floats:
        """Return bounds by contours; the loose ones anew by a ray, then by a grid, if these are
        less.
        """
        # where there may be a ray no contour is made first whose cut-off takes much
        useful = few_steps.DOUBTED if few_steps.possible(counts) else 1.0
        found, shares = contour.epsilons_upper(counts, deltas, least, useful=useful)
        unsettled = shares > useful
        for k in np.nonzero(found > least)[0][:_MOST_POINTS]:
            delta = float(deltas[k])
            if few_steps.doubtful(counts, delta, float(found[k]), float(shares[k])):
                better = few_steps.epsilon_upper(counts, delta)
                if better is not None:
                    found[k] = np.clip(better.value, least[k], found[k])
                    shares[k] = 0.0
                    unsettled[k] &= not better.tight
        again = np.nonzero(unsettled & (found > least))[0]
        if useful < 1.0 and again.size:
            anew = contour.epsilons_upper(counts, deltas[again], least[again], useful=1.0)
            found[again] = np.minimum(found[again], anew.values)
            shares[again] = np.minimum(shares[again], anew.shares)
        loose = np.nonzero(shares > _LOOSE)[0]
        if loose.size:
            known = float(np.min(found[loose]))
            grid = _better_than_contour(counts, float(np.min(deltas[loose])), loose.size, known)
            if grid is not None:
                exact = [grid.epsilon_upper(float(deltas[k]), float(found[k])) for k in loose]
                found[loose] = np.clip(exact, least[loose], found[loose])
        return found

    def deltas_upper(self, counts: Counts, epsilons: Floats, least: Floats) -> Floats:
        """As `epsilons_upper`."""
        found, shares = contour.deltas_upper(counts, epsilons, least)
        for k in np.nonzero(found > least)[0][:_MOST_POINTS]:
            epsilon = float(epsilons[k])
            if few_steps.doubtful(counts, float(found[k]), epsilon, float(shares[k])):
                better = few_steps.delta_upper(counts, epsilon)
                if better is not None:
                    found[k] = np.clip(better.value, least[k], found[k])
                    shares[k] = 0.0
        loose = np.nonzero(shares > _LOOSE)[0]
        smallest = float(np.min(found[loose], initial=0.5))
        if loose.size and smallest >= _LEAST_DELTA:
            known = float(np.min(epsilons[loose]))
            grid = _better_than_contour(counts, smallest, loose.size, known)
            if grid is not None:
                exact = [grid.delta(float(epsilons[k])).upper_float for k in loose]
                found[loose] = np.clip(exact, least[loose], found[loose])
        return found


def _in_parts(found: Enclosure, counts: Counts, delta: float, known: arb) -> Enclosure:
    """Return an enclosure of ε(δ) by all kinds of steps but the cheapest, beside another route's.

    Without it ε is no larger. With it, (ε₁ + ε₂, δ₁ + δ₂) holds where (ε₁, δ₁) and (ε₂, δ₂) do
    (Dwork, Roth 2014, Theorem 3.16); ε₂ = 0 where δ₂ is its total variation.
    """
    totals = {pair: _advantage({pair: n}) for pair, n in counts.items()}
    free = {pair: total for pair, total in totals.items() if total < delta / 4}

    def cost(pair: DominatingPair) -> float:
        if pair in free:
            return 0.0
        return float(contour_certified.epsilon_ceiling({pair: counts[pair]}, delta))

    cheapest = min(counts, key=cost)
    alone = {cheapest: counts[cheapest]}
    rest = {pair: n for pair, n in counts.items() if pair != cheapest}
    below = _of_part(rest, delta, known)
    found = intersection(found, Enclosure(below.lower.min(found.upper).lower(), found.upper))
    # what is left of δ costs no less than all of it
    if found.relative_width <= _WIDE or found.upper <= below.upper * (1 + _WIDE):
        return found
    share = free.get(cheapest, delta * _SPARED)
    parts = (
        _of_part(rest, nextafter(delta - share, 0.0), known),
        _of_part(alone, share, known),
    )
    upper = (parts[0].upper + parts[1].upper).upper()
    return intersection(found, Enclosure(found.lower.min(upper).lower(), upper))


def _of_part(counts: Counts, delta: float, known: arb) -> Enclosure:
    """Return an enclosure of ε(δ) of a part; kept, as parts of parts are asked for again."""
    return _of_steps(tuple(counts.items()), delta, known)


@lru_cache(maxsize=16)
def _of_steps(steps: tuple[tuple[DominatingPair, int], ...], delta: float, known: arb) -> Enclosure:
    return _found(_FOR_PARTS, dict(steps), delta, known)


def _narrowed(
    found: Enclosure,
    counts: Counts,
    delta: float,
    known: arb,
    sizes: tuple[int, ...],
    enough: float = _WIDEST,
) -> Enclosure:
    """Return an enclosure of ε(δ), by loss distributions on a grid where it is wide.

    Args:
        found: by another route; the intersection of two enclosures holds what both do.
        counts: pairs, composed in one order.
        delta: in (0, 1).
        known: an ε below which no more is asked.
        sizes: points of the grids, in the order in which they are tried.
        enough: the relative width at which no more are.
    """
    if found.relative_width <= enough or found.upper <= known or found.upper > _MOST_ON_GRIDS:
        return found
    if sum(counts.values()) > _MOST_STEPS_ON_GRIDS:
        return found
    with suppress(ArithmeticError):
        for grid in epsilons_by_pld(counts, delta, sizes):
            found = intersection(found, grid)
            # errors of dots are of the second order: what is finer gains the square, at most
            hopeless = grid.relative_width > (sizes[-1] / sizes[0]) ** 2 * found.relative_width
            if found.relative_width <= enough or found.upper <= known or hopeless:
                break
    return found


def _delta_narrowed(found: Enclosure, counts: Counts, epsilon: float) -> Enclosure:
    """Return an enclosure of δ(ε), by loss distributions on a grid where it is wide."""
    if found.relative_width <= _WIDEST:
        return found
    about = min(float(deltas_upper(counts, np.array([epsilon]), np.zeros(1))[0]), 0.5)
    if about < _LEAST_DELTA:
        return found
    with suppress(ArithmeticError):
        for grid in deltas_by_pld(counts, epsilon, about=about, sizes=_grids(counts, about)):
            found = intersection(found, grid)
            if found.relative_width <= _WIDEST:
                break
    return found


def _grids(counts: Counts, delta: float) -> tuple[int, ...]:
    """Return the sizes of grids that take about a second each, whatever the steps and the δ.

    Masses have as many bits as 1/δ and more, so that of smaller δ a point costs more.
    """
    if sum(counts.values()) > _MOST_STEPS_ON_GRIDS:
        return ()
    coarser = min(sum(counts.values()).bit_length() // 4, 4)
    longer = max(0, ceil(-log2(delta)).bit_length() - 8)
    coarse, finest = _GRIDS
    return coarse, max(coarse, finest >> coarser + longer)


class _Inverse(Protocol):
    """What answers for both ends of the curve."""

    def epsilon_upper(self, delta: float, known: float) -> float: ...
    def delta(self, epsilon: float) -> Enclosure: ...


def _better_than_contour(
    counts: Counts, smallest: float, queries: int, known: float
) -> _Inverse | None:
    """Return what may do better than a contour down to δ = smallest, in a fast query's time.

    Args:
        counts: pairs, composed in one order.
        smallest: δ of all points.
        queries: how many points.
        known: the least ε of all points.
    """
    closed = _closed(counts, smallest, most_terms=_FEW_KNOTS // queries)
    if closed is not None:
        return closed
    if known > _MOST_ON_GRIDS:
        return None
    try:
        return _Pessimistic(
            compose(counts, delta=smallest, cells=_FAST_GRID, rounding=MassRounding.PESSIMISTIC)
        )
    except ArithmeticError:
        return None


class _Pessimistic:
    """A pessimistic distribution on a grid: its enclosures hold its own curve, above the true."""

    def __init__(self, grid: LossDistribution) -> None:
        self._grid = grid

    def epsilon_upper(self, delta: float, known: float) -> float:
        """Return the curve's own ε at δ, rounded up; `known` is of no use to it."""
        with precision(self._grid.bits):
            return Enclosure.from_ball(self._grid.epsilon(ball_of(delta))).upper_float

    def delta(self, epsilon: float) -> Enclosure:
        """Return the curve's own δ at ε."""
        with precision(self._grid.bits):
            return Enclosure.from_ball(self._grid.delta(arb(epsilon)))


_BEFORE_CONTOURS = (_Free(), _Gaussian(), _OneEvent(), _Revealed(), _ClosedForm(), _FewSteps())
_FOR_PARTS: tuple[Route, ...] = (*_BEFORE_CONTOURS, _Contour(last_resort=False))
"""The table for parts of a composition, of which several are asked for."""

ROUTES: tuple[Route, ...] = (*_BEFORE_CONTOURS, _Contour(last_resort=True))
"""The table: what is asked first is exact and costs least; each row's class says when and why."""
