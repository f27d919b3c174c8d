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


class Sampler(Protocol):
    """A source of standard normal noise that says where it comes from."""

    @property
    def provenance(self) -> Provenance: ...

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent N(0, 1) values of the given shape."""
        ...


class SeededSampler:
    """NumPy noise from a recorded seed: for experiments, never for a real release.

    Whoever knows the seed can subtract the noise.
    """

    def __init__(self, seed: int, *, bits: BitGenerator = BitGenerator.PHILOX) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**128:
            raise InvalidParameter("seed", seed, "a whole number in [0, 2**128)")
        kind = np.random.Philox if bits is BitGenerator.PHILOX else np.random.PCG64
        self._generator = np.random.Generator(kind(seed))
        self.provenance = Provenance(f"numpy-{bits.value}", seed)

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Return independent N(0, 1) values of the given shape, the next of the seed's stream."""
        return self._generator.standard_normal(shape)


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
