"""Rounding errors of computed values: how far doubles may lie from the numbers they stand for.

A sensitivity is derived for real numbers, and programs compute in binary64. Beside the exact
sensitivity of f, every value carries a public bound M on its size and a bound r on its rounding
error, both the same for every data set, both per row, in the norm of the sensitivity:

    |f̂| <= M,   |f̂ - f| <= r,

so that the computed f̂ moves by at most Δ + 2r between neighbours. Bounds are those of the standard
model of floating-point arithmetic, fl(x op y) = (x op y)(1 + e), |e| <= u = 2^-53, for any order of
summation, fused or not: a sum of n products errs by at most γ_n times the sum of their sizes,
γ_n = n u/(1 - n u). Products may also underflow, by at most 2^-1075 each, for which 2^-1074 leaves
room.

Each operation is a node of a derivation that goes with the release: whoever checks a certificate
finds M and r again, from the operations and their public sizes (`accounting/check/roundings.py`).

Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, sections 2.2, 3.1, 4.2.

>>> mean_of_ten = mean(Fraction(1), 10, width=5)
>>> float(mean_of_ten.error) < 1.5e-15
True
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from .errors import InvalidParameter
from .refusals import Closed
from .sensitivity import Derivation, dyadic_up

UNIT = Fraction(1, 2**53)
"""u: half the distance of 1 and the next binary64."""

TINY = Fraction(1, 2**1074)
"""The smallest positive binary64: no underflow loses as much."""

MOST_COUNTED = 2**53
"""Every whole number up to here is a binary64."""

BLOCK_RECORDS = 2**10
"""Records whose terms are added in any order; the blocks' sums are added with compensation."""

_BITS = 32
"""Bits that bounds are rounded up to: a part in 2^31 more, in documents of half the length."""


@dataclass(frozen=True, slots=True)
class Rounding(Closed):
    """Public bounds on the size and on the rounding error of every row of a value.

    Args:
        magnitude: bound on the norm of a computed row.
        error: bound on the distance of a computed row from the exact one.
        width: numbers in a row.
        derivation: the operations that these bounds follow from; `squared` is the error's square.
        whole: whether every number is known to be a whole one, exactly: discrete noise asks for it.
    """

    magnitude: Fraction
    error: Fraction
    width: int
    derivation: Derivation
    whole: bool = False


def gamma(terms: int) -> Fraction:
    """Return γ_n = n u/(1 - n u) for n = `terms` < 2^53."""
    return terms * UNIT / (1 - terms * UNIT)


def exact(magnitude: Fraction, *, width: int) -> Rounding:
    """Return the bounds of a value that is what it stands for.

    Public numbers are; and so is what is priced as computed, as minimisers are.

    |f̂| <= M,  f̂ = f  ⊢  Round(f̂, M, 0)
    """
    return _concluded("float-exact", (magnitude, Fraction(0)), width, (("width", width),))


def counted(most: int, *, width: int) -> Rounding:
    """Return the bounds of a row of counts of at most `most` records together.

    f_i whole,  Σ f_i <= n <= 2^53  ⊢  Round(f̂, n, 0), whole

    Sums of zeros and ones below 2^53 are exact in any order. Raises `InvalidParameter` above.
    """
    if most > MOST_COUNTED:
        raise InvalidParameter("n_max", most, "at most 2**53: doubles count no further")
    bounds = Fraction(most), Fraction(0)
    found = _concluded("float-count", bounds, width, (("most", most), ("width", width)))
    return replace(found, whole=True)


def multiples(most: Fraction, step: Fraction, *, width: int) -> Rounding:
    """Return the bounds of numbers of size at most `most` that are multiples of a power of two.

    f_i = k_i s,  k_i whole,  |f| <= M <= 2^53 s  ⊢  Round(f̂, M, 0)

    Sums of such numbers are exact in any order. Raises `InvalidParameter` above.
    """
    if most > MOST_COUNTED * step:
        raise InvalidParameter(
            "step", float(step), "a larger power of two: doubles do not hold the sum exactly"
        )
    bounds, given = (most, Fraction(0)), (("most", most), ("step", step), ("width", width))
    return _concluded("float-grid", bounds, width, given)


def sum_depth(count: int) -> int:
    """Return how many operations a term of a sum or mean over `count` records goes through.

    Its product, a division and the additions of its block; beside other blocks, 62 that cover the
    additions of blocks' sums: plain up to 32 of them, or 62 of smaller ones, then compensated
    (Ogita, Rump, Oishi 2005, Proposition 4.5).
    """
    return count + 2 if count <= BLOCK_RECORDS else BLOCK_RECORDS + 64


@lru_cache(maxsize=256)
def mean(bound: Fraction, count: int, width: int) -> Rounding:
    """Return the bounds of a mean of at most `count` terms of norm at most `bound`, as computed.

    |v_i| <= G    at most n terms, each a product    e = γ_(n+2) G + 2 d 2^-1074
    ----------------------------------------------------------------------------  float-mean
    Round(fl(mean v), G + e, e)    above 1024 records γ_1088: see `sum_depth`
    """
    given = (("bound", bound), ("count", count), ("width", width))
    return _concluded("float-mean", _summed(bound, sum_depth(count), 2 * width), width, given)


@lru_cache(maxsize=256)
def total(bound: Fraction, count: int, width: int) -> Rounding:
    """Return the bounds of a sum of at most `count` terms of norm at most `bound`, as computed.

    |v_i| <= G    at most n terms, each a product    e = γ_(n+2) n G + n d 2^-1074
    ------------------------------------------------------------------------------  float-total
    Round(fl(Σ v), n G + e, e)    above 1024 records γ_1088: see `sum_depth`
    """
    given = (("bound", bound), ("count", count), ("width", width))
    bounds = _summed(count * bound, sum_depth(count), count * width)
    return _concluded("float-total", bounds, width, given)


@lru_cache(maxsize=256)
def scores(bound: Fraction, terms: int, width: int) -> Rounding:
    """Return the bounds of a row of `width` scores <a_i, x>, each a sum of `terms` products.

    |a_i| |x| <= G for each of N records of d features    e = γ_(d+1) √N G + d N 2^-1074
    ------------------------------------------------------------------------------------
    Round(fl(scores), √N G + e, e)    float-scores
    """
    given = (("bound", bound), ("terms", terms), ("width", width))
    bounds = _summed(bound * _root_up(width), terms + 1, terms * width)
    return _concluded("float-scores", bounds, width, given)


def shifted(value: Rounding, size: Fraction) -> Rounding:
    """Return the bounds of f + c, c public and exact with |c| <= `size`.

    Round(f̂, M, r)  ⊢  Round(fl(f̂ + c), (1 + u)(M + |c|), r + u(M + |c|))
    """
    most = value.magnitude + size
    bounds = (1 + UNIT) * most, value.error + UNIT * most
    return _concluded("float-shift", bounds, value.width, (("size", size),), (value,))


def scaled(value: Rounding, factor: Fraction) -> Rounding:
    """Return the bounds of c·f, c a public double, for rows of d numbers.

    Round(f̂, M, r)    e = u |c| M + d 2^-1074, or 0 at c = ±1
    -----------------------------------------------------------  float-scale
    Round(fl(c f̂), |c| M + e, |c| r + e)
    """
    size = abs(factor)
    # a change of sign is exact
    exactly = value.magnitude, value.error
    bounds = exactly if size == 1 else _multiplied(value, size, value.width)
    return _concluded("float-scale", bounds, value.width, (("factor", size),), (value,))


def multiplied(value: Rounding, size: Fraction, *, width: int) -> Rounding:
    """Return the bounds of products with public numbers, each number with one or more of its own.

    What multiplies all of a row may be one number, one for each of its entries, or a vector of
    norm <= `size` in an outer product; and it may be another for every row.

    Round(f̂, M, r)    |c| <= C    e = u C M + d 2^-1074
    ----------------------------------------------------  float-product
    Round(fl(c f̂), C M + e, C r + e)
    """
    given = (("size", size), ("width", width))
    return _concluded("float-product", _multiplied(value, size, width), width, given, (value,))


def joined(first: Rounding, second: Rounding) -> Rounding:
    """Return the bounds of f ± g.

    Round(f̂, M, r)    Round(ĝ, N, s)  ⊢  Round(fl(f̂ ± ĝ), (1 + u)(M + N), r + s + u(M + N))
    """
    most = first.magnitude + second.magnitude
    bounds = (1 + UNIT) * most, first.error + second.error + UNIT * most
    return _concluded("float-add", bounds, first.width, (), (first, second))


def paired(first: Rounding, second: Rounding) -> Rounding:
    """Return the bounds of rows (f, g).

    Round(f̂, M, r)    Round(ĝ, N, s)  ⊢  Round((f̂, ĝ), M + N, r + s)

    Whole numbers stay whole.
    """
    bounds = first.magnitude + second.magnitude, first.error + second.error
    pair = _concluded("float-pair", bounds, first.width + second.width, (), (first, second))
    return replace(pair, whole=first.whole and second.whole)


def widest(first: Rounding, second: Rounding) -> Rounding:
    """Return the bounds of the rows of f and, below them, those of g.

    Round(f̂, M, r)    Round(ĝ, N, s)  ⊢  Round(rows of both, max(M, N), max(r, s))
    """
    bounds = max(first.magnitude, second.magnitude), max(first.error, second.error)
    return _concluded("float-rows", bounds, first.width, (), (first, second))


def mapped(value: Rounding, operator_norm: Fraction, *, height: int) -> Rounding:
    """Return the bounds of A·f, A public of shape (m, d), m = `height`.

    Round(f̂, M, r)    ‖A‖ <= a    F = a ⌈√min(m, d)⌉ >= ‖|A|‖    e = γ_d F M + m d 2^-1074
    ----------------------------------------------------------------------------------------
    Round(fl(A f̂), a M + e, a r + e)    float-map

    In l2 ‖|A|‖ is at most the Frobenius norm; in l1 it is ‖A‖.
    """
    spread = operator_norm * _root_up(min(height, value.width))
    slip = gamma(value.width) * spread * value.magnitude + height * value.width * TINY
    given = (("operator_norm", operator_norm), ("height", height))
    bounds = operator_norm * value.magnitude + slip, operator_norm * value.error + slip
    return _concluded("float-map", bounds, height, given, (value,))


def clipped(value: Rounding, radius: Fraction) -> Rounding:
    """Return the bounds of the projection of rows of d numbers on a ball.

    Round(f̂, M, r)    e = γ_(2d+16) min(M, C) + d 2^-1074
    -----------------------------------------------------  float-clip  (see `project_to_ball`)
    Round(clip_C(f̂), min(M, C) + e, r + e)
    """
    most = min(value.magnitude, radius)
    slip = gamma(2 * value.width + 16) * most + value.width * TINY
    bounds = most + slip, value.error + slip
    return _concluded("float-clip", bounds, value.width, (("radius", radius),), (value,))


_Bounds = tuple[Fraction, Fraction]
"""On the size and on the error of a row."""


def _summed(size: Fraction, depth: int, products: int) -> _Bounds:
    """Return the bounds of sums of `products` products whose sizes add up to at most `size`.

    Args:
        size: of all terms together.
        depth: operations that a number goes through at most.
        products: each may underflow.
    """
    error = gamma(depth) * size + products * TINY
    return size + error, error


def _multiplied(value: Rounding, size: Fraction, width: int) -> _Bounds:
    slip = UNIT * size * value.magnitude + width * TINY
    return size * value.magnitude + slip, size * value.error + slip


def _concluded(
    rule: str,
    bounds: _Bounds,
    width: int,
    given: tuple[tuple[str, Fraction | int], ...],
    premises: tuple[Rounding, ...] = (),
) -> Rounding:
    most, slip = (dyadic_up(bound, _BITS) for bound in bounds)
    node = Derivation(
        rule,
        slip**2,
        (*((name, Fraction(value)) for name, value in given), ("magnitude", most), ("error", slip)),
        tuple(premise.derivation for premise in premises),
    )
    return Rounding(most, slip, width, node)


def _root_up(count: int) -> int:
    """Return the least whole number that is at least sqrt(count), count >= 1."""
    return isqrt(count - 1) + 1
