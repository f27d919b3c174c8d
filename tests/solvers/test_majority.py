"""Laws of the answer without rows: its price, its model, how often it is right, when it is chosen.

1. One Laplace step of pure epsilon; neighbours differ by its sensitivity.
2. Without noise the model is the log-odds, however records are divided and rows are bounded.
3. One party's answer is wrong as often as Laplace noise is larger than the margin.
4. It is chosen where Gaussian noise hides rows and classes, and never where rows are asked for.
"""

from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import MemoryLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.mechanisms import (
    Adjacency,
    ClassLabels,
    DataShape,
    EventList,
    InvalidParameter,
    PlanningCurator,
    PrivateDataset,
    SamplingCurator,
)
from dpledger.mechanisms.events import LaplaceStep
from dpledger.mechanisms.labels import SIGNS, LabelDomain
from dpledger.mechanisms.protocols import FloatArray
from dpledger.mechanisms.sampling import SeededSampler
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.solvers import ClassShares, ConsensusDpAdmm, Summed, classifier_defaults

REPLACE = Adjacency.REPLACE_ONE


def handle(labels: FloatArray, *, holders: Any = 0, bound: float = 1.0) -> PrivateDataset:
    """Return records of a random entry and a constant, with these labels.

    Args:
        labels: of +-1, shape (n,).
        holders: each record's party.
        bound: of the rows.
    """
    rows = np.random.default_rng(8).uniform(-0.5, 0.5, size=(len(labels), 2)) * bound
    rows[:, 1] = sqrt(0.5) * bound
    owner = np.broadcast_to(holders, len(labels))
    return PrivateDataset(
        rows,
        labels,
        adjacency=REPLACE,
        row_bound=bound,
        party_of=owner,
        parties=tuple(f"p{i}" for i in range(owner.max() + 1)),
        party_counts=tuple(np.bincount(owner).tolist()),
    )


def answer(dataset: PrivateDataset, noise_multiplier: float, seed: int = 0) -> FloatArray:
    """Return the model and check that the run's events are the plan's."""
    solver, events = ClassShares(noise_multiplier, column=1), EventList()
    model = solver.solve(dataset, SamplingCurator(events, SeededSampler(seed))).model
    plan = PlanningCurator()
    solver.solve(PrivateDataset.planned(dataset.shape), plan)
    assert tuple(events.events) == tuple(plan.events)
    return model


@pytest.mark.parametrize("adjacency", [REPLACE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE])
def test_it_costs_one_laplace_step(adjacency: Adjacency) -> None:
    shape = DataShape(("a", "b"), 40, 3, 1.0, adjacency)
    plan = PlanningCurator()
    ClassShares(20.0, column=2).solve(PrivateDataset.planned(shape), plan)
    (event,) = plan.events
    assert isinstance(event.mechanism, LaplaceStep)
    # a record more is a sign more; a record of zeros still has a label, so that it may change sign
    moves = 1.0 if adjacency is Adjacency.ADD_REMOVE_ONE else 2.0
    assert event.mechanism.sensitivity.value == pytest.approx(moves, rel=1e-9)
    spent = guarantee(plan.events, delta=1e-12).epsilon
    assert spent.upper_float == pytest.approx(1.0 / 20.0, rel=1e-6)


@pytest.mark.parametrize("bound", [1.0, 4.0])
@pytest.mark.parametrize("parties", [1, 3])
def test_without_noise_the_model_is_the_log_odds(parties: int, bound: float) -> None:
    labels = np.where(np.arange(100) < 80, 1.0, -1.0)
    holders = np.minimum(np.arange(100) // 7, parties - 1)  # uneven, and of one class each but one
    model = answer(handle(labels, holders=holders, bound=bound), 1e-9)
    assert model[0] == 0.0
    assert model[1] * sqrt(0.5) * bound == pytest.approx(log(80 / 20), rel=1e-6)


def test_all_of_one_class_have_finite_log_odds() -> None:
    for seed in range(20):
        assert np.isfinite(answer(handle(np.ones(50)), 1.0, seed)).all()


def test_a_party_errs_as_often_as_its_noise_exceeds_the_margin() -> None:
    """Of 110 against 90 at epsilon 0.1: exp(-1)/2. In 1,500 runs three errors in ten thousand are
    further off than 3.7 standard errors, which the interval is.
    """
    data = handle(np.where(np.arange(200) < 110, 1.0, -1.0))
    wrong = np.mean([answer(data, 10.0, seed)[1] < 0.0 for seed in range(1500)])
    truth = exp(-1.0) / 2.0
    assert abs(wrong - truth) < 3.7 * sqrt(truth * (1.0 - truth) / 1500)


def test_it_is_chosen_where_noise_hides_rows_and_classes() -> None:
    """mu is 0.0173 at (0.05, 1e-5), so that 398 records of one holder have s = 2/398/0.0173."""

    def chosen(count: int, features: int, labels: LabelDomain = SIGNS, **given: Any) -> object:
        shape = DataShape(("a",), count, features, 1.0, REPLACE, labels)
        terms = {"epsilon": 0.05, "delta": 1e-5, "column": features - 1, **given}
        return type(classifier_defaults(shape, **terms))

    assert chosen(398, 31) is ClassShares
    assert chosen(398, 6) is ConsensusDpAdmm  # few columns: s d = 1.7
    assert chosen(1257, 65) is ConsensusDpAdmm  # s = 0.09, s d = 6
    assert chosen(1257, 91) is ClassShares  # s d = 8.4
    assert chosen(1257, 85) is ConsensusDpAdmm  # s d = 7.8
    assert chosen(398, 31, epsilon=1.0) is ConsensusDpAdmm
    assert chosen(398, 31, rounds=4) is ConsensusDpAdmm
    assert chosen(398, 31, column=None) is ConsensusDpAdmm
    assert chosen(398, 31, labels=ClassLabels(3)) is ConsensusDpAdmm


def test_the_estimator_answers_with_the_majority_and_proves_it() -> None:
    rng = np.random.default_rng(3)
    rows, labels = rng.normal(size=(400, 30)) / 10.0, np.where(rng.random(400) < 0.7, 1, -1)

    def fitted(**given: Any) -> PrivateAdmmClassifier:
        model = PrivateAdmmClassifier(
            epsilon=0.05, delta=1e-5, adjacency=REPLACE, clip=True, classes=(-1, 1), **given
        )
        return model.fit(rows, labels)

    model = fitted()
    assert not model.coef_.any()
    assert model.n_iter_ == 1
    assert model.privacy_.epsilon <= 0.05
    assert model.privacy_.grade is Grade.PROVED
    # 140 records make the margin 80, four scales of noise: a sign in a hundred is wrong
    assert 0.5 < model.predict_proba(rows)[0, 1] < 0.8
    assert fitted(rounds=3).coef_.any()
    assert fitted(threat_model=Summed(), n_parties=5).coef_.any()
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(1.0, 1e-5), adjacency=REPLACE))
    for _ in range(2):  # of one budget, which could not pay for a second Laplace step
        assert fitted(ledger=ledger).coef_.any()


def test_it_refuses_what_it_cannot_count() -> None:
    shape = DataShape(("a",), 40, 3, 1.0, REPLACE)
    with pytest.raises(InvalidParameter, match="column"):
        ClassShares(2.0, column=3).solve(PrivateDataset.planned(shape), PlanningCurator())
    shape = DataShape(("a",), 40, 3, 1.0, REPLACE, label_domain=ClassLabels(3))
    with pytest.raises(InvalidParameter, match="label_domain"):
        ClassShares(2.0, column=2).solve(PrivateDataset.planned(shape), PlanningCurator())
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        ClassShares(-1.0, column=2)
