"""Samplers: seeds reproduce bit for bit, noise is standard normal, provenance says what it is.

Statistical tests of system entropy cannot fix a seed; each has a false-alarm rate of 1e-6.
"""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpledger.mechanisms import (
    BitGenerator,
    ExactSampler,
    InvalidParameter,
    Provenance,
    Sampler,
    SeededSampler,
    SimulationSampler,
    SystemSampler,
)

FALSE_ALARM = 1e-6


def noise(sampler: Sampler, *shape: int) -> np.ndarray:
    return sampler.gaussian(np.zeros(shape), 1.0)


@pytest.mark.parametrize("kind", [SeededSampler, SimulationSampler])
@pytest.mark.parametrize("bits", BitGenerator)
def test_a_seed_reproduces_its_stream_bit_for_bit(kind: Any, bits: BitGenerator) -> None:
    first, again = (kind(2**100 + 1, bits=bits) for _ in range(2))
    for shape in ((3,), (2, 5), (), (0, 4)):
        np.testing.assert_array_equal(noise(first, *shape), noise(again, *shape))
        np.testing.assert_array_equal(first.uniform(shape), again.uniform(shape))
    different, same = kind(2**100, bits=bits), kind(2**100 + 1, bits=bits)
    assert not np.any(noise(different, 8) == noise(same, 8))


@pytest.mark.parametrize("kind", [SeededSampler, SimulationSampler])
def test_streams_of_a_seed_are_named_by_numbers(kind: Any) -> None:
    drawn = {key: tuple(noise(kind.stream(4, *key), 3)) for key in ((), (0,), (1,), (0, 1), (1, 0))}
    assert len(set(drawn.values())) == len(drawn)
    assert drawn[0, 1] == tuple(noise(kind.stream(4, 0, 1), 3))


def test_exact_noise_of_a_seed_is_the_same_for_ever() -> None:
    drawn = noise(SeededSampler(7), 3)
    assert [float(number).hex() for number in drawn] == [
        "0x1.78046c3e44c58p+0",
        "-0x1.368bf25efca7cp+1",
        "-0x1.73b1799881d00p-2",
    ]


@pytest.mark.parametrize("key", [(1, -1), (2**128, 0), (-1, 0), (1, 0.5), (1, True)])
def test_a_stream_that_no_generator_can_name_is_refused(key: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"whole numbers? in \[0"):
        SeededSampler.stream(*key)


def test_simulations_draw_numpys_own_stream_and_move_on() -> None:
    for bits, kind in (
        (BitGenerator.PHILOX, np.random.Philox),
        (BitGenerator.PCG64, np.random.PCG64),
        (BitGenerator.SFC64, np.random.SFC64),
    ):
        sampler, reference = SimulationSampler(3, bits=bits), np.random.Generator(kind(3))
        np.testing.assert_array_equal(noise(sampler, 4, 2), reference.standard_normal((4, 2)))
        np.testing.assert_array_equal(
            sampler.gaussian(np.ones(5), 3.0), 3.0 * reference.standard_normal(5) + 1.0
        )


def test_provenance_names_the_source_and_the_seed() -> None:
    assert SeededSampler(9).provenance == Provenance("exact-philox", 9)
    assert SeededSampler(9, bits=BitGenerator.PCG64).provenance == Provenance("exact-pcg64", 9)
    assert SystemSampler().provenance == Provenance("exact-system-entropy", None)
    simulated = SimulationSampler(9).provenance
    assert simulated == Provenance("numpy-philox", 9, simulation=True)
    assert not simulated.is_release
    assert SeededSampler(9).provenance.is_release
    assert not Provenance("exact-philox", 9, trials=1).is_release


@pytest.mark.parametrize("seed", [-1, 2**128, 1.0, True, None, "1"])
def test_seeds_are_whole_numbers_of_128_bits(seed: Any) -> None:
    with pytest.raises(InvalidParameter, match="seed"):
        SeededSampler(seed)


@pytest.mark.parametrize(
    "sampler",
    [SeededSampler(11), SystemSampler(), SimulationSampler(11)],
    ids=["seeded", "system", "simulation"],
)
def test_noise_is_standard_normal(sampler: Sampler) -> None:
    draws = noise(sampler, 100, 1000)
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


@pytest.mark.parametrize("sampler", [SeededSampler(12), SystemSampler()], ids=["seeded", "system"])
def test_laplace_noise_has_its_scale_and_law(sampler: ExactSampler) -> None:
    draws = sampler.laplace(np.full((100, 1000), 5.0), 0.25)
    assert stats.kstest(4.0 * (draws.ravel() - 5.0), "laplace").pvalue > FALSE_ALARM


@pytest.mark.parametrize("sampler", [SeededSampler(13), SystemSampler()], ids=["seeded", "system"])
def test_lottery_numbers_are_uniform_multiples_and_never_zero(sampler: ExactSampler) -> None:
    drawn = sampler.uniform((200, 500))
    assert stats.kstest(drawn.ravel(), "uniform").pvalue > FALSE_ALARM
    assert drawn.min() > 0.0
    assert drawn.max() <= 1.0
    np.testing.assert_array_equal(drawn * 2.0**53, np.rint(drawn * 2.0**53))


def test_system_entropy_is_fresh() -> None:
    first, second = (noise(SystemSampler(), 4, 2) for _ in range(2))
    # 45 random bits a draw: a repetition has probability below 1e-11
    assert not np.any(first == second)


@pytest.mark.parametrize("sampler", [SeededSampler(1), SystemSampler()], ids=["seeded", "system"])
def test_shapes_without_entries_draw_nothing(sampler: ExactSampler) -> None:
    assert noise(sampler, 0, 3).shape == (0, 3)
    assert noise(sampler).shape == ()
