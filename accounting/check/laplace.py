"""Laplace noise alone: its composition in closed form, without a lattice."""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import ceil, comb
from typing import Any

from .dominating import unrepeated
from .intervals import exp_bounds, require_at_most
from .leaves import root_up
from .losses import Interval
from .one_step import MAX_LOSS
from .reading import (
    CertificateWrong,
    Undecided,
    read_above,
    read_count,
    read_delta,
    read_list,
    read_pair,
)
from .statements import Priv, Run

MAX_SHIFTS = 1 << 12
"""Laplace steps composed without a lattice: the polynomials have as many coefficients."""

MAX_SCALES = 64
"""Different shifts of those: choices of signs multiply, one recursion a shift."""

Knot = tuple[Fraction, int, int]
"""A sum of signed shifts, how many of its signs are +, and in how many ways it arises."""


def _knots(shifts: list[tuple[Fraction, int]], least: Fraction) -> Iterator[Knot]:
    """The sums t = Σ ±e > `least`, how many signs are +, and in how many ways they are chosen."""
    reach = [Fraction(0)]
    for e, n in reversed(shifts):
        reach.append(reach[-1] + e * n)

    def of_first(left: int, least: Fraction) -> Iterator[Knot]:
        """Yield those of the first `left` shifts that a choice of the others can still lift above
        `least`.
        """
        if reach[left] <= least:
            return
        if left == 0:
            yield Fraction(0), 0, 1
            return
        e, n = shifts[-left]
        for k in range(n + 1):
            moved = (2 * k - n) * e
            for t, plus, ways in of_first(left - 1, least - moved):
                yield t + moved, plus + k, ways * comb(n, k)

    return of_first(len(shifts), least)


def laplace_delta(
    shifts: list[tuple[Fraction, int]], epsilon: Fraction, spend: Callable[[int], None], p: int
) -> Interval:
    """Enclose 2^p δ(ε) of Laplace noise of scale 1 shifted by e, n times, for all pairs (e, n).

    One shift has P = e^(v/2) M and Q = e^(-v/2) M of the loss v, with the measure

        2 e^(e/2) M = (one at e) + (one at -e) + dv/2 on (-e, e),

    so that δ(ε) of N shifts of sum S is 2 e^(ε/2) times the integral of sinh((v - ε)/2) over v > ε
    by the convolution of their M. Let I integrate from below: then dv/2 is 1/2 I applied to the
    difference of the two points, I^m of a point at ε is y^(m-1)/(m-1)! at y above ε, and sinh is
    (I²/2) / (1 - I²/4). A choice of signs with k of them + and the sum t > ε leaves

        (1 + I/2)^k (1 - I/2)^(N-k) (I²/2) / (1 - I²/4) = Σ_j c_j h^(j+1) / (j+1)!    h = (t - ε)/2

    with the coefficients c_j of (1 + z)^(k-1) (1 - z)^(N-k-1); and δ(ε) is 2^(1-N) e^((ε - S)/2)
    times the sum over all choices. For k = N the c_j are 2^(N-1) from j = N - 1 on: e^h.
    """
    number = sum(n for _, n in shifts)
    total = sum((e * n for e, n in shifts), Fraction(0))
    if epsilon >= total:
        return 0, 0
    if total > 2 * MAX_LOSS:
        raise Undecided(f"expected shifts of at most {2 * MAX_LOSS} together, got {total}")
    w = p + 4 + 2 * int(total)
    low = high = 0
    for t, k, ways in _knots(shifts, epsilon):
        h = (t - epsilon) / 2
        limbs = 1 + max(h.numerator, h.denominator).bit_length() // 64
        spend(32 * len(shifts) + number * (8 + limbs * (w + number) // 64))
        whole = 1 << number - 1 if k == number else 0
        series = _horner(_coefficients(k - 1, number - k - 1, number - 1), whole, h, w)
        grown = exp_bounds(h, w) if whole else (0, 0)
        low += ways * (series + whole * (grown[0] - (1 << w)))
        # each of Horner's steps rounds down by at most one: together by less than e^h
        high += ways * (series + 3 ** (int(h) + 1) + whole * (grown[1] - (1 << w)))
    shrink = exp_bounds((epsilon - total) / 2, w)
    scale = 2 * w - p + number - 1
    return max(low, 0) * shrink[0] >> scale, (high * shrink[1] >> scale) + 1


def _short_up(x: Fraction) -> Fraction:
    """A dyadic rational of about 160 bits at or above x.

    Long fractions would slow down every power of h; a larger shift dominates, so that δ only grows.
    """
    scale = Fraction(2) ** (160 + x.denominator.bit_length() - x.numerator.bit_length())
    return ceil(x * scale) / scale


def _coefficients(a: int, b: int, length: int) -> list[int]:
    """Of (1 + z)^a (1 - z)^b, f = Σ c_j z^j: from (1 - z²) f' = ((a - b) - (a + b) z) f."""
    before, now, found = 0, 1, []
    for j in range(length):
        found.append(now)
        before, now = now, ((a - b) * now - (a + b - j + 1) * before) // (j + 1)
    return found


def _horner(coefficients: list[int], whole: int, h: Fraction, w: int) -> int:
    """Σ (c_j - whole) h^(j+1) / (j+1)!, times 2^w, rounded down by less than e^h."""
    n, d, total = h.numerator, h.denominator, 0
    for j in range(len(coefficients), 0, -1):
        total = ((coefficients[j - 1] - whole << w) + total) * n // (d * j)
    return total


def laplace_losses(run: Run, parts: Any, group: Any, delta: Any, epsilon: Any) -> Priv:
    """Laplace noise alone, without a lattice; `parts` are pairs of a mechanism and how often.

    Sens(f_i, Δ_i²)    l1 norm    b_i > 0 fixed before the data are seen    noise fresh    ε ≥ 0
    E[(1 - e^(ε - L))⁺] ≤ δ for the sum L of the losses of Lap(1) shifted by kΔ_i/b_i, n_i times
    --------------------------------------------------------------------------  laplace-losses
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ)) for groups of k

    Source: Zhu, Dong, Wang 2022, Theorem 10.
    Check: laplace_filter, laplace_delta_sound.
    """
    size, exposure, shifts = read_count(group), Counter[int](), Counter[Fraction]()
    relations: set[str] = set()
    for part in read_list(parts):
        place, often = read_pair(part)
        mechanism, times = unrepeated(run, place)
        sens, ratio = run.noise(mechanism, "laplace", "scale", "l1")
        exposure[place] += read_count(often)
        relations.add(sens.adjacency)
        if ratio:  # a larger shift dominates
            shifts[_short_up(size * root_up(ratio))] += often * times
    if len(relations) != 1:
        raise CertificateWrong(f"expected one relation instead got {sorted(relations)}")
    (relation,) = relations
    if shifts.total() > MAX_SHIFTS or len(shifts) > MAX_SCALES:
        raise Undecided(f"expected up to {MAX_SHIFTS} shifts of {MAX_SCALES} lengths")
    d, e = read_delta(delta), read_above(epsilon, 0, False)
    bits = max(128, 64 + d.denominator.bit_length() - d.numerator.bit_length())
    enclose = partial(laplace_delta, list(shifts.items()), -_short_up(-e), run.spend)
    require_at_most("delta", enclose, d, run.spend, bits)
    return Priv(dict(exposure), relation, size, "approx-dp", (d, e))
