"""Choosing by fit: what the event's probabilities are, and where epsilon allows it."""

import numpy as np
import pytest

from dpledger.audits.claims.tuning import Candidate, best_fit, looked_at
from dpledger.audits.neighbours import NeighbourPair, turned_record
from dpledger.mechanisms import UnprotectedRelease
from dpledger.mechanisms.curators import Curator, PlanningCurator
from dpledger.mechanisms.private_data import PrivateDataset
from dpledger.mechanisms.protocols import FloatArray
from dpledger.solvers import LinearLoss

TRIALS = 4000


def one_record() -> NeighbourPair:
    return turned_record(("agent",), each=1, row_bound=1.0)


def noisy_step(noise_multiplier: float) -> Candidate:
    def train(dataset: PrivateDataset, curator: Curator) -> FloatArray:
        gradient = dataset.mean_gradient(LinearLoss(), np.zeros(2))
        sent = curator.release(
            gradient, round=1, release="gradient", noise_multiplier=noise_multiplier
        )
        return np.asarray(-sent[..., 0, :])

    return train


def test_candidates_that_know_nothing_give_the_stated_probabilities() -> None:
    # with so much noise that signs are coin tosses
    candidates = {f"{k}": noisy_step(1e6) for k in range(3)}
    event = best_fit(candidates, one_record(), models="of noise", epsilon=0.1, delta=1e-3)
    assert event is not None
    assert event.probability.upper_float == 7 / 8
    assert event.neighbour_probability.upper_float == 1 / 8
    rates = event.rerun(TRIALS, 5)
    # five standard deviations: a false alarm in a million
    assert rates == pytest.approx((7 / 8, 1 / 8), abs=5 * np.sqrt(7 / 64 / TRIALS))


def test_candidates_that_know_more_give_more() -> None:
    candidates = {f"{k}": noisy_step(0.5) for k in range(3)}
    event = best_fit(candidates, one_record(), models="of data", epsilon=0.1, delta=1e-3)
    assert event is not None
    first, second = event.rerun(TRIALS, 5)
    assert first > 0.98
    assert second < 0.02


def test_an_epsilon_that_allows_the_choice_is_not_attacked() -> None:
    candidates = {f"{k}": noisy_step(1.0) for k in range(3)}
    for epsilon, attacked in ((1.7, True), (1.8, False)):
        event = best_fit(candidates, one_record(), models="", epsilon=epsilon, delta=1e-3)
        assert (event is not None) is attacked


def test_looking_at_fits_is_unprotected_once_a_candidate() -> None:
    plan = PlanningCurator()
    candidates = {"eta = 1": noisy_step(1.0), "eta = 2": noisy_step(1.0)}
    looked_at(candidates, reason="accuracy", round=2)(
        PrivateDataset.planned(one_record().dataset.shape), plan
    )
    open_events = [e for e in plan.events if isinstance(e.mechanism, UnprotectedRelease)]
    assert [e.context.release for e in open_events] == ["fit with eta = 1", "fit with eta = 2"]
    assert len(plan.events) == 4
