"""The tight accountant: what a composition of dominating pairs costs, at every ε and δ.

>>> from fractions import Fraction
>>> from dpledger.accounting.pld.pairs import GaussianShift
>>> curve = PrivacyProfile.of_pairs({GaussianShift(Fraction(1)): 1})
>>> round(curve.epsilon(1e-5).upper_float, 10), round(curve.epsilon_upper(1e-5), 10)
(4.3771780957, 4.3771780957)

Each order of a sampled pair is composed alone; the largest value counts. Which method answers for
one order is the table of `routes`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import require_nonnegative, require_open_unit
from ...mechanisms.events import Mechanism
from ..numbers.enclosure import Enclosure, maximum
from . import routes
from .from_mechanisms import Unprotected, orders_of, pairs_of
from .pairs import DominatingPair
from .routes import Counts, Floats

_FARTHEST = 2.0**500
"""The largest ε that is asked for: δ falls, so that its δ is an upper bound beyond. Products of ε
and orders would overflow not far from there."""


@dataclass(frozen=True)
class PrivacyProfile:
    """The privacy profile of a composition; infinite where something left without protection.

    `orders` holds one composition of pairs for each order of neighbours.
    """

    orders: tuple[Counts, ...]
    unprotected: bool = False

    @classmethod
    def of_pairs(cls, *orders: Mapping[DominatingPair, int]) -> "PrivacyProfile":
        """Return the profile of pairs and how often each is composed, one mapping an order."""
        return cls(tuple(dict(counts) for counts in orders))

    @classmethod
    def of(cls, mechanisms: Mapping[Mechanism, int], adjacency: Adjacency) -> "PrivacyProfile":
        """Return the profile of mechanisms and how often each runs.

        Raises `NoDominatingPair` for a mechanism without a rule under this adjacency.
        """
        try:
            orders = [pairs_of(mechanisms, adjacency, order) for order in orders_of(adjacency)]
        except Unprotected:
            return cls((), unprotected=True)
        # without a sampled pair both orders are one
        return cls(tuple(counts for i, counts in enumerate(orders) if counts not in orders[:i]))

    def epsilon(self, delta: float) -> Enclosure:
        """Return an enclosure of ε(δ), 0 < δ < 1."""
        require_open_unit("delta", delta)
        if self.unprotected:
            return Enclosure.of(inf)
        largest = Enclosure.of(0)
        for counts in self.orders:
            if not routes.at_most(counts, delta, largest.lower):
                largest = maximum((largest, routes.epsilon(counts, delta, largest.lower)))
        return largest

    def epsilon_upper(self, delta: float) -> float:
        """Return a fast upper bound on ε(δ), 0 < δ < 1."""
        return float(self.epsilons_upper(delta))

    def delta(self, epsilon: float) -> Enclosure:
        """Return an enclosure of δ(ε), ε >= 0."""
        require_nonnegative("epsilon", epsilon)
        if self.unprotected:
            return Enclosure.of(1)
        largest, near = Enclosure.of(0), min(epsilon, _FARTHEST)
        for counts in self.orders:
            if not routes.delta_at_most(counts, near, largest.lower):
                largest = maximum((largest, routes.delta(counts, near)))
        return largest if near == epsilon else Enclosure(arb(0), largest.upper)

    def delta_upper(self, epsilon: float) -> float:
        """Return a fast upper bound on δ(ε), ε >= 0."""
        return float(self.deltas_upper(epsilon))

    def epsilons_upper(self, deltas: ArrayLike) -> Floats:
        """Return `epsilon_upper` of every δ of an array, in its shape."""
        values = np.asarray(deltas, dtype=np.float64)
        for value in values.flat:
            require_open_unit("delta", float(value))
        return self._largest_fast(values, inf, routes.epsilons_upper)

    def deltas_upper(self, epsilons: ArrayLike) -> Floats:
        """Return `delta_upper` of every ε of an array, in its shape."""
        values = np.asarray(epsilons, dtype=np.float64)
        for value in values.flat:
            require_nonnegative("epsilon", float(value))
        return self._largest_fast(np.minimum(values, _FARTHEST), 1.0, routes.deltas_upper)

    def _largest_fast(
        self, values: Floats, worst: float, answer: Callable[[Counts, Floats, Floats], Floats]
    ) -> Floats:
        """Return the largest `answer` of all orders; each is asked to go above the last only."""
        if self.unprotected:
            return np.full(values.shape, worst)
        largest = np.zeros(values.size)
        for counts in self.orders:
            largest = answer(counts, values.ravel(), largest)
        return largest.reshape(values.shape)

    def advantage_upper(self) -> float:
        """Return a bound on TPR - FPR of every attack: δ(0) (Kairouz, Oh, Viswanath 2015)."""
        return self.delta_upper(0.0)

    def beta_lower(self, alpha: ArrayLike) -> Floats:
        """Return a lower bound on the false negative rate of every test of false positive rate α.

        The largest of 1 - δ - e^ε α and e^{-ε}(1 - δ - α) over a grid of points of the curve; every
        point is valid, so the grid costs only tightness. Source: Wasserman, Zhou 2010, Theorem 2.4;
        Dong, Roth, Su 2022, Proposition 2.12.
        """
        rates = np.asarray(alpha, dtype=np.float64)[..., None]
        epsilons, deltas = self._points
        with np.errstate(over="ignore"):
            straight = 1 - deltas - np.exp(epsilons) * rates
        mirrored = np.exp(-epsilons) * (1 - deltas - rates)
        # a few ulps down, for the arithmetic of these two lines
        best = np.max(np.maximum(straight, mirrored), axis=-1)
        return np.asarray(np.maximum(best - 2.0**-48, 0.0), dtype=np.float64)

    def tpr_upper(self, fpr: ArrayLike) -> Floats:
        """Return an upper bound on the true positive rate of every attack at these FPRs."""
        return 1 - self.beta_lower(fpr)

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """Points of the curve from ε = 0 to δ = 1e-12, evenly in ε."""
        if self.unprotected:
            return np.zeros(1), np.ones(1)
        epsilons = np.linspace(0.0, self.epsilon_upper(1e-12), 513)
        return epsilons, self.deltas_upper(epsilons)
