"""Time per round of every solver against what memory bandwidth allows, and its peak memory.

Usage: python benchmarks/solvers.py [--records 100000] [--agents 100] [--rounds 4] [--only NAME]
       python benchmarks/solvers.py --records 1000000 --agents 1000

Synthetic records of 100 features, dense. A gradient must read all rows once; the bound is that at
this machine's measured read bandwidth, times the number of gradients that the solver really asked
for (exact minimisers ask for many), which is counted. The sharing ADMM computes minimisers by its
own means: its bound is one reading a round, and what its round cannot do without is printed below
it, each part timed alone. A party's step needs all of the message before it, and its scores all of
the step, so that columns are read twice; the scores of every party get a normal number each. Alone
these parts take about seven readings' time in NumPy (3.5, 2 and 1.7 of processor time), so that a
round of five is out of reach there, however little the rest costs. Nor does a compiled kernel reach
it: compiled, the columns take half their time (16.1 and 8.3 ms, 18.8 and 9.5), which is 10 to 18 %
of a round, and no other part is faster (`python benchmarks/compiled_sharing.py`, with numba).
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpledger.data import synthetic_records
from dpledger.mechanisms import (
    Adjacency,
    Curator,
    EventList,
    FixedBatch,
    PrivateDataset,
    SamplingCurator,
    SimulationSampler,
    VerticalDataset,
)
from dpledger.solvers import (
    CentralisedDpAdmm,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    Logistic,
    MAdmm,
    PrAdmm,
    PsAdmm,
    PvpAdmm,
    RAdmm,
    SampledPsAdmm,
    SharingAdmm,
    StochasticRounds,
    fused_lasso,
    ring,
)

FEATURES, REPETITIONS, PART_REPETITIONS, TOLERANCE = 100, 3, 15, 1e-4
READING = ("mean_gradient", "sum_gradient", "scores", "combined")


class Counted:
    """Records that count how often all of them are read."""

    def __init__(self, records: Any) -> None:
        self.records = records
        self.passes = 0

    def __getattr__(self, name: str) -> Any:
        self.passes += name in READING
        return getattr(self.records, name)


@dataclass(frozen=True)
class Case:
    """A solver's `solve`, the data that it runs on, and how to learn how often they were read."""

    name: str
    solve: Callable[[Any, Curator], object]
    data: Any
    counted: Counted | None


def median_seconds(job: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """Return the median time of `job` over the repetitions, after one warm-up."""
    job()
    times: list[float] = []
    for _ in range(repetitions):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def sharing_parts(data: VerticalDataset) -> dict[str, float]:
    """Return the seconds that a round of sharing spends at least on each of its parts."""
    held, shape, rng = data._held(), data.shape, np.random.Generator(np.random.Philox(1))
    columns = [held.of(index).rows for index in range(len(shape.parties))]
    pull, goal = rng.normal(size=shape.count), rng.normal(scale=20.0, size=shape.count)
    scores = (len(columns), shape.count)
    return {
        "columns, read twice": median_seconds(
            lambda: [rows @ (pull @ rows) for rows in columns], PART_REPETITIONS
        ),
        "noise of scores": median_seconds(lambda: rng.normal(size=scores), PART_REPETITIONS),
        "the centre's steps": median_seconds(
            lambda: data.dual(Logistic(), goal, penalty=1.0, tolerance=1e-2), PART_REPETITIONS
        ),
    }


def read_bandwidth() -> float:
    """Return bytes per second of a sum over an array far larger than the caches."""
    block = np.ones(256 * 2**20 // 8)
    return block.nbytes / median_seconds(block.sum, 7)


def cases(records: int, agents: int, rounds: int, only: str | None) -> list[Case]:
    """Return every solver with the data it needs."""
    made = synthetic_records(count=records, features=FEATURES, seed=1)

    def horizontal(parties: int) -> PrivateDataset:
        return PrivateDataset(
            made.features,
            made.labels,
            adjacency=Adjacency.REPLACE_ONE,
            row_bound=made.row_bound,
            party_of=np.arange(records) * parties // records,
            parties=tuple(f"agent {i}" for i in range(parties)),
        )

    def vertical() -> VerticalDataset:
        return VerticalDataset(
            np.split(made.features, 4, axis=1),
            made.labels,
            adjacency=Adjacency.REPLACE_ONE,
            parties=("a", "b", "c", "d"),
            public_labels=True,
        )

    network = PrAdmm(ring(agents), rounds, 5.0, tolerance=TOLERANCE)
    inner = StochasticRounds(rounds, 3, 0.5)
    graph = fused_lasso(FEATURES, [(i, i + 1) for i in range(FEATURES - 1)])
    solvers: dict[str, tuple[Any, int]] = {
        "star DP-ADMM": (DpAdmm(rounds, 5.0, ConstantSteps(1.0)), agents),
        "star ADMM with PVP": (PvpAdmm(rounds, 5.0, tolerance=TOLERANCE), agents),
        "PR-ADMM": (network, agents),
        "M-ADMM": (MAdmm(network, 1.1), agents),
        "R-ADMM": (RAdmm(network, 1.0), agents),
        "PS-ADMM": (PsAdmm(inner, 5.0), agents),
        "PS-ADMM, sampled": (SampledPsAdmm(inner, FixedBatch(10), 0.5, 5.0, 5.0), agents),
        "centralised DP-ADMM": (CentralisedDpAdmm(graph, rounds, 5.0, 1.0), 1),
        "DP-SGD": (DpSgd(rounds, 5.0, ConstantSteps(1.0)), agents),
    }
    wanted = {name: found for name, found in solvers.items() if only in (None, name)}
    data = {parties: horizontal(parties) for parties in {found[1] for found in wanted.values()}}
    listed: list[Case] = []
    for name, (solver, parties) in wanted.items():
        dataset = data[parties]
        if not isinstance(dataset._records, Counted):
            dataset._records = Counted(dataset._records)  # type: ignore[assignment]
        listed.append(Case(name, solver.solve, dataset, dataset._records))  # type: ignore[arg-type]
    if only in (None, "ADMM sharing"):
        sharing = SharingAdmm(rounds, 5.0, tolerance=1e-2)
        listed.append(Case("ADMM sharing", sharing.solve, vertical(), None))
    return listed


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", help="the name of one solver, as printed")
    options = parser.parse_args()
    bandwidth = read_bandwidth()
    print(f"{options.records} records of {FEATURES} features, {options.agents} agents")
    print(f"read bandwidth {bandwidth / 1e9:.2f} GB/s")
    once = options.records * FEATURES * 8 / bandwidth
    for case in cases(options.records, options.agents, options.rounds, options.only):

        def run(case: Case = case) -> None:
            case.solve(case.data, SamplingCurator(EventList(), SimulationSampler(1)))

        try:
            run()
        except Exception as error:  # a solver whose tolerance cannot be met is a result, too
            print(f"{case.name:24s} {type(error).__name__}: {error}")
            continue
        passes = options.rounds
        if case.counted is not None:
            case.counted.passes = 0
            run()
            passes = case.counted.passes
        seconds = median_seconds(run)
        print(
            f"{case.name:24s}{1e3 * seconds / options.rounds:10.1f} ms a round  "
            f"{passes / options.rounds:7.1f} readings a round  "
            f"{seconds / (passes * once):6.1f} x the bound"
        )
        if isinstance(case.data, VerticalDataset):
            for part, least in sharing_parts(case.data).items():
                print(f"  {part:22s}{1e3 * least:10.1f} ms{least / once:34.1f} x the bound")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak memory {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
