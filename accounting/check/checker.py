"""Checks a privacy certificate with nothing but Python; shares no code with what wrote it.

    python checker.py run.cert.json

A certificate lists the events of a run, and steps (nodes) that lead from them to (epsilon, delta).
The checker re-derives every sensitivity, recomputes every node in exact rational arithmetic or in
integer intervals with the error bounds proved in the comments, and hashes the events. Order:
size and syntax, mechanisms, events and their hash, nodes, assumptions and axioms.

Adjacency, mechanisms and notions are those of the project's written form of events, version 1.
`check` does no input or output. It raises `CertificateWrong` (the document proves nothing),
`CalledWrong` (the caller's mistake) or `Undecided` (beyond the checker's limits; not a verdict).
"""

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil, comb, floor, isqrt
from typing import Any, NamedTuple

FORMAT = "urn:dpledger:certificate:1"
"""The only form of documents that is read, with its version; another is refused."""

MAX_BYTES = 16 << 20
"""Bytes of a document: what is longer is refused before it is parsed."""

MAX_ITEMS = 500_000  # brackets and commas: bounds memory before anything is parsed
MAX_DEPTH = 64
"""Levels of a sensitivity's derivation: far below where Python's recursion ends."""

MAX_EVENTS = 1_000_000
"""Events of a run, each counted as often as it occurs: all are hashed one by one."""

MOST = 10**18
"""Whole numbers in JSON, such as counts; rationals are texts, and may be longer."""

MAX_WORK = 1 << 25
"""Units of work, of about 0.2 microseconds, for a short document: about seven seconds."""

WORK_A_BYTE = 480
"""Units of work a byte of the document more, so that long lists can be checked."""

MOST_WORK = 1 << 28
"""Units of work for any document: about a minute; reached at some 490,000 bytes."""

MAX_ORDER = 512
"""The largest whole Rényi order of a sampled step: the sums have about as many terms."""

MAX_EXPONENT = 1 << 13
"""The largest x of e^x that is computed: the result has some 11,800 bits."""

MAX_BITS = 1 << 12
"""Bits of precision beyond which a comparison is given up as `Undecided`."""


class CertificateWrong(ValueError):
    """The document is malformed or a step does not follow. Says nothing about the run itself."""


class CalledWrong(TypeError):
    """The checker was handed something that is no document."""


class Undecided(ArithmeticError):
    """The step may be right, but needs more precision or work than the checker allows."""


class Verdict(NamedTuple):
    """What a correct certificate proves, for the events whose hash is `subject`."""

    subject: str
    adjacency: str
    group: int
    notion: str
    values: tuple[Fraction, ...]
    assumptions: tuple[str, ...]
    axioms: tuple[str, ...]
    steps: int


Interval = tuple[int, int]  # (low, high): low / 2^p <= the number <= high / 2^p


# --- integer intervals: every function takes an exact number and a precision p -----------------


def sqrt_bounds(x: Fraction, p: int) -> Interval:
    """Enclose the root of x >= 0: isqrt(floor(y)) <= sqrt(y) < isqrt(floor(y)) + 1."""
    low = isqrt((x.numerator << 2 * p) // x.denominator)
    return low, low + 1


def exp_bounds(x: Fraction, p: int) -> Interval:
    """Enclose e^x."""
    if x < 0:
        if x < -p:
            return 0, 1  # e^x < e^-p < 2^-p
        low, high = exp_bounds(-x, p)  # >= 1, so an error of 2^-p stays one under 1/y
        return (1 << 2 * p) // high, -(-(1 << 2 * p) // low)
    if x > MAX_EXPONENT:
        raise Undecided(f"expected exponents up to {MAX_EXPONENT} instead got {_show(x)}")
    # e^x = (e^r)^(2^k) with r <= 2^-8; a relative error doubles at each squaring, and 2^(1.5 x)
    # covers the size of the result
    k = int(x).bit_length() + 8
    w = p + k + 3 * int(x) // 2 + 24
    r = ((x.numerator << w) // x.denominator) >> k
    total = term = 1 << w
    n = 0
    while term:
        n += 1
        term = (term * r >> w) // n
        total += term
    # Every term is too small by e_n <= e_(n-1)/256 + 1 + 1/n <= 3 units, the terms left out by at
    # most 3 (1 + 1/256 + ...) <= 4, and r, rounded down by < 1 unit, lowers e^r by <= 2.
    low, high = total, total + 3 * n + 6
    for _ in range(k):
        low, high = low * low >> w, (high * high >> w) + 1
    return low >> (w - p), (high >> (w - p)) + 1


def _atanh(numerator: int, denominator: int, w: int) -> Interval:
    """Enclose atanh(z) = z + z³/3 + z^5/5 + ..., for 0 <= z = numerator/denominator <= 1/3."""
    power = (numerator << w) // denominator
    square = (power * power) >> w
    total, n = 0, 0
    while power:
        total += power // (2 * n + 1)
        power = power * square >> w
        n += 1
    # powers are too small by e <= e/9 + 2/3·2 + 1 <= 3 units, each quotient by one more; the
    # powers left out are below 3 (1 + 1/9 + ...) <= 4
    return total, total + 4 * n + 4


@lru_cache(maxsize=64)
def _log_2(w: int) -> Interval:
    """Enclose ln 2 = 2 atanh(1/3), times 2^w."""
    low, high = _atanh(1, 3, w)
    return 2 * low, 2 * high


def log_bounds(x: Fraction, p: int) -> Interval:
    """Enclose ln x, x > 0: with x = m 2^e and 1 <= m < 2, ln x = 2 atanh((m-1)/(m+1)) + e ln 2."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** e:
        e -= 1
    m = x / Fraction(2) ** e
    w = p + abs(e).bit_length() + 16
    low, high = _atanh(m.numerator - m.denominator, m.numerator + m.denominator, w)
    twos = _log_2(w)
    low, high = 2 * low + e * twos[e < 0], 2 * high + e * twos[e >= 0]
    return low >> (w - p), (high >> (w - p)) + 1


@lru_cache(maxsize=64)
def root_two_pi(p: int) -> Interval:
    """Enclose √(2π), with Machin's π = 16 atan(1/5) - 4 atan(1/239)."""
    w = p + 32

    def atan(n: int) -> Interval:
        """Enclose atan(1/n) = 1/n - 1/(3n³) + 1/(5n⁵) - ..., n >= 5, times 2^w."""
        power = total = (1 << w) // n
        k = 0
        while power:
            power //= n * n
            k += 1
            total += (-1) ** k * (power // (2 * k + 1))
        # powers are too small by <= 1.05 units, quotients by <= 2.05, and the rest by <= 2
        return total - 3 * k - 4, total + 3 * k + 4

    five, other = atan(5), atan(239)
    low, high = 16 * five[0] - 4 * other[1], 16 * five[1] - 4 * other[0]
    return isqrt(2 * low << w) >> 32, (isqrt(2 * high << w) + 1 >> 32) + 1


def mills_bounds(s: Fraction, p: int) -> Interval:
    """Enclose Mills' ratio R(x) = e^(x²/2) ∫_x^∞ e^(-t²/2) dt at x = √s >= 0."""
    if s > 2 * (p + 32):
        # x R(x) = 1 - 1/s + 3/s² - 15/s³ + ...: alternating and enveloping, so that the error is
        # below the first term left out. Terms fall while 2n - 1 < s, and at n = s/2 they are below
        # √2 e^(-s/2) < 2^-w: hence the loop ends before they rise.
        w = p + 32
        term, total, n = 1 << w, 0, 0
        while term:
            total += (-1) ** n * term
            n += 1
            term = term * (2 * n - 1) * s.denominator // s.numerator
            if 2 * n - 1 > s:
                raise Undecided("expected the asymptotic series to reach its accuracy")
        # term n is too small by <= n units (ratios are <= 1), and so is what is left out
        slack = n * n + n + 1
        low_x, high_x = sqrt_bounds(s, w)
        low, high = ((total - slack) << w) // high_x, -(-((total + slack) << w) // low_x)
        return low >> 32, (high >> 32) + 1
    # R(x) = √(π/2) e^(s/2) - x (1 + s/3 + s²/15 + ...); both are below 2^(s + 2), hence w
    w = p + int(s) + 48
    low_s = (s.numerator << w) // s.denominator
    low_term = high_term = low_sum = high_sum = 1 << w
    n = 0
    while low_term or 2 * n + 1 < 2 * s:
        n += 1
        low_term = (low_term * low_s >> w) // (2 * n + 1)
        high_term = (high_term * (low_s + 1) >> w) // (2 * n + 1) + 1
        low_sum, high_sum = low_sum + low_term, high_sum + high_term
    # from here on each term is at most half of the one before, so the rest is below the last
    high_sum += high_term
    low_x, high_x = sqrt_bounds(s, w)
    root, power = root_two_pi(w), exp_bounds(s / 2, w)
    low = (root[0] * power[0] >> w + 1) - (high_x * high_sum >> w) - 1
    high = (root[1] * power[1] >> w + 1) + 1 - (low_x * low_sum >> w)
    return low >> (w - p), (high >> (w - p)) + 1


def tail_bounds(s: Fraction, t: Fraction, p: int) -> Interval:
    """Enclose e^(-t/2) R(√s) / √(2π); for t = s this is Φ(-√s)."""
    density, mills, root = exp_bounds(-t / 2, p + 4), mills_bounds(s, p + 4), root_two_pi(p + 4)
    low = max(density[0] * mills[0] // root[1], 0)
    return low >> 4, (-(-density[1] * mills[1] // root[0]) >> 4) + 1


def delta_bounds(mu_squared: Fraction, epsilon: Fraction, p: int) -> Interval:
    """Enclose the exact delta at epsilon of mu-GDP, Φ(-a) - e^ε Φ(-b), a, b = ε/μ ∓ μ/2.

    e^ε φ(b) = φ(a), so that with t = a² the two parts are tails at one density.
    """
    a, b = epsilon - mu_squared / 2, epsilon + mu_squared / 2
    t = a * a / mu_squared
    first, second = tail_bounds(t, t, p), tail_bounds(b * b / mu_squared, t, p)
    if a < 0:
        first = (1 << p) - first[1], (1 << p) - first[0]
    return first[0] - second[1], first[1] - second[0]


def require_at_most(
    what: str,
    enclose: Callable[[int], Interval],
    bound: Fraction,
    spend: Callable[[int], None],
    bits: int = 128,
) -> None:
    """Raise unless the enclosed number is at most `bound`; the precision grows until decided."""
    while bits <= MAX_BITS:
        spend(bits * bits)
        low, high = enclose(bits)
        scaled = bound.numerator << bits
        if high * bound.denominator <= scaled:
            return
        if low * bound.denominator > scaled:
            least = _show(Fraction(low, 1 << bits))
            raise CertificateWrong(f"expected {what} <= {_show(bound)} instead got >= {least}")
        bits *= 2
    raise Undecided(f"expected {what} to differ from {_show(bound)} within {MAX_BITS} bits")


# --- reading: sizes are bounded before anything is parsed or computed --------------------------

_RATIONAL = re.compile(r"(-?[0-9]{1,1500})(?:/([0-9]{1,1500}))?")
"""A fraction of whole numbers, each of up to 1,500 digits."""

_DYADIC = re.compile(r"(-?[0-9]{1,16})p(-?[0-9]{1,4})")
"""m·2^e, written "mpe": a binary64 in exact digits."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields, for `json.loads`; refuse one that names a field twice.

    `json` alone keeps the last of the two, so that two readers of one document could disagree.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(k for k, n in Counter(k for k, _ in pairs).items() if n > 1)
        raise CertificateWrong(f"expected each field once instead got {twice!r:.80} twice")
    return found


def _no_float(text: str) -> Any:
    """Refuse a number with a point, an exponent, NaN or Infinity: no float enters a proof."""
    raise CertificateWrong(f"expected exact numbers instead got {text:.80}")


def _whole(text: str) -> int:
    """Return a whole number of up to 10^18, for `json.loads`.

    The length is looked at first: `int` takes time that grows with the square of the digits.
    """
    if len(text) > 19 or int(text) > MOST:
        raise CertificateWrong(f"expected whole numbers of up to 10^18 instead got {text[:20]}")
    return int(text)


def _parse(document: bytes) -> Any:
    """Return a document's JSON, its size and number of items bounded before it is parsed.

    Raises `CalledWrong` if `document` is no bytes, `CertificateWrong` if it is too large, no JSON
    in UTF-8, nested too deeply, names a field twice, or holds a float.
    """
    if not isinstance(document, bytes):
        raise CalledWrong(f"expected the bytes of a document instead got {type(document).__name__}")
    if len(document) > MAX_BYTES:
        raise CertificateWrong(f"expected up to {MAX_BYTES} bytes instead got {len(document)}")
    if (items := sum(document.count(c) for c in (b"[", b"{", b","))) > MAX_ITEMS:
        raise CertificateWrong(f"expected up to {MAX_ITEMS} items instead got {items}")
    try:
        return json.loads(
            document.decode(),
            object_pairs_hook=_unique,
            parse_float=_no_float,
            parse_constant=_no_float,
            parse_int=_whole,
        )
    except RecursionError:
        raise CertificateWrong("expected shallow JSON instead got a deeply nested one") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CertificateWrong(f"expected JSON in UTF-8: {error}") from None


def read_fields(value: Any, *names: str) -> Iterator[Any]:
    """The values of exactly these fields, in this order."""
    if not isinstance(value, dict) or value.keys() != set(names):
        got = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise CertificateWrong(f"expected the fields {sorted(names)} instead got {got!r:.200}")
    return (value[name] for name in names)


def read_list(value: Any) -> list[Any]:
    """Return the value, which must be a list of any length; raise `CertificateWrong` if not."""
    if not isinstance(value, list):
        raise CertificateWrong(f"expected a list instead got {type(value).__name__}")
    return value


def read_pair(value: Any) -> list[Any]:
    """Return the value, which must be a list of two; raise `CertificateWrong` if not."""
    require_equal("length of a pair", len(read_list(value)), 2)
    return read_list(value)


def read_triple(value: Any) -> list[Any]:
    """Return the value, which must be a list of three; raise `CertificateWrong` if not."""
    require_equal("length of a triple", len(read_list(value)), 3)
    return read_list(value)


def read_text(value: Any) -> str:
    """Return the value, which must be a text; raise `CertificateWrong` if not."""
    if not isinstance(value, str):
        raise CertificateWrong(f"expected a text instead got {type(value).__name__}")
    return value


def read_count(value: Any, least: int = 1) -> int:
    """Return the value, which must be a whole number >= `least`; raise `CertificateWrong` if not.

    `type` and not `isinstance`: JSON's true is an `int` to Python.
    """
    if type(value) is not int or value < least:
        raise CertificateWrong(f"expected a whole number >= {least} instead got {value!r:.80}")
    return value


def read_rational(value: Any) -> Fraction:
    """Return the number of a text such as "-3/4" or "12", exactly; it need not be in lowest terms.

    Raises `CertificateWrong` for any other text, and for a denominator of zero.
    """
    found = _RATIONAL.fullmatch(read_text(value))
    if found is None or (found[2] and int(found[2]) == 0):
        raise CertificateWrong(f"expected a rational of up to 1500 digits, got {value!r:.80}")
    return Fraction(int(found[1]), int(found[2] or 1))


def read_dyadic(value: Any, most: Fraction | None = None) -> Fraction:
    """Return the number m·2^e >= 0 of a text "mpe", exactly, as every finite binary64 has one.

    Args:
        value: m is odd or the text is "0p0", so that a number has one spelling only; |e| <= 1100.
        most: the largest number allowed; any, if None.

    Raises `CertificateWrong` for any other text, and for numbers outside [0, most].
    """
    found = _DYADIC.fullmatch(read_text(value))
    if found is None or abs(int(found[2])) > 1100 or (int(found[1]) % 2 == 0 and value != "0p0"):
        raise CertificateWrong(f"expected a number such as '3p-2' instead got {value!r:.80}")
    number = int(found[1]) * Fraction(2) ** int(found[2])
    if number < 0 or (most is not None and number > most):
        raise CertificateWrong(f"expected a number in [0, {most or 'inf'}] instead got {value}")
    return number


def _show(value: object) -> str:
    """Short numbers exactly, long ones to 40 digits (they may be too long for `str`)."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_show, value))})"
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) >> 160:
        with localcontext(prec=40):
            return str(Decimal(value.numerator) / Decimal(value.denominator))
    return f"{value!s:.300}"


def require_least(what: str, stated: Fraction, least: Fraction) -> None:
    """Raise `CertificateWrong` if the stated bound is smaller than the least that follows."""
    if stated < least:
        raise CertificateWrong(f"expected {what} >= {_show(least)} instead got {_show(stated)}")


def require_equal(what: str, got: object, expected: object) -> None:
    """Raise `CertificateWrong`, naming both, unless what was got is what was expected."""
    if got != expected:
        raise CertificateWrong(f"expected {what} {_show(expected)} instead got {_show(got)}")


# --- sensitivities: each is derived again from its tree ----------------------------------------

_RECORD_RELATIONS = ("add-remove-one", "zero-out-one", "replace-one")
"""Neighbours differ in one record: there or not, null or not, or replaced."""

_RELATIONS = (*_RECORD_RELATIONS, "replace-feature-column")
"""Those, and vertical data: neighbours differ in one column of features."""

# they divide by a number of records
_MEANS = {"mean-of-bounded", "mean-of-nonnegative", "strongly-convex-argmin"}


class Sens(NamedTuple):
    """A bound on how far a quantity moves between neighbours, derived again from its tree.

    `norm`: "l1" or "l2"; `adjacency`: one of `_RELATIONS`; `squared`: the squared bound; `rules`:
    those on the way, but for parts that move by nothing; `reasons`: what users declared;
    `distance`: how far a lattice may move a coordinate of what is computed, None where nothing is
    said of computing.
    """

    norm: str
    adjacency: str
    squared: Fraction
    rules: frozenset[str]
    reasons: frozenset[str]
    distance: Fraction | None = None


# Every rule takes the relation, what it knows of its premises (squared bounds) and its parameters
# (all >= 0 but a factor), and returns the least squared bound that follows. A derivation may state
# a larger one: long fractions are rounded up.


def _declared(adjacency: str, value: Fraction) -> Fraction:
    """A bound typed in by hand.

    the user says: f moves by at most v
    -----------------------------------  declared
    Sens(f, v²)

    Source: an assumption, listed in every certificate.
    """
    return value**2


def _doubled(adjacency: str, *others: str) -> int:
    """2 where both records of a pair may count, 1 where one of them is null."""
    return 2 if adjacency in ("replace-one", *others) else 1


def _require_whole(what: str, number: Fraction) -> None:
    """Raise unless a number of records or coordinates is whole and at least one."""
    if number.denominator != 1 or number < 1:
        raise CertificateWrong(f"expected {what} >= 1, whole, instead got {_show(number)}")


def _require_fixed_size(adjacency: str) -> None:
    """Raise where neighbours may differ in their number of records."""
    if adjacency == "add-remove-one":
        raise CertificateWrong(f"expected equally many records instead got {adjacency}")


def _mean_of_bounded(adjacency: str, bound: Fraction, count: Fraction) -> Fraction:
    """A mean of vectors, one a record.

    |v_i| ≤ G for every record    n public (add/remove: n ≤ both sizes)
    --------------------------------------------------------------------  mean-of-bounded
    Sens(mean v, (2G/n)²)    zero-out: (G/n)²

    Source: the triangle inequality.
    Coq: mean_sensitivity_replace, mean_sensitivity_zero_out, mean_sensitivity_add_remove.
    """
    _require_whole("a count", count)
    return (_doubled(adjacency, "add-remove-one") * bound / count) ** 2


def _mean_of_nonnegative(adjacency: str, bound: Fraction, count: Fraction) -> Fraction:
    """A mean of vectors, one a record, no two of which point apart.

    |v_i| ≤ G    <v_i, v_j> ≥ 0 for all records    n public (add/remove: n ≤ both sizes)
    -------------------------------------------------------------  mean-of-nonnegative
    Sens(mean v, 2(G/n)²)    zero-out: (G/n)²

    Source: the square of a difference, expanded; add/remove: from the mean of the others.
    """
    _require_whole("a count", count)
    return _doubled(adjacency, "add-remove-one") * (bound / count) ** 2


def _sum_of_bounded(adjacency: str, bound: Fraction) -> Fraction:
    """A sum of vectors, one a record.

    |v_i| ≤ G for every record
    ------------------------------------------  sum-of-bounded
    Sens(sum v, G²)    replace-one: (2G)²

    Source: the triangle inequality.
    Coq: sum_sensitivity_replace, sum_sensitivity_zero_out, sum_sensitivity_add_remove.
    """
    return (_doubled(adjacency) * bound) ** 2


def _histogram(adjacency: str) -> Fraction:
    """How many records lie in each cell, in l2.

    every record lies in one cell, by itself
    -----------------------------------------  histogram
    Sens(counts, 2)    add/remove: 1

    Source: two counts move by one, under add/remove one.
    """
    return Fraction(_doubled(adjacency, "zero-out-one"))


def _histogram_l1(adjacency: str) -> Fraction:
    """How many records lie in each cell, in any norm up to l1.

    every record lies in one cell, by itself
    -----------------------------------------  histogram-l1
    Sens(counts, 2²)    add/remove: 1

    Source: two counts move by one, under add/remove one.
    """
    if adjacency not in _RECORD_RELATIONS:
        raise CertificateWrong(f"expected a relation between records instead got {adjacency}")
    return Fraction(_doubled(adjacency, "zero-out-one") ** 2)


def _strongly_convex_argmin(
    adjacency: str, lipschitz: Fraction, modulus: Fraction, tolerance: Fraction, count: Fraction
) -> Fraction:
    """A point where the gradient of a strongly convex mean of losses is small.

    losses convex, G-Lipschitz    objective m-strongly convex
    |gradient at output| ≤ τ    n public
    -------------------------------------------------------------  strongly-convex-argmin
    Sens(argmin, (2G/(mn) + 2τ/m)²)    zero-out: (G/(mn) + 2τ/m)²

    Source: Chaudhuri, Monteleoni, Sarwate 2011, Lemma 8; strong monotonicity for τ > 0.
    Coq: argmin_sensitivity_replace, argmin_sensitivity_zero_out,
    argmin_sensitivity_add_remove.
    """
    _require_whole("a count", count)
    if modulus == 0:
        raise CertificateWrong("expected modulus > 0 instead got 0")
    factor = _doubled(adjacency, "add-remove-one")
    return (factor * lipschitz / (modulus * count) + 2 * tolerance / modulus) ** 2


def _scaled(adjacency: str, squared: Fraction, factor: Fraction) -> Fraction:
    """A public multiple.

    Sens(f, Δ²)    c public
    ------------------------  scaled
    Sens(c·f, c²Δ²)

    Source: homogeneity of norms.
    Coq: sensitivity_scale.
    """
    return factor**2 * squared


def _sum(adjacency: str, first: Fraction, second: Fraction, u: Fraction, v: Fraction) -> Fraction:
    """A sum or a difference; witnesses keep it in rational numbers.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    u² ≥ Δ₁²    v² ≥ Δ₂²    u, v ≥ 0
    ----------------------------------------------------------------  sum
    Sens(f ± g, (u+v)²)

    Source: the triangle inequality.
    Coq: sensitivity_sum_witnesses.
    """
    require_least("u²", u**2, first)
    require_least("v²", v**2, second)
    return (u + v) ** 2


def _linear_map(adjacency: str, squared: Fraction, operator_norm: Fraction) -> Fraction:
    """A public linear map.

    Sens(f, Δ²)    ‖A‖ ≤ a    A public
    -----------------------------------  linear-map
    Sens(A·f, a²Δ²)

    Source: the definition of an operator norm.
    Coq: sensitivity_linear.
    """
    return operator_norm**2 * squared


def _clip(adjacency: str, squared: Fraction, radius: Fraction) -> Fraction:
    """The projection on a ball.

    Sens(f, Δ²)    l2 norm
    ---------------------------------  clip
    Sens(clip_C(f), min(Δ², (2C)²))

    Source: projections are 1-Lipschitz.
    Coq: sensitivity_clip.
    """
    return min(squared, (2 * radius) ** 2)


def _concatenation(adjacency: str, first: Fraction, second: Fraction) -> Fraction:
    """A pair of functions of the same records.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    l2 norm
    -----------------------------------------  concatenation
    Sens((f, g), Δ₁² + Δ₂²)

    Source: Pythagoras.
    Coq: sensitivity_concatenation.
    """
    return first + second


def _disjoint(adjacency: str, first: Fraction, second: Fraction) -> Fraction:
    """A pair of functions of disjoint records.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    no record enters both; record → part is public
    --------------------------------------------------------------------------------  disjoint
    Sens((f, g), max(Δ₁², Δ₂²))

    Source: a record enters one part only.
    """
    return max(first, second)


def _vertical_predictions(
    adjacency: str,
    row_bound: Fraction,
    slope_bound: Fraction,
    radius: Fraction,
    penalty: Fraction,
    modulus: Fraction,
    tolerance: Fraction,
    u: Fraction,
    v: Fraction,
) -> Fraction:
    """Predictions D x of an approximate minimiser x over |x| ≤ b that depends on the rows D too.

    x minimises <c, Dx> + (ρ/2)|Dx|² + R(x) to the tolerance τ    R m-strongly convex    c public
    |c_i| ≤ B and |D_i| ≤ G for every record    Q = G(B + ρGb)
    u² ≥ Q²/(ρm) + 4G²b²    v² ≥ τ²/(ρm)    u, v ≥ 0    replace-one or zero-out
    --------------------------------------------------------------------------  vertical-predictions
    Sens(D x, (u+v)²)    zero-out: (u/2 + v)²

    Source: optimality of both minimisers and convexity.
    """
    _require_fixed_size(adjacency)
    if penalty * modulus == 0:
        raise CertificateWrong("expected penalty and modulus > 0 instead got 0")
    pull = row_bound * (slope_bound + penalty * row_bound * radius)
    require_least("u²", u**2, pull**2 / (penalty * modulus) + (2 * row_bound * radius) ** 2)
    require_least("v²", v**2, tolerance**2 / (penalty * modulus))
    return (_doubled(adjacency) * u / 2 + v) ** 2


def _label_dual(
    adjacency: str, derivative_bound: Fraction, label_gap: Fraction, tolerance: Fraction
) -> Fraction:
    """The vector y with y_i = l'(z_i, label_i) and y_i + ρ z_i = a_i, a public.

    l convex in z    |l'| ≤ c    |l'(z, +1) - l'(z, -1)| ≤ g    y_i to within τ, of a_i and label_i
    replace-one or zero-out
    -----------------------------------------------------------------------------------  label-dual
    Sens(y, (g + 2τ)²)    zero-out: (c + 2τ)²

    Source: l' grows with z, so that y and z move against each other.
    """
    _require_fixed_size(adjacency)
    moved = label_gap if adjacency == "replace-one" else derivative_bound
    return (moved + 2 * tolerance) ** 2


def _lattice(
    adjacency: str,
    squared: Fraction,
    distance: Fraction,
    dimension: Fraction,
    u: Fraction,
    w: Fraction,
) -> Fraction:
    """A value rounded to a lattice, coordinate by coordinate; witnesses keep it rational.

    Sens(f, Δ²)    |f̂_i - f_i| ≤ h in d coordinates    u² ≥ Δ²    w² ≥ (2h)²d    u, w ≥ 0    l2 norm
    ---------------------------------------------------------------------------------------  lattice
    Sens(f̂, (u+w)²)

    Source: the triangle inequality.
    """
    _require_whole("a dimension", dimension)
    require_least("u²", u**2, squared)
    require_least("w²", w**2, (2 * distance) ** 2 * dimension)
    return (u + w) ** 2


def _lattice_l1(
    adjacency: str, squared: Fraction, distance: Fraction, dimension: Fraction, u: Fraction
) -> Fraction:
    """A value rounded to a lattice, coordinate by coordinate, in any norm up to l1.

    Sens(f, Δ²)    |f̂_i - f_i| ≤ h in d coordinates    u² ≥ Δ²    u ≥ 0
    ----------------------------------------------------------------------  lattice-l1
    Sens(f̂, (u + 2hd)²)

    Source: the triangle inequality.
    """
    _require_whole("a dimension", dimension)
    require_least("u²", u**2, squared)
    return (u + 2 * distance * dimension) ** 2


def _computed(
    adjacency: str, squared: Fraction, row: "Round", rows: Fraction, u: Fraction, w: Fraction
) -> Fraction:
    """What doubles hold in place of a function, row by row, by the same operations.

    Sens(f, Δ²)    Round(f̂_k, M, r) for each of P rows    u² ≥ Δ²    w² ≥ (2r)²P    u, w ≥ 0    l2
    -----------------------------------------------------------------------------------  computed
    Sens(f̂, (u+w)²)

    Source: the triangle inequality.
    Coq: sensitivity_rounding_witness.
    """
    _require_whole("a number of rows", rows)
    require_least("u²", u**2, squared)
    require_least("w²", w**2, (2 * row.error) ** 2 * rows)
    return (u + w) ** 2


def _computed_l1(
    adjacency: str, squared: Fraction, row: "Round", rows: Fraction, u: Fraction
) -> Fraction:
    """What doubles hold in place of a function, row by row, by the same operations, in l1.

    Sens(f, Δ²)    Round(f̂_k, M, r) for each of P rows    u² ≥ Δ²    u ≥ 0
    -----------------------------------------------------------------------  computed-l1
    Sens(f̂, (u + 2rP)²)

    Source: the triangle inequality.
    """
    _require_whole("a number of rows", rows)
    require_least("u²", u**2, squared)
    return (u + 2 * row.error * rows) ** 2


SENSITIVITIES: dict[str, tuple[Callable[..., Fraction], int, tuple[str, ...]]] = {
    # name: (function, number of premises, names of its parameters)
    "declared": (_declared, 0, ("value", "reason")),
    "mean-of-bounded": (_mean_of_bounded, 0, ("bound", "count")),
    "mean-of-nonnegative": (_mean_of_nonnegative, 0, ("bound", "count")),
    "sum-of-bounded": (_sum_of_bounded, 0, ("bound",)),
    "histogram": (_histogram, 0, ()),
    "histogram-l1": (_histogram_l1, 0, ()),
    "strongly-convex-argmin": (
        _strongly_convex_argmin,
        0,
        ("lipschitz", "modulus", "tolerance", "count"),
    ),
    "scaled": (_scaled, 1, ("factor",)),
    "sum": (_sum, 2, ("u", "v")),
    "linear-map": (_linear_map, 1, ("operator_norm",)),
    "clip": (_clip, 1, ("radius",)),
    "concatenation": (_concatenation, 2, ()),
    "disjoint": (_disjoint, 2, ()),
    "vertical-predictions": (
        _vertical_predictions,
        0,
        (
            *("row_bound", "slope_bound", "radius", "penalty", "modulus", "tolerance"),
            *("u", "v"),
        ),
    ),
    "label-dual": (_label_dual, 0, ("derivative_bound", "label_gap", "tolerance")),
    "lattice": (_lattice, 1, ("distance", "dimension", "u", "w")),
    "lattice-l1": (_lattice_l1, 1, ("distance", "dimension", "u")),
    "computed": (_computed, 2, ("rows", "u", "w")),
    "computed-l1": (_computed_l1, 2, ("rows", "u")),
}
_IN_L2 = ("lattice", "computed")
"""Rules of any relation that are proved for the Euclidean norm only."""

_COMPUTED, _LATTICES = ("computed", "computed-l1"), ("lattice", "lattice-l1")
"""Rules whose second premise is a derivation of rounding errors, and what such a value is put on.
"""

_OF_RECORDS_IN_L2 = _MEANS | {
    *("vertical-predictions", "label-dual", "sum-of-bounded", "clip", "concatenation"),
    "histogram",
}
"""Rules that are proved for one record and the Euclidean norm only."""


def read_sensitivity(value: Any) -> Sens:
    """Return a sensitivity after every step of its derivation has been recomputed.

    Raises `CertificateWrong` where a step does not follow, or the stated square is not the derived
    one.
    """
    norm, adjacency, squared, tree = read_fields(
        value, "norm", "adjacency", "squared", "derivation"
    )
    if norm not in ("l1", "l2") or adjacency not in _RELATIONS:
        raise CertificateWrong(f"expected a norm and a relation instead got {norm}, {adjacency}")
    rules: set[str] = set()
    reasons: set[str] = set()
    derived = _derive(tree, norm, adjacency, rules, reasons, 0)
    require_equal("squared sensitivity", read_rational(squared), derived)
    found = Sens(norm, adjacency, derived, frozenset(rules), frozenset(reasons))
    premises = tree["premises"]
    if not premises or premises[0]["rule"] not in _COMPUTED:
        return found
    given = _numbers(tree)
    row = read_rounding(premises[0]["premises"][1], 2)
    require_equal("dimension", given["dimension"], _numbers(premises[0])["rows"] * row.width)
    return found._replace(distance=given["distance"])


def _derive(
    node: Any,
    norm: str,
    adjacency: str,
    rules: set[str],
    reasons: set[str],
    depth: int,
    above: str = "",
) -> Fraction:
    """The squared bound that a derivation concludes; it may be rounded up at every step."""
    rule, squared, pairs, premises = read_fields(node, "rule", "squared", "parameters", "premises")
    if read_text(rule) not in SENSITIVITIES or depth > MAX_DEPTH:
        raise CertificateWrong(f"expected a sensitivity rule up to {MAX_DEPTH} deep, got {rule!r}")
    if rule in _OF_RECORDS_IN_L2 and (norm != "l2" or adjacency not in _RECORD_RELATIONS):
        raise CertificateWrong(
            f"{rule}: expected l2 and a record relation, got {norm}, {adjacency}"
        )
    if (rule in _IN_L2 and norm != "l2") or (rule == "computed-l1" and norm != "l1"):
        raise CertificateWrong(f"{rule}: expected another norm instead got {norm}")
    if rule in _COMPUTED and (depth != 1 or above not in _LATTICES):
        raise CertificateWrong(f"{rule}: expected it to be what a lattice is about and no more")
    function, arity, names = SENSITIVITIES[rule]
    given = [read_pair(pair) for pair in read_list(pairs)]
    require_equal(f"{rule} parameters", [name for name, _ in given], list(names))
    require_equal(f"{rule} premises", len(read_list(premises)), arity)
    meant = premises[:1] if rule in _COMPUTED else premises
    below: list[Any] = [_derive(p, norm, adjacency, rules, reasons, depth + 1, rule) for p in meant]
    if rule in _COMPUTED:
        below.append(read_rounding(premises[1], depth + 1))
        require_same_operations(premises[0], premises[1], norm)
    if rule == "declared":
        reasons.add(read_text(next(read_fields(given.pop()[1], "text"))))
    numbers = [read_rational(value) for _, value in given]
    if rule != "scaled" and any(x < 0 for x in numbers):
        raise CertificateWrong(
            f"{rule}: expected parameters >= 0 instead got {_show(tuple(numbers))}"
        )
    stated = read_rational(squared)
    require_least(f"{rule}: squared sensitivity", stated, function(adjacency, *below, *numbers))
    if stated:  # what moves nothing asks nothing of those above it
        rules.add(rule)
    return stated


# --- rounding: how far doubles may be from the numbers that they stand for -----------------------

_UNIT = Fraction(1, 1 << 53)
"""u: fl(x op y) = (x op y)(1 + e), |e| ≤ u, in the standard model of floating-point arithmetic."""

_TINY = Fraction(1, 1 << 1074)
"""More than a product loses by underflow, and than its error grows to in all later sums."""

_BLOCK = 1 << 10
"""Records whose terms are added in any order; the sums of blocks are added with compensation."""

_HALF_STEP = (Fraction(1, 2) + Fraction(1, 1 << 12)) / (1 << 50)
"""How far rounding to the lattice moves a coordinate at most, over the noise's scale."""

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


# Every rule takes the rows that it is computed from and its parameters, and returns the least
# bounds that follow. A derivation may state larger ones: long fractions are rounded up.


def _gamma(terms: Fraction) -> Fraction:
    """γ_n = n u/(1 - n u), for n < 2^53."""
    if terms >= 1 << 53:
        raise CertificateWrong(f"expected fewer than 2^53 operations instead got {_show(terms)}")
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
    """
    return Round(Fraction(0), Fraction(0), width)


def _float_count(most: Fraction, width: Fraction) -> Round:
    """Counts of records.

    f_i whole    Σ f_i ≤ n ≤ 2^53
    ------------------------------  float-count
    Round(f̂, n, 0)

    Source: whole numbers up to 2^53 are doubles, and so are their sums.
    """
    if most > 1 << 53:
        raise CertificateWrong(f"expected counts of up to 2^53 instead got {_show(most)}")
    return Round(most, Fraction(0), width)


def _float_grid(most: Fraction, step: Fraction, width: Fraction) -> Round:
    """Sums of numbers that are multiples of a public step, a power of two.

    f_i = k_i s, k_i whole    |f| ≤ M ≤ 2^53 s
    --------------------------------------------  float-grid
    Round(f̂, M, 0)

    Source: such numbers are doubles, and so are their sums.
    """
    if most > step * (1 << 53):
        raise CertificateWrong(f"expected up to 2^53 steps instead got {_show(most)}")
    return Round(most, Fraction(0), width)


def _float_mean(bound: Fraction, count: Fraction, width: Fraction) -> Round:
    """A mean of products of numbers and rows, one a record, added in blocks.

    |v_i| ≤ G    at most n records    e = γ_(n+2) G + 2 d 2^-1074    (n > 1024: γ_1088)
    -------------------------------------------------------------------------------  float-mean
    Round(fl(mean v), G + e, e)

    Source: Higham 2002, section 4.2; Ogita, Rump, Oishi 2005, Proposition 4.5 (compensated sums).
    """
    return _in_a_sum(bound, count, 2 * width, width)


def _float_total(bound: Fraction, count: Fraction, width: Fraction) -> Round:
    """A sum of products of numbers and rows, one a record, added in blocks.

    |v_i| ≤ G    at most n records    e = γ_(n+2) n G + n d 2^-1074    (n > 1024: γ_1088)
    --------------------------------------------------------------------------------  float-total
    Round(fl(Σ v), n G + e, e)

    Source: Higham 2002, section 4.2; Ogita, Rump, Oishi 2005, Proposition 4.5 (compensated sums).
    """
    return _in_a_sum(count * bound, count, count * width, width)


def _float_scores(bound: Fraction, terms: Fraction, width: Fraction) -> Round:
    """Scores of records at a point, each a sum of as many products as there are features.

    |a_i| |x| ≤ G for each of N records, d features    e = γ_(d+1) G ⌈√N⌉ + d N 2^-1074
    ------------------------------------------------------------------------------  float-scores
    Round(fl(<a_i, x>)_i, G ⌈√N⌉ + e, e)

    Source: Higham 2002, section 3.1.
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
    """
    most = row.magnitude + size
    return Round((1 + _UNIT) * most, row.error + _UNIT * most, row.width)


def _float_scale(row: Round, factor: Fraction) -> Round:
    """A public multiple.

    Round(f̂, M, r)    c public    e = u |c| M + d 2^-1074, or 0 at c = ±1
    ----------------------------------------------------------------------  float-scale
    Round(fl(c f̂), |c| M + e, |c| r + e)

    Source: Higham 2002, section 2.2; a change of sign is exact.
    """
    return row if factor == 1 else _float_product(row, factor, row.width)


def _float_product(row: Round, size: Fraction, width: Fraction) -> Round:
    """Products with public numbers: one for a row, one for each entry, or an outer product.

    Round(f̂, M, r)    |c| ≤ C    e = u C M + d 2^-1074
    ----------------------------------------------------  float-product
    Round(fl(c f̂), C M + e, C r + e)

    Source: Higham 2002, section 2.2.
    """
    if width % row.width:
        raise CertificateWrong(f"expected a multiple of {row.width} instead got {_show(width)}")
    slip = _UNIT * size * row.magnitude + width * _TINY
    return Round(size * row.magnitude + slip, size * row.error + slip, width)


def _float_add(first: Round, second: Round) -> Round:
    """A sum or a difference.

    Round(f̂, M, r)    Round(ĝ, N, s)
    -------------------------------------------------------  float-add
    Round(fl(f̂ ± ĝ), (1 + u)(M + N), r + s + u(M + N))

    Source: Higham 2002, section 2.2.
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
    """
    return Round(*(a + b for a, b in zip(first, second, strict=True)))


def _float_rows(first: Round, second: Round) -> Round:
    """Rows of several parties, one below the other: of each of them both bounds hold.

    Round(f̂, M, r)    Round(ĝ, N, s)
    ------------------------------------------  float-rows
    Round(rows of both, max(M, N), max(r, s))

    Source: bounds are of every row.
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
_WHOLE = ("count", "most", "terms", "width", "height")
"""Parameters of rounding that count something."""


def read_rounding(node: Any, depth: int) -> Round:
    """Return bounds on a computed row after every operation of its derivation has been followed.

    Raises `CertificateWrong` where a bound does not follow.
    """
    rule, squared, pairs, premises = read_fields(node, "rule", "squared", "parameters", "premises")
    if read_text(rule) not in ROUNDINGS or depth > MAX_DEPTH:
        raise CertificateWrong(f"expected a rule of rounding up to {MAX_DEPTH} deep, got {rule!r}")
    function, arity, names = ROUNDINGS[rule]
    given = [read_pair(pair) for pair in read_list(pairs)]
    named = [name for name, _ in given]
    require_equal(f"{rule} parameters", named, [*names, "magnitude", "error"])
    require_equal(f"{rule} premises", len(read_list(premises)), arity)
    *numbers, magnitude, error = (read_rational(value) for _, value in given)
    for name, number in zip(names, numbers, strict=True):
        if name in _WHOLE and (rule, name) != ("float-grid", "most"):
            _require_whole(name, number)
    if min(*numbers, magnitude, error) < 0:
        raise CertificateWrong(f"{rule}: expected parameters >= 0 instead got {_show(error)}")
    least = function(*(read_rounding(p, depth + 1) for p in premises), *numbers)
    require_least(f"{rule}: magnitude", magnitude, least.magnitude)
    require_least(f"{rule}: error", error, least.error)
    require_equal(f"{rule}: squared error", read_rational(squared), error**2)
    return Round(magnitude, error, least.width)


def _numbers(node: Any) -> dict[str, Fraction]:
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
                factor, size = abs(_numbers(a)["factor"]), next(iter(_numbers(x).values()))
                fits = factor == size or (factor < size and x["rule"] == "float-product")
                return fits and same(a["premises"][0], x["premises"][0])
            case ("linear-map", "float-map") | ("clip", "float-clip"):
                (here,), there = _numbers(a).values(), next(iter(_numbers(x).values()))
                return here <= there and same(a["premises"][0], x["premises"][0])
            case (
                ("sum", "float-add") | ("concatenation", "float-pair") | ("disjoint", "float-rows")
            ):
                return both(a, x)
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
                skipped = abs(_numbers(a)["factor"]) == 1 and same(above[0], x)
            case "sum" | "concatenation":  # with what is public
                moved = [p for p in above if read_rational(p["squared"])]
                skipped = len(moved) == 1 and same(moved[0], x)
            case _:
                skipped = False
        if skipped:
            return True
        larger = x["rule"] in ("float-shift", "float-add", "float-pair", "float-rows")
        if x["rule"] in ("float-scale", "float-product"):
            size = next(iter(_numbers(x).values()))
            larger = size == 1 or (size > 1 and x["rule"] == "float-product")
        return larger and any(same(a, p) for p in x["premises"])

    if not same(meant, rounded):
        raise CertificateWrong("expected the same operations in a sensitivity and its rounding")


def _is_of(meant: Any, rounded: Any) -> bool:
    """Whether nothing is left to compare: nothing moves, or a leaf's own rounding is bounded."""
    rule, leaf = meant["rule"], rounded["rule"]
    if rule == "declared" or not read_rational(meant["squared"]):
        return True
    stated, bounds = _numbers(meant), _numbers(rounded)
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
        case (_, "float-count" | "float-grid"):
            return _counts(meant)
        case ("strongly-convex-argmin" | "label-dual", "float-exact"):
            return True
        case _:
            return False


def _counts(meant: Any) -> bool:
    """Whether a sensitivity is one of counts, of sums of records' numbers, or their multiples."""
    if meant["rule"] in ("scaled", "linear-map"):
        return all(map(_counts, meant["premises"]))
    return meant["rule"] in ("histogram", "histogram-l1", "sum-of-bounded", "declared")


# --- what is said about privacy ------------------------------------------------------------------

_NOTIONS = {  # in every notion a larger last value is the weaker statement
    "gdp": ("mu_squared",),
    "zcdp": ("rho",),
    "rdp": ("order", "epsilon"),
    "approx-dp": ("delta", "epsilon"),
    "pure-dp": ("epsilon",),
}
_PURE = "Bun, Steinke 2016, Proposition 1.4 (pure DP is zCDP)"
_PURE_SUM = "Dwork, Roth 2014, Theorem 3.14 (composition of pure DP)"
_PURE_GROUP = "Dwork, Roth 2014, Theorem 2.2 (pure DP of groups)"
_GDP_SUM = "Dong, Roth, Su 2022, Corollary 3.3 (composition of GDP)"
_GDP_GROUP = "Dong, Roth, Su 2022, Theorem 2.14 (GDP of groups)"
_PAIRS = "Zhu, Dong, Wang 2022, Theorems 10 and 11 (dominating pairs)"
_PARALLEL = "McSherry 2009, Theorem 4 (parallel composition)"
AXIOMS = {  # (rule, notion): the published theorem, for what the Coq proofs do not cover
    ("gaussian-gdp", "gdp"): "Dong, Roth, Su 2022, Theorem 2.7 (Gaussian noise is GDP)",
    ("composition", "gdp"): _GDP_SUM,
    ("repeated", "gdp"): _GDP_SUM,
    ("group", "gdp"): _GDP_GROUP,
    ("replace-one", "gdp"): _GDP_GROUP,
    ("gdp-approx-dp", "approx-dp"): "Balle, Wang 2018, Theorem 8 (delta of GDP)",
    ("parties", "approx-dp"): _PARALLEL,
    ("events", "approx-dp"): _PARALLEL,
    ("laplace-pure", "pure-dp"): "Dwork, Roth 2014, Theorem 3.6 (Laplace noise)",
    ("discrete-laplace-pure", "pure-dp"): (
        "Ghosh, Roughgarden, Sundararajan 2012 (discrete Laplace noise)"
    ),
    ("poisson-pure", "pure-dp"): "Balle, Barthe, Gaboardi 2018, Theorem 8 (Poisson sampling)",
    ("fixed-batch-pure", "pure-dp"): (
        "Balle, Barthe, Gaboardi 2018, Theorem 9 (sampling a fixed batch)"
    ),
    ("composition", "pure-dp"): _PURE_SUM,
    ("repeated", "pure-dp"): _PURE_SUM,
    ("group", "pure-dp"): _PURE_GROUP,
    ("replace-one", "pure-dp"): _PURE_GROUP,
    ("parties", "pure-dp"): _PARALLEL,
    ("events", "pure-dp"): _PARALLEL,
    ("laplace-zcdp", "zcdp"): _PURE,
    ("discrete-laplace-zcdp", "zcdp"): _PURE,
    ("discrete-gaussian-zcdp", "zcdp"): (
        "Canonne, Kamath, Steinke 2020, Theorem 14 (discrete Gaussian)"
    ),
    ("poisson-rdp", "rdp"): "Mironov, Talwar, Zhang 2019, Theorems 4 and 5 (Poisson sampling)",
    ("fixed-batch-rdp", "rdp"): (
        "Wang, Balle, Kasiviswanathan 2019, Theorem 9 (sampling a fixed batch)"
    ),
    ("loss-distribution", "approx-dp"): _PAIRS,
    ("privacy-loss", "approx-dp"): _PAIRS,
    ("laplace-losses", "approx-dp"): _PAIRS,
}
_ALWAYS = (
    "the event list is complete and says what happened",
    "the noise is ideal, independent and drawn afresh for every release",
    "sensitivities, noise and sampling rates do not depend on the data",
)
"""What is about the machine that ran, and no document can prove: always assumed."""

_STOPPING = (
    "the number of events and the time of stopping do not depend on what was released, or all of "
    "the plan is in the list"
)
"""Without it a composed cost is of a list that was chosen by its own outcomes."""

_LISTED_LATER = {_STOPPING, _PARALLEL}
"""What older documents need not list: it held of them, and was not written down yet."""

_PARTIES = "every record belongs to one party, and who holds which record is public and fixed"
"""What parallel composition over parties rests on (McSherry 2009)."""

HIDDEN = "samples are drawn afresh, as stated, and stay hidden"
"""What amplification by sampling rests on: who sees the sample gains nothing from it."""


class Priv(NamedTuple):
    """What one record is exposed to, {mechanism: times} or None for the whole run, costs this."""

    exposure: dict[int, int] | None
    adjacency: str
    group: int
    notion: str
    values: tuple[Fraction, ...]

    def costing(self, *values: Fraction) -> "Priv":
        """Return the same statement at other numbers, in the order of `_NOTIONS`."""
        return self._replace(values=values)

    def agrees(self, other: "Priv") -> None:
        """Raise unless both speak of the same relation and the same notion at the same order."""
        require_equal("premises to agree on", other[1:4], self[1:4])
        require_equal("premises to agree on order or delta", other.values[:-1], self.values[:-1])


class Run:
    """The mechanisms and events that a certificate speaks of, and what its steps assumed."""

    def __init__(self, mechanisms: Any, events: Any, size: int = 0) -> None:
        """Read the mechanisms and events of a document; hash the events.

        Args:
            mechanisms: a list, each mechanism once; steps and events name them by their place in
                it.
            events: a list, in the order of the run.
            size: of the document, in bytes; longer ones may take more work.

        Raises `CertificateWrong` for repeated mechanisms and malformed events.
        """
        self.mechanisms = read_list(mechanisms)
        self._texts = [
            json.dumps(m, sort_keys=True, separators=(",", ":")) for m in self.mechanisms
        ]
        self._places = {text: i for i, text in enumerate(self._texts)}
        require_equal("number of distinct mechanisms", len(self._places), len(self._texts))
        self._sensitivities: dict[str, Sens] = {}
        self._met: set[int] = set()
        self._work, self._most_work = 0, min(MAX_WORK + WORK_A_BYTE * size, MOST_WORK)
        self.assumptions: set[str] = {*_ALWAYS, _STOPPING}
        self.axioms: set[str] = set()
        self.subject = self._read_events(read_list(events))

    def spend(self, work: int) -> None:
        """Count units of work of about 0.2 microseconds; raise `Undecided` beyond the allowance."""
        self._work += work
        if self._work > self._most_work:
            raise Undecided(f"gave up after {self._most_work} units of work")

    def _read_events(self, events: list[Any]) -> str:
        """Hash the event list as it was written, and note what each party is exposed to."""
        digest, total = hashlib.sha256(b"["), 0
        self.common: Counter[int] = Counter()
        self.own: dict[str, Counter[int]] = {}
        for event in events:
            audience, mechanism, parties, release, round_, times = read_fields(
                event, "audience", "mechanism", "parties", "release", "round", "times"
            )
            total += read_count(times)
            if total > MAX_EVENTS or read_count(mechanism, 0) >= len(self._texts):
                raise CertificateWrong(f"expected {MAX_EVENTS} events of listed mechanisms at most")
            if audience not in ("server", "neighbours", "public") or not read_text(release):
                raise CertificateWrong(f"expected a known audience and a release, got {audience}")
            names = [read_text(party) for party in read_list(parties)]
            self._met.add(mechanism)
            for party in set(names):
                self.own.setdefault(party, Counter())[mechanism] += times
            if not names:
                self.common[mechanism] += times
            written = (
                f'{{"audience":{json.dumps(audience)},"mechanism":{self._texts[mechanism]},'
                f'"parties":{json.dumps(names, separators=(",", ":"))},'
                f'"release":{json.dumps(release)},'
                f'"round":{read_count(round_, 0)},"schema":1}}'
            ).encode()
            self.spend(len(written) * times // 32)
            for k in range(times):
                digest.update(written if total == times and k == 0 else b"," + written)
        digest.update(b"]")
        if self.own:
            self.assumptions.add(_PARTIES)
        return digest.hexdigest()

    def place(self, mechanism: Any) -> int:
        """Return the number of a mechanism that is written out, which must be listed; it counts as
        used.
        """
        text = json.dumps(mechanism, sort_keys=True, separators=(",", ":"))
        self.spend(len(text) // 8)
        if text not in self._places:
            raise CertificateWrong(f"expected a listed mechanism instead got {text:.120}")
        self._met.add(self._places[text])
        return self._places[text]

    def at(self, place: Any) -> Any:
        """Return the mechanism of this number, which must be listed; it counts as used."""
        if read_count(place, 0) >= len(self.mechanisms):
            raise CertificateWrong(f"expected a listed mechanism instead got number {place}")
        self._met.add(place)
        return self.mechanisms[place]

    def require_all_met(self) -> None:
        """Refuse a mechanism that stands in no event, no step and no mechanism of these."""
        met = "\n".join(self._texts[place] for place in sorted(self._met))
        for place, text in enumerate(self._texts):
            if place not in self._met:
                self.spend(1 + len(met) // 32)
                if text not in met:
                    raise CertificateWrong(f"expected mechanisms that are used, not {text:.120}")

    def sensitivity(self, value: Any, norm: str) -> Sens:
        """Return a mechanism's sensitivity, checked once however often it occurs.

        What its declared parts rest on joins the run's assumptions. Raises `CertificateWrong` if it
        is not in this norm: l1 for Laplace noise, l2 for Gaussian noise.
        """
        text = json.dumps(value, sort_keys=True)
        self.spend(len(text) // 8)
        if text not in self._sensitivities:
            self._sensitivities[text] = read_sensitivity(value)
        found = self._sensitivities[text]
        require_equal("norm", found.norm, norm)
        self.assumptions |= {f"declared: {reason}" for reason in found.reasons}
        return found

    def views(self, split: bool = False) -> list[dict[int, int]]:
        """What a record of each party is exposed to, equal views once.

        `split`: of mechanisms that are made of parts by party, to its party's part alone.
        """
        common, of_party = self._split() if split else (self.common, self.own)
        self.spend(sum(map(len, of_party.values())) + len(of_party) + len(common))
        own = {frozenset(counts.items()) for counts in of_party.values()} or {frozenset()}
        self.spend(len(own) * (len(common) + 1))
        return [dict(common + Counter(dict(counts))) for counts in own]

    def _split(self) -> tuple[Counter[int], dict[str, Counter[int]]]:
        """Return what all records meet, and what those of each party meet besides.

        Mechanisms made of parts by party, repeated ones too, are taken apart: a record meets its
        own party's part as often as the whole was run.
        """
        common: Counter[int] = Counter()
        own = {name: Counter(counts) for name, counts in self.own.items()}
        for place, often in self.common.items():
            mechanism = self.mechanisms[place]
            while isinstance(mechanism, dict) and mechanism.get("kind") == "repeated":
                mechanism, n = read_kind(mechanism, "repeated", "event", "times")
                often *= read_count(n)
            if not isinstance(mechanism, dict) or mechanism.get("kind") != "parties":
                common[place] += self.common[place]
                continue
            self.assumptions.add(_PARTIES)
            for name, held in parts_by_party(mechanism):
                counts = own.setdefault(name, Counter())
                for part in held:
                    counts[self.place(part)] += often
        return common, own

    def noise(self, mechanism: Any, kind: str, scale: str, norm: str) -> tuple[Sens, Fraction]:
        """The sensitivity of a mechanism with noise, and (sensitivity / scale)²."""
        stated, width = read_kind(mechanism, kind, "sensitivity", scale)
        sens, squared = self.sensitivity(stated, norm), read_dyadic(width) ** 2
        if squared == 0 and sens.squared > 0:
            raise CertificateWrong(f"expected {scale} > 0 instead got 0: no finite cost")
        require_lattice(sens, read_dyadic(width))
        return sens, sens.squared / squared if sens.squared else Fraction(0)


def require_lattice(sens: Sens, scale: Fraction) -> None:
    """Raise if what is computed is on a finer lattice than that of noise of this scale."""
    if sens.distance is not None:
        require_least("distance of a lattice", sens.distance, _HALF_STEP * scale)


def read_kind(mechanism: Any, kind: str, *names: str) -> Iterator[Any]:
    """The fields of a mechanism, which must be of this kind."""
    found, *fields = read_fields(mechanism, "kind", *names)
    require_equal("kind", found, kind)
    return iter(fields)


def read_above(value: Any, least: int, strictly: bool = True) -> Fraction:
    """Return a rational above `least`, or at least that if not `strictly`; raise if it is not."""
    number = read_rational(value)
    if number < least or (strictly and number == least):
        raise CertificateWrong(f"expected a number above {least} instead got {_show(number)}")
    return number


def read_delta(value: Any) -> Fraction:
    """Return δ, a rational in (2^-2000, 1).

    The lower end bounds the precision at which a comparison with δ is decided.
    """
    number = read_above(value, 0)
    if number >= 1 or number.denominator.bit_length() - number.numerator.bit_length() > 2000:
        raise CertificateWrong(f"expected delta in (2^-2000, 1) instead got {_show(number)}")
    return number


# Every rule takes the run, its parameters (in the order of RULES) and its premises, and returns
# what follows from them.


def _noisy(run: Run, place: Any, kind: str, norm: str, notion: str) -> Priv:
    """One mechanism with noise: (Δ/scale)² in GDP, half of it in zCDP."""
    scale = "noise_std" if norm == "l2" else "scale"
    sens, ratio = run.noise(run.at(place), kind, scale, norm)
    cost = ratio if notion == "gdp" else ratio / 2
    return Priv({place: 1}, sens.adjacency, 1, notion, (cost,))


def _gaussian_gdp(run: Run, place: Any) -> Priv:
    """Normal noise.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ------------------------------------------------------------------------------  gaussian-gdp
    Priv(f + N(0, σ²), Gdp(Δ²/σ²))

    Source: Dong, Roth, Su 2022, Theorem 2.7.
    Coq: rounded_below_profile, vector_gaussian_below_profile.
    """
    return _noisy(run, place, "gaussian", "l2", "gdp")


def _gaussian_zcdp(run: Run, place: Any) -> Priv:
    """Normal noise.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ------------------------------------------------------------------------------  gaussian-zcdp
    Priv(f + N(0, σ²), Zcdp(Δ²/(2σ²)))

    Source: Bun, Steinke 2016, Lemma 2.5.
    Coq: gaussian_zcdp, vector_gaussian_zcdp.
    """
    return _noisy(run, place, "gaussian", "l2", "zcdp")


def _discrete_gaussian_zcdp(run: Run, place: Any) -> Priv:
    """Discrete normal noise on whole numbers.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ----------------------------------------------------------------  discrete-gaussian-zcdp
    Priv(f + N_Z(0, σ²), Zcdp(Δ²/(2σ²)))

    Source: Canonne, Kamath, Steinke 2020, Theorem 14.
    """
    return _noisy(run, place, "discrete-gaussian", "l2", "zcdp")


def _laplace_zcdp(run: Run, place: Any) -> Priv:
    """Laplace noise is (Δ/b)-DP, and pure DP is zCDP.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh
    -----------------------------------------------------------------------------  laplace-zcdp
    Priv(f + Lap(b), Zcdp(Δ²/(2b²)))

    Source: Bun, Steinke 2016, Proposition 1.4.
    """
    return _noisy(run, place, "laplace", "l1", "zcdp")


def _discrete_laplace_zcdp(run: Run, place: Any) -> Priv:
    """Discrete Laplace noise on whole numbers is (Δ/b)-DP, and pure DP is zCDP.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh
    ----------------------------------------------------------------  discrete-laplace-zcdp
    Priv(f + Lap_Z(b), Zcdp(Δ²/(2b²)))

    Source: Bun, Steinke 2016, Proposition 1.4.
    """
    return _noisy(run, place, "discrete-laplace", "l1", "zcdp")


def _whole_order(run: Run, order: Any) -> int:
    """Return a whole Rényi order in [2, 512], and pay for a sum of that many large terms."""
    if not 2 <= read_count(order) <= MAX_ORDER:
        raise CertificateWrong(f"expected an order in [2, {MAX_ORDER}] instead got {order}")
    run.spend(order**2)
    return int(order)


def _require_moment(
    run: Run, terms: list[tuple[int, Fraction]], over: int, log_bound: Fraction
) -> None:
    """Raise unless the sum of (c / over) e^x over all terms (c, x) is at most e^log_bound."""

    def enclose(p: int) -> Interval:
        low = high = 0
        for c, x in terms:
            run.spend(p + int(max(x - log_bound, Fraction(0))) ** 2 // 256)
            ends = exp_bounds(x - log_bound, p)
            low, high = low + c * ends[c < 0] // over, high - (-c * ends[c >= 0] // over)
        return low, high

    require_at_most("moment / e^((order - 1) epsilon)", enclose, Fraction(1), run.spend)


def require_poisson(run: Run, sens: Sens) -> None:
    """Raise unless a Poisson sample of this quantity amplifies."""
    if sens.adjacency not in ("add-remove-one", "zero-out-one"):
        raise CertificateWrong(f"expected add/remove or zero-out instead got {sens.adjacency}")
    if sens.adjacency == "add-remove-one" and sens.rules & _MEANS:
        raise CertificateWrong("expected a sum divided by public numbers, got a renormalised mean")
    run.assumptions.add(HIDDEN)


def poisson_rate(mechanism: Any) -> tuple[Any, Fraction]:
    """The event of a Poisson-sampled mechanism, and its rate."""
    event, rate = read_kind(mechanism, "poisson-sampled", "event", "rate")
    return event, read_dyadic(rate, Fraction(1))


def require_fixed_batch(run: Run, sens: Sens) -> None:
    """Raise unless a fixed batch amplifies under this relation."""
    require_equal("adjacency", sens.adjacency, "replace-one")
    run.assumptions.add(HIDDEN)


def fixed_batch_share(mechanism: Any) -> tuple[Any, Fraction]:
    """The event of a mechanism on a fixed batch, and the share of the records drawn."""
    names = ("event", "batch", "records")
    event, batch, records = read_kind(mechanism, "sampled-without-replacement", *names)
    if read_count(batch) > read_count(records):
        raise CertificateWrong(f"expected a batch of at most {records} records, got {batch}")
    return event, Fraction(batch, records)


def _poisson_rdp(run: Run, place: Any, order: Any, epsilon: Any) -> Priv:
    """A Gaussian step on a Poisson sample.

    Sens(f, Δ²)    add/remove or zero-out    sample hidden, drawn with rate q
    under add/remove f divides by public numbers only    α in 2, 3, ...
    Σ_k C(α,k) q^k (1-q)^(α-k) e^(k(k-1)Δ²/(2σ²)) ≤ e^((α-1)ε)
    ---------------------------------------------------------------------------  poisson-rdp
    Priv(PoissonSampled(f + N(0, σ²), q), Rdp(α, ε))

    The sum grows with q, which is rounded up to a multiple of 2^-128 if it has more digits.

    Source: Mironov, Talwar, Zhang 2019, Theorems 4 and 5, section 3.3.
    """
    event, q = poisson_rate(run.at(place))
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    require_poisson(run, sens)
    if q.denominator >> 128:
        q = Fraction(-int(-q * (1 << 128) // 1), 1 << 128)
    a, bound, n, d = _whole_order(run, order), read_above(epsilon, 0, False), *q.as_integer_ratio()
    run.spend(a * (8 + (a * d.bit_length()) ** 2 // (1 << 21)))
    terms = [
        (comb(a, k) * n**k * (d - n) ** (a - k), k * (k - 1) * ratio / 2) for k in range(a + 1)
    ]
    _require_moment(run, terms, d**a, (a - 1) * bound)
    return Priv({place: 1}, sens.adjacency, 1, "rdp", (Fraction(a), bound))


def _fixed_batch_rdp(run: Run, place: Any, order: Any, epsilon: Any) -> Priv:
    """A Gaussian step on a batch of fixed size; ε_j = jΔ²/(2σ²), γ = batch / records.

    Sens(f, Δ²)    replace-one    batch hidden, uniform    α in 2, 3, ...
    1 + γ²C(α,2) min(4(e^ε₂-1), 2e^ε₂) + Σ_(j≥3) 2γ^j C(α,j) e^((j-1)ε_j) ≤ e^((α-1)ε)
    --------------------------------------------------------------------------  fixed-batch-rdp
    Priv(SampledWithoutReplacement(f + N(0, σ²), batch, records), Rdp(α, ε))

    Source: Wang, Balle, Kasiviswanathan 2019, Theorem 9.
    """
    event, share = fixed_batch_share(run.at(place))
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    require_fixed_batch(run, sens)
    a, bound, n, d = (
        _whole_order(run, order),
        read_above(epsilon, 0, False),
        *share.as_integer_ratio(),
    )
    pairs = comb(a, 2) * n**2 * d ** (a - 2)
    # either bound holds; the first is smaller while e^ε₂ < 2
    small = ratio <= Fraction(9, 13)
    terms = [(d**a, Fraction(0))]
    terms += [(4 * pairs, ratio), (-4 * pairs, Fraction(0))] if small else [(2 * pairs, ratio)]
    terms += [
        (2 * comb(a, j) * n**j * d ** (a - j), j * (j - 1) * ratio / 2) for j in range(3, a + 1)
    ]
    _require_moment(run, terms, d**a, (a - 1) * bound)
    return Priv({place: 1}, sens.adjacency, 1, "rdp", (Fraction(a), bound))


def root_up(square: Fraction) -> Fraction:
    """A rational at or above the root: exact for squares, else within 2^-128 relatively."""
    n, d = square.numerator, square.denominator
    if isqrt(n) ** 2 == n and isqrt(d) ** 2 == d:
        return Fraction(isqrt(n), isqrt(d))
    shift = max(0, 128 - (n * d).bit_length() // 2)
    return Fraction(isqrt(n * d << 2 * shift) + 1, d << shift)


def _laplace_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """Laplace noise; ε is a witness.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh    ε² ≥ Δ²/b²
    -------------------------------------------------------------------------------  laplace-pure
    Priv(f + Lap(b), PureDp(ε))

    Source: Dwork, Roth 2014, Theorem 3.6.
    """
    sens, ratio = run.noise(run.at(place), "laplace", "scale", "l1")
    bound = read_above(epsilon, 0, False)
    require_least("epsilon²", bound**2, ratio)
    return Priv({place: 1}, sens.adjacency, 1, "pure-dp", (bound,))


def _discrete_laplace_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """Discrete Laplace noise on whole numbers, which move by whole numbers; ε is a witness.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh    ε ≥ floor(Δ)/b
    ----------------------------------------------------------------  discrete-laplace-pure
    Priv(f + Lap_Z(b), PureDp(ε))

    Source: Ghosh, Roughgarden, Sundararajan 2012: masses fall by e^(-1/b) a step.
    """
    mechanism = run.at(place)
    sens, ratio = run.noise(mechanism, "discrete-laplace", "scale", "l1")
    bound, whole = read_above(epsilon, 0, False), isqrt(int(sens.squared))
    if whole:
        require_least("epsilon²", bound**2, whole**2 * ratio / sens.squared)
    return Priv({place: 1}, sens.adjacency, 1, "pure-dp", (bound,))


def _pure_step(run: Run, place: Any, epsilon: Any) -> Priv:
    """A mechanism whose log-density moves by at most Δ/b, whatever it is; ε is a witness.

    Sens(log-density, (Δ/b)²)    b > 0 fixed before the data are seen    ε² ≥ Δ²/b²
    --------------------------------------------------------------------------------  pure-step
    Priv(m, PureDp(ε))

    Source: the definition of pure differential privacy.
    """
    sens, ratio = run.noise(run.at(place), "pure", "scale", "l1")
    bound = read_above(epsilon, 0, False)
    require_least("epsilon²", bound**2, ratio)
    return Priv({place: 1}, sens.adjacency, 1, "pure-dp", (bound,))


def randomised_truth(mechanism: Any) -> tuple[Fraction, int]:
    """The probability of the true answer, in (0, 1), and the number of answers."""
    truth, categories = read_kind(mechanism, "randomised-response", "truth", "categories")
    share = read_dyadic(truth, Fraction(1))
    if share in (0, 1):
        raise CertificateWrong("expected answers that exclude no other, got one that does")
    return share, read_count(categories, 2)


def _randomised_response_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """The true one of k answers with probability p, else any other of them; ε is a witness.

    0 < p < 1    r = p(k-1)/(1-p)    e^ε ≥ r    e^ε ≥ 1/r
    ------------------------------------------------------  randomised-response-pure
    Priv(RandomisedResponse(p, k), PureDp(ε)) under replace-one

    Source: Warner 1965: the ratio of the probabilities of an answer.
    """
    truth, categories = randomised_truth(run.at(place))
    odds, bound = truth * (categories - 1) / (1 - truth), read_above(epsilon, 0, False)
    _require_exponential("odds", [(max(odds, 1 / odds), Fraction(0))], bound, run.spend)
    return Priv({place: 1}, "replace-one", 1, "pure-dp", (bound,))


def _require_exponential(
    what: str, terms: list[tuple[Fraction, Fraction]], bound: Fraction, spend: Callable[[int], None]
) -> None:
    """Raise unless the sum of c e^x over all terms (c, x), c >= 0, is at most e^bound."""
    if all(x <= bound for c, x in terms if c) and sum(c for c, _ in terms) <= 1:
        return

    def enclose(p: int) -> Interval:
        ends = [(c, exp_bounds(x - bound, p)) for c, x in terms]
        return floor(sum(c * low for c, (low, _) in ends)), ceil(
            sum(c * high for c, (_, high) in ends)
        )

    spend(int(max([Fraction(0), *(x - bound for _, x in terms)])) ** 2 // 256)
    require_at_most(f"{what} / e^epsilon", enclose, Fraction(1), spend)


def _amplified(run: Run, place: int, sens: Sens, ratio: Fraction, q: Fraction, stated: Any) -> Priv:
    """Return pure DP of a Laplace step on a sample, ε the stated witness.

    Args:
        ratio: (sensitivity / scale)², so that its root is the ε of the step itself.
        q: the probability that a given record is in the sample.

    Source: Balle, Barthe, Gaboardi 2018, Theorems 8 and 9: ln(1 + q (e^ε₀ - 1)).
    """
    bound = read_above(stated, 0, False)
    terms = [(q, root_up(ratio)), (1 - q, Fraction(0))]
    _require_exponential("1 - q + q e^ε", terms, bound, run.spend)
    return Priv({place: 1}, sens.adjacency, 1, "pure-dp", (bound,))


def _poisson_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """A Laplace step on a Poisson sample; ε is a witness.

    Sens(f, Δ²)    l1 norm    add/remove or zero-out    sample hidden, drawn with rate q
    under add/remove f divides by public numbers only    e^ε ≥ 1 - q + q e^(Δ/b)
    ------------------------------------------------------------------------------  poisson-pure
    Priv(PoissonSampled(f + Lap(b), q), PureDp(ε))

    Source: Balle, Barthe, Gaboardi 2018, Theorem 8.
    """
    event, rate = poisson_rate(run.at(place))
    sens, ratio = run.noise(event, "laplace", "scale", "l1")
    require_poisson(run, sens)
    return _amplified(run, place, sens, ratio, rate, epsilon)


def _fixed_batch_pure(run: Run, place: Any, epsilon: Any) -> Priv:
    """A Laplace step on a batch of fixed size, γ = batch / records; ε is a witness.

    Sens(f, Δ²)    l1 norm    replace-one    batch hidden, uniform    e^ε ≥ 1 - γ + γ e^(Δ/b)
    -----------------------------------------------------------------------  fixed-batch-pure
    Priv(SampledWithoutReplacement(f + Lap(b), batch, records), PureDp(ε))

    Source: Balle, Barthe, Gaboardi 2018, Theorem 9.
    """
    event, share = fixed_batch_share(run.at(place))
    sens, ratio = run.noise(event, "laplace", "scale", "l1")
    require_fixed_batch(run, sens)
    return _amplified(run, place, sens, ratio, share, epsilon)


def _composition(run: Run, times: Any, *premises: Priv) -> Priv:
    """Costs add up, adaptively too; `times` says how often each premise is used.

    Priv(m₁, N(c₁))  ...  Priv(m_k, N(c_k))    noise fresh
    N in zCDP, GDP, pure DP, RDP at one order
    ------------------------------------------------------------------------------  composition
    Priv(n₁·m₁ + ... + n_k·m_k, N(n₁c₁ + ... + n_kc_k))

    Source: zCDP: Bun, Steinke 2016, Lemma 2.3; RDP: Mironov 2017, Proposition 1; GDP: Dong,
    Roth, Su 2022, Corollary 3.3; pure DP: Dwork, Roth 2014, Theorem 3.14.
    Coq: adaptive_composition, profile_step, gaussian_filter.
    """
    counts = [read_count(n) for n in read_list(times)]
    if not premises or len(counts) != len(premises):
        raise CertificateWrong(f"expected times for {len(premises)} >= 1 premises, got {counts}")
    first = premises[0]
    exposure: Counter[int] = Counter()
    total = Fraction(0)
    for premise, n in zip(premises, counts, strict=True):
        first.agrees(premise)
        if premise.exposure is None or premise.notion == "approx-dp":
            raise CertificateWrong(f"expected costs of mechanisms that add up, got {premise[1:]}")
        run.spend(len(premise.exposure) + total.denominator.bit_length() // 8)
        for place, often in premise.exposure.items():
            exposure[place] += n * often
        total += n * premise.values[-1]
        if total.denominator.bit_length() > 5000:
            raise CertificateWrong("expected a sum of up to 1500 digits; weaken its terms first")
    return first._replace(exposure=dict(exposure), values=(*first.values[:-1], total))


def _repeated(run: Run, place: Any, *premises: Priv) -> Priv:
    """A mechanism run n times.

    Priv(m, N(c))    N as in composition
    -------------------------------------  repeated
    Priv(Repeated(m, n), N(n·c))

    Source: composition of a mechanism with itself.
    Coq: adaptive_composition, profile_step, gaussian_filter.
    """
    event, times = read_kind(run.at(place), "repeated", "event", "times")
    require_equal("number of premises", len(premises), 1)
    require_equal("exposure", premises[0].exposure, {run.place(event): 1})
    return _composition(run, [times], *premises)._replace(exposure={place: 1})


def _largest(premises: tuple[Priv, ...]) -> tuple[Fraction, ...]:
    """Return the largest of several costs, which must speak of one relation, notion and order."""
    for premise in premises:
        premises[0].agrees(premise)
    return max(premise.values for premise in premises)


def parts_by_party(mechanism: Any) -> list[tuple[str, list[Any]]]:
    """The names of parties, each once, and the mechanisms that each runs."""
    (parts,) = read_kind(mechanism, "parties", "parts")
    found = [(read_text(name), read_list(held)) for name, held in map(read_pair, read_list(parts))]
    if len({name for name, _ in found}) < len(found):
        raise CertificateWrong("expected each party once")
    return found


def _parties(run: Run, place: Any, *premises: Priv) -> Priv:
    """Data holders with disjoint records; one premise for each party that releases anything.

    Priv(part of party 1, N(c₁))  ...  Priv(part of party k, N(c_k))    record → party is public
    ---------------------------------------------------------------------------------  parties
    Priv(Parties(...), N(max c_i))

    Source: a record meets its own party's part.
    Coq: parallel_composition, events_rdp, events_zcdp, events_gdp.
    """
    parts = parts_by_party(run.at(place))
    if not premises:
        raise CertificateWrong("expected premises, one a party")
    exposures = [dict(Counter(map(run.place, held))) for _, held in parts if held]
    require_equal("exposures", [premise.exposure for premise in premises], exposures)
    run.assumptions.add(_PARTIES)
    return premises[0]._replace(exposure={place: 1}, values=_largest(premises))


def _events(run: Run, *premises: Priv) -> Priv:
    """From the mechanisms that a record can meet to the run as a whole.

    for each party, Priv(events that name it or nobody, N(c_i))    record → party is public
    ----------------------------------------------------------------------------------------  events
    Priv(event list, N(max c_i))

    Mechanisms made of parts by party may count as one, or as the parts of the record's own party.

    Source: a record meets its own party's events.
    Coq: parallel_composition, events_rdp, events_zcdp, events_gdp.
    """
    run.spend(sum(len(premise.exposure or ()) for premise in premises))
    covered = {frozenset((premise.exposure or {}).items()) for premise in premises}
    views = {frozenset(view.items()) for view in run.views()}
    if views != covered:
        views = {frozenset(view.items()) for view in run.views(split=True)}
    if not premises or views != covered:
        raise CertificateWrong(
            f"expected premises for the {len(views)} things a record can be exposed to, "
            f"instead got {len(views & covered)} of them and {len(covered - views)} others"
        )
    return premises[0]._replace(exposure=None, values=_largest(premises))


def _weaken(run: Run, value: Any, premise: Priv) -> Priv:
    """A larger number says less; used to keep fractions short.

    Priv(m, N(c))    c' ≥ c
    -------------------------  weaken
    Priv(m, N(c'))

    Source: every notion is closed upwards.
    """
    number = read_rational(value)
    require_least("the weaker value", number, premise.values[-1])
    return premise.costing(*premise.values[:-1], number)


def _post_processing(run: Run, function: Any, premise: Priv) -> Priv:
    """What is computed from released messages alone; `function` says what, and is an assumption.

    Priv(m, N)    g reads the output of m and no data
    ---------------------------------------------------  post-processing
    Priv(m followed by g, N)

    Source: Dwork, Roth 2014, Proposition 2.1.
    Coq: post_processing, excess_post_processing.
    """
    run.assumptions.add(f"reads released messages only: {read_text(function)}")
    return premise


def _given(run: Run, statement: Any, premise: Priv) -> Priv:
    """What else the conclusion takes on trust, in the words of whoever states it.

    Priv(m, N)
    ------------------------  given
    Priv(m, N), if statement

    Source: weakening: an assumption more proves no more.
    """
    run.assumptions.add(f"taken for granted: {read_text(statement)}")
    return premise


def _enlarged(premise: Priv, size: int) -> Priv:
    """Return the same for groups of `size` records: k² times in GDP (μ²) and zCDP, k times in pure
    DP.

    Refuses Rényi and approximate DP, for which no such factor holds.
    """
    factors = {"gdp": size**2, "zcdp": size**2, "pure-dp": size}
    if premise.notion not in factors or premise.group != 1:
        raise CertificateWrong(f"expected GDP, zCDP or pure DP of one record, got {premise.notion}")
    return premise._replace(group=size, values=(premise.values[0] * factors[premise.notion],))


def _group(run: Run, size: Any, premise: Priv) -> Priv:
    """Data sets that differ in k records.

    Priv(m, N(c)) for one record    N in zCDP, GDP, pure DP
    -------------------------------------------------  group
    Priv(m, N(k²c)) for groups of k    pure DP: N(kc)

    Source: zCDP: Bun, Steinke 2016, Proposition 1.9; GDP: Dong, Roth, Su 2022, Theorem 2.14;
    pure DP: Dwork, Roth 2014, Theorem 2.2.
    Coq: group_privacy, gdp_group.
    """
    return _enlarged(premise, read_count(size))


def _replace_one(run: Run, premise: Priv) -> Priv:
    """Replacing a record is removing (or zeroing) one and adding another.

    Priv(m, N(c)) under add/remove or zero-out    N in zCDP, GDP, pure DP
    ------------------------------------------------------------------------  replace-one
    Priv(m, N(4c)) under replace-one    pure DP: N(2c)

    Source: a group of two: remove one record, add another.
    Coq: group_privacy, gdp_group.
    """
    if premise.adjacency not in ("add-remove-one", "zero-out-one"):
        raise CertificateWrong(f"expected add/remove or zero-out instead got {premise.adjacency}")
    return _enlarged(premise, 2)._replace(adjacency="replace-one", group=1)


def _zcdp_rdp(run: Run, order: Any, premise: Priv) -> Priv:
    """zCDP read at one order.

    Priv(m, Zcdp(ρ))    α > 1
    ---------------------------  zcdp-rdp
    Priv(m, Rdp(α, αρ))

    Source: Bun, Steinke 2016, Definition 1.1.
    """
    require_equal("notion", premise.notion, "zcdp")
    alpha = read_above(order, 1)
    return premise._replace(notion="rdp", values=(alpha, alpha * premise.values[0]))


def _pure_approx(run: Run, delta: Any, premise: Priv) -> Priv:
    """Pure DP at any δ.

    Priv(m, PureDp(ε))    0 < δ < 1
    ---------------------------------  pure-approx-dp
    Priv(m, ApproxDp(ε, δ))

    Source: the definition; a larger δ says less.
    """
    require_equal("notion", premise.notion, "pure-dp")
    return premise._replace(notion="approx-dp", values=(read_delta(delta), *premise.values))


def _rdp_approx(run: Run, delta: Any, epsilon: Any, premise: Priv) -> Priv:
    """Rényi DP at one order to (ε, δ); ε is a witness.

    Priv(m, Rdp(α, τ))    (α-1)(ε-τ) ≥ ln(1/δ) + (α-1) ln(1-1/α) - ln α    ε ≥ 0
    ------------------------------------------------------------------------------  rdp-approx-dp
    Priv(m, ApproxDp(ε, δ))

    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    Coq: rdp_to_dp.
    """
    require_equal("notion", premise.notion, "rdp")
    (alpha, rdp), d, e = premise.values, read_delta(delta), read_above(epsilon, 0, False)

    def enclose(p: int) -> Interval:
        first, last = log_bounds(1 / d, p), log_bounds(alpha, p)
        middle = [n * (alpha - 1) for n in log_bounds(1 - 1 / alpha, p)]
        return first[0] + floor(middle[0]) - last[1], first[1] + ceil(middle[1]) - last[0]

    require_at_most("ln(1/δ) + (α-1) ln(1-1/α) - ln α", enclose, (alpha - 1) * (e - rdp), run.spend)
    return premise._replace(notion="approx-dp", values=(d, e))


def _gdp_approx(run: Run, delta: Any, epsilon: Any, premise: Priv) -> Priv:
    """GDP to (ε, δ) without loss; ε is a witness.

    Priv(m, Gdp(μ²))    Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2) ≤ δ    ε ≥ 0
    --------------------------------------------------------------------  gdp-approx-dp
    Priv(m, ApproxDp(ε, δ))

    Source: Balle, Wang 2018, Theorem 8.
    Coq: profile_dp.
    """
    require_equal("notion", premise.notion, "gdp")
    d, e, (mu_squared,) = read_delta(delta), read_above(epsilon, 0, False), premise.values
    if mu_squared > 0:
        bits = 64 + d.denominator.bit_length() - d.numerator.bit_length()
        enclose = partial(delta_bounds, mu_squared, e)
        require_at_most("delta at epsilon", enclose, d, run.spend, max(bits, 128))
    return premise._replace(notion="approx-dp", values=(d, e))


Rules = dict[str, tuple[Callable[..., Priv], tuple[str, ...], int]]
"""A rule's function, the names of its parameters, and its number of premises, -1 for any."""

RULES: Rules = {
    # name: (function, names of its parameters, number of premises or -1 for any)
    "gaussian-gdp": (_gaussian_gdp, ("mechanism",), 0),
    "gaussian-zcdp": (_gaussian_zcdp, ("mechanism",), 0),
    "discrete-gaussian-zcdp": (_discrete_gaussian_zcdp, ("mechanism",), 0),
    "laplace-zcdp": (_laplace_zcdp, ("mechanism",), 0),
    "discrete-laplace-zcdp": (_discrete_laplace_zcdp, ("mechanism",), 0),
    "laplace-pure": (_laplace_pure, ("mechanism", "epsilon"), 0),
    "pure-step": (_pure_step, ("mechanism", "epsilon"), 0),
    "discrete-laplace-pure": (_discrete_laplace_pure, ("mechanism", "epsilon"), 0),
    "randomised-response-pure": (_randomised_response_pure, ("mechanism", "epsilon"), 0),
    "poisson-pure": (_poisson_pure, ("mechanism", "epsilon"), 0),
    "fixed-batch-pure": (_fixed_batch_pure, ("mechanism", "epsilon"), 0),
    "poisson-rdp": (_poisson_rdp, ("mechanism", "order", "epsilon"), 0),
    "fixed-batch-rdp": (_fixed_batch_rdp, ("mechanism", "order", "epsilon"), 0),
    "composition": (_composition, ("times",), -1),
    "repeated": (_repeated, ("mechanism",), 1),
    "parties": (_parties, ("mechanism",), -1),
    "events": (_events, (), -1),
    "weaken": (_weaken, ("value",), 1),
    "post-processing": (_post_processing, ("function",), 1),
    "given": (_given, ("statement",), 1),
    "group": (_group, ("size",), 1),
    "replace-one": (_replace_one, (), 1),
    "zcdp-rdp": (_zcdp_rdp, ("order",), 1),
    "pure-approx-dp": (_pure_approx, ("delta",), 1),
    "rdp-approx-dp": (_rdp_approx, ("delta", "epsilon"), 1),
    "gdp-approx-dp": (_gdp_approx, ("delta", "epsilon"), 1),
}


def _step(run: Run, node: Any, earlier: list[Priv], rules: Rules = RULES) -> Priv:
    """Return what a node concludes, after its rule has found the same from its premises.

    A node may use nodes before it only, so that no proof runs in a circle. The conclusion stated
    must equal what the rule returns, number for number. The theorem that the rule rests on is
    noted.
    """
    rule, parameters, premises, conclusion = read_fields(
        node, "rule", "parameters", "premises", "conclusion"
    )
    if read_text(rule) in ("loss-distribution", "privacy-loss", "laplace-losses") and (
        rule not in rules
    ):
        raise Undecided("loss distributions are recomputed by pld_checker.py")
    if rule not in rules:
        raise CertificateWrong(f"expected one of {sorted(rules)} instead got {rule!r:.80}")
    function, names, arity = rules[rule]
    places = [read_count(place, 0) for place in read_list(premises)]
    if any(place >= len(earlier) for place in places) or arity not in (-1, len(places)):
        raise CertificateWrong(f"expected {arity} premises among earlier nodes, got {places}")
    found = function(run, *read_fields(parameters, *names), *(earlier[place] for place in places))
    if (rule, found.notion) in AXIOMS:
        run.axioms.add(AXIOMS[rule, found.notion])
    labels = _NOTIONS[found.notion]
    adjacency, group, notion, *values = read_fields(
        conclusion, "adjacency", "group", "notion", *labels
    )
    stated = (adjacency, read_count(group), notion)
    require_equal("conclusion", stated, (found.adjacency, found.group, found.notion))
    require_equal(f"conclusion {labels}", tuple(read_rational(v) for v in values), found.values)
    return found


def check(document: bytes, more: Rules | None = None) -> Verdict:
    """Return what a certificate proves, by the rules above and `more` (those of pld_checker).

    Raises `CertificateWrong`, naming the node and the two things that differ; `CalledWrong` if
    `document` is no bytes; `Undecided` if checking needs more than the limits above.
    """
    try:
        return _check(document, RULES | (more or {}))
    except RecursionError:
        raise CertificateWrong("expected shallow JSON instead got a deeply nested one") from None
    except (CertificateWrong, CalledWrong, Undecided):
        raise
    except Exception as error:
        # a stranger's document is never to end in a traceback, which reads as neither verdict
        what = f"{type(error).__name__}: {error!s:.80}"
        raise Undecided(f"expected a document that can be followed instead got {what}") from error


def _listed(what: str, got: Any, found: set[str]) -> tuple[str, ...]:
    """What is to be listed; older documents may leave out what was not listed in their time."""
    if got != sorted(found - _LISTED_LATER):
        require_equal(what, got, sorted(found))
    return tuple(sorted(found))


def _check(document: bytes, rules: Rules) -> Verdict:
    """Return what a document proves; `check` turns what goes wrong here into its three errors.

    The last node must speak of all events; every mechanism must be used; the assumptions and axioms
    listed must be those that the steps needed, so that a reader sees all of them.
    """
    form, subject, mechanisms, events, nodes, assumptions, axioms = read_fields(
        _parse(document),
        *("format", "subject", "mechanisms", "events", "nodes", "assumptions", "axioms"),
    )
    require_equal("format", form, FORMAT)
    run = Run(mechanisms, events, len(document))
    require_equal("subject", subject, run.subject)
    proved: list[Priv] = []
    for i, node in enumerate(read_list(nodes)):
        try:
            proved.append(_step(run, node, proved, rules))
        except (CertificateWrong, Undecided) as error:
            rule = node.get("rule") if isinstance(node, dict) else None
            raise type(error)(f"node {i} ({rule!s:.40}): {error}") from None
    if not proved or proved[-1].exposure is not None:
        raise CertificateWrong("expected the last node to speak of all events instead got a part")
    run.require_all_met()
    expected = _listed("assumptions", assumptions, run.assumptions)
    published = _listed("axioms", axioms, run.axioms)
    last = proved[-1]
    return Verdict(
        subject=run.subject,
        adjacency=last.adjacency,
        group=last.group,
        notion=last.notion,
        values=last.values,
        assumptions=expected,
        axioms=published,
        steps=len(proved),
    )


def report(verdict: Verdict) -> str:
    """Return the verdict as lines of text."""
    labels = _NOTIONS[verdict.notion]
    with localcontext(prec=17, rounding=ROUND_CEILING):
        values = [Decimal(v.numerator) / Decimal(v.denominator) for v in verdict.values]
    numbers = ", ".join(f"{k} <= {v}" for k, v in zip(labels, values, strict=True))
    unit = verdict.adjacency + (f", groups of {verdict.group}" if verdict.group > 1 else "")
    lines = [f"{verdict.notion} ({unit}): {numbers}", f"subject {verdict.subject}"]
    # a reason is a stranger's words: escaped, so that it cannot pass for a line of the verdict
    lines += [f"assumes: {ascii(text)[1:-1]}" for text in verdict.assumptions]
    lines += [f"axiom: {text}" for text in verdict.axioms]
    return "\n".join([*lines, f"{verdict.steps} steps checked"])


def main(arguments: list[str], more: Rules | None = None) -> int:
    """Check one file; 0: proved, 1: the certificate is wrong, 2: misuse, 3: not decided."""
    if len(arguments) != 1:
        print("usage: checker.py CERTIFICATE", file=sys.stderr)
        return 2
    try:
        with open(arguments[0], "rb") as file:
            print(report(check(file.read(MAX_BYTES + 1), more)))
    except (OSError, CalledWrong) as error:
        print(f"cannot check: {error}", file=sys.stderr)
        return 2
    except CertificateWrong as error:
        print(f"wrong: {error}", file=sys.stderr)
        return 1
    except Undecided as error:
        print(f"undecided: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
