"""Dominating pairs: for each mechanism the worst two output distributions, in exact parameters.

A pair (P, Q) dominates a mechanism when H_γ(M(D)‖M(D')) <= H_γ(P‖Q) for all neighbours D, D' and
all γ >= 0; pairs compose (Zhu, Dong, Wang 2022, Theorem 10). L = log dP/dQ is the privacy loss.
This module says what a pair is; `from_mechanisms` says which mechanism has which.

Under add/remove and zero-out a sampled mechanism has two pairs, one for each order of (D, D'). Each
order is composed alone, and the maximum is taken last. Under replace-one the two orders of one step
are mixed freely by the adversary, so one *symmetrised* pair covers both.
"""

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import inf

from ...mechanisms.errors import (
    InvalidParameter,
    require_positive,
    require_positive_int,
    require_rate,
)

_LEAST_RATE = Fraction(2) ** -1022
"""The smallest rate whose inverse a double holds: of less, bounds would be no numbers."""


def _require_drawn(rate: Fraction) -> None:
    """Raise `InvalidParameter` for a rate that is none, or too small for doubles."""
    if not _LEAST_RATE <= rate < 1:
        allowed = (
            "in [2^-1022, 1): 0 costs nothing, 1 is the shift, less is below what doubles hold"
        )
        raise InvalidParameter("rate", float(rate) or rate, allowed)


class Order(Enum):
    """Which of the two data sets stands first in the pair of a sampled mechanism."""

    MIXTURE_FIRST = "mixture-first"
    """((1-q)Q + qP, Q): the data set with the record stands first (remove)."""

    MIXTURE_SECOND = "mixture-second"
    """(Q, (1-q)Q + qP): the data set without it stands first (add)."""

    SYMMETRISED = "symmetrised"
    """H_γ((1-q)Q + qP ‖ Q) for γ >= 1 and H_γ(P ‖ (1-q)P + qQ) for γ < 1, as one pair.

    Source: Zhu, Dong, Wang 2022, Theorem 11 (replace-one, a fixed share q of the records drawn).
    """


@dataclass(frozen=True, slots=True)
class GaussianShift:
    """(N(μ, 1), N(0, 1)), given by μ² = (sensitivity / noise_std)². Composition adds μ².

    A sum of very many may be known only within `slack`. Source: Dong, Roth, Su 2022, Theorem 2.7
    and Corollary 3.3.

    Args:
        mu_squared: an upper bound on μ², > 0.
        slack: μ² lies in [mu_squared - slack, mu_squared].
    """

    mu_squared: Fraction
    slack: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        require_positive("mu_squared", self.mu_squared)
        if not 0 <= self.slack < self.mu_squared:
            raise InvalidParameter("slack", self.slack, f"in [0, {self.mu_squared})")


@dataclass(frozen=True, slots=True)
class LaplaceShift:
    """(Lap(ε₀, 1), Lap(0, 1)) with ε₀ = ℓ1 sensitivity / scale; it also dominates vectors.

    A vector shift of ℓ1 length ε₀ is a chain of shifts of single coordinates, and for a log-concave
    noise the trade-off function of the sum of two shifts is the chained one. Source: Dong, Roth, Su
    2022, Theorem 2.14; Awan, Dong 2022, on log-concave noise.

    Args:
        epsilon: ε₀ > 0, the largest privacy loss.
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianShift:
    """Discrete Gaussian noise of parameter σ, shifted by one; given by σ² > 0.

    Source: Canonne, Kamath, Steinke 2020, Definition 1.
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        require_positive("sigma_squared", self.sigma_squared)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianVectors:
    """The pointwise maximum of the profiles of discrete Gaussian noise on integer vectors.

    Which vectors there are, and why one pair stands above all, is in `integer_vectors`.

    Args:
        sigma_squared: σ² of each coordinate, > 0.
        squared: s >= 1, the largest squared length of the vector by which the outputs move apart.
    """

    sigma_squared: Fraction
    squared: int

    def __post_init__(self) -> None:
        require_positive("sigma_squared", self.sigma_squared)
        require_positive("squared", self.squared)


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceShift:
    """Noise of mass proportional to exp(-|k| rate), shifted by a whole number.

    It dominates integer vectors of ℓ1 length `shift`, as `LaplaceShift` does.

    Args:
        rate: 1 / scale, > 0.
        shift: >= 1.
    """

    rate: Fraction
    shift: int

    def __post_init__(self) -> None:
        require_positive("rate", self.rate)
        require_positive("shift", self.shift)


@dataclass(frozen=True, slots=True)
class RandomisedAnswers:
    """k-ary randomised response: the true answer with some probability, each other equally.

    Args:
        truth: that probability, in (0, 1).
        categories: k >= 2.
    """

    truth: Fraction
    categories: int

    def __post_init__(self) -> None:
        if not 0 < self.truth < 1:
            raise InvalidParameter("truth", self.truth, "in (0, 1)")

    @property
    def other(self) -> Fraction:
        """The probability of each answer that is not the true one."""
        return (1 - self.truth) / (self.categories - 1)


@dataclass(frozen=True, slots=True)
class Sampled:
    """The shift `base` met with probability `rate`: a mixture, in one of three orders.

    Source: Poisson sampling: Zhu, Dong, Wang 2022, Theorem 11 (add/remove).

    Args:
        base: of a record that was drawn.
        rate: in (0, 1).
        order: which data set stands first.
        cut: outcomes of a Gaussian base whose loss exceeds this many standard deviations of it are
            left out (where the pair is symmetrised, those that mirror them, too). What is left is a
            measure of mass below one, of which `truncation` alone makes use; infinite elsewhere.
    """

    base: GaussianShift | LaplaceShift
    rate: Fraction
    order: Order
    cut: float = inf
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_rate("rate", self.rate)
        _require_drawn(self.rate)
        # moments are looked up by pair many times a query, and hashes of fractions are slow
        object.__setattr__(self, "_hash", hash((self.base, self.rate, self.order, self.cut)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class RevealedSample:
    """The shift `base` met with probability `rate`, and it is revealed whether it was.

    Its profile (1-q)(1-γ)⁺ + q H_γ(base) lies above that of `Sampled` in every order, because H_γ
    is jointly convex; and hardly above it where the shift is so long that one sees it anyway.
    Source: Balle, Barthe, Gaboardi 2018, Section 2 (joint convexity).
    """

    base: GaussianShift | LaplaceShift
    rate: Fraction

    def __post_init__(self) -> None:
        require_rate("rate", self.rate)


@dataclass(frozen=True, slots=True)
class DrawnShifts:
    """The Gaussian shift of as many records of a group as a Poisson sample draws.

    Or of one record, as often as it is in accumulated samples.

    (Σ_j C(n, j) q^j (1 - q)^(n - j) N(jμ, 1), N(0, 1)), or the same in the other order. Source:
    Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (arXiv 2310.15526).

    Args:
        mu_squared: μ² of one record's shift.
        rate: q.
        size: n, records of the group.
        order: which data set stands first.
    """

    mu_squared: Fraction
    rate: Fraction
    size: int
    order: Order

    def __post_init__(self) -> None:
        require_positive("mu_squared", self.mu_squared)
        _require_drawn(self.rate)
        require_positive_int("size", self.size)


@dataclass(frozen=True, slots=True)
class ReplacedInSample:
    """A record that a Poisson sample holds with probability q brings +C in one data set, -C in the
    other.

    ((1-q)N(0, 1) + qN(μ, 1), (1-q)N(0, 1) + qN(-μ, 1)) with μ = C / noise_std, alike in both
    orders; `from_mechanisms` proves that it dominates.

    Args:
        mu_squared: μ².
        rate: q, in (0, 1).
    """

    mu_squared: Fraction
    rate: Fraction

    def __post_init__(self) -> None:
        require_positive("mu_squared", self.mu_squared)
        _require_drawn(self.rate)


@dataclass(frozen=True, slots=True)
class CopiesDrawn:
    """A batch drawn with replacement: it holds a replaced record M ~ Bin(draws, 1/records) times.

    Each copy moves a Gaussian by μ. Given that there are k, the shift by kμ is met with a
    probability that is chosen for every γ: with p_k = P(M = k) the profile is, for γ >= 1,

        min Σ_{k>0} p_k H_{γ + t_k/p_k}(N(kμ, 1)‖N(0, 1))    t_k >= 0, Σ t_k = (γ-1) p_0

    and that of the other order for γ < 1; `profiles` solves it, `from_mechanisms` proves it. It is
    hardly above that of the mixture Σ_k p_k N(kμ, 1) against N(0, 1), which is met.

    Args:
        mu_squared: μ² of one copy.
        draws: m >= 1, at most `MOST_COPIES` times as many as records.
        records: n > 1.
    """

    mu_squared: Fraction
    draws: int
    records: int

    def __post_init__(self) -> None:
        require_positive("mu_squared", self.mu_squared)
        require_positive_int("draws", self.draws)
        if self.records < 2:
            raise InvalidParameter("records", self.records, "in [2, inf)")
        if self.draws > MOST_COPIES * self.records:
            raise InvalidParameter("draws", self.draws, f"at most {MOST_COPIES} times the records")

    @property
    def rate(self) -> Fraction:
        """P(M > 0), rounded up."""
        return any_copy(self.draws, self.records)


def any_copy(draws: int, records: int) -> Fraction:
    """Return 1 - (1 - 1/records)^draws, rounded up to a whole multiple of 2^-512."""
    none, square, left = _ONE, (records - 1) * _ONE // records, draws
    while left:
        if left & 1:
            none = none * square // _ONE
        square, left = square * square // _ONE, left >> 1
    return Fraction(_ONE - none, _ONE)


_ONE = 1 << 512

MOST_COPIES = 8
"""Copies of a record that a batch holds on average, at most: their numbers are counted one by one.
"""


DominatingPair = (
    GaussianShift
    | LaplaceShift
    | DiscreteGaussianShift
    | DiscreteGaussianVectors
    | DiscreteLaplaceShift
    | RandomisedAnswers
    | RevealedSample
    | Sampled
    | DrawnShifts
    | ReplacedInSample
    | CopiesDrawn
)
"""Every pair that the engine knows."""
