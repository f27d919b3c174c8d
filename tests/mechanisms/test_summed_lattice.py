"""Sums of rounded values and noises tell no more than the Gaussian mechanism that is priced.

The proposition is checked against brute force: laws of sums by exact convolution, privacy profiles
by summation over all outcomes. Drawn noise is tested where it is made (`exact_noise`).
"""

from fractions import Fraction
from itertools import product
from math import erfc, exp, sqrt
from typing import Any

import numpy as np
import pytest

from dpledger.mechanisms import Adjacency, InvalidParameter, SeededSampler, declared
from dpledger.mechanisms.summed_lattice import SummedLattice

DELTA = declared(0.01, "example", adjacency=Adjacency.REPLACE_ONE)


def law_of_sum(noises: int, std: float) -> tuple[np.ndarray[Any, Any], int]:
    """Return P(J_1 + ... + J_n = j) for j = -r, ..., r, and r; what is beyond is below 1e-30."""
    reach = int(12 * std) + 12

    def below(x: float) -> float:
        return 0.5 * erfc(-x / (std * sqrt(2.0)))

    one = np.array(
        [  # by the tail on the nearer side, so that small masses keep their digits
            below(-abs(j) + 0.5) - below(-abs(j) - 0.5) for j in range(-reach, reach + 1)
        ]
    )
    law = one
    for _ in range(noises - 1):
        law = np.convolve(law, one)
    return law, reach * noises


def profile_of_shift(noises: int, std: float, shift: int, epsilon: float) -> float:
    """Return sum of (p(j) - e^epsilon p(j - shift))_+ over all sums."""
    law, _ = law_of_sum(noises, std)
    padded = np.pad(law, shift)
    return float(np.maximum(padded - exp(epsilon) * np.roll(padded, shift), 0.0).sum())


def gaussian_profile(mu: float, epsilon: float) -> float:
    """Return the delta of mu-GDP (Balle and Wang 2018, Theorem 8)."""

    def below(x: float) -> float:
        return 0.5 * erfc(-x / sqrt(2.0))

    return below(mu / 2 - epsilon / mu) - exp(epsilon) * below(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("noises", [1, 2, 3, 7])
@pytest.mark.parametrize("std", [0.2, 0.45, 1.0, 3.0])
def test_a_shift_by_coarse_steps_costs_no_more_than_the_gaussian_mechanism(
    noises: int, std: float
) -> None:
    for coarse, epsilon in product((1, 2), (0.0, 0.1, 0.7, 2.0, 5.0)):
        shift = coarse * noises
        exact = profile_of_shift(noises, std, shift, epsilon)
        bound = gaussian_profile(shift / (std * sqrt(noises)), epsilon)
        assert exact <= bound + 1e-12


def test_a_shift_that_is_no_multiple_of_the_number_of_noises_may_cost_more() -> None:
    """Otherwise the coarse lattice would be for nothing."""
    exact = profile_of_shift(2, 0.25, 1, 0.0)
    assert exact > gaussian_profile(1 / (0.25 * sqrt(2)), 0.0) + 0.01


def test_sums_are_nearly_as_noisy_as_the_gaussian_mechanism() -> None:
    """The bound is tight: with noise of four steps, the profiles differ by less than 3 percent."""
    for epsilon in (0.0, 0.5, 1.0):
        exact = profile_of_shift(3, 4.0, 3, epsilon)
        assert exact > 0.97 * gaussian_profile(3 / (4.0 * sqrt(3)), epsilon)


@pytest.mark.parametrize(("parties", "colluders"), [(1, 0), (7, 3), (100, 0)])
def test_a_value_is_rounded_to_a_multiple_of_the_number_of_honest_parties(
    parties: int, colluders: int
) -> None:
    lattice = SummedLattice(parties, colluders, bits=24)
    values = np.random.default_rng(1).normal(size=50) * 10.0 ** np.arange(-30, 20)
    noise_std = 1e16
    coarse = lattice.honest * Fraction(lattice.step(noise_std))
    for value, steps in zip(values, lattice.rounded(values, noise_std), strict=True):
        assert abs(Fraction(float(value)) - int(steps) * coarse) <= Fraction(9, 16) * coarse
    words = SeededSampler(1).words
    numbers = lattice.integers(values, noise_std, words)
    noise = numbers - lattice.honest * lattice.rounded(values, noise_std)
    assert 0.5 < np.std(noise) / 2**24 < 1.5


def test_every_share_together_has_the_noise_that_is_priced() -> None:
    lattice = SummedLattice(10, 3)
    share = Fraction(lattice.share(0.3))
    assert 0.3 <= float(sqrt(7 * share**2)) <= 0.3 * (1 + 1e-15)
    assert Fraction(0.3) ** 2 <= 7 * share**2


@pytest.mark.parametrize("multiplier", [0.5, 3.0, 40.0])
def test_noise_is_the_multiple_of_the_priced_sensitivity_to_the_last_digits(
    multiplier: float,
) -> None:
    lattice, given = SummedLattice(20), {"dimension": 30, "error": Fraction(1, 10**6)}
    noise_std = lattice.noise_std(DELTA, multiplier, **given)  # type: ignore[arg-type]
    priced = lattice.priced(DELTA, noise_std=noise_std, **given)  # type: ignore[arg-type]
    assert noise_std >= multiplier * priced.root
    assert noise_std <= multiplier * priced.root * (1 + Fraction(1, 10**14))
    # sqrt(d)·(coarse step + 2 errors) and little else beside the sensitivity itself
    rounding = float(priced.root - DELTA.root)
    assert rounding == pytest.approx(
        2 * sqrt(30) * (0.5625 * 20 * lattice.step(noise_std) + 1e-6), rel=1e-9
    )


def test_sums_within_the_modulus_are_what_doubles_add_up_to() -> None:
    lattice = SummedLattice(5, 1)
    bits = lattice.modulus_bits(Fraction(3), noise_std=0.01)
    values = np.array([[3.0], [3.0], [3.0], [-3.0], [3.0]])
    words = SeededSampler(2).words
    numbers = np.array([lattice.integers(value, 0.01, words) for value in values])
    total = numbers.sum(axis=0)
    assert np.all(np.abs(total) < 2 ** (bits - 1))
    assert lattice.decoded(total, 0.01) == pytest.approx(9.0, abs=0.1)
    assert np.abs(numbers).max() < 2**53


def test_what_is_no_number_counts_as_zero_and_what_is_too_large_is_cut() -> None:
    lattice = SummedLattice(2)
    found = lattice.rounded(np.array([np.nan, np.inf, -np.inf]), 1.0)
    assert found.tolist() == [0, 2**48, -(2**48)]


WRONG = {
    "as many colluders as parties": lambda: SummedLattice(3, 3),
    "a coarse lattice": lambda: SummedLattice(3, bits=7),
    "more parties than the lattice is fine": lambda: SummedLattice(10**6, bits=16),
    "no noise": lambda: SummedLattice(3).step(0.0),
    "noise that rounding leaves no room for": lambda: SummedLattice(100, bits=12).noise_std(
        DELTA, 50.0, dimension=100, error=Fraction(0)
    ),
    "values beyond the modulus": lambda: SummedLattice(3).modulus_bits(
        Fraction(10**9), noise_std=1e-3
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_no_sum_can_be_is_refused(what: str) -> None:
    with pytest.raises(InvalidParameter):
        WRONG[what]()
