"""Exact discrete noise: discrete Laplace and discrete Gaussian integers, randomised answers.

All three are drawn in integers by rejection, with coins of exactly the stated probabilities
(`exact_bernoulli`): no law is truncated, rounded or approximated, and the same words give the same
integers on every platform. Parameters are doubles, hence rationals.

- Discrete Laplace, P(j) ∝ e^-|j|/b with b = t/s: u is uniform in 0, ..., t-1 and accepted with
  probability e^-u/t, v is geometric, P(v) ∝ e^-v. Then u + t·v is geometric with ratio e^-1/t, so
  that j = floor((u + t·v)/s) is geometric with ratio e^-s/t. A fair sign, and -0 drawn again.
- Discrete Gaussian, P(j) ∝ e^-j²/2σ²: a discrete Laplace y of scale t = floor(σ) + 1, accepted with
  probability e^-γ(y), γ(y) = (|y| - σ²/t)²/(2σ²).
- Randomised response: the true answer with probability p, else one of the others, each as likely.

Source: Canonne, Kamath, Steinke 2020, The discrete Gaussian for differential privacy, Algorithms 1
to 3; Warner 1965.

>>> discrete_gaussian(2.5, 6, np.random.PCG64(1).random_raw)
array([...])
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import Any

import numpy as np

from .errors import InvalidParameter, require_number
from .exact_bernoulli import (
    EXP_ERROR,
    Floats,
    KnownReal,
    UniformReal,
    WordSource,
    exp_minus,
    exp_minus_bounds,
)
from .exact_noise import LAPLACE, Integers, whole_parts

Booleans = np.ndarray[Any, np.dtype[np.bool_]]

SMALLEST_SCALE, LARGEST_SCALE = 2.0**-8, 2.0**40
"""Scales of discrete noise: below, all of it is 0 (but once in e^256); above, 64 bits do not hold
what is drawn, or doubles what is released."""

_CHUNK = 1 << 14
"""Attempts a pass: the working arrays of 128 kB stay in a core's cache. Fixed, as seeds are."""

_MOST = (1 << 62) - 1
"""Integers saturate here, 2^9 scales out or further: with probability below e^-500."""

_DOUBT = EXP_ERROR + 2.0**-44
"""How far a coin's probability in doubles may be off: the exponential, and 2^-44 for the rounding
of its argument and of the uniform. For γ = (z - c)²/2 with z = |y|/σ and c = σ/t <= 1 these move
e^-γ by at most 8·2^-53 (z + 1)² e^-γ < 2^-46."""


def discrete_laplace(scale: float, count: int, words: WordSource) -> Integers:
    """Return `count` independent integers of probability ∝ e^-|j|/scale.

    Args:
        scale: in [2^-8, 2^40].
        count: how many.
        words: where random bits come from; the same words give the same integers.
    """
    top, bottom = require_scale("scale", scale).as_integer_ratio()
    return _gathered(count, lambda attempts: _laplace(top, bottom, attempts, words))


def discrete_gaussian(noise_std: float, count: int, words: WordSource) -> Integers:
    """Return `count` independent integers of probability ∝ e^-j²/(2 noise_std²).

    Args:
        noise_std: the parameter of the law, which its standard deviation does not exceed; in
            [2^-8, 2^40].
        count, words: as for `discrete_laplace`.
    """
    squared = Fraction(require_scale("noise_std", noise_std)) ** 2
    proposed = floor(noise_std) + 1
    centre = squared / proposed

    def accepted(attempts: int) -> Integers:
        drawn = _laplace(proposed, 1, attempts, words)
        sizes = np.abs(drawn)

        def exponent(i: int) -> Fraction:
            return (int(sizes[i]) - centre) ** 2 / (2 * squared)

        gaps = (sizes - float(centre)) / noise_std
        gaps *= gaps
        return drawn[_coins(0.5 * gaps, exponent, words)]

    return _gathered(count, accepted)


def randomised_response(
    answers: Integers, truth: float, categories: int, words: WordSource
) -> Integers:
    """Return each answer with probability `truth`, else one of the others, each as likely.

    Args:
        answers: array of any shape, each in 0, ..., categories - 1.
        truth: in [0, 1], taken exactly.
        categories: how many answers there are, 2 or more.
        words: as for `discrete_laplace`; as many are drawn whatever the answers are.
    """
    share = Fraction(truth)
    leading = words(answers.size)
    # whole words below 2^64·truth are heads, but the last, of which some are
    last = np.uint64(ceil(share * 2**64) - 1 if share else 0)
    heads = leading < last
    for i in np.flatnonzero(leading == last):
        heads[i] = UniformReal(int(leading[i]), 64).is_below(lambda _: (share, share), words)
    others = 1 + _gathered(answers.size, lambda n: _uniform(categories - 1, n, words)[0])
    moved = np.where(heads, 0, others).reshape(answers.shape)
    return np.asarray((answers + moved) % categories, dtype=np.int64)


def require_scale(name: str, scale: float) -> float:
    """Return the scale of discrete noise, or raise `InvalidParameter` out of its range."""
    allowed = "in [2**-8, 2**40], for discrete noise"
    require_number(name, scale, allowed)
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise InvalidParameter(name, scale, allowed)
    return float(scale)


def _gathered(count: int, accepted: Callable[[int], Integers]) -> Integers:
    """Return the first `count` of what attempts bring, in order."""
    found = np.empty(count, dtype=np.int64)
    have = 0
    while have < count:
        new = accepted(min(_CHUNK, 2 * (count - have) + 16))[: count - have]
        found[have : have + len(new)] = new
        have += len(new)
    return found


def _uniform(bound: int, attempts: int, words: WordSource) -> tuple[Integers, Integers]:
    """Return those attempts at a uniform integer below `bound` that hit, and their lowest bits."""
    raw = words(attempts)
    bits = (bound - 1).bit_length()
    leading = raw >> np.uint64(64 - bits) if bits else np.zeros_like(raw)
    hit = leading < np.uint64(bound)
    return leading[hit].view(np.int64), (raw[hit] & np.uint64(1)).view(np.int64)


def _laplace(top: int, bottom: int, attempts: int, words: WordSource) -> Integers:
    """Return those attempts at a discrete Laplace integer of scale top/bottom that are accepted.

    `top` is below 2^53 and `bottom` a power of two up to 2^60.
    """
    units, signs = _uniform(top, attempts, words)
    whole, accepted = whole_parts(
        LAPLACE,
        units / float(top),
        words(len(units)),
        words,
        real=lambda i: KnownReal(Fraction(int(units[i]), top)),
        most=_MOST // top - 1,
    )
    sizes: Integers = (units + whole.astype(np.int64) * top) >> (bottom.bit_length() - 1)
    accepted &= (sizes > 0) | (signs == 0)
    sizes[signs == 1] *= -1
    return np.asarray(sizes[accepted])


def _coins(gamma: Floats, exact: Callable[[int], Fraction], words: WordSource) -> Booleans:
    """Return a coin for each γ >= 0, heads with probability e^-γ; `exact(i)` is the i-th itself."""
    uniforms = words(len(gamma))
    margin = exp_minus(gamma)
    margin -= uniforms * 2.0**-64
    heads = margin > 0.0
    for i in np.flatnonzero(np.abs(margin) < _DOUBT):
        cost = exact(int(i))
        bounds = partial(exp_minus_bounds, (cost, cost))
        heads[i] = UniformReal(int(uniforms[i]), 64).is_below(bounds, words)
    return heads
