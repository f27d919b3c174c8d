"""What a compiled logistic slope would bring: a round of DP-ADMM and of DP-SGD with it and without.

Usage: python benchmarks/compiled_slope.py [--records 100000] [--agents 100] [--rounds 4]

Needs numba, which the project does not depend on. The slope -1/(1 + exp(m)) is the only
transcendental function of a pass over the records; the rest is two products with the matrix of
rows. Both sides run the same solver on the same records, in turns, and the least time of each
counts: other work on the machine only adds to a time.

Two runs on a shared machine of two cores with AVX-512, numba without SVML, NumPy 2.4.6: the slope
alone 0.18 and 0.20 ms with NumPy, 0.68 and 0.78 with numba; a round of DP-ADMM 0.77 and 0.81 times
as fast with numba, of DP-SGD 0.70 and 0.87. There NumPy's exponential beats the compiled loop, so
no kernel is shipped. A processor without AVX-512 was not measured.
"""

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np

from dpledger.data import synthetic_records
from dpledger.mechanisms import (
    Adjacency,
    Curator,
    EventList,
    PrivateDataset,
    SamplingCurator,
    SimulationSampler,
)
from dpledger.solvers import ConstantSteps, DpAdmm, DpSgd, Logistic

FEATURES, REPETITIONS = 100, 7


@numba.njit(fastmath=True, nogil=True)
def write_slopes(margins: np.ndarray) -> None:
    """Write -1/(1 + exp(m)) over the margins, a vector of float64."""
    for i in range(margins.size):
        margins[i] = -1.0 / (1.0 + np.exp(margins[i]))


class CompiledLogistic(Logistic):
    """The logistic loss with the slope that numba compiled."""

    def margin_derivative(self, margins: np.ndarray) -> np.ndarray:
        """Return -1/(1 + exp(y s)), written over the margins."""
        if not margins.flags.c_contiguous:
            raise ValueError(f"margins.strides={margins.strides} must be contiguous")
        write_slopes(margins.reshape(-1))
        return margins


def least_seconds(jobs: list[Callable[[], object]]) -> list[float]:
    """Return the least time of each job, run in turns after one warm-up."""
    times: list[list[float]] = [[] for _ in jobs]
    for job in jobs:
        job()
    for _ in range(REPETITIONS):
        for job, seconds in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            seconds.append(time.perf_counter() - start)
    return [min(seconds) for seconds in times]


def main() -> None:
    """Print the slope alone, then a round of each solver."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    made = synthetic_records(count=options.records, features=FEATURES, seed=1)
    dataset = PrivateDataset(
        made.features,
        made.labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=made.row_bound,
        party_of=np.arange(options.records) * options.agents // options.records,
        parties=tuple(f"agent {i}" for i in range(options.agents)),
    )
    margins = np.random.default_rng(1).normal(size=options.records)
    losses: list[Logistic] = [Logistic(), CompiledLogistic()]
    for loss in losses:
        np.testing.assert_allclose(
            loss.margin_derivative(margins.copy()), Logistic().margin_derivative(margins.copy())
        )
    report("slope alone", [lambda x=x: x.margin_derivative(margins.copy()) for x in losses], 1)
    for name, solver in (("star DP-ADMM", DpAdmm), ("DP-SGD", DpSgd)):

        def run(loss: Logistic, solver: type[DpAdmm] | type[DpSgd] = solver) -> object:
            curator: Curator = SamplingCurator(EventList(), SimulationSampler(1))
            made = solver(options.rounds, 5.0, ConstantSteps(1.0), loss=loss)
            return made.solve(dataset, curator)

        report(name, [lambda loss=loss, run=run: run(loss) for loss in losses], options.rounds)


def report(name: str, jobs: list[Callable[[], object]], rounds: int) -> None:
    """Print a line: milliseconds a round with NumPy, with numba, and their ratio."""
    plain, compiled = (1e3 * seconds / rounds for seconds in least_seconds(jobs))
    print(f"{name:14s} NumPy {plain:7.2f} ms  numba {compiled:7.2f} ms  {plain / compiled:5.2f} x")


if __name__ == "__main__":
    main()
