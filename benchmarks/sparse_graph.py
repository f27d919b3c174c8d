"""What PR-ADMM costs on a sparse graph of very many parties, simulated in one process.

    python benchmarks/sparse_graph.py [--parties 1000 3000 10000] [--degree 4] [--rounds 10]

Parties sit in a circle, and each talks to the degree/2 nearest on either side. Their numbers of
records are skewed: one of a hundred holds as many records as all the others of its hundred. Every
release goes through a ledger on the disk, with exact noise, as in a real run.

Each number of parties has a process of its own, so that the peak of its memory is its own. Printed
are the seconds of all that is done once (handle, plan, calibrated plan with its proof, ledger
verified, certificate, its check), rounds a second as the median of the times between one round and
the next, the size of the files, and the peak of memory less what imports take.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import argparse
import itertools
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.proofs import certificate_of, proved_of_ledger
from dpledger.mechanisms import Adjacency, PrivateDataset, SamplingCurator, SystemSampler
from dpledger.runs.pipeline import Terms, calibrate_proved
from dpledger.solvers import Network, PrAdmm
from dpledger.solvers.planning import plan

DELTA, FEATURES, TYPICAL = 1e-5, 20, 10
"""Of the guarantee; features of a record; records of most parties."""

T = TypeVar("T")


def circulant(parties: int, degree: int) -> Network:
    """Return parties in a circle that talk to the degree/2 nearest on either side."""
    pairs = ((i, (i + k) % parties) for i in range(parties) for k in range(1, degree // 2 + 1))
    return Network(parties, tuple((min(pair), max(pair)) for pair in pairs))


def skewed(parties: int) -> tuple[int, ...]:
    """Return each party's number of records."""
    return tuple(99 * TYPICAL if k % 100 == 0 else TYPICAL for k in range(parties))


def data(counts: tuple[int, ...]) -> PrivateDataset:
    """Return random records of so many parties behind their handle."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(sum(counts), FEATURES))
    rows *= 0.9 / np.linalg.norm(rows, axis=1, keepdims=True)
    return PrivateDataset(
        rows,
        np.where(rows[:, 0] > 0, 1.0, -1.0),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.repeat(np.arange(len(counts)), counts),
        parties=tuple(f"party-{k:05d}" for k in range(len(counts))),
        party_counts=counts,
    )


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print the seconds that the block takes."""
    start = time.perf_counter()
    yield
    print(f"  {what:36} {time.perf_counter() - start:8.2f} s  {peak():7.0f} MB", flush=True)


def peak() -> float:
    """Return the largest memory that this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(parties: int, degree: int, rounds: int) -> None:
    """Print what a run costs, of all its stages."""
    print(f"{parties} parties of degree {degree}, {rounds} rounds", flush=True)
    before = peak()
    with timed("records behind their handle"):
        dataset = data(skewed(parties))
    with timed("network"):
        network = circulant(parties, degree)

    def solver(noise_multiplier: float) -> PrAdmm:
        return PrAdmm(network, rounds, noise_multiplier, tolerance=1e-4)

    with timed("plan"):
        plan(solver(5.0), dataset.shape)
    with timed("calibrated and proved"):
        found = calibrate_proved(
            lambda noise: plan(solver(noise), dataset.shape), epsilon=1.0, terms=Terms(DELTA)
        )
    with tempfile.TemporaryDirectory() as folder, SqliteLedger(Path(folder) / "l.sqlite") as ledger:
        times: list[float] = []
        with timed("run"):
            run = ledger.run("run", configuration_hash="0" * 64, plan=found.events)
            curator = SamplingCurator(run, SystemSampler())
            solver(found.noise_multiplier).solve(
                dataset, curator, observe=lambda k, state: times.append(time.perf_counter())
            )
        took = statistics.median(later - one for one, later in itertools.pairwise(times))
        with timed("ledger verified"):
            ledger.verify()
        with timed("certificate"):
            document = certificate_of(ledger, delta=DELTA).to_json_bytes()
        with timed("certificate checked against ledger"):
            proved_of_ledger(document, ledger)
        size = (Path(folder) / "l.sqlite").stat().st_size
    print(
        f"  {1 / took:.2f} rounds a second, ledger {size / 2**20:.2f} MB, "
        f"certificate {len(document) / 2**20:.2f} MB, peak {peak() - before:.0f} MB more"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=[1_000, 3_000, 10_000])
    parser.add_argument("--degree", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    chosen = parser.parse_args()
    if len(chosen.parties) == 1:
        measure(chosen.parties[0], chosen.degree, chosen.rounds)
    else:
        for parties in chosen.parties:
            own = ["--parties", parties, "--degree", chosen.degree, "--rounds", chosen.rounds]
            subprocess.run([sys.executable, __file__, *map(str, own)], check=True)
