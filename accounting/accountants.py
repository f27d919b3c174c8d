"""Accountants: what events cost, behind one interface.

>>> from dpledger.mechanisms import (
...     Adjacency, Audience, Context, Event, GaussianStep, PoissonSampled, Repeated, declared)
>>> step = GaussianStep(declared(1, "clipped", adjacency=Adjacency.ADD_REMOVE_ONE), 1.0)
>>> sampled = Repeated(PoissonSampled(step, 0.01), 1000)
>>> accountant = RdpAccountant()
>>> accountant.add(Event(sampled, Context((), 1, "gradients", Audience.SERVER)))
>>> round(accountant.epsilon(1e-5).upper_float, 3)
2.101
"""

from collections.abc import Iterable

from .accountant import Accountant, PrivacyCurve
from .composition import Account, Composition, UnpricedMechanism
from .gaussian.accountant import GdpAccountant
from .pld.accountant import TightAccountant
from .renyi.accountant import MomentsAccountant, RdpAccountant, ZcdpAccountant
from .renyi.amplification import in_groups

__all__ = [
    "Accountant",
    "GdpAccountant",
    "MomentsAccountant",
    "PrivacyCurve",
    "RdpAccountant",
    "TightAccountant",
    "ZcdpAccountant",
    "tightest_accountant",
    "tightest_pricing",
]


def tightest_pricing(accounts: Iterable[Account]) -> Accountant:
    """Return an empty accountant, that with the least epsilon of those that price all accounts.

    Raises `UnpricedMechanism` where none does.
    """
    listed = tuple(accounts)
    for accountant in (GdpAccountant(), TightAccountant()):
        try:
            accountant.require_accounts(listed)
        except UnpricedMechanism:
            continue
        return accountant
    least = RdpAccountant()
    least.require_accounts(listed)
    return least


def tightest_accountant(composition: Composition, *, group: int = 1) -> Accountant:
    """Return the accountant of `tightest_pricing`, which goes on with a composition.

    Args:
        composition: of what one record pays.
        group: how many records will be asked about together: not every accountant that prices a
            shift prices its multiples, and what is no longer hidden in a group has no cost at all.
    """
    single = [account for _, account in composition.accounts]
    grouped = [in_groups(account, group) for account in single]
    return tightest_pricing([*single, *grouped]).with_composition(composition)
