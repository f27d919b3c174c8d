"""How far doubles may be from the numbers that they stand for, derived again from the operations.

A derivation is a tree of operations, each with its public sizes. A rule takes the rows that it is
computed from and its parameters, and returns the least bounds that follow; a derivation may state
larger ones: long fractions are rounded up.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any, NamedTuple

from .reading import (
    MAX_DEPTH,
    CertificateWrong,
    Undecided,
    read_fields,
    read_list,
    read_pair,
    read_rational,
    read_text,
    require_equal,
    require_least,
    require_whole,
    show,
)

_UNIT = Fraction(1, 1 << 53)
"""u: fl(x op y) = (x op y)(1 + e), |e| ≤ u, in the standard model of floating-point arithmetic."""

_TINY = Fraction(1, 1 << 1074)
"""More than a product loses by underflow, and than its error grows to in all later sums."""

_LARGEST_STEP = Fraction(1 << 970)
"""2^53 of them are doubles."""

_BLOCK = 1 << 10
"""Records whose terms are added in any order; the sums of blocks are added with compensation."""

_MOST_PAIRS = 1 << 16
"""Pairs of nodes of two derivations that are compared before that is given up."""


class Round(NamedTuple):
    """Bounds on a row that a program computes, in the norm of the sensitivity.

    `magnitude`: on its size; `error`: on its distance from the row that is meant; `width`: numbers
    in it.
    """

    magnitude: Fraction
    error: Fraction
    width: Fraction


def _gamma(terms: Fraction) -> Fraction:
    """γ_n = n u/(1 - n u), for n < 2^53."""
    if terms >= 1 << 53:
        raise CertificateWrong(f"expected fewer than 2^53 operations instead got {show(terms)}")
    return terms * _UNIT / (1 - terms * _UNIT)


def _in_a_sum(size: Fraction, count: Fraction, products: Fraction, width: Fraction) -> Round:
    """A sum of `count` products whose sizes add up to `size`, as far as it is computed in blocks.

    A number goes through its product, a division and the additions of its block; beside other
    blocks, through 62 that cover the additions of the blocks' sums (Ogita, Rump, Oishi 2005,
    Proposition 4.5).
    """
    slip = _gamma(count + 2 if count <= _BLOCK else Fraction(_BLOCK + 64)) * size + products * _TINY
    return Round(size + slip, slip, width)


def _root_above(number: Fraction) -> int:
    """The least whole number whose square is at least a whole number >= 1."""
    return isqrt(int(number) - 1) + 1


def _float_exact(width: Fraction) -> Round:
    """What stands for itself: public numbers, and minimisers, whose tolerance covers rounding.

    f̂ = f    |f̂| ≤ M
    -------------------  float-exact
    Round(f̂, M, 0)

    Source: an assumption about what computes a minimiser, priced by its tolerance.
    Check: computes_sound.
    """
    return Round(Fraction(0), Fraction(0), width)


def _float_count(most: Fraction, width: Fraction) -> Round:
    """Counts of records.

    f_i whole    Σ f_i ≤ n ≤ 2^53
    ------------------------------  float-count
    Round(f̂, n, 0)

    Source: whole numbers up to 2^53 are doubles, and so are their sums.
    Check: computes_sound.
    """
    if most > 1 << 53:
        raise CertificateWrong(f"expected counts of up to 2^53 instead got {show(most)}")
    return Round(most, Fraction(0), width)


def _float_grid(most: Fraction, step: Fraction, width: Fraction) -> Round:
    """Sums of numbers that are multiples of a public step, a power of two.

    f_i = k_i s, k_i whole    |f| ≤ M ≤ 2^53 s
    --------------------------------------------  float-grid
    Round(f̂, M, 0)

    Source: such numbers are doubles, and so are their sums.
    Check: computes_sound.
    """
    powers = step.numerator & (step.numerator - 1), step.denominator & (step.denominator - 1)
    if not _TINY <= step <= _LARGEST_STEP or powers != (0, 0):
        raise CertificateWrong(f"expected a step that is a power of two instead got {show(step)}")
    if most > step * (1 << 53):
        raise CertificateWrong(f"expected up to 2^53 steps instead got {show(most)}")
    return Round(most, Fraction(0), width)


def _float_mean(bound: Fraction, count: Fraction, width: Fraction) -> Round:
    """A mean of products of numbers and rows, one a record, added in blocks.

    |v_i| ≤ G    at most n records    e = γ_(n+2) G + 2 d 2^-1074    (n > 1024: γ_1088)
    -------------------------------------------------------------------------------  float-mean
    Round(fl(mean v), G + e, e)

    Source: Higham 2002, section 4.2; Ogita, Rump, Oishi 2005, Proposition 4.5 (compensated sums).
    Check: computes_sound.
    """
    return _in_a_sum(bound, count, 2 * width, width)


def _float_total(bound: Fraction, count: Fraction, width: Fraction) -> Round:
    """A sum of products of numbers and rows, one a record, added in blocks.

    |v_i| ≤ G    at most n records    e = γ_(n+2) n G + n d 2^-1074    (n > 1024: γ_1088)
    --------------------------------------------------------------------------------  float-total
    Round(fl(Σ v), n G + e, e)

    Source: Higham 2002, section 4.2; Ogita, Rump, Oishi 2005, Proposition 4.5 (compensated sums).
    Check: computes_sound.
    """
    return _in_a_sum(count * bound, count, count * width, width)


def _float_scores(bound: Fraction, terms: Fraction, width: Fraction) -> Round:
    """Scores of records at a point, each a sum of as many products as there are features.

    |a_i| |x| ≤ G for each of N records, d features    e = γ_(d+1) G ⌈√N⌉ + d N 2^-1074
    ------------------------------------------------------------------------------  float-scores
    Round(fl(<a_i, x>)_i, G ⌈√N⌉ + e, e)

    Source: Higham 2002, section 3.1.
    Check: computes_sound.
    """
    size = bound * _root_above(width)
    slip = _gamma(terms + 1) * size + terms * width * _TINY
    return Round(size + slip, slip, width)


def _float_shift(row: Round, size: Fraction) -> Round:
    """A public row is added.

    Round(f̂, M, r)    |c| ≤ C    c public and exact
    ----------------------------------------------------  float-shift
    Round(fl(f̂ + c), (1 + u)(M + C), r + u(M + C))

    Source: Higham 2002, section 2.2.
    Check: computes_sound.
    """
    most = row.magnitude + size
    return Round((1 + _UNIT) * most, row.error + _UNIT * most, row.width)


def _float_scale(row: Round, factor: Fraction) -> Round:
    """A public multiple.

    Round(f̂, M, r)    c public    e = u |c| M + d 2^-1074, or 0 at c = ±1
    ----------------------------------------------------------------------  float-scale
    Round(fl(c f̂), |c| M + e, |c| r + e)

    Source: Higham 2002, section 2.2; a change of sign is exact.
    Check: computes_sound.
    """
    return row if factor == 1 else _float_product(row, factor, row.width)


def _float_product(row: Round, size: Fraction, width: Fraction) -> Round:
    """Products with public numbers: one for a row, one for each entry, or an outer product.

    Round(f̂, M, r)    |c| ≤ C    e = u C M + d 2^-1074
    ----------------------------------------------------  float-product
    Round(fl(c f̂), C M + e, C r + e)

    Source: Higham 2002, section 2.2.
    Check: computes_sound.
    """
    if width % row.width:
        raise CertificateWrong(f"expected a multiple of {row.width} instead got {show(width)}")
    slip = _UNIT * size * row.magnitude + width * _TINY
    return Round(size * row.magnitude + slip, size * row.error + slip, width)


def _float_add(first: Round, second: Round) -> Round:
    """A sum or a difference.

    Round(f̂, M, r)    Round(ĝ, N, s)
    -------------------------------------------------------  float-add
    Round(fl(f̂ ± ĝ), (1 + u)(M + N), r + s + u(M + N))

    Source: Higham 2002, section 2.2.
    Check: computes_sound.
    """
    require_equal("width", second.width, first.width)
    most = first.magnitude + second.magnitude
    return Round((1 + _UNIT) * most, first.error + second.error + _UNIT * most, first.width)


def _float_pair(first: Round, second: Round) -> Round:
    """Two rows, one beside the other.

    Round(f̂, M, r)    Round(ĝ, N, s)
    ----------------------------------  float-pair
    Round((f̂, ĝ), M + N, r + s)

    Source: the triangle inequality.
    Check: computes_sound.
    """
    return Round(*(a + b for a, b in zip(first, second, strict=True)))


def _float_rows(first: Round, second: Round) -> Round:
    """Rows of several parties, one below the other: of each of them both bounds hold.

    Round(f̂, M, r)    Round(ĝ, N, s)
    ------------------------------------------  float-rows
    Round(rows of both, max(M, N), max(r, s))

    Source: bounds are of every row.
    Check: computes_sound.
    """
    require_equal("width", second.width, first.width)
    return Round(*map(max, first, second))


def _float_map(row: Round, operator_norm: Fraction, height: Fraction) -> Round:
    """A public linear map, its products added in any order.

    Round(f̂, M, r)    ‖A‖ ≤ a    A of m rows and d columns    e = γ_d F M + m d 2^-1074
    F = a⌈√min(m, d)⌉, at least the Frobenius norm; in l1 at least ‖A‖
    ----------------------------------------------------------------------------  float-map
    Round(fl(A f̂), a M + e, a r + e)

    Source: Higham 2002, section 3.5.
    Check: computes_sound.
    """
    spread = operator_norm * _root_above(min(height, row.width))
    slip = _gamma(row.width) * spread * row.magnitude + height * row.width * _TINY
    return Round(operator_norm * row.magnitude + slip, operator_norm * row.error + slip, height)


def _float_clip(row: Round, radius: Fraction) -> Round:
    """The projection on a ball.

    Round(f̂, M, r)    e = γ_(2d+16) min(M, C) + d 2^-1074
    -------------------------------------------------------  float-clip
    Round(fl(clip_C(f̂)), min(M, C) + e, r + e)

    Source: projections are 1-Lipschitz; Higham 2002, section 3.1, for a norm, a root, a quotient.
    Check: computes_sound.
    """
    most = min(row.magnitude, radius)
    slip = _gamma(2 * row.width + 16) * most + row.width * _TINY
    return Round(most + slip, row.error + slip, row.width)


ROUNDINGS: dict[str, tuple[Callable[..., Round], int, tuple[str, ...]]] = {
    # name: (function, number of premises, names of its parameters but magnitude and error)
    "float-exact": (_float_exact, 0, ("width",)),
    "float-count": (_float_count, 0, ("most", "width")),
    "float-grid": (_float_grid, 0, ("most", "step", "width")),
    "float-mean": (_float_mean, 0, ("bound", "count", "width")),
    "float-total": (_float_total, 0, ("bound", "count", "width")),
    "float-scores": (_float_scores, 0, ("bound", "terms", "width")),
    "float-shift": (_float_shift, 1, ("size",)),
    "float-scale": (_float_scale, 1, ("factor",)),
    "float-product": (_float_product, 1, ("size", "width")),
    "float-add": (_float_add, 2, ()),
    "float-pair": (_float_pair, 2, ()),
    "float-rows": (_float_rows, 2, ()),
    "float-map": (_float_map, 1, ("operator_norm", "height")),
    "float-clip": (_float_clip, 1, ("radius",)),
}
_IN_L2 = ("float-scores", "float-clip")
"""Rules whose bounds are lengths in the Euclidean norm: N scores of size G are G √N long there."""

_WHOLE = ("count", "most", "terms", "width", "height")
"""Parameters of rounding that count something."""


def read_rounding(node: Any, norm: str, depth: int) -> Round:
    """Return bounds on a computed row after every operation of its derivation has been followed.

    Raises `CertificateWrong` where a bound does not follow.
    """
    rule, squared, pairs, premises = read_fields(node, "rule", "squared", "parameters", "premises")
    if read_text(rule) not in ROUNDINGS or depth > MAX_DEPTH:
        raise CertificateWrong(f"expected a rule of rounding up to {MAX_DEPTH} deep, got {rule!r}")
    if rule in _IN_L2 and norm != "l2":
        raise CertificateWrong(f"{rule}: expected the norm l2 instead got {norm}")
    function, arity, names = ROUNDINGS[rule]
    given = [read_pair(pair) for pair in read_list(pairs)]
    named = [name for name, _ in given]
    require_equal(f"{rule} parameters", named, [*names, "magnitude", "error"])
    require_equal(f"{rule} premises", len(read_list(premises)), arity)
    *numbers, magnitude, error = (read_rational(value) for _, value in given)
    for name, number in zip(names, numbers, strict=True):
        if name in _WHOLE and (rule, name) != ("float-grid", "most"):
            require_whole(name, number)
    if min(*numbers, magnitude, error) < 0:
        raise CertificateWrong(f"{rule}: expected parameters >= 0 instead got {show(error)}")
    least = function(*(read_rounding(p, norm, depth + 1) for p in premises), *numbers)
    require_least(f"{rule}: magnitude", magnitude, least.magnitude)
    require_least(f"{rule}: error", error, least.error)
    require_equal(f"{rule}: squared error", read_rational(squared), error**2)
    return Round(magnitude, error, least.width)


def parameters_of(node: Any) -> dict[str, Fraction]:
    """The parameters of a step that was read before, but for reasons."""
    return {n: read_rational(v) for n, v in node["parameters"] if isinstance(v, str)}


def require_same_operations(meant: Any, rounded: Any, norm: str) -> None:
    """Raise unless every operation that a sensitivity was derived by is among those rounded.

    Both were read before. More may be rounded than moves: public numbers that are added, and parts
    of a sum that other samples or no records enter.

    Args:
        meant: derivation of the sensitivity, in exact arithmetic.
        rounded: derivation of the rounding error.
        norm: of both.
    """
    left = _MOST_PAIRS
    known: dict[tuple[int, int], bool] = {}

    def both(first: Any, second: Any) -> bool:
        """Whether two steps' premises correspond, in one order or the other."""
        (a, b), (x, y) = first["premises"], second["premises"]
        return (same(a, x) and same(b, y)) or (same(a, y) and same(b, x))

    def same(a: Any, x: Any) -> bool:
        nonlocal left
        key = id(a), id(x)
        if key not in known:
            left -= 1
            if left < 0:
                raise Undecided(f"gave up after {_MOST_PAIRS} pairs of operations")
            known[key] = _is_of(a, x) or corresponds(a, x) or passes(a, x)
        return known[key]

    def corresponds(a: Any, x: Any) -> bool:
        """Whether both are one operation, of corresponding premises."""
        match a["rule"], x["rule"]:
            case ("scaled", "float-scale") | ("scaled", "float-product"):
                factor, size = (
                    abs(parameters_of(a)["factor"]),
                    next(iter(parameters_of(x).values())),
                )
                fits = factor == size or (factor < size and x["rule"] == "float-product")
                return fits and same(a["premises"][0], x["premises"][0])
            case ("linear-map", "float-map") | ("clip", "float-clip"):
                (here,), there = parameters_of(a).values(), next(iter(parameters_of(x).values()))
                return here <= there and same(a["premises"][0], x["premises"][0])
            case (
                ("sum", "float-add") | ("concatenation", "float-pair") | ("disjoint", "float-rows")
            ):
                return both(a, x)
            case ("sum", "float-shift"):  # of what is public, whose size is the list's word
                moved = _moved(a["premises"])
                return len(moved) == 1 and same(moved[0], x["premises"][0])
            case ("sum", "float-pair"):  # how a concatenation is written in l1
                return norm == "l1" and both(a, x)
            case _:
                return False

    def passes(a: Any, x: Any) -> bool:
        """Whether one of both changes nothing that the other is about."""
        above = a["premises"]
        match a["rule"]:
            case "disjoint":  # of every row all bounds hold
                skipped = all(same(p, x) for p in above)
            case "scaled":  # a change of sign is exact
                skipped = abs(parameters_of(a)["factor"]) == 1 and same(above[0], x)
            case "concatenation":  # with what is public
                skipped = len(moved := _moved(above)) == 1 and same(moved[0], x)
            case _:
                skipped = False
        if skipped:
            return True
        larger = x["rule"] in ("float-shift", "float-add", "float-pair", "float-rows")
        if x["rule"] in ("float-scale", "float-product"):
            size = next(iter(parameters_of(x).values()))
            larger = size == 1 or (size > 1 and x["rule"] == "float-product")
        return larger and any(same(a, p) for p in x["premises"])

    if not same(meant, rounded):
        raise CertificateWrong("expected the same operations in a sensitivity and its rounding")


def _moved(premises: list[Any]) -> list[Any]:
    """Return those that move at all."""
    return [premise for premise in premises if read_rational(premise["squared"])]


def _is_of(meant: Any, rounded: Any) -> bool:
    """Whether nothing is left to compare: nothing moves, or a leaf's own rounding is bounded."""
    rule, leaf = meant["rule"], rounded["rule"]
    if rule == "declared" or not read_rational(meant["squared"]):
        return True
    stated, bounds = parameters_of(meant), parameters_of(rounded)
    match rule, leaf:
        case ("mean-of-bounded" | "mean-of-nonnegative", "float-mean"):
            return stated["bound"] <= bounds["bound"] and stated["count"] <= bounds["count"]
        case ("sum-of-bounded", "float-total" | "float-scores"):
            return stated["bound"] <= bounds["bound"]
        case ("vertical-predictions", "float-scores"):
            return stated["row_bound"] * stated["radius"] <= bounds["bound"]
        case ("linear-map", "float-total"):  # a sum of numbers, one a record, in l1
            (counts,) = meant["premises"]
            fits = stated["operator_norm"] <= bounds["bound"]
            return counts["rule"] == "histogram-l1" and fits
        case (_, "float-count"):
            return _counts(meant, Fraction(1), 2 * bounds["most"])
        case (_, "float-grid"):
            return _counts(meant, bounds["step"], 2 * bounds["most"])
        case ("strongly-convex-argmin" | "label-dual", "float-exact"):
            return True
        case _:
            return False


def _counts(meant: Any, step: Fraction, reach: Fraction) -> bool:
    """Whether a sensitivity is one of counts, of sums of records' numbers, or their multiples.

    Args:
        meant: a derivation that was read before.
        step: that all numbers are to be multiples of; what a linear map or a record's number is a
            multiple of is the list's word.
        reach: twice the largest sum, and so at least as far as one record's number moves.
    """
    above, given = meant["premises"], parameters_of(meant)
    match meant["rule"]:
        case "scaled":
            factor = abs(given["factor"])
            whole = factor > 0 and (factor / step).denominator == 1
            return whole and _counts(above[0], Fraction(1), reach / factor)
        case "linear-map":
            return _counts(above[0], Fraction(1), reach)
        case "sum-of-bounded":
            return bool(given["bound"] <= reach)
        case "histogram" | "histogram-l1":
            return reach >= 1
        case "declared":
            return True
        case _:
            return False
