"""Laws of the choice among settings that a fit pays for.

1. All fits and the choice stand in one ledger, and the certificate of all of them meets the target;
   a record pays for the fits or for the choice, whichever its place says.
2. What is chosen is what the exponential mechanism makes of errors on the holdout alone.
3. Where a choice is not covered, it is refused before anything is spent.
"""

import warnings
from math import log
from typing import Any

import numpy as np
import pytest

from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import MemoryLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.accounting.pure import pure_epsilon
from dpledger.mechanisms import Adjacency, DataShape, InvalidParameter, PureStep
from dpledger.mechanisms.errors import RepeatableNoise
from dpledger.solvers.consensus import ConsensusDpAdmm

pytest.importorskip("sklearn")

from dpledger.runs.estimators import AdmmAlgorithm, PrivateAdmmClassifier
from dpledger.runs.estimators.search import held_out

EPSILON, DELTA = 2.0, 1e-5
CANDIDATES = [{"rounds": 3}, {"algorithm": AdmmAlgorithm.DP_SGD, "rounds": 2}]
"""Few rounds: every one of them is planned, priced and proved."""


def records(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(count, 3)) / 3.0
    return rows, rows @ [1.0, -1.0, 0.5] > 0.1


def searching(**given: Any) -> PrivateAdmmClassifier:
    arguments: dict[str, Any] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "adjacency": Adjacency.REPLACE_ONE,
        "n_parties": 2,
        "clip": True,
        "classes": (False, True),
        "candidates": CANDIDATES,
        "random_state": 4,
    }
    return PrivateAdmmClassifier(**{**arguments, **given})


def fitted(model: PrivateAdmmClassifier, rows: np.ndarray, labels: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatableNoise)
        return model.fit(rows, labels)


def backwards(noise_multiplier: float, shape: DataShape) -> ConsensusDpAdmm:
    """Return a solver that starts at the opposite of what is to be learnt and stays there."""
    return ConsensusDpAdmm(1, noise_multiplier, 1e-6, start=(-1.0, 1.0, -0.5, 0.0))


def test_all_fits_and_the_choice_are_paid_and_proved_together() -> None:
    ledger = MemoryLedger()
    model = fitted(searching(ledger=ledger), *records())
    (run,) = ledger.runs()
    events = [e for each in ledger.reservations(run.run) for e in each.events]
    assert tuple(events) == tuple(model.certificate_.events)
    verdict = check(model.certificate_.to_json_bytes())
    assert (verdict.notion, verdict.subject) == ("approx-dp", model.certificate_.subject)
    delta, epsilon = verdict.values
    assert (float(delta), float(epsilon) <= EPSILON) == (DELTA, True)
    assert 0.98 * EPSILON < model.privacy_.epsilon.upper_float <= EPSILON
    # by an account of its own, a record pays for the fits or for the choice
    fits = [e for e in events if e.context.parties != ("holdout",)]
    (choice,) = (e for e in events if e.context.parties == ("holdout",))
    assert 0.98 * EPSILON < guarantee(fits, delta=DELTA).epsilon.upper_float <= EPSILON
    assert isinstance(choice.mechanism, PureStep)
    assert 0.99 * EPSILON < pure_epsilon([choice]).upper_float <= EPSILON
    assert [e.context.release for e in fits].count("gradient") == 3 + 2  # rounds of both


def test_the_candidate_with_far_fewer_errors_is_chosen() -> None:
    """Odds of another choice are e^(-epsilon·errors/2): below 1e-9 at 21 errors more."""
    rows, labels = records(2000)
    candidates = [{"algorithm": backwards}, {"rounds": 4}]
    model = fitted(searching(candidates=candidates), rows, labels)
    held = held_out(len(rows), 0.2)
    wrong = int(np.sum(model.predict(rows[held]) != labels[held]))
    majority = int(min(labels[held].sum(), (~labels[held]).sum()))
    assert majority - wrong > 2 * log(1e9) / EPSILON
    assert model.best_index_ == 1
    assert model.best_params_ == candidates[1]
    assert model.n_iter_ == len(model.history_) == 4


def test_a_budget_that_does_not_pay_for_all_pays_for_nothing() -> None:
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(EPSILON / 2, DELTA), Adjacency.REPLACE_ONE))
    with pytest.raises(BudgetExceeded):
        fitted(searching(ledger=ledger), *records())
    assert list(ledger.runs()) == []


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"candidates": [{"rounds": 2}]}, "at least two"),
        ({"candidates": [{"rounds": 2}, {"epsilon": 9.0}]}, "only"),
        ({"holdout": 1.0}, "holdout"),
        ({"holdout": 1e-9}, "holdout"),
        ({"records_per_unit": 2}, "records_per_unit"),
        ({"warm_start": True}, "warm_start"),
        ({"parties": ("a", "holdout")}, "parties"),
        ({"adjacency": "add-remove-one", "n_min": 10}, "adjacency"),
        ({"epsilon": 10**400}, "as a target"),
        ({"epsilon": 1e-9}, "larger for 2 candidates"),
    ],
)
def test_what_is_not_covered_is_refused_unspent(given: dict[str, Any], match: str) -> None:
    ledger = MemoryLedger()
    with pytest.raises(InvalidParameter, match=match):
        fitted(searching(ledger=ledger, **given), *records())
    assert list(ledger.runs()) == []


def test_who_is_held_out_depends_on_places_alone_and_is_spread_evenly() -> None:
    for count, share in [(10, 0.2), (1001, 0.25), (7, 0.5), (50, 0.9)]:
        held = held_out(count, share)
        assert abs(held.sum() - share * count) < 1
        assert np.all(np.abs(np.cumsum(held) - share * np.arange(1, count + 1)) < 1 + 1e-9)
