"""Laws of sample weights: a part of the record, priced at the largest that there may be.

1. Equal weights at the bound change nothing, and none of weight 0 has any effect.
2. With next to no noise, the model is the optimum of the weighted loss over the number of records.
3. What is planned and paid does not depend on the weights, or on their bound.
4. Weights out of range are refused, or cut; what a refusal tells is an assumption.
5. All of this of a regressor, whose targets are rounded to 2^-24 of their range beside weights.
"""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dpledger.mechanisms import Adjacency, InvalidParameter

pytest.importorskip("sklearn")

from sklearn import config_context

from dpledger.runs.estimators import (
    AdmmAlgorithm,
    PrivateAdmmClassifier,
    PrivateAdmmRegressor,
)

pytestmark = pytest.mark.filterwarnings("ignore::dpledger.mechanisms.errors.RepeatableNoise")

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(400, 3))
Y = np.where(RNG.random(400) < 1 / (1 + np.exp(-4.0 * X @ [1.0, -1.0, 0.5])), "yes", "no")
WEIGHTS = RNG.choice([0.0, 0.5, 2.0, 4.0], size=400)


def admm(**given: Any) -> PrivateAdmmClassifier:
    known: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "adjacency": Adjacency.REPLACE_ONE,
        "classes": ("no", "yes"),
        "weight_bound": 4.0,
        "random_state": 1,
        "rounds": 5,
    }
    return PrivateAdmmClassifier(**(known | given))


@pytest.mark.parametrize("algorithm", [AdmmAlgorithm.CONSENSUS, AdmmAlgorithm.DP_ADMM], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_weights_at_the_bound_are_no_weights(algorithm: AdmmAlgorithm, classes: int) -> None:
    labels = np.digitize(X[:, 0], [-0.2, 0.2]) if classes == 3 else Y
    made = admm(algorithm=algorithm, classes=np.unique(labels).tolist())
    plain = made.fit(X, labels)
    expected, promised = plain.coef_, plain.certificate_.subject
    weighted = made.fit(X, labels, np.full(400, 4.0))
    np.testing.assert_array_equal(weighted.coef_, expected)
    assert weighted.certificate_.subject == promised
    assert weighted.slope_bound_ == (0.5 if (algorithm.name, classes) == ("CONSENSUS", 2) else 1.0)


def test_a_record_without_weight_has_no_effect_and_another_has() -> None:
    others = X.copy()
    others[WEIGHTS == 0.0] *= -1.0
    made = admm(algorithm=AdmmAlgorithm.DP_ADMM)  # consensus-admm buys the mean of all rows
    model = made.fit(X, Y, WEIGHTS).coef_
    np.testing.assert_array_equal(made.fit(others, Y, WEIGHTS).coef_, model)
    assert not np.array_equal(made.fit(X, Y, np.minimum(WEIGHTS, 2.0)).coef_, model)


def test_without_noise_to_speak_of_the_model_is_the_optimum_of_the_weighted_loss() -> None:
    made = admm(epsilon=1e7, regularisation=1e-2, rounds=100)
    found = made.fit(X, Y, WEIGHTS)
    rows, signs = np.hstack([X, np.ones((400, 1))]) * np.sqrt(0.5), np.where(Y == "yes", 1, -1)

    def objective(w: np.ndarray) -> float:
        losses = np.logaddexp(0.0, -signs * (rows @ w))
        return float((WEIGHTS / 4.0 * losses).sum() / 400 + 0.5e-2 * w @ w)

    best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    model = np.append(found.coef_[0], found.intercept_[0]) / np.sqrt(0.5)
    np.testing.assert_allclose(model, best, rtol=0.02, atol=0.02)


def test_what_is_paid_depends_neither_on_weights_nor_on_their_bound() -> None:
    subjects = {
        made.fit(X, Y, given).certificate_.subject
        for made, given in (
            (admm(), WEIGHTS),
            (admm(), WEIGHTS[::-1]),
            (admm(weight_bound=40.0), WEIGHTS),
            (admm(), None),
        )
    }
    assert len(subjects) == 1
    multipliers = [admm(weight_bound=b).fit(X, Y, WEIGHTS).noise_multiplier_ for b in (4.0, 40.0)]
    assert multipliers[0] == multipliers[1]


def test_weights_beyond_the_bound_are_refused_or_cut() -> None:
    with pytest.raises(InvalidParameter, match="weight_bound=2"):
        admm(weight_bound=2.0).fit(X, Y, WEIGHTS)
    cut = admm(weight_bound=2.0, clip=True).fit(X, Y, WEIGHTS)
    same = admm(weight_bound=2.0, clip=True).fit(X, Y, np.minimum(WEIGHTS, 2.0))
    np.testing.assert_array_equal(cut.coef_, same.coef_)
    for bad in (-WEIGHTS, np.zeros(400), WEIGHTS[:-1], np.where(WEIGHTS > 2, np.nan, WEIGHTS)):
        with pytest.raises(ValueError, match=r"(?i)weight"):
            admm(clip=True).fit(X, Y, bad)
    with pytest.raises(InvalidParameter, match="weight_bound"):
        admm(weight_bound=0.0).fit(X, Y, WEIGHTS)


def test_weights_that_are_no_numbers_are_refused_without_their_place() -> None:
    """Also where scikit-learn is told to assume that all are finite."""
    for bad in (np.nan, np.inf):
        weights = WEIGHTS.copy()
        weights[3] = bad
        with config_context(assume_finite=True), pytest.raises(InvalidParameter) as refused:
            admm(clip=True).fit(X, Y, weights)
        assert str(refused.value) == "sample_weight='NaN or infinity' must be finite."


def test_time_spans_are_no_weights() -> None:
    """A list of them was made one unit first: a second multiplied all days by 86,400."""
    day, second = np.timedelta64(1, "D"), np.timedelta64(1, "s")
    for last in (day, second, 1.0):
        with pytest.raises(InvalidParameter, match=r"sample_weight='.*times"):
            admm(weight_bound=10.0, clip=True).fit(X, Y, [*[day] * 399, last])


def test_parties_that_are_no_whole_numbers_are_refused_by_name_alone() -> None:
    with pytest.raises(InvalidParameter, match="party_of=") as refused:
        admm(n_parties=2).fit(X, Y, party_of=np.arange(400) % 2 + 0j)
    assert "j" not in str(refused.value).split("must be")[0]


def test_a_refusal_of_weights_is_an_assumption() -> None:
    weighted, plain = (admm().fit(X, Y, given).privacy_.assumptions for given in (WEIGHTS, None))
    assert [each for each in weighted if "sample weights" in each]
    assert not [each for each in plain if "sample weights" in each]


@pytest.mark.slow
def test_candidates_are_trained_with_weights_and_chosen_without() -> None:
    candidates = [{"rounds": 2}, {"rounds": 4}]
    made = admm(candidates=candidates)
    found, plain = made.fit(X, Y, np.full(400, 4.0)).coef_, made.fit(X, Y).coef_
    np.testing.assert_array_equal(found, plain)
    assert not np.array_equal(made.fit(X, Y, WEIGHTS).coef_, plain)


TARGETS = np.clip(20.0 + X @ [4.0, -2.0, 1.0] + 0.3 * RNG.normal(size=400), 15.0, 25.0)


def regression(**given: Any) -> PrivateAdmmRegressor:
    known: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "adjacency": Adjacency.REPLACE_ONE,
        "target_bounds": (15.0, 25.0),
        "weight_bound": 4.0,
        "random_state": 1,
    }
    return PrivateAdmmRegressor(**(known | given))


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_a_regressor_with_weights_at_the_bound_has_none(loss: str) -> None:
    made = regression(loss=loss, rounds=5)
    plain = made.fit(X, TARGETS)
    expected, promised = plain.coef_, plain.certificate_.subject
    weighted = made.fit(X, TARGETS, np.full(400, 4.0))
    np.testing.assert_allclose(weighted.coef_, expected, rtol=1e-5)
    assert weighted.certificate_.subject == promised
    assert [each for each in weighted.privacy_.assumptions if "sample weights" in each]
    others = TARGETS.copy()
    others[WEIGHTS == 0.0] = 15.0
    found = made.fit(X, TARGETS, WEIGHTS).coef_
    np.testing.assert_array_equal(made.fit(X, others, WEIGHTS).coef_, found)
    assert not np.allclose(found, expected, rtol=1e-3)


def test_without_noise_a_regressor_is_the_optimum_of_the_weighted_squares() -> None:
    found = regression(epsilon=1e7, regularisation=1e-2, rounds=100).fit(X, TARGETS, WEIGHTS)
    rows, scaled = np.hstack([X, np.ones((400, 1))]) * np.sqrt(0.5), (TARGETS - 20.0) / 5.0

    def optimum(weights: np.ndarray) -> np.ndarray:
        share = weights[:, None] * rows / 400
        return np.linalg.solve(share.T @ rows + 1e-2 * np.eye(4), share.T @ scaled)

    model = np.append(found.coef_, found.intercept_ - 20.0) / np.sqrt(0.5) / 5.0
    np.testing.assert_allclose(model, optimum(WEIGHTS / 4.0), rtol=0.02, atol=0.02)
    assert np.max(np.abs(model - optimum(np.ones(400)))) > 0.1


def test_weights_of_a_regressor_beyond_the_bound_are_refused_or_cut() -> None:
    with pytest.raises(InvalidParameter, match="weight_bound=2"):
        regression(weight_bound=2.0).fit(X, TARGETS, WEIGHTS)
    made = regression(weight_bound=2.0, clip=True, rounds=5)
    cut = made.fit(X, TARGETS, WEIGHTS).coef_
    np.testing.assert_array_equal(made.fit(X, TARGETS, np.minimum(WEIGHTS, 2.0)).coef_, cut)
