"""Groups in batches drawn without replacement: how many of them are drawn, by every route."""

from itertools import combinations
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import hypergeom, norm
from tests.parameters import slow

from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.pld.pairs import MOST_COPIES
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.derivation import ONE_PARTY
from dpledger.accounting.renyi.amplification import grouped
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    LaplaceStep,
    Norm,
    SampledWithoutReplacement,
    SampledWithReplacement,
    declared,
)

Floats = NDArray[np.float64]
NOISE = 1.7
"""Over what a record moves the sum of a batch by, as that goes from -1/2 to 1/2."""


def batches(batch: int, records: int, *, noise: float = NOISE) -> SampledWithoutReplacement:
    size = declared(1, "a sum of numbers in [-1/2, 1/2]", adjacency=Adjacency.REPLACE_ONE)
    return SampledWithoutReplacement(GaussianStep(size, noise), batch, records)


def events(batch: int, records: int) -> list[Event]:
    return [Event(batches(batch, records), Context((), 1, "sum", Audience.PUBLIC))]


def excess(p: Floats, q: Floats, epsilon: float) -> float:
    """Return H of two even mixtures of normal laws of these means, by a fine sum."""
    edges = np.linspace(-12.0, 12.0, 8_001)

    def masses(means: Floats) -> Floats:
        return np.diff(norm.cdf((edges[:, None] - means) / NOISE), axis=0).mean(axis=1)

    return float(np.maximum(masses(p) - exp(epsilon) * masses(q), 0.0).sum())


@pytest.mark.parametrize(
    ("records", "batch", "group", "least"),
    [(9, 2, 2, 0.1), (10, 2, 3, 0.01), (9, 3, 2, 0.01), (9, 1, 4, 0.0)],
)
def test_no_group_of_any_data_costs_more(
    records: int, batch: int, group: int, least: float
) -> None:
    """All batches of small data sets, of records alike, at either end, or anywhere between."""
    rng, drawn = np.random.default_rng(3), list(combinations(range(records), batch))
    delta = 1e-3
    epsilon = guarantee(events(batch, records), delta=delta, group=group).epsilon.upper_float
    reached = []
    for turn in range(30):
        one = rng.choice([-0.5, 0.5], records) if turn % 2 else rng.uniform(-0.5, 0.5, records)
        one[group:] = rng.choice([-0.5, 0.5]) if turn < 10 else one[group:]
        other = one.copy()
        one[:group] = 0.5 if turn < 20 else one[:group]
        other[:group] = -0.5 if turn < 20 else rng.choice([-0.5, 0.5], group)
        sums = [np.array([data[list(some)].sum() for some in drawn]) for data in (one, other)]
        reached += [excess(*sums, epsilon), excess(*sums[::-1], epsilon)]
    assert least * delta <= max(reached) <= delta * (1 + 1e-6)


@pytest.mark.parametrize(
    ("records", "batch", "group"), [(1000, 10, 3), (60_000, 256, 3), (8000, 80, 10), (4000, 20, 2)]
)
def test_a_group_costs_hardly_more_than_as_many_as_are_drawn(
    records: int, batch: int, group: int
) -> None:
    """Of records that move the sum from 0, all others bringing nothing: a mixture of shifts."""
    found = guarantee(events(batch, records), delta=1e-5, group=group).epsilon.upper_float
    drawn = np.arange(group + 1)
    weights = hypergeom.pmf(drawn, records, group, batch)

    def lost(epsilon: float) -> float:
        edges = np.linspace(-20.0, 40.0, 60_001)
        beyond = norm.sf(edges[:, None], loc=drawn / NOISE)
        return float(np.max(beyond @ weights - exp(epsilon) * beyond[:, 0]))

    assert lost(found) <= 1e-5
    assert lost(found * 0.95) > 1e-5


@pytest.mark.parametrize("group", [5, *slow(2, 40)])
def test_the_price_of_a_group_is_proved_where_its_records_live_with_one_party(group: int) -> None:
    listed = events(10, 1000)
    found = guarantee(listed, delta=1e-5, group=group)
    verdict = check(certify(listed, delta=1e-5, group=group).to_json_bytes())
    assert verdict.group == group
    assert float(verdict.values[-1]) == pytest.approx(found.epsilon.upper_float, rel=1e-3)
    assert float(verdict.values[-1]) >= found.epsilon.lower_float
    assert ONE_PARTY in verdict.assumptions
    assert ONE_PARTY in found.assumptions
    alone = check(certify(listed, delta=1e-5).to_json_bytes())
    assert ONE_PARTY not in alone.assumptions


def test_more_draws_of_fewer_records_stand_for_a_group_only_where_most_are_left_out() -> None:
    def fewer(batch: int, records: int, group: int) -> int | None:
        found = grouped(batches(batch, records), group)
        if isinstance(found, SampledWithReplacement):
            assert found.batch == group
            return found.records
        assert found.event.sensitivity.root == group
        return None

    assert fewer(10, 1000, 3) == 99
    assert fewer(10, 1002, 3) == 100
    assert fewer(10, 1001, 3) == 99
    assert fewer(4, 9, 2) == 2
    assert fewer(4, 8, 2) is None
    assert fewer(100, 1000, 8 * MOST_COPIES) == 9
    assert fewer(100, 1000, 8 * MOST_COPIES + 20) is None
    step = LaplaceStep(declared(1, "x", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1), 2.0)
    assert grouped(SampledWithoutReplacement(step, 10, 1000), 3).batch == 30
