"""Sums of parties' rounded values and rounded noises, which are exactly the Gaussian mechanism.

Of P parties at most t tell an adversary their noise or drop out of a sum; n = P - t are honest.
Every party rounds its value to the coarse lattice of step n·g, adds noise of standard deviation s =
noise_std/sqrt(n), rounded to the fine lattice of step g = s·2^-k, and sends a whole number of g.
The adversary sees the sum, less what the others told, which is for each coordinate

    n·Q + J_1 + ... + J_n,    J_i = round(2^k Z_i),  Z_i independent and standard normal,

Q the whole number that the values come to. A sum of rounded Gaussians is no rounded Gaussian, nor a
discrete one; yet nothing is lost, whatever k is.

Proposition. n·Q + J_1 + ... + J_n is a randomised function of n·Q + 2^k sqrt(n)·Z, Z standard
normal, and of nothing else that is private: post-processing of the Gaussian mechanism.

Proof. Q is whole, so that Q + round(2^k Z_i) = round(Q + 2^k Z_i). Put X_i = Q + 2^k Z_i: the sum
in question is round(X_1) + ... + round(X_n), a function of (X_1, ..., X_n). These are n independent
normal numbers of mean Q and known variance 4^k, of which X_1 + ... + X_n is a sufficient statistic
for Q: given their sum, the law of (X_1, ..., X_n) is the same for every Q. So draw them from that
law, given a sum that is distributed as n·Q + 2^k sqrt(n)·Z is. (Sufficiency: Fisher 1922.)  ∎

In units of the release, 2^k sqrt(n)·g = s·sqrt(n) >= noise_std. That values lie on a lattice n
times as coarse as the noises is what the proof needs: with n = 2 noises of a quarter of a step and
values 0 and 1 the sums tell more than the Gaussian mechanism does (a test shows it). Fewer than t
colluders leave more noises in the sum than n, which add randomness and no private number, so that
the bound stands. A party that drops out takes its value and its noise with it: to an adversary
that is a party of value 0 whose noise it knows.

The sum is taken modulo 2^m, a function of the sum: a sum beyond ±2^(m-1) is read wrongly and tells
no more. `modulus_bits` is the m by which that needs a deviate above 64 standard deviations, whose
probability is below 2^-2900.

What it costs: rounding moves each coordinate by at most h = (1/2 + 2^-4)·n·g, so neighbours'
values are at most 2·h·sqrt(d) further apart, the price that every event has (the rule `lattice`).
Of neighbours one party's value alone differs, so that one party's rounding is all that moves.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, ldexp, nextafter

import numpy as np

from .errors import InvalidParameter, require_positive
from .exact_bernoulli import WordSource
from .exact_noise import NORMAL, Integers, rounded_deviates
from .protocols import FloatArray
from .sensitivity import Sensitivity, float_up, root_up, rounded_to_lattice

SUMMED_BITS = 24
"""k where nothing else is said: with 100 parties and 100 coordinates rounding costs 2^-17 of the
noise, and a party's values may be 2^28 times its share of noise."""

_LEAST_BITS, _MOST_BITS = 8, 32
"""Of k: below, rounding costs as much as noise; above, too few of a double's 53 bits are left for
values."""

_MOST_STEPS = 2**48
"""Values are cut at as many coarse steps, a projection, which moves neighbours no further apart;
where public bounds allow larger values, nothing is released."""

_MOST_NUMBER = 2**53
"""A party's number is below: a double holds it, and a journal of doubles."""

_TAIL = 64
"""Standard deviations of a share of noise that modulus and numbers have room for."""

_OFF = Fraction(1, 2) + Fraction(1, 2**4)
"""How far rounding moves a coordinate at most, in coarse steps: half a step, and the quotient's
error, at most 2^48 rounded twice with a relative error of 2^-53 each."""

_SMALLEST, _LARGEST = 2.0**-900, 2.0**900
"""Scales of noise for which no step or product below underflows or overflows."""


@dataclass(frozen=True, slots=True)
class SummedLattice:
    """How P parties' values and noises are rounded so that their sum is the Gaussian mechanism.

    Args:
        parties: P, as many as take part.
        colluders: t < P, parties whose noise an adversary may know, or that may drop out.
        bits: k in [8, 32]: a share of noise has a standard deviation of 2^k steps.

    Raises `InvalidParameter` out of these ranges, or where n·2^-k is above 1/16.
    """

    parties: int
    colluders: int = 0
    bits: int = SUMMED_BITS

    def __post_init__(self) -> None:
        if not 0 <= self.colluders < self.parties:
            raise InvalidParameter("colluders", self.colluders, f"in [0, {self.parties - 1}]")
        if not _LEAST_BITS <= self.bits <= _MOST_BITS:
            raise InvalidParameter("bits", self.bits, f"in [{_LEAST_BITS}, {_MOST_BITS}]")
        if self.honest << 4 > 1 << self.bits:
            least = (self.honest << 4).bit_length()
            raise InvalidParameter("bits", self.bits, f"{least} or more for {self.parties} parties")

    @property
    def honest(self) -> int:
        """n = P - t."""
        return self.parties - self.colluders

    def share(self, noise_std: float) -> float:
        """Return s >= noise_std/sqrt(n), the least such binary64: a party's own noise.

        Args:
            noise_std: of the sum that is priced, in units of the release, in [2^-900, 2^900].
        """
        require_positive("noise_std", noise_std)
        if not _SMALLEST <= noise_std <= _LARGEST:
            raise InvalidParameter("noise_std", noise_std, "in [2**-900, 2**900]")
        return float_up(root_up(Fraction(noise_std) ** 2 / self.honest))

    def step(self, noise_std: float) -> float:
        """Return g = s·2^-k, the fine lattice's step, in units of the release."""
        return ldexp(self.share(noise_std), -self.bits)

    def priced(
        self, sensitivity: Sensitivity, *, noise_std: float, dimension: int, error: Fraction
    ) -> Sensitivity:
        """Return the l2 sensitivity of values rounded to the coarse lattice: the rule `lattice`.

        Args:
            sensitivity: of the sum over parties, in l2.
            noise_std: of the sum that is priced.
            dimension: d, coordinates of the release.
            error: how far a party's computed coordinate may be from the exact one.
        """
        if sensitivity.squared == 0:
            return sensitivity  # the same for all neighbours, rounded or not
        moved = _OFF * self.honest * Fraction(self.step(noise_std))
        return rounded_to_lattice(sensitivity, moved + error, dimension)

    def noise_std(
        self,
        sensitivity: Sensitivity,
        noise_multiplier: float,
        *,
        dimension: int,
        error: Fraction,
    ) -> float:
        """Return a noise_std of at least `noise_multiplier` times the priced sensitivity.

        That is within two roundings of the least, as noise_std >= m·(Δ + e + w·noise_std), w the
        price of the lattice and e that of rounding errors of up to `error` a coordinate.

        Raises `InvalidParameter` for a multiplier that rounding leaves no room for, or 0: a sum
        without noise is no release.
        """
        require_positive("noise_multiplier", noise_multiplier)
        stretch = root_up(Fraction(dimension))
        # a share is rounded up, by less than 2^-50 of it
        steps = _OFF * root_up(Fraction(self.honest)) * (1 + Fraction(1, 2**50)) / 2**self.bits
        left = 1 - Fraction(noise_multiplier) * 2 * steps * stretch
        if left <= Fraction(1, 2):
            largest = float(1 / (4 * steps * stretch))
            raise InvalidParameter(
                "noise_multiplier", noise_multiplier, f"in (0, {largest:g}), or more bits"
            )
        moved = sensitivity.root + 2 * error * stretch
        found = float_up(Fraction(noise_multiplier) * moved / left)
        priced = self.priced(sensitivity, noise_std=found, dimension=dimension, error=error)
        # the priced bound is rounded up to 256 bits, which can cost one more unit in the last place
        short = found < Fraction(noise_multiplier) * priced.root
        return nextafter(found, inf) if short else found

    def modulus_bits(self, magnitude: Fraction, *, noise_std: float) -> int:
        """Return the least m by which sums of P parties' numbers fit in [-2^(m-1), 2^(m-1)).

        Args:
            magnitude: public bound on every party's coordinates, in units of the release.
            noise_std: of the sum that is priced.

        Raises `InvalidParameter` where a party's value may be beyond 2^48 coarse steps, its number
        beyond 2^53, or sums beyond 64 bits.
        """
        values = magnitude / Fraction(self.step(noise_std))
        number = ceil(values) + self.honest + (_TAIL << self.bits)
        bits = (self.parties * number).bit_length() + 1
        if values > _MOST_STEPS * self.honest or number > _MOST_NUMBER or bits > 64:
            raise InvalidParameter(
                "bits", self.bits, "smaller, or the noise larger: a value may take too many steps"
            )
        return bits

    def integers(self, value: FloatArray, noise_std: float, words: WordSource) -> Integers:
        """Return a party's numbers: its value on the coarse lattice plus rounded noise, in steps g.

        Deterministic in value and words, on every platform.

        Args:
            value: of any shape, in units of the release.
            noise_std: of the sum that is priced.
            words: where random bits come from.
        """
        coarse = self.rounded(value, noise_std) * self.honest
        drawn = rounded_deviates(NORMAL, coarse.size, self.bits, words)
        return np.asarray(coarse + drawn.reshape(coarse.shape))

    def rounded(self, value: FloatArray, noise_std: float) -> Integers:
        """Return the nearest whole numbers of coarse steps n·g, within 1/2 + 2^-4 of each value.

        What is no number is no value of a query: it stands for 0, and nothing tells.
        """
        coarse = self.honest * self.step(noise_std)
        reach = _MOST_STEPS * coarse
        with np.errstate(all="ignore"):  # what a caller made an error would tell a value's size
            held = np.nan_to_num(value, nan=0.0, posinf=reach, neginf=-reach)
            return np.rint(np.clip(held, -reach, reach) / coarse).astype(np.int64)

    def decoded(self, total: Integers, noise_std: float) -> FloatArray:
        """Return a sum of parties' numbers in units of the release.

        Args:
            total: whole numbers of g, already read as numbers in [-2^(m-1), 2^(m-1)).
            noise_std: of the sum that is priced.
        """
        return np.asarray(total.astype(np.float64) * self.step(noise_std))
