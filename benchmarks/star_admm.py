"""Time of the repaired DP-ADMM on UCI Adult against what memory bandwidth allows.

Usage: python benchmarks/star_admm.py

100 agents of 400 records, 104 features, 100 rounds, one run into an in-memory event list and one
into the in-memory ledger. The bound is one pass a round over the sparse training data (values and
indices) at this machine's measured read bandwidth. Trials of a small problem: see trials.py.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

from dpledger.accounting.ledger import MemoryLedger
from dpledger.data import load_adult, split_records
from dpledger.mechanisms import (
    Adjacency,
    EventList,
    EventSink,
    PrivateDataset,
    SamplingCurator,
    SimulationSampler,
)
from dpledger.solvers import DpAdmm, SmoothSteps

ROUNDS, AGENTS = 100, 100
REPETITIONS = 7
PAPER_SECONDS = 5.2  # Huang et al. 2020, Table II: DP-ADMM in MATLAB, 100 rounds


def median_seconds(job: Callable[[], object]) -> float:
    """Return the median time of `job` over the repetitions, after one warm-up."""
    job()
    times: list[float] = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def read_bandwidth() -> float:
    """Return bytes per second of a sum over an array far larger than the caches."""
    block = np.ones(64 * 2**20 // 8)
    return block.nbytes / median_seconds(lambda: block.sum())


def adult() -> tuple[PrivateDataset, int]:
    """Return the training data behind its handle, and its size in bytes as sparse rows."""
    train, _ = split_records(load_adult(), train_records=40_000, seed=2020)
    names = tuple(f"agent-{i}" for i in range(AGENTS))
    held = train.divided(names)
    dataset = PrivateDataset(
        held.features,
        held.labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=held.row_bound,
        party_of=held.party_of,
        parties=names,
    )
    stored = held.features
    return dataset, stored.nnz * 12 + 4 * (stored.shape[0] + 1)


def main() -> None:
    """Print medians and ratios."""
    dataset, size = adult()
    bandwidth = read_bandwidth()
    bound = ROUNDS * size / bandwidth
    solver = DpAdmm(ROUNDS, 37.3063, SmoothSteps(0.250001, 89.0))

    def run(sink: Callable[[], EventSink]) -> float:
        return median_seconds(
            lambda: solver.solve(dataset, SamplingCurator(sink(), SimulationSampler(1)))
        )

    listed = run(EventList)
    ledgered = run(lambda: MemoryLedger().run("benchmark", configuration_hash="0" * 64))
    print(f"read bandwidth              {bandwidth / 1e9:10.2f} GB/s")
    rows = (
        ("one pass a round must take", bound),
        ("DP-ADMM, event list", listed),
        ("DP-ADMM, in-memory ledger", ledgered),
        ("the paper's MATLAB", PAPER_SECONDS),
    )
    for name, seconds in rows:
        print(f"{name:28s}{1e3 * seconds:10.1f} ms  {seconds / bound:8.1f} x the bound")


if __name__ == "__main__":
    main()
