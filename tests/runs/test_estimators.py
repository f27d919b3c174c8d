"""Laws of the scikit-learn estimators.

1. The target epsilon is met from below, by the guarantee and by the certificate, which the
   independent checker accepts; an independent account of the ledger's events gives the same.
2. With next to no noise, the model is the regularised optimum in the units of the rows as given.
3. The whole plan is paid for before any noise is drawn, or nothing is; fits on one ledger add up;
   copies of an estimator share its ledger, and no copy makes a second budget.
4. Bad input raises before anything is spent.
5. What a guarantee takes for public is listed, and nothing that is private moves the plan.
6. scikit-learn's own checks pass, but for those named here with a reason.
"""

import json
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.ledger import Ledger, LedgerError, MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp, Rdp
from dpledger.mechanisms import (
    Adjacency,
    AdjacencyMismatch,
    Curator,
    DataShape,
    Event,
    GaussianStep,
    InvalidParameter,
    PrivateDataset,
    SystemSampler,
)
from dpledger.mechanisms.errors import RepeatableNoise
from dpledger.solvers import ConstantSteps, DpAdmm, StarState
from dpledger.solvers.threat_model import PER_PARTY, Summed

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import check_estimator
from tests.parameters import quick, slow

from dpledger.runs.estimators import (
    AdmmAlgorithm,
    PrivateAdmmClassifier,
    PrivateAdmmRegressor,
    PrivateSharingClassifier,
)

DELTA = 1e-5
REPLACE, ZERO, ADD = (
    Adjacency.REPLACE_ONE,
    Adjacency.ZERO_OUT_ONE,
    Adjacency.ADD_REMOVE_ONE,
)
GAUSSIAN = [name for name in AdmmAlgorithm if name is not AdmmAlgorithm.SAMPLED_PS_ADMM]
FEW = {AdmmAlgorithm.CONSENSUS, AdmmAlgorithm.CENTRALISED}


def records(n: int = 2000, *, bound: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of norm at most `bound` (short of rounding), and labels "no" and "yes"."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 4)) * bound / 2
    rows /= np.maximum(1.0, 1.001 * np.linalg.norm(rows, axis=1, keepdims=True) / bound)
    chance = 1 / (1 + np.exp(-8 / bound * (rows @ [1.0, -1.0, 0.5, 0.0]) - 1.0))
    return rows, np.where(rng.random(n) < chance, "yes", "no")


X, Y = records()


def admm(**given: Any) -> PrivateAdmmClassifier:
    """Return an estimator that asserts no more than its arguments say."""
    known: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": DELTA,
        "adjacency": REPLACE,
        "row_bound": 2.0,
        "classes": ("no", "yes"),
        "random_state": 1,
        "rounds": 5,
    }
    return PrivateAdmmClassifier(**(known | given))


def sharing(**given: Any) -> PrivateSharingClassifier:
    known: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": DELTA,
        "adjacency": REPLACE,
        "row_bound": 2.0,
        "parties": {"bank": [0, 2], "shop": [3, 1]},
        "public_labels": True,
        "classes": ("no", "yes"),
        "random_state": 1,
    }
    return PrivateSharingClassifier(**(known | given))


def regressor() -> PrivateAdmmRegressor:
    """A regressor of targets in [0, 1], which cuts others."""
    return PrivateAdmmRegressor(
        epsilon=1.0,
        delta=1e-5,
        adjacency=REPLACE,
        target_bounds=(0.0, 1.0),
        row_bound=2.0,
        clip=True,
    )


def parties_for(algorithm: AdmmAlgorithm) -> int:
    return 1 if algorithm is AdmmAlgorithm.CENTRALISED else 3


def budgeted(epsilon: float, adjacency: Adjacency = REPLACE) -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(epsilon, DELTA), adjacency=adjacency))
    return ledger


def delta_of(events: list[Event], epsilon: float) -> float:
    """Return delta of Gaussian steps that all cost every record (Balle, Wang 2018, Theorem 8)."""
    squared = mpmath.mpf(0)
    for event in events:
        step = event.mechanism
        assert isinstance(step, GaussianStep)
        if step.sensitivity.value == 0:  # a function of public things
            continue
        squared += (mpmath.mpf(step.sensitivity.value) / mpmath.mpf(step.noise_std)) ** 2
    mu = mpmath.sqrt(squared)
    tail = mpmath.ncdf(mu / 2 - epsilon / mu)
    return float(tail - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))


def verified_epsilon(model: Any) -> Fraction:
    """Return what the independent checker reads in the certificate's bytes."""
    verdict = check(model.certificate_.to_json_bytes())
    assert (verdict.notion, verdict.adjacency) == ("approx-dp", model.adjacency.value)
    assert verdict.subject == model.certificate_.subject
    delta, epsilon = verdict.values
    assert delta == Fraction(DELTA)
    return epsilon


# 1. the target, the certificate, an independent account


@pytest.mark.parametrize("adjacency", [REPLACE, ZERO])
@pytest.mark.parametrize("algorithm", GAUSSIAN)
def test_the_target_is_met_from_below_and_an_independent_account_agrees(
    algorithm: AdmmAlgorithm, adjacency: Adjacency
) -> None:
    model = admm(algorithm=algorithm, adjacency=adjacency, n_parties=parties_for(algorithm)).fit(
        X, Y
    )
    assert model.privacy_.epsilon <= 1.0
    assert model.privacy_.epsilon.lower_float > 1.0 - 1e-5
    assert (model.privacy_.delta, model.privacy_.adjacency) == (DELTA, adjacency)
    assert verified_epsilon(model) <= 1
    events = model.ledger_.events()
    assert model.certificate_.events == tuple(events)
    with mpmath.workdps(30):
        assert delta_of(events, 1.0) <= DELTA * (1 + 1e-12)
        assert delta_of(events, 0.9999) > DELTA


@pytest.mark.slow  # the certificate of sampled steps takes some seconds, and so does its check
@pytest.mark.parametrize(("adjacency", "given"), [(REPLACE, {}), (ZERO, {}), (ADD, {"n_min": 900})])
def test_a_sampled_algorithm_meets_the_target_too(
    adjacency: Adjacency, given: dict[str, Any]
) -> None:
    accounting = pytest.importorskip("dpledger.audits.crosschecks")
    model = admm(
        algorithm=AdmmAlgorithm.SAMPLED_PS_ADMM, adjacency=adjacency, rounds=3, **given
    ).fit(X, Y)
    assert model.certificate_.epsilon <= 1.0
    assert verified_epsilon(model) <= 1
    assert model.privacy_.epsilon.lower_float > 0.999
    assert accounting.crosscheck(model.ledger_.events(), delta=DELTA).agrees
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("public_labels", [True, False])
@pytest.mark.parametrize("adjacency", [REPLACE, ZERO])
def test_the_vertical_target_is_met_and_private_labels_are_paid_for(
    adjacency: Adjacency, *, public_labels: bool
) -> None:
    model = sharing(adjacency=adjacency, public_labels=public_labels, rounds=2).fit(X, Y)
    assert model.privacy_.epsilon <= 1.0
    assert verified_epsilon(model) <= 1
    events = model.ledger_.events()
    # the opening dual, every party's scores and the dual in two rounds, and a model of each party
    assert len(events) == 1 + 2 * 3 + 2
    assert ("labels are public" in model.privacy_.assumptions) is public_labels
    with mpmath.workdps(30):
        assert delta_of(events, 1.0) <= DELTA * (1 + 1e-12)
        assert delta_of(events, 0.9999) > DELTA


@pytest.mark.parametrize("adjacency", [REPLACE, ZERO])
def test_models_of_all_parties_meet_the_target_together(adjacency: Adjacency) -> None:
    model = sharing(adjacency=adjacency).fit(X, Y)
    assert model.privacy_.epsilon <= 1.0
    assert verified_epsilon(model) <= 1
    events = model.ledger_.events()
    assert len(events) == 2 * model.n_iter_ == 2 * len(model.history_)
    assert all(event.context.parties == () for event in events)
    assert "labels are public" in model.privacy_.assumptions
    with mpmath.workdps(30):
        assert delta_of(events, 1.0) <= DELTA * (1 + 1e-12)
        assert delta_of(events, 0.9999) > DELTA
    # the columns of the parties are [0, 2] and [3, 1], in this order
    last = model.history_[-1].point / 2.0
    np.testing.assert_allclose(last, model.coef_[0, [0, 2, 3, 1]])


def test_the_promise_is_refused_where_no_noise_keeps_it() -> None:
    @dataclass(frozen=True)
    class Leaky:
        def solve(self, dataset: PrivateDataset, curator: Curator, *, observe: Any = None) -> Any:
            gradient = dataset.mean_gradient(DpAdmm(1, 1.0, ConstantSteps(1.0)).loss, np.zeros(5))
            message = curator.release_unprotected(gradient, reason="test", round=1, release="raw")
            return StarState(message[0], message, message)

    ledger = MemoryLedger()
    with pytest.raises(ValueError, match="instead got epsilon=inf"):
        admm(algorithm=lambda noise, shape: Leaky(), ledger=ledger).fit(X, Y)
    assert ledger.events() == []


# 2. the model


def excess(model: Any, regularisation: float, *, scale: float) -> float:
    """Return the regularised mean loss less its least value, for rows divided by `scale`."""
    signs = np.where(Y == "yes", 1.0, -1.0)
    with_intercept = isinstance(model, PrivateAdmmClassifier)
    rows = np.hstack([X / 2.0, np.ones((len(X), 1))]) if with_intercept else X / 2.0
    rows = rows / scale

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (rows @ w)
        slopes = -signs / (1 + np.exp(margins))
        value = np.logaddexp(0, -margins).mean() + regularisation / 2 * (w @ w)
        return value, rows.T @ slopes / len(rows) + regularisation * w

    best = minimize(
        objective, np.zeros(rows.shape[1]), jac=True, tol=1e-12, options={"gtol": 1e-10}
    )
    found = model.coef_[0] * 2.0 * scale
    if with_intercept:
        found = np.append(found, model.intercept_[0] * scale)
    return float(objective(found)[0] - best.fun)


@pytest.mark.parametrize("weight", [1e-2, 1.0, 100.0])
def test_a_regulariser_of_any_weight_leaves_a_centralised_model_small(weight: float) -> None:
    """Beside one of 0.1 and more its extrapolated dual ran away, at full price."""
    fit = admm(algorithm=AdmmAlgorithm.CENTRALISED, regularisation=weight, rounds=100, epsilon=20.0)
    fit.fit(X, Y)
    assert np.linalg.norm(fit.coef_) < 10.0 / weight**0.5


@pytest.mark.parametrize("algorithm", quick(FEW, GAUSSIAN))
def test_without_noise_to_speak_of_the_model_is_the_optimum(algorithm: AdmmAlgorithm) -> None:
    model = admm(
        algorithm=algorithm,
        n_parties=parties_for(algorithm),
        epsilon=1e9,
        rounds=250,
        regularisation=1e-2,
    ).fit(X, Y)
    assert 0 <= excess(model, 1e-2, scale=np.sqrt(2.0)) < 1e-4


@pytest.mark.parametrize("algorithm", quick(FEW, GAUSSIAN))
def test_of_several_classes_the_model_is_near_that_of_scikit_learn(
    algorithm: AdmmAlgorithm,
) -> None:
    rows = X / 2.0
    y = np.array(["a", "b", "c"])[(rows @ [[1, 0, -1], [0, 1, 0], [1, 1, 0], [0, 0, 1]]).argmax(1)]
    model = admm(
        algorithm=algorithm,
        n_parties=parties_for(algorithm),
        classes=("a", "b", "c"),
        epsilon=1e9,
        rounds=100,
        regularisation=1e-2,
        fit_intercept=False,
    ).fit(X, y)
    # C is one over the number of records times the regularisation
    plain = LogisticRegression(C=1 / (len(y) * 1e-2), fit_intercept=False, tol=1e-8).fit(rows, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(rows), atol=5e-3)
    np.testing.assert_array_equal(model.classes_, plain.classes_)


def test_without_noise_to_speak_of_the_vertical_model_is_the_optimum() -> None:
    model = sharing(
        epsilon=1e9,
        rounds=200,
        regularisation=1e-2,
        penalty=0.3,
        slope_bound=50.0,
        radius=30.0,
        fit_intercept=False,
    ).fit(X, Y)
    assert 0 <= excess(model, 1e-2, scale=1.0) < 1e-4


@pytest.mark.parametrize("algorithm", quick(FEW, GAUSSIAN))
def test_accuracy_is_near_that_of_a_model_without_privacy(algorithm: AdmmAlgorithm) -> None:
    plain = LogisticRegression().fit(X, Y).score(X, Y)
    model = admm(algorithm=algorithm, n_parties=parties_for(algorithm), rounds=30, epsilon=3.0)
    assert model.fit(X, Y).score(X, Y) > plain - 0.05


@pytest.mark.parametrize(
    ("labels", "fit_intercept"),
    [(Y, True), *slow((np.where(X[:, 0] > 0.5, "unknown", Y), False))],
    ids=["two classes", "three classes"],
)
def test_a_warm_start_goes_on_where_the_fit_before_it_ended(
    labels: np.ndarray, fit_intercept: bool
) -> None:
    """At the optimum a round moves nothing; from 0 it does not come near."""
    given = {"classes": tuple(np.unique(labels)), "fit_intercept": fit_intercept, "epsilon": 1e9}
    given |= {"regularisation": 1e-2, "n_parties": 3}
    model = admm(warm_start=True, rounds=300, **given).fit(X, labels)
    assert not any("starts from" in each for each in model.privacy_.assumptions)
    before = model.coef_.copy(), model.intercept_.copy()
    model.set_params(rounds=1).fit(X, labels)
    assert any("starts from" in each for each in model.privacy_.assumptions)
    assert model.coef_ == pytest.approx(before[0], abs=1e-3)
    assert model.intercept_ == pytest.approx(before[1], abs=1e-3)
    cold = admm(rounds=1, **given).fit(X, labels)
    assert np.abs(cold.coef_ - before[0]).max() > 0.1


def test_a_warm_start_is_refused_where_it_has_no_place() -> None:
    with pytest.raises(InvalidParameter, match="warm_start"):
        admm(warm_start=True, algorithm=AdmmAlgorithm.DP_SGD).fit(X, Y)
    model = admm(warm_start=True).fit(X, Y)
    with pytest.raises(InvalidParameter, match="coef_"):
        model.fit(X[:, :3], Y)


def test_a_sum_over_parties_is_said_to_be_a_simulation_and_needs_less_noise() -> None:
    alone, summed = (
        admm(n_parties=3, threat_model=model).fit(X, Y) for model in (PER_PARTY, Summed(1))
    )
    assert any("simulation" in each for each in summed.privacy_.assumptions)
    assert not any("simulation" in each for each in alone.privacy_.assumptions)
    assert "simulation" in summed.certificate_.events[0].context.parties[0]
    stds = [model.certificate_.events[-1].mechanism.noise_std for model in (alone, summed)]
    # three parties of a third of the records each
    assert stds[0] == pytest.approx(3.0 * stds[1], rel=0.02)
    with pytest.raises(InvalidParameter, match="colluders"):
        admm(n_parties=2, threat_model=Summed(2)).fit(X, Y)


@pytest.mark.parametrize(
    ("algorithm", "adjacency"),
    [
        (AdmmAlgorithm.PVP_ADMM, "replace-one"),
        (AdmmAlgorithm.SAMPLED_PS_ADMM, "replace-one"),
        (AdmmAlgorithm.CONSENSUS, "add-remove-one"),
    ],
)
def test_of_sums_alone_nothing_is_released_that_is_none(
    algorithm: AdmmAlgorithm, adjacency: str
) -> None:
    """A minimiser, a sample of everybody's records, a mean over a number that nobody knows."""
    model = admm(
        n_parties=3, threat_model=Summed(1), algorithm=algorithm, adjacency=adjacency, rounds=2
    )
    if adjacency == "add-remove-one":
        model.set_params(n_min=10)
    with pytest.raises(InvalidParameter, match="sum"):
        model.fit(X, Y, party_of=np.arange(len(Y)) % 3)


def test_vertical_accuracy_is_near_that_of_a_model_without_privacy() -> None:
    plain = LogisticRegression().fit(X, Y).score(X, Y)
    assert sharing().fit(X, Y).score(X, Y) > plain - 0.05


def test_probabilities_are_of_the_loss_that_was_minimised() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(20_000, 3)) / 4.0
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    chance = 1.0 / (1.0 + np.exp(-4.0 * rows @ [1.0, -1.0, 0.5]))
    labels = np.where(rng.random(20_000) < chance, "yes", "no")
    model = admm(epsilon=8.0, row_bound=1.0, rounds=None, clip=True).fit(rows, labels)
    assert model.slope_bound_ == 0.5
    found = model.predict_proba(rows)[:, 1]
    plain = 1.0 / (1.0 + np.exp(-model.decision_function(rows)))
    yes = labels == "yes"

    def cost(p: np.ndarray) -> float:
        return float(-np.mean(np.where(yes, np.log(p), np.log1p(-p))))

    # the logistic function of these scores says too much: cut slopes push them outwards
    assert cost(found) < cost(plain) - 0.01
    for low in (0.2, 0.4, 0.6):
        some = (found >= low) & (found < low + 0.2)
        # of thousands of records: three standard deviations are 0.03; cut rows bias by the rest
        assert abs(np.mean(found[some]) - np.mean(yes[some])) < 0.08
    assert np.array_equal(found > 0.5, model.predict(rows) == "yes")
    assert admm(algorithm=AdmmAlgorithm.DP_SGD).fit(X, Y).slope_bound_ == 1.0


def test_coefficients_of_a_vertical_fit_are_noisy_by_a_fifth_at_most() -> None:
    for epsilon in (0.1, 1.0, 1e6):
        model = sharing(epsilon=epsilon, rounds=0).fit(X, Y)
        noise = [e.mechanism.noise_std for e in model.ledger_.events() if e.context.round == 1]
        assert len(noise) == 2
        assert max(noise) <= 0.2 * (1 + 1e-2)
        # it is paid for with a heavier norm, unless next to nothing will do
        assert (min(noise) > 0.199) is (epsilon < 1e6)


def test_a_vertical_fit_starts_from_public_labels_only() -> None:
    odds = np.sum(Y == "yes") + 1.0, np.sum(Y == "no") + 1.0
    assert sharing().fit(X, Y).intercept_ == pytest.approx(np.log(odds[0] / odds[1]))
    assert sharing(public_labels=False).fit(X, Y).intercept_ == 0.0
    assert sharing(fit_intercept=False).fit(X, Y).intercept_ == 0.0


def test_sparse_rows_give_the_same_model() -> None:
    dense, thin = admm().fit(X, Y), admm().fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-9)
    assert thin.score(sparse.csr_array(X), Y) == dense.score(X, Y)


def test_the_history_ends_in_the_model() -> None:
    model = admm(fit_intercept=False).fit(X, Y)
    assert [each.round for each in model.history_] == [1, 2, 3, 4, 5]
    assert model.n_iter_ == 5
    np.testing.assert_allclose(model.history_[-1].point / 2.0, model.coef_[0])
    steps = np.diff([np.zeros(4), *(each.point for each in model.history_)], axis=0)
    np.testing.assert_allclose(
        [each.change for each in model.history_], np.linalg.norm(steps, axis=1)
    )
    assert len(sharing(rounds=2).fit(X, Y).history_) == 2


def test_clipping_is_a_matter_of_each_row() -> None:
    longer = X.copy()
    longer[7] *= 1000
    clipped = X.copy()
    clipped[7] *= 2.0 / np.linalg.norm(clipped[7])
    cut = admm(clip=True).fit(longer, Y)
    np.testing.assert_allclose(cut.coef_, admm(clip=True).fit(clipped, Y).coef_, rtol=1e-9)
    with pytest.raises(InvalidParameter, match="row norms"):
        admm().fit(longer, Y)


# 3. paying


def test_fits_on_one_ledger_add_up_and_the_one_too_many_draws_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = budgeted(1.5)
    model = admm(ledger=ledger, random_state=None)
    model.fit(X, Y).fit(X, Y)
    one = model.privacy_.mu.upper_float**2
    assert ledger.spent().mu_squared.upper_float == pytest.approx(2 * one, rel=1e-9)

    def refuse(*_: object) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(SystemSampler, "words", refuse)
    before, rows = ledger.spent().mu_squared.upper, len(ledger.events())
    fresh = clone(model)
    with pytest.raises(BudgetExceeded, match=r"is spent, .* was asked for, .* remains") as refused:
        fresh.fit(X, Y)
    assert not hasattr(fresh, "coef_")
    assert (ledger.spent().mu_squared.upper, len(ledger.events())) == (before, rows)
    # in the budget's own unit: what a third fit adds to the epsilon of two
    costs = [epsilon_from_delta(mu_squared=n * one, delta=DELTA).upper_float for n in (2, 3)]
    assert float(refused.value.asked) == pytest.approx(costs[1] - costs[0], rel=1e-6)
    assert 0 < refused.value.remaining < refused.value.asked


def test_a_ledger_for_another_relation_is_refused() -> None:
    ledger = budgeted(5.0, ZERO)
    with pytest.raises(AdjacencyMismatch):
        admm(ledger=ledger).fit(X, Y)
    assert ledger.events() == []


def test_a_run_that_breaks_off_has_spent_its_whole_plan() -> None:
    class Breaking:
        def __init__(self, noise: float) -> None:
            self.inner = DpAdmm(5, noise, ConstantSteps(1.0))

        def solve(self, dataset: PrivateDataset, curator: Curator, *, observe: Any = None) -> Any:
            def stop(k: int, state: Any) -> None:
                if np.any(state.model):  # a plan has zeros only
                    raise KeyboardInterrupt

            return self.inner.solve(dataset, curator, observe=stop)

    ledger = MemoryLedger()
    with pytest.raises(KeyboardInterrupt):
        admm(algorithm=lambda noise, shape: Breaking(noise), ledger=ledger).fit(X, Y)
    assert len(ledger.events()) == 5
    assert len(ledger.verify().open) == 1


def test_a_run_that_departs_from_its_plan_is_stopped() -> None:
    made: list[float] = []

    def fickle(noise: float, shape: DataShape) -> DpAdmm:
        made.append(noise)
        same = made.count(noise) > 2  # found, then planned, then run
        return DpAdmm(5, noise / 2 if same else noise, ConstantSteps(1.0))

    with pytest.raises(InvalidParameter, match="as planned"):
        admm(algorithm=fickle).fit(X, Y)


def test_a_search_spends_on_every_fit_and_is_refused_when_the_budget_is_gone() -> None:
    grid = {"regularisation": [1e-3, 1e-1]}
    ledger = budgeted(5.0)
    search = GridSearchCV(admm(ledger=ledger), grid, cv=2, error_score="raise")
    search.fit(X, Y)
    assert len(ledger.runs()) == 2 * 2 + 1
    assert search.best_estimator_.ledger_ is ledger
    poor = budgeted(1.5)
    with pytest.raises(BudgetExceeded):
        GridSearchCV(admm(ledger=poor), grid, cv=2, error_score="raise").fit(X, Y)
    assert sum(run.committed for run in poor.runs()) == 2


def test_copies_share_the_ledger_or_are_refused(tmp_path: Path) -> None:
    memory = MemoryLedger()
    assert clone(admm(ledger=memory)).ledger is memory
    assert deepcopy(admm(ledger=memory).fit(X, Y)).ledger_ is memory
    with pytest.raises(LedgerError, match="second budget"):
        pickle.dumps(admm(ledger=memory))
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        ledger.set_budget(Budget(ApproxDp(1.5, DELTA), adjacency=REPLACE))
        other = pickle.loads(pickle.dumps(admm(ledger=ledger)))
        other.fit(X, Y)
        assert other.ledger is not ledger
        assert ledger.events() == other.ledger_.events() != []
        admm(ledger=ledger).fit(X, Y)
        with pytest.raises(BudgetExceeded):
            other.fit(X, Y)
        other.ledger.close()


def test_a_budget_in_renyi_divergence_pays_for_a_fit() -> None:
    ledger = MemoryLedger()
    ledger.set_budget(Budget(Rdp(16, 10), adjacency=REPLACE))
    admm(ledger=ledger).fit(X, Y)
    assert len(ledger.events()) == 7  # mean row and mean squares, then five rounds


@pytest.mark.parametrize("make", [admm, sharing])
def test_a_fitted_estimator_survives_pickling(make: Callable[..., Any]) -> None:
    model = make(random_state=None).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.certificate_.to_json_bytes() == model.certificate_.to_json_bytes()
    assert again.privacy_.epsilon.upper == model.privacy_.epsilon.upper
    assert again.ledger_.verify(expected_head=model.ledger_.head).reservations == 1
    assert len(again.fit(X, Y).ledger_.runs()) == 1


@pytest.mark.parametrize(
    ("make", "then"), [(admm, {}), (sharing, {}), (admm, {"random_state": None})]
)
def test_a_fitted_models_pickle_holds_no_seed_of_its_noise(
    make: Callable[..., Any], then: dict[str, Any]
) -> None:
    seed = 3141592653589793
    with pytest.warns(RepeatableNoise, match="repeatable noise"):
        model = make(random_state=seed).fit(X, Y)
    (paid,) = model.ledger_.reservations()
    model.set_params(**then)
    document = pickle.dumps(model)
    assert str(paid.provenance.seed).encode() not in document
    again = pickle.loads(document)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.random_state is None
    assert not hasattr(again, "ledger_")
    assert str(seed).encode() not in document
    assert seed.to_bytes(7, "little") not in document
    # an estimator that is yet to be fitted is a setting: workers of a search need all of it
    assert pickle.loads(pickle.dumps(make(random_state=seed))).random_state == seed


@pytest.mark.parametrize("make", [admm, sharing])
@pytest.mark.parametrize(("fitted", "whole"), [(False, int), (True, int), (False, np.int64)])
def test_no_estimator_shows_the_seed_of_its_noise(
    make: Callable[..., Any], fitted: bool, whole: Callable[[int], int]
) -> None:
    seed = whole(3141592653589793)
    model = make(random_state=seed)
    if fitted:
        with pytest.warns(RepeatableNoise):
            model.fit(X, Y)
    shown = [repr(model), str(model), model._repr_html_(), *model._repr_mimebundle_().values()]
    for text in shown:
        assert "random_state" in text
        assert "kept" in text
        assert str(seed) not in text
    given = model.get_params()["random_state"]
    for text in (json.dumps(given), f"{given:>20}", f"{given!r}", str(given)):
        assert "kept" in text
        assert str(seed) not in text
    assert clone(model).set_params(random_state=given).random_state == seed
    assert pickle.loads(pickle.dumps(given)) == deepcopy(given) == given == seed
    assert model.get_params()["random_state"] == model.random_state == seed
    # what has no seed is shown as scikit-learn shows it
    assert "kept" not in repr(make(random_state=None))


def test_noise_of_the_operating_system_is_fitted_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatableNoise)
        admm(random_state=None).fit(X, Y)


# 4. bad input


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"adjacency": "replace"}, "adjacency"),
        ({"adjacency": Adjacency.REPLACE_FEATURE_COLUMN}, "adjacency"),
        ({"adjacency": ADD}, "n_min"),
        ({"adjacency": ADD, "n_min": 5000}, "n_min"),
        ({"adjacency": ADD, "n_min": 500, "n_parties": 2}, "party_of"),
        ({"n_min": 500}, "n_min"),
        ({"rounds": 0}, "rounds"),
        ({"regularisation": -1.0}, "regularisation"),
        ({"row_bound": 0.0}, "row_bound"),
        ({"row_bound": 0.1}, "row norms"),
        ({"n_parties": 0}, "n_parties"),
        ({"n_parties": 10**9}, "n_parties"),
        ({"n_parties": 3, "parties": ("a", "b")}, "n_parties"),
        ({"n_parties": 5000}, "party"),
        ({"algorithm": "dp-admm"}, "algorithm"),
        ({"algorithm": AdmmAlgorithm.PR_ADMM}, "n_parties"),
        ({"algorithm": AdmmAlgorithm.CENTRALISED, "n_parties": 2}, "parties"),
        ({"classes": ("no", "maybe")}, "y"),
        ({"classes": ("no",)}, "1 class"),
        ({"random_state": np.random.RandomState(0)}, "random_state"),
        ({"random_state": -1}, "seed"),
    ],
)
def test_bad_arguments_raise_before_anything_is_spent(given: dict[str, Any], error: str) -> None:
    ledger = MemoryLedger()
    with pytest.raises(ValueError, match=f"{error}"):
        admm(ledger=ledger, **given).fit(X, Y)
    assert ledger.events() == []


@pytest.mark.parametrize("make", [admm, sharing, regressor])
def test_no_error_of_what_is_no_number_shows_a_cell(make: Callable[..., Any]) -> None:
    labels = np.full(len(Y), 0.25) if make is regressor else Y
    model = make().fit(X, labels)
    for what in (0.125123j, "0.125123x"):
        for rows, answers in (
            (np.full(X.shape, what), labels),
            (X, np.full(len(Y), what)),
            (np.full(X.shape, what), None),
        ):
            with pytest.raises(
                ValueError, match=r"must be (real numbers|of classes|numbers that a binary64 holds)"
            ) as raised:
                model.predict(rows) if answers is None else make().fit(rows, answers)
            assert "0.125" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"adjacency": ADD}, "adjacency"),
        ({"parties": {"bank": [0, 1], "shop": [1, 2, 3]}}, "columns once"),
        ({"parties": {"bank": [0, 1]}}, "columns once"),
        ({"classes": ("no", "yes", "maybe")}, "binary"),
        ({"parties": 5}, "parties"),
        ({"parties": 0}, "parties"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"row_bound": 0.1}, "row norms"),
        ({"rounds": -1}, "rounds"),
    ],
)
def test_bad_vertical_arguments_raise_before_anything_is_spent(
    given: dict[str, Any], error: str
) -> None:
    ledger = MemoryLedger()
    with pytest.raises(ValueError, match=error):
        sharing(ledger=ledger, **given).fit(X, Y)
    assert ledger.events() == []


def test_bad_records_raise_before_anything_is_spent() -> None:
    ledger = MemoryLedger()
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        admm(ledger=ledger).fit(broken, Y)
    with pytest.raises(InvalidParameter, match=r"party_of\.shape"):
        admm(ledger=ledger, n_parties=2).fit(X, Y, party_of=[0, 1])
    with pytest.raises(InvalidParameter, match="party_of"):
        admm(ledger=ledger, n_parties=2).fit(X, Y, party_of=np.full(len(Y), 2))
    assert ledger.events() == []


# 5. what is public


def test_assumptions_name_what_a_fit_takes_for_granted() -> None:
    cells, chosen = admm(clip=True, random_state=None).fit(X, Y).privacy_.assumptions
    assert cells.startswith("every cell there could be is a finite number")
    assert chosen.startswith("which records a fit is given depends on no record")
    bounds, _, _ = (
        admm(clip=True, random_state=None, adjacency=Adjacency.ADD_REMOVE_ONE, n_min=len(Y))
        .fit(X, Y)
        .privacy_.assumptions
    )
    assert f"at least {len(Y)} records and at most {2**10 * len(Y)} (others are refused" in bounds
    given = admm(classes=None).fit(X, Y).privacy_.assumptions
    assert [text.split()[1] for text in given] == ["classes", "cell", "records", "row", "is"]
    # and so does the certificate, to whoever checks it
    certificate = admm(classes=None).fit(X, Y).certificate_
    words = check(certificate.to_json_bytes()).assumptions
    assert {f"taken for granted: {text}" for text in given} <= set(words)
    plain = admm(clip=True, random_state=None).fit(X, Y)
    words = check(plain.certificate_.to_json_bytes()).assumptions
    row = plain.ledger_.last_row.statement
    granted = [text for text in words if "granted" in text]
    assert granted == [f"taken for granted: {text}" for text in sorted((cells, chosen, row))]
    assert list(admm(classes=None).fit(X, Y).classes_) == ["no", "yes"]


def test_labels_may_be_of_one_class_where_classes_are_public() -> None:
    model = admm().fit(X, np.full(len(X), "yes"))
    assert list(model.classes_) == ["no", "yes"]


def test_one_record_more_does_not_move_the_plan_under_add_remove_one() -> None:
    given = {"adjacency": ADD, "n_min": 900, "parties": ("a", "b")}
    party_of = np.arange(len(X)) % 2
    fewer = admm(**given).fit(X[:-1], Y[:-1], party_of=party_of[:-1])
    more = admm(**given).fit(X, Y, party_of=party_of)
    assert fewer.certificate_.subject == more.certificate_.subject
    assert set(more.privacy_.by_party[-1].parties) == {"a", "b"}


def test_no_value_of_a_record_moves_the_plan() -> None:
    other, flipped = X.copy(), Y.copy()
    other[0] = -other[0]
    flipped[1] = "no" if Y[1] == "yes" else "yes"
    assert admm().fit(X, Y).certificate_.subject == admm().fit(other, flipped).certificate_.subject


def test_a_seed_reproduces_a_fit_and_the_default_is_the_systems_entropy() -> None:
    np.testing.assert_array_equal(admm().fit(X, Y).coef_, admm().fit(X, Y).coef_)
    first, second = (admm(random_state=None).fit(X, Y) for _ in range(2))
    assert np.all(first.coef_ != second.coef_)
    (reservation,) = first.ledger_.reservations()
    assert reservation.provenance == SystemSampler().provenance
    (seeded,) = admm().fit(X, Y).ledger_.reservations()
    (again,) = admm().fit(X, Y).ledger_.reservations()
    assert seeded.provenance == again.provenance
    assert seeded.provenance.seed is not None


def test_fits_of_one_seed_on_one_ledger_have_noise_of_their_own() -> None:
    # one noise at two scales could be subtracted, whatever both fits paid
    ledger = MemoryLedger()
    for epsilon in (1.0, 1.0, 2.0):
        admm(ledger=ledger, random_state=7, epsilon=epsilon).fit(X, Y)
    seeds = [found.provenance.seed for found in ledger.reservations()]
    assert len(set(seeds)) == 3
    assert None not in seeds


def test_the_ledger_says_that_the_run_kept_to_its_plan() -> None:
    ledger: Ledger = admm(n_parties=2).fit(X, Y).ledger_
    (run,) = ledger.runs()
    assert (run.planned, run.kept_to_plan, run.events, run.committed) == (True, True, 7, 1)
    assert ledger.verify().open == ()


# 6. scikit-learn

EXPECTED = {
    "check_parameters_default_constructible": "epsilon, delta and adjacency have no honest "
    "default, and an algorithm is named by a member of an enum",
    **{
        f"check_sample_weight_equivalence_on_{kind}_data": "noise is drawn for the number of "
        "records, which is public: a record of weight 2 is no two records, nor one of 0 none"
        for kind in ("dense", "sparse")
    },
}


@pytest.mark.parametrize(
    "estimator",
    [
        admm(epsilon=100.0, clip=True, row_bound=10.0, classes=None),
        pytest.param(
            sharing(epsilon=100.0, clip=True, row_bound=10.0, classes=None, parties=1),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["horizontal", "vertical"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.EstimatorCheckFailedWarning")
def test_the_checks_of_scikit_learn_pass(estimator: Any) -> None:
    check_estimator(estimator, expected_failed_checks=EXPECTED, on_skip=None)


def test_it_is_a_step_of_a_pipeline() -> None:
    pipeline = make_pipeline(Normalizer(), admm(row_bound=1.0))
    assert pipeline.fit(X, Y).score(X, Y) > 0.8


def test_the_solvers_do_without_scikit_learn_and_the_error_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import dpledger.solvers, dpledger.cli.app\n"
        "try:\n    import dpledger.runs.estimators\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=6000
    )
    assert "pip install 'dpledger[sklearn]'" in done.stdout


def test_a_refused_fit_leaves_the_model_as_it_was() -> None:
    """Classes that were read off the labels stood on a model whose promise did not name them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (600, 2))
    own, other = (np.where(X[:, 0] > 0, *names) for names in (("yes", "no"), ("sick", "hiv")))
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(1.2, 1e-5), adjacency=Adjacency.REPLACE_ONE))
    model = PrivateAdmmClassifier(
        epsilon=1.0, delta=1e-5, adjacency="replace-one", rounds=3, classes=("no", "yes"),
        clip=True, ledger=ledger,
    ).fit(X, own)  # fmt: skip
    before, said = dict(vars(model)), model.predict(X)
    model.set_params(classes=None)
    for refused in (lambda: model.fit(X, other), lambda: model.fit(np.ones((600, 3)), other)):
        with pytest.raises((BudgetExceeded, InvalidParameter)):
            refused()
        assert vars(model) == {**before, "classes": None}
        assert np.array_equal(model.predict(X), said)
    fresh = PrivateAdmmClassifier(
        epsilon=1.0, delta=1e-5, adjacency="replace-one", rounds=3, clip=True, ledger=ledger
    )
    with pytest.raises(BudgetExceeded):
        fresh.fit(X, other)
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_no_warning_counts_different_labels() -> None:
    """scikit-learn warns of classes that are more than half of the records."""
    labels = np.arange(60) % 31
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", RepeatableNoise)
        admm(classes=range(40), rounds=2).fit(X[:60], labels)
        admm(classes=None, rounds=2).fit(X[:60], labels)


def test_fits_in_threads_leave_warnings_as_they_were() -> None:
    """`catch_warnings` is of the whole process: who left last silenced what was to come."""
    before = list(warnings.filters)

    def refused() -> None:
        for _ in range(100):
            with pytest.raises(InvalidParameter):
                admm(classes=None, rounds=2, clip=False).fit(X[:60] + 9.0, Y[:60])

    threads = [threading.Thread(target=refused) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


def test_a_label_of_a_named_class_is_taken_whatever_the_others_are() -> None:
    """A class that is no whole number was refused as continuous, where a record had it."""
    labels = np.where(np.arange(60) % 2, 1.0, 2.0)
    for one in (2.0, 2.5):
        labels[7] = one
        admm(classes=(1.0, 2.0, 2.5), rounds=2).fit(X[:60], labels)


@pytest.mark.parametrize("some", [X[:, 0], X[7], X[7, 0], X[0].tolist()], ids=repr)
def test_rows_that_are_none_are_refused_without_a_cell(some: Any) -> None:
    """A column, a record, a cell: scikit-learn's sentence shows them, and asks to reshape."""
    with pytest.warns(RepeatableNoise):
        fitted = admm(rounds=2, classes=(0, 1)).fit(X, (Y[0] == Y).astype(int))
    for asked in (lambda: admm().fit(some, Y), lambda: fitted.predict(some)):
        with pytest.raises(InvalidParameter, match="Reshape your data") as refused:
            asked()
        assert "array=" not in str(refused.value)
        assert str(refused.value).count("0.") == 0
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None


class _Odd:
    """A cell of a class of one's own, that says what it is."""

    def __float__(self) -> float:
        raise ValueError("my cell is 4711")


@pytest.mark.parametrize("cell", ["x4711", {4711: 1}, 4711j, [4711], _Odd(), object])
@pytest.mark.parametrize("place", ["X", "y", "sample_weight"])
def test_what_is_no_number_is_refused_without_a_word_of_it(cell: Any, place: str) -> None:
    """Whatever NumPy or scikit-learn say of a cell, and whatever it says itself."""
    given: dict[str, Any] = {"X": X.astype(object), "y": (X[:, 0] / 9.0).astype(object)}
    given["sample_weight"] = np.full(len(X), 0.5, dtype=object)
    if place == "X":
        given["X"][7, 0] = cell
    else:
        given[place][7] = cell
    model = regressor()
    with pytest.raises((TypeError, ValueError)) as refused:
        model.fit(given["X"], given["y"], given["sample_weight"])
    assert "4711" not in str(refused.value)
    assert refused.value.__context__ is None


@pytest.mark.parametrize("many", [3, 100])
@pytest.mark.parametrize("kind", [list, np.asarray, lambda y: np.asarray(y, dtype=object)])
def test_a_label_is_looked_up_by_itself(many: int, kind: Callable[[Any], Any]) -> None:
    """Texts were searched among numbers from where the last one was: one moved all others."""
    rows = np.tile([1.0, 0.0], (1000, 1))

    def fitted(first: Any, other: Any, kind: Callable[[Any], Any] = np.asarray) -> Any:
        model = admm(classes=range(many), algorithm=AdmmAlgorithm.DP_SGD, rounds=1)
        return model.fit(rows, kind([first, *[other] * 999])).coef_

    for first in ("2", "1", 1, 1.0):
        with pytest.raises(InvalidParameter, match="of classes"):
            fitted(first, "1", kind)
    assert np.array_equal(fitted(2, 1, kind), fitted(2, 1))
    assert np.array_equal(fitted(2.0, np.int8(1), kind), fitted(2, 1))


def test_a_text_among_targets_moves_its_own_record_alone() -> None:
    """A list with a text in it made texts of half-precision numbers, and other doubles of those."""
    values: list[Any] = [np.float16(v) for v in np.linspace(0.5, 0.99, 500)]
    rows = np.ones((501, 1))
    model = regressor().set_params(random_state=3)
    fits = [clone(model).fit(rows, [*values, last]).coef_ for last in (0.25, "0.25")]
    assert np.array_equal(*fits)


@pytest.mark.parametrize("make", [admm, sharing, regressor])
def test_no_score_shows_a_cell(make: Callable[..., Any]) -> None:
    """scikit-learn says which labels are of another type, and what is no number."""
    labels = np.full(len(Y), 0.25) if make is regressor else Y
    model = make().fit(X, labels)
    assert 0.0 < model.score(X, labels) + 1.0 <= 2.0
    for bad in (np.array([4711] * len(Y)) if make is not regressor else ["x4711"] * len(Y), None):
        with pytest.raises((TypeError, ValueError)) as refused:
            model.score(X, bad)
        assert "4711" not in str(refused.value)
        assert refused.value.__context__ is None


@pytest.mark.parametrize("bound", [1e-310, 1e300])
def test_bounds_at_the_end_of_the_doubles_are_refused(bound: float) -> None:
    """A reciprocal that overflows made a row of zeros a refusal."""
    with pytest.raises(InvalidParameter, match="row_bound"):
        admm(row_bound=bound, clip=True).fit(X, Y)


@pytest.mark.parametrize("place", ["X", "y", "party_of"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_masked_record_is_not_trained_on_as_if_it_were_none(place: str, listed: bool) -> None:
    """scikit-learn and NumPy drop masks in silence."""
    rng = np.random.default_rng(0)
    given = {"X": rng.uniform(-0.5, 0.5, (24, 2)), "y": np.arange(24) % 2}
    given["party_of"] = given["y"]
    masked: Any = np.ma.array(given[place], mask=rng.random(given[place].shape) < 0.3)
    model = PrivateAdmmClassifier(
        epsilon=1.0, delta=1e-5, adjacency="replace-one", classes=(0, 1), n_parties=2, clip=True
    )
    with pytest.raises(InvalidParameter, match=rf"{place}=.*a masked array"):
        model.fit(**given | {place: list(masked) if listed else masked})
