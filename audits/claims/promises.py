"""What people promise of releases: (epsilon, delta), rho or mu."""

from dataclasses import dataclass

from ...mechanisms.errors import InvalidParameter, require_nonnegative, require_positive

__all__ = ["OwnPromise", "PromisedEpsilon", "PromisedMu", "PromisedRho"]

# rho and mu do not depend on it
_SOME_DELTA = 1e-6


@dataclass(frozen=True, slots=True)
class PromisedEpsilon:
    """(epsilon, delta)-DP, pure epsilon-DP where delta is 0."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_nonnegative("epsilon", self.epsilon)
        if not 0 <= self.delta < 1:
            raise InvalidParameter("delta", self.delta, "in [0, 1)")

    @property
    def claimed(self) -> float:
        """epsilon."""
        return self.epsilon

    @property
    def unit(self) -> str:
        """Of what is claimed."""
        return f"epsilon at delta {self.delta:g}"

    @property
    def quantity(self) -> str:
        """What is priced."""
        return "epsilon"


@dataclass(frozen=True, slots=True)
class PromisedRho:
    """rho-zCDP."""

    rho: float
    delta: float = _SOME_DELTA

    def __post_init__(self) -> None:
        require_positive("rho", self.rho)

    @property
    def claimed(self) -> float:
        """rho."""
        return self.rho

    @property
    def unit(self) -> str:
        """Of what is claimed."""
        return "rho"

    @property
    def quantity(self) -> str:
        """What is priced."""
        return "rho"


@dataclass(frozen=True, slots=True)
class PromisedMu:
    """mu-GDP."""

    mu: float
    delta: float = _SOME_DELTA

    def __post_init__(self) -> None:
        require_positive("mu", self.mu)

    @property
    def claimed(self) -> float:
        """mu."""
        return self.mu

    @property
    def unit(self) -> str:
        """Of what is claimed."""
        return "mu"

    @property
    def quantity(self) -> str:
        """What is priced."""
        return "mu"


OwnPromise = PromisedEpsilon | PromisedRho | PromisedMu
