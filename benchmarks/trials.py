"""Trials a second of the star ADMM: runs alone, and runs with their replay scores.

Usage: python benchmarks/trials.py [--jobs 2] [--runs 10000] [--full]

5 agents of 100 records, 20 features, 50 rounds. Runs go into an in-memory ledger, 1000 at once.
Wall time depends on what else the machine does; the processor time of a run, measured in this
process, hardly does. With --full the million runs in each world of an attack are really made,
otherwise their time is extrapolated.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from dpledger.accounting.ledger import MemoryLedger
from dpledger.audits.datasets import AuditDataset
from dpledger.audits.neighbours import flip_label
from dpledger.audits.trials import Attacked, Backend, Loky, Serial, TrialExperiment, trial_scores
from dpledger.mechanisms import Adjacency, BitGenerator, SamplingCurator
from dpledger.mechanisms.sampling import SimulationSampler
from dpledger.solvers import ConstantSteps, DpAdmm, Logistic

CHUNK, ROUNDS, NOISE_MULTIPLIER = 1000, 50, 20.0
REPETITIONS = 3
MILLION = 10**6
GOAL_RUNS, GOAL_SECONDS = 5_000, 7 * 60


def star() -> Attacked:
    """Return the solver and two neighbours that differ in one label."""
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(500, 20))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    dataset = AuditDataset(
        rows,
        np.where(generator.random(500) < 0.5, 1.0, -1.0),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.arange(500) % 5,
        parties=("a", "b", "c", "d", "e"),
    )
    pair = flip_label(dataset, index=0, loss=Logistic())
    solver = DpAdmm(ROUNDS, NOISE_MULTIPLIER, ConstantSteps(1.0))
    return Attacked(solver.solve, pair.dataset, pair.neighbour)


class Runs:
    """Runs chunks without a score; every process builds the data once."""

    def __init__(self) -> None:
        self.attacked: Attacked | None = None

    def __call__(self, number: int) -> int:
        self.attacked = self.attacked or star()
        ledger = MemoryLedger().run(f"chunk {number}", configuration_hash="0" * 64)
        sampler = SimulationSampler.stream(1, number, bits=BitGenerator.SFC64)
        self.attacked.solve(self.attacked.dataset, SamplingCurator(ledger, sampler, trials=CHUNK))
        return CHUNK

    def __reduce__(self) -> tuple[object, ...]:
        return Runs, ()


def measured(job: Callable[[], object]) -> tuple[float, float]:
    """Return the medians of wall and of this process's processor seconds, after a warm-up."""
    job()
    times: list[tuple[float, float]] = []
    for _ in range(REPETITIONS):
        wall, busy = time.perf_counter(), time.process_time()
        job()
        times.append((time.perf_counter() - wall, time.process_time() - busy))
    walls, busys = zip(*times, strict=True)
    return statistics.median(walls), statistics.median(busys)


def scored(runs: int, backend: Backend) -> object:
    """Make `runs` runs with their scores, half of them in each world, and hardly a null control."""
    experiment = TrialExperiment(star, "benchmark", seed=1, chunk=CHUNK)
    return trial_scores(experiment, trials=runs // 2, null_trials=1, backend=backend)


def report(
    name: str, runs: int, seconds: tuple[float, float], goal: float, *, alone: bool
) -> float:
    """Print a line and return runs a second."""
    rate = runs / seconds[0]
    busy = f"{1e6 * seconds[1] / runs:7.0f} us of processor" if alone else ""
    print(f"{name:32s}{rate:8.0f} runs/s  {rate / goal:6.2f} x the goal {busy}")
    return rate


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=10_000, help="of each measurement")
    parser.add_argument("--full", action="store_true", help="make the two million runs")
    options = parser.parse_args()
    runs, jobs = max(2 * CHUNK, options.runs // CHUNK * CHUNK), options.jobs
    chunks, goal = range(runs // CHUNK), 2 * MILLION / GOAL_SECONDS

    def alone(backend: Backend) -> tuple[float, float]:
        work = Runs()
        return measured(lambda: list(backend.map(work, chunks)))

    several = f"{jobs} processes"
    report("runs, one process", runs, alone(Serial()), GOAL_RUNS, alone=True)
    report(f"runs, {several}", runs, alone(Loky(jobs)), GOAL_RUNS, alone=False)
    report(
        "runs with scores, one process",
        runs,
        measured(lambda: scored(runs, Serial())),
        goal,
        alone=True,
    )
    rate = report(
        f"runs with scores, {several}",
        runs,
        measured(lambda: scored(runs, Loky(jobs))),
        goal,
        alone=False,
    )
    if options.full:
        start = time.perf_counter()
        scored(2 * MILLION, Loky(jobs))
        seconds, how = time.perf_counter() - start, "measured"
    else:
        seconds, how = 2 * MILLION / rate, "EXTRAPOLATED from the line above"
    print(f"10^6 + 10^6 runs with scores    {seconds / 60:8.1f} min     {how}; goal 7 min")


if __name__ == "__main__":
    main()
