"""No public door of the audits turns an analyst's handle into an auditor's."""

import threading

import numpy as np
import pytest

from dpledger.accounting import MemoryLedger
from dpledger.accounting.proof.planning import calibrate_gaussian_rounds
from dpledger.audits import AuditDataset
from dpledger.audits.curators import RecordingCurator
from dpledger.audits.datasets import PairedDataset
from dpledger.federation.prepaid import PrepaidRun
from dpledger.mechanisms import Adjacency, Poisson, PrivateDataset, SystemSampler
from dpledger.mechanisms.errors import InvalidParameter, UnprotectedReleaseError
from dpledger.mechanisms.events import Event
from dpledger.mechanisms.protocols import Provenance

ROWS = np.random.default_rng(3).normal(size=(20, 2))
LABELS = np.ones(20)


def analysts(adjacency: Adjacency = Adjacency.REPLACE_ONE) -> PrivateDataset:
    return PrivateDataset(ROWS, LABELS, adjacency=adjacency, row_bound=1.0)


def auditors() -> AuditDataset:
    return AuditDataset(0 * ROWS, LABELS, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)


def test_guesses_learn_nothing_of_an_analysts_handle() -> None:
    guess, private = auditors(), analysts()
    for ask in (guess.paired_with, guess.differing, guess.differing_party):
        with pytest.raises(UnprotectedReleaseError):
            ask(private)  # type: ignore[arg-type]
    with pytest.raises(UnprotectedReleaseError):
        PairedDataset.of(private, None)  # type: ignore[arg-type]


def test_nothing_of_an_analysts_sample_is_recorded() -> None:
    curator = RecordingCurator(MemoryLedger().run("r", configuration_hash="h"), SystemSampler())
    with pytest.raises(UnprotectedReleaseError):
        curator.sample(analysts(Adjacency.ZERO_OUT_ONE), Poisson(0.5))
    assert curator.uniforms == []


def planned(rounds: int) -> tuple[Event, ...]:
    from dpledger.mechanisms import DataShape, PlanningCurator
    from dpledger.solvers import Logistic

    shape = DataShape(
        ("all",), count=20, features=2, row_bound=1.0, adjacency=Adjacency.REPLACE_ONE
    )
    curator = PlanningCurator()
    for k in range(rounds):
        value = PrivateDataset.planned(shape).mean_gradient(Logistic(), np.zeros((1, 2)))
        curator.release(value, round=k + 1, release="g", noise_multiplier=1.0)
    return tuple(curator.events)


def test_a_prepaid_run_takes_the_noise_of_one_sampler() -> None:
    events = planned(2)
    run = MemoryLedger().run("r", configuration_hash="h")
    first, second = (Provenance("exact", 2**99, source=object()) for _ in range(2))
    paid = PrepaidRun(run, events, first)
    paid.reserve(events[:1], first)
    with pytest.raises(InvalidParameter, match="sampler"):
        paid.reserve(events[1:], second)
    assert paid.released == events[:1]


def test_threads_share_what_was_paid() -> None:
    events = planned(1)
    source = Provenance("exact", None, source=object())
    paid = PrepaidRun(MemoryLedger().run("r", configuration_hash="h"), events, source)
    refused: list[InvalidParameter] = []

    def spend() -> None:
        try:
            paid.reserve(events, source)
        except InvalidParameter as error:
            refused.append(error)

    threads = [threading.Thread(target=spend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 5


@pytest.mark.parametrize("rounds", [0, -3, 10**18 + 1])
def test_rounds_that_no_plan_can_list_are_refused(rounds: int) -> None:
    with pytest.raises(InvalidParameter, match=rf"rounds={rounds} must"):
        calibrate_gaussian_rounds(
            epsilon=1, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, rounds=rounds
        )
