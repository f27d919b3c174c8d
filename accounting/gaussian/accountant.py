"""The exact accountant of Gaussian steps.

A linear query C·x of known sensitivity with fresh normal noise is *one* Gaussian step, whatever is
computed from it: releases by a tree or a matrix factorisation A = B·C, published as B(C·x + noise),
are priced so (McKenna, Miklau, Hay, Machanavajjhala 2018; Denisov et al. 2022, also where x comes
in over time and is chosen by what was released before). Where a record enters one entry of the
stream x, C·x moves by the largest column of C, not by its operator norm, which `linear_map` takes
and which is larger. A tree is derived: nodes of one level hold disjoint records, and every level
holds them all.

>>> from functools import reduce
>>> from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
>>> from dpledger.mechanisms.sensitivity import (
...     concatenated, concatenated_disjoint, sum_of_bounded)
>>> node = sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE)
>>> levels = [reduce(concatenated_disjoint, [node] * nodes) for nodes in (4, 2, 1)]
>>> tree = GaussianStep(reduce(concatenated, levels), 4.0)
>>> accountant = GdpAccountant()
>>> accountant.add(Event(tree, Context((), 1, "all prefix sums", Audience.SERVER)))
>>> round(accountant.epsilon(1e-5).upper_float, 4)
1.698

The largest column of any other C is declared, and stands in every certificate as an assumption:

>>> import numpy as np
>>> encoder = np.tril(np.array([[1.0, 0, 0], [0.5, 1, 0], [0.375, 0.5, 1]]))
>>> column = float(np.max(np.linalg.norm(encoder, axis=0))) * (1 + 1e-12)
>>> bound = declared(column, "largest column of the encoder, times the clipping bound 1",
...                  adjacency=Adjacency.ADD_REMOVE_ONE)
>>> bool(bound.value < np.linalg.norm(encoder, 2))
True
"""

from ...mechanisms.errors import Number
from ...mechanisms.events import Mechanism
from ...mechanisms.protocols import FloatArray
from ..accountant import Accountant
from ..composition import Account
from ..numbers.enclosure import Enclosure
from .exact import delta_from_epsilon, epsilon_from_delta
from .fast import delta_upper, epsilon_upper


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
