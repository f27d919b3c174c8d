"""Random compositions asked by every route: is any answer on the wrong side, or late?

Usage: python benchmarks/soundness.py [STORE.jsonl] [--lists N] [--first SEED] [--minutes M]
       [--jobs J] [--only-epsilon] [--patience SECONDS]

Every seed is one composition of one to three pairs (rates, multipliers and numbers of steps over
many powers of ten, δ from 1e-2 to 1e-30). Each finished batch is a line of STORE, so that a run
goes on where another ended, and what is reported is of all in it; its first line names the engine,
and a store of another one is refused. After M minutes no further seed is begun. `--only-epsilon`
leaves the questions about δ(ε) out, which are half of the work.
Reported are answers on the wrong side and late answers (each with its seed), how near the enclosed
upper end comes to the grid's lower one, the slowest answers (processor time) and the widths of the
enclosures.
Exit status 1 if an answer was on the wrong side or late. One line a batch goes to stderr.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from dpledger.accounting.numbers.enclosure import Enclosure
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.distribution import epsilon_by_pld
from dpledger.accounting.pld.pairs import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Sampled,
)

FAST_LIMIT, CERTIFIED_LIMIT = 1.0, 60.0
COARSE_CELLS = 1 << 9
QUESTIONS = ("fast epsilon", "epsilon", "fast delta", "delta")
ROOM = Path(__file__).parents[1] / "accounting"
ENGINE = ("numbers", "gaussian", "pld")
T = TypeVar("T")
KEPT = 10
"""How many of the slowest and the widest are shown."""


def random_pair(rng: random.Random, order: Order) -> DominatingPair:
    """Return one pair; two of three are sampled Gaussians."""
    gaussian = GaussianShift(1 / Fraction(10 ** rng.uniform(-1.3, 6)) ** 2)
    laplace = LaplaceShift(1 / Fraction(10 ** rng.uniform(-1.3, 4)))
    rate = Fraction(1 - rng.random() ** 4 if rng.random() < 0.1 else 10 ** rng.uniform(-8, -0.01))
    kind = rng.randrange(18)
    if kind < 12:
        return Sampled(gaussian, min(rate, 1 - Fraction(1, 2**20)), order)
    if kind < 14:
        return Sampled(laplace, min(rate, 1 - Fraction(1, 2**20)), order)
    if kind == 14:
        return gaussian
    if kind == 15:
        return laplace
    if kind == 16:
        truth = Fraction(rng.uniform(0.34, 0.999))
        return RandomisedAnswers(truth, rng.choice([3, 4, 10]))
    if rng.random() < 0.5:
        return DiscreteGaussianShift(Fraction(10 ** rng.uniform(-0.5, 6)))
    return DiscreteLaplaceShift(Fraction(10 ** rng.uniform(-3, 1)), rng.randint(1, 3))


def random_composition(seed: int) -> tuple[dict[DominatingPair, int], float]:
    """Return the pairs of this seed with how often each is composed, and δ."""
    rng = random.Random(seed)
    order = rng.choice(list(Order))
    counts: Counter[DominatingPair] = Counter()
    for _ in range(rng.randint(1, 3)):
        counts[random_pair(rng, order)] += round(10 ** rng.uniform(0, 8))
    return dict(counts), 10 ** rng.uniform(-30, -2)


@dataclass
class Findings:
    """What one seed showed.

    Answers on the wrong side, late answers, seconds by question, the relative width of ε, and how
    far the enclosed upper end lies above the lower end of the grid, relative to it (None where the
    grid has none).
    """

    seed: int
    violations: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    width: float = math.inf
    room: float | None = None

    def row(self) -> list[object]:
        """Return all but the seed, numbers to two digits, for a store."""
        numbers = [self.width, self.room, *map(self.seconds.get, QUESTIONS)]
        short = [x if x is None else float(f"{x:.2g}") for x in numbers]
        while short[-1] is None:
            short.pop()
        faults = [self.violations, self.late] if self.violations or self.late else []
        return [*faults, *short]

    @classmethod
    def of_row(cls, seed: int, row: list[Any]) -> Findings:
        """Return what a row of a store says of a seed."""
        faults, row = (row[:2], row[2:]) if isinstance(row[0], list) else ([[], []], row)
        width, room, *seconds = row
        asked = {q: s for q, s in zip(QUESTIONS, seconds, strict=False) if s is not None}
        return cls(seed, *faults, seconds=asked, width=width, room=room)


@dataclass(frozen=True)
class Store:
    """Lines of batches: the first seed of each and a row for it and each that follows it.

    Args:
        path: of the file; None keeps nothing.
        kind: what every answer in it depends on, its first line.
    """

    path: Path | None
    kind: dict[str, object]

    def read(self) -> dict[int, Findings]:
        """Return what was found, by seed; exits where it was found by another engine."""
        if self.path is None or not self.path.exists():
            return {}
        first, *lines = map(json.loads, self.path.read_text().splitlines())
        if first != self.kind:
            sys.exit(f"{self.path} is of {first}, not of {self.kind}: begin another store.")
        rows = [(b["first"] + k, row) for b in lines for k, row in enumerate(b["rows"])]
        return {seed: Findings.of_row(seed, row) for seed, row in rows}

    def append(self, found: list[Findings]) -> None:
        """Add a batch of seeds that follow one another."""
        if self.path is None:
            return
        new = not self.path.exists()
        with self.path.open("a") as file:
            for line in [self.kind] * new + [
                {"first": found[0].seed, "rows": [each.row() for each in found]}
            ]:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")


def engine() -> str:
    """Return a hash of all that an answer is computed by."""
    digest = hashlib.sha256()
    for folder in ENGINE:
        for path in sorted((ROOM / folder).glob("*.py")):
            digest.update(f"{folder}/{path.name}".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class OutOfPatience(Exception):
    """An answer took longer than was granted."""


@contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Raise `OutOfPatience` in the block after so many seconds of processor time."""

    def ring(signum: int, frame: FrameType | None) -> None:
        raise OutOfPatience

    former = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)


def check(seed: int, *, patience: float, only_epsilon: bool = False) -> Findings:
    """Ask every question of one seed's composition and compare the answers."""
    counts, delta = random_composition(seed)
    profile, found = PrivacyProfile.of_pairs(counts), Findings(seed)

    def timed(question: str, limit: float, ask: Callable[[], T]) -> T | None:
        start = time.process_time()
        try:
            with at_most(patience):
                return ask()
        except OutOfPatience:
            found.late.append(f"{question}: no answer within {patience:g} s")
            return None
        finally:
            found.seconds[question] = time.process_time() - start
            if limit < found.seconds[question] < patience:
                found.late.append(f"{question}: {found.seconds[question]:.1f} s")

    def expect(holds: bool, message: str) -> None:
        if not holds:
            found.violations.append(message)

    fast = timed("fast epsilon", FAST_LIMIT, lambda: profile.epsilon_upper(delta))
    certified = timed("epsilon", CERTIFIED_LIMIT, lambda: profile.epsilon(delta))
    if fast is None or certified is None:
        return found
    found.width = certified.relative_width if certified.upper_float > 0 else 0.0
    expect(0 <= fast < math.inf, f"fast={fast}")
    expect(fast >= certified.lower_float, f"fast={fast} below {certified}")
    expect(certified.upper_float < math.inf, f"certified={certified}")
    grid = grid_enclosure(counts, delta, patience)
    if grid is not None:
        expect(bool(certified.upper >= grid.lower), f"certified={certified} below grid={grid}")
        expect(bool(certified.lower <= grid.upper), f"certified={certified} above grid={grid}")
        if grid.lower_float > 0:
            found.room = float(certified.upper / grid.lower - 1)
    if only_epsilon:
        return found
    upper = certified.upper_float
    back = timed("delta", CERTIFIED_LIMIT, lambda: profile.delta(upper))
    fast_back = timed("fast delta", FAST_LIMIT, lambda: profile.delta_upper(upper))
    if back is not None and fast_back is not None:
        expect(back.lower_float <= delta, f"delta({upper})={back} above {delta}")
        expect(fast_back >= back.lower_float, f"fast delta={fast_back} below {back}")
        expect(0 <= fast_back <= 1, f"fast delta={fast_back}")
    return found


def grid_enclosure(
    counts: dict[DominatingPair, int], delta: float, patience: float
) -> Enclosure | None:
    """Return what a coarse grid says, if it says anything in time."""
    try:
        with at_most(min(patience, 20.0)):
            return epsilon_by_pld(counts, delta, cells=COARSE_CELLS)
    except (ArithmeticError, OutOfPatience):
        return None


def main() -> None:
    """Check the seeds and print what they showed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, nargs="?")
    parser.add_argument("--lists", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only-epsilon", action="store_true")
    parser.add_argument("--patience", type=float, default=120.0)
    asked = parser.parse_args()
    start = time.monotonic()
    store = Store(asked.store, {"engine": engine(), "only epsilon": asked.only_epsilon})
    done = store.read()
    waiting = [k for k in range(asked.first, asked.first + asked.lists) if k not in done]
    ask = partial(check, patience=asked.patience, only_epsilon=asked.only_epsilon)
    with ProcessPoolExecutor(asked.jobs) as workers:
        while waiting and time.monotonic() - start < 60 * asked.minutes:
            some = zip(waiting[: 10 * asked.jobs], count(waiting[0]), strict=False)
            batch = [k for k, _ in takewhile(lambda pair: pair[0] == pair[1], some)]
            found = list(workers.map(ask, batch))
            store.append(found)
            done |= {each.seed: each for each in found}
            waiting = waiting[len(batch) :]
            print(f"{len(done)} done, {len(waiting)} to do", file=sys.stderr, flush=True)
    findings = [done[k] for k in sorted(done)]
    for each in findings:
        for fault in each.violations + each.late:
            print(f"seed {each.seed}: {fault}")
    print(f"seeds {findings[0].seed} to {findings[-1].seed}, engine {store.kind['engine']}")
    summarise(findings)
    sys.exit(any(found.violations or found.late for found in findings))


def summarise(findings: list[Findings]) -> None:
    """Print the slowest and the widest answers."""
    violated = sum(bool(found.violations) for found in findings)
    late = sum(bool(found.late) for found in findings)
    print(f"{len(findings)} compositions, {violated} with violations, {late} with late answers")
    rooms = sorted((found.room, found.seed) for found in findings if found.room is not None)
    if rooms:
        least, seed = rooms[0]
        print(
            f"enclosed upper end over the grid's lower end, on {len(rooms)}: "
            f"least {least:+.1e} (seed {seed}), median {rooms[len(rooms) // 2][0]:+.1e}"
        )
    for question in QUESTIONS:
        asked = [found for found in findings if question in found.seconds]
        slowest = sorted(asked, key=lambda found: -found.seconds[question])[:KEPT]
        shown = ", ".join(f"{f.seconds[question]:.2f} s (seed {f.seed})" for f in slowest)
        if asked:
            middle = statistics.median(found.seconds[question] for found in asked)
            print(f"{question}: median {middle:.3f} s; slowest {shown}")
    for width in (1e-6, 1e-3, 1e-1, 1.0):
        share = sum(found.width <= width for found in findings) / max(len(findings), 1)
        print(f"relative width of epsilon at most {width:g}: {share:.1%}")
    widest = sorted(findings, key=lambda found: -found.width)[:KEPT]
    print("widest: " + ", ".join(f"{f.width:.1e} (seed {f.seed})" for f in widest))


if __name__ == "__main__":
    main()
