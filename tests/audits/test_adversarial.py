"""Laws of canaries climbed through whole runs: seen better than one of maximal gradient at its own
score, for every algorithm, and never beyond the price.
"""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from tests.audits.test_metagradient import best_separation, last_models
from tests.parameters import slow

from dpledger.accounting.guarantees import guarantee
from dpledger.audits.adversarial import adversarial_pair
from dpledger.audits.datasets import AuditDataset
from dpledger.audits.neighbours import opposite_gradients
from dpledger.mechanisms import Adjacency, ClassLabels, InvalidParameter
from dpledger.mechanisms.subsampling import FixedBatch
from dpledger.solvers import ConstantSteps, DpAdmm, DpSgd, Multinomial, plan

MU, TRIALS = 1.0, 25_000
SGD = DpSgd(4, sqrt(4) / MU, ConstantSteps(1.5), regularisation=0.01)
ADMM = DpAdmm(5, sqrt(5) / MU, ConstantSteps(1.0), regularisation=0.01)


def records(adjacency: Adjacency = Adjacency.REPLACE_ONE, **options) -> AuditDataset:
    """Rows that are long along the first axis, where models hardly move."""
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(30, 2)) * np.array([1.8, 0.2])
    labels = np.where(rows @ np.array([1.0, 1.0]) > 0, 1.0, -1.0)
    return AuditDataset(rows, labels, adjacency=adjacency, row_bound=2.0, **options)


@pytest.mark.parametrize("solver", [ADMM, *slow(replace(SGD, clip=0.5))])
def test_a_climbed_canary_is_seen_better_than_a_maximal_gradient_and_within_its_price(
    solver,
) -> None:
    dataset = records()
    climbed = adversarial_pair(solver, dataset, index=0, seed=3)
    inside, outside = (
        side @ climbed.direction for side in last_models(solver, climbed.pair, 7, TRIALS)
    )
    found = (inside.mean() - outside.mean()) / sqrt((inside.var() + outside.var()) / 2)
    # the maximal gradient gets the benefit of the best direction for its own samples
    plain = opposite_gradients(dataset, index=0, loss=solver.loss)
    other = best_separation(last_models(solver, plain, 8, TRIALS))
    planned = guarantee(plan(solver, dataset.shape), delta=1e-5).mu.upper_float
    # four standard errors of the difference, sqrt(2/n) for each; the seeds are fixed
    error = sqrt(2 / TRIALS)
    assert found > other + 4 * sqrt(2) * error
    assert found < planned + 4 * error
    assert found == pytest.approx(climbed.mu, rel=0.15)


def test_a_null_record_is_the_neighbour_under_zero_out() -> None:
    dataset = records(Adjacency.ZERO_OUT_ONE)
    climbed = adversarial_pair(replace(ADMM, rounds=1), dataset, index=2)
    differing = climbed.pair.neighbour.differing(dataset.with_record(2, features=np.zeros(2)))
    assert np.array_equal(differing, [])
    assert 0 < climbed.mu < MU


def test_a_run_that_samples_and_classes_have_their_canaries_too() -> None:
    classes = AuditDataset(
        np.random.default_rng(1).normal(size=(12, 2)),
        np.arange(12) % 3.0,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=2.0,
        label_domain=ClassLabels(3),
    )
    solver = DpSgd(2, 1.0, ConstantSteps(1.0), scheme=FixedBatch(6), loss=Multinomial(3))
    climbed = adversarial_pair(solver, classes, index=0)
    assert climbed.direction.shape == (6,)
    inside, outside = (
        side @ climbed.direction for side in last_models(solver, climbed.pair, 7, 1000)
    )
    # five standard errors of a difference of means
    assert inside.mean() > outside.mean() + 5 * sqrt((inside.var() + outside.var()) / 1000)


@pytest.mark.parametrize(
    ("name", "solver", "adjacency"),
    [
        ("solver", replace(SGD, noise_multiplier=0.0), Adjacency.REPLACE_ONE),
        ("adjacency", SGD, Adjacency.ADD_REMOVE_ONE),
    ],
)
def test_what_has_no_such_search_is_refused(name, solver, adjacency) -> None:
    count = {"n_min": 20} if adjacency is Adjacency.ADD_REMOVE_ONE else {}
    with pytest.raises(InvalidParameter) as refused:
        adversarial_pair(solver, records(adjacency, **count), index=0)
    assert refused.value.name == name
