"""Exact noise: ideal normal and Laplace deviates, rounded to integers, made of random bits alone.

The ideal deviate is ±(k + x)·2^shift with a whole part k, a fraction x in [0, 1) and a density
proportional to e^-L(k+x), L(z) = z²/2 (normal) or z (Laplace). It is drawn by rejection:

1. k has probability e^-L(k) / Σ e^-L(i);
2. x is uniform;
3. the pair is accepted with probability e^-(L(k+x) - L(k)), otherwise all is drawn again.

What is accepted has density proportional to e^-L(k) · e^-(L(k+x) - L(k)) = e^-L(k+x). The three
numbers are reals, given by as many random bits as decisions need (`exact_bernoulli`), and rounding
(k + x)·2^shift to the nearest integer is a shift of bits that are known. So the integer is the
rounded ideal deviate, not an approximation: there is no truncation, no table of quantiles and no
statistical distance. It has law

    P(j) = F((j + 1/2)·2^-shift) - F((j - 1/2)·2^-shift),   F the ideal distribution function.

The same words give the same integers on every platform. Whole parts and fractions that are drawn
bit by bit and accepted by exact coins: Karney 2016, Sampling exactly from the normal distribution.

>>> rounded_deviates(NORMAL, 6, 3, np.random.PCG64(1).random_raw)
array([...])
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .exact_bernoulli import (
    EXP_ERROR,
    Floats,
    Interval,
    UniformReal,
    Words,
    WordSource,
    exp_minus,
    exp_minus_bounds,
)

Integers = np.ndarray[Any, np.dtype[np.int64]]
HalfWords = np.ndarray[Any, np.dtype[np.uint32]]

_CHUNK = 1 << 14
"""Attempts a pass: the working arrays of 128 kB stay in a core's cache."""

_LARGEST_SHIFT = 61
"""A fraction has 63 bits at hand, and rounding needs one more than the shift."""

_LARGEST_INTEGER = (1 << 62) - 1
"""Integers saturate here, 2^(62-shift) standard deviations out: post-processing, like rounding."""


@dataclass(frozen=True)
class Law:
    """A symmetric density proportional to e^-L(|z|), L increasing and convex with L(0) = 0.

    L(z) = linear·z + quadratic·z², one of the two 0 and the other at least 1/2.
    """

    linear: Fraction
    quadratic: Fraction

    def cost(self, z: Fraction) -> Fraction:
        """Return L(z)."""
        return self.linear * z + self.quadratic * z * z

    def exponent(self, k: Floats, x: Floats) -> Floats:
        """Return L(k+x) - L(k) in doubles, at most three roundings off."""
        if not self.quadratic:
            return x * float(self.linear)
        total = k + k
        total += x
        total *= x
        total *= float(self.quadratic)
        return total

    def below(self, k: int, digits: int) -> Interval:
        """Enclose the probability that the proposed whole part is at most k."""
        sums, rest = _partial_sums(self, digits)
        low, high = sums[k] if k < len(sums) else (sums[-1][0], sums[-1][1] + rest)
        return low / (sums[-1][1] + rest), high / sums[-1][0]

    @property
    def thresholds(self) -> HalfWords:
        """The leading 32 bits of the probabilities of a whole part of at most 0, 1, ....

        The last is 2^32 - 1, beyond which 32 bits do not tell whole parts apart.
        """
        return _thresholds(self)


NORMAL = Law(linear=Fraction(0), quadratic=Fraction(1, 2))
"""The standard normal law."""

LAPLACE = Law(linear=Fraction(1), quadratic=Fraction(0))
"""The Laplace law of scale 1."""


@lru_cache(maxsize=16)
def _partial_sums(law: Law, digits: int) -> tuple[list[Interval], Fraction]:
    """Return enclosures of the sums of e^-L(0), ..., e^-L(k), and a bound on what follows."""
    sums: list[Interval] = []
    low = high = Fraction(0)
    rest = Fraction(1)
    while rest > Fraction(1, 10**digits):
        cost = law.cost(Fraction(len(sums)))
        least, most = exp_minus_bounds((cost, cost), digits)
        low, high = low + least, high + most
        sums.append((low, high))
        # L is convex and L(1) >= 1/2, so that what is left falls by a factor of e^-1/2 < 0.61 or
        # more at each step: it sums to less than 0.61 / 0.39 < 2 times the last
        rest = 2 * most
    return sums, rest


@lru_cache(maxsize=2)
def _thresholds(law: Law) -> HalfWords:
    found: list[int] = []
    while not found or found[-1] < 2**32 - 1:
        low, high = (int(end * 2**32) for end in law.below(len(found), 40))
        assert low == high  # 40 digits settle 32 bits of these numbers
        found.append(low)
    return np.array(found, dtype=np.uint32)


def rounded_deviates(law: Law, count: int, shift: int, words: WordSource) -> Integers:
    """Return `count` independent integers: ideal deviates of `law` times 2^shift, rounded.

    Args:
        law: `NORMAL` or `LAPLACE`.
        count: how many.
        shift: the binary logarithm of standard deviation (or scale) over lattice step, in [0, 61].
        words: where random bits come from; the same words give the same integers.
    """
    if not 0 <= shift <= _LARGEST_SHIFT:
        raise ValueError(f"shift={shift} must be in [0, {_LARGEST_SHIFT}]")
    found = np.empty(count, dtype=np.int64)
    have = 0
    while have < count:
        # about 0.7 of normal and 0.6 of Laplace attempts are accepted
        attempts = min(_CHUNK, (count - have) * 3 // 2 + 16)
        new = _accepted(law, attempts, shift, words)[: count - have]
        found[have : have + len(new)] = new
        have += len(new)
    return found


def _accepted(law: Law, attempts: int, shift: int, words: WordSource) -> Integers:
    """Return the rounded deviates of those attempts that are accepted, in order."""
    raw = words(2 * attempts)
    fractions, others = raw[:attempts], raw[attempts:]
    # the lowest bit is the sign, the others are the fraction's
    x = (fractions >> np.uint64(11)).view(np.int64).astype(np.float64)
    x *= 2.0**-53
    whole, accepted = whole_parts(
        law,
        x,
        others,
        words,
        real=lambda i: UniformReal(int(fractions[i]) >> 1, 63),
        most=_LARGEST_INTEGER >> shift,
    )
    return _rounded(whole[accepted], fractions[accepted], shift)


def whole_parts(
    law: Law,
    x: Floats,
    others: Words,
    words: WordSource,
    *,
    real: Callable[[int], UniformReal],
    most: int,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return a whole part k for each fraction x, and whether (k, x) is accepted: steps 1 and 3.

    Args:
        law: of which e^-L(k) and e^-(L(k+x) - L(k)) are the probabilities.
        x: the fractions in doubles, at most 2^-53 off; array of shape (n,).
        others: a word for each.
        words: where further bits come from, as far as decisions need them.
        real: gives the fraction with that index itself.
        most: whole parts saturate here.
    """
    choosing = (others >> np.uint64(32)).astype(np.uint32)
    accepting = others.astype(np.uint32)
    thresholds = law.thresholds
    whole: np.ndarray[Any, Any] = np.zeros(len(x), dtype=np.uint8)
    for threshold in thresholds[:-1]:
        whole += choosing > threshold
    probability = exp_minus(law.exponent(whole.astype(np.float64), x))
    # accept where U < e^-t; U is in [u, u+1)·2^-32, so that U's centre decides but near by
    probability -= accepting * 2.0**-32
    probability -= 2.0**-33
    accepted = probability > 0.0
    np.abs(probability, out=probability)
    doubtful = probability < _DOUBT
    doubtful |= thresholds[whole] == choosing
    where = np.flatnonzero(doubtful)
    if len(where):
        whole = whole.astype(np.int64)
        for i in where:
            drawn = int(choosing[i]), int(accepting[i])
            k, accepted[i] = _decide(law, drawn, real(int(i)), words)
            whole[i] = min(k, most)
    return whole, accepted


_DOUBT = 2.0**-33 + EXP_ERROR + 2.0**-44
"""Half the width of U's interval, the exponential's error, and that of the exponent and of the
fraction's 53 bits: a change dt <= (k+1)·2^-53 + 3 roundings of t moves e^-t by at most dt e^-t."""


def _decide(
    law: Law, drawn: tuple[int, int], x: UniformReal, words: WordSource
) -> tuple[int, bool]:
    """Return the whole part and whether it is accepted, with as many more bits as that takes."""
    choosing, accepting = drawn
    chooser, k = UniformReal(choosing, 32), 0
    while not chooser.is_below(partial(law.below, k), words):
        k += 1
    at_k = law.cost(Fraction(k))

    def probability(digits: int) -> Interval:
        if digits > 40:
            x.refine(words)
        low, high = x.interval
        return exp_minus_bounds((law.cost(k + low) - at_k, law.cost(k + high) - at_k), digits)

    return k, UniformReal(accepting, 32).is_below(probability, words)


def _rounded(whole: np.ndarray[Any, Any], fractions: Words, shift: int) -> Integers:
    """Return ±(k + x)·2^shift to the nearest integer; never a tie, for x goes on without end."""
    found = (fractions >> np.uint64(63 - shift)).view(np.int64)
    found += 1
    found >>= 1
    found += whole.astype(np.int64) << shift
    sign = (fractions & np.uint64(1)).view(np.int64)
    # -z is the complement of z - 1
    found -= sign
    found ^= -sign
    return found
