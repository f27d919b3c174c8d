"""The exact accountant of Gaussian steps."""

from ...mechanisms.errors import Number
from ...mechanisms.events import Mechanism
from ..composition import Account
from ..enclosure import Enclosure
from ..gaussian import delta_from_epsilon, epsilon_from_delta
from .accountant import Accountant

__all__ = ["GdpAccountant"]


class GdpAccountant(Accountant):
    """Gaussian steps: mu² adds up and the curve of mu is exact (Dong, Roth, Su 2022)."""

    name = "GDP"
    method = "mu-GDP composition, exact conversion in ball arithmetic"
    prices = "Gaussian steps"

    def _knows(self, mechanism: Mechanism) -> bool:
        return False

    def _epsilon(self, account: Account, delta: Number) -> Enclosure:
        return epsilon_from_delta(mu_squared=account.mu_squared, delta=delta)

    def _delta(self, account: Account, epsilon: Number) -> Enclosure:
        return delta_from_epsilon(mu_squared=account.mu_squared, epsilon=epsilon)
