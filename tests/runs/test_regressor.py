"""Laws of the private regressor.

1. A fit's certificate proves the target epsilon, and an independent account agrees.
2. At an epsilon without noise to speak of, the model is that of an independent solver, per loss.
3. Targets have public bounds: what lies outside is refused, or cut, and predictions stay inside.
4. A fit may start from the model of the fit before, which is named as public.
5. scikit-learn's conventions hold but for what has no honest default.
"""

import warnings
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from dpledger.accounting.check.checker import check
from dpledger.mechanisms import Adjacency, GaussianStep, InvalidParameter
from dpledger.mechanisms.errors import RepeatableNoise
from dpledger.solvers import Huber, SmoothedQuantile, Summed, bounded_squared

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from tests.parameters import slow

from dpledger.runs.estimators import PrivateAdmmRegressor, RegressionLoss

pytestmark = pytest.mark.filterwarnings("ignore::dpledger.mechanisms.errors.RepeatableNoise")
DELTA = 1e-5
REPLACE, ZERO, ADD = (
    Adjacency.REPLACE_ONE,
    Adjacency.ZERO_OUT_ONE,
    Adjacency.ADD_REMOVE_ONE,
)
BOUNDS = (10.0, 30.0)


def records(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 3))
    rows /= np.maximum(1.0, 1.001 * np.linalg.norm(rows, axis=1, keepdims=True) / 2.0)
    targets = 18.0 + rows @ [2.0, -1.0, 0.5] + rng.exponential(1.0, size=n)
    return rows, np.clip(targets, *BOUNDS)


X, Y = records()


def admm(**given: Any) -> PrivateAdmmRegressor:
    known: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": DELTA,
        "adjacency": REPLACE,
        "target_bounds": BOUNDS,
        "row_bound": 2.0,
        "random_state": 1,
    }
    return PrivateAdmmRegressor(**(known | given))


@pytest.mark.parametrize("loss", RegressionLoss)
@pytest.mark.parametrize(("adjacency", "given"), [(REPLACE, {}), (ZERO, {}), (ADD, {"n_min": 900})])
def test_the_target_is_met_from_below_and_an_independent_account_agrees(
    adjacency: Adjacency, given: dict[str, Any], loss: RegressionLoss
) -> None:
    model = admm(adjacency=adjacency, loss=loss, n_parties=1, **given).fit(X, Y)
    assert model.privacy_.epsilon <= 1.0
    verdict = check(model.certificate_.to_json_bytes())
    delta, epsilon = verdict.values
    assert (float(delta), verdict.adjacency) == (DELTA, adjacency.value)
    assert epsilon <= 1
    squared = mpmath.mpf(0)
    for event in model.ledger_.events():
        step = event.mechanism
        assert isinstance(step, GaussianStep)
        squared += (mpmath.mpf(step.sensitivity.value) / mpmath.mpf(step.noise_std)) ** 2
    with mpmath.workdps(30):
        mu = mpmath.sqrt(squared)

        def spent(epsilon: float) -> Any:  # Balle, Wang 2018, Theorem 8
            lost = mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
            return mpmath.ncdf(mu / 2 - epsilon / mu) - lost

        assert spent(1.0) <= DELTA * (1 + 1e-12)
        assert spent(0.9999) > DELTA


@pytest.mark.parametrize(("loss", "slope"), [("squared", 2.0), ("huber", 0.2), ("quantile", 0.7)])
def test_a_rounds_sensitivity_is_that_of_bounded_slopes(loss: str, slope: float) -> None:
    model = admm(loss=loss, quantile=0.3, n_parties=3).fit(X, Y)
    # rows with a constant, less what is known of it: sqrt(1/2 + 0.35²) long at most
    radius = np.sqrt(0.5 + 0.35**2)
    for event in model.ledger_.events():
        assert isinstance(event.mechanism, GaussianStep)
        found = event.mechanism.sensitivity.value
        assert found == pytest.approx(2.0 * slope * radius / 1000, rel=1e-5)


@pytest.mark.parametrize(
    ("given", "loss"),
    [
        ({"loss": "squared"}, bounded_squared(score_bound=1.0, label_bound=1.0)),
        ({"loss": "huber", "huber_width": 1.0}, Huber(0.1, 1.0)),
        *slow(({"loss": "quantile", "quantile": 0.9}, SmoothedQuantile(0.9, 0.02, 1.0))),
    ],
)
def test_without_noise_to_speak_of_the_model_is_the_optimum(
    given: dict[str, Any], loss: Any
) -> None:
    model = admm(epsilon=1e6, **given).fit(X, Y)
    rows, scaled = np.column_stack([X, np.ones(len(X))]), (Y - 20.0) / 10.0

    def objective(w: np.ndarray) -> float:
        return float(np.mean(loss.value(rows @ w, scaled)))

    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    found = np.append(model.coef_, model.intercept_ - 20.0) / 10.0
    assert found == pytest.approx(best.x, abs=2e-3)
    assert objective(found) <= best.fun + 1e-6


def test_a_quantile_is_above_its_share_of_the_targets() -> None:
    for level in (0.1, 0.5, 0.9):
        model = admm(epsilon=20.0, loss="quantile", quantile=level).fit(X, Y)
        # a slope's mean is 0 at the optimum: the share is the level up to the smoothed kink
        assert np.mean(model.predict(X) > Y) == pytest.approx(level, abs=0.07)


def test_a_regression_at_epsilon_one_explains_most_of_what_there_is() -> None:
    plain = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), Y, rcond=None)[0]
    least = np.mean((np.column_stack([X, np.ones(len(X))]) @ plain - Y) ** 2)
    for given in ({}, {"n_parties": 3, "threat_model": Summed()}, {"loss": "huber"}):
        model = admm(**given).fit(X, Y)
        assert np.mean((model.predict(X) - Y) ** 2) < least + 0.15 * Y.var()


def test_targets_outside_are_refused_before_anything_is_spent_or_cut() -> None:
    far = Y.copy()
    far[0] = 40.0
    with pytest.raises(InvalidParameter, match=r"target_bounds=\(10.0, 30.0\); clip=True") as told:
        admm().fit(X, far)
    assert "40" not in str(told.value)
    cut, model = admm(clip=True).fit(X, far), admm(clip=True).fit(X, np.clip(far, *BOUNDS))
    assert np.array_equal(cut.coef_, model.coef_)
    assert not any("target" in each for each in cut.privacy_.assumptions)
    assert any("target_bounds" in each for each in admm().fit(X, Y).privacy_.assumptions)
    assert cut.predict(1e6 * X).max() == 30.0
    assert cut.predict(1e6 * X).min() == 10.0


# once: (36.1 - middle) / half is a little below -1, and a target of 36.1 was refused
@pytest.mark.parametrize("place", [0, 1])
def test_targets_on_their_bounds_are_within_them(place: int) -> None:
    bounds = (36.1, 42.3)
    targets = np.full(len(X), 40.0)
    targets[0] = bounds[place]
    assert np.isfinite(admm(target_bounds=bounds, rounds=2).fit(X, targets).coef_).all()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"target_bounds": (1.0, 1.0)}, "target_bounds"),
        ({"target_bounds": (0.0, np.inf)}, "target_bounds"),
        ({"target_bounds": 5.0}, "target_bounds"),
        ({"loss": "absolute"}, "loss"),
        ({"loss": "quantile", "quantile": 1.0}, "quantile"),
        ({"loss": "huber", "huber_width": 0.0}, "huber_width"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"records_per_unit": 0}, "records_per_unit"),
    ],
)
def test_bad_settings_are_refused_by_name(given: dict[str, Any], named: str) -> None:
    with pytest.raises((InvalidParameter, ValueError), match=named):
        admm(**given).fit(X, Y)


def test_a_warm_start_is_the_public_model_of_the_fit_before() -> None:
    model = admm(epsilon=1e6, warm_start=True).fit(X, Y)
    before = np.append(model.coef_ * 2.0, model.intercept_ - 20.0) / 10.0 / np.sqrt(0.5)
    # one step from the optimum stays there
    model.set_params(rounds=1).fit(X, Y)
    assert model.history_[0].point == pytest.approx(before, abs=1e-3)
    assert any("starts from is public" in each for each in model.privacy_.assumptions)
    fresh: Any = clone(model)
    assert not any("starts from" in each for each in fresh.fit(X, Y).privacy_.assumptions)


def test_sparse_rows_give_the_same_model_and_a_seed_the_same_noise() -> None:
    dense, thin = admm().fit(X, Y), admm().fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-9)
    with pytest.warns(RepeatableNoise) as caught:
        assert np.array_equal(admm().fit(X, Y).coef_, dense.coef_)
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.EstimatorCheckFailedWarning")
def test_the_checks_of_scikit_learn_pass() -> None:
    estimator = admm(epsilon=100.0, clip=True, row_bound=6.0, target_bounds=(-5.0, 5.0))
    missing = "epsilon, delta, adjacency and the targets' bounds have no honest default"
    expected = {"check_parameters_default_constructible": missing}
    for kind in ("dense", "sparse"):
        why = "noise is drawn for the public number of records, which weights do not change"
        expected[f"check_sample_weight_equivalence_on_{kind}_data"] = why
    check_estimator(estimator, expected_failed_checks=expected, on_skip=None)


def test_no_warning_tells_of_one_records_arithmetic() -> None:
    """A target that overflows, a cell whose square underflows; NumPy asked to say it, or not."""
    rows, targets = X[:60].copy(), Y[:60].copy()
    rows[7, 1], targets[7] = 5e-324, 1e308
    for rule in ("warn", "raise"):
        with np.errstate(all=rule), warnings.catch_warnings():  # type: ignore[call-overload]
            warnings.simplefilter("error", RuntimeWarning)
            admm(clip=True, rounds=2).fit(rows, targets, sample_weight=np.full(60, 5e-324))
