"""Laws of the exact oracles: known closed forms, the replay attack, and attacks that come close.

The loss is quadratic and only a label differs. The record lives with the first party.
"""

from dataclasses import replace
from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.audits.bounds import GaussianFamily, Scores
from dpledger.audits.datasets import AuditDataset
from dpledger.audits.replay import replay_chunks
from dpledger.mechanisms import Adjacency
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.solvers import ConstantSteps, DpAdmm, Huber, Logistic, PrAdmm, PvpAdmm, ring

from .linear_views import (
    last_model,
    linear_view,
    messages_of,
    models,
    transcript,
    view_scores,
)

ROUNDS = 6
INDEX = 7


QUADRATIC = Huber(1000.0, 1.0)
"""(score - label)²/2: iterates here stay far from where slopes are cut."""


def pair(*, other_row=False):
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(60, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(generator.random(60) < 0.5, 1.0, -1.0)
    dataset = AuditDataset(
        rows,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.01,
        party_of=np.repeat(np.arange(3), 20),
        parties=("a", "b", "c"),
    )
    change = {"features": -rows[INDEX][::-1]} if other_row else {"label": -labels[INDEX]}
    return dataset, dataset.with_record(INDEX, **change), rows[INDEX]


SOLVERS = {
    "dp-admm": DpAdmm(ROUNDS, 0.003, ConstantSteps(0.5), penalty=0.5, loss=QUADRATIC),
    "pvp": PvpAdmm(ROUNDS, 0.002, tolerance=1e-9, penalty=0.5, loss=QUADRATIC),
    "pr-admm": PrAdmm(ring(3), ROUNDS, 0.002, tolerance=1e-9, loss=QUADRATIC),
}


def test_the_transcript_costs_one_constant_gap_a_round():
    # Lemma 1: the gap of the gradients is |y - y'| |x| / m, the noise a multiple of 2 c / m
    dataset, neighbour, row = pair()
    solver = SOLVERS["dp-admm"]
    gap, bound = 2 * np.linalg.norm(row) / 20, 2 * 1000 * 1.01 / 20
    expected = sqrt(ROUNDS) * gap / (0.003 * bound)
    assert linear_view(solver, dataset, neighbour, transcript).mu == pytest.approx(
        expected, rel=1e-6
    )


def test_the_last_model_follows_its_own_recursion():
    # one party: w is the message less gamma/rho, gamma stays zero, and each round contracts noise
    # and gap by the same matrix, so that the last message is the sum of a geometric series
    rows = np.random.default_rng(0).normal(size=(20, 2)) / 4
    labels = np.ones(20)
    alone = AuditDataset(rows, labels, adjacency=Adjacency.REPLACE_ONE, row_bound=1.5)
    other = alone.with_record(3, label=-1.0)
    eta, rho, multiplier = 0.5, 0.5, 0.002
    solver = DpAdmm(
        ROUNDS, multiplier, ConstantSteps(eta), penalty=rho, regularisation=0.0, loss=QUADRATIC
    )
    scale = 1 / (rho + 1 / eta)
    contraction = np.eye(2) - scale * rows.T @ rows / 20
    step = scale * 2 * rows[3] / 20
    noise_std = multiplier * 2 * 1000 * 1.5 / 20 * scale
    powers = [np.linalg.matrix_power(contraction, k) for k in range(ROUNDS)]
    gap = sum(powers) @ step
    covariance = noise_std**2 * sum(power @ power.T for power in powers)
    expected = sqrt(gap @ np.linalg.solve(covariance, gap))
    assert linear_view(solver, alone, other, last_model).mu == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", SOLVERS)
def test_replay_of_a_transcript_scores_as_the_oracle_does(name):
    dataset, neighbour, _ = pair()
    solver = SOLVERS[name]
    law = linear_view(solver, dataset, neighbour, transcript)
    (replayed,) = replay_chunks(solver.solve, dataset, neighbour, trials=500, seed=3, chunk=500)
    (exact,) = view_scores(solver, dataset, neighbour, transcript, trials=500, seed=3, chunk=500)
    # the same streams of noise: equal trial by trial, and not only in law
    np.testing.assert_allclose(exact.dataset, replayed.attack.dataset, atol=1e-4 * law.mu)
    np.testing.assert_allclose(exact.neighbour, replayed.attack.neighbour, atol=1e-4 * law.mu)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_smaller_view_tells_less(name):
    dataset, neighbour, _ = pair()

    def mu(view):
        return linear_view(SOLVERS[name], dataset, neighbour, view).mu

    everything = mu(transcript)
    assert everything > mu(models) >= mu(last_model) > 0
    # whoever hears the others only learns of the record by what it did to them
    assert everything > mu(messages_of(0)) > mu(messages_of(1)) > 0
    assert mu(messages_of(0, 1, 2)) == pytest.approx(everything, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("view", [transcript, models, last_model], ids=lambda view: view.__name__)
@pytest.mark.parametrize("name", SOLVERS)
def test_attacks_come_within_five_percent_of_the_truth(name, view):
    dataset, neighbour, _ = pair()
    solver = SOLVERS[name]
    mu = linear_view(solver, dataset, neighbour, view).mu
    # less noise where the view tells little, so that mu is 1 for each
    solver = replace(solver, noise_multiplier=solver.noise_multiplier * mu)
    law = linear_view(solver, dataset, neighbour, view)
    assert law.mu == pytest.approx(1, rel=1e-6)
    chunks = list(view_scores(solver, dataset, neighbour, view, trials=100_000, seed=5))
    scores = Scores(
        np.concatenate([chunk.dataset for chunk in chunks]),
        np.concatenate([chunk.neighbour for chunk in chunks]),
    )
    truth = epsilon_from_delta(mu_squared=Fraction(law.mu) ** 2, delta=1e-5)
    found = GaussianFamily(0.95).lower_bound(scores, delta=1e-5)
    assert 0.95 * truth.lower_float <= found.epsilon <= truth.upper_float


def test_a_run_without_noise_is_refused():
    dataset, neighbour, _ = pair()
    silent = DpAdmm(2, 0.0, ConstantSteps(0.5), loss=QUADRATIC)
    with pytest.raises(InvalidParameter, match="noise"):
        linear_view(silent, dataset, neighbour, last_model)


@pytest.mark.parametrize("multiplier", [1.0, 1e-2])
def test_what_is_not_affine_is_refused_however_small_its_noise(multiplier):
    dataset, neighbour, _ = pair()
    bent = DpAdmm(2, multiplier, ConstantSteps(0.5), loss=Logistic())
    with pytest.raises(InvalidParameter, match="affine"):
        linear_view(bent, dataset, neighbour, transcript)


def test_neighbours_that_differ_in_a_row_are_refused():
    dataset, neighbour, _ = pair(other_row=True)
    with pytest.raises(InvalidParameter, match="labels only"):
        linear_view(SOLVERS["dp-admm"], dataset, neighbour, transcript)


def test_a_gap_that_no_noise_covers_has_infinite_mu():
    dataset, neighbour, _ = pair()

    class Leaky:
        """Releases the first message a second time, without its noise."""

        def solve(self, data, curator, *, observe):
            solver = DpAdmm(1, 0.003, ConstantSteps(0.5), loss=QUADRATIC)
            state = solver.solve(data, curator, observe=observe)
            gradient = data.mean_gradient(QUADRATIC, np.zeros((3, 4)))
            curator.release_unprotected(gradient, reason="a test", round=2, release="gradient")
            return state

    assert linear_view(Leaky(), dataset, neighbour, transcript).mu == inf
    assert linear_view(Leaky(), dataset, neighbour, last_model).mu < inf
    with pytest.raises(InvalidParameter, match="mu"):
        list(view_scores(Leaky(), dataset, neighbour, transcript, trials=10, seed=1))
