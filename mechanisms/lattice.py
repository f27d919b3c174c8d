"""A release of a real value: rounded to a lattice, plus noise that is exact there.

The lattice has the step g = noise_std·2^-50, an exact shift of a public number. A value x is
released as (round(x/g) + j)·g with j = round(Z·2^50), Z ideal noise of scale 1 (`exact_noise`).

Why this is the mechanism of the theorems: with q = round(x/g), an integer, q + j is round(q + 2^50
Z), since adding an integer commutes with rounding. So q + j is a function of the integer q plus
ideal noise of standard deviation 2^50: post-processing of the Gaussian (Laplace) mechanism for the
query q, without any loss, in every notion (in Coq: `vector_gaussian_zcdp`, `gaussian_rounded_delta`
for noise rounded after adding). The product with g, and its rounding to a double, are functions of
the integer q + j alone.

What it costs: rounding moves each coordinate by at most h = (1/2 + 2^-12)·g, so neighbours' values
are at most 2·h·√d further apart in l2, 2·h·d in l1: the rule `lattice`, priced in every event. Its
premise is the sensitivity of what is computed, which the rule `computed` makes of that of what was
meant and of the operations whose rounding is bounded (`rounding`).
"""

from fractions import Fraction
from math import inf, ldexp, nextafter
from typing import Any

import numpy as np

from .errors import InvalidParameter, require_positive
from .exact_bernoulli import WordSource
from .exact_noise import Integers, Law, rounded_deviates
from .protocols import FloatArray
from .rounding import Rounding
from .sensitivity import Norm, Sensitivity, computed, float_up, root_up, rounded_to_lattice

LATTICE_BITS = 50
"""Binary logarithm of the noise's scale over the lattice's step: what rounding costs is 2^-50·√d of
the noise, and the lattice reaches 2^42 times the noise in 64-bit arithmetic."""

_FINE_BITS = 32
"""A point of the lattice is coarse·2^32 + fine, so that neither overflows nor is rounded."""

_REACH_BITS = 42
"""Values are cut at noise·2^42, a projection, which moves neighbours no further apart; where public
bounds allow larger values, nothing is released (`require_within_reach`)."""

_CHUNK = 1 << 15
"""Numbers a pass: the working arrays of 256 kB stay in a core's cache. Fixed, as seeds are."""

_SMALLEST, _LARGEST = 2.0**-900, 2.0**900
"""Scales of noise for which no step or product below underflows or overflows."""

_DISTANCE = (Fraction(1, 2) + Fraction(1, 2**12)) / 2**LATTICE_BITS
"""How far rounding moves a coordinate at most, over the noise's scale; proved in `_nearest`."""


def on_lattice(
    sensitivity: Sensitivity, rounding: Rounding, *, scale: float, rows: int = 1
) -> Sensitivity:
    """Return the sensitivity of a value as computed and rounded to the noise's lattice.

    Args:
        sensitivity: of the value as it is meant, in l1 or l2.
        rounding: how far a computed row may be from it, and by which operations.
        scale: standard deviation (or scale) of the noise, in units of the release; 0 for none.
        rows: of the whole release, one a party.

    Raises `InvalidParameter` where the lattice's step would underflow or overflow.
    """
    if scale == 0.0:
        return sensitivity  # released as it is
    _require_scale(scale)
    if sensitivity.squared == 0:
        return sensitivity  # the same for all neighbours, rounded or not
    held = computed(sensitivity, rounding.error, rows, rounding.derivation)
    return rounded_to_lattice(held, _DISTANCE * Fraction(scale), rows * rounding.width)


def require_within_reach(magnitude: Fraction, *, scale: float) -> None:
    """Raise `InvalidParameter` if values of that public size are beyond the noise's lattice."""
    if scale == 0.0:
        return
    _require_scale(scale)
    if magnitude > Fraction(scale) * 2**_REACH_BITS:
        least = float_up(magnitude / 2**_REACH_BITS)
        raise InvalidParameter(
            "noise_std", scale, f"0 or in [{least:g}, inf): 2**-42 of the largest value or more"
        )


def noise_std_on_lattice(
    sensitivity: Sensitivity, rounding: Rounding, noise_multiplier: float, *, rows: int = 1
) -> float:
    """Return the least noise_std, to one rounding up, that is the multiple of the priced bound.

    That is noise_std >= m·(Δ + e + w·noise_std), w·noise_std the price of the lattice and e that of
    what rounding errors add to the sensitivity; arguments as of `on_lattice`.
    """
    dimension = rows * rounding.width
    stretch = dimension if sensitivity.norm is Norm.L1 else root_up(Fraction(dimension))
    left = 1 - Fraction(noise_multiplier) * 2 * _DISTANCE * stretch
    if left <= 0:
        largest = float(1 / (2 * _DISTANCE * stretch))
        raise InvalidParameter("noise_multiplier", noise_multiplier, f"in [0, {largest:g})")
    moved = computed(sensitivity, rounding.error, rows, rounding.derivation).root
    noise_std = float_up(Fraction(noise_multiplier) * moved / left)
    priced = on_lattice(sensitivity, rounding, scale=noise_std, rows=rows)
    # the priced bound is rounded up to 256 bits, which can cost one more unit in the last place
    short = noise_std < Fraction(noise_multiplier) * priced.root
    return nextafter(noise_std, inf) if short else noise_std


def release_on_lattice(
    value: FloatArray, *, scale: float, law: Law, words: WordSource
) -> FloatArray:
    """Return `value` rounded to the lattice plus exact noise of the given scale, same shape.

    Deterministic in value and words, on every platform.
    """
    _require_scale(scale)
    flat = np.asarray(value, dtype=np.float64).ravel()
    message = np.empty_like(flat)
    with np.errstate(all="ignore"):  # what a caller made an error would tell a value's size
        for start in range(0, len(flat), _CHUNK):
            part = slice(start, start + _CHUNK)
            message[part] = _noisy(flat[part], scale, law, words)
    return message.reshape(np.shape(value))


def _noisy(value: FloatArray, scale: float, law: Law, words: WordSource) -> FloatArray:
    coarse, fine = _nearest(value, scale)
    fine += rounded_deviates(law, len(fine), LATTICE_BITS, words)
    # the carry makes one pair of each lattice point: what follows reads the point, not the value
    coarse += fine >> _FINE_BITS
    fine &= (1 << _FINE_BITS) - 1
    message: FloatArray = fine * np.float64(ldexp(scale, -LATTICE_BITS))
    message += coarse * ldexp(scale, _FINE_BITS - LATTICE_BITS)
    return message


def _require_scale(scale: float) -> None:
    require_positive("noise_std", scale)
    if not _SMALLEST <= scale <= _LARGEST:
        raise InvalidParameter("noise_std", scale, "0 or in [2**-900, 2**900]")


def _nearest(value: FloatArray, scale: float) -> tuple[Integers, Integers]:
    """Return a lattice point within (1/2 + 2^-12)·g of each value, as coarse·2^32 + fine.

    With G = 2^32 g, coarse = round(x/G) with |x/G| <= 2^60, the division being off by 2^7 at most;
    the rest r = x - coarse·G is exact but for one rounding (the product's error is exact by
    Dekker's splitting, x minus the product by Sterbenz's lemma), and |r| <= (2^7 + 1/2)·G, so that
    r/g, at most 2^39.1, is off by at most 2^-12.8 before it is rounded.
    """
    step, coarse_step = ldexp(scale, -LATTICE_BITS), ldexp(scale, _FINE_BITS - LATTICE_BITS)
    reach = ldexp(scale, _REACH_BITS)
    # what is no number is no value of a query: it stands for 0, and nothing tells
    held = np.clip(np.nan_to_num(value, nan=0.0, posinf=reach, neginf=-reach), -reach, reach)
    coarse = np.rint(held / coarse_step)
    product, error = _product(coarse, coarse_step)
    held -= product
    held -= error
    held /= step
    return coarse.astype(np.int64), np.rint(held).astype(np.int64)


def _product(many: FloatArray, one: float) -> tuple[FloatArray, FloatArray]:
    """Return products rounded, and their rounding errors, exactly (Dekker 1971)."""
    product = many * one
    high, low = _halves(many)
    one_high, one_low = _halves(one)
    return product, ((high * one_high - product) + high * one_low + low * one_high) + low * one_low


def _halves(number: Any) -> tuple[Any, Any]:
    """Return high and low parts of 26 bits each that add up to a double (Veltkamp)."""
    wide = number * 134217729.0  # 2^27 + 1
    high = wide - (wide - number)
    return high, number - high
