"""What records on a disk cost: a party whose records are larger than its memory.

    python benchmarks/on_disk.py [--records 1000000 10000000] [--folder DIR] [--memory MB]

A party has records of 100 dense features in a NumPy file in DIR, and keeps the checked copy of
them in DIR too (`RowBlocks(..., scratch=DIR)`): twice 800 bytes a record. It trains by DP-ADMM
linearised at the consensus, on all records in every round, and by DP-SGD, on a hundredth of them.
The same is done in memory, where --memory allows, and the models must agree to the last bit.

With --memory every process may use so many MB, pages of files included: what is read in a round
then comes from the disk, unless the records fit (Linux, as root: control groups). Each case has a
process of its own. Printed are seconds to make the handle and seconds of a round (the median of
the times between one round and the next), with each the peak of memory that is not a file's, above
what it was before; and what 10^8 records would take, in proportion.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from dpledger.mechanisms import (
    Adjacency,
    EventList,
    FixedBatch,
    PrivateDataset,
    RowBlocks,
    SamplingCurator,
    SeededSampler,
)
from dpledger.solvers import ConsensusDpAdmm, ConstantSteps, DpSgd

WIDTH, AT_ONCE, ROUNDS = 100, 100_000, 6
PLANNED = 10**8
GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
"""Where limits of memory are set, by the first version of control groups or by the second."""


def write(file: Path, records: int) -> None:
    """Write a file of random rows of norms up to one, and with every row its label as a column."""
    rows = open_memmap(file, "w+", np.float64, (records, WIDTH + 1))
    for first in range(0, records, AT_ONCE):
        rng = np.random.default_rng(first)
        some = rng.normal(size=(min(AT_ONCE, records - first), WIDTH)) / 12.0
        rows[first : first + AT_ONCE, :WIDTH] = some
        rows[first : first + AT_ONCE, WIDTH] = np.where(some[:, 0] > 0, 1.0, -1.0)
    rows.flush()


def own_memory() -> float:
    """Return the MB of this process's memory that are no file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


class Peak:
    """The largest `own_memory`, looked at a hundred times a second."""

    def __init__(self) -> None:
        self._before = self._most = own_memory()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self._most = max(self._most, own_memory())
            time.sleep(0.01)

    def taken(self) -> float:
        """Return the MB above the first look since this was asked last."""
        found, self._most = self._most - self._before, own_memory()
        return found


def per_round(solve: Callable[[Any], Any]) -> tuple[float, str]:
    """Return the median seconds of a round, and the model's numbers in hexadecimal."""
    times: list[float] = []
    state = solve(lambda k, state: times.append(time.perf_counter()))
    seconds = statistics.median(later - one for one, later in itertools.pairwise(times))
    return seconds, state.model.tobytes().hex()


def case(file: Path, scratch: Path | None) -> dict[str, Any]:
    """Return what one case took, in this process."""
    source = np.load(file, mmap_mode="r")
    records, peak, start = len(source), Peak(), time.perf_counter()
    data = PrivateDataset(
        RowBlocks((records, WIDTH), lambda some: source[some, :WIDTH], scratch),
        source[:, WIDTH],
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
    )
    found: dict[str, Any] = {"handle": (time.perf_counter() - start, peak.taken())}
    solvers: dict[str, Any] = {
        "all": ConsensusDpAdmm(ROUNDS, 20.0, 4.0, momentum=0.5),
        "batch": DpSgd(ROUNDS, 20.0, ConstantSteps(0.5), FixedBatch(records // 100)),
    }
    for name, solver in solvers.items():
        curator = SamplingCurator(EventList(), SeededSampler(1))
        seconds, found[f"{name} model"] = per_round(
            lambda observe, s=solver, c=curator: s.solve(data, c, observe=observe)
        )
        found[name] = seconds, peak.taken()
    return found


@contextmanager
def limited(megabytes: int | None) -> Generator[Path | None]:
    """Yield the file to which a process writes its number to have no more memory; None for any."""
    if megabytes is None:
        yield None
        return
    root = next(path for path in GROUPS if path.is_dir())
    limit = "memory.limit_in_bytes" if root == GROUPS[0] else "memory.max"
    group = root / f"dpledger-on-disk-{os.getpid()}"
    group.mkdir()
    try:
        (group / limit).write_text(str(megabytes << 20))
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def run(file: Path, scratch: Path | None, megabytes: int | None) -> dict[str, Any]:
    """Return what one case took, in a process of its own."""
    with limited(megabytes) as group:
        arguments = [str(file), str(scratch or ""), str(group or "")]
        done = subprocess.run(
            [sys.executable, __file__, "--case", *arguments], check=True, stdout=subprocess.PIPE
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What records on a disk cost.")
    parser.add_argument("--records", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--memory", type=int)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        file, scratch, group = given.case
        if group:
            Path(group).write_text(str(os.getpid()))
        print(json.dumps(case(Path(file), Path(scratch) if scratch else None)))
        return
    print("| records | kept | handle | a round on all | a round on a hundredth |")
    print("|--:|---|--:|--:|--:|")
    for records in given.records:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            file = Path(folder) / "rows.npy"
            write(file, records)
            on_disk = run(file, Path(folder), given.memory)
            report(f"{records:,} | on the disk", on_disk)
            if not given.memory or 900 * records < given.memory << 20:
                in_memory = run(file, None, given.memory)
                report(f"{records:,} | in memory", in_memory)
                for model in ("all model", "batch model"):
                    assert on_disk[model] == in_memory[model], "the models differ"
        times = PLANNED / records
        report(f"{PLANNED:,} | planned, {times:g} times as much", on_disk, times)


def report(what: str, found: dict[str, Any], times: float = 1.0) -> None:
    """Print a row of the table."""
    cells = (found[name] for name in ("handle", "all", "batch"))
    shown = (f"{seconds * times:.3g} s, {memory * times:.0f} MB" for seconds, memory in cells)
    print(f"| {what} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
