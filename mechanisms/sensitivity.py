"""Sensitivities: how far a function of private data can move between neighbours, and why.

A sensitivity is an exact rational upper bound on the *square* of the largest change, together with
the tree of rules that derived it. Squares are kept because norms of concatenations add in squares;
a root is taken once, rounded up, at the edge.

>>> from fractions import Fraction
>>> from dpledger.mechanisms.adjacency import Adjacency
>>> mean = mean_of_bounded(Fraction(1), 400, Adjacency.REPLACE_ONE)
>>> mean.value
0.005
>>> scaled(mean, 0.5).value
0.0025
"""

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import inf, isqrt, nextafter

from .adjacency import Adjacency, require_same_adjacency
from .errors import (
    InvalidParameter,
    Number,
    require_finite,
    require_nonnegative,
    require_positive,
    require_positive_int,
)
from .refusals import Closed

_ROOT_BITS = 96
"""Bits of a root that is not rational: a relative excess of at most 2**-95."""

_TOTAL_BITS, _SHARE_BITS = 112, 64
"""Bits of what is computed and on a lattice moves by at most, and of what rounding adds to that: a
relative excess of 2**-111, and documents a third shorter than by exact roots."""

_SQUARE_BITS = 512
"""Squares whose numerator or denominator outgrow this are rounded up to a dyadic of 256 bits."""

_RANGE_BITS = 800
"""Squares are 0 or in [2**-800, 2**800]: outside, values in doubles under- or overflow, and
rounding moves them by more than the bound."""


class Norm(Enum):
    """The norm in which a change is measured."""

    L1 = "l1"
    L2 = "l2"


@dataclass(frozen=True, slots=True)
class Derivation(Closed):
    """A node of a derivation: the rule, its public parameters, its conclusion and its premises.

    `squared` is the exact bound on the squared sensitivity that this node concludes. `parameters`
    are (name, value) pairs in the rule's own order; a value is an exact rational or a short text.
    """

    rule: str
    squared: Fraction
    parameters: tuple[tuple[str, Fraction | str], ...] = ()
    premises: tuple["Derivation", ...] = ()

    def lines(self, indent: int = 0) -> list[str]:
        """Return the tree as indented lines of text, conclusion first."""
        given = ", ".join(f"{name}={_short(value)}" for name, value in self.parameters)
        head = f"{'  ' * indent}{self.rule}({given}): {rounded_up(root_up(self.squared))}"
        return [head, *(line for p in self.premises for line in p.lines(indent + 1))]

    def assumptions(self) -> tuple[str, ...]:
        """Return the reasons of every `declared` node below, in order, without repetition."""
        own = tuple(str(v) for name, v in self.parameters if name == "reason")
        below = tuple(a for p in self.premises for a in p.assumptions())
        return tuple(dict.fromkeys((*own, *below)))


def is_whole(node: Derivation) -> bool:
    """Return whether a quantity is whole numbers by its derivation; False where it may be.

    Counts are, and what sums and whole factors make of them; a declared quantity, a sum of records'
    numbers or a linear map of counts may be. What moves nothing is a public shift.

    Raises `InvalidParameter` for what is no vector of whole numbers, such as a mean of records.
    """
    if not node.squared:
        return True
    known = False not in [is_whole(premise) for premise in node.premises]  # each is looked at
    match node.rule:
        case "histogram" | "histogram-l1" | "sum" | "concatenation" | "disjoint":
            return known
        case "declared" | "sum-of-bounded" | "linear-map":
            return False
        case "scaled" if Fraction(dict(node.parameters)["factor"]).denominator == 1:
            return known
        case rule:
            raise InvalidParameter(
                "sensitivity", f"that of {rule}", "of whole numbers, where noise is discrete"
            )


@dataclass(frozen=True, slots=True)
class Sensitivity(Closed):
    """An upper bound on the change of a released quantity between neighbours.

    Two sensitivities are equal when norm, adjacency and bound are: the derivation explains the
    number, it is not part of it.
    """

    norm: Norm
    adjacency: Adjacency
    squared: Fraction
    derivation: Derivation = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.norm, Norm):
            raise InvalidParameter("norm", self.norm, "a Norm")
        if not isinstance(self.adjacency, Adjacency):
            raise InvalidParameter("adjacency", self.adjacency, "an Adjacency")
        if not isinstance(self.squared, Fraction):
            raise InvalidParameter("squared", self.squared, "an exact Fraction")
        require_nonnegative("squared", self.squared)
        # in integers: fractions compare ten times as slowly, and every step of a derivation is here
        top, bottom = self.squared.numerator, self.squared.denominator
        if top and not (top <= bottom << _RANGE_BITS and bottom <= top << _RANGE_BITS):
            raise InvalidParameter("sensitivity", self.value, "0 or in [2**-400, 2**400]")
        if self.derivation.squared != self.squared:
            raise InvalidParameter(
                "derivation", self.derivation.squared, f"concluding squared={self.squared}"
            )

    @property
    def root(self) -> Fraction:
        """The bound itself, in units of the released quantity: exact where the root is rational."""
        return root_up(self.squared)

    @property
    def value(self) -> float:
        """The smallest binary64 that is not below the bound."""
        return float_up(self.root)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The declared (not derived) facts that the bound rests on."""
        return self.derivation.assumptions()


def float_up(value: Number) -> float:
    """Return the smallest binary64 >= `value` (infinity where there is none)."""
    exact = _exact(value)
    try:
        near = float(exact)
    except OverflowError:
        return inf if exact > 0 else -nextafter(inf, 0.0)
    if near == inf:
        return near
    top, bottom = near.as_integer_ratio()
    return near if top * exact.denominator >= exact.numerator * bottom else nextafter(near, inf)


def float_down(value: Number) -> float:
    """Return the largest binary64 <= `value`; zero without a sign."""
    return 0.0 - float_up(-_exact(value))


@lru_cache(maxsize=1024)
def root_up(squared: Fraction) -> Fraction:
    """Return a rational r with r² >= `squared`: exact for squares, else within 2**-95 relative."""
    numerator, denominator = squared.numerator, squared.denominator
    top, bottom = isqrt(numerator), isqrt(denominator)
    if top * top == numerator and bottom * bottom == denominator:
        return Fraction(top, bottom)
    # sqrt(n/d) = sqrt(n d 4^s) / (d 2^s), with enough bits left in the integer root
    shift = max(0, _ROOT_BITS - (numerator * denominator).bit_length() // 2)
    root = isqrt((numerator * denominator) << (2 * shift)) + 1
    return Fraction(root, denominator << shift)


def dyadic_up(value: Fraction, bits: int) -> Fraction:
    """Return a dyadic of at most `bits` + 1 bits that is not below `value` >= 0."""
    top, bottom = value.numerator, value.denominator
    if top.bit_length() <= bits and bottom & (bottom - 1) == 0:
        return value
    shift = bits - (top.bit_length() - bottom.bit_length())
    if shift >= 0:
        return Fraction(-((-top << shift) // bottom), 1 << shift)
    return Fraction(-(-top // (bottom << -shift)) << -shift)


def _capped(squared: Fraction) -> Fraction:
    """Return a rational >= `squared` whose digits do not grow without end."""
    if max(squared.numerator.bit_length(), squared.denominator.bit_length()) <= _SQUARE_BITS:
        return squared
    return dyadic_up(squared, 256)


def _exact(value: Number) -> Fraction:
    """Return `value` exactly; fixed-width integers would wrap around inside a `Fraction`."""
    if isinstance(value, float):
        return Fraction(value)
    if isinstance(value, Fraction) and type(value.numerator) is type(value.denominator) is int:
        return value
    return Fraction(int(value.numerator), int(value.denominator))


def rounded_up(value: Fraction) -> str:
    """Return a bound as text of six digits that is not below it."""
    upward = Context(prec=6, rounding=ROUND_CEILING)
    return f"{float(upward.create_decimal(repr(float_up(value)))):g}"


def _short(value: Fraction | str) -> str:
    return value if isinstance(value, str) else f"{float(value):.6g}"


def _conclude(
    rule: str,
    norm: Norm,
    adjacency: Adjacency,
    squared: Fraction,
    parameters: tuple[tuple[str, Fraction | str], ...],
    premises: tuple[Sensitivity | Derivation, ...] = (),
) -> Sensitivity:
    bound = _capped(squared)
    above = (p if isinstance(p, Derivation) else p.derivation for p in premises)
    node = Derivation(rule, bound, parameters, tuple(above))
    return Sensitivity(norm, adjacency, bound, node)


def declared(
    value: Number, reason: str, *, adjacency: Adjacency, norm: Norm = Norm.L2
) -> Sensitivity:
    """Return a sensitivity typed in by hand: an assumption, listed in every certificate.

    Args:
        value: the bound, in units of the released quantity, >= 0.
        reason: why it holds, in one sentence; it is printed with every epsilon built on it.
        adjacency: the neighbouring relation the bound speaks of.
        norm: the norm of the change.
    """
    require_nonnegative("value", value)
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidParameter("reason", reason, "a sentence that says why the bound holds")
    exact = _exact(value)
    return _conclude("declared", norm, adjacency, exact**2, (("value", exact), ("reason", reason)))


def mean_of_bounded(bound: Number, count: int, adjacency: Adjacency) -> Sensitivity:
    """Return the l2 sensitivity of a mean of vectors of norm at most `bound` over `count` records.

        |v_i| <= G for every record,  n public (add/remove: n_min <= both sizes)
        -------------------------------------------------------------------------  mean-of-bounded
        replace-one 2G/n    zero-out G/n    add/remove, renormalised 2G/n_min

    `count` is the public number of records, under add/remove the public lower bound n_min.
    """
    require_nonnegative("bound", bound)
    require_positive_int("count", count)
    return _mean_of_bounded(_exact(bound), count, adjacency)


@lru_cache(maxsize=256)
def _mean_of_bounded(exact: Fraction, count: int, adjacency: Adjacency) -> Sensitivity:
    """Return the sensitivity that a solver asks for in every round, and a calibration again."""
    factor = 1 if _record_adjacency(adjacency) is Adjacency.ZERO_OUT_ONE else 2
    return _conclude(
        "mean-of-bounded",
        Norm.L2,
        adjacency,
        (factor * exact / count) ** 2,
        (("bound", exact), ("count", Fraction(count))),
    )


def mean_of_nonnegative(bound: Number, count: int, adjacency: Adjacency) -> Sensitivity:
    """Return the l2 sensitivity of a mean of vectors no two of which point apart.

        |v_i| <= G,  <v_i, v_j> >= 0 for all records,  n public (add/remove: n_min <= both sizes)
        -------------------------------------------------------------------  mean-of-nonnegative
        replace-one sqrt(2) G/n    zero-out G/n    add/remove, renormalised sqrt(2) G/n_min

    Such are vectors of numbers >= 0, and positive semidefinite matrices: <A, B> = tr(AB) is the
    squared Frobenius norm of sqrt(A) sqrt(B). Proof: a replaced record moves the mean by
    (v - v')/n, and |v - v'|² = |v|² + |v'|² - 2<v, v'> <= 2G². One more record v moves the mean m
    of n others by (v - m)/(n + 1), where |m| <= G and <v, m> >= 0 as for each of them. The bound is
    attained by orthogonal vectors of norm G.

    `count` as for `mean_of_bounded`.
    """
    require_nonnegative("bound", bound)
    require_positive_int("count", count)
    factor = 1 if _record_adjacency(adjacency) is Adjacency.ZERO_OUT_ONE else 2
    exact = _exact(bound)
    return _conclude(
        "mean-of-nonnegative",
        Norm.L2,
        adjacency,
        factor * (exact / count) ** 2,
        (("bound", exact), ("count", Fraction(count))),
    )


def sum_of_bounded(bound: Number, adjacency: Adjacency) -> Sensitivity:
    """Return the l2 sensitivity of a sum of vectors of norm at most `bound`, one a record.

    |v_i| <= G for every record
    -----------------------------------------------  sum-of-bounded
    replace-one 2G    zero-out G    add/remove G
    """
    require_nonnegative("bound", bound)
    factor = 2 if _record_adjacency(adjacency) is Adjacency.REPLACE_ONE else 1
    exact = _exact(bound)
    return _conclude(
        "sum-of-bounded", Norm.L2, adjacency, (factor * exact) ** 2, (("bound", exact),)
    )


def histogram(adjacency: Adjacency, norm: Norm = Norm.L2) -> Sensitivity:
    """Return the sensitivity of how many records lie in each of several cells.

    every record lies in one cell, which depends on the record alone
    ----------------------------------------------------------------  histogram (l2), histogram-l1
    replace-one, zero-out: sqrt(2), in l1 2    add/remove: 1

    A replaced record leaves one cell for another. A null record lies in a cell as any other does.
    """
    moved = 1 if _record_adjacency(adjacency) is Adjacency.ADD_REMOVE_ONE else 2
    l1 = norm is Norm.L1
    squared = Fraction(moved**2 if l1 else moved)
    return _conclude("histogram-l1" if l1 else "histogram", norm, adjacency, squared, ())


def strongly_convex_argmin(
    lipschitz: Number, modulus: Number, tolerance: Number, count: int, adjacency: Adjacency
) -> Sensitivity:
    """Return the l2 sensitivity of an approximate minimiser of (1/n) sum l_i + strongly convex.

        l_i convex and G-Lipschitz,  objective m-strongly convex,  |gradient at output| <= tau
        ----------------------------------------------------------------  strongly-convex-argmin
        replace-one 2G/(m n) + 2 tau/m   (zero-out G/(m n), add/remove 2G/(m n_min), + 2 tau/m)

    The tolerance is declared before the data are seen; the solver certifies that it was met.
    Source: Chaudhuri, Monteleoni, Sarwate 2011, Lemma 8 for tau = 0; strong monotonicity of the
    gradient for the second term.
    """
    require_nonnegative("lipschitz", lipschitz)
    require_nonnegative("tolerance", tolerance)
    require_positive("modulus", modulus)
    require_positive_int("count", count)
    factor = 1 if _record_adjacency(adjacency) is Adjacency.ZERO_OUT_ONE else 2
    lip, mod, tol = _exact(lipschitz), _exact(modulus), _exact(tolerance)
    return _conclude(
        "strongly-convex-argmin",
        Norm.L2,
        adjacency,
        (factor * lip / (mod * count) + 2 * tol / mod) ** 2,
        (("lipschitz", lip), ("modulus", mod), ("tolerance", tol), ("count", Fraction(count))),
    )


def scaled(sensitivity: Sensitivity, factor: Number) -> Sensitivity:
    """Return the sensitivity of c·f, c a public number.

    Sens(f, Δ²)  ⊢  Sens(c·f, c²Δ²)
    """
    require_finite("factor", factor)
    exact = _exact(factor)
    return _conclude(
        "scaled",
        sensitivity.norm,
        sensitivity.adjacency,
        exact**2 * sensitivity.squared,
        (("factor", exact),),
        (sensitivity,),
    )


def added(first: Sensitivity, second: Sensitivity) -> Sensitivity:
    """Return the sensitivity of f ± g.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    u² ≥ Δ₁²    v² ≥ Δ₂²
    -----------------------------------------------------  sum
    Sens(f ± g, (u+v)²)
    """
    norm, adjacency = _common(first, second)
    u, v = first.root, second.root
    return _conclude("sum", norm, adjacency, (u + v) ** 2, (("u", u), ("v", v)), (first, second))


def linearly_mapped(sensitivity: Sensitivity, operator_norm: Fraction) -> Sensitivity:
    """Return the sensitivity of A·f, `operator_norm` a certified upper bound on ‖A‖ in that norm.

    Sens(f, Δ²)    ‖A‖ ≤ a
    ------------------------  linear-map
    Sens(A·f, a²Δ²)
    """
    require_nonnegative("operator_norm", operator_norm)
    return _conclude(
        "linear-map",
        sensitivity.norm,
        sensitivity.adjacency,
        operator_norm**2 * sensitivity.squared,
        (("operator_norm", operator_norm),),
        (sensitivity,),
    )


def clipped(sensitivity: Sensitivity, radius: Number) -> Sensitivity:
    """Return the l2 sensitivity of f projected on the ball of the given radius.

    Sens(f, Δ²)
    ----------------------------------  clip   (projection is 1-Lipschitz, and maps into the ball)
    Sens(clip_C(f), min(Δ², (2C)²))
    """
    require_nonnegative("radius", radius)
    if sensitivity.norm is not Norm.L2:
        raise InvalidParameter("norm", sensitivity.norm, "Norm.L2 for an l2 projection")
    exact = _exact(radius)
    return _conclude(
        "clip",
        sensitivity.norm,
        sensitivity.adjacency,
        min(sensitivity.squared, (2 * exact) ** 2),
        (("radius", exact),),
        (sensitivity,),
    )


def concatenated(first: Sensitivity, second: Sensitivity) -> Sensitivity:
    """Return the sensitivity of (f, g), both functions of the same records.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)
    ------------------------------  concatenation  (l2; in l1 the roots add)
    Sens((f, g), Δ₁² + Δ₂²)
    """
    norm, adjacency = _common(first, second)
    if norm is Norm.L1:
        return added(first, second)
    return _conclude(
        "concatenation", norm, adjacency, first.squared + second.squared, (), (first, second)
    )


def concatenated_disjoint(first: Sensitivity, second: Sensitivity) -> Sensitivity:
    """Return the sensitivity of (f, g), functions of disjoint records.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    no record enters both; the record → part map is public
    ----------------------------------------------------------------------------  disjoint
    Sens((f, g), max(Δ₁², Δ₂²))
    """
    norm, adjacency = _common(first, second)
    return _conclude(
        "disjoint", norm, adjacency, max(first.squared, second.squared), (), (first, second)
    )


def vertical_predictions(
    *,
    row_bound: Number,
    slope_bound: Number,
    radius: Number,
    penalty: Number,
    modulus: Number,
    tolerance: Number,
    adjacency: Adjacency,
) -> Sensitivity:
    """Return the l2 sensitivity of D x in R^N, x an approximate minimiser that depends on D too.

    x minimises <c, Dx> + (rho/2)|Dx|² + R(x) over |x| <= b,  R m-strongly convex,  c public,
    |c_i| <= B and |D_i| <= G for every record,  x found to the tolerance tau,
    Q = G (B + rho G b),  u² >= Q²/(rho m) + 4 G² b²,  v² >= tau²/(rho m)
    --------------------------------------------------------------------------  vertical-predictions
    replace-one (u + v)²    zero-out (u/2 + v)²

    The number of records is the dimension of the release, so there is no add/remove. With x' the
    neighbour's minimiser and e = x - x', optimality of both and the convexity of what they share
    give m|e|² + rho|D_-i e|² <= |r - r'||e| for r = (c_i + rho D_i x) D_i, which is at most Q long:
    so |D_-i e|² <= Q²/(rho m), and coordinate i moves by at most 2 G b; both halve where r' = 0.
    Tolerance: see `ball_ridge`; each of the two points is off by at most tau/(2 sqrt(rho m)).
    """
    require_nonnegative("row_bound", row_bound)
    require_nonnegative("slope_bound", slope_bound)
    require_nonnegative("radius", radius)
    require_positive("penalty", penalty)
    require_positive("modulus", modulus)
    require_nonnegative("tolerance", tolerance)
    given = {
        "row_bound": _exact(row_bound),
        "slope_bound": _exact(slope_bound),
        "radius": _exact(radius),
        "penalty": _exact(penalty),
        "modulus": _exact(modulus),
        "tolerance": _exact(tolerance),
    }
    rows, width, rho_m = given["row_bound"], given["radius"], given["penalty"] * given["modulus"]
    pull = rows * (given["slope_bound"] + given["penalty"] * rows * width)
    u = root_up(pull**2 / rho_m + 4 * rows**2 * width**2)
    v = root_up(given["tolerance"] ** 2 / rho_m)
    halves = 1 if _fixed_size(adjacency) is Adjacency.ZERO_OUT_ONE else 2
    return _conclude(
        "vertical-predictions",
        Norm.L2,
        adjacency,
        (halves * u / 2 + v) ** 2,
        (*given.items(), ("u", u), ("v", v)),
    )


def label_dual(
    *, derivative_bound: Number, label_gap: Number, tolerance: Number, adjacency: Adjacency
) -> Sensitivity:
    """Return the l2 sensitivity of the vector y with y_i = l'(z_i, label_i) in R^N.

    y_i + rho z_i = a_i,  a public,  l convex in z,  |l'| <= c,  |l'(z,+1) - l'(z,-1)| <= g,
    every y_i within tau of the exact one, and a function of a_i and label_i only
    ------------------------------------------------------------------------------------  label-dual
    replace-one (g + 2 tau)²    zero-out (c + 2 tau)²

    Only the differing record's own coordinate moves. If y_i > y'_i then z_i < z'_i, and as l' grows
    with z, y_i - y'_i <= l'(z'_i, label) - l'(z'_i, label') <= g. A null record has y'_i = 0.
    """
    require_nonnegative("derivative_bound", derivative_bound)
    require_nonnegative("label_gap", label_gap)
    require_nonnegative("tolerance", tolerance)
    slope, gap, tol = _exact(derivative_bound), _exact(label_gap), _exact(tolerance)
    moved = slope if _fixed_size(adjacency) is Adjacency.ZERO_OUT_ONE else gap
    return _conclude(
        "label-dual",
        Norm.L2,
        adjacency,
        (moved + 2 * tol) ** 2,
        (("derivative_bound", slope), ("label_gap", gap), ("tolerance", tol)),
    )


def computed(sensitivity: Sensitivity, error: Fraction, rows: int, by: Derivation) -> Sensitivity:
    """Return the sensitivity of what is computed in place of f.

    Sens(f, Δ²)    |f̂_k - f_k| <= r for each of P rows    u² >= Δ²    w² >= (2r)²·P
    -------------------------------------------------------------------------------  computed
    Sens(f̂, (u+w)²)    in l1, computed-l1: Sens(f̂, (u + 2rP)²)

    Args:
        sensitivity: of f, in exact arithmetic.
        error: r, in the norm of the sensitivity, in units of f.
        rows: P.
        by: the operations that r follows from (`rounding`): a premise, which a checker follows.
    """
    require_nonnegative("error", error)
    require_positive_int("rows", rows)
    u, l1 = sensitivity.root, sensitivity.norm is Norm.L1
    w = dyadic_up(2 * error * (rows if l1 else root_up(Fraction(rows))), _SHARE_BITS)
    return _conclude(
        "computed-l1" if l1 else "computed",
        sensitivity.norm,
        sensitivity.adjacency,
        dyadic_up(u + w, _TOTAL_BITS) ** 2,
        (("rows", Fraction(rows)), ("u", u), *(() if l1 else (("w", w),))),
        (sensitivity.derivation, by),
    )


def rounded_to_lattice(sensitivity: Sensitivity, distance: Fraction, dimension: int) -> Sensitivity:
    """Return the sensitivity of f with every coordinate rounded to a lattice.

    Sens(f, Δ²)    |f̂_i - f_i| <= h in d coordinates    u² >= Δ²    w² >= (2h)²·d
    -------------------------------------------------------------------------------  lattice
    Sens(f̂, (u+w)²)    in l1, lattice-l1: Sens(f̂, (u + 2hd)²)

    Each of two neighbours' values moves by at most h√d, in l1 by h·d: the triangle inequality.
    """
    require_positive("distance", distance)
    require_positive_int("dimension", dimension)
    u = sensitivity.root
    l1 = sensitivity.norm is Norm.L1
    w = 2 * distance * (dimension if l1 else root_up(Fraction(dimension)))
    w = dyadic_up(w, _SHARE_BITS)
    return _conclude(
        "lattice-l1" if l1 else "lattice",
        sensitivity.norm,
        sensitivity.adjacency,
        dyadic_up(u + w, _TOTAL_BITS) ** 2,
        (
            ("distance", distance),
            ("dimension", Fraction(dimension)),
            ("u", u),
            *(() if l1 else (("w", w),)),
        ),
        (sensitivity,),
    )


def _common(first: Sensitivity, second: Sensitivity) -> tuple[Norm, Adjacency]:
    if first.norm is not second.norm:
        raise InvalidParameter("norm", second.norm, f"equal to {first.norm}")
    return first.norm, require_same_adjacency(first.adjacency, second.adjacency)


def _record_adjacency(adjacency: Adjacency) -> Adjacency:
    if adjacency is Adjacency.REPLACE_FEATURE_COLUMN:
        raise InvalidParameter(
            "adjacency",
            adjacency,
            "a relation between records: a feature column meets every record",
        )
    return adjacency


def _fixed_size(adjacency: Adjacency) -> Adjacency:
    if _record_adjacency(adjacency) is Adjacency.ADD_REMOVE_ONE:
        raise InvalidParameter(
            "adjacency", adjacency, "of data sets with equally many records: one coordinate each"
        )
    return adjacency
