"""Laws of power: half of the promised noise is found soon, whichever solver forgot the rest.

The promise is the plan's; the neighbours are the worst there are (a linear loss, whose gradients
are as long as the calculus allows, in opposite directions), so that the promise is tight. Both
worlds count as runs.
"""

from collections import Counter
from dataclasses import replace
from math import isfinite
from statistics import median

import numpy as np
import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.pld import PrivacyProfile
from dpledger.audits.datasets import AuditDataset, VerticalAuditDataset
from dpledger.audits.membership import innovation_scores
from dpledger.audits.neighbours import NeighbourPair, opposite_gradients
from dpledger.audits.replay import replay_chunks
from dpledger.audits.sequential import SequentialTest, plan_bet
from dpledger.mechanisms import (
    Adjacency,
    FixedBatch,
    PlanningCurator,
    PrivateDataset,
)
from dpledger.mechanisms.vertical_data import VerticalDataset
from dpledger.solvers import (
    CentralisedDpAdmm,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    LinearLoss,
    PrAdmm,
    PsAdmm,
    PvpAdmm,
    RAdmm,
    SampledPsAdmm,
    SharingAdmm,
    StochasticRounds,
    fused_lasso,
    ring,
)

LOSS = LinearLoss()
ROUNDS = 4
SETTINGS = StochasticRounds(ROUNDS, 2, 0.5, loss=LOSS)
NETWORK = PrAdmm(ring(3), ROUNDS, 4.0, loss=LOSS)
SOLVERS = {
    "star": DpAdmm(ROUNDS, 4.0, ConstantSteps(0.5), loss=LOSS),
    "star, exact": PvpAdmm(ROUNDS, 4.0, loss=LOSS),
    "network": NETWORK,
    "network, recycled": RAdmm(NETWORK, 0.5),
    "stochastic, full gradients": PsAdmm(SETTINGS, 6.0),
    "gradient descent": DpSgd(ROUNDS, 4.0, ConstantSteps(0.5), loss=LOSS),
}
SAMPLED = {
    "stochastic, snapshot": SampledPsAdmm(SETTINGS, FixedBatch(5), 1.0, 4.0, 4.0),
    "gradient descent, sampled": DpSgd(ROUNDS, 2.0, ConstantSteps(0.5), FixedBatch(5), loss=LOSS),
}


def worst_pair(parties=3):
    generator = np.random.default_rng(59)
    rows = generator.normal(size=(18, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    data = AuditDataset(
        rows,
        np.where(generator.random(18) < 0.5, -1.0, 1.0),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.repeat(np.arange(parties), 18 // parties),
        parties=tuple("abc"[:parties]),
    )
    return opposite_gradients(data, index=2, loss=LOSS)


def promise_of(solver, shape):
    """The plan's mu, or its whole privacy curve where it has none."""
    plan = PlanningCurator()
    solver.solve(PrivateDataset.planned(shape), plan)
    found = guarantee(plan.events, delta=1e-5)
    if isfinite(found.mu.upper_float):
        return found.notion
    # a record lives with one party, and every event speaks of all parties
    return PrivacyProfile.of(Counter(event.mechanism for event in plan.events), shape.adjacency)


def halved(solver):
    """The same solver with half of its noise."""
    if isinstance(solver, SampledPsAdmm):
        return replace(solver, snapshot_noise_multiplier=2.0, correction_noise_multiplier=2.0)
    if isinstance(solver, RAdmm):
        return replace(solver, settings=halved(solver.settings))
    return replace(solver, noise_multiplier=solver.noise_multiplier / 2)


def check(solver, pair):
    promise = promise_of(solver, pair.dataset.shape)
    test = SequentialTest(plan_bet(claimed=promise), 0.95)

    def refuted_after(running, *, seed, pairs):
        chunks = replay_chunks(
            running.solve, pair.dataset, pair.neighbour, trials=pairs, seed=seed, chunk=50
        )
        return test.run(chunk.attack for chunk in chunks).refuted_after

    found = [refuted_after(halved(solver), seed=seed, pairs=250) for seed in range(5)]
    assert None not in found
    assert 2 * median(found) <= 500
    # as planned: a stream alarms with probability at most 0.05; the seeds are fixed
    assert [refuted_after(solver, seed=seed, pairs=100) for seed in range(3)] == [None] * 3


@pytest.mark.parametrize("name", SOLVERS)
def test_half_of_the_noise_is_found_within_500_runs(name):
    check(SOLVERS[name], worst_pair())


@pytest.mark.parametrize(
    "name",
    [
        "stochastic, snapshot",
        # the whole curve of a few sampled steps costs minutes of enclosures
        pytest.param("gradient descent, sampled", marks=pytest.mark.slow),
    ],
)
def test_half_of_the_noise_is_found_behind_hidden_samples(name):
    check(SAMPLED[name], worst_pair())


def test_half_of_the_noise_is_found_in_the_fused_lasso():
    constraint = fused_lasso(3, [(0, 1), (1, 2)])
    check(CentralisedDpAdmm(constraint, ROUNDS, 4.0, 0.5, loss=LOSS), worst_pair(parties=1))


def test_a_quarter_of_the_noise_is_found_in_sharing():
    # no pair is known that pays even half of the price, so half of the noise is within the promise
    generator = np.random.default_rng(0)
    blocks = [generator.normal(size=(8, 2)) for _ in range(2)]
    labels = np.where(generator.random(8) < 0.5, 1.0, -1.0)
    there = VerticalAuditDataset(
        [block / np.linalg.norm(block, axis=1, keepdims=True) for block in blocks],
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        parties=("a", "b"),
        public_labels=False,
    )
    pair = NeighbourPair(there, there.with_record(0, label=-labels[0]), None, "label of record 0")
    plan, solver = PlanningCurator(), SharingAdmm(ROUNDS, 4.0)
    solver.solve(VerticalDataset.planned(there.shape), plan)
    test = SequentialTest(plan_bet(claimed=guarantee(plan.events, delta=1e-5).notion), 0.95)

    def refuted_after(noise_multiplier, *, seed, pairs):
        solve = replace(solver, noise_multiplier=noise_multiplier).solve
        return test.run(
            innovation_scores(solve, pair, pair, trials=pairs, seed=seed, chunk=50)
        ).refuted_after

    found = [refuted_after(1.0, seed=seed, pairs=250) for seed in range(5)]
    assert None not in found
    assert 2 * median(found) <= 500
    assert refuted_after(4.0, seed=7, pairs=100) is None
