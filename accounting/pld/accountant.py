"""The tight accountant: privacy profiles of dominating pairs, enclosed from both sides.

Of every composition that has pairs it gives the exact epsilon at delta, up to an enclosure's width;
where that is wide, or delta is below what a grid can hold, the Rényi accountant's bound is taken
too, and `consulted` says so, since the guarantee then rests on its theorems as well. The engine
(`privacy_profile`, `routes`) is loaded by the first event that needs it.
"""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from flint import arb

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import Number
from ...mechanisms.events import AccumulatedPoisson, Mechanism, SampledWithReplacement, adjacencies
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sensitivity import float_up
from .. import pld  # whose engine is loaded by the first event that needs it
from ..accountant import Accountant
from ..composition import Account
from ..numbers.enclosure import Enclosure, intersection
from ..renyi.accountant import RdpAccountant, WholeOrders
from .from_mechanisms import NoDominatingPair, orders_of, pairs_of
from .pairs import (
    DiscreteGaussianShift,
    DiscreteGaussianVectors,
    DominatingPair,
    GaussianShift,
    Order,
)

if TYPE_CHECKING:
    from .privacy_profile import PrivacyProfile

_LEAST_DELTA = 1e-300
"""Below it loss distributions have no digits, and Rényi DP alone answers."""

_WIDE = 1e-3
"""An enclosure relatively wider than this is narrowed by the Rényi accountant's bound."""


class TightAccountant(Accountant):
    """The privacy profile of dominating pairs, by contour or in exact integers (see `tight`).

    An answer that asked Rényi DP for help rests on its theorems as well: `consulted` names both.
    """

    name = "tight"
    method = "privacy profile of dominating pairs, enclosed in ball and integer arithmetic"
    prices = "mechanisms with a dominating pair"
    counts_members = True
    _asked_renyi = False

    @property
    def consulted(self) -> tuple[type[Accountant], ...]:
        """The Rényi accountant as well, once it was asked."""
        return (type(self), RdpAccountant) if self._asked_renyi else (type(self),)

    def _knows(self, mechanism: Mechanism) -> bool:
        """Return whether the mechanism has a dominating pair."""
        return _has_pairs(mechanism)

    def epsilon_of(self, account: Account, delta: Number) -> Enclosure:
        """Return an enclosure of ε(δ): infinite without protection, Rényi DP's where δ is below
        every grid.
        """
        if account.reasons:
            return Enclosure.of(inf)
        if delta < _LEAST_DELTA:
            self._asked_renyi = True
            return RdpAccountant().epsilon_of(account, delta)
        return self._enclosed(
            account,
            delta,
            lambda profile: _between(profile.epsilon, delta),
            lambda renyi: renyi.epsilon_of(account, delta),
        )

    def delta_of(self, account: Account, epsilon: Number) -> Enclosure:
        """Return an enclosure of δ(ε): 1 without protection, 0 at infinity."""
        if account.reasons:
            return Enclosure.of(1)
        if epsilon == inf:
            return Enclosure.of(0)
        return self._enclosed(
            account,
            None,
            lambda profile: _between(profile.delta, epsilon),
            lambda renyi: renyi.delta_of(account, epsilon),
        )

    def fast_epsilons_of(self, account: Account, deltas: FloatArray) -> FloatArray:
        """Return upper bounds on ε at deltas of shape (n,), in doubles."""
        if account.reasons:
            return np.full(deltas.shape, inf)
        # noise is split at the middle δ: all are valid
        middle = float(np.median(deltas)) if deltas.size else 0.5
        return self._profile(account, middle).epsilons_upper(deltas)

    def fast_deltas_of(self, account: Account, epsilons: FloatArray) -> FloatArray:
        """Return upper bounds on δ at epsilons of shape (n,), in doubles."""
        if account.reasons:
            return np.ones(epsilons.shape)
        return self._profile(account).deltas_upper(epsilons)

    def _enclosed(
        self,
        account: Account,
        delta: Number | None,
        of: "Callable[[PrivacyProfile], Enclosure]",
        ask: Callable[[RdpAccountant], Enclosure],
    ) -> Enclosure:
        """Return an enclosure of ε or δ: from what neighbours lose to what none exceed.

        Args:
            account: of events that all have pairs.
            delta: that is asked for, if it is known.
            of: asks a profile.
            ask: asks the Rényi accountant the same.
        """
        profile = self._profile(account, delta)
        found = _grounded(account, of(profile))
        attained = self._profile(account, delta, attained=True)
        if attained.orders == profile.orders:
            return self._narrowed(account, found, ask)
        # what pairs lose that no neighbours are is no lower end, and above what is truly lost
        above = Enclosure(arb(0), found.upper)
        if found.relative_width > _WIDE:
            above = self._narrowed(account, above, ask)
        lost = of(attained) if any(attained.orders) else Enclosure.of(0)
        return Enclosure(_grounded(account, lost).lower, above.upper)

    def _narrowed(
        self, account: Account, found: Enclosure, ask: Callable[[RdpAccountant], Enclosure]
    ) -> Enclosure:
        """Return what two accountants know together, the second asked only where it may help.

        Where a sample holds a record several times only the lower end is wide, and Rényi DP knows
        shares of the noise, or the largest shift. Orders between whole ones cost seconds: they are
        asked where the whole ones say something.
        """
        drawn = AccumulatedPoisson | SampledWithReplacement
        counted = any(isinstance(m, drawn) for m in account.others)
        if found.relative_width <= _WIDE or (counted and found.upper.is_finite()):
            return found
        self._asked_renyi = True
        quick = intersection(found, ask(WholeOrders()))
        helps = quick.upper < found.upper or not found.upper.is_finite()
        return intersection(quick, ask(RdpAccountant())) if helps else quick

    def _profile(
        self, account: Account, delta: Number | None = None, *, attained: bool = False
    ) -> "PrivacyProfile":
        """Return the privacy profile of an account, the worse of its orders at each δ.

        Args:
            account: of events that all have pairs.
            delta: that is asked for, if it is known.
            attained: whether of pairs of neighbours, rather than of those that dominate.
        """
        relations = (found for mechanism in account.others for found in adjacencies(mechanism))
        relation = next(relations, Adjacency.REPLACE_ONE)
        orders = [_pairs(account, relation, each, delta, attained) for each in orders_of(relation)]
        return pld.PrivacyProfile.of_pairs(
            *(c for i, c in enumerate(orders) if c not in orders[:i])
        )


def _pairs(
    account: Account,
    relation: Adjacency,
    order: Order,
    delta: Number | None,
    attained: bool,
) -> dict[DominatingPair, int]:
    """Return an account's pairs in one order, its Gaussian steps as one shift of known slack."""
    known = () if delta is None else (float(delta),)
    pairs = pairs_of(account.others, relation, order, *known, attained=attained)
    if attained:
        pairs = _moved_by_one(pairs)
    least, most = account.least, account.most
    if most:
        shift = GaussianShift(most, most - least if least else Fraction(0))
        pairs[shift] = pairs.get(shift, 0) + 1
    return pairs


def _moved_by_one(pairs: dict[DominatingPair, int]) -> dict[DominatingPair, int]:
    """Return what is lost where integer vectors always move as many coordinates as they can by one.

    Their pair stands above all of them, and no single choice of vectors need lose as much.
    """
    found: Counter[DominatingPair] = Counter()
    for pair, n in pairs.items():
        if isinstance(pair, DiscreteGaussianVectors):
            found[DiscreteGaussianShift(pair.sigma_squared)] += n * pair.squared
        else:
            found[pair] += n
    return found


def _between(falling: Callable[[float], Enclosure], at: Number) -> Enclosure:
    """Return an enclosure of a falling function at a number that may lie between two doubles."""
    below, above = -float_up(-at), float_up(at)
    if below == above:
        return falling(below)
    return Enclosure(falling(above).lower, falling(below).upper)


def _grounded(account: Account, found: Enclosure) -> Enclosure:
    """Return `found` without the lower end that a mu² too small to be kept does not support.

    Args:
        account: mu² of its Gaussian steps lies in [least, most].
        found: an enclosure of ε or δ.
    """
    return found if account.least or not account.most else Enclosure(arb(0), found.upper)


@lru_cache(maxsize=4096)
def _has_pairs(mechanism: Mechanism) -> bool:
    """Return whether a mechanism has a dominating pair under its own relation."""
    relation = next(adjacencies(mechanism))
    try:
        for order in orders_of(relation):
            pairs_of({mechanism: 1}, relation, order)
    except NoDominatingPair:
        return False
    return True
