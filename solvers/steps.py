"""Step sizes of the star DP-ADMM: public functions of the round.

Huang, Hu, Guo, Chan-Tin and Gong (2020), Theorems 3 and 4, with the noise written as what it is: a
gradient noise of known standard deviation. Their 4 c₁ sqrt(d k ln(1.25/δ)) / (m ε) is
sqrt(2 d k) times the gradient's noise_std at their noise multiplier sqrt(2 ln(1.25/δ))/ε.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Protocol

from ..mechanisms.errors import require_positive


class Steps(Protocol):
    """A public schedule of step sizes eta_k."""

    def step(self, round: int, *, dimension: int, gradient_noise_std: float) -> float:
        """Return eta_k > 0 for round k >= 1."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantSteps:
    """eta_k = eta."""

    size: float

    def __post_init__(self) -> None:
        require_positive("size", self.size)

    def step(self, round: int, *, dimension: int, gradient_noise_std: float) -> float:
        """Return eta."""
        return self.size


@dataclass(frozen=True, slots=True)
class SmoothSteps:
    """Theorem 4: eta_k = 1 / (smoothness + sqrt(2 d k)·gradient_noise_std / distance).

    `smoothness` is c₃ + (λ/n)c₄, a bound on the curvature of an agent's objective; `distance` is
    c_w, a public guess of ‖w*‖ (from private data it would be an unprotected release).
    """

    smoothness: float
    distance: float

    def __post_init__(self) -> None:
        require_positive("smoothness", self.smoothness)
        require_positive("distance", self.distance)

    def step(self, round: int, *, dimension: int, gradient_noise_std: float) -> float:
        """Return eta_k."""
        noise = sqrt(2.0 * dimension * round) * gradient_noise_std
        return 1.0 / (self.smoothness + noise / self.distance)


@dataclass(frozen=True, slots=True)
class NonsmoothSteps:
    """Theorem 3: eta_k = distance / sqrt(2 k (gradient_bound² + d·gradient_noise_std²)).

    `gradient_bound` is c₁ + (λ/n)c₂; `distance` is c_w, as in `SmoothSteps`.
    """

    gradient_bound: float
    distance: float

    def __post_init__(self) -> None:
        require_positive("gradient_bound", self.gradient_bound)
        require_positive("distance", self.distance)

    def step(self, round: int, *, dimension: int, gradient_noise_std: float) -> float:
        """Return eta_k."""
        size = self.gradient_bound**2 + dimension * gradient_noise_std**2
        return self.distance / sqrt(2.0 * round * size)
