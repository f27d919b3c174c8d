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

from ..composition import Composition, UnpricedMechanism
from .accountant import Accountant, PrivacyCurve
from .gdp import GdpAccountant
from .renyi import MomentsAccountant, RdpAccountant, ZcdpAccountant
from .tight import TightAccountant

__all__ = [
    "Accountant",
    "GdpAccountant",
    "MomentsAccountant",
    "PrivacyCurve",
    "RdpAccountant",
    "TightAccountant",
    "ZcdpAccountant",
    "tightest_accountant",
]


def tightest_accountant(composition: Composition) -> Accountant:
    """Return the accountant with the least epsilon of those that price all of a composition.

    Raises `UnpricedMechanism` where none does.
    """
    for kind in (GdpAccountant, TightAccountant):
        try:
            return kind.over(composition)
        except UnpricedMechanism:
            continue
    return RdpAccountant.over(composition)
