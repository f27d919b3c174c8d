"""The exact accountant of Gaussian steps."""

from ...mechanisms.errors import Number
from ...mechanisms.events import Mechanism
from ...mechanisms.protocols import FloatArray
from ..composition import Account
from ..enclosure import Enclosure
from ..gaussian import delta_from_epsilon, epsilon_from_delta
from ..gaussian_fast import delta_upper, epsilon_upper
from .accountant import Accountant

__all__ = ["GdpAccountant"]


class GdpAccountant(Accountant):
    """Gaussian steps: mu² adds up and the curve of mu is exact (Dong, Roth, Su 2022)."""

    name = "GDP"
    method = "mu-GDP composition, exact conversion in ball arithmetic"
    prices = "Gaussian steps"

    def _knows(self, mechanism: Mechanism) -> bool:
        return False

    def epsilon_of(self, account: Account, delta: Number) -> Enclosure:
        return epsilon_from_delta(mu_squared=account.mu_squared, delta=delta)

    def delta_of(self, account: Account, epsilon: Number) -> Enclosure:
        return delta_from_epsilon(mu_squared=account.mu_squared, epsilon=epsilon)

    def fast_epsilons_of(self, account: Account, deltas: FloatArray) -> FloatArray:
        return epsilon_upper(mu_squared=account.mu_squared, delta=deltas)

    def fast_deltas_of(self, account: Account, epsilons: FloatArray) -> FloatArray:
        return delta_upper(mu_squared=account.mu_squared, epsilon=epsilons)
