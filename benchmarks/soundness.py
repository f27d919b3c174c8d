"""Random compositions asked by every route: is any answer on the wrong side, or late?

Usage: python benchmarks/soundness.py [--lists N] [--first SEED] [--minutes M] [--jobs J]
       [--only-epsilon] [--patience SECONDS]

Every seed is one composition of one to three pairs (rates, multipliers and numbers of steps over
many powers of ten, δ from 1e-2 to 1e-30), so a run goes on where another ended: `--first`. After M
minutes no further seed is begun. `--only-epsilon` leaves the questions about δ(ε) out, which are
half of the work.
Reported are answers on the wrong side and late answers (each with its seed), how near the enclosed
upper end comes to the grid's lower one, the slowest answers (processor time) and the widths of the
enclosures.
Exit status 1 if an answer was on the wrong side or late. One line a hundred seeds goes to stderr.
"""

from __future__ import annotations

import argparse
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
from types import FrameType
from typing import TypeVar

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
    parser.add_argument("--lists", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only-epsilon", action="store_true")
    parser.add_argument("--patience", type=float, default=120.0)
    asked = parser.parse_args()
    start, end = time.monotonic(), asked.first + asked.lists
    findings: list[Findings] = []
    ask = partial(check, patience=asked.patience, only_epsilon=asked.only_epsilon)
    with ProcessPoolExecutor(asked.jobs) as workers:
        while len(findings) < asked.lists and time.monotonic() - start < 60 * asked.minutes:
            first = asked.first + len(findings)
            for found in workers.map(ask, range(first, min(first + 10 * asked.jobs, end))):
                findings.append(found)
                for fault in found.violations + found.late:
                    print(f"seed {found.seed}: {fault}", flush=True)
                if len(findings) % 100 == 0:
                    print(f"{len(findings)} of {asked.lists}", file=sys.stderr, flush=True)
    print(f"seeds {asked.first} to {asked.first + len(findings) - 1}")
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
    for question in ("fast epsilon", "epsilon", "fast delta", "delta"):
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
