"""What compiled kernels would bring a round of ADMM sharing: its parts with NumPy and with numba.

Usage: python benchmarks/compiled_sharing.py [--records 100000] [--features 25] [--parties 4]

Needs numba, which the project does not depend on. Three parts of a round are necessary (see
benchmarks/solvers.py): each party's columns are read twice, its scores get a normal number each,
and the centre minimises one scalar function a record. The first and the last are compiled here,
each as one fused loop. The normal numbers are drawn by compiled code already; they are timed once.
Both sides run in turns, and medians are printed. Before that the results are compared.

Two runs on a busy shared machine of two cores with AVX-512, numba 0.68.1 without SVML, NumPy
2.4.6: columns 16.1 and 18.8 ms with NumPy, 8.3 and 9.5 with numba, which is twofold; the centre's
steps 4.8 and 8.0 ms with NumPy, 11.3 and 11.0 with numba; noise 9.2 and 9.8 ms. Columns are a fifth
to two fifths of a round (`benchmarks/solvers.py --only "ADMM sharing"`: 8.5 of 42.3 ms, 21.8 of
59.5). So to halve them takes 10 to 18 % from it, and if they took no time at all a round would be
1.3 to 1.6 times as fast. No kernel is shipped. A quiet machine was not measured.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numba
import numpy as np

from dpledger.mechanisms.vertical_data import _dual, require_dual
from dpledger.solvers import Logistic

REPETITIONS, PENALTY, TOLERANCE = 25, 1.0, 1e-2
REASSOCIATED = {"reassoc", "contract", "nsz"}


@numba.njit(fastmath=REASSOCIATED)
def scores_of(rows: np.ndarray, pull: np.ndarray, scores: np.ndarray) -> None:
    """Write rows @ (pull @ rows) into scores, of shape (N,)."""
    x = np.zeros(rows.shape[1])
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            x[j] += pull[i] * rows[i, j]
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * x[j]
        scores[i] = total


@numba.njit(fastmath=REASSOCIATED)
def logistic_dual(
    labels: np.ndarray, target: np.ndarray, penalty: float, steps: int, y: np.ndarray
) -> None:
    """Write the centre's y of shape (N,): `_dual` for slopes of at most 1, curvature 1/4."""
    for i in range(target.size):
        low, high = (target[i] - 1.0) / penalty, (target[i] + 1.0) / penalty
        for _ in range(steps):
            z = 0.5 * (low + high)
            slope = -labels[i] / (1.0 + math.exp(labels[i] * z))
            excess = slope + penalty * z - target[i]
            least, most = z - excess / penalty, z - excess / (penalty + 0.25)
            low, high = max(low, min(least, most)), min(high, max(least, most))
        y[i] = min(max(target[i] - penalty * 0.5 * (low + high), -1.0), 1.0)


def median_milliseconds(jobs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median time of each job, run in turns after one warm-up."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(REPETITIONS):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(spent) for name, spent in times.items()}


def main() -> None:
    """Compare results, then print each part's time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=25, help="of each party")
    parser.add_argument("--parties", type=int, default=4)
    options = parser.parse_args()
    rng = np.random.Generator(np.random.Philox(1))
    count, loss = options.records, require_dual(Logistic())
    columns = rng.normal(scale=0.1, size=(options.parties, count, options.features))
    pull, goal = rng.normal(size=count), rng.normal(scale=20.0, size=count)
    labels = np.sign(rng.normal(size=count))
    scores, y = np.empty(columns.shape[:2]), np.empty(count)
    # as many halvings or better as `_dual_block` makes for this loss
    bits = 4.0 + math.log2(1.0 / TOLERANCE) + math.log2(1.0 + 0.25 / PENALTY)
    steps = math.ceil(bits / math.log2(max(2.0, 2.0 * PENALTY / 0.25)))

    def compiled_columns() -> np.ndarray:
        for rows, part in zip(columns, scores, strict=True):
            scores_of(rows, pull, part)
        return scores

    def compiled_dual() -> np.ndarray:
        logistic_dual(labels, goal, PENALTY, steps, y)
        return y

    def numpy_columns() -> list[np.ndarray]:
        return [rows @ (pull @ rows) for rows in columns]

    def numpy_dual() -> np.ndarray:
        return _dual(loss, labels, goal, PENALTY, TOLERANCE)

    gap = np.abs(numpy_columns() - compiled_columns()).max()
    dual_gap = np.abs(numpy_dual() - compiled_dual()).max()
    print(f"largest difference: scores {gap:.1e}, y {dual_gap:.1e}")
    spent = median_milliseconds({
        "columns, NumPy": numpy_columns,
        "columns, numba": compiled_columns,
        "noise of scores": lambda: rng.normal(size=scores.shape),
        "the centre's steps, NumPy": numpy_dual,
        "the centre's steps, numba": compiled_dual,
    })  # fmt: skip
    for name, milliseconds in spent.items():
        print(f"{name:26s}{milliseconds:8.1f} ms")


if __name__ == "__main__":
    main()
