"""Samplers: seeds reproduce bit for bit, system entropy is standard normal and never infinite.

Statistical tests of system entropy cannot fix a seed; each has a false-alarm rate of 1e-6.
"""

import os
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpledger.mechanisms import (
    BitGenerator,
    InvalidParameter,
    Provenance,
    SeededSampler,
    SystemSampler,
)

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("bits", BitGenerator)
def test_a_seed_reproduces_its_stream_bit_for_bit(bits: BitGenerator) -> None:
    first, again = SeededSampler(2**100 + 1, bits=bits), SeededSampler(2**100 + 1, bits=bits)
    for shape in ((3,), (2, 5), (), (0, 4)):
        np.testing.assert_array_equal(first.standard_normal(shape), again.standard_normal(shape))
    different = SeededSampler(2**100, bits=bits).standard_normal((8,))
    assert not np.any(different == SeededSampler(2**100 + 1, bits=bits).standard_normal((8,)))


def test_the_stream_is_numpys_own_and_moves_on() -> None:
    for bits, kind in (
        (BitGenerator.PHILOX, np.random.Philox),
        (BitGenerator.PCG64, np.random.PCG64),
        (BitGenerator.SFC64, np.random.SFC64),
    ):
        sampler, reference = SeededSampler(3, bits=bits), np.random.Generator(kind(3))
        np.testing.assert_array_equal(
            sampler.standard_normal((4, 2)), reference.standard_normal((4, 2))
        )
        np.testing.assert_array_equal(sampler.standard_normal((5,)), reference.standard_normal(5))


def test_provenance_names_the_source_and_the_seed() -> None:
    assert SeededSampler(9).provenance == Provenance("numpy-philox", 9)
    assert SeededSampler(9, bits=BitGenerator.PCG64).provenance == Provenance("numpy-pcg64", 9)
    assert SystemSampler().provenance == Provenance("system-entropy", None)


@pytest.mark.parametrize("seed", [-1, 2**128, 1.0, True, None, "1"])
def test_seeds_are_whole_numbers_of_128_bits(seed: Any) -> None:
    with pytest.raises(InvalidParameter, match="seed"):
        SeededSampler(seed)


@pytest.mark.parametrize("sampler", [SeededSampler(11), SystemSampler()], ids=["seeded", "system"])
def test_noise_is_standard_normal(sampler: Any) -> None:
    draws = sampler.standard_normal((100, 1000))
    assert draws.shape == (100, 1000)
    assert draws.dtype == np.float64
    flat = draws.ravel()
    assert stats.kstest(flat, "norm").pvalue > FALSE_ALARM
    # the sum of squares is chi-squared; a wrong scale or a cut tail shows here first
    squares = stats.chi2(flat.size).cdf(np.sum(flat**2))
    assert FALSE_ALARM / 2 < squares < 1 - FALSE_ALARM / 2
    # signs and neighbouring draws are independent
    for product in (np.sign(flat), flat[1:] * flat[:-1]):
        z = product.mean() / product.std() * np.sqrt(product.size)
        assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


def test_system_entropy_is_fresh() -> None:
    first, second = (SystemSampler().standard_normal((4, 2)) for _ in range(2))
    # 53 random bits a draw: a repetition has probability below 1e-14
    assert not np.any(first == second)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (0, -stats.norm.ppf(2.0**-54)),
        (1, stats.norm.ppf(2.0**-54)),
        (2**64 - 1, 0.0),
        (2**64 - 2, 0.0),
        (2**63, -stats.norm.ppf(0.25)),
    ],
)
def test_every_word_gives_a_finite_symmetric_value(
    word: int, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: np.full(size // 8, word, np.uint64).tobytes())
    (value,) = SystemSampler().standard_normal((1,))
    assert np.isfinite(value)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_shapes_without_entries_draw_nothing() -> None:
    assert SystemSampler().standard_normal((0, 3)).shape == (0, 3)
    assert SystemSampler().standard_normal(()).shape == ()
