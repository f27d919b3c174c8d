"""The loss above those of all integer vectors: exact sums over outcomes, and two programs of it."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, isqrt

import mpmath
import pytest
from flint import arb
from tests.parameters import slow

from dpledger.accounting.check import integer_vectors
from dpledger.accounting.check.normal import Normal
from dpledger.accounting.numbers.enclosure import ball_of, precision
from dpledger.accounting.pld.lattices import lattice_of, sums_of_squares
from dpledger.accounting.pld.moments_certified import real_moment
from dpledger.accounting.pld.pairs import DiscreteGaussianVectors
from dpledger.accounting.pld.profiles import delta_of, tails_of

BITS = 160
ROUNDING = mpmath.mpf("1e-20")
VARIANCES = [Fraction(1, 4), Fraction(1), Fraction(9, 4)]


@cache
def noise(variance: Fraction) -> dict[int, mpmath.mpf]:
    """Return the masses of discrete Gaussian noise, but for about e^-60."""
    s2 = mpmath.mpf(variance.numerator) / variance.denominator
    reach = 2 + isqrt(120 * ceil(variance))
    weight = {k: mpmath.exp(-mpmath.mpf(k * k) / (2 * s2)) for k in range(-reach, reach + 1)}
    total = mpmath.fsum(weight.values())
    return {k: w / total for k, w in weight.items()}


@cache
def sums(vector: tuple[int, ...], variance: Fraction) -> dict[int, mpmath.mpf]:
    """Return the masses of <v, K> above e^-60."""
    if not vector:
        return {0: mpmath.mpf(1)}
    grown: dict[int, mpmath.mpf] = {}
    for j, mass in sums(vector[1:], variance).items():
        for k, one in noise(variance).items():
            grown[j + vector[0] * k] = grown.get(j + vector[0] * k, 0) + mass * one
    return {j: mass for j, mass in grown.items() if mass > mpmath.exp(-60)}


def lost(vector: tuple[int, ...], variance: Fraction, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Return δ(ε) between two data sets that a vector moves apart, by a sum over <v, K>."""
    s2 = mpmath.mpf(variance.numerator) / variance.denominator
    squared = sum(moved * moved for moved in vector)
    losses = {j: (squared + 2 * j) / (2 * s2) for j in sums(vector, variance)}
    total = mpmath.fsum(
        mass * -mpmath.expm1(epsilon - losses[j])
        for j, mass in sums(vector, variance).items()
        if losses[j] > epsilon
    )
    return mpmath.mpf(total)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("squared", [4, 5, 9, *slow(25)])
def test_no_integer_vector_loses_more(variance: Fraction, squared: int) -> None:
    """Of all vectors up to a squared length, in up to three coordinates or of equal entries."""
    pair = DiscreteGaussianVectors(variance, squared)
    short = {
        tuple(sorted(x for x in vector if x))
        for vector in product(range(isqrt(squared) + 1), repeat=3)
        if 0 < sum(x * x for x in vector) <= squared
    }
    with mpmath.workdps(40):
        for epsilon in ("0", "0.3", "1.7", "4.5"):
            with precision(BITS):
                bound = delta_of(pair, arb(epsilon)).upper()
                highest = mpmath.mpf(bound.str(30, radius=False))
            for vector in short | {(1,) * n for n in range(1, squared + 1)}:
                assert lost(vector, variance, mpmath.mpf(epsilon)) <= highest * (1 + ROUNDING)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("squared", [4, 5, 9])
def test_where_the_loss_lies_one_vector_loses_as_much(variance: Fraction, squared: int) -> None:
    pair = DiscreteGaussianVectors(variance, squared)
    with mpmath.workdps(40):
        for k in range(3):
            exact = (squared % 2 + 2 * k) / (2 * variance)
            epsilon = mpmath.mpf(exact.numerator) / exact.denominator
            most = max(lost(v, variance, epsilon) for v in sums_of_squares(squared))
            with precision(BITS):
                found = delta_of(pair, ball_of(exact)) if exact else delta_of(pair, arb(0))
            assert abs(mpmath.mpf(found.mid().str(30, radius=False)) / most - 1) < ROUNDING


@pytest.mark.parametrize("squared", [4, 5, 9, 16, 25])
def test_the_checker_finds_the_same_loss(squared: int) -> None:
    for variance in (Fraction(1), Fraction(25)):
        checked = integer_vectors.DiscreteGaussianVectors(variance, squared)
        pair, normal = DiscreteGaussianVectors(variance, squared), Normal(BITS, lambda units: None)
        for k in range(-40, 41):
            found = checked.below(k * checked.unit, (0, 0), normal)
            with precision(BITS):
                # a hair above, where a ball can be told from the values of the loss
                above = tails_of(pair, ball_of(k * checked.unit) + arb("1e-30"))
            for (low, high), tail in zip(found, above, strict=True):
                with precision(4 * BITS):
                    assert arb(low) / arb(2) ** BITS <= (1 - tail).upper()
                    assert arb(high) / arb(2) ** BITS >= (1 - tail).lower()
                assert high - low <= 1 << 16


def test_both_count_the_same_vectors() -> None:
    for squared in range(1, integer_vectors.MAX_SQUARED + 1):
        ours = set(sums_of_squares(squared))
        assert ours == set(integer_vectors.sums_of_squares(squared, squared))
        assert all(sum(x * x for x in vector) == squared for vector in ours)
    assert [len(list(sums_of_squares(n))) for n in (4, 9, 16, 25)] == [2, 4, 8, 19]


@pytest.mark.parametrize("order", [0.5, 2.0, 7.25])
def test_moments_are_sums_over_the_losses(order: float) -> None:
    """And at most the Gaussian's, times the number of vectors, to which each of them is at most."""
    pair = DiscreteGaussianVectors(Fraction(4), 9)
    with precision(BITS):
        lattice = lattice_of(pair, 400)
        losses = [lattice.unit * (lattice.first + 2 * k) for k in range(len(lattice.masses))]
        summed = sum(
            (m * (order * x).exp() for m, x in zip(lattice.masses, losses, strict=True)), arb(0)
        )
        found = real_moment(pair, order)
        assert found.overlaps(summed)
        assert found.rad() < found * arb("1e-20")
        assert abs(sum(lattice.masses, arb(0)) - 1) < arb("1e-40")
