"""Laws of the membership check: known leakage is found, none is invented, promises are compared.

The yardstick is a game whose models are one normal number of known shift: the exact trade-off is
known, and scores see it through a logistic model of one coordinate.
"""

from dataclasses import dataclass, field, replace
from math import exp, sqrt

import numpy as np
import pytest
from scipy.stats import norm

from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.audits.bounds import Scores
from dpledger.audits.datasets import AuditDataset
from dpledger.audits.membership import (
    Answers,
    Fisher,
    LiraOffline,
    LiraOnline,
    LossThreshold,
    ModelFailed,
    ModelGame,
    Rmia,
    SolverGame,
    Target,
    canary,
    check_membership,
    innovation_scores,
    most_exposed,
    replacements,
    verdict,
    worst_replacement,
)
from dpledger.audits.membership.game import _training_seeds
from dpledger.audits.metrics import allowed_tpr, auc
from dpledger.audits.neighbours import NeighbourPair, flip_label
from dpledger.mechanisms import Adjacency, ClassLabels
from dpledger.mechanisms.errors import AdjacencyMismatch, InvalidParameter
from dpledger.solvers import ConstantSteps, DpAdmm, Logistic, Multinomial

SCORES = (LossThreshold(), LiraOnline(), LiraOffline(), Rmia(), Fisher())
TARGET = Target(np.array([1.0]), 1.0, "the record")


@dataclass(frozen=True)
class Shifted:
    """Models are one normal number, `mu` higher with the target: exactly mu-GDP."""

    mu: float
    target: Target = field(default=TARGET)
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    absent: str = "another"

    def answers(self, *, inside, trials, seed):
        generator = np.random.default_rng([seed, inside])
        models = generator.normal(self.mu * inside, size=(trials, 1))
        loss = Logistic()
        rows = np.array([[0.3], [-0.8], [0.1]])
        return Answers(
            target=-loss.value(models[:, 0], np.ones(1)),
            population=-loss.value(models @ rows.T, np.ones(3)),
            parameters=models,
        )


def check(game, *, promise, scores=SCORES, trials=4000, seed=1, delta=1e-5):
    return check_membership(
        game,
        scores,
        promise=promise,
        adjacency=game.adjacency,
        delta=delta,
        trials=trials,
        shadows=400,
        confidence=0.95,
        seed=seed,
    )


def test_every_score_finds_what_there_is():
    # the model is one number and every score orders models by it: the AUC is Phi(mu/sqrt 2)
    found = check(Shifted(1.5), promise=Gdp(2.25))
    for result in found.results:
        assert result.auc == pytest.approx(norm.cdf(1.5 / sqrt(2)), abs=0.02), result.name
        assert 0.5 < result.bound.epsilon < found.claimed_epsilon
    assert not found.refutes_promise
    assert not found.null_control_failed


def test_a_false_promise_is_refuted_and_the_verdict_says_so():
    found = check(Shifted(2.0), promise=ApproxDp(0.5, 1e-5))
    assert found.refutes_promise
    assert any("BROKEN" in line for line in verdict(found))


def test_the_verdict_shows_no_more_than_was_found_and_promises_no_less():
    found = check(Shifted(2.0), promise=ApproxDp(0.5, 1e-5))
    results = tuple(replace(r, bound=replace(r.bound, epsilon=1.2399)) for r in found.results)
    said = "\n".join(verdict(replace(found, results=results, claimed_epsilon=0.50001)))
    assert "at least 1.23 at" in said
    assert "epsilon 0.5001 at" in said


def test_a_promised_curve_is_tested_as_a_curve():
    # mu = 0.54 where 0.27 was promised: no bound at delta 1e-5 says so, the errors in all do
    found = check(Shifted(0.54), promise=Gdp(0.27**2))
    assert all(result.bound.epsilon < found.claimed_epsilon for result in found.results)
    assert found.refutes_promise
    assert any("total errors" in line for line in verdict(found))


def test_where_nothing_differs_nothing_is_found():
    alarms = sum(
        check(Shifted(0.0), promise=Gdp(0), trials=50, seed=seed).refutes_promise
        for seed in range(30)
    )
    # five scores share the error probability 0.05; P(more than 5 of 30) = 0.003
    assert alarms <= 5


def test_the_verdict_names_the_best_attack_beside_what_the_promise_allows():
    found = check(Shifted(1.0), promise=Gdp(1))
    lines = verdict(found)
    allowed = 1 - norm.cdf(norm.ppf(0.99) - 1)
    sentence = next(line for line in lines if "rate of 0.01 " in line)
    assert f"at most {allowed:.3g};" in sentence
    best = max(result.tpr_at_fpr[1].tpr for result in found.results)
    assert f"reached {best:.3g} ±" in sentence
    assert any("contradicts" in line for line in lines)


@pytest.mark.parametrize("fpr", [1e-3, 0.1, 0.5, 0.9])
def test_an_approximate_promise_bounds_both_errors(fpr):
    epsilon, delta = 0.7, 0.01
    beta = max(0, 1 - delta - exp(epsilon) * fpr, exp(-epsilon) * (1 - delta - fpr))
    assert allowed_tpr(ApproxDp(epsilon, delta), fpr) == pytest.approx(1 - beta, rel=1e-9)


def test_fisher_is_the_best_linear_score():
    # correlated parameters: the naive direction is far worse than the optimal one
    generator = np.random.default_rng(3)
    covariance = np.array([[1.0, 0.95], [0.95, 1.0]])
    gap = np.array([0.5, -0.5])
    draws = [
        generator.multivariate_normal(side * gap, covariance, size=4000) for side in (1, 0, 1, 0)
    ]
    answers = [Answers(np.full(4000, -1.0), np.zeros((4000, 0)), draw) for draw in draws]
    scorer = Fisher().learn(*answers[:2])
    mu = sqrt(gap @ np.linalg.solve(covariance, gap))
    found = auc(Scores(scorer(answers[2]), scorer(answers[3])))
    assert found == pytest.approx(norm.cdf(mu / sqrt(2)), abs=0.015)


def test_offline_lira_does_not_look_at_members():
    shadow = Shifted(1.0).answers(inside=False, trials=100, seed=1)
    nonsense = Answers(np.full(100, -5.0), np.full((100, 3), -1.0), None)
    judged = Shifted(1.0).answers(inside=True, trials=50, seed=2)
    first = LiraOffline().learn(nonsense, shadow)(judged)
    second = LiraOffline().learn(shadow, shadow)(judged)
    np.testing.assert_array_equal(first, second)


# --- on real solvers and models ------------------------------------------------------------------


def records(n=40, seed=0):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(n, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.where(rows[:, 0] + 0.3 * generator.normal(size=n) > 0, 1.0, -1.0)


def solver_pair(seed=0):
    rows, labels = records(seed=seed)
    dataset = AuditDataset(rows, labels, adjacency=Adjacency.REPLACE_ONE, row_bound=1.01)
    return flip_label(dataset, index=5, loss=Logistic()), rows, labels


def test_the_last_model_of_a_solver_stays_within_its_promise():
    pair, rows, labels = solver_pair()
    solver = DpAdmm(5, 2.0, ConstantSteps(1.0))
    game = SolverGame(
        solver.solve,
        pair,
        Target(rows[5], labels[5], "record 5"),
        Logistic(),
        *records(20, seed=9),
    )
    found = check(game, promise=Gdp(5 / 4), trials=1000)
    assert not found.refutes_promise
    # and a lie about the same solver does not pass: it has nearly no noise
    loud = SolverGame(
        DpAdmm(5, 0.05, ConstantSteps(1.0)).solve, pair, game.target, Logistic(), *records(20)
    )
    assert check(loud, promise=Gdp(0.1), trials=500).refutes_promise


def test_a_scikit_learn_model_without_noise_is_caught():
    tree = pytest.importorskip("sklearn.tree")
    rows, labels = records(30)

    def train(features, marks, seed):
        kept = np.random.default_rng(seed).random(len(marks)) < 0.9
        kept[-1] = True
        return tree.DecisionTreeClassifier(random_state=seed).fit(features[kept], marks[kept])

    # a mislabelled record of full length: a canary
    canary = Target(rows[3], -labels[3], "a mislabelled copy of record 3")
    game = ModelGame(train, rows, labels, canary, *records(10, seed=5))
    found = check_membership(
        game,
        (LossThreshold(), LiraOnline(), Rmia()),
        promise=ApproxDp(0.1, 1e-5),
        adjacency=Adjacency.ADD_REMOVE_ONE,
        delta=1e-5,
        trials=100,
        shadows=40,
        confidence=0.95,
        seed=1,
    )
    assert found.refutes_promise


def test_no_promise_is_held_to_another_relation():
    with pytest.raises(AdjacencyMismatch, match="add-remove-one"):
        check_membership(
            Shifted(1.0),
            SCORES,
            promise=Gdp(1),
            adjacency=Adjacency.ADD_REMOVE_ONE,
            delta=1e-5,
            trials=10,
            shadows=10,
            confidence=0.95,
            seed=1,
        )


def test_the_replacement_that_tells_most_is_played():
    target = Target(np.array([1.0, 0.0]), 1, "the target")
    rows = np.array([[1.0, 0.1], [0.9, 0.0], [-5.0, 0.0]])
    choices = replacements(target, rows, np.array([1, -1, 1]), classes=[-1, 1])
    assert [(tuple(c.features), c.label) for c in choices] == [
        ((1.0, 0.0), -1), ((0.9, 0.0), -1), ((-5.0, 0.0), 1),
    ]  # fmt: skip

    class Moved(Shifted):
        def answers(self, *, inside, trials, seed):
            return super().answers(inside=not inside, trials=trials, seed=seed)

    words = {id(choice): mu for choice, mu in zip(choices, (0.0, 3.0, 0.5), strict=True)}
    played = worst_replacement(lambda c: Moved(words[id(c)]), choices, models=40, seed=3)
    assert played is choices[1]
    with pytest.raises(InvalidParameter, match="population"):
        replacements(target, rows[:0], np.array([]), classes=[1])


def test_a_model_that_raises_is_no_broken_promise():
    def broken(features, labels, seed):
        raise ZeroDivisionError("no")

    rows, labels = records(30)
    game = ModelGame(broken, rows, labels, Target(rows[0], labels[0], "one"), rows, labels)
    with pytest.raises(ModelFailed, match="ZeroDivisionError"):
        game.answers(inside=True, trials=2, seed=1)


def test_no_two_trainings_share_a_seed():
    # 200,000 independent words of 32 bits would repeat about five times
    worlds = [_training_seeds(100_000, inside=inside, seed=1) for inside in (True, False)]
    seeds = np.concatenate(worlds)
    assert len(np.unique(seeds)) == 200_000
    assert seeds.min() >= 0
    assert seeds.max() < 2**32
    assert not np.array_equal(worlds[0], _training_seeds(100_000, inside=True, seed=2))


def scores_of(chunks):
    parts = list(chunks)
    return Scores(
        np.concatenate([part.dataset for part in parts]),
        np.concatenate([part.neighbour for part in parts]),
    )


def test_a_reference_that_is_the_truth_is_the_replay_attack():
    pair, _, _ = solver_pair()
    solver = DpAdmm(4, 2.0, ConstantSteps(1.0))
    exact = scores_of(innovation_scores(solver.solve, pair, pair, trials=1000, seed=1))
    # the flipped label's share of the promised mu = sqrt(4)/2 is exact
    mu = pair.share * 1.0
    gap = exact.dataset.mean() - exact.neighbour.mean()
    assert gap / exact.dataset.std() == pytest.approx(mu, abs=0.1)
    stranger, _, _ = solver_pair(seed=4)
    canary = {"features": records()[0][5]}
    reference = NeighbourPair(
        stranger.dataset.with_record(5, **canary, label=records()[1][5]),
        stranger.dataset.with_record(5, **canary, label=-records()[1][5]),
        None,
        "other records, the same canary",
    )
    guessed = scores_of(innovation_scores(solver.solve, pair, reference, trials=1000, seed=1))
    # the label's gap does not depend on the other records: only the centre is lost
    assert auc(guessed) == pytest.approx(auc(exact), abs=0.02)


def test_the_worst_off_record_has_the_longest_gradient():
    rows, labels = records()
    model = np.array([2.0, 0.0, 0.0])
    probabilities = 1 / (1 + np.exp(-labels * (rows @ model)))
    expected = int(np.argmax((1 - probabilities) * np.linalg.norm(rows, axis=1)))
    assert most_exposed(rows, labels, Logistic(), model) == expected


def softmax(scores):
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def test_of_several_classes_the_worst_off_record_has_the_longest_gradient():
    rows, _ = records()
    labels = np.arange(40.0) % 4
    model = np.random.default_rng(2).normal(size=(3, 4))
    gradients = [
        np.outer(row, softmax(row @ model) - np.eye(4)[int(label)])
        for row, label in zip(rows, labels, strict=True)
    ]
    expected = int(np.argmax([np.linalg.norm(gradient) for gradient in gradients]))
    assert most_exposed(rows, labels, Multinomial(4), model.ravel()) == expected


def test_no_record_contradicts_a_model_more_than_its_canary():
    generator = np.random.default_rng(3)
    model = generator.normal(size=(3, 4))
    planted = canary(model.ravel(), row_bound=2.0, index=7, outputs=4)

    def margin(row, label):
        scores = row @ model
        return scores.max() - scores[int(label)]

    rows = generator.normal(size=(5000, 3))
    rows *= 2.0 / np.linalg.norm(rows, axis=1, keepdims=True)
    most = max(margin(row, label) for row in rows for label in range(4))
    assert np.linalg.norm(planted.features) == pytest.approx(2.0)
    assert most <= margin(planted.features, planted.label) < 1.05 * most


def test_a_game_of_several_classes_asks_for_the_softmax_of_the_label():
    rows, _ = records()
    labels = np.arange(40.0) % 4
    dataset = AuditDataset(
        rows,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.01,
        label_domain=ClassLabels(4),
    )
    pair = flip_label(dataset, index=5, loss=Multinomial(4))
    solver = DpAdmm(3, 2.0, ConstantSteps(1.0), loss=Multinomial(4))
    target = Target(rows[5], labels[5], "record 5")
    game = SolverGame(solver.solve, pair, target, Multinomial(4), rows[:6], labels[:6], chunk=2)
    found = game.answers(inside=True, trials=5, seed=8)
    models = found.parameters.reshape(5, 3, 4)
    naive = [
        [np.log(softmax(row @ model)[int(y)]) for row, y in zip(rows[:6], labels[:6], strict=True)]
        for model in models
    ]
    assert found.population == pytest.approx(np.array(naive))
    assert found.target == pytest.approx(found.population[:, 5])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"trials": 1}, "trials"),
        ({"shadows": 0}, "shadows"),
        ({"confidence": 1.0}, "confidence"),
        ({"delta": 1.0}, "delta"),
        ({"promise": ApproxDp(1, 1e-3)}, "delta"),
        ({"seed": -1}, "seed"),
        ({"scores": ()}, "scores"),
    ],
)
def test_bad_input_is_refused(change, named):
    given = {
        "scores": SCORES,
        "promise": Gdp(1),
        "adjacency": Adjacency.REPLACE_ONE,
        "delta": 1e-5,
        "trials": 10,
        "shadows": 10,
        "confidence": 0.95,
        "seed": 1,
    } | change
    with pytest.raises(InvalidParameter, match=named):
        check_membership(Shifted(1.0), given.pop("scores"), **given)


def test_answers_must_be_log_probabilities_of_equal_models():
    with pytest.raises(InvalidParameter, match="target"):
        Answers(np.array([0.5]), np.zeros((1, 0)))
    with pytest.raises(InvalidParameter, match="population"):
        Answers(np.array([-0.5]), np.zeros((2, 0)))
    with pytest.raises(InvalidParameter, match="parameters"):
        Fisher().learn(*(Answers(np.array([-0.5]), np.zeros((1, 0))),) * 2)
    with pytest.raises(InvalidParameter, match="population"):
        Rmia().learn(*(Answers(np.array([-0.5]), np.zeros((1, 0))),) * 2)
