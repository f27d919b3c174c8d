"""Rounding errors of computed values: how far doubles may lie from the numbers they stand for.

A sensitivity is derived for real numbers, and programs compute in binary64. Beside the exact
sensitivity of f, every value carries a public bound M on its size and a bound r on its rounding
error, both the same for every data set and both per row, in the l2 norm:

    |f̂| <= M,   |f̂ - f| <= r,

so that the computed f̂ moves by at most Δ + 2r between neighbours. Bounds are those of the standard
model of floating-point arithmetic, fl(x op y) = (x op y)(1 + e), |e| <= u = 2^-53, for any order of
summation, fused or not: a sum of n products errs by at most γ_n times the sum of their sizes,
γ_n = n u/(1 - n u). Products may also underflow, by at most 2^-1074 each.

Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, sections 2.2, 3.1, 4.2.

>>> mean = summed(size=Fraction(1), depth=10, products=5)
>>> float(mean.error) < 1.2e-15
True
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from .errors import InvalidParameter
from .sensitivity import Derivation

UNIT = Fraction(1, 2**53)
"""u: half the distance of 1 and the next binary64."""

TINY = Fraction(1, 2**1074)
"""The smallest positive binary64: no underflow loses as much."""

MOST_COUNTED = 2**53
"""Every whole number up to here is a binary64."""

BLOCK_RECORDS = 2**10
"""Records whose terms are added in any order; the blocks' sums are added with compensation."""

_BITS = 64


@dataclass(frozen=True, slots=True)
class Rounding:
    """Public bounds on the size and on the rounding error of every row of a value.

    Args:
        magnitude: bound on the l2 norm of a computed row.
        error: bound on the l2 distance of a computed row from the exact one.
        derivation: the operations that these bounds follow from; `squared` is the error's square.
        whole: whether every number is known to be a whole one, exactly: discrete noise asks for it.
    """

    magnitude: Fraction
    error: Fraction
    derivation: Derivation
    whole: bool = False


def gamma(terms: int) -> Fraction:
    """Return γ_n = n u/(1 - n u) for n = `terms` < 2^53."""
    return terms * UNIT / (1 - terms * UNIT)


def exact(magnitude: Fraction) -> Rounding:
    """Return the bounds of a value that is what it stands for.

    Public numbers are; and so is what is priced as computed, as minimisers are.

    |f̂| <= M,  f̂ = f  ⊢  Round(f̂, M, 0)
    """
    return _concluded("float-exact", magnitude, Fraction(0), (), ())


def counted(most: int) -> Rounding:
    """Return the bounds of a row of counts of at most `most` records together.

    f_i whole,  Σ f_i <= n <= 2^53  ⊢  Round(f̂, n, 0), whole

    Sums of zeros and ones below 2^53 are exact in any order. Raises `InvalidParameter` above.
    """
    if most > MOST_COUNTED:
        raise InvalidParameter("n_max", most, "at most 2**53: doubles count no further")
    return replace(exact(Fraction(most)), whole=True)


@lru_cache(maxsize=256)
def summed(*, size: Fraction, depth: int, products: int) -> Rounding:
    """Return the bounds of sums of products of numbers that are given exactly.

    no number enters more than n operations    sizes add up to at most S    k products in a row
    ------------------------------------------------------------------------------------  float-sum
    Round(f̂, S + e, e),  e = γ_n S + k 2^-1074
    """
    error = gamma(depth) * size + products * TINY
    given = (("size", size), ("depth", Fraction(depth)), ("products", Fraction(products)))
    return _concluded("float-sum", size + error, error, given, ())


def sum_depth(count: int) -> int:
    """Return how many operations a term of a sum or mean over `count` records goes through.

    Its product, a division and the additions of its block; beside other blocks, 62 that cover the
    additions of blocks' sums: plain up to 32 of them, then compensated (Ogita, Rump, Oishi 2005,
    Proposition 4.5).
    """
    return count + 2 if count <= BLOCK_RECORDS else BLOCK_RECORDS + 64


def mean(bound: Fraction, count: int, width: int) -> Rounding:
    """Return the bounds of a mean of at most `count` terms of norm at most `bound`, as computed."""
    return summed(size=bound, depth=sum_depth(count), products=width)


def total(bound: Fraction, count: int, width: int) -> Rounding:
    """Return the bounds of a sum of at most `count` terms of norm at most `bound`, as computed."""
    return summed(size=count * bound, depth=sum_depth(count), products=count * width)


def shifted(value: Rounding, size: Fraction) -> Rounding:
    """Return the bounds of f + c, c public and exact with |c| <= `size`.

    Round(f̂, M, r)  ⊢  Round(fl(f̂ + c), (1 + u)(M + |c|), r + u(M + |c|))
    """
    most = value.magnitude + size
    given = (("size", size),)
    return _concluded("float-shift", (1 + UNIT) * most, value.error + UNIT * most, given, (value,))


def scaled(value: Rounding, factor: Fraction, *, width: int) -> Rounding:
    """Return the bounds of c·f, c a public double, for rows of `width` numbers.

    Round(f̂, M, r)    e = u |c| M + d 2^-1074, or 0 at c = ±1
    -----------------------------------------------------------  float-scale
    Round(fl(c f̂), |c| M + e, |c| r + e)
    """
    size = abs(factor)
    # a change of sign is exact
    slip = Fraction(0) if size == 1 else UNIT * size * value.magnitude + width * TINY
    given = (("factor", size), ("width", Fraction(width)))
    magnitude, error = size * value.magnitude + slip, size * value.error + slip
    return _concluded("float-scale", magnitude, error, given, (value,))


def joined(first: Rounding, second: Rounding) -> Rounding:
    """Return the bounds of f ± g.

    Round(f̂, M, r)    Round(ĝ, N, s)  ⊢  Round(fl(f̂ ± ĝ), (1 + u)(M + N), r + s + u(M + N))
    """
    most = first.magnitude + second.magnitude
    error = first.error + second.error + UNIT * most
    return _concluded("float-add", (1 + UNIT) * most, error, (), (first, second))


def paired(first: Rounding, second: Rounding) -> Rounding:
    """Return the bounds of rows (f, g).

    Round(f̂, M, r)    Round(ĝ, N, s)  ⊢  Round((f̂, ĝ), M + N, r + s)

    Whole numbers stay whole.
    """
    magnitude, error = first.magnitude + second.magnitude, first.error + second.error
    pair = _concluded("float-pair", magnitude, error, (), (first, second))
    return replace(pair, whole=first.whole and second.whole)


def widest(first: Rounding, second: Rounding) -> Rounding:
    """Return the bounds of the rows of f and, below them, those of g.

    Round(f̂, M, r)    Round(ĝ, N, s)  ⊢  Round(rows of both, max(M, N), max(r, s))
    """
    magnitude = max(first.magnitude, second.magnitude)
    return _concluded("float-rows", magnitude, max(first.error, second.error), (), (first, second))


def mapped(
    value: Rounding, *, operator_norm: Fraction, frobenius: Fraction, width: int, height: int
) -> Rounding:
    """Return the bounds of A·f, A public of shape (`height`, `width`).

    Round(f̂, M, r)    ‖A‖ <= a    ‖A‖_F <= F    e = γ_d F M + m d 2^-1074
    ---------------------------------------------------------------------  float-map
    Round(fl(A f̂), a M + e, a r + e)
    """
    slip = gamma(width) * frobenius * value.magnitude + height * width * TINY
    given = (
        ("operator_norm", operator_norm),
        ("frobenius", frobenius),
        ("width", Fraction(width)),
        ("height", Fraction(height)),
    )
    magnitude = operator_norm * value.magnitude + slip
    return _concluded("float-map", magnitude, operator_norm * value.error + slip, given, (value,))


def clipped(value: Rounding, radius: Fraction, *, width: int) -> Rounding:
    """Return the bounds of the projection of rows of `width` numbers on a ball.

    Round(f̂, M, r)    e = γ_(2d+16) min(M, C) + d 2^-1074
    -----------------------------------------------------  float-clip  (see `project_to_ball`)
    Round(clip_C(f̂), min(M, C) + e, r + e)
    """
    most = min(value.magnitude, radius)
    slip = gamma(2 * width + 16) * most + width * TINY
    given = (("radius", radius), ("width", Fraction(width)))
    return _concluded("float-clip", most + slip, value.error + slip, given, (value,))


def _concluded(
    rule: str,
    magnitude: Fraction,
    error: Fraction,
    given: tuple[tuple[str, Fraction], ...],
    premises: tuple[Rounding, ...],
) -> Rounding:
    most, slip = _up(magnitude), _up(error)
    node = Derivation(
        rule,
        slip**2,
        (*given, ("magnitude", most), ("error", slip)),
        tuple(premise.derivation for premise in premises),
    )
    return Rounding(most, slip, node)


def _up(value: Fraction) -> Fraction:
    """Return a dyadic of 64 bits that is not below `value` >= 0."""
    top, bottom = value.numerator, value.denominator
    if top.bit_length() <= _BITS and bottom & (bottom - 1) == 0:
        return value
    shift = _BITS - (top.bit_length() - bottom.bit_length())
    if shift >= 0:
        return Fraction(-((-top << shift) // bottom), 1 << shift)
    return Fraction(-(-top // (bottom << -shift)) << -shift)
