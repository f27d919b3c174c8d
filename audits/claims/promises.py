"""What people promise of releases: (epsilon, delta), rho or mu."""

from dataclasses import dataclass
from typing import ClassVar

from ...accounting.numbers.enclosure import shown_in_full
from ...mechanisms.errors import InvalidParameter, require_nonnegative, require_positive

_ANY_DELTA = 1e-6
"""At which an attack looks at a promise of rho or of mu, which says something at every delta."""


class _Promised:
    """A promise of one number, which has the name of its quantity.

    The court compares `claimed` with what the releases cost in the same quantity.
    """

    __slots__ = ()

    quantity: ClassVar[str]
    """What is priced, as `Guarantee` names it."""

    @property
    def claimed(self) -> float:
        """The number that is promised."""
        return float(getattr(self, self.quantity))

    @property
    def unit(self) -> str:
        """The unit of that number, with the delta that it is meant at."""
        return self.quantity


@dataclass(frozen=True, slots=True)
class PromisedEpsilon(_Promised):
    """(epsilon, delta)-DP, pure epsilon-DP where delta is 0; epsilon >= 0, delta in [0, 1).

    Args:
        epsilon: for all releases together.
        delta: at which it is meant.
    """

    quantity: ClassVar[str] = "epsilon"

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_nonnegative("epsilon", self.epsilon)
        if not 0 <= self.delta < 1:
            raise InvalidParameter("delta", self.delta, "in [0, 1)")

    @property
    def unit(self) -> str:
        """The unit of epsilon, with its delta."""
        return f"epsilon at delta {shown_in_full(self.delta)}"


@dataclass(frozen=True, slots=True)
class PromisedRho(_Promised):
    """rho-zCDP, rho > 0 (Bun, Steinke 2016).

    Args:
        rho: for all releases together.
        delta: at which an attack looks at it; the promise itself has none.
    """

    quantity: ClassVar[str] = "rho"

    rho: float
    delta: float = _ANY_DELTA

    def __post_init__(self) -> None:
        require_positive("rho", self.rho)


@dataclass(frozen=True, slots=True)
class PromisedMu(_Promised):
    """mu-GDP, mu > 0 (Dong, Roth, Su 2022).

    Args:
        mu: for all releases together.
        delta: at which an attack looks at it; the promise itself has none.
    """

    quantity: ClassVar[str] = "mu"

    mu: float
    delta: float = _ANY_DELTA

    def __post_init__(self) -> None:
        require_positive("mu", self.mu)


OwnPromise = PromisedEpsilon | PromisedRho | PromisedMu
