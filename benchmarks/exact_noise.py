"""What exact noise costs: nanoseconds a number, beside NumPy's floating-point noise.

Usage: python benchmarks/exact_noise.py

A message of 10^6 numbers, and messages of 104 (a gradient of the demo); medians over repetitions.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

from dpledger.mechanisms import BitGenerator, SimulationSampler, SystemSampler

LARGE, SMALL, REPETITIONS = 10**6, 104, 7


def seconds(job: Callable[[], object]) -> float:
    """Return seconds a call: the median over repetitions, after one warm-up."""
    job()
    times: list[float] = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Print times a number and their ratios to floating-point noise."""
    seeded = {bits: SimulationSampler(1, bits=bits) for bits in BitGenerator}
    exact = {f"exact, {bits.value}": found.gaussian for bits, found in seeded.items()}
    rows = {
        "floating point, philox": SimulationSampler(1).gaussian,
        **exact,
        "exact, operating system": SystemSampler().gaussian,
        "exact Laplace, operating system": SystemSampler().laplace,
    }
    print(f"{'':34s}{LARGE:>12,d} numbers {SMALL:>14d} numbers")
    reference: list[float] = []
    for name, gaussian in rows.items():
        line = f"{name:34s}"
        for place, (size, times) in enumerate(((LARGE, 1), (SMALL, 500))):
            value = np.zeros(size)

            def job(
                release: Callable[..., object] = gaussian, value: object = value, n: int = times
            ) -> None:
                for _ in range(n):
                    release(value, 1.0)

            taken = seconds(job) / (size * times)
            reference = reference if len(reference) > place else [*reference, taken]
            line += f"{taken * 1e9:12.1f} ns {taken / reference[place]:5.1f} x"
        print(line)


if __name__ == "__main__":
    main()
