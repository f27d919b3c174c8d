"""What has sensitivity 0 is public to the last bit: no sign of private data shows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpledger.audits.datasets import AuditDataset, VerticalAuditDataset
from dpledger.mechanisms import (
    Adjacency,
    EventList,
    SamplingCurator,
    Sensitive,
    SystemSampler,
    concatenate,
    linear_map,
)
from dpledger.solvers.losses import LinearLoss

ROWS = np.array([[0.6, -0.3, 0.0], [0.1, 0.2, -0.9]])
LABELS = np.array([1.0, -1.0])
ROUTES: dict[str, Callable[[Sensitive], Sensitive]] = {
    "times 0": lambda x: x * 0.0,
    "times -0": lambda x: x * -0.0,
    "0 times a shifted value": lambda x: 0.0 * (x - 0.25),
    "times 0, then negated": lambda x: -(x * 0.0),
    "subtracted from a public number": lambda x: 1.0 - x * 0.0,
    "clipped to the origin": lambda x: x.clipped(0.0),
    "mapped to 0": lambda x: linear_map(np.zeros((2, 3)), x),
    "divided after the product": lambda x: (x * 0.0) / -3.0,
    "a sum of such values": lambda x: x * 0.0 + x.clipped(0.0),
    "beside another such value": lambda x: concatenate(x * 0.0, x * -0.0),
    "clipped later": lambda x: (x * 0.0).clipped(1.0),
    "mapped later": lambda x: np.eye(3) @ (x * 0.0),
}


def mean(sign: float, **options: Any) -> Sensitive:
    data = AuditDataset(
        sign * ROWS, LABELS, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0, **options
    )
    return data.mean_gradient(LinearLoss(), np.zeros(3))


def bits(sensitive: Sensitive) -> bytes:
    assert sensitive.sensitivity.squared == 0
    assert sensitive._value is not None
    return sensitive._value.tobytes()


@pytest.mark.parametrize("route", ROUTES)
def test_what_has_sensitivity_0_is_the_same_for_all_data(route: str) -> None:
    compute = ROUTES[route]
    here, there = compute(mean(1.0)), compute(mean(-1.0))
    assert bits(here) == bits(there)
    assert here.rounding.error == 0


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_what_costs_nothing_leaves_without_a_sign(route: str, zero: float) -> None:
    """Signs of private zeros were a bit of every coordinate, at an epsilon of 0."""
    compute = ROUTES[route]
    for sign in (1.0, -1.0):
        curator = SamplingCurator(EventList(), SystemSampler())
        value = compute(mean(sign)) * 0.0
        message = curator.release(value, round=1, release="x", noise_std=zero)
        assert not np.signbit(message).any()


def test_parties_without_weight_show_nothing() -> None:
    none, one = np.zeros(2), np.array([0.0, 1.0])
    options: dict[str, Any] = {"parties": ("a", "b"), "party_of": np.array([0, 1])}
    found = []
    for sign in (1.0, -1.0):
        data = AuditDataset(
            sign * ROWS, LABELS, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0, **options
        )
        found.append(bits(data.mean_gradient(LinearLoss(), np.zeros(3), weights=none)))
        half = data.mean_gradient(LinearLoss(), np.zeros(3), weights=one)._value
        assert half is not None
        assert half[0].tobytes() == np.zeros(3).tobytes()
    assert found[0] == found[1] == np.zeros((2, 3)).tobytes()


def test_scores_at_the_origin_show_nothing() -> None:
    origin = np.array([-0.0, 0.0, -0.0])
    found = [
        VerticalAuditDataset(
            [sign * ROWS],
            LABELS,
            adjacency=Adjacency.REPLACE_ONE,
            parties=("a",),
            public_labels=True,
        ).scores("a", origin)
        for sign in (1.0, -1.0)
    ]
    assert bits(found[0]) == bits(found[1])


@pytest.mark.parametrize("name", ["sensitivity", "_value", "rounding"])
def test_a_live_value_is_not_made_again(name: str) -> None:
    x = mean(1.0)
    with pytest.raises(AttributeError):
        x.__init__(x.sensitivity, x.rounding, parties=x.parties, dimension=3)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        delattr(x, name)
