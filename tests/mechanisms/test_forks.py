"""What one process made is no other's: a fork's copy would be a second budget, or the same noise.

A curator, a list of events and a seeded sampler refuse in a forked process, whose copies of them
the first would know nothing of; what a child makes itself works there.
"""

import multiprocessing
import sys
from collections.abc import Callable

import numpy as np
import pytest

from dpledger.mechanisms import (
    Adjacency,
    EventList,
    Poisson,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
    SystemSampler,
)
from dpledger.mechanisms.sampling import Sampler, SimulationSampler
from dpledger.solvers import Logistic

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods() or sys.platform == "darwin",
    reason="no forks here",
)

DATA = PrivateDataset(
    np.eye(4),
    np.array([1.0, -1.0, 1.0, -1.0]),
    adjacency=Adjacency.ADD_REMOVE_ONE,
    row_bound=1.0,
    n_min=2,
)
EVENTS = EventList()
OWN: dict[str, SamplingCurator] = {
    "system": SamplingCurator(EVENTS, SystemSampler()),
    "seed": SamplingCurator(EVENTS, SeededSampler(5)),
}
SAMPLERS: dict[str, Sampler] = {"exact": SeededSampler(5), "simulation": SimulationSampler(5)}


def release(curator: SamplingCurator, sampled: bool = False) -> None:
    data = curator.sample(DATA, Poisson(0.5)) if sampled else DATA
    gradient = data.sum_gradient(Logistic(), np.zeros(4))
    curator.release(gradient, round=1, release="gradient", noise_multiplier=1.0)


def asked(what: Callable[[], object]) -> str:
    try:
        what()
    except Exception as error:
        return type(error).__name__
    return "answered"


CASES: dict[str, Callable[[], object]] = {
    "release": lambda: release(OWN["system"]),
    "release of a seed": lambda: release(OWN["seed"]),
    "sample": lambda: release(OWN["system"], sampled=True),
    "list": lambda: release(SamplingCurator(EVENTS, SystemSampler())),
    "sampler": lambda: release(SamplingCurator(EventList(), SAMPLERS["exact"])),
    "simulation": lambda: release(SamplingCurator(EventList(), SAMPLERS["simulation"])),
    "uniform": lambda: SAMPLERS["simulation"].uniform((2,)),
    "exact uniform": lambda: SAMPLERS["exact"].uniform((2,)),
    "of its own": lambda: release(SamplingCurator(EventList(), SeededSampler(5)), sampled=True),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fork_uses_only_what_it_made(case: str) -> None:
    before = len(EVENTS.events)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        (found,) = pool.map(_run, [case])
    assert found == ("answered" if case == "of its own" else "ForkedCopy")
    assert len(EVENTS.events) == before
    assert asked(CASES[case]) == "answered"


def _run(case: str) -> str:
    return asked(CASES[case])
