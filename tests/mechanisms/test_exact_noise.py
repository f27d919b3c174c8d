"""Exact noise: its law is the rounded ideal one, decisions are those of real arithmetic.

Statistical tests have fixed seeds and a false-alarm rate of 1e-6 each, should a seed change.
"""

import hashlib
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpledger.mechanisms import exact_noise
from dpledger.mechanisms.exact_bernoulli import (
    EXP_ERROR,
    UniformReal,
    Words,
    WordSource,
    exp_minus,
    exp_minus_bounds,
)
from dpledger.mechanisms.exact_noise import LAPLACE, NORMAL, Integers, Law, rounded_deviates
from dpledger.mechanisms.lattice import LATTICE_BITS

FALSE_ALARM = 1e-6
LAWS = pytest.mark.parametrize("law", [NORMAL, LAPLACE], ids=["normal", "laplace"])
FAST, SLOW = 10**6, 10**8


def words_of(seed: int) -> WordSource:
    return np.random.PCG64(seed).random_raw


def tail(law: Law, z: float) -> mpmath.mpf:
    """Return the ideal probability of exceeding z >= 0, to 30 digits."""
    with mpmath.workdps(30):
        if law is NORMAL:
            return mpmath.ncdf(-mpmath.mpf(z))
        return mpmath.exp(-mpmath.mpf(z)) / 2


def chi_squared_p(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Return the p-value of Pearson's statistic, cells of the last probability closing to 1."""
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    expected = probabilities * counts.sum()
    assert expected.min() > 5
    return float(stats.chi2(len(counts) - 1).sf(np.sum((counts - expected) ** 2 / expected)))


# Decisions ---------------------------------------------------------------------------------------


def test_the_exponential_in_doubles_is_as_near_as_it_says() -> None:
    gamma = np.concatenate([np.linspace(0.0, 30.0, 3001), 2.0 ** np.arange(-60, 10), [32 / 3]])
    for g, found in zip(gamma, exp_minus(gamma), strict=True):
        assert abs(mpmath.mpf(found) - mpmath.exp(-mpmath.mpf(g))) <= EXP_ERROR


@pytest.mark.parametrize("digits", [40, 60, 100])
def test_decimal_enclosures_contain_the_exponential_and_are_narrow(digits: int) -> None:
    rng = np.random.default_rng(1)
    with mpmath.workdps(2 * digits):
        for number in rng.uniform(0, 40, 50):
            gamma = Fraction(number) / 7
            low, high = exp_minus_bounds((gamma, gamma), digits)
            true = mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator)
            assert mpmath.mpf(low.numerator) / low.denominator <= true
            assert true <= mpmath.mpf(high.numerator) / high.denominator
            assert high - low <= 4 * high / 10**digits


@LAWS
def test_whole_parts_have_the_probabilities_of_the_density_at_whole_numbers(law: Law) -> None:
    with mpmath.workdps(60):
        weights = [mpmath.exp(-(mpmath.mpf(i) ** 2) / 2) for i in range(40)]
        if law is LAPLACE:
            weights = [mpmath.exp(-mpmath.mpf(i)) for i in range(200)]
        for k in range(30):
            true = mpmath.fsum(weights[: k + 1]) / mpmath.fsum(weights)
            low, high = law.below(k, 40)
            assert mpmath.mpf(low.numerator) / low.denominator <= true
            assert true <= mpmath.mpf(high.numerator) / high.denominator
            assert high - low < Fraction(1, 10**35)
            if k < len(law.thresholds):
                assert law.thresholds[k] == int(true * 2**32)
    assert law.thresholds[-1] == 2**32 - 1


def test_a_uniform_draws_bits_until_it_is_told_from_the_bound() -> None:
    third = (Fraction(1, 3), Fraction(1, 3))
    leading = (1 << 32) // 3  # 1/3 lies in [leading, leading + 1)·2^-32
    remainder = (1 << 96) // 3 - (leading << 64)
    for words, expected in (
        ([remainder - 1], True),
        ([remainder + 1], False),
        ([remainder, 0], True),
        ([remainder, 2**64 - 1], False),
    ):
        left = iter(words)

        def draw(count: int, left: object = left) -> Words:
            return np.array([next(left)], dtype=np.uint64)  # type: ignore[call-overload]

        assert UniformReal(leading, 32).is_below(lambda _: third, draw) is expected
        assert next(left, None) is None


@LAWS
def test_doubles_decide_as_exact_arithmetic_does(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    by_doubles = rounded_deviates(law, 1000, LATTICE_BITS, words_of(5))
    exact = 0

    def decide(*given: object) -> tuple[int, bool]:
        nonlocal exact
        exact += 1
        return real(*given)  # type: ignore[arg-type]

    real = exact_noise._decide
    monkeypatch.setattr(exact_noise, "_decide", decide)
    monkeypatch.setattr(exact_noise, "_DOUBT", 2.0)
    np.testing.assert_array_equal(
        rounded_deviates(law, 1000, LATTICE_BITS, words_of(5)), by_doubles
    )
    assert exact > 1000


@LAWS
@pytest.mark.parametrize("k", [0, 1, 3])
def test_words_on_a_threshold_are_decided_by_further_words(law: Law, k: int) -> None:
    low, _ = law.below(k, 60)
    leading, rest = divmod(int(low * 2**96), 2**64)
    for further, whole in ((rest - 1, k), (rest + 1, k + 1)):
        # fraction 0 is accepted by any uniform but 1: e^-(L(k) - L(k)) = 1
        first = np.array([1, leading << 32], dtype=np.uint64)
        more = iter([further])

        def draw(count: int, first: Words = first, more: object = more) -> Words:
            if count == 2:
                return first
            return np.array([next(more)], dtype=np.uint64)  # type: ignore[call-overload]

        found = exact_noise._accepted(law, 1, 10, draw)
        assert found.tolist() == [-whole << 10]
        assert next(more, None) is None


def test_undecided_acceptances_draw_bits_of_both_reals() -> None:
    # k = 1, x a half: accepted where U < e^-(1/2 + 1/8) = e^-0.625; U begins as that does
    low, _ = exp_minus_bounds((Fraction(5, 8), Fraction(5, 8)), 60)
    choosing, drawn = int(NORMAL.thresholds[0]) + 1, []
    for last, count in ((0, 1), (2**64 - 1, 0)):
        words = np.array([1 << 63, choosing << 32 | int(low * 2**32)], dtype=np.uint64)

        def draw(wanted: int, words: Words = words, last: int = last) -> Words:
            drawn.append(wanted)
            return words if wanted == 2 else np.array([last], dtype=np.uint64)

        assert len(exact_noise._accepted(NORMAL, 1, 4, draw)) == count
    assert drawn.count(1) >= 4  # at least one for U and one for x, both times


# The law -----------------------------------------------------------------------------------------


@LAWS
@pytest.mark.parametrize("shift", [0, 1, 4])
def test_cells_have_the_ideal_probabilities(law: Law, shift: int) -> None:
    drawn = rounded_deviates(law, FAST, shift, words_of(10 + shift))
    last = 4 << shift
    inner = [
        2 * tail(law, 0.5 / 2**shift) if j == 0 else tail(law, (abs(j) - 0.5) / 2**shift)
        for j in range(-last, last + 1)
    ]
    cells = [
        1 - float(inner[i])
        if i == last
        else float(inner[i] - tail(law, (abs(i - last) + 0.5) / 2**shift))
        for i in range(2 * last + 1)
    ]
    outside = float(2 * tail(law, (last + 0.5) / 2**shift))
    held = np.clip(drawn, -last - 1, last + 1)
    counts = np.bincount(held + last + 1, minlength=2 * last + 3)
    counts = np.append(counts[1:-1], counts[0] + counts[-1])
    assert chi_squared_p(counts, np.append(cells, outside)) > FALSE_ALARM


def bins_and_low_bits(law: Law, drawn: Integers, cells: int, bits: int) -> np.ndarray:
    """Return counts over bins of equal ideal probability, by the low bits of the integer."""
    deviate = stats.norm if law is NORMAL else stats.laplace
    edges = deviate.ppf(np.arange(1, cells) / cells)
    place = np.searchsorted(edges, drawn * 2.0**-LATTICE_BITS)
    low = drawn & ((1 << bits) - 1)
    return np.bincount((place << bits) + low, minlength=cells << bits)


def assert_law_at_the_shipped_shift(law: Law, chunks: int, size: int, cells: int) -> None:
    counts = np.zeros(cells << 3, dtype=np.int64)
    words = words_of(44)
    for _ in range(chunks):
        counts += bins_and_low_bits(law, rounded_deviates(law, size, LATTICE_BITS, words), cells, 3)
    assert chi_squared_p(counts, np.full(cells << 3, 1 / (cells << 3))) > FALSE_ALARM


@LAWS
def test_bins_and_low_bits_are_uniform_at_the_shipped_shift(law: Law) -> None:
    assert_law_at_the_shipped_shift(law, 1, FAST, 50)


@LAWS
@pytest.mark.slow
def test_fine_bins_and_low_bits_are_uniform_at_the_shipped_shift(law: Law) -> None:
    assert_law_at_the_shipped_shift(law, SLOW // FAST, FAST, 5000)


@pytest.mark.slow
def test_tails_are_not_cut() -> None:
    # 5.5 standard deviations are exceeded 3.8 times in 1e8
    words, beyond, far = words_of(9), np.zeros(4, dtype=np.int64), np.array([3.0, 4.0, 5.0, 5.5])
    for _ in range(SLOW // FAST):
        size = np.abs(rounded_deviates(NORMAL, FAST, LATTICE_BITS, words)) * 2.0**-LATTICE_BITS
        beyond += [np.count_nonzero(size > z) for z in far]
    for count, z in zip(beyond, far, strict=True):
        expected = stats.poisson(SLOW * 2 * float(tail(NORMAL, float(z))))
        assert expected.cdf(count) > FALSE_ALARM
        assert expected.sf(count - 1) > FALSE_ALARM


def test_an_independent_sampler_agrees() -> None:
    drawn = rounded_deviates(NORMAL, 200_000, LATTICE_BITS, words_of(3)) * 2.0**-LATTICE_BITS
    other = np.random.default_rng(3).standard_normal(200_000)
    assert stats.ks_2samp(drawn, other).pvalue > FALSE_ALARM
    # neighbours in the stream are independent, across chunks too
    for product in (np.sign(drawn), drawn[1:] * drawn[:-1], drawn[16384:] * drawn[:-16384]):
        z = product.mean() / product.std() * np.sqrt(product.size)
        assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


# Words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "digest"),
    [
        (NORMAL, "f95a134033e41c1ebc20431f58624e676ccf71bcc3e48c67cf1e9c5d518f3414"),
        (LAPLACE, "6387f4affce822c72d58404c2db26b7dc24281a30155cd1256564b184471a231"),
    ],
    ids=["normal", "laplace"],
)
def test_the_same_words_give_these_integers_for_ever(law: Law, digest: str) -> None:
    drawn = rounded_deviates(law, 100_000, LATTICE_BITS, words_of(1)).astype("<i8")
    assert hashlib.sha256(drawn.tobytes()).hexdigest() == digest


def test_words_without_end_are_not_needed() -> None:
    drawn = 0

    def draw(count: int) -> Words:
        nonlocal drawn
        drawn += count
        return words_of(drawn)(count)

    rounded_deviates(NORMAL, 100_000, 44, draw)
    # two words an attempt, of which √(π/2)/Σ e^(-i²/2) = 0.7148 succeed
    assert drawn / 100_000 < 2 / 0.7148 * 1.05


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 2, 2**64 - 1])
def test_extreme_words_give_integers(word: int) -> None:
    usual = words_of(0)
    first = True

    def draw(count: int) -> Words:
        nonlocal first
        found = np.full(count, word, dtype=np.uint64) if first else usual(count)
        first = False
        return found

    assert rounded_deviates(NORMAL, 3, 61, draw).shape == (3,)


@pytest.mark.parametrize("shift", [-1, 62])
def test_shifts_without_bits_are_refused(shift: int) -> None:
    with pytest.raises(ValueError, match=r"shift=.* must be in \[0, 61\]"):
        rounded_deviates(NORMAL, 1, shift, words_of(0))


def test_no_integers_take_no_words() -> None:
    assert rounded_deviates(NORMAL, 0, LATTICE_BITS, words_of(0)).shape == (0,)
