"""Laws of reference lines.

1. An optimum is one: its gradient's norm is in the record, and no excess loss is below it.
2. Descent lowers the loss in every round, towards the optimum and not below it.
3. A party alone meets the epsilon it is compared at, sees its own columns only, and learns.
"""

import numpy as np
import pytest

from dpledger.mechanisms.sampling import SeededSampler
from dpledger.papers.harness.cell import CellKind
from dpledger.papers.harness.reference import Converged, Descent, LocalParty, converged
from dpledger.papers.harness.sources import Source, SourceRecords
from dpledger.solvers import logistic_optimum

SOURCE = Source(records=SourceRecords.SYNTHETIC, train=4_000, test=1_000, width=6)


def test_an_optimum_is_converged_and_has_no_epsilon() -> None:
    cell = converged(SOURCE)
    trace = cell.task.run(split_seed=3, sampler=SeededSampler(0))
    assert cell.kind is CellKind.NON_PRIVATE
    assert cell.task.privacy().certified is None
    assert trace.values["gradient_norm"][0] < 1e-6
    # with an intercept it may be better than the optimum without, never worse by more than ridge
    assert trace.values["excess_loss"][0] < 1e-5
    assert trace.values["accuracy"][0] > trace.values["majority"][0]


def test_fewer_columns_have_no_better_optimum() -> None:
    losses = [
        Converged(source=SOURCE, columns=columns)
        .run(split_seed=3, sampler=SeededSampler(0))
        .values["train_loss"][0]
        for columns in (2, 4, None)
    ]
    assert losses == sorted(losses, reverse=True)


def test_descent_falls_towards_the_optimum() -> None:
    task = Descent(source=SOURCE, rounds=50)
    trace = task.run(split_seed=3, sampler=SeededSampler(0))
    losses, rounds = np.array(trace.values["train_loss"]), np.array(trace.rounds)
    assert trace.rounds == tuple(range(1, 51))
    assert np.all(np.diff(losses) <= 1e-12)
    train, _ = SOURCE.split(3)
    rows = np.asarray(train.features)
    best = logistic_optimum(rows, train.labels, regularisation=1e-6).model
    least = np.logaddexp(0.0, -train.labels * (rows @ best)).mean()
    # steps of 1/L from 0 end within L|w|²/(2t) of every model w (Nesterov 2004, section 2.1.5)
    curvature = np.linalg.norm(rows, 2) ** 2 / (4 * len(rows))
    assert np.all(losses <= least + curvature * best @ best / (2 * rounds))
    assert losses[-1] >= least - 0.5e-6 * best @ best
    assert losses[-1] - least < 0.01 * (losses[0] - least)
    assert task.privacy().certified is None


def test_a_party_alone_meets_its_target_on_its_own_columns() -> None:
    task = LocalParty(source=SOURCE, columns=4, epsilon=2.0, delta=1e-5)
    found = task.privacy()
    assert found.certified is not None
    assert found.certified <= 2.0
    assert found.certified == pytest.approx(2.0, rel=1e-3)
    trace = task.run(split_seed=3, sampler=SeededSampler(0))
    best = Converged(source=SOURCE, columns=4).run(split_seed=3, sampler=SeededSampler(0))
    assert trace.values["train_loss"][0] >= best.values["train_loss"][0] - 1e-12
    assert trace.values["accuracy"][0] > best.values["accuracy"][0] - 0.05
    assert np.isfinite(trace.seconds)
