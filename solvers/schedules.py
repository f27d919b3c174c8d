"""How noises compare, publicly: that of round k with the first one's, one party's with another's.

A noise schedule gives the *variance* of round k relative to round 1, as an exact rational, so that
totals are exact. For a sensitivity that is the same in every round, the whole run costs `cost`
times what its first round costs, in rho or in mu². Star DP-ADMM's decreasing noise (Huang et al.
2020) is `ConstantNoise` here: its noise falls with its sensitivity, and their ratio is constant.

What is known about the best schedule: under a total budget, sum of 1/sigma_k² = B, every allocation
is equally private. If round k's noise enters an error bound as w_k sigma_k², then sigma_k² in
proportion to 1/sqrt(w_k) minimises the bound (Cauchy and Schwarz), at (sum sqrt(w_k))²/B:
`optimal_noise`. In Ding et al. (2020), Theorems 5 and 6, all weights are equal, so for their own
bound constant noise is the best schedule.

>>> cost(IterationDecay(Fraction(15, 1000)), 50)
Fraction(2503, 4)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from ..mechanisms.errors import (
    InvalidParameter,
    Number,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sensitivity import Sensitivity, float_up, root_up


class NoiseSchedule(Protocol):
    """A public function of the round."""

    def variance(self, round: int) -> Fraction:
        """Return sigma_k²/sigma_1² > 0 for round k >= 1; it is 1 for k = 1."""
        ...


def noise_level(schedule: NoiseSchedule, first: float, round: int) -> float:
    """Return round k's noise_std (or noise multiplier), rounded up, given that of round 1."""
    return float_up(Fraction(first) * root_up(schedule.variance(round)))


def cost(schedule: NoiseSchedule, rounds: int) -> Fraction:
    """Return sum over rounds of sigma_1²/sigma_k²: the run's rho over its first round's."""
    require_positive_int("rounds", rounds)
    return sum((1 / schedule.variance(k) for k in range(1, rounds + 1)), Fraction(0))


@dataclass(frozen=True, slots=True)
class ConstantNoise:
    """sigma_k² = sigma_1²."""

    def variance(self, round: int) -> Fraction:
        """Return 1."""
        return Fraction(1)


@dataclass(frozen=True, slots=True)
class PeriodicDecay:
    """sigma_k² = sigma_1² rate^floor((k-1)/period) (Ding et al. 2020, equation 14).

    Args:
        rate: R_P in (0, 1).
        period: K_p, in rounds.
    """

    rate: Number
    period: int = 1

    def __post_init__(self) -> None:
        require_open_unit("rate", self.rate)
        require_positive_int("period", self.period)

    def variance(self, round: int) -> Fraction:
        """Return rate^floor((k-1)/period)."""
        return Fraction(self.rate) ** ((round - 1) // self.period)

    def published_cost(self, rounds: int) -> Fraction:
        """Return Theorem 3's total over rho_1, which is one too small.

        K_p (1 - R^J)/(R^(J-1) - R^J) - 1 with J = K/K_p; without the -1 it is `cost`.
        """
        require_positive_int("rounds", rounds)
        periods, rest = divmod(rounds, self.period)
        if rest:
            raise InvalidParameter("rounds", rounds, f"divisible by period={self.period}")
        rate = Fraction(self.rate)
        last = rate ** (periods - 1)
        return self.period * (1 - rate**periods) / (last - rate**periods) - 1


@dataclass(frozen=True, slots=True)
class IterationDecay:
    """sigma_{k+1}² = sigma_1²/(rate k (k+1)), sigma_1² in the first round.

    Equation 15 of Ding et al. (2020) divides by zero at k = 0; Theorem 4 holds with sigma_1² there.
    For rate < 1/2 the noise first rises: to sigma_1²/(2 rate) in the second round.

    Args:
        rate: R_T > 0.
    """

    rate: Number

    def __post_init__(self) -> None:
        require_positive("rate", self.rate)

    def variance(self, round: int) -> Fraction:
        """Return 1/(rate (k-1) k), and 1 for k = 1."""
        return Fraction(1) if round == 1 else 1 / (Fraction(self.rate) * (round - 1) * round)

    def published_cost(self, rounds: int) -> Fraction:
        """Return Theorem 4's total over rho_1, (R_T K (K²-1) + 3)/3: it equals `cost`."""
        require_positive_int("rounds", rounds)
        return (Fraction(self.rate) * rounds * (rounds**2 - 1) + 3) / 3


@dataclass(frozen=True, slots=True)
class TabulatedNoise:
    """Any schedule, given by sigma_k²/sigma_1² for each round; the first is 1."""

    variances: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        for value in self.variances:
            require_positive("variance", value)
        if not self.variances or self.variances[0] != 1:
            raise InvalidParameter("variances", self.variances[:1], "a list that begins with 1")

    def variance(self, round: int) -> Fraction:
        """Return the table's entry."""
        if not 1 <= round <= len(self.variances):
            raise InvalidParameter("round", round, f"in [1, {len(self.variances)}]")
        return Fraction(self.variances[round - 1])


def noise_weights(own: Sequence[Sensitivity]) -> FloatArray:
    """Return the largest of all parties' sensitivities over each one's own, of shape (P,).

    A record lives with one party, and the total is the maximum over parties. So what party i
    releases may be multiplied by w_i and get the noise of the largest: once the public w_i is
    divided out again, its noise is in units of its own sensitivity.
    """
    largest = max(sensitivity.root for sensitivity in own)
    # rounded down, so that no weighted sensitivity exceeds the largest
    return np.array([-float_up(-largest / sensitivity.root) for sensitivity in own])


def optimal_noise(weights: Sequence[Number]) -> TabulatedNoise:
    """Return the schedule with the least sum of w_k sigma_k² at a given sum of 1/sigma_k².

    Args:
        weights: w_k > 0 for each round: how much its noise variance weighs in an error bound.
    """
    for weight in weights:
        require_positive("weight", weight)
    return TabulatedNoise(
        tuple(root_up(Fraction(weights[0]) / Fraction(weight)) for weight in weights)
    )
