"""Run the cells of an experiment: what is finished is not run again, the rest in parallel.

A run's randomness has two sources, both named by numbers: which records are trained on (the same in
all cells, so that they are compared on equal terms), and the noise (another one in every cell). So
results do not depend on the order of runs, or on how many processes share them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from ...mechanisms.errors import require_positive_int
from ...mechanisms.sampling import SimulationSampler
from .cell import Cell, CellPrivacy, Trace
from .experiment import Experiment
from .store import Store

_QUICK_RUNS = 2
"""Runs of a quick look: two, so that there is a deviation."""

Progress = Callable[[int, int], None]
"""Called with the number of jobs done and of all jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentPlan:
    """How an experiment is run.

    Args:
        seed: of all randomness.
        runs: of each cell; None for the paper's number, or two of a quick look.
        quick: fewer or smaller cells.
        jobs: processes.
    """

    seed: int = 0
    runs: int | None = None
    quick: bool = False
    jobs: int = 1

    def __post_init__(self) -> None:
        require_positive_int("jobs", self.jobs)
        if self.runs is not None:
            require_positive_int("runs", self.runs)

    def runs_of(self, experiment: Experiment) -> int:
        """Return the number of runs of every cell."""
        if self.runs is not None:
            return self.runs
        return min(_QUICK_RUNS, experiment.runs) if self.quick else experiment.runs


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell with its price and the results of its runs, in order.

    Args:
        cell: what was run.
        privacy: its price, from a plan.
        traces: one a run.
    """

    cell: Cell
    privacy: CellPrivacy
    traces: tuple[Trace, ...]


def measure(
    experiment: Experiment, plan: ExperimentPlan, folder: Path, *, progress: Progress | None = None
) -> list[Measured]:
    """Return all cells of an experiment, measured; finished results are taken from `folder`.

    Args:
        experiment: whose cells.
        plan: seed, runs and processes.
        folder: of finished results, one small file each; made if it is not there.
        progress: called with the jobs done and all jobs, a job being a run or a cell's price.
    """
    cells = experiment.cells(plan.quick)
    runs = plan.runs_of(experiment)
    store = Store(folder, seed=plan.seed)
    todo = [*_missing(cells, runs, store)]
    total = len(cells) * (runs + 1)
    if progress is not None:
        progress(total - len(todo), total)
    # processes that share cores would not measure time
    jobs = 1 if experiment.timed else plan.jobs
    results: Any = Parallel(n_jobs=jobs, return_as="generator_unordered")(
        delayed(_job)(cell, run, plan.seed) for cell, run in todo
    )
    for done, (cell, run, result) in enumerate(results, total - len(todo) + 1):
        store.keep(cell, run, result)
        if progress is not None:
            progress(done, total)
    return [_read(cell, runs, store) for cell in cells]


def _missing(cells: Sequence[Cell], runs: int, store: Store) -> Iterator[tuple[Cell, int | None]]:
    """Yield the cells' prices (no run) and runs that are not finished."""
    for cell in cells:
        if store.privacy(cell) is None:
            yield cell, None
        yield from ((cell, run) for run in range(runs) if store.trace(cell, run) is None)


def _job(cell: Cell, run: int | None, seed: int) -> tuple[Cell, int | None, CellPrivacy | Trace]:
    # one thread, as in a worker process: sums of many threads round differently
    """Return one finished job, in this process or another.

    A run's records are divided by (seed, run), the same in all cells; its noise is drawn from
    (seed, run, cell).
    """
    with threadpool_limits(limits=1):
        if run is None:
            return cell, run, cell.task.privacy()
        split = np.random.SeedSequence(seed, spawn_key=(run,)).generate_state(1)
        sampler = SimulationSampler.stream(seed, run, int(cell.key[:16], 16))
        return cell, run, cell.task.run(split_seed=int(split[0]), sampler=sampler)


def _read(cell: Cell, runs: int, store: Store) -> Measured:
    """Return a cell with all its results from the store."""
    privacy = store.privacy(cell)
    traces = [store.trace(cell, run) for run in range(runs)]
    finished = tuple(trace for trace in traces if trace is not None)
    if privacy is None or len(finished) < runs:
        raise FileNotFoundError(f"Expected all results of {cell.line!r} in the folder.")
    return Measured(cell, privacy, finished)
