"""Samplers of noise: reproducible for experiments, the operating system's for real releases."""

import os
from enum import Enum
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from .errors import InvalidParameter
from .protocols import FloatArray, Provenance

__all__ = ["BitGenerator", "Sampler", "SeededSampler", "SystemSampler"]


class BitGenerator(Enum):
    """NumPy's bit generators that experiments may use."""

    PHILOX = "philox"
    PCG64 = "pcg64"
    SFC64 = "sfc64"


_KINDS = {
    BitGenerator.PHILOX: np.random.Philox,
    BitGenerator.PCG64: np.random.PCG64,
    BitGenerator.SFC64: np.random.SFC64,
}


class Sampler(Protocol):
    """A source of standard normal noise that says where it comes from."""

    @property
    def provenance(self) -> Provenance: ...

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent N(0, 1) values of the given shape."""
        ...

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent values of the given shape, uniform on multiples of 2^-53 in (0, 1].

        So a value is at most q with probability at most q, whatever the rounding of q.
        """
        ...


class SeededSampler:
    """NumPy noise from a recorded seed: for experiments, never for a real release.

    Whoever knows the seed can subtract the noise.
    """

    def __init__(self, seed: int, *, bits: BitGenerator = BitGenerator.PHILOX) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**128:
            raise InvalidParameter("seed", seed, "a whole number in [0, 2**128)")
        self._generator = np.random.Generator(_KINDS[bits](seed))
        self.provenance = Provenance(f"numpy-{bits.value}", seed)

    @classmethod
    def stream(
        cls, seed: int, *key: int, bits: BitGenerator = BitGenerator.PHILOX
    ) -> "SeededSampler":
        """Return the sampler of one of many independent streams of a seed, named by numbers."""
        sequence = np.random.SeedSequence(seed, spawn_key=key)
        high, low = (int(word) for word in sequence.generate_state(2, np.uint64))
        return cls(high << 64 | low, bits=bits)

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent N(0, 1) values of the given shape, the next of the seed's stream."""
        return self._generator.standard_normal(shape)

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent uniform values in (0, 1], the next of the seed's stream."""
        return 1.0 - self._generator.random(shape)


class SystemSampler:
    """Noise from the operating system's entropy, by inversion; nobody can draw it again.

    Each value inverts a 53-bit uniform, so tails end at 8.3 standard deviations and values lie on a
    floating-point grid: the report names this under numerics not covered.
    """

    provenance = Provenance("system-entropy", None)

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent N(0, 1) values of the given shape."""
        count = int(np.prod(shape, dtype=np.int64))
        words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        # 52 bits and a half are exact; 53 would round up to 1, whose normal quantile is infinite
        lower_half = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
        signs = np.where(words & np.uint64(1), 1.0, -1.0)
        return np.asarray(signs * ndtri(lower_half), dtype=np.float64).reshape(shape)

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent uniform values in (0, 1]."""
        count = int(np.prod(shape, dtype=np.int64))
        words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        return (((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53).reshape(shape)
