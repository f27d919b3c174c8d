"""Trees and matrix factorisations: a linear query of known sensitivity is one Gaussian step."""

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from dpledger.accounting.accountants import (
    Accountant,
    GdpAccountant,
    RdpAccountant,
    TightAccountant,
    ZcdpAccountant,
)
from dpledger.accounting.guarantees import guarantee
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
)
from dpledger.mechanisms.operator_norm import operator_norm_up
from dpledger.mechanisms.protocols import FloatArray
from dpledger.mechanisms.sensitivity import (
    Sensitivity,
    concatenated,
    concatenated_disjoint,
    linearly_mapped,
    sum_of_bounded,
)

ADD = Adjacency.ADD_REMOVE_ONE


def tree_matrix(leaves: int) -> FloatArray:
    """Return the rows of all nodes of a binary tree over the leaves, a power of two."""
    sizes = [2**k for k in range(leaves.bit_length())]
    return np.vstack([np.kron(np.eye(leaves // size), np.ones(size)) for size in sizes])


def tree_sensitivity(leaves: int) -> Sensitivity:
    node = sum_of_bounded(1, ADD)
    sizes = [2**k for k in range(leaves.bit_length())]
    levels = [reduce(concatenated_disjoint, [node] * (leaves // size)) for size in sizes]
    return reduce(concatenated, levels)


@pytest.mark.parametrize("leaves", [1, 2, 8, 64])
def test_a_tree_moves_by_its_largest_column(leaves: int) -> None:
    matrix = tree_matrix(leaves)
    derived = tree_sensitivity(leaves)
    assert derived.squared == Fraction(float(np.max(np.sum(matrix**2, axis=0))))
    # the operator norm is a bound as well, for records that may enter every leaf
    whole = linearly_mapped(sum_of_bounded(1, ADD), operator_norm_up(matrix))
    assert whole.squared >= derived.squared


@pytest.mark.parametrize("kind", [GdpAccountant, ZcdpAccountant, RdpAccountant, TightAccountant])
def test_all_accountants_price_it_as_one_step(kind: type[Accountant]) -> None:
    event = Event(
        GaussianStep(tree_sensitivity(16), 4.0), Context((), 1, "prefix sums", Audience.SERVER)
    )
    accountant = kind()
    accountant.add(event)
    exact = guarantee([event], delta=1e-6)
    assert exact.notion.mu_squared == Fraction(5, 16)
    assert exact.assumptions == ()
    found = accountant.epsilon(1e-6).upper_float
    assert exact.epsilon.lower_float <= found <= 1.2 * exact.epsilon.upper_float
