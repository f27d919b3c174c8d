"""Samplers: where noise comes from, and whether it is a release's or a simulation's.

`SystemSampler` draws exact noise from the operating system: a real release. `SeededSampler` draws
the same exact noise from a recorded seed, on every platform: a run that can be repeated, by
everybody who knows the seed. `SimulationSampler` draws NumPy's floating-point noise, four times as
fast: for audits of many trials, never for a release; its provenance says so, and a ledger with a
budget refuses it.
"""

import os
from abc import ABC, abstractmethod
from dataclasses import replace
from enum import Enum
from typing import Protocol, Self

import numpy as np

from .discrete_noise import discrete_gaussian, discrete_laplace, randomised_response
from .errors import InvalidParameter, require_own_process
from .exact_bernoulli import Words
from .exact_choice import choose
from .exact_noise import LAPLACE, NORMAL
from .lattice import release_on_lattice
from .protocols import FloatArray, Provenance
from .refusals import refuse_seconds


class BitGenerator(Enum):
    """NumPy's bit generators, whose streams of 64-bit words are fixed for ever."""

    PHILOX = "philox"
    PCG64 = "pcg64"
    SFC64 = "sfc64"


_KINDS = {
    BitGenerator.PHILOX: np.random.Philox,
    BitGenerator.PCG64: np.random.PCG64,
    BitGenerator.SFC64: np.random.SFC64,
}


_TRIED = 512
"""Words that a sampler of one's own shows before it is believed."""


class Sampler(Protocol):
    """A source of noise that says where it comes from."""

    @property
    def provenance(self) -> Provenance: ...

    def gaussian(self, value: FloatArray, noise_std: float) -> FloatArray:
        """Return `value` plus independent normal noise of standard deviation `noise_std` > 0."""
        ...

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent values of the given shape, uniform on multiples of 2^-53 in (0, 1].

        So a value is at most q with probability at most q, whatever the rounding of q.
        """
        ...


class ExactSampler(ABC):
    """Noise that is exactly the noise of the theorems, made of random bits (see `lattice`)."""

    @property
    @abstractmethod
    def provenance(self) -> Provenance:
        """Where the bits come from."""

    @abstractmethod
    def words(self, count: int) -> Words:
        """Return `count` fresh words of 64 independent fair bits, as uint64 of shape (count,)."""

    def gaussian(self, value: FloatArray, noise_std: float) -> FloatArray:
        """Return `value` on the noise's lattice plus exactly rounded normal noise."""
        return release_on_lattice(value, scale=noise_std, law=NORMAL, words=self.words)

    def laplace(self, value: FloatArray, scale: float) -> FloatArray:
        """Return `value` on the noise's lattice plus exactly rounded Laplace noise."""
        return release_on_lattice(value, scale=scale, law=LAPLACE, words=self.words)

    def discrete_laplace(self, value: FloatArray, scale: float) -> FloatArray:
        """Return `value`, whole numbers, plus exact discrete Laplace noise."""
        drawn = discrete_laplace(scale, value.size, self.words)
        return np.asarray(value.astype(np.int64) + drawn.reshape(value.shape), dtype=np.float64)

    def discrete_gaussian(self, value: FloatArray, noise_std: float) -> FloatArray:
        """Return `value`, whole numbers, plus exact discrete Gaussian noise."""
        drawn = discrete_gaussian(noise_std, value.size, self.words)
        return np.asarray(value.astype(np.int64) + drawn.reshape(value.shape), dtype=np.float64)

    def randomised_response(self, value: FloatArray, truth: float, categories: int) -> FloatArray:
        """Return answers 0, ..., categories - 1, each true with exactly the probability `truth`."""
        answers = randomised_response(value.astype(np.int64), truth, categories, self.words)
        return answers.astype(np.float64)

    def choice(self, value: FloatArray, scale: float) -> FloatArray:
        """Return 1 for one of the costs in each row (..., K), drawn ∝ e^-cost/scale, else 0."""
        rows = value.reshape(-1, value.shape[-1]).astype(np.int64)
        chosen = np.zeros(rows.shape)
        for marks, costs in zip(chosen, rows, strict=True):
            marks[choose(costs, scale, self.words)] = 1.0
        return chosen.reshape(value.shape)

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent uniform values in (0, 1]."""
        words = self.words(int(np.prod(shape, dtype=np.int64)))
        return (((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53).reshape(shape)


class SystemSampler(ExactSampler):
    """Exact noise from the operating system's entropy; nobody can draw it again."""

    @property
    def provenance(self) -> Provenance:
        """The operating system."""
        return Provenance("exact-system-entropy", None)

    def words(self, count: int) -> Words:
        """Return words of the operating system's cryptographic generator."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def _require_words(name: str, number: int) -> None:
    """Raise `InvalidParameter` unless this is a whole number that a generator can be seeded by."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**128:
        raise InvalidParameter(name, number, "a whole number in [0, 2**128)")


def require_fair(sampler: Sampler) -> None:
    """Raise `InvalidParameter` unless 512 words have 64 bits, each of which is 0 and 1 somewhere.

    Words of 32 bits, as some generators of NumPy give, would make no noise of any kind. Fair ones
    are refused with a probability below 2^-504. Our own need no trial, which would take from a
    seed's stream, nor does noise that is made of no words.
    """
    if not isinstance(sampler, ExactSampler) or type(sampler).words in _OURS:
        return
    words = sampler.words(_TRIED)
    kind = getattr(words, "dtype", type(words).__name__)
    if kind != np.uint64 or np.shape(words) != (_TRIED,):
        raise InvalidParameter(
            "words", f"{kind} of shape {np.shape(words)}", f"uint64 of shape ({_TRIED},)"
        )
    stuck = int(~np.bitwise_or.reduce(words) | np.bitwise_and.reduce(words))
    if stuck:
        raise InvalidParameter(
            "words", f"{stuck.bit_count()} of 64 bits that never change", "64 fair bits each"
        )


@refuse_seconds
class _Seeded:
    """One of the streams of a recorded seed."""

    _PREFIX: str

    def __init__(self, seed: int, *, bits: BitGenerator = BitGenerator.PHILOX) -> None:
        _require_words("seed", seed)
        self._bits = _KINDS[bits](seed)
        self._provenance = Provenance(f"{self._PREFIX}-{bits.value}", seed, source=object())
        self._process = os.getpid()

    @classmethod
    def stream(cls, seed: int, *key: int, bits: BitGenerator = BitGenerator.PHILOX) -> Self:
        """Return the sampler of one of many independent streams of a seed, named by numbers.

        A number of 2**32 or more counts as its words of 32 bits, the lowest first: `5 + 3 * 2**32`
        names what `5, 3` do. Raises `InvalidParameter` unless the seed is in [0, 2**128) and the
        numbers are whole, >= 0.
        """
        _require_words("seed", seed)
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in key):
            raise InvalidParameter("key", key, "whole numbers in [0, inf)")
        sequence = np.random.SeedSequence(seed, spawn_key=key)
        high, low = (int(word) for word in sequence.generate_state(2, np.uint64))
        return cls(high << 64 | low, bits=bits)

    @property
    def provenance(self) -> Provenance:
        """The generator and its seed."""
        return self._provenance


class SeededSampler(_Seeded, ExactSampler):
    """Exact noise from a recorded seed: for runs to be repeated, the same on every platform.

    Whoever knows the seed can subtract the noise.
    """

    _PREFIX = "exact"

    def words(self, count: int) -> Words:
        """Return the next words of the seed's stream; raise `ForkedCopy` in a forked process."""
        require_own_process(self._process, "a sampler")
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)


class SimulationSampler(_Seeded):
    """NumPy's floating-point noise from a recorded seed: for simulations, never for a release.

    Its floating-point values can tell neighbours apart that ideal noise hides (Mironov 2012).
    """

    _PREFIX = "numpy"

    def __init__(self, seed: int, *, bits: BitGenerator = BitGenerator.PHILOX) -> None:
        super().__init__(seed, bits=bits)
        self._provenance = replace(self._provenance, simulation=True)
        self._generator = np.random.Generator(self._bits)

    def gaussian(self, value: FloatArray, noise_std: float) -> FloatArray:
        """Return `value` plus NumPy's normal noise, the next of the seed's stream."""
        noisy = self.standard_normal(value.shape)
        noisy *= noise_std
        noisy += value
        return noisy

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Return NumPy's N(0, 1) values of the given shape, the next of the seed's stream."""
        require_own_process(self._process, "a sampler")
        return self._generator.standard_normal(shape)

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent uniform values in (0, 1], the next of the seed's stream."""
        require_own_process(self._process, "a sampler")
        return 1.0 - self._generator.random(shape)


_OURS = (SystemSampler.words, SeededSampler.words)
"""Sources of words that need no trial."""
