"""How often verdicts accuse a mechanism that keeps its claim, and find one that does not.

Usage: python benchmarks/verdicts.py [--repetitions 200] [--only TEXT] [--jobs 1] [--store FILE]

A row is one verdict in one situation: in how many repetitions it was a finding. In *kept* rows the
claim is true, and findings may be no more than 5 % (confidence 0.95); in *broken* rows the noise is
too small, repeated or of another law, and a finding is what is wanted; *outside* rows break a
condition that a theorem names, and show what that costs. The exit status is 1 if a kept row has
more findings than chance allows (1 in 1000 over the whole table).

`--store` keeps blocks of 25 repetitions as they finish: the same call goes on where it was stopped,
and more repetitions later cost only the new ones. A block's noise follows from the seed, the row's
name and the block's number, whatever the order and the number of processes; blocks of other code
are not believed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import repeat
from math import asinh, sqrt
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.random import Generator, SeedSequence
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.audits import foreign_programs as foreign

from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.audits.assessment import assess
from dpledger.audits.bounds import Scores
from dpledger.audits.datasets import AuditDataset
from dpledger.audits.falsifier import ReplacedRecord
from dpledger.audits.foreign_code import Program, audit_noise
from dpledger.audits.noise_tests import Residual, noise_tests
from dpledger.audits.one_run import Canaries
from dpledger.audits.one_run_plan import audit_one_run, plan_guesses
from dpledger.audits.scores import ClaimedPrivacy, judge_scores
from dpledger.audits.trials.code import code_digest
from dpledger.audits.worst_start import last_model, worst_start
from dpledger.mechanisms import Adjacency, InvalidParameter
from dpledger.mechanisms.curators import SamplingCurator
from dpledger.mechanisms.protocols import EventList, FloatArray
from dpledger.mechanisms.sampling import SimulationSampler
from dpledger.solvers import ConstantSteps, DpSgd

CONFIDENCE = 0.95
DELTA = 1e-5
FALSE_ALARM = 1e-3
MU = 0.27
"""Of claims under attack: epsilon of about 1 at delta = 1e-5."""
_BLOCK = 25
_ROOMS = ("mechanisms", "accounting", "solvers", "audits")

Experiment = Callable[[Generator], bool]
"""Draws anew, and returns whether the verdict is a finding."""


@dataclass(frozen=True)
class Row:
    """One verdict in one situation.

    Args:
        name: which verdict, and where.
        kind: "kept", "broken" or "outside".
        experiment: one repetition.
    """

    name: str
    kind: str
    experiment: Experiment

    def block(self, seed: int, number: int) -> int:
        """Return the findings among the repetitions of one block."""
        generator = np.random.default_rng(SeedSequence([seed, crc32(self.name.encode()), number]))
        return sum(self.experiment(generator) for _ in range(_BLOCK))


# --- scores of independent runs ------------------------------------------------------------------


def gaussian_scores(mu: float, inside: int, outside: int) -> Callable[[Generator], Scores]:
    """Return log-likelihood ratios of an exactly mu-GDP pair, so many runs in each world."""
    half = mu * mu / 2
    return lambda g: Scores(g.normal(half, mu, inside), g.normal(-half, mu, outside))


def cauchy_scores(shift: float, trials: int) -> Callable[[Generator], Scores]:
    """Return Cauchy numbers that are moved by `shift`: no moments, epsilon = 2 asinh(shift/2)."""
    return lambda g: Scores(shift + g.standard_cauchy(trials), g.standard_cauchy(trials))


def by_scores(draw: Callable[[Generator], Scores], claimed: ClaimedPrivacy) -> Experiment:
    """Return the verdict of `dpledger attack --scores`."""
    return lambda g: judge_scores(draw(g), claimed, confidence=CONFIDENCE).refutes_claim


def by_replay(mu: float, trials: int) -> Experiment:
    """Return the verdict of a replay attack that claims MU, on a pair that has `mu`."""

    def found(generator: Generator) -> bool:
        attack = gaussian_scores(mu, trials, trials)(generator)
        null = Scores(*(generator.normal(mu * mu / 2, mu, trials) for _ in range(2)))
        result = assess(
            attack,
            null,
            claimed=Gdp(MU * MU),
            delta=DELTA,
            confidence=CONFIDENCE,
            pair_mu=MU,
        )
        return result.is_finding

    return found


def scores_rows() -> Iterator[Row]:
    """Yield verdicts on scores: few and unequal runs, heavy tails, halved noise."""
    claimed = ClaimedPrivacy.of(epsilon=None, mu=MU, delta=DELTA)
    for inside, outside in ((20, 20), (50, 50), (1000, 1000), (20, 500), (500, 20)):
        draw = gaussian_scores(MU, inside, outside)
        yield Row(f"scores, {inside} in and {outside} out", "kept", by_scores(draw, claimed))
    tails = ClaimedPrivacy.of(epsilon=2 * asinh(0.25), mu=None, delta=DELTA)
    for trials in (50, 1000):
        draw = cauchy_scores(0.5, trials)
        yield Row(f"Cauchy scores, {trials} each", "kept", by_scores(draw, tails))
    for part in (2, 10):
        draw = gaussian_scores(part * MU, 1000, 1000)
        yield Row(f"scores, noise / {part}, 1000 each", "broken", by_scores(draw, claimed))
    yield Row("replay, 1000 each", "kept", by_replay(MU, 1000))
    yield Row("replay, noise / 2, 1000 each", "broken", by_replay(2 * MU, 1000))


# --- one run -------------------------------------------------------------------------------------


def one_run(draw: Callable[[Generator], Canaries], claimed: Gdp | ApproxDp) -> Experiment:
    """Return the verdict of `dpledger audit one-run`, with planned numbers of guesses."""

    def found(generator: Generator) -> bool:
        canaries = draw(generator)
        plan = plan_guesses(
            canaries=canaries.scores.size, claimed=claimed, delta=DELTA, confidence=CONFIDENCE
        )
        try:
            audit = audit_one_run(
                canaries, claimed=claimed, delta=DELTA, confidence=CONFIDENCE, plan=plan
            )
        except InvalidParameter:  # coins that are not fair are refused, which accuses nobody
            return False
        return audit.is_finding

    return found


def fair(mu: float, number: int) -> Callable[[Generator], Canaries]:
    """Return canaries of mu-GDP scores by independent fair coins."""

    def draw(generator: Generator) -> Canaries:
        included = generator.random(number) < 0.5
        return Canaries(generator.normal(size=number) + mu * included, included)

    return draw


def half_in(mu: float, number: int) -> Callable[[Generator], Canaries]:
    """Return the same where exactly half of the canaries are in, as is common practice."""

    def draw(generator: Generator) -> Canaries:
        included = generator.permutation(np.arange(number) % 2 == 0)
        return Canaries(generator.normal(size=number) + mu * included, included)

    return draw


def in_order(levels: int, number: int) -> Callable[[Generator], Canaries]:
    """Return scores of so many levels that say nothing, with those that were out in front."""

    def draw(generator: Generator) -> Canaries:
        included = np.sort(generator.random(number) < 0.5)
        scores = generator.integers(levels, size=number).astype(float)
        return Canaries(scores, included, int(generator.integers(2**32)))

    return draw


def copies(mu: float, number: int, each: int) -> Callable[[Generator], Canaries]:
    """Return blocks of copies with one coin and one score, which the theorem does not cover."""

    def draw(generator: Generator) -> Canaries:
        few = fair(mu, number // each)(generator)
        return Canaries(np.repeat(few.scores, each), np.repeat(few.included, each), seed=0)

    return draw


def one_run_rows() -> Iterator[Row]:
    """Yield verdicts on canaries: claims of mu and of epsilon, ties, coins of other kinds."""
    one = Gdp(1)
    for number in (100, 1000):
        yield Row(f"one run, {number} canaries", "kept", one_run(fair(1.0, number), one))
    yield Row("one run, half of 1000 in", "kept", one_run(half_in(1.0, 1000), one))
    for levels, words in ((1, "constant scores"), (3, "scores of three levels")):
        experiment = one_run(in_order(levels, 1000), ApproxDp(0.1, DELTA))
        yield Row(f"one run, {words}, 1000 in order", "kept", experiment)
    yield Row(
        "one run, 100 canaries five times",
        "outside",
        one_run(copies(0.0, 500, 5), ApproxDp(0.1, DELTA)),
    )
    yield Row("one run, noise / 2, 1000 canaries", "broken", one_run(fair(2.0, 1000), one))


# --- noise ---------------------------------------------------------------------------------------


def of_noise(bend: Callable[[FloatArray, Generator], FloatArray]) -> Experiment:
    """Return the test of one run's noise: 30 rounds of 3 parties and 6 coordinates.

    Args:
        bend: what a faulty generator makes of standard normal numbers of shape (30, 3, 6).
    """

    def found(generator: Generator) -> bool:
        drawn = bend(generator.normal(size=(30, 3, 6)), generator)
        run = [Residual(one, "message") for one in drawn]
        return noise_tests([run], level=1 - CONFIDENCE).refuted

    return found


def noise_rows() -> Iterator[Row]:
    """Yield tests of noise: as stated, smaller, repeated, of another law."""
    yield Row("noise of a run", "kept", of_noise(lambda z, _: z))
    for words, bend in (
        ("noise / 2", lambda z, _: z / 2),
        ("noise of each round sent twice", lambda z, _: z[np.arange(30) // 2]),
        ("noise of two parties the same", lambda z, _: z[:, [0, 0, 2]]),
        ("Laplace noise", lambda z, g: g.laplace(scale=sqrt(0.5), size=z.shape)),
    ):
        yield Row(words, "broken", of_noise(bend))


def of_program(program: Program) -> Experiment:
    """Return the answer of `dpledger audit foreign` to the question of noise."""
    domain = ReplacedRecord(
        count=foreign.RECORDS, features=2, adjacency=Adjacency.REPLACE_ONE, row_bound=10.0
    )
    return lambda g: (
        audit_noise(program, domain, level=1 - CONFIDENCE, seed=int(g.integers(2**62))).refuted
    )


def foreign_rows() -> Iterator[Row]:
    """Yield recorded programs, each on noise of its own: honest twins, and bugs of the noise."""
    for program in foreign.TWINS:
        yield Row(f"foreign, {program.__name__}", "kept", of_program(program))
    for program, question in foreign.BUGS.items():
        if question == "noise":
            yield Row(f"foreign, {program.__name__}", "broken", of_program(program))


# --- last models ---------------------------------------------------------------------------------


def of_last_model(part: float, trials: int) -> Experiment:
    """Return the verdict on last models of DP-SGD from the worst start, with `part` of its noise.

    Args:
        part: of the planned noise.
        trials: runs on each data set.
    """
    rows = np.random.default_rng(1).normal(size=(20, 3))
    dataset = AuditDataset(rows, np.ones(20), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)
    planned = DpSgd(10, sqrt(10) / MU, ConstantSteps(0.5), regularisation=0.0)
    far, pair = worst_start(planned, dataset, index=0)
    law = last_model(far, pair)
    assert law is not None
    run, claimed = replace(far, noise_multiplier=part * planned.noise_multiplier), Gdp(MU * MU)

    def found(generator: Generator) -> bool:
        seen: list[FloatArray] = []
        for side in (pair.dataset, pair.neighbour):
            sampler = SimulationSampler(int(generator.integers(2**62)))
            curator = SamplingCurator(EventList(), sampler, trials=trials)
            seen.append((run.solve(side, curator).model - far.start) @ law.direction)
        return judge_scores(
            Scores(*seen), ClaimedPrivacy(claimed, DELTA), confidence=CONFIDENCE
        ).refutes_claim

    return found


def last_model_rows() -> Iterator[Row]:
    """Yield last models of honest runs, and of runs with half of the noise."""
    yield Row("last model of DP-SGD, 1500 each", "kept", of_last_model(1.0, 1500))
    yield Row("last model of DP-SGD, noise / 2, 1500 each", "broken", of_last_model(0.5, 1500))


# --- the table -----------------------------------------------------------------------------------


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows; once a process, as some look for the law of a run."""
    parts = (scores_rows, one_run_rows, noise_rows, foreign_rows, last_model_rows)
    return tuple(row for part in parts for row in part())


def kept_blocks(store: Path | None, code: str) -> dict[tuple[str, int, int], int]:
    """Return the findings of blocks that a store holds of this code, by row, seed and number."""
    if store is None or not store.exists():
        return {}
    done: dict[tuple[str, int, int], int] = {}
    for line in store.read_text(encoding="utf-8").splitlines():
        try:
            made, name, seed, number, found = json.loads(line)
        except ValueError:  # cut off by a crash: that block is done again
            continue
        if made == code:
            done[name, seed, number] = found
    return done


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if a kept row was accused more often than it may be."""
    parser = argparse.ArgumentParser(description="How often verdicts accuse, and find.")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=Path)
    asked = parser.parse_args(arguments)
    table = [row for row in rows() if asked.only in row.name]
    numbers = range(-(-asked.repetitions // _BLOCK))
    count, code = len(numbers) * _BLOCK, code_digest(_ROOMS)
    done = kept_blocks(asked.store, code)
    missing = [(r, n) for r in table for n in numbers if (r.name, asked.seed, n) not in done]
    with ProcessPoolExecutor(asked.jobs) as pool:
        found = pool.map(
            run_block, [r.name for r, _ in missing], repeat(asked.seed), [n for _, n in missing]
        )
        for (row, number), findings in zip(missing, found, strict=True):
            done[row.name, asked.seed, number] = findings
            if asked.store is not None:
                with asked.store.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([code, row.name, asked.seed, number, findings]) + "\n")
    most = int(binom.isf(FALSE_ALARM / max(1, len(table)), count, 1 - CONFIDENCE))
    print(f"{count} repetitions, seed {asked.seed}; at most {most} findings in a kept row\n")
    print("| verdict | claim | findings | share |\n|---|---|---|---|")
    failed = False
    for row in table:
        total = sum(done[row.name, asked.seed, number] for number in numbers)
        failed |= row.kind == "kept" and total > most
        print(f"| {row.name} | {row.kind} | {total} of {count} | {total / count:.4f} |")
    return int(failed)


def run_block(name: str, seed: int, number: int) -> int:
    """Return the findings of one block: workers find the row by its name, as rows are closures."""
    (row,) = [each for each in rows() if each.name == name]
    return row.block(seed, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
